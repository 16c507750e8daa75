/* cmd_diagnose.c - how much of a result is pair membership: diagnose minimal, diagnose membership.
 *
 * Both use the test suffix of a long window. To add a diagnosis, add a run_NAME with its
 * cli_command at the end and X(diagnose_NAME) in main.c; diagnose.h has what it may share.
 */
#include "diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void diagnose_title(const char *text) {
    (void)printf("%s%s%s\n", cli_style(stdout, CLI_BOLD), cli_visible(text),
                 cli_style(stdout, CLI_PLAIN));
}

static const char *order_word(const fr_protocol *protocol) {
    return protocol->order ? protocol->order : "stream";
}

fr_status diagnose_window(const cli_call *call, const fr_stream *stream, fr_protocol protocol,
                          const char *catalog, fr_window **out, fr_error *err) {
    char word[16];
    (void)snprintf(word, sizeof word, "%s", catalog);
    protocol.catalog = word; /* the window keeps a copy */
    return fr_window_open(stream, &protocol, &call->context, out, err);
}

/* ---- minimal ---- */

typedef struct minimal_io {
    char *data;
} minimal_io;

static const fr_option minimal_io_options[] = {{"data", FR_OPTION_TEXT, "", "DATA", 0, 0,
                                                offsetof(minimal_io, data),
                                                "a directory made by `data import`, or a table"},
                                               {0}};

static const char unbounded[] =
    "Every source has met all its source-history negatives. So q1 is 1 and the best beta is minus "
    "infinity; only the penalty keeps the learned value finite.";

static json_t *fit_json(const fr_minimal_fit *f) {
    json_t *out =
        json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "q1", cli_json_real(f->q1), "beta_star",
                  cli_json_real(f->beta_star), "negatives", (json_int_t)f->negatives, "seen",
                  (json_int_t)f->seen, "intercept", cli_json_real(f->intercept), "beta",
                  cli_json_real(f->beta), "standard_error", cli_json_real(f->error));
    if (isinf(f->beta_star)) /* JSON has no infinity: null, and this key */
        cli_json_put(out, "beta_star_infinite", json_string(f->beta_star < 0 ? "minus" : "plus"));
    return out;
}

static void print_fit(const char *name, const fr_minimal_fit *f) {
    (void)printf("%-14s  %8.4f  %10.4f  %10s  %10s  %9.4f  %9.4f  %9.4f\n", name, f->q1,
                 f->beta_star, cli_count(f->negatives).s, cli_count(f->seen).s, f->intercept,
                 f->beta, f->error);
}

static void print_minimal(const char *name, const fr_window_facts *w, const fr_protocol *protocol,
                          const fr_minimal *m, double penalty, int64_t seed) {
    diagnose_title(name);
    cli_pair("window", "%s events, catalog %s, history order %s", cli_count(w->events).s,
             cli_count(w->catalog_size).s, order_word(protocol));
    cli_pair("eligible events", "%s of %s test events, with 20 or more source-history negatives",
             cli_count(m->eligible).s, cli_count(m->test).s);
    cli_pair("p1", "%.4f  repeated positives (%s)", m->p1, cli_count(m->repeated).s);
    (void)printf("\n");
    char heading[160];
    (void)snprintf(heading, sizeof heading, "%-14s  %8s  %10s  %10s  %10s  %9s  %9s  %9s",
                   "negatives", "q1", "beta*", "drawn", "seen", "b0", "beta", "error");
    diagnose_title(heading);
    print_fit("random", &m->random);
    print_fit("source-history", &m->history);
    char text[512];
    (void)snprintf(text, sizeof text,
                   "beta* = logit(p1) - logit(q1). b0 and beta are learned from the positives and "
                   "20 drawn negatives each (seed %lld) with penalty %g/2 beta^2 on the summed "
                   "loss; error is beta's standard error.",
                   (long long)seed, penalty);
    (void)printf("\n");
    cli_paragraph(text, 0);
    cli_paragraph(unbounded, 0);
}

