/* man.c - the man page and the completions of bash and zsh, written from the tables.
 *
 * `cmake --install` stores what these commands print, so the installed page always belongs to the
 * installed tool. The page uses the man(7) macros, which every formatter knows. Completions offer
 * commands, options, and the words that an option or argument allows; for all other values they
 * offer files. */
#include "cli.h"

#include <string.h>

/* A flag that users have a reason to turn off. */
static bool on_by_default(const fr_option *o) {
    return o->type == FR_OPTION_FLAG && !strcmp(o->standard, "yes");
}

/* ---- Man page ---- */

#define MAN_DATE "2026-11-15" /* of the page's text; a build date would change every build */

/* Prints text as roff, so that nothing in it is taken for a request. Typed text keeps ASCII hyphens
 * and its lines; the rest is broken into short lines, as mandoc -Tlint wants. */
static void roff(const char *text, bool typed) {
    int column = 0;
    for (; *text; text++) {
        if (!column && (*text == '.' || *text == '\'')) (void)fputs("\\&", stdout);
        column++;
        if (*text == '\\')
            (void)fputs("\\e", stdout);
        else if (*text == '\'')
            (void)fputs("\\(aq", stdout);
        else if (*text == '`')
            (void)fputs("\\(ga", stdout);
        else if (*text == '-' && typed)
            (void)fputs("\\-", stdout);
        else if (*text == '\n')
            (void)fputs("\n.PP\n", stdout);
        else if (*text == ' ' && !typed && column > 55)
            (void)putchar('\n');
        else {
            (void)putchar(*text);
            continue;
        }
        if (*text == '\n' || *text == ' ') column = 0;
    }
}

static void man_typed(const char *text) {
    (void)fputs(".PP\n.RS 4\n.nf\n", stdout);
    roff(text, true);
    (void)fputs("\n.fi\n.RE\n", stdout);
}

static void man_options(const cli_group *group) {
    for (const fr_option *o = group->table; o->key; o++) {
        char letter = cli_letter(o->key), facts[256];
        const char *word = cli_value_word(o);
        (void)fputs(".TP\n", stdout);
        if (letter) (void)printf("\\fB\\-%c\\fR, ", letter);
        (void)fputs("\\fB\\-\\-", stdout);
        if (on_by_default(o)) (void)fputs("\\fR[\\fBno\\-\\fR]\\fB", stdout);
        roff(o->key, true);
        (void)fputs("\\fR", stdout);
        if (*word) {
            (void)fputs(" \\fI", stdout);
            roff(word, true);
            (void)fputs("\\fR", stdout);
        }
        (void)putchar('\n');
        roff(o->help, false);
        cli_option_facts(o, facts, sizeof facts);
        if (*facts) {
            (void)fputs("\n(", stdout);
            roff(facts, true);
            (void)putchar(')');
        }
        (void)putchar('\n');
    }
}

static void man_command(const cli_command *command) {
    char synopsis[512];
    (void)printf(".SS \"fullrank %s\"\n", command->name);
    roff(command->summary, false);
    (void)fputs(".\n", stdout);
    cli_synopsis(command, synopsis, sizeof synopsis);
    man_typed(synopsis);
    if (command->text) {
        (void)fputs(".PP\n", stdout);
        roff(command->text, false);
        (void)putchar('\n');
    }
    for (size_t i = 0; i < CLI_MAX_GROUPS && command->groups[i].table; i++) {
        (void)fputs(".PP\n", stdout);
        roff(command->groups[i].heading, false);
        (void)fputs(":\n", stdout);
        man_options(&command->groups[i]);
    }
    (void)fputs(".PP\nExample:\n", stdout);
    man_typed(command->example);
}

