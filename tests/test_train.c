/* test_train.c - training: the same bits with any number of threads, order of rows and
 * interruptions; it learns; wrong input is refused with a reason. */
#define _GNU_SOURCE
#include "models/checkpoint.h"
#include "nn/ops.h"
#include "train/trainer.h"
#include "train_fixture.h"

#include <math.h>

enum { OBJECTIVES = 2 - SANITIZED }; /* sanitizers see the steps of one of the two */

static const char *const models[] = {"craft",         "craft-r", "dygformer",
                                     "dygformer-lha", "tgn",     "graphmixer"};
enum { MODELS = sizeof models / sizeof *models };

static int make_short(void **state) {
    make_small(state);
    small.history = 12;
    return 0;
}

static fixture open_fixture(const char *directory, int events) {
    fr_error err;
    fixture f = {.stream = habits(directory, events)};
    fr_protocol p = {.size = sizeof p, .train_share = 0.8};
    OK(fr_window_open(f.stream, &p, NULL, &f.w, &err));
    return f;
}

static fr_training training(int64_t epochs) {
    return (fr_training){
        .size = sizeof(fr_training), .epochs = epochs, .batch_size = 60, .seed = 7, .rate = 0.001};
}

/* MODELS 7. */
static void test_parameter_counts(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 400);
    fr_model_settings standard;
    OK(fr_options_defaults(fr_model_options, &standard, &err));
    model m;
    OK(model_open(&m, "craft", &standard, f.w, 1, &err));
    assert_int_equal(m.params.count, 64 * f.w->destinations + 137474);
    model_close(&m);
    OK(model_open(&m, "craft-r", &standard, f.w, 1, &err));
    assert_int_equal(m.params.count, 64 * f.w->destinations + 158338);
    model_close(&m);
    for (int lha = 0; lha < 2; lha++) {
        OK(model_open(&m, lha ? "dygformer-lha" : "dygformer", &standard, f.w, 1, &err));
        assert_int_equal(params_trained(&m.params), lha ? 120561 : 120497); /* F = 0 */
        assert_int_equal(m.params.count, params_trained(&m.params) + 64);
        model_close(&m);
    }
    standard.head_layers = 1;
    OK(model_open(&m, "craft", &standard, f.w, 1, &err));
    assert_int_equal(m.params.count, 64 * f.w->destinations + 137474 - 16642 + 129);
    model_close(&m);
    OK(model_open(&m, "graphmixer", &standard, f.w, 1, &err));
    assert_int_equal(params_trained(&m.params),
                     100879 + 64 * (f.w->sources + f.w->destinations)); /* no features */
    assert_int_equal(m.params.count, params_trained(&m.params) + 64);
    model_close(&m);
    close_fixture(&f);
}

static void test_first_loss(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 400);
    fr_model_settings standard;
    OK(fr_options_defaults(fr_model_options, &standard, &err));
    for (int k = 0; k < 2 * MODELS; k++) {
        model m;
        trainer t;
        fr_training run = training(1);
        double loss;
        run.objective = k / MODELS;
        OK(model_open(&m, models[k % MODELS], &standard, f.w, 7, &err));
        OK(trainer_open(&t, &m, &run, NULL, &err));
        trainer_begin(&t, 0);
        OK(trainer_gradient(&t, t.order, 60, &loss, &err));
        assert_true(fabs(loss - 0.6931) < 0.03);
        trainer_close(&t);
        model_close(&m);
    }
    close_fixture(&f);
}

static void test_overfits(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 400);
    for (int k = 0; k < MODELS; k++) {
        fr_model_settings still = small;
        still.dropout = 0;
        model m;
        trainer t;
        fr_training run = training(1);
        run.rate = 0.005;
        OK(model_open(&m, models[k], &still, f.w, 7, &err));
        OK(trainer_open(&t, &m, &run, NULL, &err));
        trainer_begin(&t, 0);
        double loss = 1;
        int steps = 0;
        int most = SANITIZED ? 5 : 1500;
        for (; steps < most && loss >= 0.01; steps++)
            OK(trainer_step(&t, t.order + 200, 32, &loss, &err)); /* where there is a past */
        assert_true(SANITIZED || loss < 0.01);
        trainer_close(&t);
        model_close(&m);
    }
    close_fixture(&f);
}

