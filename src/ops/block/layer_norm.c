/* layer_norm and rms_norm with their backward operators. layer_norm: y = (x - mean) / sqrt(var + eps) * weight + bias
   over the last axes; rms_norm: y = x / sqrt(mean of x² + eps) * weight. */
#include <math.h>

#include "ops/block/block.h"
#include "ops/block/block_gpu.h"
#include "ops/kernels.h"

enum { MOST_PARTS = 64 }; /* into which the backward kernel cuts the rows */

static cn__row_norm norm_of(const cn_kernel *k, int64_t axes, bool centred)
{
    cn__row_norm j = { .n_rows = 1, .n = 1, .centred = centred };
    if (k->args) j.eps = k->args[0].f; /* NULL when only the size of the scratch is asked for */
    const int ndim = k->out[0].ndim;
    for (int d = 0; d < ndim; d++) *(d < ndim - axes ? &j.n_rows : &j.n) *= k->out[0].shape[d];
    return j;
}

static void forward(const cn_kernel *k, bool centred)
{
    const cn__norm_attrs *a = k->attrs;
    cn__row_norm j = norm_of(k, a->axes, centred);
    const cn_body body = k->kernels->layer_norm.forward[cn__f64_entry(k->in[0].dtype)];
    cn_parallel(k, j.n_rows, cn__grain_of(4 * (double)j.n), body, &j);
}

static cn__row_norm backward_norm_of(const cn_kernel *k, bool centred)
{
    const cn__norm_backward_attrs *a = k->attrs;
    cn__row_norm j = norm_of(k, a->axes, centred);
    const int64_t least = cn__grain_of(8 * (double)j.n), even = (j.n_rows + MOST_PARTS - 1) / MOST_PARTS;
    j.part_rows = least > even ? least : even;
    j.parts = (j.n_rows + j.part_rows - 1) / j.part_rows;
    if (a->weight || a->bias) j.sums = k->scratch;
    return j;
}

static void backward(const cn_kernel *k, bool centred)
{
    cn__row_norm j = backward_norm_of(k, centred);
    const cn__layer_norm_kernels *kernels = &k->kernels->layer_norm;
    const int f64 = cn__f64_entry(k->in[0].dtype);
    cn_parallel(k, j.parts, 1, kernels->backward[f64], &j);
    if (j.sums) cn_parallel(k, 2 * j.n, cn__grain_of((double)j.parts), kernels->merge[f64], &j);
}

static size_t backward_scratch(const cn_kernel *k, int threads)
{
    const cn__norm_backward_attrs *a = k->attrs;
    const cn__row_norm j = backward_norm_of(k, true);
    return a->weight || a->bias ? sizeof(double) * 2 * (size_t)(j.n * (j.parts + threads)) : 0;
}

/* Operands [first, end), weight and bias, must have the shape of x's last axes. */
static bool check_affine(cn_infer *i, const cn_layout *x, int64_t axes, int first, int end)
{
    if (axes < 1 || axes > x->ndim)
        return cn_infer_fail(i, CN_BAD_ARGUMENT, "normalized_dims must be from 1 to %d, the axes of x, got %lld",
                             x->ndim, (long long)axes);
    cn_layout normalised = { .ndim = (int)axes };
    memcpy(normalised.shape, x->shape + x->ndim - axes, sizeof *x->shape * (size_t)axes);
    for (int k = first; k < end; k++)
        if (i->in[k] && !cn__expect_shape(i, k == first ? "weight" : "bias", i->in[k], &normalised)) return false;
    return true;
}

static bool infer(cn_infer *i)
{
    const cn__norm_attrs *a = i->attrs;
    i->out[0] = *i->in[0];
    return check_affine(i, &i->in[0]->layout, a->axes, 1, i->n_in);
}

/* in: g, x, weight; out: dx, dweight, dbias */
static bool backward_infer(cn_infer *i)
{
    const cn__norm_backward_attrs *a = i->attrs;
    const cn_layout *x = &i->in[1]->layout;
    if (!cn__expect_shape(i, "the gradient", i->in[0], x)) return false;
    if (!check_affine(i, x, a->axes, 2, 3)) return false;
    i->out[0] = *i->in[1];
    for (int k = 1; k < i->n_out; k++) {
        const bool wanted = k == 1 ? a->weight : a->bias;
        cn_layout *l = &i->out[k].layout;
        *l = (cn_layout){ .ndim = wanted ? (int)a->axes : 1 };
        if (wanted) memcpy(l->shape, x->shape + x->ndim - a->axes, sizeof *x->shape * (size_t)a->axes);
        i->out[k].dtype = i->in[1]->dtype;
    }
    return true;
}

static cn__norm described(const cn_tensor *x, int64_t axes, bool centred, const cn_arg *args)
{
    cn__norm n = { .axes = { 0 }, .others = { 0 }, .centred = centred, .eps = args[0].f };
    for (int d = 0; d < cn_ndim(x); d++) {
        cn_dims *list = d < cn_ndim(x) - axes ? &n.others : &n.axes;
        list->v[list->n++] = d;
    }
    return n;
}

