/* plan.h - the plan of a study: a JSON document becomes a list of units of work.
 *
 * Units are ordered so that each comes after those it needs, data set by data set. So working
 * through the list from the top always finds something to do. Lifetime: run.
 */
#ifndef FR_STUDY_PLAN_H
#define FR_STUDY_PLAN_H

#include "base/memory.h"

#include <jansson.h>

typedef enum unit_kind {
    UNIT_DATA,       /* the stream: found, imported or drawn */
    UNIT_FACTS,      /* PROTOCOL 13 */
    UNIT_MINIMAL,    /* PROTOCOL 9 */
    UNIT_TRAIN,      /* a model on one of the windows */
    UNIT_RANK,       /* rank records of a model, a baseline or the oracle */
    UNIT_MEMBERSHIP, /* PROTOCOL 8, on one of the windows */
    UNIT_PROJECT, /* PROTOCOL 10: the full MRR on the ranking window; on the diagnostic window the
                     four cells and, if it is asked for, the full MRR */
    UNIT_SCALING, /* PROTOCOL 12 */
    UNIT_SELECT,  /* which of a model's configurations is ranked, by the validation part */
    UNIT_BATCHES, /* MRR under order batch:N, for every N of "granularity" */
    UNIT_KINDS
} unit_kind;
extern const char *const unit_kind_name[UNIT_KINDS];
extern const char *const plan_objective_name[]; /* by FR_OBJECTIVE_* */

typedef struct plan_data {
    const char *name;
    const char *path; /* a table or an imported directory; NULL = draw it */
    const json_t
        *synth; /* then the settings of fr_synth; if also NULL, there are only rank records */
    int unit;   /* number of its data unit; -1 = none */
} plan_data;

typedef struct plan_unit {
    unit_kind kind;
    const char *key;   /* "wikipedia/craft-r/bce/7/rank" */
    int data;          /* number of its data set */
    const char *model; /* name of a model, or the scorer of a rank unit; NULL = none */
    /* For an external model, whose name is `model`: a file of rank records or the text of a scorer;
     * NULL = a built-in one. */
    const char *external;
    bool ranks;    /* it is rank records */
    int objective; /* FR_OBJECTIVE_*, of trained models */
    int64_t seed;
    bool trained;      /* `model` is one that is trained */
    bool seeded;       /* it has a seed, which is in the key */
    bool diagnostic;   /* on the diagnostic window, otherwise on the ranking window */
    int train;         /* number of the unit that trains its model, -1 = none */
    int config;        /* number of its model's configuration (grid.h) */
    const char *label; /* of the configuration, which is in the key; NULL = the only one */
    bool chosen;       /* it is of the configuration that unit number `choice` selects; a training
                          unit then uses training and validation together ("final") */
    int choice;
    int64_t id; /* in the ledger */
} plan_unit;

typedef struct plan {
    arena memory;
    json_t *source; /* the document */
    const char *name;
    fr_protocol protocol;
    fr_rank_settings ranking; /* of units on the ranking window */
    int64_t diagnostic_window;
    bool membership_on[2]; /* windows of the membership table, .. */
    bool projection_on[2]; /* .. and of the full MRR without a direction: ranking, diagnostic */
    int datas;
    plan_data *data; /* [datas] */
    ARRAY(plan_unit) units;
    const int64_t *k; /* [ks] */
    int ks;
    json_t *grids;      /* by model (grid.h) */
    const char *select; /* the metric of the validation part; NULL = the last epoch is kept */
    const json_t *granularity; /* events of a batch, of the document; NULL = none */
    const char *gain[2];       /* models whose difference is the module gain; NULL = none */
} plan;

/* The settings of a synthetic data set, from {"synth": "preset", ...}; the caller frees them, also
 * after a failure. */
fr_status plan_synth(const json_t *wanted, fr_synth *settings, fr_error *err);

/* As in the ledger: "bce" or "bpr", NULL = not trained; "ranking" or "diagnostic". */
const char *plan_objective(const plan_unit *unit);
const char *plan_window(const plan_unit *unit);

/* Reads a document from a file. Data with relative paths are in `folder`, NULL = the folder of the
 * file; paths of rank records and scorers start at the file's folder. */
fr_status plan_read(plan *p, const char *path, const char *folder, fr_error *err);
/* The same from text. Data with relative paths are in `folder`; other relative paths start at the
 * current directory. `where` is for messages. */
fr_status plan_parse(plan *p, const char *text, const char *where, const char *folder,
                     fr_error *err);
void plan_free(plan *p);

/* Where in a scorer's text the name of a file begins, and its size; NULL if there is none. */
const char *plan_scorer_file(const char *text, size_t *size);

/* A document that comes with the tool ("paper", "quick", "demo", "selected"); NULL = there is none.
 */
const char *plan_preset(const char *name);

/* Options of a model under this plan: its defaults, the document's "settings", and those of its
 * configuration. Its texts belong to the plan. */
fr_status plan_settings(const plan *p, const plan_unit *unit, fr_model_settings *shape,
                        fr_training *training, fr_error *err);

#endif
