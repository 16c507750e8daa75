/* options.c - option tables (fullrank.h, chapter 2).
 *
 * A table row says everything about an option, so parsing, printing, range checks and help are
 * loops over the table. Command line, config file and manifest exchange values as text.
 */
#include "base/options.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char fold(char c) { return c == '_' ? '-' : c; }

static bool same_key(const char *a, const char *b) {
    for (; *a && fold(*a) == fold(*b); a++, b++) {
    }
    return fold(*a) == fold(*b);
}

const fr_option *fr_options_find(const fr_option *table, const char *key) {
    if (!table || !key) return NULL;
    for (; table->key; table++)
        if (same_key(table->key, key)) return table;
    return NULL;
}

static const char *key_at(const void *table, int index) {
    return ((const fr_option *)table)[index].key;
}

const char *fr_options_nearest(const fr_option *table, const char *key) {
    return table ? fr_text_nearest(key, key_at, table) : NULL;
}

/* The index of `value` in "a|b|c", -1 if it is none of them. */
static int choice_index(const char *values, const char *value) {
    size_t length = strlen(value);
    for (int index = 0;; index++) {
        size_t width = strcspn(values, "|");
        if (width == length && !strncmp(values, value, width)) return index;
        if (!values[width]) return -1;
        values += width + 1;
    }
}

/* ---- structs that begin with their size ---- */

/* No settings struct is this large: the size was never set. */
enum { SIZE_MAX_SANE = 1 << 16 };

/* The last row, which describes the struct. */
static const fr_option *end_of(const fr_option *o) {
    while (o->key) o++;
    return o;
}

/* Size of the caller's struct, where `end` is the last row; SIZE_MAX if the struct has no size. A
 * size of 0 is that of the first release. */
static size_t bytes_of(const fr_option *end, const void *settings) {
    size_t size;
    if (!end->offset) return SIZE_MAX;
    memcpy(&size, settings, sizeof size);
    return size ? size : end->offset;
}

static fr_status check_size(const fr_option *end, size_t size, fr_error *err) {
    if (!end->offset || (size >= end->offset && size <= SIZE_MAX_SANE)) return FR_OK;
    return fail(err, FR_EUSAGE, "%s: found size %zu, expected its sizeof, at least %zu", end->help,
                size, end->offset);
}

/* True if the option is part of a struct of this size. */
static bool has_option(const fr_option *o, size_t bytes) {
    return o->offset + options_width(o) <= bytes;
}

static bool all_zero(const char *bytes, size_t from, size_t to) {
    for (; from < to; from++)
        if (bytes[from]) return false;
    return true;
}

/* ---- values ---- */

static fr_status bad_value(const fr_option *o, const char *value, const char *expected,
                           fr_error *err) {
    return fail(err, FR_EUSAGE, "option %s: found \"%s\", expected %s", o->key, value, expected);
}

/* What an option may be, in words. */
static void say_expected(const fr_option *o, char *out, size_t size) {
    if (o->type == FR_OPTION_INT)
        (void)number_print(out, size, "a whole number from %.0f to %.0f", o->low, o->high);
    else if (o->type == FR_OPTION_REAL)
        (void)number_print(out, size, "a number from %g to %g", o->low, o->high);
    else if (o->type == FR_OPTION_CHOICE)
        (void)snprintf(out, size, "one of %s", o->values);
    else
        (void)snprintf(out, size, "yes or no");
}

/* Compared as whole numbers, because 2^53 and 2^53 + 1 are the same double. */
static bool whole_in_range(const fr_option *o, int64_t number) {
    return number >= (int64_t)o->low && number <= (int64_t)o->high;
}

static fr_status set_value(const fr_option *o, void *settings, const char *value, fr_error *err) {
    void *field = (char *)settings + o->offset;
    char expected[256];
    char *end = NULL;
    errno = 0;
    say_expected(o, expected, sizeof expected);
    switch (o->type) {
    case FR_OPTION_INT: {
        long long number = strtoll(value, &end, 10);
        if (!*value || *end || errno || !whole_in_range(o, number))
            return bad_value(o, value, expected, err);
        *(int64_t *)field = number;
        return FR_OK;
    }
    case FR_OPTION_REAL: {
        double number = number_read(value, &end);
        if (!*value || *end || !(number >= o->low && number <= o->high))
            return bad_value(o, value, expected, err);
        *(double *)field = number;
        return FR_OK;
    }
    case FR_OPTION_TEXT: {
        char *copy = *value ? strdup(value) : NULL;
        if (*value && !copy) return fail_memory(err, strlen(value));
        free(*(char **)field);
        *(char **)field = copy;
        return FR_OK;
    }
    case FR_OPTION_CHOICE: {
        int index = choice_index(o->values, value);
        if (index < 0) return bad_value(o, value, expected, err);
        *(int *)field = index;
        return FR_OK;
    }
    case FR_OPTION_FLAG: {
        static const char words[] = "no|false|0|yes|true|1";
        int index = choice_index(words, value);
        if (index < 0) return bad_value(o, value, expected, err);
        *(bool *)field = index >= 3;
        return FR_OK;
    }
    }
    return FR_OK;
}

