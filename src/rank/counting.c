/* counting.c - see counting.h. */
#include "rank/counting.h"

#include "base/shards.h"
#include "rank/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct counting counting;

/* What a worker has for itself. */
typedef struct counter {
    const counting *job;
    const fr_window *w;
    recorder *r;
    fr_scorer *scorer, *twin; /* the latter is ours to close */
    levels index;
    float *vector; /* [destinations] for checks, else NULL */
    int64_t verified, differ;
} counter;

struct counting {
    fr_scorer *scorer;
    recorder *r;
    const fr_rank_settings *settings;
    const fr_context *context;
    int32_t *met;      /* [pairs] destinations of the window's first meetings, in their order */
    bool *checked;     /* [rows] the record is compared; NULL = none is */
    bool agree;        /* as in counting_check */
    counter *counters; /* [workers] */
    _Atomic bool stop;
};

/* ---- one event ---- */

static fr_status check_standing(const counter *c, const scored_event *e, const fr_standing *s,
                                fr_error *err) {
    const char *name = c->scorer->is.name;
    long long event = (long long)(c->w->first + e->event);
    if (!isfinite(s->score))
        return fail(err, FR_EINPUT,
                    "event %lld: the score of destination %lld is %g, expected a number", event,
                    (long long)c->w->destination_id[e->destination], (double)s->score);
    if (s->tied > s->above || s->own < 0)
        return fail(err, FR_EINPUT,
                    "event %lld: %s: %d with scores of their own, ties from level "
                    "%d to below %d, expected ascending levels",
                    event, name, s->own, s->tied, s->above);
    for (int32_t k = 0; k < s->own; k++) {
        int32_t v = s->destination[k];
        if (v < 0 || v >= c->w->destinations)
            return fail(err, FR_EINPUT, "event %lld: %s: destination %d, expected 0 to %d", event,
                        name, v, c->w->destinations - 1);
        if (!isfinite(s->own_score[k]))
            return fail(err, FR_EINPUT,
                        "event %lld: the score of destination %lld is %g, expected a number", event,
                        (long long)c->w->destination_id[v], (double)s->own_score[k]);
    }
    return FR_OK;
}

/* An event under way. */
typedef struct question {
    const scored_event *e;
    fr_standing is;
    uint32_t tied, above; /* places from which on others tie and are above */
    recorder_tally sums;
} question;

/* Candidates by their places alone. */
static void tally_levels(const counter *c, question *q) {
    const levels *l = &c->index;
    level_sums to_above = levels_below(l, q->above), to_tied = levels_below(l, q->tied);
    q->sums = (recorder_tally){
        .available = {l->all.available, l->all.available - to_above.available,
                      to_above.available - to_tied.available},
        .catalog = {l->all.catalog, l->all.catalog - to_above.catalog,
                    to_above.catalog - to_tied.catalog},
        .mass_above = l->all.mass - to_above.mass,
        .mass_tied = to_above.mass - to_tied.mass,
        .mass_total = l->all.mass,
    };
    if (q->e->covered && q->sums.catalog.tied)
        q->sums.before = levels_before(l, q->is.tied, q->is.above, q->e->destination);
}

/* A number that compares with the positive as the candidate does: its own score, or a stand-in for
 * that of its level. */
static float level_score(const question *q, const level_candidate *v) {
    return v->place >= q->above ? INFINITY : v->place >= q->tied ? q->is.score : -INFINITY;
}
static float score_of(const question *q, const level_candidate *v) {
    return v->stamp == q->e->event ? v->score : level_score(q, v);
}

/* Adds a candidate to the sums, or takes it away. */
static void count(const counter *c, question *q, const level_candidate *v, float score,
                  int32_t step) {
    recorder_tally *t = &q->sums;
    float positive = q->is.score;
    if (v->first < q->e->cut) recorder_count_one(&t->available, score, positive, step);
    if (!levels_in_catalog(&c->index, v, q->e->cut)) return;
    recorder_count_one(&t->catalog, score, positive, step);
    int64_t mass = step * v->mass;
    t->mass_total += mass;
    t->mass_above += score > positive ? mass : 0;
    if (score != positive) return;
    t->mass_tied += mass;
    if (v->text > c->index.candidate[q->e->destination].text) t->before += step;
}

/* Lists can be long, and their candidates are far apart in memory, so prefetch. */
enum { AHEAD = 16 };
static level_candidate *walk(const counter *c, const int32_t *list, int32_t k, int32_t end) {
    if (k + AHEAD < end) __builtin_prefetch(&c->index.candidate[list[k + AHEAD]]);
    return &c->index.candidate[list[k]];
}

/* Special scores replace those of the levels. If all levels are below the positive, a special score
 * below it changes nothing and is not looked up. */
