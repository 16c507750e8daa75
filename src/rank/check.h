/* check.h - rank records make sense before anything is computed from them.
 *
 * Records come from files anyone may have written. After this check counts add up: 0 <= above +
 * tied <= negatives in the catalog and in both parts of it, so later code may subtract and index.
 * Records made from counts (fr_rank_counts) may lack the counts of the parts; then all do. So do
 * those made against given lists of negatives, whose seen_n is -1.
 */
#ifndef FR_RANK_CHECK_H
#define FR_RANK_CHECK_H

#include "base/status.h"

/* FR_EINPUT naming the first record that contradicts itself, or FR_EUSAGE for an unknown `oov`. */
fr_status check_records(const fr_record *records, int64_t count, int oov, fr_error *err);

/* Do covered records know the counts among seen destinations? All do or none, or the check fails.
 */
bool check_knows_seen(const fr_record *records, int64_t count);
/* Was a covered record made against a given list of negatives? It knows the list alone. */
static inline bool check_is_listed(const fr_record *r) { return r->seen_n == -1; }
/* Refuses records that do not, for what shows them beside others. `file` is for the message. */
fr_status check_needs_seen(const fr_record *records, int64_t count, const char *file,
                           fr_error *err);
/* Refuses records without counts among training destinations, for the sampler `name`. */
fr_status check_needs_trained(const fr_record *records, int64_t count, const char *name,
                              fr_error *err);

#endif
