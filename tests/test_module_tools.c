/* What is done with modules from outside: dicts and lists of parameters, hooks, apply, other dtypes, weight norm and
   spectral norm. */
#include <math.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

static cn_ctx *cn;

static double sum(cn_tensor *x) { return x ? cn_item(cn_sum(x, CN_ALL, false)) : NAN; }
static double apart(cn_tensor *a, cn_tensor *b) { return cn_item(cn_max(cn_abs(cn_sub(a, b)), CN_ALL, false)); }

static void refused(bool done, const char *words)
{
    check(!done && cn_failed(cn) && strstr(cn_error(cn), words), "'%s' should contain '%s'", cn_error(cn), words);
    cn_error_clear(cn);
}

/* ---- containers ---- */

static void holders(void)
{
    check_group("holders");
    cn_module *parts[] = { cn_nn_linear(cn, 2, 3, NULL), cn_nn_relu(cn) };
    const char *names[] = { "first", "second" };
    cn_module *d = cn_nn_dict(cn, names, parts, 2);
    check(cn_module_find(d, "first") == parts[0] && cn_module_get(d, "first.weight"), "members have their names");
    check(cn_module_child(d, "third", cn_nn_linear(cn, 3, 1, NULL)) && cn_parameters(d).n == 4, "a further member");
    refused(cn_forward(d, cn_ones(cn, CN_F32, CN_DIMS(1, 2))), "ModuleDict: this module has no forward");
    refused(cn_nn_dict(cn, (const char *[]){ "a", "a" }, (cn_module *[]){ cn_nn_relu(cn), cn_nn_tanh(cn) }, 2),
            "names must differ");
    refused(cn_nn_dict(cn, NULL, parts, 1), "ModuleDict: n must be ≥ 0 and the lists not NULL");

    cn_tensor *values[] = { cn_ones(cn, CN_F32, CN_DIMS(2)), cn_zeros(cn, CN_F64, CN_DIMS(3)) };
    cn_module *list = cn_nn_parameter_list(cn, values, 2);
    check(cn_parameters(list).n == 2 && cn_requires_grad(cn_module_get(list, "1")) &&
              sum(cn_module_get(list, "0")) == 2,
          "a list of parameters: %s", cn_error(cn));
    cn_module *both = cn_nn_parameter_dict(cn, names, values, 2);
    check(cn_module_get(both, "second") && cn_module_count(both) == 5, "a dict of parameters: %s", cn_error(cn));
    refused(cn_nn_parameter_list(cn, (cn_tensor *[]){ NULL }, 1), "ParameterList: a value must not be NULL");
}

/* ---- apply ---- */

static void note(void *user, cn_module *m)
{
    strcat(user, cn_module_type_of(m)->name);
    strcat(user, " ");
}

static void apply(void)
{
    check_group("apply");
    char order[128] = "";
    cn_module *m = cn_nn_sequential(cn, cn_nn_linear(cn, 2, 2, NULL), cn_nn_sequential(cn, cn_nn_tanh(cn)));
    cn_module_apply(m, note, order);
    check(!strcmp(order, "Linear Tanh Sequential Sequential "), "children first: %s", order);
    cn_module_apply(m, NULL, NULL);
    refused(false, "module_apply: the function must not be NULL");
}

/* ---- hooks ---- */

typedef struct seen {
    int before, after, result, operand;
    double gradient;
    int remove; /* the hook removes this one */
} seen;

static bool before(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)m;
    seen *s = user;
    s->before++;
    for (int i = 0; i < n_in; i++) in[i] = cn_mul_s(in[i], 2);
    return true;
}
static bool after(void *user, cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    (void)in, (void)n_in;
    seen *s = user;
    s->after++;
    if (n_out > 0) out[0] = cn_add_s(out[0], 1);
    if (s->remove) cn_module_remove_hook(m, s->remove);
    s->remove = 0;
    return true;
}
static bool fails(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)user, (void)m, (void)in, (void)n_in;
    return false;
}
static cn_tensor *of_result(void *user, cn_module *m, cn_tensor *grad)
{
    (void)m;
    ((seen *)user)->result++;
    return cn_mul_s(grad, 10);
}
static cn_tensor *of_operand(void *user, cn_module *m, cn_tensor *grad)
{
    (void)m;
    seen *s = user;
    s->operand++;
    s->gradient = sum(cn_detach(grad));
    return cn_mul_s(grad, 3);
}

static bool adds_itself(void *user, cn_module *m, cn_tensor **in, int n_in)
{
    (void)in, (void)n_in;
    seen *s = user;
    return ++s->before > 9 || cn_module_forward_pre_hook(m, adds_itself, user);
}

