/* cairn/optim.h: optimizers, which compute new parameters from gradients. PyTorch's torch.optim.

       cn_optim *opt = cn_adamw(cn, cn_parameters(mlp), &(cn_adamw_desc){ .lr = 1e-3 });
       cn_backward(loss);
       cn_clip_grad_norm(cn_optim_params(opt), 1.0, NULL);     optional
       cn_step(opt);                                           new parameters; the gradients are cleared
       cn_schedule_step(s);                                    schedule.h: new learning rates

   Formulas   PyTorch's. Lion's, which PyTorch does not have, stands below. cn_step skips a parameter that has no
              gradient: its state and its count of steps do not change.
   Numbers    In a descriptor 0 means PyTorch's default, which stands beside the field; CN_ZERO means 0. The numbers are
              arguments of plans: a new learning rate or step never rebuilds a plan.
   Evaluation cn_step computes everything pending, as cn_eval_all does: the loss, and all else that is wanted.
   State      A parameter's first step makes its states, of its shape. States of halves are f32, and halves are updated
              in f32.
   Embeddings The gradient of cn_embedding's weight has rows for the indices that were looked up. cn_sgd without momentum
              and decay, and cn_sparse_adam, then write only these rows: the whole gradient is never computed, unless
              something else reads it. No option is needed; the bits are the same either way.
   Accumulation  Gradients of several cn_backward add up until cn_step or cn_optim_zero_grad.
   Ownership  An optimizer belongs to its context until cn_optim_free. It keeps its parameters.
   Errors     cn_step does nothing while the context has an error. If it fails, parameters, states, counts and gradients
              are as before.

   The end of this header has the steps of SGD and Adam as functions, without an object. */
#ifndef CAIRN_OPTIM_H
#define CAIRN_OPTIM_H

#include "dict.h"
#include "grad.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_ZERO (-1e-300) /* in a descriptor: 0, where a plain 0 means the default */

typedef struct cn_optim cn_optim;

/* ---- makers. The fields have PyTorch's names, and the comments give their defaults. keep_gradients: cn_step does not
   clear the gradients ---- */

typedef struct cn_sgd_desc {
    double lr;                   /* 1e-3 */
    double momentum, dampening, weight_decay;
    bool nesterov, maximize, keep_gradients;
} cn_sgd_desc;
CN_API cn_optim *cn_sgd(cn_ctx *ctx, cn_params params, const cn_sgd_desc *desc);

typedef struct cn_adam_desc {
    double lr;                   /* 1e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    double weight_decay;         /* Adam: 0, added to gradients; AdamW: 0.01, shrinks parameters */
    bool amsgrad, maximize, keep_gradients;
} cn_adam_desc;
typedef cn_adam_desc cn_adamw_desc;
CN_API cn_optim *cn_adam(cn_ctx *ctx, cn_params params, const cn_adam_desc *desc);
CN_API cn_optim *cn_adamw(cn_ctx *ctx, cn_params params, const cn_adamw_desc *desc);

/* SparseAdam: Adam that changes only the rows of a parameter whose gradient is not all zeros, and the same rows of its
   states. For embeddings of many rows, of which a step reads few. Parameters must be matrices. */
typedef struct cn_sparse_adam_desc {
    double lr;                   /* 1e-3 */
    double beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    bool maximize, keep_gradients;
} cn_sparse_adam_desc;
CN_API cn_optim *cn_sparse_adam(cn_ctx *ctx, cn_params params, const cn_sparse_adam_desc *desc);

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

/* Muon: for matrices only. Give biases, norms and embeddings to another optimizer. */
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
    bool full_precision;         /* Newton-Schulz steps in f32 (f64 for f64), not in bf16 as in PyTorch */
    bool keep_gradients;
} cn_muon_desc;
CN_API cn_optim *cn_muon(cn_ctx *ctx, cn_params params, const cn_muon_desc *desc);

typedef struct cn_rprop_desc {
    double lr;                     /* 0.01: the first step size */
    double eta_minus, eta_plus;    /* 0.5, 1.2: factors where the gradient changes its sign, and where it keeps it */
    double step_min, step_max;     /* 1e-6, 50 */
    bool maximize, keep_gradients;
} cn_rprop_desc;
CN_API cn_optim *cn_rprop(cn_ctx *ctx, cn_params params, const cn_rprop_desc *desc);

