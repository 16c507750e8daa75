/* explain.c - explains the difference between two protocols (fullrank.h, chapter 13).
 *
 * An evaluation is a protocol, a tie rule and a set of negatives. Two evaluations differ in a few
 * settings. Each subset of switched settings gives a number. In a fixed order the differences
 * between consecutive numbers add up to the total, and so do their means over all orders (the
 * Shapley value of each setting).
 */
#include "base/context.h"
#include "base/options.h"
#include "base/text.h"
#include "data/split.h"
#include "rank/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- ways to evaluate ---- */

enum { TIES_AVERAGE, TIES_OPTIMISTIC, TIES_PESSIMISTIC, TIES_RANDOM };

typedef struct way {
    fr_protocol protocol;
    int ties;        /* TIES_* */
    char *negatives; /* "all", or a sampler with its K */
} way;

static const fr_option measure_options[] = {
    {"ties", FR_OPTION_CHOICE, "average", "average|optimistic|pessimistic|random", 0, 0,
     offsetof(way, ties), ""},
    {"negatives", FR_OPTION_TEXT, "all", "all|SAMPLER-K", 0, 0, offsetof(way, negatives), ""},
    {0}};

const fr_explain_preset fr_explain_presets[FR_EXPLAIN_PRESETS + 1] = {
    {"fullrank", "", "the defaults of `rank`"},
    {"tgb",
     "window=0,split=quantile,train-share=0.7,val-share=0.15,order=batch:200,catalog=range,"
     "filter=same-time,negatives=tgb-hist-20",
     "TGB's leaderboards: 20 negatives, half of them of the source's history"},
    {"dyglib",
     "window=0,split=quantile,train-share=0.7,val-share=0.15,order=batch:200,catalog=all,"
     "negatives=dyglib-1",
     "DyGLib: one random negative"},
    {0}};

/* The settings that are switched together, in the order of switching. Those that need another
 * ranking come first. */
enum { KEYS = 3, PROTOCOL_INGREDIENTS = 7 };
static const char *const ingredients[FR_EXPLAIN_MAX][KEYS] = {
    {"window"},   {"split", "train-share", "val-share"},
    {"part"},     {"order"},
    {"catalog"},  {"filter"},
    {"oov"},      {"ties"},
    {"negatives"}};

static const fr_option *find_key(const char *key, bool *of_protocol) {
    const fr_option *o = fr_options_find(fr_protocol_options, key);
    *of_protocol = o != NULL;
    return o ? o : fr_options_find(measure_options, key);
}

static fr_status set_key(way *w, const char *key, const char *value, fr_error *err) {
    bool of_protocol;
    if (!find_key(key, &of_protocol))
        return fail(err, FR_EUSAGE, "unknown setting %s of a protocol", key);
    return of_protocol ? fr_options_set(fr_protocol_options, &w->protocol, key, value, err)
                       : fr_options_set(measure_options, w, key, value, err);
}

static void get_key(const way *w, const char *key, char *out, size_t size) {
    bool of_protocol;
    const fr_option *o = find_key(key, &of_protocol);
    fr_options_text(o, of_protocol ? (const void *)&w->protocol : w, out, size);
}

static void free_way(way *w) {
    fr_options_free(fr_protocol_options, &w->protocol);
    fr_options_free(measure_options, w);
}

static fr_status standard_way(way *w, fr_error *err) {
    *w = (way){0};
    TRY(fr_options_fill(measure_options, w, sizeof *w, err));
    return fr_options_defaults(fr_protocol_options, &w->protocol, err);
}

/* Sets "key=value,key=value". A value may contain commas: a part without "=" belongs to the value
 * before it. */
static fr_status set_list(way *w, const char *list, fr_error *err) {
    while (*list) {
        char entry[FR_NAME_MAX];
        const char *end = list, *next;
        do {
            end += *end == ',';
            end += strcspn(end, ",");
            next = *end ? end + 1 : end;
        } while (*end && strcspn(next, "=") > strcspn(next, ","));
        (void)snprintf(entry, sizeof entry, "%.*s", (int)(end - list), list);
        char *value = strchr(entry, '=');
        if (!value) return fail(err, FR_EUSAGE, "found \"%s\", expected setting=value", entry);
        *value++ = 0;
        TRY(set_key(w, entry, value, err));
        list = next;
    }
    return FR_OK;
}

