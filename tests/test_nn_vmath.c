/* test_nn_vmath.c - elementwise functions: accuracy against libm in double, special values, the
 * same bits at every place of an array and on every instruction set.
 */
#include "base/simd.h"
#include "nn/vmath.h"
#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

enum { SPARSE = SANITIZED ? 20 : 1 };

typedef void function(int64_t n, const float *x, float *y);

static int restore_level(void **state) {
    (void)state;
    simd_limit = SIMD_LEVELS;
    return 0;
}

static double exact_exp(double x) { return exp(x); }
static double exact_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double exact_tanh(double x) { return tanh(x); }
static double exact_erf(double x) { return erf(x); }
static double exact_gelu(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
static double exact_slope(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}
static void slopes(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = 1;
    vmath_gelu_backward(n, x, y, y);
}
static void cosines(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) vmath_cos(1, &(double){(double)x[i] * 1e4}, y + i);
}

/* A result is right if it is within `ulps` of the exact one or nearer to it than `apart`. */
static const struct claim {
    const char *name;
    function *run;
    double (*exact)(double);
    double ulps, apart;
} claims[] = {
    {"exp", vmath_exp, exact_exp, 1.1, 0},       {"sigmoid", vmath_sigmoid, exact_sigmoid, 2.5, 0},
    {"tanh", vmath_tanh, exact_tanh, 2, 0},      {"erf", vmath_erf, exact_erf, 2, 0},
    {"gelu", vmath_gelu, exact_gelu, 2.5, 2e-8}, {"gelu_backward", slopes, exact_slope, 2, 8e-8}};
enum { CLAIMS = sizeof claims / sizeof *claims };

/* The distance of floats at `exact`; that of subnormal ones below. */
static double ulp_at(double exact) {
    double size = fmax(fabs(exact), 0x1p-126);
    return ldexp(1, ilogb(size) - 23);
}

/* Floats of all sizes: every 997th bit pattern of both signs, and the whole of -20..20 in small
 * steps. */
static float *inputs(int64_t *count) {
    int64_t room = 2 * (0x7f800000 / 997 + 1) + 2000001, n = 0;
    float *x = malloc((size_t)room * sizeof *x);
    assert_non_null(x);
    for (uint32_t sign = 0; sign < 2; sign++) {
        for (uint32_t bits = 0; bits < 0x7f800000; bits += 997 * SPARSE, n++) {
            uint32_t all = bits | sign << 31;
            memcpy(x + n, &all, sizeof all);
        }
    }
    for (int i = -1000000; i <= 1000000; i += SPARSE) x[n++] = (float)i * 2e-5f;
    *count = n;
    return x;
}

static void test_accuracy(void **state) {
    (void)state;
    int64_t n;
    float *x = inputs(&n), *y = malloc((size_t)n * sizeof *y);
    assert_non_null(y);
    for (int f = 0; f < CLAIMS; f++) {
        double most_ulps = 0, most_apart = 0, at = 0;
        claims[f].run(n, x, y);
        for (int64_t i = 0; i < n; i++) {
            double exact = claims[f].exact((double)x[i]);
            if (fabs(exact) > (double)FLT_MAX) {
                assert_true(fabsf(y[i]) >= FLT_MAX);
                continue;
            }
            double apart = fabs((double)y[i] - exact), ulps = apart / ulp_at(exact);
            if (apart > most_apart && ulps > claims[f].ulps) most_apart = apart;
            if (apart > claims[f].apart && ulps > most_ulps) most_ulps = ulps, at = (double)x[i];
        }
        print_message("# %s: %.3f ulp (at %.9g) where more than %g apart; %.3g apart where more "
                      "than %g ulp\n",
                      claims[f].name, most_ulps, at, claims[f].apart, most_apart, claims[f].ulps);
        assert_true(most_ulps <= claims[f].ulps);
    }
    free(x);
    free(y);
}

static void test_angles(void **state) {
    (void)state;
    double worst = 0;
    enum { N = 1000 };
    double angle[N];
    float y[N];
    for (double size = 1e-9; size < 1.5e9; size *= 10) {
        for (int turn = 0; turn < 50; turn++) {
            for (int i = 0; i < N; i++) {
                double x =
                    fmod((i + 1) * 0.6180339887498949 + turn * 0.7548776662466927, 1) * 2 - 1;
                angle[i] = fmin(size, 1e9) * x;
                if (i % 10 == 0) angle[i] = rint(angle[i] / M_PI_2) * M_PI_2; /* zeros and peaks */
            }
            for (int wave = 0; wave < 2; wave++) {
                (wave ? vmath_sin : vmath_cos)(N, angle, y);
                for (int i = 0; i < N; i++) {
                    double exact = wave ? sin(angle[i]) : cos(angle[i]);
                    worst = fmax(worst, fabs((double)y[i] - exact) / ulp_at(exact));
                    assert_true(fabs((double)y[i] - exact) <= 0.5 * ulp_at(exact) + 1e-9);
                }
            }
        }
    }
    print_message("# cos, sin: %.4f ulp\n", worst);
    assert_true(worst <= 0.51);
    angle[0] = INFINITY, angle[1] = NAN, angle[2] = 0;
    vmath_cos(3, angle, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 1);
    vmath_sin(3, angle, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 0);
}

