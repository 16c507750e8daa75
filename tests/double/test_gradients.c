/* test_gradients.c - every op and whole models against central differences, in double.
 *
 * Compiled with FR_DOUBLE like nn/, models/ and train/ it links to. An op is tested by a small
 * graph whose inputs are rows of parameters, so that one comparison over the flat buffer covers
 * inputs and weights.
 */
#include "base/rng.h"
#include "nn/ops.h"
#include "testing.h"
#include "train/loss.h"
#include "train/trainer.h"

_Static_assert(sizeof(real) == 8, "gradients are checked in double");

static const rng_key key = {.seed = 11, .purpose = RNG_TEST};

/* Moves parameters to values where no norm sees a zero vector and no kink is near. */
static void scatter(params *p, double size) {
    for (size_t k = 0; k < p->count; k++) {
        double normal[2];
        rng_normal(key, k, 5, normal);
        p->value[k] = p->value[k] + size * normal[0];
    }
}

static void compare(const char *what, size_t element, double found, double expected, double scale) {
    double error = fabs(found - expected) / (fabs(found) + fabs(expected) + scale);
    /* the accuracy of a difference depends on the last digits of the C library */
    if (error <= 1e-6 || fabs(found - expected) <= 5e-10) return;
    print_error("# %s, element %zu: gradient %.12g, central difference %.12g\n", what, element,
                found, expected);
    assert_true(error <= 1e-6);
}

/* ---- ops ---- */

enum {
    TABLE,
    WEIGHT,
    BIAS,
    GAIN,
    COLUMN,
    SLOPE,
    SQUARE,
    SQUARE_BIAS,
    KEY,
    NARROW,
    NARROW_KEY,
    STATE,
    THIN
};
enum { ROWS = 7, COLS = 6 };

static const int32_t every[] = {0, 1, 2, 3, 4, 5, 6}, some[] = {3, 1, -1, 6, 1}; /* -1: zeros */
static const row_key keys[] = {{4, 0}, {4, 1}, {5, 0}, {9, 0}, {9, 1}, {9, 2}, {12, 0}};
static const span spans[] = {
    {0, 2, 0, 3}, {2, 3, 3, 3}, {3, 4, 3, 4}, {4, 7, 4, 7}}; /* one without keys */

