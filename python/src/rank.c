/* rank.c - scorers, feeds, rankings (fullrank.h, chapters 8-10). */
#include "binding.h"

#include <string.h>

/* ---- the records as a NumPy type ---- */

/* [(name, type)] in the order of the struct, which is packed. */
static PyObject *record_fields(PyObject *self, PyObject *none) {
    (void)self, (void)none;
#define F(name) FIELD(fr_record, name)
    static const field fields[] = {
        F(event),
        F(source),
        F(destination),
        F(time),
        F(covered),
        F(repeated),
        F(n),
        F(above),
        F(tied),
        F(seen_n),
        F(seen_above),
        F(seen_tied),
        F(pop_above),
        F(pop_tied),
        F(pop_self),
        F(avail_n),
        F(avail_above),
        F(avail_tied),
        F(score),
        F(pair_count),
        F(source_degree),
        F(destination_degree),
        F(gap),
        F(filtered),
        F(train_n),
        F(train_above),
        F(train_tied),
        F(tied_before),
    };
#undef F
    PyObject *out = PyList_New(0);
    size_t end = 0;
    for (size_t k = 0; out && k < sizeof fields / sizeof *fields; k++) {
        static const char *const names[] = {
            ['q'] = "<i8", ['i'] = "<i4", ['d'] = "<f8", ['f'] = "<f4", ['B'] = "|u1"};
        const char *type = names[(unsigned char)fields[k].type];
        PyObject *one = Py_BuildValue("(ss)", fields[k].name, type);
        if (!one || PyList_Append(out, one)) Py_CLEAR(out);
        Py_XDECREF(one);
        if (fields[k].offset != end) { /* a field of the header that is not listed here */
            PyErr_Format(PyExc_SystemError, "field %s of a record is not at byte %zu",
                         fields[k].name, end);
            Py_CLEAR(out);
        }
        end += (size_t)(type[2] - '0');
    }
    if (out && end != sizeof(fr_record)) {
        PyErr_Format(PyExc_SystemError, "records have %zu bytes, expected %zu", sizeof(fr_record),
                     end);
        Py_CLEAR(out);
    }
    return out;
}

/* ---- rankings ---- */

static PyObject *ranking_or_close(bool good, fr_ranking *ranking) {
    if (good) return HANDLE(ranking, ranking, NULL);
    fr_ranking_close(ranking);
    return NULL;
}

static PyObject *protocol_dict(const fr_protocol_facts *protocol) {
    PyObject *out = PyDict_New();
    for (const fr_option *o = fr_protocol_fields; out && o->key; o++) {
        char value[4096];
        fr_options_text(o, protocol, value, sizeof value);
        if (!put(out, o->key, text(value))) Py_CLEAR(out);
    }
    return out;
}

static PyObject *ranking_facts(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_ranking_facts, name)
    static const field fields[] = {
        F(count),
        F(scorer),
        F(model),
        F(objective),
        F(seed),
        F(epochs_done),
        F(epochs_asked),
        F(selected),
        F(data),
        F(protocol_text),
        F(seconds),
        F(scores_per_second),
        F(verified),
        F(verified_error),
        F(verified_ranks),
        F(covered),
        {"oov", 'i', offsetof(fr_ranking_facts, oov)},
        {"sample_of", 'q', offsetof(fr_ranking_facts, protocol.sample_of)},
        {0}};
#undef F
    const fr_ranking *ranking;
    if (!PyArg_ParseTuple(args, "O&", as_ranking, &ranking)) return NULL;
    fr_ranking_facts facts = fr_ranking_get(ranking);
    PyObject *out = fields_dict(fields, &facts);
    if (out && (!put(out, "protocol", protocol_dict(&facts.protocol)) ||
                !put(out, "records", address(facts.records))))
        Py_CLEAR(out);
    return out;
}

