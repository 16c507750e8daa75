/* finite.c - see finite.h. */
#include "eval/finite.h"

#include "eval/student.h"

#include <math.h>

static const fr_interval none = {NAN, NAN};

/* Student's quantile takes longer with more degrees of freedom. Beyond this many it equals the
 * normal one to 0.06 %. */
enum { MOST_FREEDOM = 2000 };

static double quantile_of(finite_sample f, int64_t n) {
    return student_quantile((1 + f.level) / 2, n <= MOST_FREEDOM ? (double)(n - 1) : MOST_FREEDOM);
}

double finite_left(finite_sample f) { return f.of > 0 ? 1 - (double)f.count / (double)f.of : 1; }

/* The interval of a mean of n numbers with standard error `deviation`. */
static fr_interval around(finite_sample f, double value, double deviation, int64_t n) {
    double half = quantile_of(f, n) * deviation;
    return (fr_interval){value - half, value + half};
}

/* Wilson's interval: the shares p whose distance from the observed one is at most t standard
 * errors, where the standard error is that of p, sqrt((1 - f) effect p (1 - p) / n). Its ends are
 * the roots of a quadratic. A mean of numbers between 0 and 1 is such a share with a smaller
 * effect, and is skewed in the same way. */
static fr_interval wilson(finite_sample f, double share, int64_t n, double effect) {
    double t = quantile_of(f, n), weight = finite_left(f) * effect * t * t / (double)n;
    double middle = (share + weight / 2) / (1 + weight);
    double half = sqrt(weight * share * (1 - share) + weight * weight / 4) / (1 + weight);
    return (fr_interval){fmax(0, middle - half), fmin(1, middle + half)};
}

fr_interval finite_mean(finite_sample f, const double *each) {
    double sum = 0, squares = 0;
    bool inside = true;
    int64_t n = 0;
    for (int64_t i = 0; i < f.count; i++) {
        if (isnan(each[i])) continue;
        sum += each[i];
        inside &= each[i] >= 0 && each[i] <= 1;
        n++;
    }
    if (n < 2) return none;
    double mean = sum / (double)n;
    for (int64_t i = 0; i < f.count; i++)
        if (!isnan(each[i])) squares += (each[i] - mean) * (each[i] - mean);
    double variance = squares / (double)(n - 1), largest = mean * (1 - mean);
    if (inside && largest > 0) return wilson(f, mean, n, variance / largest);
    return around(f, mean, sqrt(finite_left(f) * variance / (double)n), n);
}

fr_interval finite_share(finite_sample f, const double *each) {
    double hits = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < f.count; i++) {
        if (isnan(each[i])) continue;
        hits += each[i];
        n++;
    }
    if (n < 2) return none;
    return wilson(f, hits / (double)n, n, 1);
}

fr_interval finite_linear(finite_sample f, double value, const double *influence, int64_t counted) {
    double squares = 0, n = (double)counted;
    if (counted < 2 || isnan(value)) return none;
    for (int64_t i = 0; i < f.count; i++) squares += influence[i] * influence[i];
    return around(f, value, sqrt(finite_left(f) * squares * n / (n - 1)), counted);
}

fr_interval finite_pull(finite_sample f, double value, fr_interval drawn) {
    double factor = sqrt(finite_left(f));
    return (fr_interval){value + factor * (drawn.low - value),
                         value + factor * (drawn.high - value)};
}

int64_t finite_block(finite_sample f, int64_t block) {
    if (f.of <= 0) return block;
    int64_t scaled = (int64_t)llround((double)block * (double)f.count / (double)f.of);
    return scaled > 1 ? scaled : 1;
}
