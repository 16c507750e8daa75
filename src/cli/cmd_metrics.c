/* cmd_metrics.c - metrics: every number of a ranking from its records, without scoring again. */
#include "board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NUMBERS = 64, MOST_SAMPLERS = 16 };

typedef struct metrics_settings {
    char *k, *hits, *sampler, *per_event;
    int small;
    int64_t draws;
    bool lines, force;
} metrics_settings;

static const fr_option metrics_options[] = {
    {"k", FR_OPTION_TEXT, "1,5,20,50,100", "LIST", 0, 0, offsetof(metrics_settings, k),
     "numbers of sampled negatives"},
    {"hits", FR_OPTION_TEXT, "1,3,5,10,50", "LIST", 0, 0, offsetof(metrics_settings, hits),
     "the k of Hits@k"},
    {"sampler", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(metrics_settings, sampler),
     "further samplers, such as random-100,popularity,tgb-mix-100 (without a number: every --k); "
     "`metrics --help samplers` lists them"},
    {"small", FR_OPTION_CHOICE, "whole", "whole|ineligible", 0, 0,
     offsetof(metrics_settings, small),
     "a pool smaller than what is drawn from it: taken whole, or the event does not count"},
    {"draws", FR_OPTION_INT, "0", "SEEDS", 0, 1000000, offsetof(metrics_settings, draws),
     "also draw negatives with so many seeds, as a check of the expectations"},
    {"per-event", FR_OPTION_TEXT, "", "FILE.tsv", 0, 0, offsetof(metrics_settings, per_event),
     "write rank and reciprocal rank of every event; - is standard output"},
    {"lines", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(metrics_settings, lines),
     "one line per number: metric, scorer, value"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(metrics_settings, force),
     "replace a file of --per-event that exists"},
    {0}};

/* ---- Lists of numbers and samplers ---- */

typedef struct numbers {
    int64_t at[MOST_NUMBERS];
    int count;
} numbers;

/* "1,5,20" */
static bool parse_numbers(const char *option, const char *text, int most, numbers *out) {
    out->count = 0;
    for (const char *p = text ? text : ""; *p;) {
        char *end;
        long long value = strtoll(p, &end, 10);
        if (end == p || value < 1 || value > INT32_MAX || (*end && *end != ',') ||
            out->count == most) {
            (void)cli_usage(
                "option %s: found \"%s\", expected up to %d whole numbers from 1 on, such as "
                "1,5,20",
                option, text, most);
            return false;
        }
        out->at[out->count++] = value;
        p = end + (*end == ',');
    }
    return true;
}

/* One --sampler with the numbers of negatives it is asked for. */
typedef struct sampler_choice {
    const fr_definition *sampler;
    numbers k;
} sampler_choice;

static bool parse_samplers(const char *text, const numbers *k, sampler_choice *out, int *count) {
    char copy[1024], *rest = copy;
    *count = 0;
    if (!text) return true;
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strsep(&rest, ","));) {
        int64_t number = 0;
        const fr_definition *sampler = fr_sampler_find(word, &number);
        if (!sampler || *count == MOST_SAMPLERS) {
            (void)cli_usage("option sampler: %s %s (`metrics --help samplers` lists them)",
                            sampler ? "too many before" : "unknown sampler", word);
            return false;
        }
        sampler_choice *choice = &out[(*count)++];
        choice->sampler = sampler;
        choice->k = *k;
        if (number) choice->k = (numbers){{number}, 1};
    }
    return true;
}

/* ---- One ranking ---- */

typedef struct request {
    numbers k, hits;
    sampler_choice samplers[MOST_SAMPLERS]; /* [0] is uniform */
    int sampler_count, small;
    int64_t draws;
    const fr_context *context;
} request;

