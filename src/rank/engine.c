/* engine.c - see engine.h. */
#include "rank/engine.h"

#include "base/shards.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Events of one worker that are scored together. */
typedef struct batch {
    int count;
    scored_event *facts; /* [many] */
    fr_query *queries;   /* [many] */
    float *scores;       /* [many, row] */
    float *spread;       /* [candidates] of one event, if rows are over the catalog; else NULL */
} batch;

typedef struct engine {
    const fr_window *w;
    fr_scorer *scorer;
    const event_list *events;
    const probe *probes;
    int probe_count;
    int64_t shard, met; /* of the settings */
    int many;           /* events of a batch */
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

/* A score that is no number cannot be ranked (PROTOCOL 4): names event and candidate. */
static fr_status check_finite(const fr_window *w, int32_t event, const float *scores,
                              fr_error *err) {
    int bad = 0;
    for (int32_t v = 0; v < w->destinations; v++) { /* exponent all ones: infinite or NaN */
        uint32_t bits;
        memcpy(&bits, &scores[v], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    for (int32_t v = 0; bad && v < w->destinations; v++) {
        if (scores[v] - scores[v] == 0) continue;
        return fail(
            err, FR_EINPUT, "event %lld: the score of destination %lld is %g, expected a number",
            (long long)(w->first + event), (long long)w->destination_id[v], (double)scores[v]);
    }
    return FR_OK;
}

bool engine_ranks(const fr_window *w, const scored_event *e, bool catalog_only, int64_t met) {
    return (e->covered || (e->available && !catalog_only)) && met_others(w, e) >= met;
}

void engine_spread(const fr_window *w, const float *row, float *to) {
    for (int32_t v = 0; v < w->destinations; v++)
        to[v] = !window_listed(w, v) ? -FLT_MAX : row[w->catalog_place[v]];
}

fr_status engine_read(const fr_window *w, const scored_event *e, const float *scores,
                      const probe *probes, int probe_count, fr_error *err) {
    TRY(check_finite(w, e->event, scores, err));
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

/* Every entry is NaN before: one that the scorer leaves alone does not pass for a score. */
static fr_status score_batch(engine *e, const batch *b, int worker, fr_error *err) {
    const fr_scorer *s = e->scorer;
    memset(b->scores, 0xff, (size_t)b->count * (size_t)s->row * sizeof *b->scores);
    uint64_t before = engine_fingerprint(s);
    TRY(s->is.score(s->is.state, b->queries, b->count, worker, b->scores, err));
    return engine_check_state(s, b->facts->event, before, err);
}

/* Scores what has been gathered and lets the probes read it, event by event. */
static fr_status rank_batch(engine *e, batch *b, int worker, fr_error *err) {
    if (!b->count) return FR_OK;
    TRY(score_batch(e, b, worker, err));
    for (int i = 0; i < b->count; i++) {
        const float *scores = b->scores + i * e->scorer->row;
        if (b->spread) engine_spread(e->w, scores, b->spread), scores = b->spread;
        TRY(engine_read(e->w, &b->facts[i], scores, e->probes, e->probe_count, err));
    }
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
    TRY(ALLOCATE(b->facts, many, err));
    TRY(ALLOCATE(b->queries, many, err));
    if (e->scorer->is.catalog_only) TRY(ALLOCATE(b->spread, e->w->destinations, err));
    return ALLOCATE(b->scores, many * (size_t)e->scorer->row, err);
}

static void free_batch(batch *b) {
    free(b->facts);
    free(b->queries);
    free(b->scores);
    free(b->spread);
}

fr_context engine_team(const fr_scorer *scorer, const fr_context *context) {
    return context_team(context, scorer->is.workers);
}

fr_status engine_run(fr_scorer *scorer, const event_list *events, const probe *probes,
                     int probe_count, const fr_rank_settings *settings, const fr_context *context,
                     fr_error *err) {
    const fr_window *w = scorer->window;
    int64_t shard = settings->shard;
    int many = scorer->is.many < shard ? scorer->is.many : (int)shard;
    engine e = {w, scorer, events, probes, probe_count, shard, settings->met, many, NULL};
    int64_t shards = (events->count + shard - 1) / shard;
    fr_context team = engine_team(scorer, context);
    if (team.threads > shards) team.threads = (int)shards;
    fr_status status = ALLOCATE(e.batches, team.threads, err);
    for (int k = 0; !status && k < team.threads; k++) status = make_batch(&e, &e.batches[k], err);
    if (!status && scorer->is.observe)
        status = rank_in_order(&e, context, err);
    else if (!status)
        status = shards_run(&team, "rank", shards, rank_shard, &e, err);
    for (int k = 0; e.batches && k < team.threads; k++) free_batch(&e.batches[k]);
    free(e.batches);
    return status;
}
