/* spec.c - opens a scorer from its text (fullrank.h, chapter 9). */
#define _GNU_SOURCE
#include "rank/spec.h"
#include "base/context.h"
#include "base/text.h"
#include "rank/factors.h"
#include "rank/learned.h"
#include "rank/oracle.h"
#include "rank/plugin.h"
#include "rank/ranking.h"
#include "rank/scores.h"

#include <stdlib.h>
#include <string.h>

/* The rest of `text` after `prefix`, NULL if it does not begin with it. */
static const char *after(const char *text, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) ? NULL : text + n;
}

/* ---- kinds with options ---- */

/* Sets "option=value,..." one by one; `list` is changed. */
static fr_status set_options(const fr_option *table, char *list, void *settings, fr_error *err) {
    for (char *entry; (entry = strsep(&list, ","));) {
        char *value = strchr(entry, '=');
        if (!value) return fail(err, FR_EUSAGE, "found \"%s\", expected option=value", entry);
        *value++ = 0;
        TRY(fr_options_set(table, settings, entry, value, err));
    }
    return FR_OK;
}

/* Opens a scorer of this kind; without a window it only checks the options. `options` may be NULL;
 * `what` is for messages, such as "baseline". */
static fr_status open_kind(const fr_scorer_kind *kind, const char *what, char *options,
                           const fr_window *w, int64_t seed, fr_scorer_definition *out,
                           fr_error *err) {
    static const fr_option none[] = {{0}};
    const fr_option *table = kind->options ? kind->options : none;
    void *settings = NULL;
    fr_error inner = {0};
    TRY(allocate(1, kind->settings ? kind->settings : 1, &settings, err));
    fr_status status = fr_options_fill(table, settings, kind->settings, &inner);
    if (!status) status = set_options(table, options, settings, &inner);
    if (status)
        (void)fail(err, status, "%s %s: %s", what, kind->name, inner.message);
    else if (w)
        status = kind->open(w, settings, seed, out, err);
    fr_options_free(table, settings);
    free(settings);
    return status;
}

/* ---- baselines ---- */

static const char *name_at(const void *list, int index) {
    const fr_scorer_kind *kind = fr_baseline_at(index);
    (void)list;
    return kind ? kind->name : NULL;
}

static fr_status open_baseline(const char *spec, const fr_window *w, int64_t seed,
                               fr_scorer_definition *out, fr_error *err) {
    char *text = strdup(spec), *options = text;
    if (!text) return fail_memory(err, strlen(spec));
    const char *name = strsep(&options, ",");
    const fr_scorer_kind *kind = NULL;
    for (int i = 0; (kind = fr_baseline_at(i)); i++)
        if (!strcmp(kind->name, name)) break;
    fr_status status =
        kind ? open_kind(kind, "baseline", options, w, seed, out, err)
             : text_unknown("baseline", name, name_at, NULL, "`fullrank baselines`", err);
    free(text);
    return status;
}

/* ---- plug-ins ---- */

static fr_status open_plugin(const char *spec, const fr_window *w, int64_t seed, char sha256[65],
                             fr_scorer_definition *out, fr_error *err) {
    size_t length = plugin_file_length(spec);
    const fr_scorer_kind *kind;
    char *text = strdup(spec), *options = text && text[length] ? text + length + 1 : NULL;
    if (!text) return fail_memory(err, strlen(spec));
    text[length] = 0;
    fr_status status = fr_plugin_load(text, &kind, err);
    if (!status) status = file_sha256(text, sha256, err);
    if (!status) status = open_kind(kind, "plug-in", options, w, seed, out, err);
    free(text);
    return status;
}

/* ---- any ---- */

static fr_status unknown(const char *spec, fr_error *err) {
    return fail(
        err, FR_EUSAGE,
        "unknown scorer %s, expected FILE.safetensors, baseline:NAME, plugin:FILE.so, "
        "scores:FILE.npy, factors:U.npy,V.npy or oracle (counts:FILE.npy is for `rank` alone)",
        spec);
}

static bool is_checkpoint(const char *spec) {
    return strlen(spec) > 12 && !strcmp(spec + strlen(spec) - 12, ".safetensors");
}

fr_status spec_check(const char *spec, fr_error *err) {
    const char *rest;
    TRY(scorer_check_name(spec, err));
    if ((rest = after(spec, "baseline:"))) return open_baseline(rest, NULL, 0, NULL, err);
    bool known = after(spec, "plugin:") || after(spec, "scores:") || after(spec, "factors:") ||
                 !strcmp(spec, "oracle") || is_checkpoint(spec);
    return known ? FR_OK : unknown(spec, err);
}

fr_status spec_check_plugin(const char *spec, fr_error *err) {
    const char *rest = after(spec, "plugin:");
    char sha256[65];
    return rest ? open_plugin(rest, NULL, 0, sha256, NULL, err) : FR_OK;
}

/* `sha256` may get the hash of what was read. */
static fr_status open_spec(const char *spec, const fr_window *w, int64_t seed,
                           const fr_context *context, char sha256[65], fr_scorer_definition *out,
                           fr_error *err) {
    static const char *const kinds[] = {"baseline:", "plugin:", "scores:", "factors:", "counts:"};
    const char *rest;
    for (int i = 0; i < 5; i++)
        if ((rest = after(spec, kinds[i])) && (!*rest || *rest == ','))
            return fail(err, FR_EUSAGE, "scorer %s: nothing is named, expected %s%s", spec,
                        kinds[i], i ? "FILE" : "NAME");
    if (after(spec, "counts:"))
        return fail(err, FR_EUSAGE,
                    "%s: counts are not scores, so there is no scorer for them; `rank` "
                    "(fr_rank_counts_file) makes rank records of them, which a study takes as "
                    "\"ranks\"",
                    spec);
    if ((rest = after(spec, "baseline:"))) return open_baseline(rest, w, seed, out, err);
    if ((rest = after(spec, "plugin:"))) return open_plugin(rest, w, seed, sha256, out, err);
    if (!strcmp(spec, "oracle")) return oracle_open(w, context, out, err);
    if (!strcmp(spec, "scores:-")) return scores_stream_open(w, context, out, err);
    if ((rest = after(spec, "scores:"))) return scores_open(rest, w, out, err);
    if ((rest = after(spec, "factors:"))) return factors_open(rest, w, out, err);
    if (is_checkpoint(spec)) {
        TRY(learned_open(spec, w, context, out, err));
        return file_sha256(spec, sha256, err);
    }
    return unknown(spec, err);
}

fr_status fr_scorer_open(const char *spec, const fr_window *window, int64_t seed,
                         const fr_context *context, fr_scorer **out, fr_error *err) {
    fr_scorer_definition is = {0};
    char sha256[65] = "";
    NEED(out, err);
    *out = NULL;
    NEED(spec, err);
    NEED(window, err);
    TRY(scorer_check_name(spec, err));
    fr_status status = open_spec(spec, window, seed, context, sha256, &is, err);
    is.size = sizeof is;
    is.name = spec;
    if (!is.sha256) is.sha256 = sha256;
    if (!is.model) is.seed = seed; /* a checkpoint has the seed of its training */
    if (!status) status = fr_scorer_make(window, &is, out, err);
    if (!status) (*out)->twins = after(spec, "baseline:") != NULL;
    if (status && is.close && is.state) is.close(is.state);
    return status;
}
