/* safetensors.h - files of named tensors: the form of every checkpoint.
 *
 * Reading maps the file and checks the header against the file's size before any tensor is used:
 * sizes, offsets, gaps, overlaps, duplicates. Data is read in place; an unaligned tensor is copied,
 * so `data` can always be used as an array of its type. Tensors are found by name; their order does
 * not matter.
 */
#ifndef FR_NN_SAFETENSORS_H
#define FR_NN_SAFETENSORS_H

#include "base/file.h"
#include "base/memory.h"
#include "nn/real.h"

#include <jansson.h>

/* Every whole-byte element type of the format. We use F32, F64 and I64; the rest pass through. */
typedef enum st_dtype {
    ST_BOOL,
    ST_U8,
    ST_I8,
    ST_F8_E4M3,
    ST_F8_E5M2,
    ST_F8_E8M0,
    ST_I16,
    ST_U16,
    ST_F16,
    ST_BF16,
    ST_I32,
    ST_U32,
    ST_F32,
    ST_I64,
    ST_U64,
    ST_F64,
    ST_C64,
    ST_DTYPES,
    ST_REAL = sizeof(real) == 8 ? ST_F64 : ST_F32 /* that of our numbers */
} st_dtype;

enum { ST_MAX_DIMS = 8 };

typedef struct st_tensor {
    const char *name; /* UTF-8, without 0 */
    st_dtype dtype;
    int dims; /* 0 = a single number */
    int64_t shape[ST_MAX_DIMS];
    const void *data; /* aligned for dtype; valid even if bytes is 0 */
    size_t bytes;
} st_tensor;

/* Everything lives until safetensors_close. */
typedef struct safetensors {
    mapping file;      /* empty when parsed from memory */
    json_t *header;    /* owns names and metadata */
    arena memory;      /* path, tensors, copies of unaligned data */
    const char *path;  /* for messages */
    st_tensor *tensor; /* in the order of their data */
    size_t count;
} safetensors;

fr_status safetensors_open(const char *path, safetensors *out, fr_error *err);
/* The same for bytes already in memory, which must outlive *out; `path` is for messages. */
fr_status safetensors_parse(const void *bytes, size_t size, const char *path, safetensors *out,
                            fr_error *err);
/* Harmless on a zeroed or closed file. */
void safetensors_close(safetensors *file);

/* The tensor of this name, NULL if there is none. O(count). */
const st_tensor *safetensors_find(const safetensors *file, const char *name);
/* Its data if it has exactly this type and shape; otherwise an error. */
fr_status safetensors_require(const safetensors *file, const char *name, st_dtype dtype, int dims,
                              const int64_t *shape, const void **data, fr_error *err);
/* The value of a metadata key, NULL if there is none. */
const char *safetensors_metadata(const safetensors *file, const char *key);

size_t st_dtype_size(st_dtype dtype);      /* bytes per element */
const char *st_dtype_name(st_dtype dtype); /* "F32" */

/* Collects names, shapes and pointers; commit writes the file at once. */
typedef struct safetensors_writer {
    writer file;
    json_t *header;
    ARRAY(struct {
        const void *data;
        size_t bytes;
    })
    parts;
    size_t bytes; /* of all tensors so far */
} safetensors_writer;

fr_status safetensors_writer_open(safetensors_writer *w, const char *path, fr_error *err);
/* Appends a tensor; the order of adding is the order in the file. Name and shape are copied, `data`
 * must stay until commit. A name that is already used is FR_EUSAGE. */
fr_status safetensors_writer_add(safetensors_writer *w, const char *name, st_dtype dtype, int dims,
                                 const int64_t *shape, const void *data, fr_error *err);
/* Sets a metadata entry, replacing an earlier one; bytes of `value` that are not UTF-8 become '?'.
 */
fr_status safetensors_writer_metadata(safetensors_writer *w, const char *key, const char *value,
                                      fr_error *err);
/* Writes and puts the file in place. After success the writer is empty. */
fr_status safetensors_writer_commit(safetensors_writer *w, fr_error *err);
/* Drops what was not committed; harmless after commit and on a zeroed writer. */
void safetensors_writer_discard(safetensors_writer *w);

#endif
