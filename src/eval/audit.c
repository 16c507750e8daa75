/* audit.c - see audit.h and fullrank.h, chapter 17: a whole audit and its result. */
#include "eval/audit.h"

#include "base/context.h"
#include "base/json.h"
#include "base/number.h"
#include "base/options.h"
#include "rank/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_definition fr_audit_checks[FR_AUDIT_CHECKS] = {
    {"future", 0, "sees the future",
     "The event's own destination and features and all later events are redrawn, put in "
     "random order or removed. Scores keep their bits."},
    {"same-time", 0, "sees events of its time",
     "With order strict, earlier events of the same time are redrawn; with order batch, "
     "those of its batch. Scores keep their bits."},
    {"batch", 0, "depends on its batch",
     "An event gets the same scores alone, in batches of 7 and 200, with other events, "
     "and from another worker."},
    {"candidates", 0, "depends on other candidates",
     "Each candidate keeps its score with half of the catalog, and with more candidates."},
    {"state", 0, "is changed by scoring",
     "An event gets the same scores again, twice in a row, and after other events. This "
     "check always comes first: if a scorer fails it, the cause of other differences is "
     "unknown."},
    {"position", 0, "knows the place of the positive",
     "Destinations drawn at random are ranked at chance level. If destinations exchange "
     "their ids, scores move with them, or at least do not follow the order of ids."},
    {"numbers", 0, "has bad numbers",
     "No score is NaN or infinite, and none is saturated by a sigmoid. Ties and rows "
     "with only one score are counted."}};

const char *const fr_severity_names[FR_SEVERITIES] = {"leak", "batch dependence", "nondeterminism",
                                                      "numeric"};

const fr_option fr_audit_options[FR_OPTIONS_MAX] = {
    {"checks", FR_OPTION_TEXT, "all", "LIST", 0, 0, offsetof(fr_audit_settings, checks),
     "future, same-time, batch, candidates, state, position, numbers, separated by commas"},
    {"events", FR_OPTION_TEXT, "200", "N|row:LIST", 0, 0, offsetof(fr_audit_settings, events),
     "number of ranked events to audit, or their rows in the stream"},
    {"streams", FR_OPTION_INT, "50", "N", 1, 1000000, offsetof(fr_audit_settings, streams),
     "number of changed streams in the checks future and same-time; the events are "
     "distributed over them"},
    {"tolerance", FR_OPTION_REAL, "1e-5", "X", 0, 1, offsetof(fr_audit_settings, tolerance),
     "differences that rounding may cause in the checks batch and candidates and "
     "between equal runs, relative to the event's largest score"},
    OPTIONS_END(fr_audit_settings)};

struct fr_audit {
    fr_audit_facts facts;
    fr_audit_check check[FR_AUDIT_CHECKS];
    ARRAY(fr_audit_finding) finding; /* texts: owned */
    char *scorer, *data, *protocol, *badge, *json;
    char *note[FR_AUDIT_CHECKS];
    json_t *protocol_json;
};

/* ---- what checks use ---- */

static fr_status open_scorer(const audit *a, const fr_window *w, fr_scorer **out, fr_error *err) {
    fr_context quiet = a->context;
    if (w != a->w || a->streams) quiet.log = NULL; /* messages would repeat */
    quiet.progress = NULL;
    if (!a->open) return fr_scorer_open(a->spec, w, a->seed, &quiet, out, err);
    *out = NULL;
    TRY(a->open(a->user, w, &quiet, out, err));
    if (!*out || (*out)->window != w)
        return fail(err, FR_EUSAGE, "%s: the factory gave no scorer of the window it was asked for",
                    a->spec);
    return FR_OK;
}

