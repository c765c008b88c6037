/* A plan on the GPU: its steps as commands, made once; a run fills in what has changed, sends it in one piece, and
   encodes all launches into one submission. */
#include <stdio.h>

#include "core/dtype.h"
#include "core/layout.h"
#include "core/object.h"
#include "gpu/backend.h"

enum { ALIGN_WORDS = 64, SERIAL_WORD = 1 };

static cn__gpu_command *command_at(const cn__gpu_plan *p, size_t i) { return ((cn__gpu_command **)p->commands.v)[i]; }
static cn__memory *memory_of(const cn__gpu_plan *p) { return &p->plan->device->ctx->memory; }

/* ---- commands ---- */

cn__gpu_command *cn__gpu_command_new(cn__gpu_plan *p, const char *name)
{
    cn__gpu_command *c = cn__bump_new(memory_of(p), &p->plan->memory, sizeof *c);
    if (!c || !cn__vec_reserve(memory_of(p), &p->commands, p->commands.n + 1, sizeof c)) {
        p->failed = true;
        return NULL;
    }
    ((cn__gpu_command **)p->commands.v)[p->commands.n++] = c;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->par = c->args = c->scratch = -1;
    cn__gpu_add_word(p, c, (cn__gpu_word){ .kind = CN__GPU_FIXED }); /* groups */
    cn__gpu_add_word(p, c, (cn__gpu_word){ .kind = CN__GPU_FIXED }); /* serial */
    return p->failed ? NULL : c;
}

int cn__gpu_add_word(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_word word)
{
    if (!cn__vec_reserve(memory_of(p), &c->words, c->words.n + 1, sizeof word)) {
        p->failed = true;
        return 0;
    }
    ((cn__gpu_word *)c->words.v)[c->words.n] = word;
    return (int)c->words.n++;
}

int cn__gpu_add_operand(cn__gpu_plan *p, cn__gpu_command *c, const cn__operand *o)
{
    for (size_t i = 0; i < c->operands.n; i++)
        if (((const cn__operand **)c->operands.v)[i] == o) return (int)i;
    if (!cn__vec_reserve(memory_of(p), &c->operands, c->operands.n + 1, sizeof o)) {
        p->failed = true;
        return 0;
    }
    ((const cn__operand **)c->operands.v)[c->operands.n] = o;
    return (int)c->operands.n++;
}

int cn__gpu_add_port(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_port port, int first)
{
    int word = first;
    if (!port.absent) {
        int operand = cn__gpu_add_operand(p, c, port.operand);
        word = cn__gpu_add_word(p, c, (cn__gpu_word){ .kind = CN__GPU_BASE, .index = operand });
    }
    if (!cn__vec_reserve(memory_of(p), &c->ports, c->ports.n + 1, sizeof(cn__gpu_port))) {
        p->failed = true;
        return 0;
    }
    port.word = word - first;
    ((cn__gpu_port *)c->ports.v)[c->ports.n] = port;
    return (int)c->ports.n++;
}

static void command_free(cn__gpu_plan *p, cn__gpu_command *c)
{
    cn__memory *m = memory_of(p);
    if (c->bound) p->device->gpu->w->BindGroupRelease(c->bound);
    cn__vec_free(m, &c->words, sizeof(cn__gpu_word));
    cn__vec_free(m, &c->ports, sizeof(cn__gpu_port));
    cn__vec_free(m, &c->operands, sizeof(cn__operand *));
}

/* ---- prepare ---- */

static bool has_kernel(const cn__step *s) { return s->group ? cn__gpu_group_possible(s) : s->op->gpu != NULL; }

/* Halves are written in pairs, by one invocation: no kernel promises that to its epilogue. */
static bool stores_halves(const cn__step *s)
{
    for (int i = 0; i < s->n_stores; i++)
        if (cn__gpu_is_half(s->stores[i].to.dtype)) return true;
    return false;
}

