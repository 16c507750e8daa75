/* tgn_tables.h - the parts of TGN's scoring that depend only on the checkpoint, a state or an event
 * (MODELS 5.6).
 *
 * Weights are composed so that only one product is left between softmax and norm, and only one
 * between merge and head. Matrices are (out, in). "Turned" is the input of the norm without its
 * mean, in rotated coordinates in which the product with time codes is half zero. The norm needs
 * only lengths, which stay the same.
 *
 * Tables by state have one row for each node of their side, the state in memory, then one for each
 * replayed event, the state it made. With shared ids there are no sides, and rows are places.
 */
#ifndef FR_MODELS_TGN_TABLES_H
#define FR_MODELS_TGN_TABLES_H

#include "models/tgn.h"

typedef struct tgn_tables {
    const model *m;
    const tgn *c;
    arena memory;     /* run; the caller may add to it */
    int mix_width;    /* heads * key_width */
    real *fold;       /* [heads, key_width, wide] WK_h^T WQ_h / sqrt(head width) */
    real *mix;        /* [heads, wide, key_width] WR_h WV_h */
    real *turn;       /* [wide, wide] turns */
    real *time;       /* [wide, heads, time_dim] mix of time codes, turned; 0 below the diagonal */
    real *merge;      /* [dim, wide] F1[o] with the norm's gain, of what is turned */
    real *merge_bias; /* [dim] f1, and F1[o] of the norm's bias */
    real *head;       /* [dim, dim] W1d F2 */
    real *head_bias;  /* [dim] b1, and W1d f2 */

    /* By state of a candidate. */
    real *query; /* [states, heads, key_width] fold [ s ; phi(0) ] */
    real *start; /* [states, wide] [ s ; phi(0) ] + bR, turned */
    real *own;   /* [states, dim] F1[s] s, and merge_bias */
    real *right; /* identity: [states, dim] W1d s */
    /* By state of a candidate's partner. */
    real *shown; /* [states, dim] s with identities; NULL without */
    real *value; /* [states, heads, wide] mix of s, turned */

    /* By event that can be a neighbour's when a replayed one is scored: event k of destination v,
     * counted from its first in the window, has row row[v] + k. */
    int64_t *row;  /* [destinations] */
    real *code;    /* [rows, 2, time_dim] cosines and sines of w t_j */
    real *feature; /* [rows, edges] */
    real *edge;    /* [rows, heads, wide] mix of the features, turned; NULL without */
} tgn_tables;

/* The row of a state in tables by candidate, and in tables by partner. */
static inline int64_t tgn_candidate_row(const tgn_tables *t, int64_t place) {
    const fr_window *w = t->m->w;
    if (w->source_node) return place;
    return place < w->nodes ? place - w->sources : w->destinations + (place - w->nodes) / 2;
}
static inline int64_t tgn_other_row(const tgn_tables *t, int64_t place) {
    const fr_window *w = t->m->w;
    if (w->source_node) return place;
    return place < w->nodes ? place : w->sources + (place - w->nodes) / 2;
}

/* [dim] the state of a candidate's partner, as embeddings see it. */
static inline const real *tgn_other_state(const tgn_tables *t, int64_t place) {
    if (!t->shown) return tgn_state(t->c, place);
    return t->shown + (size_t)tgn_other_row(t, place) * (size_t)t->c->dim;
}

/* The tables must be freed even on failure. */
fr_status tgn_tables_open(tgn_tables *t, const model *m, fr_error *err);
void tgn_tables_free(tgn_tables *t);

#endif
