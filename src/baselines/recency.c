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
    bool is_long;
    int32_t *level; /* [events] the event itself */
    int32_t *last;  /* [destinations] number of the last event, -1 = none yet */
    double decay;
    /* For every source, in the slices of its pairs: the destinations it has met, the best last. */
    int32_t *met; /* [sources] so many */
    int32_t *own; /* [pairs] destinations */
    double *key;  /* [pairs] what they are sorted by: last meeting; count, equal ones by the last
                     meeting; log sum over the pair's events of exp(decay * t_j) */
    float *score; /* [longest list] of the source at hand */
} recency;

/* ---- scoring ---- */

/* r->score of the destinations that the source has met: above all positions before the event, so
 * the scores reveal nothing about the number of later events. Equal keys share a score. */
static void score_own(recency *r, const fr_query *query) {
    int32_t source = query->source, from = r->w->source_pair_at[source], place = 0;
    int64_t cut = window_cut(r->w, query->event);
    for (int32_t k = 0; k < r->met[source]; k++) {
        bool tied = r->order == BY_DECAYED_COUNT && k && r->key[from + k] == r->key[from + k - 1];
        if (!tied) place = k;
        r->score[k] = baseline_score(r->is_long, cut + place);
    }
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err; /* stateful: a single worker */
    recency *r = state;
    const int32_t *own = r->own + r->w->source_pair_at[query->source];
    score_own(r, query);
    for (int32_t v = 0; v < r->w->destinations; v++)
        scores[v] = baseline_score(r->is_long, r->last[v]);
    for (int32_t k = 0; k < r->met[query->source]; k++) scores[own[k]] = r->score[k];
    return FR_OK;
}

static fr_status stand(void *state, const fr_query *query, int32_t destination, fr_standing *out,
                       fr_error *err) {
    (void)err;
    recency *r = state;
    int32_t level = r->last[destination];
    score_own(r, query);
    *out = (fr_standing){.score = baseline_score(r->is_long, level),
                         .tied = level,
                         .above = level + 1,
                         .own = r->met[query->source],
                         .destination = r->own + r->w->source_pair_at[query->source],
                         .own_score = r->score};
    for (int32_t k = 0; k < out->own; k++) {
        if (out->destination[k] != destination) continue;
        out->score = r->score[k];
        out->tied = out->above = INT32_MAX; /* all others are below */
    }
    return FR_OK;
}

/* ---- observing ---- */

static double grown(const recency *r, double key, const fr_event *event) {
    if (r->order == BY_LAST) return event->event;
    if (r->order == BY_COUNT) return key + 1;
    return baseline_heat(key, r->decay * event->time);
}

/* The pair's key grows, and the destination moves up, past equal ones. */
static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    recency *r = state;
    const fr_window *w = r->w;
    int32_t u = event->source, v = event->destination, from = w->source_pair_at[u];
    int32_t *own = r->own + from, at = r->met[u];
    double *key = r->key + from;
    r->last[v] = event->event;
    if (from + at < w->source_pair_at[u + 1] && w->firsts[from + at] == event->event) {
        key[at] = grown(r, r->order == BY_DECAYED_COUNT ? -INFINITY : 0, event);
        r->met[u]++;
    } else {
        for (at--; own[at] != v; at--) continue;
        key[at] = grown(r, key[at], event);
    }
    double now = key[at];
    for (; at + 1 < r->met[u] && key[at + 1] <= now; at++) {
        own[at] = own[at + 1];
        key[at] = key[at + 1];
    }
    for (; at > 0 && key[at - 1] > now; at--) {
        own[at] = own[at - 1];
        key[at] = key[at - 1];
    }
    own[at] = v;
    key[at] = now;
    return FR_OK;
}

static uint64_t fingerprint(const void *state) {
    const recency *r = state;
    const fr_window *w = r->w;
    uint64_t hash = fingerprint_add(0, r->last, (size_t)w->destinations * sizeof *r->last);
    hash = fingerprint_add(hash, r->met, (size_t)w->sources * sizeof *r->met);
    hash = fingerprint_add(hash, r->own, (size_t)w->pairs * sizeof *r->own);
    return fingerprint_add(hash, r->key, (size_t)w->pairs * sizeof *r->key);
}

static void close_recency(void *state) {
    recency *r = state;
    arena_free(&r->memory);
    free(r);
}

static fr_status open_own(const fr_window *w, own_order order, double decay,
                          fr_scorer_definition *out, fr_error *err) {
    recency *r;
    TRY(ALLOCATE(r, 1, err));
    r->w = w;
    r->order = order;
    r->decay = decay;
    r->is_long = baseline_is_long(w);
    *out = (fr_scorer_definition){.state = r,
                                  .score = score,
                                  .observe = observe,
                                  .fingerprint = fingerprint,
                                  .close = close_recency,
                                  .stand = stand};
    TRY(TAKE(&r->memory, r->level, w->events, err));
    TRY(TAKE(&r->memory, r->last, w->destinations, err));
    TRY(TAKE(&r->memory, r->met, w->sources, err));
    TRY(TAKE(&r->memory, r->own, w->pairs, err));
    TRY(TAKE(&r->memory, r->key, w->pairs, err));
    TRY(TAKE(&r->memory, r->score, baseline_longest(w), err));
    for (int32_t i = 0; i < w->events; i++) r->level[i] = i;
    for (int32_t v = 0; v < w->destinations; v++) r->last[v] = -1;
    out->level = r->level;
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
    "The source's own destinations come first, the most recently met at the top. All "
    "others follow by their last position in the stream, from any source; those that "
    "have never occurred come last and tie.",
    .open = open_last};

const fr_scorer_kind baseline_frequency = {
    "frequency", "own destinations, most often met first",
    "The source's own destinations come first, by the number of times the pair has "
    "met; among equal numbers the more recent meeting wins. All others follow as in "
    "recency.",
    .open = open_count};

const fr_scorer_kind baseline_decayed_frequency = {
    "decayed-frequency",
    "own destinations, by decayed count",
    "Like frequency, but a meeting counts 2^(-age / half-life), and equal counts tie. "
    "It is between recency (short half-life) and frequency (long half-life). All "
    "others follow as in recency.",
    baseline_decay_options,
    .settings = sizeof(decay_settings),
    .open = open_decayed};
