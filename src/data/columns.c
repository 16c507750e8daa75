/* columns.c - see columns.h. */
#include "data/columns.h"

#include "data/sort.h"
#include "data/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 1 << 14,        /* rows rewritten at a time */
    RUN_ROOM = 1 << 21,     /* events sorted in memory at a time: 48 MB */
    FORGET_BYTES = 1 << 25, /* mapped bytes read before their pages are released */
};

static fr_status open_column(columns *c, npy_writer *w, const char *name, char kind, int size,
                             int64_t width, fr_error *err) {
    char *path = path_join(c->place.place, name);
    if (!path) return fail_memory(err, 0);
    fr_status status = npy_writer_open(w, path, kind, size, width, err);
    w->file.read_only = true; /* so that nobody can save over a column in use */
    free(path);
    return status;
}

static const char ours[] = " manifest.json source.npy destination.npy time.npy features.npy "
                           "source_ids.npy destination_ids.npy source_words.txt "
                           "destination_words.txt ";

/* Parts in input order, needed until rows are sorted; not part of the set. */
static const char scratch_part[] = "split.npy";

/* Made by us, so it may be replaced. */
static fr_status guard(const char *path, fr_error *err) {
    char *manifest = path_join(path, "manifest.json");
    json_t *root = NULL;
    fr_status status = manifest ? json_read(manifest, &root, NULL) : FR_ENOMEM;
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!status && (!format || strcmp(format, "fullrank-stream"))) status = FR_EFILE;
    json_decref(root);
    free(manifest);
    if (!status) return directory_only(path, ours, err);
    return fail(err, FR_EFILE,
                "%s: contains no imported stream, so it is not replaced; remove it yourself", path);
}

fr_status columns_check(const char *output, bool force, fr_error *err) {
    staging place;
    fr_status status = staging_open(&place, output, force, guard, err);
    staging_discard(&place);
    return status;
}

fr_status columns_open(columns *c, const char *output, bool force, int64_t width, bool split,
                       fr_error *err) {
    *c = (columns){.width = width, .split = split};
    TRY(staging_open(&c->place, output, force, guard, err));
    TRY(open_column(c, &c->source, "source.npy", 'i', 4, 0, err));
    TRY(open_column(c, &c->destination, "destination.npy", 'i', 4, 0, err));
    TRY(open_column(c, &c->time, "time.npy", 'f', 8, 0, err));
    if (width) TRY(open_column(c, &c->feature, "features.npy", 'f', 4, width, err));
    if (split) TRY(open_column(c, &c->part, scratch_part, 'u', 1, 0, err));
    c->part.file.scratch = true;
    c->source.file.scratch = c->destination.file.scratch = true; /* codes, most likely rewritten */
    return FR_OK;
}

static fr_status put_codes(npy_writer *w, id_table *table, int64_t count, const int64_t *id,
                           fr_error *err) {
    int32_t code[256];
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < 256 ? count - done : 256;
        for (int64_t k = 0; k < n; k++) TRY(id_code(table, id[done + k], &code[k], err));
        TRY(npy_writer_put(w, code, n, err));
        done += n;
    }
    return FR_OK;
}

/* The next row in order, `row` of the input. */
static void count_part(part_counts *p, int part, int64_t row) {
    if (part < p->last && !p->misplaced) {
        p->misplaced = row + 1;
        p->found = part;
        p->behind = p->last;
    }
    p->last = part;
    p->rows[part]++;
}

fr_status columns_put(columns *c, int64_t count, const int64_t *source, const int64_t *destination,
                      const double *time, const float *feature, const uint8_t *part,
                      fr_error *err) {
    if (!count) return FR_OK;
    if (!c->rows) c->first_time = c->last_time = time[0];
    for (int64_t k = 0; k < count; k++) {
        if (time[k] < c->last_time)
            c->late++;
        else
            c->last_time = time[k];
        if (time[k] < c->first_time) c->first_time = time[k];
    }
    for (int64_t k = 0; c->split && k < count; k++) count_part(&c->parts, part[k], c->rows + k);
    c->rows += count;
    if (c->split) TRY(npy_writer_put(&c->part, part, count, err));
    TRY(put_codes(&c->source, &c->sources, count, source, err));
    TRY(put_codes(&c->destination, &c->destinations, count, destination, err));
    TRY(npy_writer_put(&c->time, time, count, err));
    return c->width ? npy_writer_put(&c->feature, feature, count, err) : FR_OK;
}

/* ---- finishing ---- */

