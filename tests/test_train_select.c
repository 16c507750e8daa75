/* test_train_select.c - training with selection: the best epoch is kept, even after interruptions,
 * and equals a training of that many epochs; patience; training again on both parts. */
#define _GNU_SOURCE
#include "base/json.h"
#include "models/checkpoint.h"
#include "train_fixture.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fr_window *open_window(const fr_stream *stream, double train, double val, char *catalog,
                              int part) {
    fr_error err;
    fr_window *w;
    fr_protocol p = {
        .size = sizeof p, .train_share = train, .val_share = val, .catalog = catalog, .part = part};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    return w;
}

static fixture open_fixture(const char *directory) {
    fixture f = {.stream = habits(directory, 400)};
    f.w = open_window(f.stream, 0.6, 0.2, NULL, FR_PART_TEST);
    return f;
}

static char mrr[] = "mrr";

/* A rate at which the last epoch is not the best. */
static fr_training selecting(int64_t epochs) {
    return (fr_training){.size = sizeof(fr_training),
                         .epochs = epochs,
                         .batch_size = 60,
                         .seed = 7,
                         .rate = 0.03,
                         .select = mrr};
}

static fr_training plain(int64_t epochs) {
    fr_training out = selecting(epochs);
    out.select = NULL;
    return out;
}

static char *model_of(const char *run) { return in_directory(run, "model.safetensors"); }

/* train.json; the caller frees it. */
static json_t *record_of(const char *run) {
    fr_error err;
    json_t *root;
    OK(json_read(in_directory(run, "train.json"), &root, &err));
    return root;
}

static int64_t selected_of(const char *run) {
    json_t *root = record_of(run);
    int64_t epoch =
        json_integer_value(json_object_get(json_object_get(root, "selection"), "selected"));
    json_decref(root);
    return epoch;
}

static void assert_same_file(const char *a, const char *b) {
    mapping file;
    assert_int_equal(mapping_open(a, &file, NULL), FR_OK);
    assert_file(b, file.bytes, file.size);
    mapping_close(&file);
}

/* The same tensors, bit for bit; metadata may differ. */
static void assert_same_tensors(const char *a, const char *b) {
    fr_error err;
    safetensors x, y;
    OK(safetensors_open(a, &x, &err));
    OK(safetensors_open(b, &y, &err));
    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < x.count; i++) {
        const st_tensor *other = safetensors_find(&y, x.tensor[i].name);
        assert_non_null(other);
        assert_int_equal(x.tensor[i].bytes, other->bytes);
        assert_memory_equal(x.tensor[i].data, other->data, other->bytes);
    }
    safetensors_close(&x);
    safetensors_close(&y);
}

static double rank_mrr(const char *scorer, const fr_window *w) {
    fr_error err;
    fr_scorer *s;
    fr_ranking *r;
    fr_metric_value value;
    const char *name = "mrr";
    OK(fr_scorer_open(scorer, w, 0, NULL, &s, &err));
    OK(fr_rank_run(s, NULL, NULL, &r, &err));
    fr_ranking_facts f = fr_ranking_get(r);
    OK(fr_metrics_compute(f.records, f.count, f.oov, &name, 1, &value, &err));
    fr_ranking_close(r);
    fr_scorer_close(s);
    return value.value;
}

