/* edgebank.c - is the pair in memory? Scores are 0 and 1, so nearly all candidates tie, and the tie
 * rule decides the number (docs/metrics.md).
 *
 * EdgeBank is from Poursafaei et al. (2022), code DGB; TGB has it as a baseline. "So far" means the
 * events before the ranked one. Here the memory is updated before every event; both programs update
 * it once per batch.
 *
 *   unlimited   every pair met so far (both)
 *   window      pairs met at or after the (1 - share) quantile of all event times so far, so in the
 *               last `share` of the events: DGB's fixed window, and TGB's at first. NumPy's linear
 *               interpolation
 *   duration    pairs met within share * (duration of the training prefix) before the latest event
 *               so far, so in a window of constant length: TGB's EdgeBankPredictor today
 *   interval    pairs met within the average time between two meetings of a pair before the latest
 *               event so far: DyGLib's time window of mode repeat_interval. A pair's own average is
 *               (last - first meeting) / (meetings - 1); a pair that has met once counts as
 *               0, as in DyGLib
 *   threshold   pairs met at least as often as the average pair, events / distinct pairs so far:
 *               DGB's repetition-based memory
 *
 * The scores follow from the window's index, except the number of distinct pairs and the sum of
 * their average intervals, which are in tables.
 */
#include "baselines/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNLIMITED, WINDOW, DURATION, THRESHOLD, INTERVAL };

typedef struct edgebank_settings {
    int memory;
    double share;
} edgebank_settings;

typedef struct edgebank {
    const fr_window *w;
    edgebank_settings settings;
    arena memory;
    int32_t
        *distinct; /* [events + 1] distinct pairs among the first k events; THRESHOLD, INTERVAL */
    double *intervals; /* [events + 1] sum of their average intervals; INTERVAL */
    int32_t *met;      /* [pairs] destinations of the window's first meetings, in their order */
    int32_t *own;      /* [longest list] those in memory, for `stand` */
    float *ones;       /* [longest list] their scores */
} edgebank;

/* The quantile of the times of events 0..count-1, which are sorted. */
static double time_quantile(const fr_window *w, int32_t count, double share) {
    double place = (count - 1) * share;
    int32_t below = (int32_t)floor(place);
    double low = w->time[below], high = w->time[below + 1 < count ? below + 1 : below];
    return low + (high - low) * (place - below);
}

/* Meetings from this time on are remembered, for the events before `cut` (at least one). */
static double oldest_time(const edgebank *b, int32_t cut) {
    const fr_window *w = b->w;
    if (b->settings.memory == WINDOW) return time_quantile(w, cut, 1 - b->settings.share);
    if (b->settings.memory == INTERVAL)
        return w->time[cut - 1] - b->intervals[cut] / b->distinct[cut];
    double duration = w->time[w->train - 1] - w->time[0];
    return w->time[cut - 1] - b->settings.share * duration;
}

