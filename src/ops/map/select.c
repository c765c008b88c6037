/* select.c: copy and where. They move elements without looking at their values. The loops of where are in select_cpu.c.
   */
#include "ops/shared.h"

#include "ops/kernels.h"

static void copy_1(const cn_loop *l) { memmove(l->out, l->in[0], (size_t)l->n); }
static void copy_2(const cn_loop *l) { memmove(l->out, l->in[0], (size_t)l->n * 2); }
static void copy_4(const cn_loop *l) { memmove(l->out, l->in[0], (size_t)l->n * 4); }
static void copy_8(const cn_loop *l) { memmove(l->out, l->in[0], (size_t)l->n * 8); }

static void copy_grad(cn_grad_call *c) { c->in_grad[0] = c->out_grad[0]; }

const cn_op cn__op_copy = {
    .call = "_copy(Tensor input) -> Tensor",
    .name = "copy", .doc = "x, in memory of its own.", .kind = CN_MAP, .n_in = 1, .n_out = 1, .dtypes = CN_ANY,
    .cheap = true, .copies = true, .infer = cn_infer_map, .grad = copy_grad,
    .loops = { [CN_BOOL] = copy_1, [CN_U8] = copy_1, [CN_I8] = copy_1, [CN_I16] = copy_2, [CN_F16] = copy_2,
               [CN_BF16] = copy_2, [CN_I32] = copy_4, [CN_F32] = copy_4, [CN_I64] = copy_8, [CN_F64] = copy_8 },
    .wgsl = "x", .onnx = "Identity",
    CN_CASES({ CN_IN(CN_S(2, 3, 4)) }, { CN_IN(CN_S(7)) }, { CN_IN(CN_S0) }, { CN_IN(CN_S(3, 0)) },
             { CN_IN(CN_S(65, 67)) }),
};

static bool where_infer(cn_infer *i)
{
    if (i->in[0]->dtype != CN_BOOL && i->in[0]->dtype != CN_U8)
        return cn_infer_fail(i, CN_BAD_DTYPE, "condition must be bool or u8, got %s", cn_dtype_name(i->in[0]->dtype));
    return cn_infer_map(i);
}

static void where_grad(cn_grad_call *c)
{
    cn_tensor *g = c->out_grad[0], *condition = c->in[0], *zero = cn__weak(g, 0);
    if (c->needs[1]) c->in_grad[1] = cn_where(condition, g, zero);
    if (c->needs[2]) c->in_grad[2] = cn_where(condition, zero, g);
}

const cn_op cn__op_where = {
    .call = "where(Tensor condition, Tensor input, Tensor other) -> Tensor",
    .name = "where",
    .doc = "x where the condition holds, else y.",
    .kind = CN_MAP,
    .n_in = 3,
    .n_out = 1,
    .dtypes = CN_ANY,
    .free_dtype = 1,
    .not_differentiable = 1,
    .cheap = true,
    .any_order = true,
    .infer = where_infer,
    .grad = where_grad,
    .kernels_at = CN__AT(select, where),
    .wgsl = "select(z, y, x != 0)",
    .onnx = "Where",
    CN_CASES({ CN_IN(CN_BOOLS(2, 3, 4), CN_S(2, 3, 4), CN_S(2, 3, 4)) }, { CN_IN(CN_BOOLS(7), CN_S(7), CN_S0) },
             { CN_IN(CN_BOOLS(3, 1), CN_S(4), CN_S(2, 1, 1)) }, { CN_IN(CN_BOOLS(3, 0), CN_S(3, 0), CN_S(3, 0)) },
             { CN_IN(CN_BOOLS(65, 67), CN_S(65, 67), CN_S(65, 67)) }),
};

cn_tensor *cn_where(cn_tensor *condition, cn_tensor *x, cn_tensor *y)
{
    return cn_apply(&cn__op_where, (cn_tensor *[]){ condition, x, y }, 3, NULL, NULL);
}
