/* sampler.c - see sampler.h. The table at the end is the documentation. */
#include "eval/sampler.h"

#include "eval/definition.h"
#include "rank/check.h"

#include <math.h>

/* ---- pools: what a record says about the places negatives come from ---- */

static expected_pool catalog_pool(const fr_record *r) {
    return (expected_pool){.size = r->n - 1.0, .above = r->above, .tied = r->tied};
}

static expected_pool seen_pool(const fr_record *r) {
    return (expected_pool){.size = r->seen_n, .above = r->seen_above, .tied = r->seen_tied};
}

static expected_pool unseen_pool(const fr_record *r) {
    return (expected_pool){.size = r->n - 1.0 - r->seen_n,
                           .above = r->above - r->seen_above,
                           .tied = r->tied - r->seen_tied};
}

/* Destinations that the source has met in the training part, and the others. */
static expected_pool trained_pool(const fr_record *r) {
    return (expected_pool){.size = r->train_n, .above = r->train_above, .tied = r->train_tied};
}

static expected_pool untrained_pool(const fr_record *r) {
    return (expected_pool){.size = r->n - 1.0 - r->train_n,
                           .above = r->above - r->train_above,
                           .tied = r->tied - r->train_tied};
}

/* Records made from counts may lack the counts among seen destinations. */
static bool knows_seen(const fr_record *r) { return r->seen_above >= 0; }

/* Records of a given list know only this list, so draws from a catalog are not possible. */
static bool from_catalog(const fr_record *r, expected_pool pool[]) {
    pool[0] = catalog_pool(r);
    return !check_is_listed(r);
}

static bool from_catalog_replaced(const fr_record *r, expected_pool pool[]) {
    pool[0] = catalog_pool(r);
    pool[0].replaced = true;
    return !check_is_listed(r);
}

/* The positive is one more candidate, which ties with itself. */
static bool from_catalog_whole(const fr_record *r, expected_pool pool[]) {
    pool[0] =
        (expected_pool){.size = r->n, .above = r->above, .tied = r->tied + 1.0, .replaced = true};
    return r->n > 1 && !check_is_listed(r);
}

static bool from_popularity(const fr_record *r, expected_pool pool[]) {
    double size = fmax(0, 1 - r->pop_self);
    pool[0] =
        (expected_pool){.size = size, .above = r->pop_above, .tied = r->pop_tied, .replaced = true};
    return r->pop_above >= 0 && r->pop_tied >= 0 && size >= 0; /* false for NaN: not recorded */
}

static bool from_seen(const fr_record *r, expected_pool pool[]) {
    pool[0] = seen_pool(r);
    return knows_seen(r);
}

static bool from_unseen(const fr_record *r, expected_pool pool[]) {
    pool[0] = unseen_pool(r);
    return knows_seen(r);
}

static bool from_seen_and_unseen(const fr_record *r, expected_pool pool[]) {
    pool[0] = seen_pool(r);
    pool[1] = unseen_pool(r);
    return knows_seen(r);
}

static bool from_trained_and_others(const fr_record *r, expected_pool pool[]) {
    pool[0] = trained_pool(r);
    pool[1] = untrained_pool(r);
    return r->train_above >= 0;
}

/* A cell of the 2x2 table draws from its first pool. The size of the other pool only decides
 * whether the event is eligible. */
static bool cell(expected_pool drawn, expected_pool other, expected_pool pool[]) {
    pool[0] = drawn;
    pool[1] = (expected_pool){.size = other.size};
    return true;
}
static bool repeated_seen(const fr_record *r, expected_pool pool[]) {
    return knows_seen(r) && r->repeated && cell(seen_pool(r), unseen_pool(r), pool);
}
static bool repeated_unseen(const fr_record *r, expected_pool pool[]) {
    return knows_seen(r) && r->repeated && cell(unseen_pool(r), seen_pool(r), pool);
}
static bool new_seen(const fr_record *r, expected_pool pool[]) {
    return knows_seen(r) && !r->repeated && cell(seen_pool(r), unseen_pool(r), pool);
}
static bool new_unseen(const fr_record *r, expected_pool pool[]) {
    return knows_seen(r) && !r->repeated && cell(unseen_pool(r), seen_pool(r), pool);
}

/* ---- dealing: K negatives over the pools ---- */

static bool deal_first(int64_t k, int small, expected_pool pool[]) {
    if (pool[0].size <= 0) return false;
    if (!pool[0].replaced && small == FR_SMALL_INELIGIBLE && pool[0].size < (double)k) return false;
    pool[0].draws = k;
    return true;
}

static bool deal_cell(int64_t k, int small, expected_pool pool[]) {
    if (small == FR_SMALL_INELIGIBLE && pool[1].size < (double)k) return false;
    return deal_first(k, small, pool);
}

