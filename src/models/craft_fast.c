/* craft_fast.c - CRAFT(-R) for every candidate of an event at once, through tables made once per
 * checkpoint (MODELS 2.6).
 *
 * Vectors of candidates are columns: an array [dim, width] holds one number of every candidate of a
 * block side by side. So all products are W x with W as stored, logits [slots, width] come out
 * as the softmax wants them, and norms are sums down a column: a vector lane is a candidate, and
 * nothing is ever turned round or added across lanes.
 *
 * The key of a slot is LN0(E_s + P_p) = rho (g0 * (E_s' + P_p')) + b0 with centred rows E', P', so
 * keys and values are sums of two table rows, and no product runs over the history. The code of the
 * elapsed time is LN(w x + b) = rho(x) (x w' + b') and meets the head as three numbers per row.
 *
 * The first layer's logits are products with query0 too, although h (I + L) numbers per candidate
 * could hold them ready (MODELS 2.6): reading those saved 1 to 2 % where it was measured, and
 * without them memory stays linear in I.
 *
 * Bits: a score is a chain of operations on its own lane, in an order that depends on the event
 * alone, so neither the block nor the neighbours matter. Blocks are widened to whole vectors with
 * the columns that follow (tables have zero columns behind the last); what comes of those is
 * dropped.
 */
#include "models/craft_fast.h"

#include "models/craft_tables.h"
#include "nn/gemm.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int craft_fast_block = 64;
simd_level craft_fast_limit = SIMD_AVX512;
double *craft_fast_seconds;

typedef struct worker {
    int32_t *item;  /* [slots] */
    int32_t *count; /* [destinations] n_uv; 0 between events */
    int32_t *last;  /* [destinations] last event below `cut`, -1 = none */
    int32_t cut;
    real *slope, *offset; /* [room] rho(x) x and rho(x) of every candidate */
    int slots;            /* of the event, and whether short enough to fold (see fold) */
    bool folded;
    real *key[CRAFT_MOST_LAYERS], *value[CRAFT_MOST_LAYERS]; /* [slots, dim] */
    real *folded_key[CRAFT_MOST_LAYERS];   /* [heads * slots, dim + 1] at most dim rows */
    real *folded_value[CRAFT_MOST_LAYERS]; /* [heads * slots, dim] */
    real *q;                               /* [dim + 1, width] the last row is 1 */
    real *y, *mix, *branch;                /* [dim, width] */
    real *wide;                            /* [most of heads * slots, 4 dim, head rows; width] */
    real *total;                           /* [width] */
} worker;

typedef struct fast {
    craft_tables t;
    int block;    /* candidates at a time */
    real *lonely; /* [dim, room] last q of a source without history */
    worker *workers;
} fast;

/* ---- kernels: arrays [rows, width], width a multiple of CRAFT_LANES ---- */

#define KERNEL static inline __attribute__((always_inline))

