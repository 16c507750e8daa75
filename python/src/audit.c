/* audit.c - audits of what a Python function makes (fullrank.h, chapter 17). */
#include "binding.h"

/* The factory in use. */
typedef struct shop {
    PyObject *open;   /* a function of a window's handle that returns a scorer's */
    PyObject *window; /* the handle of the audited window */
    const fr_window *audited;
    call *c;
} shop;

/* Windows are held by their handles, so that arrays of them live as long as Python wants. */
static PyObject *window_handle(const shop *s, const fr_window *w) {
    if (w == s->audited) {
        Py_INCREF(s->window);
        return s->window;
    }
    fr_window *own = (fr_window *)(uintptr_t)w;
    fr_window_hold(own);
    return HANDLE(own, window, s->window);
}

static fr_status open_scorer(void *user, const fr_window *window, const fr_context *context,
                             fr_scorer **out, fr_error *err) {
    (void)context;
    const shop *s = user;
    PyGILState_STATE before = PyGILState_Ensure();
    PyObject *here = window_handle(s, window);
    PyObject *made = here ? PyObject_CallFunctionObjArgs(s->open, here, NULL) : NULL;
    *out = made ? handle_take(made, kind_scorer, s->c) : NULL;
    fr_status status = *out ? FR_OK : call_pass(s->c, err);
    Py_XDECREF(made);
    Py_XDECREF(here);
    PyGILState_Release(before);
    return status;
}

/* (window, name or spec, function or None, options, seed, how): the JSON of the audit. */
static PyObject *audit(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *options, *how, *out = NULL;
    shop s = {0};
    const char *spec, *json = NULL;
    long long seed;
    fr_audit_settings settings;
    fr_audit *found = NULL;
    call c;
    if (!PyArg_ParseTuple(args, "OyOO!LO", &s.window, &spec, &s.open, &PyDict_Type, &options, &seed,
                          &how))
        return NULL;
    s.audited = handle_at(s.window, kind_window);
    s.c = &c;
    if (!s.audited || !SETTINGS(fr_audit_options, settings, options)) return NULL;
    if (call_begin(&c, how)) {
        fr_status status = fr_audit_run(s.audited, spec, s.open == Py_None ? NULL : open_scorer, &s,
                                        &settings, seed, &c.context, &found, &c.error);
        if (!status) status = fr_audit_text(found, &json, &c.error);
        if (call_end(&c, status)) out = text(json);
    }
    fr_audit_close(found);
    fr_options_free(fr_audit_options, &settings);
    return out;
}

PyMethodDef audit_methods[] = {{"audit", audit, METH_VARARGS, NULL}, {0}};
