/* ranking.h - the result of a ranking run: records with what is needed to understand and compare
 * them. */
#ifndef FR_RANK_RANKING_H
#define FR_RANK_RANKING_H

#include "data/window.h"

#include <jansson.h>

struct fr_ranking {
    fr_record *records;
    int64_t count;
    char *protocol, *scorer, *data;
    int oov;
    double seconds, scores_per_second;
    int64_t verified, verified_ranks;
    double verified_error;
    json_t *about; /* what RANKS.json holds */
};

/* How the records came about. */
typedef struct ranking_notes {
    double seconds, scores; /* of work, and what it gave */
    int64_t verified;       /* events scored again by plain forward */
    double verified_error;  /* the largest difference, relative to the event's largest score */
    int64_t verified_ranks; /* of them: the positive has another rank */
} ranking_notes;

/* Takes over `records`. */
fr_status ranking_make(const fr_window *w, const char *scorer, fr_record *records,
                       ranking_notes notes, fr_ranking **out, fr_error *err);

/* FILE.npy -> FILE.json; NULL when out of memory or if the name does not end in .npy. */
char *ranking_side_path(const char *path, const char *end);

#endif
