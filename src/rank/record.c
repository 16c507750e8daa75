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

/* What is known of a ranked event before any score is. */
static fr_record describe_event(const fr_window *w, int32_t i) {
    int32_t u = w->source[i], v = w->destination[i], cut = window_cut(w, i);
    fr_history pair = window_pair_history(w, u, v, cut);
    return (fr_record){.event = w->first + i,
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
                       .gap = pair.count ? w->time[i] - w->time[pair.event[pair.count - 1]] : NAN,
                       .filtered = -1,
                       .train_n = -1,
                       .train_above = -1,
                       .train_tied = -1,
                       .tied_before = -1};
}

static fr_status open_scratch(recorder *r, int threads, fr_error *err) {
    const fr_window *w = r->w;
    if (w->protocol.filter == FR_FILTER_NONE) return FR_OK;
    int32_t most = 0;
    for (int32_t i = w->from; i < w->to; i++) {
        int32_t rivals = window_rivals(w, i).count;
        if (rivals > most) most = rivals;
    }
    TRY(TAKE(&r->memory, r->scratch, threads, err));
    for (int k = 0; k < threads; k++) {
        TRY(TAKE(&r->memory, r->scratch[k].out, most + 2, err));
        TRY(TAKE(&r->memory, r->scratch[k].stamp, w->destinations, err));
        for (int32_t v = 0; v < w->destinations; v++) r->scratch[k].stamp[v] = -1;
    }
    return FR_OK;
}

/* A destination by the decimal text of its id: the digits from the left, then their number. */
typedef struct text_key {
    uint64_t aligned; /* the digits, and zeros up to 19 of them */
    int32_t digits, destination;
} text_key;

static int by_text(const void *a, const void *b) {
    const text_key *x = a, *y = b;
    if (x->aligned != y->aligned) return x->aligned < y->aligned ? -1 : 1;
    return x->digits - y->digits;
}

static fr_status sort_texts(recorder *r, fr_error *err) {
    enum { MOST_DIGITS = 19 }; /* of an id, which is never negative */
    int32_t count = r->w->destinations;
    text_key *key;
    TRY(TAKE(&r->memory, r->text, count, err));
    TRY(ALLOCATE(key, count, err));
    for (int32_t v = 0; v < count; v++) {
        key[v] = (text_key){(uint64_t)r->w->destination_id[v], 1, v};
        for (uint64_t rest = key[v].aligned; rest >= 10; rest /= 10) key[v].digits++;
        for (int32_t k = key[v].digits; k < MOST_DIGITS; k++) key[v].aligned *= 10;
    }
    qsort(key, (size_t)count, sizeof *key, by_text);
    for (int32_t k = 0; k < count; k++) r->text[key[k].destination] = k;
    free(key);
    return FR_OK;
}

fr_status recorder_open(recorder *r, const fr_window *w, bool catalog_only, double popularity_power,
                        int threads, fr_error *err) {
    *r = (recorder){.w = w, .catalog_only = catalog_only};
    int32_t ranked = w->to - w->from;
    TRY(TAKE(&r->memory, r->listed, w->destinations, err));
    TRY(TAKE(&r->memory, r->first, w->destinations, err));
    TRY(sort_texts(r, err));
    TRY(TAKE(&r->memory, r->popularity, w->destinations, err));
    TRY(open_scratch(r, threads, err));
    TRY(ALLOCATE(r->records, ranked, err));
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
    for (int32_t k = 0; k < ranked; k++) r->records[k] = describe_event(w, w->from + k);
    return FR_OK;
}

void recorder_close(recorder *r) {
    arena_free(&r->memory);
    free(r->records);
    *r = (recorder){0};
}

/* Candidates that are not counted: the positive, the source itself (PROTOCOL 3), and what the
 * protocol's filter takes out (PROTOCOL 14); each once. */
typedef struct excluded {
    const int32_t *at;
    int32_t count;
} excluded;

