/* gather.c - ops that move rows: constants from outside, rows by number, means of groups of rows.
 */
#include "base/simd.h"
#include "nn/ops.h"

#include <string.h>

tensor op_input(tape *t, int rows, int cols, const real *v) {
    tensor y = tape_constant(t, rows, cols);
    if (!t->status && rows && cols) memcpy(y.v, v, (size_t)rows * (size_t)cols * sizeof *v);
    return y;
}

/* ---- rows by number ---- */

typedef struct take_node {
    tape_node node;
    tensor x, y;
    const int32_t *index; /* [y.rows] */
} take_node;

SIMD_LOOPS static void take_back(tape_node *self) {
    take_node *n = (take_node *)self;
    int cols = n->y.cols;
    for (int i = 0; i < n->y.rows; i++) {
        if (n->index[i] < 0) continue;
        real *to = n->x.g + (size_t)n->index[i] * (size_t)cols;
        const real *from = n->y.g + (size_t)i * (size_t)cols;
        for (int k = 0; k < cols; k++) to[k] += from[k];
    }
}

tensor op_take(tape *t, tensor x, int n, const int32_t *index) {
    tensor y = x.g ? tape_tensor(t, n, x.cols) : tape_constant(t, n, x.cols);
    take_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    for (int i = 0; i < n; i++) {
        real *to = y.v + (size_t)i * (size_t)y.cols;
        if (index[i] < 0)
            memset(to, 0, (size_t)y.cols * sizeof *to);
        else
            memcpy(to, x.v + (size_t)index[i] * (size_t)x.cols, (size_t)x.cols * sizeof *to);
    }
    *node = (take_node){.x = x, .y = y, .index = index};
    if (x.g) tape_note(t, &node->node, take_back);
    return y;
}

/* ---- means of groups ---- */

typedef struct mean_node {
    tape_node node;
    tensor x, y;
    const int32_t *from; /* [y.rows + 1] */
    const real *divisor; /* [y.rows] */
} mean_node;

static void mean_back(tape_node *self) {
    mean_node *n = (mean_node *)self;
    int cols = n->y.cols;
    for (int i = 0; i < n->y.rows; i++) {
        const real *dy = n->y.g + (size_t)i * (size_t)cols;
        for (int j = n->from[i]; j < n->from[i + 1]; j++) {
            real *dx = n->x.g + (size_t)j * (size_t)cols;
            for (int k = 0; k < cols; k++) dx[k] += dy[k] / n->divisor[i];
        }
    }
}

tensor op_mean(tape *t, tensor x, int n, const int32_t *from, const real *divisor) {
    tensor y = x.g ? tape_tensor(t, n, x.cols) : tape_constant(t, n, x.cols);
    mean_node *node = tape_take(t, 1, sizeof *node);
    if (!node || !tape_fits(t, !n || from[n] <= x.rows, "mean")) return (tensor){0};
    for (int i = 0; i < n; i++) {
        real *to = y.v + (size_t)i * (size_t)y.cols;
        memset(to, 0, (size_t)y.cols * sizeof *to);
        for (int j = from[i]; j < from[i + 1]; j++)
            for (int k = 0; k < y.cols; k++) to[k] += x.v[(size_t)j * (size_t)y.cols + (size_t)k];
        for (int k = 0; k < y.cols; k++) to[k] /= divisor[i];
    }
    *node = (mean_node){.x = x, .y = y, .from = from, .divisor = divisor};
    if (x.g) tape_note(t, &node->node, mean_back);
    return y;
}
