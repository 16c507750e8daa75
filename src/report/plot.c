/* plot.c - panels with axes: lines, steps and bars. */
#include "report/plot.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARKED = 40, MARKERS = 8 }; /* the longest series with all its markers; those of others */

#define TICK       2.5  /* length */
#define LEADER     9.0  /* from the end of a line to its name */
#define GROUP_FULL 0.8  /* of a group's width that its bars take */
#define SLANT      35.0 /* degrees of names that do not fit side by side */

/* ---- ranges ---- */

static bool is_fixed(const chart_axis *axis) { return axis->low < axis->high; }

static void include_ticks(axis_range *r, const chart_axis *axis) {
    for (int i = 0; i < axis->tick_count; i++) axis_include(r, axis->ticks[i]);
}

void plot_ranges(plot *p) {
    const chart_panel *panel = p->panel;
    bool bars = panel->kind == CHART_BARS;
    axis_range x = axis_empty(!bars && panel->x.log), y = axis_empty(panel->y.log);
    for (int s = 0; s < panel->series_count; s++) {
        const chart_series *one = &panel->series[s];
        for (int i = 0; i < one->n; i++) {
            if (!bars) axis_include(&x, one->x[i]);
            axis_include(&y, one->y[i]);
            if (one->low && !isnan(one->y[i])) axis_include(&y, one->low[i]);
            if (one->high && !isnan(one->y[i])) axis_include(&y, one->high[i]);
        }
    }
    if (panel->zero_line || bars) axis_include(&y, 0);
    include_ticks(&x, &panel->x);
    include_ticks(&y, &panel->y);
    if (is_fixed(&panel->x)) {
        x.low = panel->x.low;
        x.high = panel->x.high;
    }
    if (is_fixed(&panel->y)) {
        y.low = panel->y.low;
        y.high = panel->y.high;
    }
    p->x_range = x;
    p->y_range = y;
}

/* ---- measuring ---- */

static int make_ticks(const axis_range *r, const chart_axis *axis, int most, axis_tick *out) {
    if (!axis->tick_count) return axis_ticks(r, most, out);
    int count = axis->tick_count < AXIS_TICKS ? axis->tick_count : AXIS_TICKS;
    for (int i = 0; i < count; i++) {
        out[i].value = axis->ticks[i];
        int decimals = 0;
        while (decimals < 4 && fabs(axis->ticks[i] * pow(10, decimals) -
                                    round(axis->ticks[i] * pow(10, decimals))) > 1e-9)
            decimals++;
        axis_label(axis->ticks[i], decimals, out[i].label);
    }
    return count;
}

static const char *tick_text(const chart_axis *axis, const axis_tick *ticks, int i) {
    return axis->tick_count && axis->tick_names ? axis->tick_names[i] : ticks[i].label;
}

/* Whether names of groups have to be slanted to fit side by side. Stores the room they need below
 * the axis and, left of it, before their groups' middles. */
static bool names_slant(canvas *c, const chart_panel *panel, double width, double *below,
                        double *before) {
    double widest = 0;
    for (int g = 0; g < panel->group_count; g++)
        widest = fmax(widest, canvas_text_width(c, panel->groups[g], SIZE_TICK, false));
    bool slant = panel->group_count && widest + 3 > width / panel->group_count;
    const double angle = slant ? SLANT * M_PI / 180 : 0;
    *below = SIZE_TICK + widest * sin(angle);
    *before = slant ? widest * cos(angle) : 0;
    return slant;
}

