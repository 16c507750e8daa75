/* edgebank.c - a plug-in without a state: EdgeBank (Poursafaei et al., 2022).
 *
 *     fullrank rank --data wikipedia --scorer plugin:./libedgebank.so,memory=window -o ranks.npy
 *
 * A destination scores 1 if the source has met it, else 0; with memory=window only events in the
 * last `share` of all events so far count. The records are those of baseline:edgebank.
 */
#include <fullrank.h>
#include <math.h>
#include <stdlib.h>

enum { UNLIMITED, WINDOW };

typedef struct settings {
    int memory;
    double share;
} settings;

static const fr_option options[] = {{"memory", FR_OPTION_CHOICE, "unlimited", "unlimited|window", 0,
                                     0, offsetof(settings, memory), "which pairs are remembered"},
                                    {"share", FR_OPTION_REAL, "0.15", "SHARE", 0, 1,
                                     offsetof(settings, share),
                                     "memory=window: of all events so far"},
                                    {0}};

typedef struct edgebank {
    const fr_window *window;
    fr_columns columns;
    int64_t candidates;
    settings is;
} edgebank;

/* The quantile of the first `count` times, which are sorted, as NumPy has it. */
static double quantile(const double *time, int32_t count, double share) {
    double place = (count - 1) * share;
    int32_t below = (int32_t)floor(place), above = below + 1 < count ? below + 1 : below;
    return time[below] + (time[above] - time[below]) * (place - below);
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    const edgebank *b = state;
    int32_t past = fr_window_cut(b->window, query->event);
    double oldest = -INFINITY;
    (void)count, (void)worker, (void)err;
    for (int64_t v = 0; v < b->candidates; v++) scores[v] = 0;
    if (b->is.memory == WINDOW && past) oldest = quantile(b->columns.time, past, 1 - b->is.share);
    fr_history met = fr_window_source_history(b->window, query->source, query->event, INT32_MAX);
    for (int32_t k = 0; k < met.count; k++)
        if (b->columns.time[met.event[k]] >= oldest)
            scores[b->columns.destination[met.event[k]]] = 1;
    return FR_OK;
}

static fr_status open(const fr_window *window, const void *from, int64_t seed,
                      fr_scorer_definition *out, fr_error *err) {
    edgebank *b = malloc(sizeof *b);
    (void)seed;
    if (!b) return fr_fail(err, FR_ENOMEM, "out of memory");
    *b = (edgebank){.window = window,
                    .columns = fr_window_columns(window),
                    .candidates = fr_window_get(window).candidates,
                    .is = *(const settings *)from};
    *out = (fr_scorer_definition){
        .state = b, .score = score, .workers = FR_WORKERS_ANY, .close = free};
    return FR_OK;
}

static const fr_plugin plugin = {
    .abi = FR_PLUGIN_ABI,
    .kind = {.name = "edgebank",
             .summary = "1 if the pair is in memory, else 0",
             .text = "EdgeBank as an example of a plug-in. memory=unlimited remembers every pair "
                     "met so far, memory=window those met in the last part of the events.",
             .options = options,
             .settings = sizeof(settings),
             .open = open}};

FR_PLUGIN const fr_plugin *fullrank_plugin(void);
const fr_plugin *fullrank_plugin(void) { return &plugin; }
