/* results.c - see results.h; and the state of a study (fullrank.h, chapter 15). */
#define _GNU_SOURCE
#include "study/results.h"

#include "base/json.h"
#include "rank/ranking.h"
#include "study/embedded.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static const char *keep(arena *memory, const unsigned char *text, fr_error *err) {
    char *out;
    if (!text || arena_take(memory, strlen((const char *)text) + 1, 1, (void **)&out, err))
        return NULL;
    return strcpy(out, (const char *)text);
}

static fr_status read_plan(ledger *book, plan *p, fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    fr_status status = ledger_prepare(book, &q, err, "SELECT plan FROM study", "");
    if (!status) status = ledger_next(book, q, &row, err);
    if (!status && !row) status = fail(err, FR_EINPUT, "%s: holds no study", book->path);
    if (!status)
        status = plan_parse(p, (const char *)sqlite3_column_text(q, 0), book->path, ".", err);
    (void)sqlite3_finalize(q);
    return status;
}

static fr_status load_ranking(results *r, result *unit, fr_error *err) {
    void *records = NULL, *about = NULL;
    size_t size, length;
    fr_status status = ledger_get_bytes(&r->book, unit->id, "records", &records, &size, err);
    if (!status) status = ledger_get_bytes(&r->book, unit->id, "about", &about, &length, err);
    json_t *description = !status && about ? json_parse(about, strlen(about), 0, NULL) : NULL;
    if (!status && (!records || !description || size % sizeof(fr_record)))
        status =
            fail(err, FR_EINPUT, "%s: the records of %s cannot be read", r->book.path, unit->key);
    free(about);
    if (status) {
        free(records);
        json_decref(description);
        return status;
    }
    return ranking_adopt(records, (int64_t)(size / sizeof(fr_record)), description, r->book.path,
                         &unit->ranking, err);
}

static fr_status read_runs(results *r, fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = true;
    fr_status status =
        ledger_prepare(&r->book, &q, err,
                       "SELECT id, key, kind, data, model, objective, seed, window FROM run"
                       " WHERE wanted AND status = 'done' ORDER BY place",
                       "");
    while (!status && !(status = ledger_next(&r->book, q, &row, err)) && row) {
        result one = {.id = sqlite3_column_int64(q, 0),
                      .key = keep(&r->memory, sqlite3_column_text(q, 1), err),
                      .data = keep(&r->memory, sqlite3_column_text(q, 3), err),
                      .model = keep(&r->memory, sqlite3_column_text(q, 4), err),
                      .objective = keep(&r->memory, sqlite3_column_text(q, 5), err),
                      .seed = sqlite3_column_int64(q, 6),
                      .diagnostic = !strcmp((const char *)sqlite3_column_text(q, 7), "diagnostic")};
        const char *kind = (const char *)sqlite3_column_text(q, 2);
        while (one.kind < UNIT_KINDS && strcmp(unit_kind_name[one.kind], kind)) one.kind++;
        if (!one.key || !one.data) status = fail_memory(err, 0);
        if (!status && one.kind == UNIT_RANK) status = load_ranking(r, &one, err);
        if (!status) status = ARRAY_RESERVE(&r->list, 1, err);
        if (!status)
            r->list.at[r->list.count++] = one;
        else
            fr_ranking_close(one.ranking);
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* Keeps the paper's numbers if the study follows its protocol. */
static void take_published(results *r) {
    json_t *root = json_parse(embedded_published, strlen(embedded_published), 0, NULL);
    const json_t *settings = json_object_get(root, "settings");
    const fr_protocol *p = &r->plan.protocol;
    bool same = p->window == json_integer_value(json_object_get(settings, "events")) &&
                p->train_share == json_number_value(json_object_get(settings, "train_share")) &&
                r->plan.diagnostic_window ==
                    json_integer_value(json_object_get(settings, "diagnostic_events")) &&
                p->order == FR_ORDER_STREAM && p->oov == FR_OOV_EXCLUDE &&
                !strcmp(p->catalog, "fixed");
    if (same)
        r->published = root;
    else
        json_decref(root);
}

fr_status results_open(results *r, const char *directory, fr_error *err) {
    *r = (results){.book.locks = -1};
    fr_status status = ledger_open(&r->book, directory, true, err);
    if (!status) status = read_plan(&r->book, &r->plan, err);
    if (!status) status = read_runs(r, err);
    if (!status) take_published(r);
    if (status) results_close(r);
    return status;
}

void results_close(results *r) {
    for (size_t i = 0; i < r->list.count; i++) fr_ranking_close(r->list.at[i].ranking);
    free(r->list.at);
    json_decref(r->published);
    plan_free(&r->plan);
    ledger_close(&r->book);
    arena_free(&r->memory);
    *r = (results){.book.locks = -1};
}

/* ---- asking ---- */

static bool fits(const char *wanted, const char *found) {
    return !wanted || (found && !strcmp(wanted, found));
}

int results_next(const results *r, int from, unit_kind kind, const char *data, const char *model,
                 const char *objective) {
    for (size_t i = (size_t)from; i < r->list.count; i++) {
        const result *u = &r->list.at[i];
        if (u->kind == kind && fits(data, u->data) && fits(model, u->model) &&
            fits(objective, u->objective))
            return (int)i;
    }
    return -1;
}

static double one_number(results *r, const char *sql, int64_t id, const char *name,
                         int64_t *events) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    double value = NAN;
    if (events) *events = 0;
    fr_status status = ledger_prepare(&r->book, &q, NULL, sql, "it", id, name);
    if (!status) status = ledger_next(&r->book, q, &row, NULL);
    if (!status && row) {
        value = ledger_real(q, 0);
        if (events) *events = sqlite3_column_int64(q, 1);
    }
    (void)sqlite3_finalize(q);
    return value;
}

double results_metric(results *r, const result *unit, const char *name, int64_t *events) {
    return one_number(r, "SELECT value, events FROM metric WHERE run = ? AND name = ?", unit->id,
                      name, events);
}

double results_seconds(results *r, const result *unit, const char *stage) {
    return one_number(r, "SELECT seconds, 0 FROM timing WHERE run = ? AND stage = ?", unit->id,
                      stage, NULL);
}

const char *results_text(results *r, const result *unit, const char *name) {
    void *bytes = NULL;
    size_t size;
    const char *out = "";
    if (!ledger_get_bytes(&r->book, unit->id, name, &bytes, &size, NULL) && bytes) {
        const char *copy = keep(&r->memory, bytes, NULL);
        if (copy) out = copy;
    }
    free(bytes);
    return out;
}

const char *results_hash(results *r, const result *unit, const char *name) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    const char *out = NULL;
    if (!ledger_prepare(&r->book, &q, NULL,
                        "SELECT sha256 FROM artefact WHERE run = ? AND name = ?", "it", unit->id,
                        name) &&
        !ledger_next(&r->book, q, &row, NULL) && row)
        out = keep(&r->memory, sqlite3_column_text(q, 0), NULL);
    (void)sqlite3_finalize(q);
    return out ? out : "";
}

