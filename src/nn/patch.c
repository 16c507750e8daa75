/* patch.c - consecutive tokens of a sequence through one matrix: a patch.
 *
 * Slot s of a patch has its own columns s * width .. of the weights. The tokens of a patch are
 * consecutive, so a whole patch is already a row. A shorter patch is a row that ends in zeros,
 * which add nothing to any sum. So all patches are one product.
 */
#include "nn/gemm.h"
#include "nn/ops.h"

#include <string.h>

typedef struct patch_node {
    tape_node node;
    tensor x, w, b, y;   /* [tokens, width], [out, slots * width], [out], [patches, out] */
    const int32_t *from; /* [patches + 1] */
    real *rows;          /* [patches, slots * width] tokens of a patch, then zeros */
} patch_node;

static void patch_back(tape_node *self) {
    patch_node *n = (patch_node *)self;
    int patches = n->y.rows, out = n->y.cols, in = n->w.cols, width = n->x.cols;
    gemm_tn(out, in, patches, n->y.g, out, n->rows, in, n->w.g, in, true);
    for (int i = 0; i < patches; i++)
        for (int k = 0; k < out; k++) n->b.g[k] += n->y.g[(size_t)i * (size_t)out + (size_t)k];
    if (!n->x.g) return;
    gemm_nn(patches, in, out, n->y.g, out, n->w.v, in, n->rows, in, false);
    for (int i = 0; i < patches; i++) {
        size_t used = (size_t)(n->from[i + 1] - n->from[i]) * (size_t)width;
        real *to = n->x.g + (size_t)n->from[i] * (size_t)width;
        const real *row = n->rows + (size_t)i * (size_t)in;
        for (size_t k = 0; k < used; k++) to[k] += row[k];
    }
}

tensor op_patches(tape *t, tensor x, int n, const int32_t *from, int weight, int bias) {
    tensor w = tape_param(t, weight), b = tape_param(t, bias);
    if (!tape_fits(t, w.cols % x.cols == 0 && b.cols == w.rows, "patches")) return (tensor){0};
    tensor y = tape_tensor(t, n, w.rows);
    patch_node *node = tape_take(t, 1, sizeof *node);
    real *rows = tape_room(t, (size_t)n * (size_t)w.cols);
    if (!rows) return (tensor){0};
    for (int i = 0; i < n; i++) {
        size_t used = (size_t)(from[i + 1] - from[i]) * (size_t)x.cols;
        real *row = rows + (size_t)i * (size_t)w.cols;
        if (!tape_fits(t, used <= (size_t)w.cols, "patches")) return (tensor){0};
        memcpy(row, x.v + (size_t)from[i] * (size_t)x.cols, used * sizeof *row);
        memset(row + used, 0, ((size_t)w.cols - used) * sizeof *row);
        memcpy(y.v + (size_t)i * (size_t)y.cols, b.v, (size_t)y.cols * sizeof *y.v);
    }
    gemm_nt(n, y.cols, w.cols, rows, w.cols, w.v, w.cols, y.v, y.cols, true);
    *node = (patch_node){.x = x, .w = w, .b = b, .y = y, .from = from, .rows = rows};
    tape_note(t, &node->node, patch_back);
    return y;
}
