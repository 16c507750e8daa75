/* metrics.h - the sums of the metrics; the registry itself is public (fullrank.h, chapter 11). */
#ifndef FR_EVAL_METRICS_H
#define FR_EVAL_METRICS_H

#include "base/status.h"

/* 1/(low+1) + 1/(low+2) + ... + 1/high, to the last digits, in O(1) for long sums. */
double harmonic(int64_t low, int64_t high);

/* Fills out[count]: the numbers of the events whose mean the metric is, NaN where an event does not
 * count. A metric that is not a mean over events is FR_EUSAGE; metrics_check_each
 * tests only this. */
fr_status metrics_each(const char *name, const fr_record *records, int64_t count, int oov,
                       double *out, fr_error *err);
fr_status metrics_check_each(const char *name, fr_error *err);

#endif
