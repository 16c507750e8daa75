/* gru.c - one step of a gated recurrent unit (MODELS 5.2), for the memories of nodes.
 *
 *     r = sig(Wir x + bir + Whr s + bhr)      z = sig(Wiz x + biz + Whz s + bhz)
 *     n = tanh(Win x + bin + r * (Whn s + bhn))      y = (1 - z) * n + z * s
 *
 * Input x is a constant: memory carries no gradient from step to step, so only the weights learn.
 * x begins with the state s, so s is not a separate argument, and the two sides of gates r and z
 * are one product, forward and backward. Weights have row blocks r, z, n.
 */
#include "base/simd.h"
#include "nn/gemm.h"
#include "nn/ops.h"
#include "nn/vmath.h"

#include <string.h>

static inline void add_to(int n, real *restrict sum, const real *restrict more) {
    for (int k = 0; k < n; k++) sum[k] += more[k];
}

SIMD_LOOPS void kernel_gru_join(int in, int dim, gru_weights *w, real *room) {
    real *bias = room + 2 * (size_t)dim * (size_t)dim;
    memcpy(room, w->hidden, 2 * (size_t)dim * (size_t)dim * sizeof *room);
    for (int i = 0; i < 2 * dim; i++)
        add_to(dim, room + (size_t)i * (size_t)dim, w->input + (size_t)i * (size_t)in);
    for (int i = 0; i < 2 * dim; i++) bias[i] = w->input_bias[i] + w->hidden_bias[i];
    w->both = room;
    w->both_bias = bias;
}

void kernel_gru(int rows, int in, int dim, const real *x, const gru_weights *w, real *gates,
                real *y) {
    int two = 2 * dim, wide = 3 * dim;
    size_t d = (size_t)dim;
    real *hidden = gates + 3 * (size_t)rows * d;
    gemm_nt_from(rows, two, dim, x, in, w->both, dim, w->both_bias, gates, wide);
    gemm_nt(rows, two, in - dim, x + dim, in, w->input + dim, in, gates, wide, true);
    gemm_nt_from(rows, dim, in, x, in, w->input + 2 * d * (size_t)in, in, w->input_bias + two,
                 gates + two, wide);
    gemm_nt_from(rows, dim, dim, x, in, w->hidden + 2 * d * d, dim, w->hidden_bias + two, hidden,
                 dim);
    for (int i = 0; i < rows; i++) {
        real *r = gates + 3 * (size_t)i * d, *z = r + d, *n = z + d;
        const real *h = hidden + (size_t)i * d, *s = x + (size_t)i * (size_t)in;
        real *to = y + (size_t)i * d;
        vmath_sigmoid(two, r, r);
        for (int k = 0; k < dim; k++) n[k] += r[k] * h[k];
        vmath_tanh(dim, n, n);
        for (int k = 0; k < dim; k++) to[k] = (1 - z[k]) * n[k] + z[k] * s[k];
    }
}

typedef struct gru_node {
    tape_node node;
    tape *t;
    tensor x, y;           /* [updated, in], [rows, dim] */
    tensor wi, wh, bi, bh; /* [3 dim, in], [3 dim, dim], [3 dim], [3 dim] */
    real *gates;           /* [updated, 3 dim] r, z, n; [updated, dim] hidden side of n */
} gru_node;

/* A row of gates_back; nothing overlaps. */
static inline void row_back(int dim, const real *restrict gates, const real *restrict h,
                            const real *restrict s, const real *restrict dy, real *restrict dr,
                            real *restrict dz, real *restrict dn, real *restrict dh) {
    const real *r = gates, *z = r + dim, *new = z + dim;
    for (int k = 0; k < dim; k++) {
        real d_new = (1 - z[k]) * dy[k] * (1 - new[k] * new[k]);
        dr[k] = d_new * h[k] * r[k] * (1 - r[k]);
        dz[k] = (s[k] - new[k]) * dy[k] * z[k] * (1 - z[k]);
        dn[k] = d_new;
        dh[k] = d_new * r[k];
    }
}

/* Gradients of the gates before their functions (MODELS 10): `input` [rows, 3 dim] and, of the
 * hidden side, that of n [rows, dim], the only one that differs; and those of the biases. */
SIMD_LOOPS static void gates_back(const gru_node *n, real *input, real *hidden) {
    int rows = n->x.rows, dim = n->y.cols, wide = 3 * dim;
    const real *gates = n->gates, *h = gates + (size_t)rows * (size_t)wide;
    const real *s = n->x.v, *dy = n->y.g;
    for (int i = 0; i < rows; i++) {
        row_back(dim, gates, h, s, dy, input, input + dim, input + 2 * dim, hidden);
        add_to(wide, n->bi.g, input);
        add_to(2 * dim, n->bh.g, input);
        add_to(dim, n->bh.g + 2 * dim, hidden);
        gates += wide, input += wide;
        h += dim, s += n->x.cols, dy += dim, hidden += dim;
    }
}

/* The hidden weights of r and z have the gradient of the first columns of their input weights.
 * `both` [2 dim, in] is that of the input weights. */
