/* test_models.c - guarantees of every model: no look-ahead, and scoring changes nothing.
 *
 * All models are trained on one prefix. Their parameters and memory are then put, as from a
 * checkpoint, into models on other windows with the same prefix but another future. Every score of
 * an event must keep its bits, through the fast path and through the plain forward pass, in both
 * orders, with many events at one time. The same change one event earlier must change the scores;
 * otherwise the test would show nothing. */
#include "base/rng.h"
#include "models/checkpoint.h"
#include "testing.h"
#include "train/trainer.h"

enum { EVENTS = 130, TRAIN = 80, SOURCES = 6, DESTINATIONS = 11, FEATURES = 4, MOST_MODELS = 16 };
enum { OVERLAP = 4, FIRST_SHARED = SOURCES - OVERLAP }; /* sources that are destinations, too */

typedef struct row {
    uint32_t source, destination;
    int time;
    float feature[FEATURES];
} row;

typedef struct trained {
    char label[32];
    model m;     /* of the stream as it is, replayed */
    char *state; /* a file with its memory */
} trained;

typedef struct fixture {
    const char *directory;
    rng_key key;
    int order;
    bool shared; /* ids: destination 0 is source FIRST_SHARED, and some events are loops */
    row rows[EVENTS];
    fr_stream *stream;
    fr_window *w;
    trained models[MOST_MODELS];
    int count;
} fixture;

/* ---- streams ---- */

static void draw_features(rng_key key, int i, row *r) {
    for (uint32_t k = 0; k < FEATURES; k++)
        r->feature[k] = (float)(2 * rng_uniform(key, (uint64_t)i, 10 + k) - 1);
}

/* Half of the events share the time of the one before. Every node occurs in the training prefix, so
 * that all windows number them alike. */
static void draw_rows(rng_key key, row *rows) {
    int time = 0;
    for (int i = 0; i < EVENTS; i++) {
        uint64_t e = (uint64_t)i;
        bool habit = rng_below(key, e, 3, 2);
        time += rng_below(key, e, 0, 2) ? 0 : 50 + (int)rng_below(key, e, 1, 2000);
        rows[i].time = time;
        rows[i].source = i < DESTINATIONS ? (uint32_t)i % SOURCES : rng_below(key, e, 2, SOURCES);
        rows[i].destination = i < DESTINATIONS ? (uint32_t)i
                              : habit          ? rows[i].source
                                               : rng_below(key, e, 4, DESTINATIONS);
        draw_features(key, i, &rows[i]);
    }
}

