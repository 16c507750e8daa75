/* stream.c - opening and exporting imported sets (fullrank.h, chapter 4).
 *
 * Opening checks types, lengths, ids and words, and that nothing was changed since the import
 * (verify.h). Indices and times of events are checked by their users, only for the events they
 * use: the window, which copies them, export and the oracle.
 */
#define _GNU_SOURCE
#include "data/stream.h"

#include "base/context.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/os.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static fr_status open_column(fr_stream *s, int slot, const char *folder, const char *name,
                             char kind, int size, int64_t rows, int64_t width, fr_error *err) {
    char *path = path_join(folder, name);
    if (!path) return fail_memory(err, 0);
    npy *n = &s->files[slot];
    fr_status status = npy_open_as(path, kind, size, width ? 2 : 1, n, err);
    if (!status && (n->shape[0] != rows || (width && n->shape[1] != width)))
        status =
            fail(err, FR_EINPUT, "%s: %lld rows of %lld, expected %lld of %lld as in manifest.json",
                 path, (long long)n->shape[0], (long long)(width ? n->shape[1] : 1),
                 (long long)rows, (long long)(width ? width : 1));
    free(path);
    return status;
}

/* The parts of a split, if the file had a column for it. */
static fr_status read_split(fr_stream_facts *f, const json_t *root, const char *path,
                            fr_error *err) {
    const json_t *split = json_object_get(root, "split");
    f->split_train = f->split_val = -1;
    if (!split) return FR_OK;
    const json_t *train = json_object_get(split, "train"), *val = json_object_get(split, "val");
    json_int_t a = json_integer_value(train), b = json_integer_value(val);
    if (!json_is_integer(train) || !json_is_integer(val) || a < 0 || a > f->events || b < 0 ||
        b > f->events - a)
        return fail(err, FR_EINPUT,
                    "%s: \"split\" is not {\"train\": rows, \"val\": rows} of %lld events", path,
                    (long long)f->events);
    f->split_train = a;
    f->split_val = b;
    return FR_OK;
}

fr_status stream_read_manifest(fr_stream *s, const char *folder, fr_error *err) {
    char *path = path_join(folder, "manifest.json");
    if (!path) return fail_memory(err, 0);
    json_t *root = NULL;
    struct stat facts;
    fr_status status = FR_OK;
    if (stat(path, &facts))
        status = fail(err, FR_EINPUT,
                      "%s: no manifest.json in it, expected a directory made by "
                      "`fullrank data import`",
                      folder);
    if (!status) status = json_read(path, &root, err);
    if (!status) {
        const char *format = NULL, *name = NULL, *sha = NULL;
        json_int_t events = 0, sources = 0, destinations = 0, width = 0;
        int shared = 0, words = 0;
        json_error_t at;
        int bad = json_unpack_ex(
            root, &at, 0, "{s:s, s:{s:s}, s:I, s:I, s:I, s:I, s:{s:F, s:F}, s:b, s:b, s:s}",
            "format", &format, "source", "name", &name, "events", &events, "sources", &sources,
            "destinations", &destinations, "feature_width", &width, "time", "first",
            &s->facts.first_time, "last", &s->facts.last_time, "shared_ids", &shared, "words",
            &words, "sha256", &sha);
        if (bad || strcmp(format, "fullrank-stream"))
            status = fail(err, FR_EINPUT, "%s: not the manifest of an imported stream%s%s", path,
                          bad ? ": " : "", bad ? at.text : "");
        else if (events < 1 || sources < 1 || destinations < 1 || width < 0)
            status = fail(err, FR_EINPUT, "%s: impossible counts", path);
        else if (!(s->name = strdup(name)))
            status = fail_memory(err, strlen(name));
        else {
            s->facts.events = events;
            s->facts.sources = sources;
            s->facts.destinations = destinations;
            s->facts.feature_width = width;
            s->facts.shared_ids = shared;
            s->facts.words = words;
            s->facts.name = s->name;
            (void)snprintf(s->sha256, sizeof s->sha256, "%s", sha);
            s->facts.sha256 = s->sha256;
            s->synth = json_incref(json_object_get(root, "synth"));
            for (int k = 0; k < COLUMN_FILES; k++)
                s->record[k].there =
                    k < COLUMN_FEATURES || (k == COLUMN_FEATURES ? width > 0 : words != 0);
            status = read_split(&s->facts, root, path, err);
            if (!status) status = verify_from_json(root, path, s->record, err);
        }
    }
    if (!status) s->imported = os_modified(&facts);
    if (!status && !(s->folder = strdup(folder))) status = fail_memory(err, strlen(folder));
    json_decref(root);
    free(path);
    return status;
}

