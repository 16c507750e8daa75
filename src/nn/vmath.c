/* vmath.c - elementwise functions whose result depends on the value alone.
 *
 * vmath_kernel.h holds the functions; here are the vectors of each instruction set, the choice
 * among them, and the plain loops over libm for double.
 */
#include "nn/vmath.h"

#include "nn/simd.h"

#include <string.h>

#ifdef FR_DOUBLE

static double gelu_of(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double gelu_slope(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}
static double sigmoid_of(double x) {
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

#define EACH(name, of)                                                                             \
    void vmath_##name(int64_t n, const double *x, double *y) {                                     \
        for (int64_t i = 0; i < n; i++) y[i] = of(x[i]);                                           \
    }
EACH(exp, exp)
EACH(sigmoid, sigmoid_of)
EACH(tanh, tanh)
EACH(erf, erf)
EACH(gelu, gelu_of)
EACH(cos, cos)
EACH(sin, sin)

void vmath_gelu_backward(int64_t n, const double *x, const double *dy, double *dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * gelu_slope(x[i]);
}

#else

typedef void function(int64_t n, const float *x, float *y);
typedef void angle_function(int64_t n, const double *angle, float *y);

typedef struct functions {
    function *exp, *sigmoid, *tanh, *erf, *gelu, *gelu_slopes;
    angle_function *cos, *sin;
} functions;

/* ---- any processor ---- */

typedef float floats_4 __attribute__((vector_size(16)));
typedef int32_t ints_4 __attribute__((vector_size(16)));
typedef double doubles_2 __attribute__((vector_size(16)));
typedef int64_t longs_2 __attribute__((vector_size(16)));
typedef float floats_2 __attribute__((vector_size(8)));

static inline floats_4 multiply_add_4(floats_4 a, floats_4 b, floats_4 c) {
    return (floats_4){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
                      fmaf(a[3], b[3], c[3])};
}
static inline doubles_2 multiply_add_2(doubles_2 a, doubles_2 b, doubles_2 c) {
    return (doubles_2){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
}
static inline floats_4 choose_4(floats_4 a, floats_4 b, floats_4 yes, floats_4 no) {
    ints_4 below = a < b;
    return (floats_4)((below & (ints_4)yes) | (~below & (ints_4)no));
}
/* In two steps, as 2^n alone may not be a float; the first is exact. */
static inline floats_4 scale_4(floats_4 x, floats_4 n) {
    ints_4 all = __builtin_convertvector(choose_4(n, n + 1, n, (floats_4){0}), ints_4);
    ints_4 half = all >> 1;
    return x * (floats_4)((half + 127) << 23) * (floats_4)((all - half + 127) << 23);
}
#define KERNEL(name) name##_portable
#define TARGET
#define LANES                        4
#define FLOATS                       floats_4
#define INTS                         ints_4
#define DOUBLES                      doubles_2
#define LONGS                        longs_2
#define HALF_FLOATS                  floats_2
#define multiply_add(a, b, c)        multiply_add_4(a, b, c)
#define multiply_add_double(a, b, c) multiply_add_2(a, b, c)
#define least(a, b)                  choose_4(a, b, a, b)
#define most(a, b)                   choose_4(b, a, a, b)
#define choose(a, b, yes, no)        choose_4(a, b, yes, no)
#define scale(x, n)                  scale_4(x, n)
#include "nn/vmath_kernel.h"

#ifdef __x86_64__
#include <immintrin.h>

/* ---- AVX2 ---- */

typedef int32_t ints_8 __attribute__((vector_size(32)));
typedef int64_t longs_4 __attribute__((vector_size(32)));

static inline __attribute__((always_inline, target("avx2,fma"))) __m256 scale_8(__m256 x,
                                                                                __m256 n) {
    ints_8 all = (ints_8)_mm256_cvtps_epi32(n), half = all >> 1;
    return x * (__m256)((half + 127) << 23) * (__m256)((all - half + 127) << 23);
}
#define KERNEL(name)                 name##_avx2
#define TARGET                       __attribute__((target("avx2,fma")))
#define LANES                        8
#define FLOATS                       __m256
#define INTS                         ints_8
#define DOUBLES                      __m256d
#define LONGS                        longs_4
#define HALF_FLOATS                  __m128
#define multiply_add(a, b, c)        _mm256_fmadd_ps(a, b, c)
#define multiply_add_double(a, b, c) _mm256_fmadd_pd(a, b, c)
#define least(a, b)                  _mm256_min_ps(a, b)
#define most(a, b)                   _mm256_max_ps(a, b)
#define choose(a, b, yes, no)        _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ))
#define scale(x, n)                  scale_8(x, n)
#include "nn/vmath_kernel.h"

/* ---- AVX-512 ---- */

typedef int32_t ints_16 __attribute__((vector_size(64)));
typedef int64_t longs_8 __attribute__((vector_size(64)));

static inline __attribute__((always_inline, target("avx512f,avx512vl,avx512dq"))) __m512
choose_16(__m512 a, __m512 b, __m512 yes, __m512 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

#define KERNEL(name)                 name##_avx512
#define TARGET                       __attribute__((target("avx512f,avx512vl,avx512dq")))
#define LANES                        16
#define FLOATS                       __m512
#define INTS                         ints_16
#define DOUBLES                      __m512d
#define LONGS                        longs_8
#define HALF_FLOATS                  __m256
#define multiply_add(a, b, c)        _mm512_fmadd_ps(a, b, c)
#define multiply_add_double(a, b, c) _mm512_fmadd_pd(a, b, c)
#define least(a, b)                  _mm512_min_ps(a, b)
#define most(a, b)                   _mm512_max_ps(a, b)
#define choose(a, b, yes, no)        choose_16(a, b, yes, no)
#define scale(x, n)                  _mm512_scalef_ps(x, n)
#include "nn/vmath_kernel.h"
#endif

simd_level vmath_limit = SIMD_AVX512;

static const functions *functions_now(void) {
#ifdef __x86_64__
    simd_level level = simd_within(vmath_limit);
    if (level == SIMD_AVX512) return &functions_avx512;
    if (level == SIMD_AVX2) return &functions_avx2;
#endif
    return &functions_portable;
}

void vmath_exp(int64_t n, const float *x, float *y) { functions_now()->exp(n, x, y); }
void vmath_sigmoid(int64_t n, const float *x, float *y) { functions_now()->sigmoid(n, x, y); }
void vmath_tanh(int64_t n, const float *x, float *y) { functions_now()->tanh(n, x, y); }
void vmath_erf(int64_t n, const float *x, float *y) { functions_now()->erf(n, x, y); }
void vmath_gelu(int64_t n, const float *x, float *y) { functions_now()->gelu(n, x, y); }
void vmath_cos(int64_t n, const double *angle, float *y) { functions_now()->cos(n, angle, y); }
void vmath_sin(int64_t n, const double *angle, float *y) { functions_now()->sin(n, angle, y); }

/* In pieces: the slopes of one stay in the nearest cache until dy meets them. */
void vmath_gelu_backward(int64_t n, const float *x, const float *dy, float *dx) {
    enum { PIECE = 512 };
    float slope[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t count = n - i < PIECE ? n - i : PIECE;
        functions_now()->gelu_slopes(count, x + i, slope);
        for (int64_t j = 0; j < count; j++) dx[i + j] = dy[i + j] * slope[j];
    }
}

#endif
