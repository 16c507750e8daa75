/* test_eval_explain.c - effects of settings against rankings made one by one: ends, sums, the order
 * of switching and means over all orders. */
#include "base/rng.h"
#include "testing.h"

#include <math.h>

static fr_stream *make_stream(const char *directory) {
    fr_error err;
    rng_key key = {.seed = 3, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "u,v,t\n");
    for (uint32_t i = 0; i < 600; i++)
        (void)fprintf(file, "%u,%u,%u\n", rng_below(key, i, 0, 9),
                      2 * rng_below(key, i, 1, 6 + i / 40), i / 2);
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

/* The steps below: order, oov, ties and negatives, as bits. Negatives are drawn with average ties
 * only. */
enum { ORDER = 1, OOV = 2, TIES = 4 };

static double number(const fr_stream *stream, int switched) {
    fr_error err;
    fr_window *w;
    fr_scorer *scorer;
    fr_ranking *ranking;
    fr_protocol p = {.size = sizeof p,
                     .window = 32768,
                     .train_share = 0.85,
                     .order = order_text(switched & ORDER ? FR_ORDER_BATCH : FR_ORDER_STREAM),
                     .oov = switched & OOV ? FR_OOV_ZERO : FR_OOV_EXCLUDE};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    OK(fr_scorer_open("baseline:edgebank", w, 0, NULL, &scorer, &err));
    OK(fr_rank_run(scorer, NULL, NULL, &ranking, &err));
    fr_ranking_facts f = fr_ranking_get(ranking);
    const char *name = switched & TIES ? "mrr-optimistic" : "mrr";
    fr_metric_value value;
    OK(fr_metrics_compute(f.records, f.count, p.oov, &name, 1, &value, &err));
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    fr_window_close(w);
    return value.value;
}

static void test_effects(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    double value[8];
    for (int k = 0; k < 8; k++) value[k] = number(stream, k);
    fr_explain_settings s = {.size = sizeof s,
                             .from = (char[]){"fullrank"},
                             .to = (char[]){"fullrank,ties=optimistic,order=batch:7,oov=zero"}};
    fr_explanation e;
    OK(fr_explain_run(stream, "baseline:edgebank", &s, 0, NULL, &e, &err));
    static const char *const names[] = {"order", "oov", "ties"};
    assert_int_equal(e.count, 3);
    assert_true(e.from == value[0]);
    assert_true(e.to == value[7]);
    for (int k = 0; k < 3; k++) {
        assert_string_equal(e.step[k].setting, names[k]);
        assert_true(e.step[k].value == value[(2 << k) - 1]);
        assert_true(e.step[k].effect == value[(2 << k) - 1] - value[(1 << k) - 1]);
    }
    assert_string_equal(e.step[0].to, "batch:7");
    assert_true(e.step[1].events > e.step[0].events); /* oov=zero counts all test events */

    s.average = true;
    OK(fr_explain_run(stream, "baseline:edgebank", &s, 0, NULL, &e, &err));
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    double mean[3] = {0}, sum = e.from;
    for (int k = 0; k < 6; k++)
        for (int i = 0, switched = 0; i < 3; i++) {
            int step = orders[k][i], next = switched | 1 << step;
            mean[step] += (value[next] - value[switched]) / 6;
            switched = next;
        }
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(e.step[k].effect - mean[k]) < 1e-14);
        sum += e.step[k].effect;
    }
    assert_true(fabs(sum - e.to) < 1e-14);
    assert_true(e.to == value[7]);
    fr_stream_close(stream);
}

/* Negatives are the last step: expectations from the same ranking. */
static void test_negatives(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_explain_settings s = {.size = sizeof s,
                             .from = (char[]){"tgb,negatives=uniform-3"},
                             .to = (char[]){"tgb,negatives=all"},
                             .metric = (char[]){"hits@2"}};
    fr_explanation e;
    OK(fr_explain_run(stream, "baseline:recency", &s, 0, NULL, &e, &err));
    assert_int_equal(e.count, 1);
    assert_string_equal(e.step[0].setting, "negatives");
    assert_true(e.from > e.to); /* fewer negatives are easier */
    s.to = s.from;
    OK(fr_explain_run(stream, "baseline:recency", &s, 0, NULL, &e, &err));
    assert_int_equal(e.count, 0);
    assert_true(e.from == e.to);
    fr_stream_close(stream);
}

static void test_refusals(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state);
    fr_explanation e;
    static const struct {
        const char *from, *metric, *message;
        fr_status status;
    } cases[] = {
        {"tgbb", "mrr", "did you mean tgb?", FR_EUSAGE},
        {"tgb,colour=red", "mrr", "unknown setting colour", FR_EUSAGE},
        {"tgb,window", "mrr", "expected setting=value", FR_EUSAGE},
        {"tgb,window=x", "mrr", "option window", FR_EUSAGE},
        {"tgb,order=batch:0", "mrr", "option order", FR_EUSAGE},
        {"tgb,negatives=uniform", "mrr", "a sampler with its K", FR_EUSAGE},
        {"tgb,negatives=nothing-3", "mrr", "a sampler with its K", FR_EUSAGE},
        {"tgb", "median-rank", "expected mrr or hits@k", FR_EUSAGE},
        {"fullrank,ties=random", "hits@3", "average ranks only", FR_EUSAGE},
        {"tgb,catalog=nowhere", "mrr", "catalog nowhere, ", FR_EFILE},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_explain_settings s = {.size = sizeof s,
                                 .from = (char *)(uintptr_t)cases[k].from,
                                 .metric = (char *)(uintptr_t)cases[k].metric};
        FAILS(fr_explain_run(stream, "baseline:recency", &s, 0, NULL, &e, &err), cases[k].status,
              cases[k].message);
    }
    /* a comma may be part of a value */
    fr_explain_settings s = {.size = sizeof s,
                             .from = (char[]){"fullrank,split=rows:400,500,oov=zero"},
                             .to = (char[]){"fullrank"}};
    OK(fr_explain_run(stream, "baseline:recency", &s, 0, NULL, &e, &err));
    assert_string_equal(e.step[0].from, "rows:400,500 0.85 0");
    assert_int_equal(e.from_events, 100);
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_effects), WITH_DIRECTORY(test_negatives),
                                       WITH_DIRECTORY(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
