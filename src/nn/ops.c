/* ops.c - see ops.h: the forward and backward pass of each op, with shapes in the comments.
 *
 * Sums over a row use sixteen fixed lanes, so a row's result does not depend on its position.
 * Products go through gemm, elementwise functions through vmath, for the same reason.
 */
#include "nn/ops.h"

#include "base/rng.h"
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/lanes.h"
#include "nn/vmath.h"

#include <string.h>

/* ---- kernels ---- */

SIMD_LOOPS real kernel_sum(int n, const real *x) { return lanes_sum(n, x); }

SIMD_LOOPS real kernel_dot(int n, const real *x, const real *y) { return lanes_dot(n, x, y); }

/* ---- rows of a table ---- */

typedef struct rows_node {
    tape_node node;
    tensor table, y;
    const int32_t *index; /* [y.rows] */
} rows_node;

SIMD_LOOPS static void rows_back(tape_node *self) {
    rows_node *n = (rows_node *)self;
    for (int i = 0; i < n->y.rows; i++) {
        if (n->index[i] < 0) continue;
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
    for (int i = 0; i < n; i++) {
        real *to = y.v + (size_t)i * (size_t)y.cols;
        if (index[i] < 0)
            memset(to, 0, (size_t)y.cols * sizeof *to);
        else
            memcpy(to, from.v + (size_t)index[i] * (size_t)y.cols, (size_t)y.cols * sizeof *to);
    }
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

typedef struct beside_node {
    tape_node node;
    tape *t;
    tensor x, more, w, b, y; /* [rows, n], [others, m], [out, n + m], [out], [rows, out] */
    const int32_t *index;    /* [rows] of more */
    int x_at, more_at;       /* columns of w */
} beside_node;

/* to[index[i]] += from[i] */
SIMD_LOOPS static void add_taken(int rows, int cols, const real *from, const int32_t *index,
                                 real *to) {
    for (int i = 0; i < rows; i++, from += cols) {
        real *restrict sum = to + (size_t)index[i] * (size_t)cols;
        for (int k = 0; k < cols; k++) sum[k] += from[k];
    }
}

SIMD_LOOPS static void add_rows(int rows, int cols, const real *from, real *restrict sum) {
    for (int i = 0; i < rows; i++, from += cols)
        for (int k = 0; k < cols; k++) sum[k] += from[k];
}

static void beside_back(tape_node *self) {
    beside_node *n = (beside_node *)self;
    int rows = n->x.rows, others = n->more.rows, out = n->y.cols, in = n->w.cols;
    int cols = n->x.cols, more = n->more.cols;
    real *sums = tape_take(n->t, (size_t)others * (size_t)out, sizeof *sums);
    if (!sums) return;
    add_taken(rows, out, n->y.g, n->index, sums);
    gemm_nn(others, more, out, sums, out, n->w.v + n->more_at, in, n->more.g, more, true);
    gemm_tn(out, more, others, sums, out, n->more.v, more, n->w.g + n->more_at, in, true);
    gemm_nn(rows, cols, out, n->y.g, out, n->w.v + n->x_at, in, n->x.g, cols, true);
    gemm_tn(out, cols, rows, n->y.g, out, n->x.v, cols, n->w.g + n->x_at, in, true);
    add_rows(others, out, sums, n->b.g);
}

tensor op_linear_beside(tape *t, tensor x, tensor more, const int32_t *index, bool more_first,
                        int weight, int bias) {
    tensor w = tape_param(t, weight), b = tape_param(t, bias);
    int out = w.rows, x_at = more_first ? more.cols : 0, more_at = more_first ? 0 : x.cols;
    if (!tape_fits(t, x.cols + more.cols == w.cols && b.cols == out, "linear")) return (tensor){0};
    tensor y = tape_tensor(t, x.rows, out);
    beside_node *node = tape_take(t, 1, sizeof *node);
    real *part = tape_room(t, (size_t)more.rows * (size_t)out);
    if (!part) return (tensor){0};
    size_t width = (size_t)out;
    for (int i = 0; i < more.rows; i++) memcpy(part + (size_t)i * width, b.v, width * sizeof *part);
    gemm_nt(more.rows, out, more.cols, more.v, more.cols, w.v + more_at, w.cols, part, out, true);
    for (int i = 0; i < x.rows; i++)
        memcpy(y.v + (size_t)i * width, part + (size_t)index[i] * width, width * sizeof *part);
    gemm_nt(x.rows, out, x.cols, x.v, x.cols, w.v + x_at, w.cols, y.v, out, true);
    *node = (beside_node){.t = t,
                          .x = x,
                          .more = more,
                          .w = w,
                          .b = b,
                          .y = y,
                          .index = index,
                          .x_at = x_at,
                          .more_at = more_at};
    tape_note(t, &node->node, beside_back);
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

typedef struct dot_node {
    tape_node node;
    tensor a, b, y;
    real scale;
} dot_node;

SIMD_LOOPS static void dot_back(tape_node *self) {
    dot_node *n = (dot_node *)self;
    int cols = n->a.cols;
    for (int i = 0; i < n->y.rows; i++) {
        size_t at = (size_t)i * (size_t)cols;
        real g = n->scale * n->y.g[i];
        for (int k = 0; k < cols; k++) n->a.g[at + (size_t)k] += g * n->b.v[at + (size_t)k];
        for (int k = 0; k < cols; k++) n->b.g[at + (size_t)k] += g * n->a.v[at + (size_t)k];
    }
}

tensor op_dot(tape *t, tensor a, tensor b, double scale) {
    if (!tape_fits(t, a.rows == b.rows && a.cols == b.cols, "dot")) return (tensor){0};
    tensor y = tape_tensor(t, a.rows, 1);
    dot_node *n = tape_take(t, 1, sizeof *n);
    if (!n) return (tensor){0};
    *n = (dot_node){.a = a, .b = b, .y = y, .scale = (real)scale};
    for (int i = 0; i < a.rows; i++)
        y.v[i] = n->scale * kernel_dot(a.cols, a.v + (size_t)i * (size_t)a.cols,
                                       b.v + (size_t)i * (size_t)a.cols);
    tape_note(t, &n->node, dot_back);
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
    const real *x = n->a.v, *dy = n->y.g;
    real *restrict dx = n->a.g;
    for (size_t k = 0, size = size_of(n->y); k < size; k++) {
        real slope = dy[k]; /* read in any case, or the loop is not one of vectors */
        dx[k] += x[k] > 0 ? slope : 0;
    }
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
static real drop_threshold(double rate, uint32_t *threshold) {
    *threshold = (uint32_t)(rate * 65536 + 0.5);
    return (real)(65536.0 / (65536.0 - *threshold));
}

/* factor[k] = 0 or `keep` for n elements that begin at element `from` of (event, site). */
SIMD_LOOPS static void drop_factors(const tape *t, double rate, int32_t event, int site,
                                    int64_t from, int n, real *factor) {
    uint32_t threshold;
    real keep = drop_threshold(rate, &threshold);
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

/* How many of n keys follow each other in one event: their numbers come at once. */
static int keys_run(int n, const row_key *keys) {
    int run = 1;
    while (run < n && keys[run].event == keys[0].event && keys[run].part == keys[0].part + run)
        run++;
    return run;
}

void kernel_drop_weights(const tape *t, int site, int heads, int queries, int n,
                         const row_key *keys, real *room, real *factor) {
    int width = (n + 7) / 8 * 8; /* of a head of a query: it begins with a fresh block of numbers */
    for (int i = 0, run; i < queries; i += run) {
        run = keys_run(queries - i, keys + i);
        drop_factors(t, t->attention_dropout, keys[i].event, site,
                     (int64_t)keys[i].part * heads * width, run * heads * width, room);
        for (int k = 0; k < run * heads; k++)
            memcpy(factor + (size_t)(k % heads * queries + i + k / heads) * (size_t)n,
                   room + (size_t)k * (size_t)width, (size_t)n * sizeof *factor);
    }
}

void kernel_dropout(const tape *t, int rows, int cols, int site, const row_key *keys,
                    real *factor) {
    int width = (cols + 7) / 8 * 8; /* a row begins with a fresh block of numbers */
    for (int i = 0, run; i < rows; i += run) {
        run = width == cols ? keys_run(rows - i, keys + i) : 1;
        drop_factors(t, t->dropout, keys[i].event, site, (int64_t)keys[i].part * width, run * cols,
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

SIMD_LOOPS static void residual_back(tape_node *self) {
    dropout_node *n = (dropout_node *)self; /* the gradient of the sum is that of y->v already */
    for (size_t k = 0; k < size_of(n->y); k++)
        n->x.g[k] += n->factor ? n->y.g[k] * n->factor[k] : n->y.g[k];
}

SIMD_LOOPS tensor op_residual(tape *t, tensor x, tensor more, int site, const row_key *keys) {
    if (!tape_fits(t, x.rows == more.rows && x.cols == more.cols, "residual")) return (tensor){0};
    dropout_node *node = tape_take(t, 1, sizeof *node);
    real *factor = t->dropout > 0 ? tape_room(t, size_of(x)) : NULL;
    if (t->status) return (tensor){0};
    if (factor) kernel_dropout(t, x.rows, x.cols, site, keys, factor);
    for (size_t k = 0; k < size_of(x); k++) x.v[k] += factor ? more.v[k] * factor[k] : more.v[k];
    *node = (dropout_node){.x = more, .y = x, .factor = factor};
    tape_note(t, &node->node, residual_back);
    return x;
}
