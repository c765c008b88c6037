/* Reductions that are composed of others: those without NaN, counts, and those with two results. */
#include <math.h>

#include "ops/reduce/reduce.h"

static cn_tensor *without_nan(cn_tensor *x)
{
    return cn_dtype_is_float(cn__dtype(x)) ? cn_masked_fill(x, cn_isnan(x), 0) : x;
}

cn_tensor *cn_nansum(cn_tensor *x, cn_dims axes, bool keepdim)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, scope, cn_sum(without_nan(x), axes, keepdim));
}

cn_tensor *cn_nanmean(cn_tensor *x, cn_dims axes, bool keepdim)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *wide = cn__wide_float("nanmean", x), *y = NULL;
    if (wide) {
        cn_tensor *count = cn_sum(cn_logical_not(cn_isnan(x)), axes, keepdim);
        y = cn__as(cn_div(cn_sum(without_nan(wide), axes, keepdim), count), cn__dtype(x));
    }
    return cn_scope_return(x->ctx, scope, y);
}

cn_tensor *cn_count_nonzero(cn_tensor *x, cn_dims axes)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, scope, cn_sum(cn_ne_s(x, 0), axes, false));
}

/* Of two results: writes the second, or nothing if the first has failed. */
static cn_tensor *both(cn_tensor *first, cn_tensor *second, cn_tensor **out)
{
    if (!first || !second) return NULL;
    if (out) *out = second;
    return first;
}

cn_tensor *cn_aminmax(cn_tensor *x, cn_dims axes, bool keepdim, cn_tensor **max)
{
    if (max) *max = NULL;
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? both(cn_min(x, axes, keepdim), cn_max(x, axes, keepdim), max) : NULL;
}

cn_tensor *cn_var_mean(cn_tensor *x, cn_dims axes, double correction, bool keepdim, cn_tensor **mean)
{
    if (mean) *mean = NULL;
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? both(cn_var(x, axes, correction, keepdim), cn_mean(x, axes, keepdim), mean) : NULL;
}

cn_tensor *cn_std_mean(cn_tensor *x, cn_dims axes, double correction, bool keepdim, cn_tensor **mean)
{
    if (mean) *mean = NULL;
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? both(cn_std(x, axes, correction, keepdim), cn_mean(x, axes, keepdim), mean) : NULL;
}

cn_tensor *cn_normalize(cn_tensor *x, double p, int64_t axis, double eps)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *length = cn_norm(x, p, CN_DIMS(axis), true);
    return cn_scope_return(x->ctx, scope, cn_div(x, cn_clamp(length, eps, INFINITY)));
}