/* An epilogue is part of the kernel before it, if both can run here and that writes its result through put(). */
static bool may_take_epilogue(const cn__plan *plan, int i)
{
    const cn__step *epilogue = &plan->steps[i + 1];
    return i + 1 < plan->n_steps && epilogue->epilogue && has_kernel(&plan->steps[i]) && !stores_halves(epilogue) &&
           cn__gpu_group_possible(epilogue);
}

static bool prepare_step(cn__gpu_plan *p, int i)
{
    const cn__step *s = &p->plan->steps[i];
    cn__gpu_step *g = &p->steps[i];
    g->first = (int)p->commands.n;
    if (s->epilogue && p->steps[i - 1].took_epilogue) return true;
    bool ok = true;
    for (int k = 0; k < s->merged; k++) g->by_cpu |= !has_kernel(&s[k]);
    if (g->by_cpu) {
        p->fallbacks++;
        ok = cn__gpu_fallback_prepare(p, i);
    } else if (!s->group) {
        ok = cn__gpu_prepare_kernel(p, s, may_take_epilogue(p->plan, i) ? s + 1 : NULL, &g->took_epilogue);
    } else {
        ok = s->op ? cn__gpu_emit_reduction(p, s) : cn__gpu_emit_group(p, s, s->merged);
    }
    g->n = (int)p->commands.n - g->first;
    return ok && !p->failed;
}

static bool name_checker(cn__gpu_plan *p, cn__gpu_command *c)
{
    cn__vec *v = &p->device->checkers;
    if (!cn__vec_reserve(memory_of(p), v, v->n + 1, sizeof c->name)) return false;
    memcpy((char *)v->v + v->n * sizeof c->name, c->name, sizeof c->name);
    c->serial = (uint32_t)++v->n;
    return true;
}

static bool lay_out_words(cn__gpu_plan *p)
{
    for (size_t i = 0; i < p->commands.n; i++) {
        cn__gpu_command *c = command_at(p, i);
        if (c->checks && !name_checker(p, c)) return false;
        ((cn__gpu_word *)c->words.v)[0].value = (uint32_t)c->groups;
        ((cn__gpu_word *)c->words.v)[SERIAL_WORD].value = c->serial;
        c->locations = cn__bump_new(memory_of(p), &p->plan->memory, sizeof *c->locations * (c->operands.n + 1));
        if (!c->locations) return false;
        c->first = p->n_words;
        p->n_words += (c->words.n + ALIGN_WORDS - 1) / ALIGN_WORDS * ALIGN_WORDS;
    }
    p->words = cn__bump_new(memory_of(p), &p->plan->memory, p->n_words * sizeof *p->words);
    return p->words != NULL;
}

/* Puts in front of an error what was being computed: "matmul: [2,3], [3,4] to [2,4]: " */
static void name_step(cn_ctx *ctx, const cn__step *s)
{
    cn__no_memory(ctx, NULL); /* if nobody said anything: the host's */
    if (!s) return;
    char message[240], shapes[200], one[96];
    int n = 0;
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, ctx->message);
    for (int i = 0; i < s->n_loads && n < 100; i++)
        if (s->loads[i].layout.ndim >= 0)
            n += snprintf(shapes + n, sizeof shapes - (size_t)n, "%s%s", n ? ", " : "",
                          cn__shape_text(&s->loads[i].layout, one, sizeof one));
    snprintf(shapes + n, sizeof shapes - (size_t)n, " to %s",
             s->n_stores ? cn__shape_text(&s->stores[0].to.layout, one, sizeof one) : "nothing");
    snprintf(ctx->message, sizeof ctx->message, "%s: %s: %s", s->name, shapes, message);
}

