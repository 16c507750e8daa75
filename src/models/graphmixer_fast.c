/* graphmixer_fast.c - GraphMixer for every destination of an event at once (MODELS 6.3).
 *
 * A destination's half of the head depends on its history and the time, not on the source, so it is
 * made once per event. Destinations go through the layers in blocks that fit in the cache: norms
 * and channel products see one tall matrix of all slots of the block, token products one node at a
 * time. These are computed once per checkpoint: the part of the projection that comes from an
 * event's features; the contribution of identities and biases to a destination's half; the output
 * layer composed with each half of the head.
 *
 * A change of time changes every time code, so nothing can be kept. Between events of the same time
 * a worker keeps its results and recomputes only destinations that occurred between the two cuts. A
 * large catalog is processed piece by piece, and nothing is kept.
 *
 * Bits: every number is one chain of operations that depends on its node alone (products
 * row-stable, norms in fixed lanes, sums in the order of slots), so the block, the worker and the
 * order of events do not matter.
 */
#include "models/graphmixer.h"
#include "nn/gemm.h"
#include "nn/ops.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* slots that go through the layers together, rounded up to whole nodes */

typedef struct worker {
    int32_t event; /* the event of `code`; -1 = none */
    real *code;    /* [piece, head width] Wd [h; e] + bd */
    /* the current nodes */
    int32_t *node;    /* [piece] nodes to compute, as places in the piece */
    bool *waiting;    /* [piece] true if it is in `node`; false between events */
    fr_history *past; /* [piece] */
    real *pooled;     /* [piece, dim] hbar */
    real *head;       /* [piece, head width] */
    real *source;     /* [head width] Ws [h; e] + bs */
    real *z;          /* [2 dim] [bo; e] */
    /* a block */
    double *angle; /* [room, time dim] */
    real *phi;     /* [room, time dim] */
    real *x, *y;   /* [room, dim] slots, and the same normalised */
    real *branch;  /* [room, dim] what is to be added to x */
    real *wide;    /* [room, 4 dim] */
    real *hidden;  /* [nodes of a block, hidden, dim] */
} worker;

typedef struct fast {
    const model *m;
    const graphmixer *g;
    arena memory; /* run */
    real *edge;   /* [events, dim] bp + Wp[:, :edge dim] f of every event; NULL without features */
    real *mixed[2]; /* [head width, dim] W[:, :dim] Wo of sources, of destinations */
    real *own;      /* [destinations, head width] Wd [bo; e] + bd */
    real *empty;    /* [dim] hbar of a node without events */
    int block;      /* slots */
    int32_t piece;  /* destinations at a time: all, or as many as fit */
    worker *workers;
} fast;

#define AT(parameter) model_value(f->m, parameter)

/* ---- a block of nodes ---- */

static void fill(int rows, int cols, const real *bias, real *y, int ld) {
    for (int i = 0; i < rows; i++)
        memcpy(y + (size_t)i * (size_t)ld, bias, (size_t)cols * sizeof *y);
}

/* y[rows, out] = x[rows, in] W^T + b */
static void linear(const fast *f, int rows, int in, int out, param_pair p, const real *x, real *y) {
    gemm_linear(rows, out, in, x, AT(p.weight), AT(p.bias), y);
}

/* x += more (NULL = nothing), y = LN(x) */
static void norm(const fast *f, int rows, param_pair p, const real *more, real *x, real *y) {
    kernel_norm(rows, f->g->dim, x, more, AT(p.weight), AT(p.bias), GRAPHMIXER_EPS, NULL, NULL, y);
}

/* X = Wp [f; phi(t - t_j)] + bp of `count` nodes, 0 in slots without an event; returns the slots.
 */
