/* page_words.c - the findings of a study in words.
 *
 * The numbers choose every sentence, so a page never claims what its tables do not show. A sentence
 * without its numbers is left out.
 */
#include "report/html.h"
#include "report/page.h"
#include "report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4 };

void page_number(text_buffer *out, double value, int decimals, bool sign) {
    char digits[NUMBER_SIZE];
    table_number(value, decimals, sign, digits);
    if (!*digits)
        text_put(out, "–");
    else if (*digits == '-')
        text_print(out, "−%s", digits + 1);
    else
        text_put(out, digits);
}

void page_count(text_buffer *out, int64_t value) {
    char digits[32];
    int size = snprintf(digits, sizeof digits, "%" PRId64, value);
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0 && digits[i - 1] != '-') text_put(out, ",");
        text_fill(out, digits[i], 1);
    }
}

static void put_model(text_buffer *out, const model_numbers *m) {
    text_put(out, "<b>");
    html_put(out, m->label);
    text_put(out, "</b>");
}

static void put_mean(text_buffer *out, mean_sd m) {
    page_number(out, m.mean, DIGITS, false);
    if (isnan(m.sd)) return;
    text_put(out, " ± ");
    page_number(out, m.sd, DIGITS, false);
}

/* ---- findings ---- */

/* The best of the models a study compares, or of the baselines, in one column of `expected`; NULL
 * if there is none. */
static const model_numbers *best(const data_numbers *d, bool compared, int column) {
    const model_numbers *found = NULL;
    for (int i = 0; i < d->models; i++) {
        const model_numbers *m = &d->model[i];
        bool fits = compared ? summary_is_compared(m)
                             : !m->objective && !m->external && !summary_is_oracle(m);
        if (fits && (!found || m->expected[column].mean > found->expected[column].mean)) found = m;
    }
    return found;
}

static void say_events(const data_numbers *d, text_buffer *out) {
    fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
    int64_t covered = 0, most = 0;
    for (int64_t i = 0; i < f.count; i++) {
        covered += f.records[i].covered;
        if (f.records[i].covered && f.records[i].n > most) most = f.records[i].n;
    }
    double all = d->facts ? results_metric(d->facts, "events") : NAN;
    if (2 * (double)f.protocol.window < all) {
        text_put(out, "<li>Of the ");
        page_count(out, (int64_t)all);
        text_put(out, " events in the file, the last ");
        page_count(out, f.protocol.window);
        text_put(out, " are used, the window of the protocol.</li>\n");
    }
    text_put(out, "<li>");
    page_count(out, covered);
    text_put(out, " of ");
    page_count(out, f.count);
    if (f.protocol.sample) {
        text_put(
            out,
            " sampled test events have their destination in the catalog and are ranked; of all ");
        page_count(out, f.protocol.sample_of);
        text_print(out, " test events it would be %lld (coverage %.1f %%).</li>\n",
                   (long long)f.covered, 100.0 * (double)f.covered / (double)f.protocol.sample_of);
        return;
    }
    text_print(out, " test events (coverage %.1f %%) have their destination in the catalog of ",
               f.count ? 100.0 * (double)covered / (double)f.count : 0.0);
    page_count(out, most);
    text_put(out, " and are ranked");
    if (covered < f.count) {
        text_put(out, "; the other ");
        page_count(out, f.count - covered);
        text_put(out, f.oov == FR_OOV_ZERO ? " count as 0" : " are left out of every number");
    }
    text_put(out, ".</li>\n");
}

static void say_best(const summary *s, const data_numbers *d, text_buffer *out) {
    const model_numbers *model = best(d, true, s->ks), *simple = best(d, false, s->ks);
    if (model) {
        text_print(out, "<li>Best %s model over all candidates: ", summary_compared_word(s));
        put_model(out, model);
        text_put(out, ", MRR ");
        put_mean(out, model->expected[s->ks]);
        if (model->runs > 1) text_print(out, " over %d seeds", model->runs);
        text_put(out, ".</li>\n");
    }
    if (!simple) return;
    double baseline = simple->expected[s->ks].mean;
    double ahead = model ? baseline - model->expected[s->ks].mean : NAN;
    text_put(out, ahead > 0 ? "<li class=\"note\">A baseline without training does better: "
                            : "<li>Best baseline without training: ");
    put_model(out, simple);
    text_put(out, ", ");
    page_number(out, baseline, DIGITS, false);
    if (!isnan(ahead)) {
        text_put(out, " (");
        page_number(out, ahead, DIGITS, true);
        text_put(out, ")");
    }
    text_put(out, ".</li>\n");
}

/* The two scorers whose order sampling reverses most clearly: those with the largest minimum of the
 * two differences. */
