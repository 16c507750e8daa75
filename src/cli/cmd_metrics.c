/* cmd_metrics.c - metrics: every metric of a ranking from its records, without scoring again. */
#define _GNU_SOURCE
#include "board.h"
#include "per_event.h"
#include "slices.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = CLI_MOST_NUMBERS, MOST_SAMPLERS = 16, MOST_METRICS = 512 };

typedef struct metrics_settings {
    char *metric, *by, *k, *hits, *sampler, *per_event;
    int small;
    int64_t draws;
    bool lines, interval, force;
} metrics_settings;

/* Indices of option groups. */
enum { INTERVALS = 1, SEED, OUTPUT };

static const fr_option metrics_options[] = {
    {"metric", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(metrics_settings, metric),
     "only these metrics, such as mrr-new,hits@3, and the samplers of --sampler; `metrics --help "
     "metrics` lists them"},
    {"by", FR_OPTION_TEXT, "", "FIELD[:BINS],...", 0, 0, offsetof(metrics_settings, by),
     "metrics for slices of the events: repeated, inductive, source-degree:5, gap, time:10 "
     "(without --metric: mrr,hits@10); `metrics --help slices` lists the fields"},
    {"k", FR_OPTION_TEXT, "1,5,20,50,100", "LIST", 0, 0, offsetof(metrics_settings, k),
     "numbers of sampled negatives"},
    {"hits", FR_OPTION_TEXT, "1,3,5,10,50", "LIST", 0, 0, offsetof(metrics_settings, hits),
     "the k of Hits@k and of any other metric with a number"},
    {"sampler", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(metrics_settings, sampler),
     "more samplers, such as random-100,popularity,tgb-hist-100 (without a number: every --k); "
     "`metrics --help samplers` lists them"},
    {"small", FR_OPTION_CHOICE, "whole", "whole|ineligible", 0, 0,
     offsetof(metrics_settings, small),
     "if a pool is too small: take it whole, or leave the event out"},
    {"draws", FR_OPTION_INT, "0", "SEEDS", 0, 1000000, offsetof(metrics_settings, draws),
     "also draw negatives with this many seeds, as a check of the expectations"},
    {"per-event", FR_OPTION_TEXT, "", "FILE.tsv", 0, 0, offsetof(metrics_settings, per_event),
     "write rank and reciprocal rank of every event; - means standard output"},
    {"lines", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(metrics_settings, lines),
     "print one line per number: metric, scorer, value"},
    {"interval", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(metrics_settings, interval),
     BOARD_INTERVAL_HELP},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(metrics_settings, force),
     "replace an existing file of --per-event"},
    {0}};

/* ---- Requested metrics and samplers ---- */

static const char *metric_name(const void *list, int index) {
    const fr_definition *d = fr_metric_at(index);
    (void)list;
    return d ? d->name : NULL;
}

static const char *sampler_name(const void *list, int index) {
    const fr_definition *d = fr_sampler_at(index);
    (void)list;
    return d ? d->name : NULL;
}

static const char *field_name(const void *list, int index) {
    const fr_definition *d = fr_slice_field_at(index);
    (void)list;
    return d ? d->name : NULL;
}

/* Adds one --sampler with its numbers of negatives. */
typedef struct sampler_choice {
    const fr_definition *sampler;
    cli_numbers k;
} sampler_choice;

static int add_sampler(const char *word, const cli_numbers *k, sampler_choice *out, int *count) {
    int64_t number = 0;
    const fr_definition *sampler = fr_sampler_find(word, &number);
    const char *near = sampler ? NULL : fr_text_nearest(word, sampler_name, NULL);
    if (near) return cli_usage("option sampler: unknown sampler %s, did you mean %s?", word, near);
    if (!sampler)
        return cli_usage("option sampler: unknown sampler %s (`metrics --help samplers` lists "
                         "them)",
                         word);
    if (*count == MOST_SAMPLERS + 1)
        return cli_usage("option sampler: %s is one too many, expected at most %d", word,
                         MOST_SAMPLERS);
    out[(*count)++] = (sampler_choice){sampler, number ? (cli_numbers){{number}, 1} : *k};
    return CLI_OK;
}

/* A metric with its number, if it takes one. */
typedef struct metric_choice {
    const fr_definition *metric;
    int64_t k;
    char name[48]; /* as the library knows it: "hits@10" */
} metric_choice;

typedef struct metric_list {
    metric_choice at[MOST_METRICS];
    int count;
} metric_list;

/* True if the metric takes a number, as hits@k does. */
static bool is_numbered(const fr_definition *metric) {
    const char *mark = strchr(metric->name, '@');
    return mark && !strcmp(mark, "@k");
}

/* Adds a metric. One that takes a number but has none is added with every number in `hits`. */
static int add_metric(const fr_definition *metric, int64_t number, const cli_numbers *hits,
                      metric_list *out) {
    bool numbered = is_numbered(metric);
    cli_numbers alone = {{number}, 1};
    const cli_numbers *numbers = !numbered || number ? &alone : hits;
    for (int i = 0; i < numbers->count; i++) {
        if (out->count == MOST_METRICS)
            return cli_usage("option metric: %s is one too many, expected at most %d", metric->name,
                             MOST_METRICS);
        metric_choice *next = &out->at[out->count++];
        *next = (metric_choice){metric, numbers->at[i], ""};
        if (numbered)
            (void)snprintf(next->name, sizeof next->name, "%.*s@%lld",
                           (int)strcspn(metric->name, "@"), metric->name, (long long)next->k);
        else
            (void)snprintf(next->name, sizeof next->name, "%s", metric->name);
    }
    return CLI_OK;
}

