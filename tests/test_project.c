/* test_project.c - removing a direction from a representation (PROTOCOL 10).
 *
 * The changed head is compared with vectors changed one by one, through a head written by hand.
 * Also: the same bits with any number of threads; what controls may depend on; vectors of a model
 * that remembers do not depend on later events; replaying twice; a stream in which only membership
 * can be learned; vectors from files; wrong input is refused and leaves no files. */
#define _GNU_SOURCE
#include "base/npy.h"
#include "base/rng.h"
#include "models/checkpoint.h"
#include "rank/learned.h"
#include "rank/project.h"
#include "testing.h"

#include <math.h>
#include <sys/stat.h>

static const char *const models[] = {"craft",         "craft-r", "dygformer",
                                     "dygformer-lha", "tgn",     "graphmixer"};
enum { MODELS = sizeof models / sizeof *models, EVENTS = 400 };

typedef struct fixture {
    fr_stream *stream;
    fr_window *w;
} fixture;

static void open_csv(fixture *f, const char *path, const char *catalog) {
    fr_error err;
    char word[4096];
    (void)snprintf(word, sizeof word, "%s", catalog);
    fr_protocol p = {.size = sizeof p, .train_share = 0.8, .catalog = word};
    OK(fr_stream_open(path, NULL, NULL, &f->stream, &err));
    OK(fr_window_open(f->stream, &p, NULL, &f->w, &err));
}

/* The first 24 events have all sources and destinations; events from `changed` on are others. */
static fixture open_changed(const char *directory, int changed) {
    rng_key key = {.seed = 8, .purpose = RNG_TEST};
    fixture f;
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < EVENTS; i++) {
        uint64_t e = (uint64_t)i + (i >= changed ? 7777 : 0);
        uint32_t u = i < 24 ? (uint32_t)i % 9 : rng_below(key, e, 0, 9);
        uint32_t v = i < 24                    ? (uint32_t)i
                     : rng_below(key, e, 1, 3) ? 2 * u
                                               : rng_below(key, e, 2, 24);
        (void)fprintf(file, "%u,%u,%d\n", u, v, 60 * (i / 2));
    }
    assert_int_equal(fclose(file), 0);
    open_csv(&f, path, "fixed");
    return f;
}

static fixture open_fixture(const char *directory) { return open_changed(directory, EVENTS); }

static void close_fixture(fixture *f) {
    fr_window_close(f->w);
    fr_stream_close(f->stream);
}

static fr_model_settings small(int head_layers) {
    fr_error err;
    fr_model_settings s;
    OK(fr_options_defaults(fr_model_options, &s, &err));
    s.dim = 16;
    s.history = 12;
    s.head_layers = head_layers;
    return s;
}

/* A model whose parameters are as far from their start as training moves them, at the beginning of
 * the stream. */
static void open_model(model *m, const fixture *f, const char *name, int head_layers) {
    fr_error err;
    rng_key key = {.seed = 9, .purpose = RNG_TEST};
    fr_model_settings s = small(head_layers);
    OK(model_open(m, name, &s, f->w, 7, &err));
    for (size_t k = 0; k < m->params.count; k++)
        if (!params_of(&m->params, k)->frozen)
            m->params.value[k] += (real)(0.4 * (rng_uniform(key, k, 0) - 0.5));
    if (m->kind->memory) OK(m->kind->memory->replay(m, 0, NULL, &err));
}

/* Every destination at some events, through plain forward: scores [rows] and z [rows, width], which
 * the caller frees. Returns the rows. */
static int look(const model *m, int32_t from, int32_t to, int32_t step, double **scores,
                double **z) {
    int n = m->w->destinations, rows = 0, width = project_width(m);
    size_t room = (size_t)(to - from) * (size_t)n;
    *scores = malloc(room * sizeof **scores);
    *z = malloc(room * (size_t)width * sizeof **z);
    tape t = {.params = &m->params};
    int32_t start[] = {0, n}, candidate[64];
    assert_true(*scores && *z && n <= 64);
    for (int32_t v = 0; v < n; v++) candidate[v] = v;
    for (int32_t e = from; e < to; e += step, rows += n) {
        model_inner inner = {0};
        tape_reset(&t);
        tensor y = m->kind->forward(m, &t, &(model_batch){1, &e, start, candidate}, &inner);
        assert_int_equal(t.status, FR_OK);
        assert_int_equal(inner.z.cols, width);
        for (int k = 0; k < n; k++) (*scores)[rows + k] = (double)y.v[k];
        for (int k = 0; k < n * width; k++)
            (*z)[(size_t)rows * (size_t)width + (size_t)k] = (double)inner.z.v[k];
    }
    tape_free(&t);
    return rows;
}

