/* run.c - which unit comes next (fullrank.h, chapter 15).
 *
 * A pass goes through the plan from the top and does every unit that is ready, not done with the
 * inputs it has now, and not being done by another process. Passes end when nothing is left that
 * this process could do or wait for. Since each result is a function of its inputs alone, it does
 * not matter which process did what, in which order, or how often one of them was killed.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "rank/ranking.h"
#include "study/study.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- opening ---- */

/* Every unit of the plan has a row; rows of other plans stay, unwanted. */
static fr_status enter_units(fr_study *s, fr_error *err) {
    plan *p = &s->plan;
    TRY(ledger_do(&s->book, err, "UPDATE run SET wanted = 0", ""));
    for (size_t i = 0; i < p->units.count; i++) {
        plan_unit *u = &p->units.at[i];
        sqlite3_stmt *q = NULL;
        bool row = false;
        TRY(ledger_do(&s->book, err, "INSERT OR IGNORE INTO run (key, kind) VALUES (?, ?)", "tt",
                      u->key, unit_kind_name[u->kind]));
        TRY(ledger_do(&s->book, err,
                      "UPDATE run SET wanted = 1, place = ?, data = ?, model = ?, objective = ?,"
                      " seed = ?, window = ? WHERE key = ?",
                      "itttitt", (int64_t)i, p->data[u->data].name, u->model,
                      u->trained ? plan_objective_name[u->objective] : NULL, u->seed,
                      u->diagnostic ? "diagnostic" : "ranking", u->key));
        fr_status status =
            ledger_prepare(&s->book, &q, err, "SELECT id FROM run WHERE key = ?", "t", u->key);
        if (!status) status = ledger_next(&s->book, q, &row, err);
        u->id = row ? sqlite3_column_int64(q, 0) : 0;
        (void)sqlite3_finalize(q);
        TRY(status);
    }
    return FR_OK;
}

static fr_status enter_plan(fr_study *s, fr_error *err) {
    char *text = json_print(s->plan.source, JSON_COMPACT);
    fr_status status = text ? ledger_begin(&s->book, err) : fail_memory(err, 0);
    if (!status)
        status =
            ledger_do(&s->book, err,
                      "INSERT OR REPLACE INTO study (id, name, plan, tool) VALUES (1, ?, ?, ?)",
                      "ttt", s->plan.name, text, fr_version_get().version);
    if (!status) status = enter_units(s, err);
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    free(text);
    return status;
}

fr_status fr_study_open(const char *document, const char *data, const char *directory,
                        fr_study **out, fr_error *err) {
    fr_study *s;
    *out = NULL;
    TRY(ALLOCATE(s, 1, err));
    size_t size = strlen(directory);
    while (size > 1 && directory[size - 1] == '/') size--;
    *s = (fr_study){.data = -1, .book.locks = -1, .directory = strndup(directory, size)};
    fr_status status = s->directory ? FR_OK : fail_memory(err, 0);
    const char *preset = plan_preset(document), *text = *document == '{' ? document : preset;
    if (!status)
        status =
            text ? plan_parse(&s->plan, text, preset ? document : "study", data ? data : ".", err)
                 : plan_read(&s->plan, document, data, err);
    if (!status && mkdir(directory, 0777) && errno != EEXIST)
        status = fail_errno(err, "%s: directory cannot be made", directory);
    if (!status) status = ledger_open(&s->book, directory, false, err);
    if (!status) status = enter_plan(s, err);
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
    free(s->directory);
    free(s);
}

/* ---- what a unit says ---- */

/* What happened to data is told. Other notices, such as the loss of an epoch, are left to the
 * unit's record: one line for each is enough. */
static void hear_log(void *user, fr_level level, const char *line) {
    const fr_study *s = user;
    if (level == FR_WARNING || s->unit->kind == UNIT_DATA)
        context_log(s->caller, level, "%s: %s", s->unit->key, line);
}

static void hear_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                          const char *unit) {
    const fr_study *s = user;
    char text[256];
    (void)snprintf(text, sizeof text, "%td/%zu %s: %s", s->unit - s->plan.units.at + 1,
                   s->plan.units.count, s->unit->key, stage);
    context_progress(s->caller, text, done, total, unit);
}

static bool hear_cancel(void *user) {
    const fr_study *s = user;
    return s->caller && s->caller->cancel && s->caller->cancel(s->caller->user);
}

/* ---- one unit ---- */

typedef enum standing { DONE, READY, BLOCKED, MISSING } standing;

