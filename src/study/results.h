/* results.h - the results in a study's ledger, for tables, figures and the report.
 *
 * It shows only finished units of the plan, in the order of the plan. So equal results give equal
 * tables, whatever the order of work. Everything is read and verified when the results are opened,
 * at one moment of a study that may be running, so later queries cannot fail. Lifetime: run.
 */
#ifndef FR_STUDY_RESULTS_H
#define FR_STUDY_RESULTS_H

#include "study/plan.h"
#include "study/record.h"

typedef struct result {
    int64_t id;
    unit_kind kind;
    const char *key, *data;
    const char *model;     /* "craft-r", "baseline:recency", "oracle"; NULL = none */
    const char *objective; /* "bce", "bpr"; NULL = not trained, or external */
    bool external;         /* an external model */
    int64_t seed;
    bool diagnostic;
    const char *tool; /* version that did it; NULL = an early one */
    unit_record record;
    fr_ranking *ranking; /* of rank units */
    json_t *training;    /* train.json, of train units */
    json_t *choice;      /* of select units: metric, chosen, configurations */
    int config;          /* of its model, in train units; others than the chosen one are left out */
    bool configured;     /* it is one of several, or made of the chosen one */
    bool final;          /* the chosen one, trained on training and validation */
} result;

/* How many units a version of the tool did. */
typedef struct version_count {
    const char *tool;
    int64_t units;
} version_count;

/* Why there is no number of the paper, and for which data sets. */
typedef struct paper_reason {
    const char *why, *data;
} paper_reason;

typedef struct results {
    arena memory;
    ledger book;
    plan plan;
    ARRAY(result) list;
    ARRAY(version_count) versions; /* of `list` */
    json_t *published;             /* the paper's numbers (paper.h) */
    ARRAY(paper_reason) reasons;   /* since they were last taken */
    fr_error failure;              /* the first one while asking for the paper's numbers */
} results;

fr_status results_open(results *r, const char *directory, fr_error *err);
void results_close(results *r);

/* True if it is a unit of this kind with these names; NULL matches all. */
bool results_fits(const result *unit, unit_kind kind, const char *data, const char *model,
                  const char *objective);
/* The next done unit of a kind from number `from` on that matches; -1 = none. NULL matches all. */
int results_next(const results *r, int from, unit_kind kind, const char *data, const char *model,
                 const char *objective);
/* The same for groups: the first unit of every model, which stands for all its seeds. */
int results_next_group(const results *r, int from, unit_kind kind, const char *data,
                       bool diagnostic);
/* True if they are units of one kind, data set, window, model and objective, with different seeds.
 */
bool results_same_group(const result *a, const result *b);
/* The next unit of a group from number `from` on. */
int results_next_seed(const results *r, int from, const result *group);
/* The costs of a scaling unit by ascending size, "forward" before "fast"; size, path, seconds and
 * peak_bytes are filled. Returns their number. */
int results_scaling(const result *unit, fr_scaling_point out[FR_SCALING_MAX]);
/* A number of a unit; NaN if it has none. */
double results_number(const result *unit, metric_key key);
/* The same for a number with only a name. */
double results_metric(const result *unit, const char *name);
double results_seconds(const result *unit, const char *stage);
/* True if the model of a rank or train unit was trained for fewer epochs than requested. */
bool results_stopped_early(const result *unit, int64_t *done, int64_t *asked);
/* SHA-256 of a file or text kept with a unit, such as ranks or model; "" if there is none. */
const char *results_hash(const result *unit, const char *name);

/* ---- for code that reads a ledger ---- */

/* A verified row of `run`. Texts are valid during the call. */
typedef struct unit_row {
    int64_t id;
    const plan_unit *unit;
    const char *status, *message, *tool, *contents;
    double seconds, guess; /* its duration; that of similar units; NaN if unknown */
} unit_row;

/* Reads the plan of a ledger. */
fr_status results_plan(ledger *book, plan *p, fr_error *err);
/* Calls `take` for every unit of the plan, in its order. */
fr_status results_units(ledger *book, const plan *p,
                        fr_status (*take)(void *user, const unit_row *row, fr_error *err),
                        void *user, fr_error *err);

#endif
