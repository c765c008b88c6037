/* convert.c: tensors as Python's data: numbers, lists, NumPy arrays, buffers, DLPack; and where their memory is.

   A value never changes, so what is given away is read-only: an in-place form gives the tensor another value, and an
   array made before keeps the old one. Buffers, arrays and DLPack share one way out, cn_to_dlpack, which also brings
   values of a GPU to the memory of the CPU. */
#include "call.h"

#include <cairn/dlpack.h>
#include <string.h>

/* ---- one number ---- */

static PyObject *number_at(cn_dtype t, const char *at)
{
    switch (t) {
    case CN_BOOL: return PyBool_FromLong(*(const uint8_t *)at);
    case CN_U8: return PyLong_FromLong(*(const uint8_t *)at);
    case CN_I8: return PyLong_FromLong(*(const int8_t *)at);
    case CN_I16: return PyLong_FromLong(*(const int16_t *)(const void *)at);
    case CN_I32: return PyLong_FromLong(*(const int32_t *)(const void *)at);
    case CN_I64: return PyLong_FromLongLong(*(const int64_t *)(const void *)at);
    case CN_F32: return PyFloat_FromDouble(*(const float *)(const void *)at);
    default: return PyFloat_FromDouble(*(const double *)(const void *)at); /* halves were converted */
    }
}

PyObject *tensor_item(PyObject *self)
{
    context *c = context_of(self);
    cn_tensor *x = handle_of(self);
    if (context_enter(c) < 0) return NULL;
    if (cn_numel(x) != 1)
        return PyErr_Format(PyExc_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
                            (long long)cn_numel(x));
    const cn_dtype t = cn_type(x);
    double v = 0;
    int64_t whole = 0;
    if (cn_dtype_is_float(t)) COMPUTE(c, v = cn_item(x));
    else COMPUTE(c, whole = cn_item_i64(x));
    if (cn_failed(c->cn)) return context_error(c);
    if (t == CN_BOOL) return PyBool_FromLong(whole != 0);
    return cn_dtype_is_float(t) ? PyFloat_FromDouble(v) : PyLong_FromLongLong(whole);
}

static PyObject *method_item(PyObject *self, PyObject *none)
{
    (void)none;
    return tensor_item(self);
}

/* item() for int(x), float(x) */
static PyObject *single(PyObject *self)
{
    if (cn_numel(handle_of(self)) == 1) return tensor_item(self);
    PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    return NULL;
}

int tensor_bool(PyObject *self)
{
    const int64_t n = cn_numel(handle_of(self));
    if (n != 1) {
        PyErr_Format(PyExc_RuntimeError, "Boolean value of Tensor with %s is ambiguous",
                     n ? "more than one value" : "no values");
        return -1;
    }
    PyObject *v = tensor_item(self);
    const int on = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    return on;
}

PyObject *tensor_int(PyObject *self)
{
    PyObject *v = single(self), *whole = v ? PyNumber_Long(v) : NULL;
    Py_XDECREF(v);
    return whole;
}

PyObject *tensor_float(PyObject *self)
{
    PyObject *v = single(self), *number = v ? PyNumber_Float(v) : NULL;
    Py_XDECREF(v);
    return number;
}

PyObject *tensor_index(PyObject *self)
{
    cn_tensor *x = handle_of(self);
    if (cn_numel(x) == 1 && !cn_dtype_is_float(cn_type(x))) return tensor_int(self);
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return NULL;
}

static PyObject *method_format(PyObject *self, PyObject *spec)
{
    if (cn_ndim(handle_of(self)) == 0) {
        PyObject *v = tensor_item(self), *text = v ? PyObject_Format(v, spec) : NULL;
        Py_XDECREF(v);
        return text;
    }
    if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0) return PyObject_Str(self);
    return PyErr_Format(PyExc_TypeError, "unsupported format string passed to Tensor.__format__");
}

