/* file.h - files: buffered atomic writing, read-only mapping, whole directories that appear at
 * once.
 *
 * A writer writes a temporary file next to PATH (temporary.h); commit syncs it and renames it to
 * PATH. So an interruption leaves either the old file or the new one. A staging directory does the
 * same for a set of files.
 */
#ifndef FR_BASE_FILE_H
#define FR_BASE_FILE_H

#include "base/context.h"
#include "base/temporary.h"

#include <sys/types.h>

typedef struct writer {
    char *path;      /* final name */
    temporary place; /* while writing */
    unsigned char *buffer;
    size_t used;
    int64_t written;         /* bytes put so far, including buffered ones */
    int64_t stored, started; /* bytes given to the system; of those, sent on to the disk */
    bool open;
    bool scratch;   /* no sync: the file will be replaced before anyone relies on it */
    bool read_only; /* committed without permission to write, for files that will be mapped */
} writer;

fr_status writer_open(writer *w, const char *path, fr_error *err);
fr_status writer_put(writer *w, const void *bytes, size_t size, fr_error *err);
/* Flushes and makes the file `size` bytes long, new bytes 0. */
fr_status writer_extend(writer *w, int64_t size, fr_error *err);
/* Overwrites bytes that were put or made before. After writer_extend it may be called by many
 * threads. */
fr_status writer_put_at(writer *w, int64_t place, const void *bytes, size_t size, fr_error *err);
/* Flushes, syncs, renames. After success the writer is closed. */
fr_status writer_commit(writer *w, fr_error *err);
/* Removes an uncommitted file and frees the rest; harmless after commit and on a zeroed writer. */
void writer_discard(writer *w);

/* A read-only mapping of a whole file; bytes is NULL for an empty file. If the file becomes shorter
 * while it is mapped, reading it raises SIGBUS; fr_mapped_file names the file. */
typedef struct mapping {
    const unsigned char *bytes;
    size_t size;
    int64_t modified; /* when, in nanoseconds since 1970 */
    struct mapped *listed;
} mapping;

/* Pipes and devices are refused: they have no size. */
fr_status mapping_open(const char *path, mapping *out, fr_error *err);
/* Releases the pages of the first `size` bytes; they come back when touched. For passes over files
 * that should not fill the memory. */
void mapping_forget(const mapping *m, size_t size);
/* The SHA-256 of all its bytes, as text. */
fr_status mapping_sha256(const mapping *m, const fr_context *context, char out[65], fr_error *err);
void mapping_close(mapping *m);
/* The SHA-256 of a file, as text. */
fr_status file_sha256(const char *path, char out[65], fr_error *err);

/* A directory under construction next to its final place. */
typedef struct staging {
    char *target;
    const char *place; /* its path; NULL once moved or removed */
    temporary built;
    bool replace; /* the target exists and may be exchanged */
} staging;

/* Decides whether an existing directory may be replaced; fills err if not. */
typedef fr_status staging_guard(const char *path, fr_error *err);

/* Refuses an existing `target` unless both `force` and `guard` allow it (an empty directory is
 * fine). Missing parents are an error. */
fr_status staging_open(staging *s, const char *target, bool force, staging_guard *guard,
                       fr_error *err);
/* A private directory below $TMPDIR or /tmp, until it is discarded. */
fr_status staging_temporary(staging *s, fr_error *err);
/* Moves the directory to its target, exchanging it with an old one, which is then removed. */
fr_status staging_commit(staging *s, fr_error *err);
/* Removes the directory if it was not committed. */
void staging_discard(staging *s);

/* For guards, because replacing a directory removes its content: an error unless all entries are
 * among `names`, which are separated and enclosed by blanks. */
fr_status directory_only(const char *path, const char *names, fr_error *err);
bool directory_is(const char *path);
bool directory_empty(const char *path);

/* folder + "/" + name, which the caller frees; NULL = out of memory. */
char *path_join(const char *folder, const char *name);
/* The part after the last '/'. */
const char *path_name(const char *path);

#endif
