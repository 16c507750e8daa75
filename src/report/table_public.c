/* table_public.c - tables for programs that use the library (fullrank.h, chapter 16).
 *
 * A fr_table is a table of table.h with its last rendered text. So the same code writes the tables
 * of the command line, of studies and of other programs.
 */
#include "report/table.h"

#include <stdlib.h>

struct fr_table {
    table is;
    text_buffer text; /* that fr_table_text gave */
};

fr_status fr_table_make(const char *title, const char *caption, const char *protocol,
                        fr_table **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    fr_table *t;
    TRY(ALLOCATE(t, 1, err));
    table_start(&t->is, title, caption);
    if (protocol) table_protocol(&t->is, protocol);
    *out = t;
    return FR_OK;
}

void fr_table_close(fr_table *t) {
    if (!t) return;
    table_free(&t->is);
    text_free(&t->text);
    free(t);
}

void fr_table_column(fr_table *t, const char *group, const char *head, bool left) {
    if (t) table_column(&t->is, group, head, left ? TABLE_LEFT : TABLE_RIGHT);
}

void fr_table_row(fr_table *t) {
    if (t) table_row(&t->is, NULL);
}

void fr_table_put(fr_table *t, fr_table_cell c) {
    static const cell_kind kinds[] = {CELL_EMPTY, CELL_TEXT,     CELL_INTEGER,   CELL_NUMBER,
                                      CELL_MEAN,  CELL_INTERVAL, CELL_DIFFERENCE};
    if (!t) return;
    if (c.kind < FR_CELL_EMPTY || c.kind > FR_CELL_DIFFERENCE) {
        if (!t->is.failure.code)
            (void)fail(&t->is.failure, FR_EUSAGE, "table: kind %d of a cell is not known", c.kind);
        return;
    }
    table_put(&t->is, (cell){.kind = kinds[c.kind],
                             .decimals = c.decimals,
                             .text = c.text,
                             .value = c.value,
                             .sd = c.sd,
                             .low = c.low,
                             .high = c.high});
}

void fr_table_mark(fr_table *t, int column, bool higher_is_better) {
    if (t) table_mark_best(&t->is, column, 0, t->is.row_count, higher_is_better);
}

void fr_table_note(fr_table *t, const char *note) {
    if (t) table_note(&t->is, note);
}

fr_status fr_table_text(fr_table *t, int format, const char **out, fr_error *err) {
    static const table_format formats[] = {TABLE_TEXT, TABLE_LATEX, TABLE_MARKDOWN, TABLE_CSV,
                                           TABLE_HTML};
    NEED(t, err);
    NEED(out, err);
    *out = NULL;
    if (format < FR_FORMAT_TEXT || format > FR_FORMAT_HTML)
        return fail(err, FR_EUSAGE, "format %d of a table is not known", format);
    text_free(&t->text);
    TRY(table_render(&t->is, formats[format], &t->text, err));
    *out = t->text.at;
    return FR_OK;
}
