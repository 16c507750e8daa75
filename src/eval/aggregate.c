/* aggregate.c - expected sampled metrics over all records (fullrank.h, chapter 11).
 *
 * A catalog has some hundred or thousand possible ranks, and a file may have a million events, so
 * most events are equal for a sampler. Events are therefore grouped by their pools in a hash table,
 * and each group is computed once per K. Groups keep the order of their first event, so sums depend
 * only on the records.
 *
 * Draws of different events are independent, so the variance of the sampled MRR over evaluation
 * seeds is the sum of the events' variances over the square of their number.
 */
#include "eval/aggregate.h"

#include "base/shards.h"
#include "eval/sampler.h"
#include "rank/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
    expected_pool pool[SAMPLER_POOLS]; /* without draws */
    int64_t events;
} group;

typedef struct groups {
    ARRAY(group) list;
    int32_t *slot;     /* [slots] number of the group + 1, 0 = free */
    size_t slots;      /* a power of two, at least twice the groups */
    int64_t uncovered; /* events outside the catalog that count as 0 */
    int32_t *of;       /* [records] group of each event, or what follows; NULL = not wanted */
} groups;
enum { NOT_COUNTED = -1, COUNTS_ZERO = -2 };

/* The numbers that distinguish groups. They are never -0 or NaN, so equal values have equal bits.
 */
typedef struct group_key {
    uint64_t bits[3 * SAMPLER_POOLS];
} group_key;

static group_key key_of(const expected_pool *pool) {
    double numbers[] = {pool[0].size, pool[0].above, pool[0].tied,
                        pool[1].size, pool[1].above, pool[1].tied};
    group_key key;
    _Static_assert(sizeof key.bits == sizeof numbers, "one word per number");
    memcpy(key.bits, numbers, sizeof numbers);
    return key;
}

static size_t hash(const group_key *key) {
    uint64_t h = 0;
    for (int i = 0; i < 3 * SAMPLER_POOLS; i++) {
        h = (h ^ key->bits[i]) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: mixes upwards */
        h ^= h >> 32;
    }
    return (size_t)h;
}

/* The slot of `pool`: taken by its group, or the free one where it belongs. */
static int32_t *find_slot(const groups *g, const expected_pool *pool) {
    group_key key = key_of(pool);
    for (size_t at = hash(&key);; at++) {
        int32_t *slot = &g->slot[at & (g->slots - 1)];
        if (!*slot) return slot;
        group_key other = key_of(g->list.at[*slot - 1].pool);
        if (memcmp(key.bits, other.bits, sizeof key.bits) == 0) return slot;
    }
}

static fr_status enlarge(groups *g, fr_error *err) {
    free(g->slot);
    g->slots = g->slots ? 4 * g->slots : 1024;
    TRY(ALLOCATE(g->slot, g->slots, err));
    for (size_t i = 0; i < g->list.count; i++) *find_slot(g, g->list.at[i].pool) = (int32_t)i + 1;
    return FR_OK;
}

static fr_status add_event(groups *g, const expected_pool *pool, int32_t *number, fr_error *err) {
    if (2 * (g->list.count + 1) > g->slots) TRY(enlarge(g, err));
    int32_t *slot = find_slot(g, pool);
    if (!*slot) {
        group fresh = {.pool = {pool[0], pool[1]}};
        ARRAY_PUSH(&g->list, fresh, err);
        *slot = (int32_t)g->list.count;
    }
    *number = *slot - 1;
    g->list.at[*number].events++;
    return FR_OK;
}

static fr_status collect(groups *g, const sampler *s, const fr_record *records, int64_t count,
                         int oov, fr_error *err) {
    for (int64_t i = 0; i < count; i++) {
        const fr_record *r = &records[i];
        expected_pool pool[SAMPLER_POOLS] = {0};
        int32_t number = NOT_COUNTED;
        if (!r->covered) {
            if (oov == FR_OOV_ZERO && !s->subgroup) number = COUNTS_ZERO;
            g->uncovered += number == COUNTS_ZERO;
        } else if (s->pools(r, pool)) {
            TRY(add_event(g, pool, &number, err));
        }
        if (g->of) g->of[i] = number;
    }
    return FR_OK;
}

/* One K: the groups' moments, computed in shards by all threads, then summed in order. */
enum { SHARD = 128 };

typedef struct moments_job {
    const groups *g;
    const sampler *s;
    const fr_sampling *sampling;
    const fr_context *context;
    _Atomic bool stop;
    int64_t k;
    expected_moments *moments; /* [groups] */
    bool *counted;             /* [groups] */
    expected_scratch *scratch; /* [threads] */
} moments_job;

