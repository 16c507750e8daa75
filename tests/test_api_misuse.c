/* test_api_misuse.c - the public interface, used by a careless or hostile C program.
 *
 * Uses only fullrank.h. Every function is called with NULL handles, NULL results, zeroed settings
 * and values out of range. It must return a status and never crash (sanitizers check this). Also
 * scorers with fewer workers than there are threads, scorers of another window, and score vectors
 * that are not filled. */
#include "testing.h"

#include <math.h>

/* ---- a window to misuse ---- */

enum { EVENTS = 600, SOURCES = 7, DESTINATIONS = 40 };

typedef struct fixture {
    const char *folder;
    fr_stream *stream;
    fr_window *window;
} fixture;

static fixture open_fixture(const char *folder, const char *catalog) {
    fr_error err;
    fixture f = {.folder = folder};
    char *path = in_directory(folder, "stream.csv"), word[4096];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < EVENTS; i++)
        (void)fprintf(file, "%d,%d,%d\n", i * i % SOURCES, 3 * (i * 7 % DESTINATIONS), i);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(word, sizeof word, "%s", catalog);
    fr_protocol protocol = {.size = sizeof protocol, .train_share = 0.8, .catalog = word};
    OK(fr_stream_open(path, NULL, NULL, &f.stream, &err));
    OK(fr_window_open(f.stream, &protocol, NULL, &f.window, &err));
    return f;
}

static void close_fixture(fixture *f) {
    fr_window_close(f->window);
    fr_stream_close(f->stream);
}

/* A file with the ids 0, 1, ..., count - 1. */
static char *catalog_file(const char *folder, int count) {
    char *path = in_directory(folder, "catalog.txt");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < count; i++) (void)fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
    return path;
}

static char *train(const fixture *f, const char *model, int64_t epochs) {
    fr_error err;
    fr_model_settings shape;
    fr_training how;
    OK(fr_options_defaults(fr_model_options, &shape, &err));
    OK(fr_options_defaults(fr_training_options, &how, &err));
    shape.dim = 8;
    if (*model == 'c' || *model == 'd') shape.history = 8;
    how.epochs = epochs;
    how.force = true;
    char *run = in_directory(f->folder, "run");
    OK(fr_train_run(f->window, model, &shape, &how, run, NULL, &err));
    return in_directory(run, "model.safetensors");
}

/* ---- workers ---- */

static void same_records(const fr_ranking *a, const fr_ranking *b) {
    fr_ranking_facts x = fr_ranking_get(a), y = fr_ranking_get(b);
    assert_int_equal(x.count, y.count);
    assert_memory_equal(x.records, y.records, (size_t)x.count * sizeof *x.records);
}

/* Opened for one worker, ranked with eight threads, with dump and verification: the records of
 * eight. */
static void test_more_threads_than_workers(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    static const char *const models[] = {"craft-r", "dygformer", "tgn", "graphmixer"};
    const fr_context one = {.threads = 1}, eight = {.threads = 8};
    for (int m = 0; m < 4; m++) {
        fr_ranking *ranking[3] = {0};
        char *path = train(&f, models[m], 1), *dump = in_directory(*state, "dump.npy");
        for (int k = 0; k < 3; k++) {
            fr_scorer *scorer;
            fr_rank_settings settings;
            OK(fr_options_defaults(fr_rank_options, &settings, &err));
            settings.shard = 1;
            settings.verify = 2;
            settings.force = true;
            free(settings.dump_scores);
            settings.dump_scores = strdup(dump);
            OK(fr_scorer_open(path, f.window, 7, k == 1 ? &eight : &one, &scorer, &err));
            assert_int_equal(fr_scorer_get(scorer).workers, k == 1 ? 8 : 1);
            if (k == 2) { /* the number stays the same, whatever the context says now */
                OK(fr_scorer_project(scorer, FR_REMOVE_RANDOM, 3, &eight, &err));
                assert_int_equal(fr_scorer_get(scorer).workers, 1);
            }
            OK(fr_rank_run(scorer, &settings, &eight, &ranking[k], &err));
            fr_query query = {.event = EVENTS - 1};
            float scores[3 * DESTINATIONS];
            FAILS(fr_scorer_score(scorer, &query, 1, k == 1 ? 8 : 1, scores, &err), FR_EUSAGE,
                  "worker");
            fr_scorer_close(scorer);
            fr_options_free(fr_rank_options, &settings);
        }
        same_records(ranking[0], ranking[1]);
        for (int k = 0; k < 3; k++) fr_ranking_close(ranking[k]);
    }
    close_fixture(&f);
}

/* Counts the workers that were used. */
typedef struct counter {
    int64_t candidates;
    int64_t left; /* entries at the end that are not filled */
    int most;
} counter;

