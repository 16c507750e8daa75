/* norm.c - layer norm, forward and backward, for every instruction set.
 *
 * A row's sums run in fixed lanes (lanes.h) and nothing is contracted, so each set gives the same
 * bits; the plain C below is compiled once per set (SIMD_LOOPS).
 */
#include "base/simd.h"
#include "nn/lanes.h"
#include "nn/ops.h"

typedef struct norm_node {
    tape_node node;
    tensor x, gain, bias, y;
    real *hat, *rho; /* [rows, cols], [rows] */
} norm_node;

enum { MOST = 1024 }; /* columns */

SIMD_INLINE void rows_forward(int rows, int cols, real *restrict x, const real *restrict more,
                              const real *restrict gain, const real *restrict bias, double eps,
                              real *restrict hat, real *restrict rho, real *restrict y) {
    real room[MOST];
    for (int i = 0; i < rows; i++, x += cols, y += cols) {
        real *restrict to = hat ? hat + (size_t)i * (size_t)cols : room;
        for (int k = 0; more && k < cols; k++) x[k] += more[(size_t)i * (size_t)cols + (size_t)k];
        real mean = lanes_sum(cols, x) / (real)cols;
        for (int k = 0; k < cols; k++) to[k] = x[k] - mean;
        real scale = (real)(1 / sqrt((double)(lanes_dot(cols, to, to) / (real)cols) + eps));
        for (int k = 0; k < cols; k++) {
            to[k] *= scale;
            y[k] = gain[k] * to[k] + bias[k];
        }
        if (rho) rho[i] = scale;
    }
}

/* dx = rho (G - mean(G) - hat mean(G * hat)) with G = gain * dy (MODELS 10) */
SIMD_INLINE void rows_back(const norm_node *n) {
    int cols = n->x.cols;
    const real *restrict gain = n->gain.v;
    real *restrict d_gain = n->gain.g, *restrict d_bias = n->bias.g;
    real big[MOST];
    for (int i = 0; i < n->x.rows; i++) {
        size_t at = (size_t)i * (size_t)cols;
        const real *restrict dy = n->y.g + at, *restrict hat = n->hat + at;
        real *restrict dx = n->x.g + at;
        for (int k = 0; k < cols; k++) {
            d_gain[k] += dy[k] * hat[k];
            d_bias[k] += dy[k];
            big[k] = gain[k] * dy[k];
        }
        real mean = lanes_sum(cols, big) / (real)cols,
             along = lanes_dot(cols, big, hat) / (real)cols;
        for (int k = 0; k < cols; k++) dx[k] += n->rho[i] * (big[k] - mean - hat[k] * along);
    }
}

SIMD_LOOPS void kernel_norm(int rows, int cols, real *x, const real *more, const real *gain,
                            const real *bias, double eps, real *hat, real *rho, real *y) {
    rows_forward(rows, cols, x, more, gain, bias, eps, hat, rho, y);
}

SIMD_LOOPS static void norm_back(tape_node *self) { rows_back((const norm_node *)self); }

tensor op_norm(tape *t, tensor x, int gain, int bias, double eps) {
    tensor g = tape_param(t, gain), b = tape_param(t, bias);
    if (!tape_fits(t, g.cols == x.cols && b.cols == x.cols && x.cols <= MOST, "norm"))
        return (tensor){0};
    tensor y = tape_tensor(t, x.rows, x.cols);
    norm_node *node = tape_take(t, 1, sizeof *node);
    real *hat = t->gradient ? tape_room(t, (size_t)x.rows * (size_t)x.cols) : NULL;
    real *rho = t->gradient ? tape_room(t, (size_t)x.rows) : NULL;
    if (t->status) return (tensor){0};
    kernel_norm(x.rows, x.cols, x.v, NULL, g.v, b.v, eps, hat, rho, y.v);
    *node = (norm_node){.x = x, .gain = g, .bias = b, .y = y, .hat = hat, .rho = rho};
    tape_note(t, &node->node, norm_back);
    return y;
}
