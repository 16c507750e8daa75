/* window.c - see window.h and fullrank.h, chapter 5. */
#include "data/window.h"

#include "base/context.h"
#include "base/options.h"
#include "base/sha256.h"
#include "data/catalog.h"
#include "data/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options of both tables below. */
// clang-format off
#define SPLIT(size) \
    {"window", FR_OPTION_INT, size, "N", 0, INT32_MAX, offsetof(fr_protocol, window), \
     "most recent events used; 0 = all"}, \
    {"train-share", FR_OPTION_REAL, "0.85", "SHARE", 0, 1, offsetof(fr_protocol, train_share), \
     "first share of the window, for training; the rest is the test suffix"}, \
    {"val-share", FR_OPTION_REAL, "0", "SHARE", 0, 1, offsetof(fr_protocol, val_share), \
     "share of the events after it, for validation"}, \
    {"split", FR_OPTION_TEXT, "share", "share|quantile|column|rows:A,B|times:A,B", 0, 0, \
     offsetof(fr_protocol, split), \
     "how the parts are cut: by shares of the events, by quantiles of their times (TGB, " \
     "DyGLib), by the file's split column, or where validation and test begin, as rows, times or " \
     "dates (times:2024-01-31,2024-03-01)"}, \
    {"order", FR_OPTION_TEXT, "stream", "stream|strict|batch:N", 0, 0, \
     offsetof(fr_protocol, order), \
     "the history of an event: everything earlier in the stream, only smaller times, or what came " \
     "before its batch of N test events (most published code: batch:200)"}
// clang-format on

const fr_option fr_protocol_options[FR_OPTIONS_MAX] = {
    SPLIT("32768"),
    {"part", FR_OPTION_CHOICE, "test", "test|val", 0, 0, offsetof(fr_protocol, part),
     "the part whose events are ranked"},
    {"catalog", FR_OPTION_TEXT, "fixed", "fixed|train+val|all|range|time|FILE", 0, 0,
     offsetof(fr_protocol, catalog),
     "the candidates: destinations of the training part, of training and validation, of "
     "the whole window, all ids from the smallest to the largest of the data (TGB), "
     "destinations that have occurred so far, or the ids listed in a file"},
    {"filter", FR_OPTION_CHOICE, "none", "none|same-time", 0, 0, offsetof(fr_protocol, filter),
     "same-time: other true destinations of the same source at the same time are not "
     "candidates (TGB)"},
    {"oov", FR_OPTION_CHOICE, "exclude", "exclude|zero", 0, 0, offsetof(fr_protocol, oov),
     "events whose destination is not a candidate: left out, or counted with reciprocal "
     "rank 0"},
    OPTIONS_END(fr_protocol)};

const fr_option fr_diagnostic_options[FR_OPTIONS_MAX] = {SPLIT("131072"), OPTIONS_END(fr_protocol)};

/* ---- events ---- */

/* Copies the indices, then checks the copy, so later changes of the columns do no harm. Times are
 * not used as indices and stay mapped. */
static fr_status copy_events(fr_window *w, int32_t **source, int32_t **destination, fr_error *err) {
    const fr_stream *s = w->stream;
    size_t n = (size_t)w->events;
    const double *time = s->time + w->first;
    TRY(arena_take_raw(&w->memory, n, sizeof **source, (void **)source, err));
    TRY(arena_take_raw(&w->memory, n, sizeof **destination, (void **)destination, err));
    memcpy(*source, s->source + w->first, n * sizeof **source);
    memcpy(*destination, s->destination + w->first, n * sizeof **destination);
    for (int32_t i = 0; i < w->events; i++) {
        int32_t u = (*source)[i], v = (*destination)[i];
        if (u < 0 || u >= s->facts.sources || v < 0 || v >= s->facts.destinations)
            return stream_bad_id(s, w->first + i, err);
        if (!isfinite(time[i]) || (i && time[i] < time[i - 1]))
            return fail(err, FR_EINPUT, "%s: event %lld: time %.17g after %.17g", s->name,
                        (long long)(w->first + i), time[i], time[i ? i - 1 : 0]);
    }
    w->source = *source;
    w->destination = *destination;
    w->time = time;
    w->start = time[0];
    w->known_events = w->events;
    if (s->feature) w->feature = s->feature + w->first * s->facts.feature_width;
    return FR_OK;
}

