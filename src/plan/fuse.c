/* Pass "fuse": nodes become draft steps. An elementwise node that is not stored is computed inside every group that
   reads it. A stored elementwise node joins the group that computes its latest operand, if it can: everything else that
   the node needs then exists before the group, and steps stay in order. */
#include "core/layout.h"
#include "plan/build.h"

static draft_step *step_at(const builder *b, int i) { return (draft_step *)b->steps.v + i; }

/* ---- lists ---- */

/* Appends an element to a list whose elements lie in `pool`; next_at is where an element holds its link. Returns the
   element's position in the list. */
static int append(builder *b, cn__vec *pool, list *l, const void *element, size_t size, size_t next_at)
{
    if (!cn__push(&b->ctx->memory, pool, element, size)) {
        b->failed = true;
        return -1;
    }
    int at = (int)pool->n - 1;
    *(int *)((char *)pool->v + (size_t)at * size + next_at) = -1;
    if (l->n) *(int *)((char *)pool->v + (size_t)l->last * size + next_at) = at;
    else l->first = at;
    l->last = at;
    return l->n++;
}

static int new_step(builder *b, const cn_op *op, int node, bool group)
{
    draft_step d = { .step = { .op = op, .node = node, .group = group } };
    if (cn__push(&b->ctx->memory, &b->steps, &d, sizeof d)) return (int)b->steps.n - 1;
    b->failed = true;
    return -1;
}

static int new_buffer(builder *b, cn__where where, int index, size_t bytes)
{
    cn__buffer buffer = { where, index, 0, bytes, -1, -1 };
    if (cn__push(&b->ctx->memory, &b->buffers, &buffer, sizeof buffer)) return (int)b->buffers.n - 1;
    b->failed = true;
    return 0;
}

/* ---- buffers ---- */

static size_t element_bytes(const builder *b, cn_dtype t) { return cn__device_element(b->plan->device, t); }

static int buffer_of_leaf(builder *b, int leaf)
{
    if (b->leaf_buffer[leaf] < 0) {
        cn__result *r = cn__res(b->leaves[leaf]);
        b->leaf_buffer[leaf] = new_buffer(b, CN__AT_LEAF, leaf, (size_t)r->numel * element_bytes(b, r->meta->dtype));
    }
    return b->leaf_buffer[leaf];
}

static int buffer_of_value(builder *b, int node, int out)
{
    const destination *h = b->destinations[b->info[node].value + out];
    if (h && h->node >= 0) node = h->node, out = 0;
    int *at = &b->value_buffer[b->info[node].value + out];
    if (*at < 0) {
        cn__result *r = &b->nodes[node]->out[out];
        *at = new_buffer(b, CN__AT_ARENA, -1, (size_t)r->numel * element_bytes(b, r->meta->dtype));
    }
    return *at;
}

static cn__operand operand_of(builder *b, source s)
{
    cn__operand o = {
        .buffer = -1, .number = -1, .view_node = s.view, .view_leaf = -1, .dtype = s.dtype, .layout = *s.layout
    };
    if (s.number) o.number = s.leaf;
    else if (s.leaf >= 0) o.buffer = buffer_of_leaf(b, s.leaf), o.view_leaf = s.leaf;
    else o.buffer = buffer_of_value(b, s.node, s.out);
    const bool elsewhere = s.node >= 0 && b->destinations[b->info[s.node].value + s.out];
    if (elsewhere && cn__seen_at_destination(b, s, &o.layout)) o.view_node = -1;
    return o;
}

/* ---- building one group ---- */

static int add_load(builder *b, int at, cn__operand o)
{
    draft_step *d = step_at(b, at);
    int value = 0;
    for (int i = d->loads.n ? d->loads.first : -1; i >= 0; i = ((linked_load *)b->loads.v)[i].next, value++) {
        const cn__operand *p = &((linked_load *)b->loads.v)[i].operand;
        if (p->buffer == o.buffer && p->number == o.number && p->view_node == o.view_node &&
            p->view_leaf == o.view_leaf && p->dtype == o.dtype && p->layout.ndim == o.layout.ndim &&
            p->layout.offset == o.layout.offset &&
            !memcmp(p->layout.shape, o.layout.shape, sizeof(int64_t) * (size_t)o.layout.ndim) &&
            !memcmp(p->layout.stride, o.layout.stride, sizeof(int64_t) * (size_t)o.layout.ndim))
            return value;
    }
    linked_load load = { o, -1 };
    return append(b, &b->loads, &d->loads, &load, sizeof load, offsetof(linked_load, next));
}

