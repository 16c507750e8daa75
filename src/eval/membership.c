/* membership.c - repeated and new positives against seen and unseen negatives (fullrank.h, chapter
 * 14).
 *
 * The catalog of this table is A(i), every destination that occurred before the event (PROTOCOL 8):
 * the time-available one. Records made with it have the counts that a cell needs: above and tied
 * among all and among seen candidates. So the table is four samplers of src/eval/sampler.c, with
 * the rule that an event counts only if it has K negatives of both kinds.
 */
#include "rank/check.h"
#include "rank/ranking.h"

#include <math.h>
#include <string.h>

const char *const fr_cell_names[FR_CELLS] = {
    [FR_REPEATED_SEEN] = "repeated-seen",
    [FR_REPEATED_UNSEEN] = "repeated-unseen",
    [FR_NEW_SEEN] = "new-seen",
    [FR_NEW_UNSEEN] = "new-unseen",
};

static fr_status fill_cell(const fr_ranking *r, const char *name, int64_t k, int64_t seed,
                           const fr_context *context, fr_cell *out, fr_error *err) {
    fr_sampling sampling = {.sampler = name,
                            .small = FR_SMALL_INELIGIBLE,
                            .oov = r->protocol.oov,
                            .k = &k,
                            .k_count = 1};
    fr_expected exact;
    fr_draws drawn;
    TRY(fr_expected_compute(r->records, r->count, &sampling, context, &exact, err));
    TRY(fr_draws_compute(r->records, r->count, &sampling, seed, 1, context, &drawn, NULL, err));
    *out = (fr_cell){name, exact.events, exact.mrr, exact.sd, drawn.mrr};
    return FR_OK;
}

/* The largest K for which an event has that many negatives of both kinds; -1 without events. */
static int64_t largest_k(const fr_ranking *r) {
    int64_t most = -1;
    for (int64_t i = 0; i < r->count; i++) {
        const fr_record *e = &r->records[i];
        if (!e->covered) continue;
        int64_t seen = e->seen_n, unseen = e->n - 1 - seen, both = seen < unseen ? seen : unseen;
        if (both > most) most = both;
    }
    return most;
}

fr_status fr_membership_compute(const fr_ranking *ranking, int64_t k, int64_t seed,
                                const fr_context *context, fr_membership *out, fr_error *err) {
    const fr_ranking *r = ranking;
    NEED(ranking, err);
    NEED(out, err);
    const fr_option *catalog = fr_options_find(fr_protocol_fields, "catalog");
    char word[32];
    fr_options_text(catalog, &r->protocol, word, sizeof word);
    if (r->protocol.catalog != FR_CATALOG_TIME)
        return fail(err, FR_EINPUT,
                    "records of %s with catalog %s, expected catalog time: the table's negatives "
                    "are all destinations that occurred before their event",
                    r->scorer, word);
    if (r->protocol.sample)
        return fail(err, FR_EINPUT,
                    "records of a sample of %lld of %lld test events, expected all: the table has "
                    "no estimates",
                    (long long)r->protocol.sample, (long long)r->protocol.sample_of);
    if (k < 1 || k > INT32_MAX)
        return fail(err, FR_EUSAGE, "K = %lld, expected 1 to %d", (long long)k, INT32_MAX);
    TRY(check_records(r->records, r->count, r->protocol.oov, err));
    *out = (fr_membership){.k = k};
    for (int64_t i = 0; i < r->count; i++) out->ranked += r->records[i].covered;
    out->unavailable = r->count - out->ranked;
    int64_t most = largest_k(r);
    if (k > most)
        return fail(err, FR_EINPUT,
                    "%s: no eligible event for K = %lld: of %lld ranked events none has so many "
                    "seen and unseen negatives (the largest K possible is %lld)",
                    r->scorer, (long long)k, (long long)out->ranked,
                    (long long)(most > 0 ? most : 0));
    for (int c = 0; c < FR_CELLS; c++)
        TRY(fill_cell(r, fr_cell_names[c], k, seed, context, &out->cell[c], err));
    out->eligible = out->cell[FR_REPEATED_SEEN].events + out->cell[FR_NEW_SEEN].events;
    return FR_OK;
}
