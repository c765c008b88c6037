/* optim/optim.h: what an optimizer is: a rule for one parameter's new values, and the numbers and states it needs. */
#ifndef CN_OPTIM_OPTIM_H
#define CN_OPTIM_OPTIM_H

#include "cairn/cairn.h"
#include "core/object.h"
#include "ops/shared.h"

enum { CN__STATES = 3 }; /* tensors a parameter at most */

/* Numbers and options of a group, as they are used: no defaults left. */
typedef struct cn__hyper {
    double lr, weight_decay, eps;
    double momentum; /* or beta1 */
    double beta2;    /* alpha, rho */
    double dampening, momentum_decay, lr_decay, initial_value;
    bool nesterov, maximize, amsgrad, decoupled, centered;
    bool no_nesterov, full_precision; /* Muon's */
    double coefficients[3];
    int ns_steps;
    cn_muon_adjust adjust;
} cn__hyper;

/* One parameter's step: what a rule reads, and what it fills in. */
typedef struct cn__update {
    const cn__hyper *h;
    cn_tensor *p, *g;
    cn_tensor *state[CN__STATES]; /* those the rule uses */
    bool first;                   /* state 0 has not been used before */
    int64_t step;                 /* this one: 1, 2, ... */
    double product;               /* NAdam's, of the momenta; to be replaced */
    cn_tensor *new_p, *new_state[CN__STATES];
} cn__update;

typedef struct cn__rule {
    const char *name;
    const char *state[CN__STATES];        /* PyTorch's names; NULL ends them */
    unsigned (*uses)(const cn__hyper *h); /* bit k: state k */
    void (*update)(cn__update *u);        /* a NULL among the results: an error stands */
    bool (*accepts)(cn_tensor *p);        /* false: an error stands; NULL: any parameter */
    bool has_momentum;                    /* that a schedule may move */
    bool has_betas;                       /* momentum is beta1 */
} cn__rule;

typedef struct cn__param_group {
    cn__hyper h;
    double initial_lr; /* what schedules start from; NaN: none has been made */
    int first, n;      /* its parameters */
} cn__param_group;

typedef struct cn__param_slot {
    cn_tensor *p; /* kept */
    int group;
    int64_t step; /* taken so far */
    double product;
    cn_tensor *state[CN__STATES]; /* kept; NULL before they are needed */
    /* during a step */
    bool moved;
    unsigned fresh; /* bit k: state k was made by it */
    double next_product;
    cn_tensor *forgotten; /* its gradient, held until the step has succeeded */
} cn__param_slot;

struct cn_optim {
    cn__object object;
    const cn__rule *rule;
    cn__hyper h; /* what new groups start from */
    bool keep_gradients;
    cn__vec groups; /* of cn__param_group */
    cn__vec slots;  /* of cn__param_slot, group after group */
    cn__vec params; /* of cn_tensor *, the same */
    cn__vec of, to; /* of cn_tensor *: room for a step's assignments */
};

static inline cn__param_group *cn__optim_group(const cn_optim *opt, int i) { return (cn__param_group *)opt->groups.v + i; }
static inline cn__param_slot *cn__optim_slot(const cn_optim *opt, size_t i) { return (cn__param_slot *)opt->slots.v + i; }

/* What a descriptor's number means. */
static inline double cn__given(double value, double otherwise)
{
    return value == 0 ? otherwise : value == CN_ZERO ? 0 : value;
}
/* Checks the numbers; NULL: an error stands. */
cn_optim *cn__optim_new(cn_ctx *ctx, const cn__rule *rule, const cn__hyper *h, cn_params params, bool keep_gradients);
bool cn__hyper_check(cn_ctx *ctx, const cn__rule *rule, const cn__hyper *h);
/* A state of p, in the current scope: full of value. */
cn_tensor *cn__state_new(cn_tensor *p, double value);
static inline cn_dtype cn__state_dtype(const cn_tensor *p) { return cn__dtype(p) == CN_F64 ? CN_F64 : CN_F32; }

/* For rules that are one operator: op on p, g (its sign turned to maximize) and the states. */
void cn__update_by(cn__update *u, const cn_op *op, const cn_arg *args);
cn_tensor *cn__toward(cn_tensor *a, cn_tensor *b, double w); /* lerp by a number */

#endif
