/* run.c - a training run on disk (fullrank.h, chapter 12).
 *
 * After every epoch three files are replaced, each at once: model.safetensors, train.json, and
 * state.safetensors with parameters, moments and the history of the run, from which --resume goes
 * on. Since all randomness is a function of (seed, epoch, event), that is all there is to keep.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/options.h"
#include "models/checkpoint.h"
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
     "of initial parameters, order, negatives and dropout"},
    {"deterministic", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_training, deterministic),
     "no dropout, stream order, negatives by formula: to compare implementations"},
    {"resume", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_training, resume),
     "go on from the last complete epoch"},
    OPTIONS_END(fr_training)};

typedef struct run {
    const char *folder;
    const fr_context *context;
    model m;
    trainer t;
    int64_t done;                  /* epochs */
    ARRAY(double) losses, seconds; /* per epoch */
} run;

/* ---- files ---- */

static json_t *history_json(const run *r) {
    json_t *losses = json_array(), *seconds = json_array();
    for (size_t i = 0; i < r->losses.count; i++) {
        json_push(&losses, json_real(r->losses.at[i]));
        json_push(&seconds, json_real(r->seconds.at[i]));
    }
    return json_pack("{s:o, s:o}", "loss", losses, "seconds", seconds);
}

static fr_status save_json(const run *r, const char *path, fr_error *err) {
    json_t *config = json_object(), *history = history_json(r);
    const fr_window *w = r->m.w;
    fr_status status = config && history ? FR_OK : fail_memory(err, 0);
    if (!status) status = options_to_json(fr_model_options, &r->m.settings, config, err);
    if (!status) status = options_to_json(fr_training_options, &r->t.settings, config, err);
    if (status) {
        json_decref(config);
        json_decref(history);
        return status;
    }
    (void)json_object_del(config, "resume");
    for (const fr_option *o = fr_model_options; o->key; o++) {
        char key[64];
        options_spell(o->key, key, sizeof key);
        if (!model_uses(&r->m.kind->facts, o->key)) (void)json_object_del(config, key);
    }
    fr_version v = fr_version_get();
    json_t *root = json_pack(
        "{s:s, s:o, s:I, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:I, s:o, s:o, s:{s:s, s:s}}",
        "model", r->m.kind->facts.name, "config", config, "seed", (json_int_t)r->t.settings.seed,
        "data", w->stream->name, "data_sha256", w->stream->sha256, "data_checked", "full",
        "catalog_sha256", w->catalog_sha256, "window", (int)w->events, "train_events",
        (int)r->m.trained, "order", window_training_order(w), "parameters",
        (json_int_t)params_trained(&r->m.params), "epochs_done", (json_int_t)r->done, "loss",
        json_incref(json_object_get(history, "loss")), "seconds",
        json_incref(json_object_get(history, "seconds")), "tool", "version", v.version, "commit",
        v.commit);
    json_decref(history);
    return json_write(path, root, err);
}

