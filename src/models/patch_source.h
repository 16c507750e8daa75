/* patch_source.h - the source's side of the patch transformer in its fast path: the patches of
 * several events through all blocks, without a tape (MODELS 13.2). */
#ifndef FR_MODELS_PATCH_SOURCE_H
#define FR_MODELS_PATCH_SOURCE_H

#include "models/patch.h"
#include "models/transformer_fast.h"

/* A worker's numbers. Rows are patches, those of all events one after the other. */
typedef struct patch_room {
    int32_t *from; /* [events + 1] first row of an event; each has at least one */
    real *x;       /* [rows, dim] what candidates attend to */
    real *entry;   /* [rows * slots, dim + time_dim] identity and time code of tokens */
    real *token;   /* [rows * slots, dim] */
    real *hat;     /* [rows * slots, dim] normalised tokens or rows */
    real *qkv;     /* [rows, 3 dim] */
    real *mix;     /* [rows, dim] */
    real *wide;    /* [rows of a block, 4 dim] */
    real *logits;  /* [most, most in whole lanes] of a head's keys and queries */
    real *total;   /* [most in whole lanes] */
} patch_room;

/* What all workers read. Lifetime: run. */
typedef struct patch_source {
    const model *m;
    const patch *f;
    int most;   /* patches of an event; at least one */
    int events; /* at once */
    turned token, join;
    transformer_table layer[MODEL_MOST_LAYERS];
    void (*run)(const struct patch_source *p, patch_room *room, const fr_query *queries, int count);
} patch_source;

fr_status patch_source_open(patch_source *p, const model *m, arena *memory, fr_error *err);
fr_status patch_room_make(const patch_source *p, arena *memory, patch_room *room, fr_error *err);
/* Sets from and x for `count` events. */
static inline void patch_source_run(const patch_source *p, patch_room *room,
                                    const fr_query *queries, int count) {
    p->run(p, room, queries, count);
}

#endif
