/* drawn_stream.h - a stream of pseudo-random events in memory, for tests of ranking. */
#ifndef FR_TESTS_DRAWN_STREAM_H
#define FR_TESTS_DRAWN_STREAM_H

#include "testing.h"

/* Events in pairs of equal time. Some destinations occur only in the test part. With shared ids
 * sources and destinations are one set, so a source is not a candidate of its own events. */
static inline fr_stream *drawn_stream(int64_t events, int64_t destinations, bool shared) {
    fr_error err;
    fr_stream *s;
    int64_t *source = calloc((size_t)events, sizeof *source);
    int64_t *destination = calloc((size_t)events, sizeof *destination);
    double *time = calloc((size_t)events, sizeof *time);
    assert_true(source && destination && time);
    for (int64_t k = 0; k < events; k++) {
        uint64_t x = (uint64_t)k * 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
        source[k] = (int64_t)(x >> 40) % 40;
        destination[k] = k % 3 ? (int64_t)((x >> 13) % (uint64_t)destinations) : source[k] * 5 + 1;
        time[k] = (double)(k / 2);
    }
    fr_arrays a = {.size = sizeof a,
                   .events = events,
                   .source = source,
                   .destination = destination,
                   .time = time};
    fr_import settings = {.size = sizeof settings, .shared_ids = shared};
    OK(fr_stream_make(&a, &settings, NULL, &s, &err));
    free(source);
    free(destination);
    free(time);
    return s;
}

#endif
