/* moment.c: moment_step (NAdam, RAdam), adamax_step and lion_step: means of gradients, each divided in its own way.

       g = g + decay p          m = m + fresh1 (g - m)          v = beta2 v + (1 - beta2) g²
       p = shrink p - (ahead g + rate m) / (scale √v + floor)

   NAdam looks ahead by the gradient of now; RAdam has scale 0 and floor 1 while v is too young to divide by. */
#include "ops/shared.h"

#include "ops/kernels.h"
#include "optim.h"

/* Ranges of p, g, m and v, with signs for which no result is small by cancellation. */
#define FOUR(...) \
    CN_RANGE(3, 5, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__)
#define DOWN(...) \
    CN_RANGE(-5, -3, __VA_ARGS__), CN_RANGE(-2, -0.5, __VA_ARGS__), CN_RANGE(-2, -0.5, __VA_ARGS__), \
    CN_RANGE(0.5, 2, __VA_ARGS__)
#define THREE(...) CN_RANGE(3, 5, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__), CN_RANGE(0.5, 2, __VA_ARGS__)
#define MOMENT(rate, ahead, fresh1, beta2, scale, floor, decay, shrink)                                        \
    CN_ARGS({ .f = rate },  { .f = ahead }, { .f = fresh1 }, { .f = beta2 },                                 \
              { .f = scale }, { .f = floor }, { .f = decay },  { .f = shrink })
#define NESTEROV MOMENT(0.1, 0.05, 0.1, 0.999, 3, 1e-8, 0, 0.99)
#define YOUNG    MOMENT(0.1, 0, 0.2, 0.99, 0, 1, 0.1, 1)
#define OLD      MOMENT(0.1, 0, 0.6, 0.95, 1, 1e-3, 0, 1)
#define FEW(a, b, c, d, e) CN_ARGS({ .f = a }, { .f = b }, { .f = c }, { .f = d }, { .f = e })

const cn_op cn__op_moment_step = {
    .call = "_moment_step(Tensor param, Tensor grad, Tensor m, Tensor v, float rate, float ahead, float fresh1, "
            "float beta2, float scale, float floor, float weight_decay, float shrink) -> (Tensor param, Tensor m, "
            "Tensor v)",
    .name = "moment_step", .doc = "New p, m and v from p, g, m and v: one step of NAdam or RAdam.", .kind = CN_MAP,
    .n_in = 4, .n_out = 3, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(moment_step),
    .wgsl = "let g = select(y, y + p6 * x, p6 != 0); r1 = mixed(z, g, p2); r2 = u * p3 + q3 * g * g; "
            "let size = sqrt(r2) * p4 + p5; r0 = x * p7 - p1 * g / size - p0 * r1 / size;",
    CN_CASES({ CN_IN(FOUR(2, 3, 4)), NESTEROV }, { CN_IN(DOWN(7)), YOUNG }, { CN_IN(FOUR(65, 67)), OLD },
             { CN_IN(FOUR(3, 0)), OLD }, { CN_IN(FOUR(1)), YOUNG }),
};

const cn_op cn__op_adamax_step = {
    .call = "_adamax_step(Tensor param, Tensor grad, Tensor m, Tensor v, float rate, float fresh1, float beta2, "
            "float eps, float weight_decay) -> (Tensor param, Tensor m, Tensor v)",
    .name = "adamax_step", .doc = "New p, m and v from p, g, m and v: one step of Adamax.", .kind = CN_MAP,
    .n_in = 4, .n_out = 3, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(adamax_step),
    .wgsl = "let g = select(y, y + p4 * x, p4 != 0); r1 = mixed(z, g, p1); r2 = larger(u * p2, abs(g) + p3); "
            "r0 = x - p0 * r1 / r2;",
    CN_CASES({ CN_IN(FOUR(2, 3, 4)), FEW(0.1, 0.1, 0.999, 1e-8, 0) }, { CN_IN(DOWN(7)), FEW(0.1, 0.6, 0.9, 1e-3, 0.1) },
             { CN_IN(FOUR(65, 67)), FEW(0.1, 0.1, 0.5, 1e-8, 0.1) },
             { CN_IN(FOUR(3, 0)), FEW(0.1, 0.1, 0.9, 1e-8, 0) }),
};

const cn_op cn__op_lion_step = {
    .call = "_lion_step(Tensor param, Tensor grad, Tensor m, float lr, float beta1, float beta2, float weight_decay) "
            "-> (Tensor param, Tensor m)",
    .name = "lion_step", .doc = "New p and m from p, g and m: one step of Lion.", .kind = CN_MAP,
    .n_in = 3, .n_out = 2, .infer = cn_infer_map, CN__NO_GRADIENT, CN__STEP_LOOPS(lion_step),
    .wgsl = "let m = p1 * z + q1 * y; r0 = x - p0 * (f32(m > 0) - f32(m < 0) + p3 * x); r1 = p2 * z + q2 * y;",
    CN_CASES({ CN_IN(THREE(2, 3, 4)), FEW(0.1, 0.9, 0.99, 0, 0) }, { CN_IN(THREE(65, 67)), FEW(0.1, 0.5, 0.9, 0.1, 0) },
             { CN_IN(CN_RANGE(-5, -3, 7), CN_RANGE(-2, -0.5, 7), CN_RANGE(-2, -0.5, 7)),
               FEW(0.1, 0.9, 0.99, 0.1, 0) },
             { CN_IN(THREE(3, 0)), FEW(0.1, 0.9, 0.99, 0, 0) }),
};
