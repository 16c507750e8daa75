/* test_eval_expected.c - exact moments against brute force (every subset, every sequence), closed
 * forms, and a 60-digit reference; and what the theory says about the best order under a sampler.
 */
#include "eval/expected.h"
#include "testing.h"

#include <math.h>

static expected_scratch scratch;

static int free_scratch(void **state) {
    (void)state;
    expected_scratch_free(&scratch);
    return 0;
}

static double relative(double found, double wanted) {
    return found == wanted ? 0 : fabs(found - wanted) / fabs(wanted);
}

#define NEAR(found, wanted, most)                                                                  \
    do {                                                                                           \
        double f_ = (found), w_ = (wanted);                                                        \
        if (!(relative(f_, w_) <= (most))) {                                                       \
            print_error("# found %.17g, expected %.17g (%.2g off)\n", f_, w_, relative(f_, w_));   \
            assert_true(false);                                                                    \
        }                                                                                          \
    } while (0)

enum { HITS = 4 };
static const int64_t hits_at[HITS] = {1, 2, 3, 10};

static expected_moments compute(const expected_pool *pool, int pools) {
    fr_error err;
    expected_moments m;
    OK(expected_compute(pool, pools, hits_at, HITS, &scratch, &m, &err));
    return m;
}

static expected_moments uniform(double size, double above, double tied, int64_t draws) {
    return compute(&(expected_pool){size, above, tied, draws, false}, 1);
}

/* ---- brute force ---- */

enum { MOST_T = 24 };
static const int64_t LCM = 26771144400; /* of 1..25: L * 2/(2+t) is whole for t <= 23 */

/* A distribution of t = 2h + g as whole numbers of equally likely cases. */
typedef struct tally {
    int64_t cases[MOST_T], total;
} tally;

static void add_case(tally *t, int label_above, int label_tied, int64_t cases) {
    t->cases[2 * label_above + label_tied] += cases;
    t->total += cases;
}

/* All moments as exact fractions with one rounding at the end. */
static void check_tally(const tally *t, expected_moments m) {
    __int128 rr = 0, rr2 = 0;
    int64_t within[HITS] = {0};
    for (int i = 0; i < MOST_T; i++) {
        __int128 value = 2 * LCM / (2 + i);
        rr += value * t->cases[i];
        rr2 += value * value * t->cases[i];
        for (int k = 0; k < HITS; k++)
            if (2 + i <= 2 * hits_at[k]) within[k] += t->cases[i];
    }
    long double all = (long double)t->total, mean = (long double)rr / LCM / all;
    NEAR(m.rr, (double)mean, 1e-14);
    NEAR(m.variance + m.rr * m.rr, (double)((long double)rr2 / LCM / LCM / all), 1e-14);
    for (int k = 0; k < HITS; k++) NEAR(m.hits[k], (double)((long double)within[k] / all), 1e-14);
}

static int bits(unsigned x) { return __builtin_popcount(x); }

/* Negatives 0..above-1 are above, the next ones tied. */
static unsigned mask_above(int above) { return (1u << above) - 1; }
static unsigned mask_tied(int above, int tied) {
    return mask_above(above + tied) ^ mask_above(above);
}

static void test_every_subset(void **state) {
    (void)state;
    for (int size = 1; size <= 11; size++)
        for (int above = 0; above <= size; above++)
            for (int tied = 0; tied <= size - above; tied++) {
                tally by_draws[12] = {0};
                for (unsigned set = 0; set < 1u << size; set++)
                    add_case(&by_draws[bits(set)], bits(set & mask_above(above)),
                             bits(set & mask_tied(above, tied)), 1);
                for (int draws = 0; draws <= size; draws++)
                    check_tally(&by_draws[draws], uniform(size, above, tied, draws));
            }
}

