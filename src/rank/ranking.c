/* ranking.c - rank records in memory and on disk (fullrank.h, chapter 10).
 *
 * RANKS.npy is a pure function of data, protocol and scorer, byte for byte. Timings and the
 * description (protocol, hashes, tool) are in RANKS.json.
 */
#define _GNU_SOURCE
#include "rank/ranking.h"

#include "base/json.h"
#include "base/npy.h"
#include "rank/engine.h"
#include "rank/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The record as a structured dtype: names and order are those of docs/formats.md. */
static const npy_field fields[] = {
    {.name = "event", .kind = 'i', .size = 8},
    {.name = "source", .kind = 'i', .size = 8},
    {.name = "destination", .kind = 'i', .size = 8},
    {.name = "time", .kind = 'f', .size = 8},
    {.name = "covered", .kind = 'u', .size = 1},
    {.name = "repeated", .kind = 'u', .size = 1},
    {.name = "n", .kind = 'i', .size = 4},
    {.name = "above", .kind = 'i', .size = 4},
    {.name = "tied", .kind = 'i', .size = 4},
    {.name = "seen_n", .kind = 'i', .size = 4},
    {.name = "seen_above", .kind = 'i', .size = 4},
    {.name = "seen_tied", .kind = 'i', .size = 4},
    {.name = "pop_above", .kind = 'f', .size = 8},
    {.name = "pop_tied", .kind = 'f', .size = 8},
    {.name = "pop_self", .kind = 'f', .size = 8},
    {.name = "avail_n", .kind = 'i', .size = 4},
    {.name = "avail_above", .kind = 'i', .size = 4},
    {.name = "avail_tied", .kind = 'i', .size = 4},
    {.name = "score", .kind = 'f', .size = 4},
    {.name = "pair_count", .kind = 'i', .size = 4},
    {.name = "source_degree", .kind = 'i', .size = 4},
    {.name = "destination_degree", .kind = 'i', .size = 4},
    {.name = "gap", .kind = 'f', .size = 8},
    {.name = "filtered", .kind = 'i', .size = 4},
    {.name = "train_n", .kind = 'i', .size = 4},
    {.name = "train_above", .kind = 'i', .size = 4},
    {.name = "train_tied", .kind = 'i', .size = 4},
    {.name = "tied_before", .kind = 'i', .size = 4},
};
/* New fields go to the end. Records of the first release have FIRST_FIELDS of them, and a file of
 * any release has at least these. */
enum { FIELDS = sizeof fields / sizeof *fields, FIRST_FIELDS = 23 };
_Static_assert(sizeof(fr_record) == 138, "the record is packed");

fr_status ranking_side_path(const char *path, const char *end, char **out, fr_error *err) {
    size_t n = strlen(path);
    *out = NULL;
    if (n < 5 || strcmp(path + n - 4, ".npy"))
        return fail(err, FR_EUSAGE, "%s: expected a name that ends in .npy", path);
    if (asprintf(out, "%.*s%s", (int)n - 4, path, end) >= 0) return FR_OK;
    *out = NULL;
    return fail_memory(err, n);
}

/* ---- making ---- */

