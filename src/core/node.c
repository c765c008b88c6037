/* Nodes: making and freeing them, the list of pending nodes, components, and making values pending again. Nothing
   recurses: graphs may be a hundred thousand nodes deep. */
#include "core/node.h"

#include "core/context.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/layout.h"
#include "core/meta.h"

static bool infer_leaf(cn_infer *i)
{
    return cn_infer_fail(i, CN_BAD_ARGUMENT, "a leaf is a value, not an operator that can be applied");
}
const cn_op cn__leaf = { .name = "leaf",
                         .doc = "A value from outside.",
                         .kind = CN_VIEW,
                         .infer = infer_leaf,
                         .no_grad = "it has no operands" };

static const cn_arg no_args[CN_MAX_ARGS];

/* Where the parts of a node lie in its block of memory. */
typedef struct parts {
    size_t in, out, args, attrs, end;
} parts;

static parts parts_of(const cn_op *op, int n_in, int n_out, int n_args)
{
    parts p = { .in = sizeof(cn__node) };
    p.out = p.in + (size_t)n_in * sizeof(cn__ref);
    p.args = p.out + (size_t)n_out * sizeof(cn__result);
    p.attrs = p.args + (size_t)n_args * sizeof(cn_arg);
    p.end = p.attrs + op->attr_size;
    return p;
}

cn__node *cn__node_new(cn_ctx *ctx, const cn_op *op, int n_in, const cn_arg *args, int n_args)
{
    const int n_out = op == &cn__leaf ? 1 : op->n_out;
    const parts at = parts_of(op, n_in, n_out, n_args);
    const size_t bytes = at.end;
    char *p = cn__block_new(&ctx->memory, bytes);
    if (!p || !cn__vec_reserve(&ctx->memory, &ctx->dead, (size_t)ctx->count.live_nodes + 1, sizeof(cn__node *))) {
        cn__block_free(&ctx->memory, p, bytes);
        cn__no_memory(ctx, op->name);
        return NULL;
    }
    cn__node *n = (cn__node *)p;
    memset(n, 0, at.args);
    n->op = op;
    n->ctx = ctx;
    n->seq = ctx->next_seq++;
    n->variant = ctx->variant;
    n->n_in = n_in;
    n->n_out = (uint8_t)n_out;
    n->n_args = (uint8_t)n_args;
    n->in = n_in ? (cn__ref *)(p + at.in) : NULL;
    n->out = (cn__result *)(p + at.out);
    n->args = n_args ? memcpy(p + at.args, args, (size_t)n_args * sizeof *args) : no_args;
    n->attrs = p + at.attrs;
    for (int i = 0; i < n_out; i++) n->out[i].base = (cn__ref){ n, i };
    ctx->count.live_nodes++;
    return n;
}

cn__node *cn__leaf_new(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, cn__storage *s)
{
    cn__node *n = cn__node_new(ctx, &cn__leaf, 0, NULL, 0);
    if (!n) {
        cn__storage_release(ctx, s);
        return NULL;
    }
    n->state = CN__EVALUATED;
    n->out->storage = s;
    n->refs = 1;
    if (cn__result_describe(n, 0, &(cn_meta){ dtype, *l })) return n;
    cn__node_release(n);
    return NULL;
}

bool cn__result_describe(cn__node *n, int out, const cn_meta *meta)
{
    n->out[out].numel = cn__numel(&meta->layout);
    n->out[out].meta = cn__meta_share(n->ctx, meta);
    return n->out[out].meta || cn__no_memory(n->ctx, n->op->name);
}

static void release(cn__node *n)
{
    if (--n->refs > 0) return;
    cn_ctx *ctx = n->ctx;
    ((cn__node **)ctx->dead.v)[ctx->dead.n++] = n; /* cn__node_new has reserved room for every live node */
}

static void release_operands(cn__node *n)
{
    if (!n->in) return;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i].node) continue;
        cn__res(n->in[i])->consumers--;
        release(n->in[i].node);
    }
    n->in = NULL;
}

static void release_donor(cn__node *n)
{
    if (n->donor) release(n->donor);
    n->donor = NULL;
}

