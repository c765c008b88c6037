/* The type cairn.Tensor: objects, numbers' operators, properties. */
#include "call.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#define FREE_LIST 256 /* objects that are kept for the next tensors */

PyTypeObject *tensor_type;
static tensor *free_list[FREE_LIST];
static int n_free;
static PyObject *python_parts; /* functions that the Python files set: repr, device, .. */

/* ---- objects ---- */

static tensor *new_object(PyTypeObject *type, context *c, cn_tensor *handle)
{
    tensor *t;
    if (type == tensor_type && n_free) {
        t = (tensor *)PyObject_Init((PyObject *)free_list[--n_free], type);
        PyObject_GC_Track(t);
    } else {
        t = (tensor *)type->tp_alloc(type, 0);
        if (!t) return NULL;
    }
    t->handle = handle;
    t->context = c;
    t->detached = t->shared = false;
    t->base = t->index = t->dict = t->weak = NULL;
    t->version = t->seen = 0;
    context_use(c);
    return t;
}

PyObject *tensor_wrap(context *c, cn_tensor *handle)
{
    if (!handle || !cn_keep(handle)) return context_error(c);
    c->work += cn_numel(handle);
    tensor *t = new_object(tensor_type, c, handle);
    if (!t) cn_release(handle);
    return (PyObject *)t;
}

PyObject *tensor_result(context *c, cn_tensor *handle, PyObject *const *operands, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n && handle; i++)
        if (operands[i] && is_tensor(operands[i]) && handle_of(operands[i]) == handle) return Py_NewRef(operands[i]);
    return tensor_wrap(c, handle);
}

/* An object of a subclass with the same value: nn.Parameter. */
static PyObject *make_subclass(PyObject *module, PyObject *args)
{
    (void)module;
    PyTypeObject *type;
    PyObject *from;
    int requires_grad;
    if (!PyArg_ParseTuple(args, "O!O!p", &PyType_Type, &type, tensor_type, &from, &requires_grad)) return NULL;
    context *c = context_of(from);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    cn_scope s = cn_scope_begin(c->cn);
    PyObject *o = NULL;
    cn_tensor *leaf = cn_detach(handle_of(from));
    if (leaf && requires_grad) {
        leaf = cn_param(leaf); /* kept */
    } else if (leaf) {
        leaf = cn_keep(leaf);
    }
    if (!leaf) context_error(c);
    else if (!(o = (PyObject *)new_object(type, c, leaf))) cn_release(leaf);
    cn_scope_end(c->cn, s);
    return o;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((tensor *)self)->dict);
    Py_VISIT(((tensor *)self)->base);
    Py_VISIT(((tensor *)self)->index);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((tensor *)self)->dict);
    Py_CLEAR(((tensor *)self)->base);
    Py_CLEAR(((tensor *)self)->index);
    return 0;
}

