/* test_download.c - downloads from a local web server that misbehaves on request.
 *
 * tests/http_server.py serves one file of known bytes; the query of a URL says what goes wrong (see
 * there). Every case compares the received bytes and their hash with that file and, if it matters,
 * the requests in the server's log. Without python3 the tests are skipped. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/sha256.h"
#include "data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef FULLRANK_SOURCE_DIR
#define FULLRANK_SOURCE_DIR "."
#endif

enum { SIZE = 300007, TEXT = 1024 };

static unsigned char content[SIZE], reversed[SIZE];
static char content_hash[65];
static char *folder, *original, *server_log;
static int port;
static pid_t server;
static int server_stdin = -1;

/* ---- what one case needs ---- */

typedef struct watch {
    int64_t cancel_at; /* bytes of progress at which to cancel; 0 = never */
    uint64_t done, total;
    int calls, backwards;
    char stage[64], log[4 * TEXT];
} watch;

static void on_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                        const char *unit) {
    watch *w = user;
    assert_string_equal(unit, "bytes");
    w->backwards += done < w->done;
    w->done = done;
    w->total = total;
    w->calls++;
    (void)snprintf(w->stage, sizeof w->stage, "%s", stage);
}

static bool on_cancel(void *user) {
    watch *w = user;
    return w->cancel_at > 0 && (int64_t)w->done >= w->cancel_at;
}

static void on_log(void *user, fr_level level, const char *line) {
    watch *w = user;
    size_t used = strlen(w->log);
    (void)level;
    (void)snprintf(w->log + used, sizeof w->log - used, "%s\n", line);
}

/* One destination with its URL; `name` distinguishes the cases, on disk and in the server. */
typedef struct place {
    char url[TEXT], path[TEXT], part[TEXT + 8], notes[TEXT + 16];
    watch seen;
    fr_context context;
    download_result result;
    fr_error err;
} place;

static void place_at(place *p, const char *url, const char *name) {
    *p = (place){0};
    (void)snprintf(p->url, sizeof p->url, "%s", url);
    (void)snprintf(p->path, sizeof p->path, "%s/%s.csv", folder, name);
    (void)snprintf(p->part, sizeof p->part, "%s.part", p->path);
    (void)snprintf(p->notes, sizeof p->notes, "%s.part.json", p->path);
}

static void place_on_server(place *p, const char *name, const char *query) {
    char url[TEXT];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%s.csv?%s", port, name, query);
    place_at(p, url, name);
}

static fr_status get(place *p) {
    int64_t cancel_at = p->seen.cancel_at;
    p->seen = (watch){.cancel_at = cancel_at};
    p->err = (fr_error){0};
    p->context =
        (fr_context){.user = &p->seen, .progress = on_progress, .cancel = on_cancel, .log = on_log};
    fr_status status = download_file(p->url, p->path, &p->context, &p->result, &p->err);
    if (status) {
        assert_int_equal(status, p->err.code);
        assert_null(strchr(p->err.message, '\n'));
    }
    return status;
}

static void assert_ok(place *p) {
    if (get(p)) fail_msg("%s", p->err.message);
}

static bool there(const char *path) { return access(path, F_OK) == 0; }

static int64_t size_of(const char *path) {
    struct stat facts;
    return stat(path, &facts) ? -1 : (int64_t)facts.st_size;
}

