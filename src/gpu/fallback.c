/* Runs steps without a GPU kernel on the CPU: downloads operands, computes, uploads results. Each such step is
   counted and logged. With CAIRN_GPU_STRICT=1 it is an error. */
#include "core/errors.h"
#include "core/layout.h"
#include "core/object.h"
#include "gpu/backend.h"

typedef struct copy {
    const cn__operand *operand;
    void *memory;
    int64_t n; /* elements */
    bool written;
} copy;

typedef struct fallback {
    void *step;  /* prepared by the CPU device */
    void **base; /* for each buffer of the plan: its copy, or NULL */
    cn__vec copies;
} fallback;

bool cn__gpu_fallback_prepare(cn__gpu_plan *p, int i)
{
    cn_ctx *ctx = p->plan->device->ctx;
    const cn__step *s = &p->plan->steps[i];
    if (p->device->strict)
        return cn__fail(ctx, CN_UNSUPPORTED, "%s: has no GPU kernel, and CAIRN_GPU_STRICT=1 forbids the CPU", s->name);
    cn__log(ctx, "gpu: %s has no GPU kernel and runs on the CPU", s->name);
    fallback *f = cn__bump_new(&ctx->memory, &p->plan->memory, sizeof *f);
    if (!f) return false;
    f->step = p->device->cpu->table->prepare_step(p->device->cpu, p->plan, i);
    f->base = cn__bump_new(&ctx->memory, &p->plan->memory, sizeof *f->base * (size_t)(p->plan->n_buffers + 1));
    p->steps[i].fallback = f;
    return f->step && f->base;
}

void cn__gpu_fallback_free(cn__gpu_plan *p, int i)
{
    fallback *f = p->steps[i].fallback;
    if (f) cn__vec_free(&p->plan->device->ctx->memory, &f->copies, sizeof(copy));
}

static int64_t elements(const cn__gpu_plan *p, const cn__run *run, const cn__operand *o)
{
    const cn__buffer *b = &p->plan->buffers[o->buffer];
    size_t size = cn__device_element(p->plan->device, o->dtype);
    if (b->where == CN__AT_LEAF) return (int64_t)(cn__res(run->leaves[b->index])->storage->bytes / size);
    return (int64_t)(b->bytes / size);
}

/* The block of an operand's whole buffer; *at is the byte of the block where the buffer begins. */
static const cn__gpu_block *memory_of(const cn__gpu_plan *p, const cn__run *run, const cn__operand *o, size_t *at)
{
    cn__operand whole = *o;
    whole.view_node = whole.view_leaf = -1;
    whole.layout.offset = 0;
    uint32_t element;
    const cn__gpu_block *b = cn__gpu_block_of(p->plan, run, &whole, &element);
    *at = (size_t)element * cn__device_element(p->plan->device, o->dtype) - (size_t)b->word * sizeof(uint32_t);
    return b;
}

static bool transfer(cn__gpu_plan *p, const cn__run *run, const copy *c, bool down)
{
    cn_ctx *ctx = run->ctx;
    size_t at;
    const cn__gpu_block *b = memory_of(p, run, c->operand, &at);
    size_t bytes = cn__device_element(p->plan->device, c->operand->dtype) * (size_t)c->n;
    uint32_t *words = cn__alloc(ctx, bytes ? bytes : 1);
    if (!words) return false;
    bool ok;
    if (down) {
        ok = cn__gpu_read_block(p->device, b, at, words, bytes);
        if (ok) cn__gpu_from_words(c->operand->dtype, words, c->memory, c->n);
    } else {
        ok = cn__gpu_to_words(ctx, c->operand->dtype, c->memory, words, c->n) &&
             cn__gpu_write_block(p->device, b, at, words, bytes);
    }
    cn__free(ctx, words, bytes ? bytes : 1);
    return ok;
}

static bool add_copy(cn__gpu_plan *p, fallback *f, const cn__run *run, const cn__operand *o)
{
    if (o->buffer < 0 || f->base[o->buffer]) return true;
    cn_ctx *ctx = run->ctx;
    copy c = { o, NULL, elements(p, run, o), false };
    c.memory = cn__alloc(ctx, (size_t)c.n * cn_dtype_size(o->dtype) + 64);
    if (!c.memory) return false;
    if (!cn__push(&ctx->memory, &f->copies, &c, sizeof c)) {
        cn__free(ctx, c.memory, (size_t)c.n * cn_dtype_size(o->dtype) + 64);
        return cn__no_memory(ctx, "gpu");
    }
    f->base[o->buffer] = c.memory;
    return true;
}

/* Adds the buffer of a result. If the result is a part of the buffer, the rest is downloaded and keeps its value. */
static bool add_result(cn__gpu_plan *p, fallback *f, const cn__run *run, const cn__operand *o)
{
    size_t had = f->copies.n;
    if (!add_copy(p, f, run, o)) return false;
    copy *c = f->copies.v;
    while (c->operand->buffer != o->buffer) c++;
    c->written = true;
    return f->copies.n == had || cn__numel(&o->layout) == c->n || transfer(p, run, c, true);
}

static void drop_copies(fallback *f, cn_ctx *ctx)
{
    for (size_t i = 0; i < f->copies.n; i++) {
        copy *c = (copy *)f->copies.v + i;
        f->base[c->operand->buffer] = NULL;
        cn__free(ctx, c->memory, (size_t)c->n * cn_dtype_size(c->operand->dtype) + 64);
    }
    f->copies.n = 0;
}

cn_code cn__gpu_fallback_run(cn__gpu_plan *p, int i, cn__run *run)
{
    const cn__step *s = &p->plan->steps[i];
    fallback *f = p->steps[i].fallback;
    bool ok = true;
    for (int k = 0; k < s->merged; k++)
        for (int l = 0; l < s[k].n_loads && ok; l++) ok = add_copy(p, f, run, &s[k].loads[l]);
    size_t loads = f->copies.n;
    for (size_t c = 0; c < loads && ok; c++) ok = transfer(p, run, (copy *)f->copies.v + c, true);
    for (int k = 0; k < s->merged; k++)
        for (int l = 0; l < s[k].n_stores && ok; l++) ok = add_result(p, f, run, &s[k].stores[l].to);
    cn_code code = ok ? p->device->cpu->table->run_step(f->step, run, f->base) : CN_OK;
    for (size_t c = 0; c < f->copies.n && ok && code == CN_OK; c++)
        if (((copy *)f->copies.v)[c].written) ok = transfer(p, run, (copy *)f->copies.v + c, false);
    drop_copies(f, run->ctx);
    p->device->count.fallbacks++;
    if (code != CN_OK) return code;
    return ok ? CN_OK : run->ctx->code != CN_OK ? run->ctx->code : CN_NO_MEMORY;
}
