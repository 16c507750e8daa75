/* project.h - directions of a model's representation, and models without them (PROTOCOL 10). */
#ifndef FR_RANK_PROJECT_H
#define FR_RANK_PROJECT_H

#include "models/model.h"

/* The direction `what` (FR_REMOVE_*) of the vectors that enter the head; *out is the caller's, even
 * on failure. A model that remembers has been replayed from event 0. */
fr_status project_direction(const model *m, int what, int64_t seed, const fr_context *context,
                            double **out, fr_error *err);
/* Changes the head as if the direction were taken out of those vectors. */
fr_status project_remove(model *m, const double *direction, fr_error *err);

#endif
