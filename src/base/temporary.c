/* temporary.c - see temporary.h.
 *
 * All paths are relative to an open directory, and links in the last component are never followed.
 * Between making and locking a temporary, another process may take it for a dead one. Its maker
 * then finds it locked or gone, and makes another. Between locking and removing a dead one, its
 * name may get a new meaning, so both sides compare the name with the locked file.
 */
#define _GNU_SOURCE
#include "base/temporary.h"

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 8, TRIES = 100 };
static const char mark[] = ".tmp-fr";

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The directory of `path`; it is enough if it can be entered, even if it cannot be listed. */
static int open_folder(const char *path) {
    size_t n = (size_t)(name_of(path) - path);
    char *folder = n ? strndup(path, n) : strdup(".");
    if (!folder) return -1; /* errno says why */
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) fd = os_open_unlisted(folder);
    int why = errno;
    free(folder);
    errno = why;
    return fd;
}

/* True if `name` is still the file that was opened as `fd`. */
static bool still_named(int fd, int folder, const char *name) {
    struct stat opened, named;
    return !fstat(fd, &opened) && !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* ---- removing ---- */

static void remove_entry(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) { /* no directory, or a closed one */
        if (unlinkat(folder, name, 0)) (void)unlinkat(folder, name, AT_REMOVEDIR);
        return;
    }
    os_each_entry(fd, remove_entry);
    (void)unlinkat(folder, name, AT_REMOVEDIR);
    close(fd);
}

void directory_remove(const char *path) {
    char *plain = strdup(path); /* without the '/' at the end, which would follow a link */
    if (!plain) return;
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--) plain[n - 1] = 0;
    struct stat facts;
    int folder = open_folder(plain);
    if (folder >= 0 && !fstatat(folder, name_of(plain), &facts, AT_SYMLINK_NOFOLLOW) &&
        S_ISDIR(facts.st_mode))
        remove_entry(folder, name_of(plain));
    if (folder >= 0) close(folder);
    free(plain);
}

/* ---- what killed runs left ---- */

static bool is_temporary(const char *entry, const char *target) {
    size_t n = strlen(target), m = sizeof mark - 1;
    return !strncmp(entry, target, n) && !strncmp(entry + n, mark, m) &&
           strspn(entry + n + m, "0123456789abcdef") == DIGITS && !entry[n + m + DIGITS];
}

static void remove_dead(int folder, const char *name) {
    struct stat facts;
    if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) || facts.st_uid != geteuid()) return;
    bool directory = S_ISDIR(facts.st_mode);
    if (!directory && !S_ISREG(facts.st_mode)) return;
    int how = directory ? O_RDONLY | O_DIRECTORY : O_RDWR; /* NFS locks only what may be written */
    int fd = openat(folder, name, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (!flock(fd, LOCK_EX | LOCK_NB) && still_named(fd, folder, name)) {
        if (directory) os_each_entry(fd, remove_entry);
        (void)unlinkat(folder, name, directory ? AT_REMOVEDIR : 0);
    }
    close(fd);
}

static void clean(int folder, const char *target) {
    int list = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = list < 0 ? NULL : fdopendir(list);
    if (!entries) {
        if (list >= 0) close(list);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (is_temporary(entry->d_name, target)) remove_dead(folder, entry->d_name);
    closedir(entries);
}

void temporary_clean(const char *target) {
    int folder = open_folder(target);
    if (folder < 0) return;
    clean(folder, name_of(target));
    close(folder);
}

/* ---- making ---- */

/* One try under one name. False with errno 0: the name is taken, or a cleaner was faster. */
static bool make(temporary *t, const char *name, int kind, unsigned mode) {
    if (kind == TEMPORARY_DIRECTORY) {
        if (mkdirat(t->folder, name, mode)) goto failed;
        t->fd = openat(t->folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (t->fd < 0) {
            int why = errno;
            (void)unlinkat(t->folder, name, AT_REMOVEDIR);
            errno = why == ENOENT ? EEXIST : why; /* gone: a cleaner was faster */
        }
    } else {
        t->fd = openat(t->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    if (t->fd < 0) goto failed;
    bool lost = flock(t->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!lost && still_named(t->fd, t->folder, name)) return true;
    close(t->fd);
    t->fd = -1;
    errno = 0;
    return false;
failed:
    if (errno == EEXIST) errno = 0;
    return false;
}

fr_status temporary_make(temporary *t, const char *target, int kind, unsigned mode, fr_error *err) {
    const char *what =
        kind == TEMPORARY_DIRECTORY ? "directory cannot be made" : "cannot be written";
    *t = (temporary){.fd = -1, .folder = open_folder(target), .open = true};
    if (t->folder < 0) return fail_errno(err, "%s: %s", target, what);
    clean(t->folder, name_of(target));
    for (int i = 0; i < TRIES; i++) {
        uint32_t digits;
        if (os_random(&digits, sizeof digits)) break;
        char *path = NULL;
        if (asprintf(&path, "%s%s%08x", target, mark, digits) < 0) {
            temporary_discard(t);
            return fail_memory(err, strlen(target));
        }
        if (make(t, name_of(path), kind, mode)) {
            t->path = path;
            return FR_OK;
        }
        int why = errno;
        free(path);
        errno = why;
        if (why) break;
        errno = EEXIST; /* the error to report if this was the last try */
    }
    fr_status status = fail_errno(err, "%s: %s", target, what);
    temporary_discard(t);
    return status;
}

static fr_status sync_folder(int folder, const char *target, fr_error *err) {
    /* Some file systems cannot sync a directory, and a directory that cannot be listed cannot be
     * synced either. */
    if (!fsync(folder) || errno == EINVAL || errno == EBADF || errno == ENOTSUP) return FR_OK;
    return fail_errno(err, "%s: in place, but its directory cannot be synced", target);
}

fr_status temporary_move(temporary *t, const char *target, bool exchange, bool sync,
                         fr_error *err) {
    const char *name = name_of(t->path), *last = name_of(target);
    char spare[256]; /* for systems that cannot exchange at once */
    (void)snprintf(spare, sizeof spare, "%.240s.before", name);
    if (exchange ? os_exchange(t->folder, name, last, spare)
                 : renameat(t->folder, name, t->folder, last))
        return fail_errno(err, "%s: cannot be put in place", target);
    fr_status status = sync ? sync_folder(t->folder, target, err) : FR_OK;
    if (exchange) remove_entry(t->folder, name_of(t->path)); /* what was there before */
    free(t->path);
    t->path = NULL;
    temporary_discard(t);
    return status;
}

void temporary_discard(temporary *t) {
    if (!t->open) return;
    if (t->path) remove_entry(t->folder, name_of(t->path));
    if (t->fd >= 0) close(t->fd);
    if (t->folder >= 0) close(t->folder);
    free(t->path);
    *t = (temporary){.fd = -1, .folder = -1};
}
