/* Max pooling, with windows of a fixed size or adapted to the size of the result. The operators on planes and volumes
   have a second result: the index of each maximum in its plane or volume. */
#include "ops/kernels.h"
#include "ops/window/window.h"
#include "gpu/shaders.h"

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    cn__pool p = cn__pool_of(k, &k->in[0], &k->out[0]);
    cn_body body = k->kernels->max_pool.forward[k->in[0].dtype];
    cn_parallel(k, p.volumes * p.od * p.oh, 1 + (int64_t)(16384 / p.work), body, &p);
}

static void cpu_backward(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    const cn_array *x = &k->out[0], *g = &k->in[0];
    const int64_t axes = ((const cn__pool_attrs *)k->attrs)->axes;
    cn__pool_sizes s = { 1, 1 };
    for (int64_t d = x->ndim - axes; d < x->ndim; d++) s.in *= x->shape[d], s.out *= g->shape[d];
    cn_body body = k->kernels->max_pool.backward[cn__f64_entry(x->dtype)];
    cn_parallel(k, x->numel / s.in, 1 + 16384 / (s.in + s.out), body, &s);
}

/* The least element of a type, as a word of the GPU's memory: the maximum of a window that covers padding only. */
static const char *least_word(cn_dtype t)
{
    switch (t) {
    case CN_U8: return "0u";
    case CN_I8: return "0xffffff80u";
    case CN_I16: return "0xffff8000u";
    default: return cn_dtype_is_float(t) ? "0xff800000u" : "0x80000000u";
    }
}

static bool run_gpu(cn_gpu_call *c, const char *kernel, const char *windows)
{
    const cn_dtype t = c->in[0].dtype;
    const int64_t axes = ((const cn__pool_attrs *)c->attrs)->axes;
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_max,
                                           .kernel = kernel,
                                           .with = cn__wgsl_pool,
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("windows", windows),
                                                                 CN_GPU_NUMBER("axes", axes),
                                                                 CN_GPU_FLAG("whole", !cn_dtype_is_float(t)),
                                                                 CN_GPU_TEXT("least", least_word(t))),
                                           .each = c->out[0].numel });
}

static bool gpu(cn_gpu_call *c) { return run_gpu(c, "forward", cn__pool_windows(c, &c->in[0], &c->out[0])); }
static bool gpu_backward(cn_gpu_call *c) { return run_gpu(c, "backward", cn__pool_windows(c, &c->out[0], &c->in[0])); }


static bool infer_backward(cn_infer *i)
{
    if (!cn__infer_pool_backward(i)) return false;
    if (i->in[1]->dtype == CN_I64 && cn__same_shape(&i->in[0]->layout, &i->in[1]->layout)) return true;
    char s[96], t[96];
    return cn_infer_fail(i, CN_BAD_SHAPE, "indices must be i64 and have the shape of the gradient %s, got %s %s",
                         cn__shape_text(&i->in[0]->layout, s, sizeof s), cn_dtype_name(i->in[1]->dtype),
                         cn__shape_text(&i->in[1]->layout, t, sizeof t));
}

static void grad_backward(cn_grad_call *g)
{
    const int64_t axes = ((const cn__pool_attrs *)g->attrs)->axes;
    if (!g->needs[0]) return;
    cn_tensor *picked = cn_gather(cn_flatten(g->out_grad[0], -axes, -1), -1, cn_flatten(g->in[1], -axes, -1));
    g->in_grad[0] = cn_reshape(picked, cn_shape(g->in[0]));
}

