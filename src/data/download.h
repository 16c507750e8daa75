/* download.h - fetches one file by HTTP(S) or file://, going on where an earlier try stopped.
 *
 * Bytes go to PATH.part. PATH.part.json remembers which version of the remote file they belong to
 * (ETag, Last-Modified, size), and a later request for the rest is made on the condition that this
 * is still the version there (If-Range). So a file is never glued together from two versions: when
 * in doubt it is fetched from its start. PATH appears only when complete.
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
    int64_t resumed_from; /* bytes of it that were there from an earlier call */
} download_result;

/* Fetches `url` (http, https, file) to `path`, replacing a file that is there. A transfer that
 * breaks off is taken up again a few times. On failure and on cancellation PATH.part stays if a
 * later call can go on from it; the message then says so. Progress is told in bytes under the stage
 * "download " + name of `path`. Bytes that a server sends beyond its own Content-Length are, as
 * HTTP has it, no part of the file. */
fr_status download_file(const char *url, const char *path, const fr_context *context,
                        download_result *out, fr_error *err);

/* Milliseconds before the first new try; each further pause is twice as long. Tests shorten it. */
extern int download_pause;

#endif
