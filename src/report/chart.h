/* chart.h - figures: a grid of panels with one legend, written as SVG, PDF or PNG.
 *
 * A figure is plain structs over the caller's arrays, nothing is copied and nothing is kept. A
 * zero field has its default meaning (no label, range from the data, no legend entry).
 *
 *     const chart_series gain = {.name = "CRAFT-R", .n = 5, .x = k, .y = gain_at_k};
 *     const chart_panel panel = {.kind = CHART_LINES, .title = "LastFM",
 *                                .x = {.label = "K", .log = true}, .y = {.label = "gain in MRR"},
 *                                .series = &gain, .series_count = 1, .zero_line = true};
 *     const figure f = {.panels = &panel, .panel_count = 1};
 *     status = figure_write(&f, "gain.pdf", err);
 */
#ifndef FR_REPORT_CHART_H
#define FR_REPORT_CHART_H

#include "report/table.h"

typedef enum chart_kind {
    CHART_LINES,  /* y over x, a marker at each point */
    CHART_STEPS,  /* y keeps its value up to the next x: distributions */
    CHART_BARS,   /* y in each of the named groups */
    CHART_MATRIX, /* a number and a colour in each cell */
} chart_kind;

/* A point whose x or y is NaN (on a log axis: not positive) is a gap. */
typedef struct chart_series {
    const char *name;
    int n;                    /* points; bars: groups */
    const double *x, *y;      /* [n], x ascending; bars have no x */
    const double *low, *high; /* [n] or NULL: a band around lines, error bars on bars */
    int style;                /* the same look in all panels, see style.h */
} chart_series;

typedef struct chart_axis {
    const char *label;
    bool log;
    double low, high; /* the range, if low < high; data outside is cut off */
    /* Ticks by hand: values, and names in place of numbers (NULL = numbers). */
    int tick_count;
    const double *ticks;
    const char *const *tick_names;
} chart_axis;

typedef struct chart_panel {
    chart_kind kind;
    const char *title;
    chart_axis x, y;
    int series_count;
    const chart_series *series;
    bool zero_line; /* a line at y = 0, which the range then includes */
    bool direct;    /* names at the ends of lines and steps, not in the legend */

    /* CHART_BARS: names of the groups; y always includes 0. */
    int group_count;
    const char *const *groups;

    /* CHART_MATRIX: x.label and y.label name its sides; colours span scale_low..scale_high (from
     * the cells if both are 0), with white at 0 if 0 is between them. */
    int rows, columns;
    const char *const *row_heads, *const *column_heads;
    const double *cells; /* [rows][columns], NaN = none */
    double scale_low, scale_high;
    int decimals;
} chart_panel;

typedef struct figure {
    const char *title; /* metadata of the file, not drawn: captions belong to the page */
    int panel_count;
    const chart_panel *panels;
    int columns;           /* of the grid, filled row by row; 0 = 1 */
    double width_cm;       /* 0 = 8.4 with one column, else 17.4: one or two columns of print */
    double plot_height_cm; /* of each panel between its axes; 0 = by its width */
    bool same_x, same_y;   /* one range for all panels; inner panels then show no numbers */
    bool hints;            /* tooltips with the values, for a page */
} figure;

/* Writes the figure in the format of the suffix, atomically. Equal figures give equal bytes. */
fr_status figure_write(const figure *f, const char *path, fr_error *err);
/* Appends it as an SVG element for a page. */
fr_status figure_put(const figure *f, text_buffer *out, fr_error *err);
/* Its numbers: a row for every point, bar or cell. */
void figure_table(const figure *f, table *t);

#endif
