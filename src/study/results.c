/* results.c - see results.h. */
#define _GNU_SOURCE
#include "study/results.h"

#include "base/json.h"
#include "rank/ranking.h"
#include "study/embedded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan and its units ---- */

fr_status results_plan(ledger *book, plan *p, fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    fr_status status =
        ledger_prepare(book, &q, err, "SELECT plan, seal IS " SEAL_STUDY " FROM study", "");
    if (!status) status = ledger_next(book, q, &row, err);
    if (!status && !row) status = fail(err, FR_EINPUT, "%s: contains no study", book->path);
    if (!status) status = ledger_expect(book, q, "ti", "study", "its row", err);
    if (!status && !sqlite3_column_int(q, 1))
        status = fail(err, FR_EINPUT, "%s: the study's document is not the one that was stored",
                      book->path);
    if (!status)
        status = plan_parse(p, (const char *)sqlite3_column_text(q, 0), book->path, ".", err);
    (void)sqlite3_finalize(q);
    return status;
}

/* The mean time of similar finished units: of the same kind, model and window, or otherwise of the
 * same kind. */
static const char units_sql[] =
    "WITH took AS (SELECT kind, window, model, seconds FROM timing JOIN run ON id = run"
    "  WHERE stage = 'all' AND status = 'done'),"
    " alike AS (SELECT kind, window, model, avg(seconds) AS mean FROM took GROUP BY 1, 2, 3),"
    " kinds AS (SELECT kind, avg(seconds) AS mean FROM took GROUP BY 1)"
    " SELECT u.id, u.key, u.kind, u.data, u.model, u.objective, u.seed, u.window, u.status,"
    "  u.message, u.tool, u.contents, u.seal IS " SEAL ","
    "  t.seconds, coalesce(a.mean, k.mean) AS guess"
    " FROM run u LEFT JOIN timing t ON t.run = u.id AND t.stage = 'all'"
    "  LEFT JOIN alike a ON a.kind = u.kind AND a.window = u.window AND a.model IS u.model"
    "  LEFT JOIN kinds k ON k.kind = u.kind"
    " WHERE wanted ORDER BY place";

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* The row agrees with the plan and with its own seal. */
static fr_status check_row(ledger *book, const plan *p, const plan_unit *u, sqlite3_stmt *q,
                           fr_error *err) {
    const struct {
        int column;
        const char *expected;
    } texts[] = {{1, u->key},   {2, unit_kind_name[u->kind]}, {3, p->data[u->data].name},
                 {4, u->model}, {5, plan_objective(u)},       {7, plan_window(u)}};
    TRY(ledger_expect(book, q, "itttTTittTTTiDD", "run", u->key, err));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *found = (const char *)sqlite3_column_text(q, texts[i].column);
        if (!same(found, texts[i].expected))
            return fail(err, FR_EINPUT, "%s: table run, %s: %s is %s, expected %s", book->path,
                        u->key, sqlite3_column_name(q, texts[i].column), found ? found : "nothing",
                        texts[i].expected ? texts[i].expected : "nothing");
    }
    if (sqlite3_column_int64(q, 6) != u->seed)
        return fail(err, FR_EINPUT, "%s: table run, %s: seed is %lld, expected %lld", book->path,
                    u->key, (long long)sqlite3_column_int64(q, 6), (long long)u->seed);
    if (!sqlite3_column_int(q, 12))
        return fail(err, FR_EINPUT, "%s: table run: the row of %s is not the one that was stored",
                    book->path, u->key);
    return FR_OK;
}