static void assert_contains(const char *text, const char *piece) {
    if (!strstr(text, piece)) fail_msg("\"%s\" lacks \"%s\"", text, piece);
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void hash_of(const void *bytes, size_t size, char out[65]) {
    sha256 hash;
    assert_int_equal(sha256_start(&hash, NULL), FR_OK);
    sha256_add(&hash, bytes, size);
    sha256_end(&hash, out);
}

/* The file is in place with exactly these bytes, and nothing else is left. */
static void assert_arrived(const place *p, const unsigned char *bytes, size_t size) {
    char expected[65];
    mapping file;
    hash_of(bytes, size, expected);
    assert_int_equal(mapping_open(p->path, &file, NULL), FR_OK);
    assert_int_equal(file.size, size);
    if (size) assert_memory_equal(file.bytes, bytes, size);
    mapping_close(&file);
    assert_string_equal(p->result.sha256, expected);
    assert_int_equal(p->result.bytes, size);
    assert_false(there(p->part));
    assert_false(there(p->notes));
}

static void assert_nothing_left(const place *p) {
    assert_false(there(p->path));
    assert_false(there(p->part));
    assert_false(there(p->notes));
}

/* The requests to the server under this name: "200 - -;206 bytes=5- "etag";", without paths. */
static void asked(const char *name, char out[TEXT]) {
    char line[TEXT], key[TEXT];
    size_t used = 0;
    FILE *file = fopen(server_log, "r");
    assert_non_null(file);
    (void)snprintf(key, sizeof key, "/%s.csv", name);
    out[0] = 0;
    while (fgets(line, sizeof line, file)) {
        char *path = strrchr(line, ' ');
        if (!path || !strstr(path, key)) continue;
        *path = 0;
        used += (size_t)snprintf(out + used, TEXT - used, "%s;", line);
    }
    (void)fclose(file);
}

static void assert_asked(const char *name, const char *expected) {
    char log[TEXT];
    asked(name, log);
    assert_string_equal(log, expected);
}

/* As the server computes it. */
static const char *etag(void) {
    static char text[32];
    (void)snprintf(text, sizeof text, "\"%.16s\"", content_hash);
    return text;
}

/* Cancels a slow download after some 5000 bytes; returns the size of the part that stays. */
static int64_t interrupt(place *p) {
    p->seen.cancel_at = 5000;
    assert_int_equal(get(p), FR_ECANCEL);
    p->seen.cancel_at = 0;
    assert_false(there(p->path));
    assert_true(there(p->notes));
    int64_t size = size_of(p->part);
    assert_in_range(size, 5000, SIZE - 1);
    return size;
}

/* ---- cases ---- */

static void test_plain(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "plain", "");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 0);
    assert_string_equal(p.seen.stage, "download plain.csv");
    assert_int_equal(p.seen.done, SIZE);
    assert_int_equal(p.seen.total, SIZE);
    assert_int_equal(p.seen.backwards, 0);
    assert_string_equal(p.seen.log, "");
    /* A file that is there is replaced; a context is not needed. */
    write_bytes(p.path, "old", 3);
    assert_int_equal(download_file(p.url, p.path, NULL, &p.result, NULL), FR_OK);
    assert_arrived(&p, content, SIZE);
}

static void test_chunked_and_unknown_size(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "chunked", "chunked=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    place_on_server(&p, "chunked2", "chunked=1&after=100000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
}

static void test_breaks_off_twice(void **state) {
    (void)state;
    place p;
    char expected[TEXT];
    place_on_server(&p, "twice", "after=100000&times=2");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 0);
    assert_int_equal(p.seen.backwards, 0);
    assert_contains(p.seen.log, "broken off at byte 100000 ");
    assert_contains(p.seen.log, "broken off at byte 200000 ");
    (void)snprintf(expected, sizeof expected, "200 - -;206 bytes=100000- %s;206 bytes=200000- %s;",
                   etag(), etag());
    assert_asked("twice", expected);
}

static void test_gives_up_and_goes_on(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "often", "after=10000&times=6");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, p.url);
    assert_contains(p.err.message, "broken off 6 times");
    assert_contains(p.err.message, "60000 bytes are kept in ");
    assert_contains(p.err.message, p.part);
    assert_contains(p.err.message, "repeat the command");
    assert_int_equal(size_of(p.part), 60000);
    assert_false(there(p.path));
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 60000);
}

static void test_hangs_up_without_answer(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "silent", "silent=1&times=2");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    place_on_server(&p, "mute", "silent=1");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "broken off 6 times");
    assert_nothing_left(&p);
}

