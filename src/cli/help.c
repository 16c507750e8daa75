/* help.c - help, written from the tables of commands and options.
 *
 * Text is wrapped at the width of the terminal, but never beyond 100 columns, where lines get hard
 * to read. Everything goes to stdout, because requested help is a result.
 */
#include "cli.h"

#include <string.h>

enum { MOST_WIDTH = 100, LEAST_WIDTH = 40, OPTION_COLUMN = 30 };

static int page_width(void) {
    int width = cli_terminal_width(stdout);
    return width > MOST_WIDTH ? MOST_WIDTH : width < LEAST_WIDTH ? LEAST_WIDTH : width;
}

/* Prints words from `column` on, wrapped with `indent`; '\n' in the text ends a line. */
static void wrap(const char *text, int indent, int column) {
    int width = page_width();
    bool blank = false; /* print one before the next word */
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (blank && column + 1 + length > width) {
            (void)printf("\n%*s", indent, "");
            column = indent;
            blank = false;
        }
        (void)printf("%s%.*s", blank ? " " : "", length, text);
        column += length + blank;
        blank = true;
        text += length;
        if (*text == '\n') {
            (void)printf("\n%*s", text[1] && text[1] != '\n' ? indent : 0, "");
            column = indent;
            blank = false;
        }
        if (*text) text++;
    }
    (void)putchar('\n');
}

void cli_paragraph(const char *text, int indent) {
    (void)printf("%*s", indent, "");
    wrap(text, indent, indent);
}

static void heading(const char *text) {
    (void)printf("\n%s%s:%s\n", cli_style(stdout, CLI_BOLD), text, cli_style(stdout, CLI_PLAIN));
}

/* Prints "  left    right", with right wrapped in its column; a long left gets its own line. */
static void entry(const char *left, const char *right, int column) {
    int length = printf("  %s", left);
    if (length + 2 > column)
        (void)printf("\n%*s", column, "");
    else
        (void)printf("%*s", column - length, "");
    wrap(right, column, column);
}

const char *cli_value_word(const fr_option *o) {
    if (o->type == FR_OPTION_FLAG) return "";
    if (o->values) return o->values;
    return o->type == FR_OPTION_TEXT ? "TEXT" : "N";
}

static void append(char *out, size_t size, const char *text) {
    size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%s", text);
}

void cli_option_facts(const fr_option *o, char *out, size_t size) {
    *out = 0;
    bool plain_flag = o->type == FR_OPTION_FLAG && strcmp(o->standard, "yes") != 0;
    if (*o->standard && !plain_flag) {
        append(out, size, "default ");
        append(out, size, o->standard);
    }
    if (o->type != FR_OPTION_INT && o->type != FR_OPTION_REAL) return;
    char range[96];
    if (o->high >= 9e15)
        (void)snprintf(range, sizeof range, "at least %.15g", o->low);
    else
        (void)snprintf(range, sizeof range, "from %.15g to %.15g", o->low, o->high);
    if (*out) append(out, size, ", ");
    append(out, size, range);
}

void cli_synopsis(const cli_command *command, char *out, size_t size) {
    (void)snprintf(out, size, "fullrank %s", command->name);
    if (command->arguments) {
        append(out, size, " ");
        append(out, size, command->arguments);
    }
    for (const char *at = command->required ? command->required : ""; *at;) {
        char key[64];
        size_t length = strcspn(at, " ");
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(at, " |"), at);
        append(out, size, " --");
        append(out, size, key);
        const cli_group *group;
        for (size_t i = 0; (group = cli_group_at(command, i)); i++) {
            const fr_option *option = fr_options_find(group->table, key);
            if (!option) continue;
            append(out, size, " ");
            append(out, size, cli_value_word(option));
            break;
        }
        at += length + strspn(at + length, " ");
    }
    append(out, size, " [OPTIONS]");
}

static void print_options(const cli_group *group) {
    heading(group->heading);
    for (const fr_option *o = group->table; o->key; o++) {
        char left[512], right[2048], facts[256];
        bool can_turn_off = o->type == FR_OPTION_FLAG && !strcmp(o->standard, "yes");
        char letter = cli_letter(o->key), shortly[] = {'-', letter, ',', ' ', 0};
        const char *word = cli_value_word(o);
        (void)snprintf(left, sizeof left, "%s--%s%s%s%s", letter ? shortly : "    ",
                       can_turn_off ? "[no-]" : "", o->key, *word ? " " : "", word);
        cli_option_facts(o, facts, sizeof facts);
        (void)snprintf(right, sizeof right, "%s%s%s%s", o->help, *facts ? " (" : "", facts,
                       *facts ? ")" : "");
        entry(left, right, OPTION_COLUMN);
    }
}

/* Prints the commands whose name begins with `prefix`. */
static void list_commands(const char *prefix) {
    size_t widest = 0;
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (strlen((*c)->name) > widest) widest = strlen((*c)->name);
    heading("Commands");
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (!strncmp((*c)->name, prefix, strlen(prefix)))
            entry((*c)->name, (*c)->summary, (int)widest + 4);
}

static void command_help(const cli_command *command) {
    char synopsis[512];
    cli_synopsis(command, synopsis, sizeof synopsis);
    wrap(command->summary, 0, 0);
    heading("Usage");
    (void)printf("  ");
    wrap(synopsis, 4, 2);
    if (command->text) {
        (void)putchar('\n');
        wrap(command->text, 0, 0);
    }
    const cli_group *group;
    for (size_t i = 0; (group = cli_group_at(command, i)); i++) print_options(group);
    heading("Example");
    (void)printf("  %s\n", command->example);
}

int cli_help(const char *name) {
    const cli_command *command = cli_find(name);
    if (command) {
        command_help(command);
    } else if (cli_family(name)) {
        char prefix[64];
        (void)snprintf(prefix, sizeof prefix, "%s ", name);
        (void)printf("Usage: fullrank %s COMMAND [ARGUMENTS] [OPTIONS]\n", name);
        list_commands(prefix);
        (void)putchar('\n');
        wrap("`fullrank help COMMAND` explains one of them.", 0, 0);
    } else if (*name) {
        return cli_unknown(name);
    } else {
        wrap("fullrank: honest evaluation of link prediction in continuous-time dynamic graphs", 0,
             0);
        heading("Usage");
        (void)printf("  fullrank COMMAND [ARGUMENTS] [OPTIONS]\n");
        list_commands("");
        (void)putchar('\n');
        wrap(
            "`fullrank help COMMAND` or `fullrank COMMAND --help` explains a command, its options "
            "and their defaults. `fullrank --version` shows the build, and `fullrank --cite` shows "
            "how to cite it.",
            0, 0);
    }
    return CLI_OK;
}

static int run_help(cli_call *call) {
    char name[256] = "";
    for (int i = 0; i < call->arguments; i++) {
        if (i) append(name, sizeof name, " ");
        append(name, sizeof name, call->argument[i]);
    }
    return cli_help(name);
}

const cli_command cli_help_command = {
    .name = "help",
    .summary = "Explain the tool or one of its commands",
    .text = "Without a command: the list of all commands.",
    .arguments = "[COMMAND...]",
    .example = "fullrank help version",
    .run = run_help,
};
