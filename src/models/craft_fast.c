/* craft_fast.c - CRAFT(-R) for every candidate of an event at once, through tables made once per
 * checkpoint (MODELS 2.6).
 *
 * Vectors of candidates are columns: a row of an array [dim, width] has one number of every
 * candidate of a block. So all products are W x with W as stored, logits [slots, width] have the
 * layout of the softmax, and norms are sums down a column. A vector lane is a candidate, and
 * nothing is ever transposed or added across lanes.
 *
 * The key of a slot is LN0(E_s + P_p) = rho (g0 * (E_s' + P_p')) + b0 with centred rows E', P', so
 * keys and values are sums of two table rows, and no product runs over the history. The code of the
 * elapsed time is LN(w x + b) = rho(x) (x w' + b') and enters the head as three numbers per row.
 *
 * The first layer's logits are also products with query0. A table of h (I + L) numbers per
 * candidate could replace them (MODELS 2.6), but it saved only 1 to 2 % in measurements, and
 * without it memory stays linear in I.
 *
 * Bits: a score is a chain of operations on its own lane, in an order that depends only on the
 * event, so neither the block nor the neighbours matter. Blocks are extended to whole vectors with
 * the next columns (tables have zero columns after the last); their results are dropped.
 */
#include "models/craft_tables.h"
#include "nn/columns.h"
#include "nn/gemm.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 }; /* candidates at a time */

typedef struct worker {
    int32_t *item;  /* [slots] */
    int32_t *count; /* [items] n_uv; 0 between events */
    int32_t *last;  /* [items] last event below `cut`, -1 = none */
    int32_t cut;
    real *code; /* [codes, piece room] inputs of the head for a piece's candidates, besides q */
    int slots;  /* of the event, and whether short enough to fold (see fold) */
    bool folded;
    int32_t node;                                            /* the source */
    fr_history counted;                                      /* repeats count in these */
    real *key[MODEL_MOST_LAYERS], *value[MODEL_MOST_LAYERS]; /* [slots, dim] */
    real *folded_key[MODEL_MOST_LAYERS];   /* [heads * slots, dim + 1] at most dim rows */
    real *folded_value[MODEL_MOST_LAYERS]; /* [dim, heads * slots] */
    real *q;                               /* [dim + codes, width] */
    real *y, *mix, *branch;                /* [dim, width] */
    real *wide;                            /* [most of heads * slots, 4 dim, head rows; width] */
    real *total;                           /* [width] */
} worker;

typedef struct fast {
    craft_tables t;
    int block;     /* candidates at a time */
    int piece;     /* candidates whose codes are made at a time: all, or as many as fit */
    int code_room; /* columns of codes */
    real *lonely;  /* [dim, room] last q of a source without history */
    void (*run)(const struct fast *f, worker *w, const fr_query *query, int32_t from, int32_t to,
                float *scores);
    worker *workers;
} fast;

/* ---- kernels: arrays [rows, width], width a multiple of LANES ---- */

enum { STRIP = 4 }; /* number of parallel sums, because a single chain of additions is slow */

/* y = gain * norm(x) + bias + residual, by columns, for `groups` vectors of columns of mean 0 from
 * `from` on; rows of the residual are `ld` apart. */
SIMD_INLINE void norm_strip(int groups, int rows, int width, int from, const real *x,
                            const real *gain, const real *bias, const real *residual, int ld,
                            real *restrict y) {
    lanes square[STRIP] = {0}, scale[STRIP];
    real rho[STRIP * LANES];
    for (int k = 0; k < rows; k++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            lanes here = LANES_AT(x + k * width + from + g * LANES);
            square[g] += here * here;
        }
    memcpy(rho, square, sizeof rho);
    for (int j = 0; j < groups * LANES; j++)
        rho[j] = (real)(1 / sqrt((double)(rho[j] / (real)rows) + CRAFT_EPS));
    memcpy(scale, rho, sizeof rho);
    for (int k = 0; k < rows; k++) {
        const lanes *here = &LANES_AT(x + k * width + from),
                    *beside = &LANES_AT(residual + k * ld + from);
        lanes *to = &LANES_AT(y + k * width + from);
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++)
            to[g] = here[g] * scale[g] * gain[k] + (bias[k] + beside[g]);
    }
}

