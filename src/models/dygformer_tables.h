/* dygformer_tables.h - tables of DyGFormer's fast path, made once per checkpoint (MODELS 3.5).
 * Lifetime: run. */
#ifndef FR_MODELS_DYGFORMER_TABLES_H
#define FR_MODELS_DYGFORMER_TABLES_H

#include "models/dygformer.h"
#include "models/transformer_fast.h"

/* The kept past of a side: slices of arrays in the order of the node's events, so reading
 * thousands of pasts per event is sequential in memory. */
typedef struct dygformer_past {
    int32_t count;
    const int32_t *event, *node; /* [count] events and partners */
    const double *time;          /* [count] */
} dygformer_past;

typedef struct dygformer_tables {
    const model *m;
    const dygformer *f;
    arena memory;
    turned time;         /* (slots * time_dim, channel) with the channel's bias */
    int most;            /* largest count there can be */
    real *cooc;          /* [slots, most + 1, channel] Wc_s (enc(c) + enc(0)) */
    real *more;          /* [slots, most + 1, channel] Wc_s (enc(c) - enc(0)) */
    real *identity;      /* [nodes, slots, channel] Wn_s e_x; NULL without identities */
    real *edge;          /* [events, slots, channel] We_s f_e; NULL = too large, or none */
    real *cosine, *sine; /* [entries, time_dim] of w t_j in the order of the destinations' lists;
                            NULL = too large */
    int32_t *node;       /* [2 events] partners, in the order of the window's lists of nodes */
    double *clock;       /* [2 events] the same of times */
    int64_t coded;       /* where the lists of the destinations begin */
    real *start;         /* [dim] a patch without tokens: the channels' biases */
    transformer_table layer[MODEL_MOST_LAYERS];
    turned head; /* (2 dim, dim) the head's first layer composed with the output layer */
} dygformer_tables;

/* Tables by event are made if they take at most `bytes`. */
fr_status dygformer_tables_open(dygformer_tables *t, const model *m, size_t bytes, fr_error *err);
void dygformer_tables_free(dygformer_tables *t);

/* The kept past of a node below `cut`. */
dygformer_past dygformer_past_of(const dygformer_tables *t, int32_t node, int32_t cut);

/* to[channel] = We_s f_e for slots from .. from + count - 1, `channel` apart. */
void dygformer_edge(const dygformer_tables *t, int32_t event, int from, int count, real *features,
                    real *to);

#endif
