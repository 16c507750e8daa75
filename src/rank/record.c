/* record.c - see record.h.
 *
 * Ranks are counts (PROTOCOL 5): candidates above and candidates equal. Scores are compared as they
 * are. The loops over the vector have no branches, so the compiler turns them into vector code.
 * Counts and masses are whole numbers, so that they do not depend on the order in which they are
 * added up, and what is not to be counted can be taken away afterwards.
 */
#include "rank/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fr_record recorder_describe(const fr_window *w, int32_t i) {
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

/* Masses: training count ^ power, as whole numbers of a step. For power 1 the step is 1; else the
 * largest power of 2 below which the sum of all would not fit into 62 bits. */
static fr_status weigh_candidates(recorder *r, double power, fr_error *err) {
    const fr_window *w = r->w;
    double *popularity, total = 0;
    int exponent = 0;
    TRY(TAKE(&r->memory, r->mass, w->destinations, err));
    TRY(ALLOCATE(popularity, w->destinations, err));
    for (int32_t i = 0; i < w->train; i++) popularity[w->destination[i]] += 1;
    for (int32_t v = 0; v < w->destinations; v++) {
        if (!window_listed(w, v) || popularity[v] == 0)
            popularity[v] = 0;
        else if (power != 1)
            popularity[v] = pow(popularity[v], power);
        total += popularity[v];
    }
    (void)frexp(total, &exponent); /* total < 2^exponent */
    for (int32_t v = 0; v < w->destinations; v++)
        r->mass[v] = llrint(power == 1 ? popularity[v] : ldexp(popularity[v], 61 - exponent));
    free(popularity);
    return FR_OK;
}