static void dealloc(PyObject *self)
{
    tensor *t = (tensor *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (t->weak) PyObject_ClearWeakRefs(self);
    Py_CLEAR(t->dict);
    Py_CLEAR(t->base);
    Py_CLEAR(t->index);
    context *c = t->context;
    if (t->handle && c && !c->forked) {
        if (c->busy) { /* another thread computes: the handle is released later */
            context_release_later(c, t->handle);
        } else {
            cn_release(t->handle);
        }
    }
    t->handle = NULL;
    if (c) context_drop(c);
    if (type == tensor_type && n_free < FREE_LIST) free_list[n_free++] = t;
    else type->tp_free(self);
    Py_DECREF(type);
    callbacks_drop_ended();
}

static PyObject *new_tensor(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *data = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL;
    context *c = context_default();
    if (!c) return NULL;
    PyObject *made;
    if (PyTuple_GET_SIZE(args) == 0) {
        cn_scope s = cn_scope_begin(c->cn);
        made = tensor_wrap(c, cn_zeros(c->cn, (cn_dtype)default_float(), CN_DIMS(0)));
        cn_scope_end(c->cn, s);
    } else if (data && !PyLong_Check(data)) {
        made = is_tensor(data) ? Py_NewRef(data) : tensor_from_data(c, data, default_float());
    } else { /* Tensor(2, 3): sizes; the values are not set, here they are 0 */
        cn_dims d;
        if (dims_from(args, &d)) return NULL;
        cn_scope s = cn_scope_begin(c->cn);
        made = tensor_wrap(c, cn_zeros(c->cn, (cn_dtype)default_float(), d));
        cn_scope_end(c->cn, s);
    }
    if (!made || type == tensor_type) return made;
    PyObject *all = Py_BuildValue("(OOi)", type, made, 0), *own = all ? make_subclass(NULL, all) : NULL;
    Py_XDECREF(all);
    Py_DECREF(made);
    return own;
}

/* ---- operators ---- */

typedef cn_tensor *(*of_two)(cn_tensor *, cn_tensor *);
typedef cn_tensor *(*of_number)(cn_tensor *, double);

static PyObject *slow_binary(const char *name, PyObject *a, PyObject *b, of_two two)
{
    call k;
    PyObject *operands[2] = { a, b };
    if (call_begin(&k, name, operands, 2)) return NULL;
    cn_tensor *x, *y;
    if (take_tensor(&k, a, "input", false, operands, 2, &x) || take_tensor(&k, b, "other", false, operands, 2, &y)) {
        call_end(&k);
        return NULL;
    }
    PyObject *o = tensor_wrap(k.c, two(x, y));
    call_end(&k);
    return o;
}

static bool is_operand(PyObject *o)
{
    return is_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || (PyNumber_Check(o) && !PyType_Check(o));
}

/* number: x with a number on the right; reversed: with one on the left; NULL: the number becomes a tensor. */
static PyObject *binary(const char *name, PyObject *a, PyObject *b, of_two two, of_number number, of_number reversed)
{
    const bool first = is_tensor(a), second = is_tensor(b);
    if (first && second) {
        context *c = context_of(a);
        if (c != context_of(b) || !context_ready(c) || ((tensor *)a)->detached || ((tensor *)b)->detached)
            return slow_binary(name, a, b, two);
        cn_scope s = cn_scope_begin(c->cn);
        c->work += cn_numel(handle_of(a)) + cn_numel(handle_of(b));
        PyObject *o = tensor_wrap(c, two(handle_of(a), handle_of(b)));
        cn_scope_end(c->cn, s);
        return o;
    }
    if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *t = first ? a : b, *other = first ? b : a;
    of_number f = first ? number : reversed;
    context *c = context_of(t);
    if (f && (context_ready(c) || !context_refuse(c))) {
        double v;
        cn_scope s = cn_scope_begin(c->cn);
        cn_tensor *x = operand_of(t);
        call k = { .function = name, .c = c };
        if (take_number(&k, other, &x, &v)) {
            PyObject *o = tensor_wrap(c, f(x, v));
            cn_scope_end(c->cn, s);
            return o;
        }
        cn_scope_end(c->cn, s);
    }
    if (PyErr_Occurred()) return NULL;
    return slow_binary(name, a, b, two);
}

#define BINARY(name, number, reversed) \
    static PyObject *op_##name(PyObject *a, PyObject *b) { return binary(#name, a, b, cn_##name, number, reversed); }
BINARY(add, cn_add_s, cn_add_s)
BINARY(sub, cn_sub_s, cn_rsub_s)
BINARY(mul, cn_mul_s, cn_mul_s)
BINARY(div, cn_div_s, cn_rdiv_s)
BINARY(floor_div, cn_floor_div_s, NULL)
BINARY(remainder, cn_remainder_s, NULL)
BINARY(bitwise_and, cn_bitwise_and_s, cn_bitwise_and_s)
BINARY(bitwise_or, cn_bitwise_or_s, cn_bitwise_or_s)
BINARY(bitwise_xor, cn_bitwise_xor_s, cn_bitwise_xor_s)
BINARY(shift_left, cn_shift_left_s, NULL)
BINARY(shift_right, cn_shift_right_s, NULL)
BINARY(matmul, NULL, NULL)
BINARY(eq, cn_eq_s, cn_eq_s)
BINARY(ne, cn_ne_s, cn_ne_s)
BINARY(lt, cn_lt_s, cn_gt_s)
BINARY(le, cn_le_s, cn_ge_s)
BINARY(gt, cn_gt_s, cn_lt_s)
BINARY(ge, cn_ge_s, cn_le_s)

static PyObject *op_pow(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() of tensors has no modulus");
    return binary("pow", a, b, cn_pow, cn_pow_s, cn_rpow_s);
}

static PyObject *compare(PyObject *a, PyObject *b, int how)
{
    static const binaryfunc f[] = {
        [Py_LT] = op_lt, [Py_LE] = op_le, [Py_EQ] = op_eq, [Py_NE] = op_ne, [Py_GT] = op_gt, [Py_GE] = op_ge
    };
    return f[how](a, b);
}

static PyObject *unary(PyObject *self, cn_tensor *(*f)(cn_tensor *))
{
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    cn_scope s = cn_scope_begin(c->cn);
    c->work += cn_numel(handle_of(self));
    PyObject *o = tensor_wrap(c, f(operand_of(self)));
    cn_scope_end(c->cn, s);
    return o;
}

static PyObject *op_neg(PyObject *self) { return unary(self, cn_neg); }
static PyObject *op_abs(PyObject *self) { return unary(self, cn_abs); }
static PyObject *op_pos(PyObject *self) { return Py_NewRef(self); }
static PyObject *op_invert(PyObject *self)
{
    return unary(self, cn_type(handle_of(self)) == CN_BOOL ? cn_logical_not : cn_bitwise_not);
}

/* x += y: the object gets a new value. */
static PyObject *in_place(const char *name, PyObject *a, PyObject *b, PyObject *(*f)(PyObject *, PyObject *))
{
    if (!((tensor *)a)->detached && !grad_off && cn_requires_grad(handle_of(a)) && tensor_is_leaf(a))
        return PyErr_Format(PyExc_RuntimeError,
                            "%s: a leaf Tensor that requires grad is being used in an in-place operation.", name);
    PyObject *value = f(a, b);
    if (!value || value == Py_NotImplemented) return value;
    call k;
    if (call_begin(&k, name, &a, 1)) return Py_DECREF(value), NULL;
    PyObject *o = assign_result(&k, a, handle_of(value));
    Py_DECREF(value);
    return o;
}

#define IN_PLACE(name) \
    static PyObject *in_place_##name(PyObject *a, PyObject *b) { return in_place(#name "_", a, b, op_##name); }
IN_PLACE(add)
IN_PLACE(sub)
IN_PLACE(mul)
IN_PLACE(div)
IN_PLACE(floor_div)
IN_PLACE(remainder)
IN_PLACE(bitwise_and)
IN_PLACE(bitwise_or)
IN_PLACE(bitwise_xor)
IN_PLACE(shift_left)
IN_PLACE(shift_right)
IN_PLACE(matmul)

static PyObject *pow_of_two(PyObject *a, PyObject *b) { return op_pow(a, b, Py_None); }
static PyObject *in_place_pow(PyObject *a, PyObject *b, PyObject *modulus)
{
    (void)modulus;
    return in_place("pow_", a, b, pow_of_two);
}

/* ---- properties ---- */

static PyObject *get_shape(PyObject *self, void *none)
{
    (void)none;
    cn_dims d = cn_shape(handle_of(self));
    return size_of(&d);
}

static PyObject *get_ndim(PyObject *self, void *none)
{
    (void)none;
    return PyLong_FromLong(cn_ndim(handle_of(self)));
}

static PyObject *get_dtype(PyObject *self, void *none)
{
    (void)none;
    return dtype_object(cn_type(handle_of(self)));
}

static PyObject *python_part(const char *name)
{
    PyObject *f = PyDict_GetItemString(python_parts, name);
    if (!f) PyErr_Format(PyExc_RuntimeError, "cairn: '%s' is not there yet", name);
    return f;
}

static PyObject *get_device(PyObject *self, void *none)
{
    (void)none;
    PyObject *f = python_part("device");
    return f ? PyObject_CallFunction(f, "s", context_of(self)->device) : NULL;
}

static PyObject *get_data(PyObject *self, void *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    PyObject *o = tensor_wrap(c, handle_of(self)); /* the same handle */
    if (o) {
        ((tensor *)o)->detached = true;
        ((tensor *)o)->base = Py_NewRef(self);
    }
    return o;
}

/* Another leaf takes the place of the old one: its shape, dtype or device may differ. It has no gradient yet. */
static int replace_leaf(tensor *t, PyObject *value)
{
    context *c = context_of(value);
    const bool trained = cn_requires_grad(t->handle);
    call k;
    if (call_begin(&k, "data", &value, 1)) return -1;
    cn_tensor *leaf = cn_detach(handle_of(value));
    leaf = leaf && trained ? cn_param(leaf) : leaf ? cn_keep(leaf) : NULL;
    if (!leaf) context_error(c);
    call_end(&k);
    if (!leaf) return -1;
    context *old = t->context;
    cn_release(t->handle);
    t->handle = leaf;
    if (c != old) {
        context_use(c);
        t->context = c;
        context_drop(old);
    }
    return 0;
}

static int set_data(PyObject *self, PyObject *value, void *none)
{
    (void)none;
    if (!value || !is_tensor(value)) return PyErr_Format(PyExc_TypeError, "data must be a Tensor"), -1;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return -1;
    cn_tensor *old = handle_of(self), *new = handle_of(value);
    const cn_dims a = cn_shape(old), b = cn_shape(new);
    if (context_of(value) != c || cn_type(old) != cn_type(new) || a.n != b.n ||
        memcmp(a.v, b.v, sizeof *a.v * (size_t)a.n) != 0)
        return replace_leaf((tensor *)self, value);
    call k;
    int status = 0;
    if (call_begin(&k, "data", &self, 1)) return -1;
    cn_no_grad_begin(c->cn);
    if (!cn_assign(old, operand_of(value))) status = -1, context_error(c);
    cn_no_grad_end(c->cn);
    if (!status) tensor_bump(self);
    call_end(&k);
    return status;
}

static PyObject *get_turned(PyObject *self, void *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    const int n = cn_ndim(handle_of(self));
    cn_dims order = { .n = n };
    for (int i = 0; i < n; i++) order.v[i] = n - 1 - i;
    cn_scope s = cn_scope_begin(c->cn);
    PyObject *o = tensor_wrap(c, cn_permute(operand_of(self), order));
    cn_scope_end(c->cn, s);
    return o;
}

static PyObject *get_turned_matrices(PyObject *self, void *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    cn_scope s = cn_scope_begin(c->cn);
    PyObject *o = tensor_wrap(c, cn_transpose(operand_of(self), -2, -1));
    cn_scope_end(c->cn, s);
    return o;
}

static PyObject *get_yes(PyObject *self, void *none)
{
    (void)self, (void)none;
    Py_RETURN_TRUE;
}

static PyObject *get_no(PyObject *self, void *none)
{
    (void)self, (void)none;
    Py_RETURN_FALSE;
}

static PyObject *is_gpu(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(!strncmp(context_of(self)->device, "gpu", 3));
}

static PyObject *is_cpu(PyObject *self, void *none)
{
    (void)none;
    return PyBool_FromLong(!strcmp(context_of(self)->device, "cpu"));
}

static PyGetSetDef properties[] = {
    { "shape", get_shape, NULL, "The sizes of the axes, a cairn.Size.", NULL },
    { "ndim", get_ndim, NULL, "How many axes there are.", NULL },
    { "dtype", get_dtype, NULL, "The type of the elements.", NULL },
    { "device", get_device, NULL, "Where the values are.", NULL },
    { "data", get_data, set_data, "The same value without its graph; assigning to it is not recorded.", NULL },
    { "T", get_turned, NULL, "The axes in reverse order.", NULL },
    { "mT", get_turned_matrices, NULL, "The last two axes exchanged.", NULL },
    { "is_cpu", is_cpu, NULL, "Whether the values are in the memory of the CPU.", NULL },
    { "is_gpu", is_gpu, NULL, "Whether the values are in the memory of a GPU.", NULL },
    { "is_cuda", get_no, NULL, "False.", NULL },
    { "is_mps", get_no, NULL, "False.", NULL },
    { "is_sparse", get_no, NULL, "False.", NULL },
    { "is_quantized", get_no, NULL, "False.", NULL },
    { "is_nested", get_no, NULL, "False.", NULL },
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, "Attributes that a program has set.", NULL },
    { "_is_cairn", get_yes, NULL, "", NULL },
    { 0 },
};

