/* processes.h - processes that share the work of a call (fr_processes in fullrank.h).
 *
 * Process 0 gathers; nobody else talks to each other but to say stop. Every function is called by
 * all processes at the same place, and does nothing where there is one.
 */
#ifndef FR_BASE_PROCESSES_H
#define FR_BASE_PROCESSES_H

#include "base/status.h"

/* How many share the work, and which this one is. */
int processes_count(const fr_context *context);
int processes_number(const fr_context *context);
/* Has another process failed? */
bool processes_stopped(const fr_context *context);

/* Process 0 gets the bytes of process `from`, *bytes, which are the caller's to free; that process
 * hands them in. */
fr_status processes_collect(const fr_context *context, int from, const void *mine, size_t size,
                            void **bytes, size_t *collected, fr_error *err);

#endif