static tensor input(tape *t) { return op_rows(t, TABLE, ROWS, every); }
static tensor graph_rows(tape *t) { return op_rows(t, TABLE, 5, some); }
static tensor graph_linear(tape *t) { return op_linear(t, input(t), WEIGHT, BIAS); }
static tensor graph_norm(tape *t) { return op_norm(t, input(t), GAIN, SQUARE_BIAS, 1e-12); }
static tensor graph_add(tape *t) { return op_add(t, input(t), graph_norm(t)); }
static tensor graph_dot(tape *t) { return op_dot(t, input(t), graph_norm(t), 0.7); }
static tensor graph_gelu(tape *t) { return op_gelu(t, input(t)); }
static tensor graph_relu(tape *t) { return op_relu(t, input(t)); }
static tensor graph_plain_linear(tape *t) { return op_linear(t, input(t), WEIGHT, -1); }
static tensor graph_take(tape *t) { return op_take(t, graph_gelu(t), 5, some); }
static tensor graph_mean(tape *t) {
    static const int32_t from[] = {0, 2, 2, 7};
    static const real divisor[] = {2, 1, 8};
    return op_mean(t, graph_gelu(t), 3, from, divisor);
}
static tensor graph_time(tape *t) {
    static const double delta[] = {0, 0.5, 3, 17};
    return op_time(t, 4, delta, GAIN, SQUARE_BIAS);
}
/* a group of 2 rows to 3, none to 1 (the bias), 3 to none, 2 to 6 */
static tensor graph_slots(tape *t) {
    static const int32_t in[] = {0, 2, 2, 5, 7}, out[] = {0, 3, 4, 4, 10};
    return op_slots(t, graph_gelu(t), SQUARE, SQUARE_BIAS, 4, in, out);
}
static tensor graph_mlp(tape *t) {
    static const int first[] = {SQUARE, SQUARE_BIAS}, second[] = {WEIGHT, BIAS};
    return op_mlp(t, graph_gelu(t), first, second, 5, keys);
}
/* the same in four */
static tensor graph_mlp_apart(tape *t) {
    tensor middle = op_gelu(t, op_linear(t, graph_gelu(t), SQUARE, SQUARE_BIAS));
    return op_linear(t, op_dropout(t, middle, 5, keys), WEIGHT, BIAS);
}
static tensor graph_constants(tape *t) {
    static const real x[] = {1, -2, 0.5, 3}, y[] = {7, -1, 0, 2, 4, 1, 1, 1};
    tensor parts[] = {op_input(t, 2, 2, x), op_input(t, 2, 4, y)};
    return op_linear(t, op_concat(t, 2, parts), WEIGHT, BIAS);
}
/* patches of two slots; the second and the fourth end early */
static const int32_t patch_from[] = {0, 2, 3, 5, 6};
static tensor graph_patches(tape *t) {
    tensor x = op_linear(t, graph_gelu(t), THIN, -1); /* [7, 3]; weights (5, 2 * 3) */
    return op_patches(t, x, 4, patch_from, WEIGHT, BIAS);
}
static tensor graph_constant_patches(tape *t) {
    static const real x[] = {1, -2, 0.5, 3, 7, -1, 0, 2, 4, 1, 1, 1, 2, 2, 5, -3, 0.1, 0};
    return op_patches(t, op_input(t, 6, 3, x), 4, patch_from, WEIGHT, BIAS);
}
static tensor graph_input(tape *t) {
    static const real x[] = {1, -2, 0.5, 3, 7, -1, 0, 2, 4, 1, 1, 1};
    return op_linear(t, op_input(t, 2, COLS, x), WEIGHT, BIAS);
}
static tensor graph_prelu(tape *t) { return op_prelu(t, input(t), SLOPE); }
static tensor graph_code(tape *t) {
    static const real x[] = {0, -3, 2.5, 1e3};
    return op_code(t, 4, x, COLUMN, SQUARE_BIAS);
}
static tensor graph_concat(tape *t) {
    tensor parts[] = {input(t), graph_linear(t), graph_gelu(t)};
    return op_concat(t, 3, parts);
}
static tensor graph_dropout(tape *t) { return op_dropout(t, graph_linear(t), 3, keys); }
static tensor graph_attention(tape *t) {
    tensor x = input(t);
    return op_attention(t, op_linear(t, x, SQUARE, SQUARE_BIAS), x, op_gelu(t, x), 2, spans, 4, 7,
                        keys);
}
/* the same side by side */
static tensor graph_joint(tape *t) {
    tensor x = input(t);
    tensor parts[] = {op_linear(t, x, SQUARE, SQUARE_BIAS), x, op_gelu(t, x)};
    return op_attention_joint(t, op_concat(t, 3, parts), 2, spans, 4, 7, keys);
}
/* a norm reads x before and after, as in the models */
static tensor residual(tape *t, bool in_place) {
    tensor x = op_linear(t, input(t), SQUARE, SQUARE_BIAS);
    tensor more = op_linear(t, op_norm(t, x, GAIN, SQUARE_BIAS, 1e-12), KEY, SQUARE_BIAS);
    x = in_place ? op_residual(t, x, more, 6, keys) : op_add(t, x, op_dropout(t, more, 6, keys));
    return op_norm(t, x, GAIN, SQUARE_BIAS, 1e-12);
}
static tensor graph_residual(tape *t) { return residual(t, true); }
static tensor graph_residual_apart(tape *t) { return residual(t, false); }

static tensor graph_folded(tape *t) {
    tensor x = input(t), q = op_gelu(t, op_linear(t, x, SQUARE, SQUARE_BIAS));
    return op_attention_folded(t, q, x, SQUARE, KEY, SQUARE_BIAS, 2, spans, 4, 7, keys);
}
/* the same with projections */
static tensor graph_projected(tape *t) {
    tensor x = input(t), q = op_gelu(t, op_linear(t, x, SQUARE, SQUARE_BIAS));
    return op_attention(t, q, op_linear(t, x, SQUARE, SQUARE_BIAS),
                        op_linear(t, x, KEY, SQUARE_BIAS), 2, spans, 4, 7, keys);
}

/* keys of another width than queries, values without bias */
static tensor graph_narrow(tape *t) {
    tensor q = op_gelu(t, op_linear(t, input(t), SQUARE, SQUARE_BIAS));
    return op_attention_folded(t, q, graph_linear(t), NARROW, NARROW_KEY, -1, 2, spans, 4, 7, keys);
}
static tensor graph_narrow_projected(tape *t) {
    tensor q = op_gelu(t, op_linear(t, input(t), SQUARE, SQUARE_BIAS)), x = graph_linear(t);
    return op_attention(t, q, op_linear(t, x, NARROW, -1), op_linear(t, x, NARROW_KEY, -1), 2,
                        spans, 4, 7, keys);
}
/* rows with keys of two parts: one taken by number, one next to it, learned or not; two queries
 * have the same keys */
