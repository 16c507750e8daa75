/* markov.c - what tends to follow the source's last destination.
 *
 * Transition counts are over all sources. A row is the list of destinations that have followed one
 * destination; rows are short, so they are searched from the front, where the frequent ones end up.
 */
#include "baselines/baseline.h"

#include "base/fingerprint.h"

#include <stdlib.h>
#include <string.h>

typedef struct follower {
    int32_t destination, count;
} follower;

typedef ARRAY(follower) follower_list;

typedef struct markov {
    const fr_window *w;
    arena memory;
    float *tail;         /* [destinations] running popularity */
    int32_t *last;       /* [sources] last destination, -1 = none */
    follower_list *rows; /* [destinations] */
    keyed *list;         /* [destinations] scratch, one worker only */
} markov;

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err;
    const markov *m = state;
    memcpy(scores, m->tail, (size_t)m->w->destinations * sizeof *scores);
    int32_t last = m->last[query->source];
    if (last < 0) return FR_OK;
    const follower_list *row = &m->rows[last];
    double most =
        m->w->events + 1.0; /* popularity never reaches it: it only breaks ties of count */
    for (size_t k = 0; k < row->count; k++) {
        int32_t v = row->at[k].destination;
        m->list[k] = (keyed){row->at[k].count + m->tail[v] / most, v};
    }
    lift_list(m->list, (int32_t)row->count, (float)most, scores);
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    markov *m = state;
    int32_t u = event->source, v = event->destination;
    m->tail[v] += 1;
    int32_t last = m->last[u];
    m->last[u] = v;
    if (last < 0) return FR_OK;
    follower_list *row = &m->rows[last];
    size_t k = 0;
    while (k < row->count && row->at[k].destination != v) k++;
    if (k == row->count) ARRAY_PUSH(row, ((follower){v, 0}), err);
    row->at[k].count++;
    if (k && row->at[k].count > row->at[k - 1].count) {
        follower swap = row->at[k];
        row->at[k] = row->at[k - 1];
        row->at[k - 1] = swap;
    }
    return FR_OK;
}

static uint64_t fingerprint(const void *state) {
    const markov *m = state;
    uint64_t hash = fingerprint_add(0, m->tail, (size_t)m->w->destinations * sizeof *m->tail);
    hash = fingerprint_add(hash, m->last, (size_t)m->w->sources * sizeof *m->last);
    for (int32_t v = 0; v < m->w->destinations; v++)
        hash = fingerprint_add(hash, m->rows[v].at, m->rows[v].count * sizeof *m->rows[v].at);
    return hash;
}

static void close_markov(void *state) {
    markov *m = state;
    for (int32_t v = 0; m->rows && v < m->w->destinations; v++) free(m->rows[v].at);
    arena_free(&m->memory);
    free(m);
}

static fr_status open_markov(const fr_window *w, const void *settings, int64_t seed,
                             fr_scorer_definition *out, fr_error *err) {
    (void)settings, (void)seed;
    markov *m;
    TRY(baseline_check_positions(w, err));
    TRY(ALLOCATE(m, 1, err));
    m->w = w;
    *out = (fr_scorer_definition){.state = m,
                                  .score = score,
                                  .observe = observe,
                                  .fingerprint = fingerprint,
                                  .close = close_markov};
    TRY(TAKE(&m->memory, m->tail, w->destinations, err));
    TRY(TAKE(&m->memory, m->list, w->destinations, err));
    TRY(TAKE(&m->memory, m->last, w->sources, err));
    for (int32_t u = 0; u < w->sources; u++) m->last[u] = -1;
    return TAKE(&m->memory, m->rows, w->destinations, err);
}

const fr_scorer_kind baseline_markov = {"markov", "what has followed the source's last destination",
                                        "Destinations that have followed the source's last "
                                        "destination, in anyone's sequence, come "
                                        "first, by how often they did, equal counts by "
                                        "popularity. All others follow by popularity. "
                                        "A source without history gets plain popularity.",
                                        .open = open_markov};
