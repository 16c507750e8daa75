/* shards.h - parallel work whose results do not depend on the number of threads.
 *
 * The caller cuts the work into shards that depend only on the problem. One thread does a whole
 * shard and writes only its results, so it does not matter which thread takes which shard. These
 * are plain POSIX threads: they start in microseconds, and thread sanitizers understand them.
 */
#ifndef FR_BASE_SHARDS_H
#define FR_BASE_SHARDS_H

#include "base/context.h"

/* Does shard number `shard` as worker `worker` (0..threads-1, for scratch memory). */
typedef fr_status shard_function(void *job, int64_t shard, int worker, fr_error *err);

/* The unit of progress messages: all shards together are `total` things called `unit`, such as
 * events. */
typedef struct shard_stage {
    const char *name;
    int64_t total;
    const char *unit;
} shard_stage;

/* Runs shards 0..count-1. Stops early at the first failure or when the context is cancelled (the
 * calling thread asks between its shards). If several shards fail, the failure with the smallest
 * number is reported. Progress is reported under `stage` (NULL = silent). */
fr_status shards_run(const fr_context *context, const shard_stage *stage, int64_t count,
                     shard_function *function, void *job, fr_error *err);

/* For long shards: call it now and then inside a shard, with a `stop` that all shards of the job
 * share. Worker 0 runs in the calling thread and asks the context; the others see its answer. */
fr_status shards_check(const fr_context *context, int worker, _Atomic bool *stop, fr_error *err);

/* Work in phases, where each phase needs all of the previous one. */
typedef struct shard_phase {
    int64_t count; /* below 2^32, as everywhere here */
    shard_function *function;
} shard_phase;

/* Runs the phases one after the other, and all of them `rounds` times, with the same threads. This
 * is faster than starting new threads if the work takes well under a millisecond. The calling
 * thread does a phase of one shard. Threads that wait for the end of a phase poll, except in the
 * last phase. */
fr_status shards_run_rounds(const fr_context *context, int64_t rounds, int phases,
                            const shard_phase *phase, void *job, fr_error *err);

#endif
