/* Prints groups as WGSL: a straight-line program over elements, for a group alone, for several equal groups in one
   kernel, for an epilogue, or in front of a reduction. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/layout.h"
#include "gpu/backend.h"
#include "gpu/shaders.h"

enum { GROUP_SIZE = 256, PER_INVOCATION = 4 };

/* ---- which groups have a kernel ---- */

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
    cn__gpu_source *s; /* NULL: print nothing, only add words, for the second and later joined groups */
    int first;         /* the first word of the group: J in joined groups */
    int names;         /* number of the first operand's name: in0, or in100 in an epilogue */
    int given;         /* epilogue: the buffer of the kernel's result; otherwise -1 */
} emit;

static void print(const emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(const emit *e, const char *format, ...)
{
    char line[1600];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (!e->s) return;
    if (n < 0 || n >= (int)sizeof line) e->s->failed = true;
    else cn__gpu_print(e->s, "%s", line);
}

/* Adds a parameter word and returns its number, counted from the group's first word. */
static int word(const emit *e, cn__gpu_word_kind kind, int index, int part, uint32_t value)
{
    return cn__gpu_add_word(e->p, e->c, (cn__gpu_word){ kind, index, part, value }) - e->first;
}

static const char *jump(const emit *e) { return e->c->joined ? "J + " : ""; }

/* Merges neighbouring axes that one stride can walk. */
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
    if (stride == 1) print(e, " o%d += %s;", load, index);
    else print(e, " o%d += %s * P[%s%du];", load, index, jump(e), word(e, CN__GPU_FIXED, 0, 0, (uint32_t)stride));
}

/* Prints the offset of element i in a load, as "o3" for load 3. */
static void emit_offset(const emit *e, int load)
{
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS];
    const cn_layout *l = &e->step->loads[load].layout;
    int n = merge_axes(l, shape, stride);
    if (n == 0) {
        print(e, "    let o%d = 0u;\n", load);
        return;
    }
    if (n == 1 && stride[0] == 1) {
        print(e, "    let o%d = i;\n", load);
        return;
    }
    print(e, "    var o%d = 0u; { var t = i;", load);
    for (int d = n - 1; d > 0; d--) {
        int size = word(e, CN__GPU_FIXED, 0, 0, (uint32_t)shape[d]);
        char index[48];
        snprintf(index, sizeof index, "(t %% P[%s%du])", jump(e), size);
        emit_axis(e, load, index, stride[d]);
        print(e, " t /= P[%s%du];", jump(e), size);
    }
    emit_axis(e, load, "t", stride[0]);
    print(e, " }\n");
}

static void emit_load(const emit *e, int load)
{
    const cn__operand *o = &e->step->loads[load];
    const char *type = cn__gpu_type(o->dtype);
    if (e->given >= 0 && o->buffer == e->given) {
        print(e, "    let v%d = value;\n", load);
        return;
    }
    if (o->number >= 0) {
        print(e, "    let v%d = bitcast<%s>(P[%s%du]);\n", load, type, jump(e),
              word(e, CN__GPU_NUMBER, o->number, (int)o->dtype, 0));
        return;
    }
    const cn__gpu_port port = { .operand = o, .value = true, .number = e->names + load };
    if (e->s) cn__gpu_add_port(e->p, e->c, port, e->first);
    else word(e, CN__GPU_BASE, cn__gpu_add_operand(e->p, e->c, o), 0, 0);
    emit_offset(e, load);
    print(e, "    let v%d = in%d(o%d);\n", load, e->names + load, load);
}

/* ---- names in expressions ---- */

/* Numbers that expressions have names for: p0, lo3, .. */
typedef struct number_name {
    const char *prefix, *type;
    cn__gpu_word_kind kind;
} number_name;

static const number_name number_names[] = {
    { "p", NULL, CN__GPU_ARG_REAL },  { "q", "f32", CN__GPU_ARG_REST },  { "k", "f32", CN__GPU_ARG_SCALE },
    { "lo", "u32", CN__GPU_ARG_LOW }, { "hi", "u32", CN__GPU_ARG_HIGH }, { "a", "u32", CN__GPU_FIXED },
};
enum { NUMBER_NAMES = sizeof number_names / sizeof *number_names };

