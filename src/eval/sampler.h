/* sampler.h - named ways to draw negatives; each is one registered struct with its explanation.
 *
 * A sampler has two halves. `pools` turns a record into the pools of negatives, independent of K.
 * Equal pools give equal results, so events are grouped by them once for all K. `deal` then says
 * how many of the K negatives come from each pool, and whether the event counts at all.
 */
#ifndef FR_EVAL_SAMPLER_H
#define FR_EVAL_SAMPLER_H

#include "eval/expected.h"

enum { SAMPLER_POOLS = 2 };

/* Nested draws walk along one permutation of the catalog, of its seen or of its unseen part. All
 * samplers of a part share it. */
enum { PART_NONE, PART_CATALOG, PART_SEEN, PART_UNSEEN };

typedef struct sampler {
    fr_definition definition; /* first, because fr_sampler_at returns a pointer to it */
    bool trained;             /* reads the counts of the training part: records must have them */
    bool subgroup;            /* only for some positives: uncovered events never count */
    int part; /* PART_*: K different ones of the first pool, which is this part; NONE = otherwise */
    /* Fills sizes and counts of both pools (the second is empty if there is one only). False: the
     * sampler does not apply to the event. The record is covered and checked. */
    bool (*pools)(const fr_record *record, expected_pool pool[SAMPLER_POOLS]);
    /* Sets the draws of both pools. False: too few negatives under the rule `small`. */
    bool (*deal)(int64_t k, int small, expected_pool pool[SAMPLER_POOLS]);
} sampler;

/* Checks the lists and choices of `sampling` and finds its sampler. */
fr_status sampling_check(const fr_sampling *sampling, const sampler **out, fr_error *err);

#endif
