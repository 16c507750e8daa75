/* test_rank_feed.c - a feed gives the same records as the engine with the same scorer; and what
 * scorers can read from a window, compared with the list of its events. */
#include "base/rng.h"
#include "testing.h"

#include <math.h>

enum { EVENTS = 400, SOURCES = 6 };

/* Three events share a time, and destinations go on appearing. */
static fr_stream *make_stream(const char *directory) {
    fr_error err;
    rng_key key = {.seed = 4, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "u,v,t,f\n");
    for (uint32_t i = 0; i < EVENTS; i++)
        (void)fprintf(file, "%u,%u,%u,%u\n", 2 * rng_below(key, i, 0, SOURCES),
                      3 * rng_below(key, i, 1, 5 + i / 20), i / 3, i);
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    fr_import settings = {.size = sizeof settings, .columns = (char[]){"features=4"}};
    OK(fr_stream_open(path, &settings, NULL, &stream, &err));
    return stream;
}

static fr_window *open_window(const fr_stream *stream, int order, const char *catalog) {
    fr_error err;
    fr_window *w;
    fr_protocol p = {.size = sizeof p,
                     .window = 300,
                     .train_share = 0.7,
                     .order = order_text(order),
                     .catalog = (char *)(uintptr_t)catalog};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    return w;
}

/* ---- a model that learns: how often each pair and each destination has occurred ---- */

typedef struct counts {
    const fr_window *w;
    fr_window_facts facts;
    fr_columns columns;
    bool catalog_only;
    int32_t *pair; /* [sources, candidates] */
    int32_t seen;  /* events */
} counts;

static counts count_open(const fr_window *w, bool catalog_only) {
    counts c = {.w = w, .facts = fr_window_get(w), .columns = fr_window_columns(w)};
    c.catalog_only = catalog_only;
    c.pair = calloc((size_t)(c.facts.sources * c.facts.candidates), sizeof *c.pair);
    assert_non_null(c.pair);
    return c;
}

static fr_status learn(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    counts *c = state;
    assert_int_equal(event->event, c->seen++);
    assert_int_equal(event->source, c->columns.source[event->event]);
    assert_int_equal(event->destination, c->columns.destination[event->event]);
    assert_true(event->time == c->columns.time[event->event] - c->columns.start);
    assert_true(event->features[0] == (float)(c->facts.first + event->event));
    c->pair[event->source * c->facts.candidates + event->destination]++;
    return FR_OK;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)worker, (void)err;
    const counts *c = state;
    assert_int_equal(count, 1);
    int64_t row = c->catalog_only ? c->facts.catalog_size : c->facts.candidates;
    for (int64_t k = 0; k < row; k++) {
        int64_t v = c->catalog_only ? c->columns.catalog[k] : k;
        int32_t all = 0;
        for (int64_t u = 0; u < c->facts.sources; u++) all += c->pair[u * c->facts.candidates + v];
        scores[k] = (float)(10 * c->pair[query->source * c->facts.candidates + v] + all % 7);
    }
    return FR_OK;
}

static fr_ranking *pull(const fr_window *w, bool catalog_only) {
    fr_error err;
    fr_ranking *ranking;
    counts c = count_open(w, catalog_only);
    fr_scorer_definition is = {
        .state = &c, .score = score, .observe = learn, .catalog_only = catalog_only};
    OK(rank_with(w, is, NULL, NULL, &ranking, &err));
    assert_int_equal(c.seen, c.facts.events);
    free(c.pair);
    return ranking;
}

/* Learns the training part, which a feed does not return. */
static void learn_until(counts *c, int32_t until) {
    fr_error err;
    while (c->seen < until) {
        fr_event event = fr_window_event(c->w, c->seen);
        OK(learn(c, &event, &err));
    }
}

/* Scores a batch by the present counts; then learns the truth. */
static fr_status step(fr_feed *feed, counts *c, int most, int *count, fr_error *err) {
    const fr_query *queries;
    const fr_event *truth;
    int known;
    TRY(fr_feed_next(feed, most, &queries, count, err));
    if (!*count) return FR_OK;
    int64_t row = fr_feed_get(feed).row;
    float *scores = malloc((size_t)(*count * row) * sizeof *scores);
    assert_non_null(scores);
    for (int k = 0; k < *count; k++) (void)score(c, &queries[k], 1, 0, scores + k * row, err);
    fr_status status = fr_feed_submit(feed, scores, *count, &truth, &known, err);
    free(scores);
    if (known) learn_until(c, (int32_t)c->facts.train); /* these have the same time */
    for (int k = 0; !status && k < known; k++) (void)learn(c, &truth[k], err);
    return status;
}