void plot_measure(canvas *c, plot *p, double width, double height) {
    const chart_panel *panel = p->panel;
    p->y_ticks = make_ticks(&p->y_range, &panel->y, (int)fmin(height / 11, 7), p->y_tick);
    p->x_ticks = panel->kind == CHART_BARS
                     ? 0
                     : make_ticks(&p->x_range, &panel->x, (int)(width / 20), p->x_tick);
    double numbers = 0, beside = 0, below = SIZE_TICK, before = 0;
    for (int i = 0; i < p->y_ticks; i++)
        numbers = fmax(numbers,
                       canvas_text_width(c, tick_text(&panel->y, p->y_tick, i), SIZE_TICK, false));
    for (int s = 0; panel->direct && s < panel->series_count; s++)
        if (panel->series[s].name)
            beside = fmax(beside,
                          canvas_text_width(c, panel->series[s].name, SIZE_TICK, false) + LEADER);
    if (p->x_ticks && p->x_numbers) { /* the last number may reach beyond the axis */
        const axis_tick *last = &p->x_tick[p->x_ticks - 1];
        const char *text = tick_text(&panel->x, p->x_tick, p->x_ticks - 1);
        beside = fmax(beside, canvas_text_width(c, text, SIZE_TICK, false) / 2 -
                                  width * (1 - axis_place(&p->x_range, last->value)));
    }
    if (panel->kind == CHART_BARS) {
        (void)names_slant(c, panel, width, &below, &before);
        before -= width / panel->group_count / 2;
    }
    p->left = TICK + 2 + (p->y_numbers ? numbers : 0) + (p->y_label ? SIZE_LABEL + 4 : 0);
    if (p->x_numbers) p->left = fmax(p->left, before);
    p->right = fmax(beside, 4);
    p->top = panel->title ? SIZE_TITLE + 5 : 4;
    p->bottom = TICK + 3 + (p->x_numbers ? below : 0) + (p->x_label ? SIZE_LABEL + 4 : 0);
}

/* ---- places ---- */

static double x_of(const plot *p, double value) {
    return p->x + p->width * axis_place(&p->x_range, value);
}

static double y_of(const plot *p, double value) {
    return p->y + p->height * (1 - axis_place(&p->y_range, value));
}

/* The end of an interval; one that has no place on a log axis is at the bottom. */
static double end_of(const plot *p, double value) {
    double y = y_of(p, value);
    return isnan(y) && p->y_range.log && !isnan(value) ? p->y + p->height : y;
}

static bool has_point(const plot *p, const chart_series *s, int i) {
    return !isnan(x_of(p, s->x[i])) && !isnan(y_of(p, s->y[i]));
}

static bool has_interval(const chart_series *s, int i) {
    return s->low && s->high && isfinite(s->low[i]) && isfinite(s->high[i]);
}

/* ---- the frame ---- */

static void draw_frame(canvas *c, const plot *p) {
    const chart_panel *panel = p->panel;
    const double bottom = p->y + p->height, right = p->x + p->width;
    const paint grid = {.width = 0.5, .line = GRID}, axis = {.width = LINE_THIN, .line = FAINT};
    const lettering number = {.size = SIZE_TICK, .ink = INK, .at = ANCHOR_RIGHT};
    for (int i = 0; i < p->y_ticks; i++) {
        double y = y_of(p, p->y_tick[i].value);
        const char *text = tick_text(&panel->y, p->y_tick, i);
        if (!(y >= p->y - 0.01 && y <= bottom + 0.01)) continue;
        if (*text) canvas_line(c, p->x, y, right, y, &grid);
        canvas_line(c, p->x - (*text ? TICK : TICK / 2), y, p->x, y, &axis);
        if (p->y_numbers) canvas_text(c, p->x - TICK - 2, y + SIZE_TICK * 0.36, text, &number);
    }
    /* From the right, leaving out names that would touch: the last one is the whole catalog. */
    double free_to = INFINITY;
    const lettering below = {.size = SIZE_TICK, .ink = INK, .at = ANCHOR_MIDDLE};
    for (int i = p->x_ticks - 1; i >= 0; i--) {
        double x = x_of(p, p->x_tick[i].value);
        const char *text = tick_text(&panel->x, p->x_tick, i);
        if (!(x >= p->x - 0.01 && x <= right + 0.01)) continue;
        canvas_line(c, x, bottom, x, bottom + (*text ? TICK : TICK / 2), &axis);
        double half = canvas_text_width(c, text, SIZE_TICK, false) / 2;
        if (!p->x_numbers || !*text || x + half > free_to) continue;
        canvas_text(c, x, bottom + TICK + 1 + SIZE_TICK, text, &below);
        free_to = x - half - 3;
    }
    canvas_path(c, (point[]){{p->x, p->y}, {p->x, bottom}, {right, bottom}}, 3, false, &axis);
    double zero = y_of(p, 0);
    if ((panel->zero_line || panel->kind == CHART_BARS) && zero >= p->y && zero < bottom - 0.01) {
        const paint line = {.width = 0.8, .line = COLOUR(0x555555)};
        canvas_line(c, p->x, zero, right, zero, &line);
    }
}

