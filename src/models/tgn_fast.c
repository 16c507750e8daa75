/* tgn_fast.c - TGN for every candidate of some events at once (MODELS 5.6).
 *
 * Weights are composed and states multiplied by them once, when the scorer is opened
 * (tgn_tables.h). A time code is
 *
 *     cos(w (t - t_j) + b) = cos(w t + b) cos(w t_j) + sin(w t + b) sin(w t_j)
 *
 * whose factors are tables of the event scored and of the neighbour's event. So over a stretch of
 * events in which nothing changes for a candidate (tgn_past.h), its logits are one product of its
 * own and its neighbours' vectors with the time codes of the events. Weighted sums of its
 * neighbours are products too. The data of a candidate, mostly from distant memory, is read once
 * for all events. Lanes of vectors are events, from the logits to the scores, so nothing is added
 * across a vector.
 *
 * Matrices of a block have one column per score: candidate i and event e have column i * count + e.
 * Rows are whole vectors; the padding belongs to other blocks and is never read.
 *
 * Bits: a score is computed in its own column, in an order that depends only on the event and the
 * candidate. So other events, the block and other candidates do not matter.
 */
#include "models/tgn_source.h"
#include "nn/columns.h"
#include "nn/gemm.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

static const real EPS = REAL(1e-5);

enum {
    EVENTS = TGN_EVENTS,
    BLOCK = 64, /* scores that go through the products together; at least one candidate for all
                   events of a call */
};
_Static_assert(EVENTS % LANES == 0, "events fill vectors");

typedef struct worker {
    tgn_past past;
    tgn_stretch at; /* the current one */

    /* Events. */
    tgn_source source;
    real *left;    /* [EVENTS, dim] the head's first layer without the candidates */
    double *angle; /* [time_dim] */
    real *wave;    /* [2, time_dim] */
    real *clock;   /* [2, time_dim, EVENTS] cosines and sines of w t + b */

    /* A stretch of a candidate; "neighbours" are neighbours by heads. */
    real *factor; /* [neighbours, 2, time_dim] what the clock is multiplied by for logits */
    real *still;  /* [neighbours] the part of a logit that does not depend on time */
    real *weight; /* [1 + neighbours, events]; the first row is 1 */
    real *value;  /* [1 + neighbours, wide] what is weighted: q0 + bR, WR WV of the neighbours */
    real *total;  /* [heads, events] */
    real *sum;    /* [wide] of one event */
    real *turned; /* [2, time_dim, heads, events] sums of cosines and sines of w t_j */

    /* A block of candidates: `room` columns. */
    real *code;  /* [heads, time_dim, columns] sums of time codes */
    real *o;     /* [wide, columns] */
    real *y, *z; /* [dim, columns] */
    real *base;  /* [dim, room] `left`, turned, for each candidate of a whole block */
    real *score; /* [columns] */
} worker;

typedef struct fast {
    tgn_tables t;
    int room; /* columns of a block */
    void (*run)(const struct fast *f, worker *w, const fr_query *queries, int count, int32_t from,
                int32_t to, float *scores);
    worker *workers;
} fast;

/* ---- kernels ---- */

#define AT(parameter) model_value(f->t.m, parameter)

/* x rho of LANES columns of n rows that are ld apart, in place; the mean is 0. Four sums,
 * because a single chain of additions is slow. */
SIMD_INLINE void normalise_columns(int n, int ld, real *x) {
    lanes square[4] = {{0}}, rho;
    for (int k = 0; k < n; k += 4)
        for (int j = 0; j < 4; j++)
            if (k + j < n) square[j] += LANES_AT(x + (k + j) * ld) * LANES_AT(x + (k + j) * ld);
    lanes variance = ((square[0] + square[1]) + (square[2] + square[3])) / (real)n;
    for (int e = 0; e < LANES; e++) rho[e] = 1 / real_sqrt(variance[e] + EPS);
    for (int k = 0; k < n; k++) LANES_AT(x + k * ld) = LANES_AT(x + k * ld) * rho;
}

/* y = bias + weight . ReLU(x + base) for LANES columns of n rows */
SIMD_INLINE void head_columns(int n, const real *x, int ldx, const real *base, int ldb,
                              const real *weight, real bias, real *y) {
    lanes sum = LANES_ALL(bias);
    for (int k = 0; k < n; k++) {
        lanes at = LANES_AT(x + k * ldx) + LANES_AT(base + k * ldb);
        sum += weight[k] * LANES_CHOOSE(at > 0, at, (lanes){0});
    }
    LANES_AT(y) = sum;
}

