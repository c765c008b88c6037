/* call.h: how arguments of a call become C values. functions.c, which is generated, uses it for every operator. */
#ifndef CAIRN_PYTHON_CALL_H
#define CAIRN_PYTHON_CALL_H

#include "cairn_python.h"

#define MOST_PARAMETERS 20

/* How a function is called: the names of its parameters, in order. */
typedef struct parameters {
    const char *function;
    int n;            /* parameters */
    int n_positional; /* of them, those that may be passed without a name */
    int n_required;   /* of the first ones; others have defaults */
    bool collects;    /* several numbers in place of the last positional parameter are a list: x.view(2, 3) */
    const char *const *names;
    PyObject **interned; /* the same as Python strings; made by the first call */
} parameters;

/* Puts each argument at its place; those that are not given are NULL. `first` parameters are there already. If numbers
   were collected, *list is their list, to be released by the caller. */
int bind_arguments(const parameters *p, int first, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out,
                   PyObject **list);

/* A call while its arguments become C values. */
typedef struct call {
    const char *function;
    context *c;
    cn_scope scope;  /* handles that are made for the call */
    PyObject *list;  /* collected numbers */
    PyObject *owned; /* a list of objects that must live until the end of the call, or NULL */
} call;

/* Finds the context: that of the first tensor among the first n arguments, else the default one. */
int call_begin(call *k, const char *function, PyObject *const *args, int n);
int call_begin_in(call *k, const char *function, PyObject *device); /* for a function that creates a tensor */
void call_end(call *k);
PyObject *call_finish(call *k, cn_tensor *result, PyObject *const *args,
                      int n); /* wraps the result and ends the call */

int take_tensor(call *k, PyObject *o, const char *name, bool optional, PyObject *const *args, int n, cn_tensor **v);
int take_tensors(call *k, PyObject *o, const char *name, cn_tensor ***v, int *n);
int take_int(const call *k, PyObject *o, const char *name, int64_t *v);
int take_float(const call *k, PyObject *o, const char *name, double *v);
int take_floats(const call *k, PyObject *o, const char *name, int most,
                double *v); /* one number, or a list of up to most */
int take_bool(const call *k, PyObject *o, const char *name, bool *v);
int take_dims(const call *k, PyObject *o, const char *name, cn_dims *v);
int take_fixed(const call *k, PyObject *o, const char *name, int count, int64_t *v); /* one number for all, or count */
int take_some(const call *k, PyObject *o, const char *name, int most, int64_t *v);   /* up to `most` numbers */
int refuse_zero(const call *k, const char *name, const int64_t *v, int n);
int take_str(const call *k, PyObject *o, const char *name, const char **v);
int take_dtype(const call *k, PyObject *o, const char *name, cn_dtype usual, cn_dtype *v);
int take_choice(const call *k, PyObject *o, const char *name, const char *const *choices, int n, int *v);

/* Whether o is a plain number. Then *v is its value, and *x, the other operand, has a dtype that can hold it. */
bool take_number(call *k, PyObject *o, cn_tensor **x, double *v);

/* The handle of a tensor for reading: that of x.data has no graph. */
static inline cn_tensor *operand_of(PyObject *o)
{
    return ((tensor *)o)->detached ? cn_detach(handle_of(o)) : handle_of(o);
}

PyObject *many_results(call *k, const char *function, const char *const *names, cn_tensor **v, int n);
PyObject *list_of_results(call *k, cn_tensor **v, int n);
PyObject *assign_result(call *k, PyObject *self, cn_tensor *value); /* an in-place form; returns self */
PyObject *assign_value(call *k, PyObject *self, cn_tensor *value);  /* the same; the value is converted */

#endif
