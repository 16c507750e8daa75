/* synth.c - see synth.h; the distribution in formulas is in docs/synth.md.
 *
 * Every component is a table of running sums. Drawing is a binary search in it and its probability
 * is the difference of two neighbours, so synth_probability returns exactly the numbers that the
 * draw uses. Popularity drifts in STEPS steps over the duration. All steps are computed in advance,
 * so they are not part of the state, and events take no time for the drift.
 *
 * World tables take their random numbers from (seed, RNG_SYNTH_WORLD, table), events from (seed,
 * RNG_SYNTH_EVENT, number of the event); the order in which things are computed does not matter.
 */
#include "data/synth.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 256 }; /* of popularity; changing this or a draw below changes all streams */

enum { WORLD_SOURCES, WORLD_HABITS, WORLD_DESTINATIONS, WORLD_DRIFT, WORLD_SUCCESSORS };
enum { DRAW_GAP, DRAW_BURST, DRAW_SOURCE, DRAW_COMPONENT, DRAW_WITHIN };

#define PI              3.14159265358979323846
#define SECONDS_PER_DAY 86400.0

#define FIELD(name) offsetof(synth_parameters, name)
const fr_option synth_options[] = {
    {"seed", FR_OPTION_INT, "1", "N", 0, 0x1p53, FIELD(seed), "seed of the random numbers"},
    {"events", FR_OPTION_INT, "6000", "N", 1, 1e12, FIELD(events), "length of the stream"},
    {"sources", FR_OPTION_INT, "200", "N", 1, 1e7, FIELD(sources), "sources that may occur"},
    {"destinations", FR_OPTION_INT, "100", "N", 2, 1e6, FIELD(destinations),
     "destinations that may occur"},
    {"repeat", FR_OPTION_REAL, "0.7", "P", 0, 1, FIELD(repeat),
     "probability that a source returns to a destination of its own past"},
    {"repeat-spread", FR_OPTION_REAL, "0", "X", 0, 10, FIELD(repeat_spread),
     "how much this probability differs between sources (standard deviation of its "
     "logit)"},
    {"recency", FR_OPTION_REAL, "1", "X", 0, 10, FIELD(recency),
     "a source returns to its k-th last event with weight k^-X"},
    {"memory", FR_OPTION_INT, "64", "N", 1, 1e5, FIELD(memory),
     "number of past events that a source can return to"},
    {"follow", FR_OPTION_REAL, "0.5", "P", 0, 1, FIELD(follow),
     "probability that a source that does not return goes to a successor of its last "
     "destination"},
    {"successors", FR_OPTION_INT, "8", "N", 1, 1000, FIELD(successors),
     "successors of a destination"},
    {"reach", FR_OPTION_INT, "99", "N", 1, 1e6, FIELD(reach),
     "successors of v are in v+1 .. v+N: small N is like a course, large N is anywhere"},
    {"successor-skew", FR_OPTION_REAL, "1", "X", 0, 10, FIELD(successor_skew),
     "the k-th successor has weight k^-X"},
    {"popularity-skew", FR_OPTION_REAL, "0.8", "X", 0, 10, FIELD(popularity_skew),
     "the k-th most popular destination has weight k^-X before drift"},
    {"drift", FR_OPTION_REAL, "1", "X", 0, 10, FIELD(drift),
     "standard deviation of the drifting logarithm of popularity"},
    {"drift-memory", FR_OPTION_REAL, "0.2", "SHARE", 1e-6, 1e6, FIELD(drift_memory),
     "share of the duration after which the drift's correlation is 1/e"},
    {"activity-skew", FR_OPTION_REAL, "0.8", "X", 0, 10, FIELD(activity_skew),
     "the k-th most active source has weight k^-X"},
    {"cohort", FR_OPTION_REAL, "1", "SHARE", 0, 1, FIELD(cohort),
     "share of the sources that are present at a time; they come and go in the order of "
     "their ids"},
    {"burst", FR_OPTION_REAL, "0.7", "P", 0, 1, FIELD(burst),
     "probability that the source is that of a recent event"},
    {"burst-reach", FR_OPTION_INT, "500", "N", 2, 1e7, FIELD(burst_reach),
     "recent means fewer than N events ago, evenly in the logarithm of that number"},
    {"duration", FR_OPTION_REAL, "1e5", "SECONDS", 1, 1e15, FIELD(duration),
     "expected time from the first to the last event"},
    {"gap-shape", FR_OPTION_REAL, "1", "X", 0.1, 10, FIELD(gap_shape),
     "Weibull shape of the gaps between events; below 1 they come in bursts"},
    {"daily", FR_OPTION_REAL, "0", "X", 0, 0.95, FIELD(daily),
     "swing of the event rate over a day, as a share of its mean"},
    {0},
};

