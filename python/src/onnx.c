/* ONNX files for cairn.onnx: graphs, which are run with the tensors of a Python module, and traces, which are written. */
#include <cairn/onnx.h>

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
        return take_tensor(&r->k, o, v->name, false, &PyTuple_GET_ITEM(r->values, 0), r->n_in, &v->tensor);
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
    return tensor_result(r->k.c, t, &PyTuple_GET_ITEM(r->values, 0), r->n_in);
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
    PyObject *const *weights = r->n_weights ? &PyList_GET_ITEM(r->weights, 0) : NULL;
    return weights ? call_begin(&r->k, "onnx", weights, r->n_weights)
                   : call_begin(&r->k, "onnx", &PyTuple_GET_ITEM(r->values, 0), r->n_in);
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

PyMethodDef onnx_functions[] = {
    { "_onnx_open", onnx_open, METH_VARARGS, onnx_open_doc },
    { "_onnx_weights", onnx_weights, METH_O, onnx_weights_doc },
    { "_onnx_ports", onnx_ports, METH_O, onnx_ports_doc },
    { "_onnx_reads", onnx_reads, METH_VARARGS, onnx_reads_doc },
    { "_onnx_run", onnx_run, METH_VARARGS, onnx_run_doc },
    { NULL, NULL, 0, NULL },
};
