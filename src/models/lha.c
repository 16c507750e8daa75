/* lha.c - Link History Aggregation: the head of a model also sees the last states of the same pair
 * (MODELS 4).
 *
 *     s = w2 . [hcur; r_uv] + b2
 *     M[(u, v)] <- gamma hcur + (1 - gamma) r_uv      after an event of the pair
 *
 * r_uv is a constant: no gradient flows through it. In training, M is that of the start of the
 * step. In evaluation hcur does not depend on M, so a replay computes it for all events at once and
 * then runs the recurrence. The state of the pair after each event is kept, and event i sees the
 * state after the pair's last event below its cut, or the state after training. So with strict
 * order the memory hides events of the same time, as histories do. With `write-every` events are
 * written together: those of one batch see the memory at its start, as in training. So the memory
 * may be older than the protocol allows, but never newer. Scores need only w2b . r_uv, and replay
 * runs the same recurrence on these single numbers (4.3).
 */
#include "models/lha.h"

#include "base/fingerprint.h"
#include "base/shards.h"

#include <stdlib.h>
#include <string.h>

enum { SHARD = 25 }; /* events of a replay a thread takes at a time */

fr_status lha_open(model *m, lha_hidden *hidden, int dim, param_pair last, fr_error *err) {
    lha *h;
    TRY(ALLOCATE(h, 1, err));
    m->pairs = h;
    *h = (lha){.hidden = hidden,
               .dim = dim,
               .last = last,
               .gamma = (real)m->settings.gamma,
               .every = m->settings.write_every > 1 ? (int32_t)m->settings.write_every : 1,
               .from = INT32_MAX};
    m->keep = dim;
    TRY(ALLOCATE(h->written, m->w->pairs, err));
    return ALLOCATE(h->value, (size_t)m->w->pairs * (size_t)dim, err);
}

void lha_close(model *m) {
    lha *h = m->pairs;
    if (!h) return;
    free(h->written);
    free(h->value);
    free(h->after);
    free(h->rho);
    arena_free(&h->saved);
    free(h);
}

/* The pair's stored state, without replayed events. */
static const real *stored(const lha *h, int32_t pair) {
    return h->written[pair] ? h->value + (size_t)pair * (size_t)h->dim : NULL;
}

/* Replayed events below this number have been written before the event. */
static int32_t written_below(const lha *h, int32_t from, int32_t event) {
    return event - (event - from) % h->every;
}

/* The pair's last replayed event that an event may see, -1 = none. */
static int32_t last_replayed(const model *m, int32_t event, int32_t candidate) {
    const lha *h = m->pairs;
    if (event < h->from) return -1;
    int32_t cut = window_cut(m->w, event), written = written_below(h, h->from, event);
    fr_history met =
        window_pair_history(m->w, m->w->source[event], candidate, cut < written ? cut : written);
    int32_t last = met.count ? met.event[met.count - 1] : -1;
    return last >= h->from ? last : -1;
}

const real *lha_recall(const model *m, int32_t event, int32_t candidate) {
    const lha *h = m->pairs;
    int32_t pair = window_pair(m->w, m->w->source[event], candidate);
    if (pair < 0) return NULL;
    int32_t last = last_replayed(m, event, candidate);
    return last < 0 ? stored(h, pair) : h->after + (size_t)(last - h->from) * (size_t)h->dim;
}

real lha_recalled(const model *m, int32_t event, int32_t candidate) {
    const lha *h = m->pairs;
    int32_t pair = window_pair(m->w, m->w->source[event], candidate);
    if (pair < 0) return 0;
    int32_t last = last_replayed(m, event, candidate);
    return h->rho[last < 0 ? pair : m->w->pairs + (last - h->from)];
}

tensor lha_forward(const model *m, tape *t, const model_batch *b, model_inner *inner) {
    const lha *h = m->pairs;
    int d = h->dim, n = b->from[b->events];
    tensor z, part[2] = {h->hidden(m, t, b, &z), tape_constant(t, n, d)};
    for (int i = 0; !t->status && i < b->events; i++)
        for (int k = b->from[i]; k < b->from[i + 1]; k++) {
            real *to = part[1].v + (size_t)k * (size_t)d;
            const real *r = lha_recall(m, b->event[i], b->candidate[k]);
            if (r)
                memcpy(to, r, (size_t)d * sizeof *to);
            else
                memset(to, 0, (size_t)d * sizeof *to);
        }
    if (inner) *inner = (model_inner){.z = z, .keep = part[0]};
    return op_linear(t, op_concat(t, 2, part), h->last.weight, h->last.bias);
}

/* ---- memory ---- */

static void forget_replay(lha *h) {
    free(h->after);
    free(h->rho);
    h->after = h->rho = NULL;
    h->from = INT32_MAX;
}

