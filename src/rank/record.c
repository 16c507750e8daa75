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

enum { BLOCK = RECORDER_BLOCK };

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

/* Ids ascend, so those with equally many digits are in the order of their text already. These runs
 * are merged by their digits from the left; of equal ones the shorter text is first. */
static fr_status sort_texts(recorder *r, fr_error *err) {
    enum { MOST_DIGITS = 19 }; /* of an id, which is never negative */
    const int64_t *id = r->w->destination_id;
    int32_t count = r->w->destinations, next[MOST_DIGITS + 1], end[MOST_DIGITS + 1];
    uint64_t unit[MOST_DIGITS + 1], power = 1;
    TRY(TAKE(&r->memory, r->text, count, err));
    unit[MOST_DIGITS] = 1;
    for (int d = MOST_DIGITS; d > 1; d--) unit[d - 1] = 10 * unit[d];
    for (int d = 1, v = 0; d <= MOST_DIGITS; d++) {
        power *= 10;
        next[d] = v;
        while (v < count && (uint64_t)id[v] < power) v++;
        end[d] = v;
    }
    for (int32_t k = 0; k < count; k++) {
        int first = 0;
        uint64_t least = 0;
        for (int d = 1; d <= MOST_DIGITS; d++) {
            if (next[d] == end[d]) continue;
            uint64_t aligned = (uint64_t)id[next[d]] * unit[d];
            if (first && aligned >= least) continue;
            first = d;
            least = aligned;
        }
        r->text[next[first]++] = k;
    }
    return FR_OK;
}

/* Masses: training count ^ power, as whole numbers of a step. For power 1 the step is 1; else the
 * largest power of 2 below which the sum of all would not fit into 62 bits. */
static fr_status weigh_candidates(recorder *r, double power, fr_error *err) {
    const fr_window *w = r->w;
    double *popularity, total = 0;
    int exponent = 0;
    TRY(TAKE(&r->memory, r->mass, w->destinations, err));
    if (power == 1) TRY(TAKE(&r->memory, r->light, w->destinations, err));
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
    for (int32_t v = r->from; r->light && v < r->to; v++) r->light[v] = (int32_t)r->mass[v];
    free(popularity);
    return FR_OK;
}

/* Destinations by when they first occur, to tell how many, and of which mass, have occurred before
 * an event. */
