/* trainer.c - see trainer.h. */
#include "train/trainer.h"

#include "base/number.h"
#include "base/rng.h"
#include "base/shards.h"
#include "base/simd.h"
#include "train/loss.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE = 1 << 14 }; /* parameters one thread updates at a time */

fr_status trainer_open(trainer *t, model *m, const fr_training *settings, const fr_context *context,
                       fr_error *err) {
    *t = (trainer){.m = m, .settings = *settings, .threads = context_threads(context)};
    int32_t train = m->trained;
    TRY(window_check_negatives(m->w, err));
    if (settings->shuffle == FR_SHUFFLE_YES && m->kind->memory)
        return fail(err, FR_EUSAGE, "%s remembers events, so they cannot be shuffled",
                    m->kind->facts.name);
    t->shard_events = m->shard_events ? m->shard_events : TRAINER_SHARD;
    int64_t batch = settings->batch_size < train ? settings->batch_size : train;
    t->shards = (batch + t->shard_events - 1) / t->shard_events;
    TRY(adam_open(&t->adam, m->params.count, err));
    TRY(ALLOCATE(t->tapes, t->threads, err));
    TRY(ALLOCATE(t->gradients, t->shards, err));
    for (int64_t s = 0; s < t->shards; s++) TRY(ALLOCATE(t->gradients[s], m->params.count, err));
    TRY(ALLOCATE(t->losses, batch, err));
    TRY(ALLOCATE(t->keep, batch * m->keep, err));
    TRY(ALLOCATE(t->from, batch + 1, err));
    for (int64_t i = 0; i <= batch; i++) t->from[i] = (int32_t)(2 * i);
    TRY(ALLOCATE(t->pairs, 2 * batch, err));
    if (m->kind->sharing) TRY(ALLOCATE(t->parts, t->shards, err));
    TRY(ALLOCATE(t->order, train, err));
    return ALLOCATE(t->negative, train, err);
}

void trainer_close(trainer *t) {
    adam_free(&t->adam);
    for (int i = 0; t->tapes && i < t->threads; i++) tape_free(&t->tapes[i]);
    for (int64_t s = 0; t->gradients && s < t->shards; s++) free(t->gradients[s]);
    for (int64_t s = 0; t->parts && s < t->shards; s++) tape_free(&t->parts[s]);
    tape_free(&t->plan);
    free(t->tapes);
    free(t->parts);
    free(t->from);
    free(t->pairs);
    free(t->gradients);
    free(t->losses);
    free(t->keep);
    free(t->order);
    free(t->negative);
    *t = (trainer){0};
}

/* ---- the epoch's choices ---- */

static rng_key epoch_key(const trainer *t, rng_purpose purpose, int64_t epoch) {
    return (rng_key){
        .seed = (uint64_t)t->settings.seed, .purpose = purpose, .epoch = (uint32_t)epoch};
}

/* A candidate other than the event's own destination. */
static int32_t draw_negative(const trainer *t, int32_t event, int64_t epoch) {
    const fr_window *w = t->m->w;
    bool whole = t->settings.negatives == FR_NEGATIVES_WINDOW;
    if (t->settings.deterministic) { /* MODELS 1.6 */
        int32_t n = window_pool(w, whole), self = window_self(w, w->source[event]);
        int64_t at = (7919 * (int64_t)event + 104729 * epoch + 17) % n;
        for (;; at = (at + 1) % n) {
            int32_t v = window_pooled(w, whole, (int32_t)at);
            if (v != w->destination[event] && v != self) return v;
        }
    }
    return window_draw_negative(w, whole, epoch_key(t, RNG_NEGATIVE, epoch), event);
}

