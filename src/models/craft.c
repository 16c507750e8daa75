/* craft.c - CRAFT and CRAFT-R: the candidate is the query of a cross-attention over the source's
 * past.
 *
 * Per candidate v of an event of source u: the last `history` destinations of u, oldest first, are
 * keys and values; v's embedding is the query; x_v is the time since v last occurred with any
 * source; CRAFT-R adds n_uv, how often v is among the kept destinations. The forward pass below is
 * MODELS 2.2 line by line; parameters are in the order of MODELS 2.3, which is that of the
 * checkpoint.
 */
#include "models/craft.h"

#include "models/layers.h"
#include "nn/ops.h"

#include <stdlib.h>
#include <string.h>

static const double EPS = 1e-12;

/* Places where dropout acts; each has its own random bits. */
enum {
    SITE_QUERY,
    SITE_KEYS,
    SITE_ELAPSED,
    SITE_REPEAT,
    SITE_HEAD,
    SITE_LAYER /* + 3 per layer */
};

static param_pair dense(params *p, int layer, int rows, int cols, const char *name) {
    return layer_add(p, layer, rows, cols, INIT_NORMAL, INIT_ZERO, 0.02, name);
}

static fr_status open_kind(model *m, bool repeat, fr_error *err) {
    const fr_model_settings *s = &m->settings;
    int d = (int)s->dim, layers = (int)s->layers;
    params *p = &m->params;
    if (d % (int)s->heads)
        return fail(err, FR_EUSAGE, "dim %d is not a multiple of heads %lld", d,
                    (long long)s->heads);
    craft *c;
    TRY(ALLOCATE(c, 1, err));
    m->own = c;
    *c = (craft){.dim = d,
                 .heads = (int)s->heads,
                 .layers = layers,
                 .attend = (int)(s->attend ? s->attend : s->history),
                 .history = (int)s->history,
                 .head_layers = (int)s->head_layers,
                 .repeat = repeat,
                 .pad = s->empty == FR_EMPTY_PAD,
                 .z = d * (repeat ? 3 : 2),
                 .items = m->w->nodes - m->w->first_destination};
    c->item = params_add(p, c->items, d, INIT_NORMAL, 0.02, "item.weight");
    c->position = params_add(p, c->attend, d, INIT_NORMAL, 0.02, "position.weight");
    c->input_norm = layer_norm(p, -1, d, "input_norm");
    for (int l = 0; l < layers; l++) {
        craft_layer *y = &c->layer[l];
        y->query = dense(p, l, d, d, "query");
        y->key = dense(p, l, d, d, "key");
        y->value = dense(p, l, d, d, "value");
        y->out = dense(p, l, d, d, "out");
        y->attn_norm = layer_norm(p, l, d, "attn_norm");
        y->ffn1 = dense(p, l, 4 * d, d, "ffn1");
        y->ffn2 = dense(p, l, d, 4 * d, "ffn2");
        y->ffn_norm = layer_norm(p, l, d, "ffn_norm");
    }
    c->elapsed = dense(p, -1, d, 1, "elapsed");
    c->elapsed_norm = layer_norm(p, -1, d, "elapsed_norm");
    if (repeat) {
        c->repeats = dense(p, -1, d, 1, "repeat");
        c->repeat_norm = layer_norm(p, -1, d, "repeat_norm");
    }
    if (c->head_layers == 2) {
        c->fc1 = dense(p, -1, c->z, c->z, "head.fc1");
        c->prelu = params_add(p, 0, 1, INIT_FIXED, 0.15, "head.prelu");
    }
    c->fc2 = dense(p, -1, 1, c->z, "head.fc2");
    return FR_OK;
}

static fr_status open_craft(model *m, fr_error *err) { return open_kind(m, false, err); }
static fr_status open_craft_r(model *m, fr_error *err) { return open_kind(m, true, err); }

static void close_craft(model *m) { free(m->own); }

