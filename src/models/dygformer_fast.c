/* dygformer_fast.c - DyGFormer for every candidate of some events at once (MODELS 3.5).
 *
 * Everything that depends only on the source and the time is computed once per event: its patches,
 * and their queries, keys and values of the first layer. A candidate that the source has not met
 * within the kept windows uses them as they are. For the few that it has met, and with shared ids
 * for those with a common neighbour, the counts differ, and the source's patches are computed
 * again. After the first attention everything depends on the pair.
 *
 * From one event to the next only the time changes for most candidates. So a few of them at a time
 * are scored for all events: their patches without times are kept, and their time codes are
 *
 *     cos(w (t - t_j) + b) = cos(w t + b) cos(w t_j) + sin(w t + b) sin(w t_j)
 *
 * from tables of both factors, which stay in the cache.
 *
 * Candidates of an event are taken in blocks of about ROWS patches. All patches of
 * a block are the rows of one matrix [rows, dim]: source patches, then own patches of the first
 * candidate, then of the next. Norms and products, which are nearly all of the work, run over all
 * rows; attention runs per candidate. The last matrix of the last layer is applied to the means of
 * the sides instead of to all patches, and the output layer is part of the head's first layer.
 *
 * Bits: every step computes a row from its own sequence in an order that depends on the sequence
 * alone (gemm's chains, vmath, sixteen lanes that fold in one way). So the block, the other
 * candidates, the thread and the instruction set do not matter. Candidates without a past that the
 * source has not met have equal rows and so equal scores.
 */
#include "models/dygformer_fast.h"

#include "models/dygformer_tables.h"
#include "models/lha.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

enum {
    EVENTS = 16,       /* at once */
    FEW = 32,          /* candidates that go through all events together */
    ROWS = 160,        /* patches that go through the layers together, about */
    TABLES = 256 << 20 /* bytes of a table by event; beyond this, features are multiplied when used
                          and cosines of times computed, which may change the last bits */
};

/* An event: what all its candidates share. Lifetime: worker scratch. */
typedef struct side {
    int32_t event, source, node, cut; /* node: of the source */
    dygformer_past past;
    int patches;
    int32_t *times; /* [nodes] occurrences in the source's side; 0 between events */
    bool *met;      /* [destinations] met before; false between events and with shared ids */
    real *recalled; /* [destinations] what the pair's memory adds; 0 between events */
    real *x;        /* [side patches, dim] pair counts 0 */
    real *sum;      /* [side patches, dim] the same with the bias of the first branch */
    real *qkv;      /* [side patches, 3 dim] */
    int known;      /* patches whose logits are in `logits`: all, or none if it is not worth it */
    real *logits;   /* [heads, patches, patches in whole lanes] of the first layer */
    real *now;      /* [2, time_dim] cosines and sines of w t + b */
} side;

/* A candidate's side as it is for sources it has not met, without times. */
typedef struct kept {
    int32_t shown; /* the node that its identity shows; -1 = it shows none */
    dygformer_past past;
    real *x; /* [side patches, dim] */
} kept;

/* One candidate of a block. Rows of the block: first .. first + source + own - 1. */
typedef struct sequence {
    int32_t candidate, node;
    dygformer_past past;
    bool met; /* true if a node is in both sides */
    int first, source, own;
    const real *x; /* kept rows */
} sequence;

/* Lifetime: worker scratch. */
typedef struct worker {
    side *sides;     /* [EVENTS] */
    int32_t from;    /* the first requested candidate */
    kept few[FEW];   /* by candidate % FEW */
    int32_t *by;     /* [nodes] occurrences in a candidate's side; 0 between candidates */
    double *angle;   /* [patch * time_dim] */
    real *self;      /* [time_dim] cos b: the code of a side itself */
    real *features;  /* [edge_dim] */
    real *edge;      /* [channel] */
    sequence *list;  /* [rows] */
    int32_t *fresh;  /* [rows] rows whose first layer is not the source's */
    real *phi;       /* [rows, patch * time_dim] */
    real *time;      /* [rows, channel] */
    real *x, *mix;   /* [rows, dim] */
    real *hat;       /* [rows, dim] normalised rows */
    real *qkv;       /* [rows, 3 dim] */
    real *fresh_qkv; /* [rows, 3 dim] */
    real *wide;      /* [rows, 4 dim] */
    real *weight;    /* [longest, longest] of a head's keys and queries */
    real *total;     /* [longest] */
    real *mean;      /* [rows, dim] of the sides: two per candidate, which has two rows or more */
    real *mean_wide; /* [rows, 4 dim] */
    real *hidden;    /* [rows, dim] */
} worker;

