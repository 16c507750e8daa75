/* compare.c - compares runs of several models (PROTOCOL 11; fullrank.h, chapter 13).
 *
 *   runs -> checked for equal protocols and events -> grouped by model and seed
 *   events of each run -> sums per block and column (each K, then the full catalog)
 *   sums -> means, t intervals over seeds, order agreement
 *   sums -> resampled means -> bootstrap intervals, order flips -> sign flips -> permutation test
 *   tests of all pairs -> Holm's correction
 *
 * A pair of models is one weight per run, adding up to +1 over the second model's runs and to -1
 * over the first's: its difference is the weighted sum of the runs' means, in the data and in every
 * resample. So later code need not know how runs were paired.
 *
 * A metric that is not a mean over events has no sums. Its resamples come from statistic.h, one
 * series per run, and its test exchanges blocks between paired runs. For a mean this is the same as
 * a change of signs.
 */
#include "base/memory.h"
#include "base/options.h"
#include "base/shards.h"
#include "eval/aggregate.h"
#include "eval/agreement.h"
#include "eval/finite.h"
#include "eval/metrics.h"
#include "eval/statistic.h"
#include "eval/student.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_compare_options[FR_OPTIONS_MAX] = {
    {"metric", FR_OPTION_TEXT, "mrr", "NAME", 0, 0, offsetof(fr_compare_settings, metric),
     "the metric to compare: mrr, hits@10 or any other in `metrics --help metrics`"},
    {"sampler", FR_OPTION_TEXT, "uniform", "NAME", 0, 0, offsetof(fr_compare_settings, sampler),
     "how the K negatives are drawn; `metrics --help samplers` lists the names"},
    {"small", FR_OPTION_CHOICE, "whole", "whole|ineligible", 0, 0,
     offsetof(fr_compare_settings, small),
     "if a pool is too small: take it whole, or leave the event out"},
    {"block", FR_OPTION_INT, "128", "EVENTS", 1, INT32_MAX, offsetof(fr_compare_settings, block),
     "consecutive ranked events that the bootstrap draws together"},
    {"resamples", FR_OPTION_INT, "10000", "N", 100, 1000000,
     offsetof(fr_compare_settings, resamples),
     "number of resamples of the bootstrap and the permutation test"},
    {"level", FR_OPTION_REAL, "0.95", "SHARE", 0.5, 0.9999, offsetof(fr_compare_settings, level),
     "level of all intervals"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_compare_settings, force),
     "compare runs with different protocols, with a warning"},
    {"across-orders", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_compare_settings, across_orders),
     "compare runs with different orders (stream, batch:200, ...), each as a separate "
     "model: shows the effect of the granularity of updates"},
    OPTIONS_END(fr_compare_settings)};

static char standard_sampler[] = "uniform", standard_metric[] = "mrr";
enum { MOST_K = 1 << 20 }; /* so that columns can be counted by int */

/* One run in its model. Run memory, as everything here. */
typedef struct compared_run {
    const fr_compare_run *given;
    fr_ranking_facts facts;
    const char *name; /* of the model */
    int model;
    int64_t seed;
} compared_run;

struct fr_comparison {
    arena memory;
    fr_comparison_facts facts;
    fr_compare_settings settings;
    int64_t hits; /* the k of Hits@k, 0 if that is not the metric */
    bool mean_of_events;
    uint64_t seed;
    compared_run *run; /* [runs] by model, then by seed */
    int runs;
    int *first; /* [models + 1] run each model begins with */
    fr_compared_column *column;
    fr_compared_model *model;
    fr_interval *interval; /* [models][columns] */
    fr_compared_pair *pair;
    fr_difference *difference; /* [pairs][columns] */
    double *weight;            /* [pairs][runs] */
    int (*couple)[2];          /* [runs * runs] scratch of one pair */
    event_blocks cut;
    block_sums blocks; /* without sums if the metric is not a mean over events */
    double *mean;      /* [runs][columns]; a series is (run, column) */
    /* Of runs over a sample of events and a metric that is a mean over events; else NULL. */
    finite_sample sample;
    double *each;                      /* [series][events] what the means are over */
    fr_interval *of_models, *of_pairs; /* [models], [pairs][columns] */
};

/* ---- which runs are compared, and whether they may be ---- */

