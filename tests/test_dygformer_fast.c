/* test_dygformer_fast.c - DyGFormer's fast path against its plain forward pass, and equal bits.
 *
 * Accuracy: random streams with every parameter away from its initial value, with and without pair
 * memory and edge features, both orders. Bits: the same for any block, worker, thread, order of
 * events, number of events per call and instruction set; candidates with equal inputs tie exactly;
 * scoring does not change the memory. */
#include "base/simd.h"
#include "dygformer_fixture.h"
#include "models/dygformer_fast.h"

static const char *const names[] = {"dygformer", "dygformer-lha"};

/* ---- accuracy ---- */

static int most_patches(const fixture *f) {
    return ((int)f->m.settings.history + (int)f->m.settings.patch - 1) / (int)f->m.settings.patch;
}

/* Events with sources of 0, 1, L - 1, L and more past events, and pairs met and not. */
typedef struct coverage {
    int length[5], met, unmet;
} coverage;

static void cover(const fixture *f, int32_t e, coverage *seen) {
    int32_t longest = (int32_t)f->m.settings.history - 1, u = f->w->source[e];
    int32_t length = window_source_history(f->w, u, window_cut(f->w, e), INT32_MAX).count;
    const int32_t marks[] = {0, 1, longest - 1, longest};
    for (int k = 0; k < 4; k++) seen->length[k] += length == marks[k];
    seen->length[4] += length > longest;
    bool met = window_pair_history(f->w, u, f->w->destination[e], window_cut(f->w, e)).count > 0;
    seen->met += met;
    seen->unmet += !met;
}

/* Tables by event take at most this many bytes; 0 = the default. */
static void check_within(const char *directory, int order, int width, const char *name,
                         fr_model_settings settings, size_t bytes) {
    fixture f;
    coverage seen = {0};
    make(&f, directory, order, width, name, settings);
    f.m.fast_tables = bytes;
    for (int32_t e = 0; e < f.w->events; e++) cover(&f, e, &seen);
    double off = difference(&f, 0, 0.02);
    if (off > 1e-5)
        print_error("# %s dim %lld heads %lld layers %lld patch %lld width %d order %d: %g\n", name,
                    (long long)settings.dim, (long long)settings.heads, (long long)settings.layers,
                    (long long)settings.patch, width, order, off);
    assert_true(off <= 1e-5);
    for (int k = 0; k < 5; k++) assert_true(seen.length[k] > 0);
    assert_true(seen.met > 0 && seen.unmet > 0);
    drop(&f);
}

static void check_accuracy(const char *directory, int order, int width, const char *name,
                           fr_model_settings settings) {
    check_within(directory, order, width, name, settings, 0);
}

static void test_accuracy(void **state) {
    for (int n = SANITIZED; n < 2; n++) { /* the second does what the first does, and more */
        check_accuracy(*state, FR_ORDER_STREAM, 0, names[n], usual);
        for (int order = 0; order < 3; order++) check_accuracy(*state, order, 4, names[n], usual);
        fr_model_settings one = usual, deep = usual, odd = usual, wide = usual, fine = usual;
        one.layers = 1, one.heads = 1, one.patch = 1;
        deep.layers = 3, deep.heads = 4, deep.patch = 12;
        odd.dim = 12, odd.heads = 3, odd.patch = 7, odd.time_trainable = true;
        wide.dim = 64, wide.history = 40, wide.patch = 10, wide.time_dim = 32;
        fine.patch = 1, fine.history = 24; /* sources that share logits */
        odd.identities = fine.identities = true;
        check_accuracy(*state, FR_ORDER_STREAM, 4, names[n], one);
        check_accuracy(*state, FR_ORDER_STREAM, 4, names[n], fine);
        if (!SANITIZED) check_accuracy(*state, FR_ORDER_STREAM, 0, names[n], deep);
        check_accuracy(*state, FR_ORDER_STREAM, 4, names[n], odd);
        /* features and cosines are computed when used */
        check_within(*state, FR_ORDER_STREAM, 4, names[n], odd, 1);
        if (!SANITIZED) check_accuracy(*state, FR_ORDER_STREAM, 0, names[n], wide);
    }
}

