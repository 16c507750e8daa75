/* leaky.c - a plug-in with planted leaks, one at a time, which audits must find; leak=none is its
 * clean twin. It scores by how often the pair has met and how often the destination has
 * occurred, through the public interface alone.
 */
#include "fullrank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum leak {
    NONE,
    NEXT,       /* looks ahead by one event: 1 in `rate` scores changes by at most `size` */
    OWN,        /* the same with the event itself */
    LABEL,      /* the event's own destination comes first */
    FEATURES,   /* reads the event's own features */
    TOTAL,      /* popularity of the whole window */
    LENGTH,     /* knows how many events there are */
    SAME_TIME,  /* counts meetings of the same time, or batch */
    MEMORY,     /* a memory that takes events of the same time, or batch, before scoring */
    PADDING,    /* depends on the longest history of the call */
    SOFTMAX,    /* normalises over the candidates */
    LONGEST,    /* knows the catalog only, and pads to its longest history */
    COUNTER,    /* scoring changes the state */
    ORDER,      /* larger ids score higher */
    NAN_SCORES, /* one score in a hundred is NaN */
    SIGMOID,    /* saturates */
    CLOCK       /* another value each time it is opened */
};

typedef struct settings {
    int leak;
    bool stateful, catalog_only;
    int64_t rate, salt;
    double size;
} settings;

static const fr_option options[] = {
    {"leak", FR_OPTION_CHOICE, "none",
     "none|next|own|label|features|total|length|same-time|memory|padding|softmax|longest|counter|"
     "order|nan|sigmoid|clock",
     0, 0, offsetof(settings, leak), "what is wrong with it"},
    {"stateful", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(settings, stateful),
     "counts what it observes"},
    {"catalog-only", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(settings, catalog_only),
     "scores the catalog only"},
    {"rate", FR_OPTION_INT, "1000", "N", 1, 1e9, offsetof(settings, rate),
     "leak=next and own: one score in N"},
    {"salt", FR_OPTION_INT, "0", "N", 0, 1e9, offsetof(settings, salt), "which ones"},
    {"size", FR_OPTION_REAL, "1e-3", "X", 0, 1, offsetof(settings, size), "by so much"},
    {0}};

typedef struct leaky {
    const fr_window *w;
    fr_columns c;
    fr_window_facts facts;
    settings s;
    int32_t *met; /* [sources, candidates] meetings observed, if it remembers */
    int64_t asked, opened;
} leaky;

