/* npy.h - NumPy's .npy files: the form of every column and every rank record.
 *
 * Reading maps the file and checks the header against the file's size, so later code may index
 * without checks. Only little-endian numbers in C order; plain and structured dtypes.
 */
#ifndef FR_BASE_NPY_H
#define FR_BASE_NPY_H

#include "base/file.h"

enum { NPY_MAX_FIELDS = 64, NPY_MAX_DIMS = 4, NPY_NAME = 32 };

/* One member of an element. A plain dtype is one field without a name. */
typedef struct npy_field {
    char name[NPY_NAME];
    char kind; /* 'i' signed, 'u' unsigned, 'f' float, 'b' bool: NumPy's letters */
    int size;  /* bytes: 1, 2, 4, 8 */
    size_t offset;
} npy_field;

typedef struct npy {
    mapping file; /* empty when parsed from memory */
    const void *data;
    int dims;
    int64_t shape[NPY_MAX_DIMS];
    int fields;
    npy_field field[NPY_MAX_FIELDS];
    size_t item; /* bytes per element */
} npy;

fr_status npy_open(const char *path, npy *out, fr_error *err);
void npy_close(npy *n);
/* The same for bytes already in memory; `path` is for messages. */
fr_status npy_parse(const void *bytes, size_t size, const char *path, npy *out, fr_error *err);
/* For arrays in a stream: the size of the header, from its first 12 bytes (10 if there are no
 * more), and its content; `data` stays NULL. */
fr_status npy_header_size(const void *bytes, size_t size, const char *path, size_t *out,
                          fr_error *err);
fr_status npy_parse_header(const void *bytes, size_t size, const char *path, npy *out,
                           fr_error *err);
/* Opens a plain array of `kind`/`size` with `dims` dimensions, or reports what was found instead.
 */
fr_status npy_open_as(const char *path, char kind, int size, int dims, npy *out, fr_error *err);

typedef struct npy_writer {
    writer file;
    npy_field field[NPY_MAX_FIELDS];
    int fields;
    int64_t width; /* columns of a two-dimensional array; 0 = one-dimensional */
    size_t row;    /* bytes per row */
    size_t header; /* bytes before the first row */
} npy_writer;

/* Rows of one number (width 0) or of `width` numbers. */
fr_status npy_writer_open(npy_writer *w, const char *path, char kind, int size, int64_t width,
                          fr_error *err);
/* Rows of one structured element; offsets are filled in, packed. */
fr_status npy_writer_open_struct(npy_writer *w, const char *path, const npy_field *field,
                                 int fields, fr_error *err);
fr_status npy_writer_put(npy_writer *w, const void *rows, int64_t count, fr_error *err);
/* For rows in any order: makes room for `rows` rows, then stores them by number, from any thread.
 * Do not mix it with npy_writer_put. */
fr_status npy_writer_reserve(npy_writer *w, int64_t rows, fr_error *err);
fr_status npy_writer_put_at(npy_writer *w, int64_t row, const void *bytes, fr_error *err);
/* Writes the final shape and puts the file in place. */
fr_status npy_writer_commit(npy_writer *w, fr_error *err);
void npy_writer_discard(npy_writer *w);

#endif
