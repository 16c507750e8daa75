/* canvas.h - a page to draw on, written as SVG, PDF or PNG.
 *
 * cairo writes PDF and PNG. SVG is written here, because cairo turns text into outlines with ids
 * that repeat from file to file: labels could not be searched or read aloud, and two figures in one
 * HTML page would share letters. All formats measure text in the same way, so a figure has the same
 * layout in each. Equal drawings give equal bytes (no dates, no counters).
 *
 * Units are points (1/72 inch), y grows downward. Drawing returns no status: the first failure is
 * kept, and canvas_end returns it.
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
 * `path` is NULL; text can be measured from now on. Nothing is written before canvas_commit. Call
 * canvas_discard on *out in any case. */
fr_status canvas_open(canvas **out, const char *path, fr_error *err);
/* Begins the page, once, before anything is drawn. The title goes into the file's metadata; NULL =
 * none. */
void canvas_page(canvas *c, double width, double height, const char *title);
/* Ends the page: the bytes of the file are complete. */
fr_status canvas_end(canvas *c, fr_error *err);
/* True if two finished pages have the same bytes. */
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
/* The tooltip near (x, y); SVG only. */
void canvas_hint(canvas *c, double x, double y, const char *text);
double canvas_text_width(canvas *c, const char *text, double size, bool bold);
/* Until canvas_unclip only the inside of the rectangle is drawn on. Not nested. */
void canvas_clip(canvas *c, double x, double y, double width, double height);
void canvas_unclip(canvas *c);

#endif
