/* max, min (PyTorch's amax, amin), argmax, argmin, and both at once along an axis: max_dim, min_dim. Their reducers
   are in extremes_cpu.c. */
#include "ops/kernels.h"
#include "ops/reduce/reduce.h"

static const cn_wgsl_reducer max_real = { "f32", "-infinity()", "larger(s, x)", "larger(s, t)", "s" };
static const cn_wgsl_reducer min_real = { "f32", "infinity()", "smaller(s, x)", "smaller(s, t)", "s" };
static const cn_wgsl_reducer max_whole = { "i32", "bitcast<i32>(0x80000000u)", "max(s, x)", "max(s, t)", "s" };
static const cn_wgsl_reducer min_whole = { "i32", "2147483647", "min(s, x)", "min(s, t)", "s" };

/* A state is (key, index): a better element has a greater key, and NaN has the greatest. */
#define PLACE(word)                                                                                                \
    { "vec2<u32>", "vec2<u32>(0u, 0xffffffffu)", "first_of(s, vec2<u32>(" word ", u32(at)))", "first_of(s, t)",      \
      "bitcast<i32>(s.y)" }
static const cn_wgsl_reducer argmax_real = PLACE("ordered(x)");
static const cn_wgsl_reducer argmin_real = PLACE("ordered(select(-x, x, isnan(x)))");
static const cn_wgsl_reducer argmax_whole = PLACE("bitcast<u32>(x) ^ 0x80000000u");
static const cn_wgsl_reducer argmin_whole = PLACE("bitcast<u32>(x) ^ 0x7fffffffu");

static bool infer(cn_infer *i) { return cn__infer_reduce_some(i, i->in[0]->dtype); }
static bool infer_index(cn_infer *i) { return cn__infer_reduce_some(i, CN_I64); }

/* Equal extremes share the gradient equally. */
static void grad(cn_grad_call *g)
{
    const cn__reduce_attrs *a = g->attrs;
    cn_tensor *x = g->in[0];
    cn_tensor *chosen = cn_cast(cn_eq(x, cn__keepdims(g->out[0], x, a)), cn__dtype(x));
    int64_t set = (INT64_C(1) << a->end) - (INT64_C(1) << a->begin);
    cn_tensor *share = cn_div(cn__keepdims(g->out_grad[0], x, a), cn__reduce(&cn__op_sum, chosen, set, true));
    g->in_grad[0] = cn_mul(chosen, share);
}

static const cn_case cases[] = {
    {CN_IN(CN_DISTINCT(2, 3, 4)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_DISTINCT(3, 5, 7)), .attrs = &(const cn__reduce_attrs){0, 2, 1}},
    {CN_IN(CN_DISTINCT(5, 33)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_DISTINCT(0, 3)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_DISTINCT(4, 1)), .attrs = &(const cn__reduce_attrs){1, 2, 1}},
    {CN_IN(CN_S0), .attrs = &(const cn__reduce_attrs){0, 0, 0}},
    {CN_IN(CN_DISTINCT(2, 1200)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_DISTINCT(40, 70)), .attrs = &(const cn__reduce_attrs){0, 1, 0}},
    {CN_IN(CN_DISTINCT(700, 24)), .attrs = &(const cn__reduce_attrs){0, 1, 0}}, /* three chunks */
    {CN_IN(CN_DISTINCT(4, 65536)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
};

const cn_op cn__op_max = {
    .call = "max(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "max", .doc = "Largest element over axes; NaN if there is one.", .kind = CN_REDUCE, .n_in = 1, .n_out = 1,
    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__reduce_attrs), .infer = infer, .grad = grad,
    .kernels_at = CN__AT(extremes, max), .wgsl_reducer = &max_real, .wgsl_reducer_whole = &max_whole,
    .onnx = "ReduceMax", CN_CASES_OF(cases),
};

const cn_op cn__op_min = {
    .call = "min(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "min", .doc = "Smallest element over axes; NaN if there is one.", .kind = CN_REDUCE, .n_in = 1, .n_out = 1,
    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__reduce_attrs), .infer = infer, .grad = grad,
    .kernels_at = CN__AT(extremes, min), .wgsl_reducer = &min_real, .wgsl_reducer_whole = &min_whole,
    .onnx = "ReduceMin", CN_CASES_OF(cases),
};