void plot_labels(canvas *c, const plot *p) {
    const chart_panel *panel = p->panel;
    const lettering title = {.size = SIZE_TITLE, .bold = true, .ink = INK, .at = ANCHOR_MIDDLE};
    const lettering label = {.size = SIZE_LABEL, .ink = INK, .at = ANCHOR_MIDDLE};
    const lettering upward = {.size = SIZE_LABEL, .ink = INK, .at = ANCHOR_MIDDLE, .angle = 90};
    if (panel->title) canvas_text(c, p->x + p->width / 2, p->y - 5, panel->title, &title);
    if (p->x_label)
        canvas_text(c, p->x + p->width / 2, p->y + p->height + p->bottom - 2, panel->x.label,
                    &label);
    if (p->y_label)
        canvas_text(c, p->x - p->left + SIZE_LABEL, p->y + p->height / 2, panel->y.label, &upward);
}

/* ---- lines and steps ---- */

/* The end of the run of points (or of points with intervals) that begins at `first`. */
static int run_end(const plot *p, const chart_series *s, int first, bool interval) {
    int end = first;
    while (end < s->n && has_point(p, s, end) && (!interval || has_interval(s, end))) end++;
    return end;
}

/* The polygon between low and high; a single point has an error bar instead. */
static void draw_band(canvas *c, const plot *p, const chart_series *s, point *room) {
    const paint band = {.filled = true, .fill = style_colour(s->style), .opacity = 0.18};
    const paint bar = {.width = 0.8, .line = style_colour(s->style)};
    bool steps = p->panel->kind == CHART_STEPS;
    for (int first = 0, end; first < s->n; first = end + 1) {
        end = run_end(p, s, first, true);
        int count = 0;
        for (int i = first; i < end; i++) {
            double x = x_of(p, s->x[i]), y = end_of(p, s->high[i]);
            if (steps && i > first) room[count] = (point){x, room[count - 1].y}, count++;
            room[count++] = (point){x, y};
        }
        for (int i = end - 1; i >= first; i--) {
            double x = x_of(p, s->x[i]), y = end_of(p, s->low[i]);
            room[count++] = (point){x, y};
            if (steps && i > first) room[count++] = (point){x, end_of(p, s->low[i - 1])};
        }
        if (end - first > 1)
            canvas_path(c, room, count, true, &band);
        else if (count)
            canvas_path(c, room, count, false, &bar);
    }
}

static void draw_curve(canvas *c, const plot *p, const chart_series *s, point *room) {
    const paint line = style_line(s->style);
    bool steps = p->panel->kind == CHART_STEPS;
    for (int first = 0, end; first < s->n; first = end + 1) {
        end = run_end(p, s, first, false);
        int count = 0;
        for (int i = first; i < end; i++) {
            double x = x_of(p, s->x[i]);
            if (steps && i > first) room[count] = (point){x, room[count - 1].y}, count++;
            room[count++] = (point){x, y_of(p, s->y[i])};
        }
        if (steps && end == s->n && count) /* the last value continues to the end of the axis */
            room[count] = (point){p->x + p->width, room[count - 1].y}, count++;
        canvas_path(c, room, count, false, &line);
    }
    int every = s->n > MARKED ? s->n / MARKERS : 1;
    int offset = every > 1 ? abs(s->style % MARKERS) * every / MARKERS : 0; /* not all in a line */
    for (int i = 0; i < s->n; i++)
        if (i % every == offset && has_point(p, s, i))
            style_marker(c, s->style, x_of(p, s->x[i]), y_of(p, s->y[i]));
}