static void count_own(counter *c, question *q) {
    const fr_standing *s = &q->is;
    float least = q->tied == levels_place(&c->index, INT32_MAX) ? s->score : -INFINITY;
    for (int32_t k = 0; k < s->own; k++) {
        if (k + AHEAD < s->own && s->own_score[k + AHEAD] >= least)
            __builtin_prefetch(&c->index.candidate[s->destination[k + AHEAD]], 1);
        if (s->own_score[k] < least) continue;
        level_candidate *v = &c->index.candidate[s->destination[k]];
        float other = level_score(q, v);
        v->score = s->own_score[k];
        v->stamp = q->e->event;
        bool same = v->score > s->score   ? other > s->score
                    : v->score < s->score ? other < s->score
                                          : other == s->score;
        if (same) continue;
        count(c, q, v, other, -1);
        count(c, q, v, v->score, 1);
    }
}

/* What the source has met, and has met in training, without those of `x`, whose stamps say so. */
static void count_met(counter *c, question *q) {
    const scored_event *e = q->e;
    fr_history met = recorder_met(c->r, e);
    const int32_t *list = c->job->met + (met.event - c->w->firsts);
    for (int32_t k = 0; k < met.count; k++) {
        const level_candidate *v = walk(c, list, k, met.count);
        if (v->stamp == -2 - e->event || !levels_in_catalog(&c->index, v, e->cut)) continue;
        float score = score_of(q, v);
        if (met.event[k] < e->cut) recorder_count_one(&q->sums.seen, score, q->is.score, 1);
        if (met.event[k] < c->w->train) recorder_count_one(&q->sums.trained, score, q->is.score, 1);
    }
}

static negatives_counts count_list(const counter *c, const question *q) {
    const negatives *n = c->r->lists;
    negatives_counts out = {0};
    for (int64_t k = n->at[q->e->place]; k < n->at[q->e->place + 1]; k++, out.n++) {
        float score = score_of(q, &c->index.candidate[n->list[k]]);
        out.above += score > q->is.score;
        out.tied += score == q->is.score;
    }
    return out;
}

static fr_status count_event(counter *c, const scored_event *e, fr_error *err) {
    recorder *r = c->r;
    question q = {.e = e};
    int32_t two[2];
    fr_query query = {e->event, e->source, window_time(c->w, e->event)};
    levels_advance(&c->index, e->cut);
    uint64_t before = engine_fingerprint(c->scorer);
    TRY(c->scorer->is.stand(c->scorer->is.state, &query, e->destination, &q.is, err));
    TRY(engine_check_state(c->scorer, e->event, before, err));
    TRY(check_standing(c, e, &q.is, err));
    q.tied = levels_place(&c->index, q.is.tied);
    q.above = levels_place(&c->index, q.is.above);
    if (!r->lists) tally_levels(c, &q);
    count_own(c, &q);
    if (r->lists) {
        recorder_put_list(r, e, q.is.score, count_list(c, &q));
        return FR_OK;
    }
    recorder_list x = recorder_excluded(r, e, two);
    for (int32_t k = 0; k < x.count; k++) {
        level_candidate *v = &c->index.candidate[x.at[k]];
        count(c, &q, v, score_of(&q, v), -1);
        v->stamp = -2 - e->event;
    }
    if (e->covered) count_met(c, &q);
    recorder_put(r, e, &x, q.is.score, &q.sums);
    return FR_OK;
}

/* ---- checks ---- */

/* The rows to compare: `wanted` of those that are ranked, evenly spread. */
static fr_status choose_checked(counting *c, int64_t wanted, fr_error *err) {
    const event_list *events = c->r->events;
    const fr_window *w = c->r->w;
    int64_t chosen = 0;
    if (!wanted) return FR_OK;
    TRY(ALLOCATE(c->checked, events->count, err));
    for (int64_t row = 0; row < events->count && chosen < wanted; row++) {
        int64_t next = events->count * chosen / wanted;
        if (row < next) row = next;
        scored_event e = engine_describe(w, events_at(events, row));
        c->checked[row] = engine_ranks(w, &e, false, c->settings->met);
        chosen += c->checked[row];
    }
    return FR_OK;
}

