/* work.c - does one unit of a study, and computes its input hash. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/sha256.h"
#include "base/text.h"
#include "rank/ranking.h"
#include "study/study.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* K of the membership table. Events whose source has met fewer candidates are not eligible. On
 * large windows these are most events, so they are not ranked. */
enum { CELL_NEGATIVES = 20 };

/* ---- results of a unit ---- */

static fr_status note_key(unit_record *r, metric_key key, double value, int64_t events,
                          fr_error *err) {
    unit_metric m = {.k = key.k, .value = value, .events = events};
    (void)snprintf(m.name, sizeof m.name, "%s", key.name);
    (void)snprintf(m.cell, sizeof m.cell, "%s", key.cell ? key.cell : "");
    (void)snprintf(m.removed, sizeof m.removed, "%s", key.removed ? key.removed : "");
    (void)snprintf(m.sampler, sizeof m.sampler, "%s", key.sampler ? key.sampler : "");
    (void)snprintf(m.path, sizeof m.path, "%s", key.path ? key.path : "");
    ARRAY_PUSH(&r->metrics, m, err);
    return FR_OK;
}

static fr_status note(unit_record *r, double value, int64_t events, fr_error *err,
                      const char *name) {
    return note_key(r, (metric_key){.name = name}, value, events, err);
}

static fr_status note_time(unit_record *r, const char *stage, double seconds, fr_error *err) {
    unit_timing t = {.seconds = seconds};
    (void)snprintf(t.stage, sizeof t.stage, "%s", stage);
    ARRAY_PUSH(&r->timings, t, err);
    return FR_OK;
}

/* Bytes for the ledger; copied. */
static fr_status keep(unit_record *r, const char *name, const void *bytes, size_t size,
                      fr_error *err) {
    unit_artefact a = {.size = size};
    (void)snprintf(a.name, sizeof a.name, "%s", name);
    TRY(allocate(size + 1, 1, &a.bytes, err));
    if (size) memcpy(a.bytes, bytes, size);
    fr_status status = ARRAY_RESERVE(&r->artefacts, 1, err);
    if (status)
        free(a.bytes);
    else
        r->artefacts.at[r->artefacts.count++] = a;
    return status;
}

