/* table_render.c - a table as terminal text, Markdown, CSV, LaTeX and HTML.
 *
 * A look says how a format writes the few things that differ inside a cell (escaping, ±, signs,
 * marks); put_cell writes any cell in any look. Each format has its own renderer around the cells.
 * CSV has no look: it has the numbers of cell_print_exact, part by part.
 */
#include "base/file.h"
#include "report/html.h"
#include "report/table.h"

#include <stdlib.h>
#include <string.h>

typedef struct look {
    void (*escape)(text_buffer *out, const char *text);
    const char *plus_minus, *minus, *plus, *bracket, *missing;
    const char *before[3], *behind[3]; /* [cell_mark] */
} look;

/* ---- cells ---- */

static cell cell_at(const table *t, int row, int column) {
    size_t place = (size_t)row * (size_t)t->column_count + (size_t)column;
    return place < t->cells.count ? t->cells.at[place] : cell_empty();
}

static void put_number(text_buffer *out, const look *k, const char *digits) {
    if (*digits == '-' || *digits == '+') text_put(out, *digits++ == '-' ? k->minus : k->plus);
    text_put(out, digits);
}

static void put_cell(text_buffer *out, const look *k, const cell *c) {
    cell_parts parts = cell_print(c);
    bool number = *parts.value || *parts.low;
    if (c->kind == CELL_EMPTY) return;
    if (c->kind != CELL_TEXT && !number) {
        if (c->text)
            k->escape(out, c->text);
        else
            text_put(out, k->missing);
        return;
    }
    text_put(out, k->before[c->mark]);
    if (c->kind == CELL_TEXT) k->escape(out, c->text ? c->text : "");
    put_number(out, k, parts.value);
    if (*parts.sd) {
        text_put(out, k->plus_minus);
        put_number(out, k, parts.sd);
    }
    if (*parts.low) {
        text_put(out, k->bracket);
        put_number(out, k, parts.low);
        text_put(out, ", ");
        put_number(out, k, parts.high);
        text_put(out, "]");
    }
    text_put(out, k->behind[c->mark]);
}

/* Rewrites the text of `out` from `begin` on, padded to `width` columns. */
static void pad(text_buffer *out, size_t begin, int width, table_align align) {
    if (out->failed || out->count == begin) {
        text_fill(out, ' ', width);
        return;
    }
    int space = width - text_width(out->at + begin);
    if (space <= 0) return;
    size_t size = out->count - begin;
    text_fill(out, ' ', space);
    if (align == TABLE_LEFT || out->failed) return;
    memmove(out->at + begin + space, out->at + begin, size);
    memset(out->at + begin, ' ', (size_t)space);
}

static int written_width(const text_buffer *out, size_t begin) {
    return out->failed || !out->at ? 0 : text_width(out->at + begin);
}

/* The last column of the head that begins at `first`. */
static int span_end(const table *t, int first) {
    const char *group = t->columns.at[first].group;
    int last = first;
    while (group && last + 1 < t->column_count && t->columns.at[last + 1].group &&
           !strcmp(t->columns.at[last + 1].group, group))
        last++;
    return last;
}

static bool has_column_groups(const table *t) {
    for (int c = 0; c < t->column_count; c++)
        if (t->columns.at[c].group) return true;
    return false;
}

static bool has_row_groups(const table *t) {
    for (int r = 0; r < t->row_count; r++)
        if (t->groups.at[r]) return true;
    return false;
}

static const char *head_of(const table *t, int column) {
    return t->columns.at[column].head ? t->columns.at[column].head : "";
}

/* ---- terminal ---- */

enum {
    GAP = 2,    /* between columns */
    INDENT = 2, /* of rows below a group's head */
    LINE = 100, /* columns that titles, captions and notes may take */
};

