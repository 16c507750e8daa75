/* import.h - import with a word on where the file came from; the rest is in fullrank.h, chapter 3.
 */
#ifndef FR_DATA_IMPORT_H
#define FR_DATA_IMPORT_H

#include "base/context.h"

typedef struct import_origin {
    const char *name; /* what the manifest calls the file */
    const char *url;  /* NULL if it was not downloaded */
} import_origin;

/* fr_import_file with `origin` in the manifest. */
fr_status import_file(const char *input_path, const import_origin *origin, const char *output,
                      const fr_import *settings, const fr_context *context, fr_error *err);

#endif