static fr_status count_score(void *state, const fr_query *query, int count, int worker,
                             float *scores, fr_error *err) {
    counter *c = state;
    (void)count, (void)err;
    if (worker > c->most) c->most = worker;
    for (int64_t v = 0; v < c->candidates - c->left; v++)
        scores[v] = (float)((query->event * 31 + v * 17) % 101);
    return FR_OK;
}

static void test_custom_scorer_with_one_worker(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    counter c = {.candidates = fr_window_get(f.window).candidates};
    fr_scorer_definition scorer = {.name = "mine", .state = &c, .score = count_score};
    fr_ranking *ranking;
    fr_rank_settings settings = {.size = sizeof settings, .shard = 1, .popularity_power = 1};
    OK(rank_with(f.window, scorer, &settings, &(fr_context){.threads = 8}, &ranking, &err));
    assert_int_equal(c.most, 0);
    fr_ranking_close(ranking);
    close_fixture(&f);
}

/* ---- the length of a score vector ---- */

static void test_candidates_of_a_catalog_file(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, catalog_file(*state, 1000));
    fr_window_facts w = fr_window_get(f.window);
    assert_int_equal(w.destinations, DESTINATIONS);
    assert_int_equal(w.candidates, 1000);
    assert_int_equal(w.catalog_size, 1000);
    int64_t count;
    const int64_t *id = fr_window_candidates(f.window, &count);
    assert_int_equal(count, w.candidates);
    for (int64_t v = 0; v < count; v++) assert_int_equal(id[v], v);

    fr_ranking *ranking;
    counter c = {.candidates = count};
    fr_scorer_definition scorer = {.name = "mine", .state = &c, .score = count_score};
    OK(rank_with(f.window, scorer, NULL, NULL, &ranking, &err));
    assert_int_equal(fr_ranking_get(ranking).records[0].n, 1000);
    fr_ranking_close(ranking);
    c.left = 1; /* an entry that is not filled is an error, in any vector */
    FAILS(rank_with(f.window, scorer, NULL, NULL, &ranking, &err), FR_EINPUT,
          "the score of destination 999 is");
    assert_null(ranking);
    close_fixture(&f);
}

/* The same after a vector that was filled: old scores do not stay. */
static fr_status forget_score(void *state, const fr_query *query, int count, int worker,
                              float *scores, fr_error *err) {
    counter *c = state;
    c->left = c->most > 0 ? 3 : 0;
    fr_status status = count_score(c, query, count, worker, scores, err);
    c->most++;
    return status;
}

static void test_entry_left_alone_later(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "time");
    counter c = {.candidates = fr_window_get(f.window).candidates};
    fr_scorer_definition scorer = {.name = "mine", .state = &c, .score = forget_score};
    fr_ranking *ranking;
    FAILS(rank_with(f.window, scorer, NULL, NULL, &ranking, &err), FR_EINPUT, "event 481");
    close_fixture(&f);
}

static fr_status forget_event(void *state, const fr_event *event, fr_error *err) {
    (void)state, (void)event, (void)err;
    return FR_OK;
}

/* A definition that contradicts itself or the window makes no scorer. */
static void test_bad_definitions(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed"), timed = open_fixture(*state, "time");
    char longest[FR_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const fr_scorer_definition good = {
        .size = sizeof good, .name = "mine", .score = count_score, .observe = forget_event};
    struct {
        size_t at;
        int64_t value;
        const char *words;
    } const cases[] = {
        {offsetof(fr_scorer_definition, workers), -1, "mine: -1 workers"},
        {offsetof(fr_scorer_definition, workers), 2, "mine: 2 workers, but it observes events"},
        {offsetof(fr_scorer_definition, many), -1, "mine: many is -1"},
        {offsetof(fr_scorer_definition, many), 2, "mine: 2 events at once, but it observes"},
        {offsetof(fr_scorer_definition, start), -1, "mine: start is -1"},
        {offsetof(fr_scorer_definition, start), INT32_MAX, "mine: start is 2147483647"}};
    fr_scorer *scorer;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_scorer_definition bad = good;
        *(int *)(void *)((char *)&bad + cases[k].at) = (int)cases[k].value;
        FAILS(fr_scorer_make(f.window, &bad, &scorer, &err), FR_EUSAGE, cases[k].words);
        assert_null(scorer);
    }
    fr_scorer_definition bad = good;
    bad.size = 0;
    FAILS(fr_scorer_make(f.window, &bad, &scorer, &err), FR_EUSAGE, "has size 0");
    bad = good, bad.name = NULL;
    FAILS(fr_scorer_make(f.window, &bad, &scorer, &err), FR_EUSAGE, "without a name");
    bad.name = longest;
    FAILS(fr_scorer_make(f.window, &bad, &scorer, &err), FR_EUSAGE, "a scorer of 4224 bytes");
    bad = good, bad.score = NULL;
    FAILS(fr_scorer_make(f.window, &bad, &scorer, &err), FR_EUSAGE,
          "mine: score and part are NULL");
    bad = good, bad.catalog_only = true;
    FAILS(fr_scorer_make(timed.window, &bad, &scorer, &err), FR_EINPUT, "fixed catalog only");
    FAILS(fr_scorer_make(NULL, &good, &scorer, &err), FR_EUSAGE, "window is NULL");
    FAILS(fr_scorer_make(f.window, NULL, &scorer, &err), FR_EUSAGE, "definition is NULL");
    FAILS(fr_scorer_make(f.window, &good, NULL, &err), FR_EUSAGE, "out is NULL");
    struct { /* of a later release, with a field that we do not know */
        fr_scorer_definition known;
        int64_t unknown;
    } later = {.known = good};
    later.known.size = sizeof later;
    OK(fr_scorer_make(f.window, &later.known, &scorer, &err));
    fr_scorer_close(scorer);
    later.unknown = 1;
    FAILS(fr_scorer_make(f.window, &later.known, &scorer, &err), FR_EUSAGE, "a later release");
    close_fixture(&timed);
    close_fixture(&f);
}