static void test_two_pools(void **state) {
    (void)state;
    enum { MOST = 4 };
    for (int size_a = 0; size_a <= MOST; size_a++)
        for (int above_a = 0; above_a <= size_a; above_a++)
            for (int tied_a = 0; tied_a <= size_a - above_a; tied_a++)
                for (int size_b = 0; size_b <= MOST; size_b++)
                    for (int above_b = 0; above_b <= size_b; above_b++)
                        for (int tied_b = 0; tied_b <= size_b - above_b; tied_b++) {
                            tally by_draws[MOST + 1][MOST + 1] = {0};
                            for (unsigned a = 0; a < 1u << size_a; a++)
                                for (unsigned b = 0; b < 1u << size_b; b++)
                                    add_case(&by_draws[bits(a)][bits(b)],
                                             bits(a & mask_above(above_a)) +
                                                 bits(b & mask_above(above_b)),
                                             bits(a & mask_tied(above_a, tied_a)) +
                                                 bits(b & mask_tied(above_b, tied_b)),
                                             1);
                            /* draws beyond a pool take all of it */
                            for (int k = 0; k <= MOST + 1; k++)
                                for (int l = 0; l <= MOST + 1; l++) {
                                    expected_pool pool[2] = {{size_a, above_a, tied_a, k, false},
                                                             {size_b, above_b, tied_b, l, false}};
                                    check_tally(
                                        &by_draws[k < size_a ? k : size_a][l < size_b ? l : size_b],
                                        compute(pool, 2));
                                }
                        }
}

/* Every sequence of draws from a pool of five with whole-number weights. */
static void test_with_replacement(void **state) {
    (void)state;
    enum { SIZE = 5 };
    static const int weights[][SIZE] = {{1, 1, 1, 1, 1}, {5, 1, 3, 2, 7}, {1, 50, 0, 3, 1}};
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (int labels = 0; labels < 243; labels++) /* 3^5: below, tied, above */
            for (int draws = 1; draws <= 4; draws++) {
                int label[SIZE], sequences = 1;
                double size = 0, mass[3] = {0};
                for (int i = 0, rest = labels; i < SIZE; i++, rest /= 3) {
                    label[i] = rest % 3;
                    size += weights[w][i];
                    mass[label[i]] += weights[w][i];
                }
                for (int d = 0; d < draws; d++) sequences *= SIZE;
                tally t = {0};
                for (int s = 0; s < sequences; s++) {
                    int count[3] = {0};
                    int64_t cases = 1;
                    for (int d = 0, rest = s; d < draws; d++, rest /= SIZE) {
                        count[label[rest % SIZE]]++;
                        cases *= weights[w][rest % SIZE];
                    }
                    add_case(&t, count[2], count[1], cases);
                }
                expected_pool pool = {size, mass[2], mass[1], draws, true};
                check_tally(&t, compute(&pool, 1));
                pool.size /= 7; /* only ratios of masses matter */
                pool.above /= 7;
                pool.tied /= 7;
                NEAR(compute(&pool, 1).rr,
                     compute(&(expected_pool){size, mass[2], mass[1], draws, true}, 1).rr, 1e-14);
            }
}

/* Shares of 1 are rounded, so the share below the positive may become slightly negative. This must
 * do no harm. */
static void test_rounded_masses(void **state) {
    (void)state;
    for (int64_t draws = 1; draws <= 50; draws += 7)
        for (double noise = -3e-16; noise <= 3e-16; noise += 1e-16) {
            double d = (double)draws, e = 0.3;
            expected_moments m = compute(&(expected_pool){0.7, 0.7 + noise, 0, draws, true}, 1);
            NEAR(m.rr, 1 / (1 + d), 1e-13);
            m = compute(&(expected_pool){0.7, 0, 0.7 + noise, draws, true}, 1);
            NEAR(m.rr, 1 / (1 + d / 2), 1e-13);
            /* above or tied, never below: 1 + h + (d-h)/2 with h binomial */
            double rr = 0, chance = pow(e, d);
            for (double h = 0; h <= d; h++) {
                rr += chance / (1 + d / 2 + h / 2);
                chance *= (d - h) / (h + 1) * (1 - e) / e;
            }
            m = compute(&(expected_pool){1, 1 - e, e + noise, draws, true}, 1);
            NEAR(m.rr, rr, 1e-12);
            m = compute(&(expected_pool){1, 1 + fabs(noise), fabs(noise), draws, true}, 1);
            NEAR(m.rr, 1 / (1 + d), 1e-13);
        }
}

