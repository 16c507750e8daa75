/* bench_read.c - times the reader alone: bytes of a file to blocks of numbers in memory.
 *
 *     bench_read FILE [REPEAT]
 *
 * Prints the seconds of each pass, one per line; use the smallest. The reader also hashes the
 * stored bytes, as in an import. Sums over all values go to stderr, so that no work can be left out
 * and two builds can be seen to read the same numbers.
 */
#include "data/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct sums {
    int64_t rows;
    uint64_t ids;
    double times, features;
} sums;

static fr_status read_all(const char *path, sums *out, fr_error *err) {
    input in;
    csv c = {.in.fd = -1};
    *out = (sums){0};
    fr_status status = input_open(&in, path, NULL, err);
    if (status)
        input_close(&in);
    else
        status = csv_open(&c, in, NULL, NULL, NULL, NULL, err);
    while (!status) {
        status = csv_next(&c, err);
        if (status || !c.block.count) break;
        int64_t last = c.block.count - 1;
        out->rows += c.block.count;
        out->ids += (uint64_t)(c.block.source[last] + c.block.destination[last]);
        out->times += c.block.time[last];
        for (int64_t k = 0; k < c.layout.width; k++)
            out->features += (double)c.block.feature[last * c.layout.width + k];
    }
    csv_close(&c);
    return status;
}

int main(int count, char **argument) {
    if (count < 2) {
        (void)fprintf(stderr, "usage: bench_read FILE [REPEAT]\n");
        return 2;
    }
    int repeat = count > 2 ? atoi(argument[2]) : 1;
    sums s = {0};
    for (int k = 0; k < repeat; k++) {
        fr_error err = {0};
        double start = now();
        if (read_all(argument[1], &s, &err)) {
            (void)fprintf(stderr, "bench_read: %s\n", err.message);
            return 1;
        }
        (void)printf("%.6f\n", now() - start);
    }
    (void)fprintf(stderr, "%lld rows, sums over the last row of each block: %llu %.17g %.17g\n",
                  (long long)s.rows, (unsigned long long)s.ids, s.times, s.features);
    return 0;
}
