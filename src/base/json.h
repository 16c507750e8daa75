/* json.h - JSON files, on jansson. Values are built with jansson's own functions. */
#ifndef FR_BASE_JSON_H
#define FR_BASE_JSON_H

#include "base/status.h"

#include <jansson.h>

/* Parses a file; the caller owns *out (json_decref). A syntax error names line and column. */
fr_status json_read(const char *path, json_t **out, fr_error *err);
/* Writes indented JSON, atomically; numbers come back with the same bits. Takes the reference
 * to `root`, even on failure; NULL (a failed construction) is reported as out of memory. */
fr_status json_write(const char *path, json_t *root, fr_error *err);

/* json_loadb and json_dumps for any locale. jansson takes the decimal point from the locale, and
 * only one byte of it. If memory runs out, both return NULL and set errno to ENOMEM; jansson alone
 * may lose characters and continue. */
json_t *json_parse(const char *text, size_t size, size_t flags, json_error_t *at);
char *json_print(const json_t *root, size_t flags);

/* Add a value. If it cannot be added, or is NULL, *object or *list becomes NULL and stays NULL. So
 * the result is complete, or json_write reports out of memory. Both take the reference to `value`.
 */
void json_put(json_t **object, const char *key, json_t *value);
void json_push(json_t **list, json_t *value);

/* A JSON string of any bytes: exact if they are UTF-8, otherwise as by fr_text_printable. */
json_t *json_text(const char *text);

#endif
