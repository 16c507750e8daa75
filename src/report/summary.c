/* summary.c - see summary.h. */
#include "report/summary.h"

#include "eval/agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *summary_label(const char *model) {
    const fr_model *m;
    for (int i = 0; (m = fr_model_at(i)); i++)
        if (!strcmp(model, m->name)) return m->label;
    return strncmp(model, "baseline:", 9) ? model : model + 9;
}

/* Mean and sample standard deviation of value(user, 0), value(user, 1), ...; NaN is skipped. */
static mean_sd spread(double (*value)(const void *user, int i), const void *user, int count) {
    mean_sd out = {.mean = NAN, .sd = NAN};
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++) {
        double x = value(user, i);
        if (isnan(x)) continue;
        sum += x;
        out.n++;
    }
    if (out.n) out.mean = sum / out.n;
    for (int i = 0; i < count; i++) {
        double x = value(user, i);
        if (!isnan(x)) squares += (x - out.mean) * (x - out.mean);
    }
    if (out.n > 1) out.sd = sqrt(squares / (out.n - 1));
    return out;
}

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

const model_numbers *summary_find(const data_numbers *d, const char *model, const char *objective) {
    for (int i = 0; i < d->models; i++)
        if (same(d->model[i].name, model) && same(d->model[i].objective, objective))
            return &d->model[i];
    return NULL;
}

bool summary_is_oracle(const model_numbers *m) { return !strcmp(m->name, "oracle"); }

bool summary_is_compared(const model_numbers *m) {
    return same(m->objective, "bce") || (m->external && !summary_is_oracle(m));
}

bool summary_is_main(const model_numbers *m) { return !m->objective || same(m->objective, "bce"); }

bool summary_is_judged(const model_numbers *m) {
    return summary_is_main(m) && !summary_is_oracle(m);
}

const char *summary_compared_word(const summary *s) {
    for (int d = 0; d < s->datas; d++)
        for (int i = 0; i < s->data[d].models; i++)
            if (s->data[d].model[i].external) return "compared";
    return "trained";
}

int summary_place_of_k(const summary *s, int64_t k) {
    for (int i = 0; i < s->ks; i++)
        if (s->k[i] == k) return i;
    return -1;
}

typedef struct metric_ask {
    const results *r;
    const result *group;
    metric_key metric;
} metric_ask;

/* Of unit number i; NaN if it is not one of the group's seeds. */
static double metric_of(const void *user, int i) {
    const metric_ask *a = user;
    const result *u = &a->r->list.at[i];
    return results_same_group(u, a->group) ? results_number(u, a->metric) : NAN;
}

mean_sd summary_mean(const summary *s, const result *unit, metric_key metric) {
    metric_ask ask = {s->results, unit, metric};
    return spread(metric_of, &ask, (int)s->results->list.count);
}

mean_sd summary_cell(const summary *s, const result *unit, int removal, int cell) {
    return summary_mean(s, unit, metric_of_cell("mrr", removal, cell));
}

/* ---- runs ---- */

fr_status summary_numbers(const result *unit, const char *const *name, int names, double *out,
                          fr_error *err) {
    fr_ranking_facts f = fr_ranking_get(unit->ranking);
    for (int i = 0; i < names; i++) {
        const unit_metric *stored = record_metric(&unit->record, (metric_key){.name = name[i]});
        fr_metric_value found = {.value = stored ? stored->value : NAN};
        if (!stored) TRY(fr_metrics_compute(f.records, f.count, f.oov, &name[i], 1, &found, err));
        out[i] = found.value;
    }
    return FR_OK;
}

fr_status summary_expected(const result *unit, const int64_t *k, int count,
                           const fr_context *context, double *out, fr_error *err) {
    int64_t *missing = NULL;
    fr_expected *found = NULL;
    fr_ranking_facts f = fr_ranking_get(unit->ranking);
    TRY(ALLOCATE(missing, count + 1, err)); /* there may be no K */
    fr_sampling rest = {.sampler = "uniform", .oov = f.oov, .k = missing};
    for (int i = 0; i < count; i++) {
        const unit_metric *stored = record_metric(&unit->record, metric_of_k(k[i]));
        out[i] = stored ? stored->value : NAN;
        if (!stored) missing[rest.k_count++] = k[i];
    }
    fr_status status = FR_OK;
    if (rest.k_count) status = ALLOCATE(found, rest.k_count, err);
    if (found) status = fr_expected_compute(f.records, f.count, &rest, context, found, err);
    for (int i = 0, at = 0; !status && at < rest.k_count; i++)
        if (k[i] == missing[at]) out[i] = found[at++].mrr;
    free(missing);
    free(found);
    return status;
}

