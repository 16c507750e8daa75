/* simd.h - the instruction set for random numbers, products, elementwise functions and fast paths.
 *
 * It is chosen here at run time, so one binary works on all x86-64 machines. Every AArch64
 * processor has NEON; others use plain C. All levels give the same bits.
 */
#ifndef FR_BASE_SIMD_H
#define FR_BASE_SIMD_H

#include <stdint.h> /* defines __GLIBC__ if this is glibc */

/* Special kernels for a processor. FULLRANK_PORTABLE leaves them out, because clang needs minutes
 * to add sanitizers to them; the bits are the same. */
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

/* The highest level that may be used; initially that of the processor. Tests and benchmarks use it
 * to compare levels. Do not change it while another thread computes; an open scorer may keep its
 * level. */
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

/* Functions for SIMD_BUILDS must be inlined, and so must everything they call in their loops. */
#define SIMD_INLINE static inline __attribute__((always_inline))

/* SIMD_BUILDS(name, kernel, (parameters), (arguments)) builds an inlined function of plain C, once
 * for each instruction set that the compiler does not use by default (it does use NEON); name_now()
 * is the build to use. Sums keep their order and nothing is contracted, so the bits are the same.
 */
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

/* For functions of plain loops: they are also compiled once per instruction set, but the loader of
 * glibc chooses, whatever the limit. Sums keep their order and nothing is contracted, so the bits
 * are the same. Not used with sanitizers, which are not ready when the loader chooses. */
#if defined(SIMD_X86) && defined(__GLIBC__) && !defined(__clang__) &&                              \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIMD_LOOPS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SIMD_LOOPS
#endif

#endif
