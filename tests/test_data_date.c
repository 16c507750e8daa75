/* test_data_date.c - every day of the calendar and random moments, compared with the C library. */
#define _DEFAULT_SOURCE
#include "testing.h"

#include "base/rng.h"
#include "data/date.h"

#include <time.h>

/* The date in the text is `seconds`, and the text ends there. */
static void check(const char *text, double seconds) {
    double found = 0;
    char padded[64] = {0};
    (void)snprintf(padded, sizeof padded, "%s", text);
    const char *end = date_read(padded, true, &found);
    assert_non_null(end);
    assert_int_equal(*end, 0);
    assert_true(found == seconds);
}

static void test_every_day(void **state) {
    (void)state;
    for (int64_t day = -719162; day <= 2932896; day++) { /* 0001-01-01 to 9999-12-31 */
        time_t seconds = (time_t)day * 86400;
        struct tm t;
        char text[64];
        assert_non_null(gmtime_r(&seconds, &t));
        (void)snprintf(text, sizeof text, "%04d-%02d-%02d", t.tm_year + 1900, t.tm_mon + 1,
                       t.tm_mday);
        check(text, (double)seconds);
    }
}

/* Random moments with fractions and zones; the fraction is rounded as by strtod. */
static void test_random_moments(void **state) {
    (void)state;
    rng_key key = {.seed = 1, .purpose = RNG_TEST};
    for (uint32_t k = 0; k < 200000; k++) {
        rng_block bits = rng_bits(key, k, 0);
        uint64_t a = (uint64_t)bits.word[0] << 32 | bits.word[1];
        uint64_t b = (uint64_t)bits.word[2] << 32 | bits.word[3];
        time_t seconds = (time_t)(a % 8000000000u) - 2000000000;
        int places = 1 + (int)(b % 9), zone = (int)(b >> 8 & 2047) - 1024; /* minutes */
        uint64_t scale = 1;
        for (int p = 0; p < places; p++) scale *= 10;
        uint64_t fraction = (b >> 20) % scale;
        time_t local = seconds + zone * 60;
        struct tm t;
        char text[64], number[64];
        assert_non_null(gmtime_r(&local, &t));
        int sign = zone < 0 ? -zone : zone;
        (void)snprintf(text, sizeof text, "%04d-%02d-%02d%c%02d:%02d:%02d.%0*llu%c%02d:%02d",
                       t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, k % 2 ? 'T' : ' ', t.tm_hour,
                       t.tm_min, t.tm_sec, places, (unsigned long long)fraction,
                       zone < 0 ? '-' : '+', sign / 60, sign % 60);
        bool down = seconds < 0 && fraction; /* -1 and .25 are -0.75 */
        (void)snprintf(number, sizeof number, "%s%lld.%0*llu", seconds < 0 ? "-" : "",
                       (long long)(seconds < 0 ? -seconds - down : seconds), places,
                       (unsigned long long)(down ? scale - fraction : fraction));
        check(text, strtod(number, NULL));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_random_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
