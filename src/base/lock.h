/* lock.h - one process at a time writes to an output.
 *
 * The lock is the system's (flock) on an empty file beside what it protects. The system lets go of
 * it when the process ends, however that comes about, so a file that a killed process leaves behind
 * locks nobody out; whoever had the lock removes it. Where a file system has no locks, nothing is
 * locked.
 */
#ifndef FR_BASE_LOCK_H
#define FR_BASE_LOCK_H

#include "base/status.h"

typedef struct lock {
    char *path; /* NULL = not taken */
    int file;
} lock;

/* Takes the lock on the file `path`, which is made if need be. If another process has it, waits, or
 * fails at once with "NAME: another process is writing to it". lock_release in any case. */
fr_status lock_take(lock *l, const char *path, bool wait, const char *name, fr_error *err);
void lock_release(lock *l);

#endif
