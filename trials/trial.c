/* trial.c: draws the operands of a case and calls its operator. */
#include "trials/trial.h"

#include <stdio.h>
#include <string.h>

/* An operator without operands says its dtype in its arguments. */
bool takes(const trial *t, cn_dtype dtype)
{
    uint32_t can = t->op->dtypes ? t->op->dtypes : CN_FLOATS;
    if (t->n_in == 0 || can & CN_BIT(dtype)) return true;
    if (dtype == CN_F16 || dtype == CN_BF16) return can & CN_BIT(CN_F32);
    return dtype == CN_I64 && t->op->ints_to_float;
}

bool has_grad(const cn_op *op) { return (op->grad || op->kind == CN_COMPOSITE) && !op->no_grad; }

bool is_differentiable(const trial *t, const inputs *x, int operand)
{
    const ref_tensor *o = &x->in[operand];
    return o->present && cn_dtype_is_float(o->dtype) && !(t->op->not_differentiable >> operand & 1);
}

bool draw(const trial *t, cn_dtype dtype, trial_layout layout, inputs *x)
{
    char name[96];
    snprintf(name, sizeof name, "%s %d", t->op->name, t->number);
    /* Users' indices may be i32; one of the dtypes tries that. The indices of a backward operator are always i64. */
    cn_dtype index = dtype == CN_BF16 && !strstr(t->op->name, "_backward") ? CN_I32 : CN_I64;
    return make_inputs(x, name, t->op, t->c, dtype, index, layout);
}

void make_tensors(cn_ctx *ctx, const inputs *x, trial_layout layout, cn_tensor **in)
{
    for (int k = 0; k < x->n; k++) in[k] = make_tensor(ctx, &x->in[k], layout);
}

bool call(cn_ctx *ctx, const trial *t, cn_tensor *const *in, cn_tensor **out)
{
    cn_arg args[CN_MAX_ARGS];
    cn_case_args(t->c, args);
    if (t->n_in) return cn_apply_n(t->op, in, t->n_in, t->c->attrs, args, out);
    out[0] = cn_apply_in(ctx, t->op, t->c->attrs, args);
    return out[0] != NULL;
}
