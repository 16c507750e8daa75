/* test_nn_gemm.c - products against the documented chain of fused multiply-adds, by memcmp: all
 * forms, sizes up to and above tiles, strides, instruction sets; equal rows give equal bits. */
#include "base/os.h"
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/turned.h"
#include "testing.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>

typedef void product(int m, int n, int k, const float *a, int lda, const float *b, int ldb,
                     float *c, int ldc, bool accumulate);
static product *const forms[] = {gemm_nn, gemm_nt, gemm_tn};
static int restore_level(void **state) {
    (void)state;
    simd_limit = SIMD_LEVELS;
    return 0;
}

static uint32_t random_state = 12345;
static uint32_t random_bits(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}
/* Numbers of many sizes, so that another order of adding shows. */
static void fill(float *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        x[i] = ldexpf((float)((int)random_bits() - (1 << 23)), -24 - (int)(random_bits() % 8));
}

/* What gemm.h promises, word for word. */
static void chain(int form, int m, int n, int k, const float *a, int lda, const float *b, int ldb,
                  float *c, int ldc, bool accumulate) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = accumulate ? c[i * ldc + j] : 0;
            for (int p = 0; p < k; p++)
                sum = fmaf(a[form == 2 ? p * lda + i : i * lda + p],
                           b[form == 1 ? j * ldb + p : p * ldb + j], sum);
            c[i * ldc + j] = sum;
        }
    }
}

/* One product at every level. Matrices end where their memory ends, so that reading past an end is
 * seen by the address sanitizer; C has room around it, which must stay as it was. */
static void check(int form, int m, int n, int k, int more_a, int more_b, int more_c,
                  bool accumulate) {
    int a_rows = form == 2 ? k : m, a_columns = form == 2 ? m : k;
    int b_rows = form == 1 ? n : k, b_columns = form == 1 ? k : n;
    int lda = a_columns + more_a, ldb = b_columns + more_b, ldc = n + more_c;
    size_t a_size = a_rows ? (size_t)((a_rows - 1) * lda + a_columns) : 0;
    size_t b_size = b_rows ? (size_t)((b_rows - 1) * ldb + b_columns) : 0;
    size_t c_size = (size_t)(m * ldc + 40);
    float *a = malloc(a_size * sizeof *a + 1), *b = malloc(b_size * sizeof *b + 1);
    float *before = malloc(c_size * sizeof *before), *c = malloc(c_size * sizeof *c),
          *expected = malloc(c_size * sizeof *expected);
    assert_true(a && b && before && c && expected);
    fill(a, a_size);
    fill(b, b_size);
    fill(before, c_size);
    memcpy(expected, before, c_size * sizeof *c);
    chain(form, m, n, k, a, lda, b, ldb, expected + 20, ldc, accumulate);
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        memcpy(c, before, c_size * sizeof *c);
        forms[form](m, n, k, a, lda, b, ldb, c + 20, ldc, accumulate);
        if (memcmp(c, expected, c_size * sizeof *c)) {
            print_error("# form %d, m %d n %d k %d, %s\n", form, m, n, k, simd_name(simd_now()));
            assert_true(false);
        }
    }
    free(a), free(b), free(before), free(c), free(expected);
}

/* The two linear layers at every level: the chain that begins with the bias, nothing around it. */
static void check_linear(int out, int vectors, int in) {
    size_t size = (size_t)(out * vectors);
    float *weight = malloc((size_t)(out * in) * sizeof *weight + 1),
          *x = malloc((size_t)(vectors * in) * sizeof *x + 1),
          *bias = malloc((size_t)out * sizeof *bias + 1), *y = malloc((size + 40) * sizeof *y),
          *expected = malloc((size + 40) * sizeof *expected);
    assert_true(weight && x && bias && y && expected);
    fill(weight, (size_t)(out * in));
    fill(x, (size_t)(vectors * in));
    fill(bias, (size_t)out);
    for (int columns = 0; columns < 2; columns++) {
        for (size_t i = 0; i < size + 40; i++) expected[i] = -7;
        for (int i = 0; i < vectors; i++)
            for (int j = 0; j < out; j++)
                expected[20 + (columns ? j * vectors + i : i * out + j)] = bias[j];
        if (columns)
            chain(0, out, vectors, in, weight, in, x, vectors, expected + 20, vectors, true);
        else
            chain(1, vectors, out, in, x, in, weight, in, expected + 20, out, true);
        for (int l = 0; l < SIMD_LEVELS; l++) {
            simd_limit = (simd_level)l;
            for (size_t i = 0; i < size + 40; i++) y[i] = -7;
            if (columns)
                gemm_linear_columns(out, vectors, in, weight, bias, x, y + 20);
            else
                gemm_linear(vectors, out, in, x, weight, bias, y + 20);
            if (memcmp(y, expected, (size + 40) * sizeof *y)) {
                print_error("# linear %d, out %d vectors %d in %d, %s\n", columns, out, vectors, in,
                            simd_name(simd_now()));
                assert_true(false);
            }
        }
    }
    free(weight), free(x), free(bias), free(y), free(expected);
}

