/* scores.c - see scores.h.
 *
 * A file, or several whose rows follow each other. Files are mapped, nothing is copied.
 *
 * Scores are compared as they are. float16 and float32 pass through; a float64 row that float32
 * cannot represent is replaced by the ranks of its values, which keeps order and ties to the
 * last bit.
 */
#include "rank/scores.h"

#include "base/json.h"
#include "base/npy.h"
#include "base/remember.h"
#include "base/sha256.h"
#include "data/lift.h"
#include "rank/engine.h"
#include "rank/ranking.h"

#include <float.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef ARRAY(int64_t) number_list;

typedef struct chunk {
    npy file;
    int64_t first; /* number of its first row among all */
} chunk;

typedef struct score_file {
    const fr_window *w;
    char *path; /* as typed: a file, or a pattern */
    ARRAY(chunk) chunks;
    int64_t rows, columns; /* of all together */
    char sha256[65];
    int64_t *row;                     /* [test events] row of the file, -1 = none */
    int32_t *destination;             /* [columns] */
    int32_t *place;                   /* [columns] in a row of scores, -1 = not in it */
    bool straight;                    /* column k has place k, and there are no others */
    uint8_t *scored;                  /* [destinations] */
    bool some;                        /* not all covered events have rows: they are of a sample */
    bool catalog_only;                /* as in the definition */
    number_list events, destinations; /* from the accompanying files; empty = the usual order */
} score_file;

/* ---- accompanying files ---- */

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

/* What the accompanying files of a score file say. */
typedef struct sides {
    number_list events, destinations; /* empty = nothing */
} sides;

static fr_status read_side(sides *to, const char *file, const char *end, fr_error *err) {
    char *path = NULL;
    fr_status status = ranking_side_path(file, end, &path, err);
    struct stat facts;
    json_t *root = NULL;
    if (!status && !stat(path, &facts)) {
        if (!strcmp(end, ".json")) {
            status = json_read(path, &root, err);
            if (!status) status = list_from_json(root, "events", path, &to->events, err);
            if (!status)
                status = list_from_json(root, "destinations", path, &to->destinations, err);
        } else {
            bool rows = !strcmp(end, ".events.npy");
            status = list_from_npy(path, rows ? &to->events : &to->destinations, err);
        }
    }
    json_decref(root);
    free(path);
    return status;
}

/* Adds the lists of one file. If there are several files, all or none of them must have a list of
 * events, and their columns must be the same. */
static fr_status add_sides(score_file *s, const sides *of, const char *path, int64_t rows,
                           fr_error *err) {
    bool first = s->chunks.count == 1;
    if (of->events.count && (int64_t)of->events.count != rows)
        return fail(err, FR_EINPUT, "%s: %lld rows, but %zu event numbers beside it", path,
                    (long long)rows, of->events.count);
    if (!first && !s->events.count != !of->events.count && rows)
        return fail(err, FR_EINPUT, "%s: some files have a list of events beside them, others none",
                    path);
    for (size_t k = 0; k < of->events.count; k++) ARRAY_PUSH(&s->events, of->events.at[k], err);
    if (first)
        for (size_t k = 0; k < of->destinations.count; k++)
            ARRAY_PUSH(&s->destinations, of->destinations.at[k], err);
    bool same = of->destinations.count == s->destinations.count;
    for (size_t k = 0; same && k < of->destinations.count; k++)
        same = of->destinations.at[k] == s->destinations.at[k];
    if (same) return FR_OK;
    return fail(err, FR_EINPUT, "%s: its list of destinations differs from that of the first file",
                path);
}

/* ---- files ---- */

static fr_status open_chunk(score_file *s, const char *path, fr_error *err) {
    static const char *const ends[] = {".json", ".events.npy", ".destinations.npy"};
    npy file;
    TRY(npy_open(path, &file, err));
    ARRAY_PUSH(&s->chunks, ((chunk){file, s->rows}), err);
    TRY(scores_check(&file, path, err));
    if (s->chunks.count > 1 && file.shape[1] != s->columns)
        return fail(err, FR_EINPUT, "%s: %lld columns, expected %lld as in the first file", path,
                    (long long)file.shape[1], (long long)s->columns);
    s->rows += file.shape[0];
    s->columns = file.shape[1];
    sides of = {0};
    fr_status status = FR_OK;
    for (int k = 0; !status && k < 3; k++) status = read_side(&of, path, ends[k], err);
    if (!status) status = add_sides(s, &of, path, file.shape[0], err);
    free(of.events.at);
    free(of.destinations.at);
    return status;
}