static const look text_look = {text_put, "±", "-", "+", "[", "--", {"", "", ""}, {"", "", ""}};
static const look ansi_look = {
    text_put, "±", "-", "+", "[", "--", {"", "\033[1m", "\033[4m"}, {"", "\033[0m", "\033[0m"}};

static void end_line(text_buffer *out) { /* without blanks at its end */
    while (!out->failed && out->count && out->at[out->count - 1] == ' ') out->at[--out->count] = 0;
    text_put(out, "\n");
}

static void put_line(text_buffer *out, const char *line) {
    if (!line) return;
    text_put(out, line);
    end_line(out);
}

/* The same in lines of LINE columns at most, broken at blanks; a longer word has its own line. */
static void put_paragraph(text_buffer *out, const char *text) {
    int used = 0;
    if (!text) return;
    text += strspn(text, " ");
    do {
        size_t size = strcspn(text, " ");
        text_buffer word = {0};
        text_put_bytes(&word, text, size);
        int wide = word.at ? text_width(word.at) : 0;
        out->failed |= word.failed;
        if (used && used + 1 + wide > LINE) {
            end_line(out);
            used = 0;
        }
        if (used) text_put(out, " ");
        text_put_bytes(out, text, size);
        used += wide + (used > 0);
        text_free(&word);
        text += size;
        text += strspn(text, " ");
    } while (*text);
    end_line(out);
}

/* width[column]: of cells and heads; the last column of a span grows with the span's head. Without
 * memory `out` has failed. */
static void measure_text(const table *t, int indent, int *width, text_buffer *out) {
    text_buffer scratch = {0};
    for (int c = 0; c < t->column_count; c++) {
        width[c] = text_width(head_of(t, c));
        for (int r = 0; r < t->row_count; r++) {
            cell one = cell_at(t, r, c);
            size_t begin = scratch.count;
            put_cell(&scratch, &text_look, &one);
            int wide = written_width(&scratch, begin) + (c ? 0 : indent);
            if (wide > width[c]) width[c] = wide;
        }
    }
    for (int c = 0, last; c < t->column_count; c = last + 1) {
        last = span_end(t, c);
        int span = (last - c) * GAP;
        for (int i = c; i <= last; i++) span += width[i];
        int head = t->columns.at[c].group ? text_width(t->columns.at[c].group) : 0;
        if (head > span) width[last] += head - span;
    }
    out->failed |= scratch.failed;
    text_free(&scratch);
}

/* Heads of groups in the middle of their columns, and a rule below each. */
static void put_group_heads(const table *t, const int *width, text_buffer *out) {
    for (int line = 0; line < 2; line++) {
        for (int c = 0, last; c < t->column_count; c = last + 1) {
            last = span_end(t, c);
            const char *group = t->columns.at[c].group;
            int span = (last - c) * GAP;
            for (int i = c; i <= last; i++) span += width[i];
            size_t begin = out->count;
            if (group && line == 0) {
                text_fill(out, ' ', (span - text_width(group)) / 2);
                text_put(out, group);
            } else if (group) {
                text_fill(out, '-', span);
            }
            pad(out, begin, span + GAP, TABLE_LEFT);
        }
        end_line(out);
    }
}

static void render_text(const table *t, const look *k, int *width, text_buffer *out) {
    int indent = has_row_groups(t) ? INDENT : 0, whole = -GAP;
    measure_text(t, indent, width, out);
    for (int c = 0; c < t->column_count; c++) whole += width[c] + GAP;
    put_paragraph(out, t->title);
    if (has_column_groups(t)) put_group_heads(t, width, out);
    for (int c = 0; c < t->column_count; c++) {
        size_t begin = out->count;
        text_put(out, head_of(t, c));
        pad(out, begin, width[c], t->columns.at[c].align);
        text_fill(out, ' ', GAP);
    }
    end_line(out);
    text_fill(out, '-', whole);
    end_line(out);
    text_buffer plain = {0};
    for (int r = 0; r < t->row_count; r++) {
        put_line(out, t->groups.at[r]);
        for (int c = 0; c < t->column_count; c++) {
            cell one = cell_at(t, r, c);
            size_t begin = plain.count; /* codes of a terminal have no width */
            put_cell(&plain, &text_look, &one);
            int left = c ? 0 : indent, space = width[c] - left - written_width(&plain, begin);
            bool right = t->columns.at[c].align == TABLE_RIGHT;
            text_fill(out, ' ', left + (right ? space : 0));
            put_cell(out, k, &one);
            text_fill(out, ' ', GAP + (right ? 0 : space));
        }
        end_line(out);
    }
    out->failed |= plain.failed;
    text_free(&plain);
    put_paragraph(out, t->caption);
    put_paragraph(out, t->protocol);
    for (int n = 0; n < t->note_count; n++) put_paragraph(out, t->notes.at[n]);
}

