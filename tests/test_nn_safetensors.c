/* test_nn_safetensors.c - checkpoint files: we read back what we write, the Python package reads
 * our files and we read its files, and no invalid header passes the checks. */
#include "nn/safetensors.h"
#include "testing.h"

static const float items[15] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f,
                                2, 2.25f, 2.5f, 2.75f, 3, 3.25f, 3.5f};
static const float slope = -2.5f;
static const int64_t vocabulary[4] = {-3, 999999999997, 1999999999997, 2999999999997};
static const double memory_state[2] = {0.1, -0.2};
static const char note[] = "a \"quoted\" line\nand \xc3\xa4";

/* The file of safetensors_python.py. After slope, everything is at odd multiples of 4. */
static void write_sample(const char *path) {
    fr_error err;
    safetensors_writer w;
    OK(safetensors_writer_open(&w, path, &err));
    OK(safetensors_writer_add(&w, "item.weight", ST_F32, 2, (int64_t[]){5, 3}, items, &err));
    OK(safetensors_writer_metadata(&w, "model", "craft", &err));
    OK(safetensors_writer_add(&w, "none", ST_F32, 2, (int64_t[]){0, 7}, NULL, &err));
    OK(safetensors_writer_add(&w, "vocab.dst", ST_I64, 1, (int64_t[]){4}, vocabulary, &err));
    OK(safetensors_writer_add(&w, "slope", ST_F32, 0, NULL, &slope, &err));
    OK(safetensors_writer_add(&w, "state", ST_F64, 1, (int64_t[]){2}, memory_state, &err));
    OK(safetensors_writer_metadata(&w, "model", "craft-r", &err));
    OK(safetensors_writer_metadata(&w, "note", note, &err));
    OK(safetensors_writer_commit(&w, &err));
    safetensors_writer_discard(&w);
}

static void check_sample(const safetensors *file) {
    fr_error err;
    const void *data;
    assert_int_equal(file->count, 5);
    OK(safetensors_require(file, "item.weight", ST_F32, 2, (int64_t[]){5, 3}, &data, &err));
    assert_memory_equal(data, items, sizeof items);
    OK(safetensors_require(file, "none", ST_F32, 2, (int64_t[]){0, 7}, &data, &err));
    assert_non_null(data);
    OK(safetensors_require(file, "vocab.dst", ST_I64, 1, (int64_t[]){4}, &data, &err));
    assert_int_equal((uintptr_t)data % 8, 0);
    assert_memory_equal(data, vocabulary, sizeof vocabulary);
    OK(safetensors_require(file, "slope", ST_F32, 0, NULL, &data, &err));
    assert_true(*(const float *)data == slope);
    OK(safetensors_require(file, "state", ST_F64, 1, (int64_t[]){2}, &data, &err));
    assert_int_equal((uintptr_t)data % 8, 0);
    assert_memory_equal(data, memory_state, sizeof memory_state);
    assert_string_equal(safetensors_metadata(file, "model"), "craft-r");
    assert_string_equal(safetensors_metadata(file, "note"), note);
    assert_null(safetensors_metadata(file, "missing"));
    assert_null(safetensors_find(file, "__metadata__"));
}

static void test_round_trip(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "x.safetensors");
    write_sample(path);
    assert_int_equal(directory_entries(*state), 1);
    safetensors file;
    OK(safetensors_open(path, &file, &err));
    check_sample(&file);
    static const char *const order[] = {"item.weight", "none", "vocab.dst", "slope", "state"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(file.tensor[i].name, order[i]);
    const unsigned char *start = file.file.bytes;
    assert_ptr_equal(file.tensor[0].data, start + file.file.size - 60 - 32 - 4 - 16);
    assert_int_equal((uintptr_t)file.tensor[0].data % 8, 0); /* the header is padded */
    safetensors_close(&file);
    safetensors_close(&file);

    /* Whatever the length of the header, the data begins at a multiple of 8. */
    for (int n = 1; n <= 16; n++) {
        char name[17] = {0};
        memset(name, 'n', (size_t)n);
        safetensors_writer w;
        OK(safetensors_writer_open(&w, path, &err));
        OK(safetensors_writer_add(&w, name, ST_F64, 1, (int64_t[]){2}, memory_state, &err));
        OK(safetensors_writer_commit(&w, &err));
        OK(safetensors_open(path, &file, &err));
        assert_int_equal((file.file.size - sizeof memory_state) % 8, 0);
        assert_memory_equal(file.tensor[0].data, memory_state, sizeof memory_state);
        safetensors_close(&file);
    }
}

