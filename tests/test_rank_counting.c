/* test_rank_counting.c - records counted without score vectors, and those of tiles of scores,
 * against those of whole score vectors.
 *
 * Every baseline but `random`, and a scorer of the test whose levels round to equal scores and
 * whose listed destinations tie with others: equal bytes of all records on random streams with
 * ties in time, for every order, catalog, filter, power of masses, shared ids, given negatives and
 * least number met, number of threads; and on real data. Definitions that contradict themselves are
 * refused.
 */
#include "base/npy.h"
#include "base/rng.h"
#include "baselines/baseline.h"
#include "rank/scorer.h"
#include "testing.h"

#include <math.h>

/* Ids have one to four digits, so that their order as text is another one. */
static fr_stream *make_stream(const char *directory, uint64_t seed, int events, bool shared) {
    fr_error err;
    rng_key key = {.seed = seed, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < events; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 8 + 60 * (uint32_t)i / (uint32_t)events; /* some come late */
        uint32_t v = rng_below(key, e, 1, reach);
        if (rng_below(key, e, 2, 3) == 0) v %= 4;
        (void)fprintf(file, "%u,%u,%d\n", rng_below(key, e, 0, 6), 1 + v * v, 10 * (i / 3));
    }
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    fr_import how = {.size = sizeof how, .shared_ids = shared};
    OK(fr_stream_open(path, &how, NULL, &stream, &err));
    return stream;
}

/* Ranks by vectors and by counts; both must leave equal bytes. The number of threads changes from
 * call to call. Returns the events ranked. */
static int64_t compare_ways(fr_scorer *vectors, fr_scorer *counts, const fr_rank_settings *settings,
                            const char *what) {
    fr_error err;
    fr_ranking *a, *b;
    static const int threads[] = {1, 2, 3, 8};
    static unsigned turn;
    fr_context context = {.threads = threads[turn++ % 4]};
    assert_true(counts->is.stand || counts->is.part);
    vectors->is.stand = NULL;
    OK(fr_rank_run(vectors, settings, NULL, &a, &err));
    OK(fr_rank_run(counts, settings, &context, &b, &err));
    fr_ranking_facts x = fr_ranking_get(a), y = fr_ranking_get(b);
    int64_t ranked = 0;
    assert_int_equal(x.count, y.count);
    for (int64_t k = 0; k < x.count; k++) {
        ranked += x.records[k].covered;
        if (!memcmp(&x.records[k], &y.records[k], sizeof *x.records)) continue;
        print_error("# %s: event %lld\n", what, (long long)x.records[k].event);
        assert_memory_equal(&x.records[k], &y.records[k], sizeof *x.records);
    }
    fr_ranking_close(a);
    fr_ranking_close(b);
    fr_scorer_close(vectors);
    fr_scorer_close(counts);
    return ranked;
}

static const char *const names[] = {"recency",
                                    "frequency",
                                    "decayed-frequency,half-life=300",
                                    "decayed-frequency,half-life=1",
                                    "popularity",
                                    "recent-popularity,half-life=300",
                                    "recent-popularity,half-life=1",
                                    "markov",
                                    "membership",
                                    "edgebank,memory=window",
                                    "edgebank,memory=duration",
                                    "edgebank,memory=threshold",
                                    "edgebank,memory=interval"};
enum { NAMES = sizeof names / sizeof *names };

static int64_t compare_baseline(const fr_window *w, const char *name,
                                const fr_rank_settings *settings) {
    fr_error err;
    char spec[64];
    fr_scorer *vectors, *counts;
    (void)snprintf(spec, sizeof spec, "baseline:%s", name);
    OK(fr_scorer_open(spec, w, 1, NULL, &vectors, &err));
    OK(fr_scorer_open(spec, w, 1, NULL, &counts, &err));
    return compare_ways(vectors, counts, settings, spec);
}

/* ---- a scorer of our own ---- */

/* A third of the count, rounded down, so that three levels tie; the last five events of the source
 * give their destinations scores of their own, which may be equal to others. */
typedef struct toy {
    const fr_window *w;
    int32_t *level; /* [events] */
    int32_t own[5];
    float own_score[5];
    int wrong; /* what it does wrong at the last event */
} toy;
enum { NOTHING_WRONG, BAD_SCORE, BAD_OWN_SCORE, BAD_DESTINATION, BAD_LEVELS, BAD_COUNT, FAILURE };