typedef struct fast {
    dygformer_tables t;
    int longest;    /* most patches of a side */
    int rows;       /* of a block, about; at most `longest` twice more */
    bool remembers; /* LHA */
    void (*run)(const struct fast *f, worker *w, const fr_query *queries, int count, int32_t from,
                int32_t to, float *scores);
    worker *workers;
} fast;

#define AT(number) model_value(f->t.m, number)

/* ---- kernels ---- */

/* to = mean of rows */
SIMD_INLINE void mean_rows(int rows, int n, const real *x, real *restrict to) {
    memcpy(to, x, (size_t)n * sizeof *to);
    for (int i = 1; i < rows; i++) lanes_add(n, x + (size_t)i * (size_t)n, to);
    real scale = 1 / (real)rows;
    for (int k = 0; k < n; k++) to[k] *= scale;
}

/* ---- patches ---- */

static inline int patches_of(const dygformer *d, int tokens) {
    return (tokens + d->patch - 1) / d->patch;
}

/* to += Wc_s (enc(a) + enc(b)): the larger count with enc(0), then what the smaller one adds. */
SIMD_INLINE void add_count(const fast *f, int ch, int slot, int32_t a, int32_t b, real *to) {
    size_t table = (size_t)slot * (size_t)((f->t.most + 1) * ch);
    int32_t large = a > b ? a : b, small = a > b ? b : a;
    lanes_add(ch, f->t.cooc + table + (size_t)(large * ch), to);
    if (small) lanes_add(ch, f->t.more + table + (size_t)(small * ch), to);
}

SIMD_INLINE void add_counts_any(const fast *f, int ch, int32_t node, dygformer_past past,
                                const int32_t *mine, const int32_t *other, real *x) {
    const dygformer *d = f->t.f;
    real *to = x + 3 * ch;
    memcpy(to, f->t.start + 3 * ch, (size_t)ch * sizeof *to);
    add_count(f, ch, 0, mine[node], other ? other[node] : 0, to);
    for (int j = 0, slot = 1; j < past.count; j++, slot++) {
        if (slot == d->patch) {
            slot = 0;
            to += d->dim;
            memcpy(to, f->t.start + 3 * ch, (size_t)ch * sizeof *to);
        }
        int32_t one = past.node[j];
        add_count(f, ch, slot, mine[one], other ? other[one] : 0, to);
    }
}

/* The channel of counts of a side's patches: how often a token's node occurs in this side and in
 * the other; NULL = never in the other. */
SIMD_INLINE void add_counts(const fast *f, int32_t node, dygformer_past past, const int32_t *mine,
                            const int32_t *other, real *x) {
    if (f->t.f->channel == LANES)
        add_counts_any(f, LANES, node, past, mine, other, x);
    else
        add_counts_any(f, f->t.f->channel, node, past, mine, other, x);
}

/* The channels of nodes and edge features of a side's patches. */
SIMD_INLINE void add_events(const fast *f, worker *w, int32_t node, dygformer_past past, real *x) {
    const dygformer *d = f->t.f;
    int ch = d->channel, count = patches_of(d, past.count + 1);
    for (int i = 0; i < count; i++)
        memcpy(x + i * d->dim, f->t.start, (size_t)(2 * ch) * sizeof *x);
    for (int j = 0; f->t.identity && j <= past.count; j++) {
        size_t one = (size_t)(j ? past.node[j - 1] : node), slot = (size_t)(j % d->patch);
        lanes_add(ch, f->t.identity + (one * (size_t)d->patch + slot) * (size_t)ch,
                  x + j / d->patch * d->dim);
    }
    for (int j = 0; d->edge_dim && j < past.count; j++) {
        int slot = (j + 1) % d->patch;
        const real *row = w->edge;
        if (f->t.edge)
            row =
                f->t.edge + ((size_t)past.event[j] * (size_t)d->patch + (size_t)slot) * (size_t)ch;
        else
            dygformer_edge(&f->t, past.event[j], slot, 1, w->features, w->edge);
        lanes_add(ch, row, x + (j + 1) / d->patch * d->dim + ch);
    }
}

