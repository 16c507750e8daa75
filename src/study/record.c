/* record.c - see record.h. */
#define _GNU_SOURCE
#include "study/record.h"

#include "base/sha256.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

metric_key metric_of_cell(const char *name, int removal, int cell) {
    return (metric_key){.name = name,
                        .removed = removal < 0 ? NULL : fr_removal_names[removal],
                        .cell = cell < 0 ? NULL : fr_cell_names[cell]};
}

metric_key metric_of_k(int64_t k) {
    return (metric_key){.name = "expected-mrr", .sampler = "uniform", .k = k};
}

void record_free(unit_record *r) {
    for (size_t i = 0; i < r->artefacts.count; i++) {
        free(r->artefacts.at[i].path);
        free(r->artefacts.at[i].bytes);
    }
    free(r->artefacts.at);
    free(r->metrics.at);
    free(r->timings.at);
    *r = (unit_record){0};
}

static bool fits(const char *found, const char *wanted) {
    return !strcmp(found, wanted ? wanted : "");
}

const unit_metric *record_metric(const unit_record *r, metric_key key) {
    for (size_t i = 0; i < r->metrics.count; i++) {
        const unit_metric *m = &r->metrics.at[i];
        if (m->k == key.k && fits(m->name, key.name) && fits(m->cell, key.cell) &&
            fits(m->removed, key.removed) && fits(m->sampler, key.sampler) &&
            fits(m->path, key.path))
            return m;
    }
    return NULL;
}

const unit_artefact *record_artefact(const unit_record *r, const char *name) {
    for (size_t i = 0; i < r->artefacts.count; i++)
        if (!strcmp(r->artefacts.at[i].name, name)) return &r->artefacts.at[i];
    return NULL;
}

const unit_timing *record_timing(const unit_record *r, const char *stage) {
    for (size_t i = 0; i < r->timings.count; i++)
        if (!strcmp(r->timings.at[i].stage, stage)) return &r->timings.at[i];
    return NULL;
}

void record_tool(char out[96]) {
    fr_version v = fr_version_get();
    (void)snprintf(out, 96, "%s %s", v.version, v.commit);
}

