/* plot.h - one panel of a figure, between its layout (chart.c) and its drawing.
 *
 * chart.c asks every panel for its ranges and for the room it needs around its plot area, gives all
 * plot areas one size, and has them drawn.
 */
#ifndef FR_REPORT_PLOT_H
#define FR_REPORT_PLOT_H

#include "report/axis.h"
#include "report/canvas.h"
#include "report/chart.h"
#include "report/style.h"

#define NAME_GAP (SIZE_TICK * 1.15) /* between names at the ends of lines */

/* Run memory of figure_write. */
typedef struct plot {
    const chart_panel *panel;
    axis_range x_range, y_range; /* lines, steps, bars (y) */
    bool x_numbers, y_numbers;   /* shown at this panel's axes; and the axes' labels: */
    bool x_label, y_label;
    bool scale; /* a matrix shows its colours */
    bool hints; /* tooltips with the values */
    int x_ticks, y_ticks;
    axis_tick x_tick[AXIS_TICKS], y_tick[AXIS_TICKS];
    double left, right, top, bottom; /* room around the plot area */
    double x, y, width, height;      /* the plot area */
} plot;

/* ---- plot.c: panels with axes ---- */

/* Ranges of the panel's data; chart.c may enlarge them before the rest. */
void plot_ranges(plot *p);
/* Ticks and room for a plot area of about this size. */
void plot_measure(canvas *c, plot *p, double width, double height);
fr_status plot_draw(canvas *c, const plot *p, fr_error *err);

/* Title and labels of the axes. */
void plot_labels(canvas *c, const plot *p);

/* Moves ascending positions y[count] apart until they are `gap` from each other, each as close to
 * its old position as possible, and all within top..bottom if they fit. */
void plot_spread(double *y, int count, double gap, double top, double bottom);

/* ---- matrix.c ---- */

/* Whether two panels have the same colours. */
bool matrix_same_scale(const chart_panel *a, const chart_panel *b);
void matrix_measure(canvas *c, plot *p);
void matrix_draw(canvas *c, const plot *p);

#endif
