/* draws.h - nested draws for one event (PROTOCOL 7); fr_draws_compute is in fullrank.h.
 *
 * Only the labels of a permutation of the N-1 negatives matter: above, tied, below. The labels can
 * be drawn one by one: position j is "above" with probability (above left) / (N-1-j), and so on.
 * This is exactly the label sequence of a uniform random permutation, in O(1) memory for any N. The
 * random number of position j is keyed by (seed, event, j), so a prefix does not depend on the
 * length. Two models with the same seed share these numbers, not the identities of the negatives.
 */
#ifndef FR_EVAL_DRAWS_H
#define FR_EVAL_DRAWS_H

#include "base/rng.h"
#include "eval/expected.h"

typedef struct draw_counts {
    int32_t above, tied; /* among the negatives drawn so far */
} draw_counts;

/* Counts after k[0] < k[1] < ... negatives of the permutation (key, event) of a pool of whole
 * counts; a k beyond the pool gives all of it. */
void draws_nested(const expected_pool *pool, rng_key key, int64_t event, const int64_t *k,
                  int k_count, draw_counts *out);

#endif
