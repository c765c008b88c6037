/* rebind.c: cn__weak makes plain numbers operands, cn__check_fits checks them; cn__rebind gives a handle the result of
   an in-place form. */
#include "ops/shared.h"

#include <math.h>

/* As in PyTorch, only the kind of a number matters: a fraction and a tensor of whole numbers give a float. */
cn_tensor *cn__weak(cn_tensor *x, double value)
{
    if (!x) return NULL;
    cn_dtype t = cn__dtype(x);
    if (!cn_dtype_is_float(t)) t = value == floor(value) && cn__fits(CN_I64, value) ? CN_I64 : CN_F32;
    return cn__number(x->ctx, value, t, true);
}

bool cn__check_fits(cn_ctx *ctx, const char *who, const char *what, cn_dtype t, double value)
{
    return cn__fits(t, value) || cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must be within the range of %s, got %g", who,
                                          what, cn_dtype_name(t), value);
}

static int category(cn_dtype t) { return t == CN_BOOL ? 0 : cn_dtype_is_float(t) ? 2 : 1; }

bool cn__rebind(cn_tensor *x, cn_tensor *y)
{
    if (!x || !y) return false;
    char s[96], t[96];
    if (!cn__same_shape(cn__layout(x), cn__layout(y)))
        return cn__fail(x->ctx, CN_BAD_SHAPE, "in_place: the result has shape %s, but the tensor has shape %s",
                        cn__shape_text(cn__layout(y), s, sizeof s), cn__shape_text(cn__layout(x), t, sizeof t));
    if (category(cn__dtype(y)) > category(cn__dtype(x)))
        return cn__fail(x->ctx, CN_BAD_DTYPE, "in_place: the result is %s, which cannot be stored as %s",
                        cn_dtype_name(cn__dtype(y)), cn_dtype_name(cn__dtype(x)));
    cn__node *old = x->ref.node, *new = y->ref.node;
    if (!new->needs_grad) return cn_assign(x, y);
    if (old->grad_leaf)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "in_place: the tensor is a leaf that requires a gradient; use cn_no_grad_begin or cn_assign");
    if (cn__dtype(y) != cn__dtype(x)) y = cn_cast(y, cn__dtype(x));
    if (y) cn__handle_rebind(x, y->ref); /* the gradient flows through */
    return y != NULL;
}
