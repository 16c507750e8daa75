/* hand.c - see hand.h. */
#define _GNU_SOURCE
#include "study/hand.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/os.h"
#include "base/processes.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- bytes ---- */

/* A message under construction, or a received one that is read from `at` on. */
typedef struct parcel {
    ARRAY(char) bytes;
    size_t at;
} parcel;

static fr_status put(parcel *p, const void *bytes, size_t size, fr_error *err) {
    TRY(ARRAY_RESERVE(&p->bytes, size, err));
    if (size) memcpy(p->bytes.at + p->bytes.count, bytes, size);
    p->bytes.count += size;
    return FR_OK;
}

static fr_status get(parcel *p, void *to, size_t size, fr_error *err) {
    if (size > p->bytes.count - p->at)
        return fail(err, FR_EINPUT, "a message of another process ends early");
    if (size) memcpy(to, p->bytes.at + p->at, size);
    p->at += size;
    return FR_OK;
}

/* Bytes of any size, NULL allowed; they are returned with a final 0, and the caller frees them. */
static fr_status put_blob(parcel *p, const void *bytes, size_t size, fr_error *err) {
    uint64_t head[2] = {bytes != NULL, bytes ? size : 0};
    TRY(put(p, head, sizeof head, err));
    return put(p, bytes, (size_t)head[1], err);
}

static fr_status get_blob(parcel *p, void **out, size_t *size, fr_error *err) {
    uint64_t head[2];
    char *copy;
    *out = NULL;
    *size = 0;
    TRY(get(p, head, sizeof head, err));
    if (!head[0]) return FR_OK;
    if (head[1] > p->bytes.count - p->at)
        return fail(err, FR_EINPUT, "a message of another process ends early");
    TRY(ALLOCATE(copy, head[1] + 1, err));
    *out = copy;
    *size = (size_t)head[1];
    return get(p, copy, *size, err);
}

static fr_status send_parcel(const fr_context *context, int to, const parcel *p, fr_error *err) {
    const fr_processes *all = context->processes;
    return all->send(all->state, to, FR_CHANNEL_WORK, p->bytes.at, p->bytes.count, err);
}

static fr_status receive_parcel(const fr_context *context, int *from, parcel *p, fr_error *err) {
    const fr_processes *all = context->processes;
    void *bytes = NULL;
    size_t size = 0;
    *p = (parcel){0};
    TRY(all->receive(all->state, from, FR_CHANNEL_WORK, &bytes, &size, err));
    fr_status status = put(p, bytes, size, err);
    free(bytes);
    return status;
}

/* ---- records ---- */

static fr_status put_record(parcel *p, const unit_record *r, fr_error *err) {
    uint64_t counts[] = {r->metrics.count, r->timings.count, r->artefacts.count};
    TRY(put(p, counts, sizeof counts, err));
    TRY(put(p, r->metrics.at, r->metrics.count * sizeof *r->metrics.at, err));
    TRY(put(p, r->timings.at, r->timings.count * sizeof *r->timings.at, err));
    for (size_t i = 0; i < r->artefacts.count; i++) {
        const unit_artefact *a = &r->artefacts.at[i];
        TRY(put(p, a->name, sizeof a->name, err));
        TRY(put(p, a->sha256, sizeof a->sha256, err));
        TRY(put_blob(p, a->path, a->path ? strlen(a->path) : 0, err));
        TRY(put_blob(p, a->bytes, a->size, err));
    }
    return FR_OK;
}

