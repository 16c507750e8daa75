/* turned.h - weights that serve many products: transposed once, in the order in which a product
 * reads them.
 *
 * gemm_nt transposes weights stored (out, in) anew in every call. Results have the same bits.
 */
#ifndef FR_NN_TURNED_H
#define FR_NN_TURNED_H

#include "base/memory.h"
#include "nn/real.h"

#include <stdbool.h>

enum { TURNED_PANEL = 32 }; /* columns that are stored together */

/* A matrix (in, out) cut into panels of columns, each row-major and dense, and a bias. */
typedef struct turned {
    int in, out;
    real *at;
    const real *bias; /* [out]; NULL = none */
} turned;

/* A matrix of zeros without a bias. */
fr_status turned_take(arena *memory, int in, int out, turned *w, fr_error *err);
/* The transpose of weights (out, in), rows ld apart. */
fr_status turned_make(arena *memory, int in, int out, const real *weight, int ld, turned *w,
                      fr_error *err);
/* Where an element is. */
real *turned_at(const turned *w, int in, int out);
/* y[rows, out] (+)= x[rows, in] of the matrix; rows of x and y are ldx and ldy apart. Without
 * adding, the result starts with the bias. */
void turned_product(const turned *w, int rows, const real *x, int ldx, real *y, int ldy,
                    bool accumulate);

#endif