static void reset(model *m) {
    lha *h = m->pairs;
    forget_replay(h);
    h->step = 0;
    memset(h->written, 0, (size_t)m->w->pairs * sizeof *h->written);
    memset(h->value, 0, (size_t)m->w->pairs * (size_t)h->dim * sizeof *h->value);
}

/* to = gamma now + (1 - gamma) before; before may be NULL, or `to` itself */
static void write_pair(const lha *h, const real *now, const real *before, real *to) {
    for (int k = 0; k < h->dim; k++)
        to[k] = h->gamma * now[k] + (before ? (1 - h->gamma) * before[k] : 0);
}

/* All events of a pair in a step start from the same old state and the last one wins (MODELS 4.2):
 * going backwards, the first one met is the only one that matters. */
static fr_status learn(model *m, const int32_t *event, int count, const real *keep, fr_error *err) {
    lha *h = m->pairs;
    (void)err;
    h->step++;
    for (int i = count - 1; i >= 0; i--) {
        int32_t pair = window_pair(m->w, m->w->source[event[i]], m->w->destination[event[i]]);
        if (h->written[pair] == h->step) continue;
        write_pair(h, keep + (size_t)i * (size_t)h->dim, stored(h, pair),
                   h->value + (size_t)pair * (size_t)h->dim);
        h->written[pair] = h->step;
    }
    return FR_OK;
}

typedef struct replay_job {
    model *m;
    int32_t from;
    tape *tapes;  /* [threads] */
    real *states; /* [events - from, dim] hcur, then what the pair is left with */
} replay_job;

static fr_status replay_shard(void *state, int64_t shard, int worker, fr_error *err) {
    replay_job *job = state;
    const fr_window *w = job->m->w;
    tape *t = &job->tapes[worker];
    int32_t first = job->from + (int32_t)shard * SHARD, count = w->to - first;
    if (count > SHARD) count = SHARD;
    int32_t event[SHARD], from[SHARD + 1] = {0}, candidate[SHARD];
    for (int i = 0; i < count; i++) {
        event[i] = first + i;
        from[i + 1] = i + 1;
        candidate[i] = w->destination[first + i];
    }
    tape_reset(t);
    tensor z, now = ((const lha *)job->m->pairs)
                        ->hidden(job->m, t, &(model_batch){count, event, from, candidate}, &z);
    if (t->status) return fail(err, t->status, "%s", t->error.message);
    memcpy(job->states + (size_t)(first - job->from) * (size_t)now.cols, now.v,
           (size_t)count * (size_t)now.cols * sizeof *now.v);
    return FR_OK;
}

/* hcur of all events in `states`. */
static fr_status find_states(replay_job *job, const fr_context *context, fr_error *err) {
    const fr_window *w = job->m->w;
    fr_context team = context_team(context, 0);
    TRY(ALLOCATE(job->tapes, team.threads, err));
    for (int i = 0; i < team.threads; i++) job->tapes[i].params = &job->m->params;
    shard_stage told = {"replay", w->to - job->from, "events"};
    fr_status status =
        shards_run(&team, &told, (told.total + SHARD - 1) / SHARD, replay_shard, job, err);
    for (int i = 0; i < team.threads; i++) tape_free(&job->tapes[i]);
    free(job->tapes);
    return status;
}

/* The recurrence over all replayed events: of vectors, in place of hcur, and of w2b . r. */
static void run_recurrence(const model *m, int32_t from, real *states, real *rho) {
    const lha *h = m->pairs;
    const fr_window *w = m->w;
    int d = h->dim;
    const real *weight = model_value(m, h->last.weight) + d;
    real *rho_after = rho + w->pairs;
    for (int32_t k = 0; k < w->pairs; k++)
        rho[k] = stored(h, k) ? kernel_dot(d, weight, stored(h, k)) : 0;
    for (int32_t e = from; e < w->to; e++) {
        int32_t u = w->source[e], v = w->destination[e], pair = window_pair(w, u, v);
        fr_history met = window_pair_history(w, u, v, written_below(h, from, e));
        int32_t last = met.count ? met.event[met.count - 1] : -1;
        real *here = states + (size_t)(e - from) * (size_t)d;
        const real *before = stored(h, pair);
        real rho_before = rho[pair];
        if (last >= from) {
            before = states + (size_t)(last - from) * (size_t)d;
            rho_before = rho_after[last - from];
        }
        rho_after[e - from] = h->gamma * kernel_dot(d, weight, here) + (1 - h->gamma) * rho_before;
        write_pair(h, here, before, here);
    }
}

