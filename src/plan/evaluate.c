/* Evaluation: collects the pending nodes of a component, finds or builds their plan, runs it, and stores the results in
   the nodes. Either all of this happens, or no value changes. */
#include <stdio.h>

#include "core/errors.h"
#include "core/layout.h"
#include "plan/cache.h"
#include "plan/evaluate.h"

typedef struct collection {
    cn_ctx *ctx;
    cn__cache *c; /* holds the vectors of the collection */
    int n_storages;
    uint32_t variant; /* of the first node that is a variant; 0: none is */
    bool failed;      /* out of memory */
} collection;

static cn__node **nodes_of(const collection *k) { return k->c->nodes.v; }

/* ---- collect ---- */

/* A view of a value that is stored by now needs no plan. */
static bool settle(cn__node *n)
{
    if (n->op->kind != CN_VIEW) return false;
    cn__result *from = cn__res(n->in[0]);
    if (!cn__stored(from)) return false;
    cn__storage_ref(from->storage);
    n->out->storage = from->storage;
    n->out->storage->keeps += n->out->kept;
    if (n->assignable) cn__make_assignable(n);
    n->out->base = (cn__ref){ n, 0 };
    cn__pending_remove(n);
    return true;
}

static void gather(collection *k, cn__node *root)
{
    cn_ctx *ctx = k->ctx;
    uint32_t component = root ? cn__component_find(ctx, root->component) : 0;
    for (cn__node *n = ctx->first, *next; n; n = next) {
        next = n->next;
        if (root && cn__component_find(ctx, n->component) != component) continue;
        if (settle(n)) continue;
        if (!cn__vec_reserve(&ctx->memory, &k->c->nodes, k->c->nodes.n + 1, sizeof n)) {
            k->failed = true;
            return;
        }
        n->stamp = ctx->stamp;
        n->index = (uint32_t)k->c->nodes.n;
        n->want = 0;
        if (!k->variant) k->variant = n->variant;
        nodes_of(k)[k->c->nodes.n++] = n;
    }
}

/* A later backward will need the value, and computing it again is not cheap. */
static bool save_for_backward(const cn__node *n)
{
    return n->needs_grad && !n->spent && !n->grad_leaf && n->op->kind != CN_MAP && n->op->kind != CN_VIEW &&
           n->op->kind != CN_RANDOM;
}

static bool wanted(const cn__node *n, const cn__result *r, const cn__node *root, cn__want want)
{
    if (r->storage) return false; /* stored already */
    if (r->kept || (n == root && r->handles)) return true;
    if (r->handles && (want == CN__WANT_LIVE || !r->consumers || r->numel == 1)) return true;
    return save_for_backward(n) && (r->consumers || r->handles);
}

static void decide_wants(collection *k, cn__node *root, cn__want want)
{
    for (size_t i = 0; i < k->c->nodes.n; i++) {
        cn__node *n = nodes_of(k)[i];
        for (int o = 0; o < n->n_out; o++)
            if (wanted(n, &n->out[o], root, want)) n->want |= (uint8_t)(1u << o);
        if (n->op->kind == CN_VIEW && n->want) {
            cn__ref base = n->out->base;
            if (!cn__res(base)->storage) base.node->want |= (uint8_t)(1u << base.out);
        }
    }
}

/* Whether an assignment may take over the memory of the value it replaces: no kept handle means the old value. */
static bool may_donate(const cn__node *n)
{
    const cn__node *d = n->donor;
    if (!d || !d->assignable || d->state != CN__EVALUATED || !n->want) return false;
    const cn__result *r = d->out;
    const cn__storage *s = r->storage;
    return s && !s->lost && !s->borrowed && s->keeps == 0 && r->meta->layout.offset == 0 &&
           r->meta->dtype == n->out->meta->dtype && cn__layout_contiguous(&r->meta->layout) &&
           r->numel == n->out->numel;
}

/* ---- plan key: all that decides a plan, as numbers ---- */

static void append(collection *k, uint64_t number) { ((uint64_t *)k->c->key.v)[k->c->key.n++] = number; }

static bool make_room(collection *k, size_t numbers)
{
    if (cn__vec_reserve(&k->ctx->memory, &k->c->key, k->c->key.n + numbers, sizeof(uint64_t))) return true;
    k->failed = true;
    return false;
}

