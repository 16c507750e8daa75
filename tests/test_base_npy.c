/* test_base_npy.c - .npy files: we read back what we write, NumPy reads our files and we read
 * NumPy's, and no invalid header passes the checks. */
#include "base/npy.h"
#include "testing.h"

/* ---- our own files ---- */

static void test_plain_round_trip(void **state) {
    fr_error err;
    static const struct {
        char kind;
        int size;
    } types[] = {{'i', 1}, {'i', 2}, {'i', 4}, {'i', 8}, {'u', 1}, {'u', 2},
                 {'u', 4}, {'u', 8}, {'f', 2}, {'f', 4}, {'f', 8}, {'b', 1}};
    static const int64_t widths[] = {0, 1, 3};
    unsigned char bytes[24 * 100];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7);
    const char *path = in_directory(*state, "x.npy");
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int w = 0; w < 3; w++)
            for (int64_t rows = 0; rows <= 100; rows += 50) {
                npy_writer out;
                OK(npy_writer_open(&out, path, types[t].kind, types[t].size, widths[w], &err));
                OK(npy_writer_put(&out, bytes, rows / 2, &err)); /* in two parts */
                OK(npy_writer_put(&out, bytes + (size_t)(rows / 2) * out.row, rows - rows / 2,
                                  &err));
                size_t size = (size_t)rows * out.row;
                OK(npy_writer_commit(&out, &err));
                npy in;
                OK(npy_open_as(path, types[t].kind, types[t].size, w ? 2 : 1, &in, &err));
                assert_int_equal(in.shape[0], rows);
                if (w) assert_int_equal(in.shape[1], widths[w]);
                assert_int_equal(in.item, types[t].size);
                assert_int_equal((uintptr_t)in.data % 64, 0);
                assert_memory_equal(in.data, bytes, size);
                npy_close(&in);
                npy_close(&in);
            }
    assert_int_equal(directory_entries(*state), 1);
}

static void test_struct_round_trip(void **state) {
    fr_error err;
    const npy_field fields[] = {{"event", 'i', 8, 0}, {"covered", 'u', 1, 0}, {"score", 'f', 4, 0}};
    const char *path = in_directory(*state, "x.npy");
    unsigned char rows[13 * 5];
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (unsigned char)(200 - i);
    npy_writer out;
    OK(npy_writer_open_struct(&out, path, fields, 3, &err));
    OK(npy_writer_put(&out, rows, 5, &err));
    OK(npy_writer_commit(&out, &err));
    npy in;
    OK(npy_open(path, &in, &err));
    assert_int_equal(in.dims, 1);
    assert_int_equal(in.shape[0], 5);
    assert_int_equal(in.item, 13);
    assert_int_equal(in.fields, 3);
    static const size_t offsets[] = {0, 8, 9};
    for (int f = 0; f < 3; f++) {
        assert_string_equal(in.field[f].name, fields[f].name);
        assert_int_equal(in.field[f].kind, fields[f].kind);
        assert_int_equal(in.field[f].size, fields[f].size);
        assert_int_equal(in.field[f].offset, offsets[f]);
    }
    assert_memory_equal(in.data, rows, sizeof rows);
    npy_close(&in);
}

static void test_most_fields(void **state) {
    fr_error err;
    npy_field fields[NPY_MAX_FIELDS] = {0};
    for (int f = 0; f < NPY_MAX_FIELDS; f++) {
        memset(fields[f].name, 'n', NPY_NAME - 1);
        fields[f].name[0] = (char)('0' + f / 10);
        fields[f].name[1] = (char)('0' + f % 10);
        fields[f].kind = 'f';
        fields[f].size = 8;
    }
    const char *path = in_directory(*state, "x.npy");
    npy_writer out;
    OK(npy_writer_open_struct(&out, path, fields, NPY_MAX_FIELDS, &err));
    OK(npy_writer_commit(&out, &err));
    npy in;
    OK(npy_open(path, &in, &err));
    assert_int_equal(in.fields, NPY_MAX_FIELDS);
    assert_string_equal(in.field[63].name, fields[63].name);
    assert_int_equal(in.shape[0], 0);
    npy_close(&in);
}

