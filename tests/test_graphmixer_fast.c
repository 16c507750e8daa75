/* test_graphmixer_fast.c - GraphMixer's fast path against its plain forward pass, with the same
 * bits for any block, worker, thread, order of events and instruction set; and what a score may
 * depend on.
 *
 * Random streams with ties in time, with or without features, histories from empty to longer than
 * the model reads; every parameter away from its initial value. */
#include "base/simd.h"
#include "fast_path.h"
#include "models/checkpoint.h"
#include "models/graphmixer.h"

enum { EVENTS = 200, FEATURES = 4, CHANGED = 150 };

/* A few destinations have most events, others come late; up to three events share a time. With
 * `other_future`, event CHANGED keeps source and time; everything else from there on is different.
 */
static void make_window(fixture *f, const char *directory, int order, int width,
                        bool other_future) {
    rng_key key = {.seed = 5, .purpose = RNG_TEST};
    FILE *file = start_table(directory, width);
    for (int i = 0; i < EVENTS; i++) {
        bool changed = other_future && i >= CHANGED;
        /* the same ids occur: sources and destinations of the changed events are turned round */
        uint64_t us = (uint64_t)(changed && i > CHANGED ? EVENTS + CHANGED - i : i);
        uint64_t vs = (uint64_t)(changed ? EVENTS - 1 + CHANGED - i : i);
        uint32_t u = rng_below(key, us, 0, 2) ? 0 : rng_below(key, us, 1, 9);
        uint32_t reach = 4 + 30 * (uint32_t)vs / EVENTS;
        uint32_t v = rng_below(key, vs, 2, 3) ? rng_below(key, vs, 3, reach) : 0;
        (void)fprintf(file, "\n%u,%u,%d", u, v, 700 * (i / 3) + (changed && i > CHANGED ? 90 : 0));
        for (int k = 0; k < width; k++)
            (void)fprintf(file, ",%.4f",
                          rng_uniform(key, (uint64_t)i, (changed ? 40 : 20) + (uint32_t)k) - 0.5);
    }
    (void)fprintf(file, "\n");
    assert_int_equal(fclose(file), 0);
    open_window(f, directory, order);
}

static const fr_model_settings usual = {.size = sizeof usual,
                                        .dim = 16,
                                        .layers = 2,
                                        .tokens = 7,
                                        .time_dim = 6,
                                        .edge_dim = -1,
                                        .head_width = 10};

static void make(fixture *f, const char *directory, int order, int width, bool other_future,
                 fr_model_settings settings) {
    fr_error err;
    make_window(f, directory, order, width, other_future);
    OK(model_open(&f->m, "graphmixer", &settings, f->w, 7, &err));
    move_parameters(&f->m, 0.2);
}

/* ---- fast against forward ---- */

/* Which lengths of histories occur: 0, 1, K - 1, K, more. */
static void assert_lengths(const fixture *f, int32_t tokens) {
    bool seen[5] = {false};
    for (int32_t e = 0; e < f->w->events; e++)
        for (int32_t v = 0; v < f->w->destinations; v++) {
            int32_t n = window_destination_history(f->w, v, window_cut(f->w, e), INT32_MAX).count;
            const int32_t marks[] = {0, 1, tokens - 1, tokens};
            for (int k = 0; k < 4; k++) seen[k] |= n == marks[k];
            seen[4] |= n > tokens;
        }
    for (int k = 0; k < 5; k++) assert_true(seen[k]);
}

static void check_equal(const char *directory, int order, int width, fr_model_settings settings) {
    fixture f;
    make(&f, directory, order, width, false, settings);
    if (settings.tokens <= 30) assert_lengths(&f, (int32_t)settings.tokens);
    double off = difference(&f, 0, 0.1);
    if (!(off < 1e-5)) print_error("order %d, %d features: differ by %g\n", order, width, off);
    assert_true(off < 1e-5);
    drop(&f);
}

static void test_equal(void **state) {
    for (int width = 0; width <= FEATURES; width += FEATURES)
        for (int order = 0; order < 3; order++)
            for (int layers = 1 + SANITIZED; layers <= 3 - SANITIZED; layers++) {
                fr_model_settings s = usual;
                s.layers = layers;
                s.pool = layers % 2 ? FR_POOL_SLOTS : FR_POOL_REAL;
                check_equal(*state, order, width, s);
            }
    fr_model_settings odd = usual, wide = usual, ignoring = usual, longest = usual;
    odd.dim = 13, odd.tokens = 2, odd.time_dim = 1, odd.head_width = 1;
    wide.dim = 64, wide.tokens = 30, wide.time_dim = 32, wide.head_width = 100;
    ignoring.edge_dim = 0;
    longest.tokens = 320;
    check_equal(*state, FR_ORDER_STREAM, FEATURES, odd);
    check_equal(*state, FR_ORDER_STREAM, 0, wide);
    check_equal(*state, FR_ORDER_STREAM, FEATURES, ignoring);
    check_equal(*state, FR_ORDER_STREAM, FEATURES, longest);
    for (int newest = 0; newest < 2; newest++)
        for (int padded = 0; padded < 2; padded++) {
            fr_model_settings slots = usual;
            slots.padded = padded, slots.newest = newest;
            check_equal(*state, FR_ORDER_STRICT, newest ? FEATURES : 0, slots);
        }
}

