/* bench_gemm.c - our products on the shapes of the models, against OpenBLAS and libxsmm.
 *
 *     bench_gemm [ROUNDS]          standard: 20
 *
 * Prints GFLOP/s of one thread, best of ROUNDS short turns, with alternating libraries; and the
 * peak: fused multiply-adds on registers only. OpenBLAS and libxsmm take part if they were found
 * when configuring. libxsmm only does plain products, which its generated kernels do without
 * copying; its kernel is dispatched in advance. Then elementwise functions, in G elements/s.
 */
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/vmath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif
#ifdef HAVE_LIBXSMM
#include <libxsmm.h>
#endif

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One shape; numbers of rows as stored follow from the form. */
typedef struct shape {
    const char *what;
    char form[3]; /* nn, nt, tn */
    int m, n, k, lda, ldb, ldc;
} shape;

static const shape shapes[] = {
    {"K, V projection, training", "nt", 2000, 64, 64, 64, 64, 64},
    {"its input gradient", "nn", 2000, 64, 64, 64, 64, 64},
    {"its weight gradient", "tn", 64, 64, 4000, 64, 64, 64},
    {"FFN 1, training", "nt", 200, 256, 64, 64, 64, 256},
    {"FFN 2, training", "nt", 200, 64, 256, 256, 256, 64},
    {"FFN 1 input gradient", "nn", 200, 64, 256, 256, 64, 64},
    {"FFN 2 input gradient", "nn", 200, 256, 64, 64, 256, 256},
    {"FFN 1 weight gradient", "tn", 256, 64, 200, 256, 64, 64},
    {"head 128", "nt", 200, 128, 128, 128, 128, 128},
    {"head 192", "nt", 200, 192, 192, 192, 192, 192},
    {"logits, 2 queries, 320", "nt", 2, 320, 32, 64, 64, 320},
    {"logits, 2 queries, 33", "nt", 2, 33, 32, 64, 64, 33},
    {"value mix, 2 queries, 320", "nn", 2, 32, 320, 320, 64, 64},
    {"value mix, 2 queries, 33", "nn", 2, 32, 33, 33, 64, 64},
    {"value gradient, 320", "tn", 320, 32, 2, 320, 64, 64},
    {"value gradient, 33", "tn", 33, 32, 2, 33, 64, 64},
    {"rank: query", "nt", 128, 64, 64, 64, 64, 64},
    {"rank: FFN 1", "nt", 128, 256, 64, 64, 64, 256},
    {"rank: FFN 2", "nt", 128, 64, 256, 256, 256, 64},
    {"rank: head", "nt", 128, 192, 64, 64, 64, 192},
    {"rank: logits, 59", "nt", 128, 59, 32, 64, 64, 59},
    {"rank: logits, 320", "nt", 128, 320, 32, 64, 64, 320},
    {"rank: value mix, 59", "nn", 128, 32, 59, 59, 64, 64},
    {"rank: value mix, 320", "nn", 128, 32, 320, 320, 64, 64},
    {"rank: last layer", "nt", 128, 1, 192, 192, 192, 1},
    {"square 512", "nn", 512, 512, 512, 512, 512, 512},
};

static float *a, *b, *c;
enum { ROOM = 1 << 20 };

static void ours(const shape *s) {
    if (!strcmp(s->form, "nn"))
        gemm_nn(s->m, s->n, s->k, a, s->lda, b, s->ldb, c, s->ldc, false);
    else if (!strcmp(s->form, "nt"))
        gemm_nt(s->m, s->n, s->k, a, s->lda, b, s->ldb, c, s->ldc, false);
    else
        gemm_tn(s->m, s->n, s->k, a, s->lda, b, s->ldb, c, s->ldc, false);
}
static void ours_avx2(const shape *s) {
    simd_limit = SIMD_AVX2;
    ours(s);
    simd_limit = SIMD_LEVELS;
}

#ifdef HAVE_OPENBLAS
static void openblas(const shape *s) {
    cblas_sgemm(CblasRowMajor, s->form[0] == 't' ? CblasTrans : CblasNoTrans,
                s->form[1] == 't' ? CblasTrans : CblasNoTrans, s->m, s->n, s->k, 1, a, s->lda, b,
                s->ldb, 0, c, s->ldc);
}
#endif

#ifdef HAVE_LIBXSMM
static libxsmm_smmfunction xsmm_kernel;
static void xsmm(const shape *s) {
    (void)s;
    xsmm_kernel(b, a, c);
}
static void xsmm_dispatch(const shape *s) {
    float one = 1, none = 0;
    int flags = LIBXSMM_GEMM_FLAG_NONE;
    xsmm_kernel = strcmp(s->form, "nn") ? NULL
                                        : libxsmm_smmdispatch(s->n, s->m, s->k, &s->ldb, &s->lda,
                                                              &s->ldc, &one, &none, &flags, NULL);
}
#endif

/* Seconds of one call. */
static double seconds(void (*run)(const shape *), const shape *s, int calls) {
    run(s);
    double start = now();
    for (int i = 0; i < calls; i++) run(s);
    return (now() - start) / calls;
}

/* ---- the peak ---- */

