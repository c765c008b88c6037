/* Walks the nodes of a trace and puts them in order. Nothing recurses but compositions inside compositions. */
#include "onnx/steps.h"

#include "core/errors.h"
#include "onnx/put.h"

/* ---- steps by node ---- */

enum { ALL = -1 }; /* of a result's number: all results of the node */

static size_t place_of(cn__ref r, int out)
{
    const uint64_t h =
        ((uint64_t)(uintptr_t)r.node >> 4) * 0x9e3779b97f4a7c15u + (uint64_t)(out + 1) * 0xff51afd7ed558ccdu;
    return (size_t)(h ^ h >> 29);
}

static bool same_place(const onnx_step *s, cn__ref r, int out)
{
    return s->result.node == r.node && (s->one ? s->result.out : ALL) == out;
}

static int find_at(const onnx_trace *t, cn__ref r, int out)
{
    const int *table = t->table.v;
    for (size_t mask = t->table.n - 1, i = place_of(r, out) & mask; t->table.n && table[i] >= 0; i = (i + 1) & mask)
        if (same_place(cn__onnx_step(t, table[i]), r, out)) return table[i];
    return -1;
}

static int find(const onnx_trace *t, cn__ref r)
{
    const int i = find_at(t, r, r.out);
    return i >= 0 ? i : find_at(t, r, ALL);
}

static void enter(onnx_trace *t, int number)
{
    const onnx_step *s = cn__onnx_step(t, number);
    int *table = t->table.v;
    size_t mask = t->table.n - 1, i = place_of(s->result, s->one ? s->result.out : ALL) & mask;
    while (table[i] >= 0) i = (i + 1) & mask;
    table[i] = number;
}

/* A table that is at most half full. */
static bool make_room(onnx_trace *t)
{
    if (t->table.n >= 2 * (t->steps.n + 1)) return true;
    const size_t n = t->table.n ? 2 * t->table.n : 256;
    if (!cn__vec_reserve(&t->ctx->memory, &t->table, n, sizeof(int))) return cn__no_memory(t->ctx, "onnx_save");
    t->table.n = n;
    for (size_t i = 0; i < n; i++) ((int *)t->table.v)[i] = -1;
    for (size_t i = 0; i < t->steps.n; i++) enter(t, (int)i);
    return true;
}

/* Returns its number; -1: no memory. */
static int add(onnx_trace *t, const onnx_step *s)
{
    if (!make_room(t)) return -1;
    onnx_step own = *s;
    own.from = cn__bump_new(&t->ctx->memory, &t->memory, sizeof(int) * (size_t)(s->n_in + 1));
    if (!own.from || !cn__push(&t->ctx->memory, &t->steps, &own, sizeof own)) {
        cn__no_memory(t->ctx, "onnx_save");
        return -1;
    }
    enter(t, (int)t->steps.n - 1);
    return (int)t->steps.n - 1;
}

static int add_end(onnx_trace *t, onnx_end kind, cn__ref r, int number)
{
    const onnx_step s = { .kind = kind, .result = r, .one = true, .number = number, .varies = kind != ONNX_CONSTANT };
    const int i = add(t, &s);
    if (i >= 0 && !cn__push(&t->ctx->memory, &t->order, &i, sizeof i)) {
        cn__no_memory(t->ctx, "onnx_save");
        return -1;
    }
    return i;
}

/* ---- what a value is ---- */

/* The outermost call of a composite that gave this result and has a rule. */
static bool noted(const onnx_trace *t, cn__ref r, onnx_step *out)
{
    for (const cn__note *n = cn__trace_note(t->ctx, r); n; n = cn__trace_earlier(t->ctx, n)) {
        const onnx_step s = {
            .op = n->op, .result = r, .one = true, .in = n->in, .n_in = n->n_in, .attrs = n->attrs, .args = n->args
        };
        *out = s;
        out->row = cn__onnx_writing(out, t->opset);
        if (out->row) return true;
    }
    return false;
}

static cn_tensor *handle_of(cn__ref r)
{
    if (!r.node) return NULL;
    r.node->refs++;
    return cn__handle_new(r.node->ctx, r);
}

static int step_of(onnx_trace *t, cn__ref r);

/* The operator's composition in its place. -1: an error is set, or it has none. */
static int composed(onnx_trace *t, const cn__node *n)
{
    cn_tensor *in[CN_MAX_IN] = { NULL };
    if (n->n_in > CN_MAX_IN) {
        cn__fail(t->ctx, CN_UNSUPPORTED, "onnx_save: %s with %d operands cannot be written", n->op->name, n->n_in);
        return -1;
    }
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k].node && !(in[k] = handle_of(n->in[k]))) return -1;
    cn_tensor *y = n->op->compose(t->ctx, in, n->n_in, n->attrs, n->args);
    return y ? step_of(t, y->ref) : -1;
}

