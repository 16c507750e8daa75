/* graphmixer.h - the parameters of GraphMixer by number, shared by its forward and its fast path.
 */
#ifndef FR_MODELS_GRAPHMIXER_H
#define FR_MODELS_GRAPHMIXER_H

#include "models/model.h"

static const double GRAPHMIXER_EPS = 1e-5;

typedef struct graphmixer_layer {
    param_pair token_norm, token_fc1, token_fc2, channel_norm, channel_fc1, channel_fc2;
} graphmixer_layer;

typedef struct graphmixer {
    int dim, layers, tokens, time_dim, edge_dim, head_width;
    int hidden;      /* rows between the two token products: tokens / 2 */
    bool pool_slots; /* divide by `tokens`, otherwise by the number of slots */
    bool padded;     /* slots without an event are rows of zeros, else they do not exist */
    bool newest_last;
    param_pair time, proj, norm, output, head_src, head_dst, head_out;
    int src, dst; /* identities */
    graphmixer_layer layer[MODEL_MOST_LAYERS];
} graphmixer;

/* The divisor for pooling a node with `slots` real slots. */
static inline real graphmixer_divisor(const graphmixer *g, int slots) {
    return (real)(g->pool_slots ? g->tokens : slots > 1 ? slots : 1);
}

/* Rows of a node with this many events. */
static inline int graphmixer_rows(const graphmixer *g, int events) {
    return g->padded ? g->tokens : events;
}
/* The row of event j of so many, the oldest being 0. */
static inline int graphmixer_row(const graphmixer *g, int events, int j) {
    return g->newest_last ? graphmixer_rows(g, events) - events + j : events - 1 - j;
}

/* A scorer that encodes every destination once per event (MODELS 6.3). */
fr_status graphmixer_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
