/* download.c - see download.h.
 *
 * One `transfer` lives for a call. Each request is judged once, when its first body byte (or its
 * end) arrives and all headers are known: begin_body() decides whether the body is appended to the
 * part, replaces it, or is useless. Invariant: the first `have` bytes of the part belong to
 * the version `known` of the remote file, and the notes on disk describe that version before any of
 * its bytes is written.
 */
#define _GNU_SOURCE
#include "data/download.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NEW_TRIES = 5, MAX_REDIRECTS = 10, CONNECT_SECONDS = 30, STALLED_SECONDS = 60 };
enum { READ_BUFFER = 1 << 18, HEADER_LINE = 512 };

int download_pause = 250;

/* ---- versions of a remote file ---- */

/* What distinguishes versions of a remote file. Unknown: size -1, texts empty. */
typedef struct version {
    int64_t size;
    char etag[256]; /* strong ones only: a weak one does not promise equal bytes */
    char modified[64];
} version;

static const version unknown = {.size = -1};

/* True if nothing shows that the two are different. */
static bool may_be_equal(const version *a, const version *b) {
    if (a->size >= 0 && b->size >= 0 && a->size != b->size) return false;
    if (a->etag[0] && b->etag[0]) return !strcmp(a->etag, b->etag);
    if (a->modified[0] && b->modified[0]) return !strcmp(a->modified, b->modified);
    return true;
}

/* Copies a validator. One that is too long or not plain ASCII counts as missing. */
static void keep_text(char *out, size_t size, const char *text) {
    size_t length = 0;
    while (text[length] >= ' ' && text[length] <= '~') length++;
    if (!text[length] && length < size) strcpy(out, text);
}

/* What If-Range may name; empty if nothing identifies the version. */
static const char *validator(const version *v) { return v->etag[0] ? v->etag : v->modified; }

/* ---- the part and its notes ---- */

typedef enum verdict {
    UNDECIDED, /* no response yet */
    WANTED,    /* the body is the next piece of the part */
    COMPLETE,  /* the part is all there is */
    RESTART,   /* the part does not fit: ask again, for the whole file */
} verdict;

typedef struct transfer {
    const char *url, *path;
    char *part, *notes, *stage;
    const fr_context *context;
    fr_error *err;
    int fd; /* of the part, locked */
    bool http;
    int64_t have;
    version known;
    int64_t resumed_from;
    bool begun; /* some body was accepted in this call */
    int64_t shown;
    /* The current request. */
    CURL *curl;
    char text[CURL_ERROR_SIZE];
    verdict verdict;
    version offered; /* by the headers so far */
    int64_t offered_start;
    fr_status status; /* failure inside a callback */
} transfer;

/* True if the existing bytes can be completed by a request for the rest. */
static bool resumable(const transfer *t) {
    return t->http && t->have > 0 && validator(&t->known)[0];
}

static void forget_part(transfer *t) {
    t->have = t->resumed_from = 0;
    t->known = unknown;
}

/* Two processes must not write one part. The lock counts only if its former owner has not moved or
 * removed the part in the meantime. File systems without locks have no protection. The name is
 * always the same, so an existing file must be a plain file of our own, not a link. */
