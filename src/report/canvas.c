/* canvas.c - see canvas.h. */
#include "report/canvas.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "report/html.h"

#include <cairo-pdf.h>
#include <cairo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOTS_PER_INCH = 300, POINTS_PER_INCH = 72 };

enum { FORMAT_SVG, FORMAT_PDF, FORMAT_PNG };

/* Run memory of one page. */
struct canvas {
    int format;             /* FORMAT_* */
    char *path;             /* NULL = an element of a page */
    text_buffer bytes;      /* of the file */
    cairo_surface_t *ruled; /* nothing is drawn on it: text is measured */
    cairo_t *ruler;
    cairo_surface_t *surface; /* PDF, PNG */
    cairo_t *cairo;
    fr_error failure; /* the first one */
};

/* ---- colours ---- */

colour colour_mix(colour a, colour b, double share) {
    return (colour){a.r + (b.r - a.r) * share, a.g + (b.g - a.g) * share,
                    a.b + (b.b - a.b) * share};
}

static double linear_light(double v) {
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

double colour_luminance(colour c) {
    return 0.2126 * linear_light(c.r) + 0.7152 * linear_light(c.g) + 0.0722 * linear_light(c.b);
}

/* ---- files ---- */

static cairo_status_t put_bytes(void *user, const unsigned char *bytes, unsigned int size) {
    canvas *c = user;
    text_put_bytes(&c->bytes, (const char *)bytes, size);
    return c->bytes.failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* The text in printable form, which is UTF-8, as cairo needs it. NULL if there is no memory;
 * canvas_end reports this. */
static char *printable(canvas *c, const char *text) {
    size_t size = fr_text_printable(text, NULL, 0) + 1;
    char *out = malloc(size);
    if (out)
        (void)fr_text_printable(text, out, size);
    else if (!c->failure.code)
        (void)fail_memory(&c->failure, size);
    return out;
}

/* Exact positions of letters at any resolution, and grey smoothing, so that all formats agree. */
static void set_font_options(cairo_t *cairo) {
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(cairo, options);
    cairo_font_options_destroy(options);
}

/* A coordinate with hundredths at most: "12", "12.5". */
static void put_coordinate(text_buffer *out, const char *before, double value) {
    char digits[32];
    double hundredths = round(value * 100) / 100;
    (void)text_real(hundredths == 0 ? 0 : hundredths, false, digits, sizeof digits);
    text_print(out, "%s%s", before, digits);
}

static void put_colour(text_buffer *out, const char *name, colour c) {
    text_print(out, " %s=\"#%02x%02x%02x\"", name, (unsigned)lround(c.r * 255),
               (unsigned)lround(c.g * 255), (unsigned)lround(c.b * 255));
}

static void start_svg(canvas *c, double width, double height, const char *title) {
    if (c->path) text_put(&c->bytes, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text_put(&c->bytes, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    if (c->path) { /* in a page, the style sets the size */
        put_coordinate(&c->bytes, " width=\"", width);
        put_coordinate(&c->bytes, "pt\" height=\"", height);
        text_put(&c->bytes, "pt\"");
    }
    put_coordinate(&c->bytes, " viewBox=\"0 0 ", width);
    put_coordinate(&c->bytes, " ", height);
    text_put(&c->bytes, "\" font-family=\"DejaVu Sans, sans-serif\"");
    if (title) { /* a title element would be shown wherever the pointer rests */
        text_put(&c->bytes, c->path ? ">\n<title>" : " aria-label=\"");
        html_put(&c->bytes, title);
        text_put(&c->bytes, c->path ? "</title" : "\"");
    }
    text_put(&c->bytes, ">\n");
    const paint white = {.filled = true, .fill = {1, 1, 1}};
    canvas_rectangle(c, 0, 0, width, height, &white);
}

static void start_cairo(canvas *c, double width, double height, const char *title) {
    if (c->format == FORMAT_PDF) {
        c->surface = cairo_pdf_surface_create_for_stream(put_bytes, c, width, height);
        /* A fixed date instead of the present one, so equal figures are equal files. */
        cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
        char *shown = title ? printable(c, title) : NULL;
        if (shown) cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_TITLE, shown);
        free(shown);
        c->cairo = cairo_create(c->surface);
    } else {
        const double scale = (double)DOTS_PER_INCH / POINTS_PER_INCH;
        c->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * scale),
                                                (int)ceil(height * scale));
        c->cairo = cairo_create(c->surface);
        cairo_scale(c->cairo, scale, scale);
    }
    cairo_set_source_rgb(c->cairo, 1, 1, 1);
    cairo_paint(c->cairo);
    set_font_options(c->cairo);
}

fr_status canvas_open(canvas **out, const char *path, fr_error *err) {
    *out = NULL;
    const char *dot = path ? strrchr(path_name(path), '.') : ".svg";
    static const char *const suffix[] = {".svg", ".pdf", ".png"};
    int format = 0;
    while (format < 3 && (!dot || strcmp(dot, suffix[format]))) format++;
    if (format == 3)
        return fail(err, FR_EUSAGE, "%s: a figure needs a name that ends in .svg, .pdf or .png",
                    path);
    canvas *c;
    TRY(ALLOCATE(c, 1, err));
    *out = c;
    c->format = format;
    c->path = path ? strdup(path) : NULL;
    if (path && !c->path) return fail_memory(err, strlen(path));
    c->ruled = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    c->ruler = cairo_create(c->ruled);
    set_font_options(c->ruler);
    return FR_OK;
}

void canvas_page(canvas *c, double width, double height, const char *title) {
    if (c->format == FORMAT_SVG)
        start_svg(c, width, height, title);
    else
        start_cairo(c, width, height, title);
}

fr_status canvas_end(canvas *c, fr_error *err) {
    cairo_status_t drawn = cairo_status(c->ruler);
    if (c->format == FORMAT_SVG) {
        text_put(&c->bytes, "</svg>\n");
    } else {
        if (!drawn) drawn = cairo_status(c->cairo);
        if (c->format == FORMAT_PNG && !drawn)
            drawn = cairo_surface_write_to_png_stream(c->surface, put_bytes, c);
        cairo_surface_finish(c->surface);
        if (!drawn) drawn = cairo_surface_status(c->surface);
    }
    if (c->failure.code) return fail(err, c->failure.code, "%s", c->failure.message);
    TRY(text_status(&c->bytes, err));
    if (drawn)
        return fail(err, drawn == CAIRO_STATUS_NO_MEMORY ? FR_ENOMEM : FR_EINPUT,
                    "%s: cannot be drawn: %s", c->path ? c->path : "figure",
                    cairo_status_to_string(drawn));
    return FR_OK;
}

bool canvas_equal(const canvas *a, const canvas *b) {
    return a->bytes.count == b->bytes.count && !memcmp(a->bytes.at, b->bytes.at, a->bytes.count);
}

fr_status canvas_commit(const canvas *c, fr_error *err) {
    writer file = {0};
    fr_status status = writer_open(&file, c->path, err);
    if (!status) status = writer_put(&file, c->bytes.at, c->bytes.count, err);
    if (!status) status = writer_commit(&file, err);
    writer_discard(&file);
    return status;
}

void canvas_put(const canvas *c, text_buffer *out) {
    text_put_bytes(out, c->bytes.at, c->bytes.count);
}

void canvas_discard(canvas *c) {
    if (!c) return;
    if (c->cairo) cairo_destroy(c->cairo);
    if (c->surface) {
        cairo_surface_finish(c->surface);
        cairo_surface_destroy(c->surface);
    }
    if (c->ruler) cairo_destroy(c->ruler);
    if (c->ruled) cairo_surface_destroy(c->ruled);
    text_free(&c->bytes);
    free(c->path);
    free(c);
}

/* ---- shapes ---- */

static void put_svg_paint(text_buffer *out, const paint *p) {
    if (p->filled) {
        put_colour(out, "fill", p->fill);
        if (p->opacity > 0) put_coordinate(out, " fill-opacity=\"", p->opacity);
        if (p->opacity > 0) text_put(out, "\"");
    } else {
        text_put(out, " fill=\"none\"");
    }
    if (p->width > 0) {
        put_colour(out, "stroke", p->line);
        put_coordinate(out, " stroke-width=\"", p->width);
        text_put(out, "\" stroke-linejoin=\"round\"");
        if (p->dash) {
            put_coordinate(out, " stroke-dasharray=\"", p->dash[0]);
            put_coordinate(out, " ", p->dash[1]);
            text_put(out, "\"");
        }
    }
    text_put(out, "/>\n");
}

/* Paints cairo's current path. */
static void paint_cairo(cairo_t *cairo, const paint *p) {
    if (p->filled) {
        cairo_set_source_rgba(cairo, p->fill.r, p->fill.g, p->fill.b,
                              p->opacity > 0 ? p->opacity : 1);
        cairo_fill_preserve(cairo);
    }
    if (p->width > 0) {
        cairo_set_source_rgb(cairo, p->line.r, p->line.g, p->line.b);
        cairo_set_line_width(cairo, p->width);
        cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
        cairo_set_dash(cairo, p->dash, p->dash ? 2 : 0, 0);
        cairo_stroke_preserve(cairo);
    }
    cairo_new_path(cairo);
}

void canvas_path(canvas *c, const point *points, int count, bool closed, const paint *p) {
    if (count < 2) return;
    if (c->format == FORMAT_SVG) {
        text_print(&c->bytes, "<poly%s points=\"", closed ? "gon" : "line");
        for (int i = 0; i < count; i++) {
            put_coordinate(&c->bytes, i ? " " : "", points[i].x);
            put_coordinate(&c->bytes, ",", points[i].y);
        }
        text_put(&c->bytes, "\"");
        put_svg_paint(&c->bytes, p);
        return;
    }
    for (int i = 0; i < count; i++) cairo_line_to(c->cairo, points[i].x, points[i].y);
    if (closed) cairo_close_path(c->cairo);
    paint_cairo(c->cairo, p);
}

void canvas_line(canvas *c, double x0, double y0, double x1, double y1, const paint *p) {
    canvas_path(c, (point[]){{x0, y0}, {x1, y1}}, 2, false, p);
}

void canvas_rectangle(canvas *c, double x, double y, double width, double height, const paint *p) {
    if (c->format == FORMAT_SVG) {
        put_coordinate(&c->bytes, "<rect x=\"", x);
        put_coordinate(&c->bytes, "\" y=\"", y);
        put_coordinate(&c->bytes, "\" width=\"", width);
        put_coordinate(&c->bytes, "\" height=\"", height);
        text_put(&c->bytes, "\"");
        put_svg_paint(&c->bytes, p);
        return;
    }
    cairo_rectangle(c->cairo, x, y, width, height);
    paint_cairo(c->cairo, p);
}

void canvas_circle(canvas *c, double x, double y, double radius, const paint *p) {
    if (c->format == FORMAT_SVG) {
        put_coordinate(&c->bytes, "<circle cx=\"", x);
        put_coordinate(&c->bytes, "\" cy=\"", y);
        put_coordinate(&c->bytes, "\" r=\"", radius);
        text_put(&c->bytes, "\"");
        put_svg_paint(&c->bytes, p);
        return;
    }
    cairo_new_sub_path(c->cairo);
    cairo_arc(c->cairo, x, y, radius, 0, 2 * M_PI);
    paint_cairo(c->cairo, p);
}

void canvas_clip(canvas *c, double x, double y, double width, double height) {
    if (c->format == FORMAT_SVG) { /* an inner picture clips and needs no id */
        put_coordinate(&c->bytes, "<svg x=\"", x);
        put_coordinate(&c->bytes, "\" y=\"", y);
        put_coordinate(&c->bytes, "\" width=\"", width);
        put_coordinate(&c->bytes, "\" height=\"", height);
        put_coordinate(&c->bytes, "\" viewBox=\"", x);
        put_coordinate(&c->bytes, " ", y);
        put_coordinate(&c->bytes, " ", width);
        put_coordinate(&c->bytes, " ", height);
        text_put(&c->bytes, "\">\n");
        return;
    }
    cairo_save(c->cairo);
    cairo_rectangle(c->cairo, x, y, width, height);
    cairo_clip(c->cairo);
}

void canvas_unclip(canvas *c) {
    if (c->format == FORMAT_SVG)
        text_put(&c->bytes, "</svg>\n");
    else
        cairo_restore(c->cairo);
}

/* An invisible circle with the tooltip. */
void canvas_hint(canvas *c, double x, double y, const char *text) {
    const double reach = 4;
    if (c->format != FORMAT_SVG) return;
    put_coordinate(&c->bytes, "<circle cx=\"", x);
    put_coordinate(&c->bytes, "\" cy=\"", y);
    put_coordinate(&c->bytes, "\" r=\"", reach);
    text_put(&c->bytes, "\" fill-opacity=\"0\"><title>");
    html_put(&c->bytes, text);
    text_put(&c->bytes, "</title></circle>\n");
}

/* ---- text ---- */

static void set_font(cairo_t *cairo, double size, bool bold) {
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, size);
}

