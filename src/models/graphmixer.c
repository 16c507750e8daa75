/* graphmixer.c - GraphMixer: an MLP-mixer over each node's recent events, and a learned identity
 * per node; source and destination meet only in the scorer.
 *
 * A node's slots are its last `tokens` events, the newest first, with their age and their features.
 * Only real slots exist: the rows of all nodes follow each other, and token mixing uses the
 * matching corner of its weights, which is equivalent to masking (MODELS 6.1). With `padded` the
 * other slots are rows of zeros, and all weights are used. The forward pass below is MODELS 6.1
 * line by line; parameters are in the order of MODELS 6.2, which is that of the checkpoint.
 */
#include "models/graphmixer.h"

#include "models/layers.h"
#include "nn/ops.h"

#include <stdlib.h>

enum { LAYER_SITES = 4 }; /* places in a layer where dropout acts; each has its own random bits */

static fr_status open_kind(model *m, fr_error *err) {
    const fr_model_settings *s = &m->settings;
    params *p = &m->params;
    graphmixer *g;
    TRY(ALLOCATE(g, 1, err));
    m->own = g;
    *g = (graphmixer){.dim = (int)s->dim,
                      .layers = (int)s->layers,
                      .tokens = (int)s->tokens,
                      .time_dim = (int)s->time_dim,
                      .edge_dim = (int)s->edge_dim,
                      .head_width = (int)s->head_width,
                      .hidden = (int)s->tokens / 2,
                      .pool_slots = s->pool == FR_POOL_SLOTS,
                      .padded = s->padded,
                      .newest_last = s->newest == FR_NEWEST_LAST};
    int d = g->dim;
    g->time = layer_time(p, g->time_dim, false);
    g->proj = layer_linear(p, -1, d, g->edge_dim + g->time_dim, "proj");
    for (int l = 0; l < g->layers; l++) {
        graphmixer_layer *y = &g->layer[l];
        y->token_norm = layer_norm(p, l, d, "token_norm");
        y->token_fc1 = layer_linear(p, l, g->hidden, g->tokens, "token_fc1");
        y->token_fc2 = layer_linear(p, l, g->tokens, g->hidden, "token_fc2");
        y->channel_norm = layer_norm(p, l, d, "channel_norm");
        y->channel_fc1 = layer_linear(p, l, 4 * d, d, "channel_fc1");
        y->channel_fc2 = layer_linear(p, l, d, 4 * d, "channel_fc2");
    }
    g->norm = layer_norm(p, -1, d, "norm");
    g->output = layer_linear(p, -1, d, d, "output");
    if (m->w->source_node) { /* a node has one identity; destinations come first */
        g->src = g->dst = layer_nodes(p, m->w->nodes, d);
    } else {
        g->src = params_add(p, m->w->sources, d, INIT_NORMAL, 0.02, "src.weight");
        g->dst = params_add(p, m->w->destinations, d, INIT_NORMAL, 0.02, "dst.weight");
    }
    g->head_src = layer_linear(p, -1, g->head_width, 2 * d, "head.src");
    g->head_dst = layer_linear(p, -1, g->head_width, 2 * d, "head.dst");
    g->head_out = layer_linear(p, -1, 1, g->head_width, "head.out");
    return FR_OK;
}

static void close_kind(model *m) { free(m->own); }

/* ---- inputs ---- */

/* What forward reads of the window. Nodes are the sources of all events, then all candidates; an
 * event's source serves all its candidates. Memory: step. */
typedef struct inputs {
    int nodes;
    int32_t *source;             /* [events] nodes */
    int32_t *event_of;           /* [candidates] place of its event in the batch */
    int32_t *node;               /* [nodes] 0, 1, ... */
    int32_t *from, *hidden_from; /* [nodes + 1] rows of slots, and of hidden slots */
    real *divisor;               /* [nodes] */
    int real_slots;              /* those with an event */
    double *delta;               /* [real slots] seconds since the slot's event */
    real *feature;               /* [real slots, edge_dim] */
    int32_t *real_slot;          /* [slots] the real one, -1 = none */
    row_key *key, *hidden_key;   /* [slots], [hidden slots] */
} inputs;

