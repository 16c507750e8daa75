/* gemm.c - matrix products whose every element is one chain of fused multiply-adds.
 *
 * C is cut into panels two vectors wide, panels into tiles that fit into registers
 * (gemm_kernel.h). k is cut into blocks; between blocks the sums stay in C, which keeps their bits,
 * so the chain of an element is the same as in three plain loops. Vectors run along n: a lane is a
 * whole element.
 *
 * Factors are read where they are. Only a block of B that is stored (n, k), or that ends within a
 * panel, is first copied to a buffer on the stack (at most 32 KB) as (k, panel). Columns past the
 * end repeat the last one, and their results are not stored.
 */
#include "nn/gemm.h"

#include "base/simd.h"

#include <stddef.h>
#include <string.h>

/* A matrix as a factor: row-major as stored, or its transpose. */
typedef struct factor {
    const real *at;
    ptrdiff_t ld;
    bool turned; /* A: stored (k, m); B: stored (n, k) */
} factor;

/* What the sums begin with: zero, a number per element, one per row (spread over it) or one per
 * column (ld = 0). */
typedef struct begin {
    const real *at; /* NULL = zero */
    ptrdiff_t ld;
    bool spread;
} begin;

#ifdef FR_DOUBLE

static void product(int m, int n, int k, factor a, factor b, begin from, real *c, ptrdiff_t ldc) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            real sum = from.at ? from.at[i * from.ld + (from.spread ? 0 : j)] : 0;
            for (int p = 0; p < k; p++)
                sum = real_fma(a.at[a.turned ? p * a.ld + i : i * a.ld + p],
                               b.at[b.turned ? j * b.ld + p : p * b.ld + j], sum);
            c[i * ldc + j] = sum;
        }
    }
}

void gemm_turn(int n, int k, const real *b, int ldb, real *to, int ldt) {
    for (int p = 0; p < k; p++)
        for (int j = 0; j < (n + 15) / 16 * 16; j++)
            to[p * ldt + j] = b[(j < n ? j : n - 1) * ldb + p];
}

#else

enum {
    BLOCK = 256, /* of k */
    WIDEST = 32, /* columns of the widest panel */
    THIN = 4,    /* rows of A that are too few to turn B for them in memory */
};

/* C[m, n] = from + A B for one panel: n at most 2 vectors. lda, ldb, ldc as stored. B is readable
 * in whole vectors. */
typedef void panel_function(int m, int n, int k, const float *a, ptrdiff_t lda, const float *b,
                            ptrdiff_t ldb, float *c, ptrdiff_t ldc, begin from);

typedef struct kernel {
    int width;                   /* floats of a vector */
    panel_function *panel[2][3]; /* [A stored (k, m)][up to one vector, up to two, exactly two] */
    panel_function *thin[2][2];  /* the same for m <= THIN and B stored (n, k), anywhere */
    /* to[k, n] = the transpose of B[0..n-1, k], rows `width` apart; up to whole vectors the last
     * row again */
    void (*turn)(int n, int k, const float *b, ptrdiff_t ldb, float *to, int width);
} kernel;

static inline int least(int x, int y) { return x < y ? x : y; }

/* ---- instruction sets ---- */

static inline void portable_panel(int m, int n, int k, const float *a, ptrdiff_t a_row,
                                  ptrdiff_t a_column, const float *b, ptrdiff_t ldb, float *c,
                                  ptrdiff_t ldc, begin from) {
    bool set = from.at != c; /* else C holds it already */
    for (int i = 0; i < m; i++) {
        float *restrict to = c + i * ldc;
        for (int j = 0; set && j < n; j++)
            to[j] = from.at ? from.at[i * from.ld + (from.spread ? 0 : j)] : 0;
        for (int p = 0; p < k; p++) {
            float left = a[i * a_row + p * a_column];
            for (int j = 0; j < n; j++) to[j] = fmaf(left, b[p * ldb + j], to[j]);
        }
    }
}
static void portable_row(int m, int n, int k, const float *a, ptrdiff_t lda, const float *b,
                         ptrdiff_t ldb, float *c, ptrdiff_t ldc, begin from) {
    portable_panel(m, n, k, a, lda, 1, b, ldb, c, ldc, from);
}
static void portable_column(int m, int n, int k, const float *a, ptrdiff_t lda, const float *b,
                            ptrdiff_t ldb, float *c, ptrdiff_t ldc, begin from) {
    portable_panel(m, n, k, a, 1, lda, b, ldb, c, ldc, from);
}
static void portable_turn(int n, int k, const float *b, ptrdiff_t ldb, float *to, int width) {
    for (int j = 0; j < (n + 15) / 16 * 16; j++)
        for (int p = 0; p < k; p++) to[p * width + j] = b[least(j, n - 1) * ldb + p];
}
static const kernel portable_kernel = {
    .width = 16,
    .panel = {{portable_row, portable_row, portable_row},
              {portable_column, portable_column, portable_column}},
    .turn = portable_turn};