static fr_ranking *push(const fr_window *w, bool catalog_only, int most, int64_t sample) {
    fr_error err;
    fr_feed *feed;
    fr_ranking *ranking;
    counts c = count_open(w, catalog_only);
    fr_scorer_definition about = {
        .size = sizeof about, .name = "toy", .catalog_only = catalog_only};
    int count;
    fr_rank_settings settings = {.size = sizeof settings,
                                 .shard = 1,
                                 .popularity_power = 1,
                                 .sample_events = sample,
                                 .sample_seed = 4};
    learn_until(&c, fr_window_cut(w, (int32_t)c.facts.train));
    OK(fr_feed_open(w, &about, &settings, &feed, &err));
    do {
        OK(step(feed, &c, most, &count, &err));
        if (count)
            assert_true(c.seen <=
                        fr_window_cut(w, (int32_t)(c.facts.train + fr_feed_get(feed).submitted)));
    } while (count);
    OK(fr_feed_finish(feed, &ranking, &err));
    assert_int_equal(c.seen, c.facts.events); /* everything is returned in the end */
    fr_feed_close(feed);
    free(c.pair);
    return ranking;
}

static void same(const fr_ranking *a, const fr_ranking *b, bool expected) {
    fr_ranking_facts x = fr_ranking_get(a), y = fr_ranking_get(b);
    assert_int_equal(x.count, y.count);
    bool equal = !memcmp(x.records, y.records, (size_t)x.count * sizeof *x.records);
    assert_int_equal(equal, expected);
}

static void test_same_records(void **state) {
    fr_stream *stream = make_stream(*state);
    static const char *const catalogs[] = {"fixed", "time"};
    for (int order = 0; order < 3; order++) {
        for (int kind = 0; kind < 3; kind++) {
            fr_window *w = open_window(stream, order, catalogs[kind % 2]);
            bool catalog_only = kind == 2;
            fr_ranking *by_engine = pull(w, catalog_only);
            fr_ranking *one = push(w, catalog_only, 1, 0), *many = push(w, catalog_only, 50, 0);
            same(by_engine, one, true);
            same(by_engine, many, false); /* it learns late */
            if (!catalog_only &&
                kind == 0) { /* the same ranks, but for what a catalog leaves out */
                fr_ranking *less = pull(w, true);
                fr_ranking_facts x = fr_ranking_get(less), y = fr_ranking_get(by_engine);
                for (int64_t k = 0; k < x.count; k++) {
                    assert_int_equal(x.records[k].above, y.records[k].above);
                    assert_int_equal(x.records[k].avail_n, -1);
                }
                fr_ranking_close(less);
            }
            fr_ranking_close(by_engine);
            fr_ranking_close(one);
            fr_ranking_close(many);
            fr_window_close(w);
        }
    }
    fr_stream_close(stream);
}

/* The records of a sample are rows of those of all events, learned in the same batches. */
static void test_samples(void **state) {
    static const int batches[] = {1, 4, 50, 1000};
    fr_stream *stream = make_stream(*state);
    for (int order = 0; order < 3; order++)
        for (int kind = 0; kind < 4; kind++) {
            fr_window *w = open_window(stream, order, "fixed");
            fr_ranking *all = push(w, kind % 2, batches[kind], 0);
            fr_ranking_facts a = fr_ranking_get(all);
            for (int64_t sample = 1; sample < a.count; sample += 11) {
                fr_ranking *some = push(w, kind % 2, batches[kind], sample);
                fr_ranking_facts s = fr_ranking_get(some);
                int64_t at = 0;
                assert_int_equal(s.count, sample);
                assert_int_equal(s.protocol.sample_of, a.count);
                for (int64_t k = 0; k < s.count; k++) {
                    while (a.records[at].event < s.records[k].event) at++;
                    assert_memory_equal(&a.records[at], &s.records[k], sizeof *s.records);
                }
                fr_ranking_close(some);
            }
            fr_ranking_close(all);
            fr_window_close(w);
        }
    fr_stream_close(stream);
}

