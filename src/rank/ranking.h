/* ranking.h - the result of a ranking run: records and the description that is needed to understand
 * and compare them. */
#ifndef FR_RANK_RANKING_H
#define FR_RANK_RANKING_H

#include "base/lock.h"
#include "rank/events.h"
#include "rank/scorer.h"

#include <jansson.h>

struct fr_ranking {
    fr_record *records;
    int64_t count;
    fr_protocol_facts protocol;
    char *protocol_text, *scorer, *model, *objective, *data;
    int64_t seed, epochs_done, epochs_asked, selected;
    double seconds, scores_per_second;
    int64_t verified, verified_ranks;
    double verified_error;
    int64_t covered; /* of a sample: events of the whole part that ranking all would cover */
    json_t *about;   /* the content of RANKS.json */
};

/* How the records were made. */
typedef struct ranking_notes {
    double popularity_power;
    int64_t met; /* only sources that have met this many others were ranked; 0 = all */
    const char *negatives_sha256; /* of the file with lists; empty = none */
    double seconds, scores;       /* of work, and their number */
    int64_t largest_batch;        /* of a feed: most queries at once; 0 = no feed */
    int64_t verified;             /* events scored again by the plain forward pass */
    double verified_error;    /* the largest difference, relative to the event's largest score */
    int64_t verified_ranks;   /* of them: the positive has another rank */
    const event_list *events; /* that the records are of */
} ranking_notes;

/* Takes over `records`. */
fr_status ranking_make(const fr_scorer *scorer, fr_record *records, ranking_notes notes,
                       fr_ranking **out, fr_error *err);

/* Joins records and the content of RANKS.json. Takes over both, even on failure; `where` is for
 * messages. */
fr_status ranking_adopt(fr_record *records, int64_t count, json_t *about, const char *where,
                        fr_ranking **out, fr_error *err);

/* FILE.npy -> FILE + end, which the caller frees; a name that does not end in .npy is FR_EUSAGE. */
fr_status ranking_side_path(const char *path, const char *end, char **out, fr_error *err);
/* Keeps other processes from writing FILE.npy and FILE.json, until lock_release, so that the two
 * belong together; files that exist by now are FR_EFILE without `force`. */
fr_status ranking_lock(lock *l, const char *path, bool force, fr_error *err);

#endif
