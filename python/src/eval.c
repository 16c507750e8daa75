/* eval.c - metrics, expectations, slices, comparisons (fullrank.h, chapters 11, 13). */
#include "binding.h"

/* ---- definitions ---- */

static PyObject *definition_dict(const fr_definition *d) {
    static const char *const kinds[] = {"sampler", "mean", "count", "share", "slice"};
    return Py_BuildValue("{s:s,s:s,s:s,s:s}", "name", d->name, "kind", kinds[d->kind], "title",
                         d->title, "explanation", d->explanation);
}

typedef const fr_definition *definition_at(int index);

static PyObject *definition_list(definition_at *at) {
    PyObject *out = PyList_New(0);
    for (int k = 0; out && at(k); k++) {
        PyObject *one = definition_dict(at(k));
        if (!one || PyList_Append(out, one)) Py_CLEAR(out);
        Py_XDECREF(one);
    }
    return out;
}

static PyObject *definitions(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *out = PyDict_New();
    if (out && (!put(out, "metrics", definition_list(fr_metric_at)) ||
                !put(out, "samplers", definition_list(fr_sampler_at)) ||
                !put(out, "slices", definition_list(fr_slice_field_at))))
        Py_CLEAR(out);
    return out;
}

/* ---- metrics of records, which are (address, count) ---- */

static PyObject *metric_item(const void *from, Py_ssize_t k) {
    const fr_metric_value *v = (const fr_metric_value *)from + k;
    return Py_BuildValue("(dL)", v->value, (long long)v->events);
}

/* (records, count, oov, [names]) -> [(value, events)] */
static PyObject *metrics(PyObject *self, PyObject *args) {
    (void)self;
    const fr_record *records;
    long long count;
    int oov;
    PyObject *list, *out = NULL;
    Py_ssize_t names;
    call c;
    if (!PyArg_ParseTuple(args, "O&LiO!", as_address, &records, &count, &oov, &PyList_Type, &list))
        return NULL;
    const char **name = texts_take(list, &names);
    if (!name) return NULL;
    fr_metric_value *values = PyMem_Calloc((size_t)names + 1, sizeof *values);
    if (!values)
        (void)PyErr_NoMemory();
    else if (call_begin(&c, Py_None) &&
             call_end(&c,
                      fr_metrics_compute(records, count, oov, name, (int)names, values, &c.error)))
        out = list_of(names, metric_item, values);
    PyMem_Free(values);
    PyMem_Free((void *)name);
    return out;
}

/* How negatives are drawn, from (sampler, small, oov, [k], [hits]). */
typedef struct drawing {
    fr_sampling is;
    int64_t *k, *hits;
} drawing;

static void drawing_free(drawing *d) {
    PyMem_Free(d->k);
    PyMem_Free(d->hits);
}

static bool drawing_take(PyObject *from, drawing *d) {
    PyObject *k, *hits;
    Py_ssize_t k_count, hits_count;
    *d = (drawing){0};
    if (!PyArg_ParseTuple(from, "yiiO!O!", &d->is.sampler, &d->is.small, &d->is.oov, &PyList_Type,
                          &k, &PyList_Type, &hits))
        return false;
    d->k = numbers_take(k, &k_count);
    d->hits = d->k ? numbers_take(hits, &hits_count) : NULL;
    if (!d->hits) {
        drawing_free(d);
        return false;
    }
    d->is.k = d->k;
    d->is.k_count = (int)k_count;
    d->is.hits = d->hits;
    d->is.hits_count = (int)hits_count;
    return true;
}

static PyObject *hits_item(const void *from, Py_ssize_t k) {
    return PyFloat_FromDouble(((const double *)from)[k]);
}

