/* Optimizers as objects: 100 steps against PyTorch's; groups, clipping, averages, states; what a step costs; and that a
   step that fails has not happened. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/average.h"
#include "cairn/cairn.h"
#include "cairn/schedule.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/stored.h"

enum { MOST = 8, NUMBERS = 256 };
typedef struct model {
    cn_ctx *cn;
    int n;
    cn_tensor *p[MOST];
    cn_optim *opt;
} model;

/* ---- the problem: tests/reference/make_optim.py has the same ---- */

static const cn_dims vectors[] = { { 2, { 3, 4 } }, { 1, { 5 } }, { 0, { 0 } }, { 1, { 1 } } };
static const cn_dims matrices[] = { { 2, { 3, 5 } }, { 2, { 6, 4 } }, { 2, { 4, 4 } } };

static cn_tensor *filled(cn_ctx *cn, cn_dtype dtype, cn_dims shape, double a, double b, double (*f)(double))
{
    double v[NUMBERS];
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.v[d];
    for (int64_t i = 0; i < n; i++) v[i] = f(a * (double)i + b);
    return cn_cast(cn_from(cn, CN_F64, shape, v), dtype);
}

static model model_new(cn_desc desc, cn_dtype dtype, const cn_dims *shapes, int n)
{
    model m = { .cn = cn_open(&desc), .n = n };
    if (!m.cn) return m;
    cn_scope s = cn_scope_begin(m.cn);
    for (int k = 0; k < n; k++) {
        cn_tensor *x = filled(m.cn, CN_F64, shapes[k], 0.5, k, cos);
        m.p[k] = cn_param(cn_cast(cn_add_s(x, k / 10.0), dtype));
    }
    cn_eval_all(m.cn);
    cn_scope_end(m.cn, s);
    return m;
}

static cn_params params(const model *m) { return (cn_params){ m->p, m->n }; }

/* (0.1 + k/20) p + sin(0.7 t + 0.3 i + k) becomes the gradient of parameter k */
static void add_gradient(model *m, int k, int t, double share)
{
    cn_tensor *p = m->p[k], *tilt = filled(m->cn, cn_type(p), cn_shape(p), 0.3, 0.7 * t + k, sin);
    cn_tensor *loss = cn_add(cn_mul_s(cn_square(p), (0.1 + k / 20.0) / 2), cn_mul(p, tilt));
    cn_backward(cn_mul_s(cn_sum(loss, CN_ALL, false), share));
}

static bool has_gradient(int k, int t) { return !(k == 1 && t <= 2) && !(k == 2 && t % 4 == 0); }

static bool take_step(model *m, int t, bool all)
{
    cn_scope s = cn_scope_begin(m->cn);
    for (int k = 0; k < m->n; k++)
        if (all || has_gradient(k, t)) add_gradient(m, k, t, 1);
    bool ok = cn_step(m->opt);
    cn_scope_end(m->cn, s);
    return ok;
}

static int read_all(cn_tensor *const *t, int n, double *out)
{
    int count = 0;
    for (int k = 0; k < n; k++) {
        if (!t[k]) continue;
        cn_read_f64(t[k], out + count, cn_numel(t[k]));
        count += (int)cn_numel(t[k]);
    }
    return count;
}

static bool same_numbers(const model *a, const model *b)
{
    double x[NUMBERS], y[NUMBERS];
    int n = read_all(a->p, a->n, x);
    return n == read_all(b->p, b->n, y) && !memcmp(x, y, sizeof *x * (size_t)n);
}

/* ---- every optimizer ---- */

typedef enum kind {
    SGD,
    ADAM,
    ADAMW,
    NADAM,
    RADAM,
    ADAMAX,
    RMSPROP,
    ADAGRAD,
    ADADELTA,
    LION,
    RPROP,
    ASGD,
    ADAFACTOR,
    MUON
} kind;
typedef struct rule {
    const char *name;
    kind kind;
    union {
        cn_sgd_desc sgd;
        cn_adam_desc adam;
        cn_nadam_desc nadam;
        cn_radam_desc radam;
        cn_adamax_desc adamax;
        cn_rmsprop_desc rmsprop;
        cn_adagrad_desc adagrad;
        cn_adadelta_desc adadelta;
        cn_lion_desc lion;
        cn_rprop_desc rprop;
        cn_asgd_desc asgd;
        cn_adafactor_desc adafactor;
        cn_muon_desc muon;
    };
} rule;

