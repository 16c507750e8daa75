/* definition.c - see definition.h. */
#include "eval/definition.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool definition_match(const char *text, const char *name, char mark, int64_t *k) {
    size_t length = strlen(name);
    *k = 0;
    if (strncmp(text, name, length) != 0) return false;
    const char *digits = text + length;
    if (!*digits) return true;
    if (*digits++ != mark || *digits < '1' || *digits > '9' || strlen(digits) > 9) return false;
    char *end;
    *k = strtol(digits, &end, 10);
    return !*end;
}

typedef struct registry {
    const fr_definition *(*get)(int index);
} registry;

static const char *name_at(const void *list, int index) {
    const fr_definition *d = ((const registry *)list)->get(index);
    return d ? d->name : NULL;
}

fr_status definition_unknown(const char *kind, const char *text,
                             const fr_definition *(*get)(int index), fr_error *err) {
    char help[64];
    (void)snprintf(help, sizeof help, "`fullrank metrics --help %ss`", kind);
    return text_unknown(kind, text, name_at, &(registry){get}, help, err);
}
