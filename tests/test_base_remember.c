/* test_base_remember.c - the remembered SHA-256 of a file is that of its bytes, even if the file or
 * the table was changed. */
#include "testing.h"

#include "base/fingerprint.h"
#include "base/remember.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BYTES = (1 << 20) + 37, HASH = 3 * 17, CHECK = HASH + 65, LINE = CHECK + 17 };

static void write_bytes(const char *path, char last) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < BYTES - 1; i++) assert_true(fputc(i * 31 >> 3 & 127, file) != EOF);
    assert_true(fputc(last, file) != EOF);
    assert_int_equal(fclose(file), 0);
}

static void set_time(const char *path) {
    const struct timespec times[2] = {{1000, 5}, {1000, 7}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void ask(const char *path, char out[65]) {
    fr_error err;
    mapping m;
    OK(mapping_open(path, &m, &err));
    OK(remember_sha256(&m, out, &err));
    mapping_close(&m);
}

/* Asks for the hash and compares it with the true one. */
static void ask_for_truth(const char *path) {
    fr_error err;
    char out[65], truth[65];
    OK(file_sha256(path, truth, &err));
    ask(path, out);
    assert_string_equal(out, truth);
}

/* The table of a fresh cache directory. */
static const char *fresh_table(char *directory) {
    assert_int_equal(setenv("XDG_CACHE_HOME", in_directory(directory, "cache"), 1), 0);
    return in_directory(directory, "cache/fullrank/sha256");
}

static int64_t size_of(const char *path) {
    struct stat facts;
    return stat(path, &facts) ? -1 : (int64_t)facts.st_size;
}

static void change_byte(const char *path, long place) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, place, SEEK_SET), 0);
    int old = fgetc(file);
    assert_int_equal(fseek(file, place, SEEK_SET), 0);
    assert_true(fputc(old == 'a' ? 'b' : 'a', file) != EOF);
    assert_int_equal(fclose(file), 0);
}

static void test_remembers(void **state) {
    const char *table = fresh_table(*state), *file = in_directory(*state, "file");
    write_bytes(file, 'x');
    ask_for_truth(file);
    assert_int_equal(size_of(table), LINE);
    ask_for_truth(file);
    assert_int_equal(size_of(table), LINE); /* found */
    set_time(file);
    ask_for_truth(file); /* another time: hashed again */
    assert_int_equal(size_of(table), 2 * LINE);
    write_bytes(file, 'y');
    set_time(file); /* the same size and time, one byte differs */
    ask_for_truth(file);
    assert_int_equal(size_of(table), 3 * LINE);
}

/* A planted line with a wrong hash is used. This shows that the file is not hashed again. */
static void test_takes_it_from_the_table(void **state) {
    const char *table = fresh_table(*state), *file = in_directory(*state, "file");
    char out[65], line[LINE + 1] = "";
    write_bytes(file, 'x');
    ask(file, out);
    FILE *in = fopen(table, "rb");
    assert_non_null(in);
    assert_int_equal(fread(line, LINE, 1, in), 1);
    assert_int_equal(fclose(in), 0);
    assert_memory_equal(line + HASH, out, 64);
    memset(line + HASH, 'f', 64);
    (void)snprintf(line + CHECK, 18, "%016llx\n",
                   (unsigned long long)fingerprint_add(0, line, CHECK));
    put_file(table, line, LINE);
    ask(file, out);
    assert_memory_equal(line + HASH, out, 64);
}

static void test_damaged_table(void **state) {
    const char *table = fresh_table(*state), *file = in_directory(*state, "file");
    write_bytes(file, 'x');
    for (long place = 0; place < LINE; place += 7) { /* of the first line */
        ask_for_truth(file);
        change_byte(table, place);
        ask_for_truth(file);
        assert_int_equal(size_of(table), 2 * LINE);
        assert_int_equal(unlink(table), 0);
    }
    ask_for_truth(file);
    assert_int_equal(truncate(table, LINE - 5), 0); /* truncated: a new table is begun */
    ask_for_truth(file);
    assert_int_equal(size_of(table), LINE);
    assert_int_equal(truncate(table, 4096 * LINE), 0); /* full: a new table is begun */
    change_byte(table, 3);
    ask_for_truth(file);
    assert_int_equal(size_of(table), LINE);
}

static void test_no_table(void **state) {
    const char *file = in_directory(*state, "file");
    write_bytes(file, 'x');
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    ask_for_truth(file);
    assert_int_equal(setenv("HOME", *state, 1), 0);
    ask_for_truth(file); /* in the home directory */
    assert_int_equal(size_of(in_directory(*state, ".cache/fullrank/sha256")), LINE);
    put_text(in_directory(*state, "cache"), "no directory");
    (void)fresh_table(*state);
    ask_for_truth(file);
    const char *table = in_directory(*state, "small");
    put_text(table, "small");
    ask_for_truth(table);
    assert_int_equal(unlink(in_directory(*state, "cache")), 0);
    table = fresh_table(*state);
    ask_for_truth(file);
    assert_int_equal(unlink(table), 0);
    assert_int_equal(mkfifo(table, 0600), 0); /* nobody writes: whoever opens it waits for ever */
    (void)alarm(60);
    ask_for_truth(file);
    (void)alarm(0);
}

static void test_many_at_once(void **state) {
    enum { CHILDREN = 4, ROUNDS = 8 };
    const char *table = fresh_table(*state), *file = in_directory(*state, "file");
    write_bytes(file, 'x');
    for (int k = 0; k < CHILDREN; k++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child) continue;
        mapping m;
        fr_error err;
        char out[65];
        if (mapping_open(file, &m, &err)) _exit(1);
        for (int i = 0; i < ROUNDS; i++) {
            m.modified = i * CHILDREN + k; /* as if it were another file each time */
            if (remember_sha256(&m, out, &err)) _exit(1);
        }
        _exit(0);
    }
    for (int k = 0, result; k < CHILDREN; k++) {
        assert_true(wait(&result) > 0);
        assert_int_equal(result, 0);
    }
    assert_int_equal(size_of(table), CHILDREN * ROUNDS * LINE);
    ask_for_truth(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_remembers),     WITH_DIRECTORY(test_takes_it_from_the_table),
        WITH_DIRECTORY(test_damaged_table), WITH_DIRECTORY(test_no_table),
        WITH_DIRECTORY(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
