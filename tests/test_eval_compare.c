/* test_eval_compare.c - order agreement, block bootstrap, permutation test and whole comparisons:
 * against hand-computed cases, by simulation of coverage, and as equal bits over threads. */
#include "base/rng.h"
#include "eval/agreement.h"
#include "eval/bootstrap.h"
#include "eval/student.h"
#include "rank/ranking.h"
#include "testing.h"

#include <math.h>

static uint32_t below(uint64_t event, uint32_t draw, uint32_t n) {
    return rng_below((rng_key){.seed = 11}, event, draw, n);
}

/* ---- Kendall's tau ---- */

/* By the textbook: concordant and discordant pairs, and pairs tied in one list, counted apart. */
static double tau_by_counting(const double *a, const double *b, int n) {
    int concordant = 0, discordant = 0, only_a = 0, only_b = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            if (a[i] == a[j] && b[i] == b[j]) continue;
            if (a[i] == a[j])
                only_a++;
            else if (b[i] == b[j])
                only_b++;
            else if ((a[i] < a[j]) == (b[i] < b[j]))
                concordant++;
            else
                discordant++;
        }
    }
    int strict = concordant + discordant;
    return (concordant - discordant) / sqrt((double)(strict + only_a) * (strict + only_b));
}

static void test_tau(void **state) {
    (void)state;
    const double up[] = {1, 2, 3, 4, 5, 6}, down[] = {6, 5, 4, 3, 2, 1};
    assert_true(kendall_tau(up, up, 6) == 1 && kendall_tau(up, down, 6) == -1);
    const double swapped[] = {2, 1, 3, 4, 5, 6}; /* one of 15 pairs: 13/15, the paper's .867 */
    assert_true(fabs(kendall_tau(up, swapped, 6) - 13.0 / 15) < 1e-15);
    const double flat[] = {3, 3, 3, 3, 3, 3};
    assert_true(isnan(kendall_tau(up, flat, 6)) && isnan(kendall_tau(up, up, 1)));
    /* (1,2,2,3) and (1,2,3,3): 4 concordant, none against, one tie in each: 4 / 5 */
    const double x[] = {1, 2, 2, 3}, y[] = {1, 2, 3, 3};
    assert_true(fabs(kendall_tau(x, y, 4) - 0.8) < 1e-15);

    for (uint64_t round = 0; round < 500; round++) {
        double a[9], b[9];
        int n = 2 + (int)below(round, 99, 8);
        uint32_t values = 2 + below(round, 98, 20); /* few values: many ties */
        for (int i = 0; i < n; i++) {
            a[i] = below(round, (uint32_t)i, values);
            b[i] = below(round, 20 + (uint32_t)i, values);
        }
        double expected = tau_by_counting(a, b, n);
        double found = kendall_tau(a, b, n);
        if (!isfinite(expected))
            assert_true(isnan(found));
        else
            assert_true(fabs(found - expected) < 1e-14);
    }
}

/* ---- block bootstrap ---- */

static void test_interval(void **state) {
    (void)state;
    /* places 0.25 * 4 = 1 and 0.75 * 4 = 3; then 0.05 * 4 = 0.2 and 3.8 between neighbours */
    double five[] = {5, 1, NAN, 4, 2, 3};
    fr_interval half = bootstrap_interval(five, 6, 0.5);
    assert_true(half.low == 2 && half.high == 4);
    double again[] = {10, 50, 30, 20, 40};
    fr_interval most = bootstrap_interval(again, 5, 0.9);
    assert_true(fabs(most.low - 12) < 1e-12 && fabs(most.high - 48) < 1e-12);
    double none[] = {NAN};
    assert_true(isnan(bootstrap_interval(none, 1, 0.9).low));
}

/* Two blocks, of 2 and of 1 events: resampled means are 4/2 (both draws the first block), 10/1 or
 * (4 + 10)/3, with probabilities 1/4, 1/4, 1/2. */