static void test_discard(void **state) {
    fr_error err;
    npy_writer out;
    OK(npy_writer_open(&out, in_directory(*state, "x.npy"), 'f', 4, 0, &err));
    OK(npy_writer_put(&out, (float[]){1, 2}, 2, &err));
    npy_writer_discard(&out);
    npy_writer_discard(&out);
    assert_int_equal(directory_entries(*state), 0);
}

static void test_open_as_says_what_was_found(void **state) {
    fr_error err;
    const char *path = in_directory(*state, "x.npy");
    npy in;
    npy_writer out;
    OK(npy_writer_open(&out, path, 'f', 4, 0, &err));
    OK(npy_writer_commit(&out, &err));
    FAILS(npy_open_as(path, 'i', 8, 1, &in, &err), FR_EINPUT,
          "x.npy: a 1-dimensional array of f4, expected 1-dimensional i8");
    FAILS(npy_open_as(path, 'f', 4, 2, &in, &err), FR_EINPUT, "expected 2-dimensional f4");
    OK(npy_writer_open_struct(&out, path, &(npy_field){"x", 'i', 8, 0}, 1, &err));
    OK(npy_writer_commit(&out, &err));
    FAILS(npy_open_as(path, 'i', 8, 1, &in, &err), FR_EINPUT, "a structured array, expected i8");
    FAILS(npy_open(in_directory(*state, "none"), &in, &err), FR_EFILE, "none: cannot be read");
    put_text(path, "");
    FAILS(npy_open(path, &in, &err), FR_EINPUT, "x.npy: not a .npy file");
}

/* ---- headers by hand ---- */

typedef struct blob {
    unsigned char *bytes; /* a block of exactly `size`, so that sanitizers see reads past it */
    size_t size;
} blob;

