/* patch_fast.c - the patch transformer for every candidate of an event at once (MODELS 13.4).
 *
 * The source's side runs once per event (patch_source.c), for several events at once so that its
 * products have enough rows. Each candidate then needs a query, one attention over at
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
#include "models/patch_source.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 }; /* candidates at a time */

/* n = patches of an event, `most` of them at most. */
typedef struct worker {
    /* a call */
    patch_room past;
    real *own;   /* [events, dim + time_dim] identities of sources, codes of times */
    real *base;  /* [events, dim] what they give to a query */
    real *key;   /* [patches, dim] keys of patches through Wa, .. */
    real *bias;  /* [patches] .. and their constants */
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
    patch_source past;
    int room; /* columns of tables */
    int block;
    real *item;        /* [dim, room] e(v) */
    real *asked;       /* [dim, room] its part of a query, centred */
    real *own;         /* [hidden, room] its part of the head, with biases */
    real *aligned;     /* [room] the part of s that is its norm's bias, times e(v) */
    turned base;       /* (dim + time_dim, dim) what source and time give to a query, with bias */
    turned key;        /* (dim, dim) Wa^T WK / sqrt(dim) with bias, .. */
    real *about;       /* [dim] .. the same of the bias of Wa .. */
    real constant;     /* .. and of both biases */
    turned value;      /* (dim, dim) with bias */
    turned of_s, of_c; /* (dim, dim) the head's parts */
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
    return w->gram + i * f->past.most * (f->past.most + 1);
}

/* What attention and head make of the values. */
SIMD_INLINE void read_values(const fast *f, worker *w, int count, const int32_t *from) {
    const patch *p = f->f;
    int d = p->dim, rows = from[count] + count;
    real *value = w->value;
    for (int i = 0; i < count; i++) {
        for (int k = from[i]; k < from[i + 1]; k++, value += d) centre(d, w->plain + k * d, value);
        centre(d, w->own + i * (d + p->time_dim), value);
        value += d;
    }
    for (int k = 0; k < rows; k++)
        lanes_multiply(d, AT(p->state_norm.weight), w->value + k * d, w->scaled + k * d);
    turned_product(&f->of_s, rows, w->scaled, d, w->of_s, d, false);
    if (!p->remembers) turned_product(&f->of_c, from[count], w->plain, d, w->of_c, d, false);
    for (int i = 0; i < count; i++) {
        int n = from[i + 1] - from[i], at = from[i] + i;
        value = w->value + at * d;
        gemm_nt(n + 1, n, d, value, d, value, d, gram_of(f, w, i), n, false);
        gemm_nt(n + 1, 1, d, value, d, value + n * d, d, w->gram_own + at, 1, false);
    }
}

/* Base of queries, keys and values of all events. */
SIMD_INLINE void read_sources(const fast *f, worker *w, const fr_query *queries, int count) {
    const patch *p = f->f;
    const fr_window *window = f->m->w;
    int d = p->dim, wide = d + p->time_dim;
    for (int i = 0; i < count; i++) {
        int32_t node = window_source_node(window, queries[i].source);
        lanes_copy(d, AT(p->source) + (size_t)node * (size_t)d, w->own + i * wide);
        patch_time(p, window->time[queries[i].event], w->own + i * wide + d);
    }
    turned_product(&f->base, count, w->own, wide, w->base, d, false);
    patch_source_run(&f->past, &w->past, queries, count);
    int n = w->past.from[count];
    turned_product(&f->key, n, w->past.x, d, w->key, d, false);
    for (int k = 0; k < n; k++)
        w->bias[k] = f->constant + lanes_dot(d, f->about, w->past.x + k * d);
    turned_product(&f->value, n, w->past.x, d, w->plain, d, false);
    read_values(f, w, count, w->past.from);
}

/* ---- a block of candidates ---- */

/* 1 / sqrt(sum / dim + eps) */
SIMD_INLINE real scale_of(int dim, real sum) {
    return 1 / real_sqrt(sum / (real)dim + (real)TRANSFORMER_EPS);
}

/* Sums down the columns of a block run over FOUR vectors of columns at a time, whose sums stay in
 * registers, and over single vectors at the end. */
enum { FOUR = 4 };
#define DOWN_COLUMNS(step, width, ...)                                                             \
    do {                                                                                           \
        int j_ = 0;                                                                                \
        for (; j_ + FOUR * LANES <= (width); j_ += FOUR * LANES) step(FOUR, j_, __VA_ARGS__);      \
        for (; j_ < (width); j_ += LANES) step(1, j_, __VA_ARGS__);                                \
    } while (0)

