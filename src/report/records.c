/* records.c - a report of rank records without a study (fullrank.h, chapter 15).
 *
 * It is a study in a temporary directory, with one data set that has only rank records, which are
 * its models. So tables, figures and the page equal those of studies, to the last digit, and there
 * is only one way to make them.
 */
#define _GNU_SOURCE
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "rank/check.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const fr_option fr_report_options[FR_OPTIONS_MAX] = {
    {"name", FR_OPTION_TEXT, "", "TEXT", 0, 0, offsetof(fr_report_settings, name),
     "title of the report (default: the name of the data)"},
    {"gain", FR_OPTION_TEXT, "", "A,B", 0, 0, offsetof(fr_report_settings, gain),
     "two models: tables and figures of the MRR of B minus that of A (default: the "
     "first two)"},
    {"tables", FR_OPTION_TEXT, "", "DIR", 0, 0, offsetof(fr_report_settings, tables),
     "also write every table and figure as files, to this directory"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_report_settings, force),
     "replace existing files"},
    {"audit", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(fr_report_settings, audit),
     "results of `audit -o`, separated by commas, for a section of the page"},
    OPTIONS_END(fr_report_settings)};

/* A run with the name of its model. */
typedef struct named_run {
    const fr_compare_run *given;
    fr_ranking_facts facts;
    const char *name;
    int64_t seed;
} named_run;

typedef struct request {
    arena memory;
    named_run *run; /* [runs] */
    int runs;
    const int64_t *k;
    int ks;
    const fr_report_settings *settings;
} request;

/* ---- names ---- */

static fr_status keep(request *q, const char *text, size_t size, char **out, fr_error *err) {
    TRY(TAKE(&q->memory, *out, size + 1, err));
    memcpy(*out, text, size);
    (*out)[size] = 0;
    return FR_OK;
}

/* The name of the records' scorer: "craft", "CRAFT (bpr)"; for a file, its name without folders. */
static fr_status name_run(request *q, named_run *r, fr_error *err) {
    static const char *const kinds[] = {"scores:", "plugin:", "counts:"}, *const ends[] = {".npy",
                                                                                           ".so"};
    const char *text = r->facts.model, *objective = r->facts.objective;
    char *name;
    if (r->given->model) {
        r->name = r->given->model;
        return FR_OK;
    }
    for (int i = 0; i < 3; i++)
        if (!strncmp(text, kinds[i], strlen(kinds[i]))) text += strlen(kinds[i]);
    text = path_name(text);
    size_t size = strlen(text);
    for (int i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        if (size > end && !strcmp(text + size - end, ends[i])) size -= end;
    }
    TRY(keep(q, text, size, &name, err));
    r->name = name;
    if (!*objective || !strcmp(objective, "bce")) return FR_OK;
    const char *label = summary_label(name);
    size = strlen(label) + strlen(objective) + 4;
    TRY(TAKE(&q->memory, name, size, err));
    (void)snprintf(name, size, "%s (%s)", label, objective);
    r->name = name;
    return FR_OK;
}

/* ---- may they be compared? ---- */

static fr_status check_run(const request *q, int i, fr_error *err) {
    const named_run *r = &q->run[i], *first = &q->run[0];
    fr_error inner = {0};
    char fields[640];
    fr_status status = check_records(r->facts.records, r->facts.count, r->facts.oov, &inner);
    if (status) return fail(err, status, "%s: %s", r->given->file, inner.message);
    TRY(check_needs_seen(r->facts.records, r->facts.count, r->given->file, err));
    int64_t expected = r->facts.protocol.sample ? r->facts.protocol.sample : r->facts.protocol.test;
    if (r->facts.count != expected)
        return fail(err, FR_EINPUT, "%s: %lld records, expected %lld, one per test event",
                    r->given->file, (long long)r->facts.count, (long long)expected);
    if (fr_protocol_compare(&first->facts.protocol, &r->facts.protocol, fields, sizeof fields))
        return fail(err, FR_EINPUT,
                    "%s and %s follow different protocols and must not be compared; they differ in "
                    "%s",
                    first->given->file, r->given->file, fields);
    for (int j = 0; j < i; j++)
        if (!strcmp(q->run[j].name, r->name) && q->run[j].seed == r->seed)
            return fail(err, FR_EUSAGE,
                        "%s and %s are both %s with seed %lld: expected different names or seeds",
                        q->run[j].given->file, r->given->file, r->name, (long long)r->seed);
    return FR_OK;
}

