/* Resizing of planes: interpolate_nearest copies the nearest element, interpolate_bilinear mixes the four nearest.
   interpolate_bilinear is linear: the gradient of its backward operator is interpolate_bilinear itself. */
#include <math.h>

#include "ops/window/window.h"
#include "gpu/shaders.h"

/* A coordinate of the result lies between the elements lo and hi, whose weights are 1 - weight and weight. */
typedef struct tap {
    int64_t lo, hi;
    double weight;
} tap;

typedef struct resize {
    int64_t planes, ih, iw, oh, ow;
    const tap *rows, *cols;
} resize;

#define TEMPLATE "ops/window/bilinear_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

/* align_corners: the centres of the outermost elements of x and y coincide; otherwise their outer edges do. An axis
   that keeps its size is copied: an element that is not finite stays alone. */
static tap tap_of(int64_t in, int64_t out, bool align_corners, int64_t o)
{
    if (in == out) return (tap){ o, o, 0 };
    double at;
    if (align_corners) at = out > 1 ? (double)o * (double)(in - 1) / (double)(out - 1) : 0;
    else at = ((double)o + 0.5) * (double)in / (double)out - 0.5;
    if (at < 0) at = 0;
    int64_t lo = (int64_t)at < in - 1 ? (int64_t)at : in - 1;
    return (tap){ lo, lo < in - 1 ? lo + 1 : lo, at - (double)lo };
}

static size_t scratch(const cn_kernel *k, int threads)
{
    (void)threads;
    const cn_array *x = &k->in[0], *y = &k->out[0]; /* forward or backward: one of them is the resized one */
    int64_t n = x->shape[x->ndim - 1] + x->shape[x->ndim - 2], m = y->shape[y->ndim - 1] + y->shape[y->ndim - 2];
    return sizeof(tap) * (size_t)(n > m ? n : m);
}

static resize resize_of(const cn_kernel *k, const cn_array *x, const cn_array *y)
{
    bool align = ((const cn__resize_attrs *)k->attrs)->align_corners != 0;
    int h = x->ndim - 2, w = x->ndim - 1;
    tap *taps = k->scratch;
    resize z = { 1, x->shape[h], x->shape[w], y->shape[h], y->shape[w], taps, taps + y->shape[h] };
    for (int d = 0; d < h; d++) z.planes *= x->shape[d];
    for (int64_t o = 0; o < z.oh; o++) taps[o] = tap_of(z.ih, z.oh, align, o);
    for (int64_t o = 0; o < z.ow; o++) taps[z.oh + o] = tap_of(z.iw, z.ow, align, o);
    return z;
}

static void cpu(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    resize z = resize_of(k, &k->in[0], &k->out[0]);
    cn_parallel(k, z.planes * z.oh, 1 + 4096 / z.ow, k->in[0].dtype == CN_F32 ? resize_f32 : resize_f64, &z);
}

static void cpu_backward(const cn_kernel *k)
{
    if (k->out[0].numel == 0) return;
    resize z = resize_of(k, &k->out[0], &k->in[0]);
    cn_body body = k->in[0].dtype == CN_F32 ? resize_backward_f32 : resize_backward_f64;
    cn_parallel(k, z.planes, 1 + 4096 / (z.ih * z.iw + z.oh * z.ow), body, &z);
}

static bool run_gpu(cn_gpu_call *c, const char *kernel, const cn_array *x, const cn_array *y)
{
    const bool corners = ((const cn__resize_attrs *)c->attrs)->align_corners != 0;
    for (int d = 2; d > 0; d--) cn_gpu_param(c, x->shape[x->ndim - d]);
    for (int d = 2; d > 0; d--) cn_gpu_param(c, y->shape[y->ndim - d]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_interpolate,
                                           .kernel = kernel,
                                           .holes = CN_GPU_HOLES(CN_GPU_FLAG("corners", corners)),
                                           .each = c->out[0].numel });
}

