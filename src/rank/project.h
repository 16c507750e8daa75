/* project.h - directions of a model's representation, and models without them (PROTOCOL 10). */
#ifndef FR_RANK_PROJECT_H
#define FR_RANK_PROJECT_H

#include "models/model.h"

/* Vectors z of pairs, read some at a time, and whether each pair has met. */
typedef struct project_pairs {
    const char *name; /* for messages */
    int64_t count;
    int width;            /* of z */
    int shard;            /* pairs to be read at a time */
    const uint8_t *label; /* [count] 0 or 1 = has met */
    /* Fills z [count, width] with the vectors first .. first + count - 1, count <= shard. */
    fr_status (*read)(void *from, int64_t first, int64_t count, int worker, double *z,
                      fr_error *err);
    void *from;
} project_pairs;

/* The direction `what` (FR_REMOVE_*, not nothing) of the vectors into out[width]. */
fr_status project_find(const project_pairs *pairs, int what, int64_t seed,
                       const fr_context *context, double *out, fr_error *err);
/* a.a; an error if it is 0 or not finite, because the direction then cannot be removed. */
fr_status project_square(const double *a, int width, double *out, fr_error *err);
/* row - (row.a) a / (a.a), in place: a row of the head as if a were removed from z, or z itself. */
void project_row(double *row, const double *a, double square, int width);

/* Columns of z, which are those of the head. */
int project_width(const model *m);
/* The direction `what` of the vectors that enter the head; the caller frees *out, even on failure.
 * A model that remembers has been replayed from event 0. */
fr_status project_direction(const model *m, int what, int64_t seed, const fr_context *context,
                            double **out, fr_error *err);
/* Changes the head as if the direction were removed from those vectors. */
fr_status project_remove(model *m, const double *direction, fr_error *err);

#endif
