/* Pass "merge": elementwise groups that follow each other, do not read each other's results and run the same program
   over different memory become one kernel. The updates of a hundred small parameters become one launch. Sizes, layouts
   and numbers may differ. */
#include "core/layout.h"
#include "plan/build.h"

#define LITTLE 16384 /* elements; a larger result in the arena rather takes over the place of a dying operand */

/* By memory: the last step that read it and the last step that wrote it. Leaves and assignments that take over their
   memory are different buffers but one memory. */
typedef struct uses {
    int *read_at, *written_at;
} uses;

static int memory_of(const builder *b, int buffer)
{
    const cn__buffer *buf = (const cn__buffer *)b->buffers.v + buffer;
    if (buf->where != CN__AT_LEAF && buf->where != CN__AT_DONOR) return b->n_storages + buffer;
    return (int)cn__res(b->leaves[buf->index])->storage->index;
}

static bool same_instr(const cn__instr *x, const cn__instr *y)
{
    if (x->op != y->op || x->dtype != y->dtype || x->n_in != y->n_in || x->out != y->out) return false;
    if (memcmp(x->in, y->in, sizeof *x->in * (size_t)x->n_in)) return false;
    return !x->op->attr_size || !memcmp(x->attrs, y->attrs, x->op->attr_size);
}

static bool same_program(const cn__step *x, const cn__step *y)
{
    if (x->n_loads != y->n_loads || x->n_instrs != y->n_instrs || x->n_stores != y->n_stores) return false;
    for (int i = 0; i < x->n_loads; i++)
        if (x->loads[i].dtype != y->loads[i].dtype || (x->loads[i].number < 0) != (y->loads[i].number < 0))
            return false;
    for (int i = 0; i < x->n_instrs; i++)
        if (!same_instr(&x->instrs[i], &y->instrs[i])) return false;
    for (int i = 0; i < x->n_stores; i++)
        if (x->stores[i].value != y->stores[i].value) return false;
    return true;
}

static bool may_share(const builder *b, const cn__step *s)
{
    if (!s->group || s->op || s->epilogue) return false;
    for (int i = 0; i < s->n_stores; i++)
        if (((const cn__buffer *)b->buffers.v)[s->stores[i].to.buffer].where == CN__AT_ARENA &&
            cn__numel(&s->space) > LITTLE)
            return false;
    return true;
}

/* Whether step s can run at the same time as the steps from `head` on: it reads nothing they write, and writes nothing
   they read or write. */
static bool independent(const builder *b, const uses *u, const cn__step *s, int head)
{
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i].buffer >= 0 && u->written_at[memory_of(b, s->loads[i].buffer)] >= head) return false;
    for (int i = 0; i < s->n_stores; i++) {
        int memory = memory_of(b, s->stores[i].to.buffer);
        if (u->written_at[memory] >= head || u->read_at[memory] >= head) return false;
    }
    return true;
}

static void note_uses(const builder *b, uses *u, const cn__step *s, int at)
{
    for (int i = 0; i < s->n_loads; i++)
        if (s->loads[i].buffer >= 0) u->read_at[memory_of(b, s->loads[i].buffer)] = at;
    for (int i = 0; i < s->n_stores; i++) u->written_at[memory_of(b, s->stores[i].to.buffer)] = at;
}

bool cn__merge_steps(builder *b)
{
    cn__plan *p = b->plan;
    size_t memories = (size_t)b->n_storages + b->buffers.n;
    uses u;
    u.read_at = cn__bump_new(&b->ctx->memory, &b->temporary, 2 * sizeof(int) * (memories + 1));
    if (!u.read_at) return false;
    memset(u.read_at, -1, 2 * sizeof(int) * memories);
    u.written_at = u.read_at + memories;
    for (int i = 0, head = 0; i < p->n_steps; i++) {
        cn__step *s = &p->steps[i], *first = &p->steps[head];
        s->merged = 1;
        s->joined =
            i > head && may_share(b, first) && may_share(b, s) && same_program(first, s) && independent(b, &u, s, head);
        if (s->joined) first->merged++;
        else head = i;
        note_uses(b, &u, s, i);
    }
    return true;
}
