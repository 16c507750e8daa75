/* forecast.h - how long the units of a study take that are still to be done.
 *
 * Before anything was measured, a unit is expected to take what its events, epochs and candidates
 * cost at stated rates. Each unit done corrects that: what is expected of a unit is multiplied by
 * how far the stated cost was off for units of its kind, model and window; else of its kind; else
 * of all. So only the proportions matter after the first minutes. It steers nothing: no result
 * depends on a forecast.
 */
#ifndef FR_STUDY_FORECAST_H
#define FR_STUDY_FORECAST_H

#include "study/study.h"

struct forecast {
    int64_t units, finished;
    double *stated; /* [units] seconds at stated rates */
    double *took;   /* [units] seconds, NaN = not done; 0 = left out, or done by another process */
    double before;  /* seconds of units done, in this run and earlier ones */
    double after;   /* expected of those that are neither done nor at work */
    int hands;      /* units done at a time */
    /* The unit at work, -1 = none. */
    int64_t now;
    double expected, began;
    /* What it says: a stage that begins anew is another one. */
    uint64_t first, last, total;
    double stage_began;
};

/* Reads what was done before. forecast_close also after a failure. */
fr_status forecast_open(fr_study *s, int hands, fr_error *err);
void forecast_close(fr_study *s);
/* What there is to do, as a sentence for the caller's log. */
void forecast_say(const fr_study *s);

/* A unit begins, or is done, or will not be done in this run (0 seconds). */
void forecast_begin(fr_study *s, const plan_unit *unit);
void forecast_end(fr_study *s, const plan_unit *unit, double seconds);
/* Tells the caller how far the study is; `stage` and the rest are what the unit at work says, NULL
 * = nothing. */
void forecast_tell(const fr_study *s, const char *stage, uint64_t done, uint64_t total);

#endif