/* [{k, events, ineligible, mrr, sd, hits}] */
static PyObject *expected(PyObject *self, PyObject *args) {
    (void)self;
    static const field fields[] = {FIELD(fr_expected, k),          FIELD(fr_expected, events),
                                   FIELD(fr_expected, ineligible), FIELD(fr_expected, mrr),
                                   FIELD(fr_expected, sd),         {0}};
    const fr_record *records;
    long long count;
    PyObject *sampling, *how, *out = NULL;
    drawing d;
    call c;
    if (!PyArg_ParseTuple(args, "O&LO!O", as_address, &records, &count, &PyTuple_Type, &sampling,
                          &how) ||
        !drawing_take(sampling, &d))
        return NULL;
    fr_expected *values = PyMem_Calloc((size_t)d.is.k_count + 1, sizeof *values);
    if (!values)
        (void)PyErr_NoMemory();
    else if (call_begin(&c, how) &&
             call_end(&c, fr_expected_compute(records, count, &d.is, &c.context, values, &c.error)))
        out = PyList_New(0);
    for (int k = 0; out && k < d.is.k_count; k++) {
        PyObject *one = fields_dict(fields, &values[k]);
        if (!one || !put(one, "hits", list_of(d.is.hits_count, hits_item, values[k].hits)) ||
            PyList_Append(out, one))
            Py_CLEAR(out);
        Py_XDECREF(one);
    }
    PyMem_Free(values);
    drawing_free(&d);
    return out;
}

static PyObject *draws_item(const void *from, Py_ssize_t k) {
    static const field fields[] = {FIELD(fr_draws, k),
                                   FIELD(fr_draws, events),
                                   FIELD(fr_draws, mrr),
                                   FIELD(fr_draws, sd),
                                   {0}};
    return fields_dict(fields, (const fr_draws *)from + k);
}

/* `each` is the address of double[seeds][k], or 0. */
static PyObject *draws(PyObject *self, PyObject *args) {
    (void)self;
    const fr_record *records;
    double *each;
    long long count, seed, seeds;
    PyObject *sampling, *how, *out = NULL;
    drawing d;
    call c;
    if (!PyArg_ParseTuple(args, "O&LO!LLO&O", as_address, &records, &count, &PyTuple_Type,
                          &sampling, &seed, &seeds, as_address, &each, &how) ||
        !drawing_take(sampling, &d))
        return NULL;
    fr_draws *values = PyMem_Calloc((size_t)d.is.k_count + 1, sizeof *values);
    if (!values)
        (void)PyErr_NoMemory();
    else if (call_begin(&c, how) &&
             call_end(&c, fr_draws_compute(records, count, &d.is, seed, seeds, &c.context, values,
                                           each, &c.error)))
        out = list_of(d.is.k_count, draws_item, values);
    PyMem_Free(values);
    drawing_free(&d);
    return out;
}

/* ---- intervals ---- */

static PyObject *interval_item(const void *from, Py_ssize_t k) {
    const fr_interval *i = (const fr_interval *)from + k;
    return Py_BuildValue("(dd)", i->low, i->high);
}

/* (records, count, oov, [names] or a sampling, options, (of, over), seed, how) -> [(low, high)] */
static PyObject *intervals(PyObject *self, PyObject *args) {
    (void)self;
    const fr_record *records;
    long long count, seed, of;
    int oov, over;
    PyObject *what, *options, *how, *out = NULL;
    fr_interval_settings settings;
    drawing d = {0};
    const char **name = NULL;
    Py_ssize_t number = 0;
    call c;
    if (!PyArg_ParseTuple(args, "O&LiOO!(Li)LO", as_address, &records, &count, &oov, &what,
                          &PyDict_Type, &options, &of, &over, &seed, &how))
        return NULL;
    bool sampled = PyTuple_Check(what);
    if (sampled ? !drawing_take(what, &d) : !(name = texts_take(what, &number))) return NULL;
    if (sampled) number = d.is.k_count;
    fr_interval *values = PyMem_Calloc((size_t)number + 1, sizeof *values);
    if (!values) {
        (void)PyErr_NoMemory();
    } else if (SETTINGS(fr_interval_options, settings, options)) {
        settings.of = of;
        settings.over = over;
        if (call_begin(&c, how) &&
            call_end(&c, sampled
                             ? fr_intervals_expected(records, count, &d.is, &settings, seed,
                                                     &c.context, values, &c.error)
                             : fr_intervals_compute(records, count, oov, name, (int)number,
                                                    &settings, seed, &c.context, values, &c.error)))
            out = list_of(number, interval_item, values);
        fr_options_free(fr_interval_options, &settings);
    }
    PyMem_Free(values);
    PyMem_Free((void *)name);
    drawing_free(&d);
    return out;
}

/* ---- slices ---- */

