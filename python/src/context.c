/* Contexts: each thread has one for each device it uses. A context lives as long as its thread, and as long as there is
   an object of it. A forked child has no worker threads: it can open contexts of its own, not use those of its parent. */
#include <pthread.h>
#include <string.h>

#include "cairn_python.h"

static context *all;        /* every context that is open */
static context *forked;     /* those of the parent process; never used or freed */
static uint64_t first_seed; /* of contexts that are opened from now on */
static int threads;         /* of contexts that are opened from now on; 0: one for each core */
static char default_device[16] = "cpu";
static _Thread_local context *mine; /* of this thread and the default device; a quick way to what the dict has */
static PyObject *errors[CN_DEVICE_LOST + 1];
static PyObject *device_error;

static void after_fork(void)
{
    for (context *c = all; c; c = c->next) c->forked = true;
    if (all) {
        context *last = all;
        while (last->next) last = last->next;
        last->next = forked;
        forked = all;
    }
    all = NULL;
    mine = NULL;
}

static void close_context(context *c)
{
    context **at = &all;
    while (*at && *at != c) at = &(*at)->next;
    if (*at) *at = c->next;
    if (mine == c) mine = NULL;
    cn_close(c->cn);
    PyMem_Free(c->later);
    PyMem_Free(c);
}

void context_use(context *c) { c->users++; }

void context_drop(context *c)
{
    if (--c->users == 0 && !c->alive && !c->forked) close_context(c);
}

static void thread_ended(PyObject *capsule)
{
    context *c = PyCapsule_GetPointer(capsule, "cairn.context");
    if (!c || c->forked) return;
    c->alive = false;
    if (c->users == 0) close_context(c);
}

/* ---- objects that die while another thread computes ---- */

void context_release_later(context *c, cn_tensor *handle)
{
    if (c->n_later == c->room_later) {
        size_t room = c->room_later ? 2 * c->room_later : 64;
        cn_tensor **more = PyMem_Realloc(c->later, room * sizeof *more);
        if (!more) return; /* the handle stays until the context is closed */
        c->later = more;
        c->room_later = room;
    }
    c->later[c->n_later++] = handle;
}

void context_release_now(context *c)
{
    while (c->n_later) cn_release(c->later[--c->n_later]);
}

/* ---- errors ---- */

PyObject *context_error(context *c)
{
    if (PyErr_Occurred()) { /* a callback in Python raised it */
        cn_error_clear(c->cn);
        return NULL;
    }
    cn_code code = cn_error_code(c->cn);
    if (code == CN_OK) PyErr_SetString(errors[CN_BAD_ARGUMENT], "the call returned nothing");
    else if (code == CN_NO_MEMORY) PyErr_SetString(PyExc_MemoryError, cn_error(c->cn));
    else PyErr_SetString(code <= CN_DEVICE_LOST ? errors[code] : errors[CN_UNSUPPORTED], cn_error(c->cn));
    cn_error_clear(c->cn);
    return NULL;
}

int context_refuse(context *c)
{
    if (c->forked) {
        PyErr_SetString(PyExc_RuntimeError,
                        "cairn: this tensor was made before the process was forked, and cannot be used in "
                        "the child; start processes with the method 'spawn'");
        return -1;
    }
    return context_wait(c);
}

int context_wait(context *c)
{
    while (c->busy) {
        Py_BEGIN_ALLOW_THREADS;
        struct timespec nap = { 0, 50000 };
        nanosleep(&nap, NULL);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals()) return -1;
    }
    return 0;
}