static fr_status cut_window(fr_window *w, const fr_context *context, fr_error *err) {
    int64_t all = w->stream->facts.events, want = w->protocol.window;
    if (want > all)
        context_log(context, FR_NOTICE,
                    "window %lld is larger than the stream: using all %lld events", (long long)want,
                    (long long)all);
    int64_t n = want == 0 || want > all ? all : want;
    if (n < all / 2)
        context_log(context, FR_NOTICE, "%s: using the last %lld of %lld events; window 0 uses all",
                    w->stream->name, (long long)n, (long long)all);
    if (n > INT32_MAX)
        return fail(err, FR_EINPUT, "%s: %lld events in one window, expected at most %d",
                    w->stream->name, (long long)n, INT32_MAX);
    w->first = all - n;
    w->events = (int32_t)n;
    return FR_OK;
}

/* Renumbers one role densely over the window, in place (and `extra` ids that must have a number
 * too, ascending). */
static fr_status number_role(fr_window *w, int32_t *column, int64_t stream_ids,
                             const int64_t *stream_id, const int64_t *extra, int32_t extras,
                             const int64_t **id_out, int32_t *count_out, fr_error *err) {
    int32_t *number, used = 0;
    int64_t *id;
    TRY(ALLOCATE(number, stream_ids,
                 err)); /* 1 + dense index of a stream index, 0 = not in window */
    for (int32_t i = 0; i < w->events; i++) number[column[i]] = 1;
    for (int64_t k = 0; k < stream_ids; k++) used += number[k];
    fr_status status = TAKE(&w->memory, id, used + extras, err);
    if (status) goto done;
    int32_t count = 0, e = 0; /* merge the two ascending lists, dropping extras the window has */
    for (int64_t k = 0; k < stream_ids; k++) {
        if (!number[k]) continue;
        for (; e < extras && extra[e] <= stream_id[k]; e++)
            if (extra[e] < stream_id[k]) id[count++] = extra[e];
        id[count++] = stream_id[k];
        number[k] = count;
    }
    while (e < extras) id[count++] = extra[e++];
    for (int32_t i = 0; i < w->events; i++) column[i] = number[column[i]] - 1;
    *id_out = id;
    *count_out = count;
done:
    free(number);
    return status;
}

/* ---- index ---- */

/* Stable counting sort: lists the events of `order` (NULL = 0, 1, 2, ...) by key. at[k] is where
 * the list of key k begins. */
static fr_status list_by(fr_window *w, const int32_t *key, int32_t keys, const int32_t *order,
                         int32_t **at_out, int32_t *list, fr_error *err) {
    int32_t *at;
    TRY(TAKE(&w->memory, at, keys + 1, err));
    for (int32_t i = 0; i < w->events; i++) at[key[i]]++;
    for (int32_t k = 0, sum = 0; k <= keys; k++) {
        int32_t count = k < keys ? at[k] : 0;
        at[k] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < w->events; i++) {
        int32_t e = order ? order[i] : i;
        list[at[key[e]]++] = e;
    }
    memmove(at + 1, at,
            (size_t)keys * sizeof *at); /* each at[k] has moved to the end of its list */
    at[0] = 0;
    *at_out = at;
    return FR_OK;
}

/* Both lists are in one array, sources first, so together they are the lists of all nodes. */
static fr_status index_roles(fr_window *w, fr_error *err) {
    size_t n = (size_t)w->events;
    TRY(TAKE(&w->memory, w->source_events, 2 * n, err));
    w->destination_events = w->source_events + n;
    TRY(list_by(w, w->source, w->sources, NULL, &w->source_at, w->source_events, err));
    return list_by(w, w->destination, w->destinations, NULL, &w->destination_at,
                   w->destination_events, err);
}

static bool starts_pair(const fr_window *w, int32_t place) {
    if (place == 0) return true;
    int32_t here = w->pair_events[place], there = w->pair_events[place - 1];
    return w->source[here] != w->source[there] || w->destination[here] != w->destination[there];
}