static int run_man(cli_call *call) {
    (void)printf(".TH FULLRANK 1 \"" MAN_DATE "\" \"fullrank %s\" \"User Commands\"\n"
                 ".SH NAME\n"
                 "fullrank \\- honest evaluation of link prediction in dynamic graphs\n"
                 ".SH SYNOPSIS\n"
                 "\\fBfullrank\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
                 ".SH DESCRIPTION\n"
                 "fullrank ranks the true destination of every test event of a\n"
                 "continuous-time dynamic graph among all destinations of a catalog,\n"
                 "without sampling.\n"
                 "Each command does one step and leaves files that other commands and\n"
                 "other tools can read.\n"
                 "Results go to standard output; notes, warnings, errors and progress go\n"
                 "to standard error.\n"
                 ".SH COMMANDS\n",
                 fr_version_get().version);
    for (const cli_command *const *c = cli_commands; *c; c++) man_command(*c);
    size_t common = 0;
    while (cli_group_at(call->command, common + 1)) common++;
    (void)fputs(".SH OPTIONS\nEvery command has these options.\n"
                "A value may follow as the next word or after an equals sign, a flag\n"
                "is turned off by \\fB\\-\\-no\\-\\fIFLAG\\fR, and \\fB\\-\\-\\fR ends the\n"
                "options.\n",
                stdout);
    man_options(cli_group_at(call->command, common));
    (void)fputs(".SH CONFIGURATION FILES\n"
                "A file given by \\fB\\-\\-config\\fR contains one JSON object whose members\n"
                "are options of the command, without the leading hyphens:\n"
                ".PP\n.RS 4\n.nf\n{\"threads\": 2, \"quiet\": true}\n.fi\n.RE\n"
                ".PP\n"
                "Options on the command line override those of the file.\n"
                ".SH EXIT STATUS\n"
                ".TP\n0\nSuccess.\n"
                ".TP\n1\nThe request failed; the message says why.\n"
                ".TP\n2\nWrong usage; the message names the option and the nearest known one.\n"
                ".TP\n130\nInterrupted (SIGINT, SIGTERM, SIGHUP). No incomplete output is left.\n"
                "A second interrupt ends the process at once.\n"
                ".SH ENVIRONMENT\n"
                ".TP\n\\fBNO_COLOR\\fR\nIf set and not empty, no colours and no bold text.\n"
                ".TP\n\\fBTMPDIR\\fR\nDirectory for temporary files; /tmp if not set.\n"
                ".TP\n\\fBXDG_CACHE_HOME\\fR\nDirectory of caches; $HOME/.cache if not set. "
                "fullrank/sha256 in it remembers the hashes of large score files.\n",
                stdout);
    return CLI_OK;
}

/* ---- Completions ---- */

/* Calls `each` for the first words of all commands, or for the second words after `family`. */
static void each_word(const char *family, void (*each)(const char *word, int length)) {
    size_t skip = family ? strlen(family) + 1 : 0;
    for (const cli_command *const *c = cli_commands; *c; c++) {
        const char *name = (*c)->name;
        if (family && (strncmp(name, family, skip - 1) != 0 || name[skip - 1] != ' ')) continue;
        int length = (int)strcspn(name + skip, " ");
        bool met = false; /* the first word of a family is listed once */
        for (const cli_command *const *d = cli_commands; d != c && !met; d++)
            met = !family && !strncmp((*d)->name, name, (size_t)length) &&
                  (*d)->name[length] == ' ' && name[length] == ' ';
        if (!met) each(name + skip, length);
    }
}

static void word_and_blank(const char *word, int length) { (void)printf("%.*s ", length, word); }

/* Prints "a|b|c" with blanks for bars, without brackets and dots. */
static void choices(const char *values) {
    for (; *values && *values != ' '; values++) {
        if (*values == '|')
            (void)putchar(' ');
        else if (!strchr("[].", *values))
            (void)putchar(*values);
    }
}

/* Offers only words that a user can type, not an argument's name such as IN. */
static const char *argument_choices(const cli_command *command) {
    return command->arguments && strchr(command->arguments, '|') ? command->arguments : NULL;
}

static void bash_family(const char *word, int length) {
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", length, word);
    if (!cli_family(name)) return;
    (void)printf("    %s) ((at == 2)) && words='", name);
    each_word(name, word_and_blank);
    (void)printf("'; command=\"%s ${line[1]}\" ;;\n", name);
}

/* How a scorer can begin. */
static const char scorer_words[] = "baseline: plugin: scores: factors: oracle";

static void bash_command(const cli_command *command) {
    const cli_group *group;
    const char *arguments = argument_choices(command);
    (void)printf("    '%s')\n        case $previous in\n", command->name);
    for (size_t i = 0; (group = cli_group_at(command, i)); i++)
        for (const fr_option *o = group->table; o->key; o++) {
            char letter = cli_letter(o->key);
            if (o->type == FR_OPTION_FLAG) continue;
            (void)printf("        --%s", o->key);
            if (letter) (void)printf("|-%c", letter);
            (void)fputs(") words='", stdout);
            if (o->type == FR_OPTION_CHOICE) choices(o->values);
            if (!strcmp(o->key, "scorer")) (void)fputs(scorer_words, stdout);
            (void)fputs("' ;;\n", stdout);
        }
    (void)fputs("        *) if [[ $word == -* ]]; then words='", stdout);
    for (size_t i = 0; (group = cli_group_at(command, i)); i++)
        for (const fr_option *o = group->table; o->key; o++)
            (void)printf("--%s%s ", on_by_default(o) ? "no-" : "", o->key);
    (void)fputs("'", stdout);
    if (arguments) {
        (void)fputs("; else words='", stdout);
        choices(arguments);
        (void)fputs("'", stdout);
    }
    (void)fputs("; fi ;;\n        esac ;;\n", stdout);
}

