/* attention.c - attention of few queries over many keys, with the projections folded into the query
 * side.
 *
 * Keys and values are K_p = WK x_p + bK and V_p = WV x_p + bV. With two queries per event it is
 * wasteful to project every entry of the history: in a head
 *
 *     Q . K_p        = (WK^T Q) . x_p + Q . bK
 *     sum_p a_p V_p  = WV (sum_p a_p x_p) + (sum_p a_p) bV
 *
 * where Q . bK is the same for all p, and softmax drops it;
 * so products with WK and WV run over queries, not over history, about a sixteenth of the work. bK
 * gets no gradient, which is its true one. Per head: U = Q WK, logits U x^T, mix M = a x, output M
 * WV^T + s bV.
 */
#include "nn/gemm.h"
#include "nn/ops.h"

#include <string.h>

typedef struct folded_node {
    tape_node node;
    tape *t;
    tensor q, x, wk, wv, bv, y; /* [rows, d], [keys, e], [d, e], [d, e], [d] or none, [rows, d] */
    int heads, count;
    const span *spans;
    real *u, *mix; /* [heads, rows, e] */
    real *sums;    /* [heads, rows] s: sum of the weights after dropout */
    real **weight; /* [count] of [heads, queries, keys]: softmax before dropout */
    real **factor; /* [count] dropout factors of the same shape; NULL = none */
} folded_node;

/* out = a * factor, or a itself */
static const real *dropped(const real *a, const real *factor, size_t size, real *room) {
    if (!factor) return a;
    for (size_t j = 0; j < size; j++) room[j] = a[j] * factor[j];
    return room;
}

/* One event of one head: dX and dU from dM and ds. */
static void span_back(folded_node *n, int c, int h, const real *d_mix, const real *d_sum,
                      real *du) {
    span s = n->spans[c];
    int e = n->x.cols, dh = n->q.cols / n->heads, rows = n->q.rows;
    int nq = span_queries(s), nk = span_keys(s);
    if (!nq || !nk) return;
    size_t size = (size_t)nq * (size_t)nk, part = (size_t)h * size, ld = (size_t)e;
    real *da = tape_room(n->t, size), *room = tape_room(n->t, size);
    if (!room) return;
    const real *a = n->weight[c] + part, *factor = n->factor ? n->factor[c] + part : NULL;
    const real *x = n->x.v + (size_t)s.key_from * ld, *dm = d_mix + (size_t)s.query_from * ld;
    const real *u = n->u + ((size_t)h * (size_t)rows + (size_t)s.query_from) * ld;
    real *dx = n->x.g + (size_t)s.key_from * ld;
    real scale = (real)(1 / sqrt((double)dh));
    gemm_tn(nk, e, nq, dropped(a, factor, size, room), nk, dm, e, dx, e, true);
    gemm_nt(nq, nk, e, dm, e, x, e, da, nk, false);
    for (int i = 0; i < nq; i++) { /* dl = a * (da - a.da) * scale (MODELS 10) */
        real *row = da + (size_t)i * (size_t)nk;
        const real *w = a + (size_t)i * (size_t)nk;
        for (int j = 0; j < nk; j++) {
            row[j] += d_sum[s.query_from + i];
            if (factor) row[j] *= factor[(size_t)i * (size_t)nk + (size_t)j];
        }
        real along = kernel_dot(nk, w, row);
        for (int j = 0; j < nk; j++) row[j] = scale * w[j] * (row[j] - along);
    }
    gemm_nn(nq, e, nk, da, nk, x, e, du + (size_t)s.query_from * ld, e, false);
    gemm_tn(nk, e, nq, da, nk, u, e, dx, e, true);
}

static void folded_back(tape_node *self) {
    folded_node *n = (folded_node *)self;
    int d = n->q.cols, e = n->x.cols, dh = d / n->heads, rows = n->q.rows;
    size_t all = (size_t)rows * (size_t)e;
    real *d_mix = tape_room(n->t, all), *d_sum = tape_take(n->t, (size_t)rows, sizeof *d_sum);
    real *du = tape_take(n->t, all, sizeof *du);
    if (!du) return;
    for (int h = 0; h < n->heads; h++) {
        size_t at = (size_t)h * (size_t)dh, slice = at * (size_t)e;
        const real *mix = n->mix + (size_t)h * all, *sums = n->sums + (size_t)h * (size_t)rows;
        gemm_nn(rows, e, dh, n->y.g + at, d, n->wv.v + slice, e, d_mix, e, false);
        gemm_tn(dh, e, rows, n->y.g + at, d, mix, e, n->wv.g + slice, e, true);
        for (int i = 0; n->bv.v && i < rows; i++) {
            const real *dy = n->y.g + (size_t)i * (size_t)d + at;
            d_sum[i] = kernel_dot(dh, dy, n->bv.v + at);
            for (int k = 0; k < dh; k++) n->bv.g[at + (size_t)k] += sums[i] * dy[k];
        }
        memset(du, 0, all * sizeof *du); /* queries without keys stay zero */
        for (int c = 0; c < n->count; c++) span_back(n, c, h, d_mix, d_sum, du);
        gemm_nt(rows, dh, e, du, e, n->wk.v + slice, e, n->q.g + at, d, true);
        gemm_tn(dh, e, rows, n->q.v + at, d, du, e, n->wk.g + slice, e, true);
    }
}

