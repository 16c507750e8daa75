/* metrics.c - metrics over the full catalog; each is one registered struct with its explanation.
 *
 * Most metrics are the mean of one number per event over the events they apply to: they name two
 * small functions, `applies` and `value`, and share mean_over. The others have their own
 * `compute`. To add a metric, add a struct to the table at the end and a row to docs/metrics.md:
 * help, lists, tables, JSON and comparisons follow. A name that ends in "@k" takes a number.
 */
#include "eval/metrics.h"

#include "base/memory.h"
#include "eval/definition.h"
#include "rank/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const struct metric *metric;
    const fr_record *records;
    int64_t count;
    int oov;
    int64_t k; /* of hits@k */
} request;

typedef struct metric {
    fr_definition definition; /* first, because fr_metric_at returns a pointer to it */
    fr_status (*compute)(const request *q, fr_metric_value *out, fr_error *err);
    bool (*applies)(const fr_record *r);            /* to a covered event */
    double (*value)(const fr_record *r, int64_t k); /* of a covered event */
    bool seen;  /* needs counts among the destinations that the source has met */
    bool order; /* needs to know which tied candidates come first by id */
    bool (*missed)(const fr_record *r); /* to an uncovered event, which counts 0 if oov is zero */
} metric;

/* ---- one number per event ---- */

static double rank_of(double above, double tied) { return 1 + above + tied / 2; }

static bool every(const fr_record *r) {
    (void)r;
    return true;
}
static bool is_repeated(const fr_record *r) { return r->repeated; }
static bool is_new(const fr_record *r) { return !r->repeated; }
static bool is_available(const fr_record *r) { return r->avail_n > 0; }

static double rank_value(const fr_record *r, int64_t k) {
    (void)k;
    return rank_of(r->above, r->tied);
}
static double rr_value(const fr_record *r, int64_t k) { return 1 / rank_value(r, k); }
static double hits_value(const fr_record *r, int64_t k) { return rank_value(r, k) <= (double)k; }
static double optimistic_value(const fr_record *r, int64_t k) {
    (void)k;
    return 1 / (1.0 + r->above);
}
static double pessimistic_value(const fr_record *r, int64_t k) {
    (void)k;
    return 1 / (1.0 + r->above + r->tied);
}
static double random_ties_value(const fr_record *r, int64_t k) {
    (void)k;
    return harmonic(r->above, (int64_t)r->above + r->tied + 1) / (1.0 + r->tied);
}
static bool knows_order(const fr_record *r) { return r->tied == 0 || r->tied_before >= 0; }
static double trec_value(const fr_record *r, int64_t k) {
    (void)k;
    return knows_order(r) ? 1 / (1.0 + r->above + (r->tied ? r->tied_before : 0)) : NAN;
}
static double seen_value(const fr_record *r, int64_t k) {
    (void)k;
    return 1 / rank_of(r->seen_above, r->seen_tied);
}
static double unseen_value(const fr_record *r, int64_t k) {
    (void)k;
    return 1 / rank_of(r->above - r->seen_above, r->tied - r->seen_tied);
}
static double available_value(const fr_record *r, int64_t k) {
    (void)k;
    return 1 / rank_of(r->avail_above, r->avail_tied);
}
static bool has_negatives(const fr_record *r) { return r->n > 1; }
static double auc_value(const fr_record *r, int64_t k) {
    (void)k;
    double negatives = r->n - 1;
    return (negatives - r->above - r->tied / 2.0) / negatives;
}
static double ndcg_value(const fr_record *r, int64_t k) {
    double rank = rank_value(r, k);
    return rank <= (double)k ? 1 / log2(1 + rank) : 0;
}

/* ---- what a random order of the n candidates gets ---- */

static double chance_value(const fr_record *r, int64_t k) {
    (void)k;
    return harmonic(0, r->n) / r->n;
}
static double chance_rank_value(const fr_record *r, int64_t k) {
    (void)k;
    return (1.0 + r->n) / 2;
}
static double chance_hits_value(const fr_record *r, int64_t k) {
    return r->n <= k ? 1 : (double)k / r->n;
}

/* 1 + 1/4 + 1/9 + ... + 1/n^2; from n = 64 on by its expansion, which is exact to the last digit.
 */
