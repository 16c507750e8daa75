/* engine.c - see engine.h. */
#include "rank/engine.h"

#include "base/shards.h"
#include "base/simd.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Candidates of a tile, and the most events of one: their scores have 512 KB, which a core's cache
 * holds. WHOLE: scores of whole rows that a worker has in memory, 64 MB, unless a single row has
 * more. */
enum { TILE = 256, PART_EVENTS = 512, WHOLE = 1 << 24 };

/* Events of one worker that are scored together. */
typedef struct batch {
    int count;
    scored_event *facts; /* [many] */
    fr_query *queries;   /* [many] */
    float *scores;       /* [many, row], or [many, tile] */
    float *spread; /* [candidates], or [tile], of one event, if rows are over the catalog; else NULL
                    */
    char *tallies; /* [many, tally] of the probe that counts parts, else NULL */
} batch;

typedef struct engine {
    const fr_window *w;
    fr_scorer *scorer;
    const event_list *events;
    const probe *probes;
    int probe_count;
    int64_t shard, met; /* of the settings */
    int many;           /* events of a batch */
    bool parts;         /* by tiles; then there is one probe */
    int32_t tile;       /* candidates of one */
    int32_t first;      /* place of the first candidate of the first, in a row over the catalog */
    batch *batches;     /* [workers] */
} engine;

scored_event engine_describe(const fr_window *w, int32_t event) {
    int32_t cut = window_cut(w, event), v = w->destination[event];
    return (scored_event){.event = event,
                          .cut = cut,
                          .source = w->source[event],
                          .destination = v,
                          .place = event - w->from,
                          .covered = window_covered(w, event),
                          .available = window_candidate(w, event, v)};
}

/* Destinations the source has met before, without the event's own. */
static int64_t met_others(const fr_window *w, const scored_event *e) {
    bool repeated = window_pair_history(w, e->source, e->destination, e->cut).count > 0;
    return window_met(w, e->source, e->cut).count - repeated;
}

/* Is any of them infinite or no number at all? The exponent is all ones then. */
SIMD_LOOPS static int any_unfinite(const float *scores, int64_t n) {
    int32_t largest = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t bits;
        memcpy(&bits, &scores[k], sizeof bits);
        bits &= 0x7fffffff;
        largest = largest > bits ? largest : bits;
    }
    return largest >= 0x7f800000;
}

/* A score that is not finite cannot be ranked (PROTOCOL 4): the error names event and candidate.
 * The scores are of destinations from .. to - 1. */
static fr_status check_finite(const fr_window *w, int32_t event, int32_t from, int32_t to,
                              const float *scores, fr_error *err) {
    if (!any_unfinite(scores, to - from)) return FR_OK;
    while (*scores - *scores == 0) scores++, from++;
    return fail(err, FR_EINPUT,
                "event %lld: the score of destination %lld is %g, expected a number",
                (long long)(w->first + event), (long long)w->destination_id[from], (double)*scores);
}

bool engine_ranks(const fr_window *w, const scored_event *e, bool catalog_only, int64_t met) {
    return (e->covered || (e->available && !catalog_only)) && (!met || met_others(w, e) >= met);
}