static void test_every_dtype(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "x.safetensors");
    unsigned char bytes[3 * 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 11);
    safetensors_writer w;
    OK(safetensors_writer_open(&w, path, &err));
    for (st_dtype t = 0; t < ST_DTYPES; t++)
        OK(safetensors_writer_add(&w, st_dtype_name(t), t, 1, (int64_t[]){3}, bytes, &err));
    OK(safetensors_writer_commit(&w, &err));
    safetensors file;
    OK(safetensors_open(path, &file, &err));
    for (st_dtype t = 0; t < ST_DTYPES; t++) {
        const void *data;
        OK(safetensors_require(&file, st_dtype_name(t), t, 1, (int64_t[]){3}, &data, &err));
        assert_memory_equal(data, bytes, 3 * st_dtype_size(t));
        if (t != ST_C64) assert_int_equal((uintptr_t)data % st_dtype_size(t), 0);
    }
    safetensors_close(&file);
}

static void test_require_says_what_was_found(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "x.safetensors");
    write_sample(path);
    safetensors file;
    OK(safetensors_open(path, &file, &err));
    const void *data;
    FAILS(safetensors_require(&file, "item", ST_F32, 2, (int64_t[]){5, 3}, &data, &err), FR_EINPUT,
          "x.safetensors: no tensor item, expected one of type F32 (5,3)");
    FAILS(safetensors_require(&file, "item.weight", ST_F32, 2, (int64_t[]){6, 3}, &data, &err),
          FR_EINPUT, "x.safetensors: tensor item.weight is F32 (5,3), expected F32 (6,3)");
    FAILS(safetensors_require(&file, "item.weight", ST_F64, 2, (int64_t[]){5, 3}, &data, &err),
          FR_EINPUT, "is F32 (5,3), expected F64 (5,3)");
    FAILS(safetensors_require(&file, "item.weight", ST_F32, 1, (int64_t[]){15}, &data, &err),
          FR_EINPUT, "is F32 (5,3), expected F32 (15)");
    FAILS(safetensors_require(&file, "slope", ST_F32, 1, (int64_t[]){1}, &data, &err), FR_EINPUT,
          "is F32 (), expected F32 (1)");
    safetensors_close(&file);
    FAILS(safetensors_open(in_directory(*state, "none"), &file, &err), FR_EFILE,
          "none: cannot be read");
    put_text(path, "");
    FAILS(safetensors_open(path, &file, &err), FR_EINPUT, "x.safetensors: 0 bytes, too short");
}

static void test_writer_refuses(void **state) {
    fr_error err;
    safetensors_writer w = {0};
    safetensors_writer_discard(&w);
    OK(safetensors_writer_open(&w, in_directory(*state, "x.safetensors"), &err));
    OK(safetensors_writer_add(&w, "a", ST_F32, 0, NULL, &slope, &err));
    FAILS(safetensors_writer_add(&w, "a", ST_F32, 0, NULL, &slope, &err), FR_EUSAGE,
          "tensor name a is taken");
    FAILS(safetensors_writer_add(&w, "__metadata__", ST_F32, 0, NULL, &slope, &err), FR_EUSAGE,
          "is taken");
    FAILS(safetensors_writer_add(&w, "b", ST_F32, 1, (int64_t[]){-1}, &slope, &err), FR_EUSAGE,
          "tensor b cannot be F32 (-1)");
    FAILS(safetensors_writer_add(&w, "b", ST_F32, 2, (int64_t[]){INT64_MAX, 3}, &slope, &err),
          FR_EUSAGE, "tensor b cannot be");
    FAILS(safetensors_writer_add(&w, "b", ST_F32, 9, (int64_t[9]){0}, &slope, &err), FR_EUSAGE,
          "9 dimensions, expected 0 to 8");
    FAILS(safetensors_writer_add(&w, "\xff\n", ST_F32, 0, NULL, &slope, &err), FR_EUSAGE,
          "is not UTF-8");
    FAILS(safetensors_writer_metadata(&w, "\xff", "x", &err), FR_EUSAGE, "is not UTF-8");
    OK(safetensors_writer_metadata(&w, "x", "\xff", &err));
    safetensors_writer_discard(&w);
    safetensors_writer_discard(&w);
    assert_int_equal(directory_entries(*state), 0);
    FAILS(safetensors_writer_open(&w, in_directory(*state, "none/x"), &err), FR_EFILE,
          "cannot be written");
    safetensors_writer_discard(&w);
}

/* ---- headers by hand ---- */

/* A block of exactly the file's size, so that sanitizers see reads past it. */
static unsigned char *build(const char *header, size_t data, size_t *size) {
    size_t text = strlen(header);
    *size = 8 + text + data;
    unsigned char *bytes = calloc(1, *size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)text >> 8 * i);
    memcpy(bytes + 8, header, text); // NOLINT(bugprone-not-null-terminated-result): a file
    return bytes;
}

#define ENTRY(dtype, shape, from, to)                                                              \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
#define A "\"a\":" ENTRY("F32", "2", "0", "8")

