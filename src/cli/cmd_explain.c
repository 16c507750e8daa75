/* cmd_explain.c - explain: why two protocols give one scorer different numbers. */
#include "cli.h"

#include <string.h>

typedef struct explain_io {
    char *data, *scorer;
} explain_io;

static const fr_option explain_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(explain_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(explain_io, scorer),
     "the scorer to rank, as for `rank`"},
    {0}};

static int print_json(const explain_io *io, const fr_explain_settings *s, const fr_explanation *e) {
    json_t *steps = json_array();
    for (int k = 0; k < e->count; k++) {
        const fr_explain_step *step = &e->step[k];
        cli_json_push(steps,
                      json_pack("{s:s, s:o, s:o, s:o, s:o, s:I}", "setting", step->setting, "from",
                                cli_json_text(step->from), "to", cli_json_text(step->to), "effect",
                                cli_json_real(step->effect), "value", cli_json_real(step->value),
                                "events", (json_int_t)step->events));
    }
    return cli_print_json(json_pack(
        "{s:o, s:o, s:b, s:{s:o, s:o, s:I}, s:{s:o, s:o, s:I}, s:o}", "scorer",
        cli_json_text(io->scorer), "metric", cli_json_text(s->metric), "average", s->average,
        "from", "protocol", cli_json_text(s->from), "value", cli_json_real(e->from), "events",
        (json_int_t)e->from_events, "to", "protocol", cli_json_text(s->to), "value",
        cli_json_real(e->to), "events", (json_int_t)e->to_events, "steps", steps));
}

/* Shortens a value that is too long for its column: its end says more than its beginning. */
static const char *short_value(const char *value, char out[25]) {
    size_t length = strlen(value);
    if (length > 24)
        (void)snprintf(out, 25, "...%.21s", value + length - 21);
    else
        (void)snprintf(out, 25, "%.24s", value);
    return out;
}

static int print_table(const explain_io *io, const fr_explain_settings *s,
                       const fr_explanation *e) {
    char from[25], to[25];
    (void)printf("%s of %s\n", cli_visible(s->metric), cli_visible(io->scorer));
    (void)printf("%s%-10s %-24s %-24s %9s %9s %10s%s\n", cli_style(stdout, CLI_BOLD), "setting",
                 "from", "to", "effect", "value", "events", cli_style(stdout, CLI_PLAIN));
    (void)printf("%-60s %9s %9.4f %10s\n", cli_visible(s->from), "", e->from,
                 cli_count(e->from_events).s);
    for (int k = 0; k < e->count; k++) {
        const fr_explain_step *step = &e->step[k];
        (void)printf("%-10s %-24s %-24s %+9.4f %9.4f %10s\n", step->setting,
                     short_value(cli_visible(step->from), from),
                     short_value(cli_visible(step->to), to), step->effect, step->value,
                     cli_count(step->events).s);
    }
    (void)printf("%-60s %+9.4f %9.4f %10s\n", cli_visible(s->to), e->to - e->from, e->to,
                 cli_count(e->to_events).s);
    if (e->count > 1)
        (void)printf("\n%s\n", s->average
                                   ? "Effects are means over all orders of switching; events "
                                     "are those of the order shown."
                                   : "Settings are switched in the order shown; another order "
                                     "may give other effects (--average).");
    return CLI_OK;
}

static int run_explain(cli_call *call) {
    const explain_io *io = call->settings[0];
    const fr_explain_settings *settings = call->settings[1];
    const cli_seed *seed = call->settings[2];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_explanation found;
    fr_status status = fr_stream_open(io->data, call->settings[3], &call->context, &stream, &err);
    if (!status)
        status =
            fr_explain_run(stream, io->scorer, settings, seed->seed, &call->context, &found, &err);
    fr_stream_close(stream);
    if (status) return cli_report(status, &err);
    cli_terminal_clear();
    return call->common.json ? print_json(io, settings, &found) : print_table(io, settings, &found);
}

const cli_command cli_explain_command = {
    .name = "explain",
    .summary = "Explain why two protocols give one scorer two numbers",
    .text =
        "Switches one setting at a time from the first protocol's value to the second's, ranks, "
        "and shows the effect of each switch on the number. Protocols: fullrank (the defaults of "
        "`rank`), tgb (TGB's leaderboards) and dyglib, with optional changes after a comma: "
        "tgb,order=stream. Settings are those of `rank`, and also "
        "ties=average|optimistic|pessimistic|random and negatives=all or a sampler with its "
        "number, such as tgb-hist-20 (see `metrics --help`).",
    .required = "data scorer",
    .example = "fullrank explain --data wikipedia --scorer baseline:edgebank --from tgb",
    .groups = {{"Input", explain_io_options, sizeof(explain_io)},
               {"Explaining", fr_explain_options, sizeof(fr_explain_settings)},
               CLI_SEED_GROUP,
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_explain,
};