static bool of_another_context(void *user, cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    (void)m, (void)in, (void)n_in, (void)n_out;
    out[0] = user;
    return true;
}

static void hooks(void)
{
    check_group("hooks");
    seen s = { 0 };
    cn_tensor *x = cn_param(cn_ones(cn, CN_F64, CN_DIMS(3)));
    cn_module *m = cn_nn_function(cn, cn_square); /* 1 → (2·1)² + 1 = 5 */
    const int first = cn_module_forward_pre_hook(m, before, &s), second = cn_module_forward_hook(m, after, &s);
    check(first == 1 && second == 2, "hooks have numbers: %s", cn_error(cn));
    check(sum(cn_forward(m, x)) == 15 && s.before == 1 && s.after == 1, "hooks replace operands and results");
    cn_tensor *y;
    check(cn_forward_all(m, &x, 1, &y, 1) && sum(y) == 15 && s.before == 2, "also with cn_forward_all");

    cn_module_backward_pre_hook(m, of_result, &s);
    cn_module_backward_hook(m, of_operand, &s);
    check(cn_backward(cn_sum(cn_forward(m, x), CN_ALL, false)), "%s", cn_error(cn));
    /* d(2x)²/dx = 8x; times 10; the operand's hook saw the gradient of what the first hook had made: 4·10 each */
    check(s.result == 1 && s.operand == 1 && s.gradient == 120, "gradients: %d %d %g", s.result, s.operand, s.gradient);
    check(sum(cn_grad_of(x)) == 3 * 40 * 3 * 2, "the gradient of x: %g", sum(cn_grad_of(x)));

    s.remove = second;
    cn_forward(m, x);
    check(s.after == 4 && sum(cn_forward(m, x)) == 12 && s.after == 4, "a hook removes itself");
    check(cn_module_remove_hook(m, first) && sum(cn_forward(m, x)) == 3, "removed: %s", cn_error(cn));
    refused(cn_module_remove_hook(m, first), "module_remove_hook: this Function has no hook 1");
    refused(cn_module_forward_hook(m, NULL, NULL), "module_forward_hook: the function must not be NULL");

    const int gone = cn_module_forward_pre_hook(m, adds_itself, &s);
    cn_module_remove_hook(m, gone);
    const int third = cn_module_forward_pre_hook(m, adds_itself, &s);
    check(third == gone + 1, "the number of a removed hook is not used again: %d, then %d", gone, third);
    s.before = 0;
    check(sum(cn_forward(m, x)) == 3 && s.before == 1, "a hook that is added in a forward waits: %d calls", s.before);
    check(sum(cn_forward(m, x)) == 3 && s.before == 3, "for the next forward: %d calls", s.before);
    for (int i = 0; i < 4; i++) check(cn_module_remove_hook(m, third + i), "%s", cn_error(cn));

    cn_tensor *waiting = cn_sum(cn_forward(m, x), CN_ALL, false); /* its graph outlives the module */
    cn_module_free(m);
    cn_zero_grad(x);
    check(cn_backward(waiting) && sum(cn_grad_of(x)) == 6 && s.result == 1,
          "hooks of a freed module let gradients pass: %g", sum(cn_grad_of(x)));

    cn_module *bad = cn_nn_relu(cn);
    cn_module_forward_pre_hook(bad, fails, NULL);
    refused(cn_forward(bad, x), "its forward failed and set no error");

    cn_ctx *other = cn_open(NULL);
    cn_module *mixed = cn_nn_relu(cn);
    seen none = { 0 };
    cn_module_forward_hook(mixed, of_another_context, cn_ones(other, CN_F64, CN_DIMS(3)));
    cn_module_forward_hook(mixed, after, &none);
    refused(cn_forward(mixed, x), "a result from a hook is of another");
    check(none.after == 0, "the next hook is not called");
    cn_close(other);
    cn_release(x);
}

/* ---- dtypes ---- */

/* Bytes that 2000 modules take after they were freed, or 2000 hooks after they were removed. Others come first, because
   the context keeps the memory of some objects; debug builds keep all. */
static size_t remains(faulty *f, cn_ctx *c, cn_module *with_hooks)
{
    size_t at_half = 0;
    for (int i = 0; i < 4000; i++) {
        if (i == 2000) at_half = f->bytes;
        if (with_hooks) cn_module_remove_hook(with_hooks, cn_module_forward_pre_hook(with_hooks, before, NULL));
        else cn_module_free(cn_nn_relu(c));
    }
    return f->bytes - at_half;
}

