/* Steps of optimizers. Parameter groups and states are Python's, so that a program may change them at any time: a step
   reads them, records the new values of all parameters by cn_held_step, and computes everything pending once. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cairn_python.h"
#include "files.h"

/* ---- the numbers of a group ---- */

typedef struct number {
    const char *name; /* PyTorch's */
    size_t at;        /* in cn_optim_numbers */
    bool is_bool;
    PyObject *key;
} number;
#define REAL(name, field)                                    \
    {                                                        \
        name, offsetof(cn_optim_numbers, field), false, NULL \
    }
#define FLAG(name, field)                                   \
    {                                                       \
        name, offsetof(cn_optim_numbers, field), true, NULL \
    }
static number numbers[] = {
    REAL("lr", lr),
    REAL("weight_decay", weight_decay),
    REAL("eps", eps),
    REAL("momentum", momentum),
    REAL("rho", beta2),
    REAL("dampening", dampening),
    REAL("momentum_decay", momentum_decay),
    REAL("lr_decay", lr_decay),
    REAL("initial_accumulator_value", initial_value),
    REAL("lambd", lambd),
    REAL("t0", t0),
    REAL("beta2_decay", beta2_decay),
    REAL("d", d),
    FLAG("nesterov", nesterov),
    FLAG("maximize", maximize),
    FLAG("amsgrad", amsgrad),
    FLAG("decoupled_weight_decay", decoupled),
    FLAG("centered", centered),
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static PyObject *key_params, *key_step, *key_betas, *key_alpha, *key_etas, *key_step_sizes, *key_eps, *key_product;
static PyObject *key_eta, *key_coefficients, *key_ns_steps, *key_adjust;

static int real_from(PyObject *o, double *v)
{
    *v = PyFloat_AsDouble(o); /* a tensor with one element has __float__ */
    return *v == -1 && PyErr_Occurred() ? -1 : 0;
}

/* The numbers of a tuple or list; None leaves a number as it is. */
static int reals_from(PyObject *group, PyObject *key, double **out, int n)
{
    PyObject *o = PyDict_GetItemWithError(group, key);
    if (!o) return PyErr_Occurred() ? -1 : 0;
    PyObject *list = PySequence_Fast(o, "a group's betas, etas, step_sizes and ns_coefficients must be tuples");
    if (!list) return -1;
    int result = 0;
    if (PySequence_Fast_GET_SIZE(list) != n) {
        PyErr_Format(PyExc_ValueError, "%U must have %d numbers, got %zd", key, n, PySequence_Fast_GET_SIZE(list));
        result = -1;
    }
    for (int i = 0; i < n && !result; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        if (item != Py_None) result = real_from(item, out[i]);
    }
    Py_DECREF(list);
    return result;
}

static int special_numbers(const char *kind, PyObject *group, cn_optim_numbers *n)
{
    PyObject *o = PyDict_GetItemWithError(group, key_alpha);
    if (o && real_from(o, strcmp(kind, "asgd") == 0 ? &n->power : &n->beta2) < 0) return -1;
    if (strcmp(kind, "adamw") == 0) n->decoupled = true;
    if (strcmp(kind, "rprop") == 0) {
        if (reals_from(group, key_etas, (double *[]){ &n->eta_minus, &n->eta_plus }, 2) < 0) return -1;
        return reals_from(group, key_step_sizes, (double *[]){ &n->step_min, &n->step_max }, 2);
    }
    if (strcmp(kind, "adafactor") == 0) return reals_from(group, key_eps, (double *[]){ &n->eps1, &n->eps }, 2);
    if (strcmp(kind, "muon") == 0) {
        double *c = n->coefficients;
        n->no_nesterov = !n->nesterov;
        n->nesterov = false;
        if (reals_from(group, key_coefficients, (double *[]){ c, c + 1, c + 2 }, 3) < 0) return -1;
        if ((o = PyDict_GetItemWithError(group, key_ns_steps))) n->ns_steps = (int)PyLong_AsLong(o);
        if ((o = PyDict_GetItemWithError(group, key_adjust)) && o != Py_None)
            n->adjust = PyUnicode_CompareWithASCIIString(o, "match_rms_adamw") == 0 ? CN_MUON_MATCH_RMS_ADAMW
                                                                                    : CN_MUON_ORIGINAL;
        return PyErr_Occurred() ? -1 : 0;
    }
    return reals_from(group, key_betas, (double *[]){ &n->momentum, &n->beta2 }, 2);
}

static int numbers_of(const char *kind, PyObject *group, cn_optim_numbers *n)
{
    const bool pair = strcmp(kind, "adafactor") == 0; /* its eps is a pair */
    memset(n, 0, sizeof *n);
    for (int i = 0; i < NUMBERS; i++) {
        void *at = (char *)n + numbers[i].at;
        PyObject *o = PyDict_GetItemWithError(group, numbers[i].key);
        if (!o && PyErr_Occurred()) return -1;
        if (!o || o == Py_None || (pair && numbers[i].key == key_eps)) continue;
        if (!numbers[i].is_bool) {
            if (real_from(o, at) < 0) return -1;
            continue;
        }
        const int truth = PyObject_IsTrue(o);
        if (truth < 0) return -1;
        *(bool *)at = truth;
    }
    return special_numbers(kind, group, n);
}

/* ---- a step ---- */

typedef struct item {
    PyObject *param; /* owned */
    PyObject *state; /* its dict; owned, NULL: the optimizer has none for it */
    unsigned fresh;  /* bit k: the step made state k */
} item;

typedef struct step {
    const char *kind;
    PyObject *names[CN_OPTIM_STATES]; /* of states, owned */
    PyObject *state;                  /* param → dict */
    PyObject *product;                /* the name of cn_held.product, borrowed; or NULL */
    bool counts;                      /* states have a "step" */
    item *items;
    cn_held *held; /* as many as items */
    Py_ssize_t n, room;
    context *contexts[16]; /* of the parameters so far */
    int n_contexts;
} step;

static int step_count(PyObject *o, int64_t *v)
{
    double number;
    if (PyLong_Check(o)) {
        *v = PyLong_AsLongLong(o);
        return *v == -1 && PyErr_Occurred() ? -1 : 0;
    }
    if (real_from(o, &number) < 0) return -1; /* PyTorch's is a tensor */
    *v = (int64_t)number;
    return 0;
}

/* The dict of a parameter; a new one if there is none. */
static PyObject *state_of(step *s, PyObject *param)
{
    PyObject *d = PyDict_GetItemWithError(s->state, param);
    if (d) {
        if (PyDict_Check(d)) return Py_NewRef(d);
        PyErr_SetString(PyExc_TypeError, "the state of a parameter must be a dict");
        return NULL;
    }
    if (PyErr_Occurred()) return NULL;
    d = PyDict_New();
    if (d && PyDict_SetItem(s->state, param, d) < 0) Py_CLEAR(d);
    return d;
}

static int read_state(step *s, PyObject *d, cn_held *h)
{
    PyObject *o;
    for (int k = 0; k < CN_OPTIM_STATES && s->names[k]; k++) {
        o = PyDict_GetItemWithError(d, s->names[k]);
        if (!o || o == Py_None) continue;
        if (!is_tensor(o)) {
            PyErr_Format(PyExc_TypeError, "the state %U must be a tensor, got %s", s->names[k], Py_TYPE(o)->tp_name);
            return -1;
        }
        h->state[k] = handle_of(o);
    }
    if (s->counts && (o = PyDict_GetItemWithError(d, key_step)) && step_count(o, &h->step) < 0) return -1;
    if (s->product && (o = PyDict_GetItemWithError(d, s->product)) && real_from(o, &h->product) < 0) return -1;
    return PyErr_Occurred() ? -1 : 0;
}

static int make_room(step *s, Py_ssize_t more)
{
    if (s->n + more <= s->room) return 0;
    const Py_ssize_t room = (s->n + more) * 2;
    item *items = PyMem_Realloc(s->items, (size_t)room * sizeof *items);
    if (items) s->items = items;
    cn_held *held = PyMem_Realloc(s->held, (size_t)room * sizeof *held);
    if (held) s->held = held;
    if (!items || !held) {
        PyErr_NoMemory();
        return -1;
    }
    s->room = room;
    return 0;
}

static int note_context(step *s, context *c)
{
    for (int i = 0; i < s->n_contexts; i++)
        if (s->contexts[i] == c) return 0;
    if (s->n_contexts == (int)(sizeof s->contexts / sizeof *s->contexts)) {
        PyErr_SetString(PyExc_NotImplementedError, "the parameters of an optimizer may lie on at most 16 devices");
        return -1;
    }
    s->contexts[s->n_contexts++] = c;
    return use(c);
}

/* Adds a parameter that has a gradient. */
static int add_param(step *s, PyObject *param)
{
    item it = { NULL, NULL, 0 };
    cn_held h = { .param = handle_of(param), .product = 1 };
    if (make_room(s, 1) < 0) return -1;
    if (s->names[0]) {
        it.state = state_of(s, param);
        if (!it.state || read_state(s, it.state, &h) < 0) {
            Py_XDECREF(it.state);
            return -1;
        }
    }
    it.param = Py_NewRef(param);
    s->items[s->n] = it;
    s->held[s->n++] = h;
    return 0;
}

static int record(step *s, context *c, const cn_optim_numbers *numbers_now, Py_ssize_t first)
{
    unsigned had = 0;
    if (s->n == first) return 0;
    for (Py_ssize_t i = first; i < s->n; i++) {
        had = 0;
        for (int k = 0; k < CN_OPTIM_STATES; k++) had |= (unsigned)(s->held[i].state[k] != NULL) << k;
        s->items[i].fresh = ~had;
    }
    const bool ok = cn_held_step(c->cn, s->kind, numbers_now, s->held + first, (int)(s->n - first));
    for (Py_ssize_t i = first; i < s->n; i++)
        for (int k = 0; k < CN_OPTIM_STATES; k++)
            if (!s->held[i].state[k]) s->items[i].fresh &= ~(1u << k);
    if (ok) return 0;
    context_error(c);
    return -1;
}

/* SGD without momentum has no states. */
static void choose_names(step *s, const cn_optim_numbers *n)
{
    for (int k = 0; k < CN_OPTIM_STATES; k++) Py_CLEAR(s->names[k]);
    if (strcmp(s->kind, "sgd") == 0 && n->momentum == 0) return;
    for (int k = 0; k < CN_OPTIM_STATES; k++) {
        const char *name = cn_held_state(s->kind, k);
        s->names[k] = name ? PyUnicode_InternFromString(name) : NULL;
    }
}

static int step_group(step *s, PyObject *group)
{
    cn_optim_numbers n;
    if (!PyDict_Check(group)) {
        PyErr_SetString(PyExc_TypeError, "a parameter group must be a dict");
        return -1;
    }
    if (numbers_of(s->kind, group, &n) < 0) return -1;
    PyObject *o = PyDict_GetItemWithError(group, key_params);
    if (!o) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_KeyError, "params");
        return -1;
    }
    PyObject *params = PySequence_Fast(o, "a group's params must be a list of tensors");
    if (!params) return -1;
    choose_names(s, &n);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(params);
    int result = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; i < count && !result; i++) {
        PyObject *p = PySequence_Fast_GET_ITEM(params, i);
        if (!is_tensor(p)) {
            PyErr_Format(PyExc_TypeError, "an optimizer's parameters must be tensors, got %s", Py_TYPE(p)->tp_name);
            result = -1;
        } else {
            result = note_context(s, context_of(p));
        }
    }
    for (int k = 0; k < s->n_contexts && !result; k++) {
        const Py_ssize_t first = s->n;
        for (Py_ssize_t i = 0; i < count && !result; i++) {
            PyObject *p = PySequence_Fast_GET_ITEM(params, i);
            if (context_of(p) == s->contexts[k] && cn_grad_of(handle_of(p))) result = add_param(s, p);
        }
        if (!result) result = record(s, s->contexts[k], &n, first);
    }
    Py_DECREF(params);
    return result;
}

