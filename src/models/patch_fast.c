/* patch_fast.c - the patch transformer for every candidate of an event at once (MODELS 13.4).
 *
 * The source's side runs once per event, through plain forward. Of a candidate there is then a
 * query, one attention over at most `history / patch` patches, and a head. Vectors of candidates
 * are columns, as in craft_fast.c: a lane is a candidate, and nothing is added across lanes.
 *
 * The query is GELU(LN(A_v + b)) with a table A of candidates and b of the event. What follows the
 * attention is linear in its weights a but for one norm: with centred values V' and identity u',
 *
 *     s = rho (g * (u' + sum_i a_i V'_i)) + b      rho = 1 / sqrt(|u' + sum_i a_i V'_i|^2 / d +
 * eps)
 *
 * so whatever a matrix makes of s is rho times a product with [a; 1], plus a constant; the same
 * holds for s . e(v) and, without rho, for c. These are products over patches, of which there are
 * few, and not over dimensions. One product over dimensions is left, that of the head with q.
 *
 * Bits: a score is a chain of operations on its own lane, in an order that depends on the event
 * alone, so neither the block nor the neighbours matter.
 */
#include "models/lha.h"
#include "models/patch.h"
#include "nn/columns.h"
#include "nn/gemm.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 }; /* candidates at a time */

/* Made for an event; `most` = most patches, n = patches of the event. */
typedef struct worker {
    tape t;
    int n;
    real *base;   /* [dim] what source and time give to a query */
    real *key;    /* [n, dim + 1] WK of patches through Wa, and its constant */
    real *value;  /* [n + 1, dim] centred values, then the centred identity */
    real *plain;  /* [n, dim] values */
    real *scaled; /* [n + 1, dim] g * value */
    real *state;  /* [hidden, n + 1] the head's part of s */
    real *rest;   /* [hidden, dim + n] its parts of q and c */
    real *angle;  /* [time_dim] */
    /* a block */
    real *q;           /* [dim + n + 1, width] query, weights, 1 */
    real *x;           /* [dim, width] */
    real *hidden;      /* [hidden, width] */
    real *dot;         /* [n + 1, width] */
    real *total, *rho; /* [width] */
    real *recalled;    /* [destinations] what the memory adds; 0 between events */
} worker;

typedef struct fast {
    const model *m;
    const patch *f;
    arena memory; /* run */
    int room;     /* columns of tables */
    int most;     /* patches */
    int block;
    real *item;    /* [dim, room] e(v) */
    real *asked;   /* [dim, room] its part of a query, centred */
    real *own;     /* [hidden, room] its part of the head, with biases */
    real *aligned; /* [room] the part of s that is its norm's bias, times e(v) */
    real *query;   /* [dim, 2 dim + time_dim] weights of a query, centred over its outputs */
    real *query_bias;
    void (*run)(const struct fast *f, worker *w, const fr_query *query, int32_t first, int32_t end,
                float *scores);
    worker *workers;
} fast;

#define AT(parameter) model_value(f->m, parameter)

/* ---- columns ---- */

/* rho[j] = 1 / sqrt(mean square of column j + eps) */
SIMD_INLINE void column_scales(int rows, int width, const real *x, real *rho) {
    for (int j = 0; j < width; j += LANES) {
        lanes sum = {0};
        for (int k = 0; k < rows; k++) {
            lanes here = LANES_AT(x + k * width + j);
            sum += here * here;
        }
        LANES_AT(rho + j) = sum;
    }
    for (int j = 0; j < width; j++)
        rho[j] = (real)(1 / sqrt((double)(rho[j] / (real)rows) + TRANSFORMER_EPS));
}

/* ---- an event ---- */

/* to[k] = x[k] minus the mean of x */
SIMD_INLINE void centre(int n, const real *x, real *to) {
    real mean = lanes_sum(n, x) / (real)n;
    for (int k = 0; k < n; k++) to[k] = x[k] - mean;
}