static fr_status take_runs(request *q, const fr_compare_run *runs, int count, fr_error *err) {
    q->runs = count;
    TRY(TAKE(&q->memory, q->run, count, err));
    for (int i = 0; i < count; i++) {
        named_run *r = &q->run[i];
        NEED(runs[i].ranking, err);
        *r = (named_run){.given = &runs[i], .facts = fr_ranking_get(runs[i].ranking)};
        r->seed = runs[i].seed ? *runs[i].seed : r->facts.seed;
        TRY(name_run(q, r, err));
        TRY(check_run(q, i, err));
    }
    return FR_OK;
}

/* ---- the document ---- */

/* A model of several runs, or of one that was trained, has seeds. */
static bool has_seeds(const request *q, const named_run *r) {
    int runs = 0;
    for (int i = 0; i < q->runs; i++) runs += !strcmp(q->run[i].name, r->name);
    return runs > 1 || *r->facts.objective;
}

/* {"name": "N.npy", "other": {"7": "N.npy"}}: run number N lies in `folder`. */
static json_t *ranks_json(const request *q, const char *folder) {
    json_t *all = json_object();
    for (int i = 0; all && i < q->runs; i++) {
        const named_run *r = &q->run[i];
        char *path, seed[32];
        (void)snprintf(seed, sizeof seed, "%lld", (long long)r->seed);
        if (asprintf(&path, "%s/%d.npy", folder, i) < 0) path = NULL;
        json_t *file = path ? json_text(path) : NULL;
        free(path);
        if (has_seeds(q, r)) {
            json_t *runs = json_object_get(all, r->name);
            if (!runs) {
                json_put(&all, r->name, json_object());
                runs = json_object_get(all, r->name);
            }
            if (json_object_set_new(runs, seed, file)) json_put(&all, "", NULL);
        } else
            json_put(&all, r->name, file);
    }
    return all;
}

/* The two models of --gain, else the first two; NULL if there are none. */
static fr_status gain_json(const request *q, json_t **out, fr_error *err) {
    const char *text = q->settings->gain, *comma = text ? strchr(text, ',') : NULL;
    const char *second = NULL;
    *out = NULL;
    for (int i = 0; i < q->runs && !second; i++)
        if (strcmp(q->run[i].name, q->run[0].name) != 0) second = q->run[i].name;
    if (!text && !second) return FR_OK;
    if (text && !comma)
        return fail(err, FR_EUSAGE, "gain: found \"%s\", expected two models A,B", text);
    *out = json_array();
    json_push(out, text ? json_stringn(text, (size_t)(comma - text)) : json_text(q->run[0].name));
    json_push(out, json_text(text ? comma + 1 : second));
    for (size_t k = 0; *out && text && k < 2; k++) {
        const char *name = json_string_value(json_array_get(*out, k));
        bool known = false;
        for (int i = 0; i < q->runs; i++) known |= !strcmp(q->run[i].name, name);
        if (!known) return fail(err, FR_EUSAGE, "gain: there is no model %s", name);
    }
    return *out ? FR_OK : fail_memory(err, 0);
}

/* The name of the data as a study may call it: a plain word. The caller's. */
static char *data_word(const char *name) {
    char *out = strdup(*name ? name : "data");
    for (char *c = out; c && *c; c++)
        if (strchr("/ \t\n", *c)) *c = '-';
    if (out && *out == '.') *out = '-';
    return out;
}