/* Writes new states, counts and products to the dict of a parameter, after its values were computed. */
static int write_state(step *s, Py_ssize_t i)
{
    item *it = &s->items[i];
    cn_held *h = &s->held[i];
    int result = 0;
    tensor_bump(it->param);
    if (!it->state) return 0;
    if (s->counts) {
        PyObject *count = PyLong_FromLongLong(h->step);
        result = count ? PyDict_SetItem(it->state, key_step, count) : -1;
        Py_XDECREF(count);
    }
    for (int k = 0; k < CN_OPTIM_STATES && !result; k++) {
        if (!(it->fresh >> k & 1)) continue;
        PyObject *t = tensor_wrap(context_of(it->param), h->state[k]);
        PyObject *name = PyUnicode_InternFromString(cn_held_state(s->kind, k));
        if (!t || !name || PyDict_SetItem(it->state, name, t) < 0) result = -1;
        Py_XDECREF(t);
        Py_XDECREF(name);
    }
    if (s->product && !result) {
        PyObject *product = PyFloat_FromDouble(h->product);
        result = product ? PyDict_SetItem(it->state, s->product, product) : -1;
        Py_XDECREF(product);
    }
    return result;
}

static int evaluate(step *s)
{
    for (int i = 0; i < s->n_contexts; i++) {
        context *c = s->contexts[i];
        bool ok;
        COMPUTE(c, ok = cn_eval_all(c->cn));
        if (!ok) {
            context_error(c);
            return -1;
        }
    }
    return 0;
}

