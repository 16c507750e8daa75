/* mlp.c - the two dense layers of a block with GELU and dropout between them, as one op.
 *
 * The middle is the widest part of a model: as four ops it has seven arrays, three of which must be
 * zeroed and all of which pass through memory several times. Here rows go through in blocks that
 * stay in the cache, and the middle has no gradient array. Values and gradients equal those of
 * op_linear, op_gelu, op_dropout, op_linear.
 */
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/ops.h"
#include "nn/vmath.h"

enum { BLOCK = 96 }; /* rows */

typedef struct mlp_node {
    tape_node node;
    tape *t;
    tensor x, w1, b1, w2, b2, y; /* [rows, in], [mid, in], [mid], [out, mid], [out], [rows, out] */
    real *before, *after;        /* [rows, mid] around GELU and dropout */
    real *factor;                /* [rows, mid] of dropout, NULL = none */
} mlp_node;

static int block_rows(int rows, int from) { return rows - from < BLOCK ? rows - from : BLOCK; }

SIMD_LOOPS static void add_rows(int rows, int cols, const real *restrict x, real *restrict sum) {
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < cols; k++) sum[k] += x[(size_t)i * (size_t)cols + (size_t)k];
}

SIMD_LOOPS static void multiply(size_t n, const real *restrict factor, real *restrict x) {
    for (size_t k = 0; k < n; k++) x[k] *= factor[k];
}

static void mlp_back(tape_node *self) {
    mlp_node *n = (mlp_node *)self;
    int rows = n->x.rows, in = n->x.cols, mid = n->w1.rows, out = n->y.cols;
    real *d = tape_room(n->t, (size_t)BLOCK * (size_t)mid);
    if (!d) return;
    for (int at = 0, count; at < rows; at += count) {
        count = block_rows(rows, at);
        size_t size = (size_t)count * (size_t)mid, middle = (size_t)at * (size_t)mid;
        const real *x = n->x.v + (size_t)at * (size_t)in;
        const real *dy = n->y.g + (size_t)at * (size_t)out;
        gemm_nn(count, mid, out, dy, out, n->w2.v, mid, d, mid, false);
        gemm_tn(out, mid, count, dy, out, n->after + middle, mid, n->w2.g, mid, true);
        add_rows(count, out, dy, n->b2.g);
        if (n->factor) multiply(size, n->factor + middle, d);
        vmath_gelu_backward((int64_t)size, n->before + middle, d, d);
        if (n->x.g)
            gemm_nn(count, in, mid, d, mid, n->w1.v, in, n->x.g + (size_t)at * (size_t)in, in,
                    true);
        gemm_tn(mid, in, count, d, mid, x, in, n->w1.g, in, true);
        add_rows(count, mid, d, n->b1.g);
    }
}

tensor op_mlp(tape *t, tensor x, const int first[2], const int second[2], int site,
              const row_key *keys) {
    tensor w1 = tape_param(t, first[0]), b1 = tape_param(t, first[1]);
    tensor w2 = tape_param(t, second[0]), b2 = tape_param(t, second[1]);
    int mid = w1.rows;
    if (!tape_fits(t, x.cols == w1.cols && b1.cols == mid && w2.cols == mid && b2.cols == w2.rows,
                   "mlp"))
        return (tensor){0};
    tensor y = tape_tensor(t, x.rows, w2.rows);
    mlp_node *n = tape_take(t, 1, sizeof *n);
    size_t kept = (size_t)(t->gradient ? x.rows : BLOCK) * (size_t)mid; /* else one block serves */
    real *before = tape_room(t, kept), *after = tape_room(t, kept);
    real *factor = site >= 0 && t->dropout > 0 ? tape_room(t, kept) : NULL;
    if (t->status) return (tensor){0};
    *n = (mlp_node){.t = t,
                    .x = x,
                    .w1 = w1,
                    .b1 = b1,
                    .w2 = w2,
                    .b2 = b2,
                    .y = y,
                    .before = before,
                    .after = after,
                    .factor = factor};
    for (int at = 0, count; at < x.rows; at += count) {
        count = block_rows(x.rows, at);
        size_t size = (size_t)count * (size_t)mid;
        size_t middle = t->gradient ? (size_t)at * (size_t)mid : 0;
        real *wide = after + middle;
        gemm_linear(count, mid, x.cols, x.v + (size_t)at * (size_t)x.cols, w1.v, b1.v,
                    before + middle);
        vmath_gelu((int64_t)size, before + middle, wide);
        if (factor) {
            kernel_dropout(t, count, mid, site, keys + at, factor + middle);
            multiply(size, factor + middle, wide);
        }
        gemm_linear(count, y.cols, mid, wide, w2.v, b2.v, y.v + (size_t)at * (size_t)y.cols);
    }
    tape_note(t, &n->node, mlp_back);
    return y;
}
