/* simd.h - which instruction set products and elementwise functions use.
 *
 * Chosen when the program runs, so one binary serves all x86-64 machines, and other processors get
 * plain C. All levels give the same bits; the limits exist so that tests and benchmarks can compare
 * them. They must not be changed while another thread computes.
 */
#ifndef FR_NN_SIMD_H
#define FR_NN_SIMD_H

typedef enum simd_level { SIMD_PORTABLE, SIMD_AVX2, SIMD_AVX512 } simd_level;

/* The most that gemm.c and vmath.c may use (SIMD_AVX512 = whatever the processor has). */
extern simd_level gemm_limit, vmath_limit;
extern simd_level norm_limit; /* norm.c */

/* The best level the processor has, up to `limit`. */
static inline simd_level simd_within(simd_level limit) {
#ifdef __x86_64__
    if (limit >= SIMD_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return SIMD_AVX512;
    if (limit >= SIMD_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return SIMD_AVX2;
#else
    (void)limit;
#endif
    return SIMD_PORTABLE;
}

#endif
