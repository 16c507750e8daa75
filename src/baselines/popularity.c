/* popularity.c - how often a destination has occurred: ever, or lately. */
#include "baselines/baseline.h"

#include "base/fingerprint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- running count ---- */

typedef struct popularity {
    const fr_window *w;
    arena memory;
    bool is_long;
    int32_t *count; /* [destinations] */
    int32_t *level; /* [events] the destination's count after it, minus 1 */
} popularity;

static fr_status score_count(void *state, const fr_query *query, int count, int worker,
                             float *scores, fr_error *err) {
    (void)query, (void)count, (void)worker, (void)err;
    const popularity *p = state;
    for (int32_t v = 0; v < p->w->destinations; v++)
        scores[v] = baseline_score(p->is_long, p->count[v]);
    return FR_OK;
}

static fr_status stand_count(void *state, const fr_query *query, int32_t destination,
                             fr_standing *out, fr_error *err) {
    (void)query, (void)err;
    const popularity *p = state;
    int32_t count = p->count[destination];
    *out = (fr_standing){
        .score = baseline_score(p->is_long, count), .tied = count - 1, .above = count};
    return FR_OK;
}

static fr_status observe_count(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    popularity *p = state;
    p->count[event->destination]++;
    return FR_OK;
}

static uint64_t fingerprint_count(const void *state) {
    const popularity *p = state;
    return fingerprint_add(0, p->count, (size_t)p->w->destinations * sizeof *p->count);
}

static void close_count(void *state) {
    popularity *p = state;
    arena_free(&p->memory);
    free(p);
}

fr_status baseline_count_levels(const fr_window *w, arena *memory, int32_t **out, fr_error *err) {
    int32_t *level;
    TRY(TAKE(memory, level, w->events, err));
    for (int32_t v = 0; v < w->destinations; v++)
        for (int32_t k = w->destination_at[v]; k < w->destination_at[v + 1]; k++)
            level[w->destination_events[k]] = k - w->destination_at[v];
    *out = level;
    return FR_OK;
}

static fr_status open_count(const fr_window *w, const void *settings, int64_t seed,
                            fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    popularity *p;
    TRY(ALLOCATE(p, 1, err));
    p->w = w;
    p->is_long = baseline_is_long(w);
    *out = (fr_scorer_definition){.state = p,
                                  .score = score_count,
                                  .observe = observe_count,
                                  .fingerprint = fingerprint_count,
                                  .close = close_count,
                                  .stand = stand_count};
    TRY(baseline_count_levels(w, &p->memory, &p->level, err));
    out->level = p->level;
    return TAKE(&p->memory, p->count, w->destinations, err);
}

/* ---- decayed count ----
 *
 * Time weakens all counts alike, so their order changes only when one of them grows. The score is
 * the number of destinations with a smaller count: whatever the half-life, nothing is lost to
 * float32. Logarithms of counts after every event are computed and ordered beforehand; a Fenwick
 * tree over that order has the destinations at their present place. No score depends on later
 * events: they add places between which nobody is yet. */

typedef struct recent {
    const fr_window *w;
    arena memory;
    bool is_long;
    int32_t *level; /* [events] place of the heat after it in the order of all heats, ties equal */
    int32_t *now;   /* [destinations] level, -1 = no event yet */
    int32_t *tree;  /* [levels + 1] Fenwick tree: destinations by level */
    int32_t levels; /* how many there are */
    int32_t *block; /* [levels / BLOCK + 1] for a score vector, of one worker only */
} recent;
enum { BLOCK = 256 }; /* levels */

/* An event with the log of the sum of exp(decay * t_j) over its destination's events so far. */
typedef struct heated {
    double heat;
    int32_t event;
} heated;

/* 16 bits of a number that is ordered as the heat is. */
enum { DIGIT = 16 };
static uint32_t digit_of(double heat, int shift) {
    uint64_t bits;
    memcpy(&bits, &heat, sizeof bits);
    bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return (uint32_t)(bits >> shift) & ((1u << DIGIT) - 1);
}

/* Stable counting sorts, from the last digit to the first; `list` ends where it began. */
static void sort_heats(heated *list, heated *other, uint32_t *at, int32_t count) {
    for (int shift = 0; shift < 64; shift += DIGIT) {
        memset(at, 0, sizeof *at << DIGIT);
        for (int32_t k = 0; k < count; k++) at[digit_of(list[k].heat, shift)]++;
        for (uint32_t digit = 0, sum = 0; digit < 1u << DIGIT; digit++) {
            uint32_t here = at[digit];
            at[digit] = sum;
            sum += here;
        }
        for (int32_t k = 0; k < count; k++) other[at[digit_of(list[k].heat, shift)]++] = list[k];
        heated *swap = list;
        list = other;
        other = swap;
    }
}

