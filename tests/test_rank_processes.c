/* test_rank_processes.c - several processes share a ranking, by events or by candidates. The
 * records have the bytes of one process, for every kind of scorer, catalog, order and filter. If
 * one process fails or is interrupted, all end in the same way. */
#include "drawn_stream.h"
#include "processes.h"

#include "rank/scorer.h"

/* ---- scorers of the caller ---- */

/* Scores depend on the event and the place; few values, so that they tie. */
typedef struct toy {
    int64_t row, seen;
    int32_t fail, odd; /* at this event: fails; scores otherwise */
} toy;

static float toy_value(const toy *t, int32_t event, int64_t place) {
    uint64_t x = ((uint64_t)event * 1000003u + (uint64_t)place) * 0x9e3779b97f4a7c15u;
    return (float)((x >> 33) % 50) + (event == t->odd) + (float)(t->seen % 3);
}

static fr_status toy_part(void *state, const fr_query *queries, int count, int32_t from, int32_t to,
                          int worker, float *scores, fr_error *err) {
    const toy *t = state;
    (void)worker;
    for (int i = 0; i < count; i++)
        for (int32_t k = from; k < to; k++) {
            if (queries[i].event == t->fail) return fr_fail(err, FR_EINPUT, "this one cannot");
            *scores++ = toy_value(t, queries[i].event, k);
        }
    return FR_OK;
}

static fr_status toy_score(void *state, const fr_query *queries, int count, int worker,
                           float *scores, fr_error *err) {
    int64_t row = ((const toy *)state)->row;
    return toy_part(state, queries, count, 0, (int32_t)row, worker, scores, err);
}

static fr_status toy_observe(void *state, const fr_event *event, fr_error *err) {
    (void)event, (void)err;
    ((toy *)state)->seen++;
    return FR_OK;
}

enum { PARTS, PARTS_OF_CATALOG, ROWS, REMEMBERS, KINDS };

static fr_scorer_definition toy_definition(const fr_window *w, toy *t, int kind) {
    t->row = kind == PARTS_OF_CATALOG ? w->catalog_size : w->destinations;
    return (fr_scorer_definition){.size = sizeof(fr_scorer_definition),
                                  .name = "toy",
                                  .state = t,
                                  .score = toy_score,
                                  .part = kind < ROWS ? toy_part : NULL,
                                  .observe = kind == REMEMBERS ? toy_observe : NULL,
                                  .many = kind < ROWS ? 5 : 1,
                                  .workers = kind == REMEMBERS ? 1 : 4,
                                  .catalog_only = kind == PARTS_OF_CATALOG};
}

/* ---- processes ---- */

typedef struct job {
    const fr_window *w;
    const char *spec; /* of a scorer; NULL = the toy */
    toy toy;
    int kind;
    fr_rank_settings settings;
    bool interrupted;
    fr_ranking *out;
    fr_status status;
    fr_error err;
} job;

static bool say_yes(void *user) {
    (void)user;
    return true;
}

static void work(const fr_processes *processes, void *of) {
    job *j = of;
    fr_scorer *scorer = NULL;
    bool two = processes && processes->number == 1 && !j->interrupted; /* the first asks */
    fr_context context = {
        .threads = 1 + two, .processes = processes, .cancel = j->interrupted ? say_yes : NULL};
    j->err = (fr_error){0};
    fr_scorer_definition is = toy_definition(j->w, &j->toy, j->kind);
    j->status = j->spec ? fr_scorer_open(j->spec, j->w, 3, &context, &scorer, &j->err)
                        : fr_scorer_make(j->w, &is, &scorer, &j->err);
    j->status = fr_processes_agree(&context, j->status, &j->err);
    if (!j->status) j->status = fr_rank_run(scorer, &j->settings, &context, &j->out, &j->err);
    j->status = fr_processes_agree(&context, j->status, &j->err);
    fr_scorer_close(scorer);
}

static fr_window *open_window(const fr_stream *s, const char *catalog, const char *order,
                              const char *filter) {
    fr_error err;
    fr_window *w;
    fr_protocol p;
    OK(fr_options_defaults(fr_protocol_options, &p, &err));
    OK(fr_options_set(fr_protocol_options, &p, "catalog", catalog, &err));
    OK(fr_options_set(fr_protocol_options, &p, "order", order, &err));
    OK(fr_options_set(fr_protocol_options, &p, "filter", filter, &err));
    OK(fr_window_open(s, &p, NULL, &w, &err));
    fr_options_free(fr_protocol_options, &p);
    return w;
}

/* Runs a job in `count` processes. All do the same, except that process `one` (-1: none) does
 * `other`. The result is at process 0. */
static void run_all(const job *j, int count, int one, const job *other, job out[MOST_PROCESSES]) {
    post_office office;
    office_open(&office, count);
    for (int k = 0; k < count; k++) out[k] = k == one ? *other : *j;
    office_run(&office, work, out, sizeof *out);
    office_close(&office);
}

