/* style.h - how series look: eight styles that differ in colour, dash, marker and hatching, and
 * quiet ones for baselines and the oracle.
 *
 * The colours are those of Okabe and Ito without yellow, which is too pale for thin lines, plus a
 * grey. They can be distinguished with every kind of colour vision, and by dashes, markers and
 * hatching in a grey print. The quiet styles are thin brown-grey lines without markers, the first
 * of them solid; the names at their ends are enough.
 */
#ifndef FR_REPORT_STYLE_H
#define FR_REPORT_STYLE_H

#include "report/canvas.h"

enum { STYLES = 8, QUIET_STYLES = 6 };
enum { STYLE_QUIET = 1000 }; /* styles from here on are quiet; the first is the oracle's */

#define INK   COLOUR(0x222222) /* text */
#define FAINT COLOUR(0x888888) /* axes */
#define GRID  COLOUR(0xe4e4e4)

/* Sizes in points, legible in a printed column of 8 cm. */
#define SIZE_TITLE 8.0
#define SIZE_LABEL 7.5
#define SIZE_TICK  7.0
#define LINE_DATA  1.2
#define LINE_THIN  0.6

/* `style` may be any number; it counts modulo STYLES, from STYLE_QUIET on modulo QUIET_STYLES. */
colour style_colour(int style);
/* For text in the colour of a style: dark enough to read. */
colour style_ink(int style);
paint style_line(int style);
void style_marker(canvas *c, int style, double x, double y);
/* A bar with the style's filling. */
void style_bar(canvas *c, int style, double x, double y, double width, double height);

/* Colour of `share` (0..1) of a scale: white to dark blue, or orange through white to blue if the
 * scale has its middle at 0.5 (`diverging`). Both grow steadily darker from white. */
colour style_heat(double share, bool diverging);

#endif
