/* test_tgn_fast.c - TGN's fast path against its plain forward pass, and equal bits.
 *
 * Accuracy: random streams with every parameter away from its initial value, neighbours from none
 * to more than the model reads, candidates never met, with and without features, all shapes of the
 * model, both orders, replayed from the start and after training. Bits: the same for any block,
 * worker, thread, order of events and instruction set, and for one event alone or among others. */
#include "base/simd.h"
#include "fast_path.h"
#include "models/tgn.h"
#include "train/trainer.h"

static const fr_model_settings usual = {
    .size = sizeof usual, .dim = 16, .heads = 2, .time_dim = 8, .edge_dim = -1, .neighbors = 10};

/* An empty memory at the start, or that of an epoch's end. */
static void make(fixture *f, const char *directory, int order, bool features,
                 fr_model_settings settings, bool trained) {
    fr_error err;
    late_window(f, directory, order, features ? 4 : 0);
    OK(model_open(&f->m, "tgn", &settings, f->w, 7, &err));
    move_parameters(&f->m, 0.3);
    if (trained) {
        trainer t;
        double loss;
        fr_training run = {
            .size = sizeof run, .epochs = 1, .batch_size = 20, .seed = 7, .rate = 0.001};
        OK(trainer_open(&t, &f->m, &run, NULL, &err));
        OK(trainer_epoch(&t, 0, NULL, &loss, &err));
        trainer_close(&t);
    }
    OK(f->m.kind->memory->replay(&f->m, trained ? f->w->train : 0, NULL, &err));
}

static int32_t first_event(const fixture *f) { return ((const tgn *)f->m.own)->from; }

/* ---- accuracy ---- */

/* Candidates with 0, 1, n - 1, n and more past events. */
static void cover(const fixture *f, int32_t most_read, int seen[5]) {
    const int32_t marks[] = {0, 1, most_read - 1, most_read};
    for (int32_t e = first_event(f); e < f->w->events; e++)
        for (int v = 0; v < f->w->destinations; v++) {
            int32_t count =
                window_destination_history(f->w, v, window_cut(f->w, e), INT32_MAX).count;
            for (int k = 0; k < 4; k++) seen[k] += count == marks[k];
            seen[4] += count > most_read;
        }
}

static void check_accuracy(const char *directory, int order, bool features,
                           fr_model_settings settings, bool trained) {
    fixture f;
    int seen[5] = {0};
    make(&f, directory, order, features, settings, trained);
    cover(&f, (int32_t)settings.neighbors, seen);
    double off = difference(&f, first_event(&f), 0);
    double most = sizeof(real) == sizeof(double) ? 1.2e-7 : 1e-5; /* scores are floats */
    if (off > most)
        print_error("# dim %lld heads %lld embedding %d features %d order %d trained %d: %g\n",
                    (long long)settings.dim, (long long)settings.heads, settings.embedding,
                    features, order, trained, off);
    assert_true(off <= most);
    for (int k = 0; k < 5 && !trained; k++) assert_true(seen[k] > 0);
    drop(&f);
}

static void test_accuracy(void **state) {
    for (int k = 0; k < 16; k += 1 + 4 * SANITIZED) { /* features, order, embedding, trained */
        fr_model_settings s = usual;
        s.embedding = k / 4 % 2;
        s.identities = k % 5 % 2;
        int order = k / 2 % 2 ? FR_ORDER_STRICT + k % 2 : FR_ORDER_STREAM;
        check_accuracy(*state, order, k % 2, s, k / 8);
    }
    for (int features = 0; features < 2; features++) {
        for (int heads = 1; heads <= 4; heads *= 4) {
            fr_model_settings s = usual;
            s.heads = heads;
            check_accuracy(*state, FR_ORDER_STREAM, features, s, false);
        }
        fr_model_settings odd = usual, wide = usual, few = usual;
        odd.dim = 13, odd.time_dim = 5, odd.heads = 3;
        wide.dim = 64, wide.time_dim = 32;
        few.neighbors = 1;
        check_accuracy(*state, FR_ORDER_STREAM, features, odd, false);
        check_accuracy(*state, FR_ORDER_STREAM, features, wide, true);
        check_accuracy(*state, FR_ORDER_STRICT, features, few, true);
    }
}