fr_status recorder_open(recorder *r, const fr_window *w, const event_list *events,
                        bool catalog_only, double popularity_power, int threads, fr_error *err) {
    *r = (recorder){.w = w, .events = events, .catalog_only = catalog_only};
    TRY(TAKE(&r->memory, r->listed, w->destinations, err));
    TRY(TAKE(&r->memory, r->first, w->destinations, err));
    TRY(sort_texts(r, err));
    TRY(weigh_candidates(r, popularity_power, err));
    TRY(open_scratch(r, threads, err));
    TRY(ALLOCATE(r->records, events->count, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        r->listed[v] = window_listed(w, v) ? 0 : INT32_MAX;
        r->first[v] = w->destination_at[v] < w->destination_at[v + 1]
                          ? w->destination_events[w->destination_at[v]]
                          : INT32_MAX;
    }
    for (int32_t k = 0; k < events->count; k++)
        r->records[k] = recorder_describe(w, events_at(events, k));
    return FR_OK;
}

void recorder_close(recorder *r) {
    arena_free(&r->memory);
    free(r->records);
    *r = (recorder){0};
}

/* Candidates that are not counted: the positive, the source itself (PROTOCOL 3), and what the
 * protocol's filter takes out (PROTOCOL 14); each once. */
recorder_list recorder_excluded(const recorder *r, const scored_event *e, int32_t two[2]) {
    int32_t self = window_self(r->w, e->source), count = 0;
    int32_t *out = r->scratch ? r->scratch[e->worker].out : two;
    out[count++] = e->destination;
    if (self >= 0 && self != e->destination) out[count++] = self;
    if (!r->scratch) return (recorder_list){out, count};
    fr_history rivals = window_rivals(r->w, e->event);
    int32_t *stamp = r->scratch[e->worker].stamp;
    for (int32_t k = 0; k < rivals.count; k++) stamp[r->w->destination[rivals.event[k]]] = -1;
    for (int32_t k = 0; k < count; k++) stamp[out[k]] = e->event;
    for (int32_t k = 0; k < rivals.count; k++) {
        int32_t v = r->w->destination[rivals.event[k]];
        if (stamp[v] != e->event) out[count++] = v;
        stamp[v] = e->event;
    }
    return (recorder_list){out, count};
}

/* Is it in the catalog that the event is ranked over? */
static bool in_catalog(const recorder *r, const scored_event *e, int32_t v) {
    return r->w->catalog_kind == CATALOG_TIME ? r->first[v] < e->cut : !r->listed[v];
}

static void count_one(recorder_counts *c, float score, float positive, int32_t step) {
    c->n += step;
    c->above += score > positive ? step : 0;
    c->tied += score == positive ? step : 0;
}

void recorder_count(const recorder *r, const scored_event *e, int32_t v, float score,
                    float positive, int32_t step, recorder_tally *t) {
    if (r->first[v] < e->cut) count_one(&t->available, score, positive, step);
    if (!in_catalog(r, e, v)) return;
    count_one(&t->catalog, score, positive, step);
    t->mass_total += step * r->mass[v];
    if (score > positive) t->mass_above += step * r->mass[v];
    if (score != positive) return;
    t->mass_tied += step * r->mass[v];
    t->before += r->text[v] > r->text[e->destination] ? step : 0;
}

/* ---- a vector of scores ---- */

/* Counts the candidates that `since` has from before `cut` on. */
static recorder_counts count_candidates(const recorder *r, const int32_t *since, int32_t cut,
                                        const float *scores, float positive) {
    recorder_counts c = {0};
    for (int32_t v = 0; v < r->w->destinations; v++) {
        int32_t in = since[v] < cut;
        c.n += in;
        c.above += (scores[v] > positive) & in;
        c.tied += (scores[v] == positive) & in;
    }
    return c;
}

/* Of the tied candidates, those whose id is larger as text. Few scorers tie, so that this is a loop
 * of its own. */
static int32_t count_before(const recorder *r, const int32_t *since, int32_t cut, int32_t place,
                            const float *scores, float positive) {
    int32_t count = 0;
    for (int32_t v = 0; v < r->w->destinations; v++)
        count += (scores[v] == positive) & (since[v] < cut) & (r->text[v] > place);
    return count;
}

/* Popularity above and tied, and of all. */
static void sum_masses(const recorder *r, const int32_t *since, int32_t cut, const float *scores,
                       float positive, recorder_tally *t) {
    int64_t above = 0, tied = 0, total = 0;
    for (int32_t v = 0; v < r->w->destinations; v++) {
        int64_t mass = since[v] < cut ? r->mass[v] : 0;
        total += mass;
        above += scores[v] > positive ? mass : 0;
        tied += scores[v] == positive ? mass : 0;
    }
    t->mass_above = above;
    t->mass_tied = tied;
    t->mass_total = total;
}

static void tally_scores(const recorder *r, const scored_event *e, const float *scores,
                         recorder_tally *t) {
    bool by_time = r->w->catalog_kind == CATALOG_TIME;
    const int32_t *since = by_time ? r->first : r->listed;
    int32_t cut = by_time ? e->cut : 1;
    float positive = scores[e->destination];
    if (!r->catalog_only) t->available = count_candidates(r, r->first, e->cut, scores, positive);
    if (!e->covered) return;
    t->catalog = by_time ? t->available : count_candidates(r, r->listed, 1, scores, positive);
    if (t->catalog.tied > 1)
        t->before = count_before(r, since, cut, r->text[e->destination], scores, positive);
    sum_masses(r, since, cut, scores, positive, t);
}

/* ---- the record ---- */

/* Counts the destinations that the source has met, and those that it has met in training. */
static void count_met(const recorder *r, const scored_event *e, const float *scores,
                      recorder_counts *seen, recorder_counts *trained) {
    const fr_window *w = r->w;
    float positive = scores[e->destination];
    int32_t self = window_self(w, e->source);
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    fr_history met = recorder_met(r, e);
    for (int32_t k = 0; k < met.count; k++) {
        int32_t first = met.event[k], v = w->destination[first];
        if (v == e->destination || v == self || (stamp && stamp[v] == e->event)) continue;
        if (!in_catalog(r, e, v)) continue;
        if (first < e->cut) count_one(seen, scores[v], positive, 1);
        if (first < w->train) count_one(trained, scores[v], positive, 1);
    }
}

fr_history recorder_met(const recorder *r, const scored_event *e) {
    return window_met(r->w, e->source, e->cut > r->w->train ? e->cut : r->w->train);
}

/* Candidates that only the filter excludes. */
static int32_t count_filtered(const recorder *r, const scored_event *e, const recorder_list *x) {
    int32_t count = 0, self = window_self(r->w, e->source);
    for (int32_t k = 0; k < x->count; k++) {
        int32_t v = x->at[k];
        count += in_catalog(r, e, v) && v != e->destination && v != self;
    }
    return count;
}

/* Against a given list nothing else is known: see check_is_listed. */
void recorder_put_list(recorder *r, const scored_event *e, const float *scores) {
    fr_record *out = &r->records[events_row(r->events, e->place)];
    out->score = scores[e->destination];
    if (!e->covered) return;
    negatives_counts c = negatives_count(r->lists, e->place, scores, scores[e->destination]);
    out->covered = 1;
    out->n = c.n + 1;
    out->above = c.above;
    out->tied = c.tied;
}

void recorder_put(recorder *r, const scored_event *e, const recorder_list *x, const float *scores,
                  recorder_tally t) {
    fr_record *out = &r->records[events_row(r->events, e->place)];
    recorder_counts seen = {0}, trained = {0};
    float positive = scores[e->destination];
    out->score = positive;
    int64_t own = in_catalog(r, e, e->destination) ? r->mass[e->destination] : 0;
    for (int32_t k = 0; k < x->count; k++)
        recorder_count(r, e, x->at[k], scores[x->at[k]], positive, -1, &t);
    if (e->available && !r->catalog_only) {
        out->avail_n = t.available.n + 1;
        out->avail_above = t.available.above;
        out->avail_tied = t.available.tied;
    }
    if (!e->covered) return;
    count_met(r, e, scores, &seen, &trained);
    out->covered = 1;
    out->n = t.catalog.n + 1;
    out->above = t.catalog.above;
    out->tied = t.catalog.tied;
    out->seen_n = seen.n;
    out->seen_above = seen.above;
    out->seen_tied = seen.tied;
    out->tied_before = t.before;
    out->filtered = count_filtered(r, e, x);
    out->train_n = trained.n;
    out->train_above = trained.above;
    out->train_tied = trained.tied;
    double total = (double)(t.mass_total + own); /* of all candidates, the positive included */
    out->pop_above = (double)t.mass_above / total;
    out->pop_tied = (double)t.mass_tied / total;
    out->pop_self = (double)own / total;
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    (void)err;
    recorder *r = state;
    recorder_tally t = {0};
    int32_t two[2];
    if (r->lists) {
        recorder_put_list(r, e, scores);
        return FR_OK;
    }
    recorder_list x = recorder_excluded(r, e, two);
    tally_scores(r, e, scores, &t);
    recorder_put(r, e, &x, scores, t);
    return FR_OK;
}

probe recorder_probe(recorder *r) { return (probe){r, read_scores}; }
