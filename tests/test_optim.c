/* Optimizer steps: equal to the same written in plain operators, bit for bit; all parameters or none; one kernel for all of
   them; the same for any number of threads. And what they rest on: elementwise operators with several results, and steps
   that are joined to one kernel only when they do not need each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

enum { MOST = 16 };
typedef struct model {
    cn_ctx *cn;
    int n;
    cn_tensor *p[MOST], *m[MOST], *v[MOST], *top[MOST];
} model;

static const int64_t mixed[] = { 0, 1, 7, 7, 512, 513, 100000, 1, 4099 };
enum { MIXED = sizeof mixed / sizeof *mixed };

static model model_new(cn_desc desc, cn_dtype dtype, const int64_t *sizes, int n)
{
    desc.seed = 5;
    model net = { .cn = cn_open(&desc), .n = n };
    for (int i = 0; i < n; i++) {
        net.p[i] = cn_param(cn_randn(net.cn, dtype, CN_DIMS(sizes[i])));
        net.m[i] = cn_keep(cn_zeros(net.cn, dtype, CN_DIMS(sizes[i])));
        net.v[i] = cn_keep(cn_zeros(net.cn, dtype, CN_DIMS(sizes[i])));
        net.top[i] = cn_keep(cn_zeros(net.cn, dtype, CN_DIMS(sizes[i])));
    }
    cn_eval_all(net.cn);
    return net;
}

/* Σ p²/2 + p·sin(i + t): its gradient is p + sin(i + t) */
static void backward(model *net, int t)
{
    for (int i = 0; i < net->n; i++) {
        cn_tensor *p = net->p[i], *at = cn_arange(net->cn, cn_type(p), 0, (double)cn_numel(p), 1);
        cn_tensor *tilt = cn_mul(p, cn_sin(cn_add_s(at, t)));
        cn_backward(cn_sum(cn_add(cn_mul_s(cn_square(p), 0.5), tilt), CN_ALL, false));
    }
}

static void zero_grad(model *net)
{
    for (int i = 0; i < net->n; i++) cn_zero_grad(net->p[i]);
}

static bool same_values(cn_tensor *a, cn_tensor *b)
{
    size_t bytes = (size_t)cn_numel(a) * cn_dtype_size(cn_type(a));
    if (cn_numel(a) != cn_numel(b) || cn_type(a) != cn_type(b)) return false;
    const void *x = cn_data(a), *y = cn_data(b);
    return x && y && !memcmp(x, y, bytes);
}

static bool same_models(const model *a, const model *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = same_values(a->p[i], b->p[i]) && same_values(a->m[i], b->m[i]) && same_values(a->v[i], b->v[i]) &&
               same_values(a->top[i], b->top[i]);
    return same;
}

/* ---- equal to the same in plain operators ---- */

static void adam_by_hand(model *net, const cn_adam_step_desc *d)
{
    double c1 = 1 - pow(0.9, (double)d->step), root = sqrt(1 - pow(0.999, (double)d->step));
    for (int i = 0; i < net->n; i++) {
        cn_tensor *p = net->p[i], *g = cn_grad_of(p);
        if (d->maximize) g = cn_neg(g);
        if (!d->decoupled && d->weight_decay != 0) g = cn_add(g, cn_mul_s(p, d->weight_decay));
        if (d->decoupled) p = cn_mul_s(p, 1 - d->lr * d->weight_decay);
        cn_tensor *m = cn_lerp(net->m[i], g, cn_scalar(net->cn, cn_type(p), 1 - 0.9));
        cn_tensor *v = cn_addcmul(cn_mul_s(net->v[i], 0.999), g, g, 1 - 0.999);
        cn_tensor *top = d->vmax ? cn_maximum(net->top[i], v) : v;
        cn_tensor *size = cn_add_s(cn_div_s(cn_sqrt(top), root), 1e-8);
        cn_assign(net->p[i], cn_sub(p, cn_div(cn_mul_s(m, d->lr / c1), size)));
        cn_assign(net->m[i], m);
        cn_assign(net->v[i], v);
        if (d->vmax) cn_assign(net->top[i], top);
    }
}

