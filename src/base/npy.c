/* npy.c - see npy.h.
 *
 * A file is "\x93NUMPY", version, header length, a Python literal such as
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
 * padded with spaces to a multiple of 64, then the elements. The writer reserves a header wide
 * enough for any row count and patches the count in at the end, so rows can be streamed.
 */
#include "base/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header's Python literal: a cursor over it ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n')) c->at++;
}

static bool take(cursor *c, char wanted) {
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

/* A quoted word without escapes, as dtypes and field names are. */
static bool take_text(cursor *c, char *out, size_t size) {
    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    size_t n = 0;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        if (n + 1 >= size || *c->at == '\\') return false;
        out[n++] = *c->at;
    }
    out[n] = 0;
    return take(c, quote);
}

static bool take_word(cursor *c, const char *word) {
    skip_space(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n)) return false;
    c->at += n;
    return true;
}

static bool take_count(cursor *c, int64_t *out) {
    skip_space(c);
    if (c->at >= c->end || *c->at < '0' || *c->at > '9') return false;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (value > INT64_MAX / 16) return false;
        value = value * 10 + (*c->at - '0');
    }
    *out = value;
    return true;
}

/* "<f4" and the like. */
static bool parse_type(const char *text, npy_field *out) {
    if (strlen(text) != 3 || !strchr("<|", text[0]) || !strchr("iufb", text[1])) return false;
    out->kind = text[1];
    out->size = text[2] - '0';
    if (!strchr("1248", text[2])) return false;
    if (out->kind == 'f' && out->size == 1) return false;
    if (out->kind == 'b' && out->size != 1) return false;
    return text[0] == '<' || out->size == 1;
}

static bool parse_descr(cursor *c, npy *n, char *found, size_t size) {
    char text[64];
    n->item = 0;
    if (take_text(c, text, sizeof text)) {
        (void)snprintf(found, size, "%s", text);
        n->fields = 1;
        n->item = (size_t)(text[0] && text[1] && text[2] ? text[2] - '0' : 0);
        return parse_type(text, &n->field[0]);
    }
    if (!take(c, '[')) return false;
    while (!take(c, ']')) {
        if (n->fields == NPY_MAX_FIELDS) return false;
        npy_field *f = &n->field[n->fields++];
        if (!take(c, '(') || !take_text(c, f->name, sizeof f->name) || !take(c, ',') ||
            !take_text(c, text, sizeof text) || !take(c, ')'))
            return false;
        (void)snprintf(found, size, "%s", text);
        if (!parse_type(text, f)) return false;
        f->offset = n->item;
        n->item += (size_t)f->size;
        (void)take(c, ',');
    }
    return n->fields > 0;
}

static bool parse_shape(cursor *c, npy *n) {
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        if (n->dims == NPY_MAX_DIMS || !take_count(c, &n->shape[n->dims++])) return false;
        (void)take(c, ',');
    }
    return true;
}

fr_status npy_header_size(const void *bytes, size_t size, const char *path, size_t *out,
                          fr_error *err) {
    const unsigned char *b = bytes;
    if (size < 10 || memcmp(b, "\x93NUMPY", 6))
        return fail(err, FR_EINPUT, "%s: not a .npy file", path);
    int version = b[6];
    if (version < 1 || version > 3)
        return fail(err, FR_EINPUT, "%s: .npy version %d, expected 1 to 3", path, version);
    size_t start = version == 1 ? 10 : 12;
    if (size < start) return fail(err, FR_EINPUT, "%s: the .npy header is cut off", path);
    size_t length = (size_t)b[8] | (size_t)b[9] << 8;
    if (version > 1) length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    *out = start + length;
    return FR_OK;
}