static fr_status open_words(word_list *words, const char *folder, const char *name,
                            const int64_t *id, int64_t ids, fr_error *err) {
    char *path = path_join(folder, name);
    if (!path) return fail_memory(err, 0);
    fr_status status = mapping_open(path, &words->file, err);
    free(path);
    if (status) return status;
    const char *at = (const char *)words->file.bytes, *end = at ? at + words->file.size : NULL;
    while (at && at < end) {
        if (*at == '\n')
            return fail(err, FR_EINPUT, "%s/%s:%zu: an empty line, expected a word", folder, name,
                        words->start.count + 1);
        ARRAY_PUSH(&words->start, at, err);
        at = memchr(at, '\n', (size_t)(end - at));
        if (at) at++;
    }
    int64_t count = (int64_t)words->start.count;
    if (!at || id[ids - 1] >= count)
        return fail(err, FR_EINPUT, "%s/%s: %lld words, expected one per line for ids up to %lld",
                    folder, name, (long long)count, (long long)id[ids - 1]);
    ARRAY_PUSH(&words->start, end, err);
    return FR_OK;
}

/* Ids must be ascending, because they are found by binary search. */
static fr_status check_ids(const char *folder, const char *name, const int64_t *id, int64_t ids,
                           fr_error *err) {
    for (int64_t k = 0; k < ids; k++) {
        if (id[k] < 0)
            return fail(err, FR_EINPUT, "%s/%s: id %lld is negative", folder, name,
                        (long long)id[k]);
        if (k && id[k] <= id[k - 1])
            return fail(err, FR_EINPUT, "%s/%s: id %lld after %lld, expected ascending ids", folder,
                        name, (long long)id[k], (long long)id[k - 1]);
    }
    return FR_OK;
}

/* ---- is it what was imported? ---- */

/* Below this size hashing takes no noticeable time (docs/formats.md). */
enum { HASH_ALWAYS = 1 << 26 };

static void list_files(const fr_stream *s, const mapping *file[COLUMN_FILES]) {
    for (int k = 0; k <= COLUMN_FEATURES; k++) file[k] = &s->files[k].file;
    file[COLUMN_WORDS] = &s->source_word.file;
    file[COLUMN_WORDS + 1] = &s->destination_word.file;
}

/* True if sizes agree with the manifest, every column has its time, and the set is not small. */
static bool looks_imported(const fr_stream *s, const mapping *const file[COLUMN_FILES]) {
    size_t total = 0;
    for (int k = 0; k < COLUMN_FILES; k++) {
        if (!s->record[k].there) continue;
        total += file[k]->size;
        if (s->record[k].bytes != (int64_t)file[k]->size || file[k]->modified != s->imported)
            return false;
    }
    return total >= HASH_ALWAYS;
}

static fr_status check_files(fr_stream *s, const fr_context *context, fr_error *err) {
    const mapping *file[COLUMN_FILES];
    list_files(s, file);
    s->facts.checked = "size-and-time";
    return looks_imported(s, file) ? FR_OK : fr_stream_verify(s, context, err);
}

fr_status stream_verify(const fr_stream *s, const fr_context *context, fr_error *err) {
    const mapping *file[COLUMN_FILES];
    if (!strcmp(s->facts.checked, "full")) return FR_OK;
    list_files(s, file);
    return verify_mapped(s->folder, file, s->record, s->sha256, context, err);
}

fr_status fr_stream_verify(fr_stream *stream, const fr_context *context, fr_error *err) {
    fr_stream *s = stream;
    NEED(stream, err);
    TRY(stream_verify(s, context, err));
    s->facts.checked = "full";
    return FR_OK;
}

/* `fresh`: this call has imported it and computed its hash. */
static fr_status open_directory(fr_stream *s, const char *folder, bool fresh,
                                const fr_context *context, fr_error *err) {
    const fr_stream_facts *f = &s->facts;
    TRY(stream_read_manifest(s, folder, err));
    TRY(verify_sizes(folder, s->record, err));
    TRY(open_column(s, 0, folder, "source.npy", 'i', 4, f->events, 0, err));
    TRY(open_column(s, 1, folder, "destination.npy", 'i', 4, f->events, 0, err));
    TRY(open_column(s, 2, folder, "time.npy", 'f', 8, f->events, 0, err));
    TRY(open_column(s, 3, folder, "source_ids.npy", 'i', 8, f->sources, 0, err));
    TRY(open_column(s, 4, folder, "destination_ids.npy", 'i', 8, f->destinations, 0, err));
    if (f->feature_width)
        TRY(open_column(s, 5, folder, "features.npy", 'f', 4, f->events, f->feature_width, err));
    s->source = s->files[0].data;
    s->destination = s->files[1].data;
    s->time = s->files[2].data;
    s->source_id = s->files[3].data;
    s->destination_id = s->files[4].data;
    s->feature = s->files[5].data;
    TRY(check_ids(folder, "source_ids.npy", s->source_id, f->sources, err));
    TRY(check_ids(folder, "destination_ids.npy", s->destination_id, f->destinations, err));
    if (f->words) {
        TRY(open_words(&s->source_word, folder, "source_words.txt", s->source_id, f->sources, err));
        TRY(open_words(&s->destination_word, folder, "destination_words.txt", s->destination_id,
                       f->destinations, err));
    }
    s->facts.checked = "full";
    return fresh ? FR_OK : check_files(s, context, err);
}