/* An exception that is one of Python's own and an Error as well. */
static PyObject *add_error(PyObject *module, const char *name, PyObject *also, PyObject *base)
{
    PyObject *bases = also ? PyTuple_Pack(2, base, also) : PyTuple_Pack(1, base);
    char full[64];
    snprintf(full, sizeof full, "cairn.%s", name);
    PyObject *e = bases ? PyErr_NewException(full, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (e && PyModule_AddObjectRef(module, name, e)) Py_CLEAR(e);
    return e;
}

static int add_errors(PyObject *module)
{
    PyObject *base = add_error(module, "Error", NULL, PyExc_RuntimeError);
    if (!base) return -1;
    PyObject *value = add_error(module, "ShapeError", PyExc_ValueError, base);
    PyObject *type = add_error(module, "DTypeError", PyExc_TypeError, base);
    PyObject *argument = add_error(module, "ArgumentError", PyExc_ValueError, base);
    PyObject *index = add_error(module, "OutOfRange", PyExc_IndexError, base);
    PyObject *file = add_error(module, "FileError", PyExc_OSError, base);
    device_error = add_error(module, "DeviceError", NULL, base);
    if (!value || !type || !argument || !index || !file || !device_error) return -1;
    for (int i = 0; i <= CN_DEVICE_LOST; i++) errors[i] = base;
    errors[CN_BAD_SHAPE] = value;
    errors[CN_BAD_DTYPE] = type;
    errors[CN_BAD_ARGUMENT] = argument;
    errors[CN_BAD_INDEX] = index;
    errors[CN_BAD_FILE] = file;
    errors[CN_BAD_DEVICE] = errors[CN_DEVICE_LOST] = device_error;
    errors[CN_NOT_FOUND] = PyExc_KeyError;
    errors[CN_UNSUPPORTED] = PyExc_NotImplementedError;
    return 0;
}

/* ---- opening ---- */

static context *open_context(const char *device)
{
    context *c = PyMem_Calloc(1, sizeof *c);
    if (!c) return (context *)PyErr_NoMemory();
    const char *mark = strchr(device, '#'); /* "cpu#3": a context of its own on the CPU, for a generator's numbers */
    snprintf(c->device, sizeof c->device, "%.*s", mark ? (int)(mark - device) : 15, device);
    c->cn = cn_open(&(cn_desc){ .device = c->device, .seed = first_seed, .threads = mark ? 1 : threads });
    if (!c->cn || cn_failed(c->cn)) {
        if (c->cn) PyErr_SetString(device_error, cn_error(c->cn));
        else PyErr_NoMemory();
        if (c->cn) cn_close(c->cn);
        PyMem_Free(c);
        return NULL;
    }
    for (int depth = grad_off; depth > 0; depth--) cn_no_grad_begin(c->cn);
    c->alive = true;
    c->thread = PyThread_get_thread_ident();
    c->next = all;
    all = c;
    return c;
}

context *context_for(const char *device)
{
    char key[32];
    snprintf(key, sizeof key, "cairn.%s", device);
    PyObject *dict = PyThreadState_GetDict(); /* borrowed; ends with the thread */
    if (!dict) {
        PyErr_SetString(PyExc_RuntimeError, "cairn: this thread has no state");
        return NULL;
    }
    PyObject *found = PyDict_GetItemString(dict, key);
    if (found) {
        context *c = PyCapsule_GetPointer(found, "cairn.context");
        if (c && !c->forked) return c;
    }
    context *c = open_context(device);
    PyObject *capsule = c ? PyCapsule_New(c, "cairn.context", thread_ended) : NULL;
    if (!capsule || PyDict_SetItemString(dict, key, capsule)) {
        if (!capsule && c) close_context(c);
        c = NULL;
    }
    Py_XDECREF(capsule);
    return c;
}

context *context_default(void)
{
    if (!mine) mine = context_for(default_device);
    if (mine && mine->busy && context_wait(mine)) return NULL;
    return mine;
}

/* ---- functions of the module ---- */

static PyObject *manual_seed(PyObject *module, PyObject *seed)
{
    (void)module;
    PyObject *whole = PyNumber_Index(seed);
    if (!whole) return NULL;
    uint64_t value = PyLong_AsUnsignedLongLongMask(whole);
    Py_DECREF(whole);
    if (PyErr_Occurred()) return NULL;
    first_seed = value;
    for (context *c = all; c; c = c->next) {
        if (context_wait(c)) return NULL;
        cn_seed(c->cn, value);
    }
    Py_RETURN_NONE;
}

/* _seed(name, seed): of one context alone. */
static PyObject *seed_one(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "sK", &name, &seed)) return NULL;
    context *c = context_for(name);
    if (!c || context_wait(c)) return NULL;
    cn_seed(c->cn, seed);
    Py_RETURN_NONE;
}

static PyObject *initial_seed(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyLong_FromUnsignedLongLong(first_seed);
}

