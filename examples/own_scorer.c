/* own_scorer.c - one scorer written twice: from the past of the window, and from what it observes.
 *
 *     own_scorer wikipedia.csv stateless THREADS stateless.npy
 *     own_scorer wikipedia.csv stateful THREADS stateful.npy
 *
 * The scorer is the tool's baseline:recency, so the records can be compared with `fullrank rank
 * --scorer baseline:recency`. The source's own destinations come first, the most recently met on
 * top. All others follow by their last event with any source. */
#include <fullrank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A destination that the source has met, and its last event with it. */
typedef struct own {
    int32_t destination, last;
} own;

static int by_last(const void *a, const void *b) {
    int32_t x = ((const own *)a)->last, y = ((const own *)b)->last;
    return (x > y) - (x < y);
}

/* ---- from the past of the window: nothing to remember, any number of threads ---- */

typedef struct stateless {
    const fr_window *window;
    fr_columns columns;
    int32_t candidates;
} stateless;

static fr_status score_past(void *state, const fr_query *query, int count, int worker,
                            float *scores, fr_error *err) {
    const stateless *s = state;
    (void)count, (void)worker; /* one query at a time, no memory per worker */
    for (int32_t v = 0; v < s->candidates; v++) {
        fr_history last = fr_window_destination_history(s->window, v, query->event, 1);
        scores[v] = last.count ? (float)last.event[0] : -1;
    }
    fr_history met = fr_window_met(s->window, query->source, query->event);
    if (!met.count) return FR_OK;
    own *list = malloc((size_t)met.count * sizeof *list);
    if (!list) return fr_fail(err, FR_ENOMEM, "out of memory");
    for (int32_t k = 0; k < met.count; k++) {
        int32_t v = s->columns.destination[met.event[k]];
        fr_history pair = fr_window_pair_history(s->window, query->source, v, query->event);
        list[k] = (own){v, pair.event[pair.count - 1]};
    }
    qsort(list, (size_t)met.count, sizeof *list, by_last);
    int32_t above = fr_window_cut(s->window, query->event); /* more than any past event's number */
    for (int32_t k = 0; k < met.count; k++) scores[list[k].destination] = (float)(above + k);
    free(list);
    return FR_OK;
}

/* ---- from what it observes: one thread, in stream order ---- */

typedef struct stateful {
    int32_t sources, candidates;
    int32_t seen;  /* events so far */
    int32_t *last; /* [sources + 1, candidates] last event; the last row is of all sources */
    own *list;     /* [candidates] */
} stateful;

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    stateful *s = state;
    (void)err;
    s->last[(int64_t)event->source * s->candidates + event->destination] = event->event;
    s->last[(int64_t)s->sources * s->candidates + event->destination] = event->event;
    s->seen = event->event + 1;
    return FR_OK;
}

static fr_status score_state(void *state, const fr_query *query, int count, int worker,
                             float *scores, fr_error *err) {
    const stateful *s = state;
    const int32_t *mine = s->last + (int64_t)query->source * s->candidates;
    const int32_t *all = s->last + (int64_t)s->sources * s->candidates;
    int32_t met = 0;
    (void)count, (void)worker, (void)err;
    for (int32_t v = 0; v < s->candidates; v++) {
        scores[v] = (float)all[v];
        if (mine[v] >= 0) s->list[met++] = (own){v, mine[v]};
    }
    qsort(s->list, (size_t)met, sizeof *s->list, by_last);
    int32_t above = s->seen; /* more than any past event's number */
    for (int32_t k = 0; k < met; k++) scores[s->list[k].destination] = (float)(above + k);
    return FR_OK;
}

/* ---- both ---- */

static fr_status rank_with(fr_window *window, const fr_scorer_definition *mine,
                           const fr_context *context, const char *path, fr_error *err) {
    fr_scorer *scorer = NULL;
    fr_ranking *ranking = NULL;
    fr_status status = fr_scorer_make(window, mine, &scorer, err);
    if (!status) status = fr_rank_run(scorer, NULL, context, &ranking, err);
    if (!status) status = fr_ranking_save(ranking, path, true, err);
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    return status;
}

static fr_status rank_stateless(fr_window *window, const fr_context *context, const char *path,
                                fr_error *err) {
    fr_window_facts w = fr_window_get(window);
    stateless past = {window, fr_window_columns(window), (int32_t)w.candidates};
    fr_scorer_definition mine = {.size = sizeof mine,
                                 .name = "stateless",
                                 .seed = 1,
                                 .state = &past,
                                 .score = score_past,
                                 .workers = FR_WORKERS_ANY};
    return rank_with(window, &mine, context, path, err);
}

static fr_status rank_stateful(fr_window *window, const fr_context *context, const char *path,
                               fr_error *err) {
    fr_window_facts w = fr_window_get(window);
    size_t cells = (size_t)(w.sources + 1) * (size_t)w.candidates;
    stateful state = {(int32_t)w.sources, (int32_t)w.candidates, 0,
                      malloc(cells * sizeof *state.last),
                      malloc((size_t)w.candidates * sizeof *state.list)};
    fr_scorer_definition mine = {.size = sizeof mine,
                                 .name = "stateful",
                                 .seed = 1,
                                 .state = &state,
                                 .score = score_state,
                                 .observe = observe};
    bool memory = state.last && state.list;
    for (size_t k = 0; memory && k < cells; k++) state.last[k] = -1;
    fr_status status = memory ? rank_with(window, &mine, context, path, err)
                              : fr_fail(err, FR_ENOMEM, "out of memory");
    free(state.last);
    free(state.list);
    return status;
}

int main(int count, char **argument) {
    if (count != 5) return fprintf(stderr, "usage: own_scorer TABLE KIND THREADS RANKS.npy\n"), 2;
    bool from_past = !strcmp(argument[2], "stateless");
    fr_context context = {.threads = atoi(argument[3])};
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_status status = fr_stream_open(argument[1], NULL, &context, &stream, &err);
    if (!status) status = fr_window_open(stream, NULL, &context, &window, &err);
    if (!status)
        status = (from_past ? rank_stateless : rank_stateful)(window, &context, argument[4], &err);
    if (status) fprintf(stderr, "%s\n", err.message);
    fr_window_close(window);
    fr_stream_close(stream);
    return status ? 1 : 0;
}
