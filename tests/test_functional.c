/* Jacobians, Hessians and products with them: against derivatives that are known, against each other, and errors. */
#include <math.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

static cn_ctx *cn;

/* (x0 y0 + z, sin x1, y1²) from x (2), y (2) and z () */
static cn_tensor *three(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *x = in[0], *y = in[1];
    cn_tensor *parts[] = { cn_add(cn_mul(cn_select(x, 0, 0), cn_select(y, 0, 0)), in[2]), cn_sin(cn_select(x, 0, 1)),
                           cn_square(cn_select(y, 0, 1)) };
    return cn_stack(parts, 3, 0);
}

/* Σ x³ y, one number; z is not used */
static cn_tensor *one(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_sum(cn_mul(cn_mul(cn_square(in[0]), in[0]), in[1]), CN_ALL, false);
}

static cn_tensor *nothing(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)in, (void)n;
    return NULL;
}

static cn_tensor *constant(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_zeros_like(in[0]);
}

static cn_tensor *product(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_matmul(in[0], cn_tanh(in[1]));
}

static void same(cn_tensor *t, const char *what, int n, const double *want)
{
    double have[64];
    if (!check(t && cn_numel(t) == n, "%s: %d elements are wanted: %s", what, n, cn_error(cn))) return;
    cn_read_f64(t, have, n);
    for (int i = 0; i < n; i++)
        check(fabs(have[i] - want[i]) < 1e-12, "%s: element %d is %g, not %g", what, i, have[i], want[i]);
}
#define SAME(t, ...) same(t, #t, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ })

static void known(void)
{
    cn_tensor *in[] = { cn_from(cn, CN_F64, CN_DIMS(2), (double[]){ 2, 0.5 }),
                        cn_from(cn, CN_F64, CN_DIMS(2), (double[]){ 3, -1 }), cn_scalar(cn, CN_F64, 4) };
    cn_tensor *v[] = { cn_from(cn, CN_F64, CN_DIMS(2), (double[]){ 1, 2 }),
                       cn_from(cn, CN_F64, CN_DIMS(2), (double[]){ -1, 3 }), cn_scalar(cn, CN_F64, 0.5) };
    cn_tensor *j[3], *y, *jv, *h[9], *g[3], *w = cn_from(cn, CN_F64, CN_DIMS(3), (double[]){ 1, -1, 2 });
    const double c = cos(0.5);
    check(cn_jacobian(three, NULL, in, 3, j, NULL), "%s", cn_error(cn));
    SAME(j[0], 3, 0, 0, c, 0, 0);
    SAME(j[1], 2, 0, 0, 0, 0, -2);
    SAME(j[2], 1, 0, 0);
    check(cn_jvp(three, NULL, in, 3, v, &y, &jv), "%s", cn_error(cn));
    SAME(y, 10, sin(0.5), 1);
    SAME(jv, 3 - 2 + 0.5, 2 * c, -6);
    check(cn_vjp(three, NULL, in, 3, w, &y, g), "%s", cn_error(cn));
    SAME(g[0], 3, -c);
    SAME(g[1], 2, -4);
    SAME(g[2], 1);
    check(cn_hessian(one, NULL, in, 3, h, NULL), "%s", cn_error(cn));
    SAME(h[0], 36, 0, 0, -3);
    SAME(h[1], 12, 0, 0, 0.75);
    SAME(h[3], 12, 0, 0, 0.75);
    SAME(h[4], 0, 0, 0, 0);
    SAME(h[8], 0);
    check(cn_hvp(one, NULL, in, 3, v, &y, g), "%s", cn_error(cn));
    SAME(g[0], 36 - 12, -6 + 2.25);
    SAME(g[1], 12, 1.5);
    SAME(g[2], 0);
    check(cn_jacobian(constant, NULL, in, 1, j, NULL), "%s", cn_error(cn));
    SAME(j[0], 0, 0, 0, 0);
}

/* Products agree with the matrices, for results and inputs with several axes. */
static void agree(void)
{
    cn_tensor *in[] = { cn_randn(cn, CN_F64, CN_DIMS(3, 4)), cn_randn(cn, CN_F64, CN_DIMS(4, 2)) };
    cn_tensor *v[] = { cn_randn(cn, CN_F64, CN_DIMS(3, 4)), cn_randn(cn, CN_F64, CN_DIMS(4, 2)) };
    for (int i = 0; i < 2; i++) cn_keep(in[i]), cn_keep(v[i]);
    cn_tensor *j[2], *jv;
    check(cn_jacobian(product, NULL, in, 2, j, NULL) && cn_jvp(product, NULL, in, 2, v, NULL, &jv), "%s", cn_error(cn));
    const cn_dims shape = cn_shape(j[1]);
    check(shape.n == 4 && shape.v[0] == 3 && shape.v[1] == 2 && shape.v[2] == 4 && shape.v[3] == 2,
          "shape of a Jacobian");
    cn_tensor *sum = NULL;
    for (int i = 0; i < 2; i++) {
        cn_tensor *part = cn_sum(cn_mul(j[i], v[i]), CN_DIMS(2, 3), false);
        sum = sum ? cn_add(sum, part) : part;
    }
    check(cn_item(cn_max(cn_abs(cn_sub(sum, jv)), CN_ALL, false)) < 1e-13, "J v by the matrix and by the product");
    for (int i = 0; i < 2; i++) cn_release(in[i]), cn_release(v[i]);
}