static bool prepare(cn__device *device, cn__plan *plan, int *step)
{
    cn__gpu_device *d = (cn__gpu_device *)device;
    cn__gpu_plan *p = cn__bump_new(&device->ctx->memory, &plan->memory, sizeof *p);
    if (!p) return false;
    *p = (cn__gpu_plan){ .device = d, .plan = plan, .n_slabs = d->heap.ordinary };
    plan->prepared = p;
    plan->scratch_bytes = 0;
    p->steps = cn__bump_new(&device->ctx->memory, &plan->memory, sizeof *p->steps * (size_t)(plan->n_steps + 1));
    bool ok = p->steps != NULL;
    for (int i = 0; i < plan->n_steps && ok; i += plan->steps[i].merged) {
        *step = i;
        ok = prepare_step(p, i);
    }
    ok = ok && lay_out_words(p);
    if (ok && p->n_words) p->params = cn__gpu_buffer_new(d->gpu, p->n_words * sizeof *p->words);
    p->complete = ok && (p->params || !p->n_words);
    return p->complete;
}

bool cn__gpu_prepare(cn__device *device, cn__plan *plan)
{
    cn_ctx *ctx = device->ctx;
    const bool clean = ctx->code == CN_OK;
    int step = 0;
    bool ok;
    while (!(ok = prepare(device, plan, &step)) && cn__gpu_recover((cn__gpu_device *)device))
        if (plan->prepared) cn__gpu_unprepare(device, plan);
    if (!ok && clean) name_step(ctx, plan->n_steps ? &plan->steps[step] : NULL);
    return ok;
}

void cn__gpu_unprepare(cn__device *device, cn__plan *plan)
{
    cn__gpu_plan *p = plan->prepared;
    for (size_t i = 0; i < p->commands.n; i++) command_free(p, command_at(p, i));
    for (int i = 0; p->steps && i < plan->n_steps; i++) cn__gpu_fallback_free(p, i);
    cn__vec_free(&device->ctx->memory, &p->commands, sizeof(cn__gpu_command *));
    cn__gpu_buffer_free(p->device->gpu, p->params);
    plan->prepared = NULL;
}

/* ---- run: where everything is ---- */

const cn__gpu_block *cn__gpu_block_of(const cn__plan *plan, const cn__run *run, const cn__operand *o, uint32_t *begin)
{
    const cn__buffer *b = &plan->buffers[o->buffer];
    const cn__gpu_block *block = run->arena;
    int64_t at = 0;
    if (b->where == CN__AT_LEAF || b->where == CN__AT_DONOR) block = cn__res(run->leaves[b->index])->storage->data;
    else if (b->where == CN__AT_OUTPUT) block = run->outputs[b->index];
    else at = (int64_t)(b->offset / cn__device_element(plan->device, o->dtype));
    if (o->view_node >= 0) at += run->nodes[o->view_node]->out[0].meta.layout.offset;
    else if (o->view_leaf >= 0) at += cn__res(run->leaves[o->view_leaf])->meta.layout.offset;
    else at += o->layout.offset;
    *begin = (uint32_t)(block->word * cn__gpu_per_word(o->dtype) + at);
    return block;
}

static uint32_t number_word(const cn__run *run, const cn__gpu_word *w)
{
    double value = run->leaves[w->index].node->args[0].f;
    uint64_t element = 0;
    if (cn_dtype_is_float((cn_dtype)w->part)) {
        cn__store_f64((cn_dtype)w->part, &element, value); /* rounded as it would be in memory */
        return cn__bits_of_f32((float)cn__load_f64((cn_dtype)w->part, &element));
    }
    uint32_t word = 0;
    cn__store_f64((cn_dtype)w->part, &element, value);
    cn__gpu_to_words(run->ctx, (cn_dtype)w->part, &element, &word, 1);
    return word;
}