/* One event: weights, their sums and the mix, all heads. */
static void span_forward(folded_node *n, int c, int site, const row_key *keys) {
    tape *t = n->t;
    span s = n->spans[c];
    int e = n->x.cols, dh = n->q.cols / n->heads, rows = n->q.rows;
    int nq = span_queries(s), nk = span_keys(s);
    if (!nq || !nk) return;
    size_t size = (size_t)nq * (size_t)nk, ld = (size_t)e;
    n->weight[c] = tape_room(t, size * (size_t)n->heads);
    if (n->factor) n->factor[c] = tape_room(t, size * (size_t)n->heads);
    real *room = tape_room(t, size);
    if (!room) return;
    const real *x = n->x.v + (size_t)s.key_from * ld;
    real scale = (real)(1 / sqrt((double)dh));
    for (int h = 0; h < n->heads; h++) {
        real *a = n->weight[c] + (size_t)h * size,
             *factor = n->factor ? n->factor[c] + (size_t)h * size : NULL;
        size_t row = (size_t)h * (size_t)rows + (size_t)s.query_from;
        gemm_nt(nq, nk, e, n->u + row * ld, e, x, e, a, nk, false);
        for (int i = 0; i < nq; i++) {
            real *line = a + (size_t)i * (size_t)nk;
            for (int j = 0; j < nk; j++) line[j] *= scale;
            kernel_softmax(nk, line);
            if (factor)
                kernel_drop_weights(t, keys[s.query_from + i], site, n->heads, h, nk,
                                    factor + (size_t)i * (size_t)nk);
        }
        const real *used = dropped(a, factor, size, room);
        for (int i = 0; i < nq; i++)
            n->sums[row + (size_t)i] = kernel_sum(nk, used + (size_t)i * (size_t)nk);
        gemm_nn(nq, e, nk, used, nk, x, e, n->mix + row * ld, e, false);
    }
}

tensor op_attention_folded(tape *t, tensor query, tensor x, int key, int value, int value_bias,
                           int heads, const span *spans, int count, int site, const row_key *keys) {
    int d = query.cols, e = x.cols, dh = d / heads, rows = query.rows;
    tensor wk = tape_param(t, key), wv = tape_param(t, value), bv = {0};
    if (value_bias >= 0) bv = tape_param(t, value_bias);
    if (!tape_fits(t,
                   wk.rows == d && wk.cols == e && wv.rows == d && wv.cols == e && dh * heads == d,
                   "attention"))
        return (tensor){0};
    size_t all = (size_t)rows * (size_t)e;
    tensor y = tape_tensor(t, rows, d);
    folded_node *n = tape_take(t, 1, sizeof *n);
    if (!n) return (tensor){0};
    *n = (folded_node){.t = t,
                       .q = query,
                       .x = x,
                       .wk = wk,
                       .wv = wv,
                       .bv = bv,
                       .y = y,
                       .heads = heads,
                       .count = count,
                       .spans = spans};
    n->u = tape_room(t, all * (size_t)heads);
    n->mix = tape_take(t, all * (size_t)heads, sizeof(real)); /* queries without keys: zero */
    n->sums = tape_take(t, (size_t)rows * (size_t)heads, sizeof(real));
    n->weight = tape_take(t, (size_t)count, sizeof *n->weight);
    if (t->dropout > 0) n->factor = tape_take(t, (size_t)count, sizeof *n->factor);
    if (t->status) return (tensor){0};
    for (int h = 0; h < heads; h++) {
        size_t at = (size_t)h * (size_t)dh;
        gemm_nn(rows, e, dh, query.v + at, d, wk.v + at * (size_t)e, e, n->u + (size_t)h * all, e,
                false);
    }
    for (int c = 0; c < count; c++) span_forward(n, c, site, keys);
    if (t->status) return (tensor){0};
    for (int h = 0; h < heads; h++) {
        size_t at = (size_t)h * (size_t)dh;
        for (int i = 0; bv.v && i < rows; i++)
            for (int k = 0; k < dh; k++)
                y.v[(size_t)i * (size_t)d + at + (size_t)k] =
                    n->sums[(size_t)h * (size_t)rows + (size_t)i] * bv.v[at + (size_t)k];
        gemm_nt(rows, dh, e, n->mix + (size_t)h * all, e, wv.v + at * (size_t)e, e, y.v + at, d,
                bv.v != NULL);
    }
    tape_note(t, &n->node, folded_back);
    return y;
}
