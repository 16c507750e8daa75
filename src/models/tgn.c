/* tgn.c - TGN: a recurrent memory per node, and attention over its most recent neighbours.
 *
 * Every row is a node at a time: the source of an event, or one of its candidates. Its state and
 * those of its last `neighbors` events' other ends go through one attention, MODELS 5.2 line by
 * line; with the identity embedding only the state is used. Each state is read from the memory
 * once, with its pending message applied (5.4, step 1); only here the GRU learns. Everything that
 * depends only on a node's state is computed once for all its readers (make_part), in training for
 * a whole step; the rest runs by shards. Parameters are in the order of MODELS 5.3, which is that
 * of the checkpoint.
 */
#include "models/tgn.h"

#include "base/simd.h"
#include "models/layers.h"
#include "models/tgn_reads.h"

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
               .node = -1,
               .wide = d + dt,
               .key_width = d + edges + dt,
               .message_width = 2 * d + dt + edges,
               .mlp = s->message == FR_MESSAGE_MLP,
               .file_clock = s->clock == FR_CLOCK_FILE};
    m->keep = 2 * d;
    if (identity) m->shard_events = 50; /* little work, but as many gradients to add */
    c->time = layer_time(&m->params, dt, s->time_trainable);
    if (s->identities) c->node = layer_nodes(&m->params, m->w->nodes, d);
    if (c->mlp) {
        int half = c->message_width / 2;
        c->message1 = layer_linear(&m->params, -1, half, c->message_width, "message.fc1");
        c->message2 = layer_linear(&m->params, -1, d, half, "message.fc2");
    }
    c->gru = add_gru(&m->params, d, c->mlp ? d : c->message_width);
    if (!identity) add_embedding(&m->params, c);
    c->head1 = layer_linear(&m->params, -1, d, 2 * d, "head.fc1");
    c->head2 = layer_linear(&m->params, -1, 1, d, "head.fc2");
    return tgn_memory_open(m, err);
}

static void close_tgn(model *m) {
    tgn_memory_close(m->own);
    free(m->own);
}

/* ---- states ---- */

#define LINEAR(x, pair) op_linear(t, x, (pair).weight, (pair).bias)
#define TIME(n, delta)  op_time(t, n, delta, c->time.weight, c->time.bias)

/* [ s ; phi(0) ] of rows */
static tensor now_beside(const tgn *c, tape *t, tensor s) {
    double *now = tape_take(t, 1, sizeof *now);
    int32_t *same = tape_take(t, (size_t)s.rows, sizeof *same);
    if (t->status) return (tensor){0};
    tensor parts[] = {s, op_take(t, TIME(1, now), s.rows, same)};
    return op_concat(t, 2, parts);
}

tensor tgn_update(const model *m, tape *t, tensor x, int rows) {
    const tgn *c = m->own;
    if (!c->mlp) return op_gru(t, x, rows, &c->gru);
    tensor s = tape_constant(t, x.rows, c->dim);
    for (int i = 0; !t->status && i < x.rows; i++)
        memcpy(s.v + (size_t)i * (size_t)c->dim, x.v + (size_t)i * (size_t)x.cols,
               (size_t)c->dim * sizeof *s.v);
    tensor message = LINEAR(op_relu(t, LINEAR(x, c->message1)), c->message2);
    tensor input = op_linear(t, message, c->gru.input, c->gru.input_bias);
    return op_gates(t, input, op_linear(t, s, c->gru.hidden, c->gru.hidden_bias), s, rows);
}

/* s + e of the nodes that states belong to; without identities s. */
static tensor with_identities(const model *m, tape *t, tensor s, const int64_t *place) {
    const tgn *c = m->own;
    if (c->node < 0) return s;
    int32_t *node = tape_take(t, (size_t)s.rows, sizeof *node);
    for (int i = 0; !t->status && i < s.rows; i++) node[i] = tgn_node(c, m->w, place[i]);
    return op_add(t, s, op_rows(t, c->node, s.rows, node));
}

void tgn_show(const model *m, int64_t place, real *to) {
    const tgn *c = m->own;
    memcpy(to, tgn_state(c, place), (size_t)c->dim * sizeof *to);
    if (c->node < 0) return;
    const real *e = model_value(m, c->node) + (size_t)tgn_node(c, m->w, place) * (size_t)c->dim;
    for (int k = 0; k < c->dim; k++) to[k] += e[k];
}

/* s^ of a part's states, and the queries of those that have one. In training they are folded with
 * the keys' weights (op_fold), because there are few rows per key. */
