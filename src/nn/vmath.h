/* vmath.h - elementwise functions whose result depends on the value alone, never on its place in
 * the array.
 *
 * Compilers vectorise loops over libm with different routines for the body and the tail, so equal
 * inputs may get different bits. Here every element goes through the same vector code, including
 * the (padded) tail. Results have the same bits on every instruction set. x and y may be the same
 * array.
 *
 * Float results are within
 *
 *     exp 1.1 ulp    sigmoid 2.5 ulp    tanh, erf 2 ulp    cos, sin 0.51 ulp
 *     gelu 2.5 ulp or 2e-8, gelu_backward with dy = 1: 2 ulp or 8e-8, whichever is larger
 *
 * of the exact ones for all floats, subnormal ones and infinities included; a NaN stays a NaN
 * (tests/test_nn_vmath.c). With double they are those of libm.
 */
#ifndef FR_NN_VMATH_H
#define FR_NN_VMATH_H

#include "nn/real.h"

#include <stdint.h>

void vmath_exp(int64_t n, const real *x, real *y);
/* For every column of x[rows, width]: x = exp(x - the column's largest) and total = their sum,
 * added from the first row on. */
void vmath_exp_columns(int rows, int width, real *x, real *total);
void vmath_sigmoid(int64_t n, const real *x, real *y);
void vmath_tanh(int64_t n, const real *x, real *y);
void vmath_erf(int64_t n, const real *x, real *y);
/* GELU(x) = x/2 (1 + erf(x / sqrt 2)), the exact form */
void vmath_gelu(int64_t n, const real *x, real *y);
/* y[rows, width] = GELU((x + add) * (rho * gain) + bias), a norm in which vectors are columns:
 * rows of x are ldx apart; add, gain and bias [rows], rho [width] */
void vmath_gelu_norm(int rows, int width, const real *x, int ldx, const real *add, const real *gain,
                     const real *bias, const real *rho, real *y);
/* dx = dy * GELU'(x) */
void vmath_gelu_backward(int64_t n, const real *x, const real *dy, real *dx);
/* cosine and sine of an angle in double (any size up to 1e9), rounded to real */
void vmath_cos(int64_t n, const double *angle, real *y);
void vmath_sin(int64_t n, const double *angle, real *y);

#endif
