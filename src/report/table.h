/* table.h - a table: its content, independent of its format.
 *
 *     table t = {0};
 *     table_start(&t, "Main result", "MRR, mean and deviation of 3 seeds; protocol ...");
 *     table_column(&t, NULL, "Model", TABLE_LEFT);
 *     table_column(&t, "LastFM", "Expected-20", TABLE_RIGHT);
 *     table_column(&t, "LastFM", "All", TABLE_RIGHT);
 *     table_row(&t, NULL);
 *     table_put(&t, cell_text("craft"));
 *     table_put(&t, cell_mean(0.4283, 0.0112, 4));
 *     table_put(&t, cell_mean(0.0636, 0.0065, 4));
 *     table_mark_best(&t, 1, 0, t.row_count, true);
 *     status = table_write(&t, "main.tex", err);
 *     table_free(&t);
 *
 * Tables are built by many small calls, so none of them returns a status: the first failure (out of
 * memory, a row that does not fit its columns) is kept and reported when the table is rendered.
 * One function turns numbers into text for all formats, so all show equal digits. Only CSV, which
 * programs read, has enough digits to give back the same number.
 */
#ifndef FR_REPORT_TABLE_H
#define FR_REPORT_TABLE_H

#include "base/memory.h"
#include "base/text.h"

#include <math.h>

typedef enum cell_kind {
    CELL_EMPTY,      /* nothing belongs here */
    CELL_TEXT,       /* any text, escaped by each format */
    CELL_INTEGER,    /* value */
    CELL_NUMBER,     /* value */
    CELL_MEAN,       /* value and sd; a NaN sd (one run) is left out */
    CELL_INTERVAL,   /* [low, high] */
    CELL_DIFFERENCE, /* value with its sign */
} cell_kind;

typedef enum cell_mark { MARK_NONE, MARK_BEST, MARK_SECOND } cell_mark;

/* A NaN value (a NaN end of an interval) is missing: its text if it has one, such as "too few
 * seeds", otherwise "--"; empty in CSV. */
typedef struct cell {
    cell_kind kind;
    cell_mark mark;
    int decimals;
    const char *text; /* the table keeps a copy */
    double value, sd, low, high;
} cell;

static inline cell cell_empty(void) { return (cell){.kind = CELL_EMPTY}; }
static inline cell cell_text(const char *text) { return (cell){.kind = CELL_TEXT, .text = text}; }
/* Exact up to 2^53. */
static inline cell cell_integer(int64_t value) {
    return (cell){.kind = CELL_INTEGER, .value = (double)value};
}
static inline cell cell_number(double value, int decimals) {
    return (cell){.kind = CELL_NUMBER, .value = value, .decimals = decimals};
}
static inline cell cell_mean(double mean, double sd, int decimals) {
    return (cell){.kind = CELL_MEAN, .value = mean, .sd = sd, .decimals = decimals};
}
static inline cell cell_interval(double low, double high, int decimals) {
    return (cell){.kind = CELL_INTERVAL, .low = low, .high = high, .decimals = decimals};
}
/* An interval that may be missing, with a replacement text. */
static inline cell cell_interval_or(double low, double high, int decimals, const char *text) {
    return (cell){
        .kind = CELL_INTERVAL, .low = low, .high = high, .decimals = decimals, .text = text};
}
static inline cell cell_difference(double value, int decimals) {
    return (cell){.kind = CELL_DIFFERENCE, .value = value, .decimals = decimals};
}

typedef enum table_align { TABLE_LEFT, TABLE_RIGHT } table_align;

typedef struct table_column_head {
    const char *group; /* neighbours with equal groups share one head; NULL = none */
    const char *head;
    table_align align;
} table_column_head;

/* Run memory: everything lives in the table until table_free. */
typedef struct table {
    const char *title, *caption, *protocol, *mark;
    int column_count, row_count, note_count; /* read-only for users */

    arena memory; /* of all text */
    ARRAY(table_column_head) columns;
    ARRAY(const char *) groups; /* [row_count], NULL = as the row before */
    const char *group;          /* of the last row, NULL = none yet */
    ARRAY(cell) cells;          /* row after row; the last row may be unfinished */
    ARRAY(const char *) notes;
    fr_error failure; /* the first one */
} table;

/* Begins an empty table; either may be NULL. */
void table_start(table *t, const char *title, const char *caption);
/* The protocol of the numbers. It is the end of the caption; in HTML a separate paragraph, which
 * can be folded; in LaTeX a comment, because hashes should not be printed. */
void table_protocol(table *t, const char *protocol);
/* A remark on what the numbers are, such as estimates: a note, and in CSV, which has no notes, a
 * column. */
void table_mark_all(table *t, const char *mark);
/* Adds a column; all columns come before the first row. */
void table_column(table *t, const char *group, const char *head, table_align align);
/* Begins a row, under a new head if `group` is neither NULL nor that of the row before. Cells left
 * out before are empty. */
void table_row(table *t, const char *group);
/* Fills the next cell of the row. */
void table_put(table *t, cell c);
/* Removes the columns of a finished table without any number: all their cells are empty or missing.
 * The first column stays; so does a table without rows. If only one column of a group is left, it
 * takes the group's name. */
void table_drop_missing(table *t);
/* Adds a line below the table. */
void table_note(table *t, const char *note);
void table_free(table *t);

/* The cell, for marks set by hand; NULL outside the table. */
cell *table_cell(table *t, int row, int column);
/* Marks the best and second values of rows first..first+count-1 of a column, forgetting marks they
 * had. Values are compared as printed, so equal digits get equal marks. Cells without a value are
 * ignored, and a single value has no mark. */
void table_mark_best(table *t, int column, int first, int count, bool higher_is_better);

/* ---- rendering ---- */

typedef enum table_format {
    TABLE_TEXT,     /* for a terminal: aligned columns, long lines of text broken, no marks */
    TABLE_ANSI,     /* the same with best bold and second underlined */
    TABLE_MARKDOWN, /* GitHub's pipe table */
    TABLE_CSV,      /* cells only (RFC 4180); mean and sd, low and high in separate columns */
    TABLE_LATEX,    /* a table environment on booktabs */
    TABLE_HTML,     /* a figure around a table; empty columns are left out */
} table_format;

/* Appends the table to `out`. */
fr_status table_render(const table *t, table_format format, text_buffer *out, fr_error *err);
/* Writes a file, atomically, in the format of its suffix: .txt .md .csv .tex */
fr_status table_write(const table *t, const char *path, fr_error *err);

/* ---- for the renderers ---- */

enum { NUMBER_SIZE = 352 }; /* the largest double and its decimals */

/* The one place where a number becomes text: rounded to `decimals` (0 to 20), no negative zero, "+"
 * before positive ones if `sign`; "" if it is NaN. */
void table_number(double value, int decimals, bool sign, char out[NUMBER_SIZE]);

/* A cell's numbers as text; missing ones are "". */
typedef struct cell_parts {
    char value[NUMBER_SIZE], sd[NUMBER_SIZE], low[NUMBER_SIZE], high[NUMBER_SIZE];
} cell_parts;

cell_parts cell_print(const cell *c);
/* The same for programs: the shortest text that gives the number back. */
cell_parts cell_print_exact(const cell *c);

#endif
