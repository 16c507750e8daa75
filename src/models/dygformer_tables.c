/* dygformer_tables.c - see dygformer_tables.h. Sums that fold parameters run in double. */
#include "models/dygformer_tables.h"

#include "nn/gemm.h"
#include "nn/vmath.h"

#include <string.h>

#define AT(number) model_value(m, number)

void dygformer_product(const dygformer_matrix *w, int rows, const real *x, int ldx, real *y,
                       int ldy, bool accumulate) {
    for (int j = 0; j < w->out; j += DYGFORMER_PANEL) {
        int width = w->out - j < DYGFORMER_PANEL ? w->out - j : DYGFORMER_PANEL;
        const real *panel = w->at + (size_t)w->in * (size_t)j;
        if (accumulate || !w->bias)
            gemm_nn(rows, width, w->in, x, ldx, panel, width, y + j, ldy, accumulate);
        else
            gemm_nn_from(rows, width, w->in, x, ldx, panel, width, w->bias + j, y + j, ldy);
    }
}

static real *element(const dygformer_matrix *w, int in, int out) {
    int j = out - out % DYGFORMER_PANEL;
    int width = w->out - j < DYGFORMER_PANEL ? w->out - j : DYGFORMER_PANEL;
    return w->at + (size_t)w->in * (size_t)j + (size_t)(in * width + out - j);
}

static fr_status make_matrix(arena *memory, int in, int out, dygformer_matrix *w, fr_error *err) {
    *w = (dygformer_matrix){.in = in, .out = out};
    return TAKE(memory, w->at, (size_t)in * (size_t)out, err);
}

/* The transpose of weights (out, in) as stored. */
static fr_status turn(arena *memory, int in, int out, const real *weight, dygformer_matrix *w,
                      fr_error *err) {
    TRY(make_matrix(memory, in, out, w, err));
    for (int o = 0; o < out; o++)
        for (int k = 0; k < in; k++) *element(w, k, o) = weight[(size_t)o * (size_t)in + (size_t)k];
    return FR_OK;
}

/* Output o of a dense layer after a norm, times `scale`: weights of the normalised row. Returns
 * its constant. */
static double fold_norm(const model *m, param_pair norm, param_pair dense, int dim, int o,
                        double scale, const dygformer_matrix *w) {
    const real *row = AT(dense.weight) + (size_t)o * (size_t)dim;
    double constant = (double)AT(dense.bias)[o];
    for (int k = 0; k < dim; k++) {
        *element(w, k, o) = (real)(scale * (double)row[k] * (double)AT(norm.weight)[k]);
        constant += (double)row[k] * (double)AT(norm.bias)[k];
    }
    return scale * constant;
}

static fr_status make_layer(dygformer_tables *t, int l, fr_error *err) {
    const model *m = t->m;
    const transformer_layer *from = &t->f->layer[l];
    struct dygformer_table_layer *to = &t->layer[l];
    int d = t->f->dim;
    double scale = 1 / sqrt((double)(d / t->f->heads)), *value; /* [dim] bias of the values */
    TRY(TAKE(&t->memory, value, d, err));
    TRY(TAKE(&t->memory, to->out_bias, d, err));
    TRY(TAKE(&t->memory, to->ffn2_bias, d, err));
    TRY(make_matrix(&t->memory, d, 3 * d, &to->qkv, err));
    TRY(make_matrix(&t->memory, d, 4 * d, &to->ffn1, err));
    real *qkv_bias, *ffn1_bias;
    TRY(TAKE(&t->memory, qkv_bias, 3 * d, err));
    TRY(TAKE(&t->memory, ffn1_bias, 4 * d, err));
    TRY(turn(&t->memory, d, d, AT(from->out.weight), &to->out, err));
    TRY(turn(&t->memory, 4 * d, d, AT(from->ffn2.weight), &to->ffn2, err));
    for (int o = 0; o < 3 * d; o++) {
        double constant = fold_norm(m, from->norm1, from->qkv, d, o, o < d ? scale : 1, &to->qkv);
        if (o < d) qkv_bias[o] = (real)constant;
        if (o >= 2 * d) value[o - 2 * d] = constant;
    }
    for (int o = 0; o < 4 * d; o++)
        ffn1_bias[o] = (real)fold_norm(m, from->norm2, from->ffn1, d, o, 1, &to->ffn1);
    to->qkv.bias = qkv_bias;
    to->ffn1.bias = ffn1_bias;
    for (int o = 0; o < d; o++) {
        double sum = (double)AT(from->out.bias)[o];
        for (int k = 0; k < d; k++) sum += (double)AT(from->out.weight)[o * d + k] * value[k];
        to->out_bias[o] = (real)sum;
        to->ffn2_bias[o] = AT(from->ffn2.bias)[o];
    }
    return FR_OK;
}