/* {"20": {"mrr": ..., "hits10": ..., "sd": ..., "events": ...}} */
static json_t *expected_json(const fr_ranking_facts *f, const request *r,
                             const sampler_choice *choice, fr_status *status, fr_error *err) {
    static const int64_t ten[] = {10};
    fr_expected e[MOST_NUMBERS];
    fr_sampling sampling = {.sampler = choice->sampler->name,
                            .small = r->small,
                            .oov = f->oov,
                            .k = choice->k.at,
                            .k_count = choice->k.count,
                            .hits = ten,
                            .hits_count = 1};
    *status = fr_expected_compute(f->records, f->count, &sampling, r->context, e, err);
    fr_draws drawn[MOST_NUMBERS];
    bool draw = r->draws && choice == &r->samplers[0];
    if (!*status && draw)
        *status = fr_draws_compute(f->records, f->count, &sampling, 1, r->draws, r->context, drawn,
                                   NULL, err);
    if (*status) return NULL;
    json_t *root = json_object();
    for (int i = 0; i < choice->k.count; i++) {
        if (!e[i].events) continue; /* K larger than every pool */
        char key[24];
        (void)snprintf(key, sizeof key, "%lld", (long long)e[i].k);
        json_t *entry =
            json_pack("{s:o, s:o, s:o, s:I, s:I}", "mrr", cli_json_real(e[i].mrr), "hits10",
                      cli_json_real(e[i].hits[0]), "sd", cli_json_real(e[i].sd), "events",
                      (json_int_t)e[i].events, "ineligible", (json_int_t)e[i].ineligible);
        if (entry && draw)
            (void)json_object_set_new(entry, "drawn",
                                      json_pack("{s:I, s:o, s:o}", "seeds", (json_int_t)r->draws,
                                                "mrr", cli_json_real(drawn[i].mrr), "sd",
                                                cli_json_real(drawn[i].sd)));
        (void)json_object_set_new(root, key, entry);
    }
    return root;
}

/* Everything about one ranking, in the keys scripts rely on. */
static json_t *ranking_json(const char *path, const fr_ranking *ranking, const request *r,
                            fr_status *status, fr_error *err) {
    static const struct {
        const char *metric, *key;
    } plain[] = {{"mrr", "mrr"},
                 {"ranked", "ranked"},
                 {"coverage", "coverage"},
                 {"ties", "ties"},
                 {"all-seen", "all_seen"},
                 {"all-unseen", "all_unseen"},
                 {"mrr-repeated", "mrr_repeated"},
                 {"mrr-new", "mrr_new"},
                 {"mrr-adjusted", "mrr_adjusted"},
                 {"mrr-available", "mrr_available"},
                 {"mean-rank", "mean_rank"},
                 {"median-rank", "median_rank"},
                 {"tie-spread", "tie_spread"}},
      rules[] = {{"mrr", "average"},
                 {"mrr-optimistic", "optimistic"},
                 {"mrr-pessimistic", "pessimistic"},
                 {"mrr-random-ties", "random"}};
    enum { PLAIN = sizeof plain / sizeof *plain, RULES = sizeof rules / sizeof *rules };
    const char *names[PLAIN + RULES + MOST_NUMBERS];
    char hits[MOST_NUMBERS][24];
    int count = 0;
    for (int i = 0; i < PLAIN; i++) names[count++] = plain[i].metric;
    for (int i = 0; i < RULES; i++) names[count++] = rules[i].metric;
    for (int i = 0; i < r->hits.count; i++) {
        (void)snprintf(hits[i], sizeof hits[i], "hits@%lld", (long long)r->hits.at[i]);
        names[count++] = hits[i];
    }
    fr_ranking_facts f = fr_ranking_get(ranking);
    fr_metric_value value[PLAIN + RULES + MOST_NUMBERS];
    *status = fr_metrics_compute(f.records, f.count, f.oov, names, count, value, err);
    if (*status) return NULL;
    json_t *root = json_pack("{s:s, s:s, s:s, s:s}", "file", path, "scorer", f.scorer, "data",
                             f.data, "protocol", f.protocol);
    json_t *by_rule = json_object(), *by_hits = json_object(), *sampled = json_object();
    for (int i = 0; i < PLAIN; i++) {
        bool whole = !strcmp(plain[i].metric, "ranked") || !strcmp(plain[i].metric, "ties");
        (void)json_object_set_new(root, plain[i].key,
                                  whole ? json_integer((json_int_t)value[i].value)
                                        : cli_json_real(value[i].value));
    }
    for (int i = 0; i < RULES; i++)
        (void)json_object_set_new(by_rule, rules[i].key, cli_json_real(value[PLAIN + i].value));
    for (int i = 0; i < r->hits.count; i++)
        (void)json_object_set_new(by_hits, hits[i] + 5,
                                  cli_json_real(value[PLAIN + RULES + i].value));
    (void)json_object_set_new(root, "hits", by_hits);
    (void)json_object_set_new(root, "mrr_by_tie_rule", by_rule);
    for (int i = 0; !*status && i < r->sampler_count; i++) {
        json_t *expected = expected_json(&f, r, &r->samplers[i], status, err);
        if (i == 0)
            (void)json_object_set_new(root, "expected", expected);
        else if (expected && json_object_get(sampled, r->samplers[i].sampler->name))
            (void)json_object_update(json_object_get(sampled, r->samplers[i].sampler->name),
                                     expected),
                json_decref(expected);
        else
            (void)json_object_set_new(sampled, r->samplers[i].sampler->name, expected);
    }
    (void)json_object_set_new(root, "sampled", sampled);
    return root;
}