static fr_status get_record(parcel *p, unit_record *r, fr_error *err) {
    uint64_t counts[3];
    TRY(get(p, counts, sizeof counts, err));
    for (int i = 0; i < 3; i++)
        if (counts[i] > p->bytes.count)
            return fail(err, FR_EINPUT, "a message of another process ends early");
    TRY(ARRAY_RESERVE(&r->metrics, (size_t)counts[0], err));
    TRY(ARRAY_RESERVE(&r->timings, (size_t)counts[1], err));
    TRY(ARRAY_RESERVE(&r->artefacts, (size_t)counts[2], err));
    TRY(get(p, r->metrics.at, (size_t)counts[0] * sizeof *r->metrics.at, err));
    r->metrics.count = (size_t)counts[0];
    TRY(get(p, r->timings.at, (size_t)counts[1] * sizeof *r->timings.at, err));
    r->timings.count = (size_t)counts[1];
    for (uint64_t i = 0; i < counts[2]; i++) {
        unit_artefact *a = &r->artefacts.at[r->artefacts.count++];
        void *path = NULL;
        size_t size;
        *a = (unit_artefact){0};
        TRY(get(p, a->name, sizeof a->name, err));
        TRY(get(p, a->sha256, sizeof a->sha256, err));
        TRY(get_blob(p, &path, &size, err));
        a->path = path;
        TRY(get_blob(p, &a->bytes, &a->size, err));
    }
    return FR_OK;
}

/* ---- doing an assigned unit ---- */

/* The data sent with a unit. */
typedef struct task {
    int32_t unit; /* -1 = there are no more units */
    int32_t again, stopped;
} task;

/* Takes the ledger and all it needs from a message; *unit is NULL if there are no more units. */
static fr_status unpack(fr_study *s, parcel *p, const plan_unit **unit, task *t, fr_error *err) {
    plan *all = &s->plan;
    void *text = NULL, *book = NULL;
    size_t size;
    *unit = NULL;
    TRY(get(p, t, sizeof *t, err));
    if (t->unit < 0) return FR_OK;
    if ((size_t)t->unit >= all->units.count)
        return fail(err, FR_EINPUT, "unit %d of a plan of %zu: another document", (int)t->unit,
                    all->units.count);
    fr_status status = get_blob(p, &text, &size, err);
    if (!status) {
        free(s->directory);
        s->directory = text;
    }
    for (size_t i = 0; !status && i < all->units.count; i++)
        status = get(p, &all->units.at[i].id, sizeof all->units.at[i].id, err);
    if (!status) status = get_blob(p, &book, &size, err);
    ledger_close(&s->book);
    if (!status) status = ledger_from_bytes(&s->book, book, size, err);
    free(book);
    *unit = &all->units.at[t->unit];
    return status;
}

/* The context of a unit: its log lines are sent back with its result. */
typedef struct listener {
    const fr_context *context; /* of the process */
    text_buffer said;          /* lines, each after its level */
} listener;

static void hear_line(void *user, fr_level level, const char *line) {
    text_print(&((listener *)user)->said, "%d%s\n", (int)level, line);
}

static bool hear_stop(void *user) {
    return context_check(((const listener *)user)->context, NULL) != FR_OK;
}

static void repeat_lines(const fr_context *context, const char *text) {
    for (const char *end; text && (end = strchr(text, '\n')); text = end + 1)
        context_log(context, (fr_level)(*text - '0'), "%.*s", (int)(end - text - 1), text + 1);
}

/* Does the unit of a message. *answer, which the caller frees, is the result; there is none if
 * t->unit is -1. */
static fr_status perform(fr_study *s, parcel *p, const fr_context *context, parcel *answer, task *t,
                         fr_error *err) {
    unit_record result = {0};
    fr_error inner = {0};
    listener ear = {.context = context};
    fr_context hearing,
        caller = {.user = &ear, .log = hear_line, .cancel = hear_stop, .threads = context->threads};
    const plan_unit *unit;
    double start = clock_now();
    *t = (task){0};
    *answer = (parcel){0};
    fr_status status = unpack(s, p, &unit, t, &inner);
    if (!status && !unit) return FR_OK;
    if (!status) {
        study_listen(s, &caller, &hearing);
        s->unit = unit;
        status = work_do(s, unit, t->again, &result, &inner);
        study_listen(s, NULL, NULL);
    }
    double seconds = clock_now() - start;
    inner.code = status;
    status = put(answer, &inner, sizeof inner, err);
    if (!status) status = put(answer, &seconds, sizeof seconds, err);
    if (!status) status = put_blob(answer, ear.said.at, ear.said.count, err);
    if (!status) status = put_record(answer, &result, err);
    text_free(&ear.said);
    record_free(&result);
    return status;
}