/* Keys, values and what the head makes of them. */
SIMD_INLINE void read_memory(const fast *f, worker *w, const real *memory, const real *own) {
    const patch *p = f->f;
    int d = p->dim, n = w->n, wide = p->remembers ? 2 * d : 4 * d;
    real scale = (real)(1 / sqrt((double)d));
    gemm_linear(n, d, d, memory, AT(p->key.weight), AT(p->key.bias), w->plain);
    for (int i = 0; i < n * d; i++) w->plain[i] *= scale;
    gemm_nn(n, d, d, w->plain, d, AT(p->ask.weight), d, w->key, d + 1, false);
    gemm_nn(n, 1, d, w->plain, d, AT(p->ask.bias), 1, w->key + d, d + 1, false);
    gemm_linear(n, d, d, memory, AT(p->value.weight), AT(p->value.bias), w->plain);
    for (int i = 0; i <= n; i++) {
        centre(d, i < n ? w->plain + i * d : own, w->value + i * d);
        lanes_multiply(d, AT(p->state_norm.weight), w->value + i * d, w->scaled + i * d);
    }
    const real *head = AT(p->fc1.weight);
    gemm_nt(d, n + 1, d, head, wide, w->scaled, d, w->state, n + 1, false);
    if (p->remembers) return;
    for (int k = 0; k < d; k++)
        memcpy(w->rest + k * (d + n), head + k * wide + 2 * d, (size_t)d * sizeof *w->rest);
    gemm_nt(d, n, d, head + 3 * d, wide, w->plain, d, w->rest + d, d + n, false);
}

SIMD_INLINE void read_source(const fast *f, worker *w, const fr_query *query) {
    const patch *p = f->f;
    const fr_window *window = f->m->w;
    int d = p->dim, all = 2 * d + p->time_dim;
    const real *own = AT(p->source) + (size_t)window_source_node(window, query->source) * (size_t)d;
    tape_reset(&w->t);
    patch_sources side = patch_read_sources(f->m, &w->t, 1, &query->event);
    if (w->t.status) return;
    w->n = side.from[1];
    patch_time(p->time_dim, window->time[query->event], w->angle);
    memcpy(w->base, f->query_bias, (size_t)d * sizeof *w->base);
    gemm_nt(1, d, d, own, d, f->query, all, w->base, d, true);
    gemm_nt(1, d, p->time_dim, w->angle, p->time_dim, f->query + 2 * d, all, w->base, d, true);
    read_memory(f, w, side.memory.v, own);
}

/* w->q = queries of candidates `from` .. and below them their weights and 1. */
SIMD_INLINE void block_attend(const fast *f, worker *w, int from, int width) {
    const patch *p = f->f;
    int d = p->dim, n = w->n;
    const real *gain = AT(p->query_norm.weight), *bias = AT(p->query_norm.bias);
    real *weight = w->q + d * width;
    for (int k = 0; k < d; k++)
        for (int j = 0; j < width; j += LANES)
            LANES_AT(w->x + k * width + j) =
                LANES_AT(f->asked + (size_t)k * (size_t)f->room + from + j) + w->base[k];
    column_scales(d, width, w->x, w->rho);
    for (int k = 0; k < d; k++)
        for (int j = 0; j < width; j += LANES)
            LANES_AT(w->x + k * width + j) =
                LANES_AT(w->x + k * width + j) * LANES_AT(w->rho + j) * gain[k] + bias[k];
    vmath_gelu((int64_t)d * width, w->x, w->q);
    lanes_fill(width, 1, weight); /* for the constants of keys */
    gemm_nn(n, width, d + 1, w->key, d + 1, w->q, width, w->dot, width, false);
    memcpy(weight, w->dot, (size_t)n * (size_t)width * sizeof *weight);
    vmath_exp_columns(n, width, weight, w->total);
    columns_divide(n, width, w->total, weight);
    lanes_fill(width, 1, weight + n * width); /* of the identity */
}

/* w->rho and w->hidden = the head's first layer before its function, both heads. */
SIMD_INLINE void block_hidden(const fast *f, worker *w, int from, int width) {
    const patch *p = f->f;
    int d = p->dim, n = w->n;
    const real *weight = w->q + d * width;
    gemm_tn(d, width, n + 1, w->value, d, weight, width, w->x, width, false);
    column_scales(d, width, w->x, w->rho);
    gemm_nn(d, width, n + 1, w->state, n + 1, weight, width, w->x, width, false);
    for (int k = 0; k < d; k++)
        for (int j = 0; j < width; j += LANES)
            LANES_AT(w->hidden + k * width + j) =
                LANES_AT(w->x + k * width + j) * LANES_AT(w->rho + j) +
                LANES_AT(f->own + (size_t)k * (size_t)f->room + from + j);
    if (p->remembers) return;
    gemm_nn(d, width, d + n, w->rest, d + n, w->q, width, w->hidden, width, true);
}

