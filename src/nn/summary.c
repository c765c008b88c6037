/* cn_summary: a table of a model's layers. One forward, whose nodes are never evaluated, gives the shapes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "nn/module.h"

/* A text under construction. `used` counts the whole text, even what does not fit. */
typedef struct page {
    char *out;
    size_t size, used;
    int name_width, shape_width;
} page;

static void append(page *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const bool room = p->used < p->size;
    int n = vsnprintf(room ? p->out + p->used : NULL, room ? p->size - p->used : 0, format, list);
    va_end(list);
    if (n > 0) p->used += (size_t)n;
}

/* 1234567 as 1,234,567 */
static const char *grouped(int64_t n, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0 && digits[i - 1] != '-') out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

static void shape_text(const cn_dims *shape, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "(");
    for (int i = 0; i < shape->n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, i ? "," : "", shape->v[i]);
    if (used < size) snprintf(out + used, size - used, ")");
}

static int64_t own_count(const cn_module *m)
{
    int64_t n = 0;
    for (size_t i = 0; i < m->slots.n; i++) {
        const slot *s = (const slot *)m->slots.v + i;
        if (s->kind == SLOT_PARAM) n += cn_numel(s->tensor);
    }
    return n;
}

static void label(const cn_module *m, const char *name, int depth, char *out, size_t size)
{
    char options[128] = "";
    cn__outside outside = cn__go_out(m->object.ctx);
    if (m->type->describe) m->type->describe(m, options, sizeof options);
    cn__come_back(m->object.ctx, outside);
    snprintf(out, size, "%*s%s%s%s%s%s%s", 2 * depth, "", name, *name ? ": " : "", m->type->name, *options ? "(" : "",
             options, *options ? ")" : "");
}

typedef void row(page *p, cn_module *m, const char *name, int depth);

static void for_each(page *p, cn_module *m, const char *name, int depth, row *fn)
{
    fn(p, m, name, depth);
    for (size_t i = 0; i < m->slots.n; i++) {
        slot *s = (slot *)m->slots.v + i;
        if (s->child) for_each(p, s->child, s->name, depth + 1, fn);
    }
}

static void measure(page *p, cn_module *m, const char *name, int depth)
{
    char text[256], shape[160];
    label(m, name, depth, text, sizeof text);
    shape_text(&m->out_shape, shape, sizeof shape); /* "()" if the forward did not reach m */
    if ((int)strlen(text) > p->name_width) p->name_width = (int)strlen(text);
    if ((int)strlen(shape) > p->shape_width) p->shape_width = (int)strlen(shape);
}

static void print_row(page *p, cn_module *m, const char *name, int depth)
{
    char text[256], shape[160] = "", count[32] = "";
    label(m, name, depth, text, sizeof text);
    if (m->out_shape.n >= 0) shape_text(&m->out_shape, shape, sizeof shape);
    if (own_count(m)) grouped(own_count(m), count);
    append(p, "%-*s  %-*s  %14s\n", p->name_width, text, p->shape_width, shape, count);
}

static void clear_shapes(page *p, cn_module *m, const char *name, int depth)
{
    (void)p, (void)name, (void)depth;
    m->out_shape = (cn_dims){ .n = -1 }; /* the forward has not reached m */
}

static void print_totals(page *p, cn_module *m)
{
    int64_t all = 0, trained = 0, buffers = 0, bytes = 0;
    cn_params params = cn_parameters(m);
    for (int i = 0; i < params.n; i++) {
        const int64_t n = cn_numel(params.v[i]);
        all += n;
        trained += cn_requires_grad(params.v[i]) ? n : 0;
        bytes += n * (int64_t)cn_dtype_size(cn_type(params.v[i]));
    }
    cn_named_list named = cn_module_named(m);
    for (int i = 0; i < named.n; i++) buffers += named.v[i].buffer ? cn_numel(named.v[i].tensor) : 0;
    char a[32], b[32], c[32];
    append(p, "parameters %s, trained %s", grouped(all, a), grouped(trained, b));
    if (buffers) append(p, ", buffers %s", grouped(buffers, c));
    append(p, "; %.1f MB\n", (double)bytes / 1e6);
}

/* Evaluation mode for one forward, so that running statistics stay. restore_mode sets each module's own mode again. */
static void set_mode(page *p, cn_module *m, const char *name, int depth)
{
    (void)p, (void)name, (void)depth;
    m->was_training = m->training;
    m->training = false;
}

static void restore_mode(page *p, cn_module *m, const char *name, int depth)
{
    (void)p, (void)name, (void)depth;
    m->training = m->was_training;
}

static bool find_shapes(page *p, cn_module *m, cn_tensor *x)
{
    cn_ctx *ctx = m->object.ctx;
    const uint64_t stream = ctx->next_stream; /* a summary uses up no random numbers */
    for_each(p, m, "", 0, set_mode);
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    bool ok = cn_forward(m, x) != NULL;
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    for_each(p, m, "", 0, restore_mode);
    ctx->next_stream = stream;
    return ok;
}

static size_t write_summary(cn_module *m, cn_tensor *x, char *out, size_t size)
{
    page p = { .out = out, .size = size, .name_width = 5, .shape_width = 6 };
    for_each(&p, m, "", 0, clear_shapes);
    if (x && !find_shapes(&p, m, x)) return 0;
    for_each(&p, m, "", 0, measure);
    append(&p, "%-*s  %-*s  %14s\n", p.name_width, "layer", p.shape_width, "result", "parameters");
    for_each(&p, m, "", 0, print_row);
    print_totals(&p, m);
    return p.used;
}

size_t cn_summary(cn_module *m, cn_tensor *x, char *out, size_t size)
{
    if (size && out) *out = 0;
    CN__CALL call = cn__call_quietly(m, &cn__module_type);
    if (!call.ctx || (x && !cn__of_context(call.ctx, x, __func__, "x"))) return 0;
    if (size && !out) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "summary: the memory for the text must not be NULL");
        return 0;
    }
    CN__USE used = cn__object_use(m);
    return write_summary(m, x, out, size);
}
