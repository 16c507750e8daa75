/* tgn_tables.h - what of TGN's scoring depends on the checkpoint, a state or an event alone
 * (MODELS 5.6).
 *
 * Weights are composed so that no product is left between softmax and norm but one, and none
 * between merge and head but one. "Turned" matrices are stored (in, out).
 */
#ifndef FR_MODELS_TGN_TABLES_H
#define FR_MODELS_TGN_TABLES_H

#include "models/tgn.h"

typedef struct tgn_tables {
    const model *m;
    const tgn *c;
    arena memory;     /* run; the user may add to it */
    int mix_width;    /* heads * key_width */
    real *fold;       /* [heads, key_width, wide] WK_h^T WQ_h / sqrt(head width) */
    real *mix;        /* [mix_width, wide] WR_h WV_h, turned */
    real *start;      /* [wide] [ 0 ; phi(0) ] + bR */
    real *merge;      /* [wide + dim, dim] F1 with the norm's gain, turned */
    real *merge_bias; /* [dim] f1, and F1 of the norm's bias */
    real *head;       /* [dim, dim] W1d F2, turned */
    real *head_bias;  /* [dim] b1, and W1d f2 */

    /* By state of a destination: first those of the memory, then those made by replayed events. */
    real *query; /* [states, heads, key_width] fold [ s ; phi(0) ] */
    real *right; /* identity: [states, dim] W1d s */

    /* By event that can be a neighbour's when a replayed one is scored: event k of destination v,
     * counted from its first in the window, has row row[v] + k. */
    int64_t *row;        /* [destinations] */
    real *cosine, *sine; /* [rows, time_dim] of w t_j */
    real *feature;       /* [rows, edges] */
} tgn_tables;

/* On failure too the tables must be freed. */
fr_status tgn_tables_open(tgn_tables *t, const model *m, fr_error *err);
void tgn_tables_free(tgn_tables *t);

#endif