/* ---- closed forms ---- */

/* PROTOCOL 6 without ties: N/((K+1) r) * (1 - prod_{j=0..K} (1 - r/(N-j))). The product is the same
 * with K+1 and r exchanged; 1 - product is summed without cancellation, the rounding of each sum
 * kept aside. */
static double closed_uniform(double n, double draws, double rank) {
    double steps = fmin(draws + 1, rank), other = fmax(draws + 1, rank), q = 0, low = 0;
    for (double j = 0; j < steps && q < 1; j++) {
        double more = other / (n - j) * (1 - q - low), sum = q + more;
        low += more - (sum - q);
        q = sum;
    }
    return n / ((draws + 1) * rank) * (q + low);
}

static void test_closed_forms(void **state) {
    (void)state;
    static const double catalogs[] = {2, 3, 97, 822, 1000, 65537, 1e6, 1e7};
    for (size_t c = 0; c < sizeof catalogs / sizeof *catalogs; c++) {
        double n = catalogs[c];
        for (double rank = 1; rank <= n; rank = floor(rank * 2.7) + 1)
            for (double draws = 1; draws <= n - 1 && draws <= 1e6; draws = floor(draws * 3.3) + 1) {
                NEAR(uniform(n - 1, rank - 1, 0, (int64_t)draws).rr, closed_uniform(n, draws, rank),
                     1e-12);
                double p = (rank - 1) / (n - 1);
                expected_pool pool = {n - 1, rank - 1, 0, (int64_t)draws, true};
                NEAR(compute(&pool, 1).rr,
                     p > 0 ? -expm1((draws + 1) * log1p(-p)) / ((draws + 1) * p) : 1, 1e-12);
            }
    }
}

static void test_all_negatives_give_the_rank(void **state) {
    (void)state;
    static const double cases[][3] = {
        {1, 0, 0},       {1, 0, 1},           {96, 3, 0},           {821, 12, 5},
        {1e6, 1e5, 1e5}, {9999999, 17, 4444}, {9999999, 0, 9999999}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int more = 0; more < 2; more++) {
            const double *c = cases[i];
            expected_moments m = uniform(c[0], c[1], c[2], (int64_t)c[0] + more);
            double rr = 1 / (1 + c[1] + c[2] / 2);
            assert_true(m.rr == rr && m.variance == 0);
            for (int k = 0; k < HITS; k++) assert_true(m.hits[k] == (1 / rr <= (double)hits_at[k]));
        }
}

/* ---- the 60-digit reference ---- */

typedef struct reference {
    double size, above, tied;
    int64_t draws;
    double rr, rr2, variance;
} reference;

/* tests/reference_expected.py --table */
static const reference stored[] = {
    {9999999, 0, 0, 1000000, 1.0, 1.0, 0.0},
    {9999999, 1, 0, 1000000, 0.9499999949999995, 0.92499999249999925, 0.022500002000000175},
    {9999999, 12345, 0, 1000000, 0.00080997813056941519439, 6.5654297598149898859e-7,
     4.7840398077437957037e-10},
    {9999999, 5000000, 0, 1000000, 1.9999976000024799975e-6, 3.9999940000116799987e-12,
     3.5999960000205600464e-18},
    {9999999, 9999999, 0, 1000000, 9.99999000000999999e-7, 9.99998000002999996e-13, 0.0},
    {9999999, 50, 30, 1000000, 0.1485073923074956239, 0.025393734431464607258,
     0.00333928886149219685},
    {9999999, 0, 9999999, 1000000, 1.999996000007999984e-6, 3.999984000047999872e-12, 0.0},
    {9999999, 5, 2000, 1000000, 0.0098960794831215685324, 0.000098372539811371623105,
     4.4015067511197209806e-7},
    {9999999, 3000000, 3, 1000000, 3.3333272222281481393e-6, 1.111109370375740761e-11,
     2.3333310185519138435e-17},
    {9999999, 0, 1, 999999, 0.96666669666666966667, 0.94444449444444944444,
     0.0099999919999982999997},
    {9999999, 300000, 300000, 1000, 0.022116034713123283413, 0.00049790271482102156714,
     8.783723388947494275e-6},
    {9999999, 7, 9000000, 100, 0.021762489328425443018, 0.00047412177102213703437,
     5.1582925230574449035e-7},
    {999999, 1000, 500, 20, 0.98678144006218775382, 0.97966440864867404991,
     0.0059267981974690073858},
    {999999, 999000, 999, 100, 0.0099059134759809871732, 0.000098127364406876679554,
     2.4261325495581173357e-10},
};