SIMD_INLINE void norm_add(int rows, int width, const real *x, const real *gain, const real *bias,
                          const real *residual, int ld, real *restrict y) {
    int from = 0;
    for (; from + STRIP * LANES <= width; from += STRIP * LANES)
        norm_strip(STRIP, rows, width, from, x, gain, bias, residual, ld, y);
    for (; from < width; from += LANES)
        norm_strip(1, rows, width, from, x, gain, bias, residual, ld, y);
}

/* y = sum of weight * PReLU(x) + bias, by columns */
SIMD_INLINE void prelu_strip(int groups, int rows, int width, int from, const real *x, real slope,
                             const real *weight, real bias, real *restrict y) {
    lanes sum[STRIP] = {0};
    for (int k = 0; k < rows; k++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            lanes here = LANES_AT(x + k * width + from + g * LANES);
            sum[g] += weight[k] * LANES_CHOOSE(here > 0, here, slope * here);
        }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) LANES_AT(y + from + g * LANES) = sum[g] + bias;
}

SIMD_INLINE void prelu_sum(int rows, int width, const real *x, real slope, const real *weight,
                           real bias, real *restrict y) {
    int from = 0;
    for (; from + STRIP * LANES <= width; from += STRIP * LANES)
        prelu_strip(STRIP, rows, width, from, x, slope, weight, bias, y);
    for (; from < width; from += LANES)
        prelu_strip(1, rows, width, from, x, slope, weight, bias, y);
}

/* rows[p] = rho[p] (item[s_p] + slot[p]) */
SIMD_INLINE void slot_rows(int slots, int dim, const real *rho, const int32_t *item,
                           const real *restrict of_item, const real *restrict of_slot,
                           real *restrict rows) {
    for (int p = 0; p < slots; p++) {
        const real *a = of_item + (size_t)item[p] * (size_t)dim, *b = of_slot + p * dim;
        for (int k = 0; k < dim; k++) rows[p * dim + k] = rho[p] * (a[k] + b[k]);
    }
}

/* ---- one event ---- */

#define AT(parameter) model_value(f->t.m, parameter)

/* If the history is short, it is cheaper to move the two products of every candidate around the
 * softmax, WQ q and WO c, to the keys and values: q.(WQ_h^T K) + bQ.K instead of (WQ q + bQ).K, and
 * sums of WO_h V instead of WO of sums. Rows of keys and columns of values are ordered by head,
 * then by slot. */
SIMD_INLINE void fold(const fast *f, worker *w, int l) {
    const craft *c = f->t.c;
    const craft_layer *y = &c->layer[l];
    int dim = c->dim, part = dim / c->heads;
    for (int h = 0; h < c->heads; h++) {
        int at = h * part, row = h * w->slots;
        const real *key = w->key[l] + at;
        real *to = w->folded_key[l] + row * (dim + 1);
        gemm_nn(w->slots, dim, part, key, dim, AT(y->query.weight) + at * dim, dim, to, dim + 1,
                false);
        gemm_nn(w->slots, 1, part, key, dim, AT(y->query.bias) + at, 1, to + dim, dim + 1, false);
        gemm_nt(dim, w->slots, part, f->t.layer[l].out_weight + at, dim, w->value[l] + at, dim,
                w->folded_value[l] + row, c->heads * w->slots, false);
    }
}

/* History, keys and values of the event. */
SIMD_INLINE void read_source(const fast *f, worker *w, const fr_query *query) {
    const craft *c = f->t.c;
    const fr_window *window = f->t.m->w;
    int dim = c->dim;
    int32_t cut = window_cut(window, query->event);
    int32_t node = window_source_node(window, query->source);
    fr_history past = window_node_history(window, node, cut, c->attend);
    real *rho = w->wide;
    w->slots = past.count;
    w->folded = w->slots * c->heads <= dim;
    for (int p = 0; p < w->slots; p++) {
        int32_t s = w->item[p] = craft_met(window, node, past.event[p]);
        const double *a = f->t.item_centred + (size_t)s * (size_t)dim,
                     *b = f->t.slot_centred + p * dim;
        double lane[8] = {0}; /* always added in the same order */
        for (int k = 0; k < dim; k++) lane[k % 8] += (a[k] + b[k]) * (a[k] + b[k]);
        double sum = ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
                     ((lane[2] + lane[6]) + (lane[3] + lane[7]));
        rho[p] = (real)(1 / sqrt(sum / dim + CRAFT_EPS));
    }
    w->node = node;
    w->counted = window_node_history(window, node, cut, c->history);
    for (int p = 0; c->repeat && p < w->counted.count; p++)
        w->count[craft_met(window, node, w->counted.event[p])]++;
    for (int l = 0; l < c->layers; l++) {
        const craft_layer_tables *t = &f->t.layer[l];
        slot_rows(w->slots, dim, rho, w->item, t->key_item, t->key_slot, w->key[l]);
        slot_rows(w->slots, dim, rho, w->item, t->value_item, t->value_slot, w->value[l]);
        if (w->folded) fold(f, w, l);
    }
}

