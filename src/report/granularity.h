/* granularity.h - the effect of the batch size of state updates on the MRR. */
#ifndef FR_REPORT_GRANULARITY_H
#define FR_REPORT_GRANULARITY_H

#include "report/chart.h"
#include "report/summary.h"

/* MRR of every model by size of batch; no rows if the study did not ask for it. */
void granularity_table(const summary *s, table *t);
/* The same as lines. */
fr_status granularity_figure(const summary *s, arena *memory, const fr_context *context,
                             figure *out, fr_error *err);

#endif
