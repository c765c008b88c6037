/* layer.c: runs of layers, and the C halves of Neuron, Layer and MLP, which start them.

   A layer computes out[j] = relu(b[j] + w[j][0] x[0] + w[j][1] x[1] + ..), term after term, as the same program
   written with values would: the numbers are the same bits. The weights lie transposed, (nin, nout), so that
   neighbouring rows are computed at the same time. */
#include "micrograd.h"

Py_ssize_t runs_alive;

/* ---- blocks ---- */

static void weights_release(weights *w)
{
    if (w && --w->refs == 0) PyMem_Free(w);
}

static void block_release(block *b)
{
    if (!b || --b->refs) return;
    for (Py_ssize_t i = 0; i < b->nout * (b->nin + 1); i++) Py_XDECREF(b->parameter[i]);
    weights_release(b->now);
    PyMem_Free(b->grad);
    PyMem_Free(b->parameter);
    PyMem_Free(b->nonlin);
    PyMem_Free(b);
}

static block *block_new(Py_ssize_t nin, Py_ssize_t nout)
{
    size_t numbers = (size_t)nout * (size_t)(nin + 1);
    block *b = PyMem_Calloc(1, sizeof *b);
    if (!b) return (block *)PyErr_NoMemory();
    *b = (block){ .refs = 1, .nin = nin, .nout = nout, .whole_w = true, .whole_b = true };
    b->parameter = PyMem_Calloc(numbers, sizeof *b->parameter);
    b->grad = PyMem_Calloc(numbers, sizeof *b->grad);
    b->nonlin = PyMem_Calloc((size_t)nout, sizeof *b->nonlin);
    if (b->parameter && b->grad && b->nonlin) return b;
    if (!b->parameter) b->nout = 0;
    block_release(b);
    return (block *)PyErr_NoMemory();
}

/* The current numbers of the parameters. Runs that were computed with older ones keep those. */
static int block_refresh(block *b)
{
    Py_ssize_t n = b->nout, numbers = n * (b->nin + 1);
    weights *w = b->now;
    if (w && w->version == data_version) return 0;
    bool same = w != NULL;
    for (Py_ssize_t j = 0; same && j < n; j++)
        for (Py_ssize_t i = 0; same && i <= b->nin; i++)
            same = w->number[(i == b->nin ? 0 : i + 1) * n + j] == b->parameter[j * (b->nin + 1) + i]->data;
    if (!same && (!w || w->refs > 1)) {
        w = PyMem_Malloc(sizeof *w + (size_t)numbers * sizeof *w->number);
        if (!w) {
            PyErr_NoMemory();
            return -1;
        }
        w->refs = 1;
        weights_release(b->now);
        b->now = w;
    }
    for (Py_ssize_t j = 0; !same && j < n; j++) {
        value **p = b->parameter + j * (b->nin + 1);
        w->number[j] = p[b->nin]->data;
        for (Py_ssize_t i = 0; i < b->nin; i++) w->number[(i + 1) * n + j] = p[i]->data;
    }
    w->version = data_version;
    return 0;
}

/* ---- runs ---- */

static run *run_new(block *b, run *before)
{
    size_t n = (size_t)b->nout, nin = before ? 0 : (size_t)b->nin;
    run *r = PyMem_Malloc(sizeof *r + 3 * n * sizeof(double) + (n + nin) * sizeof(value *) + n);
    if (!r) return (run *)PyErr_NoMemory();
    *r = (run){ .refs = 1, .block = b, .weights = b->now, .before = before };
    b->refs++;
    b->now->refs++;
    if (before) before->refs++;
    r->out = (double *)(r + 1);
    r->grad = r->out + n;
    r->delta = r->grad + n;
    r->made = (value **)(r->delta + n);
    r->inputs = before ? NULL : r->made + n;
    r->state = (uint8_t *)(r->made + n + nin);
    memset(r->grad, 0, 2 * n * sizeof(double) + (n + nin) * sizeof(value *) + n);
    runs_alive++;
    return r;
}

void run_release(run *r)
{
    while (r && --r->refs == 0) {
        run *before = r->before;
        for (Py_ssize_t i = 0; r->inputs && i < r->block->nin; i++) Py_XDECREF(r->inputs[i]);
        for (Py_ssize_t j = 0; j < r->block->nout; j++)
            if (r->state[j] & ROW_EXPANDED) Py_DECREF(r->made[j]);
        weights_release(r->weights);
        block_release(r->block);
        PyMem_Free(r);
        runs_alive--;
        r = before;
    }
}

