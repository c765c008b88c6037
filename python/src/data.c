/* data.c: tensors from Python's data: numbers, nested lists, NumPy arrays, buffers, DLPack.

   cairn.tensor copies. from_numpy, frombuffer, as_tensor and from_dlpack borrow the memory where they can: the tensor
   then keeps the owner of the memory alive. Read-only memory is copied, since an in-place form may write to a tensor. */
#include "call.h"

#include <cairn/dlpack.h>
#include <math.h>

/* ---- element types of others ---- */

/* The dtype for a format of the buffer protocol (struct's letters); -1: there is none. */
static int dtype_of_format(const char *format, Py_ssize_t itemsize)
{
    static const struct {
        char letter;
        int8_t dtype, size;
    } letters[] = { { '?', CN_BOOL, 1 }, { 'b', CN_I8, 1 },  { 'B', CN_U8, 1 },  { 'h', CN_I16, 2 }, { 'i', CN_I32, 4 },
                    { 'l', CN_I32, 4 },  { 'l', CN_I64, 8 }, { 'q', CN_I64, 8 }, { 'e', CN_F16, 2 }, { 'f', CN_F32, 4 },
                    { 'd', CN_F64, 8 } };
    if (!format) return CN_U8;
    if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>')) format++;
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if (format[0] == letters[k].letter && !format[1] && itemsize == letters[k].size) return letters[k].dtype;
    return -1;
}

static PyObject *numpy_module(void) /* NULL without an exception: nobody has imported it */
{
    PyObject *name = PyUnicode_InternFromString("numpy");
    PyObject *m = name ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    return m;
}

/* Whether o is an instance of numpy.NAME; o can be one only if somebody has imported NumPy. */
static bool is_numpy(PyObject *o, const char *name)
{
    if (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o)) return false;
    PyObject *np = numpy_module(), *type = np ? PyObject_GetAttrString(np, name) : NULL;
    const int is = type ? PyObject_IsInstance(o, type) : 0;
    Py_XDECREF(np);
    Py_XDECREF(type);
    if (PyErr_Occurred()) PyErr_Clear();
    return is == 1;
}