static void end(step *s)
{
    for (Py_ssize_t i = 0; i < s->n; i++) {
        for (int k = 0; k < CN_OPTIM_STATES; k++)
            if (s->items[i].fresh >> k & 1) cn_release(s->held[i].state[k]); /* a Python tensor keeps it by now */
        Py_DECREF(s->items[i].param);
        Py_XDECREF(s->items[i].state);
    }
    for (int k = 0; k < CN_OPTIM_STATES; k++) Py_XDECREF(s->names[k]);
    PyMem_Free(s->items);
    PyMem_Free(s->held);
}

PyDoc_STRVAR(optim_step_doc, "optim_step(kind, param_groups, state)\n--\n\n"
                             "One step of the optimizer `kind` (\"adamw\"); computes everything pending.");
static PyObject *optim_step(PyObject *self, PyObject *const *args, Py_ssize_t n_args)
{
    (void)self;
    step s = { 0 };
    if (n_args != 3 || !PyUnicode_Check(args[0]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError,
                        "optim_step(kind, param_groups, state): a text, a list and a dict are required");
        return NULL;
    }
    s.kind = PyUnicode_AsUTF8(args[0]);
    s.state = args[2];
    PyObject *groups = s.kind ? PySequence_Fast(args[1], "param_groups must be a list") : NULL;
    if (!groups) return NULL;
    s.counts = strcmp(s.kind, "sgd") != 0 && strcmp(s.kind, "muon") != 0;
    s.product = strcmp(s.kind, "nadam") == 0 ? key_product : strcmp(s.kind, "asgd") == 0 ? key_eta : NULL;
    int result = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(groups) && !result; i++)
        result = step_group(&s, PySequence_Fast_GET_ITEM(groups, i));
    if (!result) result = evaluate(&s);
    for (Py_ssize_t i = 0; i < s.n && !result; i++) result = write_state(&s, i);
    end(&s);
    Py_DECREF(groups);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(optim_zero_grad_doc, "optim_zero_grad(param_groups)\n--\n\nClears the gradients of all parameters.");
