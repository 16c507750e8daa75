/* safetensors.c - see safetensors.h.
 *
 * A file is 8 bytes of header length (little-endian), a JSON header
 *
 *     {"__metadata__": {"key": "value"},
 *      "item.weight": {"dtype": "F32", "shape": [841, 64], "data_offsets": [0, 215296]}, ...}
 *
 * padded with spaces, then the numbers; offsets count from the first of them. The format requires
 * that the tensors tile the data exactly. Sorted by offset, each must begin where the previous one
 * ended, and the last must end with the file. One pass thus excludes gaps, overlaps and offsets
 * beyond the end.
 */
#include "nn/safetensors.h"

#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Headers are a few kilobytes, for the largest public models some megabytes; the JSON tree takes a
 * multiple of it in memory, so a wrong length must not decide how much we ask for. */
enum { LENGTH_BYTES = 8, HEADER_MOST = 1 << 24, ALIGNMENT = 8 };

static const char metadata_key[] = "__metadata__";

static const struct {
    const char *name;
    size_t size;
    size_t alignment; /* of the C type; 1 for types C does not have */
} dtypes[ST_DTYPES] = {
    [ST_BOOL] = {"BOOL", 1, 1},       [ST_U8] = {"U8", 1, 1},
    [ST_I8] = {"I8", 1, 1},           [ST_F8_E4M3] = {"F8_E4M3", 1, 1},
    [ST_F8_E5M2] = {"F8_E5M2", 1, 1}, [ST_F8_E8M0] = {"F8_E8M0", 1, 1},
    [ST_I16] = {"I16", 2, 2},         [ST_U16] = {"U16", 2, 2},
    [ST_F16] = {"F16", 2, 2},         [ST_BF16] = {"BF16", 2, 2},
    [ST_I32] = {"I32", 4, 4},         [ST_U32] = {"U32", 4, 4},
    [ST_F32] = {"F32", 4, 4},         [ST_I64] = {"I64", 8, 8},
    [ST_U64] = {"U64", 8, 8},         [ST_F64] = {"F64", 8, 8},
    [ST_C64] = {"C64", 8, 4},
};

size_t st_dtype_size(st_dtype dtype) { return dtypes[dtype].size; }

const char *st_dtype_name(st_dtype dtype) { return dtypes[dtype].name; }

/* ---- messages ---- */

enum { SHOWN = JSON_ERROR_TEXT_LENGTH, TYPE_ROOM = 16 + ST_MAX_DIMS * 21 };

/* A text of the file as one short line: control characters become '?'. */
static const char *shown(const char *text, char out[SHOWN]) {
    (void)snprintf(out, SHOWN, "%s", text);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    return out;
}

/* "F32 (841,64)" */
static const char *type_text(st_dtype dtype, int dims, const int64_t *shape, char out[TYPE_ROOM]) {
    int n = snprintf(out, TYPE_ROOM, "%s (", dtypes[dtype].name);
    for (int d = 0; d < dims; d++)
        n += snprintf(out + n, TYPE_ROOM - (size_t)n, "%s%lld", d ? "," : "", (long long)shape[d]);
    (void)snprintf(out + n, TYPE_ROOM - (size_t)n, ")");
    return out;
}

/* ---- reading ---- */

/* Bytes of a tensor; false if the product leaves the range of size_t. */
static bool bytes_of(st_dtype dtype, int dims, const int64_t *shape, size_t *out) {
    size_t bytes = dtypes[dtype].size;
    for (int d = 0; d < dims; d++)
        if (__builtin_mul_overflow(bytes, (size_t)shape[d], &bytes)) return false;
    *out = bytes;
    return true;
}