/* f(x) for one x. */
static float at(function *run, float x) {
    float y;
    run(1, &x, &y);
    return y;
}

static void test_special_values(void **state) {
    (void)state;
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        assert_true(at(vmath_exp, 0) == 1);
        assert_true(at(vmath_exp, -INFINITY) == 0);
        assert_true(isinf(at(vmath_exp, INFINITY)));
        assert_true(isinf(at(vmath_exp, 88.73f)));
        assert_true(isfinite(at(vmath_exp, 88.72f)));
        assert_true(at(vmath_exp, -103.9f) == 0x1p-149f);
        assert_true(at(vmath_exp, -103.98f) == 0);
        assert_true(at(vmath_exp, -3e38f) == 0);
        assert_true(at(vmath_sigmoid, INFINITY) == 1);
        assert_true(at(vmath_sigmoid, -INFINITY) == 0);
        assert_true(at(vmath_sigmoid, 0) == 0.5f);
        assert_true(at(vmath_sigmoid, -100) > 0);
        assert_true(at(vmath_tanh, INFINITY) == 1);
        assert_true(at(vmath_tanh, -INFINITY) == -1);
        assert_true(at(vmath_tanh, -0.0f) == 0 && signbit(at(vmath_tanh, -0.0f)));
        assert_true(at(vmath_erf, INFINITY) == 1);
        assert_true(at(vmath_erf, -INFINITY) == -1);
        assert_true(at(vmath_erf, -0.0f) == 0 && signbit(at(vmath_erf, -0.0f)));
        assert_true(at(vmath_gelu, 0) == 0);
        assert_true(isinf(at(vmath_gelu, INFINITY)));
        assert_true(at(vmath_gelu, 1e30f) == 1e30f);
        assert_true(at(vmath_gelu, -INFINITY) == 0);
        assert_true(at(slopes, INFINITY) == 1);
        assert_true(at(slopes, -INFINITY) == 0);
        assert_true(at(slopes, 0) == 0.5f);
        for (int f = 0; f < CLAIMS; f++) assert_true(isnan(at(claims[f].run, NAN)));
    }
}

/* The factor of the chain rule is one rounded multiplication. */
static void test_backward_scales(void **state) {
    (void)state;
    enum { N = 1300 };
    float x[N], dy[N], dx[N], slope[N];
    for (int i = 0; i < N; i++) x[i] = (float)(i - 650) * 0.01f, dy[i] = (float)i * 0.37f - 200;
    slopes(N, x, slope);
    vmath_gelu_backward(N, x, dy, dx);
    for (int i = 0; i < N; i++) assert_true(dx[i] == dy[i] * slope[i]);
}

/* One value repeated 0..40 times, from every position of a vector on, gives the bits of the value
 * alone; bytes after the result do not change. */
static void test_every_place(void **state) {
    (void)state;
    static const float values[] = {0.1f, -0.7f, 1.3f, -2.9f, 5.5f, -11, 0, 1e-20f, 80};
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        for (int f = 0; f <= CLAIMS; f++) {
            function *run = f < CLAIMS ? claims[f].run : cosines;
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                float alone = at(run, values[v]);
                for (int n = 0; n <= 40; n++) {
                    float x[48], y[48], expected[48];
                    for (int i = 0; i < 48; i++) {
                        x[i] = values[v];
                        y[i] = -7;
                        expected[i] = i > 0 && i <= n ? alone : -7;
                    }
                    run(n, x + 1, y + 1);
                    assert_memory_equal(y, expected, sizeof y);
                }
            }
        }
    }
    double angle[41];
    for (int i = 0; i < 41; i++) angle[i] = 123456.789;
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        float one, all[42];
        vmath_cos(1, angle, &one);
        for (int n = 0; n <= 40; n++) {
            all[n] = -7;
            vmath_cos(n, angle, all);
            for (int i = 0; i < n; i++) assert_memory_equal(all + i, &one, sizeof one);
            assert_true(all[n] == -7);
        }
    }
}

/* A column's exponents and their sum are those of the column alone: of vmath_exp, added downwards,
 * at every level. */
