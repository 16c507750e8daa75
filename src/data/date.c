/* date.c - see date.h. */
#include "data/date.h"

#include "base/number.h"

/* Exactly `count` digits, `low` to `high`; the byte after them, or NULL. */
static const char *digits(const char *p, int count, int low, int high, int *out) {
    *out = 0;
    for (; count; count--, p++) {
        if (!number_digit(*p)) return NULL;
        *out = *out * 10 + (*p - '0');
    }
    return *out >= low && *out <= high ? p : NULL;
}

/* Days from 1970-01-01 to the first day of a year. */
static int64_t year_days(int64_t year) {
    int64_t before = year - 1;
    return before * 365 + before / 4 - before / 100 + before / 400 - 719162;
}

static int month_days(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

bool date_begins(const char *p) {
    for (int k = 0; k < 4; k++)
        if (!number_digit(p[k])) return false;
    return p[4] == '-' && number_digit(p[5]);
}

static const char *read_day(const char *p, int64_t *seconds) {
    int year, month, day;
    if (!(p = digits(p, 4, 1, 9999, &year)) || *p++ != '-') return NULL;
    if (!(p = digits(p, 2, 1, 12, &month)) || *p++ != '-') return NULL;
    if (!(p = digits(p, 2, 1, month_days(year, month), &day))) return NULL;
    int64_t days = year_days(year) + day - 1;
    for (int m = 1; m < month; m++) days += month_days(year, m);
    *seconds = days * 86400;
    return number_digit(*p) ? NULL : p;
}

/* "+01:00", "-05:30" or "Z"; may be missing. */
static const char *read_zone(const char *p, int64_t *seconds) {
    int hours, minutes;
    if (*p == 'Z' || *p == 'z') return p + 1;
    if (*p != '+' && *p != '-') return p;
    int sign = *p++ == '+' ? -1 : 1; /* ahead of UTC: UTC is earlier */
    if (!(p = digits(p, 2, 0, 23, &hours)) || *p++ != ':') return NULL;
    if (!(p = digits(p, 2, 0, 59, &minutes))) return NULL;
    *seconds += sign * (hours * 3600 + minutes * 60);
    return p;
}

/* seconds + fraction * 10^-places, rounded once if the sum fits in 64 bits. In this millennium it
 * always does. */
static double join(int64_t seconds, uint64_t fraction, int places) {
    int64_t scale = 1, sum;
    for (int k = 0; k < places; k++) scale *= 10;
    if (__builtin_mul_overflow(seconds, scale, &sum) ||
        __builtin_add_overflow(sum, (int64_t)fraction, &sum))
        return (double)seconds + (double)fraction / (double)scale;
    if (!sum) return 0;
    return sum < 0 ? -number_scale((uint64_t)-sum, places) : number_scale((uint64_t)sum, places);
}

const char *date_read(const char *p, bool blank, double *out) {
    int64_t seconds;
    uint64_t fraction = 0;
    int places = 0, hour, minute, second;
    if (!(p = read_day(p, &seconds))) return NULL;
    bool clock = *p == 'T' || *p == 't' || (blank && *p == ' ' && number_digit(p[1]));
    if (clock) {
        if (!(p = digits(p + 1, 2, 0, 23, &hour)) || *p++ != ':') return NULL;
        if (!(p = digits(p, 2, 0, 59, &minute)) || *p++ != ':') return NULL;
        if (!(p = digits(p, 2, 0, 59, &second))) return NULL;
        if (*p == '.') {
            for (p++; number_digit(*p) && places < 9; p++, places++)
                fraction = fraction * 10 + (uint64_t)(*p - '0');
            if (!places) return NULL;
        }
        if (number_digit(*p)) return NULL;
        seconds += hour * 3600 + minute * 60 + second;
        if (!(p = read_zone(p, &seconds))) return NULL;
    }
    *out = join(seconds, fraction, places);
    return p;
}
