/* dump.h - the probe that keeps score vectors: float32 [events, N].
 *
 * Columns are the destinations that ranking again needs: the catalog, ascending, or, if it depends
 * on time, every destination of the window. */
#ifndef FR_RANK_DUMP_H
#define FR_RANK_DUMP_H

#include "base/npy.h"
#include "rank/engine.h"

typedef struct dump {
    const fr_window *w;
    const event_list *events; /* that are ranked, if covered */
    char *path;
    bool force; /* replace files that exist */
    npy_writer file;
    int64_t *row; /* [test events] where its scores go, -1 = not kept */
    int64_t rows;
    int32_t columns;
    const int32_t *column; /* [columns] destinations; NULL = all of them */
    float *line;           /* [threads][columns] a row each, to gather columns in */
    bool open;
} dump;

/* Of the settings: dump_scores, events, force. `threads` is the number of parallel readers. */
fr_status dump_open(dump *d, const fr_window *w, const event_list *list,
                    const fr_rank_settings *settings, int threads, fr_error *err);
probe dump_probe(dump *d);
/* Puts FILE.npy and FILE.json in place. */
fr_status dump_commit(dump *d, fr_error *err);
void dump_close(dump *d);

#endif