static void compare(job *j, const char *what) {
    static const int counts[] = {2, 3, 7};
    job alone = *j, all[MOST_PROCESSES];
    work(NULL, &alone);
    testing_ok(alone.status, &alone.err, __FILE__, __LINE__);
    fr_ranking_facts a = fr_ranking_get(alone.out);
    for (int k = 0; k < 6; k++) {
        j->settings.share = k % 2 ? FR_SHARE_EVENTS : FR_SHARE_CANDIDATES;
        run_all(j, counts[k / 2], -1, NULL, all);
        testing_ok(all[0].status, &all[0].err, __FILE__, __LINE__);
        fr_ranking_facts b = fr_ranking_get(all[0].out);
        assert_int_equal(a.count, b.count);
        for (int64_t i = 0; i < a.count; i++) {
            if (!memcmp(&a.records[i], &b.records[i], sizeof *a.records)) continue;
            print_error("# %s by %d, share %d: record %d differs\n", what, counts[k / 2],
                        j->settings.share, (int)i);
            assert_memory_equal(&a.records[i], &b.records[i], sizeof *a.records);
        }
        fr_ranking_close(all[0].out);
        for (int i = 1; i < counts[k / 2]; i++) assert_null(all[i].out);
    }
    fr_ranking_close(alone.out);
}

/* ---- tests ---- */

static job new_job(const fr_window *w, const char *spec, int kind) {
    fr_error err;
    job out = {.w = w, .spec = spec, .kind = kind, .toy = {.fail = -1, .odd = -1}};
    OK(fr_options_defaults(fr_rank_options, &out.settings, &err));
    return out;
}

static void free_job(job *j) { fr_options_free(fr_rank_options, &j->settings); }

static void compare_scorers(const fr_window *w, int64_t sample) {
    static const char *const specs[] = {"baseline:recency", "baseline:popularity",
                                        "baseline:markov",  "baseline:edgebank",
                                        "baseline:random",  "baseline:recent-popularity"};
    enum { SPECS = sizeof specs / sizeof *specs };
    for (int k = 0; k < SPECS + KINDS; k++) {
        int kind = k < SPECS ? 0 : k - SPECS;
        if (kind == PARTS_OF_CATALOG && w->catalog_kind == CATALOG_TIME) continue;
        job j = new_job(w, k < SPECS ? specs[k] : NULL, kind);
        j.settings.sample_events = sample;
        j.settings.popularity_power = sample ? 0.75 : 1;
        compare(&j, k < SPECS ? specs[k] : "toy");
        free_job(&j);
    }
}

static void test_records(void **state) {
    static const struct {
        int64_t events, destinations, sample;
        const char *catalog, *order, *filter;
    } cases[] = {{1500, 60, 0, "fixed", "stream", "none"},
                 {1500, 60, 50, "time", "strict", "same-time"},
                 {3000, 1500, 100, "fixed", "strict", "same-time"},
                 {3000, 1500, 5, "time", "stream", "none"}}; /* fewer events than processes */
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_stream *s = drawn_stream(cases[k].events, cases[k].destinations, true);
        fr_window *w = open_window(s, cases[k].catalog, cases[k].order, cases[k].filter);
        assert_int_equal(w->destinations > 512, cases[k].destinations > 60); /* tiles, or not */
        compare_scorers(w, cases[k].sample);
        fr_window_close(w);
        fr_stream_close(s);
    }
}

/* All fail in the same way, whichever process failed. */
static void assert_failed(const job *all, int count, fr_status code, const char *part) {
    for (int k = 0; k < count; k++) {
        testing_fails(all[k].status, code, part, &all[k].err, __FILE__, __LINE__);
        assert_null(all[k].out);
    }
}

static void test_failures(void **state) {
    (void)state;
    job all[MOST_PROCESSES];
    fr_stream *s = drawn_stream(1500, 60, true);
    fr_window *w = open_window(s, "fixed", "stream", "none");
    for (int kind = 0; kind < KINDS; kind++)
        for (int share = 0; share < 2; share++)
            for (int one = 0; one < 3; one++) {
                job j = new_job(w, NULL, kind), other;
                j.settings.share = share;
                j.settings.shard = 1;
                other = j;
                other.interrupted = true;
                run_all(&j, 3, one, &other, all);
                assert_failed(all, 3, FR_ECANCEL, "interrupted");
                other = j;
                other.toy.fail = w->from + 30 + one; /* an event of this process */
                run_all(&j, 3, one, &other, all);
                assert_failed(all, 3, FR_EINPUT, "this one cannot");
                free_job(&j);
            }
    job j = new_job(w, NULL, PARTS), other = j;
    j.settings.share = other.settings.share = FR_SHARE_CANDIDATES;
    other.toy.odd = w->from + 40;
    run_all(&j, 3, 2, &other, all);
    assert_failed(all, 3, FR_EINPUT, "expected equal scores");
    assert_non_null(strstr(all[0].err.message, "process 2 scores its destination"));
    j.settings.negatives = (char *)(uintptr_t) "lists.npy";
    run_all(&j, 2, -1, NULL, all);
    assert_failed(all, 2, FR_EUSAGE, "options negatives and share candidates");
    j.settings.negatives = NULL;
    j.settings.top = 3;
    run_all(&j, 2, -1, NULL, all);
    assert_failed(all, 2, FR_EUSAGE, "option top with 2 processes");
    free_job(&j);
    fr_window_close(w);
    fr_stream_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