static fr_status replay(model *m, int32_t from, const fr_context *context, fr_error *err) {
    lha *h = m->pairs;
    size_t events = (size_t)(m->w->to - from);
    forget_replay(h);
    TRY(ALLOCATE(h->after, events * (size_t)h->dim, err));
    TRY(ALLOCATE(h->rho, (size_t)m->w->pairs + events, err));
    TRY(find_states(&(replay_job){.m = m, .from = from, .states = h->after}, context, err));
    run_recurrence(m, from, h->after, h->rho);
    h->from = from;
    return FR_OK;
}

static uint64_t fingerprint(const model *m) {
    const lha *h = m->pairs;
    size_t pairs = (size_t)m->w->pairs, row = (size_t)h->dim * sizeof(real);
    uint64_t hash = fingerprint_add(0, h->written, pairs * sizeof *h->written);
    hash = fingerprint_add(hash, h->value, pairs * row);
    if (h->from == INT32_MAX) return hash;
    size_t events = (size_t)(m->w->to - h->from);
    hash = fingerprint_add(hash, h->after, events * row);
    return fingerprint_add(hash, h->rho, (pairs + events) * sizeof *h->rho);
}

/* ---- checkpoint ---- */

/* The numbers of pairs ascend by (source, destination): so do the rows. */
static fr_status save(const model *m, safetensors_writer *w, fr_error *err) {
    lha *h = m->pairs;
    int d = h->dim;
    int64_t count = 0;
    for (int32_t k = 0; k < m->w->pairs; k++) count += h->written[k] > 0;
    int64_t shape[] = {count, d}, *source, *destination;
    real *value;
    arena_reset(&h->saved);
    TRY(TAKE(&h->saved, source, count, err));
    TRY(TAKE(&h->saved, destination, count, err));
    TRY(TAKE(&h->saved, value, count * d, err));
    int64_t at = 0;
    for (int32_t u = 0; u < m->w->sources; u++)
        for (int32_t k = m->w->source_pair_at[u]; k < m->w->source_pair_at[u + 1]; k++) {
            if (!h->written[k]) continue;
            source[at] = u;
            destination[at] = m->w->pair_destination[k];
            memcpy(value + at++ * d, stored(h, k), (size_t)d * sizeof *value);
        }
    TRY(safetensors_writer_add(w, "state.pair.src", ST_I64, 1, shape, source, err));
    TRY(safetensors_writer_add(w, "state.pair.dst", ST_I64, 1, shape, destination, err));
    return safetensors_writer_add(w, "state.pair.value", ST_REAL, 2, shape, value, err);
}

static fr_status load(model *m, const safetensors *file, fr_error *err) {
    lha *h = m->pairs;
    int d = h->dim;
    const st_tensor *rows = safetensors_find(file, "state.pair.src");
    int64_t shape[] = {rows && rows->dims == 1 ? rows->shape[0] : 0, d};
    const void *source, *destination, *value;
    TRY(safetensors_require(file, "state.pair.src", ST_I64, 1, shape, &source, err));
    TRY(safetensors_require(file, "state.pair.dst", ST_I64, 1, shape, &destination, err));
    TRY(safetensors_require(file, "state.pair.value", ST_REAL, 2, shape, &value, err));
    int32_t before = -1;
    for (int64_t i = 0; i < shape[0]; i++) {
        int64_t u = ((const int64_t *)source)[i], v = ((const int64_t *)destination)[i];
        const real *row = (const real *)value + i * d;
        int32_t pair = -1;
        if (u >= 0 && u < m->w->sources && v >= 0 && v < m->w->destinations)
            pair = window_pair(m->w, (int32_t)u, (int32_t)v);
        if (pair < 0)
            return fail(err, FR_EINPUT,
                        "%s: state.pair row %lld is (%lld, %lld), no pair of this "
                        "window",
                        file->path, (long long)i, (long long)u, (long long)v);
        if (pair <= before)
            return fail(err, FR_EINPUT,
                        "%s: state.pair row %lld, (%lld, %lld), expected rows "
                        "sorted by source and destination, each pair once",
                        file->path, (long long)i, (long long)u, (long long)v);
        for (int k = 0; k < d; k++)
            if (!isfinite(row[k]))
                return fail(err, FR_EINPUT,
                            "%s: state.pair.value has the value %g in row %lld, "
                            "expected finite numbers",
                            file->path, (double)row[k], (long long)i);
        memcpy(h->value + (size_t)pair * (size_t)d, row, (size_t)d * sizeof *row);
        h->written[pair] = h->step = 1;
        before = pair;
    }
    return FR_OK;
}

const model_memory lha_memory = {.reset = reset,
                                 .learn = learn,
                                 .replay = replay,
                                 .fingerprint = fingerprint,
                                 .save = save,
                                 .load = load};
