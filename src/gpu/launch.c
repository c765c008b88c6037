/* Turns the launches of an operator's .gpu function (cairn/kernel.h) into commands. */
#include <stdio.h>

#include "core/dtype.h"
#include "core/layout.h"
#include "core/object.h"
#include "gpu/backend.h"
#include "gpu/shaders.h"

enum { EACH_SIZE = 256, ARG_WORDS = 3 * CN_MAX_ARGS };

typedef struct call {
    cn_gpu_call c;
    cn__gpu_plan *p;
    const cn__step *step, *epilogue;
    bool took_epilogue; /* a kernel calls store_result, which computes the epilogue */
    cn__vec params;     /* of uint32_t, for the launches that follow */
} call;

static call *call_of(cn_gpu_call *c) { return (call *)c; }
static cn__memory *memory_of(const call *k) { return &k->p->plan->device->ctx->memory; }

void cn_gpu_param(cn_gpu_call *c, int64_t value)
{
    call *k = call_of(c);
    if (!k) return;
    if (!cn__vec_reserve(memory_of(k), &k->params, k->params.n + 1, sizeof(uint32_t))) k->p->failed = true;
    else ((uint32_t *)k->params.v)[k->params.n++] = (uint32_t)value;
}

void cn_gpu_param_f32(cn_gpu_call *c, float value) { cn_gpu_param(c, cn__bits_of_f32(value)); }
void cn_gpu_params_clear(cn_gpu_call *c)
{
    if (c) call_of(c)->params.n = 0;
}
int cn_gpu_params(const cn_gpu_call *c) { return c ? (int)((const call *)c)->params.n : 0; }

void cn_gpu_scratch(cn_gpu_call *c, int64_t words)
{
    if (!c || words < 0) return;
    cn__plan *plan = call_of(c)->p->plan;
    size_t bytes = (size_t)words * sizeof(uint32_t);
    if (bytes > plan->scratch_bytes) plan->scratch_bytes = bytes;
}

bool cn_gpu_in_place(const cn_gpu_call *c)
{
    const call *k = (const call *)c;
    if (!k || !k->step->op->in_place) return false;
    const cn__buffer *from = &k->p->plan->buffers[k->step->loads[k->step->op->in_place - 1].buffer];
    const cn__buffer *to = &k->p->plan->buffers[k->step->stores[0].to.buffer];
    if (to->where == CN__AT_DONOR) return from->where == CN__AT_LEAF && from->index == to->index;
    return to->where == CN__AT_ARENA && from->where == CN__AT_ARENA && from->offset == to->offset;
}

/* ---- text ---- */

/* Moves the text into the plan's memory. NULL: memory ran out, or `ok` is false. */
static const char *keep_text(call *k, cn__gpu_source *s, bool ok)
{
    char *kept = ok && !s->failed ? cn__bump_new(s->memory, &k->p->plan->memory, s->text.n + 1) : NULL;
    if (kept && s->text.n) memcpy(kept, s->text.v, s->text.n);
    if (!kept) k->p->failed = true;
    cn__vec_free(s->memory, &s->text, 1);
    return kept;
}

const char *cn_gpu_part(cn_gpu_call *c, const char *shader, const char *part, const cn_gpu_hole *holes)
{
    call *k = call_of(c);
    if (!k || !shader || !part) return NULL;
    cn__gpu_source s = { .memory = memory_of(k) };
    const cn__shader_context shaders = cn__gpu_shaders(k->p->device);
    return keep_text(k, &s, cn__shader_part_text(&shaders, &s, shader, part, holes));
}

const char *cn_gpu_join(cn_gpu_call *c, const char *first, const char *second)
{
    call *k = call_of(c);
    if (!k) return NULL;
    cn__gpu_source s = { .memory = memory_of(k) };
    cn__gpu_print(&s, "%s%s", first ? first : "", second ? second : "");
    return keep_text(k, &s, true);
}

/* ---- launches ---- */

static bool is_there(const cn__operand *o) { return o->layout.ndim >= 0; }

