/* loss.c - see loss.h. In double: a loss is summed over many events. */
#include "train/loss.h"

#include "fullrank.h"

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double loss_event(int objective, real positive, real negative, real *d_positive, real *d_negative) {
    double p = (double)positive, n = (double)negative;
    if (objective == FR_OBJECTIVE_BPR) {
        double slope = sigmoid(n - p);
        *d_positive = (real)-slope;
        *d_negative = (real)slope;
        return softplus(n - p);
    }
    *d_positive = (real)(-sigmoid(-p) / 2);
    *d_negative = (real)(sigmoid(n) / 2);
    return (softplus(-p) + softplus(n)) / 2;
}