/* Heights of tiles. */
#define ROW_CASES_6(v, p, c)                                                                       \
    ROW_CASE(1, v, p, c);                                                                          \
    ROW_CASE(2, v, p, c);                                                                          \
    ROW_CASE(3, v, p, c);                                                                          \
    ROW_CASE(4, v, p, c);                                                                          \
    ROW_CASE(5, v, p, c);                                                                          \
    ROW_CASE(6, v, p, c);
#define ROW_CASES_12(v, p, c)                                                                      \
    ROW_CASES_6(v, p, c)                                                                           \
    ROW_CASE(7, v, p, c);                                                                          \
    ROW_CASE(8, v, p, c);                                                                          \
    ROW_CASE(9, v, p, c);                                                                          \
    ROW_CASE(10, v, p, c);                                                                         \
    ROW_CASE(11, v, p, c);                                                                         \
    ROW_CASE(12, v, p, c);

#ifdef SIMD_X86
#include <immintrin.h>

/* Lane l of out[r] first holds four numbers of row 4 l + r; then each lane is turned by itself. */
static inline __attribute__((always_inline, target("avx512f,avx512vl,avx512dq"))) void
turn_four_16(const float *const *row, int p, __m512 out[4]) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(row[r] + p));
        __m256 high = _mm256_castps128_ps256(_mm_loadu_ps(row[8 + r] + p));
        low = _mm256_insertf128_ps(low, _mm_loadu_ps(row[4 + r] + p), 1);
        high = _mm256_insertf128_ps(high, _mm_loadu_ps(row[12 + r] + p), 1);
        out[r] = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    }
    __m512 low01 = _mm512_unpacklo_ps(out[0], out[1]), high01 = _mm512_unpackhi_ps(out[0], out[1]);
    __m512 low23 = _mm512_unpacklo_ps(out[2], out[3]), high23 = _mm512_unpackhi_ps(out[2], out[3]);
    out[0] = _mm512_shuffle_ps(low01, low23, 0x44);
    out[1] = _mm512_shuffle_ps(low01, low23, 0xee);
    out[2] = _mm512_shuffle_ps(high01, high23, 0x44);
    out[3] = _mm512_shuffle_ps(high01, high23, 0xee);
}
#define turn_four(row, p, out)  turn_four_16(row, p, out)
#define KERNEL(name)            name##_avx512
#define TARGET                  __attribute__((target("avx512f,avx512vl,avx512dq")))
#define VEC                     __m512
#define WIDTH                   16
#define ROWS                    12
#define MASK                    __mmask16
#define mask_of(n)              ((__mmask16)((1u << (n)) - 1))
#define zero()                  _mm512_setzero_ps()
#define load(p)                 _mm512_loadu_ps(p)
#define store(p, v)             _mm512_storeu_ps(p, v)
#define load_part(p, mask)      _mm512_maskz_loadu_ps(mask, p)
#define store_part(p, mask, v)  _mm512_mask_storeu_ps(p, mask, v)
#define spread(p)               _mm512_set1_ps(*(p))
#define multiply_add(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#define keep(v)                 __asm__("" : "+v"(v))
#define ROW_CASES               ROW_CASES_12
#include "nn/gemm_kernel.h"