/* One number of neighbouring candidates; the compiler makes of it what the instruction set has. */
typedef real lanes
    __attribute__((vector_size(CRAFT_LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef __typeof__((lanes){0} > (lanes){0}) lanes_mask;

#define LANES_AT(x, row)   ((lanes *)((x) + (row)*width + from))
#define CHOOSE(mask, a, b) ((lanes)(((mask) & (lanes_mask)(a)) | (~(mask) & (lanes_mask)(b))))

/* Adds the time since *from to a stage. */
KERNEL void lap(craft_stage stage, double *from) {
    if (!craft_fast_seconds) return;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (*from > 0) craft_fast_seconds[stage] += now - *from;
    *from = now;
}

KERNEL void fill(int rows, int width, const real *bias, real *restrict y) {
    for (int k = 0; k < rows; k++)
        for (int j = 0; j < width; j++) y[k * width + j] = bias[k];
}

/* y = weight x + bias */
KERNEL void linear(int out, int in, int width, const real *weight, const real *bias, const real *x,
                   real *y) {
    fill(out, width, bias, y);
    gemm_nn(out, width, in, weight, in, x, width, y, width, true);
}

/* y = gain * norm(x) + bias + residual, by columns */
KERNEL void norm_add(int rows, int width, const real *x, const real *gain, const real *bias,
                     const real *residual, real *restrict y) {
    for (int from = 0; from < width; from += CRAFT_LANES) {
        lanes mean = {0}, rho = {0};
        for (int k = 0; k < rows; k++) mean += *LANES_AT(x, k);
        mean /= (real)rows;
        for (int k = 0; k < rows; k++) {
            lanes centred = *LANES_AT(x, k) - mean;
            rho += centred * centred;
        }
        rho /= (real)rows;
        for (int j = 0; j < CRAFT_LANES; j++) rho[j] = (real)(1 / sqrt((double)rho[j] + CRAFT_EPS));
        for (int k = 0; k < rows; k++)
            *LANES_AT(y, k) =
                (*LANES_AT(x, k) - mean) * rho * gain[k] + (bias[k] + *LANES_AT(residual, k));
    }
}

/* Turns logits into exp(logit - most) and their sums into `total`, by columns. */
KERNEL void exponents(int rows, int width, real *restrict x, real *restrict total) {
    for (int from = 0; from < width; from += CRAFT_LANES) {
        lanes most = *LANES_AT(x, 0);
        for (int p = 1; p < rows; p++) {
            lanes here = *LANES_AT(x, p);
            most = CHOOSE(here > most, here, most);
        }
        for (int p = 0; p < rows; p++) *LANES_AT(x, p) -= most;
    }
    vmath_exp((int64_t)rows * width, x, x);
    for (int from = 0; from < width; from += CRAFT_LANES) {
        lanes sum = {0};
        for (int p = 0; p < rows; p++) sum += *LANES_AT(x, p);
        *LANES_AT(total, 0) = sum;
    }
}

KERNEL void divide(int rows, int width, const real *restrict total, real *restrict x) {
    for (int from = 0; from < width; from += CRAFT_LANES) {
        lanes scale = 1 / *LANES_AT(total, 0);
        for (int k = 0; k < rows; k++) *LANES_AT(x, k) *= scale;
    }
}

/* y = sum of weight * PReLU(x) + bias, by columns */
KERNEL void prelu_sum(int rows, int width, const real *x, real slope, const real *weight, real bias,
                      real *restrict y) {
    for (int from = 0; from < width; from += CRAFT_LANES) {
        lanes sum = {0};
        for (int k = 0; k < rows; k++) {
            lanes here = *LANES_AT(x, k);
            sum += weight[k] * CHOOSE(here > 0, here, slope * here);
        }
        *LANES_AT(y, 0) = sum + bias;
    }
}

/* rows[p] = rho[p] (item[s_p] + slot[p]) */
KERNEL void slot_rows(int slots, int dim, const real *rho, const int32_t *item,
                      const real *restrict of_item, const real *restrict of_slot,
                      real *restrict rows) {
    for (int p = 0; p < slots; p++) {
        const real *a = of_item + (size_t)item[p] * (size_t)dim, *b = of_slot + p * dim;
        for (int k = 0; k < dim; k++) rows[p * dim + k] = rho[p] * (a[k] + b[k]);
    }
}

/* ---- one event ---- */

#define AT(parameter) craft_value(f->t.m, parameter)

/* A short history is cheaper when the two products of every candidate around the softmax, WQ q and
 * WO c, go over to keys and values: q.(WQ_h^T K) + bQ.K instead of (WQ q + bQ).K, and sums of WO_h
 * V instead of WO of sums. Rows are by head, then slot. */
KERNEL void fold(const fast *f, worker *w, int l) {
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
        gemm_nt(w->slots, dim, part, w->value[l] + at, dim, AT(y->out.weight) + at, dim,
                w->folded_value[l] + row * dim, dim, false);
    }
}

/* History, keys and values of the event. */
KERNEL void read_source(const fast *f, worker *w, const fr_query *query) {
    const craft *c = f->t.c;
    const fr_window *window = f->t.m->w;
    int dim = c->dim;
    int32_t cut = window_cut(window, query->event);
    event_list past = window_source_history(window, query->source, cut, c->history);
    real *rho = w->wide;
    w->slots = past.count;
    w->folded = w->slots * c->heads <= dim;
    for (int p = 0; p < w->slots; p++) {
        int32_t s = w->item[p] = window->destination[past.event[p]];
        const double *a = f->t.item_centred + (size_t)s * (size_t)dim,
                     *b = f->t.slot_centred + p * dim;
        double lane[8] = {0}; /* of one fixed order */
        for (int k = 0; k < dim; k++) lane[k % 8] += (a[k] + b[k]) * (a[k] + b[k]);
        double sum = ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
                     ((lane[2] + lane[6]) + (lane[3] + lane[7]));
        rho[p] = (real)(1 / sqrt(sum / dim + CRAFT_EPS));
        w->count[s]++;
    }
    for (int l = 0; l < c->layers; l++) {
        const craft_layer_tables *t = &f->t.layer[l];
        slot_rows(w->slots, dim, rho, w->item, t->key_item, t->key_slot, w->key[l]);
        slot_rows(w->slots, dim, rho, w->item, t->value_item, t->value_slot, w->value[l]);
        if (w->folded) fold(f, w, l);
    }
}

/* What the codes of the elapsed times of all candidates need. */
KERNEL void read_elapsed(const fast *f, worker *w, int32_t event) {
    const fr_window *window = f->t.m->w;
    int32_t cut = window_cut(window, event);
    if (cut < w->cut) { /* back in time: from the start */
        for (int32_t v = 0; v < window->destinations; v++) w->last[v] = -1;
        w->cut = 0;
    }
    for (; w->cut < cut; w->cut++) w->last[window->destination[w->cut]] = w->cut;
    for (int32_t v = 0; v < window->destinations; v++) {
        double x = -100000; /* as craft_elapsed */
        if (w->last[v] >= 0) x = (double)(float)(window->time[event] - window->time[w->last[v]]);
        double scale = craft_rho(&f->t.elapsed, x);
        w->slope[v] = (real)(scale * x);
        w->offset[v] = (real)scale;
    }
}

/* w->wide = logits [heads * slots, width] of candidates `from` .. in layer l. */
KERNEL void make_logits(const fast *f, worker *w, int l, int from, int width, double *clock) {
    int dim = f->t.c->dim, heads = f->t.c->heads, part = dim / heads;
    craft_pair weights = f->t.c->layer[l].query;
    const real *query = l ? w->branch : f->t.query0 + from;
    size_t ld = (size_t)(l ? width : f->t.room);
    if (l && w->folded) {
        gemm_nn(heads * w->slots, width, dim + 1, w->folded_key[l], dim + 1, w->q, width, w->wide,
                width, false);
    } else {
        if (l) linear(dim, dim, width, AT(weights.weight), AT(weights.bias), w->q, w->branch);
        lap(CRAFT_OUT, clock);
        for (int h = 0; h < heads; h++)
            gemm_nn(w->slots, width, part, w->key[l] + h * part, dim,
                    query + (size_t)(h * part) * ld, (int)ld, w->wide + h * w->slots * width, width,
                    false);
    }
    lap(CRAFT_LOGITS, clock);
}

/* w->branch = WO (attention) + bias, for logits in w->wide. */
KERNEL void mix_values(const fast *f, worker *w, int l, int width, double *clock) {
    int dim = f->t.c->dim, heads = f->t.c->heads, part = dim / heads;
    for (int h = 0; h < heads; h++) {
        real *weight = w->wide + h * w->slots * width, *mix = w->mix + h * part * width;
        exponents(w->slots, width, weight, w->total);
        if (w->folded) divide(w->slots, width, w->total, weight);
        lap(CRAFT_SOFTMAX, clock);
        if (w->folded) continue;
        gemm_tn(part, width, w->slots, w->value[l] + h * part, dim, weight, width, mix, width,
                false);
        divide(part, width, w->total, mix);
        lap(CRAFT_MIX, clock);
    }
    const real *bias = f->t.layer[l].out_bias;
    if (w->folded) {
        fill(dim, width, bias, w->branch);
        gemm_tn(dim, width, heads * w->slots, w->folded_value[l], dim, w->wide, width, w->branch,
                width, true);
        lap(CRAFT_MIX, clock);
    } else {
        linear(dim, dim, width, AT(f->t.c->layer[l].out.weight), bias, w->mix, w->branch);
    }
}

/* Candidates `from` .. in `width` columns through all layers; leaves q in w->q. */
KERNEL void block_layers(const fast *f, worker *w, int from, int width, double *clock) {
    int dim = f->t.c->dim;
    for (int k = 0; k < dim; k++)
        memcpy(w->q + k * width, f->t.q0 + (size_t)k * (size_t)f->t.room + from,
               (size_t)width * sizeof *w->q);
    for (int j = 0; j < width; j++) w->q[dim * width + j] = 1;
    for (int l = 0; l < f->t.c->layers; l++) {
        const craft_layer *y = &f->t.c->layer[l];
        if (w->slots) {
            make_logits(f, w, l, from, width, clock);
            mix_values(f, w, l, width, clock);
        } else {
            fill(dim, width, AT(y->out.bias), w->branch);
        }
        norm_add(dim, width, w->branch, AT(y->attn_norm.weight), AT(y->attn_norm.bias), w->q, w->y);
        lap(CRAFT_OUT, clock);
        linear(4 * dim, dim, width, AT(y->ffn1.weight), AT(y->ffn1.bias), w->y, w->wide);
        lap(CRAFT_FFN1, clock);
        vmath_gelu((int64_t)4 * dim * width, w->wide, w->wide);
        lap(CRAFT_GELU, clock);
        linear(dim, 4 * dim, width, AT(y->ffn2.weight), AT(y->ffn2.bias), w->wide, w->branch);
        lap(CRAFT_FFN2, clock);
        norm_add(dim, width, w->branch, AT(y->ffn_norm.weight), AT(y->ffn_norm.bias), w->y, w->q);
        lap(CRAFT_OUT, clock);
    }
}

/* w->total = scores of candidates `from` .. whose q is in `q` with rows `ld` apart. */
KERNEL void block_head(const fast *f, worker *w, int from, int width, const real *q, int ld) {
    const craft *c = f->t.c;
    int rows = f->t.head_rows;
    real *restrict y = w->wide;
    const real *restrict slope = w->slope + from, *restrict offset = w->offset + from;
    for (int k = 0; k < rows; k++)
        for (int j = 0; j < width; j++)
            y[k * width + j] =
                slope[j] * f->t.slope[k] + offset[j] * f->t.offset[k] + f->t.constant[k];
    for (int p = 0; c->repeat && p < w->slots; p++) {
        int j = w->item[p] - from, n = w->count[w->item[p]];
        if (j < 0 || j >= width) continue;
        double rho = craft_rho(&f->t.repeats, n), rho0 = craft_rho(&f->t.repeats, 0);
        for (int k = 0; k < rows; k++) {
            real change =
                (real)(rho * n * f->t.repeats.slope[k] + (rho - rho0) * f->t.repeats.offset[k]);
            y[k * width + j] =
                slope[j] * f->t.slope[k] + offset[j] * f->t.offset[k] + (f->t.constant[k] + change);
        }
    }
    gemm_nn(rows, width, c->dim, f->t.head, c->z, q, ld, y, width, true);
    if (c->head_layers == 2)
        prelu_sum(rows, width, y, *AT(c->prelu), AT(c->fc2.weight), *AT(c->fc2.bias), w->total);
    else
        memcpy(w->total, y, (size_t)width * sizeof *y);
}

KERNEL void score_event(const fast *f, worker *w, const fr_query *query, float *scores) {
    int32_t all = f->t.m->w->destinations;
    double clock = 0;
    lap(CRAFT_SOURCE, &clock);
    read_source(f, w, query);
    read_elapsed(f, w, query->event);
    lap(CRAFT_SOURCE, &clock);
    for (int32_t from = 0; from < all; from += f->block) {
        int count = all - from < f->block ? all - from : f->block, width = craft_round_up(count);
        if (w->slots) {
            block_layers(f, w, from, width, &clock);
            block_head(f, w, from, width, w->q, width);
        } else {
            block_head(f, w, from, width, f->lonely + from, f->t.room);
        }
        for (int j = 0; j < count; j++) scores[from + j] = (float)w->total[j];
        lap(CRAFT_HEAD, &clock);
    }
    for (int p = 0; p < w->slots; p++) w->count[w->item[p]] = 0;
}

/* The kernels are plain C without contraction: the same bits from every instruction set. */
#define SCORE(name, target)                                                                        \
    target static fr_status name(void *state, const fr_query *query, int number, float *scores,    \
                                 fr_error *err) {                                                  \
        (void)err;                                                                                 \
        fast *f = state;                                                                           \
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
    if (simd_within(craft_fast_limit) == SIMD_AVX2) out->score = score_avx2;
    if (simd_within(craft_fast_limit) == SIMD_AVX512) out->score = score_avx512;
#endif
}

/* ---- opening ---- */

static fr_status make_worker(fast *f, worker *w, fr_error *err) {
    const craft *c = f->t.c;
    int dim = c->dim, width = craft_round_up(f->block), n = f->t.m->w->destinations;
    size_t most = (size_t)c->heads * (size_t)f->t.slots;
    if (most < 4 * (size_t)dim) most = 4 * (size_t)dim;
    if (most < (size_t)f->t.head_rows) most = (size_t)f->t.head_rows;
    TRY(TAKE(&f->t.memory, w->item, f->t.slots, err));
    TRY(TAKE(&f->t.memory, w->count, n, err));
    TRY(TAKE(&f->t.memory, w->last, n, err));
    TRY(TAKE(&f->t.memory, w->slope, f->t.room, err));
    TRY(TAKE(&f->t.memory, w->offset, f->t.room, err));
    for (int l = 0; l < c->layers; l++) {
        TRY(TAKE(&f->t.memory, w->key[l], f->t.slots * dim, err));
        TRY(TAKE(&f->t.memory, w->value[l], f->t.slots * dim, err));
        TRY(TAKE(&f->t.memory, w->folded_key[l], dim * (dim + 1), err));
        TRY(TAKE(&f->t.memory, w->folded_value[l], dim * dim, err));
    }
    TRY(TAKE(&f->t.memory, w->q, (dim + 1) * width, err));
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
    double clock = 0;
    for (int from = 0; from < f->t.m->w->destinations; from += f->block) {
        int left = f->t.m->w->destinations - from,
            width = craft_round_up(left < f->block ? left : f->block);
        block_layers(f, w, from, width, &clock);
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

fr_status craft_fast(const model *m, int threads, fr_scorer *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer){.state = f, .close = close_fast};
    choose_kernels(out);
    TRY(craft_tables_open(&f->t, m, err));
    int n = m->w->destinations;
    f->block = craft_fast_block < n ? craft_fast_block : n;
    TRY(TAKE(&f->t.memory, f->lonely, (size_t)f->t.c->dim * (size_t)f->t.room, err));
    TRY(TAKE(&f->t.memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, &f->workers[i], err));
    make_lonely(f);
    return FR_OK;
}
