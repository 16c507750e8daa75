/* import.h - import with the origin of the file, and what tables and arrays share; the rest is in
 * fullrank.h, chapter 3. */
#ifndef FR_DATA_IMPORT_H
#define FR_DATA_IMPORT_H

#include "data/columns.h"

typedef struct import_origin {
    const char *name; /* what the manifest calls the file */
    const char *url;  /* NULL if it was not downloaded */
} import_origin;

/* fr_import_file with `origin` in the manifest. */
fr_status import_file(const char *input_path, const import_origin *origin, const char *output,
                      const fr_import *settings, const fr_context *context, fr_error *err);

/* The unit of the settings' times: how many make a second, and its name. */
double import_unit(const fr_import *settings);
const char *import_unit_name(const fr_import *settings);
/* Logs notices about the import: rows out of order, a split, numeric times that look like another
 * unit. */
void import_tell(const char *name, const columns *out, const fr_import *settings, bool dates,
                 const fr_context *context);

#endif
