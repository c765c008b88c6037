/* Arguments of calls: where each belongs, and how Python objects become C values. */
#include "call.h"

#include <math.h>
#include <string.h>

/* ---- places ---- */

static int make_names(const parameters *p)
{
    for (int i = 0; i < p->n; i++)
        if (!p->interned[i] && !(p->interned[i] = PyUnicode_InternFromString(p->names[i]))) return -1;
    return 0;
}

/* Names that NumPy has for the same thing, and that PyTorch accepts as well. */
static const char *other_name(const char *name)
{
    static const char *const pairs[][2] = { { "axis", "dim" }, { "keepdims", "keepdim" }, { "self", "input" },
                                            { "x", "input" },  { "shape", "size" },       { "size", "shape" } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(name, pairs[i][0])) return pairs[i][1];
    return NULL;
}

static int place_of(const parameters *p, PyObject *name)
{
    for (int i = 0; i < p->n; i++)
        if (name == p->interned[i]) return i;
    for (int i = 0; i < p->n; i++)
        if (PyUnicode_Compare(name, p->interned[i]) == 0) return i;
    const char *text = PyUnicode_AsUTF8(name), *other = text ? other_name(text) : NULL;
    for (int i = 0; i < p->n && other; i++)
        if (!strcmp(other, p->names[i])) return i;
    return -1;
}

static bool is_whole(PyObject *o) { return PyLong_Check(o) || (!is_tensor(o) && PyIndex_Check(o)); }

static int bind_names(const parameters *p, PyObject *const *args, PyObject *names, PyObject **out)
{
    if (make_names(p)) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        int at = place_of(p, PyTuple_GET_ITEM(names, i));
        if (at < 0 && args[i] == Py_None && !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out"))
            continue; /* as NumPy's functions pass it on */
        if (at < 0)
            return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", p->function,
                                PyTuple_GET_ITEM(names, i)),
                   -1;
        if (out[at])
            return PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", p->function,
                                p->names[at]),
                   -1;
        out[at] = args[i];
    }
    return 0;
}

/* x.add_(alpha, y), x.addcmul_(value, y, z), torch.add(x, alpha, y): an old order, which PyTorch still takes. The number
   stands after the first operand, and is the only parameter that otherwise needs its name. */
static bool is_old_order(const parameters *p, int first, PyObject *const *args, Py_ssize_t n)
{
    const int named = p->n_positional;
    if (p->n != named + 1 || n != p->n - first || (strcmp(p->names[named], "alpha") && strcmp(p->names[named], "value")))
        return false;
    return is_number(args[1 - first]);
}

int bind_arguments(const parameters *p, int first, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out,
                   PyObject **list)
{
    Py_ssize_t room = p->n_positional - first;
    *list = NULL;
    if (p->collects && n >= room && room > 0 && is_whole(args[room - 1])) {
        *list = PyTuple_New(n - room + 1);
        if (!*list) return -1;
        for (Py_ssize_t i = room - 1; i < n; i++) PyTuple_SET_ITEM(*list, i - room + 1, Py_NewRef(args[i]));
        for (Py_ssize_t i = 0; i < room - 1; i++) out[first + i] = args[i];
        out[p->n_positional - 1] = *list;
    } else if (n > room && is_old_order(p, first, args, n)) {
        if (!first) out[0] = args[0];
        out[p->n_positional] = args[1 - first];
        for (Py_ssize_t i = 2 - first; i < n; i++) out[first + i - 1] = args[i];
    } else if (n > room) {
        return PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given", p->function, room,
                            room == 1 ? "" : "s", n, n == 1 ? "was" : "were"),
               -1;
    } else {
        for (Py_ssize_t i = 0; i < n; i++) out[first + i] = args[i];
    }
    if (names && bind_names(p, args + n, names, out)) return -1;
    for (int i = 0; i < p->n_required; i++)
        if (!out[i])
            return PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s' (position %d)", p->function,
                                p->names[i], i + 1),
                   -1;
    return 0;
}

/* ---- the call ---- */

