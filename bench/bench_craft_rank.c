/* bench_craft_rank.c - the time of ranking with CRAFT and CRAFT-R.
 *
 *     bench_craft_rank FILE.csv[.gz] [EVENTS [BLOCK]]      400 test events, blocks as usual
 *
 * Prints milliseconds per event and products per second, for the fast path with 1 and 2 threads and
 * for the plain forward pass, with random parameters of the default shape. Then it prints the time
 * against the number of destinations and the length of histories, on synthetic streams.
 */
#include "base/file.h"
#include "base/rng.h"
#include "base/shards.h"
#include "base/simd.h"
#include "models/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* One thread by its processor time, so that other programs do not count. */
static double now(int threads) {
    struct timespec t;
    (void)clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- scoring events ---- */

typedef struct job {
    const fr_window *w;
    fr_scorer_definition *scorer;
    int32_t first, step; /* events first, first + step, ... */
    float *scores[2];    /* of workers */
} job;

static fr_status score_shard(void *state, int64_t shard, int worker, fr_error *err) {
    job *j = state;
    int32_t e = j->first + (int32_t)shard * j->step;
    fr_query query = {e, j->w->source[e], window_time(j->w, e)};
    return j->scorer->part(j->scorer->state, &query, 1, 0, j->w->destinations, worker,
                           j->scores[worker], err);
}

/* Seconds per event over `events` events spread over the test part. */
static fr_status run(const model *m, bool fast, int threads, int32_t events, double *seconds,
                     fr_error *err) {
    const fr_window *w = m->w;
    fr_scorer_definition scorer = {0};
    int32_t test = w->events - w->train;
    if (events > test) events = test;
    job j = {.w = w, .scorer = &scorer, .first = w->train, .step = test / events};
    fr_context context = {.threads = threads};
    fr_status status = (fast ? m->kind->fast : model_plain)(m, threads, &scorer, err);
    for (int k = 0; !status && k < threads; k++)
        status = ALLOCATE(j.scores[k], w->destinations, err);
    if (!status) status = shards_run(&context, NULL, threads, score_shard, &j, err); /* warm */
    double start = now(threads);
    if (!status) status = shards_run(&context, NULL, events, score_shard, &j, err);
    *seconds = (now(threads) - start) / events;
    free(j.scores[0]);
    free(j.scores[1]);
    if (scorer.state) scorer.close(scorer.state);
    return status;
}

/* Floating-point operations of products per event (MODELS 2.6, with first-layer dot products). */
static double work_of(const model *m, int32_t events) {
    const fr_window *w = m->w;
    const fr_model_settings *s = &m->settings;
    int32_t test = w->events - w->train, step = test / (events < test ? events : test);
    double d = (double)s->dim, layers = (double)s->layers, sum = 0;
    double z = d * (m->kind == &model_craft_r ? 3 : 2);
    int32_t count = 0;
    for (int32_t e = w->train; e < w->events && count < events; e += step, count++) {
        double length =
            window_source_history(w, w->source[e], window_cut(w, e), (int32_t)s->history).count;
        if (length > 0)
            sum += 4 * d * layers * length + (2 * (2 * layers - 1) + 16 * layers) * d * d;
        sum += 2 * d * z;
    }
    return sum / count * w->destinations;
}

static fr_model_settings usual(void) {
    return (fr_model_settings){.size = sizeof(fr_model_settings),
                               .dim = 64,
                               .heads = 2,
                               .layers = 2,
                               .history = 320,
                               .head_layers = 2};
}

/* ---- a real stream ---- */

static fr_status report(const fr_window *w, const char *name, int32_t events, int block,
                        fr_error *err) {
    model m;
    fr_model_settings settings = usual();
    double one, two, plain;
    TRY(model_open(&m, name, &settings, w, 7, err));
    m.fast_block = block;
    fr_status status = run(&m, true, 1, events, &one, err);
    if (!status) status = run(&m, true, 2, events, &two, err);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* before plain forward */
    if (!status) status = run(&m, false, 1, events < 100 ? events : 100, &plain, err);
    if (!status) {
        double work = work_of(&m, events);
        (void)printf(
            "%-8s  1 thread %.3f ms per event (%.1f MFLOP, %.1f GFLOP/s), 2 threads %.3f ms, "
            "plain %.2f ms: %.1f times; peak memory %.0f MB\n",
            name, 1e3 * one, 1e-6 * work, 1e-9 * work / one, 1e3 * two, 1e3 * plain, plain / one,
            (double)usage.ru_maxrss / 1024);
    }
    model_close(&m);
    return status;
}

static fr_status real_stream(const char *path, int32_t events, int block, fr_error *err) {
    fr_stream *stream = NULL;
    fr_window *w = NULL;
    fr_protocol protocol = {.size = sizeof protocol, .window = 32768, .train_share = 0.85};
    fr_status status = fr_stream_open(path, NULL, NULL, &stream, err);
    if (!status) status = fr_window_open(stream, &protocol, NULL, &w, err);
    if (!status)
        (void)printf("%s: %" PRId32 " destinations, %" PRId32 " test events, products %s\n", path,
                     w->destinations, w->events - w->train, simd_name(simd_now()));
    if (!status) status = report(w, "craft", events, block, err);
    if (!status) status = report(w, "craft-r", events, block, err);
    fr_window_close(w);
    fr_stream_close(stream);
    return status;
}

/* ---- streams made for it ---- */

/* Every destination once, then `length` events of one source, which is also the test part's. */
static fr_status made_stream(const char *directory, int destinations, int length, double *seconds,
                             fr_error *err) {
    enum { TEST = 40 };
    rng_key key = {.seed = 1, .purpose = RNG_TEST};
    fr_stream *stream = NULL;
    fr_window *w = NULL;
    model m = {0};
    char *path = path_join(directory, "made.csv");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) {
        free(path);
        return fail_errno(err, "%s: cannot be written", directory);
    }
    int rows = 0;
    (void)fprintf(file, "u,v,t\n");
    for (; rows < destinations; rows++) (void)fprintf(file, "1,%d,%d\n", rows, rows);
    for (int k = 0; k < length + TEST; k++, rows++)
        (void)fprintf(file, "0,%" PRIu32 ",%d\n",
                      rng_below(key, (uint64_t)k, 0, (uint32_t)destinations), rows);
    fr_status status = fclose(file) ? fail_errno(err, "%s: cannot be written", path) : FR_OK;
    fr_protocol protocol = {.size = sizeof protocol, .train_share = (rows - TEST + 0.5) / rows};
    fr_model_settings settings = usual();
    settings.history = length; /* so that every test event has as many */
    if (!status) status = fr_stream_open(path, NULL, NULL, &stream, err);
    if (!status) status = fr_window_open(stream, &protocol, NULL, &w, err);
    if (!status) status = model_open(&m, "craft", &settings, w, 7, err);
    if (!status) status = run(&m, true, 1, destinations > 5000 ? 10 : TEST, seconds, err);
    model_close(&m);
    fr_window_close(w);
    fr_stream_close(stream);
    free(path);
    return status;
}