static const real *value_of(const model *m, const char *name) {
    for (size_t i = 0; i < m->params.list.count; i++)
        if (!strcmp(m->params.list.at[i].name, name))
            return m->params.value + m->params.list.at[i].offset;
    return NULL;
}

/* The head of any model in double, from one z: W z + b, then a second layer if there is one. The
 * contribution of the memory of DyGFormer+LHA is not included. */
static double head_of(const model *m, const double *z) {
    int weights[MODEL_HEADS], parts = m->kind->head(m, weights);
    int rows = m->params.list.at[weights[0]].rows;
    const real *slope = value_of(m, "head.prelu"), *second = value_of(m, "head.fc2.weight"),
               *bias = value_of(m, "head.fc2.bias");
    if (!second) { /* GraphMixer */
        second = value_of(m, "head.out.weight");
        bias = value_of(m, "head.out.bias");
    }
    double sum = (double)*bias;
    for (int r = 0; r < rows; r++) {
        double hidden = 0;
        const double *at = z;
        for (int k = 0; k < parts; k++) {
            const param *p = &m->params.list.at[weights[k]];
            const real *row = m->params.value + p->offset + (size_t)r * (size_t)p->cols;
            for (int c = 0; c < p->cols; c++) hidden += (double)row[c] * *at++;
            hidden += (double)m->params.value[m->params.list.at[weights[k] + 1].offset + (size_t)r];
        }
        if (m->params.value + m->params.list.at[weights[0]].offset == second) return hidden;
        if (hidden < 0) hidden *= slope ? (double)*slope : 0;
        sum += (double)second[r] * hidden;
    }
    return sum;
}

static void check_removal(const fixture *f, const char *name, int head_layers) {
    fr_error err;
    model m;
    double *direction, *base, *z, *after, *unused;
    bool remembers_pairs = !strcmp(name, "dygformer-lha");
    open_model(&m, f, name, head_layers);
    size_t width = (size_t)project_width(&m), bytes = m.params.count * sizeof(real);
    int rows = look(&m, 30, EVENTS, 37, &base, &z);
    OK(project_direction(&m, FR_REMOVE_MEMBERSHIP, 7, NULL, &direction, &err));
    double largest = 0, moved = 0, square;
    OK(project_square(direction, (int)width, &square, &err));
    double *expected = malloc((size_t)rows * sizeof *expected);
    assert_non_null(expected);
    for (int k = 0; k < rows; k++) { /* z' one by one, through the old head */
        double *row = z + (size_t)k * width, along = 0;
        double memory = base[k] - head_of(&m, row);
        if (!remembers_pairs) assert_true(fabs(memory) < 1e-5);
        for (size_t c = 0; c < width; c++) along += row[c] * direction[c];
        for (size_t c = 0; c < width; c++) row[c] -= direction[c] * along / square;
        expected[k] = head_of(&m, row) + memory;
        largest = fmax(largest, fabs(expected[k]));
    }
    OK(project_remove(&m, direction, &err));
    assert_int_equal(look(&m, 30, EVENTS, 37, &after, &unused), rows);
    for (int k = 0; k < rows; k++) {
        assert_true(fabs(after[k] - expected[k]) <= 1e-5 * fmax(1, largest));
        moved = fmax(moved, fabs(after[k] - base[k]));
    }
    assert_true(moved > 1e-3); /* the change is not empty */
    /* once more: only rounding is left to remove */
    real *once = malloc(bytes);
    assert_non_null(once);
    memcpy(once, m.params.value, bytes);
    OK(project_remove(&m, direction, &err));
    for (size_t k = 0; k < m.params.count; k++)
        assert_true(fabs((double)(once[k] - m.params.value[k])) < 1e-6);
    free(once);
    free(expected);
    free(direction);
    free(base);
    free(z);
    free(after);
    free(unused);
    model_close(&m);
}

static void test_removal_is_that_of_vectors(void **state) {
    fixture f = open_fixture(*state);
    for (int k = 0; k < MODELS; k++) check_removal(&f, models[k], 2);
    check_removal(&f, "craft-r", 1);
    check_removal(&f, "craft", 1);
    close_fixture(&f);
}