static int project(const fast *f, worker *w, double time, int count, const fr_history *past) {
    const graphmixer *g = f->g;
    const fr_window *window = f->m->w;
    const real *frequency = AT(g->time.weight), *phase = AT(g->time.bias);
    int d = g->dim, dt = g->time_dim, slots = 0;
    for (int n = 0; n < count; slots += graphmixer_rows(g, past[n++].count))
        for (int j = past[n].count - 1; j >= 0; j--) {
            int32_t event = past[n].event[j];
            int row = slots + graphmixer_row(g, past[n].count, j);
            double delta = time - window->time[event], *angle = w->angle + row * dt;
            for (int k = 0; k < dt; k++) angle[k] = (double)frequency[k] * delta + (double)phase[k];
            memcpy(w->x + row * d, f->edge ? f->edge + (size_t)event * (size_t)d : AT(g->proj.bias),
                   (size_t)d * sizeof *w->x);
        }
    vmath_cos((int64_t)slots * dt, w->angle, w->phi); /* empty slots have old angles */
    gemm_nt(slots, d, dt, w->phi, dt, AT(g->proj.weight) + g->edge_dim, g->edge_dim + dt, w->x, d,
            true);
    for (int n = 0, first = 0; g->padded && n < count; n++, first += g->tokens) {
        int from = g->newest_last ? 0 : past[n].count;
        memset(w->x + (first + from) * d, 0,
               (size_t)(g->tokens - past[n].count) * (size_t)d * sizeof *w->x);
    }
    return slots;
}

/* branch = (A2 GELU(A1[:, :m] LN(X) + a1) + a2)_j, after the branch before is added to X */
static void mix_tokens(const fast *f, worker *w, const graphmixer_layer *y, const real *more,
                       int count, const fr_history *past, int slots) {
    const graphmixer *g = f->g;
    int d = g->dim, size = g->hidden * d;
    norm(f, slots, y->token_norm, more, w->x, w->y);
    const real *from = w->y;
    for (int n = 0; n < count; from += graphmixer_rows(g, past[n++].count) * d)
        kernel_slots(g->hidden, graphmixer_rows(g, past[n].count), d, AT(y->token_fc1.weight),
                     g->tokens, AT(y->token_fc1.bias), from, w->hidden + n * size);
    vmath_gelu((int64_t)count * size, w->hidden, w->hidden);
    real *to = w->branch;
    for (int n = 0; n < count; to += graphmixer_rows(g, past[n++].count) * d)
        kernel_slots(graphmixer_rows(g, past[n].count), g->hidden, d, AT(y->token_fc2.weight),
                     g->hidden, AT(y->token_fc2.bias), w->hidden + n * size, to);
}

/* branch = F2 GELU(F1 LN(X_j) + f1) + f2, after the branch before is added to X */
static void mix_channels(const fast *f, worker *w, const graphmixer_layer *y, int slots) {
    int d = f->g->dim;
    norm(f, slots, y->channel_norm, w->branch, w->x, w->y);
    linear(f, slots, d, 4 * d, y->channel_fc1, w->y, w->wide);
    vmath_gelu((int64_t)slots * 4 * d, w->wide, w->wide);
    linear(f, slots, 4 * d, d, y->channel_fc2, w->wide, w->branch);
}

/* hbar of `count` nodes, each with at least one row */
static void encode_block(const fast *f, worker *w, double time, int count, const fr_history *past,
                         real *pooled) {
    const graphmixer *g = f->g;
    int d = g->dim, slots = project(f, w, time, count, past);
    for (int l = 0; l < g->layers; l++) {
        mix_tokens(f, w, &g->layer[l], l ? w->branch : NULL, count, past, slots);
        mix_channels(f, w, &g->layer[l], slots);
    }
    norm(f, slots, g->norm, w->branch, w->x, w->y);
    const real *from = w->y;
    for (int n = 0; n < count; n++, pooled += d) {
        memset(pooled, 0, (size_t)d * sizeof *pooled);
        for (int j = graphmixer_rows(g, past[n].count); j > 0; j--, from += d)
            for (int k = 0; k < d; k++) pooled[k] += from[k];
        real divisor = graphmixer_divisor(g, past[n].count);
        for (int k = 0; k < d; k++) pooled[k] /= divisor;
    }
}

/* ---- an event ---- */

/* to[head width] = W [bo; e] + b */
static void identity_half(const fast *f, real *z, const real *identity, param_pair head, real *to) {
    size_t d = (size_t)f->g->dim;
    memcpy(z, AT(f->g->output.bias), d * sizeof *z);
    memcpy(z + d, identity, d * sizeof *z);
    linear(f, 1, 2 * f->g->dim, f->g->head_width, head, z, to);
}

/* head[count, head width] += mixed hbar of nodes with the histories w->past at `time`. A block
 * consists of consecutive nodes that have a history. */
