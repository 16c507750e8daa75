/* temporary.h - files and directories under construction, beside their final place.
 *
 * What will be TARGET is made as TARGET.tmp-frXXXXXXXX with eight random hexadecimal digits, always
 * new (O_EXCL), so that a link or a file that someone put there is never opened. Who makes one
 * holds a lock on it (flock), which the system lets go when the process ends: a temporary that can
 * be locked was left by a run that was killed, and the next one for the same target removes it, if
 * it belongs to the same user. On file systems without locks nothing is removed. Modes are as the
 * umask says, as for any other file.
 */
#ifndef FR_BASE_TEMPORARY_H
#define FR_BASE_TEMPORARY_H

#include "base/status.h"

typedef struct temporary {
    char *path; /* NULL: none, or moved or removed */
    int folder; /* the directory that holds it and its target */
    int fd;     /* the file, for reading and writing, or the directory; locked */
    bool open;  /* the two are open */
} temporary;

enum { TEMPORARY_FILE, TEMPORARY_DIRECTORY };

/* Removes what killed runs left for `target`, then makes a file or an empty directory. */
fr_status temporary_make(temporary *t, const char *target, int kind, unsigned mode, fr_error *err);
/* Renames it to `target` and syncs their directory. With `exchange` it takes the place of a
 * directory in one step, which is then removed. */
fr_status temporary_move(temporary *t, const char *target, bool exchange, bool sync, fr_error *err);
/* Removes it unless it was moved; harmless on a zeroed one. */
void temporary_discard(temporary *t);
/* Removes what killed runs left for `target` and does no more. */
void temporary_clean(const char *target);

/* Removes a directory and everything in it; no error if it is not there. Links are removed, never
 * followed: of a link to a directory nothing is touched at all. */
void directory_remove(const char *path);

#endif