static int add_named_metric(const char *word, const cli_numbers *hits, metric_list *out) {
    int64_t number = 0;
    const fr_definition *metric = fr_metric_find(word, &number);
    const char *near = metric ? NULL : fr_text_nearest(word, metric_name, NULL);
    if (near) return cli_usage("option metric: unknown metric %s, did you mean %s?", word, near);
    if (!metric)
        return cli_usage("option metric: unknown metric %s (`metrics --help metrics` lists them)",
                         word);
    return add_metric(metric, number, hits, out);
}

typedef struct request {
    metric_list metrics;
    bool chosen; /* by --metric */
    cli_numbers k, hits;
    sampler_choice samplers[MOST_SAMPLERS + 1]; /* [0] is uniform, unless metrics were chosen */
    int sampler_count, small;
    int64_t draws;
    board_resampling how; /* of intervals, if requested */
    const fr_context *context;
    bool tables;                   /* they show only some metrics, unless some were chosen */
    const char *by[MOST_SLICINGS]; /* fields of --by */
    char *by_memory;               /* the text that `by` points into */
    int by_count;
} request;

/* Calls `add` for every word of a list. */
static int each_word(const char *text, request *r, int (*add)(const char *word, request *r)) {
    char *copy = strdup(text ? text : ""), *rest = copy;
    int code = CLI_OK;
    if (!copy) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (char *word; *copy && !code && (word = strsep(&rest, ","));) code = add(word, r);
    free(copy);
    return code;
}

static int take_sampler(const char *word, request *r) {
    return add_sampler(word, &r->k, r->samplers, &r->sampler_count);
}

static int take_metric(const char *word, request *r) {
    return add_named_metric(word, &r->hits, &r->metrics);
}

/* Reads the request; without --metric it is every metric of the registry, and uniform draws. */
static int take_request(const metrics_settings *settings, request *r) {
    const fr_definition *d;
    int code = CLI_OK;
    if (!cli_parse_numbers("k", settings->k, &r->k) ||
        !cli_parse_numbers("hits", settings->hits, &r->hits))
        return CLI_USAGE;
    const char *metric = settings->metric ? settings->metric : settings->by ? "mrr,hits@10" : NULL;
    if (settings->by) code = slice_fields(settings->by, &r->by_memory, r->by, &r->by_count);
    if (code) return code;
    if (settings->by && (settings->sampler || r->draws))
        return cli_usage("option by: slices have only full-catalog metrics, expected it without "
                         "--sampler and --draws");
    r->chosen = metric != NULL;
    if (r->chosen && r->draws)
        return cli_usage("option draws: draws are shown with all metrics, not with --metric");
    if (!r->chosen) {
        for (int i = 0; !code && (d = fr_metric_at(i)); i++)
            code = add_metric(d, 0, &r->hits, &r->metrics);
        r->samplers[r->sampler_count++] = (sampler_choice){fr_sampler_find("uniform", NULL), r->k};
    }
    if (!code) code = each_word(metric, r, take_metric);
    if (!code) code = each_word(settings->sampler, r, take_sampler);
    return code;
}

/* ---- One ranking ---- */

/* All results of one ranking, before they are printed in some format. */
typedef struct result {
    const char *path;
    fr_ranking *ranking;
    board_row row;
    fr_metric_value value[MOST_METRICS];                   /* as request.metrics */
    fr_expected expected[MOST_SAMPLERS + 1][MOST_NUMBERS]; /* as request.samplers and their k */
    fr_draws drawn[MOST_NUMBERS];                          /* of the first sampler, if requested */
    slice_table slices[MOST_SLICINGS];                     /* as request.by */
    fr_interval interval[MOST_METRICS], expected_interval[MOST_SAMPLERS + 1][MOST_NUMBERS];
    bool resampled; /* the intervals exist */
} result;

static void metric_names(const request *r, const char **name) {
    for (int i = 0; i < r->metrics.count; i++) name[i] = r->metrics.at[i].name;
}

/* Computes the intervals of what is shown; some take a while. */
static fr_status compute_intervals(result *out, const request *r,
                                   const fr_interval_settings *settings, fr_error *err) {
    fr_ranking_facts f = fr_ranking_get(out->ranking);
    const char *name[MOST_METRICS];
    fr_interval found[MOST_METRICS];
    int at[MOST_METRICS], count = 0;
    for (int i = 0; i < r->metrics.count; i++) {
        out->interval[i] = (fr_interval){NAN, NAN};
        if (r->tables && !r->chosen && !is_numbered(r->metrics.at[i].metric)) continue;
        at[count] = i;
        name[count++] = r->metrics.at[i].name;
    }
    fr_status status = fr_intervals_compute(f.records, f.count, f.oov, name, count, settings,
                                            r->how.seed, r->context, found, err);
    for (int i = 0; !status && i < count; i++) out->interval[at[i]] = found[i];
    return status;
}