#define OVER(axes, eps) .attrs = &(const cn__norm_attrs){ axes }, CN_ARGS({ eps })
#define BACK(eps, ...)  .attrs = &(const cn__norm_backward_attrs){ __VA_ARGS__ }, CN_ARGS({ eps })

/* ---- layer_norm */

static void backward_call(cn_grad_call *g, const cn_op *op)
{
    const cn__norm_attrs *a = g->attrs;
    cn__norm_backward_attrs b = { .axes = a->axes, .weight = g->needs[1], .bias = g->n_in > 2 && g->needs[2] };
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(op, (cn_tensor *[]){ g->out_grad[0], g->in[0], g->in[1] }, 3, &b, g->args, out)) return;
    for (int k = 0; k < g->n_in; k++)
        if (g->needs[k]) g->in_grad[k] = out[k];
}

static void layer_norm_grad(cn_grad_call *g) { backward_call(g, &cn__op_layer_norm_backward); }

static cn_tensor *layer_norm_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    const cn__norm n = described(in[0], ((const cn__norm_attrs *)attrs)->axes, true, args);
    return cn__norm_define(&n, in[0], in[1], in[2]);
}

static void layer_norm_cpu(const cn_kernel *k) { forward(k, true); }
static bool layer_norm_gpu(cn_gpu_call *c) { return cn__gpu_norm(c, true); }

const cn_op cn__op_layer_norm = {
    .call = "layer_norm(Tensor input, int normalized_dims, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) "
            "-> Tensor",
    .name = "layer_norm",
    .doc = "Normalises over the last axes to mean 0 and variance 1, then applies weight and bias.",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 1,
    .optional = 6,
    .attr_size = sizeof(cn__norm_attrs),
    .infer = infer,
    .grad = layer_norm_grad,
    .compose = layer_norm_compose,
    .epilogue = true,
    .cpu = layer_norm_cpu,
    .gpu = layer_norm_gpu,
    .onnx = "LayerNormalization",
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(4), CN_S(4)), OVER(1, 1e-5) },
             { CN_IN(CN_S(2, 3, 5), CN_S(3, 5), CN_ABSENT), OVER(2, 1e-3) },
             { CN_IN(CN_S(7), CN_ABSENT, CN_S(7)), OVER(1, 1e-5) },
             { CN_IN(CN_S(1, 0, 7), CN_S(7), CN_ABSENT), OVER(1, 1e-5) },
             { CN_IN(CN_S(3, 0), CN_S(0), CN_S(0)), OVER(1, 1e-5) },
             { CN_IN(CN_S(40, 133), CN_S(133), CN_S(133)), OVER(1, 1e-5) },
             { CN_IN(CN_S(3, 1045), CN_S(1045), CN_S(1045)), OVER(1, 1e-5) }), /* several blocks a row */
};

cn_tensor *cn_layer_norm(cn_tensor *x, int64_t axes, cn_tensor *weight, cn_tensor *bias, double eps)
{
    return cn__norm_apply(&cn__op_layer_norm, (cn_tensor *[]){ x, weight, bias }, &(cn__norm_attrs){ axes }, eps, false);
}

static void layer_norm_backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args,
                                       cn_tensor **out)
{
    (void)ctx;
    const cn__norm n = described(in[1], ((const cn__norm_backward_attrs *)attrs)->axes, true, args);
    cn__norm_backward_define(&n, in[0], in[1], in[2], out);
}
static void layer_norm_backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, layer_norm_backward_define); }
static void layer_norm_backward_cpu(const cn_kernel *k) { backward(k, true); }
static bool layer_norm_backward_gpu(cn_gpu_call *c) { return cn__gpu_norm_backward(c, true); }

const cn_op cn__op_layer_norm_backward = {
    .call = "_layer_norm_backward(Tensor grad, Tensor input, Tensor? weight, int normalized_dims, float eps) -> "
            "(Tensor input, Tensor weight, Tensor bias)",
    .name = "layer_norm_backward",
    .doc = "Gradients of layer_norm to x, weight and bias, from g, x and weight.",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 3,
    .optional = 4,
    .attr_size = sizeof(cn__norm_backward_attrs),
    .infer = backward_infer,
    .grad = layer_norm_backward_grad,
    .epilogue = true,
    .cpu = layer_norm_backward_cpu,
    .gpu = layer_norm_backward_gpu,
    .scratch = backward_scratch,
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4), CN_S(4)), BACK(1e-5, 1, 1, 1) },
             { CN_IN(CN_S(2, 3, 5), CN_S(2, 3, 5), CN_ABSENT), BACK(1e-3, 2, 0, 1) },
             { CN_IN(CN_S(7), CN_S(7), CN_S(7)), BACK(1e-5, 1, 1, 0) },
             { CN_IN(CN_S(0, 6), CN_S(0, 6), CN_S(6)), BACK(1e-5, 1, 1, 1) },
             { CN_IN(CN_S(40, 133), CN_S(40, 133), CN_S(133)), BACK(1e-5, 1, 1, 1) }, /* several parts */
             { CN_IN(CN_S(70, 20), CN_S(70, 20), CN_S(20)), BACK(1e-5, 1, 1, 1) },    /* several blocks of rows */
             { CN_IN(CN_S(3, 1045), CN_S(3, 1045), CN_S(1045)), BACK(1e-5, 1, 1, 1) }),
};

