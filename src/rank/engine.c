/* engine.c - see engine.h. */
#include "rank/engine.h"

#include "base/shards.h"

#include <stdlib.h>
#include <string.h>

/* Events of one worker that are scored together. */
typedef struct batch {
    int count;
    scored_event *facts; /* [many] */
    fr_query *queries;   /* [many] */
    float *scores;       /* [many, candidates] */
} batch;

typedef struct engine {
    const fr_window *w;
    fr_scorer *scorer;
    const probe *probes;
    int probe_count;
    int64_t shard, met; /* of the settings */
    int many;           /* events of a batch */
    batch *batches;     /* [workers] */
} engine;

static scored_event describe(const fr_window *w, int32_t event) {
    int32_t cut = window_cut(w, event), v = w->destination[event];
    return (scored_event){.event = event,
                          .cut = cut,
                          .source = w->source[event],
                          .destination = v,
                          .place = event - w->train,
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

#ifdef FULLRANK_CHECK_STATE
static uint64_t fingerprint(const fr_scorer *scorer) {
    return scorer->fingerprint ? scorer->fingerprint(scorer->state) : 0;
}
#endif

/* Every entry is NaN before: one that the scorer leaves alone does not pass for a score. */
static fr_status score_batch(engine *e, const batch *b, int worker, fr_error *err) {
    fr_scorer *s = e->scorer;
    memset(b->scores, 0xff, (size_t)b->count * (size_t)e->w->destinations * sizeof *b->scores);
    if (e->many > 1) return s->score_many(s->state, b->queries, b->count, worker, b->scores, err);
    return s->score(s->state, b->queries, worker, b->scores, err);
}

/* Scores what has been gathered and lets the probes read it, event by event. */
static fr_status rank_batch(engine *e, batch *b, int worker, fr_error *err) {
    const fr_window *w = e->w;
    const float *scores = b->scores;
    if (!b->count) return FR_OK;
#ifdef FULLRANK_CHECK_STATE
    uint64_t before = fingerprint(e->scorer);
#endif
    TRY(score_batch(e, b, worker, err));
#ifdef FULLRANK_CHECK_STATE
    if (fingerprint(e->scorer) != before)
        return fail(err, FR_EINPUT, "event %lld: scoring changed the state of %s",
                    (long long)(w->first + b->facts->event), e->scorer->name);
#endif
    for (int i = 0; i < b->count; i++, scores += w->destinations) {
        TRY(check_finite(w, b->facts[i].event, scores, err));
        for (int k = 0; k < e->probe_count; k++)
            TRY(e->probes[k].read(e->probes[k].state, &b->facts[i], scores, err));
    }
    b->count = 0;
    return FR_OK;
}

/* Gathers the event if it is ranked; a full batch is scored. */
static fr_status rank_event(engine *e, int32_t event, int worker, fr_error *err) {
    const fr_window *w = e->w;
    batch *b = &e->batches[worker];
    scored_event facts = describe(w, event);
    if (!facts.covered && (!facts.available || e->scorer->catalog_only)) return FR_OK;
    if (met_others(w, &facts) < e->met) return FR_OK;
    facts.worker = worker;
    b->facts[b->count] = facts;
    b->queries[b->count++] = (fr_query){event, facts.source, window_time(w, event)};
    return b->count == e->many ? rank_batch(e, b, worker, err) : FR_OK;
}

static fr_status rank_shard(void *job, int64_t shard, int worker, fr_error *err) {
    engine *e = job;
    int64_t from = e->w->train + shard * e->shard, to = from + e->shard;
    if (to > e->w->events) to = e->w->events;
    for (int64_t event = from; event < to; event++) TRY(rank_event(e, (int32_t)event, worker, err));
    return rank_batch(e, &e->batches[worker], worker, err);
}

static fr_status rank_in_order(engine *e, const fr_context *context, fr_error *err) {
    const fr_window *w = e->w;
    int32_t observed = e->scorer->start;
    for (int32_t event = w->train; event <= w->events; event++) {
        int32_t cut = event < w->events ? window_cut(w, event) : w->events;
        for (; observed < cut; observed++) TRY(e->scorer->observe(e->scorer->state, observed, err));
        if (event == w->events) break;
        TRY(rank_event(e, event, 0, err));
        if (((event - w->train) & 63) == 0) {
            TRY(context_check(context, err));
            context_progress(context, "rank", (uint64_t)(event - w->train),
                             (uint64_t)(w->events - w->train), "events");
        }
    }
    return FR_OK;
}

static fr_status make_batch(const engine *e, batch *b, fr_error *err) {
    size_t many = (size_t)e->many;
    TRY(ALLOCATE(b->facts, many, err));
    TRY(ALLOCATE(b->queries, many, err));
    return ALLOCATE(b->scores, many * (size_t)e->w->destinations, err);
}

fr_context engine_team(const fr_scorer *scorer, const fr_context *context) {
    return context_team(context, scorer->observe ? 1 : scorer->workers);
}

fr_status engine_run(const fr_window *w, fr_scorer *scorer, const probe *probes, int probe_count,
                     const fr_rank_settings *settings, const fr_context *context, fr_error *err) {
    int64_t shard = settings->shard;
    int many = scorer->score_many && !scorer->observe && scorer->many > 1 ? scorer->many : 1;
    if (many > shard) many = (int)shard;
    engine e = {w, scorer, probes, probe_count, shard, settings->met, many, NULL};
    int64_t shards = (w->events - w->train + shard - 1) / shard;
    fr_context team = engine_team(scorer, context);
    if (team.threads > shards) team.threads = (int)shards;
    fr_status status = ALLOCATE(e.batches, team.threads, err);
    for (int k = 0; !status && k < team.threads; k++) status = make_batch(&e, &e.batches[k], err);
    if (!status && scorer->observe)
        status = rank_in_order(&e, context, err);
    else if (!status)
        status = shards_run(&team, "rank", shards, rank_shard, &e, err);
    for (int k = 0; e.batches && k < team.threads; k++) {
        free(e.batches[k].facts);
        free(e.batches[k].queries);
        free(e.batches[k].scores);
    }
    free(e.batches);
    return status;
}