static fr_status compute_shard(void *job, int64_t shard, int worker, fr_error *err) {
    moments_job *j = job;
    size_t from = (size_t)shard * SHARD, to = from + SHARD;
    if (to > j->g->list.count) to = j->g->list.count;
    for (size_t i = from; i < to; i++) {
        const group *here = &j->g->list.at[i];
        expected_pool pool[SAMPLER_POOLS] = {here->pool[0], here->pool[1]};
        j->counted[i] = j->s->deal(j->k, j->sampling->small, pool);
        if (!j->counted[i]) continue;
        TRY(shards_check(j->context, worker, &j->stop, err)); /* one may take a second */
        TRY(expected_compute(pool, pool[1].draws ? 2 : 1, j->sampling->hits,
                             j->sampling->hits_count, &j->scratch[worker], &j->moments[i], err));
    }
    return FR_OK;
}

static void sum_groups(const moments_job *j, fr_expected *out) {
    double rr = 0, variance = 0, hits[FR_HITS_MAX] = {0};
    for (size_t i = 0; i < j->g->list.count; i++) {
        int64_t events = j->g->list.at[i].events;
        const expected_moments *m = &j->moments[i];
        if (!j->counted[i]) {
            out->ineligible += events;
            continue;
        }
        rr += (double)events * m->rr;
        variance += (double)events * m->variance;
        for (int k = 0; k < j->sampling->hits_count; k++) hits[k] += (double)events * m->hits[k];
        out->events += events;
    }
    if (out->events) out->events += j->g->uncovered; /* they add nothing to the sums */
    double events = out->events ? (double)out->events : NAN;
    out->mrr = rr / events;
    out->sd = sqrt(variance) / events;
    for (int k = 0; k < j->sampling->hits_count; k++) out->hits[k] = hits[k] / events;
}

/* The expectation of every event, from its group's. */
static void spread_groups(const moments_job *j, int64_t count, double *out) {
    bool any = false; /* if it stays false, no event counts for this K */
    for (size_t i = 0; i < j->g->list.count; i++) any |= j->counted[i];
    for (int64_t i = 0; i < count; i++) {
        int32_t number = j->g->of[i];
        bool counted = number >= 0 && j->counted[number];
        out[i] = any && number == COUNTS_ZERO ? 0 : NAN;
        if (counted)
            out[i] = j->sampling->hits_count ? j->moments[number].hits[0] : j->moments[number].rr;
    }
}

/* Fills `out` or `each`; the other one is NULL. */
static fr_status compute(const fr_record *records, int64_t count, const fr_sampling *sampling,
                         const fr_context *context, fr_expected *out, double *each, fr_error *err) {
    groups g = {0};
    fr_context team = context_team(context, 0);
    moments_job job = {.g = &g, .sampling = sampling, .context = context};
    TRY(sampling_check(sampling, &job.s, err));
    TRY(check_records(records, count, sampling->oov, err));
    if (job.s->trained) TRY(check_needs_trained(records, count, job.s->definition.name, err));
    fr_status status = FR_OK;
    if (each) status = ALLOCATE(g.of, count, err);
    if (!status) status = collect(&g, job.s, records, count, sampling->oov, err);
    if (!status) status = ALLOCATE(job.moments, g.list.count, err);
    if (!status) status = ALLOCATE(job.counted, g.list.count, err);
    if (!status) status = ALLOCATE(job.scratch, team.threads, err);
    for (int i = 0; i < sampling->k_count && !status; i++) {
        job.k = sampling->k[i];
        status = context_check(context, err);
        memset(job.counted, 0, g.list.count * sizeof *job.counted);
        if (!status)
            status = shards_run(&team, NULL, ((int64_t)g.list.count + SHARD - 1) / SHARD,
                                compute_shard, &job, err);
        if (!status && each) spread_groups(&job, count, each + i * count);
        if (!status && out) {
            out[i] = (fr_expected){.k = job.k};
            sum_groups(&job, &out[i]);
        }
    }
    for (int i = 0; job.scratch && i < team.threads; i++) expected_scratch_free(&job.scratch[i]);
    free(job.scratch);
    free(job.counted);
    free(job.moments);
    free(g.of);
    free(g.slot);
    free(g.list.at);
    return status;
}

fr_status fr_expected_compute(const fr_record *records, int64_t count, const fr_sampling *sampling,
                              const fr_context *context, fr_expected *out, fr_error *err) {
    NEED(out, err);
    return compute(records, count, sampling, context, out, NULL, err);
}

fr_status aggregate_each(const fr_record *records, int64_t count, const fr_sampling *sampling,
                         const fr_context *context, double *out, fr_error *err) {
    return compute(records, count, sampling, context, NULL, out, err);
}