/* Time codes of a side's tokens, a patch to a row. */
SIMD_INLINE void time_codes(const fast *f, worker *w, int32_t event, dygformer_past past,
                            real *phi) {
    const dygformer *d = f->t.f;
    const real *weight = AT(d->time.weight), *bias = AT(d->time.bias);
    double now = f->t.m->w->time[event];
    int dt = d->time_dim, tokens = past.count + 1, room = patches_of(d, tokens) * d->patch;
    for (int j = 0; j < tokens; j += d->patch) {
        int some = tokens - j < d->patch ? tokens - j : d->patch;
        for (int i = 0; i < some; i++) {
            double delta = j + i ? now - past.time[j + i - 1] : 0;
            for (int k = 0; k < dt; k++)
                w->angle[i * dt + k] = (double)weight[k] * delta + (double)bias[k];
        }
        vmath_cos(some * dt, w->angle, phi + (size_t)j * (size_t)dt);
    }
    memset(phi + (size_t)tokens * (size_t)dt, 0,
           (size_t)(room - tokens) * (size_t)dt * sizeof *phi);
}

/* The same for a candidate's tokens, from tables. */
SIMD_INLINE void turn_codes(const fast *f, const worker *w, const side *s, dygformer_past past,
                            real *phi) {
    const dygformer *d = f->t.f;
    int dt = d->time_dim, tokens = past.count + 1, room = patches_of(d, tokens) * d->patch;
    size_t at = (size_t)(past.time - f->t.clock - f->t.coded) * (size_t)dt;
    const real *cosine = f->t.cosine + at, *sine = f->t.sine + at;
    memcpy(phi, w->self, (size_t)dt * sizeof *phi);
    phi += dt;
    for (int j = 0; j < past.count; j++, phi += dt, cosine += dt, sine += dt)
        lanes_turn(dt, s->now, cosine, s->now + dt, sine, phi);
    memset(phi, 0, (size_t)((room - tokens) * dt) * sizeof *phi);
}

/* The channel of times of `rows` patches whose codes are in w->phi, into w->time. */
SIMD_INLINE void time_channel(const fast *f, worker *w, int rows) {
    turned_product(&f->t.time, rows, w->phi, f->t.time.in, w->time, f->t.f->channel, false);
}

/* ---- layers ---- */

/* w->mix of rows first .. first + n - 1, which attend to each other. Logits are stored as (key,
 * query), so a lane is a query. With u, the source's rows are the same for all candidates. */
SIMD_INLINE void attend(const fast *f, worker *w, int first, int n, const side *u) {
    int known = u ? u->known : 0, d = f->t.f->dim, heads = f->t.f->heads, ld = lanes_round_up(n);
    const real *qkv = w->qkv + (size_t)first * (size_t)(3 * d);
    const real *own = qkv + (size_t)known * (size_t)(3 * d);
    real *to = w->weight;
    for (int h = 0; h < heads; h++) {
        for (int i = 0; i < known; i++)
            memcpy(to + i * ld, u->logits + (h * known + i) * lanes_round_up(known),
                   (size_t)known * sizeof *to);
        if (known) transformer_logits(d, heads, h, n - known, own, known, qkv, to + known * ld, ld);
        transformer_logits(d, heads, h, n, qkv, n - known, own, to + known, ld);
        transformer_mix(d, heads, h, n, qkv, to, w->total, w->mix + (size_t)first * (size_t)d);
    }
}

/* w->hat of all rows; then the bias of the branch that follows is added to them. */
SIMD_INLINE void norm_rows(const fast *f, worker *w, int rows, const real *bias) {
    int d = f->t.f->dim;
    for (int i = 0; i < rows; i++) transformer_norm(d, w->x + i * d, bias, w->hat + i * d);
}

