/* Pending nodes → plan: simplify, fuse, place; then the drafts become arrays. */
#include <stdio.h>

#include "plan/build.h"

#include "core/errors.h"

static void *keep(builder *b, size_t bytes)
{
    void *p = cn__bump_new(&b->ctx->memory, &b->plan->memory, bytes ? bytes : 1);
    if (!p) b->failed = true;
    return p;
}

static void add_name(char *name, size_t size, const char *part)
{
    size_t n = strlen(name);
    if (n + strlen(part) + 5 > size) {
        if (n < 2 || strcmp(name + n - 2, "..")) snprintf(name + n, size - n, "+..");
        return;
    }
    snprintf(name + n, size - n, n ? "+%s" : "%s", part);
}

static void name_step(cn__step *s)
{
    for (int i = 0; i < s->n_instrs; i++)
        if (strcmp(s->instrs[i].op->name, "copy") || s->n_instrs == 1)
            add_name(s->name, sizeof s->name, s->instrs[i].op->name);
    if (s->op) add_name(s->name, sizeof s->name, s->op->name);
    if (!s->name[0]) add_name(s->name, sizeof s->name, "copy");
}

static void name_joined(cn__step *s)
{
    char times[16];
    int n = snprintf(times, sizeof times, " x %d", s->together);
    size_t room = sizeof s->name - (size_t)n, length = strlen(s->name);
    if (length >= room) length = room - 1;
    memcpy(s->name + length, times, (size_t)n + 1);
}

/* A value that was to be stored for others, all of which came to be computed beside it. */
static bool unread(const builder *b, const draft_step *d, const cn__store *s)
{
    const cn__buffer *buf = (const cn__buffer *)b->buffers.v + s->to.buffer;
    return d->step.group && !d->step.op && buf->where == CN__AT_ARENA && !b->read[s->to.buffer];
}

static bool find_read(builder *b)
{
    b->read = cn__bump_new(&b->ctx->memory, &b->tmp, b->buffers.n + 1);
    if (!b->read) return false;
    memset(b->read, 0, b->buffers.n + 1);
    for (size_t i = 0; i < b->loads.n; i++) {
        int buffer = ((const linked_load *)b->loads.v)[i].operand.buffer;
        if (buffer >= 0) b->read[buffer] = true;
    }
    return true;
}

static int final_value(const cn__step *s, int value) { return value >= 0 ? value : s->n_loads + ~value; }

static void finish_step(builder *b, cn__step *out, const draft_step *d)
{
    *out = d->step;
    out->n_loads = d->loads.n;
    out->n_instrs = d->instrs.n;
    out->n_stores = 0;
    out->n_values = d->loads.n + d->n_results;
    out->loads = keep(b, sizeof *out->loads * (size_t)d->loads.n);
    out->instrs = keep(b, sizeof *out->instrs * (size_t)d->instrs.n);
    out->stores = keep(b, sizeof *out->stores * (size_t)d->stores.n);
    if (b->failed) return;
    for (int i = 0, l = d->loads.first; i < d->loads.n; l = ((linked_load *)b->loads.v)[l].next)
        out->loads[i++] = ((linked_load *)b->loads.v)[l].operand;
    for (int i = 0, l = d->instrs.first; i < d->instrs.n; l = ((linked_instr *)b->instrs.v)[l].next, i++) {
        out->instrs[i] = ((linked_instr *)b->instrs.v)[l].instr;
        for (int k = 0; k < out->instrs[i].n_in; k++) out->instrs[i].in[k] = final_value(out, out->instrs[i].in[k]);
        out->instrs[i].out = final_value(out, out->instrs[i].out);
    }
    for (int i = 0, l = d->stores.first; i < d->stores.n; l = ((linked_store *)b->stores.v)[l].next, i++) {
        cn__store s = ((linked_store *)b->stores.v)[l].store;
        if (unread(b, d, &s)) continue;
        s.value = final_value(out, s.value);
        out->stores[out->n_stores++] = s;
    }
    out->reduced = final_value(out, d->step.reduced);
    if (out->op && out->op->attr_size) {
        void *attrs = keep(b, out->op->attr_size);
        if (attrs) memcpy(attrs, b->nodes[out->node]->attrs, out->op->attr_size);
        out->attrs = attrs;
    }
    name_step(out);
}

static bool finish_steps(builder *b)
{
    cn__plan *p = b->plan;
    p->n_steps = (int)b->steps.n;
    p->steps = keep(b, sizeof *p->steps * b->steps.n);
    b->failed |= !find_read(b);
    for (int i = 0; i < p->n_steps && !b->failed; i++) {
        finish_step(b, &p->steps[i], (draft_step *)b->steps.v + i);
        p->contractions += p->steps[i].contraction;
    }
    b->failed |= !b->failed && !(cn__find_tails(b) && cn__join_steps(b));
    for (int i = 0; i < p->n_steps && !b->failed; i++) {
        cn__step *s = &p->steps[i];
        if (s->tail) add_name(s[-1].name, sizeof s[-1].name, s->name);
        if (s->together > 1) name_joined(s);
        p->kernels += !s->tail && !s->joined;
    }
    return !b->failed;
}