typedef struct cn_asgd_desc {
    double lr;                     /* 0.01 */
    double lambd, alpha, t0;       /* 1e-4, 0.75, 1e6 */
    double weight_decay;
    bool maximize, keep_gradients;
} cn_asgd_desc;
/* The average of the parameters is the state "ax". */
CN_API cn_optim *cn_asgd(cn_ctx *ctx, cn_params params, const cn_asgd_desc *desc);

typedef struct cn_adafactor_desc {
    double lr;                     /* 0.01 */
    double beta2_decay;            /* -0.8 */
    double eps1, eps2;             /* the dtype's epsilon, 1e-3 */
    double d;                      /* 1 */
    double weight_decay;
    bool maximize, keep_gradients;
} cn_adafactor_desc;
/* The state of a matrix is a row and a column. */
CN_API cn_optim *cn_adafactor(cn_ctx *ctx, cn_params params, const cn_adafactor_desc *desc);

/* L-BFGS: a step (cn_step_closure) is a whole minimisation of up to max_iter iterations. It has one group. */
typedef struct cn_lbfgs_desc {
    double lr;                     /* 1 */
    int max_iter;                  /* 20 */
    int max_eval;                  /* of the closure; max_iter · 5/4 */
    double tolerance_grad;         /* 1e-7 */
    double tolerance_change;       /* 1e-9 */
    int history_size;              /* 100 */
    bool strong_wolfe;             /* searches along each direction; else the step size is lr */
    bool maximize;
} cn_lbfgs_desc;
CN_API cn_optim *cn_lbfgs(cn_ctx *ctx, cn_params params, const cn_lbfgs_desc *desc);

CN_API void cn_optim_free(cn_optim *opt);              /* NULL is allowed; its schedules step no more */

/* ---- using an optimizer ---- */

CN_API bool cn_step(cn_optim *opt);
/* A step with a function that computes the loss: it calls cn_backward and returns the loss. The gradients are cleared
   before each call. LBFGS calls it several times, other optimizers once. *loss (may be NULL) becomes the first loss. */
typedef cn_tensor *(*cn_closure)(void *user);
CN_API bool cn_step_closure(cn_optim *opt, cn_closure closure, void *user, double *loss);
CN_API void cn_optim_zero_grad(cn_optim *opt);         /* clears the gradients of all its parameters */
CN_API cn_ctx *cn_optim_context(const cn_optim *opt);
CN_API cn_params cn_optim_params(const cn_optim *opt); /* of all groups, in order; valid until a group is added */

/* Adds a group: parameters with numbers of their own. Group 0 holds the parameters that the optimizer was made with.
   Returns the number of the new group, or -1 after an error. A parameter may be in one group only. */
typedef struct cn_group_desc {
    double lr, weight_decay, eps;  /* 0: the optimizer's */
    double momentum;               /* beta1 of optimizers that have betas */
    double beta2;                  /* RMSprop's alpha, Adadelta's rho */
} cn_group_desc;
CN_API int cn_optim_add_group(cn_optim *opt, cn_params params, const cn_group_desc *desc);
CN_API int cn_optim_groups(const cn_optim *opt);
CN_API cn_params cn_optim_group_params(const cn_optim *opt, int group);
/* In these functions 0 means 0. NaN or false: an error, because there is no such group or the number is not allowed. */
CN_API double cn_optim_lr(const cn_optim *opt, int group);
CN_API bool cn_optim_set_lr(cn_optim *opt, int group, double lr);
CN_API double cn_optim_momentum(const cn_optim *opt, int group);             /* beta1 of optimizers that have betas */
CN_API bool cn_optim_set_momentum(cn_optim *opt, int group, double momentum);
CN_API double cn_optim_weight_decay(const cn_optim *opt, int group);
CN_API bool cn_optim_set_weight_decay(cn_optim *opt, int group, double weight_decay);

/* Saves the state to a dict and loads it. As in PyTorch, parameters have numbers: the tensors are prefix +
   "state/0/exp_avg", ..., the texts prefix + "state/0/step", "param_groups/0/lr", ... The dict keeps the saved values
   when later steps change the state. Loading checks kind, groups and shapes first; after an error it has changed
   nothing. A run that continues from a loaded state gives the same bits. If a dict also holds a model's parameters,
   give both a prefix: cn_module_load refuses names that the model does not have. */
CN_API bool cn_optim_save(cn_optim *opt, cn_dict *dict, const char *prefix);
CN_API bool cn_optim_load(cn_optim *opt, const cn_dict *dict, const char *prefix);

/* ---- clipping gradients before a step; parameters without a gradient are skipped ---- */