static const rule rules[] = {
    { "sgd", SGD, .sgd = { 0 } },
    { "sgd_decay_maximize", SGD, .sgd = { .lr = 0.05, .weight_decay = 0.1, .maximize = true } },
    { "sgd_momentum", SGD, .sgd = { .lr = 0.05, .momentum = 0.9 } },
    { "sgd_dampening", SGD, .sgd = { .lr = 0.05, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01 } },
    { "sgd_nesterov", SGD, .sgd = { .lr = 0.02, .momentum = 0.8, .nesterov = true } },
    { "adam", ADAM, .adam = { 0 } },
    { "adam_decay_maximize", ADAM,
      .adam = { .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .maximize = true } },
    { "adam_amsgrad", ADAM, .adam = { .lr = 0.05, .beta2 = 0.9, .amsgrad = true } },
    { "adam_beta1_zero", ADAM, .adam = { .lr = 0.01, .beta1 = CN_ZERO, .beta2 = 0.99 } },
    { "adam_lr_zero", ADAM, .adam = { .lr = CN_ZERO } },
    { "adamw", ADAMW, .adam = { 0 } },
    { "adamw_no_decay", ADAMW, .adam = { .lr = 0.02, .weight_decay = CN_ZERO } },
    { "adamw_amsgrad", ADAMW, .adam = { .lr = 0.05, .weight_decay = 0.3, .amsgrad = true } },
    { "nadam", NADAM, .nadam = { 0 } },
    { "nadam_decay", NADAM, .nadam = { .lr = 0.02, .weight_decay = 0.1, .momentum_decay = 0.02 } },
    { "nadam_decoupled", NADAM,
      .nadam = { .lr = 0.02, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true } },
    { "radam", RADAM, .radam = { 0 } },
    { "radam_decay", RADAM, .radam = { .lr = 0.02, .beta1 = 0.8, .beta2 = 0.98, .weight_decay = 0.1 } },
    { "radam_decoupled", RADAM,
      .radam = { .lr = 0.02, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true } },
    { "adamax", ADAMAX, .adamax = { 0 } },
    { "adamax_decay", ADAMAX,
      .adamax = { .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .maximize = true } },
    { "rmsprop", RMSPROP, .rmsprop = { 0 } },
    { "rmsprop_centered", RMSPROP, .rmsprop = { .lr = 0.005, .alpha = 0.9, .centered = true, .eps = 1e-3 } },
    { "rmsprop_momentum", RMSPROP, .rmsprop = { .lr = 0.005, .momentum = 0.9, .weight_decay = 0.1 } },
    { "rmsprop_all", RMSPROP,
      .rmsprop = { .lr = 0.005, .alpha = 0.95, .momentum = 0.5, .centered = true, .maximize = true, .eps = 1e-3 } },
    { "adagrad", ADAGRAD, .adagrad = { 0 } },
    { "adagrad_all", ADAGRAD,
      .adagrad = { .lr = 0.1,
                   .lr_decay = 0.05,
                   .weight_decay = 0.1,
                   .initial_accumulator_value = 0.3,
                   .maximize = true } },
    { "adadelta", ADADELTA, .adadelta = { 0 } },
    { "adadelta_all", ADADELTA,
      .adadelta = { .lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.1, .maximize = true } },
    { "rprop", RPROP, .rprop = { 0 } },
    { "rprop_all", RPROP,
      .rprop = { .lr = 0.05, .eta_minus = 0.4, .eta_plus = 1.3, .step_min = 1e-3, .step_max = 0.1, .maximize = true } },
    { "asgd", ASGD, .asgd = { 0 } },
    { "asgd_all", ASGD,
      .asgd = { .lr = 0.05, .lambd = 0.02, .alpha = 0.6, .t0 = 5, .weight_decay = 0.1, .maximize = true } },
    { "adafactor", ADAFACTOR, .adafactor = { 0 } },
    { "adafactor_all", ADAFACTOR,
      .adafactor = { .lr = 0.05,
                     .beta2_decay = -0.6,
                     .eps1 = 1e-4,
                     .eps2 = 1e-2,
                     .d = 1.5,
                     .weight_decay = 0.1,
                     .maximize = true } },
    { "lion", LION, .lion = { 0 } },
    { "lion_decay", LION, .lion = { .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.3, .maximize = true } },
    { "muon", MUON, .muon = { 0 } },
    { "muon_rms", MUON,
      .muon = { .lr = 0.02,
                .weight_decay = 0.2,
                .momentum = 0.9,
                .no_nesterov = true,
                .adjust_lr = CN_MUON_MATCH_RMS_ADAMW } },
    { "muon_full", MUON, .muon = { .lr = 0.02, .full_precision = true } },
    { "muon_full_spectral", MUON,
      .muon = { .lr = 0.02,
                .no_nesterov = true,
                .ns_steps = 3,
                .ns_coefficients = { 2, -1.5, 0.5 },
                .adjust_lr = CN_MUON_SPECTRAL_UNCLAMPED,
                .weight_decay = CN_ZERO,
                .full_precision = true } },
};
enum { RULES = sizeof rules / sizeof *rules };

static cn_optim *make(const rule *r, cn_ctx *cn, cn_params p)
{
    switch (r->kind) {
    case SGD: return cn_sgd(cn, p, &r->sgd);
    case ADAM: return cn_adam(cn, p, &r->adam);
    case ADAMW: return cn_adamw(cn, p, &r->adam);
    case NADAM: return cn_nadam(cn, p, &r->nadam);
    case RADAM: return cn_radam(cn, p, &r->radam);
    case ADAMAX: return cn_adamax(cn, p, &r->adamax);
    case RMSPROP: return cn_rmsprop(cn, p, &r->rmsprop);
    case ADAGRAD: return cn_adagrad(cn, p, &r->adagrad);
    case ADADELTA: return cn_adadelta(cn, p, &r->adadelta);
    case LION: return cn_lion(cn, p, &r->lion);
    case RPROP: return cn_rprop(cn, p, &r->rprop);
    case ASGD: return cn_asgd(cn, p, &r->asgd);
    case ADAFACTOR: return cn_adafactor(cn, p, &r->adafactor);
    default: return cn_muon(cn, p, &r->muon);
    }
}

static model new_of(const rule *r, cn_dtype dtype, cn_desc desc)
{
    bool muon = r->kind == MUON;
    model m = model_new(desc, dtype, muon ? matrices : vectors, muon ? 3 : 4);
    if (m.cn) m.opt = make(r, m.cn, params(&m));
    return m;
}

/* Newton-Schulz in bf16 has two to three digits, and orders of summing differ: an update may be off by that. */
static double tolerance(const rule *r, cn_dtype dtype)
{
    if (r->kind == MUON && !r->muon.full_precision) return r->muon.lr ? 2e-3 : 5e-4;
    if (r->kind == MUON && dtype == CN_F32) return 1e-4; /* Newton-Schulz steps multiply rounding errors */
    return dtype == CN_F64 ? 1e-11 : 1e-5;
}

static bool close_to(const double *a, const double *b, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * fmax(1, fabs(b[i])))) return false;
    return true;
}