/* Writes stream.csv; ids of destinations begin with `first`. */
static char *put_rows(const fixture *f, const row *rows, int count, uint32_t first) {
    char *path = in_directory(f->directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t,f0,f1,f2,f3\n");
    for (int i = 0; i < count; i++)
        (void)fprintf(file, "%u,%u,%d,%.4f,%.4f,%.4f,%.4f\n", rows[i].source,
                      first + rows[i].destination, rows[i].time, (double)rows[i].feature[0],
                      (double)rows[i].feature[1], (double)rows[i].feature[2],
                      (double)rows[i].feature[3]);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The first `count` rows as a window that begins with the same training prefix. */
static fr_window *open_window(const fixture *f, const row *rows, int count, fr_stream **stream) {
    fr_error err;
    fr_window *w;
    char *path = put_rows(f, rows, count, f->shared ? FIRST_SHARED : 1000);
    fr_protocol protocol = {.size = sizeof protocol,
                            .train_share = (TRAIN + 0.5) / count,
                            .order = order_text(f->order)};
    fr_import how = {.size = sizeof how, .shared_ids = f->shared};
    OK(fr_stream_open(path, &how, NULL, stream, &err));
    OK(fr_window_open(*stream, &protocol, NULL, &w, &err));
    assert_int_equal(w->train, TRAIN);
    assert_int_equal(w->events, count);
    assert_int_equal(w->sources, SOURCES);
    assert_int_equal(w->destinations, DESTINATIONS);
    assert_int_equal(w->nodes, SOURCES + DESTINATIONS - (f->shared ? OVERLAP : 0));
    return w;
}

/* ---- models ---- */

static fr_model_settings small_settings(void) {
    fr_error err;
    fr_model_settings s;
    OK(fr_options_defaults(fr_model_options, &s, &err));
    s.dim = 8;
    s.history = 9;
    s.patch = 4;
    s.time_dim = 4;
    s.neighbors = 4;
    s.tokens = 6;
    s.head_width = 7;
    return s;
}

static const fr_training run = {
    .size = sizeof run, .epochs = 1, .batch_size = 20, .seed = 7, .rate = 0.01};

static void train(fixture *f, const char *name, fr_model_settings settings, const char *label) {
    fr_error err;
    trained *out = &f->models[f->count++];
    trainer t;
    double loss;
    (void)snprintf(out->label, sizeof out->label, "%s", label);
    OK(model_open(&out->m, name, &settings, f->w, 7, &err));
    OK(trainer_open(&t, &out->m, &run, NULL, &err));
    OK(trainer_epoch(&t, 0, NULL, &loss, &err));
    trainer_close(&t);
    const model_memory *memory = out->m.kind->memory;
    if (!memory) return;
    safetensors_writer file = {0};
    out->state = path_join(f->directory, label);
    OK(safetensors_writer_open(&file, out->state, &err));
    OK(memory->save(&out->m, &file, &err));
    OK(safetensors_writer_commit(&file, &err));
    safetensors_writer_discard(&file);
    OK(memory->replay(&out->m, TRAIN, NULL, &err));
}

/* Every model there is, and some with other options, trained. */
static void open_fixture(fixture *f, const char *directory, int order, bool shared, uint64_t seed) {
    *f = (fixture){.directory = directory,
                   .order = order,
                   .shared = shared,
                   .key = {.seed = seed, .purpose = RNG_TEST}};
    draw_rows(f->key, f->rows);
    f->w = open_window(f, f->rows, EVENTS, &f->stream);
    fr_model_settings small = small_settings(), identity = small;
    identity.embedding = FR_EMBEDDING_IDENTITY;
    const fr_model *facts;
    int k = 0;
    for (; (facts = fr_model_at(k)); k++) train(f, facts->name, small, facts->name);
    train(f, "tgn", identity, "tgn-identity");
    fr_model_settings other = identity; /* options of the published settings */
    other.attend = 4, other.empty = FR_EMPTY_PAD, other.padded = true;
    other.newest = FR_NEWEST_LAST, other.message = FR_MESSAGE_MLP, other.clock = FR_CLOCK_FILE;
    other.write_every = 5;
    train(f, "craft-r", other, "craft-r-other");
    train(f, "tgn", other, "tgn-other");
    train(f, "graphmixer", other, "graphmixer-other");
    train(f, "patch-lha", other, "patch-lha-other");
    small.identities = other.identities = true;
    train(f, "dygformer-lha", small, "dygformer-lha-identities");
    train(f, "tgn", small, "tgn-identities");
    train(f, "tgn", other, "tgn-other-identities");
    assert_int_equal(f->count, k + 8);
}

static void close_fixture(fixture *f) {
    for (int k = 0; k < f->count; k++) {
        model_close(&f->models[k].m);
        free(f->models[k].state);
    }
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

/* The trained model on another window. */
static void carry(const trained *from, const fr_window *w, model *to) {
    fr_error err;
    OK(model_open(to, from->m.kind->facts.name, &from->m.settings, w, 0, &err));
    assert_int_equal(to->params.count, from->m.params.count);
    memcpy(to->params.value, from->m.params.value, to->params.count * sizeof(real));
    if (!to->kind->memory) return;
    safetensors file = {0};
    OK(safetensors_open(from->state, &file, &err));
    OK(to->kind->memory->load(to, &file, &err));
    safetensors_close(&file);
    OK(to->kind->memory->replay(to, TRAIN, NULL, &err));
}

typedef float scores[DESTINATIONS];

static void score(const fr_scorer *scorer, const fr_window *w, int32_t event, int worker,
                  float *to) {
    fr_error err;
    fr_query query = {event, w->source[event], window_time(w, event)};
    OK(fr_scorer_score(scorer, &query, 1, worker, to, &err));
}

static fr_scorer *open_way(const model *m, bool fast, int threads) {
    fr_error err;
    fr_scorer_definition is;
    OK((fast ? m->kind->fast : model_plain)(m, threads, &is, &err));
    return scorer_of(m->w, is);
}

/* Scores of an event through plain forward and the fast path. The fast path scores an earlier event
 * first, because what it keeps from event to event must not matter. */
static void score_both(const model *m, int32_t event, scores to[2]) {
    for (int fast = 0; fast < 2; fast++) {
        fr_scorer *scorer = open_way(m, fast, 1);
        if (fast) score(scorer, m->w, TRAIN, 0, to[fast]);
        score(scorer, m->w, event, 0, to[fast]);
        fr_scorer_close(scorer);
    }
}

/* True for models that a change does not affect. */
typedef bool passed_over(const trained *t);

/* Compares event `event` of the stream with event `place` of a changed one, for all other models.
 */
static void compare_some(const fixture *f, int32_t event, const row *rows, int count, int32_t place,
                         bool same, const char *what, passed_over *pass) {
    fr_stream *stream;
    fr_window *w = open_window(f, rows, count, &stream);
    for (int k = 0; k < f->count; k++) {
        model m;
        scores expected[2], found[2];
        if (pass && pass(&f->models[k])) continue;
        carry(&f->models[k], w, &m);
        score_both(&f->models[k].m, event, expected);
        score_both(&m, place, found);
        for (int fast = 0; fast < 2; fast++) {
            if (!memcmp(expected[fast], found[fast], sizeof(scores)) == same) continue;
            print_error("# %s, %s, order %d, event %d, %s: scores %s\n", f->models[k].label,
                        fast ? "fast path" : "plain forward", f->order, event, what,
                        same ? "differ" : "are the same");
            assert_true(false);
        }
        model_close(&m);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

static void compare(const fixture *f, int32_t event, const row *rows, int count, int32_t place,
                    bool same, const char *what) {
    compare_some(f, event, rows, count, place, same, what, NULL);
}

/* ---- no look ahead ---- */

typedef enum change { REDRAWN, TURNED, REMOVED, CHANGES } change;
static const char *const change_names[] = {"later events redrawn", "later events turned round",
                                           "later events removed"};

/* Another event with the same time. */
static row redraw(const fixture *f, int i, row old) {
    row r = old;
    r.source = rng_below(f->key, (uint64_t)i, 30, SOURCES);
    r.destination =
        (old.destination + 1 + rng_below(f->key, (uint64_t)i, 31, DESTINATIONS - 1)) % DESTINATIONS;
    draw_features((rng_key){.seed = f->key.seed + 99, .purpose = RNG_TEST}, i, &r);
    return r;
}

/* Everything from the cut on is changed, except the source and time of event i, which are its
 * query. Returns the number of events left. */
static int change_future(const fixture *f, int32_t i, change how, row *rows) {
    int32_t cut = window_cut(f->w, i);
    memcpy(rows, f->rows, sizeof f->rows);
    for (int j = cut; j < EVENTS; j++) {
        row from = how == TURNED ? f->rows[cut + EVENTS - 1 - j] : redraw(f, j, f->rows[j]);
        from.time = rows[j].time;
        if (how == REDRAWN && j > i)
            from.time = rows[j - 1].time + (int)rng_below(f->key, (uint64_t)j, 32, 3);
        if (j == i) from.source = rows[i].source;
        rows[j] = from;
    }
    return how == REMOVED ? i + 1 : EVENTS;
}

/* The newest event of i's past now has i's source, another destination and other features. */
static void change_past(const fixture *f, int32_t i, row *rows) {
    int32_t last = window_cut(f->w, i) - 1;
    assert_true(last >= TRAIN);
    memcpy(rows, f->rows, sizeof f->rows);
    rows[last] = redraw(f, last, rows[last]);
    rows[last].source = rows[i].source;
}

static void test_no_look_ahead(void **state) {
    for (int k = 0; k < 7; k++) {
        fixture f;
        open_fixture(&f, *state, k % 3, k > 3, 3 + (uint64_t)k);
        for (int32_t i = TRAIN + 9; i < EVENTS; i += 13) {
            row rows[EVENTS];
            for (int how = 0; how < CHANGES; how++) {
                int count = change_future(&f, i, (change)how, rows);
                compare(&f, i, rows, count, i, true, change_names[how]);
            }
            change_past(&f, i, rows);
            compare(&f, i, rows, EVENTS, i, false, "newest past event changed");
        }
        close_fixture(&f);
    }
}

/* Test events with the time of the one before, of the same source. In strict order neither sees the
 * other, so their lines may be exchanged. In stream order the first is in the past of the second;
 * in batch order only if it is in an earlier batch. */
static void test_events_of_one_time(void **state) {
    for (int order = 0; order < 3; order++) {
        fixture f;
        int cases = 0;
        bool strict = order == FR_ORDER_STRICT;
        open_fixture(&f, *state, order, false, 11);
        for (int32_t i = EVENTS - 1; i > TRAIN + 2 && cases < 3; i--) {
            row rows[EVENTS];
            if (f.rows[i].time != f.rows[i - 1].time) continue;
            cases++;
            memcpy(rows, f.rows, sizeof rows);
            rows[i - 1] = redraw(&f, i - 1, rows[i - 1]);
            rows[i - 1].source = rows[i].source;
            bool hidden = strict || (order == FR_ORDER_BATCH && (i - TRAIN) % BATCH);
            compare(&f, i, rows, EVENTS, i, hidden, "the line before changed");
            row swap = rows[i];
            rows[i] = rows[i - 1];
            rows[i - 1] = swap;
            if (strict) compare(&f, i, rows, EVENTS, i - 1, true, "lines exchanged");
        }
        assert_int_equal(cases, 3);
        close_fixture(&f);
    }
}

/* ---- scoring changes nothing ---- */

enum { TESTED = EVENTS - TRAIN };

/* All test events forwards, backwards and at random, by two workers. */
static void check_any_order(const trained *t, fr_scorer *scorer) {
    scores first[TESTED], again;
    rng_key key = {.seed = 8, .purpose = RNG_TEST};
    uint64_t before = model_fingerprint(&t->m);
    for (int i = 0; i < TESTED; i++) score(scorer, t->m.w, TRAIN + i, 0, first[i]);
    for (int i = 0; i < 3 * TESTED; i++) {
        int at = i < TESTED ? TESTED - 1 - i : (int)rng_below(key, (uint64_t)i, 0, TESTED);
        score(scorer, t->m.w, TRAIN + at, i % 2, again);
        assert_memory_equal(again, first[at], sizeof again);
    }
    assert_true(model_fingerprint(&t->m) == before);
}

/* Plain forward over blocks of candidates of several sizes, backwards, several events at a time. */
static void check_any_block(const trained *t) {
    scores expected[TESTED];
    fr_scorer *plain = open_way(&t->m, false, 1);
    for (int i = 0; i < TESTED; i++) score(plain, t->m.w, TRAIN + i, 0, expected[i]);
    fr_scorer_close(plain);
    tape own = {.params = &t->m.params};
    for (int block = 1; block <= 7; block += 3) {
        for (int v = 0; v < DESTINATIONS; v += block) {
            int32_t event[TESTED], from[TESTED + 1] = {0}, candidate[TESTED * 7];
            for (int i = 0; i < TESTED; i++) {
                event[i] = EVENTS - 1 - i;
                int count = DESTINATIONS - v < block ? DESTINATIONS - v : block;
                from[i + 1] = from[i] + count;
                for (int k = 0; k < count; k++) candidate[from[i] + k] = v + count - 1 - k;
            }
            tape_reset(&own);
            model_batch batch = {TESTED, event, from, candidate};
            tensor y = t->m.kind->forward(&t->m, &own, &batch, NULL);
            assert_int_equal(own.status, FR_OK);
            for (int i = 0; i < TESTED; i++)
                for (int k = from[i]; k < from[i + 1]; k++) {
                    float found = (float)y.v[k];
                    assert_memory_equal(&found, &expected[event[i] - TRAIN][candidate[k]],
                                        sizeof found);
                }
        }
    }
    tape_free(&own);
}

static void test_scoring_changes_nothing(void **state) {
    for (int turn = 0; turn < 4; turn++) {
        fixture f;
        open_fixture(&f, *state, turn % 3, turn == 3, 21);
        for (int k = 0; k < f.count; k++) {
            trained *t = &f.models[k];
            for (int fast = 0; fast < 2; fast++) {
                fr_scorer *scorer = open_way(&t->m, fast, 2);
                check_any_order(t, scorer);
                fr_scorer_close(scorer);
            }
            check_any_block(t);
            uint64_t before = model_fingerprint(&t->m); /* it must notice a change */
            if (t->m.kind->memory) {
                t->m.kind->memory->reset(&t->m);
                assert_true(model_fingerprint(&t->m) != before);
            }
            before = model_fingerprint(&t->m);
            t->m.params.value[t->m.params.count / 2] += 1;
            assert_true(model_fingerprint(&t->m) != before);
        }
        close_fixture(&f);
    }
}

/* Records of a checkpoint do not depend on threads and shards. */
static void test_records(void **state) {
    fr_error err;
    fixture f;
    static const int threads[] = {1, 2, 5}, shards[] = {64, 7, 1};
    open_fixture(&f, *state, FR_ORDER_STREAM, true, 31);
    for (int k = 0; k < f.count; k++) {
        char *path = in_directory(*state, "model.safetensors");
        OK(checkpoint_save(&f.models[k].m, &run, run.epochs, path, &err));
        fr_ranking *first = NULL;
        for (int turn = 0; turn < 9; turn++) {
            fr_context context = {.threads = threads[turn % 3]};
            fr_rank_settings settings = {
                .size = sizeof settings, .shard = shards[turn / 3], .popularity_power = 1};
            fr_scorer *scorer;
            fr_ranking *ranking;
            OK(fr_scorer_open(path, f.w, 0, &context, &scorer, &err));
            OK(fr_rank_run(scorer, &settings, &context, &ranking, &err));
            fr_scorer_close(scorer);
            if (!first) {
                first = ranking;
                continue;
            }
            fr_ranking_facts a = fr_ranking_get(first), b = fr_ranking_get(ranking);
            assert_int_equal(b.count, a.count);
            assert_memory_equal(b.records, a.records, (size_t)a.count * sizeof *a.records);
            fr_ranking_close(ranking);
        }
        fr_ranking_close(first);
    }
    close_fixture(&f);
}

static void until_verify(void *user, const char *stage, uint64_t done, uint64_t total,
                         const char *unit) {
    (void)done, (void)total, (void)unit;
    *(bool *)user |= !strcmp(stage, "verify");
}

static bool is_verifying(void *user) { return *(bool *)user; }

/* Plain forward is slow, so verifying reports progress and can be cancelled. */
static void test_verify_stops(void **state) {
    fr_error err;
    fixture f;
    bool verifying = false;
    fr_context context = {.user = &verifying, .progress = until_verify, .cancel = is_verifying};
    fr_rank_settings settings = {
        .size = sizeof settings, .shard = 64, .popularity_power = 1, .verify = 5};
    fr_scorer *scorer;
    fr_ranking *ranking;
    open_fixture(&f, *state, FR_ORDER_STREAM, false, 31);
    char *path = in_directory(*state, "model.safetensors");
    OK(checkpoint_save(&f.models[0].m, &run, run.epochs, path, &err));
    OK(fr_scorer_open(path, f.w, 0, &context, &scorer, &err));
    FAILS(fr_rank_run(scorer, &settings, &context, &ranking, &err), FR_ECANCEL, "interrupted");
    fr_scorer_close(scorer);
    close_fixture(&f);
}

/* ---- shared ids ---- */

static bool remembers_pairs(const trained *t) { return t->m.pairs != NULL; }

/* In one space of nodes, a past event means the same with source and destination exchanged: every
 * bit stays the same. The pair memory of LHA has directed pairs. In two spaces of nodes the same
 * change affects every model. */
static void test_roles_do_not_matter(void **state) {
    for (int turn = 0; turn < 6; turn++) {
        fixture f;
        int turned = 0;
        row rows[EVENTS];
        open_fixture(&f, *state, turn % 3, turn < 3, 41);
        memcpy(rows, f.rows, sizeof rows);
        for (int i = TRAIN; i < EVENTS - 8; i++) {
            uint32_t u = rows[i].source, v = rows[i].destination;
            if (u < FIRST_SHARED || v >= OVERLAP || u == v + FIRST_SHARED) continue;
            rows[i].source = v + FIRST_SHARED;
            rows[i].destination = u - FIRST_SHARED;
            turned++;
        }
        assert_true(turned >= 4);
        for (int32_t i = EVENTS - 8; i < EVENTS; i += 3)
            compare_some(&f, i, rows, EVENTS, i, f.shared, "past events turned round",
                         remembers_pairs);
        close_fixture(&f);
    }
}

/* The fast path of every model against its plain forward. */
static void test_shared_fast(void **state) {
    for (int order = 0; order < 3; order++) {
        fixture f;
        open_fixture(&f, *state, order, true, 51);
        for (int k = 0; k < f.count; k++)
            for (int32_t i = TRAIN; i < EVENTS; i += 2) {
                scores found[2];
                float most = 1e-3f;
                score_both(&f.models[k].m, i, found);
                for (int v = 0; v < DESTINATIONS; v++) most = fmaxf(most, fabsf(found[0][v]));
                for (int v = 0; v < DESTINATIONS; v++) {
                    if (fabsf(found[0][v] - found[1][v]) <= 1e-5f * most) continue;
                    print_error("# %s, event %d, candidate %d: %g forward, %g fast\n",
                                f.models[k].label, i, v, (double)found[0][v], (double)found[1][v]);
                    assert_true(false);
                }
            }
        close_fixture(&f);
    }
}

/* A checkpoint knows whether its nodes are one space. */
static void test_shared_checkpoints(void **state) {
    fr_error err;
    fixture f = {.directory = *state, .key = {.seed = 61, .purpose = RNG_TEST}};
    char *path[2] = {in_directory(*state, "apart.safetensors"),
                     in_directory(*state, "shared.safetensors")};
    fr_stream *stream[2];
    fr_window *w[2];
    fr_model_settings small = small_settings();
    model m;
    draw_rows(f.key, f.rows);
    for (int shared = 0; shared < 2; shared++) {
        fr_import how = {.size = sizeof how, .shared_ids = shared};
        fr_protocol protocol = {.size = sizeof protocol, .train_share = 0.7};
        char *csv = put_rows(&f, f.rows, EVENTS, FIRST_SHARED);
        OK(fr_stream_open(csv, &how, NULL, &stream[shared], &err));
        OK(fr_window_open(stream[shared], &protocol, NULL, &w[shared], &err));
        OK(model_open(&m, "graphmixer", &small, w[shared], 7, &err));
        m.trained = w[shared]->train;
        OK(checkpoint_save(&m, &run, run.epochs, path[shared], &err));
        model_close(&m);
    }
    for (int shared = 0; shared < 2; shared++) {
        OK(checkpoint_load(&m, path[shared], w[shared], &err));
        model_close(&m);
        FAILS(checkpoint_load(&m, path[shared], w[!shared], &err), FR_EINPUT,
              shared ? "that share ids, but in this data they are apart"
                     : "that are apart, but in this data they share ids");
    }
    for (int shared = 0; shared < 2; shared++) {
        fr_window_close(w[shared]);
        fr_stream_close(stream[shared]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_no_look_ahead),
                                       WITH_DIRECTORY(test_events_of_one_time),
                                       WITH_DIRECTORY(test_scoring_changes_nothing),
                                       WITH_DIRECTORY(test_records),
                                       WITH_DIRECTORY(test_verify_stops),
                                       WITH_DIRECTORY(test_roles_do_not_matter),
                                       WITH_DIRECTORY(test_shared_fast),
                                       WITH_DIRECTORY(test_shared_checkpoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
