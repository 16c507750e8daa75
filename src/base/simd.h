/* simd.h - which instruction set random numbers, products, elementwise functions and fast paths
 * use.
 *
 * Chosen here, when the program runs, so one binary serves all x86-64 machines. Every AArch64
 * processor has NEON; others get plain C. All levels give the same bits.
 */
#ifndef FR_BASE_SIMD_H
#define FR_BASE_SIMD_H

#include <stdint.h> /* tells whether this is glibc */

/* Kernels of their own for a processor. FULLRANK_PORTABLE leaves them out: the bits are the same,
 * and clang needs minutes to put sanitizers into them. */
#ifdef FULLRANK_PORTABLE
#elif defined(__x86_64__)
#define SIMD_X86
#elif defined(__aarch64__)
#define SIMD_ARM
#endif

typedef enum simd_level {
    SIMD_PORTABLE,
    SIMD_NEON,
    SIMD_AVX2,
    SIMD_AVX512,
    SIMD_LEVELS
} simd_level;

/* The most that may be used, at first whatever the processor has. It is there so that tests and
 * benchmarks can compare levels. It must not be changed while another thread computes; a scorer
 * that is open already may keep its level. */
extern simd_level simd_limit;

/* "avx512", "avx2", "neon", "portable" */
const char *simd_name(simd_level level);

/* The best level the processor has, up to the limit. */
static inline simd_level simd_now(void) {
#ifdef SIMD_X86
    if (simd_limit >= SIMD_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return SIMD_AVX512;
    if (simd_limit >= SIMD_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return SIMD_AVX2;
#elif defined(SIMD_ARM)
    if (simd_limit >= SIMD_NEON) return SIMD_NEON;
#endif
    return SIMD_PORTABLE;
}

/* What SIMD_BUILDS builds must be inlined, and so must all that it calls for its loops. */
#define SIMD_INLINE static inline __attribute__((always_inline))

/* SIMD_BUILDS(name, kernel, (parameters), (arguments)) builds an inlined function of plain C, once
 * for each instruction set that the compiler does not use anyway, as it does NEON; name_now() is
 * the build to use. Sums keep their order and nothing is contracted, so the bits are the same. */
#define SIMD_BUILD(target, name, kernel, parameters, arguments)                                    \
    target static void name parameters { kernel arguments; }
#ifdef SIMD_X86
#define SIMD_BUILDS(name, kernel, parameters, arguments)                                           \
    SIMD_BUILD(, name##_portable, kernel, parameters, arguments)                                   \
    SIMD_BUILD(__attribute__((target("avx2"))), name##_avx2, kernel, parameters, arguments)        \
    SIMD_BUILD(__attribute__((target("avx512f,avx512vl,avx512dq"))), name##_avx512, kernel,        \
               parameters, arguments)                                                              \
    static __typeof__(&name##_portable) name##_now(void) {                                         \
        simd_level level = simd_now();                                                             \
        return level == SIMD_AVX512 ? name##_avx512                                                \
               : level == SIMD_AVX2 ? name##_avx2                                                  \
                                    : name##_portable;                                             \
    }
#else
#define SIMD_BUILDS(name, kernel, parameters, arguments)                                           \
    SIMD_BUILD(, name##_portable, kernel, parameters, arguments)                                   \
    static __typeof__(&name##_portable) name##_now(void) { return name##_portable; }
#endif

/* For functions of plain loops: compiled once per instruction set too, and chosen by the loader of
 * glibc, whatever the limit. Sums keep their order and nothing is contracted, so the bits are the
 * same. Sanitizers are not ready when it chooses. */
#if defined(SIMD_X86) && defined(__GLIBC__) && !defined(__clang__) &&                              \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIMD_LOOPS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SIMD_LOOPS
#endif

#endif
