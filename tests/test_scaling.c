/* test_scaling.c - the growing catalogs of fr_scaling_run: their content, and that the measurement
 * ranks exactly these candidates. */
#include "base/rng.h"
#include "rank/learned.h"
#include "rank/scaling.h"
#include "testing.h"

#include <math.h>

enum { EVENTS = 1200, DESTINATIONS = 130 };

static fr_stream *make_stream(const char *directory, bool shared) {
    fr_error err;
    rng_key key = {.seed = 4, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < EVENTS; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 100 + 30 * (uint32_t)i / EVENTS; /* some are not in the catalog */
        (void)fprintf(file, "%u,%u,%d\n", rng_below(key, e, 0, 9), 9 * rng_below(key, e, 1, reach),
                      i);
    }
    assert_int_equal(fclose(file), 0);
    fr_import import = {.size = sizeof import, .shared_ids = shared};
    fr_stream *stream;
    OK(fr_stream_open(path, &import, NULL, &stream, &err));
    return stream;
}

static fr_window *open_window(const fr_stream *stream, const char *catalog) {
    fr_error err;
    char word[16];
    (void)snprintf(word, sizeof word, "%s", catalog);
    fr_protocol protocol = {.size = sizeof protocol, .train_share = 0.85, .catalog = word};
    fr_window *w;
    OK(fr_window_open(stream, &protocol, NULL, &w, &err));
    return w;
}