static PyObject *set_num_threads(PyObject *module, PyObject *number)
{
    (void)module;
    long n = PyLong_AsLong(number);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1 || n > 4096) return PyErr_Format(PyExc_ValueError, "set_num_threads: expects 1 to 4096, got %ld", n);
    if (all && n != threads)
        return PyErr_Format(PyExc_RuntimeError,
                            "set_num_threads: the number of threads is fixed by the first tensor; call it before");
    threads = (int)n;
    Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    long n = threads ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    return PyLong_FromLong(n);
}

static PyObject *set_default_device(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    context *c = context_for(text);
    if (!c) return NULL;
    snprintf(default_device, sizeof default_device, "%s", text);
    mine = c;
    Py_RETURN_NONE;
}

static PyObject *get_default_device(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyUnicode_FromString(default_device);
}

static PyObject *synchronize(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    context *c = context_default();
    if (!c) return NULL;
    bool ok;
    COMPUTE(c, ok = cn_eval_all(c->cn));
    if (!ok) return context_error(c);
    Py_RETURN_NONE;
}

/* How many contexts, and objects of them, there are: for tests. */
static PyObject *count_objects(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    Py_ssize_t contexts = 0, objects = 0;
    for (context *c = all; c; c = c->next) contexts++, objects += c->users;
    return Py_BuildValue("(nn)", contexts, objects);
}

/* ---- whether gradients are recorded: the same in all contexts of a thread ---- */

_Thread_local int grad_off;

static PyObject *set_grad_enabled(PyObject *module, PyObject *on)
{
    (void)module;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0) return NULL;
    bool before = grad_off == 0;
    if (wanted == (int)before) return PyBool_FromLong(before);
    const unsigned long me = PyThread_get_thread_ident();
    for (context *c = all; c; c = c->next) {
        if (c->thread != me) continue;
        if (context_wait(c)) return NULL;
        (wanted ? cn_no_grad_end : cn_no_grad_begin)(c->cn);
    }
    grad_off = !wanted;
    return PyBool_FromLong(before);
}

static void switch_others(context *one, void (*change)(cn_ctx *))
{
    const unsigned long me = PyThread_get_thread_ident();
    for (context *c = all; c; c = c->next)
        if (c != one && c->thread == me && context_ready(c)) change(c->cn);
}

grad_mode context_callback_begin(context *c)
{
    grad_mode m = { false, false };
    if (cn_grad_enabled(c->cn)) return m;
    if (!grad_off) {
        m.off = true;
        grad_off = 1;
        switch_others(c, cn_no_grad_begin);
        return m;
    }
    cn_no_grad_end(c->cn); /* Python's own no_grad; what is left is that of the library, if there is one */
    m.lowered = !cn_grad_enabled(c->cn);
    if (!m.lowered) cn_no_grad_begin(c->cn);
    return m;
}

void context_callback_end(context *c, grad_mode m)
{
    if (m.lowered) cn_no_grad_begin(c->cn);
    if (!m.off) return;
    grad_off = 0;
    switch_others(c, cn_no_grad_end);
}

static PyObject *is_grad_enabled(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyBool_FromLong(grad_off == 0);
}

static PyMethodDef functions[] = {
    { "manual_seed", manual_seed, METH_O, "manual_seed(seed): seeds the random numbers of all devices." },
    { "_seed", seed_one, METH_VARARGS, "" },
    { "initial_seed", initial_seed, METH_NOARGS, "The seed that was set last." },
    { "set_num_threads", set_num_threads, METH_O, "Sets how many threads compute; before the first tensor." },
    { "get_num_threads", get_num_threads, METH_NOARGS, "How many threads compute." },
    { "_set_default_device", set_default_device, METH_O, "" },
    { "_get_default_device", get_default_device, METH_NOARGS, "" },
    { "_eval_all", synchronize, METH_NOARGS, "Computes every pending value that an object can still reach." },
    { "_count_objects", count_objects, METH_NOARGS, "(contexts, objects of them)." },
    { "_set_grad_enabled", set_grad_enabled, METH_O, "Returns what it was before." },
    { "is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operations are recorded for gradients." },
    { 0 },
};

int module_add_contexts(PyObject *module)
{
    pthread_atfork(NULL, NULL, after_fork);
    return add_errors(module) || PyModule_AddFunctions(module, functions) ? -1 : 0;
}
