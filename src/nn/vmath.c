/* vmath.c - elementwise functions whose result depends on the value alone.
 *
 * vmath_kernel.h has the functions. This file has the vectors of each instruction set, the choice
 * among them, and the plain loops over libm for double.
 */
#include "nn/vmath.h"

#include "base/simd.h"

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

void vmath_exp_columns(int rows, int width, double *x, double *total) {
    for (int j = 0; j < width; j++) {
        double largest = -INFINITY;
        for (int i = 0; i < rows; i++) largest = fmax(largest, x[i * width + j]);
        total[j] = 0;
        for (int i = 0; i < rows; i++)
            total[j] += x[i * width + j] = exp(x[i * width + j] - largest);
    }
}

void vmath_gelu_norm(int rows, int width, const double *x, int ldx, const double *add,
                     const double *gain, const double *bias, const double *rho, double *y) {
    for (int k = 0; k < rows; k++, x += ldx, y += width)
        for (int j = 0; j < width; j++)
            y[j] = gelu_of(fma(x[j] + add[k], rho[j] * gain[k], bias[k]));
}

void vmath_gelu_backward(int64_t n, const double *x, const double *dy, double *dx) {
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * gelu_slope(x[i]);
}

#else

typedef void function(int64_t n, const float *x, float *y);
typedef void angle_function(int64_t n, const double *angle, float *y);

typedef struct functions {
    function *exp, *sigmoid, *tanh, *erf, *gelu, *gelu_slopes;
    angle_function *cos, *sin;
    void (*exp_columns)(int rows, int width, float *x, float *total);
    void (*gelu_norm)(int rows, int width, const float *x, int ldx, const float *add,
                      const float *gain, const float *bias, const float *rho, float *y);
} functions;

/* ---- pieces of functions ----
 *
 * Functions of t >= 0 as polynomials in t - i WIDTH about the middles of 16 pieces, column i for
 * piece i: a vector register holds the coefficients of one power. The last piece, which begins at
 * 5.89, is 0. Minimax fits, the rounding of the coefficients included. */
enum { PIECES = 16 };
static const float PIECE_WIDTH = 0x1.ap-2f; /* few bits: i PIECE_WIDTH is exact */

