/* sgd.c: sgd_step and momentum_step.

       g = sign g + decay p          b = momentum b + fresh g
       p = p - lr g, with momentum p - lr b, Nesterov's p - lr (g + momentum b) */
#include "ops/shared.h"

#include "cairn/optim.h"
#include "ops/kernels.h"
#include "optim.h"

#define SLOPE "let g = select(p2 * y, p2 * y + p1 * x, p1 != 0); "
#define TWO(...) CN_RANGE(3, 5, __VA_ARGS__), CN_S(__VA_ARGS__)
#define PLAIN    CN_ARGS({ .f = 0.1 }, { .f = 0 }, { .f = 1 })
#define DECAYING CN_ARGS({ .f = 0.1 }, { .f = 0.01 }, { .f = -1 })

const cn_op cn__op_sgd_step = {
    .call = "_sgd_step(Tensor param, Tensor grad, float lr, float weight_decay, float sign) -> Tensor",
    .name = "sgd_step", .doc = "New p from p and g: one step of gradient descent.", .kind = CN_MAP, .n_in = 2,
    .n_out = 1, .cheap = true, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(sgd_step),
    .wgsl = "x - p0 * select(p2 * y, p2 * y + p1 * x, p1 != 0)",
    CN_CASES({ CN_IN(TWO(2, 3, 4)), PLAIN }, { CN_IN(TWO(7)), DECAYING },
             { CN_IN(TWO(65, 67)), DECAYING }, { CN_IN(TWO(3, 0)), PLAIN },
             { CN_IN(TWO(1)), PLAIN }),
};

#define HEAVY(decay, sign, momentum, fresh, nesterov)                                                         \
    CN_ARGS({ .f = 0.1 }, { .f = decay }, { .f = sign }, { .f = momentum }, { .f = fresh }, { .f = nesterov })
/* Ranges of p, g and b, with signs for which no result is small by cancellation. */
#define UP(...) CN_RANGE(3, 5, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__)
#define DOWN(...) CN_RANGE(-5, -3, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(-2, -0.5, __VA_ARGS__)

const cn_op cn__op_momentum_step = {
    .call = "_momentum_step(Tensor param, Tensor grad, Tensor buffer, float lr, float weight_decay, float sign, "
            "float momentum, float fresh, bool nesterov) -> (Tensor param, Tensor buffer)",
    .name = "momentum_step", .doc = "New p and b from p, g and b: one step of gradient descent with momentum.",
    .kind = CN_MAP, .n_in = 3, .n_out = 2, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(momentum_step),
    .wgsl = SLOPE "r1 = z * p3 + p4 * g; r0 = x - p0 * select(r1, g + p3 * r1, p5 != 0);",
    CN_CASES({ CN_IN(UP(2, 3, 4)), HEAVY(0, 1, 0.9, 1, 0) }, { CN_IN(UP(7)), HEAVY(0.01, 1, 0.9, 1, 1) },
             { CN_IN(DOWN(65, 67)), HEAVY(0.01, -1, 0.5, 0.7, 0) }, { CN_IN(UP(3, 0)), HEAVY(0, 1, 0.9, 1, 1) },
             { CN_IN(UP(1)), HEAVY(0, 1, 0.9, 0.5, 0) }),
};

void cn__sgd_args(const cn_sgd_step_desc *d, cn_arg args[CN_MAX_ARGS])
{
    memset(args, 0, sizeof *args * CN_MAX_ARGS);
    args[CN__SGD_LR].f = d->lr;
    args[CN__SGD_DECAY].f = d->weight_decay;
    args[CN__SGD_SIGN].f = d->maximize ? -1 : 1;
    args[CN__SGD_MOMENTUM].f = d->momentum;
    args[CN__SGD_FRESH].f = d->step == 1 ? 1 : 1 - d->dampening;
    args[CN__SGD_NESTEROV].f = d->nesterov;
}

bool cn_sgd_step(cn_tensor *const *p, cn_tensor *const *buf, int n, const cn_sgd_step_desc *desc)
{
    cn_sgd_step_desc d = desc ? *desc : (cn_sgd_step_desc){ 0 };
    cn_ctx *ctx = p && n > 0 && p[0] ? p[0]->ctx : NULL;
    if (ctx && d.momentum != 0 && !buf)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "sgd_step: buf must not be NULL when momentum is not 0");
    if (ctx && d.nesterov && (d.momentum <= 0 || d.dampening != 0))
        return cn__fail(ctx, CN_BAD_ARGUMENT, "sgd_step: nesterov needs momentum > 0 and dampening 0, got %g and %g",
                        d.momentum, d.dampening);
    cn_arg args[CN_MAX_ARGS];
    cn__sgd_args(&d, args);
    cn_tensor *const *tensors[] = { p, buf };
    return cn__step_all(d.momentum != 0 ? &cn__op_momentum_step : &cn__op_sgd_step, tensors, n, args);
}