static double apart(const double *a, const double *b, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void a_hundred_steps_are_pytorchs(const stored *s, cn_dtype dtype)
{
    for (int i = 0; i < RULES; i++) {
        const rule *r = &rules[i];
        check_group(r->name);
        model m = new_of(r, dtype, (cn_desc){ .threads = 1 });
        double want[NUMBERS], have[NUMBERS];
        int seen = 0;
        for (int t = 1; t <= 100 && m.opt; t++) {
            check(take_step(&m, t, r->kind == MUON), "%s: step %d: %s", r->name, t, cn_error(m.cn));
            int n = stored_find(s, r->name, cn_dtype_name(dtype), t, want, NUMBERS);
            if (n == 0) continue;
            seen++;
            int count = read_all(m.p, m.n, have);
            check(count == n && close_to(have, want, n, tolerance(r, dtype)), "%s %s: step %d: %g apart", r->name,
                  cn_dtype_name(dtype), t, apart(have, want, n));
        }
        check(seen == 4, "%s: %d of 4 were compared: %s", r->name, seen, cn_error(m.cn));
        cn_close(m.cn);
    }
}

/* ---- what a step costs ---- */

static void plans_are_found_again(void)
{
    for (int i = 0; i < RULES; i++) {
        const rule *r = &rules[i];
        check_group(r->name);
        model m = new_of(r, CN_F32, (cn_desc){ .threads = 1 });
        cn_counters second = { 0 };
        for (int t = 1; t <= 12; t++) {
            check(take_step(&m, t, true), "%s: %s", r->name, cn_error(m.cn));
            check(cn_optim_set_lr(m.opt, 0, 0.1 / t), "%s", cn_error(m.cn));
            if (t == 2) second = cn_count(m.cn);
        }
        cn_counters last = cn_count(m.cn);
        check(last.plan_misses == second.plan_misses, "%s: %d plans built after the second step", r->name,
              (int)(last.plan_misses - second.plan_misses));
        check(last.live_bytes == second.live_bytes && last.handles == second.handles &&
                  last.live_nodes == second.live_nodes,
              "%s: nothing grows: %lld and %lld bytes, %lld and %lld handles", r->name, (long long)second.live_bytes,
              (long long)last.live_bytes, (long long)second.handles, (long long)last.handles);
        cn_close(m.cn);
    }
}

/* All parameters in one kernel, whatever their sizes, once there are states. */
static void one_kernel_updates_all(void)
{
    static const cn_dims shapes[] = { { 2, { 6, 7 } }, { 1, { 33 } }, { 2, { 1, 5 } }, { 3, { 2, 3, 4 } } };
    for (int i = 0; i < RULES; i++) {
        const rule *r = &rules[i];
        if (r->kind == MUON || r->kind == ADAFACTOR || r->kind == RPROP) continue;
        check_group(r->name);
        model m = model_new((cn_desc){ .threads = 1 }, CN_F32, shapes, 4);
        m.opt = make(r, m.cn, params(&m));
        for (int t = 1; t <= 3; t++) {
            cn_scope s = cn_scope_begin(m.cn);
            for (int k = 0; k < m.n; k++) add_gradient(&m, k, t, 1);
            cn_eval_all(m.cn); /* gradients are kept: from here on there is the step alone */
            int64_t kernels = cn_count(m.cn).kernels;
            check(cn_step(m.opt), "%s: %s", r->name, cn_error(m.cn));
            kernels = cn_count(m.cn).kernels - kernels;
            check(t == 1 || kernels == 1, "%s: step %d: %d kernels", r->name, t, (int)kernels);
            cn_scope_end(m.cn, s);
        }
        cn_close(m.cn);
    }
}

/* ---- what becomes of gradients ---- */

static void gradients_are_forgotten_or_kept(void)
{
    check_group("gradients");
    model m = new_of(&rules[0], CN_F32, (cn_desc){ .threads = 1 });
    add_gradient(&m, 0, 1, 1);
    check(cn_step(m.opt) && !cn_grad_of(m.p[0]), "forgotten: %s", cn_error(m.cn));
    cn_optim_free(m.opt);
    m.opt = cn_sgd(m.cn, params(&m), &(cn_sgd_desc){ .lr = 0.1, .keep_gradients = true });
    add_gradient(&m, 0, 1, 1);
    double before = cn_get(cn_grad_of(m.p[0]), CN_DIMS(0, 0));
    check(cn_step(m.opt) && cn_grad_of(m.p[0]) && cn_get(cn_grad_of(m.p[0]), CN_DIMS(0, 0)) == before, "kept");
    cn_optim_zero_grad(m.opt);
    check(!cn_grad_of(m.p[0]), "and forgotten when asked");
    cn_close(m.cn);
}

/* Four micro-batches of a quarter each are one batch. */
static void gradients_accumulate(void)
{
    check_group("accumulation");
    const rule *r = &rules[5];
    model whole = new_of(r, CN_F64, (cn_desc){ .threads = 1 }), parts = new_of(r, CN_F64, (cn_desc){ .threads = 1 });
    double x[NUMBERS], y[NUMBERS];
    for (int t = 1; t <= 5; t++) {
        check(take_step(&whole, t, true), "%s", cn_error(whole.cn));
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < parts.n; k++) add_gradient(&parts, k, t, 0.25);
        check(cn_step(parts.opt), "%s", cn_error(parts.cn));
    }
    int n = read_all(whole.p, whole.n, x);
    read_all(parts.p, parts.n, y);
    check(close_to(x, y, n, 1e-12), "%g apart", apart(x, y, n));
    cn_close(whole.cn);
    cn_close(parts.cn);
}

/* ---- halves ---- */

/* A step of a half is that of the same number in f32, rounded once; the state stays in f32. */
static void halves_are_computed_in_f32(void)
{
    static const cn_dtype halves[] = { CN_F16, CN_BF16 };
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < RULES; i++) {
            const rule *r = &rules[i];
            check_group(r->name);
            model half = new_of(r, halves[h], (cn_desc){ .threads = 1 });
            model wide = new_of(r, CN_F32, (cn_desc){ .threads = 1 });
            double x[NUMBERS], y[NUMBERS];
            for (int t = 1; t <= 3; t++) {
                for (int k = 0; k < half.n; k++) { /* the same numbers and gradients */
                    cn_assign(wide.p[k], cn_from(wide.cn, CN_F32, cn_shape(half.p[k]),
                                                 cn_data(cn_cast(cn_detach(half.p[k]), CN_F32))));
                    add_gradient(&half, k, t, 1);
                    cn_tensor *g = cn_cast(cn_grad_of(half.p[k]), CN_F32);
                    cn_backward_with(wide.p[k], &(cn_backward_desc){
                                                    .gradient = cn_from(wide.cn, CN_F32, cn_shape(g), cn_data(g)) });
                }
                check(cn_step(half.opt) && cn_step(wide.opt), "%s: %s%s", r->name, cn_error(half.cn),
                      cn_error(wide.cn));
                int n = read_all(half.p, half.n, x);
                cn_tensor *rounded[MOST];
                for (int k = 0; k < wide.n; k++) rounded[k] = cn_cast(cn_detach(wide.p[k]), halves[h]);
                read_all(rounded, wide.n, y);
                check(!memcmp(x, y, sizeof *x * (size_t)n), "%s %s: step %d: %g apart", r->name,
                      cn_dtype_name(halves[h]), t, apart(x, y, n));
            }
            cn_close(half.cn);
            cn_close(wide.cn);
        }
}

