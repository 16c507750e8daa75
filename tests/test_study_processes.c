/* test_study_processes.c - a study done by several processes leaves the same files and log lines as
 * one process, and continues after an interruption of any of them; process 0 does units too. */
#include "processes.h"

#include <stdatomic.h>

typedef struct job {
    const char *document, *directory;
    int number;
    bool interrupted;
    _Atomic int *lines; /* that were logged, by all */
    fr_status status;
    fr_error err;
} job;

/* Process 0 when some units are done, another with its first. */
static bool say_yes(void *user) {
    const job *j = user;
    return j->number || atomic_load(j->lines) > 3;
}

static void count_line(void *user, fr_level level, const char *line) {
    (void)level, (void)line;
    atomic_fetch_add(((const job *)user)->lines, 1);
}

static void work(const fr_processes *processes, void *of) {
    job *j = of;
    fr_study *study = NULL;
    bool first = !processes || !processes->number;
    fr_context context = {.user = j,
                          .threads = 1,
                          .processes = processes,
                          .cancel = j->interrupted ? say_yes : NULL,
                          .log = first ? count_line : NULL};
    j->status = fr_study_open(j->document, NULL, first ? j->directory : NULL, &study, &j->err);
    j->status = fr_processes_agree(&context, j->status, &j->err);
    if (!j->status) j->status = fr_study_run(study, &context, &j->err);
    fr_study_close(study);
    j->status = fr_processes_agree(&context, j->status, &j->err);
}

/* Rows that are out of order, which an import reports. */
static void put_table(const char *path) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "source,destination,time\n");
    for (int k = 0; k < 600; k++)
        (void)fprintf(file, "%d,%d,%d\n", k * 7 % 23, k * k % 31 + k % 5, k ^ 1);
    assert_int_equal(fclose(file), 0);
}

static const char *make_document(const char *folder) {
    static char text[4096];
    const char *table = in_directory(folder, "table.csv");
    put_table(table);
    (void)snprintf(text, sizeof text,
                   "{\"data\": {\"d\": \"%s\"}, \"baselines\": [\"recency\", \"random\"],"
                   " \"models\": [\"craft-r\"], \"seeds\": [1, 2],"
                   " \"settings\": {\"epochs\": 2, \"dim\": 8, \"history\": 5}, \"k\": [5]}",
                   table);
    return text;
}

/* How many there are; all are done. */
static int64_t count_units(const char *directory) {
    fr_error err;
    fr_study_state now;
    OK(fr_study_status(directory, &now, &err));
    int64_t count = now.count;
    assert_int_equal(now.failed, 0);
    assert_int_equal(now.left, 0);
    fr_study_status_free(&now);
    return count;
}

/* All files of a folder of two studies are the same, bytes of timings in .json aside. */
static int compare_folder(const char *a, const char *b, const char *name) {
    char *of = in_directory(a, name), *others = in_directory(b, name);
    DIR *folder = opendir(of);
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder));) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 4, ".npy")) continue;
        mapping file;
        assert_int_equal(mapping_open(in_directory(of, e->d_name), &file, NULL), FR_OK);
        assert_file(in_directory(others, e->d_name), file.bytes, file.size);
        mapping_close(&file);
        count++;
    }
    closedir(folder);
    return count;
}

static void test_files(void **state) {
    _Atomic int lines = 0, others;
    const char *folder = *state, *document = make_document(folder);
    job alone = {.document = document, .directory = in_directory(folder, "alone"), .lines = &lines};
    work(NULL, &alone);
    testing_ok(alone.status, &alone.err, __FILE__, __LINE__);
    int64_t units = count_units(alone.directory);
    assert_true(atomic_load(&lines) > units); /* one for each, and what the import said */
    for (int count = 2; count <= 3; count++) {
        job all[MOST_PROCESSES];
        post_office office;
        others = 0;
        office_open(&office, count);
        for (int k = 0; k < count; k++)
            all[k] = (job){.document = document,
                           .directory = in_directory(folder, count == 2 ? "by-2" : "by-3"),
                           .lines = &others};
        office_run(&office, work, all, sizeof *all);
        for (int k = 0; k < count; k++) testing_ok(all[k].status, &all[k].err, __FILE__, __LINE__);
        assert_int_equal(count_units(all[0].directory), units);
        assert_true(compare_folder(alone.directory, all[0].directory, "ranks") >= 4);
        assert_int_equal(atomic_load(&others), atomic_load(&lines));
        /* A letter per unit, two verdicts and the end: process 0 did some itself. */
        if (count == 2) assert_true(office.sent[1] > 4 && office.sent[1] < units + 3);
        office_close(&office);
    }
}

static void test_interruptions(void **state) {
    static const char *const names[] = {"first", "second", "third"};
    const char *folder = *state, *document = make_document(folder);
    for (int one = 0; one < 3; one++) {
        job all[MOST_PROCESSES];
        post_office office;
        _Atomic int lines = 0;
        office_open(&office, 3);
        for (int k = 0; k < 3; k++)
            all[k] = (job){.document = document,
                           .directory = in_directory(folder, names[one]),
                           .number = k,
                           .interrupted = k == one,
                           .lines = &lines};
        job after = all[0];
        office_run(&office, work, all, sizeof *all);
        for (int k = 0; k < 3; k++)
            testing_fails(all[k].status, FR_ECANCEL, "interrupted", &all[k].err, __FILE__,
                          __LINE__);
        office_close(&office);
        after.interrupted = false;
        work(NULL, &after);
        testing_ok(after.status, &after.err, __FILE__, __LINE__);
        (void)count_units(after.directory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_files),
                                       WITH_DIRECTORY(test_interruptions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
