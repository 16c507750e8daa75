/* granularity.c - see granularity.h. */
#include "report/granularity.h"

#include "report/style.h"

#include <math.h>
#include <stdio.h>

static size_t sizes_of(const summary *s) { return json_array_size(s->results->plan.granularity); }

static int64_t size_at(const summary *s, size_t i) {
    return json_integer_value(json_array_get(s->results->plan.granularity, i));
}

/* Mean and deviation over seeds with batches of so many events; NaN if nothing is done yet. */
static mean_sd value_of(const summary *s, const char *data, const model_numbers *m, int64_t size) {
    const results *r = s->results;
    mean_sd out = {.mean = NAN, .sd = NAN};
    double sum = 0, squares = 0;
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; (i = results_next(r, i, UNIT_BATCHES, data, m->name, m->objective)) >= 0;
             i++) {
            double value = results_number(&r->list.at[i], (metric_key){.name = "mrr", .k = size});
            if (pass)
                squares += (value - out.mean) * (value - out.mean);
            else
                sum += value, n++;
        }
        if (n && !pass) out.mean = sum / n;
    }
    if (n > 1) out.sd = sqrt(squares / (n - 1));
    return out;
}

static bool is_there(const summary *s, const char *data, const model_numbers *m) {
    return results_next(s->results, 0, UNIT_BATCHES, data, m->name, m->objective) >= 0;
}

void granularity_table(const summary *s, table *t) {
    table_start(t, "Granularity of updates",
                "Full MRR if state is updated every N test events (order batch:N): the histories "
                "and memories of an event end where its batch begins. N = 1 is stream order. All "
                "columns use the same trained models.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "objective", TABLE_LEFT);
    for (size_t i = 0; i < sizes_of(s); i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "N = %lld", (long long)size_at(s, i));
        table_column(t, NULL, name, TABLE_RIGHT);
    }
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        for (int k = 0; k < set->models; k++) {
            const model_numbers *m = &set->model[k];
            if (!is_there(s, set->name, m)) continue;
            table_row(t, set->name);
            table_put(t, cell_text(m->label));
            table_put(t, m->objective ? cell_text(m->objective) : cell_empty());
            for (size_t i = 0; i < sizes_of(s); i++) {
                mean_sd one = value_of(s, set->name, m, size_at(s, i));
                table_put(t, cell_mean(one.mean, one.sd, 4));
            }
        }
    }
}

static fr_status draw_model(const summary *s, const data_numbers *set, const model_numbers *m,
                            arena *memory, chart_series *out, fr_error *err) {
    size_t n = sizes_of(s);
    double *x, *y;
    TRY(TAKE(memory, x, n, err));
    TRY(TAKE(memory, y, n, err));
    for (size_t i = 0; i < n; i++) { /* the document may name sizes in any order */
        double size = (double)size_at(s, i), value = value_of(s, set->name, m, size_at(s, i)).mean;
        size_t at = i;
        for (; at && x[at - 1] > size; at--) {
            x[at] = x[at - 1];
            y[at] = y[at - 1];
        }
        x[at] = size;
        y[at] = value;
    }
    *out = (chart_series){m->label, (int)n, x, y, NULL, NULL, out->style};
    return FR_OK;
}

fr_status granularity_figure(const summary *s, arena *memory, const fr_context *context,
                             figure *out, fr_error *err) {
    (void)context;
    chart_panel *panel;
    int panels = 0;
    TRY(TAKE(memory, panel, s->datas ? s->datas : 1, err));
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        chart_series *list;
        int count = 0, loud = 0, quiet = 0;
        TRY(TAKE(memory, list, set->models ? set->models : 1, err));
        for (int k = 0; k < set->models; k++) {
            const model_numbers *m = &set->model[k];
            if (!summary_is_main(m) || !is_there(s, set->name, m)) continue;
            list[count].style = summary_is_compared(m) ? loud++ : STYLE_QUIET + ++quiet;
            TRY(draw_model(s, set, m, memory, &list[count++], err));
        }
        if (!count) continue;
        panel[panels++] = (chart_panel){.kind = CHART_LINES,
                                        .title = set->name,
                                        .x = {.label = "events per batch", .log = true},
                                        .y = {.label = "full MRR"},
                                        .series_count = count,
                                        .series = list};
    }
    *out = (figure){.title = "Granularity of updates",
                    .panel_count = panels,
                    .panels = panel,
                    .columns = panels == 1 ? 1 : 2};
    return FR_OK;
}