static fr_status keep_json(unit_record *r, const char *name, const json_t *value, fr_error *err) {
    char *text = value ? json_print(value, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    fr_status status = text ? keep(r, name, text, strlen(text), err) : fail_memory(err, 0);
    free(text);
    return status;
}

/* A file, by its path (taken over) and hash, NULL = computed here. */
static fr_status keep_file(unit_record *r, const char *name, char *path, const char *hash,
                           fr_error *err) {
    unit_artefact a = {.path = path};
    (void)snprintf(a.name, sizeof a.name, "%s", name);
    fr_status status = path ? FR_OK : fail_memory(err, 0);
    if (!status && hash) (void)snprintf(a.sha256, sizeof a.sha256, "%s", hash);
    if (!status && !hash) status = file_sha256(path, a.sha256, err);
    if (!status) status = ARRAY_RESERVE(&r->artefacts, 1, err);
    if (status) {
        free(path);
        return status;
    }
    r->artefacts.at[r->artefacts.count++] = a;
    return FR_OK;
}

/* ---- places ---- */

/* A key as the name of a file, different for different keys: '/' becomes '+', other bytes that are
 * not plain become %XX. A name that is too long for a file ends with its hash. The caller frees it.
 */
static fr_status file_name(const char *key, char **out, fr_error *err) {
    enum { MOST = 180 };
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,=";
    text_buffer text = {0};
    for (const char *c = key; *c; c++)
        if (*c == '/')
            text_put(&text, "+");
        else if (strchr(plain, *c))
            text_put_bytes(&text, c, 1);
        else
            text_print(&text, "%%%02X", (unsigned)(unsigned char)*c);
    fr_status status = text_status(&text, err);
    if (!status && text.count > MOST) {
        sha256 h;
        char hash[65];
        status = sha256_start(&h, err);
        if (!status) {
            sha256_add(&h, key, strlen(key));
            sha256_end(&h, hash);
            text.at[text.count = MOST - 33] = 0;
            text_print(&text, "~%.32s", hash);
            status = text_status(&text, err);
        }
    }
    if (status) text_free(&text);
    *out = text.at;
    return status;
}

/* DIRECTORY/FOLDER/KEY followed by END; FOLDER is made. An existing file must not be a symbolic
 * link, because a study writes only into its own folder. FOLDER itself may be a link to another
 * disk. */
static fr_status place(const fr_study *s, const char *folder, const char *key, const char *end,
                       char **out, fr_error *err) {
    char *parent = path_join(s->directory, folder), *name = NULL;
    struct stat facts;
    *out = NULL;
    fr_status status = parent ? file_name(key, &name, err) : fail_memory(err, 0);
    if (!status && asprintf(out, "%s/%s%s", parent, name, end) < 0) {
        *out = NULL;
        status = fail_memory(err, 0);
    }
    if (!status && mkdir(parent, 0777) && !directory_is(parent))
        status = fail_errno(err, "%s: directory cannot be made", parent);
    if (!status && !lstat(*out, &facts) && S_ISLNK(facts.st_mode))
        status = fail(err, FR_EFILE, "%s: a symbolic link, expected what the study made", *out);
    free(parent);
    free(name);
    if (status) {
        free(*out);
        *out = NULL;
    }
    return status;
}

static int64_t data_unit(const fr_study *s, int data) {
    return s->plan.units.at[s->plan.data[data].unit].id;
}

fr_status study_artefact(fr_study *s, int64_t unit, const char *name, char **path, char hash[65],
                         fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    *path = NULL;
    fr_status status = ledger_prepare(&s->book, &q, err,
                                      "SELECT path, sha256 FROM artefact JOIN run ON id = run"
                                      " WHERE run = ? AND name = ? AND status = 'done'",
                                      "it", unit, name);
    if (!status) status = ledger_next(&s->book, q, &row, err);
    if (!status && !row)
        status = fail(err, FR_EINPUT, "run %lld has no %s yet", (long long)unit, name);
    if (!status) {
        const char *found = (const char *)sqlite3_column_text(q, 0);
        const char *sum = (const char *)sqlite3_column_text(q, 1);
        if (!found) found = "";
        *path = *found == '/' ? strdup(found) : path_join(s->directory, found);
        (void)snprintf(hash, 65, "%s", sum ? sum : "");
        if (!*path) status = fail_memory(err, 0);
    }
    (void)sqlite3_finalize(q);
    return status;
}

/* ---- the present data set ---- */

void work_leave(fr_study *s) {
    for (int i = 0; i < 2; i++) fr_window_close(s->window[i]);
    fr_stream_close(s->stream);
    s->window[0] = s->window[1] = NULL;
    s->stream = NULL;
    s->data = -1;
}

static fr_status enter(fr_study *s, int data, fr_error *err) {
    char *path, hash[65];
    if (s->data == data) return FR_OK;
    work_leave(s);
    TRY(study_artefact(s, data_unit(s, data), "stream", &path, hash, err));
    fr_status status = fr_stream_open(path, NULL, s->context, &s->stream, err);
    if (!status) status = fr_stream_verify(s->stream, s->context, err);
    if (!status && strcmp(fr_stream_get(s->stream).sha256, hash))
        status = fail(err, FR_EINPUT, "%s: changed while the study ran", path);
    if (!status)
        s->data = data;
    else
        work_leave(s);
    free(path);
    return status;
}

static fr_protocol protocol_of(const fr_study *s, bool diagnostic) {
    fr_protocol p = s->plan.protocol;
    if (diagnostic) p.window = s->plan.diagnostic_window;
    return p;
}

fr_status work_window(fr_study *s, const plan_unit *unit, fr_window **out, fr_error *err) {
    TRY(enter(s, unit->data, err));
    fr_window **w = &s->window[unit->diagnostic];
    fr_protocol p = protocol_of(s, unit->diagnostic);
    if (!*w) TRY(fr_window_open(s->stream, &p, s->context, w, err));
    *out = *w;
    return FR_OK;
}

/* ---- inputs ---- */

static fr_status hash_json(json_t *value, char out[65], fr_error *err) {
    char *text =
        value ? json_print(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    sha256 h;
    fr_status status = text ? sha256_start(&h, err) : fail_memory(err, 0);
    if (!status) {
        sha256_add(&h, text, strlen(text));
        sha256_end(&h, out);
    }
    free(text);
    json_decref(value);
    return status;
}

static fr_status add_text(json_t *object, const char *key, const char *text, fr_error *err) {
    return json_object_set_new(object, key, json_text(text)) ? fail_memory(err, 0) : FR_OK;
}

/* The identity of a data set before it is imported: its own hash, the hash of its file, or its
 * parameters. */
static fr_status data_inputs(fr_study *s, const plan_data *d, json_t *all, bool *missing,
                             fr_error *err) {
    char hash[65];
    if (d->synth)
        return json_object_set(all, "synth", (json_t *)(uintptr_t)d->synth) ? fail_memory(err, 0)
                                                                            : FR_OK;
    if (access(d->path, F_OK)) {
        *missing = true;
        return FR_OK;
    }
    if (directory_is(d->path)) {
        fr_stream *stream;
        TRY(fr_stream_open(d->path, NULL, s->context, &stream, err));
        (void)snprintf(hash, sizeof hash, "%s", fr_stream_get(stream).sha256);
        fr_stream_close(stream);
    } else
        TRY(study_hash_file(s, d->path, hash, err));
    return add_text(all, "source", hash, err);
}

/* The options of a table that a unit depends on. */
static fr_status hashed_options(const fr_option *table, const void *settings, json_t *out,
                                fr_error *err) {
    TRY(options_to_json(table, settings, out, err));
    for (const fr_option *o = table; o->key; o++) {
        char key[64];
        options_spell(o->key, key, sizeof key);
        if (options_later_default(table, o, settings)) (void)json_object_del(out, key);
    }
    return FR_OK;
}

/* Settings of training, and the hash of the model if it exists. */
static fr_status model_inputs(fr_study *s, const plan_unit *unit, json_t *all, fr_error *err) {
    fr_model_settings model;
    fr_training training;
    json_t *options = json_object();
    plan_unit about = *unit;
    fr_status status = options ? FR_OK : fail_memory(err, 0);
    if (!status && unit->kind == UNIT_TRAIN) status = work_chosen(s, unit, &about, err);
    if (!status) status = plan_settings(&s->plan, &about, &model, &training, err);
    if (!status) status = hashed_options(fr_model_options, &model, options, err);
    if (!status) status = hashed_options(fr_training_options, &training, options, err);
    int train = -1;
    if (!status && unit->kind == UNIT_SELECT) status = choice_inputs(s, unit, all, err);
    if (!status) status = work_trainer(s, unit, &train, err);
    if (!status && train >= 0) {
        char *path, hash[65];
        status = study_artefact(s, s->plan.units.at[train].id, "model", &path, hash, err);
        if (!status) {
            free(path);
            status = add_text(all, "model_sha256", hash, err);
        }
    }
    if (json_object_set_new(all, "options", options) && !status) status = fail_memory(err, 0);
    return status;
}

/* True if it ranks events of the ranking window. */
static bool is_ranking(const plan_unit *unit) {
    return !unit->diagnostic &&
           (unit->kind == UNIT_RANK || unit->kind == UNIT_PROJECT || unit->kind == UNIT_BATCHES);
}

/* The stream's hash and the protocol. */
static fr_status window_inputs(fr_study *s, const plan_unit *unit, json_t *all, fr_error *err) {
    fr_protocol p = protocol_of(s, unit->diagnostic);
    char *path, hash[65];
    TRY(study_artefact(s, data_unit(s, unit->data), "stream", &path, hash, err));
    free(path);
    TRY(add_text(all, "data", hash, err));
    json_t *protocol = json_object();
    if (json_object_set_new(all, "protocol", protocol)) return fail_memory(err, 0);
    TRY(options_to_json(fr_protocol_options, &p, protocol, err));
    const fr_rank_settings *ranking = &s->plan.ranking;
    bool sampled = ranking->sample_events && is_ranking(unit);
    if (sampled &&
        (json_object_set_new(protocol, "sample", json_integer(ranking->sample_events)) ||
         json_object_set_new(protocol, "sample_seed", json_integer(ranking->sample_seed))))
        return fail_memory(err, 0);
    if (json_object_set_new(protocol, "diagnostic", json_integer(s->plan.diagnostic_window)))
        return fail_memory(err, 0);
    if (unit->kind == UNIT_BATCHES &&
        json_object_set(all, "granularity", (json_t *)(uintptr_t)s->plan.granularity))
        return fail_memory(err, 0);
    if (unit->kind == UNIT_PROJECT && unit->diagnostic && s->plan.projection_on[1] &&
        json_object_set_new(all, "full", json_true()))
        return fail_memory(err, 0);
    return FR_OK;
}

fr_status work_inputs(fr_study *s, const plan_unit *unit, char out[65], bool *missing,
                      fr_error *err) {
    json_t *all = json_pack("{s:s, s:s}", "kind", unit_kind_name[unit->kind], "key", unit->key);
    fr_status status = all ? FR_OK : fail_memory(err, 0);
    *missing = false;
    if (!status && unit->kind == UNIT_DATA)
        status = data_inputs(s, &s->plan.data[unit->data], all, missing, err);
    else if (!status) {
        if (s->plan.data[unit->data].unit >= 0) status = window_inputs(s, unit, all, err);
        if (!status && unit->external) status = external_inputs(s, unit, all, missing, err);
        if (!status && unit->model) status = add_text(all, "scorer", unit->model, err);
        if (!status && unit->trained) status = model_inputs(s, unit, all, err);
    }
    if (status) {
        json_decref(all);
        return status;
    }
    return hash_json(all, out, err);
}

/* ---- units ---- */

static fr_status do_data(fr_study *s, const plan_unit *unit, unit_record *result, fr_error *err) {
    const plan_data *d = &s->plan.data[unit->data];
    char *path = NULL;
    work_leave(s);
    fr_status status = FR_OK;
    if (d->path && directory_is(d->path)) {
        if (!(path = realpath(d->path, NULL))) status = fail_errno(err, "%s", d->path);
    } else
        status = place(s, "data", d->name, "", &path, err);
    if (!status && d->synth) {
        fr_synth settings = {.size = sizeof settings};
        status = plan_synth(d->synth, &settings, err);
        settings.force = true;
        if (!status) status = fr_synth_make(&settings, path, s->context, err);
        fr_options_free(fr_synth_options, &settings);
    } else if (!status && !directory_is(d->path)) {
        fr_import settings = {.size = sizeof settings, .force = true};
        status = fr_import_file(d->path, path, &settings, s->context, err);
    }
    fr_stream *stream = NULL;
    if (!status) status = fr_stream_open(path, NULL, s->context, &stream, err);
    if (!status) {
        fr_stream_facts f = fr_stream_get(stream);
        status = note(result, (double)f.events, f.events, err, "events");
        if (!status) status = keep_file(result, "stream", path, f.sha256, err);
        path = NULL;
    }
    fr_stream_close(stream);
    free(path);
    return status;
}

/* The inputs of every scorer of this data set. */
static void say_facts(const fr_study *s, const plan_unit *unit, const fr_window_facts *w,
                      const fr_facts *f) {
    context_log(s->caller, FR_NOTICE,
                "%s: %lld training events; %lld of %lld test events are ranked, against %lld "
                "candidates: %lld scores by each scorer",
                s->plan.data[unit->data].name, (long long)w->train, (long long)f->covered,
                (long long)w->test, (long long)w->catalog_size,
                (long long)f->covered * (long long)w->catalog_size);
}

static fr_status do_facts(fr_study *s, const plan_unit *unit, unit_record *result, fr_error *err) {
    fr_window *w, *wide;
    plan_unit diagnostic = *unit;
    fr_facts f;
    diagnostic.diagnostic = true;
    TRY(work_window(s, unit, &w, err));
    TRY(work_window(s, &diagnostic, &wide, err));
    TRY(fr_facts_compute(w, wide, s->context, &f, err));
    fr_stream_facts stream = fr_stream_get(s->stream);
    fr_window_facts window = fr_window_get(w), outer = fr_window_get(wide);
    const struct {
        const char *name;
        double value;
    } facts[] = {{"events", (double)stream.events},
                 {"sources", (double)stream.sources},
                 {"destinations", (double)stream.destinations},
                 {"feature-width", (double)stream.feature_width},
                 {"window", (double)window.events},
                 {"train", (double)window.train},
                 {"test", (double)window.test},
                 {"catalog", (double)window.catalog_size},
                 {"covered", (double)f.covered},
                 {"repeated", (double)f.repeated},
                 {"new", (double)f.new_},
                 {"tied-times", (double)f.tied_times},
                 {"available-ranked", (double)f.available_ranked},
                 {"diagnostic-window", (double)outer.events},
                 {"diagnostic-catalog", (double)f.diagnostic_catalog},
                 {"eligible", (double)f.eligible},
                 {"membership-repeated", (double)f.membership_repeated},
                 {"membership-new", (double)f.membership_new}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        TRY(note(result, facts[i].value, window.test, err, facts[i].name));
    say_facts(s, unit, &window, &f);
    return keep(result, "catalog_sha256", window.catalog_sha256, strlen(window.catalog_sha256),
                err);
}

/* The epoch that was selected, and its value. */
static fr_status note_selection(unit_record *result, const json_t *about, fr_error *err) {
    const json_t *selection = json_object_get(about, "selection");
    int64_t events = json_integer_value(json_object_get(selection, "events"));
    if (!selection) return FR_OK;
    TRY(note(result, json_number_value(json_object_get(selection, "value")), events, err,
             "validation"));
    return note(result, json_number_value(json_object_get(selection, "selected")), events, err,
                "selected");
}

/* Copies a file to another path. */
static fr_status copy_bytes(const char *from, const char *to, fr_error *err) {
    mapping file;
    writer out = {0};
    TRY(mapping_open(from, &file, err));
    fr_status status = writer_open(&out, to, err);
    if (!status) status = writer_put(&out, file.bytes, file.size, err);
    if (!status) status = writer_commit(&out, err);
    writer_discard(&out);
    mapping_close(&file);
    return status;
}

/* A final training continues the chosen one, if its state still exists. Otherwise it starts again,
 * which gives the same model. */
static fr_status take_over(fr_study *s, const plan_unit *unit, const char *run, const char *state,
                           fr_error *err) {
    int number;
    char *folder = NULL, *from = NULL;
    TRY(work_trainer(s, unit, &number, err));
    fr_status status = place(s, "runs", s->plan.units.at[number].key, "", &folder, err);
    if (!status && !(from = path_join(folder, "state.safetensors"))) status = fail_memory(err, 0);
    if (!status && mkdir(run, 0777) && !directory_is(run))
        status = fail_errno(err, "%s: directory cannot be made", run);
    if (!status && !access(from, F_OK)) status = copy_bytes(from, state, err);
    free(from);
    free(folder);
    return status;
}

static fr_status do_train(fr_study *s, const plan_unit *unit, bool again, unit_record *result,
                          fr_error *err) {
    fr_window *w;
    fr_model_settings model;
    fr_training training;
    char *run = NULL, *checkpoint = NULL, *record = NULL, *state = NULL;
    json_t *about = NULL;
    plan_unit chosen;
    TRY(work_window(s, unit, &w, err));
    TRY(work_chosen(s, unit, &chosen, err));
    TRY(plan_settings(&s->plan, &chosen, &model, &training, err));
    fr_status status = place(s, "runs", unit->key, "", &run, err);
    if (!status) {
        checkpoint = path_join(run, "model.safetensors");
        record = path_join(run, "train.json");
        state = path_join(run, "state.safetensors");
        if (!checkpoint || !record || !state) status = fail_memory(err, 0);
    }
    if (!status && unit->chosen && !again) status = take_over(s, unit, run, state, err);
    if (!status) {
        training.resume = (again || unit->chosen) && !access(state, F_OK);
        if (training.resume)
            status = fr_train_run(w, unit->model, &model, &training, run, s->context, err);
        if (!training.resume || status == FR_EINPUT || status == FR_EUSAGE) {
            /* Existing files of the unit are useless and replaced; other files in the folder stay.
             */
            training.resume = false;
            training.force = true;
            (void)unlink(state);
            status = fr_train_run(w, unit->model, &model, &training, run, s->context, err);
        }
    }
    if (!status) status = json_read(record, &about, err);
    if (!status) {
        const json_t *loss = json_object_get(about, "loss"),
                     *seconds = json_object_get(about, "seconds");
        double total = 0;
        for (size_t e = 0; !status && e < json_array_size(loss); e++) {
            total += json_number_value(json_array_get(seconds, e));
            status = note_key(result, (metric_key){.name = "loss", .k = (int64_t)e + 1},
                              json_number_value(json_array_get(loss, e)),
                              json_integer_value(json_object_get(about, "train_events")), err);
        }
        if (!status) status = note_time(result, "epochs", total, err);
        if (!status) status = note_selection(result, about, err);
    }
    if (!status) status = keep_json(result, "train.json", about, err);
    if (!status) {
        status = keep_file(result, "model", checkpoint, NULL, err);
        checkpoint = NULL;
    }
    json_decref(about);
    free(checkpoint);
    free(record);
    free(state);
    free(run);
    return status;
}

/* Which of a model's configurations will be ranked. */
static fr_status do_select(fr_study *s, const plan_unit *unit, unit_record *result, fr_error *err) {
    int chosen;
    json_t *about;
    TRY(choice_make(s, unit, &chosen, &about, err));
    const json_t *list = json_object_get(about, "configurations");
    int64_t count = (int64_t)json_array_size(list);
    fr_status status = note(result, chosen, count, err, "chosen");
    if (!status) status = note(result, (double)count, count, err, "configurations");
    if (!status)
        status =
            note(result,
                 json_number_value(json_object_get(json_array_get(list, (size_t)chosen), "mean")),
                 count, err, "validation");
    if (!status) status = keep_json(result, "selection", about, err);
    json_decref(about);
    return status;
}

/* "baseline:NAME", "oracle", the text of an external scorer, or the checkpoint of the training
 * unit. The caller frees it. */
static fr_status scorer_spec(fr_study *s, const plan_unit *unit, char **out, fr_error *err) {
    int train;
    TRY(work_trainer(s, unit, &train, err));
    if (train >= 0) {
        char hash[65];
        return study_artefact(s, s->plan.units.at[train].id, "model", out, hash, err);
    }
    *out = strdup(unit->external ? unit->external : unit->model);
    return *out ? FR_OK : fail_memory(err, 0);
}

/* One ranking pass; `removal` is removed from a model's representation. */
static fr_status rank_once(fr_study *s, const plan_unit *unit, const fr_window *w, int removal,
                           int64_t met, fr_ranking **out, fr_error *err) {
    fr_scorer *scorer = NULL;
    fr_rank_settings settings = s->plan.ranking; /* texts are the plan's */
    char *spec;
    *out = NULL;
    settings.met = met;
    if (!is_ranking(unit)) settings.sample_events = 0;
    TRY(scorer_spec(s, unit, &spec, err));
    fr_status status = fr_scorer_open(spec, w, unit->seed, s->context, &scorer, err);
    if (!status && removal != FR_REMOVE_NOTHING)
        status = fr_scorer_project(scorer, removal, unit->seed, s->context, err);
    if (!status) status = fr_rank_run(scorer, &settings, s->context, out, err);
    fr_scorer_close(scorer);
    free(spec);
    return status;
}

/* The numbers of rank records that tables show and that users look for in a database. */
static fr_status note_metrics(fr_study *s, const fr_ranking *r, unit_record *result,
                              fr_error *err) {
    static const char *const names[] = {
        "mrr",     "hits@1",     "hits@3",         "hits@5",          "hits@10",
        "hits@50", "all-seen",   "all-unseen",     "coverage",        "mrr-available",
        "ties",    "tie-spread", "mrr-optimistic", "mrr-random-ties", "mrr-pessimistic"};
    enum { NAMES = sizeof names / sizeof *names };
    fr_metric_value value[NAMES];
    TRY(fr_metrics_compute(r->records, r->count, r->protocol.oov, names, NAMES, value, err));
    for (int i = 0; i < NAMES; i++) {
        if (r->protocol.sample && !strcmp(names[i], "coverage")) /* known for all events */
            value[i] = (fr_metric_value){(double)r->covered / (double)r->protocol.sample_of,
                                         r->protocol.sample_of};
        TRY(note(result, value[i].value, value[i].events, err, names[i]));
    }
    fr_expected *expected;
    TRY(ALLOCATE(expected, s->plan.ks, err));
    fr_sampling uniform = {
        .sampler = "uniform", .oov = r->protocol.oov, .k = s->plan.k, .k_count = s->plan.ks};
    fr_status status =
        fr_expected_compute(r->records, r->count, &uniform, s->context, expected, err);
    for (int i = 0; !status && i < s->plan.ks; i++)
        status =
            note_key(result, metric_of_k(expected[i].k), expected[i].mrr, expected[i].events, err);
    free(expected);
    return status;
}

static fr_status do_rank(fr_study *s, const plan_unit *unit, unit_record *result, fr_error *err) {
    fr_window *w;
    fr_ranking *r = NULL;
    char *path = NULL;
    fr_status status = FR_OK;
    if (unit->ranks)
        status = external_load(s, unit, &r, err);
    else {
        status = work_window(s, unit, &w, err);
        if (!status) status = rank_once(s, unit, w, FR_REMOVE_NOTHING, 0, &r, err);
    }
    if (!status) status = place(s, "ranks", unit->key, ".npy", &path, err);
    if (!status) status = fr_ranking_save(r, path, true, err);
    if (!status) status = note_metrics(s, r, result, err);
    if (!status) status = note_time(result, "rank", r->seconds, err);
    if (!status)
        status = keep(result, "records", r->records, (size_t)r->count * sizeof *r->records, err);
    if (!status) status = keep_json(result, "about", r->about, err);
    if (!status) {
        status = keep_file(result, "ranks", path, NULL, err);
        path = NULL;
    }
    free(path);
    fr_ranking_close(r);
    return status;
}

static fr_status do_minimal(fr_study *s, const plan_unit *unit, unit_record *result,
                            fr_error *err) {
    fr_window *w;
    fr_minimal_settings settings;
    fr_minimal m;
    plan_unit diagnostic = *unit;
    diagnostic.diagnostic = true;
    TRY(work_window(s, &diagnostic, &w, err));
    TRY(fr_options_defaults(fr_minimal_options, &settings, err));
    TRY(fr_minimal_compute(w, &settings, 7, s->context, &m, err));
    TRY(note(result, (double)m.eligible, m.eligible, err, "eligible"));
    TRY(note(result, (double)m.repeated, m.eligible, err, "repeated"));
    TRY(note(result, m.p1, m.eligible, err, "p1"));
    TRY(note(result, m.random.q1, m.eligible, err, "q1"));
    TRY(note(result, m.random.beta_star, m.eligible, err, "beta-star"));
    TRY(note(result, m.random.beta, m.eligible, err, "beta-random"));
    TRY(note(result, m.random.error, m.eligible, err, "beta-random-error"));
    return note(result, m.history.beta, m.eligible, err, "beta-history");
}

/* The four cells of records made with the time-available catalog. */
static fr_status note_cells(fr_study *s, const fr_ranking *r, int removal, unit_record *result,
                            fr_error *err) {
    fr_membership m;
    TRY(fr_membership_compute(r, CELL_NEGATIVES, 7, s->context, &m, err));
    TRY(note_key(result, metric_of_cell("eligible", removal, -1), (double)m.eligible, m.ranked,
                 err));
    for (int c = 0; c < FR_CELLS; c++) {
        const fr_cell *cell = &m.cell[c];
        TRY(note_key(result, metric_of_cell("mrr", removal, c), cell->mrr, cell->events, err));
        TRY(note_key(result, metric_of_cell("mrr-drawn", removal, c), cell->drawn, cell->events,
                     err));
    }
    return FR_OK;
}

/* The unit's window with the candidates of the membership table. */
static fr_status open_available(fr_study *s, const plan_unit *unit, fr_window **out,
                                fr_error *err) {
    fr_protocol p = protocol_of(s, unit->diagnostic);
    char available[] = "time";
    p.catalog = available;
    TRY(enter(s, unit->data, err));
    return fr_window_open(s->stream, &p, s->context, out, err);
}

static fr_status do_membership(fr_study *s, const plan_unit *unit, unit_record *result,
                               fr_error *err) {
    fr_window *w = NULL;
    fr_ranking *r = NULL;
    fr_status status = open_available(s, unit, &w, err);
    if (!status) status = rank_once(s, unit, w, FR_REMOVE_NOTHING, CELL_NEGATIVES, &r, err);
    if (!status) status = note_cells(s, r, -1, result, err);
    if (!status) status = note_time(result, "rank", r->seconds, err);
    fr_ranking_close(r);
    fr_window_close(w);
    return status;
}

/* The full MRR without a direction. On the diagnostic window many events may not be covered, so it
 * is also noted with these as zeros. */
static fr_status note_full(const fr_ranking *r, bool diagnostic, int removal, unit_record *result,
                           fr_error *err) {
    const char *mrr = "mrr";
    fr_metric_value value;
    TRY(fr_metrics_compute(r->records, r->count, r->protocol.oov, &mrr, 1, &value, err));
    TRY(note_key(result, metric_of_cell(mrr, removal, -1), value.value, value.events, err));
    if (!diagnostic) return FR_OK;
    TRY(fr_metrics_compute(r->records, r->count, FR_OOV_ZERO, &mrr, 1, &value, err));
    return note_key(result, metric_of_cell("mrr-uncovered-zero", removal, -1), value.value,
                    value.events, err);
}

/* PROTOCOL 10: the four cells on the diagnostic window (`cells`), or the full MRR. */
static fr_status project_once(fr_study *s, const plan_unit *unit, bool cells, unit_record *result,
                              fr_error *err) {
    fr_window *w = NULL;
    fr_status status = cells ? open_available(s, unit, &w, err) : work_window(s, unit, &w, err);
    for (int removal = 0; !status && removal < FR_REMOVALS; removal++) {
        fr_ranking *r = NULL;
        status = rank_once(s, unit, w, removal, cells ? CELL_NEGATIVES : 0, &r, err);
        if (!status)
            status = cells ? note_cells(s, r, removal, result, err)
                           : note_full(r, unit->diagnostic, removal, result, err);
        fr_ranking_close(r);
    }
    if (cells) fr_window_close(w);
    return status;
}

static fr_status do_project(fr_study *s, const plan_unit *unit, unit_record *result,
                            fr_error *err) {
    if (unit->diagnostic) TRY(project_once(s, unit, true, result, err));
    return s->plan.projection_on[unit->diagnostic] ? project_once(s, unit, false, result, err)
                                                   : FR_OK;
}

/* The MRR of the scorer when its state is updated every N events. */
static fr_status rank_by_batches(fr_study *s, const plan_unit *unit, int64_t size,
                                 unit_record *result, fr_error *err) {
    static const char *const mrr = "mrr";
    fr_protocol p = protocol_of(s, false);
    fr_window *w = NULL;
    fr_ranking *r = NULL;
    fr_metric_value value;
    char order[40];
    (void)snprintf(order, sizeof order, "batch:%lld", (long long)size);
    p.order = order;
    fr_status status = fr_window_open(s->stream, &p, s->context, &w, err);
    if (!status) status = rank_once(s, unit, w, FR_REMOVE_NOTHING, 0, &r, err);
    if (!status)
        status = fr_metrics_compute(r->records, r->count, r->protocol.oov, &mrr, 1, &value, err);
    if (!status)
        status = note_key(result, (metric_key){.name = "mrr", .k = size}, value.value, value.events,
                          err);
    fr_ranking_close(r);
    fr_window_close(w);
    return status;
}

static fr_status do_batches(fr_study *s, const plan_unit *unit, unit_record *result,
                            fr_error *err) {
    const json_t *sizes = s->plan.granularity;
    TRY(enter(s, unit->data, err));
    for (size_t i = 0; i < json_array_size(sizes); i++)
        TRY(rank_by_batches(s, unit, json_integer_value(json_array_get(sizes, i)), result, err));
    return FR_OK;
}

static fr_status do_scaling(fr_study *s, const plan_unit *unit, unit_record *result,
                            fr_error *err) {
    fr_window *w;
    fr_scaling_settings settings;
    fr_scaling_point point[FR_SCALING_MAX];
    int count;
    char *spec;
    TRY(work_window(s, unit, &w, err));
    TRY(fr_options_defaults(fr_scaling_options, &settings, err));
    TRY(scorer_spec(s, unit, &spec, err));
    fr_status status =
        fr_scaling_run(w, spec, &settings, unit->seed, s->context, point, &count, err);
    for (int i = 0; !status && i < count; i++) {
        const fr_scaling_point *p = &point[i];
        metric_key seconds = {.name = "seconds", .path = p->path, .k = p->size}, bytes = seconds;
        bytes.name = "bytes";
        status = note_key(result, seconds, p->seconds, p->events, err);
        if (!status) status = note_key(result, bytes, (double)p->peak_bytes, p->events, err);
    }
    free(spec);
    return status;
}

fr_status work_do(fr_study *s, const plan_unit *unit, bool again, unit_record *result,
                  fr_error *err) {
    double start = clock_now();
    fr_status status = FR_OK;
    switch (unit->kind) {
    case UNIT_DATA: status = do_data(s, unit, result, err); break;
    case UNIT_FACTS: status = do_facts(s, unit, result, err); break;
    case UNIT_MINIMAL: status = do_minimal(s, unit, result, err); break;
    case UNIT_TRAIN: status = do_train(s, unit, again, result, err); break;
    case UNIT_RANK: status = do_rank(s, unit, result, err); break;
    case UNIT_MEMBERSHIP: status = do_membership(s, unit, result, err); break;
    case UNIT_SELECT: status = do_select(s, unit, result, err); break;
    case UNIT_BATCHES: status = do_batches(s, unit, result, err); break;
    case UNIT_PROJECT: status = do_project(s, unit, result, err); break;
    default: status = do_scaling(s, unit, result, err); break;
    }
    if (!status) status = note_time(result, "all", clock_now() - start, err);
    return status;
}
