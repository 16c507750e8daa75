/* test_eval_metrics.c - metrics by hand on small cases, rules for uncovered events, tie rules,
 * changes that must not matter, and the registry. */
#include "base/rng.h"
#include "eval/metrics.h"
#include "testing.h"

#include <math.h>

static fr_metric_value get(const fr_record *records, int64_t count, int oov, const char *name) {
    fr_error err;
    fr_metric_value out;
    OK(fr_metrics_compute(records, count, oov, &name, 1, &out, &err));
    return out;
}

/* Metric number `index` as typed: with the number 10 if it takes one. */
static const char *typed(int index) {
    static char name[64];
    (void)snprintf(name, sizeof name, "%.60s", fr_metric_at(index)->name);
    char *mark = strchr(name, '@');
    if (mark) memcpy(mark, "@10", 4);
    return name;
}

#define IS(name, value_, events_)                                                                  \
    do {                                                                                           \
        fr_metric_value v_ = get(records, COUNT, oov, (name));                                     \
        double w_ = (value_);                                                                      \
        if (!(fabs(v_.value - w_) <= 1e-15 * fabs(w_) * 4) || v_.events != (events_)) {            \
            print_error("# %s: found %.17g over %lld, expected %.17g over %lld\n", (name),         \
                        v_.value, (long long)v_.events, w_, (long long)(events_));                 \
            assert_true(false);                                                                    \
        }                                                                                          \
    } while (0)

/* Ranks 1, 3.5 (two above, one tied), 11 and an uncovered event. */
enum { COUNT = 4 };
static const fr_record records[COUNT] = {
    {.event = 0, .covered = 1, .repeated = 1, .n = 20, .seen_n = 3, .avail_n = 10},
    {.event = 1,
     .covered = 1,
     .repeated = 1,
     .n = 20,
     .above = 2,
     .tied = 1,
     .seen_n = 5,
     .seen_above = 1,
     .seen_tied = 1,
     .avail_n = 30,
     .avail_above = 3,
     .avail_tied = 2},
    {.event = 2,
     .covered = 1,
     .repeated = 0,
     .n = 40,
     .above = 10,
     .seen_n = 8,
     .seen_above = 7,
     .avail_n = -1},
    {.event = 3,
     .repeated = 1,
     .n = 20,
     .above = -1,
     .tied = -1,
     .seen_n = -1,
     .avail_n = 21,
     .avail_above = 1},
};

static void test_by_hand(void **state) {
    (void)state;
    int oov = FR_OOV_EXCLUDE;
    IS("mrr", (1 + 1 / 3.5 + 1 / 11.0) / 3, 3);
    IS("hits@1", 1 / 3.0, 3);
    IS("hits@3", 1 / 3.0, 3); /* 3.5 is not within 3 */
    IS("hits@4", 2 / 3.0, 3);
    IS("hits@10", 2 / 3.0, 3);
    IS("hits@11", 1, 3);
    IS("recall@4", 2 / 3.0, 3);
    IS("ndcg@1", 1 / 3.0, 3);
    IS("ndcg@3", 1 / 3.0, 3);
    IS("ndcg@4", (1 + 1 / log2(4.5)) / 3, 3);
    IS("ndcg@11", (1 + 1 / log2(4.5) + 1 / log2(12)) / 3, 3);
    IS("auc", (1 + 16.5 / 19 + 29 / 39.0) / 3, 3);
    IS("amri", 1 - ((1 + 3.5 + 11) / 3 - 1) / ((10.5 + 10.5 + 20.5) / 3 - 1), 3);
    IS("hits-adjusted@4", (2 / 3.0 - (0.2 + 0.2 + 0.1) / 3) / (1 - (0.2 + 0.2 + 0.1) / 3), 3);
    IS("mrr-repeated", (1 + 1 / 3.5) / 2, 2);
    IS("mrr-new", 1 / 11.0, 1);
    IS("all-seen", (1 + 1 / 2.5) / 2, 2);
    IS("all-unseen", 1 / 4.0, 1);
    const fr_record tied = {.covered = 1,
                            .n = 20,
                            .above = 5,
                            .tied = 6,
                            .seen_n = 7,
                            .seen_above = 2,
                            .seen_tied = 1,
                            .avail_n = -1};
    assert_true(get(&tied, 1, oov, "all-unseen").value == 1 / (1 + 3 + 2.5));
    IS("mrr-available", (1 + 1 / 5.0 + 1 / 2.0) / 3, 3);
    IS("mean-rank", (1 + 3.5 + 11) / 3, 3);
    IS("median-rank", 3.5, 3);
    IS("mrr-optimistic", (1 + 1 / 3.0 + 1 / 11.0) / 3, 3);
    IS("mrr-pessimistic", (1 + 1 / 4.0 + 1 / 11.0) / 3, 3);
    IS("mrr-random-ties", (1 + (1 / 3.0 + 1 / 4.0) / 2 + 1 / 11.0) / 3, 3);
    IS("ranked", 3, 4);
    IS("coverage", 0.75, 4);
    IS("ties", 1, 3);
    double h20 = 0, h40 = 0;
    for (int i = 20; i > 0; i--) h20 += 1.0 / i;
    for (int i = 40; i > 0; i--) h40 += 1.0 / i;
    double chance = (2 * h20 / 20 + h40 / 40) / 3, mrr = (1 + 1 / 3.5 + 1 / 11.0) / 3;
    IS("mrr-adjusted", (mrr - chance) / (1 - chance), 3);
    assert_true(fabs(get(records, COUNT, oov, "tie-spread").value - (1 / 3.0 - 1 / 4.0) / 3) <
                1e-15);
}

