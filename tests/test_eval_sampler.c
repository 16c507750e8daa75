/* test_eval_sampler.c - samplers by name, the fields of a record that they use, the rules for small
 * pools, and sums over records: groups give the same sums as single records. */
#include "base/rng.h"
#include "eval/sampler.h"
#include "testing.h"

#include <math.h>

static const int64_t hits_at[] = {1, 10};

static fr_sampling sampling_of(const char *name, const int64_t *k, int k_count) {
    return (fr_sampling){
        .sampler = name, .k = k, .k_count = k_count, .hits = hits_at, .hits_count = 2};
}

/* N = 21: of 20 negatives 4 above, 2 tied; 6 seen, of them 3 above and 1 tied. */
static fr_record example(void) {
    return (fr_record){.event = 7,
                       .covered = 1,
                       .repeated = 1,
                       .n = 21,
                       .above = 4,
                       .tied = 2,
                       .seen_n = 6,
                       .seen_above = 3,
                       .seen_tied = 1,
                       .pop_above = 0.4,
                       .pop_tied = 0.1,
                       .pop_self = 0.2,
                       .avail_n = -1,
                       .train_n = 5,
                       .train_above = 2,
                       .train_tied = 1};
}

static double direct(const expected_pool *pool, int pools) {
    fr_error err;
    expected_scratch scratch = {0};
    expected_moments m;
    OK(expected_compute(pool, pools, NULL, 0, &scratch, &m, &err));
    expected_scratch_free(&scratch);
    return m.rr;
}

static fr_expected one(const fr_record *records, int64_t count, const char *name, int64_t k,
                       int small, int oov) {
    fr_error err;
    fr_expected out;
    fr_sampling s = sampling_of(name, &k, 1);
    s.small = small;
    s.oov = oov;
    OK(fr_expected_compute(records, count, &s, NULL, &out, &err));
    assert_int_equal(out.k, k);
    return out;
}