static const int32_t asks[] = {1, 0, 1, 2}, taken[] = {3, 1, 1, 6, 0};
static const span singles[] = {{0, 1, 0, 2}, {1, 2, 2, 2}, {2, 3, 2, 5}, {3, 4, 4, 5}};

static tensor key_side(tape *t, bool learned) {
    static const real x[] = {1, -2, 0.5, 3, 0.2, -1, 0, 2, -1, 1, 0.3, 0.8, -0.4, 0.1, 2};
    return learned ? op_linear(t, op_rows(t, TABLE, 5, some), THIN, -1) : op_input(t, 5, 3, x);
}
static tensor over_parts(tape *t, bool learned) {
    tensor q = op_gelu(t, op_linear(t, op_rows(t, TABLE, 3, some), SQUARE, SQUARE_BIAS));
    key_rows over = {5, op_linear(t, input(t), THIN, -1), key_side(t, learned), taken};
    return op_attention_over(t, op_fold(t, q, SQUARE, 2), asks, &over, KEY, SQUARE_BIAS, 2, singles,
                             4, 7, keys);
}
static tensor over_parts_projected(tape *t, bool learned) {
    tensor q = op_gelu(t, op_linear(t, op_rows(t, TABLE, 3, some), SQUARE, SQUARE_BIAS));
    tensor parts[] = {op_take(t, op_linear(t, input(t), THIN, -1), 5, taken), key_side(t, learned)};
    tensor x = op_concat(t, 2, parts);
    return op_attention(t, op_take(t, q, 4, asks), op_linear(t, x, SQUARE, -1),
                        op_linear(t, x, KEY, SQUARE_BIAS), 2, singles, 4, 7, keys);
}
static tensor graph_over(tape *t) { return over_parts(t, true); }
static tensor graph_over_constants(tape *t) { return over_parts(t, false); }
static tensor graph_over_projected(tape *t) { return over_parts_projected(t, true); }
static tensor graph_over_constants_projected(tape *t) { return over_parts_projected(t, false); }

/* rows next to others by number: some taken twice, one not at all */
static tensor graph_beside(tape *t) {
    static const int32_t index[] = {2, 0, 2, 4, 3, 3, 0};
    tensor x = op_linear(t, input(t), THIN, -1);
    tensor more = op_gelu(t, op_linear(t, op_rows(t, TABLE, 5, some), THIN, -1));
    tensor y = op_linear_beside(t, x, more, index, true, SQUARE, SQUARE_BIAS);
    return op_add(t, y, op_linear_beside(t, x, more, index, false, KEY, SQUARE_BIAS));
}
static tensor graph_beside_joined(tape *t) {
    static const int32_t index[] = {2, 0, 2, 4, 3, 3, 0};
    tensor x = op_linear(t, input(t), THIN, -1);
    tensor more = op_gelu(t, op_linear(t, op_rows(t, TABLE, 5, some), THIN, -1));
    tensor taken_rows = op_take(t, more, 7, index), pair[] = {taken_rows, x, taken_rows};
    tensor y = op_linear(t, op_concat(t, 2, pair), SQUARE, SQUARE_BIAS);
    return op_add(t, y, op_linear(t, op_concat(t, 2, pair + 1), KEY, SQUARE_BIAS));
}
/* three states of two numbers, with which the inputs begin; the last one has no input */
static tensor graph_gru(tape *t) {
    static const real x[] = {0.4, -0.9, 0.5, 3, 0.2, -1, -0.6, 0.2, -1, 1, 1, 0.3};
    static const real last[] = {0.7, 0.1};
    static const gru_params weights = {SQUARE, STATE, SQUARE_BIAS, GAIN};
    tensor y = op_gru(t, op_input(t, 2, COLS, x), 3, &weights);
    memcpy(y.v + 4, last, sizeof last);
    return y;
}

/* both sides learn; the state of the third row is the caller's */
static tensor graph_gates(tape *t) {
    static const real s[] = {0.4, -0.9, 0.5, 0.3}, last[] = {0.7, 0.1};
    static const int32_t first[] = {0, 1}, other[] = {5, 2};
    tensor x = graph_norm(t);
    tensor y =
        op_gates(t, op_take(t, x, 2, first), op_take(t, x, 2, other), op_input(t, 2, 2, s), 3);
    memcpy(y.v + 4, last, sizeof last);
    return y;
}