static void test_best_epoch(void **state) {
    static const char *const models[] = {"craft", "tgn", "dygformer-lha"};
    enum { EPOCHS = 5 };
    fr_error err;
    fixture f = open_fixture(*state);
    fr_window *val = open_window(f.stream, 0.6, 0.2, NULL, FR_PART_VAL);
    int earlier = 0;
    for (int k = 0; k < 3; k++) {
        char name[2][40];
        (void)snprintf(name[0], sizeof name[0], "%s-selected", models[k]);
        (void)snprintf(name[1], sizeof name[1], "%s-plain", models[k]);
        char *run = in_directory(*state, name[0]), *same = in_directory(*state, name[1]);
        fr_training how = selecting(EPOCHS);
        OK(fr_train_run(f.w, models[k], &small, &how, run, NULL, &err));
        json_t *record = record_of(run), *curve = json_object_get(record, "curve");
        assert_int_equal(json_array_size(curve), EPOCHS);
        int64_t selected = selected_of(run);
        double best = -1;
        int64_t first = 0;
        for (size_t e = 0; e < EPOCHS; e++) {
            double value =
                json_number_value(json_object_get(json_array_get(curve, e), "validation"));
            if (value > best) first = (int64_t)e + 1;
            if (value > best) best = value;
        }
        json_decref(record);
        assert_int_equal(selected, first);
        earlier += selected < EPOCHS;
        how = plain(selected);
        OK(fr_train_run(f.w, models[k], &small, &how, same, NULL, &err));
        assert_same_tensors(model_of(run), model_of(same));
        assert_true(rank_mrr(model_of(run), val) == best);
    }
    assert_true(earlier > 0); /* else nothing was shown */
    fr_window_close(val);
    close_fixture(&f);
}

static void test_patience(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    char *run = in_directory(*state, "run"), *whole = in_directory(*state, "whole");
    fr_training how = selecting(60);
    how.select = NULL; /* by mrr */
    how.patience = 2;
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    json_t *record = record_of(run);
    int64_t done = json_integer_value(json_object_get(record, "epochs_done"));
    json_decref(record);
    assert_int_equal(done, selected_of(run) + 2);
    assert_true(done < 60);
    /* no patience, as many epochs: the same model */
    how = selecting(done);
    OK(fr_train_run(f.w, "craft", &small, &how, whole, NULL, &err));
    assert_int_equal(selected_of(whole), selected_of(run));
    assert_same_tensors(model_of(run), model_of(whole));
    /* with more patience it continues */
    how = selecting(done + 1);
    how.patience = 50;
    how.resume = true;
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    record = record_of(run);
    assert_int_equal(json_integer_value(json_object_get(record, "epochs_done")), done + 1);
    json_decref(record);
    close_fixture(&f);
}

typedef struct stopper {
    int calls, stop_at;
} stopper;
static bool stop(void *user) {
    stopper *s = user;
    return ++s->calls >= s->stop_at;
}

/* Stopped every few steps, in both phases, until it is done. */
static void test_resume(void **state) {
    static const char *const models[] = {"craft-r", "tgn"};
    fr_error err;
    fixture f = open_fixture(*state);
    for (int k = 0; k < 2; k++) {
        for (int final = 0; final < 2; final++) {
            char name[2][40];
            for (int part = 0; part < 2; part++)
                (void)snprintf(name[part], sizeof name[part], "%s-%d-%d", models[k], final, part);
            char *straight = in_directory(*state, name[0]), *parts = in_directory(*state, name[1]);
            fr_training how = selecting(5);
            how.patience = 3;
            how.final = final;
            OK(fr_train_run(f.w, models[k], &small, &how, straight, NULL, &err));
            int stops = 0;
            fr_status status = FR_ECANCEL;
            while (status) {
                stopper s = {.stop_at = 17 + stops % 3};
                fr_context context = {.user = &s, .cancel = stop, .threads = 1};
                status = fr_train_run(f.w, models[k], &small, &how, parts, &context, &err);
                if (status) testing_fails(status, FR_ECANCEL, "interrupted", &err, "", 0);
                how.resume = !access(in_directory(parts, "state.safetensors"), F_OK);
                assert_true(++stops < 100);
            }
            assert_true(stops > 2);
            assert_same_file(model_of(straight), model_of(parts));
            assert_int_equal(access(in_directory(parts, ".fullrank-epoch.safetensors"), F_OK), -1);
            how.resume = true;
            OK(unlink(model_of(parts)) ? FR_EFILE : FR_OK); /* it follows from the state */
            OK(fr_train_run(f.w, models[k], &small, &how, parts, NULL, &err));
            assert_same_file(model_of(straight), model_of(parts));
        }
    }
    close_fixture(&f);
}

