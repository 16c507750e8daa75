/* testing.h - used by every cmocka test: checks of status and message, a private directory, files
 * in one line, skipping with a reason, real data.
 *
 *     static void test_x(void **state) {
 *         fr_error err;
 *         char *path = in_directory(*state, "x.npy");
 *         OK(npy_open(path, &n, &err));                          // fails with err.message shown
 *         FAILS(npy_open("nowhere", &n, &err), FR_EFILE, "nowhere: cannot be read");
 *     }
 *     int main(void) {
 *         const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_x)};
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 *
 * Paths made here live until the program ends; tests are short.
 */
#ifndef FR_TESTS_TESTING_H
#define FR_TESTS_TESTING_H

#include "base/file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef fail
#include <cmocka.h>
#undef fail
#define fail fr_fail /* ours, of status.h */

/* OK and FAILS use the local variable `err`. FAILS expects `code`, the same code in err and a
 * one-line message that contains `part`. */
#define OK(call) testing_ok((err = (fr_error){0}, (call)), &err, __FILE__, __LINE__)
#define FAILS(call, code_, part)                                                                   \
    testing_fails((err = (fr_error){0}, (call)), (code_), (part), &err, __FILE__, __LINE__)

static inline void testing_ok(fr_status status, const fr_error *err, const char *file, int line) {
    if (status == FR_OK) return;
    print_error("# status %d: %s\n", (int)status, err->message);
    _fail(file, line);
}

static inline void testing_fails(fr_status status, fr_status code, const char *part,
                                 const fr_error *err, const char *file, int line) {
    if (status == code && err->code == code && strstr(err->message, part) &&
        !strchr(err->message, '\n'))
        return;
    print_error("# status %d (expected %d), message \"%s\" (expected to contain \"%s\")\n",
                (int)status, (int)code, err->message, part);
    _fail(file, line);
}

/* FR_ORDER_* as a protocol spells it; batches are of BATCH events, few and odd. */
enum { BATCH = 7 };
static inline char *order_text(int order) {
    static char text[][16] = {"stream", "strict", "batch:7"};
    return text[order];
}

/* Sanitizers are slow. The plain build tests everything, so a sample is enough for them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Ends the test as skipped; run.sh turns the line into the reason. */
#define skip_because(reason)                                                                       \
    do {                                                                                           \
        (void)printf("# because %s\n", (reason));                                                  \
        (void)fflush(stdout);                                                                      \
        skip();                                                                                    \
    } while (0)

/* ---- a fresh directory per test, in *state ---- */

/* The caller frees *out. */
static inline int make_directory(char **out) {
    const char *base = getenv("TMPDIR");
    *out = path_join(base && *base ? base : "/tmp", "fullrank-test-XXXXXX");
    return *out && mkdtemp(*out) ? 0 : 1;
}

static inline int directory_setup(void **state) { return make_directory((char **)state); }
static inline int directory_teardown(void **state) {
    directory_remove(*state);
    free(*state);
    return 0;
}
#define WITH_DIRECTORY(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

/* A path that needs no free. */
static inline char *in_directory(const char *directory, const char *name) {
    static char *paths[256];
    static int next;
    free(paths[next]);
    char *path = paths[next] = path_join(directory, name);
    next = (next + 1) % 256;
    assert_non_null(path);
    return path;
}

/* Entries of a directory without "." and ".."; -1 if it cannot be read. */
static inline int directory_entries(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int entries = -2;
    while (readdir(folder)) entries++;
    closedir(folder);
    return entries;
}

static inline void put_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void put_text(const char *path, const char *text) {
    put_file(path, text, strlen(text));
}

static inline void assert_file(const char *path, const void *bytes, size_t size) {
    mapping file;
    assert_int_equal(mapping_open(path, &file, NULL), FR_OK);
    assert_int_equal(file.size, size);
    if (size) assert_memory_equal(file.bytes, bytes, size);
    mapping_close(&file);
}

/* ---- real data ---- */

/* The path of a file of $FULLRANK_DATA or ../shared/data beside the repository; NULL if it is not
 * there: if (!path) skip_because("real data not found"). Needs no free. */
static inline const char *data_file(const char *name) {
    const char *folder = getenv("FULLRANK_DATA");
    char *path = in_directory(folder ? folder : FULLRANK_SOURCE_DIR "/../shared/data", name);
    return access(path, R_OK) ? NULL : path;
}

/* ---- scorers ---- */

/* A scorer from a definition without size and perhaps without a name. */
static inline fr_scorer *scorer_of(const fr_window *w, fr_scorer_definition is) {
    fr_error err;
    fr_scorer *scorer;
    is.size = sizeof is;
    if (!is.name) is.name = "toy";
    OK(fr_scorer_make(w, &is, &scorer, &err));
    return scorer;
}

/* Ranks with a scorer that is made for it, and closes it. */
static inline fr_status rank_with(const fr_window *w, fr_scorer_definition is,
                                  const fr_rank_settings *settings, const fr_context *context,
                                  fr_ranking **out, fr_error *err) {
    fr_scorer *scorer = scorer_of(w, is);
    fr_status status = fr_rank_run(scorer, settings, context, out, err);
    fr_scorer_close(scorer);
    return status;
}

#endif
