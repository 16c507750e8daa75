/* tgn_tables.c - see tgn_tables.h. Products over all states at once. */
#include "models/tgn_tables.h"

#include "nn/gemm.h"
#include "nn/vmath.h"

#include <string.h>

#define AT(parameter) model_value(t->m, parameter)

/* ---- by checkpoint ---- */

static fr_status compose_attention(tgn_tables *t, fr_error *err) {
    const tgn *c = t->c;
    int wide = c->wide, keys = c->key_width, part = wide / c->heads;
    size_t size = (size_t)wide * (size_t)keys;
    TRY(TAKE(&t->memory, t->fold, (size_t)c->heads * size, err));
    TRY(TAKE(&t->memory, t->mix, (size_t)c->heads * size, err));
    real scale = (real)(1 / sqrt((double)part));
    for (int h = 0; h < c->heads; h++) {
        real *fold = t->fold + (size_t)h * size;
        size_t block = (size_t)(h * part); /* of the head's rows */
        gemm_tn(keys, wide, part, AT(c->key) + block * (size_t)keys, keys,
                AT(c->query) + block * (size_t)wide, wide, fold, wide, false);
        for (size_t k = 0; k < size; k++) fold[k] *= scale;
        gemm_nn(wide, keys, part, AT(c->out.weight) + block, wide,
                AT(c->value) + block * (size_t)keys, keys, t->mix + (size_t)h * size, keys, false);
    }
    return FR_OK;
}

/* x[rows, cols] -= 2 v (v . x) / (v . v): a reflection of its columns; v is zero above `first` */
static void reflect(int first, int rows, int cols, const double *v, double *x, double *dot) {
    double square = 0;
    memset(dot, 0, (size_t)cols * sizeof *dot);
    for (int i = first; i < rows; i++) {
        square += v[i] * v[i];
        for (int j = 0; j < cols; j++) dot[j] += v[i] * x[(size_t)i * (size_t)cols + (size_t)j];
    }
    for (int i = first; square > 0 && i < rows; i++)
        for (int j = 0; j < cols; j++)
            x[(size_t)i * (size_t)cols + (size_t)j] -= 2 * v[i] / square * dot[j];
}

/* t->turn, t->time: reflections (Householder) after which entry i of WR WV of time codes, without
 * its mean, has no part of the codes' first i numbers. */
static fr_status compose_turn(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int wide = c->wide, time = c->time_dim, codes = c->heads * time;
    double *turn, *x, *v, *dot; /* [wide, wide], [wide, codes], [wide], [wide or codes] */
    TRY(TAKE(step, turn, wide * wide, err));
    TRY(TAKE(step, x, wide * codes, err));
    TRY(TAKE(step, v, wide, err));
    TRY(TAKE(step, dot, wide > codes ? wide : codes, err));
    for (int i = 0; i < wide; i++)
        for (int k = 0; k < wide; k++) turn[i * wide + k] = (i == k) - 1.0 / wide;
    for (int k = 0; k < codes; k++) {
        double mean = 0;
        const real *from =
            t->mix + (k / time) * wide * c->key_width + c->key_width - time + k % time;
        for (int i = 0; i < wide; i++) mean += (double)from[i * c->key_width] / wide;
        for (int i = 0; i < wide; i++) x[i * codes + k] = (double)from[i * c->key_width] - mean;
    }
    for (int k = 0; k < codes && k < wide; k++) {
        double length = 0;
        for (int i = k; i < wide; i++) {
            v[i] = x[i * codes + k];
            length += v[i] * v[i];
        }
        v[k] += v[k] < 0 ? -sqrt(length) : sqrt(length);
        reflect(k, wide, codes, v, x, dot);
        reflect(k, wide, wide, v, turn, dot);
    }
    TRY(TAKE(&t->memory, t->turn, wide * wide, err));
    TRY(TAKE(&t->memory, t->time, wide * codes, err));
    for (int k = 0; k < wide * wide; k++) t->turn[k] = (real)turn[k];
    for (int k = 0; k < wide * codes; k++) t->time[k] = (real)x[k];
    return FR_OK;
}

