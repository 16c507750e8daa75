/* scorer.c - see scorer.h. */
#include "rank/scorer.h"

#include "rank/factors.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

fr_status scorer_take(const fr_scorer_definition *from, fr_scorer_definition *to, fr_error *err) {
    enum { FIRST_RELEASE = offsetof(fr_scorer_definition, level) }; /* it ended there */
    if (from->size < FIRST_RELEASE)
        return fail(err, FR_EUSAGE, "the definition of a scorer has size %zu, expected %zu",
                    from->size, sizeof *from);
    const char *bytes = (const char *)from;
    for (size_t k = sizeof *to; k < from->size; k++)
        if (bytes[k])
            return fail(err, FR_EUSAGE,
                        "the definition of a scorer uses fields of a later release of the library");
    size_t size = from->size < sizeof *to ? from->size : sizeof *to;
    *to = (fr_scorer_definition){0};
    memcpy(to, from, size);
    to->size = sizeof *to;
    return FR_OK;
}

fr_status scorer_check_name(const char *name, fr_error *err) {
    if (strlen(name) < FR_NAME_MAX) return FR_OK;
    return fail(err, FR_EUSAGE, "a scorer of %zu bytes, expected a name of at most %d",
                strlen(name), FR_NAME_MAX - 1);
}

static fr_status check_definition(const fr_window *w, const fr_scorer_definition *d,
                                  fr_error *err) {
    if (!d->name || !*d->name) return fail(err, FR_EUSAGE, "a scorer without a name");
    TRY(scorer_check_name(d->name, err));
    if (!d->score && !d->part)
        return fail(err, FR_EUSAGE, "%s: score and part are NULL, expected one of them", d->name);
    if (d->workers < 0)
        return fail(err, FR_EUSAGE, "%s: %d workers, expected 0 (one) or more", d->name,
                    d->workers);
    if (d->many < 0)
        return fail(err, FR_EUSAGE, "%s: many is %d, expected 0 (one event at a time) or more",
                    d->name, d->many);
    if (d->observe && d->workers > 1)
        return fail(err, FR_EUSAGE, "%s: %d workers, but it observes events: expected 1", d->name,
                    d->workers);
    if (d->observe && d->many > 1)
        return fail(err, FR_EUSAGE, "%s: %d events at once, but it observes events: expected 1",
                    d->name, d->many);
    if (d->tile < 0)
        return fail(err, FR_EUSAGE, "%s: tile is %d, expected 0 (few) or more", d->name, d->tile);
    if (d->observe && d->part)
        return fail(err, FR_EUSAGE, "%s: it gives parts, but observes events: expected one of them",
                    d->name);
    if (d->start < 0 || d->start > w->from)
        return fail(err, FR_EUSAGE, "%s: start is %d, expected 0 to %d, the first ranked event",
                    d->name, d->start, w->from);
    if (d->stand && d->catalog_only)
        return fail(err, FR_EUSAGE,
                    "%s: it knows the catalog only, but has levels of all candidates", d->name);
    if (d->catalog_only && w->catalog_kind == CATALOG_TIME)
        return fail(err, FR_EINPUT, "%s scores a fixed catalog only, not the time-available one",
                    d->name);
    return FR_OK;
}

static fr_status own_text(const char **text, fr_error *err) {
    const char *from = *text ? *text : "";
    *text = strdup(from);
    return *text ? FR_OK : fail_memory(err, strlen(from));
}

static void free_scorer(fr_scorer *s) {
    const char *texts[] = {s->is.name, s->is.model, s->is.objective, s->is.sha256, s->is.settings};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) free((void *)(uintptr_t)texts[k]);
    free(s);
}

fr_status fr_scorer_make(const fr_window *window, const fr_scorer_definition *definition,
                         fr_scorer **out, fr_error *err) {
    fr_scorer_definition is;
    fr_scorer *s;
    NEED(out, err);
    *out = NULL;
    NEED(window, err);
    NEED(definition, err);
    TRY(scorer_take(definition, &is, err));
    TRY(check_definition(window, &is, err));
    TRY(ALLOCATE(s, 1, err));
    s->window = window;
    const char **texts[] = {&is.name, &is.model, &is.objective, &is.sha256, &is.settings};
    fr_status status = FR_OK;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (status)
            *texts[k] = NULL;
        else
            status = own_text(texts[k], err);
    if (!is.workers) is.workers = 1;
    if (!is.many) is.many = 1;
    s->is = is;
    s->row = is.catalog_only ? window->catalog_size : window->destinations;
    s->observed = is.observe ? is.start : 0;
    s->pieces = factors_pieces(&is);
    if (status)
        free_scorer(s);
    else
        *out = s;
    return status;
}

