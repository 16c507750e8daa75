/* test_dygformer.c - the inputs of DyGFormer, and the content of its pair memory (MODELS 3.1, 4.2,
 * 11). */
#include "dygformer_fixture.h"
#include "models/checkpoint.h"
#include "nn/safetensors.h"

/* ---- inputs ---- */

/* Nodes of a side's tokens; destinations are numbered after the sources. */
static int nodes_of(const fixture *f, int32_t self, fr_history past, bool source, int32_t *node) {
    int32_t sources = f->w->sources;
    node[0] = source ? self : sources + self;
    for (int j = 0; j < past.count; j++)
        node[j + 1] =
            source ? sources + f->w->destination[past.event[j]] : f->w->source[past.event[j]];
    return past.count + 1;
}

static int occurrences(const int32_t *node, int n, int32_t one) {
    int count = 0;
    for (int j = 0; j < n; j++) count += node[j] == one;
    return count;
}

static void check_counts(const char *directory, int order) {
    fixture f;
    make(&f, directory, order, 0, "dygformer", usual);
    int n = f.w->destinations, most = (int)usual.history - 1, both = 0, many = 0;
    int32_t from[] = {0, n}, candidate[MOST_DESTINATIONS], side[2][16];
    for (int v = 0; v < n; v++) candidate[v] = v;
    tape t = {.params = &f.m.params};
    for (int32_t e = 0; e < f.w->events; e++) {
        dygformer_inputs in;
        tape_reset(&t);
        assert_true(dygformer_read(&f.m, &t, &(model_batch){1, &e, from, candidate}, &in));
        int token = 0;
        for (int32_t v = 0; v < n; v++) {
            int32_t u = f.w->source[e], cut = window_cut(f.w, e);
            int length[2] = {
                nodes_of(&f, u, window_source_history(f.w, u, cut, most), true, side[0]),
                nodes_of(&f, v, window_destination_history(f.w, v, cut, most), false, side[1])};
            for (int s = 0; s < 2; s++)
                for (int j = 0; j < length[s]; j++, token++) {
                    int own = occurrences(side[0], length[0], side[s][j]),
                        other = occurrences(side[1], length[1], side[s][j]);
                    assert_int_equal(in.count[0][token], own);
                    assert_int_equal(in.count[1][token], other);
                    both += own > 0 && other > 0;
                    many += own > 2 || other > 2;
                }
        }
        assert_int_equal(token, in.tokens);
    }
    assert_true(both > 100 && many > 100);
    tape_free(&t);
    drop(&f);
}

static void test_counts(void **state) {
    check_counts(*state, FR_ORDER_STREAM);
    check_counts(*state, FR_ORDER_STRICT);
}

static float plain_score(const fixture *f, int32_t event, int32_t candidate) {
    int32_t from[] = {0, 1};
    tape t = {.params = &f->m.params};
    tensor y = f->m.kind->forward(&f->m, &t, &(model_batch){1, &event, from, &candidate}, NULL);
    assert_int_equal(t.status, FR_OK);
    float score = (float)y.v[0];
    tape_free(&t);
    return score;
}

static void swap(int32_t *a, int32_t *b, int n) {
    for (int i = 0; i < n; i++) {
        int32_t keep = a[i];
        a[i] = b[i];
        b[i] = keep;
    }
}

/* Patches have no positions, but slots have. */
static void test_patches_are_a_set(void **state) {
    fixture f;
    fr_error err;
    fr_model_settings settings = usual;
    settings.history = EVENTS + 1; /* all is kept */
    make(&f, *state, FR_ORDER_STREAM, 4, "dygformer", settings);
    int32_t e = f.w->events - 1, u = f.w->source[e], v = f.w->destination[e], *copy;
    while (window_source_history(f.w, u, e, EVENTS).count < 30) u = f.w->source[--e];
    fr_window changed = *f.w;
    OK(ALLOCATE(copy, 2 * f.w->events, &err));
    memcpy(copy, f.w->node_events, 2 * (size_t)f.w->events * sizeof *copy);
    changed.node_events = copy;
    float before = plain_score(&f, e, v);
    f.m.w = &changed;
    int32_t *past = copy + f.w->node_at[u]; /* token j is past[j - 1] */
    swap(past + 5 - 1, past + 15 - 1, 5);
    float swapped = plain_score(&f, e, v);
    assert_true(fabsf(swapped - before) <= 1e-6f);
    swap(past + 5 - 1, past + 6 - 1, 1);
    assert_true(fabsf(plain_score(&f, e, v) - before) > 1e-4f);
    f.m.w = f.w;
    free(copy);
    drop(&f);
}

/* ---- memory ---- */

