/* test_rank_factors.c - factors: the records equal those of a score file with the same chains of
 * fused multiply-adds, for tiles and whole rows, any number of threads, and every shape that U and
 * V may have. For any scorer, parts equal its rows. */
#include "drawn_stream.h"

#include "base/npy.h"
#include "base/rng.h"
#include "rank/scorer.h"

#include <math.h>

enum { WIDTH = 20 };

static float *fill(int64_t count, int64_t seed, double step) {
    float *out = calloc((size_t)count, sizeof *out);
    assert_non_null(out);
    for (int64_t k = 0; k < count; k++) { /* few values, so that scores tie */
        uint64_t x = ((uint64_t)k + (uint64_t)seed * 1000003u) * 0x9e3779b97f4a7c15u;
        out[k] = (float)((double)((x >> 37) % 5) * step - 2 * step);
    }
    return out;
}

/* One chain. */
static float chain(const fr_factors *f, int64_t row, int64_t column) {
    float sum = f->bias ? f->bias[column] : 0;
    for (int64_t k = 0; k < f->width; k++)
        sum = fmaf(f->u[row * f->width + k], f->v[column * f->width + k], sum);
    return sum;
}

/* The scores as a file, with lists of events and destinations in accompanying files. */
static const char *write_scores(const char *folder, const fr_window *w, const fr_factors *f) {
    fr_error err;
    npy_writer out = {0};
    const char *path = in_directory(folder, "scores.npy");
    float *row = calloc((size_t)f->columns, sizeof *row);
    int64_t *event = calloc((size_t)f->rows, sizeof *event);
    int64_t *id = calloc((size_t)f->columns, sizeof *id), count = 0;
    assert_true(row && event && id);
    bool all = f->rows == w->to - w->from;
    for (int32_t i = w->from; i < w->to; i++)
        if (all || window_covered(w, i)) event[count++] = w->first + i;
    assert_int_equal(count, f->rows);
    for (int64_t k = 0; k < f->columns; k++)
        id[k] = w->destination_id[f->columns == w->destinations ? k : w->catalog[k]];
    OK(npy_writer_open(&out, path, 'f', 4, f->columns, &err));
    for (int64_t k = 0; k < f->rows; k++) {
        for (int64_t j = 0; j < f->columns; j++) row[j] = chain(f, k, j);
        OK(npy_writer_put(&out, row, 1, &err));
    }
    OK(npy_writer_commit(&out, &err));
    OK(npy_writer_open(&out, in_directory(folder, "scores.events.npy"), 'i', 8, 0, &err));
    OK(npy_writer_put(&out, event, f->rows, &err));
    OK(npy_writer_commit(&out, &err));
    OK(npy_writer_open(&out, in_directory(folder, "scores.destinations.npy"), 'i', 8, 0, &err));
    OK(npy_writer_put(&out, id, f->columns, &err));
    OK(npy_writer_commit(&out, &err));
    free(row);
    free(event);
    free(id);
    return path;
}

static const fr_scorer_definition about = {.size = sizeof about, .name = "mine"};

static fr_ranking *rank_scorer(fr_scorer *scorer, const fr_rank_settings *settings, int threads) {
    fr_error err;
    fr_ranking *out;
    fr_context context = {.threads = threads};
    OK(fr_rank_run(scorer, settings, &context, &out, &err));
    fr_scorer_close(scorer);
    return out;
}

static void assert_same(fr_ranking *a, const fr_ranking *b) {
    fr_ranking_facts x = fr_ranking_get(a), y = fr_ranking_get(b);
    assert_int_equal(x.count, y.count);
    for (int64_t k = 0; k < x.count; k++)
        assert_memory_equal(&x.records[k], &y.records[k], sizeof *x.records);
    fr_ranking_close(a);
}

static fr_ranking *rank_factors(const fr_window *w, const fr_factors *f,
                                const fr_rank_settings *settings, int threads) {
    fr_error err;
    fr_scorer *scorer;
    OK(fr_scorer_factors(w, f, &about, &scorer, &err));
    return rank_scorer(scorer, settings, threads);
}