/* The record of the event from its score vector, against the one that was counted. */
static fr_status check_event(counter *c, const scored_event *e, fr_error *err) {
    const fr_scorer *s = c->scorer;
    fr_query query = {e->event, e->source, window_time(c->w, e->event)};
    recorder from_vector = *c->r;
    from_vector.sums = NULL; /* are of what was counted */
    fr_record *record = &c->r->records[events_row(c->r->events, e->place)], counted = *record;
    probe reader = recorder_probe(&from_vector);
    if (!c->vector) TRY(ALLOCATE(c->vector, c->w->destinations, err));
    memset(c->vector, 0xff, (size_t)c->w->destinations * sizeof *c->vector);
    TRY(scorer_rows(s, &query, 1, 0, c->vector, err));
    *record = recorder_describe(c->w, e->event);
    TRY(engine_read(c->w, e, c->vector, &reader, 1, err));
    c->verified++;
    bool differs = memcmp(record, &counted, sizeof counted) != 0;
    c->differ += differs;
    *record = counted;
    if (!differs || !c->job->agree) return FR_OK;
    return fail(err, FR_EINPUT,
                "event %lld: %s: its scores give another record than how it says its candidates "
                "stand",
                (long long)(c->w->first + e->event), s->is.name);
}

/* ---- all events ---- */

/* Makes the events below `cut` history of the scorer. In the first shard of a worker these are many
 * events, so it asks now and then whether to stop. */
static fr_status observe_to(counter *c, int32_t cut, int worker, _Atomic bool *stop,
                            fr_error *err) {
    enum { STEP = 1 << 18 };
    while (cut - c->scorer->observed > STEP && c->scorer->is.observe) {
        TRY(fr_scorer_observe(c->scorer, c->scorer->observed + STEP, err));
        TRY(shards_check(c->job->context, worker, stop, err));
    }
    return fr_scorer_observe(c->scorer, cut, err);
}

static fr_status count_shard(void *job, int64_t shard, int worker, fr_error *err) {
    counting *j = job;
    counter *c = &j->counters[worker];
    const event_list *events = j->r->events;
    int64_t from = shard * j->settings->shard, to = from + j->settings->shard;
    if (!c->scorer) {
        const fr_scorer *first = j->scorer;
        TRY(fr_scorer_open(first->is.name, c->w, first->is.seed, NULL, &c->twin, err));
        c->scorer = c->twin;
    }
    for (int64_t row = from; row < to && row < events->count; row++) {
        scored_event e = engine_describe(c->w, events_at(events, row));
        e.worker = worker;
        TRY(observe_to(c, e.cut, worker, &j->stop, err));
        if (!engine_ranks(c->w, &e, false, j->settings->met)) continue;
        TRY(count_event(c, &e, err));
        if (j->checked && j->checked[row]) TRY(check_event(c, &e, err));
    }
    return FR_OK;
}

/* All workers begin with copies of the first one's index, which they share the order of. */
static fr_status open_counters(counting *c, int workers, fr_error *err) {
    const fr_window *w = c->r->w;
    int32_t cut = w->from < w->to ? window_cut(w, w->from) : 0;
    TRY(ALLOCATE(c->counters, workers, err));
    for (int k = 0; k < workers; k++) {
        counter *one = &c->counters[k];
        *one = (counter){.job = c, .w = w, .r = c->r, .scorer = k ? NULL : c->scorer};
        TRY(k ? levels_copy(&one->index, &c->counters->index, err)
              : levels_open(&one->index, c->r, c->scorer->is.level, cut, err));
    }
    TRY(ALLOCATE(c->met, w->pairs, err));
    for (int32_t k = 0; k < w->pairs; k++) c->met[k] = w->destination[w->firsts[k]];
    return FR_OK;
}

static void close_counters(counting *c, int workers, counting_check *check) {
    for (int k = 0; c->counters && k < workers; k++) {
        counter *one = &c->counters[k];
        check->verified += one->verified;
        check->differ += one->differ;
        levels_close(&one->index);
        fr_scorer_close(one->twin);
        free(one->vector);
    }
    free(c->counters);
    free(c->met);
    free(c->checked);
}

fr_context counting_team(const fr_scorer *scorer, const fr_context *context) {
    enum { MOST = 8 }; /* all observe every event, and each has a state: more would gain little */
    return context_team(context, scorer->twins ? MOST : 1);
}

fr_status counting_run(fr_scorer *scorer, recorder *r, const fr_rank_settings *settings,
                       const fr_context *context, counting_check *check, fr_error *err) {
    int64_t shards = (r->events->count + settings->shard - 1) / settings->shard;
    counting c = {
        .scorer = scorer, .r = r, .settings = settings, .context = context, .agree = check->agree};
    fr_context team = counting_team(scorer, context);
    if (team.threads > shards) team.threads = shards ? (int)shards : 1;
    fr_status status = open_counters(&c, team.threads, err);
    if (!status) status = choose_checked(&c, check->wanted, err);
    if (!status) status = context_check(context, err); /* that took a while */
    if (!status)
        status = shards_run(&team, &(shard_stage){"rank", r->events->count, "events"}, shards,
                            count_shard, &c, err);
    if (!status) status = fr_scorer_observe(scorer, r->w->to, err);
    close_counters(&c, team.threads, check);
    return status;
}
