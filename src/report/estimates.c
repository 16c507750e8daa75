/* estimates.c - see estimates.h. */
#include "report/estimates.h"

#include <math.h>

enum { DIGITS = 4 };

static fr_protocol_facts protocol_of(const data_numbers *d) {
    return fr_ranking_get(d->model[0].run[0].run->ranking).protocol;
}

void estimates_say(const summary *s, text_buffer *out) {
    int said = 0;
    for (int i = 0; i < s->datas; i++) {
        fr_protocol_facts p = protocol_of(&s->data[i]);
        if (!p.sample) continue;
        text_put(out, said++ ? ", " : "Estimates from a simple random sample of the test events: ");
        text_print(out, "%s %lld of %lld", s->data[i].name, (long long)p.sample,
                   (long long)p.sample_of);
    }
    if (said) text_put(out, ".");
}

void estimates_note(const summary *s, table *t) {
    text_buffer note = {0};
    estimates_say(s, &note);
    if (text_status(&note, &t->failure) == FR_OK && note.at) table_mark_all(t, note.at);
    text_free(&note);
}

/* Full MRR, Hits@10 and MRR with 20 uniform negatives of one run, each with its interval. */
static fr_status put_run(table *t, const model_numbers *m, const result *run, fr_error *err) {
    static const char *const names[] = {"mrr", "hits@10"};
    static const int64_t k = 20;
    fr_ranking_facts f = fr_ranking_get(run->ranking);
    fr_sampling uniform = {.sampler = "uniform", .oov = f.oov, .k = &k, .k_count = 1};
    fr_interval_settings settings;
    fr_metric_value value[2];
    fr_expected expected;
    fr_interval interval[3];
    TRY(fr_options_defaults(fr_interval_options, &settings, err));
    settings.of = f.protocol.sample_of;
    settings.over = FR_OVER_SAMPLE;
    TRY(fr_metrics_compute(f.records, f.count, f.oov, names, 2, value, err));
    TRY(fr_intervals_compute(f.records, f.count, f.oov, names, 2, &settings, 0, NULL, interval,
                             err));
    TRY(fr_expected_compute(f.records, f.count, &uniform, NULL, &expected, err));
    TRY(fr_intervals_expected(f.records, f.count, &uniform, &settings, 0, NULL, &interval[2], err));
    table_put(t, cell_text(m->label));
    table_put(t, cell_integer(run->seed));
    for (int i = 0; i < 3; i++) {
        table_put(t, cell_number(i < 2 ? value[i].value : expected.mrr, DIGITS));
        table_put(t, cell_interval(interval[i].low, interval[i].high, DIGITS));
    }
    return FR_OK;
}

void estimates_table(const summary *s, table *t) {
    static const char *const heads[] = {"MRR", "Hits@10", "Expected-20"};
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "seed", TABLE_RIGHT);
    for (int i = 0; i < 3; i++) {
        table_column(t, heads[i], "estimate", TABLE_RIGHT);
        table_column(t, heads[i], "all events", TABLE_RIGHT);
    }
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        if (!protocol_of(set).sample) continue;
        for (int i = 0; i < set->models; i++)
            for (int j = 0; j < set->model[i].runs && !t->failure.code; j++) {
                table_row(t, set->name);
                (void)put_run(t, &set->model[i], set->model[i].run[j].run, &t->failure);
            }
    }
}