static void compare_ways(const char *folder, const fr_window *w, const fr_factors *f) {
    fr_error err;
    fr_scorer *scorer;
    char spec[4200];
    (void)snprintf(spec, sizeof spec, "scores:%s", write_scores(folder, w, f));
    OK(fr_scorer_open(spec, w, 0, NULL, &scorer, &err));
    fr_ranking *file = rank_scorer(scorer, NULL, 1);
    for (int threads = 1; threads <= 3; threads++)
        assert_same(rank_factors(w, f, NULL, threads), file);
    fr_rank_settings settings;
    OK(fr_options_defaults(fr_rank_options, &settings, &err));
    settings.shard = 7;
    assert_same(rank_factors(w, f, &settings, 2), file);
    settings.top = 3; /* needs whole rows */
    settings.top_output = in_directory(folder, "top.csv");
    settings.force = true;
    assert_same(rank_factors(w, f, &settings, 2), file);
    settings.top_output = NULL;
    fr_options_free(fr_rank_options, &settings);
    fr_ranking_close(file);
}

/* Every shape of U and V that fits the window. */
static void compare_shapes(const char *folder, const fr_window *w) {
    int64_t events = w->to - w->from, covered = 0;
    for (int32_t i = w->from; i < w->to; i++) covered += window_covered(w, i);
    float *u = fill(events * WIDTH, 1, 0.25), *v = fill((int64_t)w->destinations * WIDTH, 2, 0.5);
    float *bias = fill(w->destinations, 3, 0.125);
    for (int k = 0; k < 3; k++) {
        fr_factors f = {.size = sizeof f,
                        .rows = k == 2 ? events : covered,
                        .columns = k ? w->destinations : w->catalog_size,
                        .width = WIDTH,
                        .u = u,
                        .v = v,
                        .bias = k == 1 ? NULL : bias};
        bool fits = k != 1 || w->catalog_kind == CATALOG_TIME;
        if (w->catalog_kind == CATALOG_TIME && !k) continue;
        if (!fits && covered != events) continue; /* refused, see below */
        compare_ways(folder, w, &f);
    }
    free(u);
    free(v);
    free(bias);
}

static void test_records(void **state) {
    static const struct {
        int64_t destinations;
        const char *catalog, *order;
        bool shared, filter;
    } cases[] = {{300, "fixed", "stream", false, false}, {300, "time", "strict", true, false},
                 {9000, "fixed", "stream", true, false}, {9000, "fixed", "strict", false, true},
                 {9000, "time", "stream", false, false}, {9000, "all", "stream", false, false}};
    fr_error err;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_protocol protocol;
        fr_window *w;
        fr_stream *s =
            drawn_stream(SANITIZED ? 4500 : 6000, cases[k].destinations, cases[k].shared);
        OK(fr_options_defaults(fr_protocol_options, &protocol, &err));
        OK(fr_options_set(fr_protocol_options, &protocol, "window", "0", &err));
        OK(fr_options_set(fr_protocol_options, &protocol, "catalog", cases[k].catalog, &err));
        OK(fr_options_set(fr_protocol_options, &protocol, "order", cases[k].order, &err));
        OK(fr_options_set(fr_protocol_options, &protocol, "train-share", "0.9", &err));
        if (cases[k].filter)
            OK(fr_options_set(fr_protocol_options, &protocol, "filter", "same-time", &err));
        OK(fr_window_open(s, &protocol, NULL, &w, &err));
        assert_int_equal(w->destinations > 512, cases[k].destinations > 300); /* tiles, or not */
        compare_shapes(*state, w);
        fr_window_close(w);
        fr_stream_close(s);
        fr_options_free(fr_protocol_options, &protocol);
    }
}

static void put_floats(const char *path, const float *data, int64_t rows, int64_t width) {
    fr_error err;
    npy_writer out = {0};
    OK(npy_writer_open(&out, path, 'f', 4, width, &err));
    OK(npy_writer_put(&out, data, rows, &err));
    OK(npy_writer_commit(&out, &err));
}

