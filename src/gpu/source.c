/* Prints the text around a kernel: bindings of slabs, access to operands and numbers. The text depends on types and
   ranks alone, so few programs serve many shapes. Programs are found by their text. */
#include <stdio.h>

#include "core/object.h"
#include "gpu/backend.h"
#include "gpu/shaders.h"

const char *cn__gpu_type(cn_dtype t) { return cn_dtype_is_float(t) ? "f32" : "i32"; }

/* ---- operands ---- */

/* Where an operand begins. */
typedef struct base {
    char word[24]; /* expression of its first element */
    cn__gpu_location location;
    uint32_t in_slab; /* elements of a slab of a wide block */
    bool halves;
} base;

static base base_at(const cn__gpu_device *d, cn__gpu_location location, bool halves, bool joined, int word)
{
    base b = { .location = location, .in_slab = (uint32_t)(d->heap.slab_limit / (halves ? 2 : 4)), .halves = halves };
    snprintf(b.word, sizeof b.word, joined ? "P[J + %du]" : "P[%du]", word);
    return b;
}

/* Prints the body of a function: `before`, the word of element i, `after`. A switch finds the slab in a wide block. In
   the text, e is the element counted from the start of the first slab. */
static void print_access(cn__gpu_source *s, const base *b, const char *before, const char *after)
{
    const char *shift = b->halves ? " >> 1u" : "";
    if (b->location.n == 1) {
        cn__gpu_print(s, " {\n    let e = %s + i;\n    %sh%d[e%s]%s;\n}\n", b->word, before, b->location.slab, shift,
                      after);
        return;
    }
    cn__gpu_print(s, " {\n    let e = %s + i;\n    switch e / %uu {\n", b->word, b->in_slab);
    for (int k = 0; k < b->location.n; k++) {
        if (k + 1 < b->location.n) cn__gpu_print(s, "        case %du: {", k);
        else cn__gpu_print(s, "        default: {");
        cn__gpu_print(s, " %sh%d[(e - %uu)%s]%s; }\n", before, b->location.slab + k, (unsigned)k * b->in_slab, shift,
                      after);
    }
    cn__gpu_print(s, "    }\n}\n");
}

/* Where the memory of an operand is at present. */
static cn__gpu_location location_of(const cn__gpu_command *c, const cn__operand *o)
{
    for (size_t k = 0; k < c->operands.n; k++)
        if (((const cn__operand **)c->operands.v)[k] == o) return c->locations[k];
    return (cn__gpu_location){ 0, 1 };
}

static void declare_in(cn__gpu_source *s, const base *b, const cn__gpu_port *p)
{
    char before[40];
    if (p->raw) {
        cn__gpu_print(s, "fn raw%d(i: u32) -> u32", p->number);
        print_access(s, b, "return ", "");
    }
    if (!p->value) return;
    cn_dtype t = p->operand->dtype;
    snprintf(before, sizeof before, "return bitcast<%s>(", cn__gpu_type(t));
    cn__gpu_print(s, "fn in%d(i: u32) -> %s", p->number, cn__gpu_type(t));
    if (t == CN_F16) print_access(s, b, "return unpack2x16float(", " >> (16u * (e & 1u))).x");
    else if (t == CN_BF16) print_access(s, b, "return bitcast<f32>((", " >> (16u * (e & 1u))) << 16u)");
    else print_access(s, b, before, ")");
}

/* The expression of the word that is stored for the value v. */
static const char *stored_as(cn_dtype t)
{
    switch (t) {
    case CN_BOOL: return "u32(v != 0)";
    case CN_U8: return "u32(v) & 255u";
    case CN_I8: return "bitcast<u32>((v << 24u) >> 24u)";
    case CN_I16: return "bitcast<u32>((v << 16u) >> 16u)";
    case CN_F16: return "pack2x16float(vec2<f32>(even, odd))"; /* exact: even and odd are values of f16 */
    case CN_BF16: return "(bitcast<u32>(even) >> 16u) | bitcast<u32>(odd)";
    default: return "bitcast<u32>(v)";
    }
}

