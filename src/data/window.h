/* window.h - the window of a stream with its split, catalog, history index and membership index.
 *
 * Everything is numbered densely: events 0..n-1 of the window, sources 0..S-1, destinations 0..I-1,
 * each in ascending order of original id. "Before event i" always means event numbers below cut(i)
 * (PROTOCOL 2), so one rule serves every query, and histories are slices of ascending event lists:
 *
 *   by source       events of source u: [source_at[u], source_at[u+1])
 *   by destination  events of destination v: the same with destination_at
 *   by pair         events ordered by (u, v, i): pair k is [pair_at[k], pair_at[k+1])
 *   pairs           those of source u, ascending by v: [source_pair_at[u], source_pair_at[u+1])
 *   firsts          the first event of each pair, by source as the pairs are, ascending by event
 *   by node         events of node x: [node_at[x], node_at[x+1])
 *
 * So the distinct destinations of u before i are those of a prefix of the source's firsts. The
 * lists come from two stable counting sorts, O(n). At most 36 bytes per event, plus 32 per source
 * and 28 per destination; with shared ids 8 more per event and per node.
 *
 * Models work on nodes. Without shared ids, a source and a destination are two nodes, sources come
 * first, and their lists are those of their role. With shared ids (data import) the same id is one
 * node, whose list has all its events (an event with itself twice); destinations come first, then
 * the sources that are not destinations. So destinations are consecutive nodes in both cases.
 *
 * Times and features stay mapped. Everything that is used as an index is in memory and checked, so
 * later changes on disk do no harm. Lifetime: run.
 */
#ifndef FR_DATA_WINDOW_H
#define FR_DATA_WINDOW_H

#include "base/memory.h"
#include "base/rng.h"
#include "data/stream.h"

enum {
    CATALOG_FIXED = FR_CATALOG_FIXED,
    CATALOG_TIME = FR_CATALOG_TIME,
    CATALOG_FILE = FR_CATALOG_FILE,
    CATALOG_TRAIN_VAL = FR_CATALOG_TRAIN_VAL,
    CATALOG_ALL = FR_CATALOG_ALL,
    CATALOG_RANGE = FR_CATALOG_RANGE
};

struct fr_window {
    const fr_stream *stream;
    arena memory;
    fr_protocol protocol;       /* texts: owned copies */
    int catalog_kind;           /* CATALOG_* */
    int64_t first;              /* row of the stream where the window begins */
    int32_t events, train, val; /* parts: the first `train`, `val` more, and the rest for test */
    int32_t from, to;           /* the part that is ranked */
    int32_t sources, destinations;
    const int32_t *source, *destination; /* [events] dense */
    const double *time;                  /* [events] as in the stream, not re-based */
    double start;                        /* its first time: time 0 of the window */
    const float *feature;                /* [events, feature_width] or NULL */
    int32_t
        known_events; /* of the window that this one was made from (counterfactual.h), or its own */
    bool relabelled;  /* ids were exchanged: they mean other things than in the stream */
    bool counterfactual; /* not the real stream: it must not give rank records */
    int holders;         /* in addition to the opener */
    const int64_t *source_id,
        *destination_id; /* [sources], [destinations] original ids, ascending */
    int order;           /* FR_ORDER_* */
    int32_t batch;       /* events of a batch, for FR_ORDER_BATCH */
    int32_t *cut;        /* [events] the cut of each event; NULL = the event itself */

    int32_t catalog_size;
    int32_t *catalog;       /* [catalog_size] destinations, ascending */
    int32_t *catalog_place; /* [destinations] place in the catalog, -1 = not in it */
    char catalog_sha256[65];

    int32_t *source_at, *source_events;           /* [sources + 1], [events] */
    int32_t *destination_at, *destination_events; /* [destinations + 1], [events] */
    int32_t pairs;
    int32_t *source_pair_at;                 /* [sources + 1] */
    int32_t *pair_at;                        /* [pairs + 1] */
    int32_t *pair_destination, *pair_events; /* [pairs], [events] */
    int32_t *firsts;                         /* [pairs], slices as source_pair_at */

    int32_t nodes, first_destination; /* the node that is destination 0 */
    int32_t *source_node;             /* [sources] NULL: ids are not shared, a source is its node */
    int64_t *node_id;                 /* [nodes] original ids, ascending within the two stretches;
                                         NULL as source_node */
    int64_t *node_at;                 /* [nodes + 1] */
    int32_t *node_events;             /* [2 events] */
};

/* Fills the catalog's list, places and hash from catalog_place, which is -1 outside the catalog. */
fr_status window_list_catalog(fr_window *w, fr_error *err);
/* Cuts and indices of a window that has its events, parts and ids. */
fr_status window_index(fr_window *w, fr_error *err);
/* FR_EINPUT if the ids were exchanged, so that `what` would confuse destinations. */
fr_status window_check_labels(const fr_window *w, const char *what, fr_error *err);

