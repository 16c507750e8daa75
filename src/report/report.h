/* report.h - the files of a report: of a study, or of rank records alone. */
#ifndef FR_REPORT_REPORT_H
#define FR_REPORT_REPORT_H

#include "base/options.h"
#include "report/summary.h"

/* Writes the tables and figures of the study in `directory` to `files`/tables, costs and figures,
 * and its page to `page`; NULL = DIRECTORY/report.html. */
fr_status report_make(const char *directory, const char *files, const char *page,
                      const char *audits, const fr_context *context, fr_error *err);

#endif