static bool find_reversal(const data_numbers *d, int k, int full, const model_numbers **up,
                          const model_numbers **down) {
    double most = 0;
    for (int i = 0; i < d->models; i++)
        for (int j = 0; j < d->models; j++) {
            const model_numbers *a = &d->model[i], *b = &d->model[j];
            if (!summary_is_judged(a) || !summary_is_judged(b)) continue;
            double apart = fmin(a->expected[k].mean - b->expected[k].mean,
                                b->expected[full].mean - a->expected[full].mean);
            if (!(apart > most)) continue;
            most = apart;
            *up = a;
            *down = b;
        }
    return most > 0;
}

static void say_order(const summary *s, const data_numbers *d, text_buffer *out) {
    int k = summary_place_of_k(s, 20), full = s->ks;
    const model_numbers *up = NULL, *down = NULL;
    if (k < 0 || isnan(d->tau[k])) return;
    text_print(out, "<li%s>With 20 sampled negatives ", d->tau[k] < 1 ? " class=\"note\"" : "");
    if (find_reversal(d, k, full, &up, &down)) {
        put_model(out, up);
        text_put(out, " is ahead of ");
        put_model(out, down);
        text_put(out, " (");
        page_number(out, up->expected[k].mean, DIGITS, false);
        text_put(out, " and ");
        page_number(out, down->expected[k].mean, DIGITS, false);
        text_put(out, "); over the full catalog it is the other way round (");
        page_number(out, up->expected[full].mean, DIGITS, false);
        text_put(out, " and ");
        page_number(out, down->expected[full].mean, DIGITS, false);
        text_put(out, ")");
    } else {
        text_put(out, "the scorers have the same order as over the full catalog");
    }
    text_print(out,
               ". Kendall’s τ between the two orders of all %d scorers is <span class=\"tau\">",
               d->judged);
    page_number(out, d->tau[k], 3, false);
    text_put(out, "</span>.</li>\n");
}

static void say_interval(fr_interval i, const char *over, text_buffer *out) {
    if (isnan(i.low) || isnan(i.high)) return;
    text_print(out, "%s [", over);
    page_number(out, i.low, DIGITS, false);
    text_put(out, ", ");
    page_number(out, i.high, DIGITS, false);
    text_put(out, i.low <= 0 && i.high >= 0 ? "] (includes 0)" : "] (excludes 0)");
}

static void say_gain(const summary *s, const data_numbers *d, text_buffer *out) {
    const char *const *gain = s->results->plan.gain;
    if (!d->gain[0]) return;
    fr_comparison_facts f = fr_comparison_get(d->gain[0]);
    if (!f.pairs || isnan(f.pair[0].difference[s->ks].value)) return;
    const fr_difference *full = &f.pair[0].difference[s->ks];
    int k = summary_place_of_k(s, 20);
    text_put(out, "<li>");
    html_put(out, summary_label(gain[1]));
    text_put(out, " minus ");
    html_put(out, summary_label(gain[0]));
    text_put(out, ": ");
    page_number(out, full->value, DIGITS, true);
    text_put(out, " in full MRR");
    say_interval(full->bootstrap, ", 95 % confidence interval over time blocks", out);
    say_interval(full->seed_t, ", over seeds", out);
    if (k >= 0 && !isnan(f.pair[0].difference[k].value)) {
        double sampled = f.pair[0].difference[k].value;
        text_put(out, "; ");
        page_number(out, sampled, DIGITS, true);
        text_put(out, " among 20 sampled negatives");
        if (sampled * full->value < 0) text_put(out, ", with the other sign");
    }
    text_put(out, ".</li>\n");
}

static fr_status say_ties(const data_numbers *d, text_buffer *out, fr_error *err) {
    static const char *const names[] = {"tie-spread", "mrr-pessimistic", "mrr-optimistic"};
    int told = 0;
    for (int i = 0; i < d->models; i++) {
        double v[3];
        TRY(summary_numbers(d->model[i].run[0].run, names, 3, v, err));
        if (!(v[0] > FR_TIE_WARNING)) continue;
        text_put(out, told++ ? ", " : "<li>The tie rule changes printed digits for ");
        html_put(out, d->model[i].label);
        text_put(out, " (");
        page_number(out, v[1], DIGITS, false);
        text_put(out, " to ");
        page_number(out, v[2], DIGITS, false);
        text_put(out, ")");
    }
    text_put(out, told ? ": average ranks are shown.</li>\n"
                       : "<li>The tie rule changes no printed digit.</li>\n");
    return FR_OK;
}

fr_status page_findings(const summary *s, text_buffer *out, fr_error *err) {
    for (int i = 0; i < s->datas; i++) {
        const data_numbers *d = &s->data[i];
        text_put(out, "<article class=\"card\"><h3>");
        html_put(out, d->name);
        text_put(out, "</h3>\n<ul>\n");
        say_order(s, d, out);
        say_best(s, d, out);
        say_gain(s, d, out);
        say_events(d, out);
        TRY(say_ties(d, out, err));
        text_put(out, "</ul></article>\n");
    }
    return FR_OK;
}

