/* patch_source.c - see patch_source.h.
 *
 * A row depends only on its own event, in an order that the number of the event's patches decides.
 * So the other events of the call do not matter to its bits.
 */
#include "models/patch_source.h"

#include "nn/vmath.h"

#include <string.h>

enum {
    EVENTS = 16,    /* of a call, .. */
    PATCHES = 1024, /* .. unless they may have more patches than this together: then one */
    ROWS = 96       /* that go through the wide layer together */
};

#define AT(parameter) model_value(p->m, parameter)

/* The last events of the source; a place of a patch that has none has no identity. */
SIMD_INLINE void read_tokens(const patch_source *p, patch_room *room, const fr_query *query,
                             fr_history past, int patches, int first) {
    const patch *f = p->f;
    const fr_window *w = p->m->w;
    int d = f->dim, tokens = patches * f->slots, missing = tokens - past.count;
    int32_t node = window_source_node(w, query->source);
    double now = w->time[query->event];
    real *to = room->entry + (size_t)(first * f->slots) * (size_t)(d + f->time_dim);
    for (int j = 0; j < tokens; j++, to += d + f->time_dim) {
        int32_t e = j < missing ? -1 : past.event[j - missing];
        if (e < 0) {
            lanes_fill(d, 0, to);
        } else {
            int32_t item = window_other(w, node, e) - w->first_destination;
            lanes_copy(d, AT(f->item) + (size_t)item * (size_t)d, to);
        }
        patch_time(f, e < 0 ? 0 : now - w->time[e], to + d);
    }
}

/* x[rows, dim] = GELU(LN(x)), by way of room->hat */
SIMD_INLINE void norm_gelu(const patch_source *p, patch_room *room, int rows, param_pair norm,
                           real *x) {
    int d = p->f->dim;
    kernel_norm(rows, d, x, NULL, AT(norm.weight), AT(norm.bias), TRANSFORMER_EPS, NULL, NULL,
                room->hat);
    vmath_gelu((int64_t)rows * d, room->hat, x);
}

/* room->x before the first block. A source without a past has one patch, of zeros. */
SIMD_INLINE void read_patches(const patch_source *p, patch_room *room, const fr_query *queries,
                              int count) {
    const patch *f = p->f;
    const fr_window *w = p->m->w;
    int d = f->dim, rows = 0, in = d + f->time_dim;
    bool empty[EVENTS];
    for (int i = 0; i < count; i++) {
        int32_t node = window_source_node(w, queries[i].source);
        fr_history past = window_node_history(w, node, window_cut(w, queries[i].event), f->history);
        int patches = past.count ? (past.count + f->slots - 1) / f->slots : 1;
        empty[i] = !past.count;
        room->from[i] = rows;
        read_tokens(p, room, &queries[i], past, patches, rows);
        rows += patches;
    }
    room->from[count] = rows;
    turned_product(&p->token, rows * f->slots, room->entry, in, room->token, d, false);
    norm_gelu(p, room, rows * f->slots, f->token_norm, room->token);
    turned_product(&p->join, rows, room->token, f->slots * d, room->x, d, false);
    norm_gelu(p, room, rows, f->join_norm, room->x);
    for (int i = 0; i < count; i++)
        if (empty[i]) lanes_fill(d, 0, room->x + (size_t)room->from[i] * (size_t)d);
}

/* room->hat of rows; then the bias of the branch that follows is added to them. */
SIMD_INLINE void norm_rows(const patch_source *p, patch_room *room, int rows, const real *bias) {
    size_t d = (size_t)p->f->dim;
    for (size_t i = 0; i < (size_t)rows; i++)
        transformer_norm(p->f->dim, room->x + i * d, bias, room->hat + i * d);
}

/* room->mix: the rows of an event attend to each other. */
SIMD_INLINE void attend(const patch_source *p, patch_room *room, int event) {
    int d = p->f->dim, first = room->from[event], n = room->from[event + 1] - first;
    const real *qkv = room->qkv + (size_t)first * (size_t)(3 * d);
    for (int h = 0; h < p->f->heads; h++) {
        transformer_logits(d, p->f->heads, h, n, qkv, n, qkv, room->logits, lanes_round_up(n));
        transformer_mix(d, p->f->heads, h, n, qkv, room->logits, room->total,
                        room->mix + (size_t)first * (size_t)d);
    }
}

