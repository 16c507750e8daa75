/* interval.c - intervals of one ranking's metrics (fullrank.h, chapter 11): by the block bootstrap
 * (PROTOCOL 11), or for a sample, for the value over all events (PROTOCOL 15).
 *
 * The blocks are those of a comparison, so a metric has the same interval here and there. All means
 * over events are series of one bootstrap; the other metrics are computed again in every resample,
 * all from the same records.
 */
#include "base/options.h"
#include "eval/aggregate.h"
#include "eval/finite.h"
#include "eval/metrics.h"
#include "eval/statistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_interval_options[FR_OPTIONS_MAX] = {
    {"block", FR_OPTION_INT, "128", "EVENTS", 1, INT32_MAX, offsetof(fr_interval_settings, block),
     "consecutive ranked events that the bootstrap draws together"},
    {"resamples", FR_OPTION_INT, "10000", "N", 100, 1000000,
     offsetof(fr_interval_settings, resamples), "number of resamples of the bootstrap"},
    {"level", FR_OPTION_REAL, "0.95", "SHARE", 0.5, 0.9999, offsetof(fr_interval_settings, level),
     "level of the intervals"},
    OPTIONS_END(fr_interval_settings)};

/* What both functions need. Run memory. */
typedef struct job {
    fr_interval_settings settings;
    resampling how;
    arena memory;
    event_blocks cut;
    finite_sample sample;
    bool over_sample;
} job;

static fr_status start(job *j, const fr_record *records, int64_t count, int oov,
                       const fr_interval_settings *settings, int64_t seed, fr_error *err) {
    bool *ranked;
    *j = (job){.how = {.seed = (uint64_t)seed}};
    TRY(options_settle(fr_interval_options, settings, &j->settings, sizeof j->settings, err));
    j->how.resamples = j->settings.resamples;
    j->sample = (finite_sample){count, j->settings.of, j->settings.level};
    j->over_sample = j->settings.over == FR_OVER_SAMPLE;
    if (j->sample.of < 0 || (j->sample.of && j->sample.of < count) ||
        (j->over_sample && !j->sample.of))
        return fail(err, FR_EUSAGE, "%lld records as a sample of %lld events, expected no more",
                    (long long)count, (long long)j->sample.of);
    int64_t block = j->over_sample ? 1 : finite_block(j->sample, j->settings.block);
    TRY(TAKE(&j->memory, ranked, count, err));
    for (int64_t i = 0; i < count; i++) ranked[i] = records[i].covered || oov == FR_OOV_ZERO;
    return blocks_cut(ranked, count, block, &j->memory, &j->cut, err);
}

/* Intervals of values[resamples][series]; series i goes to out[to[i]], out[i] if `to` is NULL. */
static fr_status judge(const job *j, const double *values, int series, const int *to,
                       fr_interval *out, fr_error *err) {
    double *one;
    TRY(ALLOCATE(one, j->how.resamples, err));
    for (int i = 0; i < series; i++) {
        for (int64_t r = 0; r < j->how.resamples; r++) one[r] = values[r * series + i];
        out[to ? to[i] : i] = bootstrap_interval(one, j->how.resamples, j->settings.level);
    }
    free(one);
    return FR_OK;
}

/* Adds one number per event, NaN = does not count, to the sums of a series. */
static void add_series(const event_blocks *cut, const double *each, block_sums *sums, int series) {
    for (int64_t b = 0; b < cut->blocks; b++)
        for (int64_t e = cut->start[b]; e < cut->start[b + 1]; e++) {
            if (isnan(each[e])) continue;
            sums->sum[b * sums->series + series] += each[e];
            sums->count[b * sums->series + series]++;
        }
}

static fr_status open_sums(job *j, int series, block_sums *out, fr_error *err) {
    *out = (block_sums){.blocks = j->cut.blocks, .series = series};
    TRY(TAKE(&j->memory, out->sum, out->blocks * series, err));
    return TAKE(&j->memory, out->count, out->blocks * series, err);
}

/* Intervals of means over events, as the value over all of them. */
static fr_status estimate_means(job *j, const fr_record *records, int64_t count, int oov,
                                const char *const *name, const int *at, int means, fr_interval *out,
                                fr_error *err) {
    double *each;
    TRY(TAKE(&j->memory, each, count, err));
    for (int i = 0; i < means; i++) {
        bool share = fr_metric_find(name[at[i]], NULL)->kind == FR_KIND_SHARE;
        TRY(metrics_each(name[at[i]], records, count, oov, each, err));
        out[at[i]] = share ? finite_share(j->sample, each) : finite_mean(j->sample, each);
    }
    return FR_OK;
}

