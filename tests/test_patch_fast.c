/* test_patch_fast.c - the patch transformer's fast path against its plain forward pass, equal bits,
 * and how often its memory of pairs is written. */
#include "base/simd.h"
#include "dygformer_fixture.h"
#include "models/patch.h"

static const char *const names[] = {"patch", "patch-lha"};

static void check_accuracy(const char *directory, int order, const char *name,
                           fr_model_settings settings) {
    fixture f;
    make(&f, directory, order, 0, name, settings);
    double off = difference(&f, 0, 0.02);
    if (off > 1e-5)
        print_error("# %s dim %lld patch %lld order %d: %g\n", name, (long long)settings.dim,
                    (long long)settings.patch, order, off);
    assert_true(off <= 1e-5);
    drop(&f);
}

static void test_accuracy(void **state) {
    for (int n = 0; n < 2; n++) {
        for (int order = 0; order < 3; order++) check_accuracy(*state, order, names[n], usual);
        fr_model_settings one = usual, odd = usual, wide = usual, lazy = usual;
        one.layers = 1, one.heads = 1, one.patch = 1;
        odd.dim = 13, odd.heads = 1, odd.patch = 7, odd.time_dim = 2;
        wide.dim = 64, wide.heads = 4, wide.history = 20, wide.patch = 2, wide.time_dim = 32;
        lazy.write_every = 7;
        check_accuracy(*state, FR_ORDER_STREAM, names[n], one);
        check_accuracy(*state, FR_ORDER_STREAM, names[n], odd);
        check_accuracy(*state, FR_ORDER_STREAM, names[n], wide);
        if (n) check_accuracy(*state, FR_ORDER_BATCH, names[n], lazy);
    }
}

static void test_bits(void **state) {
    const int blocks[] = {1, 7, 16, 100000};
    for (int n = 0; n < 2; n++) {
        fixture f;
        make(&f, *state, FR_ORDER_STREAM, 0, names[n], usual);
        float *expected = all_scores(&f, 0, false);
        for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
            f.m.fast_block = blocks[k];
            assert_same(&f, expected, all_scores(&f, 0, false));
        }
        f.m.fast_block = 0;
        assert_same(&f, expected, all_scores(&f, 2, true));
        for (simd_limit = SIMD_PORTABLE; simd_limit < SIMD_LEVELS; simd_limit++)
            assert_same(&f, expected, all_scores(&f, 0, false));
        free(expected);
        drop(&f);
    }
}

static void test_threads(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, 0, "patch", usual);
    check_threads(&f);
    drop(&f);
}

/* Candidates that are equal for the model tie, wherever they are. */
static void test_ties(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, 0, "patch", usual);
    const patch *p = f.m.own;
    real *item = f.m.params.value + f.m.params.list.at[p->item].offset;
    for (int v = 1; v < f.w->destinations; v += 3)
        memcpy(item + v * p->dim, item, (size_t)p->dim * sizeof *item);
    float *scores = all_scores(&f, 0, false);
    for (int32_t e = 0; e < f.w->events; e++) {
        const float *row = scores + (size_t)e * (size_t)f.w->destinations;
        for (int v = 1; v < f.w->destinations; v += 3) assert_true(row[v] == row[0]);
        assert_true(row[2] != row[0]);
    }
    free(scores);
    drop(&f);
}

/* The memory of the pair at replayed event e, when `every` events are written together: by the
 * definition, event by event. Histories are still up to date. */
static void check_writes(const char *directory, int every) {
    fixture f;
    fr_model_settings settings = usual;
    settings.write_every = every;
    make(&f, directory, FR_ORDER_STREAM, 0, "patch-lha", settings);
    const lha *h = f.m.pairs;
    int d = h->dim, from = f.w->train, recalled = 0;
    size_t size = (size_t)f.w->pairs * (size_t)d;
    real *memory = malloc(size * sizeof *memory), *next = malloc(size * sizeof *memory);
    assert_true(memory && next);
    memcpy(memory, h->value, size * sizeof *memory);
    tape t = {.params = &f.m.params};
    for (int32_t e = from; e < f.w->to; e++) {
        if ((e - from) % every == 0 && e > from) memcpy(memory, next, size * sizeof *memory);
        if ((e - from) % every == 0) memcpy(next, memory, size * sizeof *memory);
        int32_t v = f.w->destination[e], pair = window_pair(f.w, f.w->source[e], v), one[] = {0, 1};
        const real *r = lha_recall(&f.m, e, v), *expected = memory + (size_t)pair * (size_t)d;
        tensor z;
        for (int k = 0; k < d; k++)
            assert_true(fabs((double)((r ? r[k] : 0) - expected[k])) <= 1e-5);
        recalled += r != NULL;
        tape_reset(&t);
        tensor now = h->hidden(&f.m, &t, &(model_batch){1, &e, one, &v}, &z);
        for (int k = 0; k < d; k++)
            next[(size_t)pair * (size_t)d + (size_t)k] =
                h->gamma * now.v[k] + (1 - h->gamma) * expected[k];
    }
    assert_true(recalled > 10);
    tape_free(&t);
    free(memory);
    free(next);
    drop(&f);
}

static void test_writes(void **state) {
    for (int every = 1; every <= 16; every *= 4) check_writes(*state, every);
}

/* MODELS 7 */
static void test_parameter_counts(void **state) {
    fr_error err;
    for (int n = 0; n < 2; n++) {
        fixture f;
        fr_model_settings settings;
        OK(fr_options_defaults(fr_model_options, &settings, &err));
        make_window(&f, *state, FR_ORDER_STREAM, 0);
        OK(model_open(&f.m, names[n], &settings, f.w, 7, &err));
        size_t nodes = (size_t)(f.w->sources + f.w->destinations);
        assert_int_equal(params_trained(&f.m.params), (n ? 178881 : 187009) + 64 * nodes);
        drop(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_accuracy), WITH_DIRECTORY(test_bits),
        WITH_DIRECTORY(test_threads),  WITH_DIRECTORY(test_ties),
        WITH_DIRECTORY(test_writes),   WITH_DIRECTORY(test_parameter_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
