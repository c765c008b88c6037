#include "support/epilogues.h"

#include <stdio.h>
#include <string.h>

const char *epilogue_name(epilogue_kind kind)
{
    static const char *const names[TAILS] = { "plain", "row", "reshaped", "random" };
    return names[kind];
}

/* Numbers that are there before anything else is computed. */
static cn_tensor *some(cn_ctx *ctx, cn_dtype dtype, cn_dims shape)
{
    cn_tensor *t = cn_cast(cn_mul_s(cn_rand(ctx, CN_F32, shape), 5), dtype);
    cn_eval(t);
    return t;
}

static cn_tensor *flat(cn_tensor *t) { return cn_reshape(t, CN_DIMS(cn_numel(t))); }

static cn_tensor *behind(cn_ctx *ctx, cn_tensor *y, cn_tensor *const *other, epilogue_kind kind)
{
    cn_tensor *z = cn_add(cn_mul_s(y, 2), other[0]);
    switch (kind) {
    case EPILOGUE_ROW: return cn_mul(z, other[1]);
    case EPILOGUE_RESHAPED: return cn_sub(flat(z), cn_mul(flat(y), other[2]));
    case EPILOGUE_RANDOM: return cn_mul(z, cn_cast(cn_mul_s(cn_rand(ctx, CN_F32, cn_shape(y)), 3), cn_type(y)));
    default: return z;
    }
}

bool epilogue_run(cn_ctx *ctx, const trial *t, const inputs *x, epilogue_kind kind, bool together, output *z, bool *inside)
{
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_seed(ctx, 7);
    make_tensors(ctx, x, LAYOUT_CONTIGUOUS, in);
    bool ok = call(ctx, t, in, out);
    if (ok) {
        const cn_dims shape = cn_shape(out[0]), row = { shape.n > 0, { shape.n ? shape.v[shape.n - 1] : 0 } };
        const cn_dtype dtype = cn_type(out[0]);
        cn_tensor *other[3] = { some(ctx, dtype, shape), some(ctx, dtype, row),
                                some(ctx, dtype, CN_DIMS(cn_numel(out[0]))) };
        for (int k = 1; k < t->op->n_out; k++) cn_keep(out[k]);
        if (!together) ok = cn_eval(cn_keep(out[0]));
        /* rolled, it is no result of the plan and lies in place of what it was computed from: to compute it twice would show */
        cn_tensor *y = cn_roll(flat(behind(ctx, out[0], other, kind)), CN_DIMS(1), CN_DIMS(0));
        char plan[8192], name[64];
        snprintf(name, sizeof name, "%s+", t->op->name);
        *inside = cn_plan_print(y, plan, sizeof plan) && strstr(plan, name);
        ok = take_output(&z[0], y) && ok;
    }
    for (int k = 1; k < t->op->n_out; k++) ok = take_output(&z[k], ok ? out[k] : NULL) && ok;
    cn_scope_end(ctx, s);
    return ok;
}
