/* attention.c - attention over spans of rows, with keys and values projected beforehand or not.
 *
 * The second form is for few queries over many keys. Keys and values are K_p = WK x_p + bK and
 * V_p = WV x_p + bV. With two queries per event it is wasteful to project every entry of the
 * history: in a head
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
#include "nn/lanes.h"
#include "nn/ops.h"
#include "nn/simd.h"
#include "nn/vmath.h"

#include <string.h>

/* ---- weights of a span, [queries, keys] per head ---- */

/* a = softmax(scale a) of each row */
SIMD_LOOPS static void softmax_rows(int rows, int n, real scale, real *a) {
    for (int i = 0; i < rows; i++) {
        real *row = a + (size_t)i * (size_t)n;
        for (int k = 0; k < n; k++) row[k] *= scale;
        real most = row[0];
        for (int k = 1; k < n; k++) most = row[k] > most ? row[k] : most;
        for (int k = 0; k < n; k++) row[k] -= most;
    }
    vmath_exp((int64_t)rows * n, a, a);
    for (int i = 0; i < rows; i++) {
        real *row = a + (size_t)i * (size_t)n, total = 1 / lanes_sum(n, row);
        for (int k = 0; k < n; k++) row[k] *= total;
    }
}

/* From the gradient of weights after dropout to that of logits, in place: dl = a * (da - a.da) *
 * scale (MODELS 10). `more` [rows] is added to a row first, NULL = nothing. */
SIMD_LOOPS static void softmax_rows_back(int rows, int n, real scale, const real *a,
                                         const real *factor, const real *more, real *da) {
    for (int i = 0; i < rows; i++, a += n, da += n) {
        for (int k = 0; more && k < n; k++) da[k] += more[i];
        for (int k = 0; factor && k < n; k++) da[k] *= factor[(size_t)i * (size_t)n + (size_t)k];
        real along = lanes_dot(n, a, da);
        for (int k = 0; k < n; k++) da[k] = scale * a[k] * (da[k] - along);
    }
}

/* a * factor, or a itself */
SIMD_LOOPS static const real *dropped(const real *a, const real *factor, size_t size, real *room) {
    if (!factor) return a;
    for (size_t j = 0; j < size; j++) room[j] = a[j] * factor[j];
    return room;
}

/* ---- keys and values projected ---- */

/* Columns of a tensor. */
typedef struct columns {
    real *v, *g; /* [rows, cols], rows are ld apart */
    int ld;
} columns;

static columns all_columns(tensor x) { return (columns){x.v, x.g, x.cols}; }

static size_t at_row(columns x, int row) { return (size_t)row * (size_t)x.ld; }

typedef struct attention_node {
    tape_node node;
    tape *t;
    columns q, k, v;
    tensor y;
    int heads, count;
    const span *spans;
    real **weight; /* [count] of [heads, queries, keys]: softmax before dropout */
    real **factor; /* [count] dropout factors of the same shape; NULL = none */
} attention_node;

static void attention_back(tape_node *self) {
    attention_node *n = (attention_node *)self;
    int d = n->y.cols, dh = d / n->heads;
    real scale = (real)(1 / sqrt((double)dh));
    for (int c = 0; c < n->count; c++) {
        span s = n->spans[c];
        int nq = span_queries(s), nk = span_keys(s);
        size_t size = (size_t)nq * (size_t)nk;
        if (!size) continue;
        real *da = tape_room(n->t, size), *room = tape_room(n->t, size);
        if (!room) return;
        for (int h = 0; h < n->heads; h++) {
            size_t at = (size_t)(h * dh), part = (size_t)h * size;
            size_t q = at_row(n->q, s.query_from) + at, k = at_row(n->k, s.key_from) + at;
            size_t v = at_row(n->v, s.key_from) + at;
            const real *a = n->weight[c] + part, *factor = n->factor ? n->factor[c] + part : NULL;
            const real *dy = n->y.g + (size_t)s.query_from * (size_t)d + at;
            gemm_tn(nk, dh, nq, dropped(a, factor, size, room), nk, dy, d, n->v.g + v, n->v.ld,
                    true);
            gemm_nt(nq, nk, dh, dy, d, n->v.v + v, n->v.ld, da, nk, false);
            softmax_rows_back(nq, nk, scale, a, factor, NULL, da);
            gemm_nn(nq, dh, nk, da, nk, n->k.v + k, n->k.ld, n->q.g + q, n->q.ld, true);
            gemm_tn(nk, dh, nq, da, nk, n->q.v + q, n->q.ld, n->k.g + k, n->k.ld, true);
        }
    }
}

