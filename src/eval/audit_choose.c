/* audit_choose.c - chooses the events to audit (audit.h).
 *
 * The ranked part is cut into as many stretches as there are changed streams; in each, one event is
 * drawn, and the stream will be changed there. The ranked events before it are audited too, because
 * the change is in their future. If the order hides events of the same time (or batch) from each
 * other, every second stretch chooses an event with a hidden one before it, if there is one.
 */
#include "base/context.h"
#include "eval/audit.h"

#include <stdlib.h>
#include <string.h>

typedef struct covered {
    int32_t *event;
    int32_t count;
} covered;

static fr_status list_covered(const audit *a, covered *out, fr_error *err) {
    const fr_window *w = a->w;
    out->count = 0;
    TRY(ALLOCATE(out->event, w->to - w->from, err));
    for (int32_t i = w->from; i < w->to; i++)
        if (window_covered(w, i)) out->event[out->count++] = i;
    if (out->count) return FR_OK;
    return fail(err, FR_EINPUT,
                "no ranked event has its destination in the catalog: there is "
                "nothing to audit");
}

/* True if a ranked event before this one is not in its past. */
static bool has_company(const fr_window *w, int32_t event) {
    int32_t cut = window_cut(w, event);
    return (cut > w->from ? cut : w->from) < event;
}

static int32_t draw_place(const audit *a, const covered *c, int32_t from, int32_t to, int stretch) {
    rng_key key = {.seed = (uint64_t)a->seed, .purpose = RNG_AUDIT, .epoch = 100};
    int32_t count = to - from;
    int32_t drawn = (int32_t)rng_below(key, (uint64_t)stretch, 0, (uint32_t)count);
    if (a->w->order == FR_ORDER_STREAM || stretch % 2) return from + drawn;
    for (int32_t k = 0; k < count; k++) {
        int32_t place = from + (drawn + k) % count;
        if (has_company(a->w, c->event[place])) return place;
    }
    return from + drawn;
}

static fr_status choose_stretches(audit *a, const covered *c, int32_t wanted, fr_error *err) {
    int32_t groups = (int32_t)a->settings.streams;
    if (wanted > c->count) wanted = c->count;
    if (groups > wanted) groups = wanted;
    int32_t size = (wanted + groups - 1) / groups;
    TRY(ALLOCATE(a->event, wanted + size, err));
    TRY(ALLOCATE(a->groups, groups, err));
    int32_t next = 0; /* first that is free */
    for (int32_t g = 0; g < groups; g++) {
        int32_t from = (int32_t)((int64_t)c->count * g / groups);
        int32_t to = (int32_t)((int64_t)c->count * (g + 1) / groups);
        int32_t least = from + size - 1 < to ? from + size - 1 : to - 1;
        int32_t at = draw_place(a, c, least, to, g), first = at - size + 1;
        if (first < next) first = next;
        if (a->events + at - first + 1 > wanted) first = at - (wanted - a->events) + 1;
        if (first > at) continue;
        a->groups[a->group_count++] = (group){a->events, at - first + 1};
        for (int32_t k = first; k <= at; k++) a->event[a->events++] = c->event[k];
        next = at + 1;
    }
    return FR_OK;
}

static int by_number(const void *x, const void *y) {
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* "5,9,12": rows of the stream, each a group of its own. */
static fr_status choose_rows(audit *a, const char *rows, fr_error *err) {
    const fr_window *w = a->w;
    size_t most = strlen(rows) + 1;
    TRY(ALLOCATE(a->event, most, err));
    TRY(ALLOCATE(a->groups, most, err));
    for (const char *p = rows;; p++) {
        char *end;
        long long row = strtoll(p, &end, 10);
        if (end == p || (*end && *end != ',') || row < 0)
            return fail(err, FR_EUSAGE,
                        "option events: found \"row:%s\", expected rows of the stream, such as "
                        "row:5,9",
                        rows);
        if (row < w->first + w->from || row >= w->first + w->to ||
            !window_covered(w, (int32_t)(row - w->first)))
            return fail(err, FR_EUSAGE,
                        "option events: row %lld is not a ranked event, which are the rows %lld to "
                        "%lld whose destination is in the catalog",
                        row, (long long)(w->first + w->from), (long long)(w->first + w->to - 1));
        a->event[a->events++] = (int32_t)(row - w->first);
        p = end;
        if (!*p) break;
    }
    qsort(a->event, (size_t)a->events, sizeof *a->event, by_number);
    int count = 0;
    for (int k = 0; k < a->events; k++)
        if (!k || a->event[k] != a->event[count - 1]) a->event[count++] = a->event[k];
    a->events = count;
    for (int k = 0; k < count; k++) a->groups[a->group_count++] = (group){k, 1};
    a->given = true;
    return FR_OK;
}

/* Scores of all audited events are kept, so there are no more events than fit in memory. */
enum { MOST_BYTES = 256 << 20 };

fr_status audit_choose(audit *a, fr_error *err) {
    const char *text = a->settings.events ? a->settings.events : "200";
    char *end;
    if (!strncmp(text, "row:", 4)) return choose_rows(a, text + 4, err);
    long long wanted = strtoll(text, &end, 10);
    if (end == text || *end || wanted < 1 || wanted > 1000000)
        return fail(err, FR_EUSAGE,
                    "option events: found \"%s\", expected a number from 1 to 1000000 or row:LIST",
                    text);
    int64_t fit = MOST_BYTES / ((int64_t)sizeof *a->base * a->w->destinations);
    if (wanted > fit) {
        wanted = fit > 8 ? fit : 8;
        context_log(&a->context, FR_NOTICE, "%lld events are audited: %d candidates each", wanted,
                    a->w->destinations);
    }
    covered c = {0};
    fr_status status = list_covered(a, &c, err);
    if (!status) status = choose_stretches(a, &c, (int32_t)wanted, err);
    free(c.event);
    return status;
}