static void test_threads(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    static const int threads[] = {1, 2, 5};
    for (int k = 0; k < MODELS; k++) {
        model m;
        open_model(&m, &f, models[k], 2);
        size_t bytes = (size_t)project_width(&m) * sizeof(double);
        for (int what = FR_REMOVE_MEMBERSHIP; what < FR_REMOVALS; what++) {
            double *first = NULL, *direction;
            for (int i = 0; i < 3; i++) {
                fr_context context = {.threads = threads[i]};
                OK(project_direction(&m, what, 7, &context, &direction, &err));
                if (first) assert_memory_equal(first, direction, bytes);
                if (first) free(direction);
                if (!first) first = direction;
            }
            free(first);
        }
        model_close(&m);
    }
    close_fixture(&f);
}

/* ---- controls ---- */

/* z of pair k is 1 at place k: a direction shows the label of every pair. */
static fr_status read_marks(void *from, int64_t first, int64_t count, int worker, double *z,
                            fr_error *err) {
    const project_pairs *p = from;
    (void)worker;
    (void)err;
    memset(z, 0, (size_t)(count * p->width) * sizeof *z);
    for (int64_t k = 0; k < count; k++) z[k * p->width + first + k] = 1;
    return FR_OK;
}

static void test_controls(void **state) {
    (void)state;
    fr_error err;
    enum { PAIRS = 90, MET = 25 };
    uint8_t label[PAIRS] = {0};
    double direction[4][PAIRS];
    for (int k = 0; k < MET; k++) label[2 * k + 1] = 1;
    project_pairs p = {"marks", PAIRS, PAIRS, 32, label, read_marks, &p};
    OK(project_find(&p, FR_REMOVE_MEMBERSHIP, 7, NULL, direction[0], &err));
    for (int k = 0; k < PAIRS; k++)
        assert_true(direction[0][k] == (label[k] ? 1.0 / MET : -1.0 / (PAIRS - MET)));
    static const int64_t seeds[] = {0, 7, 7, 8};
    for (int i = 1; i < 4; i++) { /* shuffled: as many of each label, elsewhere, by the seed */
        int met = 0, same = 0;
        OK(project_find(&p, FR_REMOVE_SHUFFLED, seeds[i], NULL, direction[i], &err));
        for (int k = 0; k < PAIRS; k++) {
            assert_true(direction[i][k] == 1.0 / MET || direction[i][k] == -1.0 / (PAIRS - MET));
            met += direction[i][k] > 0;
            same += direction[i][k] > 0 && label[k];
        }
        assert_int_equal(met, MET);
        assert_in_range(same, 1, MET - 5); /* about 7 by chance */
    }
    assert_memory_equal(direction[1], direction[2], sizeof *direction);
    assert_memory_not_equal(direction[1], direction[3], sizeof *direction);
    for (int k = 0; k < MET; k++) assert_int_equal(label[2 * k + 1], 1); /* the caller's stay */
    for (int i = 1; i < 4; i++)
        OK(project_find(&p, FR_REMOVE_RANDOM, seeds[i], NULL, direction[i], &err));
    assert_memory_equal(direction[1], direction[2], sizeof *direction);
    assert_memory_not_equal(direction[1], direction[3], sizeof *direction);
    double sum = 0, squares = 0;
    for (int k = 0; k < PAIRS; k++) {
        sum += direction[1][k];
        squares += direction[1][k] * direction[1][k];
    }
    assert_true(fabs(sum / PAIRS) < 0.4 && fabs(squares / PAIRS - 1) < 0.5);
    memset(label, 1, PAIRS); /* one kind of labels: no membership, but a random direction */
    FAILS(project_find(&p, FR_REMOVE_SHUFFLED, 7, NULL, direction[0], &err), FR_EINPUT,
          "marks: 90 of 90 pairs have met before");
    OK(project_find(&p, FR_REMOVE_RANDOM, 7, NULL, direction[0], &err));
    assert_memory_equal(direction[0], direction[1], sizeof *direction);
    memset(label, 0, PAIRS);
    FAILS(project_find(&p, FR_REMOVE_MEMBERSHIP, 7, NULL, direction[0], &err), FR_EINPUT,
          "0 of 90 pairs");
}

/* ---- models that remember ---- */