/* The gradient of a Jacobian: x³ has the Jacobian 3x², whose sum has the gradient 6x. */
static cn_tensor *cube(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    return cn_mul(cn_square(in[0]), in[0]);
}
static void can_be_differentiated(void)
{
    cn_tensor *x = cn_param(cn_from(cn, CN_F64, CN_DIMS(2), (double[]){ 2, -3 })), *j;
    check(cn_jacobian(cube, NULL, &x, 1, &j, &(cn_jacobian_desc){ .create_graph = true }), "%s", cn_error(cn));
    check(cn_backward(cn_sum(j, CN_ALL, false)), "%s", cn_error(cn));
    SAME(cn_grad_of(x), 12, -18);
    cn_release(x);
}

/* Gradients are recorded, also where the program records none. */
static void without_gradients(void)
{
    cn_tensor *in[] = { cn_from(cn, CN_F64, CN_DIMS(1), (double[]){ 2 }),
                        cn_from(cn, CN_F64, CN_DIMS(1), (double[]){ 3 }) };
    cn_tensor *j[2], *h[4], *g[2], *jv, *hv[2];
    cn_no_grad_begin(cn);
    check(cn_jacobian(one, NULL, in, 2, j, NULL) && cn_hessian(one, NULL, in, 2, h, NULL) &&
              cn_vjp(one, NULL, in, 2, NULL, NULL, g) && cn_jvp(one, NULL, in, 2, in, NULL, &jv) &&
              cn_hvp(one, NULL, in, 2, in, NULL, hv),
          "%s", cn_error(cn));
    SAME(j[0], 36);
    SAME(h[0], 36);
    SAME(g[1], 8);
    SAME(jv, 36 * 2 + 8 * 3);
    SAME(hv[1], 12 * 2);
    check(!cn_grad_enabled(cn), "then as before");
    cn_no_grad_end(cn);
    check(cn_grad_enabled(cn), "calls are even");
}

static void refused(bool done, const char *words)
{
    check(!done && cn_failed(cn) && strstr(cn_error(cn), words), "'%s' should contain '%s'", cn_error(cn), words);
    cn_error_clear(cn);
}

static void errors(void)
{
    cn_tensor *x = cn_ones(cn, CN_F64, CN_DIMS(2)), *whole = cn_ones(cn, CN_I64, CN_DIMS(2)), *out[4], *in[] = { x, x };
    cn_tensor *wide = cn_ones(cn, CN_F64, CN_DIMS(1, 1, 1, 1, 1));
    refused(cn_jvp(cube, NULL, &whole, 1, &x, NULL, out), "jvp: input 0 must be of a floating type, got i64");
    refused(cn_jvp(cube, NULL, &x, 1, &wide, NULL, out), "jvp: v must have the shape [2], got [1,1,1,1,1]");
    refused(cn_vjp(cube, NULL, &x, 1, NULL, NULL, out), "vjp: v is needed, because the function returns 2 elements");
    refused(cn_hvp(cube, NULL, &x, 1, &x, NULL, out), "hvp: the function must return a single number, got 2 elements");
    refused(cn_hessian(nothing, NULL, &x, 1, out, NULL),
            "hessian: the tensor that the function returns must not be NULL");
    refused(cn_jacobian(cube, NULL, &wide, 1, out, NULL),
            "jacobian: a result has at most 8 axes, got 5 of the output and 5");
    refused(cn_jacobian(NULL, NULL, in, 2, out, NULL), "jacobian: the function must not be NULL");
    refused(cn_jacobian(cube, NULL, in, 9, out, NULL), "jacobian: there must be 1 to 8 inputs, got 9");
}

/* Every n-th allocation fails: an error, and nothing is lost. */
static void memory_may_end(void)
{
    int64_t calls = 1;
    for (int64_t n = 0; n <= calls; n += test_is_quick() && n ? 23 : 3) {
        faulty f = { 0 };
        cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        cn_tensor *in[] = { cn_ones(cn, CN_F64, CN_DIMS(2)), cn_ones(cn, CN_F64, CN_DIMS(2)) }, *h[4];
        const int64_t before = f.calls;
        f.fail_at = n ? before + n : 0;
        const bool ok = cn_hessian(one, NULL, in, 2, h, NULL);
        if (!n) calls = f.calls - before;
        f.fail_at = 0;
        check(ok != cn_failed(cn), "allocation %lld: an error or a result", (long long)n);
        cn_close(cn);
        check(f.blocks == 0, "allocation %lld: all memory is given back", (long long)n);
    }
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 1 });
    known();
    agree();
    can_be_differentiated();
    without_gradients();
    check(!cn_failed(cn), "%s", cn_error(cn));
    errors();
    cn_close(cn);
    memory_may_end();
    return finish();
}