static const char *preset_at(const void *list, int index) {
    return ((const fr_explain_preset *)list)[index].name;
}

/* Reads "tgb,order=stream". */
static fr_status read_way(const char *text, way *w, fr_error *err) {
    char name[64];
    size_t length = strcspn(text, ",");
    const fr_explain_preset *preset = fr_explain_presets;
    TRY(standard_way(w, err));
    (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
    while (preset->name && strcmp(preset->name, name)) preset++;
    if (!preset->name)
        return text_unknown("protocol", name, preset_at, fr_explain_presets, "explain", err);
    TRY(set_list(w, preset->settings, err));
    TRY(set_list(w, text[length] ? text + length + 1 : "", err));
    return split_check(&w->protocol, err);
}

static void print_ingredient(const way *w, int which, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (int k = 0; k < KEYS && ingredients[which][k] && used < size; k++) {
        char value[FR_NAME_MAX];
        get_key(w, ingredients[which][k], value, sizeof value);
        used += (size_t)snprintf(out + used, size - used, "%s%s", k ? " " : "", value);
    }
}

/* ---- numbers ---- */

typedef struct explain {
    const fr_stream *stream;
    const char *spec, *metric;
    int64_t seed;
    const fr_context *context;
    way from, to;
    fr_explanation *out;
    int which[FR_EXPLAIN_MAX]; /* [steps] numbers of ingredients */
    fr_ranking *ranking;       /* of the protocol with these steps switched */
    uint32_t ranked;
    int done, total; /* numbers */
    double *value;   /* [1 << steps], by the steps that are switched */
    int64_t *events; /* [1 << steps] number of events of each */
} explain;

/* The way with some steps switched. Ingredients that are equal on both sides do not matter. */
static fr_status mix(const explain *x, uint32_t switched, way *out, fr_error *err) {
    TRY(standard_way(out, err));
    for (int k = 0; k < FR_EXPLAIN_MAX; k++) {
        const way *from = &x->from;
        for (int s = 0; s < x->out->count; s++)
            if (x->which[s] == k && switched & (1u << s)) from = &x->to;
        for (int j = 0; j < KEYS && ingredients[k][j]; j++) {
            char value[FR_NAME_MAX];
            get_key(from, ingredients[k][j], value, sizeof value);
            TRY(set_key(out, ingredients[k][j], value, err));
        }
    }
    return FR_OK;
}

static fr_status rank_way(explain *x, const way *w, fr_error *err) {
    fr_window *window = NULL;
    fr_scorer *scorer = NULL;
    fr_ranking_close(x->ranking);
    x->ranking = NULL;
    fr_context quiet = x->context ? *x->context : (fr_context){0};
    if (x->done > 1) quiet.log = NULL; /* messages would repeat */
    fr_status status = fr_window_open(x->stream, &w->protocol, &quiet, &window, err);
    if (!status) status = fr_scorer_open(x->spec, window, x->seed, &quiet, &scorer, err);
    if (!status) status = fr_rank_run(scorer, NULL, &quiet, &x->ranking, err);
    fr_scorer_close(scorer);
    fr_window_close(window);
    return status;
}

/* The metric over the whole catalog. */
static fr_status measure_all(const explain *x, const way *w, fr_metric_value *out, fr_error *err) {
    static const char *const mrr[] = {"mrr", "mrr-optimistic", "mrr-pessimistic",
                                      "mrr-random-ties"};
    const char *name = x->metric;
    if (w->ties != TIES_AVERAGE && strcmp(name, "mrr"))
        return fail(err, FR_EUSAGE, "metric %s has average ranks only, expected mrr for other ties",
                    name);
    if (!strcmp(name, "mrr")) name = mrr[w->ties];
    return fr_metrics_compute(x->ranking->records, x->ranking->count, w->protocol.oov, &name, 1,
                              out, err);
}

/* Its expectation over drawn negatives. */
static fr_status measure_drawn(const explain *x, const way *w, fr_metric_value *out,
                               fr_error *err) {
    int64_t k, hits = 0;
    const fr_definition *sampler = fr_sampler_find(w->negatives, &k);
    const fr_definition *metric = fr_metric_find(x->metric, &hits);
    bool mrr = !strcmp(x->metric, "mrr");
    if (!sampler || k < 1)
        return fail(err, FR_EUSAGE,
                    "negatives: found \"%s\", expected all or a sampler with its K, such as "
                    "uniform-20",
                    w->negatives);
    if (w->ties != TIES_AVERAGE || !metric || (!mrr && strcmp(metric->name, "hits@k")))
        return fail(err, FR_EUSAGE,
                    "metric %s, expected mrr or hits@k with average ties for drawn negatives",
                    x->metric);
    fr_expected value;
    fr_sampling sampling = {.sampler = sampler->name,
                            .oov = w->protocol.oov,
                            .k = &k,
                            .k_count = 1,
                            .hits = &hits,
                            .hits_count = !mrr};
    TRY(fr_expected_compute(x->ranking->records, x->ranking->count, &sampling, x->context, &value,
                            err));
    *out = (fr_metric_value){mrr ? value.mrr : value.hits[0], value.events};
    return FR_OK;
}

/* Which settings a failure belongs to. */
static fr_status name_way(const explain *x, const way *w, fr_status status, const fr_error *inner,
                          fr_error *err) {
    text_buffer text = {0};
    for (int s = 0; s < x->out->count; s++) {
        char value[128];
        print_ingredient(w, x->which[s], value, sizeof value);
        text_print(&text, "%s%s %s", s ? ", " : "", x->out->step[s].setting, value);
    }
    if (!text.at || status == FR_ECANCEL)
        status = fail(err, status, "%s", inner->message);
    else
        status = fail(err, status, "with %s: %s", text.at, inner->message);
    text_free(&text);
    return status;
}

/* The number with some steps switched; rankings are made again only if the protocol is another. */
static fr_status measure(explain *x, uint32_t switched, fr_error *err) {
    uint32_t ranking = 0;
    for (int s = 0; s < x->out->count; s++)
        if (x->which[s] < PROTOCOL_INGREDIENTS) ranking |= switched & (1u << s);
    if (!isnan(x->value[switched])) return FR_OK;
    way w;
    fr_error inner = {0};
    fr_metric_value found = {NAN, 0};
    context_progress(x->context, "explain", (uint64_t)x->done++, (uint64_t)x->total, "numbers");
    fr_status status = context_check(x->context, &inner);
    if (!status) status = mix(x, switched, &w, &inner);
    if (!status && (!x->ranking || ranking != x->ranked)) status = rank_way(x, &w, &inner);
    x->ranked = ranking;
    if (!status)
        status = !strcmp(w.negatives, "all") ? measure_all(x, &w, &found, &inner)
                                             : measure_drawn(x, &w, &found, &inner);
    if (!status && isnan(found.value))
        status = fail(&inner, FR_EINPUT, "no event has a %s", x->metric);
    if (status) status = name_way(x, &w, status, &inner, err);
    free_way(&w);
    x->value[switched] = found.value;
    x->events[switched] = found.events;
    return status;
}

/* ---- effects ---- */

/* The share of all orders in which exactly `before` given steps of `steps` come before a step. */
static double order_share(int before, int steps) {
    double share = 1.0 / steps; /* 1 / (steps * C(steps - 1, before)) */
    for (int k = 0; k < before; k++) share *= (k + 1.0) / (steps - 1 - k);
    return share;
}

static double mean_effect(const explain *x, int step) {
    double sum = 0;
    int steps = x->out->count;
    for (uint32_t m = 0; m < 1u << steps; m++) {
        if (m & (1u << step)) continue;
        sum += order_share(__builtin_popcount(m), steps) * (x->value[m | 1u << step] - x->value[m]);
    }
    return sum;
}

static fr_status find_effects(explain *x, bool average, fr_error *err) {
    fr_explanation *out = x->out;
    uint32_t all = (1u << out->count) - 1;
    x->total = average ? (int)all + 1 : out->count + 1;
    /* In this order the protocol changes rarely. */
    for (uint32_t k = 0; average && k <= all; k++) {
        uint32_t m = 0;
        for (int s = 0; s < out->count; s++)
            if (k & (1u << s)) m |= 1u << (out->count - 1 - s);
        TRY(measure(x, m, err));
    }
    for (int s = 0; s <= out->count; s++) TRY(measure(x, (1u << s) - 1, err));
    out->from = out->to = x->value[0];
    out->from_events = x->events[0];
    for (int s = 0; s < out->count; s++) {
        uint32_t before = (1u << s) - 1, after = before | 1u << s;
        fr_explain_step *step = &out->step[s];
        step->effect = average ? mean_effect(x, s) : x->value[after] - x->value[before];
        step->value = average ? out->to + step->effect : x->value[after];
        step->events = x->events[after];
        out->to = step->value;
    }
    out->to = x->value[all];
    out->to_events = x->events[all];
    return FR_OK;
}

static void find_steps(explain *x) {
    for (int k = 0; k < FR_EXPLAIN_MAX; k++) {
        fr_explain_step *step = &x->out->step[x->out->count];
        print_ingredient(&x->from, k, step->from, sizeof step->from);
        print_ingredient(&x->to, k, step->to, sizeof step->to);
        step->setting = ingredients[k][0];
        if (strcmp(step->from, step->to)) x->which[x->out->count++] = k;
    }
}

const fr_option fr_explain_options[FR_OPTIONS_MAX] = {
    {"from", FR_OPTION_TEXT, "tgb", "PROTOCOL", 0, 0, offsetof(fr_explain_settings, from),
     "the first protocol: its name and any changes, as in "
     "tgb,order=stream,negatives=uniform-100"},
    {"to", FR_OPTION_TEXT, "fullrank", "PROTOCOL", 0, 0, offsetof(fr_explain_settings, to),
     "the second protocol, in the same form"},
    {"metric", FR_OPTION_TEXT, "mrr", "NAME", 0, 0, offsetof(fr_explain_settings, metric),
     "the metric to explain: mrr, hits@k, or over all candidates any metric"},
    {"average", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_explain_settings, average),
     "effects are means over all orders of switching, not those of the order shown; for "
     "s settings this takes 2^s rankings instead of s + 1"},
    OPTIONS_END(fr_explain_settings)};

