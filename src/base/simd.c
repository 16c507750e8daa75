/* simd.c - see simd.h. */
#include "base/simd.h"

simd_level simd_limit = SIMD_LEVELS;

const char *simd_name(simd_level level) {
    switch (level) {
    case SIMD_AVX512: return "avx512";
    case SIMD_AVX2: return "avx2";
    case SIMD_NEON: return "neon";
    default: return "portable";
    }
}
