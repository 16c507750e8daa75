/* bench_expected.c - expected sampled metrics over a million records, without a single draw.
 *
 *     bench_expected [RECORDS [CATALOG]]          standard: 1000000 1000
 *
 * The records are random: half of the positives are at the top, the rest anywhere, a fifth are tied
 * with up to twenty others, and sources have met up to sixty destinations. Prints seconds per
 * sampler for all standard K with Hits@10, and one drawn seed for comparison.
 */
#include "fullrank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 88172645463325252u; /* xorshift: any stream of numbers will do here */
static int32_t below(int32_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int32_t)(state >> 33) % n;
}
static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static fr_record make_record(int64_t event, int32_t catalog) {
    fr_record r = {.event = event, .covered = 1, .n = catalog, .avail_n = -1, .gap = NAN};
    r.above = below(2) ? below(least(10, catalog)) : below(catalog);
    if (below(5) == 0) r.tied = least(below(20) + 1, catalog - 1 - r.above);
    int32_t rest = catalog - 1 - r.above - r.tied;
    r.seen_above = below(least(r.above, 30) + 1);
    r.seen_tied = below(least(r.tied, 3) + 1);
    r.seen_n = r.seen_above + r.seen_tied + below(least(rest, 30) + 1);
    r.repeated = below(5) != 0;
    r.pop_above = (double)r.above / catalog;
    r.pop_tied = (double)r.tied / catalog;
    r.pop_self = 1.0 / catalog;
    return r;
}

int main(int argc, char **argv) {
    int64_t count = argc > 1 ? atoll(argv[1]) : 1000000;
    int32_t catalog = argc > 2 ? atoi(argv[2]) : 1000;
    if (count < 1 || catalog < 2) return 2;
    fr_record *records = malloc((size_t)count * sizeof *records);
    if (!records) return 1;
    for (int64_t i = 0; i < count; i++) records[i] = make_record(i, catalog);

    static const int64_t hits[] = {10};
    fr_sampling sampling = {
        .k = fr_standard_k, .k_count = FR_STANDARD_K, .hits = hits, .hits_count = 1};
    fr_error err;
    printf("%lld records, catalog of %d, K = 1 5 20 50 100\n", (long long)count, catalog);
    for (int i = 0; fr_sampler_at(i); i++) {
        fr_expected out[FR_STANDARD_K];
        sampling.sampler = fr_sampler_at(i)->name;
        double start = now();
        if (fr_expected_compute(records, count, &sampling, NULL, out, &err)) goto failed;
        printf("%-16s %7.3f s   MRR at K = 20: %.6f, sd %.6f\n", sampling.sampler, now() - start,
               out[2].mrr, out[2].sd);
    }
    fr_draws drawn[FR_STANDARD_K];
    fr_context one = {.threads = 1};
    sampling.sampler = "uniform";
    double start = now();
    if (fr_draws_compute(records, count, &sampling, 1, 1, &one, drawn, NULL, &err)) goto failed;
    printf("%-16s %7.3f s   MRR at K = 20: %.6f (one seed, one thread)\n", "drawing uniform",
           now() - start, drawn[2].mrr);
    free(records);
    return 0;
failed:
    fprintf(stderr, "bench_expected: %s\n", err.message);
    free(records);
    return 1;
}
