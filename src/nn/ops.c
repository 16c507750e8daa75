/* ops.c - see ops.h: forward and backward of each op side by side, shapes beside the arrays.
 *
 * Sums over a row use sixteen fixed lanes, so a row's result does not depend on where it stands.
 * Products go through gemm, elementwise functions through vmath, for the same reason.
 */
#include "nn/ops.h"

#include "base/rng.h"
#include "nn/gemm.h"
#include "nn/lanes.h"
#include "nn/simd.h"
#include "nn/vmath.h"

#include <string.h>

/* ---- kernels ---- */

SIMD_LOOPS real kernel_sum(int n, const real *x) { return lanes_sum(n, x); }

SIMD_LOOPS real kernel_dot(int n, const real *x, const real *y) { return lanes_dot(n, x, y); }

SIMD_LOOPS void kernel_softmax(int n, real *x) {
    if (n <= 0) return;
    real most = x[0];
    for (int k = 1; k < n; k++) most = x[k] > most ? x[k] : most;
    for (int k = 0; k < n; k++) x[k] -= most;
    vmath_exp(n, x, x);
    real scale = 1 / lanes_sum(n, x);
    for (int k = 0; k < n; k++) x[k] *= scale;
}

/* ---- rows of a table ---- */

typedef struct rows_node {
    tape_node node;
    tensor table, y;
    const int32_t *index; /* [y.rows] */
} rows_node;

SIMD_LOOPS static void rows_back(tape_node *self) {
    rows_node *n = (rows_node *)self;
    for (int i = 0; i < n->y.rows; i++) {
        real *to = n->table.g + (size_t)n->index[i] * (size_t)n->y.cols;
        const real *from = n->y.g + (size_t)i * (size_t)n->y.cols;
        for (int k = 0; k < n->y.cols; k++) to[k] += from[k];
    }
}

tensor op_rows(tape *t, int table, int n, const int32_t *index) {
    tensor from = tape_param(t, table);
    tensor y = tape_tensor(t, n, from.cols);
    rows_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (int i = 0; i < n; i++)
        memcpy(y.v + (size_t)i * (size_t)y.cols, from.v + (size_t)index[i] * (size_t)y.cols,
               (size_t)y.cols * sizeof *y.v);
    *node = (rows_node){.table = from, .y = y, .index = index};
    tape_note(t, &node->node, rows_back);
    return y;
}

/* ---- linear ---- */

typedef struct linear_node {
    tape_node node;
    tensor x, w, b, y; /* [rows, in], [out, in], [out], [rows, out] */
} linear_node;

SIMD_LOOPS static void linear_back(tape_node *self) {
    linear_node *n = (linear_node *)self;
    int rows = n->x.rows, in = n->x.cols, out = n->y.cols;
    if (n->x.g) gemm_nn(rows, in, out, n->y.g, out, n->w.v, in, n->x.g, in, true);
    gemm_tn(out, in, rows, n->y.g, out, n->x.v, in, n->w.g, in, true);
    for (int i = 0; n->b.g && i < rows; i++)
        for (int k = 0; k < out; k++) n->b.g[k] += n->y.g[(size_t)i * (size_t)out + (size_t)k];
}

tensor op_linear(tape *t, tensor x, int weight, int bias) {
    tensor w = tape_param(t, weight), b = {.cols = w.rows};
    if (bias >= 0) b = tape_param(t, bias);
    if (!tape_fits(t, x.cols == w.cols && b.cols == w.rows, "linear")) return (tensor){0};
    tensor y = tape_tensor(t, x.rows, w.rows);
    linear_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    gemm_linear(x.rows, y.cols, x.cols, x.v, w.v, b.v, y.v);
    *node = (linear_node){.x = x, .w = w, .b = b, .y = y};
    tape_note(t, &node->node, linear_back);
    return y;
}

/* ---- elementwise ---- */

typedef struct pair_node {
    tape_node node;
    tensor a, b, y;
} pair_node;

static size_t size_of(tensor x) { return (size_t)x.rows * (size_t)x.cols; }

SIMD_LOOPS static void add_back(tape_node *self) {
    pair_node *n = (pair_node *)self;
    for (size_t k = 0; k < size_of(n->y); k++) {
        n->a.g[k] += n->y.g[k];
        n->b.g[k] += n->y.g[k];
    }
}

SIMD_LOOPS tensor op_add(tape *t, tensor a, tensor b) {
    if (!tape_fits(t, a.rows == b.rows && a.cols == b.cols, "add")) return (tensor){0};
    tensor y = tape_tensor(t, a.rows, a.cols);
    pair_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (size_t k = 0; k < size_of(y); k++) y.v[k] = a.v[k] + b.v[k];
    *node = (pair_node){.a = a, .b = b, .y = y};
    tape_note(t, &node->node, add_back);
    return y;
}