static excluded exclude(const recorder *r, const scored_event *e, int32_t two[2]) {
    int32_t self = window_self(r->w, e->source), count = 0;
    int32_t *out = r->scratch ? r->scratch[e->worker].out : two;
    out[count++] = e->destination;
    if (self >= 0 && self != e->destination) out[count++] = self;
    if (!r->scratch) return (excluded){out, count};
    fr_history rivals = window_rivals(r->w, e->event);
    int32_t *stamp = r->scratch[e->worker].stamp;
    for (int32_t k = 0; k < count; k++) stamp[out[k]] = e->event;
    for (int32_t k = 0; k < rivals.count; k++) {
        int32_t v = r->w->destination[rivals.event[k]];
        if (stamp[v] != e->event) out[count++] = v;
        stamp[v] = e->event;
    }
    return (excluded){out, count};
}

/* Is it in the catalog that the event is ranked over? */
static bool in_catalog(const recorder *r, const scored_event *e, int32_t v) {
    return r->w->catalog_kind == CATALOG_TIME ? r->first[v] < e->cut : !r->listed[v];
}

/* Candidates of one catalog against the positive. */
typedef struct counts {
    int32_t n, above, tied; /* without the positive */
} counts;

static void count_one(counts *c, const float *scores, int32_t v, float positive, int32_t step) {
    c->n += step;
    c->above += scores[v] > positive ? step : 0;
    c->tied += scores[v] == positive ? step : 0;
}

/* Counts the candidates that `since` has from before `cut` on. */
static counts count_candidates(const recorder *r, const int32_t *since, int32_t cut,
                               const scored_event *e, const excluded *x, const float *scores) {
    counts c = {0};
    float positive = scores[e->destination];
    for (int32_t v = 0; v < r->w->destinations; v++) {
        int32_t in = since[v] < cut;
        c.n += in;
        c.above += (scores[v] > positive) & in;
        c.tied += (scores[v] == positive) & in;
    }
    for (int32_t k = 0; k < x->count; k++) /* afterwards, so that the loop has no branch */
        if (since[x->at[k]] < cut) count_one(&c, scores, x->at[k], positive, -1);
    return c;
}

/* Of the tied candidates, those whose id is larger as text. Few scorers tie, so that this is a loop
 * of its own. */
static int32_t count_before(const recorder *r, const scored_event *e, const excluded *x,
                            const float *scores) {
    bool by_time = r->w->catalog_kind == CATALOG_TIME;
    const int32_t *since = by_time ? r->first : r->listed;
    int32_t cut = by_time ? e->cut : 1, count = 0;
    float positive = scores[e->destination];
    int32_t place = r->text[e->destination];
    for (int32_t v = 0; v < r->w->destinations; v++)
        count += (scores[v] == positive) & (since[v] < cut) & (r->text[v] > place);
    for (int32_t k = 0; k < x->count; k++) {
        int32_t v = x->at[k];
        count -= (scores[v] == positive) & (since[v] < cut) & (r->text[v] > place);
    }
    return count;
}

/* Counts the destinations that the source has met, and those that it has met in training. */
static void count_met(const recorder *r, const scored_event *e, const float *scores, counts *seen,
                      counts *trained) {
    const fr_window *w = r->w;
    float positive = scores[e->destination];
    int32_t self = window_self(w, e->source);
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    fr_history met = window_met(w, e->source, e->cut > w->train ? e->cut : w->train);
    for (int32_t k = 0; k < met.count; k++) {
        int32_t first = met.event[k], v = w->destination[first];
        if (v == e->destination || v == self || (stamp && stamp[v] == e->event)) continue;
        if (!in_catalog(r, e, v)) continue;
        if (first < e->cut) count_one(seen, scores, v, positive, 1);
        if (first < w->train) count_one(trained, scores, v, positive, 1);
    }
}

/* Popularity of all candidates, the positive included. It is summed anew where the catalog lacks
 * some of its usual destinations: so nothing cancels. That is so with a filter, and in strict order
 * for the time-available catalog, where those of the training part may first occur at the event's
 * own time. */
