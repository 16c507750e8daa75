/* options.h - the internal side of option tables; the public side is in fullrank.h, chapter 2. */
#ifndef FR_BASE_OPTIONS_H
#define FR_BASE_OPTIONS_H

#include "base/status.h"

#include <jansson.h>

/* True if the option was added after the first release and has its default. Stored or hashed
 * options leave these out, so results of older releases keep their bytes and their meaning. */
bool options_later_default(const fr_option *table, const fr_option *o, const void *settings);

/* Adds every option to `object`, keys with '_' for '-', values with their JSON types. */
fr_status options_to_json(const fr_option *table, const void *settings, json_t *object,
                          fr_error *err);

/* Calls `set` for every entry of an object of plain values, as text, and stops at the first
 * failure; its message starts with `where`. */
fr_status options_from_json(const json_t *object, const char *where, fr_config_set *set, void *user,
                            fr_error *err);

/* The last row of the table of a settings struct that begins with its size. A field that is added
 * after the first release begins at or after the sizeof of the previous release, not in its
 * padding. This row still says where the first added field begins: a struct whose size is 0 is read
 * only up to there, because the program may be of the first release. */
#define OPTIONS_END(type)                                                                          \
    { .offset = sizeof(type), .help = #type }

/* Copies the caller's settings to `out`, a struct of `size` bytes, and checks every option of the
 * table; NULL, or options that are all zero, give the defaults; texts are then NULL, which means
 * the default text. The caller keeps the texts, so do not free `out`. A value out of range is
 * FR_EUSAGE with the message of fr_options_set. Settings that begin with their size may have
 * another size: options beyond it have their defaults, and bytes beyond `size` must be 0. */
fr_status options_settle(const fr_option *table, const void *settings, void *out, size_t size,
                         fr_error *err);

/* Size of an option's field in bytes; 0 if its type is unknown. */
size_t options_width(const fr_option *option);

/* A key with '_' for '-', as in files. */
void options_spell(const char *key, char *out, size_t size);

#endif