static void test_threads(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 600);
    static const int threads[] = {1, 2, 5};
    for (int turn = 0; turn < OBJECTIVES * MODELS; turn++) {
        real *first = NULL;
        for (int k = 0; k < 3; k++) {
            fr_context context = {.threads = threads[k]};
            fr_training run = training(2);
            model m;
            trainer t;
            double loss;
            run.objective = turn / MODELS;
            OK(model_open(&m, models[turn % MODELS], &small, f.w, 7, &err));
            OK(trainer_open(&t, &m, &run, &context, &err));
            for (int64_t epoch = 0; epoch < 2; epoch++)
                OK(trainer_epoch(&t, epoch, &context, &loss, &err));
            size_t bytes = m.params.count * sizeof(real);
            if (!first) {
                OK(ALLOCATE(first, m.params.count, &err));
                memcpy(first, m.params.value, bytes);
            }
            assert_memory_equal(first, m.params.value, bytes);
            trainer_close(&t);
            model_close(&m);
        }
        free(first);
    }
    close_fixture(&f);
}

/* The message about a loss that is not finite does not depend on threads either. */
static void test_not_finite(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 600);
    static const int threads[] = {1, 2, 5};
    for (int turn = 0; turn < OBJECTIVES * MODELS; turn++) {
        fr_error first;
        for (int k = 0; k < 9 / (1 + 2 * SANITIZED); k++) {
            fr_context context = {.threads = threads[k % 3]};
            fr_training run = training(1);
            model m;
            trainer t;
            double loss;
            run.objective = turn / MODELS;
            run.rate = 1e10;
            OK(model_open(&m, models[turn % MODELS], &small, f.w, 7, &err));
            OK(trainer_open(&t, &m, &run, &context, &err));
            FAILS(trainer_epoch(&t, 0, &context, &loss, &err), FR_EINPUT, "step ");
            if (!k) first = err;
            assert_string_equal(err.message, first.message);
            trainer_close(&t);
            model_close(&m);
        }
    }
    close_fixture(&f);
}

/* A score does not depend on the other rows of the batch, and equal candidates get equal bits. */
static void check_rows_are_stable(const char *directory, const char *name) {
    fr_error err;
    fixture f = open_fixture(directory, 400);
    model m;
    OK(model_open(&m, name, &small, f.w, 7, &err));
    enum { EVENTS = 40, EACH = 9 };
    static const float drops[] = {0, 0.3f};
    for (int d = 0; d < 2; d++) {
        tape t = {.params = &m.params,
                  .seed = 3,
                  .dropout = (double)drops[d],
                  .attention_dropout = (double)drops[d]};
        int32_t event[EVENTS], from[EVENTS + 1], candidate[EVENTS * EACH];
        float kept[EVENTS][EACH];
        for (int turn = 0; turn < 2; turn++) { /* forwards, then backwards */
            for (int i = 0; i < EVENTS; i++) {
                int which = turn ? EVENTS - 1 - i : i;
                event[i] = 7 * which;
                from[i] = EACH * i;
                for (int k = 0; k < EACH; k++)
                    candidate[EACH * i + k] = (which + (k == EACH - 1 ? 0 : k)) % f.w->destinations;
            }
            from[EVENTS] = EACH * EVENTS;
            tape_reset(&t);
            tensor y =
                m.kind->forward(&m, &t, &(model_batch){EVENTS, event, from, candidate}, NULL);
            assert_int_equal(t.status, FR_OK);
            for (int i = 0; i < EVENTS; i++) {
                int which = turn ? EVENTS - 1 - i : i;
                if (!turn)
                    memcpy(kept[which], &y.v[EACH * i], sizeof kept[which]);
                else
                    assert_memory_equal(kept[which], &y.v[EACH * i], sizeof kept[which]);
                if (d == 0) /* the first and the last candidate are the same destination */
                    assert_memory_equal(&y.v[EACH * i], &y.v[EACH * i + EACH - 1], sizeof(real));
            }
        }
        tape_free(&t);
    }
    model_close(&m);
    close_fixture(&f);
}

static void test_rows_are_stable(void **state) {
    for (int k = 0; k < MODELS; k++) check_rows_are_stable(*state, models[k]);
}

/* ---- runs on disk ---- */

static void assert_same_file(const char *a, const char *b) {
    mapping file;
    assert_int_equal(mapping_open(a, &file, NULL), FR_OK);
    assert_file(b, file.bytes, file.size);
    mapping_close(&file);
}

typedef struct stopper {
    int calls, stop_at;
} stopper;

