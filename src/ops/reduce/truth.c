/* any and all. The state of their reducers is one byte, 0 or 1. */
#include <math.h>

#include "ops/reduce/reduce.h"

static void any_begin(void *state, int64_t n) { memset(state, 0, (size_t)n); }
static void all_begin(void *state, int64_t n) { memset(state, 1, (size_t)n); }
static void truth_end(const void *state, void *out, int64_t n) { memcpy(out, state, (size_t)n); }

static void any_merge(void *state, const void *later, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint8_t *)state)[i] |= ((const uint8_t *)later)[i];
}

static void all_merge(void *state, const void *later, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint8_t *)state)[i] &= ((const uint8_t *)later)[i];
}

#define TEMPLATE "ops/reduce/truth_body.h"
#define TYPES    CN__FLOAT_TYPES | CN__WHOLE_TYPES
#include "cpu/each_type.h"

/* As in PyTorch, the result is bool, and u8 for a u8. */
static bool infer(cn_infer *i) { return cn__infer_reduce(i, i->in[0]->dtype == CN_U8 ? CN_U8 : CN_BOOL); }

static const cn_wgsl_reducer any_real = { "i32", "0", "s | i32(truth(x))", "s | t", "s" };
static const cn_wgsl_reducer any_whole = { "i32", "0", "s | i32(x != 0)", "s | t", "s" };
static const cn_wgsl_reducer all_real = { "i32", "1", "s & i32(truth(x))", "s & t", "s" };
static const cn_wgsl_reducer all_whole = { "i32", "1", "s & i32(x != 0)", "s & t", "s" };

static const cn_case cases[] = {
    {CN_IN(CN_BOOLS(2, 3, 4)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_BOOLS(9, 2, 3)), .attrs = &(const cn__reduce_attrs){1, 3, 1}},
    {CN_IN(CN_S(3, 5)), .attrs = &(const cn__reduce_attrs){0, 1, 0}},
    {CN_IN(CN_S(3, 0)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_BOOLS(0, 3)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_S0), .attrs = &(const cn__reduce_attrs){0, 0, 0}},
    {CN_IN(CN_BOOLS(1500, 2)), .attrs = &(const cn__reduce_attrs){1, 2, 0}},
    {CN_IN(CN_BOOLS(2, 1500)), .attrs = &(const cn__reduce_attrs){0, 1, 0}},
};

const cn_op cn__op_any = {
    .call = "any(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "any", .doc = "Whether any element over axes is not 0.", .kind = CN_REDUCE, .n_in = 1, .n_out = 1,
    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__reduce_attrs), .infer = infer,
    .no_grad = "true or false does not change smoothly",
    .reducers = {[CN_BOOL] = &any_u8, [CN_U8] = &any_u8, [CN_I8] = &any_i8, [CN_I16] = &any_i16, [CN_I32] = &any_i32,
                 [CN_I64] = &any_i64, [CN_F32] = &any_f32, [CN_F64] = &any_f64},
    .wgsl_reducer = &any_real, .wgsl_reducer_whole = &any_whole,
    CN_CASES_OF(cases),
};

const cn_op cn__op_all = {
    .call = "all(Tensor input, int[] dim=None, bool keepdim=False) -> Tensor",
    .name = "all", .doc = "Whether every element over axes is not 0.", .kind = CN_REDUCE, .n_in = 1, .n_out = 1,
    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__reduce_attrs), .infer = infer,
    .no_grad = "true or false does not change smoothly",
    .reducers = {[CN_BOOL] = &all_u8, [CN_U8] = &all_u8, [CN_I8] = &all_i8, [CN_I16] = &all_i16, [CN_I32] = &all_i32,
                 [CN_I64] = &all_i64, [CN_F32] = &all_f32, [CN_F64] = &all_f64},
    .wgsl_reducer = &all_real, .wgsl_reducer_whole = &all_whole,
    CN_CASES_OF(cases),
};

/* Over no axes, every element is its own result. */
static cn_tensor *truth(const cn_op *op, cn_tensor *x, cn_dims axes, bool keepdim)
{
    if (!cn__alive_in(x, op->name)) return NULL;
    if (axes.n != 0) return cn__reduce_axes(op, x, axes, keepdim);
    return cn__dtype(x) == CN_BOOL ? cn_clone(x) : cn__as(cn_ne_s(x, 0), cn__dtype(x) == CN_U8 ? CN_U8 : CN_BOOL);
}

cn_tensor *cn_any(cn_tensor *x, cn_dims axes, bool keepdim) { return truth(&cn__op_any, x, axes, keepdim); }
cn_tensor *cn_all(cn_tensor *x, cn_dims axes, bool keepdim) { return truth(&cn__op_all, x, axes, keepdim); }
