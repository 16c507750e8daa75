/* record.c - see record.h.
 *
 * Ranks are counts (PROTOCOL 5): candidates above and candidates equal. Scores are compared as they
 * are. The positive's score is known first, so the vector is read once and may come in parts. A
 * block of it stays in the cache for all counts. Loops over a block have no branches, so
 * the compiler turns them into vector code. Counts and masses are whole numbers, so the order
 * of addition does not matter, and candidates that must not count can be subtracted later.
 */
#include "rank/record.h"

#include "base/shards.h"
#include "base/simd.h"

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
    for (int32_t v = r->from; v < r->to; v++)
        r->mass[v] = llrint(power == 1 ? popularity[v] : ldexp(popularity[v], 61 - exponent));
    free(popularity);
    return FR_OK;
}

/* Destinations by when they first occur, to tell how many, and of which mass, have occurred before
 * an event. */
static int by_first(const void *a, const void *b) {
    const recorder_first *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static fr_status sort_firsts(recorder *r, fr_error *err) {
    int32_t count = r->w->destinations;
    int64_t mass = 0;
    TRY(TAKE(&r->memory, r->firsts, count + 1, err));
    for (int32_t v = 0; v < count; v++) r->firsts[v] = (recorder_first){r->first[v], r->mass[v]};
    qsort(r->firsts, (size_t)count, sizeof *r->firsts, by_first);
    for (int32_t k = 0; k <= count; k++) { /* of those before */
        int64_t own = r->firsts[k].mass;
        r->firsts[k].mass = mass;
        mass += own;
    }
    for (int32_t v = 0; v < count; v++) {
        r->listed_count += !r->listed[v];
        r->listed_mass += r->listed[v] ? 0 : r->mass[v];
    }
    return FR_OK;
}

enum { DESCRIBED = 1 << 12 }; /* records of a shard */

static fr_status describe_shard(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker, (void)err;
    recorder *r = job;
    int64_t to = (shard + 1) * DESCRIBED;
    for (int64_t k = shard * DESCRIBED; k < to && k < r->events->count; k++)
        r->records[k] = recorder_describe(r->w, events_at(r->events, k));
    return FR_OK;
}

fr_status recorder_open(recorder *r, const fr_window *w, const event_list *events,
                        bool catalog_only, double popularity_power, int threads, int part,
                        int count, fr_error *err) {
    *r = (recorder){.w = w,
                    .events = events,
                    .catalog_only = catalog_only,
                    .from = (int32_t)((int64_t)w->destinations * part / count),
                    .to = (int32_t)((int64_t)w->destinations * (part + 1) / count)};
    TRY(TAKE(&r->memory, r->listed, w->destinations, err));
    TRY(TAKE(&r->memory, r->first, w->destinations, err));
    TRY(sort_texts(r, err));
    TRY(weigh_candidates(r, popularity_power, err));
    TRY(open_scratch(r, threads, err));
    TRY(ALLOCATE(r->records, events->count, err));
    if (count > 1) TRY(TAKE(&r->memory, r->sums, events->count, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        bool mine = v >= r->from && v < r->to;
        r->listed[v] = mine && window_listed(w, v) ? 0 : INT32_MAX;
        r->first[v] = mine && w->destination_at[v] < w->destination_at[v + 1]
                          ? w->destination_events[w->destination_at[v]]
                          : INT32_MAX;
    }
    TRY(sort_firsts(r, err));
    fr_context team = {.threads = threads};
    return shards_run(&team, NULL, (events->count + DESCRIBED - 1) / DESCRIBED, describe_shard, r,
                      err);
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

/* ---- scores, in blocks ---- */

enum { BLOCK = 256 };

/* An event whose scores come by. */
typedef struct progress {
    float positive;
    int32_t two[2]; /* room for `out`, if there is no filter */
    recorder_list out;
    recorder_tally sums;
    int32_t pair; /* the first pair of the source whose destination is still to come */
} progress;

/* Takes those that are not counted away from a catalog. */
static void take_away(const recorder *r, const int32_t *since, int32_t cut, const recorder_list *x,
                      int32_t *n, int64_t *mass) {
    for (int32_t k = 0; k < x->count; k++) {
        if (since[x->at[k]] >= cut) continue;
        --*n;
        *mass -= r->mass[x->at[k]];
    }
}

static void begin_event(void *state, const scored_event *e, float positive, void *to) {
    const recorder *r = state;
    const fr_window *w = r->w;
    progress *p = to;
    recorder_tally *t = &p->sums;
    *p = (progress){.positive = positive, .pair = w->source_pair_at[e->source]};
    p->out = recorder_excluded(r, e, p->two);
    int32_t low = 0, high = w->destinations;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (r->firsts[middle].event < e->cut)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t mass = r->firsts[low].mass;
    t->available.n = low;
    take_away(r, r->first, e->cut, &p->out, &t->available.n, &mass);
    if (w->catalog_kind == CATALOG_TIME) {
        t->mass_total = mass;
        return;
    }
    t->catalog.n = r->listed_count;
    t->mass_total = r->listed_mass;
    take_away(r, r->listed, 1, &p->out, &t->catalog.n, &t->mass_total);
}

/* since[n] of the block from destination v on; where candidates are excluded, a copy in which they
 * are never in the catalog. */
static const int32_t *leave_out(const recorder_list *x, const int32_t *since, int32_t v, int32_t n,
                                int32_t own[BLOCK]) {
    const int32_t *block = since + v;
    for (int32_t k = 0; k < x->count; k++) {
        int32_t place = x->at[k] - v;
        if (place < 0 || place >= n) continue;
        if (block != own) memcpy(own, block, (size_t)n * sizeof *own);
        own[place] = INT32_MAX;
        block = own;
    }
    return block;
}

/* Adds the candidates that `since` has from before `cut` on. */
SIMD_LOOPS static void count_block(const float *scores, const int32_t *since, int32_t cut,
                                   float positive, int32_t n, recorder_counts *to) {
    int32_t above = 0, tied = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t in = since[k] < cut;
        above += (scores[k] > positive) & in;
        tied += (scores[k] == positive) & in;
    }
    to->above += above;
    to->tied += tied;
}

/* Adds their masses. */
SIMD_LOOPS static void weigh_block(const float *scores, const int32_t *since, int32_t cut,
                                   const int64_t *mass, float positive, int32_t n,
                                   recorder_tally *to) {
    int64_t above = 0, tied = 0;
    for (int32_t k = 0; k < n; k++) {
        int64_t here = since[k] < cut ? mass[k] : 0;
        above += scores[k] > positive ? here : 0;
        tied += scores[k] == positive ? here : 0;
    }
    to->mass_above += above;
    to->mass_tied += tied;
}

/* Of the tied candidates, those whose id is larger as text. */
static int32_t count_before(const float *scores, const int32_t *since, int32_t cut, float positive,
                            const int32_t *text, int32_t place, int32_t n) {
    int32_t count = 0;
    for (int32_t k = 0; k < n; k++)
        count += (scores[k] == positive) & (since[k] < cut) & (text[k] > place);
    return count;
}

/* The block from destination v on. Few candidates are tied, and of a good scorer few are above:
 * most blocks have none. */
static void read_block(const recorder *r, const scored_event *e, int32_t v, int32_t n,
                       const float *scores, progress *p) {
    int32_t own[BLOCK], cut = e->cut;
    recorder_tally *t = &p->sums;
    bool by_time = r->w->catalog_kind == CATALOG_TIME;
    recorder_counts *to = by_time ? &t->available : &t->catalog, old = *to;
    const int32_t *since = NULL;
    if (!r->catalog_only) {
        since = leave_out(&p->out, r->first, v, n, own);
        count_block(scores, since, cut, p->positive, n, &t->available);
    }
    if (!e->covered) return;
    if (!by_time) {
        cut = 1;
        since = leave_out(&p->out, r->listed, v, n, own);
        count_block(scores, since, cut, p->positive, n, &t->catalog);
    }
    if (to->tied > old.tied)
        t->before +=
            count_before(scores, since, cut, p->positive, r->text + v, r->text[e->destination], n);
    if (to->above > old.above || to->tied > old.tied)
        weigh_block(scores, since, cut, r->mass + v, p->positive, n, t);
}

/* Counts the destinations below `to` that the source has met, and those that it has met in
 * training. */
static void read_met(const recorder *r, const scored_event *e, int32_t from, int32_t to,
                     const float *scores, progress *p) {
    const fr_window *w = r->w;
    int32_t self = window_self(w, e->source), end = w->source_pair_at[e->source + 1];
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    for (; p->pair < end && w->pair_destination[p->pair] < to; p->pair++) {
        int32_t v = w->pair_destination[p->pair], first = w->pair_events[w->pair_at[p->pair]];
        if (first >= e->cut && first >= w->train) continue;
        if (v == e->destination || v == self || (stamp && stamp[v] == e->event)) continue;
        if (!in_catalog(r, e, v)) continue;
        if (first < e->cut) recorder_count_one(&p->sums.seen, scores[v - from], p->positive, 1);
        if (first < w->train)
            recorder_count_one(&p->sums.trained, scores[v - from], p->positive, 1);
    }
}

static void read_part(void *state, const scored_event *e, int32_t from, int32_t to,
                      const float *scores, void *into) {
    const recorder *r = state;
    for (int32_t v = from; v < to; v += BLOCK)
        read_block(r, e, v, to - v < BLOCK ? to - v : BLOCK, scores + (v - from), into);
    if (e->covered) read_met(r, e, from, to, scores, into);
}

/* ---- the record ---- */

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

/* With a given list nothing else is known: see check_is_listed. */
void recorder_put_list(recorder *r, const scored_event *e, float positive, negatives_counts c) {
    fr_record *out = &r->records[events_row(r->events, e->place)];
    out->score = positive;
    if (!e->covered) return;
    out->covered = 1;
    out->n = c.n + 1;
    out->above = c.above;
    out->tied = c.tied;
}

static void fill_record(const recorder *r, const scored_event *e, float positive,
                        const recorder_tally *t, fr_record *out) {
    out->score = positive;
    if (e->available && !r->catalog_only) {
        out->avail_n = t->available.n + 1;
        out->avail_above = t->available.above;
        out->avail_tied = t->available.tied;
    }
    if (!e->covered) return;
    out->covered = 1;
    out->n = t->catalog.n + 1;
    out->above = t->catalog.above;
    out->tied = t->catalog.tied;
    out->seen_n = t->seen.n;
    out->seen_above = t->seen.above;
    out->seen_tied = t->seen.tied;
    out->tied_before = t->before;
    out->filtered = t->filtered;
    out->train_n = t->trained.n;
    out->train_above = t->trained.above;
    out->train_tied = t->trained.tied;
    double total = (double)(t->mass_total + t->mass_own); /* of all, the positive included */
    out->pop_above = (double)t->mass_above / total;
    out->pop_tied = (double)t->mass_tied / total;
    out->pop_self = (double)t->mass_own / total;
}

void recorder_put(recorder *r, const scored_event *e, const recorder_list *x, float positive,
                  const recorder_tally *t) {
    int32_t row = events_row(r->events, e->place);
    recorder_tally all = *t;
    all.mass_own = in_catalog(r, e, e->destination) ? r->mass[e->destination] : 0;
    all.filtered = count_filtered(r, e, x);
    fill_record(r, e, positive, &all, &r->records[row]);
    if (r->sums) r->sums[row] = (recorder_sum){all, positive, 1};
}

/* ---- records of several recorders ---- */

static void add_counts(recorder_counts *to, recorder_counts more) {
    to->n += more.n;
    to->above += more.above;
    to->tied += more.tied;
}

static void add_tally(recorder_tally *to, const recorder_tally *more) {
    add_counts(&to->available, more->available);
    add_counts(&to->catalog, more->catalog);
    to->mass_above += more->mass_above;
    to->mass_tied += more->mass_tied;
    to->mass_total += more->mass_total;
    to->mass_own += more->mass_own;
    to->before += more->before;
    to->filtered += more->filtered;
    add_counts(&to->seen, more->seen);
    add_counts(&to->trained, more->trained);
}

fr_status recorder_add(recorder *r, const recorder_sum *sums, size_t count, int who,
                       fr_error *err) {
    if (count != (size_t)r->events->count)
        return fail(err, FR_EINPUT, "process %d has %zu events, expected %d", who, count,
                    r->events->count);
    for (int32_t k = 0; k < r->events->count; k++) {
        recorder_sum *to = &r->sums[k];
        if (sums[k].ranked != to->ranked || memcmp(&sums[k].score, &to->score, sizeof to->score))
            return fail(err, FR_EINPUT,
                        "event %lld: process %d scores its destination %.9g, process 0 %.9g; "
                        "expected equal scores",
                        (long long)r->records[k].event, who, (double)sums[k].score,
                        (double)to->score);
        add_tally(&to->tally, &sums[k].tally);
    }
    return FR_OK;
}

void recorder_settle(recorder *r) {
    for (int32_t k = 0; k < r->events->count; k++) {
        scored_event e = engine_describe(r->w, events_at(r->events, k));
        const recorder_sum *s = &r->sums[k];
        if (s->ranked) fill_record(r, &e, s->score, &s->tally, &r->records[k]);
    }
}

static void end_event(void *state, const scored_event *e, void *from) {
    recorder *r = state;
    progress *p = from;
    if (r->w->catalog_kind == CATALOG_TIME) p->sums.catalog = p->sums.available;
    recorder_put(r, e, &p->out, p->positive, &p->sums);
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    (void)err;
    recorder *r = state;
    progress p;
    if (r->lists) {
        float positive = scores[e->destination];
        recorder_put_list(r, e, positive, negatives_count(r->lists, e->place, scores, positive));
        return FR_OK;
    }
    begin_event(r, e, scores[e->destination], &p);
    read_part(r, e, r->from, r->to, scores + r->from, &p);
    end_event(r, e, &p);
    return FR_OK;
}

/* Lists look candidates up in any order. The filter marks candidates of one event at a time. */
probe recorder_probe(recorder *r) {
    probe out = {.state = r, .read = read_scores};
    if (r->lists) return out;
    out.alone = r->scratch != NULL;
    out.from = r->from;
    out.to = r->to;
    out.tally = sizeof(progress);
    out.begin = begin_event;
    out.part = read_part;
    out.end = end_event;
    return out;
}