/* Fills in the codes of the elapsed times of candidates from .. to - 1. */
SIMD_INLINE void read_elapsed(const fast *f, worker *w, int32_t event, int32_t from, int32_t to) {
    const fr_window *window = f->t.m->w;
    int32_t cut = window_cut(window, event);
    real *slope = w->code, *offset = slope + f->code_room;
    if (cut < w->cut) { /* back in time: start again */
        for (int32_t v = 0; v < f->t.c->items; v++) w->last[v] = -1;
        w->cut = 0;
    }
    for (; w->cut < cut; w->cut++) {
        w->last[window->destination[w->cut]] = w->cut;
        if (window->source_node) w->last[window->source_node[window->source[w->cut]]] = w->cut;
    }
    for (int32_t v = from; v < to; v++) {
        double x = -100000; /* as craft_elapsed */
        if (w->last[v] >= 0) x = (double)(float)(window->time[event] - window->time[w->last[v]]);
        double scale = craft_rho(&f->t.elapsed, x);
        slope[v - from] = (real)(scale * x);
        offset[v - from] = (real)scale;
    }
}

/* The same for repeats. The codes of candidates that were not met stay zero. Counts are set back to
 * 0. */
SIMD_INLINE void read_repeats(const fast *f, worker *w, int32_t from, int32_t to) {
    const craft_code *repeats = &f->t.repeats;
    real *slope = w->code + 2 * (size_t)f->code_room, *offset = slope + f->code_room;
    double rho0 = craft_rho(repeats, 0);
    for (int p = 0; p < w->counted.count; p++) {
        int32_t s = craft_met(f->t.m->w, w->node, w->counted.event[p]), n = w->count[s];
        if (!n || s < from || s >= to) continue; /* counted before, or in another piece */
        double rho = craft_rho(repeats, n);
        slope[s - from] = (real)(rho * n);
        offset[s - from] = (real)(rho - rho0);
        w->count[s] = 0;
    }
}

SIMD_INLINE void forget_repeats(const fast *f, worker *w, int32_t from, int32_t to) {
    real *slope = w->code + 2 * (size_t)f->code_room, *offset = slope + f->code_room;
    for (int p = 0; p < w->counted.count; p++) {
        int32_t s = craft_met(f->t.m->w, w->node, w->counted.event[p]);
        if (s >= from && s < to) slope[s - from] = offset[s - from] = 0;
    }
}

/* w->wide = logits [heads * slots, width] of candidates `from` .. in layer l. */
SIMD_INLINE void make_logits(const fast *f, worker *w, int l, int from, int width) {
    int dim = f->t.c->dim, heads = f->t.c->heads, part = dim / heads;
    param_pair weights = f->t.c->layer[l].query;
    const real *query = l ? w->branch : f->t.query0 + from;
    size_t ld = (size_t)(l ? width : f->t.room);
    if (l && w->folded) {
        gemm_nn(heads * w->slots, width, dim + 1, w->folded_key[l], dim + 1, w->q, width, w->wide,
                width, false);
    } else {
        if (l)
            gemm_linear_columns(dim, width, dim, AT(weights.weight), AT(weights.bias), w->q,
                                w->branch);
        for (int h = 0; h < heads; h++)
            gemm_nn(w->slots, width, part, w->key[l] + h * part, dim,
                    query + (size_t)(h * part) * ld, (int)ld, w->wide + h * w->slots * width, width,
                    false);
    }
}