static void test_resamples_by_hand(void **state) {
    (void)state;
    enum { RESAMPLES = 8000 };
    fr_error err;
    double sum[] = {4, 10}, count[] = {2, 1};
    static double mean[RESAMPLES];
    block_sums blocks = {.blocks = 2, .series = 1, .sum = sum, .count = count};
    OK(bootstrap_means(&blocks, (resampling){3, RESAMPLES}, NULL, mean, &err));
    int seen[3] = {0};
    for (int r = 0; r < RESAMPLES; r++) {
        bool first = mean[r] == 2, second = mean[r] == 10, both = mean[r] == 14.0 / 3;
        assert_true(first + second + both == 1);
        seen[first ? 0 : second ? 1 : 2]++;
    }
    for (int i = 0; i < 3; i++) { /* within 4.5 standard deviations */
        double chance = i == 2 ? 0.5 : 0.25;
        double sd = sqrt(RESAMPLES * chance * (1 - chance));
        assert_true(fabs(seen[i] - RESAMPLES * chance) < 4.5 * sd);
    }
    OK(bootstrap_flips(&blocks, (resampling){3, RESAMPLES}, NULL, mean, &err));
    int signs[2][2] = {{0}}; /* (4 or -4) + (10 or -10), over 3 events */
    for (int r = 0; r < RESAMPLES; r++) {
        int a = fabs(mean[r]) > 4, b = mean[r] > 0; /* 14/3 or 2 */
        assert_true(fabs(fabs(mean[r]) - (a ? 14.0 / 3 : 2)) < 1e-15);
        signs[a][b]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(abs(signs[i / 2][i % 2] - RESAMPLES / 4) < 4.5 * sqrt(RESAMPLES * 0.1875));
}

/* Reciprocal ranks of two models. Blocks differ in difficulty and in which model they favour, so
 * events of a block are alike, and the difference is skewed. A long simulation of the same law
 * gives the true mean. */
static double rank_difference(uint64_t world, uint64_t block, int event) {
    rng_key key = {.seed = 77, .epoch = (uint32_t)world};
    double effect[2], noise[2];
    rng_normal(key, block, 0, effect);
    rng_normal(key, block, 1 + (uint32_t)event, noise);
    double a = exp(1 + effect[0] + noise[0]), b = exp(0.8 + effect[0] + 0.5 * effect[1] + noise[1]);
    return 1 / (1 + floor(b)) - 1 / (1 + floor(a));
}

static void test_bootstrap_coverage(void **state) {
    (void)state;
    enum { WORLDS = 500, BLOCKS = 40, EVENTS = 16, RESAMPLES = 400, LONG = 40000 };
    fr_error err;
    double truth = 0, sum[BLOCKS], count[BLOCKS];
    static double mean[RESAMPLES];
    for (uint64_t b = 0; b < LONG; b++)
        for (int e = 0; e < EVENTS; e++) truth += rank_difference(1 << 20, b, e) / LONG / EVENTS;
    block_sums blocks = {.blocks = BLOCKS, .series = 1, .sum = sum, .count = count};
    int covered = 0;
    for (uint64_t w = 0; w < WORLDS; w++) {
        for (uint64_t b = 0; b < BLOCKS; b++) {
            sum[b] = 0;
            count[b] = EVENTS;
            for (int e = 0; e < EVENTS; e++) sum[b] += rank_difference(w, b, e);
        }
        OK(bootstrap_means(&blocks, (resampling){w, RESAMPLES}, &(fr_context){.threads = 1}, mean,
                           &err));
        fr_interval i = bootstrap_interval(mean, RESAMPLES, 0.95);
        covered += i.low <= truth && truth <= i.high;
    }
    print_message("# bootstrap: %.3f of %d intervals cover, nominal 0.95\n",
                  (double)covered / WORLDS, WORLDS);
    assert_true(covered >= 0.90 * WORLDS && covered <= 0.99 * WORLDS);
}

/* ---- comparisons ---- */

enum { CATALOG = 200 };

/* A run as `rank` would leave it. above[count], none tied; a negative one is not covered. */
static fr_ranking make_run(const char *model, const char *objective, int64_t seed,
                           const int32_t *above, int64_t count, fr_record *records) {
    for (int64_t i = 0; i < count; i++)
        records[i] = (fr_record){.event = 1000 + i,
                                 .covered = above[i] >= 0,
                                 .n = above[i] < 0 ? -1 : CATALOG,
                                 .above = above[i],
                                 .avail_n = -1};
    char *text = (char *)(uintptr_t) "window=10";
    return (fr_ranking){.records = records,
                        .count = count,
                        .protocol = {.window = 10, .data_sha256 = text},
                        .protocol_text = text,
                        .scorer = (char *)(uintptr_t)model,
                        .model = (char *)(uintptr_t)model,
                        .objective = (char *)(uintptr_t)objective,
                        .data = text,
                        .seed = seed};
}

static fr_compare_settings standard(void) {
    fr_compare_settings s = {.size = sizeof s,
                             .sampler = (char *)(uintptr_t) "uniform",
                             .block = 2,
                             .resamples = 1000,
                             .level = 0.95};
    return s;
}

/* Six events, two models, three seeds; ranks such that every mean is a plain fraction. */
typedef struct small_case {
    fr_record records[6][6];
    fr_ranking ranking[6];
    fr_compare_run run[6];
} small_case;

static void make_small(small_case *c) {
    static const int32_t above[6][6] = {
        {0, 1, 3, 0, 1, 3}, {0, 0, 3, 3, 1, 1}, {1, 1, 1, 1, 1, 1}, /* a: 7/12, 7/12, 1/2 */
        {0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0}, /* b: 5/6, 1, 2/3 */
    };
    static const int64_t seeds[] = {7, 17, 27};
    for (int i = 0; i < 6; i++) {
        c->ranking[i] =
            make_run(i < 3 ? "a" : "b", "bce", seeds[i % 3], above[i], 6, c->records[i]);
        c->run[i] = (fr_compare_run){.ranking = &c->ranking[i], .file = "file.npy"};
    }
}

static void test_small_case_by_hand(void **state) {
    (void)state;
    fr_error err;
    small_case c;
    make_small(&c);
    fr_compare_settings s = standard();
    fr_comparison *out;
    static const int64_t k[] = {199, 500};
    OK(fr_compare(c.run, 6, k, 2, &s, 5, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    assert_int_equal(f.columns, 3);
    assert_int_equal(f.models, 2);
    assert_int_equal(f.pairs, 1);
    assert_int_equal(f.blocks, 3);
    assert_int_equal(f.events, 6);
    /* K = 199 is the whole catalog, K = 500 is larger */
    assert_int_equal(f.column[0].events, 6);
    assert_int_equal(f.column[1].events, 6);
    for (int j = 0; j < 3; j++) {
        const fr_difference *d = &f.pair[0].difference[j];
        /* means 5/9 and 5/6; deviations from 7/12, 7/12, 1/2 and 5/6, 1, 2/3 */
        assert_true(fabs(f.model[0].mean[j] - 5.0 / 9) < 1e-14);
        assert_true(fabs(f.model[0].sd[j] - sqrt(1.0 / 432)) < 1e-14);
        assert_true(fabs(f.model[1].mean[j] - 5.0 / 6) < 1e-14);
        assert_true(fabs(f.model[1].sd[j] - 1.0 / 6) < 1e-14);
        /* differences 1/4, 5/12, 1/6: mean 5/18, sd sqrt(7/432); t is 0.95 sqrt(2 / 0.0975) */
        double half = 0.95 * sqrt(2 / 0.0975) * sqrt(7.0 / 432) / sqrt(3);
        assert_true(fabs(d->value - 5.0 / 18) < 1e-14);
        assert_true(fabs(d->seed_t.low - (5.0 / 18 - half)) < 1e-12);
        assert_true(fabs(d->seed_t.high - (5.0 / 18 + half)) < 1e-12);
        /* differences of the blocks, mean over seeds and events: 1/12, 3/8, 3/8. The first block is
         * drawn three times with probability 1/27, the others alone with 8/27: both ends have more
         * than 2.5 % */
        assert_true(fabs(d->bootstrap.low - 1.0 / 12) < 1e-12);
        assert_true(fabs(d->bootstrap.high - 3.0 / 8) < 1e-12);
        assert_true(d->reversed == 0 && d->flipped == 0);
        /* of 8 choices of signs, all + and all - are as large: p = 1/4 */
        assert_true(fabs(d->permutation - 0.25) < 4.5 * sqrt(0.1875 / 1000));
        assert_true(f.column[j].tau == 1);
    }
    assert_int_equal(f.pair[0].seeds, 3);
    assert_int_equal(f.pair[0].pairing, FR_PAIRING_SEEDS);
    assert_int_equal(f.model[0].seeds[2], 27);
    fr_comparison_close(out);

    /* all of it, or no event counts */
    s.small = FR_SMALL_INELIGIBLE;
    OK(fr_compare(c.run, 6, k, 2, &s, 5, NULL, &out, &err));
    f = fr_comparison_get(out);
    assert_int_equal(f.column[0].events, 6);
    assert_int_equal(f.column[1].events, 0);
    assert_true(isnan(f.model[0].mean[1]) && isnan(f.pair[0].difference[1].value));
    assert_true(isnan(f.pair[0].difference[1].bootstrap.low) && isnan(f.column[1].tau));
    fr_comparison_close(out);
}

/* Which runs are paired, and the results if there are too few seeds. */
static void test_pairing(void **state) {
    (void)state;
    fr_error err;
    small_case c;
    fr_compare_settings s = standard();
    fr_comparison *out;
    static const int64_t k[] = {20};
    /* b has only seeds 17 and 27, and a comes after it in the list */
    make_small(&c);
    fr_compare_run some[] = {c.run[5], c.run[0], c.run[2], c.run[4], c.run[1]};
    OK(fr_compare(some, 5, k, 1, &s, 0, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    assert_string_equal(f.model[0].name, "b");
    assert_int_equal(f.pair[0].seeds, 2); /* 17: 7/12 - 1, 27: 1/2 - 2/3 */
    assert_true(fabs(f.pair[0].difference[1].value + 7.0 / 24) < 1e-14);
    fr_comparison_close(out);
    /* one trained run each, different seeds: no interval over seeds */
    fr_compare_run two[] = {c.run[0], c.run[4]};
    OK(fr_compare(two, 2, k, 1, &s, 0, NULL, &out, &err));
    f = fr_comparison_get(out);
    assert_int_equal(f.pair[0].pairing, FR_PAIRING_NONE);
    assert_int_equal(f.pair[0].seeds, 1);
    assert_true(isnan(f.pair[0].difference[1].seed_t.low));
    assert_true(fabs(f.pair[0].difference[1].value - 5.0 / 12) < 1e-14);
    assert_true(isnan(f.model[0].sd[0]));
    fr_comparison_close(out);
    /* a baseline has one run, which is compared with every seed */
    c.ranking[0].objective = (char *)(uintptr_t) "";
    fr_compare_run baseline[] = {c.run[0], c.run[3], c.run[4], c.run[5]};
    OK(fr_compare(baseline, 4, k, 1, &s, 0, NULL, &out, &err));
    f = fr_comparison_get(out);
    assert_int_equal(f.pair[0].pairing, FR_PAIRING_ONE);
    assert_int_equal(f.pair[0].seeds, 3);
    assert_true(fabs(f.pair[0].difference[1].value - 0.25) < 1e-14);
    double half = student_quantile(0.975, 2) / 6 / sqrt(3); /* the other model's deviation alone */
    assert_true(fabs(f.pair[0].difference[1].seed_t.high - 0.25 - half) < 1e-12);
    fr_comparison_close(out);
    /* another objective is another model */
    c.ranking[1].objective = (char *)(uintptr_t) "bpr";
    fr_compare_run objectives[] = {c.run[2], c.run[1]};
    OK(fr_compare(objectives, 2, k, 1, &s, 0, NULL, &out, &err));
    assert_string_equal(fr_comparison_get(out).model[1].name, "a/bpr");
    fr_comparison_close(out);
}

/* A model and its copy: no difference, not even by rounding, so the order cannot flip. */
static void test_equal_models(void **state) {
    (void)state;
    fr_error err;
    small_case c;
    fr_compare_settings s = standard();
    fr_comparison *out;
    make_small(&c);
    fr_compare_run run[6];
    for (int i = 0; i < 6; i++) {
        run[i] = c.run[i % 3];
        if (i > 2) run[i].model = "copy";
    }
    OK(fr_compare(run, 6, fr_standard_k, FR_STANDARD_K, &s, 0, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    for (int j = 0; j < f.columns; j++) {
        const fr_difference *d = &f.pair[0].difference[j];
        assert_true(d->value == 0 && d->bootstrap.low == 0 && d->bootstrap.high == 0);
        assert_true(d->seed_t.low == 0 && d->seed_t.high == 0);
        assert_true(d->flipped == 0 && d->reversed == 0 && d->permutation == 1);
        assert_true(isnan(f.column[j].tau));
    }
    fr_comparison_close(out);
}

static void test_refused(void **state) {
    (void)state;
    fr_error err;
    small_case c;
    fr_compare_settings s = standard();
    fr_comparison *out;
    static const int64_t k[] = {20};
    make_small(&c);
    FAILS(fr_compare(c.run, 1, k, 1, &s, 0, NULL, &out, &err), FR_EUSAGE, "at least two");
    FAILS(fr_compare(c.run, 3, k, 1, &s, 0, NULL, &out, &err), FR_EUSAGE,
          "every run is of the model a");
    c.ranking[4].seed = 7;
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EUSAGE, "both b with seed 7");
    make_small(&c);
    s.block = 6;
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EUSAGE,
          "blocks of 6 events, but 6 events are ranked");
    s = standard();
    c.records[4][3].event = 5;
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EINPUT,
          "record 3 is event 1003 (0 to 0) in file.npy, but event 5");
    make_small(&c);
    c.ranking[4].count = 5;
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EINPUT, "has 5: expected");
    make_small(&c);
    c.records[4][3].above = CATALOG;
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EINPUT, "file.npy: record 3");
    make_small(&c);
    c.ranking[4].protocol = (fr_protocol_facts){
        .data_sha256 = (char *)(uintptr_t) "window=10", .window = 12, .oov = FR_OOV_ZERO, .met = 1};
    FAILS(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err), FR_EFORCE,
          "they differ in window (10 against 12), oov (exclude against zero), met (0 against "
          "1)");
    s.force = true;
    OK(fr_compare(c.run, 6, k, 1, &s, 0, NULL, &out, &err));
    fr_comparison_close(out);
    s = standard();
    s.sampler = (char *)(uintptr_t) "unifrom";
    FAILS(fr_compare(c.run, 2, k, 1, &s, 0, NULL, &out, &err), FR_EUSAGE, "");
}

/* Models a, b, c of three seeds with blocks of unlike difficulty, some events not covered. */
enum { MANY = 700, RUNS = 9 };

static void make_many(fr_ranking *ranking, fr_compare_run *run, fr_record (*records)[MANY],
                      uint64_t world) {
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < RUNS; i++) {
        int32_t above[MANY];
        for (int e = 0; e < MANY; e++) {
            double hard[2], noise[2];
            rng_normal((rng_key){.seed = world, .epoch = 1}, (uint64_t)e / 16, 0, hard);
            rng_normal((rng_key){.seed = world}, (uint64_t)e, (uint32_t)i, noise);
            double rank = exp(1.5 + hard[0] + (1 + 0.3 * (i / 3)) * noise[0] - 0.1 * (i / 3));
            above[e] = e % 10 == 3 ? -1 : rank < CATALOG - 1 ? (int32_t)rank : CATALOG - 1;
        }
        ranking[i] = make_run(names[i / 3], "bce", i % 3, above, MANY, records[i]);
        run[i] = (fr_compare_run){.ranking = &ranking[i], .file = "file.npy"};
    }
}

