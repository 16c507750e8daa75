/* minimal.c - the scorer that knows only pair membership (fullrank.h, chapter 14).
 *
 * s = b0 + beta M (PROTOCOL 9). Its data are four counts: positives and negatives, met and not met;
 * so drawing negatives means drawing how many of them are met, and the logistic regression is that
 * of a 2x2 table. Newton's method with halved steps finds the minimum of the convex loss. Nothing
 * cancels, even if the data separate and only the penalty keeps beta finite.
 */
#include "base/context.h"
#include "base/options.h"
#include "data/facts.h"
#include "eval/draws.h"

#include <math.h>

const fr_option fr_minimal_options[FR_OPTIONS_MAX] = {
    {"penalty", FR_OPTION_REAL, "0.0001", "WEIGHT", 1e-12, 1e6,
     offsetof(fr_minimal_settings, penalty),
     "penalty of beta: the fit minimises the logistic loss, summed over positives and "
     "negatives, plus WEIGHT/2 beta^2; b0 has no penalty"},
    OPTIONS_END(fr_minimal_settings)};

/* Samples by membership: [0] not met, [1] met. */
typedef struct samples {
    double positive[2], negative[2];
} samples;

typedef struct point {
    double b0, beta;
} point;

static double sigmoid(double s) { return s < 0 ? exp(s) / (1 + exp(s)) : 1 / (1 + exp(-s)); }
static double softplus(double s) { return fmax(s, 0) + log1p(exp(-fabs(s))); }

static double loss(const samples *n, double penalty, point p) {
    const double score[] = {p.b0, p.b0 + p.beta};
    double sum = penalty / 2 * p.beta * p.beta;
    for (int m = 0; m < 2; m++)
        sum += n->positive[m] * softplus(-score[m]) + n->negative[m] * softplus(score[m]);
    return sum;
}

/* The step of Newton's method from `p`, and the variance of beta by the curvature there. */
static point newton_step(const samples *n, double penalty, point p, double *variance) {
    const double score[] = {p.b0, p.b0 + p.beta};
    double g[2], w[2]; /* slope and curvature of the loss in the score */
    for (int m = 0; m < 2; m++) {
        g[m] = n->negative[m] * sigmoid(score[m]) - n->positive[m] * sigmoid(-score[m]);
        w[m] = (n->positive[m] + n->negative[m]) * sigmoid(score[m]) * sigmoid(-score[m]);
    }
    /* Hessian [w0 + w1, w1; w1, w1 + penalty], gradient (g0 + g1, g1 + pull) */
    double pull = penalty * p.beta, determinant = w[0] * w[1] + penalty * (w[0] + w[1]);
    *variance = (w[0] + w[1]) / determinant;
    return (point){-(w[1] * (g[0] - pull) + penalty * (g[0] + g[1])) / determinant,
                   -(w[0] * (g[1] + pull) + w[1] * (pull - g[0])) / determinant};
}

static fr_status fit(const samples *n, double penalty, fr_minimal_fit *out, fr_error *err) {
    enum { MOST_STEPS = 1000 };
    point at = {0};
    double variance = NAN, here = loss(n, penalty, at);
    for (int k = 0; k < MOST_STEPS; k++) {
        point step = newton_step(n, penalty, at, &variance);
        double size = fabs(step.b0) + fabs(step.beta);
        if (size <= 1e-10 * (1 + fabs(at.beta))) {
            out->intercept = at.b0;
            out->beta = at.beta;
            out->error = sqrt(variance);
            return FR_OK;
        }
        for (double part = 1; part > 1e-12; part /= 2) { /* downhill, up to rounding */
            point next = {at.b0 + part * step.b0, at.beta + part * step.beta};
            double there = loss(n, penalty, next);
            if (!(there <= here + 1e-14 * fabs(here))) continue;
            at = next;
            here = there;
            break;
        }
    }
    return fail(err, FR_EINPUT, "minimal scorer: no minimum after %d steps, beta is %g", MOST_STEPS,
                at.beta);
}

/* Counts the positives of eligible events, and how many of the negatives drawn for each have been
 * met. */
static void draw(const fr_window *w, uint64_t seed, samples *random, samples *history) {
    static const int64_t k[] = {FACTS_ENOUGH};
    rng_key key = {.seed = seed, .purpose = RNG_MINIMAL};
    for (eligible_event e = {0}; facts_next_eligible(w, &e);) {
        expected_pool pool = {.size = e.catalog, .above = e.catalog_seen}; /* above: met */
        draw_counts met;
        draws_nested(&pool, key, w->first + e.event, k, 1, &met);
        int32_t drawn = e.catalog < FACTS_ENOUGH ? e.catalog : FACTS_ENOUGH;
        random->positive[e.repeated]++;
        random->negative[1] += met.above;
        random->negative[0] += drawn - met.above;
        history->positive[e.repeated]++;
        history->negative[1] += FACTS_ENOUGH; /* all of them have been met */
    }
}

static fr_status complete(const samples *n, double p1, double penalty, fr_minimal_fit *out,
                          fr_error *err) {
    out->beta_star = facts_beta_star(p1, out->q1);
    out->seen = (int64_t)n->negative[1];
    out->negatives = (int64_t)(n->negative[0] + n->negative[1]);
    out->intercept = out->beta = out->error = NAN;
    return out->negatives ? fit(n, penalty, out, err) : FR_OK; /* there may be no negatives */
}

fr_status fr_minimal_compute(const fr_window *diagnostic, const fr_minimal_settings *settings,
                             int64_t seed, const fr_context *context, fr_minimal *out,
                             fr_error *err) {
    const fr_window *w = diagnostic;
    fr_minimal_settings own;
    NEED(diagnostic, err);
    NEED(out, err);
    TRY(options_settle(fr_minimal_options, settings, &own, sizeof own, err));
    settings = &own;
    samples random = {0}, history = {0};
    fr_facts facts;
    TRY(fr_facts_compute(w, w, context, &facts, err));
    *out = (fr_minimal){.test = w->to - w->from,
                        .eligible = facts.eligible,
                        .repeated = facts.eligible_repeated,
                        .p1 = facts.p1,
                        .random.q1 = facts.q1,
                        .history.q1 = 1};
    if (!facts.eligible)
        return fail(err, FR_EINPUT,
                    "%s: no eligible event: none of %lld test events has a source that has met %d "
                    "other destinations",
                    w->stream->name, (long long)out->test, FACTS_ENOUGH);
    draw(w, (uint64_t)seed, &random, &history);
    TRY(complete(&random, out->p1, settings->penalty, &out->random, err));
    return complete(&history, out->p1, settings->penalty, &out->history, err);
}
