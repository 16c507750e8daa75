/* tables.c - see tables.h. One function per table of the paper. If the paper has the cell, its
 * number is shown next to ours with the difference (PROTOCOL 11, 13). */
#include "report/tables.h"

#include "base/json.h"
#include "base/number.h"
#include "report/estimates.h"
#include "report/granularity.h"
#include "report/selection.h"
#include "study/paper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 4, PAPER_MODELS = 6 };

/* ---- shared ---- */

/* Begins a table with the protocol of every data set in it. */
static void start(const summary *s, table *t, const char *title, const char *caption) {
    text_buffer text = {0};
    table_start(t, title, caption);
    for (int i = 0; i < s->datas; i++)
        if (*s->data[i].protocol)
            text_print(&text, "%sProtocol of %s: %s.", text.count ? " " : "", s->data[i].name,
                       s->data[i].protocol);
    if (text_status(&text, &t->failure) == FR_OK && text.at) table_protocol(t, text.at);
    text_free(&text);
    estimates_note(s, t);
}

static void table_note_text(table *t, const text_buffer *note) {
    if (text_status(note, &t->failure) == FR_OK && note->at) table_note(t, note->at);
}

/* The same for a table whose numbers are over the ranked events: it says how many. */
static void start_ranked(const summary *s, table *t, const char *title, const char *caption) {
    text_buffer note = {0};
    start(s, t, title, caption);
    for (int i = 0; i < s->datas; i++)
        text_print(&note, "%s%s: n = %lld ranked events, %lld repeated and %lld new", i ? "; " : "",
                   s->data[i].name, (long long)s->data[i].ranked, (long long)s->data[i].repeated,
                   (long long)(s->data[i].ranked - s->data[i].repeated));
    if (note.count) text_put(&note, ".");
    table_note_text(t, &note);
    text_free(&note);
}

/* Three columns under one head: ours, the paper's, the difference. */
static void beside_columns(table *t, const char *group) {
    table_column(t, group, "ours", TABLE_RIGHT);
    table_column(t, group, "paper", TABLE_RIGHT);
    table_column(t, group, "diff.", TABLE_RIGHT);
}

static void beside(table *t, cell ours, cell paper, int digits) {
    table_put(t, ours);
    table_put(t, paper);
    table_put(t, cell_difference(ours.value - paper.value, digits));
}

static cell mean_cell(mean_sd m, int digits) { return cell_mean(m.mean, m.sd, digits); }

/* The subject of a number of the paper: a trained model on the ranking or the diagnostic window. */
static paper_ask of_model(const char *data, const char *model, bool diagnostic) {
    return (paper_ask){.data = data, .model = {model}, .diagnostic = diagnostic};
}

/* The paper's mean and deviation of a model under "expected20" or "full". */
static cell paper_main(const summary *s, const char *data, const model_numbers *m,
                       const char *column) {
    paper_ask ask = of_model(data, m->name, false);
    if (m->external) return cell_number(NAN, DIGITS);
    return cell_mean(paper_number(s->results, ask, "main_result", m->name, column, "mean", NULL),
                     paper_number(s->results, ask, "main_result", m->name, column, "sd", NULL),
                     DIGITS);
}

static void k_head(int64_t k, char out[32]) { (void)snprintf(out, 32, "K = %lld", (long long)k); }

static mean_sd at_k(const summary *s, const model_numbers *m, int64_t k) {
    int place = k ? summary_place_of_k(s, k) : s->ks;
    return place < 0 ? (mean_sd){NAN, NAN, 0} : m->expected[place];
}

/* Marks the best of the rows of a data set. */
static void mark(table *t, int first, const int *columns, int count) {
    for (int i = 0; i < count; i++)
        table_mark_best(t, columns[i], first, t->row_count - first, true);
}

/* A note about models whose training was stopped early. */
static void early_note(const summary *s, table *t) {
    const results *r = s->results;
    text_buffer note = {0};
    for (size_t i = 0; i < r->list.count; i++) {
        const result *u = &r->list.at[i];
        int64_t done, asked;
        if (u->kind != UNIT_RANK || !results_stopped_early(u, &done, &asked)) continue;
        text_print(&note, "%s %s (%lld of %lld epochs)",
                   note.count ? "," : "Training was stopped early:", u->key, (long long)done,
                   (long long)asked);
    }
    if (note.count) text_put(&note, ".");
    table_note_text(t, &note);
    text_free(&note);
}

/* Names the external models without numbers in a table, and the reason, because a gap is not a 0.
 */
static void note_not_applicable(const summary *s, table *t, unit_kind kind, const char *why) {
    text_buffer note = {0};
    for (int d = 0; t->row_count && d < s->datas; d++)
        for (int i = 0; i < s->data[d].models; i++) {
            const model_numbers *m = &s->data[d].model[i];
            bool told = false; /* for an earlier data set */
            for (int e = 0; e < d; e++) {
                const model_numbers *same = summary_find(&s->data[e], m->name, NULL);
                told |= same && same->external;
            }
            if (!m->external || told || results_next(s->results, 0, kind, NULL, m->name, NULL) >= 0)
                continue;
            text_print(&note, "%s%s", note.count ? ", " : "Not applicable to ", m->label);
        }
    if (note.count) text_print(&note, ": %s.", why);
    table_note_text(t, &note);
    text_free(&note);
}

