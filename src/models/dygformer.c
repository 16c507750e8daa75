/* dygformer.c - DyGFormer: one transformer over patches of the source's and the candidate's past.
 *
 * Tokens of a side are the node itself and its last history - 1 events, oldest first; `patch`
 * consecutive tokens become one vector of four channels: nodes (their identities, or without them
 * just a bias), edge features, time differences, and how often the token's node occurs on either
 * side. Source patches and candidate patches attend to each other in one sequence; the means of the
 * two sides enter the head. The forward pass below is MODELS 3.2 line by line; parameters are in
 * the order of MODELS 3.3, which is that of the checkpoint.
 *
 * Counts are never found by comparing tokens: roles have separate numbers, so a token's node can
 * occur on the other side only as its self token or as a meeting of the pair (table of MODELS 3.1).
 * Nothing is padded, so no score depends on the batch.
 */
#include "models/dygformer.h"

#include "models/dygformer_fast.h"
#include "models/layers.h"
#include "models/lha.h"

#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

fr_status dygformer_declare(model *m, dygformer *f, int head_width, fr_error *err) {
    const fr_model_settings *s = &m->settings;
    params *p = &m->params;
    int d = (int)s->dim, ch = d / 4, slots = (int)s->patch;
    if (d % (int)s->heads || d % 4)
        return fail(err, FR_EUSAGE, "dim %d is not a multiple of heads %lld and of 4", d,
                    (long long)s->heads);
    *f = (dygformer){.dim = d,
                     .channel = ch,
                     .heads = (int)s->heads,
                     .layers = (int)s->layers,
                     .history = (int)s->history,
                     .patch = slots,
                     .time_dim = (int)s->time_dim,
                     .edge_dim = (int)s->edge_dim,
                     .node = -1};
    f->time = layer_time(p, f->time_dim, s->time_trainable);
    f->cooc1 = layer_linear(p, -1, ch, 1, "cooc.fc1");
    f->cooc2 = layer_linear(p, -1, ch, ch, "cooc.fc2");
    if (s->identities) {
        f->node = layer_nodes(p, m->w->nodes, d);
        f->patch_node = layer_linear(p, -1, ch, slots * d, "patch.node");
    } else {
        f->patch_node.bias = params_add(p, 0, ch, INIT_ZERO, 0, "patch.node.bias");
    }
    if (f->edge_dim)
        f->patch_edge = layer_linear(p, -1, ch, slots * f->edge_dim, "patch.edge");
    else
        f->patch_edge.bias = params_add(p, 0, ch, INIT_ZERO, 0, "patch.edge.bias");
    f->patch_time = layer_linear(p, -1, ch, slots * f->time_dim, "patch.time");
    f->patch_cooc = layer_linear(p, -1, ch, slots * ch, "patch.cooc");
    for (int l = 0; l < f->layers; l++) transformer_declare(p, l, d, &f->layer[l]);
    f->output = layer_linear(p, -1, d, d, "output");
    f->fc1 = layer_linear(p, -1, d, 2 * d, "head.fc1");
    f->fc2 = layer_linear(p, -1, 1, head_width, "head.fc2");
    return FR_OK;
}

static fr_status open_dygformer(model *m, fr_error *err) {
    dygformer *f;
    TRY(ALLOCATE(f, 1, err));
    m->own = f;
    return dygformer_declare(m, f, (int)m->settings.dim, err);
}

static void close_dygformer(model *m) { free(m->own); }

/* ---- inputs ---- */

static int patches_of(const dygformer *f, int tokens) { return (tokens + f->patch - 1) / f->patch; }

/* The kept past of a node at an event. */
static fr_history past_of(const model *m, int32_t event, int32_t node) {
    const dygformer *f = m->own;
    return window_node_history(m->w, node, window_cut(m->w, event), f->history - 1);
}

static int32_t source_of(const model *m, int32_t event) {
    return window_source_node(m->w, m->w->source[event]);
}

