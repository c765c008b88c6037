/* Schedules: the lr of two groups, and the momentum, over 60 steps against PyTorch's; states; refusals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/schedule.h"
#include "support/check.h"
#include "support/stored.h"

enum { STEPS = 60, GROUPS = 2 };

/* tests/reference/make_optim.py has the same */
static double metric(int t) { return 1 / (1 + 0.3 * (t < 12 ? t : 12)) + (t > 8 ? 0.02 * sin(t) : 0); }

static double waves(void *user, int group, int64_t step)
{
    (void)user, (void)group;
    return 1 + 0.5 * sin(0.4 * (double)step);
}

static cn_optim *new_optim(cn_ctx *cn)
{
    cn_tensor *p[3];
    for (int i = 0; i < 3; i++) p[i] = cn_param(cn_ones(cn, CN_F64, CN_DIMS(2)));
    cn_optim *opt = cn_sgd(cn, (cn_params){ p, 2 }, &(cn_sgd_desc){ .lr = 0.1, .momentum = 0.9 });
    cn_optim_add_group(opt, (cn_params){ p + 2, 1 }, &(cn_group_desc){ .lr = 0.02 });
    return opt;
}

/* ---- by name, with the options of the stored references ---- */

static cn_schedule *make_simple(cn_optim *o, const char *name)
{
    if (!strcmp(name, "every")) return cn_schedule_every(o, 7, 0);
    if (!strcmp(name, "every_gamma")) return cn_schedule_every(o, 4, 0.6);
    if (!strcmp(name, "milestones")) return cn_schedule_milestones(o, CN_LIST(int64_t, 5, 9, 9, 30), 0.5);
    if (!strcmp(name, "milestones_zero")) return cn_schedule_milestones(o, CN_LIST(int64_t, 0, 20), 0);
    if (!strcmp(name, "exponential")) return cn_schedule_exponential(o, 0.93);
    if (!strcmp(name, "constant")) return cn_schedule_constant(o, 0, 0);
    if (!strcmp(name, "constant_long")) return cn_schedule_constant(o, 0.25, 17);
    if (!strcmp(name, "linear")) return cn_schedule_linear(o, NULL);
    if (!strcmp(name, "linear_down"))
        return cn_schedule_linear(
            o, &(cn_schedule_linear_desc){ .start_factor = 1, .end_factor = 0.1, .total_iters = 40 });
    if (!strcmp(name, "polynomial")) return cn_schedule_polynomial(o, 0, 0);
    if (!strcmp(name, "polynomial_square")) return cn_schedule_polynomial(o, 33, 2);
    if (!strcmp(name, "cosine")) return cn_schedule_cosine(o, 50, 0);
    if (!strcmp(name, "cosine_back")) return cn_schedule_cosine(o, 13, 0.002);
    if (!strcmp(name, "restarts")) return cn_schedule_cosine_restarts(o, 9, 0, 0);
    if (!strcmp(name, "restarts_longer")) return cn_schedule_cosine_restarts(o, 5, 2, 0.001);
    if (!strcmp(name, "lambda")) return cn_schedule_lambda(o, waves, NULL);
    if (!strcmp(name, "multiplicative")) return cn_schedule_multiplicative(o, waves, NULL);
    return NULL;
}

