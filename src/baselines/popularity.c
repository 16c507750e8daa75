/* popularity.c - how often a destination has occurred: ever, or lately. */
#include "baselines/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct popularity {
    const fr_window *w;
    arena memory;
    float *tail; /* [destinations] running counts */
    double
        *weight; /* [destinations] sum over events of exp(decay * (t_j - reference)); recent only */
    double decay, reference;
} popularity;

static void close_popularity(void *state) {
    popularity *p = state;
    arena_free(&p->memory);
    free(p);
}

static const void *tail_memory(void *state, size_t *bytes) {
    popularity *p = state;
    *bytes = (size_t)p->w->destinations * (p->weight ? sizeof *p->weight : sizeof *p->tail);
    return p->weight ? (const void *)p->weight : p->tail;
}

static fr_status open_state(const fr_window *w, popularity **out, fr_error *err) {
    TRY(ALLOCATE(*out, 1, err));
    (*out)->w = w;
    return TAKE(&(*out)->memory, (*out)->tail, w->destinations, err);
}

/* ---- running count ---- */

static fr_status score_count(void *state, const fr_query *query, int worker, float *scores,
                             fr_error *err) {
    (void)query, (void)worker, (void)err;
    const popularity *p = state;
    memcpy(scores, p->tail, (size_t)p->w->destinations * sizeof *scores);
    return FR_OK;
}

static fr_status observe_count(void *state, int32_t event, fr_error *err) {
    (void)err;
    popularity *p = state;
    p->tail[p->w->destination[event]] += 1;
    return FR_OK;
}

static fr_status open_count(const fr_window *w, const void *settings, int64_t seed, fr_scorer *out,
                            fr_error *err) {
    (void)settings, (void)seed;
    popularity *p = NULL;
    fr_status status = baseline_check_positions(w, err);
    if (!status) status = open_state(w, &p, err);
    *out = (fr_scorer){.state = p,
                       .score = score_count,
                       .observe = observe_count,
                       .memory = tail_memory,
                       .close = close_popularity};
    return status;
}

/* ---- decayed count ---- */

static fr_status score_recent(void *state, const fr_query *query, int worker, float *scores,
                              fr_error *err) {
    (void)worker, (void)err;
    const popularity *p = state;
    double now = exp(-p->decay * (query->time - p->reference));
    for (int32_t v = 0; v < p->w->destinations; v++)
        scores[v] = p->weight[v] > 0 ? (float)(p->weight[v] * now) : -1;
    return FR_OK;
}

static fr_status observe_recent(void *state, int32_t event, fr_error *err) {
    (void)err;
    popularity *p = state;
    double time = window_time(p->w, event);
    if (p->decay * (time - p->reference) > 500) { /* long before exp overflows */
        double scale = exp(-p->decay * (time - p->reference));
        for (int32_t v = 0; v < p->w->destinations; v++) {
            if (p->weight[v] <= 0) continue;
            double moved = p->weight[v] * scale;
            p->weight[v] = moved > 1e-300 ? moved : 1e-300; /* once seen stays above never seen */
        }
        p->reference = time;
    }
    p->weight[p->w->destination[event]] += exp(p->decay * (time - p->reference));
    return FR_OK;
}

static fr_status open_recent(const fr_window *w, const void *settings, int64_t seed, fr_scorer *out,
                             fr_error *err) {
    (void)seed;
    popularity *p = NULL;
    fr_status status = open_state(w, &p, err);
    if (!status) status = TAKE(&p->memory, p->weight, w->destinations, err);
    if (p) p->decay = baseline_decay(w, ((const decay_settings *)settings)->half_life);
    *out = (fr_scorer){.state = p,
                       .score = score_recent,
                       .observe = observe_recent,
                       .memory = tail_memory,
                       .close = close_popularity};
    return status;
}

const baseline baseline_popularity = {
    .facts = {"popularity", "how often the destination has occurred",
              "The score is the number of events of the destination so far, of all sources, in the "
              "training prefix and the test suffix alike. The same order for every source.",
              baseline_no_options},
    .settings = 1,
    .open = open_count};

const baseline baseline_recent_popularity = {
    .facts = {"recent-popularity", "how often the destination has occurred lately",
              "As popularity, but an event counts 2^(-age / half-life), so the score is the "
              "destination's "
              "present rate. Destinations that have never occurred come last.",
              baseline_decay_options},
    .settings = sizeof(decay_settings),
    .open = open_recent};
