/* chart.c - the layout of a figure: a grid of panels whose plot areas are all of one size and
 * aligned in rows and columns, and one legend above them.
 *
 * Panels say how much room they need around their plot areas; the largest need in a grid column or
 * row applies to all of it, and the remaining width is shared equally. Axis labels that are
 * equal along a row or column are shown once, at its outer end.
 */
#include "base/memory.h"
#include "report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_PER_CM (72 / 2.54)
#define GAP           8.0 /* between panels */
#define MARGIN        2.0 /* around the figure */
#define LEGEND_KEY    18.0
#define LEGEND_GAP    10.0
#define LEGEND_LINE   11.0

/* One entry of the legend: a series, and whether it is drawn as a bar. */
typedef struct legend_entry {
    const chart_series *series;
    bool bar;
    double width;
    int line; /* of the legend */
} legend_entry;

/* Run memory of figure_write. */
typedef struct layout {
    const figure *figure;
    int columns, rows;
    plot *plots;          /* [panel_count] */
    double *left, *right; /* [columns] largest need of the column's panels */
    double *top, *bottom; /* [rows] */
    legend_entry *legend; /* [entries] */
    int entries, legend_lines;
    double width, height;           /* of the page */
    double plot_width, plot_height; /* of every plot area */
} layout;

static fr_status check(const figure *f, fr_error *err) {
    if (f->panel_count < 1) return fail(err, FR_EUSAGE, "figure: no panels");
    for (int i = 0; i < f->panel_count; i++) {
        const chart_panel *p = &f->panels[i];
        if (p->kind == CHART_MATRIX && (p->rows < 1 || p->columns < 1 || !p->cells))
            return fail(err, FR_EUSAGE, "figure: panel %d is a matrix without cells", i + 1);
        if (p->kind == CHART_BARS && p->group_count < 1)
            return fail(err, FR_EUSAGE, "figure: panel %d has bars without groups", i + 1);
        const chart_axis *axes[] = {&p->x, &p->y};
        for (int a = 0; a < 2; a++)
            if (axes[a]->log && axes[a]->low < axes[a]->high && !(axes[a]->low > 0))
                return fail(err, FR_EUSAGE,
                            "figure: panel %d has a log axis from %g, expected above 0", i + 1,
                            axes[a]->low);
    }
    return FR_OK;
}