static bool make_room(const model *m, tape *t, const model_batch *b, dygformer_inputs *in) {
    const dygformer *f = m->own;
    *in = (dygformer_inputs){.most = 1};
    for (int i = 0; i < b->events; i++) {
        int source = past_of(m, b->event[i], source_of(m, b->event[i])).count + 1;
        in->side_tokens += source;
        in->side_patches += patches_of(f, source);
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            int32_t node = window_destination_node(m->w, b->candidate[k]);
            int own = past_of(m, b->event[i], node).count + 1;
            in->side_tokens += own;
            in->side_patches += patches_of(f, own);
            in->tokens += source + own;
            in->patches += patches_of(f, source) + patches_of(f, own);
        }
    }
    size_t sequences = (size_t)b->from[b->events];
#define ROOM(name, count) in->name = tape_take(t, (size_t)(count), sizeof *in->name)
    ROOM(delta, in->side_tokens);
    ROOM(token, in->side_tokens);
    ROOM(node, in->side_tokens);
    ROOM(side_from, in->side_patches + 1);
    ROOM(count[0], in->tokens);
    ROOM(count[1], in->tokens);
    ROOM(side_patch, in->patches);
    ROOM(from, in->patches + 1);
    ROOM(keys, in->patches);
    ROOM(spans, sequences);
    ROOM(mean_from, 2 * sequences + 1);
    ROOM(mean_divisor, 2 * sequences);
#undef ROOM
    return !t->status;
}

/* Where the next side, token and patch go. */
typedef struct places {
    int side_token, side_patch, token, patch, sequence;
} places;

/* Tokens and patches of a side; returns the number of its first patch. */
static int put_side(const model *m, dygformer_inputs *in, places *at, int32_t event, int32_t node,
                    fr_history past) {
    const dygformer *f = m->own;
    int first = at->side_patch, token = at->side_token;
    for (int j = 0; j <= past.count; j++) {
        in->token[token + j] = j ? past.event[j - 1] : -1;
        in->node[token + j] = j ? window_other(m->w, node, past.event[j - 1]) : node;
        in->delta[token + j] = j ? m->w->time[event] - m->w->time[past.event[j - 1]] : 0;
    }
    for (int j = 0; j <= past.count; j += f->patch) in->side_from[at->side_patch++] = token + j;
    at->side_token += past.count + 1;
    in->side_from[at->side_patch] = at->side_token;
    return first;
}

/* The patches of a sequence that show a side, and their mean. */
static void put_patches(const dygformer *f, dygformer_inputs *in, places *at, int tokens,
                        int side_patch, int side) {
    int count = patches_of(f, tokens), mean = 2 * at->sequence + side;
    for (int j = 0; j < count; j++) {
        in->side_patch[at->patch + j] = side_patch + j;
        in->from[at->patch + j] = at->token + j * f->patch;
    }
    at->patch += count;
    at->token += tokens;
    in->from[at->patch] = at->token;
    in->mean_divisor[mean] = (real)count;
    in->mean_from[mean + 1] = at->patch;
}

/* Adds `more` to the counts of a side's tokens: the node itself and the nodes it has met. */
static void count_side(const fr_window *w, int32_t node, fr_history past, int32_t more,
                       int32_t *count) {
    count[node] += more;
    for (int j = 0; j < past.count; j++) count[window_other(w, node, past.event[j])] += more;
}

static void put_count(dygformer_inputs *in, int token, int32_t source, int32_t candidate) {
    in->count[0][token] = source;
    in->count[1][token] = candidate;
    if (source > in->most) in->most = source;
    if (candidate > in->most) in->most = candidate;
}

/* Counts of a side whose first token is `at`: how often each node occurs in the source's side and
 * in the candidate's (MODELS 3.1). Returns the next token. */
static int put_counts(const fr_window *w, dygformer_inputs *in, int at, int32_t node,
                      fr_history past, const int32_t *source, const int32_t *candidate) {
    put_count(in, at++, source[node], candidate[node]);
    for (int j = 0; j < past.count; j++) {
        int32_t other = window_other(w, node, past.event[j]);
        put_count(in, at++, source[other], candidate[other]);
    }
    return at;
}