fr_status engine_spread_room(const fr_window *w, float **out, fr_error *err) {
    TRY(ALLOCATE(*out, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) (*out)[v] = -FLT_MAX;
    return FR_OK;
}

void engine_spread(const fr_window *w, const float *row, float *to) {
    for (int32_t k = 0; k < w->catalog_size; k++) to[w->catalog[k]] = row[k];
}

fr_status engine_read(const fr_window *w, const scored_event *e, const float *scores,
                      const probe *probes, int probe_count, fr_error *err) {
    TRY(check_finite(w, e->event, 0, w->destinations, scores, err));
    for (int k = 0; k < probe_count; k++) TRY(probes[k].read(probes[k].state, e, scores, err));
    return FR_OK;
}

uint64_t engine_fingerprint(const fr_scorer *scorer) {
#ifdef FULLRANK_CHECK_STATE
    return scorer->is.fingerprint ? scorer->is.fingerprint(scorer->is.state) : 0;
#else
    (void)scorer;
    return 0;
#endif
}

fr_status engine_check_state(const fr_scorer *scorer, int32_t event, uint64_t before,
                             fr_error *err) {
    if (engine_fingerprint(scorer) == before) return FR_OK;
    return fail(err, FR_EINPUT, "event %lld: scoring changed the state of %s",
                (long long)(scorer->window->first + event), scorer->is.name);
}

/* Scores `count` of the events gathered, from the one at `first` on: whole rows, or places from ..
 * to - 1 of them. Every entry is NaN before, so an unfilled entry is not taken for a
 * score. */
static fr_status score_events(engine *e, const batch *b, int first, int count, int worker,
                              int32_t from, int32_t to, fr_error *err) {
    const fr_scorer *s = e->scorer;
    const fr_query *queries = b->queries + first;
    memset(b->scores, 0xff, (size_t)count * (size_t)(to - from) * sizeof *b->scores);
    uint64_t before = engine_fingerprint(s);
    if (e->parts)
        TRY(s->is.part(s->is.state, queries, count, from, to, worker, b->scores, err));
    else
        TRY(scorer_rows(s, queries, count, worker, b->scores, err));
    return engine_check_state(s, b->facts[first].event, before, err);
}

/* Whole rows: lets the probes read them, event by event. */
static fr_status rank_rows(engine *e, batch *b, int worker, fr_error *err) {
    int32_t row = (int32_t)e->scorer->row;
    TRY(score_events(e, b, 0, b->count, worker, 0, row, err));
    for (int i = 0; i < b->count; i++) {
        const float *scores = b->scores + (int64_t)i * row;
        if (b->spread) engine_spread(e->w, scores, b->spread), scores = b->spread;
        TRY(engine_read(e->w, &b->facts[i], scores, e->probes, e->probe_count, err));
    }
    return FR_OK;
}

/* The positives come first, because the probe compares everything with them. If it is little work,
 * all events are asked together, as for tiles, because going back in time is slow for a model. */
static fr_status begin_parts(engine *e, batch *b, int worker, fr_error *err) {
    const probe *p = e->probes;
    bool together = b->count * b->count <= e->tile;
    for (int i = 0; i < b->count; i++) {
        int32_t v = b->facts[i].destination, place = b->spread ? e->w->catalog_place[v] : v;
        TRY(score_events(e, b, together ? 0 : i, together ? b->count : 1, worker, place, place + 1,
                         err));
        const float *score = b->scores + (together ? i : 0);
        TRY(check_finite(e->w, b->facts[i].event, v, v + 1, score, err));
        p->begin(p->state, &b->facts[i], *score, b->tallies + (size_t)i * p->tally);
    }
    return FR_OK;
}

/* Destinations `first` .. first + size - 1. Of a row over the catalog, from .. to - 1 are the
 * places of those that are in it. */
typedef struct tile_job {
    engine *e;
    batch *b;
    int32_t first, size, from, to;
} tile_job;

static fr_status read_tile(void *to, int first, int count, const float *rows, fr_error *err) {
    const tile_job *t = to;
    const batch *b = t->b;
    const fr_window *w = t->e->w;
    const probe *p = t->e->probes;
    bool check =
        any_unfinite(rows, (int64_t)count * (t->to - t->from)); /* which, and of which event? */
    for (int i = 0; i < count; i++) {
        const scored_event *facts = &b->facts[first + i];
        const float *scores = rows + (int64_t)i * (t->to - t->from);
        if (b->spread) {
            for (int32_t k = t->from; k < t->to; k++)
                b->spread[w->catalog[k] - t->first] = scores[k - t->from];
            scores = b->spread;
        }
        if (check) TRY(check_finite(w, facts->event, t->first, t->first + t->size, scores, err));
        p->part(p->state, facts, t->first, t->first + t->size, scores,
                b->tallies + (size_t)(first + i) * p->tally);
    }
    return FR_OK;
}

/* The scores of a tile for all events gathered. */
static fr_status rank_tile(tile_job *t, int worker, fr_error *err) {
    const batch *b = t->b;
    const fr_scorer *s = t->e->scorer;
    for (int32_t v = 0; b->spread && v < t->size; v++) b->spread[v] = -FLT_MAX;
    if (s->pieces && t->from < t->to)
        return s->pieces(s->is.state, b->queries, b->count, t->from, t->to, b->scores, read_tile, t,
                         err);
    if (t->from < t->to) TRY(score_events(t->e, b, 0, b->count, worker, t->from, t->to, err));
    return read_tile(t, 0, b->count, b->scores, err);
}

static fr_status rank_parts(engine *e, batch *b, int worker, fr_error *err) {
    const fr_window *w = e->w;
    const probe *p = e->probes;
    TRY(begin_parts(e, b, worker, err));
    for (int32_t at = p->from, from = e->first, to; at < p->to; at += e->tile, from = to) {
        int32_t size = p->to - at < e->tile ? p->to - at : e->tile;
        to = at + size;
        if (b->spread)
            for (to = from; to < w->catalog_size && w->catalog[to] < at + size;) to++;
        TRY(rank_tile(&(tile_job){e, b, at, size, from, to}, worker, err));
    }
    for (int i = 0; i < b->count; i++)
        p->end(p->state, &b->facts[i], b->tallies + (size_t)i * p->tally);
    return FR_OK;
}

/* Where the destinations from `v` on begin in a row over the catalog. */
static int32_t first_place(const fr_window *w, int32_t v) {
    int32_t place = 0;
    while (place < w->catalog_size && w->catalog[place] < v) place++;
    return place;
}

/* Scores what has been gathered and lets the probes read it. */
static fr_status rank_batch(engine *e, batch *b, int worker, fr_error *err) {
    if (!b->count) return FR_OK;
    TRY(e->parts ? rank_parts(e, b, worker, err) : rank_rows(e, b, worker, err));
    b->count = 0;
    return FR_OK;
}

/* Gathers the event if it is ranked; a full batch is scored. */
static fr_status rank_event(engine *e, int32_t event, int worker, fr_error *err) {
    const fr_window *w = e->w;
    batch *b = &e->batches[worker];
    scored_event facts = engine_describe(w, event);
    if (!engine_ranks(w, &facts, e->scorer->is.catalog_only, e->met)) return FR_OK;
    facts.worker = worker;
    b->facts[b->count] = facts;
    b->queries[b->count++] = (fr_query){event, facts.source, window_time(w, event)};
    return b->count == e->many ? rank_batch(e, b, worker, err) : FR_OK;
}

static fr_status rank_shard(void *job, int64_t shard, int worker, fr_error *err) {
    engine *e = job;
    int64_t from = shard * e->shard, to = from + e->shard;
    if (to > e->events->count) to = e->events->count;
    for (int64_t k = from; k < to; k++) TRY(rank_event(e, events_at(e->events, k), worker, err));
    return rank_batch(e, &e->batches[worker], worker, err);
}

static fr_status rank_in_order(engine *e, const fr_context *context, fr_error *err) {
    const fr_window *w = e->w;
    for (int32_t event = w->from; event < w->to; event++) {
        TRY(fr_scorer_observe(e->scorer, window_cut(w, event), err));
        if (events_row(e->events, event - w->from) >= 0) TRY(rank_event(e, event, 0, err));
        if (((event - w->from) & 63) == 0) {
            TRY(context_check(context, err));
            context_progress(context, "rank", (uint64_t)(event - w->from),
                             (uint64_t)(w->to - w->from), "events");
        }
    }
    return fr_scorer_observe(e->scorer, w->to, err);
}

static fr_status make_batch(const engine *e, batch *b, fr_error *err) {
    size_t many = (size_t)e->many;
    bool catalog_only = e->scorer->is.catalog_only;
    TRY(ALLOCATE(b->facts, many, err));
    TRY(ALLOCATE(b->queries, many, err));
    if (e->parts) {
        TRY(allocate(many, e->probes->tally, (void **)&b->tallies, err));
        if (catalog_only) TRY(ALLOCATE(b->spread, e->tile, err));
    } else if (catalog_only) {
        TRY(engine_spread_room(e->w, &b->spread, err));
    }
    if (e->parts && e->scorer->pieces && many > SCORER_PIECE) many = SCORER_PIECE;
    return ALLOCATE(b->scores, many * (size_t)(e->parts ? e->tile : e->scorer->row), err);
}

static void free_batch(batch *b) {
    free(b->facts);
    free(b->queries);
    free(b->scores);
    free(b->spread);
    free(b->tallies);
}

fr_context engine_team(const fr_scorer *scorer, const fr_context *context) {
    return context_team(context, scorer->is.workers);
}

fr_status engine_run(fr_scorer *scorer, const event_list *events, const probe *probes,
                     int probe_count, const fr_rank_settings *settings, const fr_context *context,
                     fr_error *err) {
    const fr_window *w = scorer->window;
    int64_t shard = settings->shard;
    int32_t tile = scorer->is.tile ? scorer->is.tile : TILE;
    bool parts =
        scorer->is.part && probe_count == 1 && probes->part &&
        (probes->to - probes->from < w->destinations || (w->destinations > tile && !probes->alone));
    int many = parts && scorer->is.many > PART_EVENTS ? PART_EVENTS : scorer->is.many;
    if (parts && probes->alone) many = 1;
    if (parts && shard < many) shard = many; /* a tile serves as many events as it may */
    if (many > shard) many = (int)shard;
    while (!parts && many > 1 && many * scorer->row > WHOLE) many /= 2;
    engine e = {w,    scorer, events, probes, probe_count, shard, settings->met,
                many, parts,  tile,   0,      NULL};
    if (parts) e.first = scorer->is.catalog_only ? first_place(w, probes->from) : probes->from;
    int64_t shards = (events->count + shard - 1) / shard;
    fr_context team = engine_team(scorer, context);
    if (team.threads > shards) team.threads = (int)shards;
    fr_status status = ALLOCATE(e.batches, team.threads, err);
    for (int k = 0; !status && k < team.threads; k++) status = make_batch(&e, &e.batches[k], err);
    if (!status && scorer->is.observe)
        status = rank_in_order(&e, context, err);
    else if (!status)
        status = shards_run(&team, &(shard_stage){"rank", events->count, "events"}, shards,
                            rank_shard, &e, err);
    for (int k = 0; e.batches && k < team.threads; k++) free_batch(&e.batches[k]);
    free(e.batches);
    return status;
}