/* ---- methods ---- */

static PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    if (n == 0 && !names) return get_shape(self, NULL);
    if (n + (names ? PyTuple_GET_SIZE(names) : 0) != 1) return PyErr_Format(PyExc_TypeError, "size() takes one axis");
    int64_t axis;
    if (args[0] == Py_None) return get_shape(self, NULL);
    if (int_from(args[0], &axis)) return NULL;
    const int ndim = cn_ndim(handle_of(self));
    if (axis < -ndim || axis >= ndim)
        return PyErr_Format(PyExc_IndexError,
                            "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                            ndim ? -ndim : -1, ndim ? ndim - 1 : 0, (long long)axis);
    return PyLong_FromLongLong(cn_size(handle_of(self), (int)axis));
}

static PyObject *numel(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromLongLong(cn_numel(handle_of(self)));
}

static PyObject *dim(PyObject *self, PyObject *none)
{
    (void)none;
    return get_ndim(self, NULL);
}

/* Computes the value; returns self. */
static PyObject *evaluate(PyObject *self, PyObject *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    bool ok;
    EVALUATE(c, ok = cn_eval(handle_of(self)));
    return ok ? Py_NewRef(self) : context_error(c);
}

static PyObject *assign(PyObject *self, PyObject *value)
{
    call k;
    cn_tensor *v;
    if (call_begin(&k, "_assign", &self, 1)) return NULL;
    if (take_tensor(&k, value, "value", false, &self, 1, &v)) return call_end(&k), NULL;
    return assign_value(&k, self, v);
}

