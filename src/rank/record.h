/* record.h - the probe that turns a score vector into a rank record. */
#ifndef FR_RANK_RECORD_H
#define FR_RANK_RECORD_H

#include "rank/engine.h"

typedef struct recorder {
    const fr_window *w;
    arena memory;
    int32_t *in_catalog; /* [destinations] 1 or 0 */
    int32_t *first;      /* [destinations] its first event; INT32_MAX = none */
    double *popularity;  /* [destinations] training count ^ power, 0 outside the catalog */
    double popularity_total;
    int32_t available_until; /* first event of a destination the scorer does not score: histories
                                that have it have no time-available ranks */
    fr_record *records;      /* [test events] */
} recorder;

/* All records start as not covered. `scored` as in fr_scorer. */
fr_status recorder_open(recorder *r, const fr_window *w, const uint8_t *scored,
                        double popularity_power, fr_error *err);
void recorder_close(recorder *r);
probe recorder_probe(recorder *r);

#endif