static PyObject *ranking_save(PyObject *self, PyObject *args) {
    (void)self;
    const fr_ranking *ranking;
    const char *path;
    int force;
    call c;
    if (!PyArg_ParseTuple(args, "O&yp", as_ranking, &ranking, &path, &force) ||
        !call_begin(&c, Py_None) || !call_end(&c, fr_ranking_save(ranking, path, force, &c.error)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *ranking_check(PyObject *self, PyObject *args) {
    (void)self;
    const char *path;
    int force;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "yp", &path, &force)) return NULL;
    if (fr_ranking_check(path, force, &error)) return raise_error(&error);
    Py_RETURN_NONE;
}

static PyObject *ranking_load(PyObject *self, PyObject *args) {
    (void)self;
    const char *path;
    fr_ranking *ranking = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "y", &path)) return NULL;
    bool good = call_begin(&c, Py_None) && call_end(&c, fr_ranking_load(path, &ranking, &c.error));
    return ranking_or_close(good, ranking);
}

/* ---- scorers ---- */

static PyObject *scorer_open(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *owner, *how;
    const char *spec;
    long long seed;
    fr_scorer *scorer = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "OyLO", &owner, &spec, &seed, &how)) return NULL;
    const fr_window *window = handle_at(owner, kind_window);
    if (!window || !call_begin(&c, how)) return NULL;
    if (call_end(&c, fr_scorer_open(spec, window, seed, &c.context, &scorer, &c.error)))
        return HANDLE(scorer, scorer, owner);
    fr_scorer_close(scorer);
    return NULL;
}

static PyObject *scorer_facts(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_scorer_facts, name)
    static const field fields[] = {
        F(name),        F(model),        F(objective),    F(sha256),   F(seed),
        F(epochs_done), F(epochs_asked), F(selected),     F(row),      F(workers),
        F(many),        F(remembers),    F(catalog_only), F(observed), {0}};
#undef F
    const fr_scorer *scorer;
    if (!PyArg_ParseTuple(args, "O&", as_scorer, &scorer)) return NULL;
    fr_scorer_facts facts = fr_scorer_get(scorer);
    return fields_dict(fields, &facts);
}

