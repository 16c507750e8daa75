/* tgn_past.h - the past for a worker of TGN's fast path: for some events at once, the state of
 * every node, and the events of a candidate's neighbours.
 *
 * A worker is at the cut of the first of its events and moves forward with its events; to move
 * back, it starts again. From one event to the next few nodes change, so a candidate sees the same
 * past at several events in a row: a stretch. States are named by their places (tgn.h).
 */
#ifndef FR_MODELS_TGN_PAST_H
#define FR_MODELS_TGN_PAST_H

#include "models/tgn.h"

enum { TGN_EVENTS = 32 }; /* at once; at most the bits of tgn_past.moves */

typedef struct tgn_past {
    const tgn *c;
    const fr_window *w;
    int count;               /* requested events */
    int32_t cut[TGN_EVENTS]; /* their cuts, ascending */
    int32_t *seen;           /* [nodes] events before cut[0] */
    int32_t *last;           /* [nodes] the last replayed one of these, -1 = none */
    uint32_t *moves;         /* [nodes] bit i: it has an event between the cuts i - 1 and i */
} tgn_past;

/* A range of requested events, from .. to - 1, before which a candidate, its neighbours and their
 * states are the same. */
typedef struct tgn_stretch {
    int from, to;
    int64_t state; /* of the candidate */
    int32_t first; /* its neighbours are its events first .. first + count - 1 */
    int32_t count;
    int64_t *other; /* [neighbors] states of its partners; the caller owns it */
} tgn_stretch;

fr_status tgn_past_open(tgn_past *p, const model *m, arena *memory, fr_error *err);

/* Goes to `count` events (at most TGN_EVENTS), ascending. */
void tgn_past_go(tgn_past *p, const fr_query *queries, int count);

/* The stretch of candidate v that begins with event `from`. */
void tgn_past_stretch(const tgn_past *p, int32_t v, int from, tgn_stretch *out);

/* The state of a node before event i. */
int64_t tgn_past_place(const tgn_past *p, int32_t node, int i);

#endif
