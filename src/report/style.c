/* style.c - see style.h. */
#include "report/style.h"

#include <math.h>
#include <stddef.h>

/* wedge: a triangle upside down */
typedef enum marker { CIRCLE, SQUARE, TRIANGLE, DIAMOND, WEDGE, NO_MARKER } marker;
typedef enum hatch { PLAIN, RISING, OPEN, LEVEL, FALLING, CROSSED } hatch;

static const struct {
    unsigned hex;
    double dash[2]; /* {0} = solid */
    marker marker;
    bool hollow;
    hatch hatch;
} styles[STYLES + QUIET_STYLES] = {{0x0072b2, {0, 0}, CIRCLE, false, PLAIN},
                                   {0xd55e00, {4, 1.5}, SQUARE, false, RISING},
                                   {0x009e73, {1.2, 1.2}, TRIANGLE, false, OPEN},
                                   {0xcc79a7, {6, 2}, DIAMOND, false, LEVEL},
                                   {0x000000, {2.5, 1.5}, CIRCLE, true, FALLING},
                                   {0xe69f00, {0, 0}, WEDGE, false, CROSSED},
                                   {0x56b4e9, {3, 1}, SQUARE, true, PLAIN},
                                   {0x7f7f7f, {1, 2}, DIAMOND, true, RISING},
                                   {0x444444, {0, 0}, NO_MARKER, false, OPEN},
                                   {0x8a7a66, {0, 0}, NO_MARKER, false, PLAIN},
                                   {0x8a7a66, {4, 1.5}, NO_MARKER, false, RISING},
                                   {0x8a7a66, {1.2, 1.2}, NO_MARKER, false, LEVEL},
                                   {0xa39a90, {0, 0}, NO_MARKER, false, FALLING},
                                   {0xa39a90, {4, 1.5}, NO_MARKER, false, CROSSED}};

/* Any number to a place in the table. */
static int entry(int style) {
    if (style >= STYLE_QUIET) return STYLES + (style - STYLE_QUIET) % QUIET_STYLES;
    return (style % STYLES + STYLES) % STYLES;
}

colour style_colour(int style) { return COLOUR(styles[entry(style)].hex); }

colour style_ink(int style) {
    colour c = style_colour(style);
    while (colour_luminance(c) > 0.18) c = colour_mix(c, (colour){0, 0, 0}, 0.1); /* 4.5 to 1 */
    return c;
}

paint style_line(int style) {
    const double *dash = styles[entry(style)].dash;
    return (paint){.width = style < STYLE_QUIET ? LINE_DATA : 0.75 * LINE_DATA,
                   .line = style_colour(style),
                   .dash = dash[0] > 0 ? dash : NULL};
}

void style_marker(canvas *c, int style, double x, double y) {
    const double r = 2;
    bool hollow = styles[entry(style)].hollow;
    paint p = {.filled = true,
               .fill = hollow ? (colour){1, 1, 1} : style_colour(style),
               .width = hollow ? 0.8 : 0.5,
               .line = hollow ? style_colour(style) : (colour){1, 1, 1}};
    switch (styles[entry(style)].marker) {
    case CIRCLE: canvas_circle(c, x, y, r, &p); break;
    case SQUARE: canvas_rectangle(c, x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, &p); break;
    case TRIANGLE:
        canvas_path(
            c, (point[]){{x, y - 1.25 * r}, {x + 1.2 * r, y + 0.9 * r}, {x - 1.2 * r, y + 0.9 * r}},
            3, true, &p);
        break;
    case DIAMOND:
        canvas_path(
            c, (point[]){{x, y - 1.4 * r}, {x + 1.2 * r, y}, {x, y + 1.4 * r}, {x - 1.2 * r, y}}, 4,
            true, &p);
        break;
    case WEDGE:
        canvas_path(
            c, (point[]){{x, y + 1.25 * r}, {x + 1.2 * r, y - 0.9 * r}, {x - 1.2 * r, y - 0.9 * r}},
            3, true, &p);
        break;
    case NO_MARKER: break;
    }
}

/* Parallel lines through the clipped rectangle, rising or falling. */
static void draw_diagonals(canvas *c, double x, double y, double width, double height, bool rising,
                           const paint *p) {
    const double gap = 2.8;
    for (double d = -height + gap / 2; d < width; d += gap)
        canvas_line(c, x + d, rising ? y + height : y, x + d + height, rising ? y : y + height, p);
}

void style_bar(canvas *c, int style, double x, double y, double width, double height) {
    static const double tint[] = {[PLAIN] = 0,    [RISING] = 0.45,  [OPEN] = 0.8,
                                  [LEVEL] = 0.55, [FALLING] = 0.65, [CROSSED] = 0.5};
    hatch h = styles[entry(style)].hatch;
    colour full = style_colour(style);
    if (!(width > 0 && height > 0)) return;
    paint p = {.filled = true, .fill = colour_mix(full, (colour){1, 1, 1}, tint[h])};
    canvas_rectangle(c, x, y, width, height, &p);
    paint stroke = {.width = LINE_THIN, .line = full};
    if (h != PLAIN && h != OPEN) {
        canvas_clip(c, x, y, width, height);
        if (h == RISING || h == CROSSED) draw_diagonals(c, x, y, width, height, true, &stroke);
        if (h == FALLING || h == CROSSED) draw_diagonals(c, x, y, width, height, false, &stroke);
        for (double d = 1; h == LEVEL && d < height; d += 2)
            canvas_line(c, x, y + height - d, x + width, y + height - d, &stroke);
        canvas_unclip(c);
    }
    canvas_rectangle(c, x, y, width, height, &stroke);
}

colour style_heat(double share, bool diverging) {
    static const unsigned blues[] = {0xffffff, 0xdceaf6, 0x9cc7e3, 0x4a92c6, 0x1c5fa5, 0x08306b};
    static const unsigned oranges[] = {0xffffff, 0xfde6cf, 0xfdbf86, 0xf28c38, 0xc95a0a, 0x7f2f04};
    enum { STOPS = sizeof blues / sizeof *blues };
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    const unsigned *stops = diverging && share < 0.5 ? oranges : blues;
    double place = (diverging ? fabs(share - 0.5) * 2 : share) * (STOPS - 1);
    int below = place < STOPS - 1 ? (int)place : STOPS - 2;
    return colour_mix(COLOUR(stops[below]), COLOUR(stops[below + 1]), place - below);
}
