/* lha.h - a memory of pairs for the head of a model (MODELS 4): the interface for the model, its
 * fast path and tests. */
#ifndef FR_MODELS_LHA_H
#define FR_MODELS_LHA_H

#include "models/model.h"
#include "nn/ops.h"

/* [candidates, dim] hcur, which is written to the memory; *z is the input of the previous layer. It
 * does not depend on the memory. */
typedef tensor lha_hidden(const model *m, tape *t, const model_batch *b, tensor *z);

/* A pair is stored under its number in the window, so the memory is an array. The forward pass
 * finds what an event sees without any state that changes along the stream. Lifetime: run. */
typedef struct lha {
    lha_hidden *hidden;
    int dim;
    param_pair last;  /* the head's last layer (1, 2 dim): [hcur; r_uv] */
    real gamma;       /* weight of the newest state */
    int32_t every;    /* replayed events that are written together */
    int32_t *written; /* [pairs] the step that wrote last, 0 = nothing is stored */
    int32_t step;     /* steps learned since the last reset */
    real *value;      /* [pairs, dim] */
    int32_t from;     /* first event replayed, INT32_MAX = none */
    real *after;      /* [events - from, dim] the event's pair after the event */
    real *rho;        /* [pairs] w2b . r of what is stored, then [events - from] of `after`; made by
                         replay */
    arena saved;      /* rows for a writer, until the next save */
} lha;

#define LHA_OPTIONS "gamma write-every"

/* Gives the model a memory; its `open` calls this. */
fr_status lha_open(model *m, lha_hidden *hidden, int dim, param_pair last, fr_error *err);
void lha_close(model *m);
tensor lha_forward(const model *m, tape *t, const model_batch *b, model_inner *inner);
extern const model_memory lha_memory;

/* r_uv as seen at an event: NULL = nothing stored. */
const real *lha_recall(const model *m, int32_t event, int32_t candidate);
/* The contribution of the pair's memory to its score at an event, after a replay (MODELS 4.3). */
real lha_recalled(const model *m, int32_t event, int32_t candidate);

#endif