static fr_status compose_merge(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int d = c->dim, wide = c->wide, ld = wide + d;
    const real *weight = AT(c->fc1.weight);
    real *gained;
    TRY(TAKE(step, gained, d * wide, err));
    TRY(TAKE(&t->memory, t->merge, d * wide, err));
    TRY(TAKE(&t->memory, t->merge_bias, d, err));
    for (int i = 0; i < d; i++)
        for (int k = 0; k < wide; k++)
            gained[i * wide + k] = weight[i * ld + k] * AT(c->norm.weight)[k];
    gemm_nt(d, wide, wide, gained, wide, t->turn, wide, t->merge, wide, false);
    memcpy(t->merge_bias, AT(c->fc1.bias), (size_t)d * sizeof *t->merge_bias);
    gemm_nt(1, d, wide, AT(c->norm.bias), wide, weight, ld, t->merge_bias, d, true);
    return FR_OK;
}

static fr_status compose_head(tgn_tables *t, fr_error *err) {
    const tgn *c = t->c;
    int d = c->dim;
    TRY(TAKE(&t->memory, t->head_bias, d, err));
    memcpy(t->head_bias, AT(c->head1.bias), (size_t)d * sizeof *t->head_bias);
    if (c->identity) return FR_OK;
    const real *right = AT(c->head1.weight) + d; /* W1d, rows 2 d apart */
    TRY(TAKE(&t->memory, t->head, d * d, err));
    gemm_nn(d, d, d, right, 2 * d, AT(c->fc2.weight), d, t->head, d, false);
    gemm_nt(1, d, d, AT(c->fc2.bias), d, right, 2 * d, t->head_bias, d, true);
    return FR_OK;
}

/* ---- by state ---- */

/* The states of one side: of sources or of destinations, with shared ids of all. */
static int side_states(const tgn_tables *t, bool source) {
    const fr_window *w = t->m->w;
    int made = w->to - t->c->from;
    if (w->source_node) return w->nodes + 2 * made;
    return made + (source ? w->sources : w->destinations);
}

/* The place of a row. */
static int64_t side_place(const tgn_tables *t, bool source, int row) {
    const fr_window *w = t->m->w;
    int nodes = source ? w->sources : w->destinations;
    if (w->source_node) return row;
    if (row < nodes) return source ? row : w->sources + row;
    return w->nodes + 2 * (int64_t)(row - nodes) + !source;
}

static fr_status by_candidate(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int states = side_states(t, false);
    int d = c->dim, wide = c->identity ? d : c->wide;
    real *q0; /* [states, wide] [ s ; phi(0) ], identity: s */
    TRY(TAKE(step, q0, (size_t)states * (size_t)wide, err));
    for (int i = 0; i < states; i++) {
        real *q = q0 + (size_t)i * (size_t)wide;
        tgn_show(t->m, side_place(t, false, i), q);
        if (!c->identity) kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias), 0, q + d);
    }
    if (c->identity) {
        TRY(TAKE(&t->memory, t->right, (size_t)states * (size_t)d, err));
        gemm_nt(states, d, d, q0, d, AT(c->head1.weight) + d, 2 * d, t->right, d, false);
        return FR_OK;
    }
    TRY(TAKE(&t->memory, t->query, (size_t)states * (size_t)t->mix_width, err));
    gemm_nt(states, t->mix_width, wide, q0, wide, t->fold, wide, t->query, t->mix_width, false);
    TRY(TAKE(&t->memory, t->own, (size_t)states * (size_t)d, err));
    for (int i = 0; i < states; i++)
        memcpy(t->own + (size_t)i * (size_t)d, t->merge_bias, (size_t)d * sizeof *t->own);
    gemm_nt(states, d, d, q0, wide, AT(c->fc1.weight) + wide, wide + d, t->own, d, true);
    TRY(TAKE(&t->memory, t->start, (size_t)states * (size_t)wide, err));
    for (int i = 0; i < states; i++)
        for (int k = 0; k < wide; k++)
            q0[(size_t)i * (size_t)wide + (size_t)k] += AT(c->out.bias)[k];
    gemm_nt(states, wide, wide, q0, wide, t->turn, wide, t->start, wide, false);
    return FR_OK;
}

