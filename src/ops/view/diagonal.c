/* diagonal: x[i, i + offset] of two axes, as the last axis of the result. */
#include "ops/view/move.h"
#include "ops/view/view.h"
#include "gpu/shaders.h"

/* The number of elements on the diagonal of (size1, size2). */
static int64_t length_of(int64_t offset, int64_t size1, int64_t size2)
{
    int64_t n = offset >= 0 ? cn__smaller(size1, size2 - offset) : cn__smaller(size1 + offset, size2);
    return n > 0 ? n : 0;
}

static bool check_axes(cn_infer *i, const cn__diagonal_attrs *a, int ndim)
{
    if (!cn__infer_axis(i, a->axis1, ndim) || !cn__infer_axis(i, a->axis2, ndim)) return false;
    return a->axis1 != a->axis2 ||
           cn_infer_fail(i, CN_BAD_ARGUMENT, "the two axes must differ, got axis %lld twice", (long long)a->axis1);
}

static bool infer(cn_infer *i)
{
    const cn__diagonal_attrs *a = i->attrs;
    const cn_layout *x = &i->in[0]->layout;
    if (!check_axes(i, a, x->ndim)) return false;
    cn_layout *out = &i->out[0].layout;
    i->out[0].dtype = i->in[0]->dtype;
    out->ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (d == a->axis1 || d == a->axis2) continue;
        out->shape[out->ndim] = x->shape[d];
        out->stride[out->ndim++] = x->stride[d];
    }
    out->shape[out->ndim] = length_of(a->offset, x->shape[a->axis1], x->shape[a->axis2]);
    out->stride[out->ndim++] = x->stride[a->axis1] + x->stride[a->axis2];
    out->offset = x->offset;
    if (cn__numel(out))
        out->offset += a->offset >= 0 ? a->offset * x->stride[a->axis2] : -a->offset * x->stride[a->axis1];
    return true;
}

static void grad(cn_grad_call *g)
{
    const cn__diagonal_attrs *of = g->attrs;
    cn__diagonal_backward_attrs a = { *of, cn_size(g->in[0], (int)of->axis1), cn_size(g->in[0], (int)of->axis2) };
    g->in_grad[0] = cn_apply(&cn__op_diagonal_backward, g->out_grad, 1, &a, NULL);
}

const cn_op cn__op_diagonal = {
    .call = "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .name = "diagonal",
    .doc = "A diagonal of two axes, as the last axis.",
    .kind = CN_VIEW,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .attr_size = sizeof(cn__diagonal_attrs),
    .infer = infer,
    .grad = grad,
    CN_CASES({ CN_IN(CN_S(4, 4)), .attrs = &(const cn__diagonal_attrs){ 0, 0, 1 } },
             { CN_IN(CN_S(3, 2, 5)), .attrs = &(const cn__diagonal_attrs){ 1, 0, 2 } },
             { CN_IN(CN_S(5, 3)), .attrs = &(const cn__diagonal_attrs){ -2, 0, 1 } },
             { CN_IN(CN_S(2, 3)), .attrs = &(const cn__diagonal_attrs){ 7, 1, 0 } },
             { CN_IN(CN_S(0, 3, 3)), .attrs = &(const cn__diagonal_attrs){ 0, 1, 2 } },
             { CN_IN(CN_S(20, 9, 21)), .attrs = &(const cn__diagonal_attrs){ -3, 2, 0 } }),
};

cn_tensor *cn_diagonal(cn_tensor *x, int64_t offset, int64_t axis1, int64_t axis2)
{
    if (!cn__alive(x)) return NULL;
    int n = cn_ndim(x);
    cn__diagonal_attrs a = { offset, cn__from_front(axis1, n), cn__from_front(axis2, n) };
    return cn_apply(&cn__op_diagonal, &x, 1, &a, NULL);
}

/* ---- diagonal_backward: zeros with g on the diagonal ---- */

static bool infer_backward(cn_infer *i)
{
    const cn__diagonal_backward_attrs *a = i->attrs;
    const cn_layout *g = &i->in[0]->layout;
    cn_layout *out = &i->out[0].layout;
    i->out[0].dtype = i->in[0]->dtype;
    if (g->ndim == CN_MAX_DIMS)
        return cn_infer_fail(i, CN_BAD_SHAPE, "a result has at most %d axes, got an operand with %d", CN_MAX_DIMS,
                             g->ndim);
    if (!check_axes(i, &a->of, g->ndim + 1)) return false;
    if (g->ndim == 0 || a->size1 < 0 || a->size2 < 0 ||
        g->shape[g->ndim - 1] != length_of(a->of.offset, a->size1, a->size2)) {
        char s[128];
        return cn_infer_fail(i, CN_BAD_SHAPE, "the last axis of %s must be as long as diagonal %lld of [%lld,%lld]",
                             cn__shape_text(g, s, sizeof s), (long long)a->of.offset, (long long)a->size1,
                             (long long)a->size2);
    }
    out->ndim = g->ndim + 1;
    for (int d = 0, from = 0; d < out->ndim; d++)
        out->shape[d] = d == a->of.axis1 ? a->size1 : d == a->of.axis2 ? a->size2 : g->shape[from++];
    return true;
}

