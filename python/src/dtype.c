/* Element types as objects: cairn.float32 and the others. */
#include <string.h>

#include "cairn_python.h"

typedef struct dtype {
    PyObject_HEAD cn_dtype t;
} dtype;

PyTypeObject *dtype_type;
static PyObject *objects[CN_DTYPES];
static int float_dtype = CN_F32;

static const char *const names[CN_DTYPES] = { "bool",  "uint8",   "int8",     "int16",   "int32",
                                              "int64", "float16", "bfloat16", "float32", "float64" };
static const struct {
    const char *name;
    cn_dtype t;
} aliases[] = { { "short", CN_I16 }, { "int", CN_I32 },   { "long", CN_I64 },
                { "half", CN_F16 },  { "float", CN_F32 }, { "double", CN_F64 } };

PyObject *dtype_object(cn_dtype t) { return Py_NewRef(objects[t]); }
int default_float(void) { return float_dtype; }

int dtype_from(PyObject *o, int *t)
{
    *t = -1;
    if (!o || o == Py_None) return 0;
    if (Py_IS_TYPE(o, dtype_type)) *t = ((dtype *)o)->t;
    else if (o == (PyObject *)&PyFloat_Type) *t = float_dtype;
    else if (o == (PyObject *)&PyLong_Type) *t = CN_I64;
    else if (o == (PyObject *)&PyBool_Type) *t = CN_BOOL;
    else return PyErr_Format(PyExc_TypeError, "expected a cairn.dtype, got %s", Py_TYPE(o)->tp_name), -1;
    return 0;
}

static PyObject *repr(PyObject *self) { return PyUnicode_FromFormat("cairn.%s", names[((dtype *)self)->t]); }

static PyObject *reduce(PyObject *self, PyObject *none)
{
    (void)none;
    return PyUnicode_FromString(names[((dtype *)self)->t]); /* a global name of the module `cairn` */
}

static PyObject *is_floating_point(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(cn_dtype_is_float(((dtype *)self)->t));
}

static PyObject *is_complex(PyObject *self, void *none)
{
    (void)self, (void)none;
    Py_RETURN_FALSE;
}

static PyObject *is_signed(PyObject *self, void *none)
{
    (void)none;
    cn_dtype t = ((dtype *)self)->t;
    return PyBool_FromLong(t != CN_BOOL && t != CN_U8);
}

static PyObject *itemsize(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromSize_t(cn_dtype_size(((dtype *)self)->t));
}

static PyObject *short_name(PyObject *self, void *none)
{
    (void)none;
    return PyUnicode_FromString(cn_dtype_name(((dtype *)self)->t));
}

static PyGetSetDef properties[] = {
    { "is_floating_point", is_floating_point, NULL, "Whether it is a floating type.", NULL },
    { "is_complex", is_complex, NULL, "False: there are no complex types.", NULL },
    { "is_signed", is_signed, NULL, "Whether it has negative numbers.", NULL },
    { "itemsize", itemsize, NULL, "Bytes of an element.", NULL },
    { "_name", short_name, NULL, "Its name in C and in safetensors.", NULL },
    { 0 },
};

static PyMethodDef methods[] = { { "__reduce__", reduce, METH_NOARGS, "" }, { 0 } };

static PyType_Spec spec = { .name = "cairn.dtype",
                            .basicsize = sizeof(dtype),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = (PyType_Slot[]){ { Py_tp_repr, repr },
                                                      { Py_tp_getset, properties },
                                                      { Py_tp_methods, methods },
                                                      { Py_tp_new, NULL },
                                                      { 0, NULL } } };

static PyObject *set_default_dtype(PyObject *module, PyObject *o)
{
    (void)module;
    int t;
    if (dtype_from(o, &t)) return NULL;
    if (t < 0 || !cn_dtype_is_float((cn_dtype)t))
        return PyErr_Format(PyExc_TypeError, "only floating-point types are supported as the default type");
    float_dtype = t;
    Py_RETURN_NONE;
}

static PyObject *get_default_dtype(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return dtype_object((cn_dtype)float_dtype);
}

static PyObject *promote_types(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *a, *b;
    int x, y;
    if (!PyArg_ParseTuple(args, "OO", &a, &b) || dtype_from(a, &x) || dtype_from(b, &y)) return NULL;
    if (x < 0 || y < 0) return PyErr_Format(PyExc_TypeError, "promote_types: expects two dtypes");
    return dtype_object(cn_promote((cn_dtype)x, (cn_dtype)y));
}

static PyMethodDef functions[] = {
    { "set_default_dtype", set_default_dtype, METH_O, "Sets the dtype of new floating tensors." },
    { "get_default_dtype", get_default_dtype, METH_NOARGS, "The dtype of new floating tensors." },
    { "promote_types", promote_types, METH_VARARGS, "The smallest dtype that holds both." },
    { 0 },
};

int module_add_dtypes(PyObject *module)
{
    dtype_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!dtype_type || PyModule_AddObjectRef(module, "dtype", (PyObject *)dtype_type)) return -1;
    dtype_type->tp_new = NULL;
    PyObject *where = PyUnicode_FromString("cairn");
    if (!where || PyObject_SetAttrString((PyObject *)dtype_type, "__module__", where)) return -1;
    Py_DECREF(where);
    for (int t = 0; t < CN_DTYPES; t++) {
        dtype *d = PyObject_New(dtype, dtype_type);
        if (!d) return -1;
        d->t = (cn_dtype)t;
        objects[t] = (PyObject *)d;
        if (PyModule_AddObjectRef(module, names[t], objects[t])) return -1;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (PyModule_AddObjectRef(module, aliases[i].name, objects[aliases[i].t])) return -1;
    return PyModule_AddFunctions(module, functions);
}
