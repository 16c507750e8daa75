/* tgn_source.h - the sources' side of TGN's fast path: once per event, all candidates share it. */
#ifndef FR_MODELS_TGN_SOURCE_H
#define FR_MODELS_TGN_SOURCE_H

#include "models/tgn_past.h"
#include "models/tgn_tables.h"

/* Scratch of one worker; rows are events. */
typedef struct tgn_source {
    real *q0;     /* [TGN_EVENTS, wide] [ s ; phi(0) ] */
    real *query;  /* [TGN_EVENTS, heads, key_width] */
    real *key;    /* [neighbors, key_width] of one event */
    real *weight; /* [heads, neighbors] of one event */
    real *sum;    /* [TGN_EVENTS, heads, key_width] weighted sums of keys */
    real *o;      /* [TGN_EVENTS, wide] */
    real *both;   /* [TGN_EVENTS, wide + dim] o and s */
    real *y;      /* [TGN_EVENTS, dim] */
    real *z;      /* [TGN_EVENTS, dim] */
} tgn_source;

fr_status tgn_source_open(tgn_source *s, const tgn_tables *t, arena *memory, fr_error *err);

/* left[count, dim] = W1s z_u + b1 + W1d f2 of the events `past` has gone to. */
void tgn_source_read(const tgn_source *s, const tgn_tables *t, const tgn_past *past,
                     const fr_query *queries, int count, real *left);

#endif
