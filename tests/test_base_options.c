/* test_base_options.c - option tables: every type and its limits, spelling help, text that comes
 * back as the same value, config files. */
#include "base/options.h"
#include "base/rng.h"
#include "testing.h"

#include <math.h>

typedef struct settings {
    int64_t window;
    double share;
    char *catalog;
    int order;
    bool force;
    int64_t diagnostic;
    double rate;
} settings;

#define AT(field) offsetof(settings, field)
static const fr_option table[] = {
    {"diagnostic-window", FR_OPTION_INT, "131072", "N", 0, 1e15, AT(diagnostic), "diagnostic"},
    {"window", FR_OPTION_INT, "32768", "N", 0, 1e15, AT(window), "most recent events"},
    {"train-share", FR_OPTION_REAL, "0.85", "X", 0, 1, AT(share), "first part"},
    {"learning-rate", FR_OPTION_REAL, "0.001", "X", -1e308, 1e308, AT(rate), "step"},
    {"catalog", FR_OPTION_TEXT, "fixed", "FILE", 0, 0, AT(catalog), "candidates"},
    {"order", FR_OPTION_CHOICE, "stream", "stream|strict|strictest", 0, 0, AT(order), "before"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, AT(force), "replace"},
    {0},
};

static settings fresh(void) {
    fr_error err;
    settings s;
    memset(&s, 0xee, sizeof s); /* defaults do not depend on what was there */
    OK(fr_options_defaults(table, &s, &err));
    return s;
}

static void test_defaults(void **state) {
    (void)state;
    settings s = fresh();
    assert_int_equal(s.window, 32768);
    assert_true(s.share == 0.85);
    assert_string_equal(s.catalog, "fixed");
    assert_int_equal(s.order, 0);
    assert_false(s.force);
    fr_options_free(table, &s);
    assert_null(s.catalog);
    fr_options_free(table, &s);
}

static void test_good_values(void **state) {
    (void)state;
    fr_error err;
    settings s = fresh();
    OK(fr_options_set(table, &s, "window", "0", &err));
    assert_int_equal(s.window, 0);
    OK(fr_options_set(table, &s, "window", "1000000000000000", &err));
    assert_int_equal(s.window, 1000000000000000);
    OK(fr_options_set(table, &s, "train-share", "1", &err));
    assert_true(s.share == 1);
    OK(fr_options_set(table, &s, "train_share", "2.5e-1", &err)); /* '_' is '-' */
    assert_true(s.share == 0.25);
    OK(fr_options_set(table, &s, "catalog", "a file.txt", &err));
    assert_string_equal(s.catalog, "a file.txt");
    OK(fr_options_set(table, &s, "catalog", "", &err));
    assert_null(s.catalog);
    OK(fr_options_set(table, &s, "order", "strictest", &err));
    assert_int_equal(s.order, 2);
    OK(fr_options_set(table, &s, "order", "strict", &err));
    assert_int_equal(s.order, 1);
    static const char *const yes[] = {"yes", "true", "1"}, *const no[] = {"no", "false", "0"};
    for (int i = 0; i < 3; i++) {
        OK(fr_options_set(table, &s, "force", yes[i], &err));
        assert_true(s.force);
        OK(fr_options_set(table, &s, "force", no[i], &err));
        assert_false(s.force);
    }
    fr_options_free(table, &s);
}

