/* test_data_window.c - window, split, catalog, history and membership against a plain scan.
 *
 * Random small streams with many ties in time, repeated pairs, destinations that appear late and
 * ids with gaps; every query of every event is compared with the definition of PROTOCOL 1-3 read
 * off the event list.
 */
#include "base/rng.h"
#include "data/window.h"
#include "testing.h"

#include <sys/stat.h>

enum { MOST = 120 };

typedef struct plain_event {
    int64_t source, destination;
    double time;
} plain_event;

typedef struct plain_stream {
    int count;
    plain_event event[MOST];
} plain_stream;

/* With shared ids sources and destinations overlap, and some events are loops. */
static plain_stream random_stream(uint64_t seed, bool shared) {
    rng_key key = {.seed = seed, .purpose = RNG_TEST};
    plain_stream s = {.count = 3 + (int)rng_below(key, 0, 0, MOST - 3)};
    int64_t time = 100;
    uint32_t sources = 1 + rng_below(key, 0, 1, 6), destinations = 1 + rng_below(key, 0, 2, 9);
    for (int i = 0; i < s.count; i++) {
        uint64_t e = (uint64_t)i + 1;
        uint32_t reach =
            1 + destinations * (uint32_t)(i + 1) / (uint32_t)s.count; /* some come late */
        time += rng_below(key, e, 3, 3);                              /* a third are ties */
        s.event[i] = (plain_event){7 * (int64_t)rng_below(key, e, 0, sources) + 2,
                                   5000000 * (int64_t)rng_below(key, e, 1, reach), (double)time};
        if (shared) s.event[i].destination = 7 * (int64_t)rng_below(key, e, 1, reach) + 9;
    }
    return s;
}

static fr_stream *write_stream(const plain_stream *s, const char *directory, const char *name,
                               bool shared) {
    fr_error err;
    char *path = in_directory(directory, name);
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < s->count; i++)
        (void)fprintf(file, "%lld,%lld,%g\n", (long long)s->event[i].source,
                      (long long)s->event[i].destination, s->event[i].time);
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    fr_import how = {.size = sizeof how, .shared_ids = shared};
    OK(fr_stream_open(path, &how, NULL, &stream, &err));
    return stream;
}

/* An event of the window as the plain stream has it. */
static const plain_event *plain(const plain_stream *s, const fr_window *w, int32_t i) {
    return &s->event[w->first + i];
}

static bool is_before(const plain_stream *s, const fr_window *w, int32_t j, int32_t i) {
    if (w->order == FR_ORDER_STRICT) return plain(s, w, j)->time < plain(s, w, i)->time;
    if (w->order == FR_ORDER_BATCH && i >= w->train)
        return j < i && (j < w->train || (j - w->train) / BATCH < (i - w->train) / BATCH);
    return j < i;
}

/* Compares `list` with the last `most` events before i for which `match` holds. */
static void check_list(const plain_stream *s, const fr_window *w, int32_t i, fr_history list,
                       int32_t most, int64_t source, int64_t destination) {
    int32_t expected[MOST], count = 0;
    for (int32_t j = 0; j < w->events; j++) {
        const plain_event *e = plain(s, w, j);
        if ((source < 0 || e->source == source) &&
            (destination < 0 || e->destination == destination) && is_before(s, w, j, i))
            expected[count++] = j;
    }
    int32_t skip = count > most ? count - most : 0;
    assert_int_equal(list.count, count - skip);
    for (int32_t k = 0; k < list.count; k++) {
        assert_int_equal(list.event[k], expected[skip + k]);
        assert_true(list.event[k] < i); /* never at or after the event */
    }
}

