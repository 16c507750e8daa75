/* definition.h - registries of metrics and samplers: parsing the names that users type. */
#ifndef FR_EVAL_DEFINITION_H
#define FR_EVAL_DEFINITION_H

#include "base/status.h"

/* "uniform-20" is `name` "uniform" with `mark` '-' and number 20: true, and *k is the number, or 0
 * if `text` is the name alone. Numbers go from 1 to 999999999. */
bool definition_match(const char *text, const char *name, char mark, int64_t *k);

/* FR_EUSAGE: "unknown KIND TEXT, did you mean ...?", a name of the registry `get`. */
fr_status definition_unknown(const char *kind, const char *text,
                             const fr_definition *(*get)(int index), fr_error *err);

#endif