/* W1 [Wout a + bout; Wout b + bout] + b1 as one matrix of [a; b] */
static fr_status make_head(dygformer_tables *t, fr_error *err) {
    const model *m = t->m;
    const dygformer *f = t->f;
    int d = f->dim;
    TRY(make_matrix(&t->memory, 2 * d, d, &t->head, err));
    real *bias;
    TRY(TAKE(&t->memory, bias, d, err));
    t->head.bias = bias;
    for (int o = 0; o < d; o++) {
        const real *row = AT(f->fc1.weight) + (size_t)o * (size_t)(2 * d);
        double constant = (double)AT(f->fc1.bias)[o];
        for (int side = 0; side < 2; side++, row += d) {
            for (int k = 0; k < d; k++) {
                double sum = 0;
                for (int j = 0; j < d; j++)
                    sum += (double)row[j] * (double)AT(f->output.weight)[j * d + k];
                *element(&t->head, side * d + k, o) = (real)sum;
            }
            for (int j = 0; j < d; j++) constant += (double)row[j] * (double)AT(f->output.bias)[j];
        }
        bias[o] = (real)constant;
    }
    return FR_OK;
}

/* A node occurs in a side as often as the pair has met there; with shared ids the pair has two
 * directions, and a node may meet itself. */
static int largest_count(const fr_window *w, const dygformer *f) {
    int most = 1;
    for (int32_t x = 0; w->source_node && x < w->nodes; x++) {
        int count = window_node_events(w, x).count + 1;
        if (count > most) most = count;
    }
    for (int32_t k = 0; k < w->pairs; k++) {
        int count = w->pair_at[k + 1] - w->pair_at[k];
        if (count > most) most = count;
    }
    return most < f->history ? most : f->history;
}

/* enc(c) [channel] */
static void encode_count(const model *m, const dygformer *f, int c, real *hidden, real *to) {
    int ch = f->channel;
    for (int k = 0; k < ch; k++) {
        real x = AT(f->cooc1.weight)[k] * (real)c + AT(f->cooc1.bias)[k];
        hidden[k] = x > 0 ? x : 0;
    }
    gemm_linear(1, ch, ch, hidden, AT(f->cooc2.weight), AT(f->cooc2.bias), to);
}

static fr_status make_counts(dygformer_tables *t, fr_error *err) {
    const model *m = t->m;
    const dygformer *f = t->f;
    int ch = f->channel, rows = t->most + 1;
    real *hidden, *enc,
        *above; /* [channel], [counts, channel], [counts, channel] enc(c) - enc(0) */
    TRY(TAKE(&t->memory, hidden, ch, err));
    TRY(TAKE(&t->memory, enc, rows * ch, err));
    TRY(TAKE(&t->memory, above, rows * ch, err));
    TRY(TAKE(&t->memory, t->cooc, (size_t)f->patch * (size_t)(rows * ch), err));
    TRY(TAKE(&t->memory, t->more, (size_t)f->patch * (size_t)(rows * ch), err));
    for (int c = 0; c < rows; c++) encode_count(m, f, c, hidden, enc + c * ch);
    for (int c = rows - 1; c >= 0; c--)
        for (int k = 0; k < ch; k++) {
            above[c * ch + k] = enc[c * ch + k] - enc[k];
            enc[c * ch + k] += enc[k];
        }
    for (int s = 0; s < f->patch; s++) {
        const real *weight = AT(f->patch_cooc.weight) + s * ch; /* rows slots * channel apart */
        gemm_nt(rows, ch, ch, enc, ch, weight, f->patch * ch,
                t->cooc + (size_t)s * (size_t)(rows * ch), ch, false);
        gemm_nt(rows, ch, ch, above, ch, weight, f->patch * ch,
                t->more + (size_t)s * (size_t)(rows * ch), ch, false);
    }
    return FR_OK;
}

void dygformer_edge(const dygformer_tables *t, int32_t event, int from, int count, real *features,
                    real *to) {
    const model *m = t->m;
    const dygformer *f = t->f;
    model_features(m, event, features);
    for (int s = from; s < from + count; s++, to += f->channel)
        gemm_nt(1, f->channel, f->edge_dim, features, f->edge_dim,
                AT(f->patch_edge.weight) + (size_t)s * (size_t)f->edge_dim, f->patch * f->edge_dim,
                to, f->channel, false);
}

