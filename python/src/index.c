/* index.c: x[...] and x[...] = v, as in PyTorch.

   An index is read from left to right. Numbers, slices and None become steps: views of x. Tensors and masks are
   collected and applied to the view at the end. An assignment goes the same way forth and then back: the new value of
   the view becomes the new value of what it is a view of, step by step, until x itself gets a new value. */
#include "call.h"

#include <stddef.h>
#include <string.h>

enum { MOST_ITEMS = 24 }; /* of an index: 8 axes, and None and bool between them */

typedef struct step {
    enum { SELECT, SLICE, UNSQUEEZE } kind;
    int axis;
    int64_t start, end, step;
    cn_tensor *from; /* the value before the step */
} step;

typedef struct reader {
    context *c;
    cn_tensor *view; /* x after the steps so far */
    int axis;        /* of the view: where the next item of the index applies */
    int ndim;        /* of x */
    int n_steps, n_owned;
    int ellipsis;                   /* axes that the first ... stands for */
    bool advanced, masked;          /* there is an index tensor; there is a mask */
    cn_tensor *at[CN_MAX_DIMS + 1]; /* by axis of the view: an index tensor, or a mask, which begins at this axis */
    step steps[MOST_ITEMS];
    PyObject *owned[MOST_ITEMS + 1]; /* tensors made of lists and arrays: of the index, and of the value */
} reader;

static void reader_begin(reader *r, PyObject *self)
{
    memset(r, 0, offsetof(reader, steps));
    r->c = context_of(self);
    r->view = operand_of(self);
    r->ndim = cn_ndim(r->view);
}

static void reader_end(reader *r)
{
    for (int k = 0; k < r->n_owned; k++) Py_DECREF(r->owned[k]);
}

/* "[2, 3, 4]" */
static const char *shape_text(cn_dims d, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "[");
    for (int k = 0; k < d.n && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", k ? ", " : "", (long long)d.v[k]);
    if (n < size) snprintf(out + n, size - n, "]");
    return out;
}

static int out_of_bounds(int64_t index, int axis, int64_t size)
{
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)index,
                 axis, (long long)size);
    return -1;
}

static int failed(reader *r)
{
    context_error(r->c);
    return -1;
}

static int no_axis(reader *r, const char *what)
{
    if (r->ndim == 0 && r->n_steps == 0)
        PyErr_Format(PyExc_IndexError, "invalid index of a 0-dim tensor: %s needs an axis; use `tensor.item()`", what);
    else PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", r->ndim);
    return -1;
}

/* ---- steps ---- */

static int add_step(reader *r, step s, cn_tensor *view)
{
    if (!view) return failed(r);
    s.from = r->view;
    r->steps[r->n_steps++] = s; /* there are at most as many steps as items */
    r->view = view;
    return 0;
}

static int add_select(reader *r, int64_t index)
{
    if (r->axis >= cn_ndim(r->view)) return no_axis(r, "a number");
    const int64_t size = cn_size(r->view, r->axis);
    if (index < -size || index >= size) return out_of_bounds(index, r->axis, size);
    if (index < 0) index += size;
    return add_step(r, (step){ .kind = SELECT, .axis = r->axis, .start = index, .end = index + 1, .step = 1 },
                    cn_select(r->view, r->axis, index));
}

static int add_slice(reader *r, PyObject *item)
{
    Py_ssize_t start, end, by;
    if (PySlice_Unpack(item, &start, &end, &by) < 0) return -1;
    if (r->axis >= cn_ndim(r->view)) return no_axis(r, "a slice");
    if (by < 0) {
        PyErr_Format(PyExc_ValueError, "step must be greater than zero, got %zd; use flip to reverse an axis", by);
        return -1;
    }
    const int64_t size = cn_size(r->view, r->axis);
    const Py_ssize_t length = PySlice_AdjustIndices((Py_ssize_t)size, &start, &end, by);
    const int axis = r->axis++;
    if (length == size && by == 1) return 0; /* the whole axis */
    if (length == 0) end = start;
    return add_step(r, (step){ .kind = SLICE, .axis = axis, .start = start, .end = end, .step = by },
                    cn_slice(r->view, axis, start, end, by));
}

static int add_axis(reader *r)
{
    const int axis = r->axis++;
    return add_step(r, (step){ .kind = UNSQUEEZE, .axis = axis }, cn_unsqueeze(r->view, axis));
}

