/* protocol.h - the protocol of a ranking as a struct (fullrank.h, chapter 10).
 *
 * One table names its fields. JSON, text and comparison are loops over it, so a new field needs
 * only a row there and a value in protocol_of_window.
 */
#ifndef FR_RANK_PROTOCOL_H
#define FR_RANK_PROTOCOL_H

#include "rank/events.h"

#include <jansson.h>

/* The window owns the texts. */
fr_protocol_facts protocol_of_window(const fr_window *w, double popularity_power, int64_t met);
/* Adds which of the part's events were ranked. */
void protocol_sample(fr_protocol_facts *protocol, const event_list *events);
/* As in RANKS.json; NULL = out of memory. */
json_t *protocol_json(const fr_protocol_facts *protocol);
/* Reads it back; the caller frees the texts (fr_options_free), even on failure. A field that is
 * missing, unknown or out of range is FR_EINPUT; `where` is for messages. */
fr_status protocol_read(const json_t *object, const char *where, fr_protocol_facts *out,
                        fr_error *err);
/* "window=32768 train=27852 ...", which the caller frees; NULL = out of memory. */
char *protocol_text(const fr_protocol_facts *protocol);

#endif
