/* scores.h - a scorer whose scores come from a file, for models of any other program. */
#ifndef FR_RANK_SCORES_H
#define FR_RANK_SCORES_H

#include "base/context.h"
#include "base/npy.h"
#include "data/window.h"

/* FILE.npy, or a pattern such as part-*.npy: the rows of its files follow each other, by name, runs
 * of digits counting as numbers. float16, float32 or float64 [rows, columns], mapped. Rows are the
 * covered test events in stream order and columns the catalog in ascending id, unless another file
 * says otherwise: FILE.json with "events" (rows of the stream) and "destinations" (original
 * ids), as --dump-scores writes it, or FILE.events.npy and FILE.destinations.npy (int64), each
 * optional. Time-available ranks exist only if all destinations and events of that catalog are
 * there. */
fr_status scores_open(const char *path, const fr_window *w, fr_scorer_definition *out,
                      fr_error *err);
/* The same from standard input: .npy arrays one after the other, each with some rows, of the
 * covered test events in stream order, over the catalog (the time-available one: over all
 * candidates). */
fr_status scores_stream_open(const fr_window *w, const fr_context *context,
                             fr_scorer_definition *out, fr_error *err);

/* True if time-available ranks are impossible, because a destination that occurs before the last
 * test event is missing, or an event whose destination has occurred before. `scored` [destinations]
 * says which have scores, NULL = the catalog; `row` [test events] is -1 if there are none, NULL =
 * the covered events have them. */
bool scores_lack(const fr_window *w, const uint8_t *scored, const int64_t *row);

/* True if it is an array of scores. */
fr_status scores_check(const npy *file, const char *path, fr_error *err);
/* One row of such an array: column k goes to scores[place[k]], if that is not -1. */
fr_status scores_take_row(const npy *type, const void *row, int64_t columns, const int32_t *place,
                          float *scores, fr_error *err);

#endif
