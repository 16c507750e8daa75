/* cmd_rank.c - rank: one score vector per event, records out; baselines: scorers without
 * training. */
#include "board.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct rank_io {
    char *data, *scorer, *output, *list;
    bool interval, force;
} rank_io;

/* Indices of option groups. */
enum { PROTOCOL = 1, RECORDS, SEED, READING, INTERVALS, OUTPUT };

static const fr_option rank_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(rank_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(rank_io, scorer),
     "baseline:NAME[,option=value], plugin:FILE.so[,option=value], scores:FILE.npy "
     "(scores:part-*.npy: several files, scores:-: standard input), factors:U.npy,V.npy[,BIAS.npy] "
     "(U V^T + bias), counts:FILE.npy, oracle or a trained FILE.safetensors"},
    {"output", FR_OPTION_TEXT, "", "RANKS.npy", 0, 0, offsetof(rank_io, output),
     "file for the records; RANKS.json is written next to it"},
    {"list", FR_OPTION_TEXT, "", "LIST.npy", 0, 0, offsetof(rank_io, list),
     "rank nothing, but write what must be scored: events, sources and times, and the candidates "
     "to LIST.destinations.npy"},
    {"interval", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(rank_io, interval), BOARD_INTERVAL_HELP},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(rank_io, force), "replace existing files"},
    {0}};

/* --list */
static int list(cli_call *call, const fr_window *window) {
    const rank_io *io = call->settings[0];
    fr_error err = {0};
    fr_list made;
    if (io->scorer || io->output)
        return cli_usage("options list and %s, expected one or the other",
                         io->scorer ? "scorer" : "output");
    fr_status status =
        fr_window_list(window, call->settings[RECORDS], io->list, io->force, &made, &err);
    if (status) return cli_report(status, &err);
    cli_terminal_clear();
    if (call->common.json)
        return cli_print_json(json_pack("{s:o, s:I, s:I}", "output", cli_json_text(io->list),
                                        "events", (json_int_t)made.events, "destinations",
                                        (json_int_t)made.destinations));
    (void)printf("%s: %s events, %s candidates each\n", cli_visible(io->list),
                 cli_count(made.events).s, cli_count(made.destinations).s);
    return CLI_OK;
}

static json_t *report_json(const char *path, const fr_ranking_facts *f, const board_row *row,
                           board_resampling how) {
    static const char *const shown[BOARD_NUMBERS] = {"mrr", "hits10", "expected20", "all_seen",
                                                     "all_unseen"};
    const double value[BOARD_NUMBERS] = {row->mrr, row->hits, row->expected, row->all_seen,
                                         row->all_unseen};
    json_t *out = json_pack("{s:o, s:o, s:o}", "output", cli_json_text(path), "scorer",
                            cli_json_text(f->scorer), "protocol", cli_json_text(f->protocol_text));
    for (int i = 0; i < BOARD_NUMBERS; i++) cli_json_put(out, shown[i], cli_json_real(value[i]));
    cli_json_put(out, "coverage", cli_json_real(row->coverage));
    cli_json_put(out, "ranked", json_integer((json_int_t)row->ranked));
    cli_json_put(out, "ties", json_integer((json_int_t)row->ties));
    cli_json_put(out, "seconds", cli_json_real(f->seconds));
    cli_json_put(out, "scores_per_second", cli_json_real(f->scores_per_second));
    if (f->epochs_asked) {
        cli_json_put(out, "epochs_done", json_integer((json_int_t)f->epochs_done));
        cli_json_put(out, "epochs_asked", json_integer((json_int_t)f->epochs_asked));
        if (f->selected) cli_json_put(out, "selected", json_integer((json_int_t)f->selected));
    }
    if (board_is_sample(f)) cli_json_put(out, "estimate", board_estimate_json(f));
    if (row->resampled) {
        json_t *intervals = board_resampling_json(how, f);
        for (int i = 0; i < BOARD_NUMBERS; i++)
            cli_json_put(intervals, shown[i], board_interval_json(row->interval[i]));
        cli_json_put(out, "intervals", intervals);
    }
    return out;
}

