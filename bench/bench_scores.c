/* bench_scores.c - the time of ranking given scores, or products of factors.
 *
 *     bench_scores FILE.csv[.gz] [FOLDER]        a ready matrix: the window of the defaults
 *     bench_scores products [N [EVENTS [WIDTH]]] factors, by default 1,000,000 destinations, 512
 *                                                events, width 64
 *
 * The first writes random scores of the covered events over the catalog to FOLDER/scores.npy (else
 * to /tmp) and ranks them as a score file and through a feed, with one thread by its processor
 * time: seconds, best of many. bench/scores.py compares them with NumPy. The second ranks U V^T
 * without storing it, and compares it with the product alone, computed in the same tiles.
 */
#include "base/context.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/os.h"
#include "base/rng.h"
#include "data/window.h"
#include "nn/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 30, TILE = 256, MANY = 512 };

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float draw(uint64_t *state) { /* from -1 to 1 */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 33) * 0x1p-30 - 1);
}

static void least(double *best, double seconds) {
    if (*best == 0 || seconds < *best) *best = seconds;
}

/* ---- a ready matrix ---- */

static fr_status write_scores(const fr_window *w, const char *path, float **all, int64_t *rows,
                              fr_error *err) {
    npy_writer out = {0};
    uint64_t state = 1;
    *rows = 0;
    for (int32_t i = w->from; i < w->to; i++) *rows += window_covered(w, i);
    TRY(ALLOCATE(*all, *rows * w->catalog_size, err));
    for (int64_t k = 0; k < *rows * w->catalog_size; k++) (*all)[k] = draw(&state);
    fr_status status = npy_writer_open(&out, path, 'f', 4, w->catalog_size, err);
    if (!status) status = npy_writer_put(&out, *all, *rows, err);
    if (!status) status = npy_writer_commit(&out, err);
    npy_writer_discard(&out);
    return status;
}

static fr_status rank_file(const fr_window *w, const char *spec, double best[2], fr_error *err) {
    fr_context context = {.threads = 1};
    fr_scorer *scorer;
    fr_ranking *ranking;
    double start = now();
    TRY(fr_scorer_open(spec, w, 0, &context, &scorer, err));
    least(&best[0], now() - start);
    start = now();
    fr_status status = fr_rank_run(scorer, NULL, &context, &ranking, err);
    least(&best[1], now() - start);
    fr_scorer_close(scorer);
    if (!status) fr_ranking_close(ranking);
    return status;
}

/* Of an event that is not covered any scores will do. */
static fr_status rank_feed(const fr_window *w, const float *all, double best[3], fr_error *err) {
    static const fr_scorer_definition about = {
        .size = sizeof about, .name = "ready", .catalog_only = true};
    fr_feed *feed;
    fr_ranking *ranking = NULL;
    double start = now();
    TRY(fr_feed_open(w, &about, NULL, &feed, err));
    least(&best[0], now() - start);
    start = now();
    fr_status status = FR_OK;
    const fr_query *query;
    for (int count; !status;) {
        status = fr_feed_next(feed, 1, &query, &count, err);
        if (status || !count) break;
        status = fr_feed_submit(feed, all, 1, NULL, NULL, err);
        if (window_covered(w, query->event)) all += w->catalog_size;
    }
    least(&best[1], now() - start);
    start = now();
    if (!status) status = fr_feed_finish(feed, &ranking, err);
    least(&best[2], now() - start);
    fr_ranking_close(ranking);
    fr_feed_close(feed);
    return status;
}

static fr_status run_ready(const char *data, const char *folder, fr_error *err) {
    fr_stream *stream;
    fr_window *w;
    float *all = NULL;
    int64_t rows;
    double file[2] = {0}, feed[3] = {0};
    char path[4096], spec[4112];
    (void)snprintf(path, sizeof path, "%s/scores.npy", folder);
    (void)snprintf(spec, sizeof spec, "scores:%s", path);
    TRY(fr_stream_open(data, NULL, NULL, &stream, err));
    TRY(fr_window_open(stream, NULL, NULL, &w, err));
    TRY(write_scores(w, path, &all, &rows, err));
    for (int k = 0; k < TRIES; k++) {
        TRY(rank_file(w, spec, file, err));
        TRY(rank_feed(w, all, feed, err));
    }
    (void)printf("%lld x %d scores\n", (long long)rows, w->catalog_size);
    (void)printf("scores: open, with hash  %.4f s\n", file[0]);
    (void)printf("scores: rank             %.4f s\n", file[1]);
    (void)printf("feed: open               %.4f s\n", feed[0]);
    (void)printf("feed: one row at a time  %.4f s\n", feed[1]);
    (void)printf("feed: finish             %.4f s\n", feed[2]);
    free(all);
    fr_window_close(w);
    fr_stream_close(stream);
    return FR_OK;
}

/* ---- products ---- */

