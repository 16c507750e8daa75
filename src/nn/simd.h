/* simd.h - which instruction set products and elementwise functions use.
 *
 * Chosen when the program runs, so one binary serves all x86-64 machines, and other processors get
 * plain C. All levels give the same bits; the limits exist so that tests and benchmarks can compare
 * them. They must not be changed while another thread computes.
 */
#ifndef FR_NN_SIMD_H
#define FR_NN_SIMD_H

#include <stdint.h> /* tells whether this is glibc */

/* Kernels of their own for x86-64. FULLRANK_PORTABLE leaves them out: the bits are the same, and
 * clang needs minutes to put sanitizers into them. */
#if defined(__x86_64__) && !defined(FULLRANK_PORTABLE)
#define SIMD_X86
#endif

typedef enum simd_level { SIMD_PORTABLE, SIMD_AVX2, SIMD_AVX512 } simd_level;

/* The most that gemm.c and vmath.c may use (SIMD_AVX512 = whatever the processor has). */
extern simd_level gemm_limit, vmath_limit;

/* The best level the processor has, up to `limit`. */
static inline simd_level simd_within(simd_level limit) {
#ifdef SIMD_X86
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

/* SIMD_BUILDS(name, kernel, (parameters), (arguments)) builds an inlined function of plain C, once
 * for each instruction set; name_within(limit) is the build for this processor, up to a limit. Sums
 * keep their order and nothing is contracted, so the bits are the same. */
#define SIMD_BUILD(target, name, kernel, parameters, arguments)                                    \
    target static void name parameters { kernel arguments; }
#ifdef SIMD_X86
#define SIMD_BUILDS(name, kernel, parameters, arguments)                                           \
    SIMD_BUILD(, name##_portable, kernel, parameters, arguments)                                   \
    SIMD_BUILD(__attribute__((target("avx2"))), name##_avx2, kernel, parameters, arguments)        \
    SIMD_BUILD(__attribute__((target("avx512f,avx512vl,avx512dq"))), name##_avx512, kernel,        \
               parameters, arguments)                                                              \
    static __typeof__(&name##_portable) name##_within(simd_level limit) {                          \
        simd_level level = simd_within(limit);                                                     \
        return level == SIMD_AVX512 ? name##_avx512                                                \
               : level == SIMD_AVX2 ? name##_avx2                                                  \
                                    : name##_portable;                                             \
    }
#else
#define SIMD_BUILDS(name, kernel, parameters, arguments)                                           \
    SIMD_BUILD(, name##_portable, kernel, parameters, arguments)                                   \
    static __typeof__(&name##_portable) name##_within(simd_level limit) {                          \
        (void)limit;                                                                               \
        return name##_portable;                                                                    \
    }
#endif

/* For functions of plain loops: compiled once per instruction set too, and chosen by the loader of
 * glibc. Sums keep their order and nothing is contracted, so the bits are the same. Sanitizers are
 * not ready when it chooses. */
#if defined(SIMD_X86) && defined(__GLIBC__) && !defined(__clang__) &&                              \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIMD_LOOPS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SIMD_LOOPS
#endif

#endif