static void test_uncovered_count_zero(void **state) {
    (void)state;
    int oov = FR_OOV_ZERO;
    IS("mrr", (1 + 1 / 3.5 + 1 / 11.0) / 4, 4);
    IS("hits@10", 2 / 4.0, 4);
    IS("ndcg@10", (1 + 1 / log2(4.5)) / 4, 4);
    IS("auc", (1 + 16.5 / 19 + 29 / 39.0) / 4, 4);
    IS("mrr-repeated", (1 + 1 / 3.5) / 3, 3);
    IS("mrr-new", 1 / 11.0, 1);
    IS("mrr-optimistic", (1 + 1 / 3.0 + 1 / 11.0) / 4, 4);
    /* these do not apply to an event without a rank */
    IS("mean-rank", (1 + 3.5 + 11) / 3, 3);
    IS("median-rank", 3.5, 3);
    IS("all-seen", (1 + 1 / 2.5) / 2, 2);
    IS("all-unseen", 1 / 4.0, 1);
    IS("coverage", 0.75, 4);
    static const char *const adjusted[] = {"mrr-adjusted", "hits-adjusted@3", "amri", "z-mrr"};
    for (size_t i = 0; i < sizeof adjusted / sizeof *adjusted; i++)
        assert_true(get(records, COUNT, FR_OOV_ZERO, adjusted[i]).value ==
                    get(records, COUNT, FR_OOV_EXCLUDE, adjusted[i]).value);
}

/* The positive tied with 999 others, none above: four rules, four numbers. */
static void test_tie_rules_decide(void **state) {
    (void)state;
    const fr_record r = {.covered = 1, .n = 1000, .tied = 999, .avail_n = -1};
    double h1000 = 0;
    for (int i = 1000; i > 0; i--) h1000 += 1.0 / i;
    assert_true(get(&r, 1, 0, "mrr-optimistic").value == 1);
    assert_true(fabs(get(&r, 1, 0, "mrr-random-ties").value - h1000 / 1000) < 1e-17);
    assert_true(fabs(get(&r, 1, 0, "mrr-random-ties").value - 0.0075) < 5e-5);
    assert_true(fabs(get(&r, 1, 0, "mrr").value - 0.0020) < 5e-5);
    assert_true(get(&r, 1, 0, "mrr-pessimistic").value == 0.001);
    for (int32_t before = 0; before < 1000; before += 333) { /* the fifth: by id */
        fr_record named = r;
        named.tied_before = before;
        assert_true(get(&named, 1, 0, "mrr-trec").value == 1 / (1.0 + before));
    }
    fr_record unknown[2] = {r, r}; /* one that does not know leaves no number */
    unknown[1].tied_before = -1;
    assert_true(isnan(get(unknown, 2, 0, "mrr-trec").value));
    unknown[1].tied = 0; /* nothing to know */
    assert_true(get(unknown, 2, 0, "mrr-trec").value == 1);
    fr_error err;
    fr_metric_value out;
    const char *const mrr[] = {"mrr"};
    unknown[0].tied_before = 1000;
    FAILS(fr_metrics_compute(unknown, 1, 0, mrr, 1, &out, &err), FR_EINPUT, "1000 tied before");
    assert_true(get(&r, 1, 0, "tie-spread").value > FR_TIE_WARNING);
}