typedef struct used {
    unsigned numbers[NUMBER_NAMES]; /* bit k: the name with the number k */
    bool bits;
} used;

static void use_library(cn__gpu_command *c, const cn__shader_parts *library, const char *name, size_t n)
{
    int i = cn__shader_find(library, name, n);
    if (i >= 0) c->needs.library[i / 64] |= 1ull << (i % 64);
}

static void use_name(const emit *e, used *u, const char *name, size_t n)
{
    const int k = name[n - 1] - '0';
    if (n == 4 && !memcmp(name, "bits", 4)) u->bits = true;
    for (int i = 0; i < NUMBER_NAMES && k >= 0 && k < CN_MAX_ARGS; i++)
        if (strlen(number_names[i].prefix) == n - 1 && !memcmp(number_names[i].prefix, name, n - 1))
            u->numbers[i] |= 1u << k;
    use_library(e->c, &e->p->device->library, name, n);
}

/* Finds the identifiers in an expression of an operator's record: they show which numbers and library functions it
   needs. Shader files declare this instead. */
static used find_uses(const emit *e, const char *expression)
{
    used u = { 0 };
    for (const char *at = expression; *at;) {
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
        if (n && !isdigit((unsigned char)*at)) use_name(e, &u, at, n);
        at += n ? n : 1;
    }
    return u;
}

static void emit_numbers(const emit *e, const cn__instr *i, const char *expression)
{
    const used u = find_uses(e, expression);
    const bool real = cn_dtype_is_float(i->dtype);
    for (int n = 0; n < NUMBER_NAMES; n++)
        for (int k = 0; k < CN_MAX_ARGS; k++) {
            if (!(u.numbers[n] >> k & 1)) continue;
            const number_name *name = &number_names[n];
            const cn__gpu_word_kind kind = name->type || real ? name->kind : CN__GPU_ARG_WHOLE;
            const uint32_t attr = kind == CN__GPU_FIXED ? (uint32_t)((const int64_t *)i->attrs)[k] : 0;
            print(e, " let %s%d = bitcast<%s>(P[%s%du]);", name->prefix, k,
                  name->type ? name->type
                  : real     ? "f32"
                             : "i32",
                  jump(e), word(e, kind, i->node, k, attr));
        }
    if (u.bits) print(e, " let bits = %d;", i->dtype == CN_BOOL ? 1 : 8 * (int)cn_dtype_size(i->dtype));
}

/* Prints a result, rounded or wrapped to its type, so that a fused group gives the bits of its operators alone. */
static void print_result(const emit *e, cn_dtype t, const char *expression)
{
    const cn__shader_parts *library = &e->p->device->library;
    if (t == CN_F16) use_library(e->c, library, "to_f16", 6);
    if (t == CN_BF16) use_library(e->c, library, "to_bf16", 7);
    switch (t) {
    case CN_BOOL: print(e, "i32(i32(%s) != 0)", expression); return;
    case CN_U8: print(e, "i32(%s) & 255", expression); return;
    case CN_I8: print(e, "(i32(%s) << 24u) >> 24u", expression); return;
    case CN_I16: print(e, "(i32(%s) << 16u) >> 16u", expression); return;
    case CN_F16: print(e, "to_f16(f32(%s))", expression); return;
    case CN_BF16: print(e, "to_bf16(f32(%s))", expression); return;
    default: print(e, "%s(%s)", cn__gpu_type(t), expression); return;
    }
}