static void begin_tape(const trainer *t, tape *own, int64_t epoch) {
    own->params = &t->m->params;
    own->seed = t->settings.seed;
    own->epoch = (uint32_t)epoch;
    const fr_model_settings *s = &t->m->settings;
    own->dropout = t->settings.deterministic ? 0 : s->dropout;
    own->attention_dropout = s->attention_dropout < 0 ? own->dropout : s->attention_dropout;
    if (t->settings.deterministic) own->attention_dropout = 0;
}

static bool is_shuffled(const trainer *t) {
    if (t->settings.deterministic) return false;
    return t->settings.shuffle == FR_SHUFFLE_AUTO ? t->m->kind->shuffled
                                                  : t->settings.shuffle == FR_SHUFFLE_YES;
}

void trainer_begin(trainer *t, int64_t epoch) {
    int32_t train = t->m->trained;
    for (int32_t i = 0; i < train; i++) {
        t->order[i] = i;
        t->negative[i] = draw_negative(t, i, epoch);
    }
    if (is_shuffled(t))
        rng_shuffle(epoch_key(t, RNG_SHUFFLE, epoch), t->order, train, sizeof *t->order);
    if (t->m->kind->memory) t->m->kind->memory->reset(t->m);
    t->epoch = epoch;
    for (int i = 0; i < t->threads; i++) begin_tape(t, &t->tapes[i], epoch);
    for (int64_t s = 0; t->parts && s < t->shards; s++) begin_tape(t, &t->parts[s], epoch);
}

/* ---- a step ---- */

static int shards_of(const trainer *t) {
    return (t->batch_count + t->shard_events - 1) / t->shard_events;
}

static fr_status status_of(const tape *own, fr_error *err) {
    return own->status ? fail(err, own->status, "%s", own->error.message) : FR_OK;
}

static tensor forward(trainer *t, tape *own, int first, int count, model_inner *inner) {
    const model_kind *kind = t->m->kind;
    if (t->shared)
        return kind->sharing->forward(t->m, own, t->shared, first / t->shard_events, inner);
    model_batch batch = {count, t->batch + first, t->from, t->pairs + 2 * first};
    return kind->forward(t->m, own, &batch, inner);
}

/* Events first .. first + count - 1 of the batch: losses, and their gradient added to the tape's.
 */
static fr_status run_events(trainer *t, tape *own, int first, int count, fr_error *err) {
    tape_reset(own);
    int width = t->m->keep;
    model_inner inner = {0};
    tensor y = forward(t, own, first, count, width ? &inner : NULL);
    TRY(status_of(own, err));
    for (int i = 0; width && i < count; i++) /* of the positives */
        memcpy(t->keep + (size_t)(first + i) * (size_t)width,
               inner.keep.v + (size_t)(2 * i) * (size_t)width, (size_t)width * sizeof(real));
    real scale = (real)(1.0 / t->batch_count);
    for (int i = 0; i < count; i++) {
        real *g = &y.g[2 * i];
        t->losses[first + i] =
            loss_event(t->settings.objective, y.v[2 * i], y.v[2 * i + 1], &g[0], &g[1]);
        g[0] *= scale;
        g[1] *= scale;
    }
    tape_backward(own);
    return status_of(own, err);
}

static fr_status run_shard(void *job, int64_t shard, int worker, fr_error *err) {
    trainer *t = job;
    tape *own = &t->tapes[worker];
    if (shard >= shards_of(t)) return FR_OK;
    int first = (int)shard * t->shard_events, end = first + t->shard_events;
    if (end > t->batch_count) end = t->batch_count;
    int step = t->m->kind->events_at_once ? t->m->kind->events_at_once : t->shard_events;
    own->gradient = t->gradients[shard];
    memset(own->gradient, 0, t->m->params.count * sizeof *own->gradient);
    for (; first < end; first += step)
        TRY(run_events(t, own, first, end - first < step ? end - first : step, err));
    return FR_OK;
}

