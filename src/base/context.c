/* context.c - see context.h. */
#define _GNU_SOURCE
#include "base/context.h"

#include "base/number.h"
#include "base/os.h"
#include "base/processes.h"

#include <stdarg.h>
#include <stdio.h>

void context_log(const fr_context *context, fr_level level, const char *format, ...) {
    if (!context || !context->log) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)number_vprint(line, sizeof line, format, args);
    va_end(args);
    context->log(context->user, level, line);
}

void context_progress(const fr_context *context, const char *stage, uint64_t done, uint64_t total,
                      const char *unit) {
    if (context && context->progress) context->progress(context->user, stage, done, total, unit);
}

fr_status context_check(const fr_context *context, fr_error *err) {
    if (context && context->cancel && context->cancel(context->user))
        return fail(err, FR_ECANCEL, "interrupted");
    if (processes_stopped(context)) return fail(err, FR_ECANCEL, "another process failed");
    return FR_OK;
}

int context_threads(const fr_context *context) {
    enum { MOST_THREADS = 4096 }; /* each thread needs memory */
    int threads = context ? context->threads : 0;
    if (threads <= 0) threads = os_cores();
    return threads < 1 ? 1 : threads < MOST_THREADS ? threads : MOST_THREADS;
}

fr_context context_team(const fr_context *context, int64_t most) {
    fr_context out = context ? *context : (fr_context){0};
    out.threads = context_threads(context);
    if (most > 0 && out.threads > most) out.threads = (int)most;
    return out;
}
