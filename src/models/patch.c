/* patch.c - the patch transformer: a transformer over patches of the source's past alone, whose
 * result each candidate asks by attention.
 *
 * This is what the authors of the paper ran under the name DyGFormer. Unlike DyGFormer it does not
 * read the candidate's past and counts no common neighbours; it knows every node by a learned
 * identity instead. The forward below is MODELS 13.2 line by line; parameters are in the order of
 * MODELS 13.3, which is that of the checkpoint.
 *
 * A past that is no whole number of patches is filled up at its beginning, with tokens that have no
 * identity; a source without a past has one patch of zeros.
 */
#include "models/patch.h"

#include "models/lha.h"
#include "nn/vmath.h"

#include <stdlib.h>
#include <string.h>

/* Places where dropout acts besides the blocks, which have the first ones. */
enum { SITE_ATTEND = 30, SITE_HEAD, PATCH_MOST_LAYERS = 7 };

/* ---- parameters ---- */

static fr_status declare(model *m, bool remembers, fr_error *err) {
    const fr_model_settings *s = &m->settings;
    params *p = &m->params;
    int d = (int)s->dim;
    if (d % (int)s->heads)
        return fail(err, FR_EUSAGE, "dim %d is not a multiple of heads %lld", d,
                    (long long)s->heads);
    if (s->time_dim % 2)
        return fail(err, FR_EUSAGE, "time-dim %lld, expected an even number",
                    (long long)s->time_dim);
    if (s->layers > PATCH_MOST_LAYERS)
        return fail(err, FR_EUSAGE, "layers %lld, expected at most %d", (long long)s->layers,
                    PATCH_MOST_LAYERS);
    patch *f;
    TRY(ALLOCATE(f, 1, err));
    m->own = f;
    *f = (patch){.dim = d,
                 .heads = (int)s->heads,
                 .layers = (int)s->layers,
                 .history = (int)s->history,
                 .slots = (int)s->patch,
                 .time_dim = (int)s->time_dim,
                 .remembers = remembers};
    for (int k = 0, half = f->time_dim / 2; k < half; k++)
        f->pace[k] = exp(half > 1 ? 6.0 * k / (half - 1) : 0);
    if (m->w->source_node) { /* a node has one identity; destinations come first */
        f->source = f->item = params_add(p, m->w->nodes, d, INIT_NORMAL, 1, "node.weight");
    } else {
        f->source = params_add(p, m->w->sources, d, INIT_NORMAL, 1, "src.weight");
        f->item = params_add(p, m->w->destinations, d, INIT_NORMAL, 1, "dst.weight");
    }
    f->token = layer_linear(p, -1, d, d + f->time_dim, "token");
    f->token_norm = layer_norm(p, -1, d, "token_norm");
    f->join = layer_linear(p, -1, d, f->slots * d, "patch");
    f->join_norm = layer_norm(p, -1, d, "patch_norm");
    for (int l = 0; l < f->layers; l++) transformer_declare(p, l, d, &f->layer[l]);
    f->query = layer_linear(p, -1, d, 2 * d + f->time_dim, "query");
    f->query_norm = layer_norm(p, -1, d, "query_norm");
    f->ask = layer_linear(p, -1, d, d, "attn.query");
    f->key = layer_linear(p, -1, d, d, "attn.key");
    f->value = layer_linear(p, -1, d, d, "attn.value");
    f->state_norm = layer_norm(p, -1, d, "state_norm");
    f->fc1 = layer_linear(p, -1, d, (remembers ? 2 : 4) * d, "head.fc1");
    f->fc2 = layer_linear(p, -1, 1, (remembers ? 2 : 1) * d, "head.fc2");
    return FR_OK;
}

static fr_status open_patch(model *m, fr_error *err) { return declare(m, false, err); }

static void close_patch(model *m) {
    lha_close(m);
    free(m->own);
}

void patch_time(const patch *f, double seconds, real *to) {
    double angle[PATCH_MOST_TIME / 2], x = log1p(seconds > 0 ? seconds : 0);
    int half = f->time_dim / 2;
    for (int k = 0; k < half; k++) angle[k] = x / f->pace[k];
    vmath_sin(half, angle, to);
    vmath_cos(half, angle, to + half);
}

/* ---- the source's side ---- */

