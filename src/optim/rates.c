/* The formulas of schedules, and the functions that make them. */
#include <math.h>

#include "optim/schedule.h"

#define PI 3.14159265358979323846

static double base_lr(const cn_schedule *s, int g) { return s->base[g]; }

/* Sets an error about an argument, "linear: start_factor must be > 0 and ≤ 1, got 2", and frees s. Returns NULL. */
static cn_schedule *refuse(cn_schedule *s, const char *rule, double got)
{
    cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "%s: %s, got %g", s->pace->name, rule, got);
    cn__object_free(s);
    return NULL;
}

/* ---- a factor, at some steps or at all ---- */

static double every_lr(const cn_schedule *s, int g)
{
    bool now = s->now.at != 0 && s->now.at % s->u.decay.size == 0;
    return now ? cn__lr_now(s, g) * s->u.decay.gamma : cn__lr_now(s, g);
}

static const cn__pace every = { .name = "every", .lr = every_lr, .start = base_lr };

cn_schedule *cn_schedule_every(cn_optim *opt, int64_t step_size, double gamma)
{
    cn_schedule *s = cn__schedule_new(opt, &every);
    if (!s) return NULL;
    s->u.decay.gamma = cn__given(gamma, 0.1);
    s->u.decay.size = step_size;
    if (step_size < 1) return refuse(s, "step_size must be > 0", (double)step_size);
    if (!(s->u.decay.gamma >= 0)) return refuse(s, "gamma must be ≥ 0", gamma);
    return cn__schedule_begin(s);
}

static double milestone_factor(const cn_schedule *s)
{
    int times = 0;
    for (int i = 0; i < s->n_milestones; i++) times += s->milestones[i] == s->now.at;
    return times ? pow(s->u.decay.gamma, times) : 1;
}

static double milestones_lr(const cn_schedule *s, int g) { return cn__lr_now(s, g) * milestone_factor(s); }
static double milestones_start(const cn_schedule *s, int g) { return s->base[g] * milestone_factor(s); }
static const cn__pace milestones_pace = { .name = "milestones", .lr = milestones_lr, .start = milestones_start };

cn_schedule *cn_schedule_milestones(cn_optim *opt, const int64_t *milestones, int n, double gamma)
{
    cn_schedule *s = cn__schedule_new(opt, &milestones_pace);
    if (!s) return NULL;
    s->u.decay.gamma = cn__given(gamma, 0.1);
    if (n < 0) return refuse(s, "n must be ≥ 0", n);
    if (!(s->u.decay.gamma >= 0)) return refuse(s, "gamma must be ≥ 0", gamma);
    if (cn__schedule_milestones(s, milestones, n)) return cn__schedule_begin(s);
    cn__object_free(s);
    return NULL;
}

static double exponential_lr(const cn_schedule *s, int g)
{
    return s->first ? cn__lr_now(s, g) : cn__lr_now(s, g) * s->u.decay.gamma;
}

static const cn__pace exponential = { .name = "exponential", .lr = exponential_lr, .start = base_lr };

cn_schedule *cn_schedule_exponential(cn_optim *opt, double gamma)
{
    cn_schedule *s = cn__schedule_new(opt, &exponential);
    if (!s) return NULL;
    s->u.decay.gamma = gamma;
    return gamma > 0 ? cn__schedule_begin(s) : refuse(s, "gamma must be > 0", gamma);
}

/* ---- a change over the first steps ---- */

static double constant_lr(const cn_schedule *s, int g)
{
    double lr = cn__lr_now(s, g);
    if (s->now.at == 0) return lr * s->u.few.factor;
    return s->now.at == s->u.few.total ? lr * (1 / s->u.few.factor) : lr;
}

static double constant_start(const cn_schedule *s, int g) { return s->base[g] * s->u.few.factor; }
static const cn__pace constant = { .name = "constant", .lr = constant_lr, .start = constant_start };

cn_schedule *cn_schedule_constant(cn_optim *opt, double factor, int64_t total_iters)
{
    cn_schedule *s = cn__schedule_new(opt, &constant);
    if (!s) return NULL;
    s->u.few.factor = cn__given(factor, 1.0 / 3);
    s->u.few.total = total_iters ? total_iters : 5;
    if (!(s->u.few.factor > 0 && s->u.few.factor <= 1)) return refuse(s, "factor must be > 0 and ≤ 1", s->u.few.factor);
    if (total_iters < 0) return refuse(s, "total_iters must be ≥ 0", (double)total_iters);
    return cn__schedule_begin(s);
}