static bool equal(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* ---- ranges and labels ---- */

static void settle_ranges(layout *l) {
    const figure *f = l->figure;
    axis_range x = axis_empty(false), y = axis_empty(false);
    for (int i = 0; i < f->panel_count; i++) {
        if (f->panels[i].kind == CHART_MATRIX) continue;
        plot_ranges(&l->plots[i]);
        axis_include(&x, l->plots[i].x_range.low);
        axis_include(&x, l->plots[i].x_range.high);
        axis_include(&y, l->plots[i].y_range.low);
        axis_include(&y, l->plots[i].y_range.high);
    }
    for (int i = 0; i < f->panel_count; i++) {
        const chart_panel *panel = &f->panels[i];
        plot *p = &l->plots[i];
        if (panel->kind == CHART_MATRIX) continue;
        if (f->same_x && x.low <= x.high) p->x_range = (axis_range){panel->x.log, x.low, x.high};
        if (f->same_y && y.low <= y.high) p->y_range = (axis_range){panel->y.log, y.low, y.high};
        bool based = p->y_range.low == 0; /* bars and shares stand on their axis */
        axis_settle(&p->x_range, panel->x.low < panel->x.high ? 0 : 0.03);
        axis_settle(&p->y_range, panel->y.low < panel->y.high ? 0 : 0.05);
        if (based && p->y_range.low < 0 && !panel->y.log) p->y_range.low = 0;
    }
}

/* Whether the panel is the lowest of its grid column. */
static bool is_lowest(const layout *l, int i) { return i + l->columns >= l->figure->panel_count; }

static void choose_labels(layout *l) {
    const figure *f = l->figure;
    for (int i = 0; i < f->panel_count; i++) {
        const chart_panel *panel = &f->panels[i];
        plot *p = &l->plots[i];
        bool first = i % l->columns == 0, lowest = is_lowest(l, i);
        bool matrix = panel->kind == CHART_MATRIX, last = (i + 1) % l->columns == 0;
        p->x_numbers = lowest || !(matrix || f->same_x);
        p->y_numbers = first || !(matrix || f->same_y);
        p->x_label =
            panel->x.label && (lowest || !equal(panel->x.label, f->panels[i + l->columns].x.label));
        p->y_label = panel->y.label && (first || !equal(panel->y.label, f->panels[i - 1].y.label));
        if (!matrix) continue;
        p->scale = last || i + 1 == f->panel_count || !matrix_same_scale(panel, &f->panels[i + 1]);
        if (!lowest) { /* heads that differ from the panel below are needed */
            const chart_panel *below = &f->panels[i + l->columns];
            p->x_numbers = below->column_heads != panel->column_heads;
        }
        if (!first) p->y_numbers = f->panels[i - 1].row_heads != panel->row_heads;
    }
}

/* ---- legend ---- */

static fr_status gather_legend(layout *l, canvas *c, fr_error *err) {
    const figure *f = l->figure;
    size_t most = 0;
    for (int i = 0; i < f->panel_count; i++)
        if (f->panels[i].kind != CHART_MATRIX) most += (size_t)f->panels[i].series_count;
    TRY(ALLOCATE(l->legend, most, err));
    for (int i = 0; i < f->panel_count; i++) {
        const chart_panel *p = &f->panels[i];
        bool curve = p->kind == CHART_LINES || p->kind == CHART_STEPS;
        if (p->kind == CHART_MATRIX || (p->direct && curve)) continue;
        for (int s = 0; s < p->series_count; s++) {
            const chart_series *one = &p->series[s];
            int e = 0;
            while (e < l->entries && !(equal(l->legend[e].series->name, one->name) &&
                                       l->legend[e].series->style == one->style))
                e++;
            if (!one->name || e < l->entries) continue;
            double width = LEGEND_KEY + canvas_text_width(c, one->name, SIZE_LABEL, false);
            l->legend[l->entries++] = (legend_entry){one, p->kind == CHART_BARS, width, 0};
        }
    }
    if (l->entries == 0) return FR_OK;
    double used = 0;
    for (int e = 0; e < l->entries; e++) {
        if (e && used + LEGEND_GAP + l->legend[e].width > l->width - 2 * MARGIN) {
            l->legend_lines++;
            used = 0;
        }
        used += (used > 0 ? LEGEND_GAP : 0) + l->legend[e].width;
        l->legend[e].line = l->legend_lines;
    }
    l->legend_lines++;
    return FR_OK;
}

static void draw_legend(const layout *l, canvas *c) {
    const lettering name = {.size = SIZE_LABEL, .ink = INK};
    for (int e = 0, end; e < l->entries; e = end) {
        double width = -LEGEND_GAP;
        for (end = e; end < l->entries && l->legend[end].line == l->legend[e].line; end++)
            width += l->legend[end].width + LEGEND_GAP;
        double x = (l->width - width) / 2;
        double y = MARGIN + LEGEND_LINE * (l->legend[e].line + 0.5);
        for (int i = e; i < end; i++) {
            const chart_series *one = l->legend[i].series;
            if (l->legend[i].bar) {
                style_bar(c, one->style, x + 5, y - 3, 9, 6);
            } else {
                const paint line = style_line(one->style);
                canvas_line(c, x, y, x + LEGEND_KEY - 4, y, &line);
                style_marker(c, one->style, x + (LEGEND_KEY - 4) / 2, y);
            }
            canvas_text(c, x + LEGEND_KEY, y + SIZE_LABEL * 0.36, one->name, &name);
            x += l->legend[i].width + LEGEND_GAP;
        }
    }
}

/* ---- layout ---- */

/* Height of plot areas of this width. */
static double height_for(const figure *f, double width) {
    if (f->plot_height_cm > 0) return f->plot_height_cm * POINTS_PER_CM;
    const chart_panel *p = &f->panels[0];
    if (p->kind == CHART_MATRIX) return width * p->rows / p->columns;
    double least = 0; /* names at the ends of lines need one line each */
    for (int i = 0; i < f->panel_count; i++)
        if (f->panels[i].direct) least = fmax(least, NAME_GAP * f->panels[i].series_count);
    return fmax(width * (f->columns > 2 ? 0.9 : 0.68), least);
}

static void measure(layout *l, canvas *c) {
    const figure *f = l->figure;
    double width = l->width / l->columns - 40; /* about: numbers at the axes take some */
    for (int i = 0; i < f->panel_count; i++) {
        plot *p = &l->plots[i];
        int column = i % l->columns, row = i / l->columns;
        if (p->panel->kind == CHART_MATRIX)
            matrix_measure(c, p);
        else
            plot_measure(c, p, width, height_for(f, width));
        l->left[column] = fmax(l->left[column], p->left);
        l->right[column] = fmax(l->right[column], p->right);
        l->top[row] = fmax(l->top[row], p->top);
        l->bottom[row] = fmax(l->bottom[row], p->bottom);
    }
    double rest = l->width - 2 * MARGIN - GAP * (l->columns - 1);
    for (int k = 0; k < l->columns; k++) rest -= l->left[k] + l->right[k];
    l->plot_width = fmax(rest / l->columns, 20);
    l->plot_height = height_for(f, l->plot_width);
    double y = MARGIN + (l->legend_lines ? l->legend_lines * LEGEND_LINE + 3 : 0);
    for (int r = 0; r < l->rows; r++) {
        double x = MARGIN;
        y += l->top[r] + (r ? GAP / 2 : 0);
        for (int k = 0; k < l->columns; k++) {
            int i = r * l->columns + k;
            x += l->left[k];
            if (i < f->panel_count) {
                plot *p = &l->plots[i];
                p->x = x;
                p->y = y;
                p->width = l->plot_width;
                p->height = l->plot_height;
                p->left = l->left[k]; /* labels of a column or row are aligned */
                p->bottom = l->bottom[r];
            }
            x += l->plot_width + l->right[k] + GAP;
        }
        y += l->plot_height + l->bottom[r];
    }
    l->height = y + MARGIN;
}

/* Draws the whole page. The caller frees *out, even on failure. */
static fr_status draw(const figure *f, const char *path, canvas **out, fr_error *err) {
    layout l = {.figure = f, .columns = f->columns > 0 ? f->columns : 1};
    *out = NULL;
    if (l.columns > f->panel_count) l.columns = f->panel_count;
    l.rows = (f->panel_count + l.columns - 1) / l.columns;
    l.width = (f->width_cm > 0 ? f->width_cm : l.columns == 1 ? 8.4 : 17.4) * POINTS_PER_CM;
    fr_status status;
    if ((status = ALLOCATE(l.plots, f->panel_count, err))) goto done;
    if ((status = ALLOCATE(l.left, 2 * l.columns, err))) goto done;
    if ((status = ALLOCATE(l.top, 2 * l.rows, err))) goto done;
    l.right = l.left + l.columns;
    l.bottom = l.top + l.rows;
    if ((status = canvas_open(out, path, err))) goto done;
    canvas *c = *out;
    if ((status = gather_legend(&l, c, err))) goto done;
    for (int i = 0; i < f->panel_count; i++) {
        l.plots[i].panel = &f->panels[i];
        l.plots[i].hints = f->hints;
    }
    settle_ranges(&l);
    choose_labels(&l);
    measure(&l, c);
    canvas_page(c, l.width, l.height, f->title);
    draw_legend(&l, c);
    for (int i = 0; i < f->panel_count; i++) {
        if (f->panels[i].kind == CHART_MATRIX)
            matrix_draw(c, &l.plots[i]);
        else if ((status = plot_draw(c, &l.plots[i], err)))
            goto done;
    }
    status = canvas_end(c, err);
done:
    free(l.plots);
    free(l.left);
    free(l.top);
    free(l.legend);
    return status;
}

/* If memory runs out, cairo and its libraries silently leave things out or write them differently.
 * So a figure is drawn twice, which takes milliseconds, and both results must be equal. */
static fr_status draw_twice(const figure *f, const char *path, canvas **out, fr_error *err) {
    canvas *again = NULL;
    *out = NULL;
    TRY(check(f, err));
    fr_status status = draw(f, path, out, err);
    if (!status) status = draw(f, path, &again, err);
    if (!status && !canvas_equal(*out, again)) status = fail_memory(err, 0);
    canvas_discard(again);
    return status;
}

fr_status figure_write(const figure *f, const char *path, fr_error *err) {
    canvas *c;
    fr_status status = draw_twice(f, path, &c, err);
    if (!status) status = canvas_commit(c, err);
    canvas_discard(c);
    return status;
}

fr_status figure_put(const figure *f, text_buffer *out, fr_error *err) {
    canvas *c;
    fr_status status = draw_twice(f, NULL, &c, err);
    if (!status) canvas_put(c, out);
    canvas_discard(c);
    return status;
}

/* ---- numbers ---- */

static cell name_cell(const char *name) { return name ? cell_text(name) : cell_empty(); }

static void put_point(table *t, const chart_panel *p, const chart_series *s, int i) {
    const double *ends[] = {s->low, s->high};
    table_row(t, NULL);
    table_put(t, name_cell(p->title));
    table_put(t, name_cell(s->name));
    table_put(t, p->kind == CHART_BARS ? name_cell(p->groups[i]) : cell_number(s->x[i], 6));
    table_put(t, cell_number(s->y[i], 6));
    for (int e = 0; e < 2; e++) table_put(t, ends[e] ? cell_number(ends[e][i], 6) : cell_empty());
}

void figure_table(const figure *f, table *t) {
    static const char *const heads[] = {"panel", "series", "x", "y", "low", "high"};
    table_start(t, f->title, NULL);
    for (int i = 0; i < 6; i++) table_column(t, NULL, heads[i], i < 2 ? TABLE_LEFT : TABLE_RIGHT);
    for (int i = 0; i < f->panel_count; i++) {
        const chart_panel *p = &f->panels[i];
        for (int k = 0; p->kind == CHART_MATRIX && k < p->rows * p->columns; k++) {
            table_row(t, NULL);
            table_put(t, name_cell(p->title));
            table_put(t, name_cell(p->row_heads ? p->row_heads[k / p->columns] : NULL));
            table_put(t, name_cell(p->column_heads ? p->column_heads[k % p->columns] : NULL));
            table_put(t, cell_number(p->cells[k], 6));
        }
        for (int s = 0; p->kind != CHART_MATRIX && s < p->series_count; s++)
            for (int k = 0; k < p->series[s].n; k++) put_point(t, p, &p->series[s], k);
    }
}