/* Phi(-t), to 7e-9 / t */
static const float tail_pieces[6][PIECES] __attribute__((aligned(64))) = {
    {0.5f, 0.34227946f, 0.2082524f, 0.11146955f, 0.052081276f, 0.021114817f, 0.007394606f,
     0.0022293008f, 0.00057702546f, 0.00012796621f, 2.4275132e-05f, 3.933955e-06f, 5.440565e-07f,
     6.415569e-08f, 6.4461263e-09f, 0},
    {-0.39894226f, -0.36734337f, -0.28678668f, -0.18983229f, -0.106538266f, -0.050695058f,
     -0.020452673f, -0.0069961464f, -0.0020290473f, -0.000498942f, -0.00010402383f, -1.838827e-05f,
     -2.7559718e-06f, -3.502154e-07f, -3.7733184e-08f, 0},
    {-1.038649e-06f, 0.0746142f, 0.1165045f, 0.115677565f, 0.086563714f, 0.051488582f, 0.024927294f,
     0.009947659f, 0.003297021f, 0.0009119838f, 0.00021122917f, 4.1062518e-05f, 6.7114156e-06f,
     9.2347966e-07f, 1.07083686e-07f, 0},
    {0.066508956f, 0.05111231f, 0.016243143f, -0.015354795f, -0.029131949f, -0.026412454f,
     -0.01684446f, -0.008263779f, -0.0032338782f, -0.0010284862f, -0.00026876724f, -5.812121e-05f,
     -1.0451503e-05f, -1.5682751e-06f, -1.9687319e-07f, 0},
    {-0.00013746785f, -0.017461335f, -0.022545459f, -0.014533844f, -0.0026684364f, 0.004744861f,
     0.0060710213f, 0.0042160503f, 0.002089716f, 0.00079748f, 0.00024223534f, 5.9623555e-05f,
     1.2023679e-05f, 2.001092e-06f, 2.7627107e-07f, 0},
    {-0.009584849f, -0.0060727596f, 0.001260497f, 0.005800022f, 0.0052096597f, 0.002019837f,
     -0.00043449766f, -0.0011475275f, -0.00086332875f, -0.00042353486f, -0.00015444358f,
     -4.395835e-05f, -1.0010996e-05f, -1.8507278e-06f, -2.8038778e-07f, 0},
};
/* Phi(-t) - t phi(t), the slope of GELU at -t, to 5e-9 */
static const float slope_pieces[7][PIECES] __attribute__((aligned(64))) = {
    {0.5f, 0.19304618f, -0.024761774f, -0.11988855f, -0.12104341f, -0.08185952f, -0.042458784f,
     -0.017665995f, -0.0060173813f, -0.001696291f, -0.00039832137f, -7.8238336e-05f,
     -1.2891178e-05f, -1.7853818e-06f, -2.0815305e-07f, 0},
    {-0.7978846f, -0.6740609f, -0.38424936f, -0.097696885f, 0.06825107f, 0.10777651f, 0.080612294f,
     0.042584952f, 0.017373722f, 0.0056720534f, 0.0015087498f, 0.000330431f, 5.9985003e-05f,
     9.067513e-06f, 1.1450865e-06f, 0},
    {1.7666305e-06f, 0.28615353f, 0.38911536f, 0.29089278f, 0.11767076f, -0.0064856564f,
     -0.04839327f, -0.040655117f, -0.021637859f, -0.008544969f, -0.0026420518f, -0.00065613363f,
     -0.00013277787f, -2.2094266e-05f, -3.0417184e-06f, 0},
    {0.26591593f, 0.17583303f, -0.008848699f, -0.13259935f, -0.13337572f, -0.06639664f,
     -0.007805455f, 0.014913166f, 0.014078461f, 0.0074122697f, 0.0027888073f, 0.00080597703f,
     0.00018481568f, 3.423015e-05f, 5.1776556e-06f, 0},
    {0.00053586497f, -0.100891806f, -0.10848195f, -0.037312135f, 0.029380944f, 0.044433553f,
     0.025063401f, 0.004603683f, -0.0036776825f, -0.0037747265f, -0.0019165099f, -0.0006749451f,
     -0.00017989706f, -3.7685022e-05f, -6.332295e-06f, 0},
    {-0.06297949f, -0.030514998f, 0.021080924f, 0.04034447f, 0.02084026f, -0.00394969f,
     -0.0118435435f, -0.0071734646f, -0.0014900713f, 0.0007820169f, 0.0008293076f, 0.0003981088f,
     0.00012996083f, 3.1792286e-05f, 6.0735915e-06f, 0},
    {0.008850377f, 0.02212161f, 0.017093882f, -0.0013264358f, -0.011509392f, -0.0068225525f,
     -8.232886e-05f, 0.002797881f, 0.0016809816f, 0.00032601928f, -0.00016058616f, -0.00015533628f,
     -6.785074e-05f, -2.002705e-05f, -4.4084745e-06f, 0},
};

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
static inline floats_4 lookup_4(const float *table, ints_4 i) {
    i &= PIECES - 1;
    return (floats_4){table[i[0]], table[i[1]], table[i[2]], table[i[3]]};
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
#define lookup(table, i)             lookup_4(table, i)
#include "nn/vmath_kernel.h"

#ifdef SIMD_X86
#include <immintrin.h>

/* ---- AVX2 ---- */

typedef int32_t ints_8 __attribute__((vector_size(32)));
typedef int64_t longs_4 __attribute__((vector_size(32)));

static inline __attribute__((always_inline, target("avx2,fma"))) __m256 scale_8(__m256 x,
                                                                                __m256 n) {
    ints_8 all = (ints_8)_mm256_cvtps_epi32(n), half = all >> 1;
    return x * (__m256)((half + 127) << 23) * (__m256)((all - half + 127) << 23);
}
static inline __attribute__((always_inline, target("avx2,fma"))) __m256 lookup_8(const float *table,
                                                                                 ints_8 i) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), (__m256i)i);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), (__m256i)i);
    return _mm256_blendv_ps(low, high, (__m256)(i << 28)); /* by bit 3 */
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
#define lookup(table, i)             lookup_8(table, i)
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
#define lookup(table, i)             _mm512_permutexvar_ps((__m512i)(i), _mm512_load_ps(table))
#include "nn/vmath_kernel.h"
#endif