/* Computes the shared part before the shards. */
static fr_status make_part(void *job, int64_t part, int worker, fr_error *err) {
    (void)worker;
    trainer *t = job;
    tape *own = &t->parts[part];
    if (part >= shards_of(t)) return FR_OK;
    tape_reset(own);
    own->gradient = t->gradients[part];
    t->m->kind->sharing->make_part(t->m, own, t->shared, (int)part);
    return status_of(own, err);
}

/* Adds elements from..to-1 of all shards' gradients in order into the first. */
SIMD_LOOPS static void add_gradients(trainer *t, size_t from, size_t to) {
    real *restrict sum = t->gradients[0];
    for (int s = 1; s < t->summands; s++) {
        const real *more = t->gradients[s];
        for (size_t k = from; k < to; k++) sum[k] += more[k];
    }
}

/* Reports what went wrong first: a parameter that is not finite, or the tensor whose gradient is
 * not finite. The backward passes of all parts must be done, so that the message does not depend on
 * threads. */
static fr_status not_finite(trainer *t, fr_error *err) {
    const params *p = &t->m->params;
    add_gradients(t, 0, p->count);
    for (size_t k = 0; k < p->count; k++)
        if (!isfinite(p->value[k]))
            return fail(err, FR_EINPUT, "step %lld: the loss is not finite; %s has the value %g",
                        (long long)t->adam.step + 1, params_of(p, k)->name, (double)p->value[k]);
    for (size_t k = 0; k < p->count; k++)
        if (!isfinite(t->gradients[0][k]))
            return fail(
                err, FR_EINPUT, "step %lld: the loss is not finite; the gradient of %s is %g",
                (long long)t->adam.step + 1, params_of(p, k)->name, (double)t->gradients[0][k]);
    return fail(err, FR_EINPUT, "step %lld: the loss is not finite", (long long)t->adam.step + 1);
}

/* Sets up the step of the next events: their pairs and their shared part. It reads the memory, but
 * not the parameters. */
static fr_status open_step(trainer *t, fr_error *err) {
    const model_sharing *sharing = t->m->kind->sharing;
    int32_t left = t->count - t->done, size = (int32_t)t->settings.batch_size;
    t->batch = t->events + t->done;
    t->batch_count = left < size ? left : size;
    for (int i = 0; i < t->batch_count; i++) {
        t->pairs[2 * i] = t->m->w->destination[t->batch[i]];
        t->pairs[2 * i + 1] = t->negative[t->batch[i]];
    }
    if (!sharing || !left) return FR_OK;
    model_batch whole = {t->batch_count, t->batch, t->from, t->pairs};
    tape_reset(&t->plan);
    t->shared = sharing->collect(t->m, &t->plan, &whole, t->shard_events, shards_of(t));
    return status_of(&t->plan, err);
}

/* Sums the loss and updates the memory, with the parameters of the forward pass. */
static fr_status close_step(trainer *t, fr_error *err) {
    const model_memory *memory = t->m->kind->memory;
    double sum = 0;
    for (int i = 0; i < t->batch_count; i++) sum += t->losses[i];
    t->sum += sum;
    t->summands = shards_of(t);
    if (!isfinite(sum))
        return FR_OK; /* backward passes of parts are still running: the next phase fails */
    t->done += t->batch_count;
    t->adam.step += t->learning;
    return memory && t->learning ? memory->learn(t->m, t->batch, t->batch_count, t->keep, err)
                                 : FR_OK;
}

static void tell(const trainer *t) {
    char stage[64];
    (void)number_print(stage, sizeof stage, "epoch %lld/%lld loss %.4f", (long long)t->epoch + 1,
                       (long long)t->settings.epochs, t->sum / t->done);
    /* of all epochs, because users want to know the time of the whole training */
    context_progress(t->context, stage, (uint64_t)(t->epoch * t->count + t->done),
                     (uint64_t)(t->settings.epochs * t->count), "events");
}

