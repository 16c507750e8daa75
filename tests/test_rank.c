/* test_rank.c - ranks, records and the guarantees of the engine.
 *
 * Ranks by counting are compared with ranks by sorting, on random score vectors with many ties.
 * Records are equal for any number of threads and any shard. Every event is observed exactly once
 * and never too early. Also score files and dumps, and errors that name what is wrong. */
#include "base/json.h"
#include "base/npy.h"
#include "base/rng.h"
#include "rank/engine.h"
#include "testing.h"

#include <math.h>

static const fr_rank_settings plain = {.size = sizeof plain, .shard = 64, .popularity_power = 1};

/* ---- a stream and a scorer of our own ---- */

static fr_stream *make_stream(const char *directory, uint64_t seed, int events) {
    fr_error err;
    rng_key key = {.seed = seed, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < events; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 5 + 30 * (uint32_t)i / (uint32_t)events; /* some destinations come late */
        (void)fprintf(file, "%u,%u,%d\n", rng_below(key, e, 0, 7), 3 * rng_below(key, e, 1, reach),
                      i / 3);
    }
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

/* Scores from few distinct values, so ties abound; counts what it observes. */
typedef struct toy {
    const fr_window *w;
    uint64_t seed;
    uint32_t levels;
    int32_t observed; /* events observed so far; must be in order */
    bool early;       /* an event was scored before its history was complete, or after itself */
    float (*map)(float);
} toy;

static float toy_score(const toy *t, int32_t event, int32_t destination) {
    rng_key key = {.seed = t->seed, .purpose = RNG_TEST};
    float s = (float)rng_below(key, (uint64_t)event, (uint32_t)destination, t->levels);
    return t->map ? t->map(s) : s;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)worker, (void)err;
    assert_int_equal(count, 1);
    toy *t = state;
    if (t->observed >= 0 && t->observed != window_cut(t->w, query->event)) t->early = true;
    for (int32_t v = 0; v < t->w->destinations; v++) scores[v] = toy_score(t, query->event, v);
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    toy *t = state;
    if (event->event != t->observed || event->source != t->w->source[event->event] ||
        event->destination != t->w->destination[event->event])
        t->early = true;
    t->observed++;
    return FR_OK;
}

static fr_scorer_definition toy_scorer(toy *t, bool stateful) {
    t->observed = stateful ? 0 : -1;
    return (fr_scorer_definition){.state = t,
                                  .score = score,
                                  .workers = stateful ? 1 : FR_WORKERS_ANY,
                                  .observe = stateful ? observe : NULL};
}

/* ---- ranks ---- */

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The average rank of `positive` among `n` scores (it is one of them), by sorting. */
static double sorted_rank(float *scores, int n, float positive) {
    qsort(scores, (size_t)n, sizeof *scores, descending);
    int first = 0, last;
    while (scores[first] != positive) first++;
    for (last = first; last + 1 < n && scores[last + 1] == positive;) last++;
    return 1 + (first + last) / 2.0;
}

/* True if the destination is in the window's events [from, to); `source` < 0 = of any source. */
static bool occurs(const fr_window *w, int32_t from, int32_t to, int32_t source, int32_t c) {
    for (int32_t i = from; i < to; i++)
        if (w->destination[i] == c && (source < 0 || w->source[i] == source)) return true;
    return false;
}

/* True if it is in the catalog of an event, by the definitions of PROTOCOL 3 and 14. */
static bool in_catalog(const fr_window *w, int32_t cut, int32_t c) {
    switch (w->catalog_kind) {
    case CATALOG_TIME: return occurs(w, 0, cut, -1, c);
    case CATALOG_TRAIN_VAL: return occurs(w, 0, w->train + w->val, -1, c);
    case CATALOG_ALL: return occurs(w, 0, w->events, -1, c);
    case CATALOG_RANGE: return true; /* every number of the window is of an id in the range */
    default: return occurs(w, 0, w->train, -1, c);
    }
}

/* True if it is the true destination of another event of the part, with the same source and time.
 */
static bool is_rival(const fr_window *w, int32_t event, int32_t c) {
    if (w->protocol.filter == FR_FILTER_NONE || c == w->destination[event]) return false;
    for (int32_t i = w->from; i < w->to; i++)
        if (w->source[i] == w->source[event] && w->time[i] == w->time[event] &&
            w->destination[i] == c)
            return true;
    return false;
}

