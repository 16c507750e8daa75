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
    float *count; /* [destinations] */
} popularity;

static fr_status score_count(void *state, const fr_query *query, int count, int worker,
                             float *scores, fr_error *err) {
    (void)query, (void)count, (void)worker, (void)err;
    const popularity *p = state;
    memcpy(scores, p->count, (size_t)p->w->destinations * sizeof *scores);
    return FR_OK;
}

static fr_status observe_count(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    popularity *p = state;
    p->count[event->destination] += 1;
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

static fr_status open_count(const fr_window *w, const void *settings, int64_t seed,
                            fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    popularity *p;
    TRY(baseline_check_positions(w, err));
    TRY(ALLOCATE(p, 1, err));
    p->w = w;
    *out = (fr_scorer_definition){.state = p,
                                  .score = score_count,
                                  .observe = observe_count,
                                  .fingerprint = fingerprint_count,
                                  .close = close_count};
    return TAKE(&p->memory, p->count, w->destinations, err);
}

/* ---- decayed count ----
 *
 * Time weakens all counts alike, so their order changes only when one of them grows. Destinations
 * are therefore kept sorted by the logarithm of their count, and scores are places in that order:
 * whatever the half-life, nothing is lost to float32. A destination that grows moves up step by
 * step; few steps, since those that grow are mostly near the top already. */

typedef struct recent {
    const fr_window *w;
    arena memory;
    double decay;
    double *heat;   /* [destinations] log of the sum of exp(decay * t_j); -INFINITY = none yet */
    int32_t *order; /* [destinations] ascending by heat */
    int32_t *place; /* [destinations] of each in `order` */
    float *score;   /* [destinations] place of the first one with equal heat */
} recent;

static fr_status score_recent(void *state, const fr_query *query, int count, int worker,
                              float *scores, fr_error *err) {
    (void)query, (void)count, (void)worker, (void)err;
    const recent *r = state;
    memcpy(scores, r->score, (size_t)r->w->destinations * sizeof *scores);
    return FR_OK;
}

static fr_status observe_recent(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    recent *r = state;
    int32_t v = event->destination, from = r->place[v], at = from;
    double heat = baseline_heat(r->heat[v], r->decay * event->time);
    r->heat[v] = heat;
    for (; at + 1 < r->w->destinations && r->heat[r->order[at + 1]] <= heat; at++) {
        r->order[at] = r->order[at + 1];
        r->place[r->order[at]] = at;
    }
    r->order[at] = v;
    r->place[v] = at;
    for (int32_t k = from; k <= at; k++) { /* those above are hotter than v: nothing new */
        bool tied = k && r->heat[r->order[k - 1]] == r->heat[r->order[k]];
        r->score[r->order[k]] = tied ? r->score[r->order[k - 1]] : (float)k;
    }
    return FR_OK;
}

static uint64_t fingerprint_recent(const void *state) {
    const recent *r = state;
    size_t n = (size_t)r->w->destinations;
    uint64_t hash = fingerprint_add(0, r->heat, n * sizeof *r->heat);
    hash = fingerprint_add(hash, r->order, n * sizeof *r->order);
    return fingerprint_add(hash, r->score, n * sizeof *r->score);
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
    TRY(baseline_check_positions(w, err));
    TRY(ALLOCATE(r, 1, err));
    r->w = w;
    r->decay = baseline_decay(w, ((const decay_settings *)settings)->half_life);
    *out = (fr_scorer_definition){.state = r,
                                  .score = score_recent,
                                  .observe = observe_recent,
                                  .fingerprint = fingerprint_recent,
                                  .close = close_recent};
    TRY(TAKE(&r->memory, r->heat, w->destinations, err));
    TRY(TAKE(&r->memory, r->order, w->destinations, err));
    TRY(TAKE(&r->memory, r->place, w->destinations, err));
    TRY(TAKE(&r->memory, r->score, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        r->heat[v] = -INFINITY;
        r->order[v] = r->place[v] = v;
    }
    return FR_OK;
}

const fr_scorer_kind baseline_popularity = {
    "popularity", "how often the destination has occurred",
    "The score is the number of events of the destination so far, of all sources, in the "
    "training prefix and the test suffix alike. The same order for every source.",
    .open = open_count};

const fr_scorer_kind baseline_recent_popularity = {
    "recent-popularity",
    "how often the destination has occurred lately",
    "As popularity, but an event counts 2^(-age / half-life), so destinations are ordered "
    "by their present rate; the score is the place in that order. Destinations that have "
    "never occurred come last and tie.",
    baseline_decay_options,
    .settings = sizeof(decay_settings),
    .open = open_recent};
