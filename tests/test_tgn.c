/* test_tgn.c - TGN's memory: which events update it, when, and that nothing else changes it.
 *
 * Parameter counts; the lazy scheme of training against the eager one of evaluation; empty
 * memories; scoring in any order; no knowledge of the future; the same bits with any number of
 * threads, after a save and a load, and after an interruption; wrong input is refused.
 */
#define _GNU_SOURCE
#include "base/rng.h"
#include "models/checkpoint.h"
#include "models/tgn.h"
#include "testing.h"
#include "train/trainer.h"

#include <math.h>

enum { EVENTS = 260, TIED = 3 /* events per time */ };

static const fr_model_settings usual = {.size = sizeof usual,
                                        .dim = 16,
                                        .heads = 2,
                                        .time_dim = 8,
                                        .edge_dim = -1,
                                        .neighbors = 4,
                                        .dropout = 0.1};

typedef struct fixture {
    fr_stream *stream;
    fr_window *w;
} fixture;

/* The first 24 events have all sources and destinations; event `changed` has another destination
 * and other features than it would have. */
static fixture open_changed(const char *directory, int events, int order, bool features,
                            int changed) {
    fr_error err;
    rng_key key = {.seed = 6, .purpose = RNG_TEST};
    fixture f;
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t%s\n", features ? ",f1,f2,f3,f4" : "");
    for (int i = 0; i < events; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t u = i < 24 ? (uint32_t)i % 9 : rng_below(key, e, 0, 9);
        uint32_t v = i < 24                    ? (uint32_t)i
                     : rng_below(key, e, 1, 3) ? 2 * u
                                               : rng_below(key, e, 2, 24);
        if (i == changed) v = (v + 1) % 24;
        (void)fprintf(file, "%u,%u,%d", u, v, 700 * (i / TIED));
        for (uint32_t k = 0; features && k < 4; k++)
            (void)fprintf(file, ",%g", 2 * rng_uniform(key, e, 3 + k) - (i == changed ? 2 : 1));
        (void)fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
    OK(fr_stream_open(path, NULL, NULL, &f.stream, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.8, .order = order_text(order)};
    OK(fr_window_open(f.stream, &p, NULL, &f.w, &err));
    return f;
}

static fixture open_fixture(const char *directory, int events, int order, bool features) {
    return open_changed(directory, events, order, features, -1);
}

static void close_fixture(fixture *f) {
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

static fr_model_settings with(int embedding) {
    fr_model_settings s = usual;
    s.embedding = embedding;
    return s;
}

static fr_training training(int64_t epochs) {
    return (fr_training){
        .size = sizeof(fr_training), .epochs = epochs, .batch_size = 60, .seed = 7, .rate = 0.001};
}

static void open_model(model *m, const fixture *f, fr_model_settings settings) {
    fr_error err;
    OK(model_open(m, "tgn", &settings, f->w, 7, &err));
}

/* One epoch and what it leaves in the memory. */
static void train(model *m, fr_training run, int threads) {
    fr_error err;
    trainer t;
    double loss;
    fr_context context = {.threads = threads};
    OK(trainer_open(&t, m, &run, &context, &err));
    for (int64_t epoch = 0; epoch < run.epochs; epoch++)
        OK(trainer_epoch(&t, epoch, &context, &loss, &err));
    trainer_close(&t);
}

static void replay(model *m, int32_t from) {
    fr_error err;
    OK(m->kind->memory->replay(m, from, NULL, &err));
}

/* Scores of all destinations at events from .. to - 1, [to - from, destinations]. */
static float *scores_of(const model *m, bool fast, int32_t from, int32_t to, bool backwards) {
    fr_error err;
    fr_scorer_definition scorer;
    size_t n = (size_t)m->w->destinations;
    float *scores = calloc((size_t)(to - from) * n, sizeof *scores);
    assert_non_null(scores);
    OK((fast ? m->kind->fast : model_plain)(m, 1, &scorer, &err));
    for (int32_t i = 0; i < to - from; i++) {
        int32_t at = backwards ? to - from - 1 - i : i, event = from + at;
        fr_query query = {event, m->w->source[event], window_time(m->w, event)};
        OK(scorer.part(scorer.state, &query, 1, 0, (int32_t)n, 0, scores + (size_t)at * n, &err));
    }
    scorer.close(scorer.state);
    return scores;
}

/* MODELS 7. */
static void test_parameter_counts(void **state) {
    fr_error err;
    fr_model_settings standard;
    OK(fr_options_defaults(fr_model_options, &standard, &err));
    for (int features = 0; features < 2; features++) {
        fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, features);
        for (int k = 0; k < 4; k++) {
            model m;
            standard.embedding = k % 2;
            standard.time_trainable = k / 2;
            open_model(&m, &f, standard);
            size_t expected = k % 2 ? 51713 : 103329, edges = k % 2 ? 192 : 384;
            assert_int_equal(params_trained(&m.params),
                             expected + 4 * edges * (size_t)features + (size_t)(k / 2 * 64));
            assert_int_equal(m.params.count,
                             params_trained(&m.params) + (size_t)((1 - k / 2) * 64));
            model_close(&m);
        }
        standard.edge_dim = 0; /* features that are there but not wanted */
        model m;
        open_model(&m, &f, standard);
        assert_int_equal(params_trained(&m.params), 51713 + 64);
        model_close(&m);
        standard.edge_dim = -1;
        close_fixture(&f);
    }
}

static void test_learns(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, false);
    for (int k = 0; k < 4; k++) {
        model m;
        trainer t;
        double loss, last = 1;
        fr_training run = training(1);
        fr_model_settings still = with(k % 2);
        run.objective = k / 2;
        run.rate = 0.005;
        still.dropout = 0;
        open_model(&m, &f, still);
        OK(trainer_open(&t, &m, &run, NULL, &err));
        trainer_begin(&t, 0);
        OK(trainer_gradient(&t, t.order, 60, &loss, &err));
        assert_true(fabs(loss - 0.6931) < 0.03);
        int rounds = 0; /* the same epoch again and again: its end can be memorised */
        for (; rounds < 600 && last >= 0.05; rounds++) {
            trainer_begin(&t, 0);
            for (int at = 0; at < 100; at += 20)
                OK(trainer_step(&t, t.order + at, 20, &last, &err));
        }
        assert_true(last < 0.05);
        trainer_close(&t);
        model_close(&m);
    }
    close_fixture(&f);
}

/* Training with steps of one event and without changing parameters ends with the memory that replay
 * makes. The states of replay are also all those in between (MODELS 11.7). */
static void test_eager_equals_lazy(void **state) {
    for (int k = 0; k < 4; k++) {
        fixture f = open_fixture(*state, EVENTS, k / 2, k % 2);
        fr_training run = training(1);
        run.rate = 0;
        run.batch_size = 1;
        model lazy, eager;
        open_model(&lazy, &f, usual);
        open_model(&eager, &f, usual);
        train(&lazy, run, 1);
        replay(&eager, 0);
        const tgn *a = lazy.own, *b = eager.own;
        int32_t end = f.w->train, moved = 0;
        for (int32_t x = 0; x < a->nodes; x++) {
            const real *s = tgn_state(b, tgn_place(b, f.w, x, end));
            assert_memory_equal(tgn_state(a, x), s, (size_t)a->dim * sizeof *s);
            fr_history last = window_node_history(f.w, x, end, 1);
            assert_true(last.count > 0);
            assert_true(a->updated[x] == window_time(f.w, last.event[last.count - 1]));
            assert_false(a->pending[x]);
            moved += s[0] != 0;
            assert_true(b->memory[(size_t)x * (size_t)b->dim] == 0); /* replay leaves it alone */
        }
        assert_int_equal(moved, a->nodes);
        model_close(&lazy);
        model_close(&eager);
        close_fixture(&f);
    }
}

/* An epoch begins with nothing remembered and nothing pending. */
static void test_reset(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, true);
    model m;
    trainer t;
    double loss;
    fr_training run = training(1);
    open_model(&m, &f, usual);
    uint64_t empty = tgn_memory.fingerprint(&m);
    OK(trainer_open(&t, &m, &run, NULL, &err));
    trainer_begin(&t, 0);
    for (int at = 0; at < 60; at += 20) OK(trainer_step(&t, t.order + at, 20, &loss, &err));
    assert_true(tgn_memory.fingerprint(&m) != empty);
    replay(&m, f.w->train);
    trainer_begin(&t, 1);
    assert_true(tgn_memory.fingerprint(&m) == empty);
    trainer_close(&t);
    model_close(&m);
    close_fixture(&f);
}