/* ---- Markdown ---- */

static void escape_markdown(text_buffer *out, const char *text) {
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|~$&", *text)) text_put(out, "\\");
        text_fill(out, *text, 1);
    }
}

static const look markdown_look = {escape_markdown,   "±", "-", "+", "[", "--", {"", "**", "<u>"},
                                   {"", "**", "</u>"}};

/* The one head Markdown has: the group's name above the column's. */
static void put_markdown_head(const table *t, int column, text_buffer *out) {
    if (t->columns.at[column].group) {
        escape_markdown(out, t->columns.at[column].group);
        text_put(out, "<br>");
    }
    escape_markdown(out, head_of(t, column));
}

static void measure_markdown(const table *t, int *width, text_buffer *out) {
    text_buffer scratch = {0};
    for (int c = 0; c < t->column_count; c++) {
        size_t begin = scratch.count;
        put_markdown_head(t, c, &scratch);
        width[c] = written_width(&scratch, begin);
        if (width[c] < 3) width[c] = 3; /* of the rule */
        for (int r = 0; r < t->row_count; r++) {
            cell one = cell_at(t, r, c);
            begin = scratch.count;
            put_cell(&scratch, &markdown_look, &one);
            if (written_width(&scratch, begin) > width[c])
                width[c] = written_width(&scratch, begin);
        }
    }
    out->failed |= scratch.failed;
    text_free(&scratch);
}

static void put_markdown_group(const table *t, const char *group, const int *width,
                               text_buffer *out) {
    for (int c = 0; c < t->column_count; c++) {
        text_put(out, "| ");
        size_t begin = out->count;
        if (!c) {
            text_put(out, "*");
            escape_markdown(out, group);
            text_put(out, "*");
        }
        pad(out, begin, width[c], TABLE_LEFT);
        text_put(out, " ");
    }
    text_put(out, "|\n");
}

static void render_markdown(const table *t, int *width, text_buffer *out) {
    measure_markdown(t, width, out);
    if (t->title) {
        text_put(out, "**");
        escape_markdown(out, t->title);
        text_put(out, t->caption || t->protocol ? ".** " : ".**");
    }
    if (t->caption) escape_markdown(out, t->caption);
    if (t->caption && t->protocol) text_put(out, " ");
    if (t->protocol) escape_markdown(out, t->protocol);
    if (t->title || t->caption || t->protocol) text_put(out, "\n\n");
    for (int c = 0; c < t->column_count; c++) {
        text_put(out, "| ");
        size_t begin = out->count;
        put_markdown_head(t, c, out);
        pad(out, begin, width[c], t->columns.at[c].align);
        text_put(out, " ");
    }
    text_put(out, "|\n");
    for (int c = 0; c < t->column_count; c++) {
        bool right = t->columns.at[c].align == TABLE_RIGHT;
        text_put(out, right ? "| " : "| :");
        text_fill(out, '-', width[c] - 1);
        text_put(out, right ? ": " : " ");
    }
    text_put(out, "|\n");
    for (int r = 0; r < t->row_count; r++) {
        if (t->groups.at[r]) put_markdown_group(t, t->groups.at[r], width, out);
        for (int c = 0; c < t->column_count; c++) {
            cell one = cell_at(t, r, c);
            text_put(out, "| ");
            size_t begin = out->count;
            put_cell(out, &markdown_look, &one);
            pad(out, begin, width[c], t->columns.at[c].align);
            text_put(out, " ");
        }
        text_put(out, "|\n");
    }
    for (int n = 0; n < t->note_count; n++) {
        text_put(out, "\n");
        escape_markdown(out, t->notes.at[n]);
        text_put(out, "\n");
    }
}

