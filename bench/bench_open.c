/* bench_open.c - the time from opening an imported set until events can be ranked, and the memory
 * of its index.
 *
 *     bench_open [EVENTS [SOURCES [DESTINATIONS]]]        1300000 1000 1000: the size of LastFM
 *
 * Makes such a stream in a temporary directory, then opens it and builds the window of all events
 * (catalog, history and membership index) in both orders. Exits with 1 if the goals are missed: one
 * second, 40 bytes per event.
 */
#include "base/file.h"
#include "base/rng.h"
#include "data/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEAT = 5, BLOCK = 4096 };
static const double most_seconds = 1, most_bytes = 40;

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sources and destinations lean to small numbers, half of the events repeat a favourite of their
 * source, and about every fifth event shares its time with the one before. */
static fr_status put_events(columns *c, int64_t events, uint32_t sources, uint32_t destinations,
                            fr_error *err) {
    rng_key key = {.seed = 1, .purpose = RNG_TEST};
    int64_t source[BLOCK], destination[BLOCK];
    double time[BLOCK], clock = 0;
    for (int64_t done = 0; done < events;) {
        int64_t n = events - done < BLOCK ? events - done : BLOCK;
        for (int64_t k = 0; k < n; k++) {
            rng_block r = rng_bits(key, (uint64_t)(done + k), 0);
            double u = r.word[0] * 0x1p-32, v = r.word[1] * 0x1p-32;
            source[k] = (int64_t)(u * u * sources);
            destination[k] = r.word[2] & 1 ? (source[k] * 7 + r.word[2] % 40) % destinations
                                           : (int64_t)(v * v * destinations);
            clock += r.word[3] % 5;
            time[k] = clock;
        }
        TRY(columns_put(c, n, source, destination, time, NULL, NULL, err));
        done += n;
    }
    return FR_OK;
}

static fr_status make(const char *path, int64_t events, uint32_t sources, uint32_t destinations,
                      fr_error *err) {
    columns c;
    fr_status status = columns_open(&c, path, false, 0, false, err);
    if (!status) status = put_events(&c, events, sources, destinations, err);
    columns_finish finish = {.origin = json_pack("{s:s}", "name", "bench")};
    if (!status)
        status = columns_close(&c, finish, NULL, err);
    else
        json_decref(finish.origin);
    columns_discard(&c);
    return status;
}

/* Opens stream and window once; adds nothing to what a user of the library would wait for. */
static fr_status open_once(const char *path, const fr_protocol *protocol, double seconds[2],
                           fr_window_facts *facts, fr_error *err) {
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    double start = now();
    fr_status status = fr_stream_open(path, NULL, NULL, &stream, err);
    seconds[0] = now() - start;
    if (!status) status = fr_window_open(stream, protocol, NULL, &window, err);
    seconds[1] = now() - start;
    if (!status) *facts = fr_window_get(window);
    fr_window_close(window);
    fr_stream_close(stream);
    return status;
}

static fr_status measure(const char *path, const char *order, bool *good, fr_error *err) {
    fr_protocol protocol;
    TRY(fr_options_defaults(fr_protocol_options, &protocol, err));
    fr_status status = fr_options_set(fr_protocol_options, &protocol, "window", "0", err);
    if (!status) status = fr_options_set(fr_protocol_options, &protocol, "order", order, err);
    fr_window_facts facts = {0};
    double best[2] = {1e9, 1e9};
    for (int k = 0; !status && k < REPEAT; k++) {
        double seconds[2];
        status = open_once(path, &protocol, seconds, &facts, err);
        for (int part = 0; !status && part < 2; part++)
            if (seconds[part] < best[part]) best[part] = seconds[part];
    }
    fr_options_free(fr_protocol_options, &protocol);
    if (status) return status;
    double bytes = (double)facts.index_bytes / (double)facts.events;
    (void)printf("order %s: %lld events ready in %.1f ms (of it %.1f ms to open the columns), "
                 "index %.1f bytes per event\n",
                 order, (long long)facts.events, 1e3 * best[1], 1e3 * best[0], bytes);
    if (best[1] >= most_seconds || bytes > most_bytes) *good = false;
    return FR_OK;
}

int main(int count, char **argument) {
    int64_t events = count > 1 ? atoll(argument[1]) : 1300000;
    uint32_t sources = count > 2 ? (uint32_t)atoll(argument[2]) : 1000;
    uint32_t destinations = count > 3 ? (uint32_t)atoll(argument[3]) : 1000;
    fr_error err = {0};
    char folder[] = "/tmp/fullrank-bench-XXXXXX", *path = NULL;
    bool good = true;
    fr_status status = mkdtemp(folder) ? FR_OK : fail_errno(&err, "%s: cannot be made", folder);
    if (!status) path = path_join(folder, "stream");
    if (!status && !path) status = fail_memory(&err, 0);
    if (!status) status = make(path, events, sources, destinations, &err);
    if (!status) status = measure(path, "stream", &good, &err);
    if (!status) status = measure(path, "strict", &good, &err);
    if (status) (void)fprintf(stderr, "bench_open: %s\n", err.message);
    if (!good)
        (void)fprintf(stderr, "bench_open: missed: under %g s, at most %g bytes per event\n",
                      most_seconds, most_bytes);
    directory_remove(folder);
    free(path);
    return status || !good;
}
