/* engine.h - the one loop: score each ranked event once, let every probe read the vector, observe.
 *
 *     for each event in stream order:
 *         if it is a ranked event:  scorer->score(event, scores);  each probe reads scores
 *         scorer->observe(event)                    exactly once
 *
 * A scorer without memory runs over fixed shards of events with as many threads as it can serve,
 * and with several ranked events of a shard at a time if it allows this. A scorer with memory runs
 * event by event. If a scorer has `part`, vectors of a large catalog are never complete in memory:
 * the positive is scored first, then tiles of candidates for all present events, which the probes
 * count and forget. With strict order an event is observed only when a later time is reached, so
 * scoring never sees events of the same time.
 */
#ifndef FR_RANK_ENGINE_H
#define FR_RANK_ENGINE_H

#include "base/context.h"
#include "rank/events.h"
#include "rank/scorer.h"

/* An event whose scores are there to be read. */
typedef struct scored_event {
    int32_t event, cut; /* number in the window; end of its history */
    int32_t source, destination;
    int32_t place;  /* among the test events, from 0 */
    int worker;     /* distinguishes events that are read at the same time: 0 .. workers - 1 */
    bool covered;   /* the destination is in the catalog */
    bool available; /* it has occurred before */
} scored_event;

/* Reads the scores[candidates] of one event. Called for different events at the same time: a
 * probe writes only what belongs to its event. */
typedef struct probe {
    void *state;
    fr_status (*read)(void *state, const scored_event *event, const float *scores, fr_error *err);
    /* The same in parts; may be NULL. `tally` is its memory for one event from begin to end; parts
     * are candidates from .. to - 1, ascending. */
    size_t tally;
    void (*begin)(void *state, const scored_event *event, float positive, void *tally);
    void (*part)(void *state, const scored_event *event, int32_t from, int32_t to,
                 const float *scores, void *tally);
    void (*end)(void *state, const scored_event *event, void *tally);
    int32_t from, to; /* candidates whose parts it reads */
    bool alone;       /* it handles one event of a worker at a time */
} probe;

scored_event engine_describe(const fr_window *w, int32_t event);
/* True if the event is ranked. It is not if its destination is in neither catalog, or only in the
 * time-available one while the scorer knows only the fixed one, or if the source has met fewer than
 * `met` other destinations. */
bool engine_ranks(const fr_window *w, const scored_event *e, bool catalog_only, int64_t met);
/* Room for engine_spread, which the caller frees. Entries outside the catalog have the lowest
 * score, which nobody reads. */
fr_status engine_spread_room(const fr_window *w, float **out, fr_error *err);
/* to[candidates] from a row over the catalog; `to` is such a room, used before or not. */
void engine_spread(const fr_window *w, const float *row, float *to);
/* Checks that the scores are finite and lets the probes read them. */
fr_status engine_read(const fr_window *w, const scored_event *e, const float *scores,
                      const probe *probes, int probe_count, fr_error *err);

/* In debug builds: a hash of everything that scoring must not change, and a check of it. */
uint64_t engine_fingerprint(const fr_scorer *scorer);
fr_status engine_check_state(const fr_scorer *scorer, int32_t event, uint64_t before,
                             fr_error *err);

/* The context with as many threads as the engine will use for this scorer. */
fr_context engine_team(const fr_scorer *scorer, const fr_context *context);

/* Runs over the test suffix; events that are not ranked or not in the list are not scored, but
 * observed like all others. */
fr_status engine_run(fr_scorer *scorer, const event_list *events, const probe *probes,
                     int probe_count, const fr_rank_settings *settings, const fr_context *context,
                     fr_error *err);

#endif
