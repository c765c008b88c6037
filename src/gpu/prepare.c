/* Prepares a plan for the GPU: turns its steps into commands, once, and lays out the parameters of all commands. */
#include <stdio.h>

#include "core/layout.h"
#include "core/object.h"
#include "gpu/backend.h"

enum { ALIGN_WORDS = 64, SERIAL_WORD = 1 };

/* ---- commands ---- */

cn__gpu_command *cn__gpu_command_new(cn__gpu_plan *p, const char *name)
{
    cn__gpu_command *c = cn__bump_new(cn__gpu_plan_memory(p), &p->plan->memory, sizeof *c);
    if (!c || !cn__vec_reserve(cn__gpu_plan_memory(p), &p->commands, p->commands.n + 1, sizeof c)) {
        p->failed = true;
        return NULL;
    }
    ((cn__gpu_command **)p->commands.v)[p->commands.n++] = c;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->par = c->args = c->scratch = -1;
    cn__gpu_add_word(p, c, (cn__gpu_word){ .kind = CN__GPU_FIXED }); /* number of workgroups */
    cn__gpu_add_word(p, c, (cn__gpu_word){ .kind = CN__GPU_FIXED }); /* serial */
    return p->failed ? NULL : c;
}

int cn__gpu_add_word(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_word word)
{
    if (!cn__vec_reserve(cn__gpu_plan_memory(p), &c->words, c->words.n + 1, sizeof word)) {
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
    if (!cn__vec_reserve(cn__gpu_plan_memory(p), &c->operands, c->operands.n + 1, sizeof o)) {
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
    if (!cn__vec_reserve(cn__gpu_plan_memory(p), &c->ports, c->ports.n + 1, sizeof(cn__gpu_port))) {
        p->failed = true;
        return 0;
    }
    port.word = word - first;
    ((cn__gpu_port *)c->ports.v)[c->ports.n] = port;
    return (int)c->ports.n++;
}

static void command_free(cn__gpu_plan *p, cn__gpu_command *c)
{
    cn__memory *m = cn__gpu_plan_memory(p);
    if (c->bound) p->device->gpu->w->BindGroupRelease(c->bound);
    cn__vec_free(m, &c->words, sizeof(cn__gpu_word));
    cn__vec_free(m, &c->ports, sizeof(cn__gpu_port));
    cn__vec_free(m, &c->operands, sizeof(cn__operand *));
}

/* ---- prepare ---- */

static bool has_kernel(const cn__step *s) { return s->group ? cn__gpu_group_possible(s) : s->op->gpu != NULL; }

/* One invocation must write both halves of a word. Kernels do not promise this to an epilogue. */
static bool stores_halves(const cn__step *s)
{
    for (int i = 0; i < s->n_stores; i++)
        if (cn__gpu_is_half(s->stores[i].to.dtype)) return true;
    return false;
}

/* Whether the kernel of step i may compute the epilogue behind it. */
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
    if (!cn__vec_reserve(cn__gpu_plan_memory(p), v, v->n + 1, sizeof(cn__gpu_checker))) return false;
    cn__gpu_checker *checker = (cn__gpu_checker *)v->v + v->n;
    memcpy(checker->name, c->name, sizeof c->name);
    checker->fault = c->fault;
    c->serial = (uint32_t)++v->n;
    return true;
}

static bool lay_out_words(cn__gpu_plan *p)
{
    for (size_t i = 0; i < p->commands.n; i++) {
        cn__gpu_command *c = cn__gpu_command_at(p, i);
        if (c->checks && !name_checker(p, c)) return false;
        ((cn__gpu_word *)c->words.v)[0].value = (uint32_t)c->groups;
        ((cn__gpu_word *)c->words.v)[SERIAL_WORD].value = c->serial;
        c->locations =
            cn__bump_new(cn__gpu_plan_memory(p), &p->plan->memory, sizeof *c->locations * (c->operands.n + 1));
        if (!c->locations) return false;
        c->first = p->n_words;
        p->n_words += (c->words.n + ALIGN_WORDS - 1) / ALIGN_WORDS * ALIGN_WORDS;
    }
    p->words = cn__bump_new(cn__gpu_plan_memory(p), &p->plan->memory, p->n_words * sizeof *p->words);
    return p->words != NULL;
}

void cn__gpu_name_step(cn_ctx *ctx, const cn__step *s)
{
    cn__no_memory(ctx, NULL); /* a failure without an error: the host has no memory */
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

bool cn__gpu_prepare_plan(cn__device *device, cn__plan *plan, int *step)
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
    while (!(ok = cn__gpu_prepare_plan(device, plan, &step)) && cn__gpu_recover((cn__gpu_device *)device))
        if (plan->prepared) cn__gpu_unprepare(device, plan);
    if (!ok && clean) cn__gpu_name_step(ctx, plan->n_steps ? &plan->steps[step] : NULL);
    return ok;
}

void cn__gpu_unprepare(cn__device *device, cn__plan *plan)
{
    cn__gpu_plan *p = plan->prepared;
    for (size_t i = 0; i < p->commands.n; i++) command_free(p, cn__gpu_command_at(p, i));
    for (int i = 0; p->steps && i < plan->n_steps; i++) cn__gpu_fallback_free(p, i);
    cn__vec_free(&device->ctx->memory, &p->commands, sizeof(cn__gpu_command *));
    cn__gpu_buffer_free(p->device->gpu, p->params);
    plan->prepared = NULL;
}