/* Fills what is derived from `about`. */
static fr_status read_about(fr_ranking *r, const char *path, fr_error *err) {
    const json_t *protocol = json_object_get(r->about, "protocol");
    const char *scorer = json_string_value(json_object_get(r->about, "scorer"));
    const char *data = json_string_value(json_object_get(r->about, "data"));
    if (!json_is_object(protocol) || !scorer || !data)
        return fail(err, FR_EINPUT, "%s: does not describe rank records", path);
    TRY(protocol_read(protocol, path, &r->protocol, err));
    const json_t *timing = json_object_get(r->about, "timing");
    r->seconds = json_number_value(json_object_get(timing, "seconds"));
    r->scores_per_second = json_number_value(json_object_get(timing, "scores_per_second"));
    const json_t *verify = json_object_get(r->about, "verify");
    r->verified = json_integer_value(json_object_get(verify, "events"));
    r->verified_error = json_number_value(json_object_get(verify, "largest_difference"));
    r->verified_ranks = json_integer_value(json_object_get(verify, "ranks_differ"));
    const char *model = json_string_value(json_object_get(r->about, "model"));
    const char *objective = json_string_value(json_object_get(r->about, "objective"));
    r->seed = json_integer_value(json_object_get(r->about, "seed"));
    const json_t *training = json_object_get(r->about, "training");
    r->epochs_done = json_integer_value(json_object_get(training, "epochs_done"));
    r->epochs_asked = json_integer_value(json_object_get(training, "epochs_asked"));
    r->selected = json_integer_value(json_object_get(training, "selected"));
    if (r->protocol.sample) {
        const fr_protocol_facts *p = &r->protocol;
        const json_t *covered = json_object_get(json_object_get(r->about, "estimate"), "covered");
        r->covered = json_integer_value(covered);
        if (!json_is_integer(covered) || r->covered < 0 || r->covered > p->sample_of ||
            p->sample >= p->sample_of || r->count != p->sample)
            return fail(err, FR_EINPUT,
                        "%s: %lld records, described as a sample of %lld of %lld events with %lld "
                        "covered",
                        path, (long long)r->count, (long long)p->sample, (long long)p->sample_of,
                        (long long)r->covered);
    }
    r->protocol_text = protocol_text(&r->protocol);
    r->scorer = strdup(scorer);
    r->model = strdup(model ? model : scorer);
    r->objective = strdup(objective ? objective : "");
    r->data = strdup(data);
    bool whole = r->protocol_text && r->scorer && r->model && r->objective && r->data;
    return whole ? FR_OK : fail_memory(err, 0);
}

/* Of a sample: what is known of all events of the part without ranking them. */
static json_t *describe_estimate(const fr_scorer *scorer, const event_list *events, int64_t met) {
    const fr_window *w = scorer->window;
    int64_t covered = 0;
    for (int32_t event = w->from; event < w->to; event++) {
        scored_event e = engine_describe(w, event);
        covered += e.covered && engine_ranks(w, &e, scorer->is.catalog_only, met);
    }
    return json_pack("{s:I, s:I, s:I}", "events", (json_int_t)events->count, "of",
                     (json_int_t)events->part, "covered", (json_int_t)covered);
}

fr_status ranking_make(const fr_scorer *from, fr_record *records, ranking_notes notes,
                       fr_ranking **out, fr_error *err) {
    const fr_window *w = from->window;
    const fr_scorer_definition *scorer = &from->is;
    fr_ranking *r;
    fr_status status = ALLOCATE(r, 1, err);
    if (status) {
        free(records);
        return status;
    }
    fr_version v = fr_version_get();
    fr_protocol_facts protocol = protocol_of_window(w, notes.popularity_power, notes.met);
    protocol.negatives_sha256 = (char *)(uintptr_t)notes.negatives_sha256;
    r->records = records;
    r->count = notes.events->count;
    protocol_sample(&protocol, notes.events);
    double rate = notes.seconds > 0 ? notes.scores / notes.seconds : 0;
    r->about = json_pack(
        "{s:s, s:i, s:o, s:o, s:I, s:o, s:{s:f, s:f}, s:{s:s, s:s}}", "format", "fullrank-ranks",
        "version", 1, "data", json_text(w->stream->name), "scorer", json_text(scorer->name), "seed",
        (json_int_t)scorer->seed, "protocol", protocol_json(&protocol), "timing", "seconds",
        notes.seconds, "scores_per_second", rate, "tool", "version", v.version, "commit", v.commit);
    json_put(&r->about, "data_checked", json_string(w->stream->facts.checked));
    json_put(&r->about, "model", json_text(scorer->model[0] ? scorer->model : scorer->name));
    if (scorer->objective[0]) json_put(&r->about, "objective", json_text(scorer->objective));
    if (scorer->settings && scorer->settings[0])
        json_put(&r->about, "settings", json_text(scorer->settings));
    if (scorer->epochs_asked)
        json_put(&r->about, "training",
                 json_pack("{s:I, s:I, s:o*}", "epochs_done", (json_int_t)scorer->epochs_done,
                           "epochs_asked", (json_int_t)scorer->epochs_asked, "selected",
                           scorer->selected ? json_integer((json_int_t)scorer->selected) : NULL));
    if (scorer->sha256[0]) json_put(&r->about, "scorer_sha256", json_string(scorer->sha256));
    if (notes.largest_batch)
        json_put(&r->about, "feed",
                 json_pack("{s:I}", "largest_batch", (json_int_t)notes.largest_batch));
    if (notes.verified)
        json_put(&r->about, "verify",
                 json_pack("{s:I, s:f, s:I}", "events", (json_int_t)notes.verified,
                           "largest_difference", notes.verified_error, "ranks_differ",
                           (json_int_t)notes.verified_ranks));
    if (notes.events->event)
        json_put(&r->about, "estimate", describe_estimate(from, notes.events, notes.met));
    status = r->about ? read_about(r, scorer->name, err) : fail_memory(err, 0);
    if (status)
        fr_ranking_close(r);
    else
        *out = r;
    return status;
}

