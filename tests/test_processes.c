/* test_processes.c - processes that share work, played by threads with queues between them. Records
 * equal those of one process, for any number of processes; if one fails, all fail. */
#include "base/os.h"
#include "rank/ranking.h"
#include "testing.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 7, CHANNELS = 2 };

/* ---- processes ---- */

typedef struct message {
    struct message *next;
    int from;
    size_t size;
    char bytes[];
} message;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static message *queue[MOST][CHANNELS];

typedef struct member {
    fr_processes is;
    const fr_window *w;
    const char *spec;
    int fails;             /* number of the process that fails, -1 = none */
    const char *directory; /* of a study */
    int asked, patience;   /* it is cancelled at this many requests; 0 = never */
    int64_t sample;
    fr_ranking *ranking;
    fr_status status;
    fr_error err;
} member;

static fr_status send_message(void *state, int to, int channel, const void *bytes, size_t size,
                              fr_error *err) {
    (void)err;
    message *m = malloc(sizeof *m + size), **last;
    assert_non_null(m);
    *m = (message){.from = ((member *)state)->is.number, .size = size};
    memcpy(m->bytes, bytes, size);
    (void)pthread_mutex_lock(&guard);
    for (last = &queue[to][channel]; *last;) last = &(*last)->next;
    *last = m;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&guard);
    return FR_OK;
}

static fr_status receive_message(void *state, int *from, int channel, void **bytes, size_t *size,
                                 fr_error *err) {
    (void)err;
    int number = ((member *)state)->is.number;
    message *found = NULL;
    (void)pthread_mutex_lock(&guard);
    while (!found) {
        message **at = &queue[number][channel];
        while (*at && *from >= 0 && (*at)->from != *from) at = &(*at)->next;
        if ((found = *at)) *at = found->next;
        if (!found) (void)pthread_cond_wait(&changed, &guard);
    }
    (void)pthread_mutex_unlock(&guard);
    *from = found->from;
    *size = found->size;
    *bytes = malloc(found->size + 1);
    assert_non_null(*bytes);
    memcpy(*bytes, found->bytes, found->size);
    free(found);
    return FR_OK;
}

static bool is_waiting(void *state, int channel) {
    (void)pthread_mutex_lock(&guard);
    bool there = queue[((member *)state)->is.number][channel];
    (void)pthread_mutex_unlock(&guard);
    return there;
}

/* ---- ranking ---- */

/* A score that depends on event and candidate; one process has NaN at some event. */
typedef struct toy {
    const fr_window *w;
    bool fails;
} toy;

static fr_status score(void *state, const fr_query *q, int count, int worker, float *scores,
                       fr_error *err) {
    (void)worker, (void)err;
    const toy *t = state;
    int64_t n = fr_window_get(t->w).candidates;
    for (int i = 0; i < count; i++)
        for (int64_t v = 0; v < n; v++)
            scores[i * n + v] = t->fails && q[i].event > 2700
                                    ? (float)(0.0 / (double)(v - v))
                                    : (float)((q[i].event * 31 + v * v * 7) % 53);
    return FR_OK;
}

static const char document[] =
    "{\"name\": \"shared\", \"data\": {\"tiny\": {\"synth\": \"tiny\", \"events\": 1500}}, "
    "\"oracle\": true,"
    " \"baselines\": [\"recency\", \"random\", \"popularity\", \"edgebank\"], \"k\": [5]}";

static bool is_impatient(void *user) {
    member *m = user;
    return m->patience && ++m->asked > m->patience;
}

static void *do_study(void *user) {
    member *m = user;
    fr_context context = {.user = m,
                          .threads = 1,
                          .cancel = is_impatient,
                          .processes = m->is.count > 1 ? &m->is : NULL};
    fr_study *study = NULL;
    m->status = fr_study_open(document, NULL, m->is.number ? NULL : m->directory, &study, &m->err);
    m->status = fr_processes_agree(&context, m->status, &m->err);
    if (!m->status) m->status = fr_study_run(study, &context, &m->err);
    fr_study_close(study);
    m->status = fr_processes_agree(&context, m->status, &m->err);
    return NULL;
}

static void *work(void *user) {
    member *m = user;
    fr_context context = {.threads = 2, .processes = m->is.count > 1 ? &m->is : NULL};
    fr_rank_settings settings = {
        .size = sizeof settings, .shard = 16, .popularity_power = 1, .sample_events = m->sample};
    fr_scorer *scorer = NULL;
    toy own = {m->w, m->fails == m->is.number};
    fr_scorer_definition is = {.size = sizeof is,
                               .name = "toy",
                               .state = &own,
                               .score = score,
                               .many = 5,
                               .workers = FR_WORKERS_ANY};
    m->status = m->spec ? fr_scorer_open(m->spec, m->w, 3, &context, &scorer, &m->err)
                        : fr_scorer_make(m->w, &is, &scorer, &m->err);
    m->status = fr_processes_agree(&context, m->status, &m->err);
    if (!m->status) m->status = fr_rank_run(scorer, &settings, &context, &m->ranking, &m->err);
    fr_scorer_close(scorer);
    return NULL;
}