static PyObject *to_context(PyObject *self, PyObject *device)
{
    const char *name = PyUnicode_AsUTF8(device);
    context *from = context_of(self), *to = name ? context_for(name) : NULL;
    if (!to || (!context_ready(from) && context_refuse(from))) return NULL;
    if (from == to) return Py_NewRef(self);
    PyObject *owned = NULL;
    cn_scope s = cn_scope_begin(to->cn);
    cn_tensor *h = tensor_operand(to, self, NULL, &owned);
    PyObject *o = h ? tensor_wrap(to, h) : NULL;
    cn_scope_end(to->cn, s);
    Py_XDECREF(owned);
    return o;
}

/* The plan of the pending computation, as text. */
static PyObject *plan(PyObject *self, PyObject *none)
{
    (void)none;
    context *c = context_of(self);
    if (!context_ready(c) && context_refuse(c)) return NULL;
    char *text = PyMem_Malloc(1 << 16);
    if (!text) return PyErr_NoMemory();
    cn_plan_print(handle_of(self), text, 1 << 16);
    PyObject *o = cn_failed(c->cn) ? context_error(c) : PyUnicode_FromString(text);
    PyMem_Free(text);
    return o;
}

static PyMethodDef methods[] = {
    { "size", (PyCFunction)(void (*)(void))size, METH_FASTCALL | METH_KEYWORDS, "The shape, or the size of one axis." },
    { "numel", numel, METH_NOARGS, "How many elements there are." },
    { "nelement", numel, METH_NOARGS, "How many elements there are." },
    { "dim", dim, METH_NOARGS, "How many axes there are." },
    { "ndimension", dim, METH_NOARGS, "How many axes there are." },
    { "eval", evaluate, METH_NOARGS, "Computes the value now; returns the tensor." },
    { "_assign", assign, METH_O, "Gives the tensor a new value; returns it." },
    { "_to_context", to_context, METH_O, "A copy on another device, or the tensor itself." },
    { "plan", plan, METH_NOARGS, "How the value will be computed, as text." },
    { 0 },
};

