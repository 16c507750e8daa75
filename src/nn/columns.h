/* columns.h - operations on the columns of a matrix: a lane is a column, and nothing is added
 * across lanes.
 *
 * Arrays are [rows, width] without gaps. Each column is computed separately, from its first row to
 * its last, so its bits depend neither on the width nor on other columns.
 */
#ifndef FR_NN_COLUMNS_H
#define FR_NN_COLUMNS_H

#include "nn/lanes.h"
#include "nn/vmath.h"

/* x = x / total in every column, computed with 1 / total */
SIMD_INLINE void columns_divide(int rows, int width, const real *total, real *x) {
    int j = 0;
    for (; j + LANES <= width; j += LANES) {
        lanes scale = 1 / LANES_AT(total + j);
        for (int k = 0; k < rows; k++) LANES_AT(x + k * width + j) *= scale;
    }
    for (; j < width; j++) {
        real scale = 1 / total[j];
        for (int k = 0; k < rows; k++) x[k * width + j] *= scale;
    }
}

/* Softmax of every column, in place; total[width] is scratch. */
SIMD_INLINE void columns_softmax(int rows, int width, real *x, real *total) {
    vmath_exp_columns(rows, width, x, total);
    columns_divide(rows, width, total, x);
}

#endif
