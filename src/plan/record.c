/* Records an evaluation, so that it can be repeated with other inputs. A recording has the plan, the nodes and leaves that
   a run of the plan reads, and how its results lie in memory. Repeating it makes one leaf for each result. */
#include "plan/record.h"

#include "core/engine.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/layout.h"
#include "plan/cache.h"

/* How a result lies: in memory number `memory` of the run. */
typedef struct result {
    int memory;
    cn_meta meta;
} result;

struct cn__recording {
    cn_ctx *ctx;
    cn__plan *plan;
    cn__node **nodes; /* counted, as are the nodes of leaves */
    cn__ref *leaves;
    int *input; /* by leaf: the input in whose memory it lies, or -1. Then the leaf is a stand-in of our own */
    result *results;
    int n_results;
    /* while it is recorded: */
    cn_tensor *const *in;
    int n_in;
    bool unfit;
};

static int input_of(const cn__recording *r, const cn__storage *s)
{
    for (int i = 0; i < r->n_in; i++)
        if (s && cn__result_of(r->in[i])->storage == s) return i;
    return -1;
}

static bool repeats(const cn__node *n)
{
    return n->op->kind != CN_RANDOM && !n->donor && !n->assignable && !n->needs_grad && !n->variant;
}

/* A leaf with the layout of another one, in memory that is set before each run. */
static cn__node *stand_in(cn_ctx *ctx, cn__ref leaf)
{
    const cn_meta *meta = cn__res(leaf)->meta;
    return cn__leaf_new(ctx, meta->dtype, &meta->layout, NULL);
}

static bool note(void *user, cn__plan *p, cn__node *const *nodes, const cn__ref *leaves)
{
    cn__recording *r = user;
    cn__memory *m = &r->ctx->memory;
    for (int i = 0; i < p->n_nodes && !r->unfit; i++) r->unfit = !repeats(nodes[i]);
    if (r->unfit) return true;
    cn__node **own = cn__resize(m, NULL, 0, sizeof *own * (size_t)(p->n_nodes + 1));
    cn__ref *refs = own ? cn__resize(m, NULL, 0, sizeof *refs * (size_t)(p->n_leaves + 1)) : NULL;
    int *input = refs ? cn__resize(m, NULL, 0, sizeof *input * (size_t)(p->n_leaves + 1)) : NULL;
    if (!input) {
        cn__resize(m, refs, sizeof *refs * (size_t)(p->n_leaves + 1), 0);
        cn__resize(m, own, sizeof *own * (size_t)(p->n_nodes + 1), 0);
        return cn__no_memory(r->ctx, "record");
    }
    r->plan = p;
    p->recordings++;
    r->nodes = own, r->leaves = refs, r->input = input;
    bool ok = true;
    for (int i = 0; i < p->n_nodes; i++) own[i] = nodes[i], own[i]->refs++;
    for (int i = 0; i < p->n_leaves; i++) {
        refs[i] = leaves[i];
        input[i] = input_of(r, cn__res(leaves[i])->storage);
        cn__node *other = input[i] >= 0 ? stand_in(r->ctx, leaves[i]) : NULL;
        ok &= other || input[i] < 0;
        if (other) refs[i] = (cn__ref){ other, 0 };
        else input[i] = -1, refs[i].node->refs++;
    }
    return ok;
}

/* In which memory of the run a result was stored; -1: in none. */
static int memory_of(const cn__recording *r, const cn__storage *s)
{
    const cn__plan *p = r->plan;
    for (int i = 0; i < p->n_outputs; i++) {
        const cn__buffer *b = &p->buffers[p->outputs[i].buffer];
        if (b->where == CN__AT_OUTPUT && r->nodes[p->outputs[i].node]->out[p->outputs[i].out].storage == s)
            return b->index;
    }
    return -1;
}

static bool note_results(cn__recording *r, cn_tensor *const *out, int n)
{
    r->results = cn__resize(&r->ctx->memory, NULL, 0, sizeof *r->results * (size_t)(n + 1));
    if (!r->results) return cn__no_memory(r->ctx, "record");
    r->n_results = n;
    for (int i = 0; i < n; i++) {
        const cn__result *from = cn__result_of(out[i]);
        r->results[i] = (result){ memory_of(r, from->storage), *from->meta };
        r->unfit |= r->results[i].memory < 0;
    }
    return true;
}