static double linear_lr(const cn_schedule *s, int g)
{
    const cn_schedule_linear_desc *d = &s->u.linear;
    double lr = cn__lr_now(s, g), rise = d->end_factor - d->start_factor;
    if (s->now.at == 0) return lr * d->start_factor;
    if (s->now.at > d->total_iters) return lr;
    return lr * (1 + rise / ((double)d->total_iters * d->start_factor + (double)(s->now.at - 1) * rise));
}

static double linear_start(const cn_schedule *s, int g) { return s->base[g] * s->u.linear.start_factor; }
static const cn__pace linear = { .name = "linear", .lr = linear_lr, .start = linear_start };

cn_schedule *cn_schedule_linear(cn_optim *opt, const cn_schedule_linear_desc *desc)
{
    cn_schedule_linear_desc d = desc ? *desc : (cn_schedule_linear_desc){ 0 };
    cn_schedule *s = cn__schedule_new(opt, &linear);
    if (!s) return NULL;
    d.start_factor = cn__given(d.start_factor, 1.0 / 3);
    d.end_factor = cn__given(d.end_factor, 1);
    if (d.total_iters == 0) d.total_iters = 5;
    s->u.linear = d;
    if (!(d.start_factor > 0 && d.start_factor <= 1))
        return refuse(s, "start_factor must be > 0 and ≤ 1", d.start_factor);
    if (!(d.end_factor >= 0 && d.end_factor <= 1)) return refuse(s, "end_factor must be from 0 to 1", d.end_factor);
    if (d.total_iters < 0) return refuse(s, "total_iters must be ≥ 0", (double)d.total_iters);
    return cn__schedule_begin(s);
}

static double polynomial_lr(const cn_schedule *s, int g)
{
    double total = (double)s->u.few.total, at = (double)s->now.at;
    if (s->first || at > total) return cn__lr_now(s, g);
    return cn__lr_now(s, g) * pow((1 - at / total) / (1 - (at - 1) / total), s->u.few.power);
}

static const cn__pace polynomial = { .name = "polynomial", .lr = polynomial_lr, .start = base_lr };

cn_schedule *cn_schedule_polynomial(cn_optim *opt, int64_t total_iters, double power)
{
    cn_schedule *s = cn__schedule_new(opt, &polynomial);
    if (!s) return NULL;
    s->u.few.total = total_iters ? total_iters : 5;
    s->u.few.power = cn__given(power, 1);
    if (total_iters < 0) return refuse(s, "total_iters must be ≥ 0", (double)total_iters);
    if (!(s->u.few.power >= 0)) return refuse(s, "power must be ≥ 0", power);
    return cn__schedule_begin(s);
}

/* ---- cosines ---- */

static double cosine_lr(const cn_schedule *s, int g)
{
    double lr = cn__lr_now(s, g), length = (double)s->u.cosine.length, low = s->u.cosine.eta_min;
    double at = (double)s->now.at;
    if (s->first) return lr;
    /* at the lowest point the ratio below would be 0/0 */
    if ((s->now.at - 1 - s->u.cosine.length) % (2 * s->u.cosine.length) == 0)
        return lr + (s->base[g] - low) * (1 - cos(PI / length)) / 2;
    return (1 + cos(PI * at / length)) / (1 + cos(PI * (at - 1) / length)) * (lr - low) + low;
}

static const cn__pace cosine = { .name = "cosine", .lr = cosine_lr, .start = base_lr };

cn_schedule *cn_schedule_cosine(cn_optim *opt, int64_t t_max, double eta_min)
{
    cn_schedule *s = cn__schedule_new(opt, &cosine);
    if (!s) return NULL;
    s->u.cosine.length = t_max;
    s->u.cosine.eta_min = cn__given(eta_min, 0);
    if (t_max < 1 || t_max > INT64_MAX / 4) return refuse(s, "t_max must be > 0 and ≤ 2^61", (double)t_max);
    if (!(eta_min >= CN_ZERO)) return refuse(s, "eta_min must be ≥ 0", eta_min);
    return cn__schedule_begin(s);
}