static fr_status make_document(const request *q, const char *folder, char **out, fr_error *err) {
    const char *data = q->run[0].facts.data, *title = q->settings->name;
    char *word = data_word(data);
    json_t *gain = NULL, *k = json_array();
    *out = NULL;
    fr_status status = word ? gain_json(q, &gain, err) : fail_memory(err, 0);
    for (int i = 0; i < q->ks; i++) json_push(&k, json_integer((json_int_t)q->k[i]));
    if (!status) {
        json_t *root = json_object(), *sets = json_object();
        json_put(&sets, word, json_null());
        json_put(&root, "name", json_text(title ? title : data));
        json_put(&root, "data", sets);
        json_put(&root, "k", json_incref(k));
        json_put(&root, "ranks", ranks_json(q, folder));
        if (gain) json_put(&root, "gain", json_incref(gain));
        *out = root ? json_print(root, JSON_COMPACT) : NULL;
        json_decref(root);
        if (!*out) status = fail_memory(err, 0);
    }
    json_decref(gain);
    json_decref(k);
    free(word);
    return status;
}

/* ---- running it ---- */

/* Runs the study of the records in `folder`/study. */
static fr_status run_study(const request *q, const char *folder, const char *directory,
                           const fr_context *context, fr_error *err) {
    fr_study *study = NULL;
    char *document = NULL;
    fr_context silent = context ? *context : (fr_context){0};
    silent.log = NULL; /* its units are an internal matter */
    fr_status status = make_document(q, folder, &document, err);
    for (int i = 0; !status && i < q->runs; i++) {
        char *path;
        if (asprintf(&path, "%s/%d.npy", folder, i) < 0) path = NULL;
        status = path ? fr_ranking_save(q->run[i].given->ranking, path, false, err)
                      : fail_memory(err, 0);
        free(path);
    }
    if (!status) status = fr_study_open(document, NULL, directory, &study, err);
    if (!status) status = fr_study_run(study, &silent, err);
    fr_study_close(study);
    free(document);
    return status;
}

/* Replaces only a directory that a report has made. */
static fr_status guard(const char *path, fr_error *err) {
    return directory_only(path, " tables costs figures ", err);
}

static fr_status make_report(const request *q, const char *output, const fr_context *context,
                             fr_error *err) {
    staging scratch = {0}, files = {0};
    char *directory = NULL;
    const char *tables = q->settings->tables;
    fr_status status = FR_OK;
    if (tables) status = staging_open(&files, tables, q->settings->force, guard, err);
    if (!status) status = staging_temporary(&scratch, err);
    if (!status && !(directory = path_join(scratch.place, "study"))) status = fail_memory(err, 0);
    if (!status) status = run_study(q, scratch.place, directory, context, err);
    if (!status)
        status = report_make(directory, tables ? files.place : directory, output,
                             q->settings->audit, context, err);
    if (!status && tables) status = staging_commit(&files, err);
    staging_discard(&files);
    staging_discard(&scratch);
    free(directory);
    return status;
}

fr_status fr_report_write(const fr_compare_run *runs, int count, const int64_t *k, int k_count,
                          const fr_report_settings *settings, const char *output,
                          const fr_context *context, fr_error *err) {
    fr_report_settings own;
    struct stat facts;
    NEED(runs, err);
    NEED(output, err);
    if (count < 1) return fail(err, FR_EUSAGE, "%d runs, expected at least 1", count);
    if (k_count < 0 || (k_count && !k))
        return fail(err, FR_EUSAGE, "%d numbers K of negatives, expected a list", k_count);
    TRY(options_settle(fr_report_options, settings, &own, sizeof own, err));
    if (!own.force && !lstat(output, &facts)) return fail(err, FR_EFORCE, "%s: exists", output);
    request q = {.k = k, .ks = k_count, .settings = &own};
    fr_status status = take_runs(&q, runs, count, err);
    if (!status) status = make_report(&q, output, context, err);
    arena_free(&q.memory);
    return status;
}
