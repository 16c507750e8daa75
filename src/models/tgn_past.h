/* tgn_past.h - what a worker of TGN's fast path knows of the past: for some events at once, which
 * state every node is in, and which events are a candidate's neighbours.
 *
 * A worker stands at the cut of the first of its events and goes forward with the events it is
 * given; going back, it starts again. From one event to the next few nodes change, so a candidate
 * sees the same past at most of them: its stretches.
 *
 * States are named as rows of tables by state (tgn_tables.h): those of the memory first, then those
 * made by replayed events.
 */
#ifndef FR_MODELS_TGN_PAST_H
#define FR_MODELS_TGN_PAST_H

#include "models/tgn.h"

enum { TGN_EVENTS = 32 }; /* at once; at most the bits of tgn_past.source_moves */

typedef struct tgn_past {
    const tgn *c;
    const fr_window *w;
    int count;               /* events asked for */
    int32_t cut[TGN_EVENTS]; /* their cuts, ascending */
    /* Before cut[0]: */
    int32_t *seen;        /* [destinations] events */
    int32_t *source;      /* [sources] the last replayed event, -1 = none */
    int32_t *destination; /* [destinations] */
    /* Bit i: it has an event between the cuts i - 1 and i. */
    uint32_t *source_moves, *destination_moves;
} tgn_past;

/* Events from .. to - 1 of those asked for, before which a candidate, its neighbours and their
 * states are the same. */
typedef struct tgn_stretch {
    int from, to;
    int64_t state; /* of the candidate */
    int32_t first; /* its neighbours are its events first .. first + count - 1 */
    int32_t count;
    int64_t *source; /* [neighbors] states of their sources; the caller's */
} tgn_stretch;

fr_status tgn_past_open(tgn_past *p, const model *m, arena *memory, fr_error *err);

/* Goes to `count` events (at most TGN_EVENTS), ascending. */
void tgn_past_go(tgn_past *p, const fr_query *queries, int count);

/* The stretch of candidate v that begins with event `from`. */
void tgn_past_stretch(const tgn_past *p, int32_t v, int from, tgn_stretch *out);

/* States before event i. */
int64_t tgn_past_source(const tgn_past *p, int32_t u, int i);
int64_t tgn_past_destination(const tgn_past *p, int32_t v, int i);

/* Where a state is kept. */
static inline const real *tgn_source_state(const tgn *c, int64_t row) {
    return tgn_state(c, row < c->sources ? row : c->nodes + 2 * (row - c->sources));
}
static inline const real *tgn_destination_state(const tgn *c, int64_t row) {
    int32_t nodes = c->nodes - c->sources;
    return tgn_state(c, row < nodes ? c->sources + row : c->nodes + 2 * (row - nodes) + 1);
}

#endif
