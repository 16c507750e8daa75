/* counterfactual.h - a window as it would be if something else had happened: what audits open
 * scorers on (docs/audit.md).
 *
 * Everything that does not follow from the change is that of the window it was made of: numbers of
 * sources and destinations, parts, catalog, the past of events before the change. So scores of both
 * can be compared entry by entry, and a model that was trained on the training part may be opened
 * on either. It has no rank records, and is made when it is needed: O(events).
 */
#ifndef FR_DATA_COUNTERFACTUAL_H
#define FR_DATA_COUNTERFACTUAL_H

#include "data/window.h"

typedef enum change_kind {
    /* Of event `from` the destination and the features are redrawn, its source and time stay: they
     * are its question. Later events are drawn anew, with other times, or come in random order, or
     * are not there. */
    CHANGE_REDRAWN,
    CHANGE_PERMUTED,
    CHANGE_REMOVED,
    /* Events from .. to - 1 are drawn anew, but for their times. */
    CHANGE_SOME,
    /* Destinations of events from .. to - 1 are drawn from the catalog, whatever they were; sources
     * and times stay. */
    CHANGE_LABELS,
    /* Destinations exchange their ids, as given by `place`. With shared ids sources go along. */
    CHANGE_IDS,
    /* The catalog has only destinations for which `listed` is true. */
    CHANGE_FEWER,
    /* There are `more` candidates that never occur, with ids after all others. */
    CHANGE_MORE,
} change_kind;

typedef struct change {
    change_kind kind;
    int32_t from, to;     /* events */
    int64_t seed;         /* of what is drawn; the same for an event whatever else is changed */
    const int32_t *place; /* [destinations] the new number of each: counterfactual_places */
    const bool *listed;   /* [destinations] */
    int32_t more;
} change;

/* A window that the caller closes, before the one it is made of. */
fr_status counterfactual_open(const fr_window *base, const change *c, fr_window **out,
                              fr_error *err);

/* A random exchange of destinations in place[destinations]. With shared ids, those that are sources
 * too are exchanged among each other. */
fr_status counterfactual_places(const fr_window *base, int64_t seed, int32_t *place, fr_error *err);

#endif
