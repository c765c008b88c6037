/* cairn/optim.h: optimizers: what turns gradients into new parameters. PyTorch's torch.optim.

       cn_optim *opt = cn_adamw(cn, cn_parameters(mlp), &(cn_adamw_desc){ .lr = 1e-3 });
       cn_backward(loss);
       cn_clip_grad_norm(cn_optim_params(opt), 1.0, NULL);     may be left out
       cn_step(opt);                                           new parameters; the gradients are forgotten
       cn_schedule_step(s);                                    schedule.h: new learning rates

   Formulas   PyTorch's; Lion's, which it has not, stands below. A parameter without a gradient is passed over, with its
              state and its count of steps.
   Numbers    0 in a descriptor stands for PyTorch's default, which stands beside the field; CN_ZERO for 0 itself. None
              of them is structure: a new learning rate or step never rebuilds a plan.
   Evaluation cn_step computes everything pending, as cn_eval_all does: the loss and what else was made on the way too.
   State      Made by a parameter's first step, of its shape; f32 beside halves, which are computed in f32.
   Accumulation  Gradients of several cn_backward add up until cn_step or cn_optim_zero_grad.
   Ownership  An optimizer belongs to its context until cn_optim_free. It keeps its parameters.
   Errors     cn_step refuses while an error stands. If it fails, parameters, states, counts and gradients are as
              before.

   The steps of SGD and Adam alone, without an object, are at the end. */
#ifndef CAIRN_OPTIM_H
#define CAIRN_OPTIM_H

#include "dict.h"
#include "grad.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_ZERO (-1e-300) /* in a descriptor: 0 itself, where a plain 0 stands for a default */

typedef struct cn_optim cn_optim;

/* ---- making one; the fields have PyTorch's names. keep_gradients: cn_step leaves them for you to forget ---- */

typedef struct cn_sgd_desc {
    double lr;                   /* 1e-3 */
    double momentum, dampening, weight_decay;
    bool nesterov, maximize, keep_gradients;
} cn_sgd_desc;
CN_API cn_optim *cn_sgd(cn_ctx *ctx, cn_params params, const cn_sgd_desc *desc);

typedef struct cn_adam_desc {
    double lr;                   /* 1e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    double weight_decay;         /* Adam: 0, added to gradients; AdamW: 0.01, shrinks parameters (CN_ZERO: none) */
    bool amsgrad, maximize, keep_gradients;
} cn_adam_desc;
typedef cn_adam_desc cn_adamw_desc;
CN_API cn_optim *cn_adam(cn_ctx *ctx, cn_params params, const cn_adam_desc *desc);
CN_API cn_optim *cn_adamw(cn_ctx *ctx, cn_params params, const cn_adamw_desc *desc);

typedef struct cn_nadam_desc {
    double lr;                   /* 2e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    double weight_decay;
    double momentum_decay;       /* 4e-3 */
    bool decoupled_weight_decay, maximize, keep_gradients;
} cn_nadam_desc;
CN_API cn_optim *cn_nadam(cn_ctx *ctx, cn_params params, const cn_nadam_desc *desc);

typedef struct cn_radam_desc {
    double lr;                   /* 1e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    double weight_decay;
    bool decoupled_weight_decay, maximize, keep_gradients;
} cn_radam_desc;
CN_API cn_optim *cn_radam(cn_ctx *ctx, cn_params params, const cn_radam_desc *desc);

typedef struct cn_adamax_desc {
    double lr;                   /* 2e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    double weight_decay;
    bool maximize, keep_gradients;
} cn_adamax_desc;
CN_API cn_optim *cn_adamax(cn_ctx *ctx, cn_params params, const cn_adamax_desc *desc);

typedef struct cn_rmsprop_desc {
    double lr;                   /* 0.01 */
    double alpha, eps;           /* 0.99, 1e-8 */
    double weight_decay, momentum;
    bool centered, maximize, keep_gradients;
} cn_rmsprop_desc;
CN_API cn_optim *cn_rmsprop(cn_ctx *ctx, cn_params params, const cn_rmsprop_desc *desc);

typedef struct cn_adagrad_desc {
    double lr;                   /* 0.01 */
    double lr_decay, weight_decay, initial_accumulator_value;
    double eps;                  /* 1e-10 */
    bool maximize, keep_gradients;
} cn_adagrad_desc;
CN_API cn_optim *cn_adagrad(cn_ctx *ctx, cn_params params, const cn_adagrad_desc *desc);

typedef struct cn_adadelta_desc {
    double lr;                   /* 1 */
    double rho, eps;             /* 0.9, 1e-6 */
    double weight_decay;
    bool maximize, keep_gradients;
} cn_adadelta_desc;
CN_API cn_optim *cn_adadelta(cn_ctx *ctx, cn_params params, const cn_adadelta_desc *desc);

/* Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms"), m is 0 at the start:
       p ← p - lr (sign(beta1 m + (1 - beta1) g) + weight_decay p)          m ← beta2 m + (1 - beta2) g */
typedef struct cn_lion_desc {
    double lr;                   /* 1e-4 */
    double beta1, beta2;         /* 0.9, 0.99 */
    double weight_decay;
    bool maximize, keep_gradients;
} cn_lion_desc;
CN_API cn_optim *cn_lion(cn_ctx *ctx, cn_params params, const cn_lion_desc *desc);

