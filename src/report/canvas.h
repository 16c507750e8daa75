/* canvas.h - a page to draw on, written as SVG, PDF or PNG.
 *
 * PDF and PNG are cairo's. SVG is written here: cairo's own turns text into outlines under ids that
 * repeat from file to file, so that labels could not be searched or read aloud, and two figures in
 * one HTML page would take each other's letters. Text is measured by one ruler for all formats: a
 * figure has the same layout in each, and equal drawings give equal bytes (no dates, no counters).
 *
 * Units are points (1/72 inch), y grows downward. Drawing returns no status: the first failure is
 * kept and told by canvas_end.
 */
#ifndef FR_REPORT_CANVAS_H
#define FR_REPORT_CANVAS_H

#include "base/status.h"
#include "base/text.h"

typedef struct canvas canvas;

typedef struct colour {
    double r, g, b; /* 0..1 */
} colour;

#define COLOUR(hex)                                                                                \
    ((colour){(double)((hex) >> 16 & 255) / 255, (double)((hex) >> 8 & 255) / 255,                 \
              (double)((hex)&255) / 255})

/* a + (b - a) * share */
colour colour_mix(colour a, colour b, double share);
/* Relative luminance (WCAG): 0 black, 1 white. */
double colour_luminance(colour c);

/* How a shape is painted: filled, stroked or both. */
typedef struct paint {
    bool filled;
    colour fill;
    double opacity; /* of the filling; 0 = 1 */
    double width;   /* of the line, 0 = none */
    colour line;
    const double *dash; /* [2] on, off; NULL = solid */
} paint;

typedef enum anchor { ANCHOR_LEFT, ANCHOR_MIDDLE, ANCHOR_RIGHT } anchor;

typedef struct lettering {
    double size; /* points */
    bool bold;
    colour ink;
    anchor at;
    double angle; /* degrees, counter-clockwise around (x, y) */
} lettering;

typedef struct point {
    double x, y;
} point;

/* Prepares a file whose suffix (.svg .pdf .png) says the format, or an SVG element for a page if
 * `path` is NULL; text can be measured from now on. Nothing is written before canvas_commit. *out
 * is the caller's, to be given to canvas_discard in any case. */
fr_status canvas_open(canvas **out, const char *path, fr_error *err);
/* Begins the page, once, before anything is drawn. The title goes into the file's facts; NULL =
 * none. */
void canvas_page(canvas *c, double width, double height, const char *title);
/* Ends the page: the bytes of the file are complete. */
fr_status canvas_end(canvas *c, fr_error *err);
/* Do two pages that have ended give the same bytes? */
bool canvas_equal(const canvas *a, const canvas *b);
/* Writes the file of a page that has ended, atomically. */
fr_status canvas_commit(const canvas *c, fr_error *err);
/* Appends its bytes instead. */
void canvas_put(const canvas *c, text_buffer *out);
void canvas_discard(canvas *c);

/* A line through the points, or the area they enclose if `closed`. */
void canvas_path(canvas *c, const point *points, int count, bool closed, const paint *p);
void canvas_line(canvas *c, double x0, double y0, double x1, double y1, const paint *p);
void canvas_rectangle(canvas *c, double x, double y, double width, double height, const paint *p);
void canvas_circle(canvas *c, double x, double y, double radius, const paint *p);
/* One line of UTF-8; y is its base line. */
void canvas_text(canvas *c, double x, double y, const char *text, const lettering *l);
/* What a pointer that rests near (x, y) is told; SVG only. */
void canvas_hint(canvas *c, double x, double y, const char *text);
double canvas_text_width(canvas *c, const char *text, double size, bool bold);
/* Until canvas_unclip only the inside of the rectangle is drawn on. Not nested. */
void canvas_clip(canvas *c, double x, double y, double width, double height);
void canvas_unclip(canvas *c);

#endif
