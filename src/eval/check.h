/* check.h - rank records make sense before anything is computed from them.
 *
 * Records come from files anyone may have written. After this check counts add up: 0 <= above +
 * tied <= negatives in the catalog and in both parts of it, so later code may subtract and index.
 */
#ifndef FR_EVAL_CHECK_H
#define FR_EVAL_CHECK_H

#include "base/status.h"

/* FR_EINPUT naming the first record that contradicts itself, or FR_EUSAGE for an unknown `oov`. */
fr_status check_records(const fr_record *records, int64_t count, int oov, fr_error *err);

#endif