fr_status ranking_adopt(fr_record *records, int64_t count, json_t *about, const char *where,
                        fr_ranking **out, fr_error *err) {
    fr_ranking *r;
    *out = NULL;
    fr_status status = ALLOCATE(r, 1, err);
    if (status) {
        free(records);
        json_decref(about);
        return status;
    }
    *r = (fr_ranking){.records = records, .count = count, .about = about};
    status = read_about(r, where, err);
    if (status)
        fr_ranking_close(r);
    else
        *out = r;
    return status;
}

void fr_ranking_close(fr_ranking *r) {
    if (!r) return;
    json_decref(r->about);
    free(r->records);
    fr_options_free(fr_protocol_fields, &r->protocol);
    free(r->protocol_text);
    free(r->scorer);
    free(r->model);
    free(r->objective);
    free(r->data);
    free(r);
}

fr_ranking_facts fr_ranking_get(const fr_ranking *r) {
    if (!r) return (fr_ranking_facts){0};
    return (fr_ranking_facts){.records = r->records,
                              .count = r->count,
                              .scorer = r->scorer,
                              .model = r->model,
                              .objective = r->objective,
                              .seed = r->seed,
                              .epochs_done = r->epochs_done,
                              .epochs_asked = r->epochs_asked,
                              .selected = r->selected,
                              .data = r->data,
                              .protocol = r->protocol,
                              .protocol_text = r->protocol_text,
                              .oov = r->protocol.oov,
                              .seconds = r->seconds,
                              .scores_per_second = r->scores_per_second,
                              .verified = r->verified,
                              .verified_error = r->verified_error,
                              .verified_ranks = r->verified_ranks,
                              .covered = r->covered};
}

/* ---- files ---- */

/* With `trial` the system is asked whether both files may be written: only it knows. */
static fr_status check_files(const char *path, bool force, bool trial, fr_error *err) {
    char *side = NULL;
    TRY(ranking_side_path(path, ".json", &side, err));
    const char *const files[] = {path, side};
    fr_status status = FR_OK;
    for (int k = 0; !status && k < 2; k++) {
        struct stat facts;
        writer w = {0};
        if (!force && !lstat(files[k], &facts))
            status = fail(err, FR_EFORCE, "%s: exists", files[k]);
        if (!status && trial) status = writer_open(&w, files[k], err);
        writer_discard(&w);
    }
    free(side);
    return status;
}

fr_status fr_ranking_check(const char *path, bool force, fr_error *err) {
    NEED(path, err);
    return check_files(path, force, true, err);
}

