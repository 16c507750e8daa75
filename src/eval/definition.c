/* definition.c - see definition.h. */
#include "eval/definition.h"

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

fr_status definition_unknown(const char *kind, const char *text,
                             const fr_definition *(*get)(int index), fr_error *err) {
    fr_option table[64] = {0}; /* for the nearest one */
    for (int i = 0; i < 63 && get(i); i++) table[i].key = get(i)->name;
    const char *near = fr_options_nearest(table, text);
    if (near) return fail(err, FR_EUSAGE, "%s %s is not known, did you mean %s?", kind, text, near);
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; get(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 get(i)->name);
    return fail(err, FR_EUSAGE, "%s %s is not known, expected %s", kind, text, names);
}
