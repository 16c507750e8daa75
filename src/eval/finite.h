/* finite.h - confidence intervals for the mean over all events from a simple random sample
 * (PROTOCOL 15).
 *
 * Sampling is without replacement, so the uncertainty falls to 0 as the sample grows: if a share
 * f of all events is drawn, the variance of a mean over n of them is (1 - f) s^2 / n.
 * A metric over some events only, such as new pairs, is a mean over those of them that the sample
 * has; f is the same for them.
 */
#ifndef FR_EVAL_FINITE_H
#define FR_EVAL_FINITE_H

#include "base/status.h"

/* The records are `count` of `of` events that were drawn at random; of = 0: they are all. */
typedef struct finite_sample {
    int64_t count, of;
    double level; /* of intervals */
} finite_sample;

/* The share of events that were not drawn, 1 - f. */
double finite_left(finite_sample f);
/* The interval of the mean of each[f.count], where NaN = the event does not count: Student's, with
 * n - 1 degrees of freedom. No interval if fewer than two events count. */
fr_interval finite_mean(finite_sample f, const double *each);
/* The same if each is 0 or 1: Wilson's interval, which is also valid for shares near 0 and 1. */
fr_interval finite_share(finite_sample f, const double *each);
/* The interval of a value whose first-order error is the sum of influence[f.count] over events,
 * which adds up to 0, such as a weighted sum of means. `counted` events have an influence. */
fr_interval finite_linear(finite_sample f, double value, const double *influence, int64_t counted);
/* Shrinks a bootstrap interval of single events around the value, because the bootstrap ignores f.
 */
fr_interval finite_pull(finite_sample f, double value, fr_interval drawn);
/* Number of sampled events that cover the time of `block` of all events. */
int64_t finite_block(finite_sample f, int64_t block);

#endif