#ifdef SIMD_ARM
#include <arm_neon.h>

/* ---- NEON ---- */

static inline float32x4_t scale_neon(float32x4_t x, float32x4_t n) {
    ints_4 all = (ints_4)vcvtnq_s32_f32(n), half = all >> 1;
    return x * (float32x4_t)((half + 127) << 23) * (float32x4_t)((all - half + 127) << 23);
}
/* The four bytes of number i mod 16. */
static inline float32x4_t lookup_neon(const float *table, ints_4 i) {
    ints_4 bytes = (i & (PIECES - 1)) * 0x04040404 + 0x03020100;
    uint8x16x4_t all = {
        {vreinterpretq_u8_f32(vld1q_f32(table)), vreinterpretq_u8_f32(vld1q_f32(table + 4)),
         vreinterpretq_u8_f32(vld1q_f32(table + 8)), vreinterpretq_u8_f32(vld1q_f32(table + 12))}};
    return vreinterpretq_f32_u8(vqtbl4q_u8(all, (uint8x16_t)bytes));
}
#define KERNEL(name) name##_neon
#define TARGET
#define LANES                        4
#define FLOATS                       float32x4_t
#define INTS                         ints_4
#define DOUBLES                      float64x2_t
#define LONGS                        longs_2
#define HALF_FLOATS                  float32x2_t
#define multiply_add(a, b, c)        vfmaq_f32(c, a, b)
#define multiply_add_double(a, b, c) vfmaq_f64(c, a, b)
#define least(a, b)                  vbslq_f32(vcltq_f32(a, b), a, b)
#define most(a, b)                   vbslq_f32(vcgtq_f32(a, b), a, b)
#define choose(a, b, yes, no)        vbslq_f32(vcltq_f32(a, b), yes, no)
#define scale(x, n)                  scale_neon(x, n)
#define lookup(table, i)             lookup_neon(table, i)
#include "nn/vmath_kernel.h"
#endif

static const functions *functions_now(void) {
    switch (simd_now()) {
#ifdef SIMD_X86
    case SIMD_AVX512: return &functions_avx512;
    case SIMD_AVX2: return &functions_avx2;
#elif defined(SIMD_ARM)
    case SIMD_NEON: return &functions_neon;
#endif
    default: return &functions_portable;
    }
}

void vmath_exp(int64_t n, const float *x, float *y) { functions_now()->exp(n, x, y); }
void vmath_exp_columns(int rows, int width, float *x, float *total) {
    functions_now()->exp_columns(rows, width, x, total);
}
void vmath_sigmoid(int64_t n, const float *x, float *y) { functions_now()->sigmoid(n, x, y); }
void vmath_tanh(int64_t n, const float *x, float *y) { functions_now()->tanh(n, x, y); }
void vmath_erf(int64_t n, const float *x, float *y) { functions_now()->erf(n, x, y); }
void vmath_gelu(int64_t n, const float *x, float *y) { functions_now()->gelu(n, x, y); }
void vmath_gelu_norm(int rows, int width, const float *x, int ldx, const float *add,
                     const float *gain, const float *bias, const float *rho, float *y) {
    functions_now()->gelu_norm(rows, width, x, ldx, add, gain, bias, rho, y);
}
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
