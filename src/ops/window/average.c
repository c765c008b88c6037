/* Average pooling, with windows of a fixed size or adapted to the size of the result. It is linear: the backward
   operator spreads each gradient over its window, and the gradient of the backward operator is the pooling itself. */
#include "ops/window/window.h"
#include "gpu/shaders.h"

#define TEMPLATE "ops/window/average_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    cn__pool p = cn__pool_of(k, &k->in[0], &k->out[0]);
    cn_body body = k->in[0].dtype == CN_F32 ? average_f32 : average_f64;
    cn_parallel(k, p.volumes * p.od * p.oh, 1 + (int64_t)(16384 / p.work), body, &p);
}

static void cpu_backward(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    cn__pool p = cn__pool_of(k, &k->out[0], &k->in[0]);
    double work = (double)(p.id * p.ih * p.iw) + (double)(p.od * p.oh) * p.work;
    cn_body body = k->in[0].dtype == CN_F32 ? average_backward_f32 : average_backward_f64;
    cn_parallel(k, p.volumes, 1 + (int64_t)(16384 / work), body, &p);
}

static bool gpu(cn_gpu_call *c)
{
    enum { LARGE = 64 };
    const cn_array *x = &c->in[0], *y = &c->out[0];
    const cn__pool_attrs *a = c->attrs;
    const char *windows = cn__pool_windows(c, x, y);
    if (!y->numel) return true;
    int64_t area = x->numel / y->numel;
    for (int d = 0; d < a->axes && a->kernel[0]; d++) area = d ? area * a->kernel[d] : a->kernel[0];
    cn_gpu_launch l = { .shader = cn__wgsl_average,
                        .kernel = area < LARGE ? "small" : "large",
                        .with = cn__wgsl_pool,
                        .holes = CN_GPU_HOLES(CN_GPU_TEXT("windows", windows),
                                                                 CN_GPU_NUMBER("axes", a->axes)) };
    if (area < LARGE) l.each = y->numel;
    else l.groups = y->numel, l.size = 64;
    return cn_gpu_run(c, &l);
}

static bool gpu_backward(cn_gpu_call *c)
{
    const cn__pool_attrs *a = c->attrs;
    const char *windows = cn__pool_windows(c, &c->out[0], &c->in[0]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_average,
                                           .kernel = "backward",
                                           .with = cn__wgsl_pool,
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("windows", windows),
                                                                 CN_GPU_NUMBER("axes", a->axes)),
                                           .each = c->out[0].numel });
}

extern const cn_op cn__op_avg_pool_backward, cn__op_adaptive_avg_pool_backward, cn__op_avg_pool3d,
    cn__op_adaptive_avg_pool3d;

/* The gradient of a backward operator is the forward operator with the same attributes. */
static void grad_backward(cn_grad_call *g, const cn_op *planes, const cn_op *volumes)
{
    cn__pool_attrs a = *(const cn__pool_attrs *)g->attrs;
    for (int d = 0; d < a.axes; d++) {
        a.in[d] = 0;
        if (a.kernel[0] == 0) a.out[d] = cn_size(g->in[0], d - (int)a.axes);
    }
    if (g->needs[0]) g->in_grad[0] = cn_apply(a.axes == 3 ? volumes : planes, &g->out_grad[0], 1, &a, NULL);
}

static void grad_forward(cn_grad_call *g, const cn_op *backward)
{
    cn__pool_attrs a = *(const cn__pool_attrs *)g->attrs;
    for (int d = 0; d < a.axes; d++) {
        a.out[d] = 0;
        a.in[d] = cn_size(g->in[0], d - (int)a.axes);
    }
    if (g->needs[0]) g->in_grad[0] = cn_apply(backward, &g->out_grad[0], 1, &a, NULL);
}

static void grad_fixed(cn_grad_call *g) { grad_forward(g, &cn__op_avg_pool_backward); }
static void grad_adaptive(cn_grad_call *g) { grad_forward(g, &cn__op_adaptive_avg_pool_backward); }

const cn_op cn__op_avg_pool2d = {
    .call = "avg_pool2d(Tensor input, int[2] kernel_size, int[2] stride=None, int[2] padding=0, bool ceil_mode=False, "
            "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .name = "avg_pool2d", .doc = "The mean of each window of each plane.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool,
    .grad = grad_fixed, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu, .onnx = "AveragePool",
    CN_CASES({ CN_IN(CN_S(2, 3, 6, 8)), CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(3, 7, 5)), CN__POOL(2, { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(2, 1, 6, 9)), CN__POOL(2, { 3, 4 }, { 2, 3 }, { 1, 2 }, { 1, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(1, 2, 6, 9)), CN__POOL(2, { 3, 4 }, { 2, 3 }, { 1, 2 }, { 1, 1 }, 1, 1, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(1, 2, 6, 9)), CN__POOL(2, { 3, 4 }, { 2, 3 }, { 1, 2 }, { 1, 1 }, 1, 1, 7, { 0 }, { 0 }) },
             { CN_IN(CN_S(0, 3, 4, 4)), CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(4, 8, 15, 14)),
               CN__POOL(2, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 0, 1, 0, { 0 }, { 0 }) }),
};

