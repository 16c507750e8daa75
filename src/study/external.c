/* external.c - external runs: rank records and scorers that a document names (study.h).
 *
 * Their units depend on the contents of the files, so a changed file is read again. Rank records
 * must have the study's events and protocol; this is checked before anything is trained or ranked.
 * In a data set without a stream, the first records are the reference for the others.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/json.h"
#include "base/os.h"
#include "data/window.h"
#include "rank/check.h"
#include "rank/protocol.h"
#include "rank/ranking.h"
#include "study/study.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

/* The hash of a file, cached as long as the file is the same, because units are checked often. */
fr_status study_hash_file(fr_study *s, const char *path, char out[65], fr_error *err) {
    struct stat facts;
    hashed_file *h = NULL;
    if (stat(path, &facts)) return fail_errno(err, "%s", path);
    for (size_t i = 0; i < s->hashes.count && !h; i++)
        if (!strcmp(s->hashes.at[i].path, path)) h = &s->hashes.at[i];
    if (h && h->inode == facts.st_ino && h->size == facts.st_size &&
        h->modified == os_modified(&facts)) {
        memcpy(out, h->sha256, sizeof h->sha256);
        return FR_OK;
    }
    TRY(file_sha256(path, out, err));
    if (!h) {
        TRY(ARRAY_RESERVE(&s->hashes, 1, err));
        char *copy = strdup(path);
        if (!copy) return fail_memory(err, strlen(path));
        h = &s->hashes.at[s->hashes.count++];
        h->path = copy;
    }
    h->inode = facts.st_ino;
    h->size = facts.st_size;
    h->modified = os_modified(&facts);
    memcpy(h->sha256, out, sizeof h->sha256);
    return FR_OK;
}

/* The file of an external unit, which may be a pattern for several. The caller frees it. NULL and
 * FR_OK if there is none. */
static fr_status path_of(const plan_unit *u, char **out, fr_error *err) {
    size_t size = strlen(u->external);
    const char *file = u->ranks ? u->external : plan_scorer_file(u->external, &size);
    *out = file ? strndup(file, size) : NULL;
    return !file || *out ? FR_OK : fail_memory(err, size);
}

static fr_status hash_into(fr_study *s, const char *path, json_t *list, fr_error *err) {
    char hash[65];
    TRY(study_hash_file(s, path, hash, err));
    return json_array_append_new(list, json_string(hash)) ? fail_memory(err, 0) : FR_OK;
}

/* A file, and for a .npy also its description files. */
static fr_status hash_with_sides(fr_study *s, const char *path, json_t *list, fr_error *err) {
    static const char *const ends[] = {".json", ".events.npy", ".destinations.npy"};
    size_t size = strlen(path);
    TRY(hash_into(s, path, list, err));
    for (int i = 0; i < 3 && size > 4 && !strcmp(path + size - 4, ".npy"); i++) {
        char *side;
        TRY(ranking_side_path(path, ends[i], &side, err));
        fr_status status = access(side, F_OK) ? FR_OK : hash_into(s, side, list, err);
        free(side);
        TRY(status);
    }
    return FR_OK;
}

fr_status external_inputs(fr_study *s, const plan_unit *u, json_t *all, bool *missing,
                          fr_error *err) {
    char *path;
    json_t *list = json_array();
    if (json_object_set_new(all, "files", list)) return fail_memory(err, 0);
    TRY(path_of(u, &path, err));
    if (!path)
        return json_object_set_new(all, "external", json_text(u->external)) ? fail_memory(err, 0)
                                                                            : FR_OK;
    glob_t found = {0};
    int code = access(path, F_OK) && !u->ranks ? glob(path, 0, NULL, &found) : GLOB_NOMATCH;
    fr_status status = code == GLOB_NOSPACE ? fail_memory(err, 0) : FR_OK;
    if (!status && code == 0)
        for (size_t i = 0; !status && i < found.gl_pathc; i++)
            status = hash_with_sides(s, found.gl_pathv[i], list, err);
    else if (!status && access(path, F_OK))
        *missing = true;
    else if (!status)
        status = hash_with_sides(s, path, list, err);
    if (code == 0) globfree(&found);
    size_t size; /* the options of a plug-in follow its file */
    const char *file = u->ranks ? NULL : plan_scorer_file(u->external, &size);
    if (!status && file && json_object_set_new(all, "options", json_text(file + size)))
        status = fail_memory(err, 0);
    free(path);
    return status;
}

fr_status external_missing(const plan_unit *u, fr_error *err) {
    char *path;
    TRY(path_of(u, &path, err));
    fr_status status = fail(err, FR_EFILE, "%s: is not there; the study names it as %s",
                            path ? path : "", u->model);
    free(path);
    return status;
}

