/* slices.c - see slices.h. */
#define _GNU_SOURCE
#include "slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int slice_fields(const char *list, char **memory, const char **word, int *count) {
    fr_error err = {0};
    const char *field[MOST_SLICINGS];
    *count = 0;
    *memory = strdup(list);
    if (!*memory) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    char *rest = *memory;
    for (char *next; (next = strsep(&rest, ","));) {
        fr_slices none;
        if (*count == MOST_SLICINGS)
            return cli_usage("option by: %s is one too many, expected at most %d", next,
                             MOST_SLICINGS);
        fr_status status = fr_slices_compute(NULL, 0, next, &none, &err);
        field[*count] = none.field; /* from the registry */
        fr_slices_free(&none);
        if (status == FR_EUSAGE) return cli_usage("option by: %s", err.message);
        if (status) return cli_report(status, &err);
        for (int i = 0; i < *count; i++)
            if (field[i] == field[*count])
                return cli_usage("option by: %s and %s are the same field, expected it once",
                                 word[i], next);
        word[(*count)++] = next;
    }
    return CLI_OK;
}

/* The intervals of one row of a sample. Every slice has about the same share of its events in the
 * sample, so that share gives the number of all its events. */
static fr_status fill_intervals(slice_table *out, const fr_ranking_facts *f, int row,
                                const slice_metrics *metrics, fr_error *err) {
    const fr_slice *s = row < out->slices.count ? &out->slices.slice[row] : NULL;
    fr_interval *interval = &out->interval[row * metrics->count];
    fr_interval_settings settings;
    int64_t events = s ? s->events : f->count;
    (void)board_resampling_of(metrics->how, f, &settings);
    settings.of =
        (int64_t)ceil((double)events * (double)f->protocol.sample_of / (double)f->protocol.sample);
    fr_status status =
        fr_intervals_compute(s ? s->records : f->records, events, f->oov, metrics->name,
                             metrics->count, &settings, metrics->how.seed, NULL, interval, err);
    for (int m = 0; !status && !s && m < metrics->count; m++)
        board_know_coverage(f, metrics->name[m], &out->value[row * metrics->count + m],
                            &interval[m]);
    return status;
}

fr_status slice_table_fill(slice_table *out, const fr_ranking *ranking, const char *field,
                           const slice_metrics *metrics, fr_error *err) {
    fr_ranking_facts f = fr_ranking_get(ranking);
    fr_status status = fr_slices_compute(f.records, f.count, field, &out->slices, err);
    if (status) return status;
    int rows = out->slices.count;
    out->value = calloc(((size_t)rows + 1) * (size_t)metrics->count, sizeof *out->value);
    if (board_is_sample(&f))
        out->interval = calloc(((size_t)rows + 1) * (size_t)metrics->count, sizeof *out->interval);
    if (!out->value || (board_is_sample(&f) && !out->interval))
        return fr_fail(err, FR_ENOMEM, "out of memory");
    out->events = f.count;
    for (int i = 0; !status && i <= rows; i++) {
        const fr_slice *s = i < rows ? &out->slices.slice[i] : NULL;
        if (s) out->ranked += s->ranked;
        status =
            fr_metrics_compute(s ? s->records : f.records, s ? s->events : f.count, f.oov,
                               metrics->name, metrics->count, &out->value[i * metrics->count], err);
        if (!status && out->interval) status = fill_intervals(out, &f, i, metrics, err);
    }
    return status;
}

void slice_table_free(slice_table *table) {
    fr_slices_free(&table->slices);
    free(table->value);
    free(table->interval);
    *table = (slice_table){0};
}

/* Prints the columns of a metric. */
static int width_of(const slice_metrics *metrics, int m, bool intervals) {
    int least = intervals ? 16 : 8, own = (int)strlen(metrics->name[m]);
    return own < least ? least : own;
}

static void print_row(const char *label, int width, int64_t events, int64_t ranked,
                      const fr_metric_value *value, const fr_interval *interval,
                      const slice_metrics *metrics) {
    (void)printf("%-*s  %10s  %10s", width, label, cli_count(events).s, cli_count(ranked).s);
    for (int m = 0; m < metrics->count; m++) {
        cli_text text = {"-"};
        if (fr_metric_find(metrics->name[m], NULL)->kind == FR_KIND_COUNT)
            text = cli_count((int64_t)value[m].value);
        else if (!isnan(value[m].value))
            (void)snprintf(text.s, sizeof text.s, "%.4f", value[m].value);
        (void)printf("  %*s", width_of(metrics, m, interval), text.s);
    }
    (void)printf("\n");
    if (!interval) return;
    (void)printf("%-*s  %10s  %10s", width, "", "", "");
    for (int m = 0; m < metrics->count; m++) {
        cli_text text = {""};
        if (!isnan(interval[m].low))
            (void)snprintf(text.s, sizeof text.s, "[%.4f, %.4f]", interval[m].low,
                           interval[m].high);
        (void)printf("  %*s", width_of(metrics, m, interval), text.s);
    }
    (void)printf("\n");
}

/* The intervals of a row; NULL = none. */
static const fr_interval *intervals_of(const slice_table *t, int row, const slice_metrics *m) {
    return t->interval ? &t->interval[row * m->count] : NULL;
}

