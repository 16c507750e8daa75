/* fold.c - tables that are wider than the terminal.
 *
 * Columns of printed tables are at least two spaces apart. A table that does not fit is shown in
 * parts, one below the other, each with the first column. So no number is broken, and nothing is
 * left out. This happens only on a terminal and without --wide: files and pipes get whole lines.
 *
 * The output of a command is kept in a temporary file until the command ends. If there is no place
 * for one, nothing is folded.
 */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int shown;  /* the terminal, while stdout is redirected; -1 = it is not */
    FILE *held; /* where stdout goes meanwhile */
} fold = {-1, NULL};

int cli_fold_output(void) { return fold.shown < 0 ? STDOUT_FILENO : fold.shown; }

void cli_fold_begin(void) {
    if (fold.shown >= 0 || !isatty(STDOUT_FILENO)) return;
    fold.held = tmpfile();
    int shown = fold.held ? dup(STDOUT_FILENO) : -1;
    if (shown >= 0 && !fflush(stdout) && dup2(fileno(fold.held), STDOUT_FILENO) >= 0) {
        fold.shown = shown;
        return;
    }
    if (shown >= 0) (void)close(shown);
    if (fold.held) (void)fclose(fold.held);
    fold.held = NULL;
}

/* ---- lines ---- */

/* A column of the screen: one character with the escape sequences before it. */
typedef struct glyph {
    const char *at;
    int bytes;
    bool blank;
} glyph;

typedef struct line {
    const char *text;
    glyph *glyph; /* [width] */
    int width;
    bool empty, rule; /* has nothing; has only dashes */
    bool table;       /* has cells: two spaces between words */
} line;

static const char *skip_escape(const char *c) {
    while (*c == '\033') {
        while (*c && *c != 'm') c++;
        c += *c != 0;
    }
    return c;
}

/* Cuts a line into columns; the glyphs have room for all of its bytes. */
static line read_line(const char *text, glyph *room) {
    line l = {.text = text, .glyph = room, .empty = true, .rule = true};
    bool word = false;
    for (const char *c = text; *skip_escape(c);) {
        const char *end = skip_escape(c) + 1;
        bool blank = end[-1] == ' ';
        while (((unsigned char)*end & 0xc0) == 0x80) end++;
        if (!blank && word && l.width > 1 && room[l.width - 1].blank && room[l.width - 2].blank)
            l.table = true;
        word |= !blank;
        l.empty &= blank;
        l.rule &= blank || end[-1] == '-';
        room[l.width++] = (glyph){c, (int)(end - c), blank};
        c = end;
    }
    l.rule &= !l.empty;
    return l;
}

/* ---- tables ---- */

/* True if one of the lines with cells is wider than the terminal. */
static bool overflows(const line *lines, int count, int width) {
    for (int i = 0; i < count; i++)
        if (lines[i].table && lines[i].width > width) return true;
    return false;
}

static bool blank_at(const line *lines, int count, int place) {
    for (int i = 0; i < count; i++)
        if (!lines[i].rule && place < lines[i].width && !lines[i].glyph[place].blank) return false;
    return true;
}

/* Finds where columns begin: after two or more positions that are blank in all lines. The first
 * entry is 0, the last is the end. */
static int find_columns(const line *lines, int count, int *at, int most) {
    int columns = 0, end = 0, blanks = 0;
    for (int i = 0; i < count; i++)
        if (!lines[i].rule && lines[i].width > end) end = lines[i].width;
    at[columns++] = 0;
    for (int place = 1; place < end && columns + 1 < most; place++) {
        bool blank = blank_at(lines, count, place);
        if (!blank && blanks > 1) at[columns++] = place;
        blanks = blank ? blanks + 1 : 0;
    }
    at[columns] = end;
    return columns;
}

/* Prints glyphs from .. to - 1, without trailing blanks if this is the end of the line. */
static void put_part(const line *l, int from, int to, bool last) {
    if (to > l->width) to = l->width;
    while (last && to > from && l->glyph[to - 1].blank) to--;
    for (int k = from; k < to; k++)
        (void)fwrite(l->glyph[k].at, 1, (size_t)l->glyph[k].bytes, stdout);
}