static fr_status index_pairs(fr_window *w, fr_error *err) {
    /* by destination, then stably by source: ordered by (source, destination, event) */
    int32_t *source_at;
    TRY(TAKE(&w->memory, w->pair_events, w->events, err));
    TRY(list_by(w, w->source, w->sources, w->destination_events, &source_at, w->pair_events, err));
    for (int32_t place = 0; place < w->events; place++) w->pairs += starts_pair(w, place);
    TRY(TAKE(&w->memory, w->pair_at, w->pairs + 1, err));
    TRY(TAKE(&w->memory, w->pair_destination, w->pairs, err));
    TRY(TAKE(&w->memory, w->firsts, w->pairs, err));
    bool *is_first;
    TRY(ALLOCATE(is_first, w->events, err));
    for (int32_t place = 0, pair = 0; place < w->events; place++) {
        if (!starts_pair(w, place)) continue;
        int32_t event = w->pair_events[place];
        is_first[event] = true;
        w->pair_at[pair] = place;
        w->pair_destination[pair++] = w->destination[event];
    }
    w->pair_at[w->pairs] = w->events;

    /* so far source_at was a list of places; from here on it counts pairs */
    w->source_pair_at = source_at;
    int32_t pairs = 0;
    for (int32_t u = 0; u < w->sources; u++) {
        w->source_pair_at[u] = pairs;
        for (int32_t k = w->source_at[u]; k < w->source_at[u + 1]; k++)
            if (is_first[w->source_events[k]]) w->firsts[pairs++] = w->source_events[k];
    }
    w->source_pair_at[w->sources] = pairs;
    free(is_first);
    return FR_OK;
}

/* Shared ids: destinations come first, then the sources that are not destinations. */
static fr_status number_nodes(fr_window *w, fr_error *err) {
    w->nodes = w->destinations;
    TRY(TAKE(&w->memory, w->source_node, w->sources, err));
    TRY(TAKE(&w->memory, w->node_id, (size_t)w->destinations + (size_t)w->sources, err));
    memcpy(w->node_id, w->destination_id, (size_t)w->destinations * sizeof *w->node_id);
    for (int32_t u = 0, v = 0; u < w->sources; u++) {
        while (v < w->destinations && w->destination_id[v] < w->source_id[u]) v++;
        bool met = v < w->destinations && w->destination_id[v] == w->source_id[u];
        if (!met) w->node_id[w->nodes] = w->source_id[u];
        w->source_node[u] = met ? v : w->nodes++;
    }
    return FR_OK;
}

/* The events of every node, in both roles. */
static fr_status list_nodes(fr_window *w, fr_error *err) {
    int64_t *at = w->node_at, sum = 0;
    int32_t *list;
    TRY(TAKE(&w->memory, list, 2 * (size_t)w->events, err));
    for (int32_t i = 0; i < w->events; i++) {
        at[w->source_node[w->source[i]]]++;
        at[w->destination[i]]++;
    }
    for (int32_t x = 0; x < w->nodes; x++) {
        int64_t count = at[x];
        at[x] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < w->events; i++) {
        list[at[w->source_node[w->source[i]]]++] = i;
        list[at[w->destination[i]]++] = i;
    }
    memmove(at + 1, at, (size_t)w->nodes * sizeof *at);
    at[0] = 0;
    w->node_events = list;
    return FR_OK;
}

static fr_status index_nodes(fr_window *w, fr_error *err) {
    bool shared = w->stream->facts.shared_ids;
    if (w->sources > INT32_MAX - w->destinations)
        return fail(err, FR_EINPUT, "%s: %d sources and %d destinations, expected at most %d",
                    w->stream->name, w->sources, w->destinations, INT32_MAX);
    w->first_destination = shared ? 0 : w->sources;
    w->nodes = w->sources + w->destinations;
    if (shared) TRY(number_nodes(w, err));
    TRY(TAKE(&w->memory, w->node_at, (size_t)w->nodes + 1, err));
    if (shared) return list_nodes(w, err);
    for (int32_t u = 0; u < w->sources; u++) w->node_at[u] = w->source_at[u];
    for (int32_t v = 0; v <= w->destinations; v++)
        w->node_at[w->sources + v] = (int64_t)w->events + w->destination_at[v];
    w->node_events = w->source_events;
    return FR_OK;
}

/* ---- catalog ---- */

static int read_catalog_kind(const char *catalog) {
    static const struct {
        const char *word;
        int kind;
    } kinds[] = {{"fixed", CATALOG_FIXED},         {"train", CATALOG_FIXED},
                 {"time", CATALOG_TIME},           {"all", CATALOG_ALL},
                 {"train+val", CATALOG_TRAIN_VAL}, {"range", CATALOG_RANGE}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(catalog, kinds[k].word)) return kinds[k].kind;
    return CATALOG_FILE;
}

