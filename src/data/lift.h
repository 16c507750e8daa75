/* lift.h - an order of destinations as scores.
 *
 * Where only the order of candidates is known, or is all that matters, small whole numbers are
 * their scores: float32 holds them exactly, so that ties are ties and nothing else is. Baselines
 * lift what a source has met above the rest, score files keep the order of doubles.
 */
#ifndef FR_DATA_LIFT_H
#define FR_DATA_LIFT_H

#include <stdint.h>

/* A destination with what it is sorted by. */
typedef struct keyed {
    double key;
    int32_t destination;
} keyed;

/* Gives the listed destinations the scores base, base + 1, ... in ascending order of key; equal
 * keys share a score. Sorts the list. */
void lift_list(keyed *list, int32_t count, float base, float *scores);

#endif
