/* baseline.h - scorers without training.
 *
 * Each baseline keeps a score for every destination, which only the destination's own events
 * change. If it treats the source's own past specially, it also has a short list of destinations
 * that rank above the rest. Scores are whole numbers if only the order matters, so ties are exact.
 * All baselines except `random` also define fr_scorer_definition.stand, which compares candidates
 * without scoring them: their ranks are counted in a time that does not grow with the catalog.
 */
#ifndef FR_BASELINES_BASELINE_H
#define FR_BASELINES_BASELINE_H

#include "data/window.h"

#include <string.h>

/* The baselines in the order of lists: X(name) is baseline_name, defined in its own file. */
/* clang-format off */
#define BASELINES(X) \
    X(recency) \
    X(frequency) \
    X(decayed_frequency) \
    X(edgebank) \
    X(membership) \
    X(markov) \
    X(popularity) \
    X(recent_popularity) \
    X(random)
/* clang-format on */
#define DECLARE(name) extern const fr_scorer_kind baseline_##name;
BASELINES(DECLARE)
#undef DECLARE

/* True if float32 cannot represent twice the number of positions in the window, plus all
 * destinations. */
bool baseline_is_long(const fr_window *w);
/* The score of a whole number from -1 on; a larger number has a larger score. It is the number
 * itself, or in a long window the normal float32 number at that position of their order (there are
 * 4.26e9). */
static inline float baseline_score(bool is_long, int64_t number) {
    if (!is_long) return (float)number;
    enum { LEAST = 0x00800000, MOST = 0x7f7fffff }; /* bits of the normal numbers above 0 */
    const int64_t half = (int64_t)MOST - LEAST + 1;
    bool positive = ++number >= half;
    uint32_t bits = (uint32_t)(positive ? LEAST + (number - half) : MOST - number);
    float score;
    memcpy(&score, &bits, sizeof score);
    return positive ? score : -score;
}
/* level[events] of a running count: events of the destination before this one. */
fr_status baseline_count_levels(const fr_window *w, arena *memory, int32_t **out, fr_error *err);
/* The longest list of distinct destinations of a source. */
int32_t baseline_longest(const fr_window *w);

/* Settings of baselines that forget. */
extern const fr_option baseline_decay_options[];
typedef struct decay_settings {
    double half_life;
} decay_settings;
/* ln 2 / half-life; half_life 0 means a twentieth of the training prefix's duration. Limited so
 * that decay * time is finite. */
double baseline_decay(const fr_window *w, double half_life);
/* log(exp(heat) + exp(fresh)): a decayed count as a logarithm, so that it neither overflows nor
 * underflows, however short the half-life. Starts at -INFINITY and never falls. */
double baseline_heat(double heat, double fresh);

#endif
