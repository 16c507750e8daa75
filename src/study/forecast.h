/* forecast.h - an estimate of the time that the remaining units of a study take.
 *
 * Before anything is measured, the estimate of a unit follows from its events, epochs and
 * candidates at assumed rates. Each finished unit corrects this: the estimate is multiplied by the
 * observed ratio for units of its kind, model and window, or of its kind, or of all. So after the
 * first minutes only the proportions matter. No result depends on a forecast.
 */
#ifndef FR_STUDY_FORECAST_H
#define FR_STUDY_FORECAST_H

#include "study/study.h"

struct forecast {
    int64_t units, finished;
    int64_t skipped; /* of those finished: their data set is not there */
    double *stated;  /* [units] seconds at assumed rates */
    double *took;    /* [units] seconds, NaN = not done; 0 = left out, or done by another process */
    double before;   /* seconds of units done, in this run and earlier ones */
    double after;    /* expected of those that are neither done nor at work */
    int hands;       /* units done at a time */
    /* The unit at work, -1 = none. */
    int64_t now;
    double expected, began;
    /* Its stage; a stage that starts again counts as a new one. */
    uint64_t first, last, total;
    double stage_began;
};

/* Reads what was done before. Call forecast_close even on failure. */
fr_status forecast_open(fr_study *s, int hands, fr_error *err);
void forecast_close(fr_study *s);
/* The remaining work, as a sentence for the log. */
void forecast_say(const fr_study *s);

/* A unit begins, or is done, or will not be done in this run (0 seconds). */
void forecast_begin(fr_study *s, const plan_unit *unit);
void forecast_end(fr_study *s, const plan_unit *unit, double seconds);
/* Reports the progress of the study to the caller. `stage` and the rest come from the present unit;
 * NULL = nothing. */
void forecast_tell(const fr_study *s, const char *stage, uint64_t done, uint64_t total);

#endif