/* True is an index into a new axis of size 1 that names its element; False names none. */
static int add_bool(reader *r, bool on)
{
    if (add_axis(r) < 0) return -1;
    cn_tensor *t = cn_zeros(r->c->cn, CN_I64, CN_DIMS(on));
    if (!t) return failed(r);
    r->at[r->axis - 1] = t;
    r->advanced = true;
    return 0;
}

/* ---- index tensors and masks ---- */

static int add_mask(reader *r, cn_tensor *mask)
{
    const cn_dims m = cn_shape(mask), x = cn_shape(r->view);
    if (r->axis + m.n > x.n) return no_axis(r, "a mask");
    for (int d = 0; d < m.n; d++) {
        if (m.v[d] == x.v[r->axis + d]) continue;
        char s[128], t[128];
        PyErr_Format(
            PyExc_IndexError,
            "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
            shape_text(m, s, sizeof s), d, shape_text(x, t, sizeof t), r->axis + d);
        return -1;
    }
    r->at[r->axis] = mask;
    r->axis += m.n;
    r->advanced = r->masked = true;
    return 0;
}

/* The values of an index that was written as a list can be looked at without computing anything. */
static int check_values(reader *r, cn_tensor *index, int64_t size)
{
    if (strcmp(cn_device(index), "cpu") != 0 || cn_numel(index) == 0) return 0;
    const int64_t *v = cn_data(index);
    if (!v) return failed(r);
    for (int64_t k = 0, n = cn_numel(index); k < n; k++)
        if (v[k] < -size || v[k] >= size) return out_of_bounds(v[k], r->axis, size);
    return 0;
}

/* made: from a list */
static int add_index(reader *r, cn_tensor *index, bool made)
{
    cn_dtype t = cn_type(index);
    const int ndim = cn_ndim(index);
    if (made && cn_numel(index) == 0 && t != CN_I64) { /* [] has no numbers that could tell a dtype */
        if (!(index = cn_cast(index, t = CN_I64))) return failed(r);
    }
    if (t == CN_U8) {
        if (PyErr_WarnEx(PyExc_UserWarning, "indexing with dtype uint8 is deprecated, use dtype bool instead", 1) < 0)
            return -1;
        if (!(index = cn_ne_s(index, 0))) return failed(r);
        t = CN_BOOL;
    }
    if (t != CN_BOOL && t != CN_I32 && t != CN_I64) {
        PyObject *got = dtype_object(t);
        PyErr_Format(PyExc_IndexError, "tensors used as indices must be int64, int32, uint8 or bool tensors, got %R",
                     got);
        Py_DECREF(got);
        return -1;
    }
    if (ndim == 0) {
        int64_t v;
        COMPUTE(r->c, v = cn_item_i64(index));
        if (cn_failed(r->c->cn)) return failed(r);
        return t == CN_BOOL ? add_bool(r, v != 0) : add_select(r, v);
    }
    if (t == CN_BOOL) return add_mask(r, index);
    if (r->axis >= cn_ndim(r->view)) return no_axis(r, "an index tensor");
    if (made && t == CN_I64 && check_values(r, index, cn_size(r->view, r->axis)) < 0) return -1;
    r->at[r->axis++] = index;
    r->advanced = true;
    return 0;
}

/* ---- reading an index ---- */

static bool is_int(PyObject *o) { return PyLong_Check(o) || (PyIndex_Check(o) && !PySequence_Check(o)); }

static int not_an_index(PyObject *o)
{
    PyErr_Format(PyExc_IndexError,
                 "only integers, slices (`:`), ellipsis (`...`), None, bools and tensors or sequences of integers or "
                 "bools are valid indices (got %s)",
                 Py_TYPE(o)->tp_name);
    return -1;
}

/* item as a tensor of the reader's context. *made: its values were written as a list, or are a NumPy array. */
static cn_tensor *index_operand(reader *r, PyObject *item, bool *made)
{
    *made = !is_tensor(item);
    for (int k = 0; k < r->n_owned; k++) {
        if (r->owned[k] != item) continue;
        *made = true;
        return handle_of(item);
    }
    if (*made && (PyUnicode_Check(item) || PyBytes_Check(item) || !PySequence_Check(item))) {
        not_an_index(item);
        return NULL;
    }
    PyObject *owned = NULL;
    cn_tensor *t = tensor_operand(r->c, item, NULL, &owned);
    if (owned) r->owned[r->n_owned++] = owned;
    return t;
}

