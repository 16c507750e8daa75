/* test_synth.c - the synthetic generator: does it draw from the distribution it states, can a
 * stored stream be replayed, and do the presets look like the sets they imitate?
 *
 * Statistical checks use fixed seeds, so results never change; their bounds are about four standard
 * deviations of a correct generator. */
#include "base/memory.h"
#include "base/rng.h"
#include "data/synth.h"
#include "testing.h"

#include <math.h>

enum { TINY = 100 }; /* destinations of the tiny preset */

/* cmocka's own comparison is in float. */
#define assert_close(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static synth *opened(const synth_parameters *parameters) {
    fr_error err;
    synth *s;
    OK(synth_open(parameters, &s, &err));
    return s;
}

static synth_parameters preset(const char *name) {
    fr_error err;
    synth_parameters parameters;
    OK(synth_preset_find(name, &parameters, &err));
    return parameters;
}

static void advance(synth *s, int64_t events) {
    synth_event event;
    for (int64_t i = 0; i < events; i++) synth_next(s, &event);
}

static double uniform(uint64_t event, uint32_t draw) {
    return rng_uniform((rng_key){7, RNG_TEST, 0}, event, draw);
}

/* ---- The distribution ------------------------------------------------------------------------ */

static void test_components_by_hand(void **state) {
    (void)state;
    synth_parameters q = preset("tiny");
    q.repeat_spread = q.drift = 0;
    q.repeat = q.recency = 1;
    q.memory = 2;
    double p[TINY];
    synth *s = opened(&q);
    synth_observe(s, &(synth_event){0, 3, 0});
    synth_observe(s, &(synth_event){1, 50, 0});
    synth_observe(s, &(synth_event){0, 5, 1});
    synth_probability(s, 0, 1, p);
    assert_close(p[5], 2.0 / 3, 1e-15);
    assert_close(p[3], 1.0 / 3, 1e-15);
    synth_observe(s, &(synth_event){0, 7, 1}); /* pushes 3 out of the memory of two */
    synth_probability(s, 0, 1, p);
    assert_close(p[7], 2.0 / 3, 1e-15);
    assert_close(p[5], 1.0 / 3, 1e-15);
    assert_true(p[3] == 0);
    synth_close(s);

    q.repeat = 0;
    q.follow = 1;
    q.reach = q.successors = 1; /* v is always followed by v + 1 */
    s = opened(&q);
    synth_observe(s, &(synth_event){0, TINY - 1, 0});
    synth_probability(s, 0, 0, p);
    assert_close(p[0], 1, 1e-15);
    synth_probability(s, 1, 0, p); /* no past: popularity, a shuffled power law without drift */
    double harmonic = 0, greatest = 0;
    for (int k = 1; k <= TINY; k++) harmonic += pow(k, -q.popularity_skew);
    for (int v = 0; v < TINY; v++) greatest = fmax(greatest, p[v]);
    assert_close(greatest, 1 / harmonic, 1e-12);
    synth_close(s);

    q.repeat = 0.5; /* all three: 1/2 past, 1/4 successor, 1/4 popularity */
    q.follow = 0.5;
    s = opened(&q);
    double alone[TINY];
    synth_probability(s, 0, 0, alone);
    synth_observe(s, &(synth_event){0, 3, 0});
    synth_probability(s, 0, 0, p);
    for (int v = 0; v < TINY; v++)
        assert_close(p[v], alone[v] / 4 + (v == 3) / 2.0 + (v == 4) / 4.0, 1e-15);
    synth_close(s);
}

static void test_popularity_drifts_and_stays(void **state) {
    (void)state;
    synth_parameters q = preset("tiny");
    synth *s = opened(&q); /* no source has a past: all is popularity */
    double first[TINY], last[TINY], after[TINY], difference = 0;
    synth_probability(s, 0, 0, first);
    synth_probability(s, 0, q.duration * 0.999, last);
    synth_probability(s, 0, q.duration * 5, after);
    for (int v = 0; v < TINY; v++) difference += fabs(first[v] - last[v]);
    assert_true(difference > 0.2); /* 2 would be: nothing in common */
    assert_memory_equal(last, after, sizeof last);
    synth_close(s);
}