static void check_exp_columns(int rows, int width) {
    float x[40 * 50], y[40 * 50 + 1], total[50];
    assert_true(rows <= 40 && width <= 50);
    y[rows * width] = -7;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j++)
            x[i * width + j] = (float)((i * 31 + j * 17) % 101 - 50) * (j % 5 ? 0.31f : 7.7f);
    memcpy(y, x, (size_t)(rows * width) * sizeof *y);
    vmath_exp_columns(rows, width, y, total);
    for (int j = 0; j < width; j++) {
        float largest = x[j], sum = 0;
        for (int i = 1; i < rows; i++) largest = fmaxf(largest, x[i * width + j]);
        for (int i = 0; i < rows; i++) {
            float expected = at(vmath_exp, x[i * width + j] - largest);
            assert_true(y[i * width + j] == expected);
            sum += expected;
        }
        assert_true(total[j] == sum);
    }
    assert_true(y[rows * width] == -7);
}

static void test_exp_columns(void **state) {
    (void)state;
    static const int widths[] = {1, 2, 3, 7, 8, 11, 16, 21, 31, 48};
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        for (int rows = 1; rows <= 37; rows += 12)
            for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
                check_exp_columns(rows, widths[k]);
    }
}

/* The same bits as norm and GELU number by number, for any width; nothing else is written. */
static void test_gelu_norm(void **state) {
    (void)state;
    enum { ROWS = 5, LD = 60 };
    float x[ROWS * LD], y[ROWS * LD + 1], rho[LD], add[ROWS], gain[ROWS], bias[ROWS];
    for (int i = 0; i < ROWS * LD; i++) x[i] = (float)(i * 37 % 101 - 50) * 0.13f;
    for (int j = 0; j < LD; j++) rho[j] = 0.05f + (float)(j * 7 % 11);
    for (int k = 0; k < ROWS; k++) {
        add[k] = 0.3f * (float)k - 0.7f;
        gain[k] = 1.1f - 0.4f * (float)k;
        bias[k] = 0.2f * (float)k;
    }
    for (int l = 0; l < SIMD_LEVELS; l++) {
        simd_limit = (simd_level)l;
        for (int width = 1; width <= LD; width++) {
            y[ROWS * width] = -7;
            vmath_gelu_norm(ROWS, width, x, LD, add, gain, bias, rho, y);
            for (int k = 0; k < ROWS; k++)
                for (int j = 0; j < width; j++) {
                    float z = fmaf(x[k * LD + j] + add[k], rho[j] * gain[k], bias[k]);
                    assert_true(y[k * width + j] == at(vmath_gelu, z));
                }
            assert_true(y[ROWS * width] == -7);
        }
    }
}

static void test_instruction_sets_agree(void **state) {
    (void)state;
    int64_t n;
    float *x = inputs(&n), *y = malloc((size_t)n * sizeof *y), *z = malloc((size_t)n * sizeof *z);
    double *angle = malloc((size_t)n * sizeof *angle);
    assert_true(y && z && angle);
    for (int f = 0; f < CLAIMS; f++) {
        simd_limit = SIMD_PORTABLE;
        claims[f].run(n, x, y);
        for (int l = 1; l < SIMD_LEVELS; l++) {
            simd_limit = (simd_level)l;
            claims[f].run(n, x, z);
            assert_memory_equal(y, z, (size_t)n * sizeof *y);
            memcpy(z, x, (size_t)n * sizeof *z); /* in place */
            if (claims[f].run != slopes) {
                claims[f].run(n, z, z);
                assert_memory_equal(y, z, (size_t)n * sizeof *y);
            }
        }
    }
    for (int64_t i = 0; i < n; i++) angle[i] = fabsf(x[i]) < 1e9f ? (double)x[i] * 1.1 : (double)i;
    for (int wave = 0; wave < 2; wave++) {
        simd_limit = SIMD_PORTABLE;
        (wave ? vmath_sin : vmath_cos)(n, angle, y);
        for (int l = 1; l < SIMD_LEVELS; l++) {
            simd_limit = (simd_level)l;
            (wave ? vmath_sin : vmath_cos)(n, angle, z);
            assert_memory_equal(y, z, (size_t)n * sizeof *y);
        }
    }
    free(x), free(y), free(z), free(angle);
}

int main(void) {
#define TEST(test) cmocka_unit_test_teardown(test, restore_level)
    const struct CMUnitTest tests[] = {
        TEST(test_accuracy),       TEST(test_angles),
        TEST(test_special_values), TEST(test_backward_scales),
        TEST(test_every_place),    TEST(test_exp_columns),
        TEST(test_gelu_norm),      TEST(test_instruction_sets_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