static fr_status check_protocol(const compared_run *a, const compared_run *b,
                                const fr_compare_settings *settings, const fr_context *context,
                                fr_error *err) {
    char fields[640];
    fr_protocol_facts other = b->facts.protocol;
    if (settings->across_orders) {
        other.order = a->facts.protocol.order;
        other.batch = a->facts.protocol.batch;
    }
    if (!fr_protocol_compare(&a->facts.protocol, &other, fields, sizeof fields)) return FR_OK;
    if (!settings->force)
        return fail(err, FR_EFORCE,
                    "%s and %s follow different protocols and must not be compared; they differ in "
                    "%s",
                    a->given->file, b->given->file, fields);
    context_log(context, FR_WARNING, "%s and %s follow different protocols; they differ in %s",
                a->given->file, b->given->file, fields);
    return FR_OK;
}

/* Pairing needs the same events, even with `force`. */
static fr_status check_events(const compared_run *a, const compared_run *b, fr_error *err) {
    if (a->facts.count != b->facts.count)
        return fail(err, FR_EINPUT, "%s has %lld test events, %s has %lld: expected the same ones",
                    a->given->file, (long long)a->facts.count, b->given->file,
                    (long long)b->facts.count);
    for (int64_t i = 0; i < a->facts.count; i++) {
        const fr_record *x = &a->facts.records[i], *y = &b->facts.records[i];
        if (x->event == y->event && x->source == y->source && x->destination == y->destination)
            continue;
        return fail(err, FR_EINPUT,
                    "record %lld is event %lld (%lld to %lld) in %s, but event %lld (%lld to %lld) "
                    "in %s: expected the same events",
                    (long long)i, (long long)x->event, (long long)x->source,
                    (long long)x->destination, a->given->file, (long long)y->event,
                    (long long)y->source, (long long)y->destination, b->given->file);
    }
    return FR_OK;
}

/* Texts of the result outlive the rankings they came from. */
static fr_status keep(fr_comparison *c, const char *a, const char *b, const char *d,
                      const char **out, fr_error *err) {
    char *text;
    size_t size = strlen(a) + strlen(b) + strlen(d) + 1;
    TRY(TAKE(&c->memory, text, size, err));
    (void)snprintf(text, size, "%s%s%s", a, b, d);
    *out = text;
    return FR_OK;
}

/* Checks the metric. Only MRR and Hits@k have an expectation over draws. */
static fr_status take_metric(fr_comparison *c, int k_count, fr_error *err) {
    const char *metric = c->settings.metric;
    const fr_definition *definition = fr_metric_find(metric, &c->hits);
    if (!definition || strcmp(definition->name, "hits@k") != 0) c->hits = 0;
    if (k_count && !c->hits && strcmp(metric, standard_metric) != 0)
        return fail(err, FR_EUSAGE,
                    "metric %s with %d values of K, expected none: sampled negatives have an "
                    "expectation of mrr and of hits@k only",
                    metric, k_count);
    return keep(c, metric, "", "", &c->facts.metric, err);
}

/* A model trained with another objective, or under another order, counts as another model. */
static fr_status name_run(fr_comparison *c, compared_run *r, fr_error *err) {
    const char *objective = r->facts.objective;
    bool plain = r->given->model || !*objective || !strcmp(objective, "bce");
    TRY(keep(c, r->given->model ? r->given->model : r->facts.model, plain ? "" : "/",
             plain ? "" : objective, &r->name, err));
    if (!c->settings.across_orders) return FR_OK;
    char order[40];
    fr_options_text(fr_options_find(fr_protocol_fields, "order"), &r->facts.protocol, order,
                    sizeof order);
    if (r->facts.protocol.batch)
        (void)snprintf(order, sizeof order, "batch:%lld", (long long)r->facts.protocol.batch);
    return keep(c, r->name, ", ", order, &r->name, err);
}

static int by_model_and_seed(const void *a, const void *b) {
    const compared_run *x = a, *y = b;
    if (x->model != y->model) return x->model < y->model ? -1 : 1;
    return (x->seed > y->seed) - (x->seed < y->seed);
}

