/* The CPU as a device: its memory, and how it prepares and runs the steps of a plan. */
#include "cpu/cpu.h"

#include "core/layout.h"
#include "core/util.h"
#include "cpu/kernel.h"
#include "cpu/open.h"

#define ALIGN 64
_Static_assert(ALIGN == CN__LINE, "small blocks are aligned");

/* ---- memory: aligned, from the context's allocator ---- */

/* Small memory is cut from large pieces: it costs no more than its bytes. A sanitizer watches each piece by itself. */
static bool is_small(size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    return false && bytes;
#else
    return bytes <= CN__BLOCK * CN__BLOCK_CLASSES;
#endif
}

static void *cpu_alloc(cn__device *d, size_t bytes)
{
    if (is_small(bytes)) return cn__block_new(&d->ctx->memory, cn__round_up_bytes(bytes ? bytes : 1, ALIGN));
    char *p = cn__resize(&d->ctx->memory, NULL, 0, bytes + ALIGN);
    if (!p) return NULL;
    size_t shift = ALIGN - ((uintptr_t)p & (ALIGN - 1)); /* 1..64: the byte before the memory holds it */
    p[shift - 1] = (char)shift;
    return p + shift;
}

static void *cpu_block(void *memory, size_t bytes, size_t *all)
{
    char *p = memory;
    *all = bytes + ALIGN;
    return is_small(bytes) ? NULL : p - (size_t)p[-1];
}

static void cpu_free(cn__device *d, void *memory, size_t bytes)
{
    size_t all = 0;
    if (is_small(bytes)) cn__block_free(&d->ctx->memory, memory, cn__round_up_bytes(bytes ? bytes : 1, ALIGN));
    else if (memory) cn__resize(&d->ctx->memory, cpu_block(memory, bytes, &all), bytes + ALIGN, 0);
}

static bool cpu_upload(cn__device *d, void *to, int64_t at, cn_dtype t, const void *from, int64_t n)
{
    cn__observer *w = d->ctx->observer;
    const int64_t began = w ? cn__nanoseconds() : 0;
    size_t size = cn_dtype_size(t);
    if (n) memcpy((char *)to + (size_t)at * size, from, (size_t)n * size);
    if (w) w->transfer(w, d->name, true, (size_t)n * size, began);
    return true;
}

static bool cpu_download(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n)
{
    cn__observer *w = d->ctx->observer;
    const int64_t began = w ? cn__nanoseconds() : 0;
    size_t size = cn_dtype_size(t);
    if (n) memcpy(to, (const char *)from + (size_t)at * size, (size_t)n * size);
    if (w) w->transfer(w, d->name, false, (size_t)n * size, began);
    return true;
}

static void *cpu_host(cn__device *d, void *memory)
{
    (void)d;
    return memory;
}

static bool cpu_supports(cn__device *d, const cn_op *op)
{
    (void)d;
    if (op->cpu || op->kernels_at || op->kind == CN_VIEW) return true;
    for (int t = 0; t < CN_DTYPES; t++)
        if (op->loops[t] || op->reducers[t]) return true;
    return false;
}

static int cpu_threads(cn__device *d) { return cn__workers_count(((cn__cpu *)d)->workers); }

/* ---- what kernels call ---- */

cn__workers *cn__kernel_workers(const cn_kernel *k) { return k->run->workers; }
int cn_threads(const cn_kernel *k) { return k ? cn__workers_count(k->run->workers) : 1; }

void cn_kernel_fault(const cn_kernel *k, int64_t index, int64_t size)
{
    int none = 0;
    if (!k || !atomic_compare_exchange_strong(&k->run->faulty, &none, 1)) return;
    k->run->fault_index = index;
    k->run->fault_size = size;
}

void cn_kernel_done(const cn_kernel *k, int64_t begin, int64_t end, int thread)
{
    const struct cn__cpu_run *r = k ? k->run : NULL;
    if (!r || !r->epilogue || begin >= end) return;
    char *regs = r->epilogue_scratch + (size_t)thread * cn__group_regs(r->epilogue);
    cn__group_range(r->epilogue, r->plan_run, regs, begin, end);
}

typedef struct chunks {
    const cn_kernel *k;
    cn_body body;
    void *user;
    int64_t n, grain;
} chunks;

static void run_chunk(void *user, int64_t part, int thread)
{
    const chunks *c = user;
    int64_t begin = part * c->grain, end = begin + c->grain < c->n ? begin + c->grain : c->n;
    c->body(c->k, c->user, begin, end, thread);
}