/* w->branch = WO (attention) + bias, for logits in w->wide. */
SIMD_INLINE void mix_values(const fast *f, worker *w, int l, int width) {
    int dim = f->t.c->dim, heads = f->t.c->heads, part = dim / heads;
    for (int h = 0; h < heads; h++) {
        real *weight = w->wide + h * w->slots * width, *mix = w->mix + h * part * width;
        vmath_exp_columns(w->slots, width, weight, w->total);
        if (w->folded) {
            columns_divide(w->slots, width, w->total, weight);
            continue;
        }
        gemm_tn(part, width, w->slots, w->value[l] + h * part, dim, weight, width, mix, width,
                false);
        columns_divide(part, width, w->total, mix);
    }
    const craft_layer_tables *t = &f->t.layer[l];
    if (w->folded) {
        gemm_linear_columns(dim, width, heads * w->slots, w->folded_value[l], t->out_bias, w->wide,
                            w->branch);
    } else {
        gemm_linear_columns(dim, width, dim, t->out_weight, t->out_bias, w->mix, w->branch);
    }
}

/* Candidates `from` .. in `width` columns through all layers; leaves q in w->q. */
SIMD_INLINE void block_layers(const fast *f, worker *w, int from, int width) {
    int dim = f->t.c->dim;
    lanes_fill(width, 1, w->q + dim * width); /* for folded keys */
    for (int l = 0; l < f->t.c->layers; l++) {
        const craft_layer *y = &f->t.c->layer[l];
        const craft_layer_tables *t = &f->t.layer[l];
        if (w->slots) {
            make_logits(f, w, l, from, width);
            mix_values(f, w, l, width);
        } else {
            for (int k = 0; k < dim; k++)
                lanes_fill(width, t->no_history[k], w->branch + k * width);
        }
        norm_add(dim, width, w->branch, AT(y->attn_norm.weight), AT(y->attn_norm.bias),
                 l ? w->q : f->t.q0 + from, l ? width : f->t.room, w->y);
        gemm_linear_columns(4 * dim, width, dim, AT(y->ffn1.weight), AT(y->ffn1.bias), w->y,
                            w->wide);
        vmath_gelu((int64_t)4 * dim * width, w->wide, w->wide);
        gemm_linear_columns(dim, width, 4 * dim, t->ffn2_weight, t->ffn2_bias, w->wide, w->branch);
        norm_add(dim, width, w->branch, AT(y->ffn_norm.weight), AT(y->ffn_norm.bias), w->y, width,
                 w->q);
    }
}

/* rows of y, `width` columns each = columns from `from` on of x, whose rows are `ld` apart */
SIMD_INLINE void take_columns(int rows, int width, const real *x, int ld, int from, real *y) {
    for (int k = 0; k < rows; k++)
        memcpy(y + k * width, x + (size_t)k * (size_t)ld + from, (size_t)width * sizeof *y);
}

/* w->total = scores of candidates `from` .. of the piece, whose q is in w->q. */
SIMD_INLINE void block_head(const fast *f, worker *w, int from, int width) {
    const craft *c = f->t.c;
    take_columns(f->t.codes, width, w->code, f->code_room, from, w->q + c->dim * width);
    gemm_linear_columns(f->t.head_rows, width, c->dim + f->t.codes, f->t.head, f->t.constant, w->q,
                        w->wide);
    if (c->head_layers == 2)
        prelu_sum(f->t.head_rows, width, w->wide, *AT(c->prelu), AT(c->fc2.weight),
                  *AT(c->fc2.bias), w->total);
    else
        memcpy(w->total, w->wide, (size_t)width * sizeof *w->wide);
}

/* scores[to - from] of a piece: candidates from .. to - 1 */
SIMD_INLINE void score_piece(const fast *f, worker *w, int32_t event, int32_t from, int32_t to,
                             float *scores) {
    read_elapsed(f, w, event, from, to);
    if (f->t.c->repeat) read_repeats(f, w, from, to);
    for (int32_t at = from; at < to; at += f->block) {
        int count = to - at < f->block ? to - at : f->block, width = lanes_round_up(count);
        if (w->slots)
            block_layers(f, w, at, width);
        else
            take_columns(f->t.c->dim, width, f->lonely, f->t.room, at, w->q);
        block_head(f, w, at - from, width);
        for (int j = 0; j < count; j++) scores[at - from + j] = (float)w->total[j];
    }
    if (f->t.c->repeat) forget_repeats(f, w, from, to);
}

