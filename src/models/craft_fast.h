/* craft_fast.h - knobs of CRAFT's fast path, for tests and benchmarks alone. */
#ifndef FR_MODELS_CRAFT_FAST_H
#define FR_MODELS_CRAFT_FAST_H

#include "nn/simd.h"

/* Candidates that go through the layers together, read when a scorer is opened. No score depends
 * on it. */
extern int craft_fast_block;

/* The most its own loops may use, as gemm_limit; read when a scorer is opened. Nor on this. */
extern simd_level craft_fast_limit;

/* Where the time goes. */
typedef enum craft_stage {
    CRAFT_SOURCE, /* per event: history, keys, values, elapsed times */
    CRAFT_LOGITS,
    CRAFT_SOFTMAX,
    CRAFT_MIX,
    CRAFT_OUT, /* WO, query, norms and residuals */
    CRAFT_FFN1,
    CRAFT_GELU,
    CRAFT_FFN2,
    CRAFT_HEAD,
    CRAFT_STAGES
} craft_stage;

/* If not NULL: seconds are added to [CRAFT_STAGES]; for one thread only. */
extern double *craft_fast_seconds;

#endif
