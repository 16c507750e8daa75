/* shards.c - see shards.h. */
#include "base/shards.h"

#include "base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct team {
    const fr_context *context;
    const char *stage; /* of the only phase */
    int phases;
    const shard_phase *phase;
    void *job;
    struct {
        _Atomic int64_t next, done;
    } at[SHARD_PHASES];
    int64_t told; /* shards last reported as done, by the calling thread */
    _Atomic bool stop;
} team;

typedef struct member {
    team *team;
    int worker;
    pthread_t thread;
    bool started;
    int64_t failed_shard;
    fr_status status;
    fr_error error;
} member;

static void tell(team *t, int64_t done) {
    if (!t->stage || done == t->told) return;
    t->told = done;
    context_progress(t->context, t->stage, (uint64_t)done, (uint64_t)t->phase->count, "shards");
}

static void do_shards(member *me, int p) {
    team *t = me->team;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        int64_t shard = atomic_fetch_add_explicit(&t->at[p].next, 1, memory_order_relaxed);
        if (shard >= t->phase[p].count) break;
        me->failed_shard = shard;
        me->status = t->phase[p].function(t->job, shard, me->worker, &me->error);
        if (!me->status && me->worker == 0) me->status = context_check(t->context, &me->error);
        if (me->status) {
            atomic_store(&t->stop, true);
            break;
        }
        int64_t done = atomic_fetch_add(&t->at[p].done, 1) + 1;
        if (me->worker == 0) tell(t, done);
    }
}

/* Until all shards of a phase are done, or one has failed. */
static bool others_done(team *t, int p) {
    enum { PATIENCE = 2000 };
    for (int asked = 0; atomic_load(&t->at[p].done) < t->phase[p].count; asked++) {
        if (atomic_load(&t->stop)) return false;
        if (asked < PATIENCE) {
#ifdef __x86_64__
            __builtin_ia32_pause();
#endif
        } else {
            sched_yield(); /* there may be more threads than processors */
        }
    }
    return true;
}

static void *work(void *argument) {
    member *me = argument;
    for (int p = 0; p < me->team->phases; p++) {
        do_shards(me, p);
        if (p + 1 < me->team->phases && !others_done(me->team, p)) break;
    }
    return NULL;
}

static fr_status run(team *t, fr_error *err) {
    int threads = context_threads(t->context);
    int64_t count = 0; /* of the longest phase */
    for (int p = 0; p < t->phases; p++)
        if (t->phase[p].count > count) count = t->phase[p].count;
    if (threads > count) threads = count > 0 ? (int)count : 1;
    member *members;
    TRY(ALLOCATE(members, threads, err));
    for (int i = 0; i < threads; i++) {
        members[i].team = t;
        members[i].worker = i;
        /* A thread that cannot start is no failure: the others take its shards. */
        if (i > 0)
            members[i].started = !pthread_create(&members[i].thread, NULL, work, &members[i]);
    }
    work(&members[0]);
    const member *first = NULL;
    for (int i = 0; i < threads; i++) {
        if (members[i].started) pthread_join(members[i].thread, NULL);
        if (members[i].status && (!first || members[i].failed_shard < first->failed_shard))
            first = &members[i];
    }
    if (!first) tell(t, count);
    fr_status status = first ? first->status : FR_OK;
    if (first && err) *err = first->error;
    free(members);
    return status;
}

fr_status shards_run(const fr_context *context, const char *stage, int64_t count,
                     shard_function *function, void *job, fr_error *err) {
    shard_phase only = {count, function};
    team t = {.context = context, .stage = stage, .phases = 1, .phase = &only, .job = job};
    return run(&t, err);
}

fr_status shards_run_phases(const fr_context *context, int phases, const shard_phase *phase,
                            void *job, fr_error *err) {
    team t = {.context = context, .phases = phases, .phase = phase, .job = job};
    assert(phases <= SHARD_PHASES);
    return run(&t, err);
}
