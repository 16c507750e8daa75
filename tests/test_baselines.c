/* test_baselines.c - every baseline against its definition, computed from the list of events; and
 * the oracle.
 *
 * The reference computes a key per destination from the events before the ranked one, in double and
 * without any state. Destinations are ordered by this key, and tie if their keys are equal. Order
 * and ties of the baseline's float scores must be the same. */
#include "base/rng.h"
#include "data/window.h"
#include "rank/scorer.h"
#include "testing.h"

#include <math.h>

static fr_stream *make_stream(const char *directory, uint64_t seed, int events) {
    fr_error err;
    rng_key key = {.seed = seed, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < events; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t reach = 4 + 16 * (uint32_t)i / (uint32_t)events;
        (void)fprintf(file, "%u,%u,%d\n", rng_below(key, e, 0, 5), rng_below(key, e, 1, reach),
                      10 * (i / 2));
    }
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    return stream;
}

/* What the events before `event` say about a destination, by plain scans. */
typedef struct past {
    int pair_count, last_meeting, count, last; /* -1 = never */
    double decayed, pair_decayed;              /* sums of 2^(-age / half-life) */
    int follows; /* how often it has followed the source's last destination */
    bool in_window, in_duration, in_interval, frequent;
} past;

static past look_back(const fr_window *w, int32_t event, int32_t v, double half_life) {
    past p = {.last_meeting = -1, .last = -1};
    int32_t u = w->source[event], cut = window_cut(w, event), last_own = -1;
    for (int32_t i = 0; i < cut; i++)
        if (w->source[i] == u) last_own = w->destination[i];
    for (int32_t i = 0; i < cut; i++) {
        double weight = exp2(-(w->time[event] - w->time[i]) / half_life);
        if (w->destination[i] == v) {
            p.count++;
            p.last = i;
            p.decayed += weight;
            if (w->source[i] == u) {
                p.pair_count++;
                p.last_meeting = i;
                p.pair_decayed += weight;
            }
        }
        int32_t next = i + 1; /* the source's next event, if it is history, too */
        while (next < cut && w->source[next] != w->source[i]) next++;
        if (next < cut && w->destination[i] == last_own && w->destination[next] == v) p.follows++;
    }
    int distinct = 0;
    double intervals = 0; /* of all pairs, each its mean, 0 if it met once */
    for (int32_t i = 0; i < cut; i++) {
        bool fresh = true;
        for (int32_t j = 0; j < i; j++)
            fresh &= w->source[j] != w->source[i] || w->destination[j] != w->destination[i];
        distinct += fresh;
        double sum = 0, before = w->time[i];
        int meetings = 1;
        for (int32_t j = i + 1; fresh && j < cut; j++) {
            if (w->source[j] != w->source[i] || w->destination[j] != w->destination[i]) continue;
            sum += w->time[j] - before;
            before = w->time[j];
            meetings++;
        }
        if (meetings > 1) intervals += sum / (meetings - 1);
    }
    double place = (cut - 1) * 0.85, oldest = 0; /* numpy.quantile(times, 0.85) */
    if (cut) {
        int32_t below = (int32_t)place, over = below + 1 < cut ? below + 1 : below;
        oldest = w->time[below] + (w->time[over] - w->time[below]) * (place - below);
    }
    p.in_window = p.last_meeting >= 0 && w->time[p.last_meeting] >= oldest;
    double span = 0.15 * (w->time[w->train - 1] - w->time[0]); /* as TGB's EdgeBankPredictor */
    p.in_duration = p.last_meeting >= 0 && w->time[p.last_meeting] >= w->time[cut - 1] - span;
    p.in_interval = p.last_meeting >= 0 &&
                    w->time[p.last_meeting] >= w->time[cut - 1] - intervals / distinct - 1e-9;
    p.frequent = p.pair_count && p.pair_count >= (double)cut / distinct;
    return p;
}

/* The keys of each definition, most important first; later ones break ties. */
typedef struct keys {
    double k[3];
} keys;

static keys reference(const char *name, past p) {
    double tail = p.pair_count ? 0 : p.last; /* others by their last position */
    if (!strcmp(name, "recency")) return (keys){{p.pair_count > 0, p.last_meeting, tail}};
    if (!strcmp(name, "frequency")) return (keys){{p.pair_count, p.last_meeting, tail}};
    if (!strncmp(name, "decayed-frequency,", 18)) return (keys){{p.pair_decayed, tail, 0}};
    if (!strcmp(name, "popularity")) return (keys){{p.count, 0, 0}};
    if (!strncmp(name, "recent-popularity,", 18)) return (keys){{p.decayed, 0, 0}};
    if (!strcmp(name, "markov")) return (keys){{p.follows, p.count, 0}};
    if (!strcmp(name, "membership") || !strcmp(name, "edgebank"))
        return (keys){{p.pair_count > 0, 0, 0}};
    if (!strcmp(name, "edgebank,memory=window")) return (keys){{p.in_window, 0, 0}};
    if (!strcmp(name, "edgebank,memory=duration")) return (keys){{p.in_duration, 0, 0}};
    if (!strcmp(name, "edgebank,memory=interval")) return (keys){{p.in_interval, 0, 0}};
    assert_string_equal(name, "edgebank,memory=threshold");
    return (keys){{p.frequent, 0, 0}};
}

