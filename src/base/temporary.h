/* temporary.h - files and directories under construction, next to their final place.
 *
 * TARGET is first made as TARGET.tmp-frXXXXXXXX with eight random hexadecimal digits. It is always
 * new (O_EXCL), so a link or file that someone put there is never opened. Its process holds a lock
 * on it (flock), which the system releases when the process ends. So a temporary that can be locked
 * was left by a killed run, and the next run with the same target removes it, if it belongs to the
 * same user. On file systems without locks nothing is removed. Modes follow the umask, as for any
 * other file.
 */
#ifndef FR_BASE_TEMPORARY_H
#define FR_BASE_TEMPORARY_H

#include "base/status.h"

typedef struct temporary {
    char *path; /* NULL: none, or moved or removed */
    int folder; /* the directory of both the temporary and its target */
    int fd;     /* the file, for reading and writing, or the directory; locked */
    bool open;  /* both are open */
} temporary;

enum { TEMPORARY_FILE, TEMPORARY_DIRECTORY };

/* Removes leftovers of killed runs for `target`, then makes a file or an empty directory. */
fr_status temporary_make(temporary *t, const char *target, int kind, unsigned mode, fr_error *err);
/* Renames it to `target` and syncs their directory. With `exchange` it replaces a directory in
 * one step, and the old one is then removed. */
fr_status temporary_move(temporary *t, const char *target, bool exchange, bool sync, fr_error *err);
/* Removes it unless it was moved; harmless on a zeroed one. */
void temporary_discard(temporary *t);
/* Only removes leftovers of killed runs for `target`. */
void temporary_clean(const char *target);

/* Removes a directory and everything in it; a missing one is not an error. Links are removed,
 * never followed. */
void directory_remove(const char *path);

#endif