/* w->total = scores without the memory */
SIMD_INLINE void block_scores(const fast *f, worker *w, int from, int width) {
    const patch *p = f->f;
    int d = p->dim, n = w->n;
    const real *weight = w->q + d * width, *last = AT(p->fc2.weight);
    size_t all = (size_t)d * (size_t)width;
    if (p->remembers)
        lanes_relu((int)all, w->hidden, w->hidden);
    else
        vmath_gelu((int64_t)all, w->hidden, w->hidden);
    for (int j = 0; j < width; j++) w->total[j] = *AT(p->fc2.bias);
    gemm_nn(1, width, d, last, d, w->hidden, width, w->total, width, true);
    if (p->remembers) return;
    /* s . e(v) / sqrt(d) */
    gemm_nn(n + 1, width, d, w->scaled, d, f->item + from, f->room, w->dot, width, false);
    real scale = (real)(1 / sqrt((double)d));
    for (int j = 0; j < width; j += LANES) {
        lanes sum = {0};
        for (int i = 0; i <= n; i++)
            sum += LANES_AT(weight + i * width + j) * LANES_AT(w->dot + i * width + j);
        LANES_AT(w->total + j) +=
            (sum * LANES_AT(w->rho + j) + LANES_AT(f->aligned + from + j)) * scale;
    }
}

/* What the memory adds to candidates that the source has met. */
SIMD_INLINE void read_recalled(const fast *f, worker *w, const fr_query *query, bool forget) {
    const fr_window *window = f->m->w;
    for (int32_t k = window->source_pair_at[query->source];
         k < window->source_pair_at[query->source + 1]; k++) {
        int32_t v = window->pair_destination[k];
        w->recalled[v] = forget ? 0 : lha_recalled(f->m, query->event, v);
    }
}

/* Candidates first .. end - 1. */
SIMD_INLINE void score_event(const fast *f, worker *w, const fr_query *query, int32_t first,
                             int32_t end, float *scores) {
    read_source(f, w, query);
    if (w->t.status) return;
    if (f->f->remembers) read_recalled(f, w, query, false);
    for (int32_t from = first; from < end; from += f->block) {
        int count = end - from < f->block ? end - from : f->block, width = lanes_round_up(count);
        block_attend(f, w, from, width);
        block_hidden(f, w, from, width);
        block_scores(f, w, from, width);
        for (int j = 0; j < count; j++)
            scores[from - first + j] = (float)(w->total[j] + w->recalled[from + j]);
    }
    if (f->f->remembers) read_recalled(f, w, query, true);
}

SIMD_BUILDS(run, score_event,
            (const fast *f, worker *w, const fr_query *query, int32_t first, int32_t end,
             float *scores),
            (f, w, query, first, end, scores))

static fr_status score_part(void *state, const fr_query *query, int count, int32_t from, int32_t to,
                            int number, float *scores, fr_error *err) {
    (void)count; /* one at a time */
    const fast *f = state;
    worker *w = &f->workers[number];
    f->run(f, w, query, from, to, scores);
    return w->t.status ? fail(err, w->t.status, "%s", w->t.error.message) : FR_OK;
}

static fr_status score(void *state, const fr_query *query, int count, int number, float *scores,
                       fr_error *err) {
    int32_t all = ((const fast *)state)->m->w->destinations;
    return score_part(state, query, count, 0, all, number, scores, err);
}

/* ---- opening ---- */

/* to[rows, room] (+)= weight[rows, dim] e(v), rows of the weight `ld` apart */
static void by_item(const fast *f, int rows, const real *weight, int ld, real *to) {
    gemm_nn(rows, f->room, f->f->dim, weight, ld, f->item, f->room, to, f->room, true);
}