static double restarts_lr(const cn_schedule *s, int g)
{
    double low = s->u.cosine.eta_min;
    return low + (s->base[g] - low) * (1 + cos(PI * (double)s->now.cur / (double)s->now.length)) / 2;
}

static bool restarts_advance(cn_schedule *s)
{
    cn__pace_state *n = &s->now;
    if (n->at == 0) {
        n->cur = 0;
        n->length = s->u.cosine.length;
    } else if (++n->cur >= n->length) {
        n->cur -= n->length;
        if (n->length > INT64_MAX / s->u.cosine.mult)
            return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                            "cosine_restarts: a period must be < 2^63 steps; %lld times t_mult is not",
                            (long long)n->length);
        n->length *= s->u.cosine.mult;
    }
    return true;
}

static const cn__pace restarts = { .name = "cosine_restarts", .lr = restarts_lr, .advance = restarts_advance };

cn_schedule *cn_schedule_cosine_restarts(cn_optim *opt, int64_t t_0, int64_t t_mult, double eta_min)
{
    cn_schedule *s = cn__schedule_new(opt, &restarts);
    if (!s) return NULL;
    s->u.cosine.length = t_0;
    s->u.cosine.mult = t_mult ? t_mult : 1;
    s->u.cosine.eta_min = cn__given(eta_min, 0);
    if (t_0 < 1) return refuse(s, "t_0 must be > 0", (double)t_0);
    if (t_mult < 0) return refuse(s, "t_mult must be ≥ 0", (double)t_mult);
    if (!(eta_min >= CN_ZERO)) return refuse(s, "eta_min must be ≥ 0", eta_min);
    return cn__schedule_begin(s);
}

/* ---- one cycle: two or three phases; in each, lr and momentum go from one mark to another ---- */

/* Marks of the lr: max/div, max, max/div/final_div. The momentum is lowest at TOP. */
typedef enum mark { LOW, TOP, BOTTOM } mark;
typedef struct phase {
    double begin, end;
    mark from, to;
} phase;

static int one_phases(const cn_schedule_one_cycle_desc *d, phase out[3])
{
    double total = (double)d->total_steps;
    out[0] = (phase){ 0, d->pct_start * total - 1, LOW, TOP };
    if (!d->three_phase) {
        out[1] = (phase){ out[0].end, total - 1, TOP, BOTTOM };
        return 2;
    }
    out[1] = (phase){ out[0].end, 2 * d->pct_start * total - 2, TOP, LOW };
    out[2] = (phase){ out[1].end, total - 1, LOW, BOTTOM };
    return 3;
}

static double one_between(const cn_schedule_one_cycle_desc *d, double from, double to, double share)
{
    return d->linear ? (to - from) * share + from : to + (from - to) / 2 * (cos(PI * share) + 1);
}

static phase one_phase(const cn_schedule *s, double *share)
{
    phase all[3];
    int n = one_phases(&s->u.one, all), i = 0;
    double at = (double)s->now.at;
    while (i + 1 < n && at > all[i].end) i++;
    *share = (at - all[i].begin) / (all[i].end - all[i].begin);
    return all[i];
}

static double one_lr(const cn_schedule *s, int g)
{
    (void)g;
    const cn_schedule_one_cycle_desc *d = &s->u.one;
    double low = d->max_lr / d->div_factor, marks[] = { low, d->max_lr, low / d->final_div_factor }, share;
    phase p = one_phase(s, &share);
    return one_between(d, marks[p.from], marks[p.to], share);
}

static double one_momentum(const cn_schedule *s, int g)
{
    (void)g;
    const cn_schedule_one_cycle_desc *d = &s->u.one;
    double marks[] = { d->max_momentum, d->base_momentum, d->max_momentum }, share;
    phase p = one_phase(s, &share);
    return one_between(d, marks[p.from], marks[p.to], share);
}

static bool one_advance(cn_schedule *s)
{
    if (s->now.at <= s->u.one.total_steps) return true;
    return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "one_cycle: there must be at most %lld steps, got step %lld",
                    (long long)s->u.one.total_steps, (long long)s->now.at);
}