static double harmonic_squares(int64_t n) {
    enum { LARGE = 64 };
    static const double limit = 1.6449340668482264365; /* pi^2 / 6 */
    double sum = 0, x = 1 / (double)n, x2 = x * x;
    if (n >= LARGE) return limit - x * (1 - x / 2 + x2 / 6 - x2 * x2 / 30 + x2 * x2 * x2 / 42);
    for (int64_t i = n; i > 0; i--) sum += 1 / ((double)i * (double)i);
    return sum;
}

/* The variance of 1/rank in a random order. */
static double chance_variance_value(const fr_record *r, int64_t k) {
    double mean = chance_value(r, k);
    return harmonic_squares(r->n) / r->n - mean * mean;
}

/* The loss 1 - RR of an event has two causes: candidates of the positive's own group above it
 * (within: seen ones for a repeated positive, unseen ones for a new one) and candidates of the
 * other group (between). Each cause gets its Shapley value: the mean of its cost if the other cause
 * is removed first and if it is not. With m ranks lost to this cause and t to the other one,
 *     ((1 - 1/(1+m)) + (1/(1+t) - 1/(1+m+t))) / 2
 * which is written below without differences. */
static double shapley(double mine, double theirs) {
    return mine / 2 * (1 / (1 + mine) + 1 / ((1 + theirs) * (1 + mine + theirs)));
}
static double ranks_lost(const fr_record *r, bool to_seen) {
    double seen = r->seen_above + r->seen_tied / 2.0, all = r->above + r->tied / 2.0;
    return to_seen ? seen : all - seen;
}
static double within_value(const fr_record *r, int64_t k) {
    (void)k;
    return shapley(ranks_lost(r, r->repeated), ranks_lost(r, !r->repeated));
}
static double between_value(const fr_record *r, int64_t k) {
    (void)k;
    return shapley(ranks_lost(r, !r->repeated), ranks_lost(r, r->repeated));
}

/* H_n has an expansion in 1/n whose first terms are exact to the last digit from n = 64 on. The
 * difference of two expansions is written so that equal leading parts never cancel. */
double harmonic(int64_t low, int64_t high) {
    enum { DIRECT = 64, LARGE = 64 };
    double sum = 0;
    int64_t from = low;
    for (; from < high && (from < LARGE || high - from <= DIRECT); from++)
        sum += 1 / (double)(from + 1);
    if (from == high) return sum;
    double a = (double)from, b = (double)high, d = b - a, a2 = a * a, b2 = b * b;
    double tail = log1p(d / a) - d / (2 * a * b) + d * (a + b) / (12 * a2 * b2);
    return sum + tail - (1 / (a2 * a2) - 1 / (b2 * b2)) / 120 +
           (1 / (a2 * a2 * a2) - 1 / (b2 * b2 * b2)) / 252;
}

/* ---- over all events ---- */

/* NaN = the event does not count. */
static double event_value(const request *q, const fr_record *r) {
    const metric *m = q->metric;
    if (r->covered) return m->applies(r) ? m->value(r, q->k) : NAN;
    return q->oov == FR_OOV_ZERO && m->missed && m->missed(r) ? 0 : NAN;
}

static fr_status mean_over(const request *q, fr_metric_value *out, fr_error *err) {
    double sum = 0;
    (void)err;
    *out = (fr_metric_value){.value = NAN};
    if (q->metric->seen && !check_knows_seen(q->records, q->count)) return FR_OK;
    for (int64_t i = 0; q->metric->order && i < q->count;
         i++) /* a mean over some of them would be misleading */
        if (q->records[i].covered && !knows_order(&q->records[i])) return FR_OK;
    for (int64_t i = 0; i < q->count; i++) {
        double x = event_value(q, &q->records[i]);
        if (isnan(x)) continue;
        sum += x;
        out->events++;
    }
    out->value = sum / (out->events ? (double)out->events : NAN);
    return FR_OK;
}

static fr_metric_value mean_of(const request *q, bool (*missed)(const fr_record *),
                               double (*value)(const fr_record *, int64_t)) {
    metric m = {.applies = every, .value = value, .missed = missed};
    request inner = *q;
    fr_metric_value out;
    inner.metric = &m;
    (void)mean_over(&inner, &out, NULL); /* never fails */
    return out;
}