static bool take_count(const json_t *value, int64_t *out) {
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

/* Reads one entry of the header. Its offset goes to *begin; data is set once all are known. */
static fr_status read_entry(const safetensors *file, const char *name, const json_t *entry,
                            st_tensor *out, size_t *begin, fr_error *err) {
    char quoted[SHOWN], text[SHOWN], type[TYPE_ROOM];
    const char *path = file->path;
    (void)shown(name, quoted);
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (!json_is_string(dtype) || !json_is_array(shape) || json_array_size(offsets) != 2 ||
        json_object_size(entry) != 3)
        return fail(err, FR_EINPUT,
                    "%s: tensor %s: expected a text dtype, a list shape, two data_offsets and "
                    "nothing else",
                    path, quoted);
    *out = (st_tensor){.name = name};
    const char *wanted = json_string_value(dtype);
    while (out->dtype < ST_DTYPES && strcmp(dtypes[out->dtype].name, wanted)) out->dtype++;
    if (out->dtype == ST_DTYPES)
        return fail(err, FR_EINPUT, "%s: tensor %s: dtype %s is not known", path, quoted,
                    shown(wanted, text));
    if (json_array_size(shape) > ST_MAX_DIMS)
        return fail(err, FR_EINPUT, "%s: tensor %s: %zu dimensions, expected at most %d", path,
                    quoted, json_array_size(shape), ST_MAX_DIMS);
    out->dims = (int)json_array_size(shape);
    for (int d = 0; d < out->dims; d++)
        if (!take_count(json_array_get(shape, (size_t)d), &out->shape[d]))
            return fail(err, FR_EINPUT,
                        "%s: tensor %s: the shape must hold whole numbers from 0 on", path, quoted);
    int64_t from, to;
    if (!take_count(json_array_get(offsets, 0), &from) ||
        !take_count(json_array_get(offsets, 1), &to) || to < from)
        return fail(err, FR_EINPUT,
                    "%s: tensor %s: data_offsets must be two whole numbers from 0 on, ascending",
                    path, quoted);
    size_t need;
    (void)type_text(out->dtype, out->dims, out->shape, type);
    if (!bytes_of(out->dtype, out->dims, out->shape, &need))
        return fail(err, FR_EINPUT, "%s: tensor %s: %s is too large for any file", path, quoted,
                    type);
    *begin = (size_t)from;
    out->bytes = (size_t)(to - from);
    if (out->bytes != need)
        return fail(err, FR_EINPUT, "%s: tensor %s: %zu bytes, expected %zu for %s", path, quoted,
                    out->bytes, need, type);
    return FR_OK;
}

static fr_status check_metadata(const safetensors *file, json_t *metadata, fr_error *err) {
    if (!json_is_object(metadata))
        return fail(err, FR_EINPUT, "%s: %s is not an object", file->path, metadata_key);
    const char *key;
    json_t *value;
    char quoted[SHOWN];
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return fail(err, FR_EINPUT, "%s: %s: the value of %s is not a text", file->path,
                        metadata_key, shown(key, quoted));
    }
    return FR_OK;
}

/* A tensor on its way from the header to its place in the list. */
typedef struct entry {
    size_t begin;
    st_tensor tensor;
} entry;

/* By place; empty tensors come before the one that begins at the same byte. */
static int compare_entries(const void *left, const void *right) {
    const entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->tensor.bytes > b->tensor.bytes) - (a->tensor.bytes < b->tensor.bytes);
}

/* Checks that the tensors tile the `size` bytes of data, and points them there. */
static fr_status place_tensors(safetensors *file, entry *entries, const unsigned char *data,
                               size_t size, fr_error *err) {
    char quoted[SHOWN];
    qsort(entries, file->count, sizeof *entries, compare_entries);
    size_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        st_tensor *t = &file->tensor[i];
        *t = entries[i].tensor;
        if (entries[i].begin != end)
            return fail(err, FR_EINPUT,
                        "%s: tensor %s begins at byte %zu of the data, expected %zu (tensors "
                        "neither overlap nor leave gaps)",
                        file->path, shown(t->name, quoted), entries[i].begin, end);
        if (t->bytes > size - end)
            return fail(err, FR_EINPUT,
                        "%s: tensor %s ends at byte %zu of the data, but there are %zu", file->path,
                        shown(t->name, quoted), end + t->bytes, size);
        t->data = data + end;
        end += t->bytes;
        if ((uintptr_t)t->data % dtypes[t->dtype].alignment) {
            void *copy;
            TRY(arena_take(&file->memory, t->bytes, 1, &copy, err));
            t->data = memcpy(copy, t->data, t->bytes);
        }
    }
    if (end != size)
        return fail(err, FR_EINPUT, "%s: %zu bytes of data, but the tensors take %zu", file->path,
                    size, end);
    return FR_OK;
}

