/* oracle.h - the scorer that knows the truth: log p of every destination of a synthetic stream. In
 * expectation no model can beat it, so its metrics are an upper bound for that stream. */
#ifndef FR_RANK_ORACLE_H
#define FR_RANK_ORACLE_H

#include "base/context.h"
#include "data/window.h"

/* Replays the events before the window; an error if the stream was not made by `data synth`. */
fr_status oracle_open(const fr_window *w, const fr_context *context, fr_scorer_definition *out,
                      fr_error *err);

#endif