static fr_status compute_metrics(result *out, const request *r, fr_error *err) {
    fr_ranking_facts f = fr_ranking_get(out->ranking);
    const char *name[MOST_METRICS];
    metric_names(r, name);
    fr_interval_settings settings;
    out->resampled = board_resampling_of(r->how, &f, &settings);
    slice_metrics metrics = {.name = name, .count = r->metrics.count, .how = r->how};
    fr_status status =
        fr_metrics_compute(f.records, f.count, f.oov, name, r->metrics.count, out->value, err);
    for (int i = 0; !status && i < r->by_count; i++)
        status = slice_table_fill(&out->slices[i], out->ranking, r->by[i], &metrics, err);
    if (!status && out->resampled) status = compute_intervals(out, r, &settings, err);
    for (int i = 0; !status && i < r->metrics.count; i++)
        board_know_coverage(&f, name[i], &out->value[i], &out->interval[i]);
    return status;
}

/* True if negatives are drawn for this sampler. */
static bool is_drawn(const request *r, int sampler) { return r->draws && sampler == 0; }

/* True if it was ranked against given lists. Then no sampler applies. */
static bool is_listed(const result *of) {
    const char *sha256 = fr_ranking_get(of->ranking).protocol.negatives_sha256;
    return sha256 && *sha256;
}

static fr_status compute(result *out, const request *r, board_shape shape, fr_error *err) {
    static const int64_t ten[] = {10};
    fr_ranking_facts f = fr_ranking_get(out->ranking);
    if (is_listed(out) && r->sampler_count > (r->chosen ? 0 : 1))
        return fr_fail(
            err, FR_EINPUT,
            "%s: ranked against given negatives, from which nothing is drawn, expected no "
            "sampler",
            out->path);
    fr_status status =
        board_fill(&out->row, f.scorer, out->ranking, shape, r->how, r->context, err);
    if (!status) status = compute_metrics(out, r, err);
    for (int s = 0; !status && s < r->sampler_count; s++) {
        const sampler_choice *choice = &r->samplers[s];
        fr_sampling sampling = {.sampler = choice->sampler->name,
                                .small = r->small,
                                .oov = f.oov,
                                .k = choice->k.at,
                                .k_count = choice->k.count,
                                .hits = ten,
                                .hits_count = 1};
        status =
            fr_expected_compute(f.records, f.count, &sampling, r->context, out->expected[s], err);
        if (!status && is_drawn(r, s))
            status = fr_draws_compute(f.records, f.count, &sampling, 1, r->draws, r->context,
                                      out->drawn, NULL, err);
        fr_interval_settings settings;
        if (!status && board_resampling_of(r->how, &f, &settings))
            status = fr_intervals_expected(f.records, f.count, &sampling, &settings, r->how.seed,
                                           r->context, out->expected_interval[s], err);
    }
    return status;
}

/* ---- JSON ---- */

/* Adds {"20": {"mrr": ..., "hits10": ..., "sd": ..., "events": ...}} for every K for which some
 * event counts. */
static void add_expected(json_t *out, const result *from, const request *r, int sampler) {
    for (int i = 0; i < r->samplers[sampler].k.count; i++) {
        const fr_expected *e = &from->expected[sampler][i];
        if (!e->events) continue; /* nothing to draw, or pools too small for --small ineligible */
        char key[24];
        (void)snprintf(key, sizeof key, "%lld", (long long)e->k);
        json_t *entry =
            json_pack("{s:o, s:o, s:o, s:I, s:I}", "mrr", cli_json_real(e->mrr), "hits10",
                      cli_json_real(e->hits[0]), "sd", cli_json_real(e->sd), "events",
                      (json_int_t)e->events, "ineligible", (json_int_t)e->ineligible);
        if (entry && is_drawn(r, sampler))
            cli_json_put(entry, "drawn",
                         json_pack("{s:I, s:o, s:o}", "seeds", (json_int_t)r->draws, "mrr",
                                   cli_json_real(from->drawn[i].mrr), "sd",
                                   cli_json_real(from->drawn[i].sd)));
        if (entry && from->resampled)
            cli_json_put(entry, "interval",
                         board_interval_json(from->expected_interval[sampler][i]));
        cli_json_put(out, key, entry);
    }
}

/* Adds a number or interval under the metric's key; with a number it is "hits": {"10": ...}. */
static void add_metric_json(json_t *out, const metric_choice *choice, json_t *number) {
    if (!is_numbered(choice->metric)) {
        cli_json_put(out, cli_key(choice->name).s, number);
        return;
    }
    cli_text stem;
    (void)snprintf(stem.s, sizeof stem.s, "%.*s", (int)strcspn(choice->name, "@"), choice->name);
    stem = cli_key(stem.s);
    if (!json_object_get(out, stem.s)) cli_json_put(out, stem.s, json_object());
    cli_json_put(json_object_get(out, stem.s), strchr(choice->name, '@') + 1, number);
}

