/* transformer_fast.c - see transformer_fast.h. Sums that fold parameters run in double. */
#include "models/transformer_fast.h"

#define AT(number) model_value(m, number)

/* Output o of a dense layer after a norm, times `scale`: weights of the normalised row. Returns
 * its constant. */
static double fold_norm(const model *m, param_pair norm, param_pair dense, int dim, int o,
                        double scale, const turned *w) {
    const real *row = AT(dense.weight) + (size_t)o * (size_t)dim;
    double constant = (double)AT(dense.bias)[o];
    for (int k = 0; k < dim; k++) {
        *turned_at(w, k, o) = (real)(scale * (double)row[k] * (double)AT(norm.weight)[k]);
        constant += (double)row[k] * (double)AT(norm.bias)[k];
    }
    return scale * constant;
}

fr_status transformer_table_make(const model *m, const transformer_layer *from, int dim, int heads,
                                 arena *memory, transformer_table *to, fr_error *err) {
    double scale = 1 / sqrt((double)(dim / heads)), *value; /* [dim] bias of the values */
    real *qkv_bias, *ffn1_bias;
    TRY(TAKE(memory, value, dim, err));
    TRY(TAKE(memory, to->out_bias, dim, err));
    TRY(TAKE(memory, to->ffn2_bias, dim, err));
    TRY(turned_take(memory, dim, 3 * dim, &to->qkv, err));
    TRY(turned_take(memory, dim, 4 * dim, &to->ffn1, err));
    TRY(TAKE(memory, qkv_bias, 3 * dim, err));
    TRY(TAKE(memory, ffn1_bias, 4 * dim, err));
    TRY(turned_make(memory, dim, dim, AT(from->out.weight), dim, &to->out, err));
    TRY(turned_make(memory, 4 * dim, dim, AT(from->ffn2.weight), 4 * dim, &to->ffn2, err));
    for (int o = 0; o < 3 * dim; o++) {
        double constant =
            fold_norm(m, from->norm1, from->qkv, dim, o, o < dim ? scale : 1, &to->qkv);
        if (o < dim) qkv_bias[o] = (real)constant;
        if (o >= 2 * dim) value[o - 2 * dim] = constant;
    }
    for (int o = 0; o < 4 * dim; o++)
        ffn1_bias[o] = (real)fold_norm(m, from->norm2, from->ffn1, dim, o, 1, &to->ffn1);
    to->qkv.bias = qkv_bias;
    to->ffn1.bias = ffn1_bias;
    for (int o = 0; o < dim; o++) {
        double sum = (double)AT(from->out.bias)[o];
        for (int k = 0; k < dim; k++) sum += (double)AT(from->out.weight)[o * dim + k] * value[k];
        to->out_bias[o] = (real)sum;
        to->ffn2_bias[o] = AT(from->ffn2.bias)[o];
    }
    return FR_OK;
}
