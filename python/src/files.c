/* Files of tensors and of images, the state of the random numbers, recomputation, counters and profiles. */
#include <stdatomic.h>
#include <string.h>

#include "files.h"

/* ---- dicts ---- */

static int put(PyObject *dict, const char *name, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

PyObject *dict_to_python(context *c, const cn_dict *d)
{
    PyObject *tensors = PyDict_New(), *texts = PyDict_New(), *both = NULL;
    int result = tensors && texts ? 0 : -1;
    for (int64_t i = 0; i < cn_dict_count(d) && !result; i++)
        result = put(tensors, cn_dict_name(d, i), tensor_wrap(c, cn_dict_at(d, i)));
    for (int64_t i = 0; i < cn_dict_texts(d) && !result; i++) {
        const char *name = cn_dict_text_name(d, i);
        result = put(texts, name, PyUnicode_FromString(cn_dict_text(d, name)));
    }
    if (!result) both = PyTuple_Pack(2, tensors, texts);
    Py_XDECREF(tensors);
    Py_XDECREF(texts);
    return both;
}

static int set_tensor(context *c, cn_dict *d, PyObject *name, PyObject *value)
{
    PyObject *owned = NULL;
    const char *text = PyUnicode_AsUTF8(name);
    cn_tensor *t = text ? tensor_operand(c, value, NULL, &owned) : NULL;
    const bool ok = t && cn_dict_set(d, text, t);
    if (t && !ok) context_error(c);
    Py_XDECREF(owned);
    return ok ? 0 : -1;
}

static int set_text(context *c, cn_dict *d, PyObject *name, PyObject *value)
{
    const char *key = PyUnicode_AsUTF8(name), *text = key ? PyUnicode_AsUTF8(value) : NULL;
    if (!text) return -1;
    if (cn_dict_set_text(d, key, text)) return 0;
    context_error(c);
    return -1;
}

cn_dict *dict_from_python(context *c, PyObject *tensors, PyObject *texts)
{
    PyObject *name, *value;
    cn_dict *d = cn_dict_new(c->cn);
    int result = d ? 0 : (context_error(c), -1);
    cn_scope scope = cn_scope_begin(c->cn);
    for (Py_ssize_t at = 0; !result && PyDict_Next(tensors, &at, &name, &value);)
        result = set_tensor(c, d, name, value);
    for (Py_ssize_t at = 0; !result && PyDict_Next(texts, &at, &name, &value);) result = set_text(c, d, name, value);
    cn_scope_end(c->cn, scope);
    if (!result) return d;
    cn_dict_free(d);
    return NULL;
}

/* ---- files of tensors ---- */

PyDoc_STRVAR(load_file_doc, "load_file(path, data, device)\n--\n\n"
                            "(tensors, texts) of a file, or of its bytes `data` if that is not None.");
static PyObject *load_file(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path, *device;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "sz*s", &path, &data, &device)) return NULL;
    context *c = context_for(device);
    PyObject *result = NULL;
    if (c && !use(c)) {
        const cn_load_desc desc = { .data = data.buf, .bytes = (size_t)data.len, .structure = true };
        cn_dict *d;
        COMPUTE(c, d = cn_load_with(c->cn, path, &desc));
        result = d ? dict_to_python(c, d) : context_error(c);
        cn_dict_free(d);
    }
    PyBuffer_Release(&data);
    return result;
}

PyDoc_STRVAR(save_file_doc,
             "save_file(path, tensors, texts)\n--\n\nWrites two dicts; the end of the path is the format.");
