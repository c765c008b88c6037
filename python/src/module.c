/* The extension module cairn._C. */
#include "cairn_python.h"

static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, .m_name = "cairn._C",
                                         .m_doc = "Cairn's tensors and operators.", .m_size = -1 };

PyMODINIT_FUNC PyInit__C(void)
{
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(m, Py_MOD_GIL_USED); /* one thread at a time may use a context: the lock stays on */
#endif
    if (module_add_contexts(m) || module_add_dtypes(m) || module_add_size(m) || module_add_tensor(m) ||
        module_add_optim(m) || PyModule_AddFunctions(m, generated_functions) ||
        PyModule_AddFunctions(m, recurrent_functions) || PyModule_AddFunctions(m, onnx_functions) || PyModule_AddFunctions(m, convert_functions) ||
        PyModule_AddFunctions(m, autograd_functions) || PyModule_AddFunctions(m, optim_functions) ||
        PyModule_AddStringConstant(m, "__version__", cn_version())) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
