/* facts.h - the events of the diagnostics and their negatives (PROTOCOL 8, 9).
 *
 * Negatives are destinations other than the positive and the source itself. An event is eligible if
 * its source has met at least FACTS_ENOUGH of them. Both `data info` and the minimal scorer use
 * this walk, so they agree on which events are eligible.
 */
#ifndef FR_DATA_FACTS_H
#define FR_DATA_FACTS_H

#include "data/window.h"

enum { FACTS_ENOUGH = 20 };

/* A position in the walk, {0} before the first event. */
typedef struct eligible_event {
    int32_t event;                 /* number in the window */
    bool repeated;                 /* the pair has met before */
    int32_t seen;                  /* negatives the source has met */
    int32_t catalog, catalog_seen; /* negatives in the catalog; of them met */
    int32_t available;             /* negatives that have occurred before */
    int32_t next, occurred;        /* internal: next event, destinations so far */
} eligible_event;

/* Moves to the next eligible test event; false after the last. O(window + met) for all. */
bool facts_next_eligible(const fr_window *w, eligible_event *e);

/* beta* = logit(p1) - logit(q1), the best beta of the minimal scorer (PROTOCOL 9): infinite where
 * one of the two is 0 or 1. */
double facts_beta_star(double p1, double q1);

#endif