static fr_status read_run(summary *s, const result *unit, run_numbers *out,
                          const fr_context *context, fr_error *err) {
    static const char *const names[] = {"mrr",      "hits@10", "all-seen",     "all-unseen",
                                        "coverage", "ties",    "mrr-available"};
    enum { NAMES = sizeof names / sizeof *names };
    double m[NAMES];
    TRY(summary_numbers(unit, names, NAMES, m, err));
    *out = (run_numbers){.run = unit,
                         .hits10 = m[1],
                         .all_seen = m[2],
                         .all_unseen = m[3],
                         .coverage = m[4],
                         .ties = m[5],
                         .available = m[6]};
    fr_ranking_facts f = fr_ranking_get(unit->ranking);
    if (f.protocol.sample) out->coverage = (double)f.covered / (double)f.protocol.sample_of;
    for (int64_t i = 0; i < f.count; i++)
        out->ranked += f.oov == FR_OOV_ZERO || f.records[i].covered;
    TRY(TAKE(&s->memory, out->expected, s->ks + 1, err));
    out->expected[s->ks] = m[0];
    return summary_expected(unit, s->k, s->ks, context, out->expected, err);
}

typedef struct run_ask {
    const model_numbers *m;
    size_t offset; /* of a number in run_numbers, or */
    int k;         /* column of `expected`, -1 = none */
} run_ask;

static double number_of(const void *user, int i) {
    const run_ask *a = user;
    const run_numbers *run = &a->m->run[i];
    return a->k < 0 ? *(const double *)((const char *)run + a->offset) : run->expected[a->k];
}

static mean_sd over_runs(const model_numbers *m, size_t offset) {
    run_ask ask = {m, offset, -1};
    return spread(number_of, &ask, m->runs);
}

/* All rank units of a data set, those of a model side by side. */
static fr_status read_data(summary *s, data_numbers *d, const fr_context *context, fr_error *err) {
    results *r = s->results;
    run_numbers *run;
    model_numbers *model;
    int runs = 0, models = 0, used = 0;
    for (int i = 0; (i = results_next(r, i, UNIT_RANK, d->name, NULL, NULL)) >= 0; i++) runs++;
    TRY(TAKE(&s->memory, run, runs, err));
    TRY(TAKE(&s->memory, model, runs, err));
    for (int i = 0; (i = results_next_group(r, i, UNIT_RANK, d->name, false)) >= 0; i++) {
        const result *u = &r->list.at[i];
        model_numbers *m = &model[models++];
        *m = (model_numbers){.name = u->model,
                             .label = summary_label(u->model),
                             .objective = u->objective,
                             .external = u->external,
                             .run = run + used};
        for (int j = i; (j = results_next_seed(r, j, u)) >= 0; j++) {
            TRY(read_run(s, &r->list.at[j], &run[used++], context, err));
            m->runs++;
        }
        TRY(TAKE(&s->memory, m->expected, s->ks + 1, err));
        for (int k = 0; k <= s->ks; k++)
            m->expected[k] = spread(number_of, &(run_ask){.m = m, .k = k}, m->runs);
        m->hits10 = over_runs(m, offsetof(run_numbers, hits10));
        m->all_seen = over_runs(m, offsetof(run_numbers, all_seen));
        m->all_unseen = over_runs(m, offsetof(run_numbers, all_unseen));
        m->available = over_runs(m, offsetof(run_numbers, available));
        if (!*d->protocol) d->protocol = fr_ranking_get(u->ranking).protocol_text;
    }
    d->models = models;
    d->model = model;
    int facts = results_next(r, 0, UNIT_FACTS, d->name, NULL, NULL);
    if (facts >= 0) d->facts = &r->list.at[facts];
    return FR_OK;
}

/* Kendall's tau between the orders of all scorers under every K and under the full catalog. */
static fr_status agree(summary *s, data_numbers *d, fr_error *err) {
    double *full, *sampled;
    TRY(TAKE(&s->memory, d->tau, s->ks, err));
    TRY(TAKE(&s->memory, full, d->models, err));
    TRY(TAKE(&s->memory, sampled, d->models, err));
    for (int k = 0; k < s->ks; k++) {
        d->judged = 0;
        for (int i = 0; i < d->models; i++) {
            if (!summary_is_judged(&d->model[i])) continue;
            full[d->judged] = d->model[i].expected[s->ks].mean;
            sampled[d->judged++] = d->model[i].expected[k].mean;
        }
        d->tau[k] = d->judged > 1 ? kendall_tau(sampled, full, d->judged) : NAN;
    }
    return FR_OK;
}

