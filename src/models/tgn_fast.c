/* tgn_fast.c - TGN for every candidate of an event at once (MODELS 5.6).
 *
 * Weights are composed and states turned into queries once, when the scorer is opened
 * (tgn_tables.h). Per event and candidate there remain: the time codes of its neighbours, softmax,
 * sums of neighbours, and three products over a block of candidates. A time code is
 *
 *     cos(w (t - t_j) + b) = cos(w t + b) cos(w t_j) + sin(w t + b) sin(w t_j)
 *
 * whose factors are tables of the event scored and of the neighbour's event: no cosines per
 * neighbour. The part of a logit that does not move with t is kept until the candidate's state, the
 * neighbour or its state is another; it is a function of those alone. Keys are summed before they
 * are multiplied by WR WV: products of states kept ready would save a third of the multiplications
 * but make the sums read three times as much memory, which came out about even (docs/speed.md).
 *
 * A worker knows for each node its last event below the cut it stands at, and goes forward with the
 * events it is given; going back, it starts again.
 *
 * Bits: a score is made of operations on rows of its own, in an order that depends on the event and
 * the candidate alone, so neither the block nor other candidates matter.
 */
#include "models/tgn_fast.h"

#include "models/tgn_tables.h"
#include "nn/gemm.h"
#include "nn/lanes.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

int tgn_fast_block = 64;
simd_level tgn_fast_limit = SIMD_AVX512;

static const double EPS = 1e-5;

enum { AHEAD = 2 }; /* candidates */

/* What the still part of a neighbour's logits was made of: its event, the numbers of the states of
 * both ends. */
typedef struct memo {
    int32_t event, source, destination; /* event -1 = nothing yet */
} memo;

typedef struct worker {
    int32_t cut;
    int32_t *seen;              /* [destinations] events below the cut */
    int32_t *source;            /* [sources] the last replayed event below the cut, -1 = none */
    int32_t *destination;       /* [destinations] */
    memo *memo;                 /* [destinations, neighbors] */
    real *still;                /* [destinations, neighbors, heads] */
    double *angle;              /* [time_dim] */
    real *cosine, *sine;        /* [time_dim] of w t + b */
    real *base;                 /* [dim] W1s z_u + b1 + W1d f2 */
    const real **state, **edge; /* [neighbors] of the row under way */
    real *code;                 /* [neighbors, time_dim] */
    const real **codes;         /* [neighbors] its rows */
    real *weight;               /* [heads, neighbors] */
    real *query;                /* [heads, key_width] of the source */
    real *feature;              /* [neighbors, edges] of the source */
    real *mix;                  /* [block, heads * key_width] sums of keys */
    real *x;                    /* [block, wide + dim] o and s */
    real *y, *z;                /* [block, dim] */
} worker;

typedef struct fast {
    tgn_tables t;
    int block; /* candidates at a time */
    worker *workers;
} fast;

/* ---- kernels ---- */

#define KERNEL        static inline __attribute__((always_inline))
#define AT(parameter) model_value(f->t.m, parameter)

/* The compiler makes of it what the instruction set has. */
typedef real lanes
    __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

#define LANES_AT(x) (*(lanes *)(x))
#define LANES_OF(x) (*(const lanes *)(x))

/* y = sum of weight[j] x[j] over `count` rows of n */
KERNEL void mix_rows(int count, int n, const real *weight, const real *const *x, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes sum = {0};
        for (int j = 0; j < count; j++) sum += weight[j] * LANES_OF(x[j] + k);
        LANES_AT(y + k) = sum;
    }
    for (; k < n; k++) {
        y[k] = 0;
        for (int j = 0; j < count; j++) y[k] += weight[j] * x[j][k];
    }
}

/* y = a * c + b * s */
KERNEL void turn_codes(int n, const real *a, const real *c, const real *b, const real *s, real *y) {
    int k = 0;
    for (; k + LANES <= n; k += LANES)
        LANES_AT(y + k) = LANES_OF(a + k) * LANES_OF(c + k) + LANES_OF(b + k) * LANES_OF(s + k);
    for (; k < n; k++) y[k] = a[k] * c[k] + b[k] * s[k];
}

