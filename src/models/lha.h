/* lha.h - DyGFormer with a memory of pairs (MODELS 4), as its fast path and tests see it. */
#ifndef FR_MODELS_LHA_H
#define FR_MODELS_LHA_H

#include "models/dygformer.h"

/* A pair is stored under its number in the window, so the memory is an array; forward finds what an
 * event sees without any state that moves with the stream. Lifetime: run. */
typedef struct lha {
    dygformer base;   /* first: the backbone reads it as `own` */
    real gamma;       /* weight of the newest state */
    int32_t *written; /* [pairs] the step that wrote last, 0 = nothing is stored */
    int32_t step;     /* steps learned since the last reset */
    real *value;      /* [pairs, dim] */
    int32_t from;     /* first event replayed, INT32_MAX = none */
    real *after;      /* [events - from, dim] the event's pair after the event */
    real *rho;        /* [pairs] w2b . r of what is stored, then [events - from] of `after`; made by
                         replay */
    arena saved;      /* rows handed to a writer, until the next time */
} lha;

/* r_uv as seen at an event: NULL = nothing stored. */
const real *lha_recall(const model *m, int32_t event, int32_t candidate);
/* What the pair's memory adds to its score at an event, after a replay (MODELS 4.3). */
real lha_recalled(const model *m, int32_t event, int32_t candidate);

#endif
