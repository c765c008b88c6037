/* value.c: the type Value: its life, its operators, its attributes. */
#include "micrograd.h"

#include <errno.h>
#include <math.h>

PyTypeObject *value_type;
PyObject *helpers;
uint64_t data_version = 1;
Py_ssize_t values_alive;

static const char *const op_names[] = {
    [LEAF] = "",     [ADD] = "+",   [MUL] = "*",   [POWER] = "**",       [RELU] = "ReLU",
    [TANH] = "tanh", [EXP] = "exp", [LOG] = "log", [SIGMOID] = "sigmoid"
};

/* A whole number is shown as an int while a double holds it exactly. */
static bool exact(double number) { return number >= -9007199254740992.0 && number <= 9007199254740992.0; }

/* ---- life ---- */

/* Dead objects are linked through .weak. At most this many wait to be used again. */
enum { SPARE_LIMIT = 8192 };
static value *spare, *dying;
static int spare_count;
static bool burying;

static inline value *value_alloc(void)
{
    value *v = spare;
    if (v) {
        spare = (value *)v->weak;
        spare_count--;
        PyObject_Init((PyObject *)v, value_type);
    } else if (!(v = PyObject_GC_New(value, value_type))) {
        return NULL;
    }
    v->grad = 0;
    v->dict = v->weak = NULL;
    v->mark = 0;
    v->flags = WHOLE_GRAD;
    values_alive++;
    return v;
}

value *value_leaf(double data, bool whole)
{
    value *v = value_alloc();
    if (!v) return NULL;
    v->data = data;
    v->op = LEAF;
    if (whole) v->flags |= WHOLE_DATA;
    return v;
}

value *value_node(double data, bool whole, int op, value *a, value *b)
{
    value *v = value_alloc();
    if (!v) return NULL;
    v->data = data;
    v->op = op;
    v->a = (value *)Py_NewRef((PyObject *)a);
    v->b = (value *)Py_XNewRef((PyObject *)b);
    if (whole && exact(data)) v->flags |= WHOLE_DATA;
    if ((a->flags | (b ? b->flags : 0)) & TRACKED) value_track(v);
    return v;
}

void value_track(value *v)
{
    if (v->flags & TRACKED) return;
    v->flags |= TRACKED;
    if (!PyObject_GC_IsTracked((PyObject *)v)) PyObject_GC_Track(v);
}

/* Lets go of the operands; v is a leaf then. */
static void release_operands(value *v)
{
    int op = v->op;
    v->op = LEAF;
    if (op == LEAF) return;
    if (op == ROW) {
        run_drop_row(v);
        run_release(v->run);
        return;
    }
    Py_DECREF(op == CUSTOM ? v->children : (PyObject *)v->a);
    if (op == ADD || op == MUL || op == POWER) Py_DECREF(v->b);
    if (op == CUSTOM) Py_DECREF(v->name);
}

static void bury(value *v)
{
    PyTypeObject *type = Py_TYPE(v);
    release_operands(v);
    Py_CLEAR(v->dict);
    values_alive--;
    if (type == value_type && spare_count < SPARE_LIMIT) {
        v->weak = (PyObject *)spare;
        spare = v;
        spare_count++;
    } else {
        PyObject_GC_Del(v);
    }
    Py_DECREF(type);
}

/* A graph may be a chain of a million values: whatever dies on the way waits in a list, and nothing recurses. */
static void value_dealloc(PyObject *o)
{
    value *v = (value *)o;
    if (v->flags & TRACKED || Py_TYPE(o) != value_type) PyObject_GC_UnTrack(o);
    if (v->weak) PyObject_ClearWeakRefs(o);
    v->weak = (PyObject *)dying;
    dying = v;
    if (burying) return;
    burying = true;
    while ((v = dying)) {
        dying = (value *)v->weak;
        v->weak = NULL;
        bury(v);
    }
    burying = false;
}

