/* scorer.h - a scorer inside the library: its checked definition (fullrank.h, chapter 9). */
#ifndef FR_RANK_SCORER_H
#define FR_RANK_SCORER_H

#include "data/window.h"

/* Reads the scores of `count` events of a call, from the one at `first` on. */
typedef fr_status scorer_reader(void *to, int first, int count, const float *scores, fr_error *err);
/* As `part`, but for at most SCORER_PIECE events at a time, for which `scores` has room: they are
 * read at once, when the nearest cache still has them. It fills all of them. */
typedef fr_status scorer_pieces(void *state, const fr_query *queries, int count, int32_t from,
                                int32_t to, float *scores, scorer_reader *read, void *reader,
                                fr_error *err);
enum { SCORER_PIECE = 24 }; /* two tiles of registers high (nn/gemm_kernel.h) */

struct fr_scorer {
    const fr_window *window;
    fr_scorer_definition is; /* texts: never NULL, owned; workers and many: at least 1 */
    int64_t row;             /* scores per event */
    int32_t observed;        /* events below this number are in the state */
    bool twins;            /* name and seed open it again, and both may be used at the same time */
    scorer_pieces *pieces; /* NULL = `part` alone */
};

/* Copies the definition of a caller that may have been compiled for another release. Fields that
 * the caller does not know are 0, and fields that we do not know must be 0. */
fr_status scorer_take(const fr_scorer_definition *from, fr_scorer_definition *to, fr_error *err);
/* FR_EUSAGE for a definition with functions or a state if only a description is allowed. */
fr_status scorer_check_described(const fr_scorer_definition *is, fr_error *err);
/* A scorer that never scores: the description of external results. One with functions or a state is
 * FR_EUSAGE. `about` is from scorer_take. */
fr_status scorer_describe(const fr_window *w, const fr_scorer_definition *about, fr_scorer **out,
                          fr_error *err);
/* Scores of whole rows, by `score`, or by `part` if the scorer has no `score`. */
fr_status scorer_rows(const fr_scorer *s, const fr_query *queries, int count, int worker,
                      float *scores, fr_error *err);
/* A name that is too long is FR_EUSAGE. */
fr_status scorer_check_name(const char *name, fr_error *err);

#endif