/* Broadcasts an operand's layout to its reader's shape: broadcast axes have stride 0. */
static void broadcast(cn_layout *l, const cn_layout *over)
{
    cn_layout wide = { .ndim = over->ndim, .offset = l->offset };
    int lead = over->ndim - l->ndim;
    for (int d = 0; d < over->ndim; d++) {
        wide.shape[d] = over->shape[d];
        wide.stride[d] = d < lead || l->shape[d - lead] == 1 ? 0 : l->stride[d - lead];
    }
    *l = wide;
}

/* The number of operand k in its group. Loads are 0, 1, ..; until a group is complete, results are ~0, ~1, .. */
static int value_of(builder *b, int at, const cn__node *n, int k)
{
    source s = cn__resolve(b, n->in[k]);
    if (s.node >= 0 && b->info[s.node].in_group == at && cn__flat(b, s)) return b->info[s.node].group_value - s.out;
    cn__operand o = operand_of(b, s);
    if (s.number) o.layout = (cn_layout){ .ndim = 0 };
    else if (n->op->kind != CN_REDUCE) broadcast(&o.layout, &n->out[0].meta->layout);
    if (o.view_node >= 0 || o.view_leaf >= 0) o.layout.offset = 0;
    return add_load(b, at, o);
}

static int first_promoted(const cn__node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k].node && !(n->op->free_dtype >> k & 1)) return k;
    return -1;
}

/* A copy of a value that the group computes needs no loop: the value is stored twice. */
static bool add_copy(builder *b, int at, int i)
{
    if (!b->nodes[i]->op->copies) return false;
    int value = value_of(b, at, b->nodes[i], 0);
    if (value >= 0) return false;
    b->info[i].in_group = at;
    b->info[i].group_value = value;
    return true;
}

static void add_instr(builder *b, int at, int i)
{
    const cn__node *n = b->nodes[i];
    draft_step *d = step_at(b, at);
    int p = n->op->kind == CN_RANDOM ? -1 : first_promoted(n);
    linked_instr li = {
        .instr = { .op = n->op, .node = i, .n_in = (uint8_t)n->n_in, .n_out = n->n_out, .out = (int16_t)~d->n_results },
        .next = -1
    };
    for (int o = 0; o < n->n_out; o++) li.instr.out_dtype[o] = (uint8_t)n->out[o].meta->dtype;
    li.instr.dtype = p < 0 ? n->out[0].meta->dtype : cn__res(n->in[p])->meta->dtype;
    for (int k = 0; k < n->n_in; k++) li.instr.in[k] = (int16_t)value_of(b, at, n, k);
    if (n->op->attr_size) {
        void *attrs = cn__bump_new(&b->ctx->memory, &b->plan->memory, n->op->attr_size);
        if (attrs) memcpy(attrs, n->attrs, n->op->attr_size);
        else b->failed = true;
        li.instr.attrs = attrs;
    }
    append(b, &b->instrs, &d->instrs, &li, sizeof li, offsetof(linked_instr, next));
    b->info[i].in_group = at;
    b->info[i].group_value = li.instr.out;
    d->n_results += n->n_out;
}

/* Adds node i to the group, and before it everything not stored that it needs. Does not recurse: chains may be long. */
static void pull(builder *b, int at, int i)
{
    b->stack.n = 0;
    int push = i;
    for (;;) {
        if (push >= 0) {
            if (!cn__push(&b->ctx->memory, &b->stack, &push, sizeof push)) b->failed = true;
            if (b->failed) return;
        }
        if (!b->stack.n) return;
        int top = ((int *)b->stack.v)[b->stack.n - 1];
        const cn__node *n = b->nodes[top];
        push = -1;
        for (int k = 0; k < n->n_in && push < 0; k++) {
            if (!n->in[k].node) continue;
            source s = cn__resolve(b, n->in[k]);
            if (s.node >= 0 && !b->info[s.node].materialized && b->info[s.node].in_group != at) push = s.node;
        }
        if (push >= 0) continue;
        b->stack.n--;
        if (b->info[top].in_group != at && cn__elementwise(n->op) && !add_copy(b, at, top)) add_instr(b, at, top);
    }
}

/* ---- joining groups ---- */

/* What a node needs, and with it everything that would be computed inside its group. */
typedef struct needs {
    int latest;     /* the latest step that computes a value the node needs, or -1 */
    bool direct;    /* the node reads that value whole and in order */
    int taker;      /* a step that takes over memory which the node reads, or -1 */
    bool bad_taker; /* there are several such steps */
    bool shares;    /* the last step computes some of what the node needs */
} needs;

