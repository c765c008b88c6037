/* Functions that the makers of layers share: initial values, options for each axis, errors about shapes. */
#include <stdarg.h>
#include <stdio.h>

#include "core/layout.h"
#include "nn/nn.h"

cn_tensor *cn__uniform(cn_ctx *ctx, cn_dims shape, double bound)
{
    cn_scope s = cn_scope_begin(ctx);
    return cn_scope_return(ctx, s, cn_mul_s(cn_sub_s(cn_rand(ctx, ctx->default_dtype, shape), 0.5), 2 * bound));
}

bool cn__per_axis(cn_ctx *ctx, const char *who, const char *what, int axes, cn_dims each, int64_t all, int64_t usual,
                  int64_t least, int64_t *out)
{
    if (each.n != 0 && each.n != axes)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s needs %d numbers, one for each axis, got %d", who, what, axes,
                        each.n);
    for (int d = 0; d < axes; d++) {
        out[d] = each.n ? each.v[d] : all ? all : usual;
        if (out[d] < least || out[d] > INT32_MAX)
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: %s must be from %lld to %d, got %lld", who, what,
                            (long long)least, INT32_MAX, (long long)out[d]);
    }
    return true;
}

const char *cn__by_text(const int64_t *v, int n, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? "x" : "", (long long)v[d]);
    return out;
}

cn_tensor *cn__wrong_shape(cn_tensor *x, const char *rule, ...)
{
    char message[160], shape[128];
    va_list list;
    va_start(list, rule);
    vsnprintf(message, sizeof message, rule, list);
    va_end(list);
    cn__shape_text(&cn__result_of(x)->meta->layout, shape, sizeof shape);
    cn__fail(x->ctx, CN_BAD_SHAPE, "%s, got %s", message, shape);
    return NULL;
}
