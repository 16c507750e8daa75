/* estimates.h - how a study or report of sampled test events is marked (PROTOCOL 15): every table
 * has a note, one table has the intervals, and the page starts with it. */
#ifndef FR_REPORT_ESTIMATES_H
#define FR_REPORT_ESTIMATES_H

#include "base/text.h"
#include "report/summary.h"
#include "report/table.h"

/* "Estimates from a simple random sample of the test events: wikipedia 1,000 of 4,916." Nothing if
 * all events of all data sets were ranked. */
void estimates_say(const summary *s, text_buffer *out);
/* The note of every table. */
void estimates_note(const summary *s, table *t);
/* Intervals for the values over all events, for every run on a sample. */
void estimates_table(const summary *s, table *t);

#endif
