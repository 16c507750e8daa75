/* number.h - numbers from text, exactly and fast.
 *
 * A reader spends most of its time here, so both parsers are inline and look at eight digits at
 * once. They need no length: the text must end in a byte that is no part of a number (a newline
 * will do) and be readable for 8 bytes beyond it. Results are correctly rounded: the same double as
 * strtod.
 *
 * Why this is exact: a decimal number is m * 10^-k with whole m. If m < 2^53 and k <= 22, m and
 * 10^k are doubles and one IEEE division rounds once. If m < 2^64 and k <= 27, then 5^k < 2^63, and
 * the quotient m / 5^k with a 64-bit result and its remainder as a sticky bit rounds once, too. All
 * else (20 and more digits, large exponents) is rare and goes to strtod.
 */
#ifndef FR_DATA_NUMBER_H
#define FR_DATA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The slow, general way: correctly rounded in the C locale. The text is known to be a number. */
double number_general(const char *text);

/* True if the eight bytes are all digits; then *value is their number. The first byte is the lowest
 * byte of the word (little-endian), hence the pairwise sums from the bottom up. */
static inline bool number_eight(const char *text, uint64_t *value) {
    uint64_t word;
    memcpy(&word, text, 8);
    uint64_t low = word - 0x3030303030303030u;
    /* a byte is a digit iff byte-'0' and byte-'0'+6 both keep the high nibble empty */
    if ((low | (low + 0x0606060606060606u)) & 0xf0f0f0f0f0f0f0f0u) return false;
    low = low * 10 + (low >> 8); /* 2-digit sums in even bytes */
    low = (low & 0x00ff00ff00ff00ffu) * 100 + ((low >> 16) & 0x00ff00ff00ff00ffu);
    low = (low & 0x0000ffff0000ffffu) * 10000 + ((low >> 32) & 0x0000ffff0000ffffu);
    *value = low & 0xffffffffu;
    return true;
}

static inline bool number_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Digits from `p` on, appended to *value; returns the first byte that is none. */
static inline const char *number_digits(const char *p, uint64_t *value) {
    uint64_t v = *value, eight;
    for (int i = 0; i < 2 && number_eight(p, &eight); i++, p += 8) v = v * 100000000u + eight;
    for (; number_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
    *value = v;
    return p;
}

/* A whole number from 0 to INT64_MAX, also written as 12.0; NULL if the text is anything else. */
static inline const char *number_id(const char *p, int64_t *out) {
    const char *start = p;
    uint64_t value = 0;
    while (number_digit(*p) && p - start < 20) value = value * 10 + (uint64_t)(*p++ - '0');
    if (p == start || value > INT64_MAX || p - start >= 20) return NULL;
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
    /* Both sides have their top bit set, so the quotient has 63 or 64 bits: ten more than a double,
     * which leaves room for the remainder as a sticky bit. */
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

/* A decimal number with optional sign, point and exponent; NULL if the text is anything else
 * (no "nan", "inf" or hexadecimal). */
static inline const char *number_real(const char *p, double *out) {
    const char *start = p;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char *first = p;
    uint64_t m = 0;
    for (; number_digit(*p); p++) m = m * 10 + (uint64_t)(*p - '0'); /* mostly one or two */
    int64_t digits = p - first, k = 0;
    if (*p == '.') {
        const char *point = ++p;
        p = number_digits(p, &m);
        k = p - point;
        digits += k;
    }
    if (digits == 0) return NULL;
    if (*p == 'e' || *p == 'E') {
        const char *e = p + 1;
        bool down = *e == '-';
        e += *e == '-' || *e == '+';
        if (!number_digit(*e)) return NULL;
        int64_t exponent = 0;
        for (; number_digit(*e); e++)
            if (exponent < 100000) exponent = exponent * 10 + (*e - '0');
        p = e;
        k += down ? exponent : -exponent;
    }
    double value;
    if (digits > 19) /* m may have wrapped; leading zeros end up here, too, and lose only time */
        return *out = number_general(start), p;
    if (m == 0)
        value = 0;
    else if (k >= 0 && k <= 27)
        value = number_scale(m, (int)k);
    else
        return *out = number_general(start), p;
    *out = negative ? -value : value;
    return p;
}

#endif
