/* CosineSimilarity and PairwiseDistance: of two tensors. */
#include <math.h>
#include <stdio.h>

#include "nn/nn.h"

typedef struct distance {
    int64_t axis;
    double p, eps;
    bool keepdim;
} distance;

static bool two_operands(cn_module *m, int n_in, int n_out)
{
    return (n_in == 2 && n_out <= 1) ||
           cn__fail(cn_module_context(m), CN_BAD_ARGUMENT,
                    "%s: forward accepts x1 and x2 and returns one tensor; got %d operands and %d results",
                    cn_module_type_of(m)->name, n_in, n_out);
}

static bool cosine_forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const distance *d = cn_module_data(m);
    if (!two_operands(m, n_in, n_out)) return false;
    cn_tensor *y = cn_cosine_similarity(in[0], in[1], d->axis, d->eps);
    if (n_out) out[0] = y;
    return y != NULL;
}

static bool pairwise_forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    const distance *d = cn_module_data(m);
    if (!two_operands(m, n_in, n_out)) return false;
    cn_tensor *y = cn_pairwise_distance(in[0], in[1], d->p, d->eps, d->keepdim);
    if (n_out) out[0] = y;
    return y != NULL;
}

static void cosine_describe(const cn_module *m, char *out, size_t size)
{
    const distance *d = cn_module_data(m);
    snprintf(out, size, "axis %lld, eps %g", (long long)d->axis, d->eps);
}

static void pairwise_describe(const cn_module *m, char *out, size_t size)
{
    const distance *d = cn_module_data(m);
    snprintf(out, size, "p %g, eps %g%s", d->p, d->eps, d->keepdim ? ", keeps the axis" : "");
}

static const cn_module_type cosine_type = { .name = "CosineSimilarity",
                                            .forward_all = cosine_forward,
                                            .data_bytes = sizeof(distance),
                                            .describe = cosine_describe };
static const cn_module_type pairwise_type = { .name = "PairwiseDistance",
                                              .forward_all = pairwise_forward,
                                              .data_bytes = sizeof(distance),
                                              .describe = pairwise_describe };

static cn_module *make(cn_ctx *ctx, const cn_module_type *type, distance d)
{
    cn_module *m = cn_module_new(ctx, type);
    if (m) *(distance *)cn_module_data(m) = d;
    return m;
}

cn_module *cn_nn_cosine_similarity(cn_ctx *ctx, int64_t axis, double eps)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (axis >= -CN_MAX_DIMS && axis < CN_MAX_DIMS && !isnan(eps))
        return make(ctx, &cosine_type, (distance){ .axis = axis, .eps = eps });
    cn__fail(ctx, CN_BAD_ARGUMENT, "CosineSimilarity: axis must be from %d to %d, and eps a number, got %lld and %g",
             -CN_MAX_DIMS, CN_MAX_DIMS - 1, (long long)axis, eps);
    return NULL;
}

cn_module *cn_nn_pairwise_distance(cn_ctx *ctx, double p, double eps, bool keepdim)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!isnan(p) && !isnan(eps))
        return make(ctx, &pairwise_type, (distance){ .p = p, .eps = eps, .keepdim = keepdim });
    cn__fail(ctx, CN_BAD_ARGUMENT, "PairwiseDistance: p and eps must be numbers, got %g and %g", p, eps);
    return NULL;
}
