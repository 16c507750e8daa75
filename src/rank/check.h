/* check.h - checks rank records before anything is computed from them.
 *
 * Records come from files that anyone may have written. After this check the counts are consistent:
 * 0 <= above + tied <= negatives in the catalog and in both parts of it, so later code may subtract
 * and index. Records made from counts (fr_rank_counts) may all lack the counts of the parts.
 * Records against given lists of negatives lack them too; their seen_n is -1.
 */
#ifndef FR_RANK_CHECK_H
#define FR_RANK_CHECK_H

#include "base/status.h"

/* FR_EINPUT naming the first record that contradicts itself, or FR_EUSAGE for an unknown `oov`. */
fr_status check_records(const fr_record *records, int64_t count, int oov, fr_error *err);

/* True if covered records have the counts among seen destinations. Either all or none have them. */
bool check_knows_seen(const fr_record *records, int64_t count);
/* True if a covered record was made against a given list of negatives. */
static inline bool check_is_listed(const fr_record *r) { return r->seen_n == -1; }
/* Refuses records without these counts, for tables of several rankings. `file` is for the message.
 */
fr_status check_needs_seen(const fr_record *records, int64_t count, const char *file,
                           fr_error *err);
/* Refuses records without counts among training destinations, for the sampler `name`. */
fr_status check_needs_trained(const fr_record *records, int64_t count, const char *name,
                              fr_error *err);

#endif