static const char ranks_alone[] = "only ranks or scores on the ranking window are known",
                  inside[] = "the inside of the model is not known";

/* ---- ranking ---- */

static void main_table(const summary *s, table *t) {
    static const int judged[] = {1, 4, 7, 8, 9};
    start_ranked(
        s, t, "Main result",
        "Expected MRR among 20 uniformly sampled negatives, and MRR over every destination "
        "of the catalog; mean and sample standard deviation over seeds. The best value of "
        "a data set is bold and the second underlined, without the oracle.");
    table_column(t, NULL, "model", TABLE_LEFT);
    beside_columns(t, "expected-20 MRR");
    beside_columns(t, "full MRR");
    table_column(t, NULL, "hits@10", TABLE_RIGHT);
    table_column(t, NULL, "all-seen", TABLE_RIGHT);
    table_column(t, NULL, "all-unseen", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        int first = t->row_count;
        for (int oracle = 1; oracle >= 0; oracle--) {
            if (!oracle) first = t->row_count;
            for (int i = 0; i < set->models; i++) {
                const model_numbers *m = &set->model[i];
                if (!summary_is_main(m) || summary_is_oracle(m) != oracle) continue;
                table_row(t, set->name);
                table_put(t, cell_text(m->label));
                beside(t, mean_cell(at_k(s, m, 20), DIGITS),
                       paper_main(s, set->name, m, "expected20"), DIGITS);
                beside(t, mean_cell(at_k(s, m, 0), DIGITS), paper_main(s, set->name, m, "full"),
                       DIGITS);
                table_put(t, mean_cell(m->hits10, DIGITS));
                table_put(t, mean_cell(m->all_seen, DIGITS));
                table_put(t, mean_cell(m->all_unseen, DIGITS));
            }
        }
        mark(t, first, judged, 5);
    }
    table_note(t, "all-seen: repeated positives among the destinations the source has met; "
                  "all-unseen: new positives among the others.");
    selection_note(s, t);
    early_note(s, t);
}

static void expected_table(const summary *s, table *t) {
    start_ranked(s, t, "MRR against the number of sampled negatives",
                 "Exact expectation with K uniform negatives without replacement, and the full "
                 "catalog; mean and sample standard deviation over seeds.");
    table_column(t, NULL, "model", TABLE_LEFT);
    for (int k = 0; k < s->ks; k++) {
        char head[32];
        k_head(s->k[k], head);
        table_column(t, NULL, head, TABLE_RIGHT);
    }
    table_column(t, NULL, "full", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        int first = t->row_count;
        for (int i = 0; i < set->models; i++) {
            const model_numbers *m = &set->model[i];
            if (!summary_is_main(m) || summary_is_oracle(m)) continue;
            table_row(t, set->name);
            table_put(t, cell_text(m->label));
            for (int k = 0; k <= s->ks; k++) table_put(t, mean_cell(m->expected[k], DIGITS));
        }
        for (int k = 0; k <= s->ks; k++)
            table_mark_best(t, k + 1, first, t->row_count - first, true);
    }
}

/* The paper's agreement is that of the order of its six models. */
static double paper_tau(const summary *s, const data_numbers *d, int64_t k) {
    char key[32];
    int theirs = 0;
    bool others = false;
    paper_ask ask = {.data = d->name};
    (void)snprintf(key, sizeof key, "%lld", (long long)k);
    for (int i = 0; i < d->models; i++) {
        const model_numbers *m = &d->model[i];
        others |= m->external;
        if (!m->objective || strcmp(m->objective, "bce")) continue;
        ask.model[0] = m->name;
        if (isnan(paper_number(s->results, ask, "kendall_tau", key, NULL))) return NAN;
        theirs++;
    }
    double tau = theirs ? paper_number(s->results, ask, "kendall_tau", key, NULL) : NAN;
    if (isnan(tau) || (theirs == PAPER_MODELS && !others)) return tau;
    paper_refuse(s->results, d->name, "the paper orders six models");
    return NAN;
}

static void kendall_table(const summary *s, table *t) {
    char models[32];
    start_ranked(s, t, "Agreement of model orders",
                 "Kendall's tau between the order of scorers under expected-K and under the full "
                 "catalog, by means over seeds: for all scorers without the oracle, and for the "
                 "models alone.");
    (void)snprintf(models, sizeof models, "%s models", summary_compared_word(s));
    table_column(t, NULL, "order of", TABLE_LEFT);
    for (int k = 0; k < s->ks; k++) {
        char head[32];
        k_head(s->k[k], head);
        table_column(t, head, "ours", TABLE_RIGHT);
        table_column(t, head, "paper", TABLE_RIGHT);
    }
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        int compared = set->compared ? fr_comparison_get(set->compared).models : 0;
        for (int all = 1; all >= 0; all--) {
            if (all ? set->judged < 2 || set->judged == compared : compared < 2) continue;
            table_row(t, set->name);
            table_put(t, cell_text(all ? "all scorers" : models));
            for (int k = 0; k < s->ks; k++) {
                double tau = all ? set->tau[k] : fr_comparison_get(set->compared).column[k].tau;
                table_put(t, cell_number(tau, 3));
                table_put(t, cell_number(all ? NAN : paper_tau(s, set, s->k[k]), 3));
            }
        }
    }
}

/* ---- the module gain ---- */