static void note_source(builder *b, needs *r, source s)
{
    if (s.leaf >= 0 && !s.number) {
        uint32_t st = cn__res(b->leaves[s.leaf])->storage->index;
        int taker = b->storage_taken[st];
        if (taker >= 0 && r->taker >= 0 && taker != r->taker) r->bad_taker = true;
        if (taker > r->taker) r->taker = taker;
    }
    if (s.node < 0 || !b->info[s.node].materialized) return;
    int step = b->info[s.node].step;
    if (step < r->latest) return;
    r->direct = (step > r->latest || r->direct) && cn__flat(b, s);
    r->latest = step;
}

static void mark(builder *b, int i)
{
    if (b->info[i].in_chain) return;
    if (cn__push(&b->ctx->memory, &b->stack, &i, sizeof i)) b->info[i].in_chain = true;
    else b->failed = true;
}

static needs what_it_needs(builder *b, int i)
{
    needs r = { -1, true, -1, false, false };
    int last = (int)b->steps.n - 1;
    b->stack.n = 0;
    mark(b, i);
    for (size_t q = 0; q < b->stack.n; q++) {
        int at = ((int *)b->stack.v)[q];
        const cn__node *n = b->nodes[at];
        r.shares |= b->info[at].in_group == last;
        for (int k = 0; k < n->n_in; k++) {
            if (!n->in[k].node) continue;
            source s = cn__resolve(b, n->in[k]);
            note_source(b, &r, s);
            if (s.node >= 0 && !b->info[s.node].materialized) mark(b, s.node);
        }
    }
    for (size_t q = 0; q < b->stack.n; q++) b->info[((int *)b->stack.v)[q]].in_chain = false;
    return r;
}

static bool room_in(const builder *b, int at, const node_info *me, int64_t numel)
{
    const draft_step *d = step_at(b, at);
    if (me->updates && at < b->last_check) return false; /* a plan that fails must have overwritten nothing */
    return d->step.group && !d->step.op && d->numel == numel && d->instrs.n + me->chain <= GROUP_INSTRS &&
           d->loads.n + me->loads <= GROUP_LOADS;
}

/* The group that node i may become part of, or -1. */
static int group_for(builder *b, int i)
{
    const node_info *me = &b->info[i];
    int64_t numel = b->nodes[i]->out[0].numel;
    needs r = what_it_needs(b, i);
    if (b->failed) return -1;
    if (r.taker >= 0 && !r.bad_taker && (r.latest < r.taker || (r.latest == r.taker && r.direct)) &&
        room_in(b, r.taker, me, numel))
        return r.taker;
    if (r.latest >= 0 && r.direct && r.taker < 0 && room_in(b, r.latest, me, numel)) return r.latest;
    int last = (int)b->steps.n - 1; /* assignments of results of one computation share its group */
    if (me->updates && r.taker < 0 && r.latest < last && r.shares && step_at(b, last)->step.updates &&
        room_in(b, last, me, numel))
        return last;
    return -1;
}

/* ---- steps ---- */

static void add_store(builder *b, int at, int node, int out, int value)
{
    const cn__result *r = &b->nodes[node]->out[out];
    linked_store st = { .store = { .value = value,
                                   .to = { .number = -1,
                                           .view_node = -1,
                                           .view_leaf = -1,
                                           .dtype = r->meta->dtype,
                                           .layout = r->meta->layout } },
                        .value_node = node,
                        .next = -1 };
    const destination *h = b->destinations[b->info[node].value + out];
    if (h) st.store.to.layout = h->layout;
    st.store.to.buffer = buffer_of_value(b, node, out);
    append(b, &b->stores, &step_at(b, at)->stores, &st, sizeof st, offsetof(linked_store, next));
    b->info[node].step = at;
}

/* Notes that step `at` writes into the memory of the value that node i replaces. */
static void take_over(builder *b, int i, int at)
{
    if (!b->info[i].updates) return;
    int *taken = &b->storage_taken[b->nodes[i]->donor->out[0].storage->index];
    if (*taken >= 0) { /* two handles meant the old value: only one assignment can take its memory over */
        b->info[i].updates = false;
        return;
    }
    step_at(b, at)->step.updates = true;
    *taken = at;
}

static void build_elementwise(builder *b, int i)
{
    int at = group_for(b, i);
    if (b->failed) return;
    if (at < 0) {
        at = new_step(b, NULL, i, true);
        if (b->failed) return;
        step_at(b, at)->numel = b->nodes[i]->out[0].numel;
        step_at(b, at)->step.space = b->nodes[i]->out[0].meta->layout;
    }
    pull(b, at, i);
    if (b->failed) return;
    int needed = b->info[i].needed ? b->info[i].needed : 1;
    for (int o = 0; o < b->nodes[i]->n_out && !b->failed; o++)
        if (needed >> o & 1) add_store(b, at, i, o, b->info[i].group_value - o);
    if (!b->failed) take_over(b, i, at);
}

