/* audit_numbers.c - the checks of the scores themselves (audit.h): numbers, and position, which
 * tests whether the position of a candidate says something about it. */
#include "base/context.h"
#include "base/number.h"
#include "eval/audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Properties of one row of scores. */
typedef struct look {
    int64_t bad; /* column of the first score that is not finite, -1 = none */
    bool constant, saturated, tied;
} look;

/* A sigmoid whose largest values have become 1: several candidates at 1, others just below it. */
static bool is_saturated(int64_t ones, int64_t near, float least, float most) {
    return ones >= 2 && near >= 1 && least >= 0 && most == 1;
}

static look look_at(const audit *a, int k) {
    const float *s = a->base + k * a->row;
    look l = {.bad = -1};
    int64_t ones = 0, near = 0, equal = 0;
    float least = s[0], most = s[0];
    float positive = s[audit_column(a, a->w->destination[a->event[k]])];
    for (int64_t c = 0; c < a->row; c++) {
        if (!isfinite(s[c]) && l.bad < 0) l.bad = c;
        least = s[c] < least ? s[c] : least;
        most = s[c] > most ? s[c] : most;
        ones += s[c] == 1;
        near += s[c] > 0.999f && s[c] < 1;
        equal += s[c] == positive;
    }
    l.constant = least == most;
    l.saturated = is_saturated(ones, near, least, most);
    l.tied = equal > 1;
    return l;
}

static void print_share(text_buffer *out, const char *what, int count, int of) {
    if (count) text_print(out, "%s%d of %d events %s", out->count ? "; " : "", count, of, what);
}

fr_status audit_numbers(audit *a, fr_error *err) {
    int bad = 0, constant = 0, saturated = 0, tied = 0;
    tally *t = &a->tally[FR_AUDIT_NUMBERS];
    for (int k = 0; k < a->events; k++) {
        look l = look_at(a, k);
        extra_finding f = {
            .event = a->w->first + a->event[k], .candidate = -1, .score = NAN, .changed = NAN};
        t->events++;
        t->scores += a->row;
        constant += l.constant;
        tied += l.tied && !l.constant;
        if (l.bad >= 0 && bad++ < 3) {
            f.candidate = a->w->destination_id[audit_destination(a, l.bad)];
            f.score = (double)a->base[k * a->row + l.bad];
            (void)snprintf(f.what, sizeof f.what, "the score is not a finite number");
            TRY(audit_add(a, FR_AUDIT_NUMBERS, FR_SEVERITY_NUMERIC, f, err));
        }
        /* reported from 1 % of the events on, because one odd event means nothing */
        if (l.saturated && ++saturated * 100 >= a->events && saturated * 100 < a->events + 100) {
            (void)snprintf(f.what, sizeof f.what,
                           "several candidates have a score of 1 and others almost 1: a sigmoid "
                           "has rounded away their order");
            TRY(audit_add(a, FR_AUDIT_NUMBERS, FR_SEVERITY_NUMERIC, f, err));
        }
    }
    print_share(&t->note, "have scores that are no numbers", bad, a->events);
    print_share(&t->note, "are saturated", saturated, a->events);
    print_share(&t->note, "have one score for all candidates", constant, a->events);
    print_share(&t->note, "have the positive tied with others", tied, a->events);
    return FR_OK;
}

/* ---- position: redrawn destinations are ranked at chance ---- */

static int by_score(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* Reciprocal rank of a score among others; mean and variance of it over all of them. Ties get the
 * mean of their ranks. */
typedef struct chance {
    double rr, mean, variance;
} chance;

static chance rank_by_chance(float *scores, int64_t count, float own) {
    chance out = {0};
    double squares = 0;
    qsort(scores, (size_t)count, sizeof *scores, by_score);
    for (int64_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && scores[last] == scores[first];) last++;
        double rr = 2.0 / (double)(first + last + 1);
        out.mean += (double)(last - first) * rr;
        squares += (double)(last - first) * rr * rr;
        if (scores[first] == own) out.rr = rr;
    }
    out.mean /= (double)count;
    out.variance = squares / (double)count - out.mean * out.mean;
    return out;
}

/* Adds one event of a window whose destinations were drawn from the catalog. */
static void add_chance(const audit *a, const fr_window *w, int32_t event, chance *sum) {
    int32_t self = window_self(w, w->source[event]);
    int64_t count = 0;
    for (int32_t k = 0; k < w->catalog_size; k++)
        if (w->catalog[k] != self)
            a->mapped[count++] = a->other[a->catalog_only ? k : w->catalog[k]];
    float own = a->other[audit_column(a, w->destination[event])];
    for (int64_t k = 0; k < count; k++)
        if (!isfinite(a->mapped[k])) return; /* the check of numbers reports these */
    if (!count || !isfinite(own)) return;
    chance one = rank_by_chance(a->mapped, count, own);
    sum->rr += one.rr;
    sum->mean += one.mean;
    sum->variance += one.variance;
}

