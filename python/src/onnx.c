/* ONNX files for cairn.onnx: graphs, which are run with the tensors of a Python module, and traces, which are written. */
#include <cairn/onnx.h>
#include <string.h>

#include "call.h"
#include "files.h"

/* ---- graphs: a file as a module of one context ---- */

typedef struct graph {
    cn_module *module;
    context *context;
} graph;

static void graph_destroy(PyObject *capsule)
{
    graph *g = PyCapsule_GetPointer(capsule, "cairn.onnx");
    if (!g) return;
    if (context_ready(g->context)) cn_module_free(g->module); /* otherwise it ends with its context */
    context_drop(g->context);
    PyMem_Free(g);
}

static graph *graph_from(PyObject *o) { return PyCapsule_GetPointer(o, "cairn.onnx"); }

static PyObject *graph_new(context *c, cn_module *m)
{
    if (!m) return context_error(c);
    graph *g = PyMem_Calloc(1, sizeof *g);
    PyObject *capsule = NULL;
    if (g) {
        *g = (graph){ m, c };
        capsule = PyCapsule_New(g, "cairn.onnx", graph_destroy);
    }
    if (capsule) return context_use(c), capsule;
    if (!g) PyErr_NoMemory();
    PyMem_Free(g);
    cn_module_free(m);
    return NULL;
}

PyDoc_STRVAR(onnx_open_doc, "_onnx_open(path, data, like, weights)\n--\n\n"
                            "(key, graph) of a file, or of its bytes `data` if that is not None: in the context of the "
                            "tensor `like`, or on the CPU. weights False: each run is given them.");
static PyObject *onnx_open(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    PyObject *like;
    Py_buffer data;
    int weights;
    if (!PyArg_ParseTuple(args, "zz*Op", &path, &data, &like, &weights)) return NULL;
    context *c = is_tensor(like) ? context_of(like) : context_for("cpu");
    PyObject *capsule = NULL;
    if (c && !use(c)) {
        const cn_onnx_load_desc desc = { data.buf, (size_t)data.len, .no_weights = !weights };
        cn_module *m;
        COMPUTE(c, m = cn_onnx_load_with(c->cn, path, &desc));
        capsule = graph_new(c, m);
    }
    PyBuffer_Release(&data);
    return capsule ? Py_BuildValue("NN", PyLong_FromVoidPtr(c), capsule) : NULL;
}