/* What forward reads of the window: tokens of all events, whole patches. Memory: step. */
typedef struct inputs {
    int tokens, patches; /* that are there */
    int rows;            /* patches, and one for each event without any */
    int32_t *item;       /* [tokens] -1 = none */
    double *elapsed;     /* [tokens] */
    int32_t *from;       /* [patches + 1] first token */
    int32_t *patch;      /* [rows] -1 = zeros */
    int32_t *first;      /* [events + 1] first row */
    row_key *keys;       /* [rows] */
    span *spans;         /* [events] */
} inputs;

static fr_history past_of(const model *m, int32_t event) {
    const patch *f = m->own;
    int32_t node = window_source_node(m->w, m->w->source[event]);
    return window_node_history(m->w, node, window_cut(m->w, event), f->history);
}

static bool make_room(const model *m, tape *t, int events, const int32_t *event, inputs *in) {
    const patch *f = m->own;
    *in = (inputs){0};
    for (int i = 0; i < events; i++) {
        int patches = (past_of(m, event[i]).count + f->slots - 1) / f->slots;
        in->patches += patches;
        in->rows += patches ? patches : 1;
    }
    in->tokens = in->patches * f->slots;
#define ROOM(name, count) in->name = tape_take(t, (size_t)(count), sizeof *in->name)
    ROOM(item, in->tokens);
    ROOM(elapsed, in->tokens);
    ROOM(from, in->patches + 1);
    ROOM(patch, in->rows);
    ROOM(first, events + 1);
    ROOM(keys, in->rows);
    ROOM(spans, events);
#undef ROOM
    return !t->status;
}

static bool read_inputs(const model *m, tape *t, int events, const int32_t *event, inputs *in) {
    const patch *f = m->own;
    const fr_window *w = m->w;
    if (!make_room(m, t, events, event, in)) return false;
    for (int i = 0, token = 0, patches = 0; i < events; i++) {
        fr_history past = past_of(m, event[i]);
        int32_t node = window_source_node(w, w->source[event[i]]);
        int count = (past.count + f->slots - 1) / f->slots, rows = count ? count : 1;
        int missing = count * f->slots - past.count;
        for (int j = 0; j < count * f->slots; j++, token++) {
            int32_t e = j < missing ? -1 : past.event[j - missing];
            in->item[token] = e < 0 ? -1 : window_other(w, node, e) - w->first_destination;
            in->elapsed[token] = e < 0 ? 0 : w->time[event[i]] - w->time[e];
        }
        in->first[i + 1] = in->first[i] + rows;
        in->spans[i] = (span){in->first[i], in->first[i + 1], in->first[i], in->first[i + 1]};
        for (int j = 0; j < rows; j++) {
            in->keys[in->first[i] + j] = (row_key){event[i], j};
            in->patch[in->first[i] + j] = count ? patches + j : -1;
        }
        patches += count;
    }
    for (int k = 0; k <= in->patches; k++) in->from[k] = k * f->slots;
    return true;
}

#define NORM(x, pair)   op_norm(t, x, (pair).weight, (pair).bias, TRANSFORMER_EPS)
#define LINEAR(x, pair) op_linear(t, x, (pair).weight, (pair).bias)

/* A constant row per time. */
static tensor codes(const patch *f, tape *t, int rows, const double *seconds) {
    tensor y = tape_constant(t, rows, f->time_dim);
    for (int i = 0; !t->status && i < rows; i++)
        patch_time(f, seconds[i], y.v + (size_t)i * (size_t)f->time_dim);
    return y;
}

/* The patches of a batch's sources (MODELS 13.2), rows of all events one after the other. */
typedef struct sources {
    tensor memory; /* [patches, dim] */
    int32_t *from; /* [events + 1] first patch of an event; each has at least one */
} sources;

static sources read_sources(const model *m, tape *t, int events, const int32_t *event) {
    const patch *f = m->own;
    inputs in;
    if (!read_inputs(m, t, events, event, &in)) return (sources){0};
    tensor entry[] = {op_rows(t, f->item, in.tokens, in.item), codes(f, t, in.tokens, in.elapsed)};
    tensor x = op_gelu(t, NORM(LINEAR(op_concat(t, 2, entry), f->token), f->token_norm));
    x = op_patches(t, x, in.patches, in.from, f->join.weight, f->join.bias);
    x = op_take(t, op_gelu(t, NORM(x, f->join_norm)), in.rows, in.patch);
    for (int l = 0; l < f->layers; l++)
        x = transformer_block(t, &f->layer[l], f->heads, x, in.spans, events, TRANSFORMER_SITES * l,
                              in.keys);
    return (sources){x, in.first};
}

/* ---- candidates ---- */

