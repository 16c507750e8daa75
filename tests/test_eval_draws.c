/* test_eval_draws.c - nested draws: prefixes, independence of order and threads, and convergence to
 * the exact expectation and its standard deviation. Seeds are fixed, so results never change. */
#include "eval/draws.h"
#include "testing.h"

#include <math.h>

enum { COUNT = 40, SEEDS = 2000 };

static int32_t below(uint64_t event, uint32_t draw, int32_t n) {
    return (int32_t)rng_below((rng_key){.seed = 5}, event, draw, (uint32_t)n);
}

/* Ranks of every kind in catalogs of 120 to 150: on top, anywhere, with and without ties. */
static void make_records(fr_record *records) {
    for (int i = 0; i < COUNT; i++) {
        uint64_t event = 1000 + (uint64_t)i * 3;
        fr_record r = {.event = (int64_t)event, .covered = i % 10 != 9, .avail_n = -1};
        r.n = 120 + below(event, 0, 31);
        r.above = i % 2 ? below(event, 1, 8) : below(event, 2, r.n);
        if (i % 3 == 0) r.tied = below(event, 3, r.n - r.above);
        records[i] = r;
    }
}

static fr_sampling standard(void) {
    return (fr_sampling){.sampler = "uniform", .k = fr_standard_k, .k_count = FR_STANDARD_K};
}

static void test_prefixes_are_nested(void **state) {
    (void)state;
    fr_record records[COUNT];
    make_records(records);
    for (int i = 0; i < COUNT; i++) {
        const fr_record *r = &records[i];
        if (!r->covered) continue;
        int64_t every[160];
        draw_counts all[160], few[3];
        expected_pool pool = {.size = r->n - 1.0, .above = r->above, .tied = r->tied};
        rng_key key = {.seed = 77, .purpose = RNG_DRAWS};
        for (int k = 0; k < 160; k++) every[k] = k + 1;
        draws_nested(&pool, key, r->event, every, 160, all);
        for (int k = 0; k < 160; k++) { /* one negative at a time, and none beyond the catalog */
            draw_counts before = k ? all[k - 1] : (draw_counts){0, 0};
            int32_t above = all[k].above - before.above, tied = all[k].tied - before.tied;
            assert_true(above >= 0 && tied >= 0 && above + tied <= (k < r->n - 1));
            assert_true(all[k].above <= r->above && all[k].tied <= r->tied);
        }
        assert_int_equal(all[r->n - 2].above, r->above); /* the whole catalog: the full rank */
        assert_int_equal(all[r->n - 2].tied, r->tied);
        static const int64_t some[] = {3, 20, 100}; /* the same, wherever one stops */
        draws_nested(&pool, key, r->event, some, 3, few);
        for (int k = 0; k < 3; k++) assert_memory_equal(&few[k], &all[some[k] - 1], sizeof few[k]);
    }
}

/* Each position shows each negative with equal probability: if one of n is above, its place is
 * uniform. */
static void test_permutation_is_even(void **state) {
    (void)state;
    enum { N = 7, ROUNDS = 14000 };
    int seen[N - 1] = {0};
    static const int64_t k[] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < ROUNDS; i++) {
        expected_pool pool = {.size = N - 1, .above = 1};
        rng_key key = {.seed = (uint64_t)i / 100, .purpose = RNG_DRAWS};
        draw_counts c[N - 1];
        draws_nested(&pool, key, i % 100, k, N - 1, c);
        for (int j = 0; j < N - 1; j++) {
            if (!c[j].above) continue;
            seen[j]++;
            break;
        }
    }
    double expected = ROUNDS / (N - 1.0), chi2 = 0;
    for (int j = 0; j < N - 1; j++) chi2 += (seen[j] - expected) * (seen[j] - expected) / expected;
    assert_true(chi2 < 20.5); /* chi-squared with 5 degrees: 99.9 % */
}

