/* gemm.h - matrix products whose every element is one chain of fused multiply-adds.
 *
 *     acc = fma(a[i,k], b[k,j], acc)    k ascending, starting with 0, with C or with a bias
 *
 * So the bits of an element do not depend on the tiling, its block, the instruction set or the
 * thread. Equal rows give equal results, which makes exact ties possible (docs/architecture.md).
 * Matrices are row-major; ld* is the distance between rows. C must not overlap A or B. Each product
 * uses one thread.
 */
#ifndef FR_NN_GEMM_H
#define FR_NN_GEMM_H

#include "nn/real.h"

#include <stdbool.h>

/* C[m,n] (+)= A[m,k] B[k,n] */
void gemm_nn(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate);
/* C[m,n] = bias[n] in every row + A[m,k] B[k,n] */
void gemm_nn_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *bias, real *c, int ldc);
/* C[m,n] (+)= A[m,k] B[n,k]^T: a linear layer with weights stored (out, in) */
void gemm_nt(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate);
/* C[m,n] = bias[n] in every row + A[m,k] B[n,k]^T */
void gemm_nt_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *bias, real *c, int ldc);
/* to[k,n] = B[n,k]^T, rows ldt apart: for a B that serves many products. Each row of `to` has room
 * for n rounded up to 16; what is after n may be anything. */
void gemm_turn(int n, int k, const real *b, int ldb, real *to, int ldt);
/* C[m,n] (+)= A[k,m]^T B[k,n]: the gradient of such weights */
void gemm_tn(int m, int n, int k, const real *a, int lda, const real *b, int ldb, real *c, int ldc,
             bool accumulate);
/* C[m,n] = S[m,n] + A[k,m]^T B[k,n], rows of S lds apart */
void gemm_tn_from(int m, int n, int k, const real *a, int lda, const real *b, int ldb,
                  const real *s, int lds, real *c, int ldc);

/* Linear layers, weights stored (out, in), arrays without gaps. Sums start with the bias (NULL: 0).
 * y[rows,out] = x[rows,in] weight^T + bias in every row */
void gemm_linear(int rows, int out, int in, const real *x, const real *weight, const real *bias,
                 real *y);
/* y[out,width] = weight x[in,width] + bias in every column: vectors are columns */
void gemm_linear_columns(int out, int width, int in, const real *weight, const real *bias,
                         const real *x, real *y);

#endif