fr_status audit_open_scorer(audit *a, const fr_window *w, fr_scorer **out, fr_error *err) {
    *out = NULL;
    TRY(context_check(&a->context, err));
    context_progress(&a->context, "audit", (uint64_t)a->streams, 0, "streams");
    fr_status status = open_scorer(a, w, out, err);
    bool first = !a->streams++;
    if (status || first) return status;
    const fr_scorer_definition *is = &(*out)->is;
    if ((is->observe != NULL) == a->remembers && is->catalog_only == a->catalog_only) return FR_OK;
    fr_scorer_close(*out);
    *out = NULL;
    return fail(err, FR_EINPUT, "%s: another kind of scorer when it was opened again", a->spec);
}

fr_status audit_score(fr_scorer *scorer, int32_t event, int worker, float *out, fr_error *err) {
    const fr_window *w = scorer->window;
    fr_query query = {event, w->source[event], window_time(w, event)};
    memset(out, 0xff, (size_t)scorer->row * sizeof *out);
    TRY(fr_scorer_observe(scorer, window_cut(w, event), err));
    return fr_scorer_score(scorer, &query, 1, worker, out, err);
}

int32_t audit_destination(const audit *a, int64_t column) {
    return a->catalog_only ? a->w->catalog[column] : (int32_t)column;
}

int32_t audit_column(const audit *a, int32_t destination) {
    return a->catalog_only ? a->w->catalog_place[destination] : destination;
}

double audit_tolerance(const audit *a, int check) {
    bool rounds = a->noise > 0 || check == FR_AUDIT_BATCH || check == FR_AUDIT_CANDIDATES;
    return rounds ? fmax(a->settings.tolerance, 4 * a->noise) : 0;
}

fr_status audit_add(audit *a, int check, int severity, extra_finding found, fr_error *err) {
    found.check = check;
    found.severity = severity;
    ARRAY_PUSH(&a->extra, found, err);
    return FR_OK;
}

/* Reciprocal rank of the event's destination among the candidates that have a place; NaN if it has
 * none itself. */
static double reciprocal(const audit *a, int32_t event, const float *scores, const int32_t *place) {
    const fr_window *w = a->w;
    int64_t own = audit_column(a, w->destination[event]), above = 0, tied = 0;
    if (place && place[own] < 0) return NAN;
    for (int64_t c = 0; c < a->row; c++) {
        if (c == own || (place && place[c] < 0)) continue;
        if (!window_ranked(w, event, audit_destination(a, c))) continue;
        above += scores[c] > scores[own];
        tied += scores[c] == scores[own];
    }
    return 1 / (1 + (double)above + (double)tied / 2);
}

void audit_compare(audit *a, int check, int k, const float *found, const int32_t *place,
                   difference d) {
    tally *t = &a->tally[check];
    const float *base = a->base + k * a->row;
    difference *worst = &t->worst[k];
    t->events++;
    for (int64_t c = 0; c < a->row; c++) {
        int64_t at = place ? place[c] : c;
        float y = at < 0 ? base[c] : found[at];
        a->mapped[c] = y;
        t->scores += at >= 0;
        if (base[c] == y || (isnan(base[c]) && isnan(y))) continue;
        double size = fabs((double)base[c] - (double)y) / fmax(a->scale[k], fabs((double)y));
        if (!isfinite(size)) size = INFINITY;
        if (size <= worst->size) continue;
        *worst = (difference){size, c, base[c], y, d.what, d.from, d.until};
    }
    /* The effect of a leak; for another future, over the events that were changed themselves. */
    bool counts = check != FR_AUDIT_FUTURE || d.from == a->event[k];
    double rr = counts ? reciprocal(a, a->event[k], base, place) : NAN;
    if (isnan(rr)) return;
    t->ranked++;
    t->rr += rr;
    t->changed_rr += reciprocal(a, a->event[k], a->mapped, place);
}

/* ---- running ---- */

static const char *check_at(const void *list, int index) {
    (void)list;
    return index < FR_AUDIT_CHECKS ? fr_audit_checks[index].name : NULL;
}