/* The metrics that are means over events. */
static fr_status resample_means(job *j, const fr_record *records, int64_t count, int oov,
                                const char *const *name, const int *at, int means,
                                const fr_context *context, fr_interval *out, fr_error *err) {
    block_sums sums;
    double *each, *values = NULL;
    if (j->over_sample) return estimate_means(j, records, count, oov, name, at, means, out, err);
    TRY(open_sums(j, means, &sums, err));
    TRY(TAKE(&j->memory, each, count, err));
    for (int i = 0; i < means; i++) {
        TRY(metrics_each(name[at[i]], records, count, oov, each, err));
        add_series(&j->cut, each, &sums, i);
    }
    fr_status status = ALLOCATE(values, j->how.resamples * means, err);
    if (!status) status = bootstrap_means(&sums, j->how, context, values, err);
    if (!status) status = judge(j, values, means, at, out, err);
    free(values);
    return status;
}

/* The others. */
static fr_status resample_others(job *j, const fr_record *records, int oov, const char *const *name,
                                 const int *at, int others, const fr_context *context,
                                 fr_interval *out, fr_error *err) {
    block_records from = {records, oov, &j->cut};
    const char **asked;
    double *values = NULL;
    TRY(TAKE(&j->memory, asked, others, err));
    for (int i = 0; i < others; i++) asked[i] = name[at[i]];
    fr_status status = ALLOCATE(values, j->how.resamples * others, err);
    if (!status) status = statistic_drawn(&from, asked, others, j->how, context, values, err);
    if (!status) status = judge(j, values, others, at, out, err);
    free(values);
    return status;
}

fr_status fr_intervals_compute(const fr_record *records, int64_t count, int oov,
                               const char *const *name, int names,
                               const fr_interval_settings *settings, int64_t seed,
                               const fr_context *context, fr_interval *out, fr_error *err) {
    fr_metric_value *value = NULL;
    int *at = NULL, means = 0, others = 0;
    job j;
    if (names < 0) return fail(err, FR_EUSAGE, "%d metrics, expected 0 or more", names);
    if (names) NEED(out, err);
    fr_status status = ALLOCATE(value, names, err);
    if (!status) status = fr_metrics_compute(records, count, oov, name, names, value, err);
    if (!status) status = ALLOCATE(at, 2 * (int64_t)names, err);
    if (status) {
        free(value);
        return status;
    }
    status = start(&j, records, count, oov, settings, seed, err);
    for (int i = 0; !status && i < names; i++) {
        out[i] = (fr_interval){NAN, NAN};
        if (isnan(value[i].value)) continue; /* there is nothing to resample */
        if (j.over_sample && fr_metric_find(name[i], NULL)->kind == FR_KIND_COUNT) continue;
        if (metrics_check_each(name[i], NULL) == FR_OK)
            at[means++] = i;
        else
            at[names + others++] = i;
    }
    if (!status && j.cut.blocks > 1 && means)
        status = resample_means(&j, records, count, oov, name, at, means, context, out, err);
    if (!status && j.cut.blocks > 1 && others)
        status = resample_others(&j, records, oov, name, at + names, others, context, out, err);
    for (int i = 0; !status && j.over_sample && i < others; i++) {
        int k = at[names + i];
        if (strcmp(name[k], "median-rank") == 0)
            continue; /* ends between ranks miss the true one */
        out[k] = finite_pull(j.sample, value[k].value, out[k]);
    }
    arena_free(&j.memory);
    free(value);
    free(at);
    return status;
}

fr_status fr_intervals_expected(const fr_record *records, int64_t count,
                                const fr_sampling *sampling, const fr_interval_settings *settings,
                                int64_t seed, const fr_context *context, fr_interval *out,
                                fr_error *err) {
    NEED(sampling, err);
    if (sampling->k_count > 0) NEED(out, err);
    job j;
    double *each = NULL, *values = NULL;
    fr_sampling of_ranks = *sampling; /* only reciprocal ranks, without hits */
    of_ranks.hits_count = 0;
    for (int i = 0; i < sampling->k_count; i++) out[i] = (fr_interval){NAN, NAN};
    if (sampling->k_count < 1) return FR_OK;
    block_sums sums;
    fr_status status = ALLOCATE(each, count * sampling->k_count, err);
    if (!status) status = aggregate_each(records, count, &of_ranks, context, each, err);
    if (status) {
        free(each);
        return status;
    }
    status = start(&j, records, count, sampling->oov, settings, seed, err);
    for (int i = 0; !status && j.over_sample && i < sampling->k_count; i++)
        out[i] = finite_mean(j.sample, each + i * count);
    if (!status && !j.over_sample && j.cut.blocks > 1) {
        status = open_sums(&j, sampling->k_count, &sums, err);
        for (int i = 0; !status && i < sampling->k_count; i++)
            add_series(&j.cut, each + i * count, &sums, i);
        if (!status) status = ALLOCATE(values, j.how.resamples * sampling->k_count, err);
        if (!status) status = bootstrap_means(&sums, j.how, context, values, err);
        if (!status) status = judge(&j, values, sampling->k_count, NULL, out, err);
    }
    arena_free(&j.memory);
    free(each);
    free(values);
    return status;
}
