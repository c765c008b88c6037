/* rebind.c: plain numbers as operands, and how in-place forms end. */
#include "ops/shared.h"

#include <math.h>

/* In PyTorch a number takes part by its kind alone: a float among whole numbers makes a float. */
cn_tensor *cn__weak(cn_tensor *x, double value)
{
    if (!x) return NULL;
    cn_dtype t = cn__dtype(x);
    if (!cn_dtype_is_float(t)) t = value == floor(value) && isfinite(value) ? CN_I64 : CN_F32;
    return cn__number(x->ctx, value, t, true);
}

static int category(cn_dtype t) { return t == CN_BOOL ? 0 : cn_dtype_is_float(t) ? 2 : 1; }

bool cn__rebind(cn_tensor *x, cn_tensor *y)
{
    if (!x || !y) return false;
    char s[96], t[96];
    if (!cn__same_shape(cn__layout(x), cn__layout(y)))
        return cn__fail(x->ctx, CN_BAD_SHAPE, "in place: a result of shape %s does not fit into %s",
                        cn__shape_text(cn__layout(y), s, sizeof s), cn__shape_text(cn__layout(x), t, sizeof t));
    if (category(cn__dtype(y)) > category(cn__dtype(x)))
        return cn__fail(x->ctx, CN_BAD_DTYPE, "in place: a result of %s does not fit into %s",
                        cn_dtype_name(cn__dtype(y)), cn_dtype_name(cn__dtype(x)));
    cn__node *old = x->ref.node, *new = y->ref.node;
    if (!new->needs_grad) return cn_assign(x, y);
    if (old->grad_leaf)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT,
                        "in place: not on a leaf that requires a gradient; use cn_no_grad_begin, or cn_assign");
    if (cn__dtype(y) != cn__dtype(x)) y = cn_cast(y, cn__dtype(x));
    if (y) cn__handle_rebind(x, y->ref); /* the gradient flows through */
    return y != NULL;
}
