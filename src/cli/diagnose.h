/* diagnose.h - what the `diagnose ...` commands share (cmd_diagnose.c). */
#ifndef FR_CLI_DIAGNOSE_H
#define FR_CLI_DIAGNOSE_H

#include "cli.h"

/* Prints a line in bold. */
void diagnose_title(const char *text);
/* The same, with `what` and the window, catalog and order of the ranking. */
void diagnose_heading(const char *what, const fr_ranking *ranking);
/* A window of the stream with one of the catalogs. */
fr_status diagnose_window(const cli_call *call, const fr_stream *stream, fr_protocol protocol,
                          const char *catalog, fr_window **out, fr_error *err);
/* Ranks one scorer in one window. `removal` (FR_REMOVE_*) is removed from a trained model. `met` is
 * that of fr_rank_settings. */
fr_status diagnose_rank(const cli_call *call, const fr_window *window, const char *spec,
                        int removal, int64_t met, int64_t seed, fr_ranking **out, fr_error *err);
/* The four cells by name. */
json_t *diagnose_cells(const fr_membership *table);

#endif