/* ---- parts of a tensor ---- */

static bool is_plain(PyObject *i)
{
    return PyLong_CheckExact(i) || PySlice_Check(i) || i == Py_Ellipsis || i == Py_None;
}

static bool is_basic(PyObject *index)
{
    if (!PyTuple_CheckExact(index)) return is_plain(index);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
        if (!is_plain(PyTuple_GET_ITEM(index, i))) return false;
    return true;
}

static PyObject *as_part(PyObject *part, PyObject *base, PyObject *index)
{
    tensor *t = (tensor *)part;
    t->detached = ((tensor *)base)->detached;
    t->base = Py_NewRef(base);
    t->index = Py_NewRef(index);
    t->seen = ((tensor *)base)->version;
    return part;
}

static PyObject *subscript(PyObject *self, PyObject *index)
{
    PyObject *part = tensor_subscript(self, index);
    return part && part != self && is_tensor(part) && is_basic(index) ? as_part(part, self, index) : part;
}

static PyObject *item_at(PyObject *self, Py_ssize_t i)
{
    PyObject *index = PyLong_FromSsize_t(i), *part = index ? tensor_item_at(self, i) : NULL;
    if (part) as_part(part, self, index);
    Py_XDECREF(index);
    return part;
}

void tensor_take_again(tensor *t)
{
    tensor *base = (tensor *)t->base;
    handle_of(t->base); /* which may be a part itself */
    t->seen = base->version;
    if (!context_ready(t->context)) return;
    PyObject *part = tensor_subscript(t->base, t->index);
    if (!part || ((tensor *)part)->context != t->context) {
        PyErr_Clear(); /* the base has another shape by now: the part keeps its value */
        Py_XDECREF(part);
        return;
    }
    cn_tensor *old = t->handle;
    t->handle = ((tensor *)part)->handle;
    ((tensor *)part)->handle = old;
    t->version++;
    Py_DECREF(part);
}