/* The tool itself lists the names of baselines, and the options of baselines and plug-ins. */
#define OPTIONS_OF "2>/dev/null | sed -n 's/^    \\([a-z0-9-]*\\)=.*/\\1=/p'"
static const char bash_scorer[] =
    "_fullrank_scorer() { # baseline|plugin WORD\n"
    "    local tool=${COMP_WORDS[0]} list=baselines words\n"
    "    [[ $1 == plugin ]] && list=plugin\n"
    "    compopt -o nospace 2>/dev/null\n"
    "    if [[ $2 == *,* ]]; then\n"
    "        words=$(\"$tool\" $list \"${2%%,*}\" " OPTIONS_OF ")\n"
    "        COMPREPLY=($(compgen -P \"${2%,*},\" -W \"$words\" -- \"${2##*,}\"))\n"
    "    elif [[ $1 == baseline ]]; then\n"
    "        words=$(\"$tool\" baselines | sed -n 's/^\\([a-z-]*\\): .*/\\1/p')\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$2\"))\n"
    "    fi\n"
    "}\n";

/* For bash, `=` and `:` are separate words: --order=st arrives as `--order`, `=`, `st`. */
static void bash_script(void) {
    (void)fputs("# bash completion of fullrank, written by `fullrank completions bash`\n", stdout);
    (void)fputs(bash_scorer, stdout);
    (void)fputs("_fullrank() {\n"
                "    local at=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]} words= command\n"
                "    local previous=${COMP_WORDS[COMP_CWORD-1]} line=(\"${COMP_WORDS[@]:1}\")\n"
                "    if [[ $word == = ]]; then word=\n"
                "    elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                "    COMPREPLY=()\n"
                "    if [[ $word == : ]]; then _fullrank_scorer \"$previous\" ''; return; fi\n"
                "    if [[ $previous == : ]]; then\n"
                "        _fullrank_scorer \"${COMP_WORDS[COMP_CWORD-2]}\" \"$word\"; return\n"
                "    fi\n"
                "    if [[ ${line[0]} == help && $word != -* ]] && ((at > 1)); then\n"
                "        line=(\"${line[@]:1}\"); ((at--))\n"
                "    fi\n"
                "    case ${line[0]} in\n",
                stdout);
    each_word(NULL, bash_family);
    (void)fputs("    *) command=${line[0]} ;;\n    esac\n"
                "    ((at == 1)) && words='",
                stdout);
    each_word(NULL, word_and_blank);
    (void)fputs("--help --version --cite'\n"
                "    [[ $words ]] || case $command in\n",
                stdout);
    for (const cli_command *const *c = cli_commands; *c; c++) bash_command(*c);
    (void)fputs("    esac\n"
                "    [[ $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "}\n"
                "complete -o bashdefault -o default -F _fullrank fullrank\n",
                stdout);
}

/* Prints text inside single quotes of zsh, and escapes the characters that end an explanation. */
static void zsh_text(const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            (void)printf("\\%c", *text);
        else
            (void)putchar(*text);
    }
}

/* Prints 'word:summary' for each command below `family`; a family itself has no summary. */
static const char *zsh_below;
static void zsh_word(const char *word, int length) {
    char name[128];
    (void)snprintf(name, sizeof name, "%s%s%.*s", zsh_below ? zsh_below : "", zsh_below ? " " : "",
                   length, word);
    const cli_command *command = cli_find(name);
    (void)printf("'%.*s:", length, word);
    zsh_text(command ? command->summary : "a group of commands");
    (void)fputs("' ", stdout);
}

static void zsh_words(const char *family) {
    zsh_below = family;
    (void)fputs("words_here=(", stdout);
    each_word(family, zsh_word);
    (void)fputs("); _describe command words_here", stdout);
}

