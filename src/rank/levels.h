/* levels.h - destinations in the order of their levels, counted from any level on.
 *
 * A destination's level is that of its latest event (fr_scorer_definition.level), so all places it
 * will ever have are known in advance: one per destination for "no event yet", and one per event.
 * Places are numbered by level, then by the id as text, which is the order in which ties are
 * broken (fr_record.tied_before). Each destination is at one place at a time, and an event moves
 * one of them. Bits say which places are occupied, and a Fenwick tree has sums over 64 places each.
 * So counts and masses below any place take O(log events), and so does a move.
 */
#ifndef FR_RANK_LEVELS_H
#define FR_RANK_LEVELS_H

#include "rank/record.h"

/* Of the destinations in some places. */
typedef struct level_sums {
    int32_t available; /* in the time-available catalog (PROTOCOL 3) */
    int32_t catalog;   /* in the protocol's */
    int64_t mass;      /* of the latter (record.h) */
} level_sums;

/* Everything about a destination in one struct, because lists of destinations are processed. */
typedef struct level_candidate {
    int64_t mass;   /* 0 outside the catalog */
    uint32_t place; /* at present */
    int32_t first;  /* its first event, INT32_MAX = none: from the next on it is available */
    int32_t listed; /* in a catalog that does not depend on time */
    int32_t text;   /* place of its id in the order of ids as text */
    /* The caller's: */
    int32_t stamp;
    float score;
} level_candidate;

typedef struct levels {
    const fr_window *w;
    arena memory;
    level_candidate *candidate;    /* [destinations] */
    uint32_t *at;                  /* [levels + 2] where level k begins: at[k + 1] */
    int32_t top;                   /* the highest level */
    uint32_t *after;               /* [events] place of its destination; NULL = levels are all 0 */
    int32_t *who;                  /* [places] whose place it is */
    uint64_t *available, *catalog; /* a bit per place: taken by such a destination */
    level_sums *tree;              /* [words + 1] Fenwick tree over words of these bits */
    uint32_t words;
    level_sums all;
    int32_t cut; /* events below are history */
} levels;

/* With the events below `cut` as history. `level` as in fr_scorer_definition; one out of range is
 * FR_EINPUT. Stamps are -1. Close it even on failure. */
fr_status levels_open(levels *l, const recorder *r, const int32_t *level, int32_t cut,
                      fr_error *err);
/* Another one at the same cut. Both move on independently; the order of places, which is most of
 * the memory, belongs to `from`, which must outlive it. The same as above. */
fr_status levels_copy(levels *l, const levels *from, fr_error *err);
void levels_close(levels *l);
/* True if it is in the catalog of an event with this cut. */
static inline bool levels_in_catalog(const levels *l, const level_candidate *c, int32_t cut) {
    return l->w->catalog_kind == CATALOG_TIME ? c->first < cut : c->listed;
}
/* Makes the events below `cut` history; `cut` never decreases. */
void levels_advance(levels *l, int32_t cut);

/* The first place of a level, or of the next existing one. */
uint32_t levels_place(const levels *l, int32_t level);
level_sums levels_below(const levels *l, uint32_t place);
/* Destinations of the catalog, from level `tied` to above - 1, whose id is larger as text than that
 * of `destination`. */
int32_t levels_before(const levels *l, int32_t tied, int32_t above, int32_t destination);

#endif