/* ---- groups ---- */

static void groups_have_numbers_of_their_own(const stored *s)
{
    check_group("groups");
    model m = model_new((cn_desc){ .threads = 1 }, CN_F64, vectors, 4);
    m.opt = cn_adamw(m.cn, (cn_params){ m.p, 2 }, &(cn_adamw_desc){ .lr = 0.01 });
    int second =
        cn_optim_add_group(m.opt, (cn_params){ m.p + 2, 2 },
                           &(cn_group_desc){ .lr = 0.05, .weight_decay = CN_ZERO, .momentum = 0.5, .beta2 = 0.9 });
    check(second == 1 && cn_optim_groups(m.opt) == 2, "its number");
    check(cn_optim_lr(m.opt, 0) == 0.01 && cn_optim_lr(m.opt, 1) == 0.05 && cn_optim_weight_decay(m.opt, 0) == 0.01 &&
              cn_optim_weight_decay(m.opt, 1) == 0 && cn_optim_momentum(m.opt, 1) == 0.5,
          "its numbers");
    check(cn_optim_params(m.opt).n == 4 && cn_optim_params(m.opt).v[3] == m.p[3], "all parameters");
    check(cn_optim_group_params(m.opt, 1).n == 2 && cn_optim_group_params(m.opt, 1).v[0] == m.p[2], "its parameters");
    double want[NUMBERS], have[NUMBERS];
    for (int t = 1; t <= 10; t++) check(take_step(&m, t, true), "%s", cn_error(m.cn));
    int n = stored_find(s, "groups", "f64", 10, want, NUMBERS), count = read_all(m.p, m.n, have);
    check(n > 0 && count == n && close_to(have, want, n, 1e-12), "%g apart", apart(have, want, n));
    cn_close(m.cn);
}

/* ---- clipping ---- */

static void clipping_is_pytorchs(const stored *s, cn_dtype dtype)
{
    static const struct {
        const char *name;
        double order, most;
    } cases[] = {
        { "clip_2", 0, 1 }, { "clip_1", 1, 0.5 },     { "clip_inf", INFINITY, 0.25 },
        { "clip_3", 3, 1 }, { "clip_loose", 2, 100 },
    };
    double want[NUMBERS], have[NUMBERS], tolerance = dtype == CN_F64 ? 1e-12 : 1e-5;
    for (int i = 0; i < 6; i++) {
        const char *name = i < 5 ? cases[i].name : "clip_value";
        check_group(name);
        model m = model_new((cn_desc){ .threads = 1 }, dtype, vectors, 4);
        for (int k = 0; k < m.n; k++)
            if (i == 5 || has_gradient(k, 4)) add_gradient(&m, k, 4, 1);
        cn_tensor *seen[MOST + 1] = { NULL };
        int64_t before = cn_count(m.cn).evaluations;
        if (i < 5)
            seen[0] = cn_clip_grad_norm(params(&m), cases[i].most, &(cn_clip_desc){ .norm_type = cases[i].order });
        else check(cn_clip_grad_value(params(&m), 0.4), "%s", cn_error(m.cn));
        check(cn_count(m.cn).evaluations == before, "%s: nothing is computed yet", name);
        for (int k = 0; k < m.n; k++) seen[k + 1] = cn_grad_of(m.p[k]);
        int n = stored_find(s, name, cn_dtype_name(dtype), 4, want, NUMBERS), count = read_all(seen, MOST + 1, have);
        check(n > 0 && count == n && close_to(have, want, n, tolerance), "%s %s: %g apart: %s", name,
              cn_dtype_name(dtype), apart(have, want, n), cn_error(m.cn));
        cn_close(m.cn);
    }
}

static bool says(cn_ctx *cn, bool failed, const char *words)
{
    bool ok = failed && cn_failed(cn) && strstr(cn_error(cn), words);
    check(ok, "\"%s\" was expected, not \"%s\"", words, cn_error(cn));
    cn_error_clear(cn);
    return ok;
}

static void norms_that_are_not_finite(void)
{
    check_group("not finite");
    model m = model_new((cn_desc){ .threads = 1 }, CN_F32, vectors, 4);
    check(cn_clip_grad_norm(params(&m), 1, NULL) && cn_item(cn_clip_grad_norm(params(&m), 1, NULL)) == 0,
          "no gradients");
    add_gradient(&m, 0, 1, 1);
    double before = cn_get(cn_grad_of(m.p[0]), CN_DIMS(0, 0));
    cn_backward(cn_sum(cn_mul_s(m.p[1], INFINITY), CN_ALL, false));
    says(m.cn, !cn_clip_grad_norm(params(&m), 1, &(cn_clip_desc){ .error_if_nonfinite = true }),
         "the norm must be finite, got inf");
    check(cn_get(cn_grad_of(m.p[0]), CN_DIMS(0, 0)) == before, "gradients are as before");
    check(isinf(cn_item(cn_clip_grad_norm(params(&m), 1, NULL))), "without the option it is given: %s", cn_error(m.cn));
    check(isnan(cn_get(cn_grad_of(m.p[1]), CN_DIMS(0))), "and the gradients have been scaled by it");
    says(m.cn, !cn_clip_grad_norm(params(&m), -1, NULL), "max_norm must be ≥ 0 and norm_type > 0, got -1 and 2");
    says(m.cn, !cn_clip_grad_value(params(&m), NAN), "clip_value");
    cn_close(m.cn);
}

