/* select.c - see select.h. */
#include "train/select.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the metric ---- */

/* K of "expected-K", 0 if it is not that. */
static int64_t expected_k(const char *metric) {
    static const char stem[] = "expected-";
    char again[32];
    if (strncmp(metric, stem, sizeof stem - 1)) return 0;
    long long k = strtoll(metric + sizeof stem - 1, NULL, 10);
    (void)snprintf(again, sizeof again, "%s%lld", stem, k);
    return k > 0 && k <= 999999999 && !strcmp(again, metric) ? k : 0;
}

fr_status selection_check(const char *metric, fr_error *err) {
    static const char *const better[] = {"mrr",  "hits", "recall", "ndcg",
                                         "all-", "amri", "auc",    "z-mrr"};
    fr_metric_value value;
    fr_record none;
    if (expected_k(metric)) return FR_OK;
    if (!strncmp(metric, "expected", 8))
        return fail(err, FR_EUSAGE,
                    "option select: found \"%s\", expected expected-K, such as expected-20",
                    metric);
    TRY(fr_metrics_compute(&none, 0, FR_OOV_EXCLUDE, &metric, 1, &value, err));
    for (size_t i = 0; i < sizeof better / sizeof *better; i++)
        if (!strncmp(metric, better[i], strlen(better[i]))) return FR_OK;
    return fail(
        err, FR_EUSAGE,
        "option select: found \"%s\", expected a metric for which larger is better, such as "
        "mrr, hits@10 or expected-20",
        metric);
}

static fr_status value_of(const selection *s, const fr_ranking *ranking, const fr_context *context,
                          double *out, fr_error *err) {
    fr_ranking_facts f = fr_ranking_get(ranking);
    int64_t k = expected_k(s->metric);
    if (k) {
        fr_expected e;
        fr_sampling uniform = {.sampler = "uniform", .oov = f.oov, .k = &k, .k_count = 1};
        TRY(fr_expected_compute(f.records, f.count, &uniform, context, &e, err));
        *out = e.mrr;
    } else {
        fr_metric_value value;
        TRY(fr_metrics_compute(f.records, f.count, f.oov, &s->metric, 1, &value, err));
        *out = value.value;
    }
    if (isfinite(*out)) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s has no value on the validation part: none of its %lld events counts", s->metric,
                (long long)f.count);
}

/* ---- opening ---- */

fr_status selection_open(selection *s, const fr_window *w, const fr_training *how,
                         const fr_context *context, fr_error *err) {
    *s = (selection){.metric = how->select};
    if (s->metric && !*s->metric) s->metric = NULL;
    if (!s->metric && how->patience) s->metric = "mrr";
    if (!s->metric && how->final == FR_FINAL_TRAIN_VAL)
        return fail(err, FR_EUSAGE,
                    "option final: train+val needs a number of epochs that was selected, expected "
                    "--select, too");
    if (!s->metric) return FR_OK;
    TRY(selection_check(s->metric, err));
    if (!w->val)
        return fail(
            err, FR_EUSAGE,
            "option select: the window has no validation part to select on; option val-share "
            "makes one, or a split that has one");
    if (how->final == FR_FINAL_TRAIN_VAL && w->protocol.part != FR_PART_TEST)
        return fail(err, FR_EUSAGE,
                    "option final: a model of train+val cannot rank the validation part, expected "
                    "--part test");
    fr_protocol p = w->protocol;
    fr_context quiet = context_team(context, 0);
    quiet.log = NULL; /* the training window has already logged everything */
    p.part = FR_PART_VAL;
    return fr_window_open(w->stream, &p, &quiet, &s->w, err);
}

void selection_close(selection *s) {
    fr_window_close(s->w);
    free(s->values.at);
    free(s->best);
    *s = (selection){0};
}

/* ---- judging ---- */

static fr_status keep(selection *s, const char *path, fr_error *err) {
    mapping file;
    void *bytes;
    TRY(mapping_open(path, &file, err));
    fr_status status = allocate(file.size, 1, &bytes, err);
    if (!status) {
        memcpy(bytes, file.bytes, file.size);
        free(s->best);
        s->best = bytes;
        s->size = file.size;
    }
    mapping_close(&file);
    return status;
}

static fr_status rank_file(const selection *s, const char *path, const fr_context *context,
                           double *value, fr_error *err) {
    fr_scorer *scorer = NULL;
    fr_ranking *ranking = NULL;
    fr_context quiet = context_team(context, 0);
    quiet.log = NULL; /* the warning that more epochs follow is not needed here */
    fr_status status = fr_scorer_open(path, s->w, 0, &quiet, &scorer, err);
    if (!status) status = fr_rank_run(scorer, NULL, &quiet, &ranking, err);
    if (!status) status = value_of(s, ranking, &quiet, value, err);
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    return status;
}

