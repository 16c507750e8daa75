/* board.h - the table of rankings that `rank` and `metrics` print. */
#ifndef FR_CLI_BOARD_H
#define FR_CLI_BOARD_H

#include "cli.h"

/* The k of Hits@k and the K of expected MRR that have a column. */
typedef struct board_shape {
    int64_t hits, k;
} board_shape;
extern const board_shape board_standard; /* Hits@10, Expected-20 */

/* Help of the option --interval, which a command declares next to fr_interval_options. */
#define BOARD_INTERVAL_HELP                                                                        \
    "add a confidence interval over time to each number, by the block bootstrap"
typedef struct board_resampling {
    const fr_interval_settings *settings;
    int64_t seed;
    bool asked; /* --interval was given (over time); a sample always has intervals */
} board_resampling;
/* True if a sample of the events was ranked. Its numbers are estimates with intervals. */
bool board_is_sample(const fr_ranking_facts *f);
/* The settings for the intervals of one ranking; false = it has none. */
bool board_resampling_of(board_resampling how, const fr_ranking_facts *f,
                         fr_interval_settings *out);
/* {"events": ..., "of": ..., "seed": ...}: the sample that the estimates come from. */
json_t *board_estimate_json(const fr_ranking_facts *f);
/* The coverage of the whole part is also known for a sample: `value` gets it, and no interval.
 * Either may be NULL. */
void board_know_coverage(const fr_ranking_facts *f, const char *metric, fr_metric_value *value,
                         fr_interval *interval);
/* {"low": ..., "high": ...} */
json_t *board_interval_json(fr_interval i);
/* Describes the intervals: {"level": ..., "block": ..., "resamples": ..., "seed": ...}, and for
 * a sample "over": "time" or "sample". */
json_t *board_resampling_json(board_resampling how, const fr_ranking_facts *f);
/* The same as one or two lines of text for tables; "" if there are no intervals. `sampled`: some
 * rankings are samples. */
void board_resampling_text(board_resampling how, bool sampled, char *out, size_t size);
enum { BOARD_TEXT = 400 }; /* enough bytes for it */

enum { BOARD_NUMBERS = 5 };

/* The numbers of one ranking that every table shows. */
typedef struct board_row {
    char name[192];                                   /* for a sample with its size */
    double mrr, hits, expected, all_seen, all_unseen; /* NaN when no event applies */
    bool sampled;                                     /* they are estimates */
    bool resampled;                                   /* they have intervals */
    fr_interval interval[BOARD_NUMBERS];
    double coverage;
    int64_t ranked, ties; /* events whose destination is in the catalog; those with a tie */
    double tie_spread;    /* between the tie rules' MRRs */
} board_row;

/* Computes a row. A `name` that is too long is shown as "..." and its end. row->name is made
 * visible (cli_visible) here. */
fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, board_shape shape,
                     board_resampling how, const fr_context *context, fr_error *err);
/* True if one of them is a sample. */
bool board_samples(const board_row *rows, int count);
/* Prints rows with the best of each column in bold, intervals below their numbers, and a note
 * about ties. */
void board_print(const board_row *rows, int count, board_shape shape);
/* Prints the same as LaTeX or Markdown; returns an exit code. */
int board_print_as(const board_row *rows, int count, board_shape shape, board_resampling how,
                   const char *protocol, int format);

#endif
