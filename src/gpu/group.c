/* Groups as WGSL: a straight-line program over elements, alone, together with others of its kind, behind another kernel
   (a tail), or before a reduction. */
#include <stdarg.h>
#include <stdio.h>

#include "core/layout.h"
#include "gpu/backend.h"

enum { GROUP_SIZE = 256, PER_INVOCATION = 4 };

/* ---- what is possible ---- */

static bool has_expression(const cn__instr *i)
{
    return i->op->wgsl_print || i->op->wgsl || (i->op->wgsl_whole && !cn_dtype_is_float(i->dtype));
}

static const cn_wgsl_reducer *reducer_of(const cn__step *step)
{
    if (!step->op) return NULL;
    cn_dtype t = step->reduced < step->n_loads ? step->loads[step->reduced].dtype : CN_F32;
    for (int i = 0; i < step->n_instrs; i++)
        for (int o = 0; o < step->instrs[i].n_out; o++)
            if (step->instrs[i].out + o == step->reduced) t = step->instrs[i].out_dtype[o];
    bool real = cn_dtype_is_float(t);
    if (!real && step->op->wgsl_reducer_whole) return step->op->wgsl_reducer_whole;
    return real ? step->op->wgsl_reducer : NULL;
}

bool cn__gpu_group_possible(const cn__step *step)
{
    for (int i = 0; i < step->n_instrs; i++)
        if (!has_expression(&step->instrs[i])) return false;
    return !step->op || reducer_of(step);
}

/* ---- one group's program ---- */

typedef struct emit {
    cn__gpu_plan *p;
    cn__gpu_command *c;
    const cn__step *step;
    cn__gpu_source *s; /* NULL: only the words are wanted, for a group joined to another */
    int first;         /* the word that J stands for */
    int names;         /* operands are called in(names), in(names + 1), .. */
    int given;         /* tail: the buffer that is the kernel's result, or -1 */
} emit;

static void say(const emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const emit *e, const char *format, ...)
{
    char line[1600];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (!e->s) return;
    if (n < 0 || n >= (int)sizeof line) e->s->failed = true;
    else cn__gpu_say(e->s, "%s", line);
}

/* A parameter word; the text names it from the start of its group on. */
static int word(const emit *e, cn__gpu_word_kind kind, int index, int part, uint32_t value)
{
    return cn__gpu_add_word(e->p, e->c, (cn__gpu_word){ kind, index, part, value }) - e->first;
}

static const char *jump(const emit *e) { return e->c->joined ? "J + " : ""; }

/* Axes that are walked as one are merged. */
static int merge_axes(const cn_layout *l, int64_t *shape, int64_t *stride)
{
    int n = 0;
    for (int d = 0; d < l->ndim; d++) {
        if (l->shape[d] == 1) continue;
        if (n && stride[n - 1] == l->stride[d] * l->shape[d]) {
            shape[n - 1] *= l->shape[d];
            stride[n - 1] = l->stride[d];
        } else {
            shape[n] = l->shape[d];
            stride[n++] = l->stride[d];
        }
    }
    return n;
}

static void emit_axis(const emit *e, int load, const char *index, int64_t stride)
{
    if (stride == 0) return;
    if (stride == 1) say(e, " o%d += %s;", load, index);
    else say(e, " o%d += %s * P[%s%du];", load, index, jump(e), word(e, CN__GPU_FIXED, 0, 0, (uint32_t)stride));
}

/* Where element i of the group lies in a load: "o3". */
static void emit_offset(const emit *e, int load)
{
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS];
    const cn_layout *l = &e->step->loads[load].layout;
    int n = merge_axes(l, shape, stride);
    if (n == 0) {
        say(e, "    let o%d = 0u;\n", load);
        return;
    }
    if (n == 1 && stride[0] == 1) {
        say(e, "    let o%d = i;\n", load);
        return;
    }
    say(e, "    var o%d = 0u; { var t = i;", load);
    for (int d = n - 1; d > 0; d--) {
        int size = word(e, CN__GPU_FIXED, 0, 0, (uint32_t)shape[d]);
        char index[48];
        snprintf(index, sizeof index, "(t %% P[%s%du])", jump(e), size);
        emit_axis(e, load, index, stride[d]);
        say(e, " t /= P[%s%du];", jump(e), size);
    }
    emit_axis(e, load, "t", stride[0]);
    say(e, " }\n");
}