/* Clipping is part of the step's plan: nothing is read back, and nothing rebuilt for another limit. */
static void clipped_steps_find_their_plans(void)
{
    check_group("clipped steps");
    model m = new_of(&rules[10], CN_F32, (cn_desc){ .threads = 1 });
    cn_counters second = { 0 }, now = { 0 };
    for (int t = 1; t <= 6; t++) {
        cn_scope s = cn_scope_begin(m.cn);
        for (int k = 0; k < m.n; k++) add_gradient(&m, k, t, 1);
        cn_tensor *norm = cn_clip_grad_norm(cn_optim_params(m.opt), 1.0 / t, NULL);
        int64_t evaluations = cn_count(m.cn).evaluations;
        check(cn_step(m.opt), "step: %s", cn_error(m.cn)); /* the first one makes the states, each by itself */
        check(t == 1 || cn_count(m.cn).evaluations == evaluations + 1, "one evaluation");
        evaluations = cn_count(m.cn).evaluations;
        check(cn_item(norm) > 0 && cn_count(m.cn).evaluations == evaluations, "the norm was computed along");
        cn_scope_end(m.cn, s);
        now = cn_count(m.cn);
        if (t == 2) second = now;
    }
    check(now.plan_misses == second.plan_misses, "%d plans", (int)(now.plan_misses - second.plan_misses));
    check(now.live_bytes == second.live_bytes && now.handles == second.handles, "nothing grows");
    cn_close(m.cn);
}

/* ---- averages ---- */

static void fill(cn_module *m, const char *name, double a, double b, double (*f)(double))
{
    cn_tensor *t = cn_module_get(m, name);
    double v[4];
    for (int i = 0; i < 4; i++) v[i] = a * f(i) + b;
    cn_assign(t, cn_from(cn_context(t), CN_F64, CN_DIMS(4), v));
}

static const char *const statistics[] = { "weight", "bias", "running_mean", "running_var" };

static cn_module *bare(cn_ctx *cn, cn_dtype dtype)
{
    static const cn_module_type type = { .name = "Bare" };
    cn_module *m = cn_module_new(cn, &type);
    for (int i = 0; i < 4; i++) {
        cn_tensor *start = cn_zeros(cn, dtype, CN_DIMS(4));
        if (i < 2) cn_module_param(m, statistics[i], start);
        else cn_module_buffer(m, statistics[i], start);
    }
    cn_module_buffer(m, "count", cn_zeros(cn, CN_I64, CN_SCALAR));
    return m;
}

static void read_statistics(cn_module *m, double *out)
{
    for (int i = 0; i < 4; i++) cn_read_f64(cn_module_get(m, statistics[i]), out + 4 * i, 4);
}

static void averages_are_pytorchs(const stored *s, cn_dtype dtype)
{
    for (int plain = 0; plain < 2; plain++) {
        check_group(plain ? "swa" : "ema");
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
        cn_module *m = bare(cn, dtype);
        cn_ema *e = cn_ema_of(m, &(cn_ema_desc){ .decay = 0.9, .plain = plain, .average_buffers = plain });
        int64_t misses = 0;
        for (int t = 1; t <= 10; t++) {
            fill(m, "weight", 1, t, cos);
            fill(m, "bias", 1, -t / 7.0, sin);
            fill(m, "running_mean", 2, -t, cos);
            fill(m, "running_var", 1 / 3.0, t * t, cos);
            cn_assign(cn_module_get(m, "count"), cn_scalar(cn, CN_I64, t));
            cn_eval_all(cn);
            check(cn_ema_update(e), "%s", cn_error(cn));
            if (t == 3) misses = cn_count(cn).plan_misses;
        }
        check(cn_count(cn).plan_misses == misses && cn_ema_updates(e) == 10, "one plan for all updates: %d more",
              (int)(cn_count(cn).plan_misses - misses));
        double want[NUMBERS], have[NUMBERS], own[NUMBERS], again[NUMBERS];
        read_statistics(m, own);
        check(cn_ema_apply(e), "%s", cn_error(cn));
        read_statistics(m, have);
        int n = stored_find(s, plain ? "swa" : "ema", cn_dtype_name(dtype), 10, want, NUMBERS);
        check(n == 16 && close_to(have, want, n, dtype == CN_F64 ? 1e-13 : 1e-5), "%g apart", apart(have, want, 16));
        check(cn_item_i64(cn_module_get(m, "count")) == 10, "whole numbers are copied");
        says(cn, !cn_ema_update(e), "applied");
        says(cn, !cn_ema_apply(e), "applied");
        check(cn_ema_restore(e), "%s", cn_error(cn));
        read_statistics(m, again);
        check(!memcmp(own, again, 16 * sizeof *own), "the weights are as before");
        check(cn_requires_grad(cn_module_get(m, "weight")), "and parameters still");
        says(cn, !cn_ema_restore(e), "not applied");

        cn_dict *d = cn_dict_new(cn);
        cn_ema *other = cn_ema_of(m, &(cn_ema_desc){ .decay = 0.9, .plain = plain, .average_buffers = plain });
        says(cn, !cn_ema_load(other, d, "x/"), "a whole number ≥ 0 as n_averaged");
        check(cn_ema_save(e, d, "x/") && cn_ema_load(other, d, "x/") && cn_ema_updates(other) == 10, "%s",
              cn_error(cn));
        check(cn_ema_apply(other), "%s", cn_error(cn));
        read_statistics(m, again);
        check(!memcmp(have, again, 16 * sizeof *own), "loaded averages are those saved");
        cn_ema_free(other);
        says(cn, !cn_ema_of(m, &(cn_ema_desc){ .decay = 2 }), "decay must be from 0 to 1, got 2");
        check(!cn_failed(cn), "%s", cn_error(cn));
        cn_close(cn);
    }
}

