/* study.h - a study: its plan, its ledger and the data set at hand.
 *
 *   plan.c     what there is to do          work.c    doing one unit
 *   ledger.c   what has been done           run.c     which unit comes next
 *   results.c  reading it all back
 */
#ifndef FR_STUDY_STUDY_H
#define FR_STUDY_STUDY_H

#include "study/ledger.h"
#include "study/plan.h"

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

/* What a unit leaves behind, collected while it works and stored at its end. */
typedef struct unit_metric {
    char name[64];
    double value;
    int64_t events;
} unit_metric;

typedef struct unit_artefact {
    char name[32];
    char *path;      /* below the study's folder, or absolute; NULL = kept in the ledger */
    char sha256[65]; /* of the file */
    void *bytes;     /* to be kept in the ledger */
    size_t size;
} unit_artefact;

typedef struct unit_timing {
    char stage[32];
    double seconds;
} unit_timing;

typedef struct unit_result {
    ARRAY(unit_metric) metrics;
    ARRAY(unit_artefact) artefacts;
    ARRAY(unit_timing) timings;
} unit_result;

/* The hash of everything a unit's result depends on. FR_EINPUT if something it needs is not there
 * yet. `missing` is set for a data set that cannot be found. */
fr_status work_inputs(fr_study *s, const plan_unit *unit, char out[65], bool *missing,
                      fr_error *err);
/* Does a unit. `again` is true if the same work was begun before and may be gone on with. */
fr_status work_do(fr_study *s, const plan_unit *unit, bool again, unit_result *result,
                  fr_error *err);
void work_free(unit_result *result);
/* The unit that gets a data set. */
const plan_unit *work_data_unit(const fr_study *s, int data);
/* Lets the data set at hand go. */
void work_leave(fr_study *s);

/* The recorded file of a unit: its path, the caller's, and its hash; FR_EINPUT if there is none. */
fr_status study_artefact(fr_study *s, int64_t unit, const char *name, char **path, char hash[65],
                         fr_error *err);

#endif