fr_status external_there(const plan_unit *u, fr_error *err) {
    char *path;
    glob_t found = {0};
    TRY(path_of(u, &path, err));
    bool there = !path || !access(path, F_OK);
    if (!there && !u->ranks && !glob(path, 0, NULL, &found)) {
        there = true;
        globfree(&found);
    }
    free(path);
    return there ? FR_OK : external_missing(u, err);
}

/* ---- rank records ---- */

/* The protocol of the study on this data set, or of the first records of a data set without a
 * stream, and where it comes from. The texts belong to the window or to `other`, which the caller
 * frees. */
static fr_status reference(fr_study *s, const plan_unit *u, const fr_window *w,
                           const event_list *events, fr_protocol_facts *out, const char **whose,
                           fr_ranking **other, fr_error *err) {
    *other = NULL;
    if (w) {
        const fr_rank_settings *ranking = &s->plan.ranking;
        *out = protocol_of_window(w, ranking->popularity_power, ranking->met);
        protocol_sample(out, events);
        *whose = s->plan.data[u->data].name;
        return FR_OK;
    }
    for (size_t i = 0; i < s->plan.units.count && !*other; i++) {
        const plan_unit *first = &s->plan.units.at[i];
        if (first->data != u->data || !first->ranks || access(first->external, F_OK)) continue;
        TRY(fr_ranking_load(first->external, other, err));
        *whose = first->external;
    }
    *out = fr_ranking_get(*other).protocol;
    return FR_OK;
}

/* Records that claim to be of these events must be of them. */
static fr_status check_events(const fr_ranking *r, const fr_window *w, const event_list *events,
                              const char *path, fr_error *err) {
    for (int64_t i = 0; i < r->count; i++) {
        const fr_record *x = &r->records[i];
        int32_t event = events_at(events, i);
        if (x->event == w->first + event && x->source == w->source_id[w->source[event]] &&
            x->destination == w->destination_id[w->destination[event]] &&
            x->covered == window_covered(w, event))
            continue;
        return fail(err, FR_EINPUT,
                    "%s: record %lld is event %lld (%lld to %lld), expected event %lld (%lld to "
                    "%lld) of %s",
                    path, (long long)i, (long long)x->event, (long long)x->source,
                    (long long)x->destination, (long long)(w->first + event),
                    (long long)w->source_id[w->source[event]],
                    (long long)w->destination_id[w->destination[event]], w->stream->name);
    }
    return FR_OK;
}

fr_status external_load(fr_study *s, const plan_unit *u, fr_ranking **out, fr_error *err) {
    fr_window *w = NULL;
    fr_ranking *r = NULL, *other = NULL;
    fr_protocol_facts expected = {0};
    event_list events = {0};
    const char *whose = "";
    *out = NULL;
    if (s->plan.data[u->data].unit >= 0) TRY(work_window(s, u, &w, err));
    fr_status status = fr_ranking_load(u->external, &r, err);
    if (!status && w)
        status = events_open(&events, w, s->plan.ranking.sample_events, s->plan.ranking.sample_seed,
                             err);
    if (!status) status = reference(s, u, w, &events, &expected, &whose, &other, err);
    if (!status) {
        char fields[640];
        if (fr_protocol_compare(&r->protocol, &expected, fields, sizeof fields))
            status =
                fail(err, FR_EINPUT, "%s: made under another protocol than %s%s; they differ in %s",
                     u->external, w ? "the study's on " : "", whose, fields);
    }
    int64_t count = status ? 0 : r->protocol.sample ? r->protocol.sample : r->protocol.test;
    if (!status && r->count != count)
        status = fail(err, FR_EINPUT, "%s: %lld records, expected %lld, one per test event",
                      u->external, (long long)r->count, (long long)count);
    if (!status) status = check_needs_seen(r->records, r->count, u->external, err);
    if (!status && w) status = check_events(r, w, &events, u->external, err);
    events_close(&events);
    fr_ranking_close(other);
    if (status)
        fr_ranking_close(r);
    else
        *out = r;
    return status;
}

fr_status external_check(fr_study *s, const plan_unit *u, fr_error *err) {
    fr_error inner = {0};
    fr_ranking *ranking = NULL;
    fr_scorer *scorer = NULL;
    fr_window *w;
    if (u->ranks) {
        TRY(external_load(s, u, &ranking, err));
        fr_ranking_close(ranking);
        return FR_OK;
    }
    TRY(work_window(s, u, &w, err));
    fr_status status = fr_scorer_open(u->external, w, u->seed, s->context, &scorer, &inner);
    fr_scorer_close(scorer);
    if (status == FR_EUSAGE) status = FR_EINPUT; /* errors refer to the document */
    return status ? fail(err, status, "%s: %s", u->key, inner.message) : FR_OK;
}
