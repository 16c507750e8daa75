/* audit_checks.c - the checks that score events again (audit.h): future, same-time, batch,
 * candidates, state. */
#include "base/context.h"
#include "eval/audit.h"

#include <stdlib.h>
#include <string.h>

/* ---- windows in which something is different ---- */

/* Scores `count` audited events from number `first` on, on a changed window, and compares. */
static fr_status score_changed(audit *a, int check, const change *c, int first, int count,
                               difference d, fr_error *err) {
    fr_window *w = NULL;
    fr_scorer *scorer = NULL;
    fr_status status = counterfactual_open(a->w, c, &w, err);
    if (!status) status = audit_open_scorer(a, w, &scorer, err);
    for (int k = first; !status && k < first + count; k++) {
        status = audit_score(scorer, a->event[k], 0, a->other, err);
        if (!status) audit_compare(a, check, k, a->other, NULL, d);
    }
    fr_scorer_close(scorer);
    fr_window_close(w);
    return status;
}

static const struct {
    change_kind kind;
    const char *what;
} futures[] = {
    {CHANGE_REDRAWN, "redrawn"}, {CHANGE_PERMUTED, "permuted"}, {CHANGE_REMOVED, "removed"}};
enum { FUTURES = 3 };

/* One kind of change per group, or all kinds if the user has named the events. */
static fr_status check_future(audit *a, fr_error *err) {
    for (int g = 0; g < a->group_count; g++) {
        const group *own = &a->groups[g];
        int32_t at = a->event[own->first + own->count - 1];
        for (int way = 0; way < FUTURES; way++) {
            if (!a->given && way != g % FUTURES) continue;
            change c = {.kind = futures[way].kind, .from = at, .seed = a->seed};
            difference d = {.what = futures[way].what, .from = at, .until = a->w->events};
            TRY(score_changed(a, FR_AUDIT_FUTURE, &c, own->first, own->count, d, err));
        }
    }
    return FR_OK;
}

/* Events of the group's last time or batch are not in each other's past. Those before the first
 * audited one of them are changed. */
static fr_status change_company(audit *a, const group *own, fr_error *err) {
    const fr_window *w = a->w;
    int last = own->first + own->count - 1, first = last;
    int32_t cut = window_cut(w, a->event[last]);
    int32_t from = cut > w->from ? cut : w->from;
    while (first > own->first && a->event[first - 1] > from) first--;
    if (a->event[first] <= from) return FR_OK;
    change c = {.kind = CHANGE_SOME, .from = from, .to = a->event[first], .seed = a->seed};
    difference d = {.what = "redrawn", .from = c.from, .until = c.to};
    return score_changed(a, FR_AUDIT_SAME_TIME, &c, first, last - first + 1, d, err);
}

static fr_status check_same_time(audit *a, fr_error *err) {
    tally *t = &a->tally[FR_AUDIT_SAME_TIME];
    bool batch = a->w->order == FR_ORDER_BATCH;
    if (a->w->order == FR_ORDER_STREAM) {
        text_put(&t->note, "with order stream, earlier events of the same time are history");
        t->tested = false;
        return FR_OK;
    }
    for (int g = 0; g < a->group_count; g++) TRY(change_company(a, &a->groups[g], err));
    t->tested = t->events > 0;
    if (!t->tested)
        text_print(&t->note, "no audited event has a ranked event of its %s before it",
                   batch ? "batch" : "time");
    else if (batch)
        text_put(&t->note, "earlier events of the same batch");
    return FR_OK;
}

/* ---- batch ---- */

/* Events of one call: the audited ones, and others if there are few. */
typedef struct company {
    int32_t *event; /* [count] ascending */
    int *audited;   /* [count] number of the audited event, -1 = it is another one */
    int count;
    float *scores; /* [chunk, row] */
    int chunk;
} company;
enum { COMPANY = 200 };

static int find_audited(const audit *a, int32_t event) {
    for (int k = 0; k < a->events; k++)
        if (a->event[k] == event) return k;
    return -1;
}

