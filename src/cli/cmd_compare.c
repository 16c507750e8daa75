/* cmd_compare.c - compare: a table of models, with both intervals of their differences. */
#include "board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare_lists {
    char *k;
} compare_lists;

static const fr_option compare_list_options[] = {
    {"k", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(compare_lists, k),
     "numbers of sampled negatives; 1,5,20,50,100 by default; none for a metric without "
     "expectations over draws"},
    {0}};

static const char too_few[] = "too few seeds";

static bool has_seeds(const fr_compared_pair *pair) { return pair->seeds >= FR_SEEDS_LEAST; }

/* ---- JSON ---- */

static json_t *seed_t_json(const fr_compared_pair *pair, const fr_difference *d) {
    json_t *out = board_interval_json(d->seed_t);
    cli_json_put(out, "seeds", json_integer(pair->seeds));
    cli_json_put(out, "method", json_string(pair->pairing == FR_PAIRING_NONE ? "welch" : "paired"));
    if (!has_seeds(pair))
        cli_json_put(out, "note",
                     json_sprintf("%s: %d, expected at least %d", too_few, pair->seeds,
                                  (int)FR_SEEDS_LEAST));
    return out;
}

static cli_text column_name(const fr_compared_column *column) {
    cli_text out = {"full"};
    if (column->k) (void)snprintf(out.s, sizeof out.s, "%lld", (long long)column->k);
    return out;
}

/* Adds the keys of a difference to `out`. */
static void add_difference(json_t *out, const fr_compared_pair *pair, const fr_difference *d) {
    cli_json_put(out, "difference", cli_json_real(d->value));
    cli_json_put(out, "seed_t", seed_t_json(pair, d));
    cli_json_put(out, "block_bootstrap", board_interval_json(d->bootstrap));
    cli_json_put(out, "permutation_p", cli_json_real(d->permutation));
    cli_json_put(out, "permutation_p_holm", cli_json_real(d->adjusted));
    cli_json_put(out, "flipped", cli_json_real(d->flipped));
    cli_json_put(out, "reversed", cli_json_real(d->reversed));
}

static const char *const pairings[] = {"seeds", "one_run", "none"};

/* Adds the full-catalog difference and the gain of every column. */
static void add_pair(json_t *out, const fr_comparison_facts *f, const fr_compared_pair *pair) {
    json_t *gain = json_object();
    cli_json_put(out, "first", cli_json_text(f->model[pair->first].name));
    cli_json_put(out, "second", cli_json_text(f->model[pair->second].name));
    cli_json_put(out, "pairing", json_string(pairings[pair->pairing]));
    add_difference(out, pair, &pair->difference[f->columns - 1]);
    if (pair->sample)
        cli_json_put(out, "sample", board_interval_json(pair->sample[f->columns - 1]));
    for (int j = 0; j < f->columns; j++) {
        if (!f->column[j].events) continue;
        json_t *one = json_object();
        add_difference(one, pair, &pair->difference[j]);
        if (pair->sample) cli_json_put(one, "sample", board_interval_json(pair->sample[j]));
        cli_json_put(gain, column_name(&f->column[j]).s, one);
    }
    cli_json_put(out, "gain", gain);
}

static json_t *mean_json(const fr_compared_model *model, int column) {
    json_t *out = json_pack("{s:o, s:o, s:o}", "mean", cli_json_real(model->mean[column]), "sd",
                            cli_json_real(model->sd[column]), "block_bootstrap",
                            board_interval_json(model->bootstrap[column]));
    if (model->sample) cli_json_put(out, "sample", board_interval_json(model->sample[column]));
    return out;
}

static json_t *model_json(const fr_comparison_facts *f, const fr_compared_model *model) {
    json_t *seeds = json_array(), *expected = json_object();
    int full = f->columns - 1;
    for (int i = 0; i < model->runs; i++) cli_json_push(seeds, json_integer(model->seeds[i]));
    for (int j = 0; j < full; j++)
        if (f->column[j].events)
            cli_json_put(expected, column_name(&f->column[j]).s, mean_json(model, j));
    return json_pack("{s:o, s:o, s:o, s:o}", "model", cli_json_text(model->name), "seeds", seeds,
                     cli_key(f->metric).s, mean_json(model, full), "expected", expected);
}