const cn_op cn__op_max_pool_backward = {
    .call = "_max_pool_backward(Tensor grad, Tensor indices, int[] input_size) -> Tensor",
    .name = "max_pool_backward", .doc = "The gradient of max pooling: each gradient is added where its maximum was.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .free_dtype = 2, .not_differentiable = 2,
    .attr_size = sizeof(cn__pool_attrs), .infer = infer_backward, .grad = grad_backward, .epilogue = true,
    .cpu = cpu_backward, .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 2, 2), CN_IDX(20, 2, 3, 2, 2)), CN__POOL(.axes = 2, .in = { 4, 5 }) },
             { CN_IN(CN_S(3, 1, 4), CN_IDX(7, 3, 1, 4)), CN__POOL(.axes = 2, .in = { 1, 7 }) },
             { CN_IN(CN_S(0, 3, 2, 2), CN_IDX(20, 0, 3, 2, 2)), CN__POOL(.axes = 2, .in = { 4, 5 }) },
             { CN_IN(CN_S(2, 3, 2, 2), CN_IDX(60, 2, 3, 2, 2)), CN__POOL(.axes = 3, .in = { 5, 3, 4 }) },
             { CN_IN(CN_S(40, 9, 10), CN_IDX(360, 40, 9, 10)), CN__POOL(.axes = 2, .in = { 18, 20 }) }),
};

static void grad(cn_grad_call *g)
{
    if (!g->needs[0] || !g->out_grad[0]) return;
    cn__pool_attrs a = *(const cn__pool_attrs *)g->attrs; /* they decide which windows contain an element */
    for (int d = 0; d < a.axes; d++) a.in[d] = cn_size(g->in[0], d - (int)a.axes);
    g->in_grad[0] = cn_apply(&cn__op_max_pool_backward, (cn_tensor *[]){ g->out_grad[0], g->out[1] }, 2, &a, NULL);
}

const cn_op cn__op_max_pool2d = {
    .call = "max_pool2d(Tensor input, int[2] kernel_size, int[2] stride=None, int[2] padding=0, int[2] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
    .name = "max_pool2d", .doc = "The largest element of each window of each plane.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS, .attr_size = sizeof(cn__pool_attrs),
    .infer = cn__infer_pool, .grad = grad, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu, .onnx = "MaxPool",
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 6, 8)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(3, 7, 5)),
               CN__POOL(2, { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 1, 8, 9)),
               CN__POOL(2, { 3, 2 }, { 2, 3 }, { 1, 0 }, { 2, 3 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 2, 6, 5)),
               CN__POOL(2, { 3, 2 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(0, 3, 4, 4)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 5, 15)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 2, 4, 151)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 7, 23)),
               CN__POOL(2, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 1, 1)),
               CN__POOL(2, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(4, 8, 15, 14)),
               CN__POOL(2, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) }),
};

const cn_op cn__op_adaptive_max_pool2d = {
    .call = "adaptive_max_pool2d(Tensor input, int[2] output_size) -> Tensor",
    .name = "adaptive_max_pool2d", .doc = "The largest element of each window; the windows divide the plane evenly.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool, .grad = grad,
    .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu,
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 6, 7)), CN__POOL(.axes = 2, .out = { 3, 2 }) },
             { CN_IN(CN_DISTINCT(3, 5, 4)), CN__POOL(.axes = 2, .out = { 7, 3 }) },
             { CN_IN(CN_DISTINCT(0, 2, 5, 4)), CN__POOL(.axes = 2, .out = { 1, 1 }) },
             { CN_IN(CN_DISTINCT(4, 9, 13, 11)), CN__POOL(.axes = 2, .out = { 5, 4 }) },
             { CN_IN(CN_DISTINCT(16, 15, 13, 11)), CN__POOL(.axes = 2, .out = { 5, 4 }) }),
};

const cn_op cn__op_max_pool3d = {
    .call = "max_pool3d(Tensor input, int[3] kernel_size, int[3] stride=None, int[3] padding=0, int[3] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
    .name = "max_pool3d", .doc = "The largest element of each window of each volume.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS, .attr_size = sizeof(cn__pool_attrs),
    .infer = cn__infer_pool, .grad = grad, .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu, .onnx = "MaxPool",
    CN_CASES({ CN_IN(CN_DISTINCT(2, 2, 4, 5, 6)),
               CN__POOL(3, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 5, 6, 4)),
               CN__POOL(3, { 3, 2, 2 }, { 2, 1, 3 }, { 1, 1, 0 }, { 1, 2, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 2, 3, 4, 7)),
               CN__POOL(3, { 1, 2, 2 }, { 2, 2, 2 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 2, 6, 5, 7)),
               CN__POOL(3, { 2, 2, 3 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(0, 2, 3, 3, 3)),
               CN__POOL(3, { 2, 2, 2 }, { 1, 1, 1 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 2, 3, 2, 71)),
               CN__POOL(3, { 2, 1, 70 }, { 1, 1, 1 }, { 0 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 4, 7, 9, 10)),
               CN__POOL(3, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, 0, 0, 0, { 0 }, { 0 }) }),
};