static void check_event(const plain_stream *s, const fr_window *w, int32_t i) {
    const plain_event *e = plain(s, w, i);
    int32_t cut = window_cut(w, i);
    assert_int_equal(w->source_id[w->source[i]], e->source);
    assert_int_equal(w->destination_id[w->destination[i]], e->destination);
    assert_true(window_time(w, i) == e->time - plain(s, w, 0)->time);
    static const int32_t lengths[] = {0, 1, 3, 1000};
    for (int32_t u = 0; u < w->sources; u++)
        for (int k = 0; k < 4; k++)
            check_list(s, w, i, window_source_history(w, u, cut, lengths[k]), lengths[k],
                       w->source_id[u], -1);
    for (int32_t v = 0; v < w->destinations; v++) {
        int64_t id = w->destination_id[v];
        for (int k = 0; k < 4; k++)
            check_list(s, w, i, window_destination_history(w, v, cut, lengths[k]), lengths[k], -1,
                       id);
        for (int32_t u = 0; u < w->sources; u++)
            check_list(s, w, i, window_pair_history(w, u, v, cut), INT32_MAX, w->source_id[u], id);
        bool available = false;
        for (int32_t j = 0; j < w->events; j++)
            available |= is_before(s, w, j, i) && plain(s, w, j)->destination == id;
        assert_int_equal(window_available(w, v, cut), available);
    }
    for (int32_t u = 0; u < w->sources; u++) { /* distinct destinations, by first meeting */
        fr_history met = window_met(w, u, cut);
        int32_t count = 0;
        for (int32_t j = 0; j < w->events; j++) {
            bool fresh = w->source[j] == u && is_before(s, w, j, i);
            for (int32_t h = 0; h < j; h++)
                fresh &= w->source[h] != u || w->destination[h] != w->destination[j];
            if (!fresh) continue;
            assert_true(count < met.count);
            assert_int_equal(met.event[count++], j);
        }
        assert_int_equal(met.count, count);
    }
}

/* The events of every node before event i, and the nodes it met: in its role, or with shared ids in
 * both. */
static void check_nodes(const plain_stream *s, const fr_window *w, int32_t i) {
    bool shared = w->source_node;
    for (int32_t x = 0; x < w->nodes; x++) {
        bool source = !shared && x < w->sources;
        int64_t id = shared   ? w->node_id[x]
                     : source ? w->source_id[x]
                              : w->destination_id[x - w->sources];
        fr_history list = window_node_history(w, x, window_cut(w, i), INT32_MAX);
        int32_t count = 0;
        for (int32_t j = 0; j < w->events; j++) {
            const plain_event *e = plain(s, w, j);
            bool ends[] = {(shared || source) && e->source == id,
                           (shared || !source) && e->destination == id};
            for (int end = 0; end < 2 && is_before(s, w, j, i); end++) {
                if (!ends[end]) continue;
                assert_true(count < list.count);
                assert_int_equal(list.event[count++], j);
                int32_t other = window_other(w, x, j);
                int32_t expected = end ? window_source_node(w, w->source[j])
                                       : window_destination_node(w, w->destination[j]);
                assert_int_equal(other, expected);
            }
        }
        assert_int_equal(list.count, count);
        fr_history two = window_node_history(w, x, window_cut(w, i), 2);
        assert_int_equal(two.count, count < 2 ? count : 2);
        assert_ptr_equal(two.event + two.count, list.event + list.count);
    }
}

/* Every id is one node; destinations come first, in their order. */
static void check_shared_nodes(const fr_window *w) {
    assert_int_equal(w->first_destination, 0);
    for (int32_t x = 0; x < w->nodes; x++)
        for (int32_t y = 0; y < x; y++) assert_true(w->node_id[x] != w->node_id[y]);
    for (int32_t v = 0; v < w->destinations; v++)
        assert_int_equal(w->node_id[window_destination_node(w, v)], w->destination_id[v]);
    for (int32_t u = 0; u < w->sources; u++) {
        int32_t node = window_source_node(w, u);
        assert_int_equal(w->node_id[node], w->source_id[u]);
        assert_int_equal(window_self(w, u), node < w->destinations ? node : -1);
    }
}

static void check_catalog(const plain_stream *s, const fr_window *w) {
    int32_t size = 0;
    for (int32_t v = 0; v < w->destinations; v++) {
        bool in_prefix = false;
        for (int32_t i = 0; i < w->train; i++)
            in_prefix |= plain(s, w, i)->destination == w->destination_id[v];
        if (v) assert_true(w->destination_id[v - 1] < w->destination_id[v]);
        assert_int_equal(w->catalog_place[v], in_prefix ? size : -1);
        if (in_prefix) assert_int_equal(w->catalog[size++], v);
    }
    assert_int_equal(w->catalog_size, size);
}

static void test_random_streams(void **state) {
    fr_error err;
    for (uint64_t seed = 0; seed < 60; seed++) {
        bool shared = seed % 4 == 3;
        plain_stream s = random_stream(seed, shared);
        fr_stream *stream = write_stream(&s, *state, "random.csv", shared);
        for (int order = 0; order < 3; order++) {
            static const int64_t windows[] = {0, 2, 30, 1000};
            for (int k = 0; k < 4; k++) {
                fr_protocol p = {.size = sizeof p,
                                 .window = windows[k],
                                 .train_share = 0.6,
                                 .order = order_text(order)};
                fr_window *w;
                OK(fr_window_open(stream, &p, NULL, &w, &err));
                int64_t n = p.window && p.window < s.count ? p.window : s.count;
                assert_int_equal(w->events, n);
                assert_int_equal(w->train, (int64_t)(0.6 * (double)n));
                check_catalog(&s, w);
                assert_int_equal(w->source_node != NULL, shared);
                if (shared) check_shared_nodes(w);
                for (int32_t i = 0; i < w->events; i += 7) check_nodes(&s, w, i);
                for (int32_t i = 0; i < w->events; i += 1 + (int32_t)(seed % 3))
                    check_event(&s, w, i);
                fr_window_close(w);
            }
        }
        fr_stream_close(stream);
    }
}