static fr_status gather_company(const audit *a, company *p, fr_error *err) {
    const fr_window *w = a->w;
    int most = a->given || 4 * a->events > COMPANY ? COMPANY : 4 * a->events;
    if (most < a->events) most = a->events;
    int64_t fit = (64 << 20) / ((int64_t)sizeof *p->scores * a->row);
    TRY(ALLOCATE(p->event, most, err));
    TRY(ALLOCATE(p->audited, most, err));
    p->chunk = a->many < COMPANY ? a->many : COMPANY;
    if (p->chunk > fit) p->chunk = fit > 7 ? (int)fit : 7;
    TRY(ALLOCATE(p->scores, (size_t)p->chunk * (size_t)a->row, err));
    int64_t ranked = w->to - w->from, spare = most - a->events;
    for (int32_t i = w->from; i < w->to && p->count < most; i++) {
        int k = find_audited(a, i);
        int64_t place = i - w->from; /* spread over the part */
        bool other = spare && place * spare / ranked != (place + 1) * spare / ranked;
        if (k < 0 && (!other || !window_covered(w, i))) continue;
        p->event[p->count] = i;
        p->audited[p->count++] = k;
    }
    return FR_OK;
}

/* One call for events first, first + step, ... of the company. */
static fr_status score_together(audit *a, const fr_scorer *scorer, const company *p, int first,
                                int step, int count, const char *what, fr_error *err) {
    fr_query queries[COMPANY] = {0};
    int at[COMPANY], n = 0;
    for (int k = first; k < p->count && n < count; k += step) {
        int32_t i = p->event[k];
        at[n] = k;
        queries[n++] = (fr_query){i, a->w->source[i], window_time(a->w, i)};
    }
    memset(p->scores, 0xff, (size_t)n * (size_t)a->row * sizeof *p->scores);
    TRY(fr_scorer_score(scorer, queries, n, 0, p->scores, err));
    for (int k = 0; k < n; k++)
        if (p->audited[at[k]] >= 0)
            audit_compare(a, FR_AUDIT_BATCH, p->audited[at[k]], p->scores + k * a->row, NULL,
                          (difference){.what = what, .from = -1});
    return FR_OK;
}

static fr_status score_company(audit *a, fr_scorer *scorer, const company *p, fr_error *err) {
    int seven = p->chunk < 7 ? p->chunk : 7;
    for (int k = 0; k < p->count; k += seven)
        TRY(score_together(a, scorer, p, k, 1, seven, "scored in batches of 7", err));
    for (int k = 0; k < p->count; k += p->chunk)
        TRY(score_together(a, scorer, p, k, 1, p->chunk, "scored in batches of 200", err));
    int step = (p->count + seven - 1) / seven;
    for (int k = 0; k < step; k++)
        TRY(score_together(a, scorer, p, k, step, seven, "scored in other company", err));
    if (a->workers < 2) return FR_OK;
    for (int k = 0; k < a->events; k++) {
        TRY(audit_score(scorer, a->event[k], 1, a->other, err));
        audit_compare(a, FR_AUDIT_BATCH, k, a->other, NULL,
                      (difference){.what = "scored by another worker", .from = -1});
    }
    return FR_OK;
}

/* For a scorer that takes one event at a time, only earlier events can matter: score every third
 * event alone. */
static fr_status score_few(audit *a, fr_scorer *scorer, fr_error *err) {
    for (int k = a->events > 3 ? 2 : 0; k < a->events; k += 3) {
        TRY(audit_score(scorer, a->event[k], 0, a->other, err));
        audit_compare(a, FR_AUDIT_BATCH, k, a->other, NULL,
                      (difference){.what = "scored without most of the others", .from = -1});
    }
    if (a->workers < 2) text_put(&a->tally[FR_AUDIT_BATCH].note, "takes one event at a time");
    return FR_OK;
}

static fr_status check_batch(audit *a, fr_error *err) {
    company p = {0};
    fr_scorer *scorer = NULL;
    fr_status status = audit_open_scorer(a, a->w, &scorer, err);
    if (!status && (a->many > 1 || a->workers > 1)) {
        status = gather_company(a, &p, err);
        if (!status) status = score_company(a, scorer, &p, err);
    }
    if (!status && a->many == 1) status = score_few(a, scorer, err);
    fr_scorer_close(scorer);
    free(p.event);
    free(p.audited);
    free(p.scores);
    return status;
}

/* ---- candidates ---- */

/* Where each column of the audited window's rows is in those of another one. */
static void find_columns(const audit *a, const fr_window *w, int32_t *place) {
    for (int64_t c = 0; c < a->row; c++) {
        int32_t v = audit_destination(a, c);
        place[c] = a->catalog_only ? w->catalog_place[v] : v;
    }
}

/* Scores events whose destination is in the catalog of the window. The events themselves are
 * unchanged. */