static void build_reduction(builder *b, int i)
{
    const cn__node *n = b->nodes[i];
    int at = new_step(b, n->op, i, true);
    if (b->failed) return;
    source s = cn__resolve(b, n->in[0]);
    step_at(b, at)->step.space = *s.layout;
    step_at(b, at)->numel = cn__numel(s.layout);
    pull(b, at, i);
    if (b->failed) return;
    int value = value_of(b, at, n, 0);
    step_at(b, at)->step.reduced = value;
    add_store(b, at, i, 0, value);
}

/* A row-major copy of an operand, for kernels that accept no strides. All kernels share one copy. */
static cn__operand row_major_copy(builder *b, source s)
{
    int *memo = s.view >= 0 ? &b->view_copy[s.view] : &b->view_copy[b->n + s.leaf];
    cn__operand o = {
        .buffer = *memo, .number = -1, .view_node = -1, .view_leaf = -1, .dtype = s.dtype, .layout = *s.layout
    };
    cn__row_major(&o.layout);
    if (*memo >= 0) return o;
    o.buffer = *memo = new_buffer(b, CN__AT_ARENA, -1, (size_t)cn__numel(s.layout) * element_bytes(b, s.dtype));
    int at = new_step(b, NULL, -1, true);
    if (b->failed) return o;
    cn__operand from = operand_of(b, s);
    draft_step *d = step_at(b, at);
    d->numel = cn__numel(s.layout);
    d->step.space = o.layout;
    add_load(b, at, from);
    linked_store st = { .store = { .value = 0, .to = o }, .value_node = -1, .next = -1 };
    append(b, &b->stores, &step_at(b, at)->stores, &st, sizeof st, offsetof(linked_store, next));
    return o;
}

static void build_kernel(builder *b, int i)
{
    const cn__node *n = b->nodes[i];
    cn__vec found = { 0 };
    if (!cn__vec_reserve(&b->ctx->memory, &found, (size_t)n->n_in + 1, sizeof(linked_load))) b->failed = true;
    linked_load *in = found.v;
    for (int k = 0; k < n->n_in && !b->failed; k++) {
        in[k] = (linked_load){
            .operand = { .buffer = -1, .number = -1, .view_node = -1, .view_leaf = -1, .layout = { .ndim = -1 } }
        };
        if (!n->in[k].node) continue;
        source s = cn__resolve(b, n->in[k]);
        in[k].operand = operand_of(b, s);
        if (!n->op->strided && !cn__layout_contiguous(&in[k].operand.layout)) in[k].operand = row_major_copy(b, s);
    }
    int at = b->failed ? -1 : new_step(b, n->op, i, false);
    for (int k = 0; k < n->n_in && !b->failed; k++)
        append(b, &b->loads, &step_at(b, at)->loads, &in[k], sizeof *in, offsetof(linked_load, next));
    for (int o = 0; o < n->n_out && !b->failed; o++) add_store(b, at, i, o, -1);
    if (!b->failed) {
        step_at(b, at)->step.contraction = n->op->kind == CN_CONTRACT;
        step_at(b, at)->step.checks = n->op->checks_index;
        if (n->op->checks_index) b->last_check = at;
        take_over(b, i, at);
    }
    cn__vec_free(&b->ctx->memory, &found, sizeof(linked_load));
}

/* The value of an elided copy or join is complete when the last kernel that writes a part of it has run. */
static void note_elided(builder *b, int i)
{
    const cn__node *n = b->nodes[i];
    for (int k = 0; k < n->n_in; k++) {
        int from = cn__resolve(b, n->in[k]).node;
        if (from >= 0 && b->info[from].step > b->info[i].step) b->info[i].step = b->info[from].step;
    }
}

bool cn__fuse(builder *b)
{
    for (int pass = 0; pass < 2; pass++) { /* the second pass: assignments that take over memory */
        for (int i = 0; i < b->n && !b->failed; i++) {
            const node_info *me = &b->info[i];
            const cn_op *op = b->nodes[i]->op;
            if (me->rep != i || op->kind == CN_VIEW || !me->materialized || me->updates != (pass == 1)) continue;
            if (!me->needed && !op->checks_index) continue; /* nobody wants it: a gradient that a step read by rows */
            if (me->elided) note_elided(b, i);
            else if (cn__elementwise(op)) build_elementwise(b, i);
            else if (op->kind == CN_REDUCE) build_reduction(b, i);
            else build_kernel(b, i);
        }
    }
    return !b->failed;
}
