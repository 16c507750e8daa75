/* ledger.c - see ledger.h. */
#define _GNU_SOURCE
#include "study/ledger.h"

#include "base/file.h"
#include "base/os.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FORMAT = 3,      /* 1 had no seals, 2 composed names of metrics, "20-forward-seconds" */
    PATIENCE = 60000 /* milliseconds for another process to finish writing */
};

/* Separate columns describe a number; columns that do not apply are '' or 0. */
#define METRIC_TABLE                                                                               \
    "CREATE TABLE IF NOT EXISTS metric ("                                                          \
    " run INTEGER REFERENCES run(id), name TEXT, cell TEXT, removed TEXT, sampler TEXT, path "     \
    "TEXT,"                                                                                        \
    " k INTEGER, value REAL, events INTEGER,"                                                      \
    " PRIMARY KEY (run, name, cell, removed, sampler, path, k));"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS study ("
    " id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT, plan TEXT, tool TEXT, seal TEXT);"
    /* One row per unit of work. `wanted`: it belongs to the present plan; `place`: its position
     * there. `begun`: the inputs of the work last begun, `inputs`: of the work done, by the version
     * `tool`. `contents`: hash of its rows in the other tables, `seal`: see ledger.h. The check
     * uses OR, because SQLite makes a temporary table for IN, once for each row. */
    "CREATE TABLE IF NOT EXISTS run ("
    " id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, data TEXT, model TEXT,"
    " objective TEXT, seed INTEGER, window TEXT, place INTEGER, wanted INTEGER,"
    " status TEXT NOT NULL DEFAULT 'left' CHECK"
    "  (status = 'left' OR status = 'done' OR status = 'failed' OR status = 'skipped'),"
    " begun TEXT, inputs TEXT, finished TEXT, message TEXT, tool TEXT, contents TEXT, seal TEXT);"
    "CREATE TABLE IF NOT EXISTS artefact ("
    " run INTEGER REFERENCES run(id), name TEXT, path TEXT, sha256 TEXT, bytes INTEGER,"
    " content BLOB, PRIMARY KEY (run, name));" METRIC_TABLE "CREATE TABLE IF NOT EXISTS timing ("
    " run INTEGER REFERENCES run(id), stage TEXT, seconds REAL, PRIMARY KEY (run, stage));"
    "CREATE TABLE IF NOT EXISTS failure ("
    " run INTEGER REFERENCES run(id), time TEXT, message TEXT);";

static fr_status refused(ledger *l, fr_error *err) {
    int code = sqlite3_errcode(l->db);
    const char *why = sqlite3_errmsg(l->db);
    if (code == SQLITE_NOMEM) return fail_memory(err, 0);
    bool system = code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_READONLY ||
                  code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_BUSY;
    return fail(err, system ? FR_EFILE : FR_EINPUT, "%s: %s", l->path, why);
}

/* ---- seals ---- */

static void seal(sqlite3_context *context, int count, sqlite3_value **value) {
    sha256 h;
    char out[65];
    if (sha256_start(&h, NULL)) {
        sqlite3_result_error_nomem(context);
        return;
    }
    for (int i = 0; i < count; i++) {
        int type = sqlite3_value_type(value[i]);
        const void *bytes = type == SQLITE_NULL ? "" : sqlite3_value_blob(value[i]);
        int64_t head[2] = {type, type == SQLITE_NULL ? 0 : sqlite3_value_bytes(value[i])};
        sha256_add(&h, head, sizeof head);
        if (bytes) sha256_add(&h, bytes, (size_t)head[1]);
    }
    sha256_end(&h, out);
    sqlite3_result_text(context, out, 64, SQLITE_TRANSIENT);
}

/* ---- opening ---- */

static fr_status one_integer(ledger *l, const char *sql, int64_t *out, fr_error *err) {
    sqlite3_stmt *s = NULL;
    bool row = false;
    fr_status status = ledger_prepare(l, &s, err, sql, "");
    if (!status) status = ledger_next(l, s, &row, err);
    *out = row ? sqlite3_column_int64(s, 0) : 0;
    (void)sqlite3_finalize(s);
    return status;
}

/* Does not run code in the schema of a foreign file. */
static fr_status prepare_connection(ledger *l, bool read_only, fr_error *err) {
    static const int off[] = {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                              SQLITE_DBCONFIG_TRUSTED_SCHEMA};
    int bad = sqlite3_busy_timeout(l->db, PATIENCE);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        bad |= sqlite3_db_config(l->db, off[i], 0, NULL);
    bad |= sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    bad |= sqlite3_create_function_v2(l->db, "seal", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
                                      seal, NULL, NULL, NULL);
    bad |= sqlite3_exec(l->db, "PRAGMA cell_size_check = ON; PRAGMA cache_size = -65536", NULL,
                        NULL, NULL);
    if (read_only) bad |= sqlite3_exec(l->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    return bad ? refused(l, err) : FR_OK;
}

/* Upgrades an empty file or an old ledger to the present format, in one transaction. */
static fr_status make_tables(ledger *l, int64_t *old, fr_error *err) {
    static const char seals[] =
        "ALTER TABLE study ADD COLUMN seal TEXT; ALTER TABLE run ADD COLUMN tool TEXT;"
        "ALTER TABLE run ADD COLUMN contents TEXT; ALTER TABLE run ADD COLUMN seal TEXT;";
    static const char metrics[] =
        "ALTER TABLE metric RENAME TO metric_2;" METRIC_TABLE
        "INSERT INTO metric SELECT run, name, '', '', '', '', 0, value, events FROM metric_2;"
        "DROP TABLE metric_2;";
    int64_t version, tables;
    char stamp[64];
    TRY(ledger_begin(l, err));
    TRY(one_integer(l, "PRAGMA user_version", &version, err));
    TRY(one_integer(l, "SELECT count(*) FROM sqlite_master", &tables, err));
    if (version > FORMAT || version < 0)
        return fail(err, FR_EINPUT, "%s: format %lld, expected %d", l->path, (long long)version,
                    FORMAT);
    if (!version && tables)
        return fail(err, FR_EINPUT, "%s: a database of something else, expected a study", l->path);
    (void)sqlite3_snprintf(sizeof stamp, stamp, "PRAGMA user_version = %d", FORMAT);
    *old = version < FORMAT ? version : 0;
    if ((!version && sqlite3_exec(l->db, schema, NULL, NULL, NULL)) ||
        (*old == 1 && sqlite3_exec(l->db, seals, NULL, NULL, NULL)) ||
        (*old && sqlite3_exec(l->db, metrics, NULL, NULL, NULL)) ||
        (version != FORMAT && sqlite3_exec(l->db, stamp, NULL, NULL, NULL)))
        return refused(l, err);
    return FR_OK; /* an old ledger is committed when its records are upgraded */
}

static fr_status check_format(ledger *l, const char *directory, fr_error *err) {
    int64_t version;
    TRY(one_integer(l, "PRAGMA user_version", &version, err));
    if (version == FORMAT) return FR_OK;
    if (version > 0 && version < FORMAT)
        return fail(err, FR_EINPUT,
                    "%s: format %lld of an earlier version; `fullrank study run` with its document "
                    "and -o %s upgrades it to format %d and keeps finished units",
                    l->path, (long long)version, directory, FORMAT);
    return fail(err, FR_EINPUT, "%s: format %lld, expected %d", l->path, (long long)version,
                FORMAT);
}

/* Opening a pipe or a device could block. */
static fr_status plain_file(const char *path, fr_error *err) {
    struct stat facts;
    if (!stat(path, &facts) && !S_ISREG(facts.st_mode))
        return fail(err, FR_EFILE, "%s: expected a plain file", path);
    return FR_OK;
}

static fr_status open_locks(ledger *l, bool read_only, fr_error *err) {
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (read_only ? O_RDONLY : O_RDWR | O_CREAT);
    struct stat facts;
    l->locks = open(l->lock_path, flags, 0666);
    if (l->locks < 0)
        return read_only ? FR_OK : fail_errno(err, "%s: cannot be opened", l->lock_path);
    if (fstat(l->locks, &facts) || !S_ISREG(facts.st_mode))
        return fail(err, FR_EFILE, "%s: expected a plain file", l->lock_path);
    return FR_OK;
}

fr_status ledger_open(ledger *l, const char *directory, bool read_only, int64_t *old,
                      fr_error *err) {
    *l = (ledger){.locks = -1,
                  .path = path_join(directory, "study.db"),
                  .lock_path = path_join(directory, "study.lock")};
    fr_status status = l->path && l->lock_path ? plain_file(l->path, err) : fail_memory(err, 0);
    if (!status && read_only && access(l->path, F_OK))
        status = fail(err, FR_EFILE, "%s: no study there", directory);
    /* also for reading: the unfinished write of a killed process is then rolled back */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (read_only ? 0 : SQLITE_OPEN_CREATE);
    if (!status && sqlite3_open_v2(l->path, &l->db, flags, NULL) != SQLITE_OK)
        status = refused(l, err);
    if (!status) status = prepare_connection(l, read_only, err);
    if (!status) status = read_only ? check_format(l, directory, err) : make_tables(l, old, err);
    if (!status && !read_only && !*old) status = ledger_commit(l, err);
    if (!status) status = open_locks(l, read_only, err);
    if (status) ledger_close(l);
    return status;
}

fr_status ledger_from_bytes(ledger *l, const void *bytes, size_t size, fr_error *err) {
    *l = (ledger){.locks = -1, .path = strdup("study.db of process 0")};
    if (!l->path) return fail_memory(err, 0);
    unsigned char *copy = sqlite3_malloc64(size ? size : 1);
    if (!copy) return fail_memory(err, size);
    memcpy(copy, bytes, size);
    if (sqlite3_open_v2(":memory:", &l->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL)) {
        sqlite3_free(copy);
        return refused(l, err);
    }
    /* from here on the copy belongs to SQLite, even on failure */
    if (sqlite3_deserialize(l->db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY))
        return refused(l, err);
    return FR_OK;
}

fr_status ledger_check(ledger *l, fr_error *err) {
    sqlite3_stmt *s = NULL;
    bool row = false;
    fr_status status = ledger_prepare(l, &s, err, "PRAGMA quick_check(1)", "");
    if (!status) status = ledger_next(l, s, &row, err);
    const char *found = !status && row ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (!status && (!found || strcmp(found, "ok"))) {
        char line[200];
        (void)snprintf(line, sizeof line, "%s", found ? found : "no answer");
        for (char *c = line; *c; c++) *c = *c == '\n' ? ' ' : *c;
        status = fail(err, FR_EINPUT, "%s: damaged: %s", l->path, line);
    }
    (void)sqlite3_finalize(s);
    return status;
}

void ledger_close(ledger *l) {
    ledger_rollback(l);
    (void)sqlite3_close(l->db);
    if (l->locks >= 0) (void)close(l->locks);
    free(l->path);
    free(l->lock_path);
    *l = (ledger){.locks = -1};
}

/* ---- statements ---- */

static fr_status bind(ledger *l, sqlite3_stmt *statement, fr_error *err, const char *types,
                      va_list args) {
    int bad = 0;
    for (int k = 1; *types; types++, k++) {
        if (*types == 't')
            bad |= sqlite3_bind_text(statement, k, va_arg(args, const char *), -1, SQLITE_STATIC);
        else if (*types == 'i')
            bad |= sqlite3_bind_int64(statement, k, va_arg(args, int64_t));
        else if (*types == 'd')
            bad |= sqlite3_bind_double(statement, k, va_arg(args, double)); /* NaN becomes NULL */
        else {
            const void *bytes = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            bad |= sqlite3_bind_blob64(statement, k, bytes, size, SQLITE_STATIC);
        }
    }
    return bad ? refused(l, err) : FR_OK;
}

static fr_status prepare(ledger *l, sqlite3_stmt **out, fr_error *err, const char *sql,
                         const char *types, va_list args) {
    if (sqlite3_prepare_v2(l->db, sql, -1, out, NULL) != SQLITE_OK) return refused(l, err);
    fr_status status = bind(l, *out, err, types, args);
    if (!status) return FR_OK;
    (void)sqlite3_finalize(*out);
    *out = NULL;
    return status;
}

fr_status ledger_bind(ledger *l, sqlite3_stmt *statement, fr_error *err, const char *types, ...) {
    va_list args;
    (void)sqlite3_reset(statement); /* its failure was already reported */
    va_start(args, types);
    fr_status status = bind(l, statement, err, types, args);
    va_end(args);
    return status;
}

fr_status ledger_prepare(ledger *l, sqlite3_stmt **out, fr_error *err, const char *sql,
                         const char *types, ...) {
    va_list args;
    va_start(args, types);
    fr_status status = prepare(l, out, err, sql, types, args);
    va_end(args);
    return status;
}

fr_status ledger_next(ledger *l, sqlite3_stmt *statement, bool *row, fr_error *err) {
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE ? FR_OK : refused(l, err);
}

fr_status ledger_do(ledger *l, fr_error *err, const char *sql, const char *types, ...) {
    sqlite3_stmt *s = NULL;
    va_list args;
    va_start(args, types);
    fr_status status = prepare(l, &s, err, sql, types, args);
    va_end(args);
    bool row = true;
    while (!status && row) status = ledger_next(l, s, &row, err);
    (void)sqlite3_finalize(s);
    return status;
}

double ledger_real(sqlite3_stmt *statement, int column) {
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

fr_status ledger_text(sqlite3_stmt *statement, int column, arena *memory, const char **out,
                      fr_error *err) {
    char *copy;
    *out = NULL;
    if (sqlite3_column_type(statement, column) == SQLITE_NULL) return FR_OK;
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (!text) return fail_memory(err, 0);
    TRY(TAKE(memory, copy, strlen(text) + 1, err));
    *out = strcpy(copy, text);
    return FR_OK;
}

fr_status ledger_expect(ledger *l, sqlite3_stmt *statement, const char *types, const char *table,
                        const char *who, fr_error *err) {
    static const char *const names[] = {"",     "a whole number", "a number",
                                        "text", "bytes",          "nothing"}; /* by SQLITE_* */
    for (int k = 0; types[k]; k++) {
        char letter = types[k];
        bool null = letter < 'a';
        if (null) letter = (char)(letter - 'A' + 'a');
        int want = letter == 'i'   ? SQLITE_INTEGER
                   : letter == 'd' ? SQLITE_FLOAT
                   : letter == 't' ? SQLITE_TEXT
                                   : SQLITE_BLOB;
        int found = sqlite3_column_type(statement, k);
        if (null && found == SQLITE_NULL) continue;
        if (found != want)
            return fail(err, FR_EINPUT, "%s: table %s, %s: %s is %s, expected %s", l->path, table,
                        who, sqlite3_column_name(statement, k), names[found], names[want]);
        if (letter != 't') continue;
        const char *text = (const char *)sqlite3_column_text(statement, k);
        if (!text) return fail_memory(err, 0);
        if (strlen(text) != (size_t)sqlite3_column_bytes(statement, k))
            return fail(err, FR_EINPUT, "%s: table %s, %s: a 0 byte in %s", l->path, table, who,
                        sqlite3_column_name(statement, k));
    }
    return FR_OK;
}

fr_status ledger_begin(ledger *l, fr_error *err) {
    return ledger_do(l, err, "BEGIN IMMEDIATE", "");
}

fr_status ledger_begin_reading(ledger *l, fr_error *err) { return ledger_do(l, err, "BEGIN", ""); }

fr_status ledger_commit(ledger *l, fr_error *err) { return ledger_do(l, err, "COMMIT", ""); }

void ledger_rollback(ledger *l) {
    if (l->db && !sqlite3_get_autocommit(l->db))
        (void)sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- locks: a byte of study.lock for each unit, held by the open file, not by the process; byte 0
 * is shared by all that work on the study ---- */

/* A lock on a removed file excludes nobody. */
static fr_status check_locks(const ledger *l, fr_error *err) {
    struct stat ours, found;
    if (!fstat(l->locks, &ours) && !lstat(l->lock_path, &found) && ours.st_ino == found.st_ino &&
        ours.st_dev == found.st_dev)
        return FR_OK;
    return fail(err, FR_EFILE, "%s: removed or replaced while the study ran", l->lock_path);
}

static fr_status try_lock(ledger *l, bool shared, int64_t unit, bool *taken, fr_error *err) {
    TRY(check_locks(l, err));
    *taken = !os_lock(l->locks, unit, shared);
    if (*taken || errno == EAGAIN || errno == EACCES) return FR_OK;
    return fail_errno(err, "%s: cannot be locked", l->lock_path);
}

fr_status ledger_lock(ledger *l, int64_t unit, bool *taken, fr_error *err) {
    return try_lock(l, false, unit, taken, err);
}

void ledger_unlock(ledger *l, int64_t unit) { (void)os_unlock(l->locks, unit); }

bool ledger_locked(const ledger *l, int64_t unit) {
    return l->locks >= 0 && os_locked(l->locks, unit);
}

fr_status ledger_join(ledger *l, bool alone, bool *taken, fr_error *err) {
    *taken = true;
    if (alone) TRY(try_lock(l, false, 0, taken, err));
    return *taken ? try_lock(l, true, 0, taken, err) : FR_OK;
}
