/* test_data_stream.c - changed sets are refused: what opening checks, what the full check finds,
 * and that an open window is safe from later changes of its columns. */
#include "testing.h"

#include "data/columns.h"
#include "data/stream.h"

#include <fcntl.h>
#include <sys/stat.h>

/* `rows` events of 50 sources and 40 destinations, made as import makes them. */
static const char *make_set(const char *folder, int64_t rows) {
    enum { BLOCK = 4096 };
    fr_error err;
    columns c;
    const char *path = in_directory(folder, "set");
    int64_t source[BLOCK], destination[BLOCK];
    double time[BLOCK];
    OK(columns_open(&c, path, false, 0, false, &err));
    for (int64_t row = 0; row < rows; row += BLOCK) {
        int64_t n = rows - row < BLOCK ? rows - row : BLOCK;
        for (int64_t k = 0; k < n; k++) {
            source[k] = (row + k) % 50 * 2;
            destination[k] = (row + k) * 7 % 40 + 3;
            time[k] = (double)(row + k) / 2;
        }
        OK(columns_put(&c, n, source, destination, time, NULL, NULL, &err));
    }
    columns_finish finish = {.origin = json_pack("{s:s}", "name", "made")};
    OK(columns_close(&c, finish, NULL, &err));
    columns_discard(&c);
    return path;
}

/* Writes bytes into a column, which keeps its time if asked to. */
static void change(const char *path, off_t at, const void *bytes, size_t size, bool same_time) {
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(chmod(path, 0644), 0);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, at), (ssize_t)size);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, facts.st_mtim};
    if (same_time) assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

/* Below 64 MiB contents are compared on opening, even if the times agree. */
static void test_small_sets_are_hashed(void **state) {
    fr_error err;
    fr_stream *s;
    const char *set = make_set(*state, 1000);
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    assert_string_equal(fr_stream_get(s).checked, "full");
    OK(fr_stream_verify(s, NULL, &err));
    fr_stream_close(s);
    change(in_directory(set, "time.npy"), 200, "x", 1, true);
    FAILS(fr_stream_open(set, NULL, NULL, &s, &err), FR_EINPUT, "set/time.npy: sha256 ");
    assert_non_null(strstr(err.message, "import the data again"));
    assert_null(s);
}

static void test_large_sets_are_compared_by_size_and_time(void **state) {
    fr_error err;
    fr_stream *s;
    fr_data_file file[FR_DATA_FILES];
    int count;
    const char *set = make_set(*state, (1 << 22) + 1000); /* 16 bytes each */
    const char *column = in_directory(set, "destination.npy");
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    assert_string_equal(fr_stream_get(s).checked, "size-and-time");
    OK(fr_stream_verify(s, NULL, &err));
    assert_string_equal(fr_stream_get(s).checked, "full");
    fr_stream_close(s);

    int32_t one = 1;
    change(column, 128, &one, sizeof one, true); /* it was 0; only a full check can notice */
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    assert_string_equal(fr_stream_get(s).checked, "size-and-time");
    FAILS(fr_stream_verify(s, NULL, &err), FR_EINPUT, "set/destination.npy: sha256 ");
    assert_string_equal(fr_stream_get(s).checked, "size-and-time");
    fr_stream_close(s);
    FAILS(fr_data_verify(set, NULL, file, &count, &err), FR_EINPUT, "set/destination.npy: sha256 ");
    assert_int_equal(count, 5);
    for (int k = 0; k < count; k++)
        assert_int_equal(file[k].same, strcmp(file[k].name, "destination.npy") != 0);

    change(column, 128, &one, sizeof one, false); /* another time: hashed, and noticed */
    FAILS(fr_stream_open(set, NULL, NULL, &s, &err), FR_EINPUT, "set/destination.npy: sha256 ");
    int32_t zero = 0;
    change(column, 128, &zero, sizeof zero, false); /* as imported, with another time */
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    assert_string_equal(fr_stream_get(s).checked, "full");
    fr_stream_close(s);
}

static void test_ids_are_checked(void **state) {
    static const struct {
        int64_t id;
        const char *said;
    } bad[] = {{-1, "id -1 is negative"},
               {8, "id 8 after 8, expected ascending ids"},
               {INT64_MAX, "id 12 after 9223372036854775807"}};
    fr_error err;
    fr_stream *s;
    const char *set = make_set(*state, 1000);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        change(in_directory(set, "source_ids.npy"), 128 + 8 * 5, &bad[k].id, 8, true);
        FAILS(fr_stream_open(set, NULL, NULL, &s, &err), FR_EINPUT, bad[k].said);
    }
}

/* Columns that are removed or changed while a window is open change nothing. */
static void test_window_is_safe(void **state) {
    static const char *const names[] = {"source.npy", "destination.npy", "source_ids.npy",
                                        "destination_ids.npy"};
    fr_error err;
    fr_stream *s;
    fr_window *w;
    fr_scorer *scorer;
    fr_ranking *ranking[2];
    fr_protocol protocol;
    fr_rank_settings settings;
    const char *set = make_set(*state, 2000);
    OK(fr_options_defaults(fr_protocol_options, &protocol, &err));
    OK(fr_options_defaults(fr_rank_options, &settings, &err));
    protocol.window = 0; /* all of it: the very columns, if they were not copied */
    OK(fr_stream_open(set, NULL, NULL, &s, &err));
    OK(fr_window_open(s, &protocol, NULL, &w, &err));
    for (int k = 0; k < 2; k++) {
        OK(fr_scorer_open("baseline:recency", w, 1, NULL, &scorer, &err));
        OK(fr_rank_run(scorer, &settings, NULL, &ranking[k], &err));
        fr_scorer_close(scorer);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) /* after the first round */
            assert_int_equal(truncate(in_directory(set, names[i]), 0), 0);
    }
    fr_ranking_facts a = fr_ranking_get(ranking[0]), b = fr_ranking_get(ranking[1]);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.records, b.records, (size_t)a.count * sizeof *a.records);
    fr_ranking_close(ranking[0]);
    fr_ranking_close(ranking[1]);
    fr_window_close(w);
    fr_stream_close(s);
    fr_options_free(fr_protocol_options, &protocol);
    fr_options_free(fr_rank_options, &settings);
}

static void test_columns_are_read_only(void **state) {
    struct stat facts;
    mode_t before = umask(022);
    const char *set = make_set(*state, 10);
    (void)umask(before);
    assert_int_equal(stat(in_directory(set, "time.npy"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0444);
    assert_int_equal(stat(in_directory(set, "manifest.json"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0644);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_small_sets_are_hashed),
        WITH_DIRECTORY(test_large_sets_are_compared_by_size_and_time),
        WITH_DIRECTORY(test_ids_are_checked),
        WITH_DIRECTORY(test_window_is_safe),
        WITH_DIRECTORY(test_columns_are_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
