/* bootstrap.c - see bootstrap.h. */
#include "eval/bootstrap.h"

#include "base/memory.h"
#include "base/rng.h"
#include "base/shards.h"

#include <math.h>
#include <stdlib.h>

enum { SHARD = 64 }; /* resamples one thread takes at a time */

typedef void weigh_function(uint64_t seed, int64_t resample, int64_t blocks, double *weight);

void bootstrap_draw(uint64_t seed, int64_t resample, int64_t blocks, double *weight) {
    const rng_key key = {.seed = seed, .purpose = RNG_BOOTSTRAP};
    for (int64_t b = 0; b < blocks; b++) weight[b] = 0;
    for (int64_t b = 0; b < blocks; b++)
        weight[rng_below(key, (uint64_t)resample, (uint32_t)b, (uint32_t)blocks)]++;
}

void bootstrap_sign(uint64_t seed, int64_t resample, int64_t blocks, double *weight) {
    const rng_key key = {.seed = seed, .purpose = RNG_SIGNS};
    rng_block bits = {{0}};
    for (int64_t b = 0; b < blocks; b++) {
        if (b % 128 == 0) bits = rng_bits(key, (uint64_t)resample, (uint32_t)(b / 128));
        weight[b] = bits.word[b % 128 / 32] >> b % 32 & 1 ? 1 : -1;
    }
}

typedef struct resample_job {
    const block_sums *blocks;
    resampling how;
    weigh_function *weigh;
    const double *total; /* [series] divide by these, or NULL: by the counts drawn */
    double *scratch;     /* [threads][blocks + series] weights and counts, worker scratch */
    double *out;         /* [resamples][series] */
} resample_job;

static void resample(const resample_job *j, int64_t number, double *restrict weight,
                     double *restrict counted) {
    const block_sums *from = j->blocks;
    double *restrict mean = j->out + number * from->series;
    j->weigh(j->how.seed, number, from->blocks, weight);
    for (int i = 0; i < from->series; i++) mean[i] = counted[i] = 0;
    for (int64_t b = 0; b < from->blocks; b++) {
        if (weight[b] == 0) continue;
        const double *sum = from->sum + b * from->series, *count = from->count + b * from->series;
        for (int i = 0; i < from->series; i++) mean[i] += weight[b] * sum[i];
        for (int i = 0; !j->total && i < from->series; i++) counted[i] += weight[b] * count[i];
    }
    const double *by = j->total ? j->total : counted;
    for (int i = 0; i < from->series; i++) mean[i] = by[i] > 0 ? mean[i] / by[i] : NAN;
}

static fr_status resample_shard(void *job, int64_t shard, int worker, fr_error *err) {
    const resample_job *j = job;
    (void)err;
    double *weight = j->scratch + worker * (j->blocks->blocks + j->blocks->series);
    int64_t from = shard * SHARD, to = from + SHARD;
    if (to > j->how.resamples) to = j->how.resamples;
    for (int64_t number = from; number < to; number++)
        resample(j, number, weight, weight + j->blocks->blocks);
    return FR_OK;
}

static fr_status run(resample_job *job, const fr_context *context, const char *stage,
                     fr_error *err) {
    int64_t each = job->blocks->blocks + job->blocks->series;
    fr_context team = context_team(context, 0);
    TRY(ALLOCATE(job->scratch, team.threads * each, err));
    shard_stage told = {stage, job->how.resamples, "resamples"};
    fr_status status =
        shards_run(&team, &told, (told.total + SHARD - 1) / SHARD, resample_shard, job, err);
    free(job->scratch);
    return status;
}

fr_status bootstrap_means(const block_sums *blocks, resampling how, const fr_context *context,
                          double *out, fr_error *err) {
    resample_job job = {.blocks = blocks, .how = how, .weigh = bootstrap_draw, .out = out};
    return run(&job, context, "bootstrap", err);
}

fr_status bootstrap_flips(const block_sums *blocks, resampling how, const fr_context *context,
                          double *out, fr_error *err) {
    double *total;
    TRY(ALLOCATE(total, blocks->series, err));
    for (int64_t b = 0; b < blocks->blocks; b++)
        for (int i = 0; i < blocks->series; i++) total[i] += blocks->count[b * blocks->series + i];
    resample_job job = {
        .blocks = blocks, .how = how, .weigh = bootstrap_sign, .total = total, .out = out};
    fr_status status = run(&job, context, "permutations", err);
    free(total);
    return status;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int64_t count, double q) {
    double place = q * (double)(count - 1), low = floor(place);
    int64_t at = (int64_t)low;
    if (at + 1 >= count) return sorted[count - 1];
    return sorted[at] + (place - low) * (sorted[at + 1] - sorted[at]);
}

fr_interval bootstrap_interval(double *values, int64_t count, double level) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i])) values[kept++] = values[i];
    if (!kept) return (fr_interval){NAN, NAN};
    qsort(values, (size_t)kept, sizeof *values, ascending);
    return (fr_interval){quantile(values, kept, (1 - level) / 2),
                         quantile(values, kept, (1 + level) / 2)};
}
