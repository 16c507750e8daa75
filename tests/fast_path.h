/* fast_path.h - shared by the tests of all fast paths: a stream with a model, scores of its events,
 * the difference from the plain forward pass, and equal bits. */
#ifndef FR_TESTS_FAST_PATH_H
#define FR_TESTS_FAST_PATH_H

#include "base/rng.h"
#include "models/model.h"
#include "rank/scorer.h"
#include "testing.h"

#include <math.h>

typedef struct fixture {
    fr_stream *stream;
    fr_window *w;
    model m;
} fixture;

enum { MOST_DESTINATIONS = 64 };

/* Opens the table that was written to stream.csv. */
static inline void open_window(fixture *f, const char *directory, int order) {
    fr_error err;
    fr_protocol protocol = {
        .size = sizeof protocol, .train_share = 0.7, .order = order_text(order)};
    char *path = in_directory(directory, "stream.csv");
    OK(fr_stream_open(path, NULL, NULL, &f->stream, &err));
    OK(fr_window_open(f->stream, &protocol, NULL, &f->w, &err));
    assert_true(f->w->destinations <= MOST_DESTINATIONS);
}

/* A table to write events to, with `width` features. */
static inline FILE *start_table(const char *directory, int width) {
    FILE *file = fopen(in_directory(directory, "stream.csv"), "w");
    assert_non_null(file);
    (void)fprintf(file, "u,v,t");
    for (int k = 0; k < width; k++) (void)fprintf(file, ",f%d", k);
    return file;
}

/* Few sources, one of which has most events; sources and destinations come late now and then; up to
 * three events share a time. */
static inline void late_window(fixture *f, const char *directory, int order, int width) {
    enum { EVENTS = 220 };
    rng_key key = {.seed = 5, .purpose = RNG_TEST};
    FILE *file = start_table(directory, width);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 5 + 40 * (uint32_t)i / EVENTS, sources = 2 + 12 * (uint32_t)i / EVENTS;
        uint32_t source = rng_below(key, e, 0, 2) ? 0 : rng_below(key, e, 1, sources);
        (void)fprintf(file, "\n%u,%u,%d", source, 3 * rng_below(key, e, 2, reach), 700 * (i / 3));
        for (uint32_t k = 0; k < (uint32_t)width; k++)
            (void)fprintf(file, ",%g", 2 * rng_uniform(key, e, 3 + k) - 1);
    }
    (void)fprintf(file, "\n");
    assert_int_equal(fclose(file), 0);
    open_window(f, directory, order);
}

/* At least as far from the start as training moves parameters: by up to `most`. */
static inline void move_parameters(model *m, double most) {
    rng_key key = {.seed = 9, .purpose = RNG_TEST};
    for (size_t k = 0; k < m->params.count; k++)
        if (!params_of(&m->params, k)->frozen)
            m->params.value[k] +=
                (real)(most * (rng_uniform(key, k, 0) + rng_uniform(key, k, 1) - 1));
}

