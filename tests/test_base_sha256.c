/* test_base_sha256.c - the vectors of FIPS 180-4's examples, whole and in pieces. */
#include "base/sha256.h"
#include "testing.h"

static void assert_hash(const char *bytes, size_t size, size_t piece, const char *expected) {
    fr_error err;
    sha256 h;
    char text[65];
    OK(sha256_start(&h, &err));
    for (size_t at = 0; at < size; at += piece)
        sha256_add(&h, bytes + at, size - at < piece ? size - at : piece);
    sha256_end(&h, text);
    assert_string_equal(text, expected);
}

static void test_vectors(void **state) {
    (void)state;
    static const struct {
        const char *text, *hash;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        size_t size = strlen(vectors[i].text);
        assert_hash(vectors[i].text, size, size + 1, vectors[i].hash);
        assert_hash(vectors[i].text, size, 1, vectors[i].hash);
    }
}

static void test_million_a(void **state) {
    (void)state;
    enum { MILLION = 1000000 };
    char *text = malloc(MILLION);
    assert_non_null(text);
    memset(text, 'a', MILLION);
    assert_hash(text, MILLION, 4097,
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

static void test_unfinished(void **state) {
    (void)state;
    fr_error err;
    sha256 h;
    OK(sha256_start(&h, &err));
    sha256_add(&h, "abc", 3);
    sha256_add(&h, NULL, 0);
    sha256_end(&h, NULL); /* the leak checker sees whether the state is freed */
    assert_null(h.state);
    sha256_end(&h, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_million_a),
        cmocka_unit_test(test_unfinished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
