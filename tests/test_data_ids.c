/* test_data_ids.c - id and word tables: small and large ids, collisions, sorting. */
#include "base/rng.h"
#include "data/ids.h"
#include "testing.h"

static void test_numbers(void **state) {
    (void)state;
    fr_error err;
    rng_key key = {.seed = 5, .purpose = RNG_TEST};
    enum { COUNT = 50000 };
    static int64_t id[COUNT];
    static int32_t code[COUNT];
    id_table t = {0};
    for (int i = 0; i < COUNT; i++) {
        rng_block b = rng_bits(key, (uint64_t)i, 0);
        uint64_t wide = (uint64_t)b.word[0] << 32 | b.word[1];
        switch (b.word[2] % 3) { /* small, around the border of the plain array, anything */
        case 0: id[i] = b.word[3] % 3000; break;
        case 1: id[i] = ID_DIRECT - 1000 + b.word[3] % 2000; break;
        default: id[i] = (int64_t)(wide >> (1 + b.word[3] % 40)); break;
        }
        OK(id_code(&t, id[i], &code[i], &err));
        assert_int_equal(t.ids.at[code[i]], id[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        int32_t again;
        OK(id_code(&t, id[i], &again, &err));
        assert_int_equal(again, code[i]);
    }
    int32_t *rank;
    OK(id_table_sort(&t, &rank, &err));
    for (size_t k = 1; k < t.ids.count; k++) assert_true(t.ids.at[k - 1] < t.ids.at[k]);
    for (int i = 0; i < COUNT; i++) assert_int_equal(t.ids.at[rank[code[i]]], id[i]);
    free(rank);
    id_table_free(&t);
}

static void test_words(void **state) {
    (void)state;
    fr_error err;
    enum { COUNT = 20000 };
    word_table t = {0};
    static int64_t code[COUNT];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            char word[32];
            int64_t again;
            int n = snprintf(word, sizeof word, "w%d", i * 7919 % COUNT);
            OK(word_code(&t, word, (size_t)n, round ? &again : &code[i], &err));
            if (round) assert_int_equal(again, code[i]);
            assert_string_equal(word_text(&t, code[i]), word);
        }
    }
    assert_int_equal(t.start.count, COUNT);
    int64_t *order;
    OK(word_table_sort(&t, &order, &err));
    for (int k = 1; k < COUNT; k++)
        assert_true(strcmp(word_text(&t, order[k - 1]), word_text(&t, order[k])) < 0);
    int64_t prefix; /* a word that begins another is another word */
    OK(word_code(&t, "w1", 1, &prefix, &err));
    assert_int_equal(prefix, COUNT);
    free(order);
    word_table_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