/* ---- events ---- */

/* What all candidates share: w->base and w->clock. */
SIMD_INLINE void read_events(const fast *f, worker *w, const fr_query *queries, int count) {
    const tgn *c = f->t.c;
    int d = c->dim, time = c->time_dim;
    tgn_source_read(&w->source, &f->t, &w->past, queries, count, w->left);
    for (int k = 0; k < d; k++)
        for (int at = 0; at + count <= f->room; at += count)
            for (int i = 0; i < count; i++) w->base[k * f->room + at + i] = w->left[i * d + k];
    for (int i = 0; i < count; i++) {
        double t = window_time(f->t.m->w, queries[i].event);
        for (int k = 0; k < time; k++)
            w->angle[k] = (double)AT(c->time.weight)[k] * t + (double)AT(c->time.bias)[k];
        vmath_cos(time, w->angle, w->wave);
        vmath_sin(time, w->angle, w->wave + time);
        for (int k = 0; k < 2 * time; k++) w->clock[k * EVENTS + i] = w->wave[k];
    }
}

/* ---- candidates: a column per score ---- */

/* Reads the neighbours of the stretch w->at: the parts of their logits, and their values. */
SIMD_INLINE void read_neighbours(const fast *f, worker *w, int32_t v) {
    const tgn *c = f->t.c;
    const tgn_tables *t = &f->t;
    int d = c->dim, edges = c->edges, time = c->time_dim, all = c->heads * c->wide;
    size_t own = (size_t)tgn_candidate_row(t, w->at.state);
    const real *query = t->query + own * (size_t)t->mix_width;
    real *value = w->value + c->wide, *still = w->still, *factor = w->factor;
    lanes_copy(c->wide, t->start + own * (size_t)c->wide, w->value);
    for (int j = 0; j < w->at.count; j++, value += all) {
        size_t row = (size_t)(t->row[v] + w->at.first + j);
        const real *code = t->code + row * 2 * (size_t)time;
        const real *feature = t->feature + row * (size_t)edges, *q = query;
        const real *s = tgn_other_state(t, w->at.other[j]);
        lanes_copy(all, t->value + (size_t)tgn_other_row(t, w->at.other[j]) * (size_t)all, value);
        if (edges) lanes_add(all, t->edge + row * (size_t)all, value);
        for (int h = 0; h < c->heads; h++, q += c->key_width, factor += 2 * time) {
            *still++ = lanes_dot(d, q, s) + lanes_dot(edges, q + d, feature);
            lanes_multiply(time, q + d + edges, code, factor);
            lanes_multiply(time, q + d + edges, code + time, factor + time);
        }
    }
}

/* w->weight[n, heads, width]: softmax of the logits over the n neighbours, for `width` events from
 * `first` on. The row of ones before it belongs to the term without a weight. */
SIMD_INLINE void weigh_neighbours(const fast *f, worker *w, int n, int first, int width) {
    int heads = f->t.c->heads, codes = 2 * f->t.c->time_dim;
    real *weight = w->weight + width;
    lanes_fill(width, 1, w->weight);
    if (!n) return;
    for (int r = 0; r < n * heads; r++) lanes_fill(width, w->still[r], weight + r * width);
    gemm_nn(n * heads, width, codes, w->factor, codes, w->clock + first, EVENTS, weight, width,
            true);
    columns_softmax(n, heads * width, weight, w->total);
}

/* The first term of the merge. */
SIMD_INLINE const real *own_of(const fast *f, const worker *w) {
    return f->t.own + (size_t)tgn_candidate_row(&f->t, w->at.state) * (size_t)f->t.c->dim;
}

/* A stretch of one event: its sums as rows, then put into their columns. */
SIMD_INLINE void sum_as_row(const fast *f, worker *w, const real *code, int event, int column,
                            int ld) {
    const tgn *c = f->t.c;
    int n = w->at.count, heads = c->heads, wide = c->wide, time = c->time_dim;
    const real *clock = w->clock + event, *own = own_of(f, w);
    for (int k = 0; k < c->dim; k++) w->y[k * ld + column] = own[k];
    gemm_nn(1, wide, 1 + n * heads, w->weight, 1 + n * heads, w->value, wide, w->sum, wide, false);
    for (int k = 0; k < wide; k++) w->o[k * ld + column] = w->sum[k];
    gemm_tn(heads, 2 * time, n, w->weight + 1, heads, code, 2 * time, w->turned, 2 * time, false);
    for (int h = 0; h < heads; h++)
        for (int k = 0; k < time; k++) {
            const real *turned = w->turned + h * 2 * time + k;
            w->code[(h * time + k) * ld + column] =
                clock[k * EVENTS] * turned[0] + clock[(time + k) * EVENTS] * turned[time];
        }
}