/* A written column, read back from the staging directory. */
static fr_status read_column(const columns *c, const char *name, char kind, int size, int dims,
                             npy *out, fr_error *err) {
    char *path = path_join(c->place.place, name);
    if (!path) return fail_memory(err, 0);
    fr_status status = npy_open_as(path, kind, size, dims, out, err);
    free(path);
    return status;
}

static size_t data_offset(const npy *n) {
    return (size_t)((const unsigned char *)n->data - n->file.bytes);
}

/* Ids met in ascending order, as in files that number them by first appearance, have their final
 * numbers from the start. */
static bool ranks_are_codes(const int32_t *rank, const id_table *table) {
    for (size_t code = 0; code < table->ids.count; code++)
        if (rank[code] != (int32_t)code) return false;
    return true;
}

/* Rows were in order: only the codes become dense indices. */
static fr_status rewrite_codes(columns *c, npy_writer *w, const char *name, const int32_t *rank,
                               fr_error *err) {
    npy codes;
    TRY(read_column(c, name, 'i', 4, 1, &codes, err));
    fr_status status = open_column(c, w, name, 'i', 4, 0, err);
    const int32_t *code = codes.data;
    static const int64_t block = BLOCK;
    for (int64_t row = 0; !status && row < c->rows; row += block) {
        int32_t dense[BLOCK];
        int64_t n = c->rows - row < block ? c->rows - row : block;
        for (int64_t k = 0; k < n; k++) dense[k] = rank[code[row + k]];
        status = npy_writer_put(w, dense, n, err);
        if ((row & ((FORGET_BYTES / 4) - 1)) == 0) mapping_forget(&codes.file, (size_t)row * 4);
    }
    if (!status) status = npy_writer_commit(w, err);
    npy_close(&codes);
    return status;
}

static fr_status gather_sorted(columns *c, sorter *s, const npy *feature, const npy *part,
                               fr_error *err) {
    size_t row_bytes = (size_t)c->width * sizeof(float), touched = 0;
    for (;;) {
        sort_event e;
        bool got;
        TRY(sorter_next(s, &e, &got, err));
        if (!got) return FR_OK;
        TRY(npy_writer_put(&c->source, &e.source, 1, err));
        TRY(npy_writer_put(&c->destination, &e.destination, 1, err));
        TRY(npy_writer_put(&c->time, &e.time, 1, err));
        if (c->split) count_part(&c->parts, ((const uint8_t *)part->data)[e.row], e.row);
        if (!c->width) continue;
        TRY(npy_writer_put(&c->feature, (const char *)feature->data + (size_t)e.row * row_bytes, 1,
                           err));
        touched += row_bytes + 4096; /* reading a row loads its page */
        if (touched >= FORGET_BYTES) {
            mapping_forget(&feature->file, feature->file.size);
            touched = 0;
        }
    }
}

/* Rows were out of order: every column is written again, sorted by time. Rows of equal time keep
 * their order. */
static fr_status rewrite_sorted(columns *c, const int32_t *source_rank,
                                const int32_t *destination_rank, const fr_context *context,
                                fr_error *err) {
    npy source = {0}, destination = {0}, time = {0}, feature = {0}, part = {0};
    c->parts = (part_counts){0}; /* counted again, in order of time */
    sorter s;
    fr_status status =
        sorter_open(&s, c->place.place, RUN_ROOM < c->rows ? RUN_ROOM : c->rows, err);
    if (!status) status = read_column(c, "source.npy", 'i', 4, 1, &source, err);
    if (!status) status = read_column(c, "destination.npy", 'i', 4, 1, &destination, err);
    if (!status) status = read_column(c, "time.npy", 'f', 8, 1, &time, err);
    if (!status && c->width) status = read_column(c, "features.npy", 'f', 4, 2, &feature, err);
    if (!status && c->split) status = read_column(c, scratch_part, 'u', 1, 1, &part, err);
    for (int64_t row = 0; !status && row < c->rows; row++) {
        if ((row & (RUN_ROOM - 1)) == 0) {
            status = context_check(context, err);
            mapping_forget(&source.file, data_offset(&source) + (size_t)row * 4);
            mapping_forget(&destination.file, data_offset(&destination) + (size_t)row * 4);
            mapping_forget(&time.file, data_offset(&time) + (size_t)row * 8);
            context_progress(context, "sort", (uint64_t)row, (uint64_t)c->rows, "events");
        }
        if (status) break;
        sort_event e = {.time = ((const double *)time.data)[row],
                        .row = row,
                        .source = source_rank[((const int32_t *)source.data)[row]],
                        .destination = destination_rank[((const int32_t *)destination.data)[row]]};
        status = sorter_put(&s, e, err);
    }
    if (!status) status = sorter_turn(&s, err);
    if (!status) status = open_column(c, &c->source, "source.npy", 'i', 4, 0, err);
    if (!status) status = open_column(c, &c->destination, "destination.npy", 'i', 4, 0, err);
    if (!status) status = open_column(c, &c->time, "time.npy", 'f', 8, 0, err);
    if (!status && c->width)
        status = open_column(c, &c->feature, "features.npy", 'f', 4, c->width, err);
    if (!status) status = gather_sorted(c, &s, &feature, &part, err);
    if (!status) status = npy_writer_commit(&c->source, err);
    if (!status) status = npy_writer_commit(&c->destination, err);
    if (!status) status = npy_writer_commit(&c->time, err);
    if (!status && c->width) status = npy_writer_commit(&c->feature, err);
    npy_close(&source);
    npy_close(&destination);
    npy_close(&time);
    npy_close(&feature);
    npy_close(&part);
    sorter_close(&s);
    return status;
}

