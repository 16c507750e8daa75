/* data.c - import, streams, windows, facts, synthetic streams (fullrank.h, chapters 3-7). */
#include "binding.h"

static PyObject *import_file(PyObject *self, PyObject *args) {
    (void)self;
    const char *input, *output;
    PyObject *options, *how;
    int force;
    fr_import settings;
    call c;
    if (!PyArg_ParseTuple(args, "yyO!pO", &input, &output, &PyDict_Type, &options, &force, &how))
        return NULL;
    if (!SETTINGS(fr_import_options, settings, options)) return NULL;
    settings.force = force;
    bool good = call_begin(&c, how) &&
                call_end(&c, fr_import_file(input, output, &settings, &c.context, &c.error));
    fr_options_free(fr_import_options, &settings);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *download(PyObject *self, PyObject *args) {
    (void)self;
    const char *name, *output, *from;
    PyObject *options, *how;
    int force;
    fr_import settings;
    call c;
    if (!PyArg_ParseTuple(args, "yO&yO!pO", &name, as_text, &from, &output, &PyDict_Type, &options,
                          &force, &how))
        return NULL;
    if (!SETTINGS(fr_import_options, settings, options)) return NULL;
    settings.force = force;
    bool good =
        call_begin(&c, how) &&
        call_end(&c, fr_stream_download(name, from, output, &settings, &c.context, &c.error));
    fr_options_free(fr_import_options, &settings);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *synth(PyObject *self, PyObject *args) {
    (void)self;
    const char *output;
    PyObject *options, *how;
    int force;
    fr_synth settings;
    call c;
    if (!PyArg_ParseTuple(args, "yO!pO", &output, &PyDict_Type, &options, &force, &how))
        return NULL;
    if (!SETTINGS(fr_synth_options, settings, options)) return NULL;
    settings.force = force;
    bool good =
        call_begin(&c, how) && call_end(&c, fr_synth_make(&settings, output, &c.context, &c.error));
    fr_options_free(fr_synth_options, &settings);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *preset_item(const void *from, Py_ssize_t k) {
    (void)from;
    const char *help, *name = fr_synth_preset_at((int)k, &help);
    return Py_BuildValue("(ss)", name, help);
}

static PyObject *synth_presets(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    Py_ssize_t count = 0;
    const char *help;
    while (fr_synth_preset_at((int)count, &help)) count++;
    return list_of(count, preset_item, NULL);
}

/* ---- streams ---- */

/* Roles of columns by name: ([names], columns or None) -> [FR_COLUMN_*] */
static PyObject *role_item(const void *from, Py_ssize_t k) {
    return PyLong_FromLong(((const int *)from)[k]);
}

static PyObject *roles(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list, *out = NULL;
    const char *columns;
    Py_ssize_t count;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "O!O&", &PyList_Type, &list, as_text, &columns)) return NULL;
    const char **name = texts_take(list, &count);
    if (!name) return NULL;
    int *role = PyMem_Calloc((size_t)count + 1, sizeof *role);
    if (!role)
        (void)PyErr_NoMemory();
    else if (fr_import_roles(name, (int)count, columns, role, &error))
        (void)raise_error(&error);
    else
        out = list_of(count, role_item, role);
    PyMem_Free(role);
    PyMem_Free((void *)name);
    return out;
}

/* (name, events, source, destination, time, width, features, split, [source words] or None,
 * [destination words] or None, options, output or None, force, how): a stream, or None if the
 * columns go to a directory. */
static PyObject *stream_make(PyObject *self, PyObject *args) {
    (void)self;
    fr_arrays a = {.size = sizeof a};
    PyObject *source_words, *destination_words, *options, *how, *out = NULL;
    const char *output;
    long long events, width;
    Py_ssize_t sources = 0, destinations = 0;
    int force;
    fr_import settings;
    fr_stream *stream = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "yLO&O&O&LO&O&OOO!O&pO", &a.name, &events, as_address, &a.source,
                          as_address, &a.destination, as_address, &a.time, &width, as_address,
                          &a.features, as_address, &a.split, &source_words, &destination_words,
                          &PyDict_Type, &options, as_text, &output, &force, &how))
        return NULL;
    a.events = events, a.width = width;
    const char **from = source_words == Py_None ? NULL : texts_take(source_words, &sources);
    const char **to =
        destination_words == Py_None ? NULL : texts_take(destination_words, &destinations);
    if (!PyErr_Occurred() && SETTINGS(fr_import_options, settings, options)) {
        settings.force = force;
        a.source_words = from, a.source_word_count = sources;
        a.destination_words = to, a.destination_word_count = destinations;
        bool good =
            call_begin(&c, how) &&
            call_end(&c, output ? fr_import_arrays(&a, output, &settings, &c.context, &c.error)
                                : fr_stream_make(&a, &settings, &c.context, &stream, &c.error));
        if (good) out = stream ? HANDLE(stream, stream, NULL) : Py_BuildValue("");
        if (!good) fr_stream_close(stream);
        fr_options_free(fr_import_options, &settings);
    }
    PyMem_Free((void *)from);
    PyMem_Free((void *)to);
    return out;
}

