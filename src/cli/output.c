/* output.c - results on stdout: numbers people can read, lines in columns, JSON.
 *
 * JSON is written here and not by json_dumpf, because jansson prints all numbers with the same
 * precision: 17 digits show 0.1 as 0.10000000000000001, and fewer lose bits. Here each number gets
 * the fewest of 15, 16 or 17 digits that read back as the same double. jansson prints the scalars.
 */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_COLUMN = 24 };

cli_text cli_count(int64_t n) {
    char digits[24];
    cli_text out;
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > (n < 0) && (length - i) % 3 == 0) out.s[at++] = ',';
        out.s[at++] = digits[i];
    }
    out.s[at] = 0;
    return out;
}

cli_text cli_share(double part, double whole) {
    cli_text out = {"-"};
    if (whole != 0) (void)snprintf(out.s, sizeof out.s, "%.2f%%", 100 * part / whole);
    return out;
}

cli_text cli_megabytes(uint64_t bytes) {
    cli_text out;
    (void)snprintf(out.s, sizeof out.s, "%.1f", (double)bytes / 1e6);
    return out;
}

cli_text cli_duration(double seconds) {
    cli_text out;
    int64_t s = seconds < 1e9 ? (int64_t)seconds : 1000000000;
    if (s < 3600)
        (void)snprintf(out.s, sizeof out.s, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        (void)snprintf(out.s, sizeof out.s, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60),
                       (int)(s % 60));
    return out;
}

cli_text cli_key(const char *name) {
    cli_text out;
    size_t n = 0;
    for (; *name && n < sizeof out.s - 1; name++)
        if (*name != '@') out.s[n++] = *name == '-' ? '_' : *name;
    out.s[n] = 0;
    return out;
}

const char *cli_visible(const char *text) {
    static struct kept {
        struct kept *next;
        char text[];
    } * all; /* few and short: names of files and scorers */
    size_t size = fr_text_printable(text, NULL, 0) + 1;
    if (size == strlen(text) + 1) return text; /* escapes are longer than the original */
    struct kept *one = malloc(sizeof *one + size);
    if (!one) return "?";
    one->next = all;
    all = one;
    (void)fr_text_printable(text, one->text, size);
    return one->text;
}

void cli_pair(const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)printf("%-*s ", KEY_COLUMN - 1, key);
    (void)vprintf(format, args);
    (void)putchar('\n');
    va_end(args);
}

json_t *cli_json_real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* True if something could not be added to the output. */
static bool json_lost;

void cli_json_put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value)) json_lost = true;
}

void cli_json_push(json_t *list, json_t *value) {
    if (json_array_append_new(list, value)) json_lost = true;
}

void cli_json_join(json_t *object, json_t *more) {
    const char *key;
    json_t *value;
    if (!object || !more) json_lost = true;
    json_object_foreach(more, key, value) { /* json_object_update_missing hides failures */
        if (!json_object_get(object, key)) cli_json_put(object, key, json_incref(value));
    }
    json_decref(more);
}

bool cli_json_whole(void) {
    if (json_lost) cli_error("out of memory");
    return !json_lost;
}

json_t *cli_json_text(const char *text) {
    json_error_t error;
    json_t *string = json_pack_ex(&error, 0, "s", text);
    if (string || json_error_code(&error) != json_error_invalid_utf8) return string;
    return json_string(cli_visible(text));
}

static bool print_scalar(const json_t *value) {
    char *text = NULL;
    for (size_t digits = 15; digits <= 17; digits++) {
        free(text);
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (!text || !json_is_real(value) || strtod(text, NULL) == json_real_value(value)) break;
    }
    if (text) (void)fputs(text, stdout);
    free(text);
    return text != NULL;
}

static void new_line(bool first, int depth) {
    (void)printf("%s\n%*s", first ? "" : ",", 2 * depth, "");
}

static bool print_value(json_t *value, int depth) {
    bool object = json_is_object(value), first = true, ok = true;
    if (!object && !json_is_array(value)) return print_scalar(value);
    (void)putchar(object ? '{' : '[');
    if (object) {
        const char *key;
        json_t *member;
        json_object_foreach(value, key, member) {
            json_t *name = json_string(key);
            new_line(first, depth + 1);
            ok = ok && name && print_scalar(name) && fputs(": ", stdout) != EOF &&
                 print_value(member, depth + 1);
            json_decref(name);
            first = false;
        }
    } else {
        size_t i;
        json_t *member;
        json_array_foreach(value, i, member) {
            new_line(first, depth + 1);
            ok = ok && print_value(member, depth + 1);
            first = false;
        }
    }
    if (!first) (void)printf("\n%*s", 2 * depth, "");
    (void)putchar(object ? '}' : ']');
    return ok;
}

int cli_print_json(json_t *root) {
    if (!cli_json_whole()) {
        json_decref(root);
        return CLI_FAILED;
    }
    bool ok = root && print_value(root, 0);
    json_decref(root);
    (void)putchar('\n');
    if (ok || ferror(stdout)) return CLI_OK; /* main handles the second case */
    cli_error("out of memory");
    return CLI_FAILED;
}