/* The scores of candidates as a list, the positive's first. */
typedef struct pool {
    float score[256];
    int n;
} pool;

static void check_pool(pool *p, int32_t above, int32_t tied) {
    assert_true(1 + above + tied / 2.0 == sorted_rank(p->score, p->n, p->score[0]));
}

static void check_record(const toy *t, const fr_record *r, int32_t event) {
    const fr_window *w = t->w;
    int32_t u = w->source[event], v = w->destination[event], cut = window_cut(w, event);
    float positive = toy_score(t, event, v);
    pool in = {{positive}, 1}, seen = in, available = in, trained = in;
    double pop[2] = {0}, total = 0, self = 0;
    int filtered = 0, before = 0;
    for (int32_t c = 0; c < w->destinations; c++) {
        float s = toy_score(t, event, c);
        bool ranked = in_catalog(w, cut, c), rival = is_rival(w, event, c);
        int32_t count = 0;
        for (int32_t i = 0; i < w->train; i++) count += ranked && w->destination[i] == c;
        filtered += ranked && rival;
        if (rival) continue;
        total += count;
        if (c == v) self = count;
        if (c == v) continue;
        if (occurs(w, 0, cut, -1, c)) available.score[available.n++] = s;
        if (!ranked) continue;
        in.score[in.n++] = s;
        char names[2][24]; /* as trec_eval compares them */
        (void)snprintf(names[0], sizeof names[0], "%lld", (long long)w->destination_id[c]);
        (void)snprintf(names[1], sizeof names[1], "%lld", (long long)w->destination_id[v]);
        before += s == positive && strcmp(names[0], names[1]) > 0;
        if (occurs(w, 0, cut, u, c)) seen.score[seen.n++] = s;
        if (occurs(w, 0, w->train, u, c)) trained.score[trained.n++] = s;
        if (s > positive) pop[0] += count;
        if (s == positive) pop[1] += count;
    }
    bool covered = in_catalog(w, cut, v);
    assert_int_equal(r->event, w->first + event);
    assert_int_equal(r->source, w->source_id[u]);
    assert_int_equal(r->destination, w->destination_id[v]);
    assert_int_equal(r->covered, covered);
    if (occurs(w, 0, cut, -1, v)) {
        assert_int_equal(r->avail_n, available.n);
        check_pool(&available, r->avail_above, r->avail_tied);
    } else {
        assert_int_equal(r->avail_n, -1);
    }
    if (!covered) {
        assert_int_equal(r->above, -1);
        assert_int_equal(r->tied, -1);
        return;
    }
    assert_int_equal(r->n, in.n);
    assert_int_equal(r->seen_n, seen.n - 1);
    assert_int_equal(r->train_n, trained.n - 1);
    assert_int_equal(r->filtered, filtered);
    assert_int_equal(r->tied_before, before);
    check_pool(&in, r->above, r->tied);
    check_pool(&seen, r->seen_above, r->seen_tied);
    check_pool(&trained, r->train_above, r->train_tied);
    assert_true(fabs(r->pop_above - pop[0] / total) < 1e-15);
    assert_true(fabs(r->pop_tied - pop[1] / total) < 1e-15);
    assert_true(fabs(r->pop_self - self / total) < 1e-15);
    assert_true(r->score == positive);
    fr_history pair = window_pair_history(w, u, v, cut);
    assert_int_equal(r->repeated, pair.count > 0);
    assert_int_equal(r->pair_count, pair.count);
    assert_true(pair.count ? r->gap == w->time[event] - w->time[pair.event[pair.count - 1]]
                           : isnan(r->gap));
    assert_int_equal(r->source_degree, window_source_history(w, u, cut, INT32_MAX).count);
    assert_int_equal(r->destination_degree, window_destination_history(w, v, cut, INT32_MAX).count);
}

/* One stream and one protocol, by a scorer with a state and by one without. */
static void check_protocol(const fr_stream *stream, const fr_protocol *p, uint64_t seed) {
    fr_error err;
    fr_window *w;
    OK(fr_window_open(stream, p, NULL, &w, &err));
    for (int stateful = 0; stateful < 2; stateful++) {
        toy t = {.w = w, .seed = seed, .levels = 1u << (seed % 6)};
        fr_scorer_definition scorer = toy_scorer(&t, stateful);
        fr_ranking *ranking;
        OK(rank_with(w, scorer, &plain, NULL, &ranking, &err));
        fr_ranking_facts f = fr_ranking_get(ranking);
        assert_int_equal(f.count, w->to - w->from);
        for (int64_t k = 0; k < f.count; k++) check_record(&t, &f.records[k], w->from + (int32_t)k);
        assert_false(t.early);
        if (stateful) assert_int_equal(t.observed, w->to); /* each exactly once */
        fr_ranking_close(ranking);
    }
    fr_window_close(w);
}

