/* record.h - the probe that turns a score vector into a rank record. */
#ifndef FR_RANK_RECORD_H
#define FR_RANK_RECORD_H

#include "rank/engine.h"
#include "rank/negatives.h"

/* A destination's first event, and the mass of all that occur before it. */
typedef struct recorder_first {
    int32_t event;
    int64_t mass;
} recorder_first;

enum { RECORDER_BLOCK = 512 };

typedef struct recorder {
    const fr_window *w;
    const event_list *events; /* that have records */
    arena memory;
    /* [destinations] from which event on it is a candidate of the fixed catalog (0; INT32_MAX =
     * never) and of the time-available one (its first event): one comparison serves both. */
    int32_t *listed, *first;
    int32_t *all_listed, *all_first; /* [blocks] the largest of each block of RECORDER_BLOCK */
    recorder_first *firsts;          /* [destinations + 1] ascending */
    int32_t listed_count;            /* of the fixed catalog */
    int64_t listed_mass;
    int32_t *text;  /* [destinations] place of its id in the order of ids as decimal text */
    int64_t *mass;  /* [destinations] training count ^ power in whole steps, 0 outside */
    int32_t *light; /* the same for power 1, where all together fit; else NULL */
    /* Of one worker each, for a protocol with a filter; else NULL. */
    struct {
        int32_t *out;   /* [rivals + 2] candidates that are not counted */
        int32_t *stamp; /* [destinations] the event for which it was listed last */
    } * scratch;
    bool catalog_only;      /* no time-available ranks: the scorer does not score what they need */
    const negatives *lists; /* to count instead of the catalog; NULL = none. The caller's to set */
    fr_record *records;     /* [events] */
    int32_t from, to;       /* candidates that are counted */
    struct recorder_sum *sums; /* [events] to be added up, if these are not all; else NULL */
} recorder;

/* All records start as not covered. `catalog_only` as in fr_scorer_definition. The list of events
 * must outlive the recorder. Of `count` recorders of the same events, number `part` counts its
 * share of the candidates, as if no others were in the catalog; see recorder_add. */
fr_status recorder_open(recorder *r, const fr_window *w, const event_list *events,
                        bool catalog_only, double popularity_power, int threads, int part,
                        int count, fr_error *err);
void recorder_close(recorder *r);
/* Call it when `lists` is set. */
probe recorder_probe(recorder *r);

/* Fills what is known about a ranked event before any score. */
fr_record recorder_describe(const fr_window *w, int32_t event);

/* ---- records without a vector (counting.h) ---- */

/* Candidates against the positive. */
typedef struct recorder_counts {
    int32_t n, above, tied;
} recorder_counts;

static inline void recorder_count_one(recorder_counts *c, float score, float positive,
                                      int32_t step) {
    c->n += step;
    c->above += score > positive ? step : 0;
    c->tied += score == positive ? step : 0;
}

/* The parts of a record that are sums over all candidates. For an event that is not covered, only
 * `available`. */
typedef struct recorder_tally {
    recorder_counts available, catalog;
    int64_t mass_above, mass_tied, mass_total;
    int64_t mass_own;              /* of the positive; recorder_put knows it */
    int32_t before;                /* fr_record.tied_before */
    int32_t filtered;              /* fr_record.filtered; recorder_put knows it */
    recorder_counts seen, trained; /* fr_record.seen_*, train_* */
} recorder_tally;

/* The sums of one recorder of several for an event. */
typedef struct recorder_sum {
    recorder_tally tally;
    float score;    /* of the positive */
    int32_t ranked; /* 0 = it is not */
} recorder_sum;

typedef struct recorder_list {
    const int32_t *at;
    int32_t count;
} recorder_list;

/* Candidates that are not counted, the positive first; `two` is room for two. */
recorder_list recorder_excluded(const recorder *r, const scored_event *e, int32_t two[2]);
/* First meetings of the source with all that seen_* and train_* are counted over. */
fr_history recorder_met(const recorder *r, const scored_event *e);
/* Fills the event's record from a tally without the candidates of `x`. */
void recorder_put(recorder *r, const scored_event *e, const recorder_list *x, float positive,
                  const recorder_tally *t);
/* Adds the sums[count] of another recorder, which must have the same events and scores;
 * otherwise FR_EINPUT. `who` names it. */
fr_status recorder_add(recorder *r, const recorder_sum *sums, size_t count, int who, fr_error *err);
/* Fills the records from the sums, when all have been added. */
void recorder_settle(recorder *r);
/* A record against given lists (r->lists). */
void recorder_put_list(recorder *r, const scored_event *e, float positive, negatives_counts c);

#endif