static bool deal_halves(int64_t k, int small, expected_pool pool[]) {
    int64_t floor_half = k / 2;
    double half = (double)floor_half;
    double seen = fmin(half, pool[0].size), unseen = fmin((double)k - seen, pool[1].size);
    if (seen + unseen == 0) return false;
    if (small == FR_SMALL_INELIGIBLE && (seen < half || seen + unseen < (double)k)) return false;
    pool[0].draws = (int64_t)seen;
    pool[1].draws = (int64_t)unseen;
    return true;
}

/* TGB also ranks a positive without any negative: its rank is 1. */
static bool deal_tgb(int64_t k, int small, expected_pool pool[]) {
    if (small == FR_SMALL_INELIGIBLE && pool[0].size < (double)k) return false;
    pool[0].draws = k;
    return true;
}

static bool deal_tgb_halves(int64_t k, int small, expected_pool pool[]) {
    return deal_halves(k, small, pool) || small == FR_SMALL_WHOLE;
}

/* ---- the registry ---- */

#define CELL                                                                                       \
    " One cell of the membership table; an event needs K seen and K unseen negatives to be "       \
    "eligible, so all four cells have the same events. The paper's table draws from the "          \
    "destinations available before the event: rank with catalog=time for that (a positive that "   \
    "appears for the first time is then not covered), or see `fullrank diagnose membership`."

#define TGB_SETTINGS                                                                               \
    "window 0, split quantile, train-share 0.7, val-share 0.15, catalog range and filter "         \
    "same-time"

static const sampler samplers[] = {
    {{"uniform", FR_KIND_SAMPLER, "uniform, without replacement",
      "K different negatives, every set of K among the N-1 of the catalog equally likely. Without "
      "ties and with r = 1 + above, E[RR] = N / ((K+1) r) * (1 - prod_{j=0..K} (N-r-j)/(N-j)); at "
      "K = N-1 it is the full-catalog 1/r."},
     .part = PART_CATALOG,
     .pools = from_catalog,
     .deal = deal_first},
    {{"random", FR_KIND_SAMPLER, "uniform, with replacement",
      "K independent uniform draws from the N-1 negatives, repeats allowed, as most training and "
      "evaluation code draws random negatives (that code often lets a negative equal the positive: "
      "see dyglib; here it never does). With p = above/(N-1) and no ties, E[RR] = (1 - "
      "(1-p)^(K+1)) / ((K+1) "
      "p)."},
     .pools = from_catalog_replaced,
     .deal = deal_first},
    {{"dyglib", FR_KIND_SAMPLER, "uniform, including the positive, as DyGLib",
      "K independent uniform draws from all n candidates, including the positive. This "
      "is the random strategy of DyGLib's NegativeEdgeSampler, which never checks for "
      "the positive (K = 1 in DyGLib). A draw of the positive has the same score, so it "
      "is a tie and adds half a rank. With p = above/n, e = (tied + 1)/n: E[RR] is the "
      "trinomial sum over 1/(1 + h + g/2); for K = 1 it is 1 - p/2 - e/3. DyGLib draws "
      "from the destinations of the whole data set; here the candidates are the catalog "
      "of the records."},
     .pools = from_catalog_whole,
     .deal = deal_first},
    {{"popularity", FR_KIND_SAMPLER, "by training popularity, with replacement",
      "K independent draws from the catalog without the positive, each destination with "
      "a probability proportional to its number of events in the training prefix. With p "
      "= pop_above / (1 - pop_self) and no ties, E[RR] = (1 - (1-p)^(K+1)) / ((K+1) p). "
      "If the positive has all the popularity, there is nothing to draw and the event is "
      "not counted."},
     .pools = from_popularity,
     .deal = deal_first},
    {{"source-history", FR_KIND_SAMPLER, "destinations the source has met",
      "K different negatives among the catalog destinations the source has met before "
      "the event, without the positive (historical negatives). If there are fewer than "
      "K, all are taken (small = whole) or the event is not counted (small = "
      "ineligible). An event without any is never counted."},
     .part = PART_SEEN,
     .pools = from_seen,
     .deal = deal_first},
    {{"unseen", FR_KIND_SAMPLER, "destinations the source has not met",
      "K different negatives among the catalog destinations the source has not met "
      "before the event, without the positive. This is the counterpart of "
      "source-history, with the same rules."},
     .part = PART_UNSEEN,
     .pools = from_unseen,
     .deal = deal_first},
    {{"tgb-rnd", FR_KIND_SAMPLER, "TGB's rnd lists",
      "K different negatives among the candidates, or all of them if there are fewer. "
      "These are exactly the rnd lists of TGB, for records made with " TGB_SETTINGS ". An event "
      "without a negative counts as rank 1, as in TGB."},
     .pools = from_catalog,
     .deal = deal_tgb},
    {{"tgb-hist", FR_KIND_SAMPLER, "TGB's hist_rnd lists",
      "h = min(floor(K/2), S) different negatives among the S destinations that the "
      "source has met in the training part (train_n), and K - h among the other "
      "candidates, or all of these if there are fewer. These are exactly the hist_rnd "
      "lists of TGB, for records made with " TGB_SETTINGS
      ". An event without a negative counts as rank 1, as in TGB."},
     .trained = true,
     .pools = from_trained_and_others,
     .deal = deal_tgb_halves},
    {{"history-mix", FR_KIND_SAMPLER, "half source history, half unseen",
      "floor(K/2) different negatives among the destinations the source has met before "
      "the event and the rest of K among those it has not met. With small = whole, "
      "missing history is replaced by unseen destinations; if these are too few, all are "
      "taken. TGB's lists use only the training part: see tgb-hist."},
     .pools = from_seen_and_unseen,
     .deal = deal_halves},
    {{"repeated-seen", FR_KIND_SAMPLER, "repeated positives against seen negatives",
      "Positives whose pair has met before, against K different negatives the source has met: "
      "recurrent-link ranking." CELL},
     .subgroup = true,
     .part = PART_SEEN,
     .pools = repeated_seen,
     .deal = deal_cell},
    {{"repeated-unseen", FR_KIND_SAMPLER, "repeated positives against unseen negatives",
      "Positives whose pair has met before, against K different negatives the source has not met: "
      "subgroup separation." CELL},
     .subgroup = true,
     .part = PART_UNSEEN,
     .pools = repeated_unseen,
     .deal = deal_cell},
    {{"new-seen", FR_KIND_SAMPLER, "new positives against seen negatives",
      "Positives whose pair has not met before, against K different negatives the source has met: "
      "subgroup separation." CELL},
     .subgroup = true,
     .part = PART_SEEN,
     .pools = new_seen,
     .deal = deal_cell},
    {{"new-unseen", FR_KIND_SAMPLER, "new positives against unseen negatives",
      "Positives whose pair has not met before, against K different negatives the source has not "
      "met: novel-link ranking." CELL},
     .subgroup = true,
     .part = PART_UNSEEN,
     .pools = new_unseen,
     .deal = deal_cell},
};