/* The entries of the literal; *fortran is its order. */
static fr_status parse_literal(cursor *c, const char *path, npy *out, bool *fortran,
                               fr_error *err) {
    bool descr = false, order = false, shape = false;
    char key[32], found[64] = "none";
    bool good = take(c, '{');
    while (good && !take(c, '}')) {
        good = take_text(c, key, sizeof key) && take(c, ':');
        if (!good) break;
        if (!strcmp(key, "descr") && !descr) {
            descr = true;
            if (!parse_descr(c, out, found, sizeof found))
                return fail(err, FR_EINPUT,
                            "%s: element type %s, expected little-endian numbers (<i4, <f8, ...)",
                            path, found);
        } else if (!strcmp(key, "fortran_order") && !order) {
            order = true;
            *fortran = take_word(c, "True");
            good = *fortran || take_word(c, "False");
        } else if (!strcmp(key, "shape") && !shape) {
            shape = true;
            good = parse_shape(c, out);
        } else {
            good = false;
        }
        (void)take(c, ',');
    }
    if (good && descr && order && shape) return FR_OK;
    return fail(err, FR_EINPUT, "%s: the .npy header cannot be understood", path);
}

fr_status npy_parse_header(const void *bytes, size_t size, const char *path, npy *out,
                           fr_error *err) {
    const char *b = bytes;
    size_t end;
    bool fortran = false;
    *out = (npy){0};
    TRY(npy_header_size(bytes, size, path, &end, err));
    if (end > size) return fail(err, FR_EINPUT, "%s: the .npy header is cut off", path);
    cursor c = {b + (b[6] == 1 ? 10 : 12), b + end};
    TRY(parse_literal(&c, path, out, &fortran, err));
    if (fortran && out->dims > 1)
        return fail(
            err, FR_EINPUT,
            "%s: array in Fortran order, expected C order: save np.ascontiguousarray(array)", path);
    return FR_OK;
}

fr_status npy_parse(const void *bytes, size_t size, const char *path, npy *out, fr_error *err) {
    size_t start = 0;
    TRY(npy_parse_header(bytes, size, path, out, err));
    TRY(npy_header_size(bytes, size, path, &start, err));
    if (start % 8) /* NumPy aligns to 16 or 64; elements are read in place */
        return fail(err, FR_EINPUT, "%s: elements begin at byte %zu, expected a multiple of 8",
                    path, start);
    size_t have = (size - start) / out->item, need = 1;
    for (int d = 0; d < out->dims; d++) {
        size_t extent = (size_t)out->shape[d];
        if (extent && need > SIZE_MAX / 4 / extent)
            return fail(err, FR_EINPUT, "%s: the shape is too large for any file", path);
        need *= extent;
    }
    if (need > have || size - start != need * out->item)
        return fail(err, FR_EINPUT, "%s: %zu bytes of elements, expected %zu", path, size - start,
                    need * out->item);
    out->data = (const char *)bytes + start;
    return FR_OK;
}

fr_status npy_open(const char *path, npy *out, fr_error *err) {
    *out = (npy){0};
    mapping file;
    TRY(mapping_open(path, &file, err));
    fr_status status =
        npy_parse(file.bytes ? (const void *)file.bytes : "", file.size, path, out, err);
    out->file = file;
    if (status) npy_close(out);
    return status;
}

void npy_close(npy *n) {
    mapping_close(&n->file);
    *n = (npy){0};
}

fr_status npy_open_as(const char *path, char kind, int size, int dims, npy *out, fr_error *err) {
    TRY(npy_open(path, out, err));
    const npy_field *f = &out->field[0];
    if (out->fields == 1 && !f->name[0] && f->kind == kind && f->size == size && out->dims == dims)
        return FR_OK;
    fr_status status =
        out->fields > 1 || f->name[0]
            ? fail(err, FR_EINPUT, "%s: a structured array, expected %c%d", path, kind, size)
            : fail(err, FR_EINPUT,
                   "%s: a %d-dimensional array of %c%d, expected %d-dimensional %c%d", path,
                   out->dims, f->kind, f->size, dims, kind, size);
    npy_close(out);
    return status;
}

