/* optim.h: what optimizer steps share.

   Operands of a step are p, g and the states; its results are the new p and the new states, in the same order. All
   numbers are arguments: p0, p1, ... in the order of these enums. */
#ifndef CN_OPS_OPTIM_H
#define CN_OPS_OPTIM_H

#include "cairn/op.h"
#include "cairn/optim.h"

enum { CN__SGD_LR, CN__SGD_DECAY, CN__SGD_SIGN, CN__SGD_MOMENTUM, CN__SGD_FRESH, CN__SGD_NESTEROV };
enum {
    CN__ADAM_RATE,   /* lr / (1 - beta1^step) */
    CN__ADAM_BETA1,
    CN__ADAM_BETA2,
    CN__ADAM_ROOT,   /* √(1 - beta2^step) */
    CN__ADAM_EPS,
    CN__ADAM_DECAY,  /* coupled: added to the gradient */
    CN__ADAM_SHRINK, /* decoupled: what p is multiplied by */
    CN__ADAM_SIGN,   /* of the gradient: -1 to maximize */
};

/* Writes the arguments from these numbers, without defaults. */
void cn__sgd_args(const cn_sgd_step_desc *d, cn_arg args[CN_MAX_ARGS]);
void cn__adam_args(const cn_adam_step_desc *d, cn_arg args[CN_MAX_ARGS]);
extern const cn_op cn__op_sgd_step, cn__op_momentum_step, cn__op_adam_step, cn__op_amsgrad_step;

enum {
    CN__MOMENT_RATE,
    CN__MOMENT_AHEAD,  /* of the gradient itself */
    CN__MOMENT_FRESH1, /* 1 - beta1 */
    CN__MOMENT_BETA2,
    CN__MOMENT_SCALE,  /* the divisor: scale √v + floor */
    CN__MOMENT_FLOOR,
    CN__MOMENT_DECAY,
    CN__MOMENT_SHRINK,
};
enum { CN__ADAMAX_RATE, CN__ADAMAX_FRESH1, CN__ADAMAX_BETA2, CN__ADAMAX_EPS, CN__ADAMAX_DECAY };
enum { CN__LION_LR, CN__LION_BETA1, CN__LION_BETA2, CN__LION_DECAY };
enum { CN__RMS_RATE, CN__RMS_ALPHA, CN__RMS_EPS, CN__RMS_DECAY, CN__RMS_MOMENTUM };
extern const cn_op cn__op_moment_step, cn__op_adamax_step, cn__op_lion_step, cn__op_adadelta_step;
extern const cn_op cn__op_rmsprop_step, cn__op_rmsprop_momentum_step, cn__op_rmsprop_centered_step,
    cn__op_rmsprop_centered_momentum_step;

/* Steps on rows. RATE is the learning rate, or a moment's 1 - beta; SQUARE is a bool. */
enum { CN__ROWS_RATE, CN__ROWS_FRESH1, CN__ROWS_FRESH2, CN__ROWS_EPS };
enum { CN__ROWS_SQUARE = 1 };
extern const cn_op cn__op_sgd_rows_step, cn__op_moment_rows_step, cn__op_adam_rows_step;
/* Whether the gradient g of p is that of an embedding, still pending: then the gradients of the rows that were looked
   up, and their indices. False can also mean an error. */
bool cn__rows_of(const cn_tensor *p, const cn_tensor *g, cn_tensor **rows, cn_tensor **index);
/* Plain SGD on such a gradient: the bits of sgd_step. NULL: g is not one, or there is an error. */
cn_tensor *cn__sgd_rows(cn_tensor *p, cn_tensor *g, double lr);
/* What adam_rows_step and moment_rows_step compute, from the dense gradient. */
cn_tensor *cn__moment_dense(cn_tensor *s, cn_tensor *g, const cn_arg *args);
cn_tensor *cn__adam_dense(cn_tensor *p, cn_tensor *g, cn_tensor *m, cn_tensor *v, const cn_arg *args);

/* Applies op to every parameter that has a gradient. tensors[0]: the n parameters; tensors[k]: their state k. */
bool cn__step_all(const cn_op *op, cn_tensor *const *const *tensors, int n, const cn_arg *args);

#define CN__STEP_LOOPS(f) .kernels_at = CN__AT(optim, f)
#define CN__NO_GRADIENT   .no_grad = "an update is not part of what is differentiated"

#endif
