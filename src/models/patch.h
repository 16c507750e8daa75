/* patch.h - the parameters of the patch transformer by number, shared by its forward pass, its fast
 * path and its form with pair memory. */
#ifndef FR_MODELS_PATCH_H
#define FR_MODELS_PATCH_H

#include "models/model.h"
#include "models/transformer.h"

enum { PATCH_MOST_TIME = 2048 };

typedef struct patch {
    int dim, heads, layers, history, slots, time_dim; /* slots = events of a patch */
    bool remembers;                                   /* the form with pair memory */
    double pace[PATCH_MOST_TIME / 2];                 /* exp(6k/(n - 1)) of MODELS 13.1 */
    int source, item;                                 /* identities */
    param_pair token, token_norm, join, join_norm;
    transformer_layer layer[MODEL_MOST_LAYERS];
    param_pair query, query_norm, ask, key, value, state_norm, fc1, fc2;
} patch;

/* to[time_dim] = the code of seconds: sine and cosine of log(1 + seconds) at time_dim / 2 speeds
 * (MODELS 13.1) */
void patch_time(const patch *f, double seconds, real *to);

/* A scorer of every candidate at once (MODELS 13.4). */
fr_status patch_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