static int compare_keys(keys a, keys b) {
    for (int i = 0; i < 3; i++) {
        double scale =
            fabs(a.k[i]) + fabs(b.k[i]); /* sums in another order differ in the last bits */
        if (fabs(a.k[i] - b.k[i]) > 1e-6 * scale) return a.k[i] < b.k[i] ? -1 : 1;
    }
    return 0;
}

static void check_event(const fr_window *w, const char *name, int32_t event, const float *scores) {
    keys all[64];
    assert_true(w->destinations <= 64);
    const char *given = strstr(name, "half-life=");
    double half_life = given ? strtod(given + 10, NULL) : 1;
    for (int32_t v = 0; v < w->destinations; v++)
        all[v] = reference(name, look_back(w, event, v, half_life));
    for (int32_t a = 0; a < w->destinations; a++)
        for (int32_t b = 0; b < a; b++) {
            int expected = compare_keys(all[a], all[b]);
            int found = (scores[a] > scores[b]) - (scores[a] < scores[b]);
            if (expected == found) continue;
            /* sums that agree to 1e-6 may be told apart by their last bits */
            if (strstr(name, "half-life") && expected == 0 &&
                fabs((double)scores[a] - (double)scores[b]) <= 1)
                continue;
            print_error("# %s, event %d: %d against %d: scores %g %g\n", name, event, a, b,
                        (double)scores[a], (double)scores[b]);
            assert_int_equal(expected, found);
        }
}

static const char *const names[] = {"recency",
                                    "frequency",
                                    "decayed-frequency,half-life=300",
                                    "decayed-frequency,half-life=1",
                                    "popularity",
                                    "recent-popularity,half-life=300",
                                    "recent-popularity,half-life=1",
                                    "markov",
                                    "membership",
                                    "edgebank",
                                    "edgebank,memory=window",
                                    "edgebank,memory=duration",
                                    "edgebank,memory=threshold",
                                    "edgebank,memory=interval"};

static void test_definitions(void **state) {
    fr_error err;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fr_stream *stream = make_stream(*state, seed, 160);
        for (int order = 0; order < 3; order++) {
            fr_protocol p = {
                .size = sizeof p, .train_share = 0.5, .window = 150, .order = order_text(order)};
            fr_window *w;
            OK(fr_window_open(stream, &p, NULL, &w, &err));
            for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
                char spec[64];
                (void)snprintf(spec, sizeof spec, "baseline:%s", names[k]);
                fr_scorer *s;
                OK(fr_scorer_open(spec, w, 1, NULL, &s, &err));
                float scores[64];
                for (int32_t i = w->train; i < w->events; i++) {
                    OK(fr_scorer_observe(s, window_cut(w, i), &err));
                    fr_query q = {i, w->source[i], window_time(w, i)};
                    OK(fr_scorer_score(s, &q, 1, 0, scores, &err));
                    if (i % 4 == 0) check_event(w, names[k], i, scores);
                }
                fr_scorer_close(s);
            }
            fr_window_close(w);
        }
        fr_stream_close(stream);
    }
}

/* Debug builds check the engine by this: scoring does not change the fingerprint, observing does.
 */
static void test_fingerprints(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 1, 160);
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char spec[64];
        float scores[64];
        fr_scorer *s;
        (void)snprintf(spec, sizeof spec, "baseline:%s", names[k]);
        OK(fr_scorer_open(spec, w, 1, NULL, &s, &err));
        assert_true(!s->is.observe == !s->is.fingerprint);
        for (int32_t i = 0; s->is.observe && i < w->events; i++) {
            uint64_t before = s->is.fingerprint(s->is.state);
            fr_query q = {i, w->source[i], window_time(w, i)};
            if (i >= w->train) OK(fr_scorer_score(s, &q, 1, 0, scores, &err));
            assert_true(s->is.fingerprint(s->is.state) == before);
            OK(fr_scorer_observe(s, i + 1, &err));
            assert_true(s->is.fingerprint(s->is.state) != before);
        }
        fr_scorer_close(s);
    }
    fr_scorer_close(NULL);
    fr_window_close(w);
    fr_stream_close(stream);
}

