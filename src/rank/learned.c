/* learned.c - see learned.h. */
#include "rank/learned.h"

#include "base/context.h"
#include "base/number.h"
#include "models/checkpoint.h"
#include "rank/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The model, its fast path, which refers to it, and what the file says of the training. */
typedef struct learned {
    model m;
    fr_scorer_definition fast;
    char model[64], objective[16], settings[64];
} learned;

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int worker, float *scores, fr_error *err) {
    learned *l = state;
    if (!l->fast.part) return fail(err, FR_EUSAGE, "a scorer that could not be changed is no use");
    return l->fast.part(l->fast.state, queries, count, from, to, worker, scores, err);
}

static uint64_t fingerprint(const void *state) {
    return model_fingerprint(&((const learned *)state)->m);
}

static void close_learned(void *state) {
    learned *l = state;
    if (l->fast.close && l->fast.state) l->fast.close(l->fast.state);
    model_close(&l->m);
    free(l);
}

/* A whole number of the metadata; 0 if the file does not have it. */
static fr_status read_number(const safetensors *file, const char *key, int64_t *out,
                             fr_error *err) {
    const char *text = safetensors_metadata(file, key);
    char *end = NULL;
    *out = 0;
    if (!text) return FR_OK;
    double number = number_read(text, &end); /* as checkpoints write it */
    *out = number >= 0 && number <= 0x1p53 ? (int64_t)number : -1;
    if (end != text && !*end && (double)*out == number) return FR_OK;
    return fail(err, FR_EINPUT, "%s: %s is \"%.40s\", expected a whole number", file->path, key,
                text);
}

static fr_status read_text(const safetensors *file, const char *key, char *out, size_t size,
                           fr_error *err) {
    const char *text = safetensors_metadata(file, key);
    if (snprintf(out, size, "%s", text ? text : "") < (int)size) return FR_OK;
    return fail(err, FR_EINPUT, "%s: %s has %zu bytes, expected at most %zu", file->path, key,
                strlen(text), size - 1);
}

/* A model of an unfinished training run is used, but with a warning. */
static fr_status warn(const safetensors *file, const fr_scorer_definition *is,
                      const fr_context *context, fr_error *err) {
    const char *select = safetensors_metadata(file, "select");
    int64_t tried, finished;
    TRY(read_number(file, "epochs_tried", &tried, err));
    TRY(read_number(file, "finished", &finished, err));
    if (select && !is->selected)
        context_log(context, FR_WARNING,
                    "%s: the last epoch of a training that selects by %s; the selected one is in "
                    "model.safetensors",
                    file->path, select);
    else if (is->selected && !finished)
        context_log(context, FR_WARNING,
                    "%s: its training stopped after %lld of %lld epochs; epoch %lld was the best "
                    "until then",
                    file->path, (long long)tried, (long long)is->epochs_asked,
                    (long long)is->selected);
    else if (!is->selected && is->epochs_done < is->epochs_asked)
        context_log(context, FR_WARNING, "%s: its training stopped after %lld of %lld epochs",
                    file->path, (long long)is->epochs_done, (long long)is->epochs_asked);
    return FR_OK;
}

/* Which model, objective and seed: what comparisons group runs by (PROTOCOL 11); and how far the
 * training went. */
static fr_status read_training(const char *path, learned *l, const fr_context *context,
                               fr_scorer_definition *out, fr_error *err) {
    safetensors file = {0};
    TRY(safetensors_open(path, &file, err));
    fr_status status = read_text(&file, "model", l->model, sizeof l->model, err);
    if (!status) status = read_text(&file, "loss", l->objective, sizeof l->objective, err);
    if (!status) status = read_text(&file, "settings", l->settings, sizeof l->settings, err);
    if (!status) status = read_number(&file, "seed", &out->seed, err);
    if (!status) status = read_number(&file, "epochs_done", &out->epochs_done, err);
    if (!status) status = read_number(&file, "epochs_asked", &out->epochs_asked, err);
    if (!status) status = read_number(&file, "selected", &out->selected, err);
    if (!status) status = warn(&file, out, context, err);
    out->model = l->model;
    out->objective = l->objective;
    out->settings = l->settings;
    safetensors_close(&file);
    return status;
}

fr_status learned_open(const char *path, const fr_window *w, const fr_context *context,
                       fr_scorer_definition *out, fr_error *err) {
    learned *l;
    TRY(ALLOCATE(l, 1, err));
    *out = (fr_scorer_definition){.state = l,
                                  .workers = context_threads(context),
                                  .fingerprint = fingerprint,
                                  .close = close_learned,
                                  .part = score_part,
                                  .tile = MODEL_TILE};
    TRY(checkpoint_load(&l->m, path, w, err));
    TRY(read_training(path, l, context, out, err));
    if (l->m.kind->memory) TRY(l->m.kind->memory->replay(&l->m, l->m.trained, context, err));
    TRY(l->m.kind->fast(&l->m, out->workers, &l->fast, err));
    out->many = l->fast.many;
    return FR_OK;
}

static learned *learned_of(const fr_scorer *scorer) {
    return scorer->is.close == close_learned ? scorer->is.state : NULL;
}

/* The direction comes from a second copy of the model. A model that remembers must see the training
 * events from an empty memory, while the scorer continues from the end of training. */
fr_status fr_scorer_project(fr_scorer *scorer, int what, int64_t seed, const fr_context *context,
                            fr_error *err) {
    NEED(scorer, err);
    learned *l = learned_of(scorer);
    if (!l)
        return fail(err, FR_EUSAGE, "%s is not a trained model: it has no representation",
                    scorer->is.name);
    if (what < 0 || what >= FR_REMOVALS)
        return fail(err, FR_EUSAGE, "removal %d is not known, expected FR_REMOVE_*", what);
    if (what == FR_REMOVE_NOTHING) return FR_OK;
    model copy = {0};
    double *direction = NULL;
    const fr_window *w = l->m.w;
    const model_memory *memory = l->m.kind->memory;
    fr_status status = checkpoint_load(&copy, scorer->is.name, w, err);
    if (!status && memory) {
        memory->reset(&copy);
        status = memory->replay(&copy, 0, context, err);
    }
    if (!status) status = project_direction(&copy, what, seed, context, &direction, err);
    if (!status) status = project_remove(&l->m, direction, err);
    model_close(&copy);
    free(direction);
    if (status) return status;
    if (memory) TRY(memory->replay(&l->m, l->m.trained, context, err));
    l->fast.close(l->fast.state); /* its tables are of the old head */
    l->fast = (fr_scorer_definition){0};
    return l->m.kind->fast(&l->m, scorer->is.workers, &l->fast, err);
}

const model *learned_model(const fr_scorer *scorer) {
    const learned *l = learned_of(scorer);
    return l ? &l->m : NULL;
}

fr_status learned_plain(const fr_scorer *scorer, int threads, fr_scorer_definition *out,
                        fr_error *err) {
    const model *m = learned_model(scorer);
    if (!m)
        return fail(err, FR_EUSAGE, "%s has only one way of scoring: nothing to verify",
                    scorer->is.name);
    return model_plain(m, threads, out, err);
}
