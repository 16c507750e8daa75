/* figures.c - see figures.h. One panel per data set; a model has the same look in all figures. */
#include "report/figures.h"

#include "report/granularity.h"
#include "report/selection.h"
#include "report/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared ---- */

/* Panels of a figure under construction; they and their arrays live in `memory`. */
typedef struct sheet {
    arena *memory;
    chart_panel *panel; /* [2 * data sets] */
    int count;
} sheet;

static fr_status sheet_open(sheet *h, const summary *s, arena *memory, fr_error *err) {
    *h = (sheet){.memory = memory};
    return TAKE(memory, h->panel, s->datas ? 2 * s->datas : 1, err);
}

static void sheet_end(const sheet *h, const char *title, figure *out) {
    *out = (figure){.title = title,
                    .panel_count = h->count,
                    .panels = h->panel,
                    .columns = h->count == 1 ? 1 : 2};
}

/* ---- a line for every scorer ---- */

/* y[n] of one run at x[n]. */
typedef fr_status run_curve(const result *run, int n, const double *x, const fr_context *context,
                            double *y, fr_error *err);

/* Mean over seeds of y at x, with a band of one deviation to both sides. */
static fr_status draw_model(const model_numbers *m, int n, const double *x, run_curve *values,
                            const fr_context *context, arena *memory, chart_series *out,
                            fr_error *err) {
    double *y, *low, *high, *one;
    TRY(TAKE(memory, y, n, err));
    TRY(TAKE(memory, low, n, err));
    TRY(TAKE(memory, high, n, err));
    TRY(TAKE(memory, one, (size_t)n * (size_t)m->runs, err));
    for (int r = 0; r < m->runs; r++) TRY(values(m->run[r].run, n, x, context, one + r * n, err));
    for (int i = 0; i < n; i++) {
        double squares = 0;
        y[i] = 0;
        for (int r = 0; r < m->runs; r++) y[i] += one[r * n + i] / m->runs;
        for (int r = 0; r < m->runs; r++) squares += pow(one[r * n + i] - y[i], 2);
        double sd = m->runs > 1 ? sqrt(squares / (m->runs - 1)) : 0;
        low[i] = y[i] - sd;
        high[i] = y[i] + sd;
    }
    bool band = m->runs > 1;
    *out = (chart_series){m->label, n, x, y, band ? low : NULL, band ? high : NULL, out->style};
    return FR_OK;
}

/* One line for every scorer of the main table: models, baselines, which are quiet, and the oracle.
 */
static fr_status draw_models(const data_numbers *set, int n, const double *x, run_curve *values,
                             const fr_context *context, sheet *h, chart_panel panel,
                             fr_error *err) {
    chart_series *list;
    int count = 0, loud = 0, quiet = 0;
    TRY(TAKE(h->memory, list, set->models, err));
    for (int i = 0; n && i < set->models; i++) {
        const model_numbers *m = &set->model[i];
        if (!summary_is_main(m)) continue;
        list[count].style = summary_is_compared(m) ? loud++
                            : summary_is_oracle(m) ? STYLE_QUIET
                                                   : STYLE_QUIET + ++quiet;
        TRY(draw_model(m, n, x, values, context, h->memory, &list[count++], err));
    }
    panel.title = set->name;
    panel.series_count = count;
    panel.series = list;
    panel.direct = true;
    if (count) h->panel[h->count++] = panel;
    return FR_OK;
}

/* ---- MRR against K ---- */

enum { MOST_POINTS = 48 };

/* 1, 2, 3, 5, 7, 10, 20, ... and N - 1, where sampling is the full catalog. */
static int k_grid(int64_t most, int64_t *k) {
    static const int steps[] = {1, 2, 3, 5, 7};
    int n = 0;
    for (int64_t decade = 1; decade < most; decade *= 10)
        for (int i = 0; i < 5 && n < MOST_POINTS - 1; i++)
            if (steps[i] * decade < most) k[n++] = steps[i] * decade;
    if (most > 0) k[n++] = most;
    return n;
}

/* The smallest catalog of the events of a data set, minus one: where all K exist. */
static int64_t most_negatives(const data_numbers *d) {
    int64_t most = 0;
    fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
    for (int64_t i = 0; i < f.count; i++)
        if (f.records[i].covered && (!most || f.records[i].n - 1 < most)) most = f.records[i].n - 1;
    return most;
}

/* The grid of a data set as numbers of an axis. */
static fr_status take_grid(int64_t most, arena *memory, double **x, int *n, fr_error *err) {
    int64_t k[MOST_POINTS];
    *n = k_grid(most, k);
    TRY(TAKE(memory, *x, *n, err));
    for (int i = 0; i < *n; i++) (*x)[i] = (double)k[i];
    return FR_OK;
}

