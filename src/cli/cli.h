/* cli.h - the frame of all commands of the tool.
 *
 * A command is one `const cli_command cli_NAME_command` in a cmd_*.c, plus X(NAME) in the list of
 * main.c. The frame finds the command, fills its settings from defaults, config files and the
 * command line, gives it a context that logs, shows progress and reacts to Ctrl-C, and turns its
 * status into an exit code. Help, man page and completions come from the same tables, so they
 * always match the parser.
 *
 * Results go to stdout, which is flushed when the command ends or a large buffer is full;
 * everything else goes to stderr. The tool uses the library only through fullrank.h.
 *
 *   main.c      list of commands, finding one, exit codes     terminal.c  stderr, signals, styles
 *   parse.c     argv and config files to settings             output.c    numbers, lines, JSON
 *   help.c      --help                                        man.c       man page, completions
 *   tables.c    --format                                      plans.c     what is about to be done
 */
#ifndef FR_CLI_H
#define FR_CLI_H

#include "fullrank.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- Commands ---- */

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };
enum { CLI_MAX_GROUPS = 8 };

/* Options that belong together: a table of the library or of the command, and its struct's size. */
typedef struct cli_group {
    const char *heading; /* "Protocol", shown above the options in help */
    const fr_option *table;
    size_t size;
} cli_group;

/* Options of every command. */
typedef struct cli_common {
    int64_t threads; /* 0 = all cores */
    bool quiet, verbose, json, wide, help;
    char *config, *set; /* used while parsing */
} cli_common;

/* For commands that draw random numbers: add CLI_SEED_GROUP to `groups`. */
typedef struct cli_seed {
    int64_t seed;
} cli_seed;
extern const fr_option cli_seed_options[];
#define CLI_SEED_GROUP                                                                             \
    { "Random numbers", cli_seed_options, sizeof(cli_seed) }

/* For commands whose results are tables: add CLI_FORMAT_GROUP to `groups`. */
typedef struct cli_output {
    int format; /* FR_FORMAT_* or CLI_FORMAT_JSON */
} cli_output;
enum { CLI_FORMAT_JSON = FR_FORMAT_CSV + 1 };
extern const fr_option cli_format_options[];
#define CLI_FORMAT_GROUP                                                                           \
    { "Output", cli_format_options, sizeof(cli_output) }

/* The input of a command. The frame owns everything in it. */
typedef struct cli_call {
    const struct cli_command *command;
    const char *program; /* how the tool was called: "fullrank", "build/fullrank" */
    char **argument;     /* the positional ones, as many as the synopsis allows */
    int arguments;
    void *settings[CLI_MAX_GROUPS]; /* of group i: const fr_import *import = call->settings[0]; */
    cli_common common;
    fr_context context; /* for the library */
} cli_call;

typedef struct cli_command {
    const char *name;    /* "version", "data import" */
    const char *summary; /* one line without a full stop */
    const char *text;    /* paragraphs of help, separated by '\n'; may be NULL */
    /* "IN", "[IN]" may be left out, "IN..." one or more, "[IN...]" any number, "bash|zsh" one of
     * these words; separated by blanks. NULL = none. The frame checks them. */
    const char *arguments;
    /* Keys of required options, separated by blanks; may be NULL. "scorer|list": scorer is
     * required unless list is given. */
    const char *required;
    const char *example;              /* a command line that works */
    const char *forced;               /* hint if --force is needed; NULL = "--force replaces it" */
    cli_group groups[CLI_MAX_GROUPS]; /* ends with a NULL table if not full */
    /* Sets options that follow from others, after all are read. Options that were given are then
     * set again, so that they win. May be NULL. */
    fr_status (*expand)(cli_call *call, fr_error *err);
    int (*run)(cli_call *call);       /* returns an exit code, usually by cli_report */
    int (*explain)(const char *name); /* `COMMAND --help NAME`; may be NULL */
    bool shared; /* processes share its work; otherwise process 0 does it alone */
} cli_command;

/* All commands, NULL at the end. */
extern const cli_command *const cli_commands[];
/* Group number i of a command, then the group of common options, then NULL. */
const cli_group *cli_group_at(const cli_command *command, size_t i);

