/* counting.h - rank records of scorers that can compare candidates without scoring them all
 * (fr_scorer_definition.stand).
 *
 * A short list of candidates has special scores; all others have the score of their level. So
 *
 *     above = candidates of a level above the positive's - listed ones among them
 *             + listed ones that score above
 *
 * and likewise for ties, masses, the time-available catalog and the order of ties. Destinations
 * that the source has met, filtered ones and given lists of negatives are counted one by one. The
 * records equal those of score vectors, field by field.
 *
 * A worker has the state of a scorer and an index of its own, and moves both forward to the shards
 * of events that it takes. So every worker observes all events, but counts only its share. A scorer
 * that can be opened again has as many workers as there are threads, up to 8; any other has one.
 */
#ifndef FR_RANK_COUNTING_H
#define FR_RANK_COUNTING_H

#include "rank/record.h"

/* A comparison with the same records made from score vectors. */
typedef struct counting_check {
    int64_t wanted;   /* events to compare, evenly spread; 0 = none */
    bool agree;       /* a difference is FR_EINPUT, naming the event */
    int64_t verified; /* number compared */
    int64_t differ;   /* of these, records with a difference */
} counting_check;

/* The context with as many threads as there will be workers. */
fr_context counting_team(const fr_scorer *scorer, const fr_context *context);

/* Fills the records of all ranked events. */
fr_status counting_run(fr_scorer *scorer, recorder *r, const fr_rank_settings *settings,
                       const fr_context *context, counting_check *check, fr_error *err);

#endif
