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
    float *scores;  /* [destinations] of the event at hand, where they are read: those of the list,
                       of all others something that compares with the positive as they do */
    int32_t *stamp; /* [destinations] the event for which `scores` was filled last */
    float *vector;  /* [destinations] for checks, else NULL */
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

/* Candidates by their places alone. */
static recorder_tally tally_levels(const counting *c, const scored_event *e, const fr_standing *s,
                                   uint32_t tied_at, uint32_t above_at) {
    const levels *l = &c->index;
    level_sums to_above = levels_below(l, above_at), to_tied = levels_below(l, tied_at);
    recorder_tally t = {
        .available = {l->all.available, l->all.available - to_above.available,
                      to_above.available - to_tied.available},
        .catalog = {l->all.catalog, l->all.catalog - to_above.catalog,
                    to_above.catalog - to_tied.catalog},
        .mass_above = l->all.mass - to_above.mass,
        .mass_tied = to_above.mass - to_tied.mass,
        .mass_total = l->all.mass,
    };
    if (e->covered && t.catalog.tied)
        t.before = levels_before(l, s->tied, s->above, e->destination);
    return t;
}

/* Something that compares with the positive as a candidate without a score of its own does. */
static float stand_in(const counting *c, int32_t v, const fr_standing *s, uint32_t tied_at,
                      uint32_t above_at) {
    uint32_t place = c->index.now[v];
    return place >= above_at ? INFINITY : place >= tied_at ? s->score : -INFINITY;
}

typedef struct places {
    uint32_t tied, above;
} places;

/* Scores of the list; they take the place of what the levels say. */
static void read_own(counting *c, const scored_event *e, const fr_standing *s, places p,
                     recorder_tally *t) {
    for (int32_t k = 0; k < s->own; k++) {
        int32_t v = s->destination[k];
        float other = stand_in(c, v, s, p.tied, p.above);
        recorder_count(c->r, e, v, other, s->score, -1, t);
        recorder_count(c->r, e, v, s->own_score[k], s->score, 1, t);
        c->scores[v] = s->own_score[k];
        c->stamp[v] = e->event;
    }
}

static void read_level(counting *c, const scored_event *e, const fr_standing *s, places p,
                       int32_t v) {
    if (c->stamp[v] != e->event) c->scores[v] = stand_in(c, v, s, p.tied, p.above);
}

static fr_status count_event(counting *c, const scored_event *e, fr_error *err) {
    const fr_window *w = c->w;
    recorder *r = c->r;
    fr_standing s = {0};
    int32_t two[2];
    fr_query query = {e->event, e->source, window_time(w, e->event)};
    levels_advance(&c->index, e->cut);
    uint64_t before = engine_fingerprint(c->scorer);
    TRY(c->scorer->is.stand(c->scorer->is.state, &query, e->destination, &s, err));
    TRY(engine_check_state(c->scorer, e->event, before, err));
    TRY(check_standing(c, e, &s, err));
    places p = {levels_place(&c->index, s.tied), levels_place(&c->index, s.above)};
    recorder_tally t = r->lists ? (recorder_tally){0} : tally_levels(c, e, &s, p.tied, p.above);
    read_own(c, e, &s, p, &t);
    c->scores[e->destination] = s.score;
    c->stamp[e->destination] = e->event;
    if (r->lists) {
        const negatives *n = r->lists;
        for (int64_t k = n->at[e->place]; k < n->at[e->place + 1]; k++)
            read_level(c, e, &s, p, n->list[k]);
        recorder_put_list(r, e, c->scores);
        return FR_OK;
    }
    recorder_list x = recorder_excluded(r, e, two);
    for (int32_t k = 0; k < x.count; k++) read_level(c, e, &s, p, x.at[k]);
    fr_history seen = e->covered ? recorder_met(r, e) : (fr_history){0};
    for (int32_t k = 0; k < seen.count; k++) read_level(c, e, &s, p, w->destination[seen.event[k]]);
    recorder_put(r, e, &x, c->scores, t);
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
    memset(c->vector, 0xff, (size_t)c->w->destinations * sizeof *c->vector);
    TRY(s->is.score(s->is.state, &query, 1, 0, c->vector, err));
    *record = recorder_describe(c->w, e->event);
    TRY(engine_read(c->w, e, c->vector, &reader, 1, err));
    check->verified++;
    check->differ += memcmp(record, &counted, sizeof counted) != 0;
    *record = counted;
    return FR_OK;
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
    fr_status status = levels_open(&c.index, w, scorer->is.level, r->mass, r->text, cut, err);
    if (!status) status = ALLOCATE(c.scores, w->destinations, err);
    if (!status) status = ALLOCATE(c.stamp, w->destinations, err);
    if (!status && check->wanted) status = ALLOCATE(c.vector, w->destinations, err);
    for (int32_t v = 0; !status && v < w->destinations; v++) c.stamp[v] = -1;
    if (!status) status = run(&c, met, context, check, err);
    levels_close(&c.index);
    free(c.scores);
    free(c.stamp);
    free(c.vector);
    return status;
}
