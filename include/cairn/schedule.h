/* cairn/schedule.h: schedules, which change learning rates (lr) from step to step. PyTorch's torch.optim.lr_scheduler.

       cn_schedule_linear_desc warm_up = { .start_factor = 0.01, .total_iters = 100 };
       cn_schedule *parts[] = { cn_schedule_linear(opt, &warm_up), cn_schedule_cosine(opt, 900, 0) };
       cn_schedule *s = cn_schedule_sequential(opt, parts, 2, (int64_t[]){ 100 });
       cn_step(opt);
       cn_schedule_step(s);                      sets the lr of every group for the next step

   Formulas   PyTorch's. Most multiply the lr that a group has: so schedules can be chained, and an lr that you set has
              an effect. As in PyTorch, making a schedule sets the first lr. The initial lr of a group is the lr it had
              before its first schedule was made.
   Numbers    0 means PyTorch's default, which stands beside the field or in brackets; CN_ZERO (optim.h) means 0.
   State      A schedule's state is its count of steps; the lr belongs to the optimizer. To resume, make optimizer and
              schedule, then load both.
   Ownership  A schedule belongs to its context until cn_schedule_free; a part belongs to its chain or sequence. A
              step after its optimizer was freed is an error. Add groups before making schedules.
   Errors     A step that fails changes no lr. A maker returns NULL after an error, or if opt is NULL. */
#ifndef CAIRN_SCHEDULE_H
#define CAIRN_SCHEDULE_H

#include "dict.h"
#include "optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_schedule cn_schedule;

CN_API bool cn_schedule_step(cn_schedule *s);
CN_API bool cn_schedule_step_metric(cn_schedule *s, double value);  /* for cn_schedule_plateau only */
CN_API int64_t cn_schedule_steps(const cn_schedule *s);             /* steps so far: PyTorch's last_epoch */
CN_API void cn_schedule_free(cn_schedule *s);                       /* with its parts; NULL is allowed */
CN_API bool cn_schedule_save(cn_schedule *s, cn_dict *dict, const char *prefix); /* texts prefix + "last_epoch", ... */
CN_API bool cn_schedule_load(cn_schedule *s, const cn_dict *dict, const char *prefix);

/* StepLR, MultiStepLR, ExponentialLR: they multiply the lr by gamma every step_size steps, at milestones, or at every
   step. gamma is 0.1 for the first two; exponential has no default. */
CN_API cn_schedule *cn_schedule_every(cn_optim *opt, int64_t step_size, double gamma);
CN_API cn_schedule *cn_schedule_milestones(cn_optim *opt, const int64_t *milestones, int n, double gamma);
CN_API cn_schedule *cn_schedule_exponential(cn_optim *opt, double gamma);

/* ConstantLR: it multiplies the lr by factor (1/3) for the first total_iters (5) steps. */
CN_API cn_schedule *cn_schedule_constant(cn_optim *opt, double factor, int64_t total_iters);

/* LinearLR: the lr's factor goes from start_factor to end_factor in total_iters steps: a warm-up or a cool-down. */
typedef struct cn_schedule_linear_desc {
    double start_factor, end_factor;  /* 1/3, 1 */
    int64_t total_iters;              /* 5 */
} cn_schedule_linear_desc;
CN_API cn_schedule *cn_schedule_linear(cn_optim *opt, const cn_schedule_linear_desc *desc);

/* PolynomialLR: the lr falls to 0 in total_iters (5) steps, as (1 - step / total_iters) to a power (1). */
CN_API cn_schedule *cn_schedule_polynomial(cn_optim *opt, int64_t total_iters, double power);

/* CosineAnnealingLR: the lr goes from the initial lr to eta_min (0) in t_max steps, then back, and so on.
   CosineAnnealingWarmRestarts: the lr goes to eta_min in t_0 steps, then starts again and takes t_mult (1) times as
   many steps, and so on. */
CN_API cn_schedule *cn_schedule_cosine(cn_optim *opt, int64_t t_max, double eta_min);
CN_API cn_schedule *cn_schedule_cosine_restarts(cn_optim *opt, int64_t t_0, int64_t t_mult, double eta_min);

/* OneCycleLR: the lr rises to max_lr, then falls far below its start. The momentum (beta1) goes the other way. */
typedef struct cn_schedule_one_cycle_desc {
    double max_lr;                          /* must be given */
    int64_t total_steps;                    /* must be given; one step more is allowed, as in PyTorch */
    double pct_start;                       /* 0.3 */
    bool linear;                            /* linear phases, not cosines */
    bool three_phase;
    bool fixed_momentum;                    /* PyTorch's cycle_momentum=False */
    double base_momentum, max_momentum;     /* 0.85, 0.95 */
    double div_factor, final_div_factor;    /* 25, 1e4 */
} cn_schedule_one_cycle_desc;
CN_API cn_schedule *cn_schedule_one_cycle(cn_optim *opt, const cn_schedule_one_cycle_desc *desc);

/* CyclicLR: the lr rises from base_lr to max_lr and falls again, in cycles. The momentum goes the other way. */
typedef enum cn_cyclic_mode { CN_TRIANGULAR, CN_TRIANGULAR2, CN_EXP_RANGE } cn_cyclic_mode;
typedef struct cn_schedule_cyclic_desc {
    double base_lr, max_lr;                 /* must be given */
    int64_t step_size_up, step_size_down;   /* 2000; step_size_up */
    cn_cyclic_mode mode;
    double gamma;                           /* 1; for CN_EXP_RANGE */
    bool fixed_momentum;
    double base_momentum, max_momentum;     /* 0.8, 0.9 */
} cn_schedule_cyclic_desc;
CN_API cn_schedule *cn_schedule_cyclic(cn_optim *opt, const cn_schedule_cyclic_desc *desc);

/* ReduceLROnPlateau: it multiplies the lr by factor when the metric has not improved for more than patience steps. */
typedef struct cn_schedule_plateau_desc {
    bool max;                               /* a larger metric is better; else a smaller one */
    double factor;                          /* 0.1 */
    int64_t patience;                       /* 10; a negative number means 0 */
    double threshold;                       /* 1e-4: the least improvement that counts */
    bool absolute;                          /* threshold_mode='abs': a difference, not a share of the best metric */
    int64_t cooldown;                       /* 0: steps after a change in which bad steps do not count */
    double min_lr;                          /* 0 */
    double eps;                             /* 1e-8: smaller changes of the lr are not made */
} cn_schedule_plateau_desc;
CN_API cn_schedule *cn_schedule_plateau(cn_optim *opt, const cn_schedule_plateau_desc *desc);

/* LambdaLR: the lr is the initial lr times fn(step). MultiplicativeLR: each step multiplies the lr by fn(step). */
typedef double (*cn_schedule_fn)(void *user, int group, int64_t step);
CN_API cn_schedule *cn_schedule_lambda(cn_optim *opt, cn_schedule_fn fn, void *user);
CN_API cn_schedule *cn_schedule_multiplicative(cn_optim *opt, cn_schedule_fn fn, void *user);

/* ChainedScheduler: all parts step at every step. SequentialLR: one part steps at a time; at each of the n - 1
   milestones the next part begins. The parts are schedules of the same optimizer, and belong to the new schedule. A
   plateau cannot be a part. A chain or a sequence cannot be part of a sequence. */
CN_API cn_schedule *cn_schedule_chained(cn_optim *opt, cn_schedule *const *parts, int n);
CN_API cn_schedule *cn_schedule_sequential(cn_optim *opt, cn_schedule *const *parts, int n, const int64_t *milestones);

#ifdef __cplusplus
}
#endif
#endif
