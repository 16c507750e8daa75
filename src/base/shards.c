/* shards.c - see shards.h. */
#include "base/shards.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct team {
    const fr_context *context;
    const char *stage;
    int64_t count;
    shard_function *function;
    void *job;
    _Atomic int64_t next, done;
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
    context_progress(t->context, t->stage, (uint64_t)done, (uint64_t)t->count, "shards");
}

static void *work(void *argument) {
    member *me = argument;
    team *t = me->team;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        int64_t shard = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);
        if (shard >= t->count) break;
        me->failed_shard = shard;
        me->status = t->function(t->job, shard, me->worker, &me->error);
        if (!me->status && me->worker == 0) me->status = context_check(t->context, &me->error);
        if (me->status) {
            atomic_store(&t->stop, true);
            break;
        }
        int64_t done = atomic_fetch_add(&t->done, 1) + 1;
        if (me->worker == 0) tell(t, done);
    }
    return NULL;
}

fr_status shards_run(const fr_context *context, const char *stage, int64_t count,
                     shard_function *function, void *job, fr_error *err) {
    team t = {.context = context, .stage = stage, .count = count, .function = function, .job = job};
    int threads = context_threads(context);
    if (threads > count) threads = count > 0 ? (int)count : 1;
    member *members;
    TRY(ALLOCATE(members, threads, err));
    for (int i = 0; i < threads; i++) {
        members[i].team = &t;
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
    if (!first) tell(&t, count);
    fr_status status = first ? first->status : FR_OK;
    if (first && err) *err = first->error;
    free(members);
    return status;
}
