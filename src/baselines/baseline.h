/* baseline.h - scorers without training.
 *
 * Each baseline keeps what changes with an event and nothing else: a vector of scores for
 * destinations in general (`tail`), updated in O(1) by observe, and, where it treats the source's
 * own past specially, a short list that is lifted above the tail when scoring. Scores are small
 * whole numbers wherever only the order matters, so that float32 holds them exactly and ties are
 * ties.
 */
#ifndef FR_BASELINES_BASELINE_H
#define FR_BASELINES_BASELINE_H

#include "data/lift.h"
#include "data/window.h"

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

/* Positions in the window are scores: refuses windows whose positions float32 cannot hold twice
 * over. */
fr_status baseline_check_positions(const fr_window *w, fr_error *err);

/* Settings of baselines that forget. */
extern const fr_option baseline_decay_options[];
typedef struct decay_settings {
    double half_life;
} decay_settings;
/* ln 2 / half-life; half_life 0 means a twentieth of the training prefix's duration. At most what
 * keeps decay * time finite. */
double baseline_decay(const fr_window *w, double half_life);
/* log(exp(heat) + exp(fresh)): a decayed count as a logarithm, so that it neither overflows nor
 * underflows, however short the half-life. Starts at -INFINITY and never falls. */
double baseline_heat(double heat, double fresh);

#endif