/* rho[j ..] = squared lengths of queries before their norm */
SIMD_INLINE void add_squares(int vectors, int j, int d, const real *asked, int room,
                             const real *base, real *rho) {
    lanes sum[FOUR] = {{0}};
    for (int k = 0; k < d; k++, asked += room)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            lanes here = LANES_AT(asked + j + v * LANES) + base[k];
            sum[v] += here * here;
        }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) LANES_AT(rho + j + v * LANES) = sum[v];
}

/* total[j ..] = bias + last . hidden, or of what ReLU leaves of it */
SIMD_INLINE void add_hidden(int vectors, int j, int d, int width, bool relu, const real *hidden,
                            const real *last, real bias, real *total) {
    lanes sum[FOUR] = {{0}};
    for (int k = 0; k < d; k++, hidden += width)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            lanes at = LANES_AT(hidden + j + v * LANES);
            if (relu) at = LANES_CHOOSE(at > 0, at, (lanes){0});
            sum[v] += last[k] * at;
        }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) LANES_AT(total + j + v * LANES) = sum[v] + bias;
}

/* w->q = queries of candidates `from` .. */
SIMD_INLINE void block_ask(const fast *f, worker *w, const real *base, int from, int width) {
    const patch *p = f->f;
    int d = p->dim;
    const real *asked = f->asked + from;
    DOWN_COLUMNS(add_squares, width, d, asked, f->room, base, w->rho);
    for (int j = 0; j < width; j++) w->rho[j] = scale_of(d, w->rho[j]);
    vmath_gelu_norm(d, width, asked, f->room, base, AT(p->query_norm.weight),
                    AT(p->query_norm.bias), w->rho, w->q);
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
        w->rho[j] = scale_of(d, w->rho[j] < 0 ? 0 : w->rho[j]); /* < 0 by rounding */
    for (int i = 0; i < n; i++)
        lanes_multiply(width, weight + i * width, w->rho, scaled + i * width);
    memcpy(scaled + n * width, w->rho, (size_t)width * sizeof *w->rho);
}

/* w->hidden = the head's first layer before its function. The head of LHA sees neither q nor c. */
SIMD_INLINE void block_hidden(const fast *f, worker *w, int event, int at, int from, int width) {
    int d = f->f->dim, n = w->n, skip = f->f->remembers ? d + n : 0;
    const real *of_s = w->of_s + (at + event) * d;
    if (!f->f->remembers) {
        lanes_copy(n * d, w->of_c + at * d, w->head + d * d);
        lanes_copy((n + 1) * d, of_s, w->head + (d + n) * d);
    }
    gemm_tn_from(d, width, d + 2 * n + 1 - skip, f->f->remembers ? of_s : w->head, d,
                 w->q + skip * width, width, f->own + from, f->room, w->hidden, width);
}

/* w->total = scores without the memory */
SIMD_INLINE void block_scores(const fast *f, worker *w, const real *scaled_values, int from,
                              int width) {
    const patch *p = f->f;
    int d = p->dim, n = w->n;
    const real *scaled = w->q + (d + n) * width, *last = AT(p->fc2.weight);
    if (!p->remembers) vmath_gelu((int64_t)d * width, w->hidden, w->hidden);
    DOWN_COLUMNS(add_hidden, width, d, width, p->remembers, w->hidden, last, *AT(p->fc2.bias),
                 w->total);
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
    const int32_t *at = w->past.from;
    size_t row = (size_t)(end - first);
    read_sources(f, w, queries, count);
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
    (void)err;
    const fast *f = state;
    f->run(f, &f->workers[number], queries, count, from, to, scores);
    return FR_OK;
}

/* ---- opening ---- */

/* to[rows, room] (+)= weight[rows, dim] e(v), rows of the weight `ld` apart */
static void by_item(const fast *f, int rows, const real *weight, int ld, real *to) {
    gemm_nn(rows, f->room, f->f->dim, weight, ld, f->item, f->room, to, f->room, true);
}

/* The query's weights [dim, 2 dim + time_dim] without the mean over its outputs, which its norm
 * removes anyway. */