static fr_status read_checks(audit *a, const char *text, fr_error *err) {
    bool all = !text || !strcmp(text, "all");
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) a->wanted[k] = all;
    while (!all && text && *text) {
        char name[32];
        size_t length = strcspn(text, ",");
        int k = 0;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
        while (k < FR_AUDIT_CHECKS && strcmp(fr_audit_checks[k].name, name)) k++;
        if (k == FR_AUDIT_CHECKS)
            return text_unknown("check", name, check_at, NULL, "`fullrank audit --help`", err);
        a->wanted[k] = true;
        text += length + (text[length] == ',');
    }
    return FR_OK;
}

static fr_status take_facts(audit *a, const fr_scorer *scorer, fr_error *err) {
    const fr_scorer_definition *is = &scorer->is;
    a->remembers = is->observe != NULL;
    a->catalog_only = is->catalog_only;
    a->many = is->many;
    a->workers = is->workers;
    a->row = scorer->row;
    size_t row = (size_t)a->row;
    TRY(ALLOCATE(a->base, (size_t)a->events * row, err));
    TRY(ALLOCATE(a->scale, a->events, err));
    TRY(ALLOCATE(a->other, row + AUDIT_MORE, err));
    TRY(ALLOCATE(a->mapped, row + AUDIT_MORE, err));
    for (int k = 0; k < AUDIT_TALLIES; k++) TRY(ALLOCATE(a->tally[k].worst, a->events, err));
    return FR_OK;
}

/* Scores every event once. All checks compare with these scores. */
static fr_status score_base(audit *a, fr_error *err) {
    fr_scorer *scorer = NULL;
    fr_status status = audit_open_scorer(a, a->w, &scorer, err);
    if (!status) status = take_facts(a, scorer, err);
    for (int k = 0; !status && k < a->events; k++) {
        float *row = a->base + k * a->row;
        status = audit_score(scorer, a->event[k], 0, row, err);
        for (int64_t c = 0; !status && c < a->row; c++)
            if (isfinite(row[c])) a->scale[k] = fmax(a->scale[k], fabs((double)row[c]));
    }
    fr_scorer_close(scorer);
    return status;
}

/* Scores all events again with a scorer that was opened again. Differences are noise. */
static fr_status measure_noise(audit *a, fr_error *err) {
    fr_scorer *scorer = NULL;
    fr_status status = audit_open_scorer(a, a->w, &scorer, err);
    for (int k = 0; !status && k < a->events; k++) {
        status = audit_score(scorer, a->event[k], 0, a->other, err);
        if (!status)
            audit_compare(a, AUDIT_NOISE, k, a->other, NULL,
                          (difference){.what = "the same again", .from = -1});
    }
    fr_scorer_close(scorer);
    for (int k = 0; k < a->events; k++)
        a->noise = fmax(a->noise, a->tally[AUDIT_NOISE].worst[k].size);
    return status;
}

/* True if repeated calls on the same window give different scores. */
static bool is_unsteady(const audit *a) {
    double tolerance = audit_tolerance(a, FR_AUDIT_STATE);
    bool found = a->noise > a->settings.tolerance;
    for (int k = 0; k < a->events; k++) found |= a->tally[FR_AUDIT_STATE].worst[k].size > tolerance;
    return found;
}

/* Why a check is left out; NULL = it is made. */
static const char *why_not(const audit *a, int check, bool unsteady) {
    bool looks = check == FR_AUDIT_POSITION || check == FR_AUDIT_NUMBERS;
    if (check == FR_AUDIT_STATE && !a->fixed) return NULL;
    if (!a->wanted[check]) return "not requested";
    if (a->fixed && !looks) return "scores of a file cannot change";
    if (unsteady && !looks) return "not possible while the same call gives other scores: see state";
    return NULL;
}