/* What the head sees: state s, identity e(v), query q and what attention found, c. */
typedef struct found {
    tensor s, item, q, c;
    row_key *keys; /* [candidates] */
} found;

static found ask(const model *m, tape *t, const model_batch *b) {
    const patch *f = m->own;
    const fr_window *w = m->w;
    int n = b->from[b->events];
    found out = {0};
    sources read = read_sources(m, t, b->events, b->event);
    int32_t *source = tape_take(t, (size_t)n, sizeof *source);
    double *time = tape_take(t, (size_t)n, sizeof *time);
    span *spans = tape_take(t, (size_t)b->events, sizeof *spans);
    out.keys = tape_take(t, (size_t)n, sizeof *out.keys);
    if (t->status) return out;
    for (int i = 0; i < b->events; i++) {
        spans[i] = (span){b->from[i], b->from[i + 1], read.from[i], read.from[i + 1]};
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            source[k] = window_source_node(w, w->source[b->event[i]]);
            time[k] = w->time[b->event[i]];
            out.keys[k] = (row_key){b->event[i], k - b->from[i]};
        }
    }
    tensor own = op_rows(t, f->source, n, source);
    out.item = op_rows(t, f->item, n, b->candidate);
    tensor asked[] = {own, out.item, codes(f, t, n, time)};
    out.q = op_gelu(t, NORM(LINEAR(op_concat(t, 3, asked), f->query), f->query_norm));
    tensor key = LINEAR(read.memory, f->key), value = LINEAR(read.memory, f->value);
    out.c = op_attention(t, LINEAR(out.q, f->ask), key, value, 1, spans, b->events, SITE_ATTEND,
                         out.keys);
    out.s = NORM(op_add(t, own, out.c), f->state_norm);
    return out;
}

static tensor forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const patch *f = m->own;
    found at = ask(m, t, b);
    tensor parts[] = {at.s, at.item, at.q, at.c}, z = op_concat(t, 4, parts);
    if (inner) *inner = (model_inner){.z = z};
    tensor hidden = op_dropout(t, op_gelu(t, LINEAR(z, f->fc1)), SITE_HEAD, at.keys);
    tensor product = op_dot(t, at.s, at.item, 1 / sqrt((double)f->dim));
    return op_add(t, product, LINEAR(hidden, f->fc2));
}

/* The product of s and e(v) is not a matrix times a vector, so no direction can be removed. */
static int no_head(const model *m, int *weights) {
    (void)m, (void)weights;
    return 0;
}

#define PATCH_OPTIONS "dim heads layers history dropout attention-dropout time-dim patch"

const model_kind model_patch = {
    .facts =
        {"patch", "Patch transformer", "transformer over patches of the source's past alone",
         "The source's last `history` events, `patch` at a time, go through a transformer of "
         "`layers` blocks; each candidate asks the result by attention. All nodes have learned "
         "identities. What the paper's authors ran as DyGFormer.",
         PATCH_OPTIONS, .event_time = 45, .score_time = 0.12},
    .shuffled = true,
    .open = open_patch,
    .close = close_patch,
    .forward = forward,
    .fast = patch_fast,
    .head = no_head};

/* ---- with a memory of pairs (MODELS 13.5) ---- */

static tensor hidden_state(const model *m, tape *t, const model_batch *b, tensor *z) {
    const patch *f = m->own;
    found at = ask(m, t, b);
    tensor parts[] = {at.s, at.item};
    *z = op_concat(t, 2, parts);
    return op_relu(t, LINEAR(*z, f->fc1));
}

static fr_status open_lha(model *m, fr_error *err) {
    TRY(declare(m, true, err));
    const patch *f = m->own;
    return lha_open(m, hidden_state, f->dim, f->fc2, err);
}

static int head(const model *m, int *weights) {
    weights[0] = ((const patch *)m->own)->fc1.weight;
    return 1;
}

const model_kind model_patch_lha = {
    .facts = {"patch-lha", "Patch transformer+LHA",
              "patch transformer that remembers how each pair last looked",
              "As patch, with another head, which sees a memory of the pair: an average of its "
              "states at the pair's past events, the newest with weight `gamma`. What the paper's "
              "authors ran as DyGFormer+LHA.",
              PATCH_OPTIONS " " LHA_OPTIONS, .event_time = 50, .score_time = 0.07},
    .open = open_lha,
    .close = close_patch,
    .forward = lha_forward,
    .fast = patch_fast,
    .head = head,
    .memory = &lha_memory};