/* Prints the first column and columns first .. last - 1. */
static void put_columns(const line *lines, int count, const int *at, int first, int last) {
    for (int i = 0; i < count; i++) {
        int reach = lines[i].width < at[last] ? lines[i].width : at[last];
        bool more = reach > at[first];
        put_part(&lines[i], 0, at[1], !more);
        for (int k = lines[i].width; more && k < at[1]; k++) (void)putchar(' ');
        put_part(&lines[i], at[first], at[last], true);
        (void)printf("%s\n", cli_style(stdout, CLI_PLAIN)); /* it may end inside a style */
    }
}

enum { MOST_COLUMNS = 256 };

/* Prints a table in parts that fit; false if it has no columns to cut at. */
static bool put_folded(const line *lines, int count, int width) {
    int at[MOST_COLUMNS + 1];
    int columns = find_columns(lines, count, at, MOST_COLUMNS);
    if (columns < 3) return false;
    for (int first = 1, last; first < columns; first = last) {
        for (last = first + 1; last < columns; last++)
            if (at[1] + at[last + 1] - at[first] > width) break;
        if (first > 1) (void)putchar('\n');
        put_columns(lines, count, at, first, last);
    }
    return true;
}

/* Prints a sentence, broken between words; a word that is too long is cut. */
static void put_sentence(const line *l, int width) {
    int from = 0;
    while (l->width - from > width) {
        int to = from + width;
        while (to > from && !l->glyph[to].blank) to--;
        if (to == from) to = from + width;
        put_part(l, from, to, true);
        (void)putchar('\n');
        for (from = to; from < l->width && l->glyph[from].blank;) from++;
    }
    put_part(l, from, l->width, false);
    (void)printf("%s\n", cli_style(stdout, CLI_PLAIN));
}

/* Prints lines as they are, and tables that are too wide in parts. A table is a block of lines
 * between two empty lines, from its first to its last line with cells. */
static void put_lines(const line *lines, int count, int width) {
    for (int i = 0; i < count;) {
        int end = i, last = i;
        while (end < count && !lines[end].empty) last = lines[end].table ? end : last, end++;
        if (lines[i].table && overflows(lines + i, last - i + 1, width) &&
            put_folded(lines + i, last - i + 1, width)) {
            i = last + 1;
            continue;
        }
        if (lines[i].width > width && !lines[i].table)
            put_sentence(&lines[i], width);
        else
            (void)printf("%s\n", lines[i].text);
        i++;
    }
}

/* ---- the end ---- */

/* True if a sentence that is too wide continues in the next line. Tables break their notes at 100
 * columns; if each of these lines were broken again, every second line would be short. */
static bool goes_on(const line *l, const char *after, int width) {
    size_t size = strcspn(after, "\n");
    const char *cells = strstr(after, "  ");
    return !l->table && !l->rule && l->width > width && islower((unsigned char)*after) &&
           after[size] && (!cells || cells > after + size);
}

static void put_all(char *text, int width) {
    size_t bytes = strlen(text);
    int count = 0, used = 0;
    for (const char *c = text; *c; c++) count += *c == '\n';
    glyph *room = malloc((bytes + 1) * sizeof *room);
    line *lines = malloc(((size_t)count + 1) * sizeof *lines);
    char *c = text;
    for (glyph *next = room; room && lines && used < count; used++) {
        char *end = strchr(c, '\n');
        *end = 0;
        lines[used] = read_line(c, next);
        for (; goes_on(&lines[used], end + 1, width); count--) {
            *end = ' ';
            end = strchr(end, '\n');
            *end = 0;
            lines[used] = read_line(c, next);
        }
        next += lines[used].width;
        c = end + 1;
    }
    if (room && lines) put_lines(lines, used, width);
    (void)fputs(c, stdout); /* an unfinished last line, or everything if memory is short */
    free(room);
    free(lines);
}

void cli_fold_end(bool wide) {
    if (fold.shown < 0) return;
    int shown = fold.shown, width = cli_terminal_width(stdout);
    bool failed = fflush(stdout) != 0 || fseek(fold.held, 0, SEEK_END);
    long size = ftell(fold.held);
    rewind(fold.held);
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    size_t have = text ? fread(text, 1, (size_t)size, fold.held) : 0;
    (void)dup2(shown, STDOUT_FILENO);
    if (text) text[have] = 0;
    if (!text || failed || have != (size_t)size)
        cli_error("the output could not be kept in a temporary file; use --wide");
    else if (wide || strlen(text) != have)
        (void)fwrite(text, 1, have, stdout);
    else
        put_all(text, width);
    (void)fflush(stdout);
    fold.shown = -1;
    (void)close(shown);
    (void)fclose(fold.held);
    free(text);
}
