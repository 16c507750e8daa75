#define _GNU_SOURCE
/* cmd_audit.c - audit: does a scorer see what it must not? */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct audit_io {
    char *data, *scorer, *output;
    bool force;
} audit_io;

static const fr_option audit_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(audit_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(audit_io, scorer),
     "the scorer to audit, as for `rank`"},
    {"output", FR_OPTION_TEXT, "", "FILE.json", 0, 0, offsetof(audit_io, output),
     "also write the result, for `report --audit`"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(audit_io, force),
     "replace an existing file"},
    {0}};

/* ---- the command that reproduces a finding ---- */

/* Prints a word for a shell, in quotes if it needs them. */
static void print_word(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+%@";
    if (*word && strspn(word, plain) == strlen(word)) {
        (void)printf(" %s", word);
        return;
    }
    (void)printf(" '");
    for (; *word; word++) (void)(*word == '\'' ? printf("'\\''") : putchar(*word));
    (void)printf("'");
}

/* Prints the options of a group that differ from their defaults, except those in `skip`. */
static void print_changed(const fr_option *table, const void *settings, const char *skip) {
    for (const fr_option *o = table; o->key; o++) {
        char value[FR_NAME_MAX], key[80];
        fr_options_text(o, settings, value, sizeof value);
        bool real = o->type == FR_OPTION_REAL && strtod(value, NULL) == strtod(o->standard, NULL);
        if (real || strstr(skip, o->key) || !strcmp(value, o->standard)) continue;
        (void)snprintf(key, sizeof key, "--%s", o->key);
        print_word(key);
        if (o->type != FR_OPTION_FLAG) print_word(cli_visible(value));
    }
}

/* Prints "checks=future,events=row:5,seed=7" as options. */
static void print_reproduction(const cli_call *call, const fr_audit_finding *f) {
    const audit_io *io = call->settings[0];
    char text[256], *rest = text;
    (void)printf("    again: %s audit --data", call->program);
    print_word(cli_visible(io->data));
    (void)printf(" --scorer");
    print_word(cli_visible(io->scorer));
    (void)snprintf(text, sizeof text, "%s", f->reproduce);
    for (char *entry; (entry = strsep(&rest, ","));) {
        entry[strcspn(entry, "=")] = ' ';
        (void)printf(" --%s", entry);
    }
    print_changed(fr_audit_options, call->settings[1], "checks events");
    print_changed(fr_protocol_options, call->settings[2], "");
    print_changed(fr_import_options, call->settings[4], "force");
    (void)printf("\n");
}

/* ---- text ---- */

static void print_finding(const cli_call *call, const fr_audit_finding *f) {
    (void)printf("\n%s%s: %s%s", cli_style(stdout, CLI_BOLD), fr_audit_checks[f->check].name,
                 fr_severity_names[f->severity], cli_style(stdout, CLI_PLAIN));
    if (f->event >= 0) (void)printf(", row %lld", (long long)f->event);
    if (f->candidate >= 0) (void)printf(", candidate %lld", (long long)f->candidate);
    if (!isnan(f->score)) (void)printf(", score %.9g", f->score);
    if (!isnan(f->changed)) (void)printf(", then %.9g", f->changed);
    (void)printf("\n    %s\n", f->what);
    print_reproduction(call, f);
}

static void print_number(double x, const char *format, int width) {
    char text[32];
    if (isnan(x))
        (void)snprintf(text, sizeof text, "-");
    else
        (void)snprintf(text, sizeof text, format, x);
    (void)printf(" %*s", width, text);
}

static void print_check(const fr_audit_facts *a, int k) {
    const fr_audit_check *c = &a->check[k];
    const char *verdict = !c->tested ? "not tested" : c->found ? "FOUND" : "pass";
    (void)printf("%-11s %-10s %8s %12s", fr_audit_checks[k].name, verdict, cli_count(c->events).s,
                 cli_count(c->scores).s);
    if (c->tested) {
        print_number(c->largest, c->largest > 0 ? "%.1e" : "%.0f", 8);
        print_number(c->mrr, "%.4f", 7);
        print_number(c->changed_mrr, "%.4f", 7);
    }
    (void)printf("\n");
    if (*c->note) cli_paragraph(cli_visible(c->note), 12);
}