PyDoc_STRVAR(onnx_weights_doc, "_onnx_weights(graph)\n--\n\n[(name, tensor, whether it is a buffer)] in order.");
static PyObject *onnx_weights(PyObject *self, PyObject *capsule)
{
    (void)self;
    graph *g = graph_from(capsule);
    if (!g || use(g->context)) return NULL;
    const cn_named_list named = cn_module_named(g->module);
    if (cn_failed(g->context->cn)) return context_error(g->context);
    PyObject *list = PyList_New(0);
    for (int i = 0; i < named.n && list; i++) {
        PyObject *t = tensor_wrap(g->context, named.v[i].tensor);
        PyObject *row = t ? Py_BuildValue("sNO", named.v[i].name, t, named.v[i].buffer ? Py_True : Py_False) : NULL;
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- inputs and results ---- */

static PyObject *shape_of(const cn_onnx_port *p)
{
    if (p->ndim < 0) Py_RETURN_NONE;
    PyObject *shape = PyTuple_New(p->ndim);
    for (int i = 0; i < p->ndim && shape; i++) {
        PyObject *size = p->shape[i] >= 0 ? PyLong_FromLongLong((long long)p->shape[i])
                         : *p->symbols[i] ? PyUnicode_FromString(p->symbols[i])
                                          : Py_NewRef(Py_None);
        if (size) PyTuple_SET_ITEM(shape, i, size);
        else Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *ports_of(graph *g, int (*ask)(const cn_module *m, cn_onnx_port *out, int room))
{
    const int n = ask(g->module, NULL, 0);
    cn_onnx_port *ports = PyMem_Calloc((size_t)n + 1, sizeof *ports);
    if (!ports) return PyErr_NoMemory();
    ask(g->module, ports, n);
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n && list; i++) {
        const cn_onnx_port *p = &ports[i];
        PyObject *shape = shape_of(p), *row = NULL;
        if (shape) row = Py_BuildValue("ssNsO", p->name, p->type, shape, p->kind, p->has_default ? Py_True : Py_False);
        if (row) PyList_SET_ITEM(list, i, row);
        else Py_CLEAR(list);
    }
    PyMem_Free(ports);
    return list;
}

PyDoc_STRVAR(onnx_ports_doc, "_onnx_ports(graph)\n--\n\n"
                             "(inputs, results): lists of (name, type, shape, kind, has_default).");
static PyObject *onnx_ports(PyObject *self, PyObject *capsule)
{
    (void)self;
    graph *g = graph_from(capsule);
    if (!g || use(g->context)) return NULL;
    PyObject *inputs = ports_of(g, cn_onnx_inputs), *outputs = inputs ? ports_of(g, cn_onnx_outputs) : NULL;
    if (outputs) return Py_BuildValue("NN", inputs, outputs);
    Py_XDECREF(inputs);
    return NULL;
}

PyDoc_STRVAR(onnx_reads_doc, "_onnx_reads(graph, weight)\n--\n\n"
                             "The name of the value that the layer of a weight reads, or None.");
static PyObject *onnx_reads(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    const char *weight;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &weight)) return NULL;
    graph *g = graph_from(capsule);
    if (!g || use(g->context)) return NULL;
    return Py_BuildValue("z", cn_onnx_reads(g->module, weight));
}

/* ---- running ---- */

/* A run while its arguments become C values. */
typedef struct running {
    call k;
    PyObject *weights, *names, *values, *wanted; /* a list and tuples, borrowed */
    cn_tensor **weight;
    cn_onnx_value *in, *out;
    int n_weights, n_in, n_out;
} running;

static int take_input(running *r, int i)
{
    PyObject *o = PyTuple_GET_ITEM(r->values, i);
    cn_onnx_value *v = &r->in[i];
    if (!(v->name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(r->names, i)))) return -1;
    if (o == Py_None) return 0;
    if (!PyList_Check(o) && !PyTuple_Check(o))
        return take_tensor(&r->k, o, v->name, false, PySequence_Fast_ITEMS(r->values), r->n_in, &v->tensor);
    if (PySequence_Fast_GET_SIZE(o) == 0) return 0;
    cn_tensor **items;
    const int result = take_tensors(&r->k, o, v->name, &items, &v->n_items);
    v->items = items;
    return result;
}

static int take_all(running *r)
{
    for (int i = 0; i < r->n_weights; i++)
        if (take_tensor(&r->k, PyList_GET_ITEM(r->weights, i), "a weight", false, NULL, 0, &r->weight[i])) return -1;
    for (int i = 0; i < r->n_in; i++)
        if (take_input(r, i)) return -1;
    for (int i = 0; i < r->n_out; i++)
        if (!(r->out[i].name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(r->wanted, i)))) return -1;
    return 0;
}

/* A result that is a weight gets a handle of its own: what is assigned to one must not change the other. */
static PyObject *wrap_result(running *r, cn_tensor *t)
{
    for (int i = 0; i < r->n_weights; i++)
        if (r->weight[i] == t) return tensor_wrap(r->k.c, cn_view(t, cn_shape(t)));
    return tensor_result(r->k.c, t, PySequence_Fast_ITEMS(r->values), r->n_in);
}

