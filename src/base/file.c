/* file.c - see file.h. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_BUFFER = 1 << 18,
    SYNC_BYTES = 1 << 23, /* written before the disk is set to work on them */
};

/* ---- writer ---- */

fr_status writer_open(writer *w, const char *path, fr_error *err) {
    *w = (writer){.fd = -1, .open = true};
    w->path = strdup(path);
    w->buffer = malloc(WRITE_BUFFER);
    if (asprintf(&w->temporary, "%s.tmp-%ld", path, (long)getpid()) < 0) w->temporary = NULL;
    if (!w->path || !w->buffer || !w->temporary) return fail_memory(err, WRITE_BUFFER);
    if (directory_is(path)) return fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    w->fd = open(w->temporary, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
    return w->fd < 0 ? fail_errno(err, "%s: cannot be written", path) : FR_OK;
}

static fr_status write_all(writer *w, const unsigned char *bytes, size_t size, fr_error *err) {
    while (size > 0) {
        ssize_t done = write(w->fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(err, "%s: cannot be written", w->path);
        bytes += done;
        size -= (size_t)done;
        w->stored += done;
    }
    /* Started now, the disk works while we do, and less is left for the sync of commit. Only a
     * hint: errors come up there. */
    if (!w->scratch && w->stored - w->started >= SYNC_BYTES) {
        (void)sync_file_range(w->fd, w->started, w->stored - w->started, SYNC_FILE_RANGE_WRITE);
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
    return ftruncate(w->fd, size) ? fail_errno(err, "%s: cannot be written", w->path) : FR_OK;
}

fr_status writer_put_at(writer *w, int64_t place, const void *bytes, size_t size, fr_error *err) {
    if (w->used) TRY(flush(w, err));
    const char *from = bytes;
    while (size > 0) {
        ssize_t done = pwrite(w->fd, from, size, place);
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
    if (!w->scratch && fsync(w->fd)) return fail_errno(err, "%s: cannot be written", w->path);
    if (rename(w->temporary, w->path))
        return fail_errno(err, "%s: cannot be put in place", w->path);
    free(w->temporary);
    w->temporary = NULL; /* committed: discard has nothing to remove */
    writer_discard(w);
    return FR_OK;
}

void writer_discard(writer *w) {
    if (!w->open) return;
    if (w->fd >= 0) close(w->fd);
    if (w->temporary && w->fd >= 0) unlink(w->temporary);
    free(w->path);
    free(w->temporary);
    free(w->buffer);
    *w = (writer){.fd = -1};
}

/* ---- mapping ---- */

fr_status mapping_open(const char *path, mapping *out, fr_error *err) {
    *out = (mapping){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno(err, "%s: cannot be read", path);
    fr_status status = FR_OK;
    struct stat facts;
    if (fstat(fd, &facts)) {
        status = fail_errno(err, "%s: cannot be read", path);
    } else if (S_ISDIR(facts.st_mode)) {
        status = fail(err, FR_EFILE, "%s: is a directory, expected a file", path);
    } else if (facts.st_size > 0) {
        void *at = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED)
            status = fail_errno(err, "%s: cannot be mapped", path);
        else
            *out = (mapping){at, (size_t)facts.st_size};
    }
    close(fd);
    return status;
}

void mapping_forget(const mapping *m, size_t size) {
    size &= ~(size_t)4095;
    if (m->bytes && size) (void)madvise((void *)(uintptr_t)m->bytes, size, MADV_DONTNEED);
}

void mapping_close(mapping *m) {
    if (m->bytes) munmap((void *)(uintptr_t)m->bytes, m->size);
    *m = (mapping){0};
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
                fail(err, FR_EFILE, "%s: also holds %s, which --force would remove; move it away",
                     path, entry->d_name);
    }
    closedir(folder);
    return status;
}

void directory_remove(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *inner = path_join(path, entry->d_name);
        if (!inner) continue;
        struct stat facts;
        if (!lstat(inner, &facts) && S_ISDIR(facts.st_mode))
            directory_remove(inner);
        else
            unlink(inner);
        free(inner);
    }
    closedir(folder);
    rmdir(path);
}

fr_status directory_temporary(char **out, fr_error *err) {
    const char *base = getenv("TMPDIR");
    *out = path_join(base && *base ? base : "/tmp", "fullrank-XXXXXX");
    if (!*out) return fail_memory(err, 0);
    if (mkdtemp(*out)) return FR_OK;
    fr_status status = fail_errno(err, "%s: temporary directory cannot be made", *out);
    free(*out);
    *out = NULL;
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
            if (!force) return fail(err, FR_EFILE, "%s: exists; --force replaces it", target);
            TRY(guard(s->target, err));
            s->replace = true;
        }
    }
    char *place = NULL;
    if (asprintf(&place, "%s.tmp-%ld", s->target, (long)getpid()) < 0) return fail_memory(err, 0);
    directory_remove(place); /* what a killed run with the same process number left */
    if (mkdir(place, 0777)) {
        fr_status status = fail_errno(err, "%s: directory cannot be made", target);
        free(place);
        return status;
    }
    s->place = place;
    return FR_OK;
}

static void sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd); /* best effort: some file systems refuse it for directories */
    close(fd);
}

fr_status staging_commit(staging *s, fr_error *err) {
    sync_directory(s->place);
    /* rename replaces an empty directory; a full one is exchanged in one step, then removed. */
    if (rename(s->place, s->target)) {
        if (!s->replace || renameat2(AT_FDCWD, s->place, AT_FDCWD, s->target, RENAME_EXCHANGE))
            return fail_errno(err, "%s: cannot be put in place", s->target);
        directory_remove(s->place);
    }
    free(s->place);
    s->place = NULL;
    return FR_OK;
}

void staging_discard(staging *s) {
    if (s->place) directory_remove(s->place);
    free(s->place);
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
