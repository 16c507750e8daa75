/* test_eval_diagnose.c - the minimal scorer, the membership table and the split of the loss.
 *
 * Newton's fit is compared with the closed form of a 2x2 table and with the slope of its own loss.
 * Cells are compared with closed forms, with 5,000 nested draws, and with negatives drawn by name
 * from pools that are built again. Also the identity of the split on random records, and the
 * published numbers on real data. */
#include "base/rng.h"
#include "data/window.h"
#include "testing.h"

#include <math.h>

static const fr_rank_settings plain = {.size = sizeof plain, .shard = 64, .popularity_power = 1};
static const fr_minimal_settings standard = {.size = sizeof standard, .penalty = 1e-4};

enum { SOURCES = 8, EVENTS = 1500, K = 20 };

/* Sources return to a third of the destinations they have met. There are 70 destinations, the last
 * of them late, so some positives have never occurred. */
static fr_stream *make_stream(const char *directory, int events) {
    fr_error err;
    rng_key key = {.seed = 3, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < events; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t u = rng_below(key, e, 0, SOURCES);
        uint32_t reach = 60 + 10 * (uint32_t)i / (uint32_t)events;
        uint32_t v = rng_below(key, e, 1, 3) ? (rng_below(key, e, 2, 12) + 5 * u) % reach
                                             : rng_below(key, e, 3, reach);
        if (i == events - 2) v = 99; /* occurs for the first time in the test suffix */
        (void)fprintf(file, "%u,%u,%d\n", u, v, i / 2);
    }
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

static fr_window *open_window(const fr_stream *stream, int64_t size, int order,
                              const char *catalog) {
    fr_error err;
    char word[16];
    (void)snprintf(word, sizeof word, "%s", catalog);
    fr_protocol protocol = {.size = sizeof protocol,
                            .window = size,
                            .train_share = 0.85,
                            .order = order_text(order),
                            .catalog = word};
    fr_window *w;
    OK(fr_window_open(stream, &protocol, NULL, &w, &err));
    return w;
}

static fr_ranking *rank_spec(const fr_window *w, const char *spec) {
    fr_error err;
    fr_scorer *scorer;
    fr_ranking *ranking;
    OK(fr_scorer_open(spec, w, 5, NULL, &scorer, &err));
    OK(fr_rank_run(scorer, &plain, NULL, &ranking, &err));
    fr_scorer_close(scorer);
    return ranking;
}

/* ---- minimal scorer ---- */

/* Which events are eligible, by sets: has source u met v before? */
static int64_t count_eligible(const fr_window *w, int64_t *repeated, double *q1) {
    int64_t eligible = 0;
    *repeated = 0;
    *q1 = 0;
    for (int32_t i = w->train; i < w->events; i++) {
        bool met[128] = {0};
        int32_t cut = window_cut(w, i), seen = 0, listed = 0;
        for (int32_t j = 0; j < cut; j++)
            if (w->source[j] == w->source[i]) met[w->destination[j]] = true;
        for (int32_t v = 0; v < w->destinations; v++) {
            if (v == w->destination[i]) continue;
            seen += met[v];
            listed += met[v] && w->catalog_place[v] >= 0;
        }
        if (seen < 20) continue;
        eligible++;
        *repeated += met[w->destination[i]];
        *q1 += listed / (double)(w->catalog_size - (w->catalog_place[w->destination[i]] >= 0));
    }
    *q1 /= (double)eligible;
    return eligible;
}

static void test_minimal_counts_and_closed_form(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, EVENTS);
    for (int order = FR_ORDER_STREAM; order <= FR_ORDER_BATCH; order++) {
        fr_window *w = open_window(stream, 0, order, "fixed");
        fr_minimal m;
        OK(fr_minimal_compute(w, &standard, 1, NULL, &m, &err));
        int64_t repeated;
        double q1, eligible = (double)count_eligible(w, &repeated, &q1);
        assert_true(m.eligible == (int64_t)eligible && m.repeated == repeated);
        assert_true(m.eligible > 50 && repeated > 20 && repeated < m.eligible - 20);
        assert_true(fabs(m.random.q1 - q1) < 1e-12);
        double p1 = (double)repeated / eligible;
        double star = log(p1 / (1 - p1)) - log(q1 / (1 - q1));
        assert_true(fabs(m.random.beta_star - star) < 1e-12);
        assert_int_equal(m.random.negatives, 20 * m.eligible);

        /* The fit of a 2x2 table without penalty is its log odds ratio. */
        fr_minimal_settings free_ = {.size = sizeof free_, .penalty = 1e-10};
        OK(fr_minimal_compute(w, &free_, 1, NULL, &m, &err));
        double n[] = {(double)(m.eligible - repeated), (double)(m.random.negatives - m.random.seen),
                      (double)repeated, (double)m.random.seen};
        double beta = log(n[2] * n[1] / (n[3] * n[0]));
        double error = sqrt(1 / n[0] + 1 / n[1] + 1 / n[2] + 1 / n[3]);
        assert_true(fabs(m.random.beta - beta) < 1e-8);
        assert_true(fabs(m.random.intercept - log(n[0] / n[1])) < 1e-8);
        assert_true(fabs(m.random.error - error) < 1e-8);
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

static double sigmoid(double s) { return 1 / (1 + exp(-s)); }

/* Source-history negatives have all been met: beta goes to minus infinity, and only the penalty
 * stops it. */
static void test_minimal_penalty(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, EVENTS);
    fr_window *w = open_window(stream, 0, FR_ORDER_STREAM, "fixed");
    double before = -INFINITY;
    for (double penalty = 1e-12; penalty < 2e6; penalty *= 100) {
        fr_minimal m;
        fr_minimal_settings settings = {sizeof settings, penalty};
        OK(fr_minimal_compute(w, &settings, 1, NULL, &m, &err));
        const fr_minimal_fit *f = &m.history;
        assert_true(f->q1 == 1 && isinf(f->beta_star) && f->beta_star < 0);
        assert_true(f->seen == 20 * m.eligible && f->negatives == f->seen);
        /* at the minimum both slopes of the loss are 0 */
        double met = (double)m.repeated, not_met = (double)(m.eligible - m.repeated);
        double slope0 = -not_met * sigmoid(-f->intercept);
        double slope1 = (double)f->negatives * sigmoid(f->intercept + f->beta) -
                        met * sigmoid(-f->intercept - f->beta);
        double scale = 1e-7 * penalty * fabs(f->beta) + 1e-9;
        assert_true(fabs(slope0 + slope1) < scale);
        assert_true(fabs(slope1 + penalty * f->beta) < scale);
        assert_true(f->beta < 0 && f->beta > before); /* the stronger, the closer to 0 */
        assert_true(f->error > 0);
        before = f->beta;
        if (penalty < 1.1e-4) assert_true(f->beta < -8);
    }
    fr_minimal m;
    fr_minimal_settings below = {sizeof below, -1};
    FAILS(fr_minimal_compute(w, &below, 1, NULL, &m, &err), FR_EUSAGE,
          "option penalty: found \"-1\"");
    fr_minimal standard_fit;
    OK(fr_minimal_compute(w, &(fr_minimal_settings){0}, 1, NULL, &m, &err));
    OK(fr_minimal_compute(w, NULL, 1, NULL, &standard_fit, &err));
    assert_memory_equal(&m, &standard_fit, sizeof m);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Drawn negatives have been met with probability q1, and equal seeds give equal results. */
static void test_minimal_draws(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, EVENTS);
    fr_window *w = open_window(stream, 0, FR_ORDER_STREAM, "fixed");
    enum { SEEDS = 200 };
    double sum = 0, squares = 0, q1 = 0;
    int64_t first = -1;
    bool differs = false;
    for (int64_t seed = 0; seed < SEEDS; seed++) {
        fr_minimal m, again;
        OK(fr_minimal_compute(w, &standard, seed, NULL, &m, &err));
        OK(fr_minimal_compute(w, &standard, seed, &(fr_context){.threads = 3}, &again, &err));
        assert_memory_equal(&m, &again, sizeof m);
        assert_true(fabs(m.random.beta - m.random.beta_star) < 3 * m.random.error);
        double share = (double)m.random.seen / (double)m.random.negatives;
        sum += share;
        squares += share * share;
        q1 = m.random.q1;
        if (first < 0) first = m.random.seen;
        differs |= m.random.seen != first;
    }
    double mean = sum / SEEDS, sd = sqrt((squares - SEEDS * mean * mean) / (SEEDS - 1));
    assert_true(differs && sd > 0);
    assert_true(fabs(mean - q1) < 4 * sd / sqrt(SEEDS));
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_no_eligible_event(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 60);
    fr_window *w = open_window(stream, 0, FR_ORDER_STREAM, "fixed"),
              *time = open_window(stream, 0, FR_ORDER_STREAM, "time");
    fr_minimal m;
    fr_membership t;
    FAILS(fr_minimal_compute(w, &standard, 0, NULL, &m, &err), FR_EINPUT,
          "no eligible event: none of 9 test events");
    fr_ranking *fixed = rank_spec(w, "baseline:membership"),
               *available = rank_spec(time, "baseline:membership");
    FAILS(fr_membership_compute(available, K, 0, NULL, &t, &err), FR_EINPUT,
          "no eligible event for K = 20: of ");
    FAILS(fr_membership_compute(fixed, 1, 0, NULL, &t, &err), FR_EINPUT,
          "records of baseline:membership with catalog fixed, expected catalog time");
    FAILS(fr_membership_compute(available, 0, 0, NULL, &t, &err), FR_EUSAGE, "K = 0, expected 1");
    fr_ranking_close(fixed);
    fr_ranking_close(available);
    fr_window_close(w);
    fr_window_close(time);
    fr_stream_close(stream);
}

/* ---- membership table ---- */

/* A scorer that knows only membership: separation is perfect, and the diagonal is all ties. */
static void test_cells_of_membership_alone(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, EVENTS);
    fr_window *w = open_window(stream, 0, FR_ORDER_STREAM, "time");
    fr_ranking *ranking = rank_spec(w, "baseline:membership");
    for (int64_t k = 1; k <= K; k += 19) {
        fr_membership t, again;
        OK(fr_membership_compute(ranking, k, 9, &(fr_context){.threads = 1}, &t, &err));
        OK(fr_membership_compute(ranking, k, 9, &(fr_context){.threads = 3}, &again, &err));
        assert_memory_equal(&t, &again, sizeof t);
        double n = (double)k,
               expected[FR_CELLS] = {1 / (1 + n / 2), 1, 1 / (1 + n), 1 / (1 + n / 2)};
        static const char *const names[FR_CELLS] = {"repeated-seen", "repeated-unseen", "new-seen",
                                                    "new-unseen"};
        for (int c = 0; c < FR_CELLS; c++) {
            assert_string_equal(t.cell[c].name, names[c]);
            assert_true(t.cell[c].events > 20);
            assert_true(fabs(t.cell[c].mrr - expected[c]) < 1e-14);
            assert_true(fabs(t.cell[c].drawn - expected[c]) < 1e-14);
            assert_true(fabs(t.cell[c].sd) < 1e-9);
        }
        assert_int_equal(t.cell[FR_REPEATED_SEEN].events, t.cell[FR_REPEATED_UNSEEN].events);
        assert_int_equal(t.cell[FR_NEW_SEEN].events, t.cell[FR_NEW_UNSEEN].events);
        assert_int_equal(t.eligible, t.cell[FR_REPEATED_SEEN].events + t.cell[FR_NEW_SEEN].events);
        assert_int_equal(t.ranked + t.unavailable, w->events - w->train);
        assert_true(t.unavailable >= 1);
    }
    fr_membership t;
    char message[96];
    OK(fr_membership_compute(ranking, 21, 0, NULL, &t, &err));
    FAILS(fr_membership_compute(ranking, 60, 0, NULL, &t, &err), FR_EINPUT,
          "(the largest K possible is ");
    int largest = atoi(strstr(err.message, "possible is ") + 12);
    OK(fr_membership_compute(ranking, largest, 0, NULL, &t, &err));
    (void)snprintf(message, sizeof message, "no eligible event for K = %d", largest + 1);
    FAILS(fr_membership_compute(ranking, largest + 1, 0, NULL, &t, &err), FR_EINPUT, message);
    fr_ranking_close(ranking);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Negatives by name: pools are built again from the events, K of them are drawn and ranked by their
 * scores. */
typedef struct by_name {
    double sum[FR_CELLS], squares[FR_CELLS]; /* of the MRR, over rounds */
    int64_t events[FR_CELLS];
} by_name;

/* RR of the positive among the first K of a shuffled pool. */
static double draw_rr(int32_t *pool, int32_t size, const float *scores, int32_t positive,
                      rng_key key, uint64_t event, uint32_t draw) {
    int twice = 2;
    for (int32_t k = 0; k < K; k++) {
        int32_t at = k + (int32_t)rng_below(key, event, draw + (uint32_t)k, (uint32_t)(size - k));
        int32_t v = pool[at];
        pool[at] = pool[k];
        pool[k] = v;
        twice += scores[v] > scores[positive] ? 2 : scores[v] == scores[positive];
    }
    return 2.0 / twice;
}

static void draw_round(const fr_window *w, const float *scores, int round, by_name *out) {
    rng_key key = {.seed = 11, .purpose = RNG_TEST, .epoch = (uint32_t)round};
    double sum[FR_CELLS] = {0};
    int64_t events[FR_CELLS] = {0};
    for (int32_t i = w->train; i < w->events; i++) {
        bool met[128] = {0}, occurred[128] = {0};
        int32_t positive = w->destination[i], pool[2][128], size[2] = {0};
        const float *row = scores + (size_t)(i - w->train) * (size_t)w->destinations;
        for (int32_t j = 0; j < i; j++) {
            occurred[w->destination[j]] = true;
            if (w->source[j] == w->source[i]) met[w->destination[j]] = true;
        }
        if (!occurred[positive]) continue;
        for (int32_t v = 0; v < w->destinations; v++)
            if (occurred[v] && v != positive) pool[!met[v]][size[!met[v]]++] = v;
        if (size[0] < K || size[1] < K) continue;
        for (int kind = 0; kind < 2; kind++) {
            int c = 2 * !met[positive] + kind;
            events[c]++;
            sum[c] += draw_rr(pool[kind], size[kind], row, positive, key, (uint64_t)i,
                              (uint32_t)kind * 100);
        }
    }
    for (int c = 0; c < FR_CELLS; c++) {
        double mrr = sum[c] / (double)events[c];
        out->sum[c] += mrr;
        out->squares[c] += mrr * mrr;
        out->events[c] = events[c];
    }
}

/* A scorer of few levels: ties of every kind. */
typedef struct toy {
    const fr_window *w;
    const float *scores; /* [test events][destinations] */
} toy;

static fr_status toy_score(void *state, const fr_query *query, int count, int worker, float *scores,
                           fr_error *err) {
    (void)count, (void)worker, (void)err;
    const toy *t = state;
    memcpy(scores, t->scores + (size_t)(query->event - t->w->train) * (size_t)t->w->destinations,
           (size_t)t->w->destinations * sizeof *scores);
    return FR_OK;
}

static void test_cells_against_draws(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, EVENTS);
    fr_window *w = open_window(stream, 0, FR_ORDER_STREAM, "time");
    size_t test = (size_t)(w->events - w->train), width = (size_t)w->destinations;
    float *scores = calloc(test * width, sizeof *scores);
    assert_non_null(scores);
    rng_key key = {.seed = 21, .purpose = RNG_TEST};
    for (size_t i = 0; i < test; i++)
        for (size_t v = 0; v < width; v++) /* better than chance for seen ones, with ties */
            scores[i * width + v] = (float)rng_below(key, i, (uint32_t)v, 12) +
                                    ((int32_t)v == w->destination[(size_t)w->train + i] ? 5.0f : 0);
    toy source = {w, scores};
    fr_scorer_definition scorer = {.state = &source, .score = toy_score};
    fr_ranking *ranking;
    OK(rank_with(w, scorer, &plain, NULL, &ranking, &err));
    fr_ranking_facts f = fr_ranking_get(ranking);
    fr_membership t;
    OK(fr_membership_compute(ranking, K, 1, NULL, &t, &err));

    enum { ROUNDS = 150, SEEDS = 5000 };
    by_name drawn = {0};
    for (int round = 0; round < ROUNDS; round++) draw_round(w, scores, round, &drawn);
    for (int c = 0; c < FR_CELLS; c++) {
        const fr_cell *cell = &t.cell[c];
        assert_int_equal(cell->events, drawn.events[c]);
        double mean = drawn.sum[c] / ROUNDS;
        assert_true(cell->sd > 1e-3);
        assert_true(fabs(mean - cell->mrr) < 4 * cell->sd / sqrt(ROUNDS));
        double sd = sqrt((drawn.squares[c] - ROUNDS * mean * mean) / (ROUNDS - 1));
        assert_true(sd / cell->sd > 0.75 && sd / cell->sd < 1.25);

        int64_t k = K; /* the same over 5,000 nested draws of counts */
        fr_sampling sampling = {
            .sampler = cell->name, .small = FR_SMALL_INELIGIBLE, .k = &k, .k_count = 1};
        fr_draws nested;
        OK(fr_draws_compute(f.records, f.count, &sampling, 1, SEEDS, NULL, &nested, NULL, &err));
        assert_int_equal(nested.events, cell->events);
        assert_true(fabs(nested.mrr - cell->mrr) < 4 * cell->sd / sqrt(SEEDS));
        assert_true(fabs(nested.sd / cell->sd - 1) < 0.06);
        OK(fr_draws_compute(f.records, f.count, &sampling, 1, 1, NULL, &nested, NULL, &err));
        assert_true(nested.mrr == cell->drawn);
    }
    fr_ranking_close(ranking);
    free(scores);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* ---- the split of the loss ---- */

enum { RECORDS = 300 };

static void make_records(fr_record *records) {
    rng_key key = {.seed = 8, .purpose = RNG_TEST};
    for (int i = 0; i < RECORDS; i++) {
        uint64_t e = (uint64_t)i;
        fr_record r = {.event = i, .covered = i % 9 != 4, .repeated = i % 2 == 1, .avail_n = -1};
        int32_t part[2][3]; /* unseen, seen; above, tied, below */
        for (int g = 0; g < 2; g++)
            for (int c = 0; c < 3; c++)
                part[g][c] = (int32_t)rng_below(key, e, (uint32_t)(3 * g + c), c == 2 ? 30 : 7);
        r.seen_above = part[1][0];
        r.seen_tied = part[1][1];
        r.seen_n = part[1][0] + part[1][1] + part[1][2];
        r.above = r.seen_above + part[0][0];
        r.tied = r.seen_tied + part[0][1];
        r.n = 1 + r.seen_n + part[0][0] + part[0][1] + part[0][2];
        records[i] = r;
    }
}

static double metric(const fr_record *records, int64_t count, int oov, const char *name) {
    fr_error err;
    fr_metric_value value;
    OK(fr_metrics_compute(records, count, oov, &name, 1, &value, &err));
    return value.value;
}

static void test_split_adds_up(void **state) {
    (void)state;
    fr_record records[RECORDS];
    make_records(records);
    static const char *const kinds[] = {"", "-repeated", "-new"};
    for (int oov = FR_OOV_EXCLUDE; oov <= FR_OOV_ZERO; oov++)
        for (int k = 0; k < 3; k++) {
            char within[40], between[40], mrr[40];
            (void)snprintf(within, sizeof within, "loss-within%s", kinds[k]);
            (void)snprintf(between, sizeof between, "loss-between%s", kinds[k]);
            (void)snprintf(mrr, sizeof mrr, "mrr%s", kinds[k]);
            int64_t covered = 0, all = 0;
            for (int i = 0; i < RECORDS; i++) {
                if (k && records[i].repeated != (k == 1)) continue;
                all++;
                covered += records[i].covered;
            }
            double share = oov == FR_OOV_ZERO ? (double)covered / (double)all : 1;
            double w = metric(records, RECORDS, oov, within),
                   b = metric(records, RECORDS, oov, between);
            assert_true(w > 0.1 && b > 0.1);
            assert_true(fabs(metric(records, RECORDS, oov, mrr) + w + b - share) < 1e-13);
        }
}

/* One event: the definition, symmetry, and no loss for a missing cause. */
static void test_split_of_one_event(void **state) {
    (void)state;
    fr_record records[RECORDS];
    make_records(records);
    for (int i = 0; i < RECORDS; i++) {
        fr_record r = records[i], mirror = r;
        if (!r.covered) continue;
        double seen = r.seen_above + r.seen_tied / 2.0;
        double unseen = r.above - r.seen_above + (r.tied - r.seen_tied) / 2.0;
        double own = r.repeated ? seen : unseen, other = r.repeated ? unseen : seen;
        double rr = 1 / (1 + own + other);
        double within = ((1 - 1 / (1 + own)) + (1 / (1 + other) - rr)) / 2;
        double between = ((1 - 1 / (1 + other)) + (1 / (1 + own) - rr)) / 2;
        assert_true(fabs(metric(&r, 1, 0, "loss-within") - within) < 1e-14);
        assert_true(fabs(metric(&r, 1, 0, "loss-between") - between) < 1e-14);

        mirror.repeated = !r.repeated; /* own and other group change places */
        assert_true(fabs(metric(&mirror, 1, 0, "loss-within") - between) < 1e-14);

        mirror = r; /* nothing of the other group is above, so the loss is within */
        mirror.above = r.repeated ? r.seen_above : r.above - r.seen_above;
        mirror.tied = r.repeated ? r.seen_tied : r.tied - r.seen_tied;
        if (!r.repeated) mirror.seen_above = mirror.seen_tied = 0;
        assert_true(metric(&mirror, 1, 0, "loss-between") == 0);
        const char *diagonal = r.repeated ? "all-seen" : "all-unseen";
        assert_true(fabs(metric(&mirror, 1, 0, "loss-within") + metric(&r, 1, 0, diagonal) - 1) <
                    1e-14);
    }
}

/* ---- real data (PROTOCOL 13) ---- */

typedef struct published {
    const char *file;
    int64_t eligible, repeated;
    double p1, q1, beta_star;
    int64_t cell_repeated, cell_new;
} published;

static void check_real(const published *p) {
    fr_error err;
    const char *path = data_file(p->file);
    if (!path) skip_because("real data not found");
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    fr_window *w = open_window(stream, 131072, FR_ORDER_STREAM, "fixed");
    fr_minimal m;
    OK(fr_minimal_compute(w, &standard, 0, NULL, &m, &err));
    assert_int_equal(m.eligible, p->eligible);
    assert_int_equal(m.repeated, p->repeated);
    assert_true(fabs(m.p1 - p->p1) < 5e-4 && fabs(m.random.q1 - p->q1) < 5e-5);
    assert_true(fabs(m.random.beta_star - p->beta_star) < 5e-5);
    assert_true(fabs(m.random.beta - p->beta_star) < 3 * m.random.error);
    assert_true(m.random.error < 0.1);
    assert_true(m.history.beta < -8);
    fr_window_close(w);

    w = open_window(stream, 131072, FR_ORDER_STREAM, "time");
    fr_ranking *ranking = rank_spec(w, "baseline:membership");
    fr_membership t;
    OK(fr_membership_compute(ranking, K, 0, NULL, &t, &err));
    assert_int_equal(t.cell[FR_REPEATED_SEEN].events, p->cell_repeated);
    assert_int_equal(t.cell[FR_NEW_SEEN].events, p->cell_new);
    assert_true(t.cell[FR_REPEATED_UNSEEN].mrr == 1);
    assert_true(fabs(t.cell[FR_NEW_SEEN].mrr - 1.0 / 21) < 1e-14);
    fr_ranking_close(ranking);
    fr_window_close(w);
    fr_stream_close(stream);
}

static void test_wikipedia(void **state) {
    (void)state;
    check_real(&(published){"wikipedia.csv.gz", 971, 698, .719, .0931, 3.2155, 698, 273});
}
static void test_mooc(void **state) {
    (void)state;
    check_real(&(published){"mooc.csv.gz", 10195, 6184, .607, .3449, 1.0743, 6106, 3981});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_minimal_counts_and_closed_form),
        WITH_DIRECTORY(test_minimal_penalty),
        WITH_DIRECTORY(test_minimal_draws),
        WITH_DIRECTORY(test_no_eligible_event),
        WITH_DIRECTORY(test_cells_of_membership_alone),
        WITH_DIRECTORY(test_cells_against_draws),
        cmocka_unit_test(test_split_adds_up),
        cmocka_unit_test(test_split_of_one_event),
        cmocka_unit_test(test_wikipedia),
        cmocka_unit_test(test_mooc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
