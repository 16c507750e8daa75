/* bench_bootstrap.c - a whole comparison: every interval, test and order flip of a study.
 *
 *     bench_bootstrap [EVENTS [MODELS [SEEDS [RESAMPLES]]]]          standard: 5000 6 3 10000
 *
 * Records are made up. Prints the best of five rounds: a comparison of all models (every pair, the
 * standard K and the full catalog) with one and with two threads, and the processor time of
 * resampling one seed of one pair and column event by event, scaled to all of them.
 */
#include "base/rng.h"
#include "rank/ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, CATALOG = 800, BLOCK = 128 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *text(const char *s) { return (char *)(uintptr_t)s; }

static fr_ranking make_run(int model, int seed, int64_t events) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    fr_record *records = malloc((size_t)events * sizeof *records);
    if (!records) exit(1);
    for (int64_t e = 0; e < events; e++) {
        double x[2];
        rng_normal((rng_key){.seed = (uint64_t)model}, (uint64_t)e, (uint32_t)seed, x);
        double rank = exp(2 + 0.1 * model + 2 * x[0]);
        records[e] = (fr_record){.event = e,
                                 .covered = 1,
                                 .n = CATALOG,
                                 .above = rank < CATALOG ? (int32_t)rank : CATALOG - 1,
                                 .avail_n = -1};
    }
    return (fr_ranking){.records = records,
                        .count = events,
                        .protocol_text = text("window=1"),
                        .scorer = text(names[model]),
                        .model = text(names[model]),
                        .objective = text("bce"),
                        .data = text("made up"),
                        .seed = seed};
}

/* One pair and one column without sums per block: every resample visits every event. */
static double resample_events(const fr_record *a, const fr_record *b, int64_t events,
                              int64_t resamples) {
    int64_t blocks = (events + BLOCK - 1) / BLOCK;
    double largest = 0;
    for (int64_t r = 0; r < resamples; r++) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t k = 0; k < blocks; k++) {
            rng_key key = {.purpose = RNG_BOOTSTRAP};
            int64_t from = BLOCK * rng_below(key, (uint64_t)r, (uint32_t)k, (uint32_t)blocks);
            for (int64_t e = from; e < from + BLOCK && e < events; e++, count++)
                sum += 1.0 / (1 + b[e].above) - 1.0 / (1 + a[e].above);
        }
        largest = fmax(largest, sum / (double)count);
    }
    return largest;
}

int main(int argc, char **argv) {
    int64_t events = argc > 1 ? atoll(argv[1]) : 5000,
            resamples = argc > 4 ? atoll(argv[4]) : 10000;
    int models = argc > 2 ? atoi(argv[2]) : 6, seeds = argc > 3 ? atoi(argv[3]) : 3;
    if (events < 2 * BLOCK || models < 2 || models > 8 || seeds < 1 || resamples < 100) return 2;
    int runs = models * seeds, pairs = models * (models - 1) / 2, columns = FR_STANDARD_K + 1;
    fr_ranking *ranking = malloc((size_t)runs * sizeof *ranking);
    fr_compare_run *run = calloc((size_t)runs, sizeof *run);
    if (!ranking || !run) return 1;
    for (int i = 0; i < runs; i++) {
        ranking[i] = make_run(i / seeds, i % seeds, events);
        run[i] = (fr_compare_run){.ranking = &ranking[i], .file = "made up"};
    }
    fr_compare_settings s = {.size = sizeof s,
                             .sampler = text("uniform"),
                             .block = BLOCK,
                             .resamples = resamples,
                             .level = 0.95};
    fr_error err;
    printf("%lld events, %d models, %d seeds, %lld resamples: %d pairs, %d columns\n",
           (long long)events, models, seeds, (long long)resamples, pairs, columns);
    for (int threads = 1; threads <= 2; threads++) {
        fr_context context = {.threads = threads};
        double best = INFINITY, work = INFINITY;
        for (int round = 0; round < ROUNDS; round++) {
            fr_comparison *out;
            double start = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
            if (fr_compare(run, runs, fr_standard_k, FR_STANDARD_K, &s, 1, &context, &out, &err)) {
                fprintf(stderr, "bench_bootstrap: %s\n", err.message);
                return 1;
            }
            best = fmin(best, now(CLOCK_MONOTONIC) - start);
            work = fmin(work, now(CLOCK_PROCESS_CPUTIME_ID) - used);
            fr_comparison_close(out);
        }
        printf("whole comparison, %d thread%s   %8.3f s, %.3f s of processor time\n", threads,
               threads > 1 ? "s" : " ", best, work);
    }
    double start = now(CLOCK_PROCESS_CPUTIME_ID);
    double largest = resample_events(ranking[0].records, ranking[seeds].records, events, resamples);
    double one = now(CLOCK_PROCESS_CPUTIME_ID) - start;
    printf("event by event, 1 thread       %8.3f s for one seed of one pair and column (largest "
           "%.4f), times %d: %.1f s\n",
           one, largest, seeds * pairs * columns, one * seeds * pairs * columns);
    for (int i = 0; i < runs; i++) free(ranking[i].records);
    free(ranking);
    free(run);
    return 0;
}