static fr_status write_ids(columns *c, const char *name, const id_table *table, fr_error *err) {
    npy_writer w = {0};
    fr_status status = open_column(c, &w, name, 'i', 8, 0, err);
    if (!status) status = npy_writer_put(&w, table->ids.at, (int64_t)table->ids.count, err);
    if (!status) status = npy_writer_commit(&w, err);
    npy_writer_discard(&w);
    return status;
}

/* Ids that are words: the k-th word in byte order gets id k; the words go to a text file. */
static fr_status number_words(columns *c, id_table *table, const word_table *words,
                              const char *name, fr_error *err) {
    int64_t *order = NULL, *place = NULL;
    writer w = {0};
    char *path = path_join(c->place.place, name);
    size_t n = words->start.count;
    fr_status status = path ? word_table_sort(words, &order, err) : fail_memory(err, 0);
    if (!status) status = ALLOCATE(place, n, err);
    if (!status) status = writer_open(&w, path, err);
    w.read_only = true;
    for (size_t k = 0; !status && k < n; k++) {
        const char *word = word_text(words, order[k]);
        place[order[k]] = (int64_t)k;
        status = writer_put(&w, word, strlen(word), err);
        if (!status) status = writer_put(&w, "\n", 1, err);
    }
    if (!status) status = writer_commit(&w, err);
    for (size_t k = 0; !status && k < table->ids.count; k++)
        table->ids.at[k] = place[table->ids.at[k]];
    writer_discard(&w);
    free(order);
    free(place);
    free(path);
    return status;
}

/* DyGLib numbers sources from 1 and destinations after them (or, if the roles are the same things,
 * both from 1). This is undone here, so that the same events give the same columns in every format.
 */
static void undo_one_based(columns *c, bool *shared) {
    size_t sources = c->sources.ids.count, destinations = c->destinations.ids.count;
    int64_t *source = c->sources.ids.at, *destination = c->destinations.ids.at; /* ascending */
    if (source[0] < 1 || destination[0] < 1) return; /* not as described */
    int64_t shift = 1;
    if (destination[0] > source[sources - 1])
        shift = source[sources - 1] + 1;
    else
        *shared = true;
    for (size_t k = 0; k < destinations; k++) destination[k] -= shift;
    for (size_t k = 0; k < sources; k++) source[k] -= 1;
}

/* Parts that overlap in time are not a split. */
static fr_status check_split(const columns *c, const char *input, fr_error *err) {
    static const char *const names[] = {"train", "val", "test"};
    const part_counts *p = &c->parts;
    if (!p->misplaced) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: event %lld (from 1, in the order of the file) is in part %s, but comes after "
                "one of part %s in order of time; expected train, val, test one after the other "
                "(option columns: split=none leaves the split out)",
                input, (long long)p->misplaced, names[p->found], names[p->behind]);
}

/* Adds a value, which may be NULL when out of memory, to *root; frees both if that fails. */
static void add_entry(json_t **root, const char *key, json_t *value) {
    if (!*root || !json_object_set_new(*root, key, value)) return;
    json_decref(*root);
    *root = NULL;
}

