/* shards.h - work over threads with results that do not depend on them.
 *
 * The caller cuts the problem into shards by the problem alone. Each shard is done whole by one
 * thread and writes only its own results; which thread takes which shard does not matter. Plain
 * POSIX threads: they start in microseconds, and thread sanitizers understand them.
 */
#ifndef FR_BASE_SHARDS_H
#define FR_BASE_SHARDS_H

#include "base/context.h"

/* Does shard number `shard` as worker `worker` (0..threads-1, for scratch memory). */
typedef fr_status shard_function(void *job, int64_t shard, int worker, fr_error *err);

/* What progress is told in: the shards together are `total` things named `unit`, such as events. */
typedef struct shard_stage {
    const char *name;
    int64_t total;
    const char *unit;
} shard_stage;

/* Runs shards 0..count-1. Stops early at the first failure or when the context is cancelled (asked
 * from the calling thread between its shards); of several failures the one with the smallest shard
 * number is reported. Progress is told under `stage` (NULL = silent). */
fr_status shards_run(const fr_context *context, const shard_stage *stage, int64_t count,
                     shard_function *function, void *job, fr_error *err);

/* For shards that take long: asked now and then from inside one, with a `stop` that the job's
 * shards share. Worker 0 runs in the calling thread and asks the context; the others see what it
 * heard. */
fr_status shards_check(const fr_context *context, int worker, _Atomic bool *stop, fr_error *err);

/* Work in phases of which each needs all of the one before. */
typedef struct shard_phase {
    int64_t count; /* below 2^32, as everywhere here */
    shard_function *function;
} shard_phase;

/* The same for phases one after the other, and all of them `rounds` times, with the same threads:
 * less than starting them anew, for work of well under a millisecond. A phase of one shard is done
 * by the calling thread. Threads that wait for the last shards of a phase keep asking, unless
 * none comes after it. */
fr_status shards_run_rounds(const fr_context *context, int64_t rounds, int phases,
                            const shard_phase *phase, void *job, fr_error *err);

#endif