/* The first half of a word is kept until the same invocation computes the second. The last half may be alone. */
static void declare_half_out(cn__gpu_source *s, const cn__gpu_command *c, const base *b, const cn__gpu_port *p)
{
    char after[64];
    snprintf(after, sizeof after, " = %s", stored_as(p->operand->dtype));
    cn__gpu_print(s, "fn store_pair%d(i: u32, even: f32, odd: f32)", p->number);
    print_access(s, b, "", after);
    cn__gpu_print(
        s,
        "var<private> even%d: f32;\nfn out%d(i: u32, v: f32) {\n"
        "    if ((i & 1u) == 1u) { store_pair%d(i, even%d, v); }\n"
        "    else if (i + 1u == P[%s%du]) { store_pair%d(i, v, 0.0); }\n    even%d = v;\n}\n",
        p->number, p->number, p->number, p->number, c->joined ? "J + " : "", c->numel, p->number, p->number);
}

static void declare_out(cn__gpu_source *s, const base *b, const cn__gpu_port *p)
{
    char after[64];
    if (p->raw) {
        cn__gpu_print(s, "fn set_raw%d(i: u32, v: u32)", p->number);
        print_access(s, b, "", " = v");
    }
    if (!p->value) return;
    snprintf(after, sizeof after, " = %s", stored_as(p->operand->dtype));
    cn__gpu_print(s, "fn out%d(i: u32, v: %s)", p->number, cn__gpu_type(p->operand->dtype));
    print_access(s, b, "", after);
}

/* Reading an absent operand returns the declared value. Writing an absent result does nothing. */
static void declare_absent(cn__gpu_source *s, const cn__gpu_command *c, const cn__gpu_port *p)
{
    const char *type = p->operand ? cn__gpu_type(p->operand->dtype) : "f32";
    if (p->result) cn__gpu_print(s, "fn out%d(i: u32, v: %s) { }\n", p->number, type);
    else cn__gpu_print(s, "fn in%d(i: u32) -> %s { return %s; }\n", p->number, type, c->needs.otherwise[p->number]);
}

static void declare_port(cn__gpu_source *s, const cn__gpu_device *d, const cn__gpu_command *c, const cn__gpu_port *p)
{
    if (p->absent) {
        declare_absent(s, c, p);
        return;
    }
    bool half = cn__gpu_is_half(p->operand->dtype);
    base b = base_at(d, location_of(c, p->operand), half, c->joined, p->word);
    if (p->result && half) declare_half_out(s, c, &b, p);
    else (p->result ? declare_out : declare_in)(s, &b, p);
}

/* ---- numbers, scratch, bindings ---- */

static void declare_numbers(cn__gpu_source *s, const cn__gpu_command *c)
{
    const unsigned f = c->needs.flags;
    if (f & CN__NEED_PAR) cn__gpu_print(s, "fn par(n: u32) -> u32 { return P[%du + n]; }\n", c->par);
    if (f & CN__NEED_PARI) cn__gpu_print(s, "fn pari(n: u32) -> i32 { return bitcast<i32>(P[%du + n]); }\n", c->par);
    if (f & CN__NEED_PARF) cn__gpu_print(s, "fn parf(n: u32) -> f32 { return bitcast<f32>(P[%du + n]); }\n", c->par);
    if (f & CN__NEED_ARG)
        cn__gpu_print(s, "fn arg(n: u32) -> f32 { return bitcast<f32>(P[%du + 3u * n]); }\n", c->args);
    if (f & CN__NEED_ARGU) cn__gpu_print(s, "fn argu(n: u32) -> u32 { return P[%du + 3u * n]; }\n", c->args + 1);
    if (f & CN__NEED_ARGH) cn__gpu_print(s, "fn argh(n: u32) -> u32 { return P[%du + 3u * n]; }\n", c->args + 2);
}

static void declare_scratch(cn__gpu_source *s, const cn__gpu_device *d, const cn__gpu_command *c)
{
    if (c->scratch < 0) return;
    base b = base_at(d, c->locations[c->operands.n], false, false, c->scratch);
    if (c->needs.flags & CN__NEED_TMP) {
        cn__gpu_print(s, "fn tmp(i: u32) -> u32");
        print_access(s, &b, "return ", "");
    }
    if (c->needs.flags & CN__NEED_SET_TMP) {
        cn__gpu_print(s, "fn set_tmp(i: u32, v: u32)");
        print_access(s, &b, "", " = v");
    }
}

static void declare_bindings(cn__gpu_source *s, const cn__gpu_command *c)
{
    cn__gpu_print(s, "@group(0) @binding(0) var<storage, read> P: array<u32>;\n");
    for (int i = 0, at = 1; i < CN__GPU_SLABS; i++)
        if (c->slabs >> i & 1)
            cn__gpu_print(s, "@group(0) @binding(%d) var<storage, read_write> h%d: array<u32>;\n", at++, i);
}

