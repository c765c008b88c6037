/* Weak places for parts that other files bring. */
#include "call.h"
__attribute__((weak)) PyMethodDef convert_methods[1], convert_functions[1], optim_functions[1];
__attribute__((weak)) PyObject *tensor_subscript(PyObject *s,PyObject *i){(void)s;(void)i;PyErr_SetString(PyExc_NotImplementedError,"x");return NULL;}
__attribute__((weak)) int tensor_ass_subscript(PyObject *s,PyObject *i,PyObject*v){(void)s;(void)i;(void)v;return -1;}
__attribute__((weak)) int tensor_getbuffer(PyObject *s,Py_buffer*v,int f){(void)s;(void)v;(void)f;return -1;}
__attribute__((weak)) void tensor_releasebuffer(PyObject *s,Py_buffer*v){(void)s;(void)v;}
__attribute__((weak)) int module_add_optim(PyObject*m){(void)m;return 0;}
__attribute__((weak)) int tensor_bool(PyObject*s){return cn_item(handle_of(s))!=0;}
__attribute__((weak)) PyObject*tensor_int(PyObject*s){return PyLong_FromDouble(cn_item(handle_of(s)));}
__attribute__((weak)) PyObject*tensor_float(PyObject*s){return PyFloat_FromDouble(cn_item(handle_of(s)));}
__attribute__((weak)) PyObject*tensor_index(PyObject*s){return tensor_int(s);}
__attribute__((weak)) cn_tensor *tensor_operand(context *c, PyObject *o, cn_tensor *like, PyObject **owned){(void)owned;(void)like; double v; if(float_from(o,&v))return NULL; return cn_scalar(c->cn, PyFloat_Check(o)?CN_F32:CN_I64, v);}
__attribute__((weak)) PyObject *tensor_from_data(context *c, PyObject *data, int dtype){(void)c;(void)data;(void)dtype;PyErr_SetString(PyExc_NotImplementedError,"x");return NULL;}