static PyObject *wrap_value(running *r, const cn_onnx_value *v)
{
    if (v->tensor) return wrap_result(r, v->tensor);
    if (!v->items) Py_RETURN_NONE;
    PyObject *list = PyList_New(v->n_items);
    for (int i = 0; i < v->n_items && list; i++) {
        PyObject *item = wrap_result(r, v->items[i]);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *run_graph(running *r, graph *g, bool training)
{
    if (take_all(r)) return NULL;
    cn_module_train(g->module, training);
    if (!cn_onnx_run_with(g->module, r->weight, r->n_weights, r->in, r->n_in, r->out, r->n_out))
        return context_error(r->k.c);
    PyObject *result = PyTuple_New(r->n_out);
    for (int i = 0; i < r->n_out && result; i++) {
        PyObject *o = wrap_value(r, &r->out[i]);
        if (o) PyTuple_SET_ITEM(result, i, o);
        else Py_CLEAR(result);
    }
    return result;
}

static bool run_room(running *r)
{
    r->n_weights = (int)PyList_GET_SIZE(r->weights);
    r->n_in = (int)PyTuple_GET_SIZE(r->values);
    r->n_out = (int)PyTuple_GET_SIZE(r->wanted);
    r->weight = PyMem_Calloc((size_t)r->n_weights + 1, sizeof *r->weight);
    r->in = PyMem_Calloc((size_t)r->n_in + 1, sizeof *r->in);
    r->out = PyMem_Calloc((size_t)r->n_out + 1, sizeof *r->out);
    if (r->weight && r->in && r->out) return true;
    PyErr_NoMemory();
    return false;
}

static void run_free(running *r)
{
    PyMem_Free(r->weight);
    PyMem_Free(r->in);
    PyMem_Free(r->out);
}

static int begin(running *r)
{
    PyObject *const *weights = r->n_weights ? PySequence_Fast_ITEMS(r->weights) : NULL;
    return weights ? call_begin(&r->k, "onnx", weights, r->n_weights)
                   : call_begin(&r->k, "onnx", PySequence_Fast_ITEMS(r->values), r->n_in);
}

PyDoc_STRVAR(onnx_run_doc,
             "_onnx_run(graphs, weights, names, values, wanted, training)\n--\n\n"
             "The wanted results, a tuple. graphs: by the key of _onnx_open; NotImplemented if none is of "
             "the context of the tensors.");
static PyObject *onnx_run(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *graphs, *result = NULL;
    running r = { 0 };
    int training;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!p", &PyDict_Type, &graphs, &PyList_Type, &r.weights, &PyTuple_Type, &r.names,
                          &PyTuple_Type, &r.values, &PyTuple_Type, &r.wanted, &training))
        return NULL;
    if (!run_room(&r) || begin(&r)) return run_free(&r), NULL;
    PyObject *key = PyLong_FromVoidPtr(r.k.c), *capsule = key ? PyDict_GetItemWithError(graphs, key) : NULL;
    if (capsule) {
        graph *g = graph_from(capsule);
        if (g) result = run_graph(&r, g, training);
    } else if (!PyErr_Occurred()) result = Py_NewRef(Py_NotImplemented);
    Py_XDECREF(key);
    call_end(&r.k);
    run_free(&r);
    return result;
}

/* ---- writing ---- */

PyDoc_STRVAR(onnx_trace_begin_doc, "_onnx_trace_begin(tensors)\n--\n\n"
                                   "Computes the tensors; what is called from now on in their context can be written.");
static PyObject *onnx_trace_begin(PyObject *self, PyObject *tensors)
{
    (void)self;
    if (!PyList_Check(tensors) || !PyList_GET_SIZE(tensors) || !is_tensor(PyList_GET_ITEM(tensors, 0)))
        return PyErr_Format(PyExc_TypeError, "_onnx_trace_begin: a list of tensors is required");
    context *c = context_of(PyList_GET_ITEM(tensors, 0));
    if (use(c)) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); i++) {
        PyObject *t = PyList_GET_ITEM(tensors, i);
        if (context_of(t) != c)
            return PyErr_Format(PyExc_RuntimeError, "onnx: tensors must be on one device, but found %s and %s",
                                c->device, context_of(t)->device);
        bool ok;
        EVALUATE(c, ok = cn_eval(handle_of(t)));
        if (!ok) return context_error(c);
    }
    if (!cn_onnx_trace_begin(c->cn)) return context_error(c);
    return PyLong_FromLongLong(cn_count(c->cn).evaluations);
}