static cn_schedule *make_cycle(cn_optim *o, const char *name)
{
    if (!strcmp(name, "one_cycle"))
        return cn_schedule_one_cycle(o, &(cn_schedule_one_cycle_desc){ .max_lr = 0.3, .total_steps = 60 });
    if (!strcmp(name, "one_cycle_linear"))
        return cn_schedule_one_cycle(o, &(cn_schedule_one_cycle_desc){ .max_lr = 0.3,
                                                                       .total_steps = 61,
                                                                       .linear = true,
                                                                       .pct_start = 0.4,
                                                                       .base_momentum = 0.7,
                                                                       .max_momentum = 0.9 });
    if (!strcmp(name, "one_cycle_three"))
        return cn_schedule_one_cycle(o, &(cn_schedule_one_cycle_desc){ .max_lr = 0.3,
                                                                       .total_steps = 75,
                                                                       .three_phase = true,
                                                                       .div_factor = 10,
                                                                       .final_div_factor = 100,
                                                                       .fixed_momentum = true });
    cn_schedule_cyclic_desc d = { .base_lr = 0.01, .max_lr = 0.2 };
    if (!strcmp(name, "cyclic")) {
        d.step_size_up = 8;
        return cn_schedule_cyclic(o, &d);
    }
    if (!strcmp(name, "cyclic_halves")) {
        d.step_size_up = 5, d.step_size_down = 9, d.mode = CN_TRIANGULAR2;
        return cn_schedule_cyclic(o, &d);
    }
    if (!strcmp(name, "cyclic_exp")) {
        d.step_size_up = 6, d.mode = CN_EXP_RANGE, d.gamma = 0.97, d.fixed_momentum = true;
        return cn_schedule_cyclic(o, &d);
    }
    return NULL;
}

static cn_schedule *make_plateau(cn_optim *o, const char *name)
{
    cn_schedule_plateau_desc d = { .patience = 3 };
    if (!strcmp(name, "plateau_max"))
        d = (cn_schedule_plateau_desc){ .max = true, .factor = 0.5, .patience = 2, .cooldown = 3, .min_lr = 0.004 };
    if (!strcmp(name, "plateau_abs"))
        d = (cn_schedule_plateau_desc){ .factor = 0.7, .patience = -1, .threshold = 0.01, .absolute = true };
    if (!strcmp(name, "plateau_max_abs"))
        d = (cn_schedule_plateau_desc){
            .max = true, .factor = 0.7, .threshold = 0.05, .absolute = true, .patience = 1
        };
    return cn_schedule_plateau(o, &d);
}

static cn_schedule *make_parts(cn_optim *o, const char *name)
{
    if (!strcmp(name, "chained"))
        return cn_schedule_chained(
            o, CN_LIST(cn_schedule *, cn_schedule_constant(o, 0.1, 12), cn_schedule_exponential(o, 0.95)));
    if (!strcmp(name, "chained_three")) {
        cn_schedule_linear_desc up = { .start_factor = 0.2, .total_iters = 9 };
        return cn_schedule_chained(o, CN_LIST(cn_schedule *, cn_schedule_linear(o, &up), cn_schedule_every(o, 10, 0.7),
                                              cn_schedule_milestones(o, CN_LIST(int64_t, 3, 33), 0)));
    }
    if (!strcmp(name, "sequential")) {
        cn_schedule_linear_desc up = { .start_factor = 0.1, .total_iters = 10 };
        return cn_schedule_sequential(
            o, CN_LIST(cn_schedule *, cn_schedule_linear(o, &up), cn_schedule_cosine(o, 50, 0)), (int64_t[]){ 10 });
    }
    if (!strcmp(name, "sequential_many"))
        return cn_schedule_sequential(o,
                                      CN_LIST(cn_schedule *, cn_schedule_constant(o, 0.1, 20),
                                              cn_schedule_exponential(o, 0.9), cn_schedule_every(o, 3, 0.5),
                                              cn_schedule_lambda(o, waves, NULL),
                                              cn_schedule_cosine_restarts(o, 4, 1, 0)),
                                      (int64_t[]){ 8, 20, 31, 45 });
    cn_schedule_linear_desc last = { .start_factor = 0.3, .end_factor = 0.9, .total_iters = 8 };
    return cn_schedule_sequential(o,
                                  CN_LIST(cn_schedule *, cn_schedule_cosine_restarts(o, 6, 1, 0),
                                          cn_schedule_polynomial(o, 30, 1.5), cn_schedule_constant(o, 0.5, 4),
                                          cn_schedule_linear(o, &last)),
                                  (int64_t[]){ 12, 30, 44 });
}

static cn_schedule *make(cn_optim *o, const char *name)
{
    cn_schedule *s = make_simple(o, name);
    if (!s) s = make_cycle(o, name);
    if (!s && !strncmp(name, "plateau", 7)) s = make_plateau(o, name);
    return s ? s : make_parts(o, name);
}

