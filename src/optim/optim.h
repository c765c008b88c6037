/* optim/optim.h: the parts of an optimizer: a rule that computes one parameter's new value, the numbers of its groups,
   and the states of its parameters. */
#ifndef CN_OPTIM_OPTIM_H
#define CN_OPTIM_OPTIM_H

#include "cairn/cairn.h"
#include "core/object.h"
#include "ops/shared.h"

enum { CN__STATES = CN_OPTIM_STATES };

typedef cn_optim_numbers cn__hyper; /* of a group, with all defaults filled in */

/* One step of one parameter: what a rule reads, and what it fills in. */
typedef struct cn__update {
    const cn__hyper *h;
    cn_tensor *p, *g;
    cn_tensor *state[CN__STATES]; /* those the rule uses */
    bool first;                   /* this step is the first that uses state 0 */
    int64_t step;                 /* the number of this step: 1, 2, ... */
    double product;               /* NAdam's product of momenta, ASGD's eta: the rule replaces it */
    cn_tensor *new_p, *new_state[CN__STATES];
    bool by_rows; /* the rule reads what the gradient is computed from, not the gradient */
} cn__update;

typedef struct cn__rule {
    const char *name;
    const char *state[CN__STATES];        /* PyTorch's names; NULL ends them */
    unsigned (*uses)(const cn__hyper *h); /* bit k: the rule needs state k */
    void (*update)(cn__update *u);        /* a result that is NULL means an error */
    bool (*accepts)(cn_tensor *p);        /* false: an error; NULL: the rule accepts any parameter */
    /* All that follow may be NULL. */
    unsigned (*uses_for)(cn_tensor *p);           /* instead of `uses`: the states depend on the parameter */
    cn_dims (*shape)(cn_tensor *p, int k);        /* of state k; NULL: the parameter's */
    double (*initial)(const cn__hyper *h, int k); /* what state k is filled with; NULL: initial_value */
    bool (*minimize)(cn_optim *opt, cn_closure closure, void *user, double *loss); /* instead of `update` */
    /* Of an optimizer that has opt->lbfgs. */
    void (*free)(cn_optim *opt);
    bool (*save)(cn_optim *opt, cn_dict *dict, const char *prefix);
    bool (*load)(cn_optim *opt, const cn_dict *dict, const char *prefix);
    bool has_momentum; /* a schedule may change the momentum */
    bool has_betas;    /* the momentum is beta1 */
} cn__rule;

static inline unsigned cn__rule_uses(const cn__rule *r, const cn__hyper *h, cn_tensor *p)
{
    return r->uses_for ? r->uses_for(p) : r->uses(h);
}
static inline cn_dims cn__state_shape(const cn__rule *r, cn_tensor *p, int k)
{
    return r->shape ? r->shape(p, k) : cn_shape(p);
}

typedef struct cn__param_group {
    cn__hyper h;
    double initial_lr; /* the lr that schedules start from; NaN: the group has had no schedule */
    int first, n;      /* its parameters in cn_optim.params */
} cn__param_group;

typedef struct cn__param_slot {
    cn_tensor *p; /* kept */
    int group;
    int64_t step; /* steps so far */
    double product;
    cn_tensor *state[CN__STATES]; /* kept; NULL until a step needs them */
    /* the fields below are valid during a step only */
    bool by_rows;   /* the step does not read the gradient */
    bool moved;     /* the parameter has a gradient: the step changes it */
    unsigned fresh; /* bit k: the step made state k */
    double next_product;
    cn_tensor *gradient; /* taken from the parameter, and held until the step has succeeded */
} cn__param_slot;

struct cn_optim {
    cn__object object;
    const cn__rule *rule;
    cn__hyper h; /* the numbers that new groups start from */
    bool keep_gradients;
    bool scheduling;         /* a schedule sets its numbers, by a function of the program: no other may begin */
    cn__vec groups;          /* of cn__param_group */
    cn__vec slots;           /* of cn__param_slot, group after group */
    cn__vec params;          /* of cn_tensor *, in the order of slots */
    cn__vec of, to;          /* of cn_tensor *: the assignments of a step */
    struct cn__lbfgs *lbfgs; /* what LBFGS has instead of states of parameters; else NULL */
};

/* The rules, each in the file of its maker. */
extern const cn__rule cn__rule_sgd, cn__rule_adam, cn__rule_adamw, cn__rule_sparse_adam, cn__rule_nadam, cn__rule_radam,
    cn__rule_adamax, cn__rule_rmsprop, cn__rule_adagrad, cn__rule_adadelta, cn__rule_lion, cn__rule_muon,
    cn__rule_rprop, cn__rule_asgd, cn__rule_adafactor;

/* The assignments of a step. There is room for 1 + CN__STATES of each parameter. */
typedef struct cn__changes {
    cn_tensor **of, **to;
    size_t n;
} cn__changes;
/* Records the new values of a parameter that has a gradient, and makes states that it lacks. */
bool cn__record_slot(const cn__rule *rule, const cn__hyper *h, cn__param_slot *s, cn__changes *c);
void cn__drop_fresh(cn__param_slot *s); /* releases the states that this step made */

static inline cn__param_group *cn__optim_group(const cn_optim *opt, int i)
{
    return (cn__param_group *)opt->groups.v + i;
}
static inline cn__param_slot *cn__optim_slot(const cn_optim *opt, size_t i)
{
    return (cn__param_slot *)opt->slots.v + i;
}

/* The meaning of a number in a descriptor: 0 is the default, CN_ZERO is 0. */
static inline double cn__given(double value, double otherwise)
{
    return value == 0 ? otherwise : value == CN_ZERO ? 0 : value;
}
/* Checks the numbers and the parameters. NULL: an error. */
cn_optim *cn__optim_new(cn_ctx *ctx, const cn__rule *rule, const cn__hyper *h, cn_params params, bool keep_gradients);
bool cn__hyper_check(cn_ctx *ctx, const cn__rule *rule, const cn__hyper *h);
/* Clears the gradients, calls the closure and returns the loss; NaN with an error in the context: it failed. */
double cn__call_closure(cn_optim *opt, cn_closure closure, void *user);
static inline cn_dtype cn__state_dtype(const cn_tensor *p) { return cn__dtype(p) == CN_F64 ? CN_F64 : CN_F32; }

/* The update of a rule that is one operator: applies op to p, g (-g to maximize) and the states. */
void cn__update_by(cn__update *u, const cn_op *op, const cn_arg *args);
cn_tensor *cn__toward(cn_tensor *a, cn_tensor *b, double w); /* a + w (b - a) */

extern const cn__object_type cn__optim_type;

#endif