const cn_op cn__op_argmax = {
    .call = "argmax(Tensor input, int[1] dim=None, bool keepdim=False) -> Tensor",
    .name = "argmax", .doc = "The index of the largest element, the first of equal ones; a NaN counts as largest.",
    .kind = CN_REDUCE, .n_in = 1, .n_out = 1, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL),
    .attr_size = sizeof(cn__reduce_attrs), .infer = infer_index, .no_grad = "an index does not change smoothly",
    .kernels_at = CN__AT(extremes, argmax), .wgsl_reducer = &argmax_real, .wgsl_reducer_whole = &argmax_whole,
    .onnx = "ArgMax", CN_CASES_OF(cases),
};

const cn_op cn__op_argmin = {
    .call = "argmin(Tensor input, int[1] dim=None, bool keepdim=False) -> Tensor",
    .name = "argmin", .doc = "The index of the smallest element, the first of equal ones; a NaN counts as smallest.",
    .kind = CN_REDUCE, .n_in = 1, .n_out = 1, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL),
    .attr_size = sizeof(cn__reduce_attrs), .infer = infer_index, .no_grad = "an index does not change smoothly",
    .kernels_at = CN__AT(extremes, argmin), .wgsl_reducer = &argmin_real, .wgsl_reducer_whole = &argmin_whole,
    .onnx = "ArgMin", CN_CASES_OF(cases),
};

static cn_tensor *place(const cn_op *op, cn_tensor *x, cn_dims axis, bool keepdim)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    if (axis.n <= 1) return cn__reduce_axes(op, x, axis, keepdim);
    cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: expects one axis or CN_ALL, got %d axes", op->name, axis.n);
    return NULL;
}

cn_tensor *cn_max(cn_tensor *x, cn_dims axes, bool keepdim) { return cn__reduce_axes(&cn__op_max, x, axes, keepdim); }
cn_tensor *cn_min(cn_tensor *x, cn_dims axes, bool keepdim) { return cn__reduce_axes(&cn__op_min, x, axes, keepdim); }
cn_tensor *cn_argmax(cn_tensor *x, cn_dims axis, bool keepdim) { return place(&cn__op_argmax, x, axis, keepdim); }
cn_tensor *cn_argmin(cn_tensor *x, cn_dims axis, bool keepdim) { return place(&cn__op_argmin, x, axis, keepdim); }

/* The value is gathered by the index, so its gradient goes to that one element. */
static cn_tensor *value_and_place(const char *who, const cn_op *op, const cn_op *arg, cn_tensor *x, int64_t axis,
                                  bool keepdim, cn_tensor **indices)
{
    int64_t set;
    if (indices) *indices = NULL;
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx || !cn__axes(who, x, CN_DIMS(axis), &set)) return NULL;
    cn_tensor *at = cn__reduce(arg, x, set, true), *best;
    if (!at) return NULL;
    if (cn__layout(x)->ndim == 0) {
        best = cn__reduce(op, x, 0, false);
    } else {
        best = cn_gather(x, axis, at);
        if (!keepdim) best = cn_squeeze(best, CN_DIMS(axis));
        if (!keepdim) at = cn_squeeze(at, CN_DIMS(axis));
    }
    if (indices && best) *indices = at;
    return best;
}

cn_tensor *cn_max_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices)
{
    return value_and_place("max_dim", &cn__op_max, &cn__op_argmax, x, axis, keepdim, indices);
}

cn_tensor *cn_min_dim(cn_tensor *x, int64_t axis, bool keepdim, cn_tensor **indices)
{
    return value_and_place("min_dim", &cn__op_min, &cn__op_argmin, x, axis, keepdim, indices);
}