static fr_status score_listed(audit *a, const change *c, int32_t *place, const char *what,
                              bool may_refuse, fr_error *err) {
    fr_window *w = NULL;
    fr_scorer *scorer = NULL;
    fr_error inner = {0};
    TRY(counterfactual_open(a->w, c, &w, err));
    fr_status status = audit_open_scorer(a, w, &scorer, &inner);
    bool refused = status == FR_EINPUT && may_refuse;
    if (refused) {
        text_print(&a->tally[FR_AUDIT_CANDIDATES].note, "not %s: %s", what, inner.message);
        status = FR_OK;
    } else if (status) {
        status = fail(err, status, "%s", inner.message);
    }
    find_columns(a, w, place);
    for (int k = 0; !status && !refused && k < a->events; k++) {
        if (!window_listed(w, a->w->destination[a->event[k]])) continue;
        status = audit_score(scorer, a->event[k], 0, a->other, err);
        if (!status)
            audit_compare(a, FR_AUDIT_CANDIDATES, k, a->other, place,
                          (difference){.what = what, .from = -1});
    }
    fr_scorer_close(scorer);
    fr_window_close(w);
    return status;
}

static fr_status check_candidates(audit *a, fr_error *err) {
    int32_t *place;
    bool *listed = NULL;
    rng_key key = {.seed = (uint64_t)a->seed, .purpose = RNG_AUDIT, .epoch = 101};
    TRY(ALLOCATE(place, a->row, err));
    fr_status status = ALLOCATE(listed, a->w->destinations, err);
    for (int half = 0; !status && half < 2; half++) {
        int32_t count = 0;
        for (int32_t v = 0; v < a->w->destinations; v++) {
            listed[v] = (int)rng_below(key, (uint64_t)v, 0, 2) == half;
            count += listed[v] && window_listed(a->w, v);
        }
        change c = {.kind = CHANGE_FEWER, .seed = a->seed, .listed = listed};
        if (count) status = score_listed(a, &c, place, "with half of the catalog", false, err);
    }
    change more = {.kind = CHANGE_MORE, .seed = a->seed, .more = AUDIT_MORE};
    if (!status) status = score_listed(a, &more, place, "with more candidates", true, err);
    free(place);
    free(listed);
    return status;
}

/* ---- state ---- */

/* Scores the ranked events just before an audited one, without using the scores. */
static fr_status score_neighbours(audit *a, fr_scorer *scorer, int k, fr_error *err) {
    int32_t least = k ? a->event[k - 1] + 1 : a->w->from, first = a->event[k] - 2;
    for (int32_t i = first > least ? first : least; i < a->event[k]; i++)
        if (window_covered(a->w, i)) TRY(audit_score(scorer, i, 0, a->other, err));
    return FR_OK;
}

/* Scores every event twice, with other events in between. The order is random if nothing is
 * remembered. */
static fr_status check_state(audit *a, fr_error *err) {
    static const char *const what[] = {"scored after other events", "scored twice"};
    fr_scorer *scorer = NULL;
    int *order;
    rng_key key = {.seed = (uint64_t)a->seed, .purpose = RNG_AUDIT, .epoch = 102};
    TRY(ALLOCATE(order, a->events, err));
    for (int k = 0; k < a->events; k++) order[k] = k;
    if (!a->remembers) rng_shuffle(key, order, a->events, sizeof *order);
    fr_status status = audit_open_scorer(a, a->w, &scorer, err);
    for (int n = 0; !status && n < a->events; n++) {
        int k = order[n];
        status = score_neighbours(a, scorer, k, err);
        for (int turn = 0; !status && turn < 2; turn++) {
            status = audit_score(scorer, a->event[k], 0, a->other, err);
            if (!status)
                audit_compare(a, FR_AUDIT_STATE, k, a->other, NULL,
                              (difference){.what = what[turn], .from = -1});
        }
    }
    fr_scorer_close(scorer);
    free(order);
    return status;
}

audit_function *const audit_functions[FR_AUDIT_CHECKS] = {
    [FR_AUDIT_FUTURE] = check_future,   [FR_AUDIT_SAME_TIME] = check_same_time,
    [FR_AUDIT_BATCH] = check_batch,     [FR_AUDIT_CANDIDATES] = check_candidates,
    [FR_AUDIT_STATE] = check_state,     [FR_AUDIT_POSITION] = audit_position,
    [FR_AUDIT_NUMBERS] = audit_numbers,
};