static void test_probabilities_sum_to_one(void **state) {
    (void)state;
    for (uint64_t trial = 0; trial < 40; trial++) {
        synth_parameters q = preset("tiny");
        q.seed = (int64_t)trial;
        q.sources = 1 + (int64_t)(uniform(trial, 0) * 50);
        q.destinations = 2 + (int64_t)(uniform(trial, 1) * 300);
        q.repeat = trial % 5 == 0 ? (double)(trial % 2) : uniform(trial, 2);
        q.follow = trial % 7 == 0 ? (double)(trial % 2) : uniform(trial, 3);
        q.memory = 1 + (int64_t)(uniform(trial, 4) * 40);
        q.reach = 1 + (int64_t)(uniform(trial, 5) * (double)(q.destinations - 1));
        q.drift = 4 * uniform(trial, 6);
        q.popularity_skew = 3 * uniform(trial, 7);
        q.repeat_spread = 5 * uniform(trial, 8);
        synth *s = opened(&q);
        double p[400];
        for (int round = 0; round < 10; round++) {
            for (int32_t source = 0; source < q.sources; source++) {
                double total = 0;
                synth_probability(s, source, uniform(trial, 9) * 2 * q.duration, p);
                for (int64_t v = 0; v < q.destinations; v++) {
                    assert_true(p[v] >= 0);
                    total += p[v];
                }
                assert_close(total, 1, 1e-12);
            }
            advance(s, round * 13);
        }
        synth_close(s);
    }
}

/* Draws from one state many times; Pearson's statistic over cells with at least ten expected. */
static void check_draws(const synth *s, int32_t source, double time) {
    enum { DRAWS = 200000 };
    double p[TINY], chi = 0, rest_expected = 0, rest_count = 0;
    int count[TINY] = {0}, cells = 0;
    synth_probability(s, source, time, p);
    for (uint64_t i = 0; i < DRAWS; i++)
        count[synth_draw(s, source, time, uniform(i, 20), uniform(i, 21))]++;
    for (int v = 0; v < TINY; v++) {
        double expected = DRAWS * p[v];
        if (expected >= 10) {
            chi += (count[v] - expected) * (count[v] - expected) / expected;
            cells++;
        } else {
            rest_expected += expected;
            rest_count += count[v];
        }
    }
    assert_true(cells > 10);
    assert_true(fabs(rest_count - rest_expected) <= 4 * sqrt(rest_expected) + 1e-9);
    assert_true(fabs(chi - (cells - 1)) <= 4 * sqrt(2.0 * (cells - 1)));
}

static void test_draws_match_probabilities(void **state) {
    (void)state;
    synth_parameters q = preset("tiny");
    synth *s = opened(&q);
    synth_event event;
    check_draws(s, 0, 0); /* no past */
    for (int i = 0; i < 3000; i++) synth_next(s, &event);
    check_draws(s, event.source, event.time);
    check_draws(s, event.source, q.duration * 5); /* beyond the last step of popularity */
    for (int i = 0; i < 5; i++) {
        synth_next(s, &event);
        check_draws(s, event.source, event.time + 60);
    }
    synth_close(s);
}

/* Along a whole stream: hits of any group of destinations minus their probabilities, and log p of
 * what came plus the entropy, are sums of terms with mean zero and known variance. */
static void test_stream_follows_probabilities(void **state) {
    (void)state;
    fr_error err;
    enum { GROUPS = 12 };
    synth_parameters q = preset("tiny");
    synth *truth = opened(&q), *stream = opened(&q);
    double excess[GROUPS] = {0}, variance[GROUPS] = {0}, surprise = 0, surprise_variance = 0;
    int32_t *last;
    OK(ALLOCATE(last, q.sources, &err));
    for (int64_t i = 0; i < q.sources; i++) last[i] = -1;
    for (int64_t i = 0; i < q.events; i++) {
        synth_event event;
        double p[TINY], mean = 0, square = 0, chance[GROUPS] = {0};
        synth_next(stream, &event);
        synth_probability(truth, event.source, event.time, p);
        for (int v = 0; v < TINY; v++) {
            chance[v % 10] += p[v];
            if (v < 30) chance[10] += p[v];
            if (v == last[event.source]) chance[11] += p[v];
            if (p[v] > 0) {
                mean += p[v] * log(p[v]);
                square += p[v] * log(p[v]) * log(p[v]);
            }
        }
        int v = event.destination;
        assert_true(p[v] > 0);
        surprise += log(p[v]) - mean;
        surprise_variance += square - mean * mean;
        for (int g = 0; g < GROUPS; g++) {
            int hit = g < 10 ? v % 10 == g : g == 10 ? v < 30 : v == last[event.source];
            excess[g] += hit - chance[g];
            variance[g] += chance[g] * (1 - chance[g]);
        }
        last[event.source] = v;
        synth_observe(truth, &event);
    }
    for (int g = 0; g < GROUPS; g++) assert_true(fabs(excess[g]) <= 4 * sqrt(variance[g]));
    assert_true(fabs(surprise) <= 4 * sqrt(surprise_variance));
    free(last);
    synth_close(truth);
    synth_close(stream);
}