/* Killed while its first epoch was written or ranked: this is not a reason to refuse the directory.
 */
static void test_leftovers(void **state) {
    static const char *const names[] = {".fullrank-epoch.safetensors",
                                        ".fullrank-epoch.safetensors.tmp-fr01234567"};
    fr_error err;
    fixture f = open_fixture(*state);
    fr_training how = selecting(1);
    char *run = in_directory(*state, "run");
    assert_int_equal(mkdir(run, 0777), 0);
    for (int k = 0; k < 2; k++) {
        FILE *file = fopen(in_directory(run, names[k]), "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    for (int k = 0; k < 2; k++) assert_int_equal(access(in_directory(run, names[k]), F_OK), -1);
    close_fixture(&f);
}

static void test_final(void **state) {
    static const char *const models[] = {"craft", "tgn", "dygformer-lha"};
    fr_error err;
    fixture f = open_fixture(*state);
    char catalog[] = "train+val", fixed[] = "fixed";
    fr_window *parts = open_window(f.stream, 0.6, 0.2, catalog, FR_PART_TEST);
    fr_window *wide = open_window(f.stream, 0.8, 0, fixed, FR_PART_TEST);
    fr_window *val = open_window(f.stream, 0.6, 0.2, catalog, FR_PART_VAL);
    for (int k = 0; k < 3; k++) {
        char name[2][40];
        (void)snprintf(name[0], sizeof name[0], "%s-final", models[k]);
        (void)snprintf(name[1], sizeof name[1], "%s-wide", models[k]);
        char *run = in_directory(*state, name[0]), *same = in_directory(*state, name[1]);
        fr_training how = selecting(4);
        how.final = FR_FINAL_TRAIN_VAL;
        OK(fr_train_run(parts, models[k], &small, &how, run, NULL, &err));
        how = plain(selected_of(run));
        OK(fr_train_run(wide, models[k], &small, &how, same, NULL, &err));
        assert_same_tensors(model_of(run), model_of(same));
        assert_true(rank_mrr(model_of(run), parts) == rank_mrr(model_of(same), wide));
        fr_scorer *none;
        FAILS(fr_scorer_open(model_of(run), val, 0, NULL, &none, &err), FR_EINPUT, "ntrain");
    }
    fr_window_close(parts);
    fr_window_close(wide);
    fr_window_close(val);
    close_fixture(&f);
}

/* Of equal epochs the first is kept: with a rate of 0 all are equal. */
static void test_first_of_equals(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    char *run = in_directory(*state, "equal");
    fr_training how = selecting(3);
    how.rate = 0;
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    assert_int_equal(selected_of(run), 1);
    close_fixture(&f);
}

/* A run with a selected epoch continues on training and validation together. It has the bytes of a
 * run that was meant to do so from the start. */
static void test_final_later(void **state) {
    static const char *const models[] = {"craft", "tgn"};
    fr_error err;
    fixture f = open_fixture(*state);
    for (int k = 0; k < 2; k++) {
        char name[2][40];
        (void)snprintf(name[0], sizeof name[0], "%s-at-once", models[k]);
        (void)snprintf(name[1], sizeof name[1], "%s-later", models[k]);
        char *once = in_directory(*state, name[0]), *later = in_directory(*state, name[1]);
        fr_training how = selecting(4);
        how.patience = 2;
        OK(fr_train_run(f.w, models[k], &small, &how, later, NULL, &err));
        how.final = FR_FINAL_TRAIN_VAL;
        OK(fr_train_run(f.w, models[k], &small, &how, once, NULL, &err));
        how.resume = true;
        OK(fr_train_run(f.w, models[k], &small, &how, later, NULL, &err));
        assert_same_file(model_of(once), model_of(later));
    }
    close_fixture(&f);
}

static void test_refused(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    fr_window *bare = open_window(f.stream, 0.8, 0, NULL, FR_PART_TEST);
    char *run = in_directory(*state, "run"), *done = in_directory(*state, "done");
    char rank[] = "mean-rank", none[] = "mmr", zero[] = "expected-0", hits[] = "hits@3";
    fr_training how = selecting(2);
    FAILS(fr_train_run(bare, "craft", &small, &how, run, NULL, &err), FR_EUSAGE,
          "option val-share");
    how.select = NULL;
    how.patience = 1;
    FAILS(fr_train_run(bare, "craft", &small, &how, run, NULL, &err), FR_EUSAGE,
          "option val-share");
    how.patience = 0;
    how.final = FR_FINAL_TRAIN_VAL;
    FAILS(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err), FR_EUSAGE, "--select");
    how.final = FR_FINAL_TRAIN;
    how.select = rank;
    FAILS(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err), FR_EUSAGE, "larger is better");
    how.select = none;
    FAILS(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err), FR_EUSAGE, "mmr");
    how.select = zero;
    FAILS(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err), FR_EUSAGE, "expected-20");
    assert_int_equal(access(run, F_OK), -1);
    how = selecting(2);
    OK(fr_train_run(f.w, "craft", &small, &how, done, NULL, &err));
    how.resume = true;
    how.select = hits;
    FAILS(fr_train_run(f.w, "craft", &small, &how, done, NULL, &err), FR_EUSAGE, "select mrr");
    how.select = NULL;
    FAILS(fr_train_run(f.w, "craft", &small, &how, done, NULL, &err), FR_EUSAGE, "select mrr");
    how = selecting(2);
    how.final = FR_FINAL_TRAIN_VAL;
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    how.resume = true;
    how.final = FR_FINAL_TRAIN;
    FAILS(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err), FR_EUSAGE, "train+val");
    fr_window_close(bare);
    close_fixture(&f);
}