/* Every bit of a comparison, in one array. */
static int collect(const fr_comparison *c, double *out) {
    fr_comparison_facts f = fr_comparison_get(c);
    int n = 0;
    for (int j = 0; j < f.columns; j++) {
        out[n++] = f.column[j].tau;
        for (int m = 0; m < f.models; m++) out[n++] = f.model[m].mean[j] + f.model[m].sd[j];
        for (int p = 0; p < f.pairs; p++) {
            const fr_difference *d = &f.pair[p].difference[j];
            const double all[] = {d->value,         d->seed_t.low,     d->seed_t.high,
                                  d->bootstrap.low, d->bootstrap.high, d->permutation,
                                  d->flipped,       d->reversed};
            memcpy(out + n, all, sizeof all);
            n += 8;
        }
    }
    return n;
}

static void test_threads(void **state) {
    (void)state;
    fr_error err;
    static fr_record records[RUNS][MANY];
    fr_ranking ranking[RUNS];
    fr_compare_run run[RUNS];
    make_many(ranking, run, records, 1);
    fr_compare_settings s = standard();
    s.block = 32;
    double first[256], other[256];
    static const int threads[] = {1, 2, 5};
    for (int i = 0; i < 3; i++) {
        fr_comparison *out;
        fr_context context = {.threads = threads[i]};
        OK(fr_compare(run, RUNS, fr_standard_k, FR_STANDARD_K, &s, 9, &context, &out, &err));
        memset(other, 0, sizeof other);
        assert_int_equal(collect(out, i ? other : first), 6 * (1 + 3 + 3 * 8));
        if (i) assert_memory_equal(first, other, 6 * (1 + 3 + 3 * 8) * sizeof *first);
        fr_comparison_facts f = fr_comparison_get(out);
        assert_int_equal(f.events, MANY - MANY / 10);
        assert_int_equal(f.blocks, (MANY - MANY / 10 + 31) / 32);
        fr_comparison_close(out);
    }
}

