/* record.h - what a unit of work leaves behind: collected while it works, stored in one transaction
 * that marks it done, read back whole.
 *
 * Reading believes nothing: every column has its type, bytes have the size and hash they were
 * stored with, and all rows together have the hash that stands, sealed, in the unit's own row.
 */
#ifndef FR_STUDY_RECORD_H
#define FR_STUDY_RECORD_H

#include "study/ledger.h"

typedef struct unit_metric {
    char name[64];
    double value; /* NaN = undefined */
    int64_t events;
} unit_metric;

typedef struct unit_artefact {
    char name[32];
    char *path;      /* below the study's folder, or absolute; NULL = kept in the ledger */
    char sha256[65]; /* of the file or the bytes */
    void *bytes;     /* kept in the ledger, with a 0 behind them */
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

/* ---- names of metrics that are made of parts ---- */

enum { METRIC_NAME = sizeof((unit_metric *)NULL)->name };
/* A cell of the membership table, "new-seen", or what is left of it, or of the full MRR (cell -1),
 * without a direction (FR_REMOVE_*, -1 = nothing was done): "random-new-seen", "random-mrr". */
void metric_of_cell(int removal, int cell, char out[METRIC_NAME]);
/* The expectation among K sampled negatives, "expected-20". */
void metric_of_k(int64_t k, char out[METRIC_NAME]);
/* A cost of a catalog, "20-forward-seconds"; `what` is "seconds" or "bytes". */
void metric_of_size(int64_t size, const char *path, const char *what, char out[METRIC_NAME]);

void record_free(unit_record *r);
const unit_metric *record_metric(const unit_record *r, const char *name);     /* NULL = none */
const unit_artefact *record_artefact(const unit_record *r, const char *name); /* the same */
const unit_timing *record_timing(const unit_record *r, const char *stage);    /* the same */

/* Replaces what the ledger has of a unit and marks it done with these inputs, now, by this version
 * of the tool. Paths inside of `folder` are kept from there on, so that it may be moved. */
fr_status record_store(ledger *l, int64_t unit, const char *folder, const char *inputs,
                       const unit_record *r, fr_error *err);
/* Reads all of a unit back; `key` is for messages. With `contents` NULL the rows are hashed into
 * `hash` and bytes are left out, else they must have that hash. */
fr_status record_load(ledger *l, int64_t unit, const char *key, const char *contents,
                      unit_record *out, char hash[65], fr_error *err);
/* Seals everything in a ledger that has no seals yet, within the transaction at hand. */
fr_status record_seal_all(ledger *l, fr_error *err);

/* "0.1.0 4dde9831c2": who does units now. */
void record_tool(char out[96]);
/* Time now, as the ledger has it. */
void record_time(char out[32]);

#endif