/* How many axes an item names, for `...`. Lists become tensors, which replace them in items[]. */
static int axes_named(reader *r, PyObject **item)
{
    PyObject *o = *item;
    if (PyBool_Check(o) || o == Py_None || o == Py_Ellipsis) return 0;
    if (is_int(o) || PySlice_Check(o)) return 1;
    if (!is_tensor(o)) {
        bool made;
        const int before = r->n_owned;
        if (!index_operand(r, o, &made)) return -1;
        o = *item = r->owned[before];
    }
    const cn_dtype t = cn_type(handle_of(o));
    return t == CN_BOOL || t == CN_U8 ? cn_ndim(handle_of(o)) : 1;
}

static int add_item(reader *r, PyObject *o)
{
    if (PyLong_CheckExact(o) || (!PyBool_Check(o) && is_int(o) && !is_tensor(o))) {
        const Py_ssize_t index = PyNumber_AsSsize_t(o, PyExc_IndexError);
        return index == -1 && PyErr_Occurred() ? -1 : add_select(r, index);
    }
    if (PySlice_Check(o)) return add_slice(r, o);
    if (o == Py_None) return add_axis(r);
    if (PyBool_Check(o)) return add_bool(r, o == Py_True);
    if (o == Py_Ellipsis) {
        r->axis += r->ellipsis;
        r->ellipsis = 0; /* another ... stands for no axis */
        return 0;
    }
    bool made;
    cn_tensor *t = index_operand(r, o, &made);
    return t ? add_index(r, t, made) : -1;
}

/* A list that contains lists, slices, tensors, None or ... stands for a tuple, as in PyTorch. */
static bool stands_for_tuple(PyObject *index)
{
    if (!PyList_Check(index)) return false;
    const Py_ssize_t n = PyList_GET_SIZE(index);
    for (Py_ssize_t k = 0; k < n && n < MOST_ITEMS; k++) {
        PyObject *o = PyList_GET_ITEM(index, k);
        if (o == Py_None || o == Py_Ellipsis || PySlice_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
            is_tensor(o) || (!is_int(o) && PySequence_Check(o) && !PyUnicode_Check(o)))
            return true;
    }
    return false;
}

static int read_items(reader *r, PyObject *const *items, Py_ssize_t n)
{
    bool has_ellipsis = false;
    for (Py_ssize_t k = 0; k < n; k++) has_ellipsis |= items[k] == Py_Ellipsis;
    if (!has_ellipsis) {
        for (Py_ssize_t k = 0; k < n; k++)
            if (add_item(r, items[k]) < 0) return -1;
        return 0;
    }
    PyObject *all[MOST_ITEMS];
    int named = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        all[k] = items[k];
        const int axes = axes_named(r, &all[k]);
        if (axes < 0) return -1;
        named += axes;
    }
    if (named > r->ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", r->ndim);
        return -1;
    }
    r->ellipsis = r->ndim - named;
    for (Py_ssize_t k = 0; k < n; k++)
        if (add_item(r, all[k]) < 0) return -1;
    return 0;
}

static int read_index(reader *r, PyObject *index)
{
    PyObject *const *items = &index;
    Py_ssize_t n = 1;
    if (PyTuple_Check(index)) {
        items = &PyTuple_GET_ITEM(index, 0);
        n = PyTuple_GET_SIZE(index);
    } else if (stands_for_tuple(index)) {
        if (PyErr_WarnEx(PyExc_UserWarning,
                         "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)]",
                         1) < 0)
            return -1;
        items = &PyList_GET_ITEM(index, 0);
        n = PyList_GET_SIZE(index);
    }
    if (n <= MOST_ITEMS) return read_items(r, items, n);
    PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", r->ndim);
    return -1;
}

/* Index tensors must broadcast to each other. */
static int check_broadcast(reader *r)
{
    cn_dims all = { 0, { 0 } };
    for (int a = 0; a < cn_ndim(r->view); a++) {
        if (!r->at[a] || cn_type(r->at[a]) == CN_BOOL) continue;
        const cn_dims s = cn_shape(r->at[a]);
        for (int d = 1; d <= s.n; d++) {
            const int64_t have = d <= all.n ? all.v[CN_MAX_DIMS - d] : 1, want = s.v[s.n - d];
            if (have != 1 && want != 1 && have != want) {
                char was[128], is[128];
                cn_dims so_far = { all.n, { 0 } };
                memcpy(so_far.v, all.v + CN_MAX_DIMS - all.n, sizeof *all.v * (size_t)all.n);
                PyErr_Format(PyExc_IndexError,
                             "shape mismatch: indexing tensors could not be broadcast together with shapes %s, %s",
                             shape_text(so_far, was, sizeof was), shape_text(s, is, sizeof is));
                return -1;
            }
            all.v[CN_MAX_DIMS - d] = have == 1 ? want : have; /* from the last axis on */
        }
        if (s.n > all.n) all.n = s.n;
    }
    return 0;
}

