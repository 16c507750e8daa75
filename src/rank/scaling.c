/* scaling.c - the cost of one event as the catalog grows (PROTOCOL 12; fullrank.h, chapter 14).
 *
 * Models can score only some candidates, through the plain forward pass. Fast paths, baselines and
 * score files always fill the whole vector. Each is measured as it is: forward over
 * growing catalogs and the fast path over the largest; the others over growing catalogs, of which
 * only the counting of ranks grows. Last, all of them as `rank` has it: through the engine, many
 * events at once, with all fields of the records, or counted without scoring.
 *
 * Processes share the events of every size, and all measure at the same time. Their results are
 * added in the order of the events, so the MRR equals that of one process. Process 0 measures
 * `rank` when the others are done.
 *
 * Sizes increase, so the peak memory of one size never includes a larger one. For each event the
 * fastest of some repeats counts, and the smaller of two clocks: processor time excludes other
 * programs, but reading it takes as long as a baseline's scoring.
 */
#include "rank/scaling.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/options.h"
#include "base/os.h"
#include "base/processes.h"
#include "base/rng.h"
#include "rank/engine.h"
#include "rank/learned.h"
#include "rank/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_scaling_options[FR_OPTIONS_MAX] = {
    {"events", FR_OPTION_INT, "128", "N", 1, INT32_MAX, offsetof(fr_scaling_settings, events),
     "ranked test events to measure, evenly spread"},
    {"repeats", FR_OPTION_INT, "3", "N", 1, 1000, offsetof(fr_scaling_settings, repeats),
     "how often each is scored; the fastest counts"},
    OPTIONS_END(fr_scaling_settings)};

/* ---- catalogs ---- */

void scaling_order(const fr_window *w, uint64_t seed, int32_t *order) {
    rng_key key = {.seed = seed, .purpose = RNG_SCALING};
    memcpy(order, w->catalog, (size_t)w->catalog_size * sizeof *order);
    for (int32_t k = 0; k < w->catalog_size; k++) {
        uint32_t left = (uint32_t)(w->catalog_size - k);
        int32_t at = k + (int32_t)rng_below(key, 0, (uint32_t)k, left), v = order[at];
        order[at] = order[k];
        order[k] = v;
    }
}

int32_t scaling_candidates(const fr_window *w, const int32_t *order, int32_t event, int32_t size,
                           int32_t *out) {
    int32_t positive = w->destination[event], self = window_self(w, w->source[event]), count = 1;
    out[0] = positive;
    for (int32_t k = 0; k < w->catalog_size && count < size; k++)
        if (order[k] != positive && order[k] != self) out[count++] = order[k];
    return count;
}

/* 20, 50, 100, 200, 500, ... below `most`, and `most` itself. */
static int catalog_sizes(int32_t most, int32_t *out) {
    static const int steps[] = {2, 5, 10};
    int count = 0;
    for (int64_t unit = 10; 2 * unit < most; unit *= 10)
        for (int k = 0; k < 3 && steps[k] * unit < most; k++)
            out[count++] = (int32_t)(steps[k] * unit);
    out[count++] = most;
    return count;
}

/* ---- measuring ---- */

/* The cost of one event in one catalog, and twice its rank. */
typedef struct measured {
    double seconds;
    int64_t twice;
} measured;

typedef struct scaling {
    const fr_window *w;
    const fr_scaling_settings *settings;
    const fr_context *context;
    int32_t *order;     /* [catalog_size] */
    int32_t *event;     /* [events] */
    int32_t events;     /* to measure */
    int32_t *candidate; /* [catalog_size + 1] of the present event */
    float *scores;      /* [most of destinations, catalog_size + 1] */
    float *catalog_row; /* [catalog_size] for scorers of the catalog only */
    float *row;         /* one of the two, the one that the scorer fills */
    tape tape;          /* of forward */
    measured *each;     /* [FR_SCALING_MAX, events] */
} scaling;