/* ---- CSV ---- */

/* Quoted if RFC 4180 requires it. */
static void put_field(text_buffer *out, bool *first, const char *text) {
    if (!*first) text_put(out, ",");
    *first = false;
    if (!strpbrk(text, ",\"\r\n")) {
        text_put(out, text);
        return;
    }
    text_put(out, "\"");
    for (; *text; text++) text_fill(out, *text, *text == '"' ? 2 : 1);
    text_put(out, "\"");
}

/* A field of words. A spreadsheet would evaluate text that looks like a formula; an apostrophe in
 * front makes it text again. Numbers never come here, so their signs stay. */
static void put_words(text_buffer *out, bool *first, const char *text) {
    static const char *const formula[] = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
    const char *begin = text + strspn(text, " ");
    bool computed = false;
    for (size_t i = 0; i < sizeof formula / sizeof *formula; i++)
        computed |= !strncmp(begin, formula[i], strlen(formula[i]));
    text_buffer words = {0};
    text_print(&words, "%s%s", computed ? "'" : "", text);
    put_field(out, first, words.at ? words.at : "");
    out->failed |= words.failed;
    text_free(&words);
}

enum { PARTS = 4 };

static void put_part(text_buffer *out, bool *first, const cell *c, int part) {
    cell_parts parts = cell_print_exact(c);
    const char *const number[PARTS] = {parts.value, parts.sd, parts.low, parts.high};
    if (c->kind == CELL_TEXT)
        put_words(out, first, part == 0 && c->text ? c->text : "");
    else
        put_field(out, first, number[part]);
}

/* Which parts a column's cells have by their kinds: a missing number keeps its field. */
static void column_parts(const table *t, int column, bool has[PARTS]) {
    memset(has, 0, PARTS * sizeof *has);
    for (int r = 0; r < t->row_count; r++) {
        cell_kind kind = cell_at(t, r, column).kind;
        if (kind == CELL_INTERVAL)
            has[2] = has[3] = true;
        else if (kind != CELL_EMPTY)
            has[0] = true;
        if (kind == CELL_MEAN) has[1] = true;
    }
    if (!has[2]) has[0] = true;
}

static void render_csv(const table *t, text_buffer *out) {
    bool grouped = has_row_groups(t), first = true;
    if (grouped) put_field(out, &first, "group");
    for (int c = 0; c < t->column_count; c++) {
        static const char *const suffix[PARTS] = {" mean", " sd", " low", " high"};
        bool has[PARTS];
        column_parts(t, c, has);
        for (int p = 0; p < PARTS; p++) {
            if (!has[p]) continue;
            const char *group = t->columns.at[c].group;
            text_buffer name = {0};
            text_print(&name, "%s%s%s%s", group ? group : "", group ? " " : "", head_of(t, c),
                       p || has[1] ? suffix[p] : "");
            put_words(out, &first, name.at ? name.at : "");
            out->failed |= name.failed;
            text_free(&name);
        }
    }
    if (t->mark) put_field(out, &first, "mark");
    text_put(out, "\n");
    const char *group = "";
    for (int r = 0; r < t->row_count; r++) {
        if (t->groups.at[r]) group = t->groups.at[r];
        first = true;
        if (grouped) put_words(out, &first, group);
        for (int c = 0; c < t->column_count; c++) {
            bool has[PARTS];
            column_parts(t, c, has);
            cell one = cell_at(t, r, c);
            for (int p = 0; p < PARTS; p++)
                if (has[p]) put_part(out, &first, &one, p);
        }
        if (t->mark) put_words(out, &first, t->mark);
        text_put(out, "\n");
    }
}

