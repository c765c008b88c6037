/* The tracer: begins, notes calls of composites, ends. */
#include "core/tracer.h"

#include "core/errors.h"
#include "core/handle.h"

bool cn__trace_begin(cn_ctx *ctx)
{
    if (!ctx->tracer) {
        ctx->tracer = cn__block_new(&ctx->memory, sizeof *ctx->tracer);
        if (!ctx->tracer) return cn__no_memory(ctx, NULL);
        *ctx->tracer = (cn__tracer){ .depth = 0 };
    }
    ctx->tracer->depth++;
    return true;
}

void cn__trace_end(cn_ctx *ctx)
{
    cn__tracer *t = ctx->tracer;
    if (!t || --t->depth) return;
    ctx->tracer = NULL;
    cn__note *notes = t->notes.v;
    for (size_t i = 0; i < t->notes.n; i++) {
        for (int k = 0; k < notes[i].n_in; k++)
            if (notes[i].in[k].node) cn__node_release(notes[i].in[k].node);
        cn__node_release(notes[i].result.node);
    }
    cn__vec_free(&ctx->memory, &t->notes, sizeof *notes);
    cn__vec_free(&ctx->memory, &t->table, sizeof(int64_t));
    cn__bump_free(&ctx->memory, &t->memory);
    cn__block_free(&ctx->memory, t, sizeof *t);
}

/* ---- notes by result ---- */

/* Where the latest note of a result stands in the table, or would stand. */
static int64_t *place_of(const cn__tracer *t, cn__ref r)
{
    const cn__note *notes = t->notes.v;
    int64_t *table = t->table.v;
    const uint64_t h = ((uint64_t)(uintptr_t)r.node >> 4) * 0x9e3779b97f4a7c15u + (uint64_t)r.out;
    size_t mask = t->table.n - 1, i = (size_t)(h >> 20) & mask;
    while (table[i] >= 0 && (notes[table[i]].result.node != r.node || notes[table[i]].result.out != r.out))
        i = (i + 1) & mask;
    return &table[i];
}

/* A table that is at most half full. */
static bool make_room(cn_ctx *ctx, cn__tracer *t)
{
    if (t->table.n >= 2 * (t->notes.n + 1)) return true;
    const size_t n = t->table.n ? 2 * t->table.n : 64;
    if (!cn__vec_reserve(&ctx->memory, &t->table, n, sizeof(int64_t))) return false;
    t->table.n = n;
    for (size_t i = 0; i < n; i++) ((int64_t *)t->table.v)[i] = -1;
    for (size_t i = 0; i < t->notes.n; i++) *place_of(t, ((cn__note *)t->notes.v)[i].result) = (int64_t)i;
    return true;
}

const cn__note *cn__trace_note(const cn_ctx *ctx, cn__ref result)
{
    const cn__tracer *t = ctx->tracer;
    const int64_t at = t && t->table.n ? *place_of(t, result) : -1;
    return at >= 0 ? (const cn__note *)t->notes.v + at : NULL;
}

const cn__note *cn__trace_earlier(const cn_ctx *ctx, const cn__note *note)
{
    return note->earlier >= 0 ? (const cn__note *)ctx->tracer->notes.v + note->earlier : NULL;
}

/* The note holds a reference to each node that it names. */
bool cn__trace_composed(cn_ctx *ctx, const cn__composed *c)
{
    cn__tracer *t = ctx->tracer;
    cn__ref *in = cn__bump_new(&ctx->memory, &t->memory, sizeof *in * (size_t)(c->n_in + 1));
    cn_arg *args = cn__bump_new(&ctx->memory, &t->memory, sizeof *args * CN_MAX_ARGS);
    void *attrs = cn__bump_new(&ctx->memory, &t->memory, c->op->attr_size + 1);
    if (!in || !args || !attrs) return cn__no_memory(ctx, c->op->name);
    if (c->args) memcpy(args, c->args, sizeof *args * CN_MAX_ARGS);
    if (c->op->attr_size) memcpy(attrs, c->attrs, c->op->attr_size);
    for (int k = 0; k < c->n_in; k++)
        if (c->in[k]) in[k] = c->in[k]->ref;
    if (!make_room(ctx, t)) return cn__no_memory(ctx, c->op->name);
    int64_t *place = place_of(t, c->out->ref);
    const cn__note note = { c->op, c->out->ref, in, c->n_in, attrs, args, *place };
    if (!cn__push(&ctx->memory, &t->notes, &note, sizeof note)) return cn__no_memory(ctx, c->op->name);
    *place = (int64_t)t->notes.n - 1;
    for (int k = 0; k < c->n_in; k++)
        if (in[k].node) in[k].node->refs++;
    note.result.node->refs++;
    return true;
}