/* The same for any stretch; its first event is number `skip` of the `width` that have weights. */
SIMD_INLINE void sum_as_columns(const fast *f, worker *w, const real *code, int skip, int width,
                                int column, int ld) {
    const tgn *c = f->t.c;
    int n = w->at.count, from = w->at.from, count = w->at.to - from, time = c->time_dim;
    int all = c->heads * width;
    const real *own = own_of(f, w);
    for (int k = 0; k < c->dim; k++) lanes_fill(count, own[k], w->y + k * ld + column);
    gemm_tn(c->wide, count, 1 + n * c->heads, w->value, c->wide, w->weight + skip, width,
            w->o + column, ld, false);
    gemm_tn(2 * time, all, n, code, 2 * time, w->weight + width, all, w->turned, all, false);
    for (int h = 0; h < c->heads; h++) {
        const real *cosine = w->turned + h * width + skip, *sine = cosine + time * all;
        real *to = w->code + h * time * ld + column;
        for (int k = 0; k < time; k++)
            lanes_turn(count, w->clock + k * EVENTS + from, cosine + k * all,
                       w->clock + (time + k) * EVENTS + from, sine + k * all, to + k * ld);
    }
}

/* For the stretch w->at of candidate v: columns of o without the time codes, of the sums of time
 * codes, and of what the merge begins with. `column` is that of the candidate's first event. */
SIMD_INLINE void attend(const fast *f, worker *w, int32_t v, int column, int ld) {
    const tgn_tables *t = &f->t;
    int from = w->at.from, to = w->at.to, codes = 2 * t->c->time_dim;
    const real *code = t->code + (t->row[v] + w->at.first) * codes;
    read_neighbours(f, w, v);
    column += from;
    if (to - from == 1) {
        weigh_neighbours(f, w, w->at.count, from, 1);
        sum_as_row(f, w, code, from, column, ld);
    } else { /* whole vectors */
        int first = from / LANES * LANES, width = lanes_round_up(to - first);
        weigh_neighbours(f, w, w->at.count, first, width);
        sum_as_columns(f, w, code, from - first, width, column, ld);
    }
}

/* w->score of `columns` columns */
SIMD_INLINE void score_columns(const fast *f, worker *w, int columns, int ld) {
    const tgn *c = f->t.c;
    int d = c->dim, wide = c->wide, codes = c->heads * c->time_dim;
    int rows = codes < wide ? codes : wide, half = rows / 2; /* the rest is zero */
    gemm_nn(half, columns, codes, f->t.time, codes, w->code, ld, w->o, ld, true);
    gemm_nn(rows - half, columns, codes - half, f->t.time + half * codes + half, codes,
            w->code + half * ld, ld, w->o + half * ld, ld, true);
    for (int k = 0; k < columns; k += LANES) normalise_columns(wide, ld, w->o + k);
    gemm_nn(d, columns, wide, f->t.merge, wide, w->o, ld, w->y, ld, true);
    lanes_relu(d * ld, w->y, w->y);
    gemm_nn(d, columns, d, f->t.head, d, w->y, ld, w->z, ld, false);
    for (int k = 0; k < columns; k += LANES)
        head_columns(d, w->z + k, ld, w->base + k, f->room, AT(c->head2.weight), *AT(c->head2.bias),
                     w->score + k);
}

/* scores[count, to - from] of candidates from .. to - 1 */
SIMD_INLINE void run_attention(const fast *f, worker *w, const fr_query *queries, int count,
                               int32_t from, int32_t to, float *scores) {
    int block = f->room / count;
    tgn_past_go(&w->past, queries, count);
    read_events(f, w, queries, count);
    for (int32_t first = from; first < to; first += block) {
        int candidates = to - first < block ? to - first : block;
        int ld = lanes_round_up(candidates * count);
        for (int i = 0; i < candidates; i++) {
            for (int event = 0; event < count; event = w->at.to) {
                tgn_past_stretch(&w->past, first + i, event, &w->at);
                attend(f, w, first + i, i * count, ld);
            }
        }
        score_columns(f, w, candidates * count, ld);
        for (int i = 0; i < candidates; i++)
            for (int e = 0; e < count; e++)
                scores[(size_t)e * (size_t)(to - from) + (size_t)(first - from + i)] =
                    (float)w->score[i * count + e];
    }
}

