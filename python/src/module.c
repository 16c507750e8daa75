/* module.c - the extension module: handles, calls that let other threads run, errors, structs. */
#include "binding.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Only one interpreter may load this module (fill_module), so these are global: they are made once,
 * even if the module is imported several times. */
static PyTypeObject *handle_type;
static PyObject *error_class[FR_EFORCE + 1]; /* by status; [0] is fullrank.Error */

/* ---- handles ---- */

const char kind_stream[] = "stream", kind_window[] = "window", kind_ranking[] = "ranking",
           kind_feed[] = "feed", kind_scorer[] = "scorer", kind_comparison[] = "comparison";

void close_stream(void *at) { fr_stream_close(at); }
void close_window(void *at) { fr_window_close(at); }
void close_ranking(void *at) { fr_ranking_close(at); }
void close_feed(void *at) { fr_feed_close(at); }
void close_scorer(void *at) { fr_scorer_close(at); }
void close_comparison(void *at) { fr_comparison_close(at); }

PyObject *handle_make(void *at, const char *kind, void (*close)(void *), PyObject *owner) {
    handle *h = PyObject_New(handle, handle_type);
    if (!h) {
        close(at);
        return NULL;
    }
    h->at = at;
    h->close = close;
    h->kind = kind;
    h->process = getpid();
    h->busy = false;
    h->current = NULL;
    Py_XINCREF(owner);
    h->owner = owner;
    return (PyObject *)h;
}

static void handle_dealloc(PyObject *self) {
    handle *h = (handle *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (h->process == getpid() && h->at) h->close(h->at);
    Py_XDECREF(h->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)type, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "handles are made by the functions of fullrank");
    return NULL;
}

static PyObject *handle_repr(PyObject *self) {
    const handle *h = (const handle *)self;
    return PyUnicode_FromFormat("<fullrank %s at %p>", h->kind, h->at);
}

void *handle_at(PyObject *object, const char *kind) {
    if (Py_TYPE(object) != handle_type || ((handle *)object)->kind != kind) {
        PyErr_Format(PyExc_TypeError, "found %R, expected a %s of fullrank", object, kind);
        return NULL;
    }
    return ((handle *)object)->at;
}

static int convert(PyObject *object, const char *kind, void *out) {
    void *at = handle_at(object, kind);
    *(void **)out = at;
    return at != NULL;
}
int as_stream(PyObject *object, void *out) { return convert(object, kind_stream, out); }
int as_window(PyObject *object, void *out) { return convert(object, kind_window, out); }
int as_ranking(PyObject *object, void *out) { return convert(object, kind_ranking, out); }
int as_scorer(PyObject *object, void *out) { return convert(object, kind_scorer, out); }
int as_comparison(PyObject *object, void *out) { return convert(object, kind_comparison, out); }

/* What __array_struct__ of a NumPy array points to (NumPy's array interface, version 3). */
typedef struct array_facts {
    int two, dimensions;
    char kind;
    int item, flags;
    Py_ssize_t *shape, *strides;
    void *data;
} array_facts;

int as_address(PyObject *object, void *out) {
    const array_facts *array =
        PyCapsule_CheckExact(object) ? PyCapsule_GetPointer(object, NULL) : NULL;
    void *at = array && array->two == 2 ? array->data : PyLong_AsVoidPtr(object);
    *(void **)out = at;
    return at || !PyErr_Occurred();
}

int as_text(PyObject *object, void *out) {
    const char *at = object == Py_None ? NULL : PyBytes_AsString(object);
    *(const char **)out = at;
    return at || object == Py_None;
}

void *handle_take(PyObject *object, const char *kind, call *c) {
    void *at = handle_at(object, kind);
    if (!at || !handle_claim(object, c)) return NULL;
    ((handle *)object)->at = NULL; /* it stays claimed, so nobody can use it again */
    return at;
}

bool handle_claim(PyObject *object, call *c) {
    handle *h = (handle *)object;
    if (h->busy) {
        PyErr_Format(error_class[FR_EUSAGE], "the %s is in use by another thread", h->kind);
        return false;
    }
    h->busy = true;
    if (h->current) *h->current = c;
    return true;
}

void handle_release(PyObject *object) { ((handle *)object)->busy = false; }

/* ---- errors ---- */

PyObject *raise_error(const fr_error *error) {
    PyObject *message = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message),
                                             "backslashreplace");
    if (!message) return NULL;
    int code = error->code > 0 && error->code <= FR_EFORCE ? (int)error->code : 0;
    PyErr_SetObject(error_class[code], message);
    Py_DECREF(message);
    return NULL;
}

/* The exception classes. Each also derives from Python's own class for such errors, so `except
 * ValueError` works. */
