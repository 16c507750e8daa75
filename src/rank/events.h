/* events.h - the test events that have a record: all of the part, or a simple random sample.
 *
 * Every event has a random key that depends only on the sample's seed and its row of the stream;
 * the n events with the smallest keys are the sample. So all scorers rank the same events and stay
 * paired, and a smaller sample with the same seed is a subset of a larger one. Records of a sample
 * are the same rows that a ranking of all events has for these events.
 */
#ifndef FR_RANK_EVENTS_H
#define FR_RANK_EVENTS_H

#include "data/window.h"

typedef struct event_list {
    int32_t first;  /* event of the window that the part begins with */
    int32_t part;   /* events of the part */
    int32_t count;  /* that have a record */
    int32_t *event; /* [count] their numbers, ascending; NULL = all of the part */
    int32_t *row;   /* [part] record of each, -1 = none; NULL = all have one */
    int64_t seed;   /* of the sample, 0 if there is none */
} event_list;

/* `sample` events of the window's part; 0, or as many as there are, means all. Close it even on
 * failure. */
fr_status events_open(event_list *l, const fr_window *w, int64_t sample, int64_t seed,
                      fr_error *err);
/* The given events of the part, ascending. Close it even on failure. */
fr_status events_given(event_list *l, const fr_window *w, const int32_t *event, int32_t count,
                       fr_error *err);
void events_close(event_list *l);
/* The part of a list that process `number` of `count` ranks: one of every `count` shards of `shard`
 * events. Close it even on failure. */
fr_status events_share(const event_list *all, int number, int count, int64_t shard, event_list *out,
                       fr_error *err);
/* Which process ranks an event, by its row. */
static inline int events_owner(int64_t row, int count, int64_t shard) {
    return (int)(row / shard % count);
}

static inline int32_t events_at(const event_list *l, int64_t row) {
    return l->event ? l->event[row] : l->first + (int32_t)row;
}

/* The record of the event at a place of the part; -1 = it has none. */
static inline int32_t events_row(const event_list *l, int32_t place) {
    return l->row ? l->row[place] : place;
}

#endif