int tensor_changed(PyObject *self)
{
    tensor *t = (tensor *)self;
    PyObject *base[2] = { Py_NewRef(t->base), Py_NewRef(t->base) }; /* it is no temporary tensor */
    const int status = PyObject_SetItem(t->base, t->index, self);   /* which tells its own base */
    t->seen = ((tensor *)t->base)->version;
    Py_DECREF(base[0]);
    Py_DECREF(base[1]);
    return status;
}

static int set_part_of(PyObject *self, PyObject *index, PyObject *value)
{
    if (((tensor *)self)->index) handle_of(self);
    if (tensor_ass_subscript(self, index, value)) return -1;
    context_of(self)->work += cn_numel(handle_of(self));
    tensor_bump(self);
    return ((tensor *)self)->index ? tensor_changed(self) : 0;
}

/* ---- the type ---- */

static Py_ssize_t length(PyObject *self)
{
    if (cn_ndim(handle_of(self)) > 0) return (Py_ssize_t)cn_size(handle_of(self), 0);
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

static PyObject *iterate(PyObject *self)
{
    if (cn_ndim(handle_of(self)) == 0) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    return PySeqIter_New(self);
}

static Py_hash_t hash(PyObject *self) { return (Py_hash_t)((uintptr_t)self >> 4); }

static PyObject *repr(PyObject *self)
{
    PyObject *f = python_part("repr");
    return f ? PyObject_CallOneArg(f, self) : NULL;
}

static PyMemberDef members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(tensor, dict), READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(tensor, weak), READONLY, NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A tensor: numbers in a grid of up to eight axes. Operators make nodes; needing a number computes." },
    { Py_tp_new, new_tensor },
    { Py_tp_dealloc, dealloc },
    { Py_tp_traverse, traverse },
    { Py_tp_clear, clear },
    { Py_tp_members, members },
    { Py_tp_getset, properties },
    { Py_tp_methods, methods },
    { Py_tp_richcompare, compare },
    { Py_tp_hash, hash },
    { Py_tp_repr, repr },
    { Py_tp_iter, iterate },
    { Py_mp_subscript, subscript },
    { Py_mp_ass_subscript, set_part_of },
    { Py_mp_length, length },
    { Py_sq_length, length },
    { Py_sq_item, item_at },
    { Py_sq_contains, tensor_contains },
    { Py_bf_getbuffer, tensor_getbuffer },
    { Py_bf_releasebuffer, tensor_releasebuffer },
    { Py_nb_add, op_add },
    { Py_nb_subtract, op_sub },
    { Py_nb_multiply, op_mul },
    { Py_nb_true_divide, op_div },
    { Py_nb_floor_divide, op_floor_div },
    { Py_nb_remainder, op_remainder },
    { Py_nb_power, op_pow },
    { Py_nb_matrix_multiply, op_matmul },
    { Py_nb_and, op_bitwise_and },
    { Py_nb_or, op_bitwise_or },
    { Py_nb_xor, op_bitwise_xor },
    { Py_nb_lshift, op_shift_left },
    { Py_nb_rshift, op_shift_right },
    { Py_nb_negative, op_neg },
    { Py_nb_positive, op_pos },
    { Py_nb_absolute, op_abs },
    { Py_nb_invert, op_invert },
    { Py_nb_inplace_add, in_place_add },
    { Py_nb_inplace_subtract, in_place_sub },
    { Py_nb_inplace_multiply, in_place_mul },
    { Py_nb_inplace_true_divide, in_place_div },
    { Py_nb_inplace_floor_divide, in_place_floor_div },
    { Py_nb_inplace_remainder, in_place_remainder },
    { Py_nb_inplace_power, in_place_pow },
    { Py_nb_inplace_matrix_multiply, in_place_matmul },
    { Py_nb_inplace_and, in_place_bitwise_and },
    { Py_nb_inplace_or, in_place_bitwise_or },
    { Py_nb_inplace_xor, in_place_bitwise_xor },
    { Py_nb_inplace_lshift, in_place_shift_left },
    { Py_nb_inplace_rshift, in_place_shift_right },
    { Py_nb_bool, tensor_bool },
    { Py_nb_int, tensor_int },
    { Py_nb_float, tensor_float },
    { Py_nb_index, tensor_index },
    { 0, NULL },
};