/* "CRAFT-R at 20: 0.7232 [0.7218, 0.7246]"; `text` has the place. */
static void put_hint(canvas *c, const chart_series *s, int i, text_buffer *text, double x,
                     double y) {
    text_print(text, ": %.4f", s->y[i]);
    if (has_interval(s, i) && s->low[i] < s->high[i])
        text_print(text, " [%.4f, %.4f]", s->low[i], s->high[i]);
    if (text->at) canvas_hint(c, x, y, text->at);
    text_free(text);
}

static void put_hints(canvas *c, const plot *p, const chart_series *s) {
    for (int i = 0; p->hints && i < s->n; i++) {
        text_buffer text = {0};
        if (!has_point(p, s, i)) continue;
        text_print(&text, "%s at %.6g", s->name ? s->name : "", s->x[i]);
        put_hint(c, s, i, &text, x_of(p, s->x[i]), y_of(p, s->y[i]));
    }
}

/* The nearest positions by least squares. Without i * gap the positions only have to ascend; then
 * each block gets the smallest mean of a prefix (isotonic regression). */
void plot_spread(double *y, int count, double gap, double top, double bottom) {
    for (int i = 0; i < count; i++) y[i] -= gap * i;
    for (int first = 0, end; first < count; first = end) {
        double sum = 0, least = INFINITY;
        end = first + 1;
        for (int last = first; last < count; last++) {
            sum += y[last];
            if (sum / (last - first + 1) > least) continue;
            least = sum / (last - first + 1);
            end = last + 1;
        }
        for (int i = first; i < end; i++) y[i] = least;
    }
    for (int i = 0; i < count; i++)
        y[i] = fmax(fmin(y[i], bottom - gap * (count - 1)), top) + gap * i;
}

typedef struct line_end {
    const chart_series *series;
    double x, y;
} line_end;

static int by_height(const void *a, const void *b) {
    const line_end *l = a, *r = b;
    if (l->y != r->y) return l->y < r->y ? -1 : 1;
    return (l->series > r->series) - (l->series < r->series); /* as they were given */
}

/* Names at the right, in the order of the ends of their lines. `ends` and `y` have room for all. */
static void draw_names(canvas *c, const plot *p, line_end *ends, double *y) {
    int count = 0;
    for (int s = 0; s < p->panel->series_count; s++) {
        const chart_series *one = &p->panel->series[s];
        int last = one->n - 1;
        while (last >= 0 && !has_point(p, one, last)) last--;
        if (last < 0 || !one->name) continue;
        double x = p->panel->kind == CHART_STEPS ? p->x + p->width : x_of(p, one->x[last]);
        double height = fmin(fmax(y_of(p, one->y[last]), p->y), p->y + p->height);
        ends[count++] = (line_end){one, x, height};
    }
    qsort(ends, (size_t)count, sizeof *ends, by_height);
    for (int i = 0; i < count; i++) y[i] = ends[i].y;
    plot_spread(y, count, NAME_GAP, p->y, p->y + p->height);
    const double left = p->x + p->width + LEADER - 1;
    for (int i = 0; i < count; i++) {
        const lettering name = {.size = SIZE_TICK, .ink = style_ink(ends[i].series->style)};
        const paint leader = {.width = 0.5, .line = style_colour(ends[i].series->style)};
        canvas_line(c, fmin(ends[i].x + 3, left - 4), ends[i].y, left - 1, y[i], &leader);
        canvas_text(c, left, y[i] + SIZE_TICK * 0.36, ends[i].series->name, &name);
    }
}

/* ---- bars ---- */

