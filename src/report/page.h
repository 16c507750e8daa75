/* page.h - report.html: a study as one file that a person reads (docs/report.md).
 *
 *   page.c        the page from top to bottom        page.css      how it looks
 *   page_words.c  what the numbers say, in words     expected.js   exact expected MRR (PROTOCOL 6)
 *   page_data.c   rank records for the scripts       page.js       what moves
 *   page_audit.c  audits
 *
 * The page asks the network for nothing: its policy forbids it, and style, scripts, figures and
 * data are inside. Without scripts it is complete but for choosing K, models and events.
 */
#ifndef FR_REPORT_PAGE_H
#define FR_REPORT_PAGE_H

#include "base/text.h"
#include "report/figures.h"

/* Writes `path`, atomically; NULL = DIRECTORY/report.html, beside the tables and figures of a
 * study. `drawn` is in the order of study_figures; the files that a reader may take along are in
 * DIRECTORY/figures. `audits` are files of audits, separated by commas, or NULL. */
fr_status page_write(const summary *s, const char *directory, const drawn_figure *drawn,
                     const char *path, const char *audits, const fr_context *context,
                     fr_error *err);

/* ---- parts ---- */

/* JSON with the names of everything and the rank records of the study, in base64. */
fr_status page_data(const summary *s, const fr_context *context, text_buffer *out, fr_error *err);

/* A paragraph or list per data set: what was found. */
fr_status page_findings(const summary *s, text_buffer *out, fr_error *err);
/* The 2x2 tables as matrices, each with a sentence that reads it; nothing if there is none. */
void page_matrices(const summary *s, text_buffer *out);

/* A table and the findings of every audit in `files`, separated by commas (fr_audit_text). */
fr_status page_audits(const char *files, text_buffer *out, fr_error *err);

/* Number with its decimals, "–" if it is NaN; `sign` puts a + before positive ones. */
void page_number(text_buffer *out, double value, int decimals, bool sign);
/* 4,916 */
void page_count(text_buffer *out, int64_t value);

extern const char embedded_page_css[], embedded_expected_js[], embedded_page_js[];

#endif
