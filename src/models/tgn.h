/* tgn.h - the parameters of TGN by number and its memory, shared by forward, updates and fast path.
 *
 * Nodes are the window's. A state of a node is named by its place: places 0 .. nodes-1 are the
 * memory itself; place nodes + 2 (e - from) is the source's state after replayed event e, and the
 * next one is that of its destination (if a node met itself, both are the same). So the state of a
 * node before a cut is that of its last event in [from, cut), which the window's index finds. No
 * state needs to be updated from event to event.
 */
#ifndef FR_MODELS_TGN_H
#define FR_MODELS_TGN_H

#include "models/model.h"
#include "nn/ops.h"

typedef struct tgn {
    int dim, time_dim, edges, heads, neighbors;
    bool identity; /* embedding is the memory: no attention, no merge */
    int node;      /* identities [nodes, dim], added to memories that are read; -1 = none */
    int wide;      /* dim + time_dim: queries */
    int key_width; /* dim + edges + time_dim: width of a neighbour */
    int message_width;
    bool mlp;        /* messages go through two dense layers before the GRU */
    bool file_clock; /* times as in the data, otherwise since the window's start */

    param_pair time;
    param_pair message1, message2;
    gru_params gru;
    int query, key, value;
    param_pair out, norm, fc1, fc2, head1, head2;

    /* memory (MODELS 5.1); lifetime: run */
    int32_t nodes;
    real *memory;    /* [nodes, dim] s */
    double *updated; /* [nodes] l: time of the last update */
    real *message;   /* [nodes, message_width] pending ones */
    double *due;     /* [nodes] their times */
    bool *pending;   /* [nodes] */

    /* replayed events; none while training */
    int32_t from;  /* the first; the window's end = none */
    real *version; /* [events - from, 2, dim] */
} tgn;

/* [rows, dim] the states after messages x, a constant that begins with the previous states. The
 * caller sets the rows after those of x to constants. */
tensor tgn_update(const model *m, tape *t, tensor x, int rows);

fr_status tgn_memory_open(model *m, fr_error *err);
void tgn_memory_close(tgn *c);
extern const model_memory tgn_memory;

/* The place of a node's state after the events below `cut`. O(log degree). */
int64_t tgn_place(const tgn *c, const fr_window *w, int32_t node, int32_t cut);

static inline const real *tgn_state(const tgn *c, int64_t place) {
    const real *from = place < c->nodes ? c->memory : c->version;
    return from + (size_t)(place < c->nodes ? place : place - c->nodes) * (size_t)c->dim;
}

/* The node's state after replayed event e. */
static inline int64_t tgn_made(const tgn *c, const fr_window *w, int32_t node, int32_t event) {
    bool destination = window_source_node(w, w->source[event]) != node;
    return c->nodes + 2 * (int64_t)(event - c->from) + destination;
}

/* The node of a state. */
static inline int32_t tgn_node(const tgn *c, const fr_window *w, int64_t place) {
    if (place < c->nodes) return (int32_t)place;
    int32_t event = c->from + (int32_t)((place - c->nodes) / 2);
    return (place - c->nodes) % 2 ? window_destination_node(w, w->destination[event])
                                  : window_source_node(w, w->source[event]);
}

/* to[dim] = the state as embeddings see it: with the identity of its node, if there are identities.
 */
void tgn_show(const model *m, int64_t place, real *to);

/* A scorer through composed matrices and precomputed keys of states (MODELS 5.6). */
fr_status tgn_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
