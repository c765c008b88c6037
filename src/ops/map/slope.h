/* slope.h: the operators of slope.def, for the gradients of unary.def. */
#ifndef CN_MAP_SLOPE_H
#define CN_MAP_SLOPE_H

#include "cairn/op.h"

#define CN__ROOT_HALF  0.70710678118654752440
#define CN__GELU_SLOPE 0.79788456080286535588 /* √(2/π): gelu_tanh(v) = v/2 (1 + tanh(√(2/π)(v + 0.044715 v³))) */
#define CN__GELU_CUBE  0.044715

#define SLOPE(name, ...) extern const cn_op cn__op_##name;
#include "slope.def"
#undef SLOPE

/* g times the slope at v */
static inline cn_tensor *cn__slope(const cn_op *op, cn_tensor *g, cn_tensor *v)
{
    return cn_apply(op, (cn_tensor *[]){ g, v }, 2, NULL, NULL);
}

#endif