static void hear(void *user, fr_level level, const char *line) {
    if (level == FR_WARNING) (void)snprintf(user, 400, "%s", line);
}

/* A checkpoint that is not the selected epoch of a whole training is not used silently. */
static void test_warnings(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    char *run = in_directory(*state, "run"), *cut = in_directory(*state, "cut");
    char heard[400] = "";
    fr_context context = {.user = heard, .log = hear};
    fr_scorer *s;
    fr_training how = selecting(4);
    OK(fr_train_run(f.w, "craft", &small, &how, run, NULL, &err));
    OK(fr_scorer_open(model_of(run), f.w, 0, &context, &s, &err));
    assert_string_equal(heard, "");
    assert_int_equal(fr_scorer_get(s).selected, selected_of(run));
    assert_int_equal(fr_scorer_get(s).epochs_done, selected_of(run));
    assert_int_equal(fr_scorer_get(s).epochs_asked, 4);
    fr_scorer_close(s);
    OK(fr_scorer_open(in_directory(run, "state.safetensors"), f.w, 0, &context, &s, &err));
    assert_non_null(strstr(heard, "the last epoch of a training that selects by mrr"));
    fr_scorer_close(s);
    stopper at = {.stop_at = 12};
    fr_context stopped = {.user = &at, .cancel = stop, .threads = 1};
    FAILS(fr_train_run(f.w, "craft", &small, &how, cut, &stopped, &err), FR_ECANCEL, "interrupted");
    OK(fr_scorer_open(model_of(cut), f.w, 0, &context, &s, &err));
    assert_non_null(strstr(heard, "of 4 epochs; epoch 1 was the best until then"));
    fr_scorer_close(s);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_best_epoch),  WITH_DIRECTORY(test_patience),
        WITH_DIRECTORY(test_resume),      WITH_DIRECTORY(test_final),
        WITH_DIRECTORY(test_final_later), WITH_DIRECTORY(test_first_of_equals),
        WITH_DIRECTORY(test_refused),     WITH_DIRECTORY(test_warnings),
        WITH_DIRECTORY(test_leftovers),
    };
    return cmocka_run_group_tests(tests, make_small, NULL);
}