/* Other true destinations of the same source at the same time, of the ranked part, are filtered. */
static void test_filter(void **state) {
    fr_error err;
    int filtered = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        plain_stream s = random_stream(seed, false);
        fr_stream *stream = write_stream(&s, *state, "filter.csv", false);
        fr_protocol p = {
            .size = sizeof p, .window = 0, .train_share = 0.4, .filter = FR_FILTER_SAME_TIME};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        for (int32_t i = w->from; i < w->to; i++)
            for (int32_t v = 0; v < w->destinations; v++) {
                bool rival = false;
                for (int32_t j = w->from; j < w->to; j++)
                    rival |= w->source[j] == w->source[i] && w->time[j] == w->time[i] &&
                             w->destination[j] == v;
                rival &= v != w->destination[i];
                assert_int_equal(window_filtered(w, i, v), rival);
                filtered += rival;
            }
        fr_window_close(w);
        fr_stream_close(stream);
    }
    assert_true(filtered > 20);
}

static void test_index_memory(void **state) {
    fr_error err;
    char *path = in_directory(*state, "large.csv");
    FILE *file = fopen(path, "w");
    (void)fprintf(file, "u,v,t\n");
    for (int i = 0; i < 100000; i++) /* every pair is new: the largest index */
        (void)fprintf(file, "%d,%d,%d\n", i / 1000, i % 1000, i);
    assert_int_equal(fclose(file), 0);
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(path, NULL, NULL, &stream, &err));
    fr_protocol p = {.size = sizeof p,
                     .window = 90000,
                     .train_share = 0.85,
                     .order = order_text(FR_ORDER_STRICT)};
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    fr_window_facts f = fr_window_get(w);
    assert_true((double)f.index_bytes / (double)f.events <= 40);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* A catalog file may name destinations without events in the window; they get numbers too. */
static void test_catalog_file(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv"), *list = in_directory(*state, "catalog.txt");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n2,30,3\n2,10,4\n");
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.5, .catalog = list};

    put_text(list, "# mine\n30\n5\n\n10\n40\r\n");
    OK(fr_window_open(stream, &p, NULL, &w, &err));
    assert_int_equal(w->destinations, 5);
    assert_int_equal(w->catalog_size, 4);
    static const int64_t expected[] = {5, 10, 30, 40};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(w->destination_id[w->catalog[k]], expected[k]);
        assert_int_equal(w->catalog_place[w->catalog[k]], k);
    }
    assert_int_equal(w->destination_id[w->destination[2]], 30);
    fr_window_close(w);

    put_text(list, "30\n5\n30\n");
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT,
          "catalog.txt:3: id 30 is also on line 1");
    put_text(list, "30\nfive\n");
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, "catalog.txt:2: \"five\"");
    put_text(list, "#\n");
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, "no ids in it");
    p.catalog = (char[]){"nowhere"};
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EFILE, "nowhere: cannot be read");
    fr_stream_close(stream);
}

static void test_too_short(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n");
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.4};
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT,
          "leaves 0 of 2 events for training, 0 for validation and 2 for test");
    p.train_share = 1;
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT,
          "leaves 2 of 2 events for training, 0 for validation and 0 for test");
    fr_stream_close(stream);
}

