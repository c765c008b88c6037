/* Margin losses, and the distances they measure. At its kink max(0, x) has gradient 0. */
#include <math.h>

#include "nn/loss.h"

static cn_tensor *where_is(cn_tensor *target, double value, cn_tensor *x)
{
    return cn_where(cn_eq_s(target, value), x, cn__weak(x, 0));
}
static cn_tensor *unless_is(cn_tensor *target, double value, cn_tensor *x)
{
    return cn_where(cn_eq_s(target, value), cn__weak(x, 0), x);
}

static const cn_margin_loss_desc usual = { .reduction = CN_MEAN };

/* ---- targets 1 and -1 ---- */

cn_tensor *cn_hinge_embedding_loss(cn_tensor *input, cn_tensor *target, const cn_margin_loss_desc *desc)
{
    cn__loss l;
    if (!desc) desc = &usual;
    const double margin = desc->margin != 0 || desc->no_margin ? desc->margin : 1;
    if (!cn__loss_begin(&l, "hinge_embedding_loss", input, target, desc->reduction)) return NULL;
    cn_tensor *each = NULL;
    /* as in PyTorch, a target that is neither 1 nor -1 counts as both */
    if (cn__loss_alike(&l, input, target, "target"))
        each = cn_add(unless_is(target, 1, cn_relu(cn_rsub_s(input, margin))), unless_is(target, -1, input));
    return cn__loss_end(&l, each);
}

cn_tensor *cn_margin_ranking_loss(cn_tensor *input1, cn_tensor *input2, cn_tensor *target,
                                  const cn_margin_loss_desc *desc)
{
    cn__loss l;
    if (!desc) desc = &usual;
    if (!cn__loss_begin(&l, "margin_ranking_loss", input1, input2, desc->reduction)) return NULL;
    const bool fits = cn__loss_alike(&l, input1, input2, "input2") && cn__loss_alike(&l, input1, target, "target");
    cn_tensor *each = NULL;
    if (fits) each = cn_relu(cn_add_s(cn_mul(cn_neg(target), cn_sub(input1, input2)), desc->margin));
    return cn__loss_end(&l, each);
}

cn_tensor *cn_soft_margin_loss(cn_tensor *input, cn_tensor *target, const cn_plain_loss_desc *desc)
{
    cn__loss l;
    if (!cn__loss_begin(&l, "soft_margin_loss", input, target, desc ? desc->reduction : CN_MEAN)) return NULL;
    const bool fits = cn__loss_alike(&l, input, target, "target");
    return cn__loss_end(&l, fits ? cn_neg(cn_log_sigmoid(cn_mul(input, target))) : NULL);
}

/* Σ ab / √((Σ aa + ε)(Σ bb + ε)) over the last axis. cn_cosine_similarity differs for short vectors. */
static cn_tensor *cosine(cn_tensor *a, cn_tensor *b)
{
    const double epsilon = 1e-12f; /* PyTorch has it in single precision */
    const cn_dims last = CN_DIMS(-1);
    cn_tensor *aa = cn_add_s(cn_sum(cn_square(a), last, false), epsilon);
    cn_tensor *bb = cn_add_s(cn_sum(cn_square(b), last, false), epsilon);
    return cn_div(cn_sum(cn_mul(a, b), last, false), cn_sqrt(cn_mul(aa, bb)));
}

static cn_tensor *cosine_embedding(cn__loss *l, cn_tensor *a, cn_tensor *b, cn_tensor *target, double margin)
{
    char s[96], t[96];
    if (!cn__loss_alike(l, a, b, "input2") || !cn__of_context(l->ctx, target, l->who, "target")) return NULL;
    cn_layout samples = *cn__layout(a);
    if (--samples.ndim < 0 || samples.ndim > 1 || !cn__same_shape(&samples, cn__layout(target))) {
        cn__fail(l->ctx, CN_BAD_SHAPE, "%s: inputs and target must be (N, D) and (N), or (D) and (), got %s and %s",
                 l->who, cn__shape_text(cn__layout(a), s, sizeof s), cn__shape_text(cn__layout(target), t, sizeof t));
        return NULL;
    }
    cn_tensor *c = cosine(a, b), *apart = cn_relu(cn_sub_s(c, margin));
    return cn_add(where_is(target, 1, cn_rsub_s(c, 1)), where_is(target, -1, apart));
}

cn_tensor *cn_cosine_embedding_loss(cn_tensor *input1, cn_tensor *input2, cn_tensor *target,
                                    const cn_margin_loss_desc *desc)
{
    cn__loss l;
    if (!desc) desc = &usual;
    if (!cn__loss_begin(&l, "cosine_embedding_loss", input1, input2, desc->reduction)) return NULL;
    return cn__loss_end(&l, cosine_embedding(&l, input1, input2, target, desc->margin));
}

/* ---- classes ---- */

static bool check_multi_margin(cn__loss *l, cn_tensor *x, cn_tensor *target, double p, cn_tensor *weight)
{
    char s[96], t[96];
    if (!cn__of_context(l->ctx, target, l->who, "target")) return false;
    if (weight && !cn__of_context(l->ctx, weight, l->who, "weight")) return false;
    cn_layout samples = *cn__layout(x);
    samples.ndim--;
    const cn_dtype dtype = cn__dtype(target);
    if (samples.ndim < 0 || samples.ndim > 1 || !cn__same_shape(&samples, cn__layout(target)))
        return cn__fail(l->ctx, CN_BAD_SHAPE,
                        "%s: input and target must be (N, C) and (N), or (C) and (), got %s and %s", l->who,
                        cn__shape_text(cn__layout(x), s, sizeof s), cn__shape_text(cn__layout(target), t, sizeof t));
    if (dtype != CN_I32 && dtype != CN_I64)
        return cn__fail(l->ctx, CN_BAD_DTYPE, "%s: target must be i32 or i64, got %s", l->who, cn_dtype_name(dtype));
    if (p != 1 && p != 2) return cn__fail(l->ctx, CN_BAD_ARGUMENT, "%s: p must be 1 or 2, got %g", l->who, p);
    const int64_t classes = cn_size(x, -1);
    if (weight && (cn_ndim(weight) != 1 || cn_size(weight, 0) != classes))
        return cn__fail(l->ctx, CN_BAD_SHAPE, "%s: weight must be [%lld], one number for each class, got %s", l->who,
                        (long long)classes, cn__shape_text(cn__layout(weight), s, sizeof s));
    return true;
}

