/* parse.c - turns argv and config files into the settings of a command.
 *
 * First every word is sorted into options (kept as key and value) and arguments. So config files
 * can be read before any option of the command line takes effect: defaults, then files, then the
 * command line; later values win. An option belongs to the first group that knows its key; the
 * common options come last. Nothing is guessed: an unknown word is an error that names it.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* These options work only on the command line and are handled here. */
static const char *const command_line_only[] = {"config", "set", "help", NULL};

static const fr_option common_options[] = {
    {"threads", FR_OPTION_INT, "0", "N", 0, 4096, offsetof(cli_common, threads),
     "Threads to use, 0 = all cores; results do not depend on it."},
    {"quiet", FR_OPTION_FLAG, "no", NULL, 0, 0, offsetof(cli_common, quiet),
     "Show no progress and no notes; warnings and errors stay."},
    {"verbose", FR_OPTION_FLAG, "no", NULL, 0, 0, offsetof(cli_common, verbose),
     "Also log details, such as how long each unit of a study took."},
    {"json", FR_OPTION_FLAG, "no", NULL, 0, 0, offsetof(cli_common, json),
     "Print the results as one JSON document."},
    {"wide", FR_OPTION_FLAG, "no", NULL, 0, 0, offsetof(cli_common, wide),
     "Print tables with whole lines even on a narrow terminal, not in parts."},
    {"config", FR_OPTION_TEXT, "", "FILE", 0, 0, offsetof(cli_common, config),
     "Read options from a JSON file such as {\"threads\": 2}; the command line overrides them."},
    {"set", FR_OPTION_TEXT, "", "KEY=VALUE", 0, 0, offsetof(cli_common, set),
     "Set any option by its key; may be given many times."},
    {"help", FR_OPTION_FLAG, "no", NULL, 0, 0, offsetof(cli_common, help), "Show this help."},
    {0},
};
static const cli_group common_group = {"Common options", common_options, sizeof(cli_common)};

const fr_option cli_seed_options[] = {
    {"seed", FR_OPTION_INT, "0", "N", 0, 9007199254740992.0, offsetof(cli_seed, seed),
     "Equal seeds give equal results."},
    {0},
};

const cli_group *cli_group_at(const cli_command *command, size_t i) {
    if (i < CLI_MAX_GROUPS && command->groups[i].table) return &command->groups[i];
    bool first_free = i == 0 || (i <= CLI_MAX_GROUPS && command->groups[i - 1].table);
    return first_free ? &common_group : NULL;
}

static const struct {
    char letter;
    const char *key;
} letters[] = {{'o', "output"}, {'m', "metric"}, {'q', "quiet"}, {'h', "help"}};
enum { LETTERS = sizeof letters / sizeof *letters };

char cli_letter(const char *key) {
    for (size_t i = 0; i < LETTERS; i++)
        if (!strcmp(letters[i].key, key)) return letters[i].letter;
    return 0;
}

/* The option with this key and the settings it is stored in. */
typedef struct place {
    const fr_option *option;
    const cli_group *group;
    void *settings;
} place;

static place find_place(cli_call *call, const char *key) {
    const cli_group *group;
    for (size_t i = 0; (group = cli_group_at(call->command, i)); i++) {
        const fr_option *option = fr_options_find(group->table, key);
        if (!option) continue;
        void *settings = group == &common_group ? (void *)&call->common : call->settings[i];
        return (place){option, group, settings};
    }
    return (place){0};
}

