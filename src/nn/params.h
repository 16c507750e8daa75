/* params.h - all parameters of a model in one flat buffer, with names.
 *
 * A model declares its tensors in the order of its table in the file format; `params_ready` then
 * makes the buffer. Optimiser, checkpoint and sums of gradients are loops over one array. The
 * initial value of an element depends only on the seed and its position in the buffer. Lifetime:
 * run.
 */
#ifndef FR_NN_PARAMS_H
#define FR_NN_PARAMS_H

#include "base/memory.h"
#include "nn/real.h"

typedef enum param_init {
    INIT_ZERO,
    INIT_ONE,
    INIT_NORMAL, /* N(0, scale^2) */
    INIT_LINEAR, /* U(-scale, scale); scale = 1 / sqrt(fan in) */
    INIT_FIXED,  /* every element is scale */
    INIT_TIME,   /* 10^(-9 k / (n - 1)) for element k of n (MODELS 1.3) */
} param_init;

typedef struct param {
    char name[64];
    int dims, rows, cols; /* a vector is 1 x cols with dims 1 */
    param_init init;
    double scale;
    size_t offset; /* of the first element in the buffer */
    bool frozen;   /* is not trained: no op may give it a gradient */
} param;

typedef struct params {
    ARRAY(param) list;
    size_t count; /* elements */
    real *value;  /* [count] */
} params;

/* The weight and the bias of a layer by number. */
typedef struct param_pair {
    int weight, bias;
} param_pair;

/* Declares a matrix (rows, cols) or, with rows 0, a vector; returns its number, or -1 when out of
 * memory. The name is printf-formatted. */
int params_add(params *p, int rows, int cols, param_init init, double scale, const char *format,
               ...) __attribute__((format(printf, 6, 7)));
/* Marks the last declared one as frozen. */
void params_freeze(params *p);
/* Multiplies elements from..to-1 that are trained by `keep`: weight decay (AdamW). */
void params_shrink(params *p, double keep, size_t from, size_t to);
/* Elements that are trained. */
size_t params_trained(const params *p);
/* Makes the buffer and fills it with initial values. Fails if a params_add has. */
fr_status params_ready(params *p, int64_t seed, fr_error *err);
void params_free(params *p);

/* The parameter an element belongs to. */
const param *params_of(const params *p, size_t element);

/* Adam (0.9, 0.999, 1e-8), bias-corrected, dense: every element moves every step (MODELS 1.6). */
typedef struct adam {
    real *mean, *square; /* [count] moments */
    int64_t step;        /* taken so far */
} adam;

fr_status adam_open(adam *a, size_t count, fr_error *err);
void adam_free(adam *a);
/* One step on elements from..to-1 with the given gradients; `step` counts from 1. Elements are
 * independent, so ranges may be done by different threads. */
void adam_update(adam *a, int64_t step, double rate, size_t from, size_t to, const real *gradient,
                 real *value);

#endif
