/* test_eval_slices.c - slices of rank records against a plain scan: members, edges at quantiles,
 * new nodes, and metrics of slices that add up to those of all. */
#include "base/rng.h"
#include "testing.h"

#include <math.h>

static int32_t below(uint64_t event, uint32_t draw, int32_t n) {
    return (int32_t)rng_below((rng_key){.seed = 21}, event, draw, (uint32_t)n);
}

enum { COUNT = 500, SOURCES = 40, DESTINATIONS = 30, TRAIN = 300 };

/* The records of the last COUNT events of a random stream, as a scan of all events has them. */
static void make_records(uint64_t seed, fr_record *out) {
    static int source[TRAIN + COUNT], destination[TRAIN + COUNT];
    static double time[TRAIN + COUNT];
    for (int i = 0; i < TRAIN + COUNT; i++) {
        uint64_t e = 10000 * seed + (uint64_t)i;
        int reach = i < TRAIN ? 2 : 1; /* a part of the nodes begins later */
        source[i] = below(e, 0, SOURCES / reach) * reach;
        destination[i] = below(e, 1, DESTINATIONS / reach) * reach;
        time[i] = (i ? time[i - 1] : 0) + below(e, 2, 9) / 2.0;
        if (i < TRAIN) continue;
        fr_record r = {.event = i,
                       .source = source[i],
                       .destination = destination[i],
                       .time = time[i],
                       .covered = below(e, 3, 5) > 0,
                       .n = 20,
                       .above = below(e, 4, 20),
                       .avail_n = -1,
                       .gap = NAN};
        for (int j = 0; j < i; j++) {
            bool same_source = source[j] == source[i],
                 same_destination = destination[j] == destination[i];
            r.source_degree += same_source;
            r.destination_degree += same_destination;
            if (!same_source || !same_destination) continue;
            r.pair_count++;
            r.gap = time[i] - time[j];
            r.repeated = 1;
        }
        out[i - TRAIN] = r;
    }
}

static double value_of(const fr_record *r, const char *field) {
    if (!strcmp(field, "repeated")) return r->repeated;
    if (!strcmp(field, "source-degree")) return r->source_degree;
    if (!strcmp(field, "destination-degree")) return r->destination_degree;
    if (!strcmp(field, "pair-count")) return r->pair_count;
    if (!strcmp(field, "gap")) return r->gap;
    return r->time;
}

static fr_metric_value mrr(const fr_record *records, int64_t count, int oov) {
    fr_error err;
    static const char *const name[] = {"mrr"};
    fr_metric_value out;
    OK(fr_metrics_compute(records, count, oov, name, 1, &out, &err));
    return out;
}

