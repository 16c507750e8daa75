/* number.c - tables and the general case of number.h.
 *
 * printf cannot take a locale, so the thread switches to the C locale for the call. This takes a
 * few nanoseconds and no memory, and does not affect other threads.
 */
#define _GNU_SOURCE
#include "base/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const uint64_t number_five[28] = {
    0x8000000000000000u, 0xa000000000000000u, 0xc800000000000000u, 0xfa00000000000000u,
    0x9c40000000000000u, 0xc350000000000000u, 0xf424000000000000u, 0x9896800000000000u,
    0xbebc200000000000u, 0xee6b280000000000u, 0x9502f90000000000u, 0xba43b74000000000u,
    0xe8d4a51000000000u, 0x9184e72a00000000u, 0xb5e620f480000000u, 0xe35fa931a0000000u,
    0x8e1bc9bf04000000u, 0xb1a2bc2ec5000000u, 0xde0b6b3a76400000u, 0x8ac7230489e80000u,
    0xad78ebc5ac620000u, 0xd8d726b7177a8000u, 0x878678326eac9000u, 0xa968163f0a57b400u,
    0xd3c21bcecceda100u, 0x84595161401484a0u, 0xa56fa5b99019a5c8u, 0xcecb8f27f4200f3au};

const unsigned char number_five_bits[28] = {1,  3,  5,  7,  10, 12, 14, 17, 19, 21, 24, 26, 28, 31,
                                            33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61, 63};

const double number_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const uint64_t number_power[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static locale_t made;

static void make_locale(void) { made = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* glibc has this locale built in, so it cannot fail there. */
static locale_t c_locale(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_locale);
    return made;
}

double number_read(const char *text, char **end) { return strtod_l(text, end, c_locale()); }

locale_t number_locale_begin(void) { return uselocale(c_locale()); }

void number_locale_end(locale_t before) { (void)uselocale(before); }

int number_vprint(char *out, size_t size, const char *format, va_list values) {
    locale_t before = number_locale_begin();
    int length = vsnprintf(out, size, format, values);
    number_locale_end(before);
    return length;
}

int number_print(char *out, size_t size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = number_vprint(out, size, format, values);
    va_end(values);
    return length;
}