static json_t *comparison_json(const fr_comparison_facts *f, const fr_compare_settings *s,
                               int64_t seed) {
    json_t *root = json_object(), *tau = json_object(), *models = json_array(),
           *pairs = json_array();
    add_pair(root, f, &f->pair[0]);
    for (int j = 0; j < f->columns - 1; j++)
        if (f->column[j].events)
            cli_json_put(tau, column_name(&f->column[j]).s, cli_json_real(f->column[j].tau));
    for (int m = 0; m < f->models; m++) cli_json_push(models, model_json(f, &f->model[m]));
    for (int p = 0; p < f->pairs; p++) {
        json_t *one = json_object();
        add_pair(one, f, &f->pair[p]);
        cli_json_push(pairs, one);
    }
    cli_json_put(root, "kendall_tau", tau);
    cli_json_put(root, "models", models);
    cli_json_put(root, "pairs", pairs);
    json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:I}", "protocol",
                              f->protocol_text, "metric", f->metric, "sampler", s->sampler, "small",
                              s->small == FR_SMALL_WHOLE ? "whole" : "ineligible", "events",
                              (json_int_t)f->events, "block", (json_int_t)s->block, "blocks",
                              (json_int_t)f->blocks, "resamples", (json_int_t)s->resamples, "level",
                              cli_json_real(s->level), "seed", (json_int_t)seed);
    cli_json_join(root, about);
    if (f->sample)
        cli_json_put(root, "estimate",
                     json_pack("{s:I, s:I, s:I}", "events", (json_int_t)f->sample, "of",
                               (json_int_t)f->sample_of, "block", (json_int_t)f->block));
    return root;
}

/* ---- Tables ---- */

enum { CELL = 17, INTERVAL = 22 };

static void print_title(const char *text) {
    (void)printf("\n%s%s%s\n", cli_style(stdout, CLI_BOLD), cli_visible(text),
                 cli_style(stdout, CLI_PLAIN));
}

static const char *shown(const fr_compared_model *model) { return cli_visible(model->name); }

static int name_width(const fr_comparison_facts *f) {
    int width = 18; /* at least the width of "tau with full order" */
    for (int m = 0; m < f->models; m++)
        if ((int)strlen(shown(&f->model[m])) > width) width = (int)strlen(shown(&f->model[m]));
    return width;
}

/* "0.7366 ± 0.0100"; ± is two bytes and one column. */
static void print_mean(double mean, double sd) {
    char text[48];
    bool spread = !isnan(sd);
    if (isnan(mean))
        (void)snprintf(text, sizeof text, "-");
    else if (spread)
        (void)snprintf(text, sizeof text, "%.4f ± %.4f", mean, sd);
    else
        (void)snprintf(text, sizeof text, "%.4f", mean);
    (void)printf("  %*s", CELL + (spread && !isnan(mean)), text);
}

static void print_interval(fr_interval i, bool sign) {
    char text[64] = "-";
    if (!isnan(i.low))
        (void)snprintf(text, sizeof text, sign ? "[%+.4f, %+.4f]" : "[%.4f, %.4f]", i.low, i.high);
    (void)printf("  %*s", INTERVAL, text);
}

static cli_text column_head(const fr_compared_column *column) {
    cli_text out;
    (void)snprintf(out.s, sizeof out.s, "%s%.20s", column->k ? "K = " : "", column_name(column).s);
    return out;
}