/* The gain is the second model's MRR minus the first's; column `k` (ks = full). */
static const fr_difference *gain_at(const data_numbers *d, int objective, int k) {
    if (!d->gain[objective]) return NULL;
    fr_comparison_facts f = fr_comparison_get(d->gain[objective]);
    return f.pairs ? &f.pair[0].difference[k] : NULL;
}

/* The subject of the paper's gain; no data set if our gain is about other models. */
static paper_ask of_gain(const summary *s, const char *data, const char *objective) {
    const char *const *gain = s->results->plan.gain;
    bool theirs = gain[0] && !strcmp(gain[0], "craft") && !strcmp(gain[1], "craft-r");
    return (paper_ask){
        .data = theirs ? data : "", .model = {gain[0], gain[1]}, .objective = objective};
}

static void gain_title(const summary *s, const char *format, char *out, size_t size) {
    const char *const *gain = s->results->plan.gain;
    (void)snprintf(out, size, format, gain[0] ? summary_label(gain[1]) : "",
                   gain[0] ? summary_label(gain[0]) : "");
}

static void gain_table(const summary *s, table *t) {
    char caption[256];
    gain_title(s,
               "MRR of %s minus MRR of %s, means over seeds, among K sampled negatives and in "
               "the full catalog.",
               caption, sizeof caption);
    start_ranked(s, t, "Module gain", caption);
    table_column(t, NULL, "", TABLE_LEFT);
    for (int k = 0; k < s->ks; k++) {
        char head[32];
        k_head(s->k[k], head);
        table_column(t, NULL, head, TABLE_RIGHT);
    }
    table_column(t, NULL, "full", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const char *name = s->data[d].name;
        if (!gain_at(&s->data[d], 0, 0)) continue;
        table_row(t, name);
        table_put(t, cell_text("ours"));
        for (int k = 0; k <= s->ks; k++)
            table_put(t, cell_difference(gain_at(&s->data[d], 0, k)->value, DIGITS));
        paper_ask ask = of_gain(s, name, "bce");
        if (isnan(paper_number(s->results, ask, "module_gain_craft_r", "full", NULL))) continue;
        table_row(t, NULL);
        table_put(t, cell_text("paper"));
        for (int k = 0; k <= s->ks; k++) {
            char key[32] = "full";
            if (k < s->ks) (void)snprintf(key, sizeof key, "%lld", (long long)s->k[k]);
            table_put(
                t, cell_difference(paper_number(s->results, ask, "module_gain_craft_r", key, NULL),
                                   DIGITS));
        }
    }
}

static cell paper_interval(const summary *s, paper_ask ask, const char *column, const char *kind) {
    results *r = s->results;
    return cell_interval(paper_number(r, ask, "difference_intervals", column, kind, "0", NULL),
                         paper_number(r, ask, "difference_intervals", column, kind, "1", NULL),
                         DIGITS);
}

static cell seeds_cell(const fr_difference *d) {
    return cell_interval_or(d->seed_t.low, d->seed_t.high, DIGITS, "too few seeds");
}

static void interval_table(const summary *s, table *t) {
    char caption[256];
    gain_title(s,
               "MRR of %s minus MRR of %s with 95 %% confidence intervals: Student's t over "
               "seeds, and the paired bootstrap over blocks of consecutive test events.",
               caption, sizeof caption);
    start_ranked(s, t, "Is the gain real?", caption);
    table_column(t, NULL, "protocol", TABLE_LEFT);
    table_column(t, "ours", "difference", TABLE_RIGHT);
    table_column(t, "ours", "over seeds", TABLE_RIGHT);
    table_column(t, "ours", "over time blocks", TABLE_RIGHT);
    table_column(t, "paper", "difference", TABLE_RIGHT);
    table_column(t, "paper", "over seeds", TABLE_RIGHT);
    table_column(t, "paper", "over time blocks", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const char *name = s->data[d].name;
        for (int full = 0; full < 2; full++) {
            int k = full ? s->ks : summary_place_of_k(s, 20);
            const fr_difference *ours = k < 0 ? NULL : gain_at(&s->data[d], 0, k);
            if (!ours) continue;
            const char *column = full ? "full" : "expected20";
            table_row(t, name);
            table_put(t, cell_text(full ? "full" : "expected-20"));
            table_put(t, cell_difference(ours->value, DIGITS));
            table_put(t, seeds_cell(ours));
            table_put(t, cell_interval(ours->bootstrap.low, ours->bootstrap.high, DIGITS));
            paper_ask ask = of_gain(s, name, "bce");
            table_put(t, cell_difference(paper_number(s->results, ask, "difference_intervals",
                                                      column, "diff", NULL),
                                         DIGITS));
            table_put(t, paper_interval(s, ask, column, "seed_t"));
            table_put(t, paper_interval(s, ask, column, "block_bootstrap"));
        }
    }
}

