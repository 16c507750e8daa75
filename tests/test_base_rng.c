/* test_base_rng.c - Philox known answers through our counter layout, and the distributions made of
 * it. Moments are tested at about five standard errors. The seed is fixed, so results never change.
 */
#include "base/rng.h"
#include "testing.h"

#include <Random123/philox.h>
#include <math.h>

/* Known answers of Philox 4x32-10, from Random123's published kat_vectors. */
static const struct {
    uint32_t counter[4], key[2], bits[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const uint32_t *c = known[i].counter, *k = known[i].key;
        rng_key key = {.seed = (uint64_t)k[1] << 32 | k[0],
                       .purpose = (rng_purpose)(c[3] >> 24),
                       .epoch = c[2]};
        uint64_t event = (uint64_t)(c[3] & 0xffffff) << 32 | c[1];
        rng_block b = rng_bits(key, event, c[0]);
        assert_memory_equal(b.word, known[i].bits, sizeof b.word);
        philox4x32_ctr_t counter = {{c[0], c[1], c[2], c[3]}};
        philox4x32_key_t seed = {{k[0], k[1]}};
        philox4x32_ctr_t direct = philox4x32(counter, seed);
        assert_memory_equal(direct.v, known[i].bits, sizeof b.word);
    }
}

static void test_every_coordinate_matters(void **state) {
    (void)state;
    const rng_key key = {.seed = 5, .purpose = RNG_TEST, .epoch = 2};
    rng_key other[] = {key, key, key, key};
    other[0].seed = 6;
    other[1].seed = 5 + (1ull << 32);
    other[2].purpose = RNG_SYNTH_EVENT;
    other[3].epoch = 3;
    rng_block b = rng_bits(key, 10, 20);
    for (int i = 0; i < 4; i++) {
        rng_block different = rng_bits(other[i], 10, 20);
        assert_memory_not_equal(b.word, different.word, sizeof b.word);
    }
    rng_block event = rng_bits(key, 11, 20), high = rng_bits(key, 10 + (1ull << 32), 20),
              draw = rng_bits(key, 10, 21);
    assert_memory_not_equal(b.word, event.word, sizeof b.word);
    assert_memory_not_equal(b.word, high.word, sizeof b.word);
    assert_memory_not_equal(b.word, draw.word, sizeof b.word);
}

enum { COUNT = 200000 };

static void test_uniform(void **state) {
    (void)state;
    rng_key key = {.seed = 1};
    double sum = 0, squares = 0, lag = 0, previous = 0.5;
    for (int i = 0; i < COUNT; i++) {
        double u = rng_uniform(key, (uint64_t)i / 10, (uint32_t)i % 10);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        lag += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    assert_true(fabs(sum / COUNT - 0.5) < 5 * sqrt(1.0 / 12 / COUNT));
    assert_true(fabs(squares / COUNT - 1.0 / 12) < 5 * sqrt(1.0 / 180 / COUNT));
    assert_true(fabs(lag / COUNT) < 5 * (1.0 / 12) / sqrt(COUNT));
}

static void test_normal(void **state) {
    (void)state;
    rng_key key = {.seed = 2};
    double sum = 0, squares = 0, fourth = 0, product = 0;
    for (int i = 0; i < COUNT / 2; i++) {
        double z[2];
        rng_normal(key, (uint64_t)i, 0, z);
        for (int j = 0; j < 2; j++) {
            assert_true(isfinite(z[j]));
            sum += z[j];
            squares += z[j] * z[j];
            fourth += z[j] * z[j] * z[j] * z[j];
        }
        product += z[0] * z[1];
    }
    assert_true(fabs(sum / COUNT) < 5 / sqrt(COUNT));
    assert_true(fabs(squares / COUNT - 1) < 5 * sqrt(2.0 / COUNT));
    assert_true(fabs(fourth / COUNT - 3) < 5 * sqrt(96.0 / COUNT));
    assert_true(fabs(product / (COUNT / 2)) < 5 / sqrt(COUNT / 2));
}

static void test_below_is_even(void **state) {
    (void)state;
    rng_key key = {.seed = 3};
    static const uint32_t sizes[] = {2, 3, 7, 10, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = sizes[s];
        int64_t seen[100] = {0};
        for (int i = 0; i < COUNT; i++) {
            uint32_t value = rng_below(key, (uint64_t)i, n, n);
            assert_true(value < n);
            seen[value]++;
        }
        double expected = (double)COUNT / n, chi2 = 0;
        for (uint32_t v = 0; v < n; v++)
            chi2 += ((double)seen[v] - expected) * ((double)seen[v] - expected) / expected;
        /* chi-squared with n-1 degrees: mean n-1, variance 2(n-1) */
        assert_true(chi2 < (n - 1) + 5 * sqrt(2.0 * (n - 1)) + 5);
    }
}

/* Large n, where a plain multiplication would be biased and half of the words are rejected. */
static void test_below_large(void **state) {
    (void)state;
    rng_key key = {.seed = 4, .epoch = 7};
    static const uint32_t sizes[] = {0x80000000u, 0x80000001u, 0xc0000000u, 0xffffffffu};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = sizes[s];
        double sum = 0, thirds[3] = {0};
        for (int i = 0; i < COUNT; i++) {
            uint32_t value = rng_below(key, (uint64_t)i, 0, n);
            assert_true(value < n);
            sum += value / (double)n;
            thirds[(uint64_t)value * 3 / n]++;
        }
        assert_true(fabs(sum / COUNT - 0.5) < 5 * sqrt(1.0 / 12 / COUNT));
        for (int t = 0; t < 3; t++)
            assert_true(fabs(thirds[t] / COUNT - 1.0 / 3) < 5 * sqrt(2.0 / 9 / COUNT));
    }
}

static void test_below_one(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(rng_below((rng_key){.seed = i}, i, i, 1), 0);
}

/* A number depends on its coordinates only, not on what was drawn before. */
static void test_order_does_not_matter(void **state) {
    (void)state;
    rng_key key = {.seed = 9, .purpose = RNG_SYNTH_WORLD};
    enum { N = 1000 };
    double forward[N];
    uint32_t below[N];
    for (int i = 0; i < N; i++) {
        forward[i] = rng_uniform(key, (uint64_t)i, 1);
        below[i] = rng_below(key, (uint64_t)i, 2, 0x80000001u);
    }
    for (int i = N - 1; i >= 0; i--) {
        uint32_t again = rng_below(key, (uint64_t)i, 2, 0x80000001u);
        double u = rng_uniform(key, (uint64_t)i, 1);
        assert_int_equal(again, below[i]);
        assert_memory_equal(&u, &forward[i], sizeof u);
    }
}

static void test_fill(void **state) {
    (void)state;
    rng_key some = {.seed = 0x123456789abcdefu, .purpose = RNG_DROPOUT, .epoch = 77};
    rng_block out[100];
    for (int count = 0; count <= 100; count += 7) {
        uint64_t event = (uint64_t)count << 30;
        uint32_t draw = 0xfffffff0u + (uint32_t)count; /* wraps within a call */
        rng_fill(some, event, draw, count, out);
        for (int i = 0; i < count; i++) {
            rng_block one = rng_bits(some, event, draw + (uint32_t)i);
            assert_memory_equal(&out[i], &one, sizeof one);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_every_coordinate_matters),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_below_is_even),
        cmocka_unit_test(test_below_large),
        cmocka_unit_test(test_below_one),
        cmocka_unit_test(test_order_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