static uint32_t whole_of(double x)
{
    if (x != x) return 0;
    return (uint32_t)(int32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}

static float scale_of(double x) { return (float)(x < 1 ? 1 / (1 - x) : 0); }

static uint32_t word_now(const cn__gpu_plan *p, const cn__run *run, const cn__gpu_word *w, const uint32_t *bases)
{
    switch (w->kind) {
    case CN__GPU_FIXED: return w->value;
    case CN__GPU_BASE: return bases[w->index];
    case CN__GPU_SCRATCH:
        return ((const cn__gpu_block *)run->arena)->word + (uint32_t)(p->plan->arena_bytes / sizeof(uint32_t));
    case CN__GPU_NUMBER: return number_word(run, w);
    case CN__GPU_ARG_REAL: return cn__bits_of_f32((float)run->nodes[w->index]->args[w->part].f);
    case CN__GPU_ARG_WHOLE: return whole_of(run->nodes[w->index]->args[w->part].f);
    case CN__GPU_ARG_LOW: return (uint32_t)run->nodes[w->index]->args[w->part].u;
    case CN__GPU_ARG_HIGH: return (uint32_t)(run->nodes[w->index]->args[w->part].u >> 32);
    case CN__GPU_ARG_REST: return cn__bits_of_f32((float)(1 - run->nodes[w->index]->args[w->part].f));
    case CN__GPU_ARG_SCALE: return cn__bits_of_f32(scale_of(run->nodes[w->index]->args[w->part].f));
    }
    return 0;
}

static void set_word(cn__gpu_plan *p, size_t at, uint32_t value)
{
    if (p->words[at] == value) return;
    p->words[at] = value;
    p->sent = false;
}

/* An operand within a wide block that lies in one of its slabs is like any other. */
static cn__gpu_location locate(const cn__gpu_plan *p, const cn__gpu_block *b, const cn__operand *o, uint32_t *begin)
{
    cn__gpu_location all = { (unsigned char)b->slab, (unsigned char)b->n_slabs };
    const cn__buffer *buffer = &p->plan->buffers[o->buffer];
    size_t size = cn__device_element(p->plan->device, o->dtype), bytes = buffer->bytes;
    if (b->n_slabs == 1 || buffer->where != CN__AT_ARENA || o->view_node >= 0 || !bytes) return all;
    uint32_t in_slab = (uint32_t)(p->device->heap.slab_limit / size);
    uint32_t first = *begin / in_slab, last = (uint32_t)((*begin + (bytes - 1) / size) / in_slab);
    if (first != last) return all;
    *begin -= first * in_slab;
    return (cn__gpu_location){ (unsigned char)((uint32_t)b->slab + first), 1 };
}

/* Looks up the memory of a command; true if it is in the slabs it was in before. */
static bool look_up(cn__gpu_plan *p, cn__gpu_command *c, const cn__run *run, uint32_t *bases)
{
    bool same = c->bound_once;
    c->slabs = c->updates || c->checks ? 1 : 0;
    for (size_t i = 0; i <= c->operands.n; i++) {
        const cn__gpu_block *b = run->arena;
        cn__gpu_location location = { 0, 1 };
        if (i < c->operands.n) {
            const cn__operand *o = ((const cn__operand **)c->operands.v)[i];
            b = cn__gpu_block_of(p->plan, run, o, &bases[i]);
            location = locate(p, b, o, &bases[i]);
        } else if (c->scratch < 0) {
            break;
        } else {
            location = (cn__gpu_location){ (unsigned char)b->slab, (unsigned char)b->n_slabs };
        }
        same = same && c->locations[i].slab == location.slab && c->locations[i].n == location.n;
        c->locations[i] = location;
        for (int k = 0; k < location.n; k++) c->slabs |= 1u << (location.slab + k);
    }
    c->bound_once = true;
    return same;
}

static bool bind(cn__gpu_plan *p, cn__gpu_command *c)
{
    const cn__gpu_heap *h = &p->device->heap;
    cn__gpu_binding bindings[CN__GPU_SLABS + 1] = { { p->params, c->first * sizeof(uint32_t),
                                                      c->words.n * sizeof(uint32_t) } };
    int n = 1;
    for (int i = 0; i < h->n; i++) {
        c->versions[i] = h->slabs[i].version;
        if (c->slabs >> i & 1) bindings[n++] = (cn__gpu_binding){ h->slabs[i].buffer, 0, h->slabs[i].bytes };
    }
    if (c->bound) p->device->gpu->w->BindGroupRelease(c->bound);
    c->bound = cn__gpu_bind(p->device->gpu, c->program, n, bindings);
    if (c->bound) p->device->count.bind_groups++;
    return c->bound != NULL;
}

static bool bound_to_these(const cn__gpu_plan *p, const cn__gpu_command *c)
{
    const cn__gpu_heap *h = &p->device->heap;
    for (int i = 0; i < h->n; i++)
        if (c->slabs >> i & 1 && c->versions[i] != h->slabs[i].version) return false;
    return c->bound != NULL;
}

static bool ready(cn__gpu_plan *p, cn__gpu_command *c, const cn__run *run)
{
    enum { FEW = 64 };
    uint32_t few[FEW], *bases = few;
    size_t bytes = sizeof *bases * (c->operands.n + 1);
    if (c->operands.n > FEW && !(bases = cn__block_new(memory_of(p), bytes))) return cn__no_memory(run->ctx, "gpu");
    bool ok = true, same = look_up(p, c, run, bases);
    if (!same || !c->program) ok = cn__gpu_assemble(p->device, c) && bind(p, c);
    else if (!bound_to_these(p, c)) ok = bind(p, c);
    const cn__gpu_word *words = c->words.v;
    for (size_t i = 0; i < c->words.n && ok; i++) set_word(p, c->first + i, word_now(p, run, &words[i], bases));
    if (bases != few) cn__block_free(memory_of(p), bases, bytes);
    return ok;
}

/* ---- run: encode ---- */

static bool send_words(cn__gpu_plan *p)
{
    cn__gpu_log_words(p->device, p->words, p->n_words);
    const cn__gpu *g = p->device->gpu;
    if (!p->n_words || (p->sent && p->generation == g->generation && p->dropped == g->dropped)) return true;
    size_t bytes = p->n_words * sizeof *p->words;
    if (!cn__gpu_upload(p->device->gpu, p->params, 0, p->words, bytes)) return false;
    p->device->gpu->stats.uploaded_bytes -= (int64_t)bytes; /* counted apart: it is not data */
    p->device->count.parameter_bytes += (int64_t)bytes;
    p->sent = true;
    p->generation = g->generation;
    p->dropped = g->dropped;
    return true;
}

static bool encode(cn__gpu_plan *p, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        const cn__gpu_command *c = command_at(p, (size_t)i);
        cn__gpu_log_launch(p->device, c);
        if (!cn__gpu_launch_bound(p->device->gpu, c->program, c->bound, c->groups)) return false;
    }
    return true;
}