static PyObject *slice_item(const void *from, Py_ssize_t k) {
    static const field fields[] = {FIELD(fr_slice, label),  FIELD(fr_slice, from),
                                   FIELD(fr_slice, to),     FIELD(fr_slice, events),
                                   FIELD(fr_slice, ranked), {0}};
    const fr_slice *s = &((const fr_slices *)from)->slice[k];
    PyObject *out = fields_dict(fields, s);
    /* Copied: the memory of slices is freed by the call. */
    if (out &&
        !put(out, "records",
             PyBytes_FromStringAndSize((const char *)s->records,
                                       (Py_ssize_t)sizeof *s->records * (Py_ssize_t)s->events)))
        Py_CLEAR(out);
    return out;
}

static PyObject *slices(PyObject *self, PyObject *args) {
    (void)self;
    const fr_record *records;
    long long count;
    const char *by;
    fr_slices found = {0};
    call c;
    if (!PyArg_ParseTuple(args, "O&Ly", as_address, &records, &count, &by) ||
        !call_begin(&c, Py_None) ||
        !call_end(&c, fr_slices_compute(records, count, by, &found, &c.error)))
        return NULL;
    PyObject *out = Py_BuildValue("(sN)", found.field, list_of(found.count, slice_item, &found));
    fr_slices_free(&found);
    return out;
}

/* ---- comparing ---- */

/* Runs from [(ranking, file, model or None, seed or None)]. */
typedef struct run_list {
    fr_compare_run *runs;
    int64_t *seeds;
    Py_ssize_t count;
} run_list;

static bool runs_take(PyObject *list, run_list *out) {
    *out = (run_list){.count = PyList_Size(list)};
    if (out->count < 0) return false;
    out->runs = PyMem_Calloc((size_t)out->count + 1, sizeof *out->runs);
    out->seeds = PyMem_Calloc((size_t)out->count + 1, sizeof *out->seeds);
    bool good = out->runs && out->seeds;
    if (!good) (void)PyErr_NoMemory();
    for (Py_ssize_t k = 0; good && k < out->count; k++) {
        fr_compare_run *run = &out->runs[k];
        PyObject *seed;
        good = PyArg_ParseTuple(PyList_GetItem(list, k), "O&yO&O", as_ranking, &run->ranking,
                                &run->file, as_text, &run->model, &seed);
        if (!good || seed == Py_None) continue;
        out->seeds[k] = PyLong_AsLongLong(seed);
        run->seed = &out->seeds[k];
        good = !PyErr_Occurred();
    }
    if (good) return true;
    PyMem_Free(out->runs);
    PyMem_Free(out->seeds);
    return false;
}

static void runs_free(run_list *list) {
    PyMem_Free(list->runs);
    PyMem_Free(list->seeds);
}

static PyObject *compare(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list, *ks, *options, *how, *out = NULL;
    long long seed;
    run_list runs;
    fr_compare_settings settings;
    fr_comparison *comparison = NULL;
    Py_ssize_t k_count;
    call c;
    if (!PyArg_ParseTuple(args, "O!O!O!LO", &PyList_Type, &list, &PyList_Type, &ks, &PyDict_Type,
                          &options, &seed, &how) ||
        !runs_take(list, &runs))
        return NULL;
    int64_t *k = numbers_take(ks, &k_count);
    if (k && SETTINGS(fr_compare_options, settings, options)) {
        if (call_begin(&c, how) &&
            call_end(&c, fr_compare(runs.runs, (int)runs.count, k, (int)k_count, &settings, seed,
                                    &c.context, &comparison, &c.error)))
            out = HANDLE(comparison, comparison, NULL);
        else
            fr_comparison_close(comparison);
        fr_options_free(fr_compare_options, &settings);
    }
    PyMem_Free(k);
    runs_free(&runs);
    return out;
}

static PyObject *column_item(const void *from, Py_ssize_t k) {
    static const field fields[] = {FIELD(fr_compared_column, k),
                                   FIELD(fr_compared_column, events),
                                   FIELD(fr_compared_column, tau),
                                   {0}};
    return fields_dict(fields, &((const fr_comparison_facts *)from)->column[k]);
}

static PyObject *seed_item(const void *from, Py_ssize_t k) {
    return PyLong_FromLongLong(((const int64_t *)from)[k]);
}

