/* registry.c: the list of all built-in operators. */
#include "cairn/op.h"

#define CN_OP(name) extern const cn_op cn__op_##name;
#include "ops.def"
#undef CN_OP

static const cn_op *const all[] = {
#define CN_OP(name) &cn__op_##name,
#include "ops.def"
#undef CN_OP
};

const cn_op *const *cn_ops(int *count)
{
    if (count) *count = (int)(sizeof all / sizeof *all);
    return all;
}

bool cn_op_has_gpu(const cn_op *op)
{
    return op && (op->wgsl || op->wgsl_print || op->wgsl_reducer || op->gpu || op->kind == CN_VIEW ||
                  op->kind == CN_COMPOSITE);
}