/* All ids from the smallest destination of the stream to the largest, with or without events. */
static fr_status list_range(const fr_stream *s, id_list *out, fr_error *err) {
    int64_t first = s->destination_id[0], last = s->destination_id[s->facts.destinations - 1];
    if (last - first >= INT32_MAX)
        return fail(err, FR_EINPUT,
                    "%s: destination ids from %lld to %lld, expected fewer than %d for catalog "
                    "range",
                    s->name, (long long)first, (long long)last, INT32_MAX);
    for (int64_t id = first; id <= last; id++) ARRAY_PUSH(out, id, err);
    return FR_OK;
}

/* Ids that are candidates whether they have events or not. */
static fr_status list_candidates(const fr_window *w, id_list *out, fr_error *err) {
    if (w->catalog_kind == CATALOG_FILE) return catalog_read(w->protocol.catalog, out, err);
    return w->catalog_kind == CATALOG_RANGE ? list_range(w->stream, out, err) : FR_OK;
}

/* Events whose destinations make the catalog; the time-available one starts from the fixed one. */
static int32_t catalog_events(const fr_window *w) {
    switch (w->catalog_kind) {
    case CATALOG_TRAIN_VAL: return w->train + w->val;
    case CATALOG_ALL: return w->events;
    default: return w->train;
    }
}

