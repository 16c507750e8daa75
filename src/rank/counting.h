/* counting.h - rank records of scorers that tell how candidates stand without scoring them all
 * (fr_scorer_definition.stand).
 *
 * For "scores of their own for a short list, the running score of its level for everybody else":
 *
 *     above = candidates of a level above the positive's - listed ones among them
 *             + listed ones that score above
 *
 * and likewise for ties, masses, the time-available catalog and the order of ties. What the source
 * has met, what is filtered and given lists of negatives are walked through. The records are those
 * of the score vectors, field by field.
 */
#ifndef FR_RANK_COUNTING_H
#define FR_RANK_COUNTING_H

#include "rank/record.h"

/* What the same records looked like when made from score vectors. */
typedef struct counting_check {
    int64_t wanted;   /* events to look at, evenly spread; 0 = none */
    bool agree;       /* a difference is FR_EINPUT, naming the event */
    int64_t verified; /* so many were */
    int64_t differ;   /* of them: in any field */
} counting_check;

/* Fills the records of all ranked events, in stream order. */
fr_status counting_run(fr_scorer *scorer, recorder *r, int64_t met, const fr_context *context,
                       counting_check *check, fr_error *err);

#endif