static fr_status group_runs(fr_comparison *c, const fr_compare_run *given, int count,
                            const fr_context *context, fr_error *err) {
    int models = 0;
    c->runs = count;
    TRY(TAKE(&c->memory, c->run, count, err));
    for (int i = 0; i < count; i++) {
        compared_run *r = &c->run[i];
        *r = (compared_run){.given = &given[i], .facts = fr_ranking_get(given[i].ranking)};
        r->seed = given[i].seed ? *given[i].seed : r->facts.seed;
        TRY(name_run(c, r, err));
        r->model = models;
        for (int j = 0; j < i; j++)
            if (!strcmp(c->run[j].name, r->name)) r->model = c->run[j].model;
        models += r->model == models;
        if (!i) continue;
        TRY(check_protocol(&c->run[0], r, &c->settings, context, err));
        TRY(check_events(&c->run[0], r, err));
    }
    if (models < 2)
        return fail(err, FR_EUSAGE,
                    "every run is of the model %s: expected at least two models (NAME=FILE names a "
                    "file's model)",
                    c->run[0].name);
    TRY(keep(c, c->run[0].facts.protocol_text, "", "", &c->facts.protocol_text, err));
    const fr_protocol_facts *protocol = &c->run[0].facts.protocol;
    c->facts.sample = protocol->sample;
    c->facts.sample_of = protocol->sample_of;
    c->sample = (finite_sample){c->run[0].facts.count, protocol->sample_of, c->settings.level};
    qsort(c->run, (size_t)count, sizeof *c->run, by_model_and_seed);
    for (int i = 1; i < count; i++)
        if (c->run[i].model == c->run[i - 1].model && c->run[i].seed == c->run[i - 1].seed)
            return fail(err, FR_EUSAGE,
                        "%s and %s are both %s with seed %lld: name them apart by NAME=FILE or "
                        "NAME@SEED=FILE",
                        c->run[i - 1].given->file, c->run[i].given->file, c->run[i].name,
                        (long long)c->run[i].seed);
    TRY(TAKE(&c->memory, c->first, models + 1, err));
    for (int i = 0; i < count; i++) c->first[c->run[i].model + 1] = i + 1;
    c->facts.models = models;
    return FR_OK;
}

/* ---- events to sums per block ---- */

/* Blocks of events that are ranked in any run. Runs differ in this only under --force. */
static fr_status cut_blocks(fr_comparison *c, fr_error *err) {
    int64_t events = c->run[0].facts.count, size = finite_block(c->sample, c->settings.block);
    bool *ranked;
    TRY(TAKE(&c->memory, ranked, events, err));
    for (int i = 0; i < c->runs; i++)
        for (int64_t e = 0; e < events; e++)
            ranked[e] |= c->run[i].facts.records[e].covered || c->run[i].facts.oov == FR_OOV_ZERO;
    TRY(blocks_cut(ranked, events, size, &c->memory, &c->cut, err));
    c->facts.events = c->cut.ranked;
    c->facts.block = size;
    c->facts.blocks = c->blocks.blocks = c->cut.blocks;
    if (c->cut.ranked < 2)
        return fail(err, FR_EINPUT, "events that are ranked: %lld, expected at least two",
                    (long long)c->cut.ranked);
    if (c->cut.blocks < 2)
        return fail(err, FR_EUSAGE,
                    "blocks of %lld events, but %lld events are ranked: expected at least two "
                    "blocks, so blocks of %lld at most",
                    (long long)size, (long long)c->cut.ranked, (long long)c->cut.ranked - 1);
    return FR_OK;
}

/* The metric of a run over the full catalog. */
static fr_status run_metric(const fr_comparison *c, const compared_run *r, fr_metric_value *out,
                            fr_error *err) {
    const char *metric = c->settings.metric;
    return fr_metrics_compute(r->facts.records, r->facts.count, r->facts.oov, &metric, 1, out, err);
}

/* The metric in one run: value[k_count + 1][events], the full catalog last; NaN where an event does
 * not count. */
static fr_status run_values(const fr_comparison *c, const compared_run *r, const int64_t *k,
                            int k_count, const fr_context *context, double *value, fr_error *err) {
    const fr_ranking_facts *f = &r->facts;
    fr_sampling sampling = {.sampler = c->settings.sampler,
                            .small = c->settings.small,
                            .oov = f->oov,
                            .k = k,
                            .k_count = k_count,
                            .hits = &c->hits,
                            .hits_count = c->hits > 0};
    fr_error inner = {0};
    fr_status status = FR_OK;
    fr_metric_value whole = {0};
    double *full = value + k_count * f->count;
    if (k_count) status = aggregate_each(f->records, f->count, &sampling, context, value, &inner);
    if (!status) status = run_metric(c, r, &whole, &inner);
    if (!status)
        status = metrics_each(c->settings.metric, f->records, f->count, f->oov, full, &inner);
    if (status == FR_EINPUT) return fail(err, status, "%s: %.900s", r->given->file, inner.message);
    if (status) return fail(err, status, "%s", inner.message);
    for (int64_t e = 0; isnan(whole.value) && e < f->count; e++)
        full[e] = NAN; /* such as records without counts among seen destinations */
    return FR_OK;
}