static PyObject *first_tensor(PyObject *o)
{
    if (!o) return NULL;
    if (is_tensor(o)) return o;
    if (!PyList_Check(o) && !PyTuple_Check(o)) return NULL;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (is_tensor(PySequence_Fast_GET_ITEM(o, i))) return PySequence_Fast_GET_ITEM(o, i);
    return NULL;
}

/* Of tensors of several contexts the first one that has axes decides: single numbers follow. */
static context *context_among(PyObject *const *args, int n)
{
    context *found = NULL;
    for (int i = 0; i < n; i++) {
        PyObject *t = first_tensor(args[i]);
        if (!t) continue;
        if (cn_ndim(handle_of(t)) > 0) return context_of(t);
        if (!found) found = context_of(t);
    }
    return found ? found : context_default();
}

int call_begin(call *k, const char *function, PyObject *const *args, int n)
{
    *k = (call){ .function = function };
    k->c = n > 0 && args[0] && Py_IS_TYPE(args[0], tensor_type) && (n == 1 || cn_ndim(handle_of(args[0])) > 0)
               ? context_of(args[0])
               : context_among(args, n);
    if (!k->c || (!context_ready(k->c) && context_refuse(k->c))) return -1;
    k->scope = cn_scope_begin(k->c->cn);
    return 0;
}

int call_begin_in(call *k, const char *function, PyObject *device)
{
    *k = (call){ .function = function };
    if (!device || device == Py_None) {
        k->c = context_default();
    } else {
        PyObject *text = PyObject_Str(device);
        const char *name = text ? PyUnicode_AsUTF8(text) : NULL;
        k->c = name ? context_for(strcmp(name, "cpu:0") ? name : "cpu") : NULL;
        Py_XDECREF(text);
    }
    if (!k->c || (!context_ready(k->c) && context_refuse(k->c))) return -1;
    k->scope = cn_scope_begin(k->c->cn);
    return 0;
}

void call_end(call *k)
{
    if (k->c) cn_scope_end(k->c->cn, k->scope);
    Py_XDECREF(k->list);
    Py_XDECREF(k->owned);
}

PyObject *call_finish(call *k, cn_tensor *result, PyObject *const *args, int n)
{
    PyObject *o = tensor_result(k->c, result, args, n);
    call_end(k);
    return o;
}

static int keep_until_end(call *k, PyObject *o)
{
    if (!k->owned && !(k->owned = PyList_New(0))) return -1;
    return PyList_Append(k->owned, o);
}

/* ---- values ---- */

static int refuse(const call *k, const char *name, const char *wanted, PyObject *o)
{
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", k->function, name, wanted,
                 o == Py_None ? "None" : Py_TYPE(o)->tp_name);
    return -1;
}

/* The tensor that a plain number stands beside: the first one that is not bool, else the first. */
static cn_tensor *companion(PyObject *const *args, int n)
{
    cn_tensor *found = NULL;
    for (int i = 0; i < n; i++) {
        if (!args[i] || !is_tensor(args[i])) continue;
        if (cn_type(handle_of(args[i])) != CN_BOOL) return handle_of(args[i]);
        if (!found) found = handle_of(args[i]);
    }
    return found;
}

int take_tensor(call *k, PyObject *o, const char *name, bool optional, PyObject *const *args, int n, cn_tensor **v)
{
    *v = NULL;
    if (!o || o == Py_None) return optional ? 0 : refuse(k, name, "a Tensor", o ? o : Py_None);
    if (is_tensor(o) && context_of(o) == k->c) {
        k->c->work += cn_numel(handle_of(o));
        *v = operand_of(o);
        return *v ? 0 : (context_error(k->c), -1);
    }
    if (!is_tensor(o) && !PyNumber_Check(o)) return refuse(k, name, "a Tensor", o);
    if (is_tensor(o) && strcmp(context_of(o)->device, k->c->device)) {
        if (cn_ndim(handle_of(o)) > 0) {
            PyErr_Format(PyExc_RuntimeError, "%s(): tensors must be on one device, but found %s and %s", k->function,
                         k->c->device, context_of(o)->device);
            return -1;
        }
    }
    PyObject *owned = NULL;
    *v = tensor_operand(k->c, o, companion(args, n), &owned);
    if (owned && keep_until_end(k, owned)) *v = NULL;
    Py_XDECREF(owned);
    return *v ? 0 : -1;
}

