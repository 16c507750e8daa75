/* scale_stream.c - a heavy-tailed stream of any size as CSV on standard output.
 *
 *     scale_stream EVENTS SOURCES DESTINATIONS [SEED]
 *
 * Source i is drawn with a probability proportional to 1 / (i + 1000), and destination j likewise:
 * power laws of exponent 1 with a flat head, as in public sets of this size. Half of the events
 * repeat one of the source's last eight destinations. About every fifth shares its time with the
 * previous one. Ids are scattered, so that neighbours in id are not neighbours in popularity.
 * Memory: 36 bytes per source.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEAD = 1000, KEPT = 8 };

static uint64_t state;
static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A number below n, k with a chance that falls like 1 / (k + HEAD): the inverse of its sum. */
static uint32_t power_law(uint32_t n) {
    double u = (double)(draw() >> 11) * 0x1p-53;
    uint32_t k = (uint32_t)(HEAD * (exp(u * log1p((double)n / HEAD)) - 1));
    return k < n ? k : n - 1;
}

int main(int argc, char **argv) {
    int64_t events = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    uint32_t sources = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    uint32_t destinations = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    state = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    if (events < 1 || sources < 1 || destinations < 1) {
        (void)fprintf(stderr, "usage: scale_stream EVENTS SOURCES DESTINATIONS [SEED]\n");
        return 2;
    }
    uint32_t *last = calloc((size_t)sources * KEPT, sizeof *last);
    uint8_t *count = calloc(sources, sizeof *count);
    if (!last || !count) return 1;
    (void)printf("source,destination,time\n");
    int64_t time = 0;
    for (int64_t i = 0; i < events; i++) {
        uint64_t bits = draw();
        uint32_t u = power_law(sources), v;
        uint32_t *own = last + (size_t)u * KEPT;
        if ((bits & 1) && count[u])
            v = own[(bits >> 1) % (count[u] < KEPT ? count[u] : KEPT)];
        else
            v = power_law(destinations);
        own[count[u] < KEPT ? count[u]++ : bits >> 8 & (KEPT - 1)] = v;
        time += (bits >> 16) % 5 != 0;
        /* multiplication by a number without a common factor scatters ids */
        (void)printf("%" PRIu64 ",%" PRIu64 ",%" PRId64 "\n", (uint64_t)u * 2654435761u % sources,
                     (uint64_t)v * 2654435761u % destinations, time);
    }
    free(last);
    free(count);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