const cn_op cn__op_adaptive_max_pool3d = {
    .call = "adaptive_max_pool3d(Tensor input, int[3] output_size) -> Tensor",
    .name = "adaptive_max_pool3d", .doc = "The largest element of each window; the windows divide the volume evenly.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool, .grad = grad,
    .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu,
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 4, 5, 3)), CN__POOL(.axes = 3, .out = { 3, 2, 5 }) },
             { CN_IN(CN_DISTINCT(2, 3, 4, 5)), CN__POOL(.axes = 3, .out = { 1, 1, 1 }) },
             { CN_IN(CN_DISTINCT(0, 2, 3, 4, 5)), CN__POOL(.axes = 3, .out = { 1, 2, 1 }) },
             { CN_IN(CN_DISTINCT(3, 4, 7, 8, 9)), CN__POOL(.axes = 3, .out = { 3, 5, 4 }) }),
};

static cn_tensor *compose_1d(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn__pool_lines("max_pool1d", &cn__op_max_pool2d, in[0], attrs);
}

const cn_op cn__op_max_pool1d = {
    .call = "max_pool1d(Tensor input, int[1] kernel_size, int[1] stride=None, int[1] padding=0, int[1] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
    .name = "max_pool1d", .doc = "The largest element of each window of each line.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .compose = compose_1d,
    .onnx = "MaxPool",
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 10)),
               CN__POOL(2, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(3, 11)),
               CN__POOL(2, { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 3 }, 1, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(0, 3, 4)),
               CN__POOL(2, { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(2, 200)),
               CN__POOL(2, { 1, 5 }, { 1, 1 }, { 0, 2 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) },
             { CN_IN(CN_DISTINCT(1, 250)),
               CN__POOL(2, { 1, 70 }, { 1, 3 }, { 0, 35 }, { 1, 1 }, 0, 0, 0, { 0 }, { 0 }) }),
};

static cn_tensor *compose_adaptive_1d(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs,
                                      const cn_arg *args)
{
    (void)ctx, (void)n_in, (void)args;
    return cn__pool_lines("adaptive_max_pool1d", &cn__op_adaptive_max_pool2d, in[0], attrs);
}

const cn_op cn__op_adaptive_max_pool1d = {
    .call = "adaptive_max_pool1d(Tensor input, int output_size) -> Tensor",
    .name = "adaptive_max_pool1d", .doc = "The largest element of each window; the windows divide the line evenly.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__pool_attrs), .compose = compose_adaptive_1d,
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 10)), CN__POOL(.axes = 2, .out = { 1, 4 }) },
             { CN_IN(CN_DISTINCT(3, 5)), CN__POOL(.axes = 2, .out = { 1, 7 }) },
             { CN_IN(CN_DISTINCT(0, 3, 4)), CN__POOL(.axes = 2, .out = { 1, 2 }) }),
};

/* ---- with indices: PyTorch's return_indices ---- */

static cn_tensor *with_indices(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a,
                               cn_tensor **indices)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    cn_tensor *out[2];
    if (!indices) return cn__pool_apply(op, x, a);
    return cn_apply_n(op, &x, 1, a, NULL, out) ? *indices = out[1], out[0] : NULL;
}

/* Lines as planes of height 1. */
static cn_tensor *lines_with_indices(const char *who, const cn_op *op, cn_tensor *x, const cn__pool_attrs *a,
                                     cn_tensor **indices)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    if (!indices) return cn__pool_lines(who, op, x, a);
    cn_tensor *at = NULL, *y = cn__are_lines(who, x) ? with_indices(who, op, cn_unsqueeze(x, -2), a, &at) : NULL;
    *indices = cn_squeeze(at, CN_DIMS(-2));
    return cn_squeeze(y, CN_DIMS(-2));
}

