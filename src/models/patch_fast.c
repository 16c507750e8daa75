/* patch_fast.c - the patch transformer for every candidate of an event at once (MODELS 13.4).
 *
 * The source's side runs once per event, through the plain forward pass, for several events at once
 * so that its products have enough rows. Each candidate then needs a query, one attention over at
 * most `history / patch` patches, and a head. Vectors of candidates are columns, as in
 * craft_fast.c: a lane is a candidate, and nothing is added across lanes.
 *
 * The query is GELU(LN(A_v + b)) with a table A of candidates and b of the event. Everything after
 * the attention is linear in its weights a, except one norm: with centred values V' and identity
 * u',
 *
 *     s = rho (g * (u' + sum_i a_i V'_i)) + b
 *     rho = 1 / sqrt(|u' + sum_i a_i V'_i|^2 / d + eps)
 *
 * So a matrix times s is a product with rho [a; 1], plus a constant; the same holds for
 * s . e(v) and, without rho, for c; and |.|^2 is [a; 1] times the values' products with each other.
 * These are products over the few patches, not over dimensions. Only one product over dimensions is
 * left, that of the head with q. The input of the head is one column, [q; a; rho a; rho], so its
 * first layer is one product.
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

/* Candidates at a time; most events of a call, and patches of all of them if there are several. */
enum { BLOCK = 128, EVENTS = 16, PATCHES = 1024 };

/* n = patches of an event, `most` of them at most. */
typedef struct worker {
    tape t;
    /* a call */
    int32_t event[EVENTS];
    real *own;   /* [events, dim] identities of sources */
    real *angle; /* [events, time_dim] */
    real *base;  /* [events, dim] what source and time give to a query */
    real *key;   /* [patches, dim] WK of patches through Wa, .. */
    real *bias;  /* [patches] .. and its constant */
    real *plain; /* [patches, dim] values */
    /* a call; of each event n + 1 rows, values and the identity */
    real *value;    /* [patches + events, dim] centred */
    real *scaled;   /* [patches + events, dim] g * value */
    real *of_s;     /* [patches + events, dim] the head's part of s */
    real *of_c;     /* [patches, dim] and of c */
    real *gram;     /* [events, most + 1, most] products of values (n + 1, n), .. */
    real *gram_own; /* [patches + events] .. and with the identity */
    /* a block of candidates of an event */
    int n;
    real *head;        /* [dim + 2n + 1, dim] the head's parts of q (which stays), c and s */
    real *q;           /* [dim + 2n + 1, width] query, weights a, rho a, rho */
    real *hidden;      /* [dim, width] */
    real *dot;         /* [n + 1, width] */
    real *total, *rho; /* [width] */
} worker;

typedef struct fast {
    const model *m;
    const patch *f;
    arena memory; /* run */
    int room;     /* columns of tables */
    int most;     /* patches */
    int many;     /* events of a call */
    int block;
    real *item;    /* [dim, room] e(v) */
    real *asked;   /* [dim, room] its part of a query, centred */
    real *own;     /* [hidden, room] its part of the head, with biases */
    real *aligned; /* [room] the part of s that is its norm's bias, times e(v) */
    real *query;   /* [dim, 2 dim + time_dim] weights of a query, centred over its outputs */
    real *query_bias;
    void (*run)(const struct fast *f, worker *w, const fr_query *queries, int count, int32_t first,
                int32_t end, float *scores);
    worker *workers;
} fast;

#define AT(parameter) model_value(f->m, parameter)

/* ---- the events of a call ---- */

/* to[k] = x[k] minus the mean of x */
SIMD_INLINE void centre(int n, const real *x, real *to) {
    real mean = lanes_sum(n, x) / (real)n;
    for (int k = 0; k < n; k++) to[k] = x[k] - mean;
}

static real *gram_of(const fast *f, worker *w, int i) {
    return w->gram + i * f->most * (f->most + 1);
}

