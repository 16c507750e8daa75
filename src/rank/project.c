/* project.c - removes one direction from a trained model's vector of a pair (PROTOCOL 10).
 *
 * z is the vector that enters the scoring head. Over training pairs, each positive and one drawn
 * negative at their own event with dropout off, the direction is
 *
 *     a = mean(z | the pair has met) - mean(z | it has not)
 *
 * and z - a (a.z) / (a.a) replaces z. The head begins with a product W z, so this is the same as
 * the head W - (W a) a^T / (a.a): one matrix changes, and scoring takes the same time. Controls are
 * a random direction, and the direction of labels in random order.
 *
 * The first half of this file works for vectors of any origin: a model's forward pass (the second
 * half) or a file (project_files.c). Sums run in double over fixed shards of pairs and then in the
 * order of the shards, so the direction does not depend on threads.
 */
#include "rank/project.h"
#include "base/context.h"
#include "base/rng.h"
#include "base/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fr_removal_names[FR_REMOVALS] = {"base", "membership", "random", "shuffled"};

/* ---- directions of labelled vectors ---- */

typedef struct mean_job {
    const project_pairs *pairs;
    const uint8_t *label; /* [pairs] */
    double *z;            /* [threads, shard, width] */
    double *sums;         /* [shards, 2, width] of z by label */
} mean_job;

static fr_status sum_shard(void *job, int64_t shard, int worker, fr_error *err) {
    mean_job *j = job;
    const project_pairs *p = j->pairs;
    size_t width = (size_t)p->width;
    int64_t first = shard * p->shard, count = p->count - first;
    if (count > p->shard) count = p->shard;
    double *z = j->z + (size_t)worker * (size_t)p->shard * width;
    double *sums = j->sums + (size_t)shard * 2 * width;
    TRY(p->read(p->from, first, count, worker, z, err));
    for (int64_t k = 0; k < count; k++) {
        double *sum = sums + j->label[first + k] * width;
        for (size_t c = 0; c < width; c++) sum[c] += z[(size_t)k * width + c];
    }
    return FR_OK;
}

static fr_status mean_difference(const project_pairs *p, bool shuffled, int64_t seed,
                                 const fr_context *context, double *out, fr_error *err) {
    int64_t shards = (p->count + p->shard - 1) / p->shard, met = 0;
    uint8_t *mixed = NULL;
    mean_job job = {.pairs = p, .label = p->label};
    fr_context team = context_team(context, 0);
    for (int64_t k = 0; k < p->count; k++) met += p->label[k];
    if (!met || met == p->count)
        return fail(err, FR_EINPUT,
                    "%s: %lld of %lld pairs have met before, expected some and not all", p->name,
                    (long long)met, (long long)p->count);
    fr_status status =
        ALLOCATE(job.z, (size_t)team.threads * (size_t)p->shard * (size_t)p->width, err);
    if (!status) status = ALLOCATE(job.sums, (size_t)shards * 2 * (size_t)p->width, err);
    if (!status && shuffled) status = ALLOCATE(mixed, p->count, err);
    if (!status && shuffled) {
        memcpy(mixed, p->label, (size_t)p->count);
        rng_shuffle((rng_key){.seed = (uint64_t)seed, .purpose = RNG_PROJECT, .epoch = 1}, mixed,
                    p->count, sizeof *mixed);
        job.label = mixed;
    }
    shard_stage told = {"direction", p->count, "pairs"};
    if (!status) status = shards_run(&team, &told, shards, sum_shard, &job, err);
    for (int c = 0; !status && c < p->width; c++) {
        double sum[2] = {0};
        for (int64_t s = 0; s < shards; s++)
            for (int l = 0; l < 2; l++) sum[l] += job.sums[(s * 2 + l) * p->width + c];
        out[c] = sum[1] / (double)met - sum[0] / (double)(p->count - met);
    }
    free(job.z);
    free(job.sums);
    free(mixed);
    return status;
}

fr_status project_find(const project_pairs *pairs, int what, int64_t seed,
                       const fr_context *context, double *out, fr_error *err) {
    if (what != FR_REMOVE_RANDOM)
        return mean_difference(pairs, what == FR_REMOVE_SHUFFLED, seed, context, out, err);
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_PROJECT, .epoch = 2};
    for (int c = 0; c < pairs->width; c++) {
        double normal[2];
        rng_normal(key, (uint64_t)c, 0, normal);
        out[c] = normal[0];
    }
    return FR_OK;
}

fr_status project_square(const double *a, int width, double *out, fr_error *err) {
    *out = 0;
    for (int c = 0; c < width; c++) *out += a[c] * a[c];
    if (*out > 0 && isfinite(*out)) return FR_OK;
    return fail(err, FR_EINPUT, "the direction to remove has the length %g, expected one above 0",
                sqrt(*out));
}

void project_row(double *row, const double *a, double square, int width) {
    double along = 0;
    for (int c = 0; c < width; c++) along += row[c] * a[c];
    for (int c = 0; c < width; c++) row[c] -= along * a[c] / square;
}