double canvas_text_width(canvas *c, const char *text, double size, bool bold) {
    cairo_text_extents_t extents = {0};
    char *shown = printable(c, text);
    set_font(c->ruler, size, bold);
    if (shown) cairo_text_extents(c->ruler, shown, &extents);
    free(shown);
    return extents.x_advance;
}

void canvas_text(canvas *c, double x, double y, const char *text, const lettering *l) {
    if (!*text) return;
    if (c->format == FORMAT_SVG) {
        static const char *const anchors[] = {"start", "middle", "end"};
        put_coordinate(&c->bytes, "<text x=\"", x);
        put_coordinate(&c->bytes, "\" y=\"", y);
        put_coordinate(&c->bytes, "\" font-size=\"", l->size);
        text_put(&c->bytes, "\"");
        if (l->bold) text_put(&c->bytes, " font-weight=\"bold\"");
        if (l->at != ANCHOR_LEFT) text_print(&c->bytes, " text-anchor=\"%s\"", anchors[l->at]);
        if (l->angle != 0) {
            put_coordinate(&c->bytes, " transform=\"rotate(", -l->angle);
            put_coordinate(&c->bytes, " ", x);
            put_coordinate(&c->bytes, " ", y);
            text_put(&c->bytes, ")\"");
        }
        put_colour(&c->bytes, "fill", l->ink);
        text_put(&c->bytes, ">");
        html_put(&c->bytes, text);
        text_put(&c->bytes, "</text>\n");
        return;
    }
    double shift = canvas_text_width(c, text, l->size, l->bold) * (double)l->at / 2;
    char *shown = printable(c, text);
    cairo_save(c->cairo);
    set_font(c->cairo, l->size, l->bold);
    cairo_set_source_rgb(c->cairo, l->ink.r, l->ink.g, l->ink.b);
    cairo_translate(c->cairo, x, y);
    cairo_rotate(c->cairo, -l->angle * M_PI / 180);
    cairo_move_to(c->cairo, -shift, 0);
    if (shown) cairo_show_text(c->cairo, shown);
    free(shown);
    cairo_restore(c->cairo);
    cairo_new_path(c->cairo); /* show_text leaves a current point */
}