static void encode(const fast *f, worker *w, double time, int count, const real *mixed,
                   real *head) {
    const graphmixer *g = f->g;
    int d = g->dim;
    for (int n = 0, end; n < count; n = end) {
        int slots = w->past[n].count ? graphmixer_rows(g, w->past[n].count) : 0;
        for (end = n + 1; slots && end < count && w->past[end].count && slots < f->block; end++)
            slots += graphmixer_rows(g, w->past[end].count);
        if (slots)
            encode_block(f, w, time, end - n, w->past + n, w->pooled + (size_t)n * (size_t)d);
        else
            memcpy(w->pooled + (size_t)n * (size_t)d, f->empty, (size_t)d * sizeof *w->pooled);
    }
    gemm_nt(count, g->head_width, d, w->pooled, d, mixed, d, head, g->head_width, true);
}

/* Lists the destinations of from .. to - 1 whose code must be computed for the event. Codes are
 * kept only if the piece has all destinations. */
static int list_stale(const fast *f, worker *w, int32_t event, int32_t from, int32_t to) {
    const fr_window *window = f->m->w;
    int32_t cut = window_cut(window, event);
    int count = 0;
    bool whole = to - from == window->destinations;
    bool same = whole && w->event >= 0 && window->time[w->event] == window->time[event];
    int32_t before = same ? window_cut(window, w->event) : 0;
    if (!same) {
        for (int32_t v = from; v < to; v++) w->node[count++] = v - from;
    } else { /* events between the two cuts, in either direction */
        for (int32_t e = before < cut ? before : cut; e < (before < cut ? cut : before); e++) {
            int32_t met[] = {window->destination[e], window_self(window, window->source[e])};
            for (int k = 0; k < 2; k++) {
                if (met[k] < 0 || w->waiting[met[k]]) continue;
                w->node[count++] = met[k];
                w->waiting[met[k]] = true;
            }
        }
        for (int k = 0; k < count; k++) w->waiting[w->node[k]] = false;
    }
    for (int k = 0; k < count; k++)
        w->past[k] = window_node_history(window, window_destination_node(window, from + w->node[k]),
                                         cut, f->g->tokens);
    w->event = whole ? event : -1;
    return count;
}

/* scores[to - from] of a piece: destinations from .. to - 1 */
static void score_piece(const fast *f, worker *w, const fr_query *query, int32_t from, int32_t to,
                        float *scores) {
    const graphmixer *g = f->g;
    const fr_window *window = f->m->w;
    int wide = g->head_width, all = to - from;
    size_t row = (size_t)wide;
    double time = window->time[query->event];
    int stale = list_stale(f, w, query->event, from, to);
    for (int k = 0; k < stale; k++)
        memcpy(w->head + (size_t)k * row, f->own + (size_t)(from + w->node[k]) * row,
               row * sizeof *w->head);
    encode(f, w, time, stale, f->mixed[1], w->head);
    for (int k = 0; k < stale; k++)
        memcpy(w->code + (size_t)w->node[k] * row, w->head + (size_t)k * row,
               row * sizeof *w->code);
    int32_t source = window_source_node(window, query->source);
    w->past[0] = window_node_history(window, source, window_cut(window, query->event), g->tokens);
    identity_half(f, w->z, AT(g->src) + (size_t)source * (size_t)g->dim, g->head_src, w->source);
    encode(f, w, time, 1, f->mixed[0], w->source);
    for (int v = 0; v < all; v++) {
        const real *restrict code = w->code + (size_t)v * (size_t)wide;
        real *restrict both = w->head + (size_t)v * (size_t)wide;
        for (int k = 0; k < wide; k++) {
            real sum = w->source[k] + code[k];
            both[k] = sum > 0 ? sum : 0;
        }
    }
    real *logit = w->pooled; /* [piece] */
    for (int v = 0; v < all; v++) logit[v] = *AT(g->head_out.bias);
    gemm_nt(all, 1, wide, w->head, wide, AT(g->head_out.weight), wide, logit, 1, true);
    for (int v = 0; v < all; v++) scores[v] = (float)logit[v];
}

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int number, float *scores, fr_error *err) {
    (void)count, (void)err; /* one at a time */
    const fast *f = state;
    for (int32_t at = from; at < to; at += f->piece)
        score_piece(f, &f->workers[number], queries, at, to - at < f->piece ? to : at + f->piece,
                    scores + (at - from));
    return FR_OK;
}

