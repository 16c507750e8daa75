/* cmd_study.c - study run, status, report, preset: all runs of a study, recorded in a ledger. */
#include "cli.h"

#include <math.h>
#include <string.h>

#define PRESETS "paper, architectures, quick, selected or demo"

typedef struct study_io {
    char *output, *preset, *data;
    bool report, redo;
} study_io;

static const fr_option study_io_options[] = {
    {"output", FR_OPTION_TEXT, "", "DIR", 0, 0, offsetof(study_io, output),
     "the study's directory: study.db, runs, tables, figures and report.html"},
    {"preset", FR_OPTION_TEXT, "", "NAME", 0, 0, offsetof(study_io, preset),
     "a built-in study instead of a file: " PRESETS},
    {"data-dir", FR_OPTION_TEXT, "", "DIR", 0, 0, offsetof(study_io, data),
     "directory of the data sets (default: that of the file; for a preset the current one)"},
    {"report", FR_OPTION_FLAG, "yes", "", 0, 0, offsetof(study_io, report),
     "write tables, figures and report.html at the end"},
    {"redo-other-versions", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(study_io, redo),
     "repeat what another version or commit of the tool did"},
    {0}};

void cli_show_table(const char *directory) {
    char path[4096], line[4096];
    (void)snprintf(path, sizeof path, "%s/tables/main.txt", directory);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        (void)puts(cli_visible(line));
    }
    if (file) (void)fclose(file);
    (void)printf("\n");
}

void cli_study_show(const char *directory) {
    cli_show_table(directory);
    (void)printf("%s/report.html\n", cli_visible(directory));
}

static int run_study(cli_call *call) {
    const study_io *io = call->settings[0];
    fr_error err = {0}, failed = {0};
    fr_study *study = NULL;
    if (!io->preset == !call->arguments)
        return cli_usage("study run: expected a file that describes the study, or --preset NAME");
    if (io->preset && !fr_study_preset_find(io->preset))
        return cli_usage("unknown preset %s, expected " PRESETS, io->preset);
    const char *document = io->preset ? io->preset : call->argument[0];
    const char *directory = cli_first() ? io->output : NULL; /* one process has the ledger */
    int64_t count;
    fr_status status = fr_study_open(document, io->data, directory, &study, &err);
    if (!status && io->redo && directory) status = fr_study_redo(study, &count, &err);
    status = fr_processes_agree(&call->context, status, &err);
    if (status) {
        fr_study_close(study);
        return cli_report(status, &err);
    }
    status = fr_study_run(study, &call->context, &failed);
    fr_study_close(study);
    status = fr_processes_agree(&call->context, status, &failed);
    if (!directory) return cli_report(status, &failed);
    call->context.processes = NULL; /* the others have done their part */
    /* the finished part can be reported even if something failed */
    fr_status shown = FR_OK;
    if (io->report && (!status || status == FR_EINPUT))
        shown = fr_study_report(io->output, &call->context, &err);
    cli_terminal_clear();
    if (!shown && io->report && !status) {
        if (call->common.json)
            return cli_print_json(json_pack("{s:o}", "output", cli_json_text(io->output)));
        cli_study_show(io->output);
    }
    if (status) return cli_report(status, &failed);
    return cli_report(shown, &err);
}

const cli_command cli_study_run_command = {
    .name = "study run",
    .summary = "Run a whole study, or the rest of it",
    .text =
        "Trains, ranks and diagnoses everything that a study names, then writes its tables, "
        "figures and report. The ledger study.db records all finished work. After any interruption "
        "the same command continues, and several processes may work on one study. A unit of work "
        "is repeated only if its inputs have changed or its record is damaged. A missing data set "
        "is skipped, with a hint on how to get it.\n"
        "A study can include external models: \"ranks\": {\"my-tgn\": [\"ranks-7.npy\", "
        "\"ranks-17.npy\"]} in the document names a file for each seed; \"scorers\": "
        "{\"my-model\": \"scores:FILE.npy\"} takes any value of `rank --scorer`. Rank records of "
        "another protocol are refused. docs/study.md describes all keys. If mpirun starts several "
        "processes, they share the units and process 0 keeps the ledger (docs/cluster.md).",
    .arguments = "[STUDY.json]",
    .required = "output",
    .example = "fullrank study run --preset paper --data-dir sets -o study",
    .groups = {{"Study", study_io_options, sizeof(study_io)}},
    .run = run_study,
    .shared = true,
};

