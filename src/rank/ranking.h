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
    json_t *about; /* what RANKS.json holds */
};

/* Takes over `records`. `seconds` of work gave `scores` scores. */
fr_status ranking_make(const fr_window *w, const char *scorer, fr_record *records, double seconds,
                       double scores, fr_ranking **out, fr_error *err);

/* FILE.npy -> FILE.json; NULL when out of memory or if the name does not end in .npy. */
char *ranking_side_path(const char *path, const char *end);

#endif