/* Where each kind of split cuts: by hand, and by NumPy's quantiles. */
static void test_splits(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv");
    put_text(data, "u,v,t\n1,10,0\n1,20,1\n1,10,2\n2,30,3\n1,10,3\n1,20,3\n1,10,5\n1,20,8\n"
                   "1,20,13\n2,20,21\n");
    fr_stream *stream;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    static const struct {
        const char *split;
        double train_share, val_share;
        int64_t window;
        int32_t train, val;
    } cases[] = {
        {"share", 0.5, 0.3, 0, 5, 3},
        {"share", 0.5, 0, 0, 5, 0},
        /* quantiles of 10 times: 0.5 -> 3, 0.8 -> 9 (between 8 and 13) */
        {"quantile", 0.5, 0.3, 0, 6, 2},
        {"quantile", 0.1, 0, 0, 1, 0},   /* 0.9 */
        {"quantile", 0.7, 0.2, 8, 5, 2}, /* the last 8: 4.8 and 10.5, in the window's own times */
        {"rows:3,7", 0.85, 0, 0, 3, 4},  /* rows of the stream, not of the window */
        {"rows:3,7", 0.85, 0, 8, 1, 4},
        {"rows:4", 0.85, 0, 0, 4, 0},
        {"times:3,8", 0.85, 0, 0, 3, 4}, /* events at the limit are of the later part */
        {"times:2.5", 0.85, 0, 0, 3, 0},
        {"times:1970-01-01T00:00:03,1970-01-01 00:00:08Z", 0.85, 0, 0, 3,
         4}, /* the same as dates */
        {"times:1970-01-01T01:00:02.5+01:00", 0.85, 0, 0, 3, 0},
        {"times:3,1970-01-01T00:00:08", 0.85, 0, 0, 3, 4},
        {"times:-1e300,3", 0.85, 0, 0, 0, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_protocol p = {.size = sizeof p,
                         .train_share = cases[k].train_share,
                         .val_share = cases[k].val_share,
                         .window = cases[k].window,
                         .split = (char *)(uintptr_t)cases[k].split};
        fr_window *w;
        if (!cases[k].train) {
            FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, "leaves 0 of 10 events");
            continue;
        }
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        fr_window_facts f = fr_window_get(w);
        assert_int_equal(f.train, cases[k].train);
        assert_int_equal(f.val, cases[k].val);
        assert_int_equal(f.test, f.events - f.train - f.val);
        assert_int_equal(f.from, f.train + f.val);
        assert_int_equal(f.to, f.events);
        fr_window_close(w);
        p.part = FR_PART_VAL;
        if (!cases[k].val) {
            FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, "1 for validation");
            continue;
        }
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        f = fr_window_get(w);
        assert_int_equal(f.from, f.train);
        assert_int_equal(f.to, f.train + f.val);
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

static void test_bad_protocols(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n1,10,3\n");
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    static const char *const orders[] = {
        "",        "batch",    "batch:",   "batch:0", "batch:-3",
        "batch:x", "batch:2x", "batch: 2", "Stream",  "batch:99999999999"};
    static const char *const splits[] = {"",
                                         "shares",
                                         "rows",
                                         "rows:",
                                         "rows:1,",
                                         "rows:2,1",
                                         "rows:1.5",
                                         "rows:-1",
                                         "rows:1,2,3",
                                         "times:x",
                                         "times:1,nan",
                                         "times:2,1",
                                         "times:1970-13-01",
                                         "times:1970-01-01x",
                                         "times:1970-02-30,1970-03-01",
                                         "rows:1970-01-01",
                                         "times:1971-01-01,1970-01-01"};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        fr_protocol p = {
            .size = sizeof p, .train_share = 0.5, .order = (char *)(uintptr_t)orders[k]};
        FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EUSAGE,
              "expected stream, strict or batch:N");
    }
    for (size_t k = 0; k < sizeof splits / sizeof *splits; k++) {
        fr_protocol p = {
            .size = sizeof p, .train_share = 0.5, .split = (char *)(uintptr_t)splits[k]};
        FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EUSAGE, "expected share, quantile");
    }
    fr_protocol p = {.size = sizeof p, .train_share = 0.7, .val_share = 0.4};
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EUSAGE, "expected a sum of at most 1");
    p = (fr_protocol){.size = sizeof(fr_protocol), .train_share = 0.5, .split = (char[]){"column"}};
    FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, "no split column");
    fr_stream_close(stream);
}

static void test_split_column(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv");
    put_text(data,
             "u,v,t,split\n1,10,0,train\n1,20,1,train\n1,10,2,train\n1,10,3,val\n1,10,4,test\n"
             "1,20,5,test\n");
    fr_stream *stream;
    fr_window *w;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    fr_protocol p = {
        .size = sizeof p, .window = 5, .train_share = 0.5, .split = (char[]){"column"}};
    OK(fr_window_open(stream, &p, NULL, &w, &err)); /* without the stream's first event */
    fr_window_facts f = fr_window_get(w);
    assert_int_equal(f.train, 2);
    assert_int_equal(f.val, 1);
    assert_int_equal(f.test, 2);
    fr_window_close(w);
    fr_stream_close(stream);
}

