/* micrograd.h: what the files of the extension module cairn._micrograd share: values, and the runs of layers.

   A *value* is one number with its gradient: a Python object that is its own node of the graph, with an operation and
   at most two operands. It needs no tensor, no context and no memory but its own 88 bytes.

   A *run* is one call of a layer. Between the inputs and the outputs of a layer lie hundreds of products and sums that
   hardly any program looks at, so a run keeps the outputs only: rows of doubles, not objects. Its weights are a
   *block*, which all runs of the layer share. An output that a program holds is a value with the operation ROW. As
   soon as a program asks for what lies behind it (._prev), *expanding* puts the products and sums in its place, with
   the numbers and gradients they would have.

   Everything here needs the GIL. Functions that return an int return 0, or -1 with an exception set. */
#ifndef CAIRN_MICROGRAD_H
#define CAIRN_MICROGRAD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#if PY_VERSION_HEX < 0x030A0000 /* Python 3.9 */
static inline PyObject *Py_NewRef(PyObject *o) { return Py_INCREF(o), o; }
static inline PyObject *Py_XNewRef(PyObject *o) { return Py_XINCREF(o), o; }
#endif

/* ---- values (value.c) ---- */

enum {
    LEAF,
    ADD,
    MUL,
    POW,
    POWER,
    RELU,
    TANH,
    EXP,
    LOG,
    SIGMOID,
    ROW,
    CUSTOM
}; /* POW: by a number; POWER: by a value */

enum {
    WHOLE_DATA = 1, /* the number came from Python ints alone and is shown as one */
    WHOLE_GRAD = 2,
    HOOKED = 4,  /* ._backward is the program's own function; it is in the dict */
    TRACKED = 8, /* the garbage collector knows it: it may be part of a cycle */
};

typedef struct run run;

typedef struct value {
    PyObject_HEAD double data, grad;
    union {
        struct value *a;
        run *run;           /* ROW */
        PyObject *children; /* CUSTOM: a tuple of values */
    };
    union {
        struct value *b;
        double number;  /* POW: the exponent */
        Py_ssize_t row; /* ROW */
        PyObject *name; /* CUSTOM: ._op */
    };
    PyObject *dict, *weak;
    uint64_t mark : 44; /* the last backward that has reached it */
    uint64_t op : 8;
    uint64_t whole_exponent : 1;
    uint64_t flags : 8;
} value;

extern PyTypeObject *value_type; /* cairn.micrograd.Value */
extern uint64_t data_version;    /* counts assignments to .data: equal versions, equal weights */
extern Py_ssize_t values_alive, runs_alive;

static inline bool is_value(PyObject *o) { return Py_IS_TYPE(o, value_type) || PyObject_TypeCheck(o, value_type); }
static inline bool is_whole(const value *v) { return v->flags & WHOLE_DATA; }

value *value_leaf(double data, bool whole);
value *value_node(double data, bool whole, int op, value *a, value *b); /* b may be NULL */
void value_track(value *v);
int value_backward(value *v);                              /* its own step: what the operands gain from v->grad */
int number_from(PyObject *o, double *number, bool *whole); /* 1: a number; 0: something else; -1: an exception */
PyObject *helper(const char *name);                        /* a function of the Python part, by its name; borrowed */
extern PyObject *helpers;                                  /* the dict of them */
PyObject *value_type_make(PyObject *module);

static inline void add_grad(value *v, double grad, bool whole)
{
    v->grad += grad;
    if (!whole) v->flags &= ~WHOLE_GRAD;
}

/* ---- the walk backwards (backward.c) ---- */

int backward(value *const *roots, Py_ssize_t n, bool seed); /* seed: roots' gradients become 1 first */

/* ---- runs of layers (layer.c) ---- */

typedef struct weights { /* the numbers of a block at one time; runs keep those they were computed with */
    Py_ssize_t refs;
    uint64_t version; /* data_version when they were last found equal to the values */
    double number[];  /* (nin + 1, nout): the biases, then a row for each input */
} weights;

typedef struct block { /* the parameters of a layer as they were when it was called */
    Py_ssize_t refs, nin, nout;
    uint64_t mark;
    weights *now;
    double *grad;          /* (nin + 1, nout): of one backward; zeros between two */
    bool whole_w, whole_b; /* what has arrived in grad consists of whole numbers */
    value **parameter;     /* (nout, nin + 1): as Neuron.parameters() has them, the bias last */
    bool *nonlin;          /* (nout) */
} block;

struct run {
    Py_ssize_t refs;
    uint64_t mark;    /* the last backward that has reached it */
    uint64_t through; /* the last backward that has reached all its rows, through the next run */
    bool passed;      /* a backward has gone through it */
    block *block;
    weights *weights;
    run *before;                /* the run whose rows are the inputs; or NULL: */
    value **inputs;             /* (nin) */
    value **made;               /* (nout): the objects of the rows, NULL where there is none; owned if expanded */
    double *out, *grad, *delta; /* (nout); delta: the gradient behind the nonlinearity */
    uint8_t *state;             /* (nout) */
};

enum { /* of a row */
       ROW_EXPANDED = 1,
       ROW_PASSED = 2,
       ROW_WHOLE = 4, /* relu of a negative number is the int 0 */
       ROW_WHOLE_DELTA = 8,
};

bool run_passed(const run *r);
void run_release(run *r);
void run_drop_row(value *v); /* the object of a row dies: the run goes on without it */
int run_expand(value *v);    /* v, a ROW, becomes what lies behind it */
const char *run_row_op(const value *v);
int run_backward(run *r, uint64_t pass);
void block_backward(block *b);
void block_forget(block *b); /* what has arrived in its grad */
int layer_types_make(PyObject *module);

#endif