static const cn__pace one_cycle = {
    .name = "one_cycle", .lr = one_lr, .advance = one_advance, .momentum = one_momentum
};
static const cn__pace one_cycle_fixed = { .name = "one_cycle", .lr = one_lr, .advance = one_advance };

cn_schedule *cn_schedule_one_cycle(cn_optim *opt, const cn_schedule_one_cycle_desc *desc)
{
    cn_schedule_one_cycle_desc d = desc ? *desc : (cn_schedule_one_cycle_desc){ 0 };
    cn_schedule *s = cn__schedule_new(opt, d.fixed_momentum ? &one_cycle_fixed : &one_cycle);
    if (!s) return NULL;
    d.pct_start = cn__given(d.pct_start, 0.3);
    d.base_momentum = cn__given(d.base_momentum, 0.85);
    d.max_momentum = cn__given(d.max_momentum, 0.95);
    d.div_factor = cn__given(d.div_factor, 25);
    d.final_div_factor = cn__given(d.final_div_factor, 1e4);
    s->u.one = d;
    if (!(d.max_lr > 0)) return refuse(s, "max_lr must be > 0", d.max_lr);
    if (d.total_steps < 1) return refuse(s, "total_steps must be > 0", (double)d.total_steps);
    if (!(d.pct_start >= 0 && d.pct_start <= 1)) return refuse(s, "pct_start must be from 0 to 1", d.pct_start);
    if (!(d.div_factor > 0)) return refuse(s, "div_factor must be > 0", d.div_factor);
    if (!(d.final_div_factor > 0)) return refuse(s, "final_div_factor must be > 0", d.final_div_factor);
    phase all[3];
    for (int i = 0, n = one_phases(&d, all); i < n; i++)
        if (all[i].end == all[i].begin) return refuse(s, "pct_start must leave no phase without steps", d.pct_start);
    for (int g = 0; g < s->n_groups; g++) cn__optim_group(opt, g)->initial_lr = d.max_lr / d.div_factor;
    return cn__schedule_begin(s);
}

/* ---- cycles ---- */

/* The position between base (0) and maximum (1), times the height of this cycle. */
static double cyclic_height(const cn_schedule *s)
{
    const cn_schedule_cyclic_desc *d = &s->u.cyclic;
    double total = (double)d->step_size_up + (double)d->step_size_down, up = (double)d->step_size_up / total;
    double at = (double)s->now.at, cycle = floor(1 + at / total), x = 1 + at / total - cycle;
    double height = x <= up ? x / up : (x - 1) / (up - 1);
    if (d->mode == CN_TRIANGULAR2) return height * (1 / pow(2, cycle - 1));
    return d->mode == CN_EXP_RANGE ? height * pow(d->gamma, at) : height;
}

static double cyclic_lr(const cn_schedule *s, int g)
{
    (void)g;
    return s->u.cyclic.base_lr + (s->u.cyclic.max_lr - s->u.cyclic.base_lr) * cyclic_height(s);
}

static double cyclic_momentum(const cn_schedule *s, int g)
{
    (void)g;
    return s->u.cyclic.max_momentum - (s->u.cyclic.max_momentum - s->u.cyclic.base_momentum) * cyclic_height(s);
}

static const cn__pace cyclic = { .name = "cyclic", .lr = cyclic_lr, .momentum = cyclic_momentum };
static const cn__pace cyclic_fixed = { .name = "cyclic", .lr = cyclic_lr };

