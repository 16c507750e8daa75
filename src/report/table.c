/* table.c - see table.h. Building and marking; table_render.c makes text of it. */
#include "report/table.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

/* Keeps the first failure only: later ones follow from it. */
static bool broken(const table *t) { return t->failure.code != FR_OK; }

/* A copy without control characters. Other special characters depend on the format, which escapes
 * them. */
static const char *keep(table *t, const char *text) {
    char *copy = NULL;
    if (!text || broken(t)) return NULL;
    size_t size = fr_text_printable(text, NULL, 0) + 1;
    if (TAKE(&t->memory, copy, size, &t->failure)) return NULL;
    (void)fr_text_printable(text, copy, size);
    return copy;
}

void table_start(table *t, const char *title, const char *caption) {
    *t = (table){0};
    t->title = keep(t, title);
    t->caption = keep(t, caption);
}

void table_protocol(table *t, const char *protocol) { t->protocol = keep(t, protocol); }

void table_mark_all(table *t, const char *mark) {
    t->mark = keep(t, mark);
    table_note(t, mark);
}

void table_column(table *t, const char *group, const char *head, table_align align) {
    table_column_head column = {keep(t, group), keep(t, head), align};
    if (broken(t)) return;
    if (t->row_count)
        (void)fail(&t->failure, FR_EUSAGE, "table: column \"%s\" comes after the first row", head);
    else if (!ARRAY_RESERVE(&t->columns, 1, &t->failure))
        t->columns.at[t->column_count++] = column;
    t->columns.count = (size_t)t->column_count;
}

/* Completes the unfinished row. */
static void finish_row(table *t) {
    size_t whole = (size_t)t->row_count * (size_t)t->column_count;
    if (broken(t) || t->cells.count == whole ||
        ARRAY_RESERVE(&t->cells, whole - t->cells.count, &t->failure))
        return;
    while (t->cells.count < whole) t->cells.at[t->cells.count++] = cell_empty();
}

void table_row(table *t, const char *group) {
    finish_row(t);
    const char *kept = keep(t, group);
    if (kept && t->group && !strcmp(kept, t->group)) kept = NULL;
    if (broken(t) || ARRAY_RESERVE(&t->groups, 1, &t->failure)) return;
    t->groups.at[t->groups.count++] = kept;
    if (kept) t->group = kept;
    t->row_count++;
}

void table_put(table *t, cell c) {
    c.text = keep(t, c.text);
    if (broken(t)) return;
    if (t->cells.count == (size_t)t->row_count * (size_t)t->column_count)
        (void)fail(&t->failure, FR_EUSAGE, "table: row %d has more than %d cells", t->row_count,
                   t->column_count);
    else if (!ARRAY_RESERVE(&t->cells, 1, &t->failure))
        t->cells.at[t->cells.count++] = c;
}

void table_note(table *t, const char *note) {
    const char *kept = keep(t, note);
    if (broken(t) || ARRAY_RESERVE(&t->notes, 1, &t->failure)) return;
    t->notes.at[t->notes.count++] = kept;
    t->note_count++;
}

void table_free(table *t) {
    arena_free(&t->memory);
    free(t->columns.at);
    free(t->groups.at);
    free(t->cells.at);
    free(t->notes.at);
    *t = (table){0};
}

cell *table_cell(table *t, int row, int column) {
    if (row < 0 || row >= t->row_count || column < 0 || column >= t->column_count) return NULL;
    finish_row(t);
    return broken(t) ? NULL : &t->cells.at[(size_t)row * (size_t)t->column_count + (size_t)column];
}

/* ---- numbers ---- */

void table_number(double value, int decimals, bool sign, char out[NUMBER_SIZE]) {
    out[0] = 0;
    if (isnan(value)) return;
    if (decimals < 0) decimals = 0;
    if (decimals > 20) decimals = 20;
    int size = number_print(out, NUMBER_SIZE, sign ? "%+.*f" : "%.*f", decimals, value);
    bool zero = !strpbrk(out, "123456789i"); /* zero as printed; i is for inf */
    if (zero && (out[0] == '-' || out[0] == '+')) memmove(out, out + 1, (size_t)size);
}

