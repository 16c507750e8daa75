/* cmd_train.c - train: a model on the training prefix; models: the list of models. */
#include "cli.h"

typedef struct train_io {
    char *data, *model, *output;
    bool force;
} train_io;

static const fr_option train_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(train_io, data),
     "a directory made by `data import`, or a table"},
    {"model", FR_OPTION_TEXT, "", "NAME", 0, 0, offsetof(train_io, model),
     "the model; `fullrank models` lists them"},
    {"output", FR_OPTION_TEXT, "", "RUN", 0, 0, offsetof(train_io, output),
     "directory for model.safetensors, train.json and state.safetensors"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(train_io, force),
     "train again into an existing directory"},
    {0}};

/* Prints where the model is; as JSON, with everything in train.json. */
static int report(cli_call *call, const char *output) {
    char path[4096];
    if (!call->common.json) {
        (void)printf("%s/model.safetensors\n", cli_visible(output));
        return CLI_OK;
    }
    (void)snprintf(path, sizeof path, "%s/train.json", output);
    json_t *record = json_load_file(path, 0, NULL);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", output);
    if (record) cli_json_put(record, "checkpoint", cli_json_text(path));
    return cli_print_json(record);
}

/* --settings */
static fr_status expand(cli_call *call, fr_error *err) {
    const train_io *io = call->settings[0];
    fr_training *training = call->settings[1];
    if (!training->settings || !io->model) return FR_OK;
    char family[64];
    (void)snprintf(family, sizeof family, "%s", training->settings);
    return fr_settings_apply(family, io->model, call->settings[2], training, err);
}

static int run_train(cli_call *call) {
    const train_io *io = call->settings[0];
    fr_training *training = call->settings[1];
    const fr_model_settings *settings = call->settings[2];
    const fr_protocol *protocol = call->settings[3];
    const fr_import *import = call->settings[4];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    training->force = io->force;
    fr_status status = fr_stream_open(io->data, import, &call->context, &stream, &err);
    if (!status) status = fr_window_open(stream, protocol, &call->context, &window, &err);
    if (!status) cli_plan_train(window, io->model, training, &call->context);
    if (!status)
        status =
            fr_train_run(window, io->model, settings, training, io->output, &call->context, &err);
    fr_window_close(window);
    fr_stream_close(stream);
    return status ? cli_report(status, &err) : report(call, io->output);
}

const cli_command cli_train_command = {
    .name = "train",
    .summary = "Train a model on the training prefix",
    .text =
        "Each event of the prefix comes with one random negative from the catalog. After every "
        "epoch the command writes the model, its record train.json and the state for --resume. A "
        "resumed run continues from the last complete epoch and ends with the same bits as an "
        "uninterrupted one, with any number of threads. With --select each epoch is also ranked on "
        "the validation part, against the whole catalog, and the best epoch becomes the model; "
        "train.json has the curve.\n"
        "--settings published uses the settings of the paper's authors as defaults, as far as they "
        "are known: attention over the last 20 events, batches of 128, AdamW, negatives from all "
        "destinations of the window, and for each model the values in docs/models.md. Options that "
        "you give override them. train.json has the name of the family and all values; rank "
        "records have the name.",
    .required = "data model output",
    .forced = "--resume continues it, --force trains again",
    .example = "fullrank train --data wikipedia --model craft-r -o run",
    .groups = {{"Run", train_io_options, sizeof(train_io)},
               {"Training", fr_training_options, sizeof(fr_training)},
               {"Model", fr_model_options, sizeof(fr_model_settings)},
               {"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .expand = expand,
    .run = run_train,
};

static int run_models(cli_call *call) {
    json_t *list = call->common.json ? json_array() : NULL;
    const fr_model *m;
    for (int i = 0; (m = fr_model_at(i)); i++) {
        if (list) {
            cli_json_push(list, json_pack("{s:s, s:s, s:s, s:s}", "name", m->name, "label",
                                          m->label, "summary", m->summary, "definition", m->text));
            continue;
        }
        (void)printf("%s%s%s%s: %s\n", i ? "\n" : "", cli_style(stdout, CLI_BOLD), m->name,
                     cli_style(stdout, CLI_PLAIN), m->summary);
        cli_paragraph(m->text, 2);
    }
    return list ? cli_print_json(list) : CLI_OK;
}

const cli_command cli_models_command = {
    .name = "models",
    .summary = "List the models that can be trained",
    .text = "Prints each with its definition. `fullrank train --help` shows their options.",
    .example = "fullrank models",
    .run = run_models,
};