static double mrr_of(fr_record r, const char *name, int64_t k) {
    fr_expected whole = one(&r, 1, name, k, FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
    assert_int_equal(whole.events, 1);
    return whole.mrr;
}

static void test_names(void **state) {
    (void)state;
    int64_t k;
    int count = 0;
    for (; fr_sampler_at(count); count++) {
        const fr_definition *d = fr_sampler_at(count);
        char text[64];
        (void)snprintf(text, sizeof text, "%s-50", d->name);
        assert_ptr_equal(fr_sampler_find(text, &k), d);
        assert_int_equal(k, 50);
        assert_ptr_equal(fr_sampler_find(d->name, &k), d);
        assert_int_equal(k, 0);
        assert_true(strlen(d->explanation) > 100 && strlen(d->title) < 60);
    }
    assert_true(count > 0);
    assert_null(fr_sampler_at(-1));
    static const char *const unknown[] = {"",           "uniform-",  "uniform-0", "uniform-x",
                                          "uniform-5x", "uniform5",  "unifor",    "tgb",
                                          "tgb-50",     "uniform--5"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(fr_sampler_find(unknown[i], NULL));
}

static void test_pools_of_a_record(void **state) {
    (void)state;
    fr_record r = example();
    expected_pool all = {20, 4, 2, 5, false}, masses = {20, 4, 2, 5, true},
                  popular = {0.8, 0.4, 0.1, 5, true}, seen = {6, 3, 1, 5, false},
                  unseen = {14, 1, 1, 5, false}, whole = {21, 4, 3, 5, true};
    assert_true(mrr_of(r, "uniform", 5) == direct(&all, 1));
    assert_true(mrr_of(r, "random", 5) == direct(&masses, 1));
    assert_true(mrr_of(r, "dyglib", 5) == direct(&whole, 1));
    assert_true(mrr_of(r, "popularity", 5) == direct(&popular, 1));
    assert_true(mrr_of(r, "source-history", 5) == direct(&seen, 1));
    assert_true(mrr_of(r, "unseen", 5) == direct(&unseen, 1));
    assert_true(mrr_of(r, "repeated-seen", 5) == direct(&seen, 1));
    assert_true(mrr_of(r, "repeated-unseen", 5) == direct(&unseen, 1));
    expected_pool mix[] = {{6, 3, 1, 2, false}, {14, 1, 1, 3, false}};
    assert_true(mrr_of(r, "history-mix", 5) == direct(mix, 2));
    expected_pool trained[] = {{5, 2, 1, 2, false}, {15, 2, 1, 3, false}};
    assert_true(mrr_of(r, "tgb-hist", 5) == direct(trained, 2));
    assert_true(mrr_of(r, "tgb-rnd", 5) == direct(&all, 1));
    assert_int_equal(one(&r, 1, "new-seen", 5, FR_SMALL_WHOLE, FR_OOV_EXCLUDE).events, 0);
    r.repeated = 0;
    assert_true(mrr_of(r, "new-seen", 5) == direct(&seen, 1));
    assert_true(mrr_of(r, "new-unseen", 5) == direct(&unseen, 1));
    assert_int_equal(one(&r, 1, "repeated-seen", 5, FR_SMALL_WHOLE, FR_OOV_EXCLUDE).events, 0);
}

/* DyGLib's draws, one sequence after the other: indices of all destinations, including the
 * positive, which is scored like the others. */
static void test_draws_of_the_positive(void **state) {
    (void)state;
    enum { N = 6 };
    for (int above = 0; above < N; above++)
        for (int tied = 0; tied < N - above; tied++) {
            fr_record r = example();
            r.n = N;
            r.above = above;
            r.tied = tied;
            r.seen_n = r.seen_above = r.seen_tied = 0;
            r.train_n = r.train_above = r.train_tied = 0;
            /* destination 0 is the positive; then those above, those tied, those below */
            for (int k = 1, sequences = N; k <= 4; k++, sequences *= N) {
                long double rr = 0, rr2 = 0, first = 0;
                for (int sequence = 0; sequence < sequences; sequence++) {
                    int h = 0, g = 0;
                    for (int draw = 0, rest = sequence; draw < k; draw++, rest /= N) {
                        int v = rest % N;
                        h += v > 0 && v <= above;
                        g += !v || (v > above && v <= above + tied);
                    }
                    long double value = 1 / (1 + h + g / 2.0L);
                    rr += value / sequences;
                    rr2 += value * value / sequences;
                    first += (long double)(value == 1) / sequences;
                }
                fr_expected out = one(&r, 1, "dyglib", k, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
                assert_int_equal(out.events, 1);
                assert_true(fabsl(out.mrr - rr) < 1e-14L);
                assert_true(fabsl(out.sd * out.sd - (rr2 - rr * rr)) < 1e-14L);
                assert_true(fabsl(out.hits[0] - first) < 1e-14L);
                double p = (double)above / N, e = (tied + 1.0) / N;
                if (k == 1) assert_true(fabs(out.mrr - (1 - p / 2 - e / 3)) < 1e-15);
            }
        }
}

static void test_small_pools(void **state) {
    (void)state;
    fr_record r = example();
    fr_expected out;

    /* seven of six seen: all of them, or the event does not count */
    assert_true(mrr_of(r, "source-history", 7) == 1 / (1 + 3 + 0.5));
    out = one(&r, 1, "source-history", 7, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 0);
    assert_int_equal(out.ineligible, 1);
    assert_true(isnan(out.mrr) && isnan(out.sd) && isnan(out.hits[0]));
    out = one(&r, 1, "source-history", 6, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 1);
    assert_true(out.sd == 0);

    /* half of 16 is eight, the history has six: ten unseen ones fill up */
    expected_pool filled[] = {{6, 3, 1, 6, false}, {14, 1, 1, 10, false}};
    assert_true(mrr_of(r, "history-mix", 16) == direct(filled, 2));
    out = one(&r, 1, "history-mix", 16, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 0);
    out = one(&r, 1, "history-mix", 12, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 1);
    /* if K is odd, one more is unseen */
    expected_pool single[] = {{6, 3, 1, 0, false}, {14, 1, 1, 1, false}};
    assert_true(mrr_of(r, "history-mix", 1) == direct(single, 2));
    /* all negatives: the full rank */
    assert_true(mrr_of(r, "history-mix", 20) == 1.0 / 6);

    /* the cells share their events: 6 seen, 14 unseen */
    static const char *const cells[] = {"repeated-seen", "repeated-unseen"};
    for (int c = 0; c < 2; c++)
        for (int64_t k = 5; k <= 8; k++)
            assert_int_equal(one(&r, 1, cells[c], k, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE).events,
                             k <= 6);

    /* no negative: not ranked */
    r.seen_n = r.seen_above = r.seen_tied = 0;
    assert_int_equal(one(&r, 1, "source-history", 5, FR_SMALL_WHOLE, FR_OOV_EXCLUDE).events, 0);
    r = (fr_record){.covered = 1, .n = 1, .pop_self = 1, .avail_n = -1};
    for (int i = 0; fr_sampler_at(i); i++) {
        bool tgb = !strncmp(fr_sampler_at(i)->name, "tgb-", 4); /* there such an event has rank 1 */
        out = one(&r, 1, fr_sampler_at(i)->name, 1, FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
        assert_int_equal(out.events, tgb);
        if (tgb) assert_true(out.mrr == 1 && out.sd == 0);
    }
}

/* A sampled list by a set of bits: negatives are numbered above, tied, below. */
static long double listed_rr(unsigned list, unsigned above, unsigned tied) {
    int h = __builtin_popcount(list & above), g = __builtin_popcount(list & tied);
    return 1 / (1 + h + g / 2.0L);
}

/* The mean of RR over all lists that TGB could make of `negatives`, of which those in `trained`
 * were met in training (PROTOCOL 14). */
static fr_expected tgb_lists(unsigned negatives, unsigned trained, int k, bool hist, unsigned above,
                             unsigned tied) {
    int size = __builtin_popcount(negatives), met = __builtin_popcount(trained);
    int half = !hist ? 0 : k / 2 < met ? k / 2 : met;
    int others = hist ? size - met : size;
    int rest = k - half < others ? k - half : others;
    long double sum = 0, squares = 0, first = 0;
    int64_t lists = 0;
    for (unsigned list = 0; list <= negatives; list++) {
        if (hist && __builtin_popcount(list & trained) != half) continue;
        if (__builtin_popcount(hist ? list & ~trained : list) != rest) continue;
        long double rr = listed_rr(list, above, tied);
        sum += rr;
        squares += rr * rr;
        first += rr == 1;
        lists++;
    }
    long double n = (long double)lists, mean = sum / n;
    return (fr_expected){.events = lists,
                         .mrr = (double)mean,
                         .sd = (double)sqrtl(fmaxl(0, squares / n - mean * mean)),
                         .hits = {(double)(first / n)}};
}

/* Every small record, every K from 1 to more than there are, both kinds of list. */
static void test_lists_of_tgb(void **state) {
    (void)state;
    int compared = 0;
    for (int size = 0; size <= 6; size++)
        for (int above = 0; above <= size; above++)
            for (int tied = 0; tied <= size - above; tied++)
                for (unsigned met = 0; met < 1u << size; met++) {
                    unsigned all = (1u << size) - 1, high = (1u << above) - 1,
                             even = ((1u << tied) - 1) << above;
                    fr_record r = {.covered = 1, .n = size + 1, .avail_n = -1, .pop_self = 1};
                    r.above = above;
                    r.tied = tied;
                    r.train_n = __builtin_popcount(met);
                    r.train_above = __builtin_popcount(met & high);
                    r.train_tied = __builtin_popcount(met & even);
                    for (int k = 1; k <= size + 2; k++)
                        for (int hist = 0; hist < 2; hist++) {
                            fr_expected found = one(&r, 1, hist ? "tgb-hist" : "tgb-rnd", k,
                                                    FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
                            fr_expected brute = tgb_lists(all, met, k, hist, high, even);
                            assert_true(brute.events > 0);
                            assert_int_equal(found.events, 1);
                            assert_true(fabs(found.mrr - brute.mrr) < 1e-14);
                            assert_true(fabs(found.sd - brute.sd) < 1e-8);
                            assert_true(fabs(found.hits[0] - brute.hits[0]) < 1e-14);
                            compared++;
                        }
                }
    assert_true(compared > 10000);
}

/* Records that do not know what was met in training, and those of given lists. */
static void test_records_that_know_less(void **state) {
    (void)state;
    static const int64_t five[] = {5};
    fr_error err;
    fr_expected out[1];
    fr_record r[2] = {example(), example()};
    fr_sampling s = sampling_of("tgb-hist", five, 1);
    OK(fr_expected_compute(r, 2, &s, NULL, out, &err));
    r[1].event = 9;
    r[1].train_n = r[1].train_above = r[1].train_tied = -1; /* of an earlier release */
    FAILS(fr_expected_compute(r, 2, &s, NULL, out, &err), FR_EINPUT,
          "record 1 (event 9): has no train_n, train_above and train_tied, which tgb-hist needs");
    r[1].train_n = 5; /* made from counts */
    FAILS(fr_expected_compute(r, 2, &s, NULL, out, &err), FR_EINPUT, "record 1 (event 9)");
    r[1].covered = 0;
    OK(fr_expected_compute(r, 2, &s, NULL, out, &err));

    r[0].seen_n = r[0].seen_above = r[0].seen_tied = -1; /* of a given list */
    r[0].pop_above = r[0].pop_tied = r[0].pop_self = NAN;
    for (int i = 0; fr_sampler_at(i); i++)
        if (strcmp(fr_sampler_at(i)->name, "tgb-hist"))
            assert_int_equal(
                one(r, 1, fr_sampler_at(i)->name, 5, FR_SMALL_WHOLE, FR_OOV_EXCLUDE).events, 0);
    r[0].seen_above = 0;
    s = sampling_of("uniform", five, 1);
    FAILS(fr_expected_compute(r, 1, &s, NULL, out, &err), FR_EINPUT, "-1 seen negatives");
}

static void test_k_beyond_the_catalog(void **state) {
    (void)state;
    fr_record r[2] = {example(), example()};
    r[1].n = 31; /* a larger catalog, as time-available ones are */
    fr_expected out = one(r, 2, "uniform", 31, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 0);
    assert_int_equal(out.ineligible, 2);
    out = one(r, 2, "uniform", 31, FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 2); /* taken whole, as it says */
    assert_true(out.mrr == 1.0 / 6 && out.sd == 0);
    out = one(r, 2, "uniform", 30, FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 2);
    assert_true(out.mrr == 1.0 / 6);
    out = one(r, 2, "uniform", 25, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 1);
    assert_int_equal(out.ineligible, 1);
    out = one(r, 2, "random", 1000, FR_SMALL_INELIGIBLE, FR_OOV_EXCLUDE);
    assert_int_equal(out.events, 2); /* repeats never run out */
}

static void test_uncovered(void **state) {
    (void)state;
    fr_record r[4] = {
        example(), {.above = -1, .tied = -1, .avail_n = -1}, example(), {.avail_n = -1}};
    double mrr = mrr_of(r[0], "uniform", 5);
    fr_expected single = one(r, 1, "uniform", 5, FR_SMALL_WHOLE, FR_OOV_ZERO);
    fr_expected without = one(r, 4, "uniform", 5, FR_SMALL_WHOLE, FR_OOV_EXCLUDE);
    fr_expected zero = one(r, 4, "uniform", 5, FR_SMALL_WHOLE, FR_OOV_ZERO);
    assert_int_equal(without.events, 2);
    assert_true(without.mrr == mrr);
    assert_true(fabs(without.sd - single.sd / sqrt(2)) < 1e-15);
    assert_int_equal(zero.events, 4);
    assert_true(zero.mrr == mrr / 2 && zero.hits[1] == without.hits[1] / 2);
    assert_true(fabs(zero.sd - without.sd / 2) < 1e-15);
    assert_int_equal(one(r, 4, "repeated-seen", 5, FR_SMALL_WHOLE, FR_OOV_ZERO).events, 2);
    assert_int_equal(one(r, 4, "uniform", 21, FR_SMALL_INELIGIBLE, FR_OOV_ZERO).events, 0);
    fr_expected none = one(r, 0, "uniform", 5, FR_SMALL_WHOLE, FR_OOV_ZERO);
    assert_true(none.events == 0 && isnan(none.mrr));
}

enum { COUNT = 5000 };

static int32_t below(uint64_t event, uint32_t draw, int32_t n) {
    return (int32_t)rng_below((rng_key){.seed = 11}, event, draw, (uint32_t)n);
}

static fr_record random_record(uint64_t event) {
    fr_record r = {.event = (int64_t)event, .covered = below(event, 0, 10) > 0, .avail_n = -1};
    r.repeated = below(event, 1, 2) == 0;
    r.n = 90 + below(event, 2, 4);
    r.above = below(event, 3, r.n);
    if (below(event, 4, 2)) r.tied = below(event, 5, r.n - r.above);
    int32_t rest = r.n - 1 - r.above - r.tied;
    r.seen_above = below(event, 6, r.above + 1);
    r.seen_tied = below(event, 7, r.tied + 1);
    r.seen_n = r.seen_above + r.seen_tied + below(event, 8, rest + 1);
    r.train_above = below(event, 9, r.above + 1);
    r.train_tied = below(event, 10, r.tied + 1);
    r.train_n = r.train_above + r.train_tied + below(event, 11, rest + 1);
    r.pop_above = 0.5 * r.above / r.n;
    r.pop_tied = 0.5 * r.tied / r.n;
    r.pop_self = 0.25;
    return r;
}

/* More groups than the table starts with; every sampler; sums equal those of single events, in any
 * order. */
static void test_groups_equal_single_events(void **state) {
    (void)state;
    fr_error err;
    fr_record *records, *backwards;
    OK(ALLOCATE(records, COUNT, &err));
    OK(ALLOCATE(backwards, COUNT, &err));
    for (int i = 0; i < COUNT; i++)
        records[i] = backwards[COUNT - 1 - i] = random_record((uint64_t)i);
    for (int s = 0; fr_sampler_at(s); s++) {
        enum { KS = 2 };
        static const int64_t k[KS] = {20, 3};
        fr_sampling sampling = sampling_of(fr_sampler_at(s)->name, k, KS);
        sampling.small = FR_SMALL_INELIGIBLE;
        fr_expected out[KS], reversed[KS];
        OK(fr_expected_compute(records, COUNT, &sampling, NULL, out, &err));
        OK(fr_expected_compute(backwards, COUNT, &sampling, NULL, reversed, &err));
        for (int threads = 1; threads <= 5; threads += 2) { /* the same bits with any number */
            fr_expected again[KS];
            fr_context context = {.threads = threads};
            memset(again, 0, sizeof again);
            OK(fr_expected_compute(records, COUNT, &sampling, &context, again, &err));
            for (int j = 0; j < KS; j++)
                assert_true(again[j].mrr == out[j].mrr && again[j].sd == out[j].sd);
        }
        double sum[KS] = {0}, variance[KS] = {0}, hits[KS] = {0};
        int64_t events[KS] = {0}, ineligible[KS] = {0};
        for (int i = 0; i < COUNT; i++) {
            fr_expected single[KS];
            OK(fr_expected_compute(&records[i], 1, &sampling, NULL, single, &err));
            for (int j = 0; j < KS; j++) {
                events[j] += single[j].events;
                ineligible[j] += single[j].ineligible;
                if (!single[j].events) continue;
                sum[j] += single[j].mrr;
                variance[j] += single[j].sd * single[j].sd;
                hits[j] += single[j].hits[1];
            }
        }
        for (int j = 0; j < KS; j++) {
            double n = (double)events[j];
            assert_true(n > 100);
            assert_int_equal(out[j].events, events[j]);
            assert_int_equal(out[j].ineligible, ineligible[j]);
            assert_true(fabs(out[j].mrr - sum[j] / n) < 1e-13);
            assert_true(fabs(out[j].mrr - reversed[j].mrr) < 1e-13);
            assert_true(fabs(out[j].sd - sqrt(variance[j]) / n) < 1e-13);
            assert_true(fabs(out[j].hits[1] - hits[j] / n) < 1e-13);
        }
    }
    free(records);
    free(backwards);
}

static void test_refusals(void **state) {
    (void)state;
    fr_error err;
    fr_expected out[1];
    static const int64_t five[] = {5}, none[] = {0};
    fr_record r = example();
    fr_sampling s = sampling_of("unifrom", five, 1);
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE,
          "unknown sampler unifrom, did you mean uniform?");
    s = sampling_of(NULL, five, 1);
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "unknown sampler (none)");
    s = sampling_of("uniform", none, 1);
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "K = 0");
    s = sampling_of("uniform", five, 0);
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "no K");
    s = sampling_of("uniform", five, 1);
    s.hits_count = 9;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "9 values");
    s.hits_count = 1;
    s.hits = none;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "Hits@0");
    s = sampling_of("uniform", five, 1);
    s.small = 2;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "small pools");
    s.small = 0;
    s.oov = 2;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EUSAGE, "oov 2");
    s.oov = 0;
    r.above = 19; /* 19 + 2 > 20 */
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EINPUT,
          "record 0 (event 7): 19 above");
    r = example();
    r.seen_tied = 3;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EINPUT, "6 seen negatives");
    r = example();
    r.seen_n = 19; /* 15 of them below, but only 14 negatives are */
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EINPUT, "19 seen negatives");
    r = example();
    r.pop_above = 0.9;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EINPUT, "popularity 0.9 above");
    r = example();
    r.avail_n = 3;
    r.avail_above = 3;
    FAILS(fr_expected_compute(&r, 1, &s, NULL, out, &err), FR_EINPUT,
          "time-available catalog of 3");
}