static fr_status read_file(safetensors *file, const unsigned char *bytes, size_t size,
                           const char *path, fr_error *err) {
    char *copy;
    TRY(TAKE(&file->memory, copy, strlen(path) + 1, err));
    file->path = strcpy(copy, path); // NOLINT: the room was just taken
    if (size < LENGTH_BYTES)
        return fail(err, FR_EINPUT, "%s: %zu bytes, too short for a safetensors file", path, size);
    uint64_t length = 0;
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
    if (length > size - LENGTH_BYTES)
        return fail(err, FR_EINPUT,
                    "%s: a header of %llu bytes does not fit into %zu: cut off, or not a "
                    "safetensors file",
                    path, (unsigned long long)length, size);
    if (length > HEADER_MOST)
        return fail(err, FR_EINPUT, "%s: a header of %llu bytes, expected at most %d", path,
                    (unsigned long long)length, HEADER_MOST);
    const unsigned char *text = bytes + LENGTH_BYTES;
    if (!length || text[0] != '{')
        return fail(err, FR_EINPUT, "%s: the safetensors header does not begin with '{'", path);
    json_error_t at;
    char quoted[SHOWN];
    file->header = json_parse((const char *)text, (size_t)length, JSON_REJECT_DUPLICATES, &at);
    if (!file->header)
        return fail(err, FR_EINPUT, "%s: the safetensors header, column %d: %s", path, at.column,
                    shown(at.text, quoted));

    entry *entries;
    size_t most = json_object_size(file->header);
    TRY(TAKE(&file->memory, entries, most, err));
    TRY(TAKE(&file->memory, file->tensor, most, err));
    const char *name;
    json_t *value;
    json_object_foreach(file->header, name, value) {
        if (!strcmp(name, metadata_key)) {
            TRY(check_metadata(file, value, err));
        } else {
            entry *e = &entries[file->count++];
            TRY(read_entry(file, name, value, &e->tensor, &e->begin, err));
        }
    }
    return place_tensors(file, entries, text + length, size - LENGTH_BYTES - (size_t)length, err);
}

fr_status safetensors_parse(const void *bytes, size_t size, const char *path, safetensors *out,
                            fr_error *err) {
    *out = (safetensors){0};
    fr_status status = read_file(out, bytes, size, path, err);
    if (status) safetensors_close(out);
    return status;
}

fr_status safetensors_open(const char *path, safetensors *out, fr_error *err) {
    *out = (safetensors){0};
    TRY(mapping_open(path, &out->file, err));
    fr_status status = read_file(out, out->file.bytes, out->file.size, path, err);
    if (status) safetensors_close(out);
    return status;
}

void safetensors_close(safetensors *file) {
    json_decref(file->header);
    arena_free(&file->memory);
    mapping_close(&file->file);
    *file = (safetensors){0};
}

const st_tensor *safetensors_find(const safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensor[i].name, name)) return &file->tensor[i];
    return NULL;
}

fr_status safetensors_require(const safetensors *file, const char *name, st_dtype dtype, int dims,
                              const int64_t *shape, const void **data, fr_error *err) {
    char found[TYPE_ROOM], expected[TYPE_ROOM];
    (void)type_text(dtype, dims, shape, expected);
    const st_tensor *t = safetensors_find(file, name);
    if (!t)
        return fail(err, FR_EINPUT, "%s: no tensor %s, expected one of type %s", file->path, name,
                    expected);
    if (t->dtype != dtype || t->dims != dims ||
        (dims && memcmp(t->shape, shape, (size_t)dims * sizeof *shape)))
        return fail(err, FR_EINPUT, "%s: tensor %s is %s, expected %s", file->path, name,
                    type_text(t->dtype, t->dims, t->shape, found), expected);
    *data = t->data;
    return FR_OK;
}

const char *safetensors_metadata(const safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, metadata_key), key));
}

/* ---- writing ---- */