/* Slots of one node at event e, after those of earlier nodes, which have been read. `part` numbers
 * the nodes of an event. */
static void read_node(const model *m, inputs *in, int node, int32_t e, int part, fr_history past) {
    const graphmixer *g = m->own;
    const fr_window *w = m->w;
    int first = in->from[node], rows = in->from[node + 1] - first, hidden = in->hidden_from[node];
    for (int j = 0; j < rows; j++) {
        in->key[first + j] = (row_key){e, part * g->tokens + j};
        in->real_slot[first + j] = -1;
    }
    /* real slots in the order of their rows */
    for (int j = 0, back = !g->newest_last; j < past.count; j++, in->real_slots++) {
        int k = back ? past.count - 1 - j : j;
        in->real_slot[first + graphmixer_row(g, past.count, k)] = in->real_slots;
        in->delta[in->real_slots] = w->time[e] - w->time[past.event[k]];
        model_features(m, past.event[k],
                       in->feature + (size_t)in->real_slots * (size_t)g->edge_dim);
    }
    for (int k = 0; rows && k < g->hidden; k++)
        in->hidden_key[hidden++] = (row_key){e, part * g->hidden + k};
}

static bool read_inputs(const model *m, tape *t, const model_batch *b, inputs *in) {
    const graphmixer *g = m->own;
    const fr_window *w = m->w;
    int candidates = b->from[b->events], nodes = b->events + candidates;
    *in = (inputs){.nodes = nodes};
    in->source = tape_take(t, (size_t)b->events, sizeof *in->source);
    in->event_of = tape_take(t, (size_t)candidates, sizeof *in->event_of);
    in->node = tape_take(t, (size_t)nodes, sizeof *in->node);
    in->from = tape_take(t, (size_t)nodes + 1, sizeof *in->from);
    in->hidden_from = tape_take(t, (size_t)nodes + 1, sizeof *in->hidden_from);
    in->divisor = tape_take(t, (size_t)nodes, sizeof *in->divisor);
    fr_history *past = tape_take(t, (size_t)nodes, sizeof *past);
    if (t->status) return false;
    for (int i = 0; i < b->events; i++) {
        int32_t e = b->event[i], cut = window_cut(w, e);
        in->source[i] = window_source_node(w, w->source[e]);
        past[i] = window_node_history(w, in->source[i], cut, g->tokens);
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            in->event_of[k] = i;
            int32_t node = window_destination_node(w, b->candidate[k]);
            past[b->events + k] = window_node_history(w, node, cut, g->tokens);
        }
    }
    for (int n = 0; n < nodes; n++) {
        in->node[n] = n;
        int rows = graphmixer_rows(g, past[n].count);
        in->from[n + 1] = in->from[n] + rows;
        in->hidden_from[n + 1] = in->hidden_from[n] + (rows ? g->hidden : 0);
        in->divisor[n] = graphmixer_divisor(g, past[n].count);
    }
    size_t slots = (size_t)in->from[nodes];
    in->delta = tape_take(t, slots, sizeof *in->delta);
    in->feature = tape_take(t, slots * (size_t)g->edge_dim, sizeof *in->feature);
    in->real_slot = tape_take(t, slots, sizeof *in->real_slot);
    in->key = tape_take(t, slots, sizeof *in->key);
    in->hidden_key = tape_take(t, (size_t)in->hidden_from[nodes], sizeof *in->hidden_key);
    if (t->status) return false;
    for (int i = 0; i < b->events; i++) read_node(m, in, i, b->event[i], 0, past[i]);
    for (int i = 0; i < b->events; i++)
        for (int k = b->from[i]; k < b->from[i + 1]; k++)
            read_node(m, in, b->events + k, b->event[i], 1 + k - b->from[i], past[b->events + k]);
    return true;
}

