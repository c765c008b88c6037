/* borrow.c: tensors in the memory of others: NumPy arrays, buffers, DLPack. A tensor keeps the owner of its memory
   alive. Read-only memory is copied, since an in-place form may write to a tensor. */
#include "data.h"

/* ---- element types of others ---- */

/* The dtype for a format of the buffer protocol (struct's letters); -1: there is none. */
static int dtype_of_format(const char *format, Py_ssize_t itemsize)
{
    static const struct {
        char letter;
        int8_t dtype, size;
    } letters[] = { { '?', CN_BOOL, 1 }, { 'b', CN_I8, 1 },  { 'B', CN_U8, 1 },  { 'h', CN_I16, 2 },
                    { 'i', CN_I32, 4 },  { 'l', CN_I32, 4 }, { 'l', CN_I64, 8 }, { 'q', CN_I64, 8 },
                    { 'e', CN_F16, 2 },  { 'f', CN_F32, 4 }, { 'd', CN_F64, 8 } };
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
bool is_numpy(PyObject *o, const char *name)
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
int dtype_of_numpy(PyObject *o)
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

bool can_borrow(const Py_buffer *v)
{
    bool can = !v->readonly && v->len > 0 && (uintptr_t)v->buf % (size_t)v->itemsize == 0;
    for (int d = 0; d < v->ndim && can && v->strides; d++) can = v->strides[d] >= 0 && v->strides[d] % v->itemsize == 0;
    return can;
}

/* Takes the view over if it succeeds. */
cn_tensor *borrow(context *c, cn_dtype dtype, Py_buffer *view)
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

cn_tensor *copy_buffer(context *c, cn_dtype dtype, Py_buffer *view)
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
cn_tensor *from_array(context *c, PyObject *o, int dtype, bool share)
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

cn_tensor *from_dlpack(context *c, PyObject *o)
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