static void emit_result(const emit *e, int value, cn_dtype t, const char *expression)
{
    print(e, " v%d = ", value);
    print_result(e, t, expression);
    print(e, ";");
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
    for (int o = 0; o < i->n_out; o++) print(e, "    var v%d: %s;", i->out + o, cn__gpu_type(i->out_dtype[o]));
    print(e, " {");
    for (int k = 0; k < i->n_in; k++) print(e, " let %s = v%d;", names[k], i->in[k]);
    emit_numbers(e, i, expression);
    if (i->n_out == 1) {
        emit_result(e, i->out, i->out_dtype[0], expression);
    } else {
        for (int o = 0; o < i->n_out; o++) print(e, " var r%d: %s;", o, cn__gpu_type(i->out_dtype[o]));
        print(e, " %s", expression);
        for (int o = 0; o < i->n_out; o++) {
            char name[8];
            snprintf(name, sizeof name, "r%d", o);
            emit_result(e, i->out + o, i->out_dtype[o], name);
        }
    }
    print(e, " }\n");
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
        const cn__gpu_port port = { .operand = o, .result = true, .value = true, .number = e->names + s };
        if (e->s) cn__gpu_add_port(e->p, e->c, port, e->first);
        else word(e, CN__GPU_BASE, cn__gpu_add_operand(e->p, e->c, o), 0, 0);
        print(e, "    out%d(i, v%d);\n", e->names + s, e->step->stores[s].value);
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

static bool in_pairs(const cn__step *s)
{
    for (int i = 0; i < s->n_stores; i++)
        if (cn__gpu_is_half(s->stores[i].to.dtype)) return true;
    return false;
}

static bool emit_kernel(const emit *e, const cn_gpu_hole *holes)
{
    const cn__shader_context shaders = cn__gpu_shaders(e->p->device);
    return cn__shader_part_text(&shaders, e->s, cn__wgsl_elements, "kernel", holes);
}

static bool same_layouts(const cn__step *a, const cn__step *b)
{
    for (int l = 0; l < a->n_loads; l++) {
        int64_t s[CN_MAX_DIMS], t[CN_MAX_DIMS], x[CN_MAX_DIMS], y[CN_MAX_DIMS];
        int n = merge_axes(&a->loads[l].layout, s, x), m = merge_axes(&b->loads[l].layout, t, y);
        if (n != m) return false;
        for (int d = 0; d < n; d++) /* strides 0 and 1 are part of the text, other strides are words */
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
    print(&e, "fn element(i: u32) {\n");
    emit_values(&e);
    emit_stores(&e);
    print(&e, "}\n");
    c->numel = numel;
    if (!emit_kernel(&e, CN_GPU_HOLES(CN_GPU_TEXT("joined", "false"), CN_GPU_FLAG("pairs", in_pairs(step)),
                                      CN_GPU_NUMBER("numel", numel))))
        s.failed = true;
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
        print(&e, "fn element(i: u32) {\n");
        emit_values(&e);
        emit_stores(&e);
        print(&e, "}\n");
        stride = (int)c->words.n - e.first;
    }
    e.s = &s;
    if (!emit_kernel(&e, CN_GPU_HOLES(CN_GPU_TEXT("joined", "true"), CN_GPU_FLAG("pairs", in_pairs(step)),
                                      CN_GPU_NUMBER("table", table), CN_GPU_NUMBER("first", first),
                                      CN_GPU_NUMBER("stride", stride))))
        s.failed = true;
    c->size = GROUP_SIZE;
    c->body = keep_text(p, &s);
    return c->body != NULL;
}

bool cn__gpu_emit_group(cn__gpu_plan *p, const cn__step *step, int merged)
{
    for (int i = 0, n; i < merged; i += n) {
        if (!tiles_of(&step[i])) { /* nothing to compute */
            n = 1;
            continue;
        }
        bool one_slab =
            p->device->heap.ordinary == 1; /* joined groups must lie in the same slab, which the text names */
        for (n = 1; one_slab && i + n < merged && tiles_of(&step[i + n]) && same_layouts(&step[i], &step[i + n]);) n++;
        if (!(n == 1 ? emit_one(p, &step[i]) : emit_joined(p, &step[i], n))) return false;
    }
    return true;
}

/* ---- epilogues ---- */

const char *cn__gpu_emit_epilogue(cn__gpu_plan *p, cn__gpu_command *c, const cn__step *kernel, const cn__step *epilogue,
                                  bool *stores)
{
    enum { NAMES = 100 };
    cn__gpu_source s = { .memory = &p->plan->device->ctx->memory };
    const int result = kernel->stores[0].to.buffer;
    emit e = { p, c, epilogue, &s, 0, NAMES, result };
    const cn__buffer *b = &p->plan->buffers[result];
    *stores = b->where != CN__AT_ARENA || b->last > (int)(epilogue - p->plan->steps);
    const cn_dtype t = kernel->stores[0].to.dtype;
    print(&e, "fn store_result(i: u32, computed: %s) {\n    let value = ", cn__gpu_type(t));
    print_result(&e, t, "computed");
    print(&e, ";\n");
    if (*stores) print(&e, "    out0(i, value);\n");
    emit_values(&e);
    emit_stores(&e);
    print(&e, "}\n");
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

static int state_words(const cn_wgsl_reducer *r) { return strncmp(r->state, "vec", 3) ? 1 : r->state[3] - '0'; }

/* The holes of reduce.wgsl. */
typedef struct reduction {
    const cn_wgsl_reducer *r;
    const char *element, *result; /* types */
    int lanes, first;             /* first: the first word of its sizes */
    bool rows, from_states, to_states;
} reduction;

static bool print_reduce(const emit *e, const reduction *d)
{
    const cn_wgsl_reducer *r = d->r;
    const char *word = strstr(r->state, "i32") ? "i32" : strstr(r->state, "u32") ? "u32" : "f32";
    const cn_gpu_hole *holes = CN_GPU_HOLES(
        CN_GPU_TEXT("state", r->state), CN_GPU_TEXT("begin", r->begin), CN_GPU_TEXT("fold", r->fold),
        CN_GPU_TEXT("merge", r->merge), CN_GPU_TEXT("finish", r->end), CN_GPU_TEXT("element", d->element),
        CN_GPU_TEXT("result", d->result), CN_GPU_NUMBER("words", state_words(r)), CN_GPU_TEXT("word", word),
        CN_GPU_NUMBER("lanes", d->lanes), CN_GPU_FLAG("rows", d->rows), CN_GPU_NUMBER("first", d->first),
        CN_GPU_FLAG("from_states", d->from_states), CN_GPU_FLAG("to_states", d->to_states));
    const cn__shader_context shaders = cn__gpu_shaders(e->p->device);
    find_uses(e, r->begin);
    find_uses(e, r->merge);
    if (!d->from_states) find_uses(e, r->fold);
    if (!d->to_states) find_uses(e, r->end);
    if (d->from_states) e->c->needs.flags |= CN__NEED_TMP;
    if (d->to_states) e->c->needs.flags |= CN__NEED_SET_TMP;
    return cn__shader_part_text(&shaders, e->s, cn__wgsl_reduce, "reducer", holes) &&
           cn__shader_part_text(&shaders, e->s, cn__wgsl_reduce, "kernel", holes);
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
    c->needs.group_bytes = lanes > 1 ? GROUP_SIZE * 16 : 0;
    c->body = keep_text(p, s);
    return c->body != NULL;
}

/* The second launch: merges the states of parts in scratch memory to results. */
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
    cn__gpu_add_port(p, c, (cn__gpu_port){ .operand = &step->stores[0].to, .result = true, .value = true }, 0);
    const char *type = cn__gpu_type(step->stores[0].to.dtype);
    const reduction d = { r, type, type, lanes, w, .rows = true, .from_states = true };
    return print_reduce(&e, &d) && finish_reduce(p, c, &s, lanes, results);
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
    print(&e, "fn value(i: u32) -> %s {\n", type);
    emit_values(&e);
    print(&e, "    return v%d;\n}\n", step->reduced);
    const cn__gpu_port to = { .operand = &step->stores[0].to, .result = true, .value = true };
    if (parts == 1) cn__gpu_add_port(p, c, to, 0);
    const reduction d = {
        r, type, cn__gpu_type(to.operand->dtype), lanes, w, .rows = sh.inner == 1, .to_states = parts > 1
    };
    if (!print_reduce(&e, &d) || !finish_reduce(p, c, &s, lanes, results * parts)) return false;
    return parts == 1 || emit_second(p, step, r, sh, parts);
}
