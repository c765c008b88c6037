/* data.h: what the files that make tensors of data share. Handles belong to the current scope; NULL: an exception. */
#ifndef CAIRN_PYTHON_DATA_H
#define CAIRN_PYTHON_DATA_H

#include <cairn/dlpack.h>
#include <string.h>

#include "call.h"

/* nest.c */
int is_sequence(PyObject *o);                                /* 1: o has elements; 0: it is one; -1: an exception */
cn_dtype number_dtype(PyObject *o, cn_tensor *like);         /* of a number beside a tensor, which may be NULL */
cn_tensor *from_nest(context *c, PyObject *data, int dtype); /* a number, or nested sequences; dtype -1: inferred */

/* borrow.c */
bool is_numpy(PyObject *o, const char *name); /* whether o is an instance of numpy.NAME */
int dtype_of_numpy(PyObject *o);              /* of an array or a scalar; -1: Cairn has none */
bool can_borrow(const Py_buffer *v);
cn_tensor *borrow(context *c, cn_dtype dtype, Py_buffer *view); /* takes the view over if it succeeds */
cn_tensor *copy_buffer(context *c, cn_dtype dtype, Py_buffer *view);
cn_tensor *from_array(context *c, PyObject *o, int dtype,
                      bool share);               /* dtype -1: its own; share: borrow if possible */
cn_tensor *from_dlpack(context *c, PyObject *o); /* an object with __dlpack__, or a capsule */

#endif