SIMD_LOOPS static void add_both(const gru_node *n, const real *both) {
    int in = n->x.cols, dim = n->y.cols;
    for (int i = 0; i < 2 * dim; i++, both += in) {
        add_to(in, n->wi.g + (size_t)i * (size_t)in, both);
        add_to(dim, n->wh.g + (size_t)i * (size_t)dim, both);
    }
}

static void gru_back(tape_node *self) {
    gru_node *n = (gru_node *)self;
    int rows = n->x.rows, in = n->x.cols, dim = n->y.cols, wide = 3 * dim;
    size_t d = (size_t)dim, two = 2 * d;
    real *input = tape_room(n->t, (size_t)rows * 3 * d),
         *hidden = tape_room(n->t, (size_t)rows * d);
    real *both = tape_room(n->t, two * (size_t)in);
    if (n->t->status) return;
    gates_back(n, input, hidden);
    gemm_tn(2 * dim, in, rows, input, wide, n->x.v, in, both, in, false);
    add_both(n, both);
    gemm_tn(dim, in, rows, input + two, wide, n->x.v, in, n->wi.g + two * (size_t)in, in, true);
    gemm_tn(dim, dim, rows, hidden, dim, n->x.v, in, n->wh.g + two * d, dim, true);
}

tensor op_gru(tape *t, tensor x, int rows, const gru_params *w) {
    tensor wi = tape_param(t, w->input), wh = tape_param(t, w->hidden);
    tensor bi = tape_param(t, w->input_bias), bh = tape_param(t, w->hidden_bias);
    int dim = wh.cols;
    if (!tape_fits(t,
                   !x.g && x.rows <= rows && x.cols >= dim && wi.rows == 3 * dim &&
                       wi.cols == x.cols && wh.rows == 3 * dim && bi.cols == 3 * dim &&
                       bh.cols == 3 * dim,
                   "gru"))
        return (tensor){0};
    tensor y = tape_tensor(t, rows, dim);
    gru_node *n = tape_take(t, 1, sizeof *n);
    real *gates = tape_room(t, 4 * (size_t)x.rows * (size_t)dim);
    real *room = tape_room(t, 2 * (size_t)dim * ((size_t)dim + 1));
    if (t->status) return (tensor){0};
    gru_weights weights = {.input = wi.v, .hidden = wh.v, .input_bias = bi.v, .hidden_bias = bh.v};
    kernel_gru_join(x.cols, dim, &weights, room);
    kernel_gru(x.rows, x.cols, dim, x.v, &weights, gates, y.v);
    *n = (gru_node){.t = t, .x = x, .y = y, .wi = wi, .wh = wh, .bi = bi, .bh = bh, .gates = gates};
    tape_note(t, &n->node, gru_back);
    return y;
}

/* ---- both sides given ---- */

typedef struct gates_node {
    tape_node node;
    tensor input, hidden, s, y; /* [n, 3 dim] twice, [n, dim], [rows, dim] */
    real *gates;                /* [n, 3 dim] r, z, n */
} gates_node;

SIMD_LOOPS static void both_back(tape_node *self) {
    gates_node *n = (gates_node *)self;
    int dim = n->y.cols, wide = 3 * dim;
    for (int i = 0; i < n->input.rows; i++) {
        size_t at = (size_t)i * (size_t)wide, row = (size_t)i * (size_t)dim;
        const real *gates = n->gates + at, *h = n->hidden.v + at + 2 * dim;
        real back[4 * 1024], *dh = back + wide; /* the widest dim there is */
        row_back(dim, gates, h, n->s.v + row, n->y.g + row, back, back + dim, back + 2 * dim, dh);
        add_to(wide, n->input.g + at, back);
        add_to(2 * dim, n->hidden.g + at, back);
        add_to(dim, n->hidden.g + at + 2 * dim, dh);
    }
}

tensor op_gates(tape *t, tensor input, tensor hidden, tensor s, int rows) {
    int dim = s.cols, n = s.rows;
    if (!tape_fits(t,
                   !s.g && input.rows == n && hidden.rows == n && input.cols == 3 * dim &&
                       hidden.cols == 3 * dim && n <= rows && dim <= 1024,
                   "gates"))
        return (tensor){0};
    tensor y = tape_tensor(t, rows, dim);
    gates_node *node = tape_take(t, 1, sizeof *node);
    real *gates = tape_room(t, 3 * (size_t)n * (size_t)dim);
    if (t->status) return (tensor){0};
    for (int i = 0; i < n; i++) {
        size_t at = 3 * (size_t)i * (size_t)dim;
        real *r = gates + at, *z = r + dim, *new = z + dim, *to = y.v + (size_t)i *(size_t)dim;
        const real *x = input.v + at, *h = hidden.v + at, *state = s.v + (size_t)i * (size_t)dim;
        for (int k = 0; k < 2 * dim; k++) r[k] = x[k] + h[k];
        vmath_sigmoid(2 * dim, r, r);
        for (int k = 0; k < dim; k++) new[k] = x[2 * dim + k] + r[k] * h[2 * dim + k];
        vmath_tanh(dim, new, new);
        for (int k = 0; k < dim; k++) to[k] = (1 - z[k]) * new[k] + z[k] * state[k];
    }
    *node = (gates_node){.input = input, .hidden = hidden, .s = s, .y = y, .gates = gates};
    tape_note(t, &node->node, both_back);
    return y;
}
