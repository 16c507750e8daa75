/* run.c - a training run on disk (fullrank.h, chapter 12).
 *
 * After every epoch three files are replaced, each at once: model.safetensors, train.json, and
 * state.safetensors with parameters, moments and the history of the run, for --resume. All
 * randomness is a function of (seed, epoch, event), so nothing else needs to be kept.
 *
 * A training run with selection (select.h) has two phases: epochs that are ranked on the validation
 * part, of which the best is kept; and with --final train+val, the same number of epochs from the
 * start on both parts. Its state also contains the best epoch's checkpoint and all values so far.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/number.h"
#include "base/options.h"
#include "models/checkpoint.h"
#include "train/select.h"
#include "train/trainer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const fr_option fr_training_options[FR_OPTIONS_MAX] = {
    {"objective", FR_OPTION_CHOICE, "bce", "bce|bpr", 0, 0, offsetof(fr_training, objective),
     "binary cross-entropy of positive and negative, or their pairwise order"},
    {"epochs", FR_OPTION_INT, "3", "N", 1, 100000, offsetof(fr_training, epochs),
     "passes over the training prefix"},
    {"batch-size", FR_OPTION_INT, "200", "N", 1, 100000, offsetof(fr_training, batch_size),
     "events per step"},
    {"lr", FR_OPTION_REAL, "0.001", "RATE", 0, 10, offsetof(fr_training, rate),
     "learning rate of Adam"},
    {"seed", FR_OPTION_INT, "7", "N", 0, 0x1p53, offsetof(fr_training, seed),
     "seed of initial parameters, order, negatives and dropout"},
    {"deterministic", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_training, deterministic),
     "no dropout, stream order, negatives by formula; for comparing implementations"},
    {"resume", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_training, resume),
     "continue from the last complete epoch"},
    {"select", FR_OPTION_TEXT, "", "METRIC", 0, 0, offsetof(fr_training, select),
     "rank every epoch on the validation part (val-share) and keep the best by this metric: mrr, "
     "hits@10, expected-20, ...; without it the last epoch is kept"},
    {"patience", FR_OPTION_INT, "0", "N", 0, 100000, offsetof(fr_training, patience),
     "stop after N epochs in a row without an improvement; 0 = train all epochs. "
     "Without select, the metric is mrr"},
    {"final", FR_OPTION_CHOICE, "train", "train|train+val", 0, 0, offsetof(fr_training, final),
     "data of the final model; train+val: train again on both parts, from the start, "
     "for the selected number of epochs"},
    {"weight-decay", FR_OPTION_REAL, "0", "RATE", 0, 1, offsetof(fr_training, weight_decay),
     "AdamW: every step reduces each parameter by lr times this share"},
    {"negatives", FR_OPTION_CHOICE, "catalog", "catalog|window", 0, 0,
     offsetof(fr_training, negatives),
     "draw negatives from the catalog, or from all destinations of the window, "
     "including those that occur only in its test part"},
    {"shuffle", FR_OPTION_CHOICE, "auto", "auto|yes|no", 0, 0, offsetof(fr_training, shuffle),
     "training events in a new random order each epoch, or in stream order; auto: as "
     "the model is defined. A model with memory always uses stream order"},
    {"settings", FR_OPTION_TEXT, "", "FAMILY", 0, 0, offsetof(fr_training, settings),
     "defaults of the other options: architecture (the default), each model as its "
     "authors published it; or published, as the paper's authors ran it. Options that "
     "you give override them"},
    {.offset = offsetof(fr_training, weight_decay), .help = "fr_training"}};

typedef struct epochs {
    ARRAY(double) losses, seconds; /* of each */
} epochs;

enum { PHASES = 2 }; /* the training, and another one on training and validation */

typedef struct run {
    const char *folder;
    const fr_context *context;
    const fr_model_settings *shape;
    fr_training how; /* as requested; the trainer may have other epochs */
    model m;
    trainer t;
    selection s;
    int phase;
    epochs past[PHASES];
} run;

/* Epochs done by the present model. */
static int64_t done(const run *r) { return (int64_t)r->past[r->phase].losses.count; }

static bool is_finished(const run *r) {
    if (r->phase) return done(r) >= r->s.epoch;
    return r->how.final == FR_FINAL_TRAIN && selection_over(&r->s, &r->how, done(r));
}

