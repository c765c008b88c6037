/* Pass "epilogues": an elementwise group that reads the first result of a kernel in order can run inside that kernel,
   on each part of the result as soon as the part is finished. Such a group is the kernel's epilogue. It moves ahead of
   the steps between the kernel and itself. */
#include "core/layout.h"
#include "plan/build.h"

/* How steps use a buffer. */
typedef struct use {
    int made;               /* the step that computes it, or -1 */
    int last, last_but_one; /* the last two steps that read it, or -1 */
    bool parts;             /* several results share it: `made` holds for the last of them only */
} use;

static void note_step(const builder *b, use *u, const cn__step *s, int at)
{
    for (int i = 0; i < s->n_loads; i++) {
        if (s->loads[i].buffer < 0) continue;
        use *of = &u[s->loads[i].buffer];
        if (of->last == at) continue;
        of->last_but_one = of->last;
        of->last = at;
    }
    for (int i = 0; i < s->n_stores; i++) {
        const cn__operand *o = &s->stores[i].to;
        const size_t bytes = (size_t)cn__numel(&o->layout) * cn__device_element(b->plan->device, o->dtype);
        u[o->buffer].made = at;
        u[o->buffer].parts = bytes != ((const cn__buffer *)b->buffers.v)[o->buffer].bytes;
    }
}

/* The latest step that computes a value the group reads; -1: none, or the group reads a buffer that several results
   share. */
static int latest_of(const use *u, const cn__step *g)
{
    int latest = -1;
    for (int l = 0; l < g->n_loads; l++) {
        if (g->loads[l].buffer < 0) continue;
        if (u[g->loads[l].buffer].parts) return -1;
        if (u[g->loads[l].buffer].made > latest) latest = u[g->loads[l].buffer].made;
    }
    return latest;
}

/* Whether group g can run inside kernel k, step number `at`, which is the latest step it needs. The group must read the
   kernel's first result in order and none of its other results: those are final only when the kernel ends. */
static bool continues(const use *u, const cn__step *k, int at, const cn__step *g)
{
    if (k->group || !k->op->epilogue || !g->group || g->op || g->updates) return false;
    const cn__operand *result = &k->stores[0].to;
    const int64_t numel = cn__numel(&result->layout);
    for (int l = 0; l < g->n_loads; l++) {
        const cn__operand *o = &g->loads[l];
        if (o->buffer < 0 || u[o->buffer].made != at) continue;
        if (o->buffer != result->buffer || !cn__layout_contiguous(&o->layout) || cn__numel(&o->layout) != numel)
            return false; /* a contiguous view with as many elements is the whole result */
    }
    return cn__numel(&g->space) == numel && cn__layout_contiguous(&result->layout);
}

/* Whether moving group g, step number `at`, to its kernel needs no more memory: what the group writes then lives
   longer, and what only the group still reads dies earlier. */
static bool saves_as_much(const builder *b, const use *u, const cn__step *g, int at, int kernel)
{
    const cn__buffer *buffers = b->buffers.v;
    size_t written = 0, freed = 0;
    for (int i = 0; i < g->n_stores; i++) {
        const cn__buffer *buf = &buffers[g->stores[i].to.buffer];
        if (buf->where == CN__AT_ARENA) written += buf->bytes;
    }
    for (int l = 0; l < g->n_loads; l++) {
        const int id = g->loads[l].buffer;
        bool again = id < 0 || buffers[id].where != CN__AT_ARENA;
        for (int k = 0; k < l && !again; k++) again = g->loads[k].buffer == id;
        if (!again && (u[id].last == at ? u[id].last_but_one : u[id].last) <= kernel) freed += buffers[id].bytes;
    }
    return freed >= written;
}

/* Moves every epilogue behind its kernel; other steps keep their order. An epilogue may always move ahead: no step
   before it overwrites what it reads, and it takes over no memory. */
static bool move_epilogues(builder *b, const int *epilogue_of)
{
    cn__plan *p = b->plan;
    cn__step *old = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *old * ((size_t)p->n_steps + 1));
    if (!old) return false;
    if (p->n_steps) memcpy(old, p->steps, sizeof *old * (size_t)p->n_steps);
    for (int i = 0, to = 0; i < p->n_steps; i++) {
        if (old[i].epilogue) continue;
        p->steps[to++] = old[i];
        if (epilogue_of[i] >= 0) p->steps[to++] = old[epilogue_of[i]];
    }
    return true;
}

bool cn__find_epilogues(builder *b)
{
    cn__plan *p = b->plan;
    use *u = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *u * (b->buffers.n + 1));
    int *epilogue_of = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *epilogue_of * ((size_t)p->n_steps + 1));
    if (!u || !epilogue_of) return false;
    for (size_t i = 0; i <= b->buffers.n; i++) u[i] = (use){ -1, -1, -1, false };
    memset(epilogue_of, -1, sizeof *epilogue_of * ((size_t)p->n_steps + 1));
    for (int i = 0; i < p->n_steps; i++) note_step(b, u, &p->steps[i], i);
    bool moved = false;
    for (int i = 0; i < p->n_steps; i++) {
        cn__step *g = &p->steps[i];
        const int k = latest_of(u, g);
        if (k < 0 || epilogue_of[k] >= 0 || !continues(u, &p->steps[k], k, g)) continue;
        if (k + 1 < i && !saves_as_much(b, u, g, i, k)) continue;
        g->epilogue = true;
        epilogue_of[k] = i;
        moved |= k + 1 < i;
    }
    return !moved || move_epilogues(b, epilogue_of);
}