/* Queries, keys and values of the first layer: of fresh rows, and the source's for the others. */
SIMD_INLINE void first_qkv(const fast *f, worker *w, const side *u, int count, int fresh) {
    const transformer_table *y = &f->t.layer[0];
    int d = f->t.f->dim;
    size_t row = (size_t)(3 * d);
    for (int i = 0; i < fresh; i++)
        transformer_norm(d, w->x + w->fresh[i] * d, y->out_bias, w->hat + i * d);
    turned_product(&y->qkv, fresh, w->hat, d, w->fresh_qkv, 3 * d, false);
    for (int i = 0; i < fresh; i++)
        memcpy(w->qkv + (size_t)w->fresh[i] * row, w->fresh_qkv + (size_t)i * row,
               row * sizeof *w->qkv);
    for (int k = 0; k < count; k++) {
        const sequence *s = &w->list[k];
        if (s->met) continue;
        memcpy(w->x + s->first * d, u->sum, (size_t)(s->source * d) * sizeof *w->x);
        memcpy(w->qkv + (size_t)s->first * row, u->qkv, (size_t)s->source * row * sizeof *w->qkv);
    }
}

/* The block's rows through all layers; leaves the means of the sides in w->mean. */
SIMD_INLINE void run_layers(const fast *f, worker *w, const side *u, int count, int rows) {
    int d = f->t.f->dim;
    for (int l = 0; l < f->t.f->layers; l++) {
        const transformer_table *y = &f->t.layer[l];
        if (l) {
            norm_rows(f, w, rows, y->out_bias);
            turned_product(&y->qkv, rows, w->hat, d, w->qkv, 3 * d, false);
        }
        for (int k = 0; k < count; k++) {
            const sequence *s = &w->list[k];
            bool shared = !l && u->known && !s->met;
            attend(f, w, s->first, s->source + s->own, shared ? u : NULL);
        }
        turned_product(&y->out, rows, w->mix, d, w->x, d, true);
        norm_rows(f, w, rows, y->ffn2_bias);
        turned_product(&y->ffn1, rows, w->hat, d, w->wide, 4 * d, false);
        vmath_gelu((int64_t)rows * (4 * d), w->wide, w->wide);
        if (l + 1 < f->t.f->layers) turned_product(&y->ffn2, rows, w->wide, 4 * d, w->x, d, true);
    }
    for (int k = 0; k < count; k++) /* mean(W2 g) = W2 mean(g) */
        for (int own = 0; own < 2; own++) {
            const sequence *s = &w->list[k];
            int n = own ? s->own : s->source, from = s->first + (own ? s->source : 0);
            mean_rows(n, d, w->x + from * d, w->mean + (2 * k + own) * d);
            mean_rows(n, 4 * d, w->wide + from * 4 * d, w->mean_wide + (2 * k + own) * 4 * d);
        }
    turned_product(&f->t.layer[f->t.f->layers - 1].ffn2, 2 * count, w->mean_wide, 4 * d, w->mean, d,
                   true);
}

/* [mean of source; mean of candidate] are neighbouring rows, so one row of 2 dim. */
SIMD_INLINE void score_block(const fast *f, worker *w, const side *u, int count, float *scores) {
    int d = f->t.f->dim;
    const real *last = AT(f->t.f->fc2.weight), bias = *AT(f->t.f->fc2.bias);
    turned_product(&f->t.head, count, w->mean, 2 * d, w->hidden, d, false);
    for (int k = 0; k < count; k++) {
        real *h = w->hidden + k * d;
        lanes_relu(d, h, h);
        int32_t v = w->list[k].candidate;
        scores[v - w->from] = (float)(lanes_dot(d, h, last) + u->recalled[v] + bias);
    }
}

/* ---- an event ---- */

/* Adds `more` to the counts of a side's tokens: the node itself and the nodes it has met. */
static inline void count_side(int32_t node, dygformer_past past, int32_t more, int32_t *count) {
    count[node] += more;
    for (int j = 0; j < past.count; j++) count[past.node[j]] += more;
}

static void read_source(const fast *f, const fr_query *query, side *u) {
    const fr_window *w = f->t.m->w;
    const dygformer *d = f->t.f;
    u->event = query->event;
    u->source = query->source;
    u->node = window_source_node(w, query->source);
    u->cut = window_cut(w, query->event);
    u->past = dygformer_past_of(&f->t, u->node, u->cut);
    u->patches = patches_of(d, u->past.count + 1);
    count_side(u->node, u->past, 1, u->times);
    fr_history firsts = window_met(w, u->source, u->cut);
    for (int j = 0; !w->source_node && j < firsts.count; j++)
        u->met[w->destination[firsts.event[j]]] = true;
    if (!f->remembers) return;
    for (int32_t k = w->source_pair_at[u->source]; k < w->source_pair_at[u->source + 1]; k++) {
        int32_t v = w->pair_destination[k];
        u->recalled[v] = lha_recalled(f->t.m, u->event, v);
    }
}