static bool still_fits(const cn__gpu_plan *p)
{
    if (!p || !p->complete) return false;
    if (p->n_slabs == p->device->heap.ordinary) return true;
    for (size_t i = 0; i < p->commands.n; i++)
        if (command_at(p, i)->joined) return false;
    return true;
}

/* ---- run: timed, while somebody looks on ---- */

typedef struct stopwatch {
    cn__gpu *gpu; /* NULL: it has no clock */
    cn__observer *observer;
    const cn__plan *plan;
    int64_t host; /* our clock, when launches of this look began */
    int step;     /* whose launches are being added up; -1: none */
    int64_t began, ns;
} stopwatch;

static void report_step(stopwatch *s)
{
    if (s->step >= 0) s->observer->step(s->observer, s->plan, s->step, s->host + s->began, s->host + s->began + s->ns);
    s->step = -1;
}

static void add_launch(void *user, int step, int64_t began, int64_t ended)
{
    stopwatch *s = user;
    if (s->step != step) {
        report_step(s);
        s->step = step;
        s->began = began;
        s->ns = 0;
    }
    s->ns += ended - began;
}

static bool look_at_times(stopwatch *s)
{
    if (!s->gpu) return true;
    bool ok = cn__gpu_timer_look(s->gpu, add_launch, s);
    report_step(s);
    s->host = cn__nanoseconds();
    return ok;
}