/* A number as people see it, or with all its digits. */
static void print_number(double value, const cell *c, bool sign, bool exact,
                         char out[NUMBER_SIZE]) {
    if (!exact)
        table_number(value, c->kind == CELL_INTEGER ? 0 : c->decimals, sign, out);
    else if (!isnan(value))
        (void)text_real(value + 0.0, false, out, NUMBER_SIZE); /* no negative zero */
}

static cell_parts print_parts(const cell *c, bool exact) {
    cell_parts parts;
    parts.value[0] = parts.sd[0] = parts.low[0] = parts.high[0] = 0;
    switch (c->kind) {
    case CELL_EMPTY:
    case CELL_TEXT: break;
    case CELL_INTEGER:
    case CELL_NUMBER: print_number(c->value, c, false, exact, parts.value); break;
    case CELL_DIFFERENCE: print_number(c->value, c, true, exact, parts.value); break;
    case CELL_MEAN:
        print_number(c->value, c, false, exact, parts.value);
        if (*parts.value) print_number(c->sd, c, false, exact, parts.sd);
        break;
    case CELL_INTERVAL:
        if (isnan(c->low) || isnan(c->high)) break;
        print_number(c->low, c, false, exact, parts.low);
        print_number(c->high, c, false, exact, parts.high);
        break;
    }
    return parts;
}

cell_parts cell_print(const cell *c) { return print_parts(c, false); }
cell_parts cell_print_exact(const cell *c) { return print_parts(c, true); }

/* ---- empty columns ---- */

static bool missing(const cell *c) {
    if (c->text && *c->text) return false;
    cell_parts parts = cell_print(c);
    return !*parts.value && !*parts.low;
}

static bool column_missing(table *t, int column) {
    for (int r = 0; r < t->row_count; r++) {
        const cell *c = table_cell(t, r, column);
        if (!c || !missing(c)) return false;
    }
    return true;
}

static bool same_group(const table *t, int a, int b) {
    if (a < 0 || b < 0 || a >= t->column_count || b >= t->column_count) return false;
    const char *x = t->columns.at[a].group, *y = t->columns.at[b].group;
    return x && y && !strcmp(x, y);
}

static void drop_column(table *t, int c) {
    size_t wide = (size_t)t->column_count, kept = 0;
    for (size_t i = 0; i < t->cells.count; i++)
        if (i % wide != (size_t)c) t->cells.at[kept++] = t->cells.at[i];
    t->cells.count = kept;
    /* A single column under a head takes its name. */
    int alone = -1;
    if (same_group(t, c - 1, c) && !same_group(t, c - 2, c) && !same_group(t, c, c + 1))
        alone = c - 1;
    if (same_group(t, c, c + 1) && !same_group(t, c, c + 2) && !same_group(t, c - 1, c))
        alone = c + 1;
    if (alone >= 0) {
        t->columns.at[alone].head = t->columns.at[alone].group;
        t->columns.at[alone].group = NULL;
    }
    memmove(&t->columns.at[c], &t->columns.at[c + 1],
            (wide - (size_t)c - 1) * sizeof *t->columns.at);
    t->columns.count = (size_t)--t->column_count;
}

void table_drop_missing(table *t) {
    finish_row(t);
    if (broken(t) || !t->row_count) return;
    for (int c = t->column_count - 1; c > 0; c--)
        if (column_missing(t, c)) drop_column(t, c);
}

/* ---- marks ---- */

/* The value a reader compares, larger is better; -inf for none. */
static double merit(const cell *c, bool higher_is_better) {
    cell_parts parts = cell_print(c);
    if (!*parts.value) return -INFINITY;
    double printed = number_read(parts.value, NULL);
    return higher_is_better ? printed : -printed;
}

void table_mark_best(table *t, int column, int first, int count, bool higher_is_better) {
    double best = -INFINITY, second = -INFINITY;
    int values = 0;
    for (int i = 0; i < count; i++) {
        cell *c = table_cell(t, first + i, column);
        if (!c) continue;
        c->mark = MARK_NONE;
        double m = merit(c, higher_is_better);
        if (m > best) {
            second = best;
            best = m;
        } else if (m > second && m < best) {
            second = m;
        }
        values += m > -INFINITY;
    }
    if (values < 2) return;
    for (int i = 0; i < count; i++) {
        cell *c = table_cell(t, first + i, column);
        double m = c ? merit(c, higher_is_better) : -INFINITY;
        if (m > -INFINITY && m >= second) c->mark = m == best ? MARK_BEST : MARK_SECOND;
    }
}