/* A share of a thousandth is lost in a half, not in its average. */
static void averages_of_halves_move(void)
{
    check_group("averages of halves");
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_tensor *p = cn_param(cn_full(cn, CN_BF16, CN_DIMS(3), 1));
    cn_ema *e = cn_ema_new(cn, (cn_params){ &p, 1 }, NULL);
    cn_ema_update(e);
    cn_assign(p, cn_full(cn, CN_BF16, CN_DIMS(3), 2));
    for (int t = 0; t < 1000; t++) cn_ema_update(e);
    check(fabs(cn_get(cn_ema_averages(e).v[0], CN_DIMS(1)) - (2 - pow(0.999, 1000))) < 1e-4, "%g",
          cn_get(cn_ema_averages(e).v[0], CN_DIMS(1)));
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* ---- states ---- */

/* 7 steps, saved; another optimizer with the same parameters goes on bit for bit. */
static void a_loaded_optimizer_goes_on(void)
{
    static const cn_dtype dtypes[] = { CN_F32, CN_F64, CN_BF16 };
    for (int i = 0; i < RULES * 3; i++) {
        const rule *r = &rules[i / 3];
        cn_dtype dtype = dtypes[i % 3];
        check_group(r->name);
        model one = new_of(r, dtype, (cn_desc){ .threads = 1 });
        for (int t = 1; t <= 7; t++) take_step(&one, t, r->kind == MUON);
        model two = { .cn = one.cn, .n = one.n };
        for (int k = 0; k < one.n; k++) two.p[k] = cn_param(cn_clone(cn_detach(one.p[k])));
        cn_dict *d = cn_dict_new(one.cn);
        check(cn_optim_save(one.opt, d, "o/"), "%s: %s", r->name, cn_error(one.cn));
        take_step(&one, 8, true); /* what was saved is the state of then */
        two.opt = make(r, two.cn, params(&two));
        check(cn_optim_load(two.opt, d, "o/"), "%s: %s", r->name, cn_error(two.cn));
        for (int t = 8; t <= 12; t++) {
            if (t > 8) take_step(&one, t, true);
            take_step(&two, t, true);
        }
        check(!cn_failed(one.cn) && same_numbers(&one, &two), "%s %s: %s", r->name, cn_dtype_name(dtype),
              cn_error(one.cn));
        cn_close(one.cn);
    }
}

/* The numbers of a group are part of the state: an optimizer that was made with others goes on with the saved ones. */
static void loaded_numbers_count(void)
{
    check_group("numbers");
    const cn_adamw_desc saved = { .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 0.3, .weight_decay = 0.2 };
    for (int which = 0; which < 5; which++) {
        cn_adamw_desc other = saved;
        *(double *[]){ &other.lr, &other.beta1, &other.beta2, &other.eps, &other.weight_decay }[which] = 0.07;
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .seed = 3 });
        cn_tensor *p[2] = { cn_param(cn_randn(cn, CN_F64, CN_DIMS(9))), NULL };
        p[1] = cn_param(cn_clone(cn_detach(p[0])));
        cn_optim *opt[2];
        for (int i = 0; i < 2; i++) opt[i] = cn_adamw(cn, (cn_params){ &p[i], 1 }, i ? &other : &saved);
        cn_dict *d = cn_dict_new(cn);
        check(cn_optim_save(opt[0], d, "") && cn_optim_load(opt[1], d, ""), "%s", cn_error(cn));
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < 2; i++) cn_backward(cn_sum(cn_square(p[i]), CN_ALL, false)), cn_step(opt[i]);
        double v[2][9];
        for (int i = 0; i < 2; i++) cn_read(cn_detach(p[i]), v[i], sizeof v[i]);
        check(!memcmp(v[0], v[1], sizeof v[0]), "number %d is not the saved one: %s", which, cn_error(cn));
        cn_close(cn);
    }
}

static void states_have_pytorchs_names(void)
{
    check_group("names");
    model m = new_of(&rules[7], CN_BF16, (cn_desc){ .threads = 1 });
    take_step(&m, 1, true);
    cn_dict *d = cn_dict_new(m.cn);
    cn_optim_save(m.opt, d, NULL);
    cn_tensor *v = cn_dict_get(d, "state/0/exp_avg_sq");
    check(v && cn_type(v) == CN_F32 && cn_size(v, 1) == 4, "f32 beside halves, of the parameter's shape");
    check(cn_dict_get(d, "state/3/exp_avg") && cn_dict_get(d, "state/2/max_exp_avg_sq"), "names");
    int64_t step = 0;
    double lr = 0;
    check(cn_dict_whole(d, "state/0/step", &step) && step == 1, "steps");
    check(cn_dict_number(d, "param_groups/0/lr", &lr) && lr == 0.05, "lr");
    cn_close(m.cn);
}

static void bad_states_are_refused(void)
{
    check_group("bad states");
    model m = new_of(&rules[5], CN_F32, (cn_desc){ .threads = 1 }),
          twin = new_of(&rules[5], CN_F32, (cn_desc){ .threads = 1 });
    for (int t = 1; t <= 2; t++) take_step(&m, t, true), take_step(&twin, t, true);
    cn_optim *sgd = cn_sgd(m.cn, params(&m), NULL), *fewer = cn_adam(m.cn, (cn_params){ m.p, 3 }, NULL);
    cn_dict *of_sgd = cn_dict_new(m.cn), *of_fewer = cn_dict_new(m.cn), *d = cn_dict_new(m.cn);
    cn_optim_save(sgd, of_sgd, "");
    cn_optim_save(fewer, of_fewer, "");
    says(m.cn, !cn_optim_load(m.opt, d, ""), "no optimizer");
    says(m.cn, !cn_optim_load(m.opt, of_sgd, ""), "must have the state of adam, got that of sgd");
    says(m.cn, !cn_optim_load(m.opt, of_fewer, ""), "must have 4 parameters, got 3 from the dict");
    cn_optim_save(m.opt, d, "");
    cn_dict_set_number(d, "param_groups/0/lr", 0.5);
    cn_dict_set(d, "state/1/exp_avg", cn_zeros(m.cn, CN_F32, CN_DIMS(4)));
    says(m.cn, !cn_optim_load(m.opt, d, ""), "state/1/exp_avg must have the shape [5], got [4]");
    cn_dict_set(d, "state/1/exp_avg", cn_zeros(m.cn, CN_F32, CN_DIMS(5)));
    cn_dict_set_number(d, "param_groups/0/beta2", 1.5);
    says(m.cn, !cn_optim_load(m.opt, d, ""), "beta2 must be ≥ 0 and < 1, got 1.5");
    check(cn_optim_lr(m.opt, 0) == 1e-3, "nothing was loaded");
    take_step(&m, 3, true), take_step(&twin, 3, true);
    check(same_numbers(&m, &twin), "nothing was loaded: %s", cn_error(m.cn));
    cn_close(m.cn);
    cn_close(twin.cn);
}

