/* Prints a plan for people: one line for each step. */
#include <stdarg.h>
#include <stdio.h>

#include "core/errors.h"
#include "core/layout.h"
#include "plan/cache.h"

typedef struct text {
    char *out;
    size_t size, n;
} text;

static void append(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = t->n < t->size ? t->size - t->n : 0;
    int n = vsnprintf(room ? t->out + t->n : NULL, room, format, list);
    va_end(list);
    if (n > 0) t->n += (size_t)n;
}

static void append_place(text *t, const cn__plan *p, const cn__operand *o)
{
    char shape[96];
    if (o->number >= 0) {
        append(t, "number");
        return;
    }
    if (o->buffer < 0) {
        append(t, "none");
        return;
    }
    const cn__buffer *b = &p->buffers[o->buffer];
    switch (b->where) {
    case CN__AT_LEAF: append(t, "in%d", b->index); break;
    case CN__AT_OUTPUT: append(t, "out%d", b->index); break;
    case CN__AT_DONOR: append(t, "in%d (in place)", b->index); break;
    case CN__AT_ARENA: append(t, "@%zu", b->offset); break;
    }
    if (o->view_node < 0 && o->view_leaf < 0 && o->layout.offset) append(t, "+%lld", (long long)o->layout.offset);
    append(t, ":%s%s", cn_dtype_name(o->dtype), cn__shape_text(&o->layout, shape, sizeof shape));
    if (!cn__layout_contiguous(&o->layout)) append(t, "~"); /* strided */
}

size_t cn__plan_show(const cn__plan *p, char *out, size_t size)
{
    text t = { out, size, 0 };
    if (size) out[0] = 0;
    append(&t, "plan: %d nodes, %d steps, %d inputs, %d outputs, arena %zu bytes, scratch %zu bytes\n", p->n_nodes,
           p->n_steps, p->n_leaves, p->n_outputs, p->arena_bytes, p->scratch_bytes);
    for (int i = 0; i < p->n_steps; i++) {
        const cn__step *s = &p->steps[i];
        if (s->epilogue || s->joined) append(&t, "      %c %-30s", s->epilogue ? '+' : '&', s->name);
        else append(&t, "%4d  %-32s", i, s->name);
        for (int k = 0; k < s->n_loads; k++) {
            append(&t, k ? ", " : " ");
            append_place(&t, p, &s->loads[k]);
        }
        append(&t, " ->");
        for (int k = 0; k < s->n_stores; k++) {
            append(&t, k ? ", " : " ");
            append_place(&t, p, &s->stores[k].to);
        }
        append(&t, "\n");
    }
    return t.n;
}

void cn__plan_trace(cn_ctx *ctx, const cn__plan *p)
{
    char line[2048];
    cn__plan_show(p, line, sizeof line);
    for (char *at = line, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        if (!end) break;
        *end = 0;
        cn__log(ctx, "%s", at); /* which keeps the logger out of the context */
    }
}