/* All bits of the first n of 8 numbers. */
static inline __attribute__((always_inline, target("avx2,fma"))) __m256i first_of_8(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline __attribute__((always_inline, target("avx2,fma"))) void
turn_four_8(const float *const *row, int p, __m256 out[4]) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        out[r] = _mm256_castps128_ps256(_mm_loadu_ps(row[r] + p));
        out[r] = _mm256_insertf128_ps(out[r], _mm_loadu_ps(row[4 + r] + p), 1);
    }
    __m256 low01 = _mm256_unpacklo_ps(out[0], out[1]), high01 = _mm256_unpackhi_ps(out[0], out[1]);
    __m256 low23 = _mm256_unpacklo_ps(out[2], out[3]), high23 = _mm256_unpackhi_ps(out[2], out[3]);
    out[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    out[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    out[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    out[3] = _mm256_shuffle_ps(high01, high23, 0xee);
}
#define turn_four(row, p, out)  turn_four_8(row, p, out)
#define KERNEL(name)            name##_avx2
#define TARGET                  __attribute__((target("avx2,fma")))
#define VEC                     __m256
#define WIDTH                   8
#define ROWS                    6
#define MASK                    __m256i
#define mask_of(n)              first_of_8(n)
#define zero()                  _mm256_setzero_ps()
#define load(p)                 _mm256_loadu_ps(p)
#define store(p, v)             _mm256_storeu_ps(p, v)
#define load_part(p, mask)      _mm256_maskload_ps(p, mask)
#define store_part(p, mask, v)  _mm256_maskstore_ps(p, mask, v)
#define spread(p)               _mm256_broadcast_ss(p)
#define multiply_add(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#define keep(v)                 __asm__("" : "+v"(v))
#define ROW_CASES               ROW_CASES_6
#include "nn/gemm_kernel.h"
#endif

#ifdef SIMD_ARM
#include <arm_neon.h>

/* The first n of 4 numbers, zeros after them; nothing else is read or written. */
static inline float32x4_t load_some_4(const float *from, int n) {
    float part[4] = {0};
    memcpy(part, from, (size_t)n * sizeof *part);
    return vld1q_f32(part);
}
static inline void store_some_4(float *to, int n, float32x4_t v) {
    float part[4];
    vst1q_f32(part, v);
    memcpy(to, part, (size_t)n * sizeof *part);
}
static inline __attribute__((always_inline)) void turn_four_4(const float *const *row, int p,
                                                              float32x4_t out[4]) {
    float32x4_t a = vld1q_f32(row[0] + p), b = vld1q_f32(row[1] + p);
    float32x4_t c = vld1q_f32(row[2] + p), d = vld1q_f32(row[3] + p);
    float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), /* a0 b0 a2 b2 */
        odd01 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));          /* a1 b1 a3 b3 */
    float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(c, d)),
                odd23 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
    out[0] = vreinterpretq_f32_f64(vtrn1q_f64(even01, even23));
    out[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23));
    out[2] = vreinterpretq_f32_f64(vtrn2q_f64(even01, even23));
    out[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23));
}
#define turn_four(row, p, out) turn_four_4(row, p, out)
#define KERNEL(name)           name##_neon
#define TARGET
#define VEC                     float32x4_t
#define WIDTH                   4
#define ROWS                    12
#define MASK                    int
#define mask_of(n)              (n)
#define zero()                  vdupq_n_f32(0)
#define load(p)                 vld1q_f32(p)
#define store(p, v)             vst1q_f32(p, v)
#define load_part(p, mask)      load_some_4(p, mask)
#define store_part(p, mask, v)  store_some_4(p, mask, v)
#define spread(p)               vld1q_dup_f32(p)
#define multiply_add(a, b, sum) vfmaq_f32(sum, a, b)
#define keep(v)                 __asm__("" : "+w"(v))
#define ROW_CASES               ROW_CASES_12
#include "nn/gemm_kernel.h"
#endif

static const kernel *kernel_now(void) {
    switch (simd_now()) {
#ifdef SIMD_X86
    case SIMD_AVX512: return &kernel_avx512;
    case SIMD_AVX2: return &kernel_avx2;
#elif defined(SIMD_ARM)
    case SIMD_NEON: return &kernel_neon;
#endif
    default: return &portable_kernel;
    }
}

/* ---- panels of B ---- */

/* to[k, width] = B[k, 0..n-1] stored (k, n), n < width; past the end the last column again. */
static void copy_panel(int n, int k, const float *b, ptrdiff_t ldb, float *to, int width) {
    for (int p = 0; p < k; p++, b += ldb, to += width) {
        memcpy(to, b, (size_t)n * sizeof *to);
        for (int j = n; j < width; j++) to[j] = b[n - 1];
    }
}