/* With an empty memory and no past, candidates cannot be distinguished. */
static void test_empty_memory(void **state) {
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STRICT, true);
    for (int k = 0; k < 4; k++) {
        model m;
        open_model(&m, &f, with(k % 2));
        replay(&m, 0);
        float *scores = scores_of(&m, k / 2, 0, TIED + 1, false);
        int n = f.w->destinations, different = 0;
        for (int i = 0; i < TIED; i++) /* all of the first time, in strict order */
            for (int v = 1; v < n; v++)
                assert_memory_equal(&scores[i * n], &scores[i * n + v], sizeof *scores);
        for (int v = 1; v < n; v++) different += scores[TIED * n] != scores[TIED * n + v];
        assert_true(different > 0);
        free(scores);
        model_close(&m);
    }
    close_fixture(&f);
}

static void test_scoring_changes_nothing(void **state) {
    for (int k = 0; k < 4; k++) {
        fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, k / 2);
        model m;
        open_model(&m, &f, with(k % 2));
        train(&m, training(1), 1);
        uint64_t trained = tgn_memory.fingerprint(&m);
        replay(&m, f.w->train);
        uint64_t before = tgn_memory.fingerprint(&m);
        assert_true(before != trained); /* the hash sees replayed states */
        for (int fast = 0; fast < 2; fast++) {
            float *there = scores_of(&m, fast, f.w->train, f.w->events, false);
            float *back = scores_of(&m, fast, f.w->train, f.w->events, true);
            size_t count = (size_t)(f.w->events - f.w->train) * (size_t)f.w->destinations;
            assert_memory_equal(there, back, count * sizeof *there);
            free(there);
            free(back);
        }
        assert_true(tgn_memory.fingerprint(&m) == before);
        model_close(&m);
        close_fixture(&f);
    }
}