static bool gpu(cn_gpu_call *c) { return run_gpu(c, "forward", &c->in[0], &c->out[0]); }
static bool gpu_backward(cn_gpu_call *c) { return run_gpu(c, "backward", &c->out[0], &c->in[0]); }

/* (..., H, W) → (..., size). size: that of the result forward, that of the forward operand backward. */
static bool infer(cn_infer *i)
{
    const cn__resize_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    char s[96];
    if (!cn__has_windows(i, 2)) return false;
    if (a->size[0] < 1 || a->size[1] < 1 || x->shape[x->ndim - 2] == 0 || x->shape[x->ndim - 1] == 0)
        return cn_infer_fail(i, CN_BAD_SHAPE, "heights and widths must be ≥ 1, got %s to be resized to %lld x %lld",
                             cn__shape_text(x, s, sizeof s), (long long)a->size[0], (long long)a->size[1]);
    return cn__infer_sizes(i, 2, a->size);
}

static void grad_by(cn_grad_call *g, const cn_op *op)
{
    cn__resize_attrs a = { { cn_size(g->in[0], -2), cn_size(g->in[0], -1) },
                           ((const cn__resize_attrs *)g->attrs)->align_corners };
    if (g->needs[0]) g->in_grad[0] = cn_apply(op, &g->out_grad[0], 1, &a, NULL);
}

extern const cn_op cn__op_interpolate_bilinear_backward;
static void grad(cn_grad_call *g) { grad_by(g, &cn__op_interpolate_bilinear_backward); }

const cn_op cn__op_interpolate_bilinear = {
    .call = "interpolate_bilinear(Tensor input, int[2] size, bool align_corners=False) -> Tensor",
    .name = "interpolate_bilinear", .doc = "Planes of another size, each element mixed from the four nearest.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__resize_attrs), .infer = infer, .grad = grad,
    .cpu = cpu, .scratch = scratch, .gpu = gpu, .onnx = "Resize",
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 5)), .attrs = &(const cn__resize_attrs){ { 8, 10 }, 0 } },
             { CN_IN(CN_S(3, 4, 5)), .attrs = &(const cn__resize_attrs){ { 7, 3 }, 1 } },
             { CN_IN(CN_S(1, 2, 7, 6)), .attrs = &(const cn__resize_attrs){ { 3, 4 }, 0 } },
             { CN_IN(CN_S(2, 1, 1)), .attrs = &(const cn__resize_attrs){ { 3, 1 }, 1 } },
             { CN_IN(CN_S(0, 2, 4, 5)), .attrs = &(const cn__resize_attrs){ { 3, 3 }, 0 } },
             { CN_IN(CN_S(3, 5, 13, 11)), .attrs = &(const cn__resize_attrs){ { 20, 19 }, 1 } },
             { CN_IN(CN_S(5, 9, 13, 11)), .attrs = &(const cn__resize_attrs){ { 20, 19 }, 0 } }),
};

static void grad_backward(cn_grad_call *g) { grad_by(g, &cn__op_interpolate_bilinear); }

const cn_op cn__op_interpolate_bilinear_backward = {
    .call = "_interpolate_bilinear_backward(Tensor grad, int[2] size, bool align_corners) -> Tensor",
    .name = "interpolate_bilinear_backward", .doc = "The gradient of bilinear resizing: its transpose.",
    .kind = CN_INDEX, .n_in = 1, .n_out = 1, .attr_size = sizeof(cn__resize_attrs), .infer = infer,
    .grad = grad_backward, .cpu = cpu_backward, .scratch = scratch, .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 8, 10)), .attrs = &(const cn__resize_attrs){ { 4, 5 }, 0 } },
             { CN_IN(CN_S(3, 7, 3)), .attrs = &(const cn__resize_attrs){ { 4, 5 }, 1 } },
             { CN_IN(CN_S(0, 2, 3, 3)), .attrs = &(const cn__resize_attrs){ { 4, 5 }, 0 } },
             { CN_IN(CN_S(3, 5, 20, 19)), .attrs = &(const cn__resize_attrs){ { 13, 11 }, 1 } }),
};