double published(const results *r, const char *first, ...) {
    const json_t *at = json_object_get(r->published, first);
    va_list args;
    va_start(args, first);
    for (const char *key; (key = va_arg(args, const char *));)
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(key, NULL, 10))
                               : json_object_get(at, key);
    va_end(args);
    return json_is_number(at) ? json_number_value(at) : NAN;
}

/* ---- the state of a study ---- */

typedef struct state_memory {
    arena texts;
    ARRAY(fr_study_unit) units;
} state_memory;

/* The mean time of units alike that are done: of the same kind, model and window, else of the kind
 * alone. */
static const char state_sql[] =
    "SELECT key, kind, status, message, id,"
    " (SELECT seconds FROM timing t WHERE t.run = u.id AND stage = 'all'),"
    " coalesce((SELECT avg(t.seconds) FROM timing t JOIN run d ON d.id = t.run WHERE stage = 'all'"
    "   AND d.status = 'done' AND d.kind = u.kind AND d.window = u.window AND d.model IS u.model),"
    "  (SELECT avg(t.seconds) FROM timing t JOIN run d ON d.id = t.run WHERE stage = 'all'"
    "   AND d.status = 'done' AND d.kind = u.kind))"
    " FROM run u WHERE wanted ORDER BY place";

static void count_unit(fr_study_state *out, const fr_study_unit *u, double guess) {
    if (!strcmp(u->status, "done")) {
        out->done++;
        return;
    }
    if (!strcmp(u->status, "skipped")) {
        out->skipped++;
        return;
    }
    if (!strcmp(u->status, "running")) out->running++;
    if (!strcmp(u->status, "failed")) out->failed++;
    if (!strcmp(u->status, "left")) out->left++;
    if (isnan(guess))
        out->unknown++;
    else
        out->seconds_left += guess;
}

fr_status fr_study_status(const char *directory, fr_study_state *out, fr_error *err) {
    ledger book = {.locks = -1};
    plan p = {0};
    sqlite3_stmt *q = NULL;
    state_memory *m;
    bool row = true;
    *out = (fr_study_state){0};
    TRY(ALLOCATE(m, 1, err));
    out->memory = m;
    fr_status status = ledger_open(&book, directory, true, err);
    if (!status) status = read_plan(&book, &p, err);
    if (!status && !(out->name = keep(&m->texts, (const unsigned char *)p.name, err)))
        status = FR_ENOMEM;
    if (!status) status = ledger_prepare(&book, &q, err, state_sql, "");
    while (!status && !(status = ledger_next(&book, q, &row, err)) && row) {
        fr_study_unit u = {.key = keep(&m->texts, sqlite3_column_text(q, 0), err),
                           .kind = keep(&m->texts, sqlite3_column_text(q, 1), err),
                           .status = keep(&m->texts, sqlite3_column_text(q, 2), err),
                           .message = keep(&m->texts, sqlite3_column_text(q, 3), err),
                           .seconds = ledger_real(q, 5)};
        if (!u.key || !u.kind || !u.status) status = fail_memory(err, 0);
        if (!status && strcmp(u.status, "done")) {
            u.seconds = NAN;
            if (ledger_locked(&book, sqlite3_column_int64(q, 4))) u.status = "running";
        }
        if (!status) status = ARRAY_RESERVE(&m->units, 1, err);
        if (!status) {
            m->units.at[m->units.count++] = u;
            count_unit(out, &u, ledger_real(q, 6));
        }
    }
    (void)sqlite3_finalize(q);
    plan_free(&p);
    ledger_close(&book);
    out->unit = m->units.at;
    out->count = (int64_t)m->units.count;
    if (status) fr_study_status_free(out);
    return status;
}

void fr_study_status_free(fr_study_state *state) {
    state_memory *m = state->memory;
    if (m) {
        arena_free(&m->texts);
        free(m->units.at);
        free(m);
    }
    *state = (fr_study_state){0};
}

const char *fr_study_preset(const char *name) { return plan_preset(name); }