static uint32_t storage_number(collection *k, cn__storage *s)
{
    if (!s) return UINT32_MAX;
    if (s->stamp != k->ctx->stamp) {
        s->stamp = k->ctx->stamp;
        s->index = (uint32_t)k->n_storages++;
    }
    return s->index;
}

static uint32_t leaf_number(collection *k, cn__ref r)
{
    cn__result *res = cn__res(r);
    if (res->leaf_stamp == k->ctx->stamp) return res->leaf;
    if (!make_room(k, 2 + 2 * CN_MAX_DIMS) ||
        !cn__vec_reserve(&k->ctx->memory, &k->c->leaves, k->c->leaves.n + 1, sizeof r)) {
        k->failed = true;
        return 0;
    }
    res->leaf_stamp = k->ctx->stamp;
    res->leaf = (uint32_t)k->c->leaves.n;
    ((cn__ref *)k->c->leaves.v)[k->c->leaves.n++] = r;
    const cn_layout *l = &res->meta->layout;
    bool number = r.node->state == CN__NUMBER;
    append(k, (uint64_t)res->meta->dtype | (uint64_t)l->ndim << 8 | (uint64_t)number << 16 |
                  (uint64_t)storage_number(k, res->storage) << 32);
    for (int d = 0; d < l->ndim; d++) append(k, (uint64_t)l->shape[d]), append(k, (uint64_t)l->stride[d]);
    return res->leaf;
}

static uint32_t operand_number(collection *k, cn__ref in)
{
    if (!in.node) return UINT32_MAX;
    if (cn__computed_here(k->ctx, in)) return in.node->index * CN_MAX_OUT + (uint32_t)in.out;
    return 0x80000000u | leaf_number(k, in);
}

static void describe_node(collection *k, cn__node *n)
{
    const cn_op *op = n->op;
    size_t attr_numbers = (op->attr_size + 7) / 8;
    n->donates = may_donate(n);
    uint32_t donor = n->donates ? leaf_number(k, (cn__ref){ n->donor, 0 }) : UINT32_MAX;
    for (int i = 0; i < n->n_in; i++) operand_number(k, n->in[i]); /* leaves stand before the nodes that read them */
    if (!make_room(k, 4 + attr_numbers + (size_t)n->n_in + 1)) return;
    append(k, (uint64_t)(uintptr_t)op);
    bool unconsumed = n->out[0].consumers == 0, has_args = cn__has_args(n);
    append(k, (uint64_t)n->want | (uint64_t)unconsumed << 8 | (uint64_t)has_args << 9 |
                  (uint64_t)(n->donor != NULL) << 10 | (uint64_t)(n->variant != 0) << 11 | (uint64_t)donor << 32);
    if (n->variant) append(k, n->variant - k->variant); /* variants are counted from the first */
    uint64_t *at = (uint64_t *)k->c->key.v + k->c->key.n;
    if (attr_numbers) at[attr_numbers - 1] = 0;
    if (op->attr_size) memcpy(at, n->attrs, op->attr_size);
    k->c->key.n += attr_numbers;
    for (int i = 0; i < n->n_in; i += 2) {
        uint64_t second = i + 1 < n->n_in ? operand_number(k, n->in[i + 1]) : (uint32_t)n->n_in;
        append(k, operand_number(k, n->in[i]) | second << 32);
    }
}

static uint64_t hash_key(const uint64_t *w, size_t n)
{
    uint64_t a = 0x9e3779b97f4a7c15u, c = 0xc2b2ae3d27d4eb4fu;
    for (size_t i = 0; i < n; i++) {
        a = (a ^ w[i]) * 0x9fb21c651e98df25u;
        a ^= a >> 32;
        c += a;
    }
    return a ^ c;
}

static bool collect(collection *k, cn__node *root, cn__want want)
{
    cn_ctx *ctx = k->ctx;
    k->c->nodes.n = k->c->leaves.n = k->c->key.n = 0;
    ctx->stamp++;
    gather(k, root);
    if (!k->failed) decide_wants(k, root, want);
    for (size_t i = 0; i < k->c->nodes.n && !k->failed; i++) describe_node(k, nodes_of(k)[i]);
    return !k->failed ||
           cn__fail(ctx, CN_NO_MEMORY, "evaluate: out of memory after collecting %zu nodes", k->c->nodes.n);
}