static PyObject *scorer_score(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    const fr_query *queries;
    float *scores;
    int count;
    call c;
    if (!PyArg_ParseTuple(args, "OO&iO&", &object, as_address, &queries, &count, as_address,
                          &scores))
        return NULL;
    const fr_scorer *scorer = handle_at(object, kind_scorer);
    if (!scorer || !handle_claim(object, &c)) return NULL;
    bool good = call_begin(&c, Py_None) &&
                call_end(&c, fr_scorer_score(scorer, queries, count, 0, scores, &c.error));
    handle_release(object);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *scorer_observe(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    int before;
    call c;
    if (!PyArg_ParseTuple(args, "Oi", &object, &before)) return NULL;
    fr_scorer *scorer = handle_at(object, kind_scorer);
    if (!scorer || !handle_claim(object, &c)) return NULL;
    bool good =
        call_begin(&c, Py_None) && call_end(&c, fr_scorer_observe(scorer, before, &c.error));
    handle_release(object);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *scorer_project(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object, *how;
    int what;
    long long seed;
    call c;
    if (!PyArg_ParseTuple(args, "OiLO", &object, &what, &seed, &how)) return NULL;
    fr_scorer *scorer = handle_at(object, kind_scorer);
    if (!scorer || !handle_claim(object, &c)) return NULL;
    bool good = call_begin(&c, how) &&
                call_end(&c, fr_scorer_project(scorer, what, seed, &c.context, &c.error));
    handle_release(object);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* A scorer that asks Python. Its functions may be called by any thread that the engine starts. */
typedef struct asked {
    PyObject *score, *observe;
    call *of; /* the current call, which raises their exceptions */
} asked;

static fr_status answer(asked *a, PyObject *result, fr_error *err) {
    Py_XDECREF(result);
    if (result) return FR_OK;
    call_keep(a->of);
    return fr_fail(err, FR_ECANCEL, "the scorer raised an exception");
}

static fr_status ask_score(void *state, const fr_query *queries, int count, int worker,
                           float *scores, fr_error *err) {
    asked *a = state;
    PyGILState_STATE before = PyGILState_Ensure();
    PyObject *result =
        PyObject_CallFunction(a->score, "NiiN", address(queries), count, worker, address(scores));
    fr_status status = answer(a, result, err);
    PyGILState_Release(before);
    return status;
}

static fr_status ask_observe(void *state, const fr_event *event, fr_error *err) {
    asked *a = state;
    PyGILState_STATE before = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(a->observe, "N", address(event));
    fr_status status = answer(a, result, err);
    PyGILState_Release(before);
    return status;
}

static void close_asked(void *state) {
    asked *a = state;
    PyGILState_STATE before = PyGILState_Ensure();
    Py_XDECREF(a->score);
    Py_XDECREF(a->observe);
    PyMem_Free(a);
    PyGILState_Release(before);
}

/* (window, about, score, observe or None): the scorer keeps both until it is closed. */
static PyObject *scorer_make(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *owner, *about, *score, *observe;
    fr_scorer_definition is;
    fr_scorer *scorer;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "OO!OO", &owner, &PyDict_Type, &about, &score, &observe))
        return NULL;
    const fr_window *window = handle_at(owner, kind_window);
    if (!window || !about_take(about, &is)) return NULL;
    asked *a = PyMem_Malloc(sizeof *a);
    if (!a) return PyErr_NoMemory();
    *a = (asked){.score = score, .observe = observe == Py_None ? NULL : observe};
    Py_INCREF(score);
    Py_XINCREF(a->observe);
    is.state = a;
    is.score = ask_score;
    is.observe = a->observe ? ask_observe : NULL;
    is.close = close_asked;
    if (fr_scorer_make(window, &is, &scorer, &error)) {
        close_asked(a);
        return raise_error(&error);
    }
    PyObject *out = HANDLE(scorer, scorer, owner);
    if (out) ((handle *)out)->current = &a->of;
    return out;
}

/* (window, about, u, v, bias or 0, (rows, columns, width)): the arrays must outlive the scorer. */
static PyObject *scorer_factors(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *owner, *about;
    long long rows, columns, width;
    fr_factors f = {.size = sizeof f};
    fr_scorer_definition is;
    fr_scorer *scorer;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "OO!O&O&O&(LLL)", &owner, &PyDict_Type, &about, as_address, &f.u,
                          as_address, &f.v, as_address, &f.bias, &rows, &columns, &width))
        return NULL;
    f.rows = rows, f.columns = columns, f.width = width;
    const fr_window *window = handle_at(owner, kind_window);
    if (!window || !about_take(about, &is)) return NULL;
    if (fr_scorer_factors(window, &f, &is, &scorer, &error)) return raise_error(&error);
    return HANDLE(scorer, scorer, owner);
}

static PyObject *rank_run(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object, *options, *how;
    int force;
    fr_rank_settings settings;
    fr_ranking *ranking = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "OO!pO", &object, &PyDict_Type, &options, &force, &how))
        return NULL;
    fr_scorer *scorer = handle_at(object, kind_scorer);
    if (!scorer || !SETTINGS(fr_rank_options, settings, options)) return NULL;
    settings.force = force;
    bool good = handle_claim(object, &c);
    if (good) {
        good = call_begin(&c, how) &&
               call_end(&c, fr_rank_run(scorer, &settings, &c.context, &ranking, &c.error));
        handle_release(object);
    }
    fr_options_free(fr_rank_options, &settings);
    return ranking_or_close(good, ranking);
}

static PyObject *rank_counts(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    PyObject *about;
    const fr_counts *counts;
    long long count;
    fr_scorer_definition is;
    fr_ranking *ranking = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "O&O!O&L", as_window, &window, &PyDict_Type, &about, as_address,
                          &counts, &count) ||
        !about_take(about, &is))
        return NULL;
    bool good = call_begin(&c, Py_None) &&
                call_end(&c, fr_rank_counts(window, &is, counts, count, &ranking, &c.error));
    return ranking_or_close(good, ranking);
}