/* Adds the operands that the kernel reads. A value may replace an operand that is absent or has no elements. */
static bool add_inputs(call *k, cn__gpu_command *c, int first)
{
    for (int i = 0; i < CN_MAX_IN; i++) {
        const bool value = c->needs.in >> i & 1, raw = c->needs.raw >> i & 1, otherwise = c->needs.otherwise[i][0];
        if (!value && !raw) continue;
        const cn__operand *o = first + i < k->step->n_loads ? &k->step->loads[first + i] : NULL;
        const bool there = o && is_there(o);
        if (there && !(otherwise && cn__numel(&o->layout) == 0))
            cn__gpu_add_port(k->p, c, (cn__gpu_port){ .operand = o, .value = value, .raw = raw, .number = i }, 0);
        else if (!otherwise)
            return cn__fail(k->c.ctx, CN_BAD_ARGUMENT, "gpu: %s: a kernel reads operand %d, which is absent",
                            k->step->name, first + i);
        else
            cn__gpu_add_port(
                k->p, c, (cn__gpu_port){ .operand = there ? o : NULL, .absent = true, .value = true, .number = i }, 0);
    }
    return true;
}

static bool add_outputs(call *k, cn__gpu_command *c)
{
    for (int i = 0; i < CN_MAX_IN; i++) {
        const bool value = c->needs.out >> i & 1, raw = c->needs.set_raw >> i & 1, maybe = c->needs.maybe_out >> i & 1;
        if (!value && !raw) continue;
        const cn__operand *o = i < k->step->n_stores ? &k->step->stores[i].to : NULL;
        if (o && !(maybe && cn__numel(&o->layout) == 0))
            cn__gpu_add_port(
                k->p, c, (cn__gpu_port){ .operand = o, .result = true, .value = value, .raw = raw, .number = i }, 0);
        else if (!maybe)
            return cn__fail(k->c.ctx, CN_BAD_ARGUMENT, "gpu: %s: a kernel writes result %d, but there are %d",
                            k->step->name, i, k->step->n_stores);
        else
            cn__gpu_add_port(
                k->p, c, (cn__gpu_port){ .operand = o, .absent = true, .result = true, .value = true, .number = i }, 0);
    }
    return true;
}

static void add_numbers(call *k, cn__gpu_command *c)
{
    c->par = (int)c->words.n;
    for (size_t i = 0; i < k->params.n; i++)
        cn__gpu_add_word(k->p, c, (cn__gpu_word){ .kind = CN__GPU_FIXED, .value = ((uint32_t *)k->params.v)[i] });
    if (c->needs.flags & (CN__NEED_TMP | CN__NEED_SET_TMP))
        c->scratch = cn__gpu_add_word(k->p, c, (cn__gpu_word){ .kind = CN__GPU_SCRATCH });
    if (!(c->needs.flags & (CN__NEED_ARG | CN__NEED_ARGU | CN__NEED_ARGH))) return;
    c->args = (int)c->words.n;
    static const cn__gpu_word_kind kinds[3] = { CN__GPU_ARG_REAL, CN__GPU_ARG_LOW, CN__GPU_ARG_HIGH };
    for (int i = 0; i < ARG_WORDS; i++)
        cn__gpu_add_word(k->p, c, (cn__gpu_word){ .kind = kinds[i % 3], .index = k->step->node, .part = i / 3 });
}

/* Appends `fn store_result`: the epilogue, or a plain store of the result. */
static bool add_store_result(call *k, cn__gpu_command *c, cn__gpu_source *s)
{
    if (!(c->needs.flags & CN__NEED_STORE_RESULT)) return true;
    bool stores = true;
    if (k->epilogue) {
        k->took_epilogue = true;
        const char *epilogue = cn__gpu_emit_epilogue(k->p, c, k->step, k->epilogue, &stores);
        if (!epilogue) return false;
        cn__gpu_print(s, "%s", epilogue);
    } else {
        const cn__shader_context shaders = cn__gpu_shaders(k->p->device);
        const char *type = cn__gpu_type(k->step->stores[0].to.dtype);
        if (!cn__shader_part_text(&shaders, s, cn__wgsl_main, "store_result", CN_GPU_HOLES(CN_GPU_TEXT("type", type))))
            return false;
    }
    if (stores)
        cn__gpu_add_port(k->p, c, (cn__gpu_port){ .operand = &k->step->stores[0].to, .result = true, .value = true },
                         0);
    return true;
}

