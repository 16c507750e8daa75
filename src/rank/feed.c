/* feed.c - ranking for a caller that keeps control of the loop (fullrank.h, chapter 10).
 *
 * A feed is the engine turned inside out: it returns queries, takes scores, and returns what
 * happened. The same functions decide what is ranked and read the scores, so the records equal
 * those of fr_rank_run with a scorer that gives the same scores.
 */
#include "base/clock.h"
#include "rank/rank.h"

#include <stdlib.h>

struct fr_feed {
    fr_scorer *about; /* the description in the records; it never scores */
    run records;
    int32_t first;   /* of the events that were looked at last */
    int32_t next;    /* first event after them */
    int32_t told;    /* first event whose destination has not been returned */
    int pending;     /* queries that wait for scores: the last ones handed out */
    int most;        /* events to look at next */
    int64_t largest; /* number of events looked at at once */
    ARRAY(fr_query) queries;
    ARRAY(fr_event) truth;
    float *spread; /* [candidates] of one event, if rows are over the catalog; else NULL */
    bool open;     /* not finished */
};

static fr_status open_feed(fr_feed *f, const fr_window *w, const fr_scorer_definition *about,
                           const fr_rank_settings *settings, fr_error *err) {
    fr_scorer_definition is;
    TRY(scorer_take(about, &is, err));
    TRY(scorer_describe(w, &is, &f->about, err));
    TRY(run_open(&f->records, f->about, settings, 1, NULL, err));
    if (f->records.settings.verify)
        return fail(err, FR_EUSAGE, "option verify: a feed has only one way of scoring");
    f->first = f->next = f->told = w->from;
    f->open = true;
    return is.catalog_only ? engine_spread_room(w, &f->spread, err) : FR_OK;
}

fr_status fr_feed_open(const fr_window *window, const fr_scorer_definition *about,
                       const fr_rank_settings *settings, fr_feed **out, fr_error *err) {
    fr_feed *f;
    NEED(out, err);
    *out = NULL;
    NEED(window, err);
    NEED(about, err);
    TRY(ALLOCATE(f, 1, err));
    fr_status status = open_feed(f, window, about, settings, err);
    if (status)
        fr_feed_close(f);
    else
        *out = f;
    return status;
}

void fr_feed_close(fr_feed *feed) {
    if (!feed) return;
    run_close(&feed->records);
    fr_scorer_close(feed->about);
    free(feed->queries.at);
    free(feed->truth.at);
    free(feed->spread);
    free(feed);
}

static fr_status check_open(const fr_feed *f, fr_error *err) {
    return f->open ? FR_OK : fail(err, FR_EUSAGE, "%s: the feed is finished", f->about->is.name);
}

fr_feed_facts fr_feed_get(const fr_feed *feed) {
    if (!feed) return (fr_feed_facts){0};
    const fr_window *w = feed->about->window;
    return (fr_feed_facts){.row = feed->about->row,
                           .events = w->to - w->from,
                           .submitted = (feed->pending ? feed->first : feed->next) - w->from,
                           .pending = feed->pending};
}

/* True if the event is a query. The first one always is, because the truth is returned from there
 * on. */
static bool is_asked(const fr_feed *f, int32_t event) {
    int32_t place = event - f->about->window->from;
    return !place || events_row(&f->records.events, place) >= 0;
}

/* Skips events without a query, in steps of the size of the last request. */
static void pass_over(fr_feed *f) {
    const fr_window *w = f->about->window;
    while (f->next < w->to) {
        int32_t end = w->to - f->next < f->most ? w->to : f->next + f->most;
        for (int32_t event = f->next; event < end; event++)
            if (is_asked(f, event)) return;
        f->next = end;
    }
}

fr_status fr_feed_next(fr_feed *feed, int most, const fr_query **queries, int *count,
                       fr_error *err) {
    NEED(feed, err);
    NEED(queries, err);
    NEED(count, err);
    const fr_window *w = feed->about->window;
    TRY(check_open(feed, err));
    if (most < 1) return fail(err, FR_EUSAGE, "%d queries at once, expected 1 or more", most);
    if (feed->pending)
        return fail(err, FR_EUSAGE, "%s: %d queries wait for their scores", feed->about->is.name,
                    feed->pending);
    int32_t from = feed->next, end = from;
    feed->queries.count = 0;
    for (; end < w->to && (end - from < most || !feed->queries.count); end++)
        if (is_asked(feed, end))
            ARRAY_PUSH(&feed->queries, ((fr_query){end, w->source[end], window_time(w, end)}), err);
    feed->pending = (int)feed->queries.count;
    feed->first = from;
    feed->next = end;
    feed->most = most;
    if (end - from > feed->largest) feed->largest = end - from;
    *queries = feed->queries.at;
    *count = feed->pending;
    return FR_OK;
}

/* Records one event, if it is ranked. */
static fr_status read_row(fr_feed *f, int32_t event, const float *row, fr_error *err) {
    const fr_window *w = f->about->window;
    const run *r = &f->records;
    scored_event facts = engine_describe(w, event);
    if (events_row(&r->events, facts.place) < 0) return FR_OK;
    if (!engine_ranks(w, &facts, f->about->is.catalog_only, r->settings.met)) return FR_OK;
    if (f->spread) engine_spread(w, row, f->spread), row = f->spread;
    return engine_read(w, &facts, row, r->probe, r->probes, err);
}

fr_status fr_feed_submit(fr_feed *feed, const float *scores, int count, const fr_event **truth,
                         int *known, fr_error *err) {
    NEED(feed, err);
    NEED(scores, err);
    TRY(check_open(feed, err));
    const fr_window *w = feed->about->window;
    if (!feed->pending || count != feed->pending)
        return fail(err, FR_EUSAGE, "%s: scores of %d queries, expected %d", feed->about->is.name,
                    count, feed->pending);
    for (int k = 0; k < count; k++)
        TRY(read_row(feed, feed->queries.at[k].event, scores + k * feed->about->row, err));
    feed->truth.count = 0;
    pass_over(feed);
    int32_t until = feed->next < w->to ? window_cut(w, feed->next) : w->to;
    for (int32_t event = feed->told; event < until; event++)
        ARRAY_PUSH(&feed->truth, fr_window_event(w, event), err);
    if (until > feed->told) feed->told = until;
    feed->pending = 0;
    if (truth) *truth = feed->truth.at;
    if (known) *known = (int)feed->truth.count;
    return FR_OK;
}

fr_status fr_feed_finish(fr_feed *feed, fr_ranking **out, fr_error *err) {
    NEED(feed, err);
    NEED(out, err);
    *out = NULL;
    TRY(check_open(feed, err));
    fr_feed_facts f = fr_feed_get(feed);
    if (f.submitted < f.events)
        return fail(err, FR_EUSAGE, "%s: %lld of %lld test events have scores",
                    feed->about->is.name, (long long)f.submitted, (long long)f.events);
    TRY(run_keep_scores(&feed->records, err));
    ranking_notes notes = {.seconds = clock_now() - feed->records.started,
                           .largest_batch = feed->largest};
    feed->open = false;
    return run_finish(&feed->records, notes, out, err);
}