static void sgd_by_hand(model *net, const cn_sgd_step_desc *d)
{
    for (int i = 0; i < net->n; i++) {
        cn_tensor *p = net->p[i], *g = cn_grad_of(p);
        if (d->maximize) g = cn_neg(g);
        if (d->weight_decay != 0) g = cn_add(g, cn_mul_s(p, d->weight_decay));
        if (d->momentum != 0) {
            double fresh = d->step == 1 ? 1 : 1 - d->dampening;
            cn_tensor *b = cn_add(cn_mul_s(net->m[i], d->momentum), cn_mul_s(g, fresh));
            g = d->nesterov ? cn_add(g, cn_mul_s(b, d->momentum)) : b;
            cn_assign(net->m[i], b);
        }
        cn_assign(p, cn_sub(p, cn_mul_s(g, d->lr)));
    }
}

typedef struct rule {
    const char *name;
    bool adam, top;
    cn_adam_step_desc a;
    cn_sgd_step_desc s;
} rule;

static const rule rules[] = {
    { .name = "Adam", .adam = true, .a = { .lr = 0.01 } },
    { .name = "Adam with decay", .adam = true, .a = { .lr = 0.01, .weight_decay = 0.1, .maximize = true } },
    { .name = "AdamW", .adam = true, .a = { .lr = 0.01, .weight_decay = 0.1, .decoupled = true } },
    { .name = "AMSGrad", .adam = true, .top = true, .a = { .lr = 0.01 } },
    { .name = "SGD", .s = { .lr = 0.1 } },
    { .name = "SGD with decay", .s = { .lr = 0.01, .weight_decay = 0.1, .maximize = true } },
    { .name = "momentum", .s = { .lr = 0.1, .momentum = 0.9, .dampening = 0.3 } },
    { .name = "Nesterov", .s = { .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01 } },
};
enum { RULES = sizeof rules / sizeof *rules };

static bool take_step(model *net, const rule *r, int t, bool by_hand)
{
    cn_adam_step_desc a = r->a;
    cn_sgd_step_desc s = r->s;
    a.step = s.step = t;
    a.vmax = r->top ? net->top : NULL;
    if (!by_hand)
        return r->adam ? cn_adam_step(net->p, net->m, net->v, net->n, &a) : cn_sgd_step(net->p, net->m, net->n, &s);
    cn_no_grad_begin(net->cn);
    if (r->adam) adam_by_hand(net, &a);
    else sgd_by_hand(net, &s);
    cn_no_grad_end(net->cn);
    return true;
}

static bool train(model *net, const rule *r, int steps, bool by_hand)
{
    bool ok = true;
    for (int t = 1; t <= steps && ok; t++) {
        cn_scope s = cn_scope_begin(net->cn);
        backward(net, t);
        ok = take_step(net, r, t, by_hand);
        zero_grad(net);
        ok = cn_eval_all(net->cn) && ok && !cn_failed(net->cn);
        cn_scope_end(net->cn, s);
    }
    return ok;
}

static void a_hundred_steps_are_those_of_plain_operators(void)
{
    static const int64_t sizes[] = { 33, 1, 700 };
    for (int i = 0; i < RULES; i++) {
        for (cn_dtype t = CN_F32; t <= CN_F64; t++) {
            if (t != CN_F32 && t != CN_F64) continue;
            model a = model_new((cn_desc){ .threads = 1 }, t, sizes, 3),
                  b = model_new((cn_desc){ .threads = 1 }, t, sizes, 3);
            bool ok = train(&a, &rules[i], 100, false) && train(&b, &rules[i], 100, true);
            check(ok, "%s: %s%s", rules[i].name, cn_error(a.cn), cn_error(b.cn));
            check(same_models(&a, &b), "%s in %s: 100 steps, bit for bit", rules[i].name, cn_dtype_name(t));
            check(isfinite(cn_get(a.p[0], CN_DIMS(0))), "%s: a number", rules[i].name);
            cn_close(a.cn);
            cn_close(b.cn);
        }
    }
}

