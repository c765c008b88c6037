/* Runs a prepared plan: computes the parameters that have changed, uploads them at once, and encodes all commands
   into one submission. */
#include "core/dtype.h"
#include "core/object.h"
#include "gpu/backend.h"

/* ---- parameters and bindings ---- */

const cn__gpu_block *cn__gpu_block_of(const cn__plan *plan, const cn__run *run, const cn__operand *o, uint32_t *begin)
{
    const cn__buffer *b = &plan->buffers[o->buffer];
    const cn__gpu_block *block = run->arena;
    int64_t at = 0;
    if (b->where == CN__AT_LEAF || b->where == CN__AT_DONOR) block = cn__res(run->leaves[b->index])->storage->data;
    else if (b->where == CN__AT_OUTPUT) block = run->outputs[b->index];
    else at = (int64_t)(b->offset / cn__device_element(plan->device, o->dtype));
    if (o->view_node >= 0) at += run->nodes[o->view_node]->out[0].meta->layout.offset;
    else if (o->view_leaf >= 0) at += cn__res(run->leaves[o->view_leaf])->meta->layout.offset;
    else at += o->layout.offset;
    *begin = (uint32_t)(block->word * cn__gpu_per_word(o->dtype) + at);
    return block;
}

static uint32_t number_word(const cn__run *run, const cn__gpu_word *w)
{
    double value = run->leaves[w->index].node->args[0].f;
    uint64_t element = 0;
    if (cn_dtype_is_float((cn_dtype)w->part)) {
        cn__store_f64((cn_dtype)w->part, &element, value); /* rounds as memory would */
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

static uint32_t compute_word(const cn__gpu_plan *p, const cn__run *run, const cn__gpu_word *w, const uint32_t *bases)
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

/* The slabs of an operand. An operand of a wide block that fits in one of its slabs is like any other. */
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

/* Finds the memory of a command's operands. True: it is in the same slabs as in the last run. */
static bool find_memory(cn__gpu_plan *p, cn__gpu_command *c, const cn__run *run, uint32_t *bases)
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

static bool is_bound(const cn__gpu_plan *p, const cn__gpu_command *c)
{
    const cn__gpu_heap *h = &p->device->heap;
    for (int i = 0; i < h->n; i++)
        if (c->slabs >> i & 1 && c->versions[i] != h->slabs[i].version) return false;
    return c->bound != NULL;
}

/* Makes the program, the bindings and the parameters of a command ready for a run. */
static bool ready(cn__gpu_plan *p, cn__gpu_command *c, const cn__run *run)
{
    enum { FEW = 64 };
    uint32_t few[FEW], *bases = few;
    size_t bytes = sizeof *bases * (c->operands.n + 1);
    if (c->operands.n > FEW && !(bases = cn__block_new(cn__gpu_plan_memory(p), bytes)))
        return cn__no_memory(run->ctx, "gpu");
    bool ok = true, same = find_memory(p, c, run, bases);
    if (!same || !c->program) ok = cn__gpu_assemble(p->device, c) && bind(p, c);
    else if (!is_bound(p, c)) ok = bind(p, c);
    const cn__gpu_word *words = c->words.v;
    for (size_t i = 0; i < c->words.n && ok; i++) set_word(p, c->first + i, compute_word(p, run, &words[i], bases));
    if (bases != few) cn__block_free(cn__gpu_plan_memory(p), bases, bytes);
    return ok;
}

/* ---- encoding ---- */

static bool send_words(cn__gpu_plan *p)
{
    cn__gpu_log_words(p->device, p->words, p->n_words);
    const cn__gpu *g = p->device->gpu;
    if (!p->n_words || (p->sent && p->generation == g->generation && p->dropped == g->dropped)) return true;
    size_t bytes = p->n_words * sizeof *p->words;
    if (!cn__gpu_upload(p->device->gpu, p->params, 0, p->words, bytes)) return false;
    p->device->gpu->stats.uploaded_bytes -= (int64_t)bytes; /* parameters are counted apart from tensors */
    p->device->count.parameter_bytes += (int64_t)bytes;
    p->sent = true;
    p->generation = g->generation;
    p->dropped = g->dropped;
    return true;
}

static bool encode(cn__gpu_plan *p, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        const cn__gpu_command *c = cn__gpu_command_at(p, (size_t)i);
        cn__gpu_log_launch(p->device, c);
        if (!cn__gpu_launch_bound(p->device->gpu, c->program, c->bound, c->groups)) return false;
    }
    return true;
}

/* Joined groups must lie in the only slab: with more slabs they are prepared again. */
static bool still_fits(const cn__gpu_plan *p)
{
    if (!p || !p->complete) return false;
    if (p->n_slabs == p->device->heap.ordinary) return true;
    for (size_t i = 0; i < p->commands.n; i++)
        if (cn__gpu_command_at(p, i)->joined) return false;
    return true;
}

/* ---- times, for an observer ---- */

typedef struct stopwatch {
    cn__gpu *gpu; /* NULL: the device has no clock */
    cn__observer *observer;
    const cn__plan *plan;
    int64_t host;      /* the host's clock when these dispatches began */
    int step;          /* the step whose dispatches are being added up; -1: none */
    int64_t began, ns; /* of that step */
} stopwatch;

static void report_step(stopwatch *s)
{
    if (s->step >= 0) s->observer->step(s->observer, s->plan, s->step, s->host + s->began, s->host + s->began + s->ns);
    s->step = -1;
}

static void add_dispatch(void *user, int step, int64_t began, int64_t ended)
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

static bool read_times(stopwatch *s)
{
    if (!s->gpu) return true;
    bool ok = cn__gpu_timer_look(s->gpu, add_dispatch, s);
    report_step(s);
    s->host = cn__nanoseconds();
    return ok;
}

static bool begin_step(stopwatch *s, const cn__gpu_step *step, int i)
{
    if (!s->gpu) return true;
    bool full = s->gpu->timer.n + step->n > CN__GPU_TIMED;
    s->gpu->timer.now = i;
    return !(full || step->by_cpu) || read_times(s);
}

/* Steps on the GPU are reported when their times are known, all others at once. */
static void end_step(stopwatch *s, const cn__gpu_step *step, int i, int64_t began)
{
    if (!s->observer || s->plan->steps[i].epilogue) return;
    if (!s->gpu || step->by_cpu || !step->n) s->observer->step(s->observer, s->plan, i, began, cn__nanoseconds());
}

static stopwatch start_stopwatch(cn__gpu *g, const cn__plan *plan, cn__observer *w)
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
        if (!cn__gpu_prepare_plan(device, plan, &run->fault.step)) return false;
    }
    cn__gpu_plan *p = plan->prepared;
    for (int i = 0; i < plan->n_steps; i += plan->steps[i].merged) {
        run->fault.step = i;
        for (int k = 0; k < p->steps[i].n; k++)
            if (!ready(p, cn__gpu_command_at(p, (size_t)(p->steps[i].first + k)), run)) return false;
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
    return ok && read_times(s) && cn__gpu_recovery_submit(p->device);
}

static bool run_once(cn__gpu_device *d, cn__plan *plan, cn__run *run, cn_code *found)
{
    if (!cn__gpu_recovery_begin(d) || !make_ready(&d->device, plan, run)) return false;
    stopwatch s = start_stopwatch(d->gpu, plan, run->ctx->observer);
    bool ok = run_steps(plan->prepared, run, &s, found);
    cn__gpu_timer_end(d->gpu);
    return ok;
}

cn_code cn__gpu_run(cn__device *device, cn__plan *plan, cn__run *run)
{
    cn_ctx *ctx = device->ctx;
    cn__gpu_device *d = (cn__gpu_device *)device;
    const bool clean = ctx->code == CN_OK;
    cn_code found = CN_OK; /* CN_BAD_INDEX from a fallback: the caller sets the error */
    do {
        if (run_once(d, plan, run, &found)) {
            cn__gpu_recovery_done(d);
            return CN_OK;
        }
    } while (cn__gpu_recovery_failed(d));
    if (found != CN_OK) return found;
    if (clean) cn__gpu_name_step(ctx, &plan->steps[run->fault.step]);
    return ctx->code;
}
