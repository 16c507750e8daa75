/* top.h - the probe that keeps the best candidates of every ranked event, for people to look at.
 *
 * Candidates are those that the event is ranked over, its own destination included. The higher
 * score comes first; of equal scores the smaller id. So the file depends only on the scores.
 */
#ifndef FR_RANK_TOP_H
#define FR_RANK_TOP_H

#include "base/file.h"
#include "rank/engine.h"

/* A candidate in its place. */
typedef struct top_place {
    int32_t candidate; /* number; -1 = the event has fewer candidates */
    float score;
} top_place;

typedef struct top_list {
    const fr_window *w;
    char *path;
    bool force;     /* replace a file that exists */
    int32_t places; /* places per event */
    int64_t *row;   /* [test events] where its places go, -1 = not ranked */
    int64_t rows;
    writer spill;    /* [rows][places], in the order of events */
    top_place *best; /* [threads][places] a heap each, worker scratch */
} top_list;

/* Of the settings: top, top_output, met, force. `threads` is the number of parallel readers. */
fr_status top_open(top_list *t, const fr_window *w, const event_list *list, bool catalog_only,
                   const fr_rank_settings *settings, int threads, fr_error *err);
probe top_probe(top_list *t);
/* Writes the file and puts it in place. */
fr_status top_commit(top_list *t, fr_error *err);
void top_close(top_list *t);

#endif