static void halves_are_rounded_once(void)
{
    static const int64_t sizes[] = { 50 };
    model a = model_new((cn_desc){ .threads = 1 }, CN_F32, sizes, 1);
    cn_tensor *p = cn_param(cn_cast(a.p[0], CN_BF16)), *m = cn_keep(cn_zeros_like(a.p[0])),
              *v = cn_keep(cn_zeros_like(a.p[0]));
    cn_assign(a.p[0], p);
    cn_backward(cn_sum(cn_square(p), CN_ALL, false));
    cn_backward(cn_sum(cn_square(a.p[0]), CN_ALL, false));
    cn_adam_step_desc d = { .lr = 0.01, .step = 1 };
    check(cn_adam_step(&p, &m, &v, 1, &d) && cn_adam_step(a.p, a.m, a.v, 1, &d), "a step: %s", cn_error(a.cn));
    check(cn_type(p) == CN_BF16 && same_values(p, cn_cast(a.p[0], CN_BF16)), "a bf16 parameter is the rounded f32 one");
    check(cn_type(m) == CN_F32, "its state stays f32");
    cn_close(a.cn);
}

/* ---- one kernel, any number of threads ---- */

static void threads_do_not_matter(void)
{
    const rule *r = &rules[2];
    model one = model_new((cn_desc){ .threads = 1 }, CN_F32, mixed, MIXED);
    check(train(&one, r, 3, false), "1 thread: %s", cn_error(one.cn));
    for (int k = 2; k <= 4; k++) { /* 4: one thread, eagerly */
        cn_desc desc = { .threads = k < 4 ? k : 1, .eager = k == 4 };
        model other = model_new(desc, CN_F32, mixed, MIXED);
        check(train(&other, r, 3, false), "%d: %s", k, cn_error(other.cn));
        check(same_models(&one, &other), "parameters of all sizes: %s", k < 4 ? "several threads" : "eager");
        cn_close(other.cn);
    }
    cn_close(one.cn);
}

static void one_kernel_updates_all(void)
{
    model net = model_new((cn_desc){ .threads = 2 }, CN_F32, mixed, MIXED);
    for (int t = 1; t <= 4; t++) {
        cn_scope s = cn_scope_begin(net.cn);
        backward(&net, t);
        cn_eval_all(net.cn); /* gradients are kept: from here on there is the step alone */
        cn_counters before = cn_count(net.cn);
        cn_adam_step(
            net.p, net.m, net.v, MIXED,
            &(cn_adam_step_desc){ .lr = 0.1 / t, .weight_decay = t, .decoupled = t > 2, .maximize = t > 3, .step = t });
        cn_eval_all(net.cn);
        cn_counters after = cn_count(net.cn);
        check(after.kernels == before.kernels + 1, "%d kernels", (int)(after.kernels - before.kernels));
        check(after.nodes == before.nodes + 4 * MIXED, "a node for a parameter and three assignments: %d",
              (int)(after.nodes - before.nodes));
        /* zeros become values that are assigned to in the first step */
        check(t < 3 || !REUSES_HANDLES || after.allocations == before.allocations,
              "memory is taken over, not asked for");
        check(t < 3 || after.plan_misses == before.plan_misses, "its numbers are not structure");
        zero_grad(&net);
        cn_scope_end(net.cn, s);
    }
    check(!cn_failed(net.cn), "%s", cn_error(net.cn));
    cn_close(net.cn);
}

/* All parameters in one loss, each by a product: (1, n) x (n, 1). */
static cn_tensor *joint_loss(model *net)
{
    cn_tensor *loss = cn_zeros(net->cn, CN_F32, CN_DIMS(1, 1));
    for (int i = 0; i < net->n; i++) {
        int64_t n = cn_numel(net->p[i]);
        loss = cn_add(loss, cn_matmul(cn_ones(net->cn, CN_F32, CN_DIMS(1, n)), cn_reshape(net->p[i], CN_DIMS(n, 1))));
    }
    return loss;
}