PyDoc_STRVAR(onnx_trace_end_doc, "_onnx_trace_end(tensor)\n--\n\nEnds the trace in the tensor's context.");
static PyObject *onnx_trace_end(PyObject *self, PyObject *t)
{
    (void)self;
    if (!is_tensor(t)) return PyErr_Format(PyExc_TypeError, "_onnx_trace_end: a tensor is required");
    if (use(context_of(t))) return NULL;
    cn_onnx_trace_end(context_of(t)->cn);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(onnx_evaluations_doc, "_onnx_evaluations(tensor)\n--\n\nHow often its context has computed so far.");
static PyObject *onnx_evaluations(PyObject *self, PyObject *t)
{
    (void)self;
    if (!is_tensor(t)) return PyErr_Format(PyExc_TypeError, "_onnx_evaluations: a tensor is required");
    return PyLong_FromLongLong(cn_count(context_of(t)->cn).evaluations);
}

/* A graph while its parts become C values. */
typedef struct writing {
    call k;
    PyObject *memory; /* a list of objects that hold it */
    cn_onnx_graph graph;
    cn_onnx_options options;
} writing;

/* Zeroed memory that lasts as long as the writing; NULL: an exception. */
static void *room(writing *w, size_t count, size_t size)
{
    PyObject *o = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((count + 1) * size));
    if (!o || PyList_Append(w->memory, o)) return Py_XDECREF(o), NULL;
    Py_DECREF(o);
    return memset(PyBytes_AS_STRING(o), 0, (count + 1) * size);
}

static int take_list(writing *w, PyObject *list, cn_tensor *const **out, int *n)
{
    cn_tensor **v = room(w, (size_t)PyList_GET_SIZE(list), sizeof *v);
    if (!v) return -1;
    *n = (int)PyList_GET_SIZE(list);
    *out = *n ? v : NULL;
    for (int i = 0; i < *n; i++)
        if (take_tensor(&w->k, PyList_GET_ITEM(list, i), "a tensor", false, NULL, 0, &v[i])) return -1;
    return 0;
}

/* A list of n texts, or None. */
static int take_names(writing *w, PyObject *list, int n, const char *what, const char *const **out)
{
    *out = NULL;
    if (list == Py_None) return 0;
    PyObject *fast = PySequence_Fast(list, "names must be a list of texts");
    if (!fast || PyList_Append(w->memory, fast)) return Py_XDECREF(fast), -1;
    Py_DECREF(fast);
    if (PySequence_Fast_GET_SIZE(fast) != n)
        return PyErr_Format(PyExc_ValueError, "onnx: there are %d %s, got %zd names", n, what,
                            PySequence_Fast_GET_SIZE(fast)),
               -1;
    const char **v = room(w, (size_t)n, sizeof *v);
    for (int i = 0; i < n && v; i++)
        if (!(v[i] = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(fast, i)))) return -1;
    *out = v;
    return v ? 0 : -1;
}

static int take_named(writing *w, PyObject *named)
{
    cn_named *v = room(w, (size_t)PyList_GET_SIZE(named), sizeof *v);
    if (!v) return -1;
    w->graph.named = v;
    w->graph.n_named = (int)PyList_GET_SIZE(named);
    for (int i = 0; i < w->graph.n_named; i++) {
        PyObject *t;
        int buffer;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(named, i), "sOp", &v[i].name, &t, &buffer)) return -1;
        v[i].buffer = buffer;
        if (take_tensor(&w->k, t, v[i].name, false, NULL, 0, &v[i].tensor)) return -1;
    }
    return 0;
}

static int take_options(writing *w, PyObject *options, bool varies)
{
    PyObject *input_names, *output_names, *symbols;
    int external;
    if (!PyArg_ParseTuple(options, "OOipO!", &input_names, &output_names, &w->options.opset, &external, &PyList_Type,
                          &symbols))
        return -1;
    w->options.external_data = external;
    w->options.fixed_batch = !varies;
    w->options.n_symbols = (int)PyList_GET_SIZE(symbols);
    return take_names(w, symbols, w->options.n_symbols, "symbols", &w->options.symbols) ||
           take_names(w, input_names, w->graph.n_inputs, "inputs", &w->options.input_names) ||
           take_names(w, output_names, w->graph.n_outputs, "results", &w->options.output_names);
}

PyDoc_STRVAR(onnx_save_graph_doc,
             "_onnx_save_graph(path, inputs, outputs, other_inputs, other_outputs, named, options)\n"
             "--\n\nWrites what was traced. named: [(name, tensor, whether it is a buffer)]. "
             "False: sizes do not follow those of the inputs, and nothing was written.");
