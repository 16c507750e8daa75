/* transformer.h - a pre-norm transformer block: self-attention within a sequence, then two dense
 * layers, both added to their input.
 *
 *     Y = LN1(X);  X += Drop( WO concat_h( Drop(softmax(Q_h K_h^T / sqrt(dh))) V_h ) + bO )
 *     X += Drop( W2 Drop( GELU( W1 LN2(X) + b1 ) ) + b2 )          [Q;K;V] = Wqkv Y + bqkv
 */
#ifndef FR_MODELS_TRANSFORMER_H
#define FR_MODELS_TRANSFORMER_H

#include "models/layers.h"
#include "nn/ops.h"

#define TRANSFORMER_EPS 1e-5
enum { TRANSFORMER_SITES = 4 }; /* of dropout in a block */

typedef struct transformer_layer {
    param_pair norm1, qkv, out, norm2, ffn1, ffn2;
} transformer_layer;

/* Declares block l of width d, with the initial values of MODELS 3.3. */
void transformer_declare(params *p, int l, int d, transformer_layer *y);
/* Rows of x are those of `count` sequences; x itself is changed. Dropout has the sites from `site`
 * on. */
tensor transformer_block(tape *t, const transformer_layer *y, int heads, tensor x,
                         const span *spans, int count, int site, const row_key *keys);

#endif
