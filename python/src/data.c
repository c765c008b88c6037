/* data.c: tensors from Python's data, whatever it is.

   cairn.tensor copies. from_numpy, frombuffer, as_tensor and from_dlpack borrow the memory where they can. */
#include "data.h"

/* ---- anything ---- */

/* Waits until nobody computes in either context: while one is waited for, another thread may begin in the other one. */
static int enter_both(context *a, context *b)
{
    do
        if (context_enter(a) || context_enter(b)) return -1;
    while (!context_ready(a));
    return 0;
}

/* A tensor's value in another context, which is busy meanwhile: the caller is in the middle of a call there. */
cn_tensor *tensor_across(context *to, PyObject *o)
{
    context *from = context_of(o);
    cn_tensor *x = handle_of(o);
    const size_t bytes = (size_t)cn_numel(x) * cn_dtype_size(cn_type(x));
    void *memory = PyMem_RawMalloc(bytes ? bytes : 1);
    if (!memory) {
        PyErr_NoMemory();
        return NULL;
    }
    bool ok = false;
    cn_tensor *t = NULL;
    if (enter_both(from, to) == 0) {
        to->busy = true;
        COMPUTE(from, ok = cn_read(x, memory, bytes));
        to->busy = false;
        if (to->n_later) context_release_now(to);
        if (!ok) context_error(from);
        else if (!(t = cn_from(to->cn, cn_type(x), cn_shape(x), memory))) context_error(to);
    }
    PyMem_RawFree(memory);
    return t;
}

/* The value of a tensor: in this context, of this dtype (-1: its own), without its graph. copy: in its own memory. */
static cn_tensor *from_tensor(context *c, PyObject *o, int dtype, bool copy)
{
    const bool here = context_of(o) == c;
    cn_tensor *t = here ? cn_detach(handle_of(o)) : tensor_across(c, o);
    if (!t && PyErr_Occurred()) return NULL;
    if (t && dtype >= 0 && (cn_dtype)dtype != cn_type(t)) t = cn_cast(t, (cn_dtype)dtype);
    else if (t && copy && here) t = cn_clone(t);
    if (!t) context_error(c);
    return t;
}

static cn_tensor *from_any(context *c, PyObject *o, int dtype, bool share)
{
    if (PyList_Check(o) || PyTuple_Check(o)) return from_nest(c, o, dtype);
    if (is_tensor(o)) return from_tensor(c, o, dtype, !share);
    if (is_numpy(o, "ndarray") || is_numpy(o, "generic")) return from_array(c, o, dtype, share);
    if (is_number(o)) return from_nest(c, o, dtype);
    if (PyUnicode_Check(o) || PyBytes_Check(o)) return is_sequence(o) < 0 ? NULL : from_nest(c, o, dtype);
    if (PyObject_HasAttrString(o, "__dlpack__")) {
        cn_tensor *t = from_dlpack(c, o);
        const bool convert = t && dtype >= 0 && (cn_dtype)dtype != cn_type(t);
        if (convert) t = cn_cast(t, (cn_dtype)dtype);
        else if (t && !share) t = cn_clone(t);
        if (!t && !PyErr_Occurred()) context_error(c);
        return t;
    }
    if (PyObject_HasAttrString(o, "__array_interface__") || PyObject_HasAttrString(o, "__array__")) {
        PyObject *np = PyImport_ImportModule("numpy");
        PyObject *array = np ? PyObject_CallMethod(np, "asarray", "O", o) : NULL;
        cn_tensor *t = array ? from_array(c, array, dtype, share) : NULL;
        Py_XDECREF(array);
        Py_XDECREF(np);
        return t;
    }
    return from_nest(c, o, dtype);
}

static PyObject *wrapped(context *c, PyObject *data, int dtype, bool share)
{
    if (context_enter(c) < 0) return NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    cn_tensor *t = from_any(c, data, dtype, share);
    PyObject *out = t ? tensor_wrap(c, t) : NULL;
    cn_scope_end(c->cn, s);
    return out;
}

PyObject *tensor_from_data(context *c, PyObject *data, int dtype) { return wrapped(c, data, dtype, false); }

cn_tensor *tensor_operand(context *c, PyObject *o, cn_tensor *like, PyObject **owned)
{
    *owned = NULL;
    if (is_tensor(o)) return context_of(o) == c ? operand_of(o) : tensor_across(c, o);
    if (is_number(o)) return number_tensor(c, o, number_dtype(o, like));
    *owned = wrapped(c, o, -1, true);
    return *owned ? handle_of(*owned) : NULL;
}

/* ---- functions of the module ---- */

