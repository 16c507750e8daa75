/* axis.h - an axis: maps values to positions and chooses ticks. */
#ifndef FR_REPORT_AXIS_H
#define FR_REPORT_AXIS_H

#include <stdbool.h>

/* From `low` to `high`; begins empty as axis_empty() says and grows by axis_include. */
typedef struct axis_range {
    bool log;
    double low, high;
} axis_range;

axis_range axis_empty(bool log);
/* Makes room for a value; a value without a position (NaN, infinite, not positive on a log axis) is
 * ignored. */
void axis_include(axis_range *r, double value);
/* Makes a range from the included values, with a margin of `pad` times its length at both ends. A
 * single value gets room around it; no value gives 0..1 (1..10). */
void axis_settle(axis_range *r, double pad);
/* 0 at low, 1 at high, beyond for values outside; NaN without a position. */
double axis_place(const axis_range *r, double value);

enum { AXIS_TICKS = 96, AXIS_LABEL = 32 };

typedef struct axis_tick {
    double value;
    char label[AXIS_LABEL]; /* "" = a small tick */
} axis_tick;

/* Ticks at round values (log: at 1, 2, 5 or at decades), at most about `most` with labels; returns
 * their number. */
int axis_ticks(const axis_range *r, int most, axis_tick out[AXIS_TICKS]);

/* A value with `decimals`, and a true minus sign. */
void axis_label(double value, int decimals, char out[AXIS_LABEL]);

#endif
