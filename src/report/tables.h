/* tables.h - the tables of a study, with the paper's numbers. */
#ifndef FR_REPORT_TABLES_H
#define FR_REPORT_TABLES_H

#include "report/summary.h"
#include "report/table.h"

/* A table of a study: the name of its file, and how it is made. One without rows has nothing to
 * show. */
typedef struct study_table {
    const char *name;
    void (*make)(const summary *s, table *t);
    bool measured; /* shows times: not the same on every run */
} study_table;

extern const study_table study_tables[]; /* ends with a NULL name */

/* Makes a table without empty columns, and with a note if numbers of the paper are left out. */
fr_status study_table_make(const summary *s, const study_table *one, table *t, fr_error *err);

#endif