static fr_status open_part(transfer *t) {
    t->fd = open(t->part, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (t->fd < 0) return fail_errno(t->err, "%s: cannot be written", t->part);
    bool busy = flock(t->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    struct stat opened, named;
    if (fstat(t->fd, &opened)) return fail_errno(t->err, "%s: cannot be read", t->part);
    if (!S_ISREG(opened.st_mode) || opened.st_nlink > 1 || opened.st_uid != geteuid()) {
        close(t->fd);
        t->fd = -1;
        return fail(t->err, FR_EFILE,
                    "%s: is not a file of this user alone, expected what an earlier download left; "
                    "remove it",
                    t->part);
    }
    if (busy || stat(t->part, &named) || opened.st_ino != named.st_ino) {
        close(t->fd);
        t->fd = -1; /* not ours to clean up */
        return fail(t->err, FR_EFILE, "%s: another download is writing it", t->part);
    }
    t->have = (int64_t)opened.st_size;
    return FR_OK;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Missing or strange notes only mean that the part cannot be used. */
static void read_notes(transfer *t) {
    json_t *root = NULL;
    if (!json_read(t->notes, &root, NULL)) {
        json_t *size = json_object_get(root, "size");
        if (!strcmp(text_of(root, "url"), t->url)) {
            keep_text(t->known.etag, sizeof t->known.etag, text_of(root, "etag"));
            keep_text(t->known.modified, sizeof t->known.modified, text_of(root, "last_modified"));
            if (json_is_integer(size)) t->known.size = json_integer_value(size);
        }
        json_decref(root);
    }
    if (!resumable(t)) forget_part(t);
    t->resumed_from = t->have;
}

static fr_status write_notes(transfer *t) {
    json_t *root = json_pack("{ss ss ss sI}", "url", t->url, "etag", t->known.etag, "last_modified",
                             t->known.modified, "size", (json_int_t)t->known.size);
    if (!root) return fail(t->err, FR_EUSAGE, "%s: is not UTF-8", t->url);
    return json_write(t->notes, root, t->err);
}

static fr_status write_part(transfer *t, const char *bytes, size_t size) {
    if (t->known.size >= 0 && (int64_t)size > t->known.size - t->have)
        return fail(t->err, FR_EFILE, "%s: more bytes came than the %" PRId64 " announced", t->url,
                    t->known.size);
    while (size > 0) {
        ssize_t done = pwrite(t->fd, bytes, size, (off_t)t->have);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(t->err, "%s: cannot be written", t->part);
        bytes += done;
        size -= (size_t)done;
        t->have += done;
    }
    return FR_OK;
}

/* ---- one request ---- */

/* Judges the response by its complete headers. */
static fr_status begin_body(transfer *t) {
    long code = 0;
    curl_off_t length = -1;
    (void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &code);
    (void)curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    bool asked_for_rest = resumable(t);
    if (code == 200 || !t->http) {
        if (asked_for_rest)
            context_log(t->context, FR_NOTICE, "%s: the server sends the file from its start",
                        t->url);
        if (ftruncate(t->fd, 0)) return fail_errno(t->err, "%s: cannot be written", t->part);
        forget_part(t);
        t->known = t->offered;
        t->known.size = length;
        TRY(write_notes(t));
        t->verdict = WANTED;
    } else if (asked_for_rest && code == 206) {
        bool fits = t->offered_start == t->have && may_be_equal(&t->known, &t->offered);
        if (t->known.size < 0) t->known.size = t->offered.size;
        t->verdict = fits ? WANTED : RESTART;
    } else if (asked_for_rest && code == 416) {
        bool all = t->offered.size == t->have && may_be_equal(&t->known, &t->offered);
        t->verdict = all ? COMPLETE : RESTART;
    } else {
        return fail(t->err, FR_EFILE, "%s: the server answered %ld, expected 200", t->url, code);
    }
    if (t->verdict == WANTED) t->begun = true;
    return FR_OK;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user) {
    (void)one; /* always 1 */
    transfer *t = user;
    if (t->verdict == UNDECIDED) t->status = begin_body(t);
    if (!t->status && t->verdict == WANTED) t->status = write_part(t, bytes, size);
    return !t->status && t->verdict == WANTED ? size : 0; /* 0 ends the transfer */
}

/* Either number of "bytes FIRST-LAST/SIZE" may be missing, with a star in its place. */
static void read_content_range(transfer *t, const char *value) {
    if (strncasecmp(value, "bytes ", 6)) return;
    const char *slash = strchr(value, '/');
    if (value[6] >= '0' && value[6] <= '9') t->offered_start = strtoll(value + 6, NULL, 10);
    if (slash && slash[1] >= '0' && slash[1] <= '9') t->offered.size = strtoll(slash + 1, NULL, 10);
}

/* The value of header `name` if `line` is it, else NULL. */
static const char *header_value(const char *line, const char *name) {
    size_t size = strlen(name);
    if (strncasecmp(line, name, size) || line[size] != ':') return NULL;
    return line + size + 1 + strspn(line + size + 1, " \t");
}

static size_t on_header(char *bytes, size_t one, size_t size, void *user) {
    (void)one;
    transfer *t = user;
    char line[HEADER_LINE];
    const char *value;
    if (size >= sizeof line) return size; /* headers that matter are shorter */
    memcpy(line, bytes, size);
    line[size] = 0;
    for (size_t i = size; i > 0 && strchr("\r\n \t", line[i - 1]); i--) line[i - 1] = 0;
    if (!strncmp(line, "HTTP/", 5)) { /* a new response: headers of a redirect no longer count */
        t->offered = unknown;
        t->offered_start = -1;
    } else if ((value = header_value(line, "ETag"))) {
        if (value[0] == '"') keep_text(t->offered.etag, sizeof t->offered.etag, value);
    } else if ((value = header_value(line, "Last-Modified"))) {
        keep_text(t->offered.modified, sizeof t->offered.modified, value);
    } else if ((value = header_value(line, "Content-Range"))) {
        read_content_range(t, value);
    }
    return size;
}

static void show_progress(transfer *t) {
    if (t->shown == t->have) return;
    t->shown = t->have;
    context_progress(t->context, t->stage, (uint64_t)t->have,
                     t->known.size > 0 ? (uint64_t)t->known.size : 0, "bytes");
}

/* libcurl calls this with every piece, and about once a second when nothing comes. */
static int on_tick(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total,
                   curl_off_t up) {
    (void)total, (void)now, (void)up_total, (void)up;
    transfer *t = user;
    show_progress(t);
    if (!t->status) t->status = context_check(t->context, t->err);
    return t->status != FR_OK;
}

static fr_status prepare(transfer *t) {
    t->curl = curl_easy_init();
    if (!t->curl) return fail(t->err, FR_ENOMEM, "libcurl cannot be started");
    CURL *c = t->curl;
    char agent[64];
    (void)snprintf(agent, sizeof agent, "fullrank/%s", fr_version_get().version);
    CURLcode bad = CURLE_OK;
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(c, option, value)
    SET(CURLOPT_URL, t->url);
    SET(CURLOPT_USERAGENT, agent);
    SET(CURLOPT_ERRORBUFFER, t->text);
    SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    /* a libcurl without TLS refuses the whole list if it does not know one of the names */
    bool secure = curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL;
    SET(CURLOPT_PROTOCOLS_STR, secure ? "http,https,file" : "http,file");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "http,https" : "http");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS | CURLPROTO_FILE));
    SET(CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
    SET(CURLOPT_LOW_SPEED_TIME, (long)STALLED_SECONDS);
    SET(CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_XFERINFOFUNCTION, on_tick);
    SET(CURLOPT_XFERINFODATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
#undef SET
    return bad ? fail(t->err, FR_EFILE, "%s: %s", t->url, curl_easy_strerror(bad)) : FR_OK;
}

/* Asks for the file, or for the rest of it on the condition that it is still the same. */
static CURLcode request(transfer *t) {
    char range[32], condition[sizeof t->known.etag + 16];
    struct curl_slist *headers = NULL;
    t->verdict = UNDECIDED;
    t->offered = unknown;
    t->offered_start = -1;
    t->text[0] = 0;
    if (resumable(t)) {
        (void)snprintf(range, sizeof range, "%" PRId64 "-", t->have);
        (void)snprintf(condition, sizeof condition, "If-Range: %s", validator(&t->known));
        headers = curl_slist_append(NULL, condition);
        if (!headers) return CURLE_OUT_OF_MEMORY;
    }
    (void)curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode code = curl_easy_setopt(t->curl, CURLOPT_RANGE, headers ? range : NULL);
    if (!code) code = curl_easy_perform(t->curl);
    if (!code && t->verdict == UNDECIDED) t->status = begin_body(t); /* there was no body */
    (void)curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return code;
}

/* ---- the whole transfer ---- */

/* True if a retry makes sense. It does not if the server was never reached: that is rarely
 * temporary, and the user should know soon. */
static bool broken_off(const transfer *t, CURLcode code) {
    switch (code) {
    case CURLE_OK: /* but not all bytes came */
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return t->http;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR: return t->begun;
    default: return false;
    }
}

/* libcurl's message about the last request, as one line. */
static const char *reason(transfer *t, CURLcode code) {
    if (code == CURLE_OK) return "fewer bytes came than announced";
    t->text[strcspn(t->text, "\r\n")] = 0;
    return t->text[0] ? t->text : curl_easy_strerror(code);
}

static fr_status wait_a_while(transfer *t, int64_t milliseconds) {
    enum { STEP = 50 };
    for (; milliseconds > 0; milliseconds -= STEP) {
        TRY(context_check(t->context, t->err));
        int64_t now = milliseconds < STEP ? milliseconds : STEP;
        struct timespec pause = {.tv_nsec = (long)now * 1000000};
        (void)nanosleep(&pause, NULL);
    }
    return context_check(t->context, t->err);
}

static fr_status give_up(transfer *t, CURLcode code, int failures) {
    if (!resumable(t))
        return fail(t->err, FR_EFILE, "%s: broken off %d times (%s)", t->url, failures,
                    reason(t, code));
    return fail(t->err, FR_EFILE,
                "%s: broken off %d times (%s); %" PRId64
                " bytes are kept in %s, repeat the command to go on from there",
                t->url, failures, reason(t, code), t->have, t->part);
}

static fr_status fetch(transfer *t) {
    for (int failures = 0;;) {
        CURLcode code = request(t);
        if (t->status) return t->status;
        if (t->verdict == COMPLETE) return FR_OK;
        if (t->verdict == RESTART) { /* not twice in a row: the next request has no range */
            context_log(t->context, FR_NOTICE, "%s: does not fit to %s, fetched from its start",
                        t->url, t->part);
            forget_part(t);
            continue;
        }
        if (code == CURLE_OK && (t->known.size < 0 || t->have == t->known.size)) return FR_OK;
        if (!broken_off(t, code)) return fail(t->err, FR_EFILE, "%s: %s", t->url, reason(t, code));
        if (++failures > NEW_TRIES) return give_up(t, code, failures);
        context_log(t->context, FR_NOTICE,
                    "%s: broken off at byte %" PRId64 " (%s), new try %d of %d", t->url, t->have,
                    reason(t, code), failures, NEW_TRIES);
        TRY(wait_a_while(t, (int64_t)download_pause << (failures - 1)));
    }
}

/* Reads the file back, so the hash is that of the bytes on disk, from this call and earlier ones.
 */
static fr_status hash_part(transfer *t, char out[65]) {
    char *buffer = NULL;
    sha256 hash = {0};
    TRY(ALLOCATE(buffer, READ_BUFFER, t->err));
    fr_status status = sha256_start(&hash, t->err);
    for (int64_t at = 0; !status && at < t->have;) {
        ssize_t size = pread(t->fd, buffer, READ_BUFFER, (off_t)at);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) {
            status = fail_errno(t->err, "%s: cannot be read", t->part);
        } else if (size == 0) {
            status = fail(t->err, FR_EFILE, "%s: was shortened by another program", t->part);
        } else {
            sha256_add(&hash, buffer, (size_t)size);
            at += size;
            status = context_check(t->context, t->err);
        }
    }
    sha256_end(&hash, status ? NULL : out);
    free(buffer);
    return status;
}

static fr_status put_in_place(transfer *t) {
    if (fsync(t->fd)) return fail_errno(t->err, "%s: cannot be written", t->part);
    if (rename(t->part, t->path)) return fail_errno(t->err, "%s: cannot be put in place", t->path);
    (void)unlink(t->notes);
    return FR_OK;
}

/* Keeps a part only if it is useful: to continue from, or because it belongs to another URL and
 * this call did not replace it. */
static void tidy_up(const transfer *t) {
    struct stat facts;
    bool empty = !fstat(t->fd, &facts) && facts.st_size == 0;
    if (empty || (t->begun && !resumable(t))) {
        (void)unlink(t->part);
        (void)unlink(t->notes);
    }
}

static void start_curl(void) { (void)curl_global_init(CURL_GLOBAL_DEFAULT); }

static fr_status check_request(const char *url, const char *path, bool *http, fr_error *err) {
    *http = !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8);
    if (!*http && strncasecmp(url, "file://", 7))
        return fail(err, FR_EUSAGE, "%s: expected a URL with http://, https:// or file://", url);
    if (directory_is(path)) return fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    return FR_OK;
}