/* A file with this header, padded to 64 bytes, and `data` zero bytes. */
static blob build(int version, const char *header, size_t data) {
    size_t start = version == 1 ? 10 : 12, text = strlen(header);
    size_t total = (start + text + 1 + 63) / 64 * 64, length = total - start;
    blob b = {calloc(1, total + data), total + data};
    assert_non_null(b.bytes);
    memset(b.bytes, ' ', total);
    memcpy(b.bytes, "\x93NUMPY", 6);
    b.bytes[6] = (unsigned char)version;
    b.bytes[7] = 0;
    for (size_t i = 8; i < start; i++) b.bytes[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(b.bytes + start, header, text);
    b.bytes[total - 1] = '\n';
    return b;
}

#define HEADER(descr, order, shape)                                                                \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void test_good_headers(void **state) {
    (void)state;
    fr_error err;
    static const struct {
        const char *header;
        size_t data;
        int dims;
        int64_t count;
    } cases[] = {
        {HEADER("'<f4'", "False", "(3,)"), 12, 1, 3},
        {HEADER("'<f4'", "False", "(3, 2)"), 24, 2, 6},
        {HEADER("'<f4'", "False", "()"), 4, 0, 1},
        {HEADER("'<f4'", "False", "(0,)"), 0, 1, 0},
        {HEADER("'<f4'", "False", "(0, 9999999999)"), 0, 2, 0},
        {HEADER("'|u1'", "False", "(1, 2, 3, 4)"), 24, 4, 24},
        {HEADER("'<f4'", "True", "(3,)"), 12, 1, 3}, /* one dimension has no order */
        {HEADER("[('a', '<i2'), ('b', '|b1')]", "False", "(2,)"), 6, 1, 2},
        {"{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<i8\"}", 24, 1, 3},
    };
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            blob b = build(version, cases[i].header, cases[i].data);
            npy n;
            OK(npy_parse(b.bytes, b.size, "x.npy", &n, &err));
            assert_int_equal(n.dims, cases[i].dims);
            int64_t count = 1;
            for (int d = 0; d < n.dims; d++) count *= n.shape[d];
            assert_int_equal(count, cases[i].count);
            assert_ptr_equal(n.data, b.bytes + b.size - cases[i].data);
            free(b.bytes);
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
        {HEADER("'>f4'", "False", "(3,)"), 12, "element type >f4, expected little-endian"},
        {HEADER("'|f4'", "False", "(3,)"), 12, "element type |f4"},
        {HEADER("'=f4'", "False", "(3,)"), 12, "element type =f4"},
        {HEADER("'<c8'", "False", "(3,)"), 24, "element type <c8"},
        {HEADER("'|O'", "False", "(3,)"), 24, "element type |O"},
        {HEADER("'<U2'", "False", "(3,)"), 24, "element type <U2"},
        {HEADER("'<M8[s]'", "False", "(3,)"), 24, "element type <M8[s]"},
        {HEADER("'<f16'", "False", "(3,)"), 48, "element type <f16"},
        {HEADER("'<f0'", "False", "(3,)"), 0, "element type <f0"},
        {HEADER("'<f3'", "False", "(3,)"), 9, "element type <f3"},
        {HEADER("'|f1'", "False", "(3,)"), 3, "element type |f1"},
        {HEADER("'<b2'", "False", "(3,)"), 6, "element type <b2"},
        {HEADER("''", "False", "(3,)"), 12, "element type"},
        {HEADER("3", "False", "(3,)"), 12, "element type"},
        {HEADER("[]", "False", "(3,)"), 12, "element type"},
        {HEADER("[('a', '<f4', (2,))]", "False", "(3,)"), 24, "element type"},
        {HEADER("[('a', '<f4'), ('', '|V4')]", "False", "(3,)"), 24, "element type |V4"},
        {HEADER("[('a', [('b', '<f4')])]", "False", "(3,)"), 12, "element type"},
        {HEADER("[('a name of more than thirty-one characters', '<f4')]", "False", "(3,)"), 12,
         "element type"},
        {HEADER("[('a', '<f4'", "False", "(3,)"), 12, "element type"},
        {HEADER("'<f4'", "True", "(3, 1)"), 12, "Fortran order, expected C order"},
        {HEADER("'<f4'", "Maybe", "(3,)"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "3"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(-3,)"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(3.0,)"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(1, 1, 1, 1, 3)"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(99999999999999999999,)"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(3,"), 12, "header cannot be understood"},
        {HEADER("'<f4'", "False", "(4294967296, 4294967296)"), 0, "shape is too large"},
        {HEADER("'<f8'", "False", "(576460752303423488, 4)"), 0, "bytes of elements"},
        {HEADER("'<f4'", "False", "(3,)"), 11, "11 bytes of elements, expected 12"},
        {HEADER("'<f4'", "False", "(3,)"), 16, "16 bytes of elements, expected 12"},
        {HEADER("'<f4'", "False", "(0,)"), 1, "1 bytes of elements, expected 0"},
        {"", 12, "header cannot be understood"},
        {"{}", 12, "header cannot be understood"},
        {"{'descr': '<f4', 'shape': (3,), }", 12, "header cannot be understood"},
        {"{'descr': '<f4', 'fortran_order': False, }", 12, "header cannot be understood"},
        {"{'fortran_order': False, 'shape': (3,), }", 12, "header cannot be understood"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12,
         "header cannot be understood"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1, }", 12,
         "header cannot be understood"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", 12,
         "header cannot be understood"},
        {"{'descr': '<f\\x34', 'fortran_order': False, 'shape': (3,), }", 12, "element type"},
    };
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            blob b = build(version, cases[i].header, cases[i].data);
            npy n;
            FAILS(npy_parse(b.bytes, b.size, "x.npy", &n, &err), FR_EINPUT, cases[i].expected);
            assert_int_equal(strncmp(err.message, "x.npy: ", 7), 0);
            free(b.bytes);
        }
}

