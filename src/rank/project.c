/* project.c - taking one direction out of what a trained model knows of a pair (PROTOCOL 10).
 *
 * z is the vector that enters the scoring head. Over training pairs, each positive and one drawn
 * negative at their own event with dropout off, the direction is
 *
 *     a = mean(z | the pair has met) - mean(z | it has not)
 *
 * and z - a (a.z) / (a.a) takes its place. As the head begins with a product W z, that is the same
 * as the head W - (W a) a^T / (a.a): one matrix changes, and scoring costs what it did. Controls:
 * a direction drawn at random, and the one from labels put in random order.
 *
 * Sums run in double over fixed shards of events and then in their order, so the direction does not
 * depend on threads.
 */
#include "rank/project.h"
#include "base/context.h"
#include "base/rng.h"
#include "base/shards.h"

#include <stdlib.h>

enum { SHARD = 64 }; /* events */

typedef struct direction_job {
    const model *m;
    int64_t seed;
    int width;               /* of z */
    const uint8_t *label;    /* [2 * train] of positive and negative of each training event */
    const int32_t *negative; /* [train] */
    tape *tapes;             /* [threads] */
    double *sums;            /* [shards, 2, width] of z by label */
} direction_job;

static fr_status sum_shard(void *job, int64_t shard, int worker, fr_error *err) {
    direction_job *j = job;
    const fr_window *w = j->m->w;
    tape *t = &j->tapes[worker];
    int32_t first = (int32_t)shard * SHARD, count = w->train - first;
    int32_t event[SHARD], from[SHARD + 1], candidate[2 * SHARD];
    if (count > SHARD) count = SHARD;
    for (int32_t i = 0; i < count; i++) {
        event[i] = first + i;
        from[i] = 2 * i;
        candidate[2 * i] = w->destination[first + i];
        candidate[2 * i + 1] = j->negative[first + i];
    }
    from[count] = 2 * count;
    tape_reset(t);
    model_inner inner = {0};
    model_batch batch = {count, event, from, candidate};
    (void)j->m->kind->forward(j->m, t, &batch, &inner);
    if (t->status) return fail(err, t->status, "%s", t->error.message);
    if (inner.z.cols != j->width)
        return fail(err, FR_EINPUT, "internal: z has %d columns, its head %d", inner.z.cols,
                    j->width);
    double *sums = j->sums + (size_t)shard * 2 * (size_t)j->width;
    for (int32_t k = 0; k < 2 * count; k++) {
        const real *z = inner.z.v + (size_t)k * (size_t)j->width;
        double *sum = sums + (size_t)j->label[2 * first + k] * (size_t)j->width;
        for (int c = 0; c < j->width; c++) sum[c] += (double)z[c];
    }
    return FR_OK;
}

/* A candidate other than the event's destination, drawn as in training from numbers of its own. */
static int32_t draw_negative(const fr_window *w, int64_t seed, int32_t event) {
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_PROJECT};
    int32_t self = window_self(w, w->source[event]);
    for (uint32_t draw = 0;; draw++) {
        int32_t v = w->catalog[rng_below(key, (uint64_t)event, draw, (uint32_t)w->catalog_size)];
        if (v != w->destination[event] && v != self) return v;
    }
}

/* Fisher-Yates by counter. */
static void shuffle(uint8_t *label, int64_t count, int64_t seed) {
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_PROJECT, .epoch = 1};
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t k = rng_below(key, (uint64_t)i, 0, (uint32_t)i + 1);
        uint8_t swap = label[i];
        label[i] = label[k];
        label[k] = swap;
    }
}

