/* test_base_file.c - a file or directory is the old one or the new one, never incomplete, and no
 * temporary file is left. Writing past RLIMIT_FSIZE simulates a full disk. */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void test_commit_and_discard(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "file");
    put_text(path, "old");
    writer w;
    OK(writer_open(&w, path, &err));
    OK(writer_put(&w, "new", 3, &err));
    assert_file(path, "old", 3); /* until commit */
    writer_discard(&w);
    writer_discard(&w);
    assert_file(path, "old", 3);
    assert_int_equal(directory_entries(*state), 1);

    OK(writer_open(&w, path, &err));
    OK(writer_put(&w, "ne", 2, &err));
    OK(writer_put(&w, NULL, 0, &err)); /* an empty list */
    OK(writer_put(&w, "wer", 3, &err));
    assert_int_equal(w.written, 5);
    OK(writer_commit(&w, &err));
    writer_discard(&w); /* harmless after commit */
    assert_file(path, "newer", 5);
    assert_int_equal(directory_entries(*state), 1);

    writer zeroed = {0};
    writer_discard(&zeroed);
}

static void test_sizes_around_the_buffer(void **state) {
    fr_error err;
    enum { MOST = 1 << 20 };
    unsigned char *bytes = malloc(MOST);
    assert_non_null(bytes);
    for (int i = 0; i < MOST; i++) bytes[i] = (unsigned char)(i * 31 >> 3);
    static const size_t pieces[] = {1000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, MOST};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        const char *path = in_directory(*state, "large");
        writer w;
        OK(writer_open(&w, path, &err));
        for (size_t at = 0; at < MOST; at += pieces[p])
            OK(writer_put(&w, bytes + at, MOST - at < pieces[p] ? MOST - at : pieces[p], &err));
        OK(writer_put_at(&w, 0, "head", 4, &err));
        OK(writer_put(&w, "tail", 4, &err)); /* a patch does not move the end */
        OK(writer_commit(&w, &err));
        mapping m;
        OK(mapping_open(path, &m, &err));
        assert_int_equal(m.size, MOST + 4);
        assert_memory_equal(m.bytes, "head", 4);
        assert_memory_equal(m.bytes + 4, bytes + 4, MOST - 4);
        assert_memory_equal(m.bytes + MOST, "tail", 4);
        mapping_close(&m);
    }
    free(bytes);
}

static void test_killed_writer_leaves_the_old_file(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "file");
    put_text(path, "old");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        writer w;
        char bytes[1000] = {0};
        if (writer_open(&w, path, NULL)) _exit(1);
        for (int i = 0; i < 1000; i++)
            if (writer_put(&w, bytes, sizeof bytes, NULL)) _exit(1);
        (void)raise(SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_file(path, "old", 3);
    assert_int_equal(directory_entries(*state), 2);
    writer w; /* the next writer removes its leftover */
    OK(writer_open(&w, path, &err));
    OK(writer_put(&w, "new", 3, &err));
    OK(writer_commit(&w, &err));
    assert_file(path, "new", 3);
    assert_int_equal(directory_entries(*state), 1);
}

static void test_live_writers_of_one_file(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "file");
    writer first, second;
    OK(writer_open(&first, path, &err));
    OK(writer_put(&first, "first", 5, &err));
    OK(writer_open(&second, path, &err)); /* leaves the other alone */
    OK(writer_put(&second, "second", 6, &err));
    OK(writer_commit(&first, &err));
    assert_file(path, "first", 5);
    OK(writer_commit(&second, &err));
    assert_file(path, "second", 6);
    assert_int_equal(directory_entries(*state), 1);
}