static PyType_Spec spec = { .name = "cairn.Tensor",
                            .basicsize = sizeof(tensor),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                            .slots = slots };

/* ---- the module's part ---- */

static PyObject *set_part(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *f;
    if (!PyArg_ParseTuple(args, "UO", &name, &f) || PyDict_SetItem(python_parts, name, f)) return NULL;
    Py_RETURN_NONE;
}

/* _tensor(data, dtype or None, device or None): a tensor with a copy of the data. */
static PyObject *from_data(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *data, *dtype, *device;
    int t;
    if (!PyArg_ParseTuple(args, "OOO", &data, &dtype, &device) || dtype_from(dtype, &t)) return NULL;
    const char *name = device == Py_None ? NULL : PyUnicode_AsUTF8(device);
    context *c = device == Py_None ? context_default() : name ? context_for(name) : NULL;
    if (!c || (!context_ready(c) && context_refuse(c))) return NULL;
    return tensor_from_data(c, data, t);
}

static PyMethodDef functions[] = {
    { "_tensor", from_data, METH_VARARGS, "" },
    { "_make_parameter", make_subclass, METH_VARARGS,
      "(type, tensor, requires_grad): a leaf of this type with its value." },
    { "_set_part", set_part, METH_VARARGS, "(name, function): a part of the type that is written in Python." },
    { 0 },
};

static int add_methods(PyMethodDef *list)
{
    for (; list->ml_name; list++) {
        PyObject *method = PyDescr_NewMethod(tensor_type, list);
        if (!method || PyObject_SetAttrString((PyObject *)tensor_type, list->ml_name, method)) return -1;
        Py_DECREF(method);
    }
    return 0;
}

int module_add_tensor(PyObject *module)
{
    python_parts = PyDict_New();
    tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!python_parts || !tensor_type) return -1;
    if (add_methods(generated_methods) || add_methods(convert_methods) || add_methods(autograd_methods)) return -1;
    if (autograd_add_properties(tensor_type) || convert_add_properties(tensor_type)) return -1;
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) || PyModule_AddFunctions(module, functions)
               ? -1
               : 0;
}