static int toy_own(toy *t, const fr_query *query) {
    const fr_window *w = t->w;
    fr_history past = window_source_history(w, query->source, window_cut(w, query->event), 5);
    int count = 0;
    for (int32_t k = past.count - 1; k >= 0; k--) {
        int32_t v = w->destination[past.event[k]];
        bool fresh = true;
        for (int j = 0; j < count; j++) fresh &= t->own[j] != v;
        if (!fresh) continue;
        t->own[count] = v;
        t->own_score[count++] = (float)((query->event + v) % 4);
    }
    return count;
}

static int32_t toy_count(const toy *t, const fr_query *query, int32_t v) {
    return window_destination_history(t->w, v, window_cut(t->w, query->event), INT32_MAX).count;
}

static fr_status toy_score(void *state, const fr_query *query, int count, int worker, float *scores,
                           fr_error *err) {
    (void)count, (void)worker, (void)err;
    toy *t = state;
    for (int32_t v = 0; v < t->w->destinations; v++)
        scores[v] = (float)(toy_count(t, query, v) / 3);
    int own = toy_own(t, query);
    for (int k = 0; k < own; k++) scores[t->own[k]] = t->own_score[k];
    return FR_OK;
}

static fr_status toy_stand(void *state, const fr_query *query, int32_t destination,
                           fr_standing *out, fr_error *err) {
    toy *t = state;
    int third = toy_count(t, query, destination) / 3;
    *out =
        (fr_standing){.own = toy_own(t, query), .destination = t->own, .own_score = t->own_score};
    for (int k = 0; k < out->own; k++)
        if (t->own[k] == destination) third = (int)t->own_score[k];
    out->score = (float)third;
    out->tied = 3 * third - 1; /* counts from 3 third on, so levels one lower */
    out->above = 3 * third + 2;
    if (query->event < t->w->to - 1) return FR_OK;
    if (t->wrong == BAD_SCORE) out->score = NAN;
    if (t->wrong == BAD_OWN_SCORE) t->own_score[0] = INFINITY;
    if (t->wrong == BAD_DESTINATION) t->own[0] = t->w->destinations;
    if (t->wrong == BAD_LEVELS) out->above = out->tied - 1;
    if (t->wrong == BAD_COUNT) out->own = -1;
    return t->wrong == FAILURE ? fail(err, FR_EINPUT, "no idea") : FR_OK;
}

static void toy_open(toy *t, const fr_window *w) {
    *t = (toy){.w = w, .level = calloc((size_t)w->events, sizeof *t->level)};
    for (int32_t i = 0; i < w->events; i++)
        t->level[i] = window_destination_history(w, w->destination[i], i, INT32_MAX).count;
}

static fr_scorer *toy_make(toy *t) {
    fr_error err;
    fr_scorer *s;
    fr_scorer_definition d = {.size = sizeof d,
                              .name = "toy",
                              .state = t,
                              .score = toy_score,
                              .level = t->level,
                              .stand = toy_stand};
    OK(fr_scorer_make(t->w, &d, &s, &err));
    return s;
}

static int64_t compare_toy(const fr_window *w, const fr_rank_settings *settings) {
    toy t;
    toy_open(&t, w);
    int64_t ranked = compare_ways(toy_make(&t), toy_make(&t), settings, "toy");
    free(t.level);
    return ranked;
}

/* ---- tests ---- */

/* `random`, which has no structure, in tiles of 7 candidates. */
static int64_t compare_tiles(const fr_window *w, const fr_rank_settings *settings) {
    fr_error err;
    fr_scorer *whole, *tiled;
    OK(fr_scorer_open("baseline:random", w, 1, NULL, &whole, &err));
    OK(fr_scorer_open("baseline:random", w, 1, NULL, &tiled, &err));
    tiled->is.tile = 7;
    return compare_ways(whole, tiled, settings, "tiles");
}

static void compare_all(const fr_window *w, const fr_rank_settings *settings) {
    int64_t ranked = compare_toy(w, settings);
    assert_true(ranked > 0);
    assert_int_equal(compare_tiles(w, settings), ranked);
    for (int k = 0; k < NAMES; k++)
        assert_int_equal(compare_baseline(w, names[k], settings), ranked);
}

