/* processes.c - see processes.h. */
#include "base/processes.h"

#include <stdlib.h>
#include <string.h>

int processes_count(const fr_context *context) {
    return context && context->processes ? context->processes->count : 1;
}

int processes_number(const fr_context *context) {
    return context && context->processes ? context->processes->number : 0;
}

bool processes_stopped(const fr_context *context) {
    if (processes_count(context) < 2) return false;
    const fr_processes *p = context->processes;
    return p->waiting(p->state, FR_CHANNEL_STOP);
}

fr_status processes_collect(const fr_context *context, int from, const void *mine, size_t size,
                            void **bytes, size_t *collected, fr_error *err) {
    const fr_processes *p = context->processes;
    *bytes = NULL;
    *collected = 0;
    if (p->number == from) return p->send(p->state, 0, FR_CHANNEL_WORK, mine, size, err);
    if (p->number) return FR_OK;
    return p->receive(p->state, &from, FR_CHANNEL_WORK, bytes, collected, err);
}

/* The state of one process; in the answer of process 0, the state of all. */
typedef struct verdict {
    fr_error error;
    int stopped; /* it told the others to stop; in the answer, how many did */
} verdict;

static fr_status receive_verdict(const fr_processes *p, int from, verdict *out, fr_error *err) {
    void *bytes = NULL;
    size_t size = 0;
    TRY(p->receive(p->state, &from, FR_CHANNEL_WORK, &bytes, &size, err));
    bool whole = size == sizeof *out;
    if (whole) memcpy(out, bytes, size);
    free(bytes);
    return whole ? FR_OK
                 : fail(err, FR_EINPUT, "process %d and process %d are not at the same step", from,
                        p->number);
}

/* A real failure counts more than an interruption, and that counts more than being stopped by
 * another process. */
static int weight(const verdict *v) {
    return !v->error.code ? 0 : v->error.code != FR_ECANCEL ? 3 : v->stopped ? 2 : 1;
}

/* In process 0: receives the states of all processes and sends them the answer. */
static fr_status settle(const fr_processes *p, verdict *own, fr_error *err) {
    verdict all = *own;
    int most = weight(own);
    for (int k = 1; k < p->count; k++) {
        verdict one;
        TRY(receive_verdict(p, k, &one, err));
        if (weight(&one) > most) {
            most = weight(&one);
            all.error = one.error;
        }
        all.stopped += one.stopped;
    }
    for (int k = 1; k < p->count; k++)
        TRY(p->send(p->state, k, FR_CHANNEL_WORK, &all, sizeof all, err));
    *own = all;
    return FR_OK;
}

fr_status fr_processes_agree(const fr_context *context, fr_status status, fr_error *err) {
    if (processes_count(context) < 2) return status;
    const fr_processes *p = context->processes;
    verdict mine = {.stopped = status && !processes_stopped(context)};
    int stopped = mine.stopped;
    mine.error.code = status;
    if (status && err) mine.error = *err;
    for (int k = 0; mine.stopped && k < p->count; k++)
        if (k != p->number) TRY(p->send(p->state, k, FR_CHANNEL_STOP, "", 1, err));
    if (p->number) {
        TRY(p->send(p->state, 0, FR_CHANNEL_WORK, &mine, sizeof mine, err));
        TRY(receive_verdict(p, 0, &mine, err));
    } else
        TRY(settle(p, &mine, err));
    for (int k = mine.stopped - stopped; k > 0; k--) { /* remove the stop messages */
        int any = -1;
        void *bytes = NULL;
        size_t size;
        TRY(p->receive(p->state, &any, FR_CHANNEL_STOP, &bytes, &size, err));
        free(bytes);
    }
    if (err && mine.error.code) *err = mine.error;
    return mine.error.code;
}