real craft_elapsed(const fr_window *w, int32_t event, int32_t cut, int32_t destination) {
    fr_history last = window_node_history(w, window_destination_node(w, destination), cut, 1);
    return last.count ? (real)(float)(w->time[event] - w->time[last.event[0]]) : -100000;
}

/* ---- inputs ---- */

/* The last `most` events of an event's source; *node is the source. */
static fr_history source_past(const model *m, int32_t event, int most, int32_t *node) {
    *node = window_source_node(m->w, m->w->source[event]);
    return window_node_history(m->w, *node, window_cut(m->w, event), most);
}

/* What forward reads of the window (MODELS 2.1). Memory: step. */
typedef struct inputs {
    int rows;      /* of all events: history entries, and empty slots of those without any */
    int32_t *item; /* [rows] rows of items, -1 = none */
    int32_t *slot; /* [rows] positions, 0 = oldest kept */
    int keys;      /* history entries, and one for all empty slots of an event */
    int32_t *from; /* [keys + 1] first row */
    real *divisor; /* [keys] rows of each */
    span *spans;   /* [events] of keys */
    row_key *key_of_row, *key_of_query;
    real *elapsed, *repeats; /* [candidates] x_v, n_uv */
} inputs;

static bool make_room(const model *m, tape *t, const model_batch *b, inputs *in) {
    const craft *c = m->own;
    size_t candidates = (size_t)b->from[b->events];
    int32_t node;
    *in = (inputs){0};
    for (int i = 0; i < b->events; i++) {
        int count = source_past(m, b->event[i], c->attend, &node).count;
        in->rows += count || !c->pad ? count : c->attend;
    }
#define ROOM(name, count) in->name = tape_take(t, (size_t)(count), sizeof *in->name)
    ROOM(item, in->rows);
    ROOM(slot, in->rows);
    ROOM(from, in->rows + 1);
    ROOM(divisor, in->rows);
    ROOM(spans, b->events);
    ROOM(key_of_row, in->rows);
    ROOM(key_of_query, candidates);
    ROOM(elapsed, candidates);
    ROOM(repeats, candidates);
#undef ROOM
    return !t->status;
}

/* Appends a key of `rows` rows. */
static void put_key(inputs *in, int rows) {
    in->divisor[in->keys] = (real)rows;
    in->from[in->keys + 1] = in->from[in->keys] + rows;
    in->keys++;
}

/* The keys of an event: history entries, or one for all empty slots. */
static void put_keys(const model *m, int32_t e, int32_t node, fr_history past, inputs *in) {
    const craft *c = m->own;
    int at = in->from[in->keys], rows = past.count || !c->pad ? past.count : c->attend;
    for (int p = 0; p < rows; p++, at++) {
        in->item[at] = past.count ? craft_met(m->w, node, past.event[p]) : -1;
        in->slot[at] = p;
        in->key_of_row[at] = (row_key){e, p};
        if (past.count) put_key(in, 1);
    }
    if (rows && !past.count) put_key(in, rows);
}

static bool read_inputs(const model *m, tape *t, const model_batch *b, inputs *in) {
    const fr_window *w = m->w;
    const craft *c = m->own;
    if (!make_room(m, t, b, in)) return false;
    for (int i = 0; i < b->events; i++) {
        int32_t e = b->event[i], cut = window_cut(w, e), node;
        fr_history past = source_past(m, e, c->attend, &node),
                   counted = source_past(m, e, c->history, &node);
        int first = in->keys;
        put_keys(m, e, node, past, in);
        in->spans[i] = (span){b->from[i], b->from[i + 1], first, in->keys};
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            int32_t v = b->candidate[k];
            in->key_of_query[k] = (row_key){e, k - b->from[i]};
            in->elapsed[k] = craft_elapsed(w, e, cut, v);
            for (int p = 0; c->repeat && p < counted.count; p++)
                in->repeats[k] += craft_met(w, node, counted.event[p]) == v;
        }
    }
    return true;
}

/* ---- forward ---- */

static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const craft *c = m->own;
    inputs in;
    if (!read_inputs(m, t, b, &in)) return (tensor){0};
    const row_key *qk = in.key_of_query;
    int n = b->from[b->events];
