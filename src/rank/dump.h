/* dump.h - the probe that keeps score vectors: float32 [events, N] in catalog order. */
#ifndef FR_RANK_DUMP_H
#define FR_RANK_DUMP_H

#include "base/npy.h"
#include "rank/engine.h"

typedef struct dump {
    const fr_window *w;
    char *path;
    npy_writer file;
    int64_t *row; /* [test events] where its scores go, -1 = not kept */
    int64_t rows;
    bool open;
} dump;

/* `events` says which ranked events to keep: all, first:N, every:N or a list of rows of the stream.
 */
fr_status dump_open(dump *d, const fr_window *w, const char *path, const char *events, bool force,
                    fr_error *err);
probe dump_probe(dump *d);
/* Puts FILE.npy and FILE.json in place. */
fr_status dump_commit(dump *d, fr_error *err);
void dump_close(dump *d);

#endif