static PyObject *stream_open(PyObject *self, PyObject *args) {
    (void)self;
    const char *path;
    PyObject *options, *how;
    fr_import settings;
    fr_stream *stream = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "yO!O", &path, &PyDict_Type, &options, &how)) return NULL;
    if (!SETTINGS(fr_import_options, settings, options)) return NULL;
    bool good = call_begin(&c, how) &&
                call_end(&c, fr_stream_open(path, &settings, &c.context, &stream, &c.error));
    fr_options_free(fr_import_options, &settings);
    if (good) return HANDLE(stream, stream, NULL);
    fr_stream_close(stream);
    return NULL;
}

static PyObject *stream_facts(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_stream_facts, name)
    static const field fields[] = {F(name),          F(events),
                                   F(sources),       F(destinations),
                                   F(feature_width), F(first_time),
                                   F(last_time),     F(shared_ids),
                                   F(words),         F(sha256),
                                   F(checked),       F(split_train),
                                   F(split_val),     {0}};
#undef F
    const fr_stream *stream;
    if (!PyArg_ParseTuple(args, "O&", as_stream, &stream)) return NULL;
    fr_stream_facts facts = fr_stream_get(stream);
    return fields_dict(fields, &facts);
}

static PyObject *stream_verify(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object, *how;
    call c;
    if (!PyArg_ParseTuple(args, "OO", &object, &how)) return NULL;
    fr_stream *stream = handle_at(object, kind_stream);
    if (!stream || !handle_claim(object, &c)) return NULL;
    bool good = call_begin(&c, how) && call_end(&c, fr_stream_verify(stream, &c.context, &c.error));
    handle_release(object);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *stream_overlap(PyObject *self, PyObject *args) {
    (void)self;
    static const field fields[] = {
        FIELD(fr_overlap, ids), FIELD(fr_overlap, self_loops), FIELD(fr_overlap, per_role), {0}};
    const fr_stream *stream;
    PyObject *how;
    fr_overlap facts = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&O", as_stream, &stream, &how) || !call_begin(&c, how) ||
        !call_end(&c, fr_stream_overlap(stream, &c.context, &facts, &c.error)))
        return NULL;
    return fields_dict(fields, &facts);
}

static PyObject *stream_export(PyObject *self, PyObject *args) {
    (void)self;
    const fr_stream *stream;
    const char *output;
    PyObject *how;
    int force;
    call c;
    if (!PyArg_ParseTuple(args, "O&ypO", as_stream, &stream, &output, &force, &how) ||
        !call_begin(&c, how) ||
        !call_end(&c, fr_stream_export(stream, output, force, &c.context, &c.error)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *file_item(const void *from, Py_ssize_t k) {
    const fr_data_file *f = (const fr_data_file *)from + k;
    static const field fields[] = {FIELD(fr_data_file, name),   FIELD(fr_data_file, bytes),
                                   FIELD(fr_data_file, sha256), FIELD(fr_data_file, expected),
                                   FIELD(fr_data_file, same),   {0}};
    return fields_dict(fields, f);
}

static PyObject *data_verify(PyObject *self, PyObject *args) {
    (void)self;
    const char *path;
    PyObject *how;
    fr_data_file files[FR_DATA_FILES];
    int count = 0;
    call c;
    if (!PyArg_ParseTuple(args, "yO", &path, &how) || !call_begin(&c, how) ||
        !call_end(&c, fr_data_verify(path, &c.context, files, &count, &c.error)))
        return NULL;
    return list_of(count, file_item, files);
}

/* ---- windows ---- */

static PyObject *window_open(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *owner, *options, *how;
    int diagnostic;
    fr_protocol settings;
    fr_window *window = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "OO!pO", &owner, &PyDict_Type, &options, &diagnostic, &how))
        return NULL;
    const fr_stream *stream = handle_at(owner, kind_stream);
    const fr_option *table = diagnostic ? fr_diagnostic_options : fr_protocol_options;
    if (!stream || !SETTINGS(table, settings, options)) return NULL;
    bool good = call_begin(&c, how) &&
                call_end(&c, fr_window_open(stream, &settings, &c.context, &window, &c.error));
    fr_options_free(table, &settings);
    if (good) return HANDLE(window, window, owner);
    fr_window_close(window);
    return NULL;
}

static PyObject *window_facts(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_window_facts, name)
    static const field fields[] = {F(events),       F(train),
                                   F(val),          F(test),
                                   F(from),         F(to),
                                   F(first),        F(sources),
                                   F(destinations), F(candidates),
                                   F(catalog_size), F(catalog_sha256),
                                   F(index_bytes),  {0}};
#undef F
    const fr_window *window;
    if (!PyArg_ParseTuple(args, "O&", as_window, &window)) return NULL;
    fr_window_facts facts = fr_window_get(window);
    return fields_dict(fields, &facts);
}