/* ---- at process 0 ---- */

/* The unit that a process was given. */
struct hand {
    const plan_unit *unit; /* NULL = it waits */
    char inputs[65];
    bool stopped; /* it was told to stop */
};

/* The thread that does units for process 0. */
struct own_hand {
    fr_study *study;
    fr_context context;
    pthread_t thread;
    parcel task, answer;
    fr_error error; /* if there is no answer */
    _Atomic bool stop, done;
};

static bool own_stop(void *user) { return atomic_load(&((own_hand *)user)->stop); }

static void *own_run(void *job) {
    own_hand *o = job;
    task t;
    o->error.code = perform(o->study, &o->task, &o->context, &o->answer, &t, &o->error);
    atomic_store(&o->done, true);
    return NULL;
}

static fr_status own_open(own_hand **out, const fr_study *s, const fr_context *context,
                          fr_error *err) {
    own_hand *o;
    TRY(ALLOCATE(o, 1, err));
    *out = o;
    o->context = (fr_context){.user = o, .cancel = own_stop, .threads = context->threads};
    TRY(fr_study_open(s->document, s->folder, NULL, &o->study, err));
    if (json_equal(o->study->plan.source, s->plan.source)) return FR_OK;
    return fail(err, FR_EINPUT, "%s: changed while the study was opened", s->document);
}

/* The thread owns the message if it starts; otherwise the caller still owns it. */
static fr_status own_give(own_hand *o, const parcel *p, fr_error *err) {
    o->task = *p;
    o->error = (fr_error){0};
    atomic_store(&o->stop, false);
    atomic_store(&o->done, false);
    if (!os_thread(&o->thread, own_run, o)) return FR_OK;
    return fail_errno(err, "a thread cannot be started");
}

static fr_status own_take(own_hand *o, parcel *p, fr_error *err) {
    (void)pthread_join(o->thread, NULL);
    free(o->task.bytes.at);
    *p = o->answer;
    return o->error.code ? fail(err, o->error.code, "%s", o->error.message) : FR_OK;
}

fr_status hands_open(hands *h, const fr_study *s, const fr_context *context, fr_error *err) {
    *h = (hands){.context = context, .count = processes_count(context)};
    TRY(ALLOCATE(h->of, h->count, err));
    return h->count > 1 ? own_open(&h->own, s, context, err) : FR_OK;
}

bool hands_have(const hands *h, const plan_unit *unit) {
    for (int k = 0; k < h->count; k++)
        if (h->of[k].unit == unit) return true;
    return false;
}

int hands_idle(const hands *h) {
    for (int k = 1; k <= h->count; k++)
        if (!h->of[k % h->count].unit) return k % h->count;
    return -1;
}

fr_status hands_give(fr_study *s, hands *h, int to, const plan_unit *unit, const char *inputs,
                     bool again, fr_error *err) {
    const plan *all = &s->plan;
    task t = {.unit = (int32_t)(unit - all->units.at), .again = again};
    parcel p = {0};
    fr_status status = put(&p, &t, sizeof t, err);
    if (!status) status = put_blob(&p, s->directory, strlen(s->directory), err);
    for (size_t i = 0; !status && i < all->units.count; i++)
        status = put(&p, &all->units.at[i].id, sizeof all->units.at[i].id, err);
    sqlite3_int64 size = 0;
    unsigned char *book = status ? NULL : sqlite3_serialize(s->book.db, "main", &size, 0);
    if (!status && !book) status = fail_memory(err, 0);
    if (!status) status = put_blob(&p, book, (size_t)size, err);
    sqlite3_free(book);
    if (!status) status = to ? send_parcel(h->context, to, &p, err) : own_give(h->own, &p, err);
    if (to || status) free(p.bytes.at);
    if (status) return status;
    h->of[to] = (hand){.unit = unit};
    (void)memcpy(h->of[to].inputs, inputs, sizeof h->of[to].inputs);
    h->busy++;
    return FR_OK;
}