static void emit_load(const emit *e, int load)
{
    const cn__operand *o = &e->step->loads[load];
    const char *type = cn__gpu_type(o->dtype);
    if (e->given >= 0 && o->buffer == e->given) {
        say(e, "    let v%d = value;\n", load);
        return;
    }
    if (o->number >= 0) {
        say(e, "    let v%d = bitcast<%s>(P[%s%du]);\n", load, type, jump(e),
            word(e, CN__GPU_NUMBER, o->number, (int)o->dtype, 0));
        return;
    }
    if (e->s) cn__gpu_add_port(e->p, e->c, o, false, e->names + load, e->first);
    else word(e, CN__GPU_BASE, cn__gpu_add_operand(e->p, e->c, o), 0, 0);
    emit_offset(e, load);
    say(e, "    let v%d = in%d(o%d);\n", load, e->names + load, load);
}

/* The numbers an expression asks for by name. */
static void emit_numbers(const emit *e, const cn__instr *i, const char *expression)
{
    bool real = cn_dtype_is_float(i->dtype);
    const struct {
        const char *prefix, *type;
        cn__gpu_word_kind kind;
    } names[] = { { "p", real ? "f32" : "i32", real ? CN__GPU_ARG_REAL : CN__GPU_ARG_WHOLE },
                  { "q", "f32", CN__GPU_ARG_REST },
                  { "k", "f32", CN__GPU_ARG_SCALE },
                  { "lo", "u32", CN__GPU_ARG_LOW },
                  { "hi", "u32", CN__GPU_ARG_HIGH },
                  { "a", "u32", CN__GPU_FIXED } };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int k = 0; k < CN_MAX_ARGS; k++) {
            char name[8];
            snprintf(name, sizeof name, "%s%d", names[n].prefix, k);
            if (!cn__gpu_mentions(expression, name)) continue;
            uint32_t attr = names[n].kind == CN__GPU_FIXED ? (uint32_t)((const int64_t *)i->attrs)[k] : 0;
            say(e, " let %s = bitcast<%s>(P[%s%du]);", name, names[n].type, jump(e),
                word(e, names[n].kind, i->node, k, attr));
        }
    if (cn__gpu_mentions(expression, "bits"))
        say(e, " let bits = %d;", i->dtype == CN_BOOL ? 1 : 8 * (int)cn_dtype_size(i->dtype));
}

/* As narrow types would have it, so that a chain in one kernel gives what its parts would have given. */
static void emit_result(const emit *e, int value, cn_dtype t, const char *expression)
{
    switch (t) {
    case CN_BOOL: say(e, " v%d = i32(i32(%s) != 0);", value, expression); return;
    case CN_U8: say(e, " v%d = i32(%s) & 255;", value, expression); return;
    case CN_I8: say(e, " v%d = (i32(%s) << 24u) >> 24u;", value, expression); return;
    case CN_F16: say(e, " v%d = to_f16(f32(%s));", value, expression); return;
    case CN_BF16: say(e, " v%d = to_bf16(f32(%s));", value, expression); return;
    default: say(e, " v%d = %s(%s);", value, cn__gpu_type(t), expression); return;
    }
}

static void emit_instr(const emit *e, const cn__instr *i)
{
    static const char *const names[CN_MAX_IN] = { "x", "y", "z", "u", "v", "x5", "x6", "x7" };
    char printed[1200];
    const char *expression = i->op->wgsl;
    if (i->op->wgsl_whole && !cn_dtype_is_float(i->dtype)) expression = i->op->wgsl_whole;
    if (i->op->wgsl_print) {
        int n = i->op->wgsl_print(i->attrs, i->dtype, printed, sizeof printed);
        if (e->s && (n < 0 || n >= (int)sizeof printed)) e->s->failed = true;
        expression = printed;
    }
    for (int o = 0; o < i->n_out; o++) say(e, "    var v%d: %s;", i->out + o, cn__gpu_type(i->out_dtype[o]));
    say(e, " {");
    for (int k = 0; k < i->n_in; k++) say(e, " let %s = v%d;", names[k], i->in[k]);
    emit_numbers(e, i, expression);
    if (i->n_out == 1) {
        emit_result(e, i->out, i->out_dtype[0], expression);
    } else {
        for (int o = 0; o < i->n_out; o++) say(e, " var r%d: %s;", o, cn__gpu_type(i->out_dtype[o]));
        say(e, " %s", expression);
        for (int o = 0; o < i->n_out; o++) {
            char name[8];
            snprintf(name, sizeof name, "r%d", o);
            emit_result(e, i->out + o, i->out_dtype[o], name);
        }
    }
    say(e, " }\n");
}