fr_status results_units(ledger *book, const plan *p,
                        fr_status (*take)(void *user, const unit_row *row, fr_error *err),
                        void *user, fr_error *err) {
    static const char *const states[] = {"left", "done", "failed", "skipped"};
    sqlite3_stmt *q = NULL;
    bool row = true;
    size_t n = 0;
    fr_status status = ledger_prepare(book, &q, err, units_sql, "");
    while (!status && !(status = ledger_next(book, q, &row, err)) && row) {
        if (n == p->units.count) {
            status = fail(err, FR_EINPUT, "%s: table run: more units than the document names (%zu)",
                          book->path, n);
            break;
        }
        const plan_unit *u = &p->units.at[n++];
        status = check_row(book, p, u, q, err);
        if (status) break;
        unit_row one = {.id = sqlite3_column_int64(q, 0),
                        .unit = u,
                        .status = (const char *)sqlite3_column_text(q, 8),
                        .message = (const char *)sqlite3_column_text(q, 9),
                        .tool = (const char *)sqlite3_column_text(q, 10),
                        .contents = (const char *)sqlite3_column_text(q, 11),
                        .seconds = ledger_real(q, 13),
                        .guess = ledger_real(q, 14)};
        int known = 0;
        while (known < 4 && strcmp(states[known], one.status)) known++;
        if (known == 4)
            status = fail(err, FR_EINPUT, "%s: table run, %s: status %s is not known", book->path,
                          u->key, one.status);
        if (!status) status = take(user, &one, err);
    }
    (void)sqlite3_finalize(q);
    if (!status && n < p->units.count)
        status =
            fail(err, FR_EINPUT, "%s: table run: %s is not there", book->path, p->units.at[n].key);
    return status;
}

/* ---- done units ---- */

/* The bytes of an artefact as JSON. */
static fr_status json_of(const results *r, const result *unit, const char *name, json_t **out,
                         fr_error *err) {
    const unit_artefact *a = record_artefact(&unit->record, name);
    json_error_t bad = {0};
    *out = a && a->bytes ? json_parse(a->bytes, a->size, 0, &bad) : NULL;
    if (*out) return FR_OK;
    if (a && json_error_code(&bad) == json_error_out_of_memory) return fail_memory(err, a->size);
    return fail(err, FR_EINPUT, "%s: %s of %s cannot be read", r->book.path, name, unit->key);
}

/* Checks that the records and the row agree. */
static fr_status check_about(const results *r, const result *unit, const json_t *about,
                             int64_t count, fr_error *err) {
    const json_t *protocol = json_object_get(about, "protocol");
    const char *model = json_string_value(json_object_get(about, "model")),
               *objective = json_string_value(json_object_get(about, "objective")), *what = NULL;
    const json_t *sample = json_object_get(protocol, "sample");
    if (json_integer_value(sample ? sample : json_object_get(protocol, "test")) != count)
        what = "number of events";
    else if (unit->objective && (!same(model, unit->model) || !same(objective, unit->objective)))
        what = "model";
    else if (unit->objective && json_integer_value(json_object_get(about, "seed")) != unit->seed)
        what = "seed";
    if (!what) return FR_OK;
    return fail(err, FR_EINPUT, "%s: the records of %s have another %s", r->book.path, unit->key,
                what);
}

static fr_status load_ranking(const results *r, result *unit, fr_error *err) {
    json_t *about;
    TRY(json_of(r, unit, "about", &about, err));
    unit_artefact *a = (unit_artefact *)(uintptr_t)record_artefact(&unit->record, "records");
    int64_t count = a ? (int64_t)(a->size / sizeof(fr_record)) : 0;
    fr_status status = FR_OK;
    if (!a || !a->bytes || a->size % sizeof(fr_record))
        status =
            fail(err, FR_EINPUT, "%s: the records of %s cannot be read", r->book.path, unit->key);
    if (!status) status = check_about(r, unit, about, count, err);
    if (status) {
        json_decref(about);
        return status;
    }
    void *records = a->bytes; /* from here on it belongs to the ranking */
    a->bytes = NULL;
    return ranking_adopt(records, count, about, unit->key, &unit->ranking, err);
}

static void result_free(result *one) {
    fr_ranking_close(one->ranking);
    json_decref(one->training);
    json_decref(one->choice);
    record_free(&one->record);
}

static fr_status count_version(results *r, const char *tool, fr_error *err) {
    for (size_t i = 0; i < r->versions.count; i++)
        if (same(r->versions.at[i].tool, tool)) {
            r->versions.at[i].units++;
            return FR_OK;
        }
    ARRAY_PUSH(&r->versions, ((version_count){tool, 1}), err);
    return FR_OK;
}