static PyObject *optim_zero_grad(PyObject *self, PyObject *param_groups)
{
    (void)self;
    PyObject *groups = PySequence_Fast(param_groups, "param_groups must be a list");
    if (!groups) return NULL;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(groups); i++) {
        PyObject *group = PySequence_Fast_GET_ITEM(groups, i);
        PyObject *list = PyDict_Check(group) ? PyDict_GetItemWithError(group, key_params) : NULL;
        PyObject *params = list ? PySequence_Fast(list, "a group's params must be a list of tensors") : NULL;
        if (!params) {
            Py_DECREF(groups);
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a parameter group must be a dict with params");
            return NULL;
        }
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(params); k++) {
            PyObject *p = PySequence_Fast_GET_ITEM(params, k);
            if (is_tensor(p) && !use(context_of(p))) cn_zero_grad(handle_of(p));
        }
        Py_DECREF(params);
    }
    Py_DECREF(groups);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(optim_eval_doc, "optim_eval(param_groups)\n--\n\n"
                             "Computes everything pending in the contexts of the parameters.");
static PyObject *optim_eval(PyObject *self, PyObject *param_groups)
{
    (void)self;
    step s = { 0 };
    PyObject *groups = PySequence_Fast(param_groups, "param_groups must be a list");
    int result = groups ? 0 : -1;
    for (Py_ssize_t i = 0; !result && i < PySequence_Fast_GET_SIZE(groups); i++) {
        PyObject *group = PySequence_Fast_GET_ITEM(groups, i);
        PyObject *list = PyDict_Check(group) ? PyDict_GetItemWithError(group, key_params) : NULL;
        PyObject *params = list ? PySequence_Fast(list, "a group's params must be a list of tensors") : NULL;
        for (Py_ssize_t k = 0; params && !result && k < PySequence_Fast_GET_SIZE(params); k++) {
            PyObject *p = PySequence_Fast_GET_ITEM(params, k);
            if (is_tensor(p)) result = note_context(&s, context_of(p));
        }
        Py_XDECREF(params);
        if (PyErr_Occurred()) result = -1;
    }
    Py_XDECREF(groups);
    if (result || evaluate(&s)) return NULL;
    Py_RETURN_NONE;
}

