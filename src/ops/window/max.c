/* Max pooling, with windows of a fixed size or adapted to the size of the result. The operators on planes have a second
   result: the index of each maximum in its plane. */
#include "ops/kernels.h"
#include "ops/window/window.h"
#include "gpu/shaders.h"

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    cn__pool p = cn__pool_of(k, &k->in[0], &k->out[0]);
    cn_body body = k->kernels->max_pool.forward[k->in[0].dtype];
    cn_parallel(k, p.planes * p.oh, 1 + (int64_t)(16384 / p.work), body, &p);
}

static void cpu_backward(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    const cn_array *x = &k->out[0], *g = &k->in[0];
    cn__plane_sizes s = { .in = x->shape[x->ndim - 2] * x->shape[x->ndim - 1],
                          .out = g->shape[g->ndim - 2] * g->shape[g->ndim - 1] };
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
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_max,
                                           .kernel = kernel,
                                           .with = cn__wgsl_pool,
                                           .holes = CN_GPU_HOLES(CN_GPU_TEXT("windows", windows),
                                                                 CN_GPU_FLAG("whole", !cn_dtype_is_float(t)),
                                                                 CN_GPU_TEXT("least", least_word(t))),
                                           .each = c->out[0].numel });
}

static bool gpu(cn_gpu_call *c) { return run_gpu(c, "forward", cn__pool_windows(c, &c->in[0], &c->out[0])); }
static bool gpu_backward(cn_gpu_call *c) { return run_gpu(c, "backward", cn__pool_windows(c, &c->out[0], &c->in[0])); }

static cn_tensor *flat(cn_tensor *x) { return cn_flatten(x, -2, -1); }

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
    if (g->needs[0])
        g->in_grad[0] = cn_reshape(cn_gather(flat(g->out_grad[0]), -1, flat(g->in[1])), cn_shape(g->in[0]));
}

const cn_op cn__op_max_pool2d_backward = {
    .call = "_max_pool2d_backward(Tensor grad, Tensor indices, int[2] input_size) -> Tensor",
    .name = "max_pool2d_backward", .doc = "The gradient of max pooling: each gradient is added where its maximum was.",
    .kind = CN_INDEX, .n_in = 2, .n_out = 1, .free_dtype = 2, .not_differentiable = 2,
    .attr_size = sizeof(cn__pool_attrs), .infer = infer_backward, .grad = grad_backward, .epilogue = true,
    .cpu = cpu_backward, .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 2, 2), CN_IDX(20, 2, 3, 2, 2)), .attrs = &(const cn__pool_attrs){ .in = { 4, 5 } } },
             { CN_IN(CN_S(3, 1, 4), CN_IDX(7, 3, 1, 4)), .attrs = &(const cn__pool_attrs){ .in = { 1, 7 } } },
             { CN_IN(CN_S(0, 3, 2, 2), CN_IDX(20, 0, 3, 2, 2)), .attrs = &(const cn__pool_attrs){ .in = { 4, 5 } } },
             { CN_IN(CN_S(40, 9, 10), CN_IDX(360, 40, 9, 10)),
               .attrs = &(const cn__pool_attrs){ .in = { 18, 20 } } }),
};

static void grad(cn_grad_call *g)
{
    if (!g->needs[0] || !g->out_grad[0]) return;
    cn__pool_attrs a = *(const cn__pool_attrs *)g->attrs; /* they decide which windows contain an element */
    a.in[0] = cn_size(g->in[0], -2);
    a.in[1] = cn_size(g->in[0], -1);
    g->in_grad[0] = cn_apply(&cn__op_max_pool2d_backward, (cn_tensor *[]){ g->out_grad[0], g->out[1] }, 2, &a, NULL);
}