/* Adds every metric. */
static void add_metrics(json_t *out, const fr_metric_value *values, const void *user) {
    const request *r = user;
    for (int i = 0; i < r->metrics.count; i++) {
        const metric_choice *choice = &r->metrics.at[i];
        double value = values[i].value;
        add_metric_json(out, choice,
                        choice->metric->kind == FR_KIND_COUNT ? json_integer((json_int_t)value)
                                                              : cli_json_real(value));
    }
}

/* Adds the tie rules. */
static json_t *tie_rules(const json_t *metrics) {
    static const char *const rules[][2] = {{"mrr", "average"},
                                           {"mrr_optimistic", "optimistic"},
                                           {"mrr_pessimistic", "pessimistic"},
                                           {"mrr_random_ties", "random"},
                                           {"mrr_trec", "trec"}};
    json_t *out = json_object();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        cli_json_put(out, rules[i][1], json_incref(json_object_get(metrics, rules[i][0])));
    return out;
}

/* Everything about one ranking. Scripts rely on these keys. */
static json_t *result_json(const result *from, const request *r) {
    fr_ranking_facts f = fr_ranking_get(from->ranking);
    json_t *root = json_pack("{s:o, s:s, s:s, s:s}", "file", cli_json_text(from->path), "scorer",
                             f.scorer, "data", f.data, "protocol", f.protocol_text);
    json_t *sampled = json_object();
    add_metrics(root, from->value, r);
    if (!r->chosen) {
        json_t *expected = json_object();
        add_expected(expected, from, r, 0);
        cli_json_put(root, "mrr_by_tie_rule", tie_rules(root));
        cli_json_put(root, "expected", expected);
    }
    for (int s = r->chosen ? 0 : 1; s < r->sampler_count; s++) {
        const char *name = r->samplers[s].sampler->name;
        if (!json_object_get(sampled, name)) cli_json_put(sampled, name, json_object());
        add_expected(json_object_get(sampled, name), from, r, s);
    }
    cli_json_put(root, "sampled", sampled);
    if (r->by_count) {
        json_t *slices = json_object();
        slice_metrics metrics = {.count = r->metrics.count, .put = add_metrics, .user = r};
        for (int i = 0; i < r->by_count; i++)
            cli_json_put(slices, cli_key(from->slices[i].slices.field).s,
                         slice_table_json(&from->slices[i], &metrics));
        cli_json_put(root, "slices", slices);
    }
    if (board_is_sample(&f)) cli_json_put(root, "estimate", board_estimate_json(&f));
    if (from->resampled) {
        json_t *intervals = board_resampling_json(r->how, &f);
        for (int i = 0; i < r->metrics.count; i++)
            add_metric_json(intervals, &r->metrics.at[i], board_interval_json(from->interval[i]));
        cli_json_put(root, "intervals", intervals);
    }
    return root;
}

/* Prints "metric<tab>scorer<tab>value"; objects have dots: expected.20.mrr,
 * slices.time.[0, 60).mrr */
static void print_lines(const char *prefix, const char *scorer, json_t *object) {
    const char *key;
    json_t *value, *entry;
    size_t index;
    json_object_foreach(object, key, value) {
        char name[256];
        (void)snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(value))
            print_lines(name, scorer, value);
        else if (json_is_array(value))
            json_array_foreach(value, index, entry) {
                char slice[512];
                (void)snprintf(slice, sizeof slice, "%s.%s", name,
                               json_string_value(json_object_get(entry, "slice")));
                print_lines(slice, scorer, entry);
            }
        else if (json_is_integer(value))
            (void)printf("%s\t%s\t%lld\n", name, scorer, (long long)json_integer_value(value));
        else if (json_is_real(value))
            (void)printf("%s\t%s\t%.6f\n", name, scorer, json_real_value(value));
    }
}

/* ---- Tables ---- */

static void print_title(const char *kind, const char *what) {
    (void)printf("\n%s%s%s%s\n", cli_style(stdout, CLI_BOLD), kind, what,
                 cli_style(stdout, CLI_PLAIN));
}

static void print_interval(fr_interval i, int decimals, int wide) {
    char text[64] = "";
    if (!isnan(i.low))
        (void)snprintf(text, sizeof text, "[%.*f, %.*f]", decimals, i.low, decimals, i.high);
    (void)printf("  %*s", wide, text);
}

/* Width of a value and of the ends of its interval. */
static int decimals(const metric_choice *choice) {
    return choice->metric->kind == FR_KIND_COUNT ? 0 : 4;
}

static bool any_sampled(const result *all, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any |= all[i].row.sampled;
    return any;
}

static bool any_resampled(const result *all, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any |= all[i].resampled;
    return any;
}

enum { NARROW = 8, WIDE = 18 }; /* least width of a value, and of one with its interval */