/* Events below this number are "before event i". */
static inline int32_t window_cut(const fr_window *w, int32_t i) { return w->cut ? w->cut[i] : i; }

/* The order of training events; ranking in batches does not affect it. */
static inline const char *window_training_order(const fr_window *w) {
    return w->order == FR_ORDER_STRICT ? "strict" : "stream";
}

/* Seconds since the window's start. */
static inline double window_time(const fr_window *w, int32_t i) { return w->time[i] - w->start; }

/* How many entries of an ascending list lie below `cut`. O(log count). */
int32_t events_below(const int32_t *event, int32_t count, int32_t cut);

/* The last `most` events of a source / destination below `cut`, oldest first. O(log degree). */
fr_history window_source_history(const fr_window *w, int32_t source, int32_t cut, int32_t most);
fr_history window_destination_history(const fr_window *w, int32_t destination, int32_t cut,
                                      int32_t most);

/* The number of a pair, 0..pairs-1, or -1 if the two never meet in the window. O(log). */
int32_t window_pair(const fr_window *w, int32_t source, int32_t destination);

/* The events of a pair below `cut`, all of them: the count is the pair count, the last entry the
 * most recent meeting; not met = empty. O(log). */
fr_history window_pair_history(const fr_window *w, int32_t source, int32_t destination,
                               int32_t cut);

/* First meetings of a source below `cut`, ascending: destination[event] runs through the distinct
 * destinations it has met (H_u of PROTOCOL 2), in order of first meeting. O(log). */
fr_history window_met(const fr_window *w, int32_t source, int32_t cut);

/* True if the destination has occurred below `cut`: the time-available catalog (PROTOCOL 3). */
static inline bool window_available(const fr_window *w, int32_t destination, int32_t cut) {
    int32_t at = w->destination_at[destination];
    return at < w->destination_at[destination + 1] && w->destination_events[at] < cut;
}

/* The destination with the source's id, which is never a candidate of the source; -1 = there is
 * none. */
static inline int32_t window_self(const fr_window *w, int32_t source) {
    return w->source_node && w->source_node[source] < w->destinations ? w->source_node[source] : -1;
}

/* Nodes: everything that models have a state, a history or an embedding for. */
static inline int32_t window_source_node(const fr_window *w, int32_t source) {
    return w->source_node ? w->source_node[source] : source;
}
static inline int32_t window_destination_node(const fr_window *w, int32_t destination) {
    return w->first_destination + destination;
}
/* The other end of an event of the node. */
static inline int32_t window_other(const fr_window *w, int32_t node, int32_t event) {
    int32_t source = window_source_node(w, w->source[event]);
    return source == node ? window_destination_node(w, w->destination[event]) : source;
}
/* All events of a node, ascending. */
static inline fr_history window_node_events(const fr_window *w, int32_t node) {
    int64_t from = w->node_at[node];
    return (fr_history){w->node_events + from, (int32_t)(w->node_at[node + 1] - from)};
}
/* Its last `most` events below `cut`, oldest first. O(log degree). */
fr_history window_node_history(const fr_window *w, int32_t node, int32_t cut, int32_t most);

/* True if the destination is in the catalog known before the first test event. */
static inline bool window_listed(const fr_window *w, int32_t destination) {
    return w->catalog_place[destination] >= 0;
}
/* The same for a destination that has occurred before the event in question. Then it is also in the
 * time-available catalog, if the protocol uses that one. */
static inline bool window_listed_met(const fr_window *w, int32_t destination) {
    return w->catalog_kind == CATALOG_TIME || window_listed(w, destination);
}

/* True if the destination is in the time-available catalog of the event. */
bool window_candidate(const fr_window *w, int32_t event, int32_t destination);
/* The events of the ranked part with the source and the time of this one, itself included, under
 * filter=same-time; else none (PROTOCOL 14). */
fr_history window_rivals(const fr_window *w, int32_t event);
/* True if the filter removes the destination from the event's candidates. O(rivals). */
bool window_filtered(const fr_window *w, int32_t event, int32_t destination);
/* True if it is a candidate of the event under the protocol (PROTOCOL 3, 14). */
bool window_ranked(const fr_window *w, int32_t event, int32_t destination);
/* The same for the event's own destination. */
bool window_covered(const fr_window *w, int32_t event);

/* FR_EINPUT if the catalog is too small for a negative of every event. */
fr_status window_check_negatives(const fr_window *w, fr_error *err);
/* What negatives are drawn from: the catalog, or every destination of the window. */
static inline int32_t window_pool(const fr_window *w, bool whole) {
    return whole ? w->destinations : w->catalog_size;
}
static inline int32_t window_pooled(const fr_window *w, bool whole, int32_t at) {
    return whole ? at : w->catalog[at];
}
/* A destination of this pool, drawn uniformly, other than the event's own and its source. */
int32_t window_draw_negative(const fr_window *w, bool whole, rng_key key, int32_t event);

#endif
