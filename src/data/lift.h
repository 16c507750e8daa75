/* lift.h - an order of destinations as scores.
 *
 * If only the order of candidates is known or matters, their scores are small whole numbers.
 * float32 represents these exactly, so scores tie only if the candidates tie. Baselines lift the
 * destinations that a source has met above the rest; score files keep the order of doubles.
 */
#ifndef FR_DATA_LIFT_H
#define FR_DATA_LIFT_H

#include <stdint.h>

/* A destination with its sort key. */
typedef struct keyed {
    double key;
    int32_t destination;
} keyed;

/* Gives the listed destinations the scores base, base + 1, ... in ascending order of key; equal
 * keys share a score. Sorts the list. */
void lift_list(keyed *list, int32_t count, float base, float *scores);

#endif