const cn_op cn__op_adaptive_avg_pool2d = {
    .call = "adaptive_avg_pool2d(Tensor input, int[2] output_size) -> Tensor",
    .name = "adaptive_avg_pool2d", .doc = "The mean of each window; the windows divide the plane evenly.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool,
    .grad = grad_adaptive, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(2, 3, 6, 7)), CN__POOL(.axes = 2, .out = { 3, 2 }) },
             { CN_IN(CN_S(3, 5, 4)), CN__POOL(.axes = 2, .out = { 7, 3 }) },
             { CN_IN(CN_S(2, 2, 5, 4)), CN__POOL(.axes = 2, .out = { 1, 1 }) },
             { CN_IN(CN_S(0, 2, 5, 4)), CN__POOL(.axes = 2, .out = { 1, 1 }) },
             { CN_IN(CN_S(4, 9, 13, 11)), CN__POOL(.axes = 2, .out = { 5, 4 }) },
             { CN_IN(CN_S(16, 15, 13, 11)), CN__POOL(.axes = 2, .out = { 5, 4 }) },
             { CN_IN(CN_S(2, 3, 9, 11)), CN__POOL(.axes = 2, .out = { 1, 1 }) }),
};

const cn_op cn__op_avg_pool3d = {
    .call = "avg_pool3d(Tensor input, int[3] kernel_size, int[3] stride=None, int[3] padding=0, bool ceil_mode=False, "
            "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .name = "avg_pool3d", .doc = "The mean of each window of each volume.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool,
    .grad = grad_fixed, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu, .onnx = "AveragePool",
    CN_CASES({ CN_IN(CN_S(2, 2, 4, 5, 6)),
               CN__POOL(3, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(2, 5, 6, 4)),
               CN__POOL(3, { 3, 2, 2 }, { 2, 1, 3 }, { 1, 1, 0 }, { 1, 1, 1 }, 1, 1, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(1, 2, 6, 5, 4)),
               CN__POOL(3, { 2, 3, 3 }, { 3, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(1, 2, 3, 5, 4)),
               CN__POOL(3, { 2, 3, 3 }, { 1, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, 1, 0, -5, { 0 }, { 0 }) },
             { CN_IN(CN_S(0, 2, 3, 3, 3)),
               CN__POOL(3, { 2, 2, 2 }, { 1, 1, 1 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(2, 4, 5, 8, 9)),
               CN__POOL(3, { 4, 5, 4 }, { 1, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) }),
};

const cn_op cn__op_adaptive_avg_pool3d = {
    .call = "adaptive_avg_pool3d(Tensor input, int[3] output_size) -> Tensor",
    .name = "adaptive_avg_pool3d", .doc = "The mean of each window; the windows divide the volume evenly.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool,
    .grad = grad_adaptive, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu,
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 5, 3)), CN__POOL(.axes = 3, .out = { 3, 2, 5 }) },
             { CN_IN(CN_S(2, 3, 4, 5)), CN__POOL(.axes = 3, .out = { 1, 1, 1 }) },
             { CN_IN(CN_S(0, 2, 3, 4, 5)), CN__POOL(.axes = 3, .out = { 1, 2, 1 }) },
             { CN_IN(CN_S(3, 4, 7, 8, 9)), CN__POOL(.axes = 3, .out = { 3, 5, 4 }) }),
};

static void grad_fixed_backward(cn_grad_call *g) { grad_backward(g, &cn__op_avg_pool2d, &cn__op_avg_pool3d); }
static void grad_adaptive_backward(cn_grad_call *g)
{
    grad_backward(g, &cn__op_adaptive_avg_pool2d, &cn__op_adaptive_avg_pool3d);
}

const cn_op cn__op_avg_pool_backward = {
    .call = "_avg_pool_backward(Tensor grad, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, "
            "bool count_include_pad, int divisor_override, int[] input_size) -> Tensor",
    .name = "avg_pool_backward", .doc = "The gradient of average pooling: each gradient is spread over its window.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool_backward,
    .grad = grad_fixed_backward, .cpu = cpu_backward, .scratch = cn__pool_scratch,
    .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 3, 4)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 6, 8 }, { 0 }) },
             { CN_IN(CN_S(3, 4, 6)), CN__POOL(2, { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, 0, 1, 0, { 7, 5 }, { 0 }) },
             { CN_IN(CN_S(2, 2, 3, 3)),
               .attrs = &(const cn__pool_attrs){
                   3, { 2, 2, 1 }, { 2, 2, 1 }, { 1, 1, 0 }, { 1, 1, 1 }, 0, 0, 0, { 3, 4, 3 }, { 0 } } },
             { CN_IN(CN_S(0, 3, 2, 2)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 4, 4 }, { 0 }) },
             { CN_IN(CN_S(4, 8, 8, 7)),
               CN__POOL(2, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 0, 0, 0, { 15, 14 }, { 0 }) }),
};