static fr_status wrong(fr_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static fr_status wrong(fr_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cli_format(err->message, sizeof err->message, format, args);
    va_end(args);
    return err->code = FR_EUSAGE;
}

/* The keys of all option groups of a command, by number. */
static const char *key_at(const void *command, int index) {
    const cli_group *group;
    for (size_t i = 0; (group = cli_group_at(command, i)); i++)
        for (const fr_option *o = group->table; o->key; o++)
            if (!index--) return o->key;
    return NULL;
}

/* `typed` is the option as the user wrote it, `key` without dashes. */
static fr_status unknown_option(const cli_command *command, const char *typed, const char *key,
                                fr_error *err) {
    const char *near = fr_text_nearest(key, key_at, command);
    if (near) return wrong(err, "unknown option %s, did you mean --%s?", typed, near);
    return wrong(err, "unknown option %s (fullrank %s --help lists all)", typed, command->name);
}

/* Sets an option of a config file or of --set. */
static fr_status set_by_key(void *user, const char *key, const char *value, fr_error *err) {
    cli_call *call = user;
    for (const char *const *k = command_line_only; *k; k++)
        if (!strcmp(*k, key)) return wrong(err, "option %s works on the command line only", key);
    place at = find_place(call, key);
    if (!at.option) return unknown_option(call->command, key, key, err);
    return fr_options_set(at.group->table, at.settings, key, value, err);
}

static fr_status set_pair(cli_call *call, const char *pair, fr_error *err) {
    size_t length = strcspn(pair, "=");
    char key[64];
    if (!pair[length] || !length || length >= sizeof key)
        return wrong(err, "option --set: found \"%s\", expected key=value", pair);
    memcpy(key, pair, length);
    key[length] = 0;
    return set_by_key(call, key, pair + length + 1, err);
}

/* An option as found on the command line. */
typedef struct given {
    place at;
    const char *value;
} given;

/* "-oFILE", "-o FILE", "-q": the key, and the value if it is in the same word. */
static const char *split_letter(const char *word, const char **value) {
    for (size_t i = 0; i < LETTERS; i++) {
        if (word[1] != letters[i].letter) continue;
        if (word[2]) *value = word + 2;
        return letters[i].key;
    }
    return NULL;
}

/* Reads the option at words[*i]; moves *i on if its value is the next word. */
static fr_status take_option(cli_call *call, int count, char **words, int *i, given *out,
                             fr_error *err) {
    char *word = words[*i];
    const char *key = NULL;
    out->value = NULL;
    if (word[1] == '-') {
        char *equals = strchr(word, '=');
        if (equals) {
            *equals = 0; /* argv may be written to; `word` is now the name for messages */
            out->value = equals + 1;
        }
        key = word + 2;
    } else {
        key = split_letter(word, &out->value);
    }
    out->at = key ? find_place(call, key) : (place){0};
    if (!out->at.option && key && !strncmp(key, "no-", 3)) {
        out->at = find_place(call, key + 3);
        if (out->at.option && out->at.option->type == FR_OPTION_FLAG) {
            if (out->value) return wrong(err, "option %s takes no value", word);
            out->value = "no";
            return FR_OK;
        }
        out->at.option = NULL;
    }
    if (!out->at.option) return unknown_option(call->command, word, key ? key : word + 1, err);
    if (out->value) return FR_OK;
    if (out->at.option->type == FR_OPTION_FLAG) {
        out->value = "yes";
        return FR_OK;
    }
    if (*i + 1 >= count) return wrong(err, "option %s needs a value", word);
    out->value = words[++*i];
    if (!strncmp(out->value, "--", 2)) /* more likely a forgotten value than a value like this */
        return wrong(err, "option %s needs a value, found %s", word, out->value);
    return FR_OK;
}

static fr_status apply(cli_call *call, const given *options, int count, fr_error *err) {
    fr_status status = FR_OK;
    for (int i = 0; i < count && !status; i++)
        if (!strcmp(options[i].at.option->key, "config"))
            status = fr_config_read(options[i].value, set_by_key, call, err);
    for (int i = 0; i < count && !status; i++) {
        place at = options[i].at;
        if (!strcmp(at.option->key, "set"))
            status = set_pair(call, options[i].value, err);
        else
            status =
                fr_options_set(at.group->table, at.settings, at.option->key, options[i].value, err);
    }
    return status;
}

/* True if `word` is one of the '|'-separated `values`. */
static bool is_choice(const char *values, size_t size, const char *word) {
    for (size_t start = 0, length = strlen(word); start <= size;) {
        size_t width = strcspn(values + start, "| ");
        if (width > size - start) width = size - start;
        if (width == length && !strncmp(values + start, word, width)) return true;
        start += width + 1;
    }
    return false;
}

/* Checks the arguments against the synopsis. */
static fr_status check_arguments(const cli_call *call, fr_error *err) {
    const char *name = call->command->name;
    const char *synopsis = call->command->arguments ? call->command->arguments : "";
    int next = 0;
    bool any_number = false;
    for (const char *at = synopsis; *at && !any_number;) {
        int length = (int)strcspn(at, " ");
        const char *dots = strstr(at, "...");
        any_number = dots && dots < at + length;
        if (next < call->arguments) {
            if (memchr(at, '|', (size_t)length) &&
                !is_choice(at, (size_t)length, call->argument[next]))
                return wrong(err, "%s: found %s, expected one of %.*s", name, call->argument[next],
                             length, at);
            next++;
        } else if (*at != '[') {
            return wrong(err, "%s: argument %.*s is missing", name, length, at);
        }
        at += length;
        while (*at == ' ') at++;
    }
    if (next == call->arguments || any_number) return FR_OK;
    if (!*synopsis)
        return wrong(err, "%s takes no arguments, found %s", name, call->argument[next]);
    return wrong(err, "%s: found one argument too many, %s, expected %s", name,
                 call->argument[next], synopsis);
}

static bool is_given(cli_call *call, const char *key) {
    char text[2];
    place found = find_place(call, key);
    fr_options_text(found.option, found.settings, text, sizeof text);
    return *text;
}

static fr_status check_required(cli_call *call, fr_error *err) {
    const char *at = call->command->required ? call->command->required : "";
    while (*at) {
        char key[64];
        size_t length = strcspn(at, " ");
        (void)snprintf(key, sizeof key, "%.*s", (int)length, at);
        char *instead = strchr(key, '|');
        if (instead) *instead++ = 0;
        place found = find_place(call, key);
        bool needed = !instead || !is_given(call, instead);
        if (needed && !is_given(call, key))
            return wrong(err, "%s: option --%s %s is missing", call->command->name, key,
                         cli_value_word(found.option));
        at += length;
        while (*at == ' ') at++;
    }
    return FR_OK;
}

static fr_status set_defaults(cli_call *call, fr_error *err) {
    fr_status status = fr_options_defaults(common_options, &call->common, err);
    for (size_t i = 0; i < CLI_MAX_GROUPS && call->command->groups[i].table && !status; i++) {
        const cli_group *group = &call->command->groups[i];
        call->settings[i] = calloc(1, group->size);
        if (!call->settings[i]) {
            (void)wrong(err, "out of memory");
            return err->code = FR_ENOMEM;
        }
        status = fr_options_fill(group->table, call->settings[i], group->size, err);
    }
    return status;
}

/* A request for help is answered even if something else is missing or wrong. The word after --help
 * is its topic, for commands that have topics. */
static bool wants_help(cli_call *call, int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--"); i++) {
        if (strcmp(words[i], "--help") && strcmp(words[i], "-h")) continue;
        if (i + 1 < count && words[i + 1][0] != '-')
            call->argument[call->arguments++] = words[i + 1];
        return true;
    }
    return false;
}