static void test_linear(void **state) {
    (void)state;
    static const int edges[] = {0, 1, 3, 5, 12, 16, 31, 32, 33, 48, 65};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++)
            for (int in = 0; in < 9; in += 4) check_linear(edges[i], edges[j], in + in % 3);
    check_linear(40, 20, 600); /* blocks of k */
    check_linear(1, 20, 600);
    check_linear(40, 1, 600);
}

/* A turned factor, and nothing written after the next multiple of 16; and a product that begins
 * with numbers that are elsewhere. */
static void test_turned(void **state) {
    (void)state;
    enum { MOST = 70, LD = 96, K = 67 };
    static float b[MOST * K], other[K * LD], a[K * MOST], s[MOST * LD], c[MOST * LD],
        expected[MOST * LD];
    fill(b, MOST * K);
    fill(a, K * MOST);
    fill(s, MOST * LD);
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        for (int n = 1; n <= MOST; n++) {
            int k = 1 + n * 7 % K, m = 1 + n * 11 % MOST, whole = (n + 15) / 16 * 16;
            for (int i = 0; i < K * LD; i++) other[i] = -7;
            gemm_turn(n, k, b, K, other, LD);
            for (int q = 0; q < k; q++)
                for (int j = 0; j < LD; j++) {
                    if (j < n)
                        assert_true(other[q * LD + j] == b[j * K + q]);
                    else if (j >= whole)
                        assert_true(other[q * LD + j] == -7);
                }
            for (int i = 0; i < MOST * LD; i++) c[i] = expected[i] = -7;
            for (int i = 0; i < m; i++)
                memcpy(expected + i * LD, s + i * LD, (size_t)n * sizeof *s);
            chain(2, m, n, k, a, MOST, other, LD, expected, LD, true);
            gemm_tn_from(m, n, k, a, MOST, other, LD, s, LD, c, LD);
            assert_memory_equal(c, expected, sizeof c);
        }
    }
}

/* Weights that were transposed beforehand: bits as of gemm_nt, with a bias, without, and added. */
static void test_weights_turned_once(void **state) {
    (void)state;
    enum { M = 13, IN = 9, LD = 11, MOST = 70, LDY = 75 };
    static float x[M * LD], weight[MOST * LD], bias[MOST], y[M * LDY], expected[M * LDY];
    fill(x, M * LD);
    fill(weight, MOST * LD);
    fill(bias, MOST);
    for (int out = 1; out <= MOST; out++) {
        arena memory = {0};
        turned w;
        fr_error err = {0};
        assert_int_equal(turned_make(&memory, IN, out, weight, LD, &w, &err), FR_OK);
        assert_true(*turned_at(&w, IN - 1, out - 1) == weight[(out - 1) * LD + IN - 1]);
        for (int kind = 0; kind < 3; kind++) { /* 0, bias, y at first */
            fill(y, M * LDY);
            memcpy(expected, y, sizeof y);
            w.bias = kind == 1 ? bias : NULL;
            for (int i = 0; kind == 1 && i < M; i++)
                memcpy(expected + i * LDY, bias, (size_t)out * sizeof *bias);
            chain(1, M, out, IN, x, LD, weight, LD, expected, LDY, kind > 0);
            turned_product(&w, M, x, LD, y, LDY, kind == 2);
            assert_memory_equal(y, expected, sizeof y);
        }
        arena_free(&memory);
    }
}

/* Every m, n, k of 0..70 is met, two of them at edges of tiles, the third running. */
static void test_all_sizes(void **state) {
    (void)state;
    static const int edges[] = {0, 1, 2, 6, 7, 13, 16, 17, 32, 33, 49, 70};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int form = 0; form < 3; form++) {
        for (int x = 0; x < EDGES; x++) {
            for (int y = 0; y < EDGES; y++) {
                for (int run = 0; run <= 70; run += 1 + 12 * SANITIZED + (int)(random_bits() % 4)) {
                    bool add = random_bits() & 1;
                    int more[3];
                    for (int i = 0; i < 3; i++)
                        more[i] = random_bits() & 1 ? (int)(random_bits() % 40) : 0;
                    check(form, run, edges[x], edges[y], more[0], more[1], more[2], add);
                    check(form, edges[x], run, edges[y], more[0], more[1], more[2], add);
                    check(form, edges[x], edges[y], run, more[0], more[1], more[2], add);
                }
            }
        }
    }
}

