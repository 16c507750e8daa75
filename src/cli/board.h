/* board.h - the table of rankings that `rank`, `metrics` and `demo` print. */
#ifndef FR_CLI_BOARD_H
#define FR_CLI_BOARD_H

#include "cli.h"

/* The numbers of one ranking that every table shows. */
typedef struct board_row {
    char name[64];
    double mrr, hits10, expected20, all_seen, all_unseen; /* NaN when no event applies */
    double coverage;
    int64_t ranked, ties; /* events ranked; of them with a tie */
    double tie_spread;    /* between the tie rules' MRRs */
} board_row;

/* Computes a row; `name` is cut if it is too long. */
fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, fr_error *err);
/* Prints rows with the best of each column in bold, and what there is to say about ties. */
void board_print(const board_row *rows, int count);

#endif