/* State always comes first: if it fails, the cause of other differences is unknown. */
static fr_status run_checks(audit *a, fr_error *err) {
    static const int order[FR_AUDIT_CHECKS] = {
        FR_AUDIT_STATE,      FR_AUDIT_FUTURE,   FR_AUDIT_SAME_TIME, FR_AUDIT_BATCH,
        FR_AUDIT_CANDIDATES, FR_AUDIT_POSITION, FR_AUDIT_NUMBERS};
    bool unsteady = false;
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) {
        int check = order[k];
        tally *t = &a->tally[check];
        const char *reason = why_not(a, check, unsteady);
        if (reason) text_put(&t->note, reason);
        if (reason) continue;
        t->tested = true;
        TRY(audit_functions[check](a, err));
        if (check == FR_AUDIT_STATE) unsteady = is_unsteady(a);
    }
    return FR_OK;
}

/* ---- results ---- */

enum { FINDINGS = 3 }; /* of a check */

static void describe(const audit *a, int check, int k, char *out, size_t size) {
    const difference *d = &a->tally[check].worst[k];
    long long from = (long long)(a->w->first + d->from);
    if (check == FR_AUDIT_FUTURE && a->event[k] == d->from)
        (void)snprintf(out, size, "its destination and features redrawn, all later events %s",
                       d->what);
    else if (check == FR_AUDIT_FUTURE)
        (void)snprintf(out, size, "the events from row %lld on %s", from, d->what);
    else if (check == FR_AUDIT_SAME_TIME)
        (void)snprintf(out, size, "the rows %lld to %lld before it, of its %s, %s", from,
                       (long long)(a->w->first + d->until - 1),
                       a->w->order == FR_ORDER_BATCH ? "batch" : "time", d->what);
    else
        (void)snprintf(out, size, "%s", d->what);
}

static fr_status add_finding(const audit *a, fr_audit *out, const extra_finding *f, fr_error *err) {
    char reproduce[128];
    int length = snprintf(reproduce, sizeof reproduce, "checks=%s", fr_audit_checks[f->check].name);
    if (f->event >= 0)
        length += snprintf(reproduce + length, sizeof reproduce - (size_t)length,
                           ",events=row:%lld", (long long)f->event);
    (void)snprintf(reproduce + length, sizeof reproduce - (size_t)length, ",seed=%lld",
                   (long long)a->seed);
    fr_audit_finding to = {f->check, f->severity, f->event,        f->candidate,
                           f->score, f->changed,  strdup(f->what), strdup(reproduce)};
    fr_status status =
        to.what && to.reproduce ? ARRAY_RESERVE(&out->finding, 1, err) : fail_memory(err, 0);
    if (status) {
        free((void *)(uintptr_t)to.what);
        free((void *)(uintptr_t)to.reproduce);
        return status;
    }
    out->finding.at[out->finding.count++] = to;
    return FR_OK;
}

/* The events with the largest differences of a tally become findings of a check. */
static fr_status add_differences(const audit *a, fr_audit *out, int tally_of, int check,
                                 int severity, double tolerance, fr_error *err) {
    const tally *t = &a->tally[tally_of];
    double below = INFINITY;
    int below_event = -1, left = FINDINGS;
    while (left--) {
        int best = -1;
        for (int k = 0; k < a->events; k++) {
            double size = t->worst[k].size;
            bool next = size < below || (size == below && k > below_event);
            if (size > tolerance && next && (best < 0 || size > t->worst[best].size)) best = k;
        }
        if (best < 0) break;
        const difference *d = &t->worst[best];
        below = d->size;
        below_event = best;
        extra_finding f = {.check = check,
                           .severity = severity,
                           .event = a->w->first + a->event[best],
                           .candidate = a->w->destination_id[audit_destination(a, d->column)],
                           .score = (double)d->score,
                           .changed = (double)d->changed};
        describe(a, tally_of, best, f.what, sizeof f.what);
        TRY(add_finding(a, out, &f, err));
    }
    return FR_OK;
}

static int severity_of(int check) {
    bool company =
        check == FR_AUDIT_BATCH || check == FR_AUDIT_CANDIDATES || check == FR_AUDIT_STATE;
    return company ? FR_SEVERITY_BATCH : FR_SEVERITY_LEAK;
}

