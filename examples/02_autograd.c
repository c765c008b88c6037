/* 02: gradients. Gradient descent in a valley, a second derivative, and a check against finite differences.

   Run it:  build/example_02_autograd */
#include <stdio.h>

#include "cairn/cairn.h"

/* Rosenbrock's valley: (1 - x)² + 100 (y - x²)², lowest at (1, 1). */
static cn_tensor *valley(void *user, cn_tensor *const *in, int n)
{
    (void)user, (void)n;
    cn_tensor *x = cn_select(in[0], 0, 0), *y = cn_select(in[0], 0, 1);
    return cn_add(cn_square(cn_rsub_s(x, 1)), cn_mul_s(cn_square(cn_sub(y, cn_square(x))), 100));
}

int main(void)
{
    cn_ctx *cn = cn_open(NULL);

    /* A parameter is kept beyond its scope, and requires a gradient. */
    double start[2] = { -1.2, 1 };
    cn_tensor *p = cn_param(cn_from(cn, CN_F64, CN_DIMS(2), start));

    for (int step = 0; step <= 20000; step++) {
        cn_scope s = cn_scope_begin(cn); /* its end frees the tensors of this step */
        cn_tensor *height = valley(NULL, &p, 1);
        cn_backward(height); /* fills cn_grad_of(p) */
        cn_no_grad_begin(cn);
        cn_assign(p, cn_sub(p, cn_mul_s(cn_grad_of(p), 1e-3)));
        cn_no_grad_end(cn);
        cn_zero_grad(p);
        cn_eval_all(cn); /* all steps share one plan: the first builds it */
        if (step % 4000 == 0)
            printf("step %5d  height %.6f  at (%.4f, %.4f)\n", step, cn_item(height), cn_get(p, CN_DIMS(0)),
                   cn_get(p, CN_DIMS(1)));
        cn_scope_end(cn, s);
    }
    cn_counters c = cn_count(cn);
    printf("plans built: %lld, found again: %lld\n", (long long)c.plan_misses, (long long)c.plan_hits);

    /* Second order: the derivative of x³ is 3x², its derivative 6x. */
    cn_tensor *x = cn_param(cn_full(cn, CN_F64, CN_SCALAR, 2)), *first, *second;
    cn_tensor *cube = cn_pow_s(x, 3);
    cn_grad(&cube, 1, &x, 1, &first, &(cn_grad_desc){ .create_graph = true });
    cn_grad(&first, 1, &x, 1, &second, NULL);
    printf("x = 2: x^3 = %g, first derivative %g, second %g\n", cn_item(cube), cn_item(first), cn_item(second));

    /* The checker compares with finite differences. */
    char text[128] = "they agree";
    cn_tensor *at = cn_from(cn, CN_F64, CN_DIMS(2), start);
    bool right = cn_gradcheck(valley, NULL, &at, 1, &(cn_gradcheck_desc){ .words = text, .words_size = sizeof text });
    printf("gradient against finite differences: %s\n", text);

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = right && !cn_failed(cn);
    cn_close(cn);
    return !ok;
}
