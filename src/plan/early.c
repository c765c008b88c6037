/* Pass "early": a large update runs as soon as it may, so that steps after it use the memory of its gradient again. An
   update is a step that writes into the memory of the values it replaces. It may run when what it reads is computed,
   when all other readers of the old values have run, and when no step is left that may find an index out of range.
   Small updates stay together at the end, where pass "merge" makes one kernel of them. */
#include "plan/build.h"

#define LARGE ((size_t)1 << 20) /* bytes of a gradient; a smaller one is not worth a launch of its own */

typedef struct order {
    const builder *b;
    int *after; /* by step: the step that it moves behind, or -1 */
    int *next;  /* by step: the next one that moves behind the same step, or -1 */
    int *first; /* by step: the first one that moves behind it, or -1 */
    int *made;  /* by buffer: the step after which it is computed, or -1 */
    int *read;  /* by storage: the step after which no step so far reads it, or -1 */
} order;

static const cn__buffer *buffer_at(const builder *b, int i) { return (const cn__buffer *)b->buffers.v + i; }

static int *last_read(const order *o, const cn__buffer *buf)
{
    return &o->read[cn__res(o->b->leaves[buf->index])->storage->index];
}

/* The step that stands last in the plan when step i has run. */
static int end_of(const order *o, int i)
{
    const cn__plan *p = o->b->plan;
    if (o->after[i] >= 0) return o->after[i];
    return i + (i + 1 < p->n_steps && p->steps[i + 1].epilogue);
}

static void note_step(order *o, int i)
{
    const cn__step *s = &o->b->plan->steps[i];
    const int end = end_of(o, i);
    for (int k = 0; k < s->n_stores; k++) o->made[s->stores[k].to.buffer] = end;
    for (int k = 0; k < s->n_loads; k++) {
        if (s->loads[k].buffer < 0 || buffer_at(o->b, s->loads[k].buffer)->where != CN__AT_LEAF) continue;
        int *last = last_read(o, buffer_at(o->b, s->loads[k].buffer));
        if (end > *last) *last = end;
    }
}

static bool is_large_update(const builder *b, const cn__step *s)
{
    bool large = false;
    for (int k = 0; k < s->n_loads && s->updates; k++) {
        if (s->loads[k].buffer < 0) continue;
        const cn__buffer *buf = buffer_at(b, s->loads[k].buffer);
        large |= buf->where == CN__AT_ARENA && buf->bytes >= LARGE;
    }
    return large;
}

/* The step behind which an update may run; last_check: the last step that may find an index out of range. */
static int earliest(const order *o, const cn__step *s, int last_check)
{
    int after = last_check < 0 ? -1 : end_of(o, last_check);
    for (int k = 0; k < s->n_loads; k++)
        if (s->loads[k].buffer >= 0 && o->made[s->loads[k].buffer] > after) after = o->made[s->loads[k].buffer];
    for (int k = 0; k < s->n_stores; k++) {
        const cn__buffer *to = buffer_at(o->b, s->stores[k].to.buffer);
        if (to->where == CN__AT_DONOR && *last_read(o, to) > after) after = *last_read(o, to);
    }
    return after;
}

/* Updates that move behind the same step keep their order. */
static bool move_updates(builder *b, const order *o)
{
    cn__plan *p = b->plan;
    cn__step *old = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *old * (size_t)p->n_steps);
    if (!old) return false;
    memcpy(old, p->steps, sizeof *old * (size_t)p->n_steps);
    for (int i = p->n_steps - 1; i >= 0; i--) {
        if (o->after[i] < 0) continue;
        o->next[i] = o->first[o->after[i]];
        o->first[o->after[i]] = i;
    }
    for (int i = 0, to = 0; i < p->n_steps; i++) {
        if (o->after[i] >= 0) continue;
        p->steps[to++] = old[i];
        for (int k = o->first[i]; k >= 0; k = o->next[k]) p->steps[to++] = old[k];
    }
    return true;
}

bool cn__move_updates(builder *b)
{
    const cn__plan *p = b->plan;
    const size_t steps = (size_t)p->n_steps, slots = 3 * steps + b->buffers.n + (size_t)b->n_storages;
    int *ints = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *ints * (slots + 1));
    if (!ints) return false;
    memset(ints, -1, sizeof *ints * slots);
    order o = { b, ints, ints + steps, ints + 2 * steps, ints + 3 * steps, ints + 3 * steps + b->buffers.n };
    int last_check = -1;
    for (int i = 0; i < p->n_steps; i++)
        if (p->steps[i].checks) last_check = i;
    bool moved = false;
    for (int i = 0; i < p->n_steps; i++) {
        if (is_large_update(b, &p->steps[i])) {
            const int after = earliest(&o, &p->steps[i], last_check);
            if (after + 1 < i) o.after[i] = after;
            moved |= o.after[i] >= 0;
        }
        note_step(&o, i);
    }
    return !moved || move_updates(b, &o);
}