int tensor_contains(PyObject *self, PyObject *value)
{
    context *c = context_of(self);
    if (!is_tensor(value) && !is_number(value)) {
        PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %s",
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    if (context_enter(c) < 0) return -1;
    const cn_scope s = cn_scope_begin(c->cn);
    PyObject *owned = NULL;
    cn_tensor *v = tensor_operand(c, value, handle_of(self), &owned);
    cn_tensor *found = v ? cn_any(cn_eq(operand_of(self), v), CN_ALL, false) : NULL;
    int64_t is = 0;
    if (found) COMPUTE(c, is = cn_item_i64(found));
    if (!PyErr_Occurred() && (!found || cn_failed(c->cn))) context_error(c);
    cn_scope_end(c->cn, s);
    Py_XDECREF(owned);
    return PyErr_Occurred() ? -1 : is != 0;
}

/* ---- lists ---- */

static PyObject *nested(cn_dtype t, cn_dims shape, int axis, const char **at)
{
    if (axis == shape.n) {
        PyObject *v = number_at(t, *at);
        *at += cn_dtype_size(t);
        return v;
    }
    PyObject *list = PyList_New((Py_ssize_t)shape.v[axis]);
    for (Py_ssize_t k = 0; list && k < (Py_ssize_t)shape.v[axis]; k++) {
        PyObject *v = nested(t, shape, axis + 1, at);
        if (!v) Py_CLEAR(list);
        else PyList_SET_ITEM(list, k, v);
    }
    return list;
}

/* Reads the values in row-major order, halves as doubles: memory to free by PyMem_RawFree. */
static void *values_of(context *c, cn_tensor *x, cn_dtype *t)
{
    const bool half = *t == CN_F16 || *t == CN_BF16;
    if (half) *t = CN_F64;
    const int64_t n = cn_numel(x);
    const size_t bytes = (size_t)n * cn_dtype_size(*t);
    void *memory = PyMem_RawMalloc(bytes ? bytes : 1);
    if (!memory) return PyErr_NoMemory();
    bool ok;
    if (half) COMPUTE(c, ok = cn_read_f64(x, memory, n));
    else COMPUTE(c, ok = cn_read(x, memory, bytes));
    if (ok) return memory;
    PyMem_RawFree(memory);
    return context_error(c);
}

static PyObject *method_tolist(PyObject *self, PyObject *none)
{
    (void)none;
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    cn_dtype t = cn_type(handle_of(self));
    const cn_dims shape = cn_shape(handle_of(self));
    char *memory = values_of(c, handle_of(self), &t);
    if (!memory) return NULL;
    const char *at = memory;
    PyObject *list = nested(t, shape, 0, &at);
    PyMem_RawFree(memory);
    return list;
}

/* ---- memory ---- */

/* The value in the memory of the CPU; contiguous: row-major, perhaps a copy. */
static DLManagedTensor *exported(PyObject *self, bool contiguous, bool copy)
{
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    cn_tensor *x = handle_of(self);
    DLManagedTensor *m = NULL;
    if (copy) x = cn_clone(x);
    else if (contiguous && !cn_is_contiguous(x)) x = cn_contiguous(x);
    if (x) COMPUTE(c, m = cn_to_dlpack(x));
    cn_scope_end(c->cn, s);
    if (!m) context_error(c);
    return m;
}

static void give_back(DLManagedTensor *m) { m->deleter(m); }

static char *memory_of(const DLManagedTensor *m) { return (char *)m->dl_tensor.data + m->dl_tensor.byte_offset; }

/* struct's letters */
static const char *const formats[CN_DTYPES] = {
    [CN_BOOL] = "?", [CN_U8] = "B",  [CN_I8] = "b",
    [CN_I16] = "h",  [CN_I32] = "i", [CN_I64] = sizeof(long) == 8 ? "l" : "q",
    [CN_F16] = "e",  [CN_F32] = "f", [CN_F64] = "d"
};

typedef struct window { /* what a Py_buffer points to */
    DLManagedTensor *managed;
    Py_ssize_t shape[CN_MAX_DIMS], strides[CN_MAX_DIMS];
} window;

static int no_buffer(Py_buffer *view, const char *why)
{
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    const tensor *t = (tensor *)self;
    const cn_dtype dtype = cn_type(t->handle);
    const bool by_columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && cn_ndim(t->handle) > 1;
    if (flags & PyBUF_WRITABLE) return no_buffer(view, "the memory of a tensor is read-only");
    if (!t->detached && cn_requires_grad(t->handle))
        return no_buffer(view, "a tensor that requires grad has no buffer; use tensor.detach()");
    if (dtype == CN_BF16) return no_buffer(view, "bfloat16 has no format in the buffer protocol; use tensor.float()");
    if (by_columns) return no_buffer(view, "the memory of a tensor is in row-major order");
    const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES &&
                         (flags & PyBUF_C_CONTIGUOUS) != PyBUF_C_CONTIGUOUS &&
                         (flags & PyBUF_ANY_CONTIGUOUS) != PyBUF_ANY_CONTIGUOUS;
    window *w = PyMem_Malloc(sizeof *w);
    if (!w) return no_buffer(view, "out of memory");
    if (!(w->managed = exported(self, !strided, false))) {
        view->obj = NULL;
        PyMem_Free(w);
        return -1;
    }
    static char nothing[8]; /* an array of no elements has an address as well */
    const DLTensor *d = &w->managed->dl_tensor;
    const Py_ssize_t item = (Py_ssize_t)cn_dtype_size(dtype);
    Py_ssize_t n = 1;
    for (int k = 0; k < d->ndim; k++) {
        w->shape[k] = (Py_ssize_t)d->shape[k];
        w->strides[k] = (Py_ssize_t)d->strides[k] * item;
        n *= w->shape[k];
    }
    *view = (Py_buffer){ .buf = n ? memory_of(w->managed) : nothing,
                         .len = n * item,
                         .itemsize = item,
                         .readonly = 1,
                         .ndim = d->ndim,
                         .format = flags & PyBUF_FORMAT ? (char *)formats[dtype] : NULL,
                         .shape = flags & PyBUF_ND ? w->shape : NULL,
                         .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? w->strides : NULL,
                         .internal = w };
    Py_INCREF(self);
    view->obj = self;
    return 0;
}

void tensor_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    window *w = view->internal;
    give_back(w->managed);
    PyMem_Free(w);
}