void record_time(char out[32]) {
    time_t t = time(NULL);
    struct tm parts;
    (void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
}

/* ---- reading ---- */

typedef struct loader {
    ledger *l;
    const char *key;
    unit_record *out;
    sha256 *hash;
    bool bytes; /* also read the bytes */
} loader;

static void hash_text(sha256 *h, const char *text) {
    sha256_add(h, text ? text : "", text ? strlen(text) + 1 : 0);
    sha256_add(h, text ? "t" : "n", 1);
}

static fr_status copy_name(const loader *r, const char *table, const char *text, char *out,
                           size_t size, fr_error *err) {
    if (strlen(text) >= size)
        return fail(err, FR_EINPUT, "%s: table %s, %s: a name of %zu bytes, expected less than %zu",
                    r->l->path, table, r->key, strlen(text), size);
    memcpy(out, text, strlen(text) + 1);
    return FR_OK;
}

/* Columns that do not apply are not hashed, so rows that have only a name keep the hash of format
 * 2. */
static fr_status read_metric(const loader *r, sqlite3_stmt *q, fr_error *err) {
    TRY(ledger_expect(r->l, q, "tttttiDi", "metric", r->key, err));
    unit_metric m = {.k = sqlite3_column_int64(q, 5),
                     .value = ledger_real(q, 6),
                     .events = sqlite3_column_int64(q, 7)};
    const struct {
        char *out;
        size_t size;
    } texts[] = {{m.name, sizeof m.name},
                 {m.cell, sizeof m.cell},
                 {m.removed, sizeof m.removed},
                 {m.sampler, sizeof m.sampler},
                 {m.path, sizeof m.path}};
    sha256_add(r->hash, "m", 1);
    for (int i = 0; i < 5; i++) {
        const char *text = (const char *)sqlite3_column_text(q, i);
        TRY(copy_name(r, "metric", text, texts[i].out, texts[i].size, err));
        if (i && *text) sha256_add(r->hash, &"ncrsp"[i], 1);
        if (!i || *text) hash_text(r->hash, text);
    }
    if (m.k) sha256_add(r->hash, &m.k, sizeof m.k);
    if (!isnan(m.value)) sha256_add(r->hash, &m.value, sizeof m.value);
    sha256_add(r->hash, &m.events, sizeof m.events);
    ARRAY_PUSH(&r->out->metrics, m, err);
    return FR_OK;
}

static fr_status read_timing(const loader *r, sqlite3_stmt *q, fr_error *err) {
    TRY(ledger_expect(r->l, q, "td", "timing", r->key, err));
    unit_timing t = {.seconds = sqlite3_column_double(q, 1)};
    TRY(copy_name(r, "timing", (const char *)sqlite3_column_text(q, 0), t.stage, sizeof t.stage,
                  err));
    sha256_add(r->hash, "s", 1);
    hash_text(r->hash, t.stage);
    sha256_add(r->hash, &t.seconds, sizeof t.seconds);
    ARRAY_PUSH(&r->out->timings, t, err);
    return FR_OK;
}

/* Unpacks the column `content`. Deflate makes at most 1,032 bytes of one, so a larger size is
 * wrong, and nothing is allocated for it. */
static fr_status unpack(const loader *r, sqlite3_stmt *q, int column, unit_artefact *a,
                        fr_error *err) {
    const void *packed = sqlite3_column_blob(q, column);
    int64_t size = (int64_t)a->size, given = sqlite3_column_bytes(q, column);
    char found[65];
    sha256 h;
    if (!packed && given) return fail_memory(err, (size_t)given);
    if (size > 1032 * given)
        return fail(err, FR_EINPUT,
                    "%s: table artefact, %s: %s has %lld bytes, which %lld packed ones cannot hold",
                    r->l->path, r->key, a->name, (long long)size, (long long)given);
    uLongf room = (uLongf)size;
    TRY(allocate(a->size + 1, 1, &a->bytes, err)); /* text gets a final 0 */
    int code = uncompress(a->bytes, &room, packed, (uLong)given);
    if (code == Z_MEM_ERROR) return fail_memory(err, a->size);
    if (code != Z_OK || room != a->size)
        return fail(err, FR_EINPUT, "%s: table artefact, %s: %s cannot be unpacked", r->l->path,
                    r->key, a->name);
    TRY(sha256_start(&h, err));
    sha256_add(&h, a->bytes, a->size);
    sha256_end(&h, found);
    if (strcmp(found, a->sha256))
        return fail(err, FR_EINPUT,
                    "%s: table artefact, %s: %s has sha256 %.12s..., stored %.12s...", r->l->path,
                    r->key, a->name, found, a->sha256);
    return FR_OK;
}

static fr_status fill_artefact(const loader *r, sqlite3_stmt *q, unit_artefact *a, fr_error *err) {
    bool inside = sqlite3_column_type(q, 1) == SQLITE_NULL;
    TRY(ledger_expect(r->l, q, inside ? "tTtib" : "ttt", "artefact", r->key, err));
    const char *path = (const char *)sqlite3_column_text(q, 1);
    int64_t size = inside ? sqlite3_column_int64(q, 3) : -1;
    TRY(copy_name(r, "artefact", (const char *)sqlite3_column_text(q, 0), a->name, sizeof a->name,
                  err));
    TRY(copy_name(r, "artefact", (const char *)sqlite3_column_text(q, 2), a->sha256,
                  sizeof a->sha256, err));
    if (inside && size < 0)
        return fail(err, FR_EINPUT, "%s: table artefact, %s: %s has %lld bytes", r->l->path, r->key,
                    a->name, (long long)size);
    if (!inside && !(a->path = strdup(path))) return fail_memory(err, strlen(path));
    a->size = inside ? (size_t)size : 0;
    sha256_add(r->hash, "a", 1);
    hash_text(r->hash, a->name);
    hash_text(r->hash, a->path);
    hash_text(r->hash, a->sha256);
    sha256_add(r->hash, &size, sizeof size);
    return inside && r->bytes ? unpack(r, q, 4, a, err) : FR_OK;
}

static fr_status read_artefact(const loader *r, sqlite3_stmt *q, fr_error *err) {
    TRY(ARRAY_RESERVE(&r->out->artefacts, 1, err));
    unit_artefact *a = &r->out->artefacts.at[r->out->artefacts.count++];
    *a = (unit_artefact){0};
    return fill_artefact(r, q, a, err);
}

static fr_status each_row(const loader *r, const char *sql, int64_t unit,
                          fr_status (*take)(const loader *r, sqlite3_stmt *q, fr_error *err),
                          fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = true;
    fr_status status = ledger_prepare(r->l, &q, err, sql, "i", unit);
    while (!status && !(status = ledger_next(r->l, q, &row, err)) && row) status = take(r, q, err);
    (void)sqlite3_finalize(q);
    return status;
}

fr_status record_load(ledger *l, int64_t unit, const char *key, const char *contents,
                      unit_record *out, char hash[65], fr_error *err) {
    sha256 h;
    char found[65];
    *out = (unit_record){0};
    TRY(sha256_start(&h, err));
    loader r = {l, key, out, &h, contents != NULL};
    fr_status status =
        each_row(&r,
                 "SELECT name, cell, removed, sampler, path, k, value, events FROM metric"
                 " WHERE run = ? ORDER BY name, cell, removed, sampler, path, k",
                 unit, read_metric, err);
    if (!status)
        status = each_row(&r, "SELECT stage, seconds FROM timing WHERE run = ? ORDER BY stage",
                          unit, read_timing, err);
    if (!status)
        status = each_row(&r,
                          "SELECT name, path, sha256, bytes, content FROM artefact WHERE run = ?"
                          " ORDER BY name",
                          unit, read_artefact, err);
    sha256_end(&h, found);
    if (!status && contents && strcmp(found, contents))
        status = fail(err, FR_EINPUT,
                      "%s: the metrics, timings or artefacts of %s are not those that were stored",
                      l->path, key);
    if (!status && hash) memcpy(hash, found, sizeof found);
    if (status) record_free(out);
    return status;
}

/* ---- writing ---- */

static fr_status put_bytes(ledger *l, int64_t unit, const unit_artefact *a, fr_error *err) {
    uLongf room = compressBound((uLong)a->size);
    unsigned char *packed;
    char hash[65];
    sha256 h;
    TRY(ALLOCATE(packed, room, err));
    fr_status status = sha256_start(&h, err);
    if (!status) {
        sha256_add(&h, a->bytes, a->size);
        sha256_end(&h, hash);
        if (compress2(packed, &room, a->bytes, (uLong)a->size, 6) != Z_OK)
            status = fail_memory(err, room);
    }
    if (!status)
        status = ledger_do(l, err,
                           "INSERT INTO artefact (run, name, sha256, bytes, content)"
                           " VALUES (?, ?, ?, ?, ?)",
                           "ittib", unit, a->name, hash, (int64_t)a->size, (const void *)packed,
                           (size_t)room);
    free(packed);
    return status;
}

/* A path as it is stored: relative to the study's folder. */
static const char *inside(const char *folder, const char *path) {
    size_t size = strlen(folder);
    return !strncmp(path, folder, size) && path[size] == '/' ? path + size + 1 : path;
}

static fr_status put_metrics(ledger *l, int64_t unit, const unit_record *r, fr_error *err) {
    TRY(ledger_do(l, err, "DELETE FROM metric WHERE run = ?", "i", unit));
    for (size_t i = 0; i < r->metrics.count; i++) {
        const unit_metric *m = &r->metrics.at[i];
        TRY(ledger_do(l, err, "INSERT INTO metric VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "itttttidi",
                      unit, m->name, m->cell, m->removed, m->sampler, m->path, m->k, m->value,
                      m->events));
    }
    return FR_OK;
}

static fr_status put_rows(ledger *l, int64_t unit, const char *folder, const unit_record *r,
                          fr_error *err) {
    static const char *const old[] = {"DELETE FROM artefact WHERE run = ?",
                                      "DELETE FROM timing WHERE run = ?",
                                      "DELETE FROM failure WHERE run = ?"};
    for (int i = 0; i < 3; i++) TRY(ledger_do(l, err, old[i], "i", unit));
    TRY(put_metrics(l, unit, r, err));
    for (size_t i = 0; i < r->timings.count; i++)
        TRY(ledger_do(l, err, "INSERT INTO timing VALUES (?, ?, ?)", "itd", unit,
                      r->timings.at[i].stage, r->timings.at[i].seconds));
    for (size_t i = 0; i < r->artefacts.count; i++) {
        const unit_artefact *a = &r->artefacts.at[i];
        if (a->path)
            TRY(ledger_do(l, err,
                          "INSERT INTO artefact (run, name, path, sha256) VALUES (?, ?, ?, ?)",
                          "ittt", unit, a->name, inside(folder, a->path), a->sha256));
        else
            TRY(put_bytes(l, unit, a, err));
    }
    return FR_OK;
}

/* Stores the hash of a unit's rows in its row of `run`. */
static fr_status seal_contents(ledger *l, int64_t unit, fr_error *err) {
    unit_record stored;
    char contents[65];
    TRY(record_load(l, unit, "what was just written", NULL, &stored, contents, err));
    record_free(&stored);
    return ledger_do(l, err, "UPDATE run SET contents = ? WHERE id = ?", "ti", contents, unit);
}

fr_status record_store(ledger *l, int64_t unit, const char *folder, const char *inputs,
                       const unit_record *r, fr_error *err) {
    char when[32], tool[96];
    record_time(when);
    record_tool(tool);
    fr_status status = ledger_begin(l, err);
    if (!status) status = put_rows(l, unit, folder, r, err);
    if (!status)
        status = ledger_do(l, err,
                           "UPDATE run SET status = 'done', inputs = ?, finished = ?, tool = ?,"
                           " message = NULL WHERE id = ?",
                           "ttti", inputs, when, tool, unit);
    if (!status) status = seal_contents(l, unit, err);
    if (!status) status = ledger_do(l, err, RESEAL "WHERE id = ?", "i", unit);
    if (!status) status = ledger_commit(l, err);
    ledger_rollback(l);
    return status;
}

/* ---- ledgers of earlier versions ---- */

static void put_text(char *out, const char *text) { memcpy(out, text, strlen(text) + 1); }

/* True if it is "[removal-][cell]" followed by one of `ends`, such as "random-new-seen-drawn". */
static bool split_cell(unit_metric *m) {
    static const struct {
        const char *end, *name;
        bool cell; /* cells have it */
    } ends[] = {{"", "mrr", true},
                {"-drawn", "mrr-drawn", true},
                {"mrr", "mrr", false},
                {"eligible", "eligible", false}};
    for (int removal = -1; removal < FR_REMOVALS; removal++)
        for (int cell = 0; cell < FR_CELLS; cell++)
            for (int e = 0; e < 4; e++) {
                char name[sizeof m->name];
                (void)snprintf(name, sizeof name, "%s%s%s%s",
                               removal < 0 ? "" : fr_removal_names[removal], removal < 0 ? "" : "-",
                               ends[e].cell ? fr_cell_names[cell] : "", ends[e].end);
                if (strcmp(name, m->name) != 0) continue;
                put_text(m->name, ends[e].name);
                if (removal >= 0) put_text(m->removed, fr_removal_names[removal]);
                if (ends[e].cell) put_text(m->cell, fr_cell_names[cell]);
                return true;
            }
    return false;
}

/* The parts of a name that format 2 stored together: "expected-20", "loss-3", "20-forward-seconds".
 */
static void split_name(unit_metric *m) {
    static const char *const costs[] = {"forward-seconds", "fast-seconds",  "whole-seconds",
                                        "rank-seconds",    "forward-bytes", "fast-bytes",
                                        "whole-bytes",     "rank-bytes"};
    char *end;
    if (split_cell(m)) return;
    if (!strncmp(m->name, "expected-", 9)) {
        m->k = strtoll(m->name + 9, NULL, 10);
        put_text(m->name, "expected-mrr");
        put_text(m->sampler, "uniform");
    } else if (!strncmp(m->name, "loss-", 5)) {
        m->k = strtoll(m->name + 5, NULL, 10);
        put_text(m->name, "loss");
    } else if ((m->k = strtoll(m->name, &end, 10)) && *end == '-') {
        for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
            if (strcmp(end + 1, costs[i]) != 0) continue;
            size_t path = strcspn(costs[i], "-");
            memcpy(m->path, costs[i], path);
            put_text(m->name, costs[i] + path + 1);
            return;
        }
    }
}