static void forget_source(const fast *f, side *u) {
    const fr_window *w = f->t.m->w;
    count_side(u->node, u->past, -1, u->times);
    for (int32_t k = w->source_pair_at[u->source]; k < w->source_pair_at[u->source + 1]; k++) {
        u->met[w->pair_destination[k]] = false;
        u->recalled[w->pair_destination[k]] = 0;
    }
}

/* The source's patches, queries, keys and values for candidates it has not met, and the event's
 * part of the time codes. */
SIMD_INLINE void make_source(const fast *f, worker *w, side *u) {
    const transformer_table *y = &f->t.layer[0];
    const real *weight = AT(f->t.f->time.weight), *bias = AT(f->t.f->time.bias);
    int d = f->t.f->dim, ch = f->t.f->channel, dt = f->t.f->time_dim, n = u->patches;
    add_events(f, w, u->node, u->past, u->x);
    time_codes(f, w, u->event, u->past, w->phi);
    time_channel(f, w, n);
    for (int i = 0; i < n; i++)
        memcpy(u->x + i * d + 2 * ch, w->time + i * ch, (size_t)ch * sizeof *w->time);
    add_counts(f, u->node, u->past, u->times, NULL, u->x);
    memcpy(u->sum, u->x, (size_t)(n * d) * sizeof *u->x);
    for (int i = 0; i < n; i++) transformer_norm(d, u->sum + i * d, y->out_bias, w->hat + i * d);
    turned_product(&y->qkv, n, w->hat, d, u->qkv, 3 * d, false);
    u->known = n < LANES ? 0 : n;
    for (int h = 0; u->known && h < f->t.f->heads; h++)
        transformer_logits(d, f->t.f->heads, h, n, u->qkv, n, u->qkv,
                           u->logits + h * n * lanes_round_up(n), lanes_round_up(n));
    for (int k = 0; k < dt; k++)
        w->angle[k] = (double)weight[k] * f->t.m->w->time[u->event] + (double)bias[k];
    vmath_cos(dt, w->angle, u->now);
    vmath_sin(dt, w->angle, u->now + dt);
}

/* ---- candidates of an event ---- */

/* The candidate's rows. They are kept from the last event, unless the candidate has had an event
 * since then. Pasts of different candidates are in different places; candidates without a past are
 * equal unless they have identities. */
SIMD_INLINE const kept *keep_candidate(const fast *f, worker *w, int32_t v, int32_t cut) {
    kept *own = &w->few[v % FEW];
    int32_t node = window_destination_node(f->t.m->w, v);
    dygformer_past past = dygformer_past_of(&f->t, node, cut);
    int32_t shown = f->t.identity ? node : -1;
    if (past.count == own->past.count && past.event == own->past.event && shown == own->shown)
        return own;
    own->past = past;
    own->shown = shown;
    add_events(f, w, node, past, own->x);
    count_side(node, past, 1, w->by);
    add_counts(f, node, past, w->by, NULL, own->x);
    count_side(node, past, -1, w->by);
    return own;
}

/* True if a node is in both sides. Without shared ids only the source and the candidate can be, and
 * only if they have met. */
static bool meet(const fast *f, const side *u, const sequence *s) {
    if (!f->t.m->w->source_node && !u->met[s->candidate]) return false;
    bool both = u->times[s->node];
    for (int j = 0; !both && j < s->past.count; j++) both = u->times[s->past.node[j]];
    return both;
}

/* Takes the next candidates from `v` to `end` until they have at least `most` rows; *rows is the
 * number of their rows. */
SIMD_INLINE int read_block(const fast *f, worker *w, const side *u, int32_t v, int32_t end,
                           int most, int *rows) {
    int count = 0;
    *rows = 0;
    for (; v < end && *rows < most; v++, count++) {
        sequence *s = &w->list[count];
        const kept *own = keep_candidate(f, w, v, u->cut);
        *s = (sequence){.candidate = v,
                        .node = window_destination_node(f->t.m->w, v),
                        .past = own->past,
                        .first = *rows,
                        .source = u->patches,
                        .own = patches_of(f->t.f, own->past.count + 1),
                        .x = own->x};
        s->met = meet(f, u, s);
        *rows += s->source + s->own;
    }
    return count;
}

