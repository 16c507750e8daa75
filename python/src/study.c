/* study.c - training, explaining, diagnostics, studies, tables (fullrank.h, chapters 12-16). */
#include "binding.h"

#include <string.h>

/* ---- models and training ---- */

static PyObject *model_item(const void *from, Py_ssize_t k) {
    (void)from;
#define F(name) FIELD(fr_model, name)
    static const field fields[] = {F(name), F(label), F(summary), F(text), F(options), {0}};
#undef F
    return fields_dict(fields, fr_model_at((int)k));
}

static PyObject *models(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    Py_ssize_t count = 0;
    while (fr_model_at((int)count)) count++;
    return list_of(count, model_item, NULL);
}

/* (window, name, options of training, options of the model, output, force, how) */
static PyObject *train(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    const char *name, *output;
    PyObject *training_options, *model_options, *how;
    int force;
    fr_training training;
    fr_model_settings model;
    bool good = false;
    call c;
    if (!PyArg_ParseTuple(args, "O&yO!O!ypO", as_window, &window, &name, &PyDict_Type,
                          &training_options, &PyDict_Type, &model_options, &output, &force, &how) ||
        !SETTINGS(fr_training_options, training, training_options))
        return NULL;
    training.force = force;
    if (SETTINGS(fr_model_options, model, model_options)) {
        good = call_begin(&c, how) && call_end(&c, fr_train_run(window, name, &model, &training,
                                                                output, &c.context, &c.error));
        fr_options_free(fr_model_options, &model);
    }
    fr_options_free(fr_training_options, &training);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- explaining ---- */

static PyObject *step_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_explain_step, name)
    static const field fields[] = {F(setting), F(from), F(to), F(effect), F(value), F(events), {0}};
#undef F
    return fields_dict(fields, &((const fr_explanation *)from)->step[k]);
}

static PyObject *explain(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_explanation, name)
    static const field fields[] = {F(from), F(to), F(from_events), F(to_events), {0}};
#undef F
    const fr_stream *stream;
    const char *spec;
    PyObject *options, *how;
    long long seed;
    fr_explain_settings settings;
    fr_explanation found = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&yO!LO", as_stream, &stream, &spec, &PyDict_Type, &options, &seed,
                          &how) ||
        !SETTINGS(fr_explain_options, settings, options))
        return NULL;
    bool good = call_begin(&c, how) && call_end(&c, fr_explain_run(stream, spec, &settings, seed,
                                                                   &c.context, &found, &c.error));
    fr_options_free(fr_explain_options, &settings);
    PyObject *out = good ? fields_dict(fields, &found) : NULL;
    if (out && !put(out, "steps", list_of(found.count, step_item, &found))) Py_CLEAR(out);
    return out;
}

static PyObject *preset_item(const void *from, Py_ssize_t k) {
    const fr_explain_preset *p = (const fr_explain_preset *)from + k;
    return Py_BuildValue("{s:s,s:s,s:s}", "name", p->name, "settings", p->settings, "help",
                         p->help);
}

static PyObject *explain_presets(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return list_of(FR_EXPLAIN_PRESETS, preset_item, fr_explain_presets);
}

/* ---- diagnostics ---- */

static PyObject *fit_dict(const fr_minimal_fit *fit) {
#define F(name) FIELD(fr_minimal_fit, name)
    static const field fields[] = {F(q1),        F(beta_star), F(negatives), F(seen),
                                   F(intercept), F(beta),      F(error),     {0}};
#undef F
    return fields_dict(fields, fit);
}

static PyObject *minimal(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_minimal, name)
    static const field fields[] = {F(test), F(eligible), F(repeated), F(p1), {0}};
#undef F
    const fr_window *window;
    PyObject *options, *how;
    long long seed;
    fr_minimal_settings settings;
    fr_minimal found = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&O!LO", as_window, &window, &PyDict_Type, &options, &seed,
                          &how) ||
        !SETTINGS(fr_minimal_options, settings, options))
        return NULL;
    bool good =
        call_begin(&c, how) &&
        call_end(&c, fr_minimal_compute(window, &settings, seed, &c.context, &found, &c.error));
    fr_options_free(fr_minimal_options, &settings);
    PyObject *out = good ? fields_dict(fields, &found) : NULL;
    if (out && (!put(out, "random", fit_dict(&found.random)) ||
                !put(out, "history", fit_dict(&found.history))))
        Py_CLEAR(out);
    return out;
}

static PyObject *cell_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_cell, name)
    static const field fields[] = {F(name), F(events), F(mrr), F(sd), F(drawn), {0}};
#undef F
    return fields_dict(fields, &((const fr_membership *)from)->cell[k]);
}

static PyObject *membership(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_membership, name)
    static const field fields[] = {F(k), F(ranked), F(unavailable), F(eligible), {0}};
