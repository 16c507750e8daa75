/* board.h - the table of rankings that `rank` and `metrics` print. */
#ifndef FR_CLI_BOARD_H
#define FR_CLI_BOARD_H

#include "cli.h"

/* Which k of Hits@k and which K of expected MRR have a column. */
typedef struct board_shape {
    int64_t hits, k;
} board_shape;
extern const board_shape board_standard; /* Hits@10, Expected-20 */

/* Of the option --interval, which a command declares beside the group of fr_interval_options. */
#define BOARD_INTERVAL_HELP                                                                        \
    "show how far each number may be off with other stretches of time: its interval by the block " \
    "bootstrap"
typedef struct board_resampling {
    const fr_interval_settings *settings; /* NULL = no intervals */
    int64_t seed;
} board_resampling;
/* {"low": ..., "high": ...} */
json_t *board_interval_json(fr_interval i);
/* What the intervals are: {"level": ..., "block": ..., "resamples": ..., "seed": ...}. */
json_t *board_resampling_json(board_resampling how);
/* The same in a line of text, for tables. */
void board_resampling_text(board_resampling how, char *out, size_t size);

enum { BOARD_NUMBERS = 5 };

/* The numbers of one ranking that every table shows. */
typedef struct board_row {
    char name[64];
    double mrr, hits, expected, all_seen, all_unseen; /* NaN when no event applies */
    bool resampled;
    fr_interval interval[BOARD_NUMBERS]; /* of these, if asked for */
    double coverage;
    int64_t ranked, ties; /* events whose destination is in the catalog; of them with a tie */
    double tie_spread;    /* between the tie rules' MRRs */
} board_row;

/* Computes a row; of a `name` that is too long "..." and its end are shown. row->name is made
 * visible (cli_visible) here. */
fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, board_shape shape,
                     board_resampling how, const fr_context *context, fr_error *err);
/* Prints rows with the best of each column in bold, intervals below their numbers, and what there
 * is to say about ties. */
void board_print(const board_row *rows, int count, board_shape shape);
/* Prints the same as LaTeX or Markdown; returns an exit code. */
int board_print_as(const board_row *rows, int count, board_shape shape, board_resampling how,
                   const char *protocol, int format);

#endif