/* Sums and counts of every block, run and column. */
static fr_status sum_blocks(fr_comparison *c, const int64_t *k, int k_count,
                            const fr_context *context, fr_error *err) {
    int64_t events = c->run[0].facts.count;
    int columns = c->facts.columns;
    block_sums *s = &c->blocks;
    double *value; /* [columns][events] */
    TRY(TAKE(&c->memory, s->sum, s->blocks * s->series, err));
    TRY(TAKE(&c->memory, s->count, s->blocks * s->series, err));
    TRY(ALLOCATE(value, columns * events, err));
    fr_status status = FR_OK;
    if (c->sample.of) status = TAKE(&c->memory, c->each, s->series * events, err);
    for (int i = 0; !status && i < c->runs; i++) {
        status = run_values(c, &c->run[i], k, k_count, context, value, err);
        if (!status && c->each)
            memcpy(c->each + i * columns * events, value,
                   (size_t)(columns * events) * sizeof *value);
        for (int j = 0; !status && j < columns; j++)
            for (int64_t b = 0; b < s->blocks; b++)
                for (int64_t e = c->cut.start[b]; e < c->cut.start[b + 1]; e++) {
                    double x = value[j * events + e];
                    if (isnan(x)) continue;
                    s->sum[b * s->series + i * columns + j] += x;
                    s->count[b * s->series + i * columns + j]++;
                }
    }
    free(value);
    return status;
}

/* ---- means, spread over seeds, order ---- */

/* Means over events from the sums of their blocks. */
static void mean_series(fr_comparison *c) {
    int series = c->blocks.series;
    for (int i = 0; i < series; i++) {
        double sum = 0, count = 0;
        for (int64_t b = 0; b < c->blocks.blocks; b++) {
            sum += c->blocks.sum[b * series + i];
            count += c->blocks.count[b * series + i];
        }
        c->mean[i] = count > 0 ? sum / count : NAN;
        if (i < c->facts.columns) c->column[i].events = (int64_t)count;
    }
}

static fr_status describe_columns(fr_comparison *c, const int64_t *k, int k_count,
                                  const fr_context *context, fr_error *err) {
    TRY(cut_blocks(c, err));
    c->blocks.series = c->runs * c->facts.columns;
    TRY(TAKE(&c->memory, c->column, c->facts.columns, err));
    TRY(TAKE(&c->memory, c->mean, c->blocks.series, err));
    for (int j = 0; j < k_count; j++) c->column[j].k = k[j];
    if (c->mean_of_events) {
        TRY(sum_blocks(c, k, k_count, context, err));
        mean_series(c);
        return FR_OK;
    }
    for (int i = 0; i < c->runs; i++) {
        fr_metric_value value;
        TRY(run_metric(c, &c->run[i], &value, err));
        c->mean[i] = value.value;
        if (!i) c->column[0].events = value.events;
    }
    return FR_OK;
}