static uint64_t mix(uint64_t x) {
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

static double uniform(uint64_t x) { return (double)(mix(x) >> 11) * 0x1p-53; }

static int32_t pair_count(const leaky *l, const fr_query *q, int32_t v) {
    if (l->met) return l->met[q->source * l->facts.candidates + v];
    return fr_window_pair_history(l->w, q->source, v, q->event).count;
}

/* Meetings of the pair that are not history of the event yet. */
static int32_t hidden_count(const leaky *l, const fr_query *q, int32_t v) {
    int32_t count = 0;
    for (int32_t i = fr_window_cut(l->w, q->event); i < q->event; i++)
        count += l->c.source[i] == q->source && l->c.destination[i] == v;
    return count;
}

/* The contribution of an event that must not be known, to a few scores. */
static double peek(const leaky *l, const fr_query *q, int32_t v, int32_t event) {
    uint64_t which = mix((uint64_t)q->event << 32 | (uint32_t)v) ^ (uint64_t)l->s.salt << 20;
    if (event >= l->facts.events || mix(which) % (uint64_t)l->s.rate) return 0;
    uint64_t seen = (uint64_t)l->c.destination[event] << 32 | (uint32_t)l->c.source[event];
    return l->s.size * uniform(seen + 77);
}

static double clean(const leaky *l, const fr_query *q, int32_t v) {
    int32_t times = fr_window_destination_history(l->w, v, q->event, INT32_MAX).count;
    return pair_count(l, q, v) + times / (times + 10.0);
}

static double one_score(leaky *l, const fr_query *q, int32_t v, int32_t longest) {
    double x = clean(l, q, v);
    fr_event self = fr_window_event(l->w, q->event);
    switch ((enum leak)l->s.leak) {
    case NEXT: return x + peek(l, q, v, q->event + 1);
    case OWN: return x + peek(l, q, v, q->event);
    case LABEL: return x + 100 * (v == self.destination);
    case FEATURES:
        return x + (self.features ? 1e-3 * (double)self.features[0] * uniform((uint64_t)v) : 0);
    case TOTAL:
        return x +
               1e-3 * fr_window_destination_history(l->w, v, (int32_t)l->facts.events, INT32_MAX)
                          .count;
    case LENGTH: return x / (double)l->facts.events;
    case SAME_TIME:
    case MEMORY: return x + hidden_count(l, q, v);
    case PADDING:
    case LONGEST: return x + 1e-3 * longest;
    case COUNTER: return x + 1e-3 * (double)l->asked;
    case ORDER: return x + 1e-4 * v;
    case NAN_SCORES: return (q->event + v) % 100 ? x : NAN;
    case SIGMOID: return 1 / (1 + exp(-4 * x - 12));
    case CLOCK: return x + 1e-3 * (double)l->opened * uniform((uint64_t)v);
    default: return x;
    }
}

/* The length to which a program that pads would pad. */
static int32_t find_longest(const leaky *l, const fr_query *queries, int count) {
    int32_t longest = 0;
    for (int k = 0; l->s.leak == PADDING && k < count; k++) {
        fr_history h =
            fr_window_source_history(l->w, queries[k].source, queries[k].event, INT32_MAX);
        if (h.count > longest) longest = h.count;
    }
    for (int64_t k = 0; l->s.leak == LONGEST && k < l->facts.catalog_size; k++) {
        fr_history h =
            fr_window_destination_history(l->w, l->c.catalog[k], queries->event, INT32_MAX);
        if (h.count > longest) longest = h.count;
    }
    return longest;
}

static fr_status score(void *state, const fr_query *queries, int count, int worker, float *scores,
                       fr_error *err) {
    (void)worker, (void)err;
    leaky *l = state;
    int64_t row = l->s.catalog_only ? l->facts.catalog_size : l->facts.candidates;
    int32_t longest = find_longest(l, queries, count);
    for (int k = 0; k < count; k++, scores += row) {
        double sum = 0;
        if (l->s.leak == LONGEST) longest = find_longest(l, &queries[k], 1);
        for (int64_t c = 0; c < row; c++) {
            int32_t v = l->s.catalog_only ? l->c.catalog[c] : (int32_t)c;
            scores[c] = (float)one_score(l, &queries[k], v, longest);
            sum += exp((double)scores[c]);
        }
        for (int64_t c = 0; l->s.leak == SOFTMAX && c < row; c++)
            scores[c] = (float)(exp((double)scores[c]) / sum);
    }
    if (l->s.leak == COUNTER) l->asked++;
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    leaky *l = state;
    l->met[event->source * l->facts.candidates + event->destination]++;
    return FR_OK;
}

static void close_leaky(void *state) {
    leaky *l = state;
    free(l->met);
    free(l);
}

static fr_status open_leaky(const fr_window *window, const void *from, int64_t seed,
                            fr_scorer_definition *out, fr_error *err) {
    static int64_t opened;
    (void)seed;
    leaky *l = calloc(1, sizeof *l);
    if (!l) return fr_fail(err, FR_ENOMEM, "out of memory");
    *l = (leaky){.w = window,
                 .c = fr_window_columns(window),
                 .facts = fr_window_get(window),
                 .s = *(const settings *)from,
                 .opened = opened++};
    l->s.stateful |= l->s.leak == MEMORY;
    l->s.catalog_only |= l->s.leak == LONGEST;
    out->state = l;
    out->close = close_leaky;
    out->score = score;
    out->catalog_only = l->s.catalog_only;
    bool one = l->s.stateful || l->s.leak == COUNTER;
    out->many = one ? 1 : 200;
    out->workers = one ? 1 : FR_WORKERS_ANY;
    if (!l->s.stateful) return FR_OK;
    out->observe = observe;
    l->met = calloc((size_t)(l->facts.sources * l->facts.candidates), sizeof *l->met);
    return l->met ? FR_OK : fr_fail(err, FR_ENOMEM, "out of memory");
}

static const fr_plugin plugin = {FR_PLUGIN_ABI,
                                 {"leaky", "planted leaks for tests",
                                  "Counts meetings; leak= says what is wrong with it.", options,
                                  sizeof(settings), open_leaky}};

FR_PLUGIN const fr_plugin *fullrank_plugin(void);
FR_PLUGIN const fr_plugin *fullrank_plugin(void) { return &plugin; }