/* ---- NumPy ---- */

static PyObject *numpy_array(PyObject *memory)
{
    static PyObject *asarray; /* found once */
    if (!asarray) {
        PyObject *np = PyImport_ImportModule("numpy");
        asarray = np ? PyObject_GetAttrString(np, "asarray") : NULL;
        Py_XDECREF(np);
    }
    return asarray ? PyObject_CallFunctionObjArgs(asarray, memory, NULL) : NULL;
}

/* The value without its graph, as an object. */
static PyObject *plain(PyObject *self)
{
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    const cn_scope s = cn_scope_begin(c->cn);
    PyObject *out = tensor_wrap(c, cn_detach(handle_of(self)));
    cn_scope_end(c->cn, s);
    return out;
}

static PyObject *as_array(PyObject *self, bool force)
{
    const tensor *t = (tensor *)self;
    if (!force && !t->detached && cn_requires_grad(t->handle))
        return PyErr_Format(PyExc_RuntimeError,
                            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    if (!force && strcmp(t->context->device, "cpu") != 0)
        return PyErr_Format(PyExc_TypeError,
                            "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                            "memory first.",
                            t->context->device);
    if (cn_type(t->handle) == CN_BF16)
        return PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType BFloat16: NumPy has no such type; use "
                                             "tensor.float().numpy()");
    PyObject *from = NULL;
    if (!t->detached && cn_requires_grad(t->handle) && !(from = plain(self))) return NULL;
    PyObject *view = PyMemoryView_FromObject(from ? from : self);
    PyObject *array = view ? numpy_array(view) : NULL; /* it keeps the view, which keeps the value */
    Py_XDECREF(view);
    Py_XDECREF(from);
    return array;
}

static PyObject *method_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "force", NULL };
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", names, &force)) return NULL;
    return as_array(self, force);
}

