/* bootstrap.h - resampling blocks of events (PROTOCOL 11).
 *
 * Events that are close in time are alike, so whole blocks of consecutive events are drawn, not
 * events. A series is one number per event, such as the reciprocal rank of one run; all series see
 * the same blocks in the same resample, so differences between them are paired. A resample
 * needs only the sum and the number of counted events of a series in every block, so 10,000
 * resamples are 10,000 sums over some 40 blocks.
 *
 * The blocks of a resample depend only on (seed, resample, place), and one thread does a whole
 * resample, so the bits are the same with any number of threads.
 */
#ifndef FR_EVAL_BOOTSTRAP_H
#define FR_EVAL_BOOTSTRAP_H

#include "base/context.h"

typedef struct block_sums {
    int64_t blocks;
    int series;
    double *sum, *count; /* [blocks][series] over the counted events of the block */
} block_sums;

typedef struct resampling {
    uint64_t seed;
    int64_t resamples;
} resampling;

/* Fills weight[blocks] of one resample: how often each block is drawn, or its sign. */
void bootstrap_draw(uint64_t seed, int64_t resample, int64_t blocks, double *weight);
void bootstrap_sign(uint64_t seed, int64_t resample, int64_t blocks, double *weight);

/* Bootstrap: as many blocks as there are, drawn with replacement. out[resamples][series] is the
 * mean over the counted events in them, NaN if there are none. */
fr_status bootstrap_means(const block_sums *blocks, resampling how, const fr_context *context,
                          double *out, fr_error *err);

/* Sign flips, for a permutation test: each block gets + or - with equal probability. The mean of a
 * series is a sum over blocks; out[resamples][series] is this sum with these signs. */
fr_status bootstrap_flips(const block_sums *blocks, resampling how, const fr_context *context,
                          double *out, fr_error *err);

/* The middle `level` of values[count], between the quantiles (1 - level)/2 and (1 + level)/2. The
 * quantile q is at position q (n - 1) of the n sorted values, counted from 0, with linear
 * interpolation. Sorts the values; NaN is left out. */
fr_interval bootstrap_interval(double *values, int64_t count, double level);

#endif