SIMD_INLINE void run_block(const patch_source *p, patch_room *room, const transformer_table *y,
                           int count) {
    int d = p->f->dim, rows = room->from[count];
    norm_rows(p, room, rows, y->out_bias);
    turned_product(&y->qkv, rows, room->hat, d, room->qkv, 3 * d, false);
    for (int i = 0; i < count; i++) attend(p, room, i);
    turned_product(&y->out, rows, room->mix, d, room->x, d, true);
    norm_rows(p, room, rows, y->ffn2_bias);
    for (int at = 0; at < rows; at += ROWS) {
        int some = rows - at < ROWS ? rows - at : ROWS;
        size_t from = (size_t)at * (size_t)d;
        turned_product(&y->ffn1, some, room->hat + from, d, room->wide, 4 * d, false);
        vmath_gelu((int64_t)some * (4 * d), room->wide, room->wide);
        turned_product(&y->ffn2, some, room->wide, 4 * d, room->x + from, d, true);
    }
}

SIMD_INLINE void run_source(const patch_source *p, patch_room *room, const fr_query *queries,
                            int count) {
    read_patches(p, room, queries, count);
    for (int l = 0; l < p->f->layers; l++) run_block(p, room, &p->layer[l], count);
}

SIMD_BUILDS(run, run_source,
            (const patch_source *p, patch_room *room, const fr_query *queries, int count),
            (p, room, queries, count))

/* Most patches of an event: as many as the model reads, or as the longest past has. */
static int most_patches(const model *m) {
    const patch *f = m->own;
    int32_t most = 1;
    for (int32_t u = 0; u < m->w->sources; u++) {
        int32_t count = window_node_events(m->w, window_source_node(m->w, u)).count;
        if (count > most) most = count;
    }
    return ((most < f->history ? most : f->history) + f->slots - 1) / f->slots;
}

fr_status patch_source_open(patch_source *p, const model *m, arena *memory, fr_error *err) {
    const patch *f = m->own;
    int d = f->dim, in = d + f->time_dim;
    *p = (patch_source){.m = m, .f = f, .most = most_patches(m), .run = run_now()};
    p->events = p->most <= PATCHES / EVENTS ? EVENTS : 1;
    TRY(turned_make(memory, in, d, AT(f->token.weight), in, &p->token, err));
    TRY(turned_make(memory, f->slots * d, d, AT(f->join.weight), f->slots * d, &p->join, err));
    p->token.bias = AT(f->token.bias);
    p->join.bias = AT(f->join.bias);
    for (int l = 0; l < f->layers; l++)
        TRY(transformer_table_make(m, &f->layer[l], d, f->heads, memory, &p->layer[l], err));
    return FR_OK;
}

fr_status patch_room_make(const patch_source *p, arena *memory, patch_room *room, fr_error *err) {
    size_t d = (size_t)p->f->dim, rows = (size_t)p->events * (size_t)p->most;
    size_t tokens = rows * (size_t)p->f->slots, lanes_most = (size_t)lanes_round_up(p->most);
    TRY(TAKE(memory, room->from, p->events + 1, err));
    TRY(TAKE(memory, room->x, rows * d, err));
    TRY(TAKE(memory, room->entry, tokens * (d + (size_t)p->f->time_dim), err));
    TRY(TAKE(memory, room->token, tokens * d, err));
    TRY(TAKE(memory, room->hat, tokens * d, err));
    TRY(TAKE(memory, room->qkv, rows * 3 * d, err));
    TRY(TAKE(memory, room->mix, rows * d, err));
    TRY(TAKE(memory, room->wide, (rows < ROWS ? rows : ROWS) * 4 * d, err));
    TRY(TAKE(memory, room->logits, (size_t)p->most * lanes_most, err));
    return TAKE(memory, room->total, lanes_most, err);
}