static fr_status make_query(fast *f, fr_error *err) {
    const patch *p = f->f;
    int d = p->dim, all = 2 * d + p->time_dim;
    real *query, *bias;
    TRY(TAKE(&f->memory, query, d * all, err));
    TRY(TAKE(&f->memory, bias, d, err));
    for (int j = 0; j <= all; j++) {
        const real *from = j < all ? AT(p->query.weight) + j : AT(p->query.bias);
        real *to = j < all ? query + j : bias;
        int step = j < all ? all : 1;
        double mean = 0;
        for (int i = 0; i < d; i++) mean += from[i * step] / (double)d;
        for (int i = 0; i < d; i++) to[i * step] = (real)(from[i * step] - mean);
    }
    TRY(turned_take(&f->memory, d + p->time_dim, d, &f->base, err));
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d + p->time_dim; j++)
            *turned_at(&f->base, j, i) = query[i * all + (j < d ? j : d + j)];
    f->base.bias = bias;
    TRY(TAKE(&f->memory, f->asked, (size_t)d * (size_t)f->room, err));
    by_item(f, d, query + d, all, f->asked);
    return FR_OK;
}

/* (Wa q + ba) . (WK x + bK) / sqrt(dim) = q . key(x) + about . x + constant; sums in double */
static fr_status make_key(fast *f, fr_error *err) {
    const patch *p = f->f;
    int d = p->dim;
    double scale = 1 / sqrt((double)d), constant = 0;
    real *bias;
    TRY(turned_take(&f->memory, d, d, &f->key, err));
    TRY(TAKE(&f->memory, bias, d, err));
    TRY(TAKE(&f->memory, f->about, d, err));
    for (int i = 0; i < d; i++) {
        double of_bias = 0, about = 0;
        for (int j = 0; j < d; j++) {
            double sum = 0;
            for (int k = 0; k < d; k++)
                sum += (double)AT(p->ask.weight)[k * d + i] * AT(p->key.weight)[k * d + j];
            *turned_at(&f->key, j, i) = (real)(scale * sum);
            of_bias += (double)AT(p->ask.weight)[j * d + i] * AT(p->key.bias)[j];
            about += (double)AT(p->ask.bias)[j] * AT(p->key.weight)[j * d + i];
        }
        bias[i] = (real)(scale * of_bias);
        f->about[i] = (real)(scale * about);
        constant += (double)AT(p->ask.bias)[i] * AT(p->key.bias)[i];
    }
    f->key.bias = bias;
    f->constant = (real)(scale * constant);
    return FR_OK;
}

/* The matrices that read a source's patches and its identity. */
static fr_status make_matrices(fast *f, fr_error *err) {
    const patch *p = f->f;
    int d = p->dim, wide = p->remembers ? 2 * d : 4 * d;
    const real *head = AT(p->fc1.weight);
    TRY(make_key(f, err));
    TRY(turned_make(&f->memory, d, d, AT(p->value.weight), d, &f->value, err));
    f->value.bias = AT(p->value.bias);
    TRY(turned_make(&f->memory, d, d, head, wide, &f->of_s, err));
    return p->remembers ? FR_OK : turned_make(&f->memory, d, d, head + 3 * d, wide, &f->of_c, err);
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
    TRY(make_matrices(f, err));
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
    size_t d = (size_t)p->dim, n = (size_t)f->past.most, width = (size_t)lanes_round_up(f->block);
    size_t events = (size_t)f->past.events, columns = d + 2 * n + 1;
    TRY(patch_room_make(&f->past, &f->memory, &w->past, err));
    TRY(TAKE(&f->memory, w->own, events * (d + (size_t)p->time_dim), err));
    TRY(TAKE(&f->memory, w->base, events * d, err));
    TRY(TAKE(&f->memory, w->key, events * n * d, err));
    TRY(TAKE(&f->memory, w->bias, events * n, err));
    TRY(TAKE(&f->memory, w->plain, events * n * d, err));
    TRY(TAKE(&f->memory, w->value, events * (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->scaled, events * (n + 1) * d, err));
    TRY(TAKE(&f->memory, w->of_s, events * (n + 1) * d, err));
    if (!p->remembers) TRY(TAKE(&f->memory, w->of_c, events * n * d, err));
    TRY(TAKE(&f->memory, w->gram, events * (n + 1) * n, err));
    TRY(TAKE(&f->memory, w->gram_own, events * (n + 1), err));
    if (!p->remembers) TRY(TAKE(&f->memory, w->head, d * columns, err));
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
    TRY(patch_source_open(&f->past, m, &f->memory, err));
    out->many = f->past.events;
    TRY(make_tables(f, err));
    TRY(TAKE(&f->memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    return FR_OK;
}