static fr_status save_state(const run *r, const char *path, fr_error *err) {
    safetensors_writer w = {0};
    char number[32];
    int64_t count = (int64_t)r->m.params.count;
    json_t *history = history_json(r);
    char *text = history ? json_print(history, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    st_dtype type = sizeof(real) == 8 ? ST_F64 : ST_F32;
    fr_status status = text ? safetensors_writer_open(&w, path, err) : fail_memory(err, 0);
    if (!status) status = checkpoint_add(&r->m, &r->t.settings, r->done, &w, err);
    if (!status)
        status = safetensors_writer_add(&w, "adam.mean", type, 1, &count, r->t.adam.mean, err);
    if (!status)
        status = safetensors_writer_add(&w, "adam.square", type, 1, &count, r->t.adam.square, err);
    (void)snprintf(number, sizeof number, "%lld", (long long)r->t.adam.step);
    if (!status) status = safetensors_writer_metadata(&w, "step", number, err);
    if (!status) status = safetensors_writer_metadata(&w, "epoch_history", text, err);
    if (!status) status = safetensors_writer_commit(&w, err);
    safetensors_writer_discard(&w);
    json_decref(history);
    free(text);
    return status;
}

static fr_status save(const run *r, fr_error *err) {
    char *model_path = path_join(r->folder, "model.safetensors");
    char *state_path = path_join(r->folder, "state.safetensors");
    char *json_path = path_join(r->folder, "train.json");
    fr_status status = model_path && state_path && json_path ? FR_OK : fail_memory(err, 0);
    if (!status) status = save_state(r, state_path, err); /* first: the others follow from it */
    if (!status) status = checkpoint_save(&r->m, &r->t.settings, r->done, model_path, err);
    if (!status) status = save_json(r, json_path, err);
    free(model_path);
    free(state_path);
    free(json_path);
    return status;
}

/* Nothing is in the directory but what keeps others out. */
static const char lock_name[] = ".fullrank-lock";
static bool is_empty(const char *folder) {
    return !directory_only(folder, " .fullrank-lock ", NULL);
}

/* ---- resuming ---- */

/* Everything but the number of epochs must be as before. */
static fr_status check_settings(const run *r, const safetensors *file, fr_error *err) {
    checkpoint_entry entry[CHECKPOINT_ENTRIES];
    int count = checkpoint_entries(&r->m, &r->t.settings, entry);
    for (int i = 0; i < count; i++) {
        const char *was = safetensors_metadata(file, entry[i].key);
        if (!was || strcmp(was, entry[i].value))
            return fail(err, FR_EUSAGE, "%s: a run with %s %s, cannot go on with %s", file->path,
                        entry[i].key, was ? was : "(none)", entry[i].value);
    }
    return FR_OK;
}

static fr_status read_history(run *r, const safetensors *file, fr_error *err) {
    const char *text = safetensors_metadata(file, "epoch_history");
    json_t *root = text ? json_parse(text, strlen(text), 0, NULL) : NULL;
    const json_t *losses = json_object_get(root, "loss"),
                 *seconds = json_object_get(root, "seconds");
    fr_status status = FR_OK;
    if (json_array_size(losses) != (size_t)r->done || json_array_size(seconds) != (size_t)r->done)
        status = fail(err, FR_EINPUT, "%s: the history of the run cannot be read", file->path);
    if (!status) status = ARRAY_RESERVE(&r->losses, (size_t)r->done, err);
    if (!status) status = ARRAY_RESERVE(&r->seconds, (size_t)r->done, err);
    for (size_t i = 0; !status && i < (size_t)r->done; i++) {
        r->losses.at[r->losses.count++] = json_number_value(json_array_get(losses, i));
        r->seconds.at[r->seconds.count++] = json_number_value(json_array_get(seconds, i));
    }
    json_decref(root);
    return status;
}

static fr_status take_state(run *r, const safetensors *file, fr_error *err) {
    const char *step = safetensors_metadata(file, "step"),
               *done = safetensors_metadata(file, "epochs_done");
    if (!step || !done) return fail(err, FR_EINPUT, "%s: not the state of a run", file->path);
    TRY(check_settings(r, file, err));
    model saved; /* parameters and memory */
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
    r->t.adam.step = strtoll(step, NULL, 10);
    r->done = strtoll(done, NULL, 10);
    int64_t size = r->t.settings.batch_size, steps = (r->m.trained + size - 1) / size;
    if (r->done < 1 || r->done > UINT32_MAX || r->t.adam.step != r->done * steps)
        return fail(err, FR_EINPUT, "%s: %s steps do not make %s epochs", file->path, step, done);
    if (r->done > r->t.settings.epochs)
        return fail(err, FR_EUSAGE, "%s: has %lld epochs already, more than %lld", r->folder,
                    (long long)r->done, (long long)r->t.settings.epochs);
    return read_history(r, file, err);
}

static fr_status resume(run *r, fr_error *err) {
    char *path = path_join(r->folder, "state.safetensors");
    if (!path) return fail_memory(err, 0);
    safetensors file = {0};
    fr_status status = FR_OK;
    if (access(path, F_OK) && !is_empty(r->folder)) /* its model would be lost */
        status = fail(err, FR_EFILE, "%s: no state to go on from; train anew in its place", path);
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

/* What a killed run was writing is no reason to refuse the directory. */
static void clean_leftovers(const char *output) {
    static const char *const names[] = {"model.safetensors", "state.safetensors", "train.json"};
    for (int k = 0; k < 3; k++) {
        char *path = path_join(output, names[k]);
        if (path) temporary_clean(path);
        free(path);
    }
}

/* An output that exists is refused unless it is to be resumed or replaced, and then it must be a
 * run. */
static fr_status check_output(const char *output, const fr_training *training, fr_error *err) {
    struct stat facts;
    if (stat(output, &facts)) {
        if (errno != ENOENT) return fail_errno(err, "%s: cannot be looked at", output);
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
    return fail(err, FR_EFILE, "%s: holds other files and no run; choose another directory",
                output);
}

/* Makes the directory, if need be, and keeps other processes from writing to it until the lock is
 * released. What was found before the lock may have changed since. */
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

/* A setting that would have no effect is a mistake somewhere. */
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

static fr_status train(run *r, fr_error *err) {
    while (r->done < r->t.settings.epochs) {
        double loss, start = clock_now();
        TRY(trainer_epoch(&r->t, r->done, r->context, &loss, err));
        r->done++;
        ARRAY_PUSH(&r->losses, loss, err);
        ARRAY_PUSH(&r->seconds, clock_now() - start, err);
        TRY(save(r, err));
        context_log(r->context, FR_NOTICE, "epoch %lld: loss %.4f, %.1f s", (long long)r->done,
                    loss, r->seconds.at[r->seconds.count - 1]);
    }
    return FR_OK;
}

fr_status fr_train_run(const fr_window *window, const char *name, const fr_model_settings *settings,
                       const fr_training *training, const char *output, const fr_context *context,
                       fr_error *err) {
    run r = {.folder = output, .context = context};
    fr_model_settings shape;
    fr_training how;
    NEED(window, err);
    NEED(name, err);
    NEED(output, err);
    TRY(options_settle(fr_model_options, settings, &shape, sizeof shape, err));
    TRY(options_settle(fr_training_options, training, &how, sizeof how, err));
    settings = &shape;
    training = &how;
    TRY(check_options(name, settings, err));
    lock alone = {0};
    bool made = false;
    fr_status status = take_output(output, training, &alone, &made, err);
    if (!status) /* what train.json and the checkpoint name */
        status = stream_verify(window->stream, context, err);
    if (!status) status = model_open(&r.m, name, settings, window, training->seed, err);
    if (!status) status = trainer_open(&r.t, &r.m, training, context, err);
    if (!status && training->resume) status = resume(&r, err);
    if (!status) status = train(&r, err);
    if (!status && training->resume) status = save(&r, err); /* whatever an interruption left out */
    lock_release(&alone);
    if (status && made) rmdir(output); /* only if it is still empty */
    trainer_close(&r.t);
    model_close(&r.m);
    free(r.losses.at);
    free(r.seconds.at);
    return status;
}
