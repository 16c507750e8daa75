/* runs.c - rank records as arguments: FILE, NAME=FILE or NAME@SEED=FILE. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* The parts of an argument other than its file. */
struct cli_run {
    char *name; /* NULL if not given */
    int64_t seed;
    fr_ranking *ranking;
};

/* Splits an argument. A name contains no '/', so a path with '=' can be given as ./PATH. */
static int take_file(const char *argument, struct cli_run *file, fr_compare_run *run) {
    const char *equals = strchr(argument, '='), *slash = strchr(argument, '/');
    run->file = argument;
    if (!equals || (slash && slash < equals)) return CLI_OK;
    run->file = equals + 1;
    file->name = strndup(argument, (size_t)(equals - argument));
    if (!file->name) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    char *at = strrchr(file->name, '@'), *end = NULL;
    if (at) {
        file->seed = strtoll(at + 1, &end, 10);
        if (end == at + 1 || *end)
            return cli_usage("%s: found seed \"%s\", expected a whole number: NAME@SEED=FILE",
                             argument, at + 1);
        run->seed = &file->seed;
        *at = 0;
    }
    if (!*file->name || !*run->file)
        return cli_usage("%s: expected FILE, NAME=FILE or NAME@SEED=FILE", argument);
    run->model = file->name;
    return CLI_OK;
}

int cli_runs_open(const cli_call *call, cli_runs *out) {
    int code = CLI_OK;
    fr_error err = {0};
    size_t count = (size_t)call->arguments;
    *out = (cli_runs){.file = calloc(count, sizeof *out->file),
                      .run = calloc(count, sizeof *out->run),
                      .count = call->arguments};
    if (!out->file || !out->run) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (int i = 0; !code && i < out->count; i++)
        code = take_file(call->argument[i], &out->file[i], &out->run[i]);
    for (int i = 0; !code && i < out->count; i++) {
        code = cli_report(fr_ranking_load(out->run[i].file, &out->file[i].ranking, &err), &err);
        out->run[i].ranking = out->file[i].ranking;
    }
    return code;
}

void cli_runs_close(cli_runs *runs) {
    for (int i = 0; runs->file && i < runs->count; i++) {
        fr_ranking_close(runs->file[i].ranking);
        free(runs->file[i].name);
    }
    free(runs->file);
    free(runs->run);
    *runs = (cli_runs){0};
}
