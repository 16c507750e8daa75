/* figures.h - the study's figures. */
#ifndef FR_REPORT_FIGURES_H
#define FR_REPORT_FIGURES_H

#include "report/chart.h"
#include "report/summary.h"

/* A figure of a study: the name of its file, what it shows, and how it is made. */
typedef struct study_figure {
    const char *name;
    const char *caption;
    /* Fills a zeroed figure; panels and numbers live in `memory`. Without panels there is nothing
     * to show. */
    fr_status (*make)(const summary *s, arena *memory, const fr_context *context, figure *out,
                      fr_error *err);
    bool measured; /* shows times: not the same on every run */
} study_figure;

extern const study_figure study_figures[]; /* ends with a NULL name */

/* A figure that was made. */
typedef struct drawn_figure {
    figure figure;
    arena memory; /* of its numbers */
} drawn_figure;
enum { MOST_FIGURES = 16 };

#endif