static const struct {
    const char *name;
    tensor (*build)(tape *t);
} graphs[] = {{"rows", graph_rows},
              {"linear", graph_linear},
              {"norm", graph_norm},
              {"add", graph_add},
              {"dot", graph_dot},
              {"gelu", graph_gelu},
              {"relu", graph_relu},
              {"linear without bias", graph_plain_linear},
              {"take", graph_take},
              {"mean", graph_mean},
              {"time", graph_time},
              {"slots", graph_slots},
              {"mlp", graph_mlp},
              {"concat of constants", graph_constants},
              {"patches", graph_patches},
              {"patches of constants", graph_constant_patches},
              {"input", graph_input},
              {"prelu", graph_prelu},
              {"code", graph_code},
              {"concat", graph_concat},
              {"dropout", graph_dropout},
              {"attention", graph_attention},
              {"joint attention", graph_joint},
              {"residual", graph_residual},
              {"folded attention", graph_folded},
              {"folded attention, narrow keys", graph_narrow},
              {"attention over parts", graph_over},
              {"attention over constants", graph_over_constants},
              {"linear of pairs", graph_beside},
              {"gru", graph_gru},
              {"gates", graph_gates}};

/* A fixed linear function of the output: its gradient is the output's random weights. */
static double readout(tape *t, tensor (*build)(tape *t), bool backward) {
    tape_reset(t);
    tensor y = build(t);
    assert_int_equal(t->status, FR_OK);
    double sum = 0;
    for (size_t k = 0; k < (size_t)y.rows * (size_t)y.cols; k++) {
        double normal[2];
        rng_normal(key, k, 9, normal);
        sum += normal[0] * y.v[k];
        if (backward) y.g[k] = normal[0];
    }
    if (backward) tape_backward(t);
    return sum;
}

static void test_ops(void **state) {
    (void)state;
    fr_error err;
    params p = {0};
    (void)params_add(&p, ROWS, COLS, INIT_ZERO, 0, "table");
    (void)params_add(&p, 5, COLS, INIT_ZERO, 0, "weight");
    (void)params_add(&p, 0, 5, INIT_ZERO, 0, "bias");
    (void)params_add(&p, 0, COLS, INIT_ONE, 0, "gain");
    (void)params_add(&p, COLS, 1, INIT_ZERO, 0, "column");
    (void)params_add(&p, 0, 1, INIT_FIXED, 0.15, "slope");
    (void)params_add(&p, COLS, COLS, INIT_ZERO, 0, "square");
    (void)params_add(&p, 0, COLS, INIT_ZERO, 0, "square_bias");
    (void)params_add(&p, COLS, COLS, INIT_ZERO, 0, "key");
    (void)params_add(&p, COLS, 5, INIT_ZERO, 0, "narrow");
    (void)params_add(&p, COLS, 5, INIT_ZERO, 0, "narrow_key");
    (void)params_add(&p, COLS, 2, INIT_ZERO, 0, "state");
    (void)params_add(&p, 3, COLS, INIT_ZERO, 0, "thin");
    OK(params_ready(&p, 1, &err));
    scatter(&p, 0.8);
    real *gradient;
    OK(ALLOCATE(gradient, p.count, &err));
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        for (int drop = 0; drop < 2; drop++) {
            tape t = {.params = &p,
                      .gradient = gradient,
                      .seed = 3,
                      .epoch = 2,
                      .dropout = drop * 0.4,
                      .attention_dropout = drop * 0.3};
            memset(gradient, 0, p.count * sizeof *gradient);
            (void)readout(&t, graphs[g].build, true);
            for (size_t k = 0; k < p.count; k++) {
                double h = 1e-5, keep = p.value[k];
                p.value[k] = keep + h;
                double up = readout(&t, graphs[g].build, false);
                p.value[k] = keep - h;
                double down = readout(&t, graphs[g].build, false);
                p.value[k] = keep;
                compare(graphs[g].name, k, gradient[k], (up - down) / (2 * h), 1e-4);
            }
            tape_free(&t);
        }
    }
    for (int drop = 0; drop < 2;
         drop++) { /* folding changes only rounding, with the same dropout bits */
        tape t = {.params = &p,
                  .gradient = gradient,
                  .seed = 3,
                  .dropout = drop * 0.4,
                  .attention_dropout = drop * 0.4};
        double folded = readout(&t, graph_folded, false),
               projected = readout(&t, graph_projected, false);
        assert_true(fabs(folded - projected) < 1e-12);
        assert_true(readout(&t, graph_mlp, false) == readout(&t, graph_mlp_apart, false));
        assert_true(readout(&t, graph_joint, false) == readout(&t, graph_attention, false));
        assert_true(readout(&t, graph_residual, false) == readout(&t, graph_residual_apart, false));
        assert_true(fabs(readout(&t, graph_beside, false) -
                         readout(&t, graph_beside_joined, false)) < 1e-12);
        assert_true(fabs(readout(&t, graph_over, false) -
                         readout(&t, graph_over_projected, false)) < 1e-12);
        assert_true(fabs(readout(&t, graph_over_constants, false) -
                         readout(&t, graph_over_constants_projected, false)) < 1e-12);
        folded = readout(&t, graph_narrow, false);
        projected = readout(&t, graph_narrow_projected, false);
        assert_true(fabs(folded - projected) < 1e-12);
        tape_free(&t);
    }
    free(gradient);
    params_free(&p);
}