static void hooks_and_memory(void)
{
    faulty f = { 0 };
    cn_ctx *c = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
    cn_module *oldest = cn_nn_relu(c);
    for (int i = 0; i < 2000; i++) cn_nn_relu(c);
    seen s = { 0 };
    if (remains(&f, c, NULL) == 0) check(remains(&f, c, oldest) == 0, "removed hooks give their memory back");
    /* cn_close frees the newest first: these hooks long before their module */
    check(cn_module_forward_hook(oldest, after, &s) && cn_module_backward_hook(oldest, of_operand, &s), "%s",
          cn_error(c));
    cn_close(c);
    check(f.blocks == 0, "all memory is given back");
}

static void dtypes(void)
{
    check_group("dtypes");
    cn_module *m = cn_nn_sequential(cn, cn_nn_linear(cn, 3, 4, NULL), cn_nn_batch_norm1d(cn, 4, NULL));
    cn_tensor *w = cn_module_get(m, "0.weight"), *x = cn_randn(cn, CN_F64, CN_DIMS(5, 3));
    const double before = sum(w);
    cn_set_requires_grad(cn_module_get(m, "0.bias"), false);
    check(cn_module_cast(m, CN_F64), "%s", cn_error(cn));
    check(cn_module_get(m, "0.weight") == w && cn_type(w) == CN_F64 && fabs(sum(w) - before) < 1e-6,
          "the handle stays");
    check(cn_type(cn_module_get(m, "1.running_mean")) == CN_F64, "buffers too");
    check(cn_type(cn_module_get(m, "1.num_batches_tracked")) == CN_I64, "whole numbers stay");
    check(cn_requires_grad(w) && !cn_requires_grad(cn_module_get(m, "0.bias")), "what requires a gradient");
    cn_optim *opt = cn_sgd(cn, (cn_params){ &w, 1 }, &(cn_sgd_desc){ .lr = 0.1 });
    check(cn_backward(cn_sum(cn_square(cn_forward(cn_module_at(m, 0), x)), CN_ALL, false)) && cn_step(opt), "%s",
          cn_error(cn));
    check(fabs(sum(w) - before) > 1e-9, "it trains");
    check(cn_module_cast(m, CN_BF16) && cn_type(w) == CN_BF16 && cn_forward(cn_module_at(m, 0), cn_cast(x, CN_BF16)),
          "%s", cn_error(cn));
    refused(cn_module_cast(m, CN_I32), "module_cast: the dtype must be a floating type, got i32");
}

/* ---- weight norm and spectral norm ---- */

static void weight_norm(void)
{
    check_group("weight norm");
    cn_set_default_dtype(cn, CN_F64);
    cn_module *m = cn_nn_linear(cn, 4, 3, NULL);
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F64, CN_DIMS(2, 4))), *plain = cn_keep(cn_forward(m, x));
    cn_eval_all(cn);
    check(cn_weight_norm(m, "weight", NULL), "%s", cn_error(cn));
    cn_named_list named = cn_module_named(m);
    check(named.n == 3 && !strcmp(named.v[0].name, "bias") && !strcmp(named.v[1].name, "weight_g") &&
              !strcmp(named.v[2].name, "weight_v") && cn_parameters(m).n == 3,
          "its state: %d, %s", named.n, named.v[0].name);
    cn_tensor *g = cn_module_get(m, "weight_g"), *v = cn_module_get(m, "weight_v");
    check(cn_size(g, 0) == 3 && cn_size(g, 1) == 1, "a length for each row");
    check(apart(cn_forward(m, x), plain) < 1e-14, "the same function at first");
    cn_no_grad_begin(cn);
    cn_assign(g, cn_mul_s(g, 2));
    cn_assign(v, cn_mul_s(v, 7));
    cn_no_grad_end(cn);
    cn_tensor *bias = cn_module_get(m, "bias");
    check(apart(cn_sub(cn_forward(m, x), bias), cn_mul_s(cn_sub(plain, bias), 2)) < 1e-13, "only g has a length");
    check(cn_backward(cn_sum(cn_square(cn_forward(m, x)), CN_ALL, false)), "%s", cn_error(cn));
    /* the gradient of v is at right angles to v */
    check(fabs(cn_item(cn_max(cn_abs(cn_sum(cn_mul(v, cn_grad_of(v)), CN_DIMS(1), false)), CN_ALL, false))) < 1e-12 &&
              sum(cn_abs(cn_grad_of(v))) > 1e-6 && cn_grad_of(g),
          "gradients of both");
    cn_optim *opt = cn_adam(cn, cn_parameters(m), NULL);
    for (int i = 0; i < 3; i++) {
        cn_backward(cn_sum(cn_square(cn_forward(m, x)), CN_ALL, false));
        check(cn_step(opt), "%s", cn_error(cn));
    }
    refused(cn_weight_norm(m, "weight", NULL), "\"weight\" must be a parameter of this module itself");
    cn_module *norm = cn_nn_batch_norm1d(cn, 2, NULL);
    refused(cn_weight_norm(norm, "running_mean", NULL), "\"running_mean\" must be a parameter of this module itself");
    check(cn_parameters(norm).n == 2, "an error adds no parameters, got %d", cn_parameters(norm).n);
    refused(cn_weight_norm(cn_nn_linear(cn, 2, 2, NULL), "weight", &(cn_weight_norm_desc){ .dim = 2 }),
            "dim must be from 0");
    cn_module *whole = cn_nn_conv1d(cn, 2, 3, 2, NULL);
    check(cn_weight_norm(whole, "weight", &(cn_weight_norm_desc){ .whole = true }) &&
              cn_ndim(cn_module_get(whole, "weight_g")) == 0,
          "one length: %s", cn_error(cn));
    cn_release(x);
    cn_release(plain);
}