/* The dtype of a NumPy scalar or array; -1: Cairn has none. */
static int dtype_of_numpy(PyObject *o)
{
    Py_buffer view;
    if (PyObject_GetBuffer(o, &view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return -1;
    }
    const int t = dtype_of_format(view.format, view.itemsize);
    PyBuffer_Release(&view);
    return t;
}

/* ---- numbers ---- */

/* Tensors of other libraries are numbers to Python as well, but can be indexed. */
bool is_number(PyObject *o)
{
    if (PyFloat_Check(o) || PyLong_Check(o)) return true;
    const PyTypeObject *t = Py_TYPE(o);
    if (!t->tp_as_number || (!t->tp_as_number->nb_index && !t->tp_as_number->nb_float)) return false;
    if (is_tensor(o) || PyComplex_Check(o) || PySequence_Check(o)) return false;
    return !(t->tp_as_mapping && t->tp_as_mapping->mp_subscript) || is_numpy(o, "generic");
}

enum kind { BOOL_NUMBER, INT_NUMBER, FLOAT_NUMBER };

static enum kind kind_of(PyObject *o)
{
    if (PyFloat_Check(o)) return FLOAT_NUMBER;
    if (PyBool_Check(o)) return BOOL_NUMBER;
    if (PyLong_Check(o)) return INT_NUMBER;
    if (is_numpy(o, "bool_")) return BOOL_NUMBER;
    return PyIndex_Check(o) ? INT_NUMBER : FLOAT_NUMBER;
}

/* The limits of whole numbers; PyTorch lets negative numbers into uint8. */
static const struct {
    double low, high;
} limits[CN_DTYPES] = {
    [CN_U8] = { -255, 255 },
    [CN_I8] = { INT8_MIN, INT8_MAX },
    [CN_I16] = { INT16_MIN, INT16_MAX },
    [CN_I32] = { INT32_MIN, INT32_MAX },
    [CN_I64] = { -0x1p63, 0x1p63 },
};

static int overflow(cn_dtype t)
{
    PyObject *type = dtype_object(t);
    PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %R without overflow", type);
    Py_DECREF(type);
    return -1;
}

static int store_int(cn_dtype t, void *out, int64_t v)
{
    if (t < CN_I64 && t != CN_BOOL && ((double)v < limits[t].low || (double)v > limits[t].high)) return overflow(t);
    switch (t) {
    case CN_BOOL: *(uint8_t *)out = v != 0; break;
    case CN_U8:
    case CN_I8: *(uint8_t *)out = (uint8_t)v; break;
    case CN_I16: *(int16_t *)out = (int16_t)v; break;
    case CN_I32: *(int32_t *)out = (int32_t)v; break;
    case CN_I64: *(int64_t *)out = v; break;
    case CN_F64: *(double *)out = (double)v; break;
    default: *(float *)out = (float)v; break;
    }
    return 0;
}

static int store_float(cn_dtype t, void *out, double v)
{
    if (t == CN_F64) *(double *)out = v;
    else if (t == CN_BOOL) *(uint8_t *)out = v != 0;
    else if (cn_dtype_is_float(t)) *(float *)out = (float)v;
    else if (!(trunc(v) >= limits[t].low && trunc(v) <= limits[t].high) || v >= 0x1p63) return overflow(t);
    else return store_int(t, out, (int64_t)v);
    return 0;
}

/* A number that is not exactly an int or a float: of a tensor, of NumPy, a bool, Fraction ... */
static int store_other(cn_dtype t, void *out, PyObject *o)
{
    if (is_tensor(o)) {
        PyObject *item = tensor_item(o);
        const int done = item ? store_other(t, out, item) : -1;
        Py_XDECREF(item);
        return done;
    }
    if (kind_of(o) == FLOAT_NUMBER) {
        const double v = PyFloat_AsDouble(o);
        return v == -1 && PyErr_Occurred() ? -1 : store_float(t, out, v);
    }
    PyObject *whole = kind_of(o) == BOOL_NUMBER ? PyBool_FromLong(PyObject_IsTrue(o)) : PyNumber_Index(o);
    if (!whole) return -1;
    int beyond, done = -1;
    const int64_t v = PyLong_AsLongLongAndOverflow(whole, &beyond);
    if (!beyond) done = v == -1 && PyErr_Occurred() ? -1 : store_int(t, out, v);
    else if (cn_dtype_is_float(t)) {
        const double d = PyLong_AsDouble(whole);
        done = d == -1 && PyErr_Occurred() ? -1 : store_float(t, out, d);
    } else PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    Py_DECREF(whole);
    return done;
}

static int store(cn_dtype t, void *out, PyObject *o)
{
    if (PyFloat_CheckExact(o)) return store_float(t, out, PyFloat_AS_DOUBLE(o));
    return store_other(t, out, o);
}

/* Halves are made by a cast: numbers are stored as f32 first. */
static cn_dtype stored_as(cn_dtype t) { return t == CN_F16 || t == CN_BF16 ? CN_F32 : t; }

static cn_tensor *made(context *c, cn_dtype dtype, cn_dims shape, const void *data)
{
    cn_tensor *t = cn_from(c->cn, stored_as(dtype), shape, data);
    if (t && stored_as(dtype) != dtype) t = cn_cast(t, dtype);
    if (!t) context_error(c);
    return t;
}

/* A plain number is an argument of plans, and a double. Larger whole numbers are stored. */
cn_tensor *number_tensor(context *c, PyObject *o, cn_dtype dtype)
{
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } value = { .i64 = 0 };
    if (store(stored_as(dtype), &value, o) < 0) return NULL;
    double v;
    switch (dtype) {
    case CN_BOOL:
    case CN_U8: v = value.u8; break;
    case CN_I8: v = value.i8; break;
    case CN_I16: v = value.i16; break;
    case CN_I32: v = value.i32; break;
    case CN_I64: v = (double)value.i64; break;
    case CN_F64: v = value.f64; break;
    default: v = value.f32;
    }
    if (dtype == CN_I64 && fabs(v) >= 0x1p53) return made(c, dtype, CN_SCALAR, &value);
    cn_tensor *t = cn_scalar(c->cn, dtype, v);
    if (!t) context_error(c);
    return t;
}

