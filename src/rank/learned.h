/* learned.h - a trained model as a scorer. */
#ifndef FR_RANK_LEARNED_H
#define FR_RANK_LEARNED_H

#include "models/model.h"
#include "rank/scorer.h"

/* Opens a checkpoint through the model's fast path; a model that remembers first reads the test
 * events (model.h). */
fr_status learned_open(const char *path, const fr_window *w, const fr_context *context,
                       fr_scorer_definition *out, fr_error *err);
/* The same model through the plain forward pass; close it before `learned`. An error if `learned`
 * is not a model. */
fr_status learned_plain(const fr_scorer *learned, int threads, fr_scorer_definition *out,
                        fr_error *err);
/* The model of a scorer, which owns it; NULL if there is none. */
const model *learned_model(const fr_scorer *scorer);

#endif
