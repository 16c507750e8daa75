/* tgn_memory.c - how TGN remembers: lazily while training (MODELS 5.4), eagerly afterwards (5.5).
 *
 * In training a node's last event waits as a message until the node occurs again. The forward pass
 * applies it, and the memory stores the result. After training each event updates the memory at
 * once, which is the same as steps of one event. The update does not depend on any score, so a
 * stretch of the stream is replayed in advance and every state is kept: 2 dim numbers per event.
 */
#include "models/tgn.h"

#include "base/fingerprint.h"
#include "base/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 128 }; /* nodes of a shard */

fr_status tgn_memory_open(model *m, fr_error *err) {
    tgn *c = m->own;
    c->nodes = m->w->nodes;
    c->from = m->w->to;
    TRY(ALLOCATE(c->memory, (size_t)c->nodes * (size_t)c->dim, err));
    TRY(ALLOCATE(c->updated, c->nodes, err));
    TRY(ALLOCATE(c->message, (size_t)c->nodes * (size_t)c->message_width, err));
    TRY(ALLOCATE(c->due, c->nodes, err));
    return ALLOCATE(c->pending, c->nodes, err);
}

void tgn_memory_close(tgn *c) {
    free(c->memory);
    free(c->updated);
    free(c->message);
    free(c->due);
    free(c->pending);
    free(c->version);
}

int64_t tgn_place(const tgn *c, const fr_window *w, int32_t node, int32_t cut) {
    if (cut <= c->from) return node;
    fr_history last = window_node_history(w, node, cut, 1);
    return last.count && last.event[0] >= c->from ? tgn_made(c, w, node, last.event[0]) : node;
}

static uint64_t fingerprint(const model *m) {
    const tgn *c = m->own;
    size_t nodes = (size_t)c->nodes, row = (size_t)c->dim * sizeof(real);
    uint64_t hash = fingerprint_add(0, c->memory, nodes * row);
    hash = fingerprint_add(hash, c->updated, nodes * sizeof *c->updated);
    hash = fingerprint_add(hash, c->message, nodes * (size_t)c->message_width * sizeof(real));
    hash = fingerprint_add(hash, c->due, nodes * sizeof *c->due);
    hash = fingerprint_add(hash, c->pending, nodes * sizeof *c->pending);
    return fingerprint_add(hash, c->version, 2 * (size_t)(m->w->to - c->from) * row);
}

/* The time of an event as the memory counts it. */
static double tgn_clock(const model *m, int32_t event) {
    const tgn *c = m->own;
    return c->file_clock ? m->w->time[event] : window_time(m->w, event);
}

/* to = [ s ; s of the other ; phi(t - l) ; f ] (MODELS 5.2) */
static void write_message(const model *m, int32_t event, const real *s, const real *other,
                          double updated, real *to) {
    const tgn *c = m->own;
    size_t row = (size_t)c->dim * sizeof *to;
    memcpy(to, s, row);
    memcpy(to + c->dim, other, row);
    kernel_time(c->time_dim, model_value(m, c->time.weight), model_value(m, c->time.bias),
                tgn_clock(m, event) - updated, to + 2 * c->dim);
    model_features(m, event, to + 2 * c->dim + c->time_dim);
}

/* How messages are taken in outside of training steps. Memory: of one call. */
typedef struct updater {
    const model *m;
    arena room;
    gru_weights weights; /* of messages as they are */
    real *gates;
    tape t; /* of those that go through layers */
} updater;

static fr_status updater_open(updater *u, const model *m, int rows, fr_error *err) {
    const tgn *c = m->own;
    *u = (updater){.m = m, .t = {.params = &m->params}};
    if (c->mlp) return FR_OK;
    u->weights = (gru_weights){.input = model_value(m, c->gru.input),
                               .hidden = model_value(m, c->gru.hidden),
                               .input_bias = model_value(m, c->gru.input_bias),
                               .hidden_bias = model_value(m, c->gru.hidden_bias)};
    real *both;
    TRY(TAKE(&u->room, u->gates, 4 * (size_t)rows * (size_t)c->dim, err));
    TRY(TAKE(&u->room, both, 2 * (size_t)c->dim * ((size_t)c->dim + 1), err));
    kernel_gru_join(c->message_width, c->dim, &u->weights, both);
    return FR_OK;
}

