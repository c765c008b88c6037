/* sum and prod: gradients, records, functions. Their reducers are in folds_cpu.c. */
#include "ops/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/scan/scan.h"

static bool infer(cn_infer *i) { return cn__infer_reduce(i, i->in[0]->dtype); }

static void sum_grad(cn_grad_call *g)
{
    g->in_grad[0] = cn_expand(cn__keepdims(g->out_grad[0], g->in[0], g->attrs), cn_shape(g->in[0]));
}

/* The product is the last element of a cumprod, whose gradient needs no division: zeros are no special case. */
static void prod_grad(cn_grad_call *g)
{
    const cn__reduce_attrs *a = g->attrs;
    const cn_layout *l = cn__layout(g->in[0]);
    int64_t outer = 1, n = 1, inner = 1;
    for (int d = 0; d < l->ndim; d++) *(d < a->begin ? &outer : d < a->end ? &n : &inner) *= l->shape[d];
    if (cn_numel(g->in[0]) == 0) {
        g->in_grad[0] = cn_zeros_like(g->in[0]);
        return;
    }
    cn_tensor *x = cn_reshape(g->in[0], CN_DIMS(outer, n, inner));
    cn_tensor *last = cn_reshape(g->out_grad[0], CN_DIMS(outer, 1, inner));
    if (n > 1) {
        cn_tensor *none = cn_zeros(g->ctx, cn__dtype(g->in[0]), CN_DIMS(outer, n - 1, inner));
        last = cn_cat((cn_tensor *[]){none, last}, 2, 1);
    }
    cn_tensor *dx = cn__cumprod_backward(x, cn_cumprod(x, 1), last, 1);
    g->in_grad[0] = cn_reshape(dx, cn_shape(g->in[0]));
}

static const cn_wgsl_reducer sum_real = { "f32", "0.0", "s + x", "s + t", "s" };
static const cn_wgsl_reducer sum_whole = { "i32", "0", "s + x", "s + t", "s" };

static const cn_wgsl_reducer prod_real = { "f32", "1.0", "s * x", "s * t", "s" };
static const cn_wgsl_reducer prod_whole = { "i32", "1", "s * x", "s * t", "s" };

const cn_op cn__op_sum = {
    .call = "sum(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "sum", .doc = "Sum over axes; integers and bool add up in i64.", .kind = CN_REDUCE, .n_in = 1, .n_out = 1,
    .dtypes = CN_FLOATS | CN_BIT(CN_I64), .attr_size = sizeof(cn__reduce_attrs), .infer = infer, .grad = sum_grad,
    .kernels_at = CN__AT(folds, sum),
    .wgsl_reducer = &sum_real, .wgsl_reducer_whole = &sum_whole, .onnx = "ReduceSum",
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S(3, 5, 7)), .attrs = &(const cn__reduce_attrs){1, 3, 1}},
        {CN_IN(CN_S(7, 33)), .attrs = &(const cn__reduce_attrs){0, 1, 0}},
        {CN_IN(CN_S(3, 0)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S(0, 3)), .attrs = &(const cn__reduce_attrs){1, 2, 1}},
        {CN_IN(CN_S0), .attrs = &(const cn__reduce_attrs){0, 0, 0}},
        {CN_IN(CN_S(2, 3001)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S(3, 40, 600)), .attrs = &(const cn__reduce_attrs){0, 2, 0}},
        {CN_IN(CN_S(4, 3, 1030)), .attrs = &(const cn__reduce_attrs){1, 2, 0}}, /* a band of three tiles */
        {CN_IN(CN_S(2, 257, 520)), .attrs = &(const cn__reduce_attrs){1, 2, 0}}, /* and two chunks */
        {CN_IN(CN_S(70001)), .attrs = &(const cn__reduce_attrs){0, 1, 0}}),
};

const cn_op cn__op_prod = {
    .call = "prod(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "prod", .doc = "Product over axes; integers and bool multiply in i64.", .kind = CN_REDUCE,
    .n_in = 1, .n_out = 1, .dtypes = CN_FLOATS | CN_BIT(CN_I64), .attr_size = sizeof(cn__reduce_attrs),
    .infer = infer, .grad = prod_grad,
    .kernels_at = CN__AT(folds, prod),
    .wgsl_reducer = &prod_real, .wgsl_reducer_whole = &prod_whole, .onnx = "ReduceProd",
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S(2, 3, 3)), .attrs = &(const cn__reduce_attrs){0, 2, 1}},
        {CN_IN(CN_S(5, 1, 2)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S(3, 0)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_S0), .attrs = &(const cn__reduce_attrs){0, 0, 0}},
        {CN_IN(CN_RANGE(0.95, 1.05, 3, 1030)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
        {CN_IN(CN_RANGE(0.99, 1.01, 600, 3)), .attrs = &(const cn__reduce_attrs){0, 1, 0}}), /* three chunks */
};

/* As in PyTorch, whole numbers are summed in i64, because small types would overflow. */
static cn_tensor *fold(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    return cn__reduce_axes(op, cn_dtype_is_float(cn__dtype(x)) ? x : cn__as(x, CN_I64), axes, keepdim);
}

cn_tensor *cn_sum(cn_tensor *x, cn_dims axes, bool keepdim) { return fold(&cn__op_sum, x, axes, keepdim); }
cn_tensor *cn_prod(cn_tensor *x, cn_dims axes, bool keepdim) { return fold(&cn__op_prod, x, axes, keepdim); }