/* Columns agree with `metrics`, and shares of resamples with a recount: the draws are repeated
 * here, event by event, in the order of the definition. */
static void test_against_definitions(void **state) {
    (void)state;
    fr_error err;
    static fr_record records[RUNS][MANY];
    fr_ranking ranking[RUNS];
    fr_compare_run run[RUNS];
    make_many(ranking, run, records, 2);
    fr_compare_settings s = standard();
    s.block = 50;
    s.resamples = 300;
    fr_comparison *out;
    OK(fr_compare(run, RUNS, fr_standard_k, FR_STANDARD_K, &s, 21, NULL, &out, &err));
    fr_comparison_facts f = fr_comparison_get(out);
    fr_sampling sampling = {.sampler = "uniform", .k = fr_standard_k, .k_count = FR_STANDARD_K};
    for (int m = 0; m < 3; m++) {
        double full = 0, expected[FR_STANDARD_K] = {0};
        for (int i = 0; i < 3; i++) {
            const char *name[] = {"mrr"};
            fr_metric_value mrr;
            fr_expected e[FR_STANDARD_K];
            OK(fr_metrics_compute(records[3 * m + i], MANY, FR_OOV_EXCLUDE, name, 1, &mrr, &err));
            OK(fr_expected_compute(records[3 * m + i], MANY, &sampling, NULL, e, &err));
            full += mrr.value / 3;
            for (int j = 0; j < FR_STANDARD_K; j++) expected[j] += e[j].mrr / 3;
        }
        assert_true(fabs(f.model[m].mean[FR_STANDARD_K] - full) < 1e-13);
        for (int j = 0; j < FR_STANDARD_K; j++)
            assert_true(fabs(f.model[m].mean[j] - expected[j]) < 1e-13);
    }
    /* models a and b: K = 1 and full, resample by resample */
    int64_t one[] = {1};
    double events[MANY][2]; /* difference of each ranked event, mean over seeds: K = 1, full */
    int ranked = 0;
    sampling.k = one;
    sampling.k_count = 1;
    for (int e = 0; e < MANY; e++) {
        if (!records[0][e].covered) continue;
        events[ranked][0] = events[ranked][1] = 0;
        for (int i = 0; i < 6; i++) {
            fr_expected x;
            OK(fr_expected_compute(&records[i][e], 1, &sampling, NULL, &x, &err));
            events[ranked][0] += (i < 3 ? -1 : 1) * x.mrr / 3;
            events[ranked][1] += (i < 3 ? -1 : 1) / (1.0 + records[i][e].above) / 3;
        }
        ranked++;
    }
    int blocks = (ranked + 49) / 50, flipped = 0, reversed = 0;
    static double drawn[300];
    for (int r = 0; r < 300; r++) {
        double sum[2] = {0};
        int count = 0;
        for (int b = 0; b < blocks; b++) {
            rng_key key = {.seed = 21, .purpose = RNG_BOOTSTRAP};
            int from = 50 * (int)rng_below(key, (uint64_t)r, (uint32_t)b, (uint32_t)blocks);
            for (int e = from; e < from + 50 && e < ranked; e++, count++)
                for (int j = 0; j < 2; j++) sum[j] += events[e][j];
        }
        flipped += sum[0] * sum[1] < 0;
        reversed += sum[1] * f.pair[0].difference[FR_STANDARD_K].value < 0;
        drawn[r] = sum[1] / count;
    }
    fr_interval expected = bootstrap_interval(drawn, 300, 0.95);
    const fr_difference *d = f.pair[0].difference;
    assert_true(flipped > 0 && fabs(d[0].flipped - flipped / 300.0) < 1e-12);
    assert_true(fabs(d[FR_STANDARD_K].reversed - reversed / 300.0) < 1e-12);
    assert_true(fabs(d[FR_STANDARD_K].bootstrap.low - expected.low) < 1e-13);
    assert_true(fabs(d[FR_STANDARD_K].bootstrap.high - expected.high) < 1e-13);
    fr_comparison_close(out);
}