/* The dtype of a number beside a tensor, which may be NULL: the tensor's, unless the number is of a higher category. */
static cn_dtype number_dtype(PyObject *o, cn_tensor *like)
{
    const enum kind k = kind_of(o);
    if (like) {
        const cn_dtype t = cn_type(like);
        if (cn_dtype_is_float(t) || k == BOOL_NUMBER || (k == INT_NUMBER && t != CN_BOOL)) return t;
    }
    return k == BOOL_NUMBER ? CN_BOOL : k == INT_NUMBER ? CN_I64 : (cn_dtype)default_float();
}

/* ---- nested sequences ---- */

/* 1: o has elements; 0: it is an element; -1: neither. */
static int is_sequence(PyObject *o)
{
    if (PyList_Check(o) || PyTuple_Check(o)) return 1;
    if (PyFloat_Check(o) || PyLong_Check(o)) return 0;
    if (is_tensor(o)) {
        if (cn_numel(handle_of(o)) == 1) return 0;
        PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars; join tensors "
                                          "of more elements with stack or cat");
        return -1;
    }
    if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        PyErr_Format(PyExc_TypeError, "invalid data type '%s': a tensor has numbers", Py_TYPE(o)->tp_name);
        return -1;
    }
    if (is_numpy(o, "ndarray")) {
        PyObject *ndim = PyObject_GetAttrString(o, "ndim");
        const long n = ndim ? PyLong_AsLong(ndim) : -1;
        Py_XDECREF(ndim);
        return n < 0 ? -1 : n > 0;
    }
    return PySequence_Check(o);
}

/* The elements of a sequence, as a list or tuple: a new reference. */
static PyObject *elements(PyObject *o)
{
    if (is_numpy(o, "ndarray")) return PyObject_CallMethod(o, "tolist", NULL);
    return PySequence_Fast(o, "not a sequence");
}

typedef struct nest {
    cn_dims shape;
    int dtype; /* -1: not known yet */
} nest;

static int shape_of(PyObject *o, nest *n)
{
    const int sequence = is_sequence(o);
    if (sequence <= 0) return sequence;
    if (n->shape.n == CN_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "too many dimensions: lists are nested deeper than %d", CN_MAX_DIMS);
        return -1;
    }
    PyObject *all = elements(o);
    if (!all) return -1;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(all);
    n->shape.v[n->shape.n++] = size;
    const int done = size ? shape_of(PySequence_Fast_GET_ITEM(all, 0), n) : 0;
    Py_DECREF(all);
    return done;
}

static void promote(nest *n, cn_dtype t) { n->dtype = n->dtype < 0 ? (int)t : (int)cn_promote((cn_dtype)n->dtype, t); }

static int infer_element(PyObject *o, nest *n)
{
    int t;
    if (PyFloat_CheckExact(o)) t = default_float();
    else if (PyBool_Check(o)) t = CN_BOOL;
    else if (PyLong_CheckExact(o)) t = CN_I64;
    else if (is_tensor(o)) t = cn_type(handle_of(o));
    else if (is_numpy(o, "generic") || is_numpy(o, "ndarray")) t = dtype_of_numpy(o);
    else if (is_number(o)) t = number_dtype(o, NULL);
    else t = -1;
    if (t >= 0) promote(n, (cn_dtype)t);
    else PyErr_Format(PyComplex_Check(o) ? PyExc_TypeError : PyExc_RuntimeError, "Could not infer dtype of %s",
                      Py_TYPE(o)->tp_name);
    return t >= 0 ? 0 : -1;
}