static void updater_close(updater *u) {
    arena_free(&u->room);
    tape_free(&u->t);
}

/* y[rows, dim] = the states after messages x[rows, message_width] */
static fr_status update(updater *u, int rows, const real *x, real *y, fr_error *err) {
    const tgn *c = u->m->own;
    if (!c->mlp) {
        kernel_gru(rows, c->message_width, c->dim, x, &u->weights, u->gates, y);
        return FR_OK;
    }
    tape_reset(&u->t);
    tensor to = tgn_update(u->m, &u->t, op_input(&u->t, rows, c->message_width, x), rows);
    if (u->t.status) return fail(err, u->t.status, "%s", u->t.error.message);
    memcpy(y, to.v, (size_t)rows * (size_t)c->dim * sizeof *y);
    return FR_OK;
}

/* ---- training ---- */

static void reset(model *m) {
    tgn *c = m->own;
    memset(c->memory, 0, (size_t)c->nodes * (size_t)c->dim * sizeof *c->memory);
    memset(c->updated, 0, (size_t)c->nodes * sizeof *c->updated);
    memset(c->message, 0, (size_t)c->nodes * (size_t)c->message_width * sizeof *c->message);
    memset(c->due, 0, (size_t)c->nodes * sizeof *c->due);
    memset(c->pending, 0, (size_t)c->nodes * sizeof *c->pending);
    free(c->version);
    c->version = NULL;
    c->from = m->w->to;
}

/* The two nodes of an event. */
static void ends_of(const fr_window *w, int32_t event, int32_t node[2]) {
    node[0] = window_source_node(w, w->source[event]);
    node[1] = window_destination_node(w, w->destination[event]);
}

/* Stores the node's new state, which includes its message, if there is one. */
static void write_state(tgn *c, int32_t node, const real *state) {
    size_t d = (size_t)c->dim;
    memcpy(c->memory + (size_t)node * d, state, d * sizeof *state);
    if (c->pending[node]) c->updated[node] = c->due[node];
    c->pending[node] = false;
}

/* MODELS 5.4, steps 4 and 5. All rows of one node are equal, so any may be written. */
static fr_status learn(model *m, const int32_t *event, int count, const real *keep, fr_error *err) {
    (void)err;
    tgn *c = m->own;
    size_t d = (size_t)c->dim;
    int32_t node[2];
    for (int i = 0; i < count; i++) {
        const real *row = keep + 2 * (size_t)i * d;
        ends_of(m->w, event[i], node);
        write_state(c, node[0], row);
        write_state(c, node[1], row + d);
    }
    for (int i = count - 1; i >= 0; i--) { /* the last event of a node is its message */
        ends_of(m->w, event[i], node);
        for (int k = 0; k < 2; k++) {
            int32_t x = node[k];
            if (c->pending[x]) continue;
            write_message(m, event[i], tgn_state(c, x), tgn_state(c, node[1 - k]), c->updated[x],
                          c->message + (size_t)x * (size_t)c->message_width);
            c->due[x] = tgn_clock(m, event[i]);
            c->pending[x] = true;
        }
    }
    return FR_OK;
}

/* Applies the pending messages of some nodes. */
static fr_status settle_nodes(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    const model *m = job;
    tgn *c = m->own;
    size_t d = (size_t)c->dim, width = (size_t)c->message_width, rows = 0;
    int32_t from = (int32_t)shard * CHUNK, to = c->nodes - from < CHUNK ? c->nodes : from + CHUNK;
    int32_t node[CHUNK];
    updater u;
    real *x, *y;
    fr_status status = updater_open(&u, m, CHUNK, err);
    if (!status) status = TAKE(&u.room, x, CHUNK * width, err);
    if (!status) status = TAKE(&u.room, y, CHUNK * d, err);
    for (int32_t at = from; !status && at < to; at++) {
        if (!c->pending[at]) continue;
        memcpy(x + rows * width, c->message + (size_t)at * width, width * sizeof *x);
        node[rows++] = at;
    }
    if (rows) status = update(&u, (int)rows, x, y, err);
    for (size_t i = 0; !status && i < rows; i++) write_state(c, node[i], y + i * d);
    updater_close(&u);
    return status;
}

static fr_status settle(model *m, const fr_context *context, fr_error *err) {
    const tgn *c = m->own;
    return shards_run(context, NULL, (c->nodes + CHUNK - 1) / CHUNK, settle_nodes, m, err);
}

