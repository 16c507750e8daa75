/* tgn_fast.h - knobs of TGN's fast path, for tests and benchmarks alone. */
#ifndef FR_MODELS_TGN_FAST_H
#define FR_MODELS_TGN_FAST_H

#include "nn/simd.h"

/* Scores that go through the products together, read when a scorer is opened; at least one
 * candidate for all events of a call. No score depends on it. */
extern int tgn_fast_block;

/* The most its own loops may use, as gemm_limit; read when a scorer is opened. Nor on this. */
extern simd_level tgn_fast_limit;

#endif
