/* slots.c - a linear layer across the rows of each group of rows, not across columns: mixing of
 * tokens.
 *
 * A group has as many rows as it has real slots, so only the corner W[:out, :in] of the weights
 * acts on it, and only that corner learns from it. Empty slots do not exist. Forward
 * and backward are one small product per group.
 */
#include "nn/gemm.h"
#include "nn/ops.h"

typedef struct slots_node {
    tape_node node;
    tensor x, w, b, y; /* [in rows, cols], [outs, ins], [outs], [out rows, cols] */
    int groups;
    const int32_t *in, *out; /* [groups + 1] first rows in x and y */
} slots_node;

/* dX = W^T dY, dW += dY X^T, db += sums of dY over columns (MODELS 10) */
static void slots_back(tape_node *self) {
    slots_node *n = (slots_node *)self;
    int cols = n->x.cols, ld = n->w.cols;
    for (int g = 0; g < n->groups; g++) {
        int ins = n->in[g + 1] - n->in[g], outs = n->out[g + 1] - n->out[g];
        size_t from = (size_t)n->in[g] * (size_t)cols;
        const real *dy = n->y.g + (size_t)n->out[g] * (size_t)cols;
        if (n->x.g) gemm_tn(ins, cols, outs, n->w.v, ld, dy, cols, n->x.g + from, cols, true);
        gemm_nt(outs, ins, cols, dy, cols, n->x.v + from, cols, n->w.g, ld, true);
        for (int i = 0; i < outs; i++) n->b.g[i] += kernel_sum(cols, dy + (size_t)i * (size_t)cols);
    }
}

tensor op_slots(tape *t, tensor x, int weight, int bias, int groups, const int32_t *in,
                const int32_t *out) {
    tensor w = tape_param(t, weight), b = tape_param(t, bias);
    bool fits = b.cols == w.rows && in[groups] <= x.rows;
    for (int g = 0; g < groups; g++)
        fits = fits && in[g + 1] - in[g] <= w.cols && out[g + 1] - out[g] <= w.rows;
    if (!tape_fits(t, fits, "slots")) return (tensor){0};
    tensor y = tape_tensor(t, out[groups], x.cols);
    slots_node *node = tape_take(t, 1, sizeof *node);
    if (!node) return (tensor){0};
    *node = (slots_node){.x = x, .w = w, .b = b, .y = y, .groups = groups, .in = in, .out = out};
    for (int g = 0; g < groups; g++)
        kernel_slots(out[g + 1] - out[g], in[g + 1] - in[g], x.cols, w.v, w.cols, b.v,
                     x.v + (size_t)in[g] * (size_t)x.cols, y.v + (size_t)out[g] * (size_t)x.cols);
    tape_note(t, &node->node, slots_back);
    return y;
}

void kernel_slots(int outs, int ins, int cols, const real *w, int ld, const real *b, const real *x,
                  real *y) {
    for (int i = 0; i < outs; i++)
        for (int k = 0; k < cols; k++) y[(size_t)i * (size_t)cols + (size_t)k] = b[i];
    gemm_nn(outs, cols, ins, w, ld, x, cols, y, cols, true);
}