/* ---- run ---- */

static void release_memories(cn_ctx *ctx, cn__cache *c, int n)
{
    for (int i = 0; i < n; i++) cn__storage_release(ctx, ((cn__storage **)c->storages.v)[i]);
}

/* Adds to the front of an error the result that it is about: the one in `buffer`, or else the plan's first. */
static bool name_result(cn_ctx *ctx, const cn__plan *p, int buffer)
{
    const cn__step *s = p->steps;
    const cn__operand *to = s->n_stores ? &s->stores[0].to : NULL;
    for (int i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i].n_stores; k++)
            if (p->steps[i].stores[k].to.buffer == buffer) s = &p->steps[i], to = &s->stores[k].to;
    char message[256], shape[96] = "";
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, ctx->message);
    if (to) cn__shape_text(&to->layout, shape, sizeof shape);
    snprintf(ctx->message, sizeof ctx->message, "%s: %s: %s", s->name, shape, message);
    return false;
}

/* Allocates memory for every output and for the arena, before anything runs. */
static bool allocate_memories(cn_ctx *ctx, cn__cache *c, const cn__plan *p)
{
    if (!cn__vec_reserve(&ctx->memory, &c->storages, (size_t)p->n_memories, sizeof(cn__storage *)) ||
        !cn__vec_reserve(&ctx->memory, &c->pointers, (size_t)p->n_memories, sizeof(void *)))
        return cn__no_memory(ctx, NULL);
    const bool clean = ctx->code == CN_OK;
    if (p->n_memories) memset(c->storages.v, 0, (size_t)p->n_memories * sizeof(cn__storage *));
    for (int i = 0; i < p->n_buffers; i++) {
        const cn__buffer *b = &p->buffers[i];
        if (b->where != CN__AT_OUTPUT) continue;
        cn__storage *s = cn__storage_new(ctx, p->device, b->bytes);
        if (!s) {
            release_memories(ctx, c, p->n_memories);
            return clean && p->n_steps ? name_result(ctx, p, i) : false;
        }
        ((cn__storage **)c->storages.v)[b->index] = s; /* not always in the order of buffers */
        ((void **)c->pointers.v)[b->index] = s->data;
    }
    if (!cn__arena_reserve(ctx, p->arena_bytes + p->scratch_bytes + 64)) {
        release_memories(ctx, c, p->n_memories);
        return clean && p->n_steps ? name_result(ctx, p, -1) : false;
    }
    return true;
}

static bool fail_run(cn_ctx *ctx, const cn__plan *p, const cn__run *run, cn_code code)
{
    const cn__step *s = &p->steps[run->fault.step];
    if (code != CN_BAD_INDEX) return cn__fail(ctx, code, "%s: the step failed on device %s", s->name, p->device->name);
    char shape[96], text[256];
    if (s->op->fault)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s",
                        cn__fault_text(s->op->fault, run->fault.index, run->fault.size, text, sizeof text));
    return cn__fail(ctx, CN_BAD_INDEX, "%s: index %lld is out of range for size %lld (result %s)", s->op->name,
                    (long long)run->fault.index, (long long)run->fault.size,
                    cn__shape_text(&s->stores[0].to.layout, shape, sizeof shape));
}

/* ---- results are stored in nodes, or the evaluation is undone ---- */

static void take_over(cn__storage *old, cn__storage *to)
{
    *to = (cn__storage){ .device = old->device, .data = old->data, .bytes = old->bytes, .refs = 1 };
    old->lost = true;
    old->data = NULL;
}

static void commit_outputs(collection *k, const cn__plan *p)
{
    for (int i = 0; i < p->n_outputs; i++) {
        cn__node *n = nodes_of(k)[p->outputs[i].node];
        cn__result *r = &n->out[p->outputs[i].out];
        const cn__buffer *b = &p->buffers[p->outputs[i].buffer];
        cn__storage *s;
        if (b->where == CN__AT_DONOR) {
            s = n->takeover;
            n->takeover = NULL;
            take_over(n->donor->out[0].storage, s);
        } else {
            s = ((cn__storage **)k->c->storages.v)[b->index];
            cn__storage_ref(s);
        }
        r->storage = s;
        s->keeps += r->kept;
        s->assignable |= n->assignable;
    }
    release_memories(k->ctx, k->c, p->n_memories);
}

