/* spec.h - checks the text of a scorer without opening it, for documents that name many. */
#ifndef FR_RANK_SPEC_H
#define FR_RANK_SPEC_H

#include "base/status.h"

/* FR_EUSAGE if it is not a scorer: checks its kind, and for a baseline the name and all options. No
 * file is read. */
fr_status spec_check(const char *spec, fr_error *err);
/* Loads a plug-in and checks its options; other scorers pass. */
fr_status spec_check_plugin(const char *spec, fr_error *err);

#endif
