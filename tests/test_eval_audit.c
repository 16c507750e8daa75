/* test_eval_audit.c - audits: every planted leak is found by its check, with its event, scores and
 * text, and its command finds it again. The same scorers without leaks pass, and so do all
 * baselines, on several streams and orders. Counterfactual windows are as defined. */
#include "base/rng.h"
#include "data/counterfactual.h"
#include "testing.h"

#include <math.h>

enum { EVENTS = 900, SOURCES = 25, DESTINATIONS = 40, FEATURES = 2 };

/* ---- streams ---- */

typedef enum shape { BIPARTITE, SHARED, TIED, SHAPES } shape;

typedef struct fixture {
    fr_stream *stream;
    fr_window *w;
} fixture;

static void write_rows(const char *path, shape kind) {
    rng_key key = {.seed = 5, .purpose = RNG_TEST};
    FILE *file = fopen(path, "w");
    int time = 0;
    (void)fprintf(file, "u,v,t,f0,f1\n");
    for (uint64_t i = 0; i < EVENTS; i++) {
        uint32_t u = rng_below(key, i, 0, SOURCES);
        uint32_t v = rng_below(key, i, 1, 2) ? (u * 7 + rng_below(key, i, 2, 3)) % DESTINATIONS
                                             : rng_below(key, i, 3, DESTINATIONS);
        if (kind == SHARED && u == v) v = (v + 1) % DESTINATIONS;
        time += kind == TIED || rng_below(key, i, 4, 2) ? 0 : 1 + (int)rng_below(key, i, 5, 100);
        (void)fprintf(file, "%u,%u,%d,%.4f,%.4f\n", u, kind == SHARED ? v : 1000 + v * 3, time,
                      rng_uniform(key, i, 6), rng_uniform(key, i, 7));
    }
    assert_int_equal(fclose(file), 0);
}

static fixture open_fixture(const char *directory, shape kind, int order) {
    fr_error err;
    fixture f;
    char *path = in_directory(directory, "stream.csv");
    fr_import import = {.size = sizeof import, .shared_ids = kind == SHARED};
    fr_protocol protocol = {
        .size = sizeof protocol, .train_share = 0.7, .order = order_text(order)};
    write_rows(path, kind);
    OK(fr_stream_open(path, &import, NULL, &f.stream, &err));
    OK(fr_window_open(f.stream, &protocol, NULL, &f.w, &err));
    return f;
}