static fr_status judge(audit *a, int check, fr_audit *out, fr_error *err) {
    tally *t = &a->tally[check];
    double tolerance = audit_tolerance(a, check), largest = 0;
    fr_audit_check *to = &out->check[check];
    *to = (fr_audit_check){.tested = t->tested,
                           .events = t->events,
                           .scores = t->scores,
                           .tolerance = tolerance,
                           .mrr = t->ranked ? t->rr / (double)t->ranked : NAN,
                           .changed_mrr = t->ranked ? t->changed_rr / (double)t->ranked : NAN};
    if (t->tested) {
        for (int k = 0; k < a->events; k++) {
            to->found += t->worst[k].size > tolerance;
            largest = fmax(largest, t->worst[k].size);
        }
        TRY(add_differences(a, out, check, check, severity_of(check), tolerance, err));
        if (check == FR_AUDIT_STATE && a->noise > a->settings.tolerance) {
            for (int k = 0; k < a->events; k++)
                to->found += a->tally[AUDIT_NOISE].worst[k].size > a->settings.tolerance;
            TRY(add_differences(a, out, AUDIT_NOISE, check, FR_SEVERITY_NOISE,
                                a->settings.tolerance, err));
        }
    }
    to->largest = largest;
    for (size_t k = 0; k < a->extra.count; k++) {
        if (a->extra.at[k].check != check) continue;
        to->found++;
        TRY(add_finding(a, out, &a->extra.at[k], err));
    }
    TRY(text_status(&t->note, err));
    out->note[check] = t->note.at ? t->note.at : strdup("");
    t->note = (text_buffer){0};
    to->note = out->note[check];
    return to->note ? FR_OK : fail_memory(err, 0);
}

static fr_status write_badge(const audit *a, fr_audit *out, fr_error *err) {
    text_buffer badge = {0};
    int tested = 0;
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) tested += out->check[k].tested;
    text_print(&badge, "audited by fullrank %s: %d checks, %d events, ", fr_version_get().version,
               tested, a->events);
    if (out->finding.count)
        text_print(&badge, "%zu findings", out->finding.count);
    else
        text_put(&badge, "nothing found");
    text_print(&badge, ", protocol %s", out->protocol);
    TRY(text_status(&badge, err));
    out->badge = badge.at;
    return FR_OK;
}

static fr_status finish(audit *a, fr_audit *out, fr_error *err) {
    fr_protocol_facts protocol = protocol_of_window(a->w, 1, 0);
    out->scorer = strdup(a->spec);
    out->data = strdup(a->w->stream->name);
    out->protocol = protocol_text(&protocol);
    out->protocol_json = protocol_json(&protocol);
    if (!out->scorer || !out->data || !out->protocol || !out->protocol_json)
        return fail_memory(err, 0);
    for (int check = 0; check < FR_AUDIT_CHECKS; check++) TRY(judge(a, check, out, err));
    TRY(write_badge(a, out, err));
    out->facts = (fr_audit_facts){.scorer = out->scorer,
                                  .data = out->data,
                                  .protocol_text = out->protocol,
                                  .badge = out->badge,
                                  .events = a->events,
                                  .streams = a->streams,
                                  .seed = a->seed,
                                  .noise = a->noise,
                                  .check = out->check,
                                  .finding = out->finding.at,
                                  .findings = (int)out->finding.count};
    return FR_OK;
}

static void free_audit(audit *a) {
    for (int k = 0; k < AUDIT_TALLIES; k++) {
        free(a->tally[k].worst);
        text_free(&a->tally[k].note);
    }
    free(a->event);
    free(a->groups);
    free(a->base);
    free(a->scale);
    free(a->other);
    free(a->mapped);
    free(a->extra.at);
}