static void start_all(member *all, int count, member like, void *(*function)(void *)) {
    pthread_t thread[MOST];
    for (int k = 0; k < count; k++) {
        all[k] = like;
        all[k].is = (fr_processes){.size = sizeof(fr_processes),
                                   .number = k,
                                   .count = count,
                                   .state = &all[k],
                                   .send = send_message,
                                   .receive = receive_message,
                                   .waiting = is_waiting};
    }
    for (int k = 0; k < count; k++) assert_int_equal(os_thread(&thread[k], function, &all[k]), 0);
    for (int k = 0; k < count; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int k = 0; k < count; k++)
        for (int c = 0; c < CHANNELS; c++) assert_null(queue[k][c]); /* all were received */
}

/* Ranks with `count` processes; member 0 has the ranking. */
static void run_all(member *all, int count, const fr_window *w, const char *spec, int64_t sample,
                    int fails) {
    start_all(all, count, (member){.w = w, .spec = spec, .fails = fails, .sample = sample}, work);
}

static fr_stream *open_stream(const char *directory, fr_window **w) {
    fr_error err;
    fr_stream *stream;
    char *path = in_directory(directory, "stream");
    fr_synth synth = {.size = sizeof synth, .preset = (char[]){"tiny"}, .seed = 5, .events = 3000};
    fr_protocol p = {.size = sizeof p, .train_share = 0.8};
    OK(fr_synth_make(&synth, path, NULL, &err));
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    OK(fr_window_open(stream, &p, NULL, w, &err));
    return stream;
}

static void test_records(void **state) {
    static const char *const specs[] = {NULL, "baseline:recency", "baseline:random"};
    static const int counts[] = {2, 3, 7};
    fr_window *w;
    fr_stream *stream = open_stream(*state, &w);
    for (int i = 0; i < 3; i++)
        for (int sample = 0; sample <= 100; sample += 100) {
            member alone[1], all[MOST];
            run_all(alone, 1, w, specs[i], sample, -1);
            assert_int_equal(alone->status, FR_OK);
            fr_ranking_facts expected = fr_ranking_get(alone->ranking);
            for (int c = 0; c < 3; c++) {
                run_all(all, counts[c], w, specs[i], sample, -1);
                for (int k = 0; k < counts[c]; k++) assert_int_equal(all[k].status, FR_OK);
                for (int k = 1; k < counts[c]; k++) assert_null(all[k].ranking);
                fr_ranking_facts found = fr_ranking_get(all[0].ranking);
                assert_int_equal(found.count, expected.count);
                assert_memory_equal(found.records, expected.records,
                                    (size_t)found.count * sizeof(fr_record));
                assert_string_equal(found.protocol_text, expected.protocol_text);
                fr_ranking_close(all[0].ranking);
            }
            fr_ranking_close(alone->ranking);
        }
    fr_window_close(w);
    fr_stream_close(stream);
}

/* If any process fails, all fail with its message, once. */
static void test_failure(void **state) {
    fr_window *w;
    fr_stream *stream = open_stream(*state, &w);
    for (int fails = 0; fails < 3; fails++) {
        member all[MOST];
        run_all(all, 3, w, NULL, 0, fails);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(all[k].status, FR_EINPUT);
            assert_non_null(strstr(all[k].err.message, "expected a number"));
            assert_string_equal(all[k].err.message, all[0].err.message);
            assert_null(all[k].ranking);
        }
    }
    member all[MOST];
    run_all(all, 2, w, "baseline:nothing", 0, -1);
    assert_int_equal(all[1].status, FR_EUSAGE);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* How many units of a study are done; all of its rank records are those of `like`. */
static int64_t check_study(const char *directory, const char *like) {
    static const char *const names[] = {"oracle", "baseline%3Arecency", "baseline%3Arandom"};
    fr_error err;
    fr_study_state s;
    OK(fr_study_status(directory, &s, &err));
    int64_t done = s.done;
    for (int i = 0; like && i < 3; i++) {
        char file[128];
        mapping expected;
        (void)snprintf(file, sizeof file, "ranks/tiny+%s+rank.npy", names[i]);
        OK(mapping_open(in_directory(like, file), &expected, &err));
        assert_file(in_directory(directory, file), expected.bytes, expected.size);
        mapping_close(&expected);
    }
    fr_study_status_free(&s);
    return done;
}

static void test_study(void **state) {
    member all[MOST], like = {.directory = in_directory(*state, "alone")};
    start_all(all, 1, like, do_study);
    assert_int_equal(all->status, FR_OK);
    int64_t units = check_study(like.directory, NULL);
    member shared = {.directory = in_directory(*state, "shared")};
    start_all(all, 3, shared, do_study);
    for (int k = 0; k < 3; k++) assert_int_equal(all[k].status, FR_OK);
    assert_int_equal(check_study(shared.directory, like.directory), units);

    /* Cancelled at some moment, and continued. */
    member cancelled = {.directory = in_directory(*state, "cancelled"), .patience = 5};
    start_all(all, 3, cancelled, do_study);
    for (int k = 0; k < 3; k++) assert_int_equal(all[k].status, FR_ECANCEL);
    assert_true(check_study(cancelled.directory, NULL) < units);
    cancelled.patience = 0;
    start_all(all, 2, cancelled, do_study);
    assert_int_equal(all[1].status, FR_OK);
    assert_int_equal(check_study(cancelled.directory, like.directory), units);

    /* Process 0 cannot begin: all fail with its message. */
    member nowhere = {.directory = "/dev/null/study"};
    start_all(all, 2, nowhere, do_study);
    assert_int_equal(all[1].status, FR_EFILE);
    assert_string_equal(all[0].err.message, all[1].err.message);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_records), WITH_DIRECTORY(test_failure),
                                       WITH_DIRECTORY(test_study)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
