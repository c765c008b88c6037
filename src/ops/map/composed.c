/* Elementwise functions that are composed of others: nan_to_num, isclose, allclose, positive, angles. */
#include <float.h>
#include <math.h>

#include "ops/shared.h"

/* v as an element of type t: beyond the range of t it is infinite */
static double as_element(cn_dtype t, double v)
{
    uint64_t element = 0;
    cn__store_f64(t, &element, v);
    return cn__load_f64(t, &element);
}

static double largest(cn_dtype t)
{
    return t == CN_F16 ? 65504 : t == CN_BF16 ? 0x1.fep127 : t == CN_F32 ? FLT_MAX : DBL_MAX;
}

cn_tensor *cn_nan_to_num(cn_tensor *x, double nan, double posinf, double neginf)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    cn_dtype t = cn__dtype(x);
    if (!cn_dtype_is_float(t)) return cn_clone(x);
    const double top = isnan(posinf) ? largest(t) : posinf, bottom = isnan(neginf) ? -largest(t) : neginf;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *y = cn_masked_fill(x, cn_isnan(x), isnan(nan) ? 0 : as_element(t, nan));
    y = cn_masked_fill(y, cn_isposinf(x), as_element(t, top));
    return cn_scope_return(x->ctx, scope, cn_masked_fill(y, cn_isneginf(x), as_element(t, bottom)));
}

/* Differences of whole numbers are taken in f32, as in PyTorch. */
static cn_tensor *close_to(cn_tensor *x, cn_tensor *y, double rtol, double atol, bool equal_nan)
{
    cn_tensor *close = cn_eq(x, y);
    if (equal_nan && cn_dtype_is_float(cn__dtype(x)))
        close = cn_logical_or(close, cn_logical_and(cn_isnan(x), cn_isnan(y)));
    if (rtol == 0 && atol == 0) return close;
    if (!cn_dtype_is_float(cn__dtype(x))) x = cn_cast(x, CN_F32), y = cn_cast(y, CN_F32);
    cn_tensor *apart = cn_abs(cn_sub(x, y)), *allowed = cn_add_s(cn_abs(cn_mul_s(y, rtol)), atol);
    return cn_logical_or(close, cn_logical_and(cn_isfinite(apart), cn_le(apart, allowed)));
}

cn_tensor *cn_isclose(cn_tensor *x, cn_tensor *y, double rtol, double atol, bool equal_nan)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ x, y }, 2, __func__);
    if (!call.ctx) return NULL;
    if (cn__dtype(x) != cn__dtype(y))
        return cn__fail(x->ctx, CN_BAD_DTYPE, "isclose: both operands must have one dtype, got %s and %s",
                        cn_dtype_name(cn__dtype(x)), cn_dtype_name(cn__dtype(y))),
               NULL;
    if (!(rtol >= 0) || !(atol >= 0))
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "isclose: rtol and atol must be ≥ 0, got %g and %g", rtol, atol), NULL;
    const cn_scope scope = cn_scope_begin(x->ctx);
    return cn_scope_return(x->ctx, scope, close_to(x, y, rtol, atol, equal_nan));
}

bool cn_allclose(cn_tensor *x, cn_tensor *y, double rtol, double atol, bool equal_nan)
{
    CN__CALL call = cn__enter_list((cn_tensor *[]){ x, y }, 2, __func__);
    if (!call.ctx) return false;
    const cn_scope scope = cn_scope_begin(x->ctx);
    cn_tensor *all = cn_all(cn_isclose(x, y, rtol, atol, equal_nan), CN_ALL, false);
    const bool close = all && cn_item(all) == 1;
    cn_scope_end(x->ctx, scope);
    return close;
}

cn_tensor *cn_positive(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    if (cn__dtype(x) == CN_BOOL) return cn__fail(x->ctx, CN_BAD_DTYPE, "positive: input must not be bool"), NULL;
    return x;
}

#define DEGREES 57.295779513082320877

cn_tensor *cn_deg2rad(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_mul_s(x, 1 / DEGREES) : NULL;
}

cn_tensor *cn_rad2deg(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_mul_s(x, DEGREES) : NULL;
}
