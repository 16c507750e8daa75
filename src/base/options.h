/* options.h - the library's side of option tables; the rest is in fullrank.h, chapter 2. */
#ifndef FR_BASE_OPTIONS_H
#define FR_BASE_OPTIONS_H

#include "base/status.h"

#include <jansson.h>

/* Adds every option to `object`, keys with '_' for '-', values with their JSON types. */
fr_status options_to_json(const fr_option *table, const void *settings, json_t *object,
                          fr_error *err);

/* A key with '_' for '-', as files spell it. */
void options_spell(const char *key, char *out, size_t size);

#endif