static double mrr(const fr_window *w, const char *spec) {
    fr_error err;
    fr_scorer *s;
    fr_ranking *r;
    fr_rank_settings settings = {.size = sizeof settings, .shard = 64, .popularity_power = 1};
    OK(fr_scorer_open(spec, w, 1, NULL, &s, &err));
    OK(fr_rank_run(s, &settings, NULL, &r, &err));
    fr_ranking_facts f = fr_ranking_get(r);
    double sum = 0;
    int64_t n = 0;
    for (int64_t k = 0; k < f.count; k++) {
        if (!f.records[k].covered) continue;
        sum += 1 / (1 + f.records[k].above + f.records[k].tied / 2.0);
        n++;
    }
    fr_ranking_close(r);
    fr_scorer_close(s);
    return sum / (double)n;
}

/* No scorer beats the true distribution in expectation; on 900 test events the margin is far beyond
 * chance. */
static void test_oracle(void **state) {
    fr_error err;
    char *path = in_directory(*state, "synthetic");
    fr_synth synth = {.size = sizeof synth, .preset = (char[]){"tiny"}, .seed = 5};
    OK(fr_synth_make(&synth, path, NULL, &err));
    fr_stream *stream;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    static const int64_t windows[] = {0, 3000}; /* with and without events before the window */
    for (int k = 0; k < 2; k++) {
        fr_protocol p = {.size = sizeof p, .train_share = 0.85, .window = windows[k]};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        double best = mrr(w, "oracle");
        for (int i = 0; fr_baseline_at(i); i++) {
            char spec[64];
            (void)snprintf(spec, sizeof spec, "baseline:%s", fr_baseline_at(i)->name);
            assert_true(best > mrr(w, spec));
        }
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

static void test_errors(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, 1, 100);
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    fr_window *w;
    fr_scorer *s;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    static const struct {
        const char *spec;
        fr_status code;
        const char *message;
    } cases[] = {
        {"baseline:recensy", FR_EUSAGE, "unknown baseline recensy, did you mean recency?"},
        {"baseline:xyzzy", FR_EUSAGE, "`fullrank baselines` lists them"},
        {"baseline:edgebank,memry=window", FR_EUSAGE,
         "edgebank: unknown option memry, did you mean memory?"},
        {"baseline:edgebank,memory=all", FR_EUSAGE,
         "expected one of unlimited|window|duration|threshold"},
        {"baseline:edgebank,window", FR_EUSAGE, "expected option=value"},
        {"baseline:recent-popularity,half-life=-1", FR_EUSAGE, "expected a number from 0"},
        {"recency", FR_EUSAGE, "unknown scorer recency, expected FILE.safetensors"},
        {"oracle", FR_EINPUT, "needs a stream made by `data synth`"},
        {"scores:x.txt", FR_EFILE, "x.txt: cannot be read"},
        {"scores:", FR_EUSAGE, "scorer scores:: nothing is named, expected scores:FILE"},
        {"counts:", FR_EUSAGE, "scorer counts:: nothing is named, expected counts:FILE"},
        {"plugin:", FR_EUSAGE, "scorer plugin:: nothing is named, expected plugin:FILE"},
        {"plugin:,width=3", FR_EUSAGE, "nothing is named, expected plugin:FILE"},
        {"baseline:", FR_EUSAGE, "scorer baseline:: nothing is named, expected baseline:NAME"},
        {"counts:x.npy", FR_EUSAGE,
         "counts:x.npy: counts are not scores, so there is no scorer for them; `rank`"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        FAILS(fr_scorer_open(cases[k].spec, w, 1, NULL, &s, &err), cases[k].code, cases[k].message);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Published numbers of PROTOCOL 13 and of the baselines on real data. */
static void test_real_data(void **state) {
    (void)state;
    static const struct {
        const char *file, *spec;
        double expected;
    } cases[] = {{"wikipedia.csv.gz", "baseline:recency", 0.8026},
                 {"wikipedia.csv.gz", "baseline:recent-popularity,half-life=1", 0.1594},
                 {"wikipedia.csv.gz", "baseline:edgebank", 0.6231},
                 {"wikipedia.csv.gz", "baseline:popularity", 0.0310},
                 {"mooc.csv.gz", "baseline:recency", 0.3779},
                 {"mooc.csv.gz", "baseline:edgebank", 0.1118},
                 {"mooc.csv.gz", "baseline:popularity", 0.2076},
                 {"mooc.csv.gz", "baseline:markov", 0.5357}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_error err;
        const char *path = data_file(cases[k].file);
        if (!path) skip_because("real data not found");
        fr_stream *stream;
        fr_window *w;
        fr_protocol p = {.size = sizeof p, .window = 32768, .train_share = 0.85};
        OK(fr_stream_open(path, NULL, NULL, &stream, &err));
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        double found = mrr(w, cases[k].spec);
        if (fabs(found - cases[k].expected) > 0.00005)
            print_error("# %s %f\n", cases[k].spec, found);
        assert_true(fabs(found - cases[k].expected) <= 0.00005);
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_definitions), WITH_DIRECTORY(test_fingerprints),
        WITH_DIRECTORY(test_oracle), WITH_DIRECTORY(test_errors), cmocka_unit_test(test_real_data)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