/* A scorer cannot rank a randomly drawn destination better than chance, whatever its scores.
 * Bernstein's inequality bounds how often chance would look like this. */
static fr_status judge_chance(audit *a, const chance *sum, fr_error *err) {
    tally *t = &a->tally[FR_AUDIT_POSITION];
    double excess = sum->rr - sum->mean;
    double bound = excess > 0 ? exp(-excess * excess / 2 / (sum->variance + excess / 3)) : 1;
    char text[160];
    (void)number_print(text, sizeof text, "destinations drawn at random have MRR %.4f, chance %.4f",
                       sum->rr / a->events, sum->mean / a->events);
    text_put(&t->note, text);
    if (bound >= 1e-6) return FR_OK;
    extra_finding f = {.event = -1,
                       .candidate = -1,
                       .score = sum->mean / a->events,
                       .changed = sum->rr / a->events};
    (void)snprintf(f.what, sizeof f.what, "%s: the positive is known", text);
    return audit_add(a, FR_AUDIT_POSITION, FR_SEVERITY_LEAK, f, err);
}

static fr_status check_chance(audit *a, fr_error *err) {
    change c = {.kind = CHANGE_LABELS, .from = a->w->from, .to = a->w->to, .seed = a->seed};
    fr_window *w = NULL;
    fr_scorer *scorer = NULL;
    chance sum = {0};
    fr_status status = counterfactual_open(a->w, &c, &w, err);
    if (!status) status = audit_open_scorer(a, w, &scorer, err);
    for (int k = 0; !status && k < a->events; k++) {
        status = audit_score(scorer, a->event[k], 0, a->other, err);
        if (!status) add_chance(a, w, a->event[k], &sum);
        a->tally[FR_AUDIT_POSITION].events++;
        a->tally[FR_AUDIT_POSITION].scores += a->row;
    }
    fr_scorer_close(scorer);
    fr_window_close(w);
    return status ? status : judge_chance(a, &sum, err);
}

/* ---- position: scores change together with ids ---- */

/* The correlation between the changes of one event's scores and the changes of places: Pearson's r
 * over the catalog; NaN if no score has changed. */
static double follow_places(const audit *a, int k, const int32_t *place) {
    const float *base = a->base + k * a->row;
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t c = 0; c < a->row; c++) {
        if (!window_listed(a->w, audit_destination(a, c))) continue;
        double moved = (double)(place[c] - c), gain = (double)a->other[place[c]] - (double)base[c];
        if (!isfinite(gain)) continue;
        n++;
        x += moved;
        y += gain;
        xx += moved * moved;
        yy += gain * gain;
        xy += moved * gain;
    }
    double vx = xx - x * x / n, vy = yy - y * y / n;
    return vx > 0 && vy > 0 && yy > 0 ? (xy - x * y / n) / sqrt(vx * vy) : NAN;
}

/* The scores of a scorer with identities (a seed, learned vectors) may change, but not with the
 * order of ids: the limit is 6 standard deviations of a random order. */
static fr_status judge_ids(audit *a, double r, fr_error *err) {
    tally *t = &a->tally[FR_AUDIT_POSITION];
    difference most = {0};
    int at = 0;
    for (int k = 0; k < a->events; k++)
        if (t->worst[k].size > most.size) most = t->worst[k], at = k;
    memset(t->worst, 0, (size_t)a->events * sizeof *t->worst);
    text_put(&t->note, "; ");
    if (most.size <= audit_tolerance(a, FR_AUDIT_POSITION)) {
        text_put(&t->note, "scores follow their destinations to new ids");
        return FR_OK;
    }
    double limit = a->w->catalog_size > 10 ? fmin(0.99, 6 / sqrt(a->w->catalog_size - 1)) : 2;
    if (fabs(r) < limit) {
        text_put(&t->note, "scores depend on ids, but not on their order");
        return FR_OK;
    }
    extra_finding f = {.event = a->w->first + a->event[at],
                       .candidate = a->w->destination_id[audit_destination(a, most.column)],
                       .score = (double)most.score,
                       .changed = (double)most.changed};
    (void)number_print(
        f.what, sizeof f.what,
        "destinations exchanged their ids: scores follow the order of ids (r = %.2f)", r);
    text_put(&t->note, "scores depend on the order of ids");
    return audit_add(a, FR_AUDIT_POSITION, FR_SEVERITY_LEAK, f, err);
}