/* The dtype that holds all elements. Errors in the shape are found when the elements are stored. */
static int infer(PyObject *o, int axis, nest *n)
{
    if (axis == n->shape.n) return infer_element(o, n);
    if (is_numpy(o, "ndarray")) return infer_element(o, n);
    const int sequence = is_sequence(o);
    if (sequence < 0) return -1;
    if (!sequence) return 0;
    PyObject *all = elements(o);
    if (!all) return -1;
    PyObject **v = PySequence_Fast_ITEMS(all);
    int done = 0;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(all);
    if (axis + 1 == n->shape.n) { /* the dtype seldom changes from one element to the next */
        PyTypeObject *last = NULL;
        for (Py_ssize_t k = 0; k < size && done == 0; k++) {
            if (Py_TYPE(v[k]) == last && (last == &PyFloat_Type || last == &PyLong_Type)) continue;
            last = Py_TYPE(v[k]);
            done = infer_element(v[k], n);
        }
    } else {
        for (Py_ssize_t k = 0; k < size && done == 0; k++) done = infer(v[k], axis + 1, n);
    }
    Py_DECREF(all);
    return done;
}

/* A row of exact floats, or exact ints that fit, without a call for each; returns how many were stored. */
static Py_ssize_t store_fast(cn_dtype t, char *out, PyObject **v, Py_ssize_t n)
{
    Py_ssize_t k = 0;
    if (t == CN_F32)
        for (; k < n && PyFloat_CheckExact(v[k]); k++) ((float *)(void *)out)[k] = (float)PyFloat_AS_DOUBLE(v[k]);
    if (t == CN_F64)
        for (; k < n && PyFloat_CheckExact(v[k]); k++) ((double *)(void *)out)[k] = PyFloat_AS_DOUBLE(v[k]);
    if (t == CN_I64) {
        for (int beyond = 0; k < n && PyLong_CheckExact(v[k]); k++) {
            const int64_t whole = PyLong_AsLongLongAndOverflow(v[k], &beyond);
            if (beyond) break;
            ((int64_t *)(void *)out)[k] = whole;
        }
    }
    return k;
}

/* Stores the elements of o, which is on this axis. *out moves on. */
static int store_all(PyObject *o, int axis, const nest *n, char **out)
{
    const cn_dtype t = stored_as((cn_dtype)n->dtype);
    const size_t item = cn_dtype_size(t);
    const int sequence = is_sequence(o);
    if (sequence < 0) return -1;
    if (axis == n->shape.n) {
        if (sequence) {
            PyErr_Format(PyExc_TypeError, "a %s stands beside numbers, at dim %d", Py_TYPE(o)->tp_name, axis);
            return -1;
        }
        const int done = store(t, *out, o);
        *out += item;
        return done;
    }
    if (!sequence) {
        PyErr_Format(PyExc_TypeError, "not a sequence: expected one of length %lld at dim %d (got %s)",
                     (long long)n->shape.v[axis], axis, Py_TYPE(o)->tp_name);
        return -1;
    }
    PyObject *all = elements(o);
    if (!all) return -1;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(all);
    int done = 0;
    if (size != n->shape.v[axis]) {
        PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)",
                     (long long)n->shape.v[axis], axis, size);
        done = -1;
    }
    Py_ssize_t k = 0;
    if (done == 0 && axis + 1 == n->shape.n) {
        k = store_fast(t, *out, PySequence_Fast_ITEMS(all), size);
        *out += (size_t)k * item;
    }
    for (; k < size && done == 0; k++) {
        if (PySequence_Fast_GET_SIZE(all) != size) { /* a conversion changed the list */
            PyErr_SetString(PyExc_RuntimeError, "the list changed its size while it was read");
            done = -1;
            break;
        }
        PyObject *element = PySequence_Fast_GET_ITEM(all, k);
        Py_INCREF(element);
        done = store_all(element, axis + 1, n, out);
        Py_DECREF(element);
    }
    Py_DECREF(all);
    return done;
}