static void test_bad_values_change_nothing(void **state) {
    (void)state;
    fr_error err;
    settings s = fresh(), before = s;
    static const struct {
        const char *key, *value, *expected;
    } cases[] = {
        {"window", "-1", "option window: found \"-1\", expected a whole number from 0 to 1000000"},
        {"window", "1000000000000001", "expected a whole number"},
        {"window", "99999999999999999999", "expected a whole number"},
        {"window", "12x", "found \"12x\""},
        {"window", "1.5", "found \"1.5\""},
        {"window", "", "found \"\""},
        {"window", " ", "found \" \""},
        {"train-share", "1.0001", "option train-share: found \"1.0001\", expected a number from 0"},
        {"train-share", "-0.1", "expected a number from 0 to 1"},
        {"train-share", "nan", "expected a number from 0 to 1"},
        {"train-share", "inf", "expected a number from 0 to 1"},
        {"train-share", "1e999", "expected a number from 0 to 1"},
        {"train-share", "0.5.5", "found \"0.5.5\""},
        {"train-share", "", "found \"\""},
        {"order", "str", "option order: found \"str\", expected one of stream|strict|strictest"},
        {"order", "stream|strict", "expected one of"},
        {"order", "", "expected one of"},
        {"force", "maybe", "option force: found \"maybe\", expected yes or no"},
        {"force", "", "expected yes or no"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FAILS(fr_options_set(table, &s, cases[i].key, cases[i].value, &err), FR_EUSAGE,
              cases[i].expected);
        assert_memory_equal(&s, &before, sizeof s);
    }
    assert_int_equal(fr_options_set(table, &s, "window", "x", NULL), FR_EUSAGE);
    fr_options_free(table, &s);
}

static void test_unknown_keys(void **state) {
    (void)state;
    fr_error err;
    settings s = fresh(), before = s;
    FAILS(fr_options_set(table, &s, "windwo", "1", &err), FR_EUSAGE,
          "unknown option windwo, did you mean window?");
    FAILS(fr_options_set(table, &s, "Train-Share", "1", &err), FR_EUSAGE,
          "did you mean train-share?");
    FAILS(fr_options_set(table, &s, "zzzzzzzz", "1", &err), FR_EUSAGE, "unknown option zzzzzzzz");
    assert_null(strstr(err.message, "did you mean"));
    assert_memory_equal(&s, &before, sizeof s);
    fr_options_free(table, &s);

    assert_null(fr_options_find(table, "windo"));
    assert_string_equal(fr_options_find(table, "diagnostic_window")->key, "diagnostic-window");
    assert_null(fr_options_nearest(table, "q"));
    assert_null(fr_options_nearest(table, ""));
    assert_string_equal(fr_options_nearest(table, "trainshare"), "train-share");
}

/* The beginning of a key counts as close, however long the rest of the key is. */
static void test_nearest_by_beginning(void **state) {
    (void)state;
    assert_string_equal(fr_options_nearest(table, "train"), "train-share");
    assert_string_equal(fr_options_nearest(table, "diag"), "diagnostic-window");
    assert_string_equal(fr_options_nearest(table, "learn"), "learning-rate");
    char longest[300];
    memset(longest, 'w', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_null(fr_options_nearest(table, longest));
}

static const char *word_at(const void *list, int index) {
    return ((const char *const *)list)[index];
}

/* A number at the end may be the user's choice. */
static void test_nearest_of_any_list(void **state) {
    (void)state;
    static const char *const words[] = {"hits@k", "tgb-hist", "mrr-new", NULL};
    assert_string_equal(fr_text_nearest("hots@7", word_at, words), "hits@k");
    assert_string_equal(fr_text_nearest("tgb-hsit-100", word_at, words), "tgb-hist");
    assert_string_equal(fr_text_nearest("mrr_nwe", word_at, words), "mrr-new");
    assert_null(fr_text_nearest("xyzzy-3", word_at, words));
    assert_null(fr_text_nearest("-3", word_at, words));
    assert_null(fr_text_nearest(NULL, word_at, words));
    assert_null(fr_text_nearest("hits", NULL, words));
    assert_null(fr_text_nearest("hits", word_at, words + 3));
}

static void test_text_round_trip(void **state) {
    (void)state;
    fr_error err;
    settings s = fresh();
    char text[64], again[64];
    for (const fr_option *o = table; o->key; o++) {
        fr_options_text(o, &s, text, sizeof text);
        assert_string_equal(text, o->standard);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        double rate;
        rng_block b = rng_bits((rng_key){.seed = 6}, i, 0);
        memcpy(&rate, b.word, sizeof rate);
        if (!(fabs(rate) <= 1e308)) continue;
        s.rate = rate;
        fr_options_text(fr_options_find(table, "learning-rate"), &s, text, sizeof text);
        s.rate = 0;
        OK(fr_options_set(table, &s, "learning-rate", text, &err));
        assert_memory_equal(&s.rate, &rate, sizeof rate);
    }
    s.order = 2;
    fr_options_text(fr_options_find(table, "order"), &s, text, sizeof text);
    assert_string_equal(text, "strictest");
    s.rate = 0.1;
    fr_options_text(fr_options_find(table, "learning-rate"), &s, again, sizeof again);
    assert_string_equal(again, "0.1"); /* the shortest that comes back */
    fr_options_text(fr_options_find(table, "catalog"), &s, text, 3);
    assert_string_equal(text, "fi");
    fr_options_free(table, &s);
    fr_options_text(fr_options_find(table, "catalog"), &s, text, sizeof text);
    assert_string_equal(text, "");
}

static void test_to_json(void **state) {
    (void)state;
    fr_error err;
    settings s = fresh();
    json_t *object = json_object();
    OK(options_to_json(table, &s, object, &err));
    assert_int_equal(json_object_size(object), 7);
    assert_int_equal(json_integer_value(json_object_get(object, "window")), 32768);
    assert_true(json_real_value(json_object_get(object, "train_share")) == 0.85);
    assert_string_equal(json_string_value(json_object_get(object, "catalog")), "fixed");
    assert_string_equal(json_string_value(json_object_get(object, "order")), "stream");
    assert_true(json_is_false(json_object_get(object, "force")));
    json_decref(object);
    fr_options_free(table, &s);
}

/* ---- structs that begin with their size ---- */

/* The same struct in three releases. */
typedef struct first {
    size_t size;
    int64_t window;
    char *catalog;
} first;
typedef struct second {
    size_t size;
    int64_t window;
    char *catalog;
    double share;
    char *part;
} second;
typedef struct third {
    size_t size;
    int64_t window;
    char *catalog;
    double share;
    char *part;
    int64_t more;
} third;

/* As in the second release, which differs from the first after `catalog`. */
static const fr_option sized[] = {
    {"window", FR_OPTION_INT, "32768", "N", 1, 1e15, offsetof(second, window), "events"},
    {"catalog", FR_OPTION_TEXT, "fixed", "FILE", 0, 0, offsetof(second, catalog), "candidates"},
    {"train-share", FR_OPTION_REAL, "0.85", "X", 0.1, 1, offsetof(second, share), "first part"},
    {"part", FR_OPTION_TEXT, "test", "NAME", 0, 0, offsetof(second, part), "what is ranked"},
    {.offset = offsetof(second, share), .help = "settings"}};

/* On the heap, so that a sanitizer sees every access beyond the end. */
static void test_a_program_of_an_earlier_release(void **state) {
    (void)state;
    fr_error err;
    char text[64];
    second own;
    first *old = malloc(sizeof *old);
    memset(old, 0xee, sizeof *old);
    OK(fr_options_defaults(sized, old, &err));
    assert_int_equal(old->size, sizeof *old);
    assert_int_equal(old->window, 32768);
    OK(fr_options_set(sized, old, "window", "5", &err));
    FAILS(fr_options_set(sized, old, "train-share", "1", &err), FR_EUSAGE,
          "option train-share: not in this settings, which has 24 bytes");
    FAILS(fr_options_set(sized, old, "part", "all", &err), FR_EUSAGE, "option part: not in");
    fr_options_text(fr_options_find(sized, "train-share"), old, text, sizeof text);
    assert_string_equal(text, "0.85");
    fr_options_text(fr_options_find(sized, "part"), old, text, sizeof text);
    assert_string_equal(text, "test");
    OK(options_settle(sized, old, &own, sizeof own, &err));
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.window, 5);
    assert_true(own.share == 0.85);
    assert_null(own.part);
    old->window = 0;
    FAILS(options_settle(sized, old, &own, sizeof own, &err), FR_EUSAGE, "option window: found");
    fr_options_free(sized, old);
    OK(options_settle(sized, old, &own, sizeof own, &err)); /* nothing is set */
    assert_int_equal(own.window, 32768);
    memset(old, 0, sizeof *old);
    OK(options_settle(sized, old, &own, sizeof own, &err));
    assert_true(own.window == 32768 && own.share == 0.85 && own.size == sizeof own);
    free(old);
}

static void test_a_program_of_a_later_release(void **state) {
    (void)state;
    fr_error err;
    second own;
    third *later = calloc(1, sizeof *later);
    OK(fr_options_defaults(sized, later, &err));
    assert_int_equal(later->size, sizeof *later);
    assert_int_equal(later->more, 0);
    later->window = 7;
    OK(options_settle(sized, later, &own, sizeof own, &err));
    assert_true(own.window == 7 && own.size == sizeof own);
    later->more = INT64_MIN; /* its last byte alone */
    FAILS(options_settle(sized, later, &own, sizeof own, &err), FR_EUSAGE,
          "settings: a field after its first 40 bytes is set, which this version");
    fr_options_free(sized, later);
    free(later);
}

static void test_sizes_that_are_none(void **state) {
    (void)state;
    fr_error err;
    second own, s = {.window = 5, .share = 0.5};
    FAILS(options_settle(sized, &s, &own, sizeof own, &err), FR_EUSAGE,
          "settings: a field is set, but size is 0, expected its sizeof");
    const size_t sizes[] = {1, 23, (1 << 16) + 1, SIZE_MAX};
    for (size_t i = 0; i < 4; i++) {
        s.size = sizes[i];
        FAILS(options_settle(sized, &s, &own, sizeof own, &err), FR_EUSAGE, "settings: found size");
        FAILS(fr_options_fill(sized, &s, sizes[i], &err), FR_EUSAGE,
              "expected its sizeof, at least 24");
    }
    FAILS(fr_options_fill(sized, &s, 0, &err), FR_EUSAGE, "settings: found size 0");
    assert_int_equal(s.window, 5);
}

/* ---- config files ---- */

static fr_status set_option(void *user, const char *key, const char *value, fr_error *err) {
    return fr_options_set(table, user, key, value, err);
}

static void test_config(void **state) {
    fr_error err;
    settings s = fresh();
    const char *path = in_directory(*state, "run.json");
    put_text(path,
             "{\"window\": 1000, \"train_share\": 0.1, \"order\": \"strict\", \"force\": true,\n"
             " \"catalog\": \"k\\u00e4se\", \"learning-rate\": 2, \"diagnostic-window\": 7.0}");
    OK(fr_config_read(path, set_option, &s, &err));
    assert_int_equal(s.window, 1000);
    assert_true(s.share == 0.1);
    assert_int_equal(s.order, 1);
    assert_true(s.force);
    assert_string_equal(s.catalog, "k\xc3\xa4se");
    assert_true(s.rate == 2);
    assert_int_equal(s.diagnostic, 7);
    fr_options_free(table, &s);
}

static void test_bad_configs(void **state) {
    fr_error err;
    settings s = fresh();
    const char *path = in_directory(*state, "run.json");
    static const struct {
        const char *text;
        fr_status code;
        const char *expected;
    } cases[] = {
        {"{\"window\": 5,\n \"order\" 1}", FR_EINPUT, "run.json:2:"},
        {"", FR_EINPUT, "run.json:1:0: not valid JSON"},
        {"[1]", FR_EUSAGE, "run.json: found no JSON object"},
        {"{\"windwo\": 5}", FR_EUSAGE, "run.json: unknown option windwo, did you mean window?"},
        {"{\"window\": -5}", FR_EUSAGE, "run.json: option window: found \"-5\""},
        {"{\"window\": 1e300}", FR_EUSAGE, "run.json: option window: found"},
        {"{\"window\": null}", FR_EUSAGE, "run.json: option window: expected a number"},
        {"{\"window\": [1]}", FR_EUSAGE, "run.json: option window: expected a number"},
        {"{\"window\": {}}", FR_EUSAGE, "run.json: option window: expected a number"},
        {"{\"window\": true}", FR_EUSAGE, "run.json: option window: found \"yes\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(path, cases[i].text);
        FAILS(fr_config_read(path, set_option, &s, &err), cases[i].code, cases[i].expected);
        assert_int_equal(fr_config_read(path, set_option, &s, NULL), cases[i].code);
    }
    FAILS(fr_config_read(in_directory(*state, "none"), set_option, &s, &err), FR_EFILE,
          "none: cannot be read");
    fr_options_free(table, &s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_good_values),
        cmocka_unit_test(test_bad_values_change_nothing),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_nearest_by_beginning),
        cmocka_unit_test(test_nearest_of_any_list),
        cmocka_unit_test(test_text_round_trip),
        cmocka_unit_test(test_to_json),
        cmocka_unit_test(test_a_program_of_an_earlier_release),
        cmocka_unit_test(test_a_program_of_a_later_release),
        cmocka_unit_test(test_sizes_that_are_none),
        WITH_DIRECTORY(test_config),
        WITH_DIRECTORY(test_bad_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
