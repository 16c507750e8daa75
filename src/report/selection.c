/* selection.c - how models were selected on the validation part: a table and a figure. */
#include "report/selection.h"

#include <math.h>
#include <string.h>

/* True if it is the training of a ranked model, with a selected epoch. */
static bool is_selected(const result *u) {
    return u->kind == UNIT_TRAIN && !u->diagnostic && json_object_get(u->training, "selection");
}

/* ---- the table ---- */

static mean_sd spread(const json_t *values) {
    size_t n = json_array_size(values);
    mean_sd out = {0, NAN, (int)n};
    double square = 0;
    for (size_t i = 0; i < n; i++)
        out.mean += json_number_value(json_array_get(values, i)) / (double)n;
    for (size_t i = 0; i < n; i++) {
        double apart = json_number_value(json_array_get(values, i)) - out.mean;
        square += apart * apart;
    }
    if (n > 1) out.sd = sqrt(square / (double)(n - 1));
    return out;
}

static void put_row(table *t, const result *u, const char *configuration, const json_t *values,
                    const json_t *epochs, bool chosen) {
    mean_sd value = spread(values), epoch = spread(epochs);
    table_row(t, u->data);
    table_put(t, cell_text(summary_label(u->model)));
    table_put(t, cell_text(u->objective));
    table_put(t, cell_text(configuration));
    table_put(t, cell_mean(value.mean, value.sd, 4));
    table_put(t, cell_mean(epoch.mean, epoch.sd, json_array_size(epochs) > 1 ? 1 : 0));
    table_put(t, cell_text(chosen ? "yes" : "no"));
}

/* All configurations of a model. */
static void put_choice(table *t, const result *u) {
    const json_t *list = json_object_get(u->choice, "configurations");
    int64_t chosen = json_integer_value(json_object_get(u->choice, "chosen"));
    for (size_t c = 0; c < json_array_size(list); c++) {
        const json_t *one = json_array_get(list, c);
        put_row(t, u, json_string_value(json_object_get(one, "configuration")),
                json_object_get(one, "values"), json_object_get(one, "epochs"),
                (int64_t)c == chosen);
    }
}

/* A model with one configuration, of which epochs were selected: its seeds together. */
static void put_single(const results *r, table *t, int first) {
    const result *u = &r->list.at[first];
    json_t *values = json_array(), *epochs = json_array();
    if (results_next(r, 0, UNIT_TRAIN, u->data, u->model, u->objective) == first)
        for (int i = first;
             (i = results_next(r, i, UNIT_TRAIN, u->data, u->model, u->objective)) >= 0; i++) {
            const json_t *selection = json_object_get(r->list.at[i].training, "selection");
            if (!is_selected(&r->list.at[i])) continue;
            (void)json_array_append(values, json_object_get(selection, "value"));
            (void)json_array_append(epochs, json_object_get(selection, "selected"));
        }
    if (json_array_size(values)) put_row(t, u, "the only one", values, epochs, true);
    json_decref(values);
    json_decref(epochs);
}

void selection_note(const summary *s, table *t) {
    const results *r = s->results;
    text_buffer note = {0};
    for (int i = 0; (i = results_next(r, i, UNIT_SELECT, NULL, NULL, NULL)) >= 0; i++) {
        const result *u = &r->list.at[i];
        size_t count = json_array_size(json_object_get(u->choice, "configurations"));
        text_print(&note, "%s %s %s%s%s (%zu)",
                   note.count ? "," : "Chosen among several configurations on the validation part:",
                   u->data, summary_label(u->model), strcmp(u->objective, "bce") ? " " : "",
                   strcmp(u->objective, "bce") ? u->objective : "", count);
    }
    if (note.count) text_put(&note, ".");
    if (text_status(&note, &t->failure) == FR_OK && note.at) table_note(t, note.at);
    text_free(&note);
}

void selection_table(const summary *s, table *t) {
    const results *r = s->results;
    table_start(t, "Selection",
                "Every configuration is trained with every seed. The best epoch of each is "
                "selected on the validation part, against the whole catalog. The configuration "
                "with the best mean over seeds is chosen. Only this one is ranked on the test "
                "part, once.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "objective", TABLE_LEFT);
    table_column(t, NULL, "configuration", TABLE_LEFT);
    table_column(t, NULL, "validation", TABLE_RIGHT);
    table_column(t, NULL, "epoch", TABLE_RIGHT);
    table_column(t, NULL, "chosen", TABLE_LEFT);
    const char *metric = NULL;
    for (int d = 0; d < s->datas; d++)
        for (size_t i = 0; i < r->list.count; i++) {
            const result *u = &r->list.at[i];
            if (strcmp(u->data, s->data[d].name)) continue;
            if (u->kind == UNIT_SELECT) put_choice(t, u);
            if (is_selected(u) && !u->configured) put_single(r, t, (int)i);
            if (is_selected(u))
                metric = json_string_value(
                    json_object_get(json_object_get(u->training, "selection"), "metric"));
        }
    text_buffer note = {0};
    if (metric) text_print(&note, "Selected by %s.", metric);
    if (text_status(&note, &t->failure) == FR_OK && note.at) table_note(t, note.at);
    text_free(&note);
    selection_note(s, t);
}

/* ---- the figure ---- */

static fr_status draw_curve(const result *u, arena *memory, chart_series *out, fr_error *err) {
    const json_t *curve = json_object_get(u->training, "curve");
    size_t n = json_array_size(curve);
    double *x, *y;
    TRY(TAKE(memory, x, n, err));
    TRY(TAKE(memory, y, n, err));
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)i + 1;
        y[i] = json_number_value(json_object_get(json_array_get(curve, i), "validation"));
    }
    *out = (chart_series){
        .name = summary_label(u->model), .n = (int)n, .x = x, .y = y, .style = out->style};
    return FR_OK;
}

/* The first seed of every model that is ranked, in one panel for each data set. */
fr_status selection_figure(const summary *s, arena *memory, const fr_context *context, figure *out,
                           fr_error *err) {
    (void)context;
    const results *r = s->results;
    chart_panel *panel;
    int panels = 0;
    TRY(TAKE(memory, panel, s->datas ? s->datas : 1, err));
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        chart_series *list;
        int series = 0;
        TRY(TAKE(memory, list, set->models, err));
        for (int i = 0; i < set->models; i++) {
            const model_numbers *m = &set->model[i];
            int j = m->objective && summary_is_compared(m)
                        ? results_next(r, 0, UNIT_TRAIN, set->name, m->name, m->objective)
                        : -1;
            if (j < 0 || !is_selected(&r->list.at[j])) continue;
            list[series].style = series;
            TRY(draw_curve(&r->list.at[j], memory, &list[series], err));
            series++;
        }
        if (!series) continue;
        panel[panels++] = (chart_panel){.kind = CHART_LINES,
                                        .title = set->name,
                                        .x = {.label = "epoch"},
                                        .y = {.label = "validation"},
                                        .series_count = series,
                                        .series = list,
                                        .direct = true};
    }
    *out = (figure){.title = "Validation by epoch",
                    .panel_count = panels,
                    .panels = panel,
                    .columns = panels == 1 ? 1 : 2};
    return FR_OK;
}
