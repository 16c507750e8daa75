/* input.c - see input.h. */
#include "data/input.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    RAW_BYTES = 1 << 17,
    WAIT_MILLISECONDS = 100,
    GZIP_RATIO = 1032, /* deflate cannot compress better than this */
};

/* Returns when there is something to read. A read that blocks would not see that the user wants to
 * stop. */
static fr_status wait_for_bytes(input *in, fr_error *err) {
    struct pollfd ready = {.fd = in->fd, .events = POLLIN};
    do TRY(context_check(in->context, err));
    while (poll(&ready, 1, WAIT_MILLISECONDS) <= 0);
    return FR_OK;
}

/* Reads and hashes up to `size` stored bytes; none means their end. */
static fr_status take(input *in, void *out, size_t size, size_t *got, fr_error *err) {
    ssize_t count;
    if (in->fd < 0) {
        size_t left = (size_t)(in->size - in->taken);
        count = (ssize_t)(left < size ? left : size);
        if (count) memcpy(out, in->memory + in->taken, (size_t)count);
    } else {
        if (in->waits) TRY(wait_for_bytes(in, err));
        do count = read(in->fd, out, size);
        while (count < 0 && errno == EINTR);
        if (count < 0) return fail_errno(err, "%s: cannot be read", in->name);
    }
    *got = (size_t)count;
    in->taken += count;
    in->ended = count == 0;
    sha256_add(&in->hash, out, *got);
    return FR_OK;
}

/* Refills `raw` when it is used up; an empty result means the end of the stored file. */
static fr_status refill(input *in, fr_error *err) {
    if (in->raw_at < in->raw_end || in->ended) return FR_OK;
    in->raw_at = 0;
    return take(in, in->raw, in->raw_room, &in->raw_end, err);
}

static fr_status start(input *in, fr_error *err) {
    in->raw_room = in->size && in->size < RAW_BYTES ? (size_t)in->size + 1 : RAW_BYTES;
    TRY(ALLOCATE(in->raw, in->raw_room, err));
    TRY(sha256_start(&in->hash, err));
    TRY(refill(in, err));
    if (in->raw_end < 2 || in->raw[0] != 0x1f || in->raw[1] != 0x8b) return FR_OK;
    TRY(ALLOCATE(in->gzip, 1, err));
    if (inflateInit2(in->gzip, 15 + 16) == Z_OK) { /* +16: gzip only */
        in->inside = true;
        return FR_OK;
    }
    free(in->gzip);
    in->gzip = NULL;
    return fail_memory(err, 0);
}

fr_status input_open(input *in, const char *path, const fr_context *context, fr_error *err) {
    *in = (input){.name = path, .fd = -1, .context = context};
    struct stat facts;
    /* Opening a pipe would block until it has a writer and could not be cancelled; poll can be. */
    in->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (in->fd < 0 || fstat(in->fd, &facts) || fcntl(in->fd, F_SETFL, 0))
        return fail_errno(err, "%s: cannot be read", path);
    if (S_ISDIR(facts.st_mode))
        return fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    in->waits = !S_ISREG(facts.st_mode);
    in->size = S_ISREG(facts.st_mode) ? facts.st_size : 0;
    return start(in, err);
}

fr_status input_open_memory(input *in, const void *bytes, size_t size, const char *name,
                            fr_error *err) {
    *in = (input){.name = name, .fd = -1, .memory = bytes, .size = (int64_t)size};
    return start(in, err);
}

/* Inflates into `out` until something comes out or the stored file ends. */
static fr_status inflate_some(input *in, unsigned char *out, size_t size, size_t *got,
                              fr_error *err) {
    z_stream *z = in->gzip;
    z->next_out = out;
    z->avail_out = (uInt)size;
    while (z->avail_out == size) {
        TRY(refill(in, err));
        int64_t at = in->taken - (int64_t)(in->raw_end - in->raw_at);
        if (in->ended) {
            if (in->inside)
                return fail(err, FR_EINPUT, "%s: the gzip data breaks off after %lld bytes",
                            in->name, (long long)at);
            break;
        }
        if (!in->inside) { /* after a member: another one, or bytes that do not belong here */
            if (in->raw[in->raw_at] != 0x1f)
                return fail(err, FR_EINPUT,
                            "%s: bytes that are not gzip follow the gzip data at byte %lld",
                            in->name, (long long)at);
            (void)inflateReset(z);
            in->inside = true;
        }
        z->next_in = in->raw + in->raw_at;
        z->avail_in = (uInt)(in->raw_end - in->raw_at);
        int result = inflate(z, Z_NO_FLUSH);
        in->raw_at = in->raw_end - z->avail_in;
        at = in->taken - (int64_t)z->avail_in;
        if (result == Z_STREAM_END)
            in->inside = false;
        else if (result == Z_MEM_ERROR)
            return fail_memory(err, 0);
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return fail(err, FR_EINPUT, "%s: damaged gzip data near byte %lld%s%s", in->name,
                        (long long)at, z->msg ? ": " : "", z->msg ? z->msg : "");
    }
    *got = size - z->avail_out;
    return FR_OK;
}

int64_t input_most(const input *in) {
    if (in->fd >= 0 && !in->size) return INT64_MAX;
    return in->gzip ? in->size > INT64_MAX / GZIP_RATIO ? INT64_MAX : in->size * GZIP_RATIO
                    : in->size;
}

fr_status input_read(input *in, void *out, size_t size, size_t *got, fr_error *err) {
    *got = 0;
    if (in->gzip) return inflate_some(in, out, size, got, err);
    size_t have = in->raw_end - in->raw_at;
    if (!have) /* in pieces that are still in the cache when they are hashed and parsed */
        return in->ended ? FR_OK : take(in, out, size < RAW_BYTES ? size : RAW_BYTES, got, err);
    *got = have < size ? have : size; /* the first piece, which was read to recognise gzip */
    memcpy(out, in->raw + in->raw_at, *got);
    in->raw_at += *got;
    return FR_OK;
}

void input_sha256(input *in, char out[65]) { sha256_end(&in->hash, out); }

void input_close(input *in) {
    if (in->gzip) inflateEnd(in->gzip);
    free(in->gzip);
    free(in->raw);
    sha256_end(&in->hash, NULL);
    if (in->fd >= 0) close(in->fd);
    *in = (input){.fd = -1};
}
