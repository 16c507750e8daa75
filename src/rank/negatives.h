/* negatives.h - given lists of negatives, one per event of the ranked part (`rank --negatives`).
 *
 * Records then count only the candidates of the event's list. Lists are checked when they are read,
 * so counting does not need the catalog, the filter or membership.
 */
#ifndef FR_RANK_NEGATIVES_H
#define FR_RANK_NEGATIVES_H

#include "data/window.h"

typedef struct negatives {
    int64_t *at;     /* [ranked part + 1] where the list of each event begins */
    int32_t *list;   /* destinations, all lists one after the other */
    char sha256[65]; /* of the file */
} negatives;

/* Reads int64 [events of the ranked part, K] of original ids, -1 after the end of a list.
 * FR_EINPUT, naming row and id, for an id that is not a candidate of its event; unless `repeats`,
 * also for an id that is listed twice and for the event's own destination. Close it even on
 * failure. */
fr_status negatives_open(negatives *n, const fr_window *w, const char *path, bool repeats,
                         fr_error *err);
void negatives_close(negatives *n);

typedef struct negatives_counts {
    int32_t n, above, tied; /* without the positive */
} negatives_counts;

/* The list of the event at `place` of the ranked part against the positive's score. */
negatives_counts negatives_count(const negatives *n, int32_t place, const float *scores,
                                 float positive);

#endif