/* Expected-K MRR at every K of the grid. */
static fr_status expected_curve(const result *run, int n, const double *x,
                                const fr_context *context, double *y, fr_error *err) {
    int64_t k[MOST_POINTS];
    for (int i = 0; i < n; i++) k[i] = (int64_t)x[i];
    return summary_expected(run, k, n, context, y, err);
}

static fr_status expected_figure(const summary *s, arena *memory, const fr_context *context,
                                 figure *out, fr_error *err) {
    sheet h;
    TRY(sheet_open(&h, s, memory, err));
    for (int d = 0; d < s->datas; d++) {
        double *x;
        int n;
        TRY(take_grid(most_negatives(&s->data[d]), memory, &x, &n, err));
        TRY(draw_models(&s->data[d], n, x, expected_curve, context, &h,
                        (chart_panel){.kind = CHART_LINES,
                                      .x = {.label = "K sampled negatives", .log = true},
                                      .y = {.label = "expected MRR"}},
                        err));
    }
    sheet_end(&h, "Expected MRR against K", out);
    return FR_OK;
}

/* ---- module gain ---- */

static fr_status gain_figure(const summary *s, arena *memory, const fr_context *context,
                             figure *out, fr_error *err) {
    (void)context;
    sheet h;
    TRY(sheet_open(&h, s, memory, err));
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        if (!set->gain[0]) continue;
        fr_comparison_facts f = fr_comparison_get(set->gain[0]);
        int64_t most = most_negatives(set);
        double *x, *y, *low, *high;
        chart_series *one;
        int n = 0;
        TRY(TAKE(memory, x, f.columns, err));
        TRY(TAKE(memory, y, f.columns, err));
        TRY(TAKE(memory, low, f.columns, err));
        TRY(TAKE(memory, high, f.columns, err));
        TRY(TAKE(memory, one, 1, err));
        for (int c = 0; c < f.columns; c++) {
            int64_t k = f.column[c].k ? f.column[c].k : most;
            const fr_difference *v = &f.pair[0].difference[c];
            if (isnan(v->value) || (n && (double)k <= x[n - 1])) continue;
            x[n] = (double)k;
            y[n] = v->value;
            low[n] = v->bootstrap.low;
            high[n++] = v->bootstrap.high;
        }
        *one = (chart_series){"gain", n, x, y, low, high, 0};
        h.panel[h.count++] = (chart_panel){
            .kind = CHART_LINES,
            .title = set->name,
            .x = {.label = "K sampled negatives; the last point is the full catalog", .log = true},
            .y = {.label = "gain in MRR"},
            .series_count = 1,
            .series = one,
            .zero_line = true};
    }
    sheet_end(&h, "Module gain against K", out);
    return FR_OK;
}

/* ---- where positives rank ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Share of ranked events with a rank of at most x, at the points of a grid. */
static fr_status distribution(const result *run, int n, const double *x, const fr_context *context,
                              double *y, fr_error *err) {
    (void)context;
    fr_ranking_facts f = fr_ranking_get(run->ranking);
    int64_t at = 0, below = 0;
    double *rank;
    TRY(ALLOCATE(rank, f.count, err));
    for (int64_t i = 0; i < f.count; i++)
        if (f.records[i].covered) rank[at++] = 1 + f.records[i].above + 0.5 * f.records[i].tied;
    qsort(rank, (size_t)at, sizeof *rank, by_value);
    for (int i = 0; i < n; i++) {
        while (below < at && rank[below] <= x[i]) below++;
        y[i] = at ? (double)below / (double)at : NAN;
    }
    free(rank);
    return FR_OK;
}

static fr_status rank_figure(const summary *s, arena *memory, const fr_context *context,
                             figure *out, fr_error *err) {
    sheet h;
    TRY(sheet_open(&h, s, memory, err));
    for (int d = 0; d < s->datas; d++) {
        double *x;
        int n;
        int64_t most = most_negatives(&s->data[d]) + 1; /* at the last rank every line is 1 */
        TRY(take_grid(most < 8 ? most : most / 4, memory, &x, &n, err));
        TRY(draw_models(
            &s->data[d], n, x, distribution, context, &h,
            (chart_panel){.kind = CHART_STEPS,
                          .x = {.label = "rank, up to a quarter of all destinations", .log = true},
                          .y = {.label = "share of events"}},
            err));
    }
    sheet_end(&h, "Where positives rank", out);
    return FR_OK;
}

/* ---- over time ---- */