bool run_passed(const run *r)
{
    for (; r; r = r->before)
        if (r->passed) return true;
    return false;
}

/* The inputs' numbers: as they lie, or gathered in `room`, (nin). */
static const double *run_inputs(const run *r, double *room)
{
    const run *before = r->before;
    for (Py_ssize_t i = 0; i < r->block->nin; i++)
        room[i] = !before ? r->inputs[i]->data : before->made[i] ? before->made[i]->data : before->out[i];
    return room;
}

/* Room for the inputs of one run and their gradients. It is kept: layers are called again and again. */
static double *scratch(Py_ssize_t n)
{
    static double *room;
    static Py_ssize_t size;
    if (n <= size) return room;
    double *grown = PyMem_Realloc(room, (size_t)n * sizeof *grown);
    if (!grown) return (double *)PyErr_NoMemory();
    room = grown;
    size = n;
    return room;
}

static int run_forward(run *r)
{
    const block *b = r->block;
    Py_ssize_t n = b->nout;
    double *room = scratch(b->nin);
    if (!room) return -1;
    const double *x = run_inputs(r, room), *w = r->weights->number;
    double *restrict out = r->out;
    memcpy(out, w, (size_t)n * sizeof *out);
    for (Py_ssize_t i = 0; i < b->nin; i++) {
        double xi = x[i];
        w += n;
        for (Py_ssize_t j = 0; j < n; j++) {
            double product = w[j] * xi;
            out[j] += product;
        }
    }
    for (Py_ssize_t j = 0; j < n; j++) {
        if (b->nonlin[j] && out[j] < 0) {
            out[j] = 0;
            r->state[j] = ROW_WHOLE;
        }
    }
    return 0;
}

/* The object of a row; a new reference. */
static value *run_row(run *r, Py_ssize_t row)
{
    value *v = r->made[row];
    if (v) return (value *)Py_NewRef((PyObject *)v);
    v = value_leaf(r->out[row], r->state[row] & ROW_WHOLE);
    if (!v) return NULL;
    v->op = ROW;
    v->run = r;
    v->row = row;
    v->grad = r->grad[row];
    if (r->passed) v->flags &= ~WHOLE_GRAD;
    r->refs++;
    r->made[row] = v;
    return v;
}

void run_drop_row(value *v)
{
    v->run->made[v->row] = NULL;
    v->run->out[v->row] = v->data;
    v->run->grad[v->row] = v->grad;
}

const char *run_row_op(const value *v) { return v->run->block->nonlin[v->row] ? "ReLU" : "+"; }

/* ---- backward ---- */

/* The gradients behind the nonlinearities of the rows that this backward has reached; 0 for the others. */
static void run_deltas(run *r, uint64_t pass, double *delta, bool *whole)
{
    for (Py_ssize_t j = 0; j < r->block->nout; j++) {
        const value *v = r->made[j];
        delta[j] = 0;
        if (r->state[j] & ROW_EXPANDED || !(r->through == pass || (v && v->mark == pass))) continue;
        double grad = v ? v->grad : r->grad[j];
        bool whole_row = v && v->flags & WHOLE_GRAD;
        delta[j] = r->block->nonlin[j] ? ((v ? v->data : r->out[j]) > 0) * grad : grad;
        r->delta[j] = delta[j];
        r->state[j] |= ROW_PASSED | (whole_row ? ROW_WHOLE_DELTA : 0);
        *whole &= whole_row;
    }
}

static void hand_to_inputs(run *r, const double *grad, uint64_t pass)
{
    run *before = r->before;
    if (before) before->through = pass;
    for (Py_ssize_t i = 0; i < r->block->nin; i++) {
        value *v = before ? before->made[i] : r->inputs[i];
        if (v) add_grad(v, grad[i], false);
        else before->grad[i] += grad[i];
    }
}

