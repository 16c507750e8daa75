/* input.h - the bytes of an input file, plain or gzip, with the SHA-256 of the file as stored.
 *
 * gzip is recognised by its first two bytes, not by the file's name. Several members in a row are
 * one stream; a truncated stream, or other bytes after it, are errors (zlib's own reader silently
 * ignores both).
 */
#ifndef FR_DATA_INPUT_H
#define FR_DATA_INPUT_H

#include "base/context.h"
#include "base/sha256.h"

typedef struct input {
    const char *name; /* for messages; the caller's */
    int fd;           /* -1 for memory */
    const unsigned char *memory;
    int64_t size;            /* of the stored file; 0 if not known */
    int64_t taken;           /* stored bytes read so far */
    struct z_stream_s *gzip; /* NULL for plain bytes */
    unsigned char *raw;      /* stored bytes not yet inflated */
    size_t raw_room;
    size_t raw_at, raw_end;
    bool inside;               /* within a gzip member */
    bool ended;                /* the stored file was read to its end */
    bool waits;                /* a pipe or terminal: bytes may arrive late */
    const fr_context *context; /* for cancelling while waiting; may be NULL */
    sha256 hash;
} input;

/* A pipe may stay without a writer, or silent, for long. Here and in input_read, `context` (which
 * may be NULL) can cancel the wait. */
fr_status input_open(input *in, const char *path, const fr_context *context, fr_error *err);
/* Reads from memory instead, which must outlive the input. */
fr_status input_open_memory(input *in, const void *bytes, size_t size, const char *name,
                            fr_error *err);
/* Fills up to `size` bytes; *got = 0 means the end. */
fr_status input_read(input *in, void *out, size_t size, size_t *got, fr_error *err);
/* An estimate of the bytes to read, INT64_MAX if unknown. It is only for the size of buffers,
 * because a file may grow. */
int64_t input_most(const input *in);
/* The hash of the stored file, once it has been read to the end. */
void input_sha256(input *in, char out[65]);
void input_close(input *in);

#endif