/* Every pair of compared models in the full catalog. */
static void pairs_table(const summary *s, table *t) {
    start_ranked(s, t, "Every pair of models",
                 "Full MRR of the second model minus that of the first, with 95 % confidence "
                 "intervals over seeds (Student's t) and over blocks of consecutive test events "
                 "(paired bootstrap), p of the paired permutation test, and the same after Holm's "
                 "correction over the pairs of a data set.");
    table_column(t, NULL, "first", TABLE_LEFT);
    table_column(t, NULL, "second", TABLE_LEFT);
    table_column(t, NULL, "difference", TABLE_RIGHT);
    table_column(t, NULL, "over seeds", TABLE_RIGHT);
    table_column(t, NULL, "over time blocks", TABLE_RIGHT);
    table_column(t, NULL, "p", TABLE_RIGHT);
    table_column(t, NULL, "p (Holm)", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        if (!s->data[d].compared) continue;
        fr_comparison_facts f = fr_comparison_get(s->data[d].compared);
        for (int p = 0; p < f.pairs; p++) {
            const fr_difference *full = &f.pair[p].difference[f.columns - 1];
            table_row(t, s->data[d].name);
            table_put(t, cell_text(f.model[f.pair[p].first].name));
            table_put(t, cell_text(f.model[f.pair[p].second].name));
            table_put(t, cell_difference(full->value, DIGITS));
            table_put(t, seeds_cell(full));
            table_put(t, cell_interval(full->bootstrap.low, full->bootstrap.high, DIGITS));
            table_put(t, cell_number(full->permutation, DIGITS));
            table_put(t, cell_number(full->adjusted, DIGITS));
        }
    }
}

/* The uncertainty of each compared model's own number. */
static void models_table(const summary *s, table *t) {
    start_ranked(s, t, "Intervals of single models",
                 "Full MRR, mean and sample standard deviation over seeds, and the 95 % confidence "
                 "interval of that mean over blocks of consecutive test events (bootstrap). To "
                 "compare models, look at their differences on the same events, not at the overlap "
                 "of these intervals.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "seeds", TABLE_RIGHT);
    table_column(t, NULL, "full MRR", TABLE_RIGHT);
    table_column(t, NULL, "over time blocks", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        if (!s->data[d].compared) continue;
        fr_comparison_facts f = fr_comparison_get(s->data[d].compared);
        int full = f.columns - 1;
        for (int m = 0; m < f.models; m++) {
            const fr_compared_model *model = &f.model[m];
            table_row(t, s->data[d].name);
            table_put(t, cell_text(model->name));
            table_put(t, cell_integer(model->runs));
            table_put(t, cell_mean(model->mean[full], model->sd[full], DIGITS));
            table_put(
                t, cell_interval(model->bootstrap[full].low, model->bootstrap[full].high, DIGITS));
        }
    }
}

static void objective_table(const summary *s, table *t) {
    static const char *const objectives[] = {"bce", "bpr"};
    char caption[256];
    gain_title(s, "MRR of %s minus MRR of %s under two training objectives.", caption,
               sizeof caption);
    bool any = false;
    for (int d = 0; d < s->datas; d++) any |= gain_at(&s->data[d], 1, 0) != NULL;
    start_ranked(s, t, "Gain by objective", caption);
    table_column(t, NULL, "objective", TABLE_LEFT);
    beside_columns(t, "expected-20");
    beside_columns(t, "full");
    int k20 = summary_place_of_k(s, 20);
    for (int d = 0; any && d < s->datas; d++) {
        const char *name = s->data[d].name;
        for (int o = 0; o < 2; o++) {
            if (!gain_at(&s->data[d], o, 0)) continue;
            double sampled = k20 < 0 ? NAN : gain_at(&s->data[d], o, k20)->value;
            table_row(t, name);
            table_put(t, cell_text(objectives[o]));
            paper_ask ask = of_gain(s, name, objectives[o]);
            beside(t, cell_difference(sampled, DIGITS),
                   cell_difference(paper_number(s->results, ask, "objective_gain", objectives[o],
                                                "expected20", NULL),
                                   DIGITS),
                   DIGITS);
            beside(t, cell_difference(gain_at(&s->data[d], o, s->ks)->value, DIGITS),
                   cell_difference(
                       paper_number(s->results, ask, "objective_gain", objectives[o], "full", NULL),
                       DIGITS),
                   DIGITS);
        }
    }
}

/* ---- diagnostics ---- */

/* True if the membership table shows both windows, and so needs a column for them. */
static bool both_windows(const summary *s) {
    return s->results->plan.membership_on[0] && s->results->plan.membership_on[1];
}

static const char *window_word(const result *u) { return u->diagnostic ? "diagnostic" : "ranking"; }

/* The paper's four cells are in two places, and only those of CRAFT-R. */
static double paper_cell(const summary *s, const result *u, int which) {
    if (strcmp(u->model, "craft-r") || !u->objective) return NAN;
    const char *data = u->data, *objective = u->objective;
    paper_ask ask = of_model(data, u->model, u->diagnostic);
    ask.objective = objective;
    if (which == 1 || which == 2)
        return paper_number(s->results, ask, "craft_r_separation", objective,
                            which == 1 ? "repeated_unseen" : "new_seen", NULL);
    if (strcmp(objective, "bce")) return NAN;
    return paper_number(s->results, ask, "craft_r_diagonal_20",
                        which ? "new_unseen" : "repeated_seen", NULL);
}

/* Calls `row` for every model of every data set that has units of the kind on the windows `on`. */
static void each_group(const summary *s, table *t, unit_kind kind, const bool on[2],
                       void (*row)(const summary *s, table *t, const result *unit)) {
    const results *r = s->results;
    for (int d = 0; d < s->datas; d++)
        for (int wide = 0; wide < 2; wide++)
            for (int i = 0;
                 on[wide] && (i = results_next_group(r, i, kind, s->data[d].name, wide)) >= 0; i++)
                row(s, t, &r->list.at[i]);
}

static void membership_row(const summary *s, table *t, const result *u) {
    table_row(t, u->data);
    table_put(t, cell_text(summary_label(u->model)));
    table_put(t, u->objective ? cell_text(u->objective) : cell_empty());
    if (both_windows(s)) table_put(t, cell_text(window_word(u)));
    for (int c = 0; c < FR_CELLS; c++) {
        table_put(t, mean_cell(summary_cell(s, u, -1, c), DIGITS));
        table_put(t, cell_number(paper_cell(s, u, c), 3));
    }
    table_put(t, cell_number(results_metric(u, "eligible"), 0));
}

static void membership_table(const summary *s, table *t) {
    char text[400];
    (void)snprintf(text, sizeof text,
                   "Expected MRR of repeated and new positives against 20 negatives that the "
                   "source has met (seen) or not (unseen), among all destinations that occurred "
                   "before the event, on %s. Chance is .174; 1/21 = .0476 is the lowest possible "
                   "value.",
                   both_windows(s)                     ? "the ranking and the diagnostic window"
                   : s->results->plan.membership_on[1] ? "the diagnostic window"
                                                       : "the ranking window");
    start(s, t, "Pair membership, 20 negatives", text);
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "objective", TABLE_LEFT);
    if (both_windows(s)) table_column(t, NULL, "window", TABLE_LEFT);
    for (int c = 0; c < FR_CELLS; c++) {
        table_column(t, fr_cell_names[c], "ours", TABLE_RIGHT);
        table_column(t, fr_cell_names[c], "paper", TABLE_RIGHT);
    }
    table_column(t, NULL, "events", TABLE_RIGHT);
    const bool both[] = {true, true};
    each_group(s, t, UNIT_MEMBERSHIP, both, membership_row);
    note_not_applicable(s, t, UNIT_MEMBERSHIP, ranks_alone);
}

