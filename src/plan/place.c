/* Pass "place": gives every intermediate a place in the arena. It goes through the steps in order, allocates a place
   for each result and frees the place of each value that no later step reads. A result that is computed element by
   element from an operand which dies in the same step takes over the operand's place. */
#include "core/layout.h"
#include "core/util.h"
#include "plan/build.h"

#define ALIGN 64

typedef struct span {
    size_t at, bytes;
} span;

typedef struct places {
    builder *b;
    cn__vec free; /* of span, in the order of addresses */
    size_t top;   /* end of the arena so far */
} places;

static size_t room_for(size_t bytes) { return bytes ? cn__round_up_bytes(bytes, ALIGN) : ALIGN; }
static cn__buffer *buffer_at(const builder *b, int i) { return (cn__buffer *)b->buffers.v + i; }

static void remove_span(places *p, size_t i)
{
    span *f = p->free.v;
    memmove(f + i, f + i + 1, (p->free.n - i - 1) * sizeof *f);
    p->free.n--;
}

static size_t allocate(places *p, size_t bytes)
{
    span *f = p->free.v;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->free.n; i++)
        if (f[i].bytes >= bytes && (best == SIZE_MAX || f[i].bytes < f[best].bytes)) best = i;
    if (best != SIZE_MAX) {
        size_t at = f[best].at;
        f[best].at += bytes;
        f[best].bytes -= bytes;
        if (!f[best].bytes) remove_span(p, best);
        return at;
    }
    size_t at = p->top;
    if (p->free.n && f[p->free.n - 1].at + f[p->free.n - 1].bytes == p->top) { /* extend the free span at the end */
        at = f[p->free.n - 1].at;
        p->free.n--;
    }
    p->top = at + bytes;
    return at;
}

static bool free_place(places *p, size_t at, size_t bytes)
{
    if (!cn__vec_reserve(&p->b->ctx->memory, &p->free, p->free.n + 1, sizeof(span))) return false;
    span *f = p->free.v;
    size_t lo = 0, hi = p->free.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (f[mid].at < at) lo = mid + 1;
        else hi = mid;
    }
    memmove(f + lo + 1, f + lo, (p->free.n - lo) * sizeof *f);
    f[lo] = (span){ at, bytes };
    p->free.n++;
    if (lo + 1 < p->free.n && f[lo].at + f[lo].bytes == f[lo + 1].at) {
        f[lo].bytes += f[lo + 1].bytes;
        remove_span(p, lo + 1);
    }
    if (lo > 0 && f[lo - 1].at + f[lo - 1].bytes == f[lo].at) {
        f[lo - 1].bytes += f[lo].bytes;
        remove_span(p, lo);
    }
    return true;
}

static void lifetimes(builder *b)
{
    for (int s = 0, begin = 0; s < b->plan->n_steps; s++) {
        const cn__step *step = &b->plan->steps[s];
        if (!step->joined) begin = s; /* merged steps allocate all results before they free an operand's place */
        int end = s + (s + 1 < b->plan->n_steps && step[1].epilogue); /* an epilogue runs while its kernel does */
        for (int i = 0; i < step->n_stores; i++) {
            cn__buffer *buf = buffer_at(b, step->stores[i].to.buffer);
            if (buf->first < 0) buf->first = begin;
            buf->last = end;
        }
        for (int i = 0; i < step->n_loads; i++)
            if (step->loads[i].buffer >= 0) buffer_at(b, step->loads[i].buffer)->last = end;
    }
}

static bool can_take_over(const cn__buffer *buf, int s, size_t bytes)
{
    return buf->where == CN__AT_ARENA && buf->last == s && buf->first != s && buf->bytes == bytes && buf->index != -2;
}

/* The buffer of the operand that a kernel may write its result over, if the operand dies in this step and no other
   operand lies in the buffer; or -1. The operand must be all of the buffer. */
static int dying_in_kernel(const builder *b, const cn__step *step, int s, size_t bytes)
{
    const int at = step->op->in_place - 1;
    const cn__operand *o = &step->loads[at];
    if (o->buffer < 0 || !can_take_over(buffer_at(b, o->buffer), s, bytes)) return -1;
    for (int i = 0; i < step->n_loads; i++)
        if (i != at && step->loads[i].buffer == o->buffer) return -1;
    bool whole = cn__layout_contiguous(&o->layout) && o->layout.offset == 0;
    size_t has = (size_t)cn__numel(&o->layout) * cn__device_element(b->plan->device, o->dtype);
    return whole && has == bytes ? o->buffer : -1;
}

