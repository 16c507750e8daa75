/* finite.h - how far the mean over a simple random sample may be from the mean over all events it
 * was drawn from (PROTOCOL 15).
 *
 * Sampling is without replacement, so the sample tells more as it grows: with a share f of all
 * events drawn, the variance of a mean over n of them is (1 - f) s^2 / n, and 0 when all are there.
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
/* Of the mean of each[f.count], NaN = the event does not count: Student's, with n - 1 degrees of
 * freedom. None with fewer than two that count. */
fr_interval finite_mean(finite_sample f, const double *each);
/* The same where each is 0 or 1: Wilson's, which holds for shares near 0 and 1 too. */
fr_interval finite_share(finite_sample f, const double *each);
/* Of a value whose first-order error is the sum over events of influence[f.count], which adds up to
 * 0: a weighted sum of means, say. `counted` events have one. */
fr_interval finite_linear(finite_sample f, double value, const double *influence, int64_t counted);
/* An interval by drawing events with replacement, which knows nothing of f: pulled in around the
 * value. */
fr_interval finite_pull(finite_sample f, double value, fr_interval drawn);
/* Events of a sample that lie where `block` events of all would. */
int64_t finite_block(finite_sample f, int64_t block);

#endif
