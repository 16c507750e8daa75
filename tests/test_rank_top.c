/* test_rank_top.c - the best candidates of every event, compared with a sort of all candidates.
 *
 * Scores have few values, so there are many ties. Streams have numbers or words as ids, catalogs
 * are fixed or depend on time, and sources may be candidates of their own events. Any number of
 * threads writes the same bytes. */
#include "base/rng.h"
#include "rank/engine.h"
#include "testing.h"

#include <math.h>

static fr_stream *make_stream(const char *directory, bool words, bool shared) {
    fr_error err;
    rng_key key = {.seed = 3, .purpose = RNG_TEST};
    char *path = in_directory(directory, "stream.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < 400; i++) {
        uint64_t e = (uint64_t)i;
        uint32_t u = rng_below(key, e, 0, 9), v = rng_below(key, e, 1, 6 + (uint32_t)i / 12);
        if (words) /* commas and quotes are part of names */
            (void)fprintf(file, "\"u,%u\",\"v \"\"%u\"\"\",%d\n", u, v, i / 9);
        else
            (void)fprintf(file, "%u,%u,%d\n", u, 3 * v, i / 9);
    }
    assert_int_equal(fclose(file), 0);
    fr_import how = {.size = sizeof how, .ids = words ? FR_IDS_WORDS : 0, .shared_ids = shared};
    fr_stream *stream;
    OK(fr_stream_open(path, &how, NULL, &stream, &err));
    return stream;
}

static float level(int32_t event, int32_t destination) {
    rng_key key = {.seed = 8, .purpose = RNG_TEST};
    uint32_t levels = event % 3 ? 4 : 1000;
    return (float)rng_below(key, (uint64_t)event, (uint32_t)destination, levels) / 7 - 50;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    const fr_window *w = state;
    (void)worker, (void)err, (void)count;
    for (int32_t v = 0; v < w->destinations; v++) scores[v] = level(query->event, v);
    return FR_OK;
}

static fr_status rank_top(fr_window *w, const char *path, int64_t top, int threads, bool force,
                          fr_error *err) {
    fr_scorer_definition is = {.state = w, .score = score, .workers = FR_WORKERS_ANY};
    fr_rank_settings settings = {.size = sizeof settings,
                                 .shard = 7,
                                 .popularity_power = 1,
                                 .top = top,
                                 .top_output = (char *)(uintptr_t)path,
                                 .force = force};
    fr_ranking *ranking = NULL;
    fr_status status =
        rank_with(w, is, &settings, &(fr_context){.threads = threads}, &ranking, err);
    fr_ranking_close(ranking);
    return status;
}

/* ---- by sorting ---- */

static int32_t asked; /* event of the comparison below */

static int by_score_and_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    float s = level(asked, x), t = level(asked, y);
    if (s != t) return s < t ? 1 : -1;
    return (x > y) - (x < y);
}

/* A word as the file must have it. */
static void put_word(FILE *out, bool source, int64_t id, const fr_stream *stream) {
    const word_list *list = source ? &stream->source_word : &stream->destination_word;
    const char *word = list->start.at[id];
    int n = (int)(list->start.at[id + 1] - word) - 1;
    (void)fprintf(out, ",\"");
    for (int i = 0; i < n; i++) (void)fprintf(out, word[i] == '"' ? "\"\"" : "%c", word[i]);
    (void)fprintf(out, "\"");
}

static char *expected_file(const fr_window *w, int64_t top, bool words) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)fprintf(out, "event,source,destination,place,candidate,score,positive%s\n",
                  words ? ",source_word,destination_word,candidate_word" : "");
    for (int32_t e = w->from; e < w->to; e++) {
        int32_t all[256], count = 0;
        if (!window_covered(w, e)) continue;
        for (int32_t v = 0; v < w->destinations; v++)
            if (window_ranked(w, e, v)) all[count++] = v;
        asked = e;
        qsort(all, (size_t)count, sizeof *all, by_score_and_id);
        for (int32_t i = 0; i < count && i < top; i++) {
            int64_t source = w->source_id[w->source[e]],
                    destination = w->destination_id[w->destination[e]];
            (void)fprintf(out, "%lld,%lld,%lld,%d,%lld,%.9g,%d", (long long)(w->first + e),
                          (long long)source, (long long)destination, i + 1,
                          (long long)w->destination_id[all[i]], (double)level(e, all[i]),
                          all[i] == w->destination[e]);
            if (words) {
                put_word(out, true, source, w->stream);
                put_word(out, false, destination, w->stream);
                put_word(out, false, w->destination_id[all[i]], w->stream);
            }
            (void)fprintf(out, "\n");
        }
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_against_sorting(void **state) {
    fr_error err;
    static const int64_t tops[] = {1, 3, 10, 1000};
    static const int threads[] = {1, 2, 5};
    char *path = in_directory(*state, "best.csv");
    for (int kind = 0; kind < 6; kind++) {
        bool words = kind % 3 == 1, shared = kind % 3 == 2;
        fr_stream *stream = make_stream(*state, words, shared);
        fr_protocol p = {.size = sizeof p,
                         .train_share = 0.7,
                         .val_share = 0.1,
                         .part = kind == 4 ? FR_PART_VAL : FR_PART_TEST,
                         .filter = kind % 2 ? FR_FILTER_SAME_TIME : FR_FILTER_NONE,
                         .catalog = (char *)(uintptr_t)(kind / 3 ? "time" : "fixed")};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        for (int k = 0; k < 4; k++) {
            char *expected = expected_file(w, tops[k], words);
            for (int t = 0; t < 3; t++) {
                OK(rank_top(w, path, tops[k], threads[t], true, &err));
                assert_file(path, expected, strlen(expected));
            }
            free(expected);
        }
        fr_window_close(w);
        fr_stream_close(stream);
    }
}

/* An existing file stays, and nothing else is left. */
static void test_refused(void **state) {
    fr_error err;
    fr_stream *stream = make_stream(*state, false, false);
    fr_protocol p = {.size = sizeof p, .train_share = 0.7};
    fr_window *w;
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    char *path = in_directory(*state, "mine.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "mine");
    assert_int_equal(fclose(file), 0);
    FAILS(rank_top(w, path, 3, 2, false, &err), FR_EFORCE, "mine.csv: exists");
    assert_file(path, "mine", 4);
    FAILS(rank_top(w, in_directory(*state, "x.npy"), 3, 2, false, &err), FR_EUSAGE,
          "expected a name that ends in .csv");
    FAILS(rank_top(w, NULL, 3, 2, false, &err), FR_EUSAGE, "no file, expected");
    FAILS(rank_top(w, in_directory(*state, "none/x.csv"), 3, 2, false, &err), FR_EFILE, "none");
    fr_window_close(w);
    fr_stream_close(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_against_sorting),
        WITH_DIRECTORY(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