/* clang-format off */
const synth_preset synth_presets[] = {
    {"tiny", "small, for demos and tests: a bit of everything",
     {.seed = 1, .events = 6000, .sources = 200, .destinations = 100,
      .repeat = 0.7, .repeat_spread = 0.5, .recency = 1, .memory = 64,
      .follow = 0.6, .successors = 6, .reach = 99, .successor_skew = 1.2,
      .popularity_skew = 0.8, .drift = 0.8, .drift_memory = 0.2,
      .activity_skew = 0.6, .cohort = 1, .burst = 0.8, .burst_reach = 600,
      .duration = 259200, .gap_shape = 0.8, .daily = 0.6}},
    {"wikipedia", "editors and pages: most edits return to the page edited last",
     {.seed = 1, .events = 157474, .sources = 8227, .destinations = 1000,
      .repeat = 0.922, .repeat_spread = 0.35, .recency = 1.9, .memory = 128,
      .follow = 0.28, .successors = 3, .reach = 999, .successor_skew = 0.8,
      .popularity_skew = 0.3, .drift = 2.3, .drift_memory = 0.064,
      .activity_skew = 0.65, .cohort = 0.55, .burst = 0.74, .burst_reach = 12500,
      .duration = 2678373, .gap_shape = 1, .daily = 0.3}},
    {"reddit", "posters and communities: strong habits, popular places",
     {.seed = 1, .events = 672447, .sources = 10000, .destinations = 984,
      .repeat = 0.918, .repeat_spread = 1, .recency = 1.6, .memory = 88,
      .follow = 0.37, .successors = 8, .reach = 983, .successor_skew = 1,
      .popularity_skew = 0.95, .drift = 0.6, .drift_memory = 0.6,
      .activity_skew = 0.47, .cohort = 0.6, .burst = 0.69, .burst_reach = 18000,
      .duration = 2678390, .gap_shape = 1, .daily = 0.3}},
    {"mooc", "students and parts of a course: many continue with a nearby part",
     {.seed = 1, .events = 411749, .sources = 7047, .destinations = 97,
      .repeat = 0.413, .repeat_spread = 0.6, .recency = 1.35, .memory = 8,
      .follow = 0.72, .successors = 4, .reach = 8, .successor_skew = 1.5,
      .popularity_skew = 1.1, .drift = 0.3, .drift_memory = 0.17,
      .activity_skew = 0.34, .cohort = 0.157, .burst = 0.76, .burst_reach = 70,
      .duration = 2572086, .gap_shape = 0.7, .daily = 0.5}},
    {"lastfm", "listeners and artists: few, very active sources with long and varied pasts",
     {.seed = 1, .events = 1293103, .sources = 980, .destinations = 1000,
      .repeat = 0.83, .repeat_spread = 0.55, .recency = 0.75, .memory = 260,
      .follow = 0.5, .successors = 16, .reach = 999, .successor_skew = 0.8,
      .popularity_skew = 0.85, .drift = 0.5, .drift_memory = 0.4,
      .activity_skew = 0.35, .cohort = 0.33, .burst = 0.8, .burst_reach = 9400,
      .duration = 137107267, .gap_shape = 0.6, .daily = 0.5}},
    {0},
};
/* clang-format on */

static const char *preset_at(const void *list, int index) {
    (void)list;
    return synth_presets[index].name;
}

fr_status synth_preset_find(const char *name, synth_parameters *out, fr_error *err) {
    char known[256] = "";
    for (const synth_preset *preset = synth_presets; preset->name; preset++) {
        if (!strcmp(preset->name, name)) {
            *out = preset->parameters;
            return FR_OK;
        }
        (void)strncat(known, " ", sizeof known - strlen(known) - 1);
        (void)strncat(known, preset->name, sizeof known - strlen(known) - 1);
    }
    const char *near = fr_text_nearest(name, preset_at, NULL);
    return near ? fail(err, FR_EUSAGE, "unknown preset \"%s\", did you mean %s?", name, near)
                : fail(err, FR_EUSAGE, "unknown preset \"%s\", expected one of%s", name, known);
}