/* What attention and head make of the values. */
SIMD_INLINE void read_values(const fast *f, worker *w, int count, const int32_t *from) {
    const patch *p = f->f;
    int d = p->dim, wide = p->remembers ? 2 * d : 4 * d, rows = from[count] + count;
    real *value = w->value;
    for (int i = 0; i < count; i++) {
        for (int k = from[i]; k < from[i + 1]; k++, value += d) centre(d, w->plain + k * d, value);
        centre(d, w->own + i * d, value);
        value += d;
    }
    for (int k = 0; k < rows; k++)
        lanes_multiply(d, AT(p->state_norm.weight), w->value + k * d, w->scaled + k * d);
    const real *head = AT(p->fc1.weight);
    gemm_nt(rows, d, d, w->scaled, d, head, wide, w->of_s, d, false);
    if (!p->remembers)
        gemm_nt(from[count], d, d, w->plain, d, head + 3 * d, wide, w->of_c, d, false);
    for (int i = 0; i < count; i++) {
        int n = from[i + 1] - from[i], at = from[i] + i;
        value = w->value + at * d;
        gemm_nt(n + 1, n, d, value, d, value, d, gram_of(f, w, i), n, false);
        gemm_nt(n + 1, 1, d, value, d, value + n * d, d, w->gram_own + at, 1, false);
    }
}

/* Base of queries, keys and values of all events, and where each one's patches begin. */
SIMD_INLINE const int32_t *read_sources(const fast *f, worker *w, const fr_query *queries,
                                        int count) {
    const patch *p = f->f;
    const fr_window *window = f->m->w;
    int d = p->dim, all = 2 * d + p->time_dim;
    for (int i = 0; i < count; i++) {
        int32_t node = window_source_node(window, queries[i].source);
        w->event[i] = queries[i].event;
        memcpy(w->own + i * d, AT(p->source) + (size_t)node * (size_t)d,
               (size_t)d * sizeof *w->own);
        memcpy(w->base + i * d, f->query_bias, (size_t)d * sizeof *w->base);
        patch_time(p, window->time[queries[i].event], w->angle + i * p->time_dim);
    }
    tape_reset(&w->t);
    patch_sources side = patch_read_sources(f->m, &w->t, count, w->event);
    if (w->t.status) return NULL;
    gemm_nt(count, d, d, w->own, d, f->query, all, w->base, d, true);
    gemm_nt(count, d, p->time_dim, w->angle, p->time_dim, f->query + 2 * d, all, w->base, d, true);
    int n = side.from[count];
    real scale = (real)(1 / sqrt((double)d));
    gemm_linear(n, d, d, side.memory.v, AT(p->key.weight), AT(p->key.bias), w->plain);
    for (int i = 0; i < n * d; i++) w->plain[i] *= scale;
    gemm_nn(n, d, d, w->plain, d, AT(p->ask.weight), d, w->key, d, false);
    gemm_nn(n, 1, d, w->plain, d, AT(p->ask.bias), 1, w->bias, 1, false);
    gemm_linear(n, d, d, side.memory.v, AT(p->value.weight), AT(p->value.bias), w->plain);
    read_values(f, w, count, side.from);
    return side.from;
}

/* ---- a block of candidates ---- */

/* rho[j] = 1 / sqrt(sum[j] / dim + eps) */
SIMD_INLINE void scales(int dim, int width, real *rho) {
    for (int j = 0; j < width; j++)
        rho[j] = (real)(1 / sqrt((double)(rho[j] / (real)dim) + TRANSFORMER_EPS));
}

/* w->q = queries of candidates `from` .. */
SIMD_INLINE void block_ask(const fast *f, worker *w, const real *base, int from, int width) {
    const patch *p = f->f;
    int d = p->dim;
    const real *gain = AT(p->query_norm.weight), *bias = AT(p->query_norm.bias);
    real *restrict rho = w->rho;
    lanes_fill(width, 0, rho);
    for (int k = 0; k < d; k++) {
        const real *asked = f->asked + (size_t)k * (size_t)f->room + from;
        for (int j = 0; j < width; j += LANES) {
            lanes here = LANES_AT(asked + j) + base[k];
            LANES_AT(rho + j) += here * here;
        }
    }
    scales(d, width, rho);
    for (int k = 0; k < d; k++) {
        const real *asked = f->asked + (size_t)k * (size_t)f->room + from;
        for (int j = 0; j < width; j += LANES)
            LANES_AT(w->q + k * width + j) =
                (LANES_AT(asked + j) + base[k]) * LANES_AT(rho + j) * gain[k] + bias[k];
    }
    vmath_gelu((int64_t)d * width, w->q, w->q);
}