static bool make_errors(PyObject *module) {
    const struct {
        const char *name, *text;
        PyObject *also;
    } kinds[FR_EFORCE + 1] = {
        {"Error", "What fullrank says when it cannot do something; the base of its errors.",
         PyExc_Exception},
        {"UsageError", "A setting that does not exist, or is out of range.", PyExc_ValueError},
        {"InputError", "The input is not what it should be.", PyExc_ValueError},
        {"FileError", "The file system refused: missing, not permitted, full.", PyExc_OSError},
        {"OutOfMemory", "There is not enough memory.", PyExc_MemoryError},
        {"Cancelled", "The work was told to stop.", PyExc_RuntimeError},
        {"ForceError",
         "Not done without `force`: an output exists, runs follow different protocols.",
         PyExc_RuntimeError},
    };
    for (int k = 0; k <= FR_EFORCE; k++) {
        char name[64];
        (void)PyOS_snprintf(name, sizeof name, "fullrank.%s", kinds[k].name);
        PyObject *bases =
            k ? PyTuple_Pack(2, error_class[0], kinds[k].also) : PyTuple_Pack(1, kinds[k].also);
        if (!bases) return false;
        if (!error_class[k])
            error_class[k] = PyErr_NewExceptionWithDoc(name, kinds[k].text, bases, NULL);
        Py_DECREF(bases);
        if (!error_class[k] || PyObject_SetAttrString(module, kinds[k].name, error_class[k]))
            return false;
    }
    return true;
}

/* ---- calls ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds between checks for signals, and between calls of a progress function. */
static const double interval = 0.05;

void call_keep(call *c) {
    if (c->type)
        PyErr_Clear();
    else
        PyErr_Fetch(&c->type, &c->value, &c->trace);
}

fr_status call_pass(call *c, fr_error *err) {
    int code = 0;
    for (int k = FR_EUSAGE; k <= FR_EFORCE; k++)
        if (k != FR_ECANCEL && error_class[k] && PyErr_ExceptionMatches(error_class[k])) code = k;
    if (!code) {
        call_keep(c);
        return fr_fail(err, FR_ECANCEL, "a function of Python raised an exception");
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *words = value ? PyObject_Str(value) : NULL;
    PyObject *bytes = words ? PyUnicode_AsUTF8String(words) : NULL;
    const char *message = bytes ? PyBytes_AsString(bytes) : NULL;
    (void)fr_fail(err, (fr_status)code, "%s", message ? message : "an error without a message");
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return (fr_status)code;
}

/* Callbacks come from the thread that made the call. */
static bool on_cancel(void *user) {
    call *c = user;
    if (c->type) return true;
    double time = now();
    if (time - c->looked < interval) return false;
    c->looked = time;
    PyEval_RestoreThread(c->thread);
    if (PyErr_CheckSignals()) call_keep(c);
    c->thread = PyEval_SaveThread();
    return c->type != NULL;
}

static void on_log(void *user, fr_level level, const char *line) {
    call *c = user;
    if (c->type) return;
    PyEval_RestoreThread(c->thread);
    PyObject *word = text(line);
    PyObject *done =
        word ? PyObject_CallFunction(c->log, "Os", word, level == FR_WARNING ? "warning" : "notice")
             : NULL;
    Py_XDECREF(word);
    Py_XDECREF(done);
    if (!done) call_keep(c);
    c->thread = PyEval_SaveThread();
}

static void on_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                        const char *unit) {
    call *c = user;
    double time = now();
    if (c->type || (time - c->told < interval && done < total)) return;
    c->told = time;
    PyEval_RestoreThread(c->thread);
    PyObject *told = PyObject_CallFunction(c->progress, "sKKs", stage, (unsigned long long)done,
                                           (unsigned long long)total, unit);
    Py_XDECREF(told);
    if (!told) call_keep(c);
    c->thread = PyEval_SaveThread();
}

bool call_begin(call *c, PyObject *how) {
    *c = (call){.context = {.cancel = on_cancel}};
    c->context.user = c;
    if (how != Py_None) {
        if (!PyArg_ParseTuple(how, "iOO", &c->context.threads, &c->progress, &c->log)) return false;
        if (c->progress != Py_None) c->context.progress = on_progress;
        if (c->log != Py_None) c->context.log = on_log;
    }
    c->looked = now();
    c->thread = PyEval_SaveThread();
    return true;
}

bool call_end(call *c, fr_status status) {
    PyEval_RestoreThread(c->thread);
    if (c->type) {
        PyErr_Restore(c->type, c->value, c->trace);
        return false;
    }
    if (status) (void)raise_error(&c->error);
    return status == FR_OK;
}