#ifdef __x86_64__
#include <immintrin.h>
static volatile float kept; /* so that the work is not left out */
/* Twelve chains hide the latency of any current processor. Returns GFLOP/s. */
__attribute__((target("avx512f"))) static double peak_avx512(void) {
    __m512 x[12], y = _mm512_set1_ps(0.5f), sum = y;
    for (int i = 0; i < 12; i++) x[i] = _mm512_set1_ps((float)i);
    double start = now();
    enum { TURNS = 100000 };
    for (int t = 0; t < TURNS; t++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            x[i] = _mm512_fmadd_ps(x[i], y, y);
        }
    }
    double taken = now() - start;
    for (int i = 0; i < 12; i++) sum += x[i];
    kept = sum[0];
    return 12.0 * 32 * TURNS / taken * 1e-9;
}
__attribute__((target("avx2,fma"))) static double peak_avx2(void) {
    __m256 x[12], y = _mm256_set1_ps(0.5f), sum = y;
    for (int i = 0; i < 12; i++) x[i] = _mm256_set1_ps((float)i);
    double start = now();
    enum { TURNS = 100000 };
    for (int t = 0; t < TURNS; t++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            x[i] = _mm256_fmadd_ps(x[i], y, y);
        }
    }
    double taken = now() - start;
    for (int i = 0; i < 12; i++) sum += x[i];
    kept = sum[0];
    return 12.0 * 16 * TURNS / taken * 1e-9;
}
static double peak(void) {
    return simd_now() == SIMD_AVX512 ? peak_avx512() : simd_now() == SIMD_AVX2 ? peak_avx2() : 0;
}
#else
static double peak(void) { return 0; }
#endif

/* ---- elementwise ---- */

enum { COUNT = 4096 };
static double *angles;
static void gelu_backward(int64_t n, const float *x, float *y) { vmath_gelu_backward(n, x, x, y); }
static void cosine(int64_t n, const float *x, float *y) {
    (void)x;
    vmath_cos(n, angles, y);
}
static void by_libm_exp(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = expf(x[i]);
}
static void by_libm_gelu(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

static void elementwise(int rounds) {
    static const struct {
        const char *name;
        void (*run)(int64_t n, const float *x, float *y);
    } functions[] = {
        {"exp", vmath_exp}, {"sigmoid", vmath_sigmoid}, {"tanh", vmath_tanh},
        {"erf", vmath_erf}, {"gelu", vmath_gelu},       {"gelu_backward", gelu_backward},
        {"cos", cosine},    {"libm expf", by_libm_exp}, {"libm erff gelu", by_libm_gelu}};
    printf("\n%-28s %8s %8s    G elements/s\n", "function", simd_name(simd_now()), "avx2");
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        double best[2] = {1e9, 1e9};
        for (int r = 0; r < rounds; r++) {
            for (int level = 0; level < 2; level++) {
                simd_limit = level ? SIMD_AVX2 : SIMD_LEVELS;
                double start = now();
                for (int i = 0; i < 100; i++) functions[f].run(COUNT, a, c);
                double taken = (now() - start) / 100;
                if (taken < best[level]) best[level] = taken;
            }
        }
        simd_limit = SIMD_LEVELS;
        printf("%-28s %8.2f %8.2f\n", functions[f].name, COUNT / best[0] * 1e-9,
               COUNT / best[1] * 1e-9);
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    a = aligned_alloc(64, ROOM * sizeof *a);
    b = aligned_alloc(64, ROOM * sizeof *b);
    c = aligned_alloc(64, ROOM * sizeof *c);
    angles = malloc(COUNT * sizeof *angles);
    if (!a || !b || !c || !angles || rounds < 1) return 1;
    uint32_t state = 1;
    for (int i = 0; i < ROOM; i++) {
        state = state * 1664525u + 1013904223u;
        a[i] = (float)(int32_t)state * 0x1p-30f;
        b[i] = (float)(int32_t)(state * 2654435761u) * 0x1p-31f;
        c[i] = 0;
    }
    for (int i = 0; i < COUNT; i++) angles[i] = (double)a[i] * 1e6;

    struct {
        const char *name;
        void (*run)(const shape *);
    } rivals[4] = {{simd_name(simd_now()), ours}, {"avx2", ours_avx2}};
    int count = 2;
#ifdef HAVE_OPENBLAS
    openblas_set_num_threads(1);
    rivals[count].name = "OpenBLAS";
    rivals[count++].run = openblas;
#endif
#ifdef HAVE_LIBXSMM
    libxsmm_init();
    int xsmm_at = count;
    rivals[count].name = "libxsmm";
    rivals[count++].run = xsmm;
#endif
    double most = peak();
    for (int r = 0; r < rounds; r++) {
        double again = peak();
        if (again > most) most = again;
    }
    printf("peak of registers: %.1f GFLOP/s\n\n%-28s    %4s %4s %4s", most, "product", "m", "n",
           "k");
    for (int r = 0; r < count; r++) printf(" %9s", rivals[r].name);
    printf("    GFLOP/s\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = shapes + i;
        double work = 2e-9 * s->m * s->n * s->k, best[4] = {1e9, 1e9, 1e9, 1e9};
        int calls = (int)(0.002 * 60 / work) + 1; /* short turns, as others use the machine too */
#ifdef HAVE_LIBXSMM
        xsmm_dispatch(s);
#endif
        for (int round = 0; round < rounds; round++) {
            for (int r = 0; r < count; r++) {
#ifdef HAVE_LIBXSMM
                if (r == xsmm_at && !xsmm_kernel) continue;
#endif
                double taken = seconds(rivals[r].run, s, calls);
                if (taken < best[r]) best[r] = taken;
            }
        }
        printf("%-28s %s %4d %4d %4d", s->what, s->form, s->m, s->n, s->k);
        for (int r = 0; r < count; r++)
            if (best[r] < 1e9)
                printf(" %9.1f", work / best[r]);
            else
                printf(" %9s", "-");
        printf("\n");
    }
    elementwise(rounds);
    free(a), free(b), free(c), free(angles);
    return 0;
}
