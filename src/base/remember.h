/* remember.h - the SHA-256 of large files, remembered from run to run.
 *
 * To hash a file of scores takes longer than to rank it. So the hash is written to a table in the
 * user's cache directory: $XDG_CACHE_HOME/fullrank, or .cache/fullrank in the home directory. A
 * line of the table has the file's size and time of change and a fast fingerprint of all its bytes;
 * the hash is taken from the line only if all three are still the same. A program that changes a
 * file through a mapping, which need not change the time, is found out by the fingerprint.
 */
#ifndef FR_BASE_REMEMBER_H
#define FR_BASE_REMEMBER_H

#include "base/file.h"

/* The SHA-256 of a mapped file, as text: remembered, or computed and then remembered. Where no
 * table can be kept, it is always computed; that is no error. */
fr_status remember_sha256(const mapping *m, char out[65], fr_error *err);

#endif
