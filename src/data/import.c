/* import.c - from an interaction file to a directory of columns (fullrank.h, chapter 3).
 *
 * csv reads blocks of rows, columns writes them: this file only joins the two and, for DyGLib
 * files, fetches the features from the .npy beside the table.
 */
#define _GNU_SOURCE
#include "data/import.h"
#include "base/npy.h"
#include "base/options.h"
#include "data/columns.h"
#include "data/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const fr_option fr_import_options[FR_OPTIONS_MAX] = {
    {"columns", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(fr_import, columns),
     "which column is what, if the header does not tell: source=user,destination=3,time=ts,"
     "features=5-176 (names or numbers from 1; features=none), also split=4 or split=none"},
    {"ids", FR_OPTION_CHOICE, "numbers", "numbers|words", 0, 0, offsetof(fr_import, ids),
     "ids are whole numbers, or any words (numbered in sorted order, words kept beside)"},
    {"shared-ids", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_import, shared_ids),
     "sources and destinations are the same things: one id space, and no source is its own "
     "candidate"},
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

static fr_status copy_rows(csv *c, columns *out, side_features *side, const fr_context *context,
                           fr_error *err) {
    for (;;) {
        TRY(context_check(context, err));
        TRY(csv_next(c, err));
        if (!c->block.count) return FR_OK;
        if (side->width) TRY(gather_side(side, c, err));
        TRY(columns_put(out, c->block.count, c->block.source, c->block.destination, c->block.time,
                        side->width ? side->block : c->block.feature, c->block.part, err));
        context_progress(context, "import", (uint64_t)c->in.taken, (uint64_t)c->in.size, "bytes");
    }
}

/* What the manifest says of where the events came from. */
static json_t *origin_json(const import_origin *origin, csv *c, int64_t late) {
    char sha[65];
    input_sha256(&c->in, sha);
    json_t *json =
        json_pack("{s:o, s:I, s:s, s:I}", "name", json_text(origin->name), "bytes",
                  (json_int_t)c->in.taken, "sha256", sha, "out_of_order", (json_int_t)late);
    if (!json || !origin->url || !json_object_set_new(json, "url", json_text(origin->url)))
        return json;
    json_decref(json);
    return NULL;
}

fr_status import_file(const char *input_path, const import_origin *origin, const char *output,
                      const fr_import *settings, const fr_context *context, fr_error *err) {
    word_table words[2] = {0};
    bool by_word = settings->ids == FR_IDS_WORDS;
    word_table *source_words = by_word ? &words[0] : NULL;
    word_table *destination_words = by_word ? &words[!settings->shared_ids] : NULL;
    input in;
    csv c = {.in.fd = -1};
    columns out = {0};
    side_features side = {0};

    fr_status status = input_open(&in, input_path, context, err);
    if (status)
        input_close(&in);
    else
        status = csv_open(&c, in, settings->columns, source_words, destination_words, context, err);
    if (!status && c.layout.dyglib) status = open_side(&side, input_path, c.rows_per_block, err);
    if (!status)
        status = columns_open(&out, output, settings->force,
                              side.width ? side.width : c.layout.width, c.layout.split, err);
    if (!status) status = copy_rows(&c, &out, &side, context, err);
    if (!status) {
        if (out.late)
            context_log(
                context, FR_NOTICE,
                "%s: %lld of %lld events are earlier than an event before them; sorted by time, "
                "equal times as they came",
                input_path, (long long)out.late, (long long)out.rows);
        columns_finish finish = {.source_words = source_words,
                                 .destination_words = destination_words,
                                 .input = input_path,
                                 .one_based = c.layout.dyglib && !by_word,
                                 .shared_ids = settings->shared_ids,
                                 .origin = origin_json(origin, &c, out.late)};
        status = columns_close(&out, finish, context, err);
        const int64_t *parts = out.parts.rows;
        if (!status && out.split)
            context_log(context, FR_NOTICE,
                        "%s: column split: %lld train, %lld val, %lld test events", input_path,
                        (long long)parts[PART_TRAIN], (long long)parts[PART_VAL],
                        (long long)parts[PART_TEST]);
    }
    columns_discard(&out);
    csv_close(&c);
    npy_close(&side.file);
    free(side.block);
    free(side.path);
    word_table_free(&words[0]);
    word_table_free(&words[1]);
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