static void test_catalogs_are_nested(void **state) {
    for (int shared = 0; shared < 2; shared++) {
        fr_stream *stream = make_stream(*state, shared);
        fr_window *w = open_window(stream, "fixed");
        int32_t order[DESTINATIONS], other[DESTINATIONS], small[DESTINATIONS], large[DESTINATIONS];
        bool there[DESTINATIONS] = {0};
        int32_t n = w->catalog_size, moved = 0;
        assert_true(n > 90 && n <= DESTINATIONS);
        scaling_order(w, 1, order);
        scaling_order(w, 2, other);
        assert_true(memcmp(order, other, (size_t)n * sizeof *order) != 0);
        for (int32_t k = 0; k < n; k++) { /* a permutation of the catalog, and not its own order */
            assert_true(w->catalog_place[order[k]] >= 0 && !there[order[k]]);
            there[order[k]] = true;
            moved += order[k] != w->catalog[k];
        }
        assert_true(moved > n / 2);
        for (int32_t event = w->train; event < w->events; event++) {
            if (!window_covered(w, event)) continue;
            int32_t self = window_self(w, w->source[event]), before = 0;
            bool self_listed = self >= 0 && w->catalog_place[self] >= 0;
            for (int32_t size = 1; size <= n; size += 7) {
                int32_t count = scaling_candidates(w, order, event, size, large);
                assert_int_equal(count, size <= n - self_listed ? size : n - self_listed);
                assert_int_equal(large[0], w->destination[event]);
                if (before) assert_memory_equal(small, large, (size_t)before * sizeof *small);
                bool listed[DESTINATIONS] = {0};
                for (int32_t k = 0; k < count; k++) {
                    assert_true(large[k] != self && !listed[large[k]]);
                    listed[large[k]] = true;
                }
                memcpy(small, large, (size_t)count * sizeof *small);
                before = count;
            }
        }
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

/* MRR of plain scores over the same events and catalogs. */
static double expected_mrr(const fr_window *w, fr_scorer *scorer, int64_t wanted, int32_t size) {
    fr_error err;
    int32_t order[DESTINATIONS], candidate[DESTINATIONS], covered = 0, seen = 0, used = 0;
    float scores[DESTINATIONS];
    double sum = 0;
    scaling_order(w, 3, order);
    for (int32_t i = w->train; i < w->events; i++) covered += window_covered(w, i);
    int32_t events = wanted < covered ? (int32_t)wanted : covered;
    for (int32_t i = w->train; i < w->events; i++) {
        if (!window_covered(w, i)) continue;
        if (seen++ != used * covered / events || used == events) continue;
        used++;
        fr_query query = {i, w->source[i], window_time(w, i)};
        OK(fr_scorer_score(scorer, &query, 1, 0, scores, &err));
        int32_t count = scaling_candidates(w, order, i, size, candidate);
        double rank = 1;
        for (int32_t k = 1; k < count; k++) {
            float difference = scores[candidate[k]] - scores[candidate[0]];
            rank += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
        }
        sum += 1 / rank;
    }
    assert_int_equal(used, events);
    return sum / events;
}

static void check_points(const fr_scaling_point *point, int count, int64_t n, const char *path) {
    static const int64_t sizes[] = {20, 50, 100};
    int last = n > 100 ? 3 : 2;
    assert_int_equal(count, last + 1);
    for (int k = 0; k < count; k++) {
        assert_int_equal(point[k].size, k < last ? sizes[k] : n);
        assert_string_equal(point[k].path, path);
        assert_true(point[k].seconds > 0 && point[k].seconds < 1000);
        assert_true(point[k].peak_bytes > 100000);
        assert_true(point[k].mrr > 0 && point[k].mrr <= 1);
        if (k) assert_true(point[k].mrr <= point[k - 1].mrr); /* more candidates, no better rank */
    }
}

/* Forward over some candidates gives them the same bits as forward over all. */
static void test_models(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, false);
    fr_window *w = open_window(stream, "fixed");
    fr_model_settings shape;
    fr_training training;
    OK(fr_options_defaults(fr_model_options, &shape, &err));
    OK(fr_options_defaults(fr_training_options, &training, &err));
    shape.dim = 8;
    shape.history = 10;
    training.epochs = 1;
    char *run = in_directory(*state, "run"), *spec = in_directory(run, "model.safetensors");
    OK(fr_train_run(w, "craft-r", &shape, &training, run, NULL, &err));

    fr_scaling_settings settings = {.size = sizeof settings, .events = 40, .repeats = 1};
    fr_scaling_point point[FR_SCALING_MAX];
    int count;
    OK(fr_scaling_run(w, spec, &settings, 3, NULL, point, &count, &err));
    check_points(point, count - 2, w->catalog_size, "forward");
    fr_scorer *fast, *plain;
    fr_scorer_definition is;
    OK(fr_scorer_open(spec, w, 0, NULL, &fast, &err));
    OK(learned_plain(fast, 1, &is, &err));
    plain = scorer_of(w, is);
    for (int k = 0; k < count - 2; k++) {
        assert_int_equal(point[k].scored, point[k].size);
        assert_int_equal(point[k].events, 40);
        double mrr = expected_mrr(w, plain, 40, (int32_t)point[k].size);
        assert_true(fabs(point[k].mrr - mrr) < 1e-12);
    }
    static const char *const paths[] = {"fast", "rank"};
    double mrr = expected_mrr(w, fast, 40, w->catalog_size);
    for (int k = 0; k < 2; k++) {
        const fr_scaling_point *whole = &point[count - 2 + k];
        assert_string_equal(whole->path, paths[k]);
        assert_int_equal(whole->scored, w->destinations);
        assert_int_equal(whole->size, w->catalog_size);
        assert_int_equal(whole->events, 40);
        assert_true(whole->seconds > 0 && whole->seconds < 1000);
        assert_true(fabs(whole->mrr - mrr) < 1e-12);
    }
    fr_scorer_close(plain);
    fr_scorer_close(fast);
    fr_options_free(fr_model_options, &shape);
    fr_options_free(fr_training_options, &training);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Scorers that remember see each event with its own past: over all events and the whole catalog the
 * MRR equals that of `rank`. */
static void test_scorers_without_a_model(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, false);
    fr_window *w = open_window(stream, "fixed");
    static const char *const specs[] = {"baseline:recency", "baseline:random", "baseline:markov"};
    for (int i = 0; i < 3; i++) {
        fr_scaling_settings settings = {.size = sizeof settings, .events = INT32_MAX, .repeats = 2};
        fr_scaling_point point[FR_SCALING_MAX];
        int count;
        OK(fr_scaling_run(w, specs[i], &settings, 3, NULL, point, &count, &err));
        check_points(point, count - 1, w->catalog_size, "whole");
        assert_string_equal(point[count - 1].path, "rank");
        fr_scorer *scorer;
        fr_ranking *ranking;
        fr_rank_settings plain = {.size = sizeof plain, .shard = 64, .popularity_power = 1};
        OK(fr_scorer_open(specs[i], w, 3, NULL, &scorer, &err));
        OK(fr_rank_run(scorer, &plain, NULL, &ranking, &err));
        fr_ranking_facts f = fr_ranking_get(ranking);
        const char *name = "mrr";
        fr_metric_value mrr;
        OK(fr_metrics_compute(f.records, f.count, FR_OOV_EXCLUDE, &name, 1, &mrr, &err));
        for (int k = count - 2; k < count; k++) { /* whole, and as `rank` does it */
            assert_int_equal(point[k].events, mrr.events);
            assert_true(fabs(point[k].mrr - mrr.value) < 1e-12);
        }
        assert_int_equal(point[0].scored, w->destinations);
        fr_ranking_close(ranking);
        fr_scorer_close(scorer);
    }
    fr_window_close(w);
    fr_stream_close(stream);
}

static bool stop(void *user) {
    (void)user;
    return true;
}

static void test_refusals(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, false);
    fr_window *w = open_window(stream, "fixed"), *time = open_window(stream, "time");
    fr_scaling_settings settings = {.size = sizeof settings, .events = 10, .repeats = 1};
    fr_scaling_point point[FR_SCALING_MAX];
    int count;
    FAILS(fr_scaling_run(time, "baseline:recency", &settings, 0, NULL, point, &count, &err),
          FR_EUSAGE, "catalog time has no size of its own");
    FAILS(fr_scaling_run(w, "baseline:recent", &settings, 0, NULL, point, &count, &err), FR_EUSAGE,
          "recent");
    FAILS(fr_scaling_run(w, "nowhere.safetensors", &settings, 0, NULL, point, &count, &err),
          FR_EFILE, "nowhere.safetensors");
    FAILS(fr_scaling_run(w, "baseline:recency", &settings, 0, &(fr_context){.cancel = stop}, point,
                         &count, &err),
          FR_ECANCEL, "");
    fr_window_close(w);
    fr_window_close(time);

    put_text(in_directory(*state, "list.txt"), "999999\n"); /* not a destination of the stream */
    fr_protocol protocol = {
        .size = sizeof protocol, .train_share = 0.85, .catalog = in_directory(*state, "list.txt")};
    OK(fr_window_open(stream, &protocol, NULL, &w, &err));
    FAILS(fr_scaling_run(w, "baseline:random", &settings, 0, NULL, point, &count, &err), FR_EINPUT,
          "no test event has its destination in the catalog");
    fr_window_close(w);
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_catalogs_are_nested),
        WITH_DIRECTORY(test_models),
        WITH_DIRECTORY(test_scorers_without_a_model),
        WITH_DIRECTORY(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