static void commit(collection *k, const cn__plan *p)
{
    commit_outputs(k, p);
    for (size_t i = 0; i < k->c->nodes.n; i++) {
        cn__node *n = nodes_of(k)[i];
        if (n->op->kind == CN_VIEW) {
            cn__result *base = cn__res(n->out->base);
            if (cn__stored(base) && base->storage) {
                cn__storage_ref(base->storage);
                n->out->storage = base->storage;
                base->storage->keeps += n->out->kept;
                base->storage->assignable |= n->assignable;
                n->out->base = (cn__ref){ n, 0 };
            }
        }
        cn__block_free(&k->ctx->memory, n->takeover, sizeof *n->takeover); /* not needed after all */
        n->takeover = NULL;
        n->refs++;
        cn__pending_remove(n);
    }
    for (size_t i = 0; i < k->c->nodes.n; i++) cn__node_cut(nodes_of(k)[i]);
    for (size_t i = 0; i < k->c->nodes.n; i++) cn__node_release(nodes_of(k)[i]);
}

/* Marks the node that could not be computed and all that read its value. Other nodes stay pending. */
static void mark_failed(collection *k, int failed)
{
    for (size_t i = (size_t)failed; i < k->c->nodes.n; i++) {
        cn__node *n = nodes_of(k)[i];
        bool bad = i == (size_t)failed;
        for (int j = 0; j < n->n_in && !bad; j++) bad = n->in[j].node && n->in[j].node->state == CN__FAILED;
        if (!bad) continue;
        cn__pending_remove(n);
        n->state = CN__FAILED;
    }
}

/* The handle that n was assigned to gets its old value back. */
static void restore_handle(cn__node *n)
{
    if (!n->donor || !n->owner) return;
    cn_tensor *t = n->owner;
    cn__node *old = n->donor;
    cn__handle_rebind(t, (cn__ref){ old, 0 });
    old->owner = t;
    old->replaced = false;
}

static void roll_back(collection *k, int failed)
{
    size_t count = k->c->nodes.n;
    for (size_t i = 0; i < count; i++) nodes_of(k)[i]->refs++;
    for (size_t i = count; i-- > 0;) restore_handle(nodes_of(k)[i]);
    if (failed >= 0) mark_failed(k, failed);
    for (size_t i = 0; i < count; i++) cn__node_release(nodes_of(k)[i]);
}

/* The same for an evaluation that had no memory to list its nodes. */
static void roll_back_unlisted(cn_ctx *ctx, const cn__node *root)
{
    uint32_t component = root ? cn__component_find(ctx, root->component) : 0;
    for (cn__node *n = ctx->first; n; n = n->next) n->refs++;
    for (cn__node *n = ctx->last; n; n = n->prev)
        if (!root || cn__component_find(ctx, n->component) == component) restore_handle(n);
    for (cn__node *n = ctx->first, *next; n; n = next) {
        next = n->next;
        cn__node_release(n);
    }
}

static void free_takeovers(collection *k)
{
    for (size_t i = 0; i < k->c->nodes.n; i++) {
        cn__node *n = nodes_of(k)[i];
        cn__block_free(&k->ctx->memory, n->takeover, sizeof *n->takeover);
        n->takeover = NULL;
    }
}

/* Allocates a storage for each assignment that may take over memory, so that commit cannot fail. */
static bool make_takeovers(collection *k)
{
    for (size_t i = 0; i < k->c->nodes.n; i++) {
        cn__node *n = nodes_of(k)[i];
        if (!n->donates) continue;
        n->takeover = cn__block_new(&k->ctx->memory, sizeof *n->takeover);
        if (n->takeover) continue;
        free_takeovers(k);
        return cn__no_memory(k->ctx, NULL);
    }
    return true;
}

static cn__plan *find_or_build(collection *k)
{
    cn_ctx *ctx = k->ctx;
    cn__cache *c = k->c;
    uint64_t hash = hash_key(c->key.v, c->key.n) & ctx->hash_mask;
    cn__plan *p = cn__cache_find(c, hash, c->key.v, c->key.n);
    if (p) {
        ctx->count.plan_hits++;
        return p;
    }
    ctx->count.plan_misses++;
    p = cn__plan_build(ctx, nodes_of(k), (int)c->nodes.n, c->leaves.v, (int)c->leaves.n, k->n_storages);
    if (p && !cn__cache_add(ctx, p, hash, c->key.v, c->key.n)) {
        cn__plan_free(ctx, p);
        p = NULL;
    }
    if (p && ctx->trace_plans) cn__plan_trace(ctx, p);
    return p;
}

