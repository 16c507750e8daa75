/* transformer_fast.h - the transformer block of transformer.h in fast paths: without a tape, with
 * parameters that are folded and transposed once per checkpoint.
 *
 * Norms are folded into the matrix after them: W (g * hat + b) + c = (W g) hat + (W b + c). The
 * scale of attention is folded into the queries. A bias of keys adds the same number to a whole row
 * of logits and is dropped. A bias of values passes through the weights, which sum to one, and is
 * folded into the next bias.
 *
 * Bits: a row depends on its own sequence alone, in an order that its length decides.
 */
#ifndef FR_MODELS_TRANSFORMER_FAST_H
#define FR_MODELS_TRANSFORMER_FAST_H

#include "models/model.h"
#include "models/transformer.h"
#include "nn/columns.h"
#include "nn/gemm.h"
#include "nn/turned.h"

/* A block. Lifetime: that of the arena. */
typedef struct transformer_table {
    turned qkv, ffn1;           /* (dim, 3 dim), (dim, 4 dim) of normalised rows, with biases */
    turned out, ffn2;           /* (dim, dim), (4 dim, dim) */
    real *out_bias, *ffn2_bias; /* [dim] added to rows before the product */
} transformer_table;

fr_status transformer_table_make(const model *m, const transformer_layer *from, int dim, int heads,
                                 arena *memory, transformer_table *to, fr_error *err);

SIMD_INLINE void transformer_norm_any(int n, real *restrict x, const real *restrict more,
                                      real *restrict hat) {
    real mean = lanes_sum(n, x) / (real)n;
    for (int k = 0; k < n; k++) hat[k] = x[k] - mean;
    real rho = 1 / real_sqrt(lanes_dot(n, hat, hat) / (real)n + (real)TRANSFORMER_EPS);
    for (int k = 0; k < n; k++) hat[k] *= rho;
    lanes_add(n, more, x);
}

/* hat[n] = (x - mean) / sqrt(var + eps); then x += more, the bias of the branch that follows. The
 * usual width is known beforehand, so that a row stays in registers. */
SIMD_INLINE void transformer_norm(int n, real *x, const real *more, real *hat) {
    if (n == 64)
        transformer_norm_any(64, x, more, hat);
    else
        transformer_norm_any(n, x, more, hat);
}

/* to[keys, queries], rows ld apart: logits of a head's keys and queries, rows of qkv[.., 3 dim] */
SIMD_INLINE void transformer_logits(int dim, int heads, int head, int keys, const real *key,
                                    int queries, const real *query, real *to, int ld) {
    int part = dim / heads;
    gemm_nt(keys, queries, part, key + dim + head * part, 3 * dim, query + head * part, 3 * dim, to,
            ld, false);
}

/* A head's columns of mix[n, dim], from logits[n, ld] of keys and queries, ld = n in whole lanes;
 * total[ld] is scratch. A lane is a query. */
SIMD_INLINE void transformer_mix(int dim, int heads, int head, int n, const real *qkv, real *logits,
                                 real *total, real *mix) {
    int part = dim / heads, ld = lanes_round_up(n);
    columns_softmax(n, ld, logits, total);
    gemm_tn(n, part, n, logits, ld, qkv + 2 * dim + head * part, 3 * dim, mix + head * part, dim,
            false);
}

#endif