static PyObject *onnx_save_graph(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path;
    PyObject *in, *out, *other_in, *other_out, *named, *options;
    if (!PyArg_ParseTuple(args, "sO!O!O!O!O!O!", &path, &PyList_Type, &in, &PyList_Type, &out, &PyList_Type, &other_in,
                          &PyList_Type, &other_out, &PyList_Type, &named, &PyTuple_Type, &options))
        return NULL;
    writing w = { .memory = PyList_New(0) };
    if (!w.memory) return NULL;
    int n, m;
    bool ok = false, fixed = false;
    cn_onnx_graph *g = &w.graph;
    g->fixed = &fixed;
    if (!call_begin(&w.k, "onnx", PySequence_Fast_ITEMS(out), (int)PyList_GET_SIZE(out))) {
        if (!take_list(&w, in, &g->inputs, &g->n_inputs) && !take_list(&w, out, &g->outputs, &g->n_outputs) &&
            !take_list(&w, other_in, &g->other_inputs, &n) && !take_list(&w, other_out, &g->other_outputs, &m) &&
            !take_named(&w, named) && !take_options(&w, options, n > 0)) {
            if (m && m != g->n_outputs)
                PyErr_SetString(PyExc_ValueError, "onnx: the number of results must not depend on the sizes of inputs");
            else if (!(ok = cn_onnx_save_graph(w.k.c->cn, g, path, &w.options))) context_error(w.k.c);
        }
        call_end(&w.k);
    }
    Py_DECREF(w.memory);
    return ok ? PyBool_FromLong(!fixed) : NULL;
}

/* Gives a module the values of tensors. */
static bool assign_weights(context *c, cn_module *m, PyObject *weights)
{
    const cn_named_list named = cn_module_named(m);
    if (named.n != PyList_GET_SIZE(weights))
        return PyErr_Format(PyExc_ValueError, "onnx: the file has %d weights, the module %zd", named.n,
                            PyList_GET_SIZE(weights)),
               false;
    for (int i = 0; i < named.n; i++) {
        PyObject *owned = NULL;
        cn_tensor *t = tensor_operand(c, PyList_GET_ITEM(weights, i), NULL, &owned);
        const bool ok = t && (cn_assign(named.v[i].tensor, t) || (context_error(c), false));
        Py_XDECREF(owned);
        if (!ok) return false;
    }
    return true;
}

PyDoc_STRVAR(onnx_rewrite_doc, "_onnx_rewrite(path, data, to, weights)\n--\n\n"
                               "Writes a file that was read, with other values of its weights.");
static PyObject *onnx_rewrite(PyObject *self, PyObject *args)
{
    (void)self;
    const char *path, *to;
    Py_buffer data;
    PyObject *weights;
    if (!PyArg_ParseTuple(args, "zz*sO!", &path, &data, &to, &PyList_Type, &weights)) return NULL;
    context *c = context_for("cpu");
    bool ok = false;
    if (c && !use(c)) {
        cn_scope scope = cn_scope_begin(c->cn);
        cn_no_grad_begin(c->cn);
        cn_module *m = cn_onnx_load_with(c->cn, path, &(cn_onnx_load_desc){ data.buf, (size_t)data.len, false });
        if (!m) context_error(c);
        else if (assign_weights(c, m, weights)) {
            COMPUTE(c, ok = cn_onnx_save(m, NULL, 0, to, NULL));
            if (!ok) context_error(c);
        }
        cn_module_free(m);
        cn_no_grad_end(c->cn);
        cn_scope_end(c->cn, scope);
    }
    PyBuffer_Release(&data);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef onnx_functions[] = {
    { "_onnx_open", onnx_open, METH_VARARGS, onnx_open_doc },
    { "_onnx_weights", onnx_weights, METH_O, onnx_weights_doc },
    { "_onnx_ports", onnx_ports, METH_O, onnx_ports_doc },
    { "_onnx_reads", onnx_reads, METH_VARARGS, onnx_reads_doc },
    { "_onnx_run", onnx_run, METH_VARARGS, onnx_run_doc },
    { "_onnx_trace_begin", onnx_trace_begin, METH_O, onnx_trace_begin_doc },
    { "_onnx_trace_end", onnx_trace_end, METH_O, onnx_trace_end_doc },
    { "_onnx_evaluations", onnx_evaluations, METH_O, onnx_evaluations_doc },
    { "_onnx_save_graph", onnx_save_graph, METH_VARARGS, onnx_save_graph_doc },
    { "_onnx_rewrite", onnx_rewrite, METH_VARARGS, onnx_rewrite_doc },
    { NULL, NULL, 0, NULL },
};