/* The time-available catalog may hold positives that the catalog of the records does not. */
static fr_status mean_available(const request *q, fr_metric_value *out, fr_error *err) {
    double sum = 0;
    (void)err;
    out->events = 0;
    for (int64_t i = 0; i < q->count; i++) {
        if (!is_available(&q->records[i])) continue;
        sum += available_value(&q->records[i], 0);
        out->events++;
    }
    out->value = sum / (out->events ? (double)out->events : NAN);
    return FR_OK;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static fr_status median_rank(const request *q, fr_metric_value *out, fr_error *err) {
    int64_t *twice = NULL, n = 0; /* 2 r: whole numbers */
    TRY(ALLOCATE(twice, q->count, err));
    for (int64_t i = 0; i < q->count; i++)
        if (q->records[i].covered)
            twice[n++] = 2 + 2 * (int64_t)q->records[i].above + q->records[i].tied;
    qsort(twice, (size_t)n, sizeof *twice, by_size);
    out->events = n;
    int64_t middle = n / 2, before = (n - 1) / 2; /* the same one if n is odd */
    out->value = n ? (double)(twice[before] + twice[middle]) / 4 : NAN;
    free(twice);
    return FR_OK;
}

/* (M - E[M]) / (1 - E[M]) with the expectation under a random order: 0 is chance, 1 is perfect. The
 * largest M is 1 for shares and for reciprocal ranks. */
static fr_status adjusted(const request *q, double (*value)(const fr_record *, int64_t),
                          double (*chance)(const fr_record *, int64_t), fr_metric_value *out) {
    fr_metric_value found = mean_of(q, NULL, value), expected = mean_of(q, NULL, chance);
    out->events = found.events;
    out->value = expected.value != 1 ? (found.value - expected.value) / (1 - expected.value) : NAN;
    return FR_OK;
}
static fr_status adjusted_mrr(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    return adjusted(q, rr_value, chance_value, out);
}
static fr_status adjusted_hits(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    return adjusted(q, hits_value, chance_hits_value, out);
}
static fr_status adjusted_rank(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    return adjusted(q, rank_value, chance_rank_value, out);
}

static fr_status z_mrr(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    fr_metric_value mrr = mean_of(q, NULL, rr_value), chance = mean_of(q, NULL, chance_value),
                    variance = mean_of(q, NULL, chance_variance_value);
    double deviation = sqrt(variance.value / (double)mrr.events); /* of their mean */
    out->events = mrr.events;
    out->value = deviation > 0 ? (mrr.value - chance.value) / deviation : NAN;
    return FR_OK;
}

static fr_status tie_spread(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    fr_metric_value most = mean_of(q, every, optimistic_value),
                    least = mean_of(q, every, pessimistic_value);
    out->events = most.events;
    out->value = most.value - least.value; /* the values of the other two rules are in between */
    return FR_OK;
}

static int64_t count_covered(const request *q) {
    int64_t covered = 0;
    for (int64_t i = 0; i < q->count; i++) covered += q->records[i].covered != 0;
    return covered;
}

static fr_status ranked_events(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    *out = (fr_metric_value){(double)count_covered(q), q->count};
    return FR_OK;
}

static fr_status coverage(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    double events = q->count ? (double)q->count : NAN;
    *out = (fr_metric_value){(double)count_covered(q) / events, q->count};
    return FR_OK;
}

static fr_status tied_events(const request *q, fr_metric_value *out, fr_error *err) {
    (void)err;
    int64_t ties = 0;
    for (int64_t i = 0; i < q->count; i++) ties += q->records[i].covered && q->records[i].tied > 0;
    *out = (fr_metric_value){(double)ties, count_covered(q)};
    return FR_OK;
}

/* ---- the registry ---- */

#define AB "With a candidates scoring above the positive and b others scoring equal, "

#define LOSS                                                                                       \
    "A part of the loss 1 - MRR. With w = ranks lost within the positive's own group (repeated: "  \
    "seen_above + seen_tied/2; new: the same of the unseen) and x = ranks lost to the other "      \
    "group, RR = 1/(1 + w + x); the parts are Shapley values of these two causes. "
#define WITHIN_FORMULA  "((1 - 1/(1+w)) + (1/(1+x) - 1/(1+w+x))) / 2: order within the groups."
#define BETWEEN_FORMULA "((1 - 1/(1+x)) + (1/(1+w) - 1/(1+w+x))) / 2: order between the groups."

static const metric metrics[] = {
    {{"mrr", FR_KIND_MEAN, "mean reciprocal rank",
      AB "the average rank is r = 1 + a + b/2 and MRR is the mean of 1/r over ranked events; under "
         "oov = zero an event outside the catalog counts 0."},
     .compute = mean_over,
     .applies = every,
     .value = rr_value,
     .missed = every},
    {{"hits@k", FR_KIND_SHARE, "share of events ranked within k (recall@k)",
      AB "the average rank is r = 1 + a + b/2 and Hits@k is the share of events with r <= "
         "k, for any k: hits@1, hits@10. Under oov = zero an event outside the catalog is "
         "not a hit. An event has one relevant destination, so this is also its recall@k; "
         "that name works too."},
     .compute = mean_over,
     .applies = every,
     .value = hits_value,
     .missed = every},
    {{"ndcg@k", FR_KIND_MEAN, "NDCG within k",
      AB "the average rank is r = 1 + a + b/2 and NDCG@k is the mean over ranked events of "
         "1 / log2(1 + r) if r <= k, else 0; under oov = zero an event outside the catalog "
         "counts 0. The one relevant destination has gain 1, so the ideal value is 1. The "
         "rank is that of mrr and hits@k, also with ties. The mean over all orders of "
         "equals, which some programs take, is another number."},
     .compute = mean_over,
     .applies = every,
     .value = ndcg_value,
     .missed = every},
    {{"mrr-repeated", FR_KIND_MEAN, "MRR of repeated positives",
      "MRR over the events whose source and destination have met before, ranked in the whole "
      "catalog."},
     .compute = mean_over,
     .applies = is_repeated,
     .value = rr_value,
     .missed = is_repeated},
    {{"mrr-new", FR_KIND_MEAN, "MRR of new positives",
      "MRR over the events whose source and destination have not met before, ranked in the whole "
      "catalog."},
     .compute = mean_over,
     .applies = is_new,
     .value = rr_value,
     .missed = is_new},
    {{"all-seen", FR_KIND_MEAN, "repeated positives among all seen",
      "Each repeated positive is ranked among all catalog destinations its source has met: mean of "
      "1 / (1 + seen_above + seen_tied/2) over ranked repeated events. No sampling: not the "
      "repeated-seen cell."},
     .compute = mean_over,
     .seen = true,
     .applies = is_repeated,
     .value = seen_value},
    {{"all-unseen", FR_KIND_MEAN, "new positives among all unseen",
      "Each new positive is ranked among all catalog destinations its source has not met: mean of "
      "1 / (1 + a' + b'/2) over ranked new events, a' = above - seen_above, b' = tied - seen_tied. "
      "No sampling: not the new-unseen cell."},
     .compute = mean_over,
     .seen = true,
     .applies = is_new,
     .value = unseen_value},
    {{"loss-within", FR_KIND_MEAN, "lost to the positive's own group",
      LOSS "loss-within is the mean over ranked events of " WITHIN_FORMULA
           " MRR + loss-within + loss-between = 1 (the coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = every,
     .value = within_value,
     .missed = every},
    {{"loss-within-repeated", FR_KIND_MEAN, "repeated positives: lost to their own group",
      "loss-within over the events whose source and destination have met before: mrr-repeated + "
      "loss-within-repeated + loss-between-repeated = 1 (their coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = is_repeated,
     .value = within_value,
     .missed = is_repeated},
    {{"loss-within-new", FR_KIND_MEAN, "new positives: lost to their own group",
      "loss-within over the events whose source and destination have not met before: mrr-new + "
      "loss-within-new + loss-between-new = 1 (their coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = is_new,
     .value = within_value,
     .missed = is_new},
    {{"loss-between", FR_KIND_MEAN, "lost to the other group",
      LOSS "loss-between is the mean over ranked events of " BETWEEN_FORMULA
           " MRR + loss-within + loss-between = 1 (the coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = every,
     .value = between_value,
     .missed = every},
    {{"loss-between-repeated", FR_KIND_MEAN, "repeated positives: lost to the other group",
      "loss-between over the events whose source and destination have met before: mrr-repeated + "
      "loss-within-repeated + loss-between-repeated = 1 (their coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = is_repeated,
     .value = between_value,
     .missed = is_repeated},
    {{"loss-between-new", FR_KIND_MEAN, "new positives: lost to the other group",
      "loss-between over the events whose source and destination have not met before: mrr-new + "
      "loss-within-new + loss-between-new = 1 (their coverage if oov is zero)."},
     .compute = mean_over,
     .seen = true,
     .applies = is_new,
     .value = between_value,
     .missed = is_new},
    {{"mrr-available", FR_KIND_MEAN, "MRR in the time-available catalog",
      "The catalog of an event is every destination that appeared before it: mean of 1 / "
      "(1 + avail_above + avail_tied/2) over the events whose positive is among them."},
     .compute = mean_available},
    {{"mrr-adjusted", FR_KIND_MEAN, "MRR adjusted for chance",
      "(MRR - E0) / (1 - E0), where E0 is the mean over the same events of H_n / n, the "
      "expectation for a random order of the n candidates (H_n = 1 + 1/2 + ... + 1/n). 0 "
      "is chance, 1 is perfect, and below 0 is worse than chance. Values can be compared "
      "across catalog sizes. Over ranked events, whatever oov is."},
     .compute = adjusted_mrr},
    {{"hits-adjusted@k", FR_KIND_MEAN, "Hits@k adjusted for chance",
      "(Hits@k - E0) / (1 - E0), where E0 is the mean over the same events of min(k/n, 1), the "
      "Hits@k of a random order of the n candidates: the adjusted Hits@k of PyKEEN. 0 is chance, 1 "
      "is perfect. None if every catalog has at most k destinations. Over ranked events, whatever "
      "oov is."},
     .compute = adjusted_hits},
    {{"amri", FR_KIND_MEAN, "adjusted mean rank index",
      "1 - (MR - 1) / (E0 - 1), where MR is mean-rank and E0 the mean over the same events of (n + "
      "1)/2, the mean rank of a random order of the n candidates: the adjusted mean rank index of "
      "PyKEEN. 0 is chance, 1 is perfect, -1 is always last. Over ranked events, whatever oov is."},
     .compute = adjusted_rank},
    {{"z-mrr", FR_KIND_MEAN, "MRR in standard deviations above chance",
      "(MRR - E0) / sqrt(V0), where E0 is the mean over the m ranked events of H_n / n "
      "and V0 = 1/m^2 times the sum of (n G_n - H_n^2) / n^2: mean and variance of the "
      "MRR of independent random orders (G_n = 1 + 1/4 + ... + 1/n^2). It is the "
      "z-scored MRR of PyKEEN. It grows with sqrt(m), so it is a test against chance and "
      "must not be compared across data sets. Over ranked events, whatever oov is."},
     .compute = z_mrr},
    {{"auc", FR_KIND_MEAN, "probability to beat one random negative",
      AB "and c = n - 1 - a - b below, the mean over ranked events of (c + b/2) / (n - 1): "
         "the probability that the positive scores above one negative drawn uniformly from "
         "its own event's candidates, where a tie counts half. It is not the AUC of scores "
         "pooled over events, which is not a function of ranks. An event without negatives "
         "does not count; under oov = zero one outside the catalog counts 0."},
     .compute = mean_over,
     .applies = has_negatives,
     .value = auc_value,
     .missed = every},
    {{"mean-rank", FR_KIND_MEAN, "mean rank",
      "Mean of the average rank r = 1 + a + b/2 over ranked events, whatever oov is: an event "
      "outside the catalog has no rank."},
     .compute = mean_over,
     .applies = every,
     .value = rank_value},
    {{"median-rank", FR_KIND_MEAN, "median rank",
      "Median of the average rank r = 1 + a + b/2 over ranked events, whatever oov is; the mean of "
      "the two middle ones if their number is even."},
     .compute = median_rank},
    {{"mrr-optimistic", FR_KIND_MEAN, "MRR, ties in favour",
      AB "the mean of 1/(1 + a): the positive comes first among ties. A constant scorer "
         "gets 1."},
     .compute = mean_over,
     .applies = every,
     .value = optimistic_value,
     .missed = every},
    {{"mrr-pessimistic", FR_KIND_MEAN, "MRR, ties against",
      AB "the mean of 1/(1 + a + b): the positive comes last among ties."},
     .compute = mean_over,
     .applies = every,
     .value = pessimistic_value,
     .missed = every},
    {{"mrr-random-ties", FR_KIND_MEAN, "MRR, expected over random tie order",
      AB "the mean of (H_{a+b+1} - H_a) / (b+1), the expectation of 1/rank if ties are put "
         "in random order (H_n = 1 + 1/2 + ... + 1/n)."},
     .compute = mean_over,
     .applies = every,
     .value = random_ties_value,
     .missed = every},
    {{"mrr-trec", FR_KIND_MEAN, "MRR, ties by id as in trec_eval",
      AB "the mean of 1/(1 + a + f), f = tied_before of the record: the number of ties "
         "whose id, as decimal text, is larger than the positive's. This is how trec_eval "
         "sorts equal scores. The value depends on the names of the destinations: a "
         "constant scorer gets more for larger names. None if the records do not have the "
         "field (made from counts, or by an earlier release) and there are ties."},
     .compute = mean_over,
     .order = true,
     .applies = every,
     .value = trec_value,
     .missed = every},
    {{"tie-spread", FR_KIND_MEAN, "largest difference between tie rules",
      "mrr-optimistic minus mrr-pessimistic; the other rules are between them. Above "
      "1e-4 the tie rule changes digits that people report, and there is a warning."},
     .compute = tie_spread},
    {{"ties", FR_KIND_COUNT, "events with ties",
      "Number of ranked events in which at least one other candidate has exactly the score of the "
      "positive."},
     .compute = tied_events},
    {{"ranked", FR_KIND_COUNT, "ranked events",
      "Number of test events whose positive is in the catalog. The others are left out (oov = "
      "exclude) or count 0 (oov = zero)."},
     .compute = ranked_events},
    {{"coverage", FR_KIND_SHARE, "share of events ranked",
      "Ranked events over all test events: the share whose positive is in the catalog."},
     .compute = coverage},
};

enum { METRICS = sizeof metrics / sizeof *metrics };

const fr_definition *fr_metric_at(int index) {
    return index >= 0 && index < METRICS ? &metrics[index].definition : NULL;
}

/* True if the metric takes a number, as hits@k does. */
static bool is_numbered(const metric *m) {
    size_t length = strlen(m->definition.name);
    return length > 2 && strcmp(m->definition.name + length - 2, "@k") == 0;
}

/* In retrieval "hits@10" is called "recall@10". */
static const char recall[] = "recall@";

static const metric *lookup(const char *text, int64_t *k) {
    char hits[32];
    if (!strncmp(text, recall, sizeof recall - 1)) {
        (void)snprintf(hits, sizeof hits, "hits@%.20s", text + sizeof recall - 1);
        text = hits;
    }
    for (int i = 0; i < METRICS; i++) {
        const char *name = metrics[i].definition.name;
        *k = 0;
        if (strcmp(text, name) == 0) return &metrics[i];
        char stem[64];
        (void)snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "@"), name);
        if (is_numbered(&metrics[i]) && definition_match(text, stem, '@', k) && *k > 0)
            return &metrics[i];
    }
    return NULL;
}

const fr_definition *fr_metric_find(const char *text, int64_t *k) {
    int64_t number;
    const metric *found = text ? lookup(text, k ? k : &number) : NULL;
    return found ? &found->definition : NULL;
}

static fr_status find(const char *text, request *q, fr_error *err) {
    NEED(text, err);
    q->metric = lookup(text, &q->k);
    if (!q->metric) return definition_unknown("metric", text, fr_metric_at, err);
    if (is_numbered(q->metric) && q->k == 0)
        return fail(err, FR_EUSAGE, "metric %s needs a number, such as %.*s@10", text,
                    (int)strcspn(text, "@"), text);
    return FR_OK;
}

fr_status fr_metrics_compute(const fr_record *records, int64_t count, int oov,
                             const char *const *name, int names, fr_metric_value *out,
                             fr_error *err) {
    request q = {.records = records, .count = count, .oov = oov};
    if (names < 0) return fail(err, FR_EUSAGE, "%d metrics, expected 0 or more", names);
    if (names) NEED(name, err);
    if (names) NEED(out, err);
    TRY(check_records(records, count, oov, err));
    for (int i = 0; i < names; i++) {
        TRY(find(name[i], &q, err));
        TRY(q.metric->compute(&q, &out[i], err));
    }
    return FR_OK;
}

fr_status metrics_check_each(const char *name, fr_error *err) {
    request q;
    TRY(find(name, &q, err));
    if (!q.metric->value)
        return fail(err, FR_EUSAGE,
                    "metric %s has no number for each event, expected a mean over ranked events "
                    "such as mrr or hits@10",
                    name);
    return FR_OK;
}

fr_status metrics_each(const char *name, const fr_record *records, int64_t count, int oov,
                       double *out, fr_error *err) {
    request q = {.records = records, .count = count, .oov = oov};
    TRY(metrics_check_each(name, err));
    TRY(find(name, &q, err));
    TRY(check_records(records, count, oov, err));
    for (int64_t i = 0; i < count; i++) out[i] = event_value(&q, &records[i]);
    return FR_OK;
}
