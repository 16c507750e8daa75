/* test_base_number.c - numbers from text: the same double as strtod for every notation. */
#include "base/number.h"
#include "base/rng.h"
#include "testing.h"

#include <math.h>

static const rng_key key = {.seed = 1, .purpose = RNG_TEST};

/* Parses `text` as a reader would see it: followed by a newline and more bytes. */
static const char *parse(const char *text, double *value, char buffer[128]) {
    (void)snprintf(buffer, 128, "%s\n12345678,", text);
    const char *end = number_real(buffer, value);
    return end && *end == '\n' ? end : NULL;
}

static void check(const char *text) {
    char buffer[128];
    double value = NAN, expected = strtod(text, NULL);
    if (!parse(text, &value, buffer) || memcmp(&value, &expected, sizeof value)) {
        print_error("# %s: %.17g, expected %.17g\n", text, value, expected);
        assert_true(false);
    }
}

static void test_known(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "-1",
        "+7",
        "1.",
        ".5",
        "-.5",
        "1e5",
        "1E-5",
        "1.5e+3",
        "12345678",
        "123456789",
        "1234567890123456789",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "0.1",
        "0.2",
        "0.30000000000000004",
        "1591234567.123456",
        "9007199254740993",
        "9007199254740992.5",
        "0.000001",
        "1e22",
        "1e23",
        "1e-22",
        "1e-27",
        "1e-28",
        "4.9e-324",
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "123456789012345678901234567890",
        "0.00000000000000000000000000000000123",
        "2.00000000000000011102230246251565404236316680908203125" /* a tie just above 2 */,
        "1.00000000000000011102230246251565404236316680908203124",
        "8.5",
        "0.1234567",
        "0.12345678",
        "0.123456789",
        "0.1234567890123456",
        "0.12345678901234567",
        "0.123456789012345678",
        "0.1234567890123456789",
        "0.12345678901234567890"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i]);
}

static void test_random(void **state) {
    (void)state;
    static const char *const forms[] = {"%.*f", "%.*g", "%.*e"};
    for (uint32_t i = 0; i < 200000; i++) {
        rng_block b = rng_bits(key, i, 0);
        double value;
        uint64_t bits = (uint64_t)b.word[0] << 32 | b.word[1];
        int scale = (int)(b.word[2] % 40) - 25;
        value = (double)(int64_t)bits * pow(10, scale - 5); /* any size */
        char text[400];
        (void)snprintf(text, sizeof text, forms[b.word[3] % 3], (int)(b.word[3] / 3 % 19), value);
        if (strlen(text) < 100) check(text);
    }
}

/* Halfway between two doubles and one digit off: where rounding twice goes wrong. */
static void test_near_ties(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        rng_block b = rng_bits(key, i, 1);
        uint64_t m = (1ull << 53) + (((uint64_t)b.word[0] << 32 | b.word[1]) >> 11);
        char text[64];
        (void)snprintf(text, sizeof text, "%llu",
                       (unsigned long long)(2 * m + 1 + b.word[2] % 3 - 1));
        check(text);
        size_t n = strlen(text), point = 1 + b.word[3] % n;
        memmove(text + point + 1, text + point, n - point + 1);
        text[point] = '.';
        check(text);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",    "-",     "+",   ".",    "-.",  "e5",   "1e",
                                        "1e+", "nan",   "inf", "-inf", "NaN", "0x10", "1x",
                                        "--1", "1.2.3", "1,5", "abc",  " 1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char buffer[128];
        double value;
        if (parse(texts[i], &value, buffer)) print_error("# accepted: %s\n", texts[i]);
        assert_null(parse(texts[i], &value, buffer));
    }
}

static void test_ids(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value; /* -1 = refused */
    } cases[] = {{"0", 0},
                 {"7", 7},
                 {"1234567", 1234567},
                 {"12345678", 12345678},
                 {"007", 7},
                 {"123456789", 123456789},
                 {"12.0", 12},
                 {"12.000", 12},
                 {"12.", -1},
                 {"12.5", -1},
                 {"12.05", -1},
                 {"-1", -1},
                 {"+1", -1},
                 {"", -1},
                 {"x", -1},
                 {"9223372036854775807", INT64_MAX},
                 {"9223372036854775808", -1},
                 {"18446744073709551616", -1},
                 {"99999999999999999999999", -1},
                 {"00000000000000000000000001", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buffer[128];
        int64_t id = -1;
        (void)snprintf(buffer, sizeof buffer, "%s,12345678", cases[i].text);
        const char *end = number_id(buffer, &id);
        if (!end || *end != ',') id = -1;
        if (id != cases[i].value) print_error("# %s\n", cases[i].text);
        assert_int_equal(id, cases[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_near_ties),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