static int value_traverse(PyObject *o, visitproc visit, void *arg)
{
    value *v = (value *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(v->dict);
    if (v->op == CUSTOM) {
        Py_VISIT(v->children);
    } else if (v->op != LEAF && v->op != ROW) {
        Py_VISIT(v->a);
        if (v->op == ADD || v->op == MUL || v->op == POWER) Py_VISIT(v->b);
    }
    return 0;
}

/* Operands are older than their results, so every cycle passes through a dict. */
static int value_clear(PyObject *o)
{
    value *v = (value *)o;
    v->flags &= ~HOOKED;
    Py_CLEAR(v->dict);
    return 0;
}

/* ---- numbers ---- */

PyObject *helper(const char *name)
{
    PyObject *f = PyDict_GetItemString(helpers, name);
    if (!f) PyErr_Format(PyExc_RuntimeError, "import cairn.micrograd first: it defines %s", name);
    return f;
}

/* What is neither a Python int nor a float: NumPy's scalars, Fraction, Decimal. An array or a tensor is no number. */
static int foreign_number_from(PyObject *o, double *number, bool *whole)
{
    const PyNumberMethods *as = Py_TYPE(o)->tp_as_number;
    if (!as || !(as->nb_float || as->nb_index) || PyObject_HasAttrString(o, "requires_grad")) return 0;
    PyObject *ndim = PyObject_GetAttrString(o, "ndim");
    if (ndim) {
        long n = PyLong_AsLong(ndim);
        Py_DECREF(ndim);
        if (n != 0) {
            PyErr_Clear();
            return 0;
        }
    } else {
        PyErr_Clear();
    }
    *number = PyFloat_AsDouble(o);
    *whole = PyIndex_Check(o) && floor(*number) == *number && exact(*number);
    if (*number != -1 || !PyErr_Occurred()) return 1;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear(); /* a complex number, before Python 3.10 */
    return 0;
}

int number_from(PyObject *o, double *number, bool *whole)
{
    if (PyFloat_Check(o)) {
        *number = PyFloat_AS_DOUBLE(o);
        *whole = false;
        return 1;
    }
    if (PyLong_Check(o)) {
        *number = PyLong_AsDouble(o);
        *whole = exact(*number);
        return *number == -1 && PyErr_Occurred() ? -1 : 1;
    }
    return foreign_number_from(o, number, whole);
}

static PyObject *number_object(double number, bool whole)
{
    return whole ? PyLong_FromDouble(number) : PyFloat_FromDouble(number);
}

/* x ** y as Python computes it with floats, but where Python would answer with a complex number. */
static int power(double x, double y, double *result)
{
    if (x == 0 && y < 0) {
        PyErr_SetString(PyExc_ZeroDivisionError, "0.0 cannot be raised to a negative power");
        return -1;
    }
    *result = y == 2 ? x * x : y == 1 ? x : pow(x, y);
    if (isnan(*result) && !isnan(x) && !isnan(y)) {
        PyErr_SetString(PyExc_ValueError, "a negative number cannot be raised to a fractional power");
        return -1;
    }
    if (isinf(*result) && isfinite(x) && isfinite(y)) {
        PyErr_SetString(PyExc_OverflowError, "the power is too large for a float");
        return -1;
    }
    return 0;
}

/* ---- operators ---- */

/* An operand as a value: a new reference. NULL without an exception: it is neither a value nor a number. */
static value *operand(PyObject *o)
{
    if (is_value(o)) return (value *)Py_NewRef(o);
    double number;
    bool whole;
    int found = number_from(o, &number, &whole);
    return found == 1 ? value_leaf(number, whole) : NULL;
}

/* What an operator answers if an operand is no value: NumPy's arrays are gone through element by element. */
static PyObject *other_operand(const char *name, PyObject *x, PyObject *y)
{
    if (PyErr_Occurred()) return NULL;
    PyObject *array = is_value(x) ? y : x;
    if (!PyObject_HasAttrString(array, "__array_interface__")) Py_RETURN_NOTIMPLEMENTED;
    PyObject *f = helper("with_array");
    return f ? PyObject_CallFunction(f, "sOO", name, x, y) : NULL;
}

/* x and y become values, *a and *b (new references). false: *answer is what the operator returns. */
static bool both(const char *name, PyObject *x, PyObject *y, value **a, value **b, PyObject **answer)
{
    *a = operand(x);
    *b = *a ? operand(y) : NULL;
    if (*b) return true;
    Py_XDECREF(*a);
    *answer = other_operand(name, x, y);
    return false;
}

static PyObject *add(value *a, value *b)
{
    return (PyObject *)value_node(a->data + b->data, is_whole(a) && is_whole(b), ADD, a, b);
}

static PyObject *mul(value *a, value *b)
{
    return (PyObject *)value_node(a->data * b->data, is_whole(a) && is_whole(b), MUL, a, b);
}

static value *times_number(value *a, double number, bool whole)
{
    value *b = value_leaf(number, whole);
    if (!b) return NULL;
    value *v = (value *)mul(a, b);
    Py_DECREF(b);
    return v;
}

/* The parameter comes first, as in micrograd: 2 + x is x + 2. */
static void value_first(PyObject **x, PyObject **y)
{
    if (is_value(*x)) return;
    PyObject *first = *x;
    *x = *y;
    *y = first;
}

static PyObject *value_add(PyObject *x, PyObject *y)
{
    value *a, *b;
    PyObject *answer;
    value_first(&x, &y);
    if (!both("add", x, y, &a, &b, &answer)) return answer;
    answer = add(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return answer;
}

static PyObject *value_mul(PyObject *x, PyObject *y)
{
    value *a, *b;
    PyObject *answer;
    value_first(&x, &y);
    if (!both("mul", x, y, &a, &b, &answer)) return answer;
    answer = mul(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return answer;
}

static PyObject *value_neg(PyObject *o) { return (PyObject *)times_number((value *)o, -1, true); }

/* x - y is x + (-y): a negated number is a leaf, a negated value is a product. */
static PyObject *value_sub(PyObject *x, PyObject *y)
{
    value *a, *b, *negative;
    PyObject *answer;
    if (!both("sub", x, y, &a, &b, &answer)) return answer;
    if (is_value(y)) {
        negative = (value *)value_neg(y);
    } else {
        negative = b;
        negative->data = is_whole(b) ? 0 - b->data : -b->data;
        Py_INCREF(negative);
    }
    answer = !negative ? NULL : is_value(x) ? add(a, negative) : add(negative, a);
    Py_XDECREF(negative);
    Py_DECREF(a);
    Py_DECREF(b);
    return answer;
}

static PyObject *pow_number(value *a, double exponent, bool whole)
{
    double data;
    if (power(a->data, exponent, &data)) return NULL;
    value *v = value_node(data, whole && is_whole(a) && exponent >= 0, POW, a, NULL);
    if (!v) return NULL;
    v->number = exponent;
    v->whole_exponent = whole;
    return (PyObject *)v;
}

/* x / y is x * y**-1. */
static PyObject *value_div(PyObject *x, PyObject *y)
{
    value *a, *b, *inverse;
    PyObject *answer;
    if (!both("truediv", x, y, &a, &b, &answer)) return answer;
    if (is_value(y)) {
        inverse = (value *)pow_number(b, -1, true);
    } else if (power(b->data, -1, &b->data) == 0) {
        inverse = b;
        inverse->flags &= ~WHOLE_DATA;
        Py_INCREF(inverse);
    } else {
        inverse = NULL;
    }
    answer = !inverse ? NULL : is_value(x) ? mul(a, inverse) : mul(inverse, a);
    Py_XDECREF(inverse);
    Py_DECREF(a);
    Py_DECREF(b);
    return answer;
}

static PyObject *value_pow(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    value *a, *b;
    PyObject *answer;
    if (!both("pow", x, y, &a, &b, &answer)) return answer;
    double data;
    if (!is_value(y)) {
        answer = pow_number(a, b->data, is_whole(b));
    } else if (power(a->data, b->data, &data) == 0) {
        answer = (PyObject *)value_node(data, is_whole(a) && is_whole(b) && b->data >= 0, POWER, a, b);
    } else {
        answer = NULL;
    }
    Py_DECREF(a);
    Py_DECREF(b);
    return answer;
}

static PyObject *value_relu(PyObject *o, PyObject *Py_UNUSED(none))
{
    value *a = (value *)o;
    bool negative = a->data < 0;
    return (PyObject *)value_node(negative ? 0 : a->data, negative || is_whole(a), RELU, a, NULL);
}

static PyObject *value_tanh(PyObject *o, PyObject *Py_UNUSED(none))
{
    return (PyObject *)value_node(tanh(((value *)o)->data), false, TANH, (value *)o, NULL);
}

static PyObject *value_exp(PyObject *o, PyObject *Py_UNUSED(none))
{
    double x = ((value *)o)->data, data = exp(x);
    if (isinf(data) && isfinite(x)) return PyErr_Format(PyExc_OverflowError, "exp is too large for a float");
    return (PyObject *)value_node(data, false, EXP, (value *)o, NULL);
}

static PyObject *value_log(PyObject *o, PyObject *Py_UNUSED(none))
{
    double x = ((value *)o)->data;
    if (x <= 0) return PyErr_Format(PyExc_ValueError, "log needs a number above 0, got %S", o);
    return (PyObject *)value_node(log(x), false, LOG, (value *)o, NULL);
}

static PyObject *value_sigmoid(PyObject *o, PyObject *Py_UNUSED(none))
{
    double x = ((value *)o)->data, e = exp(-fabs(x));
    return (PyObject *)value_node(x >= 0 ? 1 / (1 + e) : e / (1 + e), false, SIGMOID, (value *)o, NULL);
}

/* ---- gradients ---- */

static int pow_backward(value *v)
{
    value *a = v->a;
    double slope;
    if (v->number == 0) return 0;
    if (power(a->data, v->number - 1, &slope)) return -1;
    add_grad(a, v->number * slope * v->grad,
             v->flags & WHOLE_GRAD && v->whole_exponent && is_whole(a) && v->number >= 1);
    return 0;
}

static int power_backward(value *v)
{
    value *a = v->a, *b = v->b;
    double slope = 0, logarithm = 0;
    if (b->data != 0 && power(a->data, b->data - 1, &slope)) return -1;
    if (a->data < 0) {
        PyErr_SetString(PyExc_ValueError, "the exponent has no gradient: its base is negative");
        return -1;
    }
    if (a->data > 0) logarithm = log(a->data);
    add_grad(a, b->data * slope * v->grad, false);
    add_grad(b, v->data * logarithm * v->grad, false);
    return 0;
}

int value_backward(value *v)
{
    double g = v->grad;
    value *a = v->a, *b = v->b;
    bool whole = v->flags & WHOLE_GRAD;
    switch (v->op) {
    case ADD:
        add_grad(a, g, whole);
        add_grad(b, g, whole);
        break;
    case MUL:
        add_grad(a, b->data * g, whole && is_whole(b));
        add_grad(b, a->data * g, whole && is_whole(a));
        break;
    case POW: return pow_backward(v);
    case POWER: return power_backward(v);
    case RELU: add_grad(a, (v->data > 0) * g, whole); break;
    case TANH: add_grad(a, (1 - v->data * v->data) * g, false); break;
    case EXP: add_grad(a, v->data * g, false); break;
    case LOG: add_grad(a, g / a->data, false); break;
    case SIGMOID: add_grad(a, v->data * (1 - v->data) * g, false); break;
    default: break; /* leaves; CUSTOM without a function */
    }
    return 0;
}

static PyObject *value_step(PyObject *o, PyObject *Py_UNUSED(none))
{
    if (value_backward((value *)o)) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef step_method = { "_backward", value_step, METH_NOARGS,
                                   "adds to the gradients of the operands what they gain from this value's" };

static PyObject *value_backward_method(PyObject *o, PyObject *Py_UNUSED(none))
{
    value *v = (value *)o;
    if (backward(&v, 1, true)) return NULL;
    Py_RETURN_NONE;
}

/* ---- attributes ---- */

static int number_for(PyObject *o, const char *what, double *number, bool *whole)
{
    if (!o) {
        PyErr_Format(PyExc_AttributeError, "%s cannot be deleted", what);
        return -1;
    }
    int found = number_from(o, number, whole);
    if (found == 0) PyErr_Format(PyExc_TypeError, "%s must be a real number, got %s", what, Py_TYPE(o)->tp_name);
    return found == 1 ? 0 : -1;
}

static PyObject *get_data(PyObject *o, void *Py_UNUSED(closure))
{
    return number_object(((value *)o)->data, is_whole((value *)o));
}

static int set_data(PyObject *o, PyObject *to, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    bool whole;
    if (number_for(to, "Value.data", &v->data, &whole)) return -1;
    v->flags = whole ? v->flags | WHOLE_DATA : v->flags & ~WHOLE_DATA;
    data_version++;
    return 0;
}

static PyObject *get_grad(PyObject *o, void *Py_UNUSED(closure))
{
    return number_object(((value *)o)->grad, ((value *)o)->flags & WHOLE_GRAD && exact(((value *)o)->grad));
}

static int set_grad(PyObject *o, PyObject *to, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    bool whole;
    if (number_for(to, "Value.grad", &v->grad, &whole)) return -1;
    v->flags = whole ? v->flags | WHOLE_GRAD : v->flags & ~WHOLE_GRAD;
    return 0;
}

static PyObject *get_prev(PyObject *o, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    if (v->op == ROW && run_expand(v)) return NULL;
    if (v->op == CUSTOM) return PySet_New(v->children);
    PyObject *set = PySet_New(NULL);
    if (!set || v->op == LEAF) return set;
    bool two = v->op == ADD || v->op == MUL || v->op == POWER;
    if (PySet_Add(set, (PyObject *)v->a) || (two && PySet_Add(set, (PyObject *)v->b))) Py_CLEAR(set);
    return set;
}

static PyObject *get_op(PyObject *o, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    if (v->op == CUSTOM) return Py_NewRef(v->name);
    if (v->op == ROW) return PyUnicode_FromString(run_row_op(v));
    if (v->op != POW) return PyUnicode_FromString(op_names[v->op]);
    PyObject *exponent = number_object(v->number, v->whole_exponent);
    PyObject *name = exponent ? PyUnicode_FromFormat("**%S", exponent) : NULL;
    Py_XDECREF(exponent);
    return name;
}

static PyObject *get_backward(PyObject *o, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    if (v->flags & HOOKED) {
        PyObject *f = PyDict_GetItemString(v->dict, "_backward");
        if (f) return Py_NewRef(f);
    }
    if (v->op == ROW && run_expand(v)) return NULL;
    return PyCFunction_New(&step_method, o);
}

static PyObject *get_dict(PyObject *o, void *Py_UNUSED(closure))
{
    value_track((value *)o);
    return PyObject_GenericGetDict(o, NULL);
}

static int set_backward(PyObject *o, PyObject *to, void *Py_UNUSED(closure))
{
    value *v = (value *)o;
    if (!to || !PyCallable_Check(to)) {
        PyErr_SetString(PyExc_TypeError, "Value._backward must be a function without parameters");
        return -1;
    }
    if (v->op == ROW && run_expand(v)) return -1;
    PyObject *dict = get_dict(o, NULL);
    if (!dict) return -1;
    int failed = PyDict_SetItemString(dict, "_backward", to);
    Py_DECREF(dict);
    if (!failed) v->flags |= HOOKED;
    return failed;
}

static PyObject *get_device(PyObject *Py_UNUSED(o), void *Py_UNUSED(closure))
{
    PyObject *f = helper("cpu");
    return f ? PyObject_CallNoArgs(f) : NULL;
}

static PyObject *value_to(PyObject *o, PyObject *device)
{
    PyObject *f = helper("move");
    return f ? PyObject_CallFunctionObjArgs(f, o, device, NULL) : NULL;
}

/* An attribute of the program's own may close a cycle. */
static int value_setattro(PyObject *o, PyObject *name, PyObject *to)
{
    if (PyObject_GenericSetAttr(o, name, to)) return -1;
    if (((value *)o)->dict && to && PyObject_IS_GC(to)) value_track((value *)o);
    return 0;
}

static PyObject *value_repr(PyObject *o)
{
    PyObject *data = get_data(o, NULL), *grad = get_grad(o, NULL), *text = NULL;
    if (data && grad) text = PyUnicode_FromFormat("Value(data=%S, grad=%S)", data, grad);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return text;
}

/* Copies and pickles are for parameters: what came from an operation would take its whole graph along. */
static PyObject *value_reduce(PyObject *o, PyObject *Py_UNUSED(none))
{
    value *v = (value *)o;
    if (v->op != LEAF || v->flags & HOOKED)
        return PyErr_Format(PyExc_TypeError,
                            "only a Value without operands can be copied or pickled: use Value(v.data)");
    PyObject *f = helper("restore"), *data = get_data(o, NULL), *grad = get_grad(o, NULL), *answer = NULL;
    if (f && data && grad)
        answer = Py_BuildValue("O(OOOO)", f, (PyObject *)Py_TYPE(o), data, grad, v->dict ? v->dict : Py_None);
    Py_XDECREF(data);
    Py_XDECREF(grad);
    return answer;
}

/* ---- making one from Python ---- */

static int set_children(value *v, PyObject *children, PyObject *name)
{
    PyObject *tuple = children ? PySequence_Tuple(children) : PyTuple_New(0);
    if (!tuple) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *child = PyTuple_GET_ITEM(tuple, i);
        if (!is_value(child)) {
            PyErr_Format(PyExc_TypeError, "_children must be Values, got %s", Py_TYPE(child)->tp_name);
            Py_DECREF(tuple);
            return -1;
        }
        if (((value *)child)->flags & TRACKED) value_track(v);
    }
    if (!PyTuple_GET_SIZE(tuple) && (!name || !PyUnicode_GET_LENGTH(name))) { /* a leaf that says so */
        Py_DECREF(tuple);
        return 0;
    }
    PyObject *own_name = name ? Py_NewRef(name) : PyUnicode_FromString("");
    if (!own_name) {
        Py_DECREF(tuple);
        return -1;
    }
    v->op = CUSTOM;
    v->children = tuple;
    v->name = own_name;
    return 0;
}

static int value_init(PyObject *o, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "data", "_children", "_op", "label", NULL };
    PyObject *data, *children = NULL, *name = NULL, *label = NULL;
    value *v = (value *)o;
    bool whole;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OUO:Value", names, &data, &children, &name, &label)) return -1;
    release_operands(v);
    if (number_for(data, "Value.data", &v->data, &whole)) return -1;
    v->grad = 0;
    v->flags = (v->flags & TRACKED) | WHOLE_GRAD | (whole ? WHOLE_DATA : 0);
    data_version++;
    if ((children || name) && set_children(v, children, name)) return -1;
    return label ? PyObject_SetAttrString(o, "label", label) : 0;
}

/* Of a subclass too, whose objects Python makes known to the garbage collector. */
static PyObject *value_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    if (type == value_type) return (PyObject *)value_leaf(0, true);
    value *v = (value *)type->tp_alloc(type, 0);
    if (!v) return NULL;
    values_alive++;
    v->flags = WHOLE_GRAD | WHOLE_DATA | TRACKED;
    return (PyObject *)v;
}

/* Value(number), the usual call, without a tuple and a dict. */
static PyObject *value_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    double number;
    bool whole;
    if (n == 1 && !names) {
        if (number_for(args[0], "Value.data", &number, &whole)) return NULL;
        return (PyObject *)value_leaf(number, whole);
    }
    PyObject *tuple = PyTuple_New(n), *dict = names ? PyDict_New() : NULL, *v = NULL;
    if (!tuple || (names && !dict)) goto end;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), args[n + i])) goto end;
    v = value_new((PyTypeObject *)type, NULL, NULL);
    if (v && value_init(v, tuple, dict)) Py_CLEAR(v);
