/* tgn.c - TGN: a recurrent memory per node, and attention over its most recent neighbours.
 *
 * Every row is a node at a time: the source of an event, or one of its candidates. Its state and
 * those of its last `neighbors` events' other ends go through one attention, MODELS 5.2 line by
 * line; with the identity embedding the state is all there is. States are taken from the memory
 * once each, with a pending message applied on the way (5.4, step 1): the only place where the
 * GRU learns. Parameters are in the order of MODELS 5.3, which is that of the checkpoint.
 */
#include "models/tgn.h"

#include "models/layers.h"

#include <stdlib.h>
#include <string.h>

static const double EPS = 1e-5;

enum { SITE_WEIGHTS, SITE_OUT }; /* of dropout */

/* ---- parameters ---- */

/* A dense layer without bias. */
static int add_plain(params *p, int rows, int cols, const char *name) {
    return params_add(p, rows, cols, INIT_LINEAR, 1 / sqrt((double)cols), "%s.weight", name);
}

static gru_params add_gru(params *p, int dim, int width) {
    double scale = 1 / sqrt((double)dim);
    gru_params out;
    out.input = params_add(p, 3 * dim, width, INIT_LINEAR, scale, "gru.weight_ih");
    out.hidden = params_add(p, 3 * dim, dim, INIT_LINEAR, scale, "gru.weight_hh");
    out.input_bias = params_add(p, 0, 3 * dim, INIT_LINEAR, scale, "gru.bias_ih");
    out.hidden_bias = params_add(p, 0, 3 * dim, INIT_LINEAR, scale, "gru.bias_hh");
    return out;
}

static void add_embedding(params *p, tgn *c) {
    c->query = add_plain(p, c->wide, c->wide, "attn.query");
    c->key = add_plain(p, c->wide, c->key_width, "attn.key");
    c->value = add_plain(p, c->wide, c->key_width, "attn.value");
    c->out = layer_linear(p, -1, c->wide, c->wide, "attn.out");
    c->norm = layer_norm(p, -1, c->wide, "attn.norm");
    c->fc1 = layer_linear(p, -1, c->dim, c->wide + c->dim, "merge.fc1");
    c->fc2 = layer_linear(p, -1, c->dim, c->dim, "merge.fc2");
}

static fr_status open_tgn(model *m, fr_error *err) {
    const fr_model_settings *s = &m->settings;
    int d = (int)s->dim, dt = (int)s->time_dim, heads = (int)s->heads, edges = (int)s->edge_dim;
    bool identity = s->embedding == FR_EMBEDDING_IDENTITY;
    if (!identity && (d + dt) % heads)
        return fail(err, FR_EUSAGE, "dim %d + time-dim %d is not a multiple of heads %d", d, dt,
                    heads);
    if (!identity && d + dt > 1024)
        return fail(err, FR_EUSAGE, "dim %d + time-dim %d, expected at most 1024 together", d, dt);
    tgn *c;
    TRY(ALLOCATE(c, 1, err));
    m->own = c;
    *c = (tgn){.dim = d,
               .time_dim = dt,
               .edges = edges,
               .heads = heads,
               .neighbors = (int)s->neighbors,
               .identity = identity,
               .wide = d + dt,
               .key_width = d + edges + dt,
               .message_width = 2 * d + dt + edges};
    m->keep = 2 * d;
    c->time = layer_time(&m->params, dt, s->time_trainable);
    c->gru = add_gru(&m->params, d, c->message_width);
    if (!identity) add_embedding(&m->params, c);
    c->head1 = layer_linear(&m->params, -1, d, 2 * d, "head.fc1");
    c->head2 = layer_linear(&m->params, -1, 1, d, "head.fc2");
    return tgn_memory_open(m, err);
}

static void close_tgn(model *m) {
    tgn_memory_close(m->own);
    free(m->own);
}

/* ---- inputs ---- */

/* What forward reads. Rows are the sources of all events, then all candidates; keys are their
 * neighbours, row by row. Memory: step. */
typedef struct inputs {
    int rows, keys;
    int states, updated;                 /* distinct ones; the first `updated` have a message */
    int64_t *place;                      /* [states] see tgn.h */
    int32_t *row_state;                  /* [rows] numbers of states */
    int32_t *key_state;                  /* [keys] */
    int32_t *key_event;                  /* [keys] */
    double *elapsed;                     /* [keys] t - t_j */
    span *spans;                         /* [rows] */
    row_key *row_keys;                   /* [rows] for dropout */
    row_key *weight_keys;                /* [rows] */
    int32_t *source_row, *candidate_row; /* [candidates] */
} inputs;

/* Gives each place a number, in order of first occurrence. Memory: step. */
typedef struct numbering {
    int64_t *place; /* [count] by number */
    int32_t *slot;  /* [size] number + 1; 0 = free */
    uint64_t size;  /* a power of 2, at least twice as many as there may be */
    int32_t count;
} numbering;