fr_status download_file(const char *url, const char *path, const fr_context *context,
                        download_result *out, fr_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    transfer t = {.url = url, .path = path, .context = context, .err = err, .fd = -1, .shown = -1};
    t.known = unknown;
    *out = (download_result){0};
    TRY(check_request(url, path, &t.http, err));
    (void)pthread_once(&once, start_curl);

    /* A closed connection must not end the program; libcurl leaves this to its caller. */
    sigset_t hangup, before;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &hangup, &before);

    if (asprintf(&t.part, "%s.part", path) < 0) t.part = NULL;
    if (asprintf(&t.notes, "%s.part.json", path) < 0) t.notes = NULL;
    if (asprintf(&t.stage, "download %s", path_name(path)) < 0) t.stage = NULL;
    fr_status status = t.part && t.notes && t.stage ? FR_OK : fail_memory(err, strlen(path));
    if (!status) status = open_part(&t);
    if (status) goto done;
    read_notes(&t);
    status = prepare(&t);
    if (!status) status = fetch(&t);
    if (!status) {
        t.known.size = t.have;
        show_progress(&t);
        status = hash_part(&t, out->sha256);
    }
    if (!status) status = put_in_place(&t);
    if (status) {
        tidy_up(&t);
    } else {
        out->bytes = t.have;
        out->resumed_from = t.resumed_from;
    }
done:
    curl_easy_cleanup(t.curl);
    if (t.fd >= 0) close(t.fd);
    free(t.part);
    free(t.notes);
    free(t.stage);
    if (!sigismember(&before, SIGPIPE)) {
        while (sigtimedwait(&hangup, NULL, &(struct timespec){0}) == SIGPIPE) continue;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return status;
}