fr_status fr_options_set(const fr_option *table, void *settings, const char *key, const char *value,
                         fr_error *err) {
    NEED(table, err);
    NEED(settings, err);
    NEED(key, err);
    NEED(value, err);
    const fr_option *o = fr_options_find(table, key), *end = end_of(table);
    if (o && !has_option(o, bytes_of(end, settings)))
        return fail(err, FR_EUSAGE, "option %s: not in this %s, which has %zu bytes", o->key,
                    end->help, bytes_of(end, settings));
    if (o) return set_value(o, settings, value, err);
    const char *near = fr_options_nearest(table, key);
    return near ? fail(err, FR_EUSAGE, "unknown option %s, did you mean %s?", key, near)
                : fail(err, FR_EUSAGE, "unknown option %s", key);
}

fr_status fr_options_fill(const fr_option *table, void *settings, size_t size, fr_error *err) {
    NEED(table, err);
    NEED(settings, err);
    const fr_option *end = end_of(table);
    TRY(check_size(end, size, err));
    if (end->offset) {
        memset(settings, 0, size);
        memcpy(settings, &size, sizeof size);
    }
    for (const fr_option *o = table; o->key; o++) {
        if (!has_option(o, bytes_of(end, settings))) continue;
        if (o->type == FR_OPTION_TEXT) *(char **)((char *)settings + o->offset) = NULL;
        TRY(set_value(o, settings, o->standard, err));
    }
    return FR_OK;
}

/* True if a value set by a program is one that a user could have typed. */
static bool in_range(const fr_option *o, const void *field) {
    if (o->type == FR_OPTION_INT) return whole_in_range(o, *(const int64_t *)field);
    if (o->type == FR_OPTION_REAL) {
        double number = *(const double *)field;
        return number >= o->low && number <= o->high;
    }
    if (o->type == FR_OPTION_CHOICE) {
        int choices = 1, index = *(const int *)field;
        for (const char *c = o->values; *c; c++) choices += *c == '|';
        return index >= 0 && index < choices;
    }
    /* any other byte is not a valid bool */
    return o->type != FR_OPTION_FLAG || *(const unsigned char *)field <= 1;
}

static fr_status check_value(const fr_option *o, const void *settings, fr_error *err) {
    const void *field = (const char *)settings + o->offset;
    if (in_range(o, field)) return FR_OK;
    char found[64], expected[256];
    say_expected(o, expected, sizeof expected);
    if (o->type == FR_OPTION_CHOICE)
        (void)snprintf(found, sizeof found, "%d", *(const int *)field);
    else if (o->type == FR_OPTION_FLAG)
        (void)snprintf(found, sizeof found, "%d", *(const unsigned char *)field);
    else
        fr_options_text(o, settings, found, sizeof found);
    return bad_value(o, found, expected, err);
}

size_t options_width(const fr_option *o) {
    switch (o->type) {
    case FR_OPTION_INT: return sizeof(int64_t);
    case FR_OPTION_REAL: return sizeof(double);
    case FR_OPTION_TEXT: return sizeof(char *);
    case FR_OPTION_CHOICE: return sizeof(int);
    case FR_OPTION_FLAG: return sizeof(bool);
    }
    return 0;
}

/* Copies what both the caller's struct and ours have; the rest is 0. */
static fr_status copy_settings(const fr_option *end, const void *settings, char *out, size_t size,
                               fr_error *err) {
    size_t given = size;
    memset(out, 0, size);
    if (end->offset) {
        memcpy(&given, settings, sizeof given);
        if (!given && !all_zero(settings, 0, end->offset))
            return fail(err, FR_EUSAGE, "%s: a field is set, but size is 0, expected its sizeof",
                        end->help);
        if (!given) return FR_OK;
        TRY(check_size(end, given, err));
        if (given > size && !all_zero(settings, size, given))
            return fail(err, FR_EUSAGE,
                        "%s: a field after its first %zu bytes is set, which this version of the "
                        "library does not know",
                        end->help, size);
    }
    memcpy(out, settings, given < size ? given : size);
    return FR_OK;
}

/* True if the caller has set any option. */
static bool is_set(const fr_option *table, const char *settings) {
    for (const fr_option *o = table; o->key; o++)
        if (!all_zero(settings, o->offset, o->offset + options_width(o))) return true;
    return false;
}

fr_status options_settle(const fr_option *table, const void *settings, void *out, size_t size,
                         fr_error *err) {
    const fr_option *end = end_of(table);
    memset(out, 0, size);
    if (settings) TRY(copy_settings(end, settings, out, size, err));
    size_t given = settings ? bytes_of(end, settings) : 0;
    bool set = is_set(table, out);
    for (const fr_option *o = table; o->key; o++) {
        if (set && has_option(o, given))
            TRY(check_value(o, out, err));
        else if (o->type != FR_OPTION_TEXT)
            TRY(set_value(o, out, o->standard, err));
    }
    if (end->offset) memcpy(out, &size, sizeof size);
    return FR_OK;
}