static void print_models(const fr_comparison_facts *f, const fr_compare_settings *s) {
    int width = name_width(f);
    char title[256];
    const char *metric = !strcmp(f->metric, "mrr") ? "MRR" : f->metric;
    if (f->columns > 1)
        (void)snprintf(title, sizeof title,
                       "%s, mean ± sd over seeds: expected with K %s negatives, and full", metric,
                       s->sampler);
    else
        (void)snprintf(title, sizeof title, "%s, mean ± sd over seeds, full catalog", metric);
    print_title(title);
    (void)printf("%-*s  %5s", width, "model", "seeds");
    for (int j = 0; j < f->columns; j++) (void)printf("  %*s", CELL, column_head(&f->column[j]).s);
    char head[48];
    (void)snprintf(head, sizeof head, "full, bootstrap %g%%", 100 * s->level);
    (void)printf("  %*s", INTERVAL, head);
    (void)snprintf(head, sizeof head, "full, all events %g%%", 100 * s->level);
    if (f->sample) (void)printf("  %*s", INTERVAL, head);
    (void)printf("\n");
    for (int m = 0; m < f->models; m++) {
        (void)printf("%-*s  %5d", width, shown(&f->model[m]), f->model[m].runs);
        for (int j = 0; j < f->columns; j++) print_mean(f->model[m].mean[j], f->model[m].sd[j]);
        print_interval(f->model[m].bootstrap[f->columns - 1], false);
        if (f->sample) print_interval(f->model[m].sample[f->columns - 1], false);
        (void)printf("\n");
    }
    if (f->columns == 1) return;
    (void)printf("%-*s  %5s", width, "Kendall tau", "");
    for (int j = 0; j < f->columns - 1; j++)
        if (isnan(f->column[j].tau))
            (void)printf("  %*s", CELL, "-");
        else
            (void)printf("  %*.3f", CELL, f->column[j].tau);
    (void)printf("\n");
}

static void print_heads(const fr_comparison_facts *f, const char *first, int width,
                        const fr_compare_settings *s) {
    char t[48], bootstrap[48], all[48];
    (void)snprintf(t, sizeof t, "seed t %g%%", 100 * s->level);
    (void)snprintf(bootstrap, sizeof bootstrap, "block bootstrap %g%%", 100 * s->level);
    (void)snprintf(all, sizeof all, "all events %g%%", 100 * s->level);
    (void)printf("%-*s  %10s  %*s  %*s", width, first, "difference", INTERVAL, t, INTERVAL,
                 bootstrap);
    if (f->sample) (void)printf("  %*s", INTERVAL, all);
    (void)printf("  %8s  %8s  %8s", "p", "p (Holm)", "reversed");
}

static void print_difference(const fr_compared_pair *pair, int column) {
    const fr_difference *d = &pair->difference[column];
    (void)printf("  %+10.4f", d->value);
    if (has_seeds(pair))
        print_interval(d->seed_t, true);
    else
        (void)printf("  %*s", INTERVAL, too_few);
    print_interval(d->bootstrap, true);
    if (pair->sample) print_interval(pair->sample[column], true);
    (void)printf("  %8.4f  %8.4f  %8.4f", d->permutation, d->adjusted, d->reversed);
}

/* Explains how the runs of a pair were combined, if it is not obvious. */
static void print_pairing(const fr_comparison_facts *f, const fr_compared_pair *pair) {
    const fr_compared_model *a = &f->model[pair->first], *b = &f->model[pair->second];
    if (pair->pairing == FR_PAIRING_ONE && pair->seeds > 1)
        (void)printf("%s is one run, compared with every seed of %s.\n",
                     shown(a->runs == 1 ? a : b), shown(a->runs == 1 ? b : a));
    if (pair->pairing == FR_PAIRING_NONE)
        (void)printf("%s and %s have no common seed: difference of means, Welch's interval.\n",
                     shown(a), shown(b));
    if (pair->pairing == FR_PAIRING_SEEDS && (a->runs != pair->seeds || b->runs != pair->seeds))
        (void)printf("%s and %s have %d seed%s in common; others are left out of their "
                     "difference.\n",
                     shown(a), shown(b), pair->seeds, pair->seeds == 1 ? "" : "s");
}

/* Prints the gain curve of one pair: a line per K, and the full catalog. */
static void print_gain(const fr_comparison_facts *f, const fr_compared_pair *pair,
                       const fr_compare_settings *s) {
    char title[256];
    (void)snprintf(title, sizeof title, "%.100s minus %.100s", shown(&f->model[pair->second]),
                   shown(&f->model[pair->first]));
    print_title(title);
    print_heads(f, "K", 6, s);
    (void)printf("  %8s\n", f->columns > 1 ? "flipped" : "");
    for (int j = 0; j < f->columns; j++) {
        if (isnan(pair->difference[j].value)) continue; /* K is larger than the catalog */
        (void)printf("%-6s", column_name(&f->column[j]).s);
        print_difference(pair, j);
        if (f->column[j].k)
            (void)printf("  %8.4f\n", pair->difference[j].flipped);
        else
            (void)printf("  %8s\n", "");
    }
    print_pairing(f, pair);
}

