/* markov.c - destinations that tend to follow the source's last destination.
 *
 * Transition counts are over all sources. A row is the list of destinations that have followed one
 * destination, in order of the first time. All transitions of the window are known in advance, so
 * every event has its slot in a row, and at any time a row is the first few of its slots.
 */
#include "baselines/baseline.h"

#include "base/fingerprint.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* A follower with what it is sorted by: how often it followed, then its popularity. */
typedef struct ranked {
    int64_t key;
    int32_t destination;
} ranked;

typedef struct markov {
    const fr_window *w;
    arena memory;
    bool is_long;
    int32_t *level; /* [events] running popularity */
    int32_t *tail;  /* [destinations] the same at present */
    int32_t *last;  /* [sources] last destination, -1 = none */
    /* Followers of destination d are in slots row[d] .. row[d] + rows[d] - 1. */
    int32_t *row, *rows; /* [destinations + 1], [destinations] */
    int32_t *slot;       /* [events] of the follower; -1 = the source's first event */
    int32_t *follower;   /* [slots] destinations */
    int32_t *count;      /* [slots] how often it has followed */
    ranked *list;        /* [longest row] scratch, one worker only */
    float *score;        /* [longest row] the same */
} markov;

static int64_t key_of(const markov *m, int32_t slot) {
    return ((int64_t)m->count[slot] << 31) + m->tail[m->follower[slot]];
}

static int by_key(const void *a, const void *b) {
    int64_t x = ((const ranked *)a)->key, y = ((const ranked *)b)->key;
    return (x > y) - (x < y);
}

/* The score of a follower that is above this many others: higher than any count before the event.
 */
static float lifted(const markov *m, const fr_query *query, int32_t place) {
    return baseline_score(m->is_long, (int64_t)window_cut(m->w, query->event) + 1 + place);
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err;
    const markov *m = state;
    for (int32_t v = 0; v < m->w->destinations; v++)
        scores[v] = baseline_score(m->is_long, m->tail[v]);
    int32_t last = m->last[query->source], place = 0;
    if (last < 0) return FR_OK;
    for (int32_t k = 0; k < m->rows[last]; k++)
        m->list[k] = (ranked){key_of(m, m->row[last] + k), m->follower[m->row[last] + k]};
    qsort(m->list, (size_t)m->rows[last], sizeof *m->list, by_key);
    for (int32_t k = 0; k < m->rows[last]; k++) {
        if (k && m->list[k].key > m->list[k - 1].key) place = k;
        scores[m->list[k].destination] = lifted(m, query, place);
    }
    return FR_OK;
}

static fr_status stand(void *state, const fr_query *query, int32_t destination, fr_standing *out,
                       fr_error *err) {
    (void)err;
    const markov *m = state;
    int32_t last = m->last[query->source], first = last < 0 ? 0 : m->row[last], own = -1;
    int32_t level = m->tail[destination] - 1, below = 0;
    *out = (fr_standing){.score = baseline_score(m->is_long, m->tail[destination]),
                         .tied = level,
                         .above = level + 1,
                         .own = last < 0 ? 0 : m->rows[last],
                         .destination = m->follower + first,
                         .own_score = m->score};
    for (int32_t k = 0; k < out->own; k++)
        if (out->destination[k] == destination) own = first + k;
    for (int32_t k = 0; k < out->own; k++) { /* the tails are far apart in memory */
        int32_t apart = own < 0 ? 1 : m->count[first + k] - m->count[own];
        if (!apart) apart = m->tail[out->destination[k]] - m->tail[destination];
        below += apart < 0;
        m->score[k] = apart > 0 ? FLT_MAX : apart < 0 ? -FLT_MAX : 0;
    }
    if (own < 0) return FR_OK;
    out->score = lifted(m, query, below);
    out->tied = out->above = INT32_MAX; /* all others are below */
    for (int32_t k = 0; k < out->own; k++)
        if (m->score[k] == 0) m->score[k] = out->score;
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    markov *m = state;
    int32_t *last = &m->last[event->source], slot = m->slot[event->event];
    m->tail[event->destination]++;
    if (slot >= 0 && !m->count[slot]++) m->rows[*last]++;
    *last = event->destination;
    return FR_OK;
}

static uint64_t fingerprint(const void *state) {
    const markov *m = state;
    const fr_window *w = m->w;
    uint64_t hash = fingerprint_add(0, m->tail, (size_t)w->destinations * sizeof *m->tail);
    hash = fingerprint_add(hash, m->last, (size_t)w->sources * sizeof *m->last);
    hash = fingerprint_add(hash, m->rows, (size_t)w->destinations * sizeof *m->rows);
    return fingerprint_add(hash, m->count, (size_t)m->row[w->destinations] * sizeof *m->count);
}

