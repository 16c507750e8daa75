/* test_base_shards.c - equal results for 1, 2 and 5 threads, the error of the smallest failing
 * shard, cancellation, callbacks on the calling thread only. */
#include "base/shards.h"
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { SHARDS = 300, PER_SHARD = 100 };

typedef struct sums {
    double result[SHARDS];
    _Atomic int times[SHARDS], highest_worker;
} sums;

static fr_status sum_shard(void *job, int64_t shard, int worker, fr_error *err) {
    (void)err;
    sums *s = job;
    for (int i = 0; i < PER_SHARD; i++)
        s->result[shard] += 1.0 / (double)(shard * PER_SHARD + i + 1);
    atomic_fetch_add(&s->times[shard], 1);
    int highest = atomic_load(&s->highest_worker);
    while (worker > highest &&
           !atomic_compare_exchange_weak(&s->highest_worker, &highest, worker)) {
    }
    return FR_OK;
}

static void test_threads_give_equal_results(void **state) {
    (void)state;
    fr_error err;
    static sums runs[3];
    static const int threads[] = {1, 2, 5};
    for (int r = 0; r < 3; r++) {
        fr_context context = {.threads = threads[r]};
        OK(shards_run(&context, &(shard_stage){"sums", SHARDS, "sums"}, SHARDS, sum_shard, &runs[r],
                      &err));
        for (int i = 0; i < SHARDS; i++) assert_int_equal(runs[r].times[i], 1);
        assert_true(runs[r].highest_worker < threads[r]);
        assert_memory_equal(runs[r].result, runs[0].result, sizeof runs[0].result);
    }
}

/* Each shard of a phase reads all results of the previous phase. */
typedef struct chain {
    int made[3][SHARDS];
    _Atomic int wrong;
} chain;

static int64_t chain_sum(const int *made, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += made[i];
    return sum;
}
static fr_status begin_chain(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker, (void)err;
    ((chain *)job)->made[0][shard] = (int)shard;
    return FR_OK;
}
static fr_status middle_of_chain(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker, (void)err;
    chain *c = job;
    c->wrong += chain_sum(c->made[0], 40) != 40 * 39 / 2;
    c->made[1][shard] = 1;
    return FR_OK;
}
static fr_status end_chain(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    chain *c = job;
    c->wrong += chain_sum(c->made[1], SHARDS) != SHARDS;
    c->made[2][shard] = 1;
    return shard == 5 ? fail(err, FR_EINPUT, "shard %d", (int)shard) : FR_OK;
}

static void test_phases(void **state) {
    (void)state;
    fr_error err;
    static const int threads[] = {1, 2, 5};
    static const shard_phase phase[] = {
        {40, begin_chain}, {SHARDS, middle_of_chain}, {3, end_chain}, {0, begin_chain}};
    static const shard_phase failing[] = {
        {40, begin_chain}, {SHARDS, middle_of_chain}, {9, end_chain}, {SHARDS, begin_chain}};
    for (int r = 0; r < 30; r++) {
        fr_context context = {.threads = threads[r % 3]};
        chain c = {0};
        OK(shards_run_rounds(&context, 1, 4, phase, &c, &err));
        assert_int_equal(c.wrong, 0);
        assert_int_equal(chain_sum(c.made[2], SHARDS), 3);
        c = (chain){0};
        FAILS(shards_run_rounds(&context, 1, 4, failing, &c, &err), FR_EINPUT, "shard 5");
        assert_int_equal(c.wrong, 0);
        assert_int_equal(c.made[0][SHARDS - 1], 0); /* the last phase has not begun */
    }
}

/* A sum that each round continues: shards copy it and add to it, and the calling thread stores the
 * new one. */
enum { ROUNDS = 400 };
typedef struct rounds {
    int64_t sum, part[7];
    int round, elsewhere; /* one-shard phases, and those not done by the calling thread */
    int fails_in;
} rounds;

static fr_status add_part(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    rounds *r = job;
    r->part[shard] = r->sum % 1000003 + shard;
    if (r->round == r->fails_in && shard == 3) return fail(err, FR_EINPUT, "round %d", r->round);
    return FR_OK;
}
static fr_status close_round(void *job, int64_t shard, int worker, fr_error *err) {
    (void)shard, (void)err;
    rounds *r = job;
    for (int i = 0; i < 7; i++) r->sum += r->part[i] * (i + 1);
    r->round++;
    r->elsewhere += worker != 0;
    return FR_OK;
}

static void test_rounds(void **state) {
    (void)state;
    fr_error err;
    static const shard_phase phase[] = {{7, add_part}, {0, add_part}, {1, close_round}};
    rounds expected = {.sum = 1, .fails_in = -1};
    for (int r = 0; r < ROUNDS; r++) {
        for (int64_t i = 0; i < 7; i++) OK(add_part(&expected, i, 0, &err));
        OK(close_round(&expected, 0, 0, &err));
    }
    for (int threads = 1; threads <= 5; threads += 2) {
        fr_context context = {.threads = threads};
        rounds r = {.sum = 1, .fails_in = -1};
        OK(shards_run_rounds(&context, ROUNDS, 3, phase, &r, &err));
        assert_true(r.sum == expected.sum);
        assert_int_equal(r.round, ROUNDS);
        assert_int_equal(r.elsewhere, 0);
        r = (rounds){.sum = 1, .fails_in = 123};
        FAILS(shards_run_rounds(&context, ROUNDS, 3, phase, &r, &err), FR_EINPUT, "round 123");
        assert_int_equal(r.round, 123);
        OK(shards_run_rounds(&context, 0, 3, phase, &r, &err)); /* nothing to do */
        assert_int_equal(r.round, 123);
    }
}