/* In strict order, events of the same time see the same memory. The scored event and later events
 * are not known: a stream that ends there, or continues with another event, has the same scores. */
static void test_future_is_unknown(void **state) {
    for (int k = 0; k < 8; k++) {
        int order = k / 4, fast = k / 2 % 2;
        fixture all = open_fixture(*state, EVENTS, order, true);
        model m;
        open_model(&m, &all, with(k % 2));
        replay(&m, 0);
        size_t n = (size_t)all.w->destinations;
        float *scores = scores_of(&m, fast, 0, all.w->events, false);
        int same = 0;
        for (int32_t e = 1; e < all.w->events; e++) {
            if (window_cut(all.w, e) != window_cut(all.w, e - 1)) continue;
            if (all.w->source[e] != all.w->source[e - 1]) continue;
            assert_memory_equal(scores + (size_t)e * n, scores + (size_t)(e - 1) * n,
                                n * sizeof *scores);
            same++;
        }
        assert_true(order == FR_ORDER_STRICT ? same > 0 : same == 0);
        for (int32_t end = 30; end < EVENTS; end += 67) { /* the last event is the one scored */
            fixture part = open_changed(*state, end, order, true, end - 1);
            model short_one;
            open_model(&short_one, &part, with(k % 2));
            assert_int_equal(part.w->destinations, n);
            replay(&short_one, 0);
            float *last = scores_of(&short_one, fast, end - 1, end, false);
            assert_memory_equal(last, scores + (size_t)(end - 1) * n, n * sizeof *last);
            free(last);
            model_close(&short_one);
            close_fixture(&part);
        }
        free(scores);
        model_close(&m);
        close_fixture(&all);
    }
}

static void test_threads(void **state) {
    static const int threads[] = {1, 2, 5};
    for (int k = 0; k < 2; k++) {
        fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, !k);
        model first, m;
        open_model(&first, &f, with(k));
        train(&first, training(2), 1);
        for (int i = 1; i < 3; i++) {
            open_model(&m, &f, with(k));
            train(&m, training(2), threads[i]);
            assert_memory_equal(first.params.value, m.params.value,
                                m.params.count * sizeof *m.params.value);
            assert_true(tgn_memory.fingerprint(&m) == tgn_memory.fingerprint(&first));
            model_close(&m);
        }
        model_close(&first);
        close_fixture(&f);
    }
}

/* ---- on disk ---- */

static void assert_same_file(const char *a, const char *b) {
    mapping file;
    assert_int_equal(mapping_open(a, &file, NULL), FR_OK);
    assert_file(b, file.bytes, file.size);
    mapping_close(&file);
}

static bool stop(void *user) { return ++*(int *)user > 5; } /* epochs have 4 steps */

static void test_resume(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, true);
    char *straight = in_directory(*state, "straight"), *parts = in_directory(*state, "parts");
    static const char *const files[] = {"model.safetensors", "state.safetensors"};
    fr_training run = training(3);
    fr_model_settings settings;
    OK(fr_options_defaults(fr_model_options, &settings, &err));
    settings.dim = 16;
    OK(fr_train_run(f.w, "tgn", &settings, &run, straight, NULL, &err));
    int calls = 0;
    fr_context context = {.user = &calls, .cancel = stop};
    FAILS(fr_train_run(f.w, "tgn", &settings, &run, parts, &context, &err), FR_ECANCEL,
          "interrupted");
    run.resume = true;
    for (int i = 0; i < 2; i++) { /* the second time nothing is left to do */
        OK(fr_train_run(f.w, "tgn", &settings, &run, parts, NULL, &err));
        assert_same_file(in_directory(straight, files[0]), in_directory(parts, files[0]));
    }
    model m; /* and it has a memory */
    OK(checkpoint_load(&m, in_directory(parts, files[1]), f.w, &err));
    const tgn *c = m.own;
    for (int32_t x = 0; x < c->nodes; x++)
        assert_true(tgn_state(c, x)[0] != 0 && isfinite(tgn_state(c, x)[0]));
    model_close(&m);
    close_fixture(&f);
}