static fr_status made_streams(fr_error *err) {
    static const int sizes[] = {20, 100, 500, 1000, 5000, 20000},
                     lengths[] = {1, 5, 20, 60, 160, 320};
    char directory[] = "/tmp/fullrank-bench-XXXXXX";
    double seconds;
    if (!mkdtemp(directory)) return fail_errno(err, "%s: cannot be made", directory);
    fr_status status = FR_OK;
    (void)printf("craft, histories of 60: destinations, ms per event, us per score\n");
    for (int k = 0; !status && k < 6; k++) {
        status = made_stream(directory, sizes[k], 60, &seconds, err);
        if (!status)
            (void)printf("%8d %9.3f %7.3f\n", sizes[k], 1e3 * seconds, 1e6 * seconds / sizes[k]);
    }
    if (!status) (void)printf("craft, 1000 destinations: history, ms per event, us per score\n");
    for (int k = 0; !status && k < 6; k++) {
        status = made_stream(directory, 1000, lengths[k], &seconds, err);
        if (!status) (void)printf("%8d %9.3f %7.3f\n", lengths[k], 1e3 * seconds, 1e3 * seconds);
    }
    directory_remove(directory);
    return status;
}

int main(int argc, char **argv) {
    fr_error err = {0};
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_craft_rank FILE.csv[.gz] [EVENTS [BLOCK]]\n");
        return 2;
    }
    int events = argc > 2 ? atoi(argv[2]) : 400;
    int block = argc > 3 ? atoi(argv[3]) : 0;
    fr_status status = real_stream(argv[1], events > 0 ? events : 400, block > 0 ? block : 0, &err);
    if (!status) status = made_streams(&err);
    if (status) (void)fprintf(stderr, "%s\n", err.message);
    return status ? 1 : 0;
}
