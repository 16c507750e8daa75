/* cmd_report.c - report: page, tables and figures from rank records, without a study. */
#include "cli.h"

#include <string.h>

typedef struct report_io {
    char *output, *k;
} report_io;

static const fr_option report_io_options[] = {
    {"output", FR_OPTION_TEXT, "", "FILE.html", 0, 0, offsetof(report_io, output), "the page"},
    {"k", FR_OPTION_TEXT, "1,5,20,50,100", "LIST", 0, 0, offsetof(report_io, k),
     "numbers of sampled negatives in tables and figures"},
    {0}};

static int run_report(cli_call *call) {
    const report_io *io = call->settings[0];
    const fr_report_settings *settings = call->settings[1];
    cli_runs runs;
    cli_numbers k;
    fr_error err = {0};
    if (!cli_parse_numbers("k", io->k, &k)) return CLI_USAGE;
    int code = cli_runs_open(call, &runs);
    if (!code)
        code = cli_report(fr_report_write(runs.run, runs.count, k.at, k.count, settings, io->output,
                                          &call->context, &err),
                          &err);
    cli_runs_close(&runs);
    cli_terminal_clear();
    if (code) return code;
    if (call->common.json) {
        json_t *out = json_pack("{s:o}", "output", cli_json_text(io->output));
        if (settings->tables) cli_json_put(out, "tables", cli_json_text(settings->tables));
        return cli_print_json(out);
    }
    if (settings->tables) cli_show_table(settings->tables);
    (void)printf("%s\n", cli_visible(io->output));
    return CLI_OK;
}

const cli_command cli_report_command = {
    .name = "report",
    .summary = "Make a page, tables and figures from rank records",
    .text = "Makes the page of a study from rank records alone: of your own models, of any "
            "program, together with baselines. Runs are grouped by model and seed, as `rank` "
            "recorded them; NAME=FILE and NAME@SEED=FILE override this. All of them must follow "
            "one protocol; otherwise they are refused, and the message names the fields that "
            "differ.",
    .arguments = "RANKS.npy...",
    .required = "output",
    .example = "fullrank report recency.npy edgebank.npy -o report.html",
    .groups = {{"Report", report_io_options, sizeof(report_io)},
               {"Contents", fr_report_options, sizeof(fr_report_settings)}},
    .run = run_report,
};