fr_status fr_audit_run(const fr_window *window, const char *spec, fr_scorer_factory *open,
                       void *user, const fr_audit_settings *settings, int64_t seed,
                       const fr_context *context, fr_audit **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(window, err);
    NEED(spec, err);
    audit a = {.w = window, .spec = spec, .open = open, .user = user, .seed = seed};
    if (context) a.context = *context;
    TRY(options_settle(fr_audit_options, settings, &a.settings, sizeof a.settings, err));
    TRY(read_checks(&a, a.settings.checks, err));
    a.fixed = !open && !strncmp(spec, "scores:", 7);
    if (a.fixed && !strcmp(spec, "scores:-"))
        return fail(err, FR_EUSAGE, "scores:-: standard input is read once, expected a file");
    fr_audit *own;
    TRY(ALLOCATE(own, 1, err));
    fr_status status = audit_choose(&a, err);
    if (!status) status = score_base(&a, err);
    if (!status && !a.fixed) status = measure_noise(&a, err);
    if (!status) status = run_checks(&a, err);
    if (!status) status = finish(&a, own, err);
    free_audit(&a);
    if (status)
        fr_audit_close(own);
    else
        *out = own;
    return status;
}

void fr_audit_close(fr_audit *a) {
    if (!a) return;
    for (size_t k = 0; k < a->finding.count; k++) {
        free((void *)(uintptr_t)a->finding.at[k].what);
        free((void *)(uintptr_t)a->finding.at[k].reproduce);
    }
    free(a->finding.at);
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) free(a->note[k]);
    free(a->scorer);
    free(a->data);
    free(a->protocol);
    free(a->badge);
    free(a->json);
    json_decref(a->protocol_json);
    free(a);
}

fr_audit_facts fr_audit_get(const fr_audit *a) { return a ? a->facts : (fr_audit_facts){0}; }

/* ---- JSON ---- */

static json_t *real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static const char *verdict_of(const fr_audit_check *c) {
    return !c->tested ? "not tested" : c->found ? "found" : "pass";
}

static json_t *checks_json(const fr_audit *a) {
    json_t *list = json_array();
    for (int k = 0; k < FR_AUDIT_CHECKS; k++) {
        const fr_audit_check *c = &a->check[k];
        json_push(&list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "check",
                                   fr_audit_checks[k].name, "verdict", verdict_of(c), "events",
                                   (json_int_t)c->events, "scores", (json_int_t)c->scores, "found",
                                   (json_int_t)c->found, "largest", real(c->largest), "tolerance",
                                   real(c->tolerance), "mrr", real(c->mrr), "changed_mrr",
                                   real(c->changed_mrr), "note", json_text(c->note)));
    }
    return list;
}

static json_t *findings_json(const fr_audit *a) {
    json_t *list = json_array();
    for (size_t k = 0; k < a->finding.count; k++) {
        const fr_audit_finding *f = &a->finding.at[k];
        json_push(&list,
                  json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "check",
                            fr_audit_checks[f->check].name, "severity",
                            fr_severity_names[f->severity], "event",
                            f->event < 0 ? json_null() : json_integer((json_int_t)f->event),
                            "candidate",
                            f->candidate < 0 ? json_null() : json_integer((json_int_t)f->candidate),
                            "score", real(f->score), "changed", real(f->changed), "what",
                            json_text(f->what), "reproduce", json_text(f->reproduce)));
    }
    return list;
}

fr_status fr_audit_text(fr_audit *a, const char **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(a, err);
    if (!a->json) {
        const fr_audit_facts *f = &a->facts;
        fr_version v = fr_version_get();
        json_t *root = json_pack(
            "{s:s, s:i, s:o, s:o, s:O, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:{s:s, s:s}}",
            "format", "fullrank-audit", "version", 1, "scorer", json_text(f->scorer), "data",
            json_text(f->data), "protocol", a->protocol_json, "verdict",
            f->findings ? "found" : "pass", "events", (json_int_t)f->events, "streams",
            (json_int_t)f->streams, "seed", (json_int_t)f->seed, "noise", real(f->noise), "checks",
            checks_json(a), "findings", findings_json(a), "badge", json_text(f->badge), "tool",
            "version", v.version, "commit", v.commit);
        a->json = root ? json_print(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
        json_decref(root);
    }
    if (!a->json) return fail_memory(err, 0);
    *out = a->json;
    return FR_OK;
}
