/* ledger.c - see ledger.h. */
#define _GNU_SOURCE
#include "study/ledger.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { FORMAT = 1, PATIENCE = 60000 /* milliseconds for another process to finish writing */ };

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS study ("
    " id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT, plan TEXT, tool TEXT);"
    /* One row per unit of work. `wanted`: it belongs to the plan as it is now; `place`: where it
     * stands there. `begun`: the inputs of the work last begun, `inputs`: of the work done. */
    "CREATE TABLE IF NOT EXISTS run ("
    " id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, data TEXT, model TEXT,"
    " objective TEXT, seed INTEGER, window TEXT, place INTEGER, wanted INTEGER,"
    " status TEXT NOT NULL DEFAULT 'left' CHECK (status IN ('left', 'done', 'failed', 'skipped')),"
    " begun TEXT, inputs TEXT, finished TEXT, message TEXT);"
    "CREATE TABLE IF NOT EXISTS artefact ("
    " run INTEGER REFERENCES run(id), name TEXT, path TEXT, sha256 TEXT, bytes INTEGER,"
    " content BLOB, PRIMARY KEY (run, name));"
    "CREATE TABLE IF NOT EXISTS metric ("
    " run INTEGER REFERENCES run(id), name TEXT, value REAL, events INTEGER,"
    " PRIMARY KEY (run, name));"
    "CREATE TABLE IF NOT EXISTS timing ("
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

static fr_status check_format(ledger *l, bool read_only, fr_error *err) {
    sqlite3_stmt *s = NULL;
    bool row;
    TRY(ledger_prepare(l, &s, err, "PRAGMA user_version", ""));
    fr_status status = ledger_next(l, s, &row, err);
    int version = !status && row ? sqlite3_column_int(s, 0) : 0;
    (void)sqlite3_finalize(s);
    if (status) return status;
    if (version != FORMAT && (version || read_only))
        return fail(err, FR_EINPUT, "%s: format %d, expected %d", l->path, version, FORMAT);
    return FR_OK;
}

fr_status ledger_open(ledger *l, const char *directory, bool read_only, fr_error *err) {
    *l = (ledger){.locks = -1, .path = path_join(directory, "study.db")};
    char *locks = path_join(directory, "study.lock");
    fr_status status = l->path && locks ? FR_OK : fail_memory(err, 0);
    if (!status && read_only && access(l->path, F_OK))
        status = fail(err, FR_EFILE, "%s: no study there", directory);
    /* Also to read: what a kill left half-written is taken back, which SQLite does not do
     * read-only. */
    int flags = SQLITE_OPEN_READWRITE | (read_only ? 0 : SQLITE_OPEN_CREATE);
    if (!status && sqlite3_open_v2(l->path, &l->db, flags, NULL) != SQLITE_OK)
        status = refused(l, err);
    if (!status) (void)sqlite3_busy_timeout(l->db, PATIENCE);
    if (!status) status = check_format(l, read_only, err);
    if (!status && !read_only) {
        char stamp[64];
        (void)sqlite3_snprintf(sizeof stamp, stamp, "PRAGMA user_version = %d", FORMAT);
        status = ledger_begin(l, err);
        if (!status && (sqlite3_exec(l->db, schema, NULL, NULL, NULL) ||
                        sqlite3_exec(l->db, stamp, NULL, NULL, NULL)))
            status = refused(l, err);
        if (!status) status = ledger_commit(l, err);
        ledger_rollback(l);
    }
    if (!status) {
        l->locks = open(locks, O_CLOEXEC | (read_only ? O_RDONLY : O_RDWR | O_CREAT), 0666);
        if (l->locks < 0 && !read_only) status = fail_errno(err, "%s: cannot be made", locks);
    }
    free(locks);
    if (status) ledger_close(l);
    return status;
}

void ledger_close(ledger *l) {
    (void)sqlite3_close(l->db);
    if (l->locks >= 0) (void)close(l->locks);
    free(l->path);
    *l = (ledger){.locks = -1};
}

/* ---- statements ---- */

static fr_status prepare(ledger *l, sqlite3_stmt **out, fr_error *err, const char *sql,
                         const char *types, va_list args) {
    if (sqlite3_prepare_v2(l->db, sql, -1, out, NULL) != SQLITE_OK) return refused(l, err);
    int bad = 0;
    for (int k = 1; *types; types++, k++) {
        if (*types == 't')
            bad |= sqlite3_bind_text(*out, k, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
        else if (*types == 'i')
            bad |= sqlite3_bind_int64(*out, k, va_arg(args, int64_t));
        else if (*types == 'd')
            bad |= sqlite3_bind_double(*out, k, va_arg(args, double)); /* NaN becomes NULL */
        else {
            const void *bytes = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            bad |= sqlite3_bind_blob64(*out, k, bytes, size, SQLITE_STATIC);
        }
    }
    if (!bad) return FR_OK;
    fr_status status = refused(l, err);
    (void)sqlite3_finalize(*out);
    *out = NULL;
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

fr_status ledger_begin(ledger *l, fr_error *err) {
    return ledger_do(l, err, "BEGIN IMMEDIATE", "");
}

fr_status ledger_commit(ledger *l, fr_error *err) { return ledger_do(l, err, "COMMIT", ""); }

void ledger_rollback(ledger *l) {
    if (l->db && !sqlite3_get_autocommit(l->db))
        (void)sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- locks: a byte of study.lock for each unit, held by the open file, not by the process ---- */

static struct flock at_byte(short type, int64_t unit) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = unit, .l_len = 1};
}

fr_status ledger_lock(ledger *l, int64_t unit, bool *taken, fr_error *err) {
    struct flock wish = at_byte(F_WRLCK, unit);
    *taken = !fcntl(l->locks, F_OFD_SETLK, &wish);
    if (*taken || errno == EAGAIN || errno == EACCES) return FR_OK;
    return fail_errno(err, "%s: its lock file cannot be locked", l->path);
}

void ledger_unlock(ledger *l, int64_t unit) {
    struct flock wish = at_byte(F_UNLCK, unit);
    (void)fcntl(l->locks, F_OFD_SETLK, &wish);
}

bool ledger_locked(const ledger *l, int64_t unit) {
    struct flock probe = at_byte(F_RDLCK, unit);
    return l->locks >= 0 && !fcntl(l->locks, F_OFD_GETLK, &probe) && probe.l_type != F_UNLCK;
}

/* ---- bytes ---- */

fr_status ledger_put_bytes(ledger *l, int64_t unit, const char *name, const void *bytes,
                           size_t size, fr_error *err) {
    uLongf room = compressBound((uLong)size);
    unsigned char *packed = malloc(room);
    char hash[65];
    sha256 h;
    if (!packed) return fail_memory(err, room);
    fr_status status = sha256_start(&h, err);
    if (!status) {
        sha256_add(&h, bytes, size);
        sha256_end(&h, hash);
        if (compress2(packed, &room, bytes, (uLong)size, 6) != Z_OK) status = fail_memory(err, 0);
    }
    if (!status)
        status =
            ledger_do(l, err,
                      "INSERT OR REPLACE INTO artefact (run, name, sha256, bytes, content)"
                      " VALUES (?, ?, ?, ?, ?)",
                      "ittib", unit, name, hash, (int64_t)size, (const void *)packed, (size_t)room);
    free(packed);
    return status;
}

fr_status ledger_get_bytes(ledger *l, int64_t unit, const char *name, void **out, size_t *size,
                           fr_error *err) {
    sqlite3_stmt *s = NULL;
    bool row = false;
    unsigned char *bytes = NULL;
    *out = NULL;
    *size = 0;
    fr_status status =
        ledger_prepare(l, &s, err, "SELECT bytes, content FROM artefact WHERE run = ? AND name = ?",
                       "it", unit, name);
    if (!status) status = ledger_next(l, s, &row, err);
    if (!status && row) {
        uLongf room = (uLongf)sqlite3_column_int64(s, 0);
        status = ALLOCATE(bytes, room + 1, err); /* text gets a final 0 */
        if (!status && uncompress(bytes, &room, sqlite3_column_blob(s, 1),
                                  (uLong)sqlite3_column_bytes(s, 1)) != Z_OK)
            status = fail(err, FR_EINPUT, "%s: %s of run %lld cannot be unpacked", l->path, name,
                          (long long)unit);
        if (!status) {
            *out = bytes;
            *size = room;
        } else
            free(bytes);
    }
    (void)sqlite3_finalize(s);
    return status;
}