static void test_bad_frames(void **state) {
    (void)state;
    fr_error err;
    npy n;
    for (int version = 0; version < 256; version++) {
        blob b = build(1, HEADER("'<f4'", "False", "(3,)"), 12);
        b.bytes[6] = (unsigned char)version;
        if (version == 0 || version > 3)
            FAILS(npy_parse(b.bytes, b.size, "x.npy", &n, &err), FR_EINPUT, "expected 1 to 3");
        free(b.bytes);
    }
    static const unsigned char lengths[][4] = {
        {255, 255, 0, 0}, {0, 0, 1, 0}, {255, 255, 255, 255}};
    for (int i = 0; i < 3; i++) {
        blob b = build(2, HEADER("'<f4'", "False", "(3,)"), 12);
        memcpy(b.bytes + 8, lengths[i], 4);
        FAILS(npy_parse(b.bytes, b.size, "x.npy", &n, &err), FR_EINPUT, "header is cut off");
        free(b.bytes);
    }
}

/* Elements of a plain array may be read in place, so they must be aligned. NumPy aligns them. */
static void test_misaligned_elements(void **state) {
    (void)state;
    fr_error err;
    static const char header[] = "\x93NUMPY\x01\0\x3a\0"
                                 "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } ";
    unsigned char *bytes = malloc(68 + 8);
    assert_non_null(bytes);
    memcpy(bytes, header, 68);
    memset(bytes + 68, 0, 8);
    npy n;
    FAILS(npy_parse(bytes, 76, "x.npy", &n, &err), FR_EINPUT, "x.npy: elements begin at byte 68");
    free(bytes);
}

/* Any cut and any changed byte of a valid file: an error or an array inside the file. */
static void test_cut_and_changed_files(void **state) {
    (void)state;
    fr_error err;
    blob whole = build(1, HEADER("[('a', '<i2'), ('b', '|b1')]", "False", "(2, 1)"), 6);
    for (size_t size = 0; size < whole.size; size++) {
        unsigned char *bytes = malloc(size ? size : 1);
        assert_non_null(bytes);
        memcpy(bytes, whole.bytes, size);
        npy n;
        FAILS(npy_parse(bytes, size, "x.npy", &n, &err), FR_EINPUT, "x.npy: ");
        free(bytes);
    }
    int accepted = 0;
    for (size_t at = 0; at < whole.size; at++)
        for (int value = 0; value < 256; value++) {
            unsigned char before = whole.bytes[at];
            whole.bytes[at] = (unsigned char)value;
            npy n;
            if (!npy_parse(whole.bytes, whole.size, "x.npy", &n, &err)) {
                size_t count = 1;
                for (int d = 0; d < n.dims; d++) count *= (size_t)n.shape[d];
                assert_ptr_equal((const unsigned char *)n.data + count * n.item,
                                 whole.bytes + whole.size);
                accepted++;
            } else {
                assert_int_equal(err.code, FR_EINPUT);
            }
            whole.bytes[at] = before;
        }
    assert_true(accepted > 0);
    free(whole.bytes);
}

/* ---- NumPy ---- */

static void run_numpy(const char *action, const char *directory) {
    const char *python = getenv("FULLRANK_PYTHON");
    if (!python || !*python) skip_because("no python3 with NumPy");
    char command[4096];
    (void)snprintf(command, sizeof command, "'%s' '%s' %s '%s'", python,
                   FULLRANK_SOURCE_DIR "/tests/npy_numpy.py", action, directory);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): paths of our own
}

