/* dygformer_tables.c - see dygformer_tables.h. Sums that fold parameters run in double. */
#include "models/dygformer_tables.h"

#include "nn/gemm.h"
#include "nn/vmath.h"

#include <string.h>

#define AT(number) model_value(m, number)

/* W1 [Wout a + bout; Wout b + bout] + b1 as one matrix of [a; b] */
static fr_status make_head(dygformer_tables *t, fr_error *err) {
    const model *m = t->m;
    const dygformer *f = t->f;
    int d = f->dim;
    TRY(turned_take(&t->memory, 2 * d, d, &t->head, err));
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
                *turned_at(&t->head, side * d + k, o) = (real)sum;
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
    int codes = f->patch * f->time_dim;
    TRY(turned_make(&t->memory, codes, ch, AT(f->patch_time.weight), codes, &t->time, err));
    t->time.bias = AT(f->patch_time.bias);
    TRY(make_pasts(t, err));
    TRY(make_counts(t, err));
    TRY(make_identities(t, err));
    TRY(make_edges(t, bytes, err));
    TRY(make_codes(t, bytes, err));
    for (int l = 0; l < f->layers; l++)
        TRY(transformer_table_make(m, &f->layer[l], f->dim, f->heads, &t->memory, &t->layer[l],
                                   err));
    return make_head(t, err);
}

void dygformer_tables_free(dygformer_tables *t) { arena_free(&t->memory); }