/* Only leftovers of this output are removed. */
static void test_other_files_stay(void **state) {
    static const char *const names[] = {
        "file.tmp-123",         "file.tmp-fr",           "file.tmp-fr0123456",
        "file.tmp-fr012345678", "file.tmp-fr0123456g",   "file.tmp-frABCDEF01",
        "file2.tmp-fr01234567", "a.file.tmp-fr01234567", "file.tmp-fr01234567.txt",
        "file.npy.tmp-fr012345"};
    fr_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_text(in_directory(*state, names[i]), "theirs");
    put_text(in_directory(*state, "file.tmp-fr01234567"), "ours, dead");
    writer w;
    OK(writer_open(&w, in_directory(*state, "file"), &err));
    OK(writer_commit(&w, &err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_file(in_directory(*state, names[i]), "theirs", 6);
    assert_int_equal(directory_entries(*state), (int)(sizeof names / sizeof *names) + 1);
}

/* Links where a temporary may be looked for, under the names of today and of earlier versions. */
static void test_links_are_not_followed(void **state) {
    fr_error err;
    const char *victim = in_directory(*state, "victim");
    const char *precious = in_directory(*state, "victim/precious");
    char process[64];
    assert_int_equal(mkdir(victim, 0777), 0);
    put_text(precious, "1");
    static const char *const ends[] = {"%s.tmp-%ld", "%s.tmp-fr%08lx"};
    for (int k = 0; k < 2; k++) {
        (void)snprintf(process, sizeof process, ends[k], "file", (long)getpid());
        assert_int_equal(symlink(precious, in_directory(*state, process)), 0);
        (void)snprintf(process, sizeof process, ends[k], "set", (long)getpid());
        assert_int_equal(symlink(victim, in_directory(*state, process)), 0);
    }
    writer w;
    OK(writer_open(&w, in_directory(*state, "file"), &err));
    OK(writer_put(&w, "new", 3, &err));
    OK(writer_commit(&w, &err));
    staging s;
    OK(staging_open(&s, in_directory(*state, "set"), false, NULL, &err));
    OK(staging_commit(&s, &err));
    staging_discard(&s);
    assert_file(precious, "1", 1);
    assert_file(in_directory(*state, "file"), "new", 3);
    directory_remove(in_directory(*state, process));
    (void)strcat(process, "/");
    directory_remove(in_directory(*state, process));
    assert_file(precious, "1", 1);
}

/* New files and directories have the modes the umask says; mapped ones are for reading only. */
static void test_modes(void **state) {
    fr_error err;
    struct stat facts;
    mode_t before = umask(027);
    const char *path = in_directory(*state, "file");
    for (int read_only = 0; read_only < 2; read_only++) {
        writer w;
        OK(writer_open(&w, path, &err));
        w.read_only = read_only;
        OK(writer_commit(&w, &err));
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_mode & 0777, read_only ? 0440 : 0640);
    }
    staging s;
    OK(staging_open(&s, in_directory(*state, "set"), false, NULL, &err));
    OK(staging_commit(&s, &err));
    staging_discard(&s);
    assert_int_equal(stat(in_directory(*state, "set"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0750);
    (void)umask(before);
}

static void test_places_that_cannot_be_written(void **state) {
    fr_error err;
    writer w;
    FAILS(writer_open(&w, in_directory(*state, "no/file"), &err), FR_EFILE,
          "no/file: cannot be written: No such file");
    writer_discard(&w);
    FAILS(writer_open(&w, *state, &err), FR_EFILE, "is a directory");
    writer_discard(&w);
    assert_int_equal(directory_entries(*state), 0);
}

/* Runs `size` bytes through a writer while files may not exceed 64 KiB. */
static fr_status write_limited(const char *path, size_t size, fr_error *err) {
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    limit = before;
    limit.rlim_cur = 1 << 16;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char bytes[1000] = {0};
    writer w;
    fr_status status = writer_open(&w, path, err);
    for (size_t at = 0; !status && at < size; at += sizeof bytes)
        status = writer_put(&w, bytes, sizeof bytes, err);
    if (!status) status = writer_commit(&w, err);
    writer_discard(&w);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    (void)signal(SIGXFSZ, handler);
    return status;
}

static void test_full_disk(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "file");
    OK(write_limited(path, 50000, &err));
    put_text(path, "old");
    /* Refused when the buffer is flushed at commit, and in the middle. */
    FAILS(write_limited(path, 100000, &err), FR_EFILE, "file: cannot be written: File too large");
    FAILS(write_limited(path, 1000000, &err), FR_EFILE, "file: cannot be written: File too large");
    assert_file(path, "old", 3);
    FAILS(write_limited(in_directory(*state, "new"), 1000000, &err), FR_EFILE, "File too large");
    assert_int_equal(directory_entries(*state), 1);
}

static void test_mapping(void **state) {
    fr_error err;
    mapping m;
    const char *path = in_directory(*state, "file");
    put_text(path, "");
    OK(mapping_open(path, &m, &err));
    assert_null(m.bytes);
    assert_int_equal(m.size, 0);
    mapping_close(&m);
    put_text(path, "text");
    OK(mapping_open(path, &m, &err));
    assert_int_equal(m.size, 4);
    assert_memory_equal(m.bytes, "text", 4);
    mapping_close(&m);
    mapping_close(&m);
    FAILS(mapping_open(in_directory(*state, "none"), &m, &err), FR_EFILE,
          "none: cannot be read: No such file");
    FAILS(mapping_open(*state, &m, &err), FR_EFILE, "is a directory, expected a file");
    assert_int_equal(mkfifo(in_directory(*state, "pipe"), 0666), 0); /* without waiting */
    FAILS(mapping_open(in_directory(*state, "pipe"), &m, &err), FR_EFILE, "pipe: is a pipe or");
    FAILS(mapping_open("/dev/null", &m, &err), FR_EFILE, "/dev/null: is a pipe or a device");
}

static void test_mapped_file(void **state) {
    fr_error err;
    mapping a, b;
    const char *first = in_directory(*state, "first"), *second = in_directory(*state, "second");
    put_text(first, "text");
    put_text(second, "longer text");
    OK(mapping_open(first, &a, &err));
    OK(mapping_open(second, &b, &err));
    const unsigned char *at = a.bytes;
    assert_string_equal(fr_mapped_file(a.bytes), first);
    assert_string_equal(fr_mapped_file(b.bytes + 10), second);
    assert_null(fr_mapped_file(b.bytes + 11));
    assert_null(fr_mapped_file(&a));
    mapping_close(&a);
    assert_null(fr_mapped_file(at));
    assert_string_equal(fr_mapped_file(b.bytes), second);
    mapping_close(&b);
    assert_null(fr_mapped_file(NULL));
}

/* ---- staging ---- */

static fr_status agree(const char *path, fr_error *err) {
    (void)path, (void)err;
    return FR_OK;
}
static fr_status refuse(const char *path, fr_error *err) {
    return fail(err, FR_EFILE, "%s: not ours", path);
}

static void test_staging_new(void **state) {
    fr_error err;
    staging s;
    const char *target = in_directory(*state, "set");
    OK(staging_open(&s, in_directory(*state, "set//"), false, refuse, &err));
    put_text(in_directory(s.place, "a"), "1");
    assert_false(directory_is(target)); /* until commit */
    OK(staging_commit(&s, &err));
    staging_discard(&s); /* harmless after commit */
    assert_file(in_directory(target, "a"), "1", 1);
    assert_int_equal(directory_entries(*state), 1);
}

static void test_staging_discard(void **state) {
    fr_error err;
    staging s;
    OK(staging_open(&s, in_directory(*state, "set"), false, refuse, &err));
    put_text(in_directory(s.place, "a"), "1");
    assert_int_equal(mkdir(in_directory(s.place, "inner"), 0777), 0);
    put_text(in_directory(s.place, "inner/b"), "2");
    staging_discard(&s);
    staging_discard(&s);
    assert_int_equal(directory_entries(*state), 0);
}

static void test_staging_existing(void **state) {
    fr_error err;
    staging s;
    const char *target = in_directory(*state, "set"), *old = in_directory(*state, "set/old");
    assert_int_equal(mkdir(target, 0777), 0);
    OK(staging_open(&s, target, false, refuse, &err)); /* an empty directory is fine */
    put_text(in_directory(s.place, "old"), "1");
    OK(staging_commit(&s, &err));
    staging_discard(&s);
    assert_file(old, "1", 1);

    FAILS(staging_open(&s, target, false, agree, &err), FR_EFORCE, "set: exists");
    staging_discard(&s);
    FAILS(staging_open(&s, target, true, refuse, &err), FR_EFILE, "set: not ours");
    staging_discard(&s);
    assert_file(old, "1", 1);

    OK(staging_open(&s, target, true, agree, &err));
    put_text(in_directory(s.place, "new"), "2");
    assert_file(old, "1", 1); /* until commit */
    staging_discard(&s);
    assert_file(old, "1", 1);

    OK(staging_open(&s, target, true, agree, &err));
    put_text(in_directory(s.place, "new"), "2");
    OK(staging_commit(&s, &err));
    staging_discard(&s);
    assert_file(in_directory(target, "new"), "2", 1);
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(directory_entries(*state), 1);
}

/* Somebody else fills the place between open and commit: nobody allowed replacing that. */
static void test_staging_race(void **state) {
    fr_error err;
    staging s;
    const char *target = in_directory(*state, "set");
    OK(staging_open(&s, target, true, agree, &err));
    assert_int_equal(mkdir(target, 0777), 0);
    put_text(in_directory(target, "theirs"), "1");
    FAILS(staging_commit(&s, &err), FR_EFILE, "set: cannot be put in place");
    staging_discard(&s);
    assert_file(in_directory(target, "theirs"), "1", 1);
    assert_int_equal(directory_entries(*state), 1);
}

static void test_staging_bad_places(void **state) {
    fr_error err;
    staging s;
    const char *file = in_directory(*state, "file");
    put_text(file, "x");
    FAILS(staging_open(&s, file, true, agree, &err), FR_EFILE, "exists and is not a directory");
    staging_discard(&s);
    FAILS(staging_open(&s, in_directory(*state, "no/set"), true, agree, &err), FR_EFILE,
          "no/set: directory cannot be made: No such file");
    staging_discard(&s);
    assert_int_equal(symlink(*state, in_directory(*state, "link")), 0);
    FAILS(staging_open(&s, in_directory(*state, "link"), true, agree, &err), FR_EFILE,
          "exists and is not a directory");
    staging_discard(&s);
    assert_int_equal(directory_entries(*state), 2);
}

static void test_killed_staging(void **state) {
    fr_error err;
    const char *target = in_directory(*state, "set");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        staging s;
        if (staging_open(&s, target, false, refuse, NULL)) _exit(1);
        put_text(in_directory(s.place, "a"), "1");
        if (mkdir(in_directory(s.place, "inner"), 0777)) _exit(1);
        put_text(in_directory(s.place, "inner/b"), "2");
        (void)raise(SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(directory_entries(*state), 1);
    staging first, second; /* the first removes dead ones, and the two leave each other alone */
    OK(staging_open(&first, target, false, refuse, &err));
    assert_int_equal(directory_entries(*state), 1);
    put_text(in_directory(first.place, "c"), "3");
    OK(staging_open(&second, target, false, refuse, &err));
    OK(staging_commit(&first, &err));
    FAILS(staging_commit(&second, &err), FR_EFILE, "set: cannot be put in place");
    staging_discard(&first);
    staging_discard(&second);
    assert_file(in_directory(target, "c"), "3", 1);
    assert_int_equal(directory_entries(*state), 1);
}

/* Between making and locking it, another process may remove it as a dead one. Then it is made
 * again. */
static void test_temporaries_of_several_processes(void **state) {
    enum { CHILDREN = 4, ROUNDS = 400 };
    const char *target = in_directory(*state, "set");
    pid_t child[CHILDREN];
    for (int c = 0; c < CHILDREN; c++) {
        child[c] = fork();
        assert_true(child[c] >= 0);
        for (int k = 0; child[c] == 0 && k < ROUNDS; k++) {
            temporary t;
            fr_error err;
            if (temporary_make(&t, target, k % 3 ? TEMPORARY_DIRECTORY : TEMPORARY_FILE, 0777,
                               &err))
                (void)fprintf(stderr, "# %s\n", err.message), _exit(1);
            temporary_discard(&t);
        }
        if (child[c] == 0) _exit(0);
    }
    for (int c = 0; c < CHILDREN; c++) {
        int how;
        assert_int_equal(waitpid(child[c], &how, 0), child[c]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    assert_int_equal(directory_entries(*state), 0);
}

static void test_directory_remove_keeps_to_itself(void **state) {
    const char *outside = in_directory(*state, "outside"), *inside = in_directory(*state, "inside");
    assert_int_equal(mkdir(outside, 0777), 0);
    assert_int_equal(mkdir(inside, 0777), 0);
    put_text(in_directory(outside, "precious"), "1");
    assert_int_equal(symlink(outside, in_directory(inside, "link")), 0);
    directory_remove(inside); /* removes the link, not its target */
    directory_remove(inside); /* no error if it is not there */
    assert_false(directory_is(inside));
    assert_file(in_directory(outside, "precious"), "1", 1);
}

static void test_staging_temporary(void **state) {
    fr_error err;
    staging s;
    const char *old = getenv("TMPDIR");
    char *kept = old ? strdup(old) : NULL;
    assert_int_equal(setenv("TMPDIR", *state, 1), 0);
    OK(staging_temporary(&s, &err));
    assert_int_equal(strncmp(s.place, *state, strlen(*state)), 0);
    struct stat facts;
    assert_int_equal(stat(s.place, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    staging_discard(&s);
    assert_int_equal(directory_entries(*state), 0);
    assert_int_equal(setenv("TMPDIR", in_directory(*state, "none"), 1), 0);
    FAILS(staging_temporary(&s, &err), FR_EFILE, "none/fullrank: directory cannot be made");
    staging_discard(&s);
    if (kept)
        (void)setenv("TMPDIR", kept, 1);
    else
        (void)unsetenv("TMPDIR");
    free(kept);
}

static void test_paths(void **state) {
    (void)state;
    assert_string_equal(in_directory("a", "b"), "a/b");
    assert_string_equal(in_directory("a/", "b"), "a/b");
    assert_string_equal(in_directory("/", "b"), "/b");
    assert_string_equal(path_name("a/b/c.csv"), "c.csv");
    assert_string_equal(path_name("c.csv"), "c.csv");
    assert_string_equal(path_name("a/"), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_commit_and_discard),
        WITH_DIRECTORY(test_sizes_around_the_buffer),
        WITH_DIRECTORY(test_killed_writer_leaves_the_old_file),
        WITH_DIRECTORY(test_places_that_cannot_be_written),
        WITH_DIRECTORY(test_full_disk),
        WITH_DIRECTORY(test_live_writers_of_one_file),
        WITH_DIRECTORY(test_other_files_stay),
        WITH_DIRECTORY(test_links_are_not_followed),
        WITH_DIRECTORY(test_modes),
        WITH_DIRECTORY(test_mapping),
        WITH_DIRECTORY(test_mapped_file),
        WITH_DIRECTORY(test_staging_new),
        WITH_DIRECTORY(test_staging_discard),
        WITH_DIRECTORY(test_staging_existing),
        WITH_DIRECTORY(test_staging_race),
        WITH_DIRECTORY(test_staging_bad_places),
        WITH_DIRECTORY(test_killed_staging),
        WITH_DIRECTORY(test_temporaries_of_several_processes),
        WITH_DIRECTORY(test_directory_remove_keeps_to_itself),
        WITH_DIRECTORY(test_staging_temporary),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