/* ---- files ---- */

static json_t *numbers_json(const double *at, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_push(&list, json_real(at[i]));
    return list;
}

static json_t *history_json(const run *r) {
    const epochs *first = &r->past[0], *last = &r->past[1];
    json_t *out = json_object();
    json_put(&out, "loss", numbers_json(first->losses.at, first->losses.count));
    json_put(&out, "seconds", numbers_json(first->seconds.at, first->seconds.count));
    if (r->s.metric) json_put(&out, "validation", numbers_json(r->s.values.at, r->s.values.count));
    if (r->phase) {
        json_put(&out, "final_loss", numbers_json(last->losses.at, last->losses.count));
        json_put(&out, "final_seconds", numbers_json(last->seconds.at, last->seconds.count));
    }
    return out;
}

/* The curve, what was selected, and the training that followed. */
static void put_selection(const run *r, json_t **root) {
    const epochs *first = &r->past[0], *last = &r->past[1];
    json_t *curve = json_array();
    for (size_t e = 0; e < r->s.values.count; e++)
        json_push(&curve, json_pack("{s:I, s:f, s:f, s:f}", "epoch", (json_int_t)e + 1, "loss",
                                    first->losses.at[e], "validation", r->s.values.at[e], "seconds",
                                    first->seconds.at[e]));
    json_put(root, "curve", curve);
    json_put(root, "selection",
             json_pack("{s:s, s:i, s:I, s:f, s:b}", "metric", r->s.metric, "events",
                       (int)r->m.w->val, "selected", (json_int_t)r->s.epoch, "value",
                       r->s.values.at[r->s.epoch - 1], "finished", is_finished(r)));
    if (r->phase)
        json_put(root, "final",
                 json_pack("{s:s, s:I, s:o, s:o}", "part", "train+val", "epochs_done",
                           (json_int_t)done(r), "loss",
                           numbers_json(last->losses.at, last->losses.count), "seconds",
                           numbers_json(last->seconds.at, last->seconds.count)));
}

/* Settings as train.json shows them: those that matter. */
static fr_status config_json(const run *r, json_t *config, fr_error *err) {
    static const char *const selecting[] = {"select", "patience", "final"};
    TRY(options_to_json(fr_model_options, &r->m.settings, config, err));
    TRY(options_to_json(fr_training_options, &r->how, config, err));
    (void)json_object_del(config, "resume");
    if (!r->how.settings) (void)json_object_del(config, "settings");
    for (int k = 0; !r->s.metric && k < 3; k++) (void)json_object_del(config, selecting[k]);
    if (r->s.metric && json_object_set_new(config, "select", json_text(r->s.metric)))
        return fail_memory(err, 0);
    for (const fr_option *o = fr_model_options; o->key; o++) {
        char key[64];
        options_spell(o->key, key, sizeof key);
        if (!model_uses(&r->m.kind->facts, o->key)) (void)json_object_del(config, key);
    }
    return FR_OK;
}

static fr_status save_json(const run *r, const char *path, fr_error *err) {
    json_t *config = json_object(), *history = history_json(r);
    const fr_window *w = r->m.w;
    fr_status status = config && history ? config_json(r, config, err) : fail_memory(err, 0);
    if (status) {
        json_decref(config);
        json_decref(history);
        return status;
    }
    fr_version v = fr_version_get();
    json_t *root = json_pack(
        "{s:s, s:o, s:I, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:I, s:o, s:o, s:{s:s, s:s}}",
        "model", r->m.kind->facts.name, "config", config, "seed", (json_int_t)r->how.seed, "data",
        w->stream->name, "data_sha256", w->stream->sha256, "data_checked", "full", "catalog_sha256",
        w->catalog_sha256, "window", (int)w->events, "train_events", (int)r->m.trained, "order",
        window_training_order(w), "parameters", (json_int_t)params_trained(&r->m.params),
        "epochs_done", (json_int_t)r->past[0].losses.count, "loss",
        json_incref(json_object_get(history, "loss")), "seconds",
        json_incref(json_object_get(history, "seconds")), "tool", "version", v.version, "commit",
        v.commit);
    if (r->s.metric) put_selection(r, &root);
    json_decref(history);
    return json_write(path, root, err);
}