/* Prints every pair, full catalog. */
static void print_pairs(const fr_comparison_facts *f, const fr_compare_settings *s) {
    int width = 2 * name_width(f) + 3;
    print_title("Every pair, full catalog");
    print_heads(f, "second - first", width, s);
    (void)printf("\n");
    for (int p = 0; p < f->pairs; p++) {
        const fr_compared_pair *pair = &f->pair[p];
        int used = printf("%s - %s", shown(&f->model[pair->second]), shown(&f->model[pair->first]));
        (void)printf("%*s", used < width ? width - used : 0, "");
        print_difference(pair, f->columns - 1);
        (void)printf("\n");
    }
    for (int p = 1; p < f->pairs; p++) print_pairing(f, &f->pair[p]);
}

/* Explains runs over a sample of events; "" if all were ranked. */
static void estimate_text(const fr_comparison_facts *f, char *out, size_t size) {
    *out = 0;
    if (f->sample)
        (void)snprintf(out, size,
                       "All numbers are estimates from a simple random sample of %s of %s test "
                       "events; the intervals \"all events\" are for the value over all of them.",
                       cli_count(f->sample).s, cli_count(f->sample_of).s);
}

static void print_tables(const fr_comparison_facts *f, const fr_compare_settings *s) {
    (void)printf("%s ranked events in %s blocks of %s, %s resamples\n", cli_count(f->events).s,
                 cli_count(f->blocks).s, cli_count(f->block).s, cli_count(s->resamples).s);
    char sample[BOARD_TEXT];
    estimate_text(f, sample, sizeof sample);
    if (*sample) (void)printf("%s\n", sample);
    print_models(f, s);
    print_gain(f, &f->pair[0], s);
    if (f->pairs > 1) print_pairs(f, s);
    (void)printf(
        "\np: paired permutation test over blocks; p (Holm): corrected for all pairs (%s). "
        "reversed: share of resamples with the other order.\n",
        cli_count(f->pairs).s);
    if (f->columns > 1)
        (void)printf("flipped: share in which K and the full catalog order the two models "
                     "differently.\n");
}

/* ---- LaTeX, Markdown, CSV ---- */

static fr_table_cell difference_cell(double value) {
    return (fr_table_cell){.kind = FR_CELL_DIFFERENCE, .value = value, .decimals = 4};
}

static fr_table_cell seeds_cell(const fr_compared_pair *pair, const fr_difference *d) {
    fr_table_cell out = cli_cell_interval(d->seed_t, 4);
    if (!has_seeds(pair)) out.text = too_few;
    return out;
}

static void note_estimate(fr_table *table, const fr_comparison_facts *f) {
    char sample[BOARD_TEXT];
    estimate_text(f, sample, sizeof sample);
    if (*sample) fr_table_note(table, sample);
}

static int print_models_as(const fr_comparison_facts *f, const fr_compare_settings *s, int format) {
    fr_table *table = NULL;
    fr_error err = {0};
    char caption[256];
    (void)snprintf(
        caption, sizeof caption,
        "%s, mean and standard deviation over seeds%s%s%s, and its %g%% interval over time blocks.",
        f->metric, f->columns > 1 ? ", expected with K " : "", f->columns > 1 ? s->sampler : "",
        f->columns > 1 ? " negatives and full" : "", 100 * s->level);
    int code = cli_report(fr_table_make("Models", caption, f->protocol_text, &table, &err), &err);
    fr_table_column(table, NULL, "model", true);
    fr_table_column(table, NULL, "seeds", false);
    for (int j = 0; j < f->columns; j++)
        fr_table_column(table, NULL, column_head(&f->column[j]).s, false);
    fr_table_column(table, NULL, "interval", false);
    if (f->sample) fr_table_column(table, NULL, "all events", false);
    for (int m = 0; m < f->models; m++) {
        const fr_compared_model *model = &f->model[m];
        fr_table_row(table);
        fr_table_put(table, cli_cell_text(model->name));
        fr_table_put(table, cli_cell_count(model->runs));
        for (int j = 0; j < f->columns; j++)
            fr_table_put(table, cli_cell_mean(model->mean[j], model->sd[j], 4));
        fr_table_put(table, cli_cell_interval(model->bootstrap[f->columns - 1], 4));
        if (f->sample) fr_table_put(table, cli_cell_interval(model->sample[f->columns - 1], 4));
    }
    note_estimate(table, f);
    for (int j = 0; f->columns > 1 && j < f->columns; j++) /* MRR or hits: larger is better */
        fr_table_mark(table, j + 2, true);
    if (!code) code = cli_table_print(table, format, true);
    fr_table_close(table);
    return code;
}