/* ---- Printing ---- */

/* "metric<tab>scorer<tab>value", objects with dots: expected.20.mrr */
static void print_lines(const char *prefix, const char *scorer, json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(value))
            print_lines(name, scorer, value);
        else if (json_is_integer(value))
            (void)printf("%s\t%s\t%lld\n", name, scorer, (long long)json_integer_value(value));
        else if (json_is_real(value))
            (void)printf("%s\t%s\t%.6f\n", name, scorer, json_real_value(value));
    }
}

/* One table per sampler: rankings down, K across. */
static void print_samplers(json_t *const *all, const board_row *rows, int count, const request *r) {
    int width = 6;
    for (int i = 0; i < count; i++)
        if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
    for (int s = 0; s < r->sampler_count; s++) {
        const sampler_choice *choice = &r->samplers[s];
        (void)printf("\n%sExpected MRR, %s%s\n%-*s", cli_style(stdout, CLI_BOLD),
                     choice->sampler->title, cli_style(stdout, CLI_PLAIN), width, "K");
        for (int k = 0; k < choice->k.count; k++)
            (void)printf("  %15lld", (long long)choice->k.at[k]);
        (void)printf("\n");
        for (int i = 0; i < count; i++) {
            json_t *by_k =
                s ? json_object_get(json_object_get(all[i], "sampled"), choice->sampler->name)
                  : json_object_get(all[i], "expected");
            (void)printf("%-*s", width, rows[i].name);
            for (int k = 0; k < choice->k.count; k++) {
                char key[24], cell[32];
                (void)snprintf(key, sizeof key, "%lld", (long long)choice->k.at[k]);
                json_t *e = json_object_get(by_k, key);
                (void)snprintf(cell, sizeof cell, e ? "%.4f ± %.4f" : "-",
                               json_number_value(json_object_get(e, "mrr")),
                               json_number_value(json_object_get(e, "sd")));
                (void)printf("  %*s", e ? 16 : 15, cell); /* ± is two bytes */
            }
            (void)printf("\n");
        }
    }
    (void)printf("\n± is the standard deviation over evaluation seeds that drawing would add.\n");
}

/* ---- Per event ---- */

static void write_events(FILE *out, const fr_ranking *ranking) {
    fr_ranking_facts f = fr_ranking_get(ranking);
    for (int64_t i = 0; i < f.count; i++) {
        const fr_record *e = &f.records[i];
        (void)fprintf(out, "%s\t%lld\t%lld\t%lld\t%.17g\t%d\t%d\t", f.scorer, (long long)e->event,
                      (long long)e->source, (long long)e->destination, e->time, e->covered,
                      e->repeated);
        double rank = 1 + e->above + e->tied / 2.0;
        if (e->covered)
            (void)fprintf(out, "%d\t%d\t%d\t%.1f\t%.6f\n", e->n, e->above, e->tied, rank, 1 / rank);
        else
            (void)fprintf(out, "\t\t\t\t%s\n", f.oov == FR_OOV_ZERO ? "0" : "");
    }
}

/* To a temporary name first: the file is there complete or not at all. */
static int write_per_event(const char *path, bool force, fr_ranking *const *rankings, int count) {
    char temporary[4096];
    bool standard = !strcmp(path, "-");
    if (!standard && !force && !access(path, F_OK)) {
        cli_error("%s: exists; --force replaces it", path);
        return CLI_FAILED;
    }
    (void)snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    FILE *out = standard ? stdout : fopen(temporary, "w");
    bool good = out != NULL;
    if (good) {
        (void)fprintf(out, "scorer\tevent\tsource\tdestination\ttime\tcovered\trepeated\tn\tabove\t"
                           "tied\trank\treciprocal_rank\n");
        for (int i = 0; i < count; i++) write_events(out, rankings[i]);
        if (standard) return CLI_OK; /* main sees to its errors */
        good = !ferror(out);
        good = !fclose(out) && good && !rename(temporary, path);
    }
    if (good) return CLI_OK;
    cli_error("%s: cannot be written: %s", path, strerror(errno));
    (void)unlink(temporary);
    return CLI_FAILED;
}

/* ---- The command ---- */

