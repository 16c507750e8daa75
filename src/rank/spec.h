/* spec.h - looking at the text of a scorer without opening it, for documents that name many. */
#ifndef FR_RANK_SPEC_H
#define FR_RANK_SPEC_H

#include "base/status.h"

/* FR_EUSAGE if it is no scorer: its kind, and of a baseline the name and all options. No file is
 * looked at. */
fr_status spec_check(const char *spec, fr_error *err);
/* Loads a plug-in and looks at its options; other scorers are fine. */
fr_status spec_check_plugin(const char *spec, fr_error *err);

#endif
