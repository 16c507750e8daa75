/* test_base_json.c - JSON files: errors with their place, numbers that come back with all bits. */
#include "base/json.h"
#include "base/rng.h"
#include "testing.h"

#include <float.h>
#include <math.h>

static void test_errors_name_the_place(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "bad.json");
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "bad.json:1:0: not valid JSON: "},
        {"{\n  \"a\": 1,\n  \"b\": x\n}", "bad.json:3:8: not valid JSON: "},
        {"{\"a\": 1", "bad.json:1:7: not valid JSON: "},
        {"[1, 2] 3", "bad.json:1:8: not valid JSON: "},
        {"{\"a\": 1, \"a\": 2}", "duplicate object key"},
        {"{\"a\": \"\xff\"}", "unable to decode"},
        {"[1e999]", "real number overflow"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = NULL;
        put_text(path, cases[i].text);
        FAILS(json_read(path, &root, &err), FR_EINPUT, cases[i].expected);
        assert_null(root);
    }
    json_t *root = NULL;
    FAILS(json_read(in_directory(*state, "none"), &root, &err), FR_EFILE, "none: cannot be read");
}

static void test_doubles_round_trip(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "numbers.json");
    enum { COUNT = 5000 };
    static double numbers[COUNT] = {0.0,      -0.0,    1.0,    0.1,        1.0 / 3,
                                    DBL_MAX,  DBL_MIN, 5e-324, -DBL_MAX,   DBL_EPSILON,
                                    1e16 + 2, 1e22,    1234.5, 0x1p53 + 2, 1.0 + DBL_EPSILON};
    for (int i = 15; i < COUNT; i++) { /* any finite bit pattern */
        do {
            static uint32_t draw;
            rng_block b = rng_bits((rng_key){.seed = 8}, (uint64_t)i, draw++);
            memcpy(&numbers[i], b.word, sizeof numbers[i]);
        } while (!isfinite(numbers[i]));
    }
    json_t *list = json_array();
    for (int i = 0; i < COUNT; i++) (void)json_array_append_new(list, json_real(numbers[i]));
    OK(json_write(path, list, &err));
    OK(json_read(path, &list, &err));
    assert_int_equal(json_array_size(list), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(json_is_real(json_array_get(list, i)));
        double back = json_real_value(json_array_get(list, i));
        assert_memory_equal(&back, &numbers[i], sizeof back);
    }
    json_decref(list);
}

static void test_write(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "file.json");
    OK(json_write(path, json_pack("{s:i, s:s}", "rows", 3, "name", "x"), &err));
    static const char expected[] = "{\n  \"rows\": 3,\n  \"name\": \"x\"\n}\n";
    assert_file(path, expected, sizeof expected - 1);
    FAILS(json_write(path, NULL, &err), FR_ENOMEM, "out of memory");
    FAILS(json_write(in_directory(*state, "no/file"), json_object(), &err), FR_EFILE,
          "no/file: cannot be written");
    assert_file(path, expected, sizeof expected - 1);
    assert_int_equal(directory_entries(*state), 1);
}

static int countdown; /* the allocation of jansson that fails, from 1; 0 = none */

static void *take(size_t size) { return countdown && --countdown == 0 ? NULL : malloc(size); }

/* If memory runs out, jansson leaves out characters and continues: its reader does this, and its
 * writer with keys. */
static void test_out_of_memory(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "long.json");
    put_text(path, "{\"a\": \"0123456789abcde\\n\\n\\n\\n\\n\\n\\n\\n\\n\", \"b\": "
                   "12345678901234567.125}");
    json_t *whole, *found;
    OK(json_read(path, &whole, &err));
    bool done = false;
    for (int n = 1; !done; n++) {
        countdown = n;
        fr_status status = json_read(path, &found, &err);
        done = countdown > 0; /* fewer allocations than n */
        countdown = 0;
        assert_int_equal(status, done ? FR_OK : FR_ENOMEM);
        if (done) assert_true(json_equal(found, whole));
        json_decref(found);
        assert_true(n < 1000);
    }
    for (int i = 0; i < 20; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "key %.*s", i, "abcdefghijklmnopqrst");
        assert_int_equal(json_object_set_new(whole, key, json_integer(i)), 0);
    }
    char *text = json_print(whole, 0), *some = NULL;
    for (int n = 1; !some; n++) {
        countdown = n;
        some = json_print(whole, 0);
        bool failed = !countdown;
        countdown = 0;
        assert_int_equal(failed, !some);
        assert_true(n < 1000);
    }
    assert_string_equal(some, text);
    free(some);
    free(text);
    json_decref(whole);
}

/* If something cannot be added, the result does not look complete. */
static void test_put(void **state) {
    fr_error err;
    char *path = in_directory(*state, "put.json");
    json_t *object = json_object(), *list = json_array();
    json_push(&list, json_integer(1));
    json_put(&object, "list", list);
    assert_int_equal(json_array_size(json_object_get(object, "list")), 1);
    json_put(&object, "lost", NULL); /* as out of memory */
    assert_null(object);
    json_put(&object, "later", json_integer(2));
    assert_null(object);
    FAILS(json_write(path, object, &err), FR_ENOMEM, "out of memory");
    list = json_array();
    json_push(&list, NULL);
    json_push(&list, json_integer(3));
    assert_null(list);
    bool done = false;
    for (int n = 1; !done; n++) { /* out of memory must not lose bytes */
        countdown = n;
        json_t *text = json_text("caf\xc3\xa9");
        done = countdown > 0;
        assert_true(done == (text != NULL));
        if (text) assert_string_equal(json_string_value(text), "caf\xc3\xa9");
        json_decref(text);
    }
    countdown = 0;
}

int main(void) {
    json_set_alloc_funcs(take, free); /* before anything is read */
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_out_of_memory),
        WITH_DIRECTORY(test_errors_name_the_place),
        WITH_DIRECTORY(test_doubles_round_trip),
        WITH_DIRECTORY(test_write),
        WITH_DIRECTORY(test_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