static bool stop(void *user) {
    stopper *s = user;
    return ++s->calls > s->stop_at;
}

/* Bytes of the model, its memory included, after interruptions. */
static void check_resume(const char *directory, const char *name, const char *other_name) {
    fr_error err;
    fixture f = open_fixture(directory, 500);
    char *straight = in_directory(directory, "straight"), *parts = in_directory(directory, "parts");
    char *model_a = in_directory(straight, "model.safetensors"),
         *model_b = in_directory(parts, "model.safetensors");
    fr_training run = training(3);
    OK(fr_train_run(f.w, name, &small, &run, straight, NULL, &err));

    stopper s = {.stop_at = 10}; /* epochs have 7 steps: in the middle of the second */
    fr_context context = {.user = &s, .cancel = stop};
    FAILS(fr_train_run(f.w, name, &small, &run, parts, &context, &err), FR_ECANCEL, "interrupted");
    model m; /* what the first epoch left can be used */
    OK(checkpoint_load(&m, model_b, f.w, &err));
    model_close(&m);
    FAILS(fr_train_run(f.w, name, &small, &run, parts, NULL, &err), FR_EFORCE, "exists");
    run.resume = true;
    s = (stopper){.stop_at = 9}; /* and once more, in the third */
    FAILS(fr_train_run(f.w, name, &small, &run, parts, &context, &err), FR_ECANCEL, "interrupted");
    OK(fr_train_run(f.w, name, &small, &run, parts, NULL, &err));
    assert_same_file(model_a, model_b);
    OK(fr_train_run(f.w, name, &small, &run, parts, NULL, &err)); /* nothing left to do */
    assert_same_file(model_a, model_b);

    fr_training other = run;
    other.seed = 8;
    FAILS(fr_train_run(f.w, name, &small, &other, parts, NULL, &err), FR_EUSAGE,
          "a run with seed 7");
    FAILS(fr_train_run(f.w, other_name, &small, &run, parts, NULL, &err), FR_EUSAGE, other_name);
    FAILS(fr_train_run(f.w, name, &small, &run, in_directory(directory, "none"), NULL, &err),
          FR_EFILE, "no such run to resume");
    /* stopped before the first epoch is complete: nothing is left */
    run.resume = false;
    s = (stopper){.stop_at = 2};
    char *early = in_directory(directory, "early");
    FAILS(fr_train_run(f.w, name, &small, &run, early, &context, &err), FR_ECANCEL, "interrupted");
    assert_int_equal(access(early, F_OK), -1);
    close_fixture(&f);
}

static void test_resume(void **state) { check_resume(*state, "craft", "craft-r"); }
static void test_resume_with_memory(void **state) {
    check_resume(*state, "dygformer-lha", "dygformer");
}

static void test_resume_models(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 300);
    fr_model_settings narrow; /* only the width, which every model has */
    OK(fr_options_defaults(fr_model_options, &narrow, &err));
    narrow.dim = 16;
    for (int k = 0; k < MODELS; k++) {
        char name[2][40];
        for (int part = 0; part < 2; part++)
            (void)snprintf(name[part], sizeof name[part], "%s-%d", models[k], part);
        char *straight = in_directory(*state, name[0]), *parts = in_directory(*state, name[1]);
        fr_training run = training(2), first = training(1);
        OK(fr_train_run(f.w, models[k], &narrow, &run, straight, NULL, &err));
        OK(fr_train_run(f.w, models[k], &narrow, &first, parts, NULL, &err));
        run.resume = true;
        OK(fr_train_run(f.w, models[k], &narrow, &run, parts, NULL, &err));
        assert_same_file(in_directory(straight, "model.safetensors"),
                         in_directory(parts, "model.safetensors"));
    }
    close_fixture(&f);
}