static PyObject *rank_counts_file(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    PyObject *about;
    const char *path;
    fr_scorer_definition is;
    fr_ranking *ranking = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "O&O!y", as_window, &window, &PyDict_Type, &about, &path) ||
        !about_take(about, &is))
        return NULL;
    bool good = call_begin(&c, Py_None) &&
                call_end(&c, fr_rank_counts_file(window, &is, path, &ranking, &c.error));
    return ranking_or_close(good, ranking);
}

/* ---- kinds ---- */

static PyObject *kind_dict(const fr_scorer_kind *kind) {
    static const field fields[] = {FIELD(fr_scorer_kind, name),
                                   FIELD(fr_scorer_kind, summary),
                                   FIELD(fr_scorer_kind, text),
                                   {0}};
    PyObject *out = fields_dict(fields, kind);
    if (out && !put(out, "options", options_list(kind->options))) Py_CLEAR(out);
    return out;
}

static PyObject *baseline_item(const void *from, Py_ssize_t k) {
    (void)from;
    return kind_dict(fr_baseline_at((int)k));
}

static PyObject *baselines(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    Py_ssize_t count = 0;
    while (fr_baseline_at((int)count)) count++;
    return list_of(count, baseline_item, NULL);
}

static PyObject *plugin(PyObject *self, PyObject *args) {
    (void)self;
    const char *file;
    const fr_scorer_kind *kind;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "y", &file)) return NULL;
    if (fr_plugin_load(file, &kind, &error)) return raise_error(&error);
    return kind_dict(kind);
}

/* ---- feeds ---- */

static PyObject *feed_open(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *owner, *about, *options;
    int force;
    fr_scorer_definition is;
    fr_rank_settings settings;
    fr_feed *feed = NULL;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "OO!O!p", &owner, &PyDict_Type, &about, &PyDict_Type, &options,
                          &force))
        return NULL;
    const fr_window *window = handle_at(owner, kind_window);
    if (!window || !about_take(about, &is) || !SETTINGS(fr_rank_options, settings, options))
        return NULL;
    settings.force = force;
    fr_status status = fr_feed_open(window, &is, &settings, &feed, &error);
    fr_options_free(fr_rank_options, &settings);
    return status ? raise_error(&error) : HANDLE(feed, feed, owner);
}

static PyObject *feed_facts(PyObject *self, PyObject *args) {
    (void)self;
    static const field fields[] = {FIELD(fr_feed_facts, row),
                                   FIELD(fr_feed_facts, events),
                                   FIELD(fr_feed_facts, submitted),
                                   {"pending", 'i', offsetof(fr_feed_facts, pending)},
                                   {0}};
    PyObject *object;
    if (!PyArg_ParseTuple(args, "O", &object)) return NULL;
    const fr_feed *feed = handle_at(object, kind_feed);
    if (!feed || !handle_claim(object, NULL)) return NULL;
    fr_feed_facts facts = fr_feed_get(feed);
    handle_release(object);
    return fields_dict(fields, &facts);
}

/* (first event, count, None) of the queries if they follow each other, else (0, count, their events
 * as bytes of int32). */
static PyObject *feed_next(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    int most, count = 0;
    const fr_query *queries = NULL;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "Oi", &object, &most)) return NULL;
    fr_feed *feed = handle_at(object, kind_feed);
    if (!feed || !handle_claim(object, NULL)) return NULL;
    fr_status status = fr_feed_next(feed, most, &queries, &count, &error);
    bool follow = !count || queries[count - 1].event - queries[0].event == count - 1;
    PyObject *events =
        follow ? NULL : PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int32_t));
    char *to = events ? PyBytes_AsString(events) : NULL;
    for (int k = 0; to && k < count; k++)
        memcpy(to + (size_t)k * sizeof(int32_t), &queries[k].event, sizeof(int32_t));
    int first = count ? queries->event : 0;
    handle_release(object);
    if (status) return raise_error(&error);
    if (follow) return Py_BuildValue("(iiO)", first, count, Py_None);
    return events ? Py_BuildValue("(iiN)", 0, count, events) : NULL;
}