/* Intervals of a sample, None if all events were ranked. */
static PyObject *sample_list(int columns, const fr_interval *sample) {
    return sample ? list_of(columns, interval_item, sample) : Py_BuildValue("");
}

static PyObject *model_item(const void *from, Py_ssize_t k) {
    const fr_comparison_facts *f = from;
    const fr_compared_model *m = &f->model[k];
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N}", "name", text(m->name), "seeds",
                         list_of(m->runs, seed_item, m->seeds), "mean",
                         list_of(f->columns, hits_item, m->mean), "sd",
                         list_of(f->columns, hits_item, m->sd), "bootstrap",
                         list_of(f->columns, interval_item, m->bootstrap), "sample",
                         sample_list(f->columns, m->sample));
}

static PyObject *difference_item(const void *from, Py_ssize_t k) {
#define F(name) FIELD(fr_difference, name)
    static const field fields[] = {F(value),    F(seed_t),  F(bootstrap), F(permutation),
                                   F(adjusted), F(flipped), F(reversed),  {0}};
#undef F
    return fields_dict(fields, (const fr_difference *)from + k);
}

static PyObject *pair_item(const void *from, Py_ssize_t k) {
    static const char *const pairings[] = {"seeds", "one_run", "none"};
    const fr_comparison_facts *f = from;
    const fr_compared_pair *p = &f->pair[k];
    return Py_BuildValue("{s:N,s:N,s:s,s:i,s:N,s:N}", "first", text(f->model[p->first].name),
                         "second", text(f->model[p->second].name), "pairing", pairings[p->pairing],
                         "seeds", p->seeds, "difference",
                         list_of(f->columns, difference_item, p->difference), "sample",
                         sample_list(f->columns, p->sample));
}

static PyObject *comparison_facts(PyObject *self, PyObject *args) {
    (void)self;
    static const field fields[] = {
        FIELD(fr_comparison_facts, protocol_text), FIELD(fr_comparison_facts, metric),
        FIELD(fr_comparison_facts, events),        FIELD(fr_comparison_facts, blocks),
        FIELD(fr_comparison_facts, sample),        FIELD(fr_comparison_facts, sample_of),
        FIELD(fr_comparison_facts, block),         {0}};
    const fr_comparison *comparison;
    if (!PyArg_ParseTuple(args, "O&", as_comparison, &comparison)) return NULL;
    fr_comparison_facts f = fr_comparison_get(comparison);
    PyObject *out = fields_dict(fields, &f);
    if (out && (!put(out, "columns", list_of(f.columns, column_item, &f)) ||
                !put(out, "models", list_of(f.models, model_item, &f)) ||
                !put(out, "pairs", list_of(f.pairs, pair_item, &f))))
        Py_CLEAR(out);
    return out;
}

static PyObject *report(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list, *ks, *options, *how;
    const char *output;
    run_list runs;
    fr_report_settings settings;
    Py_ssize_t k_count;
    bool good = false;
    call c;
    if (!PyArg_ParseTuple(args, "O!O!O!yO", &PyList_Type, &list, &PyList_Type, &ks, &PyDict_Type,
                          &options, &output, &how) ||
        !runs_take(list, &runs))
        return NULL;
    int64_t *k = numbers_take(ks, &k_count);
    if (k && SETTINGS(fr_report_options, settings, options)) {
        good = call_begin(&c, how) &&
               call_end(&c, fr_report_write(runs.runs, (int)runs.count, k, (int)k_count, &settings,
                                            output, &c.context, &c.error));
        fr_options_free(fr_report_options, &settings);
    }
    PyMem_Free(k);
    runs_free(&runs);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef eval_methods[] = {{"definitions", definitions, METH_NOARGS, NULL},
                              {"metrics", metrics, METH_VARARGS, NULL},
                              {"expected", expected, METH_VARARGS, NULL},
                              {"draws", draws, METH_VARARGS, NULL},
                              {"intervals", intervals, METH_VARARGS, NULL},
                              {"slices", slices, METH_VARARGS, NULL},
                              {"compare", compare, METH_VARARGS, NULL},
                              {"comparison_facts", comparison_facts, METH_VARARGS, NULL},
                              {"report", report, METH_VARARGS, NULL},
                              {0}};
