/* Gradients: backward, grad, hooks, and functions with a backward of their own. */
#include "call.h"

#include <stdatomic.h>
#include <string.h>

bool tensor_is_leaf(PyObject *o)
{
    const tensor *t = (const tensor *)o;
    return t->detached || cn_is_leaf(t->handle);
}

/* ---- properties ---- */

static PyObject *get_requires_grad(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(!((tensor *)self)->detached && cn_requires_grad(handle_of(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value, void *none)
{
    (void)none;
    int on = value ? PyObject_IsTrue(value) : 0;
    context *c = context_of(self);
    if (on < 0 || (!context_ready(c) && context_refuse(c))) return -1;
    if ((bool)on == cn_requires_grad(handle_of(self))) return 0;
    if (!tensor_is_leaf(self)) {
        PyErr_SetString(PyExc_RuntimeError, "you can only change requires_grad flags of leaf variables.");
        return -1;
    }
    if (on && !cn_dtype_is_float(cn_type(handle_of(self)))) {
        PyErr_SetString(PyExc_RuntimeError, "only Tensors of floating point dtype can require gradients");
        return -1;
    }
    if (cn_set_requires_grad(handle_of(self), on)) return 0;
    context_error(c);
    return -1;
}

/* The gradient of a result that retain_grad asked for is an attribute. Borrowed; NULL: there is none. */
static PyObject *retained(PyObject *self)
{
    PyObject *dict = ((tensor *)self)->dict;
    return dict && !tensor_is_leaf(self) ? PyDict_GetItemString(dict, "_retained_grad") : NULL;
}

static PyObject *get_grad(PyObject *self, void *none)
{
    (void)none;
    context *c = context_of(self);
    if (((tensor *)self)->detached) Py_RETURN_NONE;
    PyObject *kept = retained(self);
    if (kept) return Py_NewRef(kept);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    cn_tensor *g = cn_grad_of(handle_of(self));
    if (g) {
        PyObject *o = tensor_wrap(c, g);
        if (o) ((tensor *)o)->shared = true;
        return o;
    }
    cn_error_clear(c->cn);
    Py_RETURN_NONE;
}

static int set_grad(PyObject *self, PyObject *value, void *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return -1;
    if (value && value != Py_None && !is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "assigned grad has type %s, but must be a Tensor or None",
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    if (retained(self)) return PyDict_SetItemString(((tensor *)self)->dict, "_retained_grad", value ? value : Py_None);
    cn_tensor *old = cn_grad_of(handle_of(self));
    cn_error_clear(c->cn);
    if (value && value != Py_None && old && old == handle_of(value)) return 0;
    if (!value || value == Py_None) {
        cn_zero_grad(handle_of(self));
        return 0;
    }
    call k;
    cn_tensor *g;
    if (call_begin(&k, "grad", &self, 1)) return -1;
    bool ok = !take_tensor(&k, value, "grad", false, &value, 1, &g);
    if (ok) {
        cn_zero_grad(handle_of(self));
        ok = cn_backward_with(handle_of(self), &(cn_backward_desc){ .gradient = cn_detach(g) });
        if (!ok) context_error(c);
    }
    call_end(&k);
    return ok ? 0 : -1;
}

static PyObject *get_is_leaf(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(tensor_is_leaf(self));
}

static PyObject *get_grad_fn(PyObject *self, void *none)
{
    (void)none;
    if (((tensor *)self)->detached || !cn_requires_grad(handle_of(self)) || tensor_is_leaf(self)) Py_RETURN_NONE;
    return PyUnicode_FromString("<Backward>");
}

static PyGetSetDef properties[] = {
    { "requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are computed for it.", NULL },
    { "grad", get_grad, set_grad, "The sum of its gradients so far, or None.", NULL },
    { "is_leaf", get_is_leaf, NULL, "Whether it is no result of a recorded operation.", NULL },
    { "grad_fn", get_grad_fn, NULL, "What computed it, as text, or None.", NULL },
    { 0 },
};

int autograd_add_properties(PyTypeObject *type)
{
    for (PyGetSetDef *p = properties; p->name; p++) {
        PyObject *d = PyDescr_NewGetSet(type, p);
        if (!d || PyObject_SetAttrString((PyObject *)type, p->name, d)) return -1;
        Py_DECREF(d);
    }
    return 0;
}

/* ---- backward ---- */

/* Functions to call when the backward that is being computed has ended: a list, or NULL if there are none. */
static PyObject *after;

static PyObject *after_backward(PyObject *module, PyObject *function)
{
    (void)module;
    if (!after && !(after = PyList_New(0))) return NULL;
    if (PyList_Append(after, function)) return NULL;
    Py_RETURN_NONE;
}

/* Calls the functions of a list, and releases it. */
static bool call_each(PyObject *functions)
{
    bool ok = true;
    for (Py_ssize_t i = 0; functions && ok && i < PyList_GET_SIZE(functions); i++) {
        PyObject *y = PyObject_CallNoArgs(PyList_GET_ITEM(functions, i));
        ok = y;
        Py_XDECREF(y);
    }
    Py_XDECREF(functions);
    return ok;
}

static PyObject *backward(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "gradient", "retain_graph", "create_graph", "inputs", NULL };
    PyObject *gradient = Py_None, *retain = Py_None, *inputs = Py_None;
    int create = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpO:backward", names, &gradient, &retain, &create, &inputs))
        return NULL;
    if (inputs != Py_None) {
        PyObject *module = PyImport_ImportModule("cairn.autograd");
        PyObject *done = module ? PyObject_CallMethod(module, "backward", "OOOOOO", self, gradient, retain,
                                                      create ? Py_True : Py_False, Py_None, inputs)
                                : NULL;
        Py_XDECREF(module);
        return done;
    }
    call k;
    if (call_begin(&k, "backward", &self, 1)) return NULL;
    cn_backward_desc desc = { .create_graph = create };
    int kept = retain == Py_None ? create : PyObject_IsTrue(retain);
    desc.retain = kept > 0;
    bool ok = kept >= 0 && !take_tensor(&k, gradient, "gradient", true, &self, 1, &desc.gradient);
    if (ok && !desc.gradient && cn_numel(handle_of(self)) != 1) {
        PyErr_SetString(PyExc_RuntimeError, "grad can be implicitly created only for scalar outputs");
        ok = false;
    }
    if (ok && (((tensor *)self)->detached || !cn_requires_grad(handle_of(self)))) {
        PyErr_SetString(PyExc_RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn");
        ok = false;
    }
    k.c->work += SMALL; /* as much again as was computed so far, perhaps long ago */
    PyObject *outer = after; /* of a backward whose hook calls this one */
    after = NULL;
    if (ok && !cn_backward_with(handle_of(self), &desc)) context_error(k.c), ok = false;
    if (PyErr_Occurred()) ok = false; /* of a function's own backward, which cannot say that it failed */
    call_end(&k);
    PyObject *mine = after;
    after = outer;
    if (ok) ok = call_each(mine);
    else Py_XDECREF(mine);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

/* _grad(outputs, inputs, gradients or None, retain, create, allow_unused): a tuple, with None for unused inputs. */
static PyObject *grad(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *outputs, *inputs, *gradients;
    int retain, create, unused;
    if (!PyArg_ParseTuple(args, "O!O!Oppp", &PyTuple_Type, &outputs, &PyTuple_Type, &inputs, &gradients, &retain,
                          &create, &unused))
        return NULL;
    call k;
    PyObject *both[2] = { outputs, inputs };
    if (call_begin(&k, "grad", both, 2)) return NULL;
    cn_tensor **out, **in, **given = NULL, **found;
    int n_out, n_in, n_given = 0;
    PyObject *result = NULL, *memory = NULL;
    if (take_tensors(&k, outputs, "outputs", &out, &n_out) || take_tensors(&k, inputs, "inputs", &in, &n_in)) goto end;
    if (gradients != Py_None && take_tensors(&k, gradients, "grad_outputs", &given, &n_given)) goto end;
    if (given && n_given != n_out) {
        PyErr_Format(PyExc_ValueError, "got %d outputs and %d grad_outputs", n_out, n_given);
        goto end;
    }
    memory = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof *found * (n_in + 1));
    if (!memory) goto end;
    found = (cn_tensor **)(void *)PyBytes_AS_STRING(memory);
    memset(found, 0, sizeof *found * (size_t)(n_in + 1));
    cn_grad_desc desc = { .gradients = given, .retain = retain, .create_graph = create, .allow_unused = unused };
    k.c->work += SMALL;
    if (!cn_grad(out, n_out, in, n_in, found, &desc)) {
        context_error(k.c);
        goto end;
    }
    if (PyErr_Occurred()) goto end; /* of a function's own backward */
    result = PyTuple_New(n_in);
    for (int i = 0; i < n_in && result; i++) {
        PyObject *o = found[i] ? tensor_wrap(k.c, found[i]) : Py_NewRef(Py_None);
        if (!o) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, o);
    }
end:
    Py_XDECREF(memory);
    call_end(&k);
    return result;
}

static PyObject *requires_grad_(PyObject *self, PyObject *args)
{
    int on = 1;
    if (!PyArg_ParseTuple(args, "|p:requires_grad_", &on)) return NULL;
    if (set_requires_grad(self, on ? Py_True : Py_False, NULL)) return NULL;
    return Py_NewRef(self);
}

static PyObject *detach_(PyObject *self, PyObject *none)
{
    (void)none;
    tensor *t = (tensor *)self;
    context *c = t->context;
    if (!context_ready(c) && context_refuse(c)) return NULL;
    cn_scope s = cn_scope_begin(c->cn);
    cn_tensor *h = cn_detach(t->handle);
    if (h && cn_keep(h)) {
        cn_release(t->handle);
        t->handle = h;
        Py_INCREF(self);
    } else {
        context_error(c);
        self = NULL;
    }
    cn_scope_end(c->cn, s);
    return self;
}

/* A handle of the current scope for the same value: that of a Python object ends with the object. */
static cn_tensor *another_handle(cn_tensor *t) { return cn_view(t, cn_shape(t)); }

/* ---- callbacks: what the graph holds of Python ---- */

/* A graph may end while a context computes without the GIL. Callbacks that have ended wait here for a call with it. */
static _Atomic(callback *) ended;

static void callback_ended(void *user)
{
    callback *f = user, *first = atomic_load(&ended);
    do f->next = first;
    while (!atomic_compare_exchange_weak(&ended, &first, f));
}

static void callback_drop(callback *f)
{
    if (--f->users) return;
    Py_XDECREF(f->function);
    Py_XDECREF(f->backward);
    PyMem_Free(f);
}

/* What a callback holds may hold others: they are dropped one after the other, not one inside the other. */
void callbacks_drop_ended(void)
{
    static bool dropping;
    if (dropping || !atomic_load_explicit(&ended, memory_order_relaxed)) return;
    dropping = true;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (callback *f; (f = atomic_exchange(&ended, NULL)) != NULL;)
        while (f) {
            callback *next = f->next;
            callback_drop(f);
            f = next;
        }
    PyErr_Restore(type, value, trace);
    dropping = false;
}

static callback *callback_new(context *c, PyObject *function, PyObject *backward_)
{
    callback *f = PyMem_Calloc(1, sizeof *f);
    if (!f) return PyErr_NoMemory(), NULL;
    *f = (callback){ .function = Py_NewRef(function), .backward = Py_XNewRef(backward_), .c = c, .users = 1 };
    return f;
}

/* ---- hooks ---- */

static cn_tensor *run_hook(void *user, cn_tensor *g)
{
    callback *h = user;
    if (!h->function || PyErr_Occurred()) return g;
    PyObject *x = tensor_wrap(h->c, g);
    const grad_mode mode = context_callback_begin(h->c);
    PyObject *y = x ? PyObject_CallOneArg(h->function, x) : NULL;
    context_callback_end(h->c, mode);
    cn_tensor *result = NULL;
    if (y == Py_None) result = g;
    else if (y && is_tensor(y)) result = handle_of(y);
    else if (y) PyErr_Format(PyExc_TypeError, "hooks must return a Tensor or None, not %s", Py_TYPE(y)->tp_name);
    if (result && result != g) result = another_handle(result);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static void free_place(PyObject *capsule) { callback_drop(PyCapsule_GetPointer(capsule, "cairn.hook")); }

static PyObject *add_hook(PyObject *self, PyObject *function)
{
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    if (!PyCallable_Check(function)) return PyErr_Format(PyExc_TypeError, "a hook must be callable");
    if (!cn_requires_grad(handle_of(self)))
        return PyErr_Format(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    callback *h = callback_new(c, function, NULL);
    PyObject *place = h ? PyCapsule_New(h, "cairn.hook", free_place) : NULL;
    if (!place) {
        if (h) callback_drop(h);
        return NULL;
    }
    h->users++;
    if (cn_add_hook_until(handle_of(self), run_hook, h, callback_ended)) return place;
    h->users--;
    Py_DECREF(place);
    return context_error(c);
}

static PyObject *remove_hook(PyObject *module, PyObject *capsule)
{
    (void)module;
    callback *h = PyCapsule_GetPointer(capsule, "cairn.hook");
    if (!h) return NULL;
    Py_CLEAR(h->function);
    Py_RETURN_NONE;
}

/* ---- functions with a backward of their own ---- */

static PyObject *wrap_all(context *c, cn_tensor *const *in, int n)
{
    PyObject *all = PyTuple_New(n);
    for (int i = 0; i < n && all; i++) {
        PyObject *o = tensor_wrap(c, in[i]);
        if (!o) Py_CLEAR(all);
        else PyTuple_SET_ITEM(all, i, o);
    }
    return all;
}

static cn_tensor *custom_forward(void *user, cn_tensor *const *in, int n)
{
    (void)in, (void)n;
    callback *f = user;
    const grad_mode mode = context_callback_begin(f->c);
    PyObject *y = PyObject_CallOneArg(f->function, f->given);
    context_callback_end(f->c, mode);
    cn_tensor *result = NULL;
    if (y && is_tensor(y)) result = another_handle(handle_of(y));
    else if (y) PyErr_Format(PyExc_TypeError, "forward must return a Tensor, not %s", Py_TYPE(y)->tp_name);
    Py_XDECREF(y);
    return result;
}

static void custom_backward(void *user, cn_tensor *const *in, int n, cn_tensor *out, cn_tensor *g, cn_tensor **grads)
{
    (void)in, (void)out;
    callback *f = user;
    if (PyErr_Occurred()) return;
    PyObject *x = tensor_wrap(f->c, g);
    const grad_mode mode = context_callback_begin(f->c);
    PyObject *y = x ? PyObject_CallOneArg(f->backward, x) : NULL;
    context_callback_end(f->c, mode);
    Py_XDECREF(x);
    PyObject *list = !y ? NULL : PyTuple_Check(y) ? Py_NewRef(y) : PyTuple_Pack(1, y);
    for (int i = 0; i < n && list && i < PyTuple_GET_SIZE(list); i++) {
        PyObject *o = PyTuple_GET_ITEM(list, i);
        if (is_tensor(o)) grads[i] = another_handle(handle_of(o));
    }
    Py_XDECREF(y);
    Py_XDECREF(list);
}

/* A hook that changes nothing: it tells when the graph of a function with a backward of its own has ended. */
static cn_tensor *same(void *user, cn_tensor *g)
{
    (void)user;
    return g;
}

/* _custom(inputs, forward, backward): forward(inputs) now, backward(gradient) when gradients are asked for. */
static PyObject *custom_apply(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *inputs, *forward, *backward_;
    if (!PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &inputs, &forward, &backward_)) return NULL;
    call k;
    if (call_begin(&k, "Function.apply", &inputs, 1)) return NULL;
    cn_tensor **in;
    int n;
    PyObject *result = NULL;
    callback *f = callback_new(k.c, forward, backward_);
    if (f && !take_tensors(&k, inputs, "inputs", &in, &n) && (f->given = wrap_all(k.c, in, n))) {
        /* forward gets the operands themselves, the graph other handles: an operand that is changed keeps its graph */
        for (int i = 0; i < n; i++) in[i] = another_handle(in[i]);
        cn_tensor *y = cn_custom_apply(&(cn_custom){ custom_forward, custom_backward, f }, in, n);
        Py_CLEAR(f->given);
        result = tensor_wrap(k.c, y);
        if (result && cn_requires_grad(y)) {
            f->users++;
            if (!cn_add_hook_until(y, same, f, callback_ended)) {
                f->users--;
                Py_CLEAR(result);
                context_error(k.c);
            }
        }
    }
    if (f) callback_drop(f);
    call_end(&k);
    return result;
}

PyMethodDef autograd_methods[] = {
    { "backward", (PyCFunction)(void (*)(void))backward, METH_VARARGS | METH_KEYWORDS,
      "backward(gradient=None, retain_graph=None, create_graph=False): gradients of the leaves." },
    { "requires_grad_", requires_grad_, METH_VARARGS, "requires_grad_(on=True): returns the tensor." },
    { "detach_", detach_, METH_NOARGS, "Cuts the tensor off from its graph; returns it." },
    { "_add_hook", add_hook, METH_O, "" },
    { 0 },
};

PyMethodDef autograd_functions[] = {
    { "_grad", grad, METH_VARARGS, "" },
    { "_remove_hook", remove_hook, METH_O, "" },
    { "_after_backward", after_backward, METH_O, "" },
    { "_custom", custom_apply, METH_VARARGS, "" },
    { 0 },
};