typedef struct cn_clip_desc {
    double norm_type;            /* 2; INFINITY: the largest absolute value */
    bool error_if_nonfinite;     /* computes the norm at once; if it is not finite, no gradient changes */
} cn_clip_desc;
/* Scales all gradients by min(1, max_norm / (norm + 1e-6)). Returns the norm of all gradients together, before scaling,
   as a pending tensor. NULL: an error, and no gradient has changed. */
CN_API cn_tensor *cn_clip_grad_norm(cn_params params, double max_norm, const cn_clip_desc *desc);
CN_API bool cn_clip_grad_value(cn_params params, double clip_value); /* to [-clip_value, clip_value] */

/* ---- steps without an object: you hold parameters and states in arrays ----

       cn_adam_step(p, m, v, n, &(cn_adam_step_desc){ .lr = 1e-3, .step = t });     t = 1, 2, ...
       for (int i = 0; i < n; i++) cn_zero_grad(p[i]);
       cn_eval_all(cn);

   State      One kept tensor for each parameter, of its shape and of a floating type (f32 for halves), zeros at first.
   Gradients  cn_grad_of(p[i]), which do not change. A parameter without a gradient is skipped, with its state.
   Errors     false, and an error in the context; no parameter and no state has changed. */

typedef struct cn_sgd_step_desc {
    double lr;
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
    int64_t step;                  /* 1: the first step, to which dampening does not apply */
} cn_sgd_step_desc;
/* buf may be NULL if momentum is 0. */
CN_API bool cn_sgd_step(cn_tensor *const *p, cn_tensor *const *buf, int n, const cn_sgd_step_desc *desc);

typedef struct cn_adam_step_desc {
    double lr;
    double beta1, beta2, eps;      /* 0: 0.9, 0.999, 1e-8 */
    double weight_decay;
    bool decoupled;                /* AdamW: the decay shrinks parameters; it does not add to gradients */
    bool maximize;
    int64_t step;                  /* 1, 2, ... */
    cn_tensor *const *vmax;        /* AMSGrad's largest v so far, a state like m and v; NULL: plain Adam */
} cn_adam_step_desc;
CN_API bool cn_adam_step(cn_tensor *const *p, cn_tensor *const *m, cn_tensor *const *v, int n,
                         const cn_adam_step_desc *desc);

/* ---- a step of any optimizer without an object: for bindings, whose programs may change every number and every state
   between two steps ----

       cn_held h = { .param = w };
       cn_optim_numbers n = { .lr = 1e-3, .momentum = 0.9, .beta2 = 0.999, .eps = 1e-8 };
       cn_held_step(cn, "adam", &n, &h, 1);            as often as there are groups
       cn_eval_all(cn);

   Numbers    0 means 0: there are no defaults.
   State      A step makes the states that a parameter lacks, and keeps them for you: cn_release them. It counts `step`.
   Gradients  cn_grad_of(param), which do not change. A parameter without a gradient is skipped.
   Errors     false; nothing has changed. If cn_eval_all fails, parameters and states have their old values, too; `step`
              and `product` have counted. */

#define CN_OPTIM_STATES 3                           /* the most state tensors of a parameter */
typedef struct cn_optim_numbers {
    double lr, weight_decay, eps;
    double momentum;                                /* or beta1 */
    double beta2;                                   /* RMSprop's alpha, Adadelta's rho */
    double dampening, momentum_decay, lr_decay, initial_value;
    bool nesterov, maximize, amsgrad, decoupled, centered;
    bool no_nesterov, full_precision;               /* Muon's */
    double coefficients[3];
    int ns_steps;
    cn_muon_adjust adjust;
    double eta_minus, eta_plus, step_min, step_max; /* Rprop's */
    double lambd, power, t0;                        /* ASGD's; power is its alpha */
    double beta2_decay, eps1, d;                    /* Adafactor's; its eps is eps2. eps1 0: the dtype's */
} cn_optim_numbers;

typedef struct cn_held {
    cn_tensor *param;
    cn_tensor *state[CN_OPTIM_STATES];              /* under the names of cn_held_state; NULL: none yet */
    int64_t step;                                   /* steps so far */
    double product;                                 /* NAdam's mu_product, 1 before the first step; ASGD's eta */
} cn_held;
/* optimizer: the name of its maker without cn_, "adamw". LBFGS has no such step. */
CN_API bool cn_held_step(cn_ctx *ctx, const char *optimizer, const cn_optim_numbers *numbers, cn_held *held, int n);
CN_API const char *cn_held_state(const char *optimizer, int k); /* PyTorch's name of state k; NULL: there is none */

#ifdef __cplusplus
}
#endif
#endif
