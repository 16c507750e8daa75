/* dygformer_tables.h - tables of DyGFormer's fast path, made once per checkpoint (MODELS 3.5).
 *
 * Norms are folded into the matrix after them: W (g * hat + b) + c = (W g) hat + (W b + c). The
 * scale of attention is folded into the queries. A bias of keys adds the same number to a whole row
 * of logits and is dropped. A bias of values passes through the weights, which sum to one, and is
 * folded into the next bias. Lifetime: run.
 */
#ifndef FR_MODELS_DYGFORMER_TABLES_H
#define FR_MODELS_DYGFORMER_TABLES_H

#include "models/dygformer.h"

enum { DYGFORMER_PANEL = 32 }; /* columns of a product that are stored together */

/* A matrix (in, out) cut into panels of columns, each row-major and dense, and a bias. */
typedef struct dygformer_matrix {
    int in, out;
    real *at;
    const real *bias; /* [out]; NULL = none */
} dygformer_matrix;

/* y[rows, out] (+)= x[rows, in] of the matrix; rows of x and y are ldx and ldy apart. Without
 * adding, the result starts with the bias. */
void dygformer_product(const dygformer_matrix *w, int rows, const real *x, int ldx, real *y,
                       int ldy, bool accumulate);

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
    dygformer_matrix time; /* (slots * time_dim, channel) with the channel's bias */
    int most;              /* largest count there can be */
    real *cooc;            /* [slots, most + 1, channel] Wc_s (enc(c) + enc(0)) */
    real *more;            /* [slots, most + 1, channel] Wc_s (enc(c) - enc(0)) */
    real *identity;        /* [nodes, slots, channel] Wn_s e_x; NULL without identities */
    real *edge;            /* [events, slots, channel] We_s f_e; NULL = too large, or none */
    real *cosine, *sine;   /* [entries, time_dim] of w t_j in the order of the destinations' lists;
                              NULL = too large */
    int32_t *node;         /* [2 events] partners, in the order of the window's lists of nodes */
    double *clock;         /* [2 events] the same of times */
    int64_t coded;         /* where the lists of the destinations begin */
    real *start;           /* [dim] a patch without tokens: the channels' biases */
    struct dygformer_table_layer {
        dygformer_matrix qkv, ffn1; /* (dim, 3 dim), (dim, 4 dim) with biases */
        dygformer_matrix out, ffn2; /* (dim, dim), (4 dim, dim) */
        real *out_bias, *ffn2_bias; /* [dim] added to rows before the product */
    } layer[MODEL_MOST_LAYERS];
    dygformer_matrix head; /* (2 dim, dim) the head's first layer composed with the output layer */
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