static void close_fixture(fixture *f) {
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

/* ---- counterfactual windows ---- */

static const change_kind futures[] = {CHANGE_REDRAWN, CHANGE_PERMUTED, CHANGE_REMOVED};

/* The past is the same to the last bit. The query stays, but its answer changes. Ids and catalog
 * are the same. */
static void check_future(const fr_window *a, const fr_window *b, int32_t at, change_kind kind) {
    size_t n = (size_t)at;
    assert_memory_equal(a->source, b->source, n * sizeof *a->source);
    assert_memory_equal(a->destination, b->destination, n * sizeof *a->destination);
    assert_memory_equal(a->feature, b->feature, n * FEATURES * sizeof *a->feature);
    assert_memory_equal(a->time, b->time, (n + 1) * sizeof *a->time);
    assert_int_equal(a->source[at], b->source[at]);
    assert_int_not_equal(a->destination[at], b->destination[at]);
    assert_memory_not_equal(a->feature + at * FEATURES, b->feature + at * FEATURES,
                            FEATURES * sizeof *a->feature);
    assert_int_equal(b->events, kind == CHANGE_REMOVED ? at + 1 : a->events);
    assert_string_equal(a->catalog_sha256, b->catalog_sha256);
    assert_int_equal(a->destinations, b->destinations);
    for (int32_t i = 0; i <= at; i++) assert_int_equal(window_cut(a, i), window_cut(b, i));
    int32_t changed = 0, last = b->events - 1;
    for (int32_t i = at + 1; i < b->events; i++) {
        changed += a->source[i] != b->source[i] || a->destination[i] != b->destination[i];
        assert_true(b->time[i] >= b->time[i - 1]);
    }
    assert_true(last - at < 20 || changed * 10 > (last - at) * 7);
}

static void test_future(void **state) {
    fr_error err;
    for (int kind = 0; kind < SHAPES; kind++)
        for (int order = 0; order < 3; order++) {
            fixture f = open_fixture(*state, (shape)kind, order);
            for (int32_t at = f.w->from; at < f.w->to; at += 67)
                for (int k = 0; k < 3; k++) {
                    change c = {.kind = futures[k], .from = at, .seed = at};
                    fr_window *w;
                    OK(counterfactual_open(f.w, &c, &w, &err));
                    check_future(f.w, w, at, futures[k]);
                    fr_window_close(w);
                }
            close_fixture(&f);
        }
}

/* Ids are exchanged consistently: if a destination is also a source, that source is exchanged too.
 */
static void test_ids(void **state) {
    fr_error err;
    int32_t place[DESTINATIONS];
    for (int kind = 0; kind < 2; kind++) {
        fixture f = open_fixture(*state, (shape)kind, 0);
        int moved = 0;
        OK(counterfactual_places(f.w, 3, place, &err));
        change c = {.kind = CHANGE_IDS, .place = place};
        fr_window *w;
        OK(counterfactual_open(f.w, &c, &w, &err));
        for (int32_t i = 0; i < f.w->events; i++) {
            int32_t self = window_self(f.w, f.w->source[i]);
            assert_int_equal(w->destination[i], place[f.w->destination[i]]);
            moved += w->destination[i] != f.w->destination[i];
            if (self >= 0)
                assert_int_equal(window_self(w, w->source[i]), place[self]);
            else
                assert_int_equal(w->source[i], f.w->source[i]);
        }
        assert_true(moved > EVENTS / 2);
        for (int32_t v = 0; v < w->destinations; v++)
            assert_int_equal(window_listed(w, place[v]), window_listed(f.w, v));
        /* such a window has no ranks, and nothing that knows ids may use it */
        fr_scorer *scorer;
        fr_ranking *ranking;
        OK(fr_scorer_open("baseline:recency", w, 0, NULL, &scorer, &err));
        FAILS(fr_rank_run(scorer, NULL, NULL, &ranking, &err), FR_EUSAGE, "audit");
        fr_scorer_close(scorer);
        FAILS(window_check_labels(w, "x", &err), FR_EINPUT, "x knows destinations by their ids");
        fr_window_close(w);
        close_fixture(&f);
    }
}

/* ---- leaks ---- */

static fr_audit *audit_spec(const fr_window *w, const char *spec, const char *checks,
                            const char *events, int64_t seed) {
    fr_error err;
    fr_audit_settings s;
    fr_audit *found;
    OK(fr_options_defaults(fr_audit_options, &s, &err));
    if (checks) OK(fr_options_set(fr_audit_options, &s, "checks", checks, &err));
    if (events) OK(fr_options_set(fr_audit_options, &s, "events", events, &err));
    OK(fr_audit_run(w, spec, NULL, NULL, &s, seed, NULL, &found, &err));
    fr_options_free(fr_audit_options, &s);
    return found;
}

static void spell(const char *leak, char *out, size_t size) {
    (void)snprintf(out, size, "plugin:%s/leaky.so,leak=%s", FULLRANK_PLUGINS, leak);
}

/* A bit per check that has found something. */
static unsigned found_by(const fr_audit *a) {
    fr_audit_facts f = fr_audit_get(a);
    unsigned found = 0;
    for (int k = 0; k < FR_AUDIT_CHECKS; k++)
        if (f.check[k].found) found |= 1u << k;
    assert_int_equal(!found, !f.findings);
    return found;
}

#define BY(check) (1u << FR_AUDIT_##check)

typedef struct planted {
    const char *leak;
    unsigned check; /* that find it */
    int severity;
} planted;

static const planted leaks[] = {
    {"none", 0, 0},
    {"none,stateful=yes", 0, 0},
    {"none,catalog-only=yes", 0, 0},
    {"next,rate=50", BY(FUTURE), FR_SEVERITY_LEAK},
    {"own,rate=50", BY(FUTURE), FR_SEVERITY_LEAK},
    {"next,rate=50,stateful=yes", BY(FUTURE), FR_SEVERITY_LEAK},
    {"label", BY(FUTURE) | BY(POSITION), FR_SEVERITY_LEAK},
    {"features", BY(FUTURE), FR_SEVERITY_LEAK},
    {"total", BY(FUTURE) | BY(SAME_TIME), FR_SEVERITY_LEAK},
    {"length", BY(FUTURE), FR_SEVERITY_LEAK},
    {"same-time", BY(SAME_TIME), FR_SEVERITY_LEAK},
    {"memory", BY(SAME_TIME), FR_SEVERITY_LEAK},
    {"padding", BY(BATCH), FR_SEVERITY_BATCH},
    {"softmax", BY(CANDIDATES), FR_SEVERITY_BATCH},
    {"longest", BY(CANDIDATES), FR_SEVERITY_BATCH},
    {"counter", BY(STATE), FR_SEVERITY_BATCH},
    {"clock", BY(STATE), FR_SEVERITY_NOISE},
    {"order", BY(POSITION), FR_SEVERITY_LEAK},
    {"nan", BY(NUMBERS), FR_SEVERITY_NUMERIC},
    {"sigmoid", BY(NUMBERS), FR_SEVERITY_NUMERIC},
};
enum { LEAKS = sizeof leaks / sizeof *leaks };

/* A finding has an event and two scores that differ, and its reproduction shows it again. */
static void check_finding(const fr_window *w, const char *spec, const fr_audit_finding *f) {
    if (f->check <= FR_AUDIT_STATE) {
        assert_true(f->event >= w->first + w->from && f->event < w->first + w->to);
        assert_true(f->candidate >= 0);
        assert_true(f->score != f->changed || isnan(f->score));
    }
    char checks[32], rows[64] = "200", expected[128];
    (void)snprintf(checks, sizeof checks, "%s", fr_audit_checks[f->check].name);
    if (f->event >= 0) (void)snprintf(rows, sizeof rows, "row:%lld", (long long)f->event);
    (void)snprintf(expected, sizeof expected, "checks=%s%s%s,seed=11", checks,
                   f->event >= 0 ? ",events=" : "", f->event >= 0 ? rows : "");
    assert_string_equal(f->reproduce, expected);
    fr_audit *again = audit_spec(w, spec, checks, rows, 11);
    assert_true(found_by(again) & (1u << f->check));
    fr_audit_close(again);
}

static void check_leak(const fr_window *w, const planted *p, bool again) {
    char spec[1024];
    spell(p->leak, spec, sizeof spec);
    fr_audit *a = audit_spec(w, spec, NULL, NULL, 11);
    unsigned expected = p->check;
    if (w->order == FR_ORDER_STREAM) expected &= ~BY(SAME_TIME);
    if (found_by(a) != expected) {
        print_error("# leak %s, order %d: found by %x, expected %x\n", p->leak, w->order,
                    found_by(a), expected);
        assert_true(false);
    }
    fr_audit_facts f = fr_audit_get(a);
    for (int k = 0; k < f.findings; k++) assert_int_equal(f.finding[k].severity, p->severity);
    if (f.findings && again) check_finding(w, spec, &f.finding[0]);
    fr_audit_close(a);
}

static void test_leaks(void **state) {
    for (int order = 0; order < 3; order++) {
        fixture f = open_fixture(*state, BIPARTITE, order);
        for (int k = 0; k < LEAKS; k++) check_leak(f.w, &leaks[k], order == FR_ORDER_STRICT);
        close_fixture(&f);
    }
}

/* The effect of the leak: a copied label gives the whole MRR. */
static void test_worth(void **state) {
    char spec[1024];
    fixture f = open_fixture(*state, BIPARTITE, 0);
    spell("label", spec, sizeof spec);
    fr_audit *a = audit_spec(f.w, spec, NULL, NULL, 3);
    fr_audit_facts facts = fr_audit_get(a);
    const fr_audit_check *future = &facts.check[FR_AUDIT_FUTURE];
    assert_true(future->mrr == 1 && future->changed_mrr < 0.6);
    assert_non_null(
        strstr(facts.badge, "audited by fullrank " FULLRANK_VERSION ": 6 checks, 200 "));
    fr_audit_close(a);
    close_fixture(&f);
}

/* ---- no false alarms ---- */

static void test_baselines(void **state) {
    for (int kind = 0; kind < SHAPES; kind++)
        for (int order = 0; order < 3; order++) {
            fixture f = open_fixture(*state, (shape)kind, order);
            for (int k = 0; fr_baseline_at(k); k++) {
                char spec[64];
                (void)snprintf(spec, sizeof spec, "baseline:%s", fr_baseline_at(k)->name);
                fr_audit *a = audit_spec(f.w, spec, NULL, SANITIZED ? "40" : NULL, k);
                if (found_by(a)) {
                    print_error("# %s, stream %d, order %d: found by %x\n", spec, kind, order,
                                found_by(a));
                    assert_true(false);
                }
                assert_true(fr_audit_get(a).noise == 0);
                fr_audit_close(a);
            }
            close_fixture(&f);
        }
}

/* ---- factories, files, misuse ---- */

typedef struct shop {
    int opened, wrong;
} shop;

static fr_status open_shop(void *user, const fr_window *w, const fr_context *context,
                           fr_scorer **out, fr_error *err) {
    shop *s = user;
    s->opened++;
    if (s->wrong && s->opened == s->wrong) return fr_fail(err, FR_EINPUT, "the shop is closed");
    return fr_scorer_open("baseline:recency", w, 0, context, out, err);
}

static void test_factory(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, BIPARTITE, 0);
    fr_audit *a;
    const char *json, *same;
    shop s = {0};
    OK(fr_audit_run(f.w, "mine", open_shop, &s, NULL, 0, NULL, &a, &err));
    assert_int_equal(fr_audit_get(a).streams, s.opened);
    assert_string_equal(fr_audit_get(a).scorer, "mine");
    assert_int_equal(fr_audit_get(a).events, 200);
    OK(fr_audit_text(a, &json, &err));
    OK(fr_audit_text(a, &same, &err));
    assert_ptr_equal(json, same);
    assert_non_null(strstr(json, "\"verdict\": \"pass\""));
    fr_audit_close(a);
    for (s = (shop){0, 1}; s.wrong < 6; s.opened = 0, s.wrong++)
        FAILS(fr_audit_run(f.w, "mine", open_shop, &s, NULL, 0, NULL, &a, &err), FR_EINPUT,
              "the shop is closed");
    fr_audit_close(NULL);
    assert_int_equal(fr_audit_get(NULL).findings, 0);
    close_fixture(&f);
}