static void emit_values(const emit *e)
{
    for (int l = 0; l < e->step->n_loads; l++) emit_load(e, l);
    for (int i = 0; i < e->step->n_instrs; i++) emit_instr(e, &e->step->instrs[i]);
}

static void emit_stores(const emit *e)
{
    for (int s = 0; s < e->step->n_stores; s++) {
        const cn__operand *o = &e->step->stores[s].to;
        if (e->s) cn__gpu_add_port(e->p, e->c, o, true, e->names + s, e->first);
        else word(e, CN__GPU_BASE, cn__gpu_add_operand(e->p, e->c, o), 0, 0);
        say(e, "    out%d(i, v%d);\n", e->names + s, e->step->stores[s].value);
    }
}

static const char *keep_text(cn__gpu_plan *p, cn__gpu_source *s)
{
    char *kept = s->failed ? NULL : cn__bump_new(s->memory, &p->plan->memory, s->text.n + 1);
    if (kept) memcpy(kept, s->text.v, s->text.n + 1);
    cn__vec_free(s->memory, &s->text, 1);
    return kept;
}

/* ---- elementwise groups ---- */

static int64_t tiles_of(const cn__step *s)
{
    const int tile = GROUP_SIZE * PER_INVOCATION;
    return (cn__numel(&s->space) + tile - 1) / tile;
}

/* The bound of the loop is not known to the compiler: unrolled, a program takes twice as long to compile and runs no
   faster. */
static void emit_loop(cn__gpu_source *s, const char *numel, const char *group, bool pairs)
{
    cn__gpu_say(s, "    let first = %s * %du;\n    let end = min(%s, first + %du);\n", group,
                GROUP_SIZE * PER_INVOCATION, numel, GROUP_SIZE * PER_INVOCATION);
    if (pairs)
        cn__gpu_say(s,
                    "    for (var k = first + 2u * local; k < end; k += %du) {\n"
                    "        for (var i = k; i < min(end, k + 2u); i++) { element(i); }\n    }\n}\n",
                    2 * GROUP_SIZE);
    else cn__gpu_say(s, "    for (var i = first + local; i < end; i += %du) { element(i); }\n}\n", GROUP_SIZE);
}

static bool in_pairs(const cn__step *s)
{
    for (int i = 0; i < s->n_stores; i++)
        if (cn__gpu_is_half(s->stores[i].to.dtype)) return true;
    return false;
}

static void emit_kernel(cn__gpu_source *s, int numel, bool pairs)
{
    char size[24];
    snprintf(size, sizeof size, "P[%du]", numel);
    cn__gpu_say(s, "fn kernel(group: u32, local: u32) {\n");
    emit_loop(s, size, "group", pairs);
}

/* Which of the joined groups a workgroup belongs to: the first that ends after it. Words from `table` on: how many, the end
   of each in groups, then from `first` on the words of each, the first of them its size. */
static void emit_joined_kernel(cn__gpu_source *s, int table, int first, int stride, bool pairs)
{
    cn__gpu_say(s,
                "fn kernel(group: u32, local: u32) {\n    var low = 0u; var high = P[%du] - 1u;\n"
                "    while (low < high) {\n        let mid = (low + high) / 2u;\n"
                "        if (P[%du + mid] > group) { high = mid; } else { low = mid + 1u; }\n    }\n"
                "    J = %du + low * %du;\n    var begin = 0u;\n    if (low > 0u) { begin = P[%du + low]; }\n",
                table, table + 1, first, stride, table);
    emit_loop(s, "P[J]", "(group - begin)", pairs);
}

static bool same_layouts(const cn__step *a, const cn__step *b)
{
    for (int l = 0; l < a->n_loads; l++) {
        int64_t s[CN_MAX_DIMS], t[CN_MAX_DIMS], x[CN_MAX_DIMS], y[CN_MAX_DIMS];
        int n = merge_axes(&a->loads[l].layout, s, x), m = merge_axes(&b->loads[l].layout, t, y);
        if (n != m) return false;
        for (int d = 0; d < n; d++) /* what stands in the text, not in words */
            if ((x[d] == 0) != (y[d] == 0) || (x[d] == 1) != (y[d] == 1)) return false;
    }
    return true;
}

