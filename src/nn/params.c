/* params.c - see params.h. */
#include "nn/params.h"

#include "base/rng.h"
#include "base/simd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static fr_status push(params *p, param fresh) {
    ARRAY_PUSH(&p->list, fresh, NULL);
    return FR_OK;
}

int params_add(params *p, int rows, int cols, param_init init, double scale, const char *format,
               ...) {
    param fresh = {.dims = rows ? 2 : 1,
                   .rows = rows ? rows : 1,
                   .cols = cols,
                   .init = init,
                   .scale = scale,
                   .offset = p->count};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(fresh.name, sizeof fresh.name, format, args);
    va_end(args);
    if (p->count == SIZE_MAX || push(p, fresh)) {
        p->count = SIZE_MAX; /* stays so: params_ready will say it */
        return -1;
    }
    p->count += (size_t)fresh.rows * (size_t)cols;
    return (int)p->list.count - 1;
}

void params_freeze(params *p) {
    if (p->list.count) p->list.at[p->list.count - 1].frozen = true;
}

size_t params_trained(const params *p) {
    size_t count = 0;
    for (size_t i = 0; i < p->list.count; i++)
        if (!p->list.at[i].frozen) count += (size_t)p->list.at[i].rows * (size_t)p->list.at[i].cols;
    return count;
}

void params_shrink(params *p, double keep, size_t from, size_t to) {
    for (size_t i = 0; i < p->list.count; i++) {
        const param *one = &p->list.at[i];
        size_t first = one->offset, last = first + (size_t)one->rows * (size_t)one->cols;
        if (first < from) first = from;
        if (last > to) last = to;
        for (size_t k = first; !one->frozen && k < last; k++) p->value[k] *= (real)keep;
    }
}

static double initial(const param *one, rng_key key, uint64_t element) {
    double normal[2];
    switch (one->init) {
    case INIT_ONE: return 1;
    case INIT_FIXED: return one->scale;
    case INIT_NORMAL: rng_normal(key, element, 0, normal); return normal[0] * one->scale;
    case INIT_LINEAR: return (2 * rng_uniform(key, element, 0) - 1) * one->scale;
    case INIT_TIME: {
        double k = (double)(element - one->offset), last = one->cols > 1 ? one->cols - 1 : 1;
        return pow(10, -9 * k / last);
    }
    default: return 0;
    }
}

fr_status params_ready(params *p, int64_t seed, fr_error *err) {
    if (p->count == SIZE_MAX) return fail_memory(err, 0);
    TRY(ALLOCATE(p->value, p->count, err));
    rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_INIT};
    for (size_t i = 0; i < p->list.count; i++) {
        const param *one = &p->list.at[i];
        size_t n = (size_t)one->rows * (size_t)one->cols;
        for (size_t k = one->offset; k < one->offset + n; k++)
            p->value[k] = (real)initial(one, key, k);
    }
    return FR_OK;
}

void params_free(params *p) {
    free(p->list.at);
    free(p->value);
    *p = (params){0};
}

const param *params_of(const params *p, size_t element) {
    const param *found = &p->list.at[0];
    for (size_t i = 1; i < p->list.count && p->list.at[i].offset <= element; i++)
        found = &p->list.at[i];
    return found;
}

fr_status adam_open(adam *a, size_t count, fr_error *err) {
    *a = (adam){0};
    TRY(ALLOCATE(a->mean, count, err));
    return ALLOCATE(a->square, count, err);
}

void adam_free(adam *a) {
    free(a->mean);
    free(a->square);
    *a = (adam){0};
}

SIMD_LOOPS void adam_update(adam *a, int64_t step, double rate, size_t from, size_t to,
                            const real *gradient, real *value) {
    const real keep1 = REAL(0.9), keep2 = REAL(0.999), eps = REAL(1e-8);
    const real correct1 = (real)(1 / (1 - pow(0.9, (double)step)));
    const real correct2 = (real)(1 / (1 - pow(0.999, (double)step)));
    const real lr = (real)rate;
    real *restrict mean = a->mean, *restrict square = a->square;
    for (size_t k = from; k < to; k++) {
        real g = gradient[k - from];
        real m = keep1 * mean[k] + (1 - keep1) * g;
        real v = keep2 * square[k] + (1 - keep2) * (g * g);
        mean[k] = m;
        square[k] = v;
        value[k] -= lr * (m * correct1) / (real_sqrt(v * correct2) + eps);
    }
}