/* Two models of the same law, so their true difference is 0. A seed makes a whole run better or
 * worse, and part of this effect is common to both models' runs. */
static void test_seed_t_coverage(void **state) {
    (void)state;
    enum { WORLDS = 1500, SEEDS = 3, EVENTS = 48 };
    fr_error err;
    fr_record records[2 * SEEDS][EVENTS];
    fr_ranking ranking[2 * SEEDS];
    fr_compare_run run[2 * SEEDS];
    fr_compare_settings s = standard();
    s.resamples = 100;
    s.block = 16;
    static const int64_t k[] = {20};
    int covered[2] = {0};
    for (uint64_t w = 0; w < WORLDS; w++) {
        for (int i = 0; i < 2 * SEEDS; i++) {
            int32_t above[EVENTS];
            double shared[2], own[2], noise[2];
            rng_normal((rng_key){.seed = 3, .epoch = 1}, w, (uint32_t)(i % SEEDS), shared);
            rng_normal((rng_key){.seed = 3, .epoch = 2}, w, (uint32_t)i, own);
            for (int e = 0; e < EVENTS; e++) {
                rng_normal((rng_key){.seed = 3, .epoch = 3}, w, (uint32_t)(i * EVENTS + e), noise);
                double rank = exp(1.5 + 0.5 * shared[0] + 0.5 * own[0] + noise[0]);
                above[e] = rank < CATALOG - 1 ? (int32_t)rank : CATALOG - 1;
            }
            ranking[i] =
                make_run(i < SEEDS ? "a" : "b", "bce", i % SEEDS, above, EVENTS, records[i]);
            run[i] = (fr_compare_run){.ranking = &ranking[i], .file = "file.npy"};
        }
        fr_comparison *out;
        OK(fr_compare(run, 2 * SEEDS, k, 1, &s, (int64_t)w, &(fr_context){.threads = 1}, &out,
                      &err));
        const fr_difference *d = fr_comparison_get(out).pair[0].difference;
        for (int j = 0; j < 2; j++) covered[j] += d[j].seed_t.low <= 0 && 0 <= d[j].seed_t.high;
        fr_comparison_close(out);
    }
    for (int j = 0; j < 2; j++) {
        print_message("# seed t, %s: %.3f of %d intervals cover, nominal 0.95\n",
                      j ? "full" : "K = 20", (double)covered[j] / WORLDS, WORLDS);
        assert_true(covered[j] >= 0.93 * WORLDS && covered[j] <= 0.97 * WORLDS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tau),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_resamples_by_hand),
        cmocka_unit_test(test_bootstrap_coverage),
        cmocka_unit_test(test_seed_t_coverage),
        cmocka_unit_test(test_small_case_by_hand),
        cmocka_unit_test(test_pairing),
        cmocka_unit_test(test_equal_models),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_against_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