/* ---- forward ---- */

#define DROP(x, site, keys) op_dropout(t, x, site, keys)
#define NORM(x, pair)       op_norm(t, x, (pair).weight, (pair).bias, GRAPHMIXER_EPS)
#define LINEAR(x, pair)     op_linear(t, x, (pair).weight, (pair).bias)

/* h of all nodes [nodes, dim] */
static tensor encode(const graphmixer *g, tape *t, const inputs *in) {
    int n = in->nodes, slots = in->real_slots;
    const int32_t *from = in->from, *hidden = in->hidden_from;
    tensor code = op_time(t, slots, in->delta, g->time.weight, g->time.bias);
    tensor parts[] = {op_input(t, slots, g->edge_dim, in->feature), code};
    tensor x = LINEAR(g->edge_dim ? op_concat(t, 2, parts) : code, g->proj);
    if (g->padded) x = op_take(t, x, in->from[n], in->real_slot);
    for (int l = 0; l < g->layers; l++) {
        const graphmixer_layer *y = &g->layer[l];
        int site = LAYER_SITES * l;
        tensor u = op_slots(t, NORM(x, y->token_norm), y->token_fc1.weight, y->token_fc1.bias, n,
                            from, hidden);
        u = DROP(op_gelu(t, u), site, in->hidden_key);
        tensor mixed = op_slots(t, u, y->token_fc2.weight, y->token_fc2.bias, n, hidden, from);
        x = op_residual(t, x, mixed, site + 1, in->key);
        const int fc1[] = {y->channel_fc1.weight, y->channel_fc1.bias},
                  fc2[] = {y->channel_fc2.weight, y->channel_fc2.bias};
        tensor f = op_mlp(t, NORM(x, y->channel_norm), fc1, fc2, site + 2, in->key);
        x = op_residual(t, x, f, site + 3, in->key);
    }
    return LINEAR(op_mean(t, NORM(x, g->norm), n, from, in->divisor), g->output);
}

static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const graphmixer *g = m->own;
    inputs in;
    if (!read_inputs(m, t, b, &in)) return (tensor){0};
    int candidates = b->from[b->events];
    tensor h = encode(g, t, &in);
    tensor source[] = {op_take(t, h, b->events, in.node), op_rows(t, g->src, b->events, in.source)};
    tensor destination[] = {op_take(t, h, candidates, in.node + b->events),
                            op_rows(t, g->dst, candidates, b->candidate)};
    tensor u = op_concat(t, 2, source), v = op_concat(t, 2, destination);
    tensor both[] = {u, v};
    if (inner) {
        both[0] = op_take(t, u, candidates, in.event_of);
        *inner = (model_inner){.z = op_concat(t, 2, both)};
    }
    tensor from_u = op_take(t, LINEAR(u, g->head_src), candidates, in.event_of);
    return LINEAR(op_relu(t, op_add(t, from_u, LINEAR(v, g->head_dst))), g->head_out);
}

static int head(const model *m, int *weights) {
    const graphmixer *g = m->own;
    weights[0] = g->head_src.weight;
    weights[1] = g->head_dst.weight;
    return 2;
}

const model_kind model_graphmixer = {
    .facts = {"graphmixer", "GraphMixer",
              "an MLP-mixer over the recent events of each node, and identities",
              "For each node, the times since its last `tokens` events and their features are "
              "mixed across events and across channels through `layers` blocks and averaged. The "
              "results of both nodes and their learned identities enter a small head.",
              "dim layers dropout time-dim edge-dim tokens padded newest head-width pool",
              .event_time = 150, .score_time = 16},
    .events_at_once = 3,
    .open = open_kind,
    .close = close_kind,
    .forward = forward,
    .fast = graphmixer_fast,
    .head = head};
