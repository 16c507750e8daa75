/* train_fixture.h - a stream of habits and a narrow model for the tests of training. */
#ifndef FR_TESTS_TRAIN_FIXTURE_H
#define FR_TESTS_TRAIN_FIXTURE_H

#include "base/rng.h"
#include "testing.h"

static fr_model_settings small; /* made once: the defaults, but narrow */

static inline int make_small(void **state) {
    (void)state;
    fr_error err;
    OK(fr_options_defaults(fr_model_options, &small, &err));
    small.dim = 16;
    return 0;
}

typedef struct fixture {
    fr_stream *stream;
    fr_window *w;
} fixture;

/* Nine sources, each with a destination that two of three of its events go to. */
static inline fr_stream *habits(const char *directory, int events) {
    fr_error err;
    fr_stream *stream;
    rng_key key = {.seed = 4, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < events; i++) {
        uint32_t u = rng_below(key, (uint64_t)i, 0, 9);
        bool habit = rng_below(key, (uint64_t)i, 2, 3) > 0;
        (void)fprintf(file, "%u,%u,%d\n", u, habit ? 2 * u : rng_below(key, (uint64_t)i, 1, 25),
                      7 * i);
    }
    assert_int_equal(fclose(file), 0);
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

static inline void close_fixture(fixture *f) {
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

#endif
