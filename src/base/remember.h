/* remember.h - the SHA-256 of large files, remembered from run to run.
 *
 * Hashing a file of scores takes longer than ranking it. So the hash is written to a table in the
 * user's cache directory: $XDG_CACHE_HOME/fullrank, or .cache/fullrank in the home directory. A
 * line of the table has the file's size and time of change and a fast fingerprint of all its bytes.
 * The hash is taken from the line only if all three are still the same. A program that writes
 * through a mapping may leave the time unchanged; the fingerprint detects this. */
#ifndef FR_BASE_REMEMBER_H
#define FR_BASE_REMEMBER_H

#include "base/file.h"

/* The SHA-256 of a mapped file, as text: remembered, or computed and then remembered. If there is
 * no place for a table, it is computed every time; this is not an error. */
fr_status remember_sha256(const mapping *m, char out[65], fr_error *err);

#endif