/* The step that gives a value; it is added if it is new. -1: an error is set. */
static int step_of(onnx_trace *t, cn__ref r)
{
    const int known = find(t, r);
    if (known >= 0) return known;
    cn__node *n = r.node;
    if (n->state == CN__NUMBER) return add_end(t, ONNX_NUMBER, r, 0);
    const bool lost = n->n_in && !n->in; /* it was computed before the trace began */
    if (n->op == &cn__leaf || lost) return add_end(t, ONNX_CONSTANT, r, 0);
    onnx_step s = { 0 };
    if (!noted(t, r, &s)) {
        s = (onnx_step){
            .op = n->op, .result = { n, 0 }, .in = n->in, .n_in = n->n_in, .attrs = n->attrs, .args = n->args
        };
        s.row = cn__onnx_writing(&s, t->opset);
        if (!s.row && n->op->compose && r.out == 0) return composed(t, n);
    }
    const int i = add(t, &s);
    if (i >= 0 && !cn__push(&t->ctx->memory, &t->stack, &i, sizeof i)) {
        cn__no_memory(t->ctx, "onnx_save");
        return -1;
    }
    return i;
}

/* ---- the walk ---- */

/* Operands before the calls that read them. `number` of a call counts the operands that were walked. */
static bool drain(onnx_trace *t)
{
    while (t->stack.n) {
        const int i = ((const int *)t->stack.v)[t->stack.n - 1];
        onnx_step *s = cn__onnx_step(t, i);
        if (s->number < s->n_in) {
            const int k = s->number++;
            s->from[k] = -1;
            if (!s->in[k].node) continue;
            const int from = step_of(t, s->in[k]); /* this may move the steps */
            if (from < 0) return false;
            cn__onnx_step(t, i)->from[k] = from;
            continue;
        }
        t->stack.n--;
        s->varies = s->op->kind == CN_RANDOM || !strcmp(s->op->name, "randperm"); /* each run draws its own numbers */
        for (int k = 0; k < s->n_in; k++) s->varies |= s->from[k] >= 0 && cn__onnx_step(t, s->from[k])->varies;
        if (!cn__push(&t->ctx->memory, &t->order, &i, sizeof i)) return cn__no_memory(t->ctx, "onnx_save");
    }
    return true;
}

bool cn__onnx_walk(onnx_trace *t, cn_tensor *const *in, int n_in, const cn_named *named, int n_named,
                   cn_tensor *const *out, int n_out)
{
    t->outputs = cn__bump_new(&t->ctx->memory, &t->memory, sizeof(int) * (size_t)(n_out + 1));
    if (!t->outputs) return cn__no_memory(t->ctx, "onnx_save");
    for (int i = 0; i < n_in; i++)
        if (find(t, in[i]->ref) < 0 && add_end(t, ONNX_INPUT, in[i]->ref, i) < 0) return false;
    for (int i = 0; i < n_named; i++)
        if (find(t, named[i].tensor->ref) < 0 && add_end(t, ONNX_WEIGHT, named[i].tensor->ref, i) < 0) return false;
    for (int i = 0; i < n_out; i++) {
        t->outputs[i] = step_of(t, out[i]->ref);
        if (t->outputs[i] < 0 || !drain(t)) return false;
    }
    return true;
}

void cn__onnx_trace_free(onnx_trace *t)
{
    cn__memory *m = &t->ctx->memory;
    cn__vec_free(m, &t->steps, sizeof(onnx_step));
    cn__vec_free(m, &t->order, sizeof(int));
    cn__vec_free(m, &t->table, sizeof(int));
    cn__vec_free(m, &t->stack, sizeof(int));
    cn__bump_free(m, &t->memory);
}

/* ---- two traces ---- */

static bool same_kind(const onnx_step *a, const onnx_step *b)
{
    if (a->kind != b->kind || a->op != b->op || a->n_in != b->n_in || a->row != b->row || a->one != b->one)
        return false;
    if (a->kind != ONNX_CALL && a->kind != ONNX_CONSTANT) return a->kind == ONNX_NUMBER || a->number == b->number;
    const cn_meta *x = cn__res(a->result)->meta, *y = cn__res(b->result)->meta;
    return x->dtype == y->dtype && x->layout.ndim == y->layout.ndim;
}

bool cn__onnx_alike(const onnx_trace *a, const onnx_trace *b)
{
    if (a->order.n != b->order.n || a->steps.n != b->steps.n) return false;
    for (size_t i = 0; i < a->order.n; i++) {
        if (((const int *)a->order.v)[i] != ((const int *)b->order.v)[i]) return false;
        const onnx_step *s = cn__onnx_at(a, i), *t = cn__onnx_at(b, i);
        if (!same_kind(s, t) || (s->n_in && memcmp(s->from, t->from, sizeof(int) * (size_t)s->n_in) != 0)) return false;
    }
    return true;
}