enum { STRETCHES = 10 };

/* The MRR in every stretch of time; NaN where nothing is ranked. */
static fr_status stretches(const result *run, int n, const double *x, const fr_context *context,
                           double *y, fr_error *err) {
    (void)context;
    static const char *const mrr[] = {"mrr"};
    fr_ranking_facts f = fr_ranking_get(run->ranking);
    fr_slices s;
    fr_status status = FR_OK;
    TRY(fr_slices_compute(f.records, f.count, "time", &s, err));
    for (int i = 0; !status && i < n; i++) {
        fr_metric_value v = {NAN, 0};
        bool there = i < s.count && s.slice[i].from == x[i]; /* runs have the same events */
        if (there)
            status =
                fr_metrics_compute(s.slice[i].records, s.slice[i].events, f.oov, mrr, 1, &v, err);
        y[i] = v.value;
    }
    fr_slices_free(&s);
    return status;
}

/* Where the stretches of a data set begin, by its first run; 0 = not even two. */
static fr_status stretch_starts(const data_numbers *set, double *x, int *n, fr_error *err) {
    fr_slices s;
    fr_ranking_facts f = fr_ranking_get(set->model[0].run[0].run->ranking);
    TRY(fr_slices_compute(f.records, f.count, "time", &s, err));
    *n = 0;
    for (int i = 0; i < s.count && i < STRETCHES; i++)
        if (!isnan(s.slice[i].from)) x[(*n)++] = s.slice[i].from;
    if (*n < 2) *n = 0;
    fr_slices_free(&s);
    return FR_OK;
}

static fr_status time_figure(const summary *s, arena *memory, const fr_context *context,
                             figure *out, fr_error *err) {
    sheet h;
    TRY(sheet_open(&h, s, memory, err));
    for (int d = 0; d < s->datas; d++) {
        int n;
        double *x;
        TRY(TAKE(memory, x, STRETCHES, err));
        TRY(stretch_starts(&s->data[d], x, &n, err));
        TRY(draw_models(&s->data[d], n, x, stretches, context, &h,
                        (chart_panel){.kind = CHART_LINES,
                                      .x = {.label = "time at which a tenth of the events begins"},
                                      .y = {.label = "MRR"}},
                        err));
    }
    sheet_end(&h, "MRR over time", out);
    return FR_OK;
}

/* ---- membership ---- */

static fr_status membership_figure(const summary *s, arena *memory, const fr_context *context,
                                   figure *out, fr_error *err) {
    (void)context;
    static const char *const rows[] = {"repeated", "new"}, *const columns[] = {"seen", "unseen"};
    sheet h;
    results *r = s->results;
    TRY(sheet_open(&h, s, memory, err));
    for (int d = 0; d < s->datas; d++) { /* the first trained model that has the table */
        const char *name = s->data[d].name;
        for (int i = 0; (i = results_next(r, i, UNIT_MEMBERSHIP, name, NULL, "bce")) >= 0; i++) {
            const result *u = &r->list.at[i];
            if (u->diagnostic != r->plan.membership_on[1]) continue;
            double *cells;
            char *title;
            TRY(TAKE(memory, cells, 4, err));
            TRY(TAKE(memory, title, 128, err));
            (void)snprintf(title, 128, "%s, %s", name, summary_label(u->model));
            for (int c = 0; c < FR_CELLS; c++) cells[c] = summary_cell(s, u, -1, c).mean;
            h.panel[h.count++] = (chart_panel){.kind = CHART_MATRIX,
                                               .title = title,
                                               .x = {.label = "negatives"},
                                               .y = {.label = "positive"},
                                               .rows = 2,
                                               .columns = 2,
                                               .row_heads = rows,
                                               .column_heads = columns,
                                               .cells = cells,
                                               .scale_low = 0,
                                               .scale_high = 1,
                                               .decimals = 3};
            break;
        }
    }
    sheet_end(&h, "Pair membership", out);
    return FR_OK;
}

