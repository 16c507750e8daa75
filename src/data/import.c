/* import.c - from an interaction file to a directory of columns (fullrank.h, chapter 3).
 *
 * csv reads blocks of rows, columns writes them: this file only joins the two and, for DyGLib
 * files, reads the features from the .npy of the table.
 */
#define _GNU_SOURCE
#include "data/import.h"
#include "base/npy.h"
#include "base/options.h"
#include "data/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const fr_option fr_import_options[FR_OPTIONS_MAX] = {
    {"columns", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(fr_import, columns),
     "the columns, if the header does not name them: "
     "source=user,destination=3,time=ts,features=5-176 (names or numbers from 1; "
     "features=none), also split=4 or split=none"},
    {"ids", FR_OPTION_CHOICE, "auto", "auto|numbers|words", 0, 0, offsetof(fr_import, ids),
     "ids are whole numbers, or any words (numbered in sorted order; the words are "
     "kept); auto: numbers if all ids of the file are numbers"},
    {"time-unit", FR_OPTION_CHOICE, "s", "s|ms|us|ns", 0, 0, offsetof(fr_import, time_unit),
     "unit of the times, if they are numbers; they are stored in seconds"},
    {"shared-ids", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_import, shared_ids),
     "sources and destinations are the same kind of node: they share their ids, a "
     "source is never its own candidate, and models have one history and one state per "
     "node, whatever its role"},
    OPTIONS_END(fr_import)};

/* The feature file of ml_X.csv is ml_X.npy: float64 or float32 [events + 1, width]. */
typedef struct side_features {
    char *path;
    npy file;
    int64_t rows, width;
    float *block; /* [rows_per_block, width] */
} side_features;

static size_t without_end(const char *path, size_t n, const char *end) {
    size_t e = strlen(end);
    return n > e && !strncmp(path + n - e, end, e) ? n - e : n;
}

static fr_status open_side(side_features *s, const char *input_path, int64_t rows_per_block,
                           fr_error *err) {
    size_t n = without_end(input_path, strlen(input_path), ".gz");
    n = without_end(input_path, n, ".csv");
    char *path = NULL;
    if (asprintf(&path, "%.*s.npy", (int)n, input_path) < 0) return fail_memory(err, 0);
    fr_status status = FR_OK;
    struct stat facts;
    if (!stat(path, &facts)) {
        status = npy_open(path, &s->file, err);
        const npy_field *f = &s->file.field[0];
        if (!status && (s->file.dims != 2 || s->file.fields != 1 || f->kind != 'f' || f->size < 4))
            status = fail(err, FR_EINPUT, "%s: expected a two-dimensional array of f4 or f8", path);
        if (!status) {
            s->rows = s->file.shape[0];
            s->width = s->file.shape[1];
            status = ALLOCATE(s->block, rows_per_block * s->width, err);
        }
    }
    s->path = path;
    return status;
}

static fr_status gather_side(side_features *s, const csv *c, fr_error *err) {
    for (int64_t row = 0; row < c->block.count; row++) {
        int64_t from = c->block.index[row];
        if (from >= s->rows)
            return fail(err, FR_EINPUT, "%s: idx %lld, but the feature file has only %lld rows",
                        c->in.name, (long long)from, (long long)s->rows);
        float *out = s->block + row * s->width;
        for (int64_t k = 0; k < s->width; k++)
            out[k] = s->file.field[0].size == 8
                         ? (float)((const double *)s->file.data)[from * s->width + k]
                         : ((const float *)s->file.data)[from * s->width + k];
        for (int64_t k = 0; k < s->width; k++)
            if (!isfinite(out[k]))
                return fail(err, FR_EINPUT, "%s: row %lld: feature %lld is not a finite number",
                            s->path, (long long)from, (long long)k + 1);
    }
    mapping_forget(&s->file.file, s->file.file.size);
    return FR_OK;
}

/* One reading of the file from its beginning. */
typedef struct reading {
    const char *input;
    const import_origin *origin;
    const char *output;
    const fr_import *settings;
    bool by_word;
    bool again; /* the second reading */
    const fr_context *context;
    csv c;
    columns out;
    side_features side;
    word_table words[2];
} reading;

static const double units[] = {1, 1e3, 1e6, 1e9};
static const char *const unit_names[] = {"s", "ms", "us", "ns"};

double import_unit(const fr_import *settings) { return units[settings->time_unit]; }
const char *import_unit_name(const fr_import *settings) { return unit_names[settings->time_unit]; }

static fr_status copy_rows(reading *r, fr_error *err) {
    csv *c = &r->c;
    const double unit = import_unit(r->settings);
    for (;;) {
        TRY(context_check(r->context, err));
        TRY(csv_next(c, err));
        if (!c->block.count) return FR_OK;
        if (c->times == TIMES_DATES && r->settings->time_unit)
            return fail(err, FR_EUSAGE,
                        "%s: times are dates, expected numbers with option time-unit %s", r->input,
                        import_unit_name(r->settings));
        for (int64_t row = 0; unit > 1 && row < c->block.count; row++) c->block.time[row] /= unit;
        if (r->side.width) TRY(gather_side(&r->side, c, err));
        TRY(columns_put(&r->out, c->block.count, c->block.source, c->block.destination,
                        c->block.time, r->side.width ? r->side.block : c->block.feature,
                        c->block.part, err));
        context_progress(r->context, "import", (uint64_t)c->in.taken, (uint64_t)c->in.size,
                         "bytes");
    }
}