static context *context_from(PyObject *device) /* a cairn.device, its text or number, or None */
{
    if (!device || device == Py_None) return context_default();
    if (PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0) return context_for("cpu");
    PyObject *module = PyImport_ImportModule("cairn._device");
    PyObject *text = module ? PyObject_CallMethod(module, "context_name", "O", device) : NULL;
    const char *name = text ? PyUnicode_AsUTF8(text) : NULL;
    context *c = name ? context_for(name) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(text);
    return c;
}

static PyObject *with_grad(PyObject *t, int requires_grad)
{
    if (!t || !requires_grad || cn_set_requires_grad(handle_of(t), true)) return t;
    context_error(context_of(t));
    Py_DECREF(t);
    return NULL;
}

static PyObject *function_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "ext_tensor", "device", "copy", NULL };
    PyObject *o, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", names, &o, &device, &copy)) return NULL;
    context *c = context_from(device);
    if (!c || context_enter(c) < 0) return NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    cn_tensor *t = from_dlpack(c, o);
    PyObject *out = t ? tensor_wrap(c, copy == Py_True ? cn_clone(t) : t) : NULL;
    cn_scope_end(c->cn, s);
    return out;
}

static PyObject *function_from_numpy(PyObject *module, PyObject *array)
{
    (void)module;
    if (!is_numpy(array, "ndarray")) {
        PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(array)->tp_name);
        return NULL;
    }
    context *c = context_default();
    return c ? wrapped(c, array, -1, true) : NULL;
}

static int check_extent(const Py_buffer *v, Py_ssize_t count, Py_ssize_t offset, Py_ssize_t item, Py_ssize_t *n)
{
    if (v->len <= 0 || count == 0)
        PyErr_Format(PyExc_ValueError, "both buffer length (%zd) and count (%zd) must not be 0", v->len, count);
    else if (offset < 0 || offset >= v->len)
        PyErr_Format(PyExc_ValueError,
                     "offset (%zd bytes) must be non-negative and no greater than buffer length (%zd bytes) minus 1",
                     offset, v->len);
    else if (count < 0 && (v->len - offset) % item)
        PyErr_Format(PyExc_ValueError,
                     "buffer length (%zd bytes) after offset (%zd bytes) must be a multiple of element size (%zd)",
                     v->len - offset, offset, item);
    else if (count > (v->len - offset) / item)
        PyErr_Format(PyExc_ValueError,
                     "requested buffer length (%zd * %zd bytes) after offset (%zd bytes) must not be greater than "
                     "actual buffer length (%zd bytes)",
                     count, item, offset, v->len);
    else {
        *n = count < 0 ? (v->len - offset) / item : count;
        return 0;
    }
    return -1;
}

static PyObject *function_frombuffer(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "buffer", "dtype", "count", "offset", "requires_grad", NULL };
    PyObject *o, *dtype = NULL;
    Py_ssize_t count = -1, offset = 0, n;
    int requires_grad = 0, t;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", names, &o, &dtype, &count, &offset,
                                     &requires_grad) ||
        dtype_from(dtype, &t) < 0)
        return NULL;
    if (t < 0) return PyErr_Format(PyExc_TypeError, "frombuffer() missing required keyword argument 'dtype'");
    context *c = context_default();
    Py_buffer view;
    if (!c || context_enter(c) < 0 || PyObject_GetBuffer(o, &view, PyBUF_SIMPLE) < 0) return NULL;
    const Py_ssize_t item = (Py_ssize_t)cn_dtype_size((cn_dtype)t);
    if (check_extent(&view, count, offset, item, &n) < 0) {
        PyBuffer_Release(&view);
        return NULL;
    }
    /* the part that is asked for, as a buffer of one axis */
    Py_ssize_t shape[1] = { n };
    view.buf = (char *)view.buf + offset;
    view.len = n * item;
    view.itemsize = item;
    view.ndim = 1;
    view.shape = shape;
    view.strides = NULL;
    view.format = NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    const bool share = can_borrow(&view);
    cn_tensor *made_of = share ? borrow(c, (cn_dtype)t, &view) : copy_buffer(c, (cn_dtype)t, &view);
    if (!share || !made_of) PyBuffer_Release(&view);
    PyObject *out = made_of ? tensor_wrap(c, made_of) : NULL;
    cn_scope_end(c->cn, s);
    return with_grad(out, requires_grad);
}

static PyObject *function_tensor(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "data", "dtype", "device", "requires_grad", "pin_memory", NULL };
    PyObject *data, *dtype = Py_None, *device = Py_None;
    int requires_grad = 0, pin_memory = 0, t;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOpp:tensor", names, &data, &dtype, &device, &requires_grad,
                                     &pin_memory) ||
        dtype_from(dtype, &t) < 0)
        return NULL;
    context *c = device == Py_None && is_tensor(data) ? context_of(data) : context_from(device);
    return c ? with_grad(tensor_from_data(c, data, t), requires_grad) : NULL;
}

