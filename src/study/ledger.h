/* ledger.h - the ledger of a study: one SQLite file with every unit of work and its results.
 *
 * One transaction marks a unit as done and stores its metrics and artefacts. So whenever a process
 * dies, a unit is either done or not begun. A process that works on a unit locks the byte with the
 * unit's number in study.lock. The system releases the lock when the process ends in any way, so
 * there is nothing to clean up and no clock to trust.
 *
 * All tables and figures are made from this file alone, so it contains the compressed rank records.
 *
 * Disks and people change files, so everything is verified. A row of `run` has a seal, the hash of
 * its columns; one of them is the hash of the unit's rows in the other tables (record.h). Columns
 * about the unit's position in the plan are compared with the plan instead. Code that changes a
 * sealed column seals the row again in the same transaction.
 */
#ifndef FR_STUDY_LEDGER_H
#define FR_STUDY_LEDGER_H

#include "base/memory.h"

#include <sqlite3.h>

typedef struct ledger {
    sqlite3 *db;
    char *path, *lock_path; /* of study.db and study.lock */
    int locks;              /* study.lock; -1 if it is only read and not there */
} ledger;

/* Opens DIRECTORY/study.db; it is created if missing, except for reading. *old is the format of an
 * earlier version, 0 = the present one. The columns of an old ledger are already added, and the
 * caller must call record_upgrade in the same transaction. For reading, `old` may be NULL: then an
 * old ledger is refused. */
fr_status ledger_open(ledger *l, const char *directory, bool read_only, int64_t *old,
                      fr_error *err);
/* A ledger in memory, to be read, from the bytes of another (sqlite3_serialize), which are copied.
 */
fr_status ledger_from_bytes(ledger *l, const void *bytes, size_t size, fr_error *err);
void ledger_close(ledger *l);
/* Checks the database; 0.04 s for 100 MB of records. */
fr_status ledger_check(ledger *l, fr_error *err);

/* The SQL function seal(...) hashes its arguments with their types. */
#define SEAL       "seal(key, status, inputs, finished, message, tool, contents)"
#define RESEAL     "UPDATE run SET seal = " SEAL " "
#define SEAL_STUDY "seal(name, plan, tool)"

/* A statement with its parameters, by letters: t text (NULL allowed), i int64_t, d double (NaN is
 * stored as NULL), b const void * and size_t. Finalise it with sqlite3_finalize; texts and bytes
 * are not copied and stay until then, or until other parameters come. */
fr_status ledger_prepare(ledger *l, sqlite3_stmt **out, fr_error *err, const char *sql,
                         const char *types, ...);
/* Begins a prepared statement again with other parameters. */
fr_status ledger_bind(ledger *l, sqlite3_stmt *statement, fr_error *err, const char *types, ...);
/* As ledger_prepare, run to its end. */
fr_status ledger_do(ledger *l, fr_error *err, const char *sql, const char *types, ...);
/* Next row: *row is false after the last. */
fr_status ledger_next(ledger *l, sqlite3_stmt *statement, bool *row, fr_error *err);
/* Column as a double; NULL is NaN. */
double ledger_real(sqlite3_stmt *statement, int column);
/* Column as text in the arena; NULL stays NULL. */
fr_status ledger_text(sqlite3_stmt *statement, int column, arena *memory, const char **out,
                      fr_error *err);
/* Checks the types of the current row's columns. By letters: i integer, d real, t text
 * without 0 bytes, b bytes; a capital may be NULL. The message names `table`, `who` and the column.
 */
fr_status ledger_expect(ledger *l, sqlite3_stmt *statement, const char *types, const char *table,
                        const char *who, fr_error *err);

/* Everything between is stored together or not at all. */
fr_status ledger_begin(ledger *l, fr_error *err);
/* All reads in between see the same state. Ends with ledger_rollback. */
fr_status ledger_begin_reading(ledger *l, fr_error *err);
fr_status ledger_commit(ledger *l, fr_error *err);
void ledger_rollback(ledger *l); /* harmless outside a transaction */

/* Takes the lock of a unit; *taken is false if another process has it. */
fr_status ledger_lock(ledger *l, int64_t unit, bool *taken, fr_error *err);
void ledger_unlock(ledger *l, int64_t unit);
/* True if another process has the lock. */
bool ledger_locked(const ledger *l, int64_t unit);
/* Registers this process as working on the ledger's plan, until the ledger is closed. With `alone`
 * no other process may be working; *taken is false if one is. */
fr_status ledger_join(ledger *l, bool alone, bool *taken, fr_error *err);

#endif