static json_t *state_json(const fr_study_state *s) {
    json_t *units = json_array(), *versions = json_object();
    for (int64_t i = 0; i < s->versions; i++)
        (void)json_object_set_new(versions, s->version[i].tool,
                                  json_integer((json_int_t)s->version[i].units));
    for (int64_t i = 0; i < s->count; i++) {
        const fr_study_unit *u = &s->unit[i];
        json_t *one = json_pack("{s:o, s:s, s:s, s:o}", "key", cli_json_text(u->key), "kind",
                                u->kind, "status", u->status, "seconds", cli_json_real(u->seconds));
        if (one && u->message) cli_json_put(one, "message", cli_json_text(u->message));
        cli_json_push(units, one);
    }
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:o}", "name",
                     cli_json_text(s->name), "done", (json_int_t)s->done, "running",
                     (json_int_t)s->running, "failed", (json_int_t)s->failed, "left",
                     (json_int_t)s->left, "skipped", (json_int_t)s->skipped, "seconds_left",
                     cli_json_real(s->seconds_left), "unknown", (json_int_t)s->unknown, "versions",
                     versions, "units", units);
}

static int run_status(cli_call *call) {
    fr_study_state s;
    fr_error err = {0};
    fr_status status = fr_study_status(call->argument[0], &s, &err);
    if (status) return cli_report(status, &err);
    int code = CLI_OK;
    if (call->common.json)
        code = cli_print_json(state_json(&s));
    else {
        (void)printf("%s: %s of %s units done, %s running, %s failed, %s left, %s skipped\n",
                     cli_visible(s.name), cli_count(s.done).s, cli_count(s.count).s,
                     cli_count(s.running).s, cli_count(s.failed).s, cli_count(s.left).s,
                     cli_count(s.skipped).s);
        if (s.left + s.running + s.failed)
            (void)printf("time left for one process: about %s%s%s%s\n",
                         cli_duration(s.seconds_left).s, s.unknown ? ", and " : "",
                         s.unknown ? cli_count(s.unknown).s : "",
                         s.unknown ? " units of unknown length" : "");
        for (int64_t i = 0; s.versions > 1 && i < s.versions; i++)
            (void)printf(
                "%s%s (%s)%s", i ? ", " : "done by different versions: ", s.version[i].tool,
                cli_count(s.version[i].units).s,
                i + 1 < s.versions ? "" : "; `study run --redo-other-versions` repeats them\n");
        for (int64_t i = 0; i < s.count; i++) {
            const fr_study_unit *u = &s.unit[i];
            if (!strcmp(u->status, "running") || !strcmp(u->status, "failed") ||
                (!strcmp(u->status, "skipped") && !strcmp(u->kind, "data")))
                (void)printf("%-8s %s%s%s\n", u->status, cli_visible(u->key),
                             u->message ? ": " : "", u->message ? cli_visible(u->message) : "");
        }
    }
    fr_study_status_free(&s);
    return code;
}

const cli_command cli_study_status_command = {
    .name = "study status",
    .summary = "Show the progress of a study",
    .text = "Shows the units done, running in some process, failed (with the reason), left and "
            "skipped, and the time left, estimated from similar units.",
    .arguments = "DIR",
    .example = "fullrank study status study",
    .run = run_status,
};

static int run_report(cli_call *call) {
    fr_error err = {0};
    fr_status status = fr_study_report(call->argument[0], &call->context, &err);
    cli_terminal_clear();
    if (status) return cli_report(status, &err);
    if (call->common.json)
        return cli_print_json(json_pack("{s:o}", "output", cli_json_text(call->argument[0])));
    cli_study_show(call->argument[0]);
    return CLI_OK;
}

const cli_command cli_study_report_command = {
    .name = "study report",
    .summary = "Write a study's tables, figures and report.html",
    .text = "Uses study.db alone: runs may have been deleted, and the study need not be finished.",
    .arguments = "DIR",
    .example = "fullrank study report study",
    .run = run_report,
};

static int run_preset(cli_call *call) {
    const char *text = fr_study_preset_find(call->argument[0]);
    if (!text) return cli_usage("unknown preset %s, expected " PRESETS, call->argument[0]);
    (void)fputs(text, stdout);
    return CLI_OK;
}

const cli_command cli_study_preset_command = {
    .name = "study preset",
    .summary = "Print a built-in study",
    .text = "Use it as an example: save it, change it, and run it with `fullrank study run`.",
    .arguments = "paper|architectures|quick|selected|demo",
    .example = "fullrank study preset paper",
    .run = run_preset,
};