static void test_refused(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 300);
    char *out = in_directory(*state, "run");
    fr_training run = training(1);
    FAILS(fr_train_run(f.w, "kraft", &small, &run, out, NULL, &err), FR_EUSAGE,
          "did you mean craft?");
    fr_model_settings odd = small;
    odd.heads = 3;
    FAILS(fr_train_run(f.w, "craft", &odd, &run, out, NULL, &err), FR_EUSAGE,
          "dim 16 is not a multiple of heads 3");
    FAILS(fr_train_run(f.w, "craft", &small, &run, in_directory(*state, "no/run"), NULL, &err),
          FR_EFILE, "directory cannot be made");
    put_text(in_directory(*state, "file"), "x");
    FAILS(fr_train_run(f.w, "craft", &small, &run, in_directory(*state, "file"), NULL, &err),
          FR_EFILE, "is not a directory");
    assert_int_equal(access(out, F_OK), -1);

    model m;
    trainer t;
    double loss;
    OK(model_open(&m, "craft", &small, f.w, 7, &err));
    OK(trainer_open(&t, &m, &run, NULL, &err));
    trainer_begin(&t, 0);
    OK(trainer_step(&t, t.order, 20, &loss, &err));
    m.params.value[m.params.list.at[5].offset] = NAN;
    char message[128];
    (void)snprintf(message, sizeof message, "step 2: the loss is not finite; %s has the value",
                   m.params.list.at[5].name);
    FAILS(trainer_step(&t, t.order, 20, &loss, &err), FR_EINPUT, message);
    trainer_close(&t);
    model_close(&m);
    close_fixture(&f);
}

static void test_checkpoints(void **state) {
    fr_error err;
    fixture f = open_fixture(*state, 300);
    char *path = in_directory(*state, "m.safetensors"),
         *bad = in_directory(*state, "bad.safetensors");
    fr_training run = training(1);
    model m, back;
    OK(model_open(&m, "craft-r", &small, f.w, 7, &err));
    OK(checkpoint_save(&m, &run, run.epochs, path, &err));
    OK(checkpoint_load(&back, path, f.w, &err));
    assert_int_equal(back.params.count, m.params.count);
    assert_memory_equal(back.params.value, m.params.value, m.params.count * sizeof(real));
    assert_memory_equal(&back.settings, &m.settings, sizeof m.settings);
    assert_string_equal(back.kind->facts.name, "craft-r");
    model_close(&back);

    /* another window: other length, other split */
    fr_window *other;
    OK(fr_window_open(f.stream, &(fr_protocol){.size = sizeof(fr_protocol), .train_share = 0.7},
                      NULL, &other, &err));
    FAILS(checkpoint_load(&back, path, other, &err), FR_EINPUT,
          "trained with ntrain 240, but this window has 210");
    fr_window_close(other);
    OK(fr_window_open(f.stream,
                      &(fr_protocol){.size = sizeof(fr_protocol),
                                     .train_share = 0.8,
                                     .order = order_text(FR_ORDER_STRICT)},
                      NULL, &other, &err));
    FAILS(checkpoint_load(&back, path, other, &err), FR_EINPUT, "trained with order stream");
    fr_window_close(other);
    /* other ids */
    int64_t *ids = (int64_t *)(uintptr_t)f.w->destination_id, keep = ids[1];
    ids = NULL;
    fr_window changed = *f.w;
    OK(ALLOCATE(ids, f.w->destinations, &err));
    memcpy(ids, f.w->destination_id, (size_t)f.w->destinations * sizeof *ids);
    ids[1] = keep + 1000;
    changed.destination_id = ids;
    FAILS(checkpoint_load(&back, path, &changed, &err), FR_EINPUT, "vocab.dst[1]");
    free(ids);

    mapping file;
    OK(mapping_open(path, &file, &err));
    put_file(bad, file.bytes, file.size / 2);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "bad.safetensors");
    unsigned char *copy;
    OK(ALLOCATE(copy, file.size, &err));
    memcpy(copy, file.bytes, file.size);
    char *name = memmem(copy, file.size, "craft-r", 7);
    memcpy(name, "craft  ", 7);
    put_file(bad, copy, file.size);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EUSAGE, "unknown model");
    memcpy(copy, file.bytes, file.size);
    char *dim = memmem(copy, file.size, "\"dim\":\"16\"", 10);
    assert_non_null(dim);
    memcpy(dim, "\"dim\":\"18\"", 10);
    put_file(bad, copy, file.size);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "item.weight");
    free(copy);
    mapping_close(&file);
    model_close(&m);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_parameter_counts), WITH_DIRECTORY(test_first_loss),
        WITH_DIRECTORY(test_overfits),         WITH_DIRECTORY(test_threads),
        WITH_DIRECTORY(test_not_finite),       WITH_DIRECTORY(test_rows_are_stable),
        WITH_DIRECTORY(test_resume),           WITH_DIRECTORY(test_resume_with_memory),
        WITH_DIRECTORY(test_resume_models),    WITH_DIRECTORY(test_refused),
        WITH_DIRECTORY(test_checkpoints)};
    return cmocka_run_group_tests(tests, make_short, NULL);
}