/* A recording tape and a plain one compute the same values. */
static void test_recording_changes_nothing(void **state) {
    (void)state;
    fr_error err;
    params p = {0};
    (void)params_add(&p, ROWS, COLS, INIT_NORMAL, 1, "table");
    OK(params_ready(&p, 1, &err));
    real gradient[ROWS * COLS] = {0};
    tape with = {.params = &p, .gradient = gradient}, without = {.params = &p};
    assert_true(readout(&with, graph_gelu, false) == readout(&without, graph_gelu, false));
    assert_null(without.last);
    tape_free(&with);
    tape_free(&without);
    params_free(&p);
}

/* ---- whole models ---- */

/* An event every `step` seconds with `width` features. With shared ids all sources but 9 are among
 * the seven destinations, and a few events are loops. */
static fr_stream *make_stream(const char *directory, double step, int width, bool shared) {
    fr_error err;
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t");
    for (int k = 0; k < width; k++) (void)fprintf(file, ",f%d", k);
    (void)fprintf(file, "\n");
    for (int i = 0; i < 60; i++) { /* source 0 has a long past with repeats, source 9 hardly any */
        uint32_t u = i % 3 ? 0 : rng_below(key, (uint64_t)i, 0, 4);
        (void)fprintf(file, "%u,%u,%g", i == 30 ? 9 : u, rng_below(key, (uint64_t)i, 1, 7),
                      step * i);
        for (int k = 0; k < width; k++)
            (void)fprintf(file, ",%.3f", rng_uniform(key, (uint64_t)i, 20 + (uint32_t)k) - 0.5);
        (void)fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    fr_import how = {.size = sizeof how, .shared_ids = shared};
    OK(fr_stream_open(path, &how, NULL, &stream, &err));
    return stream;
}

/* Something to remember about the pairs of these events. The loss must not treat it as a parameter.
 */
static void fill_memory(model *m, const int32_t *events, int count) {
    fr_error err;
    real *keep;
    OK(ALLOCATE(keep, (size_t)count * (size_t)m->keep, &err));
    for (int i = 0; i < count * m->keep; i++) keep[i] = rng_uniform(key, (uint64_t)i, 13);
    OK(m->kind->memory->learn(m, events, count, keep, &err));
    free(keep);
}

/* The loss of a step by plain forward, without recording. This takes a third of the time, and
 * ranking uses it. */
static double plain_loss(const trainer *t, const int32_t *events, int count) {
    enum { MOST = 28 };
    int32_t from[MOST + 1] = {0}, candidate[2 * MOST];
    for (int i = 0; i < count; i++) {
        from[i + 1] = 2 * (i + 1);
        candidate[2 * i] = t->m->w->destination[events[i]];
        candidate[2 * i + 1] = t->negative[events[i]];
    }
    tape *own = &t->tapes[0];
    tape_reset(own);
    own->gradient = NULL;
    tensor y = t->m->kind->forward(t->m, own, &(model_batch){count, events, from, candidate}, NULL);
    assert_int_equal(own->status, FR_OK);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        real slope[2];
        sum += loss_event(t->settings.objective, y.v[2 * i], y.v[2 * i + 1], &slope[0], &slope[1]);
    }
    return sum / count;
}

/* No past, one entry, a few, many more than are kept. Two shards (28 events), or one. */
static const int32_t events_of_step[] = {0,  1,  2,  3,  4,  30, 41, 53, 26, 27, 28, 29, 31, 32,
                                         33, 34, 35, 36, 37, 38, 39, 40, 42, 43, 44, 45, 46, 47};
enum { ONE_SHARD = 12, TWO_SHARDS = 28 };

/* All elements of small tensors are compared, about this many of the others. */
enum { SOME = 10 };

/* True if it can have an effect. A key's bias is the same for all keys, and time codes in TGN's
 * messages are constants. */
static bool can_learn(const model *m, const param *p) {
    if (p->frozen || strstr(p->name, ".key.bias")) return false;
    return m->settings.embedding != FR_EMBEDDING_IDENTITY || strncmp(p->name, "time.", 5) != 0;
}