/* Replayed from 0, the vectors of an event depend only on earlier events. */
static void test_vectors_are_of_their_event(void **state) {
    fr_error err;
    enum { CHANGED = 150 };
    static const char *const remember[] = {"tgn", "dygformer-lha"};
    for (int k = 0; k < 2; k++) {
        fixture f = open_fixture(*state);
        model m;
        double *scores[3], *z[3];
        open_model(&m, &f, remember[k], 2);
        int rows = look(&m, CHANGED - 8, CHANGED + 1, 1, &scores[0], &z[0]);
        /* the memory at the end of training gives other vectors at the same events */
        OK(m.kind->memory->replay(&m, f.w->train, NULL, &err));
        (void)look(&m, CHANGED - 8, CHANGED + 1, 1, &scores[1], &z[1]);
        assert_memory_not_equal(scores[0], scores[1], (size_t)rows * sizeof(double));
        size_t width = (size_t)project_width(&m);
        model_close(&m);
        close_fixture(&f);
        f = open_changed(*state, CHANGED); /* another future, and another present */
        open_model(&m, &f, remember[k], 2);
        assert_int_equal(look(&m, CHANGED - 8, CHANGED, 1, &scores[2], &z[2]),
                         rows - f.w->destinations);
        rows -= f.w->destinations;
        assert_memory_equal(scores[0], scores[2], (size_t)rows * sizeof(double));
        assert_memory_equal(z[0], z[2], (size_t)rows * width * sizeof(double));
        for (int i = 0; i < 3; i++) {
            free(scores[i]);
            free(z[i]);
        }
        model_close(&m);
        close_fixture(&f);
    }
}

static void test_replay_twice(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    static const char *const remember[] = {"tgn", "dygformer-lha"};
    for (int k = 0; k < 2; k++) {
        model m;
        double *scores[2], *z[2];
        open_model(&m, &f, remember[k], 2); /* once from 0 */
        int rows = look(&m, 100, EVENTS, 50, &scores[0], &z[0]);
        OK(m.kind->memory->replay(&m, f.w->train, NULL, &err));
        OK(m.kind->memory->replay(&m, 0, NULL, &err));
        OK(m.kind->memory->replay(&m, 0, NULL, &err));
        assert_int_equal(look(&m, 100, EVENTS, 50, &scores[1], &z[1]), rows);
        assert_memory_equal(scores[0], scores[1], (size_t)rows * sizeof(double));
        for (int i = 0; i < 2; i++) {
            free(scores[i]);
            free(z[i]);
        }
        model_close(&m);
    }
    close_fixture(&f);
}

/* ---- scorers ---- */

static char *train(const fixture *f, const char *directory, const char *name,
                   fr_model_settings settings, int64_t seed) {
    fr_error err;
    char *run = in_directory(directory, name);
    fr_training t = {.size = sizeof t,
                     .epochs = 1,
                     .batch_size = 200,
                     .seed = seed,
                     .rate = 0.001,
                     .force = true};
    directory_remove(run);
    OK(fr_train_run(f->w, name, &settings, &t, run, NULL, &err));
    return in_directory(run, "model.safetensors");
}

static float *all_scores(const fr_scorer *scorer, const fr_window *w) {
    fr_error err;
    size_t n = (size_t)w->destinations;
    float *scores = malloc((size_t)(w->events - w->train) * n * sizeof *scores);
    assert_non_null(scores);
    for (int32_t e = w->train; e < w->events; e++) {
        fr_query query = {e, w->source[e], window_time(w, e)};
        OK(fr_scorer_score(scorer, &query, 1, 0, scores + (size_t)(e - w->train) * n, &err));
    }
    return scores;
}

/* The same step by step: the direction comes from a model that has seen every training event,
 * starting with an empty memory. It is removed from a model that continues from the end of
 * training. */
static float *scores_by_hand(const fixture *f, const char *path) {
    fr_error err;
    model m, seen;
    fr_scorer_definition is;
    double *direction;
    OK(checkpoint_load(&m, path, f->w, &err));
    OK(checkpoint_load(&seen, path, f->w, &err));
    const model_memory *memory = m.kind->memory;
    if (memory) memory->reset(&seen);
    if (memory) OK(memory->replay(&seen, 0, NULL, &err));
    OK(project_direction(&seen, FR_REMOVE_MEMBERSHIP, 7, NULL, &direction, &err));
    OK(project_remove(&m, direction, &err));
    if (memory) OK(memory->replay(&m, f->w->train, NULL, &err));
    OK(model_plain(&m, 1, &is, &err));
    fr_scorer *plain = scorer_of(f->w, is);
    float *scores = all_scores(plain, f->w);
    fr_scorer_close(plain);
    model_close(&m);
    model_close(&seen);
    free(direction);
    return scores;
}

/* Removing nothing gives the scorer itself, to the bit; removing a direction twice equals removing
 * it once; the fast path uses the changed head. */