/* Muon: matrices alone; give biases, norms and embeddings to another optimizer. */
typedef enum cn_muon_adjust {
    CN_MUON_ORIGINAL,            /* lr √max(1, rows/columns) */
    CN_MUON_MATCH_RMS_ADAMW,     /* lr 0.2 √max(rows, columns) */
    CN_MUON_SPECTRAL_UNCLAMPED,  /* lr √(rows/columns) */
} cn_muon_adjust;
typedef struct cn_muon_desc {
    double lr;                   /* 1e-3 */
    double weight_decay;         /* 0.1 */
    double momentum;             /* 0.95 */
    bool no_nesterov;
    double ns_coefficients[3];   /* all 0: 3.4445, -4.7750, 2.0315 */
    double eps;                  /* 1e-7 */
    int ns_steps;                /* 5 */
    cn_muon_adjust adjust_lr;
    bool full_precision;         /* the Newton-Schulz steps in f32 (f64 for f64) instead of bf16, PyTorch's */
    bool keep_gradients;
} cn_muon_desc;
CN_API cn_optim *cn_muon(cn_ctx *ctx, cn_params params, const cn_muon_desc *desc);

CN_API void cn_optim_free(cn_optim *opt);              /* NULL is fine; free its schedules first */

/* ---- using one ---- */

CN_API bool cn_step(cn_optim *opt);
CN_API void cn_optim_zero_grad(cn_optim *opt);         /* forgets the gradients of all its parameters */
CN_API cn_ctx *cn_optim_context(const cn_optim *opt);
CN_API cn_params cn_optim_params(const cn_optim *opt); /* of all groups, in order; good until a group is added */

/* More parameters, with numbers of their own. The first group, number 0, is what the optimizer was made with. Returns
   the number of the new group, -1 on error: a parameter that the optimizer has already is one. */
typedef struct cn_group_desc {
    double lr, weight_decay, eps;  /* 0: the optimizer's */
    double momentum;               /* or beta1, of those that have betas */
    double beta2;                  /* RMSprop's alpha, Adadelta's rho */
} cn_group_desc;
CN_API int cn_optim_add_group(cn_optim *opt, cn_params params, const cn_group_desc *desc);
CN_API int cn_optim_groups(const cn_optim *opt);
CN_API cn_params cn_optim_group_params(const cn_optim *opt, int group);
/* Here 0 is 0. NaN and false: there is no such group, or the number is not one. */
CN_API double cn_optim_lr(const cn_optim *opt, int group);
CN_API bool cn_optim_set_lr(cn_optim *opt, int group, double lr);
CN_API double cn_optim_momentum(const cn_optim *opt, int group);             /* beta1, of those that have betas */
CN_API bool cn_optim_set_momentum(cn_optim *opt, int group, double momentum);
CN_API double cn_optim_weight_decay(const cn_optim *opt, int group);
CN_API bool cn_optim_set_weight_decay(cn_optim *opt, int group, double weight_decay);

/* The state, by numbers of parameters as in PyTorch: tensors prefix + "state/0/exp_avg", texts prefix + "state/0/step",
   "param_groups/0/lr", ... What is saved is the value of now, whatever later steps do. Loading checks kind, groups and
   shapes first; then everything is loaded, or nothing. A run that goes on from a loaded state goes on bit for bit.
   In one dict with a model's parameters both need a prefix: cn_module_load refuses names it does not know. */
CN_API bool cn_optim_save(cn_optim *opt, cn_dict *dict, const char *prefix);
CN_API bool cn_optim_load(cn_optim *opt, const cn_dict *dict, const char *prefix);

/* ---- gradients before a step: of the parameters that have one ---- */

typedef struct cn_clip_desc {
    double norm_type;            /* 2; INFINITY: the largest */
    bool error_if_nonfinite;     /* computes the norm at once; if it is not finite, nothing is clipped */
} cn_clip_desc;
/* Scales them by min(1, max_norm / (norm + 1e-6)). Returns the norm of all of them together, before; nothing is
   computed yet. NULL: an error, and no gradient has changed. */
CN_API cn_tensor *cn_clip_grad_norm(cn_params params, double max_norm, const cn_clip_desc *desc);
CN_API bool cn_clip_grad_value(cn_params params, double clip_value); /* to [-clip_value, clip_value] */

/* ---- steps without an object: parameters and states in arrays of yours ----

       cn_adam_step(p, m, v, n, &(cn_adam_step_desc){ .lr = 1e-3, .step = t });     t = 1, 2, ...
       for (int i = 0; i < n; i++) cn_zero_grad(p[i]);
       cn_eval_all(cn);

   State      One tensor a parameter, of its shape, kept, zeros at the start; of any floating type (f32 beside halves).
   Gradients  cn_grad_of(p[i]), and left as they are. A parameter without one is passed over, with its state.
   Errors     Either all parameters and states are assigned or none: false, and an error in the context. */

typedef struct cn_sgd_step_desc {
    double lr;
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
    int64_t step;                  /* 1: the buffers are filled by the gradients as they are; only dampening asks */
} cn_sgd_step_desc;
/* buf may be NULL if there is no momentum. */
CN_API bool cn_sgd_step(cn_tensor *const *p, cn_tensor *const *buf, int n, const cn_sgd_step_desc *desc);

typedef struct cn_adam_step_desc {
    double lr;
    double beta1, beta2, eps;      /* 0: 0.9, 0.999, 1e-8 */
    double weight_decay;
    bool decoupled;                /* AdamW: the decay shrinks parameters instead of adding to gradients */
    bool maximize;
    int64_t step;                  /* 1, 2, ... */
    cn_tensor *const *vmax;        /* AMSGrad: the largest v so far, a state like m and v; NULL: plain Adam */
} cn_adam_step_desc;
CN_API bool cn_adam_step(cn_tensor *const *p, cn_tensor *const *m, cn_tensor *const *v, int n,
                         const cn_adam_step_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
