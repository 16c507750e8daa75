/* scores.c - see scores.h.
 *
 * Scores are compared as they are. float16 and float32 pass through; a float64 row whose values
 * float32 cannot hold is replaced by the ranks of its values, which keeps order and ties to the
 * last bit.
 */
#include "rank/scores.h"

#include "base/json.h"
#include "base/npy.h"
#include "data/lift.h"
#include "rank/engine.h"
#include "rank/ranking.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef ARRAY(int64_t) number_list;

typedef struct score_file {
    const fr_window *w;
    char *path;
    npy file;
    int64_t rows, columns;
    int64_t *row;                     /* [test events] row of the file, -1 = none */
    int32_t *destination;             /* [columns] */
    int32_t *place;                   /* [columns] in a row of scores, -1 = not in it */
    uint8_t *scored;                  /* [destinations] */
    bool catalog_only;                /* as in the definition */
    number_list events, destinations; /* from the files beside it; empty = the usual order */
} score_file;

/* ---- files beside it ---- */

static fr_status list_from_json(const json_t *root, const char *key, const char *path,
                                number_list *out, fr_error *err) {
    const json_t *list = json_object_get(root, key);
    if (!list) return FR_OK;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *value = json_array_get(list, k);
        if (!json_is_integer(value))
            return fail(err, FR_EINPUT, "%s: %s[%zu] is not a whole number", path, key, k);
        ARRAY_PUSH(out, json_integer_value(value), err);
    }
    if (json_array_size(list)) return FR_OK;
    return fail(err, FR_EINPUT, "%s: \"%s\" is not a list of numbers", path, key);
}

static fr_status list_from_npy(const char *path, number_list *out, fr_error *err) {
    npy file;
    TRY(npy_open_as(path, 'i', 8, 1, &file, err));
    out->count = 0;
    fr_status status = ARRAY_RESERVE(out, (size_t)file.shape[0] + 1, err);
    if (!status) {
        out->count = (size_t)file.shape[0];
        memcpy(out->at, file.data, out->count * sizeof *out->at);
    }
    npy_close(&file);
    return status;
}

static fr_status read_side(score_file *s, const char *end, fr_error *err) {
    char *path = NULL;
    fr_status status = ranking_side_path(s->path, end, &path, err);
    struct stat facts;
    json_t *root = NULL;
    if (!status && !stat(path, &facts)) {
        if (!strcmp(end, ".json")) {
            status = json_read(path, &root, err);
            if (!status) status = list_from_json(root, "events", path, &s->events, err);
            if (!status) status = list_from_json(root, "destinations", path, &s->destinations, err);
        } else {
            bool rows = !strcmp(end, ".events.npy");
            status = list_from_npy(path, rows ? &s->events : &s->destinations, err);
        }
    }
    json_decref(root);
    free(path);
    return status;
}

/* ---- which row, which column ---- */

static fr_status match_rows(score_file *s, fr_error *err) {
    const fr_window *w = s->w;
    int32_t test = w->events - w->train;
    int64_t covered = 0;
    TRY(ALLOCATE(s->row, test, err));
    for (int32_t k = 0; k < test; k++) s->row[k] = window_covered(w, w->train + k) ? covered++ : -1;
    if (!s->events.count) {
        if (s->rows == covered) return FR_OK;
        return fail(
            err, FR_EINPUT,
            "%s: %lld rows, expected %lld, one per covered test event (or a list of their stream "
            "rows beside it)",
            s->path, (long long)s->rows, (long long)covered);
    }
    if ((int64_t)s->events.count != s->rows)
        return fail(err, FR_EINPUT, "%s: %lld rows, but %zu event numbers beside it", s->path,
                    (long long)s->rows, s->events.count);
    for (int32_t k = 0; k < test; k++) s->row[k] = -1;
    for (int64_t row = 0; row < s->rows; row++) {
        int64_t event = s->events.at[row], first = w->first + w->train;
        if (event < first || event - first >= test)
            return fail(err, FR_EINPUT,
                        "%s: row %lld is of event %lld, which is not a test event (%lld to "
                        "%lld)",
                        s->path, (long long)row, (long long)s->events.at[row],
                        (long long)(w->first + w->train), (long long)(w->first + w->events - 1));
        int64_t place = event - first;
        if (s->row[place] >= 0)
            return fail(err, FR_EINPUT, "%s: rows %lld and %lld are both of event %lld", s->path,
                        (long long)s->row[place], (long long)row, (long long)s->events.at[row]);
        s->row[place] = row;
    }
    for (int32_t k = 0; k < test; k++)
        if (s->row[k] < 0 && window_covered(w, w->train + k))
            return fail(err, FR_EINPUT, "%s: no row for event %lld, a covered test event", s->path,
                        (long long)(w->first + w->train + k));
    return FR_OK;
}

