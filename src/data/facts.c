/* facts.c - facts about a stream: the numbers of PROTOCOL 13 (fullrank.h, chapter 6). */
#include "data/facts.h"

#include "base/context.h"

#include <math.h>
#include <stdlib.h>

static double logit(double p) { return log(p) - log1p(-p); }

double facts_beta_star(double p1, double q1) { return logit(p1) - logit(q1); }

static int by_count(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Gini coefficient of events per destination, over the destinations the window has. */
static fr_status gini(const fr_window *w, double *out, fr_error *err) {
    int32_t *count, n = 0;
    TRY(ALLOCATE(count, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        int32_t degree = w->destination_at[v + 1] - w->destination_at[v];
        if (degree) count[n++] = degree; /* a catalog file may name destinations without events */
    }
    qsort(count, (size_t)n, sizeof *count, by_count);
    double sum = 0, weighted = 0;
    for (int32_t k = 0; k < n; k++) {
        sum += count[k];
        weighted += (k + 1.0) * count[k];
    }
    free(count);
    *out = 2 * weighted / (n * sum) - (n + 1.0) / n;
    return FR_OK;
}

/* Destinations seen before each test event, in one pass: how many have their first event below cut.
 */
typedef struct available_count {
    int32_t next, count;
} available_count;

static int32_t advance_available(available_count *a, const fr_window *w, int32_t cut) {
    for (; a->next < cut; a->next++) {
        int32_t v = w->destination[a->next];
        a->count += w->destination_events[w->destination_at[v]] == a->next;
    }
    return a->count;
}

static void ranking_facts(const fr_window *w, fr_facts *f) {
    available_count available = {0};
    int64_t repeated_all = 0;
    double history = 0, available_sizes = 0;
    for (int32_t i = 0; i < w->events; i++)
        f->tied_times += (i > 0 && w->time[i] == w->time[i - 1]) ||
                         (i + 1 < w->events && w->time[i] == w->time[i + 1]);
    for (int32_t i = w->from; i < w->to; i++) {
        int32_t u = w->source[i], v = w->destination[i], cut = window_cut(w, i);
        bool repeated = window_pair_history(w, u, v, cut).count > 0;
        int32_t size = advance_available(&available, w, cut);
        int32_t self = window_self(w, u);
        bool is_available = window_candidate(w, i, v), covered = window_covered(w, i);
        size -= self >= 0 && window_available(w, self, cut);
        f->covered += covered;
        f->repeated += covered && repeated;
        f->new_ += covered && !repeated;
        f->available_ranked += is_available;
        if (is_available) available_sizes += size;
        repeated_all += repeated;
        history += window_source_history(w, u, cut, INT32_MAX).count;
    }
    int32_t test = w->to - w->from;
    f->test_repeat_share = (double)repeated_all / test;
    f->history_mean = history / test;
    f->destinations_per_source = (double)w->pairs / w->sources;
    f->available_size = f->available_ranked ? available_sizes / (double)f->available_ranked : NAN;
}

/* Counts the negatives of a test event; its `occurred` must be that of its cut. */
static void count_negatives(const fr_window *w, eligible_event *e) {
    int32_t i = e->event, u = w->source[i], v = w->destination[i], cut = window_cut(w, i);
    int32_t self = window_self(w, u);
    fr_history met = window_met(w, u, cut);
    e->repeated = false;
    e->seen = e->catalog_seen = 0;
    for (int32_t k = 0; k < met.count; k++) {
        int32_t other = w->destination[met.event[k]];
        if (other == v) e->repeated = true;
        if (other == v || other == self) continue;
        e->seen++;
        e->catalog_seen += window_listed_met(w, other);
    }
    bool other_self = self >= 0 && self != v;
    e->available =
        e->occurred - window_available(w, v, cut) - (other_self && window_available(w, self, cut));
    e->catalog = w->catalog_kind == CATALOG_TIME ? e->available
                                                 : w->catalog_size - window_listed(w, v) -
                                                       (other_self && window_listed(w, self));
}

bool facts_next_eligible(const fr_window *w, eligible_event *e) {
    available_count available = {e->next, e->occurred};
    for (e->event = e->event < w->from ? w->from : e->event + 1; e->event < w->to; e->event++) {
        e->occurred = advance_available(&available, w, window_cut(w, e->event));
        e->next = available.next;
        count_negatives(w, e);
        if (e->seen >= FACTS_ENOUGH) return true;
    }
    return false;
}

/* PROTOCOL 8 and 9 on the diagnostic window. */
static void diagnostic_facts(const fr_window *w, fr_facts *f) {
    double q1 = 0;
    for (eligible_event e = {0}; facts_next_eligible(w, &e);) {
        f->eligible++;
        f->eligible_repeated += e.repeated;
        q1 += e.catalog ? (double)e.catalog_seen / e.catalog : 0;
        if (e.available - e.seen < FACTS_ENOUGH) continue; /* unseen but available */
        if (!window_candidate(w, e.event, w->destination[e.event])) {
            f->membership_unavailable++; /* no scorer can rank it */
            continue;
        }
        f->membership_repeated += e.repeated;
        f->membership_new += !e.repeated;
    }
    f->p1 = f->eligible ? (double)f->eligible_repeated / (double)f->eligible : NAN;
    f->q1 = f->eligible ? q1 / (double)f->eligible : NAN;
    f->beta_star = facts_beta_star(f->p1, f->q1);
}

fr_status fr_facts_compute(const fr_window *window, const fr_window *diagnostic,
                           const fr_context *context, fr_facts *out, fr_error *err) {
    NEED(window, err);
    NEED(diagnostic, err);
    NEED(out, err);
    *out = (fr_facts){.diagnostic_events = diagnostic->events,
                      .diagnostic_catalog = diagnostic->catalog_size};
    TRY(context_check(context, err));
    TRY(gini(window, &out->popularity_gini, err));
    ranking_facts(window, out);
    TRY(context_check(context, err));
    diagnostic_facts(diagnostic, out);
    return FR_OK;
}