/* ---- identity: the memory is the embedding ---- */

SIMD_INLINE void run_identity(const fast *f, worker *w, const fr_query *queries, int count,
                              int32_t from, int32_t to, float *scores) {
    const tgn *c = f->t.c;
    int d = c->dim;
    tgn_past_go(&w->past, queries, count);
    tgn_source_read(&w->source, &f->t, &w->past, queries, count, w->left);
    for (int i = 0; i < count; i++) {
        const real *left = w->left + i * d;
        for (int32_t v = from; v < to; v++) {
            int32_t node = window_destination_node(f->t.m->w, v);
            int64_t row = tgn_candidate_row(&f->t, tgn_past_place(&w->past, node, i));
            const real *right = f->t.right + (size_t)row * (size_t)d;
            for (int k = 0; k < d; k++) {
                real at = left[k] + right[k];
                w->z[k] = at > 0 ? at : 0;
            }
            *scores++ = (float)(lanes_dot(d, AT(c->head2.weight), w->z) + *AT(c->head2.bias));
        }
    }
}

SIMD_INLINE void run_any(const fast *f, worker *w, const fr_query *queries, int count, int32_t from,
                         int32_t to, float *scores) {
    if (f->t.c->identity)
        run_identity(f, w, queries, count, from, to, scores);
    else
        run_attention(f, w, queries, count, from, to, scores);
}

SIMD_BUILDS(run, run_any,
            (const fast *f, worker *w, const fr_query *queries, int count, int32_t from, int32_t to,
             float *scores),
            (f, w, queries, count, from, to, scores))

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int number, float *scores, fr_error *err) {
    fast *f = state;
    if (queries->event < f->t.c->from)
        return fail(err, FR_EUSAGE, "internal: event %d has not been replayed", queries->event);
    f->run(f, &f->workers[number], queries, count, from, to, scores);
    return FR_OK;
}

/* ---- opening ---- */

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const tgn *c = f->t.c;
    size_t d = (size_t)c->dim, wide = (size_t)c->wide, time = (size_t)c->time_dim;
    size_t most = (size_t)c->neighbors, heads = (size_t)c->heads, room = (size_t)f->room;
    arena *a = &f->t.memory;
    TRY(tgn_past_open(&w->past, f->t.m, a, err));
    TRY(tgn_source_open(&w->source, &f->t, a, err));
    TRY(TAKE(a, w->left, EVENTS * d, err));
    TRY(TAKE(a, w->z, d * room, err));
    if (c->identity) return FR_OK;
    TRY(TAKE(a, w->at.other, most, err));
    TRY(TAKE(a, w->angle, time, err));
    TRY(TAKE(a, w->wave, 2 * time, err));
    TRY(TAKE(a, w->clock, 2 * time * EVENTS, err));
    TRY(TAKE(a, w->base, d * room, err));
    TRY(TAKE(a, w->factor, most * heads * 2 * time, err));
    TRY(TAKE(a, w->still, most * heads, err));
    TRY(TAKE(a, w->weight, (1 + most * heads) * EVENTS, err));
    TRY(TAKE(a, w->value, (1 + most * heads) * wide, err));
    TRY(TAKE(a, w->total, heads * EVENTS, err));
    TRY(TAKE(a, w->sum, wide, err));
    TRY(TAKE(a, w->turned, 2 * time * heads * EVENTS, err));
    TRY(TAKE(a, w->code, heads * time * room, err));
    TRY(TAKE(a, w->o, wide * room, err));
    TRY(TAKE(a, w->y, d * room, err));
    TRY(TAKE(a, w->score, room, err));
    return FR_OK;
}

static void close_fast(void *state) {
    fast *f = state;
    tgn_tables_free(&f->t);
    free(f);
}

fr_status tgn_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer_definition){.state = f,
                                  .workers = threads,
                                  .many = EVENTS,
                                  .part = score_part,
                                  .tile = MODEL_TILE,
                                  .close = close_fast};
    f->run = run_now();
    TRY(tgn_tables_open(&f->t, m, err));
    int64_t columns = (int64_t)m->w->destinations * EVENTS;
    int block = m->fast_block ? m->fast_block : BLOCK;
    if (columns > block) columns = block > EVENTS ? block : EVENTS;
    f->room = lanes_round_up((int)columns);
    TRY(TAKE(&f->t.memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    return FR_OK;
}
