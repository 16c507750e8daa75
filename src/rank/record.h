/* record.h - the probe that turns a score vector into a rank record. */
#ifndef FR_RANK_RECORD_H
#define FR_RANK_RECORD_H

#include "rank/engine.h"
#include "rank/negatives.h"

typedef struct recorder {
    const fr_window *w;
    arena memory;
    /* [destinations] from which event on it is a candidate of the fixed catalog (0; INT32_MAX =
     * never) and of the time-available one (its first event): one comparison serves both. */
    int32_t *listed, *first;
    int32_t *text;      /* [destinations] place of its id in the order of ids as decimal text */
    double *popularity; /* [destinations] training count ^ power, 0 outside the catalog */
    double popularity_total;
    /* Of one worker each, for a protocol with a filter; else NULL. */
    struct {
        int32_t *out;   /* [rivals + 2] candidates that are not counted */
        int32_t *stamp; /* [destinations] the event for which it was listed last */
    } * scratch;
    bool catalog_only;      /* no time-available ranks: the scorer does not score what they need */
    const negatives *lists; /* to count instead of the catalog; NULL = none. The caller's to set */
    fr_record *records;     /* [ranked part] */
} recorder;

/* All records start as not covered. `catalog_only` as in fr_scorer_definition. */
fr_status recorder_open(recorder *r, const fr_window *w, bool catalog_only, double popularity_power,
                        int threads, fr_error *err);
void recorder_close(recorder *r);
probe recorder_probe(recorder *r);

#endif
