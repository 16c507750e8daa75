/* test_eval_interval.c - intervals of single rankings, tests of any metric, Holm's correction and
 * Welch's interval: against brute force, and as equal bits over threads. */
#include "base/rng.h"
#include "eval/statistic.h"
#include "eval/student.h"
#include "rank/ranking.h"
#include "testing.h"

#include <math.h>

enum { EVENTS = 330, MODELS = 4, SEEDS = 3, RUNS = MODELS * SEEDS, BLOCK = 24, CATALOG = 150 };

/* Models of unlike strength; every tenth event is not covered, the first and the last among them.
 */
typedef struct world {
    fr_record records[RUNS][EVENTS];
    fr_ranking ranking[RUNS];
    fr_compare_run run[RUNS];
} world;

static world *make_world(void) {
    static world w;
    static const char *const names[MODELS] = {"a", "b", "c", "d"};
    char *text = (char *)(uintptr_t) "window=10";
    for (int i = 0; i < RUNS; i++) {
        for (int e = 0; e < EVENTS; e++) {
            double hard[2], noise[2];
            rng_normal((rng_key){.seed = 5, .epoch = 1}, (uint64_t)e / 16, 0, hard);
            rng_normal((rng_key){.seed = 5}, (uint64_t)e, (uint32_t)i, noise);
            double rank = exp(1.5 + hard[0] + noise[0] - 0.15 * (i / SEEDS));
            int32_t above = rank < CATALOG - 3 ? (int32_t)rank : CATALOG - 3;
            bool covered = e % 10 != 0 && e != EVENTS - 1;
            w.records[i][e] = (fr_record){.event = e,
                                          .covered = covered,
                                          .repeated = e % 3 == 0,
                                          .n = covered ? CATALOG : -1,
                                          .above = covered ? above : -1,
                                          .tied = covered ? e % 7 == 2 : -1,
                                          .avail_n = e % 4 ? CATALOG : -1,
                                          .avail_above = e % 4 ? above : -1,
                                          .avail_tied = e % 4 ? 0 : -1};
        }
        w.ranking[i] = (fr_ranking){.records = w.records[i],
                                    .count = EVENTS,
                                    .protocol = {.window = 10, .data_sha256 = text},
                                    .protocol_text = text,
                                    .scorer = (char *)(uintptr_t)names[i / SEEDS],
                                    .model = (char *)(uintptr_t)names[i / SEEDS],
                                    .objective = (char *)(uintptr_t) "bce",
                                    .data = text,
                                    .seed = i % SEEDS};
        w.run[i] = (fr_compare_run){.ranking = &w.ranking[i], .file = "file.npy"};
    }
    return &w;
}

static fr_compare_settings comparing(const char *metric) {
    return (fr_compare_settings){.size = sizeof(fr_compare_settings),
                                 .metric = (char *)(uintptr_t)metric,
                                 .block = BLOCK,
                                 .resamples = 200,
                                 .level = 0.9};
}

/* ---- brute force ---- */

static int block_of(int event) { /* of the ranked events before and with it */
    int ranked = 0;
    for (int e = 0; e <= event; e++) ranked += e % 10 != 0 && e != EVENTS - 1;
    return ranked ? (ranked - 1) / BLOCK : 0;
}

static double by_name(const char *name, const fr_record *records, int64_t count) {
    fr_error err;
    fr_metric_value value;
    OK(fr_metrics_compute(records, count, FR_OOV_EXCLUDE, &name, 1, &value, &err));
    return value.value;
}

/* A metric over the blocks that resample r draws, put together event by event. */
static double drawn_by_hand(const fr_record *records, const char *name, uint64_t seed, int r) {
    static fr_record some[4 * EVENTS];
    int64_t count = 0;
    int blocks = block_of(EVENTS - 1) + 1;
    for (int b = 0; b < blocks; b++) {
        rng_key key = {.seed = seed, .purpose = RNG_BOOTSTRAP};
        int drawn = (int)rng_below(key, (uint64_t)r, (uint32_t)b, (uint32_t)blocks);
        for (int e = 0; e < EVENTS; e++)
            if (block_of(e) == drawn) some[count++] = records[e];
    }
    return by_name(name, some, count);
}