static void product(int m, int n, int k, factor a, factor b, begin from, real *c, ptrdiff_t ldc) {
    if (m <= 0 || n <= 0) return;
    if (k <= 0) {
        portable_panel(m, n, 0, a.at, 0, 0, b.at, 0, c, ldc, from);
        return;
    }
    const kernel *set = kernel_now();
    float buffer[BLOCK * WIDEST] __attribute__((aligned(64)));
    for (int p = 0; p < k; p += BLOCK) {
        int depth = least(k - p, BLOCK);
        const float *a_block = a.at + (a.turned ? p * a.ld : p);
        for (int j = 0; j < n; j += 2 * set->width) {
            int columns = least(n - j, 2 * set->width);
            int vectors = columns > set->width ? 2 : 1, width = vectors * set->width;
            const float *right = b.at + (b.turned ? j * b.ld + p : p * b.ld + j);
            ptrdiff_t ldb = b.ld;
            panel_function *run = set->panel[a.turned][columns == 2 * set->width ? 2 : vectors - 1];
            if (b.turned && m <= THIN && set->thin[a.turned][vectors - 1]) {
                run = set->thin[a.turned][vectors - 1];
            } else if (b.turned || columns < width) {
                (b.turned ? set->turn : copy_panel)(columns, depth, right, ldb, buffer, width);
                right = buffer;
                ldb = width;
            }
            begin here = from;
            if (here.at && !here.spread) here.at += j;
            run(m, columns, depth, a_block, a.ld, right, ldb, c + j, ldc, here);
        }
        from = (begin){c, ldc, false};
    }
}

void gemm_turn(int n, int k, const real *b, int ldb, real *to, int ldt) {
    kernel_now()->turn(n, k, b, ldb, to, ldt);
}

#endif

/* A single column of C is as well a single row of C^T, where vectors are full. */
static void product_either_way(int m, int n, int k, factor a, factor b, begin from, real *c,
                               int ldc) {
    if (n == 1 && ldc == 1) {
        factor left = {b.at, b.ld, !b.turned}, right = {a.at, a.ld, !a.turned};
        product(1, m, k, left, right, (begin){from.at, 0, from.ld == 0}, c, m);
    } else {
        product(m, n, k, a, b, from, c, ldc);
    }
}

static begin zero_or(const real *c, int ldc, bool accumulate) {
    return (begin){accumulate ? c : NULL, ldc, false};
}

void gemm_nn(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate) {
    product_either_way(m, n, k, (factor){a, lda, false}, (factor){b, ldb, false},
                       zero_or(c, ldc, accumulate), c, ldc);
}

void gemm_nn_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *bias, real *c, int ldc) {
    product_either_way(m, n, k, (factor){a, lda, false}, (factor){b, ldb, false},
                       (begin){bias, 0, false}, c, ldc);
}

void gemm_nt(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate) {
    product_either_way(m, n, k, (factor){a, lda, false}, (factor){b, ldb, true},
                       zero_or(c, ldc, accumulate), c, ldc);
}

void gemm_nt_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *bias, real *c, int ldc) {
    product_either_way(m, n, k, (factor){a, lda, false}, (factor){b, ldb, true},
                       (begin){bias, 0, false}, c, ldc);
}

void gemm_tn(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate) {
    product_either_way(m, n, k, (factor){a, lda, true}, (factor){b, ldb, false},
                       zero_or(c, ldc, accumulate), c, ldc);
}

void gemm_tn_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *s, int lds, real *c, int ldc) {
    product(m, n, k, (factor){a, lda, true}, (factor){b, ldb, false}, (begin){s, lds, false}, c,
            ldc);
}

void gemm_linear(int rows, int out, int in, const real *x, const real *weight, const real *bias,
                 real *y) {
    gemm_nt_from(rows, out, in, x, in, weight, in, bias, y, out);
}

void gemm_linear_columns(int out, int width, int in, const real *weight, const real *bias,
                         const real *x, real *y) {
    product_either_way(out, width, in, (factor){weight, in, false}, (factor){x, width, false},
                       (begin){bias, 1, true}, y, width);
}
