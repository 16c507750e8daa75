/* processes.h - threads that play the processes of an MPI job (fr_processes). So shared work can be
 * tested in one program, also by sanitizers.
 *
 *     post_office office;
 *     office_open(&office, 3);
 *     office_run(&office, work, jobs);     // work(&processes, jobs[k]) in 3 threads
 *     office_close(&office);               // fails if a letter was never read */
#ifndef FR_TESTS_PROCESSES_H
#define FR_TESTS_PROCESSES_H

#include "testing.h"

#include "base/os.h"

enum { MOST_PROCESSES = 8 };

typedef struct letter {
    struct letter *next;
    int from, to, channel;
    void *bytes;
    size_t size;
} letter;

typedef struct post_office {
    pthread_mutex_t lock;
    pthread_cond_t news;
    letter *first; /* in the order in which they were sent */
    int count;
    int sent[MOST_PROCESSES]; /* letters to each, on the channel of work */
    struct desk {
        struct post_office *office;
        fr_processes processes;
        void (*work)(const fr_processes *, void *);
        void *job;
    } desk[MOST_PROCESSES];
} post_office;

static inline fr_status post_send(void *state, int to, int channel, const void *bytes, size_t size,
                                  fr_error *err) {
    struct desk *me = state;
    post_office *office = me->office;
    letter *new = calloc(1, sizeof *new), **end = &office->first;
    void *copy = malloc(size + 1);
    (void)err;
    if (!new || !copy) abort();
    memcpy(copy, bytes, size);
    *new = (letter){NULL, me->processes.number, to, channel, copy, size};
    (void)pthread_mutex_lock(&office->lock);
    while (*end) end = &(*end)->next;
    *end = new;
    office->sent[to] += channel == FR_CHANNEL_WORK;
    (void)pthread_cond_broadcast(&office->news);
    (void)pthread_mutex_unlock(&office->lock);
    return FR_OK;
}

static inline letter **post_find(post_office *office, int from, int to, int channel) {
    letter **at = &office->first;
    while (*at &&
           ((*at)->to != to || (*at)->channel != channel || (from >= 0 && (*at)->from != from)))
        at = &(*at)->next;
    return at;
}

static inline fr_status post_receive(void *state, int *from, int channel, void **bytes,
                                     size_t *size, fr_error *err) {
    struct desk *me = state;
    post_office *office = me->office;
    letter **at;
    (void)err;
    (void)pthread_mutex_lock(&office->lock);
    while (!*(at = post_find(office, *from, me->processes.number, channel)))
        (void)pthread_cond_wait(&office->news, &office->lock);
    letter *found = *at;
    *at = found->next;
    (void)pthread_mutex_unlock(&office->lock);
    *from = found->from;
    *bytes = found->bytes;
    *size = found->size;
    free(found);
    return FR_OK;
}

static inline bool post_waiting(void *state, int channel) {
    struct desk *me = state;
    (void)pthread_mutex_lock(&me->office->lock);
    bool there = *post_find(me->office, -1, me->processes.number, channel) != NULL;
    (void)pthread_mutex_unlock(&me->office->lock);
    return there;
}

static inline void office_open(post_office *office, int count) {
    *office = (post_office){.count = count};
    assert_int_equal(pthread_mutex_init(&office->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&office->news, NULL), 0);
    for (int k = 0; k < count; k++)
        office->desk[k] = (struct desk){.office = office,
                                        .processes = {.size = sizeof(fr_processes),
                                                      .number = k,
                                                      .count = count,
                                                      .state = &office->desk[k],
                                                      .send = post_send,
                                                      .receive = post_receive,
                                                      .waiting = post_waiting}};
}

static inline void *office_thread(void *job) {
    struct desk *me = job;
    me->work(&me->processes, me->job);
    return NULL;
}

/* `work` must not use cmocka, which ends a test in its own thread only. */
static inline void office_run(post_office *office, void (*work)(const fr_processes *, void *),
                              void *jobs, size_t size) {
    pthread_t thread[MOST_PROCESSES];
    for (int k = 0; k < office->count; k++) {
        office->desk[k].work = work;
        office->desk[k].job = (char *)jobs + (size_t)k * size;
        assert_int_equal(os_thread(&thread[k], office_thread, &office->desk[k]), 0);
    }
    for (int k = 0; k < office->count; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
}

static inline void office_close(post_office *office) {
    assert_null(office->first);
    (void)pthread_cond_destroy(&office->news);
    (void)pthread_mutex_destroy(&office->lock);
}

#endif
