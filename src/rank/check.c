/* check.c - see check.h. */
#include "rank/check.h"

static bool counts_fit(int32_t size, int32_t above, int32_t tied) {
    return size >= 0 && above >= 0 && tied >= 0 && above <= size && tied <= size - above;
}

/* True if these are a subset of all negatives. Records made from counts may have -1. */
static bool part_fits(const fr_record *r, int32_t n, int32_t above, int32_t tied) {
    int32_t negatives = r->n - 1;
    if (n < 0 || n > negatives) return false;
    if (above == -1 && tied == -1) return true;
    return counts_fit(n, above, tied) && above <= r->above && tied <= r->tied &&
           n - above - tied <= negatives - r->above - r->tied;
}

static fr_status check_part(const fr_record *r, int64_t row, const char *which, int32_t n,
                            int32_t above, int32_t tied, fr_error *err) {
    if (part_fits(r, n, above, tied)) return FR_OK;
    return fail(err, FR_EINPUT,
                "record %lld (event %lld): of %d %s negatives %d above and %d tied, expected a "
                "part of %d with %d above and %d tied",
                (long long)row, (long long)r->event, n, which, above, tied, r->n - 1, r->above,
                r->tied);
}

static fr_status check_record(const fr_record *r, int64_t number, fr_error *err) {
    long long row = (long long)number, event = (long long)r->event;
    if (r->covered > 1 || r->repeated > 1)
        return fail(err, FR_EINPUT,
                    "record %lld (event %lld): covered %d and repeated %d, expected 0 or 1", row,
                    event, r->covered, r->repeated);
    if (r->covered) {
        int32_t negatives = r->n > 0 ? r->n - 1 : 0;
        if (r->n < 1 || !counts_fit(negatives, r->above, r->tied))
            return fail(err, FR_EINPUT,
                        "record %lld (event %lld): %d above and %d tied, expected counts among the "
                        "other %d of a catalog of %d",
                        row, event, r->above, r->tied, negatives, r->n);
        if (!check_is_listed(r) || r->seen_above != -1 || r->seen_tied != -1)
            TRY(check_part(r, row, "seen", r->seen_n, r->seen_above, r->seen_tied, err));
        if (r->tied_before < -1 || r->tied_before > r->tied) /* -1: not recorded */
            return fail(err, FR_EINPUT,
                        "record %lld (event %lld): %d tied before the positive, expected a part of "
                        "%d tied",
                        row, event, r->tied_before, r->tied);
        if (r->train_n != -1) /* an earlier release did not record them */
            TRY(check_part(r, row, "trained", r->train_n, r->train_above, r->train_tied, err));
        double mass = r->pop_above + r->pop_tied + r->pop_self; /* NaN: not recorded */
        if (r->pop_above < 0 || r->pop_tied < 0 || r->pop_self < 0 || mass > 1 + 1e-9)
            return fail(err, FR_EINPUT,
                        "record %lld (event %lld): popularity %g above, %g tied, %g of its own, "
                        "expected shares of 1",
                        row, event, r->pop_above, r->pop_tied, r->pop_self);
    }
    if (r->avail_n >= 0 &&
        (r->avail_n < 1 || !counts_fit(r->avail_n - 1, r->avail_above, r->avail_tied)))
        return fail(err, FR_EINPUT,
                    "record %lld (event %lld): %d above and %d tied, expected counts among the "
                    "others of a time-available catalog of %d",
                    row, event, r->avail_above, r->avail_tied, r->avail_n);
    return FR_OK;
}

bool check_knows_seen(const fr_record *records, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (records[i].covered) return records[i].seen_above >= 0;
    return true;
}

fr_status check_needs_seen(const fr_record *records, int64_t count, const char *file,
                           fr_error *err) {
    if (check_knows_seen(records, count)) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: has no seen_above and seen_tied, which tables and figures need: it was made "
                "from counts or against given negatives",
                file);
}

fr_status check_needs_trained(const fr_record *records, int64_t count, const char *name,
                              fr_error *err) {
    for (int64_t i = 0; i < count; i++)
        if (records[i].covered && records[i].train_above < 0)
            return fail(err, FR_EINPUT,
                        "record %lld (event %lld): has no train_n, train_above and train_tied, "
                        "which %s needs: it was made by an earlier release, from counts or against "
                        "given negatives",
                        (long long)i, (long long)records[i].event, name);
    return FR_OK;
}

fr_status check_records(const fr_record *records, int64_t count, int oov, fr_error *err) {
    if (oov != FR_OOV_EXCLUDE && oov != FR_OOV_ZERO)
        return fail(err, FR_EUSAGE, "oov %d is not known, expected FR_OOV_EXCLUDE or FR_OOV_ZERO",
                    oov);
    if (count < 0)
        return fail(err, FR_EUSAGE, "%lld records, expected 0 or more", (long long)count);
    if (count) NEED(records, err);
    bool known = check_knows_seen(records, count);
    for (int64_t i = 0; i < count; i++) {
        TRY(check_record(&records[i], i, err));
        if (records[i].covered && (records[i].seen_above >= 0) != known)
            return fail(err, FR_EINPUT,
                        "record %lld (event %lld): %s counts among seen destinations, expected all "
                        "records to have them or none",
                        (long long)i, (long long)records[i].event, known ? "no" : "has");
    }
    return FR_OK;
}