/* The first event of that time, or `cut`. 0 where time does not matter. */
static int32_t oldest_event(const edgebank *b, int32_t cut) {
    if (!cut || b->settings.memory == UNLIMITED || b->settings.memory == THRESHOLD) return 0;
    double oldest = oldest_time(b, cut);
    int32_t low = 0, high = cut;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (b->w->time[middle] < oldest)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool remembers(const edgebank *b, int32_t pair, int32_t cut, int32_t oldest) {
    const fr_window *w = b->w;
    const int32_t *event = w->pair_events + w->pair_at[pair];
    int32_t count = events_below(event, w->pair_at[pair + 1] - w->pair_at[pair], cut);
    if (!count) return false;
    if (b->settings.memory == THRESHOLD) return (double)count * b->distinct[cut] >= cut;
    return event[count - 1] >= oldest;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err;
    const edgebank *b = state;
    const fr_window *w = b->w;
    int32_t u = query->source, cut = window_cut(w, query->event), oldest = oldest_event(b, cut);
    memset(scores, 0, (size_t)w->destinations * sizeof *scores);
    for (int32_t pair = w->source_pair_at[u]; pair < w->source_pair_at[u + 1]; pair++)
        if (remembers(b, pair, cut, oldest)) scores[w->pair_destination[pair]] = 1;
    return FR_OK;
}

/* All others score 0, whatever their level, which is 0. */
static fr_status stand(void *state, const fr_query *query, int32_t destination, fr_standing *out,
                       fr_error *err) {
    (void)err;
    edgebank *b = state;
    const fr_window *w = b->w;
    int32_t u = query->source, cut = window_cut(w, query->event), oldest = oldest_event(b, cut);
    int32_t pair = window_pair(w, u, destination);
    bool known = pair >= 0 && remembers(b, pair, cut, oldest);
    *out = (fr_standing){.score = known, .tied = known, .above = 1, .own_score = b->ones};
    if (b->settings.memory == UNLIMITED) {
        out->destination = b->met + w->source_pair_at[u];
        out->own = window_met(w, u, cut).count;
        return FR_OK;
    }
    out->destination = b->own;
    for (pair = w->source_pair_at[u]; pair < w->source_pair_at[u + 1]; pair++)
        if (remembers(b, pair, cut, oldest)) b->own[out->own++] = w->pair_destination[pair];
    return FR_OK;
}

static void close_edgebank(void *state) {
    edgebank *b = state;
    arena_free(&b->memory);
    free(b);
}

static fr_status count_pairs(edgebank *b, fr_error *err) {
    const fr_window *w = b->w;
    TRY(TAKE(&b->memory, b->distinct, w->events + 1, err));
    for (int32_t k = 0; k < w->pairs; k++) b->distinct[w->firsts[k] + 1] = 1;
    for (int32_t i = 0; i < w->events; i++) b->distinct[i + 1] += b->distinct[i];
    return FR_OK;
}

/* Every event changes the average interval of its own pair. */
static fr_status sum_intervals(edgebank *b, fr_error *err) {
    const fr_window *w = b->w;
    TRY(TAKE(&b->memory, b->intervals, w->events + 1, err));
    for (int32_t pair = 0; pair < w->pairs; pair++) {
        const int32_t *event = w->pair_events + w->pair_at[pair];
        double first = w->time[event[0]], before = 0;
        for (int32_t k = 1; k < w->pair_at[pair + 1] - w->pair_at[pair]; k++) {
            double now = (w->time[event[k]] - first) / k;
            b->intervals[event[k] + 1] = now - before;
            before = now;
        }
    }
    for (int32_t i = 0; i < w->events; i++) b->intervals[i + 1] += b->intervals[i];
    return FR_OK;
}

static fr_status open_edgebank(const fr_window *w, const void *settings, int64_t seed,
                               fr_scorer_definition *out, fr_error *err) {
    (void)seed;
    edgebank *b;
    TRY(ALLOCATE(b, 1, err));
    b->w = w;
    if (settings) b->settings = *(const edgebank_settings *)settings;
    *out = (fr_scorer_definition){.state = b,
                                  .workers = FR_WORKERS_ANY,
                                  .score = score,
                                  .close = close_edgebank,
                                  .stand = stand};
    int32_t longest = baseline_longest(w);
    TRY(TAKE(&b->memory, b->met, w->pairs, err));
    TRY(TAKE(&b->memory, b->own, longest, err));
    for (int32_t k = 0; k < w->pairs; k++) b->met[k] = w->destination[w->firsts[k]];
    TRY(TAKE(&b->memory, b->ones, longest, err));
    for (int32_t k = 0; k < longest; k++) b->ones[k] = 1;
    int memory = b->settings.memory;
    if (memory == THRESHOLD || memory == INTERVAL) TRY(count_pairs(b, err));
    if (memory == INTERVAL) TRY(sum_intervals(b, err));
    return FR_OK;
}

static fr_status open_membership(const fr_window *w, const void *settings, int64_t seed,
                                 fr_scorer_definition *out, fr_error *err) {
    (void)settings;
    return open_edgebank(w, NULL, seed, out, err);
}

static const fr_option edgebank_options[] = {
    {"memory", FR_OPTION_CHOICE, "unlimited", "unlimited|window|duration|threshold|interval", 0, 0,
     offsetof(edgebank_settings, memory), "which pairs are remembered"},
    {"share", FR_OPTION_REAL, "0.15", "SHARE", 0, 1, offsetof(edgebank_settings, share),
     "memory=window: share of all events so far; memory=duration: share of the duration "
     "of the training prefix"},
    {0}};
const fr_scorer_kind baseline_edgebank = {
    "edgebank",
    "1 if the pair is in memory, else 0",
    "EdgeBank of Poursafaei et al. (2022), updated before every event. "
    "memory=unlimited remembers every pair that has met so far. memory=window (DGB, "
    "and TGB at first): pairs that met at or after the 0.85 quantile of all event "
    "times so far (share=0.15). memory=duration (TGB today): pairs that met in the "
    "last 0.15 of the training prefix's duration, counted back from the latest event. "
    "memory=threshold (DGB): pairs that met at least as often as the average pair. "
    "memory=interval (DyGLib's repeat_interval): pairs that met in the last stretch of "
    "time that is as long as the average time between two meetings of a pair, a pair "
    "met once counting as 0. Scores are 0 and 1, so ties are real and the tie rule "
    "decides the number.",
    edgebank_options,
    .settings = sizeof(edgebank_settings),
    .open = open_edgebank};

const fr_scorer_kind baseline_membership = {
    "membership", "1 if the pair has met before, else 0",
    "Pair membership alone, s = M(u, v): a model that only knows which destinations "
    "the source has met. The scores are the same as those of edgebank with unlimited "
    "memory.",
    .open = open_membership};
