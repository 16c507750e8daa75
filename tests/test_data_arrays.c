/* test_data_arrays.c - events in memory give the same stream as a table of the same events: the
 * same hash, notices and ranks; what the reader of tables refuses is refused here too. */
#include "testing.h"

#include "data/stream.h"

#include <math.h>

enum { EVENTS = 600, WIDTH = 3 };

/* Events of a small stream; times in order, or not. */
typedef struct events {
    int64_t source[EVENTS], destination[EVENTS];
    double time[EVENTS];
    float features[EVENTS * WIDTH];
    uint8_t split[EVENTS];
} events;

static void make_events(events *e, bool late) {
    for (int k = 0; k < EVENTS; k++) {
        e->source[k] = (k * 17 + k / 7) % 23 * 3;
        e->destination[k] = (k * 29 + k / 5) % 31;
        e->time[k] = late ? (double)(k * 7 % EVENTS / 2) : (double)(k / 2) + 0.25;
        for (int f = 0; f < WIDTH; f++) e->features[k * WIDTH + f] = (float)(k * 3 + f) / 7;
        e->split[k] = (uint8_t)((e->time[k] > 200) + (e->time[k] > 250));
    }
}

static fr_arrays arrays_of(const events *e, bool features, bool split) {
    return (fr_arrays){.size = sizeof(fr_arrays),
                       .name = "table.csv",
                       .events = EVENTS,
                       .source = e->source,
                       .destination = e->destination,
                       .time = e->time,
                       .width = features ? WIDTH : 0,
                       .features = features ? e->features : NULL,
                       .split = split ? e->split : NULL};
}

/* The same as a table. */
static void write_table(const char *path, const fr_arrays *a) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("source,destination,time", file);
    if (a->split) (void)fputs(",split", file);
    for (int f = 0; f < a->width; f++) (void)fprintf(file, ",f%d", f + 1);
    for (int64_t k = 0; k < a->events; k++) {
        if (a->source_words)
            (void)fprintf(file, "\n%s,%s,%.17g", a->source_words[a->source[k]],
                          a->destination_words[a->destination[k]], a->time[k]);
        else
            (void)fprintf(file, "\n%lld,%lld,%.17g", (long long)a->source[k],
                          (long long)a->destination[k], a->time[k]);
        if (a->split) (void)fprintf(file, ",%d", a->split[k]);
        for (int64_t f = 0; f < a->width; f++)
            (void)fprintf(file, ",%.9g", (double)a->features[k * a->width + f]);
    }
    (void)fputs("\n", file);
    assert_int_equal(fclose(file), 0);
}

/* Notices, without the name of the input. */
typedef struct notes {
    char text[4096];
} notes;

static void keep_note(void *user, fr_level level, const char *line) {
    notes *n = user;
    const char *said = strstr(line, "table.csv: ");
    if (!said) return; /* the notice about columns: arrays have no names */
    size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%d %s\n", (int)level, said);
}

static void assert_same_ranks(fr_stream *a, fr_stream *b) {
    fr_error err;
    fr_stream *stream[2] = {a, b};
    fr_ranking *ranking[2];
    for (int k = 0; k < 2; k++) {
        fr_window *w;
        fr_scorer *scorer;
        OK(fr_window_open(stream[k], NULL, NULL, &w, &err));
        OK(fr_scorer_open("baseline:recency", w, 1, NULL, &scorer, &err));
        OK(fr_rank_run(scorer, NULL, NULL, &ranking[k], &err));
        fr_scorer_close(scorer);
        fr_window_close(w);
    }
    fr_ranking_facts x = fr_ranking_get(ranking[0]), y = fr_ranking_get(ranking[1]);
    assert_int_equal(x.count, y.count);
    assert_memory_equal(x.records, y.records, (size_t)x.count * sizeof *x.records);
    assert_int_equal(fr_protocol_compare(&x.protocol, &y.protocol, NULL, 0), 0);
    assert_string_equal(x.data, y.data);
    fr_ranking_close(ranking[0]);
    fr_ranking_close(ranking[1]);
}