static bool begin_step(stopwatch *s, const cn__gpu_step *step, int i)
{
    if (!s->gpu) return true;
    bool full = s->gpu->timer.n + step->n > CN__GPU_TIMED;
    s->gpu->timer.now = i;
    return !(full || step->by_cpu) || look_at_times(s);
}

/* The GPU's steps are told when their times are known; others now. */
static void end_step(stopwatch *s, const cn__gpu_step *step, int i, int64_t began)
{
    if (!s->observer || s->plan->steps[i].epilogue) return;
    if (!s->gpu || step->by_cpu || !step->n) s->observer->step(s->observer, s->plan, i, began, cn__nanoseconds());
}

static stopwatch start_watch(cn__gpu *g, const cn__plan *plan, cn__observer *w)
{
    stopwatch s = { .observer = w, .plan = plan, .step = -1 };
    if (!w) return s;
    s.gpu = cn__gpu_timer_begin(g) ? g : NULL;
    w->by_device = s.gpu != NULL;
    s.host = cn__nanoseconds();
    return s;
}

/* ---- run ---- */

static bool make_ready(cn__device *device, cn__plan *plan, cn__run *run)
{
    if (!still_fits(plan->prepared)) {
        if (plan->prepared) cn__gpu_unprepare(device, plan);
        if (!prepare(device, plan, &run->fault.step)) return false;
    }
    cn__gpu_plan *p = plan->prepared;
    for (int i = 0; i < plan->n_steps; i += plan->steps[i].merged) {
        run->fault.step = i;
        for (int k = 0; k < p->steps[i].n; k++)
            if (!ready(p, command_at(p, (size_t)(p->steps[i].first + k)), run)) return false;
    }
    return send_words(p);
}

static bool run_steps(cn__gpu_plan *p, cn__run *run, stopwatch *s, cn_code *found)
{
    const cn__plan *plan = p->plan;
    bool ok = true;
    for (int i = 0; i < plan->n_steps && ok; i += plan->steps[i].merged) {
        const cn__gpu_step *step = &p->steps[i];
        run->fault.step = i;
        ok = begin_step(s, step, i);
        const int64_t began = s->observer ? cn__nanoseconds() : 0;
        if (ok && step->by_cpu) {
            cn_code code = cn__gpu_fallback_run(p, i, run);
            ok = code == CN_OK;
            if (code == CN_BAD_INDEX) *found = code;
        } else if (ok) {
            ok = encode(p, step->first, step->n);
        }
        if (ok) end_step(s, step, i, began);
    }
    return ok && look_at_times(s) && cn__gpu_recovery_submit(p->device);
}

static bool run_once(cn__gpu_device *d, cn__plan *plan, cn__run *run, cn_code *found)
{
    if (!cn__gpu_recovery_begin(d) || !make_ready(&d->device, plan, run)) return false;
    stopwatch s = start_watch(d->gpu, plan, run->ctx->observer);
    bool ok = run_steps(plan->prepared, run, &s, found);
    cn__gpu_timer_end(d->gpu);
    return ok;
}

cn_code cn__gpu_run(cn__device *device, cn__plan *plan, cn__run *run)
{
    cn_ctx *ctx = device->ctx;
    cn__gpu_device *d = (cn__gpu_device *)device;
    const bool clean = ctx->code == CN_OK;
    cn_code found = CN_OK; /* an index out of range, which the caller reports */
    do {
        if (run_once(d, plan, run, &found)) {
            cn__gpu_recovery_done(d);
            return CN_OK;
        }
    } while (cn__gpu_recovery_failed(d));
    if (found != CN_OK) return found;
    if (clean) name_step(ctx, &plan->steps[run->fault.step]);
    return ctx->code;
}