static fr_status check(const synth_parameters *parameters, fr_error *err) {
    for (const fr_option *o = synth_options; o->key; o++) {
        const void *field = (const char *)parameters + o->offset;
        double value =
            o->type == FR_OPTION_INT ? (double)*(const int64_t *)field : *(const double *)field;
        if (!(value >= o->low && value <= o->high))
            return fail(err, FR_EUSAGE,
                        "synthetic stream: %s is %g, expected a number from %g to %g", o->key,
                        value, o->low, o->high);
    }
    if (parameters->reach >= parameters->destinations)
        return fail(err, FR_EUSAGE,
                    "synthetic stream: reach is %lld, expected less than the %lld"
                    " destinations",
                    (long long)parameters->reach, (long long)parameters->destinations);
    return FR_OK;
}

fr_status synth_to_json(const synth_parameters *parameters, json_t *object, fr_error *err) {
    return options_to_json(synth_options, parameters, object, err);
}

fr_status synth_from_json(const json_t *object, synth_parameters *out, fr_error *err) {
    synth_parameters parameters = {0};
    for (const fr_option *o = synth_options; o->key; o++) {
        char key[64] = "";
        for (size_t i = 0; o->key[i]; i++) key[i] = o->key[i] == '-' ? '_' : o->key[i];
        const json_t *value = json_object_get(object, key);
        void *field = (char *)&parameters + o->offset;
        if (o->type == FR_OPTION_INT && json_is_integer(value))
            *(int64_t *)field = json_integer_value(value);
        else if (o->type == FR_OPTION_REAL && json_is_number(value))
            *(double *)field = json_number_value(value);
        else
            return fail(err, FR_EINPUT, "synthetic stream: found no %s named \"%s\"",
                        o->type == FR_OPTION_INT ? "whole number" : "number", key);
    }
    TRY(check(&parameters, err));
    *out = parameters;
    return FR_OK;
}

struct synth {
    synth_parameters parameters;
    arena memory;
    /* The world, fixed when opened. A *_sum holds running sums of weights. */
    double *source_sum;     /* [sources] */
    double *habit;          /* [sources] chance of returning */
    double *popularity_sum; /* [STEPS][destinations] */
    int32_t *successor;     /* [destinations][successors] */
    double *successor_sum;  /* [successors] */
    double *recency_sum;    /* [memory], most recent first */
    double gap_scale;
    /* The state. */
    int64_t events;
    double time;
    int32_t *recent;     /* [burst_reach] source of event e at e % burst_reach */
    int32_t *past;       /* [sources][memory] destination of a source's event e at e % memory */
    int64_t *past_count; /* [sources] */
};

