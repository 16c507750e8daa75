/* study.h - a study: its plan, its ledger and the data set at hand.
 *
 *   plan.c     what there is to do          work.c     doing one unit
 *   ledger.c   what has been done           run.c      which unit comes next
 *   record.c   what one unit left behind    results.c  reading it all back
 *   state.c    how far the study is         paper.c    the paper's numbers, where they fit
 *   external.c runs that others made     choice.c   which configuration is ranked
 *   hand.c     units that several processes do   forecast.c how long the rest takes
 */
#ifndef FR_STUDY_STUDY_H
#define FR_STUDY_STUDY_H

#include "study/plan.h"
#include "study/record.h"

#include <sys/types.h>
#include <time.h>

/* A file as it was when it was hashed. */
typedef struct hashed_file {
    char *path;
    ino_t inode;
    off_t size;
    int64_t modified; /* os_modified */
    char sha256[65];
} hashed_file;

typedef struct forecast forecast;

struct fr_study {
    char *directory;
    char *document,
        *folder; /* as given, so that it can be opened again; folder: of data, or NULL */
    ledger book;
    plan plan;
    const fr_context *caller;  /* of the present call */
    const fr_context *context; /* of units: the caller's, with the unit's name in messages */
    const plan_unit *unit;     /* the present unit */
    forecast *forecast;        /* of the present run; NULL = none */
    /* The present data set. */
    int data; /* its number, -1 = none */
    fr_stream *stream;
    fr_window *window[2]; /* ranking, diagnostic; opened when needed */
    ARRAY(hashed_file) hashes;
};

/* The hash of everything that a unit's result depends on. FR_EINPUT if something it needs does not
 * exist yet. `missing` is set for a data set or a file of an external model that cannot be found.
 */
fr_status work_inputs(fr_study *s, const plan_unit *unit, char out[65], bool *missing,
                      fr_error *err);
/* Passes messages of units to the caller, by `hearing`, until both are set to NULL. */
void study_listen(fr_study *s, const fr_context *caller, fr_context *hearing);
/* Does a unit. `again` is true if the same work was begun before and may be continued. */
fr_status work_do(fr_study *s, const plan_unit *unit, bool again, unit_record *result,
                  fr_error *err);
/* Closes the present data set. */
void work_leave(fr_study *s);
/* The unit's window on its data set, which becomes the present one. The window belongs to the
 * study. */
fr_status work_window(fr_study *s, const plan_unit *unit, fr_window **out, fr_error *err);

/* The number of the unit that trains the model of a unit, or that a final training continues; -1 =
 * none. If it depends on a choice, FR_EINPUT until the choice is made. */
fr_status work_trainer(fr_study *s, const plan_unit *unit, int *number, fr_error *err);
/* Copies the unit and sets the number of its configuration. FR_EINPUT as above. */
fr_status work_chosen(fr_study *s, const plan_unit *unit, plan_unit *out, fr_error *err);
/* Adds the inputs of a choice: the hashes of all models that were trained for it. */
fr_status choice_inputs(fr_study *s, const plan_unit *unit, json_t *all, fr_error *err);
/* Compares a model's configurations by the mean over seeds of their values on the validation part;
 * the first of the best is chosen. *about describes all of them, and the caller frees it. */
fr_status choice_make(fr_study *s, const plan_unit *unit, int *chosen, json_t **about,
                      fr_error *err);

/* SHA-256 of a whole file; remembered as long as the file does not change. */
fr_status study_hash_file(fr_study *s, const char *path, char out[65], fr_error *err);
/* Adds the inputs of an external unit: the hashes of its files. */
fr_status external_inputs(fr_study *s, const plan_unit *unit, json_t *all, bool *missing,
                          fr_error *err);
/* Reports which file of an external unit is missing: FR_EFILE. */
fr_status external_missing(const plan_unit *unit, fr_error *err);
/* The same if none of its files exists, even if the ledger has its results. */
fr_status external_there(const plan_unit *u, fr_error *err);
/* Checks that an external unit can be done: loads its rank records or opens its scorer, and closes
 * them. */
fr_status external_check(fr_study *s, const plan_unit *unit, fr_error *err);
/* The rank records of an external unit, which the caller closes. Other events or another protocol
 * than the study's are FR_EINPUT, naming the file and the fields. */
fr_status external_load(fr_study *s, const plan_unit *unit, fr_ranking **out, fr_error *err);

/* The recorded file of a unit: its path, which the caller frees, and its hash; FR_EINPUT if there
 * is none. */
fr_status study_artefact(fr_study *s, int64_t unit, const char *name, char **path, char hash[65],
                         fr_error *err);

#endif