static void test_bad_scorers(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    fr_ranking *ranking;
    fr_scorer *scorer;
    float scores[2 * DESTINATIONS];
    fr_query query = {.event = EVENTS - 1};
    FAILS(fr_rank_run(NULL, NULL, NULL, &ranking, &err), FR_EUSAGE, "scorer is NULL");
    OK(fr_scorer_open("baseline:recency", f.window, 0, NULL, &scorer, &err));
    FAILS(fr_scorer_project(scorer, FR_REMOVE_RANDOM, 0, NULL, &err), FR_EUSAGE, "not a trained");
    FAILS(fr_scorer_score(scorer, &query, 1, 1, scores, &err), FR_EUSAGE, "worker 1");
    query.event = EVENTS;
    FAILS(fr_scorer_score(scorer, &query, 1, 0, scores, &err), FR_EUSAGE, "event 600 is not in");
    query = (fr_query){.source = -1};
    FAILS(fr_scorer_score(scorer, &query, 1, 0, scores, &err), FR_EUSAGE, "source -1 is not in");
    FAILS(fr_scorer_observe(scorer, EVENTS + 1, &err), FR_EUSAGE, "event 601 is not in");
    OK(fr_rank_run(scorer, NULL, NULL, &ranking, &err));
    fr_ranking_close(ranking);
    assert_int_equal(fr_scorer_get(scorer).observed, EVENTS);
    FAILS(fr_rank_run(scorer, NULL, NULL, &ranking, &err), FR_EUSAGE, "has observed test events");
    fr_scorer_close(scorer);
    fr_scorer_close(NULL);
    assert_null(fr_scorer_get(NULL).name);
    FAILS(fr_scorer_open("baseline:recency", NULL, 0, NULL, &scorer, &err), FR_EUSAGE, "window");
    FAILS(fr_scorer_open(NULL, f.window, 0, NULL, &scorer, &err), FR_EUSAGE, "spec is NULL");
    FAILS(fr_scorer_open("", f.window, 0, NULL, &scorer, &err), FR_EUSAGE, "unknown scorer");
    FAILS(fr_scorer_open("baseline:", f.window, 0, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    close_fixture(&f);
}

/* ---- settings ---- */

/* NULL and a zeroed struct are the defaults; a struct with one option set names the first other one
 * that may not be 0. */
static void test_zeroed_settings(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    const char *folder = *state, *run = in_directory(folder, "zero");
    fr_ranking *ranking[2] = {NULL};
    fr_window *window = NULL;
    for (int k = 0; k < 2; k++) {
        fr_scorer *scorer;
        OK(fr_scorer_open("baseline:recency", f.window, 0, NULL, &scorer, &err));
        FAILS(fr_rank_run(scorer, &(fr_rank_settings){.size = sizeof(fr_rank_settings), .met = 1},
                          NULL, &ranking[k], &err),
              FR_EUSAGE, "option shard: found \"0\"");
        OK(fr_rank_run(scorer, k ? &(fr_rank_settings){0} : NULL, NULL, &ranking[k], &err));
        fr_scorer_close(scorer);
        FAILS(fr_window_open(f.stream, &(fr_protocol){.size = sizeof(fr_protocol), .window = 9},
                             NULL, &window, &err),
              FR_EINPUT, "train share 0");
        OK(fr_window_open(f.stream, k ? &(fr_protocol){0} : NULL, NULL, &window, &err));
        assert_int_equal(fr_window_get(window).train, EVENTS * 85 / 100);
        fr_window_close(window);
    }
    same_records(ranking[0], ranking[1]);
    FAILS(fr_train_run(f.window, "craft",
                       &(fr_model_settings){.size = sizeof(fr_model_settings), .heads = 2}, NULL,
                       run, NULL, &err),
          FR_EUSAGE, "option dim: found \"0\"");
    FAILS(fr_train_run(f.window, "craft", NULL,
                       &(fr_training){.size = sizeof(fr_training), .seed = 1}, run, NULL, &err),
          FR_EUSAGE, "option epochs: found \"0\"");
    FAILS(fr_train_run(f.window, "craft", NULL,
                       &(fr_training){.size = sizeof(fr_training), .epochs = 1}, run, NULL, &err),
          FR_EUSAGE, "option batch-size: found \"0\"");
    fr_minimal minimal, zeroed;
    FAILS(fr_minimal_compute(f.window, NULL, 0, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    OK(fr_minimal_compute(f.window, NULL, 0, NULL, &minimal, &err));
    OK(fr_minimal_compute(f.window, &(fr_minimal_settings){0}, 0, NULL, &zeroed, &err));
    assert_true(minimal.random.beta == zeroed.random.beta);
    fr_scaling_point points[FR_SCALING_MAX];
    int count;
    FAILS(fr_scaling_run(f.window, "baseline:recency",
                         &(fr_scaling_settings){.size = sizeof(fr_scaling_settings), .repeats = 1},
                         0, NULL, points, &count, &err),
          FR_EUSAGE, "option events: found \"0\"");
    OK(fr_scaling_run(f.window, "baseline:recency", NULL, 0, NULL, points, &count, &err));
    fr_compare_run runs[] = {{.ranking = ranking[0], .file = "a", .model = "a"},
                             {.ranking = ranking[0], .file = "b", .model = "b"}};
    fr_comparison *comparison;
    const int64_t k = 5;
    fr_compare_settings settings = {.size = sizeof settings, .resamples = 100};
    FAILS(fr_compare(runs, 2, &k, 1, &settings, 0, NULL, &comparison, &err), FR_EUSAGE,
          "option block: found \"0\"");
    settings.block = 7;
    FAILS(fr_compare(runs, 2, &k, 1, &settings, 0, NULL, &comparison, &err), FR_EUSAGE,
          "option level: found \"0\"");
    settings.level = 0.9; /* a sampler of NULL is the default one */
    OK(fr_compare(runs, 2, &k, 1, &settings, 0, NULL, &comparison, &err));
    fr_comparison_close(comparison);
    settings.resamples = 1;
    FAILS(fr_compare(runs, 2, &k, 1, &settings, 0, NULL, &comparison, &err), FR_EUSAGE,
          "option resamples: found \"1\"");
    for (int r = 0; r < 2; r++) fr_ranking_close(ranking[r]);
    close_fixture(&f);
}

/* Every settings struct with a field set but no size, one that is too small, one of a later release
 * and one whose new field is set. */
static void test_sizes_of_settings(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    const char *run = in_directory(*state, "sizes");
    fr_window *window;
    fr_ranking *ranking;
    fr_scorer *scorer;
    fr_comparison *comparison;
    fr_scaling_point points[FR_SCALING_MAX];
    fr_minimal minimal;
    int count;
    OK(fr_scorer_open("baseline:random", f.window, 0, NULL, &scorer, &err));
    OK(fr_rank_run(scorer, NULL, NULL, &ranking, &err));
    fr_compare_run runs[] = {{.ranking = ranking}, {.ranking = ranking, .model = "other"}};
    static const char *const names[] = {
        "fr_import",           "fr_protocol",         "fr_synth",
        "fr_rank_settings",    "fr_training",         "fr_model_settings",
        "fr_minimal_settings", "fr_compare_settings", "fr_report_settings",
        "fr_scaling_settings"};
    for (int bad = 0; bad < 3; bad++) {
        for (int t = 0; t < 10; t++) {
            size_t s[64] = {0}; /* the size, and fields after it */
            s[0] = (size_t[]){0, sizeof *s, sizeof s}[bad];
            s[bad < 2 ? 1 : 63] = 1;
            const void *settings = s;
            fr_ranking *none;
            fr_status status =
                t == 0   ? fr_import_file("x", run, settings, NULL, &err)
                : t == 1 ? fr_window_open(f.stream, settings, NULL, &window, &err)
                : t == 2 ? fr_synth_make(settings, run, NULL, &err)
                : t == 3 ? fr_rank_run(scorer, settings, NULL, &none, &err)
                : t == 4 ? fr_train_run(f.window, "craft", NULL, settings, run, NULL, &err)
                : t == 5 ? fr_train_run(f.window, "craft", settings, NULL, run, NULL, &err)
                : t == 6 ? fr_minimal_compute(f.window, settings, 0, NULL, &minimal, &err)
                : t == 7 ? fr_compare(runs, 2, NULL, 0, settings, 0, NULL, &comparison, &err)
                : t == 8 ? fr_report_write(runs, 2, NULL, 0, settings, run, NULL, &err)
                         : fr_scaling_run(f.window, "baseline:random", settings, 0, NULL, points,
                                          &count, &err);
            testing_fails(status, FR_EUSAGE, names[t], &err, __FILE__, __LINE__);
        }
    }
    size_t later[64] = {sizeof later};
    OK(fr_window_open(f.stream, (const void *)later, NULL, &window, &err));
    assert_int_equal(fr_window_get(window).events, fr_stream_get(f.stream).events);
    fr_window_close(window);
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    close_fixture(&f);
}

/* Every option of every table out of its range, one at a time. */
static void test_values_out_of_range(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    const char *run = in_directory(*state, "range");
    fr_ranking *ranking;
    fr_window *window;
    fr_scorer *scorer;
    OK(fr_scorer_open("baseline:random", f.window, 0, NULL, &scorer, &err));
    union {
        char bytes[1];
        fr_rank_settings rank;
        fr_protocol protocol;
        fr_model_settings model;
        fr_training training;
    } s;
    const fr_option *const tables[] = {fr_rank_options, fr_protocol_options, fr_model_options,
                                       fr_training_options};
    int refused = 0;
    for (int t = 0; t < 4; t++) {
        for (const fr_option *o = tables[t]; o->key; o++) {
            for (int bad = 0; bad < 4; bad++) {
                char words[64];
                OK(fr_options_defaults(tables[t], &s, &err));
                void *field = s.bytes + o->offset;
                if (o->type == FR_OPTION_INT)
                    *(int64_t *)field = (int64_t[]){INT64_MIN, INT64_MAX, (int64_t)o->low - 1,
                                                    (int64_t)o->high + 1}[bad];
                else if (o->type == FR_OPTION_REAL)
                    *(double *)field = (double[]){NAN, INFINITY, o->low - 1, o->high + 1}[bad];
                else if (o->type == FR_OPTION_CHOICE)
                    *(int *)field = (int[]){INT32_MIN, INT32_MAX, -1, 99}[bad];
                else if (o->type == FR_OPTION_FLAG)
                    *(unsigned char *)field = 2;
                else { /* texts have no range */
                    fr_options_free(tables[t], &s);
                    continue;
                }
                (void)snprintf(words, sizeof words, "option %s: found", o->key);
                fr_status status =
                    t == 0   ? fr_rank_run(scorer, &s.rank, NULL, &ranking, &err)
                    : t == 1 ? fr_window_open(f.stream, &s.protocol, NULL, &window, &err)
                    : t == 2 ? fr_train_run(f.window, "craft", &s.model, NULL, run, NULL, &err)
                             : fr_train_run(f.window, "craft", NULL, &s.training, run, NULL, &err);
                testing_fails(status, FR_EUSAGE, words, &err, __FILE__, __LINE__);
                if (o->type == FR_OPTION_FLAG) *(bool *)field = false;
                fr_options_free(tables[t], &s);
                refused++;
            }
        }
    }
    assert_true(refused > 80);
    fr_scorer_close(scorer);
    close_fixture(&f);
}

/* ---- NULL for everything ---- */

static void test_null_handles(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    const char *path = in_directory(*state, "null.npy");
    fr_stream *stream;
    fr_window *window;
    fr_ranking *ranking;
    fr_study *study;
    fr_facts facts;
    fr_membership table;
    fr_study_state status;
    fr_projection projection;
    FAILS(fr_stream_open(NULL, NULL, NULL, &stream, &err), FR_EUSAGE, "path is NULL");
    FAILS(fr_stream_open("x", NULL, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_stream_make(NULL, NULL, NULL, &stream, &err), FR_EUSAGE, "arrays is NULL");
    FAILS(fr_import_roles(NULL, 3, NULL, NULL, &err), FR_EUSAGE, "name is NULL");
    FAILS(fr_import_arrays(NULL, "x", NULL, NULL, &err), FR_EUSAGE, "arrays is NULL");
    FAILS(fr_import_file(NULL, "x", NULL, NULL, &err), FR_EUSAGE, "NULL");
    FAILS(fr_import_file("x", NULL, NULL, NULL, &err), FR_EUSAGE, "output is NULL");
    FAILS(fr_import_file("x", "y", &(fr_import){.size = sizeof(fr_import), .ids = 7}, NULL, &err),
          FR_EUSAGE, "option ids");
    FAILS(fr_stream_export(NULL, "x", false, NULL, &err), FR_EUSAGE, "stream is NULL");
    FAILS(fr_stream_export(f.stream, NULL, false, NULL, &err), FR_EUSAGE, "output is NULL");
    FAILS(fr_stream_download(NULL, NULL, "x", NULL, NULL, &err), FR_EUSAGE, "name is NULL");
    FAILS(fr_stream_download("wikipedia", NULL, NULL, NULL, NULL, &err), FR_EUSAGE, "output");
    FAILS(fr_synth_make(NULL, NULL, NULL, &err), FR_EUSAGE, "output is NULL");
    FAILS(fr_window_open(NULL, NULL, NULL, &window, &err), FR_EUSAGE, "stream is NULL");
    FAILS(fr_window_open(f.stream, NULL, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_facts_compute(NULL, f.window, NULL, &facts, &err), FR_EUSAGE, "window is NULL");
    FAILS(fr_facts_compute(f.window, NULL, NULL, &facts, &err), FR_EUSAGE, "diagnostic is NULL");
    FAILS(fr_facts_compute(f.window, f.window, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_rank_run(NULL, NULL, NULL, &ranking, &err), FR_EUSAGE, "scorer is NULL");
    FAILS(fr_rank_run(NULL, NULL, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_ranking_save(NULL, path, false, &err), FR_EUSAGE, "ranking is NULL");
    FAILS(fr_ranking_check(NULL, false, &err), FR_EUSAGE, "path is NULL");
    FAILS(fr_ranking_load(NULL, &ranking, &err), FR_EUSAGE, "path is NULL");
    FAILS(fr_ranking_load(path, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_train_run(NULL, "craft", NULL, NULL, path, NULL, &err), FR_EUSAGE, "window is NULL");
    FAILS(fr_train_run(f.window, NULL, NULL, NULL, path, NULL, &err), FR_EUSAGE, "name is NULL");
    FAILS(fr_train_run(f.window, "craft", NULL, NULL, NULL, NULL, &err), FR_EUSAGE, "output");
    FAILS(fr_scorer_project(NULL, 1, 0, NULL, &err), FR_EUSAGE, "scorer is NULL");
    FAILS(fr_minimal_compute(NULL, NULL, 0, NULL, NULL, &err), FR_EUSAGE, "diagnostic is NULL");
    FAILS(fr_membership_compute(NULL, 1, 0, NULL, &table, &err), FR_EUSAGE, "ranking is NULL");
    FAILS(fr_project_files(NULL, "l", "h", "o", false, 0, NULL, &projection, &err), FR_EUSAGE,
          "representations is NULL");
    FAILS(fr_scaling_run(NULL, NULL, NULL, 0, NULL, NULL, NULL, &err), FR_EUSAGE, "window");
    FAILS(fr_study_open(NULL, NULL, "x", &study, &err), FR_EUSAGE, "document is NULL");
    OK(fr_study_open("demo", NULL, NULL, &study, &err)); /* for a process without the ledger */
    int64_t redone;
    FAILS(fr_study_run(study, NULL, &err), FR_EUSAGE, "without a directory");
    FAILS(fr_study_redo(study, &redone, &err), FR_EUSAGE, "without a directory");
    fr_study_close(study);
    FAILS(fr_study_run(NULL, NULL, &err), FR_EUSAGE, "study is NULL");
    FAILS(fr_study_status(NULL, &status, &err), FR_EUSAGE, "directory is NULL");
    FAILS(fr_study_status("x", NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_study_report(NULL, NULL, &err), FR_EUSAGE, "directory is NULL");
    FAILS(fr_study_redo(NULL, NULL, &err), FR_EUSAGE, "study is NULL");
    FAILS(fr_stream_verify(NULL, NULL, &err), FR_EUSAGE, "stream is NULL");
    FAILS(fr_data_verify(NULL, NULL, NULL, NULL, &err), FR_EUSAGE, "is NULL");
    FAILS(fr_file_open(NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_file_put(NULL, "", 1, &err), FR_EUSAGE, "file is NULL");
    FAILS(fr_file_commit(NULL, &err), FR_EUSAGE, "file is NULL");
    fr_file_close(NULL);
    FAILS(fr_options_defaults(NULL, &facts, &err), FR_EUSAGE, "table is NULL");
    FAILS(fr_options_fill(fr_rank_options, NULL, 64, &err), FR_EUSAGE, "settings is NULL");
    FAILS(fr_options_set(fr_rank_options, &facts, NULL, "1", &err), FR_EUSAGE, "key is NULL");
    FAILS(fr_config_read(NULL, NULL, NULL, &err), FR_EUSAGE, "path is NULL");
    assert_int_equal(fr_stream_get(NULL).events, 0);
    assert_int_equal(fr_window_get(NULL).candidates, 0);
    assert_null(fr_window_candidates(NULL, NULL));
    assert_int_equal(fr_ranking_get(NULL).count, 0);
    assert_int_equal(fr_comparison_get(NULL).models, 0);
    assert_null(fr_study_preset_find(NULL));
    assert_null(fr_metric_find(NULL, NULL));
    assert_null(fr_sampler_find(NULL, NULL));
    assert_null(fr_metric_at(-1));
    assert_null(fr_sampler_at(INT32_MAX));
    assert_null(fr_baseline_at(-1));
    assert_null(fr_model_at(1000));
    assert_null(fr_synth_preset_at(-1, NULL));
    assert_null(fr_options_find(NULL, "x"));
    assert_null(fr_options_nearest(fr_rank_options, NULL));
    fr_stream_close(NULL);
    fr_window_close(NULL);
    fr_scorer_close(NULL);
    fr_ranking_close(NULL);
    fr_comparison_close(NULL);
    fr_study_close(NULL);
    fr_study_status_free(NULL);
    fr_options_free(fr_rank_options, NULL);
    close_fixture(&f);
}

/* ---- metrics ---- */

static fr_record good_record(void) {
    return (fr_record){.covered = 1, .n = 10, .above = 2, .seen_n = 3, .avail_n = -1};
}

static void test_metrics_misused(void **state) {
    (void)state;
    fr_error err;
    const fr_record record = good_record();
    const char *const names[] = {"mrr", NULL};
    fr_metric_value value[2];
    const int64_t k[] = {5}, bad[] = {0};
    fr_expected expected;
    fr_draws draws;
    OK(fr_metrics_compute(&record, 1, 0, names, 1, value, &err));
    OK(fr_metrics_compute(NULL, 0, 0, names, 1, value, &err));
    FAILS(fr_metrics_compute(NULL, 1, 0, names, 1, value, &err), FR_EUSAGE, "records is NULL");
    FAILS(fr_metrics_compute(&record, -1, 0, names, 1, value, &err), FR_EUSAGE, "-1 records");
    FAILS(fr_metrics_compute(&record, 1, 9, names, 1, value, &err), FR_EUSAGE, "oov 9");
    FAILS(fr_metrics_compute(&record, 1, 0, names, -1, value, &err), FR_EUSAGE, "-1 metrics");
    FAILS(fr_metrics_compute(&record, 1, 0, NULL, 1, value, &err), FR_EUSAGE, "name is NULL");
    FAILS(fr_metrics_compute(&record, 1, 0, names, 1, NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_metrics_compute(&record, 1, 0, names, 2, value, &err), FR_EUSAGE, "text is NULL");
    FAILS(fr_expected_compute(&record, 1, NULL, NULL, &expected, &err), FR_EUSAGE, "NULL");
    fr_sampling s = {0};
    FAILS(fr_expected_compute(&record, 1, &s, NULL, &expected, &err), FR_EUSAGE, "(none)");
    s.sampler = "uniform";
    FAILS(fr_expected_compute(&record, 1, &s, NULL, &expected, &err), FR_EUSAGE, "no K");
    s.k_count = 1;
    FAILS(fr_expected_compute(&record, 1, &s, NULL, &expected, &err), FR_EUSAGE, "k is NULL");
    s.k = bad;
    FAILS(fr_expected_compute(&record, 1, &s, NULL, &expected, &err), FR_EUSAGE, "K = 0");
    s.k = k;
    s.hits_count = 1;
    FAILS(fr_expected_compute(&record, 1, &s, NULL, &expected, &err), FR_EUSAGE, "hits is NULL");
    s.hits_count = 0;
    FAILS(fr_expected_compute(&record, 1, &s, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    OK(fr_expected_compute(&record, 1, &s, NULL, &expected, &err));
    FAILS(fr_draws_compute(&record, 1, &s, 0, 0, NULL, &draws, NULL, &err), FR_EUSAGE, "0 seeds");
    FAILS(fr_draws_compute(&record, 1, &s, 0, INT64_MAX, NULL, &draws, NULL, &err), FR_EUSAGE,
          "seeds, expected");
    FAILS(fr_draws_compute(&record, 1, &s, 0, 1, NULL, NULL, NULL, &err), FR_EUSAGE, "out is NULL");
    OK(fr_draws_compute(&record, 1, &s, 0, 1, NULL, &draws, NULL, &err));
}

/* Records at the ends of their types: an error that names them, no overflow. */
static void test_records_at_the_limits(void **state) {
    (void)state;
    fr_error err;
    const char *const name = "mrr";
    fr_metric_value value;
    static const int32_t ends[] = {INT32_MIN, INT32_MIN + 1, -1, 0, INT32_MAX};
    for (int i = 0; i < 5; i++) {
        for (int field = 0; field < 6; field++) {
            fr_record r = good_record();
            if (field == 0) r.n = ends[i];
            if (field == 1) r.above = ends[i];
            if (field == 2) r.tied = ends[i];
            if (field == 3) r.seen_n = ends[i];
            if (field == 4) r.avail_above = ends[i], r.avail_n = ends[4 - i];
            if (field == 5) r.n = r.above = r.tied = r.seen_n = r.avail_n = ends[i];
            fr_status status = fr_metrics_compute(&r, 1, 0, &name, 1, &value, &err);
            if (status) assert_int_equal(status, FR_EINPUT);
        }
    }
    fr_record r = good_record();
    r.n = INT32_MIN;
    FAILS(fr_metrics_compute(&r, 1, 0, &name, 1, &value, &err), FR_EINPUT,
          "a catalog of -2147483648");
    r = good_record();
    r.covered = 255;
    FAILS(fr_metrics_compute(&r, 1, 0, &name, 1, &value, &err), FR_EINPUT, "covered 255");
}

/* ---- stopping ---- */

static bool after_some(void *user) { return ++*(int *)user > 3; }

/* A long list of K stops soon after the caller cancels. */
static void test_long_lists_can_be_cancelled(void **state) {
    (void)state;
    fr_error err;
    enum { RECORDS = 2000, KS = 100000 };
    fr_record *records = calloc(RECORDS, sizeof *records);
    int64_t *k = calloc(KS, sizeof *k);
    fr_draws *draws = calloc(KS, sizeof *draws);
    fr_expected *expected = calloc(KS, sizeof *expected);
    assert_true(records && k && draws && expected);
    for (int i = 0; i < RECORDS; i++) {
        records[i] = good_record();
        records[i].n = 2000000;
        records[i].above = 500 * i;
    }
    for (int i = 0; i < KS; i++) k[i] = 2 * KS - i;
    fr_sampling s = {.sampler = "uniform", .k = k, .k_count = KS};
    for (int threads = 1; threads < 4; threads += 2) {
        int asked = 0;
        fr_context context = {.user = &asked, .cancel = after_some, .threads = threads};
        FAILS(fr_draws_compute(records, RECORDS, &s, 0, 8, &context, draws, NULL, &err), FR_ECANCEL,
              "interrupted");
        assert_int_equal(asked, 4);
        asked = 0;
        FAILS(fr_expected_compute(records, RECORDS, &s, &context, expected, &err), FR_ECANCEL,
              "interrupted");
        assert_int_equal(asked, 4);
    }
    free(records);
    free(k);
    free(draws);
    free(expected);
}

/* ---- how far a model was trained ---- */

typedef struct ear {
    int warnings;
    char line[256];
    bool stop;
} ear;

static void hear(void *user, fr_level level, const char *line) {
    ear *e = user;
    if (level == FR_WARNING) {
        e->warnings++;
        (void)snprintf(e->line, sizeof e->line, "%s", line);
    } else if (strstr(line, "epoch 1:")) {
        e->stop = true;
    }
}

static bool hear_stop(void *user) { return ((ear *)user)->stop; }

static void test_epochs_done_of_asked(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, "fixed");
    fr_training how;
    OK(fr_options_defaults(fr_training_options, &how, &err));
    how.epochs = 2;
    ear e = {0};
    fr_context context = {.user = &e, .log = hear, .cancel = hear_stop, .threads = 1};
    char *run = in_directory(*state, "stopped"), *ranks = in_directory(*state, "ranks.npy");
    FAILS(fr_train_run(f.window, "craft", NULL, &how, run, &context, &err), FR_ECANCEL, "");
    e = (ear){0};
    for (int resumed = 0; resumed < 2; resumed++) {
        fr_scorer *scorer;
        fr_ranking *ranking;
        OK(fr_scorer_open(in_directory(run, "model.safetensors"), f.window, 7, &context, &scorer,
                          &err));
        assert_int_equal(fr_scorer_get(scorer).epochs_done, 1 + resumed);
        assert_int_equal(fr_scorer_get(scorer).epochs_asked, 2);
        assert_int_equal(e.warnings, 1); /* of the first one only */
        assert_non_null(strstr(e.line, "stopped after 1 of 2 epochs"));
        OK(fr_rank_run(scorer, NULL, NULL, &ranking, &err));
        OK(fr_ranking_save(ranking, ranks, true, &err));
        fr_ranking_close(ranking);
        OK(fr_ranking_load(ranks, &ranking, &err));
        assert_int_equal(fr_ranking_get(ranking).epochs_done, 1 + resumed);
        assert_int_equal(fr_ranking_get(ranking).epochs_asked, 2);
        fr_ranking_close(ranking);
        fr_scorer_close(scorer);
        how.resume = true;
        if (!resumed) OK(fr_train_run(f.window, "craft", NULL, &how, run, NULL, &err));
    }
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_more_threads_than_workers),
        WITH_DIRECTORY(test_custom_scorer_with_one_worker),
        WITH_DIRECTORY(test_candidates_of_a_catalog_file),
        WITH_DIRECTORY(test_entry_left_alone_later),
        WITH_DIRECTORY(test_bad_definitions),
        WITH_DIRECTORY(test_bad_scorers),
        WITH_DIRECTORY(test_zeroed_settings),
        WITH_DIRECTORY(test_sizes_of_settings),
        WITH_DIRECTORY(test_values_out_of_range),
        WITH_DIRECTORY(test_null_handles),
        cmocka_unit_test(test_metrics_misused),
        cmocka_unit_test(test_records_at_the_limits),
        cmocka_unit_test(test_long_lists_can_be_cancelled),
        WITH_DIRECTORY(test_epochs_done_of_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
