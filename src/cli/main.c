/* main.c - the tool: its commands, how one is found, and how a run ends.
 *
 * A command's name is one word or two ("data import"). The longest name that fits is used. Exit
 * codes: 0 success, 1 the request failed, 2 wrong usage, 130 interrupted. If results could not be
 * written to stdout, the run fails even if the command itself succeeded.
 */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Every command, in the order of help: X(name) is cli_name_command, defined in its own file. */
// clang-format off
#define COMMANDS(X) \
    X(demo) \
    X(data_import) \
    X(data_info) \
    X(data_verify) \
    X(data_get) \
    X(data_export) \
    X(data_synth) \
    X(train) \
    X(rank) \
    X(metrics) \
    X(diagnose_minimal) \
    X(diagnose_membership) \
    X(diagnose_project) \
    X(bench_scaling) \
    X(compare) \
    X(explain) \
    X(audit) \
    X(study_run) \
    X(study_status) \
    X(study_report) \
    X(study_preset) \
    X(report) \
    X(baselines) \
    X(plugin) \
    X(models) \
    X(help) \
    X(version) \
    X(cite) \
    X(man) \
    X(completions)
// clang-format on

#define DECLARE(name) extern const cli_command cli_##name##_command;
#define ADDRESS(name) &cli_##name##_command,
COMMANDS(DECLARE)
const cli_command *const cli_commands[] = {COMMANDS(ADDRESS) NULL};

const cli_command *cli_find(const char *name) {
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (!strcmp((*c)->name, name)) return *c;
    return NULL;
}

bool cli_family(const char *name) {
    size_t length = strlen(name);
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (!strncmp((*c)->name, name, length) && (*c)->name[length] == ' ') return true;
    return false;
}

static const char *name_at(const void *list, int index) {
    return ((const char *const *)list)[index];
}

int cli_unknown(const char *name) {
    enum { COUNT = sizeof cli_commands / sizeof *cli_commands };
    const char *names[2 * COUNT] = {0}; /* also the first words of two-word names */
    char family[COUNT][32];
    size_t used = 0;
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *key = cli_commands[i]->name, *blank = strchr(key, ' ');
        names[used++] = key;
        if (!blank) continue;
        (void)snprintf(family[i], sizeof family[i], "%.*s", (int)(blank - key), key);
        names[used++] = family[i];
    }
    const char *near = fr_text_nearest(name, name_at, names);
    return near ? cli_usage("unknown command %s, did you mean %s?", name, near)
                : cli_usage("unknown command %s (fullrank --help lists all)", name);
}

static const char *program; /* argv[0] */

static int run(const cli_command *command, int count, char **words) {
    cli_call call = {.command = command, .program = program};
    if (!cli_first() && !command->shared) return CLI_OK;
    int code = cli_parse(&call, count, words);
    if (!code) {
        if (call.common.help) {
            bool named = command->explain && call.arguments;
            code = named ? command->explain(call.argument[0]) : cli_help(command->name);
        } else {
            call.context = cli_terminal_context(&call.common);
            if (command->shared) call.context.processes = cli_processes();
            if (command->forced) cli_terminal_forced(command->forced);
            cli_fold_begin();
            code = command->run(&call);
            cli_terminal_clear();
            cli_fold_end(call.common.wide || call.common.json);
        }
    }
    cli_parse_free(&call);
    return code;
}

/* The commands for words that begin with '-' and come first. */
static const char *spelled_as_option(const char *word) {
    static const struct {
        const char *option, *command;
    } all[] = {{"--help", "help"}, {"-h", "help"}, {"--version", "version"}, {"--cite", "cite"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(word, all[i].option)) return all[i].command;
    return NULL;
}

static int dispatch(int count, char **words) {
    if (!count) return cli_help("");
    if (words[0][0] == '-') {
        const char *command = spelled_as_option(words[0]);
        if (command) return run(cli_find(command), count - 1, words + 1);
        return cli_usage("unknown option %s before a command: fullrank COMMAND [OPTIONS]",
                         words[0]);
    }
    if (!cli_family(words[0])) {
        const cli_command *command = cli_find(words[0]);
        return command ? run(command, count - 1, words + 1) : cli_unknown(words[0]);
    }
    if (count < 2)
        return cli_usage("%s needs one more word (fullrank %s --help lists them)", words[0],
                         words[0]);
    if (!strcmp(words[1], "--help") || !strcmp(words[1], "-h")) return cli_help(words[0]);
    char name[256];
    (void)snprintf(name, sizeof name, "%s %s", words[0], words[1]);
    const cli_command *command = cli_find(name);
    return command ? run(command, count - 2, words + 2) : cli_unknown(name);
}

/* Writes out what is still in the buffer. */
static int finish(int code) {
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (!fflush(stdout) && !failed) return code;
    if (errno == EPIPE)
        return 128 + SIGPIPE; /* the reader has stopped; end as if SIGPIPE had ended us */
    cli_error("standard output could not be written%s%s", errno ? ": " : "",
              errno ? strerror(errno) : "");
    return code ? code : CLI_FAILED;
}

int main(int argc, char **argv) {
    program = argc > 0 ? argv[0] : "fullrank";
    cli_terminal_start();
    int code = cli_processes_start();
    code = finish(code ? code : dispatch(argc - 1, argv + 1));
    cli_processes_end();
    return code;
}