/* (first event, count) of the truth: its events follow each other. */
static PyObject *feed_submit(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    const float *scores;
    int count, known = 0;
    const fr_event *truth = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "OO&i", &object, as_address, &scores, &count)) return NULL;
    fr_feed *feed = handle_at(object, kind_feed);
    if (!feed || !handle_claim(object, &c)) return NULL;
    bool good = call_begin(&c, Py_None) &&
                call_end(&c, fr_feed_submit(feed, scores, count, &truth, &known, &c.error));
    handle_release(object);
    return good ? Py_BuildValue("(ii)", known ? truth->event : 0, known) : NULL;
}

static PyObject *feed_finish(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object;
    fr_ranking *ranking = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "O", &object)) return NULL;
    fr_feed *feed = handle_at(object, kind_feed);
    if (!feed || !handle_claim(object, &c)) return NULL;
    bool good = call_begin(&c, Py_None) && call_end(&c, fr_feed_finish(feed, &ranking, &c.error));
    handle_release(object);
    return ranking_or_close(good, ranking);
}

/* {"query": (bytes of one, {field: byte}), "event": ...}: how arrays of these structs are read. */
static PyObject *layouts(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return Py_BuildValue(
        "{s:(n{s:n,s:n,s:n}),s:(n{s:n,s:n,s:n,s:n,s:n})}", "query", (Py_ssize_t)sizeof(fr_query),
        "event", (Py_ssize_t)offsetof(fr_query, event), "source",
        (Py_ssize_t)offsetof(fr_query, source), "time", (Py_ssize_t)offsetof(fr_query, time),
        "event", (Py_ssize_t)sizeof(fr_event), "event", (Py_ssize_t)offsetof(fr_event, event),
        "source", (Py_ssize_t)offsetof(fr_event, source), "destination",
        (Py_ssize_t)offsetof(fr_event, destination), "time", (Py_ssize_t)offsetof(fr_event, time),
        "features", (Py_ssize_t)offsetof(fr_event, features));
}

PyMethodDef rank_methods[] = {{"record_fields", record_fields, METH_NOARGS, NULL},
                              {"layouts", layouts, METH_NOARGS, NULL},
                              {"ranking_facts", ranking_facts, METH_VARARGS, NULL},
                              {"ranking_save", ranking_save, METH_VARARGS, NULL},
                              {"ranking_check", ranking_check, METH_VARARGS, NULL},
                              {"ranking_load", ranking_load, METH_VARARGS, NULL},
                              {"scorer_open", scorer_open, METH_VARARGS, NULL},
                              {"scorer_make", scorer_make, METH_VARARGS, NULL},
                              {"scorer_factors", scorer_factors, METH_VARARGS, NULL},
                              {"scorer_facts", scorer_facts, METH_VARARGS, NULL},
                              {"scorer_score", scorer_score, METH_VARARGS, NULL},
                              {"scorer_observe", scorer_observe, METH_VARARGS, NULL},
                              {"scorer_project", scorer_project, METH_VARARGS, NULL},
                              {"rank_run", rank_run, METH_VARARGS, NULL},
                              {"rank_counts", rank_counts, METH_VARARGS, NULL},
                              {"rank_counts_file", rank_counts_file, METH_VARARGS, NULL},
                              {"baselines", baselines, METH_NOARGS, NULL},
                              {"plugin", plugin, METH_VARARGS, NULL},
                              {"feed_open", feed_open, METH_VARARGS, NULL},
                              {"feed_facts", feed_facts, METH_VARARGS, NULL},
                              {"feed_next", feed_next, METH_VARARGS, NULL},
                              {"feed_submit", feed_submit, METH_VARARGS, NULL},
                              {"feed_finish", feed_finish, METH_VARARGS, NULL},
                              {0}};