static bool emit_one(cn__gpu_plan *p, const cn__step *step)
{
    cn__gpu_command *c = cn__gpu_command_new(p, step->name);
    if (!c) return false;
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    emit e = { p, c, step, &s, 0, 0, -1 };
    int numel = word(&e, CN__GPU_FIXED, 0, 0, (uint32_t)cn__numel(&step->space));
    say(&e, "fn element(i: u32) {\n");
    emit_values(&e);
    emit_stores(&e);
    say(&e, "}\n");
    c->numel = numel;
    emit_kernel(&s, numel, in_pairs(step));
    c->groups = tiles_of(step);
    c->size = GROUP_SIZE;
    c->updates = step->updates;
    c->body = keep_text(p, &s);
    return c->body != NULL;
}

static bool emit_joined(cn__gpu_plan *p, const cn__step *step, int n)
{
    cn__gpu_command *c = cn__gpu_command_new(p, step->name);
    if (!c) return false;
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    emit e = { p, c, step, &s, 0, 0, -1 };
    c->joined = true;
    int table = word(&e, CN__GPU_FIXED, 0, 0, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        c->groups += tiles_of(&step[i]);
        c->updates |= step[i].updates;
        word(&e, CN__GPU_FIXED, 0, 0, (uint32_t)c->groups);
    }
    int first = (int)c->words.n, stride = 0;
    for (int i = 0; i < n; i++) {
        e.step = &step[i];
        e.s = i ? NULL : &s;
        e.first = (int)c->words.n;
        word(&e, CN__GPU_FIXED, 0, 0, (uint32_t)cn__numel(&step[i].space));
        say(&e, "fn element(i: u32) {\n");
        emit_values(&e);
        emit_stores(&e);
        say(&e, "}\n");
        stride = (int)c->words.n - e.first;
    }
    emit_joined_kernel(&s, table, first, stride, in_pairs(step));
    c->size = GROUP_SIZE;
    c->body = keep_text(p, &s);
    return c->body != NULL;
}

bool cn__gpu_emit_group(cn__gpu_plan *p, const cn__step *step, int together)
{
    for (int i = 0, n; i < together; i += n) {
        if (!tiles_of(&step[i])) { /* nothing to compute */
            n = 1;
            continue;
        }
        bool one_slab = p->device->heap.ordinary == 1; /* a text names slabs: all its groups must lie in the same */
        for (n = 1; one_slab && i + n < together && tiles_of(&step[i + n]) && same_layouts(&step[i], &step[i + n]);) n++;
        if (!(n == 1 ? emit_one(p, &step[i]) : emit_joined(p, &step[i], n))) return false;
    }
    return true;
}

/* ---- tails ---- */

const char *cn__gpu_emit_tail(cn__gpu_plan *p, cn__gpu_command *c, const cn__step *kernel, const cn__step *tail)
{
    enum { NAMES = 100 };
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    const int result = kernel->stores[0].to.buffer;
    emit e = { p, c, tail, &s, 0, NAMES, result };
    const cn__buffer *b = &p->plan->buffers[result];
    bool needed = b->where != CN__AT_ARENA || b->last > (int)(tail - p->plan->steps);
    say(&e, "fn put(i: u32, value: %s) {\n", cn__gpu_type(kernel->stores[0].to.dtype));
    if (needed) say(&e, "    out0(i, value);\n");
    emit_values(&e);
    emit_stores(&e);
    say(&e, "}\n");
    return keep_text(p, &s);
}

/* ---- reductions ---- */

typedef struct shape3 {
    int64_t outer, n, inner;
} shape3;

static shape3 reduced_shape(const cn__step *step)
{
    const int64_t *axes = step->attrs; /* begin, end */
    shape3 r = { 1, 1, 1 };
    for (int d = 0; d < step->space.ndim; d++)
        *(d < axes[0] ? &r.outer : d < axes[1] ? &r.n : &r.inner) *= step->space.shape[d];
    return r;
}

static int state_words(const cn_wgsl_reducer *r)
{
    return strncmp(r->state, "vec", 3) ? 1 : r->state[3] - '0';
}