/* ---- writing ---- */

static size_t type_text(const npy_field *f, char *out, size_t size) {
    return (size_t)snprintf(out, size, "'%c%c%d'", f->size == 1 ? '|' : '<', f->kind, f->size);
}

enum { HEADER_ROOM = NPY_MAX_FIELDS * (NPY_NAME + 16) + 256, SHAPE_ROOM = 48 };

/* Writes the whole header for `rows` rows; its length does not depend on `rows`. */
static size_t header(const npy_writer *w, int64_t rows, char out[HEADER_ROOM]) {
    char text[HEADER_ROOM];
    size_t n = (size_t)snprintf(text, sizeof text, "{'descr': ");
    bool plain = w->fields == 1 && !w->field[0].name[0];
    for (int i = 0; i < w->fields; i++) {
        if (!plain)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s('%s', ", i ? ", " : "[",
                                  w->field[i].name);
        n += type_text(&w->field[i], text + n, sizeof text - n);
        if (!plain) n += (size_t)snprintf(text + n, sizeof text - n, ")");
    }
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "%s, 'fortran_order': False, 'shape': ", plain ? "" : "]");
    size_t total = (10 + n + SHAPE_ROOM + 63) / 64 * 64;
    if (w->width)
        n += (size_t)snprintf(text + n, sizeof text - n, "(%lld, %lld), }", (long long)rows,
                              (long long)w->width);
    else
        n += (size_t)snprintf(text + n, sizeof text - n, "(%lld,), }", (long long)rows);

    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\x01", 8); /* the final 0 of the string literal is the minor version */
    out[8] = (char)((total - 10) & 255);
    out[9] = (char)((total - 10) >> 8);
    memcpy(out + 10, text, n);
    out[total - 1] = '\n';
    return total;
}

static fr_status open_rows(npy_writer *w, const char *path, const npy_field *field, int fields,
                           int64_t width, fr_error *err) {
    *w = (npy_writer){.fields = fields, .width = width};
    for (int i = 0; i < fields; i++) {
        w->field[i] = field[i];
        w->field[i].offset = w->row;
        w->row += (size_t)field[i].size;
    }
    if (width) w->row *= (size_t)width;
    TRY(writer_open(&w->file, path, err));
    char text[HEADER_ROOM];
    w->header = header(w, 0, text);
    return writer_put(&w->file, text, w->header, err);
}

fr_status npy_writer_open_struct(npy_writer *w, const char *path, const npy_field *field,
                                 int fields, fr_error *err) {
    return open_rows(w, path, field, fields, 0, err);
}

fr_status npy_writer_open(npy_writer *w, const char *path, char kind, int size, int64_t width,
                          fr_error *err) {
    npy_field field = {.kind = kind, .size = size};
    return open_rows(w, path, &field, 1, width, err);
}

fr_status npy_writer_put(npy_writer *w, const void *rows, int64_t count, fr_error *err) {
    return writer_put(&w->file, rows, (size_t)count * w->row, err);
}

fr_status npy_writer_reserve(npy_writer *w, int64_t rows, fr_error *err) {
    return writer_extend(&w->file, (int64_t)w->header + rows * (int64_t)w->row, err);
}

fr_status npy_writer_put_at(npy_writer *w, int64_t row, const void *bytes, fr_error *err) {
    return writer_put_at(&w->file, (int64_t)w->header + row * (int64_t)w->row, bytes, w->row, err);
}

fr_status npy_writer_commit(npy_writer *w, fr_error *err) {
    char text[HEADER_ROOM];
    int64_t rows = (w->file.written - (int64_t)w->header) / (int64_t)w->row;
    TRY(writer_put_at(&w->file, 0, text, header(w, rows, text), err));
    return writer_commit(&w->file, err);
}

void npy_writer_discard(npy_writer *w) { writer_discard(&w->file); }