static void test_scorers(void **state) {
    fr_error err;
    fixture f = open_fixture(*state);
    fr_context one = {.threads = 1};
    size_t count = (size_t)(f.w->events - f.w->train) * (size_t)f.w->destinations;
    for (int k = 0; k < MODELS; k++) {
        fr_model_settings settings = small(2);
        settings.history = 320; /* not all models have it: the default */
        const char *path = train(&f, *state, models[k], settings, 7);
        fr_scorer *plain, *scorer;
        fr_scorer_definition is;
        OK(fr_scorer_open(path, f.w, 7, &one, &scorer, &err));
        float *base = all_scores(scorer, f.w);
        OK(fr_scorer_project(scorer, FR_REMOVE_NOTHING, 7, &one, &err));
        float *nothing = all_scores(scorer, f.w);
        assert_memory_equal(base, nothing, count * sizeof *base);
        OK(fr_scorer_project(scorer, FR_REMOVE_MEMBERSHIP, 7, &one, &err));
        float *once = all_scores(scorer, f.w);
        assert_memory_not_equal(base, once, count * sizeof *base);
        OK(learned_plain(scorer, 1, &is, &err));
        plain = scorer_of(f.w, is);
        float *slow = all_scores(plain, f.w);
        fr_scorer_close(plain);
        float *by_hand = scores_by_hand(&f, path);
        assert_memory_equal(slow, by_hand, count * sizeof *slow);
        OK(fr_scorer_project(scorer, FR_REMOVE_MEMBERSHIP, 7, &one, &err));
        float *twice = all_scores(scorer, f.w);
        for (size_t i = 0; i < count; i++) {
            assert_true(fabsf(once[i] - slow[i]) < 1e-5f);
            assert_true(fabsf(once[i] - twice[i]) < 1e-5f);
        }
        fr_scorer_close(scorer);
        free(base);
        free(nothing);
        free(once);
        free(slow);
        free(by_hand);
        free(twice);
    }
    fr_scorer *scorer;
    OK(fr_scorer_open("baseline:recency", f.w, 7, &one, &scorer, &err));
    FAILS(fr_scorer_project(scorer, FR_REMOVE_MEMBERSHIP, 7, &one, &err), FR_EUSAGE,
          "baseline:recency is not a trained model: it has no representation");
    fr_scorer_close(scorer);
    close_fixture(&f);
}

/* Streams in which no pair meets twice, and a catalog without negatives. */
static void test_nothing_to_remove(void **state) {
    fr_error err;
    fixture f;
    fr_scorer *scorer;
    char *path = in_directory(*state, "once.csv"), *list = in_directory(*state, "one.txt");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < 100; i++) (void)fprintf(file, "%d,%d,%d\n", i, i % 10, i);
    assert_int_equal(fclose(file), 0);
    open_csv(&f, path, "fixed");
    const char *checkpoint = train(&f, *state, "craft-r", small(2), 7);
    OK(fr_scorer_open(checkpoint, f.w, 7, NULL, &scorer, &err));
    FAILS(fr_scorer_project(scorer, FR_REMOVE_MEMBERSHIP, 7, NULL, &err), FR_EINPUT,
          "training pairs: 0 of 160 pairs have met before, expected some and not all");
    OK(fr_scorer_project(scorer, FR_REMOVE_RANDOM, 7, NULL, &err));
    fr_scorer_close(scorer);
    close_fixture(&f);
    put_text(list, "3\n");
    open_csv(&f, path, list);
    OK(fr_scorer_open(checkpoint, f.w, 7, NULL, &scorer, &err));
    FAILS(fr_scorer_project(scorer, FR_REMOVE_MEMBERSHIP, 7, NULL, &err), FR_EINPUT,
          "a catalog of 1 destinations, expected at least 2");
    fr_scorer_close(scorer);
    close_fixture(&f);
}

/* ---- only membership can be learned ---- */