static void plans_say_so(void)
{
    model net = model_new((cn_desc){ .threads = 2 }, CN_F32, mixed, MIXED);
    static char text[1 << 16];
    for (int t = 1; t <= 2; t++) {
        cn_scope s = cn_scope_begin(net.cn);
        cn_tensor *loss = joint_loss(&net);
        cn_backward(loss);
        cn_adam_step(net.p, net.m, net.v, net.n, &(cn_adam_step_desc){ .lr = 0.1, .step = t });
        zero_grad(&net);
        size_t length = cn_plan_print(loss, text, sizeof text);
        check(length && length < sizeof text && strstr(text, "adam_step x 9 "), "one kernel for 9 parameters:\n%s",
              text);
        cn_eval_all(net.cn);
        cn_scope_end(net.cn, s);
    }
    check(!cn_failed(net.cn), "%s", cn_error(net.cn));
    cn_close(net.cn);
}

/* Any elementwise work, not optimizers alone; and never what is needed by one another. */
static void joined_steps_are_independent(void)
{
    enum { N = 20000 };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    cn_tensor *a = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(N))), *b = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(N)));
    cn_tensor *c = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(3)));
    cn_eval_all(cn);
    double a0 = cn_get(a, CN_DIMS(N - 1)), b0 = cn_get(b, CN_DIMS(N - 1)), c0 = cn_get(c, CN_DIMS(2));
    cn_assign(a, cn_mul_s(a, 1)); /* from here on its memory may be taken over */
    cn_eval_all(cn);

    int64_t kernels = cn_count(cn).kernels;
    cn_tensor *x = cn_keep(cn_exp(a)), *y = cn_keep(cn_exp(c));
    cn_eval_all(cn);
    check(cn_count(cn).kernels == kernels + 1, "two of one kind, of two sizes: %d kernels",
          (int)(cn_count(cn).kernels - kernels));
    check(fabs(cn_get(x, CN_DIMS(N - 1)) - exp(a0)) < 1e-5 && fabs(cn_get(y, CN_DIMS(2)) - exp(c0)) < 1e-5,
          "and right");

    kernels = cn_count(cn).kernels;
    cn_keep(cn_exp(b)), cn_keep(cn_sin(c));
    cn_eval_all(cn);
    check(cn_count(cn).kernels == kernels + 2, "two kinds: %d kernels", (int)(cn_count(cn).kernels - kernels));

    kernels = cn_count(cn).kernels;
    cn_tensor *old = cn_keep(cn_exp(a));
    cn_assign(a, cn_exp(b)); /* overwrites what the kernel before it reads */
    cn_eval_all(cn);
    check(cn_count(cn).kernels == kernels + 2, "one overwrites what the other reads: %d kernels",
          (int)(cn_count(cn).kernels - kernels));
    check(fabs(cn_get(old, CN_DIMS(N - 1)) - exp(a0)) < 1e-5 && fabs(cn_get(a, CN_DIMS(N - 1)) - exp(b0)) < 1e-5,
          "the old value is read first");

    kernels = cn_count(cn).kernels;
    cn_tensor *first = cn_keep(cn_exp(cn_reshape(b, CN_DIMS(2, N / 2)))); /* read backwards: cannot be one pass */
    cn_tensor *second = cn_keep(cn_exp(cn_flip(first, CN_DIMS(0, 1))));
    cn_eval_all(cn);
    check(cn_count(cn).kernels == kernels + 2, "one needs the other: %d kernels",
          (int)(cn_count(cn).kernels - kernels));
    check(fabs(cn_get(second, CN_DIMS(0, 0)) - exp(exp(b0))) < 1e-4, "one reads what the other writes");
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
}

/* ---- several results ---- */

static const cn_op *find_op(const char *name)
{
    int n;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(ops[i]->name, name)) return ops[i];
    return NULL;
}