enum { SAMPLERS = sizeof samplers / sizeof *samplers };

const int64_t fr_standard_k[FR_STANDARD_K] = {1, 5, 20, 50, 100};

const fr_definition *fr_sampler_at(int index) {
    return index >= 0 && index < SAMPLERS ? &samplers[index].definition : NULL;
}

static const sampler *lookup(const char *text, int64_t *k) {
    for (int i = 0; i < SAMPLERS; i++)
        if (definition_match(text, samplers[i].definition.name, '-', k)) return &samplers[i];
    return NULL;
}

const fr_definition *fr_sampler_find(const char *text, int64_t *k) {
    int64_t number;
    const sampler *found = text ? lookup(text, k ? k : &number) : NULL;
    return found ? &found->definition : NULL;
}

fr_status sampling_check(const fr_sampling *sampling, const sampler **out, fr_error *err) {
    int64_t k;
    NEED(sampling, err);
    *out = sampling->sampler ? lookup(sampling->sampler, &k) : NULL;
    if (!*out)
        return definition_unknown("sampler", sampling->sampler ? sampling->sampler : "(none)",
                                  fr_sampler_at, err);
    if (sampling->small != FR_SMALL_WHOLE && sampling->small != FR_SMALL_INELIGIBLE)
        return fail(err, FR_EUSAGE, "rule %d for small pools is not known, expected FR_SMALL_*",
                    sampling->small);
    if (sampling->k_count < 1) return fail(err, FR_EUSAGE, "no K given, expected at least one");
    if (sampling->hits_count < 0 || sampling->hits_count > FR_HITS_MAX)
        return fail(err, FR_EUSAGE, "%d values of k for Hits@k, expected at most %d",
                    sampling->hits_count, FR_HITS_MAX);
    NEED(sampling->k, err);
    if (sampling->hits_count) NEED(sampling->hits, err);
    for (int i = 0; i < sampling->k_count; i++)
        if (sampling->k[i] < 1 || sampling->k[i] > INT32_MAX)
            return fail(err, FR_EUSAGE, "K = %lld, expected 1 to %d", (long long)sampling->k[i],
                        INT32_MAX);
    for (int i = 0; i < sampling->hits_count; i++)
        if (sampling->hits[i] < 1 || sampling->hits[i] > INT32_MAX)
            return fail(err, FR_EUSAGE, "Hits@%lld, expected 1 to %d", (long long)sampling->hits[i],
                        INT32_MAX);
    return FR_OK;
}