/* Weights and output of a span, all heads. */
static void attend(attention_node *n, int c, int site, const row_key *keys) {
    tape *t = n->t;
    span s = n->spans[c];
    int d = n->y.cols, dh = d / n->heads, nq = span_queries(s), nk = span_keys(s);
    size_t size = (size_t)nq * (size_t)nk, all = (size_t)n->heads * size;
    real *y = n->y.v + (size_t)s.query_from * (size_t)d;
    if (!nk) memset(y, 0, (size_t)nq * (size_t)d * sizeof *y); /* nothing to attend to: zero */
    if (!size) return;
    real scale = (real)(1 / sqrt((double)dh));
    real *room = tape_room(t, all + (size_t)(7 * nq * n->heads)), *factor = NULL;
    n->weight[c] = tape_room(t, all);
    if (n->factor) n->factor[c] = factor = tape_room(t, all);
    if (t->status) return;
    if (factor) kernel_drop_weights(t, site, n->heads, nq, nk, keys + s.query_from, room, factor);
    for (int h = 0; h < n->heads; h++) {
        size_t at = (size_t)(h * dh), part = (size_t)h * size;
        gemm_nt(nq, nk, dh, n->q.v + at_row(n->q, s.query_from) + at, n->q.ld,
                n->k.v + at_row(n->k, s.key_from) + at, n->k.ld, n->weight[c] + part, nk, false);
    }
    softmax_rows(n->heads * nq, nk, scale, n->weight[c]);
    const real *used = dropped(n->weight[c], factor, all, room);
    for (int h = 0; h < n->heads; h++) {
        size_t at = (size_t)(h * dh);
        gemm_nn(nq, dh, nk, used + (size_t)h * size, nk, n->v.v + at_row(n->v, s.key_from) + at,
                n->v.ld, y + at, d, false);
    }
}

static tensor attention(tape *t, columns q, columns k, columns v, int rows, int d, int heads,
                        const span *spans, int count, int site, const row_key *keys) {
    tensor y = tape_tensor(t, rows, d);
    attention_node *n = tape_take(t, 1, sizeof *n);
    if (!n) return (tensor){0};
    *n = (attention_node){
        .t = t, .q = q, .k = k, .v = v, .y = y, .heads = heads, .count = count, .spans = spans};
    n->weight = tape_take(t, (size_t)count, sizeof *n->weight);
    if (t->dropout > 0) n->factor = tape_take(t, (size_t)count, sizeof *n->factor);
    for (int c = 0; c < count && !t->status; c++) attend(n, c, site, keys);
    if (t->status) return (tensor){0};
    tape_note(t, &n->node, attention_back);
    return y;
}

tensor op_attention(tape *t, tensor query, tensor key, tensor value, int heads, const span *spans,
                    int count, int site, const row_key *keys) {
    int d = query.cols;
    if (!tape_fits(t, key.cols == d && value.cols == d && key.rows == value.rows && d % heads == 0,
                   "attention"))
        return (tensor){0};
    return attention(t, all_columns(query), all_columns(key), all_columns(value), query.rows, d,
                     heads, spans, count, site, keys);
}

tensor op_attention_joint(tape *t, tensor qkv, int heads, const span *spans, int count, int site,
                          const row_key *keys) {
    int d = qkv.cols / 3;
    if (!tape_fits(t, qkv.cols == 3 * d && d % heads == 0, "attention")) return (tensor){0};
    columns part[3];
    for (int p = 0; p < 3; p++)
        part[p] = (columns){qkv.v + p * d, qkv.g ? qkv.g + p * d : NULL, qkv.cols};
    return attention(t, part[0], part[1], part[2], qkv.rows, d, heads, spans, count, site, keys);
}

/* ---- keys and values not projected ---- */

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
    softmax_rows_back(nq, nk, scale, a, factor, d_sum + s.query_from, da);
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
    size_t all = size * (size_t)n->heads;
    real *room = tape_room(t, all + (size_t)(7 * nq * n->heads)), *factor = NULL;
    n->weight[c] = tape_room(t, all);
    if (n->factor) n->factor[c] = factor = tape_room(t, all);
    if (t->status) return;
    const real *x = n->x.v + (size_t)s.key_from * ld;
    real scale = (real)(1 / sqrt((double)dh));
    if (factor) kernel_drop_weights(t, site, n->heads, nq, nk, keys + s.query_from, room, factor);
    for (int h = 0; h < n->heads; h++) {
        size_t row = (size_t)h * (size_t)rows + (size_t)s.query_from;
        gemm_nt(nq, nk, e, n->u + row * ld, e, x, e, n->weight[c] + (size_t)h * size, nk, false);
    }
    softmax_rows(n->heads * nq, nk, scale, n->weight[c]);
    const real *used = dropped(n->weight[c], factor, all, room);
    for (int h = 0; h < n->heads; h++, used += size) {
        size_t row = (size_t)h * (size_t)rows + (size_t)s.query_from;
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
