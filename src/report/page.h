/* page.h - report.html: a study as one file that a person reads (docs/report.md).
 *
 *   page.c        the page from top to bottom        page.css      how it looks
 *   page_words.c  what the numbers say, in words     expected.js   exact expected MRR (PROTOCOL 6)
 *   page_data.c   rank records for the scripts       page.js       interaction
 *   page_audit.c  audits
 *
 * The page loads nothing from the network: its policy forbids it, and style, scripts, figures and
 * data are inside. Without scripts it lacks only the choice of K, models and events.
 */
#ifndef FR_REPORT_PAGE_H
#define FR_REPORT_PAGE_H

#include "base/text.h"
#include "report/figures.h"

/* Writes `path`, atomically; NULL = DIRECTORY/report.html, next to the tables and figures of a
 * study. `drawn` is in the order of study_figures; the files for downloading are in
 * DIRECTORY/figures. `audits` are files of audits, separated by commas, or NULL. */
fr_status page_write(const summary *s, const char *directory, const drawn_figure *drawn,
                     const char *path, const char *audits, const fr_context *context,
                     fr_error *err);

/* ---- parts ---- */

/* JSON with the names of everything and the rank records of the study, in base64. */
fr_status page_data(const summary *s, const fr_context *context, text_buffer *out, fr_error *err);

/* A paragraph or list per data set: what was found. */
fr_status page_findings(const summary *s, text_buffer *out, fr_error *err);
/* The 2x2 tables as matrices, each with an explaining sentence; nothing if there are none. */
void page_matrices(const summary *s, text_buffer *out);

/* A table and the findings of every audit in `files`, separated by commas (fr_audit_text). */
fr_status page_audits(const char *files, text_buffer *out, fr_error *err);

/* Number with its decimals, "–" if it is NaN; `sign` puts a + before positive ones. */
void page_number(text_buffer *out, double value, int decimals, bool sign);
/* 4,916 */
void page_count(text_buffer *out, int64_t value);

extern const char embedded_page_css[], embedded_expected_js[], embedded_page_js[];

#endif