/* Values to be stored get memory of their own, or that of the value they replace. */
static bool finish_outputs(builder *b)
{
    cn__plan *p = b->plan;
    int count = 0;
    for (int i = 0; i < b->n; i++)
        for (int o = 0; o < b->nodes[i]->n_out; o++)
            count += b->nodes[i]->op->kind != CN_VIEW && b->nodes[i]->want >> o & 1;
    p->outputs = keep(b, sizeof *p->outputs * (size_t)count);
    if (b->failed) return false;
    for (int i = 0; i < b->n; i++) {
        const cn__node *n = b->nodes[i];
        if (n->op->kind == CN_VIEW) continue;
        for (int o = 0; o < n->n_out; o++) {
            if (!(n->want >> o & 1)) continue;
            int id = b->value_buffer[b->info[b->info[i].rep].value + o];
            cn__buffer *buf = (cn__buffer *)b->buffers.v + id;
            if (b->info[i].updates) {
                buf->where = CN__AT_DONOR;
                buf->index = (int)n->donor->out[0].leaf;
            } else if (buf->where == CN__AT_ARENA) {
                buf->where = CN__AT_OUTPUT;
                buf->index = p->n_memories++;
            }
            p->outputs[p->n_outputs].node = i;
            p->outputs[p->n_outputs].out = o;
            p->outputs[p->n_outputs++].buffer = id;
        }
    }
    return true;
}

static bool open_builder(builder *b)
{
    cn__memory *m = &b->ctx->memory;
    b->info = cn__bump_new(m, &b->tmp, sizeof *b->info * (size_t)b->n);
    int values = 0;
    for (int i = 0; i < b->n; i++) values += b->nodes[i]->n_out;
    int slots = b->n_leaves + values + (b->n + b->n_leaves) + b->n_storages;
    int *ints = cn__bump_new(m, &b->tmp, sizeof *ints * (size_t)(slots + 1));
    b->homes = cn__bump_new(m, &b->tmp, sizeof *b->homes * (size_t)(values + 1));
    if (!b->info || !ints || !b->homes) return false;
    memset(ints, -1, sizeof *ints * (size_t)slots);
    memset(b->homes, 0, sizeof *b->homes * (size_t)values);
    b->leaf_buffer = ints;
    b->value_buffer = b->leaf_buffer + b->n_leaves;
    b->view_copy = b->value_buffer + values;
    b->storage_taken = b->view_copy + b->n + b->n_leaves;
    for (int i = 0, v = 0; i < b->n; v += b->nodes[i++]->n_out) b->info[i].value = v;
    return true;
}

static void close_builder(builder *b)
{
    cn__memory *m = &b->ctx->memory;
    cn__vec_free(m, &b->steps, sizeof(draft_step));
    cn__vec_free(m, &b->loads, sizeof(linked_load));
    cn__vec_free(m, &b->instrs, sizeof(linked_instr));
    cn__vec_free(m, &b->stores, sizeof(linked_store));
    cn__vec_free(m, &b->buffers, sizeof(cn__buffer));
    cn__vec_free(m, &b->stack, sizeof(int));
    cn__bump_free(m, &b->tmp);
}

static bool keep_buffers(builder *b)
{
    b->plan->n_buffers = (int)b->buffers.n;
    b->plan->buffers = keep(b, sizeof(cn__buffer) * b->buffers.n);
    if (b->failed) return false;
    if (b->buffers.n) memcpy(b->plan->buffers, b->buffers.v, sizeof(cn__buffer) * b->buffers.n);
    return true;
}

void cn__plan_free(cn_ctx *ctx, cn__plan *plan)
{
    if (!plan) return;
    if (plan->prepared) plan->device->table->unprepare(plan->device, plan);
    cn__bump memory = plan->memory;
    cn__bump_free(&ctx->memory, &memory);
}

cn__plan *cn__plan_build(cn_ctx *ctx, cn__node *const *nodes, int n_nodes, const cn__ref *leaves, int n_leaves,
                         int n_storages)
{
    cn__bump memory = { 0 };
    cn__plan *plan = cn__bump_new(&ctx->memory, &memory, sizeof *plan);
    if (!plan) {
        cn__fail(ctx, CN_NO_MEMORY, "out of memory: a plan");
        return NULL;
    }
    plan->memory = memory;
    plan->device = nodes[0]->device;
    plan->n_nodes = n_nodes;
    plan->n_leaves = n_leaves;
    builder b = { .ctx = ctx,
                  .nodes = nodes,
                  .n = n_nodes,
                  .leaves = leaves,
                  .n_leaves = n_leaves,
                  .plan = plan,
                  .n_storages = n_storages,
                  .last_check = -1 };
    bool ok = open_builder(&b) && cn__simplify(&b) && cn__fuse(&b) && finish_outputs(&b) && finish_steps(&b) &&
              cn__place(&b) && keep_buffers(&b) && plan->device->table->prepare(plan->device, plan);
    close_builder(&b);
    if (ok) return plan;
    cn__fail(ctx, CN_NO_MEMORY, "out of memory: a plan");
    cn__plan_free(ctx, plan);
    return NULL;
}
