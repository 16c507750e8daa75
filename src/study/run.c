/* run.c - chooses the next unit (fullrank.h, chapter 15).
 *
 * A pass goes through the plan from the top and does every unit that is ready, not done with its
 * present inputs, and not being done by another process. Passes end when nothing is left that this
 * process could do or wait for. Each result depends only on its inputs, so it does not matter which
 * process did what, in which order, or how often one of them was killed.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/processes.h"
#include "rank/ranking.h"
#include "rank/spec.h"
#include "study/forecast.h"
#include "study/hand.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- opening ---- */

static bool same_text(sqlite3_stmt *q, int column, const char *expected) {
    const char *found = (const char *)sqlite3_column_text(q, column);
    return found && expected ? !strcmp(found, expected) : !found && !expected;
}

/* True if the row is that of unit number n of the plan. */
static bool is_unit(const plan *p, size_t n, sqlite3_stmt *q) {
    if (n >= p->units.count) return false;
    const plan_unit *u = &p->units.at[n];
    return same_text(q, 1, u->key) && sqlite3_column_int64(q, 2) == (int64_t)n &&
           same_text(q, 3, unit_kind_name[u->kind]) && same_text(q, 4, p->data[u->data].name) &&
           same_text(q, 5, u->model) && same_text(q, 6, plan_objective(u)) &&
           sqlite3_column_int64(q, 7) == u->seed && same_text(q, 8, plan_window(u));
}

/* Finds the rows of a plan that was entered before; *all is true if all are there, in order. */
static fr_status find_units(fr_study *s, bool *all, fr_error *err) {
    plan *p = &s->plan;
    sqlite3_stmt *q = NULL;
    bool row = true;
    size_t n = 0;
    *all = true;
    fr_status status =
        ledger_prepare(&s->book, &q, err,
                       "SELECT id, key, place, kind, data, model, objective, seed, window FROM run"
                       " WHERE wanted ORDER BY place",
                       "");
    while (!status && *all && !(status = ledger_next(&s->book, q, &row, err)) && row) {
        *all = is_unit(p, n, q);
        if (*all) p->units.at[n++].id = sqlite3_column_int64(q, 0);
    }
    *all &= n == p->units.count;
    (void)sqlite3_finalize(q);
    return status;
}