static fr_status keep_text(arena *memory, const char *text, const char **out, fr_error *err) {
    char *copy;
    *out = NULL;
    if (!text) return FR_OK;
    TRY(TAKE(memory, copy, strlen(text) + 1, err));
    *out = strcpy(copy, text);
    return FR_OK;
}

static fr_status take_unit(void *user, const unit_row *row, fr_error *err) {
    results *r = user;
    const plan_unit *u = row->unit;
    if (strcmp(row->status, "done")) return FR_OK;
    result one = {.id = row->id,
                  .kind = u->kind,
                  .key = u->key,
                  .data = r->plan.data[u->data].name,
                  .model = u->model,
                  .objective = plan_objective(u),
                  .external = u->external != NULL,
                  .seed = u->seed,
                  .config = u->config,
                  .configured = u->label != NULL || (u->chosen && u->kind == UNIT_TRAIN),
                  .final = u->chosen && u->kind == UNIT_TRAIN,
                  .diagnostic = u->diagnostic};
    fr_status status = keep_text(&r->memory, row->tool, &one.tool, err);
    if (!status && !row->contents)
        status = fail(err, FR_EINPUT, "%s: table run, %s: contents is nothing, expected text",
                      r->book.path, u->key);
    if (!status)
        status = record_load(&r->book, row->id, u->key, row->contents, &one.record, NULL, err);
    if (!status && one.kind == UNIT_RANK) status = load_ranking(r, &one, err);
    if (!status && one.kind == UNIT_TRAIN)
        status = json_of(r, &one, "train.json", &one.training, err);
    if (!status && one.kind == UNIT_SELECT)
        status = json_of(r, &one, "selection", &one.choice, err);
    if (!status) status = count_version(r, one.tool, err);
    if (!status) status = ARRAY_RESERVE(&r->list, 1, err);
    if (status)
        result_free(&one);
    else
        r->list.at[r->list.count++] = one;
    return status;
}

/* True if the training of a configuration was continued. */
static bool has_final(const results *r, const result *u) {
    for (size_t i = 0; i < r->list.count; i++) {
        const result *f = &r->list.at[i];
        if (f->final && f->seed == u->seed && results_same_group(f, u)) return true;
    }
    return false;
}

/* A configuration counts as a run of its model only if it is chosen and was not trained again. */
static void leave_out(results *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->list.count; i++) {
        result *u = &r->list.at[i];
        if (u->configured && !u->final && has_final(r, u)) u->config = -1;
    }
    for (size_t i = 0; i < r->list.count; i++) {
        result *u = &r->list.at[i];
        int j = u->configured && !u->final
                    ? results_next(r, (int)i, UNIT_SELECT, u->data, u->model, u->objective)
                    : -1;
        bool out = u->configured && !u->final &&
                   (j < 0 || json_integer_value(json_object_get(r->list.at[j].choice, "chosen")) !=
                                 u->config);
        if (out)
            result_free(u);
        else
            r->list.at[kept++] = *u;
    }
    r->list.count = kept;
}

fr_status results_open(results *r, const char *directory, fr_error *err) {
    *r = (results){.book.locks = -1};
    fr_status status = ledger_open(&r->book, directory, true, NULL, err);
    if (!status) status = ledger_begin_reading(&r->book, err);
    if (!status) status = ledger_check(&r->book, err);
    if (!status) status = results_plan(&r->book, &r->plan, err);
    if (!status) status = results_units(&r->book, &r->plan, take_unit, r, err);
    ledger_rollback(&r->book);
    if (!status) leave_out(r);
    if (!status &&
        !(r->published = json_parse(embedded_published, strlen(embedded_published), 0, NULL)))
        status = fail_memory(err, strlen(embedded_published));
    if (status) results_close(r);
    return status;
}

void results_close(results *r) {
    for (size_t i = 0; i < r->list.count; i++) result_free(&r->list.at[i]);
    free(r->list.at);
    free(r->versions.at);
    free(r->reasons.at);
    json_decref(r->published);
    plan_free(&r->plan);
    ledger_close(&r->book);
    arena_free(&r->memory);
    *r = (results){.book.locks = -1};
}

