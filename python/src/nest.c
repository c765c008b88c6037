/* nest.c: numbers and nested sequences of numbers become tensors. */
#include "data.h"

#include <math.h>

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
cn_dtype number_dtype(PyObject *o, cn_tensor *like)
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
int is_sequence(PyObject *o)
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
    else
        PyErr_Format(PyComplex_Check(o) ? PyExc_TypeError : PyExc_RuntimeError, "Could not infer dtype of %s",
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

cn_tensor *from_nest(context *c, PyObject *data, int dtype)
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