SIMD_INLINE void score_event(const fast *f, worker *w, const fr_query *query, int32_t from,
                             int32_t to, float *scores) {
    read_source(f, w, query);
    for (int32_t at = from; at < to; at += f->piece)
        score_piece(f, w, query->event, at, to - at < f->piece ? to : at + f->piece,
                    scores + (at - from));
    for (int p = 0; f->t.c->repeat && p < w->counted.count; p++) /* clear the other counts */
        w->count[craft_met(f->t.m->w, w->node, w->counted.event[p])] = 0;
}

SIMD_BUILDS(run, score_event,
            (const fast *f, worker *w, const fr_query *query, int32_t from, int32_t to,
             float *scores),
            (f, w, query, from, to, scores))

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int number, float *scores, fr_error *err) {
    (void)count, (void)err; /* one at a time */
    const fast *f = state;
    f->run(f, &f->workers[number], queries, from, to, scores);
    return FR_OK;
}

/* ---- opening ---- */

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const craft *c = f->t.c;
    int dim = c->dim, width = lanes_round_up(f->block), n = c->items;
    size_t most = (size_t)c->heads * (size_t)f->t.slots;
    if (most < 4 * (size_t)dim) most = 4 * (size_t)dim;
    if (most < (size_t)f->t.head_rows) most = (size_t)f->t.head_rows;
    TRY(TAKE(&f->t.memory, w->item, f->t.slots, err));
    TRY(TAKE(&f->t.memory, w->count, n, err));
    TRY(TAKE(&f->t.memory, w->last, n, err));
    TRY(TAKE(&f->t.memory, w->code, (size_t)f->t.codes * (size_t)f->code_room, err));
    for (int l = 0; l < c->layers; l++) {
        TRY(TAKE(&f->t.memory, w->key[l], f->t.slots * dim, err));
        TRY(TAKE(&f->t.memory, w->value[l], f->t.slots * dim, err));
        TRY(TAKE(&f->t.memory, w->folded_key[l], dim * (dim + 1), err));
        TRY(TAKE(&f->t.memory, w->folded_value[l], dim * dim, err));
    }
    TRY(TAKE(&f->t.memory, w->q, (dim + f->t.codes) * width, err));
    TRY(TAKE(&f->t.memory, w->y, dim * width, err));
    TRY(TAKE(&f->t.memory, w->mix, dim * width, err));
    TRY(TAKE(&f->t.memory, w->branch, dim * width, err));
    TRY(TAKE(&f->t.memory, w->wide, most * (size_t)width, err));
    TRY(TAKE(&f->t.memory, w->total, width, err));
    w->cut = INT32_MAX; /* `last` is made at the first event */
    return FR_OK;
}

/* The last q of every candidate without history. */
static void make_lonely(fast *f) {
    worker *w = &f->workers[0];
    for (int from = 0; from < f->t.m->w->destinations; from += f->block) {
        int left = f->t.m->w->destinations - from,
            width = lanes_round_up(left < f->block ? left : f->block);
        block_layers(f, w, from, width);
        for (int k = 0; k < f->t.c->dim; k++)
            memcpy(f->lonely + (size_t)k * (size_t)f->t.room + from, w->q + k * width,
                   (size_t)width * sizeof *w->q);
    }
}

static void close_fast(void *state) {
    fast *f = state;
    craft_tables_free(&f->t);
    free(f);
}

fr_status craft_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer_definition){.state = f,
                                  .workers = threads,
                                  .close = close_fast,
                                  .part = score_part,
                                  .tile = MODEL_TILE};
    f->run = run_now();
    TRY(craft_tables_open(&f->t, m, err));
    int n = m->w->destinations;
    int block = m->fast_block ? m->fast_block : BLOCK;
    f->block = block < n ? block : n;
    f->piece = model_piece(m);
    f->code_room = lanes_round_up(f->piece + LANES - 1);
    TRY(TAKE(&f->t.memory, f->lonely, (size_t)f->t.c->dim * (size_t)f->t.room, err));
    TRY(TAKE(&f->t.memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    make_lonely(f);
    return FR_OK;
}
