/* Embedding: a table of vectors, looked up by whole numbers. */
#include <stdio.h>

#include "nn/nn.h"

typedef struct embedding {
    int64_t rows, width, padding; /* padding: the row for padding; -1: none */
    cn_tensor *weight;
} embedding;

/* Results from the padding row are detached: the row has no gradient. */
static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const embedding *e = cn_module_data(m);
    if (e->padding < 0) return cn_embedding(e->weight, x);
    cn_scope s = cn_scope_begin(x->ctx);
    cn_tensor *y = cn_embedding(e->weight, x);
    cn_tensor *padding = cn_unsqueeze(cn_eq_s(x, (double)e->padding), -1);
    return cn_scope_return(x->ctx, s, cn_where(padding, cn_detach(y), y));
}

static void describe(const cn_module *m, char *out, size_t size)
{
    const embedding *e = cn_module_data(m);
    int n = snprintf(out, size, "%lld, %lld", (long long)e->rows, (long long)e->width);
    if (e->padding >= 0 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", padding %lld", (long long)e->padding);
}

static const cn_module_type embedding_type = {
    .name = "Embedding", .forward = forward, .data_bytes = sizeof(embedding), .describe = describe
};

static cn_tensor *initial(cn_ctx *ctx, const embedding *e)
{
    cn_tensor *w = cn_randn(ctx, ctx->default_dtype, CN_DIMS(e->rows, e->width));
    if (e->padding < 0) return w;
    cn_tensor *zeros = cn_zeros(ctx, ctx->default_dtype, CN_DIMS(1, e->width));
    return cn_slice_assign(w, 0, e->padding, e->padding + 1, 1, zeros);
}

cn_module *cn_nn_embedding(cn_ctx *ctx, int64_t rows, int64_t width, const cn_nn_embedding_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (rows < 1 || width < 1) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Embedding: rows and width must be > 0, got %lld and %lld", (long long)rows,
                 (long long)width);
        return NULL;
    }
    int64_t padding = desc && desc->has_padding ? desc->padding_idx : -1;
    if (desc && desc->has_padding && padding < 0) padding += rows;
    if (desc && desc->has_padding && (padding < 0 || padding >= rows)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "Embedding: padding_idx must be from %lld to %lld, got %lld", (long long)-rows,
                 (long long)rows - 1, (long long)desc->padding_idx);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &embedding_type);
    if (!m) return NULL;
    embedding *e = cn_module_data(m);
    *e = (embedding){ .rows = rows, .width = width, .padding = padding };
    cn_scope s = cn_scope_begin(ctx);
    e->weight = cn_module_param(m, "weight", initial(ctx, e));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}
