/* rank.h - a ranking run; the scores come from the engine or from a feed. */
#ifndef FR_RANK_RANK_H
#define FR_RANK_RANK_H

#include "rank/counting.h"
#include "rank/dump.h"
#include "rank/ranking.h"
#include "rank/record.h"
#include "rank/top.h"

typedef struct run {
    const fr_scorer *scorer; /* the scorer named in the records */
    fr_rank_settings settings;
    event_list events; /* that have records */
    event_list mine;   /* those that this process ranks, if there are several processes */
    recorder records;
    negatives lists; /* if they are given */
    dump scores;     /* if they are to be kept */
    top_list best;   /* the same */
    probe probe[3];  /* of these */
    int probes;
    double started;
} run;

/* `threads` is the number of parallel readers. Close it even on failure. */
fr_status run_open(run *r, const fr_scorer *scorer, const fr_rank_settings *settings, int threads,
                   const fr_context *context, fr_error *err);
/* True if ranks are counted without score vectors. */
bool run_counts(const run *r);
/* Fills the records: of all events if they are counted, otherwise of `events`. */
fr_status run_events(run *r, fr_scorer *scorer, const event_list *events, counting_check *check,
                     const fr_context *context, fr_error *err);
/* When all events have been read: puts the requested files of scores in place. */
fr_status run_keep_scores(run *r, fr_error *err);
/* The records as a ranking; notes from the settings are added. */
fr_status run_finish(run *r, ranking_notes notes, fr_ranking **out, fr_error *err);
void run_close(run *r);

#endif
