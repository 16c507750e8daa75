/* test_data_sort.c - the sorter gives the stable order by time for any size of its runs. */
#include "base/rng.h"
#include "data/sort.h"
#include "testing.h"

static void test_runs(void **state) {
    fr_error err;
    rng_key key = {.seed = 3, .purpose = RNG_TEST};
    enum { COUNT = 20000 };
    static const int64_t rooms[] = {1, 7, 1000, 19999, 20000, 30000};
    for (int k = 0; k < 6; k++) {
        int64_t count = rooms[k] == 1 ? 50 : COUNT;
        sorter s;
        OK(sorter_open(&s, *state, rooms[k], &err));
        for (int64_t row = 0; row < count; row++) {
            sort_event e = {.time = rng_below(key, (uint64_t)row, 0, 500),
                            .row = row,
                            .source = (int32_t)row,
                            .destination = -(int32_t)row};
            OK(sorter_put(&s, e, &err));
        }
        OK(sorter_turn(&s, &err));
        sort_event before = {.time = -1}, e;
        bool got;
        for (int64_t place = 0; place < count; place++) {
            OK(sorter_next(&s, &e, &got, &err));
            assert_true(got);
            assert_true(e.time > before.time || (e.time == before.time && e.row > before.row));
            assert_true(e.time == rng_below(key, (uint64_t)e.row, 0, 500));
            assert_int_equal(e.source, e.row);
            assert_int_equal(e.destination, -e.row);
            before = e;
        }
        OK(sorter_next(&s, &e, &got, &err));
        assert_false(got);
        sorter_close(&s);
        assert_int_equal(directory_entries(*state), 0); /* the scratch file has no name */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