/* Catalogs that name destinations of other parts, and TGB's range of ids. */
static void test_catalogs(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv");
    put_text(data, "u,v,t\n1,12,0\n1,10,1\n1,10,2\n1,14,3\n1,11,4\n1,10,5\n");
    fr_stream *stream;
    OK(fr_stream_open(data, NULL, NULL, &stream, &err));
    static const struct {
        const char *catalog;
        int32_t count;
        int64_t id[5];
    } cases[] = {{"fixed", 1, {10}},
                 {"train", 1, {10}},
                 {"train+val", 2, {10, 14}},
                 {"all", 3, {10, 11, 14}},
                 {"range", 5, {10, 11, 12, 13, 14}}};
    char first[65] = "";
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fr_protocol p = {.size = sizeof p,
                         .window = 5, /* 12 is not in it, but in the data's range */
                         .train_share = 0.4,
                         .val_share = 0.2,
                         .catalog = (char *)(uintptr_t)cases[k].catalog};
        fr_window *w;
        OK(fr_window_open(stream, &p, NULL, &w, &err));
        fr_columns c = fr_window_columns(w);
        fr_window_facts f = fr_window_get(w);
        assert_int_equal(f.catalog_size, cases[k].count);
        for (int i = 0; i < cases[k].count; i++)
            assert_int_equal(c.destination_id[c.catalog[i]], cases[k].id[i]);
        if (k == 1) assert_string_equal(f.catalog_sha256, first);
        memcpy(first, f.catalog_sha256, sizeof first);
        fr_window_close(w);
    }
    fr_stream_close(stream);
}

/* Makes the manifest agree with changed columns, as anyone could. */
static void seal(const char *folder) {
    fr_error err;
    column_record record[COLUMN_FILES] = {0};
    char sha[65], *path = in_directory(folder, "manifest.json");
    json_t *manifest;
    for (int k = 0; k < COLUMN_FEATURES; k++) record[k].there = true;
    OK(verify_record(folder, record, sha, NULL, &err));
    OK(json_read(path, &manifest, &err));
    assert_int_equal(json_object_set_new(manifest, "sha256", json_string(sha)), 0);
    assert_int_equal(json_object_set_new(manifest, "files", verify_to_json(record)), 0);
    OK(json_write(path, manifest, &err));
}

static void test_damaged_columns(void **state) {
    fr_error err;
    char *data = in_directory(*state, "data.csv"), *out = in_directory(*state, "out");
    put_text(data, "u,v,t\n1,10,1\n1,20,2\n2,30,3\n2,10,4\n");
    OK(fr_import_file(data, out, NULL, NULL, &err));
    fr_protocol p = {.size = sizeof p, .train_share = 0.5};
    static const struct {
        const char *file;
        int32_t words[2];
        const char *message;
    } cases[] = {{"source.npy", {7, 0}, "event 3 refers to an id that is not there"},
                 {"destination.npy", {-1, 0}, "event 3 refers to an id that is not there"},
                 {"time.npy", {0, 0}, "event 3: time 0 after 3"}};
    for (int k = 0; k < 3; k++) {
        OK(fr_import_file(data, out, &(fr_import){.size = sizeof(fr_import), .force = true}, NULL,
                          &err));
        assert_int_equal(chmod(in_directory(out, cases[k].file), 0644), 0);
        FILE *file = fopen(in_directory(out, cases[k].file), "r+b");
        long item = k == 2 ? 8 : 4;
        assert_int_equal(fseek(file, -item, SEEK_END), 0);
        assert_int_equal(fwrite(cases[k].words, (size_t)item, 1, file), 1);
        assert_int_equal(fclose(file), 0);
        fr_stream *stream;
        fr_window *w;
        FAILS(fr_stream_open(out, NULL, NULL, &stream, &err), FR_EINPUT, cases[k].file);
        seal(out);
        OK(fr_stream_open(out, NULL, NULL, &stream, &err));
        FAILS(fr_window_open(stream, &p, NULL, &w, &err), FR_EINPUT, cases[k].message);
        fr_stream_close(stream);
    }
    assert_int_equal(truncate(in_directory(out, "time.npy"), 150), 0);
    fr_stream *stream;
    FAILS(fr_stream_open(out, NULL, NULL, &stream, &err), FR_EINPUT,
          "time.npy: 150 bytes, expected 160");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_random_streams), WITH_DIRECTORY(test_filter),
        WITH_DIRECTORY(test_index_memory),   WITH_DIRECTORY(test_catalog_file),
        WITH_DIRECTORY(test_too_short),      WITH_DIRECTORY(test_splits),
        WITH_DIRECTORY(test_bad_protocols),  WITH_DIRECTORY(test_split_column),
        WITH_DIRECTORY(test_catalogs),       WITH_DIRECTORY(test_damaged_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