end:
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return v;
}

static PyMethodDef methods[] = {
    { "relu", value_relu, METH_NOARGS, "max(0, x)" },
    { "tanh", value_tanh, METH_NOARGS, "the hyperbolic tangent" },
    { "exp", value_exp, METH_NOARGS, "e to the power of x" },
    { "log", value_log, METH_NOARGS, "the natural logarithm" },
    { "sigmoid", value_sigmoid, METH_NOARGS, "1 / (1 + e**-x)" },
    { "backward", value_backward_method, METH_NOARGS,
      "computes the gradient of this value with respect to everything it came from, and adds it to their .grad" },
    { "to", value_to, METH_O, "the value on a device: on the CPU itself, on a GPU a ValueBatch of one value" },
    { "__reduce__", value_reduce, METH_NOARGS, NULL },
    { NULL },
};

static PyGetSetDef attributes[] = {
    { "data", get_data, set_data, "the number", NULL },
    { "grad", get_grad, set_grad, "the gradient that backward() has added up", NULL },
    { "_prev", get_prev, NULL, "the set of its operands", NULL },
    { "_op", get_op, NULL, "the operation it came from, '' for none", NULL },
    { "_backward", get_backward, set_backward, "hands the gradient on to the operands", NULL },
    { "device", get_device, NULL, "Device.cpu(): a Value is a number of the CPU", NULL },
    { "__dict__", get_dict, PyObject_GenericSetDict, NULL, NULL },
    { NULL },
};