SIMD_LOOPS static void gelu_back(tape_node *self) {
    pair_node *n = (pair_node *)self;
    vmath_gelu_backward((int64_t)size_of(n->y), n->a.v, n->y.g,
                        n->y.g); /* dy is not needed again */
    for (size_t k = 0; k < size_of(n->y); k++) n->a.g[k] += n->y.g[k];
}

tensor op_gelu(tape *t, tensor x) {
    tensor y = tape_tensor(t, x.rows, x.cols);
    pair_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    vmath_gelu((int64_t)size_of(x), x.v, y.v);
    *node = (pair_node){.a = x, .y = y};
    tape_note(t, &node->node, gelu_back);
    return y;
}

SIMD_LOOPS static void relu_back(tape_node *self) {
    pair_node *n = (pair_node *)self;
    for (size_t k = 0; k < size_of(n->y); k++) n->a.g[k] += n->a.v[k] > 0 ? n->y.g[k] : 0;
}

SIMD_LOOPS tensor op_relu(tape *t, tensor x) {
    tensor y = tape_tensor(t, x.rows, x.cols);
    pair_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (size_t k = 0; k < size_of(x); k++) y.v[k] = x.v[k] > 0 ? x.v[k] : 0;
    *node = (pair_node){.a = x, .y = y};
    tape_note(t, &node->node, relu_back);
    return y;
}

SIMD_LOOPS static void prelu_back(tape_node *self) {
    pair_node *n = (pair_node *)self;
    real slope = n->b.v[0], lane[LANES] = {0};
    for (size_t k = 0; k < size_of(n->y); k++) {
        bool below = n->a.v[k] < 0;
        n->a.g[k] += below ? slope * n->y.g[k] : n->y.g[k];
        lane[k % LANES] += below ? n->y.g[k] * n->a.v[k] : 0;
    }
    n->b.g[0] += lanes_fold(lane);
}

SIMD_LOOPS tensor op_prelu(tape *t, tensor x, int slope) {
    tensor s = tape_param(t, slope), y = tape_tensor(t, x.rows, x.cols);
    pair_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (size_t k = 0; k < size_of(x); k++) y.v[k] = x.v[k] < 0 ? s.v[0] * x.v[k] : x.v[k];
    *node = (pair_node){.a = x, .b = s, .y = y};
    tape_note(t, &node->node, prelu_back);
    return y;
}

/* ---- scalar codes ---- */

typedef struct code_node {
    tape_node node;
    const real *x; /* [rows] */
    tensor w, b, y;
} code_node;

SIMD_LOOPS static void code_back(tape_node *self) {
    code_node *n = (code_node *)self;
    int cols = n->y.cols;
    for (int i = 0; i < n->y.rows; i++)
        for (int k = 0; k < cols; k++) {
            real dy = n->y.g[(size_t)i * (size_t)cols + (size_t)k];
            n->w.g[k] += n->x[i] * dy;
            n->b.g[k] += dy;
        }
}

SIMD_LOOPS tensor op_code(tape *t, int n, const real *x, int weight, int bias) {
    tensor w = tape_param(t, weight), b = tape_param(t, bias);
    if (!tape_fits(t, w.cols == 1 && w.rows == b.cols, "code")) return (tensor){0};
    tensor y = tape_tensor(t, n, w.rows);
    code_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < y.cols; k++)
            y.v[(size_t)i * (size_t)y.cols + (size_t)k] = w.v[k] * x[i] + b.v[k];
    *node = (code_node){.x = x, .w = w, .b = b, .y = y};
    tape_note(t, &node->node, code_back);
    return y;
}

/* ---- concatenation ---- */

enum { MOST_PARTS = 4 };

typedef struct concat_node {
    tape_node node;
    int count;
    tensor part[MOST_PARTS], y;
} concat_node;

SIMD_LOOPS static void concat_back(tape_node *self) {
    concat_node *n = (concat_node *)self;
    for (int i = 0; i < n->y.rows; i++) {
        const real *from = n->y.g + (size_t)i * (size_t)n->y.cols;
        for (int p = 0; p < n->count; p++) {
            int cols = n->part[p].cols;
            real *to = n->part[p].g ? n->part[p].g + (size_t)i * (size_t)cols : NULL;
            for (int k = 0; to && k < cols; k++) to[k] += from[k];
            from += cols;
        }
    }
}