static void close_markov(void *state) {
    markov *m = state;
    arena_free(&m->memory);
    free(m);
}

/* ---- opening ---- */

/* Events by what their source met before, each list in stream order: stable counting sort.
 * `before` is -1 for a source's first event. */
static void list_transitions(const markov *m, const int32_t *before, int32_t *at, int32_t *list) {
    const fr_window *w = m->w;
    int32_t sum = 0;
    for (int32_t i = 0; i < w->events; i++)
        if (before[i] >= 0) at[before[i]]++;
    for (int32_t d = 0; d < w->destinations; d++) {
        int32_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < w->events; i++)
        if (before[i] >= 0) list[at[before[i]]++] = i;
    memmove(at + 1, at, (size_t)w->destinations * sizeof *at); /* each has moved to its end */
    at[0] = 0;
}

/* Gives every event its slot; slots of a row follow the first time of each follower. */
static int32_t number_slots(markov *m, const int32_t *at, const int32_t *list, int32_t *mark) {
    const fr_window *w = m->w;
    int32_t slots = 0, longest = 0;
    for (int32_t v = 0; v < w->destinations; v++) mark[v] = -1;
    for (int32_t d = 0; d < w->destinations; d++) {
        m->row[d] = slots;
        for (int32_t k = at[d]; k < at[d + 1]; k++) {
            int32_t v = w->destination[list[k]];
            if (mark[v] < m->row[d]) mark[v] = slots++; /* slots of earlier rows do not count */
            m->slot[list[k]] = mark[v];
        }
        if (slots - m->row[d] > longest) longest = slots - m->row[d];
    }
    m->row[w->destinations] = slots;
    return longest;
}

static fr_status index_transitions(markov *m, arena *step, fr_error *err) {
    const fr_window *w = m->w;
    int32_t *before, *at, *list, *mark;
    TRY(TAKE(step, before, w->events, err));
    TRY(TAKE(step, at, (size_t)w->destinations + 1, err));
    TRY(TAKE(step, list, w->events, err));
    TRY(TAKE(step, mark, w->destinations, err));
    for (int32_t i = 0; i < w->events; i++) {
        before[i] = m->last[w->source[i]];
        m->last[w->source[i]] = w->destination[i];
        m->slot[i] = -1;
    }
    list_transitions(m, before, at, list);
    int32_t longest = number_slots(m, at, list, mark), slots = m->row[w->destinations];
    TRY(TAKE(&m->memory, m->follower, slots, err));
    TRY(TAKE(&m->memory, m->count, slots, err));
    TRY(TAKE(&m->memory, m->list, longest, err));
    TRY(TAKE(&m->memory, m->score, longest, err));
    for (int32_t i = 0; i < w->events; i++)
        if (m->slot[i] >= 0) m->follower[m->slot[i]] = w->destination[i];
    return FR_OK;
}

static fr_status open_markov(const fr_window *w, const void *settings, int64_t seed,
                             fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    markov *m;
    TRY(ALLOCATE(m, 1, err));
    m->w = w;
    m->is_long = baseline_is_long(w);
    *out = (fr_scorer_definition){.state = m,
                                  .score = score,
                                  .observe = observe,
                                  .fingerprint = fingerprint,
                                  .close = close_markov,
                                  .stand = stand};
    TRY(baseline_count_levels(w, &m->memory, &m->level, err));
    out->level = m->level;
    TRY(TAKE(&m->memory, m->tail, w->destinations, err));
    TRY(TAKE(&m->memory, m->last, w->sources, err));
    TRY(TAKE(&m->memory, m->row, (size_t)w->destinations + 1, err));
    TRY(TAKE(&m->memory, m->rows, w->destinations, err));
    TRY(TAKE(&m->memory, m->slot, w->events, err));
    arena step = {0};
    for (int32_t u = 0; u < w->sources; u++) m->last[u] = -1;
    fr_status status = index_transitions(m, &step, err);
    arena_free(&step);
    for (int32_t u = 0; u < w->sources; u++) m->last[u] = -1;
    return status;
}

const fr_scorer_kind baseline_markov = {
    "markov", "destinations that have followed the source's last destination",
    "Destinations that have followed the source's last destination, in the sequence of "
    "any source, come first. They are ordered by how often they did, and equal counts "
    "by popularity. All others follow by popularity. A source without history gets "
    "plain popularity.",
    .open = open_markov};