static int print_all(cli_call *call, const request *r, fr_ranking *const *rankings, json_t **all,
                     board_row *rows) {
    const metrics_settings *settings = call->settings[0];
    int count = call->arguments;
    fr_error err = {0};
    fr_status status = FR_OK;
    for (int i = 0; !status && i < count; i++) {
        fr_ranking_facts f = fr_ranking_get(rankings[i]);
        all[i] = ranking_json(call->argument[i], rankings[i], r, &status, &err);
        if (!status) status = board_fill(&rows[i], f.scorer, rankings[i], &err);
        if (status) cli_error("%s: %s", call->argument[i], err.message);
    }
    if (status) return CLI_FAILED;
    cli_terminal_clear();
    if (settings->per_event) {
        int code = write_per_event(settings->per_event, settings->force, rankings, count);
        if (code || !strcmp(settings->per_event, "-")) return code;
    }
    if (call->common.json) { /* one file: its object; several: an array of them */
        json_t *root = count == 1 ? json_incref(all[0]) : json_array();
        for (int i = 0; count > 1 && i < count; i++) (void)json_array_append(root, all[i]);
        return cli_print_json(root);
    }
    for (int i = 0; settings->lines && i < count; i++)
        print_lines("", fr_ranking_get(rankings[i]).scorer, all[i]);
    if (settings->lines) return CLI_OK;
    board_print(rows, count);
    print_samplers(all, rows, count, r);
    return CLI_OK;
}

static int run_metrics(cli_call *call) {
    const metrics_settings *settings = call->settings[0];
    request r = {.small = settings->small, .draws = settings->draws, .context = &call->context};
    if (!parse_numbers("k", settings->k, MOST_NUMBERS, &r.k) ||
        !parse_numbers("hits", settings->hits, MOST_NUMBERS, &r.hits) ||
        !parse_samplers(settings->sampler, &r.k, r.samplers + 1, &r.sampler_count))
        return CLI_USAGE;
    r.samplers[0] = (sampler_choice){fr_sampler_find("uniform", NULL), r.k};
    r.sampler_count++;

    int count = call->arguments, code = CLI_OK;
    fr_ranking **rankings = calloc((size_t)count, sizeof(fr_ranking *));
    json_t **all = calloc((size_t)count, sizeof(json_t *));
    board_row *rows = calloc((size_t)count, sizeof *rows);
    fr_error err = {0};
    if (!rankings || !all || !rows) {
        cli_error("out of memory");
        code = CLI_FAILED;
    }
    for (int i = 0; !code && i < count; i++)
        code = cli_report(fr_ranking_load(call->argument[i], &rankings[i], &err), &err);
    for (int i = 1; !code && i < count; i++)
        if (strcmp(fr_ranking_get(rankings[0]).protocol, fr_ranking_get(rankings[i]).protocol))
            call->context.log(call->context.user, FR_WARNING,
                              "these rankings follow different protocols and must not be compared");
    if (!code) code = print_all(call, &r, rankings, all, rows);
    for (int i = 0; i < count; i++) {
        if (rankings) fr_ranking_close(rankings[i]);
        if (all) json_decref(all[i]);
    }
    free(rankings);
    free(all);
    free(rows);
    return code;
}

/* `metrics --help NAME`: the definition of a metric or sampler, or a list of them. */
static int explain(const char *name) {
    bool metrics = !strcmp(name, "all"), samplers = metrics || !strcmp(name, "samplers");
    metrics |= !strcmp(name, "metrics");
    if (!metrics && !samplers) {
        const fr_definition *d = fr_metric_find(name, NULL);
        if (!d) d = fr_sampler_find(name, NULL);
        if (!d) return cli_usage("no metric or sampler %s (`metrics --help all` lists them)", name);
        (void)printf("%s%s%s: %s\n", cli_style(stdout, CLI_BOLD), d->name,
                     cli_style(stdout, CLI_PLAIN), d->title);
        cli_paragraph(d->explanation, 2);
        return CLI_OK;
    }
    const fr_definition *d;
    for (int i = 0; metrics && (d = fr_metric_get(i)); i++) cli_pair(d->name, "%s", d->title);
    if (metrics && samplers) (void)printf("\n");
    for (int i = 0; samplers && (d = fr_sampler_get(i)); i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "%s-K", d->name);
        cli_pair(word, "%s", d->title);
    }
    return CLI_OK;
}

const cli_command cli_metrics_command = {
    .name = "metrics",
    .summary = "Compute metrics from rank records",
    .text =
        "Full-catalog MRR and Hits, the exact expectation of sampled metrics and the deviation "
        "that "
        "drawing would add, metrics among seen and unseen destinations, coverage and ties; all "
        "from "
        "the records of `fullrank rank`, without scoring again. With --json one file gives one "
        "object, several an array.\n"
        "`fullrank metrics --help NAME` explains a metric or sampler; the names metrics, samplers "
        "and all list them.",
    .arguments = "RANKS.npy...",
    .example = "fullrank metrics recency.npy --sampler tgb-mix-100 --json",
    .groups = {{"Metrics", metrics_options, sizeof(metrics_settings)}},
    .run = run_metrics,
    .explain = explain,
};
