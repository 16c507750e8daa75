/* expected.h - exact moments of a sampled reciprocal rank, for one event (PROTOCOL 6).
 *
 * A sampled protocol draws some negatives and ranks the positive among them: with h of them above
 * and g tied, RR = 1/(1 + h + g/2). The negatives come from one or two pools, and only
 * the counts above and tied matter. So everything follows from the distribution of one whole
 * number, t = 2h + g, with RR = 2/(2 + t) and Hits@k = [t <= 2k - 2]; t adds up over pools.
 */
#ifndef FR_EVAL_EXPECTED_H
#define FR_EVAL_EXPECTED_H

#include "base/memory.h"

/* A pool of negatives, drawn with equal probability or in proportion to masses. */
typedef struct expected_pool {
    double size, above,
        tied;      /* counts; with replacement any masses, and only their ratios matter */
    int64_t draws; /* taken from the pool; all of it if it has fewer */
    bool replaced; /* each draw sees the whole pool: with replacement */
} expected_pool;

typedef struct expected_moments {
    double rr, variance;      /* of the reciprocal rank */
    double hits[FR_HITS_MAX]; /* probability of rank <= k, for each requested k */
} expected_moments;

/* Worker scratch, reused from event to event. Starts as {0}. */
typedef struct expected_scratch {
    ARRAY(double) above, tied, spread[2], sum, rr;
} expected_scratch;

/* Moments for `pools` (1 or 2) disjoint pools, drawn from independently. A pool must not be empty
 * if anything is drawn from it. Relative error of rr below 1e-12 up to 10^7 negatives and 10^6
 * draws. Time and memory follow the width of the distributions, about min(draws, 20 standard
 * deviations), times the same for tied negatives if there are any. */
fr_status expected_compute(const expected_pool *pool, int pools, const int64_t *hits,
                           int hits_count, expected_scratch *scratch, expected_moments *out,
                           fr_error *err);
void expected_scratch_free(expected_scratch *scratch);

#endif
