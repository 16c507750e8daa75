/* fuzz_study_db.c - changed databases of a study: status and report say in one line what is wrong,
 * or give tables. The good one is made from a document of a tiny stream.
 *
 *     @@q SQL that is run on it  @@b edits of its bytes  @@R the database itself
 *
 * FLAGS is '!' for the whole report, with figures and page, which is slow; otherwise the tables are
 * made, in one format, and not written. SQL may change tables and nothing else: no other files, no
 * pragmas. */
#include "parts.h"

#include "report/tables.h"
#include "study/results.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char document[] =
    "{\"name\": \"fuzz\", \"data\": {\"a\": {\"synth\": \"tiny\", \"events\": 80}},"
    " \"baselines\": [\"recency\", \"popularity\"], \"oracle\": true, \"minimal\": true,"
    " \"membership\": {}, \"k\": [1, 5]}";

static sqlite3 *good_db;

static void prepare(void) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_study *study;
    if (good_db) return;
    fuzz_must(fr_study_open(document, NULL, fuzz_path(path, "good"), &study, &err), &err);
    fr_status some_failed = fr_study_run(study, &fuzz_context, &err); /* they are shown, too */
    (void)some_failed;
    fr_study_close(study);
    sqlite3 *file;
    if (sqlite3_open(":memory:", &good_db) || sqlite3_open(fuzz_path(path, "good/study.db"), &file))
        abort();
    sqlite3_backup *backup = sqlite3_backup_init(good_db, "main", file, "main");
    if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE) abort();
    (void)sqlite3_backup_finish(backup);
    (void)sqlite3_close(file);
    (void)mkdir(fuzz_path(path, "study"), 0777);
}

static int allow(void *user, int action, const char *a, const char *b, const char *c,
                 const char *d) {
    (void)user, (void)a, (void)b, (void)c, (void)d;
    switch (action) {
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_DROP_TABLE:
    case SQLITE_ALTER_TABLE: return SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

static int stop(void *user) {
    (void)user;
    return 1;
}

static void run_sql(sqlite3 *db, fuzz_part sql) {
    char *text = fuzz_text(sql);
    (void)sqlite3_set_authorizer(db, allow, NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(db, 10000, stop, NULL);
    (void)sqlite3_exec(db, text, NULL, NULL, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 30);
    (void)sqlite3_set_authorizer(db, NULL, NULL);
    free(text);
}

static void write_study(fuzz_part rest) {
    sqlite3 *db;
    fuzz_part file = {0}, bytes = {0};
    if (sqlite3_open(":memory:", &db)) abort();
    sqlite3_backup *backup = sqlite3_backup_init(db, "main", good_db, "main");
    if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE) abort();
    (void)sqlite3_backup_finish(backup);
    for (fuzz_part p; fuzz_next(&rest, &p);) {
        if (p.kind == 'q') run_sql(db, p);
        if (p.kind == 'b') bytes = p;
        if (p.kind == 'R') file = p;
    }
    sqlite3_int64 size;
    unsigned char *image = sqlite3_serialize(db, "main", &size, 0);
    if (!image) abort();
    fuzz_edit_bytes(image, (size_t)size, bytes);
    if (file.at)
        fuzz_write("study/study.db", file.at, file.size);
    else
        fuzz_write("study/study.db", image, (size_t)size);
    sqlite3_free(image);
    (void)sqlite3_close(db);
}

static void make_tables(const char *directory, table_format format) {
    results r;
    summary s = {0};
    fr_error err = {0};
    fr_status status = results_open(&r, directory, &err);
    fuzz_reason(status, &err);
    if (status) return;
    status = summary_make(&s, &r, &fuzz_context, &err);
    fuzz_reason(status, &err);
    for (const study_table *one = study_tables; !status && one->name; one++) {
        table t = {0};
        text_buffer out = {0};
        status = study_table_make(&s, one, &t, &err);
        if (!status && t.row_count) status = table_render(&t, format, &out, &err);
        fuzz_reason(status, &err);
        text_free(&out);
        table_free(&t);
    }
    summary_free(&s);
    results_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_study_state state;
    if (!size) return 0;
    prepare();
    write_study((fuzz_part){.at = bytes + 1, .size = size - 1});
    fuzz_path(path, "study");
    fr_status status = fr_study_status(path, &state, &err);
    fuzz_reason(status, &err);
    if (!status) fr_study_status_free(&state);
    if (bytes[0] == '!')
        fuzz_reason(fr_study_report(path, &fuzz_context, &err), &err);
    else
        make_tables(path, (table_format)(bytes[0] % (TABLE_HTML + 1)));
    return 0;
}
