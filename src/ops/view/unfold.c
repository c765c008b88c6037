/* unfold: windows of `size` along an axis, `step` apart; the window's elements become the last axis. */
#include "cairn/kernel.h"
#include "ops/view/view.h"
#include "gpu/shaders.h"

/* A tensor without axes is unfolded as if it had one axis of size 1. */
static bool infer(cn_infer *i)
{
    const cn__unfold_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (!cn__infer_axis(i, a->axis, x->ndim ? x->ndim : 1)) return false;
    int64_t length = x->ndim ? x->shape[a->axis] : 1;
    if (a->size < 0 || a->size > length || a->step < 1)
        return cn_infer_fail(
            i, CN_BAD_ARGUMENT,
            "size must be 0 to the axis's and step > 0, got size %lld and step %lld for axis %lld of size %lld",
            (long long)a->size, (long long)a->step, (long long)a->axis, (long long)length);
    if (x->ndim == CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "a result has at most %d axes, got an operand with %d", CN_MAX_DIMS,
                             x->ndim);
    i->out[0] = *i->in[0];
    cn_layout *out = &i->out[0].layout;
    out->ndim = x->ndim + 1;
    out->shape[x->ndim] = a->size;
    out->stride[x->ndim] = x->ndim ? x->stride[a->axis] : 1;
    if (x->ndim == 0) return true;
    out->shape[a->axis] = (length - a->size) / a->step + 1;
    if (out->shape[a->axis] > 1) out->stride[a->axis] *= a->step;
    return true;
}

static void grad(cn_grad_call *g)
{
    cn__unfold_backward_attrs a = { *(const cn__unfold_attrs *)g->attrs, 1 };
    if (cn_ndim(g->in[0]) == 0) {
        g->in_grad[0] = cn_sum(g->out_grad[0], CN_ALL, false);
        return;
    }
    a.length = cn_size(g->in[0], (int)a.of.axis);
    g->in_grad[0] = cn_apply(&cn__op_unfold_backward, g->out_grad, 1, &a, NULL);
}

const cn_op cn__op_unfold = {
    .call = "unfold(Tensor input, int dimension, int size, int step) -> Tensor",
    .name = "unfold",
    .doc = "Windows along an axis, which may overlap.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__unfold_attrs),
    .infer = infer,
    .grad = grad,
    CN_CASES({ CN_IN(CN_S(2, 7)), .attrs = &(const cn__unfold_attrs){ 1, 3, 2 } },
             { CN_IN(CN_S(5, 3)), .attrs = &(const cn__unfold_attrs){ 0, 2, 1 } },
             { CN_IN(CN_S(9)), .attrs = &(const cn__unfold_attrs){ 0, 2, 3 } },
             { CN_IN(CN_S(0, 4)), .attrs = &(const cn__unfold_attrs){ 1, 2, 2 } },
             { CN_IN(CN_S(3)), .attrs = &(const cn__unfold_attrs){ 0, 0, 1 } },
             { CN_IN(CN_S0), .attrs = &(const cn__unfold_attrs){ 0, 1, 1 } },
             { CN_IN(CN_S(6, 51, 4)), .attrs = &(const cn__unfold_attrs){ 1, 8, 3 } }),
};

cn_tensor *cn_unfold(cn_tensor *x, int64_t axis, int64_t size, int64_t step)
{
    if (!cn__alive(x)) return NULL;
    int n = cn_ndim(x);
    cn__unfold_attrs a = { cn__from_front(axis, n ? n : 1), size, step };
    return cn_apply(&cn__op_unfold, &x, 1, &a, NULL);
}

/* ---- unfold_backward: every element is the sum of g over the windows it was in ---- */

