/* Embedding: a table of vectors, looked up by whole numbers. */
#include <stdio.h>

#include "nn/nn.h"

typedef struct embedding {
    int64_t rows, width, padding; /* padding: the row for padding; -1: none */
    double max_norm, norm_type;   /* max_norm 0: none */
    cn_tensor *weight;
} embedding;

bool cn__check_renorm(cn_ctx *ctx, const char *who, double max_norm, double norm_type)
{
    if (max_norm >= 0 && norm_type >= 0) return true;
    return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: max_norm and norm_type must be ≥ 0, got %g and %g", who, max_norm,
                    norm_type);
}

/* A row that is named twice is written twice, with the same numbers. */
bool cn__embedding_renorm(cn_tensor *weight, cn_tensor *indices, double max_norm, double norm_type)
{
    if (max_norm == 0) return true;
    cn_ctx *ctx = cn_context(weight);
    cn_scope s = cn_scope_begin(ctx);
    cn_no_grad_begin(ctx);
    cn_tensor *at = cn_flatten(indices, 0, -1), *rows = cn_embedding(weight, at);
    cn_tensor *length = cn_norm(rows, norm_type == 0 ? 2 : norm_type, CN_DIMS(1), true);
    cn_tensor *scaled = cn_mul(rows, cn_rdiv_s(cn_add_s(length, 1e-7), max_norm));
    rows = cn_where(cn_gt_s(length, max_norm), scaled, rows);
    bool ok = cn_index_put_(weight, &at, 1, rows, false);
    cn_no_grad_end(ctx);
    cn_scope_end(ctx, s);
    return ok;
}

/* Results from the padding row are detached: the row has no gradient. */
static cn_tensor *forward(cn_module *m, cn_tensor *x)
{
    const embedding *e = cn_module_data(m);
    if (!cn__embedding_renorm(e->weight, x, e->max_norm, e->norm_type)) return NULL;
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

cn_tensor *cn__embedding_initial(cn_ctx *ctx, int64_t rows, int64_t width, int64_t padding)
{
    cn_tensor *w = cn_randn(ctx, ctx->default_dtype, CN_DIMS(rows, width));
    if (padding < 0) return w;
    cn_tensor *zeros = cn_zeros(ctx, ctx->default_dtype, CN_DIMS(1, width));
    return cn_slice_assign(w, 0, padding, padding + 1, 1, zeros);
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
    if (desc && !cn__check_renorm(ctx, "Embedding", desc->max_norm, desc->norm_type)) return NULL;
    cn_module *m = cn_module_new(ctx, &embedding_type);
    if (!m) return NULL;
    embedding *e = cn_module_data(m);
    *e = (embedding){ .rows = rows, .width = width, .padding = padding };
    if (desc) e->max_norm = desc->max_norm, e->norm_type = desc->norm_type;
    cn_scope s = cn_scope_begin(ctx);
    e->weight = cn_module_param(m, "weight", cn__embedding_initial(ctx, rows, width, padding));
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}
