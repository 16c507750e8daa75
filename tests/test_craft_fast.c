/* test_craft_fast.c - CRAFT's fast path against its plain forward pass, and equal bits.
 *
 * Accuracy: random streams with every parameter away from its initial value, histories from empty
 * to longer than the model reads, candidates never met, all shapes of the model, both orders. Bits:
 * the same for any block, worker, thread, order of events and instruction set; candidates with
 * equal inputs tie exactly. */
#include "base/simd.h"
#include "fast_path.h"
#include "models/craft.h"

static const fr_model_settings usual = {
    .size = sizeof usual, .dim = 16, .heads = 2, .layers = 2, .history = 12, .head_layers = 2};

static void make(fixture *f, const char *directory, int order, const char *name,
                 fr_model_settings settings) {
    fr_error err;
    late_window(f, directory, order, 0);
    OK(model_open(&f->m, name, &settings, f->w, 7, &err));
    move_parameters(&f->m, 0.3);
}

/* ---- accuracy ---- */

/* Events with sources of 0, 1, L - 1, L and more past events. */
static void cover(const fixture *f, int32_t longest, int seen[5]) {
    const int32_t marks[] = {0, 1, longest - 1, longest};
    for (int32_t e = 0; e < f->w->events; e++) {
        int32_t length =
            window_source_history(f->w, f->w->source[e], window_cut(f->w, e), INT32_MAX).count;
        for (int k = 0; k < 4; k++) seen[k] += length == marks[k];
        seen[4] += length > longest;
    }
}

static void check_accuracy(const char *directory, int order, const char *name,
                           fr_model_settings settings) {
    fixture f;
    int seen[5] = {0};
    make(&f, directory, order, name, settings);
    cover(&f, (int32_t)settings.history, seen);
    double off = difference(&f, 0, 0);
    double most = sizeof(real) == sizeof(double) ? 1.2e-7 : 1e-5; /* scores are floats */
    if (off > most)
        print_error("# %s dim %lld heads %lld layers %lld head layers %lld order %d: %g\n", name,
                    (long long)settings.dim, (long long)settings.heads, (long long)settings.layers,
                    (long long)settings.head_layers, order, off);
    assert_true(off <= most);
    for (int k = 0; k < 5; k++) assert_true(seen[k] > 0);
    drop(&f);
}

static void test_accuracy(void **state) {
    static const char *const names[] = {"craft", "craft-r"};
    for (int n = 0; n < 2; n++) {
        check_accuracy(*state, FR_ORDER_STRICT, names[n], usual);
        check_accuracy(*state, FR_ORDER_BATCH, names[n], usual);
        for (int layers = 1 + SANITIZED; layers <= 3 - SANITIZED; layers++)
            for (int heads = 1; heads <= 4; heads *= 2)
                for (int head_layers = 1; head_layers <= 2; head_layers++) {
                    fr_model_settings s = usual;
                    s.layers = layers, s.heads = heads, s.head_layers = head_layers;
                    check_accuracy(*state, FR_ORDER_STREAM, names[n], s);
                }
        fr_model_settings odd = usual, wide = usual;
        odd.dim = 12, odd.heads = 4;
        wide.dim = 64, wide.history = 40;
        check_accuracy(*state, FR_ORDER_STREAM, names[n], odd);
        check_accuracy(*state, FR_ORDER_STREAM, names[n], wide);
        for (int head_layers = 1; head_layers <= 2; head_layers++) { /* attention over 5 of 12 */
            fr_model_settings spans = usual;
            spans.attend = 5, spans.head_layers = head_layers;
            spans.empty = head_layers == 1 ? FR_EMPTY_PAD : FR_EMPTY_ZERO;
            check_accuracy(*state, FR_ORDER_STREAM, names[n], spans);
        }
    }
}

/* In the first step of training norms see exact zeros; scores must be numbers there too. */
static void test_initial_parameters(void **state) {
    fr_error err;
    fixture f;
    fr_scorer_definition fast;
    float scores[MOST_DESTINATIONS];
    late_window(&f, *state, FR_ORDER_STREAM, 0);
    OK(model_open(&f.m, "craft-r", &usual, f.w, 7, &err));
    OK(craft_fast(&f.m, 1, &fast, &err));
    for (int32_t e = 0; e < f.w->events; e++) {
        score(&f, &fast, e, 0, scores);
        for (int v = 0; v < f.w->destinations; v++) assert_true(isfinite(scores[v]));
    }
    fast.close(fast.state);
    drop(&f);
}

/* ---- bits ---- */

static void test_bits(void **state) {
    const int blocks[] = {1, 7, 16, 64, 100000};
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, "craft-r", usual);
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

static void test_threads(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, "craft", usual);
    check_threads(&f);
    drop(&f);
}

/* With one embedding for all, candidates differ only in elapsed time and, for CRAFT-R, in how often
 * they occur in the history. If these agree, scores must be equal, wherever the candidates are. */
static void check_ties(const char *directory, const char *name) {
    fixture f;
    int equal = 0, different = 0;
    make(&f, directory, FR_ORDER_STREAM, name, usual);
    const craft *c = f.m.own;
    real *item = f.m.params.value + f.m.params.list.at[c->item].offset;
    for (int v = 1; v < f.w->destinations; v++)
        memcpy(item + v * c->dim, item, (size_t)c->dim * sizeof *item);
    float *scores = all_scores(&f, 0, false);
    for (int32_t e = 0; e < f.w->events; e++) {
        const float *row = scores + (size_t)e * (size_t)f.w->destinations;
        int32_t count[MOST_DESTINATIONS] = {0}, cut = window_cut(f.w, e);
        fr_history past = window_source_history(f.w, f.w->source[e], cut, c->history);
        for (int p = 0; p < past.count; p++) count[f.w->destination[past.event[p]]]++;
        for (int32_t a = 0; a < f.w->destinations; a++)
            for (int32_t b = 0; b < a; b++) {
                bool same = craft_elapsed(f.w, e, cut, a) == craft_elapsed(f.w, e, cut, b) &&
                            (!c->repeat || count[a] == count[b]);
                if (same) assert_memory_equal(&row[a], &row[b], sizeof *row);
                equal += same;
                different += row[a] != row[b];
            }
    }
    assert_true(equal > 1000);
    assert_true(different > 1000);
    free(scores);
    drop(&f);
}

static void test_ties(void **state) {
    check_ties(*state, "craft");
    check_ties(*state, "craft-r");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_accuracy), WITH_DIRECTORY(test_initial_parameters),
        WITH_DIRECTORY(test_bits), WITH_DIRECTORY(test_threads), WITH_DIRECTORY(test_ties)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