#undef F
    const fr_ranking *ranking;
    PyObject *how;
    long long k, seed;
    fr_membership found = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&LLO", as_ranking, &ranking, &k, &seed, &how) ||
        !call_begin(&c, how) ||
        !call_end(&c, fr_membership_compute(ranking, k, seed, &c.context, &found, &c.error)))
        return NULL;
    PyObject *out = fields_dict(fields, &found);
    if (out && !put(out, "cells", list_of(FR_CELLS, cell_item, &found))) Py_CLEAR(out);
    return out;
}

static PyObject *removals(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *out = PyList_New(0);
    for (int k = 0; out && k < FR_REMOVALS; k++) {
        PyObject *one = text(fr_removal_names[k]);
        if (!one || PyList_Append(out, one)) Py_CLEAR(out);
        Py_XDECREF(one);
    }
    return out;
}

static PyObject *direction_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_direction, name)
    static const field fields[] = {F(length), F(cosine), F(auc), F(membership_auc), {0}};
#undef F
    PyObject *out = fields_dict(fields, &((const fr_projection *)from)->direction[k]);
    if (out && !put(out, "name", text(fr_removal_names[k]))) Py_CLEAR(out);
    return out;
}

static PyObject *project_files(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_projection, name)
    static const field fields[] = {F(pairs), F(met), F(width), F(rows), {0}};
#undef F
    const char *representations, *labels, *head, *output;
    PyObject *how;
    long long seed;
    int force;
    fr_projection found = {0};
    call c;
    if (!PyArg_ParseTuple(args, "yyyypLO", &representations, &labels, &head, &output, &force, &seed,
                          &how) ||
        !call_begin(&c, how) ||
        !call_end(&c, fr_project_files(representations, labels, head, output, force, seed,
                                       &c.context, &found, &c.error)))
        return NULL;
    PyObject *out = fields_dict(fields, &found);
    if (out && !put(out, "directions", list_of(FR_REMOVALS, direction_item, &found))) Py_CLEAR(out);
    return out;
}

static PyObject *point_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_scaling_point, name)
    static const field fields[] = {F(size),    F(path), F(scored),     F(events),
                                   F(seconds), F(mrr),  F(peak_bytes), {0}};
#undef F
    return fields_dict(fields, (const fr_scaling_point *)from + k);
}

static PyObject *scaling(PyObject *self, PyObject *args) {
    (void)self;
    const fr_window *window;
    const char *spec;
    PyObject *options, *how;
    long long seed;
    int count = 0;
    fr_scaling_settings settings;
    fr_scaling_point points[FR_SCALING_MAX];
    call c;
    if (!PyArg_ParseTuple(args, "O&yO!LO", as_window, &window, &spec, &PyDict_Type, &options, &seed,
                          &how) ||
        !SETTINGS(fr_scaling_options, settings, options))
        return NULL;
    bool good =
        call_begin(&c, how) && call_end(&c, fr_scaling_run(window, spec, &settings, seed,
                                                           &c.context, points, &count, &c.error));
    fr_options_free(fr_scaling_options, &settings);
    return good ? list_of(count, point_item, points) : NULL;
}

/* ---- studies ---- */

/* (document, data or None, directory, redo, how): units forgotten by redo. */
static PyObject *study_run(PyObject *self, PyObject *args) {
    (void)self;
    const char *document, *data, *directory;
    PyObject *how;
    int redo;
    int64_t forgotten = 0;
    fr_study *study = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "yO&ypO", &document, as_text, &data, &directory, &redo, &how) ||
        !call_begin(&c, how))
        return NULL;
    fr_status status = fr_study_open(document, data, directory, &study, &c.error);
    if (!status && redo) status = fr_study_redo(study, &forgotten, &c.error);
    if (!status) status = fr_study_run(study, &c.context, &c.error);
    fr_study_close(study);
    return call_end(&c, status) ? PyLong_FromLongLong(forgotten) : NULL;
}

static PyObject *unit_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_study_unit, name)
    static const field fields[] = {F(key), F(kind), F(status), F(message), F(seconds), {0}};
#undef F
    return fields_dict(fields, &((const fr_study_state *)from)->unit[k]);
}

static PyObject *version_item(const void *from, Py_ssize_t k) {
    const fr_study_version *v = &((const fr_study_state *)from)->version[k];
    return Py_BuildValue("{s:N,s:L}", "tool", text(v->tool), "units", (long long)v->units);
}

static PyObject *study_status(PyObject *self, PyObject *args) {
    (void)self;
#define F(name) FIELD(fr_study_state, name)
    static const field fields[] = {F(name), F(count),   F(done),         F(running), F(failed),
                                   F(left), F(skipped), F(seconds_left), F(unknown), {0}};
#undef F
    const char *directory;
    fr_study_state state = {0};
    call c;
    if (!PyArg_ParseTuple(args, "y", &directory) || !call_begin(&c, Py_None) ||
        !call_end(&c, fr_study_status(directory, &state, &c.error)))
        return NULL;
    PyObject *out = fields_dict(fields, &state);
    if (out && (!put(out, "units", list_of((Py_ssize_t)state.count, unit_item, &state)) ||
                !put(out, "versions", list_of((Py_ssize_t)state.versions, version_item, &state))))
        Py_CLEAR(out);
    fr_study_status_free(&state);
    return out;
}