static fr_status sort_firsts(recorder *r, fr_error *err) {
    const fr_window *w = r->w;
    int32_t count = w->destinations, place = 0;
    int64_t mass = 0;
    TRY(TAKE(&r->memory, r->firsts, count + 1, err));
    for (int32_t i = 0; i < w->events; i++)
        if (r->first[w->destination[i]] == i)
            r->firsts[place++] = (recorder_first){i, r->mass[w->destination[i]]};
    for (int32_t v = 0; v < count; v++)
        if (r->first[v] == INT32_MAX) r->firsts[place++] = (recorder_first){INT32_MAX, r->mass[v]};
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

/* The largest of each block. */
static fr_status reduce_blocks(recorder *r, const int32_t *since, int32_t **out, fr_error *err) {
    int32_t count = r->w->destinations;
    TRY(TAKE(&r->memory, *out, count / BLOCK + 1, err));
    for (int32_t v = 0; v < count; v++)
        if (since[v] > (*out)[v / BLOCK]) (*out)[v / BLOCK] = since[v];
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
    TRY(reduce_blocks(r, r->first, &r->all_first, err));
    TRY(reduce_blocks(r, r->listed, &r->all_listed, err));
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

/* An event whose scores come by. */
typedef struct progress {
    float positive;
    int32_t two[2]; /* room for `out`, if there is no filter */
    recorder_list out;
    recorder_tally sums;
    int32_t pair; /* the first pair of the source whose destination is still to come, .. */
    int32_t next; /* .. that destination (INT32_MAX = none) and its first event: read in advance, */
    int32_t first; /* nobody has to wait for them */
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

static void look_ahead(const fr_window *w, int32_t source, progress *p) {
    bool any = p->pair < w->source_pair_at[source + 1];
    p->next = any ? w->pair_destination[p->pair] : INT32_MAX;
    p->first = any ? w->pair_events[w->pair_at[p->pair]] : 0;
}

static void begin_event(void *state, const scored_event *e, float positive, void *to) {
    const recorder *r = state;
    const fr_window *w = r->w;
    progress *p = to;
    recorder_tally *t = &p->sums;
    *p = (progress){.positive = positive, .pair = w->source_pair_at[e->source]};
    look_ahead(w, e->source, p);
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

/* Candidates of a block above the positive, tied with it, and the mass of those above. */
typedef struct block_counts {
    int32_t above, tied;
    uint32_t mass;
} block_counts;

/* Of those that `since` has from before `cut` on; NULL = of all. */
SIMD_INLINE void count_each(const float *scores, const int32_t *since, int32_t cut,
                            const int32_t *mass, float positive, int32_t n, block_counts *to) {
    int32_t both = 0;
    uint32_t heavy = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t in = since ? since[k] < cut : 1, over = (scores[k] > positive) & in;
        both += over + (((scores[k] == positive) & in) << 16);
        heavy += (uint32_t)(-over & mass[k]);
    }
    *to = (block_counts){both & 0xffff, both >> 16, heavy};
}

SIMD_LOOPS static void count_some(const float *scores, const int32_t *since, int32_t cut,
                                  const int32_t *mass, float positive, int32_t n,
                                  block_counts *to) {
    count_each(scores, since, cut, mass, positive, n, to);
}

SIMD_LOOPS static void count_all(const float *scores, const int32_t *mass, float positive,
                                 int32_t n, block_counts *to) {
    count_each(scores, NULL, 0, mass, positive, n, to);
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

/* Masses of any size, and the order of those that are tied. */
static void weigh_closely(const recorder *r, const scored_event *e, int32_t v, int32_t n,
                          const float *scores, progress *p) {
    int32_t own[BLOCK];
    bool by_time = r->w->catalog_kind == CATALOG_TIME;
    int32_t cut = by_time ? e->cut : 1;
    const int32_t *since = leave_out(&p->out, by_time ? r->first : r->listed, v, n, own);
    p->sums.before +=
        count_before(scores, since, cut, p->positive, r->text + v, r->text[e->destination], n);
    weigh_block(scores, since, cut, r->mass + v, p->positive, n, &p->sums);
}

/* Are all of a block that begins at v in the catalog? */
static bool all_before(const int32_t *largest, int32_t v, int32_t n, int32_t cut) {
    return largest[v / BLOCK] < cut && largest[(v + n - 1) / BLOCK] < cut;
}

/* Takes candidates that are not counted away from a block. */
static void take_back(const recorder_list *x, const int32_t *since, int32_t cut,
                      const int32_t *mass, int32_t v, int32_t n, const float *scores,
                      float positive, block_counts *from) {
    for (int32_t k = 0; k < x->count; k++) {
        int32_t at = x->at[k] - v;
        if (at < 0 || at >= n || since[x->at[k]] >= cut) continue;
        from->above -= scores[at] > positive;
        from->tied -= scores[at] == positive;
        from->mass -= scores[at] > positive ? (uint32_t)mass[at] : 0;
    }
}

/* The block from destination v on. Candidates are counted for both catalogs, once if all are in
 * both. Few are tied. */
static void read_block(const recorder *r, const scored_event *e, int32_t v, int32_t n,
                       const float *scores, progress *p) {
    recorder_tally *t = &p->sums;
    bool by_time = r->w->catalog_kind == CATALOG_TIME;
    bool all_first = !r->catalog_only && all_before(r->all_first, v, n, e->cut),
         all_listed = all_before(r->all_listed, v, n, 1);
    const int32_t *mass = r->light ? r->light + v : r->first + v; /* .., which nobody reads then */
    block_counts all = {0}, here = {0};
    if (all_first || all_listed) count_all(scores, mass, p->positive, n, &all);
    if (!r->catalog_only) {
        here = all;
        if (!all_first) count_some(scores, r->first + v, e->cut, mass, p->positive, n, &here);
        take_back(&p->out, r->first, e->cut, mass, v, n, scores, p->positive, &here);
        t->available.above += here.above;
        t->available.tied += here.tied;
    }
    if (!e->covered) return;
    if (!by_time) {
        here = all;
        if (!all_listed) count_some(scores, r->listed + v, 1, mass, p->positive, n, &here);
        take_back(&p->out, r->listed, 1, mass, v, n, scores, p->positive, &here);
        t->catalog.above += here.above;
        t->catalog.tied += here.tied;
    }
    if (here.tied || (here.above && !r->light))
        weigh_closely(r, e, v, n, scores, p);
    else
        t->mass_above += here.mass;
}

/* Counts the destinations below `to` that the source has met, and those that it has met in
 * training. */
static void read_met(const recorder *r, const scored_event *e, int32_t from, int32_t to,
                     const float *scores, progress *p) {
    const fr_window *w = r->w;
    int32_t self = window_self(w, e->source);
    const int32_t *stamp = r->scratch ? r->scratch[e->worker].stamp : NULL;
    while (p->next < to) {
        int32_t v = p->next, first = p->first;
        p->pair++;
        look_ahead(w, e->source, p);
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
    if (e->covered && ((const progress *)into)->next < to) read_met(r, e, from, to, scores, into);
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
