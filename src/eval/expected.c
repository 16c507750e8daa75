/* expected.c - see expected.h.
 *
 * In both kinds of draw, neighbouring probabilities have a simple ratio: the distribution is
 * hypergeometric without replacement and binomial with it. The computation starts with weight 1 at
 * the mode and goes down on both sides by these ratios. It needs no factorials and loses no digits
 * (differences of lgamma would lose eight digits at 10^7 negatives). Dividing by the sum of the
 * weights gives probabilities. All terms are positive, so nothing cancels. It stops below
 * NEGLIGIBLE: the distributions are log-concave, so the rest is even smaller, even times the
 * largest possible RR.
 */
#include "eval/expected.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NEGLIGIBLE = 1e-30; /* of the weight at the mode */

/* The distribution of the number x of marked negatives among those drawn: low <= x <= high. */
typedef struct law {
    double draws, marked;
    double spare; /* without replacement: unmarked negatives minus draws; may be negative */
    double odds;  /* with replacement: the odds of a marked one */
    bool replaced;
    int64_t low, high, mode;
} law;

static int64_t between(double x, int64_t low, int64_t high) {
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

static law make_law(double size, double marked, int64_t draws, bool replaced) {
    law l = {.draws = (double)draws, .marked = marked, .high = draws, .replaced = replaced};
    double middle;
    if (replaced) {
        /* Masses are rounded, so the rest may be slightly negative. Infinite odds do no harm: the
         * sum starts at the top, and its first step down has weight 0. */
        l.odds = marked / fmax(0, size - marked);
        middle = (l.draws + 1) * (marked / size);
    } else {
        l.draws = fmin(l.draws, size);
        l.spare = size - marked - l.draws;
        l.low = (int64_t)fmax(0, -l.spare);
        l.high = (int64_t)fmin(l.draws, marked);
        middle = (l.draws + 1) * (marked + 1) / (size + 2);
    }
    l.mode = between(floor(middle), l.low, l.high);
    return l;
}

/* chance(x + 1) / chance(x) */
static double ratio(const law *l, double x) {
    if (l->replaced) return (l->draws - x) * l->odds / (x + 1);
    return (l->draws - x) * (l->marked - x) / ((x + 1) * (l->spare + x + 1));
}

/* Weights of x = first..last, at weight[x - l->low], and their sum. Ends below `least`. */
typedef struct walk {
    int64_t first, last;
    double sum;
} walk;

static walk walk_law(const law *l, double least, double *weight) {
    walk w = {l->mode, l->mode, 1};
    weight[l->mode - l->low] = 1;
    double here = 1;
    while (w.last < l->high && here >= least) {
        here *= ratio(l, (double)w.last++);
        weight[w.last - l->low] = here;
        w.sum += here;
    }
    here = 1;
    while (w.first > l->low && here >= least) {
        here /= ratio(l, (double)--w.first);
        weight[w.first - l->low] = here;
        w.sum += here;
    }
    return w;
}

/* Chances of t = first..first + count - 1, up to a common factor. */
typedef struct spread {
    double *weight; /* [count] */
    int64_t first, count;
} spread;

static int64_t room_of(const law *l) { return l->high - l->low + 1; }

/* t = 2h + g of one pool: h follows its law, and given h the tied ones follow theirs among the
 * negatives that are not above. */
static fr_status pool_spread(const expected_pool *pool, expected_scratch *scratch, int number,
                             spread *out, fr_error *err) {
    law above = make_law(pool->size, pool->above, pool->draws, pool->replaced);
    TRY(ARRAY_RESERVE(&scratch->above, (size_t)room_of(&above), err));
    double *h_weight = scratch->above.at;
    walk h_walk = walk_law(&above, NEGLIGIBLE, h_weight);

    int64_t most_tied = pool->tied > 0 ? (int64_t)above.draws - h_walk.first : 0;
    if (!pool->replaced && (double)most_tied > pool->tied) most_tied = (int64_t)pool->tied;
    out->first = 2 * h_walk.first;
    out->count = 2 * (h_walk.last - h_walk.first) + most_tied + 1;
    TRY(ARRAY_RESERVE(&scratch->spread[number], (size_t)out->count, err));
    TRY(ARRAY_RESERVE(&scratch->tied, (size_t)most_tied + 1, err));
    out->weight = scratch->spread[number].at;
    memset(out->weight, 0, (size_t)out->count * sizeof *out->weight);

    double *g_weight = scratch->tied.at;
    double not_above = pool->size - pool->above;
    for (int64_t h = h_walk.first; h <= h_walk.last; h++) {
        double here = h_weight[h - above.low];
        double *row = out->weight + (2 * h - out->first);
        if (pool->tied <= 0) {
            row[0] = here;
            continue;
        }
        law tied = make_law(not_above, pool->tied, (int64_t)above.draws - h, pool->replaced);
        walk g_walk = walk_law(&tied, NEGLIGIBLE / here, g_weight);
        double scale = here / g_walk.sum;
        for (int64_t g = g_walk.first; g <= g_walk.last; g++)
            row[g] += scale * g_weight[g - tied.low];
    }
    return FR_OK;
}

/* t of two pools together. */
static fr_status add_spreads(const spread *a, const spread *b, expected_scratch *scratch,
                             spread *out, fr_error *err) {
    out->first = a->first + b->first;
    out->count = a->count + b->count - 1;
    TRY(ARRAY_RESERVE(&scratch->sum, (size_t)out->count, err));
    out->weight = scratch->sum.at;
    memset(out->weight, 0, (size_t)out->count * sizeof *out->weight);
    for (int64_t i = 0; i < a->count; i++) {
        if (a->weight[i] == 0) continue; /* every second one if nothing is tied */
        for (int64_t j = 0; j < b->count; j++) out->weight[i + j] += a->weight[i] * b->weight[j];
    }
    return FR_OK;
}

/* scratch->rr.at[t] = 2 / (2 + t) for all t < count. */
static fr_status know_rr(expected_scratch *scratch, int64_t count, fr_error *err) {
    if (scratch->rr.count >= (size_t)count) return FR_OK;
    TRY(ARRAY_RESERVE(&scratch->rr, (size_t)count - scratch->rr.count, err));
    for (int64_t t = (int64_t)scratch->rr.count; t < count; t++)
        scratch->rr.at[t] = 2 / (double)(2 + t);
    scratch->rr.count = (size_t)count;
    return FR_OK;
}

static void spread_moments(const spread *s, const double *rr, const int64_t *hits, int hits_count,
                           expected_moments *out) {
    double sum = 0, mean = 0, variance = 0;
    rr += s->first;
    for (int64_t i = 0; i < s->count; i++) {
        sum += s->weight[i];
        mean += s->weight[i] * rr[i];
    }
    mean /= sum;
    for (int64_t i = 0; i < s->count; i++) { /* around the mean: exactly 0 when nothing varies */
        double away = rr[i] - mean;
        variance += s->weight[i] * (away * away);
    }
    out->rr = mean;
    out->variance = variance / sum;
    for (int k = 0; k < hits_count; k++) {
        int64_t last = 2 * hits[k] - 2 - s->first; /* t <= 2k - 2 */
        double within = 0;
        for (int64_t i = 0; i <= last && i < s->count; i++) within += s->weight[i];
        out->hits[k] = within / sum;
    }
}

fr_status expected_compute(const expected_pool *pool, int pools, const int64_t *hits,
                           int hits_count, expected_scratch *scratch, expected_moments *out,
                           fr_error *err) {
    spread each[2], both;
    TRY(pool_spread(&pool[0], scratch, 0, &each[0], err));
    if (pools == 2) {
        TRY(pool_spread(&pool[1], scratch, 1, &each[1], err));
        TRY(add_spreads(&each[0], &each[1], scratch, &both, err));
    }
    const spread *t = pools == 2 ? &both : &each[0];
    TRY(know_rr(scratch, t->first + t->count, err));
    spread_moments(t, scratch->rr.at, hits, hits_count, out);
    return FR_OK;
}

void expected_scratch_free(expected_scratch *scratch) {
    free(scratch->above.at);
    free(scratch->tied.at);
    free(scratch->spread[0].at);
    free(scratch->spread[1].at);
    free(scratch->sum.at);
    free(scratch->rr.at);
    *scratch = (expected_scratch){0};
}