static int run_minimal(cli_call *call) {
    const minimal_io *io = call->settings[0];
    const fr_protocol *protocol = call->settings[1];
    const fr_minimal_settings *settings = call->settings[2];
    const cli_seed *seed = call->settings[3];
    const fr_import *import = call->settings[4];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_minimal m;
    fr_status status = fr_stream_open(io->data, import, &call->context, &stream, &err);
    if (!status) status = diagnose_window(call, stream, *protocol, "fixed", &window, &err);
    if (!status)
        status = fr_minimal_compute(window, settings, seed->seed, &call->context, &m, &err);
    int code = cli_report(status, &err);
    if (!status) {
        fr_window_facts w = fr_window_get(window);
        const char *name = fr_stream_get(stream).name;
        cli_terminal_clear();
        if (call->common.json)
            code = cli_print_json(json_pack(
                "{s:o, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:s}", "data",
                cli_json_text(name), "window", (json_int_t)w.events, "order", order_word(protocol),
                "test", (json_int_t)m.test, "eligible", (json_int_t)m.eligible, "repeated",
                (json_int_t)m.repeated, "p1", cli_json_real(m.p1), "penalty",
                cli_json_real(settings->penalty), "seed", (json_int_t)seed->seed, "random",
                fit_json(&m.random), "source_history", fit_json(&m.history), "note", unbounded));
        else
            print_minimal(name, &w, protocol, &m, settings->penalty, seed->seed);
    }
    fr_window_close(window);
    fr_stream_close(stream);
    return code;
}

const cli_command cli_diagnose_minimal_command = {
    .name = "diagnose minimal",
    .summary = "What a scorer that knows only pair membership would learn",
    .text = "The minimal scorer is s = b0 + beta M, with M = 1 if source and destination have met "
            "before. It is computed over the test events whose source has met at least 20 other "
            "destinations. p1 is the share of repeated positives, q1 is the share of met "
            "destinations among the negatives, and beta* = logit(p1) - logit(q1) is the best "
            "weight of membership. beta is also learned by logistic regression on the positives "
            "and 20 negatives each: from the catalog (random) and from the source's history.",
    .required = "data",
    .example = "fullrank diagnose minimal --data wikipedia",
    .groups = {{"Input", minimal_io_options, sizeof(minimal_io)},
               {"Protocol", fr_diagnostic_options, sizeof(fr_protocol)},
               {"Fit", fr_minimal_options, sizeof(fr_minimal_settings)},
               CLI_SEED_GROUP,
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_minimal,
};

/* ---- membership ---- */

typedef struct membership_io {
    char *data, *scorer, *train, *output, *exhaustive;
    int64_t k, ranking_window;
    bool force;
} membership_io;

static const fr_option membership_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(membership_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(membership_io, scorer),
     "baseline:NAME[,option=value], oracle, a FILE.safetensors trained with this --window, or "
     "scores:FILE.npy with all destinations of the window"},
    {"train", FR_OPTION_TEXT, "", "MODEL", 0, 0, offsetof(membership_io, train),
     "train this model on the window first, into --output"},
    {"output", FR_OPTION_TEXT, "", "RUN", 0, 0, offsetof(membership_io, output),
     "directory for the model of --train"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(membership_io, force),
     "train again into an existing directory"},
    {"k", FR_OPTION_INT, "20", "K", 1, INT32_MAX, offsetof(membership_io, k),
     "negatives per cell; an event needs this many seen and this many unseen ones"},
    {"ranking-window", FR_OPTION_INT, "32768", "N", 0, INT32_MAX,
     offsetof(membership_io, ranking_window),
     "window of All-seen and All-unseen, for scorers that need no file; 0 = all"},
    {"exhaustive", FR_OPTION_TEXT, "", "RANKS.npy", 0, 0, offsetof(membership_io, exhaustive),
     "take All-seen and All-unseen from these records"},
    {0}};

/* MRR and its two losses: over all events, repeated ones and new ones. */
enum { SPLITS = 3, SPLIT_PARTS = 3 };
static const char *const split_names[SPLITS] = {"all", "repeated", "new"};
static const char *const split_metrics[SPLITS * SPLIT_PARTS] = {
    "mrr",          "loss-within",          "loss-between",
    "mrr-repeated", "loss-within-repeated", "loss-between-repeated",
    "mrr-new",      "loss-within-new",      "loss-between-new"};

/* The records of one window and the results shown for them. */
typedef struct part {
    fr_ranking *ranking; /* NULL = no records */
    fr_metric_value split[SPLITS * SPLIT_PARTS], diagonal[2];
} part;

typedef struct diagnosis {
    part cells, exhaustive; /* time-available catalog, long window; fixed catalog, ranking window */
    fr_membership table;
} diagnosis;

static fr_status measure(part *p, fr_error *err) {
    static const char *const diagonal[] = {"all-seen", "all-unseen"};
    fr_ranking_facts f = fr_ranking_get(p->ranking);
    fr_status status = fr_metrics_compute(f.records, f.count, f.oov, split_metrics,
                                          SPLITS * SPLIT_PARTS, p->split, err);
    if (!status)
        status = fr_metrics_compute(f.records, f.count, f.oov, diagonal, 2, p->diagonal, err);
    return status;
}