/* ---- evaluation ---- */

/* What replay carries along. Memory: of one call. */
typedef struct replayed {
    int64_t *place;  /* [nodes] of the newest state */
    double *updated; /* [nodes] */
    real *x;         /* [2, message_width] */
    updater u;
} replayed;

static fr_status replay_events(model *m, int32_t from, replayed *r, const fr_context *context,
                               fr_error *err) {
    tgn *c = m->own;
    const fr_window *w = m->w;
    size_t d = (size_t)c->dim;
    for (int32_t x = 0; x < c->nodes; x++) r->place[x] = x;
    memcpy(r->updated, c->updated, (size_t)c->nodes * sizeof *r->updated);
    for (int32_t e = from; e < w->to; e++) {
        if (!((e - from) & 1023)) {
            TRY(context_check(context, err));
            context_progress(context, "replay", (uint64_t)(e - from), (uint64_t)(w->to - from),
                             "events");
        }
        int32_t node[2];
        ends_of(w, e, node);
        for (int k = 0; k < 2; k++) { /* both from the old states */
            write_message(m, e, tgn_state(c, r->place[node[k]]),
                          tgn_state(c, r->place[node[1 - k]]), r->updated[node[k]],
                          r->x + k * c->message_width);
        }
        TRY(update(&r->u, 2, r->x, c->version + 2 * (size_t)(e - from) * d, err));
        for (int k = 0; k < 2; k++) {
            r->place[node[k]] = c->nodes + 2 * (int64_t)(e - from) + k;
            r->updated[node[k]] = tgn_clock(m, e);
        }
    }
    return FR_OK;
}

static fr_status replay(model *m, int32_t from, const fr_context *context, fr_error *err) {
    tgn *c = m->own;
    size_t d = (size_t)c->dim;
    replayed r;
    free(c->version);
    c->version = NULL;
    c->from = m->w->to;
    fr_status status = updater_open(&r.u, m, 2, err);
    if (!status) status = ALLOCATE(c->version, 2 * (size_t)(m->w->to - from) * d, err);
    if (!status) status = TAKE(&r.u.room, r.place, c->nodes, err);
    if (!status) status = TAKE(&r.u.room, r.updated, c->nodes, err);
    if (!status) status = TAKE(&r.u.room, r.x, 2 * c->message_width, err);
    if (!status) status = replay_events(m, from, &r, context, err);
    if (!status) c->from = from;
    updater_close(&r.u);
    return status;
}

/* ---- checkpoints ---- */

static const char MEMORY[] = "state.memory", UPDATED[] = "state.last_update"; /* MODELS 5.3 */

/* Nothing is pending after the end of an epoch. */
static fr_status save(const model *m, safetensors_writer *w, fr_error *err) {
    const tgn *c = m->own;
    int64_t shape[] = {c->nodes, c->dim};
    TRY(safetensors_writer_add(w, MEMORY, ST_REAL, 2, shape, c->memory, err));
    return safetensors_writer_add(w, UPDATED, ST_F64, 1, shape, c->updated, err);
}

static fr_status load(model *m, const safetensors *file, fr_error *err) {
    tgn *c = m->own;
    int64_t shape[] = {c->nodes, c->dim};
    size_t states = (size_t)c->nodes * (size_t)c->dim, nodes = (size_t)c->nodes;
    const void *memory, *updated;
    TRY(safetensors_require(file, MEMORY, ST_REAL, 2, shape, &memory, err));
    TRY(safetensors_require(file, UPDATED, ST_F64, 1, shape, &updated, err));
    reset(m);
    memcpy(c->memory, memory, states * sizeof *c->memory);
    memcpy(c->updated, updated, nodes * sizeof *c->updated);
    for (size_t k = 0; k < states + nodes; k++) {
        double value = k < states ? (double)c->memory[k] : c->updated[k - states];
        if (!isfinite(value))
            return fail(err, FR_EINPUT, "%s: %s has the value %g, expected finite numbers",
                        file->path, k < states ? MEMORY : UPDATED, value);
    }
    return FR_OK;
}

const model_memory tgn_memory = {.reset = reset,
                                 .learn = learn,
                                 .settle = settle,
                                 .replay = replay,
                                 .fingerprint = fingerprint,
                                 .save = save,
                                 .load = load};
