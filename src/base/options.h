/* options.h - the library's side of option tables; the rest is in fullrank.h, chapter 2. */
#ifndef FR_BASE_OPTIONS_H
#define FR_BASE_OPTIONS_H

#include "base/status.h"

#include <jansson.h>

/* Has the option come after the first release, and is it at its default? Where a set of options is
 * stored or hashed, such ones are left out: so what older releases made keeps its bytes and its
 * meaning. */
bool options_later_default(const fr_option *table, const fr_option *o, const void *settings);

/* Adds every option to `object`, keys with '_' for '-', values with their JSON types. */
fr_status options_to_json(const fr_option *table, const void *settings, json_t *object,
                          fr_error *err);

/* Calls `set` for every entry of an object of plain values, as text, and stops at the first
 * failure; `where` stands in front of its message. */
fr_status options_from_json(const json_t *object, const char *where, fr_config_set *set, void *user,
                            fr_error *err);

/* The last row of the table of a settings struct that begins with its size. A field that is added
 * after the first release begins at or after the sizeof of the release before, not in its padding,
 * and this row goes on to say where the first such field begins: a struct whose size is 0 is read
 * no further, since the program may be of the first release. */
#define OPTIONS_END(type)                                                                          \
    { .offset = sizeof(type), .help = #type }

/* Copies the caller's settings to `out`, a struct of `size` bytes, and checks every option of the
 * table; NULL, or options that are all zero, give the defaults, texts NULL, which consumers take
 * for the default text. Texts stay the caller's: `out` is not to be freed. A value out of range is
 * FR_EUSAGE with the words of fr_options_set. Settings that begin with their size may have another
 * one: options after it have their defaults; what lies beyond `size` must be 0. */
fr_status options_settle(const fr_option *table, const void *settings, void *out, size_t size,
                         fr_error *err);

/* Bytes of the field of an option; 0 if its type is not known. */
size_t options_width(const fr_option *option);

/* A key with '_' for '-', as files spell it. */
void options_spell(const char *key, char *out, size_t size);

#endif
