/* context.h - log lines, progress and cancellation. Every context may be NULL. */
#ifndef FR_BASE_CONTEXT_H
#define FR_BASE_CONTEXT_H

#include "base/status.h"

void context_log(const fr_context *context, fr_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void context_progress(const fr_context *context, const char *stage, uint64_t done, uint64_t total,
                      const char *unit);
/* FR_ECANCEL if the caller wants to stop, otherwise FR_OK. */
fr_status context_check(const fr_context *context, fr_error *err);
/* Threads to use: the context's number, or all cores this process may run on. */
int context_threads(const fr_context *context);
/* The same context with a fixed number of threads, at most `most` (0 = no limit): for work that
 * needs memory for every thread. */
fr_context context_team(const fr_context *context, int64_t most);

#endif