static double total_mass(const recorder *r, const scored_event *e, int32_t cut) {
    const fr_window *w = r->w;
    bool by_time = w->catalog_kind == CATALOG_TIME;
    const int32_t *since = by_time ? r->first : r->listed;
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    int32_t self = window_self(w, e->source);
    double total = r->popularity_total;
    if (stamp || (by_time && cut < w->train)) {
        total = 0;
        for (int32_t v = 0; v < w->destinations; v++) {
            bool out = stamp && stamp[v] == e->event && v != e->destination && v != self;
            total += since[v] < cut && !out ? r->popularity[v] : 0;
        }
    }
    if (self >= 0 && since[self] < cut) total -= r->popularity[self];
    return total;
}

/* Popularity above and tied. */
static void sum_masses(const recorder *r, const scored_event *e, const float *scores,
                       fr_record *out) {
    enum { LANES = 4 };
    double above[LANES] = {0}, tied[LANES] = {0};
    int32_t n = r->w->destinations, destination = e->destination;
    int32_t self = window_self(r->w, e->source);
    float positive = scores[destination];
    const int32_t *since = r->w->catalog_kind == CATALOG_TIME ? r->first : r->listed;
    int32_t cut = r->w->catalog_kind == CATALOG_TIME ? e->cut : 1;
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    for (int32_t v = 0; v < n; v++) {
        int32_t in = (v != destination) & (v != self) & (since[v] < cut);
        if (stamp) in &= stamp[v] != e->event;
        double mass = in ? r->popularity[v] : 0;
        above[v % LANES] += scores[v] > positive ? mass : 0;
        tied[v % LANES] += scores[v] == positive ? mass : 0;
    }
    double total = total_mass(r, e, cut);
    out->pop_above = ((above[0] + above[1]) + (above[2] + above[3])) / total;
    out->pop_tied = ((tied[0] + tied[1]) + (tied[2] + tied[3])) / total;
    out->pop_self = r->popularity[destination] / total;
}

/* Candidates that only the filter excludes. */
static int32_t count_filtered(const recorder *r, const scored_event *e, const excluded *x) {
    int32_t count = 0, self = window_self(r->w, e->source);
    for (int32_t k = 0; k < x->count; k++) {
        int32_t v = x->at[k];
        count += in_catalog(r, e, v) && v != e->destination && v != self;
    }
    return count;
}

/* Against a given list nothing else is known: see check_is_listed. */
static void record_list(const recorder *r, const scored_event *e, const float *scores,
                        fr_record *out) {
    negatives_counts c = negatives_count(r->lists, e->place, scores, scores[e->destination]);
    out->covered = 1;
    out->n = c.n + 1;
    out->above = c.above;
    out->tied = c.tied;
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    (void)err;
    recorder *r = state;
    fr_record *out = &r->records[e->place];
    counts available = {0}, seen = {0}, trained = {0};
    int32_t two[2];
    out->score = scores[e->destination];
    if (r->lists && e->covered) record_list(r, e, scores, out);
    if (r->lists) return FR_OK;
    excluded x = exclude(r, e, two);
    if (!r->catalog_only) available = count_candidates(r, r->first, e->cut, e, &x, scores);
    if (e->available && !r->catalog_only) {
        out->avail_n = available.n + 1;
        out->avail_above = available.above;
        out->avail_tied = available.tied;
    }
    if (!e->covered) return FR_OK;

    counts ranked = available;
    if (r->w->catalog_kind != CATALOG_TIME)
        ranked = count_candidates(r, r->listed, 1, e, &x, scores);
    count_met(r, e, scores, &seen, &trained);
    out->covered = 1;
    out->n = ranked.n + 1;
    out->above = ranked.above;
    out->tied = ranked.tied;
    out->seen_n = seen.n;
    out->seen_above = seen.above;
    out->seen_tied = seen.tied;
    out->tied_before = ranked.tied ? count_before(r, e, &x, scores) : 0;
    out->filtered = count_filtered(r, e, &x);
    out->train_n = trained.n;
    out->train_above = trained.above;
    out->train_tied = trained.tied;
    sum_masses(r, e, scores, out);
    return FR_OK;
}

probe recorder_probe(recorder *r) { return (probe){r, read_scores}; }