static void spectral_norm(void)
{
    check_group("spectral norm");
    cn_module *m = cn_nn_linear(cn, 5, 4, &(cn_linear_desc){ .no_bias = true });
    check(cn_spectral_norm(m, "weight", &(cn_spectral_norm_desc){ .n_power_iterations = 50 }), "%s", cn_error(cn));
    cn_named_list named = cn_module_named(m);
    check(named.n == 3 && !strcmp(named.v[0].name, "weight_orig") && named.v[1].buffer && named.v[2].buffer,
          "its state");
    cn_tensor *x = cn_eye(cn, CN_F64, 5, 5);
    cn_tensor *w = cn_keep(cn_forward(m, x));
    check(cn_eval(w), "%s", cn_error(cn));
    /* the largest singular value of what comes out is 1: the power method agrees */
    cn_tensor *v = cn_ones(cn, CN_F64, CN_DIMS(4));
    for (int i = 0; i < 200; i++) {
        v = cn_matmul(cn_matmul(cn_transpose(w, 0, 1), w), v);
        v = cn_keep(cn_div(v, cn_norm(v, 2, CN_ALL, false)));
        cn_eval(v);
    }
    const double sigma = cn_item(cn_norm(cn_matmul(w, v), 2, CN_ALL, false));
    check(fabs(sigma - 1) < 1e-6, "the largest singular value: %g", sigma);
    cn_module_train(m, false);
    cn_tensor *u = cn_keep(cn_clone(cn_module_get(m, "weight_u")));
    cn_eval(u);
    cn_forward(m, x);
    cn_eval_all(cn);
    check(apart(u, cn_module_get(m, "weight_u")) == 0, "no step in evaluation");
    check(cn_backward(cn_sum(cn_mul(cn_forward(m, x), cn_randn(cn, CN_F64, CN_DIMS(5, 4))), CN_ALL, false)) &&
              cn_grad_of(cn_module_get(m, "weight_orig")),
          "%s", cn_error(cn));
    cn_module *t = cn_nn_conv_transpose1d(cn, 2, 3, 2, NULL);
    check(cn_spectral_norm(t, "weight", NULL) && cn_size(cn_module_get(t, "weight_u"), 0) == 3,
          "rows of transposed ones: %s", cn_error(cn));
    refused(cn_spectral_norm(cn_nn_linear(cn, 2, 2, NULL), "weights", NULL),
            "must be a parameter of this module itself");
}

static void memory_may_end(void)
{
    check_group("memory");
    int64_t calls = 1;
    for (int64_t n = 0; n <= calls; n += n ? (test_is_quick() ? 11 : 1) : 1) {
        faulty f = { 0 };
        cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        cn_module *m = cn_nn_linear(cn, 2, 2, NULL);
        cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(1, 2));
        const int64_t start = f.calls;
        f.fail_at = n ? start + n : 0;
        seen s = { 0 };
        const bool ok = cn_module_forward_pre_hook(m, before, &s) && cn_weight_norm(m, "weight", NULL) &&
                        cn_forward(m, x) && cn_module_cast(m, CN_F64);
        if (!n) calls = f.calls - start;
        f.fail_at = 0;
        check(ok != cn_failed(cn), "allocation %lld: an error or a result", (long long)n);
        cn_close(cn);
        check(f.blocks == 0, "allocation %lld: all memory is given back", (long long)n);
    }
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 3 });
    holders();
    apply();
    hooks();
    hooks_and_memory();
    dtypes();
    weight_norm();
    spectral_norm();
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
    memory_may_end();
    return finish();
}