cn_tensor *cn_multi_margin_loss(cn_tensor *input, cn_tensor *target, const cn_multi_margin_desc *desc)
{
    static const cn_multi_margin_desc plain = { .reduction = CN_MEAN };
    cn__loss l;
    if (!desc) desc = &plain;
    const double margin = desc->margin != 0 || desc->no_margin ? desc->margin : 1, p = desc->p != 0 ? desc->p : 1;
    if (!cn__loss_begin(&l, "multi_margin_loss", input, target, desc->reduction)) return NULL;
    if (!check_multi_margin(&l, input, target, p, desc->weight)) return cn__loss_end(&l, NULL);
    const int64_t classes = cn_size(input, -1);
    cn_tensor *at = cn_unsqueeze(target, -1), *own = cn_gather(input, -1, at);
    cn_tensor *short_of = cn_relu(cn_add_s(cn_sub(input, own), margin));
    if (p == 2) short_of = cn_square(short_of);
    cn_tensor *is_own = cn_eq(at, cn_arange(l.ctx, CN_I64, 0, (double)classes, 1));
    short_of = cn_masked_fill(short_of, is_own, 0);
    if (desc->weight) short_of = cn_mul(short_of, cn_take(desc->weight, at));
    return cn__loss_end(&l, cn_div_s(cn_sum(short_of, CN_DIMS(-1), false), (double)classes));
}

/* ---- distances ---- */

/* Begins a call with two tensors. The context is NULL, with an error, unless both are alive and of one context. */
static cn__call enter_pair(cn_tensor *a, cn_tensor *b, const char *who)
{
    cn__call call = cn__enter_tensor(a ? a : b, who);
    if (!call.ctx || (cn__of_context(call.ctx, a, who, "x1") && cn__of_context(call.ctx, b, who, "x2"))) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

cn_tensor *cn_cosine_similarity(cn_tensor *a, cn_tensor *b, int64_t axis, double eps)
{
    CN__CALL call = enter_pair(a, b, __func__);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = a->ctx;
    const cn_scope scope = cn_scope_begin(ctx);
    cn_tensor *product = cn_mul(a, b);
    if (!product) return cn_scope_return(ctx, scope, NULL);
    if (!cn_dtype_is_float(cn__dtype(product))) product = cn_cast(product, CN_F32);
    a = cn_expand(a, cn_shape(product));
    b = cn_expand(b, cn_shape(product));
    cn_tensor *lengths[2] = { cn_norm(cn_cast(a, cn_type(product)), 2, CN_DIMS(axis), true),
                              cn_norm(cn_cast(b, cn_type(product)), 2, CN_DIMS(axis), true) };
    for (int i = 0; i < 2; i++) lengths[i] = cn__loss_raised(lengths[i], eps);
    cn_tensor *cos = cn_sum(cn_mul(cn_div(a, lengths[0]), cn_div(b, lengths[1])), CN_DIMS(axis), false);
    return cn_scope_return(ctx, scope, cos);
}

cn_tensor *cn_pairwise_distance(cn_tensor *a, cn_tensor *b, double p, double eps, bool keepdim)
{
    CN__CALL call = enter_pair(a, b, __func__);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(a->ctx);
    return cn_scope_return(a->ctx, scope, cn_norm(cn_add_s(cn_sub(a, b), eps), p, CN_DIMS(-1), keepdim));
}

static cn_tensor *triplet_margin(cn__loss *l, cn_tensor *const *x, const cn_triplet_margin_desc *desc)
{
    const double p = desc->p != 0 ? desc->p : 2, eps = desc->eps != 0 ? desc->eps : 1e-6;
    const double margin = desc->margin != 0 ? desc->margin : 1;
    if (!(margin > 0)) {
        cn__fail(l->ctx, CN_BAD_ARGUMENT, "%s: margin must be > 0, got %g", l->who, margin);
        return NULL;
    }
    if (!cn__loss_alike(l, x[0], x[1], "positive") || !cn__loss_alike(l, x[0], x[2], "negative")) return NULL;
    cn_tensor *near = cn_pairwise_distance(x[0], x[1], p, eps, false);
    cn_tensor *far = cn_pairwise_distance(x[0], x[2], p, eps, false);
    if (desc->swap) far = cn_minimum(far, cn_pairwise_distance(x[1], x[2], p, eps, false));
    return cn_relu(cn_add_s(cn_sub(near, far), margin));
}

cn_tensor *cn_triplet_margin_loss(cn_tensor *anchor, cn_tensor *positive, cn_tensor *negative,
                                  const cn_triplet_margin_desc *desc)
{
    static const cn_triplet_margin_desc plain = { .reduction = CN_MEAN };
    cn__loss l;
    if (!desc) desc = &plain;
    if (!cn__loss_begin(&l, "triplet_margin_loss", anchor, positive, desc->reduction)) return NULL;
    return cn__loss_end(&l, triplet_margin(&l, (cn_tensor *[]){ anchor, positive, negative }, desc));
}