/* ---- refusals ---- */

static void bad_calls_are_refused(void)
{
    check_group("refusals");
    model m = model_new((cn_desc){ .threads = 1 }, CN_F32, vectors, 4),
          other = model_new((cn_desc){ .threads = 1 }, CN_F32, vectors, 1);
    cn_ctx *cn = m.cn;
    cn_params all = params(&m);
    says(cn, !cn_adam(cn, (cn_params){ NULL, 0 }, NULL), "adam: a group must have at least 1 parameter, got 0");
    says(cn, !cn_adam(cn, (cn_params){ CN_TENSORS(m.p[0], m.p[1], m.p[0]) }, NULL),
         "the optimizer has parameter 2 already");
    says(cn, !cn_adam(cn, (cn_params){ CN_TENSORS(m.p[0], NULL) }, NULL), "parameter 1 must not be NULL");
    says(cn, !cn_adam(cn, params(&other), NULL), "parameter 0 is of another");
    says(cn, !cn_adam(cn, (cn_params){ CN_TENSORS(cn_mul_s(m.p[0], 2)) }, NULL), "parameter 0 must be a leaf");
    says(cn, !cn_adam(cn, (cn_params){ CN_TENSORS(cn_arange(cn, CN_I64, 0, 3, 1)) }, NULL), "i64");
    says(cn, !cn_adam(cn, all, &(cn_adam_desc){ .lr = -1 }), "lr must be finite and ≥ 0, got -1");
    says(cn, !cn_adam(cn, all, &(cn_adam_desc){ .beta1 = 1 }), "beta1 must be ≥ 0 and < 1, got 1");
    says(cn, !cn_adam(cn, all, &(cn_adam_desc){ .eps = NAN }), "eps must be finite and ≥ 0, got nan");
    says(cn, !cn_sgd(cn, all, &(cn_sgd_desc){ .nesterov = true }),
         "with nesterov momentum must be > 0 and dampening 0, got 0 and 0");
    says(cn, !cn_rmsprop(cn, all, &(cn_rmsprop_desc){ .alpha = 2 }), "alpha and rho must be from 0 to 1, got 2");
    says(cn, !cn_muon(cn, all, NULL), "a parameter must be a matrix, got shape [5]");
    says(cn, !cn_muon(cn, (cn_params){ m.p, 1 }, &(cn_muon_desc){ .ns_steps = 100 }),
         "ns_steps must be from 0 to 99, got 100");
    m.opt = cn_adam(cn, (cn_params){ m.p, 2 }, NULL);
    says(cn, cn_optim_add_group(m.opt, (cn_params){ m.p + 1, 2 }, NULL) < 0, "the optimizer has parameter 0 already");
    check(cn_optim_params(m.opt).n == 2 && cn_optim_groups(m.opt) == 1, "nothing was added");
    says(cn, cn_optim_add_group(m.opt, (cn_params){ m.p + 2, 1 }, &(cn_group_desc){ .lr = -2 }) < 0,
         "lr must be finite and ≥ 0, got -2");
    says(cn, isnan(cn_optim_lr(m.opt, 1)), "group must be from 0 to 0, got 1");
    says(cn, !cn_optim_set_lr(m.opt, 0, NAN), "lr must be finite and ≥ 0, got nan");
    cn_optim *ada = cn_adadelta(cn, all, NULL);
    says(cn, !cn_optim_set_momentum(ada, 0, 0.5), "no momentum");
    check(cn_step(m.opt), "no gradients at all is fine: %s", cn_error(cn));
    check(!cn_step(NULL) && !cn_optim_save(NULL, NULL, "") && !cn_adam(NULL, all, NULL), "NULL");
    cn_optim_free(NULL);
    cn_close(cn);
    cn_close(other.cn);
}

static void no_step_while_an_error_stands(void)
{
    check_group("errors");
    model m = new_of(&rules[5], CN_F32, (cn_desc){ .threads = 1 }),
          was = new_of(&rules[5], CN_F32, (cn_desc){ .threads = 1 });
    for (int k = 0; k < m.n; k++) add_gradient(&m, k, 1, 1);
    check(!cn_add(m.p[0], m.p[1]), "shapes that differ");
    check(cn_failed(m.cn) && !cn_step(m.opt), "refused");
    cn_error_clear(m.cn);
    check(same_numbers(&m, &was) && cn_grad_of(m.p[0]), "nothing has changed");
    check(cn_step(m.opt) && take_step(&was, 1, true) && same_numbers(&m, &was), "and it can be taken then");

    /* an index out of range is found while computing */
    int64_t index[2] = { 0, 9 };
    for (int k = 0; k < m.n; k++) add_gradient(&m, k, 2, 1);
    cn_tensor *rows = cn_embedding(m.p[0], cn_from(m.cn, CN_I64, CN_DIMS(2), index));
    check(rows && !cn_step(m.opt) && cn_error_code(m.cn) == CN_BAD_INDEX, "%s", cn_error(m.cn));
    cn_error_clear(m.cn);
    check(same_numbers(&m, &was) && cn_grad_of(m.p[0]), "nothing has changed: %s", cn_error(m.cn));
    check(cn_step(m.opt) && take_step(&was, 2, true) && same_numbers(&m, &was), "and it can be taken: %s",
          cn_error(m.cn));
    cn_close(m.cn);
    cn_close(was.cn);
}

