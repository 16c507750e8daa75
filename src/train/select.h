/* select.h - which epoch is kept: each is ranked on the validation part, against the whole catalog
 * (PROTOCOL 14), and the best one stays.
 *
 * An epoch is ranked through a checkpoint, exactly as `rank --part val` would do it, so the value
 * of the curve is the value that users get. The file's bytes are kept while it is the best.
 */
#ifndef FR_TRAIN_SELECT_H
#define FR_TRAIN_SELECT_H

#include "base/memory.h"
#include "models/checkpoint.h"

typedef struct selection {
    const char *metric;   /* more is better; NULL = nothing is selected, the last epoch is kept */
    fr_window *w;         /* with the validation part ranked */
    ARRAY(double) values; /* of the epochs */
    int64_t epoch;        /* the first of the best so far, from 1; 0 = none yet */
    void *best;           /* its checkpoint */
    size_t size;
} selection;

/* The file in which an epoch is ranked, in the folder of the run. */
#define SELECTION_SCRATCH ".fullrank-epoch.safetensors"

/* What a training that selects says of itself in files. */
typedef struct selection_notes {
    bool finished; /* no epoch is left */
    bool final;    /* the model was trained again on training and validation */
} selection_notes;

/* FR_EUSAGE unless it is a metric to select by. */
fr_status selection_check(const char *metric, fr_error *err);
/* FR_EUSAGE if the settings ask for what the window has no part for, or for a metric that is none.
 * To be closed whether it fails or not. */
fr_status selection_open(selection *s, const fr_window *w, const fr_training *how,
                         const fr_context *context, fr_error *err);
void selection_close(selection *s);

/* Ranks the model after its next epoch, and keeps it if it is better than all before. */
fr_status selection_judge(selection *s, const model *m, const fr_training *how, const char *folder,
                          const fr_context *context, fr_error *err);
/* Is nothing left to train? After `patience` epochs that were not better (0 = never), or all. */
bool selection_over(const selection *s, const fr_training *how, int64_t done);

/* Writes the best epoch's checkpoint, with what is known of the selection now. */
fr_status selection_save(const selection *s, selection_notes notes, const char *path,
                         fr_error *err);
/* Says of any model in a writer that it was selected. */
fr_status selection_add(const selection *s, selection_notes notes, safetensors_writer *w,
                        fr_error *err);

/* Takes the values of the epochs done and the best checkpoint from a state that was saved. */
fr_status selection_take(selection *s, const double *values, size_t count, const safetensors *file,
                         const fr_window *w, fr_error *err);

#endif
