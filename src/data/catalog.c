/* catalog.c - see catalog.h. */
#include "data/catalog.h"

#include "base/npy.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int64_t id, line;
} entry;

typedef ARRAY(entry) entry_list;

static fr_status read_npy(const char *path, entry_list *out, fr_error *err) {
    npy file;
    TRY(npy_open_as(path, 'i', 8, 1, &file, err));
    fr_status status = ARRAY_RESERVE(out, (size_t)file.shape[0], err);
    for (int64_t k = 0; !status && k < file.shape[0]; k++) {
        int64_t id = ((const int64_t *)file.data)[k];
        out->at[out->count++] = (entry){id, k + 1};
        if (id < 0) status = fail(err, FR_EINPUT, "%s: id %lld is negative", path, (long long)id);
    }
    npy_close(&file);
    return status;
}

static fr_status read_line(const char *path, const char *from, const char *to, int64_t line,
                           entry_list *out, fr_error *err) {
    char text[64] = {0}; /* an id has at most 19 digits; number_id stops at the 0 */
    while (to > from && strchr(" \t\r", to[-1])) to--;
    while (from < to && (*from == ' ' || *from == '\t')) from++;
    if (from == to || *from == '#') return FR_OK;
    size_t n = (size_t)(to - from);
    memcpy(text, from, n < 40 ? n : 40);
    entry e = {.line = line};
    const char *end = number_id(text, &e.id);
    if (!end || *end || n > 40)
        return fail(err, FR_EINPUT, "%s:%lld: \"%s\", expected a destination id", path,
                    (long long)line, text);
    ARRAY_PUSH(out, e, err);
    return FR_OK;
}

static fr_status read_text(const char *path, const mapping *file, entry_list *out, fr_error *err) {
    if (!file->size) return FR_OK;
    const char *at = (const char *)file->bytes, *end = at + file->size;
    for (int64_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        TRY(read_line(path, at, stop, line, out, err));
        at = stop + 1;
    }
    return FR_OK;
}

static int by_id(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

fr_status catalog_read(const char *path, id_list *out, fr_error *err) {
    mapping file;
    entry_list entries = {0};
    TRY(mapping_open(path, &file, err));
    fr_status status = file.size > 6 && !memcmp(file.bytes, "\x93NUMPY", 6)
                           ? read_npy(path, &entries, err)
                           : read_text(path, &file, &entries, err);
    mapping_close(&file);
    if (!status && !entries.count)
        status =
            fail(err, FR_EINPUT, "%s: no ids in it, expected one destination id per line", path);
    if (!status) status = ARRAY_RESERVE(out, entries.count, err);
    if (!status) qsort(entries.at, entries.count, sizeof *entries.at, by_id);
    for (size_t k = 0; !status && k < entries.count; k++) {
        out->at[out->count++] = entries.at[k].id;
        if (k && entries.at[k].id == entries.at[k - 1].id)
            status = fail(err, FR_EINPUT, "%s:%lld: id %lld is also on line %lld", path,
                          (long long)entries.at[k].line, (long long)entries.at[k].id,
                          (long long)entries.at[k - 1].line);
    }
    free(entries.at);
    if (status) {
        free(out->at);
        *out = (id_list){0};
    }
    return status;
}
