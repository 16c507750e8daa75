/* report.c - everything a study shows: tables/, costs/, figures/ and report.html (fullrank.h,
 * chapter 15).
 *
 * Everything follows from study.db. Results that are always the same are in tables/; measured times
 * are in costs/.
 */
#define _GNU_SOURCE
#include "report/report.h"
#include "base/context.h"
#include "base/file.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/tables.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static fr_status make_folder(const char *directory, const char *name, fr_error *err) {
    char *path = path_join(directory, name);
    if (!path) return fail_memory(err, 0);
    fr_status status = FR_OK;
    if (mkdir(path, 0777) && errno != EEXIST)
        status = fail_errno(err, "%s: directory cannot be made", path);
    free(path);
    return status;
}

static fr_status write_table(const summary *s, const study_table *one, const char *directory,
                             fr_error *err) {
    static const char *const ends[] = {"txt", "md", "csv", "tex"};
    table t = {0};
    fr_status status = study_table_make(s, one, &t, err);
    for (int i = 0; !status && t.row_count && i < 4; i++) {
        char *path;
        if (asprintf(&path, "%s/%s/%s.%s", directory, one->measured ? "costs" : "tables", one->name,
                     ends[i]) < 0)
            status = fail_memory(err, 0);
        else {
            status = table_write(&t, path, err);
            free(path);
        }
    }
    table_free(&t);
    return status;
}

static fr_status write_numbers(const figure *f, const char *path, fr_error *err) {
    table t = {0};
    figure_table(f, &t);
    fr_status status = table_write(&t, path, err);
    table_free(&t);
    return status;
}

/* Makes a figure once and writes it in every format. */
static fr_status write_figure(const summary *s, const study_figure *one, const char *directory,
                              const fr_context *context, drawn_figure *out, fr_error *err) {
    static const char *const ends[] = {"svg", "pdf", "csv"};
    fr_status status = one->make(s, &out->memory, context, &out->figure, err);
    for (int i = 0; !status && out->figure.panel_count && i < 3; i++) {
        char *path;
        if (asprintf(&path, "%s/figures/%s.%s", directory, one->name, ends[i]) < 0)
            return fail_memory(err, 0);
        status =
            i < 2 ? figure_write(&out->figure, path, err) : write_numbers(&out->figure, path, err);
        free(path);
    }
    return status;
}

fr_status report_make(const char *directory, const char *files, const char *page,
                      const char *audits, const fr_context *context, fr_error *err) {
    results r;
    summary s = {0};
    drawn_figure drawn[MOST_FIGURES] = {0};
    TRY(results_open(&r, directory, err));
    fr_status status = summary_make(&s, &r, context, err);
    if (!status) status = make_folder(files, "tables", err);
    if (!status) status = make_folder(files, "costs", err);
    for (const study_table *t = study_tables; !status && t->name; t++)
        status = write_table(&s, t, files, err);
    if (!status) status = make_folder(files, "figures", err);
    for (int i = 0; !status && study_figures[i].name; i++) {
        assert(i < MOST_FIGURES);
        status = write_figure(&s, &study_figures[i], files, context, &drawn[i], err);
    }
    if (!status) status = page_write(&s, files, drawn, page, audits, context, err);
    for (int i = 0; i < MOST_FIGURES; i++) arena_free(&drawn[i].memory);
    summary_free(&s);
    results_close(&r);
    return status;
}

fr_status fr_study_report(const char *directory, const fr_context *context, fr_error *err) {
    NEED(directory, err);
    return report_make(directory, directory, NULL, NULL, context, err);
}
