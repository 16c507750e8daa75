/* dygformer_fast.h - DyGFormer's fast path. */
#ifndef FR_MODELS_DYGFORMER_FAST_H
#define FR_MODELS_DYGFORMER_FAST_H

#include "models/model.h"

/* A scorer through tables made once per checkpoint, for both kinds. */
fr_status dygformer_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