static bool infer_backward(cn_infer *i)
{
    const cn__unfold_backward_attrs *a = i->attrs;
    const cn_layout *g = &i->in[0]->layout; /* (..., windows, ..., size) */
    if (!cn__infer_axis(i, a->of.axis, g->ndim - 1)) return false;
    int64_t windows = g->shape[a->of.axis], size = g->shape[g->ndim - 1];
    if (size != a->of.size || size > a->length || a->of.step < 1 || windows != (a->length - size) / a->of.step + 1) {
        char s[128];
        return cn_infer_fail(
            i, CN_BAD_SHAPE,
            "the shape %s is not that of windows of %lld in steps of %lld along axis %lld of size %lld",
            cn__shape_text(g, s, sizeof s), (long long)a->of.size, (long long)a->of.step, (long long)a->of.axis,
            (long long)a->length);
    }
    i->out[0] = *i->in[0];
    i->out[0].layout.ndim = g->ndim - 1;
    i->out[0].layout.shape[a->of.axis] = a->length;
    return true;
}

typedef struct gather {
    const void *g;
    void *out;
    int64_t length, inner, windows, size, step; /* out (outer, length, inner), g (outer, windows, inner, size) */
} gather;

#define TEMPLATE "ops/view/unfold_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

static void cpu_backward(const cn_kernel *k)
{
    const cn__unfold_backward_attrs *a = k->attrs;
    gather j = { k->in[0].data, k->out[0].data, a->length, 1, k->in[0].shape[a->of.axis], a->of.size, a->of.step };
    for (int d = (int)a->of.axis + 1; d < k->out[0].ndim; d++) j.inner *= k->out[0].shape[d];
    if (k->out[0].numel == 0) return;
    int64_t overlap = j.size / j.step + 1;
    cn_parallel(k, k->out[0].numel, 16384 / (overlap < 1024 ? overlap : 1024),
                k->in[0].dtype == CN_F64 ? gather_f64 : gather_f32, &j);
}

/* par: length, inner, windows, size, step; as above. */
static bool gpu_backward(cn_gpu_call *c)
{
    const cn__unfold_backward_attrs *a = c->attrs;
    int64_t inner = 1;
    for (int d = (int)a->of.axis + 1; d < c->out[0].ndim; d++) inner *= c->out[0].shape[d];
    const int64_t step = a->of.step < a->length ? a->of.step : a->length; /* a larger step leaves one window, too */
    const int64_t numbers[] = { a->length, inner, c->in[0].shape[a->of.axis], a->of.size, step };
    for (int i = 0; i < 5; i++) cn_gpu_param(c, numbers[i]);
    return cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_unfold, .each = c->out[0].numel });
}

static void grad_backward(cn_grad_call *g)
{
    const cn__unfold_backward_attrs *a = g->attrs;
    g->in_grad[0] = cn_apply(&cn__op_unfold, g->out_grad, 1, &a->of, NULL);
}

const cn_op cn__op_unfold_backward = {
    .call = "_unfold_backward(Tensor grad, int dimension, int size, int step, int length) -> Tensor",
    .name = "unfold_backward",
    .doc = "The gradient of unfold: windows added up where they lay.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .attr_size = sizeof(cn__unfold_backward_attrs),
    .infer = infer_backward,
    .grad = grad_backward,
    .cpu = cpu_backward,
    .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(2, 3, 3)), .attrs = &(const cn__unfold_backward_attrs){ { 1, 3, 2 }, 7 } },
             { CN_IN(CN_S(4, 3, 2)), .attrs = &(const cn__unfold_backward_attrs){ { 0, 2, 1 }, 5 } },
             { CN_IN(CN_S(3, 2)), .attrs = &(const cn__unfold_backward_attrs){ { 0, 2, 3 }, 10 } },
             { CN_IN(CN_S(0, 2, 2)), .attrs = &(const cn__unfold_backward_attrs){ { 1, 2, 2 }, 4 } },
             { CN_IN(CN_S(4, 0)), .attrs = &(const cn__unfold_backward_attrs){ { 0, 0, 1 }, 3 } },
             { CN_IN(CN_S(40, 15, 4, 8)), .attrs = &(const cn__unfold_backward_attrs){ { 1, 8, 3 }, 51 } },
             { CN_IN(CN_S(75, 15, 4, 8)), .attrs = &(const cn__unfold_backward_attrs){ { 1, 8, 3 }, 51 } }),
};