/* ---- The stream ------------------------------------------------------------------------------ */

static void test_replay_gives_the_same_state(void **state) {
    (void)state;
    synth_parameters q = preset("tiny");
    synth *drawn = opened(&q), *replayed = opened(&q);
    synth_event event = {0}, other;
    for (int i = 0; i < 2000; i++) {
        synth_next(drawn, &event);
        synth_observe(replayed, &event);
        if (i % 20) continue;
        for (int32_t source = 0; source < q.sources; source++) {
            double a[TINY], b[TINY];
            synth_probability(drawn, source, event.time, a);
            synth_probability(replayed, source, event.time, b);
            assert_memory_equal(a, b, sizeof a);
        }
    }
    for (int i = 0; i < 2000; i++) { /* also the parts of the state that only drawing uses */
        synth_next(drawn, &event);
        synth_next(replayed, &other);
        assert_memory_equal(&event, &other, sizeof event);
    }
    synth_close(drawn);
    synth_close(replayed);
}

static int equal_events(const synth_parameters *a, const synth_parameters *b, int events) {
    synth *x = opened(a), *y = opened(b);
    int equal = 0;
    for (int i = 0; i < events; i++) {
        synth_event one, two;
        synth_next(x, &one);
        synth_next(y, &two);
        equal += !memcmp(&one, &two, sizeof one);
    }
    synth_close(x);
    synth_close(y);
    return equal;
}

static void test_seed_names_the_stream(void **state) {
    (void)state;
    synth_parameters a = preset("tiny"), b = a;
    assert_int_equal(equal_events(&a, &b, 1000), 1000);
    b.seed = a.seed + 1;
    assert_true(equal_events(&a, &b, 1000) < 100);
}

static void test_times_and_ids(void **state) {
    (void)state;
    for (const synth_preset *one = synth_presets; one->name; one++) {
        const synth_parameters *q = &one->parameters;
        synth *s = opened(q);
        double before = 0;
        for (int i = 0; i < 6000; i++) {
            synth_event event;
            synth_next(s, &event);
            assert_in_range(event.source, 0, q->sources - 1);
            assert_in_range(event.destination, 0, q->destinations - 1);
            assert_true(i ? event.time >= before : event.time == 0);
            assert_true(event.time == floor(event.time));
            before = event.time;
        }
        if (q->events == 6000) assert_close(before / q->duration, 1, 0.1);
        synth_close(s);
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void test_json_round_trip(void **state) {
    (void)state;
    fr_error err;
    for (const synth_preset *one = synth_presets; one->name; one++) {
        synth_parameters parameters = one->parameters, back;
        parameters.repeat = 0.1 + 0.2; /* needs all 17 digits */
        parameters.seed = INT64_C(9007199254740991);
        json_t *object = json_object();
        OK(synth_to_json(&parameters, object, &err));
        char *text = json_dumps(object, JSON_REAL_PRECISION(17));
        json_t *read = json_loads(text, 0, NULL);
        OK(synth_from_json(read, &back, &err));
        assert_memory_equal(&parameters, &back, sizeof back);
        json_decref(object);
        json_decref(read);
        free(text);
    }
}

static void check_refused(const json_t *object, fr_status code, const char *part) {
    synth_parameters out = {.events = -5};
    fr_error err;
    FAILS(synth_from_json(object, &out, &err), code, part);
    assert_int_equal(out.events, -5); /* untouched */
}

static void test_json_refusals(void **state) {
    (void)state;
    fr_error err;
    synth_parameters parameters = preset("tiny");
    json_t *object = json_object();
    OK(synth_to_json(&parameters, object, &err));
    json_object_set_new(object, "repeat", json_real(1.5));
    check_refused(object, FR_EUSAGE, "repeat is 1.5");
    json_object_set_new(object, "repeat", json_real(0.5));
    json_object_set_new(object, "memory", json_string("many"));
    check_refused(object, FR_EINPUT, "whole number named \"memory\"");
    json_object_set_new(object, "memory", json_integer(8));
    json_object_set_new(object, "reach", json_integer(100)); /* would make v a successor of v */
    check_refused(object, FR_EUSAGE, "reach is 100");
    json_object_set_new(object, "reach", json_integer(99));
    json_object_del(object, "drift_memory");
    check_refused(object, FR_EINPUT, "drift_memory");
    json_decref(object);
}

static void test_refusals(void **state) {
    (void)state;
    fr_error err;
    synth_parameters parameters;
    FAILS(synth_preset_find("wiki", &parameters, &err), FR_EUSAGE, "did you mean wikipedia?");
    parameters = preset("tiny");
    parameters.gap_shape = NAN;
    synth *s = (synth *)&parameters; /* anything but NULL */
    FAILS(synth_open(&parameters, &s, &err), FR_EUSAGE, "gap-shape");
    assert_null(s);
    synth_close(NULL);
}

/* ---- The presets ----------------------------------------------------------------------------- */

/* Shape of the last 32,768 events of a stream, the first 85 % of them for training. */
typedef struct shape {
    double repeat;                  /* share of test events whose pair came before in the window */
    double destinations_per_source; /* distinct ones, mean over the sources of the window */
    double gini;                    /* of events per destination of the window */
} shape;

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double gini(int64_t *count, int64_t n) {
    qsort(count, (size_t)n, sizeof *count, ascending);
    double total = 0, weighted = 0, present = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!count[i]) continue;
        present++;
        total += (double)count[i];
        weighted += present * (double)count[i];
    }
    return 2 * weighted / (present * total) - (present + 1) / present;
}

