/* rank.h - a ranking run around whatever brings the scores: the engine, or a feed. */
#ifndef FR_RANK_RANK_H
#define FR_RANK_RANK_H

#include "rank/counting.h"
#include "rank/dump.h"
#include "rank/ranking.h"
#include "rank/record.h"
#include "rank/top.h"

typedef struct run {
    const fr_scorer *scorer; /* what the records will be said to be of */
    fr_rank_settings settings;
    event_list events; /* that have records */
    event_list mine;   /* of them: those that this process ranks, if there are several */
    recorder records;
    negatives lists; /* if they are given */
    dump scores;     /* if they are to be kept */
    top_list best;   /* the same */
    probe probe[3];  /* of these */
    int probes;
    double started;
} run;

/* `threads` as many as read events at a time. To be closed whether it fails or not. */
fr_status run_open(run *r, const fr_scorer *scorer, const fr_rank_settings *settings, int threads,
                   const fr_context *context, fr_error *err);
/* Are ranks counted without score vectors? */
bool run_counts(const run *r);
/* Fills the records: of all events where they are counted, else of `events`, which have records. */
fr_status run_events(run *r, fr_scorer *scorer, const event_list *events, counting_check *check,
                     const fr_context *context, fr_error *err);
/* When all events have been read: puts the files of scores in place that were to be kept. */
fr_status run_keep_scores(run *r, fr_error *err);
/* The records as a ranking; of the notes, those of the settings are added. */
fr_status run_finish(run *r, ranking_notes notes, fr_ranking **out, fr_error *err);
void run_close(run *r);

#endif