/* The difference when some blocks have changed sides. */
static double swapped_by_hand(const fr_record *a, const fr_record *b, const char *name,
                              uint64_t seed, int r) {
    static fr_record first[EVENTS], second[EVENTS];
    double sign[EVENTS];
    bootstrap_sign(seed, r, block_of(EVENTS - 1) + 1, sign);
    for (int e = 0; e < EVENTS; e++) {
        bool stays = sign[block_of(e)] > 0;
        first[e] = stays ? a[e] : b[e];
        second[e] = stays ? b[e] : a[e];
    }
    return by_name(name, second, EVENTS) - by_name(name, first, EVENTS);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static fr_interval middle(double *values, int count, double level) {
    double end[2];
    qsort(values, (size_t)count, sizeof *values, ascending);
    for (int i = 0; i < 2; i++) {
        double place = (i ? 1 + level : 1 - level) / 2 * (count - 1);
        int low = (int)place, high = low + 1 < count ? low + 1 : low;
        end[i] = values[low] + (place - low) * (values[high] - values[low]);
    }
    return (fr_interval){end[0], end[1]};
}

static void near(double found, double expected, const char *what) {
    if (fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))) return;
    print_error("# %s: found %.17g, expected %.17g\n", what, found, expected);
    assert_true(false);
}

/* ---- single rankings ---- */

/* Every metric of the registry has the interval that drawing by hand gives. */
static void test_every_metric(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    fr_interval_settings s = {.size = sizeof s, .block = BLOCK, .resamples = 100, .level = 0.9};
    const fr_definition *d;
    for (int m = 0; (d = fr_metric_at(m)); m++) {
        char name[64];
        const char *mark = strstr(d->name, "@k"), *asked = name;
        (void)snprintf(name, sizeof name, "%.*s%s", (int)strcspn(d->name, "@"), d->name,
                       mark ? "@3" : "");
        fr_interval found, one;
        OK(fr_intervals_compute(w->records[0], EVENTS, FR_OOV_EXCLUDE, &asked, 1, &s, 4,
                                &(fr_context){.threads = 2}, &found, &err));
        double values[100];
        for (int r = 0; r < 100; r++) values[r] = drawn_by_hand(w->records[0], name, 4, r);
        fr_interval expected = middle(values, 100, 0.9);
        near(found.low, expected.low, name);
        near(found.high, expected.high, name);
        OK(fr_intervals_compute(w->records[0], EVENTS, FR_OOV_EXCLUDE, &asked, 1, &s, 4,
                                &(fr_context){.threads = 5}, &one, &err));
        assert_memory_equal(&one, &found, sizeof one);
    }
}

static void test_expected(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    static const int64_t k[] = {5, 1000, CATALOG - 1}, ten[] = {10};
    fr_sampling sampling = {
        .sampler = "uniform", .k = k, .k_count = 3, .hits = ten, .hits_count = 1};
    fr_interval_settings s = {.size = sizeof s, .block = BLOCK, .resamples = 300, .level = 0.9};
    fr_interval found[3], full;
    const char *mrr = "mrr";
    OK(fr_intervals_expected(w->records[0], EVENTS, &sampling, &s, 4, NULL, found, &err));
    OK(fr_intervals_compute(w->records[0], EVENTS, FR_OOV_EXCLUDE, &mrr, 1, &s, 4, NULL, &full,
                            &err));
    near(found[2].low, full.low, "all negatives are the full catalog");
    near(found[2].high, full.high, "all negatives are the full catalog");
    near(found[1].low, full.low, "a K larger than the catalog takes all of it");
    near(found[1].high, full.high, "a K larger than the catalog takes all of it");
    assert_true(found[0].low > full.high); /* five negatives are easier */
}

/* No interval if there is nothing to draw from; errors say what is wrong. */
static void test_none(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    const char *const names[] = {"mrr", "median-rank", "all-seen"};
    fr_interval found[3];
    OK(fr_intervals_compute(w->records[0], 20, FR_OOV_EXCLUDE, names, 3, NULL, 0, NULL, found,
                            &err)); /* one block of 128 */
    for (int i = 0; i < 3; i++) assert_true(isnan(found[i].low) && isnan(found[i].high));
    OK(fr_intervals_compute(NULL, 0, FR_OOV_EXCLUDE, names, 3, NULL, 0, NULL, found, &err));
    for (int i = 0; i < 3; i++) assert_true(isnan(found[i].low));
    fr_interval_settings s = {.size = sizeof s, .block = BLOCK, .resamples = 100, .level = 2};
    FAILS(fr_intervals_compute(w->records[0], EVENTS, FR_OOV_EXCLUDE, names, 1, &s, 0, NULL, found,
                               &err),
          FR_EUSAGE, "level");
    const char *wrong = "mrr-nwe";
    FAILS(fr_intervals_compute(w->records[0], EVENTS, FR_OOV_EXCLUDE, &wrong, 1, NULL, 0, NULL,
                               found, &err),
          FR_EUSAGE, "mrr-new");
}

/* ---- comparisons of any metric ---- */