static PyMemberDef members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(value, dict), READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(value, weak), READONLY, NULL },
    { NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "Value(data, _children=(), _op='', label=''): a number that remembers where it came from.\n\n"
                 "a = Value(2.0); b = a * 3 + 1; b.backward(); a.grad  # 3.0" },
    { Py_tp_new, value_new },
    { Py_tp_init, value_init },
    { Py_tp_dealloc, value_dealloc },
    { Py_tp_traverse, value_traverse },
    { Py_tp_clear, value_clear },
    { Py_tp_repr, value_repr },
    { Py_tp_setattro, value_setattro },
    { Py_tp_methods, methods },
    { Py_tp_getset, attributes },
    { Py_tp_members, members },
    { Py_nb_add, value_add },
    { Py_nb_subtract, value_sub },
    { Py_nb_multiply, value_mul },
    { Py_nb_true_divide, value_div },
    { Py_nb_power, value_pow },
    { Py_nb_negative, value_neg },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "cairn.micrograd.Value",
    .basicsize = sizeof(value),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyObject *value_type_make(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type) return NULL;
    value_type = (PyTypeObject *)type;
    value_type->tp_vectorcall = value_vectorcall;
    /* NumPy's numbers leave the operation to the value. */
    PyObject *priority = PyFloat_FromDouble(1000);
    int failed = !priority || PyObject_SetAttrString(type, "__array_priority__", priority);
    Py_XDECREF(priority);
    if (failed || PyModule_AddObject(module, "Value", Py_NewRef(type))) return NULL;
    return type;
}