tensor op_concat(tape *t, int count, const tensor *parts) {
    int cols = 0;
    bool constant = true;
    for (int p = 0; p < count; p++) {
        constant = constant && !parts[p].g;
        if (!tape_fits(t, count <= MOST_PARTS && parts[p].rows == parts[0].rows, "concat"))
            return (tensor){0};
        cols += parts[p].cols;
    }
    tensor y =
        constant ? tape_constant(t, parts[0].rows, cols) : tape_tensor(t, parts[0].rows, cols);
    concat_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    *node = (concat_node){.count = count, .y = y};
    for (int p = 0, at = 0; p < count; at += parts[p++].cols) {
        node->part[p] = parts[p];
        for (int i = 0; i < y.rows; i++)
            memcpy(y.v + (size_t)i * (size_t)cols + (size_t)at,
                   parts[p].v + (size_t)i * (size_t)parts[p].cols,
                   (size_t)parts[p].cols * sizeof *y.v);
    }
    if (!constant) tape_note(t, &node->node, concat_back);
    return y;
}

/* ---- dropout ---- */

/* Sixteen random bits per element: eight elements to a block of numbers. The rate used is the
 * nearest multiple of 2^-16, and kept values are scaled by exactly its complement. */
static real drop_threshold(const tape *t, uint32_t *threshold) {
    *threshold = (uint32_t)(t->dropout * 65536 + 0.5);
    return (real)(65536.0 / (65536.0 - *threshold));
}

/* factor[k] = 0 or `keep` for n elements that begin at element `from` of (event, site). */
SIMD_LOOPS static void drop_factors(const tape *t, int32_t event, int site, int64_t from, int n,
                                    real *factor) {
    uint32_t threshold;
    real keep = drop_threshold(t, &threshold);
    rng_key key = {.seed = (uint64_t)t->seed, .purpose = RNG_DROPOUT, .epoch = t->epoch};
    enum { BLOCKS = 48 };
    rng_block bits[BLOCKS];
    uint16_t half[8 * BLOCKS]; /* the words' halves, low one first */
    for (int k = 0; k < n; k += 8 * BLOCKS) {
        int m = n - k < 8 * BLOCKS ? n - k : 8 * BLOCKS;
        rng_fill(key, (uint64_t)event, (uint32_t)site << 26 | (uint32_t)((from + k) / 8),
                 (m + 7) / 8, bits);
        memcpy(half, bits, (size_t)(m + 7) / 8 * sizeof *bits);
        for (int j = 0; j < m; j++) factor[k + j] = half[j] < threshold ? 0 : keep;
    }
}

void kernel_drop_weights(const tape *t, row_key from, int site, int heads, int head, int n,
                         real *factor) {
    int64_t width = (n + 7) / 8 * 8;
    drop_factors(t, from.event, site, (from.part * (int64_t)heads + head) * width, n, factor);
}

void kernel_dropout(const tape *t, int rows, int cols, int site, const row_key *keys,
                    real *factor) {
    int width = (cols + 7) / 8 * 8; /* a row begins with a fresh block of numbers */
    for (int i = 0, run; i < rows;
         i += run) { /* rows of one event that follow each other come at once */
        for (run = 1; width == cols && i + run < rows; run++)
            if (keys[i + run].event != keys[i].event || keys[i + run].part != keys[i].part + run)
                break;
        drop_factors(t, keys[i].event, site, (int64_t)keys[i].part * width, run * cols,
                     factor + (size_t)i * (size_t)cols);
    }
}

typedef struct dropout_node {
    tape_node node;
    tensor x, y;
    real *factor; /* [rows, cols] */
} dropout_node;

SIMD_LOOPS static void dropout_back(tape_node *self) {
    dropout_node *n = (dropout_node *)self;
    for (size_t k = 0; k < size_of(n->y); k++) n->x.g[k] += n->y.g[k] * n->factor[k];
}

SIMD_LOOPS tensor op_dropout(tape *t, tensor x, int site, const row_key *keys) {
    if (t->dropout <= 0 || t->status) return x;
    tensor y = tape_tensor(t, x.rows, x.cols);
    dropout_node *node = tape_take(t, 1, sizeof *node);
    real *factor = tape_room(t, size_of(x));
    if (!factor) return (tensor){0};
    kernel_dropout(t, x.rows, x.cols, site, keys, factor);
    for (size_t k = 0; k < size_of(x); k++) y.v[k] = x.v[k] * factor[k];
    *node = (dropout_node){.x = x, .y = y, .factor = factor};
    tape_note(t, &node->node, dropout_back);
    return y;
}

/* ---- attention ---- */

typedef struct attention_node {
    tape_node node;
    tape *t;
    tensor q, k, v, y;
    int heads, count;
    const span *spans;
    real **weight; /* [count] of [heads, queries, keys]: softmax before dropout */
    real **factor; /* [count] dropout factors of the same shape; NULL = none */
} attention_node;

