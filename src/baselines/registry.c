/* registry.c - the list of baselines, opening one from its spec, and what several of them share. */
#define _GNU_SOURCE
#include "baselines/baseline.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const baseline *const baselines[] = {&baseline_recency,
                                     &baseline_frequency,
                                     &baseline_decayed_frequency,
                                     &baseline_edgebank,
                                     &baseline_membership,
                                     &baseline_markov,
                                     &baseline_popularity,
                                     &baseline_recent_popularity,
                                     &baseline_random,
                                     NULL};

const fr_baseline *fr_baseline_at(int index) {
    for (int i = 0; baselines[i]; i++)
        if (i == index) return &baselines[i]->facts;
    return NULL;
}

static const baseline *find(const char *name) {
    for (const baseline *const *b = baselines; *b; b++)
        if (!strcmp((*b)->facts.name, name)) return *b;
    return NULL;
}

static fr_status unknown(const char *name, fr_error *err) {
    fr_option names[sizeof baselines / sizeof *baselines] = {0}; /* for the nearest one */
    for (int i = 0; baselines[i]; i++) names[i].key = baselines[i]->facts.name;
    const char *near = fr_options_nearest(names, name);
    return near ? fail(err, FR_EUSAGE, "unknown baseline %s, did you mean %s?", name, near)
                : fail(err, FR_EUSAGE, "unknown baseline %s (`fullrank baselines` lists them)",
                       name);
}

fr_status baseline_open(const char *spec, const fr_window *w, int64_t seed, fr_scorer *out,
                        fr_error *err) {
    char *text = strdup(spec), *rest = text;
    if (!text) return fail_memory(err, strlen(spec));
    const char *name = strsep(&rest, ",");
    const baseline *b = find(name);
    void *settings = NULL;
    fr_status status = b ? allocate(1, b->settings, &settings, err) : unknown(name, err);
    if (!status) status = fr_options_defaults(b->facts.options, settings, err);
    for (char *entry; !status && (entry = strsep(&rest, ","));) {
        char *value = strchr(entry, '=');
        if (value) *value++ = 0;
        fr_error inner = {0};
        status = value ? fr_options_set(b->facts.options, settings, entry, value, &inner)
                       : fail(&inner, FR_EUSAGE, "found \"%s\", expected option=value", entry);
        if (status) (void)fail(err, status, "baseline %s: %s", name, inner.message);
    }
    if (!status) status = b->open(w, settings, seed, out, err);
    if (settings) fr_options_free(b->facts.options, settings);
    free(settings);
    free(text);
    return status;
}

fr_status baseline_check_positions(const fr_window *w, fr_error *err) {
    enum { MOST = 1 << 23 };
    if (w->events <= MOST) return FR_OK;
    return fail(err, FR_EINPUT, "a window of %d events, but this baseline ranks at most %d",
                w->events, MOST);
}

static int by_key(const void *a, const void *b) {
    double x = ((const keyed *)a)->key, y = ((const keyed *)b)->key;
    return (x > y) - (x < y);
}

void baseline_lift(keyed *list, int32_t count, float base, float *scores) {
    qsort(list, (size_t)count, sizeof *list, by_key);
    int32_t place = 0;
    for (int32_t k = 0; k < count; k++) {
        if (k && list[k].key > list[k - 1].key) place = k;
        scores[list[k].destination] = base + (float)place;
    }
}

const fr_option baseline_no_options[] = {{0}};

const fr_option baseline_decay_options[] = {
    {"half-life", FR_OPTION_REAL, "0", "SECONDS", 0, 1e300, offsetof(decay_settings, half_life),
     "time after which an event counts half; 0 = a twentieth of the training prefix"},
    {0}};

double baseline_decay(const fr_window *w, double half_life) {
    if (half_life <= 0) half_life = window_time(w, w->train - 1) / 20;
    double most = DBL_MAX / 4 / (1 + window_time(w, w->events - 1));
    return half_life > 0 ? fmin(0.69314718055994531 / half_life, most) : 0;
}

double baseline_heat(double heat, double fresh) {
    return fmax(heat, fresh + log1p(exp(heat - fresh))); /* fresh is never the smaller by much */
}