fr_status fr_explain_run(const fr_stream *stream, const char *spec,
                         const fr_explain_settings *settings, int64_t seed,
                         const fr_context *context, fr_explanation *out, fr_error *err) {
    NEED(stream, err);
    NEED(spec, err);
    NEED(out, err);
    fr_explain_settings s;
    *out = (fr_explanation){0};
    TRY(options_settle(fr_explain_options, settings, &s, sizeof s, err));
    explain x = {.stream = stream,
                 .spec = spec,
                 .metric = s.metric ? s.metric : "mrr",
                 .seed = seed,
                 .context = context,
                 .out = out};
    fr_status status = read_way(s.from ? s.from : "tgb", &x.from, err);
    if (!status) status = read_way(s.to ? s.to : "fullrank", &x.to, err);
    if (!status) find_steps(&x);
    size_t numbers = (size_t)1 << out->count;
    if (!status) status = ALLOCATE(x.value, numbers, err);
    if (!status) status = ALLOCATE(x.events, numbers, err);
    for (size_t k = 0; !status && k < numbers; k++) x.value[k] = NAN;
    if (!status) status = find_effects(&x, s.average, err);
    fr_ranking_close(x.ranking);
    free_way(&x.from);
    free_way(&x.to);
    free(x.value);
    free(x.events);
    return status;
}