/* Before a step, on the calling thread. */
static fr_status look_up(void *job, int64_t shard, int worker, fr_error *err) {
    (void)shard, (void)worker;
    trainer *t = job;
    if (t->context && t->done) tell(t);
    return context_check(t->context, err);
}

/* After the shards: number 0 closes the step; the others set the gradients of parts. */
static fr_status finish_part(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    trainer *t = job;
    if (!shard) return close_step(t, err);
    int part = (int)shard - 1;
    if (part >= shards_of(t)) return FR_OK;
    t->m->kind->sharing->gather(t->m, t->shared, part);
    tape_backward(&t->parts[part]);
    return status_of(&t->parts[part], err);
}

/* Number 0 opens the next step; the others are ranges of parameters. */
static fr_status update_range(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    trainer *t = job;
    if (!isfinite(t->sum)) return fail(err, FR_EINPUT, "the loss is not finite"); /* not_finite */
    if (!shard) return open_step(t, err);
    size_t from = (size_t)(shard - 1) * RANGE, to = from + RANGE;
    if (to > t->m->params.count) to = t->m->params.count;
    add_gradients(t, from, to);
    if (t->settings.weight_decay > 0)
        params_shrink(&t->m->params, 1 - t->settings.rate * t->settings.weight_decay, from, to);
    adam_update(&t->adam, t->adam.step, t->settings.rate, from, to, t->gradients[0] + from,
                t->m->params.value);
    return FR_OK;
}

/* Trains on the events in their order. One team of threads does all steps, because starting threads
 * takes as long as a small phase. */
static fr_status run_steps(trainer *t, const int32_t *events, int count, bool learning,
                           const fr_context *context, double *loss, fr_error *err) {
    t->context = context;
    t->events = events;
    t->count = count;
    t->done = 0;
    t->learning = learning;
    t->sum = 0;
    int64_t parts = t->m->kind->sharing ? t->shards : 0;
    int64_t ranges = (int64_t)((t->m->params.count + RANGE - 1) / RANGE);
    const shard_phase phase[] = {{1, look_up},
                                 {parts, make_part},
                                 {t->shards, run_shard},
                                 {1 + parts, finish_part},
                                 {1 + ranges, update_range}};
    fr_context quiet = {.threads = t->threads}; /* a shard is too short for progress */
    int64_t size = t->settings.batch_size, steps = (count + size - 1) / size;
    TRY(open_step(t, err));
    fr_status status = shards_run_rounds(&quiet, steps, learning ? 5 : 4, phase, t, err);
    if (!isfinite(t->sum)) return not_finite(t, err); /* no thread is writing now */
    if (status) return status;
    if (context) tell(t);
    *loss = t->sum / count;
    return FR_OK;
}

fr_status trainer_gradient(trainer *t, const int32_t *events, int count, double *loss,
                           fr_error *err) {
    TRY(run_steps(t, events, count, false, NULL, loss, err));
    add_gradients(t, 0, t->m->params.count);
    return FR_OK;
}

fr_status trainer_step(trainer *t, const int32_t *events, int count, double *loss, fr_error *err) {
    return run_steps(t, events, count, true, NULL, loss, err);
}

fr_status trainer_epoch(trainer *t, int64_t epoch, const fr_context *context, double *loss,
                        fr_error *err) {
    trainer_begin(t, epoch);
    TRY(run_steps(t, t->order, t->m->trained, true, context, loss, err));
    if (t->m->kind->memory && t->m->kind->memory->settle)
        TRY(t->m->kind->memory->settle(t->m, &(fr_context){.threads = t->threads}, err));
    /* no loss checks the last step, and ReLU turns NaN into 0 */
    for (size_t k = 0; k < t->m->params.count; k++)
        if (!isfinite(t->m->params.value[k]))
            return fail(err, FR_EINPUT, "by step %lld %s has the value %g", (long long)t->adam.step,
                        params_of(&t->m->params, k)->name, (double)t->m->params.value[k]);
    return FR_OK;
}
