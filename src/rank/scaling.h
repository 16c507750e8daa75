/* scaling.h - the growing catalogs of fr_scaling_run, for its test. */
#ifndef FR_RANK_SCALING_H
#define FR_RANK_SCALING_H

#include "data/window.h"

/* The catalog in the order of one permutation, which depends on `seed`. */
void scaling_order(const fr_window *w, uint64_t seed, int32_t *order /* [catalog_size] */);

/* The event's positive, then the first `size` - 1 others of the order, without the source itself;
 * returns how many there are. So smaller catalogs are prefixes of larger ones. */
int32_t scaling_candidates(const fr_window *w, const int32_t *order, int32_t event, int32_t size,
                           int32_t *out);

#endif