/* The working processes see it when they check for cancellation. */
static fr_status stop_all(hands *h, fr_error *err) {
    const fr_processes *all = h->context->processes;
    if (h->of[0].unit) atomic_store(&h->own->stop, true);
    for (int k = 1; k < h->count; k++) {
        if (!h->of[k].unit || h->of[k].stopped) continue;
        h->of[k].stopped = true;
        TRY(all->send(all->state, k, FR_CHANNEL_STOP, "", 1, err));
    }
    return FR_OK;
}

/* Waits for a process that is done. */
static fr_status wait_for_one(hands *h, bool stop, int *from, parcel *p, fr_error *err) {
    const fr_processes *all = h->context->processes;
    *p = (parcel){0};
    *from = -1;
    while (!all->waiting(all->state, FR_CHANNEL_WORK)) {
        struct timespec nap = {.tv_nsec = 5000000};
        if (h->of[0].unit && atomic_load(&h->own->done)) {
            *from = 0;
            return own_take(h->own, p, err);
        }
        if (stop || context_check(h->context, NULL)) TRY(stop_all(h, err));
        (void)nanosleep(&nap, NULL);
    }
    return receive_parcel(h->context, from, p, err);
}

fr_status hands_take(fr_study *s, hands *h, bool stop, hand_result *out, fr_error *err) {
    parcel p;
    void *said = NULL;
    size_t size;
    int from;
    *out = (hand_result){0};
    fr_status status = wait_for_one(h, stop, &from, &p, err);
    if (from >= 0) {
        out->unit = h->of[from].unit;
        (void)memcpy(out->inputs, h->of[from].inputs, sizeof out->inputs);
        h->of[from].unit = NULL;
        h->busy--;
    }
    if (!status) status = get(&p, &out->error, sizeof out->error, err);
    if (!status) status = get(&p, &out->seconds, sizeof out->seconds, err);
    if (!status) status = get_blob(&p, &said, &size, err);
    if (!status) status = get_record(&p, &out->record, err);
    if (!status) repeat_lines(s->caller, said);
    free(said);
    free(p.bytes.at);
    return status;
}

fr_status hands_close(hands *h, fr_error *err) {
    fr_status status = FR_OK;
    for (int k = 1; k < h->count; k++) {
        task end = {.unit = -1, .stopped = h->of && h->of[k].stopped};
        parcel p = {0};
        fr_status sent = put(&p, &end, sizeof end, err);
        if (!sent) sent = send_parcel(h->context, k, &p, err);
        free(p.bytes.at);
        if (!status) status = sent;
    }
    if (h->own) fr_study_close(h->own->study);
    free(h->own);
    free(h->of);
    *h = (hands){0};
    return status;
}

/* ---- at the others ---- */

/* Does the unit of a message and sends the result; *end = there was no unit. */
static fr_status serve(fr_study *s, const fr_context *context, parcel *p, bool *end,
                       fr_error *err) {
    parcel answer;
    task t;
    fr_status status = perform(s, p, context, &answer, &t, err);
    *end = t.unit < 0;
    if (*end && t.stopped) { /* the stop message may still be waiting */
        const fr_processes *all = context->processes;
        void *bytes = NULL;
        size_t size;
        int zero = 0;
        TRY(all->receive(all->state, &zero, FR_CHANNEL_STOP, &bytes, &size, err));
        free(bytes);
    }
    if (!status && !*end) status = send_parcel(context, 0, &answer, err);
    free(answer.bytes.at);
    return status;
}

fr_status hands_serve(fr_study *s, const fr_context *context, fr_error *err) {
    fr_status status = FR_OK;
    bool end = false;
    while (!status && !end) {
        parcel p;
        int zero = 0;
        status = receive_parcel(context, &zero, &p, err);
        if (!status) status = serve(s, context, &p, &end, err);
        free(p.bytes.at);
    }
    work_leave(s);
    return status;
}