static PyObject *study_report(PyObject *self, PyObject *args) {
    (void)self;
    const char *directory;
    PyObject *how;
    call c;
    if (!PyArg_ParseTuple(args, "yO", &directory, &how) || !call_begin(&c, how) ||
        !call_end(&c, fr_study_report(directory, &c.context, &c.error)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *study_preset(PyObject *self, PyObject *args) {
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "y", &name)) return NULL;
    return text(fr_study_preset_find(name));
}

/* ---- tables ---- */

/* A cell is None, a text (bytes), or (kind, decimals, value, sd, low, high). */
static bool put_cell(fr_table *table, PyObject *from) {
    fr_table_cell cell = {.kind = FR_CELL_EMPTY};
    if (PyBytes_Check(from)) {
        cell.kind = FR_CELL_TEXT;
        cell.text = PyBytes_AsString(from);
    } else if (from != Py_None && !PyArg_ParseTuple(from, "iidddd", &cell.kind, &cell.decimals,
                                                    &cell.value, &cell.sd, &cell.low, &cell.high)) {
        return false;
    }
    fr_table_put(table, cell);
    return true;
}

static bool put_rows(fr_table *table, PyObject *rows) {
    Py_ssize_t count = PyList_Size(rows);
    for (Py_ssize_t r = 0; r < count; r++) {
        PyObject *row = PyList_GetItem(rows, r);
        Py_ssize_t cells = PyList_Size(row);
        if (cells < 0) return false;
        fr_table_row(table);
        for (Py_ssize_t k = 0; k < cells; k++)
            if (!put_cell(table, PyList_GetItem(row, k))) return false;
    }
    return count >= 0;
}

static bool put_columns(fr_table *table, PyObject *columns) {
    Py_ssize_t count = PyList_Size(columns);
    for (Py_ssize_t k = 0; k < count; k++) {
        const char *group, *head;
        int left;
        if (!PyArg_ParseTuple(PyList_GetItem(columns, k), "O&yp", as_text, &group, &head, &left))
            return false;
        fr_table_column(table, group, head, left);
    }
    return count >= 0;
}

/* ((title, caption, protocol), [(group, head, left)], [[cell]], [(column, higher)], [note],
 * format) */
static PyObject *table(PyObject *self, PyObject *args) {
    (void)self;
    const char *title, *caption, *protocol, *found = NULL;
    PyObject *columns, *rows, *marks, *notes, *out = NULL;
    int format;
    fr_table *made;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "(O&O&O&)O!O!O!O!i", as_text, &title, as_text, &caption, as_text,
                          &protocol, &PyList_Type, &columns, &PyList_Type, &rows, &PyList_Type,
                          &marks, &PyList_Type, &notes, &format))
        return NULL;
    if (fr_table_make(title, caption, protocol, &made, &error)) return raise_error(&error);
    bool good = put_columns(made, columns) && put_rows(made, rows);
    for (Py_ssize_t k = 0; good && k < PyList_Size(marks); k++) {
        int column, higher;
        good = PyArg_ParseTuple(PyList_GetItem(marks, k), "ip", &column, &higher);
        if (good) fr_table_mark(made, column, higher);
    }
    for (Py_ssize_t k = 0; good && k < PyList_Size(notes); k++) {
        const char *note = PyBytes_AsString(PyList_GetItem(notes, k));
        good = note != NULL;
        if (good) fr_table_note(made, note);
    }
    if (good) out = fr_table_text(made, format, &found, &error) ? raise_error(&error) : text(found);
    fr_table_close(made);
    return out;
}

PyMethodDef study_methods[] = {{"models", models, METH_NOARGS, NULL},
                               {"train", train, METH_VARARGS, NULL},
                               {"explain", explain, METH_VARARGS, NULL},
                               {"explain_presets", explain_presets, METH_NOARGS, NULL},
                               {"minimal", minimal, METH_VARARGS, NULL},
                               {"membership", membership, METH_VARARGS, NULL},
                               {"removals", removals, METH_NOARGS, NULL},
                               {"project_files", project_files, METH_VARARGS, NULL},
                               {"scaling", scaling, METH_VARARGS, NULL},
                               {"study_run", study_run, METH_VARARGS, NULL},
                               {"study_status", study_status, METH_VARARGS, NULL},
                               {"study_report", study_report, METH_VARARGS, NULL},
                               {"study_preset", study_preset, METH_VARARGS, NULL},
                               {"table", table, METH_VARARGS, NULL},
                               {0}};