/* The command with this name, NULL if there is none. */
const cli_command *cli_find(const char *name);
/* True if `name` is the first word of commands of two words: "data". */
bool cli_family(const char *name);
/* Reports an unknown command and names the nearest; returns CLI_USAGE. */
int cli_unknown(const char *name);

/* Fills call->settings, common and arguments from the words after the command's name. On an error
 * it prints a message and returns CLI_USAGE or CLI_FAILED. Call cli_parse_free in any case. Words
 * are
 * `--key value`, `--key=value`, `--flag`, `--no-flag`, `-o value`, arguments; `--` ends options.
 * Config files count first, then options in the order given. */
int cli_parse(cli_call *call, int count, char **words);
void cli_parse_free(cli_call *call);
/* Numbers from 1 on, as in --k 1,5,20. */
enum { CLI_MOST_NUMBERS = 64 };
typedef struct cli_numbers {
    int64_t at[CLI_MOST_NUMBERS];
    int count;
} cli_numbers;
/* Reads the value of an option; on an error it prints a message and returns false. */
bool cli_parse_numbers(const char *option, const char *text, cli_numbers *out);
/* The one-letter name of an option, 0 if it has none. */
char cli_letter(const char *key);

/* ---- Processes (processes.c) ---- */

/* Joins the other processes if the tool was started as one of several; returns an exit code. */
int cli_processes_start(void);
void cli_processes_end(void);
/* The processes that share the work; NULL = there is only this one. */
const fr_processes *cli_processes(void);
/* True in the process that prints and writes. */
bool cli_first(void);

/* ---- Help (help.c) ---- */

/* Prints the help of a command, a family, or of everything ("") to stdout. */
int cli_help(const char *name);
/* Prints text as a paragraph of the terminal's width (100 at most), every line indented. */
void cli_paragraph(const char *text, int indent);
/* "fullrank data import IN --output DIR [OPTIONS]" */
void cli_synopsis(const cli_command *command, char *out, size_t size);
/* The placeholder of the value in help: "N", "stream|strict"; "" for a flag. */
const char *cli_value_word(const fr_option *option);
/* "default 0.85, from 0 to 1"; "" if there is neither. */
void cli_option_facts(const fr_option *option, char *out, size_t size);

/* ---- Terminal (terminal.c) ---- */

/* Call it once at the start: sets up signals and the buffer of stdout. */
void cli_terminal_start(void);
/* A context that logs and draws on stderr. */
fr_context cli_terminal_context(const cli_common *common);
/* Removes the progress bar, if there is one. */
void cli_terminal_clear(void);
/* Width of the terminal of `stream`; 80 if it is not a terminal. */
int cli_terminal_width(FILE *stream);

/* Between begin and end, output to a terminal is kept back. Tables that are too wide are then shown
 * in parts, unless `wide`. */
void cli_fold_begin(void);
void cli_fold_end(bool wide);
/* The file that is stdout, also while it is held. */
int cli_fold_output(void);