/* Every unit of the plan has a row; rows of other plans stay, but are not wanted. */
static fr_status enter_units(fr_study *s, fr_error *err) {
    plan *p = &s->plan;
    sqlite3_stmt *q = NULL;
    TRY(ledger_do(&s->book, err, "UPDATE run SET wanted = 0 WHERE wanted", ""));
    fr_status status = ledger_prepare(
        &s->book, &q, err,
        "INSERT INTO run (key, kind, place, data, model, objective, seed, window, wanted, seal)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1,"
        "  seal(?1, 'left', NULL, NULL, NULL, NULL, NULL))"
        " ON CONFLICT (key) DO UPDATE SET wanted = 1, kind = excluded.kind, place = excluded.place,"
        "  data = excluded.data, model = excluded.model, objective = excluded.objective,"
        "  seed = excluded.seed, window = excluded.window",
        "");
    for (size_t i = 0; !status && i < p->units.count; i++) {
        const plan_unit *u = &p->units.at[i];
        bool row;
        status = ledger_bind(&s->book, q, err, "ttitttit", u->key, unit_kind_name[u->kind],
                             (int64_t)i, p->data[u->data].name, u->model, plan_objective(u),
                             u->seed, plan_window(u));
        if (!status) status = ledger_next(&s->book, q, &row, err);
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* True if `text` is the plan of the ledger. */
static fr_status compare_plan(fr_study *s, const char *text, bool *same, fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    fr_status status = ledger_prepare(&s->book, &q, err, "SELECT plan IS ? FROM study", "t", text);
    if (!status) status = ledger_next(&s->book, q, &row, err);
    *same = !status && row && sqlite3_column_int(q, 0);
    (void)sqlite3_finalize(q);
    return status;
}

/* Two documents would undo each other's work, so all processes of a study use the same document. */
static fr_status join(fr_study *s, const char *text, bool *same, fr_error *err) {
    bool taken;
    TRY(compare_plan(s, text, same, err));
    TRY(ledger_join(&s->book, !*same, &taken, err));
    if (taken) return FR_OK;
    return fail(err, FR_EFILE,
                "%s: another process works on this study with another document; wait for it, or "
                "choose another directory",
                s->directory);
}

static fr_status outdate(fr_study *s, fr_error *err);

static fr_status enter_plan(fr_study *s, fr_error *err) {
    char tool[96], *text = json_print(s->plan.source, JSON_COMPACT);
    record_tool(tool);
    fr_status status = text ? ledger_begin(&s->book, err) : fail_memory(err, 0);
    bool same = false, entered = false;
    if (!status) status = join(s, text, &same, err);
    if (!status)
        status = ledger_do(&s->book, err,
                           "INSERT OR REPLACE INTO study (id, name, plan, tool, seal)"
                           " VALUES (1, ?1, ?2, ?3, seal(?1, ?2, ?3))",
                           "ttt", s->plan.name, text, tool);
    if (!status && same) status = find_units(s, &entered, err);
    if (!status && !entered) {
        status = enter_units(s, err);
        if (!status) status = find_units(s, &entered, err);
        if (!status && !entered)
            status = fail(err, FR_EINPUT, "%s: damaged: units that were entered are not there",
                          s->book.path);
    }
    if (!status && !same) status = outdate(s, err);
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    free(text);
    return status;
}

/* Makes the directory. An existing one must be empty or belong to a study. */
static fr_status make_directory(const char *path, fr_error *err) {
    if (!mkdir(path, 0777)) return FR_OK;
    if (errno != EEXIST) return fail_errno(err, "%s: directory cannot be made", path);
    if (!directory_is(path)) return fail(err, FR_EFILE, "%s: exists and is not a directory", path);
    /* In this order: another process may begin the study now, and study.db is its first file. */
    if (directory_empty(path)) return FR_OK;
    char *book = path_join(path, "study.db");
    if (!book) return fail_memory(err, 0);
    bool study = !access(book, F_OK);
    free(book);
    if (study) return FR_OK;
    return fail(err, FR_EFILE, "%s: contains other files but no study; choose another directory",
                path);
}

static fr_status open_ledger(fr_study *s, fr_error *err) {
    int64_t old = 0;
    TRY(ledger_open(&s->book, s->directory, false, &old, err));
    TRY(ledger_check(&s->book, err));
    if (!old) return FR_OK;
    TRY(record_upgrade(&s->book, old, err));
    return ledger_commit(&s->book, err);
}

fr_status fr_study_open(const char *document, const char *data, const char *directory,
                        fr_study **out, fr_error *err) {
    fr_study *s;
    NEED(out, err);
    *out = NULL;
    NEED(document, err);
    TRY(ALLOCATE(s, 1, err));
    size_t size = directory ? strlen(directory) : 0;
    while (size > 1 && directory[size - 1] == '/') size--;
    *s = (fr_study){.data = -1, .book.locks = -1};
    if (directory) s->directory = strndup(directory, size);
    s->document = strdup(document);
    s->folder = data ? strdup(data) : NULL;
    bool kept = (s->directory || !directory) && s->document && (s->folder || !data);
    fr_status status = kept ? FR_OK : fail_memory(err, 0);
    const char *preset = plan_preset(document), *text = *document == '{' ? document : preset;
    if (!status)
        status =
            text ? plan_parse(&s->plan, text, preset ? document : "study", data ? data : ".", err)
                 : plan_read(&s->plan, document, data, err);
    if (!status && directory) status = make_directory(directory, err);
    if (!status && directory) status = open_ledger(s, err);
    if (!status && directory) status = enter_plan(s, err);
    if (status)
        fr_study_close(s);
    else
        *out = s;
    return status;
}

void fr_study_close(fr_study *s) {
    if (!s) return;
    work_leave(s);
    ledger_close(&s->book);
    plan_free(&s->plan);
    for (size_t i = 0; i < s->hashes.count; i++) free(s->hashes.at[i].path);
    free(s->hashes.at);
    free(s->directory);
    free(s->document);
    free(s->folder);
    free(s);
}

/* ---- messages of a unit ---- */

/* Notices about data are logged. Other notices, such as the loss of an epoch, are only in the
 * unit's record, because one line per unit is enough. */
static void hear_log(void *user, fr_level level, const char *line) {
    const fr_study *s = user;
    if (level == FR_WARNING || s->unit->kind == UNIT_DATA)
        context_log(s->caller, level, "%s: %s", s->unit->key, line);
}

static void hear_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                          const char *unit) {
    (void)unit;
    forecast_tell(user, stage, done, total);
}

static bool hear_cancel(void *user) {
    const fr_study *s = user;
    return context_check(s->caller, NULL) != FR_OK;
}

void study_listen(fr_study *s, const fr_context *caller, fr_context *hearing) {
    s->caller = caller;
    s->context = hearing;
    if (hearing)
        *hearing = (fr_context){.user = s,
                                .log = hear_log,
                                .progress = hear_progress,
                                .cancel = hear_cancel,
                                .threads = caller ? caller->threads : 0};
}

/* ---- one unit ---- */

typedef enum standing { DONE, READY, BLOCKED, MISSING } standing;

/* The present state of a unit; `again`: this work was begun before. */
static fr_status consider(fr_study *s, const plan_unit *u, standing *out, char inputs[65],
                          bool *again, fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false, missing;
    fr_error inner = {0};
    *again = false;
    fr_status status = work_inputs(s, u, inputs, &missing, &inner);
    if (status == FR_EINPUT && u->kind != UNIT_DATA) { /* what it needs is not there yet */
        *out = BLOCKED;
        return FR_OK;
    }
    if (status) return fail(err, status, "%s", inner.message);
    *out = missing ? MISSING : READY;
    if (missing && !u->external) return FR_OK;
    status = ledger_prepare(&s->book, &q, err, "SELECT status, inputs, begun FROM run WHERE id = ?",
                            "i", u->id);
    if (!status) status = ledger_next(&s->book, q, &row, err);
    if (!status && row) {
        const char *state = (const char *)sqlite3_column_text(q, 0),
                   *did = (const char *)sqlite3_column_text(q, 1),
                   *began = (const char *)sqlite3_column_text(q, 2);
        /* External files may be deleted once they are in the ledger. */
        if (state && !strcmp(state, "done") && did && (missing || !strcmp(did, inputs)))
            *out = DONE;
        *again = began && !strcmp(began, inputs);
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* Within a transaction. */
static fr_status set_left(fr_study *s, int64_t unit, fr_error *err) {
    TRY(ledger_do(&s->book, err, "UPDATE run SET status = 'left', begun = NULL WHERE id = ?", "i",
                  unit));
    return ledger_do(&s->book, err, RESEAL "WHERE id = ?", "i", unit);
}

/* Another document may have other settings. Units that were done with the old ones are then marked
 * as not done, so that no report shows them as results of this document. The units they need come
 * first in the plan. A data set that cannot be read stays as it is; running will report it. This
 * happens within the transaction that enters the plan. */
static fr_status outdate(fr_study *s, fr_error *err) {
    ARRAY(size_t) done = {0};
    sqlite3_stmt *q = NULL;
    bool row = true, again;
    char inputs[65];
    fr_status status =
        ledger_prepare(&s->book, &q, err,
                       "SELECT place FROM run WHERE wanted AND status = 'done' ORDER BY place", "");
    while (!status && !(status = ledger_next(&s->book, q, &row, err)) && row) {
        status = ARRAY_RESERVE(&done, 1, err);
        if (!status) done.at[done.count++] = (size_t)sqlite3_column_int64(q, 0);
    }
    (void)sqlite3_finalize(q);
    for (size_t i = 0; !status && i < done.count; i++) {
        const plan_unit *u = &s->plan.units.at[done.at[i]];
        standing where = DONE;
        status = consider(s, u, &where, inputs, &again, err);
        if (status && status != FR_ENOMEM && u->kind == UNIT_DATA) status = FR_OK;
        if (!status && (where == READY || where == BLOCKED)) status = set_left(s, u->id, err);
    }
    free(done.at);
    return status;
}

/* True if the recorded file or folder still exists. If not, the unit that made it is repeated. */
static fr_status check_artefact(fr_study *s, int64_t unit, const char *name, bool *there,
                                fr_error *err) {
    char *path, recorded[65], found[65];
    TRY(study_artefact(s, unit, name, &path, recorded, err));
    *there = directory_is(path) ||
             (!access(path, R_OK) && !file_sha256(path, found, NULL) && !strcmp(found, recorded));
    fr_status status = FR_OK;
    if (!*there) {
        context_log(s->caller, FR_NOTICE, "%s: missing or changed, so it is made again", path);
        status = ledger_begin(&s->book, err);
        if (!status) status = set_left(s, unit, err);
        if (!status) status = ledger_commit(&s->book, err);
        ledger_rollback(&s->book);
    }
    free(path);
    return status;
}

/* Streams and models may be deleted or moved, so the inputs of a unit are checked before it begins.
 */
static fr_status check_needs(fr_study *s, const plan_unit *u, bool *there, fr_error *err) {
    *there = true;
    if (s->plan.data[u->data].unit < 0 || u->kind == UNIT_DATA) return FR_OK;
    TRY(check_artefact(s, s->plan.units.at[s->plan.data[u->data].unit].id, "stream", there, err));
    int train;
    if (*there) TRY(work_trainer(s, u, &train, err));
    if (!*there || train < 0) return FR_OK;
    return check_artefact(s, s->plan.units.at[train].id, "model", there, err);
}

static fr_status store_failure(fr_study *s, const plan_unit *u, const char *message,
                               fr_error *err) {
    char when[32];
    record_time(when);
    fr_status status = ledger_begin(&s->book, err);
    if (!status)
        status =
            ledger_do(&s->book, err, "UPDATE run SET status = 'failed', message = ? WHERE id = ?",
                      "ti", message, u->id);
    if (!status) status = ledger_do(&s->book, err, RESEAL "WHERE id = ?", "i", u->id);
    if (!status)
        status = ledger_do(&s->book, err, "INSERT INTO failure VALUES (?, ?, ?)", "itt", u->id,
                           when, message);
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    return status;
}

/* True if the study's folder can still be written. It is tried, because only the system knows. */
static fr_status check_folder(const fr_study *s, fr_error *err) {
    static const char some[1 << 16] = {1};
    char *path = path_join(s->directory, "room-XXXXXX");
    if (!path) return fail_memory(err, 0);
    int file = mkstemp(path);
    bool room = file >= 0 && write(file, some, sizeof some) == (ssize_t)sizeof some && !fsync(file);
    fr_status status = room ? FR_OK : fail_errno(err, "%s: cannot be written", s->directory);
    if (file >= 0) {
        (void)close(file);
        (void)unlink(path);
    }
    free(path);
    return status;
}

/* Stores the result of a unit. *failed = it failed, and the ledger has the error. */
static fr_status conclude(fr_study *s, const hand_result *r, bool *failed, fr_error *err) {
    const plan_unit *u = r->unit;
    fr_status status = r->error.code;
    *failed = false;
    if (status == FR_ECANCEL || status == FR_ENOMEM)
        return fail(err, status, "%s", r->error.message);
    if (status == FR_EFILE && check_folder(s, NULL))
        return fail(err, status, "%s", r->error.message); /* nothing else would work either */
    if (status) {
        *failed = true;
        forecast_end(s, u, 0);
        context_log(s->caller, FR_WARNING, "%s failed: %s", u->key, r->error.message);
        return store_failure(s, u, r->error.message, err);
    }
    TRY(record_store(&s->book, u->id, s->directory, r->inputs, &r->record, err));
    forecast_end(s, u, r->seconds);
    const forecast *f = s->forecast;
    context_log(s->caller, FR_DETAIL, "%lld/%lld %s: %.1f s", (long long)(f->finished - f->skipped),
                (long long)(f->units - f->skipped), u->key, r->seconds);
    return FR_OK;
}

static fr_status begin(fr_study *s, const plan_unit *u, const char *inputs, fr_error *err) {
    return ledger_do(&s->book, err, "UPDATE run SET begun = ? WHERE id = ?", "ti", inputs, u->id);
}

/* Does a unit. The caller holds its lock. */
static fr_status attempt(fr_study *s, const plan_unit *u, const char *inputs, bool again,
                         bool *failed, fr_error *err) {
    hand_result r = {.unit = u};
    double start = clock_now();
    (void)memcpy(r.inputs, inputs, sizeof r.inputs);
    TRY(begin(s, u, inputs, err));
    forecast_begin(s, u);
    r.error.code = work_do(s, u, again, &r.record, &r.error);
    r.seconds = clock_now() - start;
    fr_status status = conclude(s, &r, failed, err);
    record_free(&r.record);
    return status;
}

/* ---- all units ---- */

typedef struct pass {
    bool progress, waiting; /* something was done; another process is at work */
    bool *tried;            /* [units] failed in this run: not again */
    int failed, skipped;
    hands hands; /* processes that do units */
    bool share;  /* units are given to them */
} pass;

static fr_status skip(fr_study *s, const plan_unit *u, pass *p, fr_error *err) {
    const plan_data *d = &s->plan.data[u->data];
    char message[512];
    (void)snprintf(message, sizeof message,
                   "%s is not there; `fullrank data get %s -o %s` gets the public sets", d->path,
                   d->name, d->path);
    context_log(s->caller, FR_WARNING, "%s skipped: %s", d->name, message);
    p->skipped++;
    for (size_t i = 0; i < s->plan.units.count; i++)
        if (s->plan.units.at[i].data == u->data) forecast_end(s, &s->plan.units.at[i], 0);
    p->tried[u - s->plan.units.at] = true;
    fr_status status = ledger_begin(&s->book, err);
    if (!status)
        status = ledger_do(&s->book, err,
                           "UPDATE run SET status = 'skipped', message = ? WHERE data = ? AND"
                           " wanted AND status <> 'done'",
                           "tt", message, d->name);
    if (!status)
        status = ledger_do(&s->book, err, RESEAL "WHERE data = ? AND wanted AND status = 'skipped'",
                           "t", d->name);
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    return status;
}

/* Waits until one of the processes has finished a unit. */
static fr_status take(fr_study *s, pass *p, bool stop, fr_error *err) {
    hand_result r;
    bool failed = false;
    fr_status status = hands_take(s, &p->hands, stop, &r, err);
    if (!status) status = conclude(s, &r, &failed, err);
    if (!status) forecast_tell(s, NULL, 0, 0);
    if (r.unit) ledger_unlock(&s->book, r.unit->id);
    if (failed) {
        p->failed++;
        p->tried[r.unit - s->plan.units.at] = true;
    }
    record_free(&r.record);
    p->progress = true;
    return status;
}

/* Gives a unit to a process. The caller holds the unit's lock, which stays until the unit is done.
 */
static fr_status give(fr_study *s, pass *p, const plan_unit *u, const char *inputs, bool again,
                      fr_error *err) {
    while (hands_idle(&p->hands) < 0) TRY(take(s, p, false, err));
    TRY(begin(s, u, inputs, err));
    return hands_give(s, &p->hands, hands_idle(&p->hands), u, inputs, again, err);
}

static fr_status visit(fr_study *s, plan_unit *u, pass *p, fr_error *err) {
    standing where = BLOCKED;
    char inputs[65];
    bool again, taken, there = true;
    if (p->tried[u - s->plan.units.at]) return FR_OK;
    if (hands_have(&p->hands, u)) {
        p->waiting = true;
        return FR_OK;
    }
    s->unit = u;
    fr_error inner = {0};
    fr_status status = consider(s, u, &where, inputs, &again, &inner);
    if (status && u->kind == UNIT_DATA && status != FR_ENOMEM && status != FR_ECANCEL) {
        context_log(s->caller, FR_WARNING, "%s failed: %s", u->key, inner.message);
        p->failed++;
        p->tried[u - s->plan.units.at] = true;
        return store_failure(s, u, inner.message, err); /* the other units continue */
    }
    if (status) return fail(err, status, "%s", inner.message);
    if (where == MISSING && u->external) return FR_OK; /* check_externals has reported it */
    if (where == MISSING) return skip(s, u, p, err);
    if (where == DONE) forecast_end(s, u, 0); /* by another process */
    if (where != READY) return FR_OK;
    TRY(ledger_lock(&s->book, u->id, &taken, err));
    if (!taken) {
        p->waiting = true;
        return FR_OK;
    }
    bool failed = false;
    status = consider(s, u, &where, inputs, &again, err); /* it may be done by now */
    if (!status && where == READY) status = check_needs(s, u, &there, err);
    bool mine = !p->share || status || where != READY || !there;
    if (!mine)
        status = give(s, p, u, inputs, again, err);
    else if (!status && where == READY && there)
        status = attempt(s, u, inputs, again, &failed, err);
    if (mine || status) ledger_unlock(&s->book, u->id);
    if (failed) {
        p->failed++;
        p->tried[u - s->plan.units.at] = true;
    }
    p->progress = true;
    return status;
}

/* Checks the remaining units before any work: data and catalog exist, plug-ins load and know their
 * options. Missing data are skipped with a notice. */
static fr_status check_beforehand(fr_study *s, pass *p, fr_error *err) {
    const char *catalog = s->plan.protocol.catalog;
    if (catalog && strpbrk(catalog, "./") && access(catalog, R_OK)) /* otherwise it is a word */
        return fail_errno(err, "%s: the catalog of the protocol cannot be read", catalog);
    for (size_t i = 0; i < s->plan.units.count; i++) {
        plan_unit *u = &s->plan.units.at[i];
        standing where;
        char inputs[65];
        bool again;
        fr_error inner = {0};
        s->unit = u;
        if (u->kind == UNIT_DATA && !consider(s, u, &where, inputs, &again, &inner) &&
            where == MISSING)
            TRY(skip(s, u, p, err));
        int data = s->plan.data[u->data].unit;
        if (!u->external || (data >= 0 && p->tried[data])) continue;
        TRY(consider(s, u, &where, inputs, &again, err));
        if (where == DONE) continue;
        TRY(external_there(u, err));
        fr_status status = u->ranks ? FR_OK : spec_check_plugin(u->external, &inner);
        if (status == FR_EUSAGE) status = FR_EINPUT; /* errors refer to the document */
        if (status) return fail(err, status, "%s: %s", u->key, inner.message);
    }
    return FR_OK;
}

/* External results are checked before any work, which would be useless if they do not fit. This
 * needs the data set, so that comes first. Finished units were already checked. */
static fr_status check_externals(fr_study *s, pass *p, fr_error *err) {
    for (size_t i = 0; i < s->plan.units.count; i++) {
        plan_unit *u = &s->plan.units.at[i];
        int data = s->plan.data[u->data].unit;
        standing where;
        char inputs[65];
        bool again;
        if (!u->external) continue;
        if (data >= 0) TRY(visit(s, &s->plan.units.at[data], p, err));
        s->unit = u;
        TRY(consider(s, u, &where, inputs, &again, err));
        if (where == MISSING) return external_missing(u, err);
        if (where == DONE && u->ranks && access(u->external, F_OK))
            context_log(s->caller, FR_WARNING,
                        "%s: is not there any more; what the ledger has of %s stays", u->external,
                        u->key);
        if (where == READY) TRY(external_check(s, u, err));
    }
    return FR_OK;
}

/* ---- what was done before ---- */

/* True if the ledger's record of a unit is what was stored. */
static fr_status check_record(fr_study *s, int64_t id, const char *key, const char *state,
                              const char *contents, bool sealed, fr_error *err) {
    unit_record record;
    if (!sealed)
        return fail(err, FR_EINPUT, "%s: its row is not the one that was stored", s->book.path);
    if (strcmp(state, "done")) return FR_OK;
    TRY(record_load(&s->book, id, key, contents ? contents : "", &record, NULL, err));
    record_free(&record);
    return FR_OK;
}

/* Deletes everything about a unit from the ledger. */
static fr_status forget(fr_study *s, int64_t id, fr_error *err) {
    TRY(ledger_do(&s->book, err,
                  "UPDATE run SET status = 'left', begun = NULL, inputs = NULL, finished = NULL,"
                  " message = NULL, tool = NULL, contents = NULL WHERE id = ?",
                  "i", id));
    return ledger_do(&s->book, err, RESEAL "WHERE id = ?", "i", id);
}

/* A unit whose record was changed or damaged is done again. */
static fr_status mend(fr_study *s, int64_t *others, fr_error *err) {
    sqlite3_stmt *q = NULL;
    char tool[96];
    record_tool(tool);
    *others = 0;
    fr_status status =
        ledger_prepare(&s->book, &q, err,
                       "SELECT status, contents, seal IS " SEAL ", tool FROM run WHERE id = ?", "");
    for (size_t i = 0; !status && i < s->plan.units.count; i++) {
        const plan_unit *u = &s->plan.units.at[i];
        fr_error why = {0};
        bool row = false;
        status = ledger_bind(&s->book, q, err, "i", u->id);
        if (!status) status = ledger_next(&s->book, q, &row, err);
        if (status || !row) break;
        const char *state = (const char *)sqlite3_column_text(q, 0),
                   *did = (const char *)sqlite3_column_text(q, 3);
        status =
            check_record(s, u->id, u->key, state ? state : "",
                         (const char *)sqlite3_column_text(q, 1), sqlite3_column_int(q, 2), &why);
        *others += !status && !strcmp(state, "done") && (!did || strcmp(did, tool));
        if (status == FR_EINPUT) {
            (void)sqlite3_reset(q);
            context_log(s->caller, FR_WARNING, "%s is done again: %s", u->key, why.message);
            status = forget(s, u->id, err);
        } else if (status)
            status = fail(err, status, "%s", why.message);
    }
    (void)sqlite3_finalize(q);
    return status;
}

static fr_status look_back(fr_study *s, fr_error *err) {
    int64_t others;
    fr_status status = ledger_begin(&s->book, err);
    if (!status) status = mend(s, &others, err);
    if (!status)
        status =
            ledger_do(&s->book, err,
                      "UPDATE run SET status = 'left' WHERE wanted AND status = 'skipped'", "");
    if (!status) status = ledger_do(&s->book, err, RESEAL "WHERE wanted AND status = 'left'", "");
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    if (!status && others)
        context_log(s->caller, FR_NOTICE,
                    "%lld unit%s done by other versions of the tool stay%s; "
                    "option redo-other-versions repeats them",
                    (long long)others, others == 1 ? "" : "s", others == 1 ? "s" : "");
    return status;
}

static fr_status need_ledger(const fr_study *s, fr_error *err) {
    if (s->book.db) return FR_OK;
    return fail(err, FR_EUSAGE, "the study was opened without a directory: it has no ledger");
}

fr_status fr_study_redo(fr_study *study, int64_t *count, fr_error *err) {
    fr_study *s = study;
    char tool[96];
    NEED(study, err);
    NEED(count, err);
    TRY(need_ledger(s, err));
    record_tool(tool);
    *count = 0;
    fr_status status = ledger_begin(&s->book, err);
    for (size_t i = 0; !status && i < s->plan.units.count; i++) {
        sqlite3_stmt *q = NULL;
        bool row = false;
        status = ledger_prepare(&s->book, &q, err,
                                "SELECT id FROM run WHERE id = ? AND status = 'done'"
                                " AND tool IS NOT ? AND seal IS " SEAL,
                                "it", s->plan.units.at[i].id, tool);
        if (!status) status = ledger_next(&s->book, q, &row, err);
        (void)sqlite3_finalize(q);
        if (!status && row) status = forget(s, s->plan.units.at[i].id, err);
        *count += !status && row;
    }
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    return status;
}

/* ---- the run ---- */

fr_status fr_study_run(fr_study *study, const fr_context *context, fr_error *err) {
    fr_study *s = study;
    NEED(study, err);
    if (!processes_number(context)) TRY(need_ledger(s, err));
    pass p = {0};
    size_t n = s->plan.units.count;
    if (processes_number(context)) return hands_serve(s, context, err);
    fr_context hearing;
    study_listen(s, context, &hearing);
    fr_status status = hands_open(&p.hands, s, context, err);
    if (!status) status = ALLOCATE(p.tried, n, err);
    if (!status) status = look_back(s, err);
    if (!status) status = check_beforehand(s, &p, err);
    if (!status) status = forecast_open(s, p.hands.count > 1 ? p.hands.count : 1, err);
    if (!status) forecast_say(s);
    if (!status) status = check_externals(s, &p, err);
    p.share = p.hands.count > 1;
    do {
        p.progress = p.waiting = false;
        for (size_t i = 0; !status && i < n; i++) {
            status = context_check(context, err);
            if (!status) status = visit(s, &s->plan.units.at[i], &p, err);
        }
        if (!status && !p.progress && p.hands.busy)
            status = take(s, &p, false, err);
        else if (!status && !p.progress && p.waiting) {
            struct timespec pause = {.tv_nsec = 200000000};
            (void)nanosleep(&pause, NULL);
        }
    } while (!status && (p.progress || p.waiting));
    for (int busy = p.hands.busy; busy; busy--) /* finished work is kept, whatever ended this run */
        (void)take(s, &p, true, NULL);
    fr_status closed = hands_close(&p.hands, status ? NULL : err);
    if (!status) status = closed;
    work_leave(s);
    forecast_close(s);
    free(p.tried);
    study_listen(s, NULL, NULL);
    if (!status && p.failed)
        return fail(err, FR_EINPUT, "%d unit%s failed; `fullrank study status %s` says why",
                    p.failed, p.failed == 1 ? "" : "s", s->directory);
    return status;
}
