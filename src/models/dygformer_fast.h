/* dygformer_fast.h - DyGFormer's fast path, and its knobs, which are for tests and benchmarks
 * alone: no score depends on them. */
#ifndef FR_MODELS_DYGFORMER_FAST_H
#define FR_MODELS_DYGFORMER_FAST_H

#include "models/model.h"
#include "nn/simd.h"

/* Patches that go through the layers together, about; read when a scorer is opened. */
extern int dygformer_fast_rows;
/* The most its own loops may use, as gemm_limit; read when a scorer is opened. */
extern simd_level dygformer_fast_limit;
/* Bytes a table by event may take; beyond, features are multiplied when used and cosines of times
 * computed, which may change the last bits. */
extern size_t dygformer_fast_tables;

/* A scorer through tables made once per checkpoint, for both kinds. */
fr_status dygformer_fast(const model *m, int threads, fr_scorer *out, fr_error *err);

#endif