const cn_op cn__op_adaptive_avg_pool_backward = {
    .call = "_adaptive_avg_pool_backward(Tensor grad, int[] input_size) -> Tensor",
    .name = "adaptive_avg_pool_backward", .doc = "The gradient of adaptive average pooling.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool_backward,
    .grad = grad_adaptive_backward, .cpu = cpu_backward, .scratch = cn__pool_scratch,
    .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 3, 2)), CN__POOL(.axes = 2, .in = { 6, 7 }) },
             { CN_IN(CN_S(3, 7, 3)), CN__POOL(.axes = 2, .in = { 5, 4 }) },
             { CN_IN(CN_S(2, 2, 3, 3)), CN__POOL(.axes = 3, .in = { 3, 4, 2 }) },
             { CN_IN(CN_S(0, 2, 1, 1)), CN__POOL(.axes = 2, .in = { 5, 4 }) },
             { CN_IN(CN_S(4, 9, 5, 4)), CN__POOL(.axes = 2, .in = { 13, 11 }) }),
};

static cn_tensor *compose_1d(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn__pool_lines("avg_pool1d", &cn__op_avg_pool2d, in[0], attrs);
}

const cn_op cn__op_avg_pool1d = {
    .call = "avg_pool1d(Tensor input, int[1] kernel_size, int[1] stride=None, int[1] padding=0, bool ceil_mode=False, "
            "bool count_include_pad=True) -> Tensor",
    .name = "avg_pool1d", .doc = "The mean of each window of each line.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .compose = compose_1d,
    .onnx = "AveragePool",
    CN_CASES({ CN_IN(CN_S(2, 3, 10)), CN__POOL(2, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(3, 11)), CN__POOL(2, { 1, 3 }, { 1, 3 }, { 0, 1 }, { 1, 1 }, 1, 1, 0, { 0 }, { 0 }) },
             { CN_IN(CN_S(0, 3, 4)), CN__POOL(2, { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) }),
};

static cn_tensor *compose_adaptive_1d(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs,
                                      const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn__pool_lines("adaptive_avg_pool1d", &cn__op_adaptive_avg_pool2d, in[0], attrs);
}

const cn_op cn__op_adaptive_avg_pool1d = {
    .call = "adaptive_avg_pool1d(Tensor input, int output_size) -> Tensor",
    .name = "adaptive_avg_pool1d", .doc = "The mean of each window; the windows divide the line evenly.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .compose = compose_adaptive_1d,
    CN_CASES({ CN_IN(CN_S(2, 3, 10)), CN__POOL(.axes = 2, .out = { 1, 4 }) },
             { CN_IN(CN_S(3, 5)), CN__POOL(.axes = 2, .out = { 1, 7 }) },
             { CN_IN(CN_S(0, 3, 4)), CN__POOL(.axes = 2, .out = { 1, 2 }) }),
};

cn_tensor *cn_avg_pool2d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("avg_pool2d", x, desc, 2, true, &a) ? cn__pool_apply(&cn__op_avg_pool2d, x, &a) : NULL;
}

cn_tensor *cn_avg_pool3d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("avg_pool3d", x, desc, 3, true, &a) ? cn__pool_apply(&cn__op_avg_pool3d, x, &a) : NULL;
}

cn_tensor *cn_avg_pool1d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("avg_pool1d", x, desc, 1, true, &a) ? cn__pool_apply(&cn__op_avg_pool1d, x, &a) : NULL;
}

cn_tensor *cn_adaptive_avg_pool2d(cn_tensor *x, int64_t height, int64_t width)
{
    return cn__pool_apply(&cn__op_adaptive_avg_pool2d, x, &(cn__pool_attrs){ .axes = 2, .out = { height, width } });
}

cn_tensor *cn_adaptive_avg_pool1d(cn_tensor *x, int64_t size)
{
    return cn__pool_apply(&cn__op_adaptive_avg_pool1d, x, &(cn__pool_attrs){ .axes = 2, .out = { 1, size } });
}

cn_tensor *cn_adaptive_avg_pool3d(cn_tensor *x, cn_dims size)
{
    cn__pool_attrs a;
    return cn__pool_adaptive("adaptive_avg_pool3d", x, size, 3, &a)
               ? cn__pool_apply(&cn__op_adaptive_avg_pool3d, x, &a) : NULL;
}
