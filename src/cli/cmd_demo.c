/* cmd_demo.c - the whole flow on built-in data: stream, window, scorers, ranks, table. Read this
 * first to see how the library is used. */
#include "board.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct demo_settings {
    char *output;
    char *preset;
} demo_settings;

static const fr_option demo_options[] = {
    {"output", FR_OPTION_TEXT, "fullrank-demo", "DIR", 0, 0, offsetof(demo_settings, output),
     "where everything goes"},
    {"preset", FR_OPTION_TEXT, "wikipedia", "tiny|wikipedia|reddit|mooc|lastfm", 0, 0,
     offsetof(demo_settings, preset), "what the synthetic stream imitates"},
    {0}};

enum { MOST_ROWS = 32 };

typedef struct demo {
    const demo_settings *settings;
    const fr_context *context;
    fr_stream *stream;
    fr_window *window, *diagnostic;
    board_row rows[MOST_ROWS];
    int count;
} demo;

/* 1. A stream whose truth is known, written as an import would be, and opened again. */
static fr_status make_stream(demo *d, fr_error *err) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/stream", d->settings->output);
    fr_synth synth = {.preset = d->settings->preset, .seed = 1, .force = true};
    fr_status status = fr_synth_make(&synth, path, d->context, err);
    return status ? status : fr_stream_open(path, NULL, d->context, &d->stream, err);
}

/* 2. What the protocol sees of it: window, split, catalog, histories; and the facts. */
static fr_status open_window(demo *d, fr_error *err) {
    fr_protocol protocol;
    fr_facts facts;
    fr_status status = fr_options_defaults(fr_protocol_options, &protocol, err);
    if (!status) status = fr_window_open(d->stream, &protocol, d->context, &d->window, err);
    protocol.window = 131072;
    fr_context silent = *d->context;
    silent.log = NULL;
    if (!status) status = fr_window_open(d->stream, &protocol, &silent, &d->diagnostic, err);
    fr_options_free(fr_protocol_options, &protocol);
    if (!status) status = fr_facts_compute(d->window, d->diagnostic, d->context, &facts, err);
    if (status) return status;
    cli_terminal_clear();
    fr_stream_facts s = fr_stream_get(d->stream);
    fr_window_facts w = fr_window_get(d->window);
    (void)printf("%s%s%s: %s events of %s sources and %s destinations\n",
                 cli_style(stdout, CLI_BOLD), s.name, cli_style(stdout, CLI_PLAIN),
                 cli_count(s.events).s, cli_count(s.sources).s, cli_count(s.destinations).s);
    cli_pair("window", "the last %s events = %s train + %s test", cli_count(w.events).s,
             cli_count(w.train).s, cli_count(w.test).s);
    cli_pair("catalog", "%s destinations, sha256 %.12s", cli_count(w.catalog_size).s,
             w.catalog_sha256);
    cli_pair("coverage", "%s test events (%s)", cli_count(facts.covered).s,
             cli_share((double)facts.covered, (double)w.test).s);
    cli_pair("positives", "%s repeated, %s new", cli_count(facts.repeated).s,
             cli_count(facts.new_).s);
    if (facts.eligible)
        cli_pair("beta*", "%.3f, the weight of pair membership alone", facts.beta_star);
    (void)printf("\n");
    return FR_OK;
}

/* 3. One scorer over the whole catalog: records to a file, a row for the table. */
static fr_status rank_scorer(demo *d, const char *spec, const char *name, fr_error *err) {
    fr_scorer scorer;
    fr_ranking *ranking = NULL;
    fr_rank_settings settings;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.npy", d->settings->output, name);
    fr_status status = fr_options_defaults(fr_rank_options, &settings, err);
    if (status) return status;
    status = fr_scorer_open(spec, d->window, 1, d->context, &scorer, err);
    if (!status) status = fr_rank_run(d->window, &scorer, &settings, d->context, &ranking, err);
    if (!status) status = fr_ranking_save(ranking, path, true, err);
    if (!status)
        status = board_fill(&d->rows[d->count++], name, ranking, board_standard, d->context, err);
    fr_ranking_close(ranking);
    fr_scorer_close(&scorer);
    fr_options_free(fr_rank_options, &settings);
    return status;
}