void slice_table_print(const slice_table *table, const char *name, const slice_metrics *metrics) {
    const fr_slices *s = &table->slices;
    int width = (int)strlen("slice");
    for (int i = 0; i < s->count; i++)
        if ((int)strlen(s->slice[i].label) > width) width = (int)strlen(s->slice[i].label);
    (void)printf("%sBy %s%s%s%s\n%-*s  %10s  %10s", cli_style(stdout, CLI_BOLD), s->field,
                 name ? ", " : "", name ? name : "", cli_style(stdout, CLI_PLAIN), width, "slice",
                 "events", "ranked");
    for (int m = 0; m < metrics->count; m++)
        (void)printf("  %*s", table->interval ? width_of(metrics, m, true) : 8, metrics->name[m]);
    (void)printf("\n");
    for (int i = 0; i < s->count; i++)
        print_row(s->slice[i].label, width, s->slice[i].events, s->slice[i].ranked,
                  &table->value[i * metrics->count], intervals_of(table, i, metrics), metrics);
    print_row("all", width, table->events, table->ranked, &table->value[s->count * metrics->count],
              intervals_of(table, s->count, metrics), metrics);
    char text[BOARD_TEXT];
    board_resampling_text(metrics->how, table->interval, text, sizeof text);
    if (*text) (void)printf("%s\n", text);
}

static void put_row(fr_table *out, const char *label, int64_t events, int64_t ranked,
                    const fr_metric_value *value, const fr_interval *interval,
                    const slice_metrics *metrics) {
    fr_table_row(out);
    fr_table_put(out, cli_cell_text(label));
    fr_table_put(out, cli_cell_count(events));
    fr_table_put(out, cli_cell_count(ranked));
    for (int m = 0; m < metrics->count; m++)
        fr_table_put(out, fr_metric_find(metrics->name[m], NULL)->kind == FR_KIND_COUNT
                              ? cli_cell_count((int64_t)value[m].value)
                              : cli_cell_number(value[m].value, 4));
    if (!interval) return;
    fr_table_row(out);
    for (int m = 0; m < 3; m++) fr_table_put(out, (fr_table_cell){.kind = FR_CELL_EMPTY});
    for (int m = 0; m < metrics->count; m++) fr_table_put(out, cli_cell_interval(interval[m], 4));
}

int slice_table_print_as(const slice_table *table, const char *name, const slice_metrics *metrics,
                         const char *protocol, int format) {
    const fr_slices *s = &table->slices;
    fr_table *out = NULL;
    fr_error err = {0};
    char title[256];
    (void)snprintf(title, sizeof title, "By %s%s%s", s->field, name ? ", " : "", name ? name : "");
    int code = cli_report(
        fr_table_make(title, "Metrics of the full catalog.", protocol, &out, &err), &err);
    fr_table_column(out, NULL, "slice", true);
    fr_table_column(out, NULL, "events", false);
    fr_table_column(out, NULL, "ranked", false);
    for (int m = 0; m < metrics->count; m++) fr_table_column(out, NULL, metrics->name[m], false);
    for (int i = 0; i < s->count; i++)
        put_row(out, s->slice[i].label, s->slice[i].events, s->slice[i].ranked,
                &table->value[i * metrics->count], intervals_of(table, i, metrics), metrics);
    put_row(out, "all", table->events, table->ranked, &table->value[s->count * metrics->count],
            intervals_of(table, s->count, metrics), metrics);
    char text[BOARD_TEXT];
    board_resampling_text(metrics->how, table->interval, text, sizeof text);
    if (*text) fr_table_note(out, text);
    if (!code) code = cli_table_print(out, format, true);
    fr_table_close(out);
    return code;
}

/* {"low": {and the metrics}, "high": {the same}} */
static void put_intervals(json_t *entry, const fr_interval *interval,
                          const slice_metrics *metrics) {
    fr_metric_value *ends = calloc((size_t)metrics->count, sizeof *ends);
    json_t *both = json_object();
    for (int high = 0; ends && high < 2; high++) {
        json_t *one = json_object();
        for (int m = 0; m < metrics->count; m++)
            ends[m].value = high ? interval[m].high : interval[m].low;
        metrics->put(one, ends, metrics->user);
        cli_json_put(both, high ? "high" : "low", one);
    }
    if (!ends) json_decref(both);
    cli_json_put(entry, "intervals", ends ? both : NULL);
    free(ends);
}

json_t *slice_table_json(const slice_table *table, const slice_metrics *metrics) {
    json_t *list = json_array();
    for (int i = 0; i < table->slices.count; i++) {
        const fr_slice *s = &table->slices.slice[i];
        json_t *entry = json_pack("{s:s, s:o, s:o, s:I, s:I}", "slice", s->label, "from",
                                  cli_json_real(s->from), "to", cli_json_real(s->to), "events",
                                  (json_int_t)s->events, "ranked", (json_int_t)s->ranked);
        metrics->put(entry, &table->value[i * metrics->count], metrics->user);
        if (table->interval) put_intervals(entry, &table->interval[i * metrics->count], metrics);
        cli_json_push(list, entry);
    }
    return list;
}