static void test_misuse(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, BIPARTITE, 0);
    fr_audit *a;
    const char *text;
    fr_audit_settings s = {.size = sizeof s, .streams = 50, .tolerance = 1e-5};
    static const struct {
        const char *checks, *events, *message;
    } cases[] = {{"futur", NULL, "unknown check futur, did you mean future?"},
                 {NULL, "0", "expected a number from 1"},
                 {NULL, "many", "found \"many\""},
                 {NULL, "row:", "expected rows of the stream"},
                 {NULL, "row:5x", "expected rows of the stream"},
                 {NULL, "row:5", "row 5 is not a ranked event"},
                 {NULL, "row:99999999", "row 99999999 is not a ranked event"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        s.checks = (char *)(uintptr_t)cases[k].checks;
        s.events = (char *)(uintptr_t)cases[k].events;
        FAILS(fr_audit_run(f.w, "baseline:recency", NULL, NULL, &s, 0, NULL, &a, &err), FR_EUSAGE,
              cases[k].message);
        assert_null(a);
    }
    FAILS(fr_audit_run(f.w, "scores:-", NULL, NULL, NULL, 0, NULL, &a, &err), FR_EUSAGE, "once");
    FAILS(fr_audit_run(NULL, "x", NULL, NULL, NULL, 0, NULL, &a, &err), FR_EUSAGE, "window");
    FAILS(fr_audit_run(f.w, NULL, NULL, NULL, NULL, 0, NULL, &a, &err), FR_EUSAGE, "spec");
    FAILS(fr_audit_run(f.w, "nothing", NULL, NULL, NULL, 0, NULL, &a, &err), FR_EUSAGE, "nothing");
    FAILS(fr_audit_text(NULL, &text, &err), FR_EUSAGE, "NULL");
    close_fixture(&f);
}