static void test_draws_converge_to_the_expectation(void **state) {
    (void)state;
    fr_error err;
    fr_record records[COUNT];
    make_records(records);
    static double each[SEEDS][FR_STANDARD_K];
    for (int oov = FR_OOV_EXCLUDE; oov <= FR_OOV_ZERO; oov++) {
        fr_sampling sampling = standard();
        fr_expected exact[FR_STANDARD_K];
        fr_draws drawn[FR_STANDARD_K];
        sampling.oov = oov;
        OK(fr_expected_compute(records, COUNT, &sampling, NULL, exact, &err));
        OK(fr_draws_compute(records, COUNT, &sampling, 1, SEEDS, NULL, drawn, each[0], &err));
        for (int k = 0; k < FR_STANDARD_K; k++) {
            assert_int_equal(drawn[k].k, exact[k].k);
            assert_int_equal(drawn[k].events, exact[k].events);
            assert_true(exact[k].sd > 0.001);
            double error = exact[k].sd / sqrt(SEEDS);
            assert_true(fabs(drawn[k].mrr - exact[k].mrr) < 4 * error);
            assert_true(fabs(drawn[k].sd / exact[k].sd - 1) < 0.08);
            double sum = 0;
            for (int s = 0; s < SEEDS; s++) sum += each[s][k];
            assert_true(fabs(sum / SEEDS - drawn[k].mrr) < 1e-13);
        }
    }
}

/* Bits do not depend on threads, on the order of records and of K, or on what else is drawn. */
static void test_order_does_not_matter(void **state) {
    (void)state;
    fr_error err;
    fr_record records[COUNT];
    make_records(records);
    enum { FEW = 7 };
    fr_sampling sampling = standard();
    fr_draws one[FR_STANDARD_K], many[FR_STANDARD_K], other[2];
    double each[FEW][FR_STANDARD_K], again[FEW][FR_STANDARD_K], later[2][2];
    OK(fr_draws_compute(records, COUNT, &sampling, 10, FEW, &(fr_context){.threads = 1}, one,
                        each[0], &err));
    OK(fr_draws_compute(records, COUNT, &sampling, 10, FEW, &(fr_context){.threads = 5}, many,
                        again[0], &err));
    assert_memory_equal(one, many, sizeof one);
    assert_memory_equal(each, again, sizeof each);

    static const int64_t mixed[] = {50, 5};
    sampling.k = mixed;
    sampling.k_count = 2;
    OK(fr_draws_compute(records, COUNT, &sampling, 13, 2, NULL, other, later[0], &err));
    for (int s = 0; s < 2; s++) {
        assert_true(later[s][0] == each[3 + s][3]);
        assert_true(later[s][1] == each[3 + s][1]);
    }
    assert_int_equal(other[0].k, 50);

    for (int i = 0; i < COUNT / 2; i++) { /* an event's draws do not depend on its position */
        fr_record swap = records[i];
        records[i] = records[COUNT - 1 - i];
        records[COUNT - 1 - i] = swap;
    }
    OK(fr_draws_compute(records, COUNT, &sampling, 13, 2, NULL, other, again[0], &err));
    for (int s = 0; s < 2; s++) assert_true(fabs(again[0][s * 2] - later[s][0]) < 1e-15);
}

static void test_rules_and_refusals(void **state) {
    (void)state;
    fr_error err;
    fr_record records[COUNT];
    make_records(records);
    static const int64_t large[] = {149, 151, 119};
    fr_sampling sampling = {.sampler = "uniform-20", .k = large, .k_count = 3};
    for (int small = FR_SMALL_WHOLE; small <= FR_SMALL_INELIGIBLE; small++) {
        fr_draws drawn[3];
        fr_expected exact[3];
        sampling.small = small;
        OK(fr_draws_compute(records, COUNT, &sampling, 0, 1, NULL, drawn, NULL, &err));
        OK(fr_expected_compute(records, COUNT, &sampling, NULL, exact, &err));
        for (int k = 0; k < 3; k++) {
            assert_int_equal(drawn[k].events, exact[k].events);
            assert_true(isnan(drawn[k].mrr) == (drawn[k].events == 0));
            assert_true(isnan(drawn[k].sd));
        }
        assert_true((drawn[1].events == 0) == (small == FR_SMALL_INELIGIBLE));
        assert_true(drawn[2].events > 0);
    }
    fr_draws drawn[3];
    FAILS(fr_draws_compute(records, COUNT, &sampling, 0, 0, NULL, drawn, NULL, &err), FR_EUSAGE,
          "0 seeds");
    sampling.sampler = "tgb-hist";
    FAILS(fr_draws_compute(records, COUNT, &sampling, 0, 1, NULL, drawn, NULL, &err), FR_EUSAGE,
          "draws with sampler tgb-hist, expected uniform");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes_are_nested),
        cmocka_unit_test(test_permutation_is_even),
        cmocka_unit_test(test_draws_converge_to_the_expectation),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_rules_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