/* `test` test events; every destination occurs before them. */
static fr_status make_stream(int64_t n, int64_t test, fr_stream **out, fr_error *err) {
    int64_t events = n + test, *source, *destination;
    double *time;
    TRY(ALLOCATE(source, events, err));
    TRY(ALLOCATE(destination, events, err));
    TRY(ALLOCATE(time, events, err));
    for (int64_t k = 0; k < events; k++) {
        source[k] = k * 7919 % 1000;
        destination[k] = k < n ? k : k * 104729 % n;
        time[k] = (double)k;
    }
    fr_arrays a = {.size = sizeof a,
                   .events = events,
                   .source = source,
                   .destination = destination,
                   .time = time};
    fr_status status = fr_stream_make(&a, NULL, NULL, out, err);
    free(source);
    free(destination);
    free(time);
    return status;
}

/* The product alone, tile by tile. */
static fr_status multiply(const fr_factors *f, double *best, fr_error *err) {
    float *tile;
    int width = (int)f->width;
    TRY(ALLOCATE(tile, (int64_t)TILE * MANY, err));
    double start = now();
    for (int64_t row = 0; row < f->rows; row += MANY)
        for (int64_t at = 0; at < f->columns; at += TILE) {
            int m = (int)(f->rows - row < MANY ? f->rows - row : MANY);
            int n = (int)(f->columns - at < TILE ? f->columns - at : TILE);
            gemm_nt(m, n, width, f->u + row * width, width, f->v + at * width, width, tile, n,
                    false);
        }
    least(best, now() - start);
    free(tile);
    return FR_OK;
}

/* Best of three, in turn with the product alone. */
static fr_status rank_products(const fr_window *w, const fr_factors *f, double *rank,
                               double *product, fr_error *err) {
    static const fr_scorer_definition about = {.size = sizeof about, .name = "products"};
    fr_context context = {.threads = 1};
    *rank = 0;
    for (int k = 0; k < 3; k++) {
        fr_scorer *scorer;
        fr_ranking *ranking;
        TRY(fr_scorer_factors(w, f, &about, &scorer, err));
        double start = now();
        TRY(fr_rank_run(scorer, NULL, &context, &ranking, err));
        least(rank, now() - start);
        fr_scorer_close(scorer);
        fr_ranking_close(ranking);
        TRY(multiply(f, product, err));
    }
    return FR_OK;
}

static fr_status run_products(int64_t n, int64_t events, int64_t width, fr_error *err) {
    fr_stream *stream;
    fr_window *w;
    fr_protocol protocol;
    float *u, *v;
    uint64_t state = 1;
    char split[64];
    double product = 0, rank[2];
    (void)snprintf(split, sizeof split, "rows:%lld,%lld", (long long)n, (long long)n);
    TRY(make_stream(n, events, &stream, err));
    TRY(fr_options_defaults(fr_protocol_options, &protocol, err));
    TRY(fr_options_set(fr_protocol_options, &protocol, "window", "0", err));
    TRY(fr_options_set(fr_protocol_options, &protocol, "split", split, err));
    TRY(fr_window_open(stream, &protocol, NULL, &w, err));
    TRY(ALLOCATE(u, events * width, err));
    TRY(ALLOCATE(v, n * width, err));
    for (int64_t k = 0; k < events * width; k++) u[k] = draw(&state);
    for (int64_t k = 0; k < n * width; k++) v[k] = draw(&state);
    fr_factors f = {sizeof f, events, n, width, u, v, NULL};
    os_forget_peak();
    int64_t before = os_peak_memory();
    TRY(rank_products(w, &f, &rank[0], &product, err));
    for (int64_t k = 0; k < events * width; k++) /* a model that knows something */
        u[k] += v[(int64_t)w->destination[w->from + k / width] * width + k % width] / 2;
    TRY(rank_products(w, &f, &rank[1], &product, err));
    double scores = (double)events * (double)n, work = scores * (double)width * 2e-9;
    (void)printf("%lld events x %lld destinations, width %lld\n", (long long)events, (long long)n,
                 (long long)width);
    (void)printf("product alone  %.3f s, %.1f GFLOP/s\n", product, work / product);
    for (int k = 0; k < 2; k++)
        (void)printf("%s  %.3f s, %.1f GFLOP/s, %.2f ns per score\n",
                     k ? "ranked, positives high" : "ranked, at random     ", rank[k],
                     work / rank[k], rank[k] * 1e9 / scores);
    (void)printf("memory on top of data and factors: %.1f MB\n",
                 (double)(os_peak_memory() - before) * 1e-6);
    free(u);
    free(v);
    fr_window_close(w);
    fr_stream_close(stream);
    fr_options_free(fr_protocol_options, &protocol);
    return FR_OK;
}

int main(int argc, char **argv) {
    fr_error err = {0};
    fr_status status;
    if (argc > 1 && !strcmp(argv[1], "products")) {
        int64_t n = argc > 2 ? atoll(argv[2]) : 1000000, events = argc > 3 ? atoll(argv[3]) : 512;
        status = run_products(n, events, argc > 4 ? atoll(argv[4]) : 64, &err);
    } else if (argc > 1) {
        status = run_ready(argv[1], argc > 2 ? argv[2] : "/tmp", &err);
    } else {
        (void)fputs("usage: bench_scores FILE.csv [FOLDER] | products [N [EVENTS [WIDTH]]]\n",
                    stderr);
        return 2;
    }
    if (status) (void)fprintf(stderr, "bench_scores: %s\n", err.message);
    return status ? 1 : 0;
}
