/* module.c: the extension module cairn._micrograd. */
#include "micrograd.h"

/* propagate(values): backward from values whose gradients are there already, as those that a ValueBatch hands back. */
static PyObject *propagate(PyObject *Py_UNUSED(module), PyObject *values)
{
    PyObject *sequence = PySequence_Fast(values, "propagate takes a sequence of Values");
    if (!sequence) return NULL;
    PyObject **item = PySequence_Fast_ITEMS(sequence);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    int failed = 0;
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        failed = !is_value(item[i]);
        if (failed) PyErr_Format(PyExc_TypeError, "propagate takes Values, got %s", Py_TYPE(item[i])->tp_name);
    }
    if (!failed) failed = backward((value *const *)item, n, false);
    Py_DECREF(sequence);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static PyObject *alive(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("nn", values_alive, runs_alive);
}

static PyMethodDef functions[] = {
    { "propagate", propagate, METH_O, "backward from values whose gradients are there already" },
    { "alive", alive, METH_NOARGS, "how many values and runs of layers are in memory" },
    { NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cairn._micrograd",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__micrograd(void)
{
    PyObject *module = PyModule_Create(&definition);
    helpers = PyDict_New();
    if (!module || !helpers || PyModule_AddObject(module, "helpers", Py_NewRef(helpers))) return NULL;
    return value_type_make(module) && layer_types_make(module) == 0 ? module : NULL;
}
