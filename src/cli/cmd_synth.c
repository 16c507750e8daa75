/* cmd_synth.c - data synth: a stream whose true distribution is known. */
#include "cli.h"

#include <string.h>

typedef struct synth_output {
    char *output;
    bool force, list;
} synth_output;

static const fr_option output_options[] = {
    {"output", FR_OPTION_TEXT, "", "DIR", 0, 0, offsetof(synth_output, output),
     "the directory to make"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(synth_output, force),
     "replace an existing output, if this tool made it"},
    {"list", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(synth_output, list),
     "show presets and parameters instead"},
    {0}};

static int print_list(void) {
    const char *help, *name;
    (void)printf("Presets:\n");
    for (int i = 0; (name = fr_synth_preset_at(i, &help)); i++) cli_pair(name, "%s", help);
    (void)printf("\nParameters:\n");
    for (const fr_option *o = fr_synth_parameters(); o->key; o++) cli_pair(o->key, "%s", o->help);
    return CLI_OK;
}

static int run_synth(cli_call *call) {
    fr_synth *synth = call->settings[0];
    const synth_output *out = call->settings[1];
    if (out->list) return print_list();
    if (!out->output) return cli_usage("option output is missing: the directory for the stream");
    fr_error err = {0};
    synth->force = out->force;
    fr_status status = fr_synth_make(synth, out->output, &call->context, &err);
    return status ? cli_report(status, &err) : cli_report_stream(call, out->output);
}

const cli_command cli_data_synth_command = {
    .name = "data synth",
    .summary = "Make a synthetic stream whose true distribution is known",
    .text = "Draws events one by one from p(v | u, t, history): a mixture of the source's own "
            "past, drifting popularity and item-to-item transitions. Presets imitate public sets. "
            "The parameters are stored in the manifest, so the `oracle` scorer knows the "
            "probability of every destination. In expectation no model can beat it. `--list` shows "
            "presets and parameters.",
    .example = "fullrank data synth --preset wikipedia -o synthetic",
    .groups = {{"Synthetic stream", fr_synth_options, sizeof(fr_synth)},
               {"Output", output_options, sizeof(synth_output)}},
    .run = run_synth,
};
