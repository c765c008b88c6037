/* cairn/optim.h: optimizer steps: every parameter and its state get their new values, by one kernel for all of them.

       cn_backward(loss);
       cn_adam_step(p, m, v, n, &(cn_adam_desc){ .lr = 1e-3, .step = t });     t = 1, 2, ...
       for (int i = 0; i < n; i++) cn_zero_grad(p[i]);
       cn_eval_all(cn);

   Formulas   PyTorch's (torch.optim.SGD, Adam, AdamW), in its order of operations.
   State      One tensor a parameter, of its shape, kept, zeros at the start; of any floating type (f32 beside halves).
   Gradients  cn_grad_of(p[i]), and left as they are. A parameter without one is passed over, with its state.
   Numbers    None of them is structure: a new learning rate, decay or step never rebuilds a plan.
   Errors     Either all parameters and states are assigned or none: false, and an error in the context. */
#ifndef CAIRN_OPTIM_H
#define CAIRN_OPTIM_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_sgd_desc {
    double lr;
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
    int64_t step;                  /* 1: the buffers are filled by the gradients as they are; matters with dampening only */
} cn_sgd_desc;
/* buf may be NULL if there is no momentum. */
CN_API bool cn_sgd_step(cn_tensor *const *p, cn_tensor *const *buf, int n, const cn_sgd_desc *desc);

typedef struct cn_adam_desc {
    double lr;
    double beta1, beta2, eps;      /* 0: 0.9, 0.999, 1e-8 */
    double weight_decay;
    bool decoupled;                /* AdamW: the decay shrinks parameters instead of adding to gradients */
    bool maximize;
    int64_t step;                  /* 1, 2, ... */
    cn_tensor *const *vmax;        /* AMSGrad: the largest v so far, a state like m and v; NULL: plain Adam */
} cn_adam_desc;
CN_API bool cn_adam_step(cn_tensor *const *p, cn_tensor *const *m, cn_tensor *const *v, int n, const cn_adam_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