static void test_few_shards(void **state) {
    (void)state;
    fr_error err;
    static sums s;
    fr_context context = {.threads = 5};
    OK(shards_run(&context, NULL, 0, sum_shard, &s, &err));
    assert_int_equal(s.times[0], 0);
    OK(shards_run(&context, NULL, 1, sum_shard, &s, &err));
    assert_int_equal(s.times[0], 1);
    assert_int_equal(s.highest_worker, 0);
    OK(shards_run(NULL, NULL, 2, sum_shard, &s, &err)); /* no context: all cores */
    assert_int_equal(s.times[1], 1);
}

static fr_status fail_some(void *job, int64_t shard, int worker, fr_error *err) {
    (void)worker;
    atomic_fetch_add((_Atomic int *)job, 1);
    if (shard == 7 || shard == 9 || shard == 13)
        return fail(err, shard == 7 ? FR_EINPUT : FR_EFILE, "shard %d", (int)shard);
    return FR_OK;
}

/* Shards are taken in ascending order, and a shard that was taken is finished. So the smallest
 * failing one is reported in every run, with any timing. */
static void test_smallest_failure_is_reported(void **state) {
    (void)state;
    fr_error err;
    static const int threads[] = {1, 2, 5};
    for (int r = 0; r < 3; r++)
        for (int repeat = 0; repeat < 200; repeat++) {
            fr_context context = {.threads = threads[r]};
            _Atomic int done = 0;
            FAILS(shards_run(&context, NULL, 100000, fail_some, &done, &err), FR_EINPUT, "shard 7");
            assert_true(done < 100000); /* stopped early */
            assert_int_equal(shards_run(&context, NULL, 100, fail_some, &done, NULL), FR_EINPUT);
        }
}

typedef struct listener {
    pthread_t caller;
    bool foreign; /* a callback came from another thread */
    int asked, cancel_after;
    uint64_t last_done, total;
} listener;

static bool cancel_later(void *user) {
    listener *l = user;
    l->foreign |= !pthread_equal(l->caller, pthread_self());
    return ++l->asked > l->cancel_after;
}

static void hear_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                          const char *unit) {
    listener *l = user;
    l->foreign |= !pthread_equal(l->caller, pthread_self());
    l->foreign |= strcmp(stage, "count") || strcmp(unit, "things");
    l->foreign |= done <= l->last_done || done > total;
    l->last_done = done;
    l->total = total;
}

static fr_status count_shard(void *job, int64_t shard, int worker, fr_error *err) {
    (void)shard, (void)worker, (void)err;
    atomic_fetch_add((_Atomic int *)job, 1);
    return FR_OK;
}

static void test_cancel(void **state) {
    (void)state;
    fr_error err;
    _Atomic int done = 0;
    listener l = {.caller = pthread_self(), .cancel_after = 4};
    fr_context context = {.user = &l, .cancel = cancel_later, .threads = 1};
    FAILS(shards_run(&context, NULL, 1000, count_shard, &done, &err), FR_ECANCEL, "interrupted");
    assert_int_equal(done, 5);

    l = (listener){.caller = pthread_self()};
    context.threads = 5;
    fr_status status = shards_run(&context, NULL, 100000, count_shard, &done, &err);
    /* The others may have done everything before the calling thread took a shard. */
    assert_true(status == (l.asked ? FR_ECANCEL : FR_OK));
    assert_false(l.foreign);
}

static void test_progress(void **state) {
    (void)state;
    fr_error err;
    static const int threads[] = {1, 2, 5};
    for (int r = 0; r < 3; r++) {
        _Atomic int done = 0;
        listener l = {.caller = pthread_self()};
        fr_context context = {.user = &l, .progress = hear_progress, .threads = threads[r]};
        OK(shards_run(&context, &(shard_stage){"count", 12345, "things"}, 500, count_shard, &done,
                      &err));
        assert_int_equal(done, 500);
        assert_false(l.foreign);
        assert_int_equal(l.last_done, 12345);
    }
}

static fr_status sleep_in_first(void *job, int64_t shard, int worker, fr_error *err) {
    (void)job, (void)worker, (void)err;
    if (!shard) (void)nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    return FR_OK;
}

/* A long last shard keeps only its own processor busy, because no phase follows. */
static void test_nobody_waits_at_the_end(void **state) {
    (void)state;
    fr_error err;
    fr_context context = {.threads = 5};
    const shard_phase phase[] = {{3, sleep_in_first}, {0, sleep_in_first}};
    for (int phases = 1; phases <= 2; phases++) {
        clock_t begun = clock(); /* processor time of all threads */
        OK(shards_run_rounds(&context, 1, phases, phase, NULL, &err));
        assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 0.2);
    }
}

static void test_context_threads(void **state) {
    (void)state;
    assert_int_equal(context_threads(&(fr_context){.threads = 3}), 3);
    assert_true(context_threads(NULL) >= 1);
    assert_int_equal(context_threads(NULL), context_threads(&(fr_context){0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_give_equal_results),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_few_shards),
        cmocka_unit_test(test_smallest_failure_is_reported),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_nobody_waits_at_the_end),
        cmocka_unit_test(test_context_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
