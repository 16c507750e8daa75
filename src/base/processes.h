/* processes.h - processes that share the work of a call (fr_processes in fullrank.h).
 *
 * Process 0 collects the results; the others only exchange stop messages. All processes call every
 * function at the same place. With a single process the functions do nothing.
 */
#ifndef FR_BASE_PROCESSES_H
#define FR_BASE_PROCESSES_H

#include "base/status.h"

/* The number of processes, and the number of this one. */
int processes_count(const fr_context *context);
int processes_number(const fr_context *context);
/* True if another process has failed. */
bool processes_stopped(const fr_context *context);

/* Process 0 receives the bytes that process `from` passes; the caller frees *bytes. */
fr_status processes_collect(const fr_context *context, int from, const void *mine, size_t size,
                            void **bytes, size_t *collected, fr_error *err);

#endif