/* ---- rms_norm */

static void rms_norm_grad(cn_grad_call *g) { backward_call(g, &cn__op_rms_norm_backward); }

static cn_tensor *rms_norm_compose(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)ctx, (void)n_in;
    const cn__norm n = described(in[0], ((const cn__norm_attrs *)attrs)->axes, false, args);
    return cn__norm_define(&n, in[0], in[1], NULL);
}

static void rms_norm_cpu(const cn_kernel *k) { forward(k, false); }
static bool rms_norm_gpu(cn_gpu_call *c) { return cn__gpu_norm(c, false); }

const cn_op cn__op_rms_norm = {
    .call = "rms_norm(Tensor input, int normalized_dims, Tensor? weight=None, float eps=1.1920929e-07) -> Tensor",
    .name = "rms_norm",
    .doc = "Divides by the root of the mean square over the last axes, then applies weight.",
    .kind = CN_BLOCK,
    .n_in = 2,
    .n_out = 1,
    .optional = 2,
    .attr_size = sizeof(cn__norm_attrs),
    .infer = infer,
    .grad = rms_norm_grad,
    .compose = rms_norm_compose,
    .epilogue = true,
    .cpu = rms_norm_cpu,
    .gpu = rms_norm_gpu,
    .onnx = "RMSNormalization",
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(4)), OVER(1, 1e-5) },
             { CN_IN(CN_S(2, 3, 5), CN_S(3, 5)), OVER(2, 1e-3) }, { CN_IN(CN_S(7), CN_ABSENT), OVER(1, 1e-5) },
             { CN_IN(CN_S(0, 7), CN_S(7)), OVER(1, 1e-5) }, { CN_IN(CN_S(40, 133), CN_S(133)), OVER(1, 1e-5) }),
};

cn_tensor *cn_rms_norm(cn_tensor *x, int64_t axes, cn_tensor *weight, double eps)
{
    return cn__norm_apply(&cn__op_rms_norm, (cn_tensor *[]){ x, weight }, &(cn__norm_attrs){ axes }, eps, true);
}

static void rms_norm_backward_define(cn_ctx *ctx, cn_tensor *const *in, const void *attrs, const cn_arg *args,
                                     cn_tensor **out)
{
    (void)ctx;
    const cn__norm n = described(in[1], ((const cn__norm_backward_attrs *)attrs)->axes, false, args);
    cn__norm_backward_define(&n, in[0], in[1], in[2], out);
}
static void rms_norm_backward_grad(cn_grad_call *g) { cn__grad_by_definition(g, rms_norm_backward_define); }
static void rms_norm_backward_cpu(const cn_kernel *k) { backward(k, false); }
static bool rms_norm_backward_gpu(cn_gpu_call *c) { return cn__gpu_norm_backward(c, false); }

const cn_op cn__op_rms_norm_backward = {
    .call = "_rms_norm_backward(Tensor grad, Tensor input, Tensor? weight, int normalized_dims, float eps) -> "
            "(Tensor input, Tensor weight)",
    .name = "rms_norm_backward",
    .doc = "Gradients of rms_norm to x and weight, from g, x and weight.",
    .kind = CN_BLOCK,
    .n_in = 3,
    .n_out = 2,
    .optional = 4,
    .attr_size = sizeof(cn__norm_backward_attrs),
    .infer = backward_infer,
    .grad = rms_norm_backward_grad,
    .epilogue = true,
    .cpu = rms_norm_backward_cpu,
    .gpu = rms_norm_backward_gpu,
    .scratch = backward_scratch,
    CN_CASES({ CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4), CN_S(4)), BACK(1e-5, 1, 1, 0) },
             { CN_IN(CN_S(2, 3, 5), CN_S(2, 3, 5), CN_ABSENT), BACK(1e-3, 2, 0, 0) },
             { CN_IN(CN_S(0, 6), CN_S(0, 6), CN_S(6)), BACK(1e-5, 1, 1, 0) },
             { CN_IN(CN_S(40, 133), CN_S(40, 133), CN_S(133)), BACK(1e-5, 1, 1, 0) },
             { CN_IN(CN_S(70, 20), CN_S(70, 20), CN_S(20)), BACK(1e-5, 1, 1, 0) }),
};
