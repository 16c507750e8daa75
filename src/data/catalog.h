/* catalog.h - reading a user's list of destination ids. */
#ifndef FR_DATA_CATALOG_H
#define FR_DATA_CATALOG_H

#include "base/memory.h"

typedef ARRAY(int64_t) id_list;

/* Reads a catalog file: one id per line (blank lines and lines that begin with # do not count), or
 * a .npy of int64. The result is ascending; an id listed twice is an error naming both lines. */
fr_status catalog_read(const char *path, id_list *out, fr_error *err);

#endif