static fr_status never_asked(void *state, const fr_query *queries, int count, int worker,
                             float *scores, fr_error *err) {
    (void)state, (void)queries, (void)count, (void)worker, (void)scores;
    return fail(err, FR_EUSAGE, "its scores are handed in");
}

fr_status scorer_check_described(const fr_scorer_definition *is, fr_error *err) {
    if (is->score || is->part || is->observe || is->state || is->close || is->fingerprint ||
        is->stand)
        return fail(err, FR_EUSAGE,
                    "found functions or a state, expected a description: the "
                    "results are handed in");
    return FR_OK;
}

fr_status scorer_describe(const fr_window *w, const fr_scorer_definition *about, fr_scorer **out,
                          fr_error *err) {
    fr_scorer_definition is = *about;
    TRY(scorer_check_described(&is, err));
    is.score = never_asked;
    return fr_scorer_make(w, &is, out, err);
}

void fr_scorer_close(fr_scorer *scorer) {
    if (!scorer) return;
    if (scorer->is.close && scorer->is.state) scorer->is.close(scorer->is.state);
    free_scorer(scorer);
}

/* ---- using ---- */

fr_scorer_facts fr_scorer_get(const fr_scorer *scorer) {
    if (!scorer) return (fr_scorer_facts){0};
    const fr_scorer_definition *is = &scorer->is;
    return (fr_scorer_facts){.name = is->name,
                             .model = is->model,
                             .objective = is->objective,
                             .sha256 = is->sha256,
                             .settings = is->settings,
                             .seed = is->seed,
                             .epochs_done = is->epochs_done,
                             .epochs_asked = is->epochs_asked,
                             .selected = is->selected,
                             .row = scorer->row,
                             .workers = is->workers,
                             .many = is->many,
                             .remembers = is->observe != NULL,
                             .catalog_only = is->catalog_only,
                             .observed = scorer->observed};
}

static fr_status check_query(const fr_scorer *s, const fr_query *query, fr_error *err) {
    const fr_window *w = s->window;
    if (query->event < 0 || query->event >= w->events)
        return fail(err, FR_EUSAGE, "%s: event %d is not in the window, which has %d", s->is.name,
                    query->event, w->events);
    if (query->source < 0 || query->source >= w->sources)
        return fail(err, FR_EUSAGE, "%s: source %d is not in the window, which has %d", s->is.name,
                    query->source, w->sources);
    return FR_OK;
}

fr_status scorer_rows(const fr_scorer *s, const fr_query *queries, int count, int worker,
                      float *scores, fr_error *err) {
    const fr_scorer_definition *is = &s->is;
    if (is->score) return is->score(is->state, queries, count, worker, scores, err);
    return is->part(is->state, queries, count, 0, (int32_t)s->row, worker, scores, err);
}

fr_status fr_scorer_score(const fr_scorer *scorer, const fr_query *queries, int count, int worker,
                          float *scores, fr_error *err) {
    NEED(scorer, err);
    NEED(queries, err);
    NEED(scores, err);
    const fr_scorer_definition *is = &scorer->is;
    if (worker < 0 || worker >= is->workers)
        return fail(err, FR_EUSAGE, "%s: worker %d of a scorer that has %d", is->name, worker,
                    is->workers);
    for (int k = 0; k < count; k++) TRY(check_query(scorer, &queries[k], err));
    for (int k = 0; k < count; k += is->many) {
        int some = count - k < is->many ? count - k : is->many;
        TRY(scorer_rows(scorer, queries + k, some, worker, scores + k * scorer->row, err));
    }
    return FR_OK;
}

fr_status fr_scorer_observe(fr_scorer *scorer, int32_t before, fr_error *err) {
    NEED(scorer, err);
    if (before < 0 || before > scorer->window->events)
        return fail(err, FR_EUSAGE, "%s: event %d is not in the window, which has %d",
                    scorer->is.name, before, scorer->window->events);
    while (scorer->is.observe && scorer->observed < before) {
        fr_event event = fr_window_event(scorer->window, scorer->observed++);
        TRY(scorer->is.observe(scorer->is.state, &event, err));
    }
    return FR_OK;
}