/* ---- bits ---- */

/* Blocks of one candidate, of about 7 and 64, and of all. */
static void test_bits(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, 4, "dygformer-lha", usual);
    const int side = most_patches(&f), rows[] = {1, 7 * 2 * side, 64 * 2 * side, 100000};
    float *expected = all_scores(&f, 0, false);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        f.m.fast_block = rows[k];
        assert_same(&f, expected, all_scores(&f, 0, false));
    }
    f.m.fast_block = 0;
    assert_same(&f, expected, all_scores(&f, 2, true));
    for (simd_limit = SIMD_PORTABLE; simd_limit < SIMD_LEVELS; simd_limit++)
        assert_same(&f, expected, all_scores(&f, 0, false));
    free(expected);
    drop(&f);
}

/* Most candidates change several times within a call of these streams. */
static void test_many(void **state) {
    const int most[] = {1, 2, 7, 1000};
    for (int k = SANITIZED; k < 4; k += 1 + SANITIZED) {
        fixture f;
        fr_model_settings s = usual;
        s.identities = k / 2;
        make(&f, *state, k % 2, k / 2 * 4, names[k % 2], s);
        float *expected = all_scores(&f, 0, false);
        for (size_t i = 0; i < sizeof most / sizeof *most; i++)
            for (int pattern = 0; pattern < 3; pattern++)
                check_many(&f, 0, expected, pattern, most[i], pattern == 2);
        f.m.fast_block = 1;
        check_many(&f, 0, expected, 0, 7, false);
        f.m.fast_block = 0;
        free(expected);
        drop(&f);
    }
}

static void test_threads(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, 0, "dygformer-lha", usual);
    check_threads(&f);
    drop(&f);
}

/* Candidates without a past, which no source can have met, are equal for the model. */
static void test_ties(void **state) {
    fixture f;
    int equal = 0, different = 0;
    make(&f, *state, FR_ORDER_STRICT, 4, "dygformer", usual);
    float *scores = all_scores(&f, 0, false);
    for (int32_t e = 0; e < f.w->events; e++) {
        const float *row = scores + (size_t)e * (size_t)f.w->destinations;
        int32_t first = -1;
        for (int32_t v = 0; v < f.w->destinations; v++) {
            if (window_destination_history(f.w, v, window_cut(f.w, e), 1).count) {
                different += first >= 0 && row[v] != row[first];
                continue;
            }
            if (first < 0) first = v;
            assert_memory_equal(&row[v], &row[first], sizeof *row);
            equal += v != first;
        }
    }
    assert_true(equal > 1000 && different > 100);
    free(scores);
    drop(&f);
}

/* Scoring changes nothing: neither memory nor parameters. */
static void test_scoring_mutates_nothing(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, 0, "dygformer-lha", usual);
    const lha *h = f.m.pairs;
    size_t pairs = (size_t)f.w->pairs, d = (size_t)h->dim;
    size_t sizes[] = {pairs * d * sizeof(real), pairs * sizeof *h->written,
                      (size_t)(f.w->events - h->from) * d * sizeof(real),
                      f.m.params.count * sizeof(real)};
    const void *parts[] = {h->value, h->written, h->after, f.m.params.value};
    void *before[4];
    for (int k = 0; k < 4; k++) {
        before[k] = malloc(sizes[k]);
        assert_non_null(before[k]);
        memcpy(before[k], parts[k], sizes[k]);
    }
    float *first = all_scores(&f, 0, false);
    assert_same(&f, first, all_scores(&f, 1, true));
    for (int k = 0; k < 4; k++) {
        assert_memory_equal(before[k], parts[k], sizes[k]);
        free(before[k]);
    }
    free(first);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_accuracy), WITH_DIRECTORY(test_bits),
        WITH_DIRECTORY(test_many),     WITH_DIRECTORY(test_threads),
        WITH_DIRECTORY(test_ties),     WITH_DIRECTORY(test_scoring_mutates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
