/* cmd_demo.c - a small study from end to end: built-in data, models, diagnostics, report.
 *
 * The demo is the preset `demo`, run like any study, so it has the properties of studies: after an
 * interruption it continues, and a finished demo is only shown. Read this file first to see how
 * the library runs a whole study, then cmd_train.c, cmd_rank.c and cmd_metrics.c for the steps.
 */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct demo_settings {
    char *output;
    int64_t events;
} demo_settings;

static const fr_option demo_options[] = {
    {"output", FR_OPTION_TEXT, "fullrank-demo", "DIR", 0, 0, offsetof(demo_settings, output),
     "directory for all results"},
    {"events", FR_OPTION_INT, "0", "N", 0, 1e6, offsetof(demo_settings, events),
     "length of the stream, 0 = the preset's; with few events the diagnostics are empty"},
    {0}};

/* True if the directory is empty, except for a ledger that was only begun. */
static bool is_empty(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return false;
    bool empty = true;
    for (const struct dirent *entry; (entry = readdir(folder));)
        empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
                 !strncmp(entry->d_name, "study.", 6);
    (void)closedir(folder);
    return empty;
}

static bool is_demo(const char *path) {
    fr_study_state state;
    if (fr_study_status(path, &state, NULL)) return is_empty(path);
    bool demo = !strcmp(state.name, "demo");
    fr_study_status_free(&state);
    return demo;
}

/* Makes the directory. An existing one must be empty or belong to an earlier demo. */
static int make_directory(const char *path) {
    if (!mkdir(path, 0777)) return CLI_OK;
    if (errno != EEXIST)
        cli_error("%s: directory cannot be made: %s", path, strerror(errno));
    else if (is_demo(path))
        return CLI_OK;
    else
        cli_error("%s: exists and is not from an earlier demo; choose another place with -o", path);
    return CLI_FAILED;
}

/* The preset with this many events, as text that the caller frees; NULL = out of memory. */
static char *make_document(int64_t events) {
    json_t *root = json_loads(fr_study_preset_find("demo"), 0, NULL);
    const char *name;
    json_t *set;
    json_object_foreach(json_object_get(root, "data"), name, set) {
        if (events) cli_json_put(set, "events", json_integer((json_int_t)events));
    }
    char *text = root && cli_json_whole() ? json_dumps(root, 0) : NULL;
    json_decref(root);
    return text;
}

static int run_demo(cli_call *call) {
    const demo_settings *settings = call->settings[0];
    fr_study *study = NULL;
    fr_error err = {0};
    if (make_directory(settings->output)) return CLI_FAILED;
    char *document = make_document(settings->events);
    if (!document) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    fr_status status = fr_study_open(document, NULL, settings->output, &study, &err);
    free(document);
    if (!status) status = fr_study_run(study, &call->context, &err);
    fr_study_close(study);
    if (!status) status = fr_study_report(settings->output, &call->context, &err);
    cli_terminal_clear();
    if (status) return cli_report(status, &err);
    if (call->common.json)
        return cli_print_json(json_pack("{s:o}", "output", cli_json_text(settings->output)));
    (void)printf("The oracle knows the distribution of the events: in expectation no scorer can "
                 "do better\nover the full catalog.\n\n");
    cli_study_show(settings->output);
    return CLI_OK;
}

const cli_command cli_demo_command = {
    .name = "demo",
    .summary = "Run a small study on built-in data, end to end",
    .text = "Draws a synthetic stream whose true distribution is known. Ranks every destination "
            "for every test event with the oracle, with baselines, and with CRAFT, CRAFT-R, "
            "GraphMixer and TGN, each trained with two seeds. Runs the diagnostics, writes tables, "
            "figures and report.html, and prints the main table. After an interruption, the same "
            "command continues.",
    .example = "fullrank demo -o demo",
    .groups = {{"Demo", demo_options, sizeof(demo_settings)}},
    .run = run_demo,
};