/* Adds a line of a pair: for one number of negatives, or for the full catalog. */
static void put_pair(fr_table *table, const fr_comparison_facts *f, const fr_compared_pair *pair,
                     int column, bool exact) {
    const fr_difference *d = &pair->difference[column];
    const int models[] = {pair->first, pair->second};
    fr_table_row(table);
    for (int i = 0; i < 2; i++) fr_table_put(table, cli_cell_text(f->model[models[i]].name));
    fr_table_put(table, cli_cell_text(column_name(&f->column[column]).s));
    for (int i = 0; exact && i < 2; i++) {
        const fr_compared_model *model = &f->model[models[i]];
        fr_table_put(table, cli_cell_mean(model->mean[column], model->sd[column], 4));
        fr_table_put(table, cli_cell_interval(model->bootstrap[column], 4));
        if (f->sample) fr_table_put(table, cli_cell_interval(model->sample[column], 4));
    }
    fr_table_put(table, difference_cell(d->value));
    if (exact) fr_table_put(table, cli_cell_count(pair->seeds));
    fr_table_put(table, seeds_cell(pair, d));
    fr_table_put(table, cli_cell_interval(d->bootstrap, 4));
    if (f->sample) fr_table_put(table, cli_cell_interval(pair->sample[column], 4));
    fr_table_put(table, cli_cell_number(d->permutation, 4));
    fr_table_put(table, cli_cell_number(d->adjusted, 4));
    fr_table_put(table, cli_cell_number(d->reversed, 4));
    if (exact) fr_table_put(table, cli_cell_number(d->flipped, 4));
    if (exact && f->sample) {
        fr_table_put(table, cli_cell_count(f->sample));
        fr_table_put(table, cli_cell_count(f->sample_of));
    }
}

/* Every pair under every protocol. LaTeX and Markdown have only the full catalog for all pairs
 * after the first. CSV has the models' own numbers too. */
static int print_pairs_as(const fr_comparison_facts *f, const fr_compare_settings *s, int format) {
    fr_table *table = NULL;
    fr_error err = {0};
    bool exact = format == FR_FORMAT_CSV;
    char caption[320];
    (void)snprintf(caption, sizeof caption,
                   "%s of the second model minus that of the first, with %g%% intervals over seeds "
                   "(Student's t; Welch's if no seed is common) and over time blocks (paired "
                   "bootstrap), and p of the paired permutation test, raw and with Holm's "
                   "correction over all pairs (%d).",
                   f->metric, 100 * s->level, f->pairs);
    int code =
        cli_report(fr_table_make("Differences", caption, f->protocol_text, &table, &err), &err);
    fr_table_column(table, NULL, "first", true);
    fr_table_column(table, NULL, "second", true);
    fr_table_column(table, NULL, "K", true);
    for (int i = 0; exact && i < 2; i++) {
        fr_table_column(table, i ? "second" : "first", f->metric, false);
        fr_table_column(table, i ? "second" : "first", "block bootstrap", false);
        if (f->sample) fr_table_column(table, i ? "second" : "first", "all events", false);
    }
    fr_table_column(table, NULL, "difference", false);
    if (exact) fr_table_column(table, NULL, "seeds", false);
    fr_table_column(table, NULL, "over seeds", false);
    fr_table_column(table, NULL, "over time blocks", false);
    if (f->sample) fr_table_column(table, NULL, "all events", false);
    fr_table_column(table, NULL, "p", false);
    fr_table_column(table, NULL, "p (Holm)", false);
    fr_table_column(table, NULL, "reversed", false);
    if (exact) fr_table_column(table, NULL, "flipped", false);
    for (int i = 0; exact && f->sample && i < 2; i++)
        fr_table_column(table, "sample", i ? "of" : "events", false);
    for (int p = 0; p < f->pairs; p++)
        for (int j = 0; j < f->columns; j++)
            if ((exact || !p || !f->column[j].k) && f->column[j].events)
                put_pair(table, f, &f->pair[p], j, exact);
    note_estimate(table, f);
    if (!code) code = cli_table_print(table, format, exact);
    fr_table_close(table);
    return code;
}