static int by_id(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int32_t find_destination(const fr_window *w, int64_t id) {
    const int64_t *found =
        bsearch(&id, w->destination_id, (size_t)w->destinations, sizeof id, by_id);
    return found ? (int32_t)(found - w->destination_id) : -1;
}

static fr_status match_columns(score_file *s, fr_error *err) {
    const fr_window *w = s->w;
    TRY(ALLOCATE(s->destination, s->columns, err));
    TRY(ALLOCATE(s->scored, w->destinations, err));
    int64_t expected = s->destinations.count ? (int64_t)s->destinations.count : w->catalog_size;
    if (s->columns != expected)
        return fail(err, FR_EINPUT, "%s: %lld columns, expected %lld, %s", s->path,
                    (long long)s->columns, (long long)expected,
                    s->destinations.count ? "one per destination listed beside it"
                                          : "the catalog (or a list of destination ids beside it)");
    for (int64_t k = 0; k < s->columns; k++) {
        int32_t v =
            s->destinations.count ? find_destination(w, s->destinations.at[k]) : w->catalog[k];
        if (v < 0)
            return fail(err, FR_EINPUT,
                        "%s: column %lld is of destination %lld, which the window does not "
                        "have",
                        s->path, (long long)k, (long long)s->destinations.at[k]);
        if (s->scored[v])
            return fail(err, FR_EINPUT, "%s: destination %lld has two columns", s->path,
                        (long long)w->destination_id[v]);
        s->destination[k] = v;
        s->scored[v] = 1;
    }
    for (int32_t k = 0; k < w->catalog_size; k++)
        if (!s->scored[w->catalog[k]])
            return fail(err, FR_EINPUT, "%s: no column for destination %lld of the catalog",
                        s->path, (long long)w->destination_id[w->catalog[k]]);
    if (w->catalog_kind != CATALOG_TIME) return FR_OK;
    for (int32_t v = 0; v < w->destinations; v++)
        if (!s->scored[v])
            return fail(err, FR_EINPUT,
                        "%s: no column for destination %lld of the time-available catalog", s->path,
                        (long long)w->destination_id[v]);
    return FR_OK;
}

/* ---- scoring ---- */

static float half(uint16_t bits) { /* IEEE binary16; every value is a float32 */
    uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = bits >> 10 & 31,
             fraction = bits & 1023;
    uint32_t word;
    if (exponent == 0) { /* zero and subnormals: fraction * 2^-24 */
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    word = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* A row of doubles as floats in the same order with the same ties. */
static fr_status keep_order(const double *row, int64_t n, const int32_t *place, float *scores,
                            fr_error *err) {
    bool exact = true, finite = true;
    int32_t count = 0;
    for (int64_t k = 0; k < n; k++) {
        if (place[k] < 0) continue;
        scores[place[k]] = (float)row[k];
        exact &= (double)scores[place[k]] == row[k];
        finite &= row[k] - row[k] == 0;
    }
    if (exact || !finite) return FR_OK; /* the engine names what is not finite */
    keyed *list;
    TRY(ALLOCATE(list, n, err));
    for (int64_t k = 0; k < n; k++)
        if (place[k] >= 0) list[count++] = (keyed){row[k], place[k]};
    lift_list(list, count, 0, scores);
    free(list);
    return FR_OK;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker;
    const score_file *s = state;
    int64_t row = s->row[query->event - s->w->train];
    for (int32_t v = 0; !s->catalog_only && v < s->w->destinations; v++)
        if (!s->scored[v]) scores[v] = -FLT_MAX; /* never read as a candidate */
    if (row < 0)
        return fail(err, FR_EINPUT, "%s: no row for event %lld", s->path,
                    (long long)(s->w->first + query->event));
    const char *data = (const char *)s->file.data + (size_t)(row * s->columns) * s->file.item;
    switch (s->file.item) {
    case 2:
        for (int64_t k = 0; k < s->columns; k++)
            if (s->place[k] >= 0)
                scores[s->place[k]] = half(((const uint16_t *)(const void *)data)[k]);
        return FR_OK;
    case 4:
        for (int64_t k = 0; k < s->columns; k++)
            if (s->place[k] >= 0) scores[s->place[k]] = ((const float *)(const void *)data)[k];
        return FR_OK;
    default:
        return keep_order((const double *)(const void *)data, s->columns, s->place, scores, err);
    }
}

/* Does the file lack anything that time-available ranks need: a destination that occurs before the
 * last test event, or an event whose destination has occurred before? */
static bool catalog_only(const score_file *s) {
    const fr_window *w = s->w;
    int32_t last = window_cut(w, w->events - 1);
    for (int32_t v = 0; v < w->destinations; v++)
        if (!s->scored[v] && window_available(w, v, last)) return true;
    for (int32_t i = w->train; i < w->events; i++)
        if (s->row[i - w->train] < 0 && window_candidate(w, i, w->destination[i])) return true;
    return false;
}

static void close_file(void *state) {
    score_file *s = state;
    npy_close(&s->file);
    free(s->path);
    free(s->row);
    free(s->destination);
    free(s->place);
    free(s->scored);
    free(s->events.at);
    free(s->destinations.at);
    free(s);
}

static fr_status open_file(score_file *s, fr_error *err) {
    TRY(npy_open(s->path, &s->file, err));
    const npy_field *f = &s->file.field[0];
    if (s->file.dims != 2 || s->file.fields != 1 || f->name[0] || f->kind != 'f')
        return fail(err, FR_EINPUT,
                    "%s: expected a two-dimensional array of float16, float32 or float64", s->path);
    s->rows = s->file.shape[0];
    s->columns = s->file.shape[1];
    static const char *const sides[] = {".json", ".events.npy", ".destinations.npy"};
    for (int k = 0; k < 3; k++) TRY(read_side(s, sides[k], err));
    TRY(match_columns(s, err));
    TRY(match_rows(s, err));
    s->catalog_only = catalog_only(s);
    TRY(ALLOCATE(s->place, s->columns, err));
    for (int64_t k = 0; k < s->columns; k++) {
        int32_t v = s->destination[k];
        s->place[k] = s->catalog_only ? s->w->catalog_place[v] : v;
    }
    return FR_OK;
}

fr_status scores_open(const char *path, const fr_window *w, fr_scorer_definition *out,
                      fr_error *err) {
    score_file *s;
    TRY(ALLOCATE(s, 1, err));
    s->w = w;
    *out = (fr_scorer_definition){
        .state = s, .workers = FR_WORKERS_ANY, .score = score, .close = close_file};
    s->path = strdup(path);
    fr_status status = s->path ? open_file(s, err) : fail_memory(err, strlen(path));
    out->catalog_only = s->catalog_only;
    return status;
}
