/* counterfactual.c - see counterfactual.h. */
#include "data/counterfactual.h"

#include <stdlib.h>
#include <string.h>

/* Draws of one event. */
enum { DRAW_SOURCE, DRAW_DESTINATION, DRAW_FEATURES, DRAW_GAP, DRAW_ORDER, DRAW_IDS };

typedef struct builder {
    const fr_window *base;
    const change *c;
    fr_window *w;
    int64_t width;
    int32_t *source, *destination; /* of w */
    double *time;
    float *feature;
} builder;

static rng_key key_of(const change *c, uint32_t draw) {
    return (rng_key){.seed = (uint64_t)c->seed, .purpose = RNG_AUDIT, .epoch = draw};
}

static uint32_t draw_below(const builder *b, int32_t event, uint32_t draw, int32_t count) {
    return rng_below(key_of(b->c, draw), (uint64_t)(b->base->first + event), 0, (uint32_t)count);
}

/* ---- events ---- */

/* A destination of the catalog other than `old`, if there is another one, and than the source. */
static int32_t draw_destination(const builder *b, int32_t event, int32_t source, int32_t old) {
    const fr_window *w = b->base;
    rng_key key = key_of(b->c, DRAW_DESTINATION);
    int32_t self = window_self(w, source), v = old;
    for (uint32_t draw = 0; draw < 64; draw++) {
        v = w->catalog[rng_below(key, (uint64_t)(w->first + event), draw,
                                 (uint32_t)w->catalog_size)];
        if (v != old && v != self) break;
    }
    return v;
}

/* Takes the features of some training event, and changes them if they equal the old ones. */
static void draw_features(const builder *b, int32_t event) {
    if (!b->width) return;
    size_t bytes = (size_t)b->width * sizeof *b->feature;
    const float *old = b->base->feature + event * b->width;
    const float *from =
        b->base->feature + draw_below(b, event, DRAW_FEATURES, b->base->train) * b->width;
    float *to = b->feature + event * b->width;
    bool same = !memcmp(old, from, bytes);
    memcpy(to, from, bytes);
    for (int64_t k = 0; same && k < b->width; k++) to[k] += 1;
}

static void redraw(const builder *b, int32_t event) {
    b->source[event] = (int32_t)draw_below(b, event, DRAW_SOURCE, b->base->sources);
    b->destination[event] =
        draw_destination(b, event, b->source[event], b->base->destination[event]);
    draw_features(b, event);
}

/* Source and time, which are the query, stay as they are. */
static void redraw_answer(const builder *b, int32_t event, int32_t old) {
    b->destination[event] = draw_destination(b, event, b->source[event], old);
    draw_features(b, event);
}

static void redraw_time(const builder *b, int32_t event) {
    const double *time = b->base->time;
    int32_t some = 1 + (int32_t)draw_below(b, event, DRAW_GAP, b->base->events - 1);
    b->time[event] = b->time[event - 1] + (time[some] - time[some - 1]);
}

static fr_status permute(const builder *b, int32_t from, fr_error *err) {
    const fr_window *base = b->base;
    int32_t count = base->events - from, *order;
    TRY(ALLOCATE(order, count + 1, err));
    for (int32_t k = 0; k < count; k++) order[k] = from + k;
    rng_shuffle(key_of(b->c, DRAW_ORDER), order, count, sizeof *order);
    for (int32_t k = 0; k < count; k++) {
        b->source[from + k] = base->source[order[k]];
        b->destination[from + k] = base->destination[order[k]];
        if (b->width)
            memcpy(b->feature + (from + k) * b->width, base->feature + order[k] * b->width,
                   (size_t)b->width * sizeof *b->feature);
    }
    free(order);
    return FR_OK;
}