/* Four sums at a time: none waits for the one before. */
static double dot(const double *a, const double *b, Py_ssize_t n)
{
    double sum[4] = { 0 };
    Py_ssize_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

int run_backward(run *r, uint64_t pass)
{
    block *b = r->block;
    Py_ssize_t n = b->nout, nin = b->nin;
    double *room = scratch(2 * nin + n);
    if (!room || block_refresh(b)) return -1;
    double *restrict delta = room + 2 * nin, *restrict grad_x = room + nin, *restrict grad = b->grad;
    const double *x = run_inputs(r, room), *w = b->now->number;
    bool whole = true, whole_x = !r->before;
    run_deltas(r, pass, delta, &whole);
    for (Py_ssize_t i = 0; i < nin && whole_x; i++) whole_x = is_whole(r->inputs[i]);
    b->whole_b &= whole;
    b->whole_w &= whole && whole_x;
    for (Py_ssize_t j = 0; j < n; j++) grad[j] += delta[j];
    for (Py_ssize_t i = 0; i < nin; i++) {
        double xi = x[i];
        w += n;
        grad += n;
        for (Py_ssize_t j = 0; j < n; j++) grad[j] += xi * delta[j];
        grad_x[i] = dot(w, delta, n);
    }
    hand_to_inputs(r, grad_x, pass);
    r->passed = true;
    return 0;
}

void block_forget(block *b)
{
    memset(b->grad, 0, (size_t)((b->nin + 1) * b->nout) * sizeof *b->grad);
    b->whole_w = b->whole_b = true;
}

/* All runs have added to the block's gradients: the parameters get them. */
void block_backward(block *b)
{
    Py_ssize_t n = b->nout;
    for (Py_ssize_t j = 0; j < n; j++) {
        value **p = b->parameter + j * (b->nin + 1);
        add_grad(p[b->nin], b->grad[j], b->whole_b);
        for (Py_ssize_t i = 0; i < b->nin; i++) add_grad(p[i], b->grad[(i + 1) * n + j], b->whole_w);
    }
    block_forget(b);
}

/* ---- expanding ---- */

/* What a value within a row would have: after one backward all of them have the gradient behind the nonlinearity. */
static value *inner(run *r, Py_ssize_t row, int op, value *a, value *b, double data)
{
    value *v = value_node(data, false, op, a, b);
    if (!v || !(r->state[row] & ROW_PASSED)) return v;
    v->grad = r->delta[row];
    if (!(r->state[row] & ROW_WHOLE_DELTA)) v->flags &= ~WHOLE_GRAD;
    return v;
}

/* The product w[i] x[i] of a row. */
static value *inner_product(run *r, Py_ssize_t row, Py_ssize_t i)
{
    const block *b = r->block;
    value *x = r->before ? run_row(r->before, i) : (value *)Py_NewRef((PyObject *)r->inputs[i]);
    if (!x) return NULL;
    value *product = inner(r, row, MUL, b->parameter[row * (b->nin + 1) + i], x,
                           r->weights->number[(i + 1) * b->nout + row] * x->data);
    Py_DECREF(x);
    return product;
}

int run_expand(value *v)
{
    run *r = v->run;
    const block *b = r->block;
    Py_ssize_t row = v->row;
    value *sum = (value *)Py_NewRef((PyObject *)b->parameter[row * (b->nin + 1) + b->nin]), *product = NULL;
    double data = r->weights->number[row];
    bool linear = !b->nonlin[row];
    for (Py_ssize_t i = 0; i < b->nin; i++) {
        product = inner_product(r, row, i);
        if (!product) goto failed;
        if (linear && i == b->nin - 1) break; /* v itself is the last sum */
        data += product->data;
        value *next = inner(r, row, ADD, sum, product, data);
        Py_DECREF(product);
        if (!next) goto failed;
        Py_DECREF(sum);
        sum = next;
    }
    r->state[row] |= ROW_EXPANDED; /* from now on the run holds v, and v no longer the run */
    Py_INCREF(v);
    v->op = linear ? ADD : RELU;
    v->a = sum;
    v->b = linear ? product : NULL;
    if ((sum->flags | (linear ? product->flags : 0)) & TRACKED) value_track(v);
    run_release(r);
    return 0;
failed:
    Py_DECREF(sum);
    return -1;
}

/* ---- Neuron, Layer, MLP ---- */

typedef struct neuron {
    PyObject_HEAD PyObject *w, *b, *nonlin;
    block *block;
} neuron;

typedef struct layer {
    PyObject_HEAD PyObject *neurons;
    block *block;
} layer;

typedef struct mlp {
    PyObject_HEAD PyObject *layers;
} mlp;

static PyTypeObject *neuron_type, *layer_type;

static PyObject *neuron_call(PyObject *self, PyObject *args, PyObject *kwargs);
static PyObject *layer_call(PyObject *self, PyObject *args, PyObject *kwargs);

static bool is_plain(PyObject *o) { return Py_IS_TYPE(o, value_type) && !(((value *)o)->flags & TRACKED); }

/* A neuron that this file may compute: its class has not changed what a call does, and it has weights. */
static neuron *plain_neuron(PyObject *o)
{
    neuron *n = (neuron *)o;
    if (!PyObject_TypeCheck(o, neuron_type) || Py_TYPE(o)->tp_call != neuron_call) return NULL;
    return n->w && n->b && n->nonlin && PyList_CheckExact(n->w) && PyList_GET_SIZE(n->w) ? n : NULL;
}

static bool neuron_fits(const block *b, Py_ssize_t row, PyObject *o)
{
    const neuron *n = plain_neuron(o);
    if (!n || PyList_GET_SIZE(n->w) != b->nin) return false;
    value **p = b->parameter + row * (b->nin + 1);
    return n->b == (PyObject *)p[b->nin] && n->nonlin == (b->nonlin[row] ? Py_True : Py_False) &&
           memcmp(((PyListObject *)n->w)->ob_item, p, (size_t)b->nin * sizeof *p) == 0;
}

/* false: a row for Python. One of ints alone, for example, has ints as results. */
static bool block_fill(block *b, Py_ssize_t row, const neuron *n)
{
    value **p = b->parameter + row * (b->nin + 1);
    bool whole = true;
    if (!PyBool_Check(n->nonlin)) return false;
    b->nonlin[row] = n->nonlin == Py_True;
    for (Py_ssize_t i = 0; i <= b->nin; i++) {
        PyObject *o = i < b->nin ? PyList_GET_ITEM(n->w, i) : n->b;
        if (!is_plain(o)) return false;
        if (i < b->nin) whole &= is_whole((value *)o);
        p[i] = (value *)Py_NewRef(o);
    }
    return !whole;
}

/* The block of these neurons in *cached, made anew if they have changed. 0: none, -1: an exception. */
static int block_of(PyObject *const *neurons, Py_ssize_t n, block **cached)
{
    block *b = *cached;
    bool fits = b && b->nout == n;
    for (Py_ssize_t j = 0; j < n && fits; j++) fits = neuron_fits(b, j, neurons[j]);
    if (!fits) {
        neuron *first = n ? plain_neuron(neurons[0]) : NULL;
        if (!first) return 0;
        b = block_new(PyList_GET_SIZE(first->w), n);
        if (!b) return -1;
        for (Py_ssize_t j = 0; j < n; j++) {
            neuron *other = plain_neuron(neurons[j]);
            if (other && PyList_GET_SIZE(other->w) == b->nin && block_fill(b, j, other)) continue;
            block_release(b);
            return 0;
        }
        block_release(*cached);
        *cached = b;
    }
    return block_refresh(b) ? -1 : 1;
}

/* The inputs of a run as values: x is a sequence of values and numbers. 0: something else, -1: an exception. */
static int inputs_from(PyObject *x, Py_ssize_t nin, run *r)
{
    for (Py_ssize_t i = 0; i < nin || i < PySequence_Fast_GET_SIZE(x); i++) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x); /* a number of another kind could change it */
        if (n != nin) {
            PyErr_Format(PyExc_ValueError, "a layer of %zd inputs got %zd", nin, n);
            return -1;
        }
        PyObject *o = PySequence_Fast_GET_ITEM(x, i);
        double number;
        bool whole;
        if (is_plain(o)) {
            r->inputs[i] = (value *)Py_NewRef(o);
            continue;
        }
        int found = is_value(o) ? 0 : number_from(o, &number, &whole);
        if (found != 1) return found;
        r->inputs[i] = value_leaf(number, whole);
        if (!r->inputs[i]) return -1;
    }
    return 1;
}

