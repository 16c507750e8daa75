/* recency.c - the source's own destinations first, in one of three orders; then all others by their
 * last position in the stream.
 *
 * Without any training, "own past, most recent first" beats every trained model of the paper on
 * Wikipedia (PROTOCOL 13), which is why it is in every table.
 */
#include "baselines/baseline.h"

#include "base/fingerprint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum own_order { BY_LAST, BY_COUNT, BY_DECAYED_COUNT } own_order;

typedef struct recency {
    const fr_window *w;
    own_order order;
    arena memory;
    float *tail;  /* [destinations] number of the last event, -1 = none yet */
    double *heat; /* [pairs] log sum over the pair's events of exp(decay * t_j); BY_DECAYED_COUNT */
    double decay;
    keyed *list; /* [longest list of distinct destinations]; scratch, one worker only */
} recency;

/* What a met destination is sorted by; more is better. */
static double own_key(const recency *r, int32_t source, int32_t destination, int32_t cut) {
    const fr_window *w = r->w;
    int32_t pair = window_pair(w, source, destination), from = w->pair_at[pair];
    if (r->order == BY_DECAYED_COUNT) return r->heat[pair];
    int32_t count = events_below(w->pair_events + from, w->pair_at[pair + 1] - from, cut);
    int32_t last = w->pair_events[from + count - 1];
    return r->order == BY_LAST ? last : count + last / (w->events + 1.0);
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err; /* stateful: a single worker */
    const recency *r = state;
    const fr_window *w = r->w;
    int32_t cut = window_cut(w, query->event);
    fr_history met = window_met(w, query->source, cut);
    for (int32_t k = 0; k < met.count; k++) {
        int32_t v = w->destination[met.event[k]];
        r->list[k] = (keyed){own_key(r, query->source, v, cut), v};
    }
    memcpy(scores, r->tail, (size_t)w->destinations * sizeof *scores);
    lift_list(r->list, met.count, (float)w->events, scores);
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    recency *r = state;
    int32_t v = event->destination;
    r->tail[v] = (float)event->event;
    if (r->heat) {
        double *heat = &r->heat[window_pair(r->w, event->source, v)];
        *heat = baseline_heat(*heat, r->decay * event->time);
    }
    return FR_OK;
}

static uint64_t fingerprint(const void *state) {
    const recency *r = state;
    uint64_t hash = fingerprint_add(0, r->tail, (size_t)r->w->destinations * sizeof *r->tail);
    return r->heat ? fingerprint_add(hash, r->heat, (size_t)r->w->pairs * sizeof *r->heat) : hash;
}

static void close_recency(void *state) {
    recency *r = state;
    arena_free(&r->memory);
    free(r);
}

static fr_status open_own(const fr_window *w, own_order order, double decay,
                          fr_scorer_definition *out, fr_error *err) {
    recency *r;
    TRY(baseline_check_positions(w, err));
    TRY(ALLOCATE(r, 1, err));
    r->w = w;
    r->order = order;
    r->decay = decay;
    *out = (fr_scorer_definition){.state = r,
                                  .score = score,
                                  .observe = observe,
                                  .fingerprint = fingerprint,
                                  .close = close_recency};
    int32_t longest = 0;
    for (int32_t u = 0; u < w->sources; u++) {
        int32_t pairs = w->source_pair_at[u + 1] - w->source_pair_at[u];
        if (pairs > longest) longest = pairs;
    }
    TRY(TAKE(&r->memory, r->list, longest, err));
    TRY(TAKE(&r->memory, r->tail, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) r->tail[v] = -1;
    if (order != BY_DECAYED_COUNT) return FR_OK;
    TRY(TAKE(&r->memory, r->heat, w->pairs, err));
    for (int32_t k = 0; k < w->pairs; k++) r->heat[k] = -INFINITY;
    return FR_OK;
}

static fr_status open_last(const fr_window *w, const void *settings, int64_t seed,
                           fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    return open_own(w, BY_LAST, 0, out, err);
}

static fr_status open_count(const fr_window *w, const void *settings, int64_t seed,
                            fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    return open_own(w, BY_COUNT, 0, out, err);
}

static fr_status open_decayed(const fr_window *w, const void *settings, int64_t seed,
                              fr_scorer_definition *out, fr_error *err) {
    (void)seed;
    double half_life = ((const decay_settings *)settings)->half_life;
    return open_own(w, BY_DECAYED_COUNT, baseline_decay(w, half_life), out, err);
}

const fr_scorer_kind baseline_recency = {
    "recency", "own destinations, most recent first",
    "The source's own destinations come first, the most recently met on top. All others "
    "follow "
    "by their last position in the stream, whoever met them; those that have never occurred "
    "come last and tie.",
    .open = open_last};

const fr_scorer_kind baseline_frequency = {
    "frequency", "own destinations, most often met first",
    "The source's own destinations come first, by the number of times the pair has met, equal "
    "numbers by the more recent meeting. All others follow as in recency.",
    .open = open_count};

const fr_scorer_kind baseline_decayed_frequency = {
    "decayed-frequency",
    "own destinations, by decayed count",
    "As frequency, but a meeting counts 2^(-age / half-life), and equal counts tie: between "
    "recency (short half-life) and frequency (long half-life). All others follow as in "
    "recency.",
    baseline_decay_options,
    .settings = sizeof(decay_settings),
    .open = open_decayed};