/* H_n with 20 digits, from the exact fraction; and against sums in long double. */
static void test_harmonic(void **state) {
    (void)state;
    assert_true(harmonic(0, 0) == 0 && harmonic(7, 7) == 0 && harmonic(0, 1) == 1);
    assert_true(fabs(harmonic(0, 100) - 5.1873775176396202608) < 1e-15 * 5);
    assert_true(fabs(harmonic(0, 1000) - 7.4854708605503449127) < 1e-15 * 7);
    static const int64_t lows[] = {0, 1, 10, 63, 64, 65, 1000, 123456, 9999000};
    static const int64_t lengths[] = {1, 2, 63, 64, 65, 66, 100, 1000, 300000};
    for (size_t i = 0; i < sizeof lows / sizeof *lows; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            long double sum = 0;
            for (int64_t n = lows[i] + lengths[j]; n > lows[i]; n--) sum += 1 / (long double)n;
            double found = harmonic(lows[i], lows[i] + lengths[j]);
            assert_true(fabsl(found - sum) < 4e-15L * sum);
        }
}

static int32_t below(uint64_t event, uint32_t draw, int32_t n) {
    return (int32_t)rng_below((rng_key){.seed = 12}, event, draw, (uint32_t)n);
}

static fr_record random_record(uint64_t event) {
    fr_record r = {.event = (int64_t)event, .covered = below(event, 0, 10) > 0, .avail_n = -1};
    r.repeated = below(event, 1, 2) == 0;
    r.n = 2 + below(event, 2, 900);
    r.above = below(event, 3, r.n);
    if (below(event, 4, 2)) r.tied = below(event, 5, r.n - r.above);
    return r;
}

enum { MANY = 2001 };

/* These hold for any records: the order of the rules, of the groups, of k, of events. */
static void test_relations(void **state) {
    (void)state;
    static fr_record many[MANY], shuffled[MANY];
    for (int i = 0; i < MANY; i++) many[i] = shuffled[i * 1000 % MANY] = random_record((uint64_t)i);
    for (int oov = 0; oov < 2; oov++) {
        double mrr = get(many, MANY, oov, "mrr").value;
        double optimistic = get(many, MANY, oov, "mrr-optimistic").value;
        double pessimistic = get(many, MANY, oov, "mrr-pessimistic").value;
        double expected = get(many, MANY, oov, "mrr-random-ties").value;
        assert_true(optimistic > expected && expected > mrr && mrr > pessimistic); /* Jensen */
        fr_metric_value repeated = get(many, MANY, oov, "mrr-repeated"),
                        fresh = get(many, MANY, oov, "mrr-new");
        double events = (double)(repeated.events + fresh.events);
        assert_true(events == (double)get(many, MANY, oov, "mrr").events);
        double parts =
            repeated.value * (double)repeated.events + fresh.value * (double)fresh.events;
        assert_true(fabs(parts / events - mrr) < 1e-14);
        assert_true(get(many, MANY, oov, "hits@1").value <= get(many, MANY, oov, "hits@3").value);
        assert_true(get(many, MANY, oov, "hits@1000").value ==
                    (oov ? get(many, MANY, oov, "coverage").value : 1));
        for (int i = 0; fr_metric_at(i); i++) {
            const char *name = typed(i);
            fr_metric_value a = get(many, MANY, oov, name), b = get(shuffled, MANY, oov, name);
            assert_int_equal(a.events, b.events);
            if (a.events) assert_true(fabs(a.value - b.value) <= 1e-12 * fabs(a.value));
        }
    }
}