/* (x - mean) rho, in place */
KERNEL void normalise(int n, real *x) {
    real mean = lanes_sum(n, x) / (real)n;
    for (int k = 0; k < n; k++) x[k] -= mean;
    real rho = (real)(1 / sqrt((double)(lanes_dot(n, x, x) / (real)n) + EPS));
    for (int k = 0; k < n; k++) x[k] *= rho;
}

/* Weights of one head from its logits, in place. */
KERNEL void softmax(int n, real *x) {
    real most = x[0], sum = 0;
    for (int j = 1; j < n; j++) most = x[j] > most ? x[j] : most;
    for (int j = 0; j < n; j++) x[j] -= most;
    vmath_exp(n, x, x);
    for (int j = 0; j < n; j++) sum += x[j];
    real scale = 1 / sum;
    for (int j = 0; j < n; j++) x[j] *= scale;
}

KERNEL void relu(int n, real *x) {
    for (int k = 0; k < n; k++) x[k] = x[k] > 0 ? x[k] : 0;
}

/* ---- where the worker stands ---- */

KERNEL void stand_at(const fast *f, worker *w, int32_t cut) {
    const tgn *c = f->t.c;
    const fr_window *window = f->t.m->w;
    if (cut < w->cut) {
        for (int32_t u = 0; u < window->sources; u++) w->source[u] = -1;
        for (int32_t v = 0; v < window->destinations; v++) w->destination[v] = -1;
        memset(w->seen, 0, (size_t)window->destinations * sizeof *w->seen);
        w->cut = 0;
    }
    for (; w->cut < cut; w->cut++) {
        int32_t e = w->cut, u = window->source[e], v = window->destination[e];
        w->seen[v]++;
        if (e >= c->from) w->source[u] = w->destination[v] = e;
    }
}

KERNEL const real *source_state(const fast *f, const worker *w, int32_t u) {
    const tgn *c = f->t.c;
    int32_t e = w->source[u];
    return tgn_state(c, e < 0 ? u : c->nodes + 2 * (int64_t)(e - c->from));
}

KERNEL const real *destination_state(const fast *f, const worker *w, int32_t v) {
    const tgn *c = f->t.c;
    int32_t e = w->destination[v];
    return tgn_state(c, e < 0 ? c->sources + v : c->nodes + 2 * (int64_t)(e - c->from) + 1);
}

/* The destination's row in tables by state. */
KERNEL size_t destination_row(const fast *f, const worker *w, int32_t v) {
    int32_t e = w->destination[v];
    return (size_t)(e < 0 ? v : f->t.m->w->destinations + (e - f->t.c->from));
}

/* ---- rows: the source, or candidates of a block ---- */

/* Row i from its logits w->weight [heads, n] and its n neighbours in w->state, edge, code. */
KERNEL void mix_row(const fast *f, worker *w, int i, int n, const real *s) {
    const tgn *c = f->t.c;
    int d = c->dim, wide = c->wide;
    real *x = w->x + i * (wide + d), *mix = w->mix + (size_t)i * (size_t)f->t.mix_width;
    memcpy(x, f->t.start, (size_t)wide * sizeof *x);
    for (int k = 0; k < d; k++) x[k] += s[k];
    memcpy(x + wide, s, (size_t)d * sizeof *x);
    for (int h = 0; h < c->heads; h++, mix += c->key_width) {
        real *weight = w->weight + h * n;
        if (n) softmax(n, weight);
        mix_rows(n, d, weight, w->state, mix);
        mix_rows(n, c->edges, weight, w->edge, mix + d);
        mix_rows(n, c->time_dim, weight, w->codes, mix + d + c->edges);
    }
}