static void test_files(void **state) {
    fr_error err;
    fr_window *w;
    fr_scorer *scorer;
    char spec[4096];
    fr_stream *s = drawn_stream(4500, 9000, false);
    OK(fr_window_open(s, NULL, NULL, &w, &err));
    int64_t events = w->to - w->from, columns = w->destinations;
    float *u = fill(events * WIDTH, 5, 1), *v = fill(columns * WIDTH, 6, 1),
          *b = fill(columns, 7, 1);
    const char *U = in_directory(*state, "u.npy"), *V = in_directory(*state, "v.npy");
    const char *B = in_directory(*state, "b.npy"), *narrow = in_directory(*state, "narrow.npy");
    put_floats(U, u, events, WIDTH);
    put_floats(V, v, columns, WIDTH);
    put_floats(B, b, columns, 0);
    const char *fewer = in_directory(*state, "fewer.npy");
    put_floats(fewer, b, columns - 1, 0);
    put_floats(narrow, v, columns, WIDTH - 1);
    fr_factors f = {sizeof f, events, columns, WIDTH, u, v, b};
    fr_ranking *made = rank_factors(w, &f, NULL, 1);
    (void)snprintf(spec, sizeof spec, "factors:%s,%s,%s", U, V, B);
    OK(fr_scorer_open(spec, w, 3, NULL, &scorer, &err));
    assert_int_equal(strlen(fr_scorer_get(scorer).sha256), 64);
    assert_same(rank_scorer(scorer, NULL, 2), made);
    fr_ranking_close(made);
#define REFUSED(code, part, ...)                                                                   \
    do {                                                                                           \
        (void)snprintf(spec, sizeof spec, "factors:" __VA_ARGS__);                                 \
        FAILS(fr_scorer_open(spec, w, 0, NULL, &scorer, &err), code, part);                        \
    } while (0)
    REFUSED(FR_EUSAGE, "factors: 1 file, expected U.npy,V.npy", "%s", U);
    REFUSED(FR_EUSAGE, "expected U.npy,V.npy or", "%s,%s,%s,%s", U, V, B, B);
    REFUSED(FR_EUSAGE, "nothing is named", "%s", "");
    REFUSED(FR_EFILE, "none.npy", "%s,none.npy", U);
    REFUSED(FR_EINPUT, "U has 20 columns, V has 19", "%s,%s", U, narrow);
    REFUSED(FR_EINPUT, "biases, expected", "%s,%s,%s", U, V, fewer);
    fr_window_close(w);
    fr_stream_close(s);
    free(u);
    free(v);
    free(b);
}

static void test_what_is_refused(void **state) {
    (void)state;
    fr_error err;
    fr_window *w;
    fr_scorer *scorer;
    fr_stream *s = drawn_stream(4500, 9000, false);
    OK(fr_window_open(s, NULL, NULL, &w, &err));
    int64_t events = w->to - w->from, covered = 0;
    for (int32_t i = w->from; i < w->to; i++) covered += window_covered(w, i);
    assert_true(covered < events);
    float *u = fill(events * WIDTH, 5, 1), *v = fill((int64_t)w->destinations * WIDTH, 6, 1);
    const fr_factors good = {sizeof good, events, w->destinations, WIDTH, u, v, NULL};
    fr_factors f = good;
#undef REFUSED
#define REFUSED(code, part)                                                                        \
    do {                                                                                           \
        FAILS(fr_scorer_factors(w, &f, &about, &scorer, &err), code, part);                        \
        assert_null(scorer);                                                                       \
        f = good;                                                                                  \
    } while (0)
    f.rows--;
    REFUSED(FR_EINPUT, "factors: U has ");
    f.columns--;
    REFUSED(FR_EINPUT, "factors: V has ");
    f.rows = covered;
    REFUSED(FR_EINPUT, "one per test event, since V has one per candidate");
    f.width = 0;
    REFUSED(FR_EUSAGE, "factors: width 0");
    f.u = NULL;
    REFUSED(FR_EUSAGE, "factors: u is NULL");
    f.size = 0;
    REFUSED(FR_EUSAGE, "fr_factors: a field is set, but size is 0");
    fr_scorer_definition full = about;
    full.state = &f;
    FAILS(fr_scorer_factors(w, &f, &full, &scorer, &err), FR_EUSAGE, "expected a description");
    FAILS(fr_scorer_factors(w, NULL, &about, &scorer, &err), FR_EUSAGE, "factors is NULL");

    /* A NaN score is named, in a tile and in a row. */
    fr_ranking *ranking;
    v[2200 * WIDTH] = INFINITY;
    OK(fr_scorer_factors(w, &good, &about, &scorer, &err));
    char said[64];
    (void)snprintf(said, sizeof said, "the score of destination %lld is ",
                   (long long)w->destination_id[2200]);
    FAILS(fr_rank_run(scorer, NULL, NULL, &ranking, &err), FR_EINPUT, said);
    fr_scorer_close(scorer);
    fr_window_close(w);
    fr_stream_close(s);
    free(u);
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_records),
        WITH_DIRECTORY(test_files),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
