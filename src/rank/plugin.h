/* plugin.h - kinds of scorers from shared objects (fullrank.h, chapter 9). */
#ifndef FR_RANK_PLUGIN_H
#define FR_RANK_PLUGIN_H

#include "base/status.h"

/* The longest part of "FILE.so,option=value" that is the file: up to the first comma after the
 * last '/'. */
size_t plugin_file_length(const char *spec);

#endif