static void test_learning(void **state) {
    fixture f;
    fr_error err;
    make_window(&f, *state, FR_ORDER_STREAM, 0);
    OK(model_open(&f.m, "dygformer-lha", &usual, f.w, 7, &err));
    const model_memory *memory = f.m.kind->memory;
    int32_t again = 1; /* an event whose pair has another one later */
    int32_t other = -1;
    for (; other < 0; again += other < 0)
        for (int32_t e = again + 1; e < 60 && other < 0; e++)
            if (f.w->source[e] == f.w->source[again] &&
                f.w->destination[e] == f.w->destination[again])
                other = e;
    int32_t v = f.w->destination[again], late = f.w->events - 1;
    for (; f.w->source[late] != f.w->source[again]; late--) assert_true(late > other);
    enum { D = 16 };
    real h[3][D];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < D; k++) h[i][k] = (real)(i + 1 + 0.01 * k);
    assert_null(lha_recall(&f.m, late, v));
    OK(memory->learn(&f.m, &again, 1, h[0], &err)); /* the first write: gamma hcur */
    const real *r = lha_recall(&f.m, late, v);
    for (int k = 0; k < D; k++) assert_true(r[k] == REAL(0.9) * h[0][k]);
    int32_t both[] = {again, other}; /* one step: the old state for both, the last one wins */
    OK(memory->learn(&f.m, both, 2, h[1], &err));
    for (int k = 0; k < D; k++)
        assert_true(r[k] == REAL(0.9) * h[2][k] + (1 - REAL(0.9)) * (REAL(0.9) * h[0][k]));
    memory->reset(&f.m);
    assert_null(lha_recall(&f.m, late, v));
    drop(&f);
}

/* The recurrence one event after the other, with whole vectors and with w2b . r alone. */
static void check_replay(const char *directory, int order, bool from_start) {
    fixture f;
    fr_error err;
    make(&f, directory, order, 0, "dygformer-lha", usual);
    lha *h = f.m.pairs;
    int d = h->dim, replayed = 0;
    if (from_start) f.m.kind->memory->reset(&f.m);
    int32_t start = from_start ? 0 : f.w->train;
    OK(f.m.kind->memory->replay(&f.m, start, &(fr_context){.threads = 3}, &err));
    const real *last = f.m.params.value + f.m.params.list.at[h->last.weight].offset + d;
    real *value;
    double *rho;
    OK(ALLOCATE(value, f.w->pairs * d, &err));
    OK(ALLOCATE(rho, f.w->pairs, &err));
    memcpy(value, h->value, (size_t)(f.w->pairs * d) * sizeof *value);
    for (int32_t k = 0; k < f.w->pairs; k++) rho[k] = (double)kernel_dot(d, last, value + k * d);
    tape t = {.params = &f.m.params};
    int32_t observed = start, from[] = {0, 1};
    for (int32_t e = start; e < f.w->events; e++) {
        for (; observed < window_cut(f.w, e); observed++) { /* what e may know */
            int32_t v = f.w->destination[observed],
                    pair = window_pair(f.w, f.w->source[observed], v);
            model_inner inner;
            tape_reset(&t);
            (void)f.m.kind->forward(&f.m, &t, &(model_batch){1, &observed, from, &v}, &inner);
            assert_int_equal(t.status, FR_OK);
            rho[pair] = 0.9 * (double)kernel_dot(d, last, inner.keep.v) + (1 - 0.9) * rho[pair];
            for (int k = 0; k < d; k++)
                value[pair * d + k] =
                    h->gamma * inner.keep.v[k] + (1 - h->gamma) * value[pair * d + k];
        }
        for (int32_t v = 0; v < f.w->destinations; v++) {
            int32_t pair = window_pair(f.w, f.w->source[e], v);
            const real *r = lha_recall(&f.m, e, v);
            double recalled = (double)lha_recalled(&f.m, e, v);
            if (!r) assert_true(recalled == 0);
            if (!r) continue;
            replayed++;
            assert_memory_equal(r, value + pair * d, (size_t)d * sizeof *r);
            assert_true(fabs((double)kernel_dot(d, last, r) - rho[pair]) < 1e-5);
            assert_true(fabs(recalled - rho[pair]) < 1e-5);
        }
    }
    assert_true(replayed > 100);
    tape_free(&t);
    free(value);
    free(rho);
    drop(&f);
}

static void test_replay(void **state) {
    for (int order = 0; order < 3; order++)
        for (int start = 0; start < 2; start++) check_replay(*state, order, start);
}

/* ---- checkpoints ---- */