/* part-2 comes before part-10: runs of digits count as numbers. */
static int by_number(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    for (; *x && *y; x++, y++) {
        size_t m = strspn(x, "0123456789"), n = strspn(y, "0123456789");
        if (m && n) {
            while (m && *x == '0') x++, m--;
            while (n && *y == '0') y++, n--;
            int order = m != n ? (m > n) - (m < n) : strncmp(x, y, m);
            if (order) return order;
            x += m, y += n;
            if (!*x || !*y) break;
        }
        if (*x != *y) break;
    }
    int order = (unsigned char)*x - (unsigned char)*y;
    return order ? order : strcmp(*(char *const *)a, *(char *const *)b); /* part-01, part-1 */
}

static fr_status open_chunks(score_file *s, fr_error *err) {
    struct stat facts;
    if (!strpbrk(s->path, "*?") || !stat(s->path, &facts)) return open_chunk(s, s->path, err);
    glob_t found = {0};
    int result = glob(s->path, GLOB_NOSORT, NULL, &found);
    fr_status status = result == 0 ? FR_OK
                       : result == GLOB_NOSPACE
                           ? fail_memory(err, 0)
                           : fail(err, FR_EFILE, "%s: no file has such a name", s->path);
    if (!status) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_number);
    for (size_t k = 0; !status && k < found.gl_pathc; k++) {
        size_t length = strlen(
            found.gl_pathv[k]); /* lists of events and destinations are not parts of the scores */
        const char *name = found.gl_pathv[k];
        bool list = (length > 11 && !strcmp(name + length - 11, ".events.npy")) ||
                    (length > 17 && !strcmp(name + length - 17, ".destinations.npy"));
        if (!list) status = open_chunk(s, name, err);
    }
    globfree(&found);
    return status;
}

/* The hash of the file; of several files, the hash of their hashes in order. */
static fr_status hash_chunks(score_file *s, fr_error *err) {
    sha256 all;
    TRY(remember_sha256(&s->chunks.at[0].file.file, s->sha256, err));
    if (s->chunks.count == 1) return FR_OK;
    TRY(sha256_start(&all, err));
    fr_status status = FR_OK;
    for (size_t k = 0; !status && k < s->chunks.count; k++) {
        status = remember_sha256(&s->chunks.at[k].file.file, s->sha256, err);
        if (!status) sha256_add(&all, s->sha256, 64);
    }
    sha256_end(&all, status ? NULL : s->sha256);
    return status;
}

static const void *row_at(const score_file *s, int64_t row, const npy **file) {
    size_t low = 0, high = s->chunks.count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (s->chunks.at[middle].first <= row)
            low = middle;
        else
            high = middle;
    }
    const chunk *c = &s->chunks.at[low];
    *file = &c->file;
    return (const char *)c->file.data + (size_t)((row - c->first) * s->columns) * c->file.item;
}

/* ---- which row, which column ---- */

