/* summary.h - the numbers of a study for its tables, figures and page, computed once.
 *
 * Data sets in the order of the plan; in each, models in the order of their first run. A number of
 * a model is a mean over seeds with its sample standard deviation. Everything is from the ledger,
 * so equal ledgers give equal summaries. Lifetime: run.
 */
#ifndef FR_REPORT_SUMMARY_H
#define FR_REPORT_SUMMARY_H

#include "study/results.h"

typedef struct mean_sd {
    double mean, sd; /* sd NaN with one value, both with none */
    int n;
} mean_sd;

/* One rank unit. */
typedef struct run_numbers {
    const result *run;
    double *expected; /* [ks + 1] MRR among K sampled negatives; the last: all */
    double hits10, all_seen, all_unseen, coverage, ties;
    double available; /* MRR in the time-available catalog */
    int64_t ranked;
} run_numbers;

/* The runs of a model, or of a scorer that is not trained, under one objective. */
typedef struct model_numbers {
    const char *name;      /* "craft-r", "baseline:recency" */
    const char *label;     /* "CRAFT-R", "recency" */
    const char *objective; /* "bce", "bpr"; NULL = not trained, or external */
    bool external;         /* an external model, without a number in the paper */
    int runs;
    const run_numbers *run; /* [runs] by seed as planned */
    mean_sd *expected;      /* [ks + 1] */
    mean_sd hits10, all_seen, all_unseen, available;
} model_numbers;

typedef struct data_numbers {
    const char *name;
    const char *protocol; /* of its rank records; "" if there are none */
    const result *facts;  /* its facts unit; NULL = not done */
    int models;
    const model_numbers *model; /* [models] */
    fr_comparison *compared;    /* of all models that are; NULL = fewer than two */
    fr_comparison *gain[2];     /* of the two models of the module gain, by objective */
    int64_t ranked, repeated;   /* events that the numbers are over, of the first run */
    int judged;                 /* scorers of the main table, without the oracle */
    double *tau;                /* [ks] agreement of their order with that of the full catalog */
} data_numbers;

typedef struct summary {
    results *results;
    arena memory;
    int ks; /* that are at most the largest catalog */
    const int64_t *k;
    int datas;
    data_numbers *data; /* [datas] */
} summary;

fr_status summary_make(summary *s, results *r, const fr_context *context, fr_error *err);
void summary_free(summary *s);

/* Mean over the seeds of a unit, of one of its metrics. */
mean_sd summary_mean(const summary *s, const result *unit, metric_key metric);
/* The same for a membership or project unit, of one cell (-1 = the full MRR) after a
 * removal (FR_REMOVE_*, -1 = none was tried). */
mean_sd summary_cell(const summary *s, const result *unit, int removal, int cell);
/* Metrics of a rank unit by name. They come from the ledger, or from the records if the ledger of
 * an earlier version or with another K lacks them. */
fr_status summary_numbers(const result *unit, const char *const *name, int names, double *out,
                          fr_error *err);
/* Expected MRR of a rank unit for distinct numbers K of negatives, by the same rule: those of the
 * study are in the ledger; the curve of a figure has more. */
fr_status summary_expected(const result *unit, const int64_t *k, int count,
                           const fr_context *context, double *out, fr_error *err);
/* "CRAFT-R" for "craft-r", "recency" for "baseline:recency". */
const char *summary_label(const char *model);
/* True for the oracle, which is shown separately. */
bool summary_is_oracle(const model_numbers *m);
/* True for the models that a study compares: trained with bce, or external. The rest are baselines,
 * the oracle and models with another objective. */
bool summary_is_compared(const model_numbers *m);
/* True if it is in the main table: trained with bce, or not trained by this study. */
bool summary_is_main(const model_numbers *m);
/* The word for those models: "trained" if no model is external, otherwise "compared". */
const char *summary_compared_word(const summary *s);
/* True if it takes part in the order of a data set; the oracle does not. */
bool summary_is_judged(const model_numbers *m);
/* Number of a K in `k`; -1 if it is not there. */
int summary_place_of_k(const summary *s, int64_t k);
/* The model of a data set; NULL if it has none such. */
const model_numbers *summary_find(const data_numbers *d, const char *model, const char *objective);

#endif
