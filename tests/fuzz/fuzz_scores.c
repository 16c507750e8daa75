/* fuzz_scores.c - changed score files and their accompanying files, for a tiny window: refused with
 * a one-line reason, or a scorer that can rank. FLAGS % 3 is the type of @@a: float16, 32, 64; with
 * FLAGS & 4 the catalog is the time-available one. Scores are zero unless given.
 *
 *     @@a scores  @@w their columns in two bytes  @@A the .npy itself
 *     @@j the JSON  @@e rows of events  @@E, @@d ids of destinations, @@D: the .npy itself */
#include "parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_scores(const fr_window *w, int flags, fuzz_part rest) {
    static const char *const types[] = {"<f2", "<f4", "<f8"};
    size_t item = (size_t)2 << flags % 3, width = (size_t)w->catalog_size, rows = 0, size = 0;
    fuzz_part scores = {0}, file = {0};
    for (int32_t i = w->train; i < w->events; i++) rows += w->catalog_place[w->destination[i]] >= 0;
    for (fuzz_part p; fuzz_next(&rest, &p);) {
        if (p.kind == 'a') scores = p;
        if (p.kind == 'A') file = p;
        if (p.kind == 'w' && p.size >= 2) width = (size_t)(p.at[0] | p.at[1] << 8);
        if (p.kind == 'e') rows = p.size / 8;
        if (p.kind == 'd') width = p.size / 8;
        if (p.kind == 'j') fuzz_write("scores.json", p.at, p.size);
        if (p.kind == 'e') fuzz_write_npy("scores.events.npy", "<i8", 8, 0, p.at, p.size);
        if (p.kind == 'E') fuzz_write("scores.events.npy", p.at, p.size);
        if (p.kind == 'd') fuzz_write_npy("scores.destinations.npy", "<i8", 8, 0, p.at, p.size);
        if (p.kind == 'D') fuzz_write("scores.destinations.npy", p.at, p.size);
    }
    if (file.at) {
        fuzz_write("scores.npy", file.at, file.size);
        return;
    }
    if (!width) width = 1;
    size = rows * width * item;
    uint8_t *data = calloc(size + 1, 1);
    if (!data) abort();
    if (scores.size) memcpy(data, scores.at, scores.size < size ? scores.size : size);
    fuzz_write_npy("scores.npy", types[flags % 3], item, width, data, size);
    free(data);
}

static const fr_window *time_window(void) {
    static fr_window *window;
    fr_error err = {0};
    if (window) return window;
    fr_protocol protocol = fuzz_window()->protocol;
    char time[] = "time";
    protocol.catalog = time;
    fuzz_must(fr_window_open(fuzz_window()->stream, &protocol, &fuzz_context, &window, &err), &err);
    return window;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *const files[] = {"scores.npy", "scores.json", "scores.events.npy",
                                        "scores.destinations.npy"};
    static fr_scorer *scorer;
    if (!size) return 0;
    char path[FUZZ_PATH], spec[FUZZ_PATH + 8];
    fr_error err = {0};
    fr_rank_settings settings = {0};
    fr_ranking *ranking = NULL;
    const fr_window *w = bytes[0] & 4 ? time_window() : fuzz_window();
    write_scores(w, bytes[0], (fuzz_part){.at = bytes + 1, .size = size - 1});
    (void)snprintf(spec, sizeof spec, "scores:%s", fuzz_path(path, "scores.npy"));
    fuzz_must(fr_options_defaults(fr_rank_options, &settings, &err), &err);
    fr_status status = fr_scorer_open(spec, w, 1, &fuzz_context, &scorer, &err);
    fuzz_reason(status, &err);
    if (!status) {
        fuzz_reason(fr_rank_run(scorer, &settings, &fuzz_context, &ranking, &err), &err);
        fr_ranking_close(ranking);
        fr_scorer_close(scorer);
    }
    fr_options_free(fr_rank_options, &settings);
    for (int i = 0; i < 4; i++) (void)unlink(fuzz_path(path, files[i]));
    return 0;
}