void cn_parallel(const cn_kernel *k, int64_t n, int64_t grain, cn_body body, void *user)
{
    if (!k || !body || n <= 0) return;
    if (grain < 1) grain = 1;
    chunks c = { k, body, user, n, grain };
    int64_t parts = (n - 1) / grain + 1;
    if (parts == 1) run_chunk(&c, 0, 0);
    else cn__workers_run(k->run->workers, parts, run_chunk, &c);
}

static void report_done(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)user;
    cn_kernel_done(k, begin, end, thread);
}

void cn__kernel_done_all(const cn_kernel *k)
{
    if (k->run->epilogue) cn_parallel(k, k->out[0].numel, 8 * CN__TILE, report_done, NULL);
}

/* ---- prepare ---- */

typedef struct cpu_step {
    size_t scratch;
    bool done;    /* the step before does what this step would do */
    cn__group *g; /* of a group; the groups of merged steps form an array */
    cn_kernel *k; /* of a kernel */
} cpu_step;

typedef struct cpu_plan {
    bool alone; /* one step for another device, without its epilogue */
    cpu_step *steps;
    void **base; /* by buffer: its memory in this run */
} cpu_plan;

static void view_of(cn_array *v, const cn__operand *o)
{
    *v = (cn_array){ .dtype = o->dtype, .ndim = o->layout.ndim };
    if (o->layout.ndim < 0) return;
    v->numel = cn__numel(&o->layout);
    memcpy(v->shape, o->layout.shape, sizeof v->shape);
    memcpy(v->stride, o->layout.stride, sizeof v->stride);
}

static bool prepare_kernel(const cn__cpu *cpu, cn__plan *plan, const cn__step *step, cpu_step *s)
{
    cn_ctx *ctx = cpu->device.ctx;
    size_t count = (size_t)(step->n_loads + step->n_stores);
    cn_array *views = cn__bump_new(&ctx->memory, &plan->memory, sizeof *views * count);
    s->k = cn__bump_new(&ctx->memory, &plan->memory, sizeof *s->k);
    if (!views || !s->k) return false;
    for (int i = 0; i < step->n_loads; i++) view_of(&views[i], &step->loads[i]);
    for (int i = 0; i < step->n_stores; i++) view_of(&views[step->n_loads + i], &step->stores[i].to);
    *s->k = (cn_kernel){ .op = step->op,
                         .attrs = step->attrs,
                         .n_in = step->n_loads,
                         .n_out = step->n_stores,
                         .in = views,
                         .out = views + step->n_loads,
                         .kernels = cpu->kernels };
    return true;
}

static bool prepare_groups(const cn__cpu *cpu, cn__plan *plan, const cn__step *step, cpu_step *s)
{
    cn_ctx *ctx = cpu->device.ctx;
    cn__group *g = cn__bump_new(&ctx->memory, &plan->memory, sizeof *g * (size_t)step->merged);
    for (int i = 0; g && i < step->merged; i++) {
        if (!cn__group_prepare(cpu, plan, &step[i], &g[i])) return false;
        s[i].g = &g[i];
    }
    if (g) cn__groups_count(g, step->merged);
    return g != NULL;
}

/* A group may write the copy that the step behind it would make. */
static bool look_ahead(cn__memory *m, cn__plan *plan, int i, cpu_step *s)
{
    const cn__step *step = &plan->steps[i];
    if (!step->group || step->op || step->epilogue || step->merged != 1 || i + 1 >= plan->n_steps) return true;
    if (!cn__turned_find(m, plan, s->g, step + 1)) return false;
    s[1].done = s->g->turned != NULL;
    cn__groups_count(s->g, 1);
    return true;
}

static size_t scratch_of(const cn__step *step, const cpu_step *s, int threads)
{
    size_t bytes = 0;
    if (!step->group) bytes = step->op->scratch ? step->op->scratch(s->k, threads) : 0;
    else bytes = step->op ? cn__reduce_scratch(s->g, threads) : cn__groups_scratch(s->g, step->merged, threads);
    return cn__round_up_bytes(bytes, ALIGN);
}

