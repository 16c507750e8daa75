/* record.c - see record.h.
 *
 * Ranks are counts (PROTOCOL 5): candidates above and candidates equal. Scores are compared as they
 * are. The loops over the vector have no branches, so the compiler turns them into vector code;
 * counts are whole numbers and masses are summed in four fixed lanes, so neither depends on how.
 */
#include "rank/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fr_status recorder_open(recorder *r, const fr_window *w, bool catalog_only, double popularity_power,
                        fr_error *err) {
    *r = (recorder){.w = w, .catalog_only = catalog_only};
    int32_t test = w->events - w->train;
    TRY(TAKE(&r->memory, r->listed, w->destinations, err));
    TRY(TAKE(&r->memory, r->first, w->destinations, err));
    TRY(TAKE(&r->memory, r->popularity, w->destinations, err));
    TRY(ALLOCATE(r->records, test, err));
    for (int32_t i = 0; i < w->train; i++) r->popularity[w->destination[i]] += 1;
    for (int32_t v = 0; v < w->destinations; v++) {
        r->listed[v] = window_listed(w, v) ? 0 : INT32_MAX;
        r->first[v] = w->destination_at[v] < w->destination_at[v + 1]
                          ? w->destination_events[w->destination_at[v]]
                          : INT32_MAX;
        double count = window_listed(w, v) ? r->popularity[v] : 0;
        r->popularity[v] = count > 0 ? pow(count, popularity_power) : 0;
        r->popularity_total += r->popularity[v];
    }
    for (int32_t k = 0; k < test; k++) {
        int32_t i = w->train + k, u = w->source[i], v = w->destination[i], cut = window_cut(w, i);
        fr_history pair = window_pair_history(w, u, v, cut);
        r->records[k] = (fr_record){
            .event = w->first + i,
            .source = w->source_id[u],
            .destination = w->destination_id[v],
            .time = w->time[i],
            .repeated = pair.count > 0,
            .n = -1,
            .above = -1,
            .tied = -1,
            .seen_n = -1,
            .seen_above = -1,
            .seen_tied = -1,
            .pop_above = NAN,
            .pop_tied = NAN,
            .pop_self = NAN,
            .avail_n = -1,
            .avail_above = -1,
            .avail_tied = -1,
            .score = NAN,
            .pair_count = pair.count,
            .source_degree = window_source_history(w, u, cut, INT32_MAX).count,
            .destination_degree = window_destination_history(w, v, cut, INT32_MAX).count,
            .gap = pair.count ? w->time[i] - w->time[pair.event[pair.count - 1]] : NAN};
    }
    return FR_OK;
}

void recorder_close(recorder *r) {
    arena_free(&r->memory);
    free(r->records);
    *r = (recorder){0};
}

/* Candidates of one catalog against the positive. */
typedef struct counts {
    int32_t n, above, tied; /* without the positive */
} counts;

/* Counts the candidates that `since` has from before `cut` on, without the positive and without
 * the source itself (PROTOCOL 3). */
static counts count_candidates(const recorder *r, const int32_t *since, int32_t cut,
                               const scored_event *e, const float *scores) {
    counts c = {0};
    float positive = scores[e->destination];
    for (int32_t v = 0; v < r->w->destinations; v++) {
        int32_t in = since[v] < cut;
        c.n += in;
        c.above += (scores[v] > positive) & in;
        c.tied += (scores[v] == positive) & in;
    }
    const int32_t out[] = {window_self(r->w, e->source), e->destination};
    for (int k = 0; k < 2; k++) { /* taken out afterwards, so that the loop has no branch */
        int32_t v = out[k];
        if (v < 0 || since[v] >= cut) continue;
        c.n--;
        c.above -= scores[v] > positive;
        c.tied -= scores[v] == positive;
    }
    return c;
}

static counts count_seen(const recorder *r, const scored_event *e, const float *scores,
                         int32_t self) {
    const fr_window *w = r->w;
    counts c = {0};
    fr_history met = window_met(w, e->source, e->cut);
    for (int32_t k = 0; k < met.count; k++) {
        int32_t v = w->destination[met.event[k]];
        if (!window_listed_met(w, v) || v == e->destination || v == self) continue;
        c.n++;
        c.above += scores[v] > scores[e->destination];
        c.tied += scores[v] == scores[e->destination];
    }
    return c;
}

/* Popularity of the whole catalog. In strict order the time-available one may lack destinations of
 * the training prefix: those that first occur at the event's own time. */
static double total_mass(const recorder *r, int32_t cut) {
    if (r->w->catalog_kind != CATALOG_TIME || cut >= r->w->train) return r->popularity_total;
    double total = 0;
    for (int32_t v = 0; v < r->w->destinations; v++)
        total += r->first[v] < cut ? r->popularity[v] : 0;
    return total;
}

/* Popularity above and tied, without the positive and the source itself. */
static void sum_masses(const recorder *r, const scored_event *e, const float *scores, int32_t self,
                       fr_record *out) {
    enum { LANES = 4 };
    double above[LANES] = {0}, tied[LANES] = {0};
    int32_t n = r->w->destinations, destination = e->destination;
    float positive = scores[destination];
    const int32_t *since = r->w->catalog_kind == CATALOG_TIME ? r->first : r->listed;
    int32_t cut = r->w->catalog_kind == CATALOG_TIME ? e->cut : 1;
    for (int32_t v = 0; v < n; v++) {
        int32_t in = (v != destination) & (v != self) & (since[v] < cut);
        double mass = in ? r->popularity[v] : 0;
        above[v % LANES] += scores[v] > positive ? mass : 0;
        tied[v % LANES] += scores[v] == positive ? mass : 0;
    }
    double total = total_mass(r, cut);
    if (self >= 0 && since[self] < cut) total -= r->popularity[self];
    out->pop_above = ((above[0] + above[1]) + (above[2] + above[3])) / total;
    out->pop_tied = ((tied[0] + tied[1]) + (tied[2] + tied[3])) / total;
    out->pop_self = r->popularity[destination] / total;
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    (void)err;
    recorder *r = state;
    fr_record *out = &r->records[e->place];
    counts available = {0};
    out->score = scores[e->destination];
    if (!r->catalog_only) available = count_candidates(r, r->first, e->cut, e, scores);
    if (e->available && !r->catalog_only) {
        out->avail_n = available.n + 1;
        out->avail_above = available.above;
        out->avail_tied = available.tied;
    }
    if (!e->covered) return FR_OK;

    counts ranked = available;
    if (r->w->catalog_kind != CATALOG_TIME) ranked = count_candidates(r, r->listed, 1, e, scores);
    int32_t self = window_self(r->w, e->source);
    counts seen = count_seen(r, e, scores, self);
    out->covered = 1;
    out->n = ranked.n + 1;
    out->above = ranked.above;
    out->tied = ranked.tied;
    out->seen_n = seen.n;
    out->seen_above = seen.above;
    out->seen_tied = seen.tied;
    sum_masses(r, e, scores, self, out);
    return FR_OK;
}

probe recorder_probe(recorder *r) { return (probe){r, read_scores}; }
