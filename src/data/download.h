/* download.h - downloads one file by HTTP(S) or file://, and continues an earlier attempt.
 *
 * Bytes go to PATH.part. PATH.part.json remembers their version of the remote file (ETag,
 * Last-Modified, size). A later request for the rest requires the same version (If-Range). So a
 * file never consists of parts of two versions; if in doubt, it is downloaded from the start. PATH
 * appears only when it is complete.
 */
#ifndef FR_DATA_DOWNLOAD_H
#define FR_DATA_DOWNLOAD_H

#include "base/context.h"

/* A public set known by name. */
typedef struct download_source {
    const char *name, *url;
    int64_t events; /* rows it is known to have */
} download_source;

/* All of them; the last has a NULL name. */
extern const download_source download_sources[];
/* The source with this name, NULL if there is none. */
const download_source *download_find(const char *name);
/* Writes their names as "a, b, c" for messages; at most `size` bytes with the final 0. */
void download_names(char *out, size_t size);

typedef struct download_result {
    char sha256[65];      /* of the complete file */
    int64_t bytes;        /* of the complete file */
    int64_t resumed_from; /* bytes that an earlier call had downloaded */
} download_result;

/* Downloads `url` (http, https, file) to `path` and replaces an existing file. A broken transfer is
 * retried a few times. On failure and on cancellation PATH.part stays if a later call can continue
 * it; the message then says so. Progress is in bytes under the stage "download " + name of `path`.
 * Bytes beyond the server's Content-Length are not part of the file, as HTTP defines. */
fr_status download_file(const char *url, const char *path, const fr_context *context,
                        download_result *out, fr_error *err);

/* Milliseconds before the first retry; each further pause is twice as long. Tests shorten it. */
extern int download_pause;

#endif