static fr_status build_catalog(fr_window *w, const id_list *listed, fr_error *err) {
    TRY(TAKE(&w->memory, w->catalog_place, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) w->catalog_place[v] = -1;
    if (w->catalog_kind == CATALOG_FILE || w->catalog_kind == CATALOG_RANGE) {
        for (int32_t v = 0, k = 0; v < w->destinations && k < (int32_t)listed->count; v++)
            if (w->destination_id[v] == listed->at[k]) w->catalog_place[v] = k++;
    } else {
        int32_t events = catalog_events(w);
        for (int32_t i = 0; i < events; i++) w->catalog_place[w->destination[i]] = 0;
    }
    return window_list_catalog(w, err);
}

fr_status window_list_catalog(fr_window *w, fr_error *err) {
    w->catalog_size = 0;
    for (int32_t v = 0; v < w->destinations; v++)
        if (window_listed(w, v)) w->catalog_place[v] = w->catalog_size++;
    TRY(TAKE(&w->memory, w->catalog, w->catalog_size, err));
    sha256 hash;
    TRY(sha256_start(&hash, err));
    for (int32_t v = 0; v < w->destinations; v++) {
        if (!window_listed(w, v)) continue;
        w->catalog[w->catalog_place[v]] = v;
        sha256_add(&hash, &w->destination_id[v], sizeof *w->destination_id);
    }
    sha256_end(&hash, w->catalog_sha256);
    return FR_OK;
}

/* ---- opening ---- */

static fr_status build(fr_window *w, const fr_context *context, fr_error *err) {
    const fr_stream *s = w->stream;
    id_list listed = {0};
    int32_t *source, *destination;
    TRY(cut_window(w, context, err));
    TRY(copy_events(w, &source, &destination, err));
    TRY(split_parts(w, err));
    fr_status status = list_candidates(w, &listed, err);
    if (!status)
        status = number_role(w, source, s->facts.sources, s->source_id, NULL, 0, &w->source_id,
                             &w->sources, err);
    if (!status)
        status = number_role(w, destination, s->facts.destinations, s->destination_id, listed.at,
                             (int32_t)listed.count, &w->destination_id, &w->destinations, err);
    if (!status) status = build_catalog(w, &listed, err);
    free(listed.at);
    return status ? status : window_index(w, err);
}

fr_status window_index(fr_window *w, fr_error *err) {
    TRY(split_cuts(w, err));
    TRY(index_roles(w, err));
    TRY(index_pairs(w, err));
    return index_nodes(w, err);
}

fr_status fr_window_open(const fr_stream *stream, const fr_protocol *protocol,
                         const fr_context *context, fr_window **out, fr_error *err) {
    fr_protocol own;
    NEED(out, err);
    *out = NULL;
    NEED(stream, err);
    TRY(options_settle(fr_protocol_options, protocol, &own, sizeof own, err));
    TRY(split_check(&own, err));
    fr_window *w;
    TRY(ALLOCATE(w, 1, err));
    w->stream = stream;
    w->protocol = own;
    w->protocol.catalog = strdup(own.catalog ? own.catalog : "fixed");
    w->protocol.split = strdup(own.split ? own.split : "share");
    w->protocol.order = strdup(own.order ? own.order : "stream");
    bool whole = w->protocol.catalog && w->protocol.split && w->protocol.order;
    if (whole) w->catalog_kind = read_catalog_kind(w->protocol.catalog);
    fr_status status = whole ? build(w, context, err) : fail_memory(err, 0);
    if (status)
        fr_window_close(w);
    else
        *out = w;
    return status;
}

void fr_window_hold(fr_window *w) {
    if (w) w->holders++;
}

void fr_window_close(fr_window *w) {
    if (!w || w->holders-- > 0) return;
    arena_free(&w->memory);
    fr_options_free(fr_protocol_options, &w->protocol);
    free(w);
}

fr_window_facts fr_window_get(const fr_window *w) {
    if (!w) return (fr_window_facts){0};
    int32_t met = 0; /* a catalog file may name destinations without events */
    for (int32_t v = 0; v < w->destinations; v++)
        met += w->destination_at[v + 1] > w->destination_at[v];
    fr_window_facts f = {.events = w->events,
                         .train = w->train,
                         .val = w->val,
                         .test = w->events - w->train - w->val,
                         .from = w->from,
                         .to = w->to,
                         .first = w->first,
                         .sources = w->sources,
                         .destinations = met,
                         .candidates = w->destinations,
                         .catalog_size = w->catalog_size,
                         .index_bytes = sizeof *w + w->memory.used};
    memcpy(f.catalog_sha256, w->catalog_sha256, sizeof f.catalog_sha256);
    return f;
}

const int64_t *fr_window_candidates(const fr_window *w, int64_t *count) {
    if (count) *count = w ? w->destinations : 0;
    return w ? w->destination_id : NULL;
}

fr_status window_check_labels(const fr_window *w, const char *what, fr_error *err) {
    if (!w->relabelled) return FR_OK;
    return fail(err, FR_EINPUT, "%s knows destinations by their ids, which are relabelled here",
                what);
}

/* ---- queries ---- */

bool window_candidate(const fr_window *w, int32_t event, int32_t destination) {
    return destination != window_self(w, w->source[event]) &&
           window_available(w, destination, window_cut(w, event));
}

/* True if it is in the catalog of the event, before the filter. */
static bool is_listed(const fr_window *w, int32_t event, int32_t destination) {
    if (w->catalog_kind == CATALOG_TIME) return window_candidate(w, event, destination);
    return window_listed(w, destination) && destination != window_self(w, w->source[event]);
}

bool window_ranked(const fr_window *w, int32_t event, int32_t destination) {
    return is_listed(w, event, destination) && !window_filtered(w, event, destination);
}

bool window_covered(const fr_window *w, int32_t event) {
    return is_listed(w, event, w->destination[event]);
}

fr_history window_rivals(const fr_window *w, int32_t event) {
    if (w->protocol.filter != FR_FILTER_SAME_TIME) return (fr_history){0};
    int32_t u = w->source[event], from = w->source_at[u], count = w->source_at[u + 1] - from;
    const int32_t *list = w->source_events + from;
    int32_t first = events_below(list, count, event), last = first;
    while (first > 0 && list[first - 1] >= w->from && w->time[list[first - 1]] == w->time[event])
        first--;
    while (last < count && list[last] < w->to && w->time[list[last]] == w->time[event]) last++;
    return (fr_history){list + first, last - first};
}

bool window_filtered(const fr_window *w, int32_t event, int32_t destination) {
    fr_history rivals = window_rivals(w, event);
    if (destination == w->destination[event]) return false;
    for (int32_t k = 0; k < rivals.count; k++)
        if (w->destination[rivals.event[k]] == destination) return true;
    return false;
}

fr_status window_check_negatives(const fr_window *w, fr_error *err) {
    int32_t least =
        w->source_node ? 3 : 2; /* with shared ids a source is never its own candidate */
    if (w->catalog_size >= least) return FR_OK;
    return fail(err, FR_EINPUT,
                "a catalog of %d destinations, expected at least %d to draw a negative",
                w->catalog_size, least);
}

int32_t window_draw_negative(const fr_window *w, bool whole, rng_key key, int32_t event) {
    int32_t self = window_self(w, w->source[event]);
    for (uint32_t draw = 0;; draw++) {
        uint32_t at = rng_below(key, (uint64_t)event, draw, (uint32_t)window_pool(w, whole));
        int32_t v = window_pooled(w, whole, (int32_t)at);
        if (v != w->destination[event] && v != self) return v;
    }
}

int32_t events_below(const int32_t *event, int32_t count, int32_t cut) {
    int32_t low = 0;
    while (count > 0) {
        int32_t half = count / 2;
        if (event[low + half] < cut) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

/* The last `most` entries below `cut` of an ascending list. */
static fr_history last_below(const int32_t *list, int32_t entries, int32_t cut, int32_t most) {
    int32_t count = events_below(list, entries, cut);
    int32_t skip = count > most ? count - most : 0;
    return (fr_history){list + skip, count - skip};
}

fr_history window_source_history(const fr_window *w, int32_t source, int32_t cut, int32_t most) {
    int32_t from = w->source_at[source];
    return last_below(w->source_events + from, w->source_at[source + 1] - from, cut, most);
}

fr_history window_destination_history(const fr_window *w, int32_t destination, int32_t cut,
                                      int32_t most) {
    int32_t from = w->destination_at[destination];
    return last_below(w->destination_events + from, w->destination_at[destination + 1] - from, cut,
                      most);
}

fr_history window_node_history(const fr_window *w, int32_t node, int32_t cut, int32_t most) {
    fr_history all = window_node_events(w, node);
    return last_below(all.event, all.count, cut, most);
}

int32_t window_pair(const fr_window *w, int32_t source, int32_t destination) {
    int32_t from = w->source_pair_at[source], to = w->source_pair_at[source + 1];
    int32_t pair = from + events_below(w->pair_destination + from, to - from, destination);
    return pair < to && w->pair_destination[pair] == destination ? pair : -1;
}

fr_history window_pair_history(const fr_window *w, int32_t source, int32_t destination,
                               int32_t cut) {
    int32_t pair = window_pair(w, source, destination);
    if (pair < 0) return (fr_history){0};
    int32_t from = w->pair_at[pair];
    return last_below(w->pair_events + from, w->pair_at[pair + 1] - from, cut, INT32_MAX);
}

fr_history window_met(const fr_window *w, int32_t source, int32_t cut) {
    int32_t from = w->source_pair_at[source];
    return last_below(w->firsts + from, w->source_pair_at[source + 1] - from, cut, INT32_MAX);
}

/* ---- the same for programs, which may ask for things that do not exist ---- */

fr_columns fr_window_columns(const fr_window *w) {
    if (!w) return (fr_columns){0};
    int64_t width = w->stream->facts.feature_width;
    return (fr_columns){.source = w->source,
                        .destination = w->destination,
                        .time = w->time,
                        .start = w->start,
                        .features = w->feature,
                        .feature_width = width,
                        .source_id = w->source_id,
                        .destination_id = w->destination_id,
                        .catalog = w->catalog};
}

fr_event fr_window_event(const fr_window *w, int32_t event) {
    if (!w || event < 0 || event >= w->events) return (fr_event){0};
    int64_t width = w->stream->facts.feature_width;
    return (fr_event){.event = event,
                      .source = w->source[event],
                      .destination = w->destination[event],
                      .time = window_time(w, event),
                      .features = w->feature ? w->feature + event * width : NULL};
}

int32_t fr_window_cut(const fr_window *w, int32_t event) {
    if (!w || event < 0) return 0;
    return event < w->events ? window_cut(w, event) : w->events;
}

static bool is_source(const fr_window *w, int32_t source) {
    return w && source >= 0 && source < w->sources;
}

static bool is_destination(const fr_window *w, int32_t destination) {
    return w && destination >= 0 && destination < w->destinations;
}

fr_history fr_window_source_history(const fr_window *w, int32_t source, int32_t before,
                                    int32_t most) {
    if (!is_source(w, source) || most < 0) return (fr_history){0};
    return window_source_history(w, source, fr_window_cut(w, before), most);
}

fr_history fr_window_destination_history(const fr_window *w, int32_t destination, int32_t before,
                                         int32_t most) {
    if (!is_destination(w, destination) || most < 0) return (fr_history){0};
    return window_destination_history(w, destination, fr_window_cut(w, before), most);
}

fr_history fr_window_pair_history(const fr_window *w, int32_t source, int32_t destination,
                                  int32_t before) {
    if (!is_source(w, source) || !is_destination(w, destination)) return (fr_history){0};
    return window_pair_history(w, source, destination, fr_window_cut(w, before));
}

fr_history fr_window_met(const fr_window *w, int32_t source, int32_t before) {
    if (!is_source(w, source)) return (fr_history){0};
    return window_met(w, source, fr_window_cut(w, before));
}