/* Twice the rank of the first candidate. */
static int64_t count_listed(const float *scores, int32_t count) {
    int64_t twice = 2;
    for (int32_t k = 1; k < count; k++)
        twice += 2 * (scores[k] > scores[0]) + (scores[k] == scores[0]);
    return twice;
}
static int64_t count_among(const float *scores, const int32_t *candidate, int32_t count) {
    int64_t twice = 2;
    float positive = scores[candidate[0]];
    for (int32_t k = 1; k < count; k++)
        twice += 2 * (scores[candidate[k]] > positive) + (scores[candidate[k]] == positive);
    return twice;
}

/* Wall time, and processor time of this thread. */
static void clock_both(double out[2]) {
    out[0] = clock_now();
    out[1] = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Scores the candidates of one event and ranks its positive among them. */
static fr_status score_event(scaling *s, fr_scorer *scorer, const model *forward, int32_t event,
                             int32_t count, int64_t *twice, fr_error *err) {
    if (forward) {
        const int32_t from[] = {0, count};
        model_batch batch = {1, &event, from, s->candidate};
        tape_reset(&s->tape);
        tensor y = forward->kind->forward(forward, &s->tape, &batch, NULL);
        if (s->tape.status) return fail(err, s->tape.status, "%s", s->tape.error.message);
        for (int32_t k = 0; k < count; k++) s->scores[k] = (float)y.v[k];
        *twice = count_listed(s->scores, count);
        return FR_OK;
    }
    fr_query query = {event, s->w->source[event], window_time(s->w, event)};
    TRY(fr_scorer_score(scorer, &query, 1, 0, s->row, err));
    if (scorer->is.catalog_only) engine_spread(s->w, s->row, s->scores);
    *twice = count_among(s->scores, s->candidate, count);
    return FR_OK;
}

/* Measures one size. A scorer that remembers must be a new one. `forward` is NULL for the scorer's
 * own path. */
static fr_status measure(scaling *s, fr_scorer *scorer, const model *forward, int32_t size,
                         measured *each, fr_scaling_point *out, fr_error *err) {
    int count = processes_count(s->context), number = processes_number(s->context);
    *out = (fr_scaling_point){.size = size};
    s->row = scorer->is.catalog_only ? s->catalog_row : s->scores;
    s->tape.params = forward ? &forward->params : NULL;
    os_forget_peak();
    for (int32_t i = number; i < s->events; i += count) {
        int32_t event = s->event[i], cut = window_cut(s->w, event);
        int32_t candidates = scaling_candidates(s->w, s->order, event, size, s->candidate);
        double fastest = -1;
        TRY(context_check(s->context, err));
        TRY(fr_scorer_observe(scorer, cut, err));
        for (int64_t r = 0; r < s->settings->repeats; r++) {
            double worked = clock_seconds(CLOCK_THREAD_CPUTIME_ID), start = clock_now();
            TRY(score_event(s, scorer, forward, event, candidates, &each[i].twice, err));
            double seconds = clock_now() - start;
            seconds = fmin(seconds, clock_seconds(CLOCK_THREAD_CPUTIME_ID) - worked);
            if (fastest < 0 || seconds < fastest) fastest = seconds;
        }
        each[i].seconds = fastest;
    }
    out->events = s->events;
    out->scored = forward ? size : s->w->destinations;
    out->peak_bytes = os_peak_memory();
    return FR_OK;
}

/* Receives the measurements of process `from`. */
static void join_part(scaling *s, int from, const measured *each, const fr_scaling_point *point,
                      fr_scaling_point *out, int count) {
    for (int k = 0; k < count; k++) {
        if (point[k].peak_bytes > out[k].peak_bytes) out[k].peak_bytes = point[k].peak_bytes;
        for (int32_t i = from; i < s->events; i += processes_count(s->context))
            s->each[k * s->events + i] = each[k * s->events + i];
    }
}

/* Collects the measurements of all processes at process 0. */
static fr_status join(scaling *s, fr_scaling_point *out, int count, fr_error *err) {
    size_t each = (size_t)count * (size_t)s->events * sizeof *s->each;
    size_t points = (size_t)count * sizeof *out;
    for (int k = 1; k < processes_count(s->context); k++) {
        void *theirs[2] = {0};
        size_t size[2];
        fr_status status =
            processes_collect(s->context, k, s->each, each, &theirs[0], &size[0], err);
        if (!status)
            status = processes_collect(s->context, k, out, points, &theirs[1], &size[1], err);
        bool mine = !processes_number(s->context);
        if (!status && mine && (size[0] != each || size[1] != points))
            status = fail(err, FR_EINPUT, "process %d has measured something else", k);
        if (!status && mine) join_part(s, k, theirs[0], theirs[1], out, count);
        free(theirs[0]);
        free(theirs[1]);
        if (status) return status;
    }
    return FR_OK;
}

static void sum_up(const scaling *s, const measured *each, fr_scaling_point *out) {
    for (int32_t i = 0; i < s->events; i++) {
        out->seconds += each[i].seconds;
        out->mrr += 2.0 / (double)each[i].twice;
    }
    out->seconds /= s->events;
    out->mrr /= s->events;
}

/* The cost of a test event in `rank`: its share of the preparation for all events, and its ranking.
 * If ranks are counted, an event costs little more than observing it, so all events are ranked. */
static fr_status rank_once(scaling *s, fr_scorer *scorer, const event_list *chosen,
                           fr_scaling_point *out, fr_error *err) {
    fr_context alone = context_team(s->context, 1);
    alone.processes = NULL; /* this process ranks all events */
    counting_check none = {0};
    run r;
    double start[2], opened[2], done[2];
    clock_both(start);
    fr_status status = run_open(&r, scorer, NULL, 1, &alone, err);
    clock_both(opened);
    if (!status) status = run_events(&r, scorer, chosen, &none, &alone, err);
    clock_both(done);
    const event_list *ranked = status || run_counts(&r) ? &r.events : chosen;
    double seconds = INFINITY;
    for (int k = 0; k < 2; k++)
        seconds = fmin(seconds, (opened[k] - start[k]) / r.events.count +
                                    (done[k] - opened[k]) / ranked->count);
    if (out->seconds == 0 || seconds < out->seconds) out->seconds = seconds;
    out->events = 0;
    out->mrr = 0;
    for (int32_t k = 0; !status && k < ranked->count; k++) {
        const fr_record *record = &r.records.records[events_at(ranked, k) - s->w->from];
        out->events += record->covered;
        if (record->covered) out->mrr += 2 / (2.0 + 2.0 * record->above + record->tied);
    }
    if (out->events) out->mrr /= (double)out->events;
    run_close(&r);
    return status;
}

/* A scorer that remembers is opened again each time. */
static fr_status measure_rank(scaling *s, const char *spec, int64_t seed, fr_scaling_point *out,
                              fr_error *err) {
    fr_context alone = context_team(s->context, 1);
    fr_scorer *scorer = NULL;
    event_list chosen;
    *out = (fr_scaling_point){.size = s->w->catalog_size, .path = "rank"};
    out->scored = s->w->destinations;
    fr_status status = events_given(&chosen, s->w, s->event, s->events, err);
    for (int64_t k = 0; !status && k < s->settings->repeats; k++) {
        if (!scorer || scorer->is.observe) {
            fr_scorer_close(scorer);
            status = fr_scorer_open(spec, s->w, seed, &alone, &scorer, err);
        }
        os_forget_peak();
        if (!status) status = rank_once(s, scorer, &chosen, out, err);
    }
    out->peak_bytes = os_peak_memory();
    fr_scorer_close(scorer);
    events_close(&chosen);
    return status;
}

/* Ranked test events, evenly spread. */
static fr_status choose_events(scaling *s, fr_error *err) {
    const fr_window *w = s->w;
    int32_t covered = 0, next = 0, seen = 0;
    for (int32_t i = w->from; i < w->to; i++) covered += window_covered(w, i);
    if (!covered)
        return fail(err, FR_EINPUT, "%s: no test event has its destination in the catalog",
                    w->stream->name);
    s->events = s->settings->events < covered ? (int32_t)s->settings->events : covered;
    TRY(ALLOCATE(s->event, s->events, err));
    for (int32_t i = w->from; i < w->to && next < s->events; i++) {
        if (!window_covered(w, i)) continue;
        if (seen++ == (int64_t)next * covered / s->events) s->event[next++] = i;
    }
    return FR_OK;
}

static fr_status measure_all(scaling *s, const char *spec, int64_t seed, fr_scaling_point *out,
                             int *count, fr_error *err) {
    const fr_window *w = s->w;
    int32_t sizes[FR_SCALING_MAX];
    int size_count = catalog_sizes(w->catalog_size, sizes);
    fr_context alone = context_team(s->context, 1);
    fr_scorer *scorer = NULL;
    fr_status status = fr_scorer_open(spec, w, seed, &alone, &scorer, err);
    const model *forward = status ? NULL : learned_model(scorer);
    for (int k = 0; !status && k < size_count; k++) {
        context_progress(s->context, "scaling", (uint64_t)k, (uint64_t)size_count, "sizes");
        if (k && scorer->is.observe) { /* back to the start of the stream */
            fr_scorer_close(scorer);
            status = fr_scorer_open(spec, w, seed, &alone, &scorer, err);
        }
        measured *each = s->each + *count * s->events;
        fr_scaling_point *point = &out[(*count)++];
        if (!status) status = measure(s, scorer, forward, sizes[k], each, point, err);
        point->path = forward ? "forward" : "whole";
    }
    tape_free(&s->tape);
    if (!status && forward) {
        measured *each = s->each + *count * s->events;
        fr_scaling_point *point = &out[(*count)++];
        status = measure(s, scorer, NULL, w->catalog_size, each, point, err);
        point->path = "fast";
    }
    fr_scorer_close(scorer);
    return status;
}

/* After all measurements: process 0 makes the points, and measures `rank`. */
static fr_status finish(scaling *s, const char *spec, int64_t seed, fr_scaling_point *out,
                        int *count, fr_error *err) {
    TRY(join(s, out, *count, err));
    if (processes_number(s->context)) {
        *count = 0;
        return FR_OK;
    }
    for (int k = 0; k < *count; k++) sum_up(s, s->each + k * s->events, &out[k]);
    return measure_rank(s, spec, seed, &out[(*count)++], err);
}

fr_status fr_scaling_run(const fr_window *window, const char *spec,
                         const fr_scaling_settings *settings, int64_t seed,
                         const fr_context *context, fr_scaling_point *out, int *count,
                         fr_error *err) {
    const fr_window *w = window;
    fr_scaling_settings own;
    NEED(window, err);
    NEED(spec, err);
    NEED(out, err);
    NEED(count, err);
    *count = 0;
    TRY(options_settle(fr_scaling_options, settings, &own, sizeof own, err));
    scaling s = {.w = w, .settings = &own, .context = context};
    int32_t most = w->destinations > w->catalog_size ? w->destinations : w->catalog_size + 1;
    if (w->catalog_kind == CATALOG_TIME)
        return fail(err, FR_EUSAGE, "catalog time has no size of its own, expected a fixed one");
    fr_status status = choose_events(&s, err);
    if (!status) status = ALLOCATE(s.each, (size_t)FR_SCALING_MAX * (size_t)s.events, err);
    if (!status) status = ALLOCATE(s.order, w->catalog_size, err);
    if (!status) status = ALLOCATE(s.candidate, w->catalog_size + 1, err);
    if (!status) status = ALLOCATE(s.scores, most, err);
    if (!status) status = ALLOCATE(s.catalog_row, w->catalog_size, err);
    if (!status) {
        scaling_order(w, (uint64_t)seed, s.order);
        status = measure_all(&s, spec, seed, out, count, err);
    }
    status = fr_processes_agree(context, status, err);
    if (!status) status = finish(&s, spec, seed, out, count, err);
    free(s.order);
    free(s.event);
    free(s.candidate);
    free(s.scores);
    free(s.catalog_row);
    free(s.each);
    return status;
}