/* The tensor itself, if it has the dtype and is on the device. */
static PyObject *as_it_is(PyObject *o, int dtype, const context *c)
{
    if (!is_tensor(o) || context_of(o) != c || (dtype >= 0 && cn_type(handle_of(o)) != (cn_dtype)dtype)) return NULL;
    Py_INCREF(o);
    return o;
}

/* A tensor of another dtype or device keeps its graph. */
static PyObject *converted(context *c, PyObject *data, int dtype)
{
    PyObject *same = as_it_is(data, dtype, c);
    if (same) return same;
    if (!is_tensor(data) || context_of(data) != c) return wrapped(c, data, dtype, true);
    if (context_enter(c) < 0) return NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    PyObject *out = tensor_wrap(c, cn_cast(handle_of(data), (cn_dtype)dtype));
    cn_scope_end(c->cn, s);
    return out;
}

static PyObject *function_as_tensor(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "data", "dtype", "device", NULL };
    PyObject *data, *dtype = Py_None, *device = Py_None;
    int t;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", names, &data, &dtype, &device) ||
        dtype_from(dtype, &t) < 0)
        return NULL;
    context *c = device == Py_None && is_tensor(data) ? context_of(data) : context_from(device);
    return c ? converted(c, data, t) : NULL;
}

static PyObject *function_asarray(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "obj", "dtype", "device", "copy", "requires_grad", NULL };
    PyObject *data, *dtype = Py_None, *device = Py_None, *copy = Py_None;
    int t, requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOp:asarray", names, &data, &dtype, &device, &copy,
                                     &requires_grad) ||
        dtype_from(dtype, &t) < 0)
        return NULL;
    context *c = device == Py_None && is_tensor(data) ? context_of(data) : context_from(device);
    if (!c) return NULL;
    if (copy == Py_True) return with_grad(wrapped(c, data, t, false), requires_grad);
    if (copy == Py_False && !is_tensor(data) && !PyObject_CheckBuffer(data) &&
        !PyObject_HasAttrString(data, "__dlpack__")) {
        PyErr_Format(PyExc_ValueError, "can't alias arbitrary sequence: a %s has to be copied", Py_TYPE(data)->tp_name);
        return NULL;
    }
    return with_grad(converted(c, data, t), requires_grad);
}

/* (bytes, dtype, shape): for unpickling. */
static PyObject *function_from_bytes(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    PyObject *dtype, *size, *out = NULL;
    if (!PyArg_ParseTuple(args, "y*OO:_from_bytes", &data, &dtype, &size)) return NULL;
    int t;
    cn_dims shape;
    context *c = context_default();
    if (c && context_enter(c) == 0 && dtype_from(dtype, &t) == 0 && dims_from(size, &shape) == 0) {
        size_t bytes = cn_dtype_size((cn_dtype)t);
        for (int d = 0; d < shape.n; d++) bytes *= (size_t)shape.v[d];
        const cn_scope s = cn_scope_begin(c->cn);
        if (bytes == (size_t)data.len) out = tensor_wrap(c, cn_from(c->cn, (cn_dtype)t, shape, data.buf));
        else PyErr_Format(PyExc_ValueError, "the shape needs %zu bytes, got %zd", bytes, data.len);
        cn_scope_end(c->cn, s);
    }
    PyBuffer_Release(&data);
    return out;
}

#define KEYWORDS(name) (PyCFunction)(void (*)(void)) name, METH_VARARGS | METH_KEYWORDS

PyMethodDef convert_functions[] = {
    { "tensor", KEYWORDS(function_tensor),
      "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False): a copy of data." },
    { "from_dlpack", KEYWORDS(function_from_dlpack),
      "from_dlpack(ext_tensor, *, device=None, copy=None): a tensor in the memory of an object with __dlpack__." },
    { "from_numpy", function_from_numpy, METH_O, "from_numpy(ndarray): a tensor in the memory of an array." },
    { "frombuffer", KEYWORDS(function_frombuffer),
      "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False): a tensor in the memory of a buffer." },
    { "as_tensor", KEYWORDS(function_as_tensor),
      "as_tensor(data, dtype=None, device=None): the data as a tensor, without a copy where that is possible." },
    { "asarray", KEYWORDS(function_asarray),
      "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False): obj as a tensor." },
    { "_from_bytes", function_from_bytes, METH_VARARGS, "_from_bytes(data, dtype, shape): for unpickling." },
    { NULL, NULL, 0, NULL },
};