static inline void drop(fixture *f) {
    model_close(&f->m);
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

typedef fr_status opener(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

static inline fr_query query_of(const fixture *f, int32_t event) {
    return (fr_query){event, f->w->source[event], window_time(f->w, event)};
}

static inline void score(const fixture *f, fr_scorer_definition *scorer, int32_t event, int worker,
                         float *scores) {
    fr_error err;
    fr_query query = query_of(f, event);
    OK(scorer->part(scorer->state, &query, 1, 0, f->w->destinations, worker, scores, &err));
}

static inline size_t size_of(const fixture *f) {
    return (size_t)f->w->events * (size_t)f->w->destinations * sizeof(float);
}

/* Scores [events, destinations] of all events from `from` on, by one worker. Events come in steps
 * of `step`, which has no divisor in common with their number: -1 is backwards. */
static inline float *scores_in_steps(const fixture *f, opener *open, int32_t from, int worker,
                                     int step) {
    fr_error err;
    fr_scorer_definition scorer;
    int count = f->w->events - from;
    float *scores = calloc(1, size_of(f));
    assert_non_null(scores);
    OK(open(&f->m, worker + 1, &scorer, &err));
    assert_null(scorer.observe);
    uint64_t before = model_fingerprint(&f->m);
    for (int i = 0, e = 0; i < count; i++, e = (e + count + step) % count)
        score(f, &scorer, from + e, worker,
              scores + (size_t)(from + e) * (size_t)f->w->destinations);
    assert_true(model_fingerprint(&f->m) == before);
    scorer.close(scorer.state);
    return scores;
}

/* Of all events, through the fast path. */
static inline float *all_scores(const fixture *f, int worker, bool backwards) {
    return scores_in_steps(f, f->m.kind->fast, 0, worker, backwards ? -1 : 1);
}

static inline void assert_same(const fixture *f, const float *expected, float *got) {
    assert_memory_equal(expected, got, size_of(f));
    free(got);
}

/* ---- accuracy ---- */

static inline int rank_of(const float *scores, int n, int32_t v) {
    int above = 0;
    for (int i = 0; i < n; i++) above += scores[i] > scores[v];
    return above;
}

/* Largest difference from plain forward over all events from `from` on, relative to the event's
 * largest score, or to `least` if scores are small because terms cancel. Ranks of the events'
 * destinations are equal. */
static inline double difference(const fixture *f, int32_t from, double least) {
    float *expected = scores_in_steps(f, model_plain, from, 0, 1);
    float *got = scores_in_steps(f, f->m.kind->fast, from, 0, 1);
    int n = f->w->destinations;
    double most = 0;
    for (int32_t e = from; e < f->w->events; e++) {
        const float *plain = expected + (size_t)e * (size_t)n, *fast = got + (size_t)e * (size_t)n;
        double size = least, off = 0;
        for (int v = 0; v < n; v++) {
            size = fmax(size, fabs((double)plain[v]));
            off = fmax(off, fabs((double)fast[v] - (double)plain[v]));
        }
        most = fmax(most, off / size);
        int32_t v = f->w->destination[e];
        assert_int_equal(rank_of(fast, n, v), rank_of(plain, n, v));
    }
    free(expected);
    free(got);
    return most;
}

/* ---- some events at once ---- */

/* True if the event is requested: all, every third, or about half in an irregular way. */
static inline bool asked(int pattern, int32_t event) {
    rng_key key = {.seed = 11, .purpose = RNG_TEST};
    if (pattern == 2) return rng_below(key, (uint64_t)event, 0, 2) == 1;
    return pattern == 0 || event % 3 == 0;
}

/* Scores of the requested events, at most `most` at a time, must equal those of each event alone.
 */
static inline void check_many(const fixture *f, int32_t first, const float *expected, int pattern,
                              int most, bool backwards) {
    fr_error err;
    fr_scorer_definition fast;
    size_t n = (size_t)f->w->destinations;
    int asked_for = 0;
    OK(f->m.kind->fast(&f->m, 1, &fast, &err));
    assert_true(fast.many > 1);
    if (most > fast.many) most = fast.many;
    float *got = calloc((size_t)most * n, sizeof *got);
    fr_query *queries = calloc((size_t)f->w->events, sizeof *queries);
    assert_true(got && queries);
    for (int32_t e = first; e < f->w->events; e++)
        if (asked(pattern, e)) queries[asked_for++] = query_of(f, e);
    int calls = (asked_for + most - 1) / most;
    for (int k = 0; k < calls; k++) {
        int from = (backwards ? calls - 1 - k : k) * most;
        int count = asked_for - from < most ? asked_for - from : most;
        OK(fast.part(fast.state, queries + from, count, 0, (int32_t)n, 0, got, &err));
        for (int i = 0; i < count; i++)
            assert_memory_equal(got + (size_t)i * n, expected + (size_t)queries[from + i].event * n,
                                n * sizeof *got);
    }
    free(got);
    free(queries);
    fast.close(fast.state);
}

/* ---- threads ---- */

/* Records are the same for any shard (which ends a call), any number of threads, and with whole
 * rows or tiles of any size. */
static inline void check_threads(const fixture *f) {
    fr_error err;
    model small = f->m; /* keeps numbers of few candidates at a time */
    small.fast_piece = 6;
    const int64_t shards[] = {1, 3, 20, 64};
    fr_ranking *first = NULL;
    for (int k = 0; k < 14; k++) {
        fr_rank_settings settings = {
            .size = sizeof settings, .shard = shards[k / 2 % 4], .popularity_power = 1};
        fr_context context = {.threads = k % 2 ? 3 : 1};
        fr_scorer_definition fast;
        fr_ranking *ranking;
        OK(f->m.kind->fast(k % 3 ? &f->m : &small, context.threads, &fast, &err));
        fr_scorer *scorer = scorer_of(f->w, fast);
        assert_non_null(scorer->is.part);
        if (k >= 8) scorer->is.tile = k - 7; /* 1 to 6 candidates, else all */
        OK(fr_rank_run(scorer, &settings, &context, &ranking, &err));
        fr_scorer_close(scorer);
        if (!first) {
            first = ranking;
            continue;
        }
        fr_ranking_facts one = fr_ranking_get(first), other = fr_ranking_get(ranking);
        assert_true(one.count > 0);
        assert_memory_equal(one.records, other.records, (size_t)one.count * sizeof *one.records);
        fr_ranking_close(ranking);
    }
    fr_ranking_close(first);
}

#endif