static void make_part(const model *m, tape *t, void *shared, int number) {
    const tgn *c = m->own;
    tgn_part *part = &((tgn_reads *)shared)->part[number];
    size_t d = (size_t)c->dim, width = (size_t)c->message_width;
    tensor x = tape_constant(t, part->updated, c->message_width);
    for (int i = 0; !t->status && i < part->updated; i++)
        memcpy(x.v + (size_t)i * width, c->message + (size_t)part->place[i] * width,
               width * sizeof *x.v);
    part->s = tgn_update(m, t, x, part->states);
    for (int i = part->updated; !t->status && i < part->states; i++)
        memcpy(part->s.v + (size_t)i * d, tgn_state(c, part->place[i]), d * sizeof *x.v);
    if (c->identity || t->status) return;
    tensor shown = with_identities(m, t, part->s, part->place);
    tensor q0 = now_beside(c, t, op_take(t, shown, part->queries, part->query));
    tensor q = op_linear(t, q0, c->query, -1);
    part->query_made = t->gradient ? op_fold(t, q, c->key, c->heads) : q;
}

/* ---- forward of a shard ---- */

static tensor read_features(const model *m, tape *t, const tgn_inputs *in) {
    const tgn *c = m->own;
    tensor f = tape_constant(t, in->keys, c->edges);
    for (int i = 0; !t->status && i < in->keys; i++)
        model_features(m, in->key_event[i], f.v + (size_t)i * (size_t)c->edges);
    return f;
}

/* sum over neighbours, [rows, wide] */
static tensor attend(const model *m, tape *t, const tgn_inputs *in) {
    const tgn *c = m->own;
    tensor more = TIME(in->keys, in->elapsed);
    if (c->edges) {
        tensor parts[] = {read_features(m, t, in), more};
        more = op_concat(t, 2, parts);
    }
    if (t->gradient) {
        key_rows over = {in->keys, in->s, more, in->key_state};
        return op_attention_over(t, in->query, in->row_state, &over, c->value, -1, c->heads,
                                 in->spans, in->rows, SITE_WEIGHTS, in->weight_keys);
    }
    tensor q = op_take(t, in->query, in->rows, in->row_state);
    tensor parts[] = {op_take(t, in->s, in->keys, in->key_state), more};
    tensor k = op_concat(t, 2, parts);
    return op_attention(t, q, op_linear(t, k, c->key, -1), op_linear(t, k, c->value, -1), c->heads,
                        in->spans, in->rows, SITE_WEIGHTS, in->weight_keys);
}

/* Rows from .. to - 1 of a tensor. */
static tensor some_rows(tensor x, int from, int to) {
    size_t skip = (size_t)from * (size_t)x.cols;
    return (tensor){to - from, x.cols, x.v + skip, x.g ? x.g + skip : NULL};
}

/* z of all rows; s are their states */
static tensor embed(const model *m, tape *t, const tgn_inputs *in, tensor s) {
    const tgn *c = m->own;
    tensor mix = LINEAR(attend(m, t, in), c->out);
    tensor o = op_residual(t, now_beside(c, t, s), mix, SITE_OUT, in->row_keys);
    o = op_norm(t, o, c->norm.weight, c->norm.bias, EPS);
    tensor h = op_linear_beside(t, o, some_rows(in->s, 0, in->queries), in->row_state, false,
                                c->fc1.weight, c->fc1.bias);
    return LINEAR(op_relu(t, h), c->fc2);
}

/* [ s^_u ; s^_v ] of every candidate, for the memory */
static tensor keep_states(const tgn *c, tape *t, const tgn_inputs *in) {
    tensor out = tape_constant(t, in->candidates, 2 * c->dim);
    size_t d = (size_t)c->dim;
    for (int k = 0; !t->status && k < in->candidates; k++) {
        real *to = out.v + 2 * (size_t)k * d;
        size_t source = (size_t)in->row_state[in->source_row[k]];
        size_t candidate = (size_t)in->row_state[in->candidate_row[k]];
        memcpy(to, in->s.v + source * d, d * sizeof *to);
        memcpy(to + d, in->s.v + candidate * d, d * sizeof *to);
    }
    return out;
}

static tensor score(const model *m, tape *t, tgn_inputs *in, model_inner *inner) {
    const tgn *c = m->own;
    if (inner) inner->keep = keep_states(c, t, in);
    in->s = with_identities(m, t, in->s, in->place);
    tensor s = op_take(t, in->s, in->rows, in->row_state);
    tensor embedded = c->identity ? s : embed(m, t, in, s);
    if (inner && !t->gradient) {
        tensor pair[] = {op_take(t, embedded, in->candidates, in->source_row),
                         op_take(t, embedded, in->candidates, in->candidate_row)};
        inner->z = op_concat(t, 2, pair);
    }
    int events = in->rows - in->candidates;
    tensor h =
        op_linear_beside(t, some_rows(embedded, events, in->rows), some_rows(embedded, 0, events),
                         in->source_row, true, c->head1.weight, c->head1.bias);
    return LINEAR(op_relu(t, h), c->head2);
}