static bool apply_adam(model *net, cn_tensor **out)
{
    cn_arg args[CN_MAX_ARGS] = { { .f = 0.1 },  { .f = 0.9 }, { .f = 0.99 }, { .f = 0.5 },
                                 { .f = 1e-8 }, { .f = 0 },   { .f = 1 },    { .f = 1 } };
    return cn_apply_n(find_op("adam_step"), CN_TENSORS(net->p[0], net->p[1], net->m[0], cn_square(net->p[1])), NULL,
                      args, out);
}

/* Each result alone, in any company, and through what is fused behind it. */
static void results_are_used_or_not(void)
{
    static const int64_t sizes[] = { 1500, 1500 };
    model net = model_new((cn_desc){ .threads = 2 }, CN_F32, sizes, 2);
    cn_no_grad_begin(net.cn);
    cn_tensor *all[3], *out[3];
    apply_adam(&net, all);
    for (int k = 0; k < 3; k++) cn_keep(all[k]);
    cn_eval_all(net.cn);
    for (int mask = 1; mask < 16; mask++) {
        cn_scope s = cn_scope_begin(net.cn);
        check(apply_adam(&net, out), "%s", cn_error(net.cn));
        cn_tensor *sum = mask & 8 ? cn_keep(cn_add(out[1], cn_relu(out[2]))) : NULL;
        for (int k = 0; k < 3; k++)
            if (mask >> k & 1) cn_keep(out[k]);
        cn_eval_all(net.cn);
        for (int k = 0; k < 3; k++)
            if (mask >> k & 1) check(same_values(out[k], all[k]), "result %d of those in %d", k, mask);
        if (sum) check(same_values(sum, cn_add(all[1], cn_relu(all[2]))), "what is made of two of them, with %d", mask);
        check(same_values(out[0], all[0]), "one that was let go is computed again, with %d", mask);
        for (int k = 0; k < 3; k++)
            if (mask >> k & 1) cn_release(out[k]);
        if (sum) cn_release(sum);
        cn_scope_end(net.cn, s);
    }
    cn_no_grad_end(net.cn);
    cn_close(net.cn);
}

static bool two_shapes(cn_infer *i)
{
    if (!cn_infer_map(i)) return false;
    i->out[1].layout = (cn_layout){ .ndim = 1, .shape = { 2 } };
    return true;
}

static void results_have_one_shape(void)
{
    static const cn_op crooked = {
        .name = "crooked", .doc = ".", .kind = CN_MAP, .n_in = 1, .n_out = 2, .infer = two_shapes
    };
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(3)), *out[2];
    check(!cn_apply_n(&crooked, &x, 1, NULL, NULL, out) && strstr(cn_error(cn), "one shape"), "%s", cn_error(cn));
    cn_close(cn);
}

/* ---- all or none ---- */

static void bad_calls_assign_nothing(void)
{
    static const int64_t sizes[] = { 4, 5, 6 };
    model net = model_new((cn_desc){ .threads = 1 }, CN_F32, sizes, 3),
          was = model_new((cn_desc){ .threads = 1 }, CN_F32, sizes, 3);
    backward(&net, 1);
    cn_tensor *right = net.v[2];
    struct {
        cn_tensor *v;
        int64_t step;
        const char *says;
    } bad[] = { { net.m[0], 1, "do not broadcast" },
                { cn_zeros(net.cn, CN_F32, CN_DIMS(1, 6)), 1, "shape" },
                { NULL, 1, "must not be NULL" },
                { right, 0, "step" } };
    for (int i = 0; i < 4; i++) {
        net.v[2] = bad[i].v;
        bool ok = cn_adam_step(net.p, net.m, net.v, 3, &(cn_adam_step_desc){ .lr = 1, .step = bad[i].step });
        check(!ok && strstr(cn_error(net.cn), bad[i].says), "refused: %s", cn_error(net.cn));
        cn_error_clear(net.cn);
        net.v[2] = right;
        check(cn_eval_all(net.cn) && same_models(&net, &was), "nothing was assigned: %s", bad[i].says);
    }
    check(!cn_adam_step(net.p, NULL, net.v, 3, &(cn_adam_step_desc){ .step = 1 }) && cn_failed(net.cn),
          "no states at all");
    cn_error_clear(net.cn);
    check(!cn_sgd_step(net.p, NULL, 3, &(cn_sgd_step_desc){ .momentum = 0.9 }) && cn_failed(net.cn), "no buffers");
    cn_error_clear(net.cn);
    check(!cn_sgd_step(net.p, net.m, 3, &(cn_sgd_step_desc){ .nesterov = true }) && cn_failed(net.cn),
          "nesterov alone");
    cn_error_clear(net.cn);
    cn_zero_grad(net.p[1]);
    check(cn_adam_step(net.p, net.m, net.v, 3, &(cn_adam_step_desc){ .lr = 1, .step = 1 }), "%s", cn_error(net.cn));
    check(!same_values(net.p[0], was.p[0]) && same_values(net.p[1], was.p[1]) && !same_values(net.p[2], was.p[2]),
          "a parameter without gradient is passed over");
    check(cn_grad_of(net.p[0]) != NULL, "gradients are left as they are");
    cn_close(net.cn);
    cn_close(was.cn);
}