/* The indices as cn_index wants them: NULL for whole axes, one entry for all axes of a mask. */
static int index_list(const reader *r, cn_tensor **out)
{
    int n = 0, used = 0;
    for (int a = 0; a < cn_ndim(r->view);) {
        cn_tensor *t = out[n++] = r->at[a];
        if (t) used = n;
        a += t && cn_type(t) == CN_BOOL ? cn_ndim(t) : 1;
    }
    return used;
}

/* ---- x[...] ---- */

/* Another handle on the value of the view: x[...], x[:]. */
static cn_tensor *alias(cn_tensor *x)
{
    return cn_ndim(x) ? cn_slice(x, 0, 0, cn_size(x, 0), 1) : cn_view(x, CN_SCALAR);
}

static PyObject *subscript(reader *r, PyObject *index)
{
    cn_tensor *x = r->view, *y = NULL, *list[CN_MAX_DIMS];
    if (read_index(r, index) < 0) return NULL;
    if (!r->advanced) return tensor_wrap(r->c, r->view == x ? alias(x) : r->view);
    if (check_broadcast(r) < 0) return NULL;
    const int n = index_list(r, list);
    if (r->masked) COMPUTE(r->c, y = cn_index(r->view, list, n)); /* evaluates the mask */
    else y = cn_index(r->view, list, n);
    return tensor_wrap(r->c, y);
}

PyObject *tensor_item_at(PyObject *self, Py_ssize_t index)
{
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    cn_tensor *x = handle_of(self);
    const int64_t size = cn_ndim(x) ? cn_size(x, 0) : 0;
    if (index < 0 || index >= size) {
        if (cn_ndim(x)) out_of_bounds(index, 0, size);
        else PyErr_SetString(PyExc_IndexError, "invalid index of a 0-dim tensor; use `tensor.item()`");
        return NULL;
    }
    const cn_scope s = cn_scope_begin(c->cn);
    PyObject *out = tensor_wrap(c, cn_select(operand_of(self), 0, index));
    cn_scope_end(c->cn, s);
    return out;
}

/* x[int], without a reader */
static PyObject *subscript_int(PyObject *self, PyObject *index)
{
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_IndexError, "cannot fit %R into an index", index);
        return NULL;
    }
    const cn_tensor *x = handle_of(self);
    const int64_t size = i < 0 && cn_ndim(x) ? cn_size(x, 0) : 0;
    if (i >= 0 || i + size >= 0) return tensor_item_at(self, (Py_ssize_t)(i + size));
    if (cn_ndim(x)) out_of_bounds(i, 0, size);
    else PyErr_SetString(PyExc_IndexError, "invalid index of a 0-dim tensor; use `tensor.item()`");
    return NULL;
}

PyObject *tensor_subscript(PyObject *self, PyObject *index)
{
    if (PyLong_CheckExact(index)) return subscript_int(self, index);
    context *c = context_of(self);
    if (context_enter(c) < 0) return NULL;
    reader r;
    const cn_scope s = cn_scope_begin(c->cn);
    reader_begin(&r, self);
    PyObject *out = subscript(&r, index);
    cn_scope_end(c->cn, s);
    reader_end(&r);
    return out;
}

/* ---- x[...] = v ---- */

/* The value without axes of size 1 in front, which broadcasting ignores. */
static cn_tensor *strip(cn_tensor *v)
{
    cn_dims s = cn_shape(v); /* of NULL: no axes */
    int ones = 0;
    while (ones < s.n && s.v[ones] == 1) ones++;
    if (!ones) return v;
    s.n -= ones;
    memmove(s.v, s.v + ones, sizeof *s.v * (size_t)s.n);
    return cn_reshape(v, s);
}

/* The value as a tensor of x's dtype and context. */
static cn_tensor *value_operand(reader *r, PyObject *value, cn_dtype dtype)
{
    if (is_number(value)) return number_tensor(r->c, value, dtype);
    if (!is_tensor(value) && (value == Py_None || PyUnicode_Check(value) || PyBytes_Check(value) ||
                              PyComplex_Check(value) || PyDict_Check(value))) {
        PyErr_Format(PyExc_TypeError, "can't assign a %s to a tensor", Py_TYPE(value)->tp_name);
        return NULL;
    }
    PyObject *owned = NULL;
    cn_tensor *v = tensor_operand(r->c, value, r->view, &owned);
    if (owned) r->owned[r->n_owned++] = owned;
    if (v && cn_type(v) != dtype && !(v = cn_cast(v, dtype))) failed(r);
    return v;
}