void cn__recording_free(cn__recording *r)
{
    if (!r) return;
    cn_ctx *ctx = r->ctx;
    cn__memory *m = &ctx->memory;
    cn__plan *p = r->plan;
    for (int i = 0; p && i < p->n_leaves; i++) {
        if (r->input[i] >= 0) cn__res(r->leaves[i])->storage = NULL;
        cn__node_release(r->leaves[i].node);
    }
    for (int i = 0; p && i < p->n_nodes; i++) cn__node_release(r->nodes[i]);
    if (p) {
        cn__resize(m, r->nodes, sizeof *r->nodes * (size_t)(p->n_nodes + 1), 0);
        cn__resize(m, r->leaves, sizeof *r->leaves * (size_t)(p->n_leaves + 1), 0);
        cn__resize(m, r->input, sizeof *r->input * (size_t)(p->n_leaves + 1), 0);
        cn__cache_unpin(ctx, p);
    }
    if (r->results) cn__resize(m, r->results, sizeof *r->results * (size_t)(r->n_results + 1), 0);
    cn__resize(m, r, sizeof *r, 0);
}

/* Whether one evaluation computes all results: they are pending, in one component. */
static cn__node *common_root(cn_ctx *ctx, cn_tensor *const *out, int n)
{
    cn__node *root = n ? out[0]->ref.node : NULL;
    for (int i = 0; i < n; i++) {
        const cn__node *other = out[i]->ref.node;
        if (other->state != CN__PENDING) return NULL;
        if (cn__component_find(ctx, other->component) != cn__component_find(ctx, root->component)) return NULL;
    }
    return root;
}

static bool evaluate_each(cn_tensor *const *out, int n)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++) ok = cn_eval(out[i]);
    return ok;
}

bool cn__plan_record(cn_ctx *ctx, cn_tensor *const *in, int n_in, cn_tensor *const *out, int n_out,
                     cn__recording **made)
{
    *made = NULL;
    cn__node *root = common_root(ctx, out, n_out);
    bool ready = root != NULL && !ctx->eager;
    for (int i = 0; i < n_in; i++) ready &= in[i]->ref.node->state == CN__EVALUATED;
    if (!ready) return evaluate_each(out, n_out);
    cn__recording *r = cn__resize(&ctx->memory, NULL, 0, sizeof *r);
    if (!r) return cn__no_memory(ctx, "record");
    *r = (cn__recording){ .ctx = ctx, .in = in, .n_in = n_in };
    for (int i = 0; i < n_out; i++) cn__keep(out[i]); /* kept values are stored */
    bool ok = cn__plan_evaluate_seen(ctx, root, note, r);
    for (int i = 0; i < n_out; i++) cn__release(out[i]);
    if (ok && r->plan) ok = note_results(r, out, n_out);
    r->in = NULL;
    if (ok && r->plan && !r->unfit) *made = r;
    else cn__recording_free(r);
    return ok;
}

/* A handle on a new leaf in memory of the run. */
static cn_tensor *give(cn_ctx *ctx, const result *from)
{
    cn__storage *s = ((cn__storage **)ctx->cache->storages.v)[from->memory];
    cn__storage_ref(s);
    cn__node *leaf = cn__leaf_new(ctx, from->meta.dtype, &from->meta.layout, s);
    return leaf ? cn__handle_new(ctx, (cn__ref){ leaf, 0 }) : NULL;
}

bool cn__plan_replay(cn__recording *r, cn_tensor *const *in, cn_tensor **out)
{
    cn_ctx *ctx = r->ctx;
    int failed;
    if (ctx->evaluating)
        return cn__fail(ctx, CN_UNSUPPORTED,
                        "an evaluation is running already: a kernel or logger must not ask for a value");
    for (int i = 0; i < r->plan->n_leaves; i++)
        if (r->input[i] >= 0) cn__res(r->leaves[i])->storage = cn__result_of(in[r->input[i]])->storage;
    ctx->evaluating = true;
    if (ctx->observer) ctx->observer->moment(ctx->observer, CN__EVALUATION_BEGINS, false);
    bool ok = cn__plan_run(ctx, r->plan, r->nodes, r->leaves, &failed);
    ctx->count.evaluations++;
    ctx->count.plan_hits++;
    ctx->evaluating = false;
    if (ctx->observer) ctx->observer->moment(ctx->observer, CN__EVALUATION_ENDS, false);
    for (int i = 0; i < r->plan->n_leaves; i++)
        if (r->input[i] >= 0) cn__res(r->leaves[i])->storage = NULL;
    if (!ok) return false;
    for (int i = 0; i < r->n_results; i++) ok &= (out[i] = give(ctx, &r->results[i])) != NULL;
    cn__plan_release_memories(ctx, r->plan);
    return ok;
}