/* The file with 8 or 4 bytes at an element of a tensor replaced. */
static void put_changed(const char *from, const char *to, const char *name, int64_t element,
                        const void *bytes, size_t size) {
    fr_error err;
    safetensors file;
    OK(safetensors_open(from, &file, &err));
    unsigned char *copy = malloc(file.file.size);
    assert_non_null(copy);
    memcpy(copy, file.file.bytes, file.file.size);
    size_t at = file.file.size; /* tensors lie end to end, the last one at the file's end */
    for (size_t k = file.count; k-- > 0;) {
        at -= file.tensor[k].bytes;
        if (!strcmp(file.tensor[k].name, name)) break;
    }
    memcpy(copy + at + (size_t)element * size, bytes, size);
    put_file(to, copy, file.file.size);
    free(copy);
    safetensors_close(&file);
}

static void test_checkpoints(void **state) {
    fixture f;
    fr_error err;
    make(&f, *state, FR_ORDER_STREAM, 4, "dygformer-lha", usual);
    char *path = in_directory(*state, "m.safetensors"),
         *bad = in_directory(*state, "bad.safetensors");
    fr_training training = {
        .size = sizeof training, .epochs = 1, .batch_size = 60, .seed = 7, .rate = 0.001};
    OK(checkpoint_save(&f.m, &training, training.epochs, path, &err));
    model back;
    OK(checkpoint_load(&back, path, f.w, &err));
    assert_memory_equal(back.params.value, f.m.params.value, f.m.params.count * sizeof(real));
    const lha *was = f.m.pairs, *is = back.pairs;
    assert_memory_equal(is->value, was->value,
                        (size_t)f.w->pairs * (size_t)was->dim * sizeof *is->value);
    OK(back.kind->memory->replay(&back, f.w->train, NULL, &err));
    fr_scorer_definition one, two;
    OK(f.m.kind->fast(&f.m, 1, &one, &err));
    OK(back.kind->fast(&back, 1, &two, &err));
    float a[MOST_DESTINATIONS], b[MOST_DESTINATIONS];
    for (int32_t e = f.w->train; e < f.w->events; e++) {
        score(&f, &one, e, 0, a);
        score(&f, &two, e, 0, b);
        assert_memory_equal(a, b, (size_t)f.w->destinations * sizeof *a);
    }
    one.close(one.state);
    two.close(two.state);
    model_close(&back);

    const int64_t far = 1000, below = -1;
    const float infinite = INFINITY;
    safetensors file;
    OK(safetensors_open(path, &file, &err));
    int64_t source, destination;
    memcpy(&source, safetensors_find(&file, "state.pair.src")->data, 8);
    memcpy(&destination, safetensors_find(&file, "state.pair.dst")->data, 8);
    safetensors_close(&file);
    put_changed(path, bad, "state.pair.src", 1, &far, 8);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "no pair of this window");
    put_changed(path, bad, "state.pair.dst", 2, &below, 8);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "no pair of this window");
    put_changed(path, bad, "state.pair.value", 21, &infinite, 4);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "state.pair.value has the value inf");
    put_changed(path, bad, "state.pair.src", 1, &source, 8); /* the first pair twice */
    put_changed(bad, bad, "state.pair.dst", 1, &destination, 8);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "each pair once");
    put_changed(path, bad, "state.pair.src", 3, &source, 8); /* and out of order */
    put_changed(bad, bad, "state.pair.dst", 3, &destination, 8);
    FAILS(checkpoint_load(&back, bad, f.w, &err), FR_EINPUT, "sorted by source and destination");
    drop(&f);
}

/* MODELS 7, with four features per event. */
static void test_parameter_counts(void **state) {
    fixture f;
    fr_error err;
    fr_model_settings standard;
    OK(fr_options_defaults(fr_model_options, &standard, &err));
    for (int k = 0; k < 3; k++) {
        standard.time_trainable = k == 2;
        make(&f, *state, FR_ORDER_STREAM, 4, k ? "dygformer-lha" : "dygformer", standard);
        assert_int_equal(params_trained(&f.m.params),
                         (k ? 120561 : 120497) + 160 * 4 + (k == 2 ? 64 : 0));
        drop(&f);
    }
}

static void test_refused(void **state) {
    fixture f;
    fr_error err;
    make_window(&f, *state, FR_ORDER_STREAM, 0);
    fr_model_settings odd = usual;
    odd.dim = 18;
    FAILS(model_open(&f.m, "dygformer", &odd, f.w, 7, &err), FR_EUSAGE,
          "dim 18 is not a multiple of heads 2 and of 4");
    odd = usual;
    odd.edge_dim = 3;
    FAILS(model_open(&f.m, "dygformer-lha", &odd, f.w, 7, &err), FR_EUSAGE,
          "the data has 0 features");
    fr_window_close(f.w);
    fr_stream_close(f.stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_counts),           WITH_DIRECTORY(test_patches_are_a_set),
        WITH_DIRECTORY(test_learning),         WITH_DIRECTORY(test_replay),
        WITH_DIRECTORY(test_parameter_counts), WITH_DIRECTORY(test_checkpoints),
        WITH_DIRECTORY(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