/* ---- structs ---- */

PyObject *text(const char *from) {
    if (!from) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(from, (Py_ssize_t)strlen(from), "surrogateescape");
}

PyObject *address(const void *at) {
    union {
        const void *in;
        void *out;
    } pointer = {at};
    return PyLong_FromVoidPtr(pointer.out);
}

static PyObject *field_value(const field *f, const void *from) {
    const void *at = (const char *)from + f->offset;
    switch (f->type) {
    case 'q': return PyLong_FromLongLong(*(const int64_t *)at);
    case 'i': return PyLong_FromLong(*(const int32_t *)at);
    case 'B': return PyLong_FromLong(*(const uint8_t *)at);
    case 'z': return PyLong_FromSize_t(*(const size_t *)at);
    case 'd': return PyFloat_FromDouble(*(const double *)at);
    case 'f': return PyFloat_FromDouble((double)*(const float *)at);
    case '?': return PyBool_FromLong(*(const bool *)at);
    case 's': return text(*(char *const *)at);
    case 'a': return text(at);
    case 'I':
        return Py_BuildValue("(dd)", ((const fr_interval *)at)->low,
                             ((const fr_interval *)at)->high);
    default: return PyErr_Format(PyExc_SystemError, "field %s has no type", f->name);
    }
}

bool put(PyObject *dict, const char *key, PyObject *value) {
    int failed = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return !failed;
}

PyObject *fields_dict(const field *fields, const void *from) {
    PyObject *out = PyDict_New();
    for (const field *f = fields; out && f->name; f++)
        if (!put(out, f->name, field_value(f, from))) Py_CLEAR(out);
    return out;
}

PyObject *list_of(Py_ssize_t count, make_item *make, const void *from) {
    PyObject *out = PyList_New(count);
    for (Py_ssize_t k = 0; out && k < count; k++) {
        PyObject *item = make(from, k);
        if (!item)
            Py_CLEAR(out);
        else
            (void)PyList_SetItem(out, k, item);
    }
    return out;
}

/* ---- arguments ---- */

bool settings_take(const fr_option *table, void *settings, size_t size, PyObject *options) {
    fr_error error = {0};
    PyObject *key, *value;
    Py_ssize_t at = 0;
    fr_status status = fr_options_fill(table, settings, size, &error);
    while (!status && PyDict_Next(options, &at, &key, &value)) {
        PyObject *name = PyUnicode_AsUTF8String(key);
        const char *given = name ? PyBytes_AsString(value) : NULL;
        if (given) status = fr_options_set(table, settings, PyBytes_AsString(name), given, &error);
        Py_XDECREF(name);
        if (!given) {
            fr_options_free(table, settings);
            return false;
        }
    }
    if (!status) return true;
    fr_options_free(table, settings);
    (void)raise_error(&error);
    return false;
}

int64_t *numbers_take(PyObject *list, Py_ssize_t *count) {
    *count = PyList_Size(list);
    if (*count < 0) return NULL;
    int64_t *out = PyMem_Malloc((size_t)(*count ? *count : 1) * sizeof *out);
    if (!out) return (void *)PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < *count; k++) {
        out[k] = PyLong_AsLongLong(PyList_GetItem(list, k));
        if (out[k] == -1 && PyErr_Occurred()) {
            PyMem_Free(out);
            return NULL;
        }
    }
    return out;
}

const char **texts_take(PyObject *list, Py_ssize_t *count) {
    *count = PyList_Size(list);
    if (*count < 0) return NULL;
    const char **out = PyMem_Malloc((size_t)(*count ? *count : 1) * sizeof *out);
    if (!out) return (void *)PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < *count; k++) {
        out[k] = PyBytes_AsString(PyList_GetItem(list, k));
        if (!out[k]) {
            PyMem_Free((void *)out);
            return NULL;
        }
    }
    return out;
}

/* Reads an entry of a dict; a missing entry changes nothing. */
static void take_text(PyObject *dict, const char *key, const char **out) {
    PyObject *value = PyDict_GetItemString(dict, key);
    if (value) *out = PyBytes_AsString(value);
}

static void take_number(PyObject *dict, const char *key, int64_t *out) {
    PyObject *value = PyDict_GetItemString(dict, key);
    if (value) *out = PyLong_AsLongLong(value);
}