static void test_good_headers(void **state) {
    (void)state;
    fr_error err;
    static const struct {
        const char *header;
        size_t data, tensors;
    } cases[] = {
        {"{}", 0, 0},
        {"{}      ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{" A "}", 8, 1},
        {"{\"b\":" ENTRY("I64", "1", "8", "16") "," A "}", 16, 2},
        {"{" A ",\"b\":" ENTRY("F32", "0", "8", "8") "}", 8, 2},
        {"{" A ",\"b\":" ENTRY("F32", "5,0", "0", "0") "}", 8, 2},
        {"{\"a\":" ENTRY("U8", "3", "0", "3") ",\"b\":" ENTRY("F64", "1", "3", "11") "}", 11, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        unsigned char *bytes = build(cases[i].header, cases[i].data, &size);
        safetensors file;
        OK(safetensors_parse(bytes, size, "x", &file, &err));
        assert_int_equal(file.count, cases[i].tensors);
        for (size_t t = 0; t < file.count; t++)
            assert_int_equal((uintptr_t)file.tensor[t].data % st_dtype_size(file.tensor[t].dtype),
                             0);
        safetensors_close(&file);
        free(bytes);
    }
}

static void test_bad_headers(void **state) {
    (void)state;
    fr_error err;
    static const struct {
        const char *header;
        size_t data;
        const char *expected;
    } cases[] = {
        {"", 0, "does not begin with '{'"},
        {" {}", 0, "does not begin with '{'"},
        {"[]", 0, "does not begin with '{'"},
        {"{", 0, "the safetensors header, column"},
        {"{}{}", 0, "the safetensors header, column"},
        {"{\"\xff\":1}", 0, "the safetensors header, column"},
        {"{" A "," A "}", 8, "duplicate object key"},
        {"{\"a\n\":" ENTRY("F32", "2", "0", "8") "}", 8, "the safetensors header, column"},
        {"{\"a\\n\":" ENTRY("F33", "2", "0", "8") "}", 8, "tensor a?: dtype F33 is not known"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"dim\":64}}", 0, "__metadata__: the value of dim is not a text"},
        {"{\"a\":7}", 0, "tensor a: expected a text dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "tensor a: expected a text dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"strides\":[1]}}", 8,
         "and nothing else"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, "two data_"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "a list shape"},
        {"{\"a\":" ENTRY("F4", "2", "0", "1") "}", 1, "dtype F4 is not known"},
        {"{\"a\":" ENTRY("F32", "1,1,1,1,1,1,1,1,2", "0", "8") "}", 8, "9 dimensions"},
        {"{\"a\":" ENTRY("F32", "-2", "0", "8") "}", 8, "whole numbers from 0 on"},
        {"{\"a\":" ENTRY("F32", "2.0", "0", "8") "}", 8, "whole numbers from 0 on"},
        {"{\"a\":" ENTRY("F32", "null", "0", "8") "}", 8, "whole numbers from 0 on"},
        {"{\"a\":" ENTRY("F32", "99999999999999999999", "0", "8") "}", 8, "too big integer"},
        {"{\"a\":" ENTRY("F32", "4611686018427387904,4", "0", "8") "}", 8, "too large for any"},
        {"{\"a\":" ENTRY("F32", "4294967296,4294967296", "0", "0") "}", 0, "too large for any"},
        {"{\"a\":" ENTRY("F32", "2", "8", "0") "}", 8, "two whole numbers from 0 on, ascending"},
        {"{\"a\":" ENTRY("F32", "2", "-8", "0") "}", 8, "two whole numbers from 0 on, ascending"},
        {"{\"a\":" ENTRY("F32", "3", "0", "8") "}", 8, "8 bytes, expected 12 for F32 (3)"},
        {"{\"a\":" ENTRY("F64", "2", "0", "8") "}", 8, "8 bytes, expected 16 for F64 (2)"},
        {"{" A "}", 7, "tensor a ends at byte 8 of the data, but there are 7"},
        {"{" A "}", 9, "9 bytes of data, but the tensors take 8"},
        {"{}", 1, "1 bytes of data, but the tensors take 0"},
        {"{\"a\":" ENTRY("U8", "9223372036854775807", "0", "9223372036854775807") "}", 8,
         "tensor a ends at byte 9223372036854775807"},
        {"{\"a\":" ENTRY("F32", "2", "4", "12") "}", 12,
         "begins at byte 4 of the data, expected 0"},
        {"{" A ",\"b\":" ENTRY("F32", "2", "12", "20") "}", 20,
         "tensor b begins at byte 12 of the data, expected 8"},
        {"{" A ",\"b\":" ENTRY("F32", "2", "4", "12") "}", 12,
         "tensor b begins at byte 4 of the data, expected 8"},
        {"{" A ",\"b\":" ENTRY("F32", "2", "0", "8") "}", 8, "expected 8 (tensors neither"},
        {"{" A ",\"b\":" ENTRY("F32", "0", "4", "4") "}", 8, "tensor b begins at byte 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        unsigned char *bytes = build(cases[i].header, cases[i].data, &size);
        safetensors file;
        FAILS(safetensors_parse(bytes, size, "x", &file, &err), FR_EINPUT, cases[i].expected);
        assert_int_equal(strncmp(err.message, "x: ", 3), 0);
        free(bytes);
    }
}

static void test_header_limits(void **state) {
    (void)state;
    fr_error err;
    safetensors file;
    size_t size;
    unsigned char *bytes = build("{" A "}", 8, &size);
    for (int i = 1; i < 8; i++) {
        bytes[i] = 255;
        FAILS(safetensors_parse(bytes, size, "x", &file, &err), FR_EINPUT, "does not fit into");
        bytes[i] = 0;
    }
    free(bytes);
    size_t most = (size_t)1 << 24;
    char *header = malloc(most + 2);
    assert_non_null(header);
    memset(header, ' ', most + 1);
    memcpy(header, "{}", 2);
    header[most] = 0;
    bytes = build(header, 0, &size);
    OK(safetensors_parse(bytes, size, "x", &file, &err));
    safetensors_close(&file);
    free(bytes);
    header[most] = ' ';
    header[most + 1] = 0;
    bytes = build(header, 0, &size);
    FAILS(safetensors_parse(bytes, size, "x", &file, &err), FR_EINPUT,
          "x: a header of 16777217 bytes, expected at most 16777216");
    free(bytes);
    memset(header, '[', most); /* nesting is bounded too */
    header[0] = '{';
    header[100000] = 0;
    memcpy(header, "{\"a\":", 5);
    bytes = build(header, 0, &size);
    FAILS(safetensors_parse(bytes, size, "x", &file, &err), FR_EINPUT, "maximum parsing depth");
    free(bytes);
    free(header);
}

/* Any cut and any changed byte of a valid file: an error or tensors that tile the data. */
static void test_cut_and_changed_files(void **state) {
    (void)state;
    fr_error err;
    safetensors file;
    size_t whole;
    unsigned char *bytes = build("{" A ",\"bc\":" ENTRY("I64", "1,2", "8", "24") "}", 24, &whole);
    for (size_t size = 0; size < whole; size++) {
        unsigned char *cut = malloc(size ? size : 1);
        assert_non_null(cut);
        memcpy(cut, bytes, size);
        FAILS(safetensors_parse(cut, size, "x", &file, &err), FR_EINPUT, "x: ");
        free(cut);
    }
    int accepted = 0;
    for (size_t at = 0; at < whole - 24; at++)
        for (int value = 0; value < 256; value++) {
            unsigned char before = bytes[at];
            bytes[at] = (unsigned char)value;
            if (!safetensors_parse(bytes, whole, "x", &file, &err)) {
                size_t total = 0;
                for (size_t t = 0; t < file.count; t++) total += file.tensor[t].bytes;
                assert_int_equal(total, 24);
                safetensors_close(&file);
                accepted++;
            } else {
                assert_int_equal(err.code, FR_EINPUT);
                assert_null(strchr(err.message, '\n'));
            }
            bytes[at] = before;
        }
    assert_true(accepted > 0);
    free(bytes);
}

/* ---- the Python package ---- */

static int run_python(const char *action, const char *directory) {
    const char *python = getenv("FULLRANK_PYTHON");
    char command[4096];
    (void)snprintf(command, sizeof command, "'%s' '%s' %s '%s' %s", python ? python : "",
                   FULLRANK_SOURCE_DIR "/tests/safetensors_python.py", action, directory,
                   strcmp(action, "try") ? "" : ">/dev/null 2>&1");
    return system(command); // NOLINT(cert-env33-c): paths of our own
}

static void test_python_reads_ours(void **state) {
    if (run_python("try", *state)) skip_because("no python3 with the safetensors package");
    write_sample(in_directory(*state, "check.safetensors"));
    assert_int_equal(run_python("check", *state), 0);
}

static void test_we_read_pythons(void **state) {
    if (run_python("try", *state)) skip_because("no python3 with the safetensors package");
    fr_error err;
    assert_int_equal(run_python("write", *state), 0);
    safetensors file;
    OK(safetensors_open(in_directory(*state, "write.safetensors"), &file, &err));
    check_sample(&file);
    safetensors_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_round_trip),
        WITH_DIRECTORY(test_every_dtype),
        WITH_DIRECTORY(test_require_says_what_was_found),
        WITH_DIRECTORY(test_writer_refuses),
        cmocka_unit_test(test_good_headers),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_header_limits),
        cmocka_unit_test(test_cut_and_changed_files),
        WITH_DIRECTORY(test_python_reads_ours),
        WITH_DIRECTORY(test_we_read_pythons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
