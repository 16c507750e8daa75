/* tgn_source.c - see tgn_source.h. Weights are those of candidates, but keys are summed before they
 * are multiplied: a source is read only once, so nothing is worth keeping. */
#include "models/tgn_source.h"

#include "nn/gemm.h"

#include <string.h>

#define AT(parameter) model_value(t->m, parameter)

static const double EPS = 1e-5;

fr_status tgn_source_open(tgn_source *s, const tgn_tables *t, arena *memory, fr_error *err) {
    const tgn *c = t->c;
    size_t rows = TGN_EVENTS, d = (size_t)c->dim, wide = (size_t)c->wide,
           most = (size_t)c->neighbors;
    TRY(TAKE(memory, s->z, rows * d, err));
    if (c->identity) return FR_OK;
    TRY(TAKE(memory, s->q0, rows * wide, err));
    TRY(TAKE(memory, s->query, rows * (size_t)t->mix_width, err));
    TRY(TAKE(memory, s->key, most * (size_t)c->key_width, err));
    TRY(TAKE(memory, s->weight, most * (size_t)c->heads, err));
    TRY(TAKE(memory, s->sum, rows * (size_t)t->mix_width, err));
    TRY(TAKE(memory, s->o, rows * wide, err));
    TRY(TAKE(memory, s->both, rows * (wide + d), err));
    return TAKE(memory, s->y, rows * d, err);
}

/* Row i of s->sum: the neighbours' keys, for each head. */
static void sum_keys(const tgn_source *s, const tgn_tables *t, const tgn_past *past,
                     const fr_query *query, int i) {
    const tgn *c = t->c;
    const fr_window *w = t->m->w;
    int width = c->key_width, d = c->dim;
    const real *q = s->query + i * t->mix_width;
    int32_t node = window_source_node(w, query->source);
    fr_history list = window_node_history(w, node, past->cut[i], c->neighbors);
    for (int j = 0; j < list.count; j++) {
        int32_t e = list.event[j];
        real *key = s->key + j * width;
        int64_t state = tgn_past_place(past, window_other(w, node, e), i);
        tgn_show(t->m, state, key);
        model_features(t->m, e, key + d);
        kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias),
                    window_time(w, query->event) - window_time(w, e), key + d + c->edges);
    }
    for (int h = 0; list.count && h < c->heads; h++) {
        real *weight = s->weight + h * list.count;
        for (int j = 0; j < list.count; j++)
            weight[j] = kernel_dot(width, q + h * width, s->key + j * width);
    }
    if (list.count) kernel_softmax(c->heads, list.count, 1, s->weight);
    gemm_nn(c->heads, width, list.count, s->weight, list.count, s->key, width,
            s->sum + i * t->mix_width, width, false);
}

/* s->z = z_u of the events, from their states in it */
static void embed(const tgn_source *s, const tgn_tables *t, const tgn_past *past,
                  const fr_query *queries, int count) {
    const tgn *c = t->c;
    int d = c->dim, wide = c->wide, mix = t->mix_width, keys = c->key_width, ld = wide + d;
    size_t row = (size_t)d * sizeof *s->z;
    for (int i = 0; i < count; i++) {
        real *q0 = s->q0 + i * wide, *o = s->o + i * wide;
        memcpy(q0, s->z + i * d, row);
        kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias), 0, q0 + d);
        for (int k = 0; k < wide; k++) o[k] = q0[k] + AT(c->out.bias)[k];
        memcpy(s->both + i * ld + wide, s->z + i * d, row);
    }
    gemm_nt(count, mix, wide, s->q0, wide, t->fold, wide, s->query, mix, false);
    for (int i = 0; i < count; i++) sum_keys(s, t, past, &queries[i], i);
    for (int h = 0; h < c->heads; h++)
        gemm_nt(count, wide, keys, s->sum + h * keys, mix, t->mix + h * wide * keys, keys, s->o,
                wide, true);
    for (int i = 0; i < count; i++)
        kernel_norm(1, wide, s->o + i * wide, NULL, AT(c->norm.weight), AT(c->norm.bias), EPS, NULL,
                    NULL, s->both + i * ld);
    gemm_linear(count, d, ld, s->both, AT(c->fc1.weight), AT(c->fc1.bias), s->y);
    for (int k = 0; k < count * d; k++) s->y[k] = s->y[k] > 0 ? s->y[k] : 0;
    gemm_linear(count, d, d, s->y, AT(c->fc2.weight), AT(c->fc2.bias), s->z);
}

void tgn_source_read(const tgn_source *s, const tgn_tables *t, const tgn_past *past,
                     const fr_query *queries, int count, real *left) {
    const tgn *c = t->c;
    int d = c->dim;
    size_t row = (size_t)d * sizeof *left;
    for (int i = 0; i < count; i++) {
        int32_t node = window_source_node(t->m->w, queries[i].source);
        tgn_show(t->m, tgn_past_place(past, node, i), s->z + i * d);
        memcpy(left + i * d, t->head_bias, row);
    }
    if (!c->identity) embed(s, t, past, queries, count);
    gemm_nt(count, d, d, s->z, d, AT(c->head1.weight), 2 * d, left, d, true);
}
