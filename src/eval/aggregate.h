/* aggregate.h - expected sampled reciprocal ranks event by event; the means over events are public
 * (fullrank.h, chapter 11). */
#ifndef FR_EVAL_AGGREGATE_H
#define FR_EVAL_AGGREGATE_H

#include "base/context.h"

/* Fills out[k_count][count]: the expectation of every event for every K, of its reciprocal rank or,
 * if `sampling` asks for Hits@k, of the first of these; NaN where fr_expected_compute does not
 * count the event, 0 for an event outside the catalog that counts. */
fr_status aggregate_each(const fr_record *records, int64_t count, const fr_sampling *sampling,
                         const fr_context *context, double *out, fr_error *err);

#endif