static bool cpu_prepare(cn__device *d, cn__plan *plan)
{
    cn_ctx *ctx = d->ctx;
    cpu_plan *c = cn__bump_new(&ctx->memory, &plan->memory, sizeof *c);
    if (!c) return false;
    c->steps = cn__bump_new(&ctx->memory, &plan->memory, sizeof *c->steps * (size_t)(plan->n_steps + 1));
    c->base = cn__bump_new(&ctx->memory, &plan->memory, sizeof *c->base * (size_t)(plan->n_buffers + 1));
    if (!c->steps || !c->base) return false;
    for (int i = 0; i < plan->n_steps; i += plan->steps[i].merged) {
        const cn__step *step = &plan->steps[i];
        cpu_step *s = &c->steps[i];
        if (s->done) continue;
        if (!(step->group ? prepare_groups : prepare_kernel)((cn__cpu *)d, plan, step, s)) return false;
        if (!look_ahead(&ctx->memory, plan, i, s)) return false;
        s->scratch = scratch_of(step, s, cpu_threads(d));
        size_t scratch = s->scratch + (step->epilogue ? s[-1].scratch : 0);
        if (scratch > plan->scratch_bytes) plan->scratch_bytes = scratch;
    }
    plan->arena_bytes = cn__round_up_bytes(plan->arena_bytes, ALIGN);
    plan->prepared = c;
    return true;
}

static void cpu_unprepare(cn__device *d, cn__plan *plan)
{
    (void)d;
    plan->prepared = NULL; /* the memory belongs to the plan */
}

/* ---- run ---- */

static void find_buffers(const cn__plan *plan, const cn__run *run, void **base)
{
    for (int i = 0; i < plan->n_buffers; i++) {
        const cn__buffer *b = &plan->buffers[i];
        switch (b->where) {
        case CN__AT_LEAF:
        case CN__AT_DONOR: base[i] = cn__res(run->leaves[b->index])->storage->data; break;
        case CN__AT_OUTPUT: base[i] = run->outputs[b->index]; break;
        case CN__AT_ARENA: base[i] = (char *)run->arena + b->offset; break;
        }
    }
}

static void run_kernel(const cn__step *step, cn_kernel *k, const cn__run *run, void *const *base,
                       struct cn__cpu_run *cpu, void *scratch)
{
    cn_array *views = (cn_array *)k->in;
    for (int i = 0; i < step->n_loads; i++) views[i].data = cn__operand_data(&step->loads[i], run, base);
    for (int i = 0; i < step->n_stores; i++)
        views[step->n_loads + i].data = cn__operand_data(&step->stores[i].to, run, base);
    k->args = run->nodes[step->node]->args;
    k->run = cpu;
    k->scratch = scratch;
    step->op->cpu(k);
}

/* Tells a kernel which step it is, and binds the step's epilogue, if it has one: cn_kernel_done will run it. */
static void enter_step(struct cn__cpu_run *cpu, const cn__plan *plan, cpu_plan *c, int i, const cn__run *run,
                       char *scratch)
{
    cpu->epilogue = NULL;
    cpu->plan = plan;
    cpu->step = &plan->steps[i];
    cpu->plan_run = run;
    if (i + 1 >= plan->n_steps || !plan->steps[i + 1].epilogue) return;
    cn__group_bind(c->steps[i + 1].g, run, c->base);
    cpu->epilogue = c->steps[i + 1].g;
    cpu->epilogue_scratch = scratch + c->steps[i].scratch;
}

static void run_step(const cn__plan *plan, cpu_plan *c, int i, const cn__run *run, struct cn__cpu_run *cpu,
                     char *scratch)
{
    const cn__step *step = &plan->steps[i];
    cpu_step *s = &c->steps[i];
    if (s->done) return;
    if (!step->group) {
        if (!c->alone) enter_step(cpu, plan, c, i, run, scratch);
        run_kernel(step, s->k, run, c->base, cpu, scratch);
        return;
    }
    for (int k = 0; k < step->merged; k++) cn__group_bind(&s->g[k], run, c->base);
    if (step->op) cn__reduce_run(s->g, run, cpu->workers, scratch);
    else cn__groups_run(s->g, step->merged, run, cpu->workers, scratch);
}