fr_status diagnose_rank(const cli_call *call, const fr_window *window, const char *spec,
                        int removal, int64_t met, int64_t seed, fr_ranking **out, fr_error *err) {
    fr_rank_settings settings;
    fr_scorer *scorer = NULL;
    fr_status status = fr_options_defaults(fr_rank_options, &settings, err);
    settings.met = met;
    if (!status) status = fr_scorer_open(spec, window, seed, &call->context, &scorer, err);
    if (!status && removal != FR_REMOVE_NOTHING)
        status = fr_scorer_project(scorer, removal, seed, &call->context, err);
    if (!status && removal == FR_REMOVE_NOTHING)
        cli_plan_rank(window, scorer, spec, 0, &call->context);
    if (!status) status = fr_rank_run(scorer, &settings, &call->context, out, err);
    fr_scorer_close(scorer);
    fr_options_free(fr_rank_options, &settings);
    return status;
}

/* --data with --scorer or --train. */
static fr_status diagnose_scorer(const cli_call *call, diagnosis *d, fr_error *err) {
    const membership_io *io = call->settings[0];
    const fr_protocol *protocol = call->settings[1];
    fr_training *training = call->settings[2];
    const fr_model_settings *model = call->settings[3];
    const fr_import *import = call->settings[4];
    fr_stream *stream = NULL;
    fr_window *window = NULL, *short_window = NULL;
    char trained[4096];
    const char *spec = io->scorer;
    fr_status status = fr_stream_open(io->data, import, &call->context, &stream, err);
    if (!status) status = diagnose_window(call, stream, *protocol, "time", &window, err);
    if (!status && io->train) {
        training->force = io->force;
        (void)snprintf(trained, sizeof trained, "%s/model.safetensors", io->output);
        spec = trained;
        cli_plan_train(window, io->train, training, &call->context);
        status = fr_train_run(window, io->train, model, training, io->output, &call->context, err);
    }
    if (!status)
        status = diagnose_rank(call, window, spec, FR_REMOVE_NOTHING, 0, training->seed,
                               &d->cells.ranking, err);
    if (!status && !io->exhaustive && cli_untrained(spec)) {
        fr_protocol ranking = *protocol;
        ranking.window = io->ranking_window;
        status = diagnose_window(call, stream, ranking, "fixed", &short_window, err);
        if (!status)
            status = diagnose_rank(call, short_window, spec, FR_REMOVE_NOTHING, 0, training->seed,
                                   &d->exhaustive.ranking, err);
    }
    fr_window_close(short_window);
    fr_window_close(window);
    fr_stream_close(stream);
    return status;
}

/* Reads the records of --exhaustive, which must have a fixed catalog. */
static fr_status load_exhaustive(const char *path, part *p, fr_error *err) {
    fr_status status = fr_ranking_load(path, &p->ranking, err);
    if (status || fr_ranking_get(p->ranking).protocol.catalog != FR_CATALOG_TIME) return status;
    (void)snprintf(err->message, sizeof err->message,
                   "%.900s: records with catalog time, expected those of a fixed catalog", path);
    return err->code = FR_EINPUT;
}

/* ---- membership: what is shown ---- */

json_t *diagnose_cells(const fr_membership *table) {
    static const char *const keys[FR_CELLS] = {"repeated_seen", "repeated_unseen", "new_seen",
                                               "new_unseen"};
    json_t *cells = json_object();
    for (int c = 0; c < FR_CELLS; c++) {
        const fr_cell *cell = &table->cell[c];
        cli_json_put(cells, keys[c],
                     json_pack("{s:I, s:o, s:o, s:o}", "events", (json_int_t)cell->events, "mrr",
                               cli_json_real(cell->mrr), "sd", cli_json_real(cell->sd), "drawn",
                               cli_json_real(cell->drawn)));
    }
    return cells;
}

static json_t *split_json(const part *p) {
    json_t *out = json_object();
    for (int s = 0; s < SPLITS; s++) {
        const fr_metric_value *v = &p->split[s * SPLIT_PARTS];
        cli_json_put(out, split_names[s],
                     json_pack("{s:I, s:o, s:o, s:o}", "events", (json_int_t)v[0].events, "mrr",
                               cli_json_real(v[0].value), "within", cli_json_real(v[1].value),
                               "between", cli_json_real(v[2].value)));
    }
    return out;
}