static bool step(cn_schedule *s, const char *name, int t)
{
    return !strncmp(name, "plateau", 7) ? cn_schedule_step_metric(s, metric(t)) : cn_schedule_step(s);
}

static const char *const names[] = {
    "every",           "every_gamma",     "milestones",      "milestones_zero", "exponential",       "constant",
    "constant_long",   "linear",          "linear_down",     "polynomial",      "polynomial_square", "cosine",
    "cosine_back",     "restarts",        "restarts_longer", "one_cycle",       "one_cycle_linear",  "one_cycle_three",
    "cyclic",          "cyclic_halves",   "cyclic_exp",      "plateau",         "plateau_max",       "plateau_abs",
    "plateau_max_abs", "lambda",          "multiplicative",  "chained",         "chained_three",     "sequential",
    "sequential_many", "sequential_poly",
};
enum { NAMES = sizeof names / sizeof *names };

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(fabs(b), 1e-4); }

static void rates_are_pytorchs(void)
{
    stored s = stored_open(CAIRN_SOURCE_DIR, "schedules.txt");
    check(s.text != NULL, "schedules.txt");
    for (int i = 0; i < NAMES; i++) {
        check_group(names[i]);
        double lr[GROUPS][STEPS + 1], momentum[STEPS + 1];
        bool found = stored_find(&s, names[i], "lr0", 0, lr[0], STEPS + 1) == STEPS + 1 &&
                     stored_find(&s, names[i], "lr1", 0, lr[1], STEPS + 1) == STEPS + 1;
        bool moves = stored_find(&s, names[i], "momentum", 0, momentum, STEPS + 1) == STEPS + 1;
        if (!check(found, "%s is stored", names[i])) continue;
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_optim *opt = new_optim(cn);
        cn_schedule *schedule = make(opt, names[i]);
        for (int t = 0; t <= STEPS && schedule; t++) {
            for (int g = 0; g < GROUPS; g++)
                check(close_to(cn_optim_lr(opt, g), lr[g][t]), "%s: step %d, group %d: %.17g, not %.17g", names[i], t,
                      g, cn_optim_lr(opt, g), lr[g][t]);
            double m = cn_optim_momentum(opt, 0);
            check(close_to(m, moves ? momentum[t] : 0.9), "%s: step %d: momentum %.17g", names[i], t, m);
            check(cn_schedule_steps(schedule) == t, "%s: %d steps", names[i], t);
            if (t < STEPS) check(step(schedule, names[i], t), "%s: step %d: %s", names[i], t, cn_error(cn));
        }
        check(schedule && !cn_failed(cn), "%s: %s", names[i], cn_error(cn));
        cn_close(cn);
    }
    stored_close(&s);
}

/* ---- states ---- */

/* 23 steps, a new optimizer and schedule, 20 more: bit for bit those of 43. */
static void a_loaded_schedule_goes_on(void)
{
    enum { BEFORE = 23, ALL = 43 };
    for (int i = 0; i < NAMES; i++) {
        check_group(names[i]);
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_optim *one = new_optim(cn), *two = new_optim(cn);
        cn_schedule *first = make(one, names[i]), *second = make(two, names[i]);
        cn_dict *d = cn_dict_new(cn);
        for (int t = 0; t < BEFORE; t++) step(first, names[i], t);
        check(cn_optim_save(one, d, "optim/") && cn_schedule_save(first, d, "schedule/"), "%s: %s", names[i],
              cn_error(cn));
        check(cn_optim_load(two, d, "optim/") && cn_schedule_load(second, d, "schedule/"), "%s: %s", names[i],
              cn_error(cn));
        for (int t = BEFORE; t < ALL; t++) {
            for (int g = 0; g < GROUPS; g++)
                check(cn_optim_lr(one, g) == cn_optim_lr(two, g) &&
                          cn_optim_momentum(one, g) == cn_optim_momentum(two, g),
                      "%s: step %d, group %d: %.17g and %.17g", names[i], t, g, cn_optim_lr(one, g),
                      cn_optim_lr(two, g));
            step(first, names[i], t);
            step(second, names[i], t);
        }
        check(!cn_failed(cn), "%s: %s", names[i], cn_error(cn));
        cn_close(cn);
    }
}