/* w->y[count, dim] = ReLU(F1 [o ; s] + f1) of the rows */
KERNEL void merge_rows(const fast *f, worker *w, int count) {
    const tgn *c = f->t.c;
    int d = c->dim, wide = c->wide, ld = wide + d;
    gemm_nn(count, wide, f->t.mix_width, w->mix, f->t.mix_width, f->t.mix, wide, w->x, ld, true);
    for (int i = 0; i < count; i++) {
        normalise(wide, w->x + i * ld);
        memcpy(w->y + i * d, f->t.merge_bias, (size_t)d * sizeof *w->y);
    }
    gemm_nn(count, d, ld, w->x, ld, f->t.merge, d, w->y, d, true);
    relu(count * d, w->y);
}

/* w->z[0] = z_u */
KERNEL void embed_source(const fast *f, worker *w, const fr_query *query, const real *s) {
    const tgn *c = f->t.c;
    const fr_window *window = f->t.m->w;
    int d = c->dim;
    event_list past = tgn_neighbors(c, window, query->source, w->cut);
    memcpy(w->x, s, (size_t)d * sizeof *w->x);
    kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias), 0, w->x + d);
    gemm_nt(1, f->t.mix_width, c->wide, w->x, c->wide, f->t.fold, c->wide, w->query, f->t.mix_width,
            false);
    for (int j = 0; j < past.count; j++) {
        int32_t e = past.event[j];
        real *code = w->code + j * c->time_dim, *feature = w->feature + j * c->edges;
        w->state[j] = destination_state(f, w, window->destination[e]);
        w->edge[j] = feature;
        model_features(f->t.m, e, feature);
        kernel_time(c->time_dim, AT(c->time.weight), AT(c->time.bias),
                    window_time(window, query->event) - window_time(window, e), code);
        for (int h = 0; h < c->heads; h++) {
            const real *q = w->query + h * c->key_width;
            w->weight[h * past.count + j] = lanes_dot(d, q, w->state[j]) +
                                            lanes_dot(c->edges, q + d, feature) +
                                            lanes_dot(c->time_dim, q + d + c->edges, code);
        }
    }
    mix_row(f, w, 0, past.count, s);
    merge_rows(f, w, 1);
    memcpy(w->z, AT(c->fc2.bias), (size_t)d * sizeof *w->z);
    gemm_nt(1, d, d, w->y, d, AT(c->fc2.weight), d, w->z, d, true);
}

/* w->base, and the event's side of all codes. */
KERNEL void read_source(const fast *f, worker *w, const fr_query *query) {
    const tgn *c = f->t.c;
    int d = c->dim;
    const real *z = source_state(f, w, query->source);
    if (!c->identity) {
        embed_source(f, w, query, z);
        z = w->z;
        for (int k = 0; k < c->time_dim; k++)
            w->angle[k] = (double)AT(c->time.weight)[k] * window_time(f->t.m->w, query->event) +
                          (double)AT(c->time.bias)[k];
        vmath_cos(c->time_dim, w->angle, w->cosine);
        vmath_sin(c->time_dim, w->angle, w->sine);
    }
    memcpy(w->base, f->t.head_bias, (size_t)d * sizeof *w->base);
    gemm_nt(1, d, d, z, d, AT(c->head1.weight), 2 * d, w->base, d, true);
}

/* The logits [heads] of neighbour j in w->state and edge without their time part; `place` tells the
 * events of v apart. */
KERNEL const real *still_logits(const fast *f, worker *w, int32_t v, int32_t place, int32_t event,
                                int j, const real *query) {
    const tgn *c = f->t.c;
    size_t slot = (size_t)v * (size_t)c->neighbors + (size_t)(place % c->neighbors);
    memo now = {event, w->source[f->t.m->w->source[event]], w->destination[v]};
    memo *kept = &w->memo[slot];
    real *still = w->still + slot * (size_t)c->heads;
    if (kept->event == now.event && kept->source == now.source &&
        kept->destination == now.destination)
        return still;
    *kept = now;
    for (int h = 0; h < c->heads; h++, query += c->key_width)
        still[h] =
            lanes_dot(c->dim, query, w->state[j]) + lanes_dot(c->edges, query + c->dim, w->edge[j]);
    return still;
}