/* Every catalog in every order, with and without a filter; ids of one role or of both. */
static void test_protocols(void **state) {
    fr_error err;
    char *list = in_directory(*state, "catalog.txt");
    put_text(list, "1\n2\n5\n10\n26\n37\n50\n65\n82\n101\n123456789\n");
    char words[][16] = {"fixed", "train+val", "all", "range", "time"};
    char *catalogs[] = {words[0], words[1], words[2], words[3], words[4], list};
    for (int shared = 0; shared < 2; shared++) {
        fr_stream *stream = make_stream(*state, (uint64_t)shared, 420, shared);
        for (int order = 0; order < 3; order++)
            for (int catalog = 0; catalog < 6; catalog++)
                for (int filter = 0; filter < 2; filter++) {
                    if (SANITIZED && (catalog + order + filter) % 3) continue;
                    fr_protocol p = {.size = sizeof p,
                                     .window = 400,
                                     .train_share = 0.5,
                                     .val_share = 0.2,
                                     .part = (catalog + order) % 2,
                                     .order = order_text(order),
                                     .catalog = catalogs[catalog],
                                     .filter = filter};
                    fr_rank_settings s = {.size = sizeof s,
                                          .shard = 5,
                                          .met = catalog == 2 ? 3 : 0,
                                          .popularity_power = order == 1 ? 0.7 : 1};
                    fr_window *w;
                    OK(fr_window_open(stream, &p, NULL, &w, &err));
                    compare_all(w, &s);
                    fr_window_close(w);
                }
        fr_stream_close(stream);
    }
}