/* Prints the main numbers of the new ranking; `fullrank metrics` has the others. */
static int report(cli_call *call, const char *path, const fr_ranking *ranking, int format) {
    const rank_io *io = call->settings[0];
    const cli_seed *seed = call->settings[SEED];
    board_resampling how = {call->settings[INTERVALS], seed->seed, io->interval};
    board_row row;
    fr_error err = {0};
    fr_ranking_facts f = fr_ranking_get(ranking);
    fr_status status =
        board_fill(&row, f.scorer, ranking, board_standard, how, &call->context, &err);
    if (status) return cli_report(status, &err);
    cli_terminal_clear();
    if (format == CLI_FORMAT_JSON) return cli_print_json(report_json(path, &f, &row, how));
    if (format == FR_FORMAT_CSV)
        return cli_print_csv(json_pack("[o]", report_json(path, &f, &row, how)));
    if (format != FR_FORMAT_TEXT)
        return board_print_as(&row, 1, board_standard, how, f.protocol_text, format);
    board_print(&row, 1, board_standard);
    char text[BOARD_TEXT];
    board_resampling_text(how, row.sampled, text, sizeof text);
    if (*text) (void)printf("\n%s\n", text);
    if (f.selected)
        (void)printf("\nEpoch %s, selected on the validation part\n", cli_count(f.selected).s);
    else if (f.epochs_done < f.epochs_asked)
        (void)printf("\nTrained for %s of %s epochs\n", cli_count(f.epochs_done).s,
                     cli_count(f.epochs_asked).s);
    if (f.verified)
        (void)printf("\nVerified %s events through the plain forward pass: scores within %.1e, %s "
                     "ranks differ\n",
                     cli_count(f.verified).s, f.verified_error, cli_count(f.verified_ranks).s);
    return CLI_OK;
}

/* True if both names mean the same file of the same directory. */
static bool same_place(const char *a, const char *b) {
    const char *const path[] = {a, b};
    const char *name[2];
    struct stat facts[2];
    for (int k = 0; k < 2; k++) {
        const char *slash = strrchr(path[k], '/');
        char folder[4096];
        int length = slash ? (int)(slash - path[k]) + 1 : 0;
        (void)snprintf(folder, sizeof folder, "%.*s.", length, path[k]);
        name[k] = path[k] + length;
        if (stat(folder, &facts[k])) return false;
    }
    return !strcmp(name[0], name[1]) && facts[0].st_dev == facts[1].st_dev &&
           facts[0].st_ino == facts[1].st_ino;
}

/* An option that counts, which have no scores and are those of all events, cannot use; or NULL. */
static const char *no_use_of_counts(const fr_rank_settings *s) {
    return s->met                     ? "met"
           : s->popularity_power != 1 ? "popularity-power"
           : s->verify                ? "verify"
           : s->dump_scores           ? "dump-scores"
                                      : NULL;
}

static fr_status rank(cli_call *call, const fr_window *window, char *top, fr_ranking **out,
                      fr_error *err) {
    const rank_io *io = call->settings[0];
    fr_rank_settings own = *(const fr_rank_settings *)call->settings[RECORDS], *settings = &own;
    const cli_seed *seed = call->settings[SEED];
    fr_scorer *scorer = NULL;
    settings->force = io->force;
    settings->top_output = top;
    if (!strncmp(io->scorer, "counts:", 7)) {
        if (settings->sample_events)
            return fr_fail(err, FR_EUSAGE,
                           "options sample-events and scorer %s, expected one or the other: counts "
                           "are made from all events",
                           io->scorer);
        if (settings->negatives)
            return fr_fail(err, FR_EUSAGE,
                           "options negatives and scorer %s, expected one or the other: counts are "
                           "already made from some negatives",
                           io->scorer);
        if (no_use_of_counts(settings))
            return fr_fail(err, FR_EUSAGE,
                           "options %s and scorer %s, expected one or the other: counts have no "
                           "scores, and are those of all events",
                           no_use_of_counts(settings), io->scorer);
        fr_scorer_definition about = {.size = sizeof about, .name = io->scorer, .seed = seed->seed};
        if (!cli_first()) return FR_OK; /* nothing to share */
        fr_status made = fr_rank_counts_file(window, &about, io->scorer + 7, out, err);
        return made ? made : fr_ranking_save(*out, io->output, io->force, err);
    }
    fr_status status = fr_scorer_open(io->scorer, window, seed->seed, &call->context, &scorer, err);
    status = fr_processes_agree(&call->context, status, err);
    if (!status) cli_plan_rank(window, scorer, io->scorer, settings->sample_events, &call->context);
    if (!status) status = fr_rank_run(scorer, settings, &call->context, out, err);
    if (!status && cli_first()) status = fr_ranking_save(*out, io->output, io->force, err);
    fr_scorer_close(scorer);
    return status;
}