static cell paper_diagonal(const summary *s, const char *data, const model_numbers *m,
                           const char *part) {
    return cell_number(m->external ? NAN
                                   : paper_number(s->results, of_model(data, m->name, false),
                                                  "exhaustive_diagonal", m->name, part, NULL),
                       DIGITS);
}

static void exhaustive_table(const summary *s, table *t) {
    start_ranked(s, t, "Exhaustive diagonal",
                 "All-seen: repeated positives among all catalog destinations the source has met. "
                 "All-unseen: new positives among all it has not met. Both use the ranking window "
                 "and are not the cells with 20 negatives.");
    table_column(t, NULL, "model", TABLE_LEFT);
    beside_columns(t, "all-seen");
    beside_columns(t, "all-unseen");
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        for (int i = 0; i < set->models; i++) {
            const model_numbers *m = &set->model[i];
            if (!summary_is_main(m)) continue;
            table_row(t, set->name);
            table_put(t, cell_text(m->label));
            beside(t, mean_cell(m->all_seen, DIGITS), paper_diagonal(s, set->name, m, "all_seen"),
                   DIGITS);
            beside(t, mean_cell(m->all_unseen, DIGITS),
                   paper_diagonal(s, set->name, m, "all_unseen"), DIGITS);
        }
    }
}

/* The full MRR of a window, or the one in which events that are not covered count as zero. */
static void put_projection(const summary *s, table *t, const result *u, const char *metric,
                           const char *window) {
    paper_ask ask = of_model(u->data, u->model, u->diagnostic);
    table_row(t, u->data);
    table_put(t, cell_text(summary_label(u->model)));
    if (s->results->plan.projection_on[1]) table_put(t, cell_text(window));
    for (int k = 0; k < FR_REMOVALS; k++) {
        table_put(t, mean_cell(summary_mean(s, u, metric_of_cell(metric, k, -1)), DIGITS));
        double paper =
            strcmp(u->model, "craft-r")
                ? NAN
                : paper_number(s->results, ask, "projection_full_mrr", fr_removal_names[k], NULL);
        table_put(t, cell_number(paper, DIGITS));
    }
    const unit_metric *base =
        record_metric(&u->record, metric_of_cell(metric, FR_REMOVE_NOTHING, -1));
    if (s->results->plan.projection_on[1])
        table_put(t, cell_number(base ? (double)base->events : NAN, 0));
}

static void projection_row(const summary *s, table *t, const result *u) {
    put_projection(s, t, u, "mrr", window_word(u));
    if (!u->diagnostic) return;
    metric_key mrr = metric_of_cell("mrr", FR_REMOVE_NOTHING, -1), zero = mrr;
    zero.name = "mrr-uncovered-zero";
    if (results_number(u, mrr) != results_number(u, zero))
        put_projection(s, t, u, zero.name, "diagnostic, uncovered = 0");
}

static void projection_table(const summary *s, table *t) {
    static const char *const heads[] = {"nothing", "membership direction", "random direction",
                                        "shuffled labels"};
    start_ranked(
        s, t, "Removing membership from the representation",
        "Full MRR after one direction is removed from the vector that enters the scoring head: "
        "the one in which training pairs that have met differ from others, and two controls.");
    table_column(t, NULL, "model", TABLE_LEFT);
    if (s->results->plan.projection_on[1]) table_column(t, NULL, "window", TABLE_LEFT);
    for (int k = 0; k < 4; k++) {
        table_column(t, heads[k], "ours", TABLE_RIGHT);
        table_column(t, heads[k], "paper", TABLE_RIGHT);
    }
    if (s->results->plan.projection_on[1]) table_column(t, NULL, "events", TABLE_RIGHT);
    each_group(s, t, UNIT_PROJECT, s->results->plan.projection_on, projection_row);
    note_not_applicable(s, t, UNIT_PROJECT, inside);
}