/* Lists of other candidates than the event's own. */
static void test_given_negatives(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 3, 420, false);
    fr_protocol p = {.size = sizeof p, .train_share = 0.6};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    enum { K = 6 };
    int64_t rows = w->to - w->from, *list = calloc((size_t)rows * K, sizeof *list);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0, at = i; k < K; at++) {
            int32_t v = w->catalog[at % w->catalog_size];
            if (v != w->destination[w->from + i]) list[i * K + k++] = w->destination_id[v];
        }
    char *path = in_directory(*state, "negatives.npy");
    npy_writer file;
    OK(npy_writer_open(&file, path, 'i', 8, K, &err));
    OK(npy_writer_put(&file, list, rows, &err));
    OK(npy_writer_commit(&file, &err));
    fr_rank_settings s = {.size = sizeof s, .shard = 5, .popularity_power = 1, .negatives = path};
    compare_all(w, &s);
    free(list);
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_real_data(void **state) {
    (void)state;
    static const char *const files[] = {"wikipedia.csv.gz", "mooc.csv.gz"};
    for (int f = 0; f < 2; f++) {
        fr_error err;
        const char *path = data_file(files[f]);
        if (!path) skip_because("real data not found");
        fr_stream *stream;
        fr_window *w;
        fr_protocol p = {.size = sizeof p, .window = SANITIZED ? 4096 : 32768, .train_share = 0.85};
        fr_rank_settings s = {.size = sizeof s, .shard = 64, .popularity_power = 1};
        OK(fr_stream_open(path, NULL, NULL, &stream, &err));
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        compare_all(w, &s);
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

/* `verify` compares while it ranks, and sees a scorer whose two ways disagree. */
static void test_verify(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 4, 300, false);
    fr_window *w;
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    fr_rank_settings s = {.size = sizeof s, .shard = 64, .popularity_power = 1, .verify = 20};
    toy t;
    toy_open(&t, w);
    for (int wrong = 0; wrong < 2; wrong++) {
        fr_scorer *scorer = toy_make(&t);
        if (wrong) scorer->is.level = NULL;
        fr_ranking *r;
        OK(fr_rank_run(scorer, &s, NULL, &r, &err));
        fr_ranking_facts f = fr_ranking_get(r);
        assert_int_equal(f.verified, 20);
        assert_true(wrong ? f.verified_ranks > 0 : f.verified_ranks == 0);
        fr_ranking_close(r);
        fr_scorer_close(scorer);
    }
    s.verify = 0; /* without being asked, a few events are compared all the same */
    fr_ranking *r;
    fr_scorer *scorer = toy_make(&t);
    scorer->is.level = NULL;
    FAILS(fr_rank_run(scorer, &s, NULL, &r, &err), FR_EINPUT,
          "toy: its scores give another record than how it says its candidates stand");
    fr_scorer_close(scorer);
    free(t.level);
    fr_window_close(w);
    fr_stream_close(stream);
}

static bool say_yes(void *user) {
    (void)user;
    return true;
}

/* As many events are compared with any number of threads and any shard, and the scorer has observed
 * everything in the end. An interruption ends all threads. */
static void test_threads(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 6, 400, false);
    fr_window *w;
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    for (int threads = 1; threads <= 8; threads++) {
        fr_rank_settings s = {
            .size = sizeof s, .shard = 1 + 3 * (threads % 4), .popularity_power = 1, .verify = 50};
        fr_context context = {.threads = threads};
        fr_scorer *scorer;
        fr_ranking *r;
        OK(fr_scorer_open("baseline:recency", w, 1, NULL, &scorer, &err));
        OK(fr_rank_run(scorer, &s, &context, &r, &err));
        fr_ranking_facts f = fr_ranking_get(r);
        assert_int_equal(f.verified, 50);
        assert_int_equal(f.verified_ranks, 0);
        assert_int_equal(fr_scorer_get(scorer).observed, w->to);
        fr_ranking_close(r);
        fr_scorer_close(scorer);
        OK(fr_scorer_open("baseline:edgebank", w, 1, NULL, &scorer, &err));
        context.cancel = say_yes;
        FAILS(fr_rank_run(scorer, &s, &context, &r, &err), FR_ECANCEL, "interrupted");
        fr_scorer_close(scorer);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_refused(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 5, 300, false);
    fr_window *w;
    fr_protocol p = {.size = sizeof p, .train_share = 0.5, .catalog = (char[]){"all"}};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    static const struct {
        int wrong;
        const char *message;
    } cases[] = {{BAD_SCORE, "expected a number"},
                 {BAD_OWN_SCORE, "is inf, expected a number"},
                 {BAD_DESTINATION, "expected 0 to"},
                 {BAD_LEVELS, "expected ascending levels"},
                 {BAD_COUNT, "toy: -1 with scores of their own"},
                 {FAILURE, "no idea"}};
    fr_rank_settings s = {.size = sizeof s, .shard = 64, .popularity_power = 1};
    fr_ranking *r;
    toy t;
    toy_open(&t, w);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_scorer *scorer = toy_make(&t);
        t.wrong = cases[k].wrong;
        FAILS(fr_rank_run(scorer, &s, NULL, &r, &err), FR_EINPUT, cases[k].message);
        fr_scorer_close(scorer);
    }
    t.level[7] = w->events;
    fr_scorer *scorer = toy_make(&t);
    FAILS(fr_rank_run(scorer, &s, NULL, &r, &err), FR_EINPUT,
          "event 7: level 300, expected 0 to 299");
    fr_scorer_definition d = scorer->is;
    fr_scorer_close(scorer);
    d.name = "toy", d.model = d.objective = d.sha256 = NULL;
    d.catalog_only = true;
    FAILS(fr_scorer_make(w, &d, &scorer, &err), FR_EUSAGE, "knows the catalog only");
    free(t.level);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Whole numbers keep their order as scores, whatever the window's length. */
static void test_long_windows(void **state) {
    (void)state;
    static const int64_t at[] = {-1,         0,          1,          (1 << 24) - 1,
                                 1 << 24,    2130706430, 2130706431, 2130706432,
                                 2147483646, 2147483647, 4261412862};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        float here = baseline_score(true, at[k]);
        assert_true(isnormal(here));
        if (at[k] < 1 << 23) assert_true(baseline_score(false, at[k]) == (float)at[k]);
        if (at[k] > -1) assert_true(baseline_score(true, at[k] - 1) < here);
        if (k) assert_true(baseline_score(true, at[k - 1]) < here);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_protocols),     WITH_DIRECTORY(test_given_negatives),
        cmocka_unit_test(test_real_data),   WITH_DIRECTORY(test_verify),
        WITH_DIRECTORY(test_threads),       WITH_DIRECTORY(test_refused),
        cmocka_unit_test(test_long_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