static bool says(cn_ctx *cn, bool failed, const char *words)
{
    bool ok = failed && cn_failed(cn) && strstr(cn_error(cn), words);
    check(ok, "\"%s\" was expected, not \"%s\"", words, cn_error(cn));
    cn_error_clear(cn);
    return ok;
}

static void bad_states_change_nothing(void)
{
    check_group("bad states");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_optim *opt = new_optim(cn);
    cn_schedule *s = make(opt, "sequential"), *other = cn_schedule_every(new_optim(cn), 3, 0);
    cn_dict *d = cn_dict_new(cn);
    for (int t = 0; t < 5; t++) cn_schedule_step(s);
    says(cn, !cn_schedule_load(s, d, ""), "\"scheduler\" must be \"sequential\", got nothing");
    check(cn_schedule_save(other, d, ""), "%s", cn_error(cn));
    says(cn, !cn_schedule_load(s, d, NULL), "\"scheduler\" must be \"sequential\", got \"every\"");
    cn_dict *whole = cn_dict_new(cn);
    check(cn_schedule_save(s, whole, "a/"), "%s", cn_error(cn));
    cn_dict_set_text(whole, "a/schedulers/1/last_epoch", "many");
    cn_dict_set_text(whole, "a/last_epoch", "50");
    says(cn, !cn_schedule_load(s, whole, "a/"), "schedulers/1/last_epoch");
    check(cn_schedule_steps(s) == 5, "the count is as before");
    check(cn_schedule_step(s), "and the schedule goes on: %s", cn_error(cn));
    cn_close(cn);
}

/* ---- refusals ---- */

static double wrong(void *user, int group, int64_t step)
{
    (void)user;
    return group == 1 && step == 3 ? NAN : 0.5;
}

static void failed_steps_change_no_rate(void)
{
    check_group("failed steps");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_optim *opt = new_optim(cn);
    cn_schedule *parts[] = { cn_schedule_exponential(opt, 0.5), cn_schedule_lambda(opt, wrong, NULL) };
    cn_schedule *s = cn_schedule_chained(opt, parts, 2);
    check(cn_schedule_step(s) && cn_schedule_step(s), "%s", cn_error(cn));
    double lr = cn_optim_lr(opt, 0), other = cn_optim_lr(opt, 1);
    says(cn, !cn_schedule_step(s), "lr must be finite and ≥ 0, got nan");
    check(cn_optim_lr(opt, 0) == lr && cn_optim_lr(opt, 1) == other && cn_schedule_steps(s) == 2 &&
              cn_schedule_steps(parts[0]) == 2,
          "all as before");

    cn_schedule *cycle = cn_schedule_one_cycle(
        opt, &(cn_schedule_one_cycle_desc){ .max_lr = 1, .total_steps = 10, .fixed_momentum = true });
    for (int t = 0; t < 10; t++) check(cn_schedule_step(cycle), "%d: %s", t, cn_error(cn));
    lr = cn_optim_lr(opt, 0);
    says(cn, !cn_schedule_step(cycle), "at most 10 steps, got step 11");
    check(cn_optim_lr(opt, 0) == lr && cn_schedule_steps(cycle) == 10, "all as before");
    cn_tensor *p = cn_param(cn_ones(cn, CN_F64, CN_DIMS(2)));
    cn_optim_add_group(opt, (cn_params){ &p, 1 }, NULL);
    says(cn, !cn_schedule_step(s), "a group was added");
    cn_close(cn);
}