static void print_audit(const cli_call *call, const fr_audit_facts *a) {
    (void)printf("%s on %s\n", cli_visible(a->scorer), cli_visible(a->data));
    (void)printf("%s%-11s %-10s %8s %12s %8s %7s %7s%s\n", cli_style(stdout, CLI_BOLD), "check",
                 "verdict", "compared", "scores", "largest", "MRR", "then",
                 cli_style(stdout, CLI_PLAIN));
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) print_check(a, k);
    for (int k = 0; k < a->findings; k++) print_finding(call, &a->finding[k]);
    (void)printf("\n%lld streams; two equal runs %s", (long long)a->streams,
                 a->noise > 0 ? "differ by" : "give the same bits");
    if (a->noise > 0) (void)printf(" %.1e of the largest score", a->noise);
    (void)printf("\n%s\n", cli_visible(a->badge));
}

/* ---- command ---- */

static fr_status save(const char *path, const char *text, bool force, fr_error *err) {
    fr_file *file = NULL;
    FILE *there = force ? NULL : fopen(path, "rb");
    if (there) {
        (void)fclose(there);
        return fr_fail(err, FR_EFORCE, "%s exists", path);
    }
    fr_status status = fr_file_open(path, &file, err);
    if (!status) status = fr_file_put(file, text, strlen(text), err);
    if (!status) status = fr_file_put(file, "\n", 1, err);
    if (!status) status = fr_file_commit(file, err);
    fr_file_close(file);
    return status;
}

static int show(cli_call *call, fr_audit *audit) {
    const audit_io *io = call->settings[0];
    fr_error err = {0};
    const char *text;
    fr_status status = fr_audit_text(audit, &text, &err);
    if (!status && io->output) status = save(io->output, text, io->force, &err);
    cli_terminal_clear();
    if (status) return cli_report(status, &err);
    fr_audit_facts facts = fr_audit_get(audit);
    if (call->common.json)
        (void)printf("%s\n", text);
    else
        print_audit(call, &facts);
    return facts.findings ? CLI_FAILED : CLI_OK;
}

static int run_audit(cli_call *call) {
    const audit_io *io = call->settings[0];
    const cli_seed *seed = call->settings[3];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_audit *audit = NULL;
    fr_status status = fr_stream_open(io->data, call->settings[4], &call->context, &stream, &err);
    if (!status) status = fr_window_open(stream, call->settings[2], &call->context, &window, &err);
    if (!status)
        status = fr_audit_run(window, io->scorer, NULL, NULL, call->settings[1], seed->seed,
                              &call->context, &audit, &err);
    int code = status ? cli_report(status, &err) : show(call, audit);
    fr_audit_close(audit);
    fr_window_close(window);
    fr_stream_close(stream);
    return code;
}

const cli_command cli_audit_command = {
    .name = "audit",
    .summary = "Check that a scorer does not see what it must not see",
    .text =
        "Scores some ranked events, and then again after changes that must not matter: with "
        "another future, with other events of the same time, in other batches, with other "
        "candidates, twice, and with exchanged ids. If a check finds a difference, it names the "
        "events, the candidates, both scores, the change, and the effect on the MRR. The exit code "
        "is 1 if anything was found.\n"
        "Works for any scorer that can be opened again: baselines, checkpoints, plug-ins, the "
        "oracle. Only few checks are possible for scores in a file. docs/audit.md explains each "
        "check and what an audit cannot show.",
    .required = "data scorer",
    .example = "fullrank audit --data wikipedia --scorer baseline:edgebank --order strict",
    .groups = {{"Input and output", audit_io_options, sizeof(audit_io)},
               {"Audit", fr_audit_options, sizeof(fr_audit_settings)},
               {"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               CLI_SEED_GROUP,
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_audit,
};