/* ---- L-BFGS, whose step calls the program ---- */

typedef struct lbfgs {
    cn_optim *optim;
    context *context;
    PyObject *params; /* a tuple */
} lbfgs;

static void lbfgs_destroy(PyObject *capsule)
{
    lbfgs *l = PyCapsule_GetPointer(capsule, "cairn.lbfgs");
    if (!l) return;
    if (l->context->cn) cn_optim_free(l->optim);
    context_drop(l->context);
    Py_XDECREF(l->params);
    PyMem_Free(l);
}

static lbfgs *lbfgs_from(PyObject *o) { return PyCapsule_GetPointer(o, "cairn.lbfgs"); }
static double given(double v) { return v == 0 ? CN_ZERO : v; }

/* The context of all tensors of a tuple. NULL: an exception is set. */
static context *parameters_context(PyObject *list)
{
    context *c = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++) {
        PyObject *p = PyTuple_GET_ITEM(list, i);
        if (!is_tensor(p) || (c && context_of(p) != c)) {
            PyErr_SetString(PyExc_TypeError, "LBFGS: the parameters must be tensors of one device");
            return NULL;
        }
        c = context_of(p);
    }
    if (!c) PyErr_SetString(PyExc_ValueError, "optimizer got an empty parameter list");
    return c && !use(c) ? c : NULL;
}

PyDoc_STRVAR(lbfgs_new_doc, "lbfgs_new(params, lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, "
                            "strong_wolfe, maximize)\n--\n\nAn L-BFGS optimizer.");
static PyObject *lbfgs_new(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *params;
    cn_lbfgs_desc d = { 0 };
    int wolfe, maximize;
    if (!PyArg_ParseTuple(args, "Odiiddipp", &params, &d.lr, &d.max_iter, &d.max_eval, &d.tolerance_grad,
                          &d.tolerance_change, &d.history_size, &wolfe, &maximize))
        return NULL;
    d.lr = given(d.lr);
    d.tolerance_grad = given(d.tolerance_grad);
    d.tolerance_change = given(d.tolerance_change);
    d.strong_wolfe = wolfe;
    d.maximize = maximize;
    PyObject *list = PySequence_Tuple(params);
    if (!list) return NULL;
    context *c = parameters_context(list);
    const int n = (int)PyTuple_GET_SIZE(list);
    cn_tensor **v = c ? PyMem_Calloc((size_t)n, sizeof *v) : NULL;
    lbfgs *l = v ? PyMem_Calloc(1, sizeof *l) : NULL;
    if (c && !l) PyErr_NoMemory();
    for (int i = 0; l && i < n; i++) v[i] = handle_of(PyTuple_GET_ITEM(list, i));
    if (l && !(l->optim = cn_lbfgs(c->cn, (cn_params){ v, n }, &d))) context_error(c);
    PyMem_Free(v);
    PyObject *capsule = l && l->optim ? PyCapsule_New(l, "cairn.lbfgs", lbfgs_destroy) : NULL;
    if (!capsule) {
        if (l) cn_optim_free(l->optim);
        PyMem_Free(l);
        Py_DECREF(list);
        return NULL;
    }
    l->context = c;
    l->params = list;
    context_use(c);
    return capsule;
}

typedef struct closure_call {
    PyObject *closure;
    PyObject *first; /* what the first call returned */
    PyObject *last;  /* keeps the loss until it was read */
    context *context;
} closure_call;

/* Called while the step computes without the GIL. */
static cn_tensor *call_closure(void *user)
{
    closure_call *call = user;
    cn_tensor *loss = NULL;
    PyGILState_STATE state = PyGILState_Ensure();
    call->context->busy = false;
    PyObject *result = PyObject_CallNoArgs(call->closure);
    if (result && !is_tensor(result)) { /* a number, as L-BFGS of PyTorch allows */
        PyObject *owned = NULL;
        if (tensor_operand(call->context, result, NULL, &owned)) Py_SETREF(result, owned);
        else Py_CLEAR(result);
    }
    if (result) {
        loss = handle_of(result);
        if (!call->first) call->first = Py_NewRef(result);
        Py_XSETREF(call->last, result);
    }
    call->context->busy = true;
    PyGILState_Release(state);
    return loss;
}