/* Asks for n numbers that will be read soon. */
KERNEL void expect(int n, const real *x) {
    for (int k = 0; k < n; k += 64 / (int)sizeof *x) __builtin_prefetch(x + k);
}

KERNEL void expect_candidate(const fast *f, const worker *w, int32_t v) {
    const tgn *c = f->t.c;
    const fr_window *window = f->t.m->w;
    int n = w->seen[v] < c->neighbors ? w->seen[v] : c->neighbors, first = w->seen[v] - n;
    const int32_t *event = window->destination_events + window->destination_at[v] + first;
    const real *query = f->t.query + destination_row(f, w, v) * (size_t)f->t.mix_width;
    size_t at = (size_t)(f->t.row[v] + first) * (size_t)c->time_dim;
    expect(n * c->time_dim, f->t.cosine + at);
    expect(n * c->time_dim, f->t.sine + at);
    for (int h = 0; h < c->heads; h++)
        expect(c->time_dim, query + h * c->key_width + c->dim + c->edges);
    expect(c->dim, destination_state(f, w, v));
    for (int j = 0; j < n; j++) expect(c->dim, source_state(f, w, window->source[event[j]]));
}

KERNEL void read_candidate(const fast *f, worker *w, int32_t v, int i) {
    const tgn *c = f->t.c;
    const tgn_tables *t = &f->t;
    const fr_window *window = t->m->w;
    int n = w->seen[v] < c->neighbors ? w->seen[v] : c->neighbors, first = w->seen[v] - n;
    const int32_t *event = window->destination_events + window->destination_at[v] + first;
    const real *query = t->query + destination_row(f, w, v) * (size_t)t->mix_width;
    for (int j = 0; j < n; j++) {
        size_t row = (size_t)(t->row[v] + first + j), at = row * (size_t)c->time_dim;
        real *code = w->code + j * c->time_dim;
        turn_codes(c->time_dim, w->cosine, t->cosine + at, w->sine, t->sine + at, code);
        w->state[j] = source_state(f, w, window->source[event[j]]);
        w->edge[j] = t->feature + row * (size_t)c->edges;
        const real *still = still_logits(f, w, v, first + j, event[j], j, query);
        for (int h = 0; h < c->heads; h++)
            w->weight[h * n + j] =
                still[h] +
                lanes_dot(c->time_dim, query + h * c->key_width + c->dim + c->edges, code);
    }
    mix_row(f, w, i, n, destination_state(f, w, v));
}

/* w->z[count, dim] = W1 [z_u ; z_v] + b1 of candidates `from` .. */
KERNEL void block_attention(const fast *f, worker *w, int32_t from, int count) {
    int d = f->t.c->dim;
    for (int i = 0; i < count; i++) {
        if (i + AHEAD < count) expect_candidate(f, w, from + i + AHEAD);
        read_candidate(f, w, from + i, i);
        memcpy(w->z + i * d, w->base, (size_t)d * sizeof *w->z);
    }
    merge_rows(f, w, count);
    gemm_nn(count, d, d, w->y, d, f->t.head, d, w->z, d, true);
}

KERNEL void block_identity(const fast *f, worker *w, int32_t from, int count) {
    int d = f->t.c->dim;
    for (int i = 0; i < count; i++) {
        const real *right = f->t.right + destination_row(f, w, from + i) * (size_t)d;
        for (int k = 0; k < d; k++) w->z[i * d + k] = w->base[k] + right[k];
    }
}