static void check_reference(const reference *r) {
    expected_moments m = uniform(r->size, r->above, r->tied, r->draws);
    NEAR(m.rr, r->rr, 1e-13);
    NEAR(m.variance + m.rr * m.rr, r->rr2, 1e-13);
    if (r->variance > 0)
        NEAR(m.variance, r->variance, 1e-9);
    else
        assert_true(m.variance == 0);
}

static void test_stored_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) check_reference(&stored[i]);
}

static void test_live_reference(void **state) {
    (void)state;
    static const double cases[][4] = {
        {11, 3, 4, 5},    {96, 20, 60, 50},    {821, 3, 1, 100},     {821, 400, 400, 100},
        {999, 10, 0, 20}, {65535, 5, 800, 20}, {999999, 40, 2, 500}, {9999999, 3, 2, 1000000}};
    const char *python = getenv("FULLRANK_PYTHON");
    if (!python || !*python) skip_because("no python3");
    char command[1024];
    int length = snprintf(command, sizeof command, "%s '%s/tests/reference_expected.py'", python,
                          FULLRANK_SOURCE_DIR);
    enum { CASES = sizeof cases / sizeof *cases };
    for (int i = 0; i < CASES; i++)
        length +=
            snprintf(command + length, sizeof command - (size_t)length, " %.0f,%.0f,%.0f,%.0f",
                     cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
    FILE *script = popen(command, "r");
    assert_non_null(script);
    int read = 0;
    reference r[CASES];
    double hits10[CASES];
    for (; read < CASES; read++) {
        r[read] = (reference){
            cases[read][0], cases[read][1], cases[read][2], (int64_t)cases[read][3], 0, 0, 0};
        if (fscanf(script, "%lf %lf %lf %lf", &r[read].rr, &r[read].rr2, &r[read].variance,
                   &hits10[read]) != 4)
            break;
    }
    int status = pclose(script);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) skip_because("python3 has no mpmath");
    assert_int_equal(status, 0);
    assert_int_equal(read, CASES);
    for (int i = 0; i < CASES; i++) {
        check_reference(&r[i]);
        NEAR(uniform(r[i].size, r[i].above, r[i].tied, r[i].draws).hits[3], hits10[i], 1e-12);
    }
}

/* ---- monotone, and between bounds ---- */

static void test_order_of_values(void **state) {
    (void)state;
    for (int draws = 1; draws <= 96; draws++)
        for (int above = 0; above < 96; above++) {
            double here = uniform(96, above, 0, draws).rr;
            double tied = uniform(96, above, 1, draws).rr,
                   worse = uniform(96, above + 1, 0, draws).rr;
            assert_true(here > tied && tied > worse);             /* a tie costs less than a loss */
            assert_true(here >= 1.0 / (1 + above) * (1 - 1e-15)); /* sampling flatters */
            if (above)
                assert_true(uniform(96, above, 0, draws).rr <
                            uniform(96, above, 0, draws - 1).rr * (1 + 1e-15));
        }
}

/* ---- the best order under a sampler ----
 *
 * Candidate v is the positive with chance p[v]; negatives are drawn from q without the positive. An
 * order is good if its expected sampled RR is large. Given one positive and one negative {u, v},
 * the odds that v is the positive are p[v] q[u]/(1-q[v]) to p[u] q[v]/(1-q[u]): the best order is
 * by p/(q(1-q)), which is by p/q when no q is large. Ranking by the true chances p, best for the
 * full catalog, loses. */
enum { CANDIDATES = 5 };

