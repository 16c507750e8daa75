/* scores.h - a scorer whose scores come from a file: how any other program's model is ranked. */
#ifndef FR_RANK_SCORES_H
#define FR_RANK_SCORES_H

#include "data/window.h"

/* FILE.npy: float16, float32 or float64 [rows, columns], mapped. Rows are the covered test events
 * in stream order and columns the catalog in ascending id, unless a file beside it says otherwise:
 * FILE.json with "events" (rows of the stream) and "destinations" (original ids), as --dump-scores
 * writes it, or FILE.events.npy and FILE.destinations.npy (int64), each optional. Unless every
 * destination and event of the time-available catalog is there, there are no such ranks. */
fr_status scores_open(const char *path, const fr_window *w, fr_scorer_definition *out,
                      fr_error *err);

#endif
