/* backward.c: the walk backwards. It puts everything a value came from into an order in which results stand before
   their operands, then takes one step for each. It does not recurse: a graph may be a million values deep. */
#include "micrograd.h"

/* A node of the walk is a pointer with its kind in the low bits. */
enum { VALUE = 0, RUN = 1, BLOCK = 2, KIND = 3, LEAVE = 4 };

typedef struct list {
    uintptr_t *item;
    size_t n, room;
} list;

typedef struct walk {
    uint64_t pass; /* the number of this backward: what it has reached bears it as its mark */
    list order, stack;
    bool expand;      /* rows become the values behind them */
    bool hooks, runs; /* there are functions of the program's own; there are runs */
} walk;

static uint64_t passes;
static list spare_order, spare_stack; /* kept between two walks: most are alike */
enum { KEEP = 1 << 16 };

static list list_take(list *spare)
{
    list l = *spare;
    *spare = (list){ 0 };
    l.n = 0;
    return l;
}

static void list_return(list *spare, list *l)
{
    if (l->room > KEEP || spare->item) PyMem_Free(l->item);
    else *spare = *l;
}

static int push(list *l, uintptr_t item)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        uintptr_t *grown = PyMem_Realloc(l->item, room * sizeof *grown);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        l->item = grown;
        l->room = room;
    }
    l->item[l->n++] = item;
    return 0;
}

static int push_value(walk *w, value *v)
{
    if ((v->op == LEAF && !(v->flags & HOOKED)) || v->mark == w->pass) return 0; /* nothing to hand on; been there */
    return push(&w->stack, (uintptr_t)v | VALUE);
}

static int enter_value(walk *w, value *v)
{
    v->mark = w->pass;
    /* A second backward through the same run finds gradients within it that only expanded values can have. */
    if (v->op == ROW && (w->expand || run_passed(v->run)) && run_expand(v)) return -1;
    if (v->flags & HOOKED) w->hooks = true;
    if (push(&w->stack, (uintptr_t)v | VALUE | LEAVE)) return -1;
    switch (v->op) {
    case LEAF: return 0;
    case ROW: return push(&w->stack, (uintptr_t)v->run | RUN);
    case CUSTOM:
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(v->children); i++)
            if (push_value(w, (value *)PyTuple_GET_ITEM(v->children, i))) return -1;
        return 0;
    case ADD:
    case MUL:
    case POWER: return push_value(w, v->b) || push_value(w, v->a) ? -1 : 0;
    default: return push_value(w, v->a);
    }
}

static int enter_run(walk *w, run *r)
{
    r->mark = w->pass;
    w->runs = true;
    if (push(&w->stack, (uintptr_t)r | RUN | LEAVE) || push(&w->stack, (uintptr_t)r->block | BLOCK)) return -1;
    for (Py_ssize_t i = 0; i < r->block->nin; i++) {
        if (r->before ? r->before->state[i] & ROW_EXPANDED && push_value(w, r->before->made[i])
                      : push_value(w, r->inputs[i]))
            return -1;
    }
    return r->before ? push(&w->stack, (uintptr_t)r->before | RUN) : 0;
}

/* Parameters are leaves as a rule; if a program computes them, they come after all runs that use them. */
static int enter_block(walk *w, block *b)
{
    b->mark = w->pass;
    if (push(&w->stack, (uintptr_t)b | BLOCK | LEAVE)) return -1;
    for (Py_ssize_t i = 0; i < b->nout * (b->nin + 1); i++)
        if (push_value(w, b->parameter[i])) return -1;
    return 0;
}

static int enter(walk *w, uintptr_t node)
{
    void *p = (void *)(node & ~(uintptr_t)7);
    switch (node & KIND) {
    case VALUE: return ((value *)p)->mark == w->pass ? 0 : enter_value(w, p);
    case RUN: return ((run *)p)->mark == w->pass ? 0 : enter_run(w, p);
    default: return ((block *)p)->mark == w->pass ? 0 : enter_block(w, p);
    }
}

static int put_in_order(walk *w, value *const *roots, Py_ssize_t n)
{
    w->pass = ++passes;
    w->order.n = w->stack.n = 0;
    w->hooks = w->runs = false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (push(&w->stack, (uintptr_t)roots[i] | VALUE)) return -1;
    while (w->stack.n) {
        uintptr_t node = w->stack.item[--w->stack.n];
        if (node & LEAVE ? push(&w->order, node & ~(uintptr_t)LEAVE) : enter(w, node)) return -1;
    }
    return 0;
}

static int call_hook(value *v)
{
    PyObject *f = PyDict_GetItemString(v->dict, "_backward");
    if (!f) return value_backward(v);
    Py_INCREF(f);
    PyObject *none = PyObject_CallNoArgs(f);
    Py_DECREF(f);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

static int take_steps(walk *w)
{
    for (size_t i = w->order.n; i-- > 0;) {
        void *p = (void *)(w->order.item[i] & ~(uintptr_t)7);
        switch (w->order.item[i] & KIND) {
        case VALUE: {
            value *v = p;
            if (v->flags & HOOKED ? call_hook(v) : value_backward(v)) return -1;
            break;
        }
        case RUN:
            if (run_backward(p, w->pass)) return -1;
            break;
        default: block_backward(p);
        }
    }
    return 0;
}

/* What failed half-way must not be found by the next backward. */
static void forget_blocks(walk *w)
{
    for (size_t i = 0; i < w->order.n; i++) {
        block *b = (block *)(w->order.item[i] & ~(uintptr_t)7);
        if ((w->order.item[i] & KIND) == BLOCK) block_forget(b);
    }
}

int backward(value *const *roots, Py_ssize_t n, bool seed)
{
    walk w = { .order = list_take(&spare_order), .stack = list_take(&spare_stack) };
    int failed = put_in_order(&w, roots, n);
    /* A function of the program's own may look at any value: then there are values only. */
    if (!failed && w.hooks && w.runs) {
        w.expand = true;
        failed = put_in_order(&w, roots, n);
    }
    for (Py_ssize_t i = 0; seed && !failed && i < n; i++) {
        roots[i]->grad = 1;
        roots[i]->flags |= WHOLE_GRAD;
    }
    if (!failed) {
        failed = take_steps(&w);
        if (failed && w.runs) forget_blocks(&w);
    }
    list_return(&spare_order, &w.order);
    list_return(&spare_stack, &w.stack);
    return failed;
}