static cn_tensor *from_nest(context *c, PyObject *data, int dtype)
{
    nest n = { .dtype = dtype };
    if (shape_of(data, &n) < 0 || (dtype < 0 && infer(data, 0, &n) < 0)) return NULL;
    if (n.dtype < 0) n.dtype = default_float(); /* no elements */
    size_t bytes = cn_dtype_size(stored_as((cn_dtype)n.dtype));
    for (int d = 0; d < n.shape.n; d++) bytes *= (size_t)n.shape.v[d];
    char *memory = PyMem_Malloc(bytes ? bytes : 1), *out = memory;
    if (!memory) {
        PyErr_NoMemory();
        return NULL;
    }
    cn_tensor *t = NULL;
    if (store_all(data, 0, &n, &out) == 0) t = made(c, (cn_dtype)n.dtype, n.shape, memory);
    PyMem_Free(memory);
    return t;
}

/* ---- buffers: NumPy arrays, bytes, memoryviews ---- */

/* Memory of another object that a tensor borrows. */
typedef struct borrowed {
    DLManagedTensor managed;
    Py_buffer view;
    int64_t shape[CN_MAX_DIMS], strides[CN_MAX_DIMS];
} borrowed;

/* Called when no tensor needs the memory: perhaps by an evaluation, which has given the GIL away. */
static void give_back(DLManagedTensor *m)
{
    if (!Py_IsInitialized()) return; /* the interpreter has ended, and its objects with it */
    borrowed *b = m->manager_ctx;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&b->view);
    PyMem_RawFree(b);
    PyGILState_Release(state);
}

static DLDataType dl_type(cn_dtype t)
{
    const uint8_t code = t == CN_BOOL ? 6 : t == CN_U8 ? 1 : t == CN_BF16 ? 4 : cn_dtype_is_float(t) ? 2 : 0;
    return (DLDataType){ code, (uint8_t)(8 * cn_dtype_size(t)), 1 };
}

static bool can_borrow(const Py_buffer *v)
{
    bool can = !v->readonly && v->len > 0 && (uintptr_t)v->buf % (size_t)v->itemsize == 0;
    for (int d = 0; d < v->ndim && can && v->strides; d++) can = v->strides[d] >= 0 && v->strides[d] % v->itemsize == 0;
    return can;
}

/* Takes the view over if it succeeds. */
static cn_tensor *borrow(context *c, cn_dtype dtype, Py_buffer *view)
{
    borrowed *b = PyMem_RawMalloc(sizeof *b);
    if (!b) {
        PyErr_NoMemory();
        return NULL;
    }
    b->view = *view;
    for (int d = 0; d < view->ndim; d++) b->shape[d] = view->shape[d];
    for (int d = 0; d < view->ndim && view->strides; d++) b->strides[d] = view->strides[d] / view->itemsize;
    b->managed = (DLManagedTensor){ .dl_tensor = { .data = view->buf,
                                                   .device = { 1, 0 },
                                                   .ndim = view->ndim,
                                                   .dtype = dl_type(dtype),
                                                   .shape = b->shape,
                                                   .strides = view->strides ? b->strides : NULL },
                                    .manager_ctx = b,
                                    .deleter = give_back };
    cn_tensor *t = cn_from_dlpack(c->cn, &b->managed);
    if (t) return t;
    PyMem_RawFree(b);
    context_error(c);
    return NULL;
}

static cn_tensor *copy_buffer(context *c, cn_dtype dtype, Py_buffer *view)
{
    cn_dims shape = { view->ndim, { 0 } };
    for (int d = 0; d < view->ndim; d++) shape.v[d] = view->shape[d];
    cn_tensor *t = NULL;
    if (PyBuffer_IsContiguous(view, 'C')) t = cn_from(c->cn, dtype, shape, view->buf);
    else {
        void *memory = PyMem_Malloc(view->len ? (size_t)view->len : 1);
        if (!memory) PyErr_NoMemory();
        else if (PyBuffer_ToContiguous(memory, view, view->len, 'C') == 0) t = cn_from(c->cn, dtype, shape, memory);
        PyMem_Free(memory);
        if (PyErr_Occurred()) return NULL;
    }
    if (!t) context_error(c);
    return t;
}

