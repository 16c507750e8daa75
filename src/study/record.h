/* record.h - the results of a unit of work: collected while it works, stored in the transaction
 * that marks it done, and read back as a whole.
 *
 * Reading verifies everything: the type of every column, the size and hash of stored bytes, and the
 * hash of all rows, which is sealed in the unit's row of `run`.
 */
#ifndef FR_STUDY_RECORD_H
#define FR_STUDY_RECORD_H

#include "study/ledger.h"

typedef struct unit_metric {
    char name[64]; /* "mrr" */
    char cell[32], removed[32], sampler[32], path[32];
    int64_t k;
    double value; /* NaN = undefined */
    int64_t events;
} unit_metric;

/* Which number of a unit; NULL and 0 = does not apply. */
typedef struct metric_key {
    const char *name;
    const char *cell;    /* of the membership table, fr_cell_names */
    const char *removed; /* by an intervention, fr_removal_names */
    const char *sampler; /* of an expectation */
    const char *path;    /* of a cost, as in fr_scaling_point */
    int64_t k; /* negatives of an expectation, size of a cost's catalog or of a batch, epoch of a
                  loss */
} metric_key;

typedef struct unit_artefact {
    char name[32];
    char *path;      /* below the study's folder, or absolute; NULL = kept in the ledger */
    char sha256[65]; /* of the file or the bytes */
    void *bytes;     /* kept in the ledger, followed by a 0 */
    size_t size;
} unit_artefact;

typedef struct unit_timing {
    char stage[32];
    double seconds;
} unit_timing;

typedef struct unit_record {
    ARRAY(unit_metric) metrics;
    ARRAY(unit_artefact) artefacts;
    ARRAY(unit_timing) timings;
} unit_record;

/* A number of the membership table, or the full one (cell -1), after a removal (FR_REMOVE_*, -1 =
 * none was tried). */
metric_key metric_of_cell(const char *name, int removal, int cell);
/* The expected MRR among K sampled negatives. */
metric_key metric_of_k(int64_t k);

void record_free(unit_record *r);
const unit_metric *record_metric(const unit_record *r, metric_key key);       /* NULL = none */
const unit_artefact *record_artefact(const unit_record *r, const char *name); /* the same */
const unit_timing *record_timing(const unit_record *r, const char *stage);    /* the same */

/* Replaces the unit's results in the ledger and marks it done now, with these inputs, by this
 * version of the tool. Paths inside `folder` are stored relative to it, so it may be moved. */
fr_status record_store(ledger *l, int64_t unit, const char *folder, const char *inputs,
                       const unit_record *r, fr_error *err);
/* Reads all of a unit back; `key` is for messages. With `contents` NULL the rows are hashed into
 * `hash` and bytes are left out; otherwise they must have that hash. */
fr_status record_load(ledger *l, int64_t unit, const char *key, const char *contents,
                      unit_record *out, char hash[65], fr_error *err);
/* Upgrades the records of a ledger of format `old`, within the present transaction: names of
 * metrics are split, and everything is sealed. Units of format 2 that were changed after they were
 * stored are not sealed, and are done again. */
fr_status record_upgrade(ledger *l, int64_t old, fr_error *err);

/* "0.1.0 4dde9831c2": the present version and commit. */
void record_tool(char out[96]);
/* The present time in the ledger's format. */
void record_time(char out[32]);

#endif
