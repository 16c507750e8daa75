/* counting.c - see counting.h. */
#include "rank/counting.h"

#include "rank/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct counting {
    const fr_window *w;
    fr_scorer *scorer;
    recorder *r;
    levels index;
    int32_t *met;  /* [pairs] destinations of the window's first meetings, in their order */
    float *vector; /* [destinations] for checks, else NULL */
} counting;

/* ---- one event ---- */

static fr_status check_standing(const counting *c, const scored_event *e, const fr_standing *s,
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
static void tally_levels(const counting *c, question *q) {
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
static void count(const counting *c, question *q, const level_candidate *v, float score,
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
static level_candidate *walk(const counting *c, const int32_t *list, int32_t k, int32_t end) {
    if (k + AHEAD < end) __builtin_prefetch(&c->index.candidate[list[k + AHEAD]]);
    return &c->index.candidate[list[k]];
}

/* Special scores replace those of the levels. */
static void count_own(counting *c, question *q) {
    const fr_standing *s = &q->is;
    for (int32_t k = 0; k < s->own; k++) {
        level_candidate *v = walk(c, s->destination, k, s->own);
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
static void count_met(counting *c, question *q) {
    const scored_event *e = q->e;
    fr_history met = recorder_met(c->r, e);
    const int32_t *list = c->met + (met.event - c->w->firsts);
    for (int32_t k = 0; k < met.count; k++) {
        const level_candidate *v = walk(c, list, k, met.count);
        if (v->stamp == -2 - e->event || !levels_in_catalog(&c->index, v, e->cut)) continue;
        float score = score_of(q, v);
        if (met.event[k] < e->cut) recorder_count_one(&q->sums.seen, score, q->is.score, 1);
        if (met.event[k] < c->w->train) recorder_count_one(&q->sums.trained, score, q->is.score, 1);
    }
}

static negatives_counts count_list(const counting *c, const question *q) {
    const negatives *n = c->r->lists;
    negatives_counts out = {0};
    for (int64_t k = n->at[q->e->place]; k < n->at[q->e->place + 1]; k++, out.n++) {
        float score = score_of(q, &c->index.candidate[n->list[k]]);
        out.above += score > q->is.score;
        out.tied += score == q->is.score;
    }
    return out;
}

static fr_status count_event(counting *c, const scored_event *e, fr_error *err) {
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

/* The record of the event from its score vector, against the one that was counted. */
static fr_status check_event(counting *c, const scored_event *e, counting_check *check,
                             fr_error *err) {
    const fr_scorer *s = c->scorer;
    fr_query query = {e->event, e->source, window_time(c->w, e->event)};
    fr_record *record = &c->r->records[events_row(c->r->events, e->place)], counted = *record;
    probe reader = recorder_probe(c->r);
    recorder_sum *sums = c->r->sums; /* are of what was counted */
    memset(c->vector, 0xff, (size_t)c->w->destinations * sizeof *c->vector);
    TRY(scorer_rows(s, &query, 1, 0, c->vector, err));
    *record = recorder_describe(c->w, e->event);
    c->r->sums = NULL;
    fr_status status = engine_read(c->w, e, c->vector, &reader, 1, err);
    c->r->sums = sums;
    if (status) return status;
    check->verified++;
    bool differs = memcmp(record, &counted, sizeof counted) != 0;
    check->differ += differs;
    *record = counted;
    if (!differs || !check->agree) return FR_OK;
    return fail(err, FR_EINPUT,
                "event %lld: %s: its scores give another record than how it says its candidates "
                "stand",
                (long long)(c->w->first + e->event), s->is.name);
}

/* ---- all events ---- */

static fr_status run(counting *c, int64_t met, const fr_context *context, counting_check *check,
                     fr_error *err) {
    const fr_window *w = c->w;
    int32_t ranked = w->to - w->from, next = 0;
    for (int32_t event = w->from; event < w->to; event++) {
        scored_event e = engine_describe(w, event);
        TRY(fr_scorer_observe(c->scorer, e.cut, err));
        if ((e.place & 1023) == 0) {
            TRY(context_check(context, err));
            context_progress(context, "rank", (uint64_t)e.place, (uint64_t)ranked, "events");
        }
        if (events_row(c->r->events, e.place) < 0 || !engine_ranks(w, &e, false, met)) continue;
        TRY(count_event(c, &e, err));
        if (check->verified >= check->wanted || e.place < next) continue;
        TRY(check_event(c, &e, check, err));
        next = (int32_t)((int64_t)ranked * check->verified / check->wanted);
    }
    return fr_scorer_observe(c->scorer, w->to, err);
}

fr_status counting_run(fr_scorer *scorer, recorder *r, int64_t met, const fr_context *context,
                       counting_check *check, fr_error *err) {
    const fr_window *w = scorer->window;
    counting c = {.w = w, .scorer = scorer, .r = r};
    int32_t cut = w->from < w->to ? window_cut(w, w->from) : 0;
    fr_status status = levels_open(&c.index, r, scorer->is.level, cut, err);
    if (!status) status = ALLOCATE(c.met, w->pairs, err);
    if (!status && check->wanted) status = ALLOCATE(c.vector, w->destinations, err);
    for (int32_t k = 0; !status && k < w->pairs; k++) c.met[k] = w->destination[w->firsts[k]];
    if (!status) status = run(&c, met, context, check, err);
    levels_close(&c.index);
    free(c.met);
    free(c.vector);
    return status;
}
