/* 04: an operator of your own. One struct says what it is; fusion, gradients and checks come by themselves.

   Run it:  build/example_04_custom_operator */
#include <math.h>
#include <stdio.h>

#include "cairn/cairn.h"

/* A soft staircase: x + sin(x)·p0. Elementwise, so a MAP: one loop for each dtype. */
static void stairs_f32(const cn_loop *l)
{
    const float *x = l->in[0], p = (float)l->args[0].f;
    float *y = l->out;
    for (int64_t i = 0; i < l->n; i++) y[i] = x[i] + sinf(x[i]) * p;
}
static void stairs_f64(const cn_loop *l)
{
    const double *x = l->in[0], p = l->args[0].f;
    double *y = l->out;
    for (int64_t i = 0; i < l->n; i++) y[i] = x[i] + sin(x[i]) * p;
}

/* The gradient in operators: 1 + cos(x)·p0. So it runs on every device and can be differentiated again. */
static void stairs_grad(cn_grad_call *g)
{
    g->in_grad[0] = cn_mul(g->out_grad[0], cn_add_s(cn_mul_s(cn_cos(g->in[0]), g->args[0].f), 1));
}

static const cn_op STAIRS = {
    .name = "stairs",
    .doc = "x + p·sin(x).",
    .kind = CN_MAP,
    .n_in = 1,
    .n_out = 1,
    .infer = cn_infer_map,
    .grad = stairs_grad,
    .loops = { [CN_F32] = stairs_f32, [CN_F64] = stairs_f64 },
    .wgsl = "x + sin(x) * p0",
};

static cn_tensor *stairs(cn_tensor *x, double p)
{
    return cn_apply(&STAIRS, &x, 1, NULL,
                    (cn_arg[CN_MAX_ARGS]){ { .f = p } }); /* p is an argument: it never rebuilds a plan */
}

static cn_tensor *checked(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    return stairs(in[0], *(double *)user);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    double p = 0.8;

    /* Gradient and second-order gradient against finite differences. */
    cn_tensor *x = cn_randn(cn, CN_F64, CN_DIMS(4, 5));
    bool ok = cn_gradcheck(checked, &p, &x, 1, NULL) && cn_gradgradcheck(checked, &p, &x, 1, NULL);
    printf("gradients %s\n", ok ? "agree with finite differences" : "are wrong");

    /* It is fused like any other elementwise operator: one kernel for the chain. Halves work through f32. */
    cn_tensor *y = cn_sum(cn_relu(stairs(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(1000)), 3), p)), CN_ALL, false);
    char plan[2048];
    cn_plan_print(y, plan, sizeof plan);
    printf("%s", plan);
    printf("sum %.4f, of halves %.4f\n", cn_item(y),
           cn_item(cn_sum(stairs(cn_ones(cn, CN_F16, CN_DIMS(4)), p), CN_ALL, false)));

    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    ok = ok && !cn_failed(cn);
    cn_close(cn);
    return !ok;
}