static json_t *diagnosis_json(const diagnosis *d) {
    fr_ranking_facts f = fr_ranking_get(d->cells.ranking);
    json_t *out = json_pack(
        "{s:o, s:o, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o, s:o}", "scorer",
        cli_json_text(f.scorer), "data", cli_json_text(f.data), "protocol", f.protocol_text, "k",
        (json_int_t)d->table.k, "ranked", (json_int_t)d->table.ranked, "unavailable",
        (json_int_t)d->table.unavailable, "eligible", "events", (json_int_t)d->table.eligible,
        "repeated", (json_int_t)d->table.cell[FR_REPEATED_SEEN].events, "new",
        (json_int_t)d->table.cell[FR_NEW_SEEN].events, "cells", diagnose_cells(&d->table), "split",
        split_json(&d->cells));
    if (!d->exhaustive.ranking) return out;
    fr_ranking_facts e = fr_ranking_get(d->exhaustive.ranking);
    cli_json_put(out, "exhaustive",
                 json_pack("{s:o, s:s, s:o, s:o, s:o}", "scorer", cli_json_text(e.scorer),
                           "protocol", e.protocol_text, "all_seen",
                           cli_json_real(d->exhaustive.diagonal[0].value), "all_unseen",
                           cli_json_real(d->exhaustive.diagonal[1].value), "split",
                           split_json(&d->exhaustive)));
    return out;
}

enum { CELL = 17 };

static void print_number(double value, double sd) {
    char text[48];
    (void)snprintf(text, sizeof text, isnan(sd) ? "%.4f" : "%.4f ± %.4f", value, sd);
    (void)printf("  %*s", isnan(value) || isnan(sd) ? CELL : CELL + 1, isnan(value) ? "-" : text);
}

static void print_cells(const fr_membership *t) {
    char heading[96];
    (void)snprintf(heading, sizeof heading, "Expected MRR against %s negatives", cli_count(t->k).s);
    (void)printf("\n");
    diagnose_title(heading);
    (void)printf("%-10s  %8s  %*s  %*s\n", "positives", "events", CELL, "seen", CELL, "unseen");
    for (int row = 0; row < 2; row++) {
        const fr_cell *cell = &t->cell[2 * row];
        (void)printf("%-10s  %8s", split_names[1 + row], cli_count(cell->events).s);
        for (int c = 0; c < 2; c++) print_number(cell[c].mrr, cell[c].sd);
        (void)printf("\n%-10s  %8s", "  drawn", "");
        for (int c = 0; c < 2; c++) print_number(cell[c].drawn, NAN);
        (void)printf("\n");
    }
}

static void print_split(const part *p) {
    (void)printf("%-10s  %8s  %8s  %12s  %12s\n", "positives", "events", "MRR", "lost within",
                 "lost between");
    for (int s = 0; s < SPLITS; s++) {
        const fr_metric_value *v = &p->split[s * SPLIT_PARTS];
        (void)printf("%-10s  %8s  %8.4f  %12.4f  %12.4f\n", split_names[s],
                     cli_count(v[0].events).s, v[0].value, v[1].value, v[2].value);
    }
}

void diagnose_heading(const char *what, const fr_ranking *ranking) {
    static const char *const names[] = {"window", "catalog", "order"};
    fr_protocol_facts protocol = fr_ranking_get(ranking).protocol;
    char value[3][32], line[160];
    for (int i = 0; i < 3; i++)
        fr_options_text(fr_options_find(fr_protocol_fields, names[i]), &protocol, value[i],
                        sizeof value[i]);
    (void)snprintf(line, sizeof line, "%s (window %s, catalog %s, history order %s)", what,
                   value[0], value[1], value[2]);
    diagnose_title(line);
}

static void print_diagnosis(const diagnosis *d) {
    fr_ranking_facts f = fr_ranking_get(d->cells.ranking);
    const fr_membership *t = &d->table;
    char what[FR_NAME_MAX + 256];
    (void)snprintf(what, sizeof what, "%s on %s", f.scorer, f.data);
    diagnose_heading(what, d->cells.ranking);
    cli_pair("eligible events", "%s of %s ranked, with %s seen and %s unseen negatives",
             cli_count(t->eligible).s, cli_count(t->ranked).s, cli_count(t->k).s,
             cli_count(t->k).s);
    if (t->unavailable)
        cli_pair("not ranked", "%s, whose destination has not occurred before",
                 cli_count(t->unavailable).s);
    print_cells(t);
    (void)printf("\n");
    diagnose_heading("MRR among all destinations that occurred before, and where the rest is lost",
                     d->cells.ranking);
    print_split(&d->cells);
    if (!d->exhaustive.ranking) return;
    const part *e = &d->exhaustive;
    (void)printf("\n");
    diagnose_heading("Exhaustive, no sampling: not the cells above", e->ranking);
    cli_pair("All-seen", "%.4f  repeated positives among all seen (%s)", e->diagonal[0].value,
             cli_count(e->diagonal[0].events).s);
    cli_pair("All-unseen", "%.4f  new positives among all unseen (%s)", e->diagonal[1].value,
             cli_count(e->diagonal[1].events).s);
    print_split(e);
}