cn_tensor *cn_interpolate_bilinear(cn_tensor *x, int64_t height, int64_t width, bool align_corners)
{
    return cn_apply(&cn__op_interpolate_bilinear, &x, 1, &(cn__resize_attrs){ { height, width }, align_corners }, NULL);
}

/* floor(i · in / out), with the quotient in f32, as in PyTorch. */
static cn_tensor *nearest(cn_ctx *ctx, int64_t in, int64_t out)
{
    float scale = (float)in / (float)out;
    cn_tensor *at = cn_floor(cn_mul_s(cn_arange(ctx, CN_F32, 0, (double)out, 1), scale));
    return cn_minimum_s(cn_cast(at, CN_I64), (double)(in - 1));
}

static cn_tensor *compose_nearest(cn_ctx *ctx, cn_tensor *const *in, int n_in, const void *attrs, const cn_arg *args)
{
    (void)n_in, (void)args;
    const cn__nearest_attrs *a = attrs;
    cn_tensor *x = in[0];
    for (int d = 0; d < a->axes && x; d++) {
        int axis = d - (int)a->axes;
        if (cn_size(x, axis) != a->size[d]) x = cn_index_select(x, axis, nearest(ctx, cn_size(x, axis), a->size[d]));
    }
    return x == in[0] ? cn_clone(x) : x;
}

const cn_op cn__op_interpolate_nearest = {
    .call = "interpolate_nearest(Tensor input, int[] size) -> Tensor",
    .name = "interpolate_nearest", .doc = "The last axes, up to three, with other sizes, each element the nearest one.",
    .kind = CN_COMPOSITE, .n_in = 1, .n_out = 1, .dtypes = CN_ANY, .attr_size = sizeof(cn__nearest_attrs),
    .compose = compose_nearest, .onnx = "Resize",
    CN_CASES({ CN_IN(CN_S(2, 3, 4, 5)), .attrs = &(const cn__nearest_attrs){ 2, { 8, 10 } } },
             { CN_IN(CN_S(3, 5, 7)), .attrs = &(const cn__nearest_attrs){ 2, { 3, 11 } } },
             { CN_IN(CN_S(2, 3, 6)), .attrs = &(const cn__nearest_attrs){ 1, { 9, 0 } } },
             { CN_IN(CN_S(2, 4, 4)), .attrs = &(const cn__nearest_attrs){ 2, { 4, 4 } } },
             { CN_IN(CN_S(2, 3, 4, 5)), .attrs = &(const cn__nearest_attrs){ 3, { 5, 4, 2 } } },
             { CN_IN(CN_S(0, 3, 6)), .attrs = &(const cn__nearest_attrs){ 1, { 4, 0 } } },
             { CN_IN(CN_S(3, 5, 13, 11)), .attrs = &(const cn__nearest_attrs){ 2, { 26, 17 } } }),
};

cn_tensor *cn_interpolate_nearest(cn_tensor *x, cn_dims size)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    bool fine = size.n >= 1 && size.n <= 3 && size.n <= cn_ndim(x);
    for (int d = 0; d < size.n && fine; d++) fine = size.v[d] > 0 && cn_size(x, d - size.n) > 0;
    if (!fine) {
        char s[96];
        cn__shape_text(cn__layout(x), s, sizeof s);
        cn__fail(x->ctx, CN_BAD_SHAPE,
                 "interpolate_nearest: size must have 1 to 3 numbers ≥ 1, for axes of x that are not empty, got %d "
                 "numbers for %s",
                 size.n, s);
        return NULL;
    }
    cn__nearest_attrs a = { .axes = size.n };
    for (int d = 0; d < size.n; d++) a.size[d] = size.v[d];
    return cn_apply(&cn__op_interpolate_nearest, &x, 1, &a, NULL);
}