static fr_status score_relabelled(audit *a, fr_window *w, fr_scorer *scorer, const int32_t *number,
                                  fr_error *err) {
    int32_t *place;
    double sum = 0;
    int count = 0;
    TRY(ALLOCATE(place, a->row, err));
    for (int64_t c = 0; c < a->row; c++) {
        int32_t v = number[audit_destination(a, c)];
        place[c] = a->catalog_only ? w->catalog_place[v] : v;
    }
    fr_status status = FR_OK;
    for (int k = 0; !status && k < a->events; k++) {
        status = audit_score(scorer, a->event[k], 0, a->other, err);
        if (status) break;
        double r = follow_places(a, k, place);
        if (!isnan(r)) sum += r, count++;
        audit_compare(a, FR_AUDIT_POSITION, k, a->other, place,
                      (difference){.what = "destinations exchanged their ids", .from = -1});
    }
    if (!status) status = judge_ids(a, count ? sum / count : 0, err);
    free(place);
    return status;
}

static fr_status check_ids(audit *a, fr_error *err) {
    int32_t *number;
    fr_window *w = NULL;
    fr_scorer *scorer = NULL;
    fr_error inner = {0};
    TRY(ALLOCATE(number, a->w->destinations, err));
    fr_status status = counterfactual_places(a->w, a->seed, number, err);
    change c = {.kind = CHANGE_IDS, .seed = a->seed, .place = number};
    if (!status) status = counterfactual_open(a->w, &c, &w, err);
    fr_status opened = status ? status : audit_open_scorer(a, w, &scorer, &inner);
    if (!status && opened == FR_EINPUT) /* the model belongs to its ids */
        text_print(&a->tally[FR_AUDIT_POSITION].note, "; ids not relabelled: %s", inner.message);
    else if (!status && opened)
        status = fail(err, opened, "%s", inner.message);
    else if (!status)
        status = score_relabelled(a, w, scorer, number, err);
    fr_scorer_close(scorer);
    fr_window_close(w);
    free(number);
    return status;
}

/* ---- position: checks that also work for a file of scores ---- */

/* The number of events in which a column alone has the highest score. */
static int count_first(const audit *a, int64_t column) {
    int first = 0;
    for (int k = 0; k < a->events; k++) {
        const float *s = a->base + k * a->row;
        bool alone = true;
        for (int64_t c = 0; c < a->row && alone; c++) alone = c == column || s[c] < s[column];
        first += alone;
    }
    return first;
}

static bool is_most_popular(const fr_window *w, int32_t destination) {
    int32_t own = window_destination_history(w, destination, w->train, INT32_MAX).count;
    for (int32_t v = 0; v < w->destinations; v++)
        if (window_destination_history(w, v, w->train, INT32_MAX).count > own) return false;
    return true;
}

/* Positives in the first or the last column, as other layouts have them. */
static fr_status check_column(audit *a, int64_t column, fr_error *err) {
    int32_t v = audit_destination(a, column);
    int positive = 0, first = count_first(a, column);
    for (int k = 0; k < a->events; k++) positive += a->w->destination[a->event[k]] == v;
    if (a->events < 20 || first * 10 < a->events * 9 || positive * 20 >= a->events ||
        is_most_popular(a->w, v))
        return FR_OK;
    extra_finding f = {
        .event = -1, .candidate = a->w->destination_id[v], .score = NAN, .changed = NAN};
    (void)snprintf(f.what, sizeof f.what,
                   "the %s column is first in %d of %d events, but the positive of %d: was the "
                   "positive written there?",
                   column ? "last" : "first", first, a->events, positive);
    return audit_add(a, FR_AUDIT_POSITION, FR_SEVERITY_LEAK, f, err);
}

/* Positives whose source has never met them, all of them alone in first place. */
static fr_status check_label(audit *a, fr_error *err) {
    int fresh = 0, first = 0;
    for (int k = 0; k < a->events; k++) {
        int32_t i = a->event[k], v = a->w->destination[i];
        const float *s = a->base + k * a->row;
        int64_t column = audit_column(a, v);
        if (window_pair_history(a->w, a->w->source[i], v, window_cut(a->w, i)).count) continue;
        bool alone = true;
        for (int64_t c = 0; c < a->row && alone; c++) alone = c == column || s[c] < s[column];
        fresh++;
        first += alone;
    }
    if (fresh < 20 || a->w->catalog_size < 10 || first * 100 < fresh * 99) return FR_OK;
    extra_finding f = {.event = -1, .candidate = -1, .score = NAN, .changed = NAN};
    (void)snprintf(f.what, sizeof f.what,
                   "the positive is alone in first place in %d of %d events whose pair is new: was "
                   "the label copied?",
                   first, fresh);
    return audit_add(a, FR_AUDIT_POSITION, FR_SEVERITY_LEAK, f, err);
}

fr_status audit_position(audit *a, fr_error *err) {
    tally *t = &a->tally[FR_AUDIT_POSITION];
    if (!a->fixed) {
        TRY(check_chance(a, err));
        return check_ids(a, err);
    }
    t->events = a->events;
    t->scores = a->events * a->row;
    text_put(&t->note, "of a file: positives in one column, copies of the label");
    TRY(check_column(a, 0, err));
    if (a->row > 1) TRY(check_column(a, a->row - 1, err));
    return check_label(a, err);
}
