/* 04: operators of your own. The shortest is a C function on every element, in one line. Otherwise one struct says what
   an operator is; fusion, gradients and checks come by themselves. The first of these is elementwise; the second has
   kernels of its own, for the CPU and for the GPU.

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

/* Rows without their mean: x (rows, n) → x - mean of the row. A kernel for the whole tensor: a BLOCK. */
static void rows_of(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)user, (void)thread;
    const int64_t n = k->in[0].shape[1];
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)k->in[0].data + row * n;
        float *y = (float *)k->out[0].data + row * n, sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[i];
        for (int64_t i = 0; i < n; i++) y[i] = x[i] - sum / (float)n;
    }
}
static void centred_cpu(const cn_kernel *k) { cn_parallel(k, k->in[0].shape[0], 16, rows_of, NULL); }

/* The same on the GPU: cairn/kernel.h lists what a shader may use. One invocation takes one row; par(0) is n. */
static const char CENTRED_WGSL[] =
    "//! kernel centred\n"
    "//! uses in0 out0 par\n"
    "fn each(row: u32) {\n"
    "    let n = par(0u); var sum = 0.0;\n"
    "    for (var i = 0u; i < n; i++) { sum += in0(row * n + i); }\n"
    "    for (var i = 0u; i < n; i++) { out0(row * n + i, in0(row * n + i) - sum / f32(n)); }\n"
    "}\n";
static bool centred_gpu(cn_gpu_call *c)
{
    cn_gpu_param(c, c->in[0].shape[1]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = CENTRED_WGSL, .each = c->in[0].shape[0] });
}

static bool centred_infer(cn_infer *i)
{
    if (i->in[0]->layout.ndim != 2)
        return cn_infer_fail(i, CN_BAD_SHAPE, "x must have 2 axes, got %d", i->in[0]->layout.ndim);
    i->out[0] = *i->in[0];
    return true;
}

static cn_tensor *centred(cn_tensor *x);
static void centred_grad(cn_grad_call *g) { g->in_grad[0] = centred(g->out_grad[0]); }

static const cn_op CENTRED = {
    .name = "centred",
    .doc = "Rows without their mean.",
    .kind = CN_BLOCK,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_BIT(CN_F32),
    .infer = centred_infer,
    .grad = centred_grad,
    .cpu = centred_cpu,
    .gpu = centred_gpu,
};

static cn_tensor *centred(cn_tensor *x) { return cn_apply(&CENTRED, &x, 1, NULL, NULL); }

/* Its largest element, and of the gradient of the sum of its squares; on whatever device the context has. */
static bool show_centred(cn_ctx *cn)
{
    cn_tensor *x = cn_randn(cn, CN_F32, CN_DIMS(3, 1000));
    cn_set_requires_grad(x, true);
    cn_tensor *y = centred(x);
    cn_backward(cn_sum(cn_square(y), CN_ALL, false));
    printf("largest %.4f, gradient %.4f\n", cn_item(cn_max(y, CN_ALL, false)),
           cn_item(cn_max(cn_grad_of(x), CN_ALL, false)));
    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    return !cn_failed(cn);
}

static cn_tensor *checked(void *user, cn_tensor *const *in, int n)
{
    (void)n;
    return stairs(in[0], *(double *)user);
}

static double cbrt_slope(double x) { return 1 / (3 * cbrt(x) * cbrt(x)); }

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    double p = 0.8;

    /* Any function of C, on every element: one line. With its derivative, gradients flow through it. */
    cn_tensor *roots = cn_map_grad(cn_arange(cn, CN_F32, 1, 4, 1), cbrt, cbrt_slope);
    printf("cube roots of 1, 2, 3: sum %.4f\n", cn_item(cn_sum(roots, CN_ALL, false)));

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

    /* The same program on every device there is. */
    static const char *const devices[] = { "cpu", "gpu" };
    for (int i = 0; i < (cn_gpu_available(cn) ? 2 : 1); i++) {
        cn_ctx *other = cn_open(&(cn_desc){ .device = devices[i], .seed = 3 });
        printf("centred, %s: ", devices[i]);
        ok = show_centred(other) && ok;
        cn_close(other);
    }
    cn_close(cn);
    return !ok;
}