static void say_store_state(cn__gpu_source *s, int words)
{
    for (int k = 0; k < words; k++)
        cn__gpu_say(s, "        set_tmp(at * %du + %du, bitcast<u32>(%s%s));\n", words, k, "best",
                    words == 1 ? "" : k == 0 ? ".x" : k == 1 ? ".y" : k == 2 ? ".z" : ".w");
}

static void say_load_state(cn__gpu_source *s, const cn_wgsl_reducer *r, int words)
{
    const char *type = strstr(r->state, "i32") ? "i32" : strstr(r->state, "u32") ? "u32" : "f32";
    cn__gpu_say(s, "fn state(at: u32) -> %s {\n    return %s(", r->state, r->state);
    for (int k = 0; k < words; k++)
        cn__gpu_say(s, "%sbitcast<%s>(tmp(at * %du + %du))", k ? ", " : "", type, words, k);
    cn__gpu_say(s, ");\n}\n");
}

static void say_reducer(cn__gpu_source *s, const cn_wgsl_reducer *r, const char *element, const char *result)
{
    cn__gpu_say(s, "fn begin() -> %s { return %s; }\n", r->state, r->begin);
    if (element)
        cn__gpu_say(s, "fn fold(s: %s, x: %s, at: i32) -> %s { return %s; }\n", r->state, element, r->state, r->fold);
    cn__gpu_say(s, "fn merge(s: %s, t: %s) -> %s { return %s; }\n", r->state, r->state, r->state, r->merge);
    if (result)
        cn__gpu_say(s, "fn finish(s: %s, count: u32) -> %s { return %s(%s); }\n", r->state, result, result, r->end);
}

/* Lanes of a workgroup share a result: lane l folds elements l, l + lanes, .. and states are merged pairwise. Neighbours in
   a workgroup look at neighbours in memory: they are lanes of a result where its elements lie side by side (rows), else
   results. Words: how many results, elements of each, inner size, parts (slices of the elements, reduced apart). */
static void say_reduce(cn__gpu_source *s, const cn_wgsl_reducer *r, int lanes, bool rows, int w, bool from_states,
                       bool to_states)
{
    int results = GROUP_SIZE / lanes;
    if (lanes > 1) cn__gpu_say(s, "var<workgroup> shared_states: array<%s, %d>;\n", r->state, GROUP_SIZE);
    cn__gpu_say(s,
                "fn kernel(group: u32, local: u32) {\n    let mine = local %s %du; let lane = local %s %du;\n"
                "    let at = group * %du + mine; let slot = lane * %du + mine;\n"
                "    let n = P[%du]; let inner = P[%du]; let parts = P[%du];\n    var best = begin();\n"
                "    if (at < P[%du]) {\n        let o = at / parts; let part = at %% parts;\n"
                "        let per = (n + parts - 1u) / parts;\n        let stop = min(n, (part + 1u) * per);\n",
                rows ? "/" : "%", rows ? lanes : results, rows ? "%" : "/", rows ? lanes : results, results, results, w + 1,
                w + 2, w + 3, w);
    if (from_states)
        cn__gpu_say(s, "        for (var k = lane; k < n; k += %du) { best = merge(best, state(at * n + k)); }\n", lanes);
    else
        cn__gpu_say(s,
                    "        let start = (o / inner) * n * inner + o %% inner;\n"
                    "        for (var k = part * per + lane; k < stop; k += %du) { best = fold(best, value(start + k * "
                    "inner), i32(k)); }\n",
                    lanes);
    cn__gpu_say(s, "    }\n");
    if (lanes > 1)
        cn__gpu_say(s,
                    "    shared_states[slot] = best;\n    workgroupBarrier();\n    for (var half = %du; half > 0u; half /= 2u) "
                    "{\n        if (lane < half) { shared_states[slot] = merge(shared_states[slot], shared_states[slot + half * "
                    "%du]); }\n        workgroupBarrier();\n    }\n    best = shared_states[slot];\n",
                    lanes / 2, results);
    cn__gpu_say(s, "    if (at < P[%du] && lane == 0u) {\n", w);
    if (to_states) say_store_state(s, state_words(r));
    else cn__gpu_say(s, "        out0(at, finish(best, P[%du]));\n", w + 4);
    cn__gpu_say(s, "    }\n}\n");
}