/* One run after another through the blocks. 0: the inputs are not for this file, -1: an exception. */
static int run_through(block *const *blocks, Py_ssize_t n, PyObject *x, run **result)
{
    run *last = NULL;
    for (Py_ssize_t k = 0; k < n; k++) {
        if (k && blocks[k]->nin != blocks[k - 1]->nout) {
            PyErr_Format(PyExc_ValueError, "a layer of %zd inputs got %zd", blocks[k]->nin, blocks[k - 1]->nout);
            run_release(last);
            return -1;
        }
        run *r = run_new(blocks[k], last);
        int done = !r ? -1 : k == 0 ? inputs_from(x, blocks[k]->nin, r) : 1;
        if (done == 1 && run_forward(r)) done = -1;
        run_release(last);
        last = r;
        if (done != 1) {
            run_release(last);
            return done;
        }
    }
    *result = last;
    return 1;
}

/* The rows of a run as a program gets them: one value, or a list. */
static PyObject *run_results(run *r)
{
    Py_ssize_t n = r->block->nout;
    if (n == 1) return (PyObject *)run_row(r, 0);
    PyObject *results = PyList_New(n);
    for (Py_ssize_t j = 0; results && j < n; j++) {
        value *v = run_row(r, j);
        if (v) PyList_SET_ITEM(results, j, (PyObject *)v);
        else Py_CLEAR(results);
    }
    return results;
}