/* Checks that every tensor gets a gradient from the step, so that comparing its gradient means
 * something. */
static void check_all_learn(const model *m, const real *gradient, const char *what) {
    for (size_t i = 0; i < m->params.list.count; i++) {
        const param *p = &m->params.list.at[i];
        bool learns = false;
        for (size_t k = 0; k < (size_t)p->rows * (size_t)p->cols; k++)
            learns |= gradient[p->offset + k] != 0;
        if (learns || !can_learn(m, p)) continue;
        print_error("# %s %s: %s has no gradient\n", m->kind->facts.name, what, p->name);
        assert_true(false);
    }
}

static void check_step(const fr_window *w, const char *name, fr_model_settings settings,
                       int objective, int count, const char *what) {
    fr_error err;
    model m;
    trainer t;
    double loss;
    fr_context one = {.threads = 1};
    fr_training training = {.size = sizeof training,
                            .objective = objective,
                            .epochs = 1,
                            .batch_size = 30,
                            .seed = 5,
                            .rate = 0.01};
    OK(model_open(&m, name, &settings, w, 5, &err));
    scatter(&m.params, 0.3);
    OK(trainer_open(&t, &m, &training, &one, &err));
    trainer_begin(&t, 1);
    for (int i = 0; m.kind->memory && i < 20; i += 10) /* something to remember */
        OK(trainer_step(&t, t.order + i, 10, &loss, &err));
    if (m.keep) fill_memory(&m, events_of_step, count);
    OK(trainer_gradient(&t, events_of_step, count, &loss, &err));
    assert_true(fabs(plain_loss(&t, events_of_step, count) - loss) < 1e-12);
    if (objective == FR_OBJECTIVE_BCE) /* bpr does not change if both scores change alike */
        check_all_learn(&m, t.gradients[0], what);
    for (size_t k = 0; k < m.params.count; k++) {
        double h = 1e-5, keep = m.params.value[k];
        const param *of = params_of(&m.params, k);
        if (of->frozen) {
            assert_true(t.gradients[0][k] == 0);
            continue;
        }
        if ((k - of->offset) % ((size_t)(of->rows * of->cols) / SOME + 1)) continue;
        m.params.value[k] = keep + h;
        double up = plain_loss(&t, events_of_step, count);
        m.params.value[k] = keep - h;
        double down = plain_loss(&t, events_of_step, count);
        m.params.value[k] = keep;
        char text[160];
        (void)snprintf(text, sizeof text, "%s %s, %s", name, what, of->name);
        compare(text, k, t.gradients[0][k], (up - down) / (2 * h), 1e-3);
    }
    trainer_close(&t);
    model_close(&m);
}

static void check_model(const fr_window *w, const char *name, fr_model_settings settings,
                        int objective, const char *what) {
    check_step(w, name, settings, objective, ONE_SHARD, what);
}