/* Where a unit stands now; `again`: this work was begun before. */
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
    if (missing) return FR_OK;
    status = ledger_prepare(&s->book, &q, err, "SELECT status, inputs, begun FROM run WHERE id = ?",
                            "i", u->id);
    if (!status) status = ledger_next(&s->book, q, &row, err);
    if (!status && row) {
        const char *state = (const char *)sqlite3_column_text(q, 0),
                   *did = (const char *)sqlite3_column_text(q, 1),
                   *began = (const char *)sqlite3_column_text(q, 2);
        if (!strcmp(state, "done") && did && !strcmp(did, inputs)) *out = DONE;
        *again = began && !strcmp(began, inputs);
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* Is the recorded file or folder still there? If not, the unit that made it is to be done again. */
static fr_status check_artefact(fr_study *s, int64_t unit, const char *name, bool *there,
                                fr_error *err) {
    char *path, recorded[65], found[65];
    TRY(study_artefact(s, unit, name, &path, recorded, err));
    *there = directory_is(path) || (!access(path, R_OK) && !ranking_hash_file(path, found, NULL) &&
                                    !strcmp(found, recorded));
    fr_status status = FR_OK;
    if (!*there) {
        context_log(s->caller, FR_NOTICE, "%s: gone or changed, so it is made again", path);
        status = ledger_do(&s->book, err,
                           "UPDATE run SET status = 'left', begun = NULL WHERE id = ?", "i", unit);
    }
    free(path);
    return status;
}

/* Streams and models may be deleted or moved; what a unit needs is looked at before it begins. */
static fr_status check_needs(fr_study *s, const plan_unit *u, bool *there, fr_error *err) {
    *there = true;
    if (u->kind == UNIT_DATA) return FR_OK;
    TRY(check_artefact(s, work_data_unit(s, u->data)->id, "stream", there, err));
    if (!*there || u->train < 0) return FR_OK;
    return check_artefact(s, s->plan.units.at[u->train].id, "model", there, err);
}

static void timestamp(char out[32]) {
    time_t t = time(NULL);
    struct tm parts;
    (void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
}

/* A path as it is kept: from the study's folder on, so that the folder may be moved. */
static const char *inside(const fr_study *s, const char *path) {
    size_t size = strlen(s->directory);
    return !strncmp(path, s->directory, size) && path[size] == '/' ? path + size + 1 : path;
}

static fr_status store(fr_study *s, const plan_unit *u, const char *inputs, const unit_result *r,
                       fr_error *err) {
    char when[32];
    ledger *book = &s->book;
    timestamp(when);
    fr_status status = ledger_begin(book, err);
    static const char *const old[] = {
        "DELETE FROM metric WHERE run = ?", "DELETE FROM artefact WHERE run = ?",
        "DELETE FROM timing WHERE run = ?", "DELETE FROM failure WHERE run = ?"};
    for (int i = 0; !status && i < 4; i++) status = ledger_do(book, err, old[i], "i", u->id);
    for (size_t i = 0; !status && i < r->metrics.count; i++)
        status = ledger_do(book, err, "INSERT INTO metric VALUES (?, ?, ?, ?)", "itdi", u->id,
                           r->metrics.at[i].name, r->metrics.at[i].value, r->metrics.at[i].events);
    for (size_t i = 0; !status && i < r->timings.count; i++)
        status = ledger_do(book, err, "INSERT INTO timing VALUES (?, ?, ?)", "itd", u->id,
                           r->timings.at[i].stage, r->timings.at[i].seconds);
    for (size_t i = 0; !status && i < r->artefacts.count; i++) {
        const unit_artefact *a = &r->artefacts.at[i];
        if (a->path)
            status = ledger_do(book, err,
                               "INSERT INTO artefact (run, name, path, sha256) VALUES (?, ?, ?, ?)",
                               "ittt", u->id, a->name, inside(s, a->path), a->sha256);
        else
            status = ledger_put_bytes(book, u->id, a->name, a->bytes, a->size, err);
    }
    if (!status)
        status = ledger_do(book, err,
                           "UPDATE run SET status = 'done', inputs = ?, finished = ?,"
                           " message = NULL WHERE id = ?",
                           "tti", inputs, when, u->id);
    if (!status) status = ledger_commit(book, err);
    ledger_rollback(book);
    return status;
}

static fr_status store_failure(fr_study *s, const plan_unit *u, const char *message,
                               fr_error *err) {
    char when[32];
    timestamp(when);
    fr_status status = ledger_begin(&s->book, err);
    if (!status)
        status =
            ledger_do(&s->book, err, "UPDATE run SET status = 'failed', message = ? WHERE id = ?",
                      "ti", message, u->id);
    if (!status)
        status = ledger_do(&s->book, err, "INSERT INTO failure VALUES (?, ?, ?)", "itt", u->id,
                           when, message);
    if (!status) status = ledger_commit(&s->book, err);
    ledger_rollback(&s->book);
    return status;
}

/* Can the study's folder still be written? Tried, since only the system knows. */
static fr_status check_folder(const fr_study *s, fr_error *err) {
    static const char some[1 << 16] = {1};
    char *path = path_join(s->directory, "room");
    writer trial = {0};
    fr_status status = path ? writer_open(&trial, path, err) : fail_memory(err, 0);
    if (!status) status = writer_put(&trial, some, sizeof some, err);
    if (!status) status = writer_commit(&trial, err);
    if (!status) (void)unlink(path);
    writer_discard(&trial);
    free(path);
    return status;
}

/* Does a unit whose lock is held. *failed: it could not be done, which is in the ledger now. */
static fr_status attempt(fr_study *s, const plan_unit *u, const char *inputs, bool again,
                         bool *failed, fr_error *err) {
    unit_result result = {0};
    fr_error inner = {0};
    double start = clock_now();
    *failed = false;
    TRY(ledger_do(&s->book, err, "UPDATE run SET begun = ? WHERE id = ?", "ti", inputs, u->id));
    fr_status status = work_do(s, u, again, &result, &inner);
    double seconds = clock_now() - start;
    if (status == FR_ECANCEL || status == FR_ENOMEM)
        status = fail(err, status, "%s", inner.message);
    else if (status == FR_EFILE && check_folder(s, NULL))
        status = fail(err, status, "%s", inner.message); /* nothing else would work either */
    else if (status) {
        *failed = true;
        context_log(s->caller, FR_WARNING, "%s failed: %s", u->key, inner.message);
        status = store_failure(s, u, inner.message, err);
    } else {
        status = store(s, u, inputs, &result, err);
        if (!status)
            context_log(s->caller, FR_NOTICE, "%td/%zu %s: %.1f s", u - s->plan.units.at + 1,
                        s->plan.units.count, u->key, seconds);
    }
    work_free(&result);
    return status;
}

/* ---- all units ---- */

typedef struct pass {
    bool progress, waiting; /* something was done; another process is at work */
    bool *tried;            /* [units] failed in this run: not again */
    int failed, skipped;
} pass;

static fr_status skip(fr_study *s, const plan_unit *u, pass *p, fr_error *err) {
    const plan_data *d = &s->plan.data[u->data];
    char message[512];
    (void)snprintf(message, sizeof message,
                   "%s is not there; `fullrank data get %s -o %s` gets the public sets", d->path,
                   d->name, d->path);
    context_log(s->caller, FR_WARNING, "%s skipped: %s", d->name, message);
    p->skipped++;
    p->tried[u - s->plan.units.at] = true;
    return ledger_do(&s->book, err,
                     "UPDATE run SET status = 'skipped', message = ? WHERE data = ? AND wanted"
                     " AND status <> 'done'",
                     "tt", message, d->name);
}

static fr_status visit(fr_study *s, plan_unit *u, pass *p, fr_error *err) {
    standing where = BLOCKED;
    char inputs[65];
    bool again, taken, there = true;
    if (p->tried[u - s->plan.units.at]) return FR_OK;
    s->unit = u;
    fr_error inner = {0};
    fr_status status = consider(s, u, &where, inputs, &again, &inner);
    if (status && u->kind == UNIT_DATA && status != FR_ENOMEM && status != FR_ECANCEL) {
        context_log(s->caller, FR_WARNING, "%s failed: %s", u->key, inner.message);
        p->failed++;
        p->tried[u - s->plan.units.at] = true;
        return store_failure(s, u, inner.message, err); /* the rest goes on without it */
    }
    if (status) return fail(err, status, "%s", inner.message);
    if (where == MISSING) return skip(s, u, p, err);
    if (where != READY) return FR_OK;
    TRY(ledger_lock(&s->book, u->id, &taken, err));
    if (!taken) {
        p->waiting = true;
        return FR_OK;
    }
    bool failed = false;
    status = consider(s, u, &where, inputs, &again, err); /* it may have been done meanwhile */
    if (!status && where == READY) status = check_needs(s, u, &there, err);
    if (!status && where == READY && there) status = attempt(s, u, inputs, again, &failed, err);
    ledger_unlock(&s->book, u->id);
    if (failed) {
        p->failed++;
        p->tried[u - s->plan.units.at] = true;
    }
    p->progress = true;
    return status;
}

fr_status fr_study_run(fr_study *s, const fr_context *context, fr_error *err) {
    pass p = {0};
    size_t n = s->plan.units.count;
    fr_context hearing = {.user = s,
                          .log = hear_log,
                          .progress = hear_progress,
                          .cancel = hear_cancel,
                          .threads = context ? context->threads : 0};
    TRY(ALLOCATE(p.tried, n, err));
    s->caller = context;
    s->context = &hearing;
    fr_status status = ledger_do(
        &s->book, err, "UPDATE run SET status = 'left' WHERE wanted AND status = 'skipped'", "");
    do {
        p.progress = p.waiting = false;
        for (size_t i = 0; !status && i < n; i++) {
            status = context_check(context, err);
            if (!status) status = visit(s, &s->plan.units.at[i], &p, err);
        }
        if (!status && !p.progress && p.waiting) {
            struct timespec pause = {.tv_nsec = 200000000};
            (void)nanosleep(&pause, NULL);
        }
    } while (!status && (p.progress || p.waiting));
    work_leave(s);
    free(p.tried);
    s->caller = s->context = NULL;
    if (!status && p.failed)
        return fail(err, FR_EINPUT, "%d unit%s failed; `fullrank study status %s` says why",
                    p.failed, p.failed == 1 ? "" : "s", s->directory);
    return status;
}
