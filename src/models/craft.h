/* craft.h - the parameters of CRAFT(-R) by number, shared by its forward and its fast path. */
#ifndef FR_MODELS_CRAFT_H
#define FR_MODELS_CRAFT_H

#include "models/model.h"

typedef struct craft_layer {
    param_pair query, key, value, out, attn_norm, ffn1, ffn2, ffn_norm;
} craft_layer;

typedef struct craft {
    int dim, heads, layers, head_layers;
    int attend, history; /* last events that attention reads; in which repeats are counted */
    bool repeat;         /* CRAFT-R */
    bool pad;            /* without history attention gives the mean of empty slots, else zero */
    int z;               /* width of the vector that enters the head */
    int items;           /* rows of `item`: destinations, then with shared ids the other nodes */
    int item, position, prelu;
    param_pair input_norm, elapsed, elapsed_norm, repeats, repeat_norm, fc1, fc2;
    craft_layer layer[MODEL_MOST_LAYERS];
} craft;

/* The row of `item` for the partner of a node in an event. */
static inline int32_t craft_met(const fr_window *w, int32_t node, int32_t event) {
    return window_other(w, node, event) - w->first_destination;
}

/* x_v of MODELS 2.1: seconds since the destination last occurred before `cut`, rounded to float;
 * -100000 if it has not. */
real craft_elapsed(const fr_window *w, int32_t event, int32_t cut, int32_t destination);

/* A scorer through tables made once per checkpoint (MODELS 2.6). */
fr_status craft_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
