/* tgn_past.c - see tgn_past.h. */
#include "models/tgn_past.h"

#include <string.h>

fr_status tgn_past_open(tgn_past *p, const model *m, arena *memory, fr_error *err) {
    const fr_window *w = m->w;
    *p = (tgn_past){.c = m->own, .w = w, .count = 1, .cut = {INT32_MAX}}; /* the first go resets */
    TRY(TAKE(memory, p->seen, w->destinations, err));
    TRY(TAKE(memory, p->source, w->sources, err));
    TRY(TAKE(memory, p->destination, w->destinations, err));
    TRY(TAKE(memory, p->source_moves, w->sources, err));
    return TAKE(memory, p->destination_moves, w->destinations, err);
}

static void start_again(tgn_past *p) {
    const fr_window *w = p->w;
    for (int32_t u = 0; u < w->sources; u++) p->source[u] = -1;
    for (int32_t v = 0; v < w->destinations; v++) p->destination[v] = -1;
    memset(p->seen, 0, (size_t)w->destinations * sizeof *p->seen);
    memset(p->source_moves, 0, (size_t)w->sources * sizeof *p->source_moves);
    memset(p->destination_moves, 0, (size_t)w->destinations * sizeof *p->destination_moves);
    p->cut[0] = 0;
    p->count = 1;
}

/* Takes in events cut[0] .. cut - 1; those between the old cuts move nobody any more. */
static void pass(tgn_past *p, int32_t cut) {
    const fr_window *w = p->w;
    int32_t moved = p->cut[p->count - 1], end = cut > moved ? cut : moved;
    for (int32_t e = p->cut[0]; e < end; e++) {
        int32_t u = w->source[e], v = w->destination[e];
        p->source_moves[u] = p->destination_moves[v] = 0;
        if (e >= cut) continue;
        p->seen[v]++;
        if (e >= p->c->from) p->source[u] = p->destination[v] = e;
    }
}

void tgn_past_go(tgn_past *p, const fr_query *queries, int count) {
    int32_t cut = window_cut(p->w, queries[0].event);
    if (cut < p->cut[0]) start_again(p);
    pass(p, cut);
    p->count = count;
    p->cut[0] = cut;
    for (int i = 1; i < count; i++) {
        p->cut[i] = window_cut(p->w, queries[i].event);
        for (int32_t e = p->cut[i - 1]; e < p->cut[i]; e++) {
            p->source_moves[p->w->source[e]] |= 1u << i;
            p->destination_moves[p->w->destination[e]] |= 1u << i;
        }
    }
}

/* Those of the moves that come before event i, and those after. */
static inline uint32_t until(uint32_t moves, int i) { return moves & ((2u << i) - 1); }
static inline uint32_t after(uint32_t moves, int i) { return moves & ~((2u << i) - 1); }

/* The row of a node's state: `nodes` of its side are in the memory. */
static inline int64_t row_of(const tgn *c, int32_t node, int32_t nodes, int32_t last) {
    return last < c->from ? node : (int64_t)nodes + (last - c->from);
}

int64_t tgn_past_source(const tgn_past *p, int32_t u, int i) {
    int32_t last = p->source[u];
    if (until(p->source_moves[u], i)) last = *window_source_history(p->w, u, p->cut[i], 1).event;
    return row_of(p->c, u, p->w->sources, last);
}

int64_t tgn_past_destination(const tgn_past *p, int32_t v, int i) {
    int32_t last = p->destination[v];
    if (until(p->destination_moves[v], i))
        last = *window_destination_history(p->w, v, p->cut[i], 1).event;
    return row_of(p->c, v, p->w->destinations, last);
}

void tgn_past_stretch(const tgn_past *p, int32_t v, int from, tgn_stretch *out) {
    const fr_window *w = p->w;
    const int32_t *event = w->destination_events + w->destination_at[v];
    int32_t seen = p->seen[v], most = p->c->neighbors;
    uint32_t moves = p->destination_moves[v];
    if (until(moves, from))
        seen = events_below(event, w->destination_at[v + 1] - w->destination_at[v], p->cut[from]);
    out->from = from;
    out->state = tgn_past_destination(p, v, from);
    out->count = seen < most ? seen : most;
    out->first = seen - out->count;
    for (int32_t j = 0; j < out->count; j++) {
        int32_t u = w->source[event[out->first + j]];
        out->source[j] = tgn_past_source(p, u, from);
        moves |= p->source_moves[u];
    }
    moves = after(moves, from);
    out->to = moves ? __builtin_ctz(moves) : p->count;
}
