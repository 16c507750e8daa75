/* binding.h - shared by the files of the extension module.
 *
 * The module `fullrank._fullrank` is only the public header as Python functions: no arithmetic, no
 * defaults, no list of options. Names and defaults come from the option tables of the library,
 * errors from its messages. The package on top of it (python/fullrank) is the interface for users.
 *
 * It is built for CPython's limited API of 3.9, which has no buffers. So arrays are passed in both
 * directions as addresses, and the package, which has NumPy, makes arrays of them that keep their
 * owner alive. Functions here trust their arguments, as in C; users call only the package. */
#ifndef FULLRANK_BINDING_H
#define FULLRANK_BINDING_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include "fullrank.h"

struct call;

/* ---- handles ---- */

/* A handle of the library as a Python object; it is closed with the last reference to it. `owner`
 * is the handle that must outlive it. There is one type for all handles; `kind` distinguishes them.
 */
typedef struct handle {
    PyObject_HEAD void *at;
    void (*close)(void *at);
    const char *kind;
    PyObject *owner;
    long process;          /* its maker: a forked child must not remove its parent's files */
    bool busy;             /* a thread is changing it, see handle_claim */
    struct call **current; /* where its callbacks find the current call; NULL = it has none */
} handle;

extern const char kind_stream[], kind_window[], kind_ranking[], kind_feed[], kind_scorer[],
    kind_comparison[];
/* Takes over `at`, even on failure. */
PyObject *handle_make(void *at, const char *kind, void (*close)(void *), PyObject *owner);
#define HANDLE(at, name, owner) handle_make((at), kind_##name, close_##name, (owner))
void close_stream(void *at);
void close_window(void *at);
void close_ranking(void *at);
void close_feed(void *at);
void close_scorer(void *at);
void close_comparison(void *at);
/* NULL and an exception if it is of another kind. */
void *handle_at(PyObject *object, const char *kind);
/* The converters of PyArg_ParseTuple's O&: a pointer of the library's. */
int as_stream(PyObject *object, void *out);
int as_window(PyObject *object, void *out);
int as_ranking(PyObject *object, void *out);
int as_scorer(PyObject *object, void *out);
int as_comparison(PyObject *object, void *out);
int as_address(PyObject *object, void *out); /* an array's __array_struct__, or a number */
int as_text(PyObject *object, void *out);    /* bytes, or NULL for None */

/* Takes the content out of a handle, for a call with the callbacks of `c`; the caller closes it.
 * NULL and an exception if the handle is of another kind or in use. */
void *handle_take(PyObject *object, const char *kind, struct call *c);

/* A handle that a call changes serves one thread at a time; a second thread gets an exception. */
bool handle_claim(PyObject *object, struct call *c);
void handle_release(PyObject *object);

/* ---- calls ---- */

/* One call of the library. While it runs, other threads may run Python. An exception of a callback
 * is kept, and raised by call_end. */
typedef struct call {
    fr_context context; /* hand it to the library */
    fr_error error;
    PyObject *progress, *log; /* callables or NULL; the caller's */
    PyThreadState *thread;
    double looked, told; /* last time of checking signals, and of reporting progress */
    PyObject *type, *value, *trace;
} call;

/* `how` is (threads, progress, log) or None. */
bool call_begin(call *c, PyObject *how);
/* True on success. Otherwise an exception is set: that of a callback, or the library's error. */
bool call_end(call *c, fr_status status);
/* Keeps the exception of a callback, which holds the GIL; the first one counts. */
void call_keep(call *c);
/* The same, but an error of the library becomes *err again, because the caller may accept it. */
fr_status call_pass(call *c, fr_error *err);
/* For calls without callbacks that take almost no time. */
PyObject *raise_error(const fr_error *error);

/* ---- structs as Python objects ---- */

/* A field of a struct; the compiler determines its type. */
typedef struct field {
    const char *name;
    char type;
    size_t offset;
} field;
/* clang-format off */
#define FIELD_TYPE(s, f) _Generic(&((s *)0)->f, int64_t *: 'q', int32_t *: 'i', double *: 'd', \
    float *: 'f', bool *: '?', uint8_t *: 'B', const char **: 's', char **: 's', size_t *: 'z', \
    fr_interval *: 'I', char (*)[65]: 'a', char (*)[256]: 'a')
/* clang-format on */
#define FIELD(s, f)                                                                                \
    { #f, FIELD_TYPE(s, f), offsetof(s, f) }
/* A dict of a struct's fields. */
PyObject *fields_dict(const field *fields, const void *from);
PyObject *text(const char *from); /* None for NULL */
PyObject *address(const void *at);
/* A list of what `make` gives for 0 .. count - 1. */
typedef PyObject *make_item(const void *from, Py_ssize_t index);
PyObject *list_of(Py_ssize_t count, make_item *make, const void *from);
/* Puts a new reference into a dict; false and the exception if it is NULL. */
bool put(PyObject *dict, const char *key, PyObject *value);

/* Defaults of `table`, then the entries of a dict of bytes: {"train_share": b"0.7"}. */
bool settings_take(const fr_option *table, void *settings, size_t size, PyObject *options);
#define SETTINGS(table, settings, options)                                                         \
    settings_take((table), &(settings), sizeof(settings), (options))
/* A table of options as a list of dicts. */
PyObject *options_list(const fr_option *table);
/* A sequence of numbers; NULL and an exception if it is not one. PyMem_Free frees it. */
int64_t *numbers_take(PyObject *list, Py_ssize_t *count);
/* A sequence of bytes as texts, which live as long as the list. PyMem_Free frees the array. */
const char **texts_take(PyObject *list, Py_ssize_t *count);
/* A definition of a scorer from a dict: name, model, objective, sha256, seed, epochs_done,
 * epochs_asked, selected, catalog_only, workers, many, start. Texts live as long as the dict. */
bool about_take(PyObject *dict, fr_scorer_definition *out);

extern PyMethodDef data_methods[], rank_methods[], eval_methods[], study_methods[], audit_methods[];

#endif