static bool numbering_open(tape *t, numbering *n, size_t most) {
    *n = (numbering){.size = 4};
    while (n->size < 2 * most) n->size *= 2;
    n->place = tape_take(t, most, sizeof *n->place);
    n->slot = tape_take(t, n->size, sizeof *n->slot);
    return !t->status;
}

static int32_t number_of(numbering *n, int64_t place) {
    uint64_t at = ((uint64_t)place * 0x9e3779b97f4a7c15u >> 32) & (n->size - 1);
    for (; n->slot[at]; at = (at + 1) & (n->size - 1))
        if (n->place[n->slot[at] - 1] == place) return n->slot[at] - 1;
    n->place[n->count] = place;
    n->slot[at] = ++n->count;
    return n->count - 1;
}

/* Numbers the states so that those with a pending message come first. */
static void order_states(const tgn *c, tape *t, const numbering *n, inputs *in) {
    int32_t *order = tape_take(t, (size_t)n->count, sizeof *order);
    in->place = tape_take(t, (size_t)n->count, sizeof *in->place);
    if (t->status) return;
    in->states = n->count;
    for (int pass = 0, at = 0; pass < 2; pass++) {
        for (int k = 0; k < n->count; k++) {
            bool pending = n->place[k] < c->nodes && c->pending[n->place[k]];
            if (pending != !pass) continue;
            in->place[at] = n->place[k];
            order[k] = at++;
        }
        if (!pass) in->updated = at;
    }
    for (int i = 0; i < in->rows; i++) in->row_state[i] = order[in->row_state[i]];
    for (int i = 0; i < in->keys; i++) in->key_state[i] = order[in->key_state[i]];
}

/* A row: a node at an event. */
typedef struct row {
    int32_t node, event, part;
} row;

static bool read_rows(const model *m, tape *t, const model_batch *b, inputs *in, row *rows) {
    int candidates = b->from[b->events];
    in->source_row = tape_take(t, (size_t)candidates, sizeof *in->source_row);
    in->candidate_row = tape_take(t, (size_t)candidates, sizeof *in->candidate_row);
    if (t->status) return false;
    const tgn *c = m->own;
    for (int i = 0; i < b->events; i++) {
        int32_t e = b->event[i];
        rows[i] = (row){m->w->source[e], e, 0};
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            rows[b->events + k] = (row){c->sources + b->candidate[k], e, 1 + k - b->from[i]};
            in->source_row[k] = i;
            in->candidate_row[k] = b->events + k;
        }
    }
    return true;
}

static bool read_inputs(const model *m, tape *t, const model_batch *b, inputs *in) {
    const tgn *c = m->own;
    const fr_window *w = m->w;
    *in = (inputs){.rows = b->events + b->from[b->events]};
    row *rows = tape_take(t, (size_t)in->rows, sizeof *rows);
    event_list *past = tape_take(t, (size_t)in->rows, sizeof *past);
    if (t->status || !read_rows(m, t, b, in, rows)) return false;
    for (int i = 0; i < in->rows && !c->identity; i++) {
        past[i] = tgn_neighbors(c, w, rows[i].node, window_cut(w, rows[i].event));
        in->keys += past[i].count;
    }
    in->row_state = tape_take(t, (size_t)in->rows, sizeof *in->row_state);
    in->spans = tape_take(t, (size_t)in->rows, sizeof *in->spans);
    in->row_keys = tape_take(t, (size_t)in->rows, sizeof *in->row_keys);
    in->weight_keys = tape_take(t, (size_t)in->rows, sizeof *in->weight_keys);
    in->key_state = tape_take(t, (size_t)in->keys, sizeof *in->key_state);
    in->key_event = tape_take(t, (size_t)in->keys, sizeof *in->key_event);
    in->elapsed = tape_take(t, (size_t)in->keys, sizeof *in->elapsed);
    numbering n;
    if (t->status || !numbering_open(t, &n, (size_t)in->rows + (size_t)in->keys)) return false;
    for (int i = 0, at = 0; i < in->rows; i++) {
        int32_t e = rows[i].event, cut = window_cut(w, e);
        in->row_state[i] = number_of(&n, tgn_place(c, w, rows[i].node, cut));
        in->spans[i] = (span){i, i + 1, at, at + past[i].count};
        in->row_keys[i] = (row_key){e, rows[i].part};
        /* rows of one event have neighbours of different number, whose bits would overlap: so
         * each row is an event of its own there */
        uint32_t own = (uint32_t)e + (uint32_t)rows[i].part * (uint32_t)w->events;
        in->weight_keys[i] = (row_key){(int32_t)own, 0};
        for (int p = 0; p < past[i].count; p++, at++) {
            int32_t j = past[i].event[p], other = tgn_other(c, w, rows[i].node, j);
            in->key_event[at] = j;
            in->elapsed[at] = window_time(w, e) - window_time(w, j);
            in->key_state[at] = number_of(&n, tgn_place(c, w, other, cut));
        }
    }
    order_states(c, t, &n, in);
    return !t->status;
}

/* ---- forward ---- */