static void cpu_backward(const cn_kernel *k)
{
    const cn__diagonal_attrs *a = &((const cn__diagonal_backward_attrs *)k->attrs)->of;
    cn__zero_result(k);
    if (k->in[0].numel == 0) return;
    cn__move m = cn__move_of(k, 0);
    const int64_t *stride = k->out[0].stride;
    for (int d = 0, to = 0; d < k->out[0].ndim; d++)
        if (d != a->axis1 && d != a->axis2) m.to_stride[to++] = stride[d];
    m.to_stride[m.ndim - 1] = stride[a->axis1] + stride[a->axis2];
    m.to += m.bytes * (a->offset >= 0 ? a->offset * stride[a->axis2] : -a->offset * stride[a->axis1]);
    cn__move_run(k, &m);
}

/* Zeros first, then the diagonal. */
static bool gpu_backward(cn_gpu_call *c)
{
    const cn__diagonal_attrs *a = &((const cn__diagonal_backward_attrs *)c->attrs)->of;
    if (!cn_gpu_run(c, &(cn_gpu_launch){ .shader = cn__wgsl_words, .kernel = "zeros", .each = c->out[0].numel }))
        return false;
    const int64_t *stride = c->out[0].stride;
    int64_t to[CN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < c->out[0].ndim; d++)
        if (d != a->axis1 && d != a->axis2) to[n++] = stride[d];
    to[n] = stride[a->axis1] + stride[a->axis2];
    cn_gpu_param(c, a->offset >= 0 ? a->offset * stride[a->axis2] : -a->offset * stride[a->axis1]);
    const char *there = cn__gpu_walk(c, "there", c->in[0].ndim, c->in[0].shape, to);
    const char *here = cn__gpu_walk_array(c, "here", &c->in[0]);
    return cn_gpu_run(c,
                      &(cn_gpu_launch){ .shader = cn__wgsl_diagonal,
                                        .holes = CN_GPU_HOLES(CN_GPU_TEXT("here", here), CN_GPU_TEXT("there", there)),
                                        .each = c->in[0].numel });
}

static void grad_backward(cn_grad_call *g)
{
    const cn__diagonal_backward_attrs *a = g->attrs;
    g->in_grad[0] = cn_apply(&cn__op_diagonal, g->out_grad, 1, &a->of, NULL);
}

const cn_op cn__op_diagonal_backward = {
    .call = "_diagonal_backward(Tensor grad, int offset, int dim1, int dim2, int size1, int size2) -> Tensor",
    .name = "diagonal_backward",
    .doc = "The gradient of diagonal: zeros beside it.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_ANY,
    .strided = true,
    .attr_size = sizeof(cn__diagonal_backward_attrs),
    .infer = infer_backward,
    .grad = grad_backward,
    .cpu = cpu_backward,
    .gpu = gpu_backward,
    CN_CASES({ CN_IN(CN_S(4)), .attrs = &(const cn__diagonal_backward_attrs){ { 0, 0, 1 }, 4, 4 } },
             { CN_IN(CN_S(2, 3)), .attrs = &(const cn__diagonal_backward_attrs){ { 1, 0, 2 }, 3, 5 } },
             { CN_IN(CN_S(3)), .attrs = &(const cn__diagonal_backward_attrs){ { -2, 0, 1 }, 5, 3 } },
             { CN_IN(CN_S(2, 0)), .attrs = &(const cn__diagonal_backward_attrs){ { 7, 2, 0 }, 2, 3 } },
             { CN_IN(CN_S(900, 18)), .attrs = &(const cn__diagonal_backward_attrs){ { -3, 2, 0 }, 21, 20 } },
             { CN_IN(CN_S(9000, 4)), .attrs = &(const cn__diagonal_backward_attrs){ { 1, 0, 2 }, 4, 5 } }),
};

/* ---- diag_embed and what is made of it and of diagonal ---- */

cn_tensor *cn_diag_embed(cn_tensor *x, int64_t offset, int64_t dim1, int64_t dim2)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    const cn_layout *l = cn__layout(x);
    int64_t size;
    if (l->ndim == 0) return cn__fail(x->ctx, CN_BAD_SHAPE, "diag_embed: input must have an axis, got a number"), NULL;
    if (offset < -INT64_MAX || __builtin_add_overflow(l->shape[l->ndim - 1], offset < 0 ? -offset : offset, &size))
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "diag_embed: offset %lld is too large", (long long)offset), NULL;
    cn__diagonal_attrs of = { offset, cn__from_front(dim1, l->ndim + 1), cn__from_front(dim2, l->ndim + 1) };
    return cn_apply(&cn__op_diagonal_backward, &x, 1, &(cn__diagonal_backward_attrs){ of, size, size }, NULL);
}

cn_tensor *cn_diagflat(cn_tensor *x, int64_t offset)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_diag_embed(cn_reshape(x, CN_DIMS(cn_numel(x))), offset, 0, 1) : NULL;
}

cn_tensor *cn_diag(cn_tensor *x, int64_t diagonal)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    int ndim = cn_ndim(x);
    if (ndim == 1 || ndim == 2) return ndim == 1 ? cn_diag_embed(x, diagonal, 0, 1) : cn_diagonal(x, diagonal, 0, 1);
    return cn__fail(x->ctx, CN_BAD_SHAPE, "diag: input must be a vector or a matrix, got %d axes", ndim), NULL;
}

cn_tensor *cn_trace(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    if (!call.ctx) return NULL;
    if (cn_ndim(x) == 2) return cn_sum(cn_diagonal(x, 0, 0, 1), CN_ALL, false);
    return cn__fail(x->ctx, CN_BAD_SHAPE, "trace: input must be a matrix, got %d axes", cn_ndim(x)), NULL;
}