/* Every record is in one slice, in the original order, and its number is within the edges. */
static void check_numbers(const fr_record *records, const fr_slices *s) {
    int64_t events = 0;
    bool taken[COUNT] = {0};
    for (int k = 0; k < s->count; k++) {
        const fr_slice *x = &s->slice[k];
        int64_t before = -1, ranked = 0;
        assert_true(x->events > 0);
        for (int64_t i = 0; i < x->events; i++) {
            const fr_record *r = &x->records[i];
            int64_t place = r->event - TRAIN;
            assert_true(place > before && place < COUNT && !taken[place]);
            assert_memory_equal(r, &records[place], sizeof *r);
            taken[place] = true;
            before = place;
            ranked += r->covered;
            double value = value_of(r, s->field);
            if (isnan(x->from))
                assert_true(k == s->count - 1 && isnan(value));
            else
                assert_true(x->from <= value && value < x->to);
        }
        assert_int_equal(ranked, x->ranked);
        if (k && !isnan(x->from)) assert_true(x->from == s->slice[k - 1].to);
        if (!isnan(x->from)) assert_true(x->from == floor(x->from) && x->to == floor(x->to));
        events += x->events;
    }
    assert_int_equal(events, COUNT);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const fields[] = {"source-degree", "destination-degree", "pair-count", "gap",
                                         "time"};
    static fr_record records[COUNT];
    fr_error err;
    for (uint64_t seed = 0; seed < 5; seed++) {
        make_records(seed, records);
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
            for (int bins = 1; bins <= 64; bins *= 2) {
                char by[32];
                fr_slices s;
                (void)snprintf(by, sizeof by, "%s:%d", fields[f], bins);
                OK(fr_slices_compute(records, COUNT, by, &s, &err));
                assert_string_equal(s.field, fields[f]);
                assert_in_range(s.count, 1, bins + !strcmp(s.field, "gap"));
                check_numbers(records, &s);
                if (!strcmp(s.field, "time") && bins <= 8) { /* hardly any ties: equal parts */
                    assert_int_equal(s.count, bins);
                    for (int k = 0; k < bins; k++)
                        assert_in_range(s.slice[k].events, COUNT / bins - 12, COUNT / bins + 12);
                }
                for (int oov = 0; oov < 2; oov++) { /* means of slices add up */
                    double sum = 0;
                    int64_t counted = 0;
                    for (int k = 0; k < s.count; k++) {
                        fr_metric_value v = mrr(s.slice[k].records, s.slice[k].events, oov);
                        if (!v.events) continue;
                        sum += v.value * (double)v.events;
                        counted += v.events;
                    }
                    fr_metric_value all = mrr(records, COUNT, oov);
                    assert_int_equal(counted, all.events);
                    assert_true(fabs(sum / (double)counted - all.value) < 1e-13);
                }
                fr_slices_free(&s);
            }
    }
}

/* The quantiles of 0, 0, 0, 1, 2, ..., 8: whole labels, equal numbers together. */
static void test_labels(void **state) {
    (void)state;
    enum { N = 12 };
    fr_error err;
    fr_slices s;
    fr_record r[N];
    for (int i = 0; i < N; i++)
        r[i] = (fr_record){.event = i,
                           .avail_n = -1,
                           .source_degree = i < 3 ? 0 : i - 2,
                           .time = i / 2.0,
                           .gap = i % 4 ? 0.01 * i : NAN};
    OK(fr_slices_compute(r, N, "source_degree:4", &s, &err));
    static const char *const degrees[] = {"0", "1-3", "4-6", "7-9"};
    assert_int_equal(s.count, 4);
    for (int k = 0; k < 4; k++) {
        assert_string_equal(s.slice[k].label, degrees[k]);
        assert_int_equal(s.slice[k].events, 3);
    }
    fr_slices_free(&s);
    OK(fr_slices_compute(r, N, "source-degree:6", &s, &err)); /* two edges at 0 */
    assert_int_equal(s.count, 5);
    fr_slices_free(&s);
    OK(fr_slices_compute(r, N, "time:3", &s, &err));
    assert_int_equal(s.count, 3);
    assert_string_equal(s.slice[0].label, "[0, 2)");
    assert_string_equal(s.slice[2].label, "[4, 6)");
    fr_slices_free(&s);
    OK(fr_slices_compute(r, N, "gap:3", &s, &err)); /* whole edges would leave one slice */
    assert_int_equal(s.count, 4);
    assert_string_equal(s.slice[0].label, "[0.01, 0.05)");
    assert_string_equal(s.slice[2].label, "[0.09, 1)");
    assert_string_equal(s.slice[3].label, "new");
    assert_int_equal(s.slice[3].events, 3);
    fr_slices_free(&s);
    r[0].time = INFINITY; /* of a file that anyone may have written */
    r[1].time = NAN;
    r[2].time = 1e300;
    OK(fr_slices_compute(r, N, "time:2", &s, &err));
    assert_int_equal(s.count, 3);
    assert_string_equal(s.slice[2].label, "none");
    assert_int_equal(s.slice[2].events, 2);
    assert_int_equal(s.slice[0].events + s.slice[1].events, N - 2);
    fr_slices_free(&s);
    OK(fr_slices_compute(NULL, 0, "time", &s, &err));
    assert_int_equal(s.count, 0);
    fr_slices_free(&s);
}

