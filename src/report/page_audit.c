/* page_audit.c - see page.h: audits, as `fullrank audit -o` wrote them. */
#define _GNU_SOURCE
#include "base/json.h"
#include "report/html.h"
#include "report/page.h"
#include "report/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static fr_status check_audit(const json_t *root, const char *path, fr_error *err) {
    if (!strcmp(text_of(root, "format"), "fullrank-audit") &&
        json_is_array(json_object_get(root, "checks")) &&
        json_is_array(json_object_get(root, "findings")))
        return FR_OK;
    return fail(err, FR_EINPUT, "%s: not an audit, expected a file of `audit -o`", path);
}

static void put_checks(const json_t *root, table *t) {
    char title[512];
    size_t k;
    const json_t *check;
    (void)snprintf(title, sizeof title, "Audit of %.400s", text_of(root, "scorer"));
    table_start(t, title, "Compared events, their MRR, and their MRR with the change");
    table_column(t, NULL, "Check", TABLE_LEFT);
    table_column(t, NULL, "Verdict", TABLE_LEFT);
    table_column(t, NULL, "Compared", TABLE_RIGHT);
    table_column(t, NULL, "MRR", TABLE_RIGHT);
    table_column(t, NULL, "Then", TABLE_RIGHT);
    table_column(t, NULL, "Note", TABLE_LEFT);
    json_array_foreach(json_object_get(root, "checks"), k, check) {
        table_row(t, NULL);
        table_put(t, cell_text(text_of(check, "check")));
        table_put(t, cell_text(text_of(check, "verdict")));
        table_put(t, cell_number(number_of(check, "events"), 0));
        table_put(t, cell_number(number_of(check, "mrr"), 4));
        table_put(t, cell_number(number_of(check, "changed_mrr"), 4));
        table_put(t, cell_text(text_of(check, "note")));
    }
    table_note(t, text_of(root, "badge"));
}

/* "future: leak, row 12, candidate 7: what" */
static void put_finding(const json_t *f, text_buffer *out) {
    static const char *const places[] = {"event", "candidate"}, *const words[] = {"row",
                                                                                  "candidate"};
    text_put(out, "<li><strong>");
    html_put(out, text_of(f, "check"));
    text_put(out, "</strong>: ");
    html_put(out, text_of(f, "severity"));
    for (int k = 0; k < 2; k++) {
        const json_t *value = json_object_get(f, places[k]);
        if (json_is_integer(value))
            text_print(out, ", %s %lld", words[k], (long long)json_integer_value(value));
    }
    text_put(out, ": ");
    html_put(out, text_of(f, "what"));
    text_put(out, "</li>\n");
}

static fr_status put_audit(const char *path, text_buffer *out, fr_error *err) {
    json_t *root;
    table t = {0};
    size_t k;
    const json_t *finding;
    TRY(json_read(path, &root, err));
    fr_status status = check_audit(root, path, err);
    if (!status) {
        put_checks(root, &t);
        status = table_render(&t, TABLE_HTML, out, err);
        const json_t *findings = json_object_get(root, "findings");
        if (json_array_size(findings)) text_put(out, "<ul>\n");
        json_array_foreach(findings, k, finding) put_finding(finding, out);
        if (json_array_size(findings)) text_put(out, "</ul>\n");
    }
    table_free(&t);
    json_decref(root);
    return status;
}

fr_status page_audits(const char *files, text_buffer *out, fr_error *err) {
    char *list = strdup(files), *rest = list;
    fr_status status = list ? FR_OK : fail_memory(err, strlen(files));
    for (char *path; !status && rest && (path = strsep(&rest, ","));)
        if (*path) status = put_audit(path, out, err);
    free(list);
    return status;
}