cn_schedule *cn_schedule_cyclic(cn_optim *opt, const cn_schedule_cyclic_desc *desc)
{
    cn_schedule_cyclic_desc d = desc ? *desc : (cn_schedule_cyclic_desc){ 0 };
    cn_schedule *s = cn__schedule_new(opt, d.fixed_momentum ? &cyclic_fixed : &cyclic);
    if (!s) return NULL;
    d.base_lr = cn__given(d.base_lr, NAN);
    d.base_momentum = cn__given(d.base_momentum, 0.8);
    d.max_momentum = cn__given(d.max_momentum, 0.9);
    d.gamma = cn__given(d.gamma, 1);
    if (d.step_size_up == 0) d.step_size_up = 2000;
    if (d.step_size_down == 0) d.step_size_down = d.step_size_up;
    s->u.cyclic = d;
    if (!(d.base_lr >= 0)) return refuse(s, "base_lr must be set, and ≥ 0", d.base_lr);
    if (!(d.max_lr > 0)) return refuse(s, "max_lr must be > 0", d.max_lr);
    if (d.step_size_up < 1 || d.step_size_down < 1)
        return refuse(s, "step_size_up and step_size_down must be > 0",
                      (double)(d.step_size_up < 1 ? d.step_size_up : d.step_size_down));
    if ((unsigned)d.mode > CN_EXP_RANGE) return refuse(s, "mode must be from 0 to 2", (double)d.mode);
    if (!isfinite(d.gamma)) return refuse(s, "gamma must be finite", d.gamma);
    for (int g = 0; g < s->n_groups; g++) cn_optim_set_lr(opt, g, d.base_lr);
    return cn__schedule_begin(s);
}

/* ---- plateau: see cn_schedule_step_metric ---- */

static double plateau_lr(const cn_schedule *s, int g)
{
    double lr = cn__lr_now(s, g), less = fmax(lr * s->u.plateau.factor, s->u.plateau.min_lr);
    return lr - less > s->u.plateau.eps ? less : lr;
}

const cn__pace cn__plateau = { .name = "plateau", .lr = plateau_lr };

cn_schedule *cn_schedule_plateau(cn_optim *opt, const cn_schedule_plateau_desc *desc)
{
    cn_schedule_plateau_desc d = desc ? *desc : (cn_schedule_plateau_desc){ 0 };
    cn_schedule *s = cn__schedule_new(opt, &cn__plateau);
    if (!s) return NULL;
    d.factor = cn__given(d.factor, 0.1);
    d.threshold = cn__given(d.threshold, 1e-4);
    d.eps = cn__given(d.eps, 1e-8);
    d.min_lr = cn__given(d.min_lr, 0);
    d.patience = d.patience == 0 ? 10 : d.patience < 0 ? 0 : d.patience;
    s->u.plateau = d;
    s->now.best = d.max ? -INFINITY : INFINITY;
    if (!(d.factor >= 0 && d.factor < 1)) return refuse(s, "factor must be ≥ 0 and < 1", d.factor);
    if (!(d.min_lr >= 0)) return refuse(s, "min_lr must be ≥ 0", d.min_lr);
    if (d.cooldown < 0) return refuse(s, "cooldown must be ≥ 0", (double)d.cooldown);
    if (!isfinite(d.threshold)) return refuse(s, "threshold must be finite", d.threshold);
    if (!(d.eps >= 0)) return refuse(s, "eps must be ≥ 0", d.eps);
    return s;
}

/* ---- a function of the user ---- */

static double call(const cn_schedule *s, int g)
{
    cn__outside out = cn__go_out(s->object.ctx);
    const double factor = s->u.call.fn(s->u.call.user, g, s->now.at);
    cn__come_back(s->object.ctx, out);
    return factor;
}

static double lambda_lr(const cn_schedule *s, int g) { return s->base[g] * call(s, g); }

static double multiplicative_lr(const cn_schedule *s, int g)
{
    double lr = cn__lr_now(s, g);
    return s->first ? lr : lr * call(s, g);
}

static const cn__pace lambda = { .name = "lambda", .lr = lambda_lr };
static const cn__pace multiplicative = { .name = "multiplicative", .lr = multiplicative_lr };

static cn_schedule *with_function(cn_optim *opt, const cn__pace *pace, cn_schedule_fn fn, void *user)
{
    cn_schedule *s = cn__schedule_new(opt, pace);
    if (!s) return NULL;
    s->u.call.fn = fn;
    s->u.call.user = user;
    if (fn) return cn__schedule_begin(s);
    cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "%s: fn must be a function, got NULL", pace->name);
    cn__object_free(s);
    return NULL;
}

cn_schedule *cn_schedule_lambda(cn_optim *opt, cn_schedule_fn fn, void *user)
{
    return with_function(opt, &lambda, fn, user);
}

cn_schedule *cn_schedule_multiplicative(cn_optim *opt, cn_schedule_fn fn, void *user)
{
    return with_function(opt, &multiplicative, fn, user);
}