/* ---- bits ---- */

static float *replayed_scores(const fixture *f, int worker, bool backwards) {
    return scores_in_steps(f, tgn_fast, first_event(f), worker, backwards ? -1 : 1);
}

static void test_bits(void **state) {
    const int blocks[] = {1, 7, 64, 100000};
    for (int k = 0; k < 4; k++) {
        fixture f;
        fr_model_settings s = usual;
        s.embedding = k % 2;
        make(&f, *state, FR_ORDER_STREAM, k / 2, s, k / 2);
        float *expected = replayed_scores(&f, 0, false);
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            f.m.fast_block = blocks[i];
            assert_same(&f, expected, replayed_scores(&f, 0, false));
        }
        f.m.fast_block = 0;
        assert_same(&f, expected, replayed_scores(&f, 2, true));
        for (simd_limit = SIMD_PORTABLE; simd_limit < SIMD_LEVELS; simd_limit++)
            assert_same(&f, expected, replayed_scores(&f, 0, false));
        free(expected);
        drop(&f);
    }
}

/* ---- some events at once ---- */

/* In these streams most candidates change several times within a call. */
static void test_many(void **state) {
    const int most[] = {1, 2, 7, 16, 17, 31, 1000};
    for (int k = 0; k < 10; k += 1 + 2 * SANITIZED) { /* features, order, trained; last: identity */
        fixture f;
        fr_model_settings s = usual;
        if (k == 1) s.dim = 13, s.time_dim = 5, s.heads = 3;
        if (k == 2) s.neighbors = 1;
        if (k == 3) s.dim = 40, s.time_dim = 1, s.heads = 1;
        s.embedding = k >= 8;
        s.identities = k > 6;
        make(&f, *state, k / 2 % 2, k % 2, s, k / 4 % 2);
        float *expected = replayed_scores(&f, 0, false);
        for (size_t i = 0; i < sizeof most / sizeof *most; i++)
            for (int pattern = 0; pattern < 3; pattern++)
                check_many(&f, first_event(&f), expected, pattern, most[i], pattern == 2);
        for (int block = 1; block <= 1000; block *= 10) {
            f.m.fast_block = block;
            check_many(&f, first_event(&f), expected, 0, 7, false);
            check_many(&f, first_event(&f), expected, 0, 1000, false);
        }
        f.m.fast_block = 0;
        for (simd_limit = SIMD_PORTABLE; simd_limit < SIMD_LEVELS; simd_limit++)
            check_many(&f, first_event(&f), expected, 0, 1000, false);
        free(expected);
        drop(&f);
    }
}

static void test_threads(void **state) {
    fixture f;
    make(&f, *state, FR_ORDER_STREAM, true, usual, true);
    check_threads(&f);
    drop(&f);
}

/* What has not been replayed cannot be scored. */
static void test_not_replayed(void **state) {
    fr_error err;
    fixture f;
    fr_scorer_definition fast;
    float scores[MOST_DESTINATIONS];
    make(&f, *state, FR_ORDER_STREAM, false, usual, true);
    OK(tgn_fast(&f.m, 1, &fast, &err));
    fr_query query = {f.w->train - 1, f.w->source[f.w->train - 1], 0};
    FAILS(fast.part(fast.state, &query, 1, 0, 1, 0, scores, &err), FR_EUSAGE,
          "has not been replayed");
    fast.close(fast.state);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_accuracy), WITH_DIRECTORY(test_bits),
                                       WITH_DIRECTORY(test_many), WITH_DIRECTORY(test_threads),
                                       WITH_DIRECTORY(test_not_replayed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