static cn_tensor *unsupported(PyObject *o, const Py_buffer *view)
{
    PyObject *dtype = PyObject_GetAttrString(o, "dtype");
    if (!dtype) PyErr_Clear();
    const bool swapped = view && view->format && (view->format[0] == '>' || view->format[0] == '<') &&
                         dtype_of_format(view->format + 1, view->itemsize) >= 0;
    if (swapped)
        PyErr_SetString(PyExc_ValueError, "given numpy array has byte order different from the native byte order; "
                                          "convert it with array.astype(array.dtype.newbyteorder('='))");
    else
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type %S. The only supported types are: float64, float32, float16, "
                     "int64, int32, int16, int8, uint8, and bool.",
                     dtype ? dtype : Py_None);
    Py_XDECREF(dtype);
    return NULL;
}

/* The array, converted to dtype unless that is -1. share: its memory is borrowed if possible. */
static cn_tensor *from_array(context *c, PyObject *o, int dtype, bool share)
{
    Py_buffer view;
    if (PyObject_GetBuffer(o, &view, PyBUF_RECORDS_RO) < 0) { /* strings, objects, dates have no buffer */
        PyErr_Clear();
        return unsupported(o, NULL);
    }
    cn_tensor *t = NULL;
    bool taken = false;
    const int own = dtype_of_format(view.format, view.itemsize);
    if (own < 0) unsupported(o, &view);
    else if (view.ndim > CN_MAX_DIMS)
        PyErr_Format(PyExc_ValueError, "too many dimensions: an array has %d, a tensor at most %d", view.ndim,
                     CN_MAX_DIMS);
    else {
        taken = share && can_borrow(&view);
        t = taken ? borrow(c, (cn_dtype)own, &view) : copy_buffer(c, (cn_dtype)own, &view);
        if (!t) taken = false;
    }
    if (!taken) PyBuffer_Release(&view);
    if (t && dtype >= 0 && dtype != own && !(t = cn_cast(t, (cn_dtype)dtype))) context_error(c);
    return t;
}

/* ---- DLPack ---- */

static cn_tensor *from_capsule(context *c, PyObject *capsule)
{
    DLManagedTensor *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (!m) {
        PyErr_Clear();
        PyErr_SetString(PyExc_RuntimeError, "from_dlpack received an invalid capsule; a capsule can be consumed once");
        return NULL;
    }
    cn_tensor *t = cn_from_dlpack(c->cn, m);
    if (!t) context_error(c);
    else if (PyCapsule_SetName(capsule, "used_dltensor") < 0) return NULL;
    return t;
}

static cn_tensor *from_dlpack(context *c, PyObject *o)
{
    if (PyCapsule_CheckExact(o)) return from_capsule(c, o);
    PyObject *capsule = PyObject_CallMethod(o, "__dlpack__", NULL);
    if (!capsule) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Format(PyExc_TypeError, "from_dlpack expects an object with __dlpack__, or a capsule, got %s",
                         Py_TYPE(o)->tp_name);
        return NULL;
    }
    cn_tensor *t = from_capsule(c, capsule);
    Py_DECREF(capsule);
    return t;
}

/* ---- anything ---- */

/* A tensor's value in another context. */
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
    if (context_enter(from) == 0) {
        COMPUTE(from, ok = cn_read(x, memory, bytes));
        if (!ok) context_error(from);
        else if (!(t = cn_from(to->cn, cn_type(x), cn_shape(x), memory))) context_error(to);
    }
    PyMem_RawFree(memory);
    return t;
}

/* The value of a tensor: in this context, of this dtype (-1: its own), without its graph. copy: in memory of its own. */
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

#define KEYWORDS(name) (PyCFunction)(void (*)(void))name, METH_VARARGS | METH_KEYWORDS

PyMethodDef convert_functions[] = {
    { "tensor", KEYWORDS(function_tensor),
      "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False): a tensor with a copy of data." },
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