static void test_ranges_ignored(void **state) {
    (void)state;
    place p;
    char expected[TEXT];
    place_on_server(&p, "noranges", "ranges=0&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    (void)snprintf(expected, sizeof expected, "200 - -;200 bytes=200000- %s;", etag());
    assert_asked("noranges", expected);
    assert_contains(p.seen.log, "from its start");
}

static void test_ranges_in_pieces(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "pieces", "piece=100000&after=100000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
}

static void test_changed_file_is_not_glued(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "change", "change=1&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, reversed, SIZE);
    /* The ETag shows that a server does not look at If-Range. */
    place_on_server(&p, "careless", "careless=1&change=1&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, reversed, SIZE);
    /* The same over two calls. */
    place_on_server(&p, "change2", "change=1&slow=5000&times=1");
    (void)interrupt(&p);
    assert_ok(&p);
    assert_arrived(&p, reversed, SIZE);
    assert_int_equal(p.result.resumed_from, 0);
}

static void test_kinds_of_validators(void **state) {
    (void)state;
    place p;
    const char *date = "Fri,_14_Jul_2017_02:40:00_GMT";
    char expected[TEXT];
    (void)snprintf(expected, sizeof expected, "200 - -;206 bytes=200000- %s;", date);
    place_on_server(&p, "dated", "etag=0&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_asked("dated", expected);
    place_on_server(&p, "weak", "etag=weak&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_asked("weak", expected);
    /* Nothing identifies the version: start again, and leave no useless part. */
    place_on_server(&p, "none", "etag=0&dated=0&after=200000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_asked("none", "200 - -;200 - -;");
    place_on_server(&p, "never", "etag=0&dated=0&after=200000");
    assert_int_equal(get(&p), FR_EFILE);
    assert_null(strstr(p.err.message, "kept"));
    assert_nothing_left(&p);
}

static void test_cancel_and_resume(void **state) {
    (void)state;
    place p;
    char expected[TEXT];
    place_on_server(&p, "cancel", "slow=5000&times=1");
    int64_t size = interrupt(&p);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, size);
    (void)snprintf(expected, sizeof expected, "200 - -;206 bytes=%" PRId64 "- %s;", size, etag());
    assert_asked("cancel", expected);
}

static void test_cancel_during_pause(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "pause", "after=10000");
    download_pause = 60000;
    p.seen.cancel_at = 10000;
    assert_int_equal(get(&p), FR_ECANCEL);
    download_pause = 10;
    assert_int_equal(size_of(p.part), 10000);
}

/* The call ended between the last byte and the renaming: the server has nothing more to send. */
static void test_complete_part(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "whole", "slow=5000&times=1");
    (void)interrupt(&p);
    write_bytes(p.part, content, SIZE);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, SIZE);
    char log[TEXT];
    asked("whole", log);
    assert_contains(log, "416 bytes=300007-");
}

static void test_unusable_parts(void **state) {
    (void)state;
    place p;
    unsigned char longer[SIZE + 10] = {0};
    place_on_server(&p, "toolong", "slow=5000&times=1");
    (void)interrupt(&p);
    write_bytes(p.part, longer, sizeof longer);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 0);

    place_on_server(&p, "notes", "slow=5000&times=1");
    (void)interrupt(&p);
    write_bytes(p.notes, "{\"url\": [", 9);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 0);

    /* A part of another URL is replaced, but only when something better arrives. */
    place other;
    place_on_server(&p, "url", "slow=5000&times=1");
    int64_t size = interrupt(&p);
    place_on_server(&other, "url", "status=404");
    assert_int_equal(get(&other), FR_EFILE);
    assert_int_equal(size_of(p.part), size);
    place_on_server(&other, "url", "other=1");
    assert_ok(&other);
    assert_arrived(&other, content, SIZE);
    assert_int_equal(other.result.resumed_from, 0);
}

static void test_http_errors(void **state) {
    (void)state;
    place p;
    char expected[2 * TEXT];
    const int codes[] = {404, 500, 206, 416};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char query[32];
        (void)snprintf(query, sizeof query, "status=%d", codes[i]);
        place_on_server(&p, "error", query);
        assert_int_equal(get(&p), FR_EFILE);
        (void)snprintf(expected, sizeof expected, "%s: the server answered %d, expected 200", p.url,
                       codes[i]);
        assert_string_equal(p.err.message, expected);
        assert_nothing_left(&p);
    }
    /* An error in the middle keeps the existing bytes. */
    place_on_server(&p, "late", "after=5000&times=1&then=500");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "answered 500, expected 200");
    assert_int_equal(size_of(p.part), 5000);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 5000);
}

static void test_wrong_length(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "claim", "claim=1000");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "broken off");
    assert_false(there(p.path));
    place_on_server(&p, "claim2", "claim=1000&times=1"); /* the 416 to the rest starts it again */
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_contains(p.seen.log, "does not fit");
    place_on_server(&p, "claim3", "claim=-1000"); /* HTTP: the file ends where its length says */
    assert_ok(&p);
    assert_arrived(&p, content, SIZE - 1000);
}

static void test_html_page_is_just_bytes(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "html", "html=1");
    assert_ok(&p);
    mapping file;
    assert_int_equal(mapping_open(p.path, &file, NULL), FR_OK);
    assert_true(file.size > 15 && !memcmp(file.bytes, "<!DOCTYPE html>", 15));
    mapping_close(&file);
}

