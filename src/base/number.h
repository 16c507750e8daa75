/* number.h - numbers from text and to text, independent of the program's locale.
 *
 * If the host program has called setlocale, strtod may expect "0,5" and printf may write it.
 * Numbers in files, options, messages and JSON have a point, so they are read and written only by
 * these functions (JSON by base/json.h).
 *
 * A reader of events spends most of its time in the two parsers below, so they are inline and read
 * eight digits at once. They need no length: the text must end in a byte that is not part of a
 * number (such as a newline) and must be readable for 8 bytes beyond it. Results are correctly
 * rounded, the same double as strtod.
 *
 * Why this is exact: a decimal number is m * 10^-k with whole m. If m < 2^53 and k <= 22, m and
 * 10^k are doubles and one IEEE division rounds once. If m < 2^64 and k <= 27, then 5^k < 2^63, and
 * the quotient m / 5^k with a 64-bit result and its remainder as a sticky bit also rounds once.
 * Other cases (20 and more digits, large exponents) are rare and use strtod.
 */
#ifndef FR_BASE_NUMBER_H
#define FR_BASE_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* strtod in the C locale: slow but general. */
double number_read(const char *text, char **end);

/* snprintf of the C locale. */
int number_print(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int number_vprint(char *out, size_t size, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));

/* For libraries that use the locale: between begin and end the calling thread is in the C locale.
 *
 *     locale_t before = number_locale_begin();
 *     text = json_dumps(root, 0);
 *     number_locale_end(before);
 */
locale_t number_locale_begin(void);
void number_locale_end(locale_t before);

static inline bool number_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* The number of digits at the start of the next eight bytes; *value is their
 * value. The first byte is the lowest of the word (little-endian). Subtracting '0' and adding 0x76
 * sets the top bit of every byte above 9; borrows and carries only reach later bytes, which do
 * not matter. The digits are moved to the top of the word, so missing ones count as leading zeros,
 * and summed in pairs. No branch depends on the number of digits, so this is fast on mixed
 * lengths. */
static inline int number_run(const char *text, uint64_t *value) {
    uint64_t word;
    memcpy(&word, text, 8);
    word -= 0x3030303030303030u;
    uint64_t other = (word | (word + 0x7676767676767676u)) & 0x8080808080808080u;
    int digits = other ? __builtin_ctzll(other) >> 3 : 8;
    int half = 32 - 4 * digits; /* in two steps: a shift by 64 is not defined */
    word = word << half << half;
    word = word * 10 + (word >> 8); /* two-digit sums in the even bytes */
    word = (word & 0x00ff00ff00ff00ffu) * 100 + ((word >> 16) & 0x00ff00ff00ff00ffu);
    word = (word & 0x0000ffff0000ffffu) * 10000 + ((word >> 32) & 0x0000ffff0000ffffu);
    *value = word & 0xffffffffu;
    return digits;
}

extern const uint64_t number_power[9]; /* 10^k for a run of k digits */

/* A whole number from 0 to INT64_MAX, also written as 12.0; NULL for any other text. */
static inline const char *number_id(const char *p, int64_t *out) {
    uint64_t value;
    int digits = number_run(p, &value);
    if (digits == 0) return NULL;
    p += digits;
    if (digits == 8) {
        for (; number_digit(*p); p++) {
            uint64_t digit = (uint64_t)(*p - '0');
            if (value > (INT64_MAX - digit) / 10) return NULL;
            value = value * 10 + digit;
        }
    }
    if (*p == '.') {
        const char *zeros = ++p;
        while (*p == '0') p++;
        if (p == zeros || number_digit(*p)) return NULL;
    }
    *out = (int64_t)value;
    return p;
}

/* 5^k for k = 0..27 shifted up until its top bit is set, and the bits 5^k had before. */
extern const uint64_t number_five[28];
extern const unsigned char number_five_bits[28];
extern const double number_ten[23]; /* 10^k, exact */

/* m * 10^-k for m > 0 and 0 <= k <= 27, correctly rounded. */
static inline double number_scale(uint64_t m, int k) {
    if (m < 1ull << 53 && k <= 22) return (double)m / number_ten[k];
    /* Both sides have their top bit set, so the quotient has 63 or 64 bits. That is ten more than a
     * double, which leaves room for the remainder as a sticky bit. */
    int shift = __builtin_clzll(m);
    unsigned __int128 top = (unsigned __int128)(m << shift) << 63;
    uint64_t quotient = (uint64_t)(top / number_five[k]);
    bool rest = (uint64_t)top != quotient * number_five[k];
    uint64_t exponent = (uint64_t)(1023 + 1 - number_five_bits[k] - shift - k);
    union {
        uint64_t bits;
        double value;
    } power = {exponent << 52};
    return (double)(quotient | rest) * power.value;
}

/* A decimal number with optional sign, point and exponent; NULL for any other text
 * (no "nan", "inf" or hexadecimal). */
static inline const char *number_real(const char *p, double *out) {
    const char *start = p;
    bool negative = *p == '-';
    p += negative | (*p == '+');
    const char *first = p;
    uint64_t m = 0, run;
    for (; number_digit(*p); p++)
        m = m * 10 + (uint64_t)(*p - '0'); /* usually one digit, or always equally many */
    int64_t digits = p - first, k = 0;
    if (*p == '.') {
        const char *point = ++p;
        int n;
        do {
            n = number_run(p, &run);
            m = m * number_power[n] + run;
            p += n;
        } while (n == 8);
        k = p - point;
        digits += k;
    }
    if (digits == 0) return NULL;
    if (*p == 'e' || *p == 'E') {
        bool down = *++p == '-';
        p += down | (*p == '+');
        if (!number_digit(*p)) return NULL;
        int64_t exponent = 0;
        for (; number_digit(*p); p++)
            if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
        k += down ? exponent : -exponent;
    }
    if (digits > 19 || k < 0 || k > 27) { /* m may have wrapped, or the scale is out of reach */
        *out = number_read(start, NULL);
        return p;
    }
    double value = m ? number_scale(m, (int)k) : 0;
    static const double sign[2] = {1, -1}; /* signs are unpredictable: no branch */
    *out = value * sign[negative];
    return p;
}

#endif