static cn_code cpu_run(cn__device *d, cn__plan *plan, cn__run *run)
{
    struct cn__cpu_run cpu = { .workers = ((cn__cpu *)d)->workers };
    char *scratch = run->arena ? (char *)run->arena + plan->arena_bytes : NULL;
    cn__observer *w = d->ctx->observer;
    find_buffers(plan, run, ((cpu_plan *)plan->prepared)->base);
    for (int i = 0; i < plan->n_steps; i += plan->steps[i].merged) {
        const cn__step *step = &plan->steps[i];
        if (step->epilogue) continue; /* the kernel before it has run it */
        const int64_t began = w ? cn__nanoseconds() : 0;
        run_step(plan, plan->prepared, i, run, &cpu, scratch);
        if (w) w->step(w, plan, i, began, cn__nanoseconds());
        if (step->checks && atomic_load(&cpu.faulty)) {
            run->fault.step = i;
            run->fault.index = cpu.fault_index;
            run->fault.size = cpu.fault_size;
            return CN_BAD_INDEX;
        }
    }
    return CN_OK;
}

/* ---- one step for another device ---- */

typedef struct lone_step {
    cn__device *cpu;
    cn__plan *plan;
    int step;
    size_t scratch;
    cpu_plan prepared;
} lone_step;

static void *cpu_prepare_step(cn__device *cpu, cn__plan *plan, int i)
{
    cn_ctx *ctx = cpu->ctx;
    const cn__step *step = &plan->steps[i];
    lone_step *a = cn__bump_new(&ctx->memory, &plan->memory, sizeof *a);
    cpu_step *s = cn__bump_new(&ctx->memory, &plan->memory, sizeof *s * (size_t)(i + step->merged));
    if (!a || !s || !(step->group ? prepare_groups : prepare_kernel)((cn__cpu *)cpu, plan, step, &s[i])) return NULL;
    *a = (lone_step){ cpu, plan, i, scratch_of(step, &s[i], cpu_threads(cpu)), { .alone = true, .steps = s } };
    return a;
}

static cn_code cpu_run_step(void *prepared, cn__run *run, void **base)
{
    lone_step *a = prepared;
    struct cn__cpu_run cpu = { .workers = ((cn__cpu *)a->cpu)->workers };
    void *scratch = cpu_alloc(a->cpu, a->scratch);
    if (!scratch) return CN_NO_MEMORY;
    a->prepared.base = base;
    run_step(a->plan, &a->prepared, a->step, run, &cpu, scratch);
    cpu_free(a->cpu, scratch, a->scratch);
    if (!atomic_load(&cpu.faulty)) return CN_OK;
    run->fault.step = a->step;
    run->fault.index = cpu.fault_index;
    run->fault.size = cpu.fault_size;
    return CN_BAD_INDEX;
}

/* ---- the device ---- */

static void free_cpu(cn_ctx *ctx, cn__cpu *c)
{
    if (c->workers) cn__workers_close(c->workers);
    cn__resize(&ctx->memory, c->kernels, c->kernels_bytes, 0);
    cn__resize(&ctx->memory, c, sizeof *c, 0);
}

static void cpu_close(cn__device *d) { free_cpu(d->ctx, (cn__cpu *)d); }

static const cn__device_table table = {
    .kind = "cpu",
    .element = { [CN_BOOL] = 1,
                 [CN_U8] = 1,
                 [CN_I8] = 1,
                 [CN_I16] = 2,
                 [CN_I32] = 4,
                 [CN_I64] = 8,
                 [CN_F16] = 2,
                 [CN_BF16] = 2,
                 [CN_F32] = 4,
                 [CN_F64] = 8 },
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .host = cpu_host,
    .block = cpu_block,
    .supports = cpu_supports,
    .prepare = cpu_prepare,
    .unprepare = cpu_unprepare,
    .run = cpu_run,
    .threads = cpu_threads,
    .prepare_step = cpu_prepare_step,
    .run_step = cpu_run_step,
};

struct cn__kernels *cn__cpu_kernels(const cn_ctx *ctx)
{
    return ctx->device && ctx->device->table == &table ? ((cn__cpu *)ctx->device)->kernels : NULL;
}

cn__device *cn__cpu_open(cn_ctx *ctx, int threads, struct cn__kernels *kernels, size_t kernels_bytes,
                         const cn__gather_kernels *gather)
{
    cn__cpu *c = cn__resize(&ctx->memory, NULL, 0, sizeof *c);
    if (!c) {
        cn__resize(&ctx->memory, kernels, kernels_bytes, 0);
        return NULL;
    }
    *c = (cn__cpu){
        .device = { &table, ctx, "cpu" }, .kernels = kernels, .kernels_bytes = kernels_bytes, .gather = gather
    };
    c->workers = cn__workers_open(threads);
    if (c->workers) return &c->device;
    free_cpu(ctx, c);
    return NULL;
}
