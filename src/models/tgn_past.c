/* tgn_past.c - see tgn_past.h. */
#include "models/tgn_past.h"

#include <string.h>

fr_status tgn_past_open(tgn_past *p, const model *m, arena *memory, fr_error *err) {
    const fr_window *w = m->w;
    *p = (tgn_past){.c = m->own, .w = w, .count = 1, .cut = {INT32_MAX}}; /* reset at first use */
    TRY(TAKE(memory, p->seen, w->nodes, err));
    TRY(TAKE(memory, p->last, w->nodes, err));
    return TAKE(memory, p->moves, w->nodes, err);
}

static void start_again(tgn_past *p) {
    int32_t nodes = p->w->nodes;
    for (int32_t x = 0; x < nodes; x++) p->last[x] = -1;
    memset(p->seen, 0, (size_t)nodes * sizeof *p->seen);
    memset(p->moves, 0, (size_t)nodes * sizeof *p->moves);
    p->cut[0] = 0;
    p->count = 1;
}

/* Reads events cut[0] .. cut - 1, and clears the moves between the old cuts. */
static void pass(tgn_past *p, int32_t cut) {
    const fr_window *w = p->w;
    int32_t moved = p->cut[p->count - 1], end = cut > moved ? cut : moved;
    for (int32_t e = p->cut[0]; e < end; e++) {
        int32_t u = window_source_node(w, w->source[e]),
                v = window_destination_node(w, w->destination[e]);
        p->moves[u] = p->moves[v] = 0;
        if (e >= cut) continue;
        p->seen[u]++;
        p->seen[v]++;
        if (e >= p->c->from) p->last[u] = p->last[v] = e;
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
            p->moves[window_source_node(p->w, p->w->source[e])] |= 1u << i;
            p->moves[window_destination_node(p->w, p->w->destination[e])] |= 1u << i;
        }
    }
}

/* The moves before event i, and those after. */
static inline uint32_t until(uint32_t moves, int i) { return moves & ((2u << i) - 1); }
static inline uint32_t after(uint32_t moves, int i) { return moves & ~((2u << i) - 1); }

int64_t tgn_past_place(const tgn_past *p, int32_t node, int i) {
    int32_t last = p->last[node];
    if (until(p->moves[node], i)) last = *window_node_history(p->w, node, p->cut[i], 1).event;
    return last < p->c->from ? node : tgn_made(p->c, p->w, node, last);
}

void tgn_past_stretch(const tgn_past *p, int32_t v, int from, tgn_stretch *out) {
    const fr_window *w = p->w;
    int32_t node = window_destination_node(w, v), seen = p->seen[node], most = p->c->neighbors;
    fr_history all = window_node_events(w, node);
    uint32_t moves = p->moves[node];
    if (until(moves, from)) seen = events_below(all.event, all.count, p->cut[from]);
    out->from = from;
    out->state = tgn_past_place(p, node, from);
    out->count = seen < most ? seen : most;
    out->first = seen - out->count;
    for (int32_t j = 0; j < out->count; j++) {
        int32_t other = window_other(w, node, all.event[out->first + j]);
        out->other[j] = tgn_past_place(p, other, from);
        moves |= p->moves[other];
    }
    moves = after(moves, from);
    out->to = moves ? __builtin_ctz(moves) : p->count;
}