static fr_status write_manifest(columns *c, columns_finish *finish, const fr_context *context,
                                fr_error *err) {
    char sha[65];
    column_record record[COLUMN_FILES] = {0};
    for (int k = 0; k < COLUMN_FILES; k++)
        record[k].there = k < COLUMN_FEATURES ||
                          (k == COLUMN_FEATURES ? c->width > 0 : finish->source_words != NULL);
    TRY(verify_record(c->place.place, record, sha, context, err));
    char *path = path_join(c->place.place, "manifest.json");
    if (!path) return fail_memory(err, 0);
    fr_version v = fr_version_get();
    json_t *root = json_pack(
        "{s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:{s:f, s:f}, s:b, s:b, s:s, s:o, s:{s:s, s:s}}", /**/
        "format", "fullrank-stream", "version", 1, "source", finish->origin, "events",
        (json_int_t)c->rows, "sources", (json_int_t)c->sources.ids.count, "destinations",
        (json_int_t)c->destinations.ids.count, "feature_width", (json_int_t)c->width, "time",
        "first", c->first_time, "last", c->last_time, "shared_ids", finish->shared_ids, "words",
        finish->source_words != NULL, "sha256", sha, "files", verify_to_json(record), "tool",
        "version", v.version, "commit", v.commit);
    finish->origin = NULL; /* json_pack took it */
    if (root && c->split)
        add_entry(&root, "split",
                  json_pack("{s:I, s:I}", "train", (json_int_t)c->parts.rows[PART_TRAIN], "val",
                            (json_int_t)c->parts.rows[PART_VAL]));
    if (root && finish->synth) {
        add_entry(&root, "synth", finish->synth);
        finish->synth = NULL;
    }
    fr_status status = json_write(path, root, err);
    if (!status) verify_set_times(c->place.place, record);
    free(path);
    return status;
}

/* The scratch column is not part of the set. */
static void drop_parts(columns *c) {
    char *path = path_join(c->place.place, scratch_part);
    npy_writer_discard(&c->part);
    if (path) (void)unlink(path); /* not there if rows were in order */
    free(path);
}

static fr_status finish_columns(columns *c, columns_finish *finish, const fr_context *context,
                                fr_error *err) {
    int32_t *source_rank = NULL, *destination_rank = NULL;
    fr_status status = FR_OK;
    if (finish->source_words)
        status = number_words(c, &c->sources, finish->source_words, "source_words.txt", err);
    if (!status && finish->destination_words)
        status = number_words(c, &c->destinations, finish->destination_words,
                              "destination_words.txt", err);
    if (!status) status = id_table_sort(&c->sources, &source_rank, err);
    if (!status) status = id_table_sort(&c->destinations, &destination_rank, err);
    if (!status && finish->one_based) undo_one_based(c, &finish->shared_ids);

    /* Files that are written again need no sync now. */
    bool late = c->late > 0;
    bool source_again = !status && !late && !ranks_are_codes(source_rank, &c->sources);
    bool destination_again =
        !status && !late && !ranks_are_codes(destination_rank, &c->destinations);
    c->time.file.scratch = c->feature.file.scratch = late;
    c->source.file.scratch = late || source_again;
    c->destination.file.scratch = late || destination_again;
    if (!status) status = npy_writer_commit(&c->source, err);
    if (!status) status = npy_writer_commit(&c->destination, err);
    if (!status) status = npy_writer_commit(&c->time, err);
    if (!status && c->width) status = npy_writer_commit(&c->feature, err);
    if (!status && late && c->split) status = npy_writer_commit(&c->part, err);
    if (!status && late) status = rewrite_sorted(c, source_rank, destination_rank, context, err);
    if (c->split) drop_parts(c);
    if (!status && c->split) status = check_split(c, finish->input, err);
    if (!status && source_again)
        status = rewrite_codes(c, &c->source, "source.npy", source_rank, err);
    if (!status && destination_again)
        status = rewrite_codes(c, &c->destination, "destination.npy", destination_rank, err);
    if (!status) status = write_ids(c, "source_ids.npy", &c->sources, err);
    if (!status) status = write_ids(c, "destination_ids.npy", &c->destinations, err);
    if (!status) status = write_manifest(c, finish, context, err);
    if (!status) status = context_check(context, err);
    if (!status) status = staging_commit(&c->place, err);
    free(source_rank);
    free(destination_rank);
    return status;
}

fr_status columns_close(columns *c, columns_finish finish, const fr_context *context,
                        fr_error *err) {
    fr_status status = finish_columns(c, &finish, context, err);
    json_decref(finish.origin);
    json_decref(finish.synth);
    return status;
}

void columns_discard(columns *c) {
    npy_writer_discard(&c->source);
    npy_writer_discard(&c->destination);
    npy_writer_discard(&c->time);
    npy_writer_discard(&c->feature);
    npy_writer_discard(&c->part);
    id_table_free(&c->sources);
    id_table_free(&c->destinations);
    staging_discard(&c->place);
}