/* Prints the metrics from .. to by their kind; one row per ranking, one column per metric. */
static void print_values(const result *all, int count, int width, const request *r, int from,
                         int to, bool numbers) {
    int least = any_resampled(all, count) ? WIDE : NARROW;
    (void)printf("%-*s", width, numbers ? "k" : "scorer");
    for (int m = from; m < to; m++) {
        const char *name = r->metrics.at[m].name;
        (void)printf("  %*s", least, numbers ? strchr(name, '@') + 1 : name);
    }
    (void)printf("\n");
    for (int i = 0; i < count; i++) {
        (void)printf("%-*s", width, all[i].row.name);
        for (int m = from; m < to; m++) {
            int column = numbers ? least : (int)strlen(r->metrics.at[m].name);
            double value = all[i].value[m].value;
            cli_text text = {"-"};
            if (r->metrics.at[m].metric->kind == FR_KIND_COUNT)
                text = cli_count((int64_t)value);
            else if (!isnan(value))
                (void)snprintf(text.s, sizeof text.s, "%.4f", value);
            (void)printf("  %*s", column < least ? least : column, text.s);
        }
        (void)printf("\n");
        if (!all[i].resampled) continue;
        (void)printf("%-*s", width, "");
        for (int m = from; m < to; m++) {
            int column = numbers ? least : (int)strlen(r->metrics.at[m].name);
            print_interval(all[i].interval[m], decimals(&r->metrics.at[m]),
                           column < least ? least : column);
        }
        (void)printf("\n");
    }
}

/* Prints one table per share that takes a number. --metric and --json have the other metrics. */
static void print_numbered(const result *all, int count, int width, const request *r) {
    for (int m = 0, to; m < r->metrics.count; m = to) {
        const fr_definition *metric = r->metrics.at[m].metric;
        for (to = m; to < r->metrics.count && r->metrics.at[to].metric == metric;) to++;
        if (!is_numbered(metric) || metric->kind != FR_KIND_SHARE) continue;
        char title[64];
        (void)snprintf(title, sizeof title, "%c%s", toupper((unsigned char)*metric->name),
                       metric->name + 1);
        print_title(title, ", full catalog");
        print_values(all, count, width, r, m, to, true);
    }
}

enum { CELL = 17 };

/* A cell of a table; ± is two bytes and one column. */
static void print_cell(double mean, double sd, bool there) {
    char text[48];
    (void)snprintf(text, sizeof text, there ? "%.4f ± %.4f" : "-", mean, sd);
    (void)printf("  %*s", there ? CELL + 1 : CELL, text);
}

/* Prints how many events count for each K, and of how many. */
static void print_counted(const result *from, int width, const request *r, int sampler) {
    (void)printf("%-*s", width, "  counted");
    for (int k = 0; k < r->samplers[sampler].k.count; k++) {
        const fr_expected *e = &from->expected[sampler][k];
        char text[72];
        (void)snprintf(text, sizeof text, "%s of %s", cli_count(e->events).s,
                       cli_count(e->events + e->ineligible).s);
        (void)printf("  %*s", CELL, e->events ? text : "-");
    }
    (void)printf("\n");
}

static bool same_counts(const result *a, const result *b, const request *r, int sampler) {
    for (int k = 0; k < r->samplers[sampler].k.count; k++) {
        const fr_expected *x = &a->expected[sampler][k], *y = &b->expected[sampler][k];
        if (x->events != y->events || x->ineligible != y->ineligible) return false;
    }
    return true;
}

/* Prints one table per sampler: one row per ranking, one column per K. */
static void print_sampler(const result *all, int count, int width, const request *r, int sampler) {
    const sampler_choice *choice = &r->samplers[sampler];
    bool drawn = is_drawn(r, sampler), same = true;
    print_title("Expected MRR, ", choice->sampler->title);
    (void)printf("A pool that is too small %s.\n%-*s",
                 r->small == FR_SMALL_WHOLE ? "is taken whole" : "leaves its event out", width,
                 "K");
    for (int k = 0; k < choice->k.count; k++)
        (void)printf("  %*lld", CELL, (long long)choice->k.at[k]);
    (void)printf("\n");
    for (int i = 1; i < count; i++) same = same && same_counts(&all[0], &all[i], r, sampler);
    for (int i = 0; i < count; i++) {
        (void)printf("%-*s", width, all[i].row.name);
        for (int k = 0; k < choice->k.count; k++) {
            const fr_expected *e = &all[i].expected[sampler][k];
            print_cell(e->mrr, e->sd, e->events > 0);
        }
        (void)printf("\n");
        if (all[i].resampled) (void)printf("%-*s", width, "");
        for (int k = 0; all[i].resampled && k < choice->k.count; k++)
            print_interval(all[i].expected_interval[sampler][k], 4, CELL);
        if (all[i].resampled) (void)printf("\n");
        if (drawn) (void)printf("%-*s", width, "  drawn");
        for (int k = 0; drawn && k < choice->k.count; k++)
            print_cell(all[i].drawn[k].mrr, all[i].drawn[k].sd, all[i].drawn[k].events > 0);
        if (drawn) (void)printf("\n");
        if (!same || i == count - 1) print_counted(&all[i], width, r, sampler);
    }
}

static int print_slices(const result *all, int count, const request *r, int format) {
    const char *name[MOST_METRICS];
    int code = CLI_OK;
    metric_names(r, name);
    slice_metrics metrics = {.name = name, .count = r->metrics.count, .how = r->how};
    for (int f = 0; !code && f < r->by_count; f++)
        for (int i = 0; !code && i < count; i++) {
            const char *of = count > 1 || all[i].row.sampled ? all[i].row.name : NULL;
            const char *protocol = fr_ranking_get(all[i].ranking).protocol_text;
            if (f + i) (void)printf("\n");
            if (format == FR_FORMAT_TEXT)
                slice_table_print(&all[i].slices[f], of, &metrics);
            else
                code = slice_table_print_as(&all[i].slices[f], of, &metrics, protocol, format);
        }
    return code;
}