static void zsh_family(const char *word, int length) {
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", length, word);
    if (!cli_family(name)) return;
    (void)printf("    %s) if ((CURRENT == 3)); then ", name);
    zsh_words(name);
    (void)fputs("; return; fi\n        command=\"$words[2] $words[3]\"; shift words; ((CURRENT--)) "
                ";;\n",
                stdout);
}

static void zsh_option(const fr_option *o) {
    char letter = cli_letter(o->key);
    bool flag = o->type == FR_OPTION_FLAG;
    if (letter) (void)printf(" \\\n        '-%c%s[", letter, flag ? "" : "+");
    for (int twice = letter ? 0 : 1; twice < 2; twice++) {
        if (twice)
            (void)printf(" \\\n        '--%s%s%s[", on_by_default(o) ? "no-" : "", o->key,
                         flag ? "" : "=");
        if (twice && on_by_default(o)) (void)fputs("Not: ", stdout);
        zsh_text(o->help);
        (void)putchar(']');
        if (!flag) {
            (void)printf(":%s:", o->key);
            if (o->type == FR_OPTION_CHOICE) {
                (void)putchar('(');
                choices(o->values);
                (void)putchar(')');
            } else {
                (void)fputs(strcmp(o->key, "scorer") ? "_files" : "_fullrank_scorer", stdout);
            }
        }
        (void)putchar('\'');
    }
}

static const char zsh_scorer[] =
    "_fullrank_scorer() {\n"
    "    local word=$PREFIX list=baselines\n"
    "    if [[ $word == (baseline|plugin):*,* ]]; then\n"
    "        [[ $word == plugin:* ]] && list=plugin\n"
    "        compset -P '*,'\n"
    "        compadd -S '' -- ${(f)\"$(fullrank $list ${${word#*:}%%,*} " OPTIONS_OF ")\"}\n"
    "    elif [[ $word == baseline:* ]]; then\n"
    "        compset -P 'baseline:'\n"
    "        compadd -- ${(f)\"$(fullrank baselines | sed -n 's/^\\([a-z-]*\\): .*/\\1/p')\"}\n"
    "    elif compset -P '(plugin|scores|factors):'; then _files\n"
    "    else compadd -S '' -- baseline: plugin: scores: factors:; compadd oracle; _files\n"
    "    fi\n"
    "}\n";

static void zsh_script(void) {
    (void)fputs("#compdef fullrank\n"
                "# zsh completion of fullrank, written by `fullrank completions zsh`\n",
                stdout);
    (void)fputs(zsh_scorer, stdout);
    (void)fputs("_fullrank() {\n"
                "    local -a words_here\n"
                "    if [[ $words[2] == help && $words[3] != -* ]] && ((CURRENT > 2)); then\n"
                "        shift words; ((CURRENT--))\n"
                "    fi\n"
                "    local command=$words[2]\n"
                "    if ((CURRENT == 2)); then ",
                stdout);
    zsh_words(NULL);
    (void)fputs("; return; fi\n    case $words[2] in\n", stdout);
    each_word(NULL, zsh_family);
    (void)fputs("    esac\n    shift words; ((CURRENT--))\n    case $command in\n", stdout);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        const cli_group *group;
        const char *arguments = argument_choices(*c);
        (void)printf("    '%s') _arguments", (*c)->name);
        for (size_t i = 0; (group = cli_group_at(*c, i)); i++)
            for (const fr_option *o = group->table; o->key; o++) zsh_option(o);
        (void)fputs(" \\\n        '*:argument:", stdout);
        if (arguments) {
            (void)putchar('(');
            choices(arguments);
            (void)fputs(")' ;;\n", stdout);
        } else {
            (void)fputs("_files' ;;\n", stdout);
        }
    }
    (void)fputs("    esac\n}\n"
                "if [[ $funcstack[1] == _fullrank ]]; then _fullrank \"$@\"\n"
                "else compdef _fullrank fullrank; fi\n",
                stdout);
}

static int run_completions(cli_call *call) {
    if (!strcmp(call->argument[0], "bash"))
        bash_script();
    else
        zsh_script();
    return CLI_OK;
}

const cli_command cli_man_command = {
    .name = "man",
    .summary = "Print the man page",
    .text = "In roff, for man(1): an installed fullrank has it already.",
    .example = "fullrank man > fullrank.1",
    .run = run_man,
};

const cli_command cli_completions_command = {
    .name = "completions",
    .summary = "Print a completion script for bash or zsh",
    .text = "An installed fullrank has both already.",
    .arguments = "bash|zsh",
    .example = "fullrank completions bash > fullrank.bash",
    .run = run_completions,
};
