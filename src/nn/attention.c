/* attention.c - attention over spans of rows, with or without projected keys and values.
 *
 * The second form is for few queries over many keys. Keys and values are K_p = WK x_p + bK and
 * V_p = WV x_p + bV. With two queries per event it is wasteful to project every entry of the
 * history: in a head
 *
 *     Q . K_p        = (WK^T Q) . x_p + Q . bK
 *     sum_p a_p V_p  = WV (sum_p a_p x_p) + (sum_p a_p) bV
 *
 * where Q . bK is the same for all p, and softmax drops it. So products with WK and WV run over
 * queries, not over history, which is about a sixteenth of the work. The gradient of bK is 0. Per
 * head: U = Q WK, logits U x^T, mix M = a x, output M
 * WV^T + s bV.
 */
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/lanes.h"
#include "nn/ops.h"
#include "nn/vmath.h"

#include <string.h>

/* ---- weights of a span, [queries, keys] per head ---- */

SIMD_LOOPS void kernel_softmax(int rows, int n, real scale, real *a) {
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
    kernel_softmax(n->heads * nq, nk, scale, n->weight[c]);
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
    if (t->attention_dropout > 0) n->factor = tape_take(t, (size_t)count, sizeof *n->factor);
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

typedef struct fold_node {
    tape_node node;
    tensor q, wk, y; /* [rows, d], [d, e], [rows, heads e] */
    int heads;
} fold_node;

static void fold_back(tape_node *self) {
    fold_node *n = (fold_node *)self;
    int d = n->q.cols, e = n->wk.cols, dh = d / n->heads, rows = n->q.rows, wide = n->y.cols;
    for (int h = 0; h < n->heads; h++) {
        size_t at = (size_t)h * (size_t)dh, slice = at * (size_t)e;
        const real *du = n->y.g + h * e;
        gemm_nt(rows, dh, e, du, wide, n->wk.v + slice, e, n->q.g + at, d, true);
        gemm_tn(dh, e, rows, n->q.v + at, d, du, wide, n->wk.g + slice, e, true);
    }
}

tensor op_fold(tape *t, tensor query, int key, int heads) {
    tensor wk = tape_param(t, key);
    int d = query.cols, e = wk.cols, dh = d / heads;
    if (!tape_fits(t, wk.rows == d && dh * heads == d, "fold")) return (tensor){0};
    tensor y = tape_tensor(t, query.rows, heads * e);
    fold_node *n = tape_take(t, 1, sizeof *n);
    if (!n) return (tensor){0};
    for (int h = 0; h < heads; h++) {
        size_t at = (size_t)h * (size_t)dh;
        gemm_nn(query.rows, e, dh, query.v + at, d, wk.v + at * (size_t)e, e, y.v + h * e, y.cols,
                false);
    }
    *n = (fold_node){.q = query, .wk = wk, .y = y, .heads = heads};
    tape_note(t, &n->node, fold_back);
    return y;
}

typedef struct folded_node {
    tape_node node;
    tape *t;
    tensor u, wv, bv, y; /* [any, heads e], [d, e], [d] or none, [rows, d] */
    const int32_t *asks; /* [rows] rows of u; NULL = u has those */
    key_rows keys;
    const real *x; /* [keys, e] */
    int heads, count;
    const span *spans;
    real *mix;     /* [rows, heads e] */
    real *sums;    /* [heads, queries] of each span: sum of the weights after dropout */
    real **weight; /* [count] of [heads, queries, keys]: softmax before dropout */
    real **factor; /* [count] dropout factors of the same shape; NULL = none */
} folded_node;

/* How the products of a span run over its heads. Those of a single query are rows of one product;
 * else there is one for each head. */
typedef struct head_groups {
    int count, rows; /* rows of each */
    int ld;          /* distance of rows, in u and the like */
    size_t size;     /* weights of a group */
} head_groups;

static head_groups group_heads(const folded_node *n, span s) {
    int e = n->wv.cols, nq = span_queries(s);
    bool joint = nq == 1;
    head_groups g = {joint ? 1 : n->heads, joint ? n->heads : nq, joint ? e : n->u.cols, 0};
    g.size = (size_t)g.rows * (size_t)span_keys(s);
    return g;
}

/* Where u of a span begins. */
static size_t asked_at(const folded_node *n, span s) {
    int row = n->asks ? n->asks[s.query_from] : s.query_from;
    return (size_t)row * (size_t)n->u.cols;
}

static bool keys_are_plain(const key_rows *k) { return !k->index && !k->more.cols; }

/* The gradient of a span's keys [keys, cols] goes to the rows they were made of. */
SIMD_LOOPS static void spread_keys(const key_rows *k, span s, int cols, const real *dx) {
    int width = k->x.cols, more = k->more.cols;
    for (int p = s.key_from; p < s.key_to; p++, dx += cols) {
        real *to = k->x.g + (size_t)(k->index ? k->index[p] : p) * (size_t)width;
        for (int j = 0; j < width; j++) to[j] += dx[j];
        if (!k->more.g) continue;
        to = k->more.g + (size_t)p * (size_t)more;
        for (int j = 0; j < more; j++) to[j] += dx[width + j];
    }
}

/* One span: dX and dU from dM and ds. Columns of keys that are constants get no gradient. */
static void span_back(folded_node *n, int c, const real *d_mix, const real *d_sum) {
    span s = n->spans[c];
    head_groups g = group_heads(n, s);
    int e = n->wv.cols, dh = n->y.cols / n->heads, nk = span_keys(s);
    size_t all = g.size * (size_t)g.count, row = (size_t)s.query_from * (size_t)n->u.cols;
    size_t asked = asked_at(n, s);
    if (!all) return;
    bool plain = keys_are_plain(&n->keys);
    int cols = plain || n->keys.more.g ? e : n->keys.x.cols;
    real *da = tape_room(n->t, all), *room = tape_room(n->t, all);
    real *dx = plain ? n->keys.x.g + (size_t)s.key_from * (size_t)e
                     : tape_room(n->t, (size_t)nk * (size_t)cols);
    if (n->t->status) return;
    const real *a = n->weight[c], *factor = n->factor ? n->factor[c] : NULL;
    const real *x = n->x + (size_t)s.key_from * (size_t)e, *used = dropped(a, factor, all, room);
    real scale = (real)(1 / sqrt((double)dh));
    for (int h = 0; h < g.count; h++)
        gemm_nt(g.rows, nk, e, d_mix + row + h * e, g.ld, x, e, da + (size_t)h * g.size, nk, false);
    softmax_rows_back(g.count * g.rows, nk, scale, a, factor,
                      d_sum ? d_sum + n->heads * s.query_from : NULL, da);
    for (int h = 0; h < g.count; h++) {
        const real *da_h = da + (size_t)h * g.size, *used_h = used + (size_t)h * g.size;
        gemm_nn(g.rows, e, nk, da_h, nk, x, e, n->u.g + asked + h * e, g.ld, true);
        gemm_tn(nk, cols, g.rows, used_h, nk, d_mix + row + h * e, g.ld, dx, cols, plain || h);
        gemm_tn(nk, cols, g.rows, da_h, nk, n->u.v + asked + h * e, g.ld, dx, cols, true);
    }
    if (!plain) spread_keys(&n->keys, s, cols, dx);
}

/* ds of a span's queries, and the gradient of the value's bias. */
static void sums_back(folded_node *n, span s, real *d_sum) {
    int d = n->y.cols, dh = d / n->heads, nq = span_queries(s);
    for (int k = 0; k < n->heads * nq; k++) {
        int at = k / nq * dh;
        const real *dy = n->y.g + (size_t)(s.query_from + k % nq) * (size_t)d + at;
        real sum = n->sums[n->heads * s.query_from + k];
        d_sum[n->heads * s.query_from + k] = kernel_dot(dh, dy, n->bv.v + at);
        for (int j = 0; j < dh; j++) n->bv.g[at + j] += sum * dy[j];
    }
}

static void folded_back(tape_node *self) {
    folded_node *n = (folded_node *)self;
    int d = n->y.cols, e = n->wv.cols, dh = d / n->heads, rows = n->y.rows, wide = n->u.cols;
    real *d_mix = tape_room(n->t, (size_t)rows * (size_t)wide), *d_sum = NULL;
    if (n->bv.v) d_sum = tape_take(n->t, (size_t)(rows * n->heads), sizeof *d_sum);
    if (n->t->status) return;
    for (int h = 0; h < n->heads; h++) {
        size_t at = (size_t)h * (size_t)dh, slice = at * (size_t)e;
        gemm_nn(rows, e, dh, n->y.g + at, d, n->wv.v + slice, e, d_mix + h * e, wide, false);
        gemm_tn(dh, e, rows, n->y.g + at, d, n->mix + h * e, wide, n->wv.g + slice, e, true);
    }
    for (int c = 0; c < n->count; c++) {
        if (d_sum) sums_back(n, n->spans[c], d_sum);
        span_back(n, c, d_mix, d_sum);
    }
}

/* One span: weights, their sums and the mix, all heads. */
static void span_forward(folded_node *n, int c, int site, const row_key *keys) {
    tape *t = n->t;
    span s = n->spans[c];
    head_groups g = group_heads(n, s);
    int e = n->wv.cols, dh = n->y.cols / n->heads, nq = span_queries(s), nk = span_keys(s);
    size_t all = g.size * (size_t)g.count, row = (size_t)s.query_from * (size_t)n->u.cols;
    size_t asked = asked_at(n, s);
    if (!nk) memset(n->mix + row, 0, (size_t)(nq * n->u.cols) * sizeof *n->mix);
    if (!all) return;
    real *room = tape_room(t, all + (size_t)(7 * nq * n->heads)), *factor = NULL;
    n->weight[c] = tape_room(t, all);
    if (n->factor) n->factor[c] = factor = tape_room(t, all);
    if (t->status) return;
    const real *x = n->x + (size_t)s.key_from * (size_t)e;
    real scale = (real)(1 / sqrt((double)dh));
    if (factor) kernel_drop_weights(t, site, n->heads, nq, nk, keys + s.query_from, room, factor);
    for (int h = 0; h < g.count; h++)
        gemm_nt(g.rows, nk, e, n->u.v + asked + h * e, g.ld, x, e,
                n->weight[c] + (size_t)h * g.size, nk, false);
    kernel_softmax(n->heads * nq, nk, scale, n->weight[c]);
    const real *used = dropped(n->weight[c], factor, all, room);
    for (int k = 0; n->sums && k < n->heads * nq; k++)
        n->sums[n->heads * s.query_from + k] = kernel_sum(nk, used + (size_t)(k * nk));
    for (int h = 0; h < g.count; h++)
        gemm_nn(g.rows, e, nk, used + (size_t)h * g.size, nk, x, e, n->mix + row + h * e, g.ld,
                false);
}

/* Begins a span's outputs with s bV. */
static void begin_with_bias(const folded_node *n, span s) {
    int d = n->y.cols, dh = d / n->heads, nq = span_queries(s);
    for (int k = 0; k < n->heads * nq; k++) {
        int at = k / nq * dh;
        real *y = n->y.v + (size_t)(s.query_from + k % nq) * (size_t)d + at;
        for (int j = 0; j < dh; j++) y[j] = n->sums[n->heads * s.query_from + k] * n->bv.v[at + j];
    }
}

/* Keys as rows one after the other; NULL if the tape has failed. */
static const real *join_keys(tape *t, const key_rows *k, int e) {
    if (keys_are_plain(k)) return k->x.v;
    real *x = tape_room(t, (size_t)k->rows * (size_t)e), *to = x;
    size_t width = (size_t)k->x.cols, more = (size_t)k->more.cols;
    for (int p = 0; x && p < k->rows; p++, to += e) {
        size_t row = (size_t)(k->index ? k->index[p] : p);
        memcpy(to, k->x.v + row * width, width * sizeof *to);
        memcpy(to + width, k->more.v + (size_t)p * more, more * sizeof *to);
    }
    return x;
}

tensor op_attention_over(tape *t, tensor u, const int32_t *asks, const key_rows *over, int value,
                         int value_bias, int heads, const span *spans, int count, int site,
                         const row_key *keys) {
    tensor wv = tape_param(t, value), bv = {0};
    if (value_bias >= 0) bv = tape_param(t, value_bias);
    int d = wv.rows, e = wv.cols, dh = d / heads, rows = asks ? count : u.rows;
    if (!tape_fits(t,
                   u.cols == heads * e && over->x.cols + over->more.cols == e &&
                       (!over->more.cols || over->more.rows == over->rows) && dh * heads == d,
                   "attention"))
        return (tensor){0};
    tensor y = tape_tensor(t, rows, d);
    folded_node *n = tape_take(t, 1, sizeof *n);
    if (!n) return (tensor){0};
    *n = (folded_node){.t = t,
                       .u = u,
                       .asks = asks,
                       .wv = wv,
                       .bv = bv,
                       .y = y,
                       .keys = *over,
                       .x = join_keys(t, over, e),
                       .heads = heads,
                       .count = count,
                       .spans = spans};
    n->mix = tape_room(t, (size_t)rows * (size_t)u.cols);
    if (bv.v) n->sums = tape_take(t, (size_t)(rows * heads), sizeof(real));
    n->weight = tape_take(t, (size_t)count, sizeof *n->weight);
    if (t->attention_dropout > 0) n->factor = tape_take(t, (size_t)count, sizeof *n->factor);
    if (t->status) return (tensor){0};
    for (int c = 0; c < count; c++) {
        span_forward(n, c, site, keys);
        if (t->status) return (tensor){0};
        if (bv.v) begin_with_bias(n, spans[c]);
    }
    for (int h = 0; h < heads; h++) {
        size_t at = (size_t)h * (size_t)dh;
        gemm_nt(rows, dh, e, n->mix + h * e, u.cols, wv.v + at * (size_t)e, e, y.v + at, d,
                bv.v != NULL);
    }
    tape_note(t, &n->node, folded_back);
    return y;
}

tensor op_attention_folded(tape *t, tensor query, tensor x, int key, int value, int value_bias,
                           int heads, const span *spans, int count, int site, const row_key *keys) {
    key_rows over = {.x = x, .rows = x.rows};
    return op_attention_over(t, op_fold(t, query, key, heads), NULL, &over, value, value_bias,
                             heads, spans, count, site, keys);
}