/* New nodes are those without an event among the first TRAIN, which records do not show. */
static void test_classes(void **state) {
    (void)state;
    static const char *const names[] = {"no", "source", "destination", "both"};
    static fr_record records[COUNT];
    fr_error err;
    fr_slices s;
    int64_t each[4] = {0};
    for (uint64_t seed = 0; seed < 5; seed++) {
        make_records(seed, records);
        OK(fr_slices_compute(records, COUNT, "repeated", &s, &err));
        assert_int_equal(s.count, 2);
        for (int k = 0; k < 2; k++) {
            assert_string_equal(s.slice[k].label, k ? "new" : "repeated");
            for (int64_t i = 0; i < s.slice[k].events; i++)
                assert_int_equal(s.slice[k].records[i].repeated, !k);
        }
        assert_int_equal(s.slice[0].events + s.slice[1].events, COUNT);
        fr_slices_free(&s);

        bool known[2][SOURCES] = {0};
        for (int i = 0; i < TRAIN; i++) { /* as make_records draws them */
            uint64_t e = 10000 * seed + (uint64_t)i;
            known[0][below(e, 0, SOURCES / 2) * 2] = true;
            known[1][below(e, 1, DESTINATIONS / 2) * 2] = true;
        }
        OK(fr_slices_compute(records, COUNT, "inductive", &s, &err));
        int64_t events = 0;
        for (int k = 0; k < s.count; k++)
            for (int64_t i = 0; i < s.slice[k].events; i++, events++) {
                const fr_record *r = &s.slice[k].records[i];
                int kind = !known[0][r->source] + 2 * !known[1][r->destination];
                assert_string_equal(s.slice[k].label, names[kind]);
                each[kind]++;
            }
        assert_int_equal(events, COUNT);
        fr_slices_free(&s);
    }
    for (int k = 0; k < 4; k++) assert_true(each[k] > 100);
}

static void test_refusals(void **state) {
    (void)state;
    fr_error err;
    fr_slices s;
    fr_record r = {.covered = 1, .n = 10, .above = 2, .avail_n = -1};
    for (int i = 0; fr_slice_field_at(i); i++) {
        const fr_definition *d = fr_slice_field_at(i);
        OK(fr_slices_compute(&r, 1, d->name, &s, &err));
        assert_string_equal(s.field, d->name);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.slice[0].ranked, 1);
        fr_slices_free(&s);
        assert_true(d->kind == FR_KIND_SLICE && strlen(d->explanation) > 50);
    }
    assert_null(fr_slice_field_at(-1));
    FAILS(fr_slices_compute(&r, 1, "tim", &s, &err), FR_EUSAGE, "did you mean time?");
    FAILS(fr_slices_compute(&r, 1, "", &s, &err), FR_EUSAGE, "unknown slice");
    FAILS(fr_slices_compute(&r, 1, "time:0", &s, &err), FR_EUSAGE, "unknown slice time:0");
    FAILS(fr_slices_compute(&r, 1, "time:1001", &s, &err), FR_EUSAGE, "at most 1000");
    FAILS(fr_slices_compute(&r, 1, "repeated:2", &s, &err), FR_EUSAGE, "without a number");
    FAILS(fr_slices_compute(&r, 1, NULL, &s, &err), FR_EUSAGE, "by is NULL");
    FAILS(fr_slices_compute(&r, 1, "time", NULL, &err), FR_EUSAGE, "out is NULL");
    FAILS(fr_slices_compute(NULL, 1, "time", &s, &err), FR_EUSAGE, "records is NULL");
    FAILS(fr_slices_compute(&r, -1, "time", &s, &err), FR_EUSAGE, "-1 records");
    r.above = 12;
    FAILS(fr_slices_compute(&r, 1, "time", &s, &err), FR_EINPUT, "12 above");
    assert_null(s.memory);
    fr_slices_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