void cn__node_end_hooks(cn__node *n)
{
    for (cn__hook *h = n->hooks, *next; h; h = next) {
        next = h->next;
        if (h->ended) h->ended(h->user);
        cn__block_free(&n->ctx->memory, h, sizeof *h);
    }
    n->hooks = NULL;
}

static void free_node(cn__node *n)
{
    cn_ctx *ctx = n->ctx;
    if (n->state == CN__PENDING) cn__pending_remove(n);
    release_operands(n);
    release_donor(n);
    for (int i = 0; i < n->n_out; i++) {
        cn__storage_release(ctx, n->out[i].storage);
        cn__meta_release(ctx, n->out[i].meta);
    }
    cn__node_end_hooks(n);
    ctx->count.live_nodes--;
    cn__block_free(&ctx->memory, n, parts_of(n->op, n->n_in, n->n_out, n->n_args).end);
}

static void free_dead(cn_ctx *ctx)
{
    if (ctx->freeing_dead) return;
    ctx->freeing_dead = true;
    while (ctx->dead.n) free_node(((cn__node **)ctx->dead.v)[--ctx->dead.n]);
    ctx->freeing_dead = false;
}

void cn__node_release(cn__node *n)
{
    release(n);
    free_dead(n->ctx);
}

/* Operands are needed to compute a value, and to compute gradients. */
void cn__node_cut(cn__node *n)
{
    if (n->state == CN__PENDING || n->ctx->tracer) return;
    release_donor(n);
    if (n->in && (!n->needs_grad || n->grad_leaf || n->spent)) {
        for (int i = 0; i < n->n_out; i++)
            if ((n->out[i].handles || n->out[i].consumers) && !n->out[i].storage) { /* it may be computed again */
                free_dead(n->ctx);
                return;
            }
        release_operands(n);
    }
    free_dead(n->ctx);
}

void cn__pending_add(cn__node *n)
{
    cn_ctx *ctx = n->ctx;
    n->state = CN__PENDING;
    n->prev = ctx->last;
    n->next = NULL;
    *(ctx->last ? &ctx->last->next : &ctx->first) = n;
    ctx->last = n;
    ctx->count.pending++;
}

void cn__pending_remove(cn__node *n)
{
    cn_ctx *ctx = n->ctx;
    *(n->prev ? &n->prev->next : &ctx->first) = n->next;
    *(n->next ? &n->next->prev : &ctx->last) = n->prev;
    n->state = CN__EVALUATED;
    if (--ctx->count.pending == 0) { /* an empty graph has no components: numbers start again */
        ctx->components.n = 0;
        ctx->next_variant = 1;
        ctx->component_epoch++;
    }
}

uint32_t cn__component_find(cn_ctx *ctx, uint32_t c)
{
    uint32_t *parent = ctx->components.v;
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
}

/* Joins the components of n and its operand `in`, if the operand is pending or lies in assignable memory. So all
   readers of memory that an assignment may take over, even through views, are in one component. */
static void join(cn_ctx *ctx, cn__node *n, cn__ref in)
{
    cn__storage *s = cn__res(in)->storage;
    bool pending = in.node->state == CN__PENDING;
    if (!pending && !(s && s->assignable)) return;
    uint32_t *component = pending ? &in.node->component : &s->component;
    uint64_t *epoch = pending ? &in.node->component_epoch : &s->component_epoch;
    if (*epoch != ctx->component_epoch) {
        *component = n->component;
        *epoch = ctx->component_epoch;
        return;
    }
    uint32_t *parent = ctx->components.v, a = cn__component_find(ctx, n->component),
             b = cn__component_find(ctx, *component);
    if (a != b) parent[a > b ? a : b] = a > b ? b : a;
    n->component = a < b ? a : b;
}

void cn__make_assignable(cn__node *n)
{
    cn__storage *s = n->out->storage;
    n->assignable = true;
    if (!s || s->assignable) return;
    s->assignable = true;
    for (cn__node *q = n->ctx->first; q; q = q->next) /* nodes that read it already */
        for (int i = 0; i < q->n_in; i++)
            if (q->in[i].node && cn__res(q->in[i])->storage == s) join(n->ctx, q, q->in[i]);
}