bool dygformer_read(const model *m, tape *t, const model_batch *b, dygformer_inputs *in) {
    const dygformer *f = m->own;
    const fr_window *w = m->w;
    if (!make_room(m, t, b, in)) return false;
    int32_t *times = tape_take(t, (size_t)w->nodes, sizeof *times);
    int32_t *by = tape_take(t, (size_t)w->nodes, sizeof *by);
    if (t->status) return false;
    /* The rows of an event need different dropout bits. Attention draws one number per row and
     * patch of the sequence, at most `longest`, so the keys of an event's sequences are this far
     * apart. */
    int longest = 2 * patches_of(f, f->history), apart = longest * ((longest + 7) / 8);
    places at = {0};
    for (int i = 0; i < b->events; i++) {
        int32_t e = b->event[i], u = source_of(m, e);
        fr_history source = past_of(m, e, u);
        int source_patch = put_side(m, in, &at, e, u, source);
        count_side(w, u, source, 1, times);
        for (int k = b->from[i]; k < b->from[i + 1]; k++, at.sequence++) {
            int32_t v = window_destination_node(w, b->candidate[k]);
            fr_history own = past_of(m, e, v);
            int own_patch = put_side(m, in, &at, e, v, own), first = at.patch;
            count_side(w, v, own, 1, by);
            int token = put_counts(w, in, at.token, u, source, times, by);
            (void)put_counts(w, in, token, v, own, times, by);
            count_side(w, v, own, -1, by);
            put_patches(f, in, &at, source.count + 1, source_patch, 0);
            put_patches(f, in, &at, own.count + 1, own_patch, 1);
            in->spans[k] = (span){first, at.patch, first, at.patch};
            for (int j = first; j < at.patch; j++)
                in->keys[j] = (row_key){e, (k - b->from[i]) * apart + j - first};
        }
        count_side(w, u, source, -1, times);
    }
    return true;
}

/* ---- forward ---- */

#define LINEAR(x, pair)       op_linear(t, x, (pair).weight, (pair).bias)
#define PATCHES(x, n, at, to) op_patches(t, x, n, at, (to).weight, (to).bias)

/* Features of the tokens' events; a side itself has none. */
static tensor features(const model *m, tape *t, const dygformer_inputs *in) {
    const dygformer *f = m->own;
    tensor y = tape_constant(t, in->side_tokens, f->edge_dim);
    for (int i = 0; !t->status && i < in->side_tokens; i++) {
        real *to = y.v + (size_t)i * (size_t)f->edge_dim;
        if (in->token[i] < 0)
            memset(to, 0, (size_t)f->edge_dim * sizeof *to);
        else
            model_features(m, in->token[i], to);
    }
    return y;
}

/* The channel of a side's patches from the rows of their slots, for the patches of all sequences.
 */
static tensor side_channel(tape *t, const dygformer_inputs *in, tensor slots, param_pair to) {
    tensor y = PATCHES(slots, in->side_patches, in->side_from, to);
    return op_take(t, y, in->patches, in->side_patch);
}