static void assert_same(const char *folder, const fr_arrays *a, const fr_import *settings) {
    fr_error err;
    fr_stream *table, *made;
    notes said[2] = {0};
    fr_context context[2] = {{.user = &said[0], .log = keep_note},
                             {.user = &said[1], .log = keep_note}};
    const char *path = in_directory(folder, "table.csv");
    write_table(path, a);
    OK(fr_stream_open(path, settings, &context[0], &table, &err));
    OK(fr_stream_make(a, settings, &context[1], &made, &err));
    fr_stream_facts x = fr_stream_get(table), y = fr_stream_get(made);
    assert_string_equal(x.sha256, y.sha256);
    assert_string_equal(x.name, y.name);
    assert_int_equal(x.events, y.events);
    assert_int_equal(x.feature_width, y.feature_width);
    assert_int_equal(x.shared_ids, y.shared_ids);
    assert_int_equal(x.words, y.words);
    assert_int_equal(x.split_train, y.split_train);
    assert_int_equal(x.split_val, y.split_val);
    assert_true(x.first_time == y.first_time && x.last_time == y.last_time);
    assert_string_equal(said[0].text, said[1].text);
    assert_same_ranks(table, made);
    fr_stream_close(table);
    fr_stream_close(made);
}

static void test_equals_the_table(void **state) {
    events e;
    for (int k = 0; k < 8; k++) {
        make_events(&e, k & 1);
        fr_arrays a = arrays_of(&e, k & 2, k & 4);
        assert_same(*state, &a, NULL);
    }
    make_events(&e, false);
    fr_arrays a = arrays_of(&e, false, false);
    fr_import shared = {.size = sizeof shared, .shared_ids = true};
    assert_same(*state, &a, &shared);
    fr_import unit = {.size = sizeof unit, .time_unit = FR_TIME_MS};
    for (int k = 0; k < EVENTS; k++) e.time[k] = 1.6e12 + k * 3;
    assert_same(*state, &a, &unit);
    assert_same(*state, &a, NULL); /* a warning that they look like milliseconds */
}

static void test_words(void **state) {
    static char text[64][16];
    static const char *list[64];
    events e;
    make_events(&e, false);
    for (int k = 0; k < 64; k++) { /* not in the order of the words, and some are not used */
        (void)snprintf(text[k], sizeof text[k], "w%d \xc3\xa4", (k * 37) % 64);
        list[k] = text[k];
    }
    for (int k = 0; k < EVENTS; k++) e.source[k] %= 60;
    fr_arrays a = arrays_of(&e, false, false);
    a.source_words = list;
    a.destination_words = list + 7;
    a.source_word_count = 60;
    a.destination_word_count = 40;
    assert_same(*state, &a, NULL);
    fr_import shared = {.size = sizeof shared, .shared_ids = true};
    assert_same(*state, &a, &shared);
}

static void test_directory(void **state) {
    fr_error err;
    events e;
    fr_stream *s;
    make_events(&e, true);
    fr_arrays a = arrays_of(&e, true, true);
    const char *set = in_directory(*state, "set");
    OK(fr_import_arrays(&a, set, NULL, NULL, &err));
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    assert_int_equal(fr_stream_get(s).events, EVENTS);
    fr_stream_close(s);
    FAILS(fr_import_arrays(&a, set, NULL, NULL, &err), FR_EFORCE, "set: exists");
    fr_import force = {.size = sizeof force, .force = true};
    OK(fr_import_arrays(&a, set, &force, NULL, &err));
    OK(fr_data_verify(set, NULL, (fr_data_file[FR_DATA_FILES]){{0}}, &(int){0}, &err));
}

