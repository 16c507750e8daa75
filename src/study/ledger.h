/* ledger.h - the book of a study: one SQLite file that knows every unit of work and what came of
 * it.
 *
 * A unit is done when its row says so, in one transaction with its metrics and artefacts: whatever
 * moment a process dies at, a unit is either done or not begun. Who works on a unit holds a lock on
 * the byte with the unit's number in study.lock; the system lets it go when the process ends,
 * however it ends, so there is nothing to clean up and no clock to trust.
 *
 * All tables and figures are made from this file alone, so rank records are kept in it, compressed.
 */
#ifndef FR_STUDY_LEDGER_H
#define FR_STUDY_LEDGER_H

#include "base/status.h"

#include <sqlite3.h>

typedef struct ledger {
    sqlite3 *db;
    char *path; /* of study.db */
    int locks;  /* study.lock; -1 if only read */
} ledger;

/* Opens DIRECTORY/study.db; made if it is not there, unless only to be read. */
fr_status ledger_open(ledger *l, const char *directory, bool read_only, fr_error *err);
void ledger_close(ledger *l);

/* A statement with its parameters, by letters: t text (NULL allowed), i int64_t, d double (NaN is
 * stored as NULL), b const void * and size_t. Finalise it with sqlite3_finalize. */
fr_status ledger_prepare(ledger *l, sqlite3_stmt **out, fr_error *err, const char *sql,
                         const char *types, ...);
/* The same, run to its end. */
fr_status ledger_do(ledger *l, fr_error *err, const char *sql, const char *types, ...);
/* Next row: *row is false behind the last. */
fr_status ledger_next(ledger *l, sqlite3_stmt *statement, bool *row, fr_error *err);
/* Column as a double; NULL is NaN. */
double ledger_real(sqlite3_stmt *statement, int column);

/* Everything between is stored together or not at all. */
fr_status ledger_begin(ledger *l, fr_error *err);
fr_status ledger_commit(ledger *l, fr_error *err);
void ledger_rollback(ledger *l); /* harmless outside of one */

/* Takes the lock of a unit; *taken is false if another process has it. */
fr_status ledger_lock(ledger *l, int64_t unit, bool *taken, fr_error *err);
void ledger_unlock(ledger *l, int64_t unit);
/* Does another process hold the lock? */
bool ledger_locked(const ledger *l, int64_t unit);

/* Stores bytes of a unit, compressed, with the hash of what they were. */
fr_status ledger_put_bytes(ledger *l, int64_t unit, const char *name, const void *bytes,
                           size_t size, fr_error *err);
/* Reads them back; *out is the caller's. A unit without them gives NULL and size 0. */
fr_status ledger_get_bytes(ledger *l, int64_t unit, const char *name, void **out, size_t *size,
                           fr_error *err);

#endif