static void count_events(data_numbers *d) {
    if (!d->models) return;
    fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
    for (int64_t i = 0; i < f.count; i++) {
        d->ranked += f.records[i].covered;
        d->repeated += f.records[i].covered && f.records[i].repeated;
    }
}

/* ---- comparisons ---- */

/* A model of a gain. External models are compared with those trained with bce. */
static const model_numbers *find_gain(const data_numbers *d, const char *name,
                                      const char *objective) {
    const model_numbers *m = summary_find(d, name, objective);
    const model_numbers *other = strcmp(objective, "bce") ? NULL : summary_find(d, name, NULL);
    return m ? m : other && other->external ? other : NULL;
}

/* The number of ranked events; for a sample, an estimate of the number for all events, because
 * fr_compare cuts blocks of all events. */
static int64_t all_ranked(const run_numbers *run) {
    fr_protocol_facts p = fr_ranking_get(run->run->ranking).protocol;
    return p.sample ? (int64_t)((double)run->ranked * (double)p.sample_of / (double)p.sample)
                    : run->ranked;
}

/* Compares the named models under one objective, or all that are compared if `two` is NULL. */
static fr_status compare(const summary *s, const data_numbers *d, const char *objective,
                         const char *const *two, const fr_context *context, fr_comparison **out,
                         fr_error *err) {
    fr_compare_run *runs;
    fr_compare_settings settings;
    int count = 0, models = 0, most = 0;
    for (int i = 0; i < d->models; i++) most += d->model[i].runs;
    TRY(ALLOCATE(runs, most, err));
    for (int k = 0; k < (two ? 2 : d->models); k++) {
        const model_numbers *m = two ? find_gain(d, two[k], objective) : &d->model[k];
        if (!m || (!two && !summary_is_compared(m))) continue;
        models++;
        for (int i = 0; i < m->runs; i++)
            runs[count++] = (fr_compare_run){.ranking = m->run[i].run->ranking,
                                             .file = m->run[i].run->key,
                                             .model = m->label,
                                             .seed = &m->run[i].run->seed};
    }
    fr_status status = fr_options_defaults(fr_compare_options, &settings, err);
    if (!status && models > 1) {
        int64_t events = 0; /* a small study has smaller blocks, at least ten */
        for (int i = 0; i < d->models; i++)
            if (d->model[i].runs) events = all_ranked(&d->model[i].run[0]);
        if (settings.block > events / 10) settings.block = events >= 10 ? events / 10 : 1;
        status = fr_compare(runs, count, s->k, s->ks, &settings, 7, context, out, err);
    }
    fr_options_free(fr_compare_options, &settings);
    free(runs);
    return status;
}

fr_status summary_make(summary *s, results *r, const fr_context *context, fr_error *err) {
    const plan *p = &r->plan;
    *s = (summary){.results = r, .k = p->k, .ks = p->ks};
    fr_status status = TAKE(&s->memory, s->data, p->datas, err);
    for (int i = 0; !status && i < p->datas; i++) {
        data_numbers *d = &s->data[s->datas++];
        *d = (data_numbers){.name = p->data[i].name, .protocol = ""};
        status = read_data(s, d, context, err);
        if (!status) status = agree(s, d, err);
        if (!status) count_events(d);
        if (!status) status = compare(s, d, NULL, NULL, context, &d->compared, err);
        if (!status && p->gain[0])
            status = compare(s, d, "bce", p->gain, context, &d->gain[0], err);
        if (!status && p->gain[0])
            status = compare(s, d, "bpr", p->gain, context, &d->gain[1], err);
        if (!status && !d->models) s->datas--; /* none of its units is done */
    }
    if (status) summary_free(s);
    return status;
}

void summary_free(summary *s) {
    for (int i = 0; i < s->datas; i++) {
        fr_comparison_close(s->data[i].compared);
        for (int k = 0; k < 2; k++) fr_comparison_close(s->data[i].gain[k]);
    }
    arena_free(&s->memory);
    *s = (summary){0};
}