static bool add_command(call *k, const cn_gpu_launch *l, cn__gpu_source *s)
{
    const cn__shader_context shaders = cn__gpu_shaders(k->p->device);
    cn__gpu_command *c = cn__gpu_command_new(k->p, l->name ? l->name : k->step->name);
    if (!c || !cn__shader_kernel(&shaders, s, l, &c->needs)) return false;
    if (l->each) {
        const cn_gpu_hole count = CN_GPU_NUMBER("count", (int64_t)k->params.n - 1);
        c->needs.flags |= CN__NEED_PAR;
        if (!cn__shader_part_text(&shaders, s, cn__wgsl_main, "each", CN_GPU_HOLES(count))) return false;
    }
    if (!add_inputs(k, c, l->first) || !add_outputs(k, c)) return false;
    add_numbers(k, c);
    if (!add_store_result(k, c, s)) return false;
    c->body = keep_text(k, s, true);
    c->groups = l->each ? (l->each + EACH_SIZE - 1) / EACH_SIZE : l->groups;
    c->size = l->each ? EACH_SIZE : l->size;
    c->updates = k->step->updates;
    c->checks = k->step->checks && c->needs.flags & CN__NEED_FAULT;
    c->fault = k->step->op ? k->step->op->fault : NULL;
    return !k->p->failed;
}

bool cn_gpu_run(cn_gpu_call *c, const cn_gpu_launch *l)
{
    call *k = call_of(c);
    if (!k || !l) return false;
    if (k->p->failed || (l->each <= 0 && l->groups <= 0)) return !k->p->failed;
    if (!l->shader) return cn__fail(c->ctx, CN_BAD_ARGUMENT, "gpu: %s: a launch has no .shader", k->step->name);
    const size_t had = k->params.n;
    if (l->each) cn_gpu_param(c, l->each);
    cn__gpu_source s = { .memory = memory_of(k) };
    bool ok = add_command(k, l, &s);
    cn__vec_free(s.memory, &s.text, 1);
    k->params.n = had;
    return ok;
}

/* ---- steps ---- */

static void array_of(cn_array *v, const cn__operand *o)
{
    static char present;
    *v = (cn_array){ .dtype = o->dtype, .ndim = o->layout.ndim };
    if (o->layout.ndim < 0) return;
    v->data = &present;
    v->numel = cn__numel(&o->layout);
    memcpy(v->shape, o->layout.shape, sizeof v->shape);
    memcpy(v->stride, o->layout.stride, sizeof v->stride);
}

bool cn__gpu_prepare_kernel(cn__gpu_plan *p, const cn__step *step, const cn__step *epilogue, bool *took_epilogue)
{
    cn__memory *memory = &p->plan->device->ctx->memory;
    cn_array *views = cn__bump_new(memory, &p->plan->memory, sizeof *views * (size_t)(step->n_loads + step->n_stores));
    if (!views) return false;
    for (int i = 0; i < step->n_loads; i++) array_of(&views[i], &step->loads[i]);
    for (int i = 0; i < step->n_stores; i++) array_of(&views[step->n_loads + i], &step->stores[i].to);
    call k = { .c = { .ctx = p->plan->device->ctx,
                      .op = step->op,
                      .attrs = step->attrs,
                      .n_in = step->n_loads,
                      .n_out = step->n_stores,
                      .in = views,
                      .out = views + step->n_loads,
                      .limits = &p->device->gpu->info },
               .p = p,
               .step = step,
               .epilogue = epilogue };
    bool ok = step->op->gpu(&k.c);
    *took_epilogue = k.took_epilogue;
    cn__vec_free(memory, &k.params, sizeof(uint32_t));
    return ok && !p->failed;
}
