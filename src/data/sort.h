/* sort.h - sorting more events than fit in memory.
 *
 * Events are read in runs that fit, each run is sorted and kept in a scratch file, and the runs are
 * merged through a heap. (time, row) is a total order, so the result is the stable sort by time.
 */
#ifndef FR_DATA_SORT_H
#define FR_DATA_SORT_H

#include "base/context.h"

typedef struct sort_event {
    double time;
    int64_t row; /* place in the input */
    int32_t source, destination;
} sort_event;

typedef struct sorter {
    sort_event *run;
    int64_t run_room, run_count;
    int fd; /* scratch file, deleted on opening; -1 while a single run is enough */
    const char *folder;
    struct sort_run *runs;
    int64_t run_total;
    struct sort_run **heap;
    int64_t heap_count, next; /* next: place in a single run */
} sorter;

/* The scratch file is in `folder`; run_room events are in memory at a time. */
fr_status sorter_open(sorter *s, const char *folder, int64_t run_room, fr_error *err);
fr_status sorter_put(sorter *s, sort_event e, fr_error *err);
/* Ends the input and prepares the output. */
fr_status sorter_turn(sorter *s, fr_error *err);
/* The next event in order; *got = false at the end. */
fr_status sorter_next(sorter *s, sort_event *out, bool *got, fr_error *err);
void sorter_close(sorter *s);

#endif