/* ---- queries ---- */

static bool named(const char *wanted, const char *found) {
    return !wanted || (found && !strcmp(wanted, found));
}

bool results_fits(const result *unit, unit_kind kind, const char *data, const char *model,
                  const char *objective) {
    return unit->kind == kind && named(data, unit->data) && named(model, unit->model) &&
           named(objective, unit->objective);
}

int results_next(const results *r, int from, unit_kind kind, const char *data, const char *model,
                 const char *objective) {
    for (size_t i = (size_t)from; i < r->list.count; i++)
        if (results_fits(&r->list.at[i], kind, data, model, objective)) return (int)i;
    return -1;
}

bool results_same_group(const result *a, const result *b) {
    return a->kind == b->kind && a->diagnostic == b->diagnostic && same(a->data, b->data) &&
           same(a->model, b->model) && same(a->objective, b->objective);
}

int results_next_seed(const results *r, int from, const result *group) {
    for (size_t i = (size_t)from; i < r->list.count; i++)
        if (results_same_group(&r->list.at[i], group)) return (int)i;
    return -1;
}

int results_next_group(const results *r, int from, unit_kind kind, const char *data,
                       bool diagnostic) {
    for (int i = from; (i = results_next(r, i, kind, data, NULL, NULL)) >= 0; i++) {
        const result *u = &r->list.at[i];
        if (u->diagnostic == diagnostic && results_next_seed(r, 0, u) == i) return i;
    }
    return -1;
}

/* The usual order for readers. */
static const char *const paths[] = {"forward", "fast", "whole", "rank"};
enum { PATHS = sizeof paths / sizeof *paths };

static int place_of(const char *path) {
    int p = 0;
    while (p < PATHS && strcmp(paths[p], path) != 0) p++;
    return p;
}

static int by_size(const void *a, const void *b) {
    const fr_scaling_point *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
                              : place_of(x->path) - place_of(y->path);
}

int results_scaling(const result *unit, fr_scaling_point out[FR_SCALING_MAX]) {
    int n = 0;
    for (size_t i = 0; i < unit->record.metrics.count && n < FR_SCALING_MAX; i++) {
        const unit_metric *m = &unit->record.metrics.at[i];
        int path = place_of(m->path);
        if (path == PATHS || strcmp(m->name, "seconds") != 0) continue;
        double bytes =
            results_number(unit, (metric_key){.name = "bytes", .path = paths[path], .k = m->k});
        out[n++] = (fr_scaling_point){.size = m->k,
                                      .path = paths[path],
                                      .seconds = m->value,
                                      .peak_bytes = isnan(bytes) ? 0 : (int64_t)bytes,
                                      .events = m->events};
    }
    qsort(out, (size_t)n, sizeof *out, by_size);
    return n;
}

double results_number(const result *unit, metric_key key) {
    const unit_metric *m = record_metric(&unit->record, key);
    return m ? m->value : NAN;
}

double results_metric(const result *unit, const char *name) {
    return results_number(unit, (metric_key){.name = name});
}

double results_seconds(const result *unit, const char *stage) {
    const unit_timing *t = record_timing(&unit->record, stage);
    return t ? t->seconds : NAN;
}

bool results_stopped_early(const result *unit, int64_t *done, int64_t *asked) {
    const json_t *about = unit->training  ? unit->training
                          : unit->ranking ? unit->ranking->about
                                          : NULL;
    if (json_object_get(about, "selection")) return false; /* stopping by patience is intended */
    const json_t *did = json_object_get(about, "epochs_done"),
                 *wish = json_object_get(about, "epochs_asked");
    if (!wish) wish = json_object_get(json_object_get(about, "config"), "epochs");
    if (!json_is_integer(did) || !json_is_integer(wish)) return false;
    *done = json_integer_value(did);
    *asked = json_integer_value(wish);
    return *done < *asked;
}

const char *results_hash(const result *unit, const char *name) {
    const unit_artefact *a = record_artefact(&unit->record, name);
    return a ? a->sha256 : "";
}