/* X of MODELS 3.2 */
static tensor embed(const model *m, tape *t, const dygformer_inputs *in) {
    const dygformer *f = m->own;
    int n = in->patches;
    int32_t *zero = tape_take(t, (size_t)n, sizeof *zero);
    real *number = tape_room(t, (size_t)in->most + 1);
    if (t->status) return (tensor){0};
    for (int c = 0; c <= in->most; c++) number[c] = (real)c;
    tensor phi = op_time(t, in->side_tokens, in->delta, f->time.weight, f->time.bias);
    tensor time = PATCHES(phi, in->side_patches, in->side_from, f->patch_time);
    /* enc is a function of an integer, so its gradient is collected in the rows of a table */
    tensor enc = op_code(t, in->most + 1, number, f->cooc1.weight, f->cooc1.bias);
    enc = LINEAR(op_relu(t, enc), f->cooc2);
    /* In separate statements: both add to the table's gradient, and compilers differ in the order
     * in which they evaluate arguments. */
    tensor there = op_take(t, enc, in->tokens, in->count[1]);
    tensor here = op_take(t, enc, in->tokens, in->count[0]);
    tensor cooc = op_add(t, here, there);
    tensor part[] = {
        {0}, {0}, op_take(t, time, n, in->side_patch), PATCHES(cooc, n, in->from, f->patch_cooc)};
    if (f->node >= 0)
        part[0] =
            side_channel(t, in, op_rows(t, f->node, in->side_tokens, in->node), f->patch_node);
    else
        part[0] = op_rows(t, f->patch_node.bias, n, zero);
    if (f->edge_dim)
        part[1] = side_channel(t, in, features(m, t, in), f->patch_edge);
    else
        part[1] = op_rows(t, f->patch_edge.bias, n, zero);
    return op_concat(t, 4, part);
}

tensor dygformer_hidden(const model *m, tape *t, const model_batch *b, tensor *z) {
    const dygformer *f = m->own;
    int n = b->from[b->events], d = f->dim;
    dygformer_inputs in;
    *z = (tensor){0};
    if (!dygformer_read(m, t, b, &in)) return (tensor){0};
    tensor x = embed(m, t, &in);
    for (int l = 0; l < f->layers; l++)
        x = transformer_block(t, &f->layer[l], f->heads, x, in.spans, n, TRANSFORMER_SITES * l,
                              in.keys);
    *z = LINEAR(op_mean(t, x, 2 * n, in.mean_from, in.mean_divisor), f->output);
    z->rows = n; /* the two sides of a sequence are neighbouring rows, so [z_u; z_v] is one row */
    z->cols = 2 * d;
    return op_relu(t, LINEAR(*z, f->fc1));
}

static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const dygformer *f = m->own;
    tensor z, hidden = dygformer_hidden(m, t, b, &z);
    if (inner) *inner = (model_inner){.z = z};
    return LINEAR(hidden, f->fc2);
}

int dygformer_head(const model *m, int *weights) {
    const dygformer *f = m->own;
    weights[0] = f->fc1.weight;
    return 1;
}

const model_kind model_dygformer = {
    .facts = {"dygformer", "DyGFormer", "transformer over patches of both nodes' pasts",
              "The last events of the source and of the candidate, `patch` at a time, become "
              "vectors of edge features, time differences and co-occurrence counts; with "
              "`identities` they also include the partners. One transformer of `layers` blocks "
              "runs over both, and the means of the two sides enter a small head.",
              DYGFORMER_OPTIONS, .event_time = 80, .score_time = 11},
    .events_at_once = 7,
    .open = open_dygformer,
    .close = close_dygformer,
    .forward = forward,
    .fast = dygformer_fast,
    .head = dygformer_head};

/* ---- with a memory of pairs (MODELS 4) ---- */

static fr_status open_lha(model *m, fr_error *err) {
    dygformer *f;
    TRY(ALLOCATE(f, 1, err));
    m->own = f;
    TRY(dygformer_declare(m, f, 2 * (int)m->settings.dim, err));
    return lha_open(m, dygformer_hidden, f->dim, f->fc2, err);
}

static void close_lha(model *m) {
    lha_close(m);
    free(m->own);
}

const model_kind model_dygformer_lha = {
    .facts = {"dygformer-lha", "DyGFormer+LHA", "DyGFormer with a memory of each pair",
              "Like dygformer, but the head also sees a memory of the pair: an average of its "
              "states at the pair's past events, where the newest has weight `gamma`.",
              DYGFORMER_OPTIONS " " LHA_OPTIONS, .event_time = 87, .score_time = 11},
    .events_at_once = 7,
    .open = open_lha,
    .close = close_lha,
    .forward = lha_forward,
    .fast = dygformer_fast,
    .head = dygformer_head,
    .memory = &lha_memory};