static void test_craft(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 10, 0, false);
    for (int order = 0; order < 2; order++) {
        fr_protocol p = {.size = sizeof p, .train_share = 0.9, .order = order_text(order)};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        fr_model_settings small = {.size = sizeof small,
                                   .dim = 4,
                                   .heads = 2,
                                   .layers = 2,
                                   .history = 5,
                                   .head_layers = 2};
        fr_model_settings drop = small, linear = small;
        drop.dropout = 0.3, drop.attention_dropout = -1;
        linear.head_layers = 1;
        check_model(w, "craft", small, FR_OBJECTIVE_BCE, "bce");
        check_model(w, "craft-r", small, FR_OBJECTIVE_BPR, "bpr");
        if (order) {
            fr_window_close(w);
            continue;
        }
        check_step(w, "craft", small, FR_OBJECTIVE_BPR, TWO_SHARDS, "two shards, bpr");
        check_model(w, "craft-r", small, FR_OBJECTIVE_BCE, "bce");
        check_model(w, "craft", drop, FR_OBJECTIVE_BCE, "dropout, bce");
        check_model(w, "craft-r", drop, FR_OBJECTIVE_BPR, "dropout, bpr");
        check_model(w, "craft-r", linear, FR_OBJECTIVE_BCE, "linear head");
        fr_model_settings two = linear;
        two.attend = 3, two.empty = FR_EMPTY_PAD;
        two.dropout = 0.1, two.attention_dropout = 0.5;
        check_model(w, "craft-r", two, FR_OBJECTIVE_BCE, "two two, empty slots");
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

static void test_graphmixer(void **state) {
    fr_error err;
    for (int width = 0; width <= 4; width += 4) {
        fr_stream *stream = make_stream(*state, 10, width, false);
        fr_protocol p = {.size = sizeof p,
                         .train_share = 0.9,
                         .order = order_text(width ? FR_ORDER_STRICT : FR_ORDER_STREAM)};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        fr_model_settings small = {.size = sizeof small,
                                   .dim = 4,
                                   .layers = 2,
                                   .tokens = 5,
                                   .time_dim = 3,
                                   .edge_dim = -1,
                                   .head_width = 3};
        fr_model_settings drop = small, real_slots = small;
        drop.dropout = 0.3, drop.attention_dropout = -1;
        real_slots.pool = FR_POOL_REAL;
        check_model(w, "graphmixer", small, FR_OBJECTIVE_BCE, "bce");
        check_model(w, "graphmixer", small, FR_OBJECTIVE_BPR, "bpr");
        check_model(w, "graphmixer", drop, FR_OBJECTIVE_BCE, "dropout, bce");
        check_model(w, "graphmixer", drop, FR_OBJECTIVE_BPR, "dropout, bpr");
        check_model(w, "graphmixer", real_slots, FR_OBJECTIVE_BCE, "pool real");
        fr_model_settings padded = drop;
        padded.padded = true, padded.newest = width ? FR_NEWEST_LAST : FR_NEWEST_FIRST;
        check_model(w, "graphmixer", padded, FR_OBJECTIVE_BCE, "padded");
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

/* Sharing work between shards changes only the order of sums. */
static void check_sharing(const fr_window *w, fr_model_settings settings) {
    fr_error err;
    fr_context two = {.threads = 2};
    fr_training training = {
        .size = sizeof training, .epochs = 1, .batch_size = 28, .seed = 5, .rate = 0.01};
    real *gradient[2];
    double loss[2], largest = 0;
    size_t count = 0;
    for (int apart = 0; apart < 2; apart++) {
        model m;
        trainer t;
        OK(model_open(&m, "tgn", &settings, w, 5, &err));
        model_kind alone = *m.kind;
        alone.sharing = NULL;
        assert_non_null(m.kind->sharing);
        scatter(&m.params, 0.3);
        if (apart) m.kind = &alone;
        OK(trainer_open(&t, &m, &training, &two, &err));
        trainer_begin(&t, 1);
        fill_memory(&m, events_of_step, TWO_SHARDS);
        OK(trainer_gradient(&t, events_of_step, TWO_SHARDS, &loss[apart], &err));
        count = m.params.count;
        OK(ALLOCATE(gradient[apart], count, &err));
        memcpy(gradient[apart], t.gradients[0], count * sizeof **gradient);
        trainer_close(&t);
        model_close(&m);
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-14);
    for (size_t k = 0; k < count; k++) {
        assert_true(fabs(gradient[0][k] - gradient[1][k]) < 1e-12);
        largest = fmax(largest, fabs(gradient[0][k]));
    }
    assert_true(largest > 1e-3);
    free(gradient[0]);
    free(gradient[1]);
}

static void test_tgn(void **state) {
    fr_error err;
    for (int features = 0; features < 2; features++) {
        fr_stream *stream = make_stream(*state, 0.1, 4 * features, false);
        fr_protocol p = {.size = sizeof p, .train_share = 0.9};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        fr_model_settings small = {.size = sizeof small,
                                   .dim = 4,
                                   .heads = 2,
                                   .time_dim = 4,
                                   .edge_dim = -1,
                                   .neighbors = 3};
        fr_model_settings identity = small, drop = small, trained = small;
        identity.embedding = FR_EMBEDDING_IDENTITY;
        drop.dropout = 0.3, drop.attention_dropout = -1;
        trained.time_trainable = true;
        check_model(w, "tgn", small, features ? FR_OBJECTIVE_BPR : FR_OBJECTIVE_BCE, "plain");
        check_model(w, "tgn", trained, features ? FR_OBJECTIVE_BCE : FR_OBJECTIVE_BPR, "time");
        check_model(w, "tgn", drop, FR_OBJECTIVE_BCE, "dropout");
        identity.time_trainable = features;
        check_model(w, "tgn", identity, FR_OBJECTIVE_BCE, "identity, bce");
        check_model(w, "tgn", identity, FR_OBJECTIVE_BPR, "identity, bpr");
        check_sharing(w, trained);
        check_sharing(w, drop);
        check_sharing(w, identity);
        identity.message = FR_MESSAGE_MLP, identity.clock = FR_CLOCK_FILE;
        check_model(w, "tgn", identity, FR_OBJECTIVE_BCE, "messages through layers");
        check_sharing(w, identity);
        drop.identities = identity.identities = true;
        check_model(w, "tgn", drop, FR_OBJECTIVE_BCE, "identities");
        check_model(w, "tgn", identity, FR_OBJECTIVE_BPR, "identity, identities");
        check_sharing(w, drop);
        check_sharing(w, identity);
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

static void test_dygformer(void **state) {
    fr_error err;
    for (int width = 0; width <= 4; width += 4) {
        fr_stream *stream = make_stream(*state, 0.1, width, false);
        fr_protocol p = {.size = sizeof p,
                         .train_share = 0.9,
                         .order = order_text(width ? FR_ORDER_STRICT : FR_ORDER_STREAM)};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        /* histories of 7 tokens in patches of 3 */
        fr_model_settings small = {.size = sizeof small,
                                   .dim = 8,
                                   .heads = 2,
                                   .layers = 2,
                                   .history = 7,
                                   .patch = 3,
                                   .time_dim = 3,
                                   .edge_dim = -1,
                                   .gamma = 0.9};
        fr_model_settings drop = small, time = small, one = small;
        drop.dropout = 0.3, drop.attention_dropout = -1;
        time.time_trainable = true;
        drop.layers = time.layers = one.layers = 1;
        one.identities = true;
        one.patch = 1, one.heads = 1;
        check_model(w, "dygformer", small, FR_OBJECTIVE_BCE, "bce");
        check_model(w, "dygformer-lha", time, FR_OBJECTIVE_BCE, "time, bce");
        if (width) {
            check_model(w, "dygformer", time, FR_OBJECTIVE_BPR, "time, bpr");
            check_model(w, "dygformer-lha", drop, FR_OBJECTIVE_BCE, "dropout, bce");
            drop.identities = true;
            check_model(w, "dygformer-lha", drop, FR_OBJECTIVE_BCE, "identities");
        } else {
            check_model(w, "dygformer-lha", small, FR_OBJECTIVE_BPR, "bpr");
            check_model(w, "dygformer", drop, FR_OBJECTIVE_BCE, "dropout, bce");
            check_model(w, "dygformer", one, FR_OBJECTIVE_BCE, "patches of one, identities");
        }
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

/* One space of nodes: a tensor of identities is read from both sides. */
static void test_shared_ids(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 0.1, 4, true);
    fr_protocol p = {.size = sizeof p, .train_share = 0.9};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    assert_true(w->source_node && w->nodes < w->sources + w->destinations);
    fr_model_settings small = {.size = sizeof small,
                               .dim = 12,
                               .heads = 3,
                               .layers = 1,
                               .history = 7,
                               .head_layers = 2,
                               .patch = 3,
                               .time_dim = 3,
                               .edge_dim = -1,
                               .neighbors = 3,
                               .tokens = 5,
                               .head_width = 3,
                               .gamma = 0.9};
    const fr_model *facts;
    for (int k = 0; (facts = fr_model_at(k)); k++) {
        fr_model_settings own = small;
        if (!strncmp(facts->name, "patch", 5)) own.time_dim = 4; /* sine and cosine */
        check_model(w, facts->name, own, FR_OBJECTIVE_BCE, "shared ids");
    }
    check_sharing(w, small);
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_patch(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 0.1, 0, false);
    for (int order = 0; order < 2; order++) {
        fr_protocol p = {.size = sizeof p, .train_share = 0.9, .order = order_text(order)};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        /* pasts of up to 5 events in patches of 2 */
        fr_model_settings small = {.size = sizeof small,
                                   .dim = 4,
                                   .heads = 2,
                                   .layers = 1 + order,
                                   .history = 5,
                                   .patch = 2,
                                   .time_dim = 4,
                                   .gamma = 0.9};
        fr_model_settings drop = small;
        drop.dropout = 0.3, drop.attention_dropout = -1;
        check_model(w, "patch", small, FR_OBJECTIVE_BCE, "bce");
        check_model(w, "patch-lha", small, FR_OBJECTIVE_BPR, "bpr");
        check_model(w, "patch", drop, FR_OBJECTIVE_BPR, "dropout, bpr");
        check_model(w, "patch-lha", drop, FR_OBJECTIVE_BCE, "dropout, bce");
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),      cmocka_unit_test(test_recording_changes_nothing),
        WITH_DIRECTORY(test_craft),      WITH_DIRECTORY(test_graphmixer),
        WITH_DIRECTORY(test_tgn),        WITH_DIRECTORY(test_dygformer),
        WITH_DIRECTORY(test_shared_ids), WITH_DIRECTORY(test_patch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