/* From the first test event on a model that was saved and loaded scores as before. */
static void test_save_and_load(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, true);
    char *path = in_directory(*state, "m.safetensors");
    for (int k = 0; k < 2; k++) {
        model m, back;
        fr_training run = training(1);
        open_model(&m, &f, with(k));
        train(&m, run, 1);
        OK(checkpoint_save(&m, &run, run.epochs, path, &err));
        OK(checkpoint_load(&back, path, f.w, &err));
        replay(&m, f.w->train);
        replay(&back, f.w->train);
        assert_true(tgn_memory.fingerprint(&m) != 0);
        for (int fast = 0; fast < 2; fast++) {
            float *before = scores_of(&m, fast, f.w->train, f.w->events, false);
            float *after = scores_of(&back, fast, f.w->train, f.w->events, false);
            size_t count = (size_t)(f.w->events - f.w->train) * (size_t)f.w->destinations;
            assert_memory_equal(before, after, count * sizeof *before);
            free(before);
            free(after);
        }
        model_close(&m);
        model_close(&back);
    }
    close_fixture(&f);
}

/* Puts a copy of a file with one piece replaced by another of the same length. */
static void put_changed(const char *to, const mapping *file, const void *piece, const void *by,
                        size_t size) {
    char *copy = malloc(file->size), *at;
    assert_non_null(copy);
    memcpy(copy, file->bytes, file->size);
    at = memmem(copy, file->size, piece, size);
    assert_non_null(at);
    memcpy(at, by, size);
    put_file(to, copy, file->size);
    free(copy);
}

static void test_refused(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, EVENTS, FR_ORDER_STREAM, false);
    char *path = in_directory(*state, "m.safetensors"), *bad = in_directory(*state, "bad");
    fr_training run = training(1);
    fr_model_settings odd = usual;
    model m, back;
    odd.heads = 5;
    FAILS(model_open(&m, "tgn", &odd, f.w, 7, &err), FR_EUSAGE,
          "dim 16 + time-dim 8 is not a multiple of heads 5");
    odd = usual;
    odd.dim = 1024;
    FAILS(model_open(&m, "tgn", &odd, f.w, 7, &err), FR_EUSAGE, "expected at most 1024 together");
    odd = usual;
    odd.edge_dim = 3;
    FAILS(model_open(&m, "tgn", &odd, f.w, 7, &err), FR_EUSAGE, "edge-dim 3, but the data has 0");

    open_model(&m, &f, usual);
    train(&m, run, 1);
    OK(checkpoint_save(&m, &run, run.epochs, path, &err));
    const tgn *c = m.own;
    mapping file;
    OK(mapping_open(path, &file, &err));
    put_changed(bad, &file, "state.memory", "state.memori", 12);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.memory");
    put_changed(bad, &file, "state.last_update", "state.last_updato", 17);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.last_update");
    char shape[32], turned[32];
    (void)snprintf(shape, sizeof shape, "\"shape\":[%d,16]", c->nodes);
    (void)snprintf(turned, sizeof turned, "\"shape\":[16,%d]", c->nodes);
    put_changed(bad, &file, shape, turned, strlen(shape));
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.memory");
    real memory[16];
    memcpy(memory, c->memory, sizeof memory);
    memory[3] = NAN;
    put_changed(bad, &file, c->memory, memory, sizeof memory);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.memory has the value");
    double updated[4];
    memcpy(updated, c->updated, sizeof updated);
    updated[1] = INFINITY;
    put_changed(bad, &file, c->updated, updated, sizeof updated);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.last_update has the value inf");
    mapping_close(&file);
    model_close(&m);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_parameter_counts),
                                       WITH_DIRECTORY(test_learns),
                                       WITH_DIRECTORY(test_eager_equals_lazy),
                                       WITH_DIRECTORY(test_reset),
                                       WITH_DIRECTORY(test_empty_memory),
                                       WITH_DIRECTORY(test_scoring_changes_nothing),
                                       WITH_DIRECTORY(test_future_is_unknown),
                                       WITH_DIRECTORY(test_threads),
                                       WITH_DIRECTORY(test_resume),
                                       WITH_DIRECTORY(test_save_and_load),
                                       WITH_DIRECTORY(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