/* The source with the same id as each destination, -1 = none; the caller frees it. */
static fr_status find_twins(const fr_window *w, int32_t **out, fr_error *err) {
    int32_t *twin;
    TRY(ALLOCATE(twin, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) twin[v] = -1;
    for (int32_t u = 0; u < w->sources; u++)
        if (window_self(w, u) >= 0) twin[window_self(w, u)] = u;
    *out = twin;
    return FR_OK;
}

static fr_status relabel(const builder *b, fr_error *err) {
    const fr_window *base = b->base;
    const int32_t *place = b->c->place;
    int32_t *twin;
    TRY(find_twins(base, &twin, err));
    for (int32_t i = 0; i < base->events; i++) {
        int32_t self = window_self(base, base->source[i]);
        b->destination[i] = place[base->destination[i]];
        if (self >= 0) b->source[i] = twin[place[self]];
    }
    free(twin);
    return FR_OK;
}

static fr_status change_events(const builder *b, fr_error *err) {
    const change *c = b->c;
    int32_t last = b->w->events;
    switch (c->kind) {
    case CHANGE_REDRAWN:
        for (int32_t i = c->from + 1; i < last; i++) redraw(b, i), redraw_time(b, i);
        break;
    case CHANGE_PERMUTED: TRY(permute(b, c->from + 1, err)); break;
    case CHANGE_SOME:
        for (int32_t i = c->from; i < c->to; i++) redraw(b, i);
        return FR_OK;
    case CHANGE_LABELS:
        for (int32_t i = c->from; i < c->to; i++) redraw_answer(b, i, -1);
        return FR_OK;
    case CHANGE_IDS: return relabel(b, err);
    case CHANGE_REMOVED: break;
    case CHANGE_FEWER:
    case CHANGE_MORE: return FR_OK;
    }
    redraw_answer(b, c->from, b->base->destination[c->from]);
    return FR_OK;
}

/* Copies of the columns that will change. */
static fr_status copy_columns(builder *b, fr_error *err) {
    fr_window *w = b->w;
    size_t n = (size_t)w->events, width = (size_t)b->width;
    TRY(arena_take_raw(&w->memory, n, sizeof *b->source, (void **)&b->source, err));
    TRY(arena_take_raw(&w->memory, n, sizeof *b->destination, (void **)&b->destination, err));
    TRY(arena_take_raw(&w->memory, n, sizeof *b->time, (void **)&b->time, err));
    memcpy(b->source, b->base->source, n * sizeof *b->source);
    memcpy(b->destination, b->base->destination, n * sizeof *b->destination);
    memcpy(b->time, b->base->time, n * sizeof *b->time);
    w->source = b->source;
    w->destination = b->destination;
    w->time = b->time;
    if (!width || b->c->kind >= CHANGE_IDS) return FR_OK;
    TRY(arena_take_raw(&w->memory, n * width, sizeof *b->feature, (void **)&b->feature, err));
    memcpy(b->feature, b->base->feature, n * width * sizeof *b->feature);
    w->feature = b->feature;
    return FR_OK;
}

/* ---- candidates ---- */

static fr_status list_ids(const builder *b, fr_error *err) {
    fr_window *w = b->w;
    const fr_window *base = b->base;
    int32_t count = base->destinations;
    int64_t last = base->destination_id[count - 1], *id;
    if (base->source_id[base->sources - 1] > last) last = base->source_id[base->sources - 1];
    w->destination_id = base->destination_id;
    if (b->c->kind != CHANGE_MORE) return FR_OK;
    if (last > INT64_MAX - b->c->more || count > INT32_MAX - b->c->more)
        return fail(err, FR_EINPUT, "destination ids up to %lld leave no room for more",
                    (long long)last);
    TRY(TAKE(&w->memory, id, count + b->c->more, err));
    memcpy(id, base->destination_id, (size_t)count * sizeof *id);
    for (int32_t k = 0; k < b->c->more; k++) id[count + k] = last + 1 + k;
    w->destination_id = id;
    w->destinations = count + b->c->more;
    return FR_OK;
}

static fr_status list_catalog(const builder *b, fr_error *err) {
    fr_window *w = b->w;
    const fr_window *base = b->base;
    const change *c = b->c;
    TRY(TAKE(&w->memory, w->catalog_place, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++) w->catalog_place[v] = -1;
    for (int32_t v = 0; v < base->destinations; v++) {
        bool listed = window_listed(base, v) && (c->kind != CHANGE_FEWER || c->listed[v]);
        if (listed) w->catalog_place[c->kind == CHANGE_IDS ? c->place[v] : v] = 0;
    }
    for (int32_t v = base->destinations; v < w->destinations; v++) w->catalog_place[v] = 0;
    return window_list_catalog(w, err);
}

/* ---- opening ---- */

static fr_status copy_text(char **text, fr_error *err) {
    *text = strdup(*text);
    return *text ? FR_OK : fail_memory(err, 0);
}

/* Facts of the base that no change touches. */
static fr_status begin(builder *b, fr_error *err) {
    const fr_window *base = b->base;
    *b->w = (fr_window){.stream = base->stream,
                        .catalog_kind = base->catalog_kind,
                        .first = base->first,
                        .events = base->events,
                        .train = base->train,
                        .val = base->val,
                        .from = base->from,
                        .to = base->to,
                        .sources = base->sources,
                        .destinations = base->destinations,
                        .source_id = base->source_id,
                        .start = base->start,
                        .feature = base->feature,
                        .known_events = base->known_events,
                        .relabelled = base->relabelled || b->c->kind == CHANGE_IDS,
                        .counterfactual = true};
    fr_protocol own = base->protocol;
    char **texts[] = {&own.catalog, &own.split, &own.order};
    fr_status status = FR_OK;
    for (int k = 0; k < 3; k++)
        if (status)
            *texts[k] = NULL;
        else
            status = copy_text(texts[k], err);
    b->w->protocol = own;
    return status;
}

static fr_status build(builder *b, fr_error *err) {
    fr_window *w = b->w;
    TRY(begin(b, err));
    if (b->c->kind == CHANGE_REMOVED) {
        w->events = b->c->from + 1;
        if (w->to > w->events) w->to = w->events;
        if (w->val > w->events - w->train) w->val = w->events - w->train;
    }
    TRY(copy_columns(b, err));
    TRY(change_events(b, err));
    TRY(list_ids(b, err));
    TRY(list_catalog(b, err));
    return window_index(w, err);
}

fr_status counterfactual_open(const fr_window *base, const change *c, fr_window **out,
                              fr_error *err) {
    builder b = {
        .base = base, .c = c, .width = base->feature ? base->stream->facts.feature_width : 0};
    *out = NULL;
    TRY(ALLOCATE(b.w, 1, err));
    fr_status status = build(&b, err);
    if (status)
        fr_window_close(b.w);
    else
        *out = b.w;
    return status;
}

fr_status counterfactual_places(const fr_window *base, int64_t seed, int32_t *place,
                                fr_error *err) {
    int32_t *twin, *list, count;
    TRY(find_twins(base, &twin, err));
    fr_status status = ALLOCATE(list, base->destinations, err);
    for (int shared = 0; !status && shared < 2; shared++) {
        rng_key key = {
            .seed = (uint64_t)seed, .purpose = RNG_AUDIT, .epoch = DRAW_IDS + (uint32_t)shared};
        count = 0;
        for (int32_t v = 0; v < base->destinations; v++)
            if ((twin[v] >= 0) == shared) list[count++] = v;
        rng_shuffle(key, list, count, sizeof *list);
        for (int32_t v = 0, k = 0; v < base->destinations; v++)
            if ((twin[v] >= 0) == shared) place[v] = list[k++];
    }
    free(list);
    free(twin);
    return status;
}
