/* figures.h - the study's figures, as SVG and PDF. */
#ifndef FR_REPORT_FIGURES_H
#define FR_REPORT_FIGURES_H

#include "report/summary.h"

/* A figure of a study: the name of its file, what it shows, and how it is drawn to a path. */
typedef struct study_figure {
    const char *name;
    const char *caption;
    fr_status (*draw)(const summary *s, arena *memory, const char *path, const fr_context *context,
                      bool *drawn, fr_error *err);
    bool measured; /* shows times: not the same on every run */
} study_figure;

extern const study_figure study_figures[]; /* ends with a NULL name */

#endif