/* A random order gets 0, a perfect one 1, for any catalog. */
static void test_adjusted_for_chance(void **state) {
    (void)state;
    static const char *const adjusted[] = {"mrr-adjusted", "hits-adjusted@1", "amri", "z-mrr"};
    for (int32_t n = 2; n <= 300; n += 37) {
        static fr_record every[300];
        for (int32_t above = 0; above < n; above++)
            every[above] = (fr_record){.covered = 1, .n = n, .above = above, .avail_n = -1};
        for (int i = 0; i < 4; i++) {
            assert_true(fabs(get(every, n, 0, adjusted[i]).value) < 1e-13);
            if (i < 3) assert_true(get(every, 1, 0, adjusted[i]).value == 1);
        }
        assert_true(fabs(get(&every[n - 1], 1, 0, "amri").value + 1) < 1e-15);
        assert_true(fabs(get(every, n, 0, "auc").value - 0.5) < 1e-14);
        double amri = get(every, 2, 0, "amri").value; /* of one catalog size: 2 AUC - 1 */
        assert_true(fabs(2 * get(every, 2, 0, "auc").value - 1 - amri) < 1e-14);
    }
    const fr_record alone = {.covered = 1, .n = 1, .avail_n = -1}; /* nothing to adjust */
    for (int i = 0; i < 4; i++) assert_true(isnan(get(&alone, 1, 0, adjusted[i]).value));
    assert_int_equal(get(&alone, 1, 0, "auc").events, 0);
}

/* Every pair of orders of two catalogs: mean and deviation of MRR, Hits@k and the mean rank under
 * chance, by enumeration. */
static void test_chance_by_enumeration(void **state) {
    (void)state;
    enum { A = 7, B = 100, K = 9 };
    fr_record r[2] = {{.covered = 1, .n = A, .avail_n = -1}, {.covered = 1, .n = B, .avail_n = -1}};
    long double rr = 0, rr2 = 0, hits = 0, rank = 0, cases = A * B;
    for (int a = 1; a <= A; a++)
        for (int b = 1; b <= B; b++) {
            long double mean = (1.0L / a + 1.0L / b) / 2;
            rr += mean / cases;
            rr2 += mean * mean / cases;
            hits += ((a <= K) + (b <= K)) / 2.0L / cases;
            rank += (a + b) / 2.0L / cases;
        }
    r[0].above = 2;
    r[1].above = 3;
    r[1].tied = 5; /* ranks 3 and 6.5 */
    double mrr = (1 / 3.0 + 1 / 6.5) / 2;
    assert_true(fabsl(get(r, 2, 0, "z-mrr").value - (mrr - rr) / sqrtl(rr2 - rr * rr)) < 1e-13L);
    assert_true(fabsl(get(r, 2, 0, "hits-adjusted@9").value - 1) < 1e-14L);
    assert_true(fabsl(get(r, 2, 0, "hits-adjusted@5").value -
                      (0.5L - (5.0L / A + 5.0L / B) / 2) / (1 - (5.0L / A + 5.0L / B) / 2)) <
                1e-14L);
    assert_true(fabsl((1 + 9.0L / B) / 2 - hits) < 1e-15L);
    assert_true(fabsl(get(r, 2, 0, "amri").value - (4.75L - rank) / (1 - rank)) < 1e-14L);
    /* sums of squares by their expansion, at both sides of where it begins */
    for (int32_t n = 60; n < 70; n++) {
        fr_record one = {.covered = 1, .n = n, .avail_n = -1};
        long double h = 0, g = 0;
        for (int32_t i = n; i > 0; i--) h += 1.0L / i, g += 1.0L / i / i;
        long double z = (1 - h / n) / sqrtl(g / n - h / n * h / n);
        assert_true(fabsl(get(&one, 1, 0, "z-mrr").value - z) < 1e-14L * z);
    }
}

/* The probability to beat a negative, by comparing with each. */
static void test_auc_by_enumeration(void **state) {
    (void)state;
    for (uint64_t event = 0; event < 200; event++) {
        fr_record r = random_record(event);
        if (!r.covered) continue;
        int64_t twice = 0;
        for (int32_t i = 0; i < r.n - 1; i++)
            twice += i < r.above ? 0 : i < r.above + r.tied ? 1 : 2;
        assert_true(fabs(get(&r, 1, 0, "auc").value - (double)twice / 2 / (r.n - 1)) < 1e-15);
    }
}