/* Each allocation of a step fails once: every parameter has its old value or every one its new. */
static void memory_runs_out(void)
{
    static const int64_t sizes[] = { 5, 2000, 33, 1, 64, 9, 8, 7 };
    enum { N = 8 };
    cn_desc plain = { .threads = 1 };
    model before = model_new(plain, CN_F32, sizes, N), whole = model_new(plain, CN_F32, sizes, N);
    const rule *r = &rules[2];
    train(&whole, r, 1, false);
    int failed = 0;
    for (int64_t n = 1; n < 1000; n++) {
        faulty f = { 0 };
        model net = model_new((cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } }, CN_F32, sizes, N);
        cn_scope s = cn_scope_begin(net.cn);
        backward(&net, 1);
        f.calls = 0;
        f.fail_at = n;
        bool ok = take_step(&net, r, 1, false) && cn_eval_all(net.cn), reached = f.calls >= n;
        f.fail_at = 0;
        failed += !ok;
        check(ok || cn_error_code(net.cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(net.cn));
        cn_error_clear(net.cn);
        check(same_models(&net, ok ? &whole : &before), "allocation %lld: all or none", (long long)n);
        zero_grad(&net);
        cn_scope_end(net.cn, s);
        if (!ok)
            check(train(&net, r, 1, false) && same_models(&net, &whole), "allocation %lld: the next step works: %s",
                  (long long)n, cn_error(net.cn));
        cn_close(net.cn);
        if (!reached) break;
    }
    check(failed > 5, "%d steps failed", failed);
    printf("%d allocations of a step made to fail, one at a time\n", failed);
    cn_close(before.cn);
    cn_close(whole.cn);
}

/* An update may be computed beside what was stored earlier, but not before an index could still be found out of range. */
static void a_bad_index_assigns_nothing(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    cn_tensor *p = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(2, 2))), *was = cn_keep(cn_clone(p));
    cn_eval_all(cn);
    cn_assign(p, was);
    cn_eval_all(cn);
    cn_tensor *slope = cn_keep(cn_exp(p));
    int64_t index[2] = { 0, 9 };
    cn_tensor *rows = cn_embedding(cn_mul_s(cn_exp(p), 2), cn_from(cn, CN_I64, CN_DIMS(2), index));
    cn_assign(p, cn_sub(p, slope));
    check(!cn_eval_all(cn) && cn_error_code(cn) == CN_BAD_INDEX && rows, "%s", cn_error(cn));
    cn_error_clear(cn);
    check(same_values(p, was), "the parameter is as before");
    cn_close(cn);
}

/* ---- steps of parameters and states that the program holds ---- */