static bool compose(cn__gpu_source *s, cn__gpu_device *d, const cn__gpu_command *c)
{
    const cn__shader_context shaders = cn__gpu_shaders(d);
    if (c->needs.flags & CN__NEED_SUBGROUPS)
        cn__gpu_print(s, "%s", cn__dialect_enable(d->gpu->system->dialect, CN__SUBGROUPS));
    declare_bindings(s, c);
    if (c->joined) cn__gpu_print(s, "var<private> J: u32;\n");
    for (size_t i = 0; i < c->ports.n; i++) declare_port(s, d, c, &((const cn__gpu_port *)c->ports.v)[i]);
    declare_numbers(s, c);
    declare_scratch(s, d, c);
    if (!cn__shader_library(&shaders, s, c->needs.library)) return false;
    if (c->checks && !cn__shader_part_text(&shaders, s, cn__wgsl_main, "fault", NULL)) return false;
    cn__gpu_print(s, "%s", c->body);
    return cn__shader_part_text(&shaders, s, cn__wgsl_main, "main",
                                CN_GPU_HOLES(CN_GPU_NUMBER("size", c->size), CN_GPU_FLAG("updates", c->updates)));
}

/* ---- programs ---- */

static uint64_t hash_text(const char *t)
{
    uint64_t h = 1469598103934665603u;
    for (; *t; t++) h = (h ^ (unsigned char)*t) * 1099511628211u;
    return h ^ h >> 29;
}

static cn__gpu_entry *find(cn__gpu_device *d, uint64_t hash, const char *text)
{
    for (cn__gpu_entry *e = d->programs[hash % CN__GPU_PROGRAM_SLOTS]; e; e = e->next)
        if (e->hash == hash && !strcmp(e->text.v, text)) return e;
    return NULL;
}

static cn__gpu_entry *make(cn__gpu_device *d, const cn__gpu_command *c, uint64_t hash, const char *text)
{
    cn__gpu_entry *e = cn__alloc(d->device.ctx, sizeof *e);
    if (!e) return NULL;
    int bindings = 1;
    for (int i = 0; i < CN__GPU_SLABS; i++) bindings += c->slabs >> i & 1;
    e->program = cn__gpu_program_new(d->gpu, &(cn__gpu_program_desc){ .name = c->name,
                                                                      .source = text,
                                                                      .bindings = bindings,
                                                                      .group_bytes = (size_t)c->needs.group_bytes });
    if (!e->program) {
        cn__free(d->device.ctx, e, sizeof *e);
        return NULL;
    }
    e->hash = hash;
    e->next = d->programs[hash % CN__GPU_PROGRAM_SLOTS];
    d->programs[hash % CN__GPU_PROGRAM_SLOTS] = e;
    d->count.pipelines++;
    return e;
}

bool cn__gpu_assemble(cn__gpu_device *d, cn__gpu_command *c)
{
    cn_ctx *ctx = d->device.ctx;
    cn__gpu_source s = { .memory = &ctx->memory };
    bool ok = compose(&s, d, c);
    uint64_t hash = ok ? hash_text(s.text.v) : 0;
    cn__gpu_entry *e = ok ? find(d, hash, s.text.v) : NULL;
    c->program = e ? e->program : NULL;
    if (ok && !e && (e = make(d, c, hash, s.text.v))) {
        c->program = e->program;
        e->text = s.text; /* the entry owns the text from now on */
        e->program->source = e->text.v;
        return true;
    }
    if (ok && !e && ctx->trace_plans) cn__log(ctx, "%s", (const char *)s.text.v);
    cn__vec_free(&ctx->memory, &s.text, 1);
    return e != NULL;
}

void cn__gpu_programs_close(cn__gpu_device *d)
{
    cn_ctx *ctx = d->device.ctx;
    for (int i = 0; i < CN__GPU_PROGRAM_SLOTS; i++) {
        for (cn__gpu_entry *e = d->programs[i], *next; e; e = next) {
            next = e->next;
            cn__gpu_program_free(d->gpu, e->program);
            cn__vec_free(&ctx->memory, &e->text, 1);
            cn__free(ctx, e, sizeof *e);
        }
        d->programs[i] = NULL;
    }
}