/* A metric that is not a mean over events: value, intervals and test by hand. */
static void test_any_metric(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    static const char *const names[] = {"median-rank", "mrr-adjusted"};
    for (int n = 0; n < 2; n++) {
        fr_compare_settings s = comparing(names[n]);
        fr_comparison *out;
        OK(fr_compare(w->run, 2 * SEEDS, NULL, 0, &s, 8, &(fr_context){.threads = 2}, &out, &err));
        fr_comparison_facts f = fr_comparison_get(out);
        const fr_difference *d = f.pair[0].difference;
        double drawn[200], own[200], value = 0;
        int as_large = 1;
        for (int i = 0; i < SEEDS; i++)
            value += (by_name(names[n], w->records[SEEDS + i], EVENTS) -
                      by_name(names[n], w->records[i], EVENTS)) /
                     SEEDS;
        for (int r = 0; r < 200; r++) {
            double swapped = 0;
            drawn[r] = own[r] = 0;
            for (int i = 0; i < SEEDS; i++) {
                double a = drawn_by_hand(w->records[i], names[n], 8, r),
                       b = drawn_by_hand(w->records[SEEDS + i], names[n], 8, r);
                drawn[r] += (b - a) / SEEDS;
                own[r] += a / SEEDS;
                swapped +=
                    swapped_by_hand(w->records[i], w->records[SEEDS + i], names[n], 8, r) / SEEDS;
            }
            as_large += fabs(swapped) >= fabs(value) * (1 - 1e-9);
        }
        fr_interval between = middle(drawn, 200, 0.9), alone = middle(own, 200, 0.9);
        near(d->value, value, names[n]);
        near(d->bootstrap.low, between.low, names[n]);
        near(d->bootstrap.high, between.high, names[n]);
        near(f.model[0].bootstrap[0].low, alone.low, names[n]);
        near(f.model[0].bootstrap[0].high, alone.high, names[n]);
        near(d->permutation, as_large / 201.0, names[n]);
        near(d->adjusted, d->permutation, "one pair: nothing to correct");
        assert_int_equal(f.column[0].events, fr_comparison_get(out).events);
        fr_comparison_close(out);
    }
}

/* For a mean, changing the signs of blocks and exchanging records are the same test, and drawing
 * records gives the means that sums give. */
static void test_two_ways(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    enum { RESAMPLES = 150 };
    bool ranked[EVENTS];
    arena memory = {0};
    event_blocks cut;
    for (int e = 0; e < EVENTS; e++) ranked[e] = w->records[0][e].covered;
    OK(blocks_cut(ranked, EVENTS, BLOCK, &memory, &cut, &err));
    assert_int_equal(cut.blocks, block_of(EVENTS - 1) + 1);
    for (int e = 0; e < EVENTS; e++) {
        int b = block_of(e);
        assert_true(cut.start[b] <= e && e < cut.start[b + 1]);
    }
    double sum[EVENTS] = {0}, count[EVENTS] = {0}, means[RESAMPLES], flips[RESAMPLES],
           drawn[RESAMPLES], swapped[RESAMPLES] = {0};
    block_sums sums = {.blocks = cut.blocks, .series = 1, .sum = sum, .count = count};
    for (int e = 0; e < EVENTS; e++) {
        const fr_record *a = &w->records[0][e], *b = &w->records[SEEDS][e];
        if (!a->covered) continue;
        count[block_of(e)]++;
        sum[block_of(e)] += 1 / (1 + b->above + b->tied / 2.0) - 1 / (1 + a->above + a->tied / 2.0);
    }
    block_records first = {w->records[0], FR_OOV_EXCLUDE, &cut},
                  second = {w->records[SEEDS], FR_OOV_EXCLUDE, &cut};
    resampling how = {6, RESAMPLES};
    const char *mrr = "mrr";
    double other[RESAMPLES];
    OK(bootstrap_means(&sums, how, NULL, means, &err));
    OK(bootstrap_flips(&sums, how, NULL, flips, &err));
    OK(statistic_drawn(&first, &mrr, 1, how, NULL, other, &err));
    OK(statistic_drawn(&second, &mrr, 1, how, NULL, drawn, &err));
    OK(statistic_swapped(&first, &second, "mrr", how, NULL, swapped, &err));
    for (int r = 0; r < RESAMPLES; r++) {
        near(drawn[r] - other[r], means[r], "draw");
        near(swapped[r], flips[r], "swap");
    }
    arena_free(&memory);
}

/* Holm's by its definition: reject in turn, smallest p first, while p <= alpha / (m - i). The
 * adjusted p is the least alpha at which a pair is rejected. */
