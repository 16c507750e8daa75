/* tgn_tables.c - see tgn_tables.h. Products over all states at once. */
#include "models/tgn_tables.h"

#include "nn/gemm.h"
#include "nn/vmath.h"

#include <string.h>

#define AT(parameter) model_value(t->m, parameter)

/* to[cols, rows] = the transpose of from[rows, cols], whose rows are ld apart */
static void turn(int rows, int cols, const real *from, int ld, real *to) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            to[(size_t)j * (size_t)rows + (size_t)i] = from[(size_t)i * (size_t)ld + (size_t)j];
}

/* ---- by checkpoint ---- */

static fr_status compose_attention(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int wide = c->wide, keys = c->key_width, part = wide / c->heads;
    size_t size = (size_t)wide * (size_t)keys;
    real *product;
    TRY(TAKE(step, product, size, err));
    TRY(TAKE(&t->memory, t->fold, (size_t)c->heads * size, err));
    TRY(TAKE(&t->memory, t->mix, (size_t)c->heads * size, err));
    TRY(TAKE(&t->memory, t->start, wide, err));
    real scale = (real)(1 / sqrt((double)part));
    for (int h = 0; h < c->heads; h++) {
        real *fold = t->fold + (size_t)h * size;
        size_t block = (size_t)(h * part); /* of the head's rows */
        gemm_tn(keys, wide, part, AT(c->key) + block * (size_t)keys, keys,
                AT(c->query) + block * (size_t)wide, wide, fold, wide, false);
        for (size_t k = 0; k < size; k++) fold[k] *= scale;
        gemm_nn(wide, keys, part, AT(c->out.weight) + block, wide,
                AT(c->value) + block * (size_t)keys, keys, product, keys, false);
        turn(wide, keys, product, keys, t->mix + (size_t)h * size);
    }
    kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias), 0, t->start + c->dim);
    for (int k = 0; k < wide; k++) t->start[k] += AT(c->out.bias)[k];
    return FR_OK;
}

static fr_status compose_merge(tgn_tables *t, fr_error *err) {
    const tgn *c = t->c;
    int d = c->dim, wide = c->wide;
    const real *weight = AT(c->fc1.weight);
    TRY(TAKE(&t->memory, t->merge, (wide + d) * d, err));
    TRY(TAKE(&t->memory, t->merge_bias, d, err));
    turn(d, wide + d, weight, wide + d, t->merge);
    for (int k = 0; k < wide; k++)
        for (int i = 0; i < d; i++) t->merge[k * d + i] *= AT(c->norm.weight)[k];
    memcpy(t->merge_bias, AT(c->fc1.bias), (size_t)d * sizeof *t->merge_bias);
    gemm_nt(1, d, wide, AT(c->norm.bias), wide, weight, wide + d, t->merge_bias, d, true);
    return FR_OK;
}

static fr_status compose_head(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int d = c->dim;
    TRY(TAKE(&t->memory, t->head_bias, d, err));
    memcpy(t->head_bias, AT(c->head1.bias), (size_t)d * sizeof *t->head_bias);
    if (c->identity) return FR_OK;
    const real *right = AT(c->head1.weight) + d; /* W1d, rows 2 d apart */
    real *product;
    TRY(TAKE(step, product, d * d, err));
    TRY(TAKE(&t->memory, t->head, d * d, err));
    gemm_nn(d, d, d, right, 2 * d, AT(c->fc2.weight), d, product, d, false);
    turn(d, d, product, d, t->head);
    gemm_nt(1, d, d, AT(c->fc2.bias), d, right, 2 * d, t->head_bias, d, true);
    return FR_OK;
}

/* ---- by state ---- */

static fr_status by_state(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int replayed = t->m->w->events - c->from, nodes = t->m->w->destinations;
    int states = nodes + replayed, d = c->dim, wide = c->identity ? d : c->wide;
    real *q0; /* [states, wide] [ s ; phi(0) ], identity: s */
    TRY(TAKE(step, q0, (size_t)states * (size_t)wide, err));
    for (int i = 0; i < states; i++) {
        int64_t place = i < nodes ? c->sources + i : c->nodes + 2 * (int64_t)(i - nodes) + 1;
        real *q = q0 + (size_t)i * (size_t)wide;
        memcpy(q, tgn_state(c, place), (size_t)d * sizeof *q);
        if (!c->identity) kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias), 0, q + d);
    }
    if (c->identity) {
        TRY(TAKE(&t->memory, t->right, (size_t)states * (size_t)d, err));
        gemm_nt(states, d, d, q0, d, AT(c->head1.weight) + d, 2 * d, t->right, d, false);
        return FR_OK;
    }
    TRY(TAKE(&t->memory, t->query, (size_t)states * (size_t)t->mix_width, err));
    gemm_nt(states, t->mix_width, wide, q0, wide, t->fold, wide, t->query, t->mix_width, false);
    return FR_OK;
}

/* ---- by event ---- */

/* The destination's first event that is among its last `neighbors` when the first replayed event is
 * scored, as a place in the destination's list. */
static int32_t first_needed(const tgn_tables *t, int32_t v) {
    const fr_window *w = t->m->w;
    int32_t at = w->destination_at[v], count = w->destination_at[v + 1] - at;
    int32_t cut = t->c->from < w->events ? window_cut(w, t->c->from) : w->events;
    int32_t before = events_below(w->destination_events + at, count, cut);
    return before > t->c->neighbors ? before - t->c->neighbors : 0;
}

static fr_status by_event(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    const fr_window *w = t->m->w;
    size_t rows = 0, width = (size_t)c->time_dim, edges = (size_t)c->edges;
    double *angle;
    TRY(TAKE(step, angle, width, err));
    TRY(TAKE(&t->memory, t->row, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        int32_t first = first_needed(t, v);
        t->row[v] = (int64_t)rows - first;
        rows += (size_t)(w->destination_at[v + 1] - w->destination_at[v] - first);
    }
    TRY(TAKE(&t->memory, t->cosine, rows * width, err));
    TRY(TAKE(&t->memory, t->sine, rows * width, err));
    TRY(TAKE(&t->memory, t->feature, rows * edges, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        int32_t at = w->destination_at[v], count = w->destination_at[v + 1] - at;
        for (int32_t k = first_needed(t, v); k < count; k++) {
            int32_t e = w->destination_events[at + k];
            size_t row = (size_t)(t->row[v] + k);
            for (size_t i = 0; i < width; i++)
                angle[i] = (double)AT(c->time.weight)[i] * window_time(w, e);
            vmath_cos(c->time_dim, angle, t->cosine + row * width);
            vmath_sin(c->time_dim, angle, t->sine + row * width);
            model_features(t->m, e, t->feature + row * edges);
        }
    }
    return FR_OK;
}

static fr_status make_tables(tgn_tables *t, arena *step, fr_error *err) {
    TRY(compose_head(t, step, err));
    if (t->c->identity) return by_state(t, step, err);
    TRY(compose_attention(t, step, err));
    TRY(compose_merge(t, err));
    TRY(by_state(t, step, err));
    return by_event(t, step, err);
}

fr_status tgn_tables_open(tgn_tables *t, const model *m, fr_error *err) {
    const tgn *c = m->own;
    *t = (tgn_tables){.m = m, .c = c, .mix_width = c->heads * c->key_width};
    arena step = {0};
    fr_status status = make_tables(t, &step, err);
    arena_free(&step);
    return status;
}

void tgn_tables_free(tgn_tables *t) { arena_free(&t->memory); }
