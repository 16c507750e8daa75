/* test_rank_sample.c - samples of test events (PROTOCOL 15): their records are rows of the ranking
 * of all events, every event is as likely as any other, and a 95 % interval covers the value of all
 * events in about 95 % of the samples. */
#include "eval/finite.h"
#include "rank/events.h"
#include "rank/ranking.h"
#include "testing.h"

#include <math.h>

static fr_stream *make_stream(const char *directory) {
    fr_error err;
    fr_stream *stream;
    char *path = in_directory(directory, "stream");
    fr_synth synth = {.size = sizeof synth, .preset = (char[]){"tiny"}, .seed = 5, .events = 3000};
    OK(fr_synth_make(&synth, path, NULL, &err));
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

static fr_window *open_window(const fr_stream *stream, int order, const char *catalog) {
    fr_error err;
    fr_window *w;
    fr_protocol p = {.size = sizeof p,
                     .train_share = 0.8,
                     .order = order_text(order),
                     .catalog = (char *)(uintptr_t)catalog};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    return w;
}

static fr_ranking *rank_sample(const fr_window *w, const char *spec, int64_t sample, int64_t seed,
                               int threads, int64_t shard) {
    fr_error err;
    fr_scorer *scorer;
    fr_ranking *out;
    fr_context context = {.threads = threads};
    fr_rank_settings settings;
    OK(fr_options_defaults(fr_rank_options, &settings, &err));
    settings.sample_events = sample;
    settings.sample_seed = seed;
    settings.shard = shard;
    OK(fr_scorer_open(spec, w, 3, &context, &scorer, &err));
    OK(fr_rank_run(scorer, &settings, &context, &out, &err));
    fr_scorer_close(scorer);
    fr_options_free(fr_rank_options, &settings);
    return out;
}

/* ---- records ---- */

/* Every record of the sample is the record that the ranking of all has for its event. */
static void assert_rows(const fr_ranking *sample, const fr_ranking *all) {
    fr_ranking_facts s = fr_ranking_get(sample), a = fr_ranking_get(all);
    int64_t at = 0, covered = 0;
    for (int64_t i = 0; i < s.count; i++) {
        while (at < a.count && a.records[at].event != s.records[i].event) at++;
        assert_true(at < a.count);
        assert_memory_equal(&s.records[i], &a.records[at++], sizeof(fr_record));
    }
    for (int64_t i = 0; i < a.count; i++) covered += a.records[i].covered;
    assert_int_equal(s.covered, covered);
    assert_int_equal(s.protocol.sample, s.count);
    assert_int_equal(s.protocol.sample_of, a.count);
}

static void test_rows(void **state) {
    static const char *const specs[] = {"baseline:recency", "baseline:random", "oracle",
                                        "baseline:popularity"};
    fr_stream *stream = make_stream(*state);
    for (int order = 0; order < 3; order++) {
        fr_window *w = open_window(stream, order, order == 1 ? "time" : "fixed");
        for (int i = 0; i < (order ? 2 : 4); i++) {
            fr_ranking *all = rank_sample(w, specs[i], 0, 1, 2, 64), *whole, *some, *again;
            int64_t count = fr_ranking_get(all).count;
            some = rank_sample(w, specs[i], 100, 9, 3, 1);
            assert_int_equal(fr_ranking_get(some).count, 100);
            assert_rows(some, all);
            again = rank_sample(w, specs[i], 100, 9, 1, 64);
            assert_memory_equal(fr_ranking_get(some).records, fr_ranking_get(again).records,
                                100 * sizeof(fr_record));
            whole = rank_sample(w, specs[i], count, 9, 1, 64); /* as many as there are */
            assert_int_equal(fr_ranking_get(whole).protocol.sample, 0);
            assert_int_equal(fr_ranking_get(whole).count, count);
            fr_ranking_close(all);
            fr_ranking_close(some);
            fr_ranking_close(again);
            fr_ranking_close(whole);
        }
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

/* ---- which events ---- */

/* Each event is in a share n/N of all samples, pairs of events are independent of their distance,
 * and a smaller sample is a part of a larger one of the same seed. */
static void test_draws(void **state) {
    enum { N = 60, SEEDS = 2000 };
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, FR_ORDER_STREAM, "fixed");
    int32_t part = w->to - w->from;
    int32_t *often = calloc((size_t)part, sizeof *often);
    double share = (double)N / part, chi = 0, neighbours = 0;
    assert_non_null(often);
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        event_list small, large;
        OK(events_open(&small, w, N, seed, &err));
        assert_int_equal(small.count, N);
        for (int32_t k = 0; k < N; k++) {
            int32_t place = small.event[k] - w->from;
            assert_int_equal(events_row(&small, place), k);
            assert_int_equal(events_at(&small, k), small.event[k]);
            if (k) assert_true(small.event[k] > small.event[k - 1]);
            if (k) neighbours += small.event[k] == small.event[k - 1] + 1;
            often[place]++;
        }
        if (seed < 10) {
            OK(events_open(&large, w, 2 * N, seed, &err));
            for (int32_t k = 0; k < N; k++) assert_true(large.row[small.event[k] - w->from] >= 0);
            events_close(&large);
        }
        events_close(&small);
    }
    for (int32_t k = 0; k < part; k++) {
        double expected = SEEDS * share, away = often[k] - expected;
        chi += away * away / (expected * (1 - share));
    }
    /* chi has mean `part` and deviation sqrt(2 part); both draws of a pair follow n(n-1)/N(N-1). */
    assert_true(fabs(chi - part) < 5 * sqrt(2.0 * part));
    double pairs = SEEDS * (part - 1) * share * (N - 1) / (part - 1);
    assert_true(fabs(neighbours - pairs) < 5 * sqrt(pairs));
    free(often);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- how a sample is described ---- */

static void test_description(void **state) {
    fr_error err;
    char fields[256];
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, FR_ORDER_STREAM, "time");
    fr_ranking *all = rank_sample(w, "baseline:recency", 0, 1, 1, 64), *loaded;
    fr_ranking *some = rank_sample(w, "baseline:recency", 50, 4, 1, 64);
    char *path = in_directory(*state, "some.npy");
    OK(fr_ranking_save(some, path, false, &err));
    OK(fr_ranking_load(path, &loaded, &err));
    fr_ranking_facts f = fr_ranking_get(loaded), a = fr_ranking_get(all);
    assert_non_null(strstr(f.protocol_text, "sample=50 sample_of=600 sample_seed=4"));
    assert_int_equal(f.covered, fr_ranking_get(some).covered);
    assert_int_equal(fr_protocol_compare(&f.protocol, &a.protocol, fields, sizeof fields), 3);
    assert_non_null(strstr(fields, "sample (50 against 0)"));
    fr_ranking_close(loaded);

    fr_membership table;
    FAILS(fr_membership_compute(some, 1, 1, NULL, &table, &err), FR_EINPUT, "sample of 50 of 600");
    fr_feed *feed;
    fr_scorer_definition about = {.size = sizeof about, .name = "x"};
    fr_rank_settings settings = {.size = sizeof settings, .shard = 1, .sample_events = 5};
    OK(fr_feed_open(w, &about, &settings, &feed, &err)); /* test_rank_feed.c has its records */
    fr_feed_close(feed);
    const char *name = "mrr";
    fr_interval interval;
    fr_interval_settings how = {.size = sizeof how, .over = FR_OVER_SAMPLE};
    FAILS(fr_intervals_compute(f.records, 0, 0, &name, 1, &how, 0, NULL, &interval, &err),
          FR_EUSAGE, "sample of 0");

    some->protocol.sample_of = 50; /* a sample of itself */
    json_t *protocol = json_object_get(some->about, "protocol");
    assert_int_equal(json_object_set_new(protocol, "sample_of", json_integer(50)), 0);
    OK(fr_ranking_save(some, path, true, &err));
    FAILS(fr_ranking_load(path, &loaded, &err), FR_EINPUT, "sample of 50 of 50");
    fr_ranking_close(some);
    fr_ranking_close(all);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- intervals ---- */

static const char *const names[] = {"mrr",         "hits@10",      "mrr-new",
                                    "all-seen",    "ndcg@5",       "mean-rank",
                                    "median-rank", "mrr-adjusted", "mrr-available"};
enum { NAMES = sizeof names / sizeof *names, MEANS = 6, SAMPLE = 400 };

/* The values of all events, for each name and for MRR with 20 negatives. */
static void know(const fr_ranking_facts *f, double truth[NAMES + 1]) {
    static const int64_t k = 20;
    fr_error err;
    fr_metric_value value[NAMES];
    fr_sampling uniform = {.sampler = "uniform", .k = &k, .k_count = 1};
    fr_expected expected;
    OK(fr_metrics_compute(f->records, f->count, f->oov, names, NAMES, value, &err));
    OK(fr_expected_compute(f->records, f->count, &uniform, NULL, &expected, &err));
    for (int i = 0; i < NAMES; i++) truth[i] = value[i].value;
    truth[NAMES] = expected.mrr;
}

/* Draws records[SAMPLE] of a ranking of all events. */
static void draw(const fr_window *w, const fr_ranking_facts *all, int64_t seed, fr_record *out) {
    fr_error err;
    event_list list;
    OK(events_open(&list, w, SAMPLE, seed, &err));
    for (int32_t k = 0; k < SAMPLE; k++) out[k] = all->records[events_at(&list, k) - w->from];
    events_close(&list);
}

/* How many of the samples' intervals hold the value of all events. */
static void count_covered(const fr_window *w, const fr_ranking_facts *all, int seeds, int from,
                          int to, int covered[NAMES + 1]) {
    static const int64_t k = 20;
    fr_error err;
    double truth[NAMES + 1];
    fr_record *records = calloc(SAMPLE, sizeof *records);
    fr_sampling uniform = {.sampler = "uniform", .k = &k, .k_count = 1};
    fr_interval_settings how = {.size = sizeof how,
                                .block = 128,
                                .resamples = 100,
                                .level = 0.95,
                                .of = all->count,
                                .over = FR_OVER_SAMPLE};
    know(all, truth);
    for (int64_t seed = 0; seed < seeds; seed++) {
        fr_interval found[NAMES + 1];
        draw(w, all, seed, records);
        OK(fr_intervals_compute(records, SAMPLE, all->oov, names + from, to - from, &how, seed,
                                NULL, found + from, &err));
        if (!from)
            OK(fr_intervals_expected(records, SAMPLE, &uniform, &how, seed, NULL, &found[NAMES],
                                     &err));
        for (int i = 0; i <= NAMES; i++)
            if ((i >= from && i < to) || (!from && i == NAMES))
                covered[i] += found[i].low <= truth[i] && truth[i] <= found[i].high;
    }
    free(records);
}

static fr_stream *open_real(const char *name, fr_window **w) {
    fr_error err;
    fr_stream *stream;
    const char *path = data_file(name);
    fr_protocol p = {.size = sizeof p, .window = 32768, .train_share = 0.85};
    if (!path) skip_because("real data not found");
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    OK(fr_window_open(stream, &p, NULL, w, &err));
    return stream;
}

/* On a real ranking, by drawing again and again. Medians of ranks 1 cover always. */
static void test_coverage(void **state) {
    (void)state;
    const int seeds = SANITIZED ? 20 : 500, others = SANITIZED ? 5 : 60;
    int covered[NAMES + 1] = {0};
    fr_window *w;
    fr_stream *stream = open_real("wikipedia.csv.gz", &w);
    fr_ranking *ranking = rank_sample(w, "baseline:recency", 0, 1, 2, 64);
    fr_ranking_facts all = fr_ranking_get(ranking);
    count_covered(w, &all, seeds, 0, MEANS, covered);
    count_covered(w, &all, others, MEANS, NAMES, covered);
    for (int i = 0; i <= NAMES; i++) {
        bool mean = i < MEANS || i == NAMES;
        double share = (double)covered[i] / (mean ? seeds : others);
        print_message("# %s: %.3f\n", i < NAMES ? names[i] : "expected-20", share);
        if (SANITIZED) continue;
        /* new pairs are few, about 56 of a sample, and most have small reciprocal ranks */
        bool skewed = i < NAMES && !strcmp(names[i], "mrr-new");
        assert_true(share > (skewed ? 0.82 : 0.91));
        assert_true(share < 0.98 || !mean);
    }
    fr_ranking_close(ranking);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* A median has few possible values: an end of its interval between two of them would miss the true
 * one. Two thirds of all events are drawn here. */
static void test_median(void **state) {
    enum { SEEDS = 60, MEDIAN = MEANS };
    static const char *const specs[] = {"baseline:recency", "baseline:popularity"};
    fr_stream *stream = make_stream(*state);
    fr_window *w = open_window(stream, 0, "fixed");
    assert_string_equal(names[MEDIAN], "median-rank");
    for (int i = 0; i < 2; i++) {
        int covered[NAMES + 1] = {0};
        fr_ranking *ranking = rank_sample(w, specs[i], 0, 1, 2, 64);
        fr_ranking_facts all = fr_ranking_get(ranking);
        count_covered(w, &all, SEEDS, MEDIAN, MEDIAN + 1, covered);
        print_message("# %s: %d of %d\n", specs[i], covered[MEDIAN], SEEDS);
        assert_true(covered[MEDIAN] > 0.91 * SEEDS);
        fr_ranking_close(ranking);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* The difference of two models, and each of them, as fr_compare has them. */
static void test_comparison(void **state) {
    (void)state;
    const int seeds = SANITIZED ? 3 : 200;
    static const char *const specs[] = {"baseline:recency", "baseline:edgebank"};
    static const int64_t k = 20;
    fr_error err;
    fr_window *w;
    fr_stream *stream = open_real("wikipedia.csv.gz", &w);
    fr_ranking *ranking[2], sample[2];
    fr_record *records = calloc(2 * SAMPLE, sizeof *records);
    fr_compare_run run[2];
    double truth[2][NAMES + 1];
    int covered[2] = {0}, held = 0;
    fr_compare_settings how;
    OK(fr_options_defaults(fr_compare_options, &how, &err));
    how.resamples = 100;
    for (int m = 0; m < 2; m++) {
        ranking[m] = rank_sample(w, specs[m], 0, 1, 2, 64);
        fr_ranking_facts f = fr_ranking_get(ranking[m]);
        know(&f, truth[m]);
        sample[m] = *ranking[m];
        sample[m].records = records + m * SAMPLE;
        sample[m].count = sample[m].protocol.sample = SAMPLE;
        sample[m].protocol.sample_of = f.count;
        run[m] = (fr_compare_run){.ranking = &sample[m], .file = "x", .model = specs[m]};
    }
    for (int64_t seed = 0; seed < seeds; seed++) {
        fr_comparison *c;
        for (int m = 0; m < 2; m++) {
            fr_ranking_facts f = fr_ranking_get(ranking[m]);
            draw(w, &f, seed, sample[m].records);
        }
        OK(fr_compare(run, 2, &k, 1, &how, 1, NULL, &c, &err));
        fr_comparison_facts f = fr_comparison_get(c);
        assert_int_equal(f.block, 10); /* 128 of 4,916, in a sample of 400 */
        for (int j = 0; j < 2; j++) {
            int of = j ? 0 : NAMES;
            double difference = truth[1][of] - truth[0][of];
            fr_interval i = f.pair[0].sample[j];
            covered[j] += i.low <= difference && difference <= i.high;
        }
        fr_interval i = f.model[1].sample[1];
        held += i.low <= truth[1][0] && truth[1][0] <= i.high;
        fr_comparison_close(c);
    }
    print_message("# expected-20: %.3f, full: %.3f, one model: %.3f\n", (double)covered[0] / seeds,
                  (double)covered[1] / seeds, (double)held / seeds);
    if (!SANITIZED)
        assert_true(covered[0] > 0.91 * seeds && covered[1] > 0.91 * seeds && held > 0.91 * seeds);
    for (int m = 0; m < 2; m++) fr_ranking_close(ranking[m]);
    fr_options_free(fr_compare_options, &how);
    free(records);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Against the formulas, by hand: 1, 2, 3, 4 of 10; all of 4. */
static void test_formulas(void **state) {
    (void)state;
    const double each[] = {1, NAN, 2, 3, 4}, hits[] = {0, 0, 0, 0};
    finite_sample f = {5, 10, 0.95};
    fr_interval i = finite_mean(f, each);
    double half = 3.182446305284263 * sqrt(0.5 * (5.0 / 3) / 4); /* t(0.975, 3) */
    assert_true(fabs(i.low - (2.5 - half)) < 1e-12 && fabs(i.high - (2.5 + half)) < 1e-12);
    f.of = 5;
    i = finite_mean(f, each);
    assert_true(i.low == 2.5 && i.high == 2.5);
    f = (finite_sample){4, 8, 0.95};
    i = finite_share(f, hits);
    double weight = 0.5 * 3.182446305284263 * 3.182446305284263 / 4;
    assert_true(i.low == 0 && fabs(i.high - weight / (1 + weight)) < 1e-12);
    assert_int_equal(finite_block((finite_sample){1000, 4916, 0.95}, 128), 26);
    assert_int_equal(finite_block((finite_sample){10, 4916, 0.95}, 128), 1);
    assert_int_equal(finite_block((finite_sample){10, 0, 0.95}, 128), 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_rows),        WITH_DIRECTORY(test_draws),
        WITH_DIRECTORY(test_description), cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_coverage),  WITH_DIRECTORY(test_median),
        cmocka_unit_test(test_comparison)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