/* The whole of x gets the value: of x's shape, or broadcast to it. If gradients flow through x, its old value stays a
   part of the graph, as in PyTorch: its gradient is 0. */
static bool assign_whole(tensor *self, cn_tensor *value)
{
    cn_tensor *x = self->handle, *v = value ? cn_expand(strip(value), cn_shape(x)) : NULL;
    const bool recorded = cn_grad_enabled(self->context->cn);
    if (!v) return false;
    if (recorded && cn_requires_grad(x) && cn_ndim(x)) return cn_slice_assign_(x, 0, 0, cn_size(x, 0), 1, v);
    if (recorded && cn_requires_grad(x)) v = cn_squeeze(cn_slice_assign(cn_unsqueeze(x, 0), 0, 0, 1, 1, v), CN_DIMS(0));
    else if (recorded && cn_requires_grad(v)) v = cn_clone(v);
    else return cn_assign(x, v);
    if (!v) return false;
    self->handle = cn_keep(v); /* the gradient flows through */
    cn_release(x);
    return true;
}

/* w is the new value of the view after step k - 1: the new value of what the steps began with. */
static bool assign_back(reader *r, tensor *self, cn_tensor *w)
{
    for (int k = r->n_steps - 1; k >= 0 && w; k--) {
        const step *s = &r->steps[k];
        if (s->kind == UNSQUEEZE) {
            w = cn_squeeze(w, CN_DIMS(s->axis));
            continue;
        }
        if (s->kind == SELECT) w = cn_unsqueeze(w, s->axis);
        if (k == 0) return cn_slice_assign_(self->handle, s->axis, s->start, s->end, s->step, w);
        w = cn_slice_assign(s->from, s->axis, s->start, s->end, s->step, w);
    }
    return assign_whole(self, w);
}

static int assign(reader *r, tensor *self, PyObject *index, PyObject *value)
{
    if (read_index(r, index) < 0 || (r->advanced && check_broadcast(r) < 0)) return -1;
    cn_tensor *v = value_operand(r, value, cn_type(self->handle)), *list[CN_MAX_DIMS];
    if (!v) return -1;
    bool ok = (v = strip(v)) != NULL;
    if (!r->advanced) {
        if (ok && r->n_steps) ok = (v = cn_expand(v, cn_shape(r->view))) != NULL;
        ok = ok && assign_back(r, self, v);
    } else if (ok) {
        const int n = index_list(r, list);
        if (r->n_steps == 0 && r->masked) COMPUTE(r->c, ok = cn_index_put_(self->handle, list, n, v, false));
        else if (r->n_steps == 0) ok = cn_index_put_(self->handle, list, n, v, false);
        else {
            if (r->masked) COMPUTE(r->c, v = cn_index_put(r->view, list, n, v, false));
            else v = cn_index_put(r->view, list, n, v, false);
            ok = v && assign_back(r, self, v);
        }
    }
    return ok ? 0 : failed(r);
}

/* Nobody else has the object: x[0][1] = v would assign to a view that is thrown away. */
static bool is_temporary(PyObject *self)
{
#if PY_VERSION_HEX >= 0x030e0000
    return PyUnstable_Object_IsUniqueReferencedTemporary(self);
#else
    return Py_REFCNT(self) == 1;
#endif
}

int tensor_ass_subscript(PyObject *self, PyObject *index, PyObject *value)
{
    context *c = context_of(self);
    const bool detached = ((tensor *)self)->detached; /* x.data shares the new value with x */
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    if (!detached && !((tensor *)self)->shared && !((tensor *)self)->index && is_temporary(self)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the assignment would be lost: it gives a temporary tensor a new value, and views do not share "
                        "new values; write x[i, j] = v for x[i][j] = v");
        return -1;
    }
    if (context_enter(c) < 0) return -1;
    if (!detached && cn_grad_enabled(c->cn) && cn_requires_grad(handle_of(self)) && tensor_is_leaf(self)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a leaf Variable that requires grad is being used in an in-place operation; "
                        "use no_grad() to change it");
        return -1;
    }
    reader r;
    if (detached) cn_no_grad_begin(c->cn);
    const cn_scope s = cn_scope_begin(c->cn);
    reader_begin(&r, self);
    const int out = assign(&r, (tensor *)self, index, value);
    cn_scope_end(c->cn, s);
    if (detached) cn_no_grad_end(c->cn);
    reader_end(&r);
    return out;
}