/* ---- of a model ---- */

enum { SHARD = 64 }; /* events */

typedef struct model_pairs {
    const model *m;
    int width;         /* of z */
    int32_t *negative; /* [train] */
    uint8_t *label;    /* [2 * train] of positive and negative of each training event */
    tape *tapes;       /* [threads] */
} model_pairs;

/* Pairs 2 e and 2 e + 1 are those of event e. */
static fr_status read_model(void *from, int64_t first, int64_t count, int worker, double *z,
                            fr_error *err) {
    const model_pairs *p = from;
    const fr_window *w = p->m->w;
    tape *t = &p->tapes[worker];
    int32_t event[SHARD], start[SHARD + 1] = {0}, candidate[2 * SHARD];
    int events = (int)(count / 2);
    for (int i = 0; i < events; i++) {
        int32_t e = event[i] = (int32_t)(first / 2) + i;
        start[i + 1] = 2 * (i + 1);
        candidate[2 * i] = w->destination[e];
        candidate[2 * i + 1] = p->negative[e];
    }
    tape_reset(t);
    model_inner inner = {0};
    model_batch batch = {events, event, start, candidate};
    (void)p->m->kind->forward(p->m, t, &batch, &inner);
    if (t->status) return fail(err, t->status, "%s", t->error.message);
    if (inner.z.cols != p->width)
        return fail(err, FR_EINPUT, "internal: z has %d columns, its head %d", inner.z.cols,
                    p->width);
    for (size_t k = 0; k < (size_t)count * (size_t)p->width; k++) z[k] = (double)inner.z.v[k];
    return FR_OK;
}

static fr_status fill_pairs(model_pairs *p, int64_t seed, int threads, fr_error *err) {
    const fr_window *w = p->m->w;
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_PROJECT};
    int weights[MODEL_HEADS];
    if (!p->m->kind->head(p->m, weights))
        return fail(err, FR_EUSAGE, "%s has no head that is a matrix times one vector",
                    p->m->kind->facts.name);
    TRY(window_check_negatives(w, err));
    TRY(ALLOCATE(p->negative, p->m->trained, err));
    TRY(ALLOCATE(p->label, 2 * (size_t)p->m->trained, err));
    TRY(ALLOCATE(p->tapes, threads, err));
    for (int i = 0; i < threads; i++) p->tapes[i].params = &p->m->params;
    for (int32_t e = 0; e < p->m->trained; e++) {
        int32_t u = w->source[e], cut = window_cut(w, e);
        p->negative[e] = window_draw_negative(w, false, key, e);
        p->label[2 * e] = window_pair_history(w, u, w->destination[e], cut).count > 0;
        p->label[2 * e + 1] = window_pair_history(w, u, p->negative[e], cut).count > 0;
    }
    return FR_OK;
}

int project_width(const model *m) {
    int weights[MODEL_HEADS], width = 0;
    for (int k = m->kind->head(m, weights) - 1; k >= 0; k--)
        width += m->params.list.at[weights[k]].cols;
    return width;
}

fr_status project_direction(const model *m, int what, int64_t seed, const fr_context *context,
                            double **out, fr_error *err) {
    fr_context team = context_team(context, 0);
    model_pairs p = {.m = m, .width = project_width(m)};
    fr_status status = ALLOCATE(*out, p.width, err);
    if (!status) status = fill_pairs(&p, seed, team.threads, err);
    if (!status) {
        project_pairs pairs = {.name = "training pairs",
                               .count = 2 * (int64_t)m->trained,
                               .width = p.width,
                               .shard = 2 * SHARD,
                               .label = p.label,
                               .read = read_model,
                               .from = &p};
        status = project_find(&pairs, what, seed, &team, *out, err);
    }
    for (int i = 0; p.tapes && i < team.threads; i++) tape_free(&p.tapes[i]);
    free(p.tapes);
    free(p.label);
    free(p.negative);
    return status;
}

fr_status project_remove(model *m, const double *a, fr_error *err) {
    int weights[MODEL_HEADS], parts = m->kind->head(m, weights), width = project_width(m);
    double square, *row;
    TRY(project_square(a, width, &square, err));
    TRY(ALLOCATE(row, width, err));
    for (int r = 0; r < m->params.list.at[weights[0]].rows; r++) {
        real *part[MODEL_HEADS]; /* row r of every matrix; side by side they meet all of z */
        double *at = row;
        for (int k = 0; k < parts; k++) {
            const param *p = &m->params.list.at[weights[k]];
            part[k] = m->params.value + p->offset + (size_t)r * (size_t)p->cols;
            for (int c = 0; c < p->cols; c++) *at++ = (double)part[k][c];
        }
        project_row(row, a, square, width);
        at = row;
        for (int k = 0; k < parts; k++)
            for (int c = 0; c < m->params.list.at[weights[k]].cols; c++) part[k][c] = (real)*at++;
    }
    free(row);
    return FR_OK;
}