/* Batches that become smaller lose nothing; only requested events are returned. */
static void test_sampled_queries(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, FR_ORDER_STREAM, "fixed");
    fr_window_facts facts = fr_window_get(w);
    fr_rank_settings settings = {
        .size = sizeof settings, .shard = 1, .popularity_power = 1, .sample_events = 6};
    fr_scorer_definition about = {.size = sizeof about, .name = "toy"};
    float *scores = calloc((size_t)(8 * facts.candidates), sizeof *scores);
    fr_feed *feed;
    fr_ranking *ranking;
    const fr_query *queries;
    const fr_event *truth;
    int count, known, asked = 0, told = 0;
    assert_non_null(scores);
    OK(fr_feed_open(w, &about, &settings, &feed, &err));
    for (int most = 30;; most = 1) {
        OK(fr_feed_next(feed, most, &queries, &count, &err));
        if (!count) break;
        if (!asked) assert_int_equal(queries[0].event, facts.train);
        asked += count;
        OK(fr_feed_submit(feed, scores, count, &truth, &known, &err));
        told += known;
    }
    assert_in_range(asked, 6, 7); /* and the first */
    assert_int_equal(told, facts.events - facts.train);
    OK(fr_feed_finish(feed, &ranking, &err));
    assert_int_equal(fr_ranking_get(ranking).count, 6);
    fr_ranking_close(ranking);
    fr_feed_close(feed);
    free(scores);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- misuse ---- */

static void test_misuse(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, FR_ORDER_STREAM, "fixed");
    int64_t n = fr_window_get(w).candidates;
    float *scores = calloc((size_t)(3 * n), sizeof *scores);
    assert_non_null(scores);
    fr_feed *feed;
    fr_ranking *ranking;
    const fr_query *queries;
    int count;
    fr_scorer_definition about = {.size = sizeof about, .name = "mine", .score = score};
    FAILS(fr_feed_open(w, &about, NULL, &feed, &err), FR_EUSAGE, "are handed in");
    assert_null(feed);
    about.score = NULL;
    FAILS(fr_feed_open(NULL, &about, NULL, &feed, &err), FR_EUSAGE, "window is NULL");
    FAILS(fr_feed_open(w, NULL, NULL, &feed, &err), FR_EUSAGE, "about is NULL");
    fr_rank_settings verify = {
        .size = sizeof verify, .shard = 1, .popularity_power = 1, .verify = 3};
    FAILS(fr_feed_open(w, &about, &verify, &feed, &err), FR_EUSAGE, "one way of scoring");
    about.size = 8;
    FAILS(fr_feed_open(w, &about, NULL, &feed, &err), FR_EUSAGE, "has size 8");
    about.size = sizeof about;
    OK(fr_feed_open(w, &about, NULL, &feed, &err));
    FAILS(fr_feed_submit(feed, scores, 1, NULL, NULL, &err), FR_EUSAGE, "1 queries, expected 0");
    FAILS(fr_feed_next(feed, 0, &queries, &count, &err), FR_EUSAGE, "0 queries at once");
    FAILS(fr_feed_finish(feed, &ranking, &err), FR_EUSAGE, "0 of 90 test events have scores");
    OK(fr_feed_next(feed, 3, &queries, &count, &err));
    assert_int_equal(count, 3);
    assert_int_equal(queries[2].event, 212);
    FAILS(fr_feed_next(feed, 3, &queries, &count, &err), FR_EUSAGE, "3 queries wait");
    FAILS(fr_feed_submit(feed, scores, 2, NULL, NULL, &err), FR_EUSAGE, "2 queries, expected 3");
    scores[n + 1] = NAN;
    FAILS(fr_feed_submit(feed, scores, 3, NULL, NULL, &err), FR_EINPUT,
          "event 311: the score of destination 3 is nan");
    assert_int_equal(fr_feed_get(feed).pending, 3);
    scores[n + 1] = 0; /* again */
    OK(fr_feed_submit(feed, scores, 3, NULL, NULL, &err));
    assert_int_equal(fr_feed_get(feed).submitted, 3);
    do {
        OK(fr_feed_next(feed, 3, &queries, &count, &err));
        if (count) OK(fr_feed_submit(feed, scores, count, NULL, NULL, &err));
    } while (count);
    OK(fr_feed_finish(feed, &ranking, &err));
    fr_ranking_close(ranking);
    FAILS(fr_feed_finish(feed, &ranking, &err), FR_EUSAGE, "the feed is finished");
    FAILS(fr_feed_next(feed, 3, &queries, &count, &err), FR_EUSAGE, "the feed is finished");
    fr_feed_close(feed);
    fr_feed_close(NULL);
    assert_int_equal(fr_feed_get(NULL).row, 0);
    free(scores);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* A feed that is abandoned leaves nothing, not even the scores it was asked to keep. */