static void test_redirects(void **state) {
    (void)state;
    place p;
    char query[TEXT], url[TEXT / 2];
    place_on_server(&p, "hops", "hops=10");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    place_on_server(&p, "hops11", "hops=11");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "redirect");
    assert_nothing_left(&p);
    /* Validators are those of the last response. */
    place_on_server(&p, "misled", "hops=1&etag=0&after=100000&times=1");
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_asked("misled", "302 - -;200 - -;302 bytes=100000- Fri,_14_Jul_2017_02:40:00_GMT;"
                           "206 bytes=100000- Fri,_14_Jul_2017_02:40:00_GMT;");
    /* To a server that breaks off. */
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/behind.csv?after=100000%%26times=1", port);
    (void)snprintf(query, sizeof query, "to=%s", url);
    place_on_server(&p, "front", query);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    /* Not to local files. */
    (void)snprintf(query, sizeof query, "to=file://%s", original);
    place_on_server(&p, "local", query);
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "Protocol \"file\"");
    assert_nothing_left(&p);
}

static void test_file_urls(void **state) {
    (void)state;
    place p;
    char url[TEXT], empty[TEXT / 2];
    (void)snprintf(url, sizeof url, "file://%s", original);
    place_at(&p, url, "copied");
    write_bytes(p.part, reversed, 1000); /* a part without notes is of no use */
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 0);
    assert_int_equal(p.seen.done, SIZE);

    place_at(&p, url, "copied_half"); /* quicker to copy again than to go on */
    p.seen.cancel_at = 1;
    assert_int_equal(get(&p), FR_ECANCEL);
    assert_nothing_left(&p);

    (void)snprintf(empty, sizeof empty, "%s/empty", folder);
    write_bytes(empty, "", 0);
    (void)snprintf(url, sizeof url, "file://%s", empty);
    place_at(&p, url, "copied_empty");
    assert_ok(&p);
    assert_arrived(&p, content, 0);

    (void)snprintf(url, sizeof url, "file://%s/missing", folder);
    place_at(&p, url, "copied_missing");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, url);
    assert_nothing_left(&p);
}

static void test_unreachable(void **state) {
    (void)state;
    place p;
    char url[TEXT];
    /* A port that is taken but not listened to. */
    int busy = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(busy, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(busy, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/x.csv", ntohs(address.sin_port));
    place_at(&p, url, "refused");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, url);
    assert_contains(p.err.message, "onnect");
    assert_nothing_left(&p);
    close(busy);

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/x.csv", port); /* speaks no TLS */
    place_at(&p, url, "tls");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, url);
    bool tls = curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL;
    assert_contains(p.err.message, tls ? "SSL" : "not supported");
    assert_nothing_left(&p);

    const char *odd[] = {"ftp://127.0.0.1/x.csv", "x.csv", ""};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        place_at(&p, odd[i], "odd");
        assert_int_equal(get(&p), FR_EUSAGE);
        assert_contains(p.err.message, "http://, https:// or file://");
        assert_nothing_left(&p);
    }
}

static void test_proxy(void **state) {
    (void)state;
    place p;
    char proxy[64];
    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port);
    setenv("http_proxy", proxy, 1);
    place_at(&p, "http://fullrank.invalid/proxied.csv", "proxied");
    fr_status status = get(&p);
    unsetenv("http_proxy");
    if (status) fail_msg("%s", p.err.message);
    assert_arrived(&p, content, SIZE);
    assert_asked("proxied", "200 - -;");
}

static void test_disk_trouble(void **state) {
    (void)state;
    place p;
    struct rlimit before, small;
    place_on_server(&p, "full", "");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fr_status status = get(&p);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, FR_EFILE);
    assert_contains(p.err.message, p.part);
    assert_contains(p.err.message, "cannot be written: ");
    assert_int_equal(size_of(p.part), 50000);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
    assert_int_equal(p.result.resumed_from, 50000);

    place_on_server(&p, "no/such/folder", "");
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, p.part);

    place_on_server(&p, "taken", "");
    assert_int_equal(mkdir(p.path, 0777), 0);
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "is a directory");
    assert_asked("taken", "");
}