/* Gives n a component of its own and joins it with those of its operands. */
static bool number_component(cn_ctx *ctx, cn__node *n)
{
    uint32_t c = (uint32_t)ctx->components.n; /* a new component, whose root is itself */
    if (!cn__push(&ctx->memory, &ctx->components, &c, sizeof c)) return cn__no_memory(ctx, n->op->name);
    n->component = c;
    n->component_epoch = ctx->component_epoch;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node) join(ctx, n, n->in[i]);
    if (n->donor) join(ctx, n, (cn__ref){ n->donor, 0 });
    return true;
}

/* Numbers of components are used up until the graph is empty. If some node stays pending, it never is: then the
   components are numbered afresh whenever most numbers belong to nodes that are gone. */
static bool renumber_components(cn_ctx *ctx)
{
    ctx->components.n = 0;
    ctx->component_epoch++;
    for (cn__node *q = ctx->first; q; q = q->next)
        if (!number_component(ctx, q)) return false; /* not reached: there is room for all of them */
    return true;
}

bool cn__component_join(cn__node *n)
{
    cn_ctx *ctx = n->ctx;
    const size_t used = ctx->components.n, pending = (size_t)ctx->count.pending;
    if (used >= CN__COMPONENTS && used / 4 >= pending) return renumber_components(ctx);
    return number_component(ctx, n);
}

static bool lost(cn__ref r)
{
    const cn__result *res = cn__res(r);
    return (res->storage && res->storage->lost) || (!res->storage && !r.node->in && r.node->n_in) ||
           r.node->state == CN__FAILED;
}

static bool fail_lost(cn__ref asked, cn__ref source)
{
    cn_ctx *ctx = asked.node->ctx;
    if (source.node->state == CN__FAILED)
        return cn__fail(ctx, CN_LET_GO, "`%s` has no value: the evaluation that was to compute it failed",
                        cn__name_of(asked));
    return cn__fail(
        ctx, CN_LET_GO,
        "`%s` was let go when an assignment replaced `%s`, from which it was computed: use it before, or cn_keep it",
        cn__name_of(asked), cn__name_of(source));
}

/* Goes through the operands depth first, with a stack. A node is added to the pending list after its operands. */
bool cn__revive(cn__ref asked)
{
    cn_ctx *ctx = asked.node->ctx;
    if (cn__stored(cn__res(asked)) || asked.node->state == CN__PENDING || asked.node->state == CN__NUMBER) return true;
    if (lost(asked)) return fail_lost(asked, asked);
    cn__vec stack = { 0 };
    bool ok = cn__push(&ctx->memory, &stack, &asked, sizeof asked) || cn__no_memory(ctx, asked.node->op->name);
    while (ok && stack.n) {
        cn__ref top = ((cn__ref *)stack.v)[stack.n - 1];
        cn__node *n = top.node;
        size_t before = stack.n;
        for (int i = 0; i < n->n_in && ok && n->state != CN__PENDING; i++) {
            cn__ref in = n->in[i];
            if (!in.node || in.node->state == CN__PENDING || in.node->state == CN__NUMBER || cn__stored(cn__res(in)))
                continue;
            if (lost(in)) ok = fail_lost(asked, in);
            else ok = cn__push(&ctx->memory, &stack, &in, sizeof in) || cn__no_memory(ctx, NULL);
        }
        if (!ok || stack.n > before) continue;
        stack.n--;
        if (n->state == CN__PENDING) continue;
        for (int i = 0; i < n->n_out; i++) { /* a view gets a storage with its operand; other results keep theirs */
            if (n->op->kind != CN_VIEW || !n->out[i].storage) continue;
            cn__storage_release(ctx, n->out[i].storage);
            n->out[i].storage = NULL;
        }
        cn__pending_add(n);
        ok = cn__component_join(n);
    }
    cn__vec_free(&ctx->memory, &stack, sizeof(cn__ref));
    return ok;
}