/* The first index of first .. end-1 whose running sum exceeds the share `u` of their total. */
static int64_t pick(const double *sum, int64_t first, int64_t end, double u) {
    double before = first ? sum[first - 1] : 0;
    double target = before + u * (sum[end - 1] - before);
    int64_t low = first,
            high = end - 1; /* also the answer if rounding makes the target equal to the total */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sum[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The probability that pick chooses `i`. */
static double share(const double *sum, int64_t count, int64_t i) {
    return (sum[i] - (i ? sum[i - 1] : 0)) / sum[count - 1];
}

static void add_up(double *weight, int64_t count) {
    for (int64_t i = 1; i < count; i++) weight[i] += weight[i - 1];
}

static void power_law(double *weight, int64_t count, double exponent) {
    for (int64_t i = 0; i < count; i++) weight[i] = pow((double)(i + 1), -exponent);
}

static rng_key world_key(const synth *s, uint32_t table) {
    return (rng_key){(uint64_t)s->parameters.seed, RNG_SYNTH_WORLD, table};
}

static double normal(rng_key key, uint64_t event, uint32_t draw) {
    double two[2];
    rng_normal(key, event, draw, two);
    return two[0];
}

/* Logarithms of popularity are a power law plus, per destination, a stationary autoregression. */
static void build_popularity(synth *s) {
    const synth_parameters *p = &s->parameters;
    int64_t destinations = p->destinations;
    double *first = s->popularity_sum;
    power_law(first, destinations, p->popularity_skew);
    /* so that an id says nothing about its weight */
    rng_shuffle(world_key(s, WORLD_DESTINATIONS), first, destinations, sizeof *first);
    double keep = exp(-1 / (STEPS * p->drift_memory));
    for (int64_t v = 0; v < destinations; v++) {
        double base = first[v], drift = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            double noise = normal(world_key(s, WORLD_DRIFT), (uint64_t)v, step);
            drift = step ? keep * drift + sqrt(1 - keep * keep) * noise : noise;
            s->popularity_sum[step * destinations + v] = base * exp(p->drift * drift);
        }
    }
    for (int64_t step = 0; step < STEPS; step++)
        add_up(s->popularity_sum + step * destinations, destinations);
}

static void build_world(synth *s) {
    const synth_parameters *p = &s->parameters;
    power_law(s->source_sum, p->sources, p->activity_skew);
    rng_shuffle(world_key(s, WORLD_SOURCES), s->source_sum, p->sources, sizeof *s->source_sum);
    add_up(s->source_sum, p->sources);
    for (int64_t u = 0; u < p->sources; u++) {
        double lean = exp(-p->repeat_spread * normal(world_key(s, WORLD_HABITS), (uint64_t)u, 0));
        s->habit[u] = p->repeat / (p->repeat + (1 - p->repeat) * lean);
    }
    build_popularity(s);
    for (int64_t v = 0; v < p->destinations; v++)
        for (int64_t k = 0; k < p->successors; k++) {
            uint32_t step = rng_below(world_key(s, WORLD_SUCCESSORS), (uint64_t)v, (uint32_t)k,
                                      (uint32_t)p->reach);
            s->successor[v * p->successors + k] = (int32_t)((v + 1 + step) % p->destinations);
        }
    power_law(s->successor_sum, p->successors, p->successor_skew);
    add_up(s->successor_sum, p->successors);
    power_law(s->recency_sum, p->memory, p->recency);
    add_up(s->recency_sum, p->memory);
    double mean_gap = p->duration / (double)p->events;
    s->gap_scale = mean_gap / tgamma(1 + 1 / p->gap_shape);
}

static fr_status take_tables(synth *s, fr_error *err) {
    const synth_parameters *p = &s->parameters;
    TRY(TAKE(&s->memory, s->source_sum, p->sources, err));
    TRY(TAKE(&s->memory, s->habit, p->sources, err));
    TRY(TAKE(&s->memory, s->popularity_sum, STEPS * p->destinations, err));
    TRY(TAKE(&s->memory, s->successor, p->destinations * p->successors, err));
    TRY(TAKE(&s->memory, s->successor_sum, p->successors, err));
    TRY(TAKE(&s->memory, s->recency_sum, p->memory, err));
    TRY(TAKE(&s->memory, s->recent, p->burst_reach, err));
    TRY(TAKE(&s->memory, s->past, p->sources * p->memory, err));
    return TAKE(&s->memory, s->past_count, p->sources, err);
}

fr_status synth_open(const synth_parameters *parameters, synth **out, fr_error *err) {
    *out = NULL;
    TRY(check(parameters, err));
    synth *s;
    TRY(ALLOCATE(s, 1, err));
    s->parameters = *parameters;
    fr_status status = take_tables(s, err);
    if (status) {
        synth_close(s);
        return status;
    }
    build_world(s);
    *out = s;
    return FR_OK;
}

void synth_close(synth *s) {
    if (!s) return;
    arena_free(&s->memory);
    free(s);
}

/* The popularity in force at `time`; the last step lasts for ever. */
static const double *popularity_at(const synth *s, double time) {
    double step = floor(time / s->parameters.duration * STEPS);
    return s->popularity_sum +
           (step < STEPS ? (int64_t)step : STEPS - 1) * s->parameters.destinations;
}

/* The destination of the event that `source` made `back` events before its last one. */
static int32_t past_destination(const synth *s, int32_t source, int64_t back) {
    int64_t memory = s->parameters.memory;
    int64_t event = s->past_count[source] - 1 - back;
    return s->past[source * memory + event % memory];
}

static int64_t past_length(const synth *s, int32_t source) {
    int64_t count = s->past_count[source], memory = s->parameters.memory;
    return count < memory ? count : memory;
}

/* The shares of the components for this source now; a source without a past has popularity only. */
typedef struct mixture {
    double repeat, follow, popular;
} mixture;

static mixture mixture_of(const synth *s, int32_t source) {
    if (!s->past_count[source]) return (mixture){0, 0, 1};
    double repeat = s->habit[source], follow = (1 - repeat) * s->parameters.follow;
    return (mixture){repeat, follow, 1 - repeat - follow};
}

void synth_probability(const synth *s, int32_t source, double time, double *p) {
    const synth_parameters *q = &s->parameters;
    mixture m = mixture_of(s, source);
    const double *popularity = popularity_at(s, time);
    for (int64_t v = 0; v < q->destinations; v++)
        p[v] = m.popular * share(popularity, q->destinations, v);
    int64_t length = past_length(s, source);
    if (!length) return;
    for (int64_t back = 0; back < length; back++)
        p[past_destination(s, source, back)] += m.repeat * share(s->recency_sum, length, back);
    const int32_t *successor = s->successor + past_destination(s, source, 0) * q->successors;
    for (int64_t k = 0; k < q->successors; k++)
        p[successor[k]] += m.follow * share(s->successor_sum, q->successors, k);
}

int32_t synth_draw(const synth *s, int32_t source, double time, double component, double within) {
    const synth_parameters *q = &s->parameters;
    mixture m = mixture_of(s, source);
    if (component < m.repeat)
        return past_destination(s, source, pick(s->recency_sum, 0, past_length(s, source), within));
    if (component < m.repeat + m.follow)
        return s->successor[past_destination(s, source, 0) * q->successors +
                            pick(s->successor_sum, 0, q->successors, within)];
    return (int32_t)pick(popularity_at(s, time), 0, q->destinations, within);
}

void synth_observe(synth *s, const synth_event *event) {
    const synth_parameters *q = &s->parameters;
    assert(event->source >= 0 && event->source < q->sources);
    assert(event->destination >= 0 && event->destination < q->destinations);
    int64_t *count = &s->past_count[event->source];
    s->past[event->source * q->memory + (*count)++ % q->memory] = event->destination;
    s->recent[s->events++ % q->burst_reach] = event->source;
    s->time = event->time;
}

/* A Weibull gap, shorter in the busy half of the day, rounded to whole seconds. */
static double next_time(const synth *s, rng_key key) {
    const synth_parameters *q = &s->parameters;
    if (!s->events) return 0;
    double rate = 1 + q->daily * sin(2 * PI * s->time / SECONDS_PER_DAY);
    double u = rng_uniform(key, (uint64_t)s->events, DRAW_GAP);
    double gap = s->gap_scale / rate * pow(-log(1 - u), 1 / q->gap_shape);
    return s->time + floor(gap + 0.5);
}

/* The source of an event a log-uniform number of events ago, or one of the present cohort by its
 * activity. The cohort is a range of ids that moves from the first to the last with the stream. */
static int32_t next_source(const synth *s, rng_key key) {
    const synth_parameters *q = &s->parameters;
    double u = rng_uniform(key, (uint64_t)s->events, DRAW_SOURCE);
    if (rng_uniform(key, (uint64_t)s->events, DRAW_BURST) < q->burst) {
        int64_t ago = (int64_t)pow((double)q->burst_reach, u); /* 1 .. burst_reach */
        if (ago <= s->events) return s->recent[(s->events - ago) % q->burst_reach];
    }
    int64_t width = (int64_t)fmax(1, q->cohort * (double)q->sources);
    double progress = fmin(1, (double)s->events / (double)q->events);
    int64_t first = (int64_t)(progress * (double)(q->sources - width));
    return (int32_t)pick(s->source_sum, first, first + width, u);
}

void synth_next(synth *s, synth_event *out) {
    rng_key key = {(uint64_t)s->parameters.seed, RNG_SYNTH_EVENT, 0};
    uint64_t event = (uint64_t)s->events;
    out->time = next_time(s, key);
    out->source = next_source(s, key);
    out->destination =
        synth_draw(s, out->source, out->time, rng_uniform(key, event, DRAW_COMPONENT),
                   rng_uniform(key, event, DRAW_WITHIN));
    synth_observe(s, out);
}
