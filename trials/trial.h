/* trial.h: one case of one operator, which can be drawn in any dtype and layout and called in any context. */
#ifndef TRIALS_TRIAL_H
#define TRIALS_TRIAL_H

#include "trials/compare.h"
#include "trials/make.h"

typedef struct trial {
    const cn_op *op;
    const cn_case *c;
    int number, n_in; /* of the case among the operator's, and of its operands */
} trial;

bool takes(const trial *t, cn_dtype dtype); /* as the operator's record says */
bool has_grad(const cn_op *op);             /* a gradient of its own, or by the operators that it is composed of */
bool is_differentiable(const trial *t, const inputs *x, int operand);

bool draw(const trial *t, cn_dtype dtype, trial_layout layout, inputs *x); /* false: not possible in this dtype */
void make_tensors(cn_ctx *ctx, const inputs *x, trial_layout layout, cn_tensor **in);
/* An operator that is composed of others on the context's device has only its first result; the others become NULL. */
bool call(cn_ctx *ctx, const trial *t, cn_tensor *const *in, cn_tensor **out);

#endif