static fr_status match_rows(score_file *s, fr_error *err) {
    const fr_window *w = s->w;
    int32_t test = w->to - w->from;
    int64_t covered = 0;
    TRY(ALLOCATE(s->row, test, err));
    for (int32_t k = 0; k < test; k++) s->row[k] = window_covered(w, w->from + k) ? covered++ : -1;
    if (!s->events.count) {
        if (s->rows == covered) return FR_OK;
        return fail(
            err, FR_EINPUT,
            "%s: %lld rows, expected %lld, one per covered test event (or a list of their stream "
            "rows beside it)",
            s->path, (long long)s->rows, (long long)covered);
    }
    for (int32_t k = 0; k < test; k++) s->row[k] = -1;
    for (int64_t row = 0; row < s->rows; row++) {
        int64_t event = s->events.at[row], first = w->first + w->from;
        if (event < first || event - first >= test)
            return fail(err, FR_EINPUT,
                        "%s: row %lld is of event %lld, which is not a test event (%lld to "
                        "%lld)",
                        s->path, (long long)row, (long long)s->events.at[row],
                        (long long)(w->first + w->from), (long long)(w->first + w->to - 1));
        int64_t place = event - first;
        if (s->row[place] >= 0)
            return fail(err, FR_EINPUT, "%s: rows %lld and %lld are both of event %lld", s->path,
                        (long long)s->row[place], (long long)row, (long long)s->events.at[row]);
        s->row[place] = row;
    }
    for (int32_t k = 0; k < test; k++) s->some |= s->row[k] < 0 && window_covered(w, w->from + k);
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

fr_status scores_check(const npy *file, const char *path, fr_error *err) {
    const npy_field *f = &file->field[0];
    if (file->dims == 2 && file->fields == 1 && !f->name[0] && f->kind == 'f') return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: expected a two-dimensional array of float16, float32 or float64", path);
}

fr_status scores_take_row(const npy *type, const void *row, int64_t columns, const int32_t *place,
                          float *scores, fr_error *err) {
    switch (type->item) {
    case 2:
        for (int64_t k = 0; k < columns; k++)
            if (place[k] >= 0) scores[place[k]] = half(((const uint16_t *)row)[k]);
        return FR_OK;
    case 4:
        for (int64_t k = 0; k < columns; k++)
            if (place[k] >= 0) scores[place[k]] = ((const float *)row)[k];
        return FR_OK;
    default: return keep_order(row, columns, place, scores, err);
    }
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker;
    const score_file *s = state;
    const npy *file;
    int64_t row = s->row[query->event - s->w->from];
    for (int32_t v = 0; !s->catalog_only && v < s->w->destinations; v++)
        if (!s->scored[v]) scores[v] = -FLT_MAX; /* never read as a candidate */
    if (row < 0)
        return fail(err, FR_EINPUT, "%s: no row for event %lld, which is to be ranked", s->path,
                    (long long)(s->w->first + query->event));
    const void *data = row_at(s, row, &file);
    if (s->straight && file->item == sizeof *scores) {
        memcpy(scores, data, (size_t)s->columns * sizeof *scores);
        return FR_OK;
    }
    return scores_take_row(file, data, s->columns, s->place, scores, err);
}

/* True if a candidate of the time-available catalog has no column. */
static bool lack_columns(const fr_window *w, const uint8_t *scored) {
    int32_t last = window_cut(w, w->to - 1);
    for (int32_t v = 0; v < w->destinations; v++) {
        bool has = scored ? scored[v] : w->catalog_place[v] >= 0;
        if (!has && window_available(w, v, last)) return true;
    }
    return false;
}

bool scores_lack(const fr_window *w, const uint8_t *scored, const int64_t *row) {
    if (lack_columns(w, scored)) return true;
    for (int32_t i = w->from; i < w->to; i++) {
        bool has = row ? row[i - w->from] >= 0 : window_covered(w, i);
        if (!has && window_candidate(w, i, w->destination[i])) return true;
    }
    return false;
}

static void close_file(void *state) {
    score_file *s = state;
    for (size_t k = 0; k < s->chunks.count; k++) npy_close(&s->chunks.at[k].file);
    free(s->chunks.at);
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
    TRY(open_chunks(s, err));
    TRY(hash_chunks(s, err));
    TRY(match_columns(s, err));
    TRY(match_rows(s, err));
    s->catalog_only =
        s->some ? lack_columns(s->w, s->scored) : scores_lack(s->w, s->scored, s->row);
    TRY(ALLOCATE(s->place, s->columns, err));
    s->straight = s->columns == (s->catalog_only ? s->w->catalog_size : s->w->destinations);
    for (int64_t k = 0; k < s->columns; k++) {
        int32_t v = s->destination[k];
        s->place[k] = s->catalog_only ? s->w->catalog_place[v] : v;
        s->straight &= s->place[k] == k;
    }
    return FR_OK;
}

fr_status scores_open(const char *path, const fr_window *w, fr_scorer_definition *out,
                      fr_error *err) {
    score_file *s;
    TRY(ALLOCATE(s, 1, err));
    s->w = w;
    *out = (fr_scorer_definition){.state = s,
                                  .workers = FR_WORKERS_ANY,
                                  .score = score,
                                  .close = close_file,
                                  .sha256 = s->sha256};
    s->path = strdup(path);
    fr_status status = s->path ? open_file(s, err) : fail_memory(err, strlen(path));
    out->catalog_only = s->catalog_only;
    return status;
}