static fr_status mean_difference(const model *m, bool shuffled, int64_t seed,
                                 const fr_context *context, int width, double *out, fr_error *err) {
    const fr_window *w = m->w;
    int threads = context_threads(context);
    int64_t shards = (w->train + SHARD - 1) / SHARD, seen = 0, pairs = 2 * (int64_t)w->train;
    uint8_t *label = NULL;
    int32_t *negative = NULL;
    direction_job job = {.m = m, .seed = seed, .width = width};
    fr_status status = ALLOCATE(label, pairs, err);
    if (!status) status = ALLOCATE(negative, w->train, err);
    if (!status) status = ALLOCATE(job.tapes, threads, err);
    if (!status) status = ALLOCATE(job.sums, shards * 2 * width, err);
    for (int32_t e = 0; !status && e < w->train; e++) {
        int32_t u = w->source[e], cut = window_cut(w, e);
        negative[e] = draw_negative(w, seed, e);
        label[2 * e] = window_pair_history(w, u, w->destination[e], cut).count > 0;
        label[2 * e + 1] = window_pair_history(w, u, negative[e], cut).count > 0;
        seen += label[2 * e] + label[2 * e + 1];
    }
    if (!status && (!seen || seen == pairs))
        status = fail(err, FR_EINPUT,
                      "%lld of %lld training pairs have met before, expected some and not all",
                      (long long)seen, (long long)pairs);
    if (!status) {
        if (shuffled) shuffle(label, pairs, seed);
        job.label = label;
        job.negative = negative;
        for (int i = 0; i < threads; i++) job.tapes[i].params = &m->params;
        status = shards_run(context, "direction", shards, sum_shard, &job, err);
    }
    for (int c = 0; !status && c < width; c++) {
        double sum[2] = {0};
        for (int64_t s = 0; s < shards; s++)
            for (int l = 0; l < 2; l++) sum[l] += job.sums[(s * 2 + l) * width + c];
        out[c] = sum[1] / (double)seen - sum[0] / (double)(pairs - seen);
    }
    for (int i = 0; job.tapes && i < threads; i++) tape_free(&job.tapes[i]);
    free(job.tapes);
    free(job.sums);
    free(label);
    free(negative);
    return status;
}

static int head_width(const model *m) {
    int weights[MODEL_HEADS], width = 0;
    for (int k = m->kind->head(m, weights) - 1; k >= 0; k--)
        width += m->params.list.at[weights[k]].cols;
    return width;
}

fr_status project_direction(const model *m, int what, int64_t seed, const fr_context *context,
                            double **out, fr_error *err) {
    int width = head_width(m);
    TRY(ALLOCATE(*out, width, err));
    if (what != FR_REMOVE_RANDOM)
        return mean_difference(m, what == FR_REMOVE_SHUFFLED, seed, context, width, *out, err);
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_PROJECT, .epoch = 2};
    for (int c = 0; c < width; c++) {
        double normal[2];
        rng_normal(key, (uint64_t)c, 0, normal);
        (*out)[c] = normal[0];
    }
    return FR_OK;
}

fr_status project_remove(model *m, const double *a, fr_error *err) {
    int weights[MODEL_HEADS], parts = m->kind->head(m, weights), width = head_width(m);
    double square = 0;
    for (int c = 0; c < width; c++) square += a[c] * a[c];
    if (!(square > 0)) return fail(err, FR_EINPUT, "the direction to remove is zero");
    int rows = m->params.list.at[weights[0]].rows;
    for (int r = 0; r < rows; r++) {
        double along = 0; /* (W a)_r, over all parts of z */
        const double *at = a;
        for (int k = 0; k < parts; k++) {
            const param *p = &m->params.list.at[weights[k]];
            const real *row = m->params.value + p->offset + (size_t)r * (size_t)p->cols;
            for (int c = 0; c < p->cols; c++) along += (double)row[c] * *at++;
        }
        at = a;
        for (int k = 0; k < parts; k++) {
            const param *p = &m->params.list.at[weights[k]];
            real *row = m->params.value + p->offset + (size_t)r * (size_t)p->cols;
            for (int c = 0; c < p->cols; c++)
                row[c] = (real)((double)row[c] - along * *at++ / square);
        }
    }
    return FR_OK;
}
