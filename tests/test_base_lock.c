/* test_base_lock.c - only one owner at a time; the file of a killed owner does not block others;
 * other files stay. */
#include "base/lock.h"
#include "testing.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool exists(const char *path) {
    struct stat facts;
    return !lstat(path, &facts);
}

static void test_one_owner(void **state) {
    fr_error err;
    char *path = in_directory(*state, "lock");
    lock first, second;
    OK(lock_take(&first, path, false, "run", &err));
    FAILS(lock_take(&second, path, false, "run", &err), FR_EFILE,
          "run: another process is writing to it");
    lock_release(&second);
    assert_true(exists(path)); /* the second one must not remove it */
    lock_release(&first);
    assert_false(exists(path));
    lock_release(&first);
    OK(lock_take(&second, path, true, "run", &err));
    lock_release(&second);
}

static void test_killed_owner(void **state) {
    fr_error err;
    char *path = in_directory(*state, "lock");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        lock l;
        char done = (char)lock_take(&l, path, false, "run", NULL);
        if (write(ready[1], &done, 1) == 1) (void)pause();
        _exit(0);
    }
    char done = 1;
    assert_int_equal(read(ready[0], &done, 1), 1);
    assert_int_equal(done, 0);
    lock l;
    FAILS(lock_take(&l, path, false, "run", &err), FR_EFILE, "another process");
    lock_release(&l);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(exists(path));
    OK(lock_take(&l, path, false, "run", &err));
    lock_release(&l);
    assert_false(exists(path));
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void test_files_of_others(void **state) {
    fr_error err;
    char *path = in_directory(*state, "lock"), *link = in_directory(*state, "link");
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("precious", file) >= 0 && !fclose(file));
    lock l;
    OK(lock_take(&l, path, false, "run", &err));
    lock_release(&l);
    assert_true(exists(path));
    assert_int_equal(symlink(path, link), 0);
    FAILS(lock_take(&l, link, false, "run", &err), FR_EFILE, "run: cannot be locked");
    lock_release(&l);
    assert_true(exists(link));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_one_owner),
        WITH_DIRECTORY(test_killed_owner),
        WITH_DIRECTORY(test_files_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
