/* results.h - a study's ledger read back: what tables, figures and the report are made of.
 *
 * Only units that are done and belong to the plan are seen, in the order of the plan, so that the
 * same results give the same tables whoever did the work in whatever order. Lifetime: run.
 */
#ifndef FR_STUDY_RESULTS_H
#define FR_STUDY_RESULTS_H

#include "study/ledger.h"
#include "study/plan.h"

typedef struct result {
    int64_t id;
    unit_kind kind;
    const char *key, *data;
    const char *model;     /* "craft-r", "baseline:recency", "oracle"; NULL = none */
    const char *objective; /* "bce", "bpr"; NULL = not trained */
    int64_t seed;
    bool diagnostic;
    fr_ranking *ranking; /* of rank units */
} result;

typedef struct results {
    arena memory;
    ledger book;
    plan plan;
    ARRAY(result) list;
    json_t *published; /* the paper's numbers; NULL = another protocol */
} results;

fr_status results_open(results *r, const char *directory, fr_error *err);
void results_close(results *r);

/* The next done unit of a kind from number `from` on that fits; -1 = none. NULL fits all. */
int results_next(const results *r, int from, unit_kind kind, const char *data, const char *model,
                 const char *objective);
/* A number of a unit; NaN if it has none. `events` may be NULL. */
double results_metric(results *r, const result *unit, const char *name, int64_t *events);
double results_seconds(results *r, const result *unit, const char *stage);
/* SHA-256 of a file or text kept with a unit, such as ranks or model; as results_text. */
const char *results_hash(results *r, const result *unit, const char *name);
/* A text kept with a unit, such as catalog_sha256; in the results' memory, "" if there is none. */
const char *results_text(results *r, const result *unit, const char *name);

/* The paper's number at a path of keys, such as "main_result", "mooc", "craft", "full", "mean";
 * ends with NULL. NaN if it has none, or if the study's windows, split, order or catalog are not
 * the paper's: numbers that cannot be compared do not stand beside each other. Elements of lists
 * are named by their index, "0". */
double published(const results *r, const char *first, ...) __attribute__((sentinel));

#endif