static shape measure(const synth_parameters *q) {
    enum { WINDOW = 32768, TRAIN = 27852 };
    fr_error err;
    bool *met;      /* [sources][destinations] */
    bool *present;  /* [sources] */
    int64_t *count; /* [destinations] */
    OK(ALLOCATE(met, q->sources * q->destinations, &err));
    OK(ALLOCATE(present, q->sources, &err));
    OK(ALLOCATE(count, q->destinations, &err));
    synth *s = opened(q);
    advance(s, q->events - WINDOW);
    double pairs = 0, sources = 0, repeats = 0;
    for (int i = 0; i < WINDOW; i++) {
        synth_event event;
        synth_next(s, &event);
        bool *pair = &met[event.source * q->destinations + event.destination];
        pairs += !*pair;
        sources += !present[event.source];
        repeats += i >= TRAIN && *pair;
        *pair = present[event.source] = true;
        count[event.destination]++;
    }
    shape result = {repeats / (WINDOW - TRAIN), pairs / sources, gini(count, q->destinations)};
    synth_close(s);
    free(met);
    free(present);
    free(count);
    return result;
}

static void check_shape(const char *name, shape real) {
    synth_parameters q = preset(name);
    for (q.seed = 1; q.seed <= 2; q.seed++) {
        shape found = measure(&q);
        print_message("# %s, seed %d: repeat %.4f (%.4f), destinations per source %.3f (%.3f), "
                      "gini %.4f (%.4f)\n",
                      name, (int)q.seed, found.repeat, real.repeat, found.destinations_per_source,
                      real.destinations_per_source, found.gini, real.gini);
        assert_close(found.repeat, real.repeat, 0.03);
        assert_close(found.destinations_per_source / real.destinations_per_source, 1, 0.1);
        assert_close(found.gini / real.gini, 1, 0.1);
    }
}

/* The real numbers were measured on the last 32,768 events of the public JODIE files. */
static void test_wikipedia_looks_real(void **state) {
    (void)state;
    check_shape("wikipedia", (shape){0.8558, 1.7272, 0.5888});
}

static void test_mooc_looks_real(void **state) {
    (void)state;
    check_shape("mooc", (shape){0.5852, 11.2490, 0.4411});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_components_by_hand),
        cmocka_unit_test(test_popularity_drifts_and_stays),
        cmocka_unit_test(test_probabilities_sum_to_one),
        cmocka_unit_test(test_draws_match_probabilities),
        cmocka_unit_test(test_stream_follows_probabilities),
        cmocka_unit_test(test_replay_gives_the_same_state),
        cmocka_unit_test(test_seed_names_the_stream),
        cmocka_unit_test(test_times_and_ids),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_refusals),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wikipedia_looks_real),
        cmocka_unit_test(test_mooc_looks_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