/* The buffer of an operand whose place the result may take over, or -1: it dies in this step, is only read in order,
   and is as large as the result. */
static int dying_operand(const builder *b, const cn__step *step, int s, size_t bytes)
{
    if (step->op && step->op->in_place) return dying_in_kernel(b, step, s, bytes);
    if (!step->group || step->op || step->joined || step->merged > 1) return -1; /* merged steps may still read it */
    for (int i = 0; i < step->n_loads; i++) {
        int id = step->loads[i].buffer;
        if (id < 0) continue;
        if (!can_take_over(buffer_at(b, id), s, bytes)) continue;
        bool in_order = true;
        for (int j = 0; step->epilogue && j < step[-1].n_loads; j++)
            in_order &= step[-1].loads[j].buffer != id; /* the kernel still reads it while its epilogue runs */
        for (int j = 0; j < step->n_loads; j++)
            if (step->loads[j].buffer == id)
                in_order &= cn__layout_contiguous(&step->loads[j].layout) &&
                            (size_t)cn__numel(&step->loads[j].layout) *
                                    cn__device_element(b->plan->device, step->loads[j].dtype) ==
                                bytes;
        if (in_order) return id;
    }
    return -1;
}

/* Whether an earlier result of the step lies in the same buffer: several results may be parts of one. */
static bool is_placed(const cn__step *step, int result)
{
    int i = 0;
    while (step->stores[i].to.buffer != step->stores[result].to.buffer) i++;
    return i < result;
}

static void place_results(places *p, const cn__step *step, int s)
{
    builder *b = p->b;
    for (int i = 0; i < step->n_stores; i++) {
        cn__buffer *buf = buffer_at(b, step->stores[i].to.buffer);
        if (buf->where != CN__AT_ARENA || buf->first != s || is_placed(step, i)) continue;
        int from = dying_operand(b, step, s, buf->bytes);
        if (from >= 0) {
            buf->offset = buffer_at(b, from)->offset;
            buffer_at(b, from)->index = -2; /* its place was taken over: do not free it */
        } else {
            buf->offset = allocate(p, room_for(buf->bytes));
        }
    }
}

static bool place_step(places *p, int s, const int *dies, const int *next)
{
    const builder *b = p->b;
    const cn__step *step = &b->plan->steps[s];
    for (int i = 0; !step->joined && i < step->merged; i++) place_results(p, &step[i], s);
    for (int i = dies[s]; i >= 0; i = next[i]) {
        const cn__buffer *buf = buffer_at(b, i);
        if (buf->index != -2 && !free_place(p, buf->offset, room_for(buf->bytes))) return false;
    }
    return true;
}

static bool keep_buffers(builder *b)
{
    b->plan->n_buffers = (int)b->buffers.n;
    b->plan->buffers = cn__plan_alloc(b, sizeof(cn__buffer) * b->buffers.n);
    if (b->failed) return false;
    if (b->buffers.n) memcpy(b->plan->buffers, b->buffers.v, sizeof(cn__buffer) * b->buffers.n);
    return true;
}

bool cn__place(builder *b)
{
    lifetimes(b);
    int steps = b->plan->n_steps, n = (int)b->buffers.n;
    int *dies = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *dies * (size_t)(steps + 1));
    int *next = cn__bump_new(&b->ctx->memory, &b->temporary, sizeof *next * (size_t)(n + 1));
    if (!dies || !next) return false;
    for (int s = 0; s < steps; s++) dies[s] = -1;
    for (int i = 0; i < n; i++) {
        const cn__buffer *buf = buffer_at(b, i);
        if (buf->where != CN__AT_ARENA || buf->first < 0) continue;
        next[i] = dies[buf->last];
        dies[buf->last] = i;
    }
    places p = { .b = b };
    bool ok = true;
    for (int s = 0; s < steps && ok; s++) ok = place_step(&p, s, dies, next);
    b->plan->arena_bytes = p.top;
    cn__vec_free(&b->ctx->memory, &p.free, sizeof(span));
    return ok && keep_buffers(b);
}
