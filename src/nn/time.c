/* time.c - the code of a time difference, phi(D)_k = cos(w_k D + b_k) (MODELS 1.3).
 *
 * D reaches 1e6 seconds and w_0 is 1: there a float angle has steps of 0.06. So the angle is
 * computed in double, with one product and one sum without contraction, and only its cosine is
 * rounded. The gradient of a frozen encoder is never computed.
 */
#include "nn/ops.h"
#include "nn/vmath.h"

typedef struct time_node {
    tape_node node;
    tensor w, b, y;      /* [dt], [dt], [rows, dt] */
    const double *delta; /* [rows] */
} time_node;

enum { MOST = 1024 }; /* width of a code */

static void angles(int n, const real *w, const real *b, double delta, double *angle) {
    for (int k = 0; k < n; k++) angle[k] = (double)w[k] * delta + (double)b[k];
}

void kernel_time(int n, const real *weight, const real *bias, double delta, real *y) {
    double angle[MOST];
    angles(n, weight, bias, delta, angle);
    vmath_cos(n, angle, y);
}

/* dw_k += -sin(angle) D dphi_k, db_k += -sin(angle) dphi_k, sums in double (MODELS 10) */
static void time_back(tape_node *self) {
    time_node *n = (time_node *)self;
    int cols = n->y.cols;
    double angle[MOST], dw[MOST] = {0}, db[MOST] = {0};
    real sine[MOST];
    for (int i = 0; i < n->y.rows; i++) {
        const real *dy = n->y.g + (size_t)i * (size_t)cols;
        angles(cols, n->w.v, n->b.v, n->delta[i], angle);
        vmath_sin(cols, angle, sine);
        for (int k = 0; k < cols; k++) {
            double slope = -(double)sine[k] * (double)dy[k];
            dw[k] += slope * n->delta[i];
            db[k] += slope;
        }
    }
    for (int k = 0; k < cols; k++) {
        n->w.g[k] += (real)dw[k];
        n->b.g[k] += (real)db[k];
    }
}

tensor op_time(tape *t, int rows, const double *delta, int weight, int bias) {
    tensor w = tape_param(t, weight), b = tape_param(t, bias);
    bool frozen = t->params->list.at[weight].frozen;
    tensor y = frozen ? tape_constant(t, rows, w.cols) : tape_tensor(t, rows, w.cols);
    time_node *node = tape_take(t, 1, sizeof *node);
    if (!node || !tape_fits(t, w.cols == b.cols && w.cols <= MOST, "time")) return (tensor){0};
    *node = (time_node){.w = w, .b = b, .y = y, .delta = delta};
    for (int i = 0; i < rows; i++)
        kernel_time(y.cols, w.v, b.v, delta[i], y.v + (size_t)i * (size_t)y.cols);
    if (!frozen) tape_note(t, &node->node, time_back);
    return y;
}