int take_tensors(call *k, PyObject *o, const char *name, cn_tensor ***v, int *n)
{
    *v = NULL;
    *n = 0;
    if (!o || is_tensor(o)) return refuse(k, name, "a list or tuple of Tensors", o ? o : Py_None);
    PyObject *list = PySequence_Fast(o, "");
    if (!list) return PyErr_Clear(), refuse(k, name, "a list or tuple of Tensors", o);
    if (keep_until_end(k, list)) return Py_DECREF(list), -1;
    Py_DECREF(list);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    if (count == 0 && strncmp(k->function, "index", 5)) {
        PyErr_Format(PyExc_ValueError, "%s(): expected a non-empty list of Tensors", k->function);
        return -1;
    }
    PyObject *memory = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof **v * (count + 1));
    if (!memory || keep_until_end(k, memory)) return Py_XDECREF(memory), -1;
    Py_DECREF(memory);
    *v = (cn_tensor **)(void *)PyBytes_AS_STRING(memory);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        if (item == Py_None && !strncmp(k->function, "index", 5)) {
            (*v)[i] = NULL;
            continue;
        }
        if (!is_tensor(item)) return refuse(k, name, "a list or tuple of Tensors", item);
        if (take_tensor(k, item, name, false, PySequence_Fast_ITEMS(list), (int)count, &(*v)[i])) return -1;
    }
    *n = (int)count;
    return 0;
}

int int_from(PyObject *o, int64_t *v)
{
    if (PyLong_CheckExact(o)) {
        *v = PyLong_AsLongLong(o);
        return *v == -1 && PyErr_Occurred() ? -1 : 0;
    }
    PyObject *whole = PyNumber_Index(o);
    if (!whole) return -1;
    *v = PyLong_AsLongLong(whole);
    Py_DECREF(whole);
    return *v == -1 && PyErr_Occurred() ? -1 : 0;
}

int float_from(PyObject *o, double *v)
{
    if (PyFloat_CheckExact(o)) {
        *v = PyFloat_AS_DOUBLE(o);
        return 0;
    }
    *v = PyFloat_AsDouble(o);
    return *v == -1 && PyErr_Occurred() ? -1 : 0;
}

int bool_from(PyObject *o, bool *v)
{
    int is = PyObject_IsTrue(o);
    *v = is > 0;
    return is < 0 ? -1 : 0;
}

int dims_from(PyObject *o, cn_dims *d)
{
    *d = (cn_dims){ 0 };
    if (is_whole(o) || is_tensor(o)) {
        d->n = 1;
        return int_from(o, &d->v[0]);
    }
    PyObject *list = PySequence_Fast(o, "expected an int or a sequence of ints");
    if (!list) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    int status = 0;
    if (n > CN_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "at most %d axes, got %zd", CN_MAX_DIMS, n);
        status = -1;
    }
    for (Py_ssize_t i = 0; i < n && !status; i++) status = int_from(PySequence_Fast_GET_ITEM(list, i), &d->v[i]);
    d->n = (int)n;
    Py_DECREF(list);
    return status;
}

int take_int(const call *k, PyObject *o, const char *name, int64_t *v)
{
    if (!int_from(o, v)) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return refuse(k, name, "an int", o);
}

int take_float(const call *k, PyObject *o, const char *name, double *v)
{
    if (!float_from(o, v)) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return refuse(k, name, "a number", o);
}

int take_floats(const call *k, PyObject *o, const char *name, int most, double *v)
{
    if (!PyList_Check(o) && !PyTuple_Check(o)) return take_float(k, o, name, v);
    const Py_ssize_t n = PySequence_Size(o);
    if (n < 1 || n > most) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' must have 1 to %d numbers, got %zd", k->function, name,
                     most, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (take_float(k, PyList_Check(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i), name, &v[i])) return -1;
    return 0;
}

int take_bool(const call *k, PyObject *o, const char *name, bool *v)
{
    if (o == Py_True || o == Py_False) {
        *v = o == Py_True;
        return 0;
    }
    if (!PyLong_Check(o) && !is_tensor(o)) return refuse(k, name, "a bool", o);
    return bool_from(o, v);
}