/* Like vsnprintf, but a long text loses its middle, because the reason is at the end. */
void cli_format(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Prints a note to stderr, like those of the library; not with --quiet. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for what a long command is about to do. The real time of each stage is shown later: on a
 * terminal in the bar, elsewhere in a line once the first second of the stage is done. */
void cli_plan(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "fullrank: message" to stderr, always as one line. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the error, if there is one, and returns the exit code. For FR_EFORCE it adds the hint of
 * the command's `forced`, which cli_terminal_forced sets. */
void cli_terminal_forced(const char *text);
int cli_report(fr_status status, const fr_error *err);

/* Escape sequences; empty unless `stream` is a terminal and NO_COLOR is not set. */
typedef enum cli_look { CLI_PLAIN, CLI_BOLD, CLI_YELLOW, CLI_CYAN } cli_look;
const char *cli_style(FILE *stream, cli_look look);

/* ---- What is about to be done (plans.c) ---- */

/* True for a scorer that needs no training and takes almost no time. */
bool cli_untrained(const char *spec);
/* Says what ranking the window with a scorer will take: all events, or a sample (0 = all). Prints
 * nothing if it takes almost no time. */
void cli_plan_rank(const fr_window *window, const fr_scorer *scorer, const char *spec,
                   int64_t sample, const fr_context *context);
void cli_plan_train(const fr_window *window, const char *name, const fr_training *how,
                    const fr_context *context);
void cli_plan_scaling(const fr_window *window, const char *spec, const fr_scaling_settings *how);

/* ---- Shared by commands (cmd_data.c) ---- */

/* Describes the new stream at `path`, in one line or as JSON; returns an exit code. */
int cli_report_stream(cli_call *call, const char *path);

/* ---- Shared by commands (cmd_study.c) ---- */

/* Prints the main table of a study. */
void cli_show_table(const char *directory);
/* The same, and where its report is. */
void cli_study_show(const char *directory);

/* ---- Rank records as arguments (runs.c) ---- */

typedef struct cli_runs {
    fr_compare_run *run; /* [count] */
    int count;
    struct cli_run *file; /* [count] what it points into */
} cli_runs;

/* Loads every argument of the call: FILE, NAME=FILE or NAME@SEED=FILE. On an error it
 * prints a message and returns an exit code. Call cli_runs_close in any case. */
int cli_runs_open(const cli_call *call, cli_runs *out);
void cli_runs_close(cli_runs *runs);

/* ---- Formats (tables.c) ---- */

/* The format of --format or --json; sets common.json to match. On an error it prints a message and
 * returns CLI_USAGE. */
int cli_format_take(cli_call *call, const cli_output *chosen, int *out);
/* Prints a table, with a blank line before it unless it is the first; returns an exit code. */
int cli_table_print(fr_table *table, int format, bool first);
/* Prints a list of JSON objects, which it steals, as one CSV table: a row for each, a column for
 * each plain value that any of them has, named by its path (expected.20.mrr). */
int cli_print_csv(json_t *list);

fr_table_cell cli_cell_text(const char *text);
fr_table_cell cli_cell_number(double value, int decimals);
fr_table_cell cli_cell_count(int64_t value);
fr_table_cell cli_cell_interval(fr_interval i, int decimals);
fr_table_cell cli_cell_mean(double mean, double sd, int decimals);

/* ---- Output (output.c) ---- */

/* A short text by value: printf("%s", cli_count(n).s). */
typedef struct cli_text {
    char s[32];
} cli_text;

cli_text cli_count(int64_t n);                 /* 157,474 */
cli_text cli_share(double part, double whole); /* 12.34%, - if whole is 0 */
cli_text cli_megabytes(uint64_t bytes);        /* 157.5 (a million bytes each) */
cli_text cli_duration(double seconds);         /* 0:07, 12:34, 1:02:03 */
cli_text cli_key(const char *name);            /* in JSON: mrr_new of mrr-new, hits10 of hits@10 */

/* Makes foreign text, such as a name, printable with fr_text_printable. All foreign text in printed
 * text or tables must go through this; the result lives as long as the program. JSON does not need
 * it, because it is exact. The functions that print to stderr do it themselves. */
const char *cli_visible(const char *text);

/* One line "key    value" with values in one column. */
void cli_pair(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add a value, whose reference they take, to the output. If one of them fails, cli_print_json
 * prints only an error, so no output lacks a key or an entry. */
void cli_json_put(json_t *object, const char *key, json_t *value);
void cli_json_push(json_t *list, json_t *value);
/* The same with all keys of another object that this one does not have. */
void cli_json_join(json_t *object, json_t *more);
/* True if everything has been added so far; otherwise prints "out of memory". */
bool cli_json_whole(void);

/* A JSON number, null if it is not finite. */
json_t *cli_json_real(double x);
/* A JSON string of any bytes, such as a path: exact if it is UTF-8, otherwise as cli_visible prints
 * it. */
json_t *cli_json_text(const char *text);
/* Prints `root` to stdout, indented by 2, and drops it; NULL (a failed construction) is reported as
 * out of memory. Every number has the fewest digits (at least 15) that give back the same bits.
 * Returns an exit code. */
int cli_print_json(json_t *root);

#endif