/* Makes the block's rows before the first layer, except those of the source; returns their number.
 */
SIMD_INLINE int make_rows(const fast *f, worker *w, const side *u, int count) {
    int d = f->t.f->dim, ch = f->t.f->channel, fresh = 0, own = 0;
    for (int k = 0; k < count; k++) {
        const sequence *s = &w->list[k];
        real *x = w->x + s->first * d, *mine = x + s->source * d;
        memcpy(mine, s->x, (size_t)(s->own * d) * sizeof *x);
        if (s->met) {
            memcpy(x, u->x, (size_t)(s->source * d) * sizeof *x);
            count_side(s->node, s->past, 1, w->by);
            add_counts(f, u->node, u->past, u->times, w->by, x);
            add_counts(f, s->node, s->past, w->by, u->times, mine);
            count_side(s->node, s->past, -1, w->by);
            for (int i = 0; i < s->source; i++) w->fresh[fresh++] = s->first + i;
        }
        real *phi = w->phi + (size_t)own * (size_t)f->t.time.in;
        if (f->t.cosine)
            turn_codes(f, w, u, s->past, phi);
        else
            time_codes(f, w, u->event, s->past, phi);
        for (int i = 0; i < s->own; i++) w->fresh[fresh++] = s->first + s->source + i;
        own += s->own;
    }
    time_channel(f, w, own);
    const real *time = w->time;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < w->list[k].own; i++, time += ch)
            memcpy(w->x + (w->list[k].first + w->list[k].source + i) * d + 2 * ch, time,
                   (size_t)ch * sizeof *time);
    return fresh;
}

/* Rows of a block, so that candidates v .. end - 1 make blocks of nearly equal size. */
static int even_rows(const fast *f, const side *u, int32_t v, int32_t end) {
    int all = 0;
    for (; v < end; v++) {
        int32_t node = window_destination_node(f->t.m->w, v);
        all += u->patches + patches_of(f->t.f, dygformer_past_of(&f->t, node, u->cut).count + 1);
    }
    int blocks = (all + f->rows - 1) / f->rows;
    return (all + blocks - 1) / blocks;
}

SIMD_INLINE void score_few(const fast *f, worker *w, const side *u, int32_t v, int32_t end,
                           float *scores) {
    int most = even_rows(f, u, v, end);
    while (v < end) {
        int rows, count = read_block(f, w, u, v, end, most, &rows);
        int fresh = make_rows(f, w, u, count);
        first_qkv(f, w, u, count, fresh);
        run_layers(f, w, u, count, rows);
        score_block(f, w, u, count, scores);
        v += count;
    }
}

/* scores[count, to - from] of candidates from .. to - 1 */
SIMD_INLINE void score_events(const fast *f, worker *w, const fr_query *queries, int count,
                              int32_t from, int32_t to, float *scores) {
    w->from = from;
    for (int i = 0; i < count; i++) {
        read_source(f, &queries[i], &w->sides[i]);
        make_source(f, w, &w->sides[i]);
    }
    for (int32_t v = from; v < to; v += FEW)
        for (int i = 0; i < count; i++)
            score_few(f, w, &w->sides[i], v, to - v < FEW ? to : v + FEW,
                      scores + (size_t)i * (size_t)(to - from));
    for (int i = 0; i < count; i++) forget_source(f, &w->sides[i]);
}

SIMD_BUILDS(run, score_events,
            (const fast *f, worker *w, const fr_query *queries, int count, int32_t from, int32_t to,
             float *scores),
            (f, w, queries, count, from, to, scores))

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int number, float *scores, fr_error *err) {
    (void)err;
    const fast *f = state;
    f->run(f, &f->workers[number], queries, count, from, to, scores);
    return FR_OK;
}

/* ---- opening ---- */