static double mrr_without(const fixture *f, const char *path, int removal, int64_t seed) {
    fr_error err;
    fr_scorer *scorer;
    fr_rank_settings settings;
    fr_ranking *r;
    fr_metric_value mrr;
    const char *name = "mrr";
    OK(fr_options_defaults(fr_rank_options, &settings, &err));
    OK(fr_scorer_open(path, f->w, 7, NULL, &scorer, &err));
    OK(fr_scorer_project(scorer, removal, seed, NULL, &err));
    OK(fr_rank_run(scorer, &settings, NULL, &r, &err));
    fr_ranking_facts facts = fr_ranking_get(r);
    OK(fr_metrics_compute(facts.records, facts.count, facts.oov, &name, 1, &mrr, &err));
    fr_ranking_close(r);
    fr_scorer_close(scorer);
    fr_options_free(fr_rank_options, &settings);
    return mrr.value;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A source meets one of its own destinations again, any of them, or one that anybody may meet: only
 * membership can be learned. One epoch, because a model trained for long has it in more than one
 * direction, and removing one is then not enough. A direction of shuffled labels is a draw with the
 * spread of z, here mostly membership, so a single draw may cost much; the median counts
 * (docs/metrics.md). */
static void test_membership_is_all(void **state) {
    enum { SOURCES = 40, MOST = 6, DESTINATIONS = 120, STREAM = 2000, DRAWS = 9 };
    rng_key key = {.seed = 3, .purpose = RNG_TEST};
    uint32_t own[SOURCES][MOST], count[SOURCES] = {0};
    fixture f;
    char *path = in_directory(*state, "habits.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < STREAM; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t u = rng_below(key, e, 0, SOURCES), *n = &count[u];
        if (!*n || (*n < MOST && !rng_below(key, e, 1, 5)))
            own[u][(*n)++] = rng_below(key, e, 2, DESTINATIONS);
        uint32_t which = rng_below(key, e, 3, *n);
        (void)fprintf(file, "%u,%u,%d\n", u, own[u][which], i);
    }
    assert_int_equal(fclose(file), 0);
    open_csv(&f, path, "fixed");
    fr_model_settings settings = small(2);
    settings.history = 40;
    for (int64_t seed = 7; seed <= (SANITIZED ? 7 : 17); seed += 10) {
        const char *checkpoint = train(&f, *state, "craft-r", settings, seed);
        double base = mrr_without(&f, checkpoint, FR_REMOVE_NOTHING, 7), shuffled[DRAWS];
        double membership = mrr_without(&f, checkpoint, FR_REMOVE_MEMBERSHIP, 7);
        assert_true(base > 0.3); /* any of six: 0.41 */
        assert_true(membership < 0.25 * base);
        assert_true(mrr_without(&f, checkpoint, FR_REMOVE_RANDOM, 7) > 0.9 * base);
        for (int k = 0; k < DRAWS; k++)
            shuffled[k] = mrr_without(&f, checkpoint, FR_REMOVE_SHUFFLED, k);
        qsort(shuffled, DRAWS, sizeof *shuffled, by_size);
        print_message("# MRR %.4f, without membership %.4f, shuffled %.4f to %.4f, median %.4f\n",
                      base, membership, shuffled[0], shuffled[DRAWS - 1], shuffled[DRAWS / 2]);
        assert_true(shuffled[DRAWS / 2] > 0.7 * base && shuffled[0] > 2 * membership);
    }
    close_fixture(&f);
}

/* ---- vectors from files ---- */

static char *put_array(const char *directory, const char *name, char kind, int size, int64_t width,
                       const void *rows, int64_t count) {
    fr_error err;
    npy_writer w;
    char *path = in_directory(directory, name);
    OK(npy_writer_open(&w, path, kind, size, width, &err));
    OK(npy_writer_put(&w, rows, count, &err));
    OK(npy_writer_commit(&w, &err));
    return path;
}

enum { PAIRS = 1300, WIDTH = 6, ROWS = 3 };

typedef struct vectors {
    float z[PAIRS][WIDTH];
    uint8_t label[PAIRS];
    double head[ROWS][WIDTH];
    char *z_path, *label_path, *head_path;
} vectors;

/* Normal numbers; pairs that have met lie further along the first two columns. */
static void make_vectors(vectors *x, const char *directory) {
    rng_key key = {.seed = 2, .purpose = RNG_TEST};
    double normal[2];
    for (int k = 0; k < PAIRS; k++) {
        x->label[k] = rng_below(key, (uint64_t)k, 9, 4) == 0;
        for (uint32_t c = 0; c < WIDTH; c++) {
            rng_normal(key, (uint64_t)k, c, normal);
            x->z[k][c] = (float)(normal[0] + (c < 2 && x->label[k] ? 1.0 : 0.0));
        }
    }
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < WIDTH; c++) x->head[r][c] = rng_uniform(key, 5000 + r, c) - 0.5;
    x->z_path = put_array(directory, "z.npy", 'f', 4, WIDTH, x->z, PAIRS);
    x->label_path = put_array(directory, "m.npy", 'b', 1, 0, x->label, PAIRS);
    x->head_path = put_array(directory, "w.npy", 'f', 8, WIDTH, x->head, ROWS);
}

/* The probability that a pair that has met has the larger value, over all pairs of pairs. */
static double auc_by_pairs(const vectors *x, const double *value) {
    double sum = 0, count = 0;
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; x->label[i] && k < PAIRS; k++) {
            if (x->label[k]) continue;
            sum += value[i] > value[k] ? 1 : value[i] == value[k] ? 0.5 : 0;
            count++;
        }
    return sum / count;
}