/* ---- LaTeX ---- */

/* Characters with a meaning in TeX, ligatures that would change the dashes of options, and
 * characters that plain pdfLaTeX does not know. '[' and '*' would be read as arguments of a "\\"
 * before them. */
static void escape_latex(text_buffer *out, const char *text) {
    static const struct {
        const char *character, *tex;
    } special[] = {{"\\", "\\textbackslash{}"},
                   {"{", "\\{"},
                   {"}", "\\}"},
                   {"$", "\\$"},
                   {"&", "\\&"},
                   {"#", "\\#"},
                   {"_", "\\_"},
                   {"%", "\\%"},
                   {"~", "\\textasciitilde{}"},
                   {"^", "\\textasciicircum{}"},
                   {"<", "\\textless{}"},
                   {">", "\\textgreater{}"},
                   {"|", "\\textbar{}"},
                   {"\"", "{''}"},
                   {"[", "{[}"},
                   {"*", "{*}"},
                   {"-", "-{}"},
                   {"`", "{`}"},
                   {"'", "{'}"},
                   {"±", "$\\pm$"},
                   {"−", "$-$"},
                   {"×", "$\\times$"},
                   {"·", "$\\cdot$"},
                   {"≤", "$\\le$"},
                   {"≥", "$\\ge$"},
                   {"≈", "$\\approx$"},
                   {"∞", "$\\infty$"},
                   {"→", "$\\rightarrow$"},
                   {"α", "$\\alpha$"},
                   {"β", "$\\beta$"},
                   {"Δ", "$\\Delta$"},
                   {"μ", "$\\mu$"},
                   {"σ", "$\\sigma$"},
                   {"τ", "$\\tau$"},
                   {"–", "--"},
                   {"—", "---"},
                   {"…", "\\dots{}"}};
    while (*text) {
        size_t i = 0, count = sizeof special / sizeof *special;
        while (i < count && strncmp(text, special[i].character, strlen(special[i].character))) i++;
        bool lone = *text == '-' && text[1] != '-'; /* "--" alone is a ligature */
        if (i < count && !lone) {
            text_put(out, special[i].tex);
            text += strlen(special[i].character);
        } else {
            text_fill(out, *text, 1);
            text++;
        }
    }
}

static const look latex_look = {
    escape_latex,  "$\\pm$", "$-$", "$+$", "{[}", "--", {"", "\\textbf{", "\\underline{"},
    {"", "}", "}"}};

static void put_latex_groups(const table *t, text_buffer *out) {
    for (int line = 0; line < 2; line++) {
        text_put(out, "   ");
        for (int c = 0, last; c < t->column_count; c = last + 1) {
            last = span_end(t, c);
            const char *group = t->columns.at[c].group;
            if (line == 0 && c) text_put(out, " &");
            if (group && line == 0) {
                text_print(out, " \\multicolumn{%d}{c}{", last - c + 1);
                escape_latex(out, group);
                text_put(out, "}");
            } else if (group) {
                text_print(out, " \\cmidrule(lr){%d-%d}", c + 1, last + 1);
            }
        }
        text_put(out, line ? "\n" : " \\\\\n");
    }
}