static void forget(cn_tensor **indices)
{
    if (indices) *indices = NULL;
}

cn_tensor *cn_max_pool1d_with_indices(cn_tensor *x, const cn_pool_desc *desc, cn_tensor **indices)
{
    const char *who = "max_pool1d_with_indices";
    cn__pool_attrs a;
    forget(indices);
    return cn__pool_attrs_of(who, x, desc, 1, false, &a)
               ? lines_with_indices(who, &cn__op_max_pool2d, x, &a, indices) : NULL;
}

cn_tensor *cn_max_pool2d_with_indices(cn_tensor *x, const cn_pool_desc *desc, cn_tensor **indices)
{
    const char *who = "max_pool2d_with_indices";
    cn__pool_attrs a;
    forget(indices);
    return cn__pool_attrs_of(who, x, desc, 2, false, &a)
               ? with_indices(who, &cn__op_max_pool2d, x, &a, indices) : NULL;
}

cn_tensor *cn_max_pool3d_with_indices(cn_tensor *x, const cn_pool_desc *desc, cn_tensor **indices)
{
    const char *who = "max_pool3d_with_indices";
    cn__pool_attrs a;
    forget(indices);
    return cn__pool_attrs_of(who, x, desc, 3, false, &a)
               ? with_indices(who, &cn__op_max_pool3d, x, &a, indices) : NULL;
}

cn_tensor *cn_adaptive_max_pool1d_with_indices(cn_tensor *x, int64_t size, cn_tensor **indices)
{
    forget(indices);
    return lines_with_indices("adaptive_max_pool1d_with_indices", &cn__op_adaptive_max_pool2d, x,
                              &(cn__pool_attrs){ .axes = 2, .out = { 1, size } }, indices);
}

cn_tensor *cn_adaptive_max_pool2d_with_indices(cn_tensor *x, int64_t height, int64_t width, cn_tensor **indices)
{
    forget(indices);
    return with_indices("adaptive_max_pool2d_with_indices", &cn__op_adaptive_max_pool2d, x,
                        &(cn__pool_attrs){ .axes = 2, .out = { height, width } }, indices);
}

cn_tensor *cn_adaptive_max_pool3d_with_indices(cn_tensor *x, cn_dims size, cn_tensor **indices)
{
    const char *who = "adaptive_max_pool3d_with_indices";
    cn__pool_attrs a;
    forget(indices);
    return cn__pool_adaptive(who, x, size, 3, &a) ? with_indices(who, &cn__op_adaptive_max_pool3d, x, &a, indices)
                                                  : NULL;
}

/* ---- without ---- */

cn_tensor *cn_max_pool2d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("max_pool2d", x, desc, 2, false, &a) ? cn__pool_apply(&cn__op_max_pool2d, x, &a) : NULL;
}

cn_tensor *cn_max_pool3d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("max_pool3d", x, desc, 3, false, &a) ? cn__pool_apply(&cn__op_max_pool3d, x, &a) : NULL;
}

cn_tensor *cn_max_pool1d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("max_pool1d", x, desc, 1, false, &a) ? cn__pool_apply(&cn__op_max_pool1d, x, &a) : NULL;
}

cn_tensor *cn_adaptive_max_pool2d(cn_tensor *x, int64_t height, int64_t width)
{
    return cn__pool_apply(&cn__op_adaptive_max_pool2d, x, &(cn__pool_attrs){ .axes = 2, .out = { height, width } });
}

cn_tensor *cn_adaptive_max_pool1d(cn_tensor *x, int64_t size)
{
    return cn__pool_apply(&cn__op_adaptive_max_pool1d, x, &(cn__pool_attrs){ .axes = 2, .out = { 1, size } });
}

cn_tensor *cn_adaptive_max_pool3d(cn_tensor *x, cn_dims size)
{
    cn__pool_attrs a;
    return cn__pool_adaptive("adaptive_max_pool3d", x, size, 3, &a)
               ? cn__pool_apply(&cn__op_adaptive_max_pool3d, x, &a) : NULL;
}