fr_status safetensors_writer_open(safetensors_writer *w, const char *path, fr_error *err) {
    *w = (safetensors_writer){.header = json_object()};
    if (!w->header) return fail_memory(err, 0);
    fr_status status = writer_open(&w->file, path, err);
    if (status) safetensors_writer_discard(w);
    return status;
}

/* Why a key could not be set: it is no UTF-8, or memory was short. */
static fr_status bad_key(const safetensors_writer *w, const char *what, const char *key,
                         fr_error *err) {
    char quoted[SHOWN];
    const char *rest = key;
    uint32_t code;
    while ((code = text_character(&rest)) && code != 0xfffd) {
    }
    if (!code) return fail_memory(err, strlen(key));
    return fail(err, FR_EUSAGE, "%s: %s %s is not UTF-8", w->file.path, what, shown(key, quoted));
}

fr_status safetensors_writer_add(safetensors_writer *w, const char *name, st_dtype dtype, int dims,
                                 const int64_t *shape, const void *data, fr_error *err) {
    char quoted[SHOWN], type[TYPE_ROOM];
    const char *path = w->file.path;
    if (dims < 0 || dims > ST_MAX_DIMS)
        return fail(err, FR_EUSAGE, "%s: tensor %s: %d dimensions, expected 0 to %d", path,
                    shown(name, quoted), dims, ST_MAX_DIMS);
    if (!strcmp(name, metadata_key) || json_object_get(w->header, name))
        return fail(err, FR_EUSAGE, "%s: tensor name %s is taken", path, shown(name, quoted));
    bool good = true;
    for (int d = 0; d < dims; d++) good = good && shape[d] >= 0;
    size_t bytes, end;
    if (!good || !bytes_of(dtype, dims, shape, &bytes) ||
        __builtin_add_overflow(w->bytes, bytes, &end) || end > INT64_MAX)
        return fail(err, FR_EUSAGE, "%s: tensor %s cannot be %s", path, shown(name, quoted),
                    type_text(dtype, dims, shape, type));
    TRY(ARRAY_RESERVE(&w->parts, 1, err));

    json_t *extents = json_array();
    for (int d = 0; d < dims; d++) json_push(&extents, json_integer(shape[d]));
    json_t *item = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtypes[dtype].name, "shape", extents,
                             "data_offsets", (json_int_t)w->bytes, (json_int_t)end);
    if (!item) return fail_memory(err, sizeof *item);
    if (json_object_set_new(w->header, name, item)) return bad_key(w, "tensor name", name, err);
    w->parts.at[w->parts.count].data = data;
    w->parts.at[w->parts.count++].bytes = bytes;
    w->bytes = end;
    return FR_OK;
}

fr_status safetensors_writer_metadata(safetensors_writer *w, const char *key, const char *value,
                                      fr_error *err) {
    json_t *metadata = json_object_get(w->header, metadata_key);
    if (!metadata) {
        metadata = json_object();
        if (json_object_set_new(w->header, metadata_key, metadata)) return fail_memory(err, 0);
    }
    json_t *text = json_text(value);
    if (!text) return fail_memory(err, strlen(value));
    if (json_object_set_new(metadata, key, text)) return bad_key(w, "metadata key", key, err);
    return FR_OK;
}

fr_status safetensors_writer_commit(safetensors_writer *w, fr_error *err) {
    fr_status status = FR_OK;
    char *text = json_print(w->header, JSON_COMPACT);
    if (!text) return fail_memory(err, 0);
    size_t length = strlen(text), padding = (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT;
    unsigned char prefix[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        prefix[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i);
    status = writer_put(&w->file, prefix, sizeof prefix, err);
    if (!status) status = writer_put(&w->file, text, length, err);
    if (!status) status = writer_put(&w->file, "        ", padding, err);
    for (size_t i = 0; !status && i < w->parts.count; i++)
        status = writer_put(&w->file, w->parts.at[i].data, w->parts.at[i].bytes, err);
    if (!status) status = writer_commit(&w->file, err);
    if (!status) safetensors_writer_discard(w);
    free(text);
    return status;
}

void safetensors_writer_discard(safetensors_writer *w) {
    writer_discard(&w->file);
    json_decref(w->header);
    free(w->parts.at);
    *w = (safetensors_writer){0};
}
