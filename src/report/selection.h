/* selection.h - how models were selected on the validation part. */
#ifndef FR_REPORT_SELECTION_H
#define FR_REPORT_SELECTION_H

#include "report/chart.h"
#include "report/summary.h"

/* Every configuration with its value, and the chosen one; no rows without a selection. */
void selection_table(const summary *s, table *t);
/* Says below a table how many configurations were tried. */
void selection_note(const summary *s, table *t);
/* The value on the validation part by epoch. */
fr_status selection_figure(const summary *s, arena *memory, const fr_context *context, figure *out,
                           fr_error *err);

#endif
