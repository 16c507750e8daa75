/* lanes.h - sums over a row in sixteen fixed lanes, to be inlined into kernels.
 *
 * The order of additions is part of the definition: it depends on the row's length alone, so a
 * row's sum has the same bits wherever the row stands and whatever the instruction set.
 */
#ifndef FR_NN_LANES_H
#define FR_NN_LANES_H

#include "nn/real.h"

enum { LANES = 16 };

#define LANES_INLINE static inline __attribute__((always_inline))

LANES_INLINE real lanes_fold(const real *lane) {
    real half[8], quarter[4];
    for (int j = 0; j < 8; j++) half[j] = lane[j] + lane[j + 8];
    for (int j = 0; j < 4; j++) quarter[j] = half[j] + half[j + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

LANES_INLINE real lanes_sum(int n, const real *x) {
    real lane[LANES] = {0};
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[k + j];
    for (; k < n; k++) lane[k % LANES] += x[k];
    return lanes_fold(lane);
}

LANES_INLINE real lanes_dot(int n, const real *x, const real *y) {
    real lane[LANES] = {0};
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[k + j] * y[k + j];
    for (; k < n; k++) lane[k % LANES] += x[k] * y[k];
    return lanes_fold(lane);
}

#endif
