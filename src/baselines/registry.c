/* registry.c - the list of baselines, and what several of them share. */
#include "baselines/baseline.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED(name) &baseline_##name,
static const fr_scorer_kind *const baselines[] = {BASELINES(LISTED)};

const fr_scorer_kind *fr_baseline_at(int index) {
    int count = (int)(sizeof baselines / sizeof *baselines);
    return index >= 0 && index < count ? baselines[index] : NULL;
}

bool baseline_is_long(const fr_window *w) {
    enum { MOST = 1 << 23 };
    return w->known_events > MOST || w->destinations > MOST; /* a representation: of the whole */
}

int32_t baseline_longest(const fr_window *w) {
    int32_t longest = 0;
    for (int32_t u = 0; u < w->sources; u++) {
        int32_t pairs = w->source_pair_at[u + 1] - w->source_pair_at[u];
        if (pairs > longest) longest = pairs;
    }
    return longest;
}

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
