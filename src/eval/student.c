/* student.c - see student.h.
 *
 * With density f and n degrees of freedom, the mass between 0 and t > 0 and the tail beyond t are
 *
 *   C(t) = t f(t)     F((n+1)/2, 1; 3/2;     t^2 / (n + t^2))
 *   Q(t) = t f(t) / n F((n+1)/2, 1; n/2 + 1; n   / (n + t^2))
 *
 * with F Gauss' hypergeometric series, here a sum of positive terms: nothing cancels. The first one
 * converges fast for small t, the second for large t. The result is the requested one, or 1/2 minus
 * it if that loses nothing.
 *
 * log C and log Q are concave functions of log t (slopes fall from 1 to 0 and from 0 to -n).
 * After its first step, Newton's method on a concave monotone function approaches from one side, so
 * it needs neither a good start nor a bracket. Both functions are nearly straight for extreme t.
 */
#define _GNU_SOURCE /* lgamma_r */
#include "eval/student.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* F(a, 1; c; x) for 0 <= x < 1 and positive a, c. */
static double series(double a, double c, double x) {
    double sum = 1, term = 1;
    for (double k = 0;; k++) {
        double ratio = (a + k) / (c + k) * x;
        term *= ratio;
        sum += term;
        /* the rest is at most a geometric series, once terms fall */
        if (ratio < 1 && term * fmax(ratio, x) < 1e-17 * sum * (1 - fmax(ratio, x))) return sum;
    }
}

/* log of Gamma((n+1)/2) / (Gamma(n/2) sqrt(n pi)), the density at 0. */
static double log_height(double df) {
    const double pi = 3.14159265358979323846;
    int sign;
    if (df != floor(df) || df > 1e6)
        return lgamma_r((df + 1) / 2, &sign) - lgamma_r(df / 2, &sign) - log(pi * df) / 2;
    int64_t n = (int64_t)df;                            /* exact products with any C library */
    double ratio = n % 2 ? 1 / sqrt(pi) : sqrt(pi) / 2; /* of the gammas at n = 1 or 2 */
    for (int64_t k = n % 2 ? 1 : 2; k < n; k += 2) ratio *= (double)(k + 1) / (double)k;
    return log(ratio / sqrt(pi * (double)n));
}

double student_quantile(double p, double df) {
    double n = df, height = log_height(df);
    if (p == 0.5) return 0;
    double middle = fabs(p - 0.5), tail = p < 0.5 ? p : 1 - p;
    bool central = middle < 0.25; /* solve for the mass that is known to more digits */
    double log_t = 0;
    for (int step = 0; step < 200; step++) {
        double t = exp(log_t), square = t * t / n;
        /* log of t f(t); the second form is the same where the square would overflow */
        double log_tf = isfinite(square) ? height + log_t - (n + 1) / 2 * log1p(square)
                                         : height + log_t - (n + 1) * (log_t - log(n) / 2);
        double tf = exp(log_tf), mass, log_mass;
        if (t * t < 10) {
            mass = tf * series((n + 1) / 2, 1.5, square / (1 + square));
            log_mass = log(central ? mass : 0.5 - mass);
        } else {
            double factor = series((n + 1) / 2, n / 2 + 1, 1 / (1 + square)) / n;
            mass = tf * factor;
            log_mass = central ? log(0.5 - mass) : log_tf + log(factor);
        }
        double slope = exp(log_tf - log_mass); /* size of d log mass / d log t */
        double away = central ? log(middle) - log_mass : log_mass - log(tail);
        log_t += away / slope;
        if (fabs(away / slope) < 1e-15 * fmax(1, fabs(log_t))) break;
    }
    return p < 0.5 ? -exp(log_t) : exp(log_t);
}