/* The query's weights without the mean over its outputs, which its norm takes out anyway. */
static fr_status make_query(fast *f, fr_error *err) {
    const patch *p = f->f;
    int d = p->dim, all = 2 * d + p->time_dim;
    TRY(TAKE(&f->memory, f->query, d * all, err));
    TRY(TAKE(&f->memory, f->query_bias, d, err));
    for (int j = 0; j <= all; j++) {
        const real *from = j < all ? AT(p->query.weight) + j : AT(p->query.bias);
        real *to = j < all ? f->query + j : f->query_bias;
        int step = j < all ? all : 1;
        double mean = 0;
        for (int i = 0; i < d; i++) mean += from[i * step] / (double)d;
        for (int i = 0; i < d; i++) to[i * step] = (real)(from[i * step] - mean);
    }
    TRY(TAKE(&f->memory, f->asked, (size_t)d * (size_t)f->room, err));
    by_item(f, d, f->query + d, all, f->asked);
    return FR_OK;
}

static fr_status make_tables(fast *f, fr_error *err) {
    const patch *p = f->f;
    int d = p->dim, n = f->m->w->destinations, wide = p->remembers ? 2 * d : 4 * d;
    size_t room = (size_t)f->room;
    TRY(TAKE(&f->memory, f->item, (size_t)d * room, err));
    for (int v = 0; v < n; v++)
        for (int k = 0; k < d; k++)
            f->item[(size_t)k * room + (size_t)v] = AT(p->item)[(size_t)v * (size_t)d + (size_t)k];
    TRY(make_query(f, err));
    TRY(TAKE(&f->memory, f->own, (size_t)d * room, err));
    for (int k = 0; k < d; k++) {
        double sum = AT(p->fc1.bias)[k];
        for (int j = 0; j < d; j++)
            sum += (double)AT(p->fc1.weight)[k * wide + j] * AT(p->state_norm.bias)[j];
        for (size_t v = 0; v < room; v++) f->own[(size_t)k * room + v] = (real)sum;
    }
    by_item(f, d, AT(p->fc1.weight) + d, wide, f->own);
    TRY(TAKE(&f->memory, f->aligned, room, err));
    by_item(f, 1, AT(p->state_norm.bias), d, f->aligned);
    return FR_OK;
}

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const patch *p = f->f;
    size_t d = (size_t)p->dim, n = (size_t)f->most, width = (size_t)lanes_round_up(f->block);
    w->t.params = &f->m->params;
    TRY(TAKE(&f->memory, w->base, d, err));
    TRY(TAKE(&f->memory, w->key, n * (d + 1), err));
    TRY(TAKE(&f->memory, w->value, (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->plain, n * d, err));
    TRY(TAKE(&f->memory, w->scaled, (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->state, (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->rest, (n + d) * d, err));
    TRY(TAKE(&f->memory, w->angle, p->time_dim, err));
    TRY(TAKE(&f->memory, w->q, (d + n + 1) * width, err));
    TRY(TAKE(&f->memory, w->x, d * width, err));
    TRY(TAKE(&f->memory, w->hidden, d * width, err));
    TRY(TAKE(&f->memory, w->dot, (n + 1) * width, err));
    TRY(TAKE(&f->memory, w->total, width, err));
    TRY(TAKE(&f->memory, w->rho, width, err));
    return TAKE(&f->memory, w->recalled, f->m->w->destinations, err);
}

static void close_fast(void *state) {
    fast *f = state;
    for (int i = 0; f->workers && f->workers[i].t.params; i++) tape_free(&f->workers[i].t);
    arena_free(&f->memory);
    free(f);
}

fr_status patch_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer_definition){.state = f,
                                  .workers = threads,
                                  .score = score,
                                  .close = close_fast,
                                  .part = score_part,
                                  .tile = MODEL_TILE};
    int n = m->w->destinations, block = m->fast_block ? m->fast_block : BLOCK;
    *f = (fast){.m = m,
                .f = m->own,
                .room = lanes_round_up(n + LANES - 1),
                .block = block < n ? block : n,
                .run = run_now()};
    f->most = (f->f->history + f->f->slots - 1) / f->f->slots;
    if (f->most > m->w->events / f->f->slots + 1) f->most = m->w->events / f->f->slots + 1;
    TRY(make_tables(f, err));
    TRY(TAKE(&f->memory, f->workers, threads + 1, err)); /* one without a tape ends the list */
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    return FR_OK;
}
