/* test_study.c - studies through the public header: large ones, and which processes may work on
 * one. */
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/fullrank-study-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* A study of 100,002 units is planned, opened again and looked at without quadratic work: 0.6
 * to 0.8, 0.2 and 0.5 s of a busy core. A sanitizer takes its time, and so does a slow machine. */
static void large_studies_are_quick(void **state) {
    enum { SEEDS = 25000, UNITS = 2 + 4 * SEEDS };
    const double most = SANITIZED ? 30 : 3;
    char path[64], *text = malloc(1 << 20);
    fr_study *study;
    fr_study_state now;
    fr_error err = {0};
    (void)state;
    assert_non_null(text);
    size_t used = (size_t)sprintf(text, "{\"data\": {\"d\": {\"synth\": \"tiny\"}},"
                                        " \"models\": [\"craft\", \"tgn\"], \"seeds\": [");
    for (int i = 0; i < SEEDS; i++) used += (size_t)sprintf(text + used, "%s%d", i ? "," : "", i);
    (void)strcpy(text + used, "]}");
    (void)snprintf(path, sizeof path, "%s/large", folder);
    for (int again = 0; again < 2; again++) {
        double start = cpu_seconds();
        assert_int_equal(fr_study_open(text, NULL, path, &study, &err), FR_OK);
        double took = cpu_seconds() - start;
        print_message("# planned %d units in %.2f s\n", UNITS, took);
        assert_true(took < most);
        fr_study_close(study);
    }
    double start = cpu_seconds();
    assert_int_equal(fr_study_status(path, &now, &err), FR_OK);
    double took = cpu_seconds() - start;
    print_message("# status of %d units in %.2f s\n", UNITS, took);
    assert_true(took < most);
    assert_int_equal(now.count, UNITS);
    assert_int_equal(now.left, UNITS);
    fr_study_status_free(&now);
    free(text);
}

static fr_status open_study(const char *document, fr_study **out, fr_error *err) {
    char path[64];
    (void)snprintf(path, sizeof path, "%s/shared", folder);
    return fr_study_open(document, NULL, path, out, err);
}

/* Two documents at once would undo each other's work again and again. */
static void one_document_at_a_time(void **state) {
    static const char one[] = "{\"data\": {\"d\": {\"synth\": \"tiny\"}}}",
                      two[] = "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 900}}}";
    fr_study *a, *b;
    fr_error err = {0};
    (void)state;
    assert_int_equal(open_study(one, &a, &err), FR_OK);
    assert_int_equal(open_study(two, &b, &err), FR_EFILE);
    assert_non_null(
        strstr(err.message, "another process works on this study with another document"));
    assert_int_equal(open_study(one, &b, &err), FR_OK);
    fr_study_close(a);
    assert_int_equal(open_study(two, &a, &err), FR_EFILE); /* b is still there */
    fr_study_close(b);
    assert_int_equal(open_study(two, &a, &err), FR_OK);
    fr_study_close(a);
}

/* A lock on a file that others do not see excludes nobody. */
static void lost_locks_are_noticed(void **state) {
    static const char document[] = "{\"data\": {\"d\": {\"synth\": \"tiny\"}}}";
    char path[64];
    fr_study *study;
    fr_error err = {0};
    (void)state;
    assert_int_equal(open_study(document, &study, &err), FR_OK);
    (void)snprintf(path, sizeof path, "%s/shared/study.lock", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fr_study_run(study, NULL, &err), FR_EFILE);
    assert_non_null(strstr(err.message, "removed or replaced while the study ran"));
    fr_study_close(study);
}

/* Units that were done with other settings than the document's are not shown as its results. */
static void a_new_document_outdates_units(void **state) {
    static const char *const documents[] = {
        "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 400}}, \"protocol\": {\"window\": 0},"
        " \"baselines\": [\"recency\"], \"k\": [5]}",
        "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 400}}, \"protocol\": {\"window\": 0},"
        " \"baselines\": [\"recency\"], \"k\": [7]}",
        "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 400}}, \"protocol\": {\"window\": "
        "300},"
        " \"baselines\": [\"recency\"], \"k\": [7]}",
        "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 500}}, \"protocol\": {\"window\": "
        "300},"
        " \"baselines\": [\"recency\"], \"k\": [7]}"};
    static const int64_t done[] = {3, 3, 1, 0}; /* data, facts, rank; the last has other data */
    char path[64];
    fr_study *study;
    fr_study_state now;
    fr_error err = {0};
    (void)state;
    (void)snprintf(path, sizeof path, "%s/outdated", folder);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fr_study_open(documents[i], NULL, path, &study, &err), FR_OK);
        if (i == 0) assert_int_equal(fr_study_run(study, NULL, &err), FR_OK);
        fr_study_close(study); /* not run: as if it had been killed */
        assert_int_equal(fr_study_status(path, &now, &err), FR_OK);
        assert_int_equal(now.done, done[i]);
        assert_int_equal(now.left, 3 - done[i]);
        fr_study_status_free(&now);
        if (i < 2) assert_int_equal(fr_study_report(path, NULL, &err), FR_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_studies_are_quick), cmocka_unit_test(one_document_at_a_time),
        cmocka_unit_test(lost_locks_are_noticed), cmocka_unit_test(a_new_document_outdates_units)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