static void test_median(void **state) {
    (void)state;
    fr_record r[4];
    static const int32_t above[] = {9, 0, 4, 5};
    for (int i = 0; i < 4; i++)
        r[i] = (fr_record){.covered = 1, .n = 11, .above = above[i], .tied = i == 2, .avail_n = -1};
    assert_true(get(r, 1, 0, "median-rank").value == 10);
    assert_true(get(r, 2, 0, "median-rank").value == 5.5);
    assert_true(get(r, 3, 0, "median-rank").value == 5.5);
    assert_true(get(r, 4, 0, "median-rank").value == 5.75); /* of 1, 5.5, 6, 10 */
}

static void test_nothing_to_count(void **state) {
    (void)state;
    const fr_record uncovered = {.repeated = 1, .avail_n = -1};
    for (int i = 0; fr_metric_at(i); i++) {
        fr_metric_value none = get(NULL, 0, FR_OOV_ZERO, typed(i));
        bool count = fr_metric_at(i)->kind == FR_KIND_COUNT;
        assert_true(count ? none.value == 0 : isnan(none.value));
        assert_int_equal(none.events, 0);
    }
    assert_true(isnan(get(&uncovered, 1, FR_OOV_EXCLUDE, "mrr").value));
    assert_true(get(&uncovered, 1, FR_OOV_ZERO, "mrr").value == 0);
    assert_true(isnan(get(&uncovered, 1, FR_OOV_ZERO, "mrr-new").value));
}

static void test_registry(void **state) {
    (void)state;
    fr_error err;
    int64_t k;
    int count = 0;
    for (; fr_metric_at(count); count++) {
        const fr_definition *d = fr_metric_at(count);
        assert_ptr_equal(fr_metric_find(d->name, &k), d);
        assert_int_equal(k, 0);
        assert_true(strlen(d->explanation) > 50 && strlen(d->title) < 60);
        assert_in_range(d->kind, FR_KIND_MEAN, FR_KIND_SHARE);
        double value = get(records, COUNT, FR_OOV_EXCLUDE, typed(count)).value;
        if (d->kind == FR_KIND_COUNT) assert_true(value >= 0 && value == floor(value));
        if (d->kind == FR_KIND_SHARE) assert_true(value >= 0 && value <= 1);
    }
    assert_true(count > 0);
    assert_string_equal(fr_metric_find("hits@7", &k)->name, "hits@k");
    assert_int_equal(k, 7);
    assert_ptr_equal(fr_metric_find("recall@7", &k), fr_metric_find("hits@k", NULL));
    assert_int_equal(k, 7);
    assert_ptr_equal(fr_metric_find("recall@k", &k), fr_metric_find("hits@k", NULL));
    static const char *const unknown[] = {"",    "hits",  "hits@",   "hits@0",   "hits@1x",
                                          "MRR", "mrr@1", "recall@", "recall@0", "recall@1x"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(fr_metric_find(unknown[i], NULL));

    fr_metric_value out[2];
    const char *names[] = {"mrr", "mr"};
    FAILS(fr_metrics_compute(records, COUNT, 0, names, 2, out, &err), FR_EUSAGE,
          "unknown metric mr, did you mean mrr?");
    names[1] = "hits@k";
    FAILS(fr_metrics_compute(records, COUNT, 0, names, 2, out, &err), FR_EUSAGE, "hits@10");
    FAILS(fr_metrics_compute(records, COUNT, 7, names, 1, out, &err), FR_EUSAGE, "oov 7");
    fr_record broken = records[0];
    broken.above = -1;
    FAILS(fr_metrics_compute(&broken, 1, 0, names, 1, out, &err), FR_EINPUT, "record 0 (event 0)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_uncovered_count_zero),
        cmocka_unit_test(test_tie_rules_decide),
        cmocka_unit_test(test_harmonic),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_adjusted_for_chance),
        cmocka_unit_test(test_chance_by_enumeration),
        cmocka_unit_test(test_auc_by_enumeration),
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_nothing_to_count),
        cmocka_unit_test(test_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