/* to[rows, heads, wide] = turn of the products of x[rows, width] with the columns of mix that begin
 * with `column` */
static fr_status mix_all(const tgn_tables *t, int rows, int width, const real *x, int column,
                         arena *step, real *to, fr_error *err) {
    const tgn *c = t->c;
    int wide = c->wide, keys = c->key_width;
    real *turned; /* [wide, width] */
    TRY(TAKE(step, turned, wide * width, err));
    for (int h = 0; h < c->heads; h++) {
        gemm_nn(wide, width, wide, t->turn, wide,
                t->mix + (size_t)(h * wide) * (size_t)keys + column, keys, turned, width, false);
        gemm_nt(rows, wide, width, x, width, turned, width, to + h * wide, c->heads * wide, false);
    }
    return FR_OK;
}

static fr_status by_other(tgn_tables *t, arena *step, fr_error *err) {
    const tgn *c = t->c;
    int states = side_states(t, true);
    size_t d = (size_t)c->dim;
    real *s; /* [states, dim] */
    TRY(TAKE(c->node < 0 ? step : &t->memory, s, (size_t)states * d, err));
    if (c->node >= 0) t->shown = s;
    for (int i = 0; i < states; i++) tgn_show(t->m, side_place(t, true, i), s + (size_t)i * d);
    TRY(TAKE(&t->memory, t->value, (size_t)states * (size_t)(c->heads * c->wide), err));
    return mix_all(t, states, c->dim, s, 0, step, t->value, err);
}

/* ---- by event ---- */

static fr_history candidate_events(const tgn_tables *t, int32_t v) {
    return window_node_events(t->m->w, window_destination_node(t->m->w, v));
}

/* The destination's first event that is among its last `neighbors` when the first replayed event is
 * scored, as a place in the destination's list. */
static int32_t first_needed(const tgn_tables *t, int32_t v) {
    const fr_window *w = t->m->w;
    fr_history all = candidate_events(t, v);
    int32_t cut = t->c->from < w->events ? window_cut(w, t->c->from) : w->events;
    int32_t before = events_below(all.event, all.count, cut);
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
        rows += (size_t)(candidate_events(t, v).count - first);
    }
    TRY(TAKE(&t->memory, t->code, rows * 2 * width, err));
    TRY(TAKE(&t->memory, t->feature, rows * edges, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        fr_history all = candidate_events(t, v);
        for (int32_t k = first_needed(t, v); k < all.count; k++) {
            int32_t e = all.event[k];
            size_t row = (size_t)(t->row[v] + k);
            for (size_t i = 0; i < width; i++)
                angle[i] = (double)AT(c->time.weight)[i] * window_time(w, e);
            vmath_cos(c->time_dim, angle, t->code + row * 2 * width);
            vmath_sin(c->time_dim, angle, t->code + row * 2 * width + width);
            model_features(t->m, e, t->feature + row * edges);
        }
    }
    if (!edges) return FR_OK;
    TRY(TAKE(&t->memory, t->edge, rows * (size_t)(c->heads * c->wide), err));
    return mix_all(t, (int)rows, c->edges, t->feature, c->dim, step, t->edge, err);
}

static fr_status make_tables(tgn_tables *t, arena *step, fr_error *err) {
    TRY(compose_head(t, err));
    if (t->c->identity) return by_candidate(t, step, err);
    TRY(compose_attention(t, err));
    TRY(compose_turn(t, step, err));
    TRY(compose_merge(t, step, err));
    TRY(by_candidate(t, step, err));
    TRY(by_other(t, step, err));
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