/* What to put into a temporary place: a table, or arrays. */
typedef struct origin {
    const char *table;
    const fr_arrays *arrays;
    const fr_import *settings;
} origin;

/* Imports to a temporary directory, which is removed once it is mapped. */
static fr_status open_imported(fr_stream *s, const origin *in, const fr_context *context,
                               fr_error *err) {
    staging place = {0};
    char *inside = NULL;
    fr_status status = staging_temporary(&place, err);
    if (!status && !(inside = path_join(place.place, "stream"))) status = fail_memory(err, 0);
    if (!status)
        status = in->arrays ? fr_import_arrays(in->arrays, inside, in->settings, context, err)
                            : fr_import_file(in->table, inside, in->settings, context, err);
    if (!status) status = open_directory(s, inside, true, context, err);
    staging_discard(&place);
    free(inside);
    return status;
}

/* `folder`: the input is an imported directory. */
static fr_status open_stream(const origin *in, bool folder, const fr_context *context,
                             fr_stream **out, fr_error *err) {
    fr_stream *s;
    TRY(ALLOCATE(s, 1, err));
    fr_status status = folder ? open_directory(s, in->table, false, context, err)
                              : open_imported(s, in, context, err);
    if (status)
        fr_stream_close(s);
    else
        *out = s;
    return status;
}

fr_status fr_stream_make(const fr_arrays *arrays, const fr_import *settings,
                         const fr_context *context, fr_stream **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(arrays, err);
    return open_stream(&(origin){.arrays = arrays, .settings = settings}, false, context, out, err);
}

fr_status fr_stream_open(const char *path, const fr_import *settings, const fr_context *context,
                         fr_stream **out, fr_error *err) {
    fr_import own;
    NEED(out, err);
    *out = NULL;
    NEED(path, err);
    TRY(options_settle(fr_import_options, settings, &own, sizeof own, err));
    if (directory_is(path) && (own.columns || own.ids || own.time_unit || own.shared_ids))
        return fail(
            err, FR_EUSAGE,
            "%s: is a directory, imported already; columns, ids, time-unit and shared-ids say "
            "how to read a table: give them to `fullrank data import`",
            path);
    origin in = {.table = path, .settings = settings};
    return open_stream(&in, directory_is(path), context, out, err);
}

void fr_stream_close(fr_stream *s) {
    if (!s) return;
    for (int i = 0; i < 6; i++) npy_close(&s->files[i]);
    mapping_close(&s->source_word.file);
    mapping_close(&s->destination_word.file);
    free(s->source_word.start.at);
    free(s->destination_word.start.at);
    json_decref(s->synth);
    free(s->name);
    free(s->folder);
    free(s);
}

fr_stream_facts fr_stream_get(const fr_stream *s) { return s ? s->facts : (fr_stream_facts){0}; }

fr_status stream_bad_id(const fr_stream *s, int64_t row, fr_error *err) {
    return fail(err, FR_EINPUT, "%s: event %lld refers to an id that is not there", s->name,
                (long long)row);
}

/* ---- export ---- */

/* Where text goes: a plain writer, or through gzip to one. */
typedef struct text_out {
    writer file;
    z_stream gzip;
    bool packed;
} text_out;

static fr_status put_text(text_out *t, const char *text, size_t size, int flush, fr_error *err) {
    if (!t->packed) return writer_put(&t->file, text, size, err);
    unsigned char packed[1 << 14];
    t->gzip.next_in = (unsigned char *)(uintptr_t)text;
    t->gzip.avail_in = (uInt)size;
    do {
        t->gzip.next_out = packed;
        t->gzip.avail_out = sizeof packed;
        (void)deflate(&t->gzip, flush);
        TRY(writer_put(&t->file, packed, sizeof packed - t->gzip.avail_out, err));
    } while (t->gzip.avail_out == 0);
    return FR_OK;
}

