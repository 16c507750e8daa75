/* shards.c - see shards.h. */
#include "base/shards.h"

#include "base/memory.h"
#include "base/os.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct team {
    const fr_context *context;
    const shard_stage *stage; /* of the only phase */
    int phases;
    const shard_phase *phase;
    void *job;
    uint64_t turns;        /* phases of all rounds */
    _Atomic uint64_t next; /* turn << 32 | the next shard of it */
    _Atomic int64_t done;  /* shards of the turn */
    int64_t told;          /* shards last reported as done, by the calling thread */
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
    uint64_t total = (uint64_t)t->stage->total, count = (uint64_t)t->phase->count;
    uint64_t part = (uint64_t)((double)total * (double)done / (double)count);
    context_progress(t->context, t->stage->name, (uint64_t)done == count ? total : part, total,
                     t->stage->unit);
}

/* The first turn from `turn` on that has shards; t->turns = none. */
static uint64_t busy_turn(const team *t, uint64_t turn) {
    while (turn < t->turns && !t->phase[turn % (uint64_t)t->phases].count) turn++;
    return turn;
}

/* The next turn that has shards may begin. */
static void next_turn(team *t, uint64_t turn) {
    turn = busy_turn(t, turn);
    atomic_store(&t->done, 0);
    atomic_store(&t->next, turn << 32);
}

static void do_shard(member *me, uint64_t turn, int64_t shard) {
    team *t = me->team;
    const shard_phase *phase = &t->phase[turn % (uint64_t)t->phases];
    me->failed_shard = shard;
    me->status = phase->function(t->job, shard, me->worker, &me->error);
    if (!me->status && me->worker == 0) me->status = context_check(t->context, &me->error);
    if (me->status) {
        atomic_store(&t->stop, true);
        return;
    }
    int64_t done = atomic_fetch_add(&t->done, 1) + 1;
    if (me->worker == 0) tell(t, done);
    if (done == phase->count) next_turn(t, turn + 1);
}

static void wait_a_little(int *asked) {
    enum { PATIENCE = 2000 };
    if (++*asked > PATIENCE) {
        sched_yield(); /* there may be more threads than cores */
    } else {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

static void *work(void *argument) {
    member *me = argument;
    team *t = me->team;
    int asked = 0;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        uint64_t next = atomic_load(&t->next), turn = next >> 32;
        if (turn >= t->turns) break;
        int64_t shard = (int64_t)(next & UINT32_MAX);
        int64_t count = t->phase[turn % (uint64_t)t->phases].count;
        if (shard >= count || (count == 1 && me->worker)) {
            if (busy_turn(t, turn + 1) >= t->turns) break; /* nothing to wait for */
            wait_a_little(&asked);
        } else if (atomic_compare_exchange_weak(&t->next, &next, next + 1)) {
            do_shard(me, turn, shard);
            asked = 0;
        }
    }
    return NULL;
}

static fr_status run(team *t, fr_error *err) {
    int threads = context_threads(t->context);
    next_turn(t, 0);
    int64_t count = 0; /* of the longest phase */
    for (int p = 0; p < t->phases; p++)
        if (t->phase[p].count > count) count = t->phase[p].count;
    if (threads > count) threads = count > 0 ? (int)count : 1;
    member *members;
    TRY(ALLOCATE(members, threads, err));
    for (int i = 0; i < threads; i++) {
        members[i].team = t;
        members[i].worker = i;
        /* If a thread cannot start, the others take its shards. */
        if (i > 0) members[i].started = !os_thread(&members[i].thread, work, &members[i]);
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

fr_status shards_check(const fr_context *context, int worker, _Atomic bool *stop, fr_error *err) {
    if (worker) return atomic_load(stop) ? fail(err, FR_ECANCEL, "interrupted") : FR_OK;
    fr_status status = context_check(context, err);
    if (status) atomic_store(stop, true);
    return status;
}

fr_status shards_run(const fr_context *context, const shard_stage *stage, int64_t count,
                     shard_function *function, void *job, fr_error *err) {
    shard_phase only = {count, function};
    team t = {
        .context = context, .stage = stage, .phases = 1, .phase = &only, .job = job, .turns = 1};
    return run(&t, err);
}

fr_status shards_run_rounds(const fr_context *context, int64_t rounds, int phases,
                            const shard_phase *phase, void *job, fr_error *err) {
    team t = {.context = context,
              .phases = phases,
              .phase = phase,
              .job = job,
              .turns = (uint64_t)rounds * (uint64_t)phases};
    return run(&t, err);
}