/* Prints one CSV table: a row for every slice of every ranking. */
static int print_slices_csv(const result *all, int count, const request *r) {
    slice_metrics metrics = {.count = r->metrics.count, .put = add_metrics, .user = r};
    json_t *rows = json_array();
    for (int i = 0; i < count; i++)
        for (int f = 0; f < r->by_count; f++) {
            json_t *list = slice_table_json(&all[i].slices[f], &metrics), *slice;
            size_t k;
            json_array_foreach(list, k, slice) {
                json_t *row = json_pack("{s:o, s:s, s:s}", "file", cli_json_text(all[i].path),
                                        "scorer", fr_ranking_get(all[i].ranking).scorer, "by",
                                        all[i].slices[f].slices.field);
                fr_ranking_facts facts = fr_ranking_get(all[i].ranking);
                if (board_is_sample(&facts))
                    cli_json_put(row, "estimate", board_estimate_json(&facts));
                cli_json_join(row, json_incref(slice));
                cli_json_push(rows, row);
            }
            json_decref(list);
        }
    return cli_print_csv(rows);
}

/* ---- LaTeX and Markdown ---- */

/* Opens a table with a row per ranking and adds its head; the caller closes it. */
static int open_table(const result *all, const char *title, const char *caption, fr_table **out) {
    fr_error err = {0};
    const char *protocol = fr_ranking_get(all[0].ranking).protocol_text;
    int code = cli_report(fr_table_make(title, caption, protocol, out, &err), &err);
    fr_table_column(*out, NULL, "scorer", true);
    return code;
}

/* Explains the intervals, prints the table unless opening it failed, and closes it. */
static int end_table(fr_table *table, const result *all, int count, const request *r, int code,
                     int format, bool first) {
    char note[BOARD_TEXT];
    board_resampling_text(r->how, any_sampled(all, count), note, sizeof note);
    if (*note) fr_table_note(table, note);
    if (!code) code = cli_table_print(table, format, first);
    fr_table_close(table);
    return code;
}

static fr_table_cell value_cell(const result *from, const request *r, int metric) {
    double value = from->value[metric].value;
    if (r->metrics.at[metric].metric->kind == FR_KIND_COUNT) return cli_cell_count((int64_t)value);
    return cli_cell_number(value, 4);
}

/* The metrics from .. to: one row per ranking, one column per metric, intervals below the values.
 */
static int print_values_as(const result *all, int count, const request *r, int from, int to,
                           bool first, int format) {
    fr_table *table = NULL;
    int code = open_table(all, "Metrics", "Over the full catalog.", &table);
    for (int m = from; m < to; m++) fr_table_column(table, NULL, r->metrics.at[m].name, false);
    for (int i = 0; i < count; i++) {
        fr_table_row(table);
        fr_table_put(table, cli_cell_text(all[i].row.name));
        for (int m = from; m < to; m++) fr_table_put(table, value_cell(&all[i], r, m));
        if (!all[i].resampled) continue;
        fr_table_row(table);
        fr_table_put(table, (fr_table_cell){.kind = FR_CELL_EMPTY});
        for (int m = from; m < to; m++)
            fr_table_put(table, cli_cell_interval(all[i].interval[m], decimals(&r->metrics.at[m])));
    }
    return end_table(table, all, count, r, code, format, first);
}

static int print_sampler_as(const result *all, int count, const request *r, int sampler, bool first,
                            int format) {
    const sampler_choice *choice = &r->samplers[sampler];
    fr_table *table = NULL;
    char caption[256];
    (void)snprintf(caption, sizeof caption,
                   "Sampler %s: %s. The exact expectation over all draws, and the standard "
                   "deviation that drawing would add.",
                   choice->sampler->name, choice->sampler->title);
    int code = open_table(all, "Expected MRR by number of sampled negatives", caption, &table);
    for (int k = 0; k < choice->k.count; k++) {
        char head[32];
        (void)snprintf(head, sizeof head, "K = %lld", (long long)choice->k.at[k]);
        fr_table_column(table, NULL, head, false);
    }
    for (int i = 0; i < count; i++) {
        const fr_expected *e = all[i].expected[sampler];
        fr_table_row(table);
        fr_table_put(table, cli_cell_text(all[i].row.name));
        for (int k = 0; k < choice->k.count; k++)
            fr_table_put(table, cli_cell_mean(e[k].mrr, e[k].sd, 4));
        if (!all[i].resampled) continue;
        fr_table_row(table);
        fr_table_put(table, (fr_table_cell){.kind = FR_CELL_EMPTY});
        for (int k = 0; k < choice->k.count; k++)
            fr_table_put(table, cli_cell_interval(all[i].expected_interval[sampler][k], 4));
    }
    return end_table(table, all, count, r, code, format, first);
}