static void test_counting_is_sorting(void **state) {
    char *kinds[] = {(char[]){"fixed"}, (char[]){"time"}, (char[]){"train+val"}, (char[]){"all"},
                     (char[]){"range"}};
    for (uint64_t seed = 0; seed < 12; seed++) {
        fr_stream *stream = make_stream(*state, seed, 300);
        for (int order = 0; order < 3; order++)
            for (int kind = 0; kind < 5; kind++) {
                fr_protocol p = {.size = sizeof p,
                                 .window = 250,
                                 .train_share = 0.7,
                                 .order = order_text(order),
                                 .catalog = kinds[kind],
                                 .filter = kind % 2 ? FR_FILTER_SAME_TIME : FR_FILTER_NONE};
                if (kind < 2) check_protocol(stream, &p, seed);
                p.train_share = 0.5;
                p.val_share = 0.2;
                p.filter = !p.filter;
                check_protocol(stream, &p, seed);
                p.part = FR_PART_VAL;
                check_protocol(stream, &p, seed);
            }
        fr_stream_close(stream);
    }
}

static float stretch(float s) { return s * s * s - 5; } /* strictly increasing for s >= 0 */

static void test_monotone_maps_change_nothing(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 77, 400);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    fr_ranking *rankings[2];
    for (int k = 0; k < 2; k++) {
        toy t = {.w = w, .seed = 5, .levels = 9, .map = k ? stretch : NULL};
        fr_scorer_definition scorer = toy_scorer(&t, false);
        OK(rank_with(w, scorer, &plain, NULL, &rankings[k], &err));
    }
    fr_ranking_facts a = fr_ranking_get(rankings[0]), b = fr_ranking_get(rankings[1]);
    for (int64_t k = 0; k < a.count; k++) {
        fr_record x = a.records[k], y = b.records[k];
        x.score = y.score = 0;
        assert_memory_equal(&x, &y, sizeof x);
    }
    fr_ranking_close(rankings[0]);
    fr_ranking_close(rankings[1]);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Files are equal byte for byte with 1, 2 and 5 threads and shards of 1, 7 and 64 events. */