static void test_numpy_reads_ours(void **state) {
    fr_error err;
    npy_writer out;
    OK(npy_writer_open(&out, in_directory(*state, "i8.npy"), 'i', 8, 0, &err));
    for (int64_t i = 0; i < 1000; i++) OK(npy_writer_put(&out, (int64_t[]){i * i - 5}, 1, &err));
    OK(npy_writer_commit(&out, &err));
    OK(npy_writer_open(&out, in_directory(*state, "f4.npy"), 'f', 4, 3, &err));
    OK(npy_writer_put(&out, (float[]){0.5f, -1, 2, 3, 4, 5.25f}, 2, &err));
    OK(npy_writer_commit(&out, &err));
    OK(npy_writer_open(&out, in_directory(*state, "b1.npy"), 'b', 1, 0, &err));
    OK(npy_writer_put(&out, (bool[]){true, false, true}, 3, &err));
    OK(npy_writer_commit(&out, &err));
    OK(npy_writer_open(&out, in_directory(*state, "empty.npy"), 'f', 8, 4, &err));
    OK(npy_writer_commit(&out, &err));
    const npy_field fields[] = {{"event", 'i', 8, 0}, {"covered", 'u', 1, 0}, {"gap", 'f', 8, 0}};
    OK(npy_writer_open_struct(&out, in_directory(*state, "struct.npy"), fields, 3, &err));
    for (int64_t i = 0; i < 3; i++) {
        unsigned char row[17];
        double gap = (double)i / 4;
        memcpy(row, &i, 8);
        row[8] = (unsigned char)(i + 1);
        memcpy(row + 9, &gap, 8);
        OK(npy_writer_put(&out, row, 1, &err));
    }
    OK(npy_writer_commit(&out, &err));
    run_numpy("check", *state);
}

static void test_we_read_numpys(void **state) {
    fr_error err;
    run_numpy("write", *state);
    npy n;
    OK(npy_open_as(in_directory(*state, "i8.npy"), 'i', 8, 1, &n, &err));
    assert_int_equal(n.shape[0], 100);
    for (int64_t i = 0; i < 100; i++) assert_int_equal(((const int64_t *)n.data)[i], i * i - 5);
    npy_close(&n);
    static const char *const same[] = {"f4.npy", "f4_v2.npy", "f4_v3.npy"};
    for (int i = 0; i < 3; i++) {
        OK(npy_open_as(in_directory(*state, same[i]), 'f', 4, 2, &n, &err));
        assert_int_equal(n.shape[0], 2);
        assert_int_equal(n.shape[1], 3);
        assert_memory_equal(n.data, ((float[]){0.5f, -1, 2, 3, 4, 5.25f}), 24);
        npy_close(&n);
    }
    OK(npy_open_as(in_directory(*state, "b1.npy"), 'b', 1, 1, &n, &err));
    assert_memory_equal(n.data, "\1\0\1", 3);
    npy_close(&n);
    OK(npy_open_as(in_directory(*state, "scalar.npy"), 'f', 8, 0, &n, &err));
    assert_true(*(const double *)n.data == 2.5);
    npy_close(&n);
    OK(npy_open(in_directory(*state, "struct.npy"), &n, &err));
    assert_int_equal(n.fields, 3);
    assert_string_equal(n.field[2].name, "gap");
    assert_int_equal(n.field[2].offset, 9);
    double gap;
    memcpy(&gap, (const char *)n.data + 2 * n.item + n.field[2].offset, 8);
    assert_true(gap == 0.5);
    npy_close(&n);
    static const char *const refused[] = {"big.npy",     "object.npy",  "text.npy",   "complex.npy",
                                          "aligned.npy", "fortran.npy", "archive.npz"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        FAILS(npy_open(in_directory(*state, refused[i]), &n, &err), FR_EINPUT, refused[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_plain_round_trip),
        WITH_DIRECTORY(test_struct_round_trip),
        WITH_DIRECTORY(test_most_fields),
        WITH_DIRECTORY(test_discard),
        WITH_DIRECTORY(test_open_as_says_what_was_found),
        cmocka_unit_test(test_good_headers),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_bad_frames),
        cmocka_unit_test(test_misaligned_elements),
        cmocka_unit_test(test_cut_and_changed_files),
        WITH_DIRECTORY(test_numpy_reads_ours),
        WITH_DIRECTORY(test_we_read_numpys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