static void attention_back(tape_node *self) {
    attention_node *n = (attention_node *)self;
    int d = n->q.cols, dh = d / n->heads;
    real scale = (real)(1 / sqrt((double)dh));
    for (int c = 0; c < n->count; c++) {
        span s = n->spans[c];
        int nq = span_queries(s), nk = span_keys(s);
        size_t q0 = (size_t)s.query_from * (size_t)d, k0 = (size_t)s.key_from * (size_t)d;
        if (!nq || !nk) continue;
        real *da = tape_room(n->t, (size_t)nq * (size_t)nk);
        real *dropped = tape_room(n->t, (size_t)nq * (size_t)nk);
        if (!dropped) return;
        for (int h = 0; h < n->heads; h++) {
            size_t at = (size_t)(h * dh), part = (size_t)h * (size_t)nq * (size_t)nk;
            const real *a = n->weight[c] + part;
            const real *factor = n->factor ? n->factor[c] + part : NULL;
            const real *dy = n->y.g + q0 + at;
            size_t size = (size_t)nq * (size_t)nk;
            for (size_t j = 0; j < size; j++) dropped[j] = factor ? a[j] * factor[j] : a[j];
            gemm_tn(nk, dh, nq, dropped, nk, dy, d, n->v.g + k0 + at, d, true);
            gemm_nt(nq, nk, dh, dy, d, n->v.v + k0 + at, d, da, nk, false);
            for (int i = 0; i < nq; i++) { /* dl = a * (da - a.da) (MODELS 10) */
                real *row = da + (size_t)i * (size_t)nk;
                const real *w = a + (size_t)i * (size_t)nk;
                if (factor)
                    for (int j = 0; j < nk; j++)
                        row[j] *= factor[(size_t)i * (size_t)nk + (size_t)j];
                real along = kernel_dot(nk, w, row);
                for (int j = 0; j < nk; j++) row[j] = scale * w[j] * (row[j] - along);
            }
            gemm_nn(nq, dh, nk, da, nk, n->k.v + k0 + at, d, n->q.g + q0 + at, d, true);
            gemm_tn(nk, dh, nq, da, nk, n->q.v + q0 + at, d, n->k.g + k0 + at, d, true);
        }
    }
}

tensor op_attention(tape *t, tensor query, tensor key, tensor value, int heads, const span *spans,
                    int count, int site, const row_key *keys) {
    int d = query.cols, dh = d / heads;
    if (!tape_fits(t, key.cols == d && value.cols == d && key.rows == value.rows && dh * heads == d,
                   "attention"))
        return (tensor){0};
    bool drop = t->dropout > 0;
    real scale = (real)(1 / sqrt((double)dh));
    tensor y = tape_tensor(t, query.rows, d);
    attention_node *node = tape_take(t, 1, sizeof *node);
    real **weight = tape_take(t, (size_t)count, sizeof *weight);
    real **factor = drop ? tape_take(t, (size_t)count, sizeof *factor) : NULL;
    real *mixed = NULL;
    for (int c = 0; c < count; c++) {
        span s = spans[c];
        int nq = span_queries(s), nk = span_keys(s);
        size_t q0 = (size_t)s.query_from * (size_t)d, k0 = (size_t)s.key_from * (size_t)d;
        size_t size = (size_t)heads * (size_t)nq * (size_t)nk;
        if (!nk && nq && !t->status) /* nothing to attend to: the zero vector */
            memset(y.v + q0, 0, (size_t)nq * (size_t)d * sizeof *y.v);
        if (!nq || !nk) continue;
        real *w = tape_room(t, size);
        real *f = drop ? tape_room(t, size) : NULL;
        if (drop) mixed = tape_room(t, size);
        if (t->status) return (tensor){0};
        weight[c] = w;
        if (drop) factor[c] = f;
        for (int h = 0; h < heads; h++) {
            size_t at = (size_t)(h * dh), part = (size_t)h * (size_t)nq * (size_t)nk;
            gemm_nt(nq, nk, dh, query.v + q0 + at, d, key.v + k0 + at, d, w + part, nk, false);
            for (int i = 0; i < nq; i++) {
                real *row = w + part + (size_t)i * (size_t)nk;
                for (int j = 0; j < nk; j++) row[j] *= scale;
                kernel_softmax(nk, row);
                if (!drop) continue;
                row_key from = keys[s.query_from + i];
                size_t r = part + (size_t)i * (size_t)nk;
                kernel_drop_weights(t, from, site, heads, h, nk, f + r);
                for (int j = 0; j < nk; j++) mixed[r + (size_t)j] = row[j] * f[r + (size_t)j];
            }
            gemm_nn(nq, dh, nk, (drop ? mixed : w) + part, nk, value.v + k0 + at, d, y.v + q0 + at,
                    d, false);
        }
    }
    if (t->status) return (tensor){0};
    *node = (attention_node){.t = t,
                             .q = query,
                             .k = key,
                             .v = value,
                             .y = y,
                             .heads = heads,
                             .count = count,
                             .spans = spans,
                             .weight = weight,
                             .factor = factor};
    tape_note(t, &node->node, attention_back);
    return y;
}
