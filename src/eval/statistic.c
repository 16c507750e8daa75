/* statistic.c - see statistic.h. */
#include "eval/statistic.h"

#include "base/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD = 16 }; /* resamples one thread takes at a time */

fr_status blocks_cut(const bool *ranked, int64_t count, int64_t size, arena *memory,
                     event_blocks *out, fr_error *err) {
    *out = (event_blocks){0};
    for (int64_t e = 0; e < count; e++) out->ranked += ranked[e];
    out->blocks = (out->ranked + size - 1) / size;
    TRY(TAKE(memory, out->start, out->blocks + 1, err));
    int64_t seen = 0;
    for (int64_t e = 0; e < count; e++) {
        if (ranked[e] && seen && seen % size == 0) out->start[seen / size] = e;
        seen += ranked[e];
    }
    out->start[out->blocks] = out->blocks ? count : 0;
    for (int64_t b = 0; b < out->blocks; b++)
        if (out->start[b + 1] - out->start[b] > out->largest)
            out->largest = out->start[b + 1] - out->start[b];
    return FR_OK;
}

typedef struct statistic_job {
    const block_records *side[2]; /* the second is NULL for a bootstrap */
    const char *const *name;
    int names;
    resampling how;
    int64_t room;           /* records of the largest resample */
    double *weight;         /* [threads][blocks] worker scratch, as all here */
    fr_record *records;     /* [threads][room] */
    fr_metric_value *value; /* [threads][names] */
    double *out;
} statistic_job;

/* Appends a block of a ranking to `to` and returns its number of records. */
static int64_t put_block(const block_records *from, int64_t block, fr_record *to) {
    int64_t begin = from->cut->start[block], count = from->cut->start[block + 1] - begin;
    memcpy(to, from->records + begin, (size_t)count * sizeof *to);
    return count;
}

static fr_status draw_shard(void *job, int64_t shard, int worker, fr_error *err) {
    const statistic_job *j = job;
    const block_records *from = j->side[0];
    int64_t blocks = from->cut->blocks, to = (shard + 1) * SHARD;
    double *weight = j->weight + worker * blocks;
    fr_record *records = j->records + worker * j->room;
    fr_metric_value *value = j->value + (int64_t)worker * j->names;
    if (to > j->how.resamples) to = j->how.resamples;
    for (int64_t r = shard * SHARD; r < to; r++) {
        int64_t count = 0;
        bootstrap_draw(j->how.seed, r, blocks, weight);
        for (int64_t b = 0; b < blocks; b++)
            for (int times = (int)weight[b]; times > 0; times--)
                count += put_block(from, b, records + count);
        TRY(fr_metrics_compute(records, count, from->oov, j->name, j->names, value, err));
        for (int i = 0; i < j->names; i++) j->out[r * j->names + i] = value[i].value;
    }
    return FR_OK;
}

static fr_status swap_shard(void *job, int64_t shard, int worker, fr_error *err) {
    const statistic_job *j = job;
    const event_blocks *cut = j->side[0]->cut;
    int64_t to = (shard + 1) * SHARD;
    double *weight = j->weight + worker * cut->blocks;
    fr_record *records = j->records + worker * j->room;
    fr_metric_value *value = j->value + (int64_t)worker * j->names;
    if (to > j->how.resamples) to = j->how.resamples;
    for (int64_t r = shard * SHARD; r < to; r++) {
        bootstrap_sign(j->how.seed, r, cut->blocks, weight);
        for (int k = 0; k < 2; k++) {
            int64_t count = 0;
            for (int64_t b = 0; b < cut->blocks; b++)
                count += put_block(j->side[weight[b] < 0 ? !k : k], b, records + count);
            TRY(fr_metrics_compute(records, count, j->side[k]->oov, j->name, j->names, value, err));
            j->out[r] += k ? value->value : -value->value;
        }
    }
    return FR_OK;
}

static fr_status run(statistic_job *job, shard_function *function, const char *stage,
                     const fr_context *context, fr_error *err) {
    const event_blocks *cut = job->side[0]->cut;
    fr_context team = context_team(context, 0);
    arena scratch = {0};
    job->room = cut->blocks * cut->largest;
    fr_status status = TAKE(&scratch, job->weight, team.threads * cut->blocks, err);
    if (!status) status = TAKE(&scratch, job->records, team.threads * job->room, err);
    if (!status) status = TAKE(&scratch, job->value, (int64_t)team.threads * job->names, err);
    shard_stage told = {stage, job->how.resamples, "resamples"};
    if (!status)
        status = shards_run(&team, &told, (told.total + SHARD - 1) / SHARD, function, job, err);
    arena_free(&scratch);
    return status;
}

fr_status statistic_drawn(const block_records *from, const char *const *name, int names,
                          resampling how, const fr_context *context, double *out, fr_error *err) {
    statistic_job job = {
        .side = {from, NULL}, .name = name, .names = names, .how = how, .out = out};
    return run(&job, draw_shard, "bootstrap", context, err);
}

fr_status statistic_swapped(const block_records *first, const block_records *second,
                            const char *name, resampling how, const fr_context *context,
                            double *out, fr_error *err) {
    statistic_job job = {
        .side = {first, second}, .name = &name, .names = 1, .how = how, .out = out};
    return run(&job, swap_shard, "permutations", context, err);
}
