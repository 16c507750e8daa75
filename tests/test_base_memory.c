/* test_base_memory.c - arenas and growing arrays: alignment, zeroes, pointers that stay, requests
 * that cannot be met. */
#include "base/memory.h"
#include "testing.h"

static void test_arena_blocks(void **state) {
    (void)state;
    fr_error err;
    arena a = {0};
    enum { BLOCKS = 500 };
    unsigned char *block[BLOCKS];
    size_t total = 0;
    for (int i = 0; i < BLOCKS; i++) { /* together several slabs */
        size_t size = (size_t)(i * 37 % 1000);
        OK(TAKE(&a, block[i], size, &err));
        assert_int_equal((uintptr_t)block[i] % 64, 0);
        for (size_t j = 0; j < size; j++) assert_int_equal(block[i][j], 0);
        memset(block[i], i & 255, size);
        total += size;
    }
    for (int i = 0; i < BLOCKS; i++) /* nothing moved, nothing overlaps */
        for (size_t j = 0; j < (size_t)(i * 37 % 1000); j++) assert_int_equal(block[i][j], i & 255);
    assert_true(a.used >= total);
    arena_free(&a);
    assert_null(a.slabs);
    assert_int_equal(a.used, 0);
}

static void test_arena_empty_request(void **state) {
    (void)state;
    fr_error err;
    arena a = {0};
    double *first, *second;
    OK(TAKE(&a, first, 0, &err));
    OK(TAKE(&a, second, 0, &err));
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    arena_free(&a);
}

static void test_arena_large_block(void **state) {
    (void)state;
    fr_error err;
    arena a = {0};
    unsigned char *small, *large;
    size_t size = (size_t)3 << 20;
    OK(TAKE(&a, small, 10, &err));
    OK(TAKE(&a, large, size, &err));
    assert_int_equal((uintptr_t)large % 64, 0);
    large[0] = large[size - 1] = 1;
    small[9] = 2;
    arena_free(&a);
}

static void test_arena_reset(void **state) {
    (void)state;
    fr_error err;
    arena a = {0};
    arena_reset(&a); /* harmless when empty */
    unsigned char *block, *before = NULL;
    enum { BLOCKS = 20, SIZE = 50000, STEP = 50048 /* of 64-byte places */ };
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            OK(TAKE(&a, block, SIZE, &err));
            for (int k = 0; k < SIZE; k += 97) assert_int_equal(block[k], 0); /* zeroed again */
            memset(block, 255, SIZE);
            /* from the second round on one slab is enough, so blocks follow each other */
            if (round && i) assert_ptr_equal(block, before + STEP);
            before = block;
        }
        arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    arena_free(&a);
    arena_free(&a);
}

static void test_arena_refuses(void **state) {
    (void)state;
    fr_error err;
    arena a = {0};
    void *out = NULL;
    FAILS(arena_take(&a, SIZE_MAX / 2, 3, &out, &err), FR_ENOMEM, "out of memory");
    FAILS(arena_take(&a, SIZE_MAX, 1, &out, &err), FR_ENOMEM, "out of memory");
    FAILS(arena_take(&a, SIZE_MAX / 4, 1, &out, &err), FR_ENOMEM, "out of memory");
    assert_int_equal(a.used, 0);
    OK(arena_take(&a, 8, 8, &out, &err)); /* a refused request does no harm */
    assert_non_null(out);
    arena_free(&a);
}

static void test_allocate(void **state) {
    (void)state;
    fr_error err;
    int64_t *numbers;
    OK(ALLOCATE(numbers, 1000, &err));
    for (int i = 0; i < 1000; i++) assert_int_equal(numbers[i], 0);
    free(numbers);
    OK(ALLOCATE(numbers, 0, &err));
    assert_non_null(numbers);
    free(numbers);
    FAILS(ALLOCATE(numbers, SIZE_MAX / 4, &err), FR_ENOMEM, "out of memory");
    assert_null(numbers);
}

typedef ARRAY(int64_t) id_list;

static fr_status push_ids(id_list *ids, int64_t count, fr_error *err) {
    for (int64_t i = 0; i < count; i++) ARRAY_PUSH(ids, i * i, err);
    return FR_OK;
}

static void test_array_grows(void **state) {
    (void)state;
    fr_error err;
    id_list ids = {0};
    OK(push_ids(&ids, 100000, &err));
    assert_int_equal(ids.count, 100000);
    for (int64_t i = 0; i < 100000; i++) assert_int_equal(ids.at[i], i * i);
    OK(ARRAY_RESERVE(&ids, 50000, &err));
    assert_true(ids.room >= 150000);
    const int64_t *before = ids.at;
    OK(push_ids(&ids, 50000, &err)); /* reserved: nothing moves */
    assert_ptr_equal(before, ids.at);
    free(ids.at);
}

static void test_array_refuses(void **state) {
    (void)state;
    fr_error err;
    id_list ids = {0};
    OK(push_ids(&ids, 3, &err));
    int64_t *before = ids.at;
    size_t room = ids.room;
    FAILS(ARRAY_RESERVE(&ids, SIZE_MAX / 16, &err), FR_ENOMEM, "out of memory");
    FAILS(ARRAY_RESERVE(&ids, SIZE_MAX / 8, &err), FR_ENOMEM, "out of memory");
    FAILS(ARRAY_RESERVE(&ids, SIZE_MAX, &err), FR_ENOMEM,
          "out of memory"); /* count + extra wraps */
    assert_ptr_equal(before, ids.at);
    assert_int_equal(ids.room, room);
    assert_int_equal(ids.at[2], 4);
    free(ids.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_blocks),      cmocka_unit_test(test_arena_empty_request),
        cmocka_unit_test(test_arena_large_block), cmocka_unit_test(test_arena_reset),
        cmocka_unit_test(test_arena_refuses),     cmocka_unit_test(test_allocate),
        cmocka_unit_test(test_array_grows),       cmocka_unit_test(test_array_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
