/* The type cairn.Size: the tuple of a shape. */
#include "cairn_python.h"

static PyTypeObject *size_type;

PyObject *size_of(const cn_dims *d)
{
    PyObject *t = size_type->tp_alloc(size_type, d->n);
    for (int i = 0; i < d->n && t; i++) {
        PyObject *n = PyLong_FromLongLong(d->v[i]);
        if (!n) Py_CLEAR(t);
        else PyTuple_SET_ITEM(t, i, n);
    }
    return t;
}

static PyObject *size_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self), *o = list ? PyUnicode_FromFormat("cairn.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return o;
}

static PyObject *size_numel(PyObject *self, PyObject *none)
{
    (void)none;
    long long n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(n);
}

static PyObject *as_size(PyObject *tuple)
{
    if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
    PyObject *o = PyObject_CallOneArg((PyObject *)size_type, tuple);
    Py_DECREF(tuple);
    return o;
}

static PyObject *size_item(PyObject *self, PyObject *index)
{
    return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
}

static PyObject *size_join(PyObject *a, PyObject *b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }

static PyType_Spec size_spec = { .name = "cairn.Size",
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                 .slots = (PyType_Slot[]){
                                     { Py_tp_repr, size_repr },
                                     { Py_tp_methods,
                                       (PyMethodDef[]){ { "numel", size_numel, METH_NOARGS, "The product." }, { 0 } } },
                                     { Py_mp_subscript, size_item },
                                     { Py_sq_concat, size_join },
                                     { 0, NULL } } };

int module_add_size(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyTuple_Type); /* CPython 3.9 takes no single base */
    if (!bases) return -1;
    size_type = (PyTypeObject *)PyType_FromSpecWithBases(&size_spec, bases);
    Py_DECREF(bases);
    return size_type ? PyModule_AddObjectRef(module, "Size", (PyObject *)size_type) : -1;
}
