/* agreement.c - see agreement.h. */
#include "eval/agreement.h"

#include <math.h>

static int sign(double x) { return (x > 0) - (x < 0); }

double kendall_tau(const double *a, const double *b, int count) {
    double agree = 0, untied_a = 0, untied_b = 0;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            int in_a = sign(a[i] - a[j]), in_b = sign(b[i] - b[j]);
            agree += in_a * in_b;
            untied_a += in_a * in_a;
            untied_b += in_b * in_b;
        }
    }
    return untied_a > 0 && untied_b > 0 ? agree / sqrt(untied_a * untied_b) : NAN;
}