/* ---- memory runs out ---- */

/* The second step of the loop: first steps make states, later ones find them. */
static bool step_with_fault(const rule *r, int before, int64_t n, int *failed)
{
    faulty f = { 0 };
    model net = new_of(r, CN_F32, (cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
    model twin = new_of(r, CN_F32, (cn_desc){ .threads = 1 });
    for (int t = 1; t <= before; t++) take_step(&net, t, true), take_step(&twin, t, true);
    cn_scope s = cn_scope_begin(net.cn);
    for (int k = 0; k < net.n; k++) add_gradient(&net, k, before + 1, 1);
    f.calls = 0;
    f.fail_at = n;
    bool ok = cn_step(net.opt), reached = f.calls >= n;
    f.fail_at = 0;
    *failed += !ok;
    check(ok || cn_error_code(net.cn) == CN_NO_MEMORY, "%s: allocation %d: %s", r->name, (int)n, cn_error(net.cn));
    cn_error_clear(net.cn);
    if (ok) {
        take_step(&twin, before + 1, true);
        check(same_numbers(&net, &twin), "%s: allocation %d: the step is whole", r->name, (int)n);
    } else {
        check(same_numbers(&net, &twin), "%s: allocation %d: parameters are as before", r->name, (int)n);
        check(cn_grad_of(net.p[0]) && cn_grad_of(net.p[net.n - 1]), "%s: allocation %d: gradients too", r->name,
              (int)n);
        check(cn_step(net.opt), "%s: allocation %d: the next try: %s", r->name, (int)n, cn_error(net.cn));
        take_step(&twin, before + 1, true);
        check(same_numbers(&net, &twin), "%s: allocation %d: states and counts were as before", r->name, (int)n);
    }
    cn_scope_end(net.cn, s);
    take_step(&net, before + 2, true), take_step(&twin, before + 2, true);
    check(same_numbers(&net, &twin), "%s: allocation %d: and the step after it", r->name, (int)n);
    cn_close(net.cn);
    cn_close(twin.cn);
    check(f.blocks == 0, "%s: allocation %d: %d blocks leak", r->name, (int)n, (int)f.blocks);
    return reached;
}

static void memory_runs_out_in_a_step(void)
{
    int failed = 0;
    for (int i = 0; i < RULES; i++) {
        if (test_is_quick() && i % 4 != 3) continue;
        check_group(rules[i].name);
        for (int before = 0; before < 2; before++)
            for (int64_t n = 1; step_with_fault(&rules[i], before, n, &failed); n++) continue;
    }
    check(failed > 50, "%d steps failed", failed);
    printf("%d steps failed for want of memory\n", failed);
}

/* Everything else that allocates: making, groups, clipping, averages, saving, loading, schedules. */
static bool everything(faulty *f, int64_t n)
{
    f->calls = 0;
    f->fail_at = n;
    model m = new_of(&rules[7], CN_F32, (cn_desc){ .threads = 1, .allocator = { faulty_resize, f } });
    if (m.cn) {
        cn_ctx *cn = m.cn;
        cn_tensor *more = cn_param(cn_ones(cn, CN_F32, CN_DIMS(3)));
        cn_optim_add_group(m.opt, (cn_params){ &more, 1 }, NULL);
        cn_schedule *parts[] = { cn_schedule_constant(m.opt, 0, 0),
                                 cn_schedule_milestones(m.opt, CN_LIST(int64_t, 3), 0) };
        cn_schedule *s = cn_schedule_sequential(m.opt, parts, 2, (int64_t[]){ 2 });
        cn_ema *e = cn_ema_new(cn, params(&m), NULL);
        for (int k = 0; k < m.n; k++) add_gradient(&m, k, 1, 1);
        cn_clip_grad_norm(params(&m), 1, NULL);
        cn_clip_grad_value(params(&m), 1);
        cn_step(m.opt);
        cn_schedule_step(s);
        cn_ema_update(e), cn_ema_update(e), cn_ema_apply(e), cn_ema_restore(e);
        cn_dict *d = cn_dict_new(cn);
        bool ok = cn_optim_save(m.opt, d, "o/") && cn_schedule_save(s, d, "s/") && cn_ema_save(e, d, "e/") &&
                  cn_optim_load(m.opt, d, "o/") && cn_schedule_load(s, d, "s/") && cn_ema_load(e, d, "e/");
        check(ok == !cn_failed(cn), "allocation %d: failures and errors go together: %s", (int)n, cn_error(cn));
        check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %d: %s", (int)n, cn_error(cn));
        cn_close(cn);
    }
    check(f->blocks == 0, "allocation %d: %d blocks leak", (int)n, (int)f->blocks);
    return f->calls >= n;
}

static void memory_runs_out_elsewhere(void)
{
    check_group("memory");
    faulty f = { 0 };
    int64_t n = 1;
    while (everything(&f, n)) n++;
    check(n > 50, "%d allocations", (int)n);
}

int main(void)
{
    stored s = stored_open(CAIRN_SOURCE_DIR, "optim.txt");
    check(s.text != NULL, "optim.txt");
    a_hundred_steps_are_pytorchs(&s, CN_F64);
    a_hundred_steps_are_pytorchs(&s, CN_F32);
    plans_are_found_again();
    one_kernel_updates_all();
    gradients_are_forgotten_or_kept();
    gradients_accumulate();
    halves_are_computed_in_f32();
    groups_have_numbers_of_their_own(&s);
    clipping_is_pytorchs(&s, CN_F64);
    clipping_is_pytorchs(&s, CN_F32);
    norms_that_are_not_finite();
    clipped_steps_find_their_plans();
    averages_are_pytorchs(&s, CN_F64);
    averages_are_pytorchs(&s, CN_F32);
    averages_of_halves_move();
    a_loaded_optimizer_goes_on();
    loaded_numbers_count();
    states_have_pytorchs_names();
    bad_states_are_refused();
    bad_calls_are_refused();
    no_step_while_an_error_stands();
    memory_runs_out_in_a_step();
    memory_runs_out_elsewhere();
    stored_close(&s);
    return finish();
}
