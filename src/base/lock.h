/* lock.h - one process at a time writes to an output.
 *
 * The lock is a system lock (flock) on an empty file next to the output. The system releases it
 * when the process ends in any way, so the file of a killed process locks nobody out. The owner of
 * the lock removes the file. If a file system has no locks, nothing is locked.
 */
#ifndef FR_BASE_LOCK_H
#define FR_BASE_LOCK_H

#include "base/status.h"

typedef struct lock {
    char *path; /* NULL = not taken */
    int file;
} lock;

/* Takes the lock on the file `path`, which is made if necessary. If another process has it, waits,
 * or fails at once with "NAME: another process is writing to it". Call lock_release in any case. */
fr_status lock_take(lock *l, const char *path, bool wait, const char *name, fr_error *err);
void lock_release(lock *l);

#endif
