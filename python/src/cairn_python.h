/* cairn_python.h: what the files of the extension module cairn._C share: contexts, tensors, errors, calls.

   A Python tensor owns one handle, which is kept as long as the object lives: a live object is the wish to keep a
   value. Every function here needs the GIL. Functions that return a PyObject * return a new reference, or NULL with an
   exception set; functions that return an int return 0, or -1 with an exception set. */
#ifndef CAIRN_PYTHON_H
#define CAIRN_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include <cairn/cairn.h>

#if PY_VERSION_HEX < 0x030a0000 /* 3.9 has no names for these yet */
static inline PyObject *Py_NewRef(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
static inline PyObject *Py_XNewRef(PyObject *o)
{
    Py_XINCREF(o);
    return o;
}
static inline int PyModule_AddObjectRef(PyObject *m, const char *name, PyObject *o)
{
    Py_XINCREF(o);
    if (o && !PyModule_AddObject(m, name, o)) return 0;
    Py_XDECREF(o);
    return -1;
}
#endif

/* ---- contexts: one for each device and thread (context.c) ---- */

typedef struct context {
    cn_ctx *cn;
    Py_ssize_t users;     /* tensors and other objects that belong to it; it is closed when the last one has gone */
    int64_t work;         /* elements that pending calls read and write, or more */
    bool alive;           /* its thread has not ended */
    bool busy;            /* a thread computes without the GIL */
    bool forked;          /* of the process that this one was forked from: not to be used */
    unsigned long thread; /* that opened it */
    cn_tensor **later;    /* handles to release when it is no longer busy */
    size_t n_later, room_later;
    char device[16];      /* "cpu", "gpu", "gpu:1" */
    struct context *next; /* of the list of all */
} context;

context *context_default(void);           /* of this thread and its default device; NULL: an exception is set */
context *context_for(const char *device); /* of this thread; "cpu", "gpu", "gpu:1" */
void context_use(context *c);             /* one more user */
void context_drop(context *c);            /* one user less */
int context_wait(context *c);             /* until no other thread computes in it */
int context_refuse(context *c);           /* what a call does if context_ready says no: -1, or it waited */
static inline bool context_ready(const context *c) { return !c->busy && !c->forked; }
/* What a call begins with: 0, or -1 and an exception if the context cannot be used. */
static inline int context_enter(context *c) { return context_ready(c) ? 0 : context_refuse(c); }
extern _Thread_local int grad_off; /* 1: this thread does not record gradients */
/* Around Python functions that the library calls while it does not record: no_grad and enable_grad work in them. */
typedef struct grad_mode {
    bool off, lowered; /* Python's switch was turned off; the context's count is one less */
} grad_mode;
grad_mode context_callback_begin(context *c);
void context_callback_end(context *c, grad_mode m);
void context_release_later(context *c, cn_tensor *handle);
void context_release_now(context *c);
PyObject *context_error(context *c); /* raises the error of the context and clears it; returns NULL */

/* Computing without the GIL: COMPUTE(c, ok = cn_eval(t)); */
#define COMPUTE(c, statement)                               \
    do {                                                    \
        (c)->busy = true;                                   \
        PyThreadState *compute_state = PyEval_SaveThread(); \
        statement;                                          \
        PyEval_RestoreThread(compute_state);                \
        (c)->busy = false;                                  \
        if ((c)->n_later) context_release_now(c);           \
    } while (0)

/* The same for what is pending. Releasing the GIL costs as much as a small computation, so for one it is kept. */
#define SMALL 4096 /* elements that a computation reads and writes */
#define EVALUATE(c, statement)                         \
    do {                                               \
        if ((c)->work >= SMALL) COMPUTE(c, statement); \
        else statement;                                \
        (c)->work = 0;                                 \
    } while (0)

/* ---- tensors (tensor.c) ---- */

typedef struct tensor {
    PyObject_HEAD cn_tensor *handle; /* kept */
    context *context;
    bool detached;          /* x.data: the handle is that of x, read without its graph, written without recording */
    PyObject *base, *index; /* x[1:3] keeps x and the index: changed in place, it changes x as well; x.data keeps x */
    unsigned version;       /* counts new values */
    unsigned seen;          /* of the base: its version when this part was taken */
    bool shared;            /* x.grad: the handle is that of a gradient, which sees new values */
    PyObject *dict, *weak;  /* attributes that a program sets; references that do not keep it alive */
} tensor;

extern PyTypeObject *tensor_type; /* cairn.Tensor */
static inline bool is_tensor(PyObject *o) { return Py_IS_TYPE(o, tensor_type) || PyObject_TypeCheck(o, tensor_type); }
void tensor_take_again(tensor *t); /* a part whose base has got a new value since */
static inline cn_tensor *handle_of(PyObject *o)
{
    tensor *t = (tensor *)o;
    if (t->base && t->index && ((tensor *)t->base)->version != t->seen) tensor_take_again(t);
    return t->handle;
}
/* The object has a new value. */
static inline void tensor_bump(PyObject *o)
{
    for (tensor *t = (tensor *)o; t; t = t->index ? NULL : (tensor *)t->base) t->version++;
}
static inline context *context_of(PyObject *o) { return ((tensor *)o)->context; }

/* A Python tensor for a new handle, which is kept. NULL becomes the exception for the context's error. */
PyObject *tensor_wrap(context *c, cn_tensor *handle);
/* The same for a function that may return one of its operands: then the result is that very object. */
PyObject *tensor_result(context *c, cn_tensor *handle, PyObject *const *operands, Py_ssize_t n);
/* The handle of o in context c: o is a tensor (of another context: copied), a number, a NumPy array or a (nested) list.
   `like` (may be NULL) gives numbers their dtype, as PyTorch's promotion does. *owned becomes an object to release. */
cn_tensor *tensor_operand(context *c, PyObject *o, cn_tensor *like, PyObject **owned);
bool tensor_is_leaf(PyObject *o);
/* data.c: numbers, and values of other contexts; the handles are in the current scope, NULL: an exception is set */
bool is_number(PyObject *o); /* of Python or NumPy; no tensor */
cn_tensor *number_tensor(context *c, PyObject *o, cn_dtype dtype);
cn_tensor *tensor_across(context *to, PyObject *o);
PyObject *tensor_item(PyObject *self);                             /* convert.c: x.item() */
PyObject *size_of(const cn_dims *d);                               /* a cairn.Size */
PyObject *tensor_from_data(context *c, PyObject *data, int dtype); /* cairn.tensor(data); dtype -1: inferred */

/* ---- callbacks: Python functions that the graph holds (autograd.c) ---- */

typedef struct callback {
    PyObject *function; /* of a hook, NULL after its removal; or the forward of a function: (tensors) -> tensor */
    PyObject *given;    /* what forward is called with; NULL for a hook, and after the call */
    PyObject *backward; /* (gradient) -> a tensor or None for each operand; NULL for a hook */
    context *c;
    int users;             /* the graph; the handle that removes a hook */
    struct callback *next; /* of those that have ended */
} callback;

void callbacks_drop_ended(void); /* releases what belongs to graphs that have ended */

/* ---- element types (dtype.c) ---- */

extern PyTypeObject *dtype_type;     /* cairn.dtype */
PyObject *dtype_object(cn_dtype t);  /* cairn.float32 ..; a new reference */
int dtype_from(PyObject *o, int *t); /* a cairn.dtype, or None: *t becomes -1; else TypeError */
int default_float(void);             /* cairn.get_default_dtype() as a cn_dtype */

/* ---- arguments (call.c) ---- */

int dims_from(PyObject *o, cn_dims *d); /* an int or a sequence of ints */
int int_from(PyObject *o, int64_t *v);  /* an int, a bool, or a tensor with one integer */
int float_from(PyObject *o, double *v);
int bool_from(PyObject *o, bool *v);

/* ---- parts of the module; each adds its functions, methods or types ---- */

extern PyMethodDef generated_functions[]; /* cairn._C.add ..: from the operators' signatures */
extern PyMethodDef recurrent_functions[]; /* cairn._C._recurrent */
extern PyMethodDef onnx_functions[];      /* cairn._C._onnx_open .. */
extern PyMethodDef generated_methods[];   /* Tensor.add ..; put into the type */
extern PyMethodDef convert_methods[], convert_functions[], autograd_functions[], autograd_methods[], optim_functions[];
int autograd_add_properties(PyTypeObject *type);
int tensor_bool(PyObject *self); /* convert.c */
PyObject *tensor_int(PyObject *self), *tensor_float(PyObject *self), *tensor_index(PyObject *self);
int tensor_contains(PyObject *self, PyObject *value);
int convert_add_properties(PyTypeObject *type);
PyObject *tensor_subscript(PyObject *self, PyObject *index); /* index.c */
int tensor_changed(PyObject *self);                          /* tensor.c: after a new value */
PyObject *tensor_item_at(PyObject *self, Py_ssize_t index);
int tensor_ass_subscript(PyObject *self, PyObject *index, PyObject *value);
int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags); /* convert.c */
void tensor_releasebuffer(PyObject *self, Py_buffer *view);
int module_add_contexts(PyObject *module); /* context.c */
int module_add_dtypes(PyObject *module);   /* dtype.c */
int module_add_size(PyObject *module);     /* size.c */
int module_add_tensor(PyObject *module);   /* tensor.c */
int module_add_optim(PyObject *module);    /* optim.c */

#endif