/* Scores as `rank --dump-scores` writes them, and two wrong files. */
static void test_files(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, BIPARTITE, 0);
    fr_list list;
    char *path = in_directory(*state, "scores.npy"), spec[1024];
    OK(fr_window_list(f.w, NULL, in_directory(*state, "list.npy"), false, &list, &err));
    static const unsigned expected[] = {0, BY(POSITION), BY(POSITION), BY(NUMBERS)};
    int64_t size = list.events * list.destinations;
    float *scores = calloc((size_t)size, sizeof *scores);
    int32_t *own = calloc((size_t)list.events, sizeof *own);
    for (int32_t i = f.w->from, n = 0; i < f.w->to; i++)
        if (window_covered(f.w, i)) own[n++] = f.w->catalog_place[f.w->destination[i]];
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    for (int way = 0; way < 4; way++) {
        char head[128] = "\x93NUMPY\x01";
        rng_key key = {.seed = 1, .purpose = RNG_TEST};
        for (int64_t k = 0; k < size; k++) scores[k] = (float)rng_uniform(key, (uint64_t)k, 0);
        for (int64_t row = 0; row < list.events; row++) { /* clean, in one column, copied, NaN */
            float *at = scores + row * list.destinations;
            if (way == 1) at[list.destinations - 1] = 2;
            if (way == 2) at[own[row]] = 2;
            if (way == 3) at[3] = NAN;
        }
        head[8] = 118;
        (void)snprintf(head + 10, 118,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }%*s",
                       (long long)list.events, (long long)list.destinations, 40, "");
        for (int k = 10; k < 128; k++)
            if (!head[k]) head[k] = ' ';
        head[127] = '\n';
        FILE *file = fopen(path, "wb");
        (void)fwrite(head, 1, 128, file);
        (void)fwrite(scores, sizeof *scores, (size_t)size, file);
        assert_int_equal(fclose(file), 0);
        fr_audit *a = audit_spec(f.w, spec, NULL, NULL, 0);
        assert_int_equal(found_by(a), expected[way]);
        fr_audit_facts facts = fr_audit_get(a);
        assert_false(facts.check[FR_AUDIT_FUTURE].tested);
        assert_string_equal(facts.check[FR_AUDIT_FUTURE].note, "scores of a file cannot change");
        fr_audit_close(a);
    }
    free(scores);
    free(own);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_future),    WITH_DIRECTORY(test_ids),
                                       WITH_DIRECTORY(test_leaks),     WITH_DIRECTORY(test_worth),
                                       WITH_DIRECTORY(test_baselines), WITH_DIRECTORY(test_factory),
                                       WITH_DIRECTORY(test_misuse),    WITH_DIRECTORY(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
