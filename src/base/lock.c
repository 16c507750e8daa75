/* lock.c - see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file at `path` is still the one that was locked: its last owner may have removed it since. */
static bool is_there(int file, const char *path) {
    struct stat here, there;
    return !fstat(file, &here) && !lstat(path, &there) && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

fr_status lock_take(lock *l, const char *path, bool wait, const char *name, fr_error *err) {
    *l = (lock){.file = -1};
    if (!(l->path = strdup(path))) return fail_memory(err, strlen(path));
    for (;;) {
        int result;
        l->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (l->file < 0) return fail_errno(err, "%s: cannot be locked", name);
        do result = flock(l->file, LOCK_EX | (wait ? 0 : LOCK_NB));
        while (result && errno == EINTR && wait);
        if (result && errno == EWOULDBLOCK)
            return fail(err, FR_EFILE, "%s: another process is writing to it", name);
        if (result || is_there(l->file, path)) return FR_OK;
        (void)close(l->file);
    }
}

/* True if the file may be removed: this process still has the lock, and the file is empty. */
static bool is_mine(const lock *l) {
    struct stat facts;
    bool taken = flock(l->file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    return !taken && is_there(l->file, l->path) && !fstat(l->file, &facts) &&
           S_ISREG(facts.st_mode) && facts.st_size == 0;
}

void lock_release(lock *l) {
    if (!l->path) return;
    if (l->file >= 0) {
        if (is_mine(l)) (void)unlink(l->path);
        (void)close(l->file);
    }
    free(l->path);
    *l = (lock){.file = -1};
}