static void projection_cells_row(const summary *s, table *t, const result *u) {
    for (int k = 0; k < FR_REMOVALS; k++) {
        table_row(t, u->data);
        table_put(t, cell_text(summary_label(u->model)));
        table_put(t, cell_text(k ? fr_removal_names[k] : "nothing"));
        for (int c = 0; c < FR_CELLS; c++) {
            table_put(t, mean_cell(summary_cell(s, u, k, c), DIGITS));
            if (c != FR_REPEATED_UNSEEN && c != FR_NEW_SEEN) continue;
            const char *key = c == FR_REPEATED_UNSEEN ? "repeated_unseen" : "new_seen";
            double paper = NAN;
            if (k < 2 && !strcmp(u->model, "craft-r"))
                paper = paper_number(s->results, of_model(u->data, u->model, true),
                                     "projection_cells_craft_r", key, k ? "1" : "0", NULL);
            table_put(t, cell_number(paper, 3));
        }
        table_put(t, cell_number(results_number(u, metric_of_cell("eligible", k, -1)), 0));
    }
}

static void projection_cells_table(const summary *s, table *t) {
    start(s, t, "Pair membership without the membership direction",
          "The four cells with 20 negatives, on the diagnostic window, after one direction is "
          "removed from the vector that enters the scoring head.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "removed", TABLE_LEFT);
    for (int c = 0; c < FR_CELLS; c++) {
        bool beside_paper = c == FR_REPEATED_UNSEEN || c == FR_NEW_SEEN;
        table_column(t, beside_paper ? fr_cell_names[c] : NULL,
                     beside_paper ? "ours" : fr_cell_names[c], TABLE_RIGHT);
        if (beside_paper) table_column(t, fr_cell_names[c], "paper", TABLE_RIGHT);
    }
    table_column(t, NULL, "events", TABLE_RIGHT);
    const bool diagnostic[] = {false, true};
    each_group(s, t, UNIT_PROJECT, diagnostic, projection_cells_row);
    note_not_applicable(s, t, UNIT_PROJECT, inside);
}

static void minimal_table(const summary *s, table *t) {
    static const struct {
        const char *head, *metric, *paper;
        int digits;
    } columns[] = {{"events", "eligible", "events", 0},
                   {"p1", "p1", "p1", 4},
                   {"q1", "q1", "q1_random", 4},
                   {"beta*", "beta-star", "beta_star", 4},
                   {"beta, random", "beta-random", "beta_random", 4},
                   {"beta, history", "beta-history", "beta_history", 4}};
    start(s, t, "Minimal membership scorer",
          "s = b0 + beta M on events whose source has met at least 20 other destinations, on "
          "the diagnostic window: share of repeated positives p1, of seen negatives q1, the "
          "best beta* = logit(p1) - logit(q1), and beta learned with random and with "
          "source-history negatives (for the latter the best value is minus infinity, and "
          "the penalty decides the result).");
    table_column(t, NULL, "data", TABLE_LEFT);
    for (int c = 0; c < 6; c++) {
        table_column(t, columns[c].head, "ours", TABLE_RIGHT);
        table_column(t, columns[c].head, "paper", TABLE_RIGHT);
    }
    results *r = s->results;
    for (int d = 0; d < s->datas; d++) {
        int i = results_next(r, 0, UNIT_MINIMAL, s->data[d].name, NULL, NULL);
        if (i < 0) continue;
        table_row(t, NULL);
        table_put(t, cell_text(s->data[d].name));
        for (int c = 0; c < 6; c++) {
            table_put(t, cell_number(results_metric(&r->list.at[i], columns[c].metric),
                                     columns[c].digits));
            paper_ask ask = {.data = s->data[d].name, .diagnostic = true};
            table_put(t, cell_number(paper_number(r, ask, "minimal_scorer", columns[c].paper, NULL),
                                     columns[c].digits ? 3 : 0));
        }
    }
}

static void available_table(const summary *s, table *t) {
    start_ranked(s, t, "Time-available catalog",
                 "MRR among all destinations that occurred before the event, and over the fixed "
                 "catalog. The events are those whose positive is in the catalog, so the two "
                 "columns also differ in their events.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "fixed", TABLE_RIGHT);
    table_column(t, NULL, "time-available", TABLE_RIGHT);
    table_column(t, NULL, "difference", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        for (int i = 0; i < set->models; i++) {
            const model_numbers *m = &set->model[i];
            if (!summary_is_main(m)) continue;
            table_row(t, set->name);
            table_put(t, cell_text(m->label));
            table_put(t, mean_cell(at_k(s, m, 0), DIGITS));
            table_put(t, mean_cell(m->available, DIGITS));
            table_put(t, cell_difference(m->available.mean - at_k(s, m, 0).mean, DIGITS));
        }
        paper_ask ask = {.data = set->name};
        for (int i = 0; i < set->models; i++)
            if (set->model[i].objective && summary_is_main(&set->model[i]))
                ask.model[0] = set->model[i].name;
        if (!ask.model[0]) continue;
        const char *section = "time_available_mrr_difference";
        double low = paper_number(s->results, ask, section, "0", NULL),
               high = paper_number(s->results, ask, section, "1", NULL);
        if (!isnan(low)) {
            char note[160];
            (void)number_print(note, sizeof note,
                               "%s: the paper reports differences from %.4f to %.4f in size.",
                               set->name, low, high);
            table_note(t, note);
        }
    }
}

/* The rules for ties of PROTOCOL 5, side by side. */
static void ties_table(const summary *s, table *t) {
    static const char *const names[] = {"ties", "mrr-optimistic", "mrr-random-ties", "mrr",
                                        "mrr-pessimistic"};
    enum { NAMES = sizeof names / sizeof *names };
    start_ranked(
        s, t, "Ties",
        "Events whose destination ties with others, and the full MRR under four rules: ties in "
        "favour, in random order (expectation), by average rank (the rule of all other tables), "
        "against. Means over seeds.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "tied events", TABLE_RIGHT);
    table_column(t, "full MRR, ties", "in favour", TABLE_RIGHT);
    table_column(t, "full MRR, ties", "random", TABLE_RIGHT);
    table_column(t, "full MRR, ties", "average", TABLE_RIGHT);
    table_column(t, "full MRR, ties", "against", TABLE_RIGHT);
    for (int d = 0; d < s->datas; d++) {
        const char *name = s->data[d].name;
        for (int i = 0; i < s->data[d].models; i++) {
            const model_numbers *m = &s->data[d].model[i];
            double mean[NAMES] = {0};
            if (!summary_is_main(m)) continue;
            for (int r = 0; r < m->runs; r++) {
                double value[NAMES];
                if (summary_numbers(m->run[r].run, names, NAMES, value, &t->failure)) return;
                for (int k = 0; k < NAMES; k++) mean[k] += value[k] / m->runs;
            }
            table_row(t, name);
            table_put(t, cell_text(m->label));
            table_put(t, cell_number(mean[0], m->runs > 1 ? 1 : 0));
            for (int k = 1; k < NAMES; k++) table_put(t, cell_number(mean[k], DIGITS));
        }
    }
}

static void settings_notes(const summary *s, table *t) {
    const results *r = s->results;
    const json_t *settings = json_object_get(r->plan.source, "settings");
    text_buffer note = {0}, tools = {0};
    char *options = settings ? json_print(settings, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (settings && !options) (void)fail_memory(&t->failure, 0);
    if (json_array_size(json_object_get(r->plan.source, "models")))
        text_print(&note, "Training options other than the defaults: %s.",
                   options ? options : "none");
    table_note_text(t, &note);
    early_note(s, t);
    if (r->versions.count > 1) {
        text_put(&tools, "Units of work were done by different versions of the tool:");
        for (size_t i = 0; i < r->versions.count; i++)
            text_print(&tools, "%s %s (%lld)", i ? "," : "",
                       r->versions.at[i].tool ? r->versions.at[i].tool : "an early one",
                       (long long)r->versions.at[i].units);
        text_put(&tools, ".");
        table_note_text(t, &tools);
    }
    text_free(&note);
    text_free(&tools);
    free(options);
}

/* A fact of a data set. If there are only rank records, some facts follow from them; the others are
 * NaN. */
static double fact(const data_numbers *d, const char *name) {
    if (d->facts) return results_metric(d->facts, name);
    fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
    int64_t covered = 0, repeated = 0;
    for (int64_t i = 0; i < f.count; i++) {
        covered += f.records[i].covered;
        repeated += f.records[i].covered && f.records[i].repeated;
    }
    const struct {
        const char *name;
        int64_t value;
    } known[] = {{"window", f.protocol.window}, {"train", f.protocol.train},
                 {"test", f.protocol.test},     {"catalog", f.protocol.catalog_size},
                 {"covered", covered},          {"repeated", repeated},
                 {"new", covered - repeated}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return (double)known[i].value;
    return NAN;
}

static void settings_table(const summary *s, table *t) {
    static const struct {
        const char *head, *metric;
    } columns[] = {{"events", "events"},
                   {"sources", "sources"},
                   {"destinations", "destinations"},
                   {"features", "feature-width"},
                   {"window", "window"},
                   {"train", "train"},
                   {"test", "test"},
                   {"catalog", "catalog"},
                   {"covered", "covered"},
                   {"repeated", "repeated"},
                   {"new", "new"},
                   {"tied times", "tied-times"}};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    start(s, t, "Settings and coverage",
          "The data sets under the protocol: sizes, the catalog, and the test events whose "
          "destination is in it.");
    table_column(t, NULL, "data", TABLE_LEFT);
    for (int c = 0; c < COLUMNS; c++) table_column(t, NULL, columns[c].head, TABLE_RIGHT);
    table_column(t, "coverage", "ours", TABLE_RIGHT);
    table_column(t, "coverage", "paper", TABLE_RIGHT);
    results *r = s->results;
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        table_row(t, NULL);
        table_put(t, cell_text(set->name));
        for (int c = 0; c < COLUMNS; c++)
            table_put(t, cell_number(fact(set, columns[c].metric), 0));
        table_put(t, cell_number(fact(set, "covered") / fact(set, "test"), 3));
        paper_ask ask = {.data = set->name};
        table_put(t, cell_number(set->facts ? paper_number(r, ask, "coverage", NULL) : NAN, 3));
    }
    settings_notes(s, t);
}

/* ---- cost ---- */

static void scaling_table(const summary *s, table *t) {
    start(s, t, "Cost against catalog size",
          "Milliseconds per event with one thread, for scoring and ranking, over 128 test "
          "events, and the peak memory of the process. forward: the plain forward pass over "
          "these candidates only; fast: the path that scores every destination; rank: a "
          "whole run of it, divided by the number of events.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "candidates", TABLE_RIGHT);
    table_column(t, NULL, "path", TABLE_LEFT);
    table_column(t, NULL, "ms per event", TABLE_RIGHT);
    table_column(t, NULL, "MB", TABLE_RIGHT);
    bool comparable = false;
    results *r = s->results;
    for (int d = 0; d < s->datas; d++) {
        const char *name = s->data[d].name;
        for (int i = 0; (i = results_next(r, i, UNIT_SCALING, name, NULL, NULL)) >= 0; i++) {
            const result *u = &r->list.at[i];
            comparable |= !strcmp(u->model, "craft") &&
                          paper_fits(s->results, of_model(name, u->model, false));
            fr_scaling_point point[FR_SCALING_MAX];
            int points = results_scaling(u, point);
            for (int k = 0; k < points; k++) {
                table_row(t, name);
                table_put(t, cell_text(summary_label(u->model)));
                table_put(t, cell_integer(point[k].size));
                table_put(t, cell_text(point[k].path));
                table_put(t, cell_number(1e3 * point[k].seconds, 3));
                table_put(t, cell_number(1e-6 * (double)point[k].peak_bytes, 1));
            }
        }
    }
    note_not_applicable(s, t, UNIT_SCALING, inside);
    if (comparable)
        table_note(t, "The paper measured CRAFT on a GPU: 0.13 to 0.14 ms at 20 candidates, 4.94 "
                      "to 5.69 ms at 822 to 991.");
}

static void timing_table(const summary *s, table *t) {
    start_ranked(s, t, "Time", "Seconds per unit of work, means over seeds.");
    table_column(t, NULL, "model", TABLE_LEFT);
    table_column(t, NULL, "objective", TABLE_LEFT);
    table_column(t, NULL, "training", TABLE_RIGHT);
    table_column(t, NULL, "ranking", TABLE_RIGHT);
    table_column(t, NULL, "ms per ranked event", TABLE_RIGHT);
    results *r = s->results;
    for (int d = 0; d < s->datas; d++) {
        const data_numbers *set = &s->data[d];
        for (int i = 0; i < set->models; i++) {
            const model_numbers *m = &set->model[i];
            double train = 0, rank = 0;
            int trained = 0;
            for (int k = 0; k < m->runs; k++)
                rank += results_seconds(m->run[k].run, "rank") / m->runs;
            for (int j = 0; m->objective && (j = results_next(r, j, UNIT_TRAIN, set->name, m->name,
                                                              m->objective)) >= 0;
                 j++) {
                if (r->list.at[j].diagnostic) continue;
                train += results_seconds(&r->list.at[j], "epochs");
                trained++;
            }
            table_row(t, set->name);
            table_put(t, cell_text(m->label));
            table_put(t, m->objective ? cell_text(m->objective) : cell_empty());
            table_put(t, cell_number(trained ? train / trained : NAN, 1));
            table_put(t, cell_number(rank, 2));
            table_put(t, cell_number(1e3 * rank / (double)m->run[0].ranked, 3));
        }
    }
}

fr_status study_table_make(const summary *s, const study_table *one, table *t, fr_error *err) {
    const char *why = NULL;
    one->make(s, t);
    table_drop_missing(t); /* such as the paper's numbers for data it does not have */
    fr_status status = paper_reasons(s->results, &why, err);
    if (!status && why && t->row_count) table_note(t, why);
    if (!status && t->failure.code) status = fail(err, t->failure.code, "%s", t->failure.message);
    if (status) table_free(t);
    return status;
}

static void sample_table(const summary *s, table *t) {
    start(s, t, "Sampled test events",
          "Not all test events were ranked. Each estimate has a 95 % confidence interval for "
          "the value over all of them (simple random sampling with the finite-population "
          "correction).");
    estimates_table(s, t);
}

const study_table study_tables[] = {{"main", main_table, false},
                                    {"expected", expected_table, false},
                                    {"kendall", kendall_table, false},
                                    {"gain", gain_table, false},
                                    {"intervals", interval_table, false},
                                    {"pairs", pairs_table, false},
                                    {"models", models_table, false},
                                    {"objective", objective_table, false},
                                    {"membership", membership_table, false},
                                    {"exhaustive", exhaustive_table, false},
                                    {"projection", projection_table, false},
                                    {"projection-cells", projection_cells_table, false},
                                    {"minimal", minimal_table, false},
                                    {"time-available", available_table, false},
                                    {"selection", selection_table, false},
                                    {"granularity", granularity_table, false},
                                    {"settings", settings_table, false},
                                    {"ties", ties_table, false},
                                    {"sample", sample_table, false},
                                    {"scaling", scaling_table, true},
                                    {"timing", timing_table, true},
                                    {0}};