static void test_given_up(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, FR_ORDER_STREAM, "fixed");
    char *path = in_directory(*state, "kept.npy");
    fr_rank_settings settings = {
        .size = sizeof settings, .shard = 1, .popularity_power = 1, .dump_scores = path};
    fr_scorer_definition about = {.size = sizeof about, .name = "toy"};
    for (int finish = 0; finish < 2; finish++) {
        fr_feed *feed;
        fr_ranking *ranking = NULL;
        counts c = count_open(w, false);
        int count;
        learn_until(&c, (int32_t)c.facts.train);
        OK(fr_feed_open(w, &about, &settings, &feed, &err));
        do OK(step(feed, &c, 7, &count, &err));
        while (finish && count);
        if (finish) OK(fr_feed_finish(feed, &ranking, &err));
        fr_feed_close(feed);
        fr_ranking_close(ranking);
        assert_int_equal(access(path, F_OK), finish ? 0 : -1);
        free(c.pair);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- reading a window ---- */

static bool is_before(const fr_columns *c, int32_t train, int order, int32_t i, int32_t event) {
    if (order == FR_ORDER_STRICT) return c->time[i] < c->time[event];
    if (order == FR_ORDER_STREAM || event < train) return i < event;
    return i < train || (i - train) / BATCH < (event - train) / BATCH;
}

static void test_histories(void **state) {
    fr_stream *stream = make_stream(*state);
    for (int order = 0; order < 3; order++) {
        fr_window *w = open_window(stream, order, "fixed");
        fr_window_facts f = fr_window_get(w);
        fr_columns c = fr_window_columns(w);
        assert_int_equal(c.feature_width, 1);
        assert_int_equal(c.source_id[f.sources - 1], 2 * (SOURCES - 1));
        for (int32_t event = 0; event < f.events; event += 7) {
            int32_t u = c.source[event], v = c.destination[event];
            int32_t by_source = 0, by_destination = 0, by_pair = 0, met = 0;
            fr_history s = fr_window_source_history(w, u, event, INT32_MAX);
            fr_history d = fr_window_destination_history(w, v, event, INT32_MAX);
            fr_history p = fr_window_pair_history(w, u, v, event);
            fr_history m = fr_window_met(w, u, event);
            for (int32_t i = 0; i < f.events; i++) {
                if (!is_before(&c, (int32_t)f.train, order, i, event)) continue;
                bool first = c.source[i] == u;
                for (int32_t k = 0; k < i; k++)
                    first &= c.source[k] != u || c.destination[k] != c.destination[i];
                if (c.source[i] == u) assert_int_equal(s.event[by_source++], i);
                if (c.destination[i] == v) assert_int_equal(d.event[by_destination++], i);
                if (c.source[i] == u && c.destination[i] == v)
                    assert_int_equal(p.event[by_pair++], i);
                if (first) assert_int_equal(m.event[met++], i);
            }
            assert_int_equal(s.count, by_source);
            assert_int_equal(d.count, by_destination);
            assert_int_equal(p.count, by_pair);
            assert_int_equal(m.count, met);
            fr_history last = fr_window_source_history(w, u, event, 2);
            assert_int_equal(last.count, by_source < 2 ? by_source : 2);
            if (last.count) assert_int_equal(last.event[last.count - 1], s.event[by_source - 1]);
        }
        int32_t all = (int32_t)f.events;
        assert_int_equal(fr_window_cut(w, all), all);
        assert_int_equal(fr_window_cut(w, -1), 0);
        assert_int_equal(fr_window_source_history(w, (int32_t)f.sources, all, 9).count, 0);
        assert_int_equal(fr_window_source_history(w, -1, all, 9).count, 0);
        assert_int_equal(fr_window_source_history(w, 0, all, -1).count, 0);
        assert_int_equal(fr_window_destination_history(w, (int32_t)f.candidates, all, 9).count, 0);
        assert_int_equal(fr_window_pair_history(w, 0, -1, all).count, 0);
        assert_int_equal(fr_window_met(w, 1 << 30, all).count, 0);
        assert_int_equal(fr_window_met(NULL, 0, all).count, 0);
        assert_null(fr_window_event(w, all).features);
        assert_null(fr_window_columns(NULL).time);
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_same_records),    WITH_DIRECTORY(test_samples),
        WITH_DIRECTORY(test_sampled_queries), WITH_DIRECTORY(test_misuse),
        WITH_DIRECTORY(test_given_up),        WITH_DIRECTORY(test_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
