/* protocol.h - what a ranking was made under, as a struct (fullrank.h, chapter 10).
 *
 * One table names its fields. JSON, text and comparison are loops over it, so that a new field is a
 * row there and a value in protocol_of_window.
 */
#ifndef FR_RANK_PROTOCOL_H
#define FR_RANK_PROTOCOL_H

#include "rank/events.h"

#include <jansson.h>

/* Texts are the window's: they are not to be freed. */
fr_protocol_facts protocol_of_window(const fr_window *w, double popularity_power, int64_t met);
/* Adds which of the part's events were ranked. */
void protocol_sample(fr_protocol_facts *protocol, const event_list *events);
/* As RANKS.json has it; NULL if memory is short. */
json_t *protocol_json(const fr_protocol_facts *protocol);
/* Reads it back, texts are the caller's then (fr_options_free), also on failure. A field that is
 * missing, not known or out of range is FR_EINPUT; `where` is for messages. */
fr_status protocol_read(const json_t *object, const char *where, fr_protocol_facts *out,
                        fr_error *err);
/* "window=32768 train=27852 ...", the caller's; NULL if memory is short. */
char *protocol_text(const fr_protocol_facts *protocol);

#endif