static void mark_moment(const cn_ctx *ctx, cn__moment m, bool built)
{
    if (ctx->observer) ctx->observer->moment(ctx->observer, m, built);
}

static cn__plan *find_plan(collection *k)
{
    const int64_t misses = k->ctx->count.plan_misses;
    mark_moment(k->ctx, CN__PLANNING_BEGINS, false);
    cn__plan *p = find_or_build(k);
    mark_moment(k->ctx, CN__PLANNING_ENDS, k->ctx->count.plan_misses > misses);
    return p;
}

bool cn__plan_run(cn_ctx *ctx, cn__plan *p, cn__node *const *nodes, const cn__ref *leaves, int *failed)
{
    cn__cache *c = ctx->cache;
    *failed = -1;
    if (!allocate_memories(ctx, c, p)) return false;
    cn__run run = { .ctx = ctx, .nodes = nodes, .leaves = leaves, .outputs = c->pointers.v, .arena = ctx->arena };
    cn_code code = p->device->table->run(p->device, p, &run);
    ctx->count.kernels += p->kernels;
    ctx->count.contractions += p->contractions;
    if (code == CN_OK) return true;
    *failed = p->steps[run.fault.step].node;
    release_memories(ctx, c, p->n_memories);
    return fail_run(ctx, p, &run, code);
}

void cn__plan_release_memories(cn_ctx *ctx, const cn__plan *p) { release_memories(ctx, ctx->cache, p->n_memories); }

static bool run_plan(collection *k, cn__plan *p, int *failed)
{
    if (make_takeovers(k) && cn__plan_run(k->ctx, p, nodes_of(k), k->c->leaves.v, failed)) {
        commit(k, p);
        return true;
    }
    free_takeovers(k);
    return false;
}

static bool evaluate(cn_ctx *ctx, cn__node *root, cn__want want, cn__plan_seen *seen, void *user)
{
    if (root && root->state != CN__PENDING) return true;
    if (!ctx->first) return true;
    if (ctx->evaluating)
        return cn__fail(ctx, CN_UNSUPPORTED,
                        "an evaluation is running already: a kernel or logger must not ask for a value");
    collection k = { .ctx = ctx, .c = ctx->cache };
    if (root) root->refs++;
    ctx->evaluating = true;
    mark_moment(ctx, CN__EVALUATION_BEGINS, false);
    bool ok = collect(&k, root, want);
    int failed = -1;
    if (ok && k.c->nodes.n) {
        cn__plan *p = find_plan(&k);
        ok = p && (!seen || seen(user, p, nodes_of(&k), k.c->leaves.v)) && run_plan(&k, p, &failed);
    }
    ctx->count.evaluations++;
    if (k.failed) roll_back_unlisted(ctx, root);
    else if (!ok) roll_back(&k, failed);
    ctx->evaluating = false;
    if (root) cn__node_release(root);
    mark_moment(ctx, CN__EVALUATION_ENDS, false);
    return ok;
}

bool cn__plan_evaluate(cn_ctx *ctx, cn__node *root, cn__want want) { return evaluate(ctx, root, want, NULL, NULL); }

bool cn__plan_evaluate_seen(cn_ctx *ctx, cn__node *root, cn__plan_seen *seen, void *user)
{
    return evaluate(ctx, root, CN__WANT_ASKED, seen, user);
}

size_t cn_plan_print(cn_tensor *t, char *out, size_t size)
{
    if (!out) size = 0;
    if (size) out[0] = 0;
    CN__CALL call = cn__call_tensor(t);
    if (!call.ctx || !cn__revive(t->ref) || t->ref.node->state != CN__PENDING) return 0;
    collection k = { .ctx = t->ctx, .c = t->ctx->cache };
    if (!collect(&k, t->ref.node, CN__WANT_ASKED) || !k.c->nodes.n) return 0;
    const cn__plan *p = find_or_build(&k);
    return p ? cn__plan_show(p, out, size) : 0;
}
