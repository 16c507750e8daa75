/* file.c - see file.h. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/memory.h"
#include "base/os.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_BUFFER = 1 << 18,
    SYNC_BYTES = 1 << 23, /* bytes between two write-back hints */
    HASH_BYTES = 1 << 25, /* mapped bytes hashed before their pages are released */
};

/* ---- writer ---- */

fr_status writer_open(writer *w, const char *path, fr_error *err) {
    *w = (writer){.open = true};
    w->path = strdup(path);
    w->buffer = malloc(WRITE_BUFFER);
    if (!w->path || !w->buffer) return fail_memory(err, WRITE_BUFFER);
    if (directory_is(path)) return fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    return temporary_make(&w->place, path, TEMPORARY_FILE, 0666, err);
}

static fr_status write_all(writer *w, const unsigned char *bytes, size_t size, fr_error *err) {
    while (size > 0) {
        ssize_t done = write(w->place.fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(err, "%s: cannot be written", w->path);
        bytes += done;
        size -= (size_t)done;
        w->stored += done;
    }
    /* The disk starts to write now, while we compute, so the sync of commit has less to do. This is
     * only a hint: commit reports errors. */
    if (!w->scratch && w->stored - w->started >= SYNC_BYTES) {
        os_write_back(w->place.fd, w->started, w->stored - w->started);
        w->started = w->stored;
    }
    return FR_OK;
}

static fr_status flush(writer *w, fr_error *err) {
    size_t size = w->used;
    w->used = 0;
    return write_all(w, w->buffer, size, err);
}

fr_status writer_put(writer *w, const void *bytes, size_t size, fr_error *err) {
    w->written += (int64_t)size;
    if (size >= WRITE_BUFFER) {
        TRY(flush(w, err));
        return write_all(w, bytes, size, err);
    }
    if (w->used + size > WRITE_BUFFER) TRY(flush(w, err));
    if (size) memcpy(w->buffer + w->used, bytes, size); /* an empty list may be NULL */
    w->used += size;
    return FR_OK;
}

fr_status writer_extend(writer *w, int64_t size, fr_error *err) {
    TRY(flush(w, err));
    w->written = size;
    return ftruncate(w->place.fd, size) ? fail_errno(err, "%s: cannot be written", w->path) : FR_OK;
}

fr_status writer_put_at(writer *w, int64_t place, const void *bytes, size_t size, fr_error *err) {
    if (w->used) TRY(flush(w, err));
    const char *from = bytes;
    while (size > 0) {
        ssize_t done = pwrite(w->place.fd, from, size, place);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(err, "%s: cannot be written", w->path);
        from += done;
        place += done;
        size -= (size_t)done;
    }
    return FR_OK;
}

fr_status writer_commit(writer *w, fr_error *err) {
    TRY(flush(w, err));
    struct stat facts;
    if (w->read_only && !fstat(w->place.fd, &facts)) /* may fail on file systems without modes */
        (void)fchmod(w->place.fd, facts.st_mode & 0555);
    if (!w->scratch && fsync(w->place.fd)) return fail_errno(err, "%s: cannot be written", w->path);
    fr_status status = temporary_move(&w->place, w->path, false, !w->scratch, err);
    if (!status) writer_discard(w);
    return status;
}

void writer_discard(writer *w) {
    if (!w->open) return;
    temporary_discard(&w->place);
    free(w->path);
    free(w->buffer);
    *w = (writer){0};
}

/* The same for users of the library. */
struct fr_file {
    writer w;
};

fr_status fr_file_open(const char *path, fr_file **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(path, err);
    fr_file *file;
    TRY(ALLOCATE(file, 1, err));
    fr_status status = writer_open(&file->w, path, err);
    if (status)
        fr_file_close(file);
    else
        *out = file;
    return status;
}

fr_status fr_file_put(fr_file *file, const void *bytes, size_t size, fr_error *err) {
    NEED(file, err);
    if (size) NEED(bytes, err);
    return writer_put(&file->w, bytes, size, err);
}

fr_status fr_file_commit(fr_file *file, fr_error *err) {
    NEED(file, err);
    return writer_commit(&file->w, err);
}

void fr_file_close(fr_file *file) {
    if (!file) return;
    writer_discard(&file->w);
    free(file);
}

/* ---- mapping ---- */

/* A list of all mappings, so that a signal handler can name the file. Entries are added in front,
 * reused and never freed, because a handler may read the list at any moment. */
struct mapped {
    struct mapped *next;
    atomic_bool taken;
    _Atomic(const unsigned char *) bytes; /* NULL: nothing is mapped */
    size_t size;
    char *path;
};

static _Atomic(struct mapped *) all_mapped;

static struct mapped *find_entry(void) {
    for (struct mapped *m = all_mapped; m; m = m->next)
        if (!atomic_exchange(&m->taken, true)) return m;
    struct mapped *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->taken = true;
    m->next = all_mapped;
    while (!atomic_compare_exchange_weak(&all_mapped, &m->next, m)) continue;
    return m;
}

static fr_status list_mapping(mapping *m, const char *path, fr_error *err) {
    struct mapped *entry = find_entry();
    if (!entry) return fail_memory(err, sizeof *entry);
    m->listed = entry;
    entry->path = strdup(path);
    if (!entry->path) return fail_memory(err, strlen(path));
    entry->size = m->size;
    entry->bytes = m->bytes;
    return FR_OK;
}

static void unlist_mapping(mapping *m) {
    struct mapped *entry = m->listed;
    if (!entry) return;
    entry->bytes = NULL;
    free(entry->path);
    entry->path = NULL;
    entry->taken = false;
}

const char *fr_mapped_file(const void *address) {
    const unsigned char *at = address;
    for (const struct mapped *m = all_mapped; m; m = m->next) {
        const unsigned char *bytes = m->bytes;
        if (bytes && at >= bytes && (size_t)(at - bytes) < m->size) return m->path;
    }
    return NULL;
}

fr_status mapping_open(const char *path, mapping *out, fr_error *err) {
    *out = (mapping){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would wait for its writer */
    if (fd < 0) return fail_errno(err, "%s: cannot be read", path);
    fr_status status = FR_OK;
    struct stat facts;
    if (fstat(fd, &facts)) {
        status = fail_errno(err, "%s: cannot be read", path);
    } else if (S_ISDIR(facts.st_mode)) {
        status = fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    } else if (!S_ISREG(facts.st_mode)) {
        status = fail(err, FR_EFILE, "%s: is a pipe or a device, expected a file", path);
    } else if (facts.st_size > 0) {
        void *at = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            status = fail_errno(err, "%s: cannot be mapped", path);
        } else {
            *out = (mapping){.bytes = at, .size = (size_t)facts.st_size};
            status = list_mapping(out, path, err);
        }
    }
    if (status)
        mapping_close(out);
    else
        out->modified = os_modified(&facts);
    close(fd);
    return status;
}

void mapping_forget(const mapping *m, size_t size) {
    size &= ~(size_t)4095;
    if (m->bytes && size) (void)madvise((void *)(uintptr_t)m->bytes, size, MADV_DONTNEED);
}

fr_status mapping_sha256(const mapping *m, const fr_context *context, char out[65], fr_error *err) {
    sha256 hash;
    TRY(sha256_start(&hash, err));
    fr_status status = FR_OK;
    for (size_t at = 0; !status && at < m->size; at += HASH_BYTES) {
        size_t n = m->size - at < HASH_BYTES ? m->size - at : HASH_BYTES;
        sha256_add(&hash, m->bytes + at, n);
        mapping_forget(m, at);
        status = context_check(context, err);
    }
    sha256_end(&hash, status ? NULL : out);
    return status;
}

void mapping_close(mapping *m) {
    unlist_mapping(m);
    if (m->bytes) munmap((void *)(uintptr_t)m->bytes, m->size);
    *m = (mapping){0};
}

fr_status file_sha256(const char *path, char out[65], fr_error *err) {
    mapping file;
    TRY(mapping_open(path, &file, err));
    fr_status status = mapping_sha256(&file, NULL, out, err);
    mapping_close(&file);
    return status;
}

/* ---- directories ---- */

bool directory_is(const char *path) {
    struct stat facts;
    return !stat(path, &facts) && S_ISDIR(facts.st_mode);
}

bool directory_empty(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return false;
    int entries = 0;
    while (readdir(folder)) entries++;
    closedir(folder);
    return entries <= 2; /* "." and ".." */
}

fr_status directory_only(const char *path, const char *names, fr_error *err) {
    DIR *folder = opendir(path);
    if (!folder) return fail_errno(err, "%s: cannot be read", path);
    fr_status status = FR_OK;
    for (struct dirent *entry; !status && (entry = readdir(folder));) {
        char spaced[sizeof entry->d_name + 2];
        (void)snprintf(spaced, sizeof spaced, " %s ", entry->d_name);
        if (strcmp(spaced, " . ") != 0 && strcmp(spaced, " .. ") != 0 && !strstr(names, spaced))
            status =
                fail(err, FR_EFILE, "%s: also contains %s, which would be removed; move it away",
                     path, entry->d_name);
    }
    closedir(folder);
    return status;
}

fr_status staging_open(staging *s, const char *target, bool force, staging_guard *guard,
                       fr_error *err) {
    *s = (staging){0};
    s->target = strdup(target);
    if (!s->target) return fail_memory(err, strlen(target));
    for (size_t n = strlen(s->target); n > 1 && s->target[n - 1] == '/'; n--) s->target[n - 1] = 0;

    struct stat facts;
    if (!lstat(s->target, &facts)) {
        if (!S_ISDIR(facts.st_mode))
            return fail(err, FR_EFILE, "%s: exists and is not a directory", target);
        if (!directory_empty(s->target)) {
            if (!force) return fail(err, FR_EFORCE, "%s: exists", target);
            TRY(guard(s->target, err));
            s->replace = true;
        }
    } else if (errno != ENOENT) {
        return fail_errno(err, "%s: directory cannot be made", target);
    }
    TRY(temporary_make(&s->built, s->target, TEMPORARY_DIRECTORY, 0777, err));
    s->place = s->built.path;
    return FR_OK;
}

fr_status staging_temporary(staging *s, fr_error *err) {
    *s = (staging){0};
    const char *base = getenv("TMPDIR");
    s->target = path_join(base && *base ? base : "/tmp", "fullrank");
    if (!s->target) return fail_memory(err, 0);
    TRY(temporary_make(&s->built, s->target, TEMPORARY_DIRECTORY, 0700, err));
    s->place = s->built.path;
    return FR_OK;
}

fr_status staging_commit(staging *s, fr_error *err) {
    (void)fsync(s->built.fd); /* best effort: some file systems refuse it for directories */
    /* rename replaces an empty directory; a full one is exchanged in one step, then removed. */
    fr_status status = temporary_move(&s->built, s->target, false, true, err);
    if (status && s->built.path && s->replace)
        status = temporary_move(&s->built, s->target, true, true, err);
    s->place = s->built.path;
    return status;
}

void staging_discard(staging *s) {
    temporary_discard(&s->built);
    free(s->target);
    *s = (staging){0};
}

/* ---- paths ---- */

char *path_join(const char *folder, const char *name) {
    char *joined = NULL;
    size_t n = strlen(folder);
    const char *slash = n && folder[n - 1] == '/' ? "" : "/";
    return asprintf(&joined, "%s%s%s", folder, slash, name) < 0 ? NULL : joined;
}

const char *path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