/* An id, or its word, in quotes if it could not be read back otherwise. */
static fr_status put_id(text_out *t, int64_t id, const word_list *words, fr_error *err) {
    char text[32];
    if (!words->start.count)
        return put_text(t, text, (size_t)snprintf(text, sizeof text, "%lld,", (long long)id),
                        Z_NO_FLUSH, err);
    const char *word = words->start.at[id];
    size_t n = (size_t)(words->start.at[id + 1] - word) - 1;
    bool quote = memchr(word, ',', n) || memchr(word, '"', n) || strchr(" \t", word[0]) ||
                 strchr(" \t", word[n - 1]);
    if (quote) TRY(put_text(t, "\"", 1, Z_NO_FLUSH, err));
    for (const char *inner; (inner = memchr(word, '"', n));) { /* a quote is written twice */
        size_t before = (size_t)(inner + 1 - word);
        TRY(put_text(t, word, before, Z_NO_FLUSH, err));
        TRY(put_text(t, "\"", 1, Z_NO_FLUSH, err));
        word += before;
        n -= before;
    }
    TRY(put_text(t, word, n, Z_NO_FLUSH, err));
    return put_text(t, quote ? "\"," : ",", quote ? 2 : 1, Z_NO_FLUSH, err);
}

static fr_status put_events(const fr_stream *s, text_out *t, const fr_context *context,
                            fr_error *err) {
    char line[256];
    int64_t width = s->facts.feature_width;
    int n = snprintf(line, sizeof line, "source,destination,time");
    TRY(put_text(t, line, (size_t)n, Z_NO_FLUSH, err));
    bool split = s->facts.split_train >= 0;
    int64_t val = s->facts.split_train, test = val + s->facts.split_val; /* where they begin */
    if (split) TRY(put_text(t, ",split", 6, Z_NO_FLUSH, err));
    for (int64_t k = 0; k < width; k++) {
        n = snprintf(line, sizeof line, ",f%lld", (long long)k + 1);
        TRY(put_text(t, line, (size_t)n, Z_NO_FLUSH, err));
    }
    for (int64_t i = 0; i < s->facts.events; i++) {
        if ((i & 4095) == 0) {
            TRY(context_check(context, err));
            context_progress(context, "export", (uint64_t)i, (uint64_t)s->facts.events, "events");
        }
        int32_t source = s->source[i], destination = s->destination[i];
        if (source < 0 || source >= s->facts.sources || destination < 0 ||
            destination >= s->facts.destinations)
            return stream_bad_id(s, i, err);
        TRY(put_text(t, "\n", 1, Z_NO_FLUSH, err));
        TRY(put_id(t, s->source_id[source], &s->source_word, err));
        TRY(put_id(t, s->destination_id[destination], &s->destination_word, err));
        n = text_real(s->time[i], false, line, sizeof line);
        TRY(put_text(t, line, (size_t)n, Z_NO_FLUSH, err));
        if (split) TRY(put_text(t, i < val ? ",0" : i < test ? ",1" : ",2", 2, Z_NO_FLUSH, err));
        for (int64_t k = 0; k < width; k++) {
            line[0] = ',';
            n = 1 + text_real(s->feature[i * width + k], true, line + 1, sizeof line - 1);
            TRY(put_text(t, line, (size_t)n, Z_NO_FLUSH, err));
        }
    }
    return put_text(t, "\n", 1, Z_FINISH, err);
}

fr_status fr_stream_export(const fr_stream *stream, const char *output, bool force,
                           const fr_context *context, fr_error *err) {
    const fr_stream *s = stream;
    NEED(stream, err);
    NEED(output, err);
    struct stat facts;
    if (!stat(output, &facts)) {
        if (!S_ISREG(facts.st_mode)) /* a directory, or a device that must not become a file */
            return fail(err, FR_EFILE, "%s: exists and is not a file", output);
        if (!force) return fail(err, FR_EFORCE, "%s: exists", output);
    } else if (errno != ENOENT) {
        return fail_errno(err, "%s: cannot be written", output);
    }
    text_out t = {0};
    size_t n = strlen(output);
    fr_status status = writer_open(&t.file, output, err);
    if (!status && n > 3 && !strcmp(output + n - 3, ".gz")) {
        t.packed = deflateInit2(&t.gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                                Z_DEFAULT_STRATEGY) == Z_OK;
        if (!t.packed) status = fail_memory(err, 0);
    }
    if (!status) status = put_events(s, &t, context, err);
    if (!status) status = writer_commit(&t.file, err);
    if (t.packed) (void)deflateEnd(&t.gzip);
    writer_discard(&t.file);
    return status;
}