static void test_files(void **state) {
    fr_error err;
    static vectors x;
    fr_projection p, again;
    make_vectors(&x, *state);
    char *out = in_directory(*state, "out");
    OK(fr_project_files(x.z_path, x.label_path, x.head_path, out, false, 7, NULL, &p, &err));
    int met = 0;
    double a[WIDTH] = {0}, mean[2][WIDTH] = {{0}}, base[PAIRS], left[PAIRS];
    for (int k = 0; k < PAIRS; k++) {
        met += x.label[k];
        for (int c = 0; c < WIDTH; c++) mean[x.label[k]][c] += (double)x.z[k][c];
    }
    for (int c = 0; c < WIDTH; c++) a[c] = mean[1][c] / met - mean[0][c] / (PAIRS - met);
    assert_true(p.pairs == PAIRS && p.met == met && p.width == WIDTH && p.rows == ROWS);
    for (int k = 0; k < PAIRS; k++) {
        base[k] = 0;
        for (int c = 0; c < WIDTH; c++) base[k] += a[c] * (double)x.z[k][c];
    }
    assert_true(fabs(p.direction[FR_REMOVE_NOTHING].membership_auc - auc_by_pairs(&x, base)) <
                1e-5);
    assert_true(isnan(p.direction[FR_REMOVE_NOTHING].length));
    for (int what = FR_REMOVE_MEMBERSHIP; what < FR_REMOVALS; what++) {
        npy direction, head;
        char name[64];
        (void)snprintf(name, sizeof name, "direction-%s.npy", fr_removal_names[what]);
        OK(npy_open_as(in_directory(out, name), 'f', 8, 1, &direction, &err));
        (void)snprintf(name, sizeof name, "head-%s.npy", fr_removal_names[what]);
        OK(npy_open_as(in_directory(out, name), 'f', 8, 2, &head, &err));
        const double *d = direction.data, *changed = head.data;
        assert_true(direction.shape[0] == WIDTH);
        assert_true(head.shape[0] == ROWS && head.shape[1] == WIDTH);
        double square = 0, own[PAIRS];
        for (int c = 0; c < WIDTH; c++) square += d[c] * d[c];
        if (what == FR_REMOVE_MEMBERSHIP)
            for (int c = 0; c < WIDTH; c++) assert_true(fabs(d[c] - a[c]) < 1e-12);
        assert_true(fabs(p.direction[what].length - sqrt(square)) < 1e-12);
        for (int k = 0; k < PAIRS; k++) { /* W' z is W z' */
            double along = 0, without[WIDTH];
            for (int c = 0; c < WIDTH; c++) along += d[c] * (double)x.z[k][c];
            own[k] = along;
            left[k] = 0;
            for (int c = 0; c < WIDTH; c++) {
                without[c] = (double)x.z[k][c] - d[c] * along / square;
                left[k] += a[c] * without[c];
            }
            for (int r = 0; r < ROWS; r++) {
                double by_head = 0, by_vector = 0;
                for (int c = 0; c < WIDTH; c++) {
                    by_head += changed[r * WIDTH + c] * (double)x.z[k][c];
                    by_vector += x.head[r][c] * without[c];
                }
                assert_true(fabs(by_head - by_vector) < 1e-12);
            }
        }
        assert_true(fabs(p.direction[what].auc - auc_by_pairs(&x, own)) < 1e-5);
        if (what == FR_REMOVE_MEMBERSHIP)
            assert_true(p.direction[what].membership_auc == 0.5 && p.direction[what].cosine == 1);
        else
            assert_true(fabs(p.direction[what].membership_auc - auc_by_pairs(&x, left)) < 1e-5);
        npy_close(&direction);
        npy_close(&head);
    }
    assert_true(p.direction[FR_REMOVE_MEMBERSHIP].auc > 0.8);
    for (int threads = 2; threads <= 5; threads += 3) { /* into the same place, by force */
        fr_context context = {.threads = threads};
        OK(fr_project_files(x.z_path, x.label_path, x.head_path, out, true, 7, &context, &again,
                            &err));
        assert_memory_equal(p.direction + 1, again.direction + 1, 3 * sizeof *p.direction);
    }
    assert_int_equal(directory_entries(out), 6);
    /* a head of one row keeps its shape and type */
    float flat[WIDTH] = {1, 2, 3, 4, 5, 6};
    char *one = put_array(*state, "flat.npy", 'f', 4, 0, flat, WIDTH);
    OK(fr_project_files(x.z_path, x.label_path, one, out, true, 7, NULL, &p, &err));
    npy head;
    OK(npy_open_as(in_directory(out, "head-membership.npy"), 'f', 4, 1, &head, &err));
    double along = 0, rest = 0;
    for (int c = 0; c < WIDTH; c++) {
        along += (double)((const float *)head.data)[c] * a[c];
        rest += fabs((double)((const float *)head.data)[c]);
    }
    assert_true(head.shape[0] == WIDTH && fabs(along) < 1e-5 && rest > 1);
    npy_close(&head);
    put_text(in_directory(out, "mine.txt"), "keep");
    FAILS(fr_project_files(x.z_path, x.label_path, one, out, true, 7, NULL, &p, &err), FR_EFILE,
          "also contains mine.txt");
}

