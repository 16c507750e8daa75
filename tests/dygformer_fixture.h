/* dygformer_fixture.h - a stream and a model for the tests of DyGFormer(+LHA). */
#ifndef FR_TESTS_DYGFORMER_FIXTURE_H
#define FR_TESTS_DYGFORMER_FIXTURE_H

#include "fast_path.h"
#include "models/dygformer.h"
#include "models/lha.h"

enum { EVENTS = 200 };

/* Few sources, one of which has most events, and one destination with many: pasts from none to
 * longer than is read, pairs that meet often, rarely and never; nodes that come late; up to three
 * events share a time. */
static inline void make_window(fixture *f, const char *directory, int order, int width) {
    rng_key key = {.seed = 5, .purpose = RNG_TEST};
    FILE *file = start_table(directory, width);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 5 + 40 * (uint32_t)i / EVENTS, sources = 2 + 12 * (uint32_t)i / EVENTS;
        uint32_t source = rng_below(key, e, 0, 2) ? 0 : rng_below(key, e, 1, sources);
        uint32_t destination = rng_below(key, e, 3, 4) ? rng_below(key, e, 2, reach) : 1;
        (void)fprintf(file, "\n%u,%u,%d", source, 3 * destination, 700 * (i / 3));
        for (int k = 0; k < width; k++)
            (void)fprintf(file, ",%.3f", rng_uniform(key, e, 8 + (uint32_t)k) - 0.5);
    }
    (void)fprintf(file, "\n");
    assert_int_equal(fclose(file), 0);
    open_window(f, directory, order);
}

static const fr_model_settings usual = {.size = sizeof usual,
                                        .dim = 16,
                                        .heads = 2,
                                        .layers = 2,
                                        .history = 12,
                                        .patch = 5,
                                        .time_dim = 6,
                                        .edge_dim = -1,
                                        .gamma = 0.9,
                                        .write_every = 1};

/* Parameters at least as far from their start as training moves them. A model that remembers has
 * learned some of the first training events and has been replayed. */
static inline void make(fixture *f, const char *directory, int order, int width, const char *name,
                        fr_model_settings settings) {
    fr_error err;
    rng_key key = {.seed = 9, .purpose = RNG_TEST};
    make_window(f, directory, order, width);
    OK(model_open(&f->m, name, &settings, f->w, 7, &err));
    move_parameters(&f->m, 0.2);
    if (!f->m.kind->memory) return;
    enum { LEARNED = 60 };
    int32_t event[LEARNED];
    real *keep;
    OK(ALLOCATE(keep, LEARNED * f->m.keep, &err));
    for (int i = 0; i < LEARNED; i++) event[i] = i;
    for (int i = 0; i < LEARNED * f->m.keep; i++) keep[i] = (real)rng_uniform(key, (uint64_t)i, 2);
    OK(f->m.kind->memory->learn(&f->m, event, LEARNED, keep, &err));
    OK(f->m.kind->memory->replay(&f->m, f->w->train, NULL, &err));
    free(keep);
}

#endif