/* Over the blocks of k, and the shapes of the models. */
static void test_large_sizes(void **state) {
    (void)state;
    static const int shapes[][4] = {/* form, m, n, k */
                                    {0, 13, 33, 255},  {0, 13, 33, 257},   {1, 50, 40, 513},
                                    {2, 64, 64, 1000}, {0, 200, 64, 64},   {1, 200, 256, 64},
                                    {1, 100, 64, 256}, {1, 2, 320, 32},    {0, 2, 32, 320},
                                    {2, 320, 32, 2},   {1, 128, 192, 192}, {1, 301, 1, 192},
                                    {0, 301, 1, 300},  {2, 301, 1, 300},   {0, 1, 1, 600}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int more = 0; more < 2; more++) {
            for (int add = 0; add < 2; add++)
                check(shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], more * 32, more * 7,
                      more * 3, add);
        }
    }
}

/* The same row of A anywhere, in a product of any height, gives the same row of C; and the same
 * column of B the same column. */
static void test_equal_rows_and_columns(void **state) {
    (void)state;
    enum { K = 64, N = 77, MOST = 61 };
    static float row[K], a[MOST * K], b[K * N], c[MOST * N], alone[N], other[N * K];
    fill(row, K);
    fill(b, K * N);
    for (int j = 0; j < N; j++)
        for (int p = 0; p < K; p++) other[j * K + p] = b[p * N + j];
    for (int i = 0; i < MOST; i++) memcpy(a + i * K, row, sizeof row);
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        gemm_nn(1, N, K, row, K, b, N, alone, N, false);
        for (int m = 1; m <= MOST; m++) {
            for (int form = 0; form < 2; form++) {
                forms[form](m, N, K, a, K, form ? other : b, form ? K : N, c, N, false);
                for (int i = 0; i < m; i++) assert_memory_equal(c + i * N, alone, sizeof alone);
            }
        }
        for (int n = 1; n < N; n++) { /* A as (n, K) rows of B: all columns of C equal */
            int most = n < MOST ? n : MOST;
            gemm_nt(5, most, K, other, K, a, K, c, most, false);
            for (int i = 0; i < 5; i++)
                for (int j = 0; j < most; j++)
                    assert_memory_equal(c + i * most + j, alone + i, sizeof *c);
        }
    }
}

/* Infinities and NaNs stay in their own rows and columns, independent of the padding of panels. */
static void test_infinities_stay(void **state) {
    (void)state;
    enum { M = 15, N = 35, K = 9 };
    float a[M * K], b[N * K], c[M * N];
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        fill(a, M * K);
        fill(b, N * K);
        a[3 * K + 4] = NAN;
        b[34 * K + 2] = INFINITY;
        gemm_nt(M, N, K, a, K, b, K, c, N, false);
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < N; j++) {
                assert_int_equal(isnan(c[i * N + j]) != 0, i == 3);
                if (i != 3) assert_int_equal(isinf(c[i * N + j]) != 0, j == 34);
            }
        }
    }
}

/* Each call has its own buffers: four threads at once do not disturb each other. */
static void *multiply_often(void *failed) {
    enum { M = 37, N = 45, K = 300 };
    float a[M * K], b[N * K], c[M * N], expected[M * N];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 31) * 0.37f;
    for (int i = 0; i < N * K; i++) b[i] = (float)(i % 29) * 0.41f;
    chain(1, M, N, K, a, K, b, K, expected, N, false);
    for (int turn = 0; turn < (SANITIZED ? 20 : 200) && !*(bool *)failed; turn++) {
        gemm_nt(M, N, K, a, K, b, K, c, N, false);
        *(bool *)failed = memcmp(c, expected, sizeof c) != 0;
    }
    return NULL;
}
static void test_threads(void **state) {
    (void)state;
    pthread_t thread[4];
    bool failed[4] = {false};
    for (int i = 0; i < 4; i++)
        assert_int_equal(os_thread(thread + i, multiply_often, failed + i), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 4; i++) assert_false(failed[i]);
}

static void test_kind(void **state) {
    (void)state;
    simd_limit = SIMD_PORTABLE;
    assert_string_equal(simd_name(simd_now()), "portable");
    simd_limit = SIMD_LEVELS;
    assert_true(simd_now() < SIMD_LEVELS);
#ifdef SIMD_ARM
    assert_string_equal(simd_name(simd_now()), "neon");
#endif
}

int main(void) {
#define TEST(test) cmocka_unit_test_teardown(test, restore_level)
    const struct CMUnitTest tests[] = {
        TEST(test_all_sizes),           TEST(test_linear),      TEST(test_turned),
        TEST(test_weights_turned_once), TEST(test_large_sizes), TEST(test_equal_rows_and_columns),
        TEST(test_infinities_stay),     TEST(test_threads),     TEST(test_kind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
