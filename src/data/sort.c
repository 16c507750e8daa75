/* sort.c - see sort.h. */
#include "data/sort.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFERED = 1 << 12 }; /* events read at once from each run while merging */

typedef struct sort_run {
    int64_t at, end; /* events left in the scratch file: [at, end) */
    sort_event *buffer;
    int64_t place, count; /* in the buffer */
} sort_run;

static int compare(const sort_event *a, const sort_event *b) {
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int compare_events(const void *a, const void *b) { return compare(a, b); }

fr_status sorter_open(sorter *s, const char *folder, int64_t run_room, fr_error *err) {
    *s = (sorter){.run_room = run_room, .fd = -1, .folder = folder};
    return ALLOCATE(s->run, run_room, err);
}

static fr_status open_scratch(sorter *s, fr_error *err) {
    char *path = path_join(s->folder, "scratch-XXXXXX");
    if (!path) return fail_memory(err, 0);
    s->fd = mkstemp(path);
    fr_status status = s->fd < 0 ? fail_errno(err, "%s: cannot be written", path) : FR_OK;
    if (s->fd >= 0) unlink(path); /* removed now, so it is gone in any case */
    free(path);
    return status;
}

/* Sorts the run in memory and appends it to the scratch file. */
static fr_status spill(sorter *s, fr_error *err) {
    if (s->fd < 0) TRY(open_scratch(s, err));
    qsort(s->run, (size_t)s->run_count, sizeof *s->run, compare_events);
    sort_run *moved = realloc(s->runs, (size_t)(s->run_total + 1) * sizeof *moved);
    if (!moved) return fail_memory(err, 0);
    s->runs = moved;
    int64_t before = s->run_total ? moved[s->run_total - 1].end : 0;
    moved[s->run_total++] = (sort_run){.at = before, .end = before + s->run_count};
    const char *bytes = (const char *)s->run;
    size_t left = (size_t)s->run_count * sizeof *s->run;
    while (left) {
        ssize_t done = write(s->fd, bytes, left);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(err, "%s: scratch file cannot be written", s->folder);
        bytes += done;
        left -= (size_t)done;
    }
    s->run_count = 0;
    return FR_OK;
}

fr_status sorter_put(sorter *s, sort_event e, fr_error *err) {
    if (s->run_count == s->run_room) TRY(spill(s, err));
    s->run[s->run_count++] = e;
    return FR_OK;
}

/* Makes sure the run has a current event, if it has any left. */
static fr_status load(sorter *s, sort_run *r, fr_error *err) {
    if (r->place < r->count || r->at == r->end) return FR_OK;
    int64_t want = r->end - r->at < BUFFERED ? r->end - r->at : BUFFERED;
    ssize_t bytes = (ssize_t)((size_t)want * sizeof *r->buffer);
    ssize_t got = pread(s->fd, r->buffer, (size_t)bytes, r->at * (off_t)sizeof *r->buffer);
    if (got != bytes) return fail_errno(err, "%s: scratch file cannot be read", s->folder);
    r->at += want;
    r->place = 0;
    r->count = want;
    return FR_OK;
}

static bool before(const sort_run *a, const sort_run *b) {
    return compare(&a->buffer[a->place], &b->buffer[b->place]) < 0;
}

static void sink(sorter *s, int64_t at) {
    for (int64_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && before(s->heap[child + 1], s->heap[child])) child++;
        if (!before(s->heap[child], s->heap[at])) return;
        sort_run *swap = s->heap[at];
        s->heap[at] = s->heap[child];
        s->heap[child] = swap;
    }
}

fr_status sorter_turn(sorter *s, fr_error *err) {
    if (s->fd < 0) { /* everything fits */
        if (s->run_count) qsort(s->run, (size_t)s->run_count, sizeof *s->run, compare_events);
        return FR_OK;
    }
    if (s->run_count) TRY(spill(s, err));
    TRY(ALLOCATE(s->heap, s->run_total, err));
    for (int64_t i = 0; i < s->run_total; i++) {
        TRY(ALLOCATE(s->runs[i].buffer, BUFFERED, err));
        TRY(load(s, &s->runs[i], err));
        s->heap[s->heap_count++] = &s->runs[i];
    }
    for (int64_t i = s->heap_count / 2; i-- > 0;) sink(s, i);
    return FR_OK;
}

fr_status sorter_next(sorter *s, sort_event *out, bool *got, fr_error *err) {
    if (s->fd < 0) {
        *got = s->next < s->run_count;
        if (*got) *out = s->run[s->next++];
        return FR_OK;
    }
    *got = s->heap_count > 0;
    if (!*got) return FR_OK;
    sort_run *least = s->heap[0];
    *out = least->buffer[least->place++];
    TRY(load(s, least, err));
    if (least->place == least->count) s->heap[0] = s->heap[--s->heap_count];
    sink(s, 0);
    return FR_OK;
}

void sorter_close(sorter *s) {
    for (int64_t i = 0; i < s->run_total; i++) free(s->runs[i].buffer);
    free(s->runs);
    free(s->heap);
    free(s->run);
    if (s->fd >= 0) close(s->fd);
    *s = (sorter){.fd = -1};
}
