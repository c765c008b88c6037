/* files.h: dicts of tensors and texts between Python and Cairn, for files and states. */
#ifndef CAIRN_PYTHON_FILES_H
#define CAIRN_PYTHON_FILES_H

#include "cairn_python.h"

/* Makes sure that a context can be used: waits for a thread that computes in it. -1: an exception is set. */
static inline int use(context *c) { return context_ready(c) ? 0 : context_refuse(c); }

PyObject *dict_to_python(context *c, const cn_dict *d);                    /* (tensors, texts), two dicts */
cn_dict *dict_from_python(context *c, PyObject *tensors, PyObject *texts); /* NULL: an exception is set */
extern PyMethodDef file_functions[]; /* files, images, random states, recomputation, profiles */

#endif