PyDoc_STRVAR(lbfgs_step_doc, "lbfgs_step(lbfgs, lr, closure)\n--\n\nA step; returns the first loss.");
static PyObject *lbfgs_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *closure;
    double lr;
    if (!PyArg_ParseTuple(args, "OdO", &capsule, &lr, &closure)) return NULL;
    lbfgs *l = lbfgs_from(capsule);
    if (!l || use(l->context)) return NULL;
    if (!cn_optim_set_lr(l->optim, 0, lr)) return context_error(l->context);
    closure_call call = { closure, NULL, NULL, l->context };
    bool ok;
    COMPUTE(l->context, ok = cn_step_closure(l->optim, call_closure, &call, NULL));
    Py_XDECREF(call.last);
    if (ok && !PyErr_Occurred()) return call.first;
    Py_XDECREF(call.first);
    if (PyErr_Occurred()) cn_error_clear(l->context->cn); /* it only says that the closure failed */
    else context_error(l->context);
    return NULL;
}

PyDoc_STRVAR(lbfgs_state_doc, "lbfgs_state(lbfgs)\n--\n\nThe state as (tensors, texts), two dicts.");
static PyObject *lbfgs_state(PyObject *self, PyObject *capsule)
{
    (void)self;
    lbfgs *l = lbfgs_from(capsule);
    if (!l || use(l->context)) return NULL;
    cn_dict *d = cn_dict_new(l->context->cn);
    if (!d || !cn_optim_save(l->optim, d, "")) {
        cn_dict_free(d);
        return context_error(l->context);
    }
    PyObject *result = dict_to_python(l->context, d);
    cn_dict_free(d);
    return result;
}

PyDoc_STRVAR(lbfgs_load_doc, "lbfgs_load(lbfgs, tensors, texts)\n--\n\nReplaces the state by one of lbfgs_state.");
static PyObject *lbfgs_load(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *tensors, *texts;
    if (!PyArg_ParseTuple(args, "OO!O!", &capsule, &PyDict_Type, &tensors, &PyDict_Type, &texts)) return NULL;
    lbfgs *l = lbfgs_from(capsule);
    if (!l || use(l->context)) return NULL;
    cn_dict *d = dict_from_python(l->context, tensors, texts);
    if (!d) return NULL;
    const bool ok = cn_optim_load(l->optim, d, "");
    cn_dict_free(d);
    if (!ok) return context_error(l->context);
    Py_RETURN_NONE;
}

/* ---- the module ---- */

PyMethodDef optim_functions[] = {
    { "optim_step", (PyCFunction)(void (*)(void))optim_step, METH_FASTCALL, optim_step_doc },
    { "optim_zero_grad", optim_zero_grad, METH_O, optim_zero_grad_doc },
    { "optim_eval", optim_eval, METH_O, optim_eval_doc },
    { "lbfgs_new", lbfgs_new, METH_VARARGS, lbfgs_new_doc },
    { "lbfgs_step", lbfgs_step, METH_VARARGS, lbfgs_step_doc },
    { "lbfgs_state", lbfgs_state, METH_O, lbfgs_state_doc },
    { "lbfgs_load", lbfgs_load, METH_VARARGS, lbfgs_load_doc },
    { NULL, NULL, 0, NULL },
};

int module_add_optim(PyObject *module)
{
    static const struct {
        PyObject **key;
        const char *name;
    } keys[] = {
        { &key_params, "params" },     { &key_step, "step" },
        { &key_betas, "betas" },       { &key_alpha, "alpha" },
        { &key_etas, "etas" },         { &key_step_sizes, "step_sizes" },
        { &key_eps, "eps" },           { &key_product, "mu_product" },
        { &key_eta, "eta" },           { &key_coefficients, "ns_coefficients" },
        { &key_ns_steps, "ns_steps" }, { &key_adjust, "adjust_lr_fn" },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!(*keys[i].key = PyUnicode_InternFromString(keys[i].name))) return -1;
    for (int i = 0; i < NUMBERS; i++)
        if (!(numbers[i].key = PyUnicode_InternFromString(numbers[i].name))) return -1;
    return PyModule_AddFunctions(module, file_functions);
}