/* One unit that is done; `contents` is the hash of what was stored, NULL = it had none. */
static fr_status upgrade_unit(ledger *l, int64_t unit, const char *contents, fr_error *err) {
    unit_record r;
    fr_error damage = {0};
    fr_status status =
        record_load(l, unit, "a unit of an earlier version", contents, &r, NULL, &damage);
    if (status == FR_EINPUT && contents) return FR_OK; /* a damaged unit is done again */
    if (status) return fail(err, status, "%s", damage.message);
    for (size_t i = 0; i < r.metrics.count; i++) split_name(&r.metrics.at[i]);
    status = put_metrics(l, unit, &r, err);
    record_free(&r);
    if (!status) status = seal_contents(l, unit, err);
    return status ? status : ledger_do(l, err, RESEAL "WHERE id = ?", "i", unit);
}

typedef struct old_unit {
    int64_t id;
    char contents[65];
} old_unit;

fr_status record_upgrade(ledger *l, int64_t old, fr_error *err) {
    ARRAY(old_unit) done = {0};
    sqlite3_stmt *q = NULL;
    bool row = true;
    fr_status status = ledger_prepare(
        l, &q, err,
        "SELECT id, contents FROM run WHERE status = 'done' AND (? = 1 OR seal IS " SEAL
        " AND length(contents) = 64)",
        "i", old);
    while (!status && !(status = ledger_next(l, q, &row, err)) && row) {
        status = ARRAY_RESERVE(&done, 1, err);
        if (status) break;
        old_unit *u = &done.at[done.count++];
        const char *contents = (const char *)sqlite3_column_text(q, 1);
        *u = (old_unit){.id = sqlite3_column_int64(q, 0)};
        if (contents) (void)snprintf(u->contents, sizeof u->contents, "%s", contents);
    }
    (void)sqlite3_finalize(q);
    for (size_t i = 0; !status && i < done.count; i++)
        status = upgrade_unit(l, done.at[i].id, old == 1 ? NULL : done.at[i].contents, err);
    free(done.at);
    if (status || old > 1) return status;
    TRY(ledger_do(l, err, RESEAL, ""));
    return ledger_do(l, err, "UPDATE study SET seal = " SEAL_STUDY, "");
}
