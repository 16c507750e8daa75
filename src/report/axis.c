/* axis.c - see axis.h. */
#include "report/axis.h"

#include "base/number.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MINUS "\u2212"

axis_range axis_empty(bool log) { return (axis_range){log, INFINITY, -INFINITY}; }

static bool has_place(const axis_range *r, double value) {
    return isfinite(value) && (!r->log || value > 0);
}

void axis_include(axis_range *r, double value) {
    if (!has_place(r, value)) return;
    if (value < r->low) r->low = value;
    if (value > r->high) r->high = value;
}

void axis_settle(axis_range *r, double pad) {
    if (r->low > r->high) {
        r->low = r->log ? 1 : 0;
        r->high = r->log ? 10 : 1;
    } else if (r->low == r->high) {
        double room = r->low == 0 ? 1 : fabs(r->low) / 2;
        r->low = r->log ? r->low / 2 : r->low - room;
        r->high = r->log ? r->high * 2 : r->high + room;
    } else if (r->log) {
        double factor = pow(r->high / r->low, pad);
        r->low /= factor;
        r->high *= factor;
    } else {
        double room = (r->high - r->low) * pad;
        r->low -= room;
        r->high += room;
    }
}

double axis_place(const axis_range *r, double value) {
    if (!has_place(r, value)) return NAN;
    if (r->log) return log(value / r->low) / log(r->high / r->low);
    return (value - r->low) / (r->high - r->low);
}

void axis_label(double value, int decimals, char out[AXIS_LABEL]) {
    char digits[AXIS_LABEL];
    (void)number_print(digits, sizeof digits, "%.*f", decimals, fabs(value));
    bool zero = !strpbrk(digits, "123456789");
    (void)snprintf(out, AXIS_LABEL, "%s%.24s", value < 0 && !zero ? MINUS : "", digits);
}

/* ---- ticks ---- */

/* True if a value is in the range, or outside it only by rounding. */
static bool inside(const axis_range *r, double value) {
    double place = axis_place(r, value);
    return place >= -1e-9 && place <= 1 + 1e-9;
}

/* The smallest of 1, 2, 5 times a power of ten that cuts the range into at most `most` steps. */
static int linear_ticks(const axis_range *r, int most, axis_tick *out) {
    double least = (r->high - r->low) / most, step = pow(10, floor(log10(least)));
    static const double factors[] = {1, 2, 5, 10};
    int f = 0;
    while (f < 3 && factors[f] * step < least * (1 - 1e-9)) f++;
    step *= factors[f];
    int decimals = (int)-floor(log10(step) + 1e-9), count = 0;
    if (decimals < 0) decimals = 0;
    for (double i = ceil(r->low / step - 1e-9); count < AXIS_TICKS && inside(r, i * step); i++) {
        out[count].value = i * step;
        axis_label(i * step, decimals, out[count++].label);
    }
    return count;
}

/* "10" with a raised exponent. */
static void power_label(int exponent, char out[AXIS_LABEL]) {
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%d", exponent < 0 ? -exponent : exponent);
    size_t size = (size_t)snprintf(out, AXIS_LABEL, "10%s", exponent < 0 ? "⁻" : "");
    for (const char *d = digits; *d; d++)
        size += (size_t)snprintf(out + size, AXIS_LABEL - size, "%s", raised[*d - '0']);
}

/* Plain digits would be long. */
static bool needs_powers(const axis_range *r) { return r->high >= 1e6 || r->low < 1e-4; }

/* Values of the form f * 10^e with f among `factors`; labels for decades that `every` divides. */
static int log_ticks(const axis_range *r, const int *factors, int factor_count, int every,
                     axis_tick *out) {
    int first = (int)floor(log10(r->low)) - 1, last = (int)ceil(log10(r->high)), count = 0;
    bool powers = needs_powers(r);
    for (int e = first; e <= last; e++)
        for (int f = 0; f < factor_count; f++) {
            double value = factors[f] * pow(10, e);
            if (!inside(r, value) || count == AXIS_TICKS) continue;
            axis_tick *tick = &out[count++];
            *tick = (axis_tick){.value = value};
            bool labelled = every == 0 || (factors[f] == 1 && e % every == 0);
            if (labelled && powers && factors[f] == 1)
                power_label(e, tick->label);
            else if (labelled)
                axis_label(value, e < 0 ? -e : 0, tick->label);
        }
    return count;
}

int axis_ticks(const axis_range *r, int most, axis_tick out[AXIS_TICKS]) {
    if (most < 2) most = 2;
    if (most > AXIS_TICKS / 2) most = AXIS_TICKS / 2;
    if (!r->log) return linear_ticks(r, most, out);
    static const int fine[] = {1, 2, 5}, decade[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    int count = log_ticks(r, fine, 3, 0, out);
    if (count < 2) return linear_ticks(r, most, out);
    double decades = log10(r->high / r->low);
    if ((count <= most && !needs_powers(r)) || decades < 1) return count;
    int every = 1;
    while (decades / every > most) every++;
    return log_ticks(r, decade, every == 1 ? 9 : 1, every, out);
}