static PyObject *method_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy)) return NULL;
    PyObject *array = as_array(self, false), *out = array;
    if (array && dtype != Py_None) {
        PyObject *f = PyObject_GetAttrString(array, "astype"), *with = Py_BuildValue("(O)", dtype);
        PyObject *keep = Py_BuildValue("{s:O}", "copy", copy == Py_True ? Py_True : Py_False);
        out = f && with && keep ? PyObject_Call(f, with, keep) : NULL;
        Py_XDECREF(keep);
        Py_XDECREF(f);
        Py_XDECREF(with);
        Py_DECREF(array);
    } else if (array && copy == Py_True) {
        out = PyObject_CallMethod(array, "copy", NULL);
        Py_DECREF(array);
    }
    return out;
}

/* ---- DLPack ---- */

static void drop_capsule(PyObject *capsule) /* not if another library has taken the tensor over */
{
    DLManagedTensor *m = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (m) give_back(m);
}

static PyObject *method_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy))
        return NULL;
    const tensor *t = (tensor *)self;
    if (!t->detached && cn_requires_grad(t->handle))
        return PyErr_Format(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    if (copy == Py_False && strcmp(t->context->device, "cpu") != 0)
        return PyErr_Format(PyExc_BufferError, "a tensor on %s can only be exported as a copy", t->context->device);
    DLManagedTensor *m = exported(self, false, copy == Py_True);
    PyObject *capsule = m ? PyCapsule_New(m, "dltensor", drop_capsule) : NULL;
    if (m && !capsule) give_back(m);
    return capsule;
}

static PyObject *method_dlpack_device(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_BuildValue("(ii)", 1, 0); /* the memory of the CPU: values of a GPU are exported as copies */
}

/* ---- layout ---- */

static PyObject *method_data_ptr(PyObject *self, PyObject *none)
{
    (void)none;
    DLManagedTensor *m = exported(self, false, false);
    if (!m) return NULL;
    PyObject *address = PyLong_FromVoidPtr(cn_numel(handle_of(self)) ? memory_of(m) : NULL);
    give_back(m);
    return address;
}

static PyObject *method_storage_offset(PyObject *self, PyObject *none)
{
    (void)none;
    DLManagedTensor *m = exported(self, false, false);
    if (!m) return NULL;
    const uint64_t bytes = m->dl_tensor.byte_offset;
    give_back(m);
    return PyLong_FromUnsignedLongLong(bytes / cn_dtype_size(cn_type(handle_of(self))));
}

static PyObject *method_element_size(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromSize_t(cn_dtype_size(cn_type(handle_of(self))));
}

static PyObject *get_bytes(PyObject *self, void *none)
{
    (void)none;
    const cn_tensor *x = handle_of(self);
    return PyLong_FromLongLong(cn_numel(x) * (long long)cn_dtype_size(cn_type(x)));
}

static PyObject *get_item_size(PyObject *self, void *none)
{
    (void)none;
    return method_element_size(self, NULL);
}

static PyObject *method_stride(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dim", NULL };
    PyObject *dim = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:stride", names, &dim)) return NULL;
    const cn_dims s = cn_strides(handle_of(self));
    if (dim == Py_None) {
        PyObject *all = PyTuple_New(s.n);
        for (int d = 0; all && d < s.n; d++) {
            PyObject *v = PyLong_FromLongLong(s.v[d]);
            if (!v) Py_CLEAR(all);
            else PyTuple_SET_ITEM(all, d, v);
        }
        return all;
    }
    int64_t axis;
    if (int_from(dim, &axis) < 0) return NULL;
    if (axis < -s.n || axis >= s.n)
        return PyErr_Format(PyExc_IndexError,
                            "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -s.n, s.n - 1,
                            (long long)axis);
    return PyLong_FromLongLong(s.v[axis < 0 ? axis + s.n : axis]);
}

/* Whether axis 1 of (N, C, ...) is the innermost one in memory. */
static bool is_channels_last(const cn_tensor *x, int ndim)
{
    const cn_dims n = cn_shape(x), s = cn_strides(x);
    if (n.n != ndim) return false;
    int64_t want = 1;
    for (int k = 0; k < n.n; k++) {
        const int d = k == 0 ? 1 : k == n.n - 1 ? 0 : n.n - k;
        if (n.v[d] != 1 && s.v[d] != want) return false;
        want *= n.v[d];
    }
    return true;
}