/* Events by themselves: one shard, one part, on one tape. */
static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    tgn_reads *r = tgn_read(m, t, b, b->events, 1);
    if (!r) return (tensor){0};
    make_part(m, t, r, 0);
    tgn_inputs *in = r->shard;
    int32_t *state = tape_take(t, (size_t)in->states, sizeof *state);
    int32_t *query = tape_take(t, (size_t)in->queries, sizeof *query);
    if (t->status) return (tensor){0};
    for (int k = 0; k < in->states; k++) state[k] = r->home[in->number[k]].state;
    for (int k = 0; k < in->queries; k++) query[k] = r->home[in->number[k]].query;
    in->s = op_take(t, r->part->s, in->states, state);
    if (r->part->query_made.v) in->query = op_take(t, r->part->query_made, in->queries, query);
    return score(m, t, in, inner);
}

/* ---- a training step ---- */

/* Room for what a shard reads, and for its gradient, which is needed after the shard's tape is
 * gone. */
static void take_leaves(tape *t, tgn_inputs *in, int dim, int query_width) {
    in->s = (tensor){in->states, dim, NULL, tape_room(t, (size_t)in->states * (size_t)dim)};
    size_t size = (size_t)in->queries * (size_t)query_width;
    in->query = (tensor){in->queries, query_width, NULL, tape_room(t, size)};
}

static void *collect(const model *m, tape *t, const model_batch *b, int events, int parts) {
    const tgn *c = m->own;
    tgn_reads *r = tgn_read(m, t, b, events, parts);
    for (int s = 0; r && s < r->shards; s++)
        take_leaves(t, &r->shard[s], c->dim, c->identity ? 0 : c->heads * c->key_width);
    return t->status ? NULL : r;
}

static tensor shard_forward(const model *m, tape *t, void *shared, int shard, model_inner *inner) {
    const tgn_reads *r = shared;
    tgn_inputs in = r->shard[shard];
    size_t d = (size_t)in.s.cols, wide = (size_t)in.query.cols;
    in.s.v = tape_room(t, (size_t)in.states * d);
    in.query.v = tape_room(t, (size_t)in.queries * wide);
    if (t->status) return (tensor){0};
    memset(in.s.g, 0, (size_t)in.states * d * sizeof *in.s.g);
    memset(in.query.g, 0, (size_t)in.queries * wide * sizeof *in.query.g);
    for (int k = 0; k < in.states; k++) {
        tgn_home at = r->home[in.number[k]];
        memcpy(in.s.v + (size_t)k * d, r->part[at.part].s.v + (size_t)at.state * d,
               d * sizeof *in.s.v);
        if (k >= in.queries || !wide) continue;
        memcpy(in.query.v + (size_t)k * wide,
               r->part[at.part].query_made.v + (size_t)at.query * wide, wide * sizeof *in.query.v);
    }
    return score(m, t, &in, inner);
}

static inline void add_row(tensor to, int32_t row, const real *from) {
    real *restrict sum = to.g + (size_t)row * (size_t)to.cols;
    for (int k = 0; k < to.cols; k++) sum[k] += from[k];
}

/* Adds the gradient of a shard for the states of a part. */
SIMD_LOOPS static void add_shard(const tgn_reads *r, const tgn_inputs *in, int part) {
    const tgn_part *to = &r->part[part];
    for (int k = 0; k < in->states; k++) {
        tgn_home at = r->home[in->number[k]];
        if (at.part != part) continue;
        add_row(to->s, at.state, in->s.g + (size_t)k * (size_t)in->s.cols);
        if (k < in->queries && in->query.cols)
            add_row(to->query_made, at.query, in->query.g + (size_t)k * (size_t)in->query.cols);
    }
}

/* The gradient of a part: row by row the sum over shards, in their order. */
static void gather(const model *m, void *shared, int part) {
    (void)m;
    const tgn_reads *r = shared;
    for (int s = 0; s < r->shards; s++) add_shard(r, &r->shard[s], part);
}

static const model_sharing sharing = {collect, make_part, shard_forward, gather};

static int head(const model *m, int *weights) {
    weights[0] = ((const tgn *)m->own)->head1.weight;
    return 1;
}

const model_kind model_tgn = {
    .facts =
        {"tgn", "TGN", "a recurrent memory per node, and attention over its recent neighbours",
         "Each event updates the memory vectors of its two nodes through a GRU. A node is "
         "embedded by attention over the memories of its `neighbors` most recent partners, "
         "with time codes and edge features, or by its memory alone (`embedding` identity). "
         "With `identities` a learned vector is added to each memory that is read. A small "
         "head scores the pair of embeddings.",
         "dim heads dropout time-dim time-trainable edge-dim embedding neighbors message clock "
         "identities",
         .event_time = 15, .score_time = 0.2},
    .open = open_tgn,
    .close = close_tgn,
    .forward = forward,
    .sharing = &sharing,
    .fast = tgn_fast,
    .head = head,
    .memory = &tgn_memory};