/* The manual has a row for each. */
static void test_documented(void **state) {
    (void)state;
    static char manual[1 << 16];
    FILE *file = fopen(FULLRANK_SOURCE_DIR "/docs/metrics.md", "r");
    assert_non_null(file);
    size_t size = fread(manual, 1, sizeof manual - 1, file);
    (void)fclose(file);
    assert_true(size < sizeof manual - 1);
    static const fr_definition *(*const registry[])(int) = {fr_metric_at, fr_sampler_at,
                                                            fr_slice_field_at};
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0;; i++) {
            const fr_definition *d = registry[kind](i);
            if (!d) break;
            char row[64];
            (void)snprintf(row, sizeof row, "\n| `%s` |", d->name);
            if (!strstr(manual, row)) print_error("# docs/metrics.md has no row for %s\n", d->name);
            assert_non_null(strstr(manual, row));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_pools_of_a_record),
        cmocka_unit_test(test_draws_of_the_positive),
        cmocka_unit_test(test_small_pools),
        cmocka_unit_test(test_lists_of_tgb),
        cmocka_unit_test(test_records_that_know_less),
        cmocka_unit_test(test_k_beyond_the_catalog),
        cmocka_unit_test(test_uncovered),
        cmocka_unit_test(test_groups_equal_single_events),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
