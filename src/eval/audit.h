/* audit.h - the inside of an audit (fullrank.h, chapter 17; docs/audit.md).
 *
 * A few ranked events are scored once, alone and in stream order, by a scorer of the original
 * window. Every check scores them again after a change that must not matter: on a window in which
 * only unknown things were changed, with other events, or with other candidates. A check keeps the
 * largest difference of every event. Whether it is a finding is decided at the end, when the noise
 * of equal runs is known.
 */
#ifndef FR_EVAL_AUDIT_H
#define FR_EVAL_AUDIT_H

#include "base/text.h"
#include "data/counterfactual.h"
#include "rank/scorer.h"

enum { AUDIT_NOISE = FR_AUDIT_CHECKS, AUDIT_TALLIES }; /* equal runs, compared as a check is */

/* The largest difference of an event. */
typedef struct difference {
    double size; /* relative to the largest score of the event; 0 = none */
    int64_t column;
    float score, changed;
    const char *what;    /* what was changed; a static text */
    int32_t from, until; /* events it was changed in, until - 1 the last; -1 = not in events */
} difference;

/* The results of a check. */
typedef struct tally {
    bool tested;
    int64_t events, scores;
    double rr, changed_rr; /* sums over `ranked` events */
    int64_t ranked;
    difference *worst; /* [audited events] */
    text_buffer note;
} tally;

/* Audited events that one changed stream serves: the last of them is changed itself. */
typedef struct group {
    int first, count; /* audited events */
} group;

/* A finding that is not a difference of one event. */
typedef struct extra_finding {
    int check, severity;
    int64_t event, candidate; /* as in fr_audit_finding */
    double score, changed;
    char what[200];
} extra_finding;

typedef struct audit {
    const fr_window *w;
    const char *spec;
    fr_scorer_factory *open; /* NULL = by spec */
    void *user;
    fr_audit_settings settings;
    int64_t seed;
    fr_context context;
    bool wanted[FR_AUDIT_CHECKS];
    bool fixed; /* scores of a file */
    bool given; /* the user has named the events */

    int32_t *event; /* [events] ascending, all of them covered */
    int events;
    group *groups; /* [group_count] all events, in order */
    int group_count;

    bool remembers, catalog_only;
    int many, workers;
    int64_t row;
    float *base;           /* [events, row] */
    double *scale;         /* [events] largest finite score, without its sign */
    float *other, *mapped; /* [row] scratch, longer by AUDIT_MORE */
    tally tally[AUDIT_TALLIES];
    ARRAY(extra_finding) extra;
    double noise;    /* largest difference of equal runs */
    int64_t streams; /* opened so far */
} audit;
enum { AUDIT_MORE = 16 }; /* candidates that never occur */

/* Opens the scorer on a window; a scorer of another kind is FR_EINPUT. */
fr_status audit_open_scorer(audit *a, const fr_window *w, fr_scorer **out, fr_error *err);
/* Scores one event of the scorer's window, after the scorer has observed its past. */
fr_status audit_score(fr_scorer *scorer, int32_t event, int worker, float *out, fr_error *err);
/* Compares audited event k with its scores after a change. The score of column c is now in
 * place[c], -1 = nowhere; NULL = in c. `d` describes the change. */
void audit_compare(audit *a, int check, int k, const float *found, const int32_t *place,
                   difference d);
/* True if the difference matters. */
double audit_tolerance(const audit *a, int check);
/* The destination of a column. */
int32_t audit_destination(const audit *a, int64_t column);
int32_t audit_column(const audit *a, int32_t destination);
fr_status audit_add(audit *a, int check, int severity, extra_finding found, fr_error *err);

/* Chooses events and groups. */
fr_status audit_choose(audit *a, fr_error *err);
/* The checks, by FR_AUDIT_*, in any order, after the events have been scored. */
typedef fr_status audit_function(audit *a, fr_error *err);
extern audit_function *const audit_functions[FR_AUDIT_CHECKS];
audit_function audit_numbers, audit_position;

#endif
