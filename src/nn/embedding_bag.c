/* EmbeddingBag: means, sums or largest elements of rows of a table. Called with (bags,n), or by cn_forward_all with
   indices (n), offsets (bags) or NULL, and weights of the indices. */
#include <stdio.h>

#include "nn/nn.h"

typedef struct bag {
    int64_t rows, width;
    cn_nn_embedding_bag_desc desc;
    cn_tensor *weight;
} bag;

static bool forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const bag *b = cn_module_data(m);
    cn_ctx *ctx = cn_module_context(m);
    if (n_in < 1 || n_in > 3 || n_out > 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "forward accepts indices, offsets and per_sample_weights and returns y; got %d operands and %d "
                        "results",
                        n_in, n_out);
    const cn_nn_embedding_bag_desc *d = &b->desc;
    cn_embedding_bag_desc call = { .mode = d->mode,
                                   .include_last_offset = d->include_last_offset,
                                   .has_padding = d->has_padding,
                                   .padding_idx = d->padding_idx,
                                   .per_sample_weights = n_in > 2 ? in[2] : NULL };
    if (!cn__embedding_renorm(b->weight, in[0], d->max_norm, d->norm_type)) return false;
    cn_tensor *y = cn_embedding_bag(b->weight, in[0], n_in > 1 ? in[1] : NULL, &call);
    if (n_out == 1) out[0] = y;
    return y != NULL;
}

static void describe(const cn_module *m, char *out, size_t size)
{
    static const char *const modes[] = { "mean", "sum", "max" };
    const bag *b = cn_module_data(m);
    int n = snprintf(out, size, "%lld, %lld, %s", (long long)b->rows, (long long)b->width, modes[b->desc.mode]);
    if (b->desc.has_padding && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", padding %lld", (long long)b->desc.padding_idx);
}

static const cn_module_type bag_type = {
    .name = "EmbeddingBag", .forward_all = forward, .data_bytes = sizeof(bag), .describe = describe
};

cn_module *cn_nn_embedding_bag(cn_ctx *ctx, int64_t rows, int64_t width, const cn_nn_embedding_bag_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    bag made = { .rows = rows, .width = width, .desc = desc ? *desc : (cn_nn_embedding_bag_desc){ .max_norm = 0 } };
    cn_nn_embedding_bag_desc *d = &made.desc;
    if (d->has_padding && d->padding_idx < 0) d->padding_idx += rows;
    if (rows < 1 || width < 1 || (d->has_padding && (d->padding_idx < 0 || d->padding_idx >= rows))) {
        cn__fail(ctx, CN_BAD_ARGUMENT,
                 "EmbeddingBag: rows and width must be > 0 and padding_idx one of the rows, got %lld, %lld and %lld",
                 (long long)rows, (long long)width, (long long)(desc ? desc->padding_idx : 0));
        return NULL;
    }
    if (!cn__check_renorm(ctx, "EmbeddingBag", d->max_norm, d->norm_type)) return NULL;
    if ((unsigned)d->mode > CN_BAG_MAX) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "EmbeddingBag: mode must be a cn_bag_mode, got %d", (int)d->mode);
        return NULL;
    }
    cn_module *m = cn_module_new(ctx, &bag_type);
    if (!m) return NULL;
    bag *b = cn_module_data(m);
    *b = made;
    cn_scope s = cn_scope_begin(ctx);
    cn_tensor *initial = cn__embedding_initial(ctx, rows, width, d->has_padding ? d->padding_idx : -1);
    b->weight = cn_module_param(m, "weight", initial);
    cn_scope_end(ctx, s);
    return cn_module_made(m);
}