void fr_options_text(const fr_option *o, const void *settings, char *out, size_t size) {
    if (!out || !size) return;
    *out = 0;
    if (!o || !settings) return;
    if (!has_option(o, bytes_of(end_of(o), settings))) {
        (void)snprintf(out, size, "%s", o->standard);
        return;
    }
    const void *field = (const char *)settings + o->offset;
    switch (o->type) {
    case FR_OPTION_INT:
        (void)snprintf(out, size, "%lld", (long long)*(const int64_t *)field);
        break;
    case FR_OPTION_REAL: (void)text_real(*(const double *)field, false, out, size); break;
    case FR_OPTION_TEXT: {
        const char *text = *(char *const *)field;
        (void)snprintf(out, size, "%s", text ? text : "");
        break;
    }
    case FR_OPTION_CHOICE: {
        const char *word = o->values;
        if (!in_range(o, field)) break; /* not one of the choices: it has no name */
        for (int i = *(const int *)field; i > 0; i--) word += strcspn(word, "|") + 1;
        (void)snprintf(out, size, "%.*s", (int)strcspn(word, "|"), word);
        break;
    }
    case FR_OPTION_FLAG:
        (void)snprintf(out, size, "%s", *(const bool *)field ? "yes" : "no");
        break;
    }
}

void fr_options_free(const fr_option *table, void *settings) {
    if (!table || !settings) return;
    size_t bytes = bytes_of(end_of(table), settings);
    for (; table->key; table++) {
        if (table->type != FR_OPTION_TEXT || !has_option(table, bytes)) continue;
        char **text = (char **)((char *)settings + table->offset);
        free(*text);
        *text = NULL;
    }
}

void options_spell(const char *key, char *out, size_t size) {
    (void)snprintf(out, size, "%s", key);
    for (char *c = out; *c; c++) *c = *c == '-' ? '_' : *c;
}

bool options_later_default(const fr_option *table, const fr_option *o, const void *settings) {
    char text[80];
    while (table->key) table++;
    if (o->offset < table->offset) return false;
    fr_options_text(o, settings, text, sizeof text);
    return !strcmp(text, o->standard);
}

fr_status options_to_json(const fr_option *table, const void *settings, json_t *object,
                          fr_error *err) {
    for (const fr_option *o = table; o->key; o++) {
        const void *field = (const char *)settings + o->offset;
        char text[64];
        json_t *value = NULL;
        switch (o->type) {
        case FR_OPTION_INT: value = json_integer(*(const int64_t *)field); break;
        case FR_OPTION_REAL: value = json_real(*(const double *)field); break;
        case FR_OPTION_FLAG: value = json_boolean(*(const bool *)field); break;
        case FR_OPTION_TEXT:
            value = json_text(*(char *const *)field ? *(char *const *)field : "");
            break;
        default: fr_options_text(o, settings, text, sizeof text); value = json_string(text);
        }
        char key[64];
        options_spell(o->key, key, sizeof key);
        if (json_object_set_new(object, key, value)) return fail_memory(err, sizeof *value);
    }
    return FR_OK;
}

/* A JSON scalar as option text; false for arrays, objects and null. */
static bool scalar_text(const json_t *value, char *out, size_t size) {
    if (json_is_string(value))
        return snprintf(out, size, "%s", json_string_value(value)) < (int)size;
    if (json_is_boolean(value))
        return snprintf(out, size, "%s", json_is_true(value) ? "yes" : "no");
    if (json_is_integer(value))
        return snprintf(out, size, "%lld", (long long)json_integer_value(value));
    if (json_is_real(value)) return number_print(out, size, "%.17g", json_real_value(value));
    return false;
}

fr_status options_from_json(const json_t *object, const char *where, fr_config_set *set, void *user,
                            fr_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char text[4096];
        fr_error inner = {0};
        fr_status status;
        if (!scalar_text(value, text, sizeof text))
            status =
                fail(&inner, FR_EUSAGE, "option %s: expected a number, a text or true/false", key);
        else
            status = set(user, key, text, &inner);
        if (status) return fail(err, status, "%s: %s", where, inner.message);
    }
    return FR_OK;
}

fr_status fr_config_read(const char *path, fr_config_set *set, void *user, fr_error *err) {
    json_t *root = NULL;
    NEED(path, err);
    NEED(set, err);
    TRY(json_read(path, &root, err));
    fr_status status =
        json_is_object(root)
            ? options_from_json(root, path, set, user, err)
            : fail(err, FR_EUSAGE, "%s: found no JSON object, expected {\"option\": value, ...}",
                   path);
    json_decref(root);
    return status;
}