/* The checkpoint of the best epoch, and its value. */
static fr_status add_best(const run *r, safetensors_writer *w, fr_error *err) {
    int64_t size = (int64_t)r->s.size;
    if (!r->s.metric) return FR_OK;
    TRY(safetensors_writer_add(w, "best", ST_U8, 1, &size, r->s.best, err));
    TRY(safetensors_writer_metadata(w, "select", r->s.metric, err));
    return safetensors_writer_metadata(
        w, "final", r->how.final == FR_FINAL_TRAIN_VAL ? "train+val" : "train", err);
}

static fr_status save_state(const run *r, const char *path, fr_error *err) {
    safetensors_writer w = {0};
    char number[32];
    int64_t count = (int64_t)r->m.params.count;
    json_t *history = history_json(r);
    char *text = history ? json_print(history, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    st_dtype type = sizeof(real) == 8 ? ST_F64 : ST_F32;
    fr_status status = text ? safetensors_writer_open(&w, path, err) : fail_memory(err, 0);
    if (!status) status = checkpoint_add(&r->m, &r->how, done(r), &w, err);
    if (!status)
        status = safetensors_writer_add(&w, "adam.mean", type, 1, &count, r->t.adam.mean, err);
    if (!status)
        status = safetensors_writer_add(&w, "adam.square", type, 1, &count, r->t.adam.square, err);
    if (!status) status = add_best(r, &w, err);
    (void)snprintf(number, sizeof number, "%lld", (long long)r->t.adam.step);
    if (!status) status = safetensors_writer_metadata(&w, "step", number, err);
    if (!status) status = safetensors_writer_metadata(&w, "epoch_history", text, err);
    if (!status) status = safetensors_writer_commit(&w, err);
    safetensors_writer_discard(&w);
    json_decref(history);
    free(text);
    return status;
}

/* The model for use: the last epoch, the selected one, or the one trained again if that training is
 * complete. */
static fr_status save_model(const run *r, const char *path, fr_error *err) {
    selection_notes notes = {.finished = is_finished(r), .final = r->phase && is_finished(r)};
    if (!r->s.metric) return checkpoint_save(&r->m, &r->how, done(r), path, err);
    if (!notes.final) return selection_save(&r->s, notes, path, err);
    safetensors_writer w = {0};
    fr_status status = safetensors_writer_open(&w, path, err);
    if (!status) status = checkpoint_add(&r->m, &r->how, done(r), &w, err);
    if (!status) status = selection_add(&r->s, notes, &w, err);
    if (!status) status = safetensors_writer_commit(&w, err);
    safetensors_writer_discard(&w);
    return status;
}

static fr_status save(const run *r, fr_error *err) {
    char *model_path = path_join(r->folder, "model.safetensors");
    char *state_path = path_join(r->folder, "state.safetensors");
    char *json_path = path_join(r->folder, "train.json");
    fr_status status = model_path && state_path && json_path ? FR_OK : fail_memory(err, 0);
    if (!status) status = save_state(r, state_path, err); /* first, for the others follow from it */
    if (!status) status = save_model(r, model_path, err);
    if (!status) status = save_json(r, json_path, err);
    free(model_path);
    free(state_path);
    free(json_path);
    return status;
}

/* True if the directory contains only the lock and an epoch that was being ranked when a run was
 * killed. */
static const char lock_name[] = ".fullrank-lock";
static bool is_empty(const char *folder) {
    return !directory_only(folder, " .fullrank-lock " SELECTION_SCRATCH " ", NULL);
}

/* ---- phases ---- */

static fr_status open_training(run *r, const char *name, const fr_window *w, fr_error *err) {
    TRY(model_open(&r->m, name, r->shape, w, r->how.seed, err));
    if (r->phase) r->m.trained = w->train + w->val;
    fr_training how = r->how;
    if (r->phase) how.epochs = r->s.epoch;
    return trainer_open(&r->t, &r->m, &how, r->context, err);
}

static fr_status begin_final(run *r, fr_error *err) {
    const fr_window *w = r->m.w;
    const char *name = r->m.kind->facts.name;
    trainer_close(&r->t);
    model_close(&r->m);
    r->phase = 1;
    return open_training(r, name, w, err);
}

/* ---- resuming ---- */

static fr_status check_word(const safetensors *file, const char *key, const char *now,
                            fr_error *err) {
    const char *was = safetensors_metadata(file, key);
    if (was ? now && !strcmp(was, now) : !now) return FR_OK;
    return fail(err, FR_EUSAGE, "%s: a run with %s %s, cannot continue with %s", file->path, key,
                was ? was : "(none)", now ? now : "(none)");
}

/* Everything except the number of epochs and patience must be as before. A run with a selected
 * epoch may continue on training and validation together. */
static fr_status check_settings(const run *r, const safetensors *file, fr_error *err) {
    checkpoint_entry entry[CHECKPOINT_ENTRIES];
    int count = checkpoint_entries(&r->m, &r->how, entry);
    const char *final = r->how.final == FR_FINAL_TRAIN_VAL ? "train+val" : "train";
    for (int i = 0; i < count; i++) TRY(check_word(file, entry[i].key, entry[i].value, err));
    TRY(check_word(file, "select", r->s.metric, err));
    const char *was = safetensors_metadata(file, "final");
    if (was && !strcmp(was, "train") && r->how.final == FR_FINAL_TRAIN_VAL) return FR_OK;
    return check_word(file, "final", r->s.metric ? final : NULL, err);
}

/* All numbers of a list, which must have `count` numbers; -1 = any number. */
static fr_status read_numbers(const json_t *root, const char *key, int64_t count, const char *path,
                              double **at, size_t *found, fr_error *err) {
    const json_t *list = json_object_get(root, key);
    *found = json_array_size(list);
    if (!json_is_array(list) || (count >= 0 && (int64_t)*found != count))
        return fail(err, FR_EINPUT, "%s: the history of the run cannot be read", path);
    TRY(ALLOCATE(*at, *found, err));
    for (size_t i = 0; i < *found; i++) (*at)[i] = json_number_value(json_array_get(list, i));
    return FR_OK;
}

static fr_status read_epochs(epochs *e, const json_t *root, bool final, const char *path,
                             fr_error *err) {
    TRY(read_numbers(root, final ? "final_loss" : "loss", -1, path, &e->losses.at, &e->losses.count,
                     err));
    e->losses.room = e->losses.count;
    fr_status status =
        read_numbers(root, final ? "final_seconds" : "seconds", (int64_t)e->losses.count, path,
                     &e->seconds.at, &e->seconds.count, err);
    e->seconds.room = e->seconds.count;
    return status;
}

/* The epochs so far, and the best of them. A state of the second phase starts that phase. */
static fr_status read_history(run *r, const safetensors *file, const json_t *root, fr_error *err) {
    TRY(read_epochs(&r->past[0], root, false, file->path, err));
    if (!r->s.metric) return FR_OK;
    double *values = NULL;
    size_t count = 0;
    fr_status status = read_numbers(root, "validation", (int64_t)r->past[0].losses.count,
                                    file->path, &values, &count, err);
    if (!status) status = selection_take(&r->s, values, count, file, r->m.w, err);
    free(values);
    if (status || !json_object_get(root, "final_loss")) return status;
    if (r->how.final != FR_FINAL_TRAIN_VAL || !selection_over(&r->s, &r->how, done(r)))
        return fail(err, FR_EUSAGE,
                    "%s: epoch %lld was selected and trained on train+val; with these epochs, "
                    "patience and final it would not have been",
                    r->folder, (long long)r->s.epoch);
    TRY(read_epochs(&r->past[1], root, true, file->path, err));
    return begin_final(r, err);
}

/* Parameters, memory and moments. */
static fr_status take_model(run *r, const safetensors *file, fr_error *err) {
    model saved;
    TRY(checkpoint_take(&saved, file, r->m.w, err));
    model_close(&r->m);
    r->m = saved;
    int64_t count = (int64_t)r->m.params.count;
    st_dtype type = sizeof(real) == 8 ? ST_F64 : ST_F32;
    const void *mean, *square;
    TRY(safetensors_require(file, "adam.mean", type, 1, &count, &mean, err));
    TRY(safetensors_require(file, "adam.square", type, 1, &count, &square, err));
    memcpy(r->t.adam.mean, mean, (size_t)count * sizeof(real));
    memcpy(r->t.adam.square, square, (size_t)count * sizeof(real));
    return FR_OK;
}

static fr_status take_state(run *r, const safetensors *file, fr_error *err) {
    const char *step = safetensors_metadata(file, "step"),
               *epoch = safetensors_metadata(file, "epochs_done"),
               *text = safetensors_metadata(file, "epoch_history");
    if (!step || !epoch) return fail(err, FR_EINPUT, "%s: not the state of a run", file->path);
    json_t *root = text ? json_parse(text, strlen(text), 0, NULL) : NULL;
    fr_status status = check_word(file, "select", r->s.metric, err);
    if (!status) status = read_history(r, file, root, err);
    json_decref(root);
    if (!status) status = check_settings(r, file, err);
    if (!status) status = take_model(r, file, err);
    if (status) return status;
    r->t.adam.step = strtoll(step, NULL, 10);
    int64_t size = r->how.batch_size, steps = (r->m.trained + size - 1) / size;
    if (done(r) < 1 || done(r) > UINT32_MAX || strtoll(epoch, NULL, 10) != done(r) ||
        r->t.adam.step != done(r) * steps || (r->phase && done(r) > r->s.epoch))
        return fail(err, FR_EINPUT, "%s: %s steps do not make %s epochs", file->path, step, epoch);
    if (!r->phase && done(r) > r->how.epochs)
        return fail(err, FR_EUSAGE, "%s: has %lld epochs already, more than %lld", r->folder,
                    (long long)done(r), (long long)r->how.epochs);
    return FR_OK;
}

static fr_status resume(run *r, fr_error *err) {
    char *path = path_join(r->folder, "state.safetensors");
    if (!path) return fail_memory(err, 0);
    safetensors file = {0};
    fr_status status = FR_OK;
    if (access(path, F_OK) && !is_empty(r->folder)) /* a model would be lost */
        status =
            fail(err, FR_EFILE, "%s: no state to continue from; train again in its place", path);
    else if (access(path, F_OK))
        context_log(r->context, FR_NOTICE, "%s: no complete epoch yet, training from the start",
                    r->folder);
    else {
        status = safetensors_open(path, &file, err);
        if (!status) status = take_state(r, &file, err);
    }
    safetensors_close(&file);
    free(path);
    return status;
}

/* ---- the run ---- */

/* Temporary files of a killed run are not a reason to refuse the directory. */
static void clean_leftovers(const char *output) {
    static const char *const names[] = {"model.safetensors", "state.safetensors", "train.json",
                                        SELECTION_SCRATCH};
    for (int k = 0; k < 4; k++) {
        char *path = path_join(output, names[k]);
        if (path) temporary_clean(path);
        free(path);
    }
}

/* Refuses an existing output, unless it is resumed or replaced and is a training run. */
static fr_status check_output(const char *output, const fr_training *training, fr_error *err) {
    struct stat facts;
    if (stat(output, &facts)) {
        if (errno != ENOENT) return fail_errno(err, "%s: cannot be examined", output);
        if (training->resume) return fail(err, FR_EFILE, "%s: no such run to resume", output);
        return FR_OK;
    }
    if (!S_ISDIR(facts.st_mode))
        return fail(err, FR_EFILE, "%s: exists and is not a directory", output);
    clean_leftovers(output);
    if (is_empty(output)) return FR_OK;
    if (!training->resume && !training->force) return fail(err, FR_EFORCE, "%s: exists", output);
    char *record = path_join(output, "train.json"), *state = path_join(output, "state.safetensors");
    bool memory = record && state, ours = memory && (!access(record, F_OK) || !access(state, F_OK));
    free(record);
    free(state);
    if (!memory) return fail_memory(err, 0);
    if (ours) return FR_OK;
    return fail(err, FR_EFILE, "%s: contains other files but no run; choose another directory",
                output);
}

/* Makes the directory if necessary, and keeps other processes from writing to it until the lock is
 * released. The directory may have changed before the lock was taken. */
static fr_status take_output(const char *output, const fr_training *training, lock *l, bool *made,
                             fr_error *err) {
    TRY(check_output(output, training, err));
    *made = !mkdir(output, 0777);
    if (!*made && errno != EEXIST) return fail_errno(err, "%s: directory cannot be made", output);
    char *path = path_join(output, lock_name);
    fr_status status = path ? lock_take(l, path, false, output, err) : fail_memory(err, 0);
    free(path);
    return status ? status : check_output(output, training, err);
}

/* An epoch that was being ranked when a run was killed; only the owner of the lock may remove it.
 */
static void clean_scratch(const char *output) {
    char *path = path_join(output, SELECTION_SCRATCH);
    if (path) (void)unlink(path);
    free(path);
}

/* A setting without effect is probably a mistake, so it is refused. */
static fr_status check_options(const char *name, const fr_model_settings *settings, fr_error *err) {
    const fr_model *facts;
    for (int i = 0; (facts = fr_model_at(i)) && strcmp(facts->name, name);) i++;
    for (const fr_option *o = fr_model_options; facts && o->key; o++) {
        char text[80];
        fr_options_text(o, settings, text, sizeof text);
        if (strcmp(text, o->standard) && !model_uses(facts, o->key))
            return fail(err, FR_EUSAGE, "%s has no option %s, which is %s", name, o->key, text);
    }
    return FR_OK;
}

static void tell(const run *r) {
    char value[128] = "";
    const epochs *e = &r->past[r->phase];
    size_t last = e->losses.count - 1;
    if (r->s.metric && !r->phase)
        (void)number_print(value, sizeof value, ", validation %.40s %.4f%s", r->s.metric,
                           r->s.values.at[last],
                           r->s.epoch == (int64_t)last + 1 ? ", the best so far" : "");
    context_log(r->context, FR_NOTICE, "%sepoch %zu: loss %.4f%s, %.1f s",
                r->phase ? "train+val, " : "", last + 1, e->losses.at[last], value,
                e->seconds.at[last]);
}

static fr_status train_epoch(run *r, fr_error *err) {
    epochs *e = &r->past[r->phase];
    double loss, start = clock_now();
    TRY(trainer_epoch(&r->t, done(r), r->context, &loss, err));
    TRY(ARRAY_RESERVE(&e->seconds, 1, err));
    ARRAY_PUSH(&e->losses, loss, err);
    e->seconds.at[e->seconds.count++] = clock_now() - start;
    if (r->s.metric && !r->phase)
        TRY(selection_judge(&r->s, &r->m, &r->how, r->folder, r->context, err));
    TRY(save(r, err));
    tell(r);
    return FR_OK;
}

static fr_status train(run *r, fr_error *err) {
    if (!r->phase)
        while (!selection_over(&r->s, &r->how, done(r))) TRY(train_epoch(r, err));
    if (r->s.metric)
        context_log(r->context, FR_NOTICE, "epoch %lld of %zu is kept: validation %s %.4f",
                    (long long)r->s.epoch, r->s.values.count, r->s.metric,
                    r->s.values.at[r->s.epoch - 1]);
    if (r->how.final != FR_FINAL_TRAIN_VAL) return FR_OK;
    if (!r->phase) TRY(begin_final(r, err));
    while (!is_finished(r)) TRY(train_epoch(r, err));
    return FR_OK;
}

static void close_run(run *r) {
    trainer_close(&r->t);
    model_close(&r->m);
    selection_close(&r->s);
    for (int k = 0; k < PHASES; k++) {
        free(r->past[k].losses.at);
        free(r->past[k].seconds.at);
    }
}

fr_status fr_train_run(const fr_window *window, const char *name, const fr_model_settings *settings,
                       const fr_training *training, const char *output, const fr_context *context,
                       fr_error *err) {
    run r = {.folder = output, .context = context};
    fr_model_settings shape;
    NEED(window, err);
    NEED(name, err);
    NEED(output, err);
    TRY(window_check_labels(window, "a checkpoint", err));
    TRY(options_settle(fr_model_options, settings, &shape, sizeof shape, err));
    TRY(options_settle(fr_training_options, training, &r.how, sizeof r.how, err));
    r.shape = &shape;
    TRY(check_options(name, &shape, err));
    lock alone = {0};
    bool made = false;
    fr_status status = selection_open(&r.s, window, &r.how, context, err);
    if (!status) status = take_output(output, &r.how, &alone, &made, err);
    if (!status) clean_scratch(output);
    if (!status) /* what train.json and the checkpoint name */
        status = stream_verify(window->stream, context, err);
    if (!status) status = open_training(&r, name, window, err);
    if (!status && r.how.resume) status = resume(&r, err);
    if (!status) status = train(&r, err);
    if (!status && r.how.resume) status = save(&r, err); /* an interruption may have lost files */
    lock_release(&alone);
    if (status && made) rmdir(output); /* only if it is still empty */
    close_run(&r);
    return status;
}
