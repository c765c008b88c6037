/* rms.c: rmsprop_step, as it is and with momentum, centered, or both; adadelta_step.

       g = g + decay p          v = alpha v + (1 - alpha) g²
       centered: c = c + (1 - alpha)(g - c), and v - c² in the root
       w = g / (√v + eps), with momentum b = momentum b + w and w = b; Adadelta: w = √(d + eps) / √(v + eps) g,
       d = alpha d + (1 - alpha) w²
       p = p - rate w */
#include "ops/shared.h"

#include "ops/kernels.h"
#include "optim.h"

#define NUMBERS(rate, alpha, eps, decay, momentum)                                                             \
    CN_ARGS({ .f = rate }, { .f = alpha }, { .f = eps }, { .f = decay }, { .f = momentum })
#define PLAIN    NUMBERS(0.1, 0.99, 1e-8, 0, 0.9)
#define DECAYING NUMBERS(0.1, 0.4, 1e-3, 0.1, 0.5)
/* Ranges of p, g, v, c (small beside √v) and b, with signs for which no result is small by cancellation. */
#define P(...) CN_RANGE(5, 9, __VA_ARGS__)
#define G(...) CN_RANGE(-1.5, -0.5, __VA_ARGS__)
#define V(...) CN_RANGE(4, 9, __VA_ARGS__)
#define C(...) CN_RANGE(-0.5, -0.1, __VA_ARGS__)
#define B(...) CN_RANGE(-2, -0.5, __VA_ARGS__)
#define STEP(name_, in_, out_, doc_)                                                                           \
    .name = #name_, .doc = doc_, .kind = CN_MAP, .n_in = in_, .n_out = out_, .infer = cn_infer_map,            \
    CN__NO_GRADIENT, CN__STEP_LOOPS(name_)
#define SLOPE "let g = select(y, y + p3 * x, p3 != 0); r1 = z * p1 + q1 * g * g; "

const cn_op cn__op_rmsprop_step = {
    .call = "_rmsprop_step(Tensor param, Tensor grad, Tensor square_avg, float rate, float alpha, float eps, "
            "float weight_decay) -> (Tensor param, Tensor square_avg)",
    STEP(rmsprop_step, 3, 2, "New p and v from p, g and v: one step of RMSprop."),
    .wgsl = SLOPE "r0 = x - p0 * g / (sqrt(r1) + p2);",
    CN_CASES({ CN_IN(P(2, 3, 4), G(2, 3, 4), V(2, 3, 4)), PLAIN }, { CN_IN(P(7), G(7), V(7)), PLAIN },
             { CN_IN(P(65, 67), G(65, 67), V(65, 67)), PLAIN }, { CN_IN(P(3, 0), G(3, 0), V(3, 0)), PLAIN }),
};

const cn_op cn__op_rmsprop_momentum_step = {
    .call = "_rmsprop_momentum_step(Tensor param, Tensor grad, Tensor square_avg, Tensor buffer, float rate, "
            "float alpha, float eps, float weight_decay, float momentum) -> (Tensor param, Tensor square_avg, "
            "Tensor buffer)",
    STEP(rmsprop_momentum_step, 4, 3, "The same with a momentum buffer as fourth operand and third result."),
    .wgsl = SLOPE "r2 = u * p4 + g / (sqrt(r1) + p2); r0 = x - p0 * r2;",
    CN_CASES({ CN_IN(P(2, 3, 4), G(2, 3, 4), V(2, 3, 4), B(2, 3, 4)), PLAIN },
             { CN_IN(P(65, 67), G(65, 67), V(65, 67), B(65, 67)), PLAIN },
             { CN_IN(P(3, 0), G(3, 0), V(3, 0), B(3, 0)), PLAIN }),
};

const cn_op cn__op_rmsprop_centered_step = {
    .call = "_rmsprop_centered_step(Tensor param, Tensor grad, Tensor square_avg, Tensor grad_avg, float rate, "
            "float alpha, float eps, float weight_decay) -> (Tensor param, Tensor square_avg, Tensor grad_avg)",
    STEP(rmsprop_centered_step, 4, 3, "RMSprop with the mean of gradients as fourth operand and third result."),
    .wgsl = SLOPE "r2 = mixed(u, g, q1); r0 = x - p0 * g / (sqrt(r1 - r2 * r2) + p2);",
    CN_CASES({ CN_IN(P(2, 3, 4), G(2, 3, 4), V(2, 3, 4), C(2, 3, 4)), PLAIN },
             { CN_IN(P(65, 67), G(65, 67), V(65, 67), C(65, 67)), PLAIN },
             { CN_IN(P(7), CN_RANGE(0.5, 1.5, 7), V(7), CN_RANGE(0.1, 0.5, 7)), DECAYING },
             { CN_IN(P(3, 0), G(3, 0), V(3, 0), C(3, 0)), PLAIN }),
};

const cn_op cn__op_rmsprop_centered_momentum_step = {
    .call = "_rmsprop_centered_momentum_step(Tensor param, Tensor grad, Tensor square_avg, Tensor grad_avg, "
            "Tensor buffer, float rate, float alpha, float eps, float weight_decay, float momentum) -> (Tensor param, "
            "Tensor square_avg, Tensor grad_avg, Tensor buffer)",
    STEP(rmsprop_centered_momentum_step, 5, 4, "RMSprop with both: the mean of gradients, then the momentum buffer."),
    .wgsl = SLOPE "r2 = mixed(u, g, q1); r3 = v * p4 + g / (sqrt(r1 - r2 * r2) + p2); r0 = x - p0 * r3;",
    CN_CASES({ CN_IN(P(2, 3, 4), G(2, 3, 4), V(2, 3, 4), C(2, 3, 4), B(2, 3, 4)), PLAIN },
             { CN_IN(P(65, 67), G(65, 67), V(65, 67), C(65, 67), B(65, 67)), PLAIN },
             { CN_IN(P(3, 0), G(3, 0), V(3, 0), C(3, 0), B(3, 0)), PLAIN }),
};

const cn_op cn__op_adadelta_step = {
    .call = "_adadelta_step(Tensor param, Tensor grad, Tensor square_avg, Tensor delta_avg, float rate, float rho, "
            "float eps, float weight_decay) -> (Tensor param, Tensor square_avg, Tensor delta_avg)",
    STEP(adadelta_step, 4, 3, "New p, v and d from p, g, v and d: one step of Adadelta."),
    .wgsl = SLOPE "let w = sqrt(u + p2) / sqrt(r1 + p2) * g; r2 = u * p1 + q1 * w * w; r0 = x - p0 * w;",
    CN_CASES({ CN_IN(P(2, 3, 4), G(2, 3, 4), V(2, 3, 4), V(2, 3, 4)), PLAIN },
             { CN_IN(P(65, 67), G(65, 67), V(65, 67), V(65, 67)), PLAIN },
             { CN_IN(P(7), CN_RANGE(0.5, 1.5, 7), V(7), V(7)), DECAYING },
             { CN_IN(P(3, 0), G(3, 0), V(3, 0), V(3, 0)), PLAIN }),
};