fr_status ranking_lock(lock *l, const char *path, bool force, fr_error *err) {
    char *beside = NULL;
    *l = (lock){0};
    TRY(ranking_side_path(path, ".npy.lock", &beside, err));
    fr_status status = lock_take(l, beside, true, path, err);
    free(beside);
    return status ? status : check_files(path, force, false, err);
}

/* The records come first: if the second file cannot be written, the old description no longer fits,
 * and loading reports it. */
fr_status fr_ranking_save(const fr_ranking *ranking, const char *path, bool force, fr_error *err) {
    const fr_ranking *r = ranking;
    char *side = NULL, sha[65];
    npy_writer w = {0};
    lock pair = {0};
    NEED(ranking, err);
    NEED(path, err);
    fr_status status = ranking_lock(&pair, path, force, err);
    if (!status) status = ranking_side_path(path, ".json", &side, err);
    if (!status) status = npy_writer_open_struct(&w, path, fields, FIELDS, err);
    if (!status) status = npy_writer_put(&w, r->records, r->count, err);
    if (!status) status = npy_writer_commit(&w, err);
    if (!status) status = file_sha256(path, sha, err);
    if (!status) {
        json_t *about = json_copy(r->about);
        if (json_object_size(about) != json_object_size(r->about)) { /* jansson does not look */
            json_decref(about);
            about = NULL;
        }
        json_put(&about, "sha256", json_string(sha));
        status = json_write(side, about, err);
    }
    npy_writer_discard(&w);
    lock_release(&pair);
    free(side);
    return status;
}

/* The description belongs to these very records. */
static fr_status check_pair(const fr_ranking *r, const mapping *file, const char *path,
                            const char *side, fr_error *err) {
    char sha[65];
    const char *expected = json_string_value(json_object_get(r->about, "sha256"));
    if (!expected) return fail(err, FR_EINPUT, "%s: does not describe rank records", side);
    TRY(mapping_sha256(file, NULL, sha, err));
    if (!strcmp(sha, expected)) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: sha256 %.12s..., but %s was written for %.12s...: one of the two was changed "
                "or exchanged",
                path, sha, side, expected);
}

static bool is_record(const npy *file) {
    bool same = file->fields >= FIRST_FIELDS && file->dims == 1;
    for (int k = 0; same && k < FIELDS && k < file->fields; k++)
        same = !strcmp(file->field[k].name, fields[k].name) &&
               file->field[k].kind == fields[k].kind && file->field[k].size == fields[k].size;
    return same;
}

/* Fields that an earlier release did not write are -1; additional fields of a later one are
 * ignored. */
static void copy_records(const npy *file, fr_record *out) {
    size_t known = sizeof *out < file->item ? sizeof *out : file->item;
    for (int64_t k = 0; k < file->shape[0]; k++) {
        memset(&out[k], 0xff, sizeof out[k]);
        memcpy(&out[k], (const char *)file->data + (size_t)k * file->item, known);
    }
}

fr_status fr_ranking_load(const char *path, fr_ranking **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(path, err);
    npy file = {0};
    char *side = NULL;
    fr_ranking *r = NULL;
    fr_status status = ranking_side_path(path, ".json", &side, err);
    if (!status) status = ALLOCATE(r, 1, err);
    if (!status) status = npy_open(path, &file, err);
    if (!status && !is_record(&file))
        status =
            fail(err, FR_EINPUT, "%s: not a file of rank records (made by `fullrank rank`)", path);
    if (!status) status = ALLOCATE(r->records, file.shape[0], err);
    if (!status) {
        r->count = file.shape[0];
        copy_records(&file, r->records);
        status = json_read(side, &r->about, err);
    }
    if (!status) status = read_about(r, side, err);
    if (!status) status = check_pair(r, &file.file, path, side, err);
    npy_close(&file);
    free(side);
    if (status)
        fr_ranking_close(r);
    else
        *out = r;
    return status;
}