static fr_status projection_figure(const summary *s, arena *memory, const fr_context *context,
                                   figure *out, fr_error *err) {
    (void)context;
    static const char *const names[] = {"nothing removed", "membership", "random", "shuffled"};
    sheet h;
    results *r = s->results;
    bool wide = !r->plan.projection_on[0];
    const char **groups;
    chart_series *list;
    double *value[4], *low[4], *high[4];
    int n = 0;
    TRY(sheet_open(&h, s, memory, err));
    TRY(TAKE(memory, groups, s->datas, err));
    TRY(TAKE(memory, list, 4, err));
    for (int k = 0; k < 4; k++) {
        TRY(TAKE(memory, value[k], s->datas, err));
        TRY(TAKE(memory, low[k], s->datas, err));
        TRY(TAKE(memory, high[k], s->datas, err));
    }
    for (int d = 0; d < s->datas; d++) {
        int i = results_next_group(r, 0, UNIT_PROJECT, s->data[d].name, wide);
        if (i < 0) continue;
        for (int k = 0; k < FR_REMOVALS; k++) {
            mean_sd m = summary_cell(s, &r->list.at[i], k, -1);
            double sd = isnan(m.sd) ? 0 : m.sd;
            value[k][n] = m.mean;
            low[k][n] = m.mean - sd;
            high[k][n] = m.mean + sd;
        }
        groups[n++] = s->data[d].name;
    }
    for (int k = 0; k < 4; k++)
        list[k] = (chart_series){names[k], n, NULL, value[k], low[k], high[k], k};
    if (n)
        h.panel[h.count++] = (chart_panel){
            .kind = CHART_BARS,
            .y = {.label = wide ? "full MRR, diagnostic window" : "full MRR, ranking window"},
            .series_count = 4,
            .series = list,
            .group_count = n,
            .groups = groups};
    sheet_end(&h, "Removing membership", out);
    return FR_OK;
}

/* ---- cost ---- */

static fr_status scaling_figure(const summary *s, arena *memory, const fr_context *context,
                                figure *out, fr_error *err) {
    (void)context;
    static const struct {
        const char *title, *label;
    } panels[] = {{"time", "ms per event"}, {"memory", "MB"}};
    sheet h;
    results *r = s->results;
    TRY(sheet_open(&h, s, memory, err));
    for (int p = 0; p < 2; p++) {
        chart_series *list;
        int n = 0;
        TRY(TAKE(memory, list, s->datas ? s->datas : 1, err));
        for (int d = 0; d < s->datas; d++) {
            int i = results_next(r, 0, UNIT_SCALING, s->data[d].name, NULL, NULL);
            fr_scaling_point cost[FR_SCALING_MAX];
            double *x, *y;
            if (i < 0) continue;
            int all = results_scaling(&r->list.at[i], cost), points = 0;
            TRY(TAKE(memory, x, all, err));
            TRY(TAKE(memory, y, all, err));
            for (int k = 0; k < all; k++) {
                if (strcmp(cost[k].path, "forward") != 0) continue;
                x[points] = (double)cost[k].size;
                y[points++] = p ? 1e-6 * (double)cost[k].peak_bytes : 1e3 * cost[k].seconds;
            }
            list[n] = (chart_series){s->data[d].name, points, x, y, NULL, NULL, n};
            n++;
        }
        if (n)
            h.panel[h.count++] = (chart_panel){.kind = CHART_LINES,
                                               .title = panels[p].title,
                                               .x = {.label = "candidates", .log = true},
                                               .y = {.label = panels[p].label, .log = !p},
                                               .series_count = n,
                                               .series = list};
    }
    sheet_end(&h, "Cost against catalog size", out);
    return FR_OK;
}

const study_figure study_figures[] = {
    {"expected",
     "Expected MRR among K uniformly sampled negatives; at the right end every "
     "destination is a candidate. If lines cross, the order of models depends on K. "
     "Thin lines are baselines and the oracle. Bands are one standard deviation over "
     "seeds.",
     expected_figure, false},
    {"gain",
     "The apparent gain of a module depends on K: difference in MRR with the 95 % "
     "confidence interval of the paired bootstrap over time blocks.",
     gain_figure, false},
    {"ranks",
     "Share of test events whose true destination has at most this rank among all "
     "destinations, up to a quarter of the catalog. Bands are one standard deviation over seeds.",
     rank_figure, false},
    {"time",
     "MRR over all destinations in ten stretches of time with about the same number of "
     "test events. Bands are one standard deviation over seeds.",
     time_figure, false},
    {"membership",
     "Expected MRR of repeated and new positives against 20 negatives the source has met (seen) "
     "or not (unseen).",
     membership_figure, false},
    {"projection",
     "Full MRR after one direction is removed from the vector that enters the scoring "
     "head; bars are means over seeds, and lines are one standard deviation.",
     projection_figure, false},
    {"selection",
     "Value on the validation part after every epoch, first seed; the best epoch "
     "becomes the model.",
     selection_figure, false},
    {"granularity",
     "Full MRR if state is updated every N test events: the history of an event ends "
     "where its batch begins. Means over seeds.",
     granularity_figure, false},
    {"scaling",
     "Time per event and peak memory against the number of candidates, for the plain "
     "forward pass with one thread.",
     scaling_figure, true},
    {0}};