static fr_status order_heats(recent *r, arena *step, double decay, fr_error *err) {
    const fr_window *w = r->w;
    heated *list, *other;
    uint32_t *at;
    TRY(TAKE(&r->memory, r->level, w->events, err));
    TRY(TAKE(step, list, w->events, err));
    TRY(TAKE(step, other, w->events, err));
    TRY(TAKE(step, at, (size_t)1 << DIGIT, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        double heat = -INFINITY;
        for (int32_t k = w->destination_at[v]; k < w->destination_at[v + 1]; k++) {
            int32_t event = w->destination_events[k];
            heat = baseline_heat(heat, decay * window_time(w, event));
            list[event] = (heated){heat, event};
        }
    }
    sort_heats(list, other, at, w->events);
    for (int32_t k = 0; k < w->events; k++) {
        if (!k || list[k].heat > list[k - 1].heat) r->levels++;
        r->level[list[k].event] = r->levels - 1;
    }
    return FR_OK;
}

/* One more than the number of occurred destinations below a level; 0 for a destination that has not
 * occurred. Others are not counted, because their number is not known yet. */
static int32_t count_below(const recent *r, int32_t level) {
    if (level < 0) return 0;
    int32_t count = 1;
    for (int32_t k = level; k; k &= k - 1) count += r->tree[k];
    return count;
}

/* The same, where r->block has it for the beginnings of blocks. */
static int32_t count_in_block(const recent *r, int32_t level) {
    if (level < 0) return 0;
    int32_t count = r->block[level / BLOCK];
    for (int32_t k = level; k % BLOCK; k &= k - 1) count += r->tree[k];
    return count;
}

static void add_at(recent *r, int32_t level, int32_t step) {
    for (int64_t k = level + 1; k <= r->levels; k += k & -k) r->tree[k] += step;
}

static fr_status score_recent(void *state, const fr_query *query, int count, int worker,
                              float *scores, fr_error *err) {
    (void)query, (void)count, (void)worker, (void)err;
    const recent *r = state;
    for (int32_t k = 0; k <= r->levels / BLOCK; k++) r->block[k] = count_below(r, k * BLOCK);
    for (int32_t v = 0; v < r->w->destinations; v++)
        scores[v] = baseline_score(r->is_long, count_in_block(r, r->now[v]));
    return FR_OK;
}

static fr_status stand_recent(void *state, const fr_query *query, int32_t destination,
                              fr_standing *out, fr_error *err) {
    (void)query, (void)err;
    const recent *r = state;
    int32_t level = r->now[destination];
    *out = (fr_standing){.score = baseline_score(r->is_long, count_below(r, level)),
                         .tied = level,
                         .above = level + 1};
    return FR_OK;
}

static fr_status observe_recent(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    recent *r = state;
    int32_t *now = &r->now[event->destination];
    if (*now >= 0) add_at(r, *now, -1);
    *now = r->level[event->event];
    add_at(r, *now, 1);
    return FR_OK;
}

static uint64_t fingerprint_recent(const void *state) {
    const recent *r = state;
    uint64_t hash = fingerprint_add(0, r->now, (size_t)r->w->destinations * sizeof *r->now);
    return fingerprint_add(hash, r->tree, ((size_t)r->levels + 1) * sizeof *r->tree);
}

static void close_recent(void *state) {
    recent *r = state;
    arena_free(&r->memory);
    free(r);
}

static fr_status open_recent(const fr_window *w, const void *settings, int64_t seed,
                             fr_scorer_definition *out, fr_error *err) {
    (void)seed;
    recent *r;
    TRY(ALLOCATE(r, 1, err));
    r->w = w;
    r->is_long = baseline_is_long(w);
    *out = (fr_scorer_definition){.state = r,
                                  .score = score_recent,
                                  .observe = observe_recent,
                                  .fingerprint = fingerprint_recent,
                                  .close = close_recent,
                                  .stand = stand_recent};
    arena step = {0};
    double half_life = ((const decay_settings *)settings)->half_life;
    fr_status status = order_heats(r, &step, baseline_decay(w, half_life), err);
    arena_free(&step);
    if (status) return status;
    out->level = r->level;
    TRY(TAKE(&r->memory, r->now, w->destinations, err));
    TRY(TAKE(&r->memory, r->tree, (size_t)r->levels + 1, err));
    TRY(TAKE(&r->memory, r->block, r->levels / BLOCK + 1, err));
    for (int32_t v = 0; v < w->destinations; v++) r->now[v] = -1;
    return FR_OK;
}

const fr_scorer_kind baseline_popularity = {
    "popularity", "how often the destination has occurred",
    "The score is the number of events of the destination so far, from all sources, in "
    "the training prefix and the test suffix. The order is the same for every source.",
    .open = open_count};

const fr_scorer_kind baseline_recent_popularity = {
    "recent-popularity",
    "how often the destination has occurred lately",
    "Like popularity, but an event counts 2^(-age / half-life), so destinations are "
    "ordered by their present rate. The score is the position in that order, starting "
    "with 1 for the lowest. Destinations that have never occurred have 0.",
    baseline_decay_options,
    .settings = sizeof(decay_settings),
    .open = open_recent};