static void draw_bars(canvas *c, const plot *p) {
    const chart_panel *panel = p->panel;
    double group = p->width / fmax(panel->group_count, 1);
    double width = group * GROUP_FULL / fmax(panel->series_count, 1);
    double zero = panel->y.log ? p->y + p->height : y_of(p, 0);
    const paint error = {.width = 0.8, .line = INK};
    canvas_clip(c, p->x, p->y, p->width, p->height);
    for (int s = 0; s < panel->series_count; s++) {
        const chart_series *one = &panel->series[s];
        for (int g = 0; g < one->n && g < panel->group_count; g++) {
            double y = y_of(p, one->y[g]);
            double x = p->x + group * (g + (1 - GROUP_FULL) / 2) + width * s;
            if (isnan(y)) continue;
            style_bar(c, one->style, x + 0.4, fmin(y, zero), width - 0.8, fabs(y - zero));
            double middle = x + width / 2;
            if (p->hints) {
                text_buffer text = {0};
                text_print(&text, "%s, %s", panel->groups[g], one->name ? one->name : "");
                put_hint(c, one, g, &text, middle, y);
            }
            if (!has_interval(one, g)) continue;
            double low = end_of(p, one->low[g]), high = end_of(p, one->high[g]);
            double cap = fmin(width * 0.25, 2.5);
            canvas_line(c, middle, low, middle, high, &error);
            canvas_line(c, middle - cap, low, middle + cap, low, &error);
            canvas_line(c, middle - cap, high, middle + cap, high, &error);
        }
    }
    canvas_unclip(c);
    if (!p->x_numbers) return;
    double below, before;
    bool slant = names_slant(c, panel, p->width, &below, &before);
    const lettering name = {.size = SIZE_TICK,
                            .ink = INK,
                            .at = slant ? ANCHOR_RIGHT : ANCHOR_MIDDLE,
                            .angle = slant ? SLANT : 0};
    for (int g = 0; g < panel->group_count; g++)
        canvas_text(c, p->x + group * (g + 0.5) + (slant ? 2 : 0),
                    p->y + p->height + TICK + 1 + SIZE_TICK * (slant ? 0.6 : 1), panel->groups[g],
                    &name);
}

/* ---- all ---- */

static bool has_data(const plot *p) {
    for (int s = 0; s < p->panel->series_count; s++)
        for (int i = 0; i < p->panel->series[s].n; i++)
            if (p->panel->kind == CHART_BARS ? !isnan(p->panel->series[s].y[i])
                                             : has_point(p, &p->panel->series[s], i))
                return true;
    return false;
}

fr_status plot_draw(canvas *c, const plot *p, fr_error *err) {
    const chart_panel *panel = p->panel;
    fr_status status = FR_OK;
    point *room = NULL;
    line_end *ends = NULL;
    double *places = NULL;
    draw_frame(c, p);
    plot_labels(c, p);
    if (!has_data(p)) {
        const lettering none = {.size = SIZE_LABEL, .ink = FAINT, .at = ANCHOR_MIDDLE};
        canvas_text(c, p->x + p->width / 2, p->y + p->height / 2, "no data", &none);
        goto done;
    }
    if (panel->kind == CHART_BARS) {
        draw_bars(c, p);
        goto done;
    }
    int longest = 0;
    for (int s = 0; s < panel->series_count; s++)
        if (panel->series[s].n > longest) longest = panel->series[s].n;
    if ((status = ALLOCATE(room, 4 * (size_t)longest + 2, err))) goto done;
    if ((status = ALLOCATE(ends, panel->series_count, err))) goto done;
    if ((status = ALLOCATE(places, panel->series_count, err))) goto done;
    /* Markers at the edges stay whole. */
    canvas_clip(c, p->x - 3, p->y - 3, p->width + 6, p->height + 6);
    for (int s = 0; s < panel->series_count; s++)
        if (panel->series[s].low && panel->series[s].high) draw_band(c, p, &panel->series[s], room);
    for (int s = 0; s < panel->series_count; s++) /* solid first, so dashes stay visible */
        draw_curve(c, p, &panel->series[s], room);
    for (int s = 0; s < panel->series_count; s++) put_hints(c, p, &panel->series[s]);
    canvas_unclip(c);
    if (panel->direct) draw_names(c, p, ends, places);
done:
    free(room);
    free(ends);
    free(places);
    return status;
}