#define DROP(x, site, keys) op_dropout(t, x, site, keys)
#define NORM(x, pair)       op_norm(t, x, (pair).weight, (pair).bias, EPS)
#define LINEAR(x, pair)     op_linear(t, x, (pair).weight, (pair).bias)
    tensor q = DROP(NORM(op_rows(t, c->item, n, b->candidate), c->input_norm), SITE_QUERY, qk);
    tensor x =
        op_add(t, op_rows(t, c->item, in.rows, in.item), op_rows(t, c->position, in.rows, in.slot));
    x = DROP(NORM(x, c->input_norm), SITE_KEYS, in.key_of_row); /* feeds every layer unchanged */
    if (c->pad) x = op_mean(t, x, in.keys, in.from, in.divisor);
    for (int l = 0; l < c->layers; l++) {
        const craft_layer *y = &c->layer[l];
        int site = SITE_LAYER + 3 * l;
        /* training has only two queries per event, so folding into the query side is cheaper */
        tensor query = LINEAR(q, y->query);
        tensor mix = t->gradient ? op_attention_folded(t, query, x, y->key.weight, y->value.weight,
                                                       y->value.bias, c->heads, in.spans, b->events,
                                                       site, qk)
                                 : op_attention(t, query, LINEAR(x, y->key), LINEAR(x, y->value),
                                                c->heads, in.spans, b->events, site, qk);
        tensor a = op_add(t, NORM(DROP(LINEAR(mix, y->out), site + 1, qk), y->attn_norm), q);
        const int ffn1[] = {y->ffn1.weight, y->ffn1.bias}, ffn2[] = {y->ffn2.weight, y->ffn2.bias};
        tensor f = op_mlp(t, a, ffn1, ffn2, -1, NULL); /* no dropout after GELU */
        q = op_add(t, NORM(DROP(f, site + 2, qk), y->ffn_norm), a);
    }
    tensor part[3] = {q};
    part[1] =
        DROP(NORM(op_code(t, n, in.elapsed, c->elapsed.weight, c->elapsed.bias), c->elapsed_norm),
             SITE_ELAPSED, qk);
    if (c->repeat)
        part[2] = DROP(
            NORM(op_code(t, n, in.repeats, c->repeats.weight, c->repeats.bias), c->repeat_norm),
            SITE_REPEAT, qk);
    tensor z = op_concat(t, c->repeat ? 3 : 2, part);
    if (inner) *inner = (model_inner){.z = z};
    if (c->head_layers == 2) z = DROP(op_prelu(t, LINEAR(z, c->fc1), c->prelu), SITE_HEAD, qk);
    return LINEAR(z, c->fc2);
#undef DROP
#undef NORM
#undef LINEAR
}

static int head(const model *m, int *weights) {
    const craft *c = m->own;
    weights[0] = c->head_layers == 2 ? c->fc1.weight : c->fc2.weight;
    return 1;
}

#define CRAFT_OPTIONS "dim heads layers history attend empty head-layers dropout attention-dropout"

const model_kind model_craft = {
    .facts = {"craft", "CRAFT", "cross-attention of the candidate over the source's past",
              "The candidate's embedding attends to the embeddings of the source's last "
              "destinations with their positions, through `layers` blocks. The result and the "
              "time since the candidate last occurred enter a small head.",
              CRAFT_OPTIONS, .event_time = 21, .score_time = 1},
    .shuffled = true,
    .open = open_craft,
    .close = close_craft,
    .forward = forward,
    .fast = craft_fast,
    .head = head};

const model_kind model_craft_r = {
    .facts = {"craft-r", "CRAFT-R", "CRAFT that knows how often the pair has met",
              "Like craft, but the head also sees how often the candidate is among the source's "
              "last destinations.",
              CRAFT_OPTIONS, .event_time = 34, .score_time = 1.1},
    .shuffled = true,
    .open = open_craft_r,
    .close = close_craft,
    .forward = forward,
    .fast = craft_fast,
    .head = head};
