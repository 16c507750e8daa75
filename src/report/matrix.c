/* matrix.c - a panel with a number and a colour in each cell, and the scale of its colours. */
#include "report/plot.h"

#include <math.h>

#define SCALE_WIDTH 6.0
enum { SCALE_STEPS = 32 };

/* The ends of the colours. A scale across 0 has 0 in its middle. */
static axis_range scale_of(const chart_panel *m, bool *diverging) {
    axis_range r = {false, m->scale_low, m->scale_high};
    if (!(r.low < r.high)) {
        r = axis_empty(false);
        for (int i = 0; i < m->rows * m->columns; i++) axis_include(&r, m->cells[i]);
        axis_settle(&r, 0);
    }
    *diverging = r.low < 0 && r.high > 0;
    if (*diverging) {
        r.high = fmax(r.high, -r.low);
        r.low = -r.high;
    }
    return r;
}

bool matrix_same_scale(const chart_panel *a, const chart_panel *b) {
    bool x, y;
    if (a->kind != CHART_MATRIX || b->kind != CHART_MATRIX) return false;
    axis_range one = scale_of(a, &x), other = scale_of(b, &y);
    return one.low == other.low && one.high == other.high;
}

/* Below the least step of a label two decimals are enough; whole scales need none. */
static int scale_decimals(const axis_range *r) {
    return r->high - r->low >= 10 ? 0 : r->high - r->low >= 1 ? 1 : 2;
}

void matrix_measure(canvas *c, plot *p) {
    const chart_panel *m = p->panel;
    double heads = 0, numbers = 0;
    for (int r = 0; r < m->rows && m->row_heads; r++)
        heads = fmax(heads, canvas_text_width(c, m->row_heads[r], SIZE_TICK, false));
    if (p->scale) {
        bool diverging;
        axis_range scale = scale_of(m, &diverging);
        for (int i = 0; i <= 2; i++) {
            char label[AXIS_LABEL];
            axis_label(scale.low + (scale.high - scale.low) * i / 2, scale_decimals(&scale), label);
            numbers = fmax(numbers, canvas_text_width(c, label, SIZE_TICK, false));
        }
    }
    p->left = (p->y_numbers ? heads : 0) + 4 + (p->y_label ? SIZE_LABEL + 4 : 0);
    p->right = p->scale ? 5 + SCALE_WIDTH + 3 + numbers : 3;
    p->top = m->title ? SIZE_TITLE + 5 : 4;
    p->bottom = 4 + (p->x_numbers && m->column_heads ? SIZE_TICK + 2 : 0) +
                (p->x_label ? SIZE_LABEL + 4 : 0);
}

static void draw_cell(canvas *c, const chart_panel *m, int i, const double box[4], double share,
                      bool diverging) {
    const double x = box[0], y = box[1], width = box[2], height = box[3];
    bool missing = isnan(m->cells[i]);
    colour ground = missing ? COLOUR(0xeeeeee) : style_heat(share, diverging);
    const paint fill = {.filled = true, .fill = ground, .width = 0.8, .line = {1, 1, 1}};
    canvas_rectangle(c, x, y, width, height, &fill);
    char number[AXIS_LABEL] = "–";
    if (!missing) axis_label(m->cells[i], m->decimals, number);
    double size = SIZE_TITLE, wide = canvas_text_width(c, number, size, false);
    if (wide > width - 3) size = fmax(size * (width - 3) / wide, SIZE_TICK - 1);
    /* White where it has more contrast to the ground than black (WCAG's ratio). */
    double light = colour_luminance(ground);
    bool white = 1.05 / (light + 0.05) > (light + 0.05) / 0.05;
    const lettering text = {
        .size = size, .ink = white ? (colour){1, 1, 1} : INK, .at = ANCHOR_MIDDLE};
    canvas_text(c, x + width / 2, y + height / 2 + size * 0.36, number, &text);
}

static void draw_scale(canvas *c, const plot *p, const axis_range *scale, bool diverging) {
    const double x = p->x + p->width + 5, step = p->height / SCALE_STEPS;
    for (int i = 0; i < SCALE_STEPS; i++) {
        const paint fill = {.filled = true, .fill = style_heat((i + 0.5) / SCALE_STEPS, diverging)};
        /* A little too high, so that no seam shows; the next one covers it. */
        canvas_rectangle(c, x, p->y + p->height - (i + 1) * step, SCALE_WIDTH, step + (i ? 0.3 : 0),
                         &fill);
    }
    const paint frame = {.width = 0.5, .line = FAINT};
    canvas_rectangle(c, x, p->y, SCALE_WIDTH, p->height, &frame);
    for (int i = 0; i <= 2; i++) {
        const lettering number = {.size = SIZE_TICK, .ink = INK};
        const double lift[] = {0, SIZE_TICK * 0.36, SIZE_TICK * 0.72};
        char label[AXIS_LABEL];
        axis_label(scale->low + (scale->high - scale->low) * i / 2, scale_decimals(scale), label);
        canvas_text(c, x + SCALE_WIDTH + 3, p->y + p->height * (1 - i / 2.0) + lift[i], label,
                    &number);
    }
}

void matrix_draw(canvas *c, const plot *p) {
    const chart_panel *m = p->panel;
    bool diverging;
    axis_range scale = scale_of(m, &diverging);
    plot_labels(c, p);
    const double width = p->width / fmax(m->columns, 1), height = p->height / fmax(m->rows, 1);
    for (int r = 0; r < m->rows; r++)
        for (int k = 0; k < m->columns; k++) {
            const double box[] = {p->x + k * width, p->y + r * height, width, height};
            int i = r * m->columns + k;
            draw_cell(c, m, i, box, axis_place(&scale, m->cells[i]), diverging);
        }
    const lettering row = {.size = SIZE_TICK, .ink = INK, .at = ANCHOR_RIGHT};
    const lettering middle = {.size = SIZE_TICK, .ink = INK, .at = ANCHOR_MIDDLE};
    for (int r = 0; r < m->rows && m->row_heads && p->y_numbers; r++)
        canvas_text(c, p->x - 4, p->y + (r + 0.5) * height + SIZE_TICK * 0.36, m->row_heads[r],
                    &row);
    for (int k = 0; k < m->columns && m->column_heads && p->x_numbers; k++)
        canvas_text(c, p->x + (k + 0.5) * width, p->y + p->height + 3 + SIZE_TICK,
                    m->column_heads[k], &middle);
    if (p->scale) draw_scale(c, p, &scale, diverging);
}