fr_status selection_judge(selection *s, const model *m, const fr_training *how, const char *folder,
                          const fr_context *context, fr_error *err) {
    int64_t epoch = (int64_t)s->values.count + 1;
    double value = NAN;
    char *path = path_join(folder, SELECTION_SCRATCH);
    fr_status status = path ? FR_OK : fail_memory(err, 0);
    if (!status) status = ARRAY_RESERVE(&s->values, 1, err);
    if (!status) status = checkpoint_save(m, how, epoch, path, err);
    if (!status) status = rank_file(s, path, context, &value, err);
    if (!status && (!s->epoch || value > s->values.at[s->epoch - 1])) {
        status = keep(s, path, err);
        if (!status) s->epoch = epoch;
    }
    if (!status) s->values.at[s->values.count++] = value;
    if (path) (void)unlink(path);
    free(path);
    return status;
}

bool selection_over(const selection *s, const fr_training *how, int64_t done) {
    return done >= how->epochs || (s->metric && how->patience && done - s->epoch >= how->patience);
}

/* ---- files ---- */

fr_status selection_add(const selection *s, selection_notes notes, safetensors_writer *w,
                        fr_error *err) {
    char selected[32], tried[32], value[32];
    (void)snprintf(selected, sizeof selected, "%lld", (long long)s->epoch);
    (void)snprintf(tried, sizeof tried, "%zu", s->values.count);
    (void)text_real(s->values.at[s->epoch - 1], false, value, sizeof value);
    TRY(safetensors_writer_metadata(w, "select", s->metric, err));
    TRY(safetensors_writer_metadata(w, "selected", selected, err));
    TRY(safetensors_writer_metadata(w, "validation", value, err));
    TRY(safetensors_writer_metadata(w, "epochs_tried", tried, err));
    TRY(safetensors_writer_metadata(w, "finished", notes.finished ? "1" : "0", err));
    return safetensors_writer_metadata(w, "final", notes.final ? "train+val" : "train", err);
}

/* Adds the content of a file to a writer. The file must stay open until the writer commits. */
static fr_status copy_file(const safetensors *file, safetensors_writer *w, fr_error *err) {
    const char *key;
    json_t *value;
    for (size_t i = 0; i < file->count; i++) {
        const st_tensor *t = &file->tensor[i];
        TRY(safetensors_writer_add(w, t->name, t->dtype, t->dims, t->shape, t->data, err));
    }
    json_object_foreach(json_object_get(file->header, "__metadata__"), key, value)
        TRY(safetensors_writer_metadata(w, key, json_string_value(value), err));
    return FR_OK;
}

fr_status selection_save(const selection *s, selection_notes notes, const char *path,
                         fr_error *err) {
    safetensors_writer w = {0};
    safetensors file = {0};
    fr_status status = safetensors_parse(s->best, s->size, path, &file, err);
    if (!status) status = safetensors_writer_open(&w, path, err);
    if (!status) status = copy_file(&file, &w, err);
    if (!status) status = selection_add(s, notes, &w, err);
    if (!status) status = safetensors_writer_commit(&w, err);
    safetensors_writer_discard(&w);
    safetensors_close(&file);
    return status;
}

/* Checks that it is the checkpoint of the epoch that has the best value. */
static fr_status check_best(const selection *s, const st_tensor *best, const char *path,
                            const fr_window *w, fr_error *err) {
    safetensors file = {0};
    model m = {0};
    TRY(safetensors_parse(best->data, best->bytes, path, &file, err));
    const char *done = safetensors_metadata(&file, "epochs_done");
    fr_status status = FR_OK;
    if (!done || strtoll(done, NULL, 10) != s->epoch)
        status = fail(err, FR_EINPUT, "%s: keeps epoch %s, but epoch %lld is the best", path,
                      done ? done : "(none)", (long long)s->epoch);
    if (!status) status = checkpoint_take(&m, &file, w, err);
    model_close(&m);
    safetensors_close(&file);
    return status;
}

fr_status selection_take(selection *s, const double *values, size_t count, const safetensors *file,
                         const fr_window *w, fr_error *err) {
    const st_tensor *best = safetensors_find(file, "best");
    if (!best || best->dtype != ST_U8 || !best->bytes)
        return fail(err, FR_EINPUT, "%s: the best epoch is not in it", file->path);
    TRY(ARRAY_RESERVE(&s->values, count, err));
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return fail(err, FR_EINPUT, "%s: the value of epoch %zu is not a number", file->path,
                        i + 1);
        s->values.at[s->values.count++] = values[i];
        if (!s->epoch || values[i] > values[s->epoch - 1]) s->epoch = (int64_t)i + 1;
    }
    TRY(check_best(s, best, file->path, w, err));
    TRY(allocate(best->bytes, 1, &s->best, err));
    memcpy(s->best, best->data, best->bytes);
    s->size = best->bytes;
    return FR_OK;
}
