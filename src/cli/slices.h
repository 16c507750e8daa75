/* slices.h - metrics for parts of a ranking's events: `metrics --by`. */
#ifndef FR_CLI_SLICES_H
#define FR_CLI_SLICES_H

#include "board.h"

/* The metrics of every slice. */
typedef struct slice_metrics {
    const char *const *name; /* [count] as the library knows them: "hits@10" */
    int count;
    /* Adds the values of one slice to a JSON object. */
    void (*put)(json_t *object, const fr_metric_value *value, const void *user);
    const void *user;
    board_resampling how; /* of the intervals of estimates */
} slice_metrics;

/* One ranking cut by one field. Starts as {0}; call slice_table_free in any case. */
typedef struct slice_table {
    fr_slices slices;
    fr_metric_value *value; /* [slices + 1][metrics]; the last row is for all events */
    int64_t events, ranked; /* of all */
    fr_interval *interval;  /* like `value`, if the ranking is a sample; otherwise NULL */
} slice_table;

enum { MOST_SLICINGS = 16 };

/* Splits a list of fields into words and checks them. The words point into *memory, which the
 * caller frees. On an error it prints a message and returns an exit code. */
int slice_fields(const char *list, char **memory, const char **word, int *count);

fr_status slice_table_fill(slice_table *out, const fr_ranking *ranking, const char *field,
                           const slice_metrics *metrics, fr_error *err);
void slice_table_free(slice_table *table);

/* `name` distinguishes rankings; NULL if there is only one. */
void slice_table_print(const slice_table *table, const char *name, const slice_metrics *metrics);
/* The same as LaTeX or Markdown; returns an exit code. */
int slice_table_print_as(const slice_table *table, const char *name, const slice_metrics *metrics,
                         const char *protocol, int format);
/* [{"slice": "4-17", "from": 4, "to": 18, "events": ..., "ranked": ..., and the metrics}, ...] */
json_t *slice_table_json(const slice_table *table, const slice_metrics *metrics);

#endif