static fr_status make_edges(dygformer_tables *t, size_t bytes, fr_error *err) {
    const dygformer *f = t->f;
    size_t row = (size_t)f->patch * (size_t)f->channel, events = (size_t)t->m->w->events;
    real *features;
    if (!f->edge_dim || row > bytes / sizeof *t->edge / events) return FR_OK;
    TRY(TAKE(&t->memory, features, f->edge_dim, err));
    TRY(TAKE(&t->memory, t->edge, events * row, err));
    for (int32_t e = 0; e < t->m->w->events; e++)
        dygformer_edge(t, e, 0, f->patch, features, t->edge + (size_t)e * row);
    return FR_OK;
}

static fr_status make_identities(dygformer_tables *t, fr_error *err) {
    const model *m = t->m;
    const dygformer *f = t->f;
    int ch = f->channel, d = f->dim, nodes = m->w->nodes;
    if (f->node < 0) return FR_OK;
    TRY(TAKE(&t->memory, t->identity, (size_t)nodes * (size_t)(f->patch * ch), err));
    for (int s = 0; s < f->patch; s++)
        gemm_nt(nodes, ch, d, AT(f->node), d, AT(f->patch_node.weight) + s * d, f->patch * d,
                t->identity + s * ch, f->patch * ch, false);
    return FR_OK;
}

static fr_status make_pasts(dygformer_tables *t, fr_error *err) {
    const fr_window *w = t->m->w;
    TRY(TAKE(&t->memory, t->node, 2 * (size_t)w->events, err));
    TRY(TAKE(&t->memory, t->clock, 2 * (size_t)w->events, err));
    for (int32_t x = 0; x < w->nodes; x++)
        for (int64_t k = w->node_at[x]; k < w->node_at[x + 1]; k++) {
            t->node[k] = window_other(w, x, w->node_events[k]);
            t->clock[k] = w->time[w->node_events[k]];
        }
    t->coded = w->node_at[w->first_destination];
    return FR_OK;
}

/* The past's factors of cos(w (t - t_j) + b) = cos(w t + b) cos(w t_j) + sin(w t + b) sin(w t_j).
 * Angles are double, so that large times do no harm. */
static fr_status make_codes(dygformer_tables *t, size_t bytes, fr_error *err) {
    const model *m = t->m;
    size_t width = (size_t)t->f->time_dim;
    size_t entries =
        (size_t)(m->w->node_at[m->w->first_destination + m->w->destinations] - t->coded);
    double *angle;
    if (2 * width > bytes / sizeof *t->cosine / entries) return FR_OK;
    TRY(TAKE(&t->memory, angle, width, err));
    TRY(TAKE(&t->memory, t->cosine, entries * width, err));
    TRY(TAKE(&t->memory, t->sine, entries * width, err));
    for (size_t j = 0; j < entries; j++) {
        for (size_t k = 0; k < width; k++)
            angle[k] = (double)AT(t->f->time.weight)[k] * t->clock[t->coded + (int64_t)j];
        vmath_cos(t->f->time_dim, angle, t->cosine + j * width);
        vmath_sin(t->f->time_dim, angle, t->sine + j * width);
    }
    return FR_OK;
}

dygformer_past dygformer_past_of(const dygformer_tables *t, int32_t node, int32_t cut) {
    fr_history list = window_node_history(t->m->w, node, cut, t->f->history - 1);
    ptrdiff_t at = list.event - t->m->w->node_events;
    return (dygformer_past){list.count, list.event, t->node + at, t->clock + at};
}

fr_status dygformer_tables_open(dygformer_tables *t, const model *m, size_t bytes, fr_error *err) {
    const dygformer *f = m->own;
    int ch = f->channel;
    *t = (dygformer_tables){.m = m, .f = f, .most = largest_count(m->w, f)};
    TRY(TAKE(&t->memory, t->start, f->dim, err));
    const int biases[] = {f->patch_node.bias, f->patch_edge.bias, f->patch_time.bias,
                          f->patch_cooc.bias};
    for (int part = 0; part < 4; part++)
        memcpy(t->start + part * ch, AT(biases[part]), (size_t)ch * sizeof *t->start);
    TRY(turn(&t->memory, f->patch * f->time_dim, ch, AT(f->patch_time.weight), &t->time, err));
    t->time.bias = AT(f->patch_time.bias);
    TRY(make_pasts(t, err));
    TRY(make_counts(t, err));
    TRY(make_identities(t, err));
    TRY(make_edges(t, bytes, err));
    TRY(make_codes(t, bytes, err));
    for (int l = 0; l < f->layers; l++) TRY(make_layer(t, l, err));
    return make_head(t, err);
}

void dygformer_tables_free(dygformer_tables *t) { arena_free(&t->memory); }