static void render_latex(const table *t, text_buffer *out) {
    text_put(out, "% needs \\usepackage{booktabs}\n");
    if (t->protocol) text_print(out, "%% %s\n", t->protocol); /* no line ends in it: see keep */
    text_put(out, "\\begin{table}[t]\n  \\centering\n");
    if (t->title || t->caption) {
        text_put(out, "  \\caption{");
        if (t->title) escape_latex(out, t->title);
        if (t->title) text_put(out, t->caption ? ". " : ".");
        if (t->caption) escape_latex(out, t->caption);
        text_put(out, "}\n");
    }
    text_put(out, "  \\begin{tabular}{");
    for (int c = 0; c < t->column_count; c++)
        text_put(out, t->columns.at[c].align == TABLE_LEFT ? "l" : "r");
    text_put(out, "}\n    \\toprule\n");
    if (has_column_groups(t)) put_latex_groups(t, out);
    for (int c = 0; c < t->column_count; c++) {
        text_put(out, c ? " & " : "    ");
        escape_latex(out, head_of(t, c));
    }
    text_put(out, " \\\\\n    \\midrule\n");
    for (int r = 0; r < t->row_count; r++) {
        if (t->groups.at[r]) {
            if (r) text_put(out, "    \\addlinespace\n");
            text_print(out, "    \\multicolumn{%d}{l}{\\textit{", t->column_count);
            escape_latex(out, t->groups.at[r]);
            text_put(out, "}} \\\\\n");
        }
        for (int c = 0; c < t->column_count; c++) {
            cell one = cell_at(t, r, c);
            text_put(out, c ? " & " : "    ");
            put_cell(out, &latex_look, &one);
        }
        text_put(out, " \\\\\n");
    }
    text_put(out, "    \\bottomrule\n  \\end{tabular}\n");
    for (int n = 0; n < t->note_count; n++) {
        text_put(out, n ? "  \\\\ {\\footnotesize " : "  \\par\\smallskip\n  {\\footnotesize ");
        escape_latex(out, t->notes.at[n]);
        text_put(out, "}\n");
    }
    text_put(out, "\\end{table}\n");
}

/* ---- HTML ---- */

static const look html_look = {html_put,
                               "±",
                               "−",
                               "+",
                               "[",
                               "<span class=\"none\">–</span>",
                               {"", "<b>", "<u>"},
                               {"", "</b>", "</u>"}};

/* A column without any content, such as the paper's numbers for a data set that the paper does not
 * have. */
static bool says_nothing(const table *t, int column) {
    for (int r = 0; r < t->row_count; r++) {
        cell one = cell_at(t, r, column);
        cell_parts parts = cell_print(&one);
        if (one.text || *parts.value || *parts.low) return false;
    }
    return true;
}

static int shown_columns(int first, int last, const int *hidden) {
    int count = 0;
    for (int c = first; c <= last; c++) count += !hidden[c];
    return count;
}

/* One line of heads: groups above their columns, or single columns that span both lines. */
static void put_html_heads(const table *t, const int *hidden, text_buffer *out) {
    bool grouped = has_column_groups(t);
    for (int line = grouped ? 0 : 1; line < 2; line++) {
        text_put(out, "<tr>");
        for (int c = 0, last; c < t->column_count; c = last + 1) {
            last = line || !t->columns.at[c].group ? c : span_end(t, c);
            int span = shown_columns(c, last, hidden);
            const char *group = t->columns.at[c].group;
            if (!span || (line && grouped && !group)) continue;
            const char *left = t->columns.at[c].align == TABLE_LEFT ? " class=\"left\"" : "";
            if (!line && group)
                text_print(out, "<th scope=\"colgroup\" colspan=\"%d\" class=\"group\">", span);
            else
                text_print(out, "<th scope=\"col\"%s%s>", line ? "" : " rowspan=\"2\"", left);
            html_put(out, !line && group ? group : head_of(t, c));
            text_put(out, "</th>");
        }
        text_put(out, "</tr>\n");
    }
}