static void test_holm(void **state) {
    (void)state;
    fr_error err;
    const world *w = make_world();
    fr_compare_settings s = comparing("mrr");
    fr_comparison *out;
    static const int64_t k[] = {5};
    OK(fr_compare(w->run, RUNS, k, 1, &s, 3, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    enum { PAIRS = MODELS * (MODELS - 1) / 2 };
    assert_int_equal(f.pairs, PAIRS);
    bool changed = false;
    for (int j = 0; j < 2; j++) {
        for (int p = 0; p < PAIRS; p++) {
            const fr_difference *mine = &f.pair[p].difference[j];
            /* adjusted = max over pairs q that come no later of min(1, p_q (m - place of q)) */
            double expected = 0;
            for (int q = 0; q < PAIRS; q++) {
                double x = f.pair[q].difference[j].permutation;
                int before = 0;
                for (int o = 0; o < PAIRS; o++) before += f.pair[o].difference[j].permutation < x;
                if (x <= mine->permutation)
                    expected = fmax(expected, fmin(1, x * (PAIRS - before)));
            }
            near(mine->adjusted, expected, "Holm");
            assert_true(mine->adjusted >= mine->permutation && mine->adjusted <= 1);
            changed |= mine->adjusted > mine->permutation;
        }
    }
    assert_true(changed);
    fr_comparison_close(out);
}

/* Models without a seed in common: Welch's interval, by its formula. With fewer than three seeds
 * on either side there is none, and none for two pairs. */
static void test_welch(void **state) {
    (void)state;
    fr_error err;
    world *w = make_world();
    fr_compare_settings s = comparing("mrr");
    fr_comparison *out;
    for (int i = SEEDS; i < 2 * SEEDS; i++) w->ranking[i].seed += 100;
    OK(fr_compare(w->run, 2 * SEEDS, NULL, 0, &s, 3, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    assert_int_equal(f.pair[0].pairing, FR_PAIRING_NONE);
    assert_int_equal(f.pair[0].seeds, 3);
    double mean[2] = {0}, square[2] = {0};
    for (int i = 0; i < 2 * SEEDS; i++)
        mean[i / SEEDS] += by_name("mrr", w->records[i], EVENTS) / 3;
    for (int i = 0; i < 2 * SEEDS; i++)
        square[i / SEEDS] +=
            pow(by_name("mrr", w->records[i], EVENTS) - mean[i / SEEDS], 2) / 2 / 3;
    double both = square[0] + square[1];
    double df = both * both / (square[0] * square[0] / 2 + square[1] * square[1] / 2);
    double half = student_quantile(0.95, df) * sqrt(both);
    assert_true(df > 2 && df < 4 && df != floor(df));
    const fr_difference *d = f.pair[0].difference;
    near(d->value, mean[1] - mean[0], "difference");
    near(d->seed_t.low, mean[1] - mean[0] - half, "low");
    near(d->seed_t.high, mean[1] - mean[0] + half, "high");
    fr_comparison_close(out);

    for (int runs = 4; runs <= 5; runs++) { /* 2 + 2, 2 + 3: too few */
        fr_compare_run some[] = {w->run[0], w->run[1], w->run[3], w->run[4], w->run[5]};
        OK(fr_compare(some, runs, NULL, 0, &s, 3, NULL, &out, &err));
        f = fr_comparison_get(out);
        assert_int_equal(f.pair[0].seeds, 2);
        assert_true(isnan(f.pair[0].difference[0].seed_t.low));
        assert_true(!isnan(f.pair[0].difference[0].bootstrap.low));
        fr_comparison_close(out);
    }
    for (int i = SEEDS; i < 2 * SEEDS; i++) w->ranking[i].seed -= 100;
    fr_compare_run two[] = {w->run[0], w->run[1], w->run[3], w->run[4]};
    OK(fr_compare(two, 4, NULL, 0, &s, 3, NULL, &out, &err));
    f = fr_comparison_get(out);
    assert_int_equal(f.pair[0].pairing, FR_PAIRING_SEEDS);
    assert_int_equal(f.pair[0].seeds, 2);
    assert_true(isnan(f.pair[0].difference[0].seed_t.high));
    fr_comparison_close(out);
}

/* If a program did not give the counts among seen destinations, there is no mean, here as in
 * metrics. */
static void test_unknown_counts(void **state) {
    (void)state;
    fr_error err;
    world *w = make_world();
    for (int i = 0; i < RUNS; i++)
        for (int e = 0; e < EVENTS; e++)
            w->records[i][e].seen_n = w->records[i][e].covered ? 5 : -1,
            w->records[i][e].seen_above = w->records[i][e].seen_tied = -1;
    fr_compare_settings s = comparing("all-seen");
    fr_comparison *out;
    OK(fr_compare(w->run, 2 * SEEDS, NULL, 0, &s, 3, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    assert_true(isnan(f.model[0].mean[0]) && isnan(f.pair[0].difference[0].value));
    assert_true(isnan(f.pair[0].difference[0].permutation));
    fr_comparison_close(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric), cmocka_unit_test(test_expected),
        cmocka_unit_test(test_none),         cmocka_unit_test(test_any_metric),
        cmocka_unit_test(test_two_ways),     cmocka_unit_test(test_holm),
        cmocka_unit_test(test_welch),        cmocka_unit_test(test_unknown_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