static void test_one_writer_only(void **state) {
    (void)state;
    place p;
    place_on_server(&p, "locked", "");
    int fd = open(p.part, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    assert_int_equal(flock(fd, LOCK_SH), 0); /* even this keeps a writer out */
    assert_int_equal(get(&p), FR_EFILE);
    assert_contains(p.err.message, "another download");
    assert_true(there(p.part));
    close(fd);
    assert_ok(&p);
    assert_arrived(&p, content, SIZE);
}

static void *get_quietly(void *place_pointer) {
    place *p = place_pointer;
    p->err.code = download_file(p->url, p->path, NULL, &p->result, NULL);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 4 };
    static place p[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "thread%d", i);
        place_on_server(&p[i], name, "after=100000&times=1");
        assert_int_equal(pthread_create(&thread[i], NULL, get_quietly, &p[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(p[i].err.code, FR_OK);
        assert_arrived(&p[i], content, SIZE);
    }
}

static void test_sources(void **state) {
    (void)state;
    char names[64], tight[12];
    download_names(names, sizeof names);
    assert_string_equal(names, "wikipedia, reddit, mooc, lastfm");
    download_names(tight, sizeof tight);
    assert_string_equal(tight, "wikipedia, ");
    const download_source *mooc = download_find("mooc");
    assert_non_null(mooc);
    assert_string_equal(mooc->url, "http://snap.stanford.edu/jodie/mooc.csv");
    assert_int_equal(mooc->events, 411749);
    assert_null(download_find("mooc2"));
    assert_null(download_find(""));
}

/* ---- the server ---- */

/* Starts the server and reads its port: 0, or -1 if there is no python3. */
static int start_server(void) {
    const char *source = getenv("FULLRANK_SOURCE");
    char script[TEXT], line[32] = "";
    int to[2], from[2];
    (void)snprintf(script, sizeof script, "%s/tests/http_server.py",
                   source ? source : FULLRANK_SOURCE_DIR);
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) return 1;
    server = fork();
    if (server == 0) {
        (void)dup2(to[0], 0);
        (void)dup2(from[1], 1);
        execl("/usr/bin/env", "env", "python3", script, original, "--log", server_log, "--seconds",
              "1500", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    server_stdin = to[1];
    FILE *answer = fdopen(from[0], "r");
    bool started = answer && fgets(line, sizeof line, answer) && (port = atoi(line)) > 0;
    if (answer) (void)fclose(answer);
    if (started) return 0;
    int status = 0;
    close(server_stdin);
    (void)waitpid(server, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -1 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_chunked_and_unknown_size),
        cmocka_unit_test(test_breaks_off_twice),
        cmocka_unit_test(test_gives_up_and_goes_on),
        cmocka_unit_test(test_hangs_up_without_answer),
        cmocka_unit_test(test_ranges_ignored),
        cmocka_unit_test(test_ranges_in_pieces),
        cmocka_unit_test(test_changed_file_is_not_glued),
        cmocka_unit_test(test_kinds_of_validators),
        cmocka_unit_test(test_cancel_and_resume),
        cmocka_unit_test(test_cancel_during_pause),
        cmocka_unit_test(test_complete_part),
        cmocka_unit_test(test_unusable_parts),
        cmocka_unit_test(test_http_errors),
        cmocka_unit_test(test_wrong_length),
        cmocka_unit_test(test_html_page_is_just_bytes),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_file_urls),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_disk_trouble),
        cmocka_unit_test(test_one_writer_only),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_sources),
    };
    download_pause = 10;
    setenv("no_proxy", "127.0.0.1", 1); /* whatever proxy this machine uses */
    uint32_t value = 1;
    for (int i = 0; i < SIZE; i++) {
        value = value * 1664525u + 1013904223u;
        content[i] = reversed[SIZE - 1 - i] = (unsigned char)(value >> 24);
    }
    hash_of(content, SIZE, content_hash);
    const char *base = getenv("TMPDIR");
    folder = path_join(base && *base ? base : "/tmp", "fullrank-test-XXXXXX");
    if (!folder || !mkdtemp(folder)) return 1;
    original = path_join(folder, "original");
    server_log = path_join(folder, "log");
    if (!original || !server_log) return 1;
    write_bytes(original, content, SIZE);
    int result = start_server();
    if (result < 0) {
        (void)puts("skipped: python3 is not installed");
        result = 0;
    } else if (result == 0) {
        result = cmocka_run_group_tests(tests, NULL, NULL);
        close(server_stdin); /* ends it */
        (void)waitpid(server, NULL, 0);
    } else {
        (void)fprintf(stderr, "tests/http_server.py did not start\n");
    }
    directory_remove(folder);
    free(folder);
    free(original);
    free(server_log);
    return result;
}