static int print_as(const fr_comparison_facts *f, const fr_compare_settings *s, int format) {
    int code = format == FR_FORMAT_CSV ? CLI_OK : print_models_as(f, s, format);
    return code ? code : print_pairs_as(f, s, format);
}

/* ---- The command ---- */

/* --k, or its default: the standard K if the metric has expectations. */
static bool take_k(const char *text, const char *metric, cli_numbers *out) {
    const fr_definition *d = metric ? fr_metric_find(metric, NULL) : NULL;
    if (text) return cli_parse_numbers("k", text, out);
    *out = (cli_numbers){0};
    if (d && strcmp(d->name, "mrr") != 0 && strcmp(d->name, "hits@k") != 0) return true;
    out->count = FR_STANDARD_K;
    for (int i = 0; i < FR_STANDARD_K; i++) out->at[i] = fr_standard_k[i];
    return true;
}

static int run_compare(cli_call *call) {
    const compare_lists *lists = call->settings[0];
    const fr_compare_settings *settings = call->settings[1];
    const cli_seed *seed = call->settings[2];
    cli_numbers k;
    int64_t number = 0;
    int format, usage = cli_format_take(call, call->settings[3], &format);
    if (usage) return usage;
    if (!take_k(lists->k, settings->metric, &k)) return CLI_USAGE;
    if (settings->sampler && fr_sampler_find(settings->sampler, &number) && number)
        k = (cli_numbers){{number}, 1};
    cli_runs runs;
    fr_comparison *comparison = NULL;
    fr_error err = {0};
    int code = cli_runs_open(call, &runs);
    if (!code)
        code = cli_report(fr_compare(runs.run, runs.count, k.at, k.count, settings, seed->seed,
                                     &call->context, &comparison, &err),
                          &err);
    cli_terminal_clear();
    if (!code) {
        fr_comparison_facts f = fr_comparison_get(comparison);
        if (format == CLI_FORMAT_JSON)
            code = cli_print_json(comparison_json(&f, settings, seed->seed));
        else if (format == FR_FORMAT_TEXT)
            print_tables(&f, settings);
        else
            code = print_as(&f, settings, format);
    }
    fr_comparison_close(comparison);
    cli_runs_close(&runs);
    return code;
}

const cli_command cli_compare_command = {
    .name = "compare",
    .summary = "Compare models by their rank records, with confidence intervals",
    .text =
        "Runs are grouped by model and seed, as `rank` recorded them; NAME=FILE and "
        "NAME@SEED=FILE override this. The output has the mean and standard deviation over seeds, "
        "and Kendall's tau between the order with K sampled negatives and the order over the full "
        "catalog. For the second model minus the first, for every K and the full catalog, it has "
        "the confidence interval over seeds (paired t, or Welch's if no seed is common; needs 3 "
        "seeds), the confidence interval over time blocks (paired bootstrap), a paired permutation "
        "test with its p raw and with Holm's correction over all pairs, and how often a resample "
        "changes the order. All other pairs follow for the full catalog. --format csv has every "
        "pair and every K.\n"
        "Runs with different protocols are refused.",
    .arguments = "A.npy B.npy...",
    .forced = "--force compares them anyway",
    .example = "fullrank compare recency.npy edgebank.npy",
    .groups = {{"Sampled negatives", compare_list_options, sizeof(compare_lists)},
               {"Comparison", fr_compare_options, sizeof(fr_compare_settings)},
               CLI_SEED_GROUP,
               CLI_FORMAT_GROUP},
    .run = run_compare,
};
