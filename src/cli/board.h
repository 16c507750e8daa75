/* board.h - the table of rankings that `rank` and `metrics` print. */
#ifndef FR_CLI_BOARD_H
#define FR_CLI_BOARD_H

#include "cli.h"

/* Which k of Hits@k and which K of expected MRR have a column. */
typedef struct board_shape {
    int64_t hits, k;
} board_shape;
extern const board_shape board_standard; /* Hits@10, Expected-20 */

/* The numbers of one ranking that every table shows. */
typedef struct board_row {
    char name[64];
    double mrr, hits, expected, all_seen, all_unseen; /* NaN when no event applies */
    double coverage;
    int64_t ranked, ties; /* events whose destination is in the catalog; of them with a tie */
    double tie_spread;    /* between the tie rules' MRRs */
} board_row;

/* Computes a row; of a `name` that is too long "..." and its end are shown. row->name is made
 * visible (cli_visible) here. */
fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, board_shape shape,
                     const fr_context *context, fr_error *err);
/* Prints rows with the best of each column in bold, and what there is to say about ties. */
void board_print(const board_row *rows, int count, board_shape shape);

#endif