static int show(const cli_call *call, const diagnosis *all, int count) {
    cli_terminal_clear();
    if (call->common.json) { /* one: its object; several: an array of them */
        json_t *list = json_array();
        for (int i = 0; i < count; i++) cli_json_push(list, diagnosis_json(&all[i]));
        int code = cli_print_json(json_incref(count == 1 ? json_array_get(list, 0) : list));
        json_decref(list);
        return code;
    }
    for (int i = 0; i < count; i++) {
        if (i) (void)printf("\n");
        print_diagnosis(&all[i]);
    }
    (void)printf("\n± is the standard deviation that drawing negatives would add; drawn is one "
                 "such draw.\nLost within: to candidates of the positive's own group, seen or "
                 "unseen; between: to the other group.\n");
    return CLI_OK;
}

/* Checks that the arguments say what to diagnose. */
static int check_membership(const cli_call *call) {
    const membership_io *io = call->settings[0];
    if (call->arguments) {
        if (!io->data && !io->scorer && !io->train) return CLI_OK;
        return cli_usage("RANKS.npy and options data, scorer or train, expected one or the other");
    }
    if (!io->data) return cli_usage("expected RANKS.npy, or option data with scorer or train");
    if (!io->scorer == !io->train)
        return cli_usage("%s, expected one of the options scorer and train",
                         io->scorer ? "found both" : "found none");
    if (io->train && !io->output) return cli_usage("option train needs option output");
    return CLI_OK;
}

static int run_membership(cli_call *call) {
    const membership_io *io = call->settings[0];
    const fr_training *training = call->settings[2];
    int code = check_membership(call);
    if (code) return code;
    int count = call->arguments ? call->arguments : 1;
    if (io->exhaustive && count > 1)
        return cli_usage("option exhaustive with %d files, expected one", count);
    diagnosis *all = calloc((size_t)count, sizeof *all);
    if (!all) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    fr_error err = {0};
    fr_status status = FR_OK;
    for (int i = 0; !status && i < count; i++) {
        diagnosis *d = &all[i];
        if (io->exhaustive) status = load_exhaustive(io->exhaustive, &d->exhaustive, &err);
        if (!status)
            status = call->arguments ? fr_ranking_load(call->argument[i], &d->cells.ranking, &err)
                                     : diagnose_scorer(call, d, &err);
        if (!status)
            status = fr_membership_compute(d->cells.ranking, io->k, training->seed, &call->context,
                                           &d->table, &err);
        if (!status) status = measure(&d->cells, &err);
        if (!status && d->exhaustive.ranking) status = measure(&d->exhaustive, &err);
    }
    code = status ? cli_report(status, &err) : show(call, all, count);
    for (int i = 0; i < count; i++) {
        fr_ranking_close(all[i].cells.ranking);
        fr_ranking_close(all[i].exhaustive.ranking);
    }
    free(all);
    return code;
}

const cli_command cli_diagnose_membership_command = {
    .name = "diagnose membership",
    .summary = "Repeated and new positives against seen and unseen negatives",
    .text =
        "The table has four cells: repeated positives (their pair has met before) and new ones, "
        "each against K negatives that the source has met (seen) or not (unseen). Repeated-seen is "
        "recurrent-link ranking, and new-unseen is novel-link ranking. The other two cells only "
        "test whether a scorer puts one group above the other. The values are exact expectations, "
        "with one draw as a check. Candidates are all destinations that occurred before the "
        "event.\n"
        "The output also has the full MRR and its two losses, within the groups and between them, "
        "and All-seen and All-unseen of the ranking window, which draw no negatives.\n"
        "RANKS.npy are records made by `rank --window 131072 --catalog time`. Without them, --data "
        "and --scorer or --train say what to rank. --seed is used for the scorer and the draws.",
    .arguments = "[RANKS.npy...]",
    .example = "fullrank diagnose membership --data wikipedia --scorer baseline:recency",
    .groups = {{"Input", membership_io_options, sizeof(membership_io)},
               {"Protocol", fr_diagnostic_options, sizeof(fr_protocol)},
               {"Training", fr_training_options, sizeof(fr_training)},
               {"Model", fr_model_options, sizeof(fr_model_settings)},
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_membership,
};