static void test_what_is_refused(void **state) {
    static const char *words[] = {"a", "", "b\nc", NULL};
    (void)state;
    fr_error err;
    fr_stream *s;
    events e;
    make_events(&e, false);
    const fr_arrays good = arrays_of(&e, true, true);
    fr_arrays a = good;
#define REFUSED(code, part)                                                                        \
    do {                                                                                           \
        FAILS(fr_stream_make(&a, NULL, NULL, &s, &err), code, part);                               \
        assert_null(s);                                                                            \
        make_events(&e, false);                                                                    \
        a = good;                                                                                  \
    } while (0)
    e.source[500] = -1;
    REFUSED(FR_EINPUT, "table.csv: row 500: source -1, expected a whole number from 0");
    e.destination[4] = INT64_MIN;
    REFUSED(FR_EINPUT, "row 4: destination -9223372036854775808");
    e.time[7] = NAN;
    REFUSED(FR_EINPUT, "row 7: time nan, expected a finite number");
    e.features[7 * WIDTH + 2] = INFINITY;
    REFUSED(FR_EINPUT, "row 7: feature 3 is not a finite number");
    e.split[9] = 3;
    REFUSED(FR_EINPUT, "row 9: split 3, expected 0, 1, 2");
    e.split[9] = 2;
    REFUSED(FR_EINPUT, "event 11 (from 1, in the order of the file) is in part train");
    a.events = 0;
    REFUSED(FR_EINPUT, "0 events, expected 1 or more");
    a.time = NULL;
    REFUSED(FR_EUSAGE, "time is NULL");
    a.features = NULL;
    REFUSED(FR_EUSAGE, "features of width 3, but features is NULL");
    a.size = 0;
    REFUSED(FR_EUSAGE, "fr_arrays: a field is set, but size is 0");
    a.source_words = words;
    REFUSED(FR_EUSAGE, "words of one role only");
    a.source_words = a.destination_words = words;
    a.source_word_count = 4, a.destination_word_count = -1;
    REFUSED(FR_EUSAGE, "a negative number of words");
    static const char *const said[] = {"", "is empty", "is of several lines", "is NULL",
                                       "source 4, expected a place among 4 words"};
    for (int k = 1; k < 5; k++) {
        for (int i = 0; i < EVENTS; i++) e.source[i] = e.destination[i] = 0;
        e.source[300] = k;
        a.source_words = a.destination_words = words;
        a.source_word_count = a.destination_word_count = 4;
        REFUSED(FR_EINPUT, said[k]);
    }
    fr_import by_name = {.size = sizeof by_name, .ids = FR_IDS_WORDS};
    FAILS(fr_stream_make(&a, &by_name, NULL, &s, &err), FR_EUSAGE, "options columns and ids");
}

static bool stop(void *user) {
    (void)user;
    return true;
}

static void test_cancel(void **state) {
    fr_error err;
    fr_stream *s;
    events e;
    make_events(&e, false);
    fr_arrays a = arrays_of(&e, false, false);
    fr_context context = {.cancel = stop};
    setenv("TMPDIR", *state, 1);
    FAILS(fr_stream_make(&a, NULL, &context, &s, &err), FR_ECANCEL, "");
    assert_int_equal(directory_entries(*state), 0);
    OK(fr_stream_make(&a, NULL, NULL, &s, &err));
    assert_int_equal(directory_entries(*state), 0); /* mapped, and without a name */
    fr_stream_close(s);
    unsetenv("TMPDIR");
}

static void test_roles(void **state) {
    (void)state;
    const char *names[] = {"Rating", "userId", "ts", "movieId", "feat_0", "split"};
    const int roles[] = {FR_COLUMN_SKIPPED,     FR_COLUMN_SOURCE,  FR_COLUMN_TIME,
                         FR_COLUMN_DESTINATION, FR_COLUMN_FEATURE, FR_COLUMN_SPLIT};
    int role[6];
    fr_error err;
    OK(fr_import_roles(names, 6, NULL, role, &err));
    assert_memory_equal(role, roles, sizeof roles);
    OK(fr_import_roles(names, 6, "source=3,time=1,features=none", role, &err));
    const int others[] = {FR_COLUMN_TIME,        FR_COLUMN_SKIPPED, FR_COLUMN_SOURCE,
                          FR_COLUMN_DESTINATION, FR_COLUMN_SKIPPED, FR_COLUMN_SPLIT};
    assert_memory_equal(role, others, sizeof others);
    names[1] = "a\tname \"of\nlines";
    FAILS(fr_import_roles(names, 6, NULL, role, &err), FR_EINPUT, "no column for the source");
    FAILS(fr_import_roles(names, 0, NULL, role, &err), FR_EUSAGE, "0 columns");
    names[0] = NULL;
    FAILS(fr_import_roles(names, 6, NULL, role, &err), FR_EUSAGE, "column 1: its name is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_equals_the_table), WITH_DIRECTORY(test_words),
        WITH_DIRECTORY(test_directory),        cmocka_unit_test(test_what_is_refused),
        WITH_DIRECTORY(test_cancel),           cmocka_unit_test(test_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