/* The file of the best candidates, by default RANKS.top.csv; the caller frees *out. Prints an error
 * and returns an exit code if something is wrong. */
static int name_top(const rank_io *io, const fr_rank_settings *settings, char **out) {
    size_t n = io->output ? strlen(io->output) : 0;
    struct stat facts;
    *out = NULL;
    if (!settings->top && settings->top_output)
        return cli_usage("option top-output without --top K: how many candidates?");
    if (!settings->top || io->list) return CLI_OK;
    if (!strncmp(io->scorer, "counts:", 7))
        return cli_usage("option top: counts have no candidates to show, expected another scorer");
    *out = settings->top_output ? strdup(settings->top_output) : malloc(n + 9);
    if (!*out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (!settings->top_output) {
        if (n > 4 && !strcmp(io->output + n - 4, ".npy")) n -= 4;
        (void)snprintf(*out, n + 9, "%.*s.top.csv", (int)n, io->output);
    }
    if (io->force || lstat(*out, &facts)) return CLI_OK;
    cli_error("%s: exists; --force replaces it", *out);
    return CLI_FAILED;
}

/* Checks, before the work, that the results can be written. */
static fr_status check_outputs(const rank_io *io, const fr_rank_settings *settings, fr_error *err) {
    if (io->list || !cli_first()) return FR_OK;
    fr_status status = fr_ranking_check(io->output, io->force, err);
    if (!status && settings->dump_scores)
        status = fr_ranking_check(settings->dump_scores, io->force, err);
    return status;
}

static int run_rank(cli_call *call) {
    const rank_io *io = call->settings[0];
    const fr_rank_settings *settings = call->settings[RECORDS];
    int format, usage = cli_format_take(call, call->settings[OUTPUT], &format);
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_ranking *ranking = NULL;
    char *top = NULL;
    if (usage) return usage;
    if (!io->list && settings->dump_scores && same_place(io->output, settings->dump_scores))
        return cli_usage("options output and dump-scores are the same file, %s", io->output);
    if ((usage = name_top(io, settings, &top))) {
        free(top);
        return usage;
    }
    fr_status status = check_outputs(io, settings, &err);
    if (!status)
        status = fr_stream_open(io->data, call->settings[READING], &call->context, &stream, &err);
    if (!status)
        status = fr_window_open(stream, call->settings[PROTOCOL], &call->context, &window, &err);
    status = fr_processes_agree(&call->context, status, &err);
    if (!status && !io->list) {
        status = rank(call, window, top, &ranking, &err);
        status = fr_processes_agree(&call->context, status, &err);
    }
    int code = status         ? cli_report(status, &err)
               : !cli_first() ? CLI_OK
               : io->list     ? list(call, window)
                              : report(call, io->output, ranking, format);
    free(top);
    fr_ranking_close(ranking);
    fr_window_close(window);
    fr_stream_close(stream);
    return code;
}

const cli_command cli_rank_command = {
    .name = "rank",
    .summary = "Rank every destination for every test event",
    .text =
        "Scores the whole catalog once per test event and writes one record per event. The record "
        "counts the candidates that score above and equal to the true destination: in the catalog, "
        "among the destinations that the source has met, and among those that have occurred so "
        "far. `fullrank metrics` computes every metric from the records without scoring again. "
        "--top K also writes RANKS.top.csv with the K best candidates of every event. "
        "--sample-events N ranks a random sample of N test events if all would take too long; the "
        "numbers are then estimates with confidence intervals. If mpirun starts several processes, "
        "they share the events, or the candidates of each event (docs/cluster.md).",
    .required = "data scorer|list output|list",
    .example = "fullrank rank --data wikipedia --scorer baseline:recency -o recency.npy",
    .groups = {{"Ranking", rank_io_options, sizeof(rank_io)},
               {"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               {"Records and scores", fr_rank_options, sizeof(fr_rank_settings)},
               CLI_SEED_GROUP,
               {"Reading tables", fr_import_options, sizeof(fr_import)},
               {"Intervals", fr_interval_options, sizeof(fr_interval_settings)},
               CLI_FORMAT_GROUP},
    .run = run_rank,
    .shared = true,
};

/* ---- baselines and plug-ins ---- */

static json_t *kind_json(const fr_scorer_kind *kind) {
    json_t *options = json_object();
    for (const fr_option *o = kind->options; o && o->key; o++)
        cli_json_put(options, o->key, json_string(o->standard));
    return json_pack("{s:o, s:o, s:o, s:o}", "name", cli_json_text(kind->name), "summary",
                     cli_json_text(kind->summary), "definition", cli_json_text(kind->text),
                     "options", options);
}

static void print_kind(const fr_scorer_kind *kind) {
    (void)printf("%s%s%s: %s\n", cli_style(stdout, CLI_BOLD), cli_visible(kind->name),
                 cli_style(stdout, CLI_PLAIN), cli_visible(kind->summary));
    cli_paragraph(cli_visible(kind->text), 2);
    for (const fr_option *o = kind->options; o && o->key; o++) {
        char line[512], facts[128];
        cli_option_facts(o, facts, sizeof facts);
        (void)snprintf(line, sizeof line, "%s=%s: %s (%s)", o->key, cli_value_word(o), o->help,
                       facts);
        cli_paragraph(cli_visible(line), 4);
    }
}

static const fr_scorer_kind *find_baseline(const char *name) {
    const fr_scorer_kind *kind;
    for (int i = 0; (kind = fr_baseline_at(i)); i++)
        if (!strcmp(kind->name, name)) return kind;
    cli_usage("unknown baseline %s (`fullrank baselines` lists them)", name);
    return NULL;
}

static int run_baselines(cli_call *call) {
    json_t *list = call->common.json ? json_array() : NULL;
    const fr_scorer_kind *kind;
    int count = call->arguments;
    for (int i = 0; i < count; i++)
        if (!find_baseline(call->argument[i])) return CLI_USAGE;
    while (!call->arguments && fr_baseline_at(count)) count++;
    for (int i = 0; i < count; i++) {
        kind = call->arguments ? find_baseline(call->argument[i]) : fr_baseline_at(i);
        if (list)
            cli_json_push(list, kind_json(kind));
        else
            (void)printf("%s", i ? "\n" : ""), print_kind(kind);
    }
    return list ? cli_print_json(list) : CLI_OK;
}

const cli_command cli_baselines_command = {
    .name = "baselines",
    .summary = "List the scorers that need no training",
    .text = "Prints each with its definition and options, for --scorer "
            "baseline:NAME,option=value.",
    .arguments = "[NAME...]",
    .example = "fullrank baselines",
    .run = run_baselines,
};

static int run_plugin(cli_call *call) {
    fr_error err = {0};
    const fr_scorer_kind *kind;
    fr_status status = fr_plugin_load(call->argument[0], &kind, &err);
    if (status) return cli_report(status, &err);
    if (call->common.json) return cli_print_json(kind_json(kind));
    print_kind(kind);
    return CLI_OK;
}

const cli_command cli_plugin_command = {
    .name = "plugin",
    .summary = "Show what a plug-in is and which options it has",
    .text = "A plug-in is a shared object that contains a scorer, for --scorer "
            "plugin:FILE.so,option=value. docs/library.md explains how to write one.",
    .arguments = "FILE.so",
    .example = "fullrank plugin ./libedgebank.so",
    .run = run_plugin,
};