/* Calls with the blocks of all layers; if a layer has none or x is something else, with Python's self._forward(x). */
static PyObject *call_blocks(PyObject *self, block *const *blocks, Py_ssize_t n, PyObject *x)
{
    PyObject *sequence = n && (PyList_Check(x) || PyTuple_Check(x)) ? Py_NewRef(x) : NULL;
    if (n && !sequence && PyObject_HasAttrString(x, "__array_interface__")) { /* a row of a NumPy array */
        PyObject *list = PyObject_CallMethod(x, "tolist", NULL);
        if (!list) return NULL;
        if (PyList_Check(list)) sequence = list;
        else Py_DECREF(list);
    }
    if (sequence) {
        run *r = NULL;
        for (Py_ssize_t k = 0; k < n; k++) blocks[k]->refs++; /* converting x may call Python, and that the model */
        int done = run_through(blocks, n, sequence, &r);
        for (Py_ssize_t k = 0; k < n; k++) block_release(blocks[k]);
        Py_DECREF(sequence);
        if (done < 0) return NULL;
        if (done) {
            PyObject *results = run_results(r);
            run_release(r);
            return results;
        }
    }
    return PyObject_CallMethod(self, "_forward", "O", x);
}

static PyObject *only_argument(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) == 1 && !(kwargs && PyDict_GET_SIZE(kwargs))) return PyTuple_GET_ITEM(args, 0);
    PyObject *x =
        kwargs && PyDict_GET_SIZE(kwargs) == 1 && !PyTuple_GET_SIZE(args) ? PyDict_GetItemString(kwargs, "x") : NULL;
    if (!x) PyErr_Format(PyExc_TypeError, "%s takes one argument, x", Py_TYPE(self)->tp_name);
    return x;
}

static PyObject *neuron_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    neuron *n = (neuron *)self;
    PyObject *x = only_argument(self, args, kwargs);
    int found = x ? block_of(&self, 1, &n->block) : -1;
    return found < 0 ? NULL : call_blocks(self, &n->block, found, x);
}

/* The block of a layer whose class has not changed what a call does. */
static int layer_block(PyObject *o, block **b)
{
    layer *l = (layer *)o;
    if (!PyObject_TypeCheck(o, layer_type) || Py_TYPE(o)->tp_call != layer_call) return 0;
    if (!l->neurons || !PyList_CheckExact(l->neurons)) return 0;
    int found = block_of(((PyListObject *)l->neurons)->ob_item, PyList_GET_SIZE(l->neurons), &l->block);
    *b = l->block;
    return found;
}

static PyObject *layer_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    block *b = NULL;
    PyObject *x = only_argument(self, args, kwargs);
    int found = x ? layer_block(self, &b) : -1;
    return found < 0 ? NULL : call_blocks(self, &b, found, x);
}

static PyObject *mlp_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    enum { MOST = 64 }; /* layers; deeper ones go from layer to layer in Python */
    block *blocks[MOST];
    PyObject *layers = ((mlp *)self)->layers, *x = only_argument(self, args, kwargs);
    if (!x) return NULL;
    Py_ssize_t n = layers && PyList_CheckExact(layers) ? PyList_GET_SIZE(layers) : 0;
    if (n > MOST) n = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        int found = layer_block(PyList_GET_ITEM(layers, k), &blocks[k]);
        if (found < 0) return NULL;
        if (!found) n = 0;
    }
    return call_blocks(self, blocks, n, x);
}