static fr_status make_side(fast *f, side *u, fr_error *err) {
    const dygformer *d = f->t.f;
    arena *memory = &f->t.memory;
    TRY(TAKE(memory, u->times, f->t.m->w->nodes, err));
    TRY(TAKE(memory, u->met, f->t.m->w->destinations, err));
    TRY(TAKE(memory, u->recalled, f->t.m->w->destinations, err));
    TRY(TAKE(memory, u->x, f->longest * d->dim, err));
    TRY(TAKE(memory, u->sum, f->longest * d->dim, err));
    TRY(TAKE(memory, u->qkv, f->longest * 3 * d->dim, err));
    TRY(TAKE(memory, u->logits, d->heads * f->longest * lanes_round_up(f->longest), err));
    return TAKE(memory, u->now, 2 * d->time_dim, err);
}

static fr_status make_worker(fast *f, int events, worker *w, fr_error *err) {
    const dygformer *d = f->t.f;
    arena *memory = &f->t.memory;
    int dim = d->dim, codes = f->t.time.in, longest = 2 * f->longest;
    size_t rows = (size_t)(f->rows + longest);
    TRY(TAKE(memory, w->sides, events, err));
    for (int i = 0; i < events; i++) TRY(make_side(f, &w->sides[i], err));
    for (int k = 0; k < FEW; k++) TRY(TAKE(memory, w->few[k].x, f->longest * dim, err));
    TRY(TAKE(memory, w->by, f->t.m->w->nodes, err));
    TRY(TAKE(memory, w->angle, codes, err));
    TRY(TAKE(memory, w->self, d->time_dim, err));
    TRY(TAKE(memory, w->features, d->edge_dim, err));
    TRY(TAKE(memory, w->edge, d->channel, err));
    TRY(TAKE(memory, w->list, rows, err));
    TRY(TAKE(memory, w->fresh, rows, err));
    TRY(TAKE(memory, w->phi, rows * (size_t)codes, err));
    TRY(TAKE(memory, w->time, rows * (size_t)d->channel, err));
    TRY(TAKE(memory, w->x, rows * (size_t)dim, err));
    TRY(TAKE(memory, w->mix, rows * (size_t)dim, err));
    TRY(TAKE(memory, w->hat, rows * (size_t)dim, err));
    TRY(TAKE(memory, w->qkv, rows * (size_t)(3 * dim), err));
    TRY(TAKE(memory, w->fresh_qkv, rows * (size_t)(3 * dim), err));
    TRY(TAKE(memory, w->wide, rows * (size_t)(4 * dim), err));
    TRY(TAKE(memory, w->weight, (size_t)longest * (size_t)lanes_round_up(longest), err));
    TRY(TAKE(memory, w->total, lanes_round_up(longest), err));
    TRY(TAKE(memory, w->mean, rows * (size_t)dim, err));
    TRY(TAKE(memory, w->mean_wide, rows * (size_t)(4 * dim), err));
    TRY(TAKE(memory, w->hidden, rows * (size_t)dim, err));
    kernel_time(d->time_dim, AT(d->time.weight), AT(d->time.bias), 0, w->self);
    return FR_OK;
}

static void close_fast(void *state) {
    fast *f = state;
    dygformer_tables_free(&f->t);
    free(f);
}

/* Most patches of a side: as many as the model reads, or as the longest past has. */
static int longest_side(const model *m) {
    const dygformer *d = m->own;
    const fr_window *w = m->w;
    int32_t most = 0;
    for (int32_t x = 0; x < w->nodes; x++) {
        int32_t count = window_node_events(w, x).count;
        if (count > most) most = count;
    }
    return patches_of(d, most < d->history ? most + 1 : d->history);
}

fr_status dygformer_fast(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    fast *f;
    TRY(ALLOCATE(f, 1, err));
    *out = (fr_scorer_definition){.state = f,
                                  .workers = threads,
                                  .many = EVENTS,
                                  .part = score_part,
                                  .tile = MODEL_TILE,
                                  .close = close_fast};
    f->run = run_now();
    TRY(dygformer_tables_open(&f->t, m, m->fast_tables ? m->fast_tables : TABLES, err));
    f->longest = longest_side(m);
    f->rows = FEW * 2 * f->longest; /* no block has more */
    int rows = m->fast_block ? m->fast_block : ROWS;
    if (f->rows > rows) f->rows = rows;
    f->remembers = m->kind->memory != NULL;
    TRY(TAKE(&f->t.memory, f->workers, threads, err));
    for (int i = 0; i < threads; i++) TRY(make_worker(f, out->many, &f->workers[i], err));
    return FR_OK;
}
