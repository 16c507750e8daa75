/* test_base_os.c - differences between systems: the version for this system and the one for any
 * POSIX system, which is compiled here a second time under other names. */
#include "base/os.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct ways {
    int (*cores)(void);
    void (*write_back)(int fd, int64_t from, int64_t count);
    int (*exchange)(int folder, const char *one, const char *other, const char *spare);
    int (*lock)(int fd, int64_t at, bool shared);
    int (*unlock)(int fd, int64_t at);
    bool (*locked)(int fd, int64_t at);
    void (*sort)(void *elements, size_t count, size_t size,
                 int (*compare)(const void *a, const void *b, void *user), void *user);
    int64_t (*peak)(void);
    void (*forget_peak)(void);
    int (*random)(void *bytes, size_t count);
    int64_t (*modified)(const struct stat *facts);
    void (*each_entry)(int folder, void (*each)(int folder, const char *name));
    int (*thread)(pthread_t *out, void *(*run)(void *), void *job);
} ways;

#define WAYS                                                                                       \
    {                                                                                              \
        os_cores, os_write_back, os_exchange, os_lock, os_unlock, os_locked, os_sort,              \
            os_peak_memory, os_forget_peak, os_random, os_modified, os_each_entry, os_thread       \
    }

static const ways usual = WAYS;

#define os_check_shared_object plain_check_shared_object
#define os_cores               plain_cores
#define os_thread              plain_thread
#define os_write_back          plain_write_back
#define os_exchange            plain_exchange
#define os_lock                plain_lock
#define os_unlock              plain_unlock
#define os_locked              plain_locked
#define os_sort                plain_sort
#define os_peak_memory         plain_peak_memory
#define os_forget_peak         plain_forget_peak
#define os_random              plain_random
#define os_modified            plain_modified
#define os_each_entry          plain_each_entry
#define os_open_unlisted       plain_open_unlisted
#undef FR_BASE_OS_H
#undef _GNU_SOURCE
#define FULLRANK_PLAIN_POSIX
#include "base/os.c"

static const ways plain = WAYS;
static const ways *const both[] = {&usual, &plain};

static void test_facts(void **state) {
    for (int k = 0; k < 2; k++) {
        const ways *w = both[k];
        assert_in_range(w->cores(), 1, 1 << 20);
        w->forget_peak();
        assert_in_range(w->peak(), 100 << 10, (int64_t)1 << 40);
        unsigned char a[32] = {0}, b[32] = {0};
        assert_int_equal(w->random(a, sizeof a) | w->random(b, sizeof b), 0);
        assert_memory_not_equal(a, b, sizeof a);
        struct stat facts;
        char *path = in_directory(*state, "written");
        int fd = open(path, O_CREAT | O_RDWR, 0666);
        assert_int_equal(write(fd, "x", 1), 1);
        w->write_back(fd, 0, 1);
        assert_int_equal(fstat(fd, &facts), 0);
        assert_in_range(w->modified(&facts) / 1000000000, 1500000000, 10000000000);
        assert_int_equal(close(fd), 0);
    }
}