/* Weights and rho, below the queries. */
SIMD_INLINE void block_attend(const fast *f, worker *w, int event, int at, int width) {
    int d = f->f->dim, n = w->n;
    real *weight = w->q + d * width, *scaled = weight + n * width;
    gemm_linear_columns(n, width, d, w->key + at * d, w->bias + at, w->q, weight);
    columns_softmax(n, width, weight, w->total);
    gemm_linear_columns(n + 1, width, n, gram_of(f, w, event), w->gram_own + at + event, weight,
                        w->dot);
    memcpy(w->rho, w->dot + n * width, (size_t)width * sizeof *w->rho);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < width; j += LANES)
            LANES_AT(w->rho + j) +=
                LANES_AT(weight + i * width + j) * LANES_AT(w->dot + i * width + j);
    for (int j = 0; j < width; j++)
        if (w->rho[j] < 0) w->rho[j] = 0; /* rounding */
    scales(d, width, w->rho);
    for (int i = 0; i < n; i++)
        lanes_multiply(width, weight + i * width, w->rho, scaled + i * width);
    memcpy(scaled + n * width, w->rho, (size_t)width * sizeof *w->rho);
}

/* w->hidden = the head's first layer before its function, both heads. */
SIMD_INLINE void block_hidden(const fast *f, worker *w, int event, int at, int from, int width) {
    int d = f->f->dim, n = w->n, skip = f->f->remembers ? d + n : 0;
    if (!f->f->remembers) lanes_copy(n * d, w->of_c + at * d, w->head + d * d);
    lanes_copy((n + 1) * d, w->of_s + (at + event) * d, w->head + (d + n) * d);
    gemm_tn_from(d, width, d + 2 * n + 1 - skip, w->head + skip * d, d, w->q + skip * width, width,
                 f->own + from, f->room, w->hidden, width);
}

/* w->total = scores without the memory */
SIMD_INLINE void block_scores(const fast *f, worker *w, const real *scaled_values, int from,
                              int width) {
    const patch *p = f->f;
    int d = p->dim, n = w->n;
    const real *scaled = w->q + (d + n) * width, *last = AT(p->fc2.weight);
    size_t all = (size_t)d * (size_t)width;
    if (p->remembers)
        lanes_relu((int)all, w->hidden, w->hidden);
    else
        vmath_gelu((int64_t)all, w->hidden, w->hidden);
    for (int j = 0; j < width; j++) w->total[j] = *AT(p->fc2.bias);
    gemm_nn(1, width, d, last, d, w->hidden, width, w->total, width, true);
    if (p->remembers) return;
    /* s . e(v) / sqrt(d) */
    gemm_nn(n + 1, width, d, scaled_values, d, f->item + from, f->room, w->dot, width, false);
    real scale = (real)(1 / sqrt((double)d));
    for (int j = 0; j < width; j += LANES) {
        lanes sum = LANES_AT(f->aligned + from + j);
        for (int i = 0; i <= n; i++)
            sum += LANES_AT(scaled + i * width + j) * LANES_AT(w->dot + i * width + j);
        LANES_AT(w->total + j) += sum * scale;
    }
}

/* Adds what the memory knows of candidates that the source has met. */
SIMD_INLINE void add_recalled(const fast *f, const fr_query *query, int32_t first, int32_t end,
                              float *scores) {
    const fr_window *window = f->m->w;
    for (int32_t k = window->source_pair_at[query->source];
         k < window->source_pair_at[query->source + 1]; k++) {
        int32_t v = window->pair_destination[k];
        if (v >= first && v < end) scores[v - first] += (float)lha_recalled(f->m, query->event, v);
    }
}