static void bad_calls_are_refused(void)
{
    check_group("refusals");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_optim *o = new_optim(cn), *other = new_optim(cn);
    says(cn, !cn_schedule_every(o, 0, 0), "step_size must be > 0, got 0");
    says(cn, !cn_schedule_milestones(o, CN_LIST(int64_t, 5, 3), 0),
         "milestones must be ≥ 0 and rise, but number 1 does not");
    says(cn, !cn_schedule_exponential(o, 0), "gamma must be > 0, got 0");
    says(cn, !cn_schedule_constant(o, 2, 0), "factor must be > 0 and ≤ 1, got 2");
    says(cn, !cn_schedule_linear(o, &(cn_schedule_linear_desc){ .start_factor = CN_ZERO }),
         "start_factor must be > 0 and ≤ 1, got 0");
    says(cn, !cn_schedule_cosine(o, 0, 0), "t_max must be > 0");
    says(cn, !cn_schedule_cosine_restarts(o, 3, -1, 0), "t_mult must be ≥ 0, got -1");
    says(cn, !cn_schedule_one_cycle(o, NULL), "max_lr must be > 0, got 0");
    says(cn,
         !cn_schedule_one_cycle(o, &(cn_schedule_one_cycle_desc){ .max_lr = 1, .total_steps = 10, .pct_start = 0.1 }),
         "pct_start must leave no phase without steps");
    says(cn, !cn_schedule_cyclic(o, NULL), "base_lr must be set, and ≥ 0");
    says(cn, !cn_schedule_plateau(o, &(cn_schedule_plateau_desc){ .factor = 1 }), "factor must be ≥ 0 and < 1, got 1");
    says(cn, !cn_schedule_lambda(o, NULL, NULL), "fn must be a function, got NULL");
    cn_schedule *plateau = cn_schedule_plateau(o, NULL), *plain = cn_schedule_every(o, 2, 0);
    says(cn, !cn_schedule_step(plateau), "need a metric");
    says(cn, !cn_schedule_step_metric(plain, 1), "have no metric");
    says(cn, !cn_schedule_chained(o, &plateau, 1), "needs a metric");
    says(cn, !cn_schedule_chained(other, &plain, 1), "must be of the same optimizer");
    says(cn, !cn_schedule_chained(o, NULL, 0), "there must be at least 1 part, got 0");
    says(cn, !cn_schedule_chained(o, CN_LIST(cn_schedule *, plain, plain)), "a part already");
    cn_schedule *chain = cn_schedule_chained(o, &plain, 1);
    says(cn, !cn_schedule_sequential(o, &chain, 1, NULL), "must not have parts itself");
    cn_schedule_free(plain);
    says(cn, true, "belongs to another schedule");
    cn_tensor *p = cn_param(cn_ones(cn, CN_F32, CN_DIMS(2)));
    cn_optim *ada = cn_adagrad(cn, (cn_params){ &p, 1 }, NULL);
    double lr = cn_optim_lr(ada, 0);
    says(cn, !cn_schedule_one_cycle(ada, &(cn_schedule_one_cycle_desc){ .max_lr = 1, .total_steps = 10 }),
         "no momentum");
    check(cn_optim_lr(ada, 0) == lr, "a schedule that is not made sets no lr");
    check(!cn_schedule_step(NULL) && !cn_schedule_every(NULL, 1, 0) && !cn_schedule_save(NULL, NULL, ""), "NULL");
    cn_schedule_free(NULL);
    cn_schedule_free(chain);
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* A new lr is a number for the plans that exist. */
static void schedules_build_no_plans(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_optim *opt = new_optim(cn);
    cn_schedule *s = make(opt, "one_cycle");
    cn_params p = cn_optim_params(opt);
    int64_t misses = 0;
    for (int t = 0; t < 20; t++) {
        cn_scope scope = cn_scope_begin(cn);
        for (int i = 0; i < p.n; i++) cn_backward(cn_sum(cn_square(p.v[i]), CN_ALL, false));
        check(cn_step(opt) && cn_schedule_step(s), "%s", cn_error(cn));
        cn_scope_end(cn, scope);
        if (t == 1) misses = cn_count(cn).plan_misses;
    }
    check(cn_count(cn).plan_misses == misses, "%lld plans built after the second step",
          (long long)(cn_count(cn).plan_misses - misses));
    cn_close(cn);
}

int main(void)
{
    rates_are_pytorchs();
    a_loaded_schedule_goes_on();
    bad_states_change_nothing();
    failed_steps_change_no_rate();
    bad_calls_are_refused();
    schedules_build_no_plans();
    return finish();
}