static void render_html(const table *t, int *hidden, text_buffer *out) {
    for (int c = 0; c < t->column_count; c++) hidden[c] = says_nothing(t, c);
    text_put(out, "<figure class=\"table\"><div class=\"scroll\" tabindex=\"0\" role=\"region\""
                  " aria-label=\"");
    html_put(out, t->title ? t->title : "Table");
    text_put(out, "\"><table>\n<caption>");
    html_put(out, t->title ? t->title : "");
    text_put(out, "</caption>\n<thead>");
    put_html_heads(t, hidden, out);
    text_put(out, "</thead>\n<tbody>\n");
    for (int r = 0; r < t->row_count; r++) {
        if (t->groups.at[r]) {
            text_put(out, r ? "</tbody>\n<tbody>\n" : "");
            text_print(out, "<tr class=\"set\"><th scope=\"rowgroup\" colspan=\"%d\">",
                       shown_columns(0, t->column_count - 1, hidden));
            html_put(out, t->groups.at[r]);
            text_put(out, "</th></tr>\n");
        }
        text_put(out, "<tr>");
        for (int c = 0; c < t->column_count; c++) {
            cell one = cell_at(t, r, c);
            if (hidden[c]) continue;
            if (!c && one.kind == CELL_TEXT) {
                text_put(out, "<th scope=\"row\">");
                put_cell(out, &html_look, &one);
                text_put(out, "</th>");
            } else {
                bool left = t->columns.at[c].align == TABLE_LEFT;
                text_put(out, left ? "<td class=\"left\">" : "<td>");
                put_cell(out, &html_look, &one);
                text_put(out, "</td>");
            }
        }
        text_put(out, "</tr>\n");
    }
    text_put(out, "</tbody></table></div>\n<figcaption>");
    if (t->caption) html_put(out, t->caption);
    for (int n = 0; n < t->note_count; n++) {
        text_put(out, " ");
        html_put(out, t->notes.at[n]);
    }
    text_put(out, "</figcaption>\n");
    if (t->protocol) {
        text_put(out, "<details><summary>Protocol</summary><p class=\"protocol\">");
        html_put(out, t->protocol);
        text_put(out, "</p></details>\n");
    }
    text_put(out, "</figure>\n");
}

/* ---- all ---- */

fr_status table_render(const table *t, table_format format, text_buffer *out, fr_error *err) {
    int *width = NULL; /* [column_count] of text and Markdown; in HTML: 1 = left out */
    if (t->failure.code) return fail(err, t->failure.code, "%s", t->failure.message);
    if (!t->column_count) return fail(err, FR_EUSAGE, "table: no columns");
    TRY(ALLOCATE(width, t->column_count, err));
    switch (format) {
    case TABLE_TEXT: render_text(t, &text_look, width, out); break;
    case TABLE_ANSI: render_text(t, &ansi_look, width, out); break;
    case TABLE_MARKDOWN: render_markdown(t, width, out); break;
    case TABLE_CSV: render_csv(t, out); break;
    case TABLE_LATEX: render_latex(t, out); break;
    case TABLE_HTML: render_html(t, width, out); break;
    }
    free(width);
    return text_status(out, err);
}

fr_status table_write(const table *t, const char *path, fr_error *err) {
    static const struct {
        const char *suffix;
        table_format format;
    } formats[] = {
        {".txt", TABLE_TEXT}, {".md", TABLE_MARKDOWN}, {".csv", TABLE_CSV}, {".tex", TABLE_LATEX}};
    const char *dot = strrchr(path_name(path), '.');
    size_t i = 0, count = sizeof formats / sizeof *formats;
    while (i < count && (!dot || strcmp(dot, formats[i].suffix))) i++;
    if (i == count)
        return fail(err, FR_EUSAGE, "%s: a table needs a name that ends in .txt, .md, .csv or .tex",
                    path);
    text_buffer text = {0};
    writer w = {0};
    fr_status status = table_render(t, formats[i].format, &text, err);
    if (!status) status = writer_open(&w, path, err);
    if (!status) status = writer_put(&w, text.at, text.count, err);
    if (!status) status = writer_commit(&w, err);
    writer_discard(&w);
    text_free(&text);
    return status;
}