static void put(const char *directory, const char *name, const char *text) {
    FILE *file = fopen(in_directory(directory, name), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_holds(const char *directory, const char *name, const char *text) {
    char found[16] = {0};
    FILE *file = fopen(in_directory(directory, name), "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(found, text);
}

static void test_exchange(void **state) {
    int folder = open(*state, O_RDONLY | O_DIRECTORY);
    for (int k = 0; k < 2; k++) {
        put(*state, "one", "first");
        put(*state, "other", "second");
        assert_int_equal(both[k]->exchange(folder, "one", "other", "spare"), 0);
        assert_holds(*state, "one", "second");
        assert_holds(*state, "other", "first");
        assert_int_equal(faccessat(folder, "spare", F_OK, 0), -1);
        /* without one of the two nothing changes */
        assert_int_equal(both[k]->exchange(folder, "none", "other", "spare"), -1);
        assert_int_equal(errno, ENOENT);
        assert_int_equal(both[k]->exchange(folder, "one", "none", "spare"), -1);
        assert_int_equal(errno, ENOENT);
        assert_holds(*state, "one", "second");
        assert_holds(*state, "other", "first");
    }
    assert_int_equal(close(folder), 0);
}

static void remove_it(int folder, const char *name) {
    assert_int_equal(unlinkat(folder, name, 0), 0);
}

/* More entries than are read at once, each removed as it comes. */
static void test_entries(void **state) {
    for (int k = 0; k < 2; k++) {
        int folder = open(*state, O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < 300; i++) {
            char name[64];
            (void)snprintf(name, sizeof name, "entry-with-a-long-name-%d", i);
            put(*state, name, "");
        }
        both[k]->each_entry(folder, remove_it);
        assert_int_equal(directory_entries(*state), 0);
        assert_int_equal(close(folder), 0);
    }
}

/* What another process sees, as bits: byte 3 is locked, it can share byte 3, lock it alone, and
 * lock byte 4. */
static int seen_elsewhere(const ways *w, const char *path) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        int fd = open(path, O_RDWR);
        _exit(w->locked(fd, 3) | !w->lock(fd, 3, true) << 1 | !w->lock(fd, 3, false) << 2 |
              !w->lock(fd, 4, false) << 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void test_locks(void **state) {
    char *path = in_directory(*state, "locks");
    put(*state, "locks", "");
    for (int k = 0; k < 2; k++) {
        const ways *w = both[k];
        int fd = open(path, O_RDWR);
        assert_int_equal(seen_elsewhere(w, path), 2 + 4 + 8);
        assert_int_equal(w->lock(fd, 3, false), 0);
        assert_int_equal(seen_elsewhere(w, path), 1 + 8);
        assert_int_equal(w->lock(fd, 3, true), 0);
        assert_int_equal(seen_elsewhere(w, path), 2 + 8);
        assert_int_equal(w->unlock(fd, 3), 0);
        assert_int_equal(seen_elsewhere(w, path), 2 + 4 + 8);
        assert_int_equal(w->lock(fd, 3, false), 0);
        assert_int_equal(close(fd), 0); /* closing releases it */
        assert_int_equal(seen_elsewhere(w, path), 2 + 4 + 8);
    }
}

static int by_value(const void *a, const void *b, void *user) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    ++*(int *)user;
    return (x > y) - (x < y);
}

static void test_sort(void **state) {
    (void)state;
    enum { MOST = 300 };
    for (int k = 0; k < 2; k++)
        for (int n = 0; n <= MOST; n++)
            for (int pattern = 0; pattern < 4; pattern++) {
                int64_t x[MOST + 1], sum = 0, expected = 0;
                int asked = 0;
                for (int i = 0; i < n; i++) {
                    x[i] = pattern == 0   ? i
                           : pattern == 1 ? -i
                                          : (i * 7919) % (pattern == 2 ? 997 : 5);
                    expected += x[i] * x[i] + x[i];
                }
                x[n] = -7;
                both[k]->sort(x, (size_t)n, sizeof *x, by_value, &asked);
                for (int i = 0; i < n; i++) {
                    assert_true(!i || x[i - 1] <= x[i]);
                    sum += x[i] * x[i] + x[i];
                }
                assert_true(sum == expected && x[n] == -7 && (n < 2 || asked > 0));
            }
}

static void *use_much_stack(void *sum) {
    volatile char bytes[3 << 19]; /* 1.5 MB, each page of it */
    for (size_t i = 0; i < sizeof bytes; i += 512) bytes[i] = 1;
    for (size_t i = 0; i < sizeof bytes; i += 512) *(size_t *)sum += (size_t)bytes[i];
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        pthread_t thread;
        size_t sum = 0;
        assert_int_equal(both[k]->thread(&thread, use_much_stack, &sum), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(sum, 3072);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_facts),  WITH_DIRECTORY(test_exchange),
                                       WITH_DIRECTORY(test_locks),  WITH_DIRECTORY(test_entries),
                                       cmocka_unit_test(test_sort), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
