/* clock.h - seconds, for spans of time. */
#ifndef FR_BASE_CLOCK_H
#define FR_BASE_CLOCK_H

#include <time.h>

static inline double clock_seconds(clockid_t which) {
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From a clock that is never set back. */
static inline double clock_now(void) { return clock_seconds(CLOCK_MONOTONIC); }

#endif
