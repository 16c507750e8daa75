/* select.h - selection of an epoch: each is ranked on the validation part, against the whole
 * catalog (PROTOCOL 14), and the best one is kept.
 *
 * An epoch is ranked through a checkpoint, exactly as by `rank --part val`, so the curve has the
 * values that users get. The bytes of the best file are kept.
 */
#ifndef FR_TRAIN_SELECT_H
#define FR_TRAIN_SELECT_H

#include "base/memory.h"
#include "models/checkpoint.h"

typedef struct selection {
    const char *metric;   /* larger is better; NULL = no selection, the last epoch is kept */
    fr_window *w;         /* with the validation part ranked */
    ARRAY(double) values; /* of the epochs */
    int64_t epoch;        /* the first of the best so far, from 1; 0 = none yet */
    void *best;           /* its checkpoint */
    size_t size;
} selection;

/* The file in which an epoch is ranked, in the folder of the run. */
#define SELECTION_SCRATCH ".fullrank-epoch.safetensors"

/* What a training run with selection stores in its files. */
typedef struct selection_notes {
    bool finished; /* no epoch is left */
    bool final;    /* the model was trained again on training and validation */
} selection_notes;

/* FR_EUSAGE unless it is a metric that can select. */
fr_status selection_check(const char *metric, fr_error *err);
/* FR_EUSAGE if the window lacks the part that the settings need, or if the metric is unknown. Close
 * it even on failure. */
fr_status selection_open(selection *s, const fr_window *w, const fr_training *how,
                         const fr_context *context, fr_error *err);
void selection_close(selection *s);

/* Ranks the model after its next epoch, and keeps it if it is better than all before. */
fr_status selection_judge(selection *s, const model *m, const fr_training *how, const char *folder,
                          const fr_context *context, fr_error *err);
/* True if nothing is left to train: after `patience` epochs without improvement (0 = never), or
 * after all epochs. */
bool selection_over(const selection *s, const fr_training *how, int64_t done);

/* Writes the best epoch's checkpoint, with the present state of the selection. */
fr_status selection_save(const selection *s, selection_notes notes, const char *path,
                         fr_error *err);
/* Adds to a model in a writer that it was selected. */
fr_status selection_add(const selection *s, selection_notes notes, safetensors_writer *w,
                        fr_error *err);

/* Takes the values of the finished epochs and the best checkpoint from a saved state. */
fr_status selection_take(selection *s, const double *values, size_t count, const safetensors *file,
                         const fr_window *w, fr_error *err);

#endif