/* Sample standard deviation; NaN for fewer than two numbers. */
static double deviation(const double *x, int count, double mean) {
    double squares = 0;
    for (int i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    return count > 1 ? sqrt(squares / (count - 1)) : NAN;
}

static double average(const double *x, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += x[i];
    return sum / count;
}

static fr_status describe_models(fr_comparison *c, fr_error *err) {
    int columns = c->facts.columns, models = c->facts.models;
    double *each, *order; /* [runs] of one model and column; [columns][models] means */
    TRY(TAKE(&c->memory, c->model, models, err));
    TRY(TAKE(&c->memory, c->interval, models * columns, err));
    if (c->sample.of) TRY(TAKE(&c->memory, c->of_models, models * columns, err));
    TRY(TAKE(&c->memory, each, c->runs, err));
    TRY(TAKE(&c->memory, order, columns * models, err));
    for (int m = 0; m < models; m++) {
        int from = c->first[m], runs = c->first[m + 1] - from;
        int64_t *seeds;
        double *mean, *sd;
        TRY(TAKE(&c->memory, seeds, runs, err));
        TRY(TAKE(&c->memory, mean, columns, err));
        TRY(TAKE(&c->memory, sd, columns, err));
        for (int i = 0; i < runs; i++) seeds[i] = c->run[from + i].seed;
        for (int j = 0; j < columns; j++) {
            for (int i = 0; i < runs; i++) each[i] = c->mean[(from + i) * columns + j];
            order[j * models + m] = mean[j] = average(each, runs);
            sd[j] = deviation(each, runs, mean[j]);
        }
        c->model[m] =
            (fr_compared_model){.name = c->run[from].name,
                                .runs = runs,
                                .seeds = seeds,
                                .mean = mean,
                                .sd = sd,
                                .bootstrap = c->interval + m * columns,
                                .sample = c->of_models ? c->of_models + m * columns : NULL};
    }
    for (int j = 0; j < columns; j++)
        c->column[j].tau = kendall_tau(order + j * models, order + (columns - 1) * models, models);
    return FR_OK;
}

/* ---- pairs ---- */

static bool is_single_untrained(const fr_comparison *c, int model) {
    const compared_run *r = &c->run[c->first[model]];
    return c->model[model].runs == 1 && !*r->facts.objective;
}

/* Fills c->couple with the runs of two models that belong together and returns their number. */
static int couple_runs(const fr_comparison *c, fr_compared_pair *pair) {
    int a0 = c->first[pair->first], a1 = c->first[pair->first + 1];
    int b0 = c->first[pair->second], b1 = c->first[pair->second + 1];
    bool one_a = is_single_untrained(c, pair->first), one_b = is_single_untrained(c, pair->second);
    bool one = one_a != one_b || (one_a && c->run[a0].seed != c->run[b0].seed), common = false;
    for (int a = a0; a < a1; a++)
        for (int b = b0; b < b1; b++) common |= c->run[a].seed == c->run[b].seed;
    pair->pairing = one ? FR_PAIRING_ONE : common ? FR_PAIRING_SEEDS : FR_PAIRING_NONE;
    int count = 0;
    for (int a = a0; a < a1; a++) {
        for (int b = b0; b < b1; b++) {
            if (pair->pairing == FR_PAIRING_SEEDS && c->run[a].seed != c->run[b].seed) continue;
            c->couple[count][0] = a;
            c->couple[count++][1] = b;
        }
    }
    pair->seeds = pair->pairing != FR_PAIRING_NONE ? count : a1 - a0 < b1 - b0 ? a1 - a0 : b1 - b0;
    return count;
}

/* Every couple has the same weight; without a common seed this is the difference of means. Couples
 * are counted first, so a run that is in all of them has weight exactly 1. */
static void weigh_runs(const fr_comparison *c, int count, double *weight) {
    for (int i = 0; i < count; i++) {
        weight[c->couple[i][0]]--;
        weight[c->couple[i][1]]++;
    }
    for (int i = 0; i < c->runs; i++) weight[i] /= count;
}

/* The difference in mean[runs][columns] of one resample, or of the data. Each model is summed by
 * itself. So models with equal numbers have a difference of exactly 0, and order flips do not
 * depend on rounding. */
static double weighted(const fr_comparison *c, const double *weight, const double *mean,
                       int column) {
    double first = 0, second = 0;
    for (int i = 0; i < c->runs; i++) {
        double part = weight[i] * mean[i * c->facts.columns + column];
        if (weight[i] < 0) first -= part;
        if (weight[i] > 0) second += part;
    }
    return second - first;
}

/* mean of the differences -+ t(df = n - 1) sd / sqrt(n) */
static fr_interval seed_interval(const double *each, int count, double level) {
    double mean = average(each, count);
    double half =
        student_quantile((1 + level) / 2, count - 1) * deviation(each, count, mean) / sqrt(count);
    return (fr_interval){mean - half, mean + half};
}

/* Welch's interval: runs of the two models are independent, and their spreads may differ. */
static fr_interval welch_interval(const fr_compared_model *a, const fr_compared_model *b,
                                  int column, double level) {
    double mean = b->mean[column] - a->mean[column];
    double va = a->sd[column] * a->sd[column] / a->runs,
           vb = b->sd[column] * b->sd[column] / b->runs, both = va + vb;
    double df = both * both / (va * va / (a->runs - 1) + vb * vb / (b->runs - 1));
    double half = both > 0 ? student_quantile((1 + level) / 2, df) * sqrt(both) : 0;
    return (fr_interval){mean - half, mean + half};
}

static fr_interval interval_over_seeds(const fr_comparison *c, const fr_compared_pair *pair,
                                       int column, double *each) {
    int columns = c->facts.columns;
    double level = c->settings.level;
    if (pair->seeds < FR_SEEDS_LEAST) return (fr_interval){NAN, NAN};
    if (pair->pairing == FR_PAIRING_NONE)
        return welch_interval(&c->model[pair->first], &c->model[pair->second], column, level);
    for (int i = 0; i < pair->seeds; i++)
        each[i] = c->mean[c->couple[i][1] * columns + column] -
                  c->mean[c->couple[i][0] * columns + column];
    return seed_interval(each, pair->seeds, level);
}

static fr_status describe_pairs(fr_comparison *c, fr_error *err) {
    int columns = c->facts.columns;
    int64_t pairs = (int64_t)c->facts.models * (c->facts.models - 1) / 2, at = 0;
    double *each;
    TRY(TAKE(&c->memory, c->pair, pairs, err));
    TRY(TAKE(&c->memory, c->difference, pairs * columns, err));
    TRY(TAKE(&c->memory, c->weight, pairs * c->runs, err));
    if (c->sample.of) TRY(TAKE(&c->memory, c->of_pairs, pairs * columns, err));
    TRY(TAKE(&c->memory, c->couple, (int64_t)c->runs * c->runs, err));
    TRY(TAKE(&c->memory, each, c->runs, err));
    for (int a = 0; a < c->facts.models; a++) {
        for (int b = a + 1; b < c->facts.models; b++, at++) {
            fr_compared_pair *pair = &c->pair[at];
            double *weight = c->weight + at * c->runs;
            fr_difference *d = c->difference + at * columns;
            *pair = (fr_compared_pair){.first = a,
                                       .second = b,
                                       .difference = d,
                                       .sample = c->of_pairs ? c->of_pairs + at * columns : NULL};
            weigh_runs(c, couple_runs(c, pair), weight);
            for (int j = 0; j < columns; j++)
                d[j] = (fr_difference){.value = weighted(c, weight, c->mean, j),
                                       .seed_t = interval_over_seeds(c, pair, j, each),
                                       .bootstrap = {NAN, NAN},
                                       .permutation = NAN,
                                       .adjusted = NAN,
                                       .flipped = NAN,
                                       .reversed = NAN};
        }
    }
    c->facts.pairs = (int)pairs;
    return FR_OK;
}

/* ---- from a sample to all events ---- */

/* The interval of a weighted sum of the runs' means. A run's mean moves by (x - mean) / count for
 * an event of value x. */
static fr_interval estimate(const fr_comparison *c, const double *weight, int column, double value,
                            double *influence) {
    int columns = c->facts.columns;
    int64_t events = c->run[0].facts.count;
    if (!c->each) return (fr_interval){NAN, NAN};
    for (int64_t e = 0; e < events; e++) influence[e] = 0;
    for (int i = 0; i < c->runs; i++) {
        const double *each = c->each + (i * columns + column) * events;
        double mean = c->mean[i * columns + column], count = 0;
        for (int64_t e = 0; e < events; e++) count += !isnan(each[e]);
        for (int64_t e = 0; weight[i] != 0 && e < events; e++)
            if (!isnan(each[e])) influence[e] += weight[i] * (each[e] - mean) / count;
    }
    return finite_linear(c->sample, value, influence, c->column[column].events);
}

static fr_status estimate_all(fr_comparison *c, fr_error *err) {
    double *influence, *weight;
    int columns = c->facts.columns;
    if (!c->sample.of) return FR_OK;
    TRY(TAKE(&c->memory, influence, c->run[0].facts.count, err));
    TRY(TAKE(&c->memory, weight, c->runs, err));
    for (int m = 0; m < c->facts.models; m++) {
        for (int i = 0; i < c->runs; i++)
            weight[i] = c->run[i].model == m ? 1.0 / c->model[m].runs : 0;
        for (int j = 0; j < columns; j++)
            c->of_models[m * columns + j] = estimate(c, weight, j, c->model[m].mean[j], influence);
    }
    for (int p = 0; p < c->facts.pairs; p++)
        for (int j = 0; j < columns; j++)
            c->of_pairs[p * columns + j] = estimate(
                c, c->weight + p * c->runs, j, c->difference[p * columns + j].value, influence);
    return FR_OK;
}

/* ---- resampling ---- */

typedef struct pair_job {
    fr_comparison *c;
    const double *mean; /* [resamples][series] */
    double *scratch;    /* [threads][resamples] differences, worker scratch */
    bool flips;         /* the resamples are sign flips */
} pair_job;

/* Interval and order under the bootstrap, for one pair and column. */
static void judge_bootstrap(const pair_job *j, const double *weight, int column, fr_difference *d,
                            double *values) {
    fr_comparison *c = j->c;
    int64_t flipped = 0, reversed = 0, resamples = c->settings.resamples;
    for (int64_t r = 0; r < resamples; r++) {
        const double *mean = j->mean + r * c->blocks.series;
        double here = values[r] = weighted(c, weight, mean, column);
        flipped += here * weighted(c, weight, mean, c->facts.columns - 1) < 0;
        reversed += here * d->value < 0;
    }
    d->flipped = (double)flipped / (double)resamples;
    d->reversed = (double)reversed / (double)resamples;
    d->bootstrap = bootstrap_interval(values, resamples, c->settings.level);
}

/* Share of rounds with a difference at least as large as the observed one, which counts as a round.
 * The comparison tolerates rounding, because equal sums may differ in their last bits. */
static double share_as_large(const double *values, int64_t count, double found) {
    int64_t as_large = 1;
    for (int64_t r = 0; r < count; r++) as_large += fabs(values[r]) >= fabs(found) * (1 - 1e-9);
    return (double)as_large / (double)(count + 1);
}

/* A shard is one pair and column. */
static fr_status judge_shard(void *job, int64_t shard, int worker, fr_error *err) {
    const pair_job *j = job;
    fr_comparison *c = j->c;
    (void)err;
    int column = (int)(shard % c->facts.columns);
    int64_t resamples = c->settings.resamples;
    fr_difference *d = c->difference + shard;
    const double *weight = c->weight + shard / c->facts.columns * c->runs;
    double *values = j->scratch + worker * resamples;
    if (isnan(d->value)) return FR_OK; /* a column without events: all of it is NaN already */
    if (!j->flips) {
        judge_bootstrap(j, weight, column, d, values);
        return FR_OK;
    }
    for (int64_t r = 0; r < resamples; r++)
        values[r] = weighted(c, weight, j->mean + r * c->blocks.series, column);
    d->permutation = share_as_large(values, resamples, d->value);
    return FR_OK;
}

/* A shard is one model and column: the mean over its runs in every resample. */
static fr_status judge_model(void *job, int64_t shard, int worker, fr_error *err) {
    const pair_job *j = job;
    fr_comparison *c = j->c;
    (void)err;
    int columns = c->facts.columns, column = (int)(shard % columns), model = (int)(shard / columns);
    int from = c->first[model], runs = c->first[model + 1] - from;
    int64_t resamples = c->settings.resamples;
    double *values = j->scratch + worker * resamples;
    for (int64_t r = 0; r < resamples; r++) {
        const double *mean = j->mean + r * c->blocks.series;
        values[r] = 0;
        for (int i = 0; i < runs; i++) values[r] += mean[(from + i) * columns + column] / runs;
    }
    c->interval[shard] = bootstrap_interval(values, resamples, c->settings.level);
    return FR_OK;
}

static block_records records_of(const fr_comparison *c, int run) {
    const fr_ranking_facts *f = &c->run[run].facts;
    return (block_records){f->records, f->oov, &c->cut};
}

/* mean[resamples][series] under the bootstrap. */
static fr_status resample(fr_comparison *c, resampling how, const fr_context *team, double *mean,
                          fr_error *err) {
    const char *metric = c->settings.metric;
    double *one;
    if (c->mean_of_events) return bootstrap_means(&c->blocks, how, team, mean, err);
    TRY(ALLOCATE(one, how.resamples, err));
    fr_status status = FR_OK;
    for (int i = 0; !status && i < c->runs; i++) {
        block_records from = records_of(c, i);
        status = statistic_drawn(&from, &metric, 1, how, team, one, err);
        for (int64_t r = 0; r < how.resamples; r++) mean[r * c->runs + i] = one[r];
    }
    free(one);
    return status;
}

/* The permutation test of a metric that is not a mean over events, for every pair. */
static fr_status swap_pairs(fr_comparison *c, resampling how, const fr_context *team,
                            double *values, fr_error *err) {
    for (int p = 0; p < c->facts.pairs; p++) {
        fr_difference *d = c->difference + p;
        int count = couple_runs(c, &c->pair[p]);
        if (isnan(d->value)) continue;
        for (int64_t r = 0; r < how.resamples; r++) values[r] = 0;
        for (int i = 0; i < count; i++) {
            block_records first = records_of(c, c->couple[i][0]),
                          second = records_of(c, c->couple[i][1]);
            TRY(statistic_swapped(&first, &second, c->settings.metric, how, team, values, err));
        }
        for (int64_t r = 0; r < how.resamples; r++) values[r] /= count;
        d->permutation = share_as_large(values, how.resamples, d->value);
    }
    return FR_OK;
}

static int by_p(const void *a, const void *b) {
    double x = (*(fr_difference *const *)a)->permutation,
           y = (*(fr_difference *const *)b)->permutation;
    return (x > y) - (x < y);
}

/* Holm's correction over the pairs, in each column: the smallest of m p-values is multiplied by m,
 * the next one by m - 1, and so on; none may be smaller than the one before. */
static fr_status adjust(fr_comparison *c, fr_error *err) {
    fr_difference **order;
    TRY(TAKE(&c->memory, order, c->facts.pairs, err));
    for (int j = 0; j < c->facts.columns; j++) {
        int tests = 0;
        double largest = 0;
        for (int p = 0; p < c->facts.pairs; p++) {
            fr_difference *d = &c->difference[p * c->facts.columns + j];
            if (!isnan(d->permutation)) order[tests++] = d;
        }
        if (tests) qsort(order, (size_t)tests, sizeof *order, by_p);
        for (int i = 0; i < tests; i++) {
            largest = fmax(largest, fmin(1, (tests - i) * order[i]->permutation));
            order[i]->adjusted = largest;
        }
    }
    return FR_OK;
}

static fr_status judge_pairs(fr_comparison *c, const fr_context *context, fr_error *err) {
    resampling how = {c->seed, c->settings.resamples};
    int64_t columns = c->facts.columns, shards = c->facts.pairs * columns;
    double *mean = NULL, *scratch = NULL;
    fr_context team = context_team(context, 0);
    fr_status status = ALLOCATE(mean, how.resamples * c->blocks.series, err);
    if (!status) status = ALLOCATE(scratch, team.threads * how.resamples, err);
    pair_job job = {.c = c, .mean = mean, .scratch = scratch};
    if (!status) status = resample(c, how, &team, mean, err);
    shard_stage told = {"intervals", shards, "differences"};
    if (!status) status = shards_run(&team, &told, shards, judge_shard, &job, err);
    told = (shard_stage){"intervals", c->facts.models * columns, "means"};
    if (!status) status = shards_run(&team, &told, told.total, judge_model, &job, err);
    job.flips = true;
    if (!status && !c->mean_of_events) status = swap_pairs(c, how, &team, scratch, err);
    if (!status && c->mean_of_events) status = bootstrap_flips(&c->blocks, how, &team, mean, err);
    told = (shard_stage){"tests", shards, "differences"};
    if (!status && c->mean_of_events)
        status = shards_run(&team, &told, shards, judge_shard, &job, err);
    free(scratch);
    free(mean);
    return status ? status : adjust(c, err);
}

/* ---- the comparison ---- */

fr_status fr_compare(const fr_compare_run *runs, int count, const int64_t *k, int k_count,
                     const fr_compare_settings *settings, int64_t seed, const fr_context *context,
                     fr_comparison **out, fr_error *err) {
    fr_compare_settings own;
    NEED(out, err);
    *out = NULL;
    if (count < 2) return fail(err, FR_EUSAGE, "%d runs, expected at least two", count);
    if (k_count < 0 || k_count > MOST_K)
        return fail(err, FR_EUSAGE, "%d values of K, expected 0 to %d", k_count, MOST_K);
    NEED(runs, err);
    if (k_count) NEED(k, err);
    for (int i = 0; i < count; i++) NEED(runs[i].ranking, err);
    TRY(options_settle(fr_compare_options, settings, &own, sizeof own, err));
    if (!own.sampler) own.sampler = standard_sampler;
    if (!own.metric) own.metric = standard_metric;
    TRY(fr_metrics_compute(NULL, 0, FR_OOV_EXCLUDE, (const char *const *)&own.metric, 1,
                           &(fr_metric_value){0}, err));
    fr_comparison *c;
    TRY(ALLOCATE(c, 1, err));
    c->mean_of_events = metrics_check_each(own.metric, NULL) == FR_OK;
    c->settings = own;
    c->seed = (uint64_t)seed;
    c->facts.columns = k_count + 1;
    fr_status status = take_metric(c, k_count, err);
    if (!status) status = group_runs(c, runs, count, context, err);
    if (!status) status = describe_columns(c, k, k_count, context, err);
    if (!status) status = describe_models(c, err);
    if (!status) status = describe_pairs(c, err);
    if (!status) status = estimate_all(c, err);
    if (!status) status = judge_pairs(c, context, err);
    c->facts.column = c->column;
    c->facts.model = c->model;
    c->facts.pair = c->pair;
    if (status)
        fr_comparison_close(c);
    else
        *out = c;
    return status;
}

void fr_comparison_close(fr_comparison *c) {
    if (!c) return;
    arena_free(&c->memory);
    free(c);
}

fr_comparison_facts fr_comparison_get(const fr_comparison *c) {
    return c ? c->facts : (fr_comparison_facts){0};
}