static PyObject *save_file(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    PyObject *tensors, *texts;
    if (!PyArg_ParseTuple(args, "sO!O!", &path, &PyDict_Type, &tensors, &PyDict_Type, &texts)) return NULL;
    context *c = context_for("cpu");
    if (!c || use(c)) return NULL;
    cn_dict *d = dict_from_python(c, tensors, texts);
    if (!d) return NULL;
    bool ok;
    COMPUTE(c, ok = cn_save(d, path));
    cn_dict_free(d);
    if (!ok) return context_error(c);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(here_doc, "here(tensor)\n--\n\nThe tensor in this thread's context of its device: itself, or a copy.");
static PyObject *here(PyObject *self, PyObject *o)
{
    (void)self;
    if (!is_tensor(o)) {
        PyErr_Format(PyExc_TypeError, "here: a tensor is required, got %s", Py_TYPE(o)->tp_name);
        return NULL;
    }
    context *c = context_for(context_of(o)->device);
    if (!c) return NULL;
    if (c == context_of(o)) return Py_NewRef(o);
    if (use(c)) return NULL;
    PyObject *owned = NULL;
    cn_scope scope = cn_scope_begin(c->cn);
    cn_tensor *t = tensor_operand(c, o, NULL, &owned);
    PyObject *result = !t ? NULL : owned && is_tensor(owned) ? Py_NewRef(owned) : tensor_wrap(c, t);
    cn_scope_end(c->cn, scope);
    Py_XDECREF(owned);
    return result;
}

/* ---- images ---- */

PyDoc_STRVAR(read_image_doc, "read_image(path, channels)\n--\n\nAn image file as uint8 (channels, height, width).");
static PyObject *read_image(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    int channels;
    if (!PyArg_ParseTuple(args, "si", &path, &channels)) return NULL;
    context *c = context_for("cpu");
    if (!c || use(c)) return NULL;
    cn_scope scope = cn_scope_begin(c->cn);
    cn_tensor *t;
    COMPUTE(c, t = cn_image_read(c->cn, path, channels));
    PyObject *result = tensor_wrap(c, t);
    cn_scope_end(c->cn, scope);
    return result;
}

PyDoc_STRVAR(write_image_doc, "write_image(image, path, quality)\n--\n\nWrites .png, .ppm, .pgm or .jpg.");
static PyObject *write_image(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *image;
    const char *path;
    cn_image_write_desc desc = { 0 };
    if (!PyArg_ParseTuple(args, "O!si", tensor_type, &image, &path, &desc.quality)) return NULL;
    context *c = context_of(image);
    if (use(c)) return NULL;
    bool ok;
    COMPUTE(c, ok = cn_image_write(handle_of(image), path, &desc));
    if (!ok) return context_error(c);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(resize_image_doc, "resize_image(image, height, width, filter)\n--\n\nuint8 (..., height, width), as Pillow.");
static PyObject *resize_image(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *image;
    long long height, width;
    int filter;
    if (!PyArg_ParseTuple(args, "O!LLi", tensor_type, &image, &height, &width, &filter)) return NULL;
    context *c = context_of(image);
    if (use(c)) return NULL;
    cn_scope scope = cn_scope_begin(c->cn);
    cn_tensor *t;
    COMPUTE(c, t = cn_image_resize(handle_of(image), height, width, (cn_image_filter)filter));
    PyObject *result = tensor_wrap(c, t);
    cn_scope_end(c->cn, scope);
    return result;
}

/* ---- random numbers ---- */

PyDoc_STRVAR(seed_here_doc, "seed_here(seed)\n--\n\nSeeds the random numbers of this thread alone.");
static PyObject *seed_here(PyObject *self, PyObject *seed)
{
    (void)self;
    const unsigned long long value = PyLong_AsUnsignedLongLongMask(seed);
    if (PyErr_Occurred()) return NULL;
    context *c = context_default();
    if (!c) return NULL;
    cn_seed(c->cn, value);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(random_state_doc, "random_state()\n--\n\nThe state of this thread's random numbers: a dict of texts.");
static PyObject *random_state(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    context *c = context_default();
    if (!c) return NULL;
    cn_dict *d = cn_dict_new(c->cn);
    PyObject *both = NULL, *texts = NULL;
    if (d && cn_random_save(c->cn, d, "")) both = dict_to_python(c, d);
    else context_error(c);
    cn_dict_free(d);
    if (both) texts = Py_NewRef(PyTuple_GET_ITEM(both, 1));
    Py_XDECREF(both);
    return texts;
}

PyDoc_STRVAR(set_random_state_doc, "set_random_state(state)\n--\n\nContinues from a state of random_state.");
static PyObject *set_random_state(PyObject *self, PyObject *texts)
{
    (void)self;
    if (!PyDict_Check(texts)) {
        PyErr_SetString(PyExc_TypeError, "set_random_state: a dict of texts is required");
        return NULL;
    }
    context *c = context_default();
    PyObject *none = c ? PyDict_New() : NULL;
    cn_dict *d = none ? dict_from_python(c, none, texts) : NULL;
    Py_XDECREF(none);
    if (!d) return NULL;
    const bool ok = cn_random_load(c->cn, d, "");
    cn_dict_free(d);
    if (!ok) return context_error(c);
    Py_RETURN_NONE;
}

/* ---- recomputation ---- */

/* A function that backward calls again. A hook on its result, which changes nothing, tells when the graph has ended. */
typedef struct again {
    PyObject *function; /* of tensors alone */
    PyObject *other;    /* what it returned, if that is not a tensor */
    context *context;
    struct again *next; /* of those that have ended */
} again;

static _Atomic(again *) ended; /* a graph may end without the GIL: the next call releases the objects */

static void graph_ended(void *user)
{
    again *a = user, *first = atomic_load(&ended);
    do a->next = first;
    while (!atomic_compare_exchange_weak(&ended, &first, a));
}

static void again_free(again *a)
{
    Py_XDECREF(a->function);
    Py_XDECREF(a->other);
    PyMem_Free(a);
}

static void release_ended(void)
{
    for (again *a = atomic_exchange(&ended, NULL), *next; a; a = next) {
        next = a->next;
        again_free(a);
    }
}

static cn_tensor *unchanged(void *user, cn_tensor *grad)
{
    (void)user;
    return grad;
}

static cn_tensor *run(void *user, cn_tensor *const *in, int n)
{
    again *a = user;
    PyObject *tensors = PyTuple_New(n);
    for (int i = 0; i < n && tensors; i++) {
        PyObject *t = tensor_wrap(a->context, in[i]);
        if (t) PyTuple_SET_ITEM(tensors, i, t);
        else Py_CLEAR(tensors);
    }
    PyObject *y = tensors ? PyObject_CallObject(a->function, tensors) : NULL;
    Py_XDECREF(tensors);
    cn_tensor *result = NULL; /* a handle of its own: that of the object ends with the object */
    if (y && is_tensor(y) && context_of(y) == a->context) result = cn_view(handle_of(y), cn_shape(handle_of(y)));
    if (y && !result && !PyErr_Occurred()) Py_XSETREF(a->other, Py_NewRef(y));
    Py_XDECREF(y);
    return result;
}

PyDoc_STRVAR(checkpoint_doc, "checkpoint(function, tensors)\n--\n\n"
                             "function(*tensors), a tensor, whose intermediate values backward computes again.");
static PyObject *checkpoint(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *function, *tensors, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO!", &function, &PyTuple_Type, &tensors)) return NULL;
    release_ended();
    const int n = (int)PyTuple_GET_SIZE(tensors);
    context *c = n && is_tensor(PyTuple_GET_ITEM(tensors, 0)) ? context_of(PyTuple_GET_ITEM(tensors, 0)) : NULL;
    if (!c) {
        PyErr_SetString(PyExc_TypeError, "checkpoint: a tuple of tensors is required");
        return NULL;
    }
    if (use(c)) return NULL;
    again *a = PyMem_Calloc(1, sizeof *a);
    cn_tensor **in = a ? PyMem_Calloc((size_t)n, sizeof *in) : NULL;
    if (!in) {
        PyMem_Free(a);
        return PyErr_NoMemory();
    }
    *a = (again){ .function = Py_NewRef(function), .context = c };
    for (int i = 0; i < n; i++) in[i] = handle_of(PyTuple_GET_ITEM(tensors, i));
    cn_scope scope = cn_scope_begin(c->cn);
    cn_tensor *y = cn_checkpoint(run, a, in, n);
    const bool recorded = y && cn_requires_grad(y) && cn_add_hook_until(y, unchanged, a, graph_ended);
    if (y && !cn_failed(c->cn)) {
        result = tensor_wrap(c, y);
    } else if (a->other && !PyErr_Occurred()) {
        cn_error_clear(c->cn);
        result = Py_NewRef(a->other);
    } else {
        context_error(c);
    }
    cn_scope_end(c->cn, scope);
    if (!recorded) again_free(a);
    PyMem_Free(in);
    return result;
}

PyDoc_STRVAR(counters_doc, "counters()\n--\n\nWhat the context of this thread has done so far (cairn/plan.h), a dict.");
static PyObject *counters(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    context *c = context_default();
    if (!c) return NULL;
    const cn_counters n = cn_count(c->cn);
    return Py_BuildValue(
        "{sLsLsLsLsLsLsLsLsLsLsLsLsL}", "nodes", (long long)n.nodes, "evaluations", (long long)n.evaluations, "kernels",
        (long long)n.kernels, "contractions", (long long)n.contractions, "plan_hits", (long long)n.plan_hits,
        "plan_misses", (long long)n.plan_misses, "plans", (long long)n.plans, "pending", (long long)n.pending,
        "handles", (long long)n.handles, "live_nodes", (long long)n.live_nodes, "live_bytes", (long long)n.live_bytes,
        "peak_bytes", (long long)n.peak_bytes, "allocations", (long long)n.allocations);
}

/* ---- profiles ---- */

typedef struct profile {
    cn_profile *profile;
    context *context;
} profile;

static void profile_destroy(PyObject *capsule)
{
    profile *p = PyCapsule_GetPointer(capsule, "cairn.profile");
    if (!p) return;
    cn_profile_free(p->profile);
    context_drop(p->context);
    PyMem_Free(p);
}

static profile *profile_from(PyObject *o) { return PyCapsule_GetPointer(o, "cairn.profile"); }

PyDoc_STRVAR(profile_begin_doc, "profile_begin(device)\n--\n\nBegins to measure where the time goes.");
static PyObject *profile_begin(PyObject *self, PyObject *device)
{
    (void)self;
    const char *name = PyUnicode_AsUTF8(device);
    context *c = name ? context_for(name) : NULL;
    if (!c || use(c)) return NULL;
    profile *p = PyMem_Calloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    p->profile = cn_profile_begin(c->cn, NULL);
    p->context = c;
    PyObject *capsule = p->profile ? PyCapsule_New(p, "cairn.profile", profile_destroy) : context_error(c);
    if (capsule) {
        context_use(c);
        return capsule;
    }
    cn_profile_free(p->profile);
    PyMem_Free(p);
    return NULL;
}

PyDoc_STRVAR(profile_end_doc, "profile_end(profile)\n--\n\nComputes what is pending, and ends the measurement.");
static PyObject *profile_end(PyObject *self, PyObject *capsule)
{
    (void)self;
    profile *p = profile_from(capsule);
    if (!p || use(p->context)) return NULL;
    bool ok;
    COMPUTE(p->context, ok = cn_eval_all(p->context->cn));
    cn_profile_end(p->profile);
    if (!ok) return context_error(p->context);
    Py_RETURN_NONE;
}

/* (name, device, class, calls, seconds, share, flops, bytes) */
static PyObject *row_of(const cn_profile_row *r)
{
    return Py_BuildValue("(sssLdddd)", r->name, r->device, cn_profile_class_name(r->kind), (long long)r->calls,
                         r->seconds, r->share, r->flops, r->bytes);
}

PyDoc_STRVAR(profile_rows_doc, "profile_rows(profile)\n--\n\n"
                               "(seconds, kernels, totals of classes): rows of (name, device, class, calls, seconds, "
                               "share, flops, bytes).");
static PyObject *profile_rows(PyObject *self, PyObject *capsule)
{
    (void)self;
    profile *p = profile_from(capsule);
    PyObject *rows = p ? PyList_New(0) : NULL, *totals = rows ? PyList_New(0) : NULL;
    int result = totals ? 0 : -1;
    for (int i = 0; !result && i < cn_profile_rows(p->profile); i++) {
        cn_profile_row r;
        PyObject *row = cn_profile_row_at(p->profile, i, &r) ? row_of(&r) : NULL;
        result = row ? PyList_Append(rows, row) : -1;
        Py_XDECREF(row);
    }
    for (int i = 0; !result && i < CN_PROFILE_CLASSES; i++) {
        cn_profile_row r = cn_profile_total(p->profile, (cn_profile_class)i);
        r.kind = (cn_profile_class)i;
        r.name = cn_profile_class_name(r.kind);
        if (!r.device) r.device = "";
        PyObject *row = row_of(&r);
        result = row ? PyList_Append(totals, row) : -1;
        Py_XDECREF(row);
    }
    PyObject *out = result ? NULL : Py_BuildValue("(dOO)", cn_profile_seconds(p->profile), rows, totals);
    Py_XDECREF(rows);
    Py_XDECREF(totals);
    return out;
}

PyDoc_STRVAR(profile_text_doc, "profile_text(profile)\n--\n\nThe table as text.");
static PyObject *profile_text(PyObject *self, PyObject *capsule)
{
    (void)self;
    profile *p = profile_from(capsule);
    if (!p) return NULL;
    const size_t n = cn_profile_print(p->profile, NULL, 0) + 1;
    char *text = PyMem_Malloc(n);
    if (!text) return PyErr_NoMemory();
    cn_profile_print(p->profile, text, n);
    PyObject *result = PyUnicode_FromString(text);
    PyMem_Free(text);
    return result;
}

PyDoc_STRVAR(profile_trace_doc, "profile_trace(profile, path)\n--\n\nWrites a trace for chrome://tracing.");
static PyObject *profile_trace(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    const char *path;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &path)) return NULL;
    profile *p = profile_from(capsule);
    if (!p) return NULL;
    if (!cn_profile_trace(p->profile, path)) return context_error(p->context);
    Py_RETURN_NONE;
}

PyMethodDef file_functions[] = {
    { "load_file", load_file, METH_VARARGS, load_file_doc },
    { "save_file", save_file, METH_VARARGS, save_file_doc },
    { "here", here, METH_O, here_doc },
    { "read_image", read_image, METH_VARARGS, read_image_doc },
    { "write_image", write_image, METH_VARARGS, write_image_doc },
    { "resize_image", resize_image, METH_VARARGS, resize_image_doc },
    { "seed_here", seed_here, METH_O, seed_here_doc },
    { "random_state", random_state, METH_NOARGS, random_state_doc },
    { "set_random_state", set_random_state, METH_O, set_random_state_doc },
    { "checkpoint", checkpoint, METH_VARARGS, checkpoint_doc },
    { "counters", counters, METH_NOARGS, counters_doc },
    { "profile_begin", profile_begin, METH_O, profile_begin_doc },
    { "profile_end", profile_end, METH_O, profile_end_doc },
    { "profile_rows", profile_rows, METH_O, profile_rows_doc },
    { "profile_text", profile_text, METH_O, profile_text_doc },
    { "profile_trace", profile_trace, METH_VARARGS, profile_trace_doc },
    { NULL, NULL, 0, NULL },
};
