/* negatives.c - see negatives.h.
 *
 * Lists are turned into dense numbers at once, so later changes of the file do no harm. One stamp
 * per destination finds invalid entries of a row: odd stamps are listed ids, even ones are removed
 * by the filter.
 */
#include "rank/negatives.h"

#include "base/npy.h"
#include "base/remember.h"

#include <stdlib.h>

/* A row that is being read. */
typedef struct row_reader {
    const fr_window *w;
    const char *path;
    bool repeats;
    int64_t *stamp; /* [destinations] 2 row: taken out by the filter; 2 row + 1: listed */
    int64_t row;
    int32_t event;
} row_reader;

/* The dense number of an original id, -1 if there is none. */
static int32_t find_destination(const fr_window *w, int64_t id) {
    int32_t low = 0, high = w->destinations;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (w->destination_id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->destinations && w->destination_id[low] == id ? low : -1;
}

static fr_status refuse(const row_reader *r, int64_t id, const char *reason, fr_error *err) {
    return fail(err, FR_EINPUT, "%s: row %lld (event %lld): %lld %s", r->path, (long long)r->row,
                (long long)(r->w->first + r->event), (long long)id, reason);
}

static bool in_catalog(const fr_window *w, int32_t event, int32_t v) {
    if (w->catalog_kind == CATALOG_TIME) return window_candidate(w, event, v);
    return window_listed(w, v) && v != window_self(w, w->source[event]);
}

static fr_status take_id(const row_reader *r, int64_t id, int32_t *out, fr_error *err) {
    const fr_window *w = r->w;
    int32_t v = find_destination(w, id);
    if (v < 0 || !in_catalog(w, r->event, v))
        return refuse(r, id, "is no candidate, expected ids of the catalog", err);
    if (r->stamp[v] == 2 * r->row)
        return refuse(r, id, "is taken out by the filter, expected other candidates", err);
    if (!r->repeats && v == w->destination[r->event])
        return refuse(r, id, "is the event's own destination, expected negatives", err);
    if (!r->repeats && r->stamp[v] == 2 * r->row + 1)
        return refuse(r, id, "is listed twice, expected different ids", err);
    r->stamp[v] = 2 * r->row + 1;
    *out = v;
    return FR_OK;
}

/* Adds the list of one event. */
static fr_status read_row(const row_reader *r, const int64_t *id, int64_t width, negatives *n,
                          fr_error *err) {
    const fr_window *w = r->w;
    fr_history rivals = window_rivals(w, r->event);
    int64_t at = n->at[r->row], k = 0;
    for (int32_t j = 0; j < rivals.count; j++)
        r->stamp[w->destination[rivals.event[j]]] = 2 * r->row;
    r->stamp[w->destination[r->event]] = -1; /* the filter leaves the event its own */
    for (; k < width && id[k] != -1; k++) TRY(take_id(r, id[k], &n->list[at++], err));
    for (; k < width; k++)
        if (id[k] != -1) return refuse(r, id[k], "follows -1, expected -1 to the end", err);
    n->at[r->row + 1] = at;
    return FR_OK;
}

static fr_status read_lists(negatives *n, row_reader *r, const npy *file, fr_error *err) {
    const fr_window *w = r->w;
    int64_t rows = w->to - w->from, width = file->shape[1];
    const int64_t *id = file->data;
    if (file->shape[0] != rows)
        return fail(err, FR_EINPUT,
                    "%s: lists of %lld events, expected %lld, one per event of the %s part",
                    r->path, (long long)file->shape[0], (long long)rows,
                    w->protocol.part == FR_PART_VAL ? "validation" : "test");
    TRY(ALLOCATE(n->at, rows + 1, err));
    TRY(ALLOCATE(n->list, rows * width + 1, err));
    TRY(ALLOCATE(r->stamp, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) r->stamp[v] = -1;
    for (; r->row < rows; r->row++) {
        r->event = w->from + (int32_t)r->row;
        TRY(read_row(r, id + r->row * width, width, n, err));
    }
    return FR_OK;
}

fr_status negatives_open(negatives *n, const fr_window *w, const char *path, bool repeats,
                         fr_error *err) {
    npy file;
    row_reader r = {.w = w, .path = path, .repeats = repeats};
    *n = (negatives){0};
    TRY(npy_open_as(path, 'i', 8, 2, &file, err));
    fr_status status = read_lists(n, &r, &file, err);
    if (!status) status = remember_sha256(&file.file, n->sha256, err);
    free(r.stamp);
    npy_close(&file);
    return status;
}

void negatives_close(negatives *n) {
    free(n->at);
    free(n->list);
    *n = (negatives){0};
}

negatives_counts negatives_count(const negatives *n, int32_t place, const float *scores,
                                 float positive) {
    negatives_counts c = {.n = (int32_t)(n->at[place + 1] - n->at[place])};
    const int32_t *list = n->list + n->at[place];
    for (int32_t k = 0; k < c.n; k++) {
        c.above += scores[list[k]] > positive;
        c.tied += scores[list[k]] == positive;
    }
    return c;
}