/* ---- their types ---- */

static int neuron_traverse(PyObject *o, visitproc visit, void *arg)
{
    neuron *n = (neuron *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(n->w);
    Py_VISIT(n->b);
    Py_VISIT(n->nonlin);
    return 0;
}

static int neuron_clear(PyObject *o)
{
    neuron *n = (neuron *)o;
    Py_CLEAR(n->w);
    Py_CLEAR(n->b);
    Py_CLEAR(n->nonlin);
    return 0;
}

static int layer_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(((layer *)o)->neurons);
    return 0;
}

static int layer_clear(PyObject *o)
{
    Py_CLEAR(((layer *)o)->neurons);
    return 0;
}

static int mlp_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(((mlp *)o)->layers);
    return 0;
}

static int mlp_clear(PyObject *o)
{
    Py_CLEAR(((mlp *)o)->layers);
    return 0;
}

static void object_free(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    type->tp_free(o);
    Py_DECREF(type);
}

static void neuron_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    neuron_clear(o);
    block_release(((neuron *)o)->block);
    object_free(o);
}

static void layer_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    layer_clear(o);
    block_release(((layer *)o)->block);
    object_free(o);
}

static void mlp_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    mlp_clear(o);
    object_free(o);
}

static PyMemberDef neuron_members[] = {
    { "w", T_OBJECT_EX, offsetof(neuron, w), 0, "the weights: a list of Values" },
    { "b", T_OBJECT_EX, offsetof(neuron, b), 0, "the bias: a Value" },
    { "nonlin", T_OBJECT_EX, offsetof(neuron, nonlin), 0, "whether relu comes last" },
    { NULL },
};
static PyMemberDef layer_members[] = { { "neurons", T_OBJECT_EX, offsetof(layer, neurons), 0, "a list of Neurons" },
                                       { NULL } };
static PyMemberDef mlp_members[] = { { "layers", T_OBJECT_EX, offsetof(mlp, layers), 0, "a list of Layers" },
                                     { NULL } };

static PyType_Slot neuron_slots[] = {
    { Py_tp_call, neuron_call },   { Py_tp_dealloc, neuron_dealloc }, { Py_tp_traverse, neuron_traverse },
    { Py_tp_clear, neuron_clear }, { Py_tp_members, neuron_members }, { 0, NULL },
};
static PyType_Slot layer_slots[] = {
    { Py_tp_call, layer_call },   { Py_tp_dealloc, layer_dealloc }, { Py_tp_traverse, layer_traverse },
    { Py_tp_clear, layer_clear }, { Py_tp_members, layer_members }, { 0, NULL },
};
static PyType_Slot mlp_slots[] = {
    { Py_tp_call, mlp_call },   { Py_tp_dealloc, mlp_dealloc }, { Py_tp_traverse, mlp_traverse },
    { Py_tp_clear, mlp_clear }, { Py_tp_members, mlp_members }, { 0, NULL },
};

enum { TYPE_FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC };
static PyType_Spec neuron_spec = { "cairn._micrograd.Neuron", sizeof(neuron), 0, TYPE_FLAGS, neuron_slots };
static PyType_Spec layer_spec = { "cairn._micrograd.Layer", sizeof(layer), 0, TYPE_FLAGS, layer_slots };
static PyType_Spec mlp_spec = { "cairn._micrograd.MLP", sizeof(mlp), 0, TYPE_FLAGS, mlp_slots };

int layer_types_make(PyObject *module)
{
    neuron_type = (PyTypeObject *)PyType_FromSpec(&neuron_spec);
    layer_type = (PyTypeObject *)PyType_FromSpec(&layer_spec);
    PyObject *mlp_type = PyType_FromSpec(&mlp_spec);
    if (!neuron_type || !layer_type || !mlp_type) return -1;
    if (PyModule_AddObject(module, "Neuron", Py_NewRef((PyObject *)neuron_type))) return -1;
    if (PyModule_AddObject(module, "Layer", Py_NewRef((PyObject *)layer_type))) return -1;
    return PyModule_AddObject(module, "MLP", mlp_type);
}
