/* lanes.h - sixteen neighbouring numbers as one value: the vectors of all kernels in plain C.
 *
 * The compiler maps `lanes` to the vectors of the instruction set (SIMD_BUILDS, SIMD_LOOPS). Rows
 * need not be aligned. If the end of a row does not fill a vector, it is computed number by number;
 * elementwise functions have the same bits in both cases.
 *
 * The order of a row's sum is part of the definition: sixteen partial sums, folded in halves. It
 * depends only on the row's length, so a sum has the same bits for any position of the row and any
 * instruction set.
 *
 * Everything is inlined, and `lanes` are passed by address or macro: as arguments their calling
 * convention would depend on the instruction set.
 */
#ifndef FR_NN_LANES_H
#define FR_NN_LANES_H

#include "base/simd.h"
#include "nn/real.h"

enum { LANES = 16 };

typedef real lanes
    __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef __typeof__((lanes){0} > (lanes){0}) lanes_mask;

#define LANES_AT(x) (*(lanes *)(x))
/* a if the mask is set, otherwise b */
#define LANES_CHOOSE(mask, a, b) ((lanes)(((mask) & (lanes_mask)(a)) | (~(mask) & (lanes_mask)(b))))
#define LANES_ALL(x)             ((x) - (lanes){0})

/* n rounded up to whole vectors. */
static inline int lanes_round_up(int n) { return (n + LANES - 1) / LANES * LANES; }

/* ---- sums of a row: plain arrays, which the compiler turns into wider vectors ---- */

SIMD_INLINE real lanes_fold(const real *lane) {
    real half[8], quarter[4];
    for (int j = 0; j < 8; j++) half[j] = lane[j] + lane[j + 8];
    for (int j = 0; j < 4; j++) quarter[j] = half[j] + half[j + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

SIMD_INLINE real lanes_sum(int n, const real *x) {
    real lane[LANES] = {0};
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[k + j];
    for (; k < n; k++) lane[k % LANES] += x[k];
    return lanes_fold(lane);
}

SIMD_INLINE real lanes_dot(int n, const real *x, const real *y) {
    real lane[LANES] = {0};
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[k + j] * y[k + j];
    for (; k < n; k++) lane[k % LANES] += x[k] * y[k];
    return lanes_fold(lane);
}

/* ---- rows, number by number; y may be x ---- */

/* y = x everywhere */
SIMD_INLINE void lanes_fill(int n, real x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) LANES_AT(y + k) = LANES_ALL(x);
    for (; k < n; k++) y[k] = x;
}

/* y = x: a memcpy of a few numbers */
SIMD_INLINE void lanes_copy(int n, const real *x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) LANES_AT(y + k) = LANES_AT(x + k);
    for (; k < n; k++) y[k] = x[k];
}

/* y += x */
SIMD_INLINE void lanes_add(int n, const real *x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) LANES_AT(y + k) += LANES_AT(x + k);
    for (; k < n; k++) y[k] += x[k];
}

/* y = a * x */
SIMD_INLINE void lanes_multiply(int n, const real *a, const real *x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) LANES_AT(y + k) = LANES_AT(a + k) * LANES_AT(x + k);
    for (; k < n; k++) y[k] = a[k] * x[k];
}

/* y = a * x + b * z */
SIMD_INLINE void lanes_turn(int n, const real *a, const real *x, const real *b, const real *z,
                            real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        LANES_AT(y + k) = LANES_AT(a + k) * LANES_AT(x + k) + LANES_AT(b + k) * LANES_AT(z + k);
    for (; k < n; k++) y[k] = a[k] * x[k] + b[k] * z[k];
}

/* y = max(x, 0) */
SIMD_INLINE void lanes_relu(int n, const real *x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes at = LANES_AT(x + k);
        LANES_AT(y + k) = LANES_CHOOSE(at > 0, at, (lanes){0});
    }
    for (; k < n; k++) y[k] = x[k] > 0 ? x[k] : 0;
}

#endif