bool about_take(PyObject *dict, fr_scorer_definition *out) {
    int64_t workers = 0, many = 0, start = 0, catalog_only = 0;
    *out = (fr_scorer_definition){.size = sizeof *out};
    take_text(dict, "name", &out->name);
    take_text(dict, "model", &out->model);
    take_text(dict, "objective", &out->objective);
    take_text(dict, "sha256", &out->sha256);
    take_number(dict, "seed", &out->seed);
    take_number(dict, "epochs_done", &out->epochs_done);
    take_number(dict, "epochs_asked", &out->epochs_asked);
    take_number(dict, "selected", &out->selected);
    take_number(dict, "workers", &workers);
    take_number(dict, "many", &many);
    take_number(dict, "start", &start);
    take_number(dict, "catalog_only", &catalog_only);
    out->workers = (int)workers;
    out->many = (int)many;
    out->start = (int32_t)start;
    out->catalog_only = catalog_only != 0;
    return !PyErr_Occurred();
}

static PyObject *option_item(const void *from, Py_ssize_t k) {
    static const char *const types[] = {"int", "float", "str", "choice", "bool"};
    const fr_option *o = (const fr_option *)from + k;
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:d,s:d,s:s}", "key", o->key, "type", types[o->type],
                         "default", o->standard ? o->standard : "", "values",
                         o->values ? o->values : "", "low", o->low, "high", o->high, "help",
                         o->help ? o->help : "");
}

PyObject *options_list(const fr_option *table) {
    Py_ssize_t count = 0;
    while (table && table[count].key) count++;
    return list_of(count, option_item, table);
}

/* ---- the module ---- */

static const struct {
    const char *name;
    const fr_option *table;
} tables[] = {{"import", fr_import_options},         {"window", fr_protocol_options},
              {"diagnostic", fr_diagnostic_options}, {"rank", fr_rank_options},
              {"synth", fr_synth_options},           {"interval", fr_interval_options},
              {"model", fr_model_options},           {"training", fr_training_options},
              {"compare", fr_compare_options},       {"explain", fr_explain_options},
              {"minimal", fr_minimal_options},       {"report", fr_report_options},
              {"scaling", fr_scaling_options},       {"audit", fr_audit_options}};

static PyObject *options(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *out = PyDict_New();
    for (size_t k = 0; out && k < sizeof tables / sizeof *tables; k++)
        if (!put(out, tables[k].name, options_list(tables[k].table))) Py_CLEAR(out);
    if (out && !put(out, "synth_parameters", options_list(fr_synth_parameters()))) Py_CLEAR(out);
    return out;
}

static PyObject *version(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    static const field fields[] = {FIELD(fr_version, version),
                                   FIELD(fr_version, commit),
                                   FIELD(fr_version, compiler),
                                   FIELD(fr_version, features),
                                   {0}};
    fr_version v = fr_version_get();
    return fields_dict(fields, &v);
}

static PyMethodDef own_methods[] = {
    {"options", options, METH_NOARGS, "The option tables, by name."},
    {"version", version, METH_NOARGS, "Facts of the library in use."},
    {0}};

/* Plug-ins call functions of the library, which Python has loaded only for this module. This makes
 * them visible. */
static void show_library(void) {
    Dl_info found;
    union {
        fr_version (*function)(void);
        void *address;
    } here = {fr_version_get};
    if (dladdr(here.address, &found) && found.dli_fname)
        (void)dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static int fill_module(PyObject *module) {
    static PyType_Slot slots[] = {{Py_tp_dealloc, handle_dealloc},
                                  {Py_tp_new, handle_new},
                                  {Py_tp_repr, handle_repr},
                                  {0, NULL}};
    static PyType_Spec spec = {"fullrank._fullrank.Handle", sizeof(handle), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    PyMethodDef *methods[] = {own_methods,   data_methods,  rank_methods, eval_methods,
                              study_methods, audit_methods, NULL};
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "fullrank works in the main interpreter only, not in a sub-interpreter");
        return -1;
    }
    if (!handle_type) handle_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!handle_type || PyObject_SetAttrString(module, "Handle", (PyObject *)handle_type))
        return -1;
    for (PyMethodDef **m = methods; *m; m++)
        if (PyModule_AddFunctions(module, *m)) return -1;
    show_library();
    return make_errors(module) ? 0 : -1;
}

PyMODINIT_FUNC PyInit__fullrank(void);

PyMODINIT_FUNC PyInit__fullrank(void) {
    static union {
        int (*function)(PyObject *);
        void *address;
    } fill = {fill_module};
    static PyModuleDef_Slot slots[2];
    static struct PyModuleDef definition = {
        .m_base = PyModuleDef_HEAD_INIT,
        .m_name = "fullrank._fullrank",
        .m_doc = "libfullrank as functions; use the package fullrank.",
        .m_slots = slots,
    };
    slots[0] = (PyModuleDef_Slot){Py_mod_exec, fill.address};
    return PyModuleDef_Init(&definition);
}