/* The tables of print_tables in another format. */
static int print_tables_as(const result *all, int count, const board_row *rows, board_shape shape,
                           const request *r, int format) {
    int code, last = r->metrics.count;
    if (r->chosen)
        code = print_values_as(all, count, r, 0, last, true, format);
    else
        code = board_print_as(rows, count, shape, r->how,
                              fr_ranking_get(all[0].ranking).protocol_text, format);
    for (int m = 0, to; !code && !r->chosen && m < last; m = to) {
        for (to = m; to < last && r->metrics.at[to].metric == r->metrics.at[m].metric;) to++;
        if (is_numbered(r->metrics.at[m].metric))
            code = print_values_as(all, count, r, m, to, false, format);
    }
    for (int s = 0; !code && s < r->sampler_count; s++)
        code = print_sampler_as(all, count, r, s, false, format);
    return code;
}

/* ---- All rankings ---- */

static int print_tables(const result *all, int count, board_shape shape, const request *r,
                        int format) {
    board_row *rows = calloc((size_t)count, sizeof *rows);
    int width = 9; /* the width of "  counted" */
    if (!rows) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (int i = 0; i < count; i++) {
        rows[i] = all[i].row;
        if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
    }
    if (format != FR_FORMAT_TEXT) {
        int code = print_tables_as(all, count, rows, shape, r, format);
        free(rows);
        return code;
    }
    if (r->chosen) {
        print_values(all, count, width, r, 0, r->metrics.count, false);
    } else {
        board_print(rows, count, shape);
        print_numbered(all, count, width, r);
    }
    free(rows);
    bool drawn = false;
    for (int i = 0; i < count; i++) drawn = drawn || !is_listed(&all[i]);
    for (int s = 0; drawn && s < r->sampler_count; s++) print_sampler(all, count, width, r, s);
    if (!drawn)
        (void)printf("\nRanked against given lists of negatives: nothing is drawn.\n");
    else if (r->sampler_count)
        (void)printf(
            "\n± is the standard deviation over evaluation seeds that drawing would add.\n");
    char text[BOARD_TEXT];
    board_resampling_text(r->how, any_sampled(all, count), text, sizeof text);
    if (*text) (void)printf("\n%s\n", text);
    if (r->draws)
        (void)printf("drawn: mean and standard deviation over %s seeds, as a check.\n",
                     cli_count(r->draws).s);
    return CLI_OK;
}

/* ---- The command ---- */

/* Warns about each ranking that must not be compared with the first. */
static void warn_of_protocols(const cli_call *call, const result *all, int count) {
    fr_ranking_facts first = fr_ranking_get(all[0].ranking);
    for (int i = 1; i < count; i++) {
        fr_ranking_facts other = fr_ranking_get(all[i].ranking);
        char fields[640], line[1024];
        if (!fr_protocol_compare(&first.protocol, &other.protocol, fields, sizeof fields)) continue;
        (void)snprintf(line, sizeof line,
                       "%.120s and %.120s follow different protocols and must not be compared; "
                       "they differ in %s",
                       call->argument[0], call->argument[i], fields);
        call->context.log(call->context.user, FR_WARNING, line);
    }
}

static int print_all(cli_call *call, const request *r, result *all, board_shape shape, int format) {
    const metrics_settings *settings = call->settings[0];
    int count = call->arguments;
    bool tables = format != CLI_FORMAT_JSON && format != FR_FORMAT_CSV;
    if (r->by_count && format == FR_FORMAT_CSV) return print_slices_csv(all, count, r);
    if (tables && !settings->lines)
        return r->by_count ? print_slices(all, count, r, format)
                           : print_tables(all, count, shape, r, format);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) cli_json_push(list, result_json(&all[i], r));
    int code = CLI_OK;
    if (call->common.json) /* one file: one object; several: an array */
        code = cli_print_json(json_incref(count == 1 ? json_array_get(list, 0) : list));
    else if (format == FR_FORMAT_CSV)
        code = cli_print_csv(json_incref(list));
    else if (!cli_json_whole())
        code = CLI_FAILED;
    else
        for (int i = 0; i < count; i++)
            print_lines("", cli_visible(fr_ranking_get(all[i].ranking).scorer),
                        json_array_get(list, (size_t)i));
    json_decref(list);
    return code;
}

/* The standard number if it was requested, otherwise the first one requested. */
static int64_t column(const cli_numbers *asked, int64_t standard) {
    for (int i = 0; i < asked->count; i++)
        if (asked->at[i] == standard) return standard;
    return asked->count ? asked->at[0] : standard;
}

static int write_events(const event_file *events, const result *all, int count) {
    fr_ranking **rankings = calloc((size_t)count, sizeof *rankings);
    if (!rankings) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (int i = 0; i < count; i++) rankings[i] = all[i].ranking;
    int code = write_per_event(events, rankings, count);
    free(rankings);
    return code;
}