/* Addresses of the arrays; how long they are is in window_facts. */
static PyObject *window_columns(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    if (!PyArg_ParseTuple(args, "O&", as_window, &window)) return NULL;
    fr_columns columns = fr_window_columns(window);
    const struct {
        const char *name;
        const void *at;
    } arrays[] = {{"source", columns.source},       {"destination", columns.destination},
                  {"time", columns.time},           {"features", columns.features},
                  {"source_id", columns.source_id}, {"destination_id", columns.destination_id},
                  {"catalog", columns.catalog}};
    PyObject *out = Py_BuildValue("{s:d,s:L}", "start", columns.start, "feature_width",
                                  (long long)columns.feature_width);
    for (size_t k = 0; out && k < sizeof arrays / sizeof *arrays; k++)
        if (!put(out, arrays[k].name, address(arrays[k].at))) Py_CLEAR(out);
    return out;
}

static PyObject *window_cut(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    int event;
    if (!PyArg_ParseTuple(args, "O&i", as_window, &window, &event)) return NULL;
    return PyLong_FromLong(fr_window_cut(window, event));
}

/* (address, count) of a history: kind 's'ource, 'd'estination, 'p'air, 'm'et. */
static PyObject *window_history(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    int kind, source, destination, before, most;
    fr_history history;
    if (!PyArg_ParseTuple(args, "O&Ciiii", as_window, &window, &kind, &source, &destination,
                          &before, &most))
        return NULL;
    switch (kind) {
    case 's': history = fr_window_source_history(window, source, before, most); break;
    case 'd': history = fr_window_destination_history(window, destination, before, most); break;
    case 'p': history = fr_window_pair_history(window, source, destination, before); break;
    default: history = fr_window_met(window, source, before); break;
    }
    return Py_BuildValue("(Ni)", address(history.event), (int)history.count);
}

static PyObject *window_list(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    const char *path;
    PyObject *options;
    int force;
    fr_list list;
    fr_rank_settings settings;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "O&yO!p", as_window, &window, &path, &PyDict_Type, &options,
                          &force) ||
        !SETTINGS(fr_rank_options, settings, options))
        return NULL;
    fr_status status = fr_window_list(window, &settings, path, force, &list, &error);
    fr_options_free(fr_rank_options, &settings);
    if (status) return raise_error(&error);
    return Py_BuildValue("(LL)", (long long)list.events, (long long)list.destinations);
}

static PyObject *facts(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_facts, name)
    static const field fields[] = {F(covered),
                                   F(repeated),
                                   {"new", 'q', offsetof(fr_facts, new_)},
                                   F(tied_times),
                                   F(available_ranked),
                                   F(available_size),
                                   F(diagnostic_events),
                                   F(diagnostic_catalog),
                                   F(eligible),
                                   F(eligible_repeated),
                                   F(p1),
                                   F(q1),
                                   F(beta_star),
                                   F(membership_repeated),
                                   F(membership_new),
                                   F(membership_unavailable),
                                   F(test_repeat_share),
                                   F(destinations_per_source),
                                   F(popularity_gini),
                                   F(history_mean),
                                   {0}};
#undef F
    const fr_window *window, *diagnostic;
    PyObject *how;
    fr_facts out = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&O&O", as_window, &window, as_window, &diagnostic, &how) ||
        !call_begin(&c, how) ||
        !call_end(&c, fr_facts_compute(window, diagnostic, &c.context, &out, &c.error)))
        return NULL;
    return fields_dict(fields, &out);
}

PyMethodDef data_methods[] = {{"import_file", import_file, METH_VARARGS, NULL},
                              {"download", download, METH_VARARGS, NULL},
                              {"synth", synth, METH_VARARGS, NULL},
                              {"synth_presets", synth_presets, METH_NOARGS, NULL},
                              {"roles", roles, METH_VARARGS, NULL},
                              {"stream_make", stream_make, METH_VARARGS, NULL},
                              {"stream_open", stream_open, METH_VARARGS, NULL},
                              {"stream_facts", stream_facts, METH_VARARGS, NULL},
                              {"stream_verify", stream_verify, METH_VARARGS, NULL},
                              {"stream_overlap", stream_overlap, METH_VARARGS, NULL},
                              {"stream_export", stream_export, METH_VARARGS, NULL},
                              {"data_verify", data_verify, METH_VARARGS, NULL},
                              {"window_open", window_open, METH_VARARGS, NULL},
                              {"window_facts", window_facts, METH_VARARGS, NULL},
                              {"window_columns", window_columns, METH_VARARGS, NULL},
                              {"window_cut", window_cut, METH_VARARGS, NULL},
                              {"window_history", window_history, METH_VARARGS, NULL},
                              {"window_list", window_list, METH_VARARGS, NULL},
                              {"facts", facts, METH_VARARGS, NULL},
                              {0}};