/* ---- opening ---- */

static fr_status make_edges(fast *f, fr_error *err) {
    const graphmixer *g = f->g;
    const fr_window *w = f->m->w;
    int d = g->dim, n = g->edge_dim, all = n + g->time_dim;
    real *feature;
    if (!n) return FR_OK;
    TRY(TAKE(&f->memory, f->edge, (size_t)w->events * (size_t)d, err));
    TRY(ALLOCATE(feature, n, err));
    fill(w->events, d, AT(g->proj.bias), f->edge, d);
    for (int32_t e = 0; e < w->events; e++) {
        model_features(f->m, e, feature);
        gemm_nt(1, d, n, feature, n, AT(g->proj.weight), all, f->edge + (size_t)e * (size_t)d, d,
                true);
    }
    free(feature);
    return FR_OK;
}

static fr_status make_halves(fast *f, fr_error *err) {
    const graphmixer *g = f->g;
    int d = g->dim, wide = g->head_width, all = f->m->w->destinations;
    const param_pair head[] = {g->head_src, g->head_dst};
    real *z;
    for (int k = 0; k < 2; k++) {
        TRY(TAKE(&f->memory, f->mixed[k], wide * d, err));
        gemm_nn(wide, d, d, AT(head[k].weight), 2 * d, AT(g->output.weight), d, f->mixed[k], d,
                false);
    }
    TRY(TAKE(&f->memory, f->own, (size_t)all * (size_t)wide, err));
    TRY(TAKE(&f->memory, z, 2 * d, err));
    for (int v = 0; v < all; v++)
        identity_half(f, z, AT(g->dst) + (size_t)v * (size_t)d, g->head_dst,
                      f->own + (size_t)v * (size_t)wide);
    return FR_OK;
}

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const graphmixer *g = f->g;
    size_t n = (size_t)f->piece, d = (size_t)g->dim, head = (size_t)g->head_width;
    /* a block may exceed its size by the slots of its last node; every node has at least one slot
     */
    size_t room = (size_t)f->block - 1 + (size_t)g->tokens;
    size_t nodes = n < (size_t)f->block ? n : (size_t)f->block;
    w->event = -1;
    TRY(TAKE(&f->memory, w->code, n * head, err));
    TRY(TAKE(&f->memory, w->node, n, err));
    TRY(TAKE(&f->memory, w->waiting, n, err));
    TRY(TAKE(&f->memory, w->past, n, err));
    TRY(TAKE(&f->memory, w->pooled, n * d, err));
    TRY(TAKE(&f->memory, w->head, n * head, err));
    TRY(TAKE(&f->memory, w->source, head, err));
    TRY(TAKE(&f->memory, w->z, 2 * d, err));
    TRY(TAKE(&f->memory, w->angle, room * (size_t)g->time_dim, err));
    TRY(TAKE(&f->memory, w->phi, room * (size_t)g->time_dim, err));
    TRY(TAKE(&f->memory, w->x, room * d, err));
    TRY(TAKE(&f->memory, w->y, room * d, err));
    TRY(TAKE(&f->memory, w->branch, room * d, err));
    TRY(TAKE(&f->memory, w->wide, room * 4 * d, err));
    return TAKE(&f->memory, w->hidden, nodes * (size_t)g->hidden * d, err);
}

static void close_fast(void *state) {
    fast *f = state;
    arena_free(&f->memory);
    free(f);
}

fr_status graphmixer_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *f = (fast){.m = m, .g = m->own, .block = m->fast_block ? m->fast_block : BLOCK};
    f->piece = model_piece(m);
    *out = (fr_scorer_definition){.state = f,
                                  .workers = threads,
                                  .close = close_fast,
                                  .part = score_part,
                                  .tile = MODEL_TILE};
    TRY(make_edges(f, err));
    TRY(make_halves(f, err));
    TRY(TAKE(&f->memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    TRY(TAKE(&f->memory, f->empty, f->g->dim, err));
    if (f->g->padded) encode_block(f, &f->workers[0], 0, 1, &(fr_history){0}, f->empty);
    return FR_OK;
}
