/* lift.c - see lift.h. */
#include "data/lift.h"

#include <stdlib.h>

static int by_key(const void *a, const void *b) {
    double x = ((const keyed *)a)->key, y = ((const keyed *)b)->key;
    return (x > y) - (x < y);
}

void lift_list(keyed *list, int32_t count, float base, float *scores) {
    qsort(list, (size_t)count, sizeof *list, by_key);
    int32_t place = 0;
    for (int32_t k = 0; k < count; k++) {
        if (k && list[k].key > list[k - 1].key) place = k;
        scores[list[k].destination] = base + (float)place;
    }
}