KERNEL void score_event(const fast *f, worker *w, const fr_query *query, float *scores) {
    const tgn *c = f->t.c;
    int32_t all = f->t.m->w->destinations;
    stand_at(f, w, window_cut(f->t.m->w, query->event));
    read_source(f, w, query);
    for (int32_t from = 0; from < all; from += f->block) {
        int count = all - from < f->block ? all - from : f->block;
        if (c->identity)
            block_identity(f, w, from, count);
        else
            block_attention(f, w, from, count);
        relu(count * c->dim, w->z);
        for (int i = 0; i < count; i++)
            scores[from + i] = (float)(lanes_dot(c->dim, AT(c->head2.weight), w->z + i * c->dim) +
                                       *AT(c->head2.bias));
    }
}

/* The kernels are plain C without contraction: the same bits from every instruction set. */
#define SCORE(name, target)                                                                        \
    target static fr_status name(void *state, const fr_query *query, int number, float *scores,    \
                                 fr_error *err) {                                                  \
        fast *f = state;                                                                           \
        if (query->event < f->t.c->from)                                                           \
            return fail(err, FR_EUSAGE, "internal: event %d has not been replayed", query->event); \
        score_event(f, &f->workers[number], query, scores);                                        \
        return FR_OK;                                                                              \
    }
SCORE(score_portable, )
#ifdef __x86_64__
SCORE(score_avx2, __attribute__((target("avx2"))))
SCORE(score_avx512, __attribute__((target("avx512f,avx512vl,avx512dq"))))
#endif

static void choose_kernels(fr_scorer *out) {
    out->score = score_portable;
#ifdef __x86_64__
    if (simd_within(tgn_fast_limit) == SIMD_AVX2) out->score = score_avx2;
    if (simd_within(tgn_fast_limit) == SIMD_AVX512) out->score = score_avx512;
#endif
}

/* ---- opening ---- */

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const tgn *c = f->t.c;
    size_t n = (size_t)f->t.m->w->destinations, d = (size_t)c->dim, block = (size_t)f->block;
    size_t most = (size_t)c->neighbors, time = (size_t)c->time_dim, mix = (size_t)f->t.mix_width;
    arena *a = &f->t.memory;
    w->cut = INT32_MAX; /* `seen` and the others are made at the first event */
    TRY(TAKE(a, w->seen, n, err));
    TRY(TAKE(a, w->source, c->sources, err));
    TRY(TAKE(a, w->destination, n, err));
    TRY(TAKE(a, w->base, d, err));
    TRY(TAKE(a, w->z, block * d, err));
    if (c->identity) return FR_OK;
    TRY(TAKE(a, w->memo, n * most, err));
    TRY(TAKE(a, w->still, n * most * (size_t)c->heads, err));
    TRY(TAKE(a, w->angle, time, err));
    TRY(TAKE(a, w->cosine, time, err));
    TRY(TAKE(a, w->sine, time, err));
    TRY(TAKE(a, w->state, most, err));
    TRY(TAKE(a, w->edge, most, err));
    TRY(TAKE(a, w->code, most * time, err));
    TRY(TAKE(a, w->codes, most, err));
    for (size_t j = 0; j < most; j++) w->codes[j] = w->code + j * time;
    TRY(TAKE(a, w->weight, most * (size_t)c->heads, err));
    TRY(TAKE(a, w->query, mix, err));
    TRY(TAKE(a, w->feature, most * (size_t)c->edges, err));
    TRY(TAKE(a, w->mix, block * mix, err));
    TRY(TAKE(a, w->x, block * (size_t)(c->wide + c->dim), err));
    TRY(TAKE(a, w->y, block * d, err));
    for (size_t k = 0; k < n * most; k++) w->memo[k].event = -1;
    return FR_OK;
}

static void close_fast(void *state) {
    fast *f = state;
    tgn_tables_free(&f->t);
    free(f);
}

fr_status tgn_fast(const model *m, int threads, fr_scorer *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer){.state = f, .close = close_fast};
    choose_kernels(out);
    TRY(tgn_tables_open(&f->t, m, err));
    int n = m->w->destinations;
    f->block = tgn_fast_block < n ? tgn_fast_block : n;
    TRY(TAKE(&f->t.memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    return FR_OK;
}