/* ---- the 2x2 table ---- */

/* Expected RR of a positive placed at random among 21: the harmonic number of 21 over 21. */
static double chance(void) {
    double sum = 0;
    for (int i = 1; i <= 21; i++) sum += 1.0 / i;
    return sum / 21;
}

static void put_matrix_cell(text_buffer *out, double value, const char *meaning) {
    int heat = isnan(value) ? 0 : (int)fmin(9, fmax(0, value * 10));
    text_print(out, "<td class=\"heat%d\"><b>", heat);
    page_number(out, value, 3, false);
    text_print(out, "</b><small>%s</small></td>", meaning);
}

enum { FEW_EVENTS = 100 }; /* fewer events are mentioned */

/* One sentence on what the four numbers mean together. */
static void read_matrix(text_buffer *out, const char *model, const double c[FR_CELLS],
                        const int64_t events[FR_CELLS]) {
    double even = chance();
    text_put(out, "<p><b>Reading.</b> ");
    html_put(out, model);
    text_put(out, c[1] > even ? " tells pairs that have met from destinations the source has not "
                                "met ("
                              : " does not tell pairs that have met from destinations the source "
                                "has not met (");
    page_number(out, c[1], 3, false);
    text_put(out, "; chance is ");
    page_number(out, even, 3, false);
    text_put(out, ")");
    if (c[2] < even && c[1] > even) {
        text_put(out, ", and for the same reason it puts a new destination after those already "
                      "met (");
        page_number(out, c[2], 3, false);
        text_put(out,
                 ", below chance). So a good part of its ranking is the question “have they met "
                 "before?”.");
    } else {
        text_put(out, "; a new destination against those already met reaches ");
        page_number(out, c[2], 3, false);
        text_put(out, ".");
    }
    text_put(out, " The diagonal shows what it knows beyond that: ");
    page_number(out, c[0], 3, false);
    text_put(out, " among destinations already met, ");
    page_number(out, c[3], 3, false);
    text_put(out, " among those never met.");
    for (int k = 0; k < FR_CELLS; k += FR_NEW_SEEN) {
        if (events[k] >= FEW_EVENTS) continue;
        text_put(out, k ? " The new row is based on only " : " The repeated row is based on only ");
        page_count(out, events[k]);
        text_put(out, events[k] == 1 ? " event." : " events.");
    }
    text_put(out, "</p>\n");
}

static void put_matrix_head(text_buffer *out, const char *head, int64_t events) {
    text_print(out, "<tr><th scope=\"row\">%s <small>n = ", head);
    page_count(out, events);
    text_put(out, "</small></th>");
}

static void put_matrix(const summary *s, const result *u, text_buffer *out) {
    double c[FR_CELLS];
    int64_t events[FR_CELLS];
    for (int k = 0; k < FR_CELLS; k++) {
        const unit_metric *m = record_metric(&u->record, metric_of_cell("mrr", -1, k));
        c[k] = summary_cell(s, u, -1, k).mean;
        events[k] = m ? m->events : 0;
    }
    text_put(out, "<article class=\"card\"><table class=\"matrix\"><caption>");
    html_put(out, u->data);
    text_put(out, ", ");
    html_put(out, summary_label(u->model));
    if (u->objective) text_print(out, " (%s)", u->objective);
    text_print(out, ", %s window", u->diagnostic ? "diagnostic" : "ranking");
    text_put(out, "</caption>\n<thead><tr><td></td><th scope=\"col\">against 20 it has met</th>"
                  "<th scope=\"col\">against 20 it has not met</th></tr></thead>\n"
                  "<tbody>");
    put_matrix_head(out, "repeated destination", events[FR_REPEATED_SEEN]);
    put_matrix_cell(out, c[0], "recurrent links");
    put_matrix_cell(out, c[1], "separation");
    text_put(out, "</tr>\n");
    put_matrix_head(out, "new destination", events[FR_NEW_SEEN]);
    put_matrix_cell(out, c[2], "separation");
    put_matrix_cell(out, c[3], "novel links");
    text_put(out, "</tr></tbody></table>\n");
    read_matrix(out, summary_label(u->model), c, events);
    text_put(out, "</article>\n");
}

void page_matrices(const summary *s, text_buffer *out) {
    const results *r = s->results;
    bool wide = r->plan.membership_on[1];
    bool trained = false; /* baselines are only in the table if there are other models */
    for (int i = 0; (i = results_next_group(r, i, UNIT_MEMBERSHIP, NULL, wide)) >= 0; i++)
        trained |= r->list.at[i].objective != NULL;
    for (int i = 0; (i = results_next_group(r, i, UNIT_MEMBERSHIP, NULL, wide)) >= 0; i++) {
        const result *u = &r->list.at[i];
        if (u->objective || !trained) put_matrix(s, u, out);
    }
}
