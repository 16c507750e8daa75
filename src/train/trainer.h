/* trainer.h - one step of training, and the order in which events come.
 *
 * A batch is cut into shards of events that depend only on the batch. One worker runs the forward
 * and backward pass of a shard into a separate gradient. The gradients are then added in the order
 * of the shards, element by element, and Adam updates the parameters. So the bits do not depend on
 * threads. Work that all shards share (model_sharing) is done before them, in as many parts as
 * there are shards; the backward pass of a part adds to the gradient of the shard with the same
 * number. Negatives, dropout and the order of events are functions of (seed, epoch, event), so the
 * only state is parameters and moments.
 */
#ifndef FR_TRAIN_TRAINER_H
#define FR_TRAIN_TRAINER_H

#include "base/context.h"
#include "models/model.h"

enum { TRAINER_SHARD = 25 }; /* events, if the model has no preference */

typedef struct trainer {
    model *m;
    fr_training settings;
    adam adam;
    int threads;
    int shard_events;
    int64_t shards;    /* of a full batch */
    tape *tapes;       /* [threads] */
    tape *parts;       /* [shards] for model_sharing; otherwise NULL */
    tape plan;         /* what a step of it reads */
    real **gradients;  /* [shards] of [params.count] */
    double *losses;    /* [batch_size] */
    real *keep;        /* [batch_size, model.keep] for the model's memory */
    int32_t *order;    /* [train] events in the order of the epoch */
    int32_t *negative; /* [train] by event */
    int32_t *from;     /* [batch_size + 1] 0, 2, 4 ..: candidates of a batch's events */
    int32_t *pairs;    /* [batch_size, 2] positive, negative */
    int64_t epoch;
    /* the current steps */
    const fr_context *context; /* for progress; may be NULL */
    const int32_t *events;     /* [count] */
    int32_t count, done;
    bool learning; /* parameters and memory may change */
    double sum;    /* of the losses of the events done */
    /* the step */
    const int32_t *batch;
    int batch_count;
    void *shared; /* by the model; NULL = nothing */
    int summands; /* shards' gradients to be added */
} trainer;

fr_status trainer_open(trainer *t, model *m, const fr_training *settings, const fr_context *context,
                       fr_error *err);
void trainer_close(trainer *t);

/* Sets order and negatives of an epoch, from 0. */
void trainer_begin(trainer *t, int64_t epoch);
/* One step on `count` events; *loss is the mean over them. A loss that is not finite is an error
 * that names the step and the first parameter whose value or gradient is not finite, if any. */
fr_status trainer_step(trainer *t, const int32_t *events, int count, double *loss, fr_error *err);
/* Forward and backward of a step without changing the parameters; gradients[0] gets the summed
 * gradient. For tests. */
fr_status trainer_gradient(trainer *t, const int32_t *events, int count, double *loss,
                           fr_error *err);
/* A whole epoch; *loss is the mean over its events. */
fr_status trainer_epoch(trainer *t, int64_t epoch, const fr_context *context, double *loss,
                        fr_error *err);

#endif
