/* Pass "steps": draft steps, which hold linked lists, become the steps of the plan, which hold arrays. */
#include "plan/build.h"

/* Whether nothing reads a stored value: all its readers joined the group that computes it. */
static bool unread(const builder *b, const draft_step *d, const cn__store *s)
{
    const cn__buffer *buf = (const cn__buffer *)b->buffers.v + s->to.buffer;
    return d->step.group && !d->step.op && buf->where == CN__AT_ARENA && !b->read[s->to.buffer];
}

static bool find_read(builder *b)
{
    b->read = cn__bump_new(&b->ctx->memory, &b->temporary, b->buffers.n + 1);
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
    out->loads = cn__plan_alloc(b, sizeof *out->loads * (size_t)d->loads.n);
    out->instrs = cn__plan_alloc(b, sizeof *out->instrs * (size_t)d->instrs.n);
    out->stores = cn__plan_alloc(b, sizeof *out->stores * (size_t)d->stores.n);
    if (b->failed) return;
    for (int i = 0, l = d->loads.first; i < d->loads.n; l = ((linked_load *)b->loads.v)[l].next)
        out->loads[i++] = ((linked_load *)b->loads.v)[l].operand;
    for (int i = 0, l = d->instrs.first; i < d->instrs.n; l = ((linked_instr *)b->instrs.v)[l].next, i++) {
        out->instrs[i] = ((linked_instr *)b->instrs.v)[l].instr;
        for (int k = 0; k < out->instrs[i].n_in; k++)
            out->instrs[i].in[k] = (int16_t)final_value(out, out->instrs[i].in[k]);
        out->instrs[i].out = (int16_t)final_value(out, out->instrs[i].out);
    }
    for (int i = 0, l = d->stores.first; i < d->stores.n; l = ((linked_store *)b->stores.v)[l].next, i++) {
        cn__store s = ((linked_store *)b->stores.v)[l].store;
        if (unread(b, d, &s)) continue;
        s.value = final_value(out, s.value);
        out->stores[out->n_stores++] = s;
    }
    out->reduced = final_value(out, d->step.reduced);
    if (out->op && out->op->attr_size) {
        void *attrs = cn__plan_alloc(b, out->op->attr_size);
        if (attrs) memcpy(attrs, b->nodes[out->node]->attrs, out->op->attr_size);
        out->attrs = attrs;
    }
}

bool cn__finish_steps(builder *b)
{
    cn__plan *p = b->plan;
    p->n_steps = (int)b->steps.n;
    p->steps = cn__plan_alloc(b, sizeof *p->steps * b->steps.n);
    b->failed |= !find_read(b);
    for (int i = 0; i < p->n_steps && !b->failed; i++) {
        finish_step(b, &p->steps[i], (draft_step *)b->steps.v + i);
        p->contractions += p->steps[i].contraction;
    }
    cn__free_drafts(b); /* before the device takes memory */
    return !b->failed;
}