static void test_files_refused(void **state) {
    fr_error err;
    static vectors x;
    fr_projection p;
    make_vectors(&x, *state);
    char *out = in_directory(*state, "out");
    const char *d = *state;
#define REFUSED(z, label, head, part)                                                              \
    FAILS(fr_project_files(z, label, head, out, false, 7, NULL, &p, &err), FR_EINPUT, part)
    char *flat = put_array(d, "flat.npy", 'f', 4, 0, x.z, PAIRS);
    REFUSED(flat, x.label_path, x.head_path, "flat.npy: 1 dimensions, expected 2, [pairs, D]");
    REFUSED(x.label_path, x.label_path, x.head_path, "m.npy: an array of another type");
    REFUSED(put_array(d, "none.npy", 'f', 4, WIDTH, x.z, 0), x.label_path, x.head_path,
            "extent 0 of dimension 1");
    REFUSED(x.z_path, put_array(d, "few.npy", 'u', 1, 0, x.label, 9), x.head_path,
            "few.npy: 9 labels, expected 1300, one per row of");
    REFUSED(x.z_path, flat, x.head_path, "flat.npy: 1 dimensions and 4 bytes per element");
    REFUSED(x.z_path, x.label_path, put_array(d, "wide.npy", 'f', 8, WIDTH + 1, x.head, 1),
            "wide.npy: 7 columns, expected 6 as in");
    REFUSED(x.z_path, x.label_path, x.label_path, "m.npy: an array of another type");
    uint8_t label[PAIRS] = {0};
    REFUSED(x.z_path, put_array(d, "unmet.npy", 'u', 1, 0, label, PAIRS), x.head_path,
            "unmet.npy: 0 of 1300 pairs have met before, expected some and not all");
    label[4] = 255;
    REFUSED(x.z_path, put_array(d, "odd.npy", 'i', 1, 0, label, PAIRS), x.head_path,
            "odd.npy: label 4 is -1, expected 0 or 1");
    static float z[PAIRS][WIDTH];
    REFUSED(put_array(d, "alike.npy", 'f', 4, WIDTH, z, PAIRS), x.label_path, x.head_path,
            "alike.npy, membership: the direction to remove has the length 0");
    z[700][3] = NAN;
    REFUSED(put_array(d, "nan.npy", 'f', 4, WIDTH, z, PAIRS), x.label_path, x.head_path,
            "nan.npy: row 700, column 3 is nan, expected finite numbers");
    x.head[2][1] = INFINITY; /* found late, when two files have been written */
    REFUSED(x.z_path, x.label_path, put_array(d, "inf.npy", 'f', 8, WIDTH, x.head, ROWS),
            "inf.npy: row 2, column 1 is inf");
    FAILS(fr_project_files("nowhere.npy", x.label_path, x.head_path, out, false, 7, NULL, &p, &err),
          FR_EFILE, "nowhere.npy: cannot be read");
#undef REFUSED
    assert_int_equal(directory_entries(out), -1); /* nothing, and no file next to it */
    assert_int_equal(directory_entries(d), 12);   /* what this test has put there */
    assert_int_equal(mkdir(out, 0777), 0);
    put_text(in_directory(out, "mine.txt"), "keep");
    FAILS(fr_project_files(x.z_path, x.label_path, x.head_path, out, false, 7, NULL, &p, &err),
          FR_EFORCE, "exists");
    assert_int_equal(directory_entries(out), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_removal_is_that_of_vectors),
        WITH_DIRECTORY(test_threads),
        cmocka_unit_test(test_controls),
        WITH_DIRECTORY(test_vectors_are_of_their_event),
        WITH_DIRECTORY(test_replay_twice),
        WITH_DIRECTORY(test_scorers),
        WITH_DIRECTORY(test_nothing_to_remove),
        WITH_DIRECTORY(test_membership_is_all),
        WITH_DIRECTORY(test_files),
        WITH_DIRECTORY(test_files_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