/* `count` candidates of event number i of the call, whose patches begin at `at`. */
SIMD_INLINE void score_block(const fast *f, worker *w, int i, int at, int32_t from, int count,
                             float *scores) {
    int d = f->f->dim, width = lanes_round_up(count);
    block_ask(f, w, w->base + i * d, from, width);
    block_attend(f, w, i, at, width);
    block_hidden(f, w, i, at, from, width);
    block_scores(f, w, w->scaled + (at + i) * d, from, width);
    for (int j = 0; j < count; j++) scores[j] = (float)w->total[j];
}

/* Block by block, so that the tables' part of a block serves all events from a near cache. */
SIMD_INLINE void score_events(const fast *f, worker *w, const fr_query *queries, int count,
                              int32_t first, int32_t end, float *scores) {
    const int32_t *at = read_sources(f, w, queries, count);
    size_t row = (size_t)(end - first);
    if (!at) return;
    for (int32_t from = first; from < end; from += f->block) {
        int some = end - from < f->block ? end - from : f->block;
        for (int i = 0; i < count; i++) {
            w->n = at[i + 1] - at[i];
            score_block(f, w, i, at[i], from, some, scores + (size_t)i * row + (from - first));
        }
    }
    for (int i = 0; f->f->remembers && i < count; i++)
        add_recalled(f, &queries[i], first, end, scores + (size_t)i * row);
}

SIMD_BUILDS(run, score_events,
            (const fast *f, worker *w, const fr_query *queries, int count, int32_t first,
             int32_t end, float *scores),
            (f, w, queries, count, first, end, scores))

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int number, float *scores, fr_error *err) {
    const fast *f = state;
    worker *w = &f->workers[number];
    f->run(f, w, queries, count, from, to, scores);
    return w->t.status ? fail(err, w->t.status, "%s", w->t.error.message) : FR_OK;
}

/* ---- opening ---- */

/* to[rows, room] (+)= weight[rows, dim] e(v), rows of the weight `ld` apart */
static void by_item(const fast *f, int rows, const real *weight, int ld, real *to) {
    gemm_nn(rows, f->room, f->f->dim, weight, ld, f->item, f->room, to, f->room, true);
}

/* The query's weights without the mean over its outputs, which its norm removes anyway. */
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
    size_t events = (size_t)f->many, columns = d + 2 * n + 1;
    w->t.params = &f->m->params;
    TRY(TAKE(&f->memory, w->own, events * d, err));
    TRY(TAKE(&f->memory, w->angle, events * (size_t)p->time_dim, err));
    TRY(TAKE(&f->memory, w->base, events * d, err));
    TRY(TAKE(&f->memory, w->key, events * n * d, err));
    TRY(TAKE(&f->memory, w->bias, events * n, err));
    TRY(TAKE(&f->memory, w->plain, events * n * d, err));
    TRY(TAKE(&f->memory, w->value, events * (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->scaled, events * (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->of_s, events * (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->of_c, events * n * d, err));
    TRY(TAKE(&f->memory, w->gram, events * (n + 1) * n, err));
    TRY(TAKE(&f->memory, w->gram_own, events * (n + 1), err));
    TRY(TAKE(&f->memory, w->head, d * columns, err));
    TRY(TAKE(&f->memory, w->q, columns * width, err));
    TRY(TAKE(&f->memory, w->hidden, d * width, err));
    TRY(TAKE(&f->memory, w->dot, (n + 1) * width, err));
    TRY(TAKE(&f->memory, w->total, width, err));
    TRY(TAKE(&f->memory, w->rho, width, err));
    for (size_t k = 0; !p->remembers && k < d; k++)
        for (size_t j = 0; j < d; j++) w->head[k * d + j] = AT(p->fc1.weight)[(4 * j + 2) * d + k];
    return FR_OK;
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
    f->many = f->most * EVENTS <= PATCHES ? EVENTS : 1;
    out->many = f->many;
    TRY(make_tables(f, err));
    TRY(TAKE(&f->memory, f->workers, threads + 1, err)); /* one without a tape ends the list */
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    return FR_OK;
}