const cn_op cn__op_max_pool2d = {
    .call = "max_pool2d(Tensor input, int[2] kernel_size, int[2] stride=None, int[2] padding=0, int[2] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
    .name = "max_pool2d", .doc = "The largest element of each window of each plane.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool, .grad = grad,
    .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu, .onnx = "MaxPool",
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 6, 8)),
               .attrs = &(const cn__pool_attrs){ { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(3, 7, 5)),
               .attrs = &(const cn__pool_attrs){ { 3, 2 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(2, 1, 8, 9)),
               .attrs = &(const cn__pool_attrs){ { 3, 2 }, { 2, 3 }, { 1, 0 }, { 2, 3 }, 1, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(1, 2, 6, 5)),
               .attrs = &(const cn__pool_attrs){ { 3, 2 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, 1, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(0, 3, 4, 4)),
               .attrs = &(const cn__pool_attrs){ { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(2, 5, 15)),
               .attrs = &(const cn__pool_attrs){ { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(1, 2, 4, 151)),
               .attrs = &(const cn__pool_attrs){ { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(2, 7, 23)),
               .attrs = &(const cn__pool_attrs){ { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, 1, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(1, 1, 1)),
               .attrs = &(const cn__pool_attrs){ { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(4, 8, 15, 14)),
               .attrs = &(const cn__pool_attrs){ { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } }),
};

const cn_op cn__op_adaptive_max_pool2d = {
    .call = "adaptive_max_pool2d(Tensor input, int[2] output_size) -> Tensor",
    .name = "adaptive_max_pool2d", .doc = "The largest element of each window; the windows divide the plane evenly.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 2, .attr_size = sizeof(cn__pool_attrs), .infer = cn__infer_pool, .grad = grad,
    .cpu = cpu, .scratch = cn__pool_scratch, .gpu = gpu,
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 6, 7)), .attrs = &(const cn__pool_attrs){ .out = { 3, 2 } } },
             { CN_IN(CN_DISTINCT(3, 5, 4)), .attrs = &(const cn__pool_attrs){ .out = { 7, 3 } } },
             { CN_IN(CN_DISTINCT(0, 2, 5, 4)), .attrs = &(const cn__pool_attrs){ .out = { 1, 1 } } },
             { CN_IN(CN_DISTINCT(4, 9, 13, 11)), .attrs = &(const cn__pool_attrs){ .out = { 5, 4 } } },
             { CN_IN(CN_DISTINCT(16, 15, 13, 11)), .attrs = &(const cn__pool_attrs){ .out = { 5, 4 } } }),
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
               .attrs = &(const cn__pool_attrs){ { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(3, 11)),
               .attrs = &(const cn__pool_attrs){ { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 3 }, 1, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(0, 3, 4)),
               .attrs = &(const cn__pool_attrs){ { 1, 2 }, { 1, 2 }, { 0, 0 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(2, 200)),
               .attrs = &(const cn__pool_attrs){ { 1, 5 }, { 1, 1 }, { 0, 2 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } },
             { CN_IN(CN_DISTINCT(1, 250)),
               .attrs = &(const cn__pool_attrs){ { 1, 70 }, { 1, 3 }, { 0, 35 }, { 1, 1 }, 0, 0, { 0 }, { 0 } } }),
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
    CN_CASES({ CN_IN(CN_DISTINCT(2, 3, 10)), .attrs = &(const cn__pool_attrs){ .out = { 1, 4 } } },
             { CN_IN(CN_DISTINCT(3, 5)), .attrs = &(const cn__pool_attrs){ .out = { 1, 7 } } },
             { CN_IN(CN_DISTINCT(0, 3, 4)), .attrs = &(const cn__pool_attrs){ .out = { 1, 2 } } }),
};

cn_tensor *cn_max_pool2d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("max_pool2d", x, desc, 2, false, &a) ? cn__pool_apply(&cn__op_max_pool2d, x, &a) : NULL;
}

cn_tensor *cn_max_pool1d(cn_tensor *x, const cn_pool_desc *desc)
{
    cn__pool_attrs a;
    return cn__pool_attrs_of("max_pool1d", x, desc, 1, false, &a) ? cn__pool_apply(&cn__op_max_pool1d, x, &a) : NULL;
}

cn_tensor *cn_adaptive_max_pool2d(cn_tensor *x, int64_t height, int64_t width)
{
    return cn__pool_apply(&cn__op_adaptive_max_pool2d, x, &(cn__pool_attrs){ .out = { height, width } });
}

cn_tensor *cn_adaptive_max_pool1d(cn_tensor *x, int64_t size)
{
    return cn__pool_apply(&cn__op_adaptive_max_pool1d, x, &(cn__pool_attrs){ .out = { 1, size } });
}