/* Also with other blocks, workers, orders of events and instruction sets. */
static void test_bits(void **state) {
    const int blocks[] = {1, 7, 64, 100000};
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, FEATURES, false, usual);
    float *expected = all_scores(&f, 0, false), *plain = scores_in_steps(&f, model_plain, 0, 0, 1);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        f.m.fast_block = blocks[k];
        assert_same(&f, expected, all_scores(&f, 0, false));
    }
    f.m.fast_block = 0;
    assert_same(&f, expected, all_scores(&f, 2, true));
    assert_same(&f, expected, scores_in_steps(&f, graphmixer_fast, 0, 0, 17));
    for (simd_limit = SIMD_PORTABLE; simd_limit < SIMD_LEVELS; simd_limit++) {
        assert_same(&f, expected, all_scores(&f, 0, false));
        assert_same(&f, plain, scores_in_steps(&f, model_plain, 0, 0, 1));
    }
    free(expected);
    free(plain);
    drop(&f);
}

static void test_threads(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, FEATURES, false, usual);
    check_threads(&f);
    drop(&f);
}

static void test_saved(void **state) {
    fr_error err;
    fixture f;
    char *path = in_directory(*state, "m.safetensors");
    fr_training run = {.size = sizeof run, .epochs = 1, .batch_size = 60, .seed = 7, .rate = 0.001};
    make(&f, *state, FR_ORDER_STREAM, FEATURES, false, usual);
    float *expected = all_scores(&f, 0, false);
    OK(checkpoint_save(&f.m, &run, run.epochs, path, &err));
    model_close(&f.m);
    OK(checkpoint_load(&f.m, path, f.w, &err));
    assert_same(&f, expected, all_scores(&f, 0, false));
    free(expected);
    drop(&f);
}

/* ---- what a score depends on ---- */

/* It depends on nothing at or after the event except its source and time: no destination, feature
 * or later event. */
static void test_no_leak(void **state) {
    fixture f, other;
    for (int order = 0; order < 3; order++) {
        make(&f, *state, order, FEATURES, false, usual);
        float *expected = all_scores(&f, 0, false);
        make(&other, *state, order, FEATURES, true, usual);
        float *got = all_scores(&other, 0, false);
        assert_int_equal(f.w->destinations, other.w->destinations);
        assert_int_equal(f.w->sources, other.w->sources);
        size_t row = (size_t)f.w->destinations;
        assert_memory_equal(expected, got, (CHANGED + 1) * row * sizeof *got);
        assert_memory_not_equal(expected + (CHANGED + 2) * row, got + (CHANGED + 2) * row,
                                row * sizeof *got);
        free(expected);
        free(got);
        drop(&f);
        drop(&other);
    }
}

static real *parameter(const fixture *f, int number, size_t *count) {
    const param *p = &f->m.params.list.at[number];
    *count = (size_t)p->rows * (size_t)p->cols;
    return f->m.params.value + p->offset;
}

/* Weights of slots that no node has do not matter (MODELS 11.8). */
static void test_empty_slots(void **state) {
    fixture f;
    fr_model_settings s = usual;
    s.tokens = EVENTS;
    make(&f, *state, FR_ORDER_STREAM, 0, false, s);
    const graphmixer *g = f.m.own;
    int most = 0;
    for (int32_t v = 0; v < f.w->destinations; v++) {
        int n = f.w->destination_at[v + 1] - f.w->destination_at[v];
        if (n > most) most = n;
    }
    for (int32_t u = 0; u < f.w->sources; u++) {
        int n = f.w->source_at[u + 1] - f.w->source_at[u];
        if (n > most) most = n;
    }
    assert_true(most < EVENTS);
    float *fast = all_scores(&f, 0, false), *plain = scores_in_steps(&f, model_plain, 0, 0, 1);
    for (int l = 0; l < g->layers; l++) {
        size_t n;
        real *a1 = parameter(&f, g->layer[l].token_fc1.weight, &n);
        for (size_t k = 0; k < n; k++)
            if ((int)(k % EVENTS) >= most) a1[k] = NAN;
        real *a2 = parameter(&f, g->layer[l].token_fc2.weight, &n);
        for (size_t k = (size_t)(most * g->hidden); k < n; k++) a2[k] = NAN;
        real *bias = parameter(&f, g->layer[l].token_fc2.bias, &n);
        for (size_t k = (size_t)most; k < n; k++) bias[k] = NAN;
    }
    assert_same(&f, fast, all_scores(&f, 0, false));
    assert_same(&f, plain, scores_in_steps(&f, model_plain, 0, 0, 1));
    free(fast);
    free(plain);
    drop(&f);
}

/* Before the first event the mixer does not matter, and candidates with the same identity tie. */
static void test_identities_alone(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, FEATURES, false, usual);
    const graphmixer *g = f.m.own;
    size_t n, d = (size_t)g->dim;
    real *dst = parameter(&f, g->dst, &n);
    memcpy(dst + 3 * d, dst + 5 * d, d * sizeof *dst);
    float *before = all_scores(&f, 0, false);
    assert_memory_equal(&before[3], &before[5], sizeof *before);
    assert_memory_not_equal(&before[3], &before[4], sizeof *before);
    size_t from = f.m.params.list.at[g->proj.weight].offset,
           to = f.m.params.list.at[g->output.bias].offset;
    for (size_t k = from; k < to; k++) f.m.params.value[k] += 1;
    float *after = all_scores(&f, 0, false);
    size_t row = (size_t)f.w->destinations;
    assert_memory_equal(before, after, row * sizeof *after);
    assert_memory_not_equal(before + 9 * row, after + 9 * row, row * sizeof *after);
    free(before);
    free(after);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_equal),           WITH_DIRECTORY(test_bits),
        WITH_DIRECTORY(test_threads),         WITH_DIRECTORY(test_saved),
        WITH_DIRECTORY(test_no_leak),         WITH_DIRECTORY(test_empty_slots),
        WITH_DIRECTORY(test_identities_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
