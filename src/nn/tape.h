/* tape.h - tensors, and the record of how they were made.
 *
 * Execution is eager: an op checks shapes, takes its output from the step's arena, runs its kernel
 * and, if recording, stores its backward step. tape_backward runs these steps in reverse. Without
 * recording, a forward pass is plain inference. A tape belongs to one worker and is reset for every
 * shard of events. Memory: step.
 *
 * An op on a tape that has failed does nothing and returns an empty tensor; the first failure stays
 * in tape->status, so a forward pass reads like formulas and is checked once, at its end.
 */
#ifndef FR_NN_TAPE_H
#define FR_NN_TAPE_H

#include "nn/params.h"

typedef struct tensor {
    int rows, cols;
    real *v; /* [rows, cols] values */
    real *g; /* [rows, cols] gradient; NULL when not recording, and of constants, which linear,
                concat, take and mean accept */
} tensor;

/* A backward step: the struct of every op begins with this. */
typedef struct tape_node {
    struct tape_node *before;
    void (*back)(struct tape_node *self);
} tape_node;

/* Where a row's dropout bits come from: f(seed, epoch, event, draw), so they depend neither on the
 * batch nor on the thread. `part` distinguishes the rows of one event. */
typedef struct row_key {
    int32_t event;
    int32_t part;
} row_key;

typedef struct tape {
    arena memory;
    tape_node *last;
    const params *params;
    real *gradient; /* [params->count] added to by backward; NULL = not recording */
    int64_t seed;   /* of dropout */
    uint32_t epoch;
    double dropout;           /* 0 = none */
    double attention_dropout; /* of attention weights */
    fr_status status;
    fr_error error;
} tape;

/* Forgets everything except the memory. */
void tape_reset(tape *t);
void tape_free(tape *t);
/* Runs all backward steps. The caller must have set the gradients of the last tensors. */
void tape_backward(tape *t);

/* For ops: a tensor whose values are to be written, with a zero gradient when recording. */
tensor tape_tensor(tape *t, int rows, int cols);
/* For ops: a tensor without a gradient. */
tensor tape_constant(tape *t, int rows, int cols);
/* For ops: numbers of this step, to be written before they are read; NULL if the tape has failed.
 */
real *tape_room(tape *t, size_t count);
/* For ops: zeroed memory of this step; NULL if the tape has failed. */
void *tape_take(tape *t, size_t count, size_t size);
/* For ops: stores a backward step; `node` is from tape_take. */
void tape_note(tape *t, tape_node *node, void (*back)(tape_node *self));
/* For ops: shapes that do not fit are a bug of the model, reported with the op's name. */
bool tape_fits(tape *t, bool fits, const char *op);

/* A parameter as a tensor: values in the flat buffer, gradient in the tape's. */
tensor tape_param(tape *t, int number);

#endif