static double value_of_order(const double *p, const double *q, const int *order, int64_t draws) {
    double value = 0, above = 0;
    for (int place = 0; place < CANDIDATES; place++) {
        int v = order[place];
        expected_pool pool = {1 - q[v], above, 0, draws, true};
        value += p[v] * compute(&pool, 1).rr;
        above += q[v];
    }
    return value;
}

static void order_by(const double *score, int *order) {
    for (int i = 0; i < CANDIDATES; i++) {
        int at = i;
        for (; at > 0 && score[order[at - 1]] < score[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

/* The largest value over all orders, by recursion over what is put at `place`. */
static double best_value(const double *p, const double *q, int *order, int place, int64_t draws) {
    if (place == CANDIDATES) return value_of_order(p, q, order, draws);
    double best = 0;
    for (int i = place; i < CANDIDATES; i++) {
        int first = order[place], other = order[i];
        order[place] = other;
        order[i] = first;
        best = fmax(best, best_value(p, q, order, place + 1, draws));
        order[place] = first;
        order[i] = other;
    }
    return best;
}

static void test_best_order_under_a_sampler(void **state) {
    (void)state;
    /* Popular candidates are likely, but still more likely to be drawn as negatives. */
    const double p[CANDIDATES] = {0.30, 0.25, 0.20, 0.15, 0.10};
    const double q[CANDIDATES] = {0.50, 0.25, 0.14, 0.08, 0.03};
    double odds[CANDIDATES];
    int by_odds[CANDIDATES], by_p[CANDIDATES], any[CANDIDATES] = {0, 1, 2, 3, 4};
    for (int v = 0; v < CANDIDATES; v++) odds[v] = p[v] / q[v];
    order_by(p, by_p);
    static const int exact[CANDIDATES] = {4, 3, 2, 1, 0};
    order_by(odds, by_odds);
    assert_memory_equal(by_odds, exact, sizeof exact);

    /* p/q is the best of all 120 orders, p is strictly worse */
    for (int64_t draws = 1; draws <= 8; draws++) {
        double best = best_value(p, q, any, 0, draws);
        NEAR(value_of_order(p, q, by_odds, draws), best, 1e-14);
        assert_true(value_of_order(p, q, by_p, draws) < best - 0.01);
    }

    /* the exact rule, for any p and q and one negative */
    unsigned seed = 1;
    for (int round = 0; round < 40; round++) {
        double rp[CANDIDATES], rq[CANDIDATES], sum_p = 0, sum_q = 0, rule[CANDIDATES];
        int by_rule[CANDIDATES];
        for (int v = 0; v < CANDIDATES; v++) {
            seed = seed * 1664525u + 1013904223u;
            sum_p += rp[v] = 1 + (seed >> 8) % 100;
            seed = seed * 1664525u + 1013904223u;
            sum_q += rq[v] = 1 + (seed >> 8) % 100;
        }
        for (int v = 0; v < CANDIDATES; v++) {
            rp[v] /= sum_p;
            rq[v] /= sum_q;
            rule[v] = rp[v] / (rq[v] * (1 - rq[v]));
        }
        order_by(rule, by_rule);
        NEAR(value_of_order(rp, rq, by_rule, 1), best_value(rp, rq, any, 0, 1), 1e-13);
    }

    /* uniform q: the order by p is the best for every K */
    const double even[CANDIDATES] = {0.2, 0.2, 0.2, 0.2, 0.2};
    for (int64_t draws = 1; draws <= 8; draws++)
        NEAR(value_of_order(p, even, by_p, draws), best_value(p, even, any, 0, draws), 1e-14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_subset),     cmocka_unit_test(test_two_pools),
        cmocka_unit_test(test_with_replacement), cmocka_unit_test(test_rounded_masses),
        cmocka_unit_test(test_closed_forms),     cmocka_unit_test(test_all_negatives_give_the_rank),
        cmocka_unit_test(test_stored_reference), cmocka_unit_test(test_live_reference),
        cmocka_unit_test(test_order_of_values),  cmocka_unit_test(test_best_order_under_a_sampler),
    };
    return cmocka_run_group_tests(tests, NULL, free_scratch);
}
