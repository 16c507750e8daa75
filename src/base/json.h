/* json.h - JSON files, on jansson. Values are built with jansson's own functions. */
#ifndef FR_BASE_JSON_H
#define FR_BASE_JSON_H

#include "base/status.h"

#include <jansson.h>

/* Parses a file; *out is the caller's (json_decref). A syntax error names line and column. */
fr_status json_read(const char *path, json_t **out, fr_error *err);
/* Writes indented JSON, atomically; numbers come back with the same bits. Steals `root`, even on
 * failure; NULL (a failed construction) is reported as out of memory. */
fr_status json_write(const char *path, json_t *root, fr_error *err);

/* json_loadb and json_dumps whatever the locale: jansson asks it for the decimal point, and takes
 * one byte of it where there are two. Out of memory, both give NULL and set errno to ENOMEM, where
 * jansson itself may lose characters and go on. */
json_t *json_parse(const char *text, size_t size, size_t flags, json_error_t *at);
char *json_print(const json_t *root, size_t flags);

/* Builds on: a value that cannot be added, or is NULL itself, turns *object or *list into NULL, and
 * so do all that come after. So whatever was built is whole, or json_write reports out of memory.
 * Both steal `value`. */
void json_put(json_t **object, const char *key, json_t *value);
void json_push(json_t **list, json_t *value);

/* A JSON string of any bytes: exact if they are UTF-8, else as fr_text_printable has them. */
json_t *json_text(const char *text);

#endif