/* s^ of all states, [states, dim] */
static tensor read_states(const tgn *c, tape *t, const inputs *in) {
    size_t d = (size_t)c->dim, width = (size_t)c->message_width;
    tensor s = tape_constant(t, in->states, c->dim);
    tensor x = tape_constant(t, in->updated, c->message_width);
    if (t->status) return (tensor){0};
    for (int i = 0; i < in->states; i++)
        memcpy(s.v + (size_t)i * d, tgn_state(c, in->place[i]), d * sizeof *s.v);
    for (int i = 0; i < in->updated; i++)
        memcpy(x.v + (size_t)i * width, c->message + (size_t)in->place[i] * width,
               width * sizeof *x.v);
    return op_gru(t, x, s, &c->gru);
}

static tensor read_features(const model *m, tape *t, const inputs *in) {
    const tgn *c = m->own;
    tensor f = tape_constant(t, in->keys, c->edges);
    for (int i = 0; !t->status && i < in->keys; i++)
        model_features(m, in->key_event[i], f.v + (size_t)i * (size_t)c->edges);
    return f;
}

#define LINEAR(x, pair) op_linear(t, x, (pair).weight, (pair).bias)
#define TIME(n, delta)  op_time(t, n, delta, c->time.weight, c->time.bias)

/* z of all rows from their states s and those of their neighbours */
static tensor embed(const model *m, tape *t, const inputs *in, tensor states, tensor s) {
    const tgn *c = m->own;
    double *now = tape_take(t, (size_t)in->rows, sizeof *now);
    tensor query_parts[] = {s, TIME(in->rows, now)};
    tensor q0 = op_concat(t, 2, query_parts);
    tensor key_parts[3] = {op_take(t, states, in->keys, in->key_state)};
    int parts = 1;
    if (c->edges) key_parts[parts++] = read_features(m, t, in);
    key_parts[parts++] = TIME(in->keys, in->elapsed);
    tensor k = op_concat(t, parts, key_parts), q = op_linear(t, q0, c->query, -1);
    /* training has few rows per key: their side of the products is the shorter one */
    tensor mix =
        t->gradient ? op_attention_folded(t, q, k, c->key, c->value, -1, c->heads, in->spans,
                                          in->rows, SITE_WEIGHTS, in->weight_keys)
                    : op_attention(t, q, op_linear(t, k, c->key, -1), op_linear(t, k, c->value, -1),
                                   c->heads, in->spans, in->rows, SITE_WEIGHTS, in->weight_keys);
    tensor o = op_dropout(t, LINEAR(mix, c->out), SITE_OUT, in->row_keys);
    o = op_norm(t, op_add(t, o, q0), c->norm.weight, c->norm.bias, EPS);
    tensor merged[] = {o, s};
    return LINEAR(op_relu(t, LINEAR(op_concat(t, 2, merged), c->fc1)), c->fc2);
}

/* [ s^_u ; s^_v ] of every candidate, for the memory */
static tensor keep_states(const tgn *c, tape *t, const inputs *in, int candidates, tensor s) {
    tensor out = tape_constant(t, candidates, 2 * c->dim);
    size_t d = (size_t)c->dim;
    for (int k = 0; !t->status && k < candidates; k++) {
        real *to = out.v + 2 * (size_t)k * d;
        memcpy(to, s.v + (size_t)in->source_row[k] * d, d * sizeof *to);
        memcpy(to + d, s.v + (size_t)in->candidate_row[k] * d, d * sizeof *to);
    }
    return out;
}

static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const tgn *c = m->own;
    inputs in;
    if (!read_inputs(m, t, b, &in)) return (tensor){0};
    int n = b->from[b->events];
    tensor states = read_states(c, t, &in), s = op_take(t, states, in.rows, in.row_state);
    tensor embedded = c->identity ? s : embed(m, t, &in, states, s);
    tensor pair[] = {op_take(t, embedded, n, in.source_row),
                     op_take(t, embedded, n, in.candidate_row)};
    tensor z = op_concat(t, 2, pair);
    if (inner) *inner = (model_inner){.z = z, .keep = keep_states(c, t, &in, n, s)};
    return LINEAR(op_relu(t, LINEAR(z, c->head1)), c->head2);
}

static int head(const model *m, int *weights) {
    weights[0] = ((const tgn *)m->own)->head1.weight;
    return 1;
}

const model_kind model_tgn = {
    .facts = {"tgn", "a recurrent memory per node, and attention over its recent neighbours",
              "Each event updates the memory vectors of its two nodes through a GRU. A node is "
              "embedded by attention over the memories of its `neighbors` most recent partners, "
              "with time codes and edge features, or by its memory alone (`embedding` identity); "
              "a small head scores the pair of embeddings.",
              "dim heads dropout time-dim time-trainable edge-dim embedding neighbors"},
    .open = open_tgn,
    .close = close_tgn,
    .forward = forward,
    .fast = tgn_fast,
    .head = head,
    .memory = &tgn_memory};