int take_dims(const call *k, PyObject *o, const char *name, cn_dims *v)
{
    if (o == Py_None) {
        *v = CN_ALL;
        return 0;
    }
    if (!dims_from(o, v)) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return refuse(k, name, "an int or a tuple of ints", o);
}

int take_fixed(const call *k, PyObject *o, const char *name, int count, int64_t *v)
{
    cn_dims d;
    if (o == Py_None) return 0;
    if (take_dims(k, o, name, &d)) return -1;
    if (d.n != 1 && d.n != count) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' must have 1 or %d numbers, got %d", k->function, name,
                     count, d.n);
        return -1;
    }
    for (int i = 0; i < count; i++) v[i] = d.v[d.n == 1 ? 0 : i];
    return 0;
}

int take_some(const call *k, PyObject *o, const char *name, int most, int64_t *v)
{
    cn_dims d;
    if (o == Py_None) return 0;
    if (take_dims(k, o, name, &d)) return -1;
    if (d.n > most) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' must have at most %d numbers, got %d", k->function, name,
                     most, d.n);
        return -1;
    }
    for (int i = 0; i < d.n; i++) v[i] = d.v[i];
    return 0;
}

int refuse_zero(const call *k, const char *name, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++) {
        if (v[i] != 0) continue;
        PyErr_Format(PyExc_ValueError, "%s(): %s must be greater than zero", k->function, name);
        return -1;
    }
    return 0;
}

int take_str(const call *k, PyObject *o, const char *name, const char **v)
{
    *v = NULL;
    if (o == Py_None) return 0;
    if (!PyUnicode_Check(o)) return refuse(k, name, "a str", o);
    *v = PyUnicode_AsUTF8(o);
    return *v ? 0 : -1;
}

int take_dtype(const call *k, PyObject *o, const char *name, cn_dtype usual, cn_dtype *v)
{
    int t;
    if (dtype_from(o, &t)) return PyErr_Clear(), refuse(k, name, "a cairn.dtype", o);
    *v = t >= 0 ? (cn_dtype)t : usual == CN_F32 ? (cn_dtype)default_float() : usual;
    return 0;
}