int cli_parse(cli_call *call, int count, char **words) {
    fr_error err = {0};
    fr_status status = set_defaults(call, &err);
    given *options = calloc((size_t)count + 1, sizeof *options);
    call->argument = calloc((size_t)count + 1, sizeof *call->argument);
    int given_count = 0;
    bool options_end = false;
    if (!status && (!options || !call->argument)) {
        (void)wrong(&err, "out of memory");
        status = FR_ENOMEM;
    }
    if (!status && wants_help(call, count, words)) {
        call->common.help = true;
        goto done;
    }
    for (int i = 0; i < count && !status; i++) {
        if (!options_end && !strcmp(words[i], "--"))
            options_end = true;
        else if (!options_end && words[i][0] == '-' && words[i][1])
            status = take_option(call, count, words, &i, &options[given_count++], &err);
        else
            call->argument[call->arguments++] = words[i];
    }
    if (!status) status = apply(call, options, given_count, &err);
    if (!status && call->command->expand) {
        status = call->command->expand(call, &err);
        if (!status) status = apply(call, options, given_count, &err);
    }
    if (!status) status = check_arguments(call, &err);
    if (!status) status = check_required(call, &err);
done:
    free(options);
    return cli_report(status, &err);
}

void cli_parse_free(cli_call *call) {
    for (size_t i = 0; i < CLI_MAX_GROUPS; i++) {
        if (call->settings[i]) fr_options_free(call->command->groups[i].table, call->settings[i]);
        free(call->settings[i]);
    }
    fr_options_free(common_options, &call->common);
    free(call->argument);
}

bool cli_parse_numbers(const char *option, const char *text, cli_numbers *out) {
    out->count = 0;
    for (const char *p = text ? text : ""; *p;) {
        char *end;
        long long value = strtoll(p, &end, 10);
        if (end == p || value < 1 || value > INT32_MAX || (*end && *end != ',') ||
            out->count == CLI_MOST_NUMBERS) {
            (void)cli_usage("option %s: found \"%s\", expected up to %d whole numbers from 1 on, "
                            "such as 1,5,20",
                            option, text, CLI_MOST_NUMBERS);
            return false;
        }
        out->at[out->count++] = value;
        p = end + (*end == ',');
    }
    return true;
}