/* What the manifest says about the origin of the events. */
static json_t *origin_json(reading *r) {
    char sha[65];
    csv *c = &r->c;
    input_sha256(&c->in, sha);
    json_t *json =
        json_pack("{s:o, s:I, s:s, s:I, s:s}", "name", json_text(r->origin->name), "bytes",
                  (json_int_t)c->in.taken, "sha256", sha, "out_of_order", (json_int_t)r->out.late,
                  "time_unit", c->times == TIMES_DATES ? "date" : import_unit_name(r->settings));
    if (!json || !r->origin->url || !json_object_set_new(json, "url", json_text(r->origin->url)))
        return json;
    json_decref(json);
    return NULL;
}

/* Present times are 1.7e9 seconds. If all times of a file are much larger, their unit is smaller:
 * 1e11 seconds are after the year 5138, but 1e11 milliseconds are in 1973. */
static void warn_unit(const char *name, const columns *out, const fr_context *context) {
    static const char *const words[] = {"", "milliseconds", "microseconds", "nanoseconds"};
    for (int unit = FR_TIME_MS; unit <= FR_TIME_NS; unit++)
        if (out->first_time >= 1e8 * units[unit] && out->last_time < 1e11 * units[unit])
            context_log(
                context, FR_WARNING,
                "%s: times from %.0f to %.0f look like Unix %s (all from %.0e to %.0e), but "
                "are taken as seconds; option time-unit %s converts them",
                name, out->first_time, out->last_time, words[unit], 1e8 * units[unit],
                1e11 * units[unit], unit_names[unit]);
}

void import_tell(const char *name, const columns *out, const fr_import *settings, bool dates,
                 const fr_context *context) {
    const int64_t *parts = out->parts.rows;
    if (out->late)
        context_log(context, FR_NOTICE,
                    "%s: %lld of %lld events are earlier than an event before them; sorted by "
                    "time; equal times keep their order",
                    name, (long long)out->late, (long long)out->rows);
    if (out->split)
        context_log(context, FR_NOTICE, "%s: column split: %lld train, %lld val, %lld test events",
                    name, (long long)parts[PART_TRAIN], (long long)parts[PART_VAL],
                    (long long)parts[PART_TEST]);
    if (!dates && !settings->time_unit) warn_unit(name, out, context);
}

static fr_status read_once(reading *r, fr_error *err) {
    word_table *source_words = r->by_word ? &r->words[0] : NULL;
    word_table *destination_words = r->by_word ? &r->words[!r->settings->shared_ids] : NULL;
    input in;
    fr_status status = input_open(&in, r->input, r->context, err);
    if (status) return input_close(&in), status;
    TRY(csv_open(&r->c, in, r->settings->columns, source_words, destination_words,
                 r->again ? NULL : r->context, err)); /* columns were reported before */
    if (r->c.layout.dyglib) TRY(open_side(&r->side, r->input, r->c.rows_per_block, err));
    TRY(columns_open(&r->out, r->output, r->settings->force,
                     r->side.width ? r->side.width : r->c.layout.width, r->c.layout.split, err));
    TRY(copy_rows(r, err));
    columns_finish finish = {.source_words = source_words,
                             .destination_words = destination_words,
                             .input = r->input,
                             .one_based = r->c.layout.dyglib && !r->by_word,
                             .shared_ids = r->settings->shared_ids,
                             .origin = origin_json(r)};
    TRY(columns_close(&r->out, finish, r->context, err));
    import_tell(r->input, &r->out, r->settings, r->c.times == TIMES_DATES, r->context);
    return FR_OK;
}

static void reading_close(reading *r) {
    columns_discard(&r->out);
    csv_close(&r->c);
    npy_close(&r->side.file);
    free(r->side.block);
    free(r->side.path);
    word_table_free(&r->words[0]);
    word_table_free(&r->words[1]);
}

fr_status import_file(const char *input_path, const import_origin *origin, const char *output,
                      const fr_import *settings, const fr_context *context, fr_error *err) {
    reading r = {.input = input_path,
                 .origin = origin,
                 .output = output,
                 .settings = settings,
                 .by_word = settings->ids == FR_IDS_WORDS,
                 .context = context,
                 .c.in.fd = -1};
    fr_error first = {0};
    fr_status status = read_once(&r, &first);
    /* An id is not a number: the file is read again with ids as words from its first row on, so the
     * kind of ids does not depend on the position of the first word. */
    bool again =
        status == FR_EINPUT && settings->ids == FR_IDS_AUTO && r.c.bad_number && !r.c.in.waits;
    int64_t line = r.c.line;
    reading_close(&r);
    if (again) {
        context_log(context, FR_NOTICE,
                    "%s:%lld: not all ids are whole numbers from 0 to 9223372036854775807; taking "
                    "ids as words (option ids: numbers "
                    "refuses them)",
                    input_path, (long long)line);
        r = (reading){.input = input_path,
                      .origin = origin,
                      .output = output,
                      .settings = settings,
                      .by_word = true,
                      .again = true,
                      .context = context,
                      .c.in.fd = -1};
        status = read_once(&r, &first);
        reading_close(&r);
    }
    if (status && err) *err = first;
    return status;
}

fr_status fr_import_file(const char *input_path, const char *output, const fr_import *settings,
                         const fr_context *context, fr_error *err) {
    fr_import own;
    NEED(input_path, err);
    NEED(output, err);
    TRY(options_settle(fr_import_options, settings, &own, sizeof own, err));
    import_origin origin = {.name = path_name(input_path)};
    return import_file(input_path, &origin, output, &own, context, err);
}