static int lanes_for(int64_t results, int64_t n)
{
    int lanes = 1;
    while (lanes < GROUP_SIZE && n / lanes > 4 && (results * lanes < 8192 || n / lanes > 256)) lanes *= 2;
    return lanes;
}

static void add_sizes(const emit *e, int64_t results, int64_t n, int64_t inner, int64_t parts, int64_t count)
{
    word(e, CN__GPU_FIXED, 0, 0, (uint32_t)results);
    word(e, CN__GPU_FIXED, 0, 0, (uint32_t)n);
    word(e, CN__GPU_FIXED, 0, 0, (uint32_t)inner);
    word(e, CN__GPU_FIXED, 0, 0, (uint32_t)parts);
    word(e, CN__GPU_FIXED, 0, 0, (uint32_t)count);
}

static bool finish_reduce(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_source *s, int lanes, int64_t results)
{
    c->size = GROUP_SIZE;
    c->groups = (results * lanes + GROUP_SIZE - 1) / GROUP_SIZE;
    c->group_bytes = lanes > 1 ? GROUP_SIZE * 16 : 0;
    c->body = keep_text(p, s);
    return c->body != NULL;
}

/* States of parts in scratch memory become results. */
static bool emit_second(cn__gpu_plan *p, const cn__step *step, const cn_wgsl_reducer *r, shape3 sh, int64_t parts)
{
    cn__gpu_command *c = cn__gpu_command_new(p, step->name);
    if (!c) return false;
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    emit e = { p, c, step, &s, 0, 0, -1 };
    int64_t results = sh.outer * sh.inner;
    int lanes = lanes_for(results, parts), w = (int)c->words.n;
    add_sizes(&e, results, parts, 1, 1, sh.n);
    c->scratch = word(&e, CN__GPU_SCRATCH, 0, 0, 0);
    cn__gpu_add_port(p, c, &step->stores[0].to, true, 0, 0);
    say_load_state(&s, r, state_words(r));
    say_reducer(&s, r, NULL, cn__gpu_type(step->stores[0].to.dtype));
    say_reduce(&s, r, lanes, true, w, true, false);
    return finish_reduce(p, c, &s, lanes, results);
}

static const char *reduced_type(const cn__step *step)
{
    if (step->reduced < step->n_loads) return cn__gpu_type(step->loads[step->reduced].dtype);
    for (int i = 0; i < step->n_instrs; i++)
        for (int o = 0; o < step->instrs[i].n_out; o++)
            if (step->instrs[i].out + o == step->reduced) return cn__gpu_type(step->instrs[i].out_dtype[o]);
    return "f32";
}

bool cn__gpu_emit_reduction(cn__gpu_plan *p, const cn__step *step)
{
    enum { WORTH = 16384, PART = 4096, MOST_PARTS = 256 };
    const cn_wgsl_reducer *r = reducer_of(step);
    shape3 sh = reduced_shape(step);
    int64_t results = sh.outer * sh.inner, parts = 1;
    if (!results) return true;
    if (sh.n > WORTH && results < 256) parts = (sh.n + PART - 1) / PART;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    cn__gpu_command *c = cn__gpu_command_new(p, step->name);
    if (!c) return false;
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    emit e = { p, c, step, &s, 0, 0, -1 };
    int lanes = lanes_for(results * parts, sh.n / parts), w = (int)c->words.n;
    add_sizes(&e, results * parts, sh.n, sh.inner, parts, sh.n);
    if (parts > 1) {
        c->scratch = word(&e, CN__GPU_SCRATCH, 0, 0, 0);
        size_t bytes = (size_t)(results * parts * state_words(r)) * sizeof(uint32_t);
        if (bytes > p->plan->scratch_bytes) p->plan->scratch_bytes = bytes;
    }
    const char *type = reduced_type(step);
    say(&e, "fn value(i: u32) -> %s {\n", type);
    emit_values(&e);
    say(&e, "    return v%d;\n}\n", step->reduced);
    if (parts == 1) cn__gpu_add_port(p, c, &step->stores[0].to, true, 0, 0);
    say_reducer(&s, r, type, parts > 1 ? NULL : cn__gpu_type(step->stores[0].to.dtype));
    say_reduce(&s, r, lanes, sh.inner == 1, w, false, parts > 1);
    if (!finish_reduce(p, c, &s, lanes, results * parts)) return false;
    return parts == 1 || emit_second(p, step, r, sh, parts);
}