static int answer(cli_call *call, const request *r, int format) {
    const metrics_settings *settings = call->settings[0];
    event_file events;
    int code = CLI_OK;
    if (settings->per_event && find_event_file(&events, settings->per_event, settings->force))
        return CLI_FAILED;
    board_shape shape = {column(&r->hits, board_standard.hits), column(&r->k, board_standard.k)};

    int count = call->arguments;
    result *all = calloc((size_t)count, sizeof *all);
    fr_error err = {0};
    if (!all) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (int i = 0; !code && i < count; i++) {
        all[i].path = call->argument[i];
        code = cli_report(fr_ranking_load(all[i].path, &all[i].ranking, &err), &err);
    }
    if (!code) warn_of_protocols(call, all, count);
    for (int i = 0; !code && i < count; i++) {
        fr_error named = {0};
        fr_status status = compute(&all[i], r, shape, &err);
        (void)snprintf(named.message, sizeof named.message, "%s: %.900s", all[i].path, err.message);
        code = cli_report(status, &named);
    }
    cli_terminal_clear();
    if (!code && settings->per_event) code = write_events(&events, all, count);
    if (!code && !(settings->per_event && !events.path[0]))
        code = print_all(call, r, all, shape, format);
    for (int i = 0; i < count; i++) {
        fr_ranking_close(all[i].ranking);
        for (int f = 0; f < r->by_count; f++) slice_table_free(&all[i].slices[f]);
    }
    free(all);
    return code;
}

static int run_metrics(cli_call *call) {
    const metrics_settings *settings = call->settings[0];
    request r = {.small = settings->small, .draws = settings->draws, .context = &call->context};
    const cli_seed *seed = call->settings[SEED];
    int format, code = cli_format_take(call, call->settings[OUTPUT], &format);
    r.how = (board_resampling){call->settings[INTERVALS], seed->seed, settings->interval};
    if (!code && settings->lines && format != FR_FORMAT_TEXT)
        code = cli_usage("options lines and format, expected one or the other");
    if (!code && settings->by && settings->interval)
        code = cli_usage("option interval: slices have none, expected it without --by");
    r.tables = format != CLI_FORMAT_JSON && format != FR_FORMAT_CSV && !settings->lines;
    if (!code) code = take_request(settings, &r);
    if (!code) code = answer(call, &r, format);
    free(r.by_memory);
    return code;
}

static const fr_definition *find_field(const char *name) {
    const fr_definition *d;
    for (int i = 0; (d = fr_slice_field_at(i)) && strcmp(d->name, name) != 0; i++) continue;
    return d;
}

static void list_definitions(const fr_definition *(*get)(int index), const char *end) {
    const fr_definition *d;
    for (int i = 0; (d = get(i)); i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "%s%s", d->name, end);
        cli_pair(word, "%s", d->title);
    }
}

/* `metrics --help NAME` prints the definition of a metric, a sampler or a field, or a list. */
static int explain(const char *name) {
    bool all = !strcmp(name, "all"), metrics = all || !strcmp(name, "metrics"),
         samplers = all || !strcmp(name, "samplers"), slices = all || !strcmp(name, "slices");
    if (!metrics && !samplers && !slices) {
        const fr_definition *d = fr_metric_find(name, NULL);
        if (!d) d = fr_sampler_find(name, NULL);
        if (!d) d = find_field(name);
        const char *near = d ? NULL : fr_text_nearest(name, metric_name, NULL);
        if (!d && !near) near = fr_text_nearest(name, sampler_name, NULL);
        if (!d && !near) near = fr_text_nearest(name, field_name, NULL);
        if (near) return cli_usage("no metric or sampler %s, did you mean %s?", name, near);
        if (!d) return cli_usage("no metric or sampler %s (`metrics --help all` lists them)", name);
        (void)printf("%s%s%s: %s\n", cli_style(stdout, CLI_BOLD), d->name,
                     cli_style(stdout, CLI_PLAIN), d->title);
        cli_paragraph(d->explanation, 2);
        return CLI_OK;
    }
    if (metrics) list_definitions(fr_metric_at, "");
    if (all) (void)printf("\n");
    if (samplers) list_definitions(fr_sampler_at, "-K");
    if (all) (void)printf("\n");
    if (slices) list_definitions(fr_slice_field_at, "");
    return CLI_OK;
}

const cli_command cli_metrics_command = {
    .name = "metrics",
    .summary = "Compute metrics from rank records",
    .text =
        "Computes full-catalog MRR and Hits, the exact expectation of sampled metrics, the "
        "standard deviation that drawing would add, metrics among seen and unseen destinations, "
        "coverage and ties. Everything comes from the records of `fullrank rank`, without scoring "
        "again. -m NAME prints only the named metrics. With --json every metric has a key; one "
        "file gives one object, and several files give an array. --format csv has a row for each "
        "file and a column for each of these numbers. --interval adds a confidence interval to "
        "every number.\n"
        "--by FIELD prints metrics for slices of the events, such as repeated and new pairs or "
        "stretches of time.\n"
        "`fullrank metrics --help NAME` explains a metric, sampler or field; the names metrics, "
        "samplers, slices and all list them.",
    .arguments = "RANKS.npy...",
    .example = "fullrank metrics recency.npy --sampler history-mix-100 --json",
    .groups = {{"Metrics", metrics_options, sizeof(metrics_settings)},
               {"Intervals", fr_interval_options, sizeof(fr_interval_settings)},
               CLI_SEED_GROUP,
               CLI_FORMAT_GROUP},
    .run = run_metrics,
    .explain = explain,
};
