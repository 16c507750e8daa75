/* transformer.c - see transformer.h. */
#include "models/transformer.h"

#include <math.h>

/* Places where dropout acts. */
enum { SITE_ATTENTION, SITE_OUT, SITE_GELU, SITE_FFN };

/* A dense layer whose bias is 0 at first. */
static param_pair projection(params *p, int layer, int rows, int cols, double scale,
                             const char *name) {
    return layer_add(p, layer, rows, cols, INIT_LINEAR, INIT_ZERO, scale, name);
}

void transformer_declare(params *p, int l, int d, transformer_layer *y) {
    y->norm1 = layer_norm(p, l, d, "norm1");
    y->qkv = projection(p, l, 3 * d, d, sqrt(6 / (4.0 * d)), "qkv");
    y->out = projection(p, l, d, d, 1 / sqrt((double)d), "out");
    y->norm2 = layer_norm(p, l, d, "norm2");
    y->ffn1 = layer_linear(p, l, 4 * d, d, "ffn1");
    y->ffn2 = layer_linear(p, l, d, 4 * d, "ffn2");
}

#define NORM(x, pair)   op_norm(t, x, (pair).weight, (pair).bias, TRANSFORMER_EPS)
#define LINEAR(x, pair) op_linear(t, x, (pair).weight, (pair).bias)

tensor transformer_block(tape *t, const transformer_layer *y, int heads, tensor x,
                         const span *spans, int count, int site, const row_key *keys) {
    tensor qkv = LINEAR(NORM(x, y->norm1), y->qkv);
    tensor mix = op_attention_joint(t, qkv, heads, spans, count, site + SITE_ATTENTION, keys);
    x = op_residual(t, x, LINEAR(mix, y->out), site + SITE_OUT, keys);
    const int ffn1[] = {y->ffn1.weight, y->ffn1.bias}, ffn2[] = {y->ffn2.weight, y->ffn2.bias};
    tensor mlp = op_mlp(t, NORM(x, y->norm2), ffn1, ffn2, site + SITE_GELU, keys);
    return op_residual(t, x, mlp, site + SITE_FFN, keys);
}