static void held_steps_are_those_of_an_object(void)
{
    static const char *const names[] = { "sgd", "adam", "adamw", "rmsprop" };
    for (int k = 0; k < 4; k++) {
        model a = model_new((cn_desc){ 0 }, CN_F32, mixed, MIXED), b = model_new((cn_desc){ 0 }, CN_F32, mixed, MIXED);
        cn_params all = { a.p, a.n };
        cn_optim *opt = k == 0   ? cn_sgd(a.cn, all, &(cn_sgd_desc){ .lr = 0.1, .momentum = 0.9 })
                        : k == 1 ? cn_adam(a.cn, all, &(cn_adam_desc){ .lr = 0.1, .weight_decay = 0.1 })
                        : k == 2 ? cn_adamw(a.cn, all, &(cn_adamw_desc){ .lr = 0.1, .amsgrad = true })
                                 : cn_rmsprop(a.cn, all, &(cn_rmsprop_desc){ .lr = 0.1, .momentum = 0.9 });
        const cn_optim_numbers numbers[] = {
            { .lr = 0.1, .momentum = 0.9 },
            { .lr = 0.1, .momentum = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1 },
            { .lr = 0.1,
              .momentum = 0.9,
              .beta2 = 0.999,
              .eps = 1e-8,
              .weight_decay = 0.01,
              .decoupled = true,
              .amsgrad = true },
            { .lr = 0.1, .momentum = 0.9, .beta2 = 0.99, .eps = 1e-8 },
        };
        cn_held held[MOST] = { 0 };
        for (int i = 0; i < b.n; i++) held[i] = (cn_held){ .param = b.p[i], .product = 1 };
        for (int t = 0; t < 5; t++) {
            backward(&a, t), backward(&b, t);
            cn_step(opt);
            check(cn_held_step(b.cn, names[k], &numbers[k], held, b.n) && cn_eval_all(b.cn), "%s", cn_error(b.cn));
            zero_grad(&b);
        }
        bool same = held[1].step == 5;
        for (int i = 0; i < a.n; i++) same = same && same_values(a.p[i], b.p[i]);
        check(same, "%s: held states give the bits of an optimizer", names[k]);
        for (int i = 0; i < b.n; i++)
            for (int s = 0; s < CN_OPTIM_STATES; s++) cn_release(held[i].state[s]);
        check(!cn_failed(b.cn), "a held state is released: %s", cn_error(b.cn));
        cn_close(a.cn), cn_close(b.cn);
    }
}

static void held_steps_refuse(void)
{
    model net = model_new((cn_desc){ 0 }, CN_F32, (int64_t[]){ 3 }, 1);
    cn_tensor *long_state = cn_keep(cn_zeros(net.cn, CN_F32, CN_DIMS(4)));
    cn_held held = { .param = net.p[0] }, bad = { .param = net.p[0], .state = { long_state } };
    const cn_optim_numbers numbers = { .lr = 0.1, .momentum = 0.9, .beta2 = 0.9 }, negative = { .lr = -1 };
    backward(&net, 0);
    check(!cn_held_step(net.cn, "adan", &numbers, &held, 1) && strstr(cn_error(net.cn), "adan"), "an unknown name");
    cn_error_clear(net.cn);
    check(!cn_held_step(net.cn, "adam", &numbers, &bad, 1) && cn_error_code(net.cn) == CN_BAD_SHAPE, "a longer state");
    cn_error_clear(net.cn);
    check(!cn_held_step(net.cn, "adam", &negative, &held, 1) && strstr(cn_error(net.cn), "lr"), "a negative rate");
    cn_error_clear(net.cn);
    check(!held.state[0] && held.step == 0, "nothing has changed");
    check(!strcmp(cn_held_state("adam", 1), "exp_avg_sq") && !cn_held_state("sgd", 1) && !cn_held_state("x", 0),
          "names");
    cn_close(net.cn);
}

int main(void)
{
    a_hundred_steps_are_those_of_plain_operators();
    halves_are_rounded_once();
    threads_do_not_matter();
    one_kernel_updates_all();
    plans_say_so();
    joined_steps_are_independent();
    results_are_used_or_not();
    results_have_one_shape();
    bad_calls_assign_nothing();
    memory_runs_out();
    a_bad_index_assigns_nothing();
    held_steps_are_those_of_an_object();
    held_steps_refuse();
    return finish();
}
