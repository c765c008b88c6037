/* cairn/schedule.h: learning rates that change with the steps. PyTorch's torch.optim.lr_scheduler.

       cn_schedule_linear_desc warm_up = { .start_factor = 0.01, .total_iters = 100 };
       cn_schedule *parts[] = { cn_schedule_linear(opt, &warm_up), cn_schedule_cosine(opt, 900, 0) };
       cn_schedule *s = cn_schedule_sequential(opt, parts, 2, (int64_t[]){ 100 });
       cn_step(opt);
       cn_schedule_step(s);                      sets the lr of every group for the next step

   Formulas   PyTorch's; most multiply the lr a group has, so that schedules can be chained and an lr set by hand is
              respected. Making a schedule sets the first lr, as there; the lr a group had before its first schedule is
              the initial one for all.
   Numbers    0 stands for PyTorch's default, which stands beside the field; CN_ZERO (optim.h) for 0 itself.
   State      A schedule's is its own count; the lr is the optimizer's. To go on: make optimizer and schedule, then load
              both.
   Ownership  A schedule belongs to its context until cn_schedule_free, a part of a sequence or chain to that. Free
              schedules before their optimizer; add groups before making schedules.
   Errors     A step that fails changes no lr. NULL in gives NULL out. */
#ifndef CAIRN_SCHEDULE_H
#define CAIRN_SCHEDULE_H

#include "dict.h"
#include "optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_schedule cn_schedule;

CN_API bool cn_schedule_step(cn_schedule *s);
CN_API bool cn_schedule_step_metric(cn_schedule *s, double value);  /* cn_schedule_plateau alone */
CN_API int64_t cn_schedule_steps(const cn_schedule *s);             /* taken so far: PyTorch's last_epoch */
CN_API void cn_schedule_free(cn_schedule *s);                       /* with its parts; NULL is fine */
CN_API bool cn_schedule_save(cn_schedule *s, cn_dict *dict, const char *prefix); /* texts prefix + "last_epoch", ... */
CN_API bool cn_schedule_load(cn_schedule *s, const cn_dict *dict, const char *prefix);

/* StepLR, MultiStepLR, ExponentialLR: times gamma every `step_size` steps, at milestones, at every step. */
CN_API cn_schedule *cn_schedule_every(cn_optim *opt, int64_t step_size, double gamma);              /* gamma 0: 0.1 */
CN_API cn_schedule *cn_schedule_milestones(cn_optim *opt, const int64_t *milestones, int n, double gamma); /* 0: 0.1 */
CN_API cn_schedule *cn_schedule_exponential(cn_optim *opt, double gamma);                           /* no default */

/* ConstantLR: the lr times factor (1/3) for the first total_iters (5) steps. */
CN_API cn_schedule *cn_schedule_constant(cn_optim *opt, double factor, int64_t total_iters);

/* LinearLR: warming up, or cooling down. */
typedef struct cn_schedule_linear_desc {
    double start_factor, end_factor;  /* 1/3, 1 */
    int64_t total_iters;              /* 5 */
} cn_schedule_linear_desc;
CN_API cn_schedule *cn_schedule_linear(cn_optim *opt, const cn_schedule_linear_desc *desc);

/* PolynomialLR: down to 0 in total_iters (5) steps, by a power (1). */
CN_API cn_schedule *cn_schedule_polynomial(cn_optim *opt, int64_t total_iters, double power);

/* CosineAnnealingLR: from the initial lr to eta_min in t_max steps, and back. CosineAnnealingWarmRestarts: to eta_min in
   t_0 steps, then from the start in t_0 t_mult, and so on; t_mult 0: 1. */
CN_API cn_schedule *cn_schedule_cosine(cn_optim *opt, int64_t t_max, double eta_min);
CN_API cn_schedule *cn_schedule_cosine_restarts(cn_optim *opt, int64_t t_0, int64_t t_mult, double eta_min);

/* OneCycleLR: up to max_lr and down to far below, momentum (beta1) the other way. */
typedef struct cn_schedule_one_cycle_desc {
    double max_lr;                          /* must be given */
    int64_t total_steps;                    /* must be given; one step more is allowed, as in PyTorch */
    double pct_start;                       /* 0.3 */
    bool linear;                            /* instead of by cosines */
    bool three_phase;
    bool fixed_momentum;                    /* PyTorch's cycle_momentum=False */
    double base_momentum, max_momentum;     /* 0.85, 0.95 */
    double div_factor, final_div_factor;    /* 25, 1e4 */
} cn_schedule_one_cycle_desc;
CN_API cn_schedule *cn_schedule_one_cycle(cn_optim *opt, const cn_schedule_one_cycle_desc *desc);

/* CyclicLR: up and down between base_lr and max_lr, and so on. */
typedef enum cn_cyclic_mode { CN_TRIANGULAR, CN_TRIANGULAR2, CN_EXP_RANGE } cn_cyclic_mode;
typedef struct cn_schedule_cyclic_desc {
    double base_lr, max_lr;                 /* must be given */
    int64_t step_size_up, step_size_down;   /* 2000; as many as up */
    cn_cyclic_mode mode;
    double gamma;                           /* 1; of CN_EXP_RANGE */
    bool fixed_momentum;
    double base_momentum, max_momentum;     /* 0.8, 0.9 */
} cn_schedule_cyclic_desc;
CN_API cn_schedule *cn_schedule_cyclic(cn_optim *opt, const cn_schedule_cyclic_desc *desc);

/* ReduceLROnPlateau: times factor when the metric has not become better for more than patience steps. */
typedef struct cn_schedule_plateau_desc {
    bool max;                               /* larger is better */
    double factor;                          /* 0.1 */
    int64_t patience;                       /* 10; a negative number: 0 */
    double threshold;                       /* 1e-4 */
    bool absolute;                          /* threshold_mode='abs': a difference, not a share of the best */
    int64_t cooldown;
    double min_lr;
    double eps;                             /* 1e-8: smaller changes are not made */
} cn_schedule_plateau_desc;
CN_API cn_schedule *cn_schedule_plateau(cn_optim *opt, const cn_schedule_plateau_desc *desc);

/* LambdaLR: the initial lr times what fn gives for the number of the step; MultiplicativeLR: the lr times it. */
typedef double (*cn_schedule_fn)(void *user, int group, int64_t step);
CN_API cn_schedule *cn_schedule_lambda(cn_optim *opt, cn_schedule_fn fn, void *user);
CN_API cn_schedule *cn_schedule_multiplicative(cn_optim *opt, cn_schedule_fn fn, void *user);

/* ChainedScheduler: all of them at every step. SequentialLR: the next one from each of the n - 1 milestones on. The
   parts are schedules of the same optimizer and belong to the new one; a plateau cannot be a part, and a chain or a
   sequence not part of a sequence. */
CN_API cn_schedule *cn_schedule_chained(cn_optim *opt, cn_schedule *const *parts, int n);
CN_API cn_schedule *cn_schedule_sequential(cn_optim *opt, cn_schedule *const *parts, int n, const int64_t *milestones);

#ifdef __cplusplus
}
#endif
#endif
