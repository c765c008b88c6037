/* adam.c: adam_step and amsgrad_step, with both kinds of weight decay.

       g = sign g + decay p          m = m + (1 - beta1)(g - m)          v = beta2 v + (1 - beta2) g²
       p = shrink p - rate m / (√v / root + eps)                          AMSGrad: the largest v so far in the root */
#include "ops/shared.h"

#include <math.h>

#include "cairn/optim.h"
#include "ops/kernels.h"
#include "optim.h"

#define NUMBERS(rate, beta1, beta2, root, eps, decay, shrink, sign)                                            \
    CN_ARGS({ .f = rate }, { .f = beta1 }, { .f = beta2 }, { .f = root },                                    \
              { .f = eps },  { .f = decay }, { .f = shrink }, { .f = sign })
#define EARLY     NUMBERS(0.5, 0.9, 0.999, 0.0316, 1e-8, 0, 1, 1)
#define DECOUPLED NUMBERS(0.01, 0.9, 0.99, 0.7, 1e-3, 0, 0.99, 1)
#define COUPLED   NUMBERS(0.01, 0.4, 0.95, 1, 1e-8, 0.1, 1, -1)
/* Ranges of p, g, m, v and the largest v, with signs for which no result is small by cancellation. */
#define UP(...) \
    CN_RANGE(3, 5, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__)
#define DOWN(...) \
    CN_RANGE(-5, -3, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(-2, -0.5, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__)
#define UP_TOP(...) \
    CN_RANGE(3, 5, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__)
#define DOWN_TOP(...) \
    CN_RANGE(-5, -3, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(-2, -0.5, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__)
#define UPDATE                                                                                                 \
    "let g = select(p7 * y, p7 * y + p5 * x, p5 != 0); r1 = mixed(z, g, q1); r2 = u * p2 + q2 * g * g; "

const cn_op cn__op_adam_step = {
    .call = "_adam_step(Tensor param, Tensor grad, Tensor m, Tensor v, float rate, float beta1, float beta2, "
            "float root, float eps, float weight_decay, float shrink, float sign) -> (Tensor param, Tensor m, "
            "Tensor v)",
    .name = "adam_step", .doc = "New p, m and v from p, g, m and v: one step of Adam or AdamW.", .kind = CN_MAP,
    .n_in = 4, .n_out = 3, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(adam_step),
    .wgsl = UPDATE "r0 = x * p6 - p0 * r1 / (sqrt(r2) / p3 + p4);",
    CN_CASES({ CN_IN(UP(2, 3, 4)), EARLY }, { CN_IN(DOWN(7)), COUPLED }, { CN_IN(UP(65, 67)), DECOUPLED },
             { CN_IN(UP(3, 0)), EARLY }, { CN_IN(UP(1)), DECOUPLED }, { CN_IN(DOWN(5, 7)), COUPLED },
             { CN_IN(CN_RANGE(3, 5, 2, 1, 4), CN_RANGE(0.5, 2, 3, 1), CN_RANGE(0.5, 2, 1), CN_RANGE(0.5, 2, 4)),
               EARLY }),
};

const cn_op cn__op_amsgrad_step = {
    .call = "_amsgrad_step(Tensor param, Tensor grad, Tensor m, Tensor v, Tensor max_v, float rate, float beta1, "
            "float beta2, float root, float eps, float weight_decay, float shrink, float sign) -> (Tensor param, "
            "Tensor m, Tensor v, Tensor max_v)",
    .name = "amsgrad_step", .doc = "The same with the largest v so far as fifth operand and fourth result.",
    .kind = CN_MAP, .n_in = 5, .n_out = 4, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(amsgrad_step),
    .wgsl = UPDATE "r3 = larger(v, r2); r0 = x * p6 - p0 * r1 / (sqrt(r3) / p3 + p4);",
    CN_CASES({ CN_IN(UP_TOP(2, 3, 4)), EARLY }, { CN_IN(DOWN_TOP(7)), COUPLED }, { CN_IN(UP_TOP(65, 67)), DECOUPLED },
             { CN_IN(UP_TOP(3, 0)), EARLY }, { CN_IN(UP_TOP(1)), DECOUPLED }),
};

void cn__adam_args(const cn_adam_step_desc *d, cn_arg args[CN_MAX_ARGS])
{
    memset(args, 0, sizeof *args * CN_MAX_ARGS);
    args[CN__ADAM_RATE].f = d->lr / (1 - pow(d->beta1, (double)d->step));
    args[CN__ADAM_BETA1].f = d->beta1;
    args[CN__ADAM_BETA2].f = d->beta2;
    args[CN__ADAM_ROOT].f = sqrt(1 - pow(d->beta2, (double)d->step));
    args[CN__ADAM_EPS].f = d->eps;
    args[CN__ADAM_DECAY].f = d->decoupled ? 0 : d->weight_decay;
    args[CN__ADAM_SHRINK].f = d->decoupled ? 1 - d->lr * d->weight_decay : 1;
    args[CN__ADAM_SIGN].f = d->maximize ? -1 : 1;
}

bool cn_adam_step(cn_tensor *const *p, cn_tensor *const *m, cn_tensor *const *v, int n, const cn_adam_step_desc *desc)
{
    cn_adam_step_desc d = desc ? *desc : (cn_adam_step_desc){ 0 };
    cn_ctx *ctx = p && n > 0 && p[0] ? p[0]->ctx : NULL;
    if (ctx && d.step < 1)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "adam_step: step must be ≥ 1, got %lld", (long long)d.step);
    if (ctx && (!m || !v)) return cn__fail(ctx, CN_BAD_ARGUMENT, "adam_step: m and v must not be NULL");
    if (d.beta1 == 0) d.beta1 = 0.9;
    if (d.beta2 == 0) d.beta2 = 0.999;
    if (d.eps == 0) d.eps = 1e-8;
    cn_arg args[CN_MAX_ARGS];
    cn__adam_args(&d, args);
    cn_tensor *const *tensors[] = { p, m, v, d.vmax };
    return cn__step_all(d.vmax ? &cn__op_amsgrad_step : &cn__op_adam_step, tensors, n, args);
}
