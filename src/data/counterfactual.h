/* counterfactual.h - a window in which other events happened; audits open scorers on it
 * (docs/audit.md).
 *
 * Everything that is not changed equals the original window: numbers of sources and destinations,
 * parts, catalog, the past of events before the change. So scores of both can be compared entry by
 * entry, and a model that was trained on the training part can be opened on both. A counterfactual
 * window has no rank records. It is made when it is needed, in O(events).
 */
#ifndef FR_DATA_COUNTERFACTUAL_H
#define FR_DATA_COUNTERFACTUAL_H

#include "data/window.h"

typedef enum change_kind {
    /* Event `from` gets another destination and other features, but keeps its source and time,
     * which are the query. Later events are redrawn with other times, put in random order, or
     * removed. */
    CHANGE_REDRAWN,
    CHANGE_PERMUTED,
    CHANGE_REMOVED,
    /* Events from .. to - 1 are redrawn, except their times. */
    CHANGE_SOME,
    /* Destinations of events from .. to - 1 are redrawn from the catalog; sources and times
     * stay. */
    CHANGE_LABELS,
    /* Destinations exchange their ids, as given by `place`. With shared ids the sources too. */
    CHANGE_IDS,
    /* The catalog has only destinations for which `listed` is true. */
    CHANGE_FEWER,
    /* There are `more` candidates that never occur, with ids after all others. */
    CHANGE_MORE,
} change_kind;

typedef struct change {
    change_kind kind;
    int32_t from, to;     /* events */
    int64_t seed;         /* of the draws; those of an event do not depend on other changes */
    const int32_t *place; /* [destinations] the new number of each: counterfactual_places */
    const bool *listed;   /* [destinations] */
    int32_t more;
} change;

/* Makes a window, which the caller closes before the original one. */
fr_status counterfactual_open(const fr_window *base, const change *c, fr_window **out,
                              fr_error *err);

/* A random permutation of destinations in place[destinations]. With shared ids, destinations that
 * are also sources are permuted among themselves. */
fr_status counterfactual_places(const fr_window *base, int64_t seed, int32_t *place, fr_error *err);

#endif
