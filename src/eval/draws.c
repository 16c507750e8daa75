/* draws.c - see draws.h. Each seed is one shard, summed in record order by one thread. */
#include "eval/draws.h"

#include "base/shards.h"
#include "eval/sampler.h"
#include "rank/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void draws_nested(const expected_pool *pool, rng_key key, int64_t event, const int64_t *k,
                  int k_count, draw_counts *out) {
    uint32_t left = (uint32_t)pool->size, above = (uint32_t)pool->above,
             tied = (uint32_t)pool->tied;
    uint32_t position = 0;
    draw_counts drawn = {0};
    for (int i = 0; i < k_count; i++) {
        while (position < k[i] && left > 0) {
            uint32_t pick = rng_below(key, (uint64_t)event, position++, left--);
            if (pick < above) {
                above--;
                drawn.above++;
            } else if (pick < above + tied) {
                tied--;
                drawn.tied++;
            }
        }
        out[i] = drawn;
    }
}

/* Run memory of fr_draws_compute. */
typedef struct draws_job {
    const sampler *s;
    const fr_record *records;
    int64_t count;
    int small;
    uint64_t seed;
    int k_count;
    int64_t *k;      /* [k_count] ascending */
    int *place;      /* [k_count] of each in the caller's list */
    int64_t *events; /* [k_count] counted */
    double *each;    /* [seeds][k_count], in the caller's order */
    const fr_context *context;
    _Atomic bool stop;
} draws_job;

enum { MOST_SEEDS = 1 << 30 }; /* times K: their results are counted by int64_t */
enum { PATIENCE = 1 << 16 };   /* steps between two checks for cancellation */

static fr_status draw_seed(void *user, int64_t shard, int worker, fr_error *err) {
    draws_job *job = user;
    draw_counts *drawn = NULL;
    fr_status status = FR_OK;
    int64_t steps = 0;
    TRY(ALLOCATE(drawn, job->k_count, err));
    rng_key key = {.seed = job->seed + (uint64_t)shard,
                   .purpose = RNG_DRAWS,
                   .epoch = (uint32_t)(job->s->part - PART_CATALOG)};
    double *sum = job->each + shard * job->k_count;
    memset(sum, 0, (size_t)job->k_count * sizeof *sum);
    for (int64_t i = 0; !status && i < job->count; i++) {
        const fr_record *r = &job->records[i];
        expected_pool pool[SAMPLER_POOLS] = {0};
        if (!r->covered || !job->s->pools(r, pool)) continue;
        steps += job->k_count + (int64_t)fmin((double)job->k[job->k_count - 1], pool[0].size);
        if (steps > PATIENCE) {
            status = shards_check(job->context, worker, &job->stop, err);
            steps = 0;
        }
        draws_nested(&pool[0], key, r->event, job->k, job->k_count, drawn);
        for (int k = 0; k < job->k_count; k++)
            if (job->s->deal(job->k[k], job->small, pool))
                sum[job->place[k]] += 2.0 / (2.0 + 2.0 * drawn[k].above + drawn[k].tied);
    }
    for (int k = 0; k < job->k_count; k++)
        sum[job->place[k]] /= job->events[k] ? (double)job->events[k] : NAN;
    free(drawn);
    return status;
}

/* A K and its place in the caller's list. */
typedef struct placed_k {
    int64_t k;
    int place;
} placed_k;

static int by_k(const void *a, const void *b) {
    const placed_k *x = a, *y = b;
    if (x->k != y->k) return x->k < y->k ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Ascending K, each with its place in the caller's list. */
static fr_status order_k(draws_job *job, const int64_t *k, arena *memory, fr_error *err) {
    placed_k *list;
    TRY(TAKE(memory, list, job->k_count, err));
    for (int i = 0; i < job->k_count; i++) list[i] = (placed_k){k[i], i};
    qsort(list, (size_t)job->k_count, sizeof *list, by_k);
    for (int i = 0; i < job->k_count; i++) {
        job->k[i] = list[i].k;
        job->place[i] = list[i].place;
    }
    return FR_OK;
}

/* The same events as the expectation has: see fr_expected_compute. */
static fr_status count_events(draws_job *job, int oov, fr_error *err) {
    int64_t uncovered = 0, steps = 0;
    for (int64_t i = 0; i < job->count; i++) {
        const fr_record *r = &job->records[i];
        expected_pool pool[SAMPLER_POOLS] = {0};
        uncovered += !r->covered && oov == FR_OOV_ZERO && !job->s->subgroup;
        if (!r->covered || !job->s->pools(r, pool)) continue;
        if ((steps += job->k_count) > PATIENCE) {
            TRY(context_check(job->context, err));
            steps = 0;
        }
        for (int k = 0; k < job->k_count; k++)
            job->events[k] += job->s->deal(job->k[k], job->small, pool);
    }
    for (int k = 0; k < job->k_count; k++)
        if (job->events[k]) job->events[k] += uncovered;
    return FR_OK;
}

static void mean_and_sd(const draws_job *job, int64_t seeds, int place, fr_draws *out) {
    double sum = 0, squares = 0;
    for (int64_t s = 0; s < seeds; s++) sum += job->each[s * job->k_count + place];
    out->mrr = sum / (double)seeds;
    for (int64_t s = 0; s < seeds; s++) {
        double away = job->each[s * job->k_count + place] - out->mrr;
        squares += away * away;
    }
    out->sd = seeds > 1 ? sqrt(squares / (double)(seeds - 1)) : NAN;
}

fr_status fr_draws_compute(const fr_record *records, int64_t count, const fr_sampling *sampling,
                           int64_t seed, int64_t seeds, const fr_context *context, fr_draws *out,
                           double *each, fr_error *err) {
    const sampler *s;
    NEED(out, err);
    TRY(sampling_check(sampling, &s, err));
    if (s->part == PART_NONE)
        return fail(err, FR_EUSAGE,
                    "draws with sampler %s, expected uniform, source-history, unseen or a cell of "
                    "the membership table: others have their exact expectation only",
                    s->definition.name);
    if (seeds < 1 || seeds > MOST_SEEDS)
        return fail(err, FR_EUSAGE, "%lld seeds, expected 1 to %lld", (long long)seeds,
                    (long long)MOST_SEEDS);
    TRY(check_records(records, count, sampling->oov, err));

    fr_status status;
    arena memory = {0};
    draws_job job = {.s = s,
                     .records = records,
                     .count = count,
                     .small = sampling->small,
                     .seed = (uint64_t)seed,
                     .k_count = sampling->k_count,
                     .each = each,
                     .context = context};
    if ((status = TAKE(&memory, job.k, job.k_count, err))) goto done;
    if ((status = TAKE(&memory, job.place, job.k_count, err))) goto done;
    if ((status = TAKE(&memory, job.events, job.k_count, err))) goto done;
    if (!each && (status = TAKE(&memory, job.each, seeds * job.k_count, err))) goto done;
    if ((status = order_k(&job, sampling->k, &memory, err))) goto done;
    if ((status = count_events(&job, sampling->oov, err))) goto done;
    shard_stage told = {"draws", seeds, "seeds"};
    if ((status = shards_run(context, &told, seeds, draw_seed, &job, err))) goto done;
    for (int k = 0; k < job.k_count; k++) {
        int place = job.place[k];
        out[place] = (fr_draws){.k = job.k[k], .events = job.events[k]};
        mean_and_sd(&job, seeds, place, &out[place]);
    }
done:
    arena_free(&memory);
    return status;
}