static void test_threads_and_shards(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 3, 3000);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    static const char *const specs[] = {"baseline:random", "baseline:edgebank,memory=threshold",
                                        "baseline:edgebank,memory=window", "baseline:recency"};
    for (int s = 0; s < 4; s++) {
        mapping first = {0};
        static const int threads[] = {1, 2, 5};
        static const int64_t shards[] = {1, 7, 64};
        for (int k = 0; k < 9; k++) {
            fr_context context = {.threads = threads[k / 3]};
            fr_rank_settings settings = plain;
            settings.shard = shards[k % 3];
            fr_scorer *scorer;
            fr_ranking *ranking;
            OK(fr_scorer_open(specs[s], w, 1, &context, &scorer, &err));
            OK(fr_rank_run(scorer, &settings, &context, &ranking, &err));
            char *path = in_directory(*state, k ? "again.npy" : "first.npy");
            OK(fr_ranking_save(ranking, path, true, &err));
            if (!k)
                OK(mapping_open(path, &first, &err));
            else
                assert_file(path, first.bytes, first.size);
            fr_ranking_close(ranking);
            fr_scorer_close(scorer);
        }
        mapping_close(&first);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- several events at once ---- */

enum { MANY = 5 };

typedef struct toy_calls {
    toy t;        /* first: `score` takes it */
    int32_t last; /* last requested event */
    int calls, events;
} toy_calls;

static fr_status score_calls(void *state, const fr_query *queries, int count, int worker,
                             float *scores, fr_error *err) {
    toy_calls *c = state;
    assert_in_range(count, 1, MANY);
    c->calls++;
    c->events += count;
    for (int i = 0; i < count; i++, scores += c->t.w->destinations) {
        assert_true(queries[i].event > c->last);
        c->last = queries[i].event;
        TRY(score(&c->t, &queries[i], 1, worker, scores, err));
    }
    return FR_OK;
}

/* The same records as from one event at a time; a call never goes beyond its shard. */
static void test_many(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 8, 400);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    for (int met = 0; met < 4; met += 3) { /* 3: gaps between the events asked for */
        static const int64_t shards[] = {1, 4, 5, 64, 64};
        fr_rank_settings settings = plain;
        settings.met = met;
        toy t = {.w = w, .seed = 5, .levels = 9};
        fr_scorer_definition scorer = toy_scorer(&t, false);
        fr_ranking *one;
        OK(rank_with(w, scorer, &settings, NULL, &one, &err));
        fr_ranking_facts a = fr_ranking_get(one);
        for (int k = 0; k < 5; k++) {
            fr_context context = {.threads = 1};
            toy_calls calls = {.t = t, .last = -1};
            fr_ranking *many;
            fr_scorer_definition several = {.state = &calls, .score = score_calls};
            several.many = k < 4 ? MANY : 0; /* 0 means one */
            settings.shard = shards[k];
            OK(rank_with(w, several, &settings, &context, &many, &err));
            fr_ranking_facts b = fr_ranking_get(many);
            assert_int_equal(a.count, b.count);
            assert_memory_equal(a.records, b.records, (size_t)a.count * sizeof *a.records);
            assert_true(calls.calls > 0);
            assert_int_equal(calls.calls<calls.events, k> 0 && k < 4);
            fr_ranking_close(many);
        }
        fr_ranking_close(one);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- bad scores ---- */

static fr_status score_badly(void *state, const fr_query *queries, int count, int worker,
                             float *scores, fr_error *err) {
    (void)worker, (void)err;
    const toy *t = state;
    for (int i = 0; i < count; i++, scores += t->w->destinations) {
        for (int32_t v = 0; v < t->w->destinations; v++) scores[v] = 1;
        if (queries[i].event == t->w->train + 5) scores[2] = t->levels ? INFINITY : NAN;
    }
    return FR_OK;
}

static void test_not_finite(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 3, 300);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    for (uint32_t k = 0; k < 4; k++) {
        toy t = {.w = w, .levels = k % 2};
        fr_scorer_definition scorer = {
            .name = "bad", .state = &t, .score = score_badly, .many = k / 2 ? 8 : 1};
        fr_ranking *ranking;
        FAILS(rank_with(w, scorer, &plain, NULL, &ranking, &err), FR_EINPUT,
              k % 2 ? "event 215: the score of destination 6 is inf"
                    : "event 215: the score of destination 6 is nan");
        assert_null(ranking);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- score files ---- */

static fr_ranking *rank_by(const fr_window *w, const char *spec, const char *dump) {
    fr_error err;
    fr_scorer *scorer;
    fr_ranking *ranking;
    fr_rank_settings settings = plain;
    char *copy = dump ? strdup(dump) : NULL;
    settings.dump_scores = copy;
    settings.force = true;
    OK(fr_scorer_open(spec, w, 1, NULL, &scorer, &err));
    OK(fr_rank_run(scorer, &settings, NULL, &ranking, &err));
    fr_scorer_close(scorer);
    free(copy);
    return ranking;
}

static void assert_same_ranks(const fr_ranking *a, const fr_ranking *b) {
    fr_ranking_facts x = fr_ranking_get(a), y = fr_ranking_get(b);
    assert_int_equal(x.count, y.count);
    for (int64_t k = 0; k < x.count; k++) {
        fr_record r = x.records[k], s = y.records[k];
        assert_int_equal(r.covered, s.covered);
        if (!r.covered) continue;
        assert_int_equal(r.above, s.above);
        assert_int_equal(r.tied, s.tied);
        assert_int_equal(r.seen_above, s.seen_above);
        assert_int_equal(r.seen_tied, s.seen_tied);
        assert_true(r.pop_above == s.pop_above && r.pop_tied == s.pop_tied);
    }
}

static void write_matrix(const char *path, int size, int64_t rows, int64_t columns,
                         const double *at) {
    fr_error err;
    npy_writer w;
    OK(npy_writer_open(&w, path, 'f', size, columns, &err));
    for (int64_t k = 0; k < rows * columns; k++) {
        float single = (float)at[k];
        OK(writer_put(&w.file, size == 4 ? (const void *)&single : &at[k], (size_t)size, &err));
    }
    OK(npy_writer_commit(&w, &err));
}

static void test_dump_comes_back(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 9, 600);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    static const char *const specs[] = {"baseline:recency", "baseline:random", "baseline:markov"};
    char *path = in_directory(*state, "dump.npy");
    char spec[4096];
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    for (int k = 0; k < 3; k++) {
        fr_ranking *straight = rank_by(w, specs[k], path), *again = rank_by(w, spec, NULL);
        assert_same_ranks(straight, again);
        /* without the accompanying file the usual order is used, which is the same */
        assert_int_equal(unlink(in_directory(*state, "dump.json")), 0);
        fr_ranking *plainly = rank_by(w, spec, NULL);
        assert_same_ranks(straight, plainly);
        fr_ranking_close(straight);
        fr_ranking_close(again);
        fr_ranking_close(plainly);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

static int64_t available_ranks(const fr_ranking *r) {
    fr_ranking_facts f = fr_ranking_get(r);
    int64_t n = 0;
    for (int64_t k = 0; k < f.count; k++) n += f.records[k].avail_n >= 0;
    return n;
}

/* Time-available ranks of a score file exist for all events or for none. */
static void test_available_or_not(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 9, 600);
    char *path = in_directory(*state, "dump.npy"), spec[4096];
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    fr_protocol fixed = {.size = sizeof fixed, .train_share = 0.7},
                time = {.size = sizeof time, .train_share = 0.7, .catalog = (char[]){"time"}};
    fr_window *w, *by_time;
    OK(fr_window_open(stream, &fixed, NULL, &w, &err));
    OK(fr_window_open(stream, &time, NULL, &by_time, &err));

    fr_ranking *straight = rank_by(w, "baseline:markov", path), *again = rank_by(w, spec, NULL);
    assert_true(available_ranks(straight) > 0);
    assert_int_equal(available_ranks(again), 0);
    const char *const name[] = {"mrr-available"};
    fr_metric_value value;
    fr_ranking_facts f = fr_ranking_get(again);
    OK(fr_metrics_compute(f.records, f.count, f.oov, name, 1, &value, &err));
    assert_true(isnan(value.value) && value.events == 0);
    fr_scorer *scorer;
    FAILS(fr_scorer_open(spec, by_time, 1, NULL, &scorer, &err), FR_EINPUT, "no column for");
    fr_ranking_close(again);

    /* a dump of the time-available catalog has all of it: good for both catalogs */
    fr_ranking *timed = rank_by(by_time, "baseline:markov", path);
    again = rank_by(by_time, spec, NULL);
    assert_same_ranks(timed, again);
    assert_int_equal(available_ranks(timed), available_ranks(again));
    fr_ranking_close(again);
    again = rank_by(w, spec, NULL);
    assert_same_ranks(straight, again);
    f = fr_ranking_get(straight);
    for (int64_t k = 0; k < f.count; k++) {
        assert_int_equal(f.records[k].avail_n, fr_ranking_get(again).records[k].avail_n);
        assert_int_equal(f.records[k].avail_above, fr_ranking_get(again).records[k].avail_above);
        assert_int_equal(f.records[k].avail_tied, fr_ranking_get(again).records[k].avail_tied);
    }
    fr_ranking_close(again);
    fr_ranking_close(timed);
    fr_ranking_close(straight);
    fr_window_close(by_time);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* The order of the catalog does not matter: columns and their list are permuted in the same way. */
static void test_permuted_catalog(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 4, 600);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    char *path = in_directory(*state, "dump.npy"), *other = in_directory(*state, "other.npy");
    char spec[4096];
    (void)snprintf(spec, sizeof spec, "scores:%s", other);
    fr_ranking *straight = rank_by(w, "baseline:edgebank", path);
    npy file;
    json_t *side;
    OK(npy_open_as(path, 'f', 4, 2, &file, &err));
    OK(json_read(in_directory(*state, "dump.json"), &side, &err));
    int64_t rows = file.shape[0], n = file.shape[1];
    double *scores = calloc((size_t)(rows * n), sizeof *scores);
    assert_non_null(scores);
    json_t *ids = json_object_get(side, "destinations"), *permuted = json_array();
    rng_key key = {.seed = 8, .purpose = RNG_TEST};
    int64_t from[256];
    for (int64_t k = 0; k < n; k++) from[k] = k;
    for (int64_t k = n - 1; k > 0; k--) {
        int64_t j = rng_below(key, 0, (uint32_t)k, (uint32_t)k + 1), swap = from[k];
        from[k] = from[j];
        from[j] = swap;
    }
    for (int64_t k = 0; k < n; k++) {
        assert_int_equal(json_array_append(permuted, json_array_get(ids, (size_t)from[k])), 0);
        for (int64_t row = 0; row < rows; row++)
            scores[row * n + k] = (double)((const float *)file.data)[row * n + from[k]];
    }
    assert_int_equal(json_object_set_new(side, "destinations", permuted), 0);
    write_matrix(other, 4, rows, n, scores);
    OK(json_write(in_directory(*state, "other.json"), side, &err));
    fr_ranking *again = rank_by(w, spec, NULL);
    assert_same_ranks(straight, again);
    fr_ranking_close(straight);
    fr_ranking_close(again);
    free(scores);
    npy_close(&file);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Doubles that are equal as floats keep their order. */
static void test_doubles_keep_order(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv"), *path = in_directory(*state, "s.npy");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n1,30,3\n2,20,4\n");
    char spec[4096];
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.8};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    static const double rows[][3] = {
        {1 + 1e-12, 1, 1 + 2e-12}, {1e300, 1, 1e300}, {1, 1 + 1e-15, 1}};
    static const int above[] = {2, 2, 0};
    for (int k = 0; k < 3; k++) {
        write_matrix(path, 8, 1, 3, rows[k]);
        fr_ranking *r = rank_by(w, spec, NULL);
        assert_int_equal(fr_ranking_get(r).records[0].above, above[k]);
        assert_int_equal(fr_ranking_get(r).records[0].tied, 0);
        fr_ranking_close(r);
    }
    /* float16: 1.0, 2.0, 65504 with the positive in the middle */
    npy_writer out;
    OK(npy_writer_open(&out, path, 'f', 2, 3, &err));
    static const uint16_t halves[] = {0x3c00, 0x4000, 0x7bff};
    OK(npy_writer_put(&out, halves, 1, &err));
    OK(npy_writer_commit(&out, &err));
    fr_ranking *r = rank_by(w, spec, NULL);
    assert_int_equal(fr_ranking_get(r).records[0].above, 1);
    assert_true(fr_ranking_get(r).records[0].score == 2);
    fr_ranking_close(r);
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_score_file_errors(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv"), *path = in_directory(*state, "s.npy");
    char *side = in_directory(*state, "s.json");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n1,30,3\n2,20,4\n2,10,5\n2,40,6\n");
    char spec[4096];
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    fr_stream *stream;
    fr_window *w;
    fr_scorer *scorer;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    OK(fr_window_open(stream, &p, NULL, &w, &err)); /* tests 20, 10 covered, 40 not */
    static const double m[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    FAILS(fr_scorer_open(spec, w, 1, NULL, &scorer, &err), FR_EFILE, "s.npy: cannot be read");
    write_matrix(path, 4, 3, 3, m);
    FAILS(fr_scorer_open(spec, w, 1, NULL, &scorer, &err), FR_EINPUT, "3 rows, expected 2");
    write_matrix(path, 4, 2, 4, m);
    FAILS(fr_scorer_open(spec, w, 1, NULL, &scorer, &err), FR_EINPUT, "4 columns, expected 3");
    write_matrix(path, 4, 2, 3, m);
    static const struct {
        const char *side, *message;
    } cases[] = {
        {"{\"events\": [3]}", "2 rows, but 1 event numbers"},
        {"{\"events\": [3, 3]}", "rows 0 and 1 are both of event 3"},
        {"{\"events\": [3, 1]}", "row 1 is of event 1, which is not a test event (3 to 5)"},
        {"{\"events\": \"x\"}", "is not a list"},
        {"{\"events\": [3, \"x\"]}", "events[1] is not a whole number"},
        {"{\"destinations\": [10, 20]}", "3 columns, expected 2"},
        {"{\"destinations\": [10, 20, 20]}", "destination 20 has two columns"},
        {"{\"destinations\": [10, 20, 99]}", "column 2 is of destination 99"},
        {"{\"destinations\": [10, 20, 40]}", "no column for destination 30 of the catalog"},
        {"{", "s.json:"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        put_text(side, cases[k].side);
        FAILS(fr_scorer_open(spec, w, 1, NULL, &scorer, &err), FR_EINPUT, cases[k].message);
    }
    put_text(side, "{\"events\": [3, 5]}"); /* such a list may be that of a sample */
    OK(fr_scorer_open(spec, w, 1, NULL, &scorer, &err));
    fr_ranking *none;
    FAILS(fr_rank_run(scorer, NULL, NULL, &none, &err), FR_EINPUT, "no row for event 4");
    fr_scorer_close(scorer);
    put_text(side, "{\"events\": [4, 3], \"destinations\": [30, 20, 10]}");
    char longer[FR_NAME_MAX + 1];
    memset(longer, 'x', sizeof longer);
    longer[FR_NAME_MAX] = 0;
    FAILS(fr_scorer_open(longer, w, 1, NULL, &scorer, &err), FR_EUSAGE, "a scorer of 4224 bytes");
    OK(fr_scorer_open(spec, w, 1, NULL, &scorer, &err));
    assert_int_equal(strlen(fr_scorer_get(scorer).sha256), 64);
    fr_scorer_close(scorer);
    fr_ranking *r = rank_by(w, spec, NULL);
    /* event 3 (20) is row 1: 4 5 6 -> one above; event 4 (10) is row 0: 1 2 3 -> none above */
    assert_int_equal(fr_ranking_get(r).records[0].above, 1);
    assert_int_equal(fr_ranking_get(r).records[1].above, 0);
    assert_int_equal(fr_ranking_get(r).records[2].covered, 0);
    fr_ranking_close(r);
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_dump_choices(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 9, 300);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    char *path = in_directory(*state, "d.npy");
    int64_t covered = 0, second = 0;
    for (int32_t i = w->train; i < w->events; i++)
        if (window_covered(w, i) && ++covered == 2) second = w->first + i;
    char list[64];
    (void)snprintf(list, sizeof list, "%lld", (long long)second);
    const struct {
        const char *events;
        int64_t rows;
    } cases[] = {{"all", covered}, {"first:5", 5}, {"every:10", (covered + 9) / 10}, {list, 1}};
    for (size_t k = 0; k < 4; k++) {
        fr_rank_settings settings = plain;
        settings.dump_scores = path;
        settings.events = (char *)(uintptr_t)cases[k].events;
        settings.force = true;
        toy t = {.w = w, .seed = 5, .levels = 9};
        fr_scorer_definition scorer = toy_scorer(&t, false);
        fr_ranking *ranking;
        OK(rank_with(w, scorer, &settings, NULL, &ranking, &err));
        fr_ranking_close(ranking);
        npy file;
        json_t *side;
        OK(npy_open_as(path, 'f', 4, 2, &file, &err));
        OK(json_read(in_directory(*state, "d.json"), &side, &err));
        json_t *events = json_object_get(side, "events");
        assert_int_equal(file.shape[0], cases[k].rows);
        assert_int_equal(json_array_size(events), cases[k].rows);
        for (int64_t row = 0; row < file.shape[0]; row++) {
            int32_t event =
                (int32_t)(json_integer_value(json_array_get(events, (size_t)row)) - w->first);
            for (int32_t c = 0; c < w->catalog_size; c++)
                assert_true(((const float *)file.data)[row * w->catalog_size + c] ==
                            toy_score(&t, event, w->catalog[c]));
        }
        json_decref(side);
        npy_close(&file);
    }
    fr_rank_settings settings = plain;
    settings.dump_scores = path;
    settings.force = true;
    static const char *const bad[][2] = {{"some", "expected all, first:N"},
                                         {"first:0", "expected all, first:N"},
                                         {"3", "row 3 is not a ranked event"}};
    for (int k = 0; k < 3; k++) {
        settings.events = (char *)(uintptr_t)bad[k][0];
        toy t = {.w = w, .levels = 9};
        fr_scorer_definition scorer = toy_scorer(&t, false);
        fr_ranking *ranking;
        FAILS(rank_with(w, scorer, &settings, NULL, &ranking, &err), FR_EUSAGE, bad[k][1]);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_save_and_load(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 9, 300);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7, .oov = FR_OOV_ZERO};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    fr_ranking *r = rank_by(w, "baseline:recency", NULL), *back;
    char *path = in_directory(*state, "r.npy");
    OK(fr_ranking_save(r, path, false, &err));
    FAILS(fr_ranking_save(r, path, false, &err), FR_EFORCE, "exists");
    FAILS(fr_ranking_save(r, in_directory(*state, "r.txt"), false, &err), FR_EUSAGE,
          "ends in .npy");
    OK(fr_ranking_load(path, &back, &err));
    fr_ranking_facts a = fr_ranking_get(r), b = fr_ranking_get(back);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.records, b.records, (size_t)a.count * sizeof *a.records);
    assert_int_equal(fr_protocol_compare(&a.protocol, &b.protocol, NULL, 0), 0);
    assert_string_equal(a.protocol_text, b.protocol_text);
    assert_string_equal(b.scorer, "baseline:recency");
    assert_int_equal(b.oov, FR_OOV_ZERO);
    fr_ranking_close(back);
    /* the pair belongs together */
    char *side = in_directory(*state, "r.json"), *other = in_directory(*state, "other.npy");
    json_t *about;
    fr_rank_settings steeper = plain;
    steeper.popularity_power = 0.5;
    fr_scorer *scorer;
    fr_ranking *second;
    OK(fr_scorer_open("baseline:random", w, 3, NULL, &scorer, &err));
    OK(fr_rank_run(scorer, &steeper, NULL, &second, &err));
    fr_scorer_close(scorer);
    OK(fr_ranking_save(second, other, false, &err));
    assert_non_null(strstr(fr_ranking_get(second).protocol_text, "popularity_power=0.5"));
    char differ[80];
    fr_protocol_facts changed = fr_ranking_get(second).protocol;
    assert_int_equal(fr_protocol_compare(&a.protocol, &changed, differ, sizeof differ), 1);
    assert_string_equal(differ, "popularity_power (1 against 0.5)");
    OK(json_read(in_directory(*state, "other.json"), &about, &err));
    assert_int_equal(json_integer_value(json_object_get(about, "seed")), 3);
    OK(json_write(side, about, &err));
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT, "one of the two was changed or exchanged");
    OK(fr_ranking_save(r, path, true, &err));
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    (void)fputc(1, file);
    assert_int_equal(fclose(file), 0);
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT, "one of the two was changed or exchanged");
    OK(fr_ranking_save(r, path, true, &err));
    OK(json_read(side, &about, &err));
    assert_int_equal(
        json_object_set_new(json_object_get(about, "protocol"), "oov", json_string("none")), 0);
    OK(json_write(side, about, &err));
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT,
          "oov: found \"none\", expected one of exclude|zero");
    OK(json_read(side, &about, &err));
    json_t *protocol = json_object_get(about, "protocol");
    assert_int_equal(json_object_set_new(protocol, "oov", json_string("zero")), 0);
    assert_int_equal(json_object_set_new(protocol, "later", json_integer(1)), 0);
    OK(json_write(side, json_incref(about), &err));
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT, "a field later, which is not known here");
    assert_int_equal(json_object_del(protocol, "later") | json_object_del(protocol, "ties"), 0);
    OK(json_write(side, about, &err));
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT, "its protocol has no ties");
    fr_ranking_close(second);
    put_text(side, "{}");
    FAILS(fr_ranking_load(path, &back, &err), FR_EINPUT, "does not describe rank records");
    /* the accompanying file is not overwritten either, and a missing directory is noticed */
    assert_int_equal(unlink(path), 0);
    FAILS(fr_ranking_save(r, path, false, &err), FR_EFORCE, "r.json: exists");
    FAILS(fr_ranking_check(in_directory(*state, "no/r.npy"), false, &err), FR_EFILE,
          "cannot be written");
    OK(fr_ranking_check(in_directory(*state, "new.npy"), false, &err));
    assert_int_equal(access(in_directory(*state, "new.npy"), F_OK), -1);
    FAILS(fr_ranking_load(in_directory(*state, "none.npy"), &back, &err), FR_EFILE,
          "cannot be read");
    static const double m[] = {1, 2};
    write_matrix(in_directory(*state, "m.npy"), 4, 1, 2, m);
    FAILS(fr_ranking_load(in_directory(*state, "m.npy"), &back, &err), FR_EINPUT,
          "not a file of rank records");
    fr_ranking_close(r);
    fr_window_close(w);
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_counting_is_sorting), WITH_DIRECTORY(test_monotone_maps_change_nothing),
        WITH_DIRECTORY(test_threads_and_shards),  WITH_DIRECTORY(test_many),
        WITH_DIRECTORY(test_not_finite),          WITH_DIRECTORY(test_dump_comes_back),
        WITH_DIRECTORY(test_doubles_keep_order),  WITH_DIRECTORY(test_available_or_not),
        WITH_DIRECTORY(test_permuted_catalog),    WITH_DIRECTORY(test_score_file_errors),
        WITH_DIRECTORY(test_dump_choices),        WITH_DIRECTORY(test_save_and_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