static PyObject *method_is_contiguous(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "memory_format", NULL };
    PyObject *format = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", names, &format)) return NULL;
    const cn_tensor *x = handle_of(self);
    PyObject *text = format == Py_None ? NULL : PyObject_Str(format);
    const char *name = text ? PyUnicode_AsUTF8(text) : "";
    bool is = false;
    if (name && strstr(name, "channels_last_3d")) is = is_channels_last(x, 5);
    else if (name && strstr(name, "channels_last")) is = is_channels_last(x, 4);
    else is = cn_is_contiguous(x);
    Py_XDECREF(text);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(is);
}

/* ---- copies and pickles: written in Python ---- */

static PyObject *python_function(const char *name, PyObject *self, PyObject *argument)
{
    PyObject *module = PyImport_ImportModule("cairn._convert");
    PyObject *f = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *out = f ? PyObject_CallFunctionObjArgs(f, self, argument, NULL) : NULL;
    Py_XDECREF(f);
    Py_XDECREF(module);
    return out;
}

static PyObject *method_reduce(PyObject *self, PyObject *protocol) { return python_function("reduce", self, protocol); }
static PyObject *method_deepcopy(PyObject *self, PyObject *memo) { return python_function("deepcopy", self, memo); }
static PyObject *method_copy(PyObject *self, PyObject *none)
{
    (void)none;
    return python_function("copy", self, NULL);
}

/* The values in row-major order, as bytes: for pickles. */
static PyObject *method_to_bytes(PyObject *self, PyObject *none)
{
    (void)none;
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    cn_tensor *x = handle_of(self);
    const size_t size = (size_t)cn_numel(x) * cn_dtype_size(cn_type(x));
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!bytes) return NULL;
    bool ok;
    COMPUTE(c, ok = cn_read(x, PyBytes_AS_STRING(bytes), size));
    if (ok) return bytes;
    Py_DECREF(bytes);
    return context_error(c);
}

#define KEYWORDS(name) (PyCFunction)(void (*)(void)) name, METH_VARARGS | METH_KEYWORDS

PyMethodDef convert_methods[] = {
    { "item", method_item, METH_NOARGS, "The value of a tensor with one element, as a Python number." },
    { "tolist", method_tolist, METH_NOARGS, "The values as nested lists of Python numbers." },
    { "numpy", KEYWORDS(method_numpy),
      "numpy(*, force=False): the values as a read-only NumPy array, without a copy." },
    { "__array__", KEYWORDS(method_array), "The values as a NumPy array." },
    { "__dlpack__", KEYWORDS(method_dlpack), "The values as a DLPack capsule." },
    { "__dlpack_device__", method_dlpack_device, METH_NOARGS, "(1, 0): the memory of the CPU." },
    { "__format__", method_format, METH_O, "The text of a single number in a format." },
    { "__reduce_ex__", method_reduce, METH_O, "For pickles." },
    { "__copy__", method_copy, METH_NOARGS, "Another object with the same value." },
    { "__deepcopy__", method_deepcopy, METH_O, "A copy, with its gradient." },
    { "_to_bytes", method_to_bytes, METH_NOARGS, "The values in row-major order." },
    { "data_ptr", method_data_ptr, METH_NOARGS, "The address of the values; computes them." },
    { "storage_offset", method_storage_offset, METH_NOARGS, "Elements before the first one in its memory." },
    { "element_size", method_element_size, METH_NOARGS, "Bytes of an element." },
    { "stride", KEYWORDS(method_stride), "stride(dim=None): the steps in memory from one element to the next." },
    { "is_contiguous", KEYWORDS(method_is_contiguous), "Whether the elements lie in row-major order." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef properties[] = {
    { "nbytes", get_bytes, NULL, "Bytes of all elements.", NULL },
    { "itemsize", get_item_size, NULL, "Bytes of an element.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

int convert_add_properties(PyTypeObject *type)
{
    for (PyGetSetDef *p = properties; p->name; p++) {
        PyObject *d = PyDescr_NewGetSet(type, p);
        const int failed = !d || PyObject_SetAttrString((PyObject *)type, p->name, d) < 0;
        Py_XDECREF(d);
        if (failed) return -1;
    }
    return 0;
}