int take_choice(const call *k, PyObject *o, const char *name, const char *const *choices, int n, int *v)
{
    if (!PyUnicode_Check(o)) return refuse(k, name, "a str", o);
    for (*v = 0; *v < n; ++*v) {
        const char *c = choices[*v];
        if (PyUnicode_CompareWithASCIIString(o, c) == 0) return 0;
        if (!strcmp(c, "nearest_exact") && PyUnicode_CompareWithASCIIString(o, "nearest-exact") == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s(): argument '%s' cannot be %R; it can be", k->function, name, o);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = PyObject_Str(value);
    for (int i = 0; i < n && text; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s '%s'", text, i ? "," : "", choices[i]);
        Py_SETREF(text, longer);
    }
    if (text) PyErr_SetObject(type, text);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

bool take_number(call *k, PyObject *o, cn_tensor **x, double *v)
{
    (void)k;
    cn_dtype own;
    if (PyFloat_CheckExact(o)) {
        *v = PyFloat_AS_DOUBLE(o);
        own = CN_F32;
    } else if (PyLong_CheckExact(o)) {
        int overflow;
        long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow || whole > INT64_C(1) << 53 || whole < -(INT64_C(1) << 53)) return false;
        *v = (double)whole;
        own = CN_I64;
    } else if (PyBool_Check(o)) {
        *v = o == Py_True;
        own = CN_BOOL;
    } else if (PyFloat_Check(o)) { /* numpy.float64 */
        *v = PyFloat_AsDouble(o);
        own = CN_F32;
    } else {
        return false;
    }
    const cn_dtype t = cn_type(*x);
    if (own == CN_BOOL && t == CN_BOOL) return false; /* a number in C counts as a whole one: both are bool here */
    if (own == CN_F32 && !cn_dtype_is_float(t)) *x = cn_cast(*x, (cn_dtype)default_float());
    else if (own == CN_I64 && t == CN_BOOL) *x = cn_cast(*x, CN_I64);
    return true;
}

/* ---- results ---- */

static PyObject *tuple_types; /* by the function's name */

static PyTypeObject *tuple_type(const char *function, const char *const *names, int n)
{
    if (!tuple_types && !(tuple_types = PyDict_New())) return NULL;
    PyObject *found = PyDict_GetItemString(tuple_types, function);
    if (found) return (PyTypeObject *)found;
    PyStructSequence_Field fields[8] = { 0 };
    for (int i = 0; i < n; i++) fields[i] = (PyStructSequence_Field){ names[i], NULL };
    char *full = PyMem_Malloc(64 + strlen(function)); /* the type keeps it */
    if (!full) return (PyTypeObject *)PyErr_NoMemory();
    sprintf(full, "cairn.return_types.%s", function);
    PyTypeObject *t = PyStructSequence_NewType(&(PyStructSequence_Desc){ full, NULL, fields, n });
    if (!t || PyDict_SetItemString(tuple_types, function, (PyObject *)t)) return NULL;
    Py_DECREF(t);
    return t;
}

PyObject *many_results(call *k, const char *function, const char *const *names, cn_tensor **v, int n)
{
    PyTypeObject *t = tuple_type(function, names, n);
    PyObject *result = t && v[0] ? PyStructSequence_New(t) : NULL;
    if (!v[0]) context_error(k->c);
    for (int i = 0; i < n && result; i++) {
        PyObject *o = tensor_wrap(k->c, v[i]);
        if (!o) Py_CLEAR(result);
        else PyStructSequence_SET_ITEM(result, i, o);
    }
    call_end(k);
    return result;
}

PyObject *list_of_results(call *k, cn_tensor **v, int n)
{
    PyObject *result = n > 0 || !cn_failed(k->c->cn) ? PyTuple_New(n) : context_error(k->c);
    for (int i = 0; i < n && result; i++) {
        PyObject *o = tensor_wrap(k->c, v[i]);
        if (!o) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, o);
    }
    call_end(k);
    return result;
}

static int category(cn_dtype t) { return t == CN_BOOL ? 0 : cn_dtype_is_float(t) ? 2 : 1; }

PyObject *assign_result(call *k, PyObject *self, cn_tensor *value)
{
    const cn_dtype t = cn_type(handle_of(self));
    if (!value || category(cn_type(value)) <= category(t)) return assign_value(k, self, value);
    PyErr_Format(PyExc_RuntimeError, "%s: a result of %s cannot be stored in a tensor of %s", k->function,
                 cn_dtype_name(cn_type(value)), cn_dtype_name(t));
    call_end(k);
    return NULL;
}

/* Where gradients are recorded, the object gets another handle, through which they flow. */
static bool give_value(tensor *t, cn_tensor *value)
{
    const bool recorded = !t->detached && !grad_off;
    if (!recorded || !(cn_requires_grad(value) || cn_requires_grad(t->handle))) return cn_assign(t->handle, value);
    const cn_dims shape = cn_shape(t->handle);
    if (cn_type(value) != cn_type(t->handle)) value = cn_cast(value, cn_type(t->handle));
    if (value) value = cn_expand(value, shape);
    if (value) value = cn_view(value, shape); /* a handle of its own, even if the value is another object's */
    if (!value || !cn_keep(value)) return false;
    cn_release(t->handle);
    t->handle = value;
    return true;
}

PyObject *assign_value(call *k, PyObject *self, cn_tensor *value)
{
    tensor *t = (tensor *)self;
    if (t->base) handle_of(self); /* of a part: what the base has now */
    if (t->detached) cn_no_grad_begin(k->c->cn);
    const bool ok = value && give_value(t, value);
    k->c->work += cn_numel(t->handle);
    if (ok) tensor_bump(self);
    if (t->detached) cn_no_grad_end(k->c->cn);
    PyObject *result = ok ? Py_NewRef(self) : context_error(k->c);
    call_end(k);
    if (result && t->index && tensor_changed(self)) Py_CLEAR(result);
    return result;
}