/* 4. A model trained on the prefix, then ranked like any other scorer. */
static fr_status train_model(demo *d, const char *name, fr_error *err) {
    fr_model_settings settings;
    fr_training training;
    char run[4096], spec[4200];
    (void)snprintf(run, sizeof run, "%s/%s", d->settings->output, name);
    (void)snprintf(spec, sizeof spec, "%s/model.safetensors", run);
    fr_status status = fr_options_defaults(fr_model_options, &settings, err);
    if (!status) status = fr_options_defaults(fr_training_options, &training, err);
    training.force = true;
    if (!status) status = fr_train_run(d->window, name, &settings, &training, run, d->context, err);
    if (!status) status = rank_scorer(d, spec, name, err);
    return status;
}

static fr_status run_all(demo *d, fr_error *err) {
    fr_status status = make_stream(d, err);
    if (!status) status = open_window(d, err);
    if (!status) status = rank_scorer(d, "oracle", "oracle", err);
    const fr_baseline *b;
    for (int i = 0; !status && i < MOST_ROWS - 3 && (b = fr_baseline_at(i)); i++) {
        char spec[128];
        (void)snprintf(spec, sizeof spec, "baseline:%s", b->name);
        status = rank_scorer(d, spec, b->name, err);
    }
    if (!status) status = train_model(d, "craft", err);
    if (!status) status = train_model(d, "craft-r", err);
    return status;
}

/* Has a demo been here before? Its stream tells. */
static bool is_demo(const char *path) {
    char manifest[4096];
    (void)snprintf(manifest, sizeof manifest, "%s/stream/manifest.json", path);
    json_t *root = json_load_file(manifest, 0, NULL);
    bool synthetic = json_is_object(json_object_get(root, "synth"));
    json_decref(root);
    return synthetic;
}

static bool is_empty(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return false;
    int entries = 0;
    while (readdir(folder)) entries++;
    (void)closedir(folder);
    return entries <= 2; /* "." and ".." */
}

/* Makes the directory; one that exists must be empty or of an earlier demo. */
static int make_directory(const char *path) {
    if (!mkdir(path, 0777)) return CLI_OK;
    if (errno != EEXIST)
        cli_error("%s: directory cannot be made: %s", path, strerror(errno));
    else if (is_empty(path) || is_demo(path))
        return CLI_OK;
    else
        cli_error("%s: exists and is not of an earlier demo; name another place with -o", path);
    return CLI_FAILED;
}

static int run_demo(cli_call *call) {
    demo d = {.settings = call->settings[0], .context = &call->context};
    fr_error err = {0};
    if (make_directory(d.settings->output)) return CLI_FAILED;
    fr_status status = run_all(&d, &err);
    int code = cli_report(status, &err);
    if (!status) {
        cli_terminal_clear();
        board_print(d.rows, d.count, board_standard);
        (void)printf(
            "\nThe oracle knows the distribution the events were drawn from: no scorer can do "
            "better in\nexpectation. Stream and rank records are in %s; for more of them:\n"
            "  %s metrics %s/recency.npy --sampler tgb-mix-100,popularity-100\n",
            d.settings->output, call->program, d.settings->output);
    }
    fr_window_close(d.window);
    fr_window_close(d.diagnostic);
    fr_stream_close(d.stream);
    return code;
}

const cli_command cli_demo_command = {
    .name = "demo",
    .summary = "Run the whole flow on built-in data",
    .text =
        "Draws a synthetic stream whose truth is known, cuts window and split, ranks every "
        "destination for every test event with the oracle, all baselines, and CRAFT and CRAFT-R, "
        "which it trains first, and prints the table.",
    .example = "fullrank demo -o demo",
    .groups = {{"Demo", demo_options, sizeof(demo_settings)}},
    .run = run_demo,
};
