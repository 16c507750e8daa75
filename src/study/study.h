/* study.h - a study: its plan, its ledger and the data set at hand.
 *
 *   plan.c     what there is to do          work.c     doing one unit
 *   ledger.c   what has been done           run.c      which unit comes next
 *   record.c   what one unit left behind    results.c  reading it all back
 *   state.c    how far the study is         paper.c    the paper's numbers, where they fit
 */
#ifndef FR_STUDY_STUDY_H
#define FR_STUDY_STUDY_H

#include "study/plan.h"
#include "study/record.h"

struct fr_study {
    char *directory;
    ledger book;
    plan plan;
    const fr_context *caller;  /* of the call under way */
    const fr_context *context; /* what units talk to: the caller, told which unit speaks */
    const plan_unit *unit;     /* being looked at or done */
    /* The data set at hand. */
    int data; /* its number, -1 = none */
    fr_stream *stream;
    fr_window *window[2]; /* ranking, diagnostic; opened when first asked for */
};

/* The hash of everything a unit's result depends on. FR_EINPUT if something it needs is not there
 * yet. `missing` is set for a data set that cannot be found. */
fr_status work_inputs(fr_study *s, const plan_unit *unit, char out[65], bool *missing,
                      fr_error *err);
/* Does a unit. `again` is true if the same work was begun before and may be gone on with. */
fr_status work_do(fr_study *s, const plan_unit *unit, bool again, unit_record *result,
                  fr_error *err);
/* Lets the data set at hand go. */
void work_leave(fr_study *s);

/* The recorded file of a unit: its path, the caller's, and its hash; FR_EINPUT if there is none. */
fr_status study_artefact(fr_study *s, int64_t unit, const char *name, char **path, char hash[65],
                         fr_error *err);

#endif
